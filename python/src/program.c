/* program.c - a Python class as an rws_model: its functions call the methods of the instance that setup ran on.
 *
 * The library calls these functions without the interpreter's lock, on any thread; they take it. An exception is kept in the
 * program object under the message that the library gets, and raised again where Python called the library. */
#include "rwspy.h"

#include <string.h>

/* ---- exceptions */

#define MAX_EXCEPTIONS 64 /* that are kept; a metric may raise one for every particle */

void rwspy_keep_exception(program_object *p, const char *where, char *out, size_t size)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    if (where) {
        PyObject   *text = PyObject_Str(value);
        const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
        PyErr_Clear();
        snprintf(out, size, "%s in %s: %s", ((PyTypeObject *)type)->tp_name, where, said ? said : "");
        Py_XDECREF(text);
    }
    const bool capacity = PyList_GET_SIZE(p->exceptions) < MAX_EXCEPTIONS;
    PyObject  *message = capacity ? PyUnicode_DecodeUTF8(out, (Py_ssize_t)strlen(out), "replace") : NULL;
    PyObject  *entry = message && value ? PyTuple_Pack(2, message, value) : NULL;
    if (!entry || PyList_Append(p->exceptions, entry) != 0) PyErr_Clear();
    Py_XDECREF(entry);
    Py_XDECREF(message);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

void rwspy_forget_exceptions(program_object *p)
{
    PyList_SetSlice(p->exceptions, 0, PyList_GET_SIZE(p->exceptions), NULL);
    p->left = false;
}

PyObject *rwspy_spelled(const char *text)
{
    PyObject *said = rwspy_text(text), *helper = rwspy_helper("spelled");
    PyObject *spelled = said && helper ? PyObject_CallOneArg(helper, said) : NULL;
    Py_XDECREF(said);
    Py_XDECREF(helper);
    return spelled;
}

/* Says in an exception of a program what it means there. */
static void explain(PyObject *exception)
{
    PyObject *helper = rwspy_helper("explained"), *r = helper ? PyObject_CallOneArg(helper, exception) : NULL;
    if (!r) PyErr_Clear();
    Py_XDECREF(helper);
    Py_XDECREF(r);
}

/* What a review of the programs has to say is no exception that they raised. */
static bool is_review(const rws_error *err)
{
    return strstr(err->text, "`no_check` accepts it") != NULL;
}

PyObject *rwspy_raise(program_object *p, rws_status status, const rws_error *err)
{
    PyObject *said = PyUnicode_DecodeUTF8(err->text, (Py_ssize_t)strlen(err->text), "replace"), *found = NULL;
    PyErr_Clear();
    for (Py_ssize_t i = 0; p && said && i < PyList_GET_SIZE(p->exceptions); i++) {
        PyObject *entry = PyList_GET_ITEM(p->exceptions, i);
        if (!found && PyUnicode_Tailmatch(said, PyTuple_GET_ITEM(entry, 0), 0, PY_SSIZE_T_MAX, 1) == 1)
            found = Py_NewRef(PyTuple_GET_ITEM(entry, 1));
    }
    const Py_ssize_t n = p ? PyList_GET_SIZE(p->exceptions) : 0; /* earlier ones may be of a review that went on */
    if (n && !found && !is_review(err)) found = Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(p->exceptions, n - 1), 1));
    if (p) rwspy_forget_exceptions(p);
    PyErr_Clear();
    Py_XSETREF(said, rwspy_spelled(err->text));
    if (found) explain(found);
    if (!said) PyErr_Clear();
    if (found) PyErr_SetObject((PyObject *)Py_TYPE(found), found);
    else if (status == RWS_NO_MEMORY) PyErr_SetObject(PyExc_MemoryError, said);
    else
        PyErr_SetObject(status == RWS_BROKEN    ? rwspy_Broken
                        : status == RWS_STOPPED ? rwspy_Stopped
                                                : rwspy_Error,
                        said);
    Py_XDECREF(found);
    Py_XDECREF(said);
    return NULL;
}

rws_status rwspy_failed(program_object *p, const char *where, rws_error *err)
{
    char message[400];
    rwspy_keep_exception(p, where, message, sizeof message);
    return rws_fail(err, RWS_BAD_INPUT, "%s", message);
}

/* ---- setup and release */

static void state_release(py_state *s)
{
    if (s->scope) s->scope->alive = false;
    Py_CLEAR(s->scope);
    Py_CLEAR(s->self);
    Py_CLEAR(s->guide);
    Py_CLEAR(s->model);
    Py_CLEAR(s->relaxed);
    Py_CLEAR(s->compute);
    Py_CLEAR(s->sizes);
}

static bool set_up(py_state *s, rws_setup *setup, rws_random *random)
{
    scope_object *scope = PyObject_New(scope_object, &rwspy_Scope);
    if (!scope) return false;
    scope->alive = true;
    s->scope = scope;
    s->self = PyObject_CallMethod(s->program->like, "_copy", NULL);
    if (!s->self) return false;
    PyObject *declare = rwspy_setup_new(setup, s), *stream = rwspy_random_new(random);
    PyObject *r = declare && stream ? PyObject_CallMethod(s->self, "_setup", "OO", declare, stream) : NULL;
    if (declare) rwspy_setup_close(declare);
    if (stream) ((random_object *)stream)->random = NULL;
    Py_XDECREF(declare);
    Py_XDECREF(stream);
    if (!r) return false;
    Py_DECREF(r);
    s->guide = PyObject_GetAttrString(s->self, "guide");
    s->model = s->guide ? PyObject_GetAttrString(s->self, "model") : NULL;
    s->sizes = s->model ? PyObject_GetAttrString(s->self, "_sizes") : NULL;
    if (!s->sizes) return false;
    if (!PyDict_Check(s->sizes)) {
        PyErr_SetString(PyExc_TypeError, "_sizes is a dictionary.");
        return false;
    }
    if (!s->program->model.relaxed) return true;
    s->relaxed = PyObject_GetAttrString(s->self, "relaxed");
    return s->relaxed != NULL;
}

static rws_status setup(rws_setup *setup, rws_random *random, void **state, rws_error *err)
{
    const rws_model *model = rws_setup_model(setup);
    py_state        *s = rws_setup_alloc(setup, sizeof *s);
    if (!s) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for a model.");
    s->program = (program_object *)((char *)model - offsetof(program_object, model));
    rwspy_take();
    const bool good = set_up(s, setup, random);
    *state = s;
    const rws_status status = good ? RWS_OK : rwspy_failed(s->program, "setup", err);
    rwspy_give();
    /* if a declaration failed, the library returns the message of that declaration instead */
    return status;
}

static void release(void *state)
{
    rwspy_take();
    state_release(state);
    rwspy_give();
}

/* ---- data */

/* Copies arrays to the library's fields: a list with an array of n x dim float32 for each field. */
static bool copy_fields(py_state *s, PyObject *list, int n, float *const *fields)
{
    PyObject  *name, *size;
    Py_ssize_t at = 0, i = 0;
    for (; PyDict_Next(s->sizes, &at, &name, &size); i++) {
        PyObject  *array = PySequence_GetItem(list, i);
        float     *x;
        Py_ssize_t count;
        const int  dim = (int)PyLong_AsLong(size);
        if (!array) return false;
        if (array == Py_None) {
            Py_DECREF(array);
            continue;
        }
        const bool good = rwspy_floats(array, &x, &count);
        Py_DECREF(array);
        if (!good) return false;
        if (count == (Py_ssize_t)n * dim) memcpy(fields[i], x, (size_t)count * sizeof *x);
        else PyErr_Format(PyExc_ValueError, "The field %R has %d x %d numbers, not %zd.", name, n, dim, count);
        PyMem_Free(x);
        if (PyErr_Occurred()) return false;
    }
    return true;
}

/* A table has no series of labels: Python fills them in, by the numbers of the rows in the label "datum". */
static bool fill_label_series(py_state *s, rws_split split, int n, float *const *fields)
{
    PyObject  *name, *size;
    Py_ssize_t at = 0, i = 0;
    while (PyDict_Next(s->sizes, &at, &name, &size) && PyUnicode_CompareWithASCIIString(name, "datum") != 0) i++;
    PyObject *rows = rwspy_array(fields[i], n, 1);
    PyObject *list =
        rows ? PyObject_CallMethod(s->self, "_label_rows", "sO", split == RWS_TEST ? "test" : "train", rows) : NULL;
    const bool good = list && copy_fields(s, list, n, fields);
    Py_XDECREF(rows);
    Py_XDECREF(list);
    return good;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    py_state *s = (py_state *)state;
    if (s->n_tables) {
        rws_status status = RWS_OK;
        for (int i = 0; i < s->n_tables && status == RWS_OK; i++)
            status = rws_table_fill(s->tables[i], split, first, n, random, fields, err);
        if (status != RWS_OK || !s->label_series) return status;
        rwspy_take();
        if (!fill_label_series(s, split, n, fields)) status = rwspy_failed(s->program, "data", err);
        rwspy_give();
        return status;
    }
    rwspy_take();
    PyObject        *stream = rwspy_random_new(random);
    PyObject        *list = stream ? PyObject_CallMethod(s->self, "_data", "sKiO", split == RWS_TEST ? "test" : "train",
                                                         (unsigned long long)first, n, stream)
                                   : NULL;
    const rws_status status = list && copy_fields(s, list, n, fields) ? RWS_OK : rwspy_failed(s->program, "data", err);
    if (stream) ((random_object *)stream)->random = NULL;
    Py_XDECREF(stream);
    Py_XDECREF(list);
    rwspy_give();
    return status;
}

static rws_status em(const void *state, int n_fresh, rws_random *random, rws_error *err)
{
    py_state  *s = (py_state *)state;
    rws_status status = RWS_OK;
    rwspy_take();
    PyObject *stream = rwspy_random_new(random);
    PyObject *r = stream ? PyObject_CallMethod(s->self, "em", "iO", n_fresh, stream) : NULL;
    if (!r) status = rwspy_failed(s->program, "em", err);
    if (stream) ((random_object *)stream)->random = NULL;
    Py_XDECREF(stream);
    Py_XDECREF(r);
    rwspy_give();
    return status;
}

/* ---- questions */

static rws_status read_text(const void *state, const char *text, float *const *fields, rws_error *err)
{
    py_state *s = (py_state *)state;
    rwspy_take();
    PyObject        *list = PyObject_CallMethod(s->self, "_read", "s", text);
    const rws_status status = list && copy_fields(s, list, 1, fields) ? RWS_OK : rwspy_failed(s->program, "read", err);
    Py_XDECREF(list);
    rwspy_give();
    return status;
}

static rws_status see(const void *state, const rws_grey *picture, float *const *fields, rws_error *err)
{
    py_state *s = (py_state *)state;
    rwspy_take();
    PyObject        *list = PyObject_CallMethod(s->self, "_see", "siiy#", picture->name, picture->wide, picture->high,
                                                (const char *)picture->grey, (Py_ssize_t)picture->wide * picture->high);
    const rws_status status = list && copy_fields(s, list, 1, fields) ? RWS_OK : rwspy_failed(s->program, "see", err);
    Py_XDECREF(list);
    rwspy_give();
    return status;
}

/* Python's posterior returns (log evidence, [(name, text, probability), …]) after _posterior has put it in this form. */
static rws_status posterior(const void *state, const float *const *fields, rws_teller *tell, void *context,
                            double *log_evidence, rws_error *err)
{
    py_state  *s = (py_state *)state;
    PyObject  *name, *size, *list, *r = NULL;
    Py_ssize_t at = 0, i = 0;
    rwspy_take();
    list = PyList_New(0);
    for (; list && PyDict_Next(s->sizes, &at, &name, &size); i++) {
        PyObject *array = fields[i] ? rwspy_array(fields[i], 1, PyLong_AsLong(size)) : Py_NewRef(Py_None);
        if (!array || PyList_Append(list, array) != 0) Py_CLEAR(list);
        Py_XDECREF(array);
    }
    if (list) r = PyObject_CallMethod(s->self, "_posterior", "O", list);
    PyObject *told = NULL;
    if (r && PyArg_ParseTuple(r, "dO!", log_evidence, &PyList_Type, &told))
        for (i = 0; i < PyList_GET_SIZE(told) && !PyErr_Occurred(); i++) {
            const char *report, *text;
            double      p;
            if (PyArg_ParseTuple(PyList_GET_ITEM(told, i), "ssd", &report, &text, &p)) tell(context, report, text, p);
        }
    const rws_status status = PyErr_Occurred() ? rwspy_failed(s->program, "posterior", err) : RWS_OK;
    Py_XDECREF(r);
    Py_XDECREF(list);
    rwspy_give();
    return status;
}

/* ---- the program object */

/* The text of an object, which lives as long as the program object. */
static const char *kept_text(program_object *p, PyObject *o)
{
    if (PyList_Append(p->texts, o) != 0) return NULL;
    return PyUnicode_AsUTF8(o);
}

static bool read_settings(program_object *p, PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    if (n > RWS_MAX_SET) {
        PyErr_Format(PyExc_ValueError, "A model has at most %d settings.", RWS_MAX_SET);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *name, *value, *help;
        int       whole;
        double    min, max;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "UUddUp", &name, &value, &min, &max, &help, &whole))
            return false;
        rws_setting *s = &p->settings[i];
        s->min = min;
        s->max = max;
        s->whole = whole;
        if (!(s->name = kept_text(p, name)) || !(s->value = kept_text(p, value)) || !(s->help = kept_text(p, help)))
            return false;
    }
    p->model.settings = n ? p->settings : NULL;
    return true;
}

static bool read_metrics(program_object *p, PyObject *metrics, PyObject *snapshots)
{
    if (PyList_GET_SIZE(metrics) > RWS_MAX_METRICS - 4 || PyList_GET_SIZE(snapshots) > RWS_MAX_METRICS) {
        PyErr_Format(PyExc_ValueError, "A model has at most %d metrics.", RWS_MAX_METRICS - 4);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(metrics); i++) {
        PyObject   *name, *help;
        int         kind;
        rws_metric *m = &p->metrics[i];
        if (!PyArg_ParseTuple(PyList_GET_ITEM(metrics, i), "UUi", &name, &help, &kind)) return false;
        if (!(m->name = kept_text(p, name)) || !(m->help = kept_text(p, help))) return false;
        if (kind == 0) m->measure = rwspy_metric_callbacks[i].measure;
        else if (kind == 1) m->posterior = rwspy_metric_callbacks[i].particle;
        else m->guide = rwspy_metric_callbacks[i].particle;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(snapshots); i++) {
        PyObject     *name, *help;
        rws_snapshot *s = &p->snapshots[i];
        if (!PyArg_ParseTuple(PyList_GET_ITEM(snapshots, i), "UU", &name, &help)) return false;
        if (!(s->name = kept_text(p, name)) || !(s->help = kept_text(p, help))) return false;
        s->measure = rwspy_metric_callbacks[i].show;
    }
    if (PyList_GET_SIZE(metrics)) p->model.metrics = p->metrics;
    if (PyList_GET_SIZE(snapshots)) p->model.snapshots = p->snapshots;
    return true;
}

static bool contains(PyObject *list, const char *name)
{
    PyObject  *text = PyUnicode_FromString(name);
    const bool found = text && PySequence_Contains(list, text) == 1;
    Py_XDECREF(text);
    return found;
}

/* One of the model's defaults. False: an exception is set. */
static bool read_default(program_object *p, const char *name, PyObject *value)
{
    rws_defaults *d = &p->model.defaults;
    const struct {
        const char  *name;
        const char **text;
        int         *number;
        bool        *flag;
    } all[] = {
        {"optimiser", .text = &d->optimiser},     {"lr", .text = &d->lr},
        {"batch", .number = &d->batch},           {"particles", .number = &d->particles},
        {"iterations", .number = &d->iterations}, {"eval_every", .number = &d->eval_every},
        {"n_test", .number = &d->n_test},         {"shards", .number = &d->shards},
        {"at_once", .number = &d->at_once},       {"pictures", .number = &d->pictures},
        {"grad_std", .flag = &d->grad_std},       {"impossible", .flag = &d->impossible},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) != 0) continue;
        if (all[i].text) return (*all[i].text = kept_text(p, value)) != NULL;
        int x;
        if (!rwspy_int(value, &x)) return false;
        if (all[i].number) *all[i].number = x;
        else *all[i].flag = x != 0;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "There is no default \"%s\".", name);
    return false;
}

static bool read_defaults(program_object *p, PyObject *defaults)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(defaults, &at, &key, &value);) {
        const char *name = PyUnicode_AsUTF8(key);
        if (!name || !read_default(p, name, value)) return false;
    }
    return true;
}

/* Program(like, name, help, settings, metrics, snapshots, defaults, has, ask_setting); `has` names optional methods. */
static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *like, *name, *help, *settings, *metrics, *snapshots, *has, *ask, *defaults;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OUUO!O!O!O!OO", &like, &name, &help, &PyList_Type, &settings, &PyList_Type, &metrics,
                          &PyList_Type, &snapshots, &PyDict_Type, &defaults, &has, &ask))
        return NULL;
    program_object *p = (program_object *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->texts = PyList_New(0);
    p->exceptions = PyList_New(0);
    p->like = Py_NewRef(like);
    rws_model *m = &p->model;
    *m = (rws_model){
        .abi = RWS_ABI, .setup = setup, .release = release, .data = data, .model = rwspy_model, .host = &rwspy_host};
    if (!p->texts || !p->exceptions || !(m->name = kept_text(p, name)) || !(m->help = kept_text(p, help))) goto fail;
    if (!read_settings(p, settings) || !read_metrics(p, metrics, snapshots)) goto fail;
    if (ask != Py_None && !(m->ask_setting = kept_text(p, ask))) goto fail;
    if (contains(has, "guide")) m->guide = rwspy_guide;
    if (contains(has, "relaxed")) m->relaxed = rwspy_relaxed;
    if (contains(has, "em")) m->em = em;
    if (contains(has, "read")) m->read = read_text;
    if (contains(has, "posterior")) m->posterior = posterior;
    if (contains(has, "see")) m->see = see;
    if (!read_defaults(p, defaults)) goto fail;
    /* Python's own C functions recurse deeper than a megabyte; a page that is not touched costs nothing. */
    m->defaults.limits.stack_bytes = (size_t)8 << 20;
    return (PyObject *)p;
fail:
    Py_DECREF(p);
    return NULL;
}

static int program_traverse(PyObject *o, visitproc visit, void *arg)
{
    program_object *p = (program_object *)o;
    Py_VISIT(p->like);
    Py_VISIT(p->exceptions);
    return 0;
}

static int program_clear(PyObject *o)
{
    (void)o; /* the library may still call: the trainer that owns this ends first */
    return 0;
}

static void program_free(PyObject *o)
{
    program_object *p = (program_object *)o;
    PyObject_GC_UnTrack(o);
    Py_XDECREF(p->like);
    Py_XDECREF(p->texts);
    Py_XDECREF(p->exceptions);
    Py_TYPE(o)->tp_free(o);
}

PyTypeObject rwspy_Program = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Program",
    .tp_doc = "A Python class as a model of the library.",
    .tp_basicsize = sizeof(program_object),
    .tp_new = program_new,
    .tp_dealloc = program_free,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
