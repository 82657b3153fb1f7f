/* ops.h - the ops on pictures. */
#ifndef RWS_VISION_OPS_H
#define RWS_VISION_OPS_H

#include "tensor/op.h"

/* Every op of this room, NULL-terminated; the tests walk it. */
extern const rws_op *const rws_vision_ops[];

/* Stops with a sentence about the function `name` if a source of rows x cols points or an output of out_rows x out_cols
 * points is too small or too large. */
void rws_pictures_expect(rws_path *path, const char *name, int rows, int cols, int out_rows, int out_cols);

#endif
