/* all_ops.h - the ops of all folders, for tests that walk them or find one by its name. */
#ifndef RWS_TESTS_ALL_OPS_H
#define RWS_TESTS_ALL_OPS_H

#include "support.h"

#include "tensor/op.h"

#define MAX_OPS 200

extern const rws_op *ops[MAX_OPS];
extern int           n_ops;

void          gather_ops(void);           /* once, before the others are used */
const rws_op *op_named(const char *name); /* the test fails if there is none */

#endif
