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
