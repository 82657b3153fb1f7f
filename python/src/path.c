/* path.c - what a program does on its path: sites, data, reports, and numbers for Python's own control flow. */
#include "rwspy.h"

#include <math.h>
#include <string.h>

#define MAX_PARAMETERS 4
#define own rwspy_own

/* A family of distributions: the names of its parameters, and the library's function. */
typedef struct {
    const char *name, *parameters[MAX_PARAMETERS];
    void       *f;
    int         n;
} family;

/* The path of a Path object, for a method that is called in its program. */
py_path *rwspy_own(PyObject *self)
{
    py_path *h = ((path_object *)self)->h, *now = rwspy_current();
    if (h && h == now) return h;
    PyErr_SetString(
        rwspy_Error,
        h ? "The path belongs to another execution of a program; a step of a loop uses the path that it is given."
          : "The path is over.");
    return NULL;
}

static const char *text_of(PyObject *o, const char *what)
{
    if (PyUnicode_Check(o)) return PyUnicode_AsUTF8(o);
    PyErr_Format(PyExc_TypeError, "%s is a text, not %.100s.", what, Py_TYPE(o)->tp_name);
    return NULL;
}

static bool wrong_arguments(const family *f)
{
    PyErr_Format(PyExc_TypeError, "The arguments are %s(site, %s%s%s%s%s%s%s).", f->name, f->parameters[0],
                 f->n > 1 ? ", " : "", f->n > 1 ? f->parameters[1] : "", f->n > 2 ? ", " : "",
                 f->n > 2 ? f->parameters[2] : "", f->n > 3 ? ", " : "", f->n > 3 ? f->parameters[3] : "");
    return false;
}

/* Puts positional and named arguments into the order of the family's parameters. */
static bool arrange(const family *f, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out)
{
    if (n < 1 || n - 1 > f->n) return wrong_arguments(f);
    for (Py_ssize_t i = 1; i < n; i++) out[i - 1] = args[i];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        int i = 0;
        while (i < f->n && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), f->parameters[i]) != 0) i++;
        if (i == f->n || out[i]) return wrong_arguments(f);
        out[i] = args[n + k];
    }
    for (int i = 0; i < f->n; i++)
        if (!out[i]) return wrong_arguments(f);
    return true;
}

static bool visit(py_path *h, PyObject *const *args, Py_ssize_t n, PyObject *names, const family *f, result *r)
{
    static const call_kind kinds[] = {CALL_SITE1, CALL_SITE2, CALL_SITE3, CALL_SITE4};
    PyObject              *given[MAX_PARAMETERS] = {0};
    if (!arrange(f, args, n, names, given)) return false;
    request c = {.kind = kinds[f->n - 1], .f = f->f, .name = text_of(args[0], "The name of a site")};
    if (!c.name) return false;
    for (int i = 0; i < f->n; i++)
        if (!rwspy_var(h, given[i], &c.v[i])) return false;
    return rwspy_call(h, &c, r);
}

static PyObject *site(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names, const family *f)
{
    py_path *h = own(self);
    result   r;
    return h && visit(h, args, n, names, f, &r) ? rwspy_value(h, r.v) : NULL;
}

/* The same for a choice that is wanted as a number. */
static PyObject *number(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names, const family *f)
{
    py_path *h = own(self);
    result   r, i;
    if (!h || !visit(h, args, n, names, f, &r)) return NULL;
    return rwspy_call(h, &(request){.kind = CALL_BRANCH, .v = {r.v}}, &i) ? PyLong_FromLongLong(i.i) : NULL;
}

#define FAMILY(name, count, ...)                                                                       \
    static PyObject *path_##name(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) \
    {                                                                                                  \
        static const family f = {#name, {__VA_ARGS__}, (void *)rws_##name, count};                     \
        return site(self, args, n, names, &f);                                                         \
    }

FAMILY(categorical, 1, "logits")
FAMILY(bernoulli, 1, "logits")
FAMILY(normal, 2, "mean", "sd")
FAMILY(uniform, 2, "low", "high")
FAMILY(gumbel, 1, "location")
FAMILY(concrete, 2, "logits", "temperature")
FAMILY(exponential, 1, "rate")
FAMILY(log_normal, 2, "mean", "sd")
FAMILY(laplace, 2, "location", "scale")
FAMILY(half_normal, 1, "scale")
FAMILY(gumbel_scale, 2, "location", "scale")
FAMILY(truncated_normal, 4, "mean", "sd", "low", "high")
FAMILY(gamma, 2, "shape", "rate")
FAMILY(inverse_gamma, 2, "shape", "scale")
FAMILY(beta, 2, "a", "b")
FAMILY(student_t, 3, "degrees", "location", "scale")
FAMILY(poisson, 1, "rate")
FAMILY(geometric, 1, "logit")
FAMILY(binomial, 2, "trials", "logit")
FAMILY(negative_binomial, 2, "shape", "logit")
FAMILY(dirichlet, 1, "concentrations")
FAMILY(multivariate_normal, 2, "mean", "factor")
FAMILY(multinomial, 2, "trials", "logits")
FAMILY(von_mises, 2, "location", "concentration")
FAMILY(delta, 1, "at")

static PyObject *path_categoricals(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_CATEGORICALS};
    if (!h) return NULL;
    if (n != 3) return PyErr_Format(PyExc_TypeError, "The arguments are categoricals(site, logits, n).");
    if (!(c.name = text_of(args[0], "The name of a site")) || !rwspy_var(h, args[1], &c.v[0]) ||
        !rwspy_int(args[2], &c.i[0]))
        return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *noise(PyObject *self, PyObject *dim, rws_noise kind)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_NOISE, .i = {0, (int)kind}};
    if (!h || !rwspy_int(dim, &c.i[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *path_noise_normal(PyObject *self, PyObject *dim)
{
    return noise(self, dim, RWS_NOISE_NORMAL);
}

static PyObject *path_noise_uniform(PyObject *self, PyObject *dim)
{
    return noise(self, dim, RWS_NOISE_UNIFORM);
}

static PyObject *path_draw_index(PyObject *self, PyObject *log_p)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_ONE, .f = (void *)rws_draw_index};
    if (!h || !rwspy_var(h, log_p, &c.v[0])) return NULL;
    return rwspy_call_value(h, &c);
}

/* ---- choices as numbers */

static PyObject *branched(py_path *h, PyObject *value)
{
    request c = {.kind = CALL_BRANCH};
    result  r;
    if (!value) return NULL;
    const bool good = rwspy_var(h, value, &c.v[0]) && rwspy_call(h, &c, &r);
    Py_DECREF(value);
    return good ? PyLong_FromLongLong(r.i) : NULL;
}

static PyObject *path_choose(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const family f = {"choose", {"logits"}, (void *)rws_categorical, 1};
    return number(self, args, n, names, &f);
}

static PyObject *path_flip(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    static const family f = {"flip", {"logit"}, (void *)rws_bernoulli, 1};
    return number(self, args, n, names, &f);
}

static PyObject *path_branch(PyObject *self, PyObject *value)
{
    py_path *h = own(self);
    return h ? branched(h, Py_NewRef(value)) : NULL;
}

static PyObject *path_look(PyObject *self, PyObject *value)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_LOOK}, d = {.kind = CALL_DIM};
    result   r, n;
    if (!h || !rwspy_var(h, value, &c.v[0])) return NULL;
    d.v[0] = c.v[0];
    return rwspy_call(h, &d, &n) && rwspy_call(h, &c, &r) ? rwspy_numbers(h, r.numbers, (int)n.i) : NULL;
}

static PyObject *path_await(PyObject *self, PyObject *list)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_AWAIT};
    rws_var *parts;
    result   r;
    if (!h || !rwspy_vars(h, list, &parts, &c.n)) return NULL;
    c.parts = parts;
    const bool good = rwspy_call(h, &c, &r);
    PyMem_Free(parts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- data */

static PyObject *named(PyObject *self, PyObject *name, call_kind kind)
{
    py_path *h = own(self);
    request  c = {.kind = kind};
    if (!h || !(c.name = text_of(name, "The name of a field"))) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *path_observed(PyObject *self, PyObject *name)
{
    return named(self, name, CALL_OBSERVED);
}

static PyObject *path_length(PyObject *self, PyObject *name)
{
    py_path *h = own(self);
    return h ? branched(h, named(self, name, CALL_LENGTH)) : NULL;
}

static PyObject *path_shape(PyObject *self, PyObject *name)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_FIELD};
    result   r;
    if (!h || !(c.name = text_of(name, "The name of a field")) || !rwspy_call(h, &c, &r)) return NULL;
    return r.field->most ? Py_BuildValue("ii", r.field->most, r.field->item) : Py_BuildValue("(i)", r.field->dim);
}

static PyObject *path_item(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_ITEM};
    if (!h) return NULL;
    if (n != 2) return PyErr_Format(PyExc_TypeError, "The arguments are item(series, t).");
    if (!(c.name = text_of(args[0], "The name of a series")) || !rwspy_int(args[1], &c.i[0])) return NULL;
    return rwspy_call_value(h, &c);
}

static PyObject *path_items(PyObject *self, PyObject *name)
{
    py_path   *h = own(self);
    PyObject  *length = h ? path_length(self, name) : NULL;
    request    c = {.kind = CALL_ITEM};
    int        n = 0;
    const bool good = length && rwspy_int(length, &n);
    Py_XDECREF(length);
    PyObject *list = good && (c.name = text_of(name, "The name of a series")) ? PyList_New(n) : NULL;
    for (; list && c.i[0] < n; c.i[0]++) {
        PyObject *item = rwspy_call_value(h, &c);
        if (item) PyList_SET_ITEM(list, c.i[0], item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *path_constant(PyObject *self, PyObject *o)
{
    py_path *h = own(self);
    rws_var  v;
    return h && rwspy_var(h, o, &v) ? rwspy_value(h, v) : NULL;
}

/* ---- observations that Python makes, factors */

/* A kernel that is a Python function. Its exception makes the number NaN, which fails the pass, and is raised instead. */
static double python_kernel(const float *datum, const float *made, int dim, const void *context)
{
    const py_kernel *k = context;
    const bool       held = rwspy_current() != NULL; /* called in the middle of the program, which has the lock */
    double           x = NAN;
    if (!held) rwspy_take();
    PyObject *a = rwspy_array(datum, 1, dim), *b = a ? rwspy_array(made, 1, dim) : NULL;
    PyObject *helper = b ? rwspy_helper("kernel") : NULL;
    PyObject *r = helper ? PyObject_CallFunctionObjArgs(helper, k->f, a, b, NULL) : NULL;
    if (r) x = PyFloat_AsDouble(r);
    if (PyErr_Occurred()) {
        char message[400];
        x = NAN;
        rwspy_keep_exception(k->program, "a kernel", message, sizeof message);
    }
    Py_XDECREF(r);
    Py_XDECREF(helper);
    Py_XDECREF(a);
    Py_XDECREF(b);
    if (!held) rwspy_give();
    return x;
}

static PyObject *path_simulate(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path   *h = own(self);
    request    c = {.kind = CALL_SIMULATE, .f = (void *)rws_edit_kernel};
    float     *made;
    Py_ssize_t count;
    result     r;
    if (!h) return NULL;
    if (n < 2 || n > 3)
        return PyErr_Format(PyExc_TypeError, "The arguments are simulate(site, made, kernel=\"edit\").");
    if (!(c.name = text_of(args[0], "The name of a site"))) return NULL;
    if (n == 3 && PyUnicode_Check(args[2])) {
        if (PyUnicode_CompareWithASCIIString(args[2], "equal") == 0) c.f = (void *)rws_equal_kernel;
        else if (PyUnicode_CompareWithASCIIString(args[2], "edit") != 0)
            return PyErr_Format(PyExc_ValueError, "A kernel is \"edit\", \"equal\" or a function, not %R.", args[2]);
    } else if (n == 3) {
        if (!PyCallable_Check(args[2]))
            return PyErr_Format(PyExc_TypeError, "A kernel is \"edit\", \"equal\" or a function.");
        c.f = (void *)python_kernel;
        c.context = args[2];
        /* the kernel runs later: the state keeps it */
        PyObject *helper = rwspy_helper("keep_kernel");
        PyObject *done = helper ? PyObject_CallFunctionObjArgs(helper, rwspy_state(h)->self, args[2], NULL) : NULL;
        Py_XDECREF(helper);
        if (!done) return NULL;
        Py_DECREF(done);
    }
    PyObject *size = PyDict_GetItemWithError(rwspy_state(h)->sizes, args[0]);
    if (!size && !PyErr_Occurred()) PyErr_Format(rwspy_Error, "The data have no field %R.", args[0]);
    if (!size || !rwspy_int(size, &c.i[0]) || !rwspy_floats(args[1], &made, &count)) return NULL;
    if (count > c.i[0]) {
        PyMem_Free(made);
        return PyErr_Format(PyExc_ValueError, "The field \"%s\" has %d numbers, and %zd were made.", c.name, c.i[0],
                            count);
    }
    c.numbers = made;
    c.n = (int)count;
    const bool good = rwspy_call(h, &c, &r);
    PyMem_Free(made);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *path_factor(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    py_path  *h = own(self);
    request   c = {.kind = CALL_FACTOR};
    PyObject *in_prior = n > 2 ? args[2] : NULL;
    result    r;
    if (!h) return NULL;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), "in_prior") == 0) in_prior = args[n + k];
        else n = 0;
    if (n < 2 || n > 3)
        return PyErr_Format(PyExc_TypeError, "The arguments are factor(name, log_weight, in_prior=False).");
    if (!(c.name = text_of(args[0], "The name of a factor")) || !rwspy_var(h, args[1], &c.v[0])) return NULL;
    if (in_prior) c.i[0] = PyObject_IsTrue(in_prior);
    if (c.i[0] < 0 || !rwspy_call(h, &c, &r)) return NULL;
    Py_RETURN_NONE;
}

/* ---- reports */

static PyObject *path_report(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_REPORT};
    result   r;
    if (!h) return NULL;
    if (n != 2) return PyErr_Format(PyExc_TypeError, "The arguments are report(name, value).");
    if (!(c.name = text_of(args[0], "The name of a report"))) return NULL;
    if (PyUnicode_Check(args[1])) {
        c.kind = CALL_REPORT_TEXT;
        if (!(c.context = PyUnicode_AsUTF8(args[1]))) return NULL;
    } else if (!rwspy_var(h, args[1], &c.v[0])) return NULL;
    if (!rwspy_call(h, &c, &r)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *asked(PyObject *self, void *which)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_REPORTS, .i = {which != NULL}};
    result   r;
    return h && rwspy_call(h, &c, &r) ? PyBool_FromLong(r.i != 0) : NULL;
}

static PyObject *path_iteration(PyObject *self, void *unused)
{
    (void)unused;
    py_path *h = own(self);
    request  c = {.kind = CALL_ITERATION};
    result   r;
    return h && rwspy_call(h, &c, &r) ? PyLong_FromLongLong(r.i) : NULL;
}

static PyObject *path_give_up(PyObject *self, PyObject *text)
{
    py_path *h = own(self);
    request  c = {.kind = CALL_GIVE_UP};
    result   r;
    if (!h || !(c.context = text_of(text, "The reason"))) return NULL;
    rwspy_call(h, &c, &r);
    return NULL;
}

PyObject *rwspy_path_new(py_path *h)
{
    path_object *p = PyObject_New(path_object, &rwspy_Path);
    if (p) p->h = h;
    return (PyObject *)p;
}

static void path_free(PyObject *o)
{
    PyObject_Free(o);
}

#define KEYWORDS(name) (PyCFunction)(void (*)(void)) path_##name, METH_FASTCALL | METH_KEYWORDS
#define FAST(name) (PyCFunction)(void (*)(void)) path_##name, METH_FASTCALL
#define SITE(name, arguments, doc)                                   \
    {                                                                \
#name, KEYWORDS(name), #name "(site, " arguments ")\n\n" doc \
    }

static PyMethodDef methods[] = {
    SITE(categorical, "logits", "A choice: its index, as a value."),
    SITE(bernoulli, "logits", "Zeros and ones, one for each logit."),
    SITE(normal, "mean, sd", "Normal numbers, independent components."),
    SITE(uniform, "low, high", "Numbers between low and high."),
    SITE(gumbel, "location", "Gumbel numbers of scale 1."),
    SITE(concrete, "logits, temperature", "The logarithm of a point on the simplex."),
    SITE(exponential, "rate", "Exponential numbers."),
    SITE(log_normal, "mean, sd", "Numbers whose logarithm is normal."),
    SITE(laplace, "location, scale", "Laplace numbers."),
    SITE(half_normal, "scale", "The absolute value of a normal number."),
    SITE(gumbel_scale, "location, scale", "Gumbel numbers."),
    SITE(truncated_normal, "mean, sd, low, high", "Normal numbers between low and high, which may be infinite."),
    SITE(gamma, "shape, rate", "Gamma numbers."),
    SITE(inverse_gamma, "shape, scale", "1 over a Gamma number."),
    SITE(beta, "a, b", "Beta numbers."),
    SITE(student_t, "degrees, location, scale", "Student's t."),
    SITE(poisson, "rate", "Poisson counts."),
    SITE(geometric, "logit", "Failures before the first success."),
    SITE(binomial, "trials, logit", "Binomial counts."),
    SITE(negative_binomial, "shape, logit", "Counts with mean shape * exp(logit)."),
    SITE(dirichlet, "concentrations", "A point on the simplex."),
    SITE(multivariate_normal, "mean, factor", "A normal vector by the Cholesky factor of its covariance, row by row."),
    SITE(multinomial, "trials, logits", "How often each of several things came."),
    SITE(von_mises, "location, concentration", "Angles."),
    SITE(delta, "at", "Numbers that are certain."),
    {"categoricals", FAST(categoricals),
     "categoricals(site, logits, n)\n\nn choices at once, each by its own part of the logits."},
    {"site", (PyCFunction)(void (*)(void))rwspy_site, METH_FASTCALL | METH_KEYWORDS,
     "site(name, family, *parameters)\n\nVisits a site with a distribution of one's own (rws.Family), or of the "
     "library by name."},
    {"observe", (PyCFunction)(void (*)(void))rwspy_observe, METH_FASTCALL | METH_KEYWORDS,
     "observe(name, log_density, draw=None)\n\nAn observation with a density of one's own: log_density(p, datum) is a "
     "value of one\n"
     "number, which gradients follow; draw(p) makes a datum for the sleep phase."},
    {"mixture", (PyCFunction)(void (*)(void))rwspy_mixture, METH_FASTCALL,
     "mixture(site, logits, components)\n\nA mixture whose component is summed out; a component is (family, "
     "*parameters)."},
    {"log_density", (PyCFunction)(void (*)(void))rwspy_log_density, METH_FASTCALL,
     "log_density(family, value, *parameters)\n\nThe log-density of a value, outside of any site."},
    {"draw_from", (PyCFunction)(void (*)(void))rwspy_draw_from, METH_FASTCALL,
     "draw_from(family, *parameters)\n\nFor the draw of a family: a value of another family, as a constant."},
    {"noise_normal", path_noise_normal, METH_O,
     "noise_normal(n)\n\nFor the draw of a family: n standard normal numbers."},
    {"noise_uniform", path_noise_uniform, METH_O, "noise_uniform(n)\n\nFor the draw of a family: n numbers in (0, 1)."},
    {"draw_index", path_draw_index, METH_O, "draw_index(log_probabilities)\n\nFor the draw of a family: an index."},
    SITE(choose, "logits", "A choice as an int, which Python code may branch on."),
    SITE(flip, "logit", "0 or 1 as an int, which Python code may branch on."),
    {"loop", (PyCFunction)(void (*)(void))rwspy_loop, METH_FASTCALL | METH_KEYWORDS,
     "loop(*step, **carry)\n\nCalls step(p, c) until it returns False, and returns c. The attributes of c are what a "
     "step hands to the next: "
     "integers, the first of which is a clock that no step makes smaller, and values or None. Particles with equal "
     "integers are one "
     "path again. c.clear() sets integers to 0 and values to None."},
    {"branch", path_branch, METH_O, "branch(v)\n\nThe integer that v holds, as an int; int(v) is the same."},
    {"look", path_look, METH_O,
     "look(v)\n\nAll numbers of v, for Python code. The path splits where particles differ."},
    {"wait", path_await, METH_O, "wait(values)\n\nComputes these values now, all together."},
    {"observed", path_observed, METH_O, "observed(field)\n\nA field of the datum, for the guide."},
    {"shape", path_shape, METH_O,
     "shape(field)\n\nThe numbers of a field, as numpy has it: (n,), or (most items, n) of a series with items of n "
     "numbers."},
    {"length", path_length, METH_O,
     "length(series)\n\nThe number of items of a series of the datum, as an int, for the guide."},
    {"item", FAST(item), "item(series, t)\n\nItem t of a series of the datum, for the guide."},
    {"items", path_items, METH_O, "items(series)\n\nAll items of a series of the datum, a list, for the guide."},
    {"constant", path_constant, METH_O,
     "constant(x)\n\nA value of a number, an array, a parameter or a list of values."},
    {"simulate", FAST(simulate),
     "simulate(site, made, kernel=\"edit\")\n\nAn observation that Python made of its choices: an array, or a list "
     "that is\n"
     "filled up with zeros. The kernel is \"edit\" (minus the squared edit distance of sequences: length, then "
     "items),\n"
     "\"equal\" (0 or -inf), or a function of datum and made that returns a log-density."},
    {"factor", KEYWORDS(factor),
     "factor(name, log_weight, in_prior=False)\n\nMultiplies the model's density by exp(log_weight)."},
    {"report", FAST(report), "report(name, value)\n\nStates something about the particles of this path."},
    {"give_up", path_give_up, METH_O, "give_up(reason)\n\nStops the pass with this message."},
    {0},
};

static PyGetSetDef members[] = {
    {"reports", asked, NULL, "Whether reports are wanted, so that a program can save the work of making a text.", NULL},
    {"reports_all", asked, NULL, "Whether they are for a person to read, so that large ones are worth making.",
     members},
    {"iteration", path_iteration, NULL, "How many iterations of training came before this pass.", NULL},
    {0},
};

PyTypeObject rwspy_Path = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Path",
    .tp_doc = "One execution of a program, for all particles that made the same choices so far.",
    .tp_basicsize = sizeof(path_object),
    .tp_dealloc = path_free,
    .tp_methods = methods,
    .tp_getset = members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
