/* table.c - every op of this folder. An op that is not listed here does not exist for the tests. */
#include "tensor/op.h"

/* clang-format off */
#define OPS(OP)                                                                              \
    OP(affine) OP(detach) OP(add) OP(sub) OP(mul) OP(div) OP(apply) OP(apply_tangent)        \
    OP(clip) OP(greater) OP(argmax) OP(onehot) OP(concat) OP(slice) OP(sum) OP(dot) \
    OP(exp_dot) OP(pick)                                                                     \
    OP(map) OP(map_tangent) OP(min) OP(max) OP(where) OP(power) OP(cumulative) OP(total) OP(row)       \
    OP(log_softmax) OP(log_softmax_pick) OP(log_softmax_tangent) OP(log_sum_exp)             \
    OP(softmax_dot)                                                                          \
    OP(dense) OP(bits) OP(embed)                                                             \
    OP(matmul) OP(transpose) OP(diagonal) OP(add_diagonal) OP(triangle) OP(cholesky) OP(solve)
/* clang-format on */
RWS_OP_TABLE(rws_tensor_ops, OPS);
