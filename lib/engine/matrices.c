/* matrices.c - the public arithmetic of matrices: each function checks its shapes and records one op or a few. A matrix
 * is a vector of rows * cols numbers, row after row. */
#include "engine/engine.h"

/* The side of a square matrix; stops with a message if v is none. */
static int square_side(rws_path *path, rws_var v, const char *function)
{
    const int size = rws_dim(path, v), n = (int)lrint(sqrt((double)size));
    if (n * n != size) rws__path_mistake(path, "%s takes a square matrix, not %d numbers.", function, size);
    return n;
}

rws_var rws_matmul(rws_path *path, rws_var a, rws_var b, int inner)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int n = rws_dim(path, a), m = rws_dim(path, b);
    if (inner < 1 || n % inner || m % inner)
        rws__path_mistake(path,
                          "rws_matmul takes a matrix with %d columns and one with %d rows, not %d and %d numbers.",
                          inner, inner, n, m);
    const int64_t dim = (int64_t)(n / inner) * (m / inner);
    if (dim > INT32_MAX) rws__path_mistake(path, "rws_matmul makes a matrix of too many numbers.");
    return rws__returns(path,
                        rws__record(path, &rws_op_matmul, (rws_op_args){.k = inner}, (rws_var[]){a, b}, 2, (int)dim));
}

rws_var rws_matvec(rws_path *path, rws_var a, rws_var x)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int n = rws_dim(path, a), m = rws_dim(path, x);
    if (n % m) rws__path_mistake(path, "rws_matvec of a matrix of %d numbers and a vector of %d.", n, m);
    return rws__returns(path, rws__record(path, &rws_op_matmul, (rws_op_args){.k = m}, (rws_var[]){a, x}, 2, n / m));
}

rws_var rws_transpose(rws_path *path, rws_var a, int cols)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int n = rws_dim(path, a);
    if (cols < 1 || n % cols)
        rws__path_mistake(path, "rws_transpose takes a matrix with %d columns, not %d numbers.", cols, n);
    return rws__returns(path, rws__record(path, &rws_op_transpose, (rws_op_args){.k = cols}, &a, 1, n));
}

rws_var rws_diagonal(rws_path *path, rws_var a)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    return rws__returns(
        path, rws__record(path, &rws_op_diagonal, (rws_op_args){0}, &a, 1, square_side(path, a, "rws_diagonal")));
}

rws_var rws_add_diagonal(rws_path *path, rws_var a, rws_var d)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int n = square_side(path, a, "rws_add_diagonal"), m = rws_dim(path, d);
    if (m != 1 && m != n)
        rws__path_mistake(path, "rws_add_diagonal adds 1 or %d numbers to a matrix of %d rows, not %d.", n, n, m);
    return rws__returns(
        path, rws__record(path, &rws_op_add_diagonal, (rws_op_args){0}, (rws_var[]){a, d}, 2, rws_dim(path, a)));
}

rws_var rws_cholesky(rws_path *path, rws_var a)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int n = square_side(path, a, "rws_cholesky");
    return rws__returns(path, rws__record(path, &rws_op_cholesky, (rws_op_args){0}, &a, 1, n * n));
}

static rws_var solve(rws_path *path, const char *function, rws_var l, rws_var b, bool transposed)
{
    const int n = square_side(path, l, function), m = rws_dim(path, b);
    if (m % n) rws__path_mistake(path, "%s takes a right side of %d rows, not %d numbers.", function, n, m);
    return rws__record(path, &rws_op_solve, (rws_op_args){.k = transposed}, (rws_var[]){l, b}, 2, m);
}

rws_var rws_triangular_solve(rws_path *path, rws_var l, rws_var b, bool transposed)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    return rws__returns(path, solve(path, "rws_triangular_solve", l, b, transposed));
}

rws_var rws_cholesky_solve(rws_path *path, rws_var l, rws_var b)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const rws_var half = solve(path, "rws_cholesky_solve", l, b, false);
    return rws__returns(path, solve(path, "rws_cholesky_solve", l, half, true));
}

rws_var rws_log_determinant(rws_path *path, rws_var l)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    square_side(path, l, "rws_log_determinant");
    const rws_var logs = rws_apply(path, RWS_LOG, rws_diagonal(path, l));
    return rws__returns(path, rws_affine(path, rws_sum(path, logs), 2, 0));
}
