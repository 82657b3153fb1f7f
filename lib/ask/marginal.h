/* marginal.h - the distribution of each random choice by itself, under the posterior and under the guide.
 *
 *     weighted particles -> [marginal] -> rws infer, rws serve
 *
 * A choice is a site, a visit and a number of components, since the size of a site may depend on the path. A number that a
 * program reports is described in the same way. A choice of one whole number with few values is described by the probability
 * of each value, any other choice by the mean and the standard deviation of each component.
 */
#ifndef RWS_ASK_MARGINAL_H
#define RWS_ASK_MARGINAL_H

#include "base/arena.h"
#include "rws_train.h"

enum { RWS_MARGINAL_VALUES = 256 }; /* most values of a choice that is described by probabilities */

typedef struct {
    double value, posterior, guide;
} rws_marginal_value;

/* Probabilities of the posterior are NaN if all particles are impossible. */
typedef struct {
    const char         *name;
    bool                report; /* or a site */
    int                 visit, dim;
    double              posterior, guide; /* probability that the site is visited so often, and has this size */
    rws_marginal_value *values;           /* ascending; NULL: mean and sd */
    int                 n_values;
    double             *mean, *sd; /* dim of each, among the particles that visit the site; NaN if none is possible */
} rws_marginal;

/* Borrows the names of the answers. */
typedef struct {
    rws_marginal *list; /* reports first; by name, visit and size */
    int           n;
    rws_arena     memory;
} rws_marginals;

/* The question must have asked for particles. `reports`: numbers that are reported, too. A choice of more than `most_dim`
 * components, such as a picture, is left out. RWS_NO_MEMORY. The caller releases *out, also after a failure. */
rws_status rws_marginals_make(const rws_answers *a, bool reports, int most_dim, rws_marginals *out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_marginals_release(rws_marginals *m); /* a zeroed one is allowed */

#endif
