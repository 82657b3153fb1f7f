/* bidirectional.c - two recurrent cells that read a series of items, one from the front and one from the back.
 *
 *     state t   =  [ forward state after items 0 … t ; backward state after items n-1 … t ]
 *     summary   =  [ forward state after the last item ; backward state after the first item ]
 *
 * The two cells are independent of each other, so that step i of both, and of all paths, meet in the same calls.
 */
#include "nn/cell.h"

typedef struct {
    rws_layer        layer; /* n_out: the length of both states */
    rws_recurrent    kind;
    const rws_layer *cell[2]; /* forward and backward */
} bidirectional;

const rws_layer_kind rws_bidirectional_kind = {"bidirectional",
                                               "two recurrent cells that read a series both ways, like nn.GRU"};

static const struct {
    const rws_layer_kind *kind;
    int                   gates;
} cells[] = {[RWS_RNN] = {&rws_rnn_kind, 1}, [RWS_GRU] = {&rws_gru_kind, 3}, [RWS_LSTM] = {&rws_lstm_kind, 4}};

rws_layer *rws_setup_bidirectional(rws_setup *s, rws_group group, const char *name, rws_recurrent cell, int n_in,
                                   int n_hidden)
{
    bidirectional *l = rws__layer_new(s, &rws_bidirectional_kind, sizeof *l, name, n_in, 2 * n_hidden);
    if ((unsigned)cell > RWS_LSTM) {
        if (s->status == RWS_OK)
            s->status =
                rws_fail(&s->error, RWS_BAD_INPUT, "The layer \"%s\" is declared with cell %d, which does not exist.",
                         name ? name : "", (int)cell);
        return &l->layer;
    }
    l->kind = cell;
    for (int back = 0; back < 2; back++)
        l->cell[back] = &rws__cell_new(s, group, cells[cell].kind, name, back ? "_l0_reverse" : "_l0", n_in, n_hidden,
                                       cells[cell].gates, RWS_UNIFORM)
                             ->layer;
    return &l->layer;
}

/* The state after one more item; c is the memory of an lstm. */
static rws_var advance(rws_path *path, const bidirectional *l, int back, rws_var item, rws_var h, rws_var *c)
{
    switch (l->kind) {
    case RWS_RNN: return rws_rnn(path, l->cell[back], &item, 1, h);
    case RWS_GRU: return rws_gru(path, l->cell[back], &item, 1, h);
    default: return rws_lstm(path, l->cell[back], &item, 1, h, c);
    }
}

rws_var rws_bidirectional(rws_path *path, const rws_layer *l, const rws_var *items, int n, rws_var *states)
{
    const bidirectional *own = rws__layer_expect(path, l, &rws_bidirectional_kind);
    if (n < 0 || (n > 0 && !items)) rws__path_mistake(path, "layer \"%s\" was given %d items.", l->name, n);
    rws_var  start = rws_zeros(path, l->n_out / 2), c[2] = {start, start}, h[2] = {start, start};
    rws_var *forward = states ? rws_alloc(path, (size_t)(n + 1) * sizeof *forward) : NULL;
    for (int t = 0; t < n; t++) {
        h[0] = advance(path, own, 0, items[t], h[0], &c[0]);
        if (states) forward[t] = h[0];
    }
    for (int t = n; t-- > 0;) {
        h[1] = advance(path, own, 1, items[t], h[1], &c[1]);
        if (states) states[t] = rws_concat(path, (rws_var[]){forward[t], h[1]}, 2);
    }
    return rws_concat(path, h, 2);
}
