/* many.c - many questions from Python, asked without the interpreter's lock, and the table of their answers. */
#include "rwspy.h"

#include <string.h>

/* Data as Python has them: fields as arrays of n x dim float32, or texts, or pictures, or numbers of test data. */
typedef struct {
    PyObject     *fields, *texts, *tests, *told; /* told(done, n): shows the progress; or None */
    Py_buffer     pictures;                      /* n x high x wide bytes */
    int           n, high, wide, dims[RWS_FIELDS];
    float        *numbers[RWS_FIELDS];
    const float **pointers; /* n x fields */
    rws_grey     *greys;
    rws_question *list;
    rws_choice   *given;
    int           n_given, most_dim;
    rws_frame    *frame;
    rws_status    status;
    rws_error     error;
} py_many;

static bool read_fields(py_many *m)
{
    const Py_ssize_t n_fields = PyList_GET_SIZE(m->fields);
    if (n_fields > RWS_FIELDS || !(m->pointers = PyMem_Calloc((size_t)(m->n * n_fields + 1), sizeof *m->pointers)))
        return PyErr_NoMemory() != NULL;
    for (Py_ssize_t f = 0; f < n_fields; f++) {
        PyObject  *o = PyList_GET_ITEM(m->fields, f);
        Py_ssize_t size;
        if (o == Py_None) continue;
        if (!rwspy_floats(o, &m->numbers[f], &size)) return false;
        for (int i = 0; i < m->n; i++) m->pointers[i * n_fields + f] = m->numbers[f] + (size / m->n) * i;
    }
    for (int i = 0; i < m->n; i++) m->list[i].fields = m->pointers + i * n_fields;
    return true;
}

static bool read_texts(py_many *m)
{
    for (int i = 0; i < m->n; i++)
        if (!(m->list[i].text = PyUnicode_AsUTF8(PyList_GET_ITEM(m->texts, i)))) return false;
    return true;
}

static bool read_tests(py_many *m)
{
    for (int i = 0; i < m->n; i++)
        if (!rwspy_int(PyList_GET_ITEM(m->tests, i), &m->list[i].test)) return false;
    return true;
}

static bool read_pictures(py_many *m)
{
    if (!(m->greys = PyMem_Calloc((size_t)m->n + 1, sizeof *m->greys))) return PyErr_NoMemory() != NULL;
    for (int i = 0; i < m->n; i++) {
        const uint8_t *grey = (const uint8_t *)m->pictures.buf + (size_t)i * (size_t)m->high * (size_t)m->wide;
        m->greys[i] = (rws_grey){"the picture", m->wide, m->high, grey};
        m->list[i].picture = &m->greys[i];
    }
    return true;
}

static bool read_data(py_many *m)
{
    if (!(m->list = PyMem_Calloc((size_t)m->n + 1, sizeof *m->list))) return PyErr_NoMemory() != NULL;
    if (m->fields != Py_None) return read_fields(m);
    if (m->texts != Py_None) return read_texts(m);
    if (m->tests != Py_None) return read_tests(m);
    return read_pictures(m);
}

static void release(py_many *m)
{
    for (int f = 0; f < RWS_FIELDS; f++) PyMem_Free(m->numbers[f]);
    if (m->pictures.obj) PyBuffer_Release(&m->pictures);
    rwspy_choices_release(m->given, m->n_given);
    PyMem_Free(m->pointers);
    PyMem_Free(m->greys);
    PyMem_Free(m->list);
    rws_frame_free(m->frame);
}

/* ---- while the questions are asked, without the lock */

static bool interrupted(void *unused)
{
    (void)unused;
    rwspy_take();
    const bool yes = PyErr_Occurred() || PyErr_CheckSignals() != 0;
    rwspy_give();
    return yes;
}

/* False after an exception. */
static bool tell(const py_many *m, int done)
{
    if (m->told == Py_None || (done % 64 != 0 && done != m->n)) return true;
    rwspy_take();
    PyObject *r = PyObject_CallFunction(m->told, "ii", done, m->n);
    Py_XDECREF(r);
    rwspy_give();
    return r != NULL;
}

static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    py_many *m = context;
    (void)status;
    m->status = rws_frame_add(m->frame, a, message, m->most_dim, &m->error);
    rws_answers_free(a);
    return m->status == RWS_OK && tell(m, i + 1);
}

/* ---- the table */

static PyObject *column_object(const rws_frame_column *c, int n)
{
    if (c->numbers) return rwspy_doubles(c->numbers, n);
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *text = rwspy_text(c->texts[i]);
        if (text) PyList_SET_ITEM(list, i, text);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *frame_object(const rws_frame *f)
{
    PyObject        *list = PyList_New(0);
    rws_frame_column c;
    for (int i = 0; list && rws_frame_column_at(f, i, &c); i++) {
        PyObject *column = column_object(&c, rws_frame_rows(f));
        PyObject *entry = column ? Py_BuildValue("(sN)", c.name, column) : NULL;
        if (!entry || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static bool read_arguments(PyObject *args, py_many *m, rws_many *how)
{
    rws_question       q = {0};
    PyObject          *pictures, *given;
    unsigned long long seed;
    int                listed;
    if (!PyArg_ParseTuple(args, "iOOOOiKpO!iiO", &m->n, &m->fields, &m->texts, &pictures, &m->tests, &q.n_particles,
                          &seed, &listed, &PyList_Type, &given, &how->threads, &m->most_dim, &m->told))
        return false;
    if (pictures != Py_None && !PyArg_ParseTuple(pictures, "iiy*", &m->high, &m->wide, &m->pictures)) return false;
    if (!rwspy_choices_read(given, &m->given, &m->n_given) || !read_data(m)) return false;
    for (int i = 0; i < m->n; i++) {
        m->list[i].n_particles = q.n_particles;
        m->list[i].seed = seed;
        m->list[i].particles = listed;
        m->list[i].given = m->given;
        m->list[i].n_given = m->n_given;
    }
    return true;
}

PyObject *rwspy_ask_many(rws_posterior *p, struct program_object *program, PyObject *args)
{
    py_many   m = {0};
    rws_error err = {{0}};
    rws_many  how = {.each = take, .stop = interrupted, .context = &m};
    PyObject *r = NULL;
    if (read_arguments(args, &m, &how)) {
        rwspy_begin();
        rws_status status = rws_frame_new(&m.frame, &err);
        if (status == RWS_OK) status = rws_posterior_ask_many(p, m.list, m.n, &how, &err);
        rwspy_end();
        if (m.status != RWS_OK) status = m.status, err = m.error;
        if (!PyErr_Occurred()) r = status == RWS_OK ? frame_object(m.frame) : rwspy_raise(program, status, &err);
    }
    release(&m);
    return r;
}

/* ---- calibration */

typedef struct {
    PyObject *told; /* told(done, n) */
    int       n;
} py_simulations;

static bool simulated(void *context, int done)
{
    const py_simulations *s = context;
    return tell(&(py_many){.told = s->told, .n = s->n}, done);
}

static PyObject *numbers_or_none(const double *x, int n, bool there)
{
    return there ? rwspy_doubles(x, n) : Py_NewRef(Py_None);
}

static PyObject *calibrated_object(const rws_calibrated *c)
{
    const bool tested = c->p == c->p;
    double     histogram[RWS_CALIBRATION_BINS];
    for (int i = 0; i < RWS_CALIBRATION_BINS; i++) histogram[i] = c->histogram[i];
    return Py_BuildValue("{s:s,s:O,s:i,s:d,s:d,s:N,s:d,s:d,s:N,s:N,s:N,s:N}", "quantity", c->name, "guide",
                         c->guide ? Py_True : Py_False, "ranks", c->n, "p", c->p, "p_adjusted", c->p_adjusted,
                         "coverage", rwspy_doubles(c->coverage, RWS_CALIBRATION_INTERVALS), "ece", c->confidence_error,
                         "accuracy", c->accuracy, "histogram", rwspy_doubles(histogram, RWS_CALIBRATION_BINS),
                         "difference", numbers_or_none(c->difference, RWS_CALIBRATION_GRID - 1, tested), "low",
                         numbers_or_none(c->low, RWS_CALIBRATION_GRID - 1, tested), "high",
                         numbers_or_none(c->high, RWS_CALIBRATION_GRID - 1, tested));
}

/* (columns of the ranks, quantities, impossible simulations) */
static PyObject *calibration_object(const rws_frame *f, const rws_calibration *c)
{
    PyObject *columns = frame_object(f), *list = PyList_New(c->n);
    for (int i = 0; list && i < c->n; i++) {
        PyObject *o = calibrated_object(&c->list[i]);
        if (o) PyList_SET_ITEM(list, i, o);
        else Py_CLEAR(list);
    }
    if (columns && list) return Py_BuildValue("(NNi)", columns, list, c->n_impossible);
    Py_XDECREF(columns);
    Py_XDECREF(list);
    return NULL;
}

PyObject *rwspy_calibrate(rws_posterior *p, struct program_object *program, PyObject *args)
{
    py_simulations     s;
    unsigned long long seed;
    rws_simulations    how = {.done = simulated, .stop = interrupted, .context = &s};
    rws_frame         *f = NULL;
    rws_calibration   *c = NULL;
    rws_error          err = {{0}};
    if (!PyArg_ParseTuple(args, "iiKiO", &s.n, &how.n_particles, &seed, &how.threads, &s.told)) return NULL;
    how.seed = seed;
    rwspy_begin();
    rws_status status = rws_frame_new(&f, &err);
    if (status == RWS_OK) status = rws_posterior_simulate(p, s.n, &how, f, &err);
    if (status == RWS_OK) status = rws_calibration_new(f, &c, &err);
    rwspy_end();
    PyObject *r = NULL;
    if (!PyErr_Occurred()) r = status == RWS_OK ? calibration_object(f, c) : rwspy_raise(program, status, &err);
    rws_calibration_free(c);
    rws_frame_free(f);
    return r;
}
