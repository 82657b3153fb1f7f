/* host.c - Python programs on the engine's paths.
 *
 * A path must be suspended in the middle of a program, wherever a library call waits for values, and resumed later. There
 * are two ways; which one is used is decided when the module is imported.
 *
 * Swapping, for the versions of CPython that are known. The program runs on the path's own stack:
 *
 *     thread's stack   engine -> resume -> [swap in] -> rws_path_run ............ [swap out] -> engine
 *     path's stack                                       guide(p) -> p.normal -> library waits
 *
 * A PyThreadState has a few fields that belong to a C stack: the chain of frames, the stack of their locals, the stack
 * of handled exceptions, the depths of recursion. They are exchanged at each resume. A library call that fails comes
 * back to rwspy_call by longjmp (rws_host.escape), which raises an exception, so that Python's frames are left in order.
 *
 * Replay, for every other version: no frame of Python is ever suspended. The program runs on the thread's stack, and its
 * library calls are executed on the path's stack, one after the other:
 *
 *     thread's stack   resume -> guide(p) -> p.normal -> rws_path_run -> … result -> guide continues
 *     path's stack                                       library call -> pause
 *
 * If the library call waits, an exception unwinds the program. When the path is resumed, the library call ends, and the
 * program starts again: calls that were made before return what they returned then, from the path's log. */
#include "rwspy.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* The builtin saves three registers; setjmp saves all, and can be seen by AddressSanitizer. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !SANITIZED
typedef void *jump_point[5];
#define SET_JUMP(j) __builtin_setjmp(j)
#define JUMP(j) __builtin_longjmp(j, 1)
#else
typedef jmp_buf jump_point;
#define SET_JUMP(j) _setjmp(j)
#define JUMP(j) longjmp(j, 1)
#endif

/* ---- the fields of a PyThreadState that belong to a stack */

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030f0000 && !defined(Py_GIL_DISABLED)
#define CAN_SWAP 1
#else
#define CAN_SWAP 0
#endif

/* CPython 3.14 compares the stack pointer with the ends of the thread's stack. The first releases of 3.14 cannot be told
 * about another stack, and replay. */
#if CAN_SWAP && PY_VERSION_HEX >= 0x030e0000
#define GUARDS_STACK 1
#pragma weak PyUnstable_ThreadState_SetStackProtection
#pragma weak PyUnstable_ThreadState_ResetStackProtection
#else
#define GUARDS_STACK 0
#endif

#if CAN_SWAP

typedef struct {
#if PY_VERSION_HEX < 0x030d0000
    _PyCFrame *cframe;
#else
    struct _PyInterpreterFrame *current_frame;
#endif
#if PY_VERSION_HEX < 0x030c0000
    int recursion_remaining;
#else
    int                         py_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030c0000 && !GUARDS_STACK
    int c_recursion_remaining;
#endif
    _PyStackChunk    *datastack_chunk;
    PyObject        **datastack_top, **datastack_limit;
    _PyErr_StackItem *exc_info;
    PyObject         *context;
} fields;

static inline void fields_save(fields *f, const PyThreadState *ts)
{
#if PY_VERSION_HEX < 0x030d0000
    f->cframe = ts->cframe;
#else
    f->current_frame = ts->current_frame;
#endif
#if PY_VERSION_HEX < 0x030c0000
    f->recursion_remaining = ts->recursion_remaining;
#else
    f->py_recursion_remaining = ts->py_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030c0000 && !GUARDS_STACK
    f->c_recursion_remaining = ts->c_recursion_remaining;
#endif
    f->datastack_chunk = ts->datastack_chunk;
    f->datastack_top = ts->datastack_top;
    f->datastack_limit = ts->datastack_limit;
    f->exc_info = ts->exc_info;
    f->context = ts->context;
}

static inline void fields_load(const fields *f, PyThreadState *ts)
{
#if PY_VERSION_HEX < 0x030d0000
    ts->cframe = f->cframe;
#else
    ts->current_frame = f->current_frame;
#endif
#if PY_VERSION_HEX < 0x030c0000
    ts->recursion_remaining = f->recursion_remaining;
#else
    ts->py_recursion_remaining = f->py_recursion_remaining;
#endif
#if PY_VERSION_HEX >= 0x030c0000 && !GUARDS_STACK
    ts->c_recursion_remaining = f->c_recursion_remaining;
#endif
    ts->datastack_chunk = f->datastack_chunk;
    ts->datastack_top = f->datastack_top;
    ts->datastack_limit = f->datastack_limit;
    ts->exc_info = f->exc_info;
    if (ts->context != f->context) {
        ts->context = f->context;
        ts->context_ver++;
    }
}

#endif

/* ---- paths */

/* What a path is asked to execute on its own stack, when programs are replayed. */
typedef enum { JOB_NONE, JOB_CALL, JOB_RETURN } job_kind;
typedef enum {
    PROGRAM_GUIDE,
    PROGRAM_MODEL,
    PROGRAM_RELAXED,
    PROGRAM_COMPUTE,
    PROGRAM_DREAM,
    PROGRAM_STEP
} program_kind;

struct py_path {
    rws_path    *path;
    py_state    *state;
    uint64_t     serial;
    bool         failed;  /* no library call is possible any more */
    jump_point  *jump;    /* leads out of the library call that is being executed, the innermost; NULL: none is */
    PyObject    *object;  /* what the program gets as its first argument */
    program_kind program; /* that the path is in */
#if CAN_SWAP
    fields           fields;
    _PyErr_StackItem exceptions;
#if PY_VERSION_HEX < 0x030d0000
    _PyCFrame frame;
#endif
#endif
    /* replay */
    bool           idle; /* the path's stack waits for a job */
    job_kind       job;
    const request *asked;
    request        kept; /* a copy of the request that waits, with its numbers in `memory` */
    PyObject      *held; /* objects that the waiting request points into */
    result         answer;
    const py_loop *loop;     /* the loop that it executes a step of; NULL: none */
    void          *carry;    /* of this step */
    rws_var        given[2]; /* arguments of `relaxed` */
    rws_relaxation how;
    result        *log;
    size_t         n_log, log_capacity, cursor;
    bool           waits; /* a request waits: the program is to unwind */
    int            depth; /* programs that are being executed: 2 while the model runs in a loop that the guide shares */
    result        *outer; /* the log of the first of them */
    size_t         n_outer, outer_capacity;
};

static __thread py_path       *current __attribute__((tls_model("initial-exec")));
static __thread PyThreadState *own_state __attribute__((tls_model("initial-exec")));
static __thread bool           no_garbage __attribute__((tls_model("initial-exec")));
static pthread_key_t           thread_key;
static PyInterpreterState     *interpreter;
static uint64_t                last_serial; /* guarded by the lock */
static bool                    replays;

py_path *rwspy_current(void)
{
    return current;
}

py_path *rwspy_running(const char *what)
{
    if (current) return current;
    PyErr_Format(PyExc_RuntimeError, "%s can be used only inside of a program (guide or model).", what);
    return NULL;
}

/* The program that the path is in; in a step of a loop, the one whose loop it is. */
static program_kind program_of(const py_path *h)
{
    return h->program == PROGRAM_STEP ? (program_kind)h->loop->kind : h->program;
}

bool rwspy_in_model(const py_path *h)
{
    return program_of(h) == PROGRAM_MODEL;
}

bool rwspy_in_guide(const py_path *h)
{
    return program_of(h) == PROGRAM_GUIDE;
}

uint64_t rwspy_serial(const py_path *h)
{
    return h->serial;
}

bool rwspy_sees(const py_path *h, uint64_t serial)
{
    if (h->serial == serial) return true;
    for (const py_loop *l = h->loop; l; l = l->outer)
        if (l->serial == serial) return true;
    return false;
}

PyObject *rwspy_path_object(const py_path *h)
{
    return h->object;
}

py_state *rwspy_state(const py_path *h)
{
    return h->state;
}

bool rwspy_replays(void)
{
    return replays;
}

/* ---- the lock */

static bool finalizing(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* A thread of the library's pool ends: its state of the interpreter ends with it. */
static void thread_ends(void *state)
{
    PyThreadState *ts = state;
    if (finalizing()) return;
    PyEval_RestoreThread(ts);
    PyThreadState_Clear(ts);
    PyThreadState_DeleteCurrent();
}

static void take(void)
{
    if (!own_state) {
        own_state = PyGILState_GetThisThreadState();
        if (!own_state) {
            own_state = PyThreadState_New(interpreter);
            pthread_setspecific(thread_key, own_state);
        }
    }
    PyEval_RestoreThread(own_state);
}

/* Objects of the programs of a pass die with it, so that looking for garbage meanwhile finds nothing, at a price of a tenth
 * of the time. It is looked for in some passes, since programs may leave cycles behind. */
#define PASSES_WITH_GARBAGE 64

static void enter(void)
{
    static unsigned n; /* guarded by the lock */
    take();
    if (++n % PASSES_WITH_GARBAGE) no_garbage = PyGC_Disable();
}

static void leave(void)
{
    if (no_garbage) PyGC_Enable();
    no_garbage = false;
    PyEval_SaveThread();
}

void rwspy_take(void)
{
    take();
}

void rwspy_give(void)
{
    PyEval_SaveThread();
}

void rwspy_begin(void)
{
    own_state = PyEval_SaveThread();
}

void rwspy_end(void)
{
    PyEval_RestoreThread(own_state);
}

/* ---- library calls */

static rws_var call_layer(rws_path *path, const request *c)
{
    switch (c->i[0]) {
    case LAYER_LINEAR:
        return c->n == 1 ? rws_linear(path, c->layer, *c->parts) : rws_linear_parts(path, c->layer, c->parts, c->n);
    case LAYER_MLP:
        return c->n == 1 ? rws_mlp(path, c->layer, *c->parts) : rws_mlp_parts(path, c->layer, c->parts, c->n);
    case LAYER_RNN: return rws_rnn(path, c->layer, c->parts, c->n, c->v[0]);
    case LAYER_GRU: return rws_gru(path, c->layer, c->parts, c->n, c->v[0]);
    case LAYER_ATTENTION: return rws_attention(path, c->layer, c->v[0], c->parts, c->n);
    case LAYER_SET_ENCODER: return rws_set_encoder(path, c->layer, c->parts, c->n);
    case LAYER_NORM: return rws_layer_norm(path, c->layer, *c->parts);
    case LAYER_RESIDUAL_MLP: return rws_residual_mlp(path, c->layer, c->parts, c->n);
    case LAYER_CONV2D: return rws_conv2d(path, c->layer, *c->parts);
    case LAYER_CONV_TRANSPOSE2D: return rws_conv_transpose2d(path, c->layer, *c->parts);
    default: return rws_embedding(path, c->layer, *c->parts);
    }
}

/* The numbers and the Python function live as long as the pass: the library calls the function later, when the request is
 * gone. */
static void simulate(rws_path *path, const request *c)
{
    float *made = rws_alloc(path, (size_t)c->i[0] * sizeof *made);
    memcpy(made, c->numbers, (size_t)c->n * sizeof *made);
    const void *context = c->context;
    if (context) {
        const py_path *h = *rws_path_slot(path);
        py_kernel     *k = rws_alloc(path, sizeof *k);
        *k = (py_kernel){(PyObject *)c->context, h->state->program};
        context = k;
    }
    rws_simulate(path, c->name, made, (rws_kernel *)c->f, context);
}

static bool step(rws_path *path, const void *env, void *carry);

/* The loop and its carry live as long as the pass: where programs are replayed, the program's frame is gone before the loop ends. */
static void run_loop(rws_path *path, const request *c, result *r)
{
    const py_path *h = *rws_path_slot(path);
    py_loop       *l = rws_alloc(path, sizeof *l);
    rws_var       *carry = rws_alloc(path, (size_t)c->n * sizeof *carry);
    *l = *(const py_loop *)c->context;
    l->state = h->state;
    l->kind = (int)program_of(h);
    l->serial = h->serial;
    l->outer = h->loop;
    memcpy(carry, c->parts, (size_t)c->n * sizeof *carry);
    const size_t first = (size_t)l->n_values * sizeof *carry;
    const size_t size = first + (size_t)(l->n - l->n_values) * sizeof(int);
    char        *name = c->name ? rws_alloc(path, strlen(c->name) + 1) : NULL;
    if (name) rws_shared_loop(path, strcpy(name, c->name), step, l, carry, size, first);
    else rws_loop(path, step, l, carry, size, first);
    r->carry = carry;
}

static void read_both_ways(rws_path *path, const request *c, result *r)
{
    rws_var *states = rws_alloc(path, ((size_t)c->n + 1) * sizeof *states);
    r->v = rws_bidirectional(path, c->layer, c->parts, c->n, states);
    r->states = states;
}

/* v[0] and v[1] are h and c; the result has both. */
static void call_lstm(rws_path *path, const request *c, result *r)
{
    r->c = c->v[1];
    r->v = rws_lstm(path, c->layer, c->parts, c->n, c->v[0], &r->c);
}

/* Every kind of request is a row of EACH_CALL. */
static void execute(rws_path *path, const request *c, result *r)
{
    typedef rws_var site1(rws_path *, const char *, rws_var);
    typedef rws_var site2(rws_path *, const char *, rws_var, rws_var);
    typedef rws_var site3(rws_path *, const char *, rws_var, rws_var, rws_var);
    typedef rws_var site4(rws_path *, const char *, rws_var, rws_var, rws_var, rws_var);
    typedef rws_var one(rws_path *, rws_var);
    typedef rws_var two(rws_path *, rws_var, rws_var);
    typedef rws_var three(rws_path *, rws_var, rws_var, rws_var);
    typedef rws_var many(rws_path *, const rws_var *, int);
    const rws_var  *v = c->v;
    const int      *i = c->i;
    const float    *x = c->x;
#define CALL_CASE(name, does) \
    case CALL_##name: does; break;
    switch (c->kind) {
        EACH_CALL(CALL_CASE)
    }
}

/* Raises what made the library call fail, at the line of the program: nothing that is told if the pass is stopped, as it is when it
 * begins anew. Always false. */
static bool call_failed(py_path *h)
{
    const char      *text;
    const rws_status status = rws_path_failure(h->path, &text);
    h->failed = true;
    if (PyErr_Occurred()) return false; /* the exception of a distribution of the program's own */
    if (status == RWS_OK || status == RWS_STOPPED) PyErr_SetString(rwspy_Abandoned, "The path is abandoned.");
    else if (status == RWS_NO_MEMORY) PyErr_SetString(PyExc_MemoryError, text);
    else PyErr_SetString(status == RWS_BROKEN ? rwspy_Broken : rwspy_Error, text);
    return false;
}

static bool refused(void)
{
    if (!PyErr_Occurred())
        PyErr_SetString(rwspy_Abandoned, "The pass has failed; its programs make no more library calls.");
    return false;
}

static bool call_replayed(py_path *h, const request *c, result *r);

bool rwspy_call(py_path *h, const request *c, result *r)
{
    if (__builtin_expect(h->failed, 0)) return refused();
    if (__builtin_expect(replays, 0)) return call_replayed(h, c, r);
    jump_point        here;
    jump_point *const outer = h->jump; /* not NULL: this call is made by a distribution of the program's own */
    if (SET_JUMP(here) == 0) {
        h->jump = &here;
        execute(h->path, c, r);
        h->jump = outer;
        return true;
    }
    h->jump = outer;
    return call_failed(h);
}

static void escape(rws_path *path)
{
    py_path *h = *rws_path_slot(path);
    if (h && h->jump) JUMP(*h->jump); /* without a jump point, no frame of Python waits in a library call */
}

/* ---- programs */

static PyObject *function_of(const py_state *s, program_kind kind)
{
    switch (kind) {
    case PROGRAM_GUIDE: return s->guide;
    case PROGRAM_MODEL: return s->model;
    case PROGRAM_RELAXED: return s->relaxed;
    default: return s->compute;
    }
}

static const char *const names[] = {"guide", "model", "relaxed", "the function of a metric", "the program of a dream"};

/* Calls a Python function on the path. Its value, if it is to have one, is written to *out. */
static bool call_program(py_path *h, program_kind kind, rws_var *out)
{
    static const char *const hows[] = {"argmax", "soft", "density"};
    PyObject                *arguments[5] = {NULL, h->object}, *r = NULL;
    int                      n = 1;
    if (kind == PROGRAM_RELAXED) {
        arguments[2] = rwspy_value(h, h->given[0]);
        arguments[3] = rwspy_value(h, h->given[1]);
        arguments[4] = PyUnicode_FromString(hows[h->how]);
        n = 4;
    }
    if (n == 1 || (arguments[2] && arguments[3] && arguments[4]))
        r = PyObject_Vectorcall(function_of(h->state, kind), arguments + 1, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                NULL);
    for (int i = 2; i < 5; i++) Py_XDECREF(arguments[i]);
    bool good = r != NULL;
    if (good && (kind == PROGRAM_RELAXED || kind == PROGRAM_COMPUTE)) good = rwspy_var(h, r, out);
    Py_XDECREF(r);
    return good;
}

/* A program ended with an exception: the pass fails, and the exception is raised where the library was called. */
static void program_failed(py_path *h, program_kind kind)
{
    char message[500];
    h->failed = true;
    if (PyErr_ExceptionMatches(rwspy_Abandoned)) {
        PyErr_Clear();
        if (rws_path_failure(h->path, NULL) == RWS_OK)
            rws_path_refuse(h->path, RWS_BAD_INPUT, "A program raised rws.Abandoned, which only the package does.");
        return;
    }
    const char *text;
    if (rws_path_failure(h->path, &text) != RWS_OK) { /* the library's own message, raised at the program's line */
        snprintf(message, sizeof message, "%s", text);
        rwspy_keep_exception(h->state->program, NULL, message, sizeof message);
        return;
    }
    rwspy_keep_exception(h->state->program, names[kind == PROGRAM_STEP ? program_of(h) : kind], message,
                         sizeof message);
    rws_path_refuse(h->path, RWS_BAD_INPUT, message);
}

static py_path *path_of(rws_path *path)
{
    void **slot = rws_path_slot(path);
    if (*slot) return *slot;
    py_path *h = PyMem_Calloc(1, sizeof *h);
    if (h) h->path = path;
    return *slot = h;
}

static void begin(py_path *h)
{
    h->serial = ++last_serial;
    h->failed = h->idle = h->waits = false;
    h->loop = NULL;
    h->jump = NULL;
    h->job = JOB_NONE;
    h->n_log = h->cursor = 0;
    h->depth = 0;
    Py_CLEAR(h->held);
    if (h->object && Py_REFCNT(h->object) > 1) { /* a program has kept the path of an earlier execution */
        ((path_object *)h->object)->h = NULL;
        Py_CLEAR(h->object);
    }
    if (!h->object) h->object = rwspy_path_new(h);
    if (!h->object) {
        PyErr_Clear();
        h->failed = true;
        rws_path_refuse(h->path, RWS_NO_MEMORY, "There is no memory for a path.");
    }
}

#if CAN_SWAP

static void resume_swapped(rws_path *path, bool begins)
{
    py_path *h = path_of(path);
    if (!h) {
        rws_path_refuse(path, RWS_NO_MEMORY, "There is no memory for a path.");
        return;
    }
    PyThreadState *ts = PyThreadState_Get();
    fields         own;
    py_path       *before = current;
    if (!ts->context) Py_XDECREF(PyContext_CopyCurrent()); /* makes one, which all paths of the thread share */
    fields_save(&own, ts);
    if (begins) {
        begin(h);
        _PyStackChunk *chunk = h->fields.datastack_chunk;
        h->exceptions = (_PyErr_StackItem){0};
        h->fields = own;
        h->fields.exc_info = &h->exceptions;
        /* the first chunk of the stack of locals is kept from execution to execution; its first slot stays unused */
        h->fields.datastack_chunk = chunk;
        h->fields.datastack_top = chunk ? &chunk->data[1] : NULL;
        h->fields.datastack_limit = chunk ? (PyObject **)((char *)chunk + chunk->size) : NULL;
#if PY_VERSION_HEX < 0x030d0000
        h->frame = *own.cframe;
        h->frame.current_frame = NULL;
        h->frame.previous = &ts->root_cframe;
        h->fields.cframe = &h->frame;
#else
        h->fields.current_frame = NULL;
#endif
#if PY_VERSION_HEX < 0x030c0000
        h->fields.recursion_remaining = ts->recursion_limit;
#else
        h->fields.py_recursion_remaining = ts->py_recursion_limit;
#endif
    }
    current = h;
    fields_load(&h->fields, ts);
#if GUARDS_STACK
    size_t bytes;
    void  *stack = rws_path_stack(path, &bytes);
    if (PyUnstable_ThreadState_SetStackProtection(ts, stack, bytes) != 0) PyErr_Clear(); /* too small to be guarded */
    rws_path_run(path);
    PyUnstable_ThreadState_ResetStackProtection(ts);
#else
    rws_path_run(path);
#endif
    fields_save(&h->fields, ts);
    fields_load(&own, ts);
    current = before;
}

#endif

static void run_swapped(rws_path *path, const void *state, program_kind kind, rws_var *out)
{
    py_path *h = *rws_path_slot(path);
    h->state = (py_state *)state;
    const program_kind before = h->program; /* the guide's, where the model runs in a loop that they share */
    h->program = kind;
    if (h->failed || rws_path_failure(path, NULL) != RWS_OK) return;
    if (!call_program(h, kind, out)) program_failed(h, kind);
    h->program = before;
}

/* ---- replay */

/* A path keeps two logs: one of the program that runs, and one of a guide that waits for the model in a loop that they share. */
static void exchange_logs(py_path *h)
{
    result      *log = h->log;
    const size_t n = h->n_log, capacity = h->log_capacity;
    h->log = h->outer, h->n_log = h->n_outer, h->log_capacity = h->outer_capacity;
    h->outer = log, h->n_outer = n, h->outer_capacity = capacity;
}

/* On the path's stack: executes library calls until the program is over. */
static void execute_calls(rws_path *path, py_path *h)
{
    if (h->depth++) exchange_logs(h);
    h->n_log = h->cursor = 0;
    for (;;) {
        h->idle = true;
        rws_path_pause(path);
        h->idle = false;
        if (h->job == JOB_RETURN) break;
        const request *c = h->asked;
        result         r = {0};
        execute(path, c, &r);
        h->answer = r;
    }
    h->job = JOB_NONE;
    if (--h->depth) exchange_logs(h);
}

static void run_replayed(rws_path *path, const void *state, program_kind kind, rws_var *out)
{
    py_path *h = *rws_path_slot(path);
    h->state = (py_state *)state;
    const program_kind before = h->program;
    h->program = kind;
    execute_calls(path, h);
    h->program = before;
    if (out) *out = h->answer.v;
}

static bool log_add(py_path *h, const result *r)
{
    if (h->n_log == h->log_capacity) {
        const size_t capacity = h->log_capacity ? 2 * h->log_capacity : 64;
        result      *log = PyMem_Realloc(h->log, capacity * sizeof *log);
        if (!log) {
            PyErr_NoMemory();
            return false;
        }
        h->log = log;
        h->log_capacity = capacity;
    }
    h->log[h->n_log++] = *r;
    h->cursor = h->n_log;
    return true;
}

/* Copies what the request points to, because the program's frames, which own it, unwind before the library has read it. */
static bool keep_request(py_path *h, const request *c)
{
    const size_t name = c->name ? strlen(c->name) + 1 : 0, parts = (size_t)c->n * sizeof(rws_var);
    const bool   text = c->kind == CALL_REPORT_TEXT || c->kind == CALL_GIVE_UP;
    const size_t numbers = c->numbers ? (size_t)c->n * sizeof(float) : 0, said = text ? strlen(c->context) + 1
                                                                                 : c->kind == CALL_LOOP
                                                                                     ? sizeof(py_loop)
                                                                                     : 0;
    PyObject    *memory = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(name + parts + numbers + said + 64));
    if (!memory) return false;
    char *at = PyBytes_AS_STRING(memory);
    at += -(uintptr_t)at & 15;
    h->kept = *c;
    if (c->parts) h->kept.parts = memcpy(at, c->parts, parts), at += parts;
    if (numbers) h->kept.numbers = memcpy(at, c->numbers, numbers), at += numbers;
    if (c->name) h->kept.name = memcpy(at, c->name, name), at += name;
    if (text) h->kept.context = memcpy(at, c->context, said);
    if (c->kind == CALL_LOOP) { /* the loop outlives the program's frames */
        const py_loop *l = h->kept.context = memcpy(at, c->context, sizeof *l);
        memory = Py_BuildValue("NOO", memory, l->step, l->names);
        if (!memory) return false;
    }
    if (h->depth > 1 && h->held) memory = Py_BuildValue("NN", memory, h->held); /* that of the guide's loop lasts */
    else Py_XDECREF(h->held);
    h->held = memory;
    return memory != NULL;
}

/* On the thread's stack, in a program: has the path execute a call. */
static bool call_replayed(py_path *h, const request *c, result *r)
{
    if (h->waits) return refused(); /* the program holds up its own unwinding */
    if (h->cursor < h->n_log) {
        *r = h->log[h->cursor++];
        return true;
    }
    if (!keep_request(h, c)) return false;
    const int depth = h->depth;
    h->asked = &h->kept;
    h->job = JOB_CALL;
    rws_path_run(h->path);
    if (rws_path_failure(h->path, NULL) != RWS_OK) return call_failed(h);
    if (!h->idle || h->depth > depth) { /* it waits, or the model is to run in it */
        h->waits = true;
        return refused();
    }
    *r = h->answer;
    return log_add(h, r);
}

/* Runs the path until it wants a program, then the program until it waits or ends. */
static void resume_replayed(rws_path *path, bool begins)
{
    py_path *h = path_of(path), *before = current;
    if (!h) {
        rws_path_refuse(path, RWS_NO_MEMORY, "There is no memory for a path.");
        return;
    }
    if (begins) begin(h);
    const bool waited = h->waits;
    h->waits = false;
    rws_path_run(path); /* to the first pause, or out of the call that waited */
    if (waited && h->idle) {
        if (!log_add(h, &h->answer))
            PyErr_Clear(), rws_path_refuse(path, RWS_NO_MEMORY, "There is no memory for a log.");
    } else if (waited && !rws_path_ended(path)) h->waits = true; /* it waits again */
    current = h;
    while (h->idle && !h->waits && !h->failed && rws_path_failure(path, NULL) == RWS_OK) {
        const program_kind kind = h->program;
        rws_var            v = {0};
        h->cursor = 0;
        bool       goes_on = false;
        const bool good =
            kind == PROGRAM_STEP ? rwspy_loop_step(h, h->loop, h->carry, &goes_on) : call_program(h, kind, &v);
        if (h->waits) {
            PyErr_Clear();
            if (!h->idle) break;
            h->waits = false; /* the model is to run */
            continue;
        }
        if (!good) {
            program_failed(h, kind);
            break;
        }
        h->job = JOB_RETURN;
        if (kind == PROGRAM_STEP) h->answer.i = goes_on;
        else h->answer.v = v;
        const int depth = h->depth;
        rws_path_run(path); /* to the pause of the next program, or to the end */
        if (h->idle && h->depth == 1 && depth == 2 && !log_add(h, &h->answer)) /* the guide's loop has ended */
            PyErr_Clear(), rws_path_refuse(path, RWS_NO_MEMORY, "There is no memory for a log.");
    }
    current = before;
}

/* ---- what the library calls */

static void resume(rws_path *path, bool begins)
{
#if CAN_SWAP
    if (!replays) {
        resume_swapped(path, begins);
        return;
    }
#endif
    resume_replayed(path, begins);
}

static void forget(void *kept)
{
    py_path *h = kept;
    if (h->object) ((path_object *)h->object)->h = NULL;
    Py_XDECREF(h->object);
    Py_XDECREF(h->held);
    PyMem_Free(h->log);
    PyMem_Free(h->outer);
#if CAN_SWAP
    PyObjectArenaAllocator a;
    PyObject_GetArenaAllocator(&a);
    for (_PyStackChunk *c = h->fields.datastack_chunk, *next; c; c = next) {
        next = c->previous;
        a.free(a.ctx, c, c->size);
    }
#endif
    PyMem_Free(h);
}

static void run(rws_path *path, const void *state, program_kind kind, rws_var *out)
{
    (replays ? run_replayed : run_swapped)(path, state, kind, out);
}

/* A step of a loop, on the path's stack. */
static bool step(rws_path *path, const void *env, void *carry)
{
    py_path *h = *rws_path_slot(path);
    bool     goes_on = false;
    h->loop = env;
    h->state = h->loop->state;
    h->program = PROGRAM_STEP;
    h->carry = carry;
    if (replays) {
        execute_calls(path, h);
        return h->answer.i;
    }
    if (h->failed || rws_path_failure(path, NULL) != RWS_OK) return false;
    if (!rwspy_loop_step(h, h->loop, carry, &goes_on)) program_failed(h, PROGRAM_STEP);
    return goes_on;
}

void rwspy_guide(rws_path *path, const void *state)
{
    run(path, state, PROGRAM_GUIDE, NULL);
}

void rwspy_model(rws_path *path, const void *state)
{
    run(path, state, PROGRAM_MODEL, NULL);
}

/* After a failure there is no value; the library must not look at it, so the path ends here. */
static rws_var value_or_end(rws_path *path, rws_var v)
{
    if (rws_path_failure(path, NULL) != RWS_OK) return rws_constant(path, 0);
    return v;
}

rws_var rwspy_relaxed(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how)
{
    py_path *h = *rws_path_slot(path);
    rws_var  v = {0};
    h->given[0] = log_s;
    h->given[1] = temperature;
    h->how = how;
    run(path, state, PROGRAM_RELAXED, &v);
    return value_or_end(path, v);
}

rws_var rwspy_compute(rws_path *path, const void *state)
{
    const int dim = ((const py_state *)state)->compute_dim;
    rws_var   v = {0};
    run(path, state, PROGRAM_COMPUTE, &v);
    v = value_or_end(path, v);
    if (rws_path_failure(path, NULL) == RWS_OK && rws_dim(path, v) != dim)
        rws_give_up(path, "The function of compute returns %d numbers for each datum, not %d.", rws_dim(path, v), dim);
    return v;
}

void rwspy_dream(rws_path *path, const void *state)
{
    run(path, state, PROGRAM_DREAM, NULL);
}

rws_host rwspy_host = {.enter = enter, .leave = leave, .resume = resume, .forget = forget};

bool rwspy_host_init(bool replay)
{
    interpreter = PyInterpreterState_Get();
    replays = replay || !CAN_SWAP;
#if GUARDS_STACK
    replays = replays || !PyUnstable_ThreadState_SetStackProtection;
#endif
    rwspy_host.escape = replays ? NULL : escape;
    if (pthread_key_create(&thread_key, thread_ends) == 0) return true;
    PyErr_SetString(PyExc_RuntimeError, "The system has no key for threads.");
    return false;
}
