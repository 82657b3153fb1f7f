/* config.c - the configuration of a run: a dictionary in Python, an rws_config in the library. */
#include "rwspy.h"

/* Texts point into the objects of the dictionary. */
static bool read_text(PyObject *d, const char *key, const char **out)
{
    PyObject *o = PyDict_GetItemString(d, key);
    if (!o || o == Py_None) return true;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "%s is a text, not %.100s.", key, Py_TYPE(o)->tp_name);
        return false;
    }
    *out = PyUnicode_AsUTF8(o);
    return *out != NULL;
}

static bool read_whole(PyObject *d, const char *key, uint64_t most, uint64_t *out)
{
    PyObject *o = PyDict_GetItemString(d, key);
    if (!o || o == Py_None) return true;
    PyObject *i = PyNumber_Index(o);
    if (!i) {
        PyErr_Format(PyExc_TypeError, "%s is a whole number, not %R.", key, o);
        return false;
    }
    *out = PyLong_AsUnsignedLongLong(i);
    Py_DECREF(i);
    if (!PyErr_Occurred() && *out <= most) return true;
    PyErr_Format(PyExc_ValueError, "%s is a number from 0 to %llu, not %R.", key, (unsigned long long)most, o);
    return false;
}

static bool read_int(PyObject *d, const char *key, int *out)
{
    uint64_t x = (uint64_t)*out;
    if (!read_whole(d, key, INT32_MAX, &x)) return false;
    *out = (int)x;
    return true;
}

bool rwspy_config_read(PyObject *d, rws_config *c)
{
    uint64_t  scalar = 0, stack = 0, changed = 0, no_check = 0;
    PyObject *set = PyDict_GetItemString(d, "set"), *l2 = PyDict_GetItemString(d, "l2");
    PyObject *resample = PyDict_GetItemString(d, "resample");
    *c = (rws_config){0};
    if (!read_text(d, "model", &c->model) || !read_text(d, "method", &c->method) ||
        !read_int(d, "particles", &c->particles) || !read_int(d, "batch", &c->batch) ||
        !read_int(d, "shards", &c->shards) || !read_int(d, "n_test", &c->n_test) ||
        !read_int(d, "eval_particles", &c->eval_particles) || !read_whole(d, "iterations", INT64_MAX, &c->iterations) ||
        !read_whole(d, "eval_every", INT64_MAX, &c->eval_every) || !read_whole(d, "seed", UINT64_MAX, &c->seed) ||
        !read_int(d, "particle_shards", &c->particle_shards) || !read_int(d, "threads", &c->threads) ||
        !read_whole(d, "scalar", 1, &scalar) || !read_whole(d, "changed", 1, &changed) ||
        !read_whole(d, "no_check", 1, &no_check) || !read_text(d, "optimiser", &c->optimiser) ||
        !read_text(d, "lr", &c->lr) || !read_whole(d, "stack_bytes", SIZE_MAX, &stack) ||
        !read_whole(d, "max_operations", UINT64_MAX, &c->limits.max_operations) ||
        !read_whole(d, "max_paths", UINT64_MAX, &c->limits.max_paths) ||
        !read_whole(d, "max_nodes", UINT64_MAX, &c->limits.max_nodes))
        return false;
    c->scalar = scalar;
    c->changed = changed;
    c->no_check = no_check;
    c->limits.stack_bytes = stack;
    if (l2 && l2 != Py_None) c->l2 = PyFloat_AsDouble(l2);
    if (resample && resample != Py_None) c->resample = PyFloat_AsDouble(resample);
    if (PyErr_Occurred()) return false;
    if (!set || set == Py_None) return true;
    if (!PyList_Check(set) || PyList_GET_SIZE(set) > RWS_MAX_SET) {
        PyErr_Format(PyExc_ValueError, "At most %d settings can be given.", RWS_MAX_SET);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(set); i++)
        if (!(c->set[c->n_set++] = PyUnicode_AsUTF8(PyList_GET_ITEM(set, i)))) return false;
    return true;
}

PyObject *rwspy_config_object(const rws_config *c)
{
    PyObject *set = PyList_New(0);
    for (int i = 0; set && i < c->n_set; i++) {
        PyObject *text = PyUnicode_FromString(c->set[i]);
        if (!text || PyList_Append(set, text) != 0) Py_CLEAR(set);
        Py_XDECREF(text);
    }
    if (!set) return NULL;
    return Py_BuildValue("{s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:K,s:K,s:K,s:i,s:O,s:s,s:s,s:d,s:d,s:i,s:N}", "model", c->model,
                         "method", c->method, "particles", c->particles, "batch", c->batch, "shards", c->shards,
                         "n_test", c->n_test, "eval_particles", c->eval_particles, "iterations",
                         (unsigned long long)c->iterations, "eval_every", (unsigned long long)c->eval_every, "seed",
                         (unsigned long long)c->seed, "threads", c->threads, "scalar", c->scalar ? Py_True : Py_False,
                         "optimiser", c->optimiser, "lr", c->lr, "l2", c->l2, "resample", c->resample,
                         "particle_shards", c->particle_shards, "set", set);
}
