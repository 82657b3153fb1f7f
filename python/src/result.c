/* result.c - what the stores of runs say, and the tables of the library. */
#include "rwspy.h"

static PyObject *result_object(const rws_result *r)
{
    PyObject *keys = PyDict_New(), *histories = PyDict_New(), *shots = PyList_New(0);
    bool      good = keys && histories && shots;
    for (int i = 0; good && i < r->n_keys; i++) {
        PyObject *x = rwspy_text(r->keys[i].value);
        good = x && PyDict_SetItemString(keys, r->keys[i].key, x) == 0;
        Py_XDECREF(x);
    }
    for (int i = 0; good && i < r->n_histories; i++) {
        const rws_history *h = &r->histories[i];
        PyObject          *a = rwspy_doubles(h->iterations, h->n), *b = rwspy_doubles(h->seconds, h->n),
                 *c = rwspy_doubles(h->values, h->n), *x = a && b && c ? PyTuple_Pack(3, a, b, c) : NULL;
        good = x && PyDict_SetItemString(histories, h->metric, x) == 0;
        Py_XDECREF(a);
        Py_XDECREF(b);
        Py_XDECREF(c);
        Py_XDECREF(x);
    }
    for (int i = 0; good && i < r->n_shots; i++) {
        const rws_shot *s = &r->shots[i];
        PyObject       *labels = PyList_New(s->n), *values = rwspy_doubles(s->values, s->n);
        for (int k = 0; labels && k < s->n; k++) {
            PyObject *label = rwspy_text(s->labels[k]);
            if (label) PyList_SET_ITEM(labels, k, label);
            else Py_CLEAR(labels);
        }
        PyObject *x = labels && values
                          ? Py_BuildValue("(sKNN)", s->name, (unsigned long long)s->iteration, values, labels)
                          : NULL;
        good = x && PyList_Append(shots, x) == 0;
        Py_XDECREF(x);
    }
    if (good) /* a run is called by its folder, whose name Python has as it has other names of files */
        return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N,s:s,s:K,s:K,s:d,s:N,s:N,s:N}", "name",
                             PyUnicode_DecodeFSDefault(r->name), "store", PyUnicode_DecodeFSDefault(r->store), "host",
                             rwspy_text(r->host), "version", rwspy_text(r->version), "started", rwspy_text(r->started),
                             "failure", rwspy_text(r->failure), "state", rws_result_state(r), "iteration",
                             (unsigned long long)r->iteration, "iterations", (unsigned long long)r->iterations,
                             "seconds", r->seconds, "config", keys, "metrics", histories, "snapshots", shots);
    Py_XDECREF(keys);
    Py_XDECREF(histories);
    Py_XDECREF(shots);
    return NULL;
}

#define MAX_PATHS 256 /* and conditions */

/* The runs in stores, a list; NULL with an exception. */
static PyObject *read_results(const char *const *path, Py_ssize_t n, const char *const *condition, Py_ssize_t m)
{
    rws_results *found = NULL;
    rws_error    err = {{0}};
    rwspy_begin();
    rws_status status = rws_results_read(path, (int)n, &found, &err);
    if (status == RWS_OK && m) status = rws_results_filter(found, condition, (int)m, &err);
    rwspy_end();
    if (status != RWS_OK) {
        rws_results_free(found);
        return rwspy_raise(NULL, status, &err);
    }
    PyObject *list = PyList_New(found->n);
    for (int i = 0; list && i < found->n; i++) {
        PyObject *r = result_object(&found->runs[i]);
        if (r) PyList_SET_ITEM(list, i, r);
        else Py_CLEAR(list);
    }
    rws_results_free(found);
    return list;
}

static PyObject *results(PyObject *module, PyObject *args)
{
    PyObject   *paths, *conditions, *held[MAX_PATHS] = {0}, *list = NULL;
    const char *path[MAX_PATHS], *condition[MAX_PATHS];
    bool        good = true;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &paths, &PyList_Type, &conditions)) return NULL;
    const Py_ssize_t n = PyList_GET_SIZE(paths), m = PyList_GET_SIZE(conditions);
    if (n > MAX_PATHS || m > MAX_PATHS)
        return PyErr_Format(PyExc_ValueError, "At most %d paths and conditions can be given.", MAX_PATHS);
    for (Py_ssize_t i = 0; i < n && good; i++) {
        good = PyUnicode_FSConverter(PyList_GET_ITEM(paths, i), &held[i]);
        if (good) path[i] = PyBytes_AS_STRING(held[i]);
    }
    for (Py_ssize_t i = 0; i < m && good; i++)
        good = (condition[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(conditions, i))) != NULL;
    if (good) list = read_results(path, n, condition, m);
    for (Py_ssize_t i = 0; i < n; i++) Py_XDECREF(held[i]);
    return list;
}

static PyObject *tables(PyObject *module, PyObject *args)
{
    (void)module, (void)args;
    PyObject *models = PyDict_New(), *methods = PyDict_New(), *optimisers = PyDict_New();
    bool      good = models && methods && optimisers;
    for (int i = 0; good && rws_model_at(i); i++) {
        PyObject *x = PyUnicode_FromString(rws_model_at(i)->help);
        good = x && PyDict_SetItemString(models, rws_model_at(i)->name, x) == 0;
        Py_XDECREF(x);
    }
    rws_method_info m;
    for (int i = 0; good && rws_method_at(i, &m); i++) {
        PyObject *x = PyUnicode_FromString(m.help);
        good = x && PyDict_SetItemString(methods, m.name, x) == 0;
        Py_XDECREF(x);
    }
    rws_optimiser_info op;
    for (int i = 0; good && rws_optimiser_at(i, &op); i++) {
        PyObject *x = PyUnicode_FromString(op.help);
        good = x && PyDict_SetItemString(optimisers, op.name, x) == 0;
        Py_XDECREF(x);
    }
    if (good) return Py_BuildValue("(NNN)", models, methods, optimisers);
    Py_XDECREF(models);
    Py_XDECREF(methods);
    Py_XDECREF(optimisers);
    return NULL;
}

PyMethodDef rwspy_result_functions[] = {
    {"results", results, METH_VARARGS, "results(paths, conditions)\n\nWhat the stores of runs say."},
    {"tables", tables, METH_NOARGS, "tables()\n\nThe models, methods and optimisers of the library."},
    {0},
};
