/* value.c - values of programs as Python objects, what may stand for one, and the operators on them. */
#include "rwspy.h"

#include <limits.h>
#include <math.h>

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

bool rwspy_has_values(PyObject *list)
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
        if (__builtin_expect(!rwspy_sees(h, v->serial), 0)) {
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
        if (!rwspy_scope_fits(h, p->scope, "parameter", p->name)) return false;
        if (!rwspy_call(h, &(request){.kind = CALL_PARAMETER, .param = p->param}, &r)) return false;
        *out = r.v;
        return true;
    }
    if (PyFloat_Check(o)) return constant(h, PyFloat_AS_DOUBLE(o), out);
    if ((PyList_Check(o) || PyTuple_Check(o)) && rwspy_has_values(o)) return var_of_list(h, o, out);
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

PyObject *rwspy_two(PyObject *a, PyObject *b, void *f)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_TWO, .f = f};
    if (!h || !rwspy_var(h, a, &c.v[0]) || !rwspy_var(h, b, &c.v[1])) return NULL;
    return rwspy_call_value(h, &c);
}

PyObject *rwspy_one(PyObject *a, void *f)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_ONE, .f = f};
    if (!h || !rwspy_var(h, a, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

PyObject *rwspy_apply(PyObject *a, rws_function f)
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
    return rwspy_two(a, b, (void *)rws_add);
}

static PyObject *value_sub(PyObject *a, PyObject *b)
{
    float x;
    if (plain(b, &x)) return affine(a, 1, -x);
    if (plain(a, &x)) return affine(b, -1, x);
    OPERANDS(a, b);
    return rwspy_two(a, b, (void *)rws_sub);
}

static PyObject *value_mul(PyObject *a, PyObject *b)
{
    float x;
    if (plain(b, &x)) return affine(a, x, 0);
    if (plain(a, &x)) return affine(b, x, 0);
    OPERANDS(a, b);
    return rwspy_two(a, b, (void *)rws_mul);
}

static PyObject *value_div(PyObject *a, PyObject *b)
{
    OPERANDS(a, b);
    return rwspy_two(a, b, (void *)rws_div);
}

static PyObject *value_pow(PyObject *a, PyObject *b, PyObject *modulus)
{
    OPERANDS(a, b);
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    int overflow;
    if (PyLong_CheckExact(b) && PyLong_AsLongAndOverflow(b, &overflow) == 2) return rwspy_apply(a, RWS_SQUARE);
    return rwspy_two(a, b, (void *)rws_power);
}

/* Rows and columns of a parameter or of an array of two dimensions. False: o has no shape of that kind. */
bool rwspy_shape_of(PyObject *o, int *rows, int *cols)
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
    return rwspy_shape_of(o, rows, cols) && *rows > 1;
}

PyObject *rwspy_matmul(PyObject *a, PyObject *b, int inner)
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
    if (right) return rwspy_matmul(a, b, rows);
    return rwspy_two(a, b, is_matrix(a, &rows, &inner) ? (void *)rws_matvec : (void *)rws_dot);
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
    return rwspy_apply(a, RWS_ABS);
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

/* The whole number that o stands for: an int, a float without a fraction, or a number of numpy. Returns 1 with the number in
 * *out; 0 if the number is so large that no value of a path equals it; -1 if o is no whole number. Leaves no exception. */
static int whole(PyObject *o, int64_t *out)
{
    PyObject *i = PyIndex_Check(o) ? PyNumber_Index(o) : NULL;
    if (!i) {
        PyErr_Clear();
        if (!PyNumber_Check(o) || PySequence_Check(o)) return -1;
        PyObject    *f = PyNumber_Float(o);
        const double x = f ? PyFloat_AS_DOUBLE(f) : NAN;
        Py_XDECREF(f);
        PyErr_Clear();
        if (x != trunc(x) || !isfinite(x)) return -1;
        if (fabs(x) > 1e9) return 0;
        *out = (int64_t)x;
        return 1;
    }
    int             overflow;
    const long long x = PyLong_AsLongLongAndOverflow(i, &overflow);
    Py_DECREF(i);
    if (overflow) return 0;
    *out = x;
    return 1;
}

/* a == b looks at the number in a, as int(a) == b does. An object that is no number (None, a text) is never equal to a
 * value. An object that could be equal but cannot be compared here is refused, because Python would continue with "not equal"
 * for all particles. */
static PyObject *equal(PyObject *a, PyObject *b, bool yes)
{
    int64_t x = 0, i;
    if (a == b) return PyBool_FromLong(yes);
    const int is_whole = is_value(b) ? -1 : whole(b, &x);
    if (is_whole >= 0) {
        if (!branch(a, &i)) return NULL;
        return PyBool_FromLong((is_whole && i == x) == yes);
    }
    if (is_value(b))
        return PyErr_Format(PyExc_TypeError, "Two values are not compared by %s: use int(a) %s int(b), or float(a).",
                            yes ? "==" : "!=", yes ? "==" : "!=");
    if (!operand(b) && !PyNumber_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return PyErr_Format(PyExc_TypeError,
                        "A value is compared by %s with a whole number, not with %R: use float(v), v[i], p.look(v), or "
                        "v < x, which is a value of zeros and ones.",
                        yes ? "==" : "!=", b);
}

/* a > b is a value of zeros and ones. */
static PyObject *value_compare(PyObject *a, PyObject *b, int how)
{
    if (how == Py_EQ || how == Py_NE) return equal(a, b, how == Py_EQ);
    OPERANDS(a, b);
    if (how == Py_GT) return rwspy_two(a, b, (void *)rws_greater);
    if (how == Py_LT) return rwspy_two(b, a, (void *)rws_greater);
    PyObject *other = how == Py_GE ? rwspy_two(b, a, (void *)rws_greater) : rwspy_two(a, b, (void *)rws_greater);
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

/* A parameter of several rows is indexed like an array of numpy: w[i] is a row, w[i, j] a number, w[a:b] some rows. */
static bool has_rows(PyObject *o)
{
    return Py_IS_TYPE(o, &rwspy_Param) && ((param_object *)o)->rows > 1;
}

static Py_ssize_t value_length(PyObject *o)
{
    int64_t n;
    if (has_rows(o)) return ((param_object *)o)->rows;
    return dim_of(o, &n) ? (Py_ssize_t)n : -1;
}

static PyObject *sliced(PyObject *o, int64_t first, int64_t n)
{
    py_path *h = rwspy_running("A value");
    request  c = {.kind = CALL_SLICE, .i = {(int)first, (int)n}};
    if (!h || !rwspy_var(h, o, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

/* The range of n parts that an index or a slice names: [*first, *first + *count). An index is counted from the end if it is
 * negative. False with an exception if there is no such range; `whole` and `part` are words of its message. */
static bool range_of(PyObject *index, Py_ssize_t n, const char *whole, const char *part, Py_ssize_t *first,
                     Py_ssize_t *count)
{
    if (PySlice_Check(index)) {
        Py_ssize_t to, step;
        if (PySlice_Unpack(index, first, &to, &step) != 0) return false;
        *count = PySlice_AdjustIndices(n, first, &to, step);
        if (step != 1) PyErr_Format(PyExc_ValueError, "A slice of a value has step 1, not %zd.", step);
        else if (*count == 0) PyErr_Format(PyExc_ValueError, "The slice of the value is empty.");
        return step == 1 && *count > 0;
    }
    *first = PyNumber_AsSsize_t(index, PyExc_IndexError);
    *count = 1;
    if (*first == -1 && PyErr_Occurred()) return false;
    if (*first < 0) *first += n;
    if (*first >= 0 && *first < n) return true;
    PyErr_Format(PyExc_IndexError, "The %s has %zd %ss; there is no %s %R.", whole, n, part, part, index);
    return false;
}

static PyObject *matrix_item(PyObject *o, PyObject *index)
{
    const param_object *p = (param_object *)o;
    Py_ssize_t          first, count;
    if (is_value(index)) {
        py_path *h = rwspy_running("A value");
        request  c = {.kind = CALL_ROW, .i = {p->cols}};
        return h && rwspy_var(h, o, &c.v[0]) && rwspy_var(h, index, &c.v[1]) ? rwspy_call_value(h, &c) : NULL;
    }
    if (PyTuple_Check(index)) {
        if (PyTuple_GET_SIZE(index) != 2 || PySlice_Check(PyTuple_GET_ITEM(index, 0)))
            return PyErr_Format(
                PyExc_TypeError,
                "The parameter %R cannot be indexed so: w[i] is a row, w[i, j] is a number, w[a:b] are some rows.",
                p->name);
        PyObject *row = matrix_item(o, PyTuple_GET_ITEM(index, 0));
        PyObject *r = row ? PyObject_GetItem(row, PyTuple_GET_ITEM(index, 1)) : NULL;
        Py_XDECREF(row);
        return r;
    }
    if (!range_of(index, p->rows, "parameter", "row", &first, &count)) return NULL;
    return sliced(o, first * p->cols, count * p->cols);
}

static PyObject *value_item(PyObject *o, PyObject *index)
{
    int64_t    dim;
    Py_ssize_t first, count;
    if (has_rows(o)) return matrix_item(o, index);
    if (is_value(index)) return rwspy_two(o, index, (void *)rws_pick);
    if (!dim_of(o, &dim)) return NULL;
    if (!range_of(index, (Py_ssize_t)dim, "value", "component", &first, &count)) return NULL;
    return sliced(o, first, count);
}

static PyObject *value_sequence_item(PyObject *o, Py_ssize_t i)
{
    int64_t dim;
    if (has_rows(o)) {
        const param_object *p = (param_object *)o;
        if (i >= 0 && i < p->rows) return sliced(o, i * p->cols, p->cols);
        return PyErr_Format(PyExc_IndexError, "The parameter has %d rows.", p->rows);
    }
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

PyNumberMethods rwspy_value_numbers = {
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

PyMappingMethods  rwspy_value_mapping = {.mp_length = value_length, .mp_subscript = value_item};
PySequenceMethods rwspy_value_sequence = {.sq_length = value_length, .sq_item = value_sequence_item};

/* numpy would otherwise take a value apart, number by number. */
static PyObject *value_array(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)self, (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError,
                        "A value of a program is no array: it has a vector for each particle. Path.look "
                        "gives the numbers of those that share a path; the functions of rws compute with it.");
}

PyMethodDef rwspy_value_methods[] = {
    {"__array__", (PyCFunction)(void (*)(void))value_array, METH_VARARGS | METH_KEYWORDS, "Refused: use Path.look."},
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
    .tp_as_number = &rwspy_value_numbers,
    .tp_as_mapping = &rwspy_value_mapping,
    .tp_as_sequence = &rwspy_value_sequence,
    .tp_methods = rwspy_value_methods,
    .tp_richcompare = value_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
