/* table.c - tables of data: of a file that a setting names, or of numbers at hand. A setup makes them (setup.c), and the library
 * fills batches from all of them without Python (program.c). */
#include "rwspy.h"

typedef struct {
    PyObject_HEAD rws_table *t; /* lives as long as the model, which the scope knows */
    scope_object            *scope;
    PyObject                *setup;
} table_object;

PyObject *rwspy_table_new(rws_table *t, scope_object *scope, PyObject *setup)
{
    table_object *o = PyObject_New(table_object, &rwspy_Table);
    if (!o) return NULL;
    o->t = t;
    o->scope = (scope_object *)Py_NewRef(scope);
    o->setup = Py_NewRef(setup);
    return (PyObject *)o;
}

static void table_free(PyObject *self)
{
    table_object *o = (table_object *)self;
    Py_DECREF(o->scope);
    Py_DECREF(o->setup);
    PyObject_Free(self);
}

/* Declares numbers of a datum by columns; f returns how many numbers these are. */
static PyObject *declared(PyObject *self, PyObject *args,
                          int (*f)(rws_setup *, rws_table *, const char *, const char *))
{
    const char *name, *columns = NULL;
    rws_setup  *s = rwspy_setup_open(((table_object *)self)->setup);
    if (!s || !PyArg_ParseTuple(args, "s|z", &name, &columns)) return NULL;
    return PyLong_FromLong(f(s, ((table_object *)self)->t, name, columns));
}

static PyObject *table_field(PyObject *self, PyObject *args)
{
    return declared(self, args, rws_setup_table_field);
}

static PyObject *table_label(PyObject *self, PyObject *args)
{
    return declared(self, args, rws_setup_table_label);
}

/* A series of rows or of one row; f is told `number`, the most items or the numbers of an item. */
static PyObject *declared_series(PyObject *self, PyObject *args,
                                 int (*f)(rws_setup *, rws_table *, const char *, const char *, int))
{
    const char *name, *columns;
    int         number;
    rws_setup  *s = rwspy_setup_open(((table_object *)self)->setup);
    if (!s || !PyArg_ParseTuple(args, "szi", &name, &columns, &number)) return NULL;
    return PyLong_FromLong(f(s, ((table_object *)self)->t, name, columns, number));
}

static PyObject *table_series(PyObject *self, PyObject *args)
{
    return declared_series(self, args, rws_setup_table_series);
}

static PyObject *table_row_series(PyObject *self, PyObject *args)
{
    return declared_series(self, args, rws_setup_table_row_series);
}

static PyObject *table_length(PyObject *self, PyObject *name)
{
    rws_setup *s = rwspy_setup_open(((table_object *)self)->setup);
    if (!s || !PyUnicode_Check(name) || !PyUnicode_AsUTF8(name))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "The name of a field is a text.");
    rws_setup_table_length(s, ((table_object *)self)->t, PyUnicode_AsUTF8(name));
    Py_RETURN_NONE;
}

static const rws_table *open_table(PyObject *self)
{
    const table_object *o = (table_object *)self;
    if (o->scope->alive) return o->t;
    PyErr_SetString(rwspy_Error, "The table is gone: its trainer is closed.");
    return NULL;
}

static PyObject *table_rows(PyObject *self, PyObject *test)
{
    const rws_table *t = open_table(self);
    const int        yes = t ? PyObject_IsTrue(test) : -1;
    return yes < 0 ? NULL : PyLong_FromLong(rws_table_rows(t, yes ? RWS_TEST : RWS_TRAIN));
}

static PyObject *table_columns(PyObject *self, void *unused)
{
    (void)unused;
    const rws_table *t = open_table(self);
    PyObject        *list = t ? PyList_New(rws_table_columns(t)) : NULL;
    for (int i = 0; list && i < rws_table_columns(t); i++) {
        const char *name = rws_table_name(t, i + 1);
        PyObject   *o = name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
        if (o) PyList_SET_ITEM(list, i, o);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *table_longest(PyObject *self, void *unused)
{
    (void)unused;
    const rws_table *t = open_table(self);
    return t ? PyLong_FromLong(rws_table_longest(t)) : NULL;
}

static PyMethodDef methods[] = {
    {"field", table_field, METH_VARARGS, "field(name, columns=None)\n\nDeclares a field; returns its numbers."},
    {"label", table_label, METH_VARARGS, "label(name, columns=None)\n\nDeclares a label; returns its numbers."},
    {"series", table_series, METH_VARARGS,
     "series(name, columns, most)\n\nDeclares a series of the rows of an id; returns the numbers of an item."},
    {"row_series", table_row_series, METH_VARARGS,
     "row_series(name, columns, dim)\n\nDeclares a series within one row; returns the most items."},
    {"length", table_length, METH_O, "length(name)\n\nDeclares a field: how many rows a datum has."},
    {"rows", table_rows, METH_O, "rows(test)\n\nHow many data there are, for training or for tests."},
    {0},
};

static PyGetSetDef members[] = {
    {"columns", table_columns, NULL, "The names of the columns; None for a column without a name.", NULL},
    {"longest", table_longest, NULL, "The most rows of an id; 1 without ids.", NULL},
    {0},
};

PyTypeObject rwspy_Table = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Table",
    .tp_doc = "A table of data. Fields are declared of its columns during setup only.",
    .tp_basicsize = sizeof(table_object),
    .tp_dealloc = table_free,
    .tp_methods = methods,
    .tp_getset = members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
