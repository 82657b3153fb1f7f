/* cell.c - the parameters of recurrent cells. */
#include "nn/cell.h"

#include <stdio.h>

rws_cell *rws__cell_new(rws_setup *s, rws_group group, const rws_layer_kind *kind, const char *name, const char *suffix,
                        int n_in, int n_hidden, int gates, rws_init init)
{
    char      names[4][40];
    rws_cell *c = rws__layer_new(s, kind, sizeof *c, name, n_in, n_hidden);
    const int n_out = gates * n_hidden, scale = init == RWS_UNIFORM ? n_hidden : n_in;
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s_%s%s", i % 2 ? "bias" : "weight", i / 2 ? "hh" : "ih", suffix);
    c->from_input = rws__linear_new(s, group, name, names[0], names[1], n_in, n_out, init, scale);
    c->from_state = rws__linear_new(s, group, name, names[2], names[3], n_hidden, n_out, init, n_hidden);
    return c;
}
