#include "smoothed.h"

#include <math.h>

#define SPIKE -100.0

static double sigmoid(double y)
{
    return 1 / (1 + exp(-y));
}

double smoothed_below(rws_smoothing how, double b, double q, double y)
{
    const double zeta = sigmoid(y), rest = sigmoid(-y);
    switch (how) {
    case RWS_SMOOTH_SPIKE: return 1 - q + q * (exp(b * zeta) - 1) / (exp(b) - 1);
    case RWS_SMOOTH_POWER: return (1 - q) * pow(zeta, 1 / b) + q * (1 - pow(rest, 1 / b));
    default: return ((1 - q) * (1 - exp(-b * zeta)) + q * (exp(-b * rest) - exp(-b))) / (1 - exp(-b));
    }
}

double smoothed_density(rws_smoothing how, double b, double q, double y)
{
    const double zeta = sigmoid(y), rest = sigmoid(-y), z = (1 - exp(-b)) / b;
    switch (how) {
    case RWS_SMOOTH_SPIKE: return y <= SPIKE ? 1 - q : q * b * exp(b * zeta) / (exp(b) - 1);
    case RWS_SMOOTH_POWER: return ((1 - q) * pow(zeta, 1 / b - 1) + q * pow(rest, 1 / b - 1)) / b;
    default: return ((1 - q) * exp(-b * zeta) + q * exp(-b * rest)) / z;
    }
}

double smoothed_quantile(rws_smoothing how, double b, double q, double u)
{
    double low = -40 * b, high = 40 * b;
    if (how == RWS_SMOOTH_SPIKE && u <= 1 - q) return SPIKE;
    for (int i = 0; i < 70; i++) {
        const double middle = (low + high) / 2;
        if (smoothed_below(how, b, q, middle) < u) low = middle;
        else high = middle;
    }
    return (low + high) / 2;
}

/* The probability of bit i of a stick: that of outcome i, given that it is none before. */
static double bit_of(const double *log_p, int C, int i)
{
    double rest = 0;
    for (int j = i; j < C; j++) rest += exp(log_p[j] - log_p[i]);
    return 1 / rest;
}

double smoothed_choice(rws_smoothing how, double b, int C, const double *log_q, const double *log_p, const double *u,
                       double *s)
{
    double ratio = 0, left = 1;
    for (int i = 0; i + 1 < C; i++) {
        const double q = bit_of(log_q, C, i), p = bit_of(log_p, C, i);
        const double y = smoothed_quantile(how, b, q, u[i]), zeta = 1 / (1 + exp(-y));
        ratio += log(smoothed_density(how, b, p, y)) - log(smoothed_density(how, b, q, y));
        s[i] = left * zeta;
        left *= 1 - zeta;
    }
    s[C - 1] = left;
    return ratio;
}
