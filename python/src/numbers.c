/* numbers.c - numbers between Python and C: ints, arrays of float32, and the numbers that a program looks at. */
#include "rwspy.h"

#include <limits.h>
#include <string.h>

/* ---- from Python to C and back */

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

/* ---- numbers that a program looks at (Path.look) */

typedef struct {
    PyObject_HEAD const float *at;
    int                        n;
    uint64_t                   serial;
    bool                       in_guide; /* the guide has looked at them */
} numbers_object;

PyObject *rwspy_numbers(const py_path *h, const float *at, int n)
{
    numbers_object *o = PyObject_New(numbers_object, &rwspy_Numbers);
    if (!o) return NULL;
    o->at = at;
    o->n = n;
    o->serial = rwspy_serial(h);
    o->in_guide = rwspy_in_guide(h);
    return (PyObject *)o;
}

static bool numbers_good(const numbers_object *o)
{
    const py_path *h = rwspy_current();
    const bool     here = h && rwspy_serial(h) == o->serial;
    if (here && !(o->in_guide && rwspy_in_model(h))) return true;
    if (here)
        PyErr_SetString(rwspy_Error,
                        "The model uses numbers that the guide has looked at (Path.look); it must not know what the "
                        "guide does.");
    else PyErr_SetString(rwspy_Error, "The numbers belong to an execution of a program that is over.");
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

static PyObject *numbers_repr(PyObject *self)
{
    if (!numbers_good((const numbers_object *)self)) {
        PyErr_Clear();
        return PyUnicode_FromString("<rws.Numbers of an execution that is over>");
    }
    PyObject *list = PySequence_List(self), *r = list ? PyObject_Repr(list) : NULL;
    Py_XDECREF(list);
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
    .tp_repr = numbers_repr,
    .tp_as_mapping = &numbers_mapping,
    .tp_as_sequence = &numbers_sequence,
    .tp_methods = numbers_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
