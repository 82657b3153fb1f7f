/* table.c - every op of this room. An op that is not listed here does not exist for the tests. */
#include "vision/ops.h"

/* clang-format off */
#define OPS(OP) OP(attend) OP(place) OP(cover) OP(picture) OP(picture_bits)
/* clang-format on */
RWS_OP_TABLE(rws_vision_ops, OPS);
