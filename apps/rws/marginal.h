/* marginal.h - the posterior of each random choice by itself, as lines.
 *
 *     rws_marginals -> [marginal] -> infer
 */
#ifndef RWS_RWS_MARGINAL_H
#define RWS_RWS_MARGINAL_H

#include "rws_train.h"

/* Prints a line for each choice: site:visit, or the site alone for visit 0. Values with a probability below 0.0005 are left
 * out. The question must have asked for particles. */
void rws__marginals_print(const rws_answers *a);

/* Draws the probabilities of each value of a choice, under the posterior and the guide, as bars in the colour of the method. False,
 * with nothing drawn, if no choice has few values. */
bool rws__marginals_draw(const rws_answers *a, const char *method, const char *title, const char *path,
                         rws_status *status, rws_error *err);

#endif
