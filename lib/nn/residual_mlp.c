/* residual_mlp.c - a linear map, blocks that each add to their input, and a linear map:
 *
 *     h = W_in x + b_in,    h = h + W_2 f(W_1 norm(h) + b_1) + b_2  for each block,    y = W_out h + b_out
 *
 * The parameters are those of a module with the members
 *
 *     in      nn.Linear(n_in, width)
 *     blocks  nn.ModuleList of nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), f, nn.Linear(width, width))
 *     out     nn.Linear(width, n_out)
 */
#include "nn/layer_norm.h"
#include "nn/linear.h"

#include <stdio.h>

typedef struct {
    rws_norm_layer   *norm;
    rws_linear_layer *first, *second;
} block;

typedef struct {
    rws_layer         layer;
    rws_function      hidden;
    int               n_blocks;
    block            *blocks;
    rws_linear_layer *in, *out;
} residual_mlp;

const rws_layer_kind rws_residual_mlp_kind = {"residual_mlp",
                                              "an mlp whose blocks, with layer norm, add to their input"};

static rws_linear_layer *linear(rws_setup *s, rws_group group, const char *name, int n_in, int n_out)
{
    return rws__linear_new(s, group, name, "weight", "bias", n_in, n_out, RWS_UNIFORM, n_in);
}

rws_layer *rws_setup_residual_mlp(rws_setup *s, rws_group group, const char *name, rws_function hidden, int n_in,
                                  int width, int n_blocks, int n_out)
{
    char          part[160];
    residual_mlp *l = rws__layer_new(s, &rws_residual_mlp_kind, sizeof *l, name, n_in, n_out);
    const char   *wrong = n_blocks < 1 ? "no blocks" : (unsigned)hidden > RWS_LOG ? "a function that is none" : NULL;
    if (wrong && s->status == RWS_OK)
        s->status =
            rws_fail(&s->error, RWS_BAD_INPUT, "The residual mlp \"%s\" is declared with %s.", l->layer.name, wrong);
    if (wrong) return &l->layer;
    l->hidden = hidden;
    l->n_blocks = n_blocks;
    l->blocks = rws_setup_alloc(s, (size_t)n_blocks * sizeof *l->blocks);
    snprintf(part, sizeof part, "%s.in", l->layer.name);
    l->in = linear(s, group, part, n_in, width);
    for (int i = 0; i < n_blocks && l->blocks; i++) {
        snprintf(part, sizeof part, "%s.blocks.%d.0", l->layer.name, i);
        l->blocks[i].norm = rws__norm_new(s, group, part, width);
        snprintf(part, sizeof part, "%s.blocks.%d.1", l->layer.name, i);
        l->blocks[i].first = linear(s, group, part, width, width);
        snprintf(part, sizeof part, "%s.blocks.%d.3", l->layer.name, i);
        l->blocks[i].second = linear(s, group, part, width, width);
    }
    snprintf(part, sizeof part, "%s.out", l->layer.name);
    l->out = linear(s, group, part, width, n_out);
    return &l->layer;
}

rws_var rws_residual_mlp(rws_path *path, const rws_layer *l, const rws_var *parts, int n)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const residual_mlp *own = rws__layer_expect(path, l, &rws_residual_mlp_kind);
    v = rws__dense(path, own->in, RWS_LINEAR, parts, n);
    for (int i = 0; i < own->n_blocks; i++) {
        const block  *b = &own->blocks[i];
        const rws_var normed = rws__norm(path, b->norm, v), inner = rws__dense(path, b->first, own->hidden, &normed, 1);
        v = rws_add(path, v, rws__dense(path, b->second, RWS_LINEAR, &inner, 1));
    }
    return rws__returns(path, rws__dense(path, own->out, RWS_LINEAR, &v, 1));
}
