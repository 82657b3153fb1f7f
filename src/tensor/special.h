/* special.h - special functions in double, accurate to about 1e-13: the derivatives of log Gamma, the incomplete Gamma
 * and Beta functions with their derivatives by the shapes, and the normal distribution's tails.
 *
 * The functions are pure and keep no state.
 */
#ifndef RWS_TENSOR_SPECIAL_H
#define RWS_TENSOR_SPECIAL_H

/* log |Gamma(x)|. Unlike lgamma, it writes no global variable, so threads may share it. */
double rws_lgamma(double x);

/* The derivatives of order 1, 2 and 3 of log Gamma. NaN at 0 and at the negative whole numbers. */
double rws_digamma(double x);
double rws_trigamma(double x);
double rws_tetragamma(double x);

#endif
