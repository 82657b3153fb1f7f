/* cache.h - the folder where data sets are kept between runs.
 *
 *     environment -> [cache] -> mnist, canvas
 */
#ifndef RWS_MODELS_CORPORA_CACHE_H
#define RWS_MODELS_CORPORA_CACHE_H

#include "rws.h"

/* The first of $RWS_CACHE, $XDG_CACHE_HOME/rws and ~/.cache/rws whose variable is set and not empty. *folder is the
 * caller's to free; the folder need not exist. RWS_BAD_INPUT if none of the variables is set. */
rws_status rws__cache_folder(char **folder, rws_error *err) __attribute__((warn_unused_result));

#endif
