/* tangent.h - directional derivatives: the rule of an op, and what a rule may do.
 *
 * A direction in parameter space moves some parameters, and with them the values that are computed from these. The rule
 * of an op is about one value y = f(a, b, …) that moves: from the derivatives da, db, … of its inputs along the
 * direction it makes dy, by recording ordinary ops on values that exist already (y, a, b, da, db, …). Reverse mode
 * through what was recorded then gives second derivatives: forward over reverse.
 *
 *     engine: da, db, … -> [rule] -> rws__tangent_record -> engine: dy, one more node on the tape
 *
 * A rule stands beside the forward and backward of its op. It knows nothing of rows and levels; the engine finds the
 * derivatives of the inputs, calls the rule once for each value that moves, and records (engine/tangent.c).
 */
#ifndef RWS_TENSOR_TANGENT_H
#define RWS_TENSOR_TANGENT_H

#include "tensor/op.h"

/* The value y that a rule is about. A value whose id is 0 is absent; a derivative whose id is 0 is zero: its value does
 * not move. At least one of the inputs or the weight moves. */
struct rws_tangent {
    struct rws_engine *engine; /* for the functions that the engine implements */
    const rws_op      *op;
    rws_op_args        args;
    int                dim, n_in;
    rws_var            y, in[RWS_OP_INPUTS], d[RWS_OP_INPUTS]; /* d: the derivatives of the inputs */
    bool               weight_moves;                           /* args.w, and with it args.b */
};

/* What a rule returns where it knows no derivative: the user reads that the op has no second derivative. */
#define RWS_NO_TANGENT ((rws_var){UINT32_MAX})

/* Implemented by engine/tangent.c. */
rws_var rws__tangent_record(rws_tangent *t, const rws_op *op, rws_op_args args, const rws_var *in, int n_in, int dim);
rws_var rws__tangent_saved(rws_tangent *t); /* what forward saved for y (rws_call.saved), as a constant */
rws_var rws__tangent_zeros(rws_tangent *t, int dim);
int     rws__tangent_dim(const rws_tangent *t, rws_var v);

/* a + b, a b and s a. A sum, product or multiple that is zero has no node. */
rws_var rws__tangent_add(rws_tangent *t, rws_var a, rws_var b);
rws_var rws__tangent_mul(rws_tangent *t, rws_var a, rws_var b);
rws_var rws__tangent_scale(rws_tangent *t, rws_var a, float s);

/* n components of a from number `first`; f(a) of an rws_function; and f'(x) dx where y = f(x), of a function up to
 * RWS_LOG. A slice of zero, and a slope where dx is zero, stay zero without a node. */
rws_var rws__tangent_slice(rws_tangent *t, rws_var a, int first, int n);
rws_var rws__tangent_apply(rws_tangent *t, rws_function f, rws_var a);
rws_var rws__tangent_slope(rws_tangent *t, rws_function f, rws_var y, rws_var dx);

/* Rules that several ops have: of a linear op, the same op on the derivatives, without its constant args.t; of an op
 * whose inputs never move, the same op with the derivatives of its weight and bias in their place. */
rws_var rws__tangent_linear(rws_tangent *t);
rws_var rws__tangent_weight(rws_tangent *t);

#endif
