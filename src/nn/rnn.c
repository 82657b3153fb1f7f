/* rnn.c - h' = tanh(W_x x + b_x + W_h h + b_h). */
#include "nn/layer.h"

rws_var rws_rnn(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h)
{
    rws_var v;
    if (rws_replayed(path, &v)) return v;
    rws_layer_expect(path, l, RWS_LAYER_RNN, "rws_rnn");
    const rws_var a = rws_dense(path, l->parts[0], RWS_LINEAR, parts, n);
    const rws_var in[] = {h, a};
    if (rws_dim(path, h) != l->n_out)
        rws_give_up(path, "Layer \"%s\" has a state of %d numbers, not %d.", l->name, l->n_out, rws_dim(path, h));
    return rws_returns(path, rws_record(path, &rws_op_dense,
                                        (rws_op_args){.w = l->parts[1]->w, .b = l->parts[1]->b, .k = RWS_TANH}, in, 2,
                                        l->n_out));
}
