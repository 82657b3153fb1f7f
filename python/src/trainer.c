/* trainer.c - training, asking, and what the stores of runs say. Python's own classes (rws/__init__.py) stand on these. */
#include "rwspy.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- configurations */

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

static bool read_config(PyObject *d, rws_config *c)
{
    uint64_t  scalar = 0, stack = 0;
    PyObject *set = PyDict_GetItemString(d, "set"), *l2 = PyDict_GetItemString(d, "l2");
    *c = (rws_config){0};
    if (!read_text(d, "model", &c->model) || !read_text(d, "method", &c->method) ||
        !read_int(d, "particles", &c->particles) || !read_int(d, "batch", &c->batch) ||
        !read_int(d, "shards", &c->shards) || !read_int(d, "n_test", &c->n_test) ||
        !read_int(d, "eval_particles", &c->eval_particles) || !read_whole(d, "iterations", INT64_MAX, &c->iterations) ||
        !read_whole(d, "eval_every", INT64_MAX, &c->eval_every) || !read_whole(d, "seed", UINT64_MAX, &c->seed) ||
        !read_int(d, "particle_shards", &c->particle_shards) || !read_int(d, "threads", &c->threads) ||
        !read_whole(d, "scalar", 1, &scalar) || !read_text(d, "optimiser", &c->optimiser) ||
        !read_text(d, "lr", &c->lr) || !read_whole(d, "stack_bytes", SIZE_MAX, &stack) ||
        !read_whole(d, "max_operations", UINT64_MAX, &c->limits.max_operations) ||
        !read_whole(d, "max_paths", UINT64_MAX, &c->limits.max_paths) ||
        !read_whole(d, "max_nodes", UINT64_MAX, &c->limits.max_nodes))
        return false;
    c->scalar = scalar;
    c->limits.stack_bytes = stack;
    if (l2 && l2 != Py_None) c->l2 = PyFloat_AsDouble(l2);
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

static PyObject *config_object(const rws_config *c)
{
    PyObject *set = PyList_New(0);
    for (int i = 0; set && i < c->n_set; i++) {
        PyObject *text = PyUnicode_FromString(c->set[i]);
        if (!text || PyList_Append(set, text) != 0) Py_CLEAR(set);
        Py_XDECREF(text);
    }
    if (!set) return NULL;
    return Py_BuildValue("{s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:K,s:K,s:K,s:i,s:O,s:s,s:s,s:d,s:i,s:N}", "model", c->model,
                         "method", c->method, "particles", c->particles, "batch", c->batch, "shards", c->shards,
                         "n_test", c->n_test, "eval_particles", c->eval_particles, "iterations",
                         (unsigned long long)c->iterations, "eval_every", (unsigned long long)c->eval_every, "seed",
                         (unsigned long long)c->seed, "threads", c->threads, "scalar", c->scalar ? Py_True : Py_False,
                         "optimiser", c->optimiser, "lr", c->lr, "l2", c->l2, "particle_shards", c->particle_shards,
                         "set", set);
}

/* ---- answers */

PyObject *rwspy_reported(const rws_reported *r, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *o = r[i].text ? PyUnicode_DecodeUTF8(r[i].text, (Py_ssize_t)strlen(r[i].text), "replace")
                                : rwspy_array(r[i].value, 1, r[i].dim);
        PyObject *entry = o ? Py_BuildValue("(sN)", r[i].name, o) : NULL;
        if (entry) PyList_SET_ITEM(list, i, entry);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *choices_object(const rws_choice *c, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *value =
            c[i].dim == 1 ? PyFloat_FromDouble((double)*c[i].value) : rwspy_array(c[i].value, 1, c[i].dim);
        PyObject *entry = value ? Py_BuildValue("(siN)", c[i].site, c[i].visit, value) : NULL;
        if (entry) PyList_SET_ITEM(list, i, entry);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *answers_object(const rws_answers *a)
{
    PyObject *answers = PyList_New(a->n), *particles = PyList_New(a->n_weighted);
    for (int i = 0; answers && i < a->n; i++) {
        PyObject *reports = rwspy_reported(a->list[i].reports, a->list[i].n_reports);
        PyObject *entry =
            reports ? Py_BuildValue("(Nddd)", reports, a->list[i].guide, a->list[i].posterior, a->list[i].exact) : NULL;
        if (entry) PyList_SET_ITEM(answers, i, entry);
        else Py_CLEAR(answers);
    }
    for (int i = 0; particles && i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        PyObject           *choices = choices_object(w->choices, w->n_choices);
        PyObject *entry = choices ? Py_BuildValue("(dddiiNd)", w->log_p, w->log_q, w->weight, w->count, w->answer,
                                                  choices, w->log_given)
                                  : NULL;
        if (entry) PyList_SET_ITEM(particles, i, entry);
        else Py_CLEAR(particles);
    }
    if (answers && particles)
        return Py_BuildValue("{s:N,s:N,s:i,s:d,s:d,s:d}", "answers", answers, "particles", particles, "n_particles",
                             a->n_particles, "ess", a->ess, "log_evidence", a->log_evidence, "exact_log_evidence",
                             a->exact_log_evidence);
    Py_XDECREF(answers);
    Py_XDECREF(particles);
    return NULL;
}

/* Choices as Python gives them: [(site, visit, numbers), …]. The texts belong to the list. */
static bool choices_read(PyObject *list, rws_choice **out, int *n)
{
    *n = 0;
    if (!(*out = PyMem_Calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof **out))) {
        PyErr_NoMemory();
        return false;
    }
    for (; *n < PyList_GET_SIZE(list); ++*n) {
        rws_choice *c = &(*out)[*n];
        PyObject   *value;
        float      *x;
        Py_ssize_t  dim;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, *n), "siO", &c->site, &c->visit, &value) ||
            !rwspy_floats(value, &x, &dim))
            return false;
        c->value = x;
        c->dim = (int)dim;
    }
    return true;
}

static void choices_release(rws_choice *choices, int n)
{
    for (int i = 0; i < n; i++) PyMem_Free((float *)choices[i].value);
    PyMem_Free(choices);
}

/* A question as Python gives it: (fields or None, text or None, picture or None, test, n_particles, seed, particles,
 * choices that are given) */
typedef struct {
    rws_question q;
    float       *fields[RWS_FIELDS];
    rws_grey     picture;
    Py_buffer    grey;
    rws_choice  *given;
} asked;

static void asked_release(asked *a)
{
    for (int i = 0; i < RWS_FIELDS; i++) PyMem_Free(a->fields[i]);
    if (a->grey.obj) PyBuffer_Release(&a->grey);
    choices_release(a->given, a->q.n_given);
}

/* Ctrl-C ends a question: the exception stays set, in the state of this thread. */
static bool interrupted(void *unused)
{
    (void)unused;
    rwspy_take();
    const bool yes = PyErr_CheckSignals() != 0;
    rwspy_give();
    return yes;
}

static bool asked_read(PyObject *args, asked *a)
{
    PyObject          *fields, *picture, *given;
    const char        *text;
    unsigned long long seed;
    int                particles;
    *a = (asked){.q.stop = interrupted};
    if (!PyArg_ParseTuple(args, "OzOiiKpO!", &fields, &text, &picture, &a->q.test, &a->q.n_particles, &seed, &particles,
                          &PyList_Type, &given))
        return false;
    a->q.text = text;
    a->q.seed = seed;
    a->q.particles = particles;
    if (fields != Py_None) {
        if (!PyList_Check(fields) || PyList_GET_SIZE(fields) > RWS_FIELDS) {
            PyErr_SetString(PyExc_TypeError, "The fields of a datum are a list of arrays.");
            return false;
        }
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fields); i++) {
            PyObject  *o = PyList_GET_ITEM(fields, i);
            Py_ssize_t n;
            if (o != Py_None && !rwspy_floats(o, &a->fields[i], &n)) {
                asked_release(a);
                return false;
            }
        }
        a->q.fields = (const float *const *)a->fields;
    }
    if (picture != Py_None) {
        if (!PyArg_ParseTuple(picture, "siiy*", &a->picture.name, &a->picture.wide, &a->picture.high, &a->grey)) {
            asked_release(a);
            return false;
        }
        a->picture.grey = a->grey.buf;
        a->q.picture = &a->picture;
    }
    if (!choices_read(given, &a->given, &a->q.n_given)) {
        asked_release(a);
        return false;
    }
    a->q.given = a->given;
    return true;
}

static bool outside_of_programs(void)
{
    if (!rwspy_current()) return true;
    PyErr_SetString(PyExc_RuntimeError, "A program must not train, ask or open runs.");
    return false;
}

/* ---- trainers */

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
    bool                       between; /* … but is in a callback between two iterations */
    bool                       stop;
    PyObject                  *stopping, *progress, *evaluated; /* callbacks of train */
    PyObject                  *exception;                       /* that a callback raised */
    PyObject                  *giver, *sizes;                   /* of choices in training; numbers of each field */
    struct given              *given;                           /* what it gave in the present iteration */
    PyObject                  *weak;
} trainer_object;

static bool usable(trainer_object *o)
{
    if (!outside_of_programs()) return false;
    if (!o->t) PyErr_SetString(rwspy_Error, "The trainer is closed.");
    else if (o->process != getpid())
        PyErr_SetString(PyExc_RuntimeError,
                        "The trainer belongs to the process that made it, and this one was forked from it. "
                        "Open the run's folder here instead.");
    else if (o->busy && !o->between)
        PyErr_SetString(PyExc_RuntimeError, "The trainer is in use, by another thread or by a callback.");
    else return true;
    return false;
}

/* Around every function of the library that takes the trainer. */
static bool trainer_begin(trainer_object *o, bool *before)
{
    if (!usable(o)) return false;
    *before = o->busy;
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
    PyObject   *program, *d;
    const char *folder;
    int         resume;
    rws_config  c;
    rws_error   err = {{0}};
    (void)keywords;
    if (!outside_of_programs() || !PyArg_ParseTuple(args, "OO!zp", &program, &PyDict_Type, &d, &folder, &resume) ||
        !read_config(d, &c))
        return NULL;
    if (program != Py_None && !Py_IS_TYPE(program, &rwspy_Program))
        return PyErr_Format(PyExc_TypeError, "This is no program.");
    trainer_object *o = (trainer_object *)type->tp_alloc(type, 0);
    if (!o) return NULL;
    o->process = getpid();
    if (program != Py_None) o->program = (program_object *)Py_NewRef(program);
    const rws_model *m = o->program ? &o->program->model : NULL;
    rwspy_begin();
    rws_status status = resume ? rws_trainer_resume(folder, &c, m, &o->t, &err) : rws_trainer_new(&c, m, &o->t, &err);
    if (status == RWS_OK && folder && !resume) status = rws_trainer_keep(o->t, folder, &err);
    rwspy_end();
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
    if (!outside_of_programs()) return NULL;
    trainer_close_it(o);
    Py_RETURN_NONE;
}

static void forget_given(trainer_object *o)
{
    for (struct given *g = o->given, *next; g; g = next) {
        next = g->next;
        choices_release(g->choices, g->n);
        Py_DECREF(g->list);
        PyMem_Free(g);
    }
    o->given = NULL;
}

static void trainer_free(PyObject *self)
{
    trainer_object *o = (trainer_object *)self;
    PyObject       *type, *value, *trace;
    if (o->weak) PyObject_ClearWeakRefs(self);
    PyErr_Fetch(&type, &value, &trace);
    trainer_close_it(o);
    PyErr_Restore(type, value, trace);
    Py_XDECREF(o->program);
    Py_XDECREF(o->exception);
    forget_given(o);
    Py_XDECREF(o->giver);
    Py_XDECREF(o->sizes);
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
    return Py_BuildValue("(KdNd)", (unsigned long long)m->iteration, m->seconds, d, m->log_evidence_error);
}

/* Exceptions of metrics about particles are raised after the evaluation. */
static bool left_exception(trainer_object *o)
{
    static const rws_error none;
    if (!o->program || PyList_GET_SIZE(o->program->exceptions) == 0) return false;
    rwspy_raise(o->program, RWS_BAD_INPUT, &none);
    return true;
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
    (void)t;
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
    const Py_ssize_t n = PyList_GET_SIZE(o->sizes);
    PyObject        *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *array = rwspy_array(fields[i], 1, PyLong_AsLong(PyList_GET_ITEM(o->sizes, i)));
        if (array) PyList_SET_ITEM(list, i, array);
        else Py_CLEAR(list);
    }
    return list;
}

static int on_give(void *context, uint64_t iteration, int datum, const float *const *fields, const rws_choice **choices)
{
    trainer_object *o = context;
    int             n = 0;
    rwspy_take();
    if (datum == 0) forget_given(o);
    PyObject     *list = fields_list(o, fields), *r = NULL;
    struct given *g = list && !o->exception ? PyMem_Calloc(1, sizeof *g) : NULL;
    if (g) r = PyObject_CallFunction(o->giver, "KiO", (unsigned long long)iteration, datum, list);
    if (r && choices_read(r, &g->choices, &g->n)) {
        g->list = Py_NewRef(r);
        g->next = o->given;
        o->given = g;
        *choices = g->choices;
        n = g->n;
    } else if (g) {
        choices_release(g->choices, g->n);
        PyMem_Free(g);
    } else if (!o->exception && !PyErr_Occurred()) PyErr_NoMemory();
    if (PyErr_Occurred()) keep_callback_exception(o);
    Py_XDECREF(list);
    Py_XDECREF(r);
    rwspy_give();
    return n;
}

/* give(function or None, [numbers of each field]): function(iteration, datum, fields) returns [(site, visit, numbers), …] */
static PyObject *trainer_give(PyObject *self, PyObject *args)
{
    trainer_object *o = (trainer_object *)self;
    PyObject       *f, *sizes;
    rws_error       err = {{0}};
    bool            before;
    if (!PyArg_ParseTuple(args, "OO!", &f, &PyList_Type, &sizes) || !trainer_begin(o, &before)) return NULL;
    const rws_status status = rws_trainer_give(o->t, f == Py_None ? NULL : on_give, o, &err);
    trainer_end(o, before);
    if (status == RWS_OK) {
        Py_XSETREF(o->giver, Py_NewRef(f));
        Py_XSETREF(o->sizes, Py_NewRef(sizes));
    }
    return ended(o, status, &err);
}

/* ---- parameters */

static PyObject *trainer_params(PyObject *self, PyObject *unused)
{
    (void)unused;
    static const char *const groups[] = {"theta", "phi", "control", "baseline"};
    trainer_object          *o = (trainer_object *)self;
    rws_param_view           v;
    if (!usable(o)) return NULL;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && rws_trainer_param(o->t, i, &v); i++) {
        PyObject *array = rwspy_array(v.values, v.rows, v.cols);
        PyObject *entry = array ? Py_BuildValue("(ssN)", v.name, groups[v.group], array) : NULL;
        if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
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
    asked           a;
    bool            before;
    PyObject       *r = NULL;
    if (!asked_read(args, &a)) return NULL;
    if (trainer_begin(o, &before)) {
        const rws_status status = rws_trainer_ask(o->t, &a.q, &answers, &err);
        trainer_end(o, before);
        if (!PyErr_Occurred()) r = status == RWS_OK ? answers_object(answers) : ended(o, status, &err);
        rws_answers_free(answers);
    }
    asked_release(&a);
    return r;
}

static PyObject *trainer_get(PyObject *self, void *what)
{
    trainer_object *o = (trainer_object *)self;
    if (!o->t) return PyErr_Format(rwspy_Error, "The trainer is closed.");
    switch (*(const char *)what) {
    case 'i': return PyLong_FromUnsignedLongLong(rws_trainer_iteration(o->t));
    case 's': return PyFloat_FromDouble(rws_trainer_seconds(o->t));
    case 'u': return Py_BuildValue("z", rws_trainer_unvisited(o->t));
    default: return config_object(rws_trainer_config(o->t));
    }
}

static PyMethodDef trainer_methods[] = {
    {"step", trainer_step, METH_NOARGS, NULL},          {"evaluate", trainer_evaluate, METH_NOARGS, NULL},
    {"save", trainer_save, METH_NOARGS, NULL},          {"train", trainer_train, METH_VARARGS, NULL},
    {"stop", trainer_request_stop, METH_NOARGS, NULL},  {"give", trainer_give, METH_VARARGS, NULL},
    {"params", trainer_params, METH_NOARGS, NULL},      {"set_param", trainer_set_param, METH_VARARGS, NULL},
    {"gradient", trainer_gradient, METH_VARARGS, NULL}, {"ask", trainer_ask, METH_VARARGS, NULL},
    {"close", trainer_close, METH_NOARGS, NULL},        {0},
};

static PyGetSetDef trainer_members[] = {
    {"iteration", trainer_get, NULL, "How many iterations are done.", "i"},
    {"seconds", trainer_get, NULL, "Seconds of training so far.", "s"},
    {"config", trainer_get, NULL, "The configuration, with all defaults.", "c"},
    {"unvisited", trainer_get, NULL, "A site of labels or gradients that no particle has visited; None.", "u"},
    {0},
};

PyTypeObject rwspy_Trainer = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Trainer",
    .tp_basicsize = sizeof(trainer_object),
    .tp_new = trainer_new,
    .tp_dealloc = trainer_free,
    .tp_methods = trainer_methods,
    .tp_getset = trainer_members,
    .tp_weaklistoffset = offsetof(trainer_object, weak),
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* ---- posteriors */

typedef struct {
    PyObject_HEAD rws_posterior *p;
    program_object              *program;
    int                          n_users; /* calls of the library at this moment */
    bool                         closing;
    PyObject                    *weak;
} posterior_object;

/* Posterior(folder, config, program or None) or Posterior(trainer) */
static PyObject *posterior_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    rws_error   err = {{0}};
    rws_config  c;
    PyObject   *from, *d = NULL, *program = Py_None;
    rws_status  status;
    const char *folder = NULL;
    (void)keywords;
    if (!outside_of_programs() || !PyArg_ParseTuple(args, "O|O!O", &from, &PyDict_Type, &d, &program)) return NULL;
    trainer_object *t = Py_IS_TYPE(from, &rwspy_Trainer) ? (trainer_object *)from : NULL;
    if (t && !usable(t)) return NULL;
    if (!t && (!PyUnicode_Check(from) || !(folder = PyUnicode_AsUTF8(from)) || !d || !read_config(d, &c)))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "A folder or a trainer was expected.");
    if (program != Py_None && !Py_IS_TYPE(program, &rwspy_Program))
        return PyErr_Format(PyExc_TypeError, "This is no program.");
    posterior_object *o = (posterior_object *)type->tp_alloc(type, 0);
    if (!o) return NULL;
    if (t) o->program = (program_object *)Py_XNewRef(t->program);
    else if (program != Py_None) o->program = (program_object *)Py_NewRef(program);
    if (t) t->busy = true;
    rwspy_begin();
    if (t) status = rws_posterior_new(t->t, &o->p, &err);
    else status = rws_posterior_open(folder, &c, o->program ? &o->program->model : NULL, &o->p, &err);
    rwspy_end();
    if (t) t->busy = false;
    if (status == RWS_OK) return (PyObject *)o;
    rwspy_raise(o->program, status, &err);
    Py_DECREF(o);
    return NULL;
}

static void posterior_close_it(posterior_object *o)
{
    rws_posterior *p = o->p;
    o->p = NULL;
    if (!p) return;
    rwspy_begin();
    rws_posterior_free(p);
    rwspy_end();
}

static void posterior_free(PyObject *self)
{
    posterior_object *o = (posterior_object *)self;
    PyObject         *type, *value, *trace;
    if (o->weak) PyObject_ClearWeakRefs(self);
    PyErr_Fetch(&type, &value, &trace);
    posterior_close_it(o);
    PyErr_Restore(type, value, trace);
    Py_XDECREF(o->program);
    Py_TYPE(self)->tp_free(self);
}

static bool posterior_begin(posterior_object *o)
{
    if (!outside_of_programs()) return false;
    if (!o->p) {
        PyErr_SetString(rwspy_Error, "The posterior is closed.");
        return false;
    }
    o->n_users++;
    rwspy_begin();
    return true;
}

static void posterior_end(posterior_object *o)
{
    rwspy_end();
    o->n_users--;
}

static PyObject *posterior_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    posterior_object *o = (posterior_object *)self;
    if (o->n_users) return PyErr_Format(PyExc_RuntimeError, "The posterior is in use by another thread.");
    if (!outside_of_programs()) return NULL;
    posterior_close_it(o);
    Py_RETURN_NONE;
}

static PyObject *posterior_ask(PyObject *self, PyObject *args)
{
    posterior_object *o = (posterior_object *)self;
    rws_error         err = {{0}};
    rws_answers      *answers = NULL;
    asked             a;
    PyObject         *r = NULL;
    if (!asked_read(args, &a)) return NULL;
    if (posterior_begin(o)) {
        const rws_status status = rws_posterior_ask(o->p, &a.q, &answers, &err);
        posterior_end(o);
        if (!PyErr_Occurred()) r = status == RWS_OK ? answers_object(answers) : rwspy_raise(o->program, status, &err);
        rws_answers_free(answers);
    }
    asked_release(&a);
    return r;
}

/* score(question, [(site, visit, array), …]) */
static PyObject *posterior_score(PyObject *self, PyObject *args)
{
    posterior_object *o = (posterior_object *)self;
    PyObject         *question, *list, *r = NULL;
    rws_error         err = {{0}};
    rws_score         score;
    asked             a;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &question, &PyList_Type, &list) || !asked_read(question, &a))
        return NULL;
    int         n;
    rws_choice *choices;
    if (choices_read(list, &choices, &n) && posterior_begin(o)) {
        const rws_status status = rws_posterior_score(o->p, &a.q, choices, n, &score, &err);
        posterior_end(o);
        r = status == RWS_OK ? Py_BuildValue("(dd)", score.log_p, score.log_q) : rwspy_raise(o->program, status, &err);
    }
    choices_release(choices, n);
    asked_release(&a);
    return r;
}

static PyObject *sample_object(const posterior_object *o, const rws_sample *s)
{
    PyObject *fields = PyList_New(0), *reports = rwspy_reported(s->reports, s->n_reports);
    PyObject *choices = choices_object(s->choices, s->n_choices);
    rws_field f;
    for (int i = 0; fields && rws_posterior_field(o->p, i, &f); i++) {
        PyObject *array = s->fields[i] ? rwspy_array(s->fields[i], 1, f.dim) : Py_NewRef(Py_None);
        PyObject *entry = array ? Py_BuildValue("(sN)", f.name, array) : NULL;
        if (!entry || PyList_Append(fields, entry) != 0) Py_CLEAR(fields);
        Py_XDECREF(entry);
    }
    if (fields && reports && choices) return Py_BuildValue("(NNN)", fields, reports, choices);
    Py_XDECREF(fields);
    Py_XDECREF(reports);
    Py_XDECREF(choices);
    return NULL;
}

static PyObject *posterior_sample(PyObject *self, PyObject *args)
{
    posterior_object  *o = (posterior_object *)self;
    unsigned long long seed;
    int                n;
    rws_error          err = {{0}};
    rws_samples       *samples = NULL;
    if (!PyArg_ParseTuple(args, "iK", &n, &seed) || !posterior_begin(o)) return NULL;
    const rws_status status = rws_posterior_sample(o->p, n, seed, &samples, &err);
    posterior_end(o);
    if (status != RWS_OK) return rwspy_raise(o->program, status, &err);
    PyObject *list = PyList_New(samples->n);
    for (int i = 0; list && i < samples->n; i++) {
        PyObject *s = sample_object(o, &samples->list[i]);
        if (s) PyList_SET_ITEM(list, i, s);
        else Py_CLEAR(list);
    }
    rws_samples_free(samples);
    return list;
}

static PyObject *posterior_get(PyObject *self, void *what)
{
    posterior_object *o = (posterior_object *)self;
    if (!o->p) return PyErr_Format(rwspy_Error, "The posterior is closed.");
    if (*(const char *)what == 'i') return PyLong_FromUnsignedLongLong(rws_posterior_iteration(o->p));
    if (*(const char *)what == 'c') return config_object(rws_posterior_config(o->p));
    PyObject *list = PyList_New(0);
    rws_field f;
    for (int i = 0; list && rws_posterior_field(o->p, i, &f); i++) {
        PyObject *entry = Py_BuildValue("(siOii)", f.name, f.dim, f.label ? Py_True : Py_False, f.item, f.most);
        if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyMethodDef posterior_methods[] = {
    {"ask", posterior_ask, METH_VARARGS, NULL},
    {"score", posterior_score, METH_VARARGS, NULL},
    {"sample", posterior_sample, METH_VARARGS, NULL},
    {"close", posterior_close, METH_NOARGS, NULL},
    {0},
};

static PyGetSetDef posterior_members[] = {
    {"iteration", posterior_get, NULL, NULL, "i"},
    {"config", posterior_get, NULL, NULL, "c"},
    {"fields", posterior_get, NULL, NULL, "f"},
    {0},
};

PyTypeObject rwspy_Posterior = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Posterior",
    .tp_basicsize = sizeof(posterior_object),
    .tp_new = posterior_new,
    .tp_dealloc = posterior_free,
    .tp_methods = posterior_methods,
    .tp_getset = posterior_members,
    .tp_weaklistoffset = offsetof(posterior_object, weak),
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

/* ---- stores */

static PyObject *result_object(const rws_result *r)
{
    PyObject *keys = PyDict_New(), *histories = PyDict_New(), *shots = PyList_New(0);
    bool      good = keys && histories && shots;
    for (int i = 0; good && i < r->n_keys; i++) {
        PyObject *x = PyUnicode_FromString(r->keys[i].value);
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
            PyObject *label = s->labels[k] ? PyUnicode_FromString(s->labels[k]) : Py_NewRef(Py_None);
            if (label) PyList_SET_ITEM(labels, k, label);
            else Py_CLEAR(labels);
        }
        PyObject *x = labels && values
                          ? Py_BuildValue("(sKNN)", s->name, (unsigned long long)s->iteration, values, labels)
                          : NULL;
        good = x && PyList_Append(shots, x) == 0;
        Py_XDECREF(x);
    }
    if (good)
        return Py_BuildValue("{s:s,s:s,s:z,s:z,s:z,s:z,s:s,s:K,s:K,s:d,s:N,s:N,s:N}", "name", r->name, "store",
                             r->store, "host", r->host, "version", r->version, "started", r->started, "failure",
                             r->failure, "state", rws_result_state(r), "iteration", (unsigned long long)r->iteration,
                             "iterations", (unsigned long long)r->iterations, "seconds", r->seconds, "config", keys,
                             "metrics", histories, "snapshots", shots);
    Py_XDECREF(keys);
    Py_XDECREF(histories);
    Py_XDECREF(shots);
    return NULL;
}

PyObject *rwspy_results(PyObject *module, PyObject *args)
{
    PyObject    *paths, *conditions;
    const char  *path[256], *condition[256];
    rws_results *results = NULL;
    rws_error    err = {{0}};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &paths, &PyList_Type, &conditions)) return NULL;
    const Py_ssize_t n = PyList_GET_SIZE(paths), m = PyList_GET_SIZE(conditions);
    if (n > 256 || m > 256) return PyErr_Format(PyExc_ValueError, "At most 256 paths and conditions can be given.");
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(path[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(paths, i)))) return NULL;
    for (Py_ssize_t i = 0; i < m; i++)
        if (!(condition[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(conditions, i)))) return NULL;
    rwspy_begin();
    rws_status status = rws_results_read(path, (int)n, &results, &err);
    if (status == RWS_OK && m) status = rws_results_keep(results, condition, (int)m, &err);
    rwspy_end();
    if (status != RWS_OK) {
        rws_results_free(results);
        return rwspy_raise(NULL, status, &err);
    }
    PyObject *list = PyList_New(results->n);
    for (int i = 0; list && i < results->n; i++) {
        PyObject *r = result_object(&results->runs[i]);
        if (r) PyList_SET_ITEM(list, i, r);
        else Py_CLEAR(list);
    }
    rws_results_free(results);
    return list;
}

PyObject *rwspy_tables(PyObject *module, PyObject *args)
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

/* ---- ranks */

PyObject *rwspy_ranks_open(PyObject *module, PyObject *unused)
{
    rws_error err = {{0}};
    (void)module, (void)unused;
    if (!outside_of_programs()) return NULL;
    rwspy_begin();
    const rws_status status = rws_ranks_open(&err);
    rwspy_end();
    if (status != RWS_OK) return rwspy_raise(NULL, status, &err);
    Py_RETURN_NONE;
}

PyObject *rwspy_ranks_close(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    rwspy_begin();
    rws_ranks_close();
    rwspy_end();
    Py_RETURN_NONE;
}

PyObject *rwspy_rank(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_rank());
}

PyObject *rwspy_n_ranks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_n_ranks());
}

PyObject *rwspy_rank_lost(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(rws_rank_lost());
}
