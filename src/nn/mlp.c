/* mlp.c - linear layers with a function between them; the last one stays linear. */
#include "nn/layer.h"

#include <stdio.h>

rws_layer *rws_setup_mlp(rws_setup *s, rws_group group, const char *name, rws_function hidden, rws_init init,
                         const int *sizes, int n_sizes)
{
    rws_layer *l = rws_setup_alloc(s, sizeof *l);
    *l = (rws_layer){.kind = RWS_LAYER_MLP, .name = rws_layer_name(s, name), .hidden = hidden, .n_parts = n_sizes - 1};
    l->n_in = sizes[0];
    l->n_out = sizes[n_sizes - 1];
    l->parts = rws_setup_alloc(s, (size_t)n_sizes * sizeof *l->parts);
    for (int i = 0; i < l->n_parts; i++) {
        char part[140];
        snprintf(part, sizeof part, "%s.%d", name, 2 * i);
        l->parts[i] = rws_setup_linear(s, group, part, sizes[i], sizes[i + 1], init);
    }
    return l;
}

rws_var rws_mlp_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n)
{
    rws_var v;
    if (rws_replayed(path, &v)) return v;
    rws_layer_expect(path, l, RWS_LAYER_MLP, "rws_mlp");
    for (int i = 0; i < l->n_parts; i++) {
        v = rws_dense(path, l->parts[i], i + 1 < l->n_parts ? l->hidden : RWS_LINEAR, parts, n);
        parts = &v;
        n = 1;
    }
    return rws_returns(path, v);
}

rws_var rws_mlp(rws_path *path, const rws_layer *l, rws_var x)
{
    return rws_mlp_parts(path, l, &x, 1);
}
