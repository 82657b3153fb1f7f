/* layer_norm.h - layer norm as a part of other layers. */
#ifndef RWS_NN_LAYER_NORM_H
#define RWS_NN_LAYER_NORM_H

#include "nn/layer.h"

typedef struct {
    rws_layer  layer;
    rws_param *scale, *shift; /* NAME.weight and NAME.bias, which begin as ones and zeros */
} rws_norm_layer;

rws_norm_layer *rws__norm_new(rws_setup *s, rws_group group, const char *name, int n);

/* (x - mean) / sd * scale + shift. Stops with a message if x has another length. */
rws_var rws__norm(rws_path *path, const rws_norm_layer *l, rws_var x);

#endif
