/* many.c - many questions from Python, asked without the interpreter's lock, and the table of their answers. */
#include "rwspy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the draws from the posteriors have at a visit of a site: n x draws x dim, NaN where it is not visited. */
typedef struct {
    char   site[200];
    int    visit, dim;
    float *values;
} py_drawn;

/* Data as Python has them: fields as arrays of n x dim float32, or texts, or pictures, or numbers of test data. */
typedef struct {
    PyObject     *fields, *texts, *tests, *told; /* told(done, n): shows the progress; or None */
    Py_buffer     pictures;                      /* n x high x wide bytes */
    Py_buffer     uniform;                       /* a number from 0 to 1 for each draw of the posterior */
    uint64_t      first;                         /* the number of the first question */
    py_drawn     *drawn;
    int           n_drawn;
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
    for (int i = 0; i < m->n_drawn; i++) free(m->drawn[i].values);
    free(m->drawn);
    if (m->uniform.obj) PyBuffer_Release(&m->uniform);
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

/* ---- draws from the posteriors */

static int n_draws(const py_many *m)
{
    return (int)(m->uniform.len / (Py_ssize_t)sizeof(double));
}

/* The draws of a choice of this place and size, which are added if they are new; NULL without memory. */
static float *drawn_at(py_many *m, const rws_choice *c, int near)
{
    for (int i = 0; i < m->n_drawn; i++) {
        py_drawn *d = &m->drawn[(near + i) % m->n_drawn];
        if (d->visit == c->visit && d->dim == c->dim && strncmp(d->site, c->site, sizeof d->site - 1) == 0)
            return d->values;
    }
    py_drawn *longer = realloc(m->drawn, (size_t)(m->n_drawn + 1) * sizeof *longer);
    if (!longer) return NULL;
    m->drawn = longer;
    const size_t n = (size_t)m->n * (size_t)n_draws(m) * (size_t)c->dim;
    py_drawn    *d = &m->drawn[m->n_drawn];
    *d = (py_drawn){.visit = c->visit, .dim = c->dim, .values = malloc((n + 1) * sizeof(float))};
    if (!d->values) return NULL;
    snprintf(d->site, sizeof d->site, "%s", c->site);
    for (size_t i = 0; i < n; i++) d->values[i] = NAN;
    m->n_drawn++;
    return d->values;
}

/* The particle at u of the sum of weights, turned by an angle of the question's own so that questions differ. */
static int pick(const rws_answers *a, uint64_t question, double u)
{
    double at = fmod(u + 0.6180339887498949 * (double)question, 1);
    int    i = 0;
    while (i + 1 < a->n_weighted && (at -= a->particles[i].weight) >= 0) i++;
    return i;
}

static bool draw(py_many *m, int question, const rws_answers *a)
{
    const rws_choice log_p = {.site = "lp", .visit = -1, .dim = 1};
    const double    *uniform = m->uniform.buf;
    const int        N = n_draws(m);
    for (int k = 0; k < N && a->n_weighted && a->particles[0].weight > 0; k++) {
        const rws_weighted *w = &a->particles[pick(a, m->first + (uint64_t)question, uniform[k])];
        const size_t        row = (size_t)question * (size_t)N + (size_t)k;
        float              *lp = drawn_at(m, &log_p, 0);
        if (!lp) return false;
        lp[row] = (float)w->log_p;
        for (int i = 0; i < w->n_choices; i++) {
            const rws_choice *c = &w->choices[i];
            float            *to = c->dim > m->most_dim ? NULL : drawn_at(m, c, i + 1);
            if (!to && c->dim <= m->most_dim) return false;
            if (to) memcpy(to + row * (size_t)c->dim, c->value, (size_t)c->dim * sizeof *to);
        }
    }
    return true;
}

/* A list of (site, visit, array of n x draws x dim). */
static PyObject *drawn_object(const py_many *m)
{
    PyObject *list = PyList_New(m->n_drawn);
    for (int i = 0; list && i < m->n_drawn; i++) {
        const py_drawn *d = &m->drawn[i];
        PyObject       *array = rwspy_array(d->values, m->n * n_draws(m), d->dim);
        PyObject       *entry = array ? Py_BuildValue("(siN)", d->site, d->visit, array) : NULL;
        if (entry) PyList_SET_ITEM(list, i, entry);
        else Py_CLEAR(list);
    }
    return list;
}

static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    py_many *m = context;
    (void)status;
    m->status = rws_frame_add(m->frame, a, message, m->most_dim, &m->error);
    if (m->status == RWS_OK && a && !draw(m, i, a)) m->status = RWS_NO_MEMORY;
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
    PyObject          *pictures, *given, *uniform;
    unsigned long long seed;
    int                listed;
    unsigned long long first;
    if (!PyArg_ParseTuple(args, "iOOOOiKpO!iiiiKOO", &m->n, &m->fields, &m->texts, &pictures, &m->tests, &q.n_particles,
                          &seed, &listed, &PyList_Type, &given, &q.refine, &q.chains, &how->threads, &m->most_dim,
                          &first, &uniform, &m->told))
        return false;
    how->first = m->first = first;
    if (uniform != Py_None && PyObject_GetBuffer(uniform, &m->uniform, PyBUF_SIMPLE) != 0) return false;
    if (pictures != Py_None && !PyArg_ParseTuple(pictures, "iiy*", &m->high, &m->wide, &m->pictures)) return false;
    if (!rwspy_choices_read(given, &m->given, &m->n_given) || !read_data(m)) return false;
    for (int i = 0; i < m->n; i++) {
        m->list[i].n_particles = q.n_particles;
        m->list[i].seed = seed;
        m->list[i].particles = listed;
        m->list[i].given = m->given;
        m->list[i].n_given = m->n_given;
        m->list[i].refine = q.refine;
        m->list[i].chains = q.chains;
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
        if (PyErr_Occurred()) r = NULL;
        else if (status != RWS_OK) r = rwspy_raise(program, status, &err);
        else if ((r = frame_object(m.frame))) r = Py_BuildValue("(NN)", r, drawn_object(&m));
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
    if (!PyArg_ParseTuple(args, "iiiiKiO", &s.n, &how.n_particles, &how.refine, &how.chains, &seed, &how.threads,
                          &s.told))
        return NULL;
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
