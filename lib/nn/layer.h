/* layer.h - functions with parameters, as the public header declares them.
 *
 * What all layers have in common. The file of a layer defines its kind, its data (a struct that begins with an
 * rws_layer), its rws_setup_ function and the function that applies it; the kind is listed in table.c.
 */
#ifndef RWS_NN_LAYER_H
#define RWS_NN_LAYER_H

#include "engine/setup.h"

typedef struct {
    const char *name; /* the public function that applies such a layer is rws_NAME */
    const char *help; /* one line for `rws list` */
} rws_layer_kind;

struct rws_layer {
    const rws_layer_kind *kind;
    const char           *name; /* as in the names of its parameters */
    int                   n_in, n_out;
};

/* A layer of `bytes` bytes, which begin with an rws_layer; the rest is zero. Lives as long as the model. */
void *rws__layer_new(rws_setup *s, const rws_layer_kind *kind, size_t bytes, const char *name, int n_in, int n_out);

/* The layer's own data, if it is of this kind; else stops with a message. */
const void *rws__layer_expect(rws_path *path, const rws_layer *l, const rws_layer_kind *kind);

/* Every kind of layer and every op of this folder, NULL-terminated; the tests walk both. */
extern const rws_layer_kind *const rws_layer_kinds[];
extern const rws_op *const         rws_nn_ops[];

#endif
