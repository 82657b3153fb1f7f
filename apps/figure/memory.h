/* memory.h - whether there is memory for Pango, Fontconfig and Cairo.
 *
 * These libraries end the program if memory or threads are missing, some with a signal. Memory and threads are
 * therefore tried before the first picture; they are most likely still available a moment later.
 */
#ifndef RWS_FIGURE_MEMORY_H
#define RWS_FIGURE_MEMORY_H

#include "rws.h"

/* RWS_NO_MEMORY with a message if a picture cannot be drawn. Looks once in the life of the process. */
rws_status rws__figure_check_memory(rws_error *err) __attribute__((warn_unused_result));

#endif
