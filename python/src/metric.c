/* metric.c - metrics and snapshots of a model in Python: an evaluation and a particle as Python objects. */
#include "rwspy.h"

#include <math.h>

typedef struct {
    PyObject_HEAD rws_eval *e;
    py_state               *state;
} eval_object;

typedef struct {
    PyObject_HEAD const rws_particle *p;
    py_state                         *state;
} particle_object;

static void object_free(PyObject *o)
{
    PyObject_Free(o);
}

static PyObject *eval_new(rws_eval *e, const void *state)
{
    eval_object *o = PyObject_New(eval_object, &rwspy_Eval);
    if (!o) return NULL;
    o->e = e;
    o->state = (py_state *)state;
    return (PyObject *)o;
}

static rws_status measured(int i, rws_eval *e, const void *state, double *value, rws_error *err)
{
    py_state  *s = (py_state *)state;
    rws_status status = RWS_OK;
    rwspy_take();
    PyObject *o = eval_new(e, state), *r = o ? PyObject_CallMethod(s->self, "_metric", "iO", i, o) : NULL;
    *value = r ? PyFloat_AsDouble(r) : NAN;
    if (PyErr_Occurred()) status = rwspy_failed(s->program, s->program->metrics[i].name, err);
    if (o) ((eval_object *)o)->e = NULL;
    Py_XDECREF(o);
    Py_XDECREF(r);
    rwspy_give();
    return status;
}

static rws_status shown(int i, rws_eval *e, const void *state, rws_error *err)
{
    py_state  *s = (py_state *)state;
    rws_status status = RWS_OK;
    rwspy_take();
    PyObject *o = eval_new(e, state), *r = o ? PyObject_CallMethod(s->self, "_snapshot", "iO", i, o) : NULL;
    if (!r) status = rwspy_failed(s->program, s->program->snapshots[i].name, err);
    if (o) ((eval_object *)o)->e = NULL;
    Py_XDECREF(o);
    Py_XDECREF(r);
    rwspy_give();
    return status;
}

/* A number of a particle. An exception makes it NaN, and is raised when the evaluation is over. */
static double particle_number(int i, const rws_particle *p, const void *state)
{
    py_state *s = (py_state *)state;
    double    x = NAN;
    rwspy_take();
    particle_object *o = PyObject_New(particle_object, &rwspy_Particle);
    if (o) {
        o->p = p;
        o->state = s;
    }
    PyObject *r = o ? PyObject_CallMethod(s->self, "_metric", "iO", i, o) : NULL;
    if (r) x = PyFloat_AsDouble(r);
    if (PyErr_Occurred()) {
        char message[400];
        x = NAN;
        rwspy_keep_exception(s->program, s->program->metrics[i].name, message, sizeof message);
        s->program->left = true;
    }
    if (o) o->p = NULL;
    Py_XDECREF(o);
    Py_XDECREF(r);
    rwspy_give();
    return x;
}

#define EACH8(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define EACH64(X) EACH8(X, 0) EACH8(X, 01) EACH8(X, 02) EACH8(X, 03) EACH8(X, 04) EACH8(X, 05) EACH8(X, 06) EACH8(X, 07)
/* The library does not say which metric it measures, so that each metric has functions of its own. Numbers are octal. */
#define FUNCTIONS(i)                                                                             \
    static rws_status measure_##i(rws_eval *e, const void *state, double *value, rws_error *err) \
    {                                                                                            \
        return measured(i, e, state, value, err);                                                \
    }                                                                                            \
    static rws_status show_##i(rws_eval *e, const void *state, rws_error *err)                   \
    {                                                                                            \
        return shown(i, e, state, err);                                                          \
    }                                                                                            \
    static double particle_##i(const rws_particle *p, const void *state)                         \
    {                                                                                            \
        return particle_number(i, p, state);                                                     \
    }
EACH64(FUNCTIONS)

#define ENTRY(i) {measure_##i, show_##i, particle_##i},
const metric_callbacks rwspy_metric_callbacks[RWS_MAX_METRICS] = {EACH64(ENTRY)};
_Static_assert(RWS_MAX_METRICS == 64, "functions for every metric");

static PyObject *fields_of(const py_state *s, const float *(*get)(const void *from, const char *field),
                           const void *from, Py_ssize_t n, PyObject *name)
{
    PyObject   *size = PyDict_GetItemWithError(s->sizes, name);
    const char *text = size ? PyUnicode_AsUTF8(name) : NULL;
    if (!text) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_KeyError, "The data have no field %R.", name);
    const float *x = get(from, text);
    if (!x) return PyErr_Format(PyExc_KeyError, "There are no numbers of field %R.", name);
    return rwspy_array(x, n, PyLong_AsLong(size));
}

static const float *test_field(const void *e, const char *field)
{
    return rws_eval_field(e, field);
}

static eval_object *good_eval(PyObject *self)
{
    eval_object *o = (eval_object *)self;
    if (o->e) return o;
    PyErr_SetString(rwspy_Error, "An evaluation can be used only in the function that got it.");
    return NULL;
}

static PyObject *eval_field(PyObject *self, PyObject *name)
{
    eval_object *o = good_eval(self);
    return o ? fields_of(o->state, test_field, o->e, rws_eval_size(o->e), name) : NULL;
}

static PyObject *eval_size(PyObject *self, void *unused)
{
    (void)unused;
    eval_object *o = good_eval(self);
    return o ? PyLong_FromLong(rws_eval_size(o->e)) : NULL;
}

/* Arrays of n data, one for each field in the order of declaration. The caller frees them, also after a failure. */
static bool read_fields(const py_state *s, PyObject *list, int n, float *fields[RWS_FIELDS])
{
    PyObject  *name, *size;
    Py_ssize_t at = 0, count;
    for (int i = 0; PyDict_Next(s->sizes, &at, &name, &size); i++) {
        PyObject *array = i < RWS_FIELDS ? PyList_GetItem(list, i) : NULL;
        if (!array || !rwspy_floats(array, &fields[i], &count)) return false;
        if (count == (Py_ssize_t)n * PyLong_AsLong(size)) continue;
        PyErr_Format(PyExc_ValueError, "The field %R has %d x %R numbers, not %zd.", name, n, size, count);
        return false;
    }
    return true;
}

static void free_fields(float *fields[RWS_FIELDS])
{
    for (int i = 0; i < RWS_FIELDS; i++) PyMem_Free(fields[i]);
}

/* _compute(function, dim, n, [arrays]) */
static PyObject *eval_compute(PyObject *self, PyObject *args)
{
    eval_object *o = good_eval(self);
    PyObject    *f, *list, *r = NULL;
    int          dim, n;
    float       *fields[RWS_FIELDS] = {0}, *out = NULL;
    if (!o || !PyArg_ParseTuple(args, "OiiO!", &f, &dim, &n, &PyList_Type, &list)) return NULL;
    if (dim < 1 || n < 1) return PyErr_Format(PyExc_ValueError, "compute needs at least one number and one datum.");
    if (!read_fields(o->state, list, n, fields)) goto end;
    out = PyMem_Calloc((size_t)n * (size_t)dim + 1, sizeof *out);
    if (!out) {
        PyErr_NoMemory();
        goto end;
    }
    rws_error err = {{0}};
    Py_XSETREF(o->state->compute, Py_NewRef(f));
    o->state->compute_dim = dim;
    rwspy_begin();
    const rws_status status = rws_eval_compute(o->e, rwspy_compute, n, (const float *const *)fields, out, &err);
    rwspy_end();
    r = status == RWS_OK ? rwspy_array(out, n, dim) : rwspy_raise(o->state->program, status, &err);
end:
    free_fields(fields);
    PyMem_Free(out);
    return r;
}

/* _dream(program, n): the mean of log q over n samples of a program that takes the place of the model */
static PyObject *eval_dream(PyObject *self, PyObject *args)
{
    eval_object *o = good_eval(self);
    PyObject    *f;
    int          n;
    double       log_q;
    rws_error    err = {{0}};
    if (!o || !PyArg_ParseTuple(args, "Oi", &f, &n)) return NULL;
    if (n < 1) return PyErr_Format(PyExc_ValueError, "dream needs at least one sample.");
    Py_XSETREF(o->state->compute, Py_NewRef(f));
    rwspy_begin();
    const rws_status status = rws_eval_dream(o->e, rwspy_dream, n, &log_q, &err);
    rwspy_end();
    return status == RWS_OK ? PyFloat_FromDouble(log_q) : rwspy_raise(o->state->program, status, &err);
}

typedef struct {
    py_state *state;
    PyObject *f;
    bool      failed; /* by an exception, which the program keeps */
} guessing;

static void guessed(const rws_particle *p, int count, void *context)
{
    guessing *g = context;
    if (g->failed) return;
    rwspy_take();
    particle_object *o = PyObject_New(particle_object, &rwspy_Particle);
    if (o) {
        o->p = p;
        o->state = g->state;
    }
    PyObject *r = o ? PyObject_CallFunction(g->f, "Oi", o, count) : NULL;
    if (!r) {
        char message[400];
        g->failed = true;
        rwspy_keep_exception(g->state->program, "guess", message, sizeof message);
    }
    if (o) o->p = NULL;
    Py_XDECREF(o);
    Py_XDECREF(r);
    rwspy_give();
}

/* _guess(function, particles, [arrays]): function(particle, count) for particles of the guide for one datum */
static PyObject *eval_guess(PyObject *self, PyObject *args)
{
    eval_object *o = good_eval(self);
    PyObject    *f, *list;
    int          particles;
    float       *fields[RWS_FIELDS] = {0};
    rws_error    err = {{0}};
    if (!o || !PyArg_ParseTuple(args, "OiO!", &f, &particles, &PyList_Type, &list)) return NULL;
    if (particles < 1) return PyErr_Format(PyExc_ValueError, "guess needs at least one particle.");
    const bool good = read_fields(o->state, list, 1, fields);
    guessing   g = {o->state, f, false};
    rws_status status = RWS_OK;
    if (good) {
        rwspy_begin();
        status = rws_eval_guess(o->e, (const float *const *)fields, particles, guessed, &g, &err);
        rwspy_end();
    }
    free_fields(fields);
    if (!good) return NULL;
    if (g.failed) return rwspy_raise(o->state->program, RWS_BAD_INPUT, &err);
    if (status != RWS_OK) return rwspy_raise(o->state->program, status, &err);
    Py_RETURN_NONE;
}

static PyObject *eval_show(PyObject *self, PyObject *args)
{
    eval_object *o = good_eval(self);
    double       value;
    const char  *label = NULL;
    if (!o || !PyArg_ParseTuple(args, "d|z:show", &value, &label)) return NULL;
    rws_eval_show(o->e, label, value);
    Py_RETURN_NONE;
}

static PyMethodDef eval_methods[] = {
    {"field", eval_field, METH_O, "field(name)\n\nA field of all test data, n x dim."},
    {"_compute", eval_compute, METH_VARARGS, NULL},
    {"_dream", eval_dream, METH_VARARGS, NULL},
    {"_guess", eval_guess, METH_VARARGS, NULL},
    {"show", eval_show, METH_VARARGS, "show(value, label=None)\n\nAdds a number to the snapshot."},
    {0},
};
static PyGetSetDef eval_members[] = {{"size", eval_size, NULL, "How many test data there are.", NULL}, {0}};

PyTypeObject rwspy_Eval = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Eval",
    .tp_doc = "One evaluation of a run.",
    .tp_basicsize = sizeof(eval_object),
    .tp_dealloc = object_free,
    .tp_methods = eval_methods,
    .tp_getset = eval_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

static const float *particle_field(const void *p, const char *field)
{
    return rws_particle_datum(p, field);
}

static particle_object *good_particle(PyObject *self)
{
    particle_object *o = (particle_object *)self;
    if (o->p) return o;
    PyErr_SetString(rwspy_Error, "A particle can be used only in the function that got it.");
    return NULL;
}

static PyObject *particle_datum(PyObject *self, PyObject *name)
{
    particle_object *o = good_particle(self);
    PyObject        *row = o ? fields_of(o->state, particle_field, o->p, 1, name) : NULL;
    PyObject        *r = row ? PyObject_CallMethod(row, "reshape", "i", -1) : NULL;
    Py_XDECREF(row);
    return r;
}

/* report(name, time=0): a text, or the first number of a value */
static PyObject *particle_report(PyObject *self, PyObject *args)
{
    particle_object *o = good_particle(self);
    const char      *name;
    int              time = 0;
    if (!o || !PyArg_ParseTuple(args, "s|i:report", &name, &time)) return NULL;
    const char *text = rws_particle_text(o->p, name, time);
    if (text) return PyUnicode_FromString(text);
    const float *value = rws_particle_report(o->p, name, time);
    if (value) return PyFloat_FromDouble((double)*value);
    Py_RETURN_NONE;
}

static PyMethodDef particle_methods[] = {
    {"datum", particle_datum, METH_O, "datum(field)\n\nA field of the particle's datum."},
    {"report", particle_report, METH_VARARGS,
     "report(name, time=0)\n\nWhat the programs reported: a text, the first number of a value, or None."},
    {0},
};

PyTypeObject rwspy_Particle = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Particle",
    .tp_doc = "One particle of a test datum.",
    .tp_basicsize = sizeof(particle_object),
    .tp_dealloc = object_free,
    .tp_methods = particle_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
