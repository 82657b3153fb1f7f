/* cell.c - the parameters of recurrent cells. */
#include "nn/cell.h"

rws_cell *rws_cell_new(rws_setup *s, rws_group group, const rws_layer_kind *kind, const char *name, int n_in,
                       int n_hidden, int gates, rws_init init)
{
    rws_cell *c = rws_layer_new(s, kind, sizeof *c, name, n_in, n_hidden);
    const int n_out = gates * n_hidden, scale = init == RWS_UNIFORM ? n_hidden : n_in;
    c->from_input = rws_linear_new(s, group, name, "weight_ih", "bias_ih", n_in, n_out, init, scale);
    c->from_state = rws_linear_new(s, group, name, "weight_hh", "bias_hh", n_hidden, n_out, init, n_hidden);
    return c;
}
