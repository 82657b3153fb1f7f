/* project.h - one linear map for every item of a value that holds several items, one behind the other.
 *
 *     x = [ item 0 | item 1 | … ]   ->   [ f(W item 0 + b) | f(W item 1 + b) | … ]
 *
 * All items of all rows are one matrix product. W may be some of the rows of a larger parameter, as in PyTorch's
 * attention, where one parameter has the maps of queries, keys and values.
 */
#ifndef RWS_NN_PROJECT_H
#define RWS_NN_PROJECT_H

#include "nn/layer.h"

/* Rows first … first + n_out - 1 of w and n_out numbers of b from first_b on, applied to each item of w->cols numbers
 * of x. Stops with a message that names the layer if a value cannot have as many numbers as come out. */
rws_var rws__project(rws_path *path, const char *layer, const rws_param *w, int first, const rws_param *b, int first_b,
                     int n_out, rws_function f, rws_var x);

/* The items as one value: parts that hold one item or several of `size` numbers, one behind the other. *n_items becomes
 * their number. Stops with a message that names the layer if a part does not hold whole items. n is at least 1. */
rws_var rws__items_join(rws_path *path, const char *layer, const rws_var *parts, int n, int size, int *n_items);

#endif
