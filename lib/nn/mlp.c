/* mlp.c - linear layers with a function between them; the last one stays linear. */
#include "nn/linear.h"

#include "base/error.h"

#include <stdio.h>

typedef struct {
    rws_layer          layer;
    rws_function       hidden; /* after every linear layer but the last */
    int                n_linear;
    rws_linear_layer **linear;
} mlp;

const rws_layer_kind rws_mlp_kind = {"mlp", "linear layers with a function in between"};

rws_layer *rws_setup_mlp(rws_setup *s, rws_group group, const char *name, rws_function hidden, rws_init init,
                         const int *sizes, int n_sizes)
{
    if (!sizes) n_sizes = 0;
    if (n_sizes < 2 && s->status == RWS_OK)
        s->status = rws_fail(&s->error, RWS_BAD_INPUT, "The mlp \"%s\" is declared with %d sizes; it takes at least 2.",
                             name, n_sizes);
    if ((unsigned)hidden > RWS_LOG && s->status == RWS_OK)
        s->status =
            rws_fail(&s->error, RWS_BAD_INPUT,
                     "The mlp \"%s\" is declared with function %d, which a layer cannot have.", name, (int)hidden);
    mlp *l = rws__layer_new(s, &rws_mlp_kind, sizeof *l, name, 0, 0);
    if (n_sizes < 2) return &l->layer;
    l->layer.n_in = sizes[0];
    l->layer.n_out = sizes[n_sizes - 1];
    l->hidden = hidden;
    l->n_linear = n_sizes - 1;
    l->linear = rws_setup_alloc(s, (size_t)l->n_linear * sizeof *l->linear);
    for (int i = 0; i < l->n_linear && l->linear; i++) {
        char part[140];
        snprintf(part, sizeof part, "%s.%d", name, 2 * i);
        l->linear[i] = rws__linear_new(s, group, part, "weight", "bias", sizes[i], sizes[i + 1], init, sizes[i]);
    }
    return &l->layer;
}

rws_param *rws__mlp_bias(const rws_layer *l)
{
    const mlp *own = (const mlp *)l;
    return own->n_linear > 0 && own->linear ? own->linear[own->n_linear - 1]->b : NULL;
}

rws_var rws_mlp_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const mlp *own = rws__layer_expect(path, l, &rws_mlp_kind);
    for (int i = 0; i < own->n_linear; i++) {
        v = rws__dense(path, own->linear[i], i + 1 < own->n_linear ? own->hidden : RWS_LINEAR, parts, n);
        parts = &v;
        n = 1;
    }
    return rws__returns(path, v);
}

rws_var rws_mlp(rws_path *path, const rws_layer *l, rws_var x)
{
    return rws_mlp_parts(path, l, &x, 1);
}
