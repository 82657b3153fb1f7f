/* ops.h - the ops on pictures. */
#ifndef RWS_VISION_OPS_H
#define RWS_VISION_OPS_H

#include "tensor/op.h"

/* Every op of this room, NULL-terminated; the tests walk it. */
extern const rws_op *const rws_vision_ops[];

#endif
