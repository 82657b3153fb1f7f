/* trainer.c - training. The class Trainer of rws/_run.py stands on this one. */
#include "rwspy.h"

#include <string.h>
#include <unistd.h>

/* Choices of a datum, which must last until the iteration ends. `list` owns the texts. */
struct given {
    rws_choice   *choices;
    int           n;
    PyObject     *list;
    struct given *next;
};

typedef struct {
    PyObject_HEAD rws_trainer *t;
    program_object            *program; /* NULL: a model in C */
    pid_t                      process;
    bool                       busy;    /* the library works with it */
    bool                       between; /* busy, but in a callback between two iterations, which may use the trainer */
    bool                       stop;
    PyObject                  *stopping, *progress, *evaluated; /* callbacks of train */
    PyObject                  *exception;                       /* the first one that a callback raised */
    PyObject                  *giver;                           /* the function that gives choices to training */
    struct given              *given;                           /* what the giver gave in the present iteration */
    PyObject                  *weak;
} trainer_object;

static const char closed[] = "The trainer is closed; rws.open(folder, …) reads a run that has a folder.";

static bool usable(trainer_object *o)
{
    if (!rwspy_outside_of_programs()) return false;
    if (!o->t) PyErr_SetString(rwspy_Error, closed);
    else if (o->process != getpid())
        PyErr_SetString(PyExc_RuntimeError,
                        "The trainer belongs to the process that made it, and this one was forked from it. "
                        "Open the run's folder here instead.");
    else if (o->busy && !o->between)
        PyErr_SetString(PyExc_RuntimeError, "The trainer is in use, by another thread or by a callback.");
    else return true;
    return false;
}

/* Around every function of the library that takes the trainer. What an earlier call left, such as the exceptions of programs that
 * were stopped, is not this one's. */
static bool trainer_begin(trainer_object *o, bool *before)
{
    if (!usable(o)) return false;
    *before = o->busy;
    if (!o->busy && o->program) PyList_SetSlice(o->program->exceptions, 0, PY_SSIZE_T_MAX, NULL);
    o->busy = true;
    rwspy_begin();
    return true;
}

static void trainer_end(trainer_object *o, bool before)
{
    rwspy_end();
    o->busy = before;
}

/* Trainer(program or None, config, folder or None, resume) */
static PyObject *trainer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject  *program, *d, *path, *held = NULL;
    int        resume;
    rws_config c;
    rws_error  err = {{0}};
    (void)keywords;
    if (!rwspy_outside_of_programs() || !PyArg_ParseTuple(args, "OO!Op", &program, &PyDict_Type, &d, &path, &resume) ||
        !rwspy_config_read(d, &c))
        return NULL;
    if (program != Py_None && !Py_IS_TYPE(program, &rwspy_Program))
        return PyErr_Format(PyExc_TypeError, "This is no program.");
    if (path != Py_None && !PyUnicode_FSConverter(path, &held)) return NULL;
    const char     *folder = held ? PyBytes_AS_STRING(held) : NULL;
    trainer_object *o = (trainer_object *)type->tp_alloc(type, 0);
    if (!o) {
        Py_XDECREF(held);
        return NULL;
    }
    o->process = getpid();
    if (program != Py_None) o->program = (program_object *)Py_NewRef(program);
    const rws_model *m = o->program ? &o->program->model : NULL;
    rwspy_begin();
    rws_status status = resume ? rws_trainer_resume(folder, &c, m, &o->t, &err) : rws_trainer_new(&c, m, &o->t, &err);
    if (status == RWS_OK && folder && !resume) status = rws_trainer_keep(o->t, folder, &err);
    rwspy_end();
    Py_XDECREF(held);
    if (status == RWS_OK) return (PyObject *)o;
    rwspy_raise(o->program, status, &err);
    Py_DECREF(o);
    return NULL;
}

static void trainer_close_it(trainer_object *o)
{
    rws_trainer *t = o->t;
    o->t = NULL;
    Py_CLEAR(o->giver);                       /* which may hold the trainer itself */
    if (!t || o->process != getpid()) return; /* a forked process has none of its threads; its memory is only a copy */
    rwspy_begin();
    rws_trainer_free(t);
    rwspy_end();
}

static PyObject *trainer_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object *o = (trainer_object *)self;
    if (o->t && o->busy) return PyErr_Format(PyExc_RuntimeError, "The trainer is in use.");
    if (!rwspy_outside_of_programs()) return NULL;
    trainer_close_it(o);
    Py_RETURN_NONE;
}

static void forget_given(trainer_object *o)
{
    for (struct given *g = o->given, *next; g; g = next) {
        next = g->next;
        rwspy_choices_release(g->choices, g->n);
        Py_DECREF(g->list);
        PyMem_Free(g);
    }
    o->given = NULL;
}

/* The giver is a function of the user's, which may refer to the trainer. */
static int trainer_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((trainer_object *)self)->giver);
    return 0;
}

static int trainer_clear(PyObject *self)
{
    trainer_close_it((trainer_object *)self);
    return 0;
}

static void trainer_free(PyObject *self)
{
    trainer_object *o = (trainer_object *)self;
    PyObject       *type, *value, *trace;
    PyObject_GC_UnTrack(self);
    if (o->weak) PyObject_ClearWeakRefs(self);
    PyErr_Fetch(&type, &value, &trace);
    trainer_close_it(o);
    PyErr_Restore(type, value, trace);
    Py_XDECREF(o->program);
    Py_XDECREF(o->exception);
    forget_given(o);
    Py_XDECREF(o->giver);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *ended(trainer_object *o, rws_status status, const rws_error *err)
{
    if (status == RWS_OK) Py_RETURN_NONE;
    return rwspy_raise(o->program, status, err);
}

/* Raises what a callback left, if it did. */
static bool raised(trainer_object *o)
{
    PyObject *exception = o->exception;
    o->exception = NULL;
    if (!exception) return false;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return true;
}

static PyObject *trainer_step(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object *o = (trainer_object *)self;
    rws_error       err = {{0}};
    bool            before;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_step(o->t, &err);
    trainer_end(o, before);
    return raised(o) ? NULL : ended(o, status, &err);
}

static PyObject *measures_object(const rws_measures *m)
{
    PyObject *d = PyDict_New();
    for (int i = 0; d && i < m->n; i++) {
        PyObject *x = PyFloat_FromDouble(m->value[i]);
        if (!x || PyDict_SetItemString(d, m->names[i], x) != 0) Py_CLEAR(d);
        Py_XDECREF(x);
    }
    if (!d) return NULL;
    return Py_BuildValue("(KdNdd)", (unsigned long long)m->iteration, m->seconds, d, m->log_evidence_error,
                         m->impossible);
}

/* Exceptions of metrics about particles are raised after the evaluation; those of a program that only a review has tried are
 * forgotten. */
static bool left_exception(trainer_object *o)
{
    static const rws_error none;
    const bool             left = o->program && o->program->left;
    if (left) rwspy_raise(o->program, RWS_BAD_INPUT, &none);
    else if (o->program) rwspy_forget_exceptions(o->program);
    return left;
}

static PyObject *trainer_evaluate(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object *o = (trainer_object *)self;
    rws_error       err = {{0}};
    rws_measures    m;
    bool            before;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_evaluate(o->t, &m, &err);
    trainer_end(o, before);
    if (status != RWS_OK) return ended(o, status, &err);
    return left_exception(o) ? NULL : measures_object(&m);
}

/* (findings, seconds, rows, paths, calls); a finding is (kind, severity, about, text). */
static PyObject *findings_object(const rws_check_findings *f)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < f->n; i++) {
        const rws_check_finding *at = &f->list[i];
        PyObject                *text = rwspy_spelled(at->text);
        PyObject                *entry =
            text ? Py_BuildValue("(sszN)", at->kind, rws_severity_name(at->severity), at->about, text) : NULL;
        if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    if (!list) return NULL;
    return Py_BuildValue("(NdKKK)", list, f->seconds, (unsigned long long)f->rows, (unsigned long long)f->paths,
                         (unsigned long long)f->calls);
}

static PyObject *trainer_check(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object     *o = (trainer_object *)self;
    rws_check_findings *f = NULL;
    rws_error           err = {{0}};
    bool                before;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_check(o->t, &f, &err);
    trainer_end(o, before);
    if (status != RWS_OK) return ended(o, status, &err);
    if (o->program) PyList_SetSlice(o->program->exceptions, 0, PY_SSIZE_T_MAX, NULL); /* they are among the findings */
    PyObject *out = findings_object(f);
    rws_check_free(f);
    return out;
}

static PyObject *trainer_save(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object *o = (trainer_object *)self;
    rws_error       err = {{0}};
    bool            before;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_save(o->t, &err);
    trainer_end(o, before);
    return ended(o, status, &err);
}

/* ---- callbacks of train: they run on the calling thread, between iterations */

/* Keeps the exception of a callback, which ends training. */
static void keep_callback_exception(trainer_object *o)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    if (!o->exception) o->exception = Py_XNewRef(value);
    o->stop = true;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static bool on_stop(void *context)
{
    trainer_object *o = context;
    rwspy_take();
    if (PyErr_CheckSignals() != 0) keep_callback_exception(o);
    if (!o->stop && o->stopping != Py_None) {
        PyObject *r = PyObject_CallNoArgs(o->stopping);
        const int yes = r ? PyObject_IsTrue(r) : -1;
        Py_XDECREF(r);
        if (yes < 0) keep_callback_exception(o);
        else if (yes) o->stop = true;
    }
    rwspy_give();
    return o->stop;
}

static void on_progress(void *context, const rws_trainer *t)
{
    trainer_object *o = context;
    rwspy_take();
    PyObject *r =
        PyObject_CallFunction(o->progress, "Kd", (unsigned long long)rws_trainer_iteration(t), rws_trainer_seconds(t));
    if (!r) keep_callback_exception(o);
    Py_XDECREF(r);
    rwspy_give();
}

static rws_status on_evaluated(void *context, rws_trainer *t, const rws_measures *m, bool final, rws_error *err)
{
    trainer_object *o = context;
    rws_status      status = RWS_OK;
    rwspy_take();
    o->between = true;
    PyObject *measures = left_exception(o) ? NULL : measures_object(m);
    PyObject *r = measures ? PyObject_CallFunction(o->evaluated, "OO", measures, final ? Py_True : Py_False) : NULL;
    o->between = false;
    if (!r) {
        keep_callback_exception(o);
        status = rws_fail(err, RWS_BAD_INPUT, "A callback raised an exception.");
    }
    Py_XDECREF(measures);
    Py_XDECREF(r);
    /* A callback that stops does so at this iteration, and not when the clock lets the library ask. Ranks must agree first. */
    if (status == RWS_OK && o->stop && rws_n_ranks() == 1 && m->iteration < rws_trainer_config(t)->iterations)
        status = rws_fail(err, RWS_STOPPED, "A callback stopped training.");
    rwspy_give();
    return status;
}

/* train(stop or None, progress or None, evaluated or None, save_every): True if all iterations are done. */
static PyObject *trainer_train(PyObject *self, PyObject *args)
{
    trainer_object *o = (trainer_object *)self;
    PyObject       *stop, *progress, *evaluated;
    double          save_every;
    rws_error       err = {{0}};
    bool            before;
    if (!PyArg_ParseTuple(args, "OOOd:train", &stop, &progress, &evaluated, &save_every)) return NULL;
    if (o->busy) return PyErr_Format(PyExc_RuntimeError, "The trainer is in use, by another thread or by a callback.");
    o->stopping = stop;
    o->progress = progress;
    o->evaluated = evaluated;
    o->stop = false;
    rws_watch watch = {.context = o, .stop = on_stop, .save_every = save_every};
    if (progress != Py_None) watch.progress = on_progress;
    watch.evaluated = evaluated != Py_None ? on_evaluated : NULL;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_train(o->t, &watch, &err);
    trainer_end(o, before);
    if (raised(o)) return NULL;
    if (status == RWS_STOPPED) Py_RETURN_FALSE;
    if (status != RWS_OK) return ended(o, status, &err);
    if (left_exception(o)) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *trainer_request_stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((trainer_object *)self)->stop = true;
    Py_RETURN_NONE;
}

/* ---- choices that a function gives to training */

static PyObject *fields_list(const trainer_object *o, const float *const *fields)
{
    PyObject *list = PyList_New(0);
    rws_field f;
    for (int i = 0; list && rws_trainer_field(o->t, i, &f); i++) {
        PyObject *array = rwspy_array(fields[i], 1, f.dim);
        if (!array || PyList_Append(list, array) != 0) Py_CLEAR(list);
        Py_XDECREF(array);
    }
    return list;
}

/* An exception fails the step, and the caller of the step raises it. */
static int on_give(void *context, uint64_t iteration, int datum, const float *const *fields, const rws_choice **choices)
{
    trainer_object *o = context;
    int             n = -1;
    rwspy_take();
    if (datum == 0) forget_given(o);
    PyObject     *list = fields_list(o, fields), *r = NULL;
    struct given *g = list ? PyMem_Calloc(1, sizeof *g) : NULL;
    if (g) r = PyObject_CallFunction(o->giver, "KiO", (unsigned long long)iteration, datum, list);
    if (r && rwspy_choices_read(r, &g->choices, &g->n)) {
        g->list = Py_NewRef(r);
        g->next = o->given;
        o->given = g;
        *choices = g->choices;
        n = g->n;
    } else if (g) {
        rwspy_choices_release(g->choices, g->n);
        PyMem_Free(g);
    } else if (!PyErr_Occurred()) PyErr_NoMemory();
    if (PyErr_Occurred()) keep_callback_exception(o);
    Py_XDECREF(list);
    Py_XDECREF(r);
    rwspy_give();
    return n;
}

/* give(function or None): function(iteration, datum, fields) returns [(site, visit, numbers), …] */
static PyObject *trainer_give(PyObject *self, PyObject *args)
{
    trainer_object *o = (trainer_object *)self;
    PyObject       *f;
    rws_error       err = {{0}};
    bool            before;
    if (!PyArg_ParseTuple(args, "O", &f) || !trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_give(o->t, f == Py_None ? NULL : on_give, o, &err);
    trainer_end(o, before);
    if (status == RWS_OK) Py_XSETREF(o->giver, Py_NewRef(f));
    return ended(o, status, &err);
}

/* ---- parameters */

static PyObject *trainer_params(PyObject *self, PyObject *unused)
{
    (void)unused;
    trainer_object *o = (trainer_object *)self;
    rws_param_view  v;
    if (!usable(o)) return NULL;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && rws_trainer_param(o->t, i, &v); i++) list = rwspy_params_append(list, &v);
    return list;
}

static PyObject *trainer_set_param(PyObject *self, PyObject *args)
{
    trainer_object *o = (trainer_object *)self;
    const char     *name;
    PyObject       *values;
    rws_param_view  v;
    float          *x;
    Py_ssize_t      n;
    if (!usable(o) || !PyArg_ParseTuple(args, "sO", &name, &values)) return NULL;
    if (!rws_trainer_find(o->t, name, &v)) return PyErr_Format(PyExc_KeyError, "There is no parameter \"%s\".", name);
    if (!rwspy_floats(values, &x, &n)) return NULL;
    const bool fits = n == (Py_ssize_t)v.rows * v.cols;
    if (fits) memcpy(v.values, x, (size_t)n * sizeof *x);
    PyMem_Free(x);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "The parameter \"%s\" has %d x %d numbers, not %zd.", name, v.rows,
                            v.cols, n);
    rws_trainer_changed(o->t);
    Py_RETURN_NONE;
}

static PyObject *trainer_gradient(PyObject *self, PyObject *args)
{
    trainer_object    *o = (trainer_object *)self;
    unsigned long long draw;
    int                test;
    rws_error          err = {{0}};
    bool               before;
    if (!PyArg_ParseTuple(args, "Kp", &draw, &test) || !usable(o)) return NULL;
    const size_t size = rws_trainer_size(o->t);
    float       *g = PyMem_Malloc(size * sizeof *g + 1);
    if (!g) return PyErr_NoMemory();
    PyObject *r = NULL;
    if (trainer_begin(o, &before)) {
        const rws_status status = rws_trainer_gradient(o->t, test ? RWS_TEST : RWS_TRAIN, draw, g, size, &err);
        trainer_end(o, before);
        if (!raised(o)) r = status == RWS_OK ? rwspy_array(g, 1, (Py_ssize_t)size) : ended(o, status, &err);
    }
    PyMem_Free(g);
    return r;
}

static PyObject *trainer_ask(PyObject *self, PyObject *args)
{
    trainer_object *o = (trainer_object *)self;
    rws_error       err = {{0}};
    rws_answers    *answers = NULL;
    py_question     a;
    bool            before;
    PyObject       *r = NULL;
    if (!rwspy_question_read(args, &a)) return NULL;
    if (trainer_begin(o, &before)) {
        const rws_status status = rws_trainer_ask(o->t, &a.q, &answers, &err);
        trainer_end(o, before);
        if (PyErr_Occurred()) rws_answers_free(answers);
        else r = status == RWS_OK ? rwspy_answers_object(answers) : ended(o, status, &err);
    }
    rwspy_question_release(&a);
    return r;
}

program_object *rwspy_trainer_program(PyObject *trainer)
{
    return ((trainer_object *)trainer)->program;
}

rws_posterior *rwspy_trainer_posterior(PyObject *trainer)
{
    trainer_object *o = (trainer_object *)trainer;
    rws_error       err = {{0}};
    rws_posterior  *p = NULL;
    bool            before;
    if (!trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_posterior_new(o->t, &p, &err);
    trainer_end(o, before);
    if (status == RWS_OK) return p;
    rwspy_raise(o->program, status, &err);
    return NULL;
}

static PyObject *trainer_get(PyObject *self, void *what)
{
    trainer_object *o = (trainer_object *)self;
    if (!o->t) return PyErr_Format(rwspy_Error, "%s", closed);
    switch (*(const char *)what) {
    case 'i': return PyLong_FromUnsignedLongLong(rws_trainer_iteration(o->t));
    case 's': return PyFloat_FromDouble(rws_trainer_seconds(o->t));
    case 'u': return Py_BuildValue("z", rws_trainer_unvisited(o->t));
    case 'l': return Py_BuildValue("z", rws_trainer_unlearned(o->t));
    case 'd': return rws_trainer_doubt(o->t) ? rwspy_spelled(rws_trainer_doubt(o->t)) : Py_NewRef(Py_None);
    case 'g': return Py_BuildValue("z", rws_trainer_unguided(o->t));
    case 'p': return Py_BuildValue("z", rws_trainer_impossible(o->t));
    case 'r': return rwspy_text(rws_trainer_warnings(o->t));
    case 'c': return rwspy_config_object(rws_trainer_config(o->t));
    }
    PyObject *list = PyList_New(0);
    rws_field f;
    for (int i = 0; list && rws_trainer_field(o->t, i, &f); i++) list = rwspy_fields_append(list, &f);
    return list;
}

static PyMethodDef trainer_methods[] = {
    {"step", trainer_step, METH_NOARGS, "step()\n\nOne iteration."},
    {"evaluate", trainer_evaluate, METH_NOARGS,
     "evaluate()\n\nMetrics: (iteration, seconds, values, error of log_evidence)."},
    {"check", trainer_check, METH_NOARGS,
     "check()\n\nReviews the programs: (findings, seconds, rows, paths, calls); a finding is (kind, severity, about, "
     "text)."},
    {"save", trainer_save, METH_NOARGS, "save()\n\nWrites the checkpoint."},
    {"train", trainer_train, METH_VARARGS,
     "train(stop, progress, evaluated, save_every)\n\nTrains to the end; False: stopped."},
    {"stop", trainer_request_stop, METH_NOARGS, "stop()\n\nEnds train after the present iteration."},
    {"give", trainer_give, METH_VARARGS, "give(f)\n\nGives choices to training."},
    {"params", trainer_params, METH_NOARGS, "params()\n\nName, group and numbers of each parameter."},
    {"set_param", trainer_set_param, METH_VARARGS, "set_param(name, values)\n\nWrites a parameter."},
    {"gradient", trainer_gradient, METH_VARARGS,
     "gradient(draw, test)\n\nThe gradient that an iteration would step by."},
    {"ask", trainer_ask, METH_VARARGS, "ask(*question)\n\nAsks about a datum at the present parameters."},
    {"close", trainer_close, METH_NOARGS, "close()\n\nGives back memory and threads."},
    {0},
};

static PyGetSetDef trainer_members[] = {
    {"iteration", trainer_get, NULL, "How many iterations are done.", "i"},
    {"seconds", trainer_get, NULL, "Seconds of training so far.", "s"},
    {"config", trainer_get, NULL, "The configuration, with all defaults.", "c"},
    {"fields", trainer_get, NULL,
     "Name, numbers, whether it is a label, numbers of an item and most items of each field.", "f"},
    {"warnings", trainer_get, NULL, "What a user should know about the run's folder; \"\" for nothing.", "r"},
    {"unguided", trainer_get, NULL, "A site for which the automatic guide has no network of its own; None.", "g"},
    {"unlearned", trainer_get, NULL, "A parameter whose gradient has always been zero; None.", "l"},
    {"doubt", trainer_get, NULL, "A warning of the look at the programs before the first iteration; None.", "d"},
    {"impossible", trainer_get, NULL, "A message about training data that no particle has explained; None.", "p"},
    {"unvisited", trainer_get, NULL, "A site of labels or gradients that no particle has visited; None.", "u"},
    {0},
};

PyTypeObject rwspy_Trainer = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Trainer",
    .tp_doc = "A model in training, as the library has it; rws.Trainer stands on it.",
    .tp_basicsize = sizeof(trainer_object),
    .tp_new = trainer_new,
    .tp_dealloc = trainer_free,
    .tp_traverse = trainer_traverse,
    .tp_clear = trainer_clear,
    .tp_methods = trainer_methods,
    .tp_getset = trainer_members,
    .tp_weaklistoffset = offsetof(trainer_object, weak),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
