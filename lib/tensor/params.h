/* params.h - every number that is learned, in one flat vector.
 *
 * A parameter is a named matrix in that vector; the vector is ordered by group (theta, phi, control, baseline), so that
 * a gradient, an optimiser's state or a checkpoint is the same vector with other numbers in it. Weights of layers also
 * have a transposed copy, refreshed after each step, because products with it are the fast ones.
 */
#ifndef RWS_TENSOR_PARAMS_H
#define RWS_TENSOR_PARAMS_H

#include "rws.h"

/* Weights of more numbers than this have no transposed copy: products with them are as fast without one. */
#define RWS_MAX_TRANSPOSED ((size_t)1 << 18)

struct rws_param {
    char      name[96];
    rws_group group;
    int       number; /* its place in the order of declaration */
    int       rows, cols;
    int       kernel;        /* of a convolution, for rws__param_shape; else 0 */
    size_t    offset;        /* in the flat vectors, after rws__params_pack */
    size_t    transposed_at; /* in the transposed vector; meaningful only if `transposed` */
    bool      transposed;
    bool      unused; /* it may have no gradient: rws_setup_unused */
    float    *value;  /* its own memory until pack, then into rws_params.value */
};

typedef struct {
    rws_param **list; /* in the order of declaration */
    int         n, capacity;
    size_t      size, transposed_size;
    size_t      first[RWS_GROUPS + 1]; /* group g is [first[g], first[g + 1]) of the flat vectors */
    float      *value;
    float      *transposed;
} rws_params;

/* A zeroed rws_params is a valid empty one. */
void rws__params_release(rws_params *p);

/* A new zeroed parameter, which lives as long as the rws_params. Returns NULL if the name is taken, or without memory.
 * */
rws_param *rws__params_add(rws_params *p, rws_group group, const char *name, int rows, int cols);

/* Lays out all parameters in the flat vector; no parameter can be added afterwards, unless they are unpacked. Returns false without memory: then
 * nothing has changed. */
bool rws__params_pack(rws_params *p);

/* Undoes rws__params_pack, so that parameters can be added. Returns false without memory: then nothing has changed. */
bool rws__params_unpack(rws_params *p);

/* Writes the transposed copies of the weights of some groups (bit g: group g), from a flat vector that is laid out like
 * value: value itself, or a direction. */
void rws__params_transpose(const rws_params *p, unsigned groups, const float *from, float *to);

/* The same for rows first … end - 1 of one parameter. */
void rws__param_transpose(const rws_param *p, int first, int end, const float *from, float *to);

static inline size_t rws__param_size(const rws_param *p)
{
    return (size_t)p->rows * (size_t)p->cols;
}

/* The sizes of a parameter as PyTorch has them, in `shape`; returns how many there are. */
enum { RWS_PARAM_DIMS = 4 };
int rws__param_shape(const rws_param *p, int shape[RWS_PARAM_DIMS]);

#endif
