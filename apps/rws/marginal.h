/* marginal.h - the posterior of each random choice by itself, as lines and as JSON.
 *
 *     ask/marginal.h -> [marginal] -> infer
 */
#ifndef RWS_RWS_MARGINAL_H
#define RWS_RWS_MARGINAL_H

#include "rws_train.h"

#include <jansson.h>

/* Prints a line for each choice: site:visit, or the site alone for visit 0. Values with a probability below 0.0005 are
 * left out. The question must have asked for particles. */
void rws_marginals_print(const rws_answers *a);

/* A list of objects as in the answers of rws serve: site, visit, posterior and guide (probabilities that the site is
 * visited), and values, or mean and sd. */
json_t *rws_marginals_describe(const rws_answers *a);

#endif
