/* setup.c - what a model declares. */
#include "rwspy.h"

#include <string.h>

typedef struct {
    PyObject_HEAD rws_setup *s; /* NULL after the setup */
    py_state                *state;
} setup_object;

PyObject *rwspy_setup_new(rws_setup *s, py_state *state)
{
    setup_object *o = PyObject_New(setup_object, &rwspy_Setup);
    if (!o) return NULL;
    o->s = s;
    o->state = state;
    return (PyObject *)o;
}

void rwspy_setup_close(PyObject *setup)
{
    ((setup_object *)setup)->s = NULL;
}

static void setup_free(PyObject *o)
{
    PyObject_Free(o);
}

rws_setup *rwspy_setup_open(PyObject *self)
{
    rws_setup *s = ((setup_object *)self)->s;
    if (!s) PyErr_SetString(rwspy_Error, "Declarations are made in setup only.");
    return s;
}

static int find(const char *const *list, const char *name)
{
    for (int i = 0; list[i]; i++)
        if (strcmp(list[i], name) == 0) return i;
    return -1;
}

static bool group_of(const char *name, const char *group, rws_group *out)
{
    if (!group) group = strncmp(name, "phi", 3) == 0 && (name[3] == '.' || !name[3]) ? "phi" : "theta";
    if (strcmp(group, "theta") != 0 && strcmp(group, "phi") != 0) {
        PyErr_Format(PyExc_ValueError, "A group is \"theta\" (the model) or \"phi\" (the guide), not \"%s\".", group);
        return false;
    }
    *out = strcmp(group, "phi") == 0 ? RWS_PHI : RWS_THETA;
    return true;
}

static bool init_of(const char *text, rws_init *out)
{
    static const char *const inits[] = {"zero", "uniform", "truncated", NULL};
    const int                i = find(inits, text);
    if (i < 0)
        PyErr_Format(PyExc_ValueError, "A parameter starts \"zero\", \"uniform\" or \"truncated\", not \"%s\".", text);
    *out = (rws_init)i;
    return i >= 0;
}

static PyObject *setup_param(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "shape", "group", "init", NULL};
    const char  *name, *group = NULL, *init = "zero";
    PyObject    *shape, *start = NULL;
    rws_group    g;
    rws_init     in;
    int          rows = 1, cols;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "sO|zO:param", names, &name, &shape, &group, &start))
        return NULL;
    if (PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 2) {
        if (!rwspy_int(PyTuple_GET_ITEM(shape, 0), &rows) || !rwspy_int(PyTuple_GET_ITEM(shape, 1), &cols)) return NULL;
    } else if (PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == 1) {
        if (!rwspy_int(PyTuple_GET_ITEM(shape, 0), &cols)) return NULL;
    } else if (!PyLong_Check(shape))
        return PyErr_Format(PyExc_TypeError, "A shape is n or (rows, cols), not %R.", shape);
    else if (!rwspy_int(shape, &cols)) return NULL;
    if (start && PyUnicode_Check(start) && !(init = PyUnicode_AsUTF8(start))) return NULL;
    if (!group_of(name, group, &g) || !init_of(init, &in)) return NULL;
    rws_param *p = rws_setup_param(s, g, name, rows, cols, in);
    PyObject  *o = rwspy_param(p, ((setup_object *)self)->state->scope, name, rows, cols);
    if (o && start && !PyUnicode_Check(start) && start != Py_None && rws_param_values(p) &&
        PyObject_SetAttrString(o, "values", start) != 0)
        Py_CLEAR(o);
    return o;
}

static PyObject *setup_linear(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "n_out", "group", "init", NULL};
    const char  *name, *group = NULL, *init = "uniform";
    int          n_in, n_out;
    rws_group    g;
    rws_init     in;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "sii|zs:linear", names, &name, &n_in, &n_out, &group, &init) ||
        !group_of(name, group, &g) || !init_of(init, &in))
        return NULL;
    return rwspy_layer(rws_setup_linear(s, g, name, n_in, n_out, in), ((setup_object *)self)->state->scope, name,
                       LAYER_LINEAR, n_out);
}

static bool function_of(const char *name, rws_function *out)
{
    static const char *const functions[] = {"linear", "tanh", "relu", "elu", "sigmoid", "softplus", "exp", "log", NULL};
    const int                f = find(functions, name);
    if (f < 0) PyErr_Format(PyExc_ValueError, "There is no function \"%s\" for a layer.", name);
    *out = (rws_function)f;
    return f >= 0;
}

#define MAX_SIZES 64

static bool sizes_of(PyObject *list, int sizes[MAX_SIZES], int *n)
{
    PyObject *fast = PySequence_Fast(list, "The sizes of an mlp are a list of numbers.");
    if (!fast) return false;
    *n = (int)PySequence_Fast_GET_SIZE(fast);
    if (*n > MAX_SIZES) PyErr_Format(PyExc_ValueError, "An mlp has at most %d sizes.", MAX_SIZES);
    for (int i = 0; i < *n && !PyErr_Occurred(); i++) rwspy_int(PySequence_Fast_GET_ITEM(fast, i), &sizes[i]);
    Py_DECREF(fast);
    return !PyErr_Occurred();
}

static PyObject *made(PyObject *self, rws_layer *l, const char *name, int kind)
{
    return rwspy_layer(l, ((setup_object *)self)->state->scope, name, kind, rws_layer_picture(l, NULL, NULL, NULL));
}

static PyObject *setup_mlp(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "sizes", "hidden", "group", "init", NULL};
    const char  *name, *hidden = "tanh", *group = NULL, *init = "uniform";
    PyObject    *list;
    rws_group    g;
    rws_init     in;
    rws_function f;
    int          sizes[MAX_SIZES], n;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "sO|szs:mlp", names, &name, &list, &hidden, &group, &init) ||
        !group_of(name, group, &g) || !init_of(init, &in) || !function_of(hidden, &f) || !sizes_of(list, sizes, &n))
        return NULL;
    PyObject *layer = made(self, rws_setup_mlp(s, g, name, f, in, sizes, n), name, LAYER_MLP);
    if (layer) ((layer_object *)layer)->n_linear = n - 1;
    return layer;
}

static PyObject *setup_lstm(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "n_hidden", "group", NULL};
    const char  *name, *group = NULL;
    int          n_in, n_hidden;
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "sii|z:lstm", names, &name, &n_in, &n_hidden, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return made(self, rws_setup_lstm(s, g, name, n_in, n_hidden), name, LAYER_LSTM);
}

static PyObject *setup_bidirectional(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char             *names[] = {"name", "n_in", "n_hidden", "cell", "group", NULL};
    static const char *const cells[] = {"rnn", "gru", "lstm", NULL};
    const char              *name, *cell = "gru", *group = NULL;
    int                      n_in, n_hidden;
    rws_group                g;
    rws_setup               *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "sii|sz:bidirectional", names, &name, &n_in, &n_hidden, &cell,
                                     &group) ||
        !group_of(name, group, &g))
        return NULL;
    const int k = find(cells, cell);
    if (k < 0) return PyErr_Format(PyExc_ValueError, "A cell is \"rnn\", \"gru\" or \"lstm\", not \"%s\".", cell);
    return made(self, rws_setup_bidirectional(s, g, name, (rws_recurrent)k, n_in, n_hidden), name, LAYER_BIDIRECTIONAL);
}

static PyObject *setup_attention(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "dim", "heads", "n_item", "group", NULL};
    const char  *name, *group = NULL;
    int          dim, heads, n_item;
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "siii|z:attention", names, &name, &dim, &heads, &n_item, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return made(self, rws_setup_attention(s, g, name, dim, heads, n_item), name, LAYER_ATTENTION);
}

static PyObject *setup_set_encoder(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "sizes", "how", "hidden", "group", NULL};
    const char  *name, *how = "sum", *hidden = "tanh", *group = NULL;
    PyObject    *list;
    rws_group    g;
    rws_function f;
    int          sizes[MAX_SIZES], n, pooling;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "sO|ssz:set_encoder", names, &name, &list, &how, &hidden,
                                     &group) ||
        !group_of(name, group, &g) || !rwspy_pooling(how, &pooling) || !function_of(hidden, &f) ||
        !sizes_of(list, sizes, &n))
        return NULL;
    return made(self, rws_setup_set_encoder(s, g, name, f, (rws_pooling)pooling, sizes, n), name, LAYER_SET_ENCODER);
}

static PyObject *setup_layer_norm(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n", "group", NULL};
    const char  *name, *group = NULL;
    int          n;
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "si|z:layer_norm", names, &name, &n, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return made(self, rws_setup_layer_norm(s, g, name, n), name, LAYER_NORM);
}

static PyObject *setup_residual_mlp(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "width", "n_blocks", "n_out", "hidden", "group", NULL};
    const char  *name, *hidden = "relu", *group = NULL;
    int          n_in, width, n_blocks, n_out;
    rws_group    g;
    rws_function f;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "siiii|sz:residual_mlp", names, &name, &n_in, &width, &n_blocks,
                                     &n_out, &hidden, &group) ||
        !group_of(name, group, &g) || !function_of(hidden, &f))
        return NULL;
    return made(self, rws_setup_residual_mlp(s, g, name, f, n_in, width, n_blocks, n_out), name, LAYER_RESIDUAL_MLP);
}

static PyObject *setup_conv2d(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "n_out", "rows", "cols", "kernel", "stride", "padding", "group", NULL};
    const char  *name, *group = NULL;
    rws_conv     c = {.stride = 1};
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "siiiii|iiz:conv2d", names, &name, &c.n_in, &c.n_out, &c.rows,
                                     &c.cols, &c.kernel, &c.stride, &c.padding, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return made(self, rws_setup_conv2d(s, g, name, &c), name, LAYER_CONV2D);
}

static PyObject *setup_conv_transpose2d(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name",   "n_in",    "n_out",          "rows",  "cols", "kernel",
                            "stride", "padding", "output_padding", "group", NULL};
    const char  *name, *group = NULL;
    rws_conv     c = {.stride = 1};
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "siiiii|iiiz:conv_transpose2d", names, &name, &c.n_in, &c.n_out,
                                     &c.rows, &c.cols, &c.kernel, &c.stride, &c.padding, &c.output_padding, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return made(self, rws_setup_conv_transpose2d(s, g, name, &c), name, LAYER_CONV_TRANSPOSE2D);
}

static PyObject *setup_rnn(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "n_hidden", "group", "init", NULL};
    const char  *name, *group = NULL, *init = "uniform";
    int          n_in, n_hidden;
    rws_group    g;
    rws_init     in;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "sii|zs:rnn", names, &name, &n_in, &n_hidden, &group, &init) ||
        !group_of(name, group, &g) || !init_of(init, &in))
        return NULL;
    return rwspy_layer(rws_setup_rnn(s, g, name, n_in, n_hidden, in), ((setup_object *)self)->state->scope, name,
                       LAYER_RNN, n_hidden);
}

static PyObject *setup_gru(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_in", "n_hidden", "group", NULL};
    const char  *name, *group = NULL;
    int          n_in, n_hidden;
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "sii|z:gru", names, &name, &n_in, &n_hidden, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return rwspy_layer(rws_setup_gru(s, g, name, n_in, n_hidden), ((setup_object *)self)->state->scope, name, LAYER_GRU,
                       n_hidden);
}

static PyObject *setup_embedding(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "n_words", "dim", "group", NULL};
    const char  *name, *group = NULL;
    int          n_words, dim;
    rws_group    g;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "sii|z:embedding", names, &name, &n_words, &dim, &group) ||
        !group_of(name, group, &g))
        return NULL;
    return rwspy_layer(rws_setup_embedding(s, g, name, n_words, dim), ((setup_object *)self)->state->scope, name,
                       LAYER_EMBEDDING, dim);
}

/* _field(name, dim, most, label): most > 0 for a series */
static PyObject *setup_field(PyObject *self, PyObject *args)
{
    const char *name;
    int         dim, most, label;
    rws_setup  *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTuple(args, "siip", &name, &dim, &most, &label)) return NULL;
    if (most && label) {
        rws_setup_label_series(s, name, dim, most);
        ((setup_object *)self)->state->label_series = true;
    } else if (most) rws_setup_series(s, name, dim, most);
    else if (label) rws_setup_label(s, name, dim);
    else rws_setup_field(s, name, dim);
    Py_RETURN_NONE;
}

static PyObject *setup_is_input(PyObject *self, PyObject *args)
{
    const char *name;
    rws_setup  *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTuple(args, "s", &name)) return NULL;
    rws_setup_is_input(s, name);
    Py_RETURN_NONE;
}

/* Adds a table to those that the model's data are filled from, and makes its Python object. */
static PyObject *keep_table(PyObject *self, rws_table *t)
{
    py_state *state = ((setup_object *)self)->state;
    if (state->n_tables == MAX_TABLES)
        return PyErr_Format(PyExc_ValueError, "A model has at most %d tables.", MAX_TABLES);
    state->tables[state->n_tables++] = t;
    return rwspy_table_new(t, state->scope, self);
}

/* _numbers(name, train, rows, columns, test, n_test, order, test_share, test_last): numbers as buffers of float32 */
static PyObject *setup_numbers(PyObject *self, PyObject *args)
{
    const char       *name;
    Py_buffer         train, test;
    Py_ssize_t        rows, n_test;
    int               columns, order, last;
    rws_table_options options = {0};
    rws_table        *t = NULL;
    rws_setup        *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTuple(args, "sy*niy*nidp", &name, &train, &rows, &columns, &test, &n_test, &order,
                                &options.test_share, &last))
        return NULL;
    options.order = (rws_rows)order;
    options.test_last = last;
    if (train.len >= (Py_ssize_t)sizeof(float) * rows * columns &&
        test.len >= (Py_ssize_t)sizeof(float) * n_test * columns)
        t = rws_setup_table_numbers(s, name, train.buf, (size_t)rows, columns, test.buf, (size_t)n_test, &options);
    else PyErr_SetString(PyExc_ValueError, "The arrays are smaller than their shapes.");
    PyBuffer_Release(&train);
    PyBuffer_Release(&test);
    return t ? keep_table(self, t) : NULL;
}

/* _file(setting, test or None, test_share, test_last, order, header, skip_missing, tensor or None, id or None) */
static PyObject *setup_file(PyObject *self, PyObject *args)
{
    const char       *setting;
    int               order, last, header, skip;
    rws_table_options o = {0};
    rws_setup        *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTuple(args, "szdpiipzz", &setting, &o.test, &o.test_share, &last, &order, &header, &skip,
                                &o.tensor, &o.id))
        return NULL;
    o.test_last = last;
    o.order = (rws_rows)order;
    o.header = (rws_header)header;
    o.skip_missing = skip;
    return keep_table(self, rws_setup_table(s, setting, &o));
}

static PyObject *setup_relaxed(PyObject *self, PyObject *args)
{
    const char *site;
    int         n;
    rws_setup  *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTuple(args, "si:relaxed", &site, &n)) return NULL;
    rws_setup_relaxed(s, site, n);
    Py_RETURN_NONE;
}

static PyObject *setup_unused(PyObject *self, PyObject *name)
{
    rws_setup  *s = rwspy_setup_open(self);
    const char *text = s && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (s && !PyUnicode_Check(name)) PyErr_SetString(PyExc_TypeError, "The name of a parameter is a text.");
    if (!text) return NULL;
    rws_setup_unused(s, text);
    Py_RETURN_NONE;
}

static PyObject *setup_label_site(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"label", "site", NULL};
    const char  *label, *site;
    rws_setup   *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "ss:label_site", names, &label, &site)) return NULL;
    rws_setup_label_site(s, label, site);
    Py_RETURN_NONE;
}

static PyObject *setup_gradient(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char             *names[] = {"site", "how", NULL};
    static const char *const hows[] = {"reparameterised", "score", NULL};
    const char              *site, *how;
    rws_setup               *s = rwspy_setup_open(self);
    if (!s || !PyArg_ParseTupleAndKeywords(args, keywords, "ss:gradient", names, &site, &how)) return NULL;
    const int k = find(hows, how);
    if (k < 0)
        return PyErr_Format(PyExc_ValueError, "A gradient is \"score\" or \"reparameterised\", not \"%s\".", how);
    rws_setup_gradient(s, site, (rws_gradient)k);
    Py_RETURN_NONE;
}

static PyObject *setup_sum(PyObject *self, PyObject *site)
{
    rws_setup  *s = rwspy_setup_open(self);
    const char *text = s && PyUnicode_Check(site) ? PyUnicode_AsUTF8(site) : NULL;
    if (s && !PyUnicode_Check(site)) PyErr_SetString(PyExc_TypeError, "The name of a site is a text.");
    if (!text) return NULL;
    rws_setup_gradient(s, text, RWS_SUMMED);
    Py_RETURN_NONE;
}

static PyObject *setup_text(PyObject *self, PyObject *name)
{
    rws_setup  *s = rwspy_setup_open(self);
    const char *text = s && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (s && !PyUnicode_Check(name)) PyErr_SetString(PyExc_TypeError, "The name of a setting is a text.");
    return text ? PyUnicode_FromString(rws_setup_text(s, text)) : NULL;
}

static PyObject *setup_path(PyObject *self, PyObject *name)
{
    rws_setup  *s = rwspy_setup_open(self);
    const char *text = s && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (s && !PyUnicode_Check(name)) PyErr_SetString(PyExc_TypeError, "The name of a setting is a text.");
    const char *path = text ? rws_setup_path(s, text) : NULL;
    return path ? PyUnicode_FromString(path) : text ? PyErr_NoMemory() : NULL;
}

#define KEYWORDS(name) (PyCFunction)(void (*)(void)) setup_##name, METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"param", KEYWORDS(param),
     "param(name, shape, group=None, init=\"zero\")\n\nDeclares a parameter of n or (rows, cols) numbers. It starts as "
     "\"zero\",\n"
     "\"uniform\", \"truncated\" or from an array. The group is \"theta\", the model's, or \"phi\", the guide's; by "
     "default\n"
     "it is phi for a name that begins with \"phi.\", else theta."},
    {"linear", KEYWORDS(linear), "linear(name, n_in, n_out, group=None, init=\"uniform\")\n\nDeclares a linear layer."},
    {"mlp", KEYWORDS(mlp),
     "mlp(name, sizes, hidden=\"tanh\", group=None, init=\"uniform\")\n\nDeclares a network of linear layers."},
    {"rnn", KEYWORDS(rnn),
     "rnn(name, n_in, n_hidden, group=None, init=\"uniform\")\n\nDeclares a recurrent cell with tanh."},
    {"gru", KEYWORDS(gru),
     "gru(name, n_in, n_hidden, group=None)\n\nDeclares a gated recurrent cell, PyTorch's GRUCell."},
    {"lstm", KEYWORDS(lstm),
     "lstm(name, n_in, n_hidden, group=None)\n\nDeclares a recurrent cell with a memory, PyTorch's LSTMCell."},
    {"bidirectional", KEYWORDS(bidirectional),
     "bidirectional(name, n_in, n_hidden, cell=\"gru\", group=None)\n\nDeclares two cells that read a series from both "
     "ends: \"rnn\", \"gru\" or \"lstm\"."},
    {"attention", KEYWORDS(attention),
     "attention(name, dim, heads, n_item, group=None)\n\nDeclares PyTorch's MultiheadAttention: a query of dim numbers "
     "over items of n_item numbers."},
    {"set_encoder", KEYWORDS(set_encoder),
     "set_encoder(name, sizes, how=\"sum\", hidden=\"tanh\", group=None)\n\nDeclares an encoder of sets: an mlp for "
     "each item, then the \"sum\", \"mean\" or \"max\"\n"
     "over the items."},
    {"layer_norm", KEYWORDS(layer_norm),
     "layer_norm(name, n, group=None)\n\nDeclares PyTorch's LayerNorm of n numbers."},
    {"residual_mlp", KEYWORDS(residual_mlp),
     "residual_mlp(name, n_in, width, n_blocks, n_out, hidden=\"relu\", group=None)\n\nDeclares an mlp whose blocks "
     "add "
     "to their input, for deep networks."},
    {"conv2d", KEYWORDS(conv2d),
     "conv2d(name, n_in, n_out, rows, cols, kernel, stride=1, padding=0, group=None)\n\nDeclares PyTorch's Conv2d for "
     "pictures of rows x cols numbers; Layer.picture is what comes out."},
    {"conv_transpose2d", KEYWORDS(conv_transpose2d),
     "conv_transpose2d(name, n_in, n_out, rows, cols, kernel, stride=1, padding=0, output_padding=0, "
     "group=None)\n\nDeclares PyTorch's ConvTranspose2d for pictures of rows x cols numbers."},
    {"embedding", KEYWORDS(embedding), "embedding(name, n_words, dim, group=None)\n\nDeclares a table of vectors."},
    {"relaxed", setup_relaxed, METH_VARARGS, "relaxed(site, n)\n\nDeclares the site that Model.relaxed is about."},
    {"unused", setup_unused, METH_O,
     "unused(name)\n\nSays that the parameter of this name, or all parameters of the layer of this name, may have no "
     "gradient."},
    {"label_site", KEYWORDS(label_site),
     "label_site(label, site)\n\nSays that a label is the value of a latent site where it is known, and NaN where it "
     "is "
     "not."},
    {"gradient", KEYWORDS(gradient),
     "gradient(site, how)\n\nHow the gradient reaches the parameters of a continuous value: \"reparameterised\", "
     "through "
     "the value,\n"
     "or by its \"score\". Without a choice it comes by score where a program branches on the value."},
    {"sum", setup_sum, METH_O,
     "sum(site)\n\nAll values of this choice are gone through in training and answers, in the place of a draw; the "
     "guide may "
     "leave the site\n"
     "out."},
    {"text", setup_text, METH_O, "text(name)\n\nA setting of the model, as text."},
    {"path", setup_path, METH_O, "path(name)\n\nA setting that is the path of a file; it becomes absolute."},
    {"_field", setup_field, METH_VARARGS, NULL},
    {"_is_input", setup_is_input, METH_VARARGS, NULL},
    {"_numbers", setup_numbers, METH_VARARGS, NULL},
    {"_file", setup_file, METH_VARARGS, NULL},
    {0},
};

PyTypeObject rwspy_Setup = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rws._rws.Setup",
    .tp_doc = "The declarations of a model. Good during setup only.",
    .tp_basicsize = sizeof(setup_object),
    .tp_dealloc = setup_free,
    .tp_methods = methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
