/* layer.h - functions with parameters, as the public header declares them.
 *
 * A linear layer over several parts is a sum of products, each computed at the rows where its part varies:
 *
 *     W [e; h] + b  =  W_e e  (once per datum)  +  W_h h  (once per particle)  +  b
 */
#ifndef RWS_NN_LAYER_H
#define RWS_NN_LAYER_H

#include "engine/setup.h"

typedef enum { RWS_LAYER_LINEAR, RWS_LAYER_MLP, RWS_LAYER_RNN, RWS_LAYER_GRU, RWS_LAYER_EMBEDDING } rws_layer_kind;

struct rws_layer {
    rws_layer_kind kind;
    const char    *name;
    int            n_in, n_out;
    rws_function   hidden;  /* of an mlp */
    int            n_parts; /* linear layers below */
    rws_layer    **parts;
    rws_param     *w, *b;
};

/* f(W [parts] + b). The parts' lengths must add up to the layer's inputs. */
rws_var rws_dense(rws_path *path, const rws_layer *l, rws_function f, const rws_var *parts, int n);

/* A copy of a layer's name that lives as long as the model. */
const char *rws_layer_name(rws_setup *s, const char *name);

/* Stops with a sentence if l is not of this kind. */
void rws_layer_expect(rws_path *path, const rws_layer *l, rws_layer_kind kind, const char *function);

extern const rws_op rws_op_gru, rws_op_attend, rws_op_place, rws_op_cover, rws_op_picture, rws_op_picture_bits;

/* Every op there is, NULL-terminated; the tests walk it. */
extern const rws_op *const rws_ops[];

#endif
