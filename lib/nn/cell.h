/* cell.h - what recurrent cells have in common: a linear map from the input and one from the state. */
#ifndef RWS_NN_CELL_H
#define RWS_NN_CELL_H

#include "nn/linear.h"

typedef struct {
    rws_layer         layer;                   /* n_out: the length of the state */
    rws_linear_layer *from_input, *from_state; /* both have gates x n_out outputs */
} rws_cell;

/* A cell with PyTorch's names for its parameters: NAME.weight_ih, NAME.bias_ih, NAME.weight_hh, NAME.bias_hh, each with
 * a suffix. With RWS_UNIFORM the start of both maps depends on the length of the state, as in PyTorch. */
rws_cell *rws__cell_new(rws_setup *s, rws_group group, const rws_layer_kind *kind, const char *name, const char *suffix,
                        int n_in, int n_hidden, int gates, rws_init init);

extern const rws_layer_kind rws_rnn_kind, rws_gru_kind, rws_lstm_kind;

#endif
