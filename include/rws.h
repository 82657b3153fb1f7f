/* rws.h - write a generative program and its inference network as plain C, and have them learned.
 *
 * You write two functions as if for ONE particle: a model, which makes its random choices and then the data, and a
 * guide, which looks at the data and makes the same choices. Use real `if`, `for` and recursion. The library runs both
 * for all data and all K particles at once and trains them by any estimator of "Revisiting Reweighted Wake-Sleep for
 * Models with Stochastic Control Flow".
 *
 *     typedef struct { rws_param *prior; } net;
 *
 *     static void model(rws_path *path, const void *state)
 *     {
 *         const net *n = state;
 *         rws_var    mean = rws_constant(path, 0);
 *         if (rws_flip(path, "burglary", rws_parameter(path, n->prior))) // an int: C code may branch on it
 *             mean = rws_constant(path, 2);
 *         rws_normal(path, "noise", mean, rws_constant(path, 1)); // "noise" is a field of the data: it is observed
 *     }
 *
 * How it runs. All particles that made the same choices so far are one path: one execution of your function, in which
 * an rws_var is a matrix with a row for each distinct particle. Where your code asks for an int (rws_branch,
 * rws_choose, rws_flip) and the particles differ, the path splits: one part continues, and for each other part your
 * function is called again, where every library call up to that point returns what it returned before. Therefore
 *   - a program is a function of its choices: no static state, no clock, no rand(), no file;
 *   - the memory of a program comes from rws_alloc, which lasts as long as the pass, or from the stack. A path may be
 *     abandoned at any library call: a program must not hold other memory, locks or files across one;
 *   - work costs least where few choices have been made: work on the datum alone is done once per datum, and work that
 *     depends on choices once for all particles that made the same choices, which share a row.
 *
 * Mistakes. A declaration that cannot be made fails the setup, and a mistake in a program (a value of another path,
 * shapes that do not fit, a site that only one side visits, …) stops the pass; the status and the message reach the
 * caller of rws_train.h. The message names the program, the site and the visit (visits count from 0; the first is
 * often left out), or the field and the datum. The library never prints, exits or aborts for a user's mistake.
 *
 * Threads. The setup runs on one thread. Programs run on several threads at once with the same state, which they must
 * not write to. A path belongs to the thread that executes it. The functions of this header take their path, setup or
 * stream as an argument and share nothing else.
 *
 * Signals. A program runs on a stack of its own, of RWS_STACK_BYTES. To turn an overflow into a message, the library
 * installs a handler for SIGSEGV when the first pass begins, and gives each thread that runs passes an alternate signal
 * stack unless the thread has one. Faults that are no such overflow go to the handler that was there before. A program
 * that overflows while it holds a lock of the C library (inside malloc, say) leaves it locked.
 *
 * This header is all that models use. It is in the order in which data flow: settings and parameters (once), data
 * (every iteration), programs (for every particle), metrics (every evaluation), and last the struct that ties them
 * together.
 */
#ifndef RWS_H
#define RWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* what is declared here is what the library exports */
/* Members that an initialiser leaves out are zero, which is a default everywhere: {0} is meant, in C++ as in C. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define RWS_BYTES(pointer) \
    __builtin_object_size(pointer, 0) /* behind a pointer, if the compiler knows; else SIZE_MAX */
#else
#define RWS_BYTES(pointer) SIZE_MAX
#endif
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 10
#define RWS_READS(array, n) __attribute__((access(read_only, array, n))) /* gcc warns of arrays shorter than n */
#else
#define RWS_READS(array, n)
#endif

#define RWS_VERSION_MAJOR 0
#define RWS_VERSION_MINOR 9
#define RWS_VERSION_PATCH 0
#define RWS_VERSION_STRING "0.9.0"

/* RWS_VERSION_STRING of the library that the program runs with, which may be another one than it was built with. */
const char *rws_version(void);

#define RWS_ABI 7 /* raised whenever a model built for an older header would misbehave */

/* ------------------------------------------------------------------------------------------------ status and errors */

/* How a function ended. Every status but RWS_OK comes with a message in an rws_error. */
typedef enum {
    RWS_OK = 0,
    RWS_BROKEN = 1,    /* a numerical failure: a NaN, or every particle of every datum of an iteration impossible */
    RWS_BAD_INPUT = 2, /* a mistake of the user: a file, an option, a model that does not fit its guide */
    RWS_STOPPED = 3,   /* stopped on request (Ctrl-C), after the checkpoint was written */
    RWS_NO_MEMORY = 4, /* the system has no memory, or no threads, for what was asked */
} rws_status;

typedef struct {
    char text[512];
} rws_error;

/* Writes the message into err (which may be NULL) and returns status, so that a function can `return rws_fail(…)`. */
rws_status rws_fail(rws_error *err, rws_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* RWS_NO_MEMORY with the message "There is no memory for <what>." */
rws_status rws_no_memory(rws_error *err, const char *what);

/* Returns from the calling function with the status of the expression, unless that is RWS_OK. */
#define RWS_TRY(expression)                            \
    do {                                               \
        rws_status try_status_ = (expression);         \
        if (try_status_ != RWS_OK) return try_status_; \
    } while (0)

/* ------------------------------------------------------------------------------------------------------------ limits
 * */

#define RWS_FIELDS 1024                   /* fields and labels of a datum */
#define RWS_PARAM_NAME 95                 /* bytes of the name of a parameter */
#define RWS_STACK_BYTES ((size_t)1 << 20) /* stack of a program */

/* A program that never ends is stopped by these. One that never calls a function of this header is not. */
#define RWS_MAX_OPERATIONS UINT64_C(4000000) /* calls of functions of this header by one execution of a program */
#define RWS_MAX_PATHS UINT64_C(1000000)      /* paths of a pass: sets of particles that made different choices */
#define RWS_MAX_NODES UINT64_C(33554432)     /* operations of all paths of a pass, 400 bytes or more each with values */

/* How far a pass may go before it fails with a message; 0 means the constants above. A model has limits of its own
 * (rws_defaults), and so has a run (rws_config). They change no number. The stack of a path also takes two mappings of
 * the process: Linux's default (sysctl vm.max_map_count, 65530) is enough for 32,000 paths of all threads together. */
typedef struct {
    size_t   stack_bytes;    /* of a path */
    uint64_t max_operations; /* of a path */
    uint64_t max_paths;      /* of a pass */
    uint64_t max_nodes;      /* of a pass */
} rws_limits;

/* ------------------------------------------------------------------------------------------- settings and parameters
 * */

/* A setting of a model, typed as `--set name=value`. The table ends with an entry whose name is NULL. */
typedef struct {
    const char *name;
    const char *value;    /* the default, as text; a number must be between min and max */
    double      min, max; /* of a number; both 0 for a setting that is text */
    const char *help;     /* one line; for text, the values it may have */
    bool        whole;    /* the number must be an integer */
} rws_setting;

/* The declarations of a model. It is valid only during rws_model.setup; what it hands out lives as long as the model. A
 * declaration that fails is remembered: rws_model.setup may continue, and its caller gets the first failure as status
 * and message, whatever setup returns. */
typedef struct rws_setup rws_setup;

/* The value of a setting of this model. A setting that is not in the model's table is 0 or an empty text, and fails the
 * setup. */
double      rws_setup_number(rws_setup *s, const char *name);
int         rws_setup_int(rws_setup *s, const char *name);
const char *rws_setup_text(rws_setup *s, const char *name);

/* The same for a setting that is the path of a file. If there is such a file the setting becomes its absolute path, so
 * that the run can continue from another folder. */
const char *rws_setup_path(rws_setup *s, const char *name);

/* Zeroed memory that lives as long as the model: for the state that setup leaves in *state. NULL without memory, which
 * fails the setup with RWS_NO_MEMORY. */
void *rws_setup_alloc(rws_setup *s, size_t bytes);

/* Declares a field of a datum: `dim` floats under a name, which is copied. The model visits a site of that name once;
 * the guide reads the field with rws_observed. Fails without a name, for a name that is taken, for dim < 1, and for
 * more than RWS_FIELDS. Data must be finite numbers: a NaN or an infinity stops the pass and names field and datum. */
void rws_setup_field(rws_setup *s, const char *name, int dim);

/* The same for numbers that programs do not see and metrics compare with: the true number of objects in a picture. A
 * label may be NaN. A label named "datum" numbers the data, from 0: `rws train --given FILE` finds the choices of a
 * datum by it. */
void rws_setup_label(rws_setup *s, const char *name, int dim);

/* The same for a series of labels, laid out as by rws_setup_series; a length that is NaN counts as 0. */
void rws_setup_label_series(rws_setup *s, const char *name, int dim, int most);

/* Says that a label, which was declared before, is the value of a latent site where it is known: in training the guide
 * takes it instead of drawing one, and learns to find it. A label is the value at visit 0, and item t of a series of
 * labels is the value at visit t. NaN means that the value of a datum or visit is not known. A particle that does not
 * visit the site where a value is known for its datum is impossible. Evaluations and questions do not use labels in
 * this way. docs/labels.md says what each method does. The label and the site must have different names. */
void rws_setup_label_site(rws_setup *s, const char *label, const char *site);

/* Declares a series: up to `most` items of `dim` numbers; each datum has its own number of items. The model visits a
 * site of that name once for each item, in their order, with any distribution; in the sleep phase the number of visits
 * is the length. The guide reads rws_length and rws_item. Among the fields that rws_model.data fills, a series is 1 +
 * most * dim numbers: the length, then the items; what is behind the last item is not looked at by programs, but must
 * be finite. It is 0 unless data writes there, for the baseline of nvil and the control variate of relax, which see
 * whole fields. */
void rws_setup_series(rws_setup *s, const char *name, int dim, int most);

/* Declares an input: `dim` numbers of a datum that both programs may read with rws_observed and that nobody observes, such
 * as covariates, a length, a picture to condition on, or features for the guide alone. A model that reads one is
 * conditional on it: p(z, x | input). It has no density; a program that visits a site of its name is refused. Where the
 * model dreams, inputs come from the data: in training each datum of the batch lends its own to its K dreams, and
 * samples (rws_posterior_sample) have those of test data that are drawn at random, or those that the caller gives.
 * Whatever makes and takes data (rws_model.data, tables, questions, answers) has inputs as it has other fields.
 *
 * rws_setup_is_input makes an input of a field or series that was declared before, in whatever way: of columns of a
 * table, or of its number of rows. Of an input that is a series both programs read rws_length and rws_item. */
void rws_setup_input(rws_setup *s, const char *name, int dim);
void rws_setup_is_input(rws_setup *s, const char *name);

/* A field as it was declared. */
typedef struct {
    const char *name;
    int         dim;
    bool        label;      /* programs do not see it */
    bool        input;      /* both programs may read it, and nobody observes it */
    int         item, most; /* of a series: numbers of an item, and the most items; otherwise 0 */
} rws_field;

/* How the gradient of the bound reaches the parameters that a continuous value was drawn with, under reinforce, rloo,
 * nvil and vimco: through the value, or by the score of its density as for a choice. The score has more variance but
 * needs no derivative of what is computed from the value: for a density with jumps, or a program that jumps at the
 * value, only the score is right. Where the bounds of a uniform are learned, only the gradient through the value is
 * right. The methods concrete and dvae reparameterise everything and refuse RWS_SCORE.
 *
 * A program jumps where it branches on what is made of the value (rws_branch), looks at it (rws_look) or compares it
 * (rws_greater, rws_argmax). Without a choice for the site, its values then come by score, in each pass in which some
 * particle does so. With the choice RWS_REPARAMETERISED, a branch or a look stops the pass, and a comparison is taken for a
 * part of a smooth function.
 *
 * RWS_SUMMED is for a choice among finitely many: training, evaluations and answers draw no value of it and go on with all
 * values, a row for each. The weight of a particle is the sum over these rows, so that the bound is at least as tight as with a
 * draw, and the gradient is exact for this site. What is drawn later is drawn in each row. The guide may leave the site out; if
 * it visits it, its density there is no part of the weight and learns in a sleep phase only. All values of all visits
 * multiply: a particle has at most 4096 rows. For ww, ws, wws, dww, reinforce, rloo, nvil and vimco; the others refuse it. */
typedef enum { RWS_REPARAMETERISED, RWS_SCORE, RWS_SUMMED } rws_gradient;

/* Chooses the gradient of a site, for all its visits. A user's `--set site.NAME=score`, `=reparameterised` or `=sum` has
 * precedence. Without either, values of continuous families are reparameterised, unless the program jumps at them. A
 * discrete choice always has its score: RWS_REPARAMETERISED for it stops the first pass that visits the site. */
void rws_setup_gradient(rws_setup *s, const char *site, rws_gradient how);

/* The group of a parameter: the part of a run that it belongs to. Models declare parameters of the first two. */
typedef enum {
    RWS_THETA,    /* the generative model */
    RWS_PHI,      /* the guide */
    RWS_CONTROL,  /* the control variate of rebar and relax, declared by the estimator */
    RWS_BASELINE, /* the baseline network of nvil, declared by the estimator */
    RWS_GROUPS,   /* how many there are */
} rws_group;

/* How a parameter starts. The uniform and the truncated normal scale with the inputs of a layer (its columns). */
typedef enum {
    RWS_ZERO,
    RWS_UNIFORM,   /* U(-1/sqrt(n_in), 1/sqrt(n_in)): PyTorch's Linear, also for its bias */
    RWS_TRUNCATED, /* N(0, 1/n_in) cut at two standard deviations, bias zero: Sonnet's Linear */
} rws_init;

typedef struct rws_param rws_param; /* a matrix of numbers to learn */
typedef struct rws_layer rws_layer; /* a function with parameters */

/* Declares a parameter, a matrix, under a full name of at most RWS_PARAM_NAME bytes ("theta", "phi.mlp.0.weight"): in
 * the checkpoint it has this name and layout. Fails for a name that is taken and for an empty matrix. Never NULL: a
 * declaration that failed returns a parameter that no run will use. */
rws_param *rws_setup_param(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init);

/* The numbers of a parameter, row by row: writable during setup (to start from values of your own) and in em, readable
 * in metrics. NULL for a parameter whose declaration failed by its size or without memory, and if p is NULL. */
float *rws_param_values(const rws_param *p);

/* The meaning of the numbers of a parameter. */
typedef enum {
    RWS_AS_IS,
    RWS_LOGARITHMS, /* of positive numbers */
    RWS_LOG_ODDS,   /* of probabilities */
    RWS_LOGITS,     /* a row of them is a distribution: its softmax */
} rws_scale;

/* The numbers that a parameter stands for, row by row, for oracles and metrics. */
void rws_param_read(const rws_param *p, rws_scale scale, double *numbers);

/* Says which numbers made the data, where data are simulated: as many as the parameter has, on that scale; for
 * RWS_LOGITS each row adds up to 1, within 1e-4. They are copied. An array that is too short is refused where the compiler
 * knows its length.
 * Every snapshot of a run then has the learned numbers ("numbers") and these ("true_numbers"), and a model with a
 * metric "exact" that measures itself gets a metric "truth": the same at these numbers. */
void rws_setup_truth_sized(rws_setup *s, const rws_param *p, rws_scale scale, const double *numbers, size_t bytes);
static inline void rws_setup_truth(rws_setup *s, const rws_param *p, rws_scale scale, const double *numbers)
{
    rws_setup_truth_sized(s, p, scale, numbers, RWS_BYTES(numbers));
}

/* Says that the parameter of this name, or all parameters of the layer of this name, may have no gradient: a production
 * that no grammar rule uses, the weight of a layer whose input is always zero. Without it, a parameter that has had no
 * gradient is told at the end of training and by rws_trainer_check. To be called after the declaration. */
void rws_setup_unused(rws_setup *s, const char *name);

/* Functions of one number, for rws_apply; those up to RWS_LOG also between layers. */
typedef enum {
    RWS_LINEAR,
    RWS_TANH,
    RWS_RELU,
    RWS_ELU,
    RWS_SIGMOID,
    RWS_SOFTPLUS,
    RWS_EXP,
    RWS_LOG,
    RWS_SQRT,
    RWS_SQUARE,
    RWS_SIN,
    RWS_COS,
    RWS_ABS, /* the gradient at 0 is 0 */
    RWS_LOG_SIGMOID,
    RWS_LOG1P, /* log(1 + x), accurate near 0 */
    RWS_EXPM1, /* e^x - 1, accurate near 0 */
    RWS_LGAMMA,
    RWS_DIGAMMA,  /* the derivative of RWS_LGAMMA */
    RWS_LOG1MEXP, /* log(1 - e^-x) of x above 0, accurate for small and for large x */
} rws_function;

/* Layers. Parameter names and layouts are PyTorch's: NAME.weight [out, in], NAME.bias; an mlp counts like
 * nn.Sequential(Linear, f, Linear, …): NAME.0, NAME.2, …; rnn, gru and lstm like nn.RNNCell, nn.GRUCell (gates r, z, n)
 * and nn.LSTMCell (gates i, f, g, o).
 * Never NULL: a declaration that failed returns a layer that no run will use. */
rws_layer *rws_setup_linear(rws_setup *s, rws_group group, const char *name, int n_in, int n_out, rws_init init);
rws_layer *rws_setup_mlp(rws_setup *s, rws_group group, const char *name, rws_function hidden, rws_init init,
                         const int *sizes, int n_sizes) RWS_READS(6, 7);
rws_layer *rws_setup_rnn(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden, rws_init init);
rws_layer *rws_setup_gru(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden);
rws_layer *rws_setup_lstm(rws_setup *s, rws_group group, const char *name, int n_in, int n_hidden);
rws_layer *rws_setup_embedding(rws_setup *s, rws_group group, const char *name, int n_words, int dim);

/* Two recurrent cells that read a series from both ends, with the parameters of a bidirectional nn.RNN, nn.GRU or
 * nn.LSTM of one layer: NAME.weight_ih_l0, …, and the same with _reverse. */
typedef enum { RWS_RNN, RWS_GRU, RWS_LSTM } rws_recurrent;
rws_layer *rws_setup_bidirectional(rws_setup *s, rws_group group, const char *name, rws_recurrent cell, int n_in,
                                   int n_hidden);

/* Attention with the parameters of nn.MultiheadAttention: a query of `dim` numbers over items of n_item numbers each.
 * `heads` divides dim. */
rws_layer *rws_setup_attention(rws_setup *s, rws_group group, const char *name, int dim, int heads, int n_item);

/* An encoder of sets: an mlp for each item, with the parameters of rws_setup_mlp, then the sum, mean or maximum over
 * the items, component by component. */
typedef enum { RWS_SUM, RWS_MEAN, RWS_MAX } rws_pooling;
rws_layer *rws_setup_set_encoder(rws_setup *s, rws_group group, const char *name, rws_function hidden, rws_pooling how,
                                 const int *sizes, int n_sizes) RWS_READS(6, 7);

/* Layer norm like nn.LayerNorm, of n numbers; and an mlp whose blocks add to their input, for deep networks: NAME.in,
 * then n_blocks blocks of nn.Sequential(LayerNorm, Linear, f, Linear), NAME.blocks.0, …, then NAME.out. */
rws_layer *rws_setup_layer_norm(rws_setup *s, rws_group group, const char *name, int n);
rws_layer *rws_setup_residual_mlp(rws_setup *s, rws_group group, const char *name, rws_function hidden, int n_in,
                                  int width, int n_blocks, int n_out);

/* A convolution of pictures: n_in channels of rows x cols numbers, one behind the other, become n_out channels.
 * Parameters, layouts and sizes are those of nn.Conv2d and nn.ConvTranspose2d.
 *
 *     const rws_conv down = {.n_in = 1, .n_out = 8, .rows = 28, .cols = 28, .kernel = 3, .padding = 1};
 *     w->conv = rws_setup_conv2d(s, RWS_PHI, "phi.conv", &down);                                             in setup
 *     rws_var y = rws_apply(path, RWS_RELU, rws_conv2d(path, w->conv, rws_observed(path, "x")));             in the
 *     guide
 *     y = rws_pool2d(path, y, 8, 28, 2, RWS_MAX);                                                            8 x 14 x
 *     14
 */
typedef struct {
    int n_in, n_out;    /* channels */
    int rows, cols;     /* of a picture that goes in */
    int kernel;         /* rows and columns of a kernel */
    int stride;         /* 0: 1 */
    int padding;        /* zeros around a picture */
    int output_padding; /* of a transposed convolution: rows and columns that are added to what comes out */
} rws_conv;
rws_layer *rws_setup_conv2d(rws_setup *s, rws_group group, const char *name, const rws_conv *how);
rws_layer *rws_setup_conv_transpose2d(rws_setup *s, rws_group group, const char *name, const rws_conv *how);

/* Returns how many numbers come out of a layer, to declare the layer after it, and writes them as a picture: channels,
 * rows and columns. Each pointer may be NULL. The output of a layer that is not a convolution is 1 channel of 1 row. */
int rws_layer_picture(const rws_layer *l, int *channels, int *rows, int *cols);

/* The bias of a linear layer, or of the last one of an mlp, to start from values of your own: a guide that loops or
 * recurses should begin with logits at which it ends soon. NULL for a layer of another kind. */
rws_param *rws_layer_bias(const rws_layer *l);

/* ------------------------------------------------------------------------------------------------------------- data */

/* A stream of random numbers, the same whenever the run is repeated. One thread uses it at a time. */
typedef struct rws_random rws_random;

double   rws_random_uniform(rws_random *g);                        /* in (0, 1) */
double   rws_random_normal(rws_random *g);                         /* N(0, 1) */
uint32_t rws_random_below(rws_random *g, uint32_t n);              /* in 0 … n - 1 */
void     rws_random_uniforms(rws_random *g, size_t n, float *out); /* n numbers */
void     rws_random_normals(rws_random *g, size_t n, float *out);

/* rws_random_choose draws a number of 0 … n - 1 by n probabilities that add up to 1. rws_random_sample writes 0 … n - 1
 * into `order`; the first `wanted` of them are a random sample without replacement. */
int  rws_random_choose(rws_random *g, const double *probabilities, int n) RWS_READS(2, 3);
void rws_random_sample(rws_random *g, int n, int wanted, int *order);

typedef enum { RWS_TRAIN, RWS_TEST } rws_split;

/* A table of numbers from a file: each row is a datum, and fields are made of columns. Three calls are all that a model
 * needs to learn from a file that its user names by `--data FILE`:
 *
 *     w->table = rws_setup_table(s, NULL, NULL);                            in setup; the model has a setting "data"
 *     n_in = rws_setup_table_field(s, w->table, "x", "height,weight");      in setup, instead of rws_setup_field
 *     return rws_table_fill(w->table, split, first, n, random, fields, err);      all that rws_model.data does
 *
 * A file is one of these; its contents decide which, unless its name ends with .safetensors:
 *   - text (CSV): one row on each line, with or without a header line, separated by commas, semicolons or tabs;
 *   - NPY (numpy.save): an array of one or two dimensions, of float32, float64, integers or booleans;
 *   - safetensors: a tensor of one or two dimensions.
 * Columns that no field uses may hold anything. A cell of a field that is not a finite number fails the setup with a
 * message that names file, line and column. Columns count from 1. */
typedef struct rws_table rws_table; /* lives as long as the model */

/* The order in which training rows come. Each order is the same whenever the run is repeated. */
typedef enum {
    RWS_ROWS_SHUFFLED, /* every row once in each epoch, in a new random order each time */
    RWS_ROWS_IN_ORDER, /* as in the file, again and again */
    RWS_ROWS_DRAWN,    /* each datum is a row drawn at random, with replacement */
} rws_rows;

/* Whether the first line of a text has the names of the columns. */
typedef enum {
    RWS_HEADER_GUESSED, /* yes, if none of its cells is a number */
    RWS_HEADER_GIVEN,
    RWS_HEADER_NONE,
} rws_header;

/* How a table is read and used. All zeros is the default. */
typedef struct {
    const char *test;         /* setting that names a file of test rows; NULL or an empty value: rows are held out */
    double      test_share;   /* share of the rows held out for tests; 0: a tenth; 1: all rows serve both purposes */
    bool        test_last;    /* the last rows are held out, instead of rows evenly spread over the file */
    rws_rows    order;        /* of training rows; test rows come in the order of the file */
    rws_header  header;       /* of a text */
    bool        skip_missing; /* leaves out a row of a text that has an empty cell, NA, N/A, NaN, null or ? */
    const char *tensor;       /* name of the tensor in a safetensors file; NULL: the only one */
    const char *id;           /* column, by name or number, of the ids: rows with the same id are one datum, a series;
                                 NULL: each row is a datum */
} rws_table_options;

/* Reads the file that a text setting of the model names (NULL: "data"); its path becomes absolute as by rws_setup_path.
 * `options` may be NULL. A failure (no file, lines of different length, no memory, …) fails the setup with a message;
 * the table that is then returned has no rows and no columns and can be passed to all functions below. If there are too
 * few rows to hold out one, all rows serve both purposes. */
rws_table *rws_setup_table(rws_setup *s, const char *setting, const rws_table_options *options);

/* The same for numbers at hand, `rows` x `columns`, which are copied. n_test rows of test_values are the test rows; if
 * n_test is 0, rows are held out as the options say. `name` stands for the numbers in messages. */
rws_table *rws_setup_table_numbers(rws_setup *s, const char *name, const float *values, size_t rows, int columns,
                                   const float *test_values, size_t n_test, const rws_table_options *options);

/* Declares a field, or a label, that is made of columns of a table, and returns how many columns these are: the dim of
 * the field; 1 after a failure. `columns` is a list of names, numbers and ranges ("age", "age,weight", "2:5",
 * "first:last"); NULL means all columns, and "#" the number of the row in its file, from 0; rows that skip_missing
 * leaves out count, lines without cells do not. With ids it is the number of the id, in the order in which ids first
 * come in the file. A file with a number from 2^24 on is refused then. An empty cell of a label, or one that is NaN, is
 * NaN: not known. */
int rws_setup_table_field(rws_setup *s, rws_table *t, const char *name, const char *columns);
int rws_setup_table_label(rws_setup *s, rws_table *t, const char *name, const char *columns);

/* Declares a series (rws_setup_series) of a table whose options name a column of ids: item t of a datum is row t of its
 * id, in the order of the file, and an item is made of `columns` as above. Rows of an id need not follow each other. An
 * id is any text, compared byte by byte, and belongs as a whole to training or to tests. `most` is the most items that
 * a datum, or a dream, may have; 0: as many as the longest has. Fails if an id has more rows. Returns the numbers of an
 * item. In such a table, a field or a label must have the same numbers in all rows of an id. */
int rws_setup_table_series(rws_setup *s, rws_table *t, const char *name, const char *columns, int most);

/* Declares a field of one number: how many rows a datum has, so that the model can visit a site for it before the
 * items. */
void rws_setup_table_length(rws_setup *s, rws_table *t, const char *name);

/* Declares a series whose items are all in one row of the table: the first of the columns is the number of items, the
 * others are the items of `dim` numbers each; items at the end may be unused. Returns how many items there are at most;
 * 1 after a failure. */
int rws_setup_table_row_series(rws_setup *s, rws_table *t, const char *name, const char *columns, int dim);

/* Fills the fields that were made of the table's columns, for rws_model.data, whose arguments it takes. Other fields
 * stay as they are. After the last row comes the first again. RWS_BAD_INPUT if the table has no rows. */
rws_status rws_table_fill(const rws_table *t, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err);

/* The number of rows for training or for tests, and of columns. With ids, a datum counts as one row. */
int rws_table_rows(const rws_table *t, rws_split split);
int rws_table_columns(const rws_table *t);

/* The most rows of an id; 1 without ids. */
int rws_table_longest(const rws_table *t);

/* All numbers of row i (0 … rows - 1); NaN where the cell is not a finite number. NULL: there is no such row. With ids
 * it is the first row of datum i, and rws_table_item returns its row number `item`, the first being 0. */
const float *rws_table_row(const rws_table *t, rws_split split, int i);
const float *rws_table_item(const rws_table *t, rws_split split, int i, int item);

/* rws_table_column: the number of the column (from 1) that has this name; 0 if no column or several columns have it.
 * rws_table_name: the name of column 1 … columns; NULL if it has none. Names live as long as the table. */
int         rws_table_column(const rws_table *t, const char *name);
const char *rws_table_name(const rws_table *t, int column);

/* ---------------------------------------------------------------------------------------------------------- programs
 * */

/* A path: one execution of a program, for all particles that made the same choices so far. It is valid until the
 * program returns. */
typedef struct rws_path rws_path;

/* A value: a vector of `rws_dim` floats for each particle of a path. It belongs to the path that made it: a value that
 * was kept in static memory, in the state, or from another path is refused. Both members are the library's own; all
 * zeros is no value. */
typedef struct {
    uint32_t id, stamp;
} rws_var;

/* The length of the vector. */
int rws_dim(const rws_path *path, rws_var v);

/* Zeroed memory for the program's own structures; lasts until the pass ends. Never NULL: without memory the pass
 * stops. */
void *rws_alloc(rws_path *path, size_t bytes);

/* How many iterations of training came before this pass. */
uint64_t rws_iteration(const rws_path *path);

/* Stops the pass with RWS_BAD_INPUT and this message, because the program cannot continue. Does not return. */
void rws_give_up(rws_path *path, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* A field of the datum. For the guide: the model must not look at the data, but for inputs (rws_setup_input), nor use
 * what the guide has made of them, which stops the pass. */
rws_var rws_observed(rws_path *path, const char *field);

/* A field as it was declared, for the numbers of a field or of an item and the most items of a series. It stops the pass if
 * there is none of this name. */
const rws_field *rws_path_field(rws_path *path, const char *name);

/* The length of a series of the datum, for rws_branch, and its item number t, the first being 0. An item that some
 * datum of this path does not have stops the pass, so that a program branches on the length before it reads. For the
 * guide, and for the model if the series is an input. */
rws_var rws_length(rws_path *path, const char *series);
rws_var rws_item(rws_path *path, const char *series, int t);

/* Numbers known in C, the same for all particles. They are copied; dim is at least 1. An array of fewer numbers stops the
 * pass where the compiler knows its length. */
rws_var               rws_constant(rws_path *path, float value);
rws_var               rws_constants_sized(rws_path *path, const float *values, int dim, size_t bytes);
static inline rws_var rws_constants(rws_path *path, const float *values, int dim)
{
    return rws_constants_sized(path, values, dim, RWS_BYTES(values));
}

/* A vector of `dim` zeros: the first state of a recurrent cell, the logits of equal probabilities. */
static inline rws_var rws_zeros(rws_path *path, int dim)
{
    return rws_constants(path, (const float *)rws_alloc(path, (size_t)(dim > 0 ? dim : 0) * sizeof(float)), dim);
}

/* A parameter matrix as one vector of rows * cols numbers. */
rws_var rws_parameter(rws_path *path, const rws_param *p);

/* The integer that v (a vector of one) holds, as an int for C code. The path splits where particles differ. A number
 * that is not an integer, or beyond 1e9, stops the pass. */
int rws_branch(rws_path *path, rws_var v);

/* All numbers of v for C code, a message for example. The path splits where particles differ. They last until the pass
 * ends. */
const float *rws_look(rws_path *path, rws_var v);

/* Computes these n values now, all together. A program never needs it; but one that is about to branch on several
 * values which do not depend on each other waits once instead of once for each, and their networks run in the same
 * calls. */
void rws_await(rws_path *path, const rws_var *v, int n) RWS_READS(2, 3);

/* Something long, as a loop that says what a step hands to the next: the carry, a struct of values (or zeros) and
 * then of integers. Particles that entered the loop together and hand on the same integers are one path again at the
 * next step, whatever they did before; the values that they hand on become one value with the rows of all. So a path
 * is executed for each combination of integers, and not for each history.
 *
 *     typedef struct {
 *         rws_var level;          values first,
 *         int     t, state;       then integers, the clock first
 *     } day;
 *
 *     static bool step(rws_path *path, const void *env, void *carry)
 *     {
 *         const weather *w = env; day *c = carry;
 *         c->state = rws_choose(path, "z", rws_slice(path, w->next, c->state * S, S));
 *         c->level = rws_add(path, c->level, rws_slice(path, w->rise, c->state, 1));
 *         rws_normal(path, "x", c->level, w->sd);
 *         return ++c->t < DAYS;
 *     }
 *
 *     day c = {.level = rws_constant(path, 0)};
 *     RWS_LOOP(path, step, &w, c, t);
 *
 * The loop executes the step until it returns false; then `carry` is what the last one left. `env` is handed to every
 * step as it is: it may lead to values that were made before the loop, in the caller's own variables. A step must use
 * the path that it is given, not the caller's; values that it makes reach the next step, and the caller, through the
 * carry alone. The clock is an integer that no step makes smaller: particles with the lowest clock go first, so that
 * those who will meet do. Whether particles meet depends on what is carried: set a value or an integer that nobody
 * will read again to zero, and before a step returns false, everything that the caller does not need. The numbers are
 * those of a plain loop.
 *
 * rws_call_once executes `body` once, for a branch or a recursion whose result is a struct of the same kind:
 * afterwards particles with equal integers in it are one path. Its integers begin at first_int; a result without
 * integers is as long as that.
 *
 * Loops may be nested and called by steps. A mistake stops the pass with a message: a clock that falls, padding bytes
 * in the carry (where the compiler can tell), a value of another step, the caller's path in a step. */
typedef bool rws_step(rws_path *path, const void *env, void *carry);
typedef void rws_once(rws_path *path, const void *env, void *result);
void         rws_loop(rws_path *path, rws_step *step, const void *env, void *carry, size_t size, size_t clock);
void rws_call_once(rws_path *path, rws_once *body, const void *env, void *result, size_t size, size_t first_int);

/* `clock` and `first_int` are members of the struct, of type int. */
#define RWS_LOOP(path, step, env, carry, clock)                                                 \
    do {                                                                                        \
        RWS_CARRY_CHECK(path, carry);                                                           \
        rws_loop(path, step, env, &(carry), sizeof(carry), offsetof(__typeof__(carry), clock)); \
    } while (0)
#define RWS_CALL(path, body, env, result, first_int)                                                        \
    do {                                                                                                    \
        RWS_CARRY_CHECK(path, result);                                                                      \
        rws_call_once(path, body, env, &(result), sizeof(result), offsetof(__typeof__(result), first_int)); \
    } while (0)

/* The same loop, under a name, for guide and model together: a step of the guide's loop, then a step of the model's loop of
 * the same name, and so on. After each step the weights of particles are known. Impossible particles end there, and cost
 * nothing more; and particles can be resampled (rws_config.resample), which makes a particle filter of the two programs. The
 * carries are the programs' own, and clocks are the guide's. When one of the two loops has ended, the other one goes on alone.
 *
 * The guide runs until its loop, then the model until its own. The model must visit what the guide has drawn before the
 * loop, or in a step, in the same step at the latest, and the guide draws nothing behind the loop. In a sleep pass, and
 * within a step of another loop, it is a loop like any other. */
void rws_shared_loop(rws_path *path, const char *name, rws_step *step, const void *env, void *carry, size_t size,
                     size_t clock);

#define RWS_SHARED_LOOP(path, name, step, env, carry, clock)                                                 \
    do {                                                                                                     \
        RWS_CARRY_CHECK(path, carry);                                                                        \
        rws_shared_loop(path, name, step, env, &(carry), sizeof(carry), offsetof(__typeof__(carry), clock)); \
    } while (0)

/* Stops with a message if a byte of `solid` is zero: the bytes of a struct that are not padding, set to ones. */
void rws_carry_check(rws_path *path, const void *solid, size_t size);
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define RWS_CARRY_CHECK(path, carry)                    \
    do {                                                \
        __typeof__(carry) solid_;                       \
        __builtin_memset(&solid_, 0xff, sizeof solid_); \
        __builtin_clear_padding(&solid_);               \
        rws_carry_check(path, &solid_, sizeof solid_);  \
    } while (0)
#else
#define RWS_CARRY_CHECK(path, carry) ((void)0)
#endif

/* Sites: random choices and random values, addressed by name and, in loops and recursion, by the number of the visit.
 * The name is copied. The guide draws at a site and the model scores the same value there (the other way round in the
 * sleep phase); both must visit the same sites, in any order, with values of one length. Their families may differ if
 * they have the same support (rws_support): a guide may draw from a log-normal what the model takes for a Gamma, from
 * a Beta what is uniform between 0 and 1, from a categorical of n + 1 choices what is binomial of n trials. A guide
 * that cannot reach all values of the model, or draws others, is refused with a message; bounds that it computes from
 * the datum may be narrower than the model's. Where all parameters of independent components (bernoulli, too) have one number,
 * they hold for each number of an observed field or item, and of a value that the other program has drawn: the model may
 * write rws_normal(path, "z", zero, one) for a vector "z" of the guide, unless it dreams it. A site named like a field of the data is observed: it belongs to the
 * model alone, which visits it once.
 *
 * Gradients. Values of the continuous families (all of them but mixtures) are reparameterised by reinforce, rloo, nvil,
 * vimco, concrete and dvae: the gradient of the bound passes through the value to the parameters that it was drawn
 * with, and only discrete choices have score-function terms. Under the first four methods rws_setup_gradient chooses
 * otherwise for single sites. Under all other methods a drawn value counts as a constant. */
rws_var rws_categorical(rws_path *path, const char *site, rws_var logits);      /* an index: a vector of one */
rws_var rws_bernoulli(rws_path *path, const char *site, rws_var logits);        /* zeros and ones, one per logit */
rws_var rws_normal(rws_path *path, const char *site, rws_var mean, rws_var sd); /* independent components */
rws_var rws_uniform(rws_path *path, const char *site, rws_var low, rws_var high);
rws_var rws_gumbel(rws_path *path, const char *site, rws_var location); /* scale 1 */
rws_var rws_concrete(rws_path *path, const char *site, rws_var logits,
                     rws_var temperature); /* the log of a point on the simplex */

/* Independent components, each parameter with as many numbers as the value or with one. A value outside of the support
 * is impossible (log-density -inf). */
rws_var rws_exponential(rws_path *path, const char *site, rws_var rate);
rws_var rws_log_normal(rws_path *path, const char *site, rws_var mean, rws_var sd); /* of the logarithm */
rws_var rws_laplace(rws_path *path, const char *site, rws_var location, rws_var scale);
rws_var rws_half_normal(rws_path *path, const char *site, rws_var scale);
rws_var rws_gumbel_scale(rws_path *path, const char *site, rws_var location, rws_var scale);
rws_var rws_truncated_normal(rws_path *path, const char *site, rws_var mean, rws_var sd, rws_var low,
                             rws_var high); /* low and high may be infinite */
rws_var rws_gamma(rws_path *path, const char *site, rws_var shape, rws_var rate);
rws_var rws_inverse_gamma(rws_path *path, const char *site, rws_var shape, rws_var scale); /* 1 over a Gamma */
rws_var rws_beta(rws_path *path, const char *site, rws_var a, rws_var b);
rws_var rws_student_t(rws_path *path, const char *site, rws_var degrees, rws_var location, rws_var scale);

/* Whole numbers from 0 on, independent components. Particles that draw the same numbers share a row. A datum that is no
 * whole number is refused with a message. A draw considers the numbers whose probability matters. If these are more
 * than RWS_MAX_INDEX (from a rate of about 4e6 on for a Poisson distribution), the draw stops the pass: use a
 * continuous distribution there. Scores have no such limit. */
rws_var rws_poisson(rws_path *path, const char *site, rws_var rate);
rws_var rws_geometric(rws_path *path, const char *site, rws_var logit); /* failures before the first success */
rws_var rws_binomial(rws_path *path, const char *site, rws_var trials, rws_var logit);
rws_var rws_negative_binomial(rws_path *path, const char *site, rws_var shape, rws_var logit); /* mean: shape e^logit */

/* Vectors whose numbers belong together. A Dirichlet is a point on the simplex. The Cholesky factor of a multivariate
 * normal's covariance is a lower triangle with numbers above 0 on its diagonal: n * n numbers, row by row (those
 * above the diagonal are not looked at), or the n (n + 1) / 2 numbers of the triangle alone. rws_categoricals draws n
 * indices at once, each by its own row of the logits, which have n * C numbers; up to 8 of them share rows like a
 * single one. rws_multinomial counts how often each of C categories came in `trials` trials. */
rws_var rws_dirichlet(rws_path *path, const char *site, rws_var concentrations);
rws_var rws_multivariate_normal(rws_path *path, const char *site, rws_var mean, rws_var factor);
rws_var rws_categoricals(rws_path *path, const char *site, rws_var logits, int n);
rws_var rws_multinomial(rws_path *path, const char *site, rws_var trials, rws_var logits);

/* rws_von_mises: angles, drawn from -pi to pi; any angle can be scored. rws_delta: numbers that are certain; any other
 * value is impossible. */
rws_var rws_von_mises(rws_path *path, const char *site, rws_var location, rws_var concentration);
rws_var rws_delta(rws_path *path, const char *site, rws_var at);

/* The values that a family has: the numbers of a vector, each by itself, except for the last. */
typedef enum {
    RWS_SUPPORT_REAL,        /* any numbers */
    RWS_SUPPORT_POSITIVE,    /* numbers above 0 */
    RWS_SUPPORT_UNIT,        /* numbers between 0 and 1 */
    RWS_SUPPORT_COUNT,       /* whole numbers from 0 on */
    RWS_SUPPORT_INDEX,       /* 0 … rws_family.choices - 1 */
    RWS_SUPPORT_BITS,        /* zeros and ones */
    RWS_SUPPORT_SIMPLEX,     /* numbers above 0 that add up to 1 */
    RWS_SUPPORT_INTERVAL,    /* numbers between the bounds of rws_family.bounds */
    RWS_SUPPORT_ANGLE,       /* angles, from -pi to pi */
    RWS_SUPPORT_LOG_SIMPLEX, /* logarithms of numbers above 0 that add up to 1 */
    RWS_SUPPORT_PARTITION,   /* whole numbers from 0 on with a given sum */
    RWS_SUPPORT_CERTAIN,     /* one value has all of the probability */
} rws_support;

/* A family of distributions: how to draw a value and how to score it. The distributions of this header are such structs
 * (rws_family_find), and a program may bring its own: a const struct that it passes to rws_site_visit. All functions
 * are made of the functions of this header (rws_add, rws_apply, …), so that they have no loop over particles, and
 * gradients by the value and by the parameters follow by themselves. They visit no sites and do not branch. p is the
 * n_params parameters after `prepare`; f is the family itself, for its context. Members may be NULL where that is said;
 * members that are left out of an initialiser mean what most families want.
 *
 *     static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)      an exponential, by its
 *     rate
 *     {
 *         rws_var u = rws_draw_noise(path, RWS_NOISE_UNIFORM, rws_dim(path, p[0]));
 *         return rws_affine(path, rws_div(path, rws_apply(path, RWS_LOG, u), p[0]), -1, 0);
 *     }
 */
#define RWS_FAMILY_PARAMS 11 /* the most parameters of a family */

typedef struct rws_family rws_family;
struct rws_family {
    const char *name; /* it must live as long as the pass; families with one name are one family to guide and model */
    const char *help; /* one line for `rws list`; may be NULL */
    rws_support support;
    bool        reparameterised; /* the derivative of a draw by its parameters is that of the value */
    int         n_params;
    const void *context; /* the family's own */
    /* Turns what the author gave into what draw and density work on (logits into log-probabilities). NULL: as given. */
    void (*prepare)(rws_path *path, const rws_family *f, rws_var *p);
    /* How many numbers a value has. NULL: as many as the longest parameter; the others have as many, or one. */
    int (*length)(rws_path *path, const rws_family *f, const rws_var *p);
    /* How many values there are: 0 … n - 1. NULL: the family is not a choice. */
    int (*choices)(rws_path *path, const rws_family *f, const rws_var *p);
    /* The size that guide and model must agree on where both have this family. NULL: the number of choices or, where there are none, the length. */
    int (*size)(rws_path *path, const rws_family *f, const rws_var *p);
    /* Draws a value, from rws_draw_noise, rws_draw_index or rws_draw_from. `stop` says that the value will count as a
     * constant, which may save work. NULL: the family can only be scored. */
    rws_var (*draw)(rws_path *path, const rws_family *f, const rws_var *p, bool stop);
    /* The log-density of a value, a vector of one; minus infinity for an impossible value. */
    rws_var (*log_density)(rws_path *path, const rws_family *f, rws_var value, const rws_var *p);
    /* The same for a value that was not drawn here, if there is a shorter way to it. May be NULL. */
    rws_var (*score)(rws_path *path, const rws_family *f, rws_var value, const rws_var *p);
    /* The guide's draw for method dww, from a mixture with weight delta, and the log-density of the mixture at it.
     * NULL: draws as for any method. */
    rws_var (*draw_defensive)(rws_path *path, const rws_family *f, const rws_var *p, rws_var *log_density);
    /* The lowest and the highest value, where parameters say so, for RWS_SUPPORT_INTERVAL and RWS_SUPPORT_COUNT: each a
     * vector of one, or as long as a value. One that stays {0} is what the support says. NULL: both are. */
    void (*bounds)(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2]);
};

/* Visits a site with a family of any origin and its n_params parameters. */
rws_var               rws_site_visit_sized(rws_path *path, const char *site, const rws_family *f, const rws_var *params,
                                           size_t bytes);
static inline rws_var rws_site_visit(rws_path *path, const char *site, const rws_family *f, const rws_var *params)
{
    return rws_site_visit_sized(path, site, f, params, RWS_BYTES(params));
}

/* A family of the library by the name that `rws list` shows; NULL: there is none. */
const rws_family *rws_family_find(const char *name);

/* The log-density of a value under a family, outside of any site. Gradients follow it. */
rws_var rws_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *params);

/* A mixture of n components, whose log-density is the sum over all of them: which one a value came from is no choice.
 * The components are of any families, with values of one length, all of them real numbers or all of them whole ones.
 * Draws count as constants for every method. */
typedef struct {
    const rws_family *family;
    const rws_var    *params;
} rws_component;
rws_var rws_mixture(rws_path *path, const char *site, rws_var logits, const rws_component *components, int n)
    RWS_READS(4, 5);

/* For the draw of a family, and of rws_observe; a program's own code has no use for them. Noise is `dim` independent
 * numbers for every particle, uniform in (0, 1) or standard normal; from there on particles have rows of their own. An
 * index is drawn by rows of at most RWS_MAX_INDEX normalised log-probabilities; particles that draw the same index
 * share a row. rws_draw_from draws from another family, as a constant. */
#define RWS_MAX_INDEX 32000 /* categories that a particle draws from at a time */
typedef enum { RWS_NOISE_UNIFORM, RWS_NOISE_NORMAL } rws_noise;
rws_var rws_draw_noise(rws_path *path, rws_noise kind, int dim);
rws_var rws_draw_index(rws_path *path, rws_var log_probabilities);
rws_var rws_draw_from(rws_path *path, const rws_family *f, const rws_var *params);

/* An observation with a density of your own, for the model. log_density makes the log-density, a vector of one, from
 * the datum (an item of a series) and from what `context` points to: values of the program, in a struct on its stack.
 * Gradients follow it. draw makes a datum for the sleep phase, by the functions above. Without it (NULL) the model
 * cannot be sampled: methods with a sleep phase (ws, wws) and rws sample refuse it with a message. Returns the datum.
 * */
typedef rws_var rws_density(rws_path *path, rws_var datum, const void *context);
typedef rws_var rws_drawer(rws_path *path, const void *context);
rws_var rws_observe(rws_path *path, const char *site, rws_density *log_density, rws_drawer *draw, const void *context);

/* An observation that C code makes from its choices: a sentence from a tree, for example. `made` has as many numbers as
 * the field. Its log-density is kernel(datum, made, dim, context); in the sleep phase the datum is what was made. */
typedef double rws_kernel(const float *datum, const float *made, int dim, const void *context);
void rws_simulate(rws_path *path, const char *site, const float *made, rws_kernel *kernel, const void *context);

/* Kernels for sequences of whole numbers, each given as its length and then its items; the context is not looked at.
 * The first is minus the square of the edit distance (the least number of insertions, deletions and replacements of one
 * item); the second is 0 for equal sequences and -inf for others. */
double rws_edit_kernel(const float *datum, const float *made, int dim, const void *context);
double rws_equal_kernel(const float *datum, const float *made, int dim, const void *context);

/* The edit distance of two sequences of whole numbers: the least number of insertions, deletions and replacements, each
 * of one item, that turn a into b. Time n_a * n_b. `row` is scratch memory for min(n_a, n_b) + 1 ints. */
int rws_edit_distance(const int *a, int n_a, const int *b, int n_b, int *row);

/* A value at a site, as rws_train.h hands it out and takes it. */
typedef struct {
    const char  *site;
    int          visit, dim; /* the first visit is 0 */
    const float *value;      /* dim numbers; a choice is its index */
    bool         given;      /* where it is handed out: the value was given, not drawn */
} rws_choice;

/* Reports on the particles of this path, for metrics, for questions and for samples: a value, or a text that all of
 * them share. Name and text are copied. A name may be reported many times. While nothing is asked, as in training, it
 * costs nothing. Some names are drawn as pictures: "tree", a text in brackets; "picture", the greys of a square from 0
 * (black) to 1; with it "seen", the picture that it stands for, with a box in it for every "where" (as rws_attend
 * takes it). */
void rws_report(rws_path *path, const char *name, rws_var v);
void rws_report_text(rws_path *path, const char *name, const char *text);

/* Whether reports are wanted, so that a program can save the work of making a text; and whether they are for a person
 * (infer, sample), so that large ones, like pictures, are worth making. */
bool rws_reports(const rws_path *path);
bool rws_reports_all(const rws_path *path);

/* Multiplies the model's joint density by exp(log_weight), a vector of one, which gradients follow: a soft constraint,
 * or a likelihood that the program has summed up itself. Messages about it show the name. Such a model cannot be
 * sampled: a pass in which it dreams (ws, wws, rws sample) is refused, unless `in_prior` says that the weight only
 * normalises the prior and may be left out there. For the model. */
void rws_factor(rws_path *path, const char *name, rws_var log_weight, bool in_prior);

/* A choice as an int, which C code can branch on. */
static inline int rws_choose(rws_path *path, const char *site, rws_var logits)
{
    return rws_branch(path, rws_categorical(path, site, logits));
}

static inline int rws_flip(rws_path *path, const char *site, rws_var logit)
{
    return rws_branch(path, rws_bernoulli(path, site, logit));
}

/* Arithmetic, component by component. Two vectors have the same length, or one of them is a vector of one, which is
 * then used for every component. */
rws_var rws_add(rws_path *path, rws_var a, rws_var b);
rws_var rws_sub(rws_path *path, rws_var a, rws_var b);
rws_var rws_mul(rws_path *path, rws_var a, rws_var b);
rws_var rws_div(rws_path *path, rws_var a, rws_var b);
rws_var rws_affine(rws_path *path, rws_var a, float scale, float shift); /* scale * a + shift */
rws_var rws_apply(rws_path *path, rws_function f, rws_var a);
rws_var rws_clip(rws_path *path, rws_var a, float low, float high); /* no gradient outside of low … high */
rws_var rws_greater(rws_path *path, rws_var a, rws_var b);          /* 1 where a > b, else 0; no gradient */

/* a where mask is above 0, else b, component by component. The other side has no part in value or gradient, even where it
 * is infinite or no number: a mask for log-probabilities of -inf, for items that are missing, for the logarithm of 0. */
rws_var rws_where(rws_path *path, rws_var mask, rws_var a, rws_var b);
rws_var rws_min(rws_path *path, rws_var a, rws_var b); /* equal numbers: the gradient is that of a */
rws_var rws_max(rws_path *path, rws_var a, rws_var b);
rws_var rws_power(rws_path *path, rws_var a, rws_var b); /* a^b */
rws_var rws_sum_many(rws_path *path, const rws_var *parts, int n)
    RWS_READS(2, 3); /* the sum of n values, component by component */

/* Shape. */
rws_var rws_concat(rws_path *path, const rws_var *parts, int n) RWS_READS(2, 3); /* n parts, one behind the other */
rws_var rws_slice(rws_path *path, rws_var a, int first, int n);                  /* n components, from number `first` */
rws_var rws_sum(rws_path *path, rws_var a);                                      /* over the components */
rws_var rws_dot(rws_path *path, rws_var a, rws_var b); /* the sum of a * b; both have the same length */
rws_var rws_cumulative_sum(rws_path *path, rws_var a); /* component j is the sum of components 0 … j */
rws_var rws_log_softmax(rws_path *path, rws_var a);
rws_var rws_log_sum_exp(rws_path *path, rws_var a);
rws_var rws_argmax(rws_path *path, rws_var a);              /* an index; no gradient */
rws_var rws_pick(rws_path *path, rws_var a, rws_var index); /* the component of a with this number */
rws_var rws_onehot(rws_path *path, rws_var index, int n);   /* a vector of n; costs a look-up where it enters a layer */

/* The same for an index that C code knows. */
static inline rws_var rws_onehot_at(rws_path *path, int index, int n)
{
    return rws_onehot(path, rws_constant(path, (float)index), n);
}

/* Row number `index` of a matrix with n columns that is given as one vector (rws_parameter). */
rws_var rws_row(rws_path *path, rws_var a, int n, rws_var index);

/* Matrices. A matrix is a vector of rows * cols numbers, row after row: a parameter, or any value. For a Gaussian
 * process with the covariance k (n x n), noise of variance s2 and observations y (n numbers), the log-density is
 *
 *     rws_var l = rws_cholesky(path, rws_add_diagonal(path, k, s2)), half = rws_triangular_solve(path, l, y, false);
 *     rws_var log_p = rws_affine(path, rws_add(path, rws_dot(path, half, half), rws_log_determinant(path, l)), -0.5f,
 *                                -0.5f * n * logf(2 * M_PI));
 */
rws_var rws_matvec(rws_path *path, rws_var a, rws_var x);            /* a has as many columns as x has numbers */
rws_var rws_matmul(rws_path *path, rws_var a, rws_var b, int inner); /* a has `inner` columns, b `inner` rows */
rws_var rws_transpose(rws_path *path, rws_var a, int cols);          /* of a matrix with `cols` columns */
rws_var rws_diagonal(rws_path *path, rws_var a);                     /* of a square matrix */
rws_var rws_add_diagonal(rws_path *path, rws_var a, rws_var d);      /* d: a number for each row, or one for all */

/* The lower triangular l with l l^T = a, zeros above its diagonal. Only the lower triangle of `a` is read, and only it
 * gets a gradient. A matrix that is not positive definite stops the pass with RWS_BROKEN. */
rws_var rws_cholesky(rws_path *path, rws_var a);
rws_var rws_cholesky_solve(rws_path *path, rws_var l, rws_var b); /* (l l^T)^-1 b, where b has one or more columns */
rws_var rws_triangular_solve(rws_path *path, rws_var l, rws_var b, bool transposed); /* l^-1 b, or (l^T)^-1 b */
rws_var rws_log_determinant(rws_path *path, rws_var l); /* log det(l l^T) of a Cholesky factor l */

/* Log-densities of given values, outside of any site. */
rws_var rws_normal_density(rws_path *path, rws_var x, rws_var mean, rws_var sd);
rws_var rws_concrete_density(rws_path *path, rws_var log_s, rws_var log_pi, rws_var temperature);

/* For rws_model.relaxed and RWS_RELAX_DENSITY: the log-density of the relaxed choice, if its log-probabilities are
 * log_pi, under the relaxation of the method: Concrete, or the smoothed bits of dvae. */
rws_var rws_relaxed_density(rws_path *path, rws_var log_s, rws_var log_pi, rws_var temperature);

/* The same value as a constant: gradients stop here. */
rws_var rws_detach(rws_path *path, rws_var a);

/* Layers. A layer over several inputs takes them as parts: the product of a part that depends on the datum alone is
 * then computed once per datum, not once per particle. */
rws_var rws_linear(rws_path *path, const rws_layer *l, rws_var x);
rws_var rws_linear_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n) RWS_READS(3, 4);
rws_var rws_mlp(rws_path *path, const rws_layer *l, rws_var x);
rws_var rws_mlp_parts(rws_path *path, const rws_layer *l, const rws_var *parts, int n) RWS_READS(3, 4);
rws_var rws_rnn(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h); /* tanh */
rws_var rws_gru(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h);
rws_var rws_embedding(rws_path *path, const rws_layer *l, rws_var index);

/* The state h after one more input; *c, the memory of the cell, is replaced by the next one. */
rws_var rws_lstm(rws_path *path, const rws_layer *l, const rws_var *parts, int n, rws_var h, rws_var *c);

/* All items of a series of the datum, and their number *n. The path splits where lengths differ; what is made of the
 * items is computed for the data of this path alone. For the guide.
 *
 *     int     n;
 *     rws_var *x = rws_items(path, "x", &n), *h = (rws_var *)rws_alloc(path, n * sizeof *h);
 *     rws_var  all = rws_bidirectional(path, reader, x, n, h);       2 * n_hidden numbers about the whole series
 *     for (int t = 0; t < n; t++) rws_categorical(path, "z", rws_linear(path, to_z, h[t]));      … and about each item
 */
static inline rws_var *rws_items(rws_path *path, const char *series, int *n)
{
    *n = rws_branch(path, rws_length(path, series));
    rws_var *items = (rws_var *)rws_alloc(path, (size_t)(*n + 1) * sizeof *items);
    for (int t = 0; t < *n; t++) items[t] = rws_item(path, series, t);
    return items;
}

/* Reads n items from the last to the first with a gru. State t, of n + 1, is about items t … n - 1; state n is zeros.
 *
 *     rws_var *x = rws_items(path, "x", &n), *later = rws_gru_backwards(path, reader, x, n);
 *     for (int t = 0; t < n; t++) rws_categorical(path, "z", rws_linear(path, to_z, later[t]));
 */
static inline rws_var *rws_gru_backwards(rws_path *path, const rws_layer *l, const rws_var *items, int n)
{
    rws_var *h = (rws_var *)rws_alloc(path, (size_t)(n + 1) * sizeof *h);
    h[n] = rws_zeros(path, rws_layer_picture(l, NULL, NULL, NULL));
    for (int t = n; t-- > 0;) h[t] = rws_gru(path, l, &items[t], 1, h[t + 1]);
    return h;
}

/* Reads n items from both ends. Returns the last state of each direction, one behind the other, zeros if n is 0. Unless
 * `states` is NULL, states[t] becomes the two states after item t, as in PyTorch's output. */
rws_var rws_bidirectional(rws_path *path, const rws_layer *l, const rws_var *items, int n, rws_var *states);

/* Layers over n items, which may be those of a series or of a set; n may differ from datum to datum. A part holds one
 * item, or several one behind the other. The guide of a datum that is a set of points:
 *
 *     rws_var *x = rws_items(path, "x", &n);
 *     rws_var  all = rws_set_encoder(path, encoder, x, n), about_0 = rws_attention(path, attention, all, x, n);
 *
 * Without items, attention has values of zero, and an encoder gives zeros. */
rws_var rws_attention(rws_path *path, const rws_layer *l, rws_var query, const rws_var *items, int n);
rws_var rws_set_encoder(rws_path *path, const rws_layer *l, const rws_var *items, int n);

/* The mean of n values, weighted by softmax(query . key / sqrt(dim)), without parameters: the attention of one head. A
 * key has as many numbers as the query. n is at least 1. */
rws_var rws_dot_attention(rws_path *path, rws_var query, const rws_var *keys, const rws_var *values, int n);

rws_var rws_layer_norm(rws_path *path, const rws_layer *l, rws_var x);
rws_var rws_residual_mlp(rws_path *path, const rws_layer *l, const rws_var *parts, int n);

/* Pictures of several channels, one behind the other. rws_pool2d makes one number of each window of size x size
 * numbers. */
rws_var rws_conv2d(rws_path *path, const rws_layer *l, rws_var pictures);
rws_var rws_conv_transpose2d(rws_path *path, const rws_layer *l, rws_var pictures);
rws_var rws_pool2d(rws_path *path, rws_var pictures, int channels, int rows, int size, rws_pooling how);

/* Pictures, row by row. `where` is (scale x, scale y, shift x, shift y) of a window in a picture whose sides are at -1
 * and 1. Bilinear; beyond its border, over one point, a picture fades to zero. */
rws_var rws_attend(rws_path *path, rws_var image, int rows, int cols, rws_var where, int out_rows,
                   int out_cols); /* read */
rws_var rws_place(rws_path *path, rws_var glimpse, int rows, int cols, rws_var where, int out_rows,
                  int out_cols);                                                                  /* write */
rws_var rws_cover(rws_path *path, int rows, int cols, rws_var where, int out_rows, int out_cols); /* write ones */

/* ----------------------------------------------------------------------------------------------------------- metrics
 * */

typedef struct rws_eval rws_eval; /* one evaluation of a run; lives during the functions below only */

/* How many test data there are, and a field of all of them (n x dim); NULL if the model has no such field. */
int          rws_eval_size(const rws_eval *e);
const float *rws_eval_field(const rws_eval *e, const char *field);

/* Writes the mean of f over the test data: of an exact log p(x), say. f gets the fields of one datum, in the order of
 * declaration. RWS_BROKEN if f returns NaN. */
typedef double rws_datum_value(const float *const *fields, const void *context);
rws_status     rws_eval_mean(rws_eval *e, rws_datum_value *f, const void *context, double *value, rws_error *err);

/* Writes the mean over the test data of log p(x), exactly: the sum over all choices that a particle of the guide can
 * make, each of them once. Every latent site must be a choice (rws_categorical, rws_choose, rws_flip, or rws_bernoulli
 * of one logit), and there may be about a million combinations (RWS_MAX_PATHS); RWS_BAD_INPUT otherwise. What the
 * guide's networks say does not matter, and is not computed unless the guide branches on it. */
rws_status rws_eval_enumerate(rws_eval *e, double *value, rws_error *err);

/* RWS_STOPPED if the user wants training to stop (Ctrl-C): for a metric of your own that computes for more than a
 * second without the functions below, which ask by themselves. Return the status. */
rws_status rws_eval_check_stop(rws_eval *e, rws_error *err);

/* Runs f for `n` data whose fields are given in the order of declaration, and writes the value that it returns, n x
 * dim, to out. f may look at the data but visits no sites. Fails like a pass: RWS_BAD_INPUT, RWS_BROKEN,
 * RWS_NO_MEMORY. */
rws_status rws_eval_compute(rws_eval *e, rws_var (*f)(rws_path *path, const void *state), int n,
                            const float *const *fields, float *out, rws_error *err);

/* Writes the mean of log q over n samples of `program`, which takes the place of the model: the true one, where it is
 * known. Each evaluation has samples of its own. */
rws_status rws_eval_dream(rws_eval *e, void (*program)(rws_path *path, const void *state), int n, double *log_q,
                          rws_error *err);

/* One particle of a test datum, and what its programs have reported. Lives during the function that it is given to. */
typedef struct rws_particle rws_particle;

/* A field of its datum; a value and a text that it reported under a name, the first at time 0. NULL: there is none. */
const float *rws_particle_datum(const rws_particle *p, const char *field);
const float *rws_particle_report(const rws_particle *p, const char *name, int time);
const char  *rws_particle_text(const rws_particle *p, const char *name, int time);

/* Draws K particles of the guide for one datum, whose fields are given in the order of declaration, and hands them to
 * `each`. Particles that made the same choices may come as one, with their number as `count`. An iteration has the same
 * draws whenever it is evaluated. */
rws_status rws_eval_guess(rws_eval *e, const float *const *fields, int K,
                          void (*each)(const rws_particle *p, int count, void *context), void *context, rws_error *err);

/* A metric is one number of an evaluation. Exactly one of the three functions is given. */
typedef struct {
    const char *name; /* in the table, in --json and in the store; not one that the library adds */
    const char *help;
    /* Measures the number itself. NaN: there is none. */
    rws_status (*measure)(rws_eval *e, const void *state, double *value, rws_error *err);
    /* A number of a particle, whose mean over the test data is taken by importance weights: the posterior's mean. */
    double (*posterior)(const rws_particle *p, const void *state);
    /* The same with equal weights: the guide's mean. */
    double (*guide)(const rws_particle *p, const void *state);
} rws_metric;

/* A list of labelled numbers that no curve can show: a distribution, the trees that a guide likes best. It is measured
 * at the first, the middle and the last evaluation of a run that has a folder, and kept in its store. */
typedef struct {
    const char *name;
    const char *help;
    rws_status (*measure)(rws_eval *e, const void *state, rws_error *err); /* calls rws_eval_show for each number */
} rws_snapshot;

/* Adds a number to the snapshot that is being measured, with a label ("NP -> NP PP") or NULL. The label is copied. */
void rws_eval_show(rws_eval *e, const char *label, double value);

/* ------------------------------------------------------------------------------------------------------------- model
 * */

/* The term in the place of log p of a choice where the choice is a point on the simplex. */
typedef enum {
    RWS_RELAX_ARGMAX,  /* log p of the largest component's category */
    RWS_RELAX_SOFT,    /* log of the mean of p under the point */
    RWS_RELAX_DENSITY, /* the density of the relaxed choice with the prior's logits: rws_relaxed_density */
} rws_relaxation;

/* How a run of this model is trained unless the user says otherwise. Zeros mean the library's own defaults. */
typedef struct {
    int         batch, particles, iterations, eval_every;
    int         n_test;         /* test data of an evaluation */
    const char *optimiser, *lr; /* "adam", "1e-3"; lr may be a schedule, see `rws train --help` */
    int         shards;         /* fixed parts of a batch that threads share; the numbers depend on it */
    int         at_once;  /* particles in memory at a time, unless a datum has more; the numbers depend on it. 0: all */
    bool        grad_std; /* also measure the spread of the guide's gradient */
    bool        impossible; /* an iteration in which all particles of all data are impossible is no failure */
    rws_limits  limits;     /* of its programs */
    int         pictures;   /* test data whose pictures (rws_report) a run's folder gets at every evaluation */
} rws_defaults;

/* A picture that a user asks about, row by row: 0 is black and 255 white. */
typedef struct {
    const char    *name; /* of its file, for messages */
    int            wide, high;
    const uint8_t *grey;
} rws_grey;

/* Takes one line of an exact posterior: particles that report `text` under `name` have this probability. */
typedef void rws_teller(void *context, const char *name, const char *text, double probability);

/* A model. `const rws_model rws_user_model = {…};` in a shared object is all that `rws train ./it.so` needs; a program
 * of your own passes its model to rws_trainer_new (rws_train.h).
 *
 * Functions that get `const void *state` may be called by several threads at once. A function that fails writes a
 * message with rws_fail; members may be NULL where that is said.
 */
typedef struct rws_model {
    int                 abi; /* RWS_ABI */
    const char         *name, *help;
    const rws_setting  *settings;  /* these three end with a NULL name, and may be NULL */
    const rws_metric   *metrics;   /* the library adds ess, and log_evidence and kl if there is no log_evidence */
    const rws_snapshot *snapshots; /* lists of numbers */
    rws_defaults        defaults;

    /* Declares fields, parameters and layers, and leaves the constant state of the programs in *state, which may stay
     * NULL. `random` is for parameters that start from values of the model's own. It is called once for each trainer
     * and each posterior, so that state belongs in *state and not in static variables. */
    rws_status (*setup)(rws_setup *s, rws_random *random, void **state, rws_error *err);

    /* Gives back what setup took by other means than rws_setup_alloc. Called if *state is not NULL, also after a setup
     * that failed. May be NULL. */
    void (*release)(void *state);

    /* Fills the declared fields of data first … first + n - 1; fields[i] is n x dim, in the order of declaration. A number
     * that is left out is an error, but for those behind the last item of a series.
     * Training data may be drawn fresh from `random`, which is another stream in every iteration; for test data it is
     * the same stream in every run. */
    rws_status (*data)(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err);

    /* The two programs. A guide may be missing (NULL): then the model's program also runs in its place, where every latent
     * site draws from the model's own family there, with parameters moved by a network that sees the data and the choices
     * so far, and every observed site returns the datum. */
    void (*guide)(rws_path *path, const void *state);
    void (*model)(rws_path *path, const void *state);

    /* For rebar, relax, muprop, concrete and dvae, which apply to a model with a single categorical site that never
     * branches on it: log p(s, x) at a relaxed choice, where log_s is the log of a point on the simplex. Needs
     * rws_setup_relaxed. May be NULL. */
    rws_var (*relaxed)(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how);

    /* For method em: one exact step of expectation and maximisation over all training data, which overwrites theta
     * (rws_param_values). Data that are drawn fresh are n_fresh draws from `random`, which is the same stream in every
     * iteration. May be NULL: the model cannot sum over its choices. */
    rws_status (*em)(const void *state, int n_fresh, rws_random *random, rws_error *err);

    /* For questions: the datum that a text stands for; fields[i] has dim numbers, zeroed. May be NULL. */
    rws_status (*read)(const void *state, const char *text, float *const *fields, rws_error *err);

    /* The exact posterior of a datum: tells the probability of every text that a particle may report under a name and
     * that is possible, and writes log p(x). If it is not known for this datum, the function writes NaN and tells
     * nothing. May be NULL: the model has no exact posterior. */
    rws_status (*posterior)(const void *state, const float *const *fields, rws_teller *tell, void *context,
                            double *log_evidence, rws_error *err);

    /* "name=value": a setting that holds whenever a trained run is asked, whatever it was trained with. May be NULL. */
    const char *ask_setting;

    /* For questions: the datum that a picture stands for, where a user names a PNG. May be NULL. */
    rws_status (*see)(const void *state, const rws_grey *picture, float *const *fields, rws_error *err);

    /* The host of another language that the programs are written in (rws_train.h). NULL: they are C. */
    const struct rws_host *host;
} rws_model;

/* The model whose setup this is, for a setup function that serves several models. */
const rws_model *rws_setup_model(const rws_setup *s);

/* Declares the site that rws_model.relaxed is about, during setup. */
void rws_setup_relaxed(rws_setup *s, const char *site, int n_categories);

/* The name under which a shared object has its model; the library itself has none. Declared here so that it is visible
 * to the program that loads the shared object, however that was compiled, also as C++. */
extern const rws_model rws_user_model;

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
