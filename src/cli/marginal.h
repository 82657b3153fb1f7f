/* marginal.h - the posterior of each random choice by itself: the sum of the weights of the particles with its value.
 *
 *     weighted particles -> [marginal] -> infer
 *
 * A choice is a site and a visit. Values of one whole number are told by their probabilities, others by mean and standard
 * deviation.
 */
#ifndef RWS_CLI_MARGINAL_H
#define RWS_CLI_MARGINAL_H

#include "rws_train.h"

#include <jansson.h>

/* Prints a line for each choice, as site:visit, the first visit by its site alone; values below 0.0005 are left out. The answers have particles. */
void rws_marginals_print(const rws_answers *a);

/* A list of objects: site, visit, visited (probability that the site is visited), and values, or mean and sd. */
json_t *rws_marginals_describe(const rws_answers *a);

#endif
