/* loop.c - p.loop: what a step hands to the next, as attributes of an object for Python and as a struct for the library. */
#include "rwspy.h"

#include <limits.h>

/* Whether attribute i is a value; the others are integers. Values come first in the struct. */
static bool is_value(const py_loop *l, int i)
{
    return l->place[i] < l->n_values;
}

static int *integers(const py_loop *l, void *carry)
{
    return (int *)((rws_var *)carry + l->n_values);
}

/* The object whose attributes are the carry. */
static PyObject *carry_object(const py_path *h, const py_loop *l, void *carry)
{
    PyObject *type = rwspy_helper("Carry"), *c = type ? PyObject_CallNoArgs(type) : NULL;
    Py_XDECREF(type);
    for (int i = 0; c && i < l->n; i++) {
        const rws_var v = is_value(l, i) ? ((rws_var *)carry)[l->place[i]] : (rws_var){0};
        PyObject     *o = !is_value(l, i) ? PyLong_FromLong(integers(l, carry)[l->place[i] - l->n_values])
                          : v.id          ? rwspy_value(h, v)
                                          : Py_NewRef(Py_None);
        if (!o || PyObject_SetAttr(c, PyTuple_GET_ITEM(l->names, i), o) < 0) Py_CLEAR(c);
        Py_XDECREF(o);
    }
    return c;
}

/* Attribute i from an object. */
static bool read_one(py_path *h, const py_loop *l, int i, PyObject *o, void *carry)
{
    PyObject *name = PyTuple_GET_ITEM(l->names, i);
    if (is_value(l, i)) {
        rws_var *v = (rws_var *)carry + l->place[i];
        *v = (rws_var){0};
        return o == Py_None || rwspy_var(h, o, v);
    }
    if (!PyLong_Check(o)) {
        PyErr_Format(
            PyExc_TypeError,
            "%U is an integer of the loop, by which particles are compared, and cannot become %.100s. Begin it "
            "with None or a value if it is to be carried as a value.",
            name, Py_TYPE(o)->tp_name);
        return false;
    }
    return rwspy_int(o, &integers(l, carry)[l->place[i] - l->n_values]);
}

static bool read_all(py_path *h, const py_loop *l, PyObject *c, void *carry)
{
    PyObject  *all = PyObject_GetAttrString(c, "__dict__");
    const bool right = all && PyDict_GET_SIZE(all) == l->n;
    Py_XDECREF(all);
    if (!right && !PyErr_Occurred())
        PyErr_Format(rwspy_Error,
                     "A step hands on what p.loop was given, %R; it can neither add an attribute nor delete one.",
                     l->names);
    for (int i = 0; right && i < l->n; i++) {
        PyObject  *o = PyObject_GetAttr(c, PyTuple_GET_ITEM(l->names, i));
        const bool good = o && read_one(h, l, i, o, carry);
        Py_XDECREF(o);
        if (!good) return false;
    }
    return right;
}

bool rwspy_loop_step(py_path *h, const py_loop *l, void *carry, bool *goes_on)
{
    PyObject *c = carry_object(h, l, carry), *r = NULL;
    if (c) r = PyObject_CallFunctionObjArgs(l->step, rwspy_path_object(h), c, NULL);
    const int true_or_false = r ? PyObject_IsTrue(r) : -1;
    *goes_on = true_or_false > 0;
    const bool good = true_or_false >= 0 && read_all(h, l, c, carry);
    Py_XDECREF(r);
    Py_XDECREF(c);
    return good;
}

/* Sorts the arguments of p.loop into values and integers. */
static bool sort(py_loop *l, PyObject *const *given)
{
    int n_integers = 0;
    for (int i = 0; i < l->n; i++) l->n_values += !PyLong_Check(given[i]);
    for (int i = 0, value = 0; i < l->n; i++)
        l->place[i] = PyLong_Check(given[i]) ? l->n_values + n_integers++ : value++;
    if (n_integers) return true;
    PyErr_SetString(PyExc_TypeError,
                    "p.loop needs an integer, the clock, which no step makes smaller: p.loop(step, t=0, ...).");
    return false;
}

PyObject *rwspy_loop(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    py_path *h = rwspy_own(self);
    py_loop  l = {.names = names, .n = names ? (int)PyTuple_GET_SIZE(names) : 0};
    rws_var  carry[RWSPY_MAX_CARRY] = {{0}};
    result   r;
    if (!h) return NULL;
    const bool  named = n == 2 && PyUnicode_Check(args[0]);
    const char *name = named ? PyUnicode_AsUTF8(args[0]) : NULL;
    if (named && !name) return NULL;
    if (n != 1 + named || !PyCallable_Check(args[named]) || l.n > RWSPY_MAX_CARRY)
        return PyErr_Format(
            PyExc_TypeError,
            "The arguments are loop(step, t=0, ...), or loop(name, step, t=0, ...) of a loop that guide "
            "and model share, with at most %d things to carry.",
            RWSPY_MAX_CARRY);
    l.step = args[named];
    if (!sort(&l, args + n)) return NULL;
    for (int i = 0; i < l.n; i++)
        if (!read_one(h, &l, i, args[n + i], carry)) return NULL;
    const request c = {.kind = CALL_LOOP, .name = name, .context = &l, .parts = carry, .n = l.n};
    return rwspy_call(h, &c, &r) ? carry_object(h, &l, r.carry) : NULL;
}
