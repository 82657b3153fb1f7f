/* layer.c - layers as Python objects: declared by a setup (setup.c), called by programs. */
#include "rwspy.h"

static PyObject *layer_call(PyObject *o, PyObject *const *args, size_t flags, PyObject *keywords);

PyObject *rwspy_layer(rws_layer *layer, scope_object *scope, const char *name, int kind, int n_out)
{
    layer_object *l = PyObject_New(layer_object, &rwspy_Layer);
    if (!l) return NULL;
    l->layer = layer;
    l->scope = (scope_object *)Py_NewRef(scope);
    l->kind = kind;
    l->n_out = n_out;
    l->n_linear = 0;
    l->call = layer_call;
    l->name = PyUnicode_FromString(name);
    if (!l->name) Py_CLEAR(l);
    return (PyObject *)l;
}

static void layer_free(PyObject *o)
{
    layer_object *l = (layer_object *)o;
    Py_XDECREF(l->scope);
    Py_XDECREF(l->name);
    PyObject_Free(o);
}

/* How a layer is called, by its kind. */
static const struct {
    const char *how;
    bool        items; /* its parts are a list of items, which may be empty; else a list of numbers is one part */
    bool        one;   /* it takes a single part */
} kinds[] = {
    [LAYER_LINEAR] = {"layer(x)", false, false},
    [LAYER_MLP] = {"layer(x)", false, false},
    [LAYER_RNN] = {"cell(x, h)", false, false},
    [LAYER_GRU] = {"cell(x, h)", false, false},
    [LAYER_LSTM] = {"cell(x, (h, c))", false, false},
    [LAYER_EMBEDDING] = {"layer(index)", false, true},
    [LAYER_BIDIRECTIONAL] = {"layer(items)", true, false},
    [LAYER_ATTENTION] = {"layer(query, items)", true, false},
    [LAYER_SET_ENCODER] = {"layer(items)", true, false},
    [LAYER_NORM] = {"layer(x)", false, true},
    [LAYER_RESIDUAL_MLP] = {"layer(x)", false, false},
    [LAYER_CONV2D] = {"layer(pictures)", false, true},
    [LAYER_CONV_TRANSPOSE2D] = {"layer(pictures)", false, true},
};

/* The parts of an input: in `few` if they fit, else in an array *own of the caller's (PyMem_Free). */
#define FEW 8
static bool parts_of(py_path *h, PyObject *x, int kind, rws_var *few, rws_var **own, request *c)
{
    const bool list = PyList_Check(x) || PyTuple_Check(x);
    c->parts = few;
    c->n = 1;
    if (!list || kinds[kind].one || (!kinds[kind].items && !rwspy_has_values(x))) return rwspy_var(h, x, few);
    if (PySequence_Fast_GET_SIZE(x) <= FEW) {
        for (c->n = 0; c->n < PySequence_Fast_GET_SIZE(x); c->n++)
            if (!rwspy_var(h, PySequence_Fast_GET_ITEM(x, c->n), &few[c->n])) return false;
        return true;
    }
    if (!rwspy_vars(h, x, own, &c->n)) return false;
    c->parts = *own;
    return true;
}

/* A value and a list of the states of all items. */
static PyObject *with_states(py_path *h, const result *r, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *state = rwspy_value(h, r->states[i]);
        if (state) PyList_SET_ITEM(list, i, state);
        else Py_CLEAR(list);
    }
    PyObject *v = list ? rwspy_value(h, r->v) : NULL;
    if (v) return Py_BuildValue("(NN)", v, list);
    Py_XDECREF(list);
    return NULL;
}

static PyObject *with_memory(py_path *h, const result *r)
{
    PyObject *v = rwspy_value(h, r->v), *memory = v ? rwspy_value(h, r->c) : NULL;
    if (memory) return Py_BuildValue("(NN)", v, memory);
    Py_XDECREF(v);
    return NULL;
}

/* The state of an lstm is a pair; that of other cells, and the query of attention, is one value. */
static bool second_argument(py_path *h, PyObject *o, int kind, request *c)
{
    if (kind != LAYER_LSTM) return rwspy_var(h, o, &c->v[0]);
    if ((PyList_Check(o) || PyTuple_Check(o)) && PySequence_Fast_GET_SIZE(o) == 2)
        return rwspy_var(h, PySequence_Fast_GET_ITEM(o, 0), &c->v[0]) &&
               rwspy_var(h, PySequence_Fast_GET_ITEM(o, 1), &c->v[1]);
    PyErr_SetString(PyExc_TypeError, "The state of an lstm is a pair: h, c = cell(x, (h, c)).");
    return false;
}

static PyObject *layer_call(PyObject *o, PyObject *const *args, size_t flags, PyObject *keywords)
{
    layer_object *l = (layer_object *)o;
    const int     kind = l->kind;
    const bool    cell = kind == LAYER_RNN || kind == LAYER_GRU || kind == LAYER_LSTM, query = kind == LAYER_ATTENTION;
    py_path      *h = rwspy_running("A layer");
    request       c = {.kind = CALL_LAYER, .layer = l->layer, .i = {kind}};
    rws_var       few[FEW], *own = NULL;
    result        result;
    if (!h || !rwspy_scope_fits(h, l->scope, "layer", l->name)) return NULL;
    if (keywords && PyTuple_GET_SIZE(keywords))
        return PyErr_Format(PyExc_TypeError, "A layer takes no keywords: %s.", kinds[kind].how);
    if (!rwspy_expect(kinds[kind].how, PyVectorcall_NARGS(flags), 1 + (cell || query), 1 + (cell || query)))
        return NULL;
    if (kind == LAYER_LSTM) c.kind = CALL_LSTM;
    if (kind == LAYER_BIDIRECTIONAL) c.kind = CALL_BIDIRECTIONAL;
    PyObject *r = NULL;
    if (parts_of(h, args[query], kind, few, &own, &c) &&
        (!(cell || query) || second_argument(h, args[cell], kind, &c)) && rwspy_call(h, &c, &result)) {
        if (kind == LAYER_LSTM) r = with_memory(h, &result);
        else if (kind == LAYER_BIDIRECTIONAL) r = with_states(h, &result, c.n);
        else r = rwspy_value(h, result.v);
    }
    PyMem_Free(own);
    return r;
}

/* The linear layers of an mlp are NAME.0, NAME.2, …, as PyTorch counts them, with a function between each two. */
static PyObject *layer_bias(PyObject *o, void *unused)
{
    (void)unused;
    const layer_object *l = (layer_object *)o;
    rws_param          *p = l->scope->alive ? rws_layer_bias(l->layer) : NULL;
    if (!p) Py_RETURN_NONE;
    PyObject *name = l->kind == LAYER_MLP ? PyUnicode_FromFormat("%U.%d.bias", l->name, 2 * (l->n_linear - 1))
                                          : PyUnicode_FromFormat("%U.bias", l->name);
    PyObject *r = name ? rwspy_param(p, l->scope, PyUnicode_AsUTF8(name), 1, l->n_out) : NULL;
    Py_XDECREF(name);
    return r;
}

static PyObject *layer_repr(PyObject *o)
{
    return PyUnicode_FromFormat("<rws.Layer %R>", ((layer_object *)o)->name);
}

static PyObject *layer_picture(PyObject *o, void *whole)
{
    const layer_object *l = (layer_object *)o;
    int                 channels, rows, cols;
    if (!l->scope->alive) return PyErr_Format(rwspy_Error, "The layer %R is gone: its trainer is closed.", l->name);
    const int n = rws_layer_picture(l->layer, &channels, &rows, &cols);
    return whole ? Py_BuildValue("(iii)", channels, rows, cols) : PyLong_FromLong(n);
}

static PyGetSetDef layer_members[] = {
    {"n_out", layer_picture, NULL, "How many numbers come out, to declare the layer after it.", NULL},
    {"picture", layer_picture, NULL,
     "What comes out as a picture: (channels, rows, cols); (1, 1, n_out) for a layer that is no convolution.", "w"},
    {"bias", layer_bias, NULL,
     "The bias of a linear layer, or of the last one of an mlp; None for a layer of another kind.", NULL},
    {0},
};

PyTypeObject rwspy_Layer = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws.Layer",
    .tp_doc =
        "A function with parameters: layer(x), or layer([a, b]) for an input in parts, whose products are computed\n"
        "once for each part that several particles share. Cells (rnn, gru) take a state: cell(x, h); an lstm takes "
        "and\n"
        "gives two: h, c = cell(x, (h, c)). Over items, a list: set_encoder(items), attention(query, items), and\n"
        "last, states = bidirectional(items), where states has the two states after each item.",
    .tp_basicsize = sizeof(layer_object),
    .tp_dealloc = layer_free,
    .tp_repr = layer_repr,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(layer_object, call),
    .tp_getset = layer_members,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
