/* pool.h - the sum, mean or maximum of windows of a picture; a set of items is a picture of one window. */
#ifndef RWS_NN_POOL_H
#define RWS_NN_POOL_H

#include "nn/layer.h"

/* Pictures of `rows` rows and `cols` columns, one behind the other, are divided into windows of high x wide numbers.
 * Each window becomes one number. Rows and columns that fill no window are left out, as in PyTorch. */
rws_var rws_pool(rws_path *path, rws_pooling how, rws_var x, int rows, int cols, int high, int wide);

#endif
