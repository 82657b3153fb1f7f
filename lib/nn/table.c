/* table.c - every kind of layer and every op of this folder. What is not listed here does not exist for the tests. */
#include "nn/layer.h"

/* clang-format off */
#define KINDS(KIND)                                                       \
    KIND(linear) KIND(mlp) KIND(rnn) KIND(gru) KIND(lstm) KIND(embedding) \
    KIND(bidirectional) KIND(attention) KIND(dot_attention) KIND(set_encoder)   \
    KIND(layer_norm) KIND(residual_mlp) KIND(conv2d) KIND(conv_transpose2d) KIND(pool2d)
#define OPS(OP)                                                            \
    OP(gru) OP(lstm) OP(project) OP(attention_scores) OP(attention_softmax) \
    OP(attention_softmax_tangent) OP(attention_mix) OP(pool) OP(pool_mask)  \
    OP(normalise) OP(conv2d) OP(conv_transpose2d) OP(attend) OP(place) OP(cover)

#define DECLARE(name) extern const rws_layer_kind rws_##name##_kind;
#define POINTER(name) &rws_##name##_kind,
/* clang-format on */

KINDS(DECLARE)
const rws_layer_kind *const rws_layer_kinds[] = {KINDS(POINTER) NULL};

RWS_OP_TABLE(rws_nn_ops, OPS);
