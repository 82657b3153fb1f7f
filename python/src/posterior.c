/* posterior.c - asking a trained model: answers, scores, samples. The class Run of rws/_run.py stands on this one. */
#include "rwspy.h"

typedef struct {
    PyObject_HEAD rws_posterior *p;
    program_object              *program;
    int                          n_users; /* calls of the library at this moment */
    PyObject                    *weak;
} posterior_object;

/* Posterior(folder, config, program or None) or Posterior(trainer) */
static PyObject *posterior_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    rws_error  err = {{0}};
    rws_config c;
    PyObject  *from, *d = NULL, *program = Py_None, *held = NULL;
    rws_status status;
    (void)keywords;
    if (!rwspy_outside_of_programs() || !PyArg_ParseTuple(args, "O|O!O", &from, &PyDict_Type, &d, &program))
        return NULL;
    const bool trainer = Py_IS_TYPE(from, &rwspy_Trainer);
    if (!trainer && (!PyUnicode_Check(from) || !d || !rwspy_config_read(d, &c)))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "A folder or a trainer was expected.");
    if (program != Py_None && !Py_IS_TYPE(program, &rwspy_Program))
        return PyErr_Format(PyExc_TypeError, "This is no program.");
    if (!trainer && !PyUnicode_FSConverter(from, &held)) return NULL;
    posterior_object *o = (posterior_object *)type->tp_alloc(type, 0);
    if (!o) {
        Py_XDECREF(held);
        return NULL;
    }
    if (trainer) {
        o->program = (program_object *)Py_XNewRef(rwspy_trainer_program(from));
        if (!(o->p = rwspy_trainer_posterior(from))) Py_CLEAR(o);
        return (PyObject *)o;
    }
    if (program != Py_None) o->program = (program_object *)Py_NewRef(program);
    rwspy_begin();
    status = rws_posterior_open(PyBytes_AS_STRING(held), &c, o->program ? &o->program->model : NULL, &o->p, &err);
    rwspy_end();
    Py_DECREF(held);
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
    if (!rwspy_outside_of_programs()) return false;
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
    if (!rwspy_outside_of_programs()) return NULL;
    posterior_close_it(o);
    Py_RETURN_NONE;
}

static PyObject *posterior_ask(PyObject *self, PyObject *args)
{
    posterior_object *o = (posterior_object *)self;
    rws_error         err = {{0}};
    rws_answers      *answers = NULL;
    py_question       a;
    PyObject         *r = NULL;
    if (!rwspy_question_read(args, &a)) return NULL;
    if (posterior_begin(o)) {
        const rws_status status = rws_posterior_ask(o->p, &a.q, &answers, &err);
        posterior_end(o);
        if (PyErr_Occurred()) rws_answers_free(answers);
        else r = status == RWS_OK ? rwspy_answers_object(answers) : rwspy_raise(o->program, status, &err);
    }
    rwspy_question_release(&a);
    return r;
}

typedef PyObject *many_function(rws_posterior *p, struct program_object *program, PyObject *args);

/* Calls a function that gives the lock back. */
static PyObject *call_many(PyObject *self, PyObject *args, many_function *f)
{
    posterior_object *o = (posterior_object *)self;
    if (!rwspy_outside_of_programs()) return NULL;
    if (!o->p) return PyErr_Format(rwspy_Error, "The posterior is closed.");
    o->n_users++;
    PyObject *r = f(o->p, o->program, args);
    o->n_users--;
    return r;
}

static PyObject *posterior_ask_many(PyObject *self, PyObject *args)
{
    return call_many(self, args, rwspy_ask_many);
}

static PyObject *posterior_calibrate(PyObject *self, PyObject *args)
{
    return call_many(self, args, rwspy_calibrate);
}

/* score(question, [(site, visit, array), …]) */
static PyObject *posterior_score(PyObject *self, PyObject *args)
{
    posterior_object *o = (posterior_object *)self;
    PyObject         *question, *list, *r = NULL;
    rws_error         err = {{0}};
    rws_score         score;
    py_question       a;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &question, &PyList_Type, &list) ||
        !rwspy_question_read(question, &a))
        return NULL;
    int         n;
    rws_choice *choices;
    if (rwspy_choices_read(list, &choices, &n) && posterior_begin(o)) {
        const rws_status status = rws_posterior_score(o->p, &a.q, choices, n, &score, &err);
        posterior_end(o);
        r = status == RWS_OK ? Py_BuildValue("(dd)", score.log_p, score.log_q) : rwspy_raise(o->program, status, &err);
    }
    rwspy_choices_release(choices, n);
    rwspy_question_release(&a);
    return r;
}

static PyObject *sample_object(const posterior_object *o, const rws_sample *s)
{
    PyObject *fields = PyList_New(0), *reports = rwspy_reported(s->reports, s->n_reports);
    PyObject *choices = rwspy_choices_object(s->choices, s->n_choices);
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
    PyObject          *inputs;
    py_question        a;
    if (!PyArg_ParseTuple(args, "iKO", &n, &seed, &inputs) || (inputs != Py_None && !rwspy_question_read(inputs, &a)))
        return NULL;
    const bool begun = posterior_begin(o);
    rws_status status = RWS_OK;
    if (begun)
        status = inputs == Py_None ? rws_posterior_sample(o->p, n, seed, &samples, &err)
                                   : rws_posterior_sample_at(o->p, &a.q, n, seed, &samples, &err);
    if (begun) posterior_end(o);
    if (inputs != Py_None) rwspy_question_release(&a);
    if (!begun) return NULL;
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
    if (*(const char *)what == 'c') return rwspy_config_object(rws_posterior_config(o->p));
    PyObject      *list = PyList_New(0);
    rws_field      f;
    rws_param_view v;
    if (*(const char *)what == 'p')
        for (int i = 0; list && rws_posterior_param(o->p, i, &v); i++) list = rwspy_params_append(list, &v);
    else
        for (int i = 0; list && rws_posterior_field(o->p, i, &f); i++) list = rwspy_fields_append(list, &f);
    return list;
}

static PyMethodDef posterior_methods[] = {
    {"ask", posterior_ask, METH_VARARGS, "ask(*question)\n\nAsks about a datum."},
    {"ask_many", posterior_ask_many, METH_VARARGS,
     "ask_many(n, fields, texts, pictures, tests, particles, seed, listed, given, threads, most_dim, told)\n\nAsks "
     "about "
     "many data; the columns of a table."},
    {"calibrate", posterior_calibrate, METH_VARARGS,
     "calibrate(simulations, particles, seed, threads, told)\n\nTests by simulation; ranks, quantities, impossible "
     "data."},
    {"score", posterior_score, METH_VARARGS, "score(question, choices)\n\nlog p and log q of choices."},
    {"sample", posterior_sample, METH_VARARGS,
     "sample(n, seed, inputs)\n\nSamples of the model; inputs: a question, or None."},
    {"close", posterior_close, METH_NOARGS, "close()\n\nGives back memory and threads."},
    {0},
};

static PyGetSetDef posterior_members[] = {
    {"iteration", posterior_get, NULL, "How many iterations were done.", "i"},
    {"config", posterior_get, NULL, "The configuration, with all defaults.", "c"},
    {"params", posterior_get, NULL, "Name, group and numbers of each parameter.", "p"},
    {"fields", posterior_get, NULL,
     "Name, numbers, whether it is a label, numbers of an item and most items of each field.", "f"},
    {0},
};

PyTypeObject rwspy_Posterior = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Posterior",
    .tp_doc = "A trained model, as the library has it; rws.Run stands on it.",
    .tp_basicsize = sizeof(posterior_object),
    .tp_new = posterior_new,
    .tp_dealloc = posterior_free,
    .tp_methods = posterior_methods,
    .tp_getset = posterior_members,
    .tp_weaklistoffset = offsetof(posterior_object, weak),
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
