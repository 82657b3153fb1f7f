/* special.c - special functions in double. */
#include "tensor/special.h"

#include <math.h>
#include <stdbool.h>

double rws_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* ---- derivatives of log Gamma: the recurrence moves x up to FAR, where the asymptotic series of Abramowitz and Stegun
 * (6.3.18, 6.4.12, 6.4.14) is accurate to 1e-15; a reflection turns negative arguments into positive ones. */

#define FAR 12

static bool pole(double x)
{
    return x <= 0 && x == floor(x);
}

double rws_digamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) return rws_digamma(1 - x) - M_PI / tan(M_PI * (x - floor(x)));
    for (; x < FAR; x++) below += 1 / x;
    const double z = 1 / (x * x);
    return log(x) - 0.5 / x - below -
           z * (1 / 12.0 - z * (1 / 120.0 - z * (1 / 252.0 - z * (1 / 240.0 - z * (1 / 132.0 - z * 691 / 32760)))));
}

double rws_trigamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) {
        const double s = sin(M_PI * (x - floor(x)));
        return M_PI * M_PI / (s * s) - rws_trigamma(1 - x);
    }
    for (; x < FAR; x++) below += 1 / (x * x);
    const double z = 1 / (x * x);
    return below + 0.5 * z +
           (1 + z * (1 / 6.0 - z * (1 / 30.0 - z * (1 / 42.0 - z * (1 / 30.0 - z * (5 / 66.0 - z * 691 / 2730)))))) / x;
}

double rws_tetragamma(double x)
{
    double below = 0;
    if (pole(x)) return NAN;
    if (x < 0) {
        const double s = sin(M_PI * (x - floor(x))), c = cos(M_PI * (x - floor(x)));
        return rws_tetragamma(1 - x) - 2 * M_PI * M_PI * M_PI * c / (s * s * s);
    }
    for (; x < FAR; x++) below += 2 / (x * x * x);
    const double z = 1 / (x * x);
    return -below -
           z * (1 + 1 / x + z * (0.5 - z * (1 / 6.0 - z * (1 / 6.0 - z * (3 / 10.0 - z * (5 / 6.0 - z * 691 / 210))))));
}
