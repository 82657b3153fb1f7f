/* rnn.c - the plain recurrent cell: h' = tanh(W_x x + b_x + W_h h + b_h). */
#include "nn/cell.h"

const rws_layer_kind rws_rnn_kind = {"rnn", "a recurrent cell with tanh, like nn.RNNCell"};

rws_layer *rws_setup_rnn(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden, rws_init init)
{
    return &rws__cell_new(s, group, &rws_rnn_kind, name, "", n_in, n_hidden, 1, init)->layer;
}

rws_var rws_rnn(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const rws_cell         *cell = rws__layer_expect(path, l, &rws_rnn_kind);
    const rws_linear_layer *step = cell->from_state;
    const rws_var           a = rws__dense(path, cell->from_input, RWS_LINEAR, parts, n);
    if (rws_dim(path, h) != l->n_out)
        rws__path_mistake(path, "layer \"%s\" has a state of %d numbers, not %d.", l->name, l->n_out, rws_dim(path, h));
    return rws__returns(path, rws__record(path, &rws_op_dense, (rws_op_args){.w = step->w, .b = step->b, .k = RWS_TANH},
                                          (rws_var[]){h, a}, 2, l->n_out));
}
