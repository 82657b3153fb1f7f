/* linear.h - the linear layer as a part of other layers.
 *
 * Over several parts it is a sum of products, each computed at the rows where its part varies:
 *
 *     W [e; h] + b  =  W_e e  (once per datum)  +  W_h h  (once per particle)  +  b
 */
#ifndef RWS_NN_LINEAR_H
#define RWS_NN_LINEAR_H

#include "nn/layer.h"

typedef struct {
    rws_layer  layer;
    rws_param *w, *b; /* [n_out, n_in] and [1, n_out] */
} rws_linear_layer;

/* A linear layer whose parameters are NAME.weight and NAME.bias, under the given names for these two. A uniform start
 * scales with `scale` inputs. */
rws_linear_layer *rws__linear_new(rws_setup *s, rws_group group, const char *name, const char *weight, const char *bias,
                                  int n_in, int n_out, rws_init init, int scale);

/* The bias of an mlp's last linear layer; NULL if its declaration failed. */
extern const rws_layer_kind rws_mlp_kind;
rws_param                  *rws__mlp_bias(const rws_layer *l);

/* f(W [parts] + b). The lengths of the parts must add up to the layer's inputs. */
rws_var rws__dense(rws_path *path, const rws_linear_layer *l, rws_function f, const rws_var *parts, int n);

#endif
