/* rwspy.h - what the files of the extension share. The extension is a client of rws.h and rws_train.h alone.
 *
 *     module.c     the module                                  config.c     configurations of runs
 *     program.c    a Python class as an rws_model              trainer.c    training
 *     metric.c     its metrics and snapshots                   posterior.c  asking a trained model
 *     setup.c      declarations                                answer.c     questions, choices, answers
 *     random.c     streams of random numbers                   result.c     stores of runs, tables of the library
 *     host.c       Python programs on the engine's paths       rank.c       one run over many processes
 *     path.c       sites, data and reports                     table.c      tables of data
 *     family.c     distributions of a program's own
 *     value.c      values and their operators                  param.c      parameters
 *     function.c   functions on values                         layer.c      layers
 *     numbers.c    numbers between Python and C
 *
 * Every library call of a program is a `request`: the wrapper of a method fills one in, rwspy_call executes it. This way
 * the two ways of suspending a program (host.c) see the same calls.
 */
#ifndef RWSPY_H
#define RWSPY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "rws_results.h"

#if PY_VERSION_HEX < 0x030a0000
#error "The package needs Python 3.10 or newer."
#endif

/* ---- requests: library calls */

/* Every library call: its name and what it does. `path` executes it; v, i and x are those of the request c, and r is the
 * result. */
/* clang-format off */
#define EACH_CALL(CALL)                                                                                         \
    CALL(SITE1, r->v = ((site1 *)c->f)(path, c->name, v[0]))                                                    \
    CALL(SITE2, r->v = ((site2 *)c->f)(path, c->name, v[0], v[1]))                                              \
    CALL(SITE3, r->v = ((site3 *)c->f)(path, c->name, v[0], v[1], v[2]))                                        \
    CALL(SITE4, r->v = ((site4 *)c->f)(path, c->name, v[0], v[1], v[2], v[3]))                                  \
    CALL(ONE, r->v = ((one *)c->f)(path, v[0]))                                                                 \
    CALL(TWO, r->v = ((two *)c->f)(path, v[0], v[1]))                                                           \
    CALL(THREE, r->v = ((three *)c->f)(path, v[0], v[1], v[2]))                                                 \
    CALL(MANY, r->v = ((many *)c->f)(path, c->parts, c->n))                                                     \
    CALL(AFFINE, r->v = rws_affine(path, v[0], x[0], x[1]))                                                     \
    CALL(CLIP, r->v = rws_clip(path, v[0], x[0], x[1]))                                                         \
    CALL(APPLY, r->v = rws_apply(path, (rws_function)i[0], v[0]))                                               \
    CALL(SLICE, r->v = rws_slice(path, v[0], i[0], i[1]))                                                       \
    CALL(ONEHOT, r->v = rws_onehot(path, v[0], i[0]))                                                           \
    CALL(ROW, r->v = rws_row(path, v[0], i[0], v[1]))                                                           \
    CALL(CONSTANT, r->v = rws_constant(path, x[0]))                                                             \
    CALL(CONSTANTS, r->v = rws_constants(path, c->numbers, c->n))                                               \
    CALL(PARAMETER, r->v = rws_parameter(path, c->param))                                                       \
    CALL(OBSERVED, r->v = rws_observed(path, c->name))                                                          \
    CALL(LENGTH, r->v = rws_length(path, c->name))                                                              \
    CALL(FIELD, r->field = rws_path_field(path, c->name))                                                       \
    CALL(ITEM, r->v = rws_item(path, c->name, i[0]))                                                            \
    CALL(BRANCH, r->i = rws_branch(path, v[0]))                                                                 \
    CALL(LOOK, r->numbers = rws_look(path, v[0]))                                                               \
    CALL(AWAIT, rws_await(path, c->parts, c->n))                                                                \
    CALL(DIM, r->i = rws_dim(path, v[0]))                                                                       \
    CALL(REPORT, rws_report(path, c->name, v[0]))                                                               \
    CALL(REPORT_TEXT, rws_report_text(path, c->name, c->context))                                               \
    CALL(REPORTS, r->i = i[0] ? rws_reports_all(path) : rws_reports(path))                                      \
    CALL(ITERATION, r->i = (int64_t)rws_iteration(path))                                                        \
    CALL(FACTOR, rws_factor(path, c->name, v[0], i[0]))                                                         \
    CALL(SIMULATE, simulate(path, c))                                                                           \
    CALL(LAYER, r->v = call_layer(path, c))                                                                     \
    CALL(LSTM, call_lstm(path, c, r))                                                                           \
    CALL(BIDIRECTIONAL, read_both_ways(path, c, r))                                                             \
    CALL(DOT_ATTENTION, r->v = rws_dot_attention(path, v[0], c->parts, c->parts + i[0], i[0]))                  \
    CALL(POOL, r->v = rws_pool2d(path, v[0], i[0], i[1], i[2], (rws_pooling)i[3]))                              \
    CALL(MATMUL, r->v = rws_matmul(path, v[0], v[1], i[0]))                                                     \
    CALL(TRANSPOSE, r->v = rws_transpose(path, v[0], i[0]))                                                     \
    CALL(TRIANGULAR, r->v = rws_triangular_solve(path, v[0], v[1], i[0]))                                       \
    CALL(ATTEND, r->v = rws_attend(path, v[0], i[0], i[1], v[1], i[2], i[3]))                                   \
    CALL(PLACE, r->v = rws_place(path, v[0], i[0], i[1], v[1], i[2], i[3]))                                     \
    CALL(COVER, r->v = rws_cover(path, i[0], i[1], v[0], i[2], i[3]))                                           \
    CALL(GIVE_UP, rws_give_up(path, "%s", (const char *)c->context))                                            \
    CALL(FAMILY, r->v = rws_site_visit(path, c->name, c->f, c->parts))                                          \
    CALL(LOG_DENSITY, r->v = rws_log_density(path, c->f, v[0], c->parts))                                       \
    CALL(OBSERVE, r->v = rws_observe(path, c->name, rwspy_density, i[0] ? rwspy_drawer : NULL, c->context))     \
    CALL(MIXTURE, r->v = rws_mixture(path, c->name, v[0], c->context, c->n))                                    \
    CALL(CATEGORICALS, r->v = rws_categoricals(path, c->name, v[0], i[0]))                                      \
    CALL(LOOP, run_loop(path, c, r))                                                                            \
    CALL(NOISE, r->v = rws_draw_noise(path, (rws_noise)i[1], i[0]))                                             \
    CALL(DRAW_FROM, r->v = rws_draw_from(path, c->f, c->parts))
/* clang-format on */

#define CALL_KIND(name, does) CALL_##name,
typedef enum { EACH_CALL(CALL_KIND) } call_kind;

typedef struct {
    call_kind        kind;
    void            *f; /* the library's function, where the kind says so */
    const char      *name;
    rws_var          v[4];
    const rws_var   *parts;
    int              n, i[6];
    float            x[2];
    const float     *numbers;
    const rws_param *param;
    const rws_layer *layer;
    const void      *context;
} request;

typedef struct {
    union {
        rws_var          v;
        int64_t          i;
        const float     *numbers;
        const rws_field *field;
        void            *carry; /* of CALL_LOOP, in the path's memory */
    };
    union {
        rws_var        c;      /* of CALL_LSTM: the memory of the cell */
        const rws_var *states; /* of CALL_BIDIRECTIONAL, in the path's memory */
    };
} result;

/* ---- programs on paths (host.c) */

typedef struct py_state py_state;

/* What a path of the engine keeps for Python. */
typedef struct py_path py_path;

/* The path whose program runs on this thread; NULL outside of programs. */
py_path *rwspy_current(void);

/* The same with an exception if there is none: `what` is used outside of a program. */
py_path *rwspy_running(const char *what);

/* The number of the execution, which no other execution has; the state of its model. */
uint64_t  rwspy_serial(const py_path *h);
bool      rwspy_in_model(const py_path *h); /* the model is running on the path; the guide is */
bool      rwspy_in_guide(const py_path *h);
PyObject *rwspy_path_object(const py_path *h); /* what the program calls p; borrowed */
py_state *rwspy_state(const py_path *h);

/* What p.loop was given: attributes by name, and their places in a struct of values and then of integers. */
#define RWSPY_MAX_CARRY 64
typedef struct py_loop {
    PyObject             *step, *names; /* a function, a tuple */
    int                   n, n_values, place[RWSPY_MAX_CARRY];
    py_state             *state; /* these and the next ones are those of the program that called it */
    int                   kind;
    uint64_t              serial;
    const struct py_loop *outer; /* the loop that this program is a step of; NULL: none */
} py_loop;

/* Whether values of an execution can be used on the path: its own, or that of a program around the loop it is a step of. */
bool rwspy_sees(const py_path *h, uint64_t serial);

/* loop.c: p.loop; and a step, whose carry is read and written. False with an exception. */
PyObject *rwspy_loop(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
bool      rwspy_loop_step(py_path *h, const py_loop *l, void *carry, bool *goes_on);

/* Executes a library call. False with an exception if it fails, or if the pass has failed. */
bool rwspy_call(py_path *h, const request *c, result *r);

/* The interpreter's lock for the library's callbacks, on any thread: rws_host.enter and leave. */
void rwspy_take(void);
void rwspy_give(void);

/* Gives the lock back for a library call that may take long, and takes it again. */
void rwspy_begin(void);
void rwspy_end(void);

extern rws_host rwspy_host;
bool            rwspy_replays(void);          /* programs are suspended by unwinding and replay */
bool            rwspy_host_init(bool replay); /* once, before the first model */

/* The model's functions, which run on a path. */
void    rwspy_guide(rws_path *path, const void *state);
void    rwspy_model(rws_path *path, const void *state);
rws_var rwspy_relaxed(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how);
rws_var rwspy_compute(rws_path *path, const void *state);
void    rwspy_dream(rws_path *path, const void *state);

/* ---- models (program.c) */

#define MAX_TABLES 8 /* of a model */

/* What is known of a model between its setup and its release. */
struct py_state {
    struct program_object *program;
    PyObject              *self;                              /* the instance that setup ran on */
    PyObject              *guide, *model, *relaxed, *compute; /* its methods; compute: a function of the moment */
    int                    compute_dim;                       /* numbers that the value of compute must have */
    PyObject              *sizes;                             /* numbers of each field, by name */
    struct scope_object   *scope;
    rws_table             *tables[MAX_TABLES]; /* from which the data are filled; else Python makes them */
    int                    n_tables;
    bool                   label_series; /* there are some beside the tables, which Python fills in */
};

/* Remembers the exception that is set, as the reason for a message; clears it. The message is written to out. */
void rwspy_keep_exception(struct program_object *p, const char *where, char *out, size_t size);
void rwspy_forget_exceptions(struct program_object *p);

/* A callback of the library failed with an exception, which is kept: the status and the message for the library. */
rws_status rwspy_failed(struct program_object *p, const char *where, rws_error *err);

/* Raises what a failed library call has to say: the exception that a program left, or rws.Error. Always NULL. */
PyObject *rwspy_raise(struct program_object *p, rws_status status, const rws_error *err);

/* A message of the library in the words of Python. */
PyObject *rwspy_spelled(const char *text);

typedef struct program_object {
    PyObject_HEAD rws_model model;
    PyObject               *like;       /* the instance that setup copies */
    PyObject               *texts;      /* owns what the structures point to */
    PyObject               *exceptions; /* a list of (message, exception) */
    bool                    left;       /* one of them is of a metric, which has failed nothing */
    rws_metric              metrics[RWS_MAX_METRICS + 1];
    rws_snapshot            snapshots[RWS_MAX_METRICS + 1];
    rws_setting             settings[RWS_MAX_SET + 1];
} program_object;

/* metric.c: the functions of metric or snapshot number i. */
typedef struct {
    rws_status (*measure)(rws_eval *e, const void *state, double *value, rws_error *err);
    rws_status (*show)(rws_eval *e, const void *state, rws_error *err);
    double (*particle)(const rws_particle *p, const void *state);
} metric_callbacks;

extern const metric_callbacks rwspy_metric_callbacks[RWS_MAX_METRICS];

extern PyTypeObject rwspy_Program, rwspy_Eval, rwspy_Particle;

/* ---- numbers (numbers.c) */

/* Floats of an array, a list or a number: a new array (PyMem_Free). */
bool rwspy_floats(PyObject *o, float **out, Py_ssize_t *n);

bool rwspy_int(PyObject *o, int *out);

/* An array of numpy with a copy of the numbers. */
PyObject *rwspy_array(const float *x, Py_ssize_t rows, Py_ssize_t cols);
PyObject *rwspy_doubles(const double *x, Py_ssize_t n);

PyObject *rwspy_numbers(const py_path *h, const float *at, int n); /* an rws.Numbers; `at` lives as long as the pass */

/* ---- parameters (param.c), layers (layer.c), values (value.c), functions on them (function.c) */

/* Parameters and layers of one setup; dead after its release. */
typedef struct scope_object {
    PyObject_HEAD bool alive;
} scope_object;

typedef struct {
    PyObject_HEAD rws_var v;
    uint64_t              serial;
} value_object;

typedef struct {
    PyObject_HEAD rws_param *param;
    scope_object            *scope;
    int                      rows, cols;
    PyObject                *name;
} param_object;

enum {
    LAYER_LINEAR,
    LAYER_MLP,
    LAYER_RNN,
    LAYER_GRU,
    LAYER_LSTM,
    LAYER_EMBEDDING,
    LAYER_BIDIRECTIONAL,
    LAYER_ATTENTION,
    LAYER_SET_ENCODER,
    LAYER_NORM,
    LAYER_RESIDUAL_MLP,
    LAYER_CONV2D,
    LAYER_CONV_TRANSPOSE2D,
};

typedef struct {
    PyObject_HEAD rws_layer *layer;
    scope_object            *scope;
    int                      kind; /* one of LAYER_… */
    int                      n_out;
    int                      n_linear; /* linear layers of an mlp */
    PyObject                *name;
    vectorcallfunc           call;
} layer_object;

extern PyTypeObject rwspy_Scope, rwspy_Value, rwspy_Param, rwspy_Layer, rwspy_Numbers;

PyObject *rwspy_value(const py_path *h, rws_var v);
void      rwspy_param_ready(void); /* before the type is made ready */
PyObject *rwspy_param(rws_param *p, scope_object *scope, const char *name, int rows, int cols);
PyObject *rwspy_layer(rws_layer *l, scope_object *scope, const char *name, int kind, int n_out);

/* Makes a value of anything that may stand for one: a value, a parameter, a number, an array, a list of these. */
bool rwspy_var(py_path *h, PyObject *o, rws_var *out);

/* Values of a list or of one object. The array belongs to the caller (PyMem_Free). */
bool rwspy_vars(py_path *h, PyObject *o, rws_var **out, int *n);

/* Executes a library call whose result is a value. */
PyObject *rwspy_call_value(py_path *h, const request *c);

/* The operators of values, which parameters have too. */
extern PyNumberMethods   rwspy_value_numbers;
extern PyMappingMethods  rwspy_value_mapping;
extern PySequenceMethods rwspy_value_sequence;

/* Library calls on objects that stand for values: f(path, a), f(path, a, b), rws_apply, rws_matmul. */
PyObject *rwspy_one(PyObject *a, void *f);
PyObject *rwspy_two(PyObject *a, PyObject *b, void *f);
PyObject *rwspy_apply(PyObject *a, rws_function f);
PyObject *rwspy_matmul(PyObject *a, PyObject *b, int inner);

/* Rows and columns of a parameter or of an array of two dimensions. False without an exception: o has no such shape. */
bool rwspy_shape_of(PyObject *o, int *rows, int *cols);

/* Whether a list or tuple has values, parameters or lists among its items. */
bool rwspy_has_values(PyObject *list);

/* Whether the parameter or layer of this scope is one that the program's own setup declared; an exception if not. */
bool rwspy_scope_fits(py_path *h, const scope_object *scope, const char *what, PyObject *name);

/* Whether n arguments are as many as the function takes; a TypeError if not. */
bool rwspy_expect(const char *name, Py_ssize_t n, Py_ssize_t least, Py_ssize_t most);

bool rwspy_pooling(const char *name, int *out); /* an rws_pooling by its name */

extern PyMethodDef rwspy_functions[]; /* of the module */

/* ---- paths (path.c), setups (setup.c), streams of random numbers (random.c) */

extern PyTypeObject rwspy_Family, rwspy_Path, rwspy_Setup, rwspy_Table, rwspy_Random;

typedef struct {
    PyObject_HEAD py_path *h; /* NULL when the path is gone */
} path_object;

typedef struct {
    PyObject_HEAD rws_random *random; /* NULL when it may not be used any more */
} random_object;

/* family.c: distributions of a program's own, and the path of the program, for the library's callbacks. */
rws_var   rwspy_density(rws_path *path, rws_var datum, const void *context);
rws_var   rwspy_drawer(rws_path *path, const void *context);
PyObject *rwspy_site(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *rwspy_observe(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *rwspy_log_density(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *rwspy_draw_from(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *rwspy_mixture(PyObject *self, PyObject *const *args, Py_ssize_t n);
py_path  *rwspy_own(PyObject *path); /* of a Path object, whose program runs; NULL with an exception */

/* The context of a kernel (rws_simulate) that is a Python function. */
typedef struct {
    PyObject              *f; /* the model keeps it */
    struct program_object *program;
} py_kernel;

PyObject *rwspy_path_new(py_path *h);
PyObject *rwspy_random_new(rws_random *g);
PyObject *rwspy_setup_new(rws_setup *s, py_state *state);
void      rwspy_setup_close(PyObject *setup);

/* The library's setup of a Setup object; NULL with an exception when the setup is over. */
rws_setup *rwspy_setup_open(PyObject *setup);

PyObject *rwspy_table_new(rws_table *t, scope_object *scope, PyObject *setup); /* table.c */

/* ---- training and asking (config.c, answer.c, trainer.c, posterior.c) */

extern PyTypeObject rwspy_Trainer, rwspy_Posterior;

/* False with an exception inside of a program, which must not train, ask or open runs. */
bool rwspy_outside_of_programs(void);

/* A configuration as Python has it, a dictionary. The texts of *c point into its objects. */
bool      rwspy_config_read(PyObject *dictionary, rws_config *c);
PyObject *rwspy_config_object(const rws_config *c);

/* Choices as Python has them: [(site, visit, numbers), …]. The texts of what is read belong to the list; `out` is given
 * back by rwspy_choices_release, also after a failure. */
bool      rwspy_choices_read(PyObject *list, rws_choice **out, int *n);
void      rwspy_choices_release(rws_choice *choices, int n);
PyObject *rwspy_choices_object(const rws_choice *c, int n);

/* A question as Python has it: (fields or None, text or None, picture or None, test, n_particles, seed, particles, choices
 * that are given). It is released only if it was read. */
typedef struct {
    rws_question q;
    float       *fields[RWS_FIELDS];
    rws_grey     picture;
    Py_buffer    grey;
    rws_choice  *given;
} py_question;

bool rwspy_question_read(PyObject *args, py_question *a);
void rwspy_question_release(py_question *a);

PyObject *rwspy_fields_append(PyObject *list, const rws_field *f);      /* the list; NULL: an exception */
PyObject *rwspy_params_append(PyObject *list, const rws_param_view *v); /* the same */
/* Asks many questions; a list of (name, numbers or texts), the columns of their table. */
PyObject *rwspy_ask_many(rws_posterior *p, struct program_object *program, PyObject *args);

/* Simulates and tests; (columns of the ranks, quantities, impossible simulations). */
PyObject *rwspy_calibrate(rws_posterior *p, struct program_object *program, PyObject *args);
PyObject *rwspy_answers_object(rws_answers *a); /* takes the answers, also after a failure */
PyObject *rwspy_reported(const rws_reported *r, int n);

/* A posterior at the present parameters of a Trainer, and the trainer's program (borrowed; NULL for a model in C). NULL with
 * an exception if it fails. */
rws_posterior  *rwspy_trainer_posterior(PyObject *trainer);
program_object *rwspy_trainer_program(PyObject *trainer);

extern PyMethodDef rwspy_answer_functions[], rwspy_result_functions[], rwspy_rank_functions[]; /* of the module */

/* ---- exceptions and helpers (module.c) */

extern PyObject *rwspy_Error, *rwspy_Stopped, *rwspy_Abandoned, *rwspy_Broken;
extern PyObject *rwspy_helpers; /* the Python module with helpers */

PyObject *rwspy_helper(const char *name); /* a new reference */

/* A text of the library, in which bytes that are not UTF-8 are replaced; None for NULL. */
PyObject *rwspy_text(const char *text);

#endif
