/* random.c - streams of random numbers, for setup, data and em. */
#include "rwspy.h"

PyObject *rwspy_random_new(rws_random *g)
{
    random_object *o = PyObject_New(random_object, &rwspy_Random);
    if (o) o->random = g;
    return (PyObject *)o;
}

static void random_free(PyObject *o)
{
    PyObject_Free(o);
}

static rws_random *stream(PyObject *self)
{
    rws_random *g = ((random_object *)self)->random;
    if (!g) PyErr_SetString(rwspy_Error, "The stream of random numbers can be used only in the function that got it.");
    return g;
}

static PyObject *random_uniform(PyObject *self, PyObject *unused)
{
    (void)unused;
    rws_random *g = stream(self);
    return g ? PyFloat_FromDouble(rws_random_uniform(g)) : NULL;
}

static PyObject *random_normal(PyObject *self, PyObject *unused)
{
    (void)unused;
    rws_random *g = stream(self);
    return g ? PyFloat_FromDouble(rws_random_normal(g)) : NULL;
}

static PyObject *random_below(PyObject *self, PyObject *n)
{
    rws_random *g = stream(self);
    int         most;
    if (!g || !rwspy_int(n, &most)) return NULL;
    if (most < 1) return PyErr_Format(PyExc_ValueError, "below(n) needs an n of at least 1, not %d.", most);
    return PyLong_FromLong(rws_random_below(g, (uint32_t)most));
}

static PyObject *random_many(PyObject *self, PyObject *count, void (*fill)(rws_random *, size_t, float *))
{
    rws_random      *g = stream(self);
    const Py_ssize_t n = g ? PyNumber_AsSsize_t(count, PyExc_OverflowError) : 0;
    if (!g || PyErr_Occurred()) return NULL;
    if (n < 0) return PyErr_Format(PyExc_ValueError, "A number of numbers is not negative: %zd.", n);
    float *x = PyMem_Malloc((size_t)n * sizeof *x + 1);
    if (!x) return PyErr_NoMemory();
    fill(g, (size_t)n, x);
    PyObject *row = rwspy_array(x, n, 1), *r = row ? PyObject_CallMethod(row, "reshape", "i", -1) : NULL;
    Py_XDECREF(row);
    PyMem_Free(x);
    return r;
}

static PyObject *random_uniforms(PyObject *self, PyObject *n)
{
    return random_many(self, n, rws_random_uniforms);
}

static PyObject *random_normals(PyObject *self, PyObject *n)
{
    return random_many(self, n, rws_random_normals);
}

static PyMethodDef random_methods[] = {
    {"uniform", random_uniform, METH_NOARGS, "uniform()\n\nA number in (0, 1)."},
    {"normal", random_normal, METH_NOARGS, "normal()\n\nA standard normal number."},
    {"below", random_below, METH_O, "below(n)\n\nAn integer in 0 ... n - 1."},
    {"uniforms", random_uniforms, METH_O, "uniforms(n)\n\nn numbers in (0, 1), as an array of float32."},
    {"normals", random_normals, METH_O, "normals(n)\n\nn standard normal numbers, as an array of float32."},
    {0},
};

PyTypeObject rwspy_Random = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Random",
    .tp_doc = "A stream of random numbers, the same whenever the run is repeated.",
    .tp_basicsize = sizeof(random_object),
    .tp_dealloc = random_free,
    .tp_methods = random_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
