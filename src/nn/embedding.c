/* embedding.c - a table of vectors, looked up by index. */
#include "nn/layer.h"

#include <stdio.h>

rws_layer *rws_setup_embedding(rws_setup *s, rws_group group, const char *name, int n_words, int dim)
{
    char       full[140];
    rws_layer *l = rws_setup_alloc(s, sizeof *l);
    snprintf(full, sizeof full, "%s.weight", name);
    *l = (rws_layer){.kind = RWS_LAYER_EMBEDDING, .name = rws_layer_name(s, name), .n_in = n_words, .n_out = dim};
    l->w = rws_setup_param_scaled(s, group, full, n_words, dim, RWS_UNIFORM, dim);
    return l;
}

rws_var rws_embedding(rws_path *path, const rws_layer *l, rws_var index)
{
    rws_var v;
    if (rws_replayed(path, &v)) return v;
    rws_layer_expect(path, l, RWS_LAYER_EMBEDDING, "rws_embedding");
    if (rws_dim(path, index) != 1) rws_give_up(path, "rws_embedding takes one index, not %d.", rws_dim(path, index));
    return rws_returns(path, rws_record(path, &rws_op_embed, (rws_op_args){.w = l->w, .k = 1}, &index, 1, l->n_out));
}
