/* twins_discrete.c - the twins of the ops of discrete distributions and of their relaxations, and the shapes to try them
 * with. */
#include "twins.h"

#include "base/rng.h"
#include "lib/dist/smoothed.h"

#include <string.h>

static void defend(const row *r)
{
    EACH(log((1 - r->s) * exp(at(r, 0, j)) + r->s / r->dim));
}

static void defend_at(const row *r)
{
    EACH(log((1 - r->s) * (j == (int)r->in[0][0]) + r->s / r->dim));
}

/* The formula of Tucker et al., with probabilities instead of their logarithms. */
static void conditional_gumbel(const row *r)
{
    const int    z = (int)r->in[2][0];
    const double top = log(r->in[1][z]);
    EACH(j == z ? -log(-top) : -log(-log(r->in[1][j]) / exp(r->in[0][j]) - top));
}

static void log_sigmoids(const row *r)
{
    const double p = function(RWS_SIGMOID, r->in[0][0]);
    r->out[0] = log(1 - p);
    r->out[1] = log(p);
}

static uint32_t word_of(double x)
{
    const float as_float = (float)x;
    uint32_t    word;
    memcpy(&word, &as_float, sizeof word);
    return word;
}

static void bernoulli_draw(const row *r)
{
    uint32_t word[5], block[4];
    for (int i = 0; i < 5; i++) word[i] = word_of(r->in[1][i]);
    const rws_key key = {{word[3], word[4]}};
    for (int j = 0; j < r->dim; j++) {
        if (j % 4 == 0) rws__rng_blocks(key, 1, &word[0], &word[1], word[2], (uint32_t)j / 4 + 1, block);
        r->out[j] = (double)rws__unit(block[j % 4]) < (1 - r->s) * function(RWS_SIGMOID, r->in[0][j]) + r->s / 2;
    }
}

/* log p is linear in x, between log p(0) and log p(1). */
static void bernoulli_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double p = function(RWS_SIGMOID, r->in[1][j]), x = r->in[0][j];
        r->out[0] += x * log(p) + (1 - x) * log(1 - p);
    }
}

static void bernoulli_defended(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double p = function(RWS_SIGMOID, r->in[1][j]);
        r->out[0] += log((1 - r->s) * (r->in[0][j] == 1 ? p : 1 - p) + r->s / 2);
    }
}

static void gumbel_draw(const row *r)
{
    EACH(at(r, 0, j) - log(-log(at(r, 1, j))));
}

static void gumbel_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double e = exp(-(r->in[0][j] - r->in[1][j]));
        r->out[0] += log(e * exp(-e));
    }
}

/* Maddison et al., eq. 10, with probabilities and points instead of their logarithms. */
static void concrete_density(const row *r)
{
    const int    C = r->in_dim[1];
    const double tau = r->in[2][0];
    double       front = tgamma(C) * pow(tau, C - 1), total = 0;
    for (int j = 0; j < C; j++) {
        front *= exp(r->in[1][j]) * pow(exp(r->in[0][j]), -tau - 1);
        total += exp(r->in[1][j]) * pow(exp(r->in[0][j]), -tau);
    }
    r->out[0] = log(front / pow(total, C));
}

/* Bits of a stick, with probabilities instead of their logarithms. */
static void stick_logits(const row *r)
{
    for (int i = 0; i < r->dim; i++) {
        double after = 0;
        for (int j = i + 1; j <= r->dim; j++) after += exp(r->in[0][j]);
        r->out[i] = log(exp(r->in[0][i]) / after);
    }
}

static void stick_break(const row *r)
{
    double left = 1;
    for (int i = 0; i + 1 < r->dim; i++) {
        const double zeta = 1 / (1 + exp(-r->in[0][i]));
        r->out[i] = log(left * zeta);
        left *= 1 - zeta;
    }
    r->out[r->dim - 1] = log(left);
}

static void smooth_draw(const row *r)
{
    EACH(smoothed_quantile((rws_smoothing)r->k, r->s, 1 / (1 + exp(-at(r, 0, j))), at(r, 1, j)));
}

static void smooth_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[1]; j++)
        r->out[0] += log(smoothed_density((rws_smoothing)r->k, r->s, 1 / (1 + exp(-r->in[1][j])), r->in[0][j]));
}

static double log_share(double logit)
{
    return log(1 / (1 + exp(-logit)));
}

static void poisson_density(const row *r)
{
    SUM_EACH(log(pow(at(r, 1, j), at(r, 0, j)) * exp(-at(r, 1, j)) / tgamma(at(r, 0, j) + 1)));
}

static void geometric_density(const row *r)
{
    SUM_EACH(log_share(at(r, 1, j)) + at(r, 0, j) * log_share(-at(r, 1, j)));
}

static double log_binomial(double x, double n, double logit)
{
    return log(tgamma(n + 1) / (tgamma(x + 1) * tgamma(n - x + 1))) + x * log_share(logit) +
           (n - x) * log_share(-logit);
}

static void binomial_density(const row *r)
{
    SUM_EACH(at(r, 0, j) > at(r, 1, j) ? -(double)INFINITY : log_binomial(at(r, 0, j), at(r, 1, j), at(r, 2, j)));
}

static double log_negative(double x, double shape, double logit)
{
    return log(tgamma(x + shape) / (tgamma(x + 1) * tgamma(shape))) + x * log_share(logit) + shape * log_share(-logit);
}

static void negative_binomial_density(const row *r)
{
    SUM_EACH(log_negative(at(r, 0, j), at(r, 1, j), at(r, 2, j)));
}

static void categoricals_prepare(const row *r)
{
    for (int at = 0; at < r->dim; at += r->k) {
        double total = 0;
        for (int j = 0; j < r->k; j++) total += exp(r->in[0][at + j]);
        for (int j = 0; j < r->k; j++) r->out[at + j] = r->in[0][at + j] - log(total);
    }
}

/* The probabilities of the trial add up to more than 1, so that every u is below some sum. */
static void categoricals_draw(const row *r)
{
    for (int i = 0; i < r->dim; i++) {
        double below = 0;
        for (int j = 0; j < r->k && below <= r->in[1][i]; j++) {
            r->out[i] = j;
            below += (1 - r->s) * exp(r->in[0][i * r->k + j]) + r->s / r->k;
        }
    }
}

static void categoricals_density(const row *r)
{
    r->out[0] = 0;
    for (int i = 0; i < r->in_dim[0]; i++) r->out[0] += r->in[1][i * r->k + (int)r->in[0][i]];
}

static void categoricals_defended(const row *r)
{
    r->out[0] = 0;
    for (int i = 0; i < r->in_dim[0]; i++)
        r->out[0] += log((1 - r->s) * exp(r->in[1][i * r->k + (int)r->in[0][i]]) + r->s / r->k);
}

static void multinomial_logit(const row *r)
{
    double rest = 0;
    for (int j = r->k + 1; j < r->in_dim[0]; j++) rest += exp(r->in[0][j]);
    r->out[0] = log(exp(r->in[0][r->k]) / rest);
}

/* One thing, which takes all trials. */
static void multinomial_density(const row *r)
{
    r->out[0] = r->in[0][0] == r->in[1][0] ? r->in[0][0] * r->in[2][0] : -(double)INFINITY;
}

static void delta_density(const row *r)
{
    SUM_EACH(at(r, 0, j) == at(r, 1, j) ? 0 : -(double)INFINITY);
}

ALONG(poisson, 1)
ALONG(geometric, 1)
ALONG(binomial, 2)
ALONG(negative_binomial, 1)

static void delta_density_tangent(const row *r)
{
    r->out[0] = 0;
}

static void support_fit(const row *r)
{
    r->out[0] = 0;
}

/* Ops of draws, for a geometric distribution: all numbers from 0 on, the mode 0 last. */
static void count_reach(const row *r)
{
    r->out[0] = floor(2 - 22 / log_share(-r->in[0][0])) + 1;
}

static void count_table(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        const int number = (j + 1) % r->dim;
        r->out[j] = number >= floor(2 - 22 / log_share(-r->in[0][0])) + 1
                        ? -(double)INFINITY
                        : log_share(r->in[0][0]) + number * log_share(-r->in[0][0]);
    }
}

static void count_value(const row *r)
{
    r->out[0] = ((int)r->in[0][0] + 1) % r->offset;
}

static const subject list[] = {
    {"defend",
     defend,
     {{2, {{LOG_PROB, 2}}, .s = 0.2f}, {5, {{LOG_PROB, 5}}, .s = 0.01f}, {33, {{LOG_PROB, 33}}, .s = 1}}},
    {"defend_at", defend_at, {{2, ONE(INDEX), .s = 0.2f, .n_index = 2}, {5, ONE(INDEX), .s = 0.01f, .n_index = 5}}},
    {"conditional_gumbel",
     conditional_gumbel,
     {{1, THREE(LOG_PROB, 1, NOISE, 1, INDEX, 1), .s = 1e-6f, .n_index = 1},
      {5, THREE(LOG_PROB, 5, NOISE, 5, INDEX, 1), .s = 1e-6f, .n_index = 5},
      {33, THREE(LOG_PROB, 33, NOISE, 33, INDEX, 1), .s = 1e-6f, .n_index = 33}}},
    {"log_sigmoids", log_sigmoids, {{2, ONE(REAL)}}},
    {"bernoulli_draw",
     bernoulli_draw,
     {{1, TWO(REAL, 1, COUNTER, 5)},
      {5, TWO(REAL, 5, COUNTER, 5), .s = 0.5f},
      {33, TWO(REAL, 33, COUNTER, 5), .s = 0.1f}}},
    {"bernoulli_density",
     bernoulli_density,
     {{1, TWO(BIT, 1, REAL, 1)}, {1, TWO(BIT, 5, REAL, 5)}, {1, TWO(BIT, 33, REAL, 33)}}},
    {"bernoulli_defended",
     bernoulli_defended,
     {{1, TWO(BIT, 1, REAL, 1), .s = 0.5f},
      {1, TWO(BIT, 5, REAL, 5), .s = 0.1f},
      {1, TWO(BIT, 33, REAL, 33), .s = 0.2f}}},
    {"gumbel_draw",
     gumbel_draw,
     {{1, TWO(REAL, 1, NOISE, 1)}, {5, TWO(REAL, 5, NOISE, 5), .s = 1e-6f}, {33, TWO(REAL, 33, NOISE, 33)}}},
    {"gumbel_density",
     gumbel_density,
     {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 33, REAL, 33)}}},
    {"concrete_density",
     concrete_density,
     {{1, THREE(LOG_PROB, 2, LOG_PROB, 2, POSITIVE, 1)},
      {1, THREE(LOG_PROB, 5, LOG_PROB, 5, POSITIVE, 1)},
      {1, THREE(LOG_PROB, 17, LOG_PROB, 17, POSITIVE, 1)}}},
    {"stick_logits", stick_logits, {{1, {{LOG_PROB, 2}}}, {4, {{LOG_PROB, 5}}}, {16, {{LOG_PROB, 17}}}}},
    {"stick_break", stick_break, {{2, {{REAL, 1}}}, {5, {{REAL, 4}}}, {17, {{REAL, 16}}}}},
    {"smooth_draw",
     smooth_draw,
     {{1, TWO(REAL, 1, NOISE, 1), .k = RWS_SMOOTH_SPIKE, .s = 3},
      {5, TWO(REAL, 5, NOISE, 5), .k = RWS_SMOOTH_EXPONENTIAL, .s = 0.5f},
      {5, TWO(REAL, 5, NOISE, 5), .k = RWS_SMOOTH_EXPONENTIAL, .s = 8},
      {5, TWO(REAL, 5, NOISE, 5), .k = RWS_SMOOTH_POWER, .s = 1.5f},
      {5, TWO(REAL, 5, NOISE, 5), .k = RWS_SMOOTH_POWER, .s = 8}},
     .slack = 4},
    {"smooth_density",
     smooth_density,
     {{1, TWO(REAL, 1, REAL, 1), .k = RWS_SMOOTH_SPIKE, .s = 3},
      {1, TWO(REAL, 5, REAL, 5), .k = RWS_SMOOTH_EXPONENTIAL, .s = 0.5f},
      {1, TWO(REAL, 5, REAL, 5), .k = RWS_SMOOTH_EXPONENTIAL, .s = 8},
      {1, TWO(REAL, 5, REAL, 5), .k = RWS_SMOOTH_POWER, .s = 1.5f},
      {1, TWO(REAL, 5, REAL, 5), .k = RWS_SMOOTH_POWER, .s = 8}}},
    {"support_fit", support_fit, {{1, {{REAL, 1}, {REAL, 4}, {REAL, 4}, {REAL, 1}}}}},
    {"count_reach", count_reach, {{1, ONE(REAL), .k = 1}}},
    {"count_table", count_table, {{60, ONE(REAL), .k = 1}}},
    {"count_value", count_value, {{1, TWO(INDEX, 1, REAL, 1), .k = 1, .n_index = 48, .offset = 48}}},
    {"poisson_density",
     poisson_density,
     {{1, TWO(INDEX, 1, POSITIVE, 1), .n_index = 6}, {1, TWO(INDEX, 5, POSITIVE, 5), .n_index = 6}}},
    {"geometric_density",
     geometric_density,
     {{1, TWO(INDEX, 1, REAL, 1), .n_index = 6}, {1, TWO(INDEX, 5, REAL, 1), .n_index = 6}}},
    {"binomial_density", /* values of a FLAG, so that no number of trials is too small for them */
     binomial_density,
     {{1, THREE(FLAG, 1, ONES, 1, REAL, 1)}, {1, THREE(FLAG, 5, ONES, 5, REAL, 1)}}},
    {"negative_binomial_density",
     negative_binomial_density,
     {{1, THREE(INDEX, 1, POSITIVE, 1, REAL, 1), .n_index = 6},
      {1, THREE(INDEX, 5, POSITIVE, 5, REAL, 1), .n_index = 6}}},
    {"categoricals_prepare", categoricals_prepare, {{3, {{REAL, 3}}, .k = 3}, {12, {{REAL, 12}}, .k = 4}}},
    {"categoricals_draw",
     categoricals_draw,
     {{3, TWO(SHARES, 12, NOISE, 3), .k = 4, .s = 0},
      {1, TWO(SHARES, 3, NOISE, 1), .k = 3, .s = 0.5f},
      {2, TWO(SHARES, 6, NOISE, 2), .k = 3, .s = 1}}},
    {"categoricals_density",
     categoricals_density,
     {{1, TWO(INDEX, 1, LOG_PROB, 4), .k = 4, .n_index = 4}, {1, TWO(INDEX, 3, LOG_PROB, 12), .k = 4, .n_index = 4}}},
    {"categoricals_defended",
     categoricals_defended,
     {{1, TWO(INDEX, 3, LOG_PROB, 12), .k = 4, .n_index = 4, .s = 0.25f}}},
    {"multinomial_logit", multinomial_logit, {{1, {{LOG_PROB, 4}}, .k = 1}}},
    {"multinomial_density", /* trials that never add up have no gradient: there is one thing, which never came */
     multinomial_density,
     {{1, THREE(INDEX, 1, INDEX, 1, LOG_PROB, 1), .n_index = 1}}},
    {"delta_density",
     delta_density,
     {{1, TWO(INDEX, 1, INDEX, 1), .n_index = 2}, {1, TWO(INDEX, 3, INDEX, 1), .n_index = 2}}},
    {"poisson_density_tangent",
     poisson_density_tangent,
     {{1, {{INDEX, 1}, {POSITIVE, 1}, {ZERO, 1}, {SMALL, 1}}, .n_index = 4},
      {1, {{INDEX, 3}, {POSITIVE, 3}, {ZERO, 3}, {SMALL, 3}}, .n_index = 4}},
     20},
    {"geometric_density_tangent",
     geometric_density_tangent,
     {{1, {{INDEX, 1}, {REAL, 1}, {ZERO, 1}, {SMALL, 1}}, .n_index = 4},
      {1, {{INDEX, 3}, {REAL, 3}, {ZERO, 3}, {SMALL, 3}}, .n_index = 4}},
     20},
    {"binomial_density_tangent",
     binomial_density_tangent,
     {{1, {{FLAG, 1}, {ONES, 1}, {REAL, 1}, {ZERO, 1}, {ZERO, 1}, {SMALL, 1}}},
      {1, {{FLAG, 3}, {ONES, 3}, {REAL, 1}, {ZERO, 3}, {ZERO, 3}, {SMALL, 1}}}},
     20},
    {"negative_binomial_density_tangent",
     negative_binomial_density_tangent,
     {{1, {{INDEX, 1}, {POSITIVE, 1}, {REAL, 1}, {ZERO, 1}, {SMALL, 1}, {SMALL, 1}}, .n_index = 4},
      {1, {{INDEX, 3}, {POSITIVE, 3}, {REAL, 1}, {ZERO, 3}, {SMALL, 3}, {SMALL, 1}}, .n_index = 4}},
     20},
    {"delta_density_tangent",
     delta_density_tangent,
     {{1, {{INDEX, 1}, {INDEX, 1}, {ZERO, 1}, {ZERO, 1}}, .n_index = 4},
      {1, {{INDEX, 3}, {INDEX, 3}, {ZERO, 3}, {ZERO, 3}}, .n_index = 4}},
     20},
};
const subject_table discrete_twins = {list, COUNT(list)};
