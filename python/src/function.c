/* function.c - the functions on values that the module has: rws.exp, rws.concat, rws.matmul and so on. */
#include "rwspy.h"

#include <string.h>

#define FUNCTION(name, f, doc)                                        \
    static PyObject *function_##name(PyObject *self, PyObject *value) \
    {                                                                 \
        (void)self;                                                   \
        return rwspy_apply(value, f);                                 \
    }
#define EACH_FUNCTION(X)                                                               \
    X(tanh, RWS_TANH, "tanh, component by component.")                                 \
    X(relu, RWS_RELU, "max(0, v), component by component.")                            \
    X(elu, RWS_ELU, "v where v > 0, else exp(v) - 1.")                                 \
    X(sigmoid, RWS_SIGMOID, "1 / (1 + exp(-v)).")                                      \
    X(softplus, RWS_SOFTPLUS, "log(1 + exp(v)).")                                      \
    X(exp, RWS_EXP, "exp(v), component by component.")                                 \
    X(log, RWS_LOG, "log(v), component by component.")                                 \
    X(sqrt, RWS_SQRT, "The square root, component by component.")                      \
    X(square, RWS_SQUARE, "v * v, component by component.")                            \
    X(sin, RWS_SIN, "sin(v), component by component.")                                 \
    X(cos, RWS_COS, "cos(v), component by component.")                                 \
    X(abs, RWS_ABS, "The absolute value, component by component; abs(v) is the same.") \
    X(log_sigmoid, RWS_LOG_SIGMOID, "log(1 / (1 + exp(-v))), accurate for large |v|.") \
    X(log1p, RWS_LOG1P, "log(1 + v), accurate near 0.")                                \
    X(expm1, RWS_EXPM1, "exp(v) - 1, accurate near 0.")                                \
    X(lgamma, RWS_LGAMMA, "The logarithm of the gamma function.")                      \
    X(digamma, RWS_DIGAMMA, "The derivative of lgamma.")                               \
    X(log1mexp, RWS_LOG1MEXP, "log(1 - exp(-v)) of v above 0, accurate for small and large v.")
EACH_FUNCTION(FUNCTION)

#define ONE(name, f, doc)                                             \
    static PyObject *function_##name(PyObject *self, PyObject *value) \
    {                                                                 \
        (void)self;                                                   \
        return rwspy_one(value, (void *)f);                           \
    }
#define EACH_ONE(X)                                                                               \
    X(sum, rws_sum, "The sum of the components.")                                                 \
    X(cumulative_sum, rws_cumulative_sum, "Component j is the sum of components 0 ... j.")        \
    X(log_softmax, rws_log_softmax, "v - log(sum(exp(v))).")                                      \
    X(log_sum_exp, rws_log_sum_exp, "log(sum(exp(v))), one number.")                              \
    X(argmax, rws_argmax, "The index of the largest component, as a value. It has no gradient.")  \
    X(diagonal, rws_diagonal, "The diagonal of a square matrix.")                                 \
    X(cholesky, rws_cholesky, "The lower triangle l with l l^T = v, a positive definite matrix.") \
    X(log_determinant, rws_log_determinant, "log det(l l^T) of a Cholesky factor l.")             \
    X(detach, rws_detach, "The same value as a constant: gradients stop here.")
EACH_ONE(ONE)

bool rwspy_expect(const char *name, Py_ssize_t n, Py_ssize_t least, Py_ssize_t most)
{
    if (n >= least && n <= most) return true;
    if (least == most) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd.", name, least, n);
    else PyErr_Format(PyExc_TypeError, "%s takes %zd to %zd arguments, not %zd.", name, least, most, n);
    return false;
}

#define TWO(name, f, doc)                                                                    \
    static PyObject *function_##name(PyObject *self, PyObject *const *args, Py_ssize_t n)    \
    {                                                                                        \
        (void)self;                                                                          \
        return rwspy_expect(#name, n, 2, 2) ? rwspy_two(args[0], args[1], (void *)f) : NULL; \
    }
#define EACH_TWO(X)                                                                                           \
    X(dot, rws_dot, "The sum of a * b, which have the same length.")                                          \
    X(minimum, rws_min, "The smaller number, component by component.")                                        \
    X(maximum, rws_max, "The larger number, component by component.")                                         \
    X(power, rws_power, "a to the power of b.")                                                               \
    X(matvec, rws_matvec, "The product of a matrix a, row after row, and a vector b.")                        \
    X(add_diagonal, rws_add_diagonal,                                                                         \
      "A square matrix a with b on its diagonal added: a number for each row, or one.")                       \
    X(cholesky_solve, rws_cholesky_solve, "(a a^T)^-1 b for a Cholesky factor a; b has one or more columns.") \
    X(pick, rws_pick, "The component of a whose number is the value b; a[b] is the same.")
EACH_TWO(TWO)

static PyObject *many(const char *name, PyObject *const *args, Py_ssize_t n, void *f)
{
    py_path  *h = rwspy_running(name);
    request   c = {.kind = CALL_MANY, .f = f};
    rws_var  *parts;
    PyObject *list = n == 1 ? Py_NewRef(args[0]) : NULL;
    if (!h) {
        Py_XDECREF(list);
        return NULL;
    }
    if (!list) {
        if (!(list = PyTuple_New(n))) return NULL;
        for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(list, i, Py_NewRef(args[i]));
    }
    const bool good = rwspy_vars(h, list, &parts, &c.n);
    Py_DECREF(list);
    if (!good) return NULL;
    c.parts = parts;
    PyObject *r = rwspy_call_value(h, &c);
    PyMem_Free(parts);
    return r;
}

static PyObject *function_concat(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return many("concat", args, n, (void *)rws_concat);
}

static PyObject *function_sum_many(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return many("sum_many", args, n, (void *)rws_sum_many);
}

static PyObject *function_onehot(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    py_path *h = rwspy_running("onehot");
    request  c = {.kind = CALL_ONEHOT};
    if (!h || !rwspy_expect("onehot", n, 2, 2) || !rwspy_var(h, args[0], &c.v[0]) || !rwspy_int(args[1], &c.i[0]))
        return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_row(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    py_path *h = rwspy_running("row");
    request  c = {.kind = CALL_ROW};
    if (!h || !rwspy_expect("row", n, 2, 3)) return NULL;
    if (n == 2 && Py_IS_TYPE(args[0], &rwspy_Param)) c.i[0] = ((param_object *)args[0])->cols;
    else if (n == 2)
        return PyErr_Format(PyExc_TypeError,
                            "row(v, index, n) needs the number of columns n, unless v is a parameter.");
    else if (!rwspy_int(args[2], &c.i[0])) return NULL;
    if (!rwspy_var(h, args[0], &c.v[0]) || !rwspy_var(h, args[1], &c.v[1])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_clip(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    py_path *h = rwspy_running("clip");
    request  c = {.kind = CALL_CLIP};
    if (!h || !rwspy_expect("clip", n, 3, 3) || !rwspy_var(h, args[0], &c.v[0])) return NULL;
    for (int k = 0; k < 2; k++) {
        c.x[k] = (float)PyFloat_AsDouble(args[1 + k]);
        if (PyErr_Occurred()) return NULL;
    }
    return rwspy_call_value(h, &c);
}

static PyObject *three(const char *name, PyObject *const *args, Py_ssize_t n, void *f)
{
    py_path *h = rwspy_running(name);
    request  c = {.kind = CALL_THREE, .f = f};
    if (!h || !rwspy_expect(name, n, 3, 3)) return NULL;
    for (int k = 0; k < 3; k++)
        if (!rwspy_var(h, args[k], &c.v[k])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_normal_density(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return three("normal_density", args, n, (void *)rws_normal_density);
}

static PyObject *function_where(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return three("where", args, n, (void *)rws_where);
}

static PyObject *function_concrete_density(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return three("concrete_density", args, n, (void *)rws_concrete_density);
}

static PyObject *function_relaxed_density(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return three("relaxed_density", args, n, (void *)rws_relaxed_density);
}

static PyObject *function_matmul(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"a", "b", "inner", NULL};
    PyObject    *a, *b, *given = Py_None;
    int          rows, cols, inner;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|O:matmul", names, &a, &b, &given)) return NULL;
    if (given != Py_None) {
        if (!rwspy_int(given, &inner)) return NULL;
    } else if (rwspy_shape_of(a, &rows, &cols)) inner = cols;
    else if (rwspy_shape_of(b, &rows, &cols)) inner = rows;
    else
        return PyErr_Format(PyExc_TypeError,
                            "matmul(a, b, inner) needs the number of columns of a, which is that of the rows of b, "
                            "unless one of them is a parameter or an array of two dimensions.");
    return rwspy_matmul(a, b, inner);
}

static PyObject *function_transpose(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"a", "cols", NULL};
    PyObject    *a, *given = Py_None;
    int          rows;
    request      c = {.kind = CALL_TRANSPOSE};
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:transpose", names, &a, &given)) return NULL;
    if (given != Py_None ? !rwspy_int(given, &c.i[0]) : !rwspy_shape_of(a, &rows, &c.i[0]))
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_TypeError, "transpose(a, cols) needs the number of columns, unless "
                                                   "a is a parameter or an array of two dimensions.");
    py_path *h = rwspy_running("transpose");
    if (!h || !rwspy_var(h, a, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_triangular_solve(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"l", "b", "transposed", NULL};
    PyObject    *l, *b;
    request      c = {.kind = CALL_TRIANGULAR};
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|p:triangular_solve", names, &l, &b, &c.i[0])) return NULL;
    py_path *h = rwspy_running("triangular_solve");
    if (!h || !rwspy_var(h, l, &c.v[0]) || !rwspy_var(h, b, &c.v[1])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_dot_attention(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    py_path *h = rwspy_running("dot_attention");
    request  c = {.kind = CALL_DOT_ATTENTION};
    rws_var *keys = NULL, *values = NULL, *both = NULL;
    int      n_values = 0;
    if (!h || !rwspy_expect("dot_attention", n, 3, 3) || !rwspy_var(h, args[0], &c.v[0])) return NULL;
    bool good = rwspy_vars(h, args[1], &keys, &c.i[0]) && rwspy_vars(h, args[2], &values, &n_values);
    if (good && c.i[0] != n_values) {
        PyErr_Format(PyExc_ValueError, "dot_attention takes as many keys as values, not %d and %d.", c.i[0], n_values);
        good = false;
    }
    if (good && !(both = PyMem_Malloc((2 * (size_t)n_values + 1) * sizeof *both))) PyErr_NoMemory(), good = false;
    if (good) {
        memcpy(both, keys, (size_t)n_values * sizeof *both);
        memcpy(both + n_values, values, (size_t)n_values * sizeof *both);
        c.parts = both;
        c.n = 2 * n_values;
    }
    PyObject *r = good ? rwspy_call_value(h, &c) : NULL;
    PyMem_Free(keys);
    PyMem_Free(values);
    PyMem_Free(both);
    return r;
}

bool rwspy_pooling(const char *name, int *out)
{
    static const char *const names[] = {"sum", "mean", "max"};
    for (*out = 0; *out < 3; ++*out)
        if (strcmp(names[*out], name) == 0) return true;
    PyErr_Format(PyExc_ValueError, "Numbers are pooled by \"sum\", \"mean\" or \"max\", not by \"%s\".", name);
    return false;
}

static PyObject *function_pool2d(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"pictures", "channels", "rows", "size", "how", NULL};
    PyObject    *pictures;
    const char  *how = "max";
    request      c = {.kind = CALL_POOL};
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Oiii|s:pool2d", names, &pictures, &c.i[0], &c.i[1], &c.i[2],
                                     &how) ||
        !rwspy_pooling(how, &c.i[3]))
        return NULL;
    py_path *h = rwspy_running("pool2d");
    if (!h || !rwspy_var(h, pictures, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

/* attend(image, rows, cols, where, out_rows, out_cols), place likewise; cover(rows, cols, where, out_rows, out_cols). */
static PyObject *window(const char *name, PyObject *const *args, Py_ssize_t n, call_kind kind)
{
    py_path  *h = rwspy_running(name);
    request   c = {.kind = kind};
    const int image = kind != CALL_COVER;
    if (!h || !rwspy_expect(name, n, 5 + image, 5 + image)) return NULL;
    if (image && !rwspy_var(h, args[0], &c.v[0])) return NULL;
    if (!rwspy_int(args[image], &c.i[0]) || !rwspy_int(args[image + 1], &c.i[1]) ||
        !rwspy_var(h, args[image + 2], &c.v[image]) || !rwspy_int(args[image + 3], &c.i[2]) ||
        !rwspy_int(args[image + 4], &c.i[3]))
        return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_attend(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return window("attend", args, n, CALL_ATTEND);
}

static PyObject *function_place(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return window("place", args, n, CALL_PLACE);
}

static PyObject *function_cover(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return window("cover", args, n, CALL_COVER);
}

#define FAST(name) (PyCFunction)(void (*)(void)) function_##name, METH_FASTCALL
#define KEYWORDS(name) (PyCFunction)(void (*)(void)) function_##name, METH_VARARGS | METH_KEYWORDS
#define METHOD_O(name, f, doc) {#name, function_##name, METH_O, #name "(v)\n\n" doc},
#define METHOD_TWO(name, f, doc) {#name, FAST(name), #name "(a, b)\n\n" doc},

PyMethodDef rwspy_functions[] = {
    EACH_FUNCTION(METHOD_O) EACH_ONE(METHOD_O)
        EACH_TWO(METHOD_TWO){"concat", FAST(concat), "concat(parts)\n\nThe parts, one behind the other, as one value."},
    {"sum_many", FAST(sum_many), "sum_many(parts)\n\nThe sum of many values, component by component."},
    {"onehot", FAST(onehot),
     "onehot(index, n)\n\nA vector of n zeros with a one; costs a look-up where it enters a layer."},
    {"row", FAST(row),
     "row(matrix, index, n=None)\n\nRow number `index` of a parameter, or of a value with n columns."},
    {"clip", FAST(clip), "clip(v, low, high)\n\nv within low ... high; no gradient outside."},
    {"where", FAST(where),
     "where(mask, a, b)\n\na where mask is above 0, else b. The other side has no part in value or gradient, even "
     "where it is "
     "infinite."},
    {"normal_density", FAST(normal_density),
     "normal_density(x, mean, sd)\n\nThe log-density of x, outside of any site."},
    {"concrete_density", FAST(concrete_density),
     "concrete_density(log_s, log_pi, temperature)\n\nThe log-density of the Concrete distribution."},
    {"relaxed_density", FAST(relaxed_density),
     "relaxed_density(log_s, log_pi, temperature)\n\nThe log-density of the relaxed choice under the relaxation of the "
     "method."},
    {"matmul", KEYWORDS(matmul),
     "matmul(a, b, inner=None)\n\nThe product of two matrices, row after row. `inner` is the number of columns of a "
     "and of rows\n"
     "of b; it may be left out where one of them is a parameter or an array of two dimensions."},
    {"transpose", KEYWORDS(transpose),
     "transpose(a, cols=None)\n\nThe transpose of a matrix with so many columns, which a parameter and an array of two "
     "dimensions know."},
    {"triangular_solve", KEYWORDS(triangular_solve),
     "triangular_solve(l, b, transposed=False)\n\nl^-1 b for a lower triangle l, or (l^T)^-1 b; b has one or more "
     "columns."},
    {"dot_attention", FAST(dot_attention),
     "dot_attention(query, keys, values)\n\nThe mean of the values, weighted by softmax(query . key / sqrt(dim)); keys "
     "and values are lists."},
    {"pool2d", KEYWORDS(pool2d),
     "pool2d(pictures, channels, rows, size, how=\"max\")\n\nOne number of each window of size x size numbers: their "
     "\"max\",\n"
     "\"mean\" or \"sum\"."},
    {"attend", FAST(attend),
     "attend(image, rows, cols, where, out_rows, out_cols)\n\nReads a window of a picture of rows x cols numbers as "
     "out_rows x out_cols of them. `where` is four numbers, (scale x, scale y,\n"
     "shift x, shift y): half the sides of the window and its middle, in a picture whose sides are at -1 and 1."},
    {"place", FAST(place),
     "place(glimpse, rows, cols, where, out_rows, out_cols)\n\nWrites a glimpse of rows x cols numbers into a window "
     "of an empty picture of out_rows x out_cols; `where` as for attend: (scale x,\n"
     "scale y, shift x, shift y)."},
    {"cover", FAST(cover),
     "cover(rows, cols, where, out_rows, out_cols)\n\nThe same as place for a glimpse of ones: what a window covers; "
     "`where` is (scale x, scale y, shift x, shift y)."},
    {0},
};
