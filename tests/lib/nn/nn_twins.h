/* nn_twins.h - what a layer is tested with: the inputs that a program feeds it, the same numbers for its twin, and what
 * twins are made of. test_nn.c runs the subjects of nn_twins_plain.c (layers of vectors) and nn_twins.c (recurrent readers,
 * attention, sets and pictures).
 */
#ifndef RWS_TESTS_NN_TWINS_H
#define RWS_TESTS_NN_TWINS_H

#include "nn/layer.h"

#include "support.h"

#include <string.h>

enum { DATA = 5, PARTICLES = 3, WIDE = 3, WORDS = 4, BITS = 2, MOST = 12, MANY = 30, N_PARAMS = 16, MAX_SUBJECTS = 40 };

typedef struct net net;

typedef struct {
    rws_var x, top, hot, bit, z, word; /* hot and bit are one-hots of WORDS and BITS, word the index behind hot */
} inputs;

typedef struct {
    double x[WIDE], top[WIDE], z[WIDE];
    int    word, bit;
} numbers;

typedef struct {
    const char *name; /* begins with the kind of the layer */
    int         n_out;
    void (*declare)(net *n);
    rws_var (*run)(rws_path *path, const net *n, const inputs *in);
    void (*twin)(const net *n, const numbers *in, double *out);
    bool in_parts; /* takes parts; is also tested with the parts joined to one vector */
    bool once;     /* has no second derivatives, and must say so */
    struct {
        const char *name;
        int         rows, cols;
    } params[N_PARAMS]; /* as PyTorch has them; a bias is one row */
} subject;

struct net {
    const subject *subject;
    bool           joined; /* feed the parts as one vector */
    bool           whole;  /* hand out the layer's output instead of a number */
    rws_setup      setup;
    rws_engine    *engine;
    rws_layer     *layer;
    rws_param     *scale, *top;
    float          x[DATA * WIDE], word[DATA], bit[DATA], mix[MOST];
    double        *theta; /* the parameters, as the twin reads them */
};

extern const subject plain_subjects[]; /* nn_twins_plain.c */
extern const subject more_subjects[];  /* nn_twins.c */
extern const int     n_plain_subjects, n_more_subjects;

/* nn_twins_plain.c: declare n->layer. */
void linear_declare(net *n);
void rnn_declare(net *n);
void gru_declare(net *n);

/* ---- what twins are made of */

static inline const double *values(const net *n, const char *name)
{
    for (int i = 0; i < n->setup.params.n; i++)
        if (strcmp(n->setup.params.list[i]->name, name) == 0) return n->theta + n->setup.params.list[i]->offset;
    fail_msg("%s has no parameter \"%s\"", n->subject->name, name);
    return NULL;
}

/* out = W in + b, by the names of W and b */
static inline void twin_linear(const net *n, const char *weight, const char *bias, const double *in, int n_in,
                               double *out, int n_out)
{
    const double *w = values(n, weight), *b = values(n, bias);
    for (int o = 0; o < n_out; o++) {
        out[o] = b[o];
        for (int i = 0; i < n_in; i++) out[o] += w[o * n_in + i] * in[i];
    }
}

static inline int put(double *to, const double *from, int n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
    return n;
}

static inline int put_hot(double *to, int index, int n)
{
    for (int i = 0; i < n; i++) to[i] = i == index;
    return n;
}

/* The parts as they are, or joined to one. */
static inline int feed(rws_path *path, const net *n, rws_var *parts, int n_parts)
{
    if (!n->joined) return n_parts;
    parts[0] = rws_concat(path, parts, n_parts);
    return 1;
}

#endif
