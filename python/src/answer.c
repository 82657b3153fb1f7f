/* answer.c - questions from Python, and reports, choices and answers to Python. Trainers and posteriors share them. */
#include "rwspy.h"

#include <limits.h>

PyObject *rwspy_reported(const rws_reported *r, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *o = r[i].text ? rwspy_text(r[i].text) : rwspy_array(r[i].value, 1, r[i].dim);
        PyObject *entry = o ? Py_BuildValue("(sN)", r[i].name, o) : NULL;
        if (entry) PyList_SET_ITEM(list, i, entry);
        else Py_CLEAR(list);
    }
    return list;
}

PyObject *rwspy_choices_object(const rws_choice *c, int n)
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

static const char held_answers[] = "rws_answers";

static void free_answers(PyObject *capsule)
{
    rws_answers_free(PyCapsule_GetPointer(capsule, held_answers));
}

/* _answers_json(held, listed) */
static PyObject *answers_json(PyObject *unused, PyObject *args)
{
    PyObject *capsule, *r = NULL;
    int       listed;
    char     *text;
    rws_error err = {{0}};
    (void)unused;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &listed)) return NULL;
    const rws_answers *a = PyCapsule_GetPointer(capsule, held_answers);
    const int          most = listed ? INT_MAX : 0;
    if (!a) return NULL;
    const rws_status status = rws_answers_json(a, &(rws_answers_shown){INT_MAX, most, most}, &text, &err);
    if (status == RWS_OK) r = PyUnicode_FromString(text);
    else rwspy_raise(NULL, status, &err);
    if (status == RWS_OK) free(text);
    return r;
}

PyMethodDef rwspy_answer_functions[] = {
    {"answers_json", answers_json, METH_VARARGS, "answers_json(held, listed)\n\nAnswers as a JSON text."},
    {0},
};

PyObject *rwspy_params_append(PyObject *list, const rws_param_view *v)
{
    static const char *const groups[] = {"theta", "phi", "control", "baseline"};
    PyObject *shape = PyTuple_New(v->n_dims), *flat = shape ? rwspy_array(v->values, 1, v->rows * v->cols) : NULL;
    for (int d = 0; flat && d < v->n_dims; d++) PyTuple_SET_ITEM(shape, d, PyLong_FromLong(v->shape[d]));
    PyObject *array = flat ? PyObject_CallMethod(flat, "reshape", "O", shape) : NULL;
    PyObject *entry = array ? Py_BuildValue("(ssN)", v->name, groups[v->group], array) : NULL;
    Py_XDECREF(flat);
    Py_XDECREF(shape);
    if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
    Py_XDECREF(entry);
    return list;
}

PyObject *rwspy_fields_append(PyObject *list, const rws_field *f)
{
    PyObject *entry = Py_BuildValue("(siOiiO)", f->name, f->dim, f->label ? Py_True : Py_False, f->item, f->most,
                                    f->input ? Py_True : Py_False);
    if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
    Py_XDECREF(entry);
    return list;
}

/* The numbers and texts of a structure by name, with a list under a name of its own; takes the list, which may be NULL. */
static PyObject *members_object(rws_member_of of, const void *structure, const char *name, PyObject *list)
{
    const rws_answer_member *m;
    PyObject                *d = list ? Py_BuildValue("{s:N}", name, list) : NULL;
    for (int i = 0; d && (m = rws_answer_member_at(of, i)); i++) {
        const char *text = rws_answer_member_text(m, structure);
        PyObject   *x = text                          ? rwspy_text(text)
                        : m->type == RWS_MEMBER_COUNT ? PyLong_FromDouble(rws_answer_member_number(m, structure))
                                                      : PyFloat_FromDouble(rws_answer_member_number(m, structure));
        if (!x || PyDict_SetItemString(d, m->name, x) != 0) Py_CLEAR(d);
        Py_XDECREF(x);
    }
    return d;
}

PyObject *rwspy_answers_object(rws_answers *a)
{
    PyObject *held = PyCapsule_New(a, held_answers, free_answers);
    if (!held) {
        rws_answers_free(a);
        return NULL;
    }
    PyObject *all = members_object(RWS_OF_ANSWERS, a, "held", held), *lists = NULL;
    if (!all) return NULL;
    PyObject *answers = PyList_New(a->n), *particles = PyList_New(a->n_weighted);
    for (int i = 0; answers && i < a->n; i++) {
        const rws_answer *e = &a->list[i];
        PyObject         *entry = members_object(RWS_OF_ANSWER, e, "reports", rwspy_reported(e->reports, e->n_reports));
        if (entry) PyList_SET_ITEM(answers, i, entry);
        else Py_CLEAR(answers);
    }
    for (int i = 0; particles && i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        PyObject *entry = members_object(RWS_OF_PARTICLE, w, "choices", rwspy_choices_object(w->choices, w->n_choices));
        if (entry) PyList_SET_ITEM(particles, i, entry);
        else Py_CLEAR(particles);
    }
    if (answers && particles)
        lists =
            Py_BuildValue("{s:O,s:O,s:i}", "answers", answers, "particles", particles, "n_particles", a->n_particles);
    if (!lists || PyDict_Update(all, lists) != 0) Py_CLEAR(all);
    Py_XDECREF(lists);
    Py_XDECREF(answers);
    Py_XDECREF(particles);
    return all;
}

bool rwspy_choices_read(PyObject *list, rws_choice **out, int *n)
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

void rwspy_choices_release(rws_choice *choices, int n)
{
    for (int i = 0; i < n; i++) PyMem_Free((float *)choices[i].value);
    PyMem_Free(choices);
}

void rwspy_question_release(py_question *a)
{
    for (int i = 0; i < RWS_FIELDS; i++) PyMem_Free(a->fields[i]);
    if (a->grey.obj) PyBuffer_Release(&a->grey);
    rwspy_choices_release(a->given, a->q.n_given);
}

bool rwspy_outside_of_programs(void)
{
    if (!rwspy_current()) return true;
    PyErr_SetString(PyExc_RuntimeError, "A program must not train, ask or open runs.");
    return false;
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

bool rwspy_question_read(PyObject *args, py_question *a)
{
    PyObject          *fields, *picture, *given;
    const char        *text;
    unsigned long long seed;
    int                particles;
    *a = (py_question){.q.stop = interrupted};
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
                rwspy_question_release(a);
                return false;
            }
        }
        a->q.fields = (const float *const *)a->fields;
    }
    if (picture != Py_None) {
        if (!PyArg_ParseTuple(picture, "siiy*", &a->picture.name, &a->picture.wide, &a->picture.high, &a->grey)) {
            rwspy_question_release(a);
            return false;
        }
        a->picture.grey = a->grey.buf;
        a->q.picture = &a->picture;
    }
    if (!rwspy_choices_read(given, &a->given, &a->q.n_given)) {
        rwspy_question_release(a);
        return false;
    }
    a->q.given = a->given;
    return true;
}
