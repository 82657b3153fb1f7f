/* twins.h - a plain twin in double for every op of every folder, and the shapes to try it with.
 *
 * A twin computes one row, straight from the definition.
 */
#ifndef RWS_TESTS_TWINS_H
#define RWS_TESTS_TWINS_H

#include "support.h"

#include "tensor/op.h"

/* ---- shapes: what a trial makes inputs of */

typedef enum {
    NONE,       /* ends the list of inputs */
    ABSENT,     /* an input without data */
    REAL,       /* -2 … 2 */
    SMALL,      /* -0.5 … 0.5 */
    INNER,      /* -0.9 … 0.25, between LOW and POSITIVE */
    LOW,        /* -2 … -1 */
    POSITIVE,   /* 0.3 … 2 */
    BIT,        /* 0 or 1 */
    FLAG,       /* 0 or 1; has no gradient */
    LOG_PROB,   /* -4 … -0.1 */
    FOR_X,      /* where the function of the trial is smooth */
    FOR_Y,      /* a value of that function at such a point */
    NOISE,      /* 0.05 … 0.95; has no gradient */
    COUNTER,    /* words of a counter in place of floats; has no gradient */
    INDEX,      /* 0 … n_index - 1; has no gradient */
    SOFTMAX,    /* the softmax of input 2, or of the sum of inputs 2 and 3 if they are equally long; has no gradient */
    WHERE,      /* two scales and two shifts, so that no point falls on a line of the source's grid */
    STEEP,      /* -30 … 30 */
    INSIDE,     /* 0.05 … 0.95 */
    ONES,       /* 1, 2 or 3; has no gradient */
    COVARIANCE, /* a positive definite matrix; above the diagonal are numbers that no op reads */
    FACTOR,     /* a lower triangular matrix; above the diagonal likewise */
    ZERO,       /* 0; has no gradient */
    SHARES,     /* numbers above 0 that add up to 1 in each row */
} kind;

typedef struct {
    int dim;
    struct {
        kind kind;
        int  dim;
    } in[RWS_OP_INPUTS];
    int   k;
    float s, t;
    int   rows, cols, offset; /* of the weight, if there is one */
    bool  bias;
    int   n_bias; /* numbers of the bias; 0: as many as the weight has rows */
    int   n_index;
    bool  each_function; /* k is every rws_function up to RWS_LOG in turn */
    bool  each_map;      /* k is every rws_function after RWS_LOG in turn */
    int   source_cols;   /* of a picture that is read or placed; it has k rows */
} shape;

/* ---- twins */

/* What a twin sees: one row of each input. */
typedef struct {
    int           dim, n_in, k, cols, offset;
    double        s, t;
    const double *in[RWS_OP_INPUTS];
    int           in_dim[RWS_OP_INPUTS];
    const double *w, *b;
    double       *out;
} row;

#define MAX_SHAPES 12

typedef struct {
    const char *name;
    void (*twin)(const row *r);
    shape  shapes[MAX_SHAPES];
    double slack; /* factor of the tolerance, for ops whose terms cancel within a row; 0: 1 */
} subject;

typedef struct {
    const subject *list;
    int            n;
} subject_table;

/* One for each file twins_….c. */
extern const subject_table tensor_twins, matrix_twins, discrete_twins, continuous_twins, vision_twins;

extern const subject_table *const subject_tables[]; /* all of them, then NULL */

const subject *subject_of(const char *name); /* NULL: there is none */

/* ---- what twins are made of */

/* Number j of input s; an input of one number has it everywhere. */
static inline double at(const row *r, int s, int j)
{
    return r->in[s][r->in_dim[s] == 1 ? 0 : j];
}

/* Numbers of the longest input. */
static inline int widest(const row *r)
{
    int n = 1;
    for (int s = 0; s < r->n_in; s++)
        if (r->in_dim[s] > n) n = r->in_dim[s];
    return n;
}

#define EACH(expression) \
    for (int j = 0; j < r->dim; j++) r->out[j] = (expression)

#define SUM_EACH(expression) \
    r->out[0] = 0;           \
    for (int j = 0; j < widest(r); j++) r->out[0] += (expression)

double function(int f, double x); /* an rws_function */
double slope_of_lgamma(double x);

/* Where canvas point j lies in a glimpse, and glimpse point j in an image. */
double written(int j, int n, int n_source, double scale, double shift);
double seen(int j, int n, int n_source, double scale, double shift);

float float_of(uint32_t word); /* the float whose bits are the word */

/* The derivative of a twin along directions, which are its second half of inputs; inputs before `first` do not move. The
 * error of the difference is of the order h^4. */
void along(const row *r, void (*twin)(const row *r), int first);

/* The twin of the tangent of a density. */
#define ALONG(name_, first_)                          \
    static void name_##_density_tangent(const row *r) \
    {                                                 \
        along(r, name_##_density, first_);            \
    }

/* ---- inputs of shapes */

#define ONE(a)   \
    {            \
        {        \
            a, 1 \
        }        \
    }
#define TWO(a, n, b, m) \
    {                   \
        {a, n},         \
        {               \
            b, m        \
        }               \
    }
#define THREE(a, n, b, m, c, o) \
    {                           \
        {a, n}, {b, m},         \
        {                       \
            c, o                \
        }                       \
    }

#endif
