/* param.c - parameters as Python objects, and the scope that says whether those of a setup can still be used. */
#include "rwspy.h"

#include <string.h>

/* ---- a scope: dead after the release of the setup that its parameters and layers are from */

PyTypeObject rwspy_Scope = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Scope",
    .tp_doc = "Whether the parameters and layers of a setup can still be used.",
    .tp_basicsize = sizeof(scope_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

bool rwspy_scope_fits(py_path *h, const scope_object *scope, const char *what, PyObject *name)
{
    if (rwspy_state(h)->scope == scope) return true;
    PyErr_Format(rwspy_Error, "The %s %R belongs to another %s; a program uses those that its own setup declared.",
                 what, name, scope->alive ? "trainer or posterior" : "trainer, which is closed");
    return false;
}

/* ---- parameters */

PyObject *rwspy_param(rws_param *param, scope_object *scope, const char *name, int rows, int cols)
{
    param_object *p = PyObject_New(param_object, &rwspy_Param);
    if (!p) return NULL;
    p->param = param;
    p->scope = (scope_object *)Py_NewRef(scope);
    p->rows = rows;
    p->cols = cols;
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

/* Whether an array of two dimensions, such as one of numpy or PyTorch, has the parameter's shape. */
static bool fits(const param_object *p, PyObject *array)
{
    PyObject *shape = PyObject_GetAttrString(array, "shape");
    PyErr_Clear();
    const bool matrix = shape && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 2;
    const bool good = !matrix || (PyLong_AsLong(PyTuple_GET_ITEM(shape, 0)) == p->rows &&
                                  PyLong_AsLong(PyTuple_GET_ITEM(shape, 1)) == p->cols);
    if (!good && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "The parameter %R has the shape (%d, %d), not %R.", p->name, p->rows, p->cols,
                     shape);
    Py_XDECREF(shape);
    return good;
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
    if (!fits(p, to) || !rwspy_floats(to, &x, &n)) return -1;
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

static PyObject *param_compare(PyObject *a, PyObject *b, int how)
{
    const bool same = a == b;
    if (Py_IS_TYPE(b, &rwspy_Param) && how == Py_EQ) return PyBool_FromLong(same);
    if (Py_IS_TYPE(b, &rwspy_Param) && how == Py_NE) return PyBool_FromLong(!same);
    if (Py_IS_TYPE(b, &rwspy_Value)) Py_RETURN_NOTIMPLEMENTED; /* the value compares, or says why not */
    if (b == Py_None && (how == Py_EQ || how == Py_NE)) return PyBool_FromLong(how == Py_NE);
    return PyErr_Format(
        PyExc_TypeError,
        "The parameter %R is compared with %R, and no gradient passes through a comparison. In a program, "
        "compute with the parameter itself; its numbers are in param.values.",
        ((param_object *)a)->name, b);
}

static Py_hash_t param_hash(PyObject *o)
{
    return (Py_hash_t)((uintptr_t)o >> 4);
}

static PyObject *refuse(PyObject *o, const char *what)
{
    return PyErr_Format(
        PyExc_TypeError,
        "%s() of the parameter %R would lose its gradient. In a program, compute with the parameter itself, as with "
        "a number; its numbers are in param.values.",
        what, ((param_object *)o)->name);
}

static PyObject *param_float(PyObject *o)
{
    return refuse(o, "float");
}

static PyObject *param_int(PyObject *o)
{
    return refuse(o, "int");
}

static int param_bool(PyObject *o)
{
    refuse(o, "bool");
    return -1;
}

static PyNumberMethods numbers;

/* Operators are those of values; only what would lose the gradient is not. */
void rwspy_param_ready(void)
{
    numbers = rwspy_value_numbers;
    numbers.nb_float = param_float;
    numbers.nb_int = numbers.nb_index = param_int;
    numbers.nb_bool = param_bool;
}

PyTypeObject rwspy_Param = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Param",
    .tp_doc = "A matrix of numbers to learn. In a program it stands for its values, as one vector; of a matrix of "
              "several rows,\n"
              "w[i] is a row and w[i, j] a number.",
    .tp_basicsize = sizeof(param_object),
    .tp_dealloc = param_free,
    .tp_repr = param_repr,
    .tp_as_number = &numbers,
    .tp_richcompare = param_compare,
    .tp_hash = param_hash,
    .tp_as_mapping = &rwspy_value_mapping,
    .tp_as_sequence = &rwspy_value_sequence,
    .tp_getset = param_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
