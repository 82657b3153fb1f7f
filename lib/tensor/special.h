/* special.h - special functions in double, accurate to about 1e-13: the derivatives of log Gamma, the incomplete Gamma
 * and Beta functions with their derivatives by the shapes, and the normal distribution's tails.
 *
 * The functions are pure and keep no state.
 */
#ifndef RWS_TENSOR_SPECIAL_H
#define RWS_TENSOR_SPECIAL_H

/* log |Gamma(x)|. Unlike lgamma, it writes no global variable, so threads may share it. */
double rws__lgamma(double x);

/* The derivatives of order 1, 2 and 3 of log Gamma. NaN at 0 and at the negative whole numbers. */
double rws__digamma(double x);
double rws__trigamma(double x);
double rws__tetragamma(double x);

/* Log-densities of a binomial and of a Poisson by C. Loader, Fast and accurate computation of binomial probabilities
 * (2000): no two large numbers are subtracted, so that they keep their digits where parameters are 1e6 or 1e12. Numbers
 * need not be whole.
 *
 *     k of n, where p + q = 1:   log (Gamma(n + 1) / Gamma(k + 1) / Gamma(n - k + 1) p^k q^(n - k))
 *     x by its mean:             log (mean^x e^-mean / Gamma(x + 1))
 */
double rws__log_binomial(double k, double n, double p, double q);
double rws__log_poisson(double x, double mean);

/* Densities whose parameters are above this are computed by the two functions above. */
#define RWS_LARGE 1e6

/* log Q(z), where Q is the probability that a standard normal is above z; accurate in both tails. */
double rws__log_tail(double z);

/* The z >= 0 with log Q(z) = log_q, for log_q <= log(1/2). */
double rws__tail_inverse(double log_q);

/* The probability of a Gamma variable of shape a and rate 1 to be below x and above x, and the derivative of the former
 * by a. */
typedef struct {
    double below, above, by_a;
} rws_gamma_cdf;
rws_gamma_cdf rws__gamma_below(double a, double x);

/* The x that such a variable is below with probability u, 0 < u < 1; *by_a becomes the derivative of x by a. */
double rws__gamma_quantile(double a, double u, double *by_a);

/* The same for a Beta variable of shapes a and b. y is 1 - x, which has more digits than x where x is near 1. */
typedef struct {
    double below, above, by_a, by_b;
} rws_beta_cdf;
rws_beta_cdf rws__beta_below(double a, double b, double x, double y);
double       rws__beta_quantile(double a, double b, double u, double *by_a, double *by_b);

#endif
