/* pictures.h - what the ops on pictures share. */
#ifndef RWS_NN_PICTURES_H
#define RWS_NN_PICTURES_H

#include "rws.h"

/* Stops with a message about the function `name` if a source of rows x cols points or an output of out_rows x out_cols
 * points is too small or too large. */
void rws__pictures_expect(rws_path *path, const char *name, int rows, int cols, int out_rows, int out_cols);

#endif
