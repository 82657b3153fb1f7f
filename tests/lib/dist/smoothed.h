/* smoothed.h - a plain twin of the smoothed bits of dvae, straight from the densities in the head of dist/smoothed.c. */
#ifndef RWS_TESTS_SMOOTHED_H
#define RWS_TESTS_SMOOTHED_H

#include "dist/dist.h"

/* The distribution function and the density, at zeta = sigmoid(y), of a bit that is 1 with probability q. The density of a spike
 * at y = -100 is the probability of zeta = 0. */
double smoothed_below(rws_smoothing how, double b, double q, double y);
double smoothed_density(rws_smoothing how, double b, double q, double y);

/* The y whose distribution function is u, by bisection; -100 within a spike. */
double smoothed_quantile(rws_smoothing how, double b, double q, double u);

/* A choice among C as a stick of such bits, drawn from C - 1 uniforms by the probabilities exp(log_q): writes the point on
 * the simplex to s, and returns the log of its density under exp(log_p) by that under exp(log_q). */
double smoothed_choice(rws_smoothing how, double b, int C, const double *log_q, const double *log_p, const double *u,
                       double *s);

#endif
