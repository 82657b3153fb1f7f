/* picture.h - pictures made of glimpses on a background: the likelihood of the model air, with its constants. */
#ifndef RWS_MODELS_PICTURE_H
#define RWS_MODELS_PICTURE_H

#include "tensor/op.h"

/* The logits of the pixels of n glimpses on a background. With y the sum of the glimpses as rws_place writes them, a
 * the sum of their covers (rws_cover) and m = sigmoid(20 a - 10), the logits are y + m front - (1 - m) back, clipped to
 * [-88, 16]. Where they become the logits of an observed rws_bernoulli they are not computed: most of a picture is
 * background, which is scored once per datum. */
rws_var rws__picture(rws_path *path, const rws_var *glimpses, const rws_var *wheres, int n, int rows, int cols,
                     rws_var front, rws_var back, int out_rows, int out_cols);

/* The ops of pictures, NULL-terminated; the tests walk them. */
extern const rws_op *const rws_picture_ops[];

#endif
