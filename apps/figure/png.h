/* png.h - reads a PNG file of any colours as a grey picture; transparent pixels are black.
 *
 *     PNG -> [png] -> rws_grey -> a model with `see`
 */
#ifndef RWS_FIGURE_PNG_H
#define RWS_FIGURE_PNG_H

#include "rws.h"

enum { RWS_MAX_PNG_SIDE = 4096 }; /* pixels along a side */

/* Whether the path ends in .png. */
bool rws__png_is(const char *path);

/* On success out->grey is the caller's, to be released, and out->name is `path`. Otherwise *out is empty and the status
 * RWS_BAD_INPUT: the file is missing, is no PNG, is damaged or is larger than RWS_MAX_PNG_SIDE. */
rws_status rws__png_read(const char *path, rws_grey *out, rws_error *err) __attribute__((warn_unused_result));

void rws__png_release(rws_grey *picture);

#endif
