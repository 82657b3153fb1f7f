/* family.c - distributions of a program's own. Their functions are Python's, and the library calls them in the middle of a
 * library call, on the path's stack: a call within a call (rwspy_call). Programs that are replayed (host.c) cannot have
 * them, because no frame of Python may stand on a path's stack. */
#include "rwspy.h"

#include <string.h>

typedef struct {
    PyObject_HEAD rws_family family;
    PyObject                *name, *draw, *log_density, *length, *prepare, *bounds;
} family_object;

static bool swapping(void)
{
    if (!rwspy_replays()) return true;
    PyErr_SetString(
        rwspy_Error,
        "Distributions of one's own need a version of Python that the package knows (3.11 to 3.13), without "
        "RWS_PYTHON_REPLAY.");
    return false;
}

/* Leaves the library after an exception of Python; does not return. */
static void fail(rws_path *path)
{
    rws_give_up(path, "A distribution of the program's own raised an exception.");
}

/* Calls f(p, *values); the path of the library is that of the running program. */
static PyObject *call(rws_path *path, PyObject *f, const rws_var *v, int n)
{
    py_path  *h = rwspy_running("A distribution");
    PyObject *args[RWS_FAMILY_PARAMS + 3] = {0};
    bool      good = h != NULL;
    if (good) args[0] = rwspy_path_object(h);
    for (int i = 0; good && i < n; i++) good = (args[1 + i] = rwspy_value(h, v[i])) != NULL;
    PyObject *r = good ? PyObject_Vectorcall(f, args, (size_t)n + 1, NULL) : NULL;
    for (int i = 1; i <= n; i++) Py_XDECREF(args[i]);
    if (!r) fail(path);
    return r;
}

static rws_var value_of(rws_path *path, PyObject *o)
{
    rws_var    v = {0};
    const bool good = rwspy_var(rwspy_current(), o, &v);
    Py_DECREF(o);
    if (!good) fail(path);
    return v;
}

static rws_var family_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)stop;
    const family_object *o = f->context;
    return value_of(path, call(path, o->draw, p, f->n_params));
}

static rws_var family_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    const family_object *o = f->context;
    rws_var              v[RWS_FAMILY_PARAMS + 1] = {value};
    memcpy(v + 1, p, (size_t)f->n_params * sizeof *p);
    return value_of(path, call(path, o->log_density, v, f->n_params + 1));
}

static int family_length(rws_path *path, const rws_family *f, const rws_var *p)
{
    const family_object *o = f->context;
    PyObject            *r = call(path, o->length, p, f->n_params);
    int                  n = 1;
    const bool           good = rwspy_int(r, &n);
    Py_DECREF(r);
    if (!good) fail(path);
    return n;
}

static void family_prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    const family_object *o = f->context;
    PyObject            *r = call(path, o->prepare, p, f->n_params);
    PyObject            *list = PySequence_Fast(r, "prepare returns the parameters, a list.");
    Py_DECREF(r);
    bool good = list && PySequence_Fast_GET_SIZE(list) == f->n_params;
    if (list && !good) PyErr_Format(PyExc_ValueError, "prepare returns %d parameters.", f->n_params);
    for (int i = 0; good && i < f->n_params; i++)
        good = rwspy_var(rwspy_current(), PySequence_Fast_GET_ITEM(list, i), &p[i]);
    Py_XDECREF(list);
    if (!good) fail(path);
}

/* bounds(p, *parameters) returns the lowest and the highest value, either of which may be None. */
static void family_bounds(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2])
{
    const family_object *o = f->context;
    PyObject            *r = call(path, o->bounds, p, f->n_params);
    bool                 good = PyTuple_Check(r) && PyTuple_GET_SIZE(r) == 2;
    if (!good) PyErr_SetString(PyExc_TypeError, "bounds returns a tuple: the lowest and the highest value, or None.");
    for (int i = 0; good && i < 2; i++)
        if (PyTuple_GET_ITEM(r, i) != Py_None) good = rwspy_var(rwspy_current(), PyTuple_GET_ITEM(r, i), &bound[i]);
    Py_DECREF(r);
    if (!good) fail(path);
}

static const char *const supports[] = {"real",    "positive", "unit",  "count",       "index",     "bits",
                                       "simplex", "interval", "angle", "log_simplex", "partition", "certain"};

/* Family(name, n_params, log_density, draw=None, support="real", reparameterised=False, length=None, prepare=None,
 * bounds=None) */
static PyObject *family_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name",   "n_params", "log_density", "draw", "support", "reparameterised",
                            "length", "prepare",  "bounds",      NULL};
    PyObject    *name, *log_density, *draw = Py_None, *length = Py_None, *prepare = Py_None, *bounds = Py_None;
    const char  *support = "real";
    int          n, reparameterised = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UiO|OspOOO:Family", names, &name, &n, &log_density, &draw,
                                     &support, &reparameterised, &length, &prepare, &bounds))
        return NULL;
    if (n < 0 || n > RWS_FAMILY_PARAMS)
        return PyErr_Format(PyExc_ValueError, "A family has 0 to %d parameters, not %d.", RWS_FAMILY_PARAMS, n);
    size_t s = 0;
    while (s < sizeof supports / sizeof *supports && strcmp(supports[s], support) != 0) s++;
    if (s == sizeof supports / sizeof *supports || s == RWS_SUPPORT_INDEX)
        return PyErr_Format(
            PyExc_ValueError,
            "A support is real, positive, unit, interval, count, bits, simplex, log_simplex, partition, "
            "angle or certain, not %s.",
            support);
    if (s == RWS_SUPPORT_INTERVAL && bounds == Py_None)
        return PyErr_Format(PyExc_ValueError, "The support interval needs bounds, a function of the parameters.");
    family_object *o = (family_object *)type->tp_alloc(type, 0);
    if (!o) return NULL;
    o->name = Py_NewRef(name);
    o->log_density = Py_NewRef(log_density);
    o->draw = Py_NewRef(draw);
    o->length = Py_NewRef(length);
    o->prepare = Py_NewRef(prepare);
    o->bounds = Py_NewRef(bounds);
    o->family = (rws_family){.name = PyUnicode_AsUTF8(name),
                             .support = (rws_support)s,
                             .reparameterised = reparameterised,
                             .n_params = n,
                             .context = o,
                             .log_density = family_log_density};
    if (draw != Py_None) o->family.draw = family_draw;
    if (length != Py_None) o->family.length = family_length;
    if (prepare != Py_None) o->family.prepare = family_prepare;
    if (bounds != Py_None) o->family.bounds = family_bounds;
    if (!o->family.name) Py_CLEAR(o);
    return (PyObject *)o;
}

static void family_free(PyObject *self)
{
    family_object *o = (family_object *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(o->name);
    Py_XDECREF(o->draw);
    Py_XDECREF(o->log_density);
    Py_XDECREF(o->length);
    Py_XDECREF(o->prepare);
    Py_XDECREF(o->bounds);
    Py_TYPE(self)->tp_free(self);
}

static int family_traverse(PyObject *self, visitproc visit, void *arg)
{
    family_object *o = (family_object *)self;
    Py_VISIT(o->draw);
    Py_VISIT(o->log_density);
    Py_VISIT(o->length);
    Py_VISIT(o->prepare);
    Py_VISIT(o->bounds);
    return 0;
}

static PyObject *family_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<rws.Family %R>", ((family_object *)self)->name);
}

PyTypeObject rwspy_Family = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Family",
    .tp_doc =
        "Family(name, n_params, log_density, draw=None, support=\"real\", reparameterised=False, length=None, "
        "prepare=None, bounds=None)\n\n"
        "A family of distributions: log_density(p, value, *parameters) is a value of one number; draw(p, "
        "*parameters) draws\n"
        "from p.noise_normal, p.noise_uniform, p.draw_index or p.draw_from. Both are made of functions on "
        "values, so that\n"
        "gradients follow by themselves. At a site, guide and model may have different families of one support: real, "
        "positive,\nunit, interval (then bounds(p, *parameters) returns the lowest and the highest value), count, "
        "bits, simplex,\nlog_simplex, partition, angle or certain. Keep it in a global or an attribute; Path.site "
        "visits a site with it.",
    .tp_basicsize = sizeof(family_object),
    .tp_new = family_new,
    .tp_dealloc = family_free,
    .tp_traverse = family_traverse,
    .tp_repr = family_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};

/* The family that an argument names: an rws.Family or the name of one of the library's. */
static const rws_family *family_of(PyObject *o)
{
    if (Py_IS_TYPE(o, &rwspy_Family)) return swapping() ? &((family_object *)o)->family : NULL;
    if (PyUnicode_Check(o)) {
        const rws_family *f = rws_family_find(PyUnicode_AsUTF8(o));
        if (!f) PyErr_Format(rwspy_Error, "There is no distribution %R.", o);
        return f;
    }
    PyErr_Format(PyExc_TypeError, "A family is an rws.Family or a name, not %.100s.", Py_TYPE(o)->tp_name);
    return NULL;
}

static bool parameters(py_path *h, const rws_family *f, PyObject *const *args, Py_ssize_t n, rws_var *out)
{
    if (n != f->n_params) {
        PyErr_Format(PyExc_TypeError, "The family %s has %d parameters, not %zd.", f->name, f->n_params, n);
        return false;
    }
    for (int i = 0; i < f->n_params; i++)
        if (!rwspy_var(h, args[i], &out[i])) return false;
    return true;
}

static const char *site_name(PyObject *o)
{
    if (PyUnicode_Check(o)) return PyUnicode_AsUTF8(o);
    PyErr_Format(PyExc_TypeError, "The name of a site is a text, not %.100s.", Py_TYPE(o)->tp_name);
    return NULL;
}

/* Families whose functions are Python's live as long as the model that uses them. */
static bool keep(py_path *h, PyObject *o)
{
    if (!Py_IS_TYPE(o, &rwspy_Family)) return true;
    PyObject *helper = rwspy_helper("keep_kernel");
    PyObject *r = helper ? PyObject_CallFunctionObjArgs(helper, rwspy_state(h)->self, o, NULL) : NULL;
    Py_XDECREF(helper);
    Py_XDECREF(r);
    return r != NULL;
}

PyObject *rwspy_site(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    py_path          *h = rwspy_own(self);
    rws_var           p[RWS_FAMILY_PARAMS];
    const rws_family *f;
    if (!h) return NULL;
    if (n < 2 || (names && PyTuple_GET_SIZE(names)))
        return PyErr_Format(PyExc_TypeError, "The arguments are site(name, family, *parameters).");
    request c = {.kind = CALL_FAMILY, .parts = p, .name = site_name(args[0])};
    if (!c.name || !(f = family_of(args[1])) || !keep(h, args[1]) || !parameters(h, f, args + 2, n - 2, p)) return NULL;
    c.f = (void *)f;
    c.n = f->n_params;
    return rwspy_call_value(h, &c);
}

PyObject *rwspy_log_density(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path          *h = rwspy_own(self);
    rws_var           p[RWS_FAMILY_PARAMS];
    const rws_family *f;
    request           c = {.kind = CALL_LOG_DENSITY, .parts = p};
    if (!h) return NULL;
    if (n < 2) return PyErr_Format(PyExc_TypeError, "The arguments are log_density(family, value, *parameters).");
    if (!(f = family_of(args[0])) || !rwspy_var(h, args[1], &c.v[0]) || !parameters(h, f, args + 2, n - 2, p))
        return NULL;
    c.f = (void *)f;
    c.n = f->n_params;
    return rwspy_call_value(h, &c);
}

PyObject *rwspy_draw_from(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path          *h = rwspy_own(self);
    rws_var           p[RWS_FAMILY_PARAMS];
    const rws_family *f;
    request           c = {.kind = CALL_DRAW_FROM, .parts = p};
    if (!h) return NULL;
    if (n < 1) return PyErr_Format(PyExc_TypeError, "The arguments are draw_from(family, *parameters).");
    if (!(f = family_of(args[0])) || !parameters(h, f, args + 1, n - 1, p)) return NULL;
    c.f = (void *)f;
    c.n = f->n_params;
    return rwspy_call_value(h, &c);
}

/* mixture(site, logits, [(family, *parameters), …]) */
PyObject *rwspy_mixture(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path *h = rwspy_own(self);
    request  c = {.kind = CALL_MIXTURE};
    if (!h) return NULL;
    if (n != 3 || !PyList_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "The arguments are mixture(site, logits, [(family, *parameters), ...]).");
    if (!swapping() || !(c.name = site_name(args[0])) || !rwspy_var(h, args[1], &c.v[0])) return NULL;
    const Py_ssize_t count = PyList_GET_SIZE(args[2]);
    rws_component   *components = PyMem_Calloc((size_t)count + 1, sizeof *components);
    rws_var         *params = PyMem_Calloc((size_t)count + 1, RWS_FAMILY_PARAMS * sizeof *params);
    bool             good = components && params;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *t = PyList_GET_ITEM(args[2], i);
        rws_var  *p = params + i * RWS_FAMILY_PARAMS;
        good = PyTuple_Check(t) && PyTuple_GET_SIZE(t) > 0;
        if (!good) PyErr_SetString(PyExc_TypeError, "A component is a tuple (family, *parameters).");
        const rws_family *f = good ? family_of(PyTuple_GET_ITEM(t, 0)) : NULL;
        good = f && keep(h, PyTuple_GET_ITEM(t, 0)) &&
               parameters(h, f, &PyTuple_GET_ITEM(t, 1), PyTuple_GET_SIZE(t) - 1, p);
        components[i] = (rws_component){f, p};
    }
    c.context = components;
    c.n = (int)count;
    PyObject *r = good ? rwspy_call_value(h, &c) : NULL;
    PyMem_Free(components);
    PyMem_Free(params);
    return r;
}

/* ---- observations with a density of one's own */

typedef struct {
    PyObject *log_density, *draw;
} observation;

rws_var rwspy_density(rws_path *path, rws_var datum, const void *context)
{
    const observation *o = context;
    return value_of(path, call(path, o->log_density, &datum, 1));
}

rws_var rwspy_drawer(rws_path *path, const void *context)
{
    const observation *o = context;
    return value_of(path, call(path, o->draw, NULL, 0));
}

PyObject *rwspy_observe(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    py_path    *h = rwspy_own(self);
    observation o = {n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL};
    if (!h) return NULL;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), "draw") == 0) o.draw = args[n + k];
        else n = 0;
    if (n < 2 || n > 3)
        return PyErr_Format(PyExc_TypeError, "The arguments are observe(name, log_density, draw=None).");
    if (o.draw == Py_None) o.draw = NULL;
    request c = {.kind = CALL_OBSERVE, .context = &o, .i = {o.draw != NULL}, .name = site_name(args[0])};
    return c.name && swapping() ? rwspy_call_value(h, &c) : NULL;
}
