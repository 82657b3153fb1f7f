/* value.c - values of programs, parameters and layers as Python objects, and the functions on them. */
#include "rwspy.h"

#include <limits.h>
#include <string.h>

/* ---- numbers */

bool rwspy_int(PyObject *o, int *out)
{
    const long x = PyLong_AsLong(o);
    if (x == -1 && PyErr_Occurred()) return false;
    if (x < INT_MIN || x > INT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "The number does not fit an int.");
        return false;
    }
    *out = (int)x;
    return true;
}

static bool floats_of_buffer(PyObject *o, float **out, Py_ssize_t *n)
{
    Py_buffer b;
    if (PyObject_GetBuffer(o, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
    }
    const bool good = b.format && strcmp(b.format, "f") == 0 && b.itemsize == sizeof(float);
    if (good) {
        *n = b.len / (Py_ssize_t)sizeof(float);
        *out = PyMem_Malloc((size_t)b.len + 1);
        if (*out) memcpy(*out, b.buf, (size_t)b.len);
    }
    PyBuffer_Release(&b);
    if (good && !*out) PyErr_NoMemory();
    return good;
}

static bool floats_of_list(PyObject *o, float **out, Py_ssize_t *n)
{
    PyObject **items = PySequence_Fast_ITEMS(o);
    *n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < *n; i++)
        if (!PyFloat_Check(items[i]) && !PyLong_Check(items[i])) return false;
    *out = PyMem_Malloc((size_t)*n * sizeof(float) + 1);
    if (!*out) {
        PyErr_NoMemory();
        return true;
    }
    for (Py_ssize_t i = 0; i < *n; i++) (*out)[i] = (float)PyFloat_AsDouble(items[i]);
    if (PyErr_Occurred()) PyMem_Free(*out), *out = NULL;
    return true;
}

bool rwspy_floats(PyObject *o, float **out, Py_ssize_t *n)
{
    *out = NULL;
    if ((PyList_Check(o) || PyTuple_Check(o)) && floats_of_list(o, out, n)) return *out != NULL;
    if (PyObject_CheckBuffer(o) && floats_of_buffer(o, out, n)) return *out != NULL;
    PyObject  *helper = rwspy_helper("floats"), *array = helper ? PyObject_CallOneArg(helper, o) : NULL;
    const bool good = array && floats_of_buffer(array, out, n);
    Py_XDECREF(helper);
    Py_XDECREF(array);
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "An array of float32 was expected.");
    return good && *out;
}

PyObject *rwspy_array(const float *x, Py_ssize_t rows, Py_ssize_t cols)
{
    PyObject *bytes = PyByteArray_FromStringAndSize((const char *)x, rows * cols * (Py_ssize_t)sizeof(float));
    PyObject *helper = bytes ? rwspy_helper("array") : NULL;
    PyObject *r = helper ? PyObject_CallFunction(helper, "Onn", bytes, rows, cols) : NULL;
    Py_XDECREF(helper);
    Py_XDECREF(bytes);
    return r;
}

PyObject *rwspy_doubles(const double *x, Py_ssize_t n)
{
    PyObject *bytes = PyByteArray_FromStringAndSize((const char *)x, n * (Py_ssize_t)sizeof(double));
    PyObject *helper = bytes ? rwspy_helper("doubles") : NULL;
    PyObject *r = helper ? PyObject_CallOneArg(helper, bytes) : NULL;
    Py_XDECREF(helper);
    Py_XDECREF(bytes);
    return r;
}

/* ---- a scope: whether parameters and layers of a setup can still be used */

PyTypeObject rwspy_Scope = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Scope",
    .tp_basicsize = sizeof(scope_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

static bool scope_fits(py_path *h, const scope_object *scope, const char *what, PyObject *name)
{
    if (rwspy_state(h)->scope == scope) return true;
    PyErr_Format(rwspy_Error, "The %s %R belongs to another %s; a program uses those that its own setup declared.",
                 what, name, scope->alive ? "trainer or posterior" : "trainer, which is closed");
    return false;
}

/* ---- values */

#define N_FREE 1024
static value_object *free_values[N_FREE];
static int           n_free;

PyObject *rwspy_value(const py_path *h, rws_var v)
{
    value_object *o;
    if (n_free) {
        o = free_values[--n_free];
        PyObject_Init((PyObject *)o, &rwspy_Value);
    } else if (!(o = PyObject_New(value_object, &rwspy_Value))) return NULL;
    o->v = v;
    o->serial = rwspy_serial(h);
    return (PyObject *)o;
}

static void value_free(PyObject *o)
{
    if (n_free < N_FREE) free_values[n_free++] = (value_object *)o;
    else PyObject_Free(o);
}

PyObject *rwspy_call_value(py_path *h, const request *c)
{
    result r;
    return rwspy_call(h, c, &r) ? rwspy_value(h, r.v) : NULL;
}

static bool var_of_numbers(py_path *h, PyObject *o, rws_var *out)
{
    float     *x;
    Py_ssize_t n;
    result     r;
    if (!rwspy_floats(o, &x, &n)) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "A value, a parameter, a number or an array was expected, not %.100s.",
                         Py_TYPE(o)->tp_name);
        }
        return false;
    }
    if (n > INT_MAX) n = INT_MAX;
    const bool good = rwspy_call(h, &(request){.kind = CALL_CONSTANTS, .numbers = x, .n = (int)n}, &r);
    PyMem_Free(x);
    if (good) *out = r.v;
    return good;
}

/* A list with values in it: they follow one another. */
static bool var_of_list(py_path *h, PyObject *o, rws_var *out)
{
    rws_var *parts;
    int      n;
    result   r;
    if (!rwspy_vars(h, o, &parts, &n)) return false;
    const bool good = rwspy_call(h, &(request){.kind = CALL_MANY, .f = (void *)rws_concat, .parts = parts, .n = n}, &r);
    PyMem_Free(parts);
    if (good) *out = r.v;
    return good;
}

static bool has_values(PyObject *list)
{
    PyObject **items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++)
        if (Py_IS_TYPE(items[i], &rwspy_Value) || Py_IS_TYPE(items[i], &rwspy_Param) || PyList_Check(items[i]) ||
            PyTuple_Check(items[i]))
            return true;
    return false;
}

static bool constant(py_path *h, double x, rws_var *out)
{
    result r;
    if (x == -1 && PyErr_Occurred()) return false;
    if (!rwspy_call(h, &(request){.kind = CALL_CONSTANT, .x = {(float)x}}, &r)) return false;
    *out = r.v;
    return true;
}

bool rwspy_var(py_path *h, PyObject *o, rws_var *out)
{
    if (Py_IS_TYPE(o, &rwspy_Value)) {
        const value_object *v = (value_object *)o;
        if (__builtin_expect(v->serial != rwspy_serial(h), 0)) {
            PyErr_SetString(rwspy_Error,
                            "The value does not belong to this execution of the program; a program must not "
                            "keep values in attributes, globals or closures.");
            return false;
        }
        *out = v->v;
        return true;
    }
    if (PyFloat_CheckExact(o)) return constant(h, PyFloat_AS_DOUBLE(o), out);
    if (PyLong_Check(o)) return constant(h, PyLong_AsDouble(o), out);
    if (Py_IS_TYPE(o, &rwspy_Param)) {
        const param_object *p = (param_object *)o;
        result              r;
        if (!scope_fits(h, p->scope, "parameter", p->name)) return false;
        if (!rwspy_call(h, &(request){.kind = CALL_PARAMETER, .param = p->param}, &r)) return false;
        *out = r.v;
        return true;
    }
    if (PyFloat_Check(o)) return constant(h, PyFloat_AS_DOUBLE(o), out);
    if ((PyList_Check(o) || PyTuple_Check(o)) && has_values(o)) return var_of_list(h, o, out);
    return var_of_numbers(h, o, out);
}

bool rwspy_vars(py_path *h, PyObject *o, rws_var **out, int *n)
{
    const bool       list = PyList_Check(o) || PyTuple_Check(o);
    const Py_ssize_t count = list ? PySequence_Fast_GET_SIZE(o) : 1;
    if (count > INT_MAX / 2) {
        PyErr_SetString(PyExc_OverflowError, "The list is too long.");
        return false;
    }
    rws_var *v = PyMem_Malloc(((size_t)count + 1) * sizeof *v);
    if (!v) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!rwspy_var(h, list ? PySequence_Fast_GET_ITEM(o, i) : o, &v[i])) {
            PyMem_Free(v);
            return false;
        }
    *out = v;
    *n = (int)count;
    return true;
}

/* ---- operators, of values and of parameters */

static bool is_value(PyObject *o)
{
    return Py_IS_TYPE(o, &rwspy_Value) || Py_IS_TYPE(o, &rwspy_Param);
}

/* Whether o is a plain number, which an affine function takes as it is. */
static bool plain(PyObject *o, float *x)
{
    double d;
    if (PyFloat_CheckExact(o)) d = PyFloat_AS_DOUBLE(o);
    else if (PyLong_CheckExact(o)) {
        d = PyLong_AsDouble(o);
        if (d == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    } else return false;
    *x = (float)d;
    return true;
}

static PyObject *affine(PyObject *o, float scale, float shift)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_AFFINE, .x = {scale, shift}};
    if (!h || !rwspy_var(h, o, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *two(PyObject *a, PyObject *b, void *f)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_TWO, .f = f};
    if (!h || !rwspy_var(h, a, &c.v[0]) || !rwspy_var(h, b, &c.v[1])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *one(PyObject *a, void *f)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_ONE, .f = f};
    if (!h || !rwspy_var(h, a, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *apply(PyObject *a, rws_function f)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_APPLY, .i = {(int)f}};
    if (!h || !rwspy_var(h, a, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

/* What may stand on the other side of an operator. */
static bool operand(PyObject *o)
{
    return is_value(o) || PyFloat_Check(o) || PyLong_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
           PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__array__");
}

#define OPERANDS(a, b) \
    if (!operand(a) || !operand(b)) Py_RETURN_NOTIMPLEMENTED

static PyObject *value_add(PyObject *a, PyObject *b)
{
    float x;
    if (plain(b, &x)) return affine(a, 1, x);
    if (plain(a, &x)) return affine(b, 1, x);
    OPERANDS(a, b);
    return two(a, b, (void *)rws_add);
}

static PyObject *value_sub(PyObject *a, PyObject *b)
{
    float x;
    if (plain(b, &x)) return affine(a, 1, -x);
    if (plain(a, &x)) return affine(b, -1, x);
    OPERANDS(a, b);
    return two(a, b, (void *)rws_sub);
}

static PyObject *value_mul(PyObject *a, PyObject *b)
{
    float x;
    if (plain(b, &x)) return affine(a, x, 0);
    if (plain(a, &x)) return affine(b, x, 0);
    OPERANDS(a, b);
    return two(a, b, (void *)rws_mul);
}

static PyObject *value_div(PyObject *a, PyObject *b)
{
    OPERANDS(a, b);
    return two(a, b, (void *)rws_div);
}

static PyObject *value_pow(PyObject *a, PyObject *b, PyObject *modulus)
{
    OPERANDS(a, b);
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    if (PyLong_CheckExact(b) && PyLong_AsLong(b) == 2) return apply(a, RWS_SQUARE);
    return two(a, b, (void *)rws_power);
}

/* Rows and columns of a parameter or of an array of two dimensions. False: o has no shape of that kind. */
static bool shape_of(PyObject *o, int *rows, int *cols)
{
    if (Py_IS_TYPE(o, &rwspy_Param)) {
        *rows = ((param_object *)o)->rows;
        *cols = ((param_object *)o)->cols;
        return true;
    }
    if (Py_IS_TYPE(o, &rwspy_Value)) return false;
    PyObject  *shape = PyObject_GetAttrString(o, "shape");
    const bool good = shape && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 2 &&
                      rwspy_int(PyTuple_GET_ITEM(shape, 0), rows) && rwspy_int(PyTuple_GET_ITEM(shape, 1), cols);
    Py_XDECREF(shape);
    PyErr_Clear();
    return good;
}

/* A matrix with more than one row. Only such a matrix counts as one in a @ b: a vector is a parameter of one row. */
static bool is_matrix(PyObject *o, int *rows, int *cols)
{
    return shape_of(o, rows, cols) && *rows > 1;
}

static PyObject *matmul(PyObject *a, PyObject *b, int inner)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_MATMUL, .i = {inner}};
    if (!h || !rwspy_var(h, a, &c.v[0]) || !rwspy_var(h, b, &c.v[1])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *value_matmul(PyObject *a, PyObject *b)
{
    int rows, cols, inner;
    OPERANDS(a, b);
    const bool right = is_matrix(b, &rows, &cols);
    if (right) return matmul(a, b, rows);
    return two(a, b, is_matrix(a, &rows, &inner) ? (void *)rws_matvec : (void *)rws_dot);
}

static PyObject *value_neg(PyObject *a)
{
    return affine(a, -1, 0);
}

static PyObject *value_pos(PyObject *a)
{
    return Py_NewRef(a);
}

static PyObject *value_abs(PyObject *a)
{
    return apply(a, RWS_ABS);
}

static bool branch(PyObject *o, int64_t *out)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_BRANCH};
    result   r;
    if (!h || !rwspy_var(h, o, &c.v[0]) || !rwspy_call(h, &c, &r)) return false;
    *out = r.i;
    return true;
}

static int value_bool(PyObject *o)
{
    int64_t i;
    return branch(o, &i) ? i != 0 : -1;
}

static PyObject *value_int(PyObject *o)
{
    int64_t i;
    return branch(o, &i) ? PyLong_FromLongLong(i) : NULL;
}

static PyObject *value_float(PyObject *o)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_LOOK}, d = {.kind = CALL_DIM};
    result   r, n;
    if (!h || !rwspy_var(h, o, &c.v[0])) return NULL;
    d.v[0] = c.v[0];
    if (!rwspy_call(h, &d, &n)) return NULL;
    if (n.i != 1)
        return PyErr_Format(PyExc_TypeError, "float() takes a value of one number, not of %lld.", (long long)n.i);
    return rwspy_call(h, &c, &r) ? PyFloat_FromDouble((double)r.numbers[0]) : NULL;
}

/* a > b is a value of zeros and ones; a == 3 asks for the number in a, as int(a) == 3 does. */
static PyObject *value_compare(PyObject *a, PyObject *b, int how)
{
    int64_t i;
    if (how == Py_EQ || how == Py_NE) {
        if (a == b) return PyBool_FromLong(how == Py_EQ);
        if (!PyLong_Check(b)) Py_RETURN_NOTIMPLEMENTED;
        const long x = PyLong_AsLong(b);
        if ((x == -1 && PyErr_Occurred()) || !branch(a, &i)) return NULL;
        return PyBool_FromLong((i == x) == (how == Py_EQ));
    }
    OPERANDS(a, b);
    if (how == Py_GT) return two(a, b, (void *)rws_greater);
    if (how == Py_LT) return two(b, a, (void *)rws_greater);
    PyObject *other = how == Py_GE ? two(b, a, (void *)rws_greater) : two(a, b, (void *)rws_greater);
    PyObject *r = other ? affine(other, -1, 1) : NULL;
    Py_XDECREF(other);
    return r;
}

static bool dim_of(PyObject *o, int64_t *dim)
{
    if (Py_IS_TYPE(o, &rwspy_Param)) {
        *dim = (int64_t)((param_object *)o)->rows * ((param_object *)o)->cols;
        return true;
    }
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_DIM};
    result   r;
    if (!h || !rwspy_var(h, o, &c.v[0]) || !rwspy_call(h, &c, &r)) return false;
    *dim = r.i;
    return true;
}

static Py_ssize_t value_length(PyObject *o)
{
    int64_t n;
    return dim_of(o, &n) ? (Py_ssize_t)n : -1;
}

static PyObject *sliced(PyObject *o, int64_t first, int64_t n)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_SLICE, .i = {(int)first, (int)n}};
    if (!h || !rwspy_var(h, o, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *value_item(PyObject *o, PyObject *index)
{
    int64_t dim;
    if (is_value(index)) return two(o, index, (void *)rws_pick);
    if (!dim_of(o, &dim)) return NULL;
    if (PySlice_Check(index)) {
        Py_ssize_t from, to, step;
        if (PySlice_Unpack(index, &from, &to, &step) != 0) return NULL;
        const Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)dim, &from, &to, step);
        if (step != 1) return PyErr_Format(PyExc_ValueError, "A slice of a value has step 1, not %zd.", step);
        if (n == 0) return PyErr_Format(PyExc_ValueError, "The slice of the value is empty.");
        return sliced(o, from, n);
    }
    Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < 0) i += (Py_ssize_t)dim;
    if (i < 0 || i >= dim)
        return PyErr_Format(PyExc_IndexError, "The value has %lld components; there is no number %R.", (long long)dim,
                            index);
    return sliced(o, i, 1);
}

static PyObject *value_sequence_item(PyObject *o, Py_ssize_t i)
{
    int64_t dim;
    if (!dim_of(o, &dim)) return NULL;
    if (i < 0 || i >= dim) return PyErr_Format(PyExc_IndexError, "The value has %lld components.", (long long)dim);
    return sliced(o, i, 1);
}

static PyObject *value_repr(PyObject *o)
{
    const value_object *v = (value_object *)o;
    const py_path      *h = rwspy_current();
    int64_t             dim;
    if (!h || v->serial != rwspy_serial(h)) return PyUnicode_FromString("<rws.Value of an execution that is over>");
    if (!dim_of(o, &dim)) return NULL;
    return PyUnicode_FromFormat("<rws.Value of %lld>", (long long)dim);
}

static PyNumberMethods numbers = {
    .nb_add = value_add,
    .nb_subtract = value_sub,
    .nb_multiply = value_mul,
    .nb_true_divide = value_div,
    .nb_power = value_pow,
    .nb_matrix_multiply = value_matmul,
    .nb_negative = value_neg,
    .nb_positive = value_pos,
    .nb_absolute = value_abs,
    .nb_bool = value_bool,
    .nb_int = value_int,
    .nb_index = value_int,
    .nb_float = value_float,
};

static PyMappingMethods  mapping = {.mp_length = value_length, .mp_subscript = value_item};
static PySequenceMethods sequence = {.sq_length = value_length, .sq_item = value_sequence_item};

/* ---- functions on values, in the module */

#define FUNCTION(name, f, doc)                                        \
    static PyObject *function_##name(PyObject *self, PyObject *value) \
    {                                                                 \
        (void)self;                                                   \
        return apply(value, f);                                       \
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
    X(log_sigmoid, RWS_LOG_SIGMOID, "log(1 / (1 + exp(-v))), accurate for large |v|.") \
    X(log1p, RWS_LOG1P, "log(1 + v), accurate near 0.")                                \
    X(expm1, RWS_EXPM1, "exp(v) - 1, accurate near 0.")                                \
    X(lgamma, RWS_LGAMMA, "The logarithm of the gamma function.")                      \
    X(digamma, RWS_DIGAMMA, "The derivative of lgamma.")
EACH_FUNCTION(FUNCTION)

#define ONE(name, f, doc)                                             \
    static PyObject *function_##name(PyObject *self, PyObject *value) \
    {                                                                 \
        (void)self;                                                   \
        return one(value, (void *)f);                                 \
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

static bool expect(const char *name, Py_ssize_t n, Py_ssize_t least, Py_ssize_t most)
{
    if (n >= least && n <= most) return true;
    if (least == most) PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd.", name, least, n);
    else PyErr_Format(PyExc_TypeError, "%s takes %zd to %zd arguments, not %zd.", name, least, most, n);
    return false;
}

#define TWO(name, f, doc)                                                                 \
    static PyObject *function_##name(PyObject *self, PyObject *const *args, Py_ssize_t n) \
    {                                                                                     \
        (void)self;                                                                       \
        return expect(#name, n, 2, 2) ? two(args[0], args[1], (void *)f) : NULL;          \
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
    if (!h || !expect("onehot", n, 2, 2) || !rwspy_var(h, args[0], &c.v[0]) || !rwspy_int(args[1], &c.i[0]))
        return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_row(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    py_path *h = rwspy_running("row");
    request  c = {.kind = CALL_ROW};
    if (!h || !expect("row", n, 2, 3)) return NULL;
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
    if (!h || !expect("clip", n, 3, 3) || !rwspy_var(h, args[0], &c.v[0])) return NULL;
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
    if (!h || !expect(name, n, 3, 3)) return NULL;
    for (int k = 0; k < 3; k++)
        if (!rwspy_var(h, args[k], &c.v[k])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *function_normal_density(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return three("normal_density", args, n, (void *)rws_normal_density);
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
    } else if (shape_of(a, &rows, &cols)) inner = cols;
    else if (shape_of(b, &rows, &cols)) inner = rows;
    else
        return PyErr_Format(PyExc_TypeError,
                            "matmul(a, b, inner) needs the number of columns of a, which is that of the rows of b, "
                            "unless one of them is a parameter or an array of two dimensions.");
    return matmul(a, b, inner);
}

static PyObject *function_transpose(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"a", "cols", NULL};
    PyObject    *a, *given = Py_None;
    int          rows;
    request      c = {.kind = CALL_TRANSPOSE};
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:transpose", names, &a, &given)) return NULL;
    if (given != Py_None ? !rwspy_int(given, &c.i[0]) : !shape_of(a, &rows, &c.i[0]))
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
    if (!h || !expect("dot_attention", n, 3, 3) || !rwspy_var(h, args[0], &c.v[0])) return NULL;
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
    if (!h || !expect(name, n, 5 + image, 5 + image)) return NULL;
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
    {"attend", FAST(attend), "attend(image, rows, cols, where, out_rows, out_cols)\n\nReads a window of a picture."},
    {"place", FAST(place), "place(glimpse, rows, cols, where, out_rows, out_cols)\n\nWrites a window into a picture."},
    {"cover", FAST(cover), "cover(rows, cols, where, out_rows, out_cols)\n\nWrites a window of ones into a picture."},
    {"rank", rwspy_rank, METH_NOARGS,
     "rank()\n\nThe number of this process among those that mpirun or srun started: 0 for the one that shows and "
     "writes."},
    {"n_ranks", rwspy_n_ranks, METH_NOARGS,
     "n_ranks()\n\nHow many processes train together; 1 before the first trainer is made."},
    {"_ranks_open", rwspy_ranks_open, METH_NOARGS, NULL},
    {"_ranks_close", rwspy_ranks_close, METH_NOARGS, NULL},
    {"_rank_lost", rwspy_rank_lost, METH_NOARGS, NULL},
    {"results", rwspy_results, METH_VARARGS, "results(paths)\n\nWhat the stores of runs say."},
    {"tables", rwspy_tables, METH_NOARGS, "tables()\n\nThe models, methods and optimisers of the library."},
    {0},
};

PyTypeObject rwspy_Value = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Value",
    .tp_doc =
        "A vector of numbers for each particle of a path. It belongs to the execution of the program that made it.\n\n"
        "Operators work component by component. int(v), bool(v) and v == 3 give the number itself, for Python's own\n"
        "control flow: the particles part where they differ.",
    .tp_basicsize = sizeof(value_object),
    .tp_dealloc = value_free,
    .tp_repr = value_repr,
    .tp_as_number = &numbers,
    .tp_as_mapping = &mapping,
    .tp_as_sequence = &sequence,
    .tp_richcompare = value_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* ---- parameters */

PyObject *rwspy_param(rws_param *param, scope_object *scope, const char *name, int rows, int cols)
{
    param_object *p = PyObject_New(param_object, &rwspy_Param);
    if (!p) return NULL;
    p->param = param;
    p->scope = (scope_object *)Py_NewRef(scope);
    p->rows = rows;
    p->cols = cols;
    p->writable = true;
    p->name = PyUnicode_FromString(name);
    if (!p->name) Py_CLEAR(p);
    return (PyObject *)p;
}

static void param_free(PyObject *o)
{
    param_object *p = (param_object *)o;
    Py_XDECREF(p->scope);
    Py_XDECREF(p->name);
    PyObject_Free(o);
}

static float *param_values(param_object *p)
{
    float *x = p->scope->alive ? rws_param_values(p->param) : NULL;
    if (!x)
        PyErr_Format(rwspy_Error, "The parameter %R has no numbers: %s.", p->name,
                     p->scope->alive ? "its declaration failed" : "its trainer is closed");
    return x;
}

static PyObject *param_get(PyObject *o, void *unused)
{
    (void)unused;
    param_object *p = (param_object *)o;
    const float  *x = param_values(p);
    return x ? rwspy_array(x, p->rows, p->cols) : NULL;
}

static int param_set(PyObject *o, PyObject *to, void *unused)
{
    (void)unused;
    param_object *p = (param_object *)o;
    float        *values = param_values(p), *x;
    Py_ssize_t    n;
    if (!values) return -1;
    if (!to) {
        PyErr_SetString(PyExc_AttributeError, "The numbers of a parameter cannot be deleted.");
        return -1;
    }
    if (!rwspy_floats(to, &x, &n)) return -1;
    if (n == (Py_ssize_t)p->rows * p->cols) memcpy(values, x, (size_t)n * sizeof *x);
    else PyErr_Format(PyExc_ValueError, "The parameter %R has %d x %d numbers, not %zd.", p->name, p->rows, p->cols, n);
    PyMem_Free(x);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *param_name(PyObject *o, void *unused)
{
    (void)unused;
    return Py_NewRef(((param_object *)o)->name);
}

static PyObject *param_shape(PyObject *o, void *unused)
{
    (void)unused;
    return Py_BuildValue("(ii)", ((param_object *)o)->rows, ((param_object *)o)->cols);
}

static PyObject *param_repr(PyObject *o)
{
    const param_object *p = (param_object *)o;
    return PyUnicode_FromFormat("<rws.Param %R of %d x %d>", p->name, p->rows, p->cols);
}

static PyGetSetDef param_members[] = {
    {"values", param_get, param_set,
     "The numbers, rows x cols: a copy. Assign an array during setup to start from it, or in em to replace it.", NULL},
    {"name", param_name, NULL, "The full name, as in the checkpoint.", NULL},
    {"shape", param_shape, NULL, "(rows, cols)", NULL},
    {0},
};

PyTypeObject rwspy_Param = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Param",
    .tp_doc = "A matrix of numbers to learn. In a program it stands for its values, as one vector.",
    .tp_basicsize = sizeof(param_object),
    .tp_dealloc = param_free,
    .tp_repr = param_repr,
    .tp_as_number = &numbers,
    .tp_as_mapping = &mapping,
    .tp_as_sequence = &sequence,
    .tp_getset = param_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* ---- layers */

static PyObject *layer_call(PyObject *o, PyObject *const *args, size_t flags, PyObject *keywords);

PyObject *rwspy_layer(rws_layer *layer, scope_object *scope, const char *name, int kind, int n_out)
{
    layer_object *l = PyObject_New(layer_object, &rwspy_Layer);
    if (!l) return NULL;
    l->layer = layer;
    l->scope = (scope_object *)Py_NewRef(scope);
    l->kind = kind;
    l->n_out = n_out;
    l->call = layer_call;
    l->name = PyUnicode_FromString(name);
    if (!l->name) Py_CLEAR(l);
    return (PyObject *)l;
}

static void layer_free(PyObject *o)
{
    layer_object *l = (layer_object *)o;
    Py_XDECREF(l->scope);
    Py_XDECREF(l->name);
    PyObject_Free(o);
}

/* How a layer is called, by its kind. */
static const struct {
    const char *how;
    bool        items; /* its parts are a list of items, which may be empty; else a list of numbers is one part */
    bool        one;   /* it takes a single part */
} kinds[] = {
    [LAYER_LINEAR] = {"layer(x)", false, false},
    [LAYER_MLP] = {"layer(x)", false, false},
    [LAYER_RNN] = {"cell(x, h)", false, false},
    [LAYER_GRU] = {"cell(x, h)", false, false},
    [LAYER_LSTM] = {"cell(x, (h, c))", false, false},
    [LAYER_EMBEDDING] = {"layer(index)", false, true},
    [LAYER_BIDIRECTIONAL] = {"layer(items)", true, false},
    [LAYER_ATTENTION] = {"layer(query, items)", true, false},
    [LAYER_SET_ENCODER] = {"layer(items)", true, false},
    [LAYER_NORM] = {"layer(x)", false, true},
    [LAYER_RESIDUAL_MLP] = {"layer(x)", false, false},
    [LAYER_CONV2D] = {"layer(pictures)", false, true},
    [LAYER_CONV_TRANSPOSE2D] = {"layer(pictures)", false, true},
};

/* The parts of an input: in `few` if they fit, else in an array *own of the caller's (PyMem_Free). */
#define FEW 8
static bool parts_of(py_path *h, PyObject *x, int kind, rws_var *few, rws_var **own, request *c)
{
    const bool list = PyList_Check(x) || PyTuple_Check(x);
    c->parts = few;
    c->n = 1;
    if (!list || kinds[kind].one || (!kinds[kind].items && !has_values(x))) return rwspy_var(h, x, few);
    if (PySequence_Fast_GET_SIZE(x) <= FEW) {
        for (c->n = 0; c->n < PySequence_Fast_GET_SIZE(x); c->n++)
            if (!rwspy_var(h, PySequence_Fast_GET_ITEM(x, c->n), &few[c->n])) return false;
        return true;
    }
    if (!rwspy_vars(h, x, own, &c->n)) return false;
    c->parts = *own;
    return true;
}

/* A value and a list of the states of all items. */
static PyObject *with_states(py_path *h, const result *r, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *state = rwspy_value(h, r->states[i]);
        if (state) PyList_SET_ITEM(list, i, state);
        else Py_CLEAR(list);
    }
    PyObject *v = list ? rwspy_value(h, r->v) : NULL;
    if (v) return Py_BuildValue("(NN)", v, list);
    Py_XDECREF(list);
    return NULL;
}

static PyObject *with_memory(py_path *h, const result *r)
{
    PyObject *v = rwspy_value(h, r->v), *memory = v ? rwspy_value(h, r->c) : NULL;
    if (memory) return Py_BuildValue("(NN)", v, memory);
    Py_XDECREF(v);
    return NULL;
}

/* The state of an lstm is a pair; that of other cells, and the query of attention, is one value. */
static bool second_argument(py_path *h, PyObject *o, int kind, request *c)
{
    if (kind != LAYER_LSTM) return rwspy_var(h, o, &c->v[0]);
    if ((PyList_Check(o) || PyTuple_Check(o)) && PySequence_Fast_GET_SIZE(o) == 2)
        return rwspy_var(h, PySequence_Fast_GET_ITEM(o, 0), &c->v[0]) &&
               rwspy_var(h, PySequence_Fast_GET_ITEM(o, 1), &c->v[1]);
    PyErr_SetString(PyExc_TypeError, "The state of an lstm is a pair: h, c = cell(x, (h, c)).");
    return false;
}

static PyObject *layer_call(PyObject *o, PyObject *const *args, size_t flags, PyObject *keywords)
{
    layer_object *l = (layer_object *)o;
    const int     kind = l->kind;
    const bool    cell = kind == LAYER_RNN || kind == LAYER_GRU || kind == LAYER_LSTM, query = kind == LAYER_ATTENTION;
    py_path      *h = rwspy_running("A layer");
    request       c = {.kind = CALL_LAYER, .layer = l->layer, .i = {kind}};
    rws_var       few[FEW], *own = NULL;
    result        result;
    if (!h || !scope_fits(h, l->scope, "layer", l->name)) return NULL;
    if (keywords && PyTuple_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "A layer takes no keywords: %s.", kinds[kind].how);
    if (!expect(kinds[kind].how, PyVectorcall_NARGS(flags), 1 + (cell || query), 1 + (cell || query))) return NULL;
    if (kind == LAYER_LSTM) c.kind = CALL_LSTM;
    if (kind == LAYER_BIDIRECTIONAL) c.kind = CALL_BIDIRECTIONAL;
    PyObject *r = NULL;
    if (parts_of(h, args[query], kind, few, &own, &c) &&
        (!(cell || query) || second_argument(h, args[cell], kind, &c)) && rwspy_call(h, &c, &result)) {
        if (kind == LAYER_LSTM) r = with_memory(h, &result);
        else if (kind == LAYER_BIDIRECTIONAL) r = with_states(h, &result, c.n);
        else r = rwspy_value(h, result.v);
    }
    PyMem_Free(own);
    return r;
}

static PyObject *layer_bias(PyObject *o, void *unused)
{
    (void)unused;
    const layer_object *l = (layer_object *)o;
    rws_param          *p = l->scope->alive ? rws_layer_bias(l->layer) : NULL;
    if (!p) Py_RETURN_NONE;
    PyObject *name = PyUnicode_FromFormat("%U.bias", l->name);
    PyObject *r = name ? rwspy_param(p, l->scope, PyUnicode_AsUTF8(name), 1, l->n_out) : NULL;
    Py_XDECREF(name);
    return r;
}

static PyObject *layer_repr(PyObject *o)
{
    return PyUnicode_FromFormat("<rws.Layer %R>", ((layer_object *)o)->name);
}

static PyObject *layer_picture(PyObject *o, void *whole)
{
    const layer_object *l = (layer_object *)o;
    int                 channels, rows, cols;
    if (!l->scope->alive) return PyErr_Format(rwspy_Error, "The layer %R is gone: its trainer is closed.", l->name);
    const int n = rws_layer_picture(l->layer, &channels, &rows, &cols);
    return whole ? Py_BuildValue("(iii)", channels, rows, cols) : PyLong_FromLong(n);
}

static PyGetSetDef layer_members[] = {
    {"n_out", layer_picture, NULL, "How many numbers come out, to declare the layer after it.", NULL},
    {"picture", layer_picture, NULL,
     "What comes out as a picture: (channels, rows, cols); (1, 1, n_out) for a layer that is no convolution.", "w"},
    {"bias", layer_bias, NULL, "The bias of a linear layer; None for a layer of another kind.", NULL},
    {0},
};

PyTypeObject rwspy_Layer = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Layer",
    .tp_doc =
        "A function with parameters: layer(x), or layer([a, b]) for an input in parts, whose products are computed\n"
        "once for each part that several particles share. Cells (rnn, gru) take a state: cell(x, h); an lstm takes "
        "and\n"
        "gives two: h, c = cell(x, (h, c)). Over items, a list: set_encoder(items), attention(query, items), and\n"
        "last, states = bidirectional(items), where states has the two states after each item.",
    .tp_basicsize = sizeof(layer_object),
    .tp_dealloc = layer_free,
    .tp_repr = layer_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(layer_object, call),
    .tp_getset = layer_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* ---- numbers that a program looks at */

typedef struct {
    PyObject_HEAD const float *at;
    int                        n;
    uint64_t                   serial;
} numbers_object;

PyObject *rwspy_numbers(const py_path *h, const float *at, int n)
{
    numbers_object *o = PyObject_New(numbers_object, &rwspy_Numbers);
    if (!o) return NULL;
    o->at = at;
    o->n = n;
    o->serial = rwspy_serial(h);
    return (PyObject *)o;
}

static bool numbers_good(const numbers_object *o)
{
    const py_path *h = rwspy_current();
    if (h && rwspy_serial(h) == o->serial) return true;
    PyErr_SetString(rwspy_Error, "The numbers belong to an execution of a program that is over.");
    return false;
}

static Py_ssize_t numbers_length(PyObject *o)
{
    return ((numbers_object *)o)->n;
}

static PyObject *numbers_item(PyObject *self, PyObject *index)
{
    const numbers_object *o = (numbers_object *)self;
    if (!numbers_good(o)) return NULL;
    if (PySlice_Check(index)) {
        Py_ssize_t from, to, step;
        if (PySlice_Unpack(index, &from, &to, &step) != 0) return NULL;
        const Py_ssize_t n = PySlice_AdjustIndices(o->n, &from, &to, step);
        PyObject        *list = PyList_New(n);
        for (Py_ssize_t i = 0; i < n && list; i++) {
            PyObject *x = PyFloat_FromDouble((double)o->at[from + i * step]);
            if (x) PyList_SET_ITEM(list, i, x);
            else Py_CLEAR(list);
        }
        return list;
    }
    Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < 0) i += o->n;
    if (i < 0 || i >= o->n) return PyErr_Format(PyExc_IndexError, "There are %d numbers.", o->n);
    return PyFloat_FromDouble((double)o->at[i]);
}

static PyObject *numbers_sequence_item(PyObject *self, Py_ssize_t i)
{
    const numbers_object *o = (numbers_object *)self;
    if (!numbers_good(o)) return NULL;
    if (i < 0 || i >= o->n) return PyErr_Format(PyExc_IndexError, "There are %d numbers.", o->n);
    return PyFloat_FromDouble((double)o->at[i]);
}

static PyObject *numbers_array(PyObject *self, PyObject *args)
{
    (void)args;
    const numbers_object *o = (numbers_object *)self;
    if (!numbers_good(o)) return NULL;
    PyObject *row = rwspy_array(o->at, 1, o->n), *r = row ? PyObject_CallMethod(row, "reshape", "i", -1) : NULL;
    Py_XDECREF(row);
    return r;
}

static PyMappingMethods  numbers_mapping = {.mp_length = numbers_length, .mp_subscript = numbers_item};
static PySequenceMethods numbers_sequence = {.sq_length = numbers_length, .sq_item = numbers_sequence_item};
static PyMethodDef       numbers_methods[] = {
          {"numpy", numbers_array, METH_NOARGS, "numpy()\n\nA copy as an array."},
          {0},
};

static void numbers_free(PyObject *o)
{
    PyObject_Free(o);
}

PyTypeObject rwspy_Numbers = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Numbers",
    .tp_doc = "The numbers of a value, as a program looks at them (Path.look). Good until the program ends.",
    .tp_basicsize = sizeof(numbers_object),
    .tp_dealloc = numbers_free,
    .tp_as_mapping = &numbers_mapping,
    .tp_as_sequence = &numbers_sequence,
    .tp_methods = numbers_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
