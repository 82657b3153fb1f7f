/* set_encoder.c - an mlp for each item of a set, then the sum, mean or maximum over the items: the same for every order
 * of the items (Zaheer et al. 2017, "Deep sets"). The parameters have the names of an mlp. */
#include "nn/pool.h"
#include "nn/project.h"

#include <stdio.h>

typedef struct {
    rws_layer    layer; /* n_in: the numbers of an item */
    rws_function hidden;
    rws_pooling  how;
    int          n_linear;
    struct map {
        rws_param *w, *b;
    } * linear;
} set_encoder;

const rws_layer_kind rws_set_encoder_kind = {"set_encoder", "an mlp for each item, then their sum, mean or maximum"};

rws_layer *rws_setup_set_encoder(rws_setup *s, rws_group group, const char *name, rws_function hidden, rws_pooling how,
                                 const int *sizes, int n_sizes)
{
    set_encoder *l = rws__layer_new(s, &rws_set_encoder_kind, sizeof *l, name, 0, 0);
    const char  *wrong = n_sizes < 2 || !sizes               ? "fewer than 2 sizes"
                         : (unsigned)hidden > RWS_LOG        ? "a function that is none"
                         : (unsigned)how > (unsigned)RWS_MAX ? "a pooling that is none"
                                                             : NULL;
    if (wrong && s->status == RWS_OK)
        s->status =
            rws_fail(&s->error, RWS_BAD_INPUT, "The set encoder \"%s\" is declared with %s.", name ? name : "", wrong);
    if (wrong) return &l->layer;
    l->layer.n_in = sizes[0];
    l->layer.n_out = sizes[n_sizes - 1];
    l->hidden = hidden;
    l->how = how;
    l->n_linear = n_sizes - 1;
    l->linear = rws_setup_alloc(s, (size_t)l->n_linear * sizeof *l->linear);
    for (int i = 0; i < l->n_linear && l->linear; i++) {
        char full[160];
        snprintf(full, sizeof full, "%s.%d.weight", l->layer.name, 2 * i);
        l->linear[i].w = rws_setup_param(s, group, full, sizes[i + 1], sizes[i], RWS_UNIFORM);
        l->linear[i].w->transposed = (size_t)sizes[i] * (size_t)sizes[i + 1] <= RWS_MAX_TRANSPOSED;
        snprintf(full, sizeof full, "%s.%d.bias", l->layer.name, 2 * i);
        l->linear[i].b = rws__setup_param_scaled(s, group, full, 1, sizes[i + 1], RWS_UNIFORM, sizes[i]);
    }
    return &l->layer;
}

rws_var rws_set_encoder(rws_path *path, const rws_layer *l, const rws_var *items, int n)
{
    rws_var v;
    int     n_items;
    if (rws__replayed(path, &v)) return v;
    const set_encoder *own = rws__layer_expect(path, l, &rws_set_encoder_kind);
    if (n < 0) rws__path_mistake(path, "layer \"%s\" was given %d items.", l->name, n);
    if (n == 0) return rws__returns(path, rws_zeros(path, l->n_out));
    v = rws__items_join(path, l->name, items, n, l->n_in, &n_items);
    for (int i = 0; i < own->n_linear; i++)
        v = rws__project(path, l->name, own->linear[i].w, 0, own->linear[i].b, 0, own->linear[i].w->rows,
                         i + 1 < own->n_linear ? own->hidden : RWS_LINEAR, v);
    return rws__returns(path, rws_pool(path, own->how, v, n_items, l->n_out, n_items, 1));
}
