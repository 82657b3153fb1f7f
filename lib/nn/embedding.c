/* embedding.c - a table of vectors, looked up by index. */
#include "nn/layer.h"

#include <stdio.h>

typedef struct {
    rws_layer  layer; /* n_in: the number of vectors */
    rws_param *table; /* [n_in, n_out] */
} embedding;

const rws_layer_kind rws_embedding_kind = {"embedding", "a table of vectors, looked up by index"};

rws_layer *rws_setup_embedding(rws_setup *s, rws_group group, const char *name, int n_words, int dim)
{
    char       full[140];
    embedding *l = rws__layer_new(s, &rws_embedding_kind, sizeof *l, name, n_words, dim);
    snprintf(full, sizeof full, "%s.weight", l->layer.name);
    l->table = rws__setup_param_scaled(s, group, full, n_words, dim, RWS_UNIFORM, dim);
    return &l->layer;
}

rws_var rws_embedding(rws_path *path, const rws_layer *l, rws_var index)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const embedding *own = rws__layer_expect(path, l, &rws_embedding_kind);
    if (rws_dim(path, index) != 1)
        rws__path_mistake(path, "rws_embedding takes one index, not %d.", rws_dim(path, index));
    return rws__returns(path,
                        rws__record(path, &rws_op_embed, (rws_op_args){.w = own->table, .k = 1}, &index, 1, l->n_out));
}
