/* test_dist.c - every family of rws_families, drawn and scored by the engine: the sampler against the density, scores
 * whose mean is known, gradients through a draw against exact ones, and the special draws of defensive, Gumbel and
 * relaxed passes. A family that is in rws_families but not in the table of twins fails.
 *
 * One site "v" is visited by guide and model with the same parameters, which are parameters of the guide, so that their
 * gradients show. Values come out as outputs, one number each. All statistical tests are by the rule of support.h: they
 * fail wrongly in one of 10^12 choices of the seeds.
 */
#include "dist/dist.h"
#include "tensor/gemm.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

#define WIDEST 40 /* numbers in a parameter */
#define VALUES 5  /* numbers of a value that are handed out; the output after these is for a choice */
#define OUTCOMES 160
#define USUAL 20000 /* draws of a statistical test, unless it is widened */
#define EULER 0.57721566490153286
#define INF ((double)INFINITY)

/* ---- twins */

/* What the author of a program gives a family. */
typedef struct {
    int    n_a, n_b;
    double a[WIDEST], b[WIDEST];
    int    n_c, n_d;
    double c[WIDEST], d[WIDEST];
} setting;

enum { PARAMETERS = 4 };

static int numbers_in(const setting *s, int k)
{
    return k == 0 ? s->n_a : k == 1 ? s->n_b : k == 2 ? s->n_c : s->n_d;
}

static const double *numbers_of(const setting *s, int k)
{
    return k == 0 ? s->a : k == 1 ? s->b : k == 2 ? s->c : s->d;
}

static double part(const double *v, int n, int j)
{
    return v[n == 1 ? 0 : j];
}

static int longer(const setting *s)
{
    int n = 1;
    for (int k = 0; k < PARAMETERS; k++) n = numbers_in(s, k) > n ? numbers_in(s, k) : n;
    return n;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* log of softmax(a)_j; -inf stays -inf */
static double log_share(const setting *s, int j)
{
    double top = -INF, total = 0;
    for (int i = 0; i < s->n_a; i++) top = fmax(top, s->a[i]);
    for (int i = 0; i < s->n_a; i++) total += exp(s->a[i] - top);
    return s->a[j] - top - log(total);
}

static double categorical_density(const setting *s, const double *x)
{
    return log_share(s, (int)x[0]);
}

static int categorical_outcomes(const setting *s)
{
    return s->n_a;
}

static void number_outcome(const setting *s, int outcome, double *x)
{
    (void)s;
    x[0] = outcome;
}

static double bernoulli_density(const setting *s, const double *x)
{
    double total = 0;
    for (int j = 0; j < s->n_a; j++) { /* log sigmoid of plus or minus the logit */
        const double t = x[j] == 1 ? s->a[j] : -s->a[j];
        total += t > 0 ? -log1p(exp(-t)) : t - log1p(exp(t));
    }
    return total;
}

static int bernoulli_outcomes(const setting *s)
{
    return 1 << s->n_a;
}

static void bits_outcome(const setting *s, int outcome, double *x)
{
    for (int j = 0; j < s->n_a; j++) x[j] = outcome >> j & 1;
}

static double normal_density(const setting *s, const double *x)
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) {
        const double m = part(s->a, s->n_a, j), sd = part(s->b, s->n_b, j);
        total += -(x[j] - m) * (x[j] - m) / (2 * sd * sd) - log(sd) - log(2 * M_PI) / 2;
    }
    return total;
}

static int normal_uniforms(const setting *s, const double *x, double *u)
{
    for (int j = 0; j < longer(s); j++)
        u[j] = 0.5 * erfc(-(x[j] - part(s->a, s->n_a, j)) / part(s->b, s->n_b, j) / sqrt(2));
    return longer(s);
}

static double normal_mean(const setting *s)
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) total += pow(part(s->a, s->n_a, j), 2) + pow(part(s->b, s->n_b, j), 2);
    return total;
}

static double normal_order(const setting *s) /* E log q, apart from a constant */
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) total -= log(part(s->b, s->n_b, j));
    return total;
}

static double uniform_density(const setting *s, const double *x)
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) {
        const double low = part(s->a, s->n_a, j), high = part(s->b, s->n_b, j);
        total += x[j] < low || x[j] > high ? -INF : -log(high - low);
    }
    return total;
}

static int uniform_uniforms(const setting *s, const double *x, double *u)
{
    for (int j = 0; j < longer(s); j++) {
        const double low = part(s->a, s->n_a, j), high = part(s->b, s->n_b, j);
        u[j] = (x[j] - low) / (high - low);
    }
    return longer(s);
}

static double uniform_mean(const setting *s)
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) {
        const double low = part(s->a, s->n_a, j), high = part(s->b, s->n_b, j);
        total += (low * low + low * high + high * high) / 3;
    }
    return total;
}

static double uniform_order(const setting *s)
{
    double total = 0;
    for (int j = 0; j < longer(s); j++) total -= log(part(s->b, s->n_b, j) - part(s->a, s->n_a, j));
    return total;
}

static double gumbel_density(const setting *s, const double *x)
{
    double total = 0;
    for (int j = 0; j < s->n_a; j++) total += s->a[j] - x[j] - exp(s->a[j] - x[j]);
    return total;
}

static int gumbel_uniforms(const setting *s, const double *x, double *u)
{
    for (int j = 0; j < s->n_a; j++) u[j] = exp(-exp(s->a[j] - x[j]));
    return s->n_a;
}

static double gumbel_mean(const setting *s)
{
    double total = 0;
    for (int j = 0; j < s->n_a; j++) total += pow(s->a[j] + EULER, 2) + M_PI * M_PI / 6;
    return total;
}

static double gumbel_order(const setting *s)
{
    (void)s;
    return 0;
}

/* On the simplex: x is the log of a point, a the logits, b the temperature. */
static double concrete_density(const setting *s, const double *x)
{
    const int    C = s->n_a;
    const double tau = s->b[0];
    double       top = -INF, total = 0, sum = lgamma(C) + (C - 1) * log(tau);
    for (int j = 0; j < C; j++) top = fmax(top, log_share(s, j) - tau * x[j]);
    for (int j = 0; j < C; j++) {
        sum += log_share(s, j) - (tau + 1) * x[j];
        total += exp(log_share(s, j) - tau * x[j] - top);
    }
    return sum - C * (top + log(total));
}

/* The difference of two Gumbels is logistic; so is tau (log s_i - log s_j) - (log pi_i - log pi_j), for every pair. */
static int concrete_uniforms(const setting *s, const double *x, double *u)
{
    int n = 0;
    for (int i = 0; i < s->n_a; i++)
        for (int j = 0; j < i; j++) u[n++] = sigmoid(s->b[0] * (x[i] - x[j]) - (s->a[i] - s->a[j]));
    return n;
}

/* E s_0 for two categories: the mean of sigmoid((a_0 - a_1 + L) / tau) over a logistic L, by its quantiles. */
static double concrete_mean(const setting *s)
{
    enum { N = 20000 };
    double total = 0;
    if (s->n_a != 2) return NAN; /* no formula is known */
    for (int i = 0; i < N; i++) {
        const double u = (i + 0.5) / N;
        total += sigmoid((s->a[0] - s->a[1] + log(u / (1 - u))) / s->b[0]) / N;
    }
    return total;
}

/* ---- twins by quadrature: families of independent components, of which only the log-density of one number is written
 * down. Distribution function and means are integrals of it. */

typedef double term(double x, const double *p);

typedef enum {
    NOT_ALONE,  /* the family has twins of its own */
    LINE,       /* all numbers */
    ABOVE_ZERO, /* numbers above 0 */
    UNIT,       /* numbers between 0 and 1 */
    BOUNDED,    /* numbers between parameters c and d; d may be infinite */
    CIRCLE,     /* angles from -pi to pi */
} support;

enum { CELLS = 12000 };

/* A substitution x(t) with t in (first, last), cut into cells, and the integral of the density up to each cell. */
typedef struct {
    term   *term;
    support support;
    double  p[PARAMETERS], centre, first, last, below[CELLS + 1];
} integral;

static double x_of(const integral *q, double t, double *dx)
{
    switch (q->support) {
    case LINE: *dx = cosh(t); return q->centre + sinh(t);
    case ABOVE_ZERO: *dx = exp(t); return exp(t);
    case UNIT: *dx = 1 / (2 + 2 * cosh(t)); return sigmoid(t);
    case BOUNDED:
        if (isinf(q->p[3])) {
            *dx = exp(t);
            return q->p[2] + exp(t);
        }
        *dx = q->p[3] - q->p[2];
        return q->p[2] + t * *dx;
    default: *dx = 1; return t;
    }
}

static double t_of(const integral *q, double x)
{
    switch (q->support) {
    case LINE: return asinh(x - q->centre);
    case ABOVE_ZERO: return log(x);
    case UNIT: return log(x) - log1p(-x);
    case BOUNDED: return isinf(q->p[3]) ? log(x - q->p[2]) : (x - q->p[2]) / (q->p[3] - q->p[2]);
    default: return x;
    }
}

/* The integral of density times f over t in (from, to), by Gauss' rule of three points. f NULL: 1. */
static double piece(const integral *q, double from, double to, double (*f)(double))
{
    static const double at[] = {-0.77459666924148338, 0, 0.77459666924148338},
                        weight[] = {5 / 18.0, 8 / 18.0, 5 / 18.0};
    double total = 0;
    for (int i = 0; i < 3; i++) {
        double       dx;
        const double x = x_of(q, (from + to) / 2 + at[i] * (to - from) / 2, &dx), log_p = q->term(x, q->p);
        if (log_p > -700 && isfinite(dx)) total += weight[i] * (to - from) * exp(log_p) * dx * (f ? f(x) : 1);
    }
    return total;
}

static double edge_of(const integral *q, int cell)
{
    return q->first + (q->last - q->first) * cell / CELLS;
}

static void integral_init(integral *q, const double *p)
{
    static const double ends[][2] = {
        [LINE] = {-40, 40}, [ABOVE_ZERO] = {-90, 60}, [UNIT] = {-60, 36}, [BOUNDED] = {0, 1}, [CIRCLE] = {-M_PI, M_PI}};
    memcpy(q->p, p, sizeof q->p);
    q->first = q->support == BOUNDED && isinf(p[3]) ? -60 : ends[q->support][0];
    q->last = q->support == BOUNDED && isinf(p[3]) ? 20 : ends[q->support][1];
    q->below[0] = 0;
    for (int i = 0; i < CELLS; i++) q->below[i + 1] = q->below[i] + piece(q, edge_of(q, i), edge_of(q, i + 1), NULL);
}

/* Integrals that were computed before are kept. */
static const integral *integral_of(term *f, support support, double centre, const double *p)
{
    enum { KEPT = 16 };
    static integral kept[KEPT];
    static int      next;
    for (int i = 0; i < KEPT; i++)
        if (kept[i].term == f && memcmp(kept[i].p, p, sizeof kept[i].p) == 0) return &kept[i];
    integral *q = &kept[next++ % KEPT];
    q->term = f, q->support = support, q->centre = centre;
    integral_init(q, p);
    return q;
}

static double share_below(const integral *q, double x)
{
    const double t = t_of(q, x), cells = (t - q->first) / (q->last - q->first) * CELLS;
    if (!(cells > 0)) return 0;
    if (cells >= CELLS) return q->below[CELLS];
    return q->below[(int)cells] + piece(q, edge_of(q, (int)cells), t, NULL);
}

static rws_var sum_of_sigmoids(rws_path *path, rws_var v)
{
    return rws_sum(path, rws_apply(path, RWS_SIGMOID, v));
}

static double exponential_term(double x, const double *p)
{
    return x < 0 ? -INF : log(p[0] * exp(-p[0] * x));
}

static double log_normal_term(double x, const double *p)
{
    return x <= 0 ? -INF : -pow((log(x) - p[0]) / p[1], 2) / 2 - log(p[1] * x * sqrt(2 * M_PI));
}

static double laplace_term(double x, const double *p)
{
    return -fabs(x - p[0]) / p[1] - log(2 * p[1]);
}

static double half_normal_term(double x, const double *p)
{
    return x < 0 ? -INF : log(2 / (p[0] * sqrt(2 * M_PI))) - x * x / (2 * p[0] * p[0]);
}

static double gumbel_scale_term(double x, const double *p)
{
    const double z = (x - p[0]) / p[1];
    return -log(p[1]) - z - exp(-z);
}

/* The mass of the interval as an integral of the density relative to that at the bound that is nearest to the mean. */
static double truncated_normal_term(double x, const double *p)
{
    enum { N = 2000 };
    static double known[PARAMETERS], top, mass;
    if (x < p[2] || x > p[3]) return -INF;
    if (memcmp(known, p, sizeof known) != 0) {
        memcpy(known, p, sizeof known);
        const double low = (p[2] - p[0]) / p[1], high = fmin((p[3] - p[0]) / p[1], fmax(low, 0) + 40),
                     h = (high - low) / N;
        const double at = low > 0 ? low : high < 0 ? high : 0;
        top = -at * at / 2;
        mass = 0;
        for (int i = 0; i < N; i++)
            for (int k = -1; k <= 1; k++) { /* Gauss */
                const double z = low + (i + 0.5 + k * 0.5 * 0.77459666924148338) * h;
                mass += h * (k ? 5 : 8) / 18 * exp(-z * z / 2 - top);
            }
    }
    const double z = (x - p[0]) / p[1];
    return -z * z / 2 - top - log(mass * p[1]);
}

static double gamma_term(double x, const double *p)
{
    return x <= 0 ? -INF : p[0] * log(p[1]) + (p[0] - 1) * log(x) - p[1] * x - lgamma(p[0]);
}

static double inverse_gamma_term(double x, const double *p)
{
    return x <= 0 ? -INF : gamma_term(1 / x, p) - 2 * log(x);
}

static double beta_term(double x, const double *p)
{
    if (x <= 0 || x >= 1) return -INF;
    return lgamma(p[0] + p[1]) - lgamma(p[0]) - lgamma(p[1]) + (p[0] - 1) * log(x) + (p[1] - 1) * log1p(-x);
}

static double student_t_term(double x, const double *p)
{
    const double z = (x - p[1]) / p[2];
    return lgamma((p[0] + 1) / 2) - lgamma(p[0] / 2) - log(sqrt(M_PI * p[0]) * p[2]) -
           (p[0] + 1) / 2 * log1p(z * z / p[0]);
}

static double poisson_twin(const setting *s, const double *x)
{
    return x[0] < 0 ? -INF : x[0] * log(s->a[0]) - s->a[0] - lgamma(x[0] + 1);
}

static double geometric_twin(const setting *s, const double *x)
{
    return x[0] < 0 ? -INF : log(sigmoid(s->a[0])) + x[0] * log(sigmoid(-s->a[0]));
}

static double binomial_twin(const setting *s, const double *x)
{
    const double n = s->a[0], k = x[0];
    if (k < 0 || k > n) return -INF;
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(sigmoid(s->b[0])) +
           (n - k) * log(sigmoid(-s->b[0]));
}

static double negative_binomial_twin(const setting *s, const double *x)
{
    const double r = s->a[0], k = x[0];
    if (k < 0) return -INF;
    return lgamma(k + r) - lgamma(k + 1) - lgamma(r) + k * log(sigmoid(s->b[0])) + r * log(sigmoid(-s->b[0]));
}

/* Numbers that are expected less than once in 10^20 draws are left out. */
static int count_outcomes(const setting *s)
{
    (void)s;
    return OUTCOMES;
}

static rws_var sum_of_squares(rws_path *path, rws_var v)
{
    return rws_sum(path, rws_mul(path, v, v));
}

static rws_var first_share(rws_path *path, rws_var v)
{
    return rws_apply(path, RWS_EXP, rws_slice(path, v, 0, 1));
}

#define MAX_SETTINGS 6

static const struct subject {
    const char *name;
    double (*density)(const setting *s, const double *x); /* the log-density */
    /* discrete families: how many outcomes there are, and the value of each */
    int (*outcomes)(const setting *s);
    void (*outcome)(const setting *s, int outcome, double *x);
    /* continuous families: functions of x that are uniform if x has this distribution; `apart`: they are independent */
    int (*uniforms)(const setting *s, const double *x, double *u);
    bool apart;
    double (*mean)(const setting *s); /* E f(x) … */
    rws_var (*f)(rws_path *path, rws_var v);
    double (*order)(
        const setting
            *s);  /* E log q, if the derivative of log q of a draw by the parameters is the same for all draws */
    term   *term; /* independent components: the log-density of one, from which all of the above is computed */
    support support;
    int     centre; /* parameter centre - 1 is where the density has a kink; 0: there is none */
    setting settings[MAX_SETTINGS];
} subjects[] = {
    {"categorical", categorical_density, categorical_outcomes, number_outcome,
     .settings = {{3, 0, {0.3, -1, 1.2}, {0}},
                  {4, 0, {0, -INF, 1, -INF}, {0}},
                  {3, 0, {-INF, -1e30, 1}, {0}},
                  {3, 0, {1e4, 0, 1e4}, {0}},
                  {1, 0, {7}, {0}},
                  {40,
                   0,
                   {0, 1, 2, 0, -1, -2, 0, 1, 1, 1, 0, 0, 2, 0, -4, 0, -INF, 0, 1, 2, 0, 0, 1, 0, 2, 1, 0, 0, -1},
                   {0}}}},
    {"bernoulli", bernoulli_density, bernoulli_outcomes, bits_outcome,
     .settings = {{1, 0, {0.7}, {0}}, {1, 0, {-3}, {0}}, {1, 0, {1e4}, {0}}, {1, 0, {-INF}, {0}}, {1, 0, {INF}, {0}}}},
    {"bernoulli vector", bernoulli_density, bernoulli_outcomes, bits_outcome,
     .settings = {{2, 0, {0.7, -1.5}, {0}},
                  {4, 0, {0, 2, -0.3, -2}, {0}},
                  {3, 0, {1e4, 0, -1e4}, {0}},
                  {5, 0, {0, 1, -1, 0.5, 2}, {0}}}},
    {"normal", normal_density, .uniforms = normal_uniforms, .apart = true, .mean = normal_mean, .f = sum_of_squares,
     .order = normal_order,
     .settings = {{1, 1, {0.5}, {2}},
                  {3, 3, {1, -2, 0}, {0.1, 1, 3}},
                  {4, 1, {0, 1, 2, 3}, {0.5}},
                  {1, 2, {4}, {1, 2}},
                  {5, 5, {1, 2, 3, 4, 5}, {5, 4, 3, 2, 1}}}},
    {"uniform", uniform_density, .uniforms = uniform_uniforms, .apart = true, .mean = uniform_mean, .f = sum_of_squares,
     .order = uniform_order,
     .settings = {{1, 1, {-1}, {3}}, {2, 2, {0, 100}, {1, 101}}, {1, 5, {0}, {1, 2, 3, 0.01, 1}}}},
    {"gumbel", gumbel_density, .uniforms = gumbel_uniforms, .apart = true, .mean = gumbel_mean, .f = sum_of_squares,
     .order = gumbel_order, .settings = {{1, 0, {0}, {0}}, {3, 0, {1, -2, 5}, {0}}}},
    {"concrete", concrete_density, .uniforms = concrete_uniforms, .mean = concrete_mean, .f = first_share,
     .settings = {{2, 1, {0.5, -0.5}, {0.7}}, {2, 1, {-1, 1}, {2}}, {3, 1, {0.3, 0, -1}, {0.7}}}},
    {"exponential", .term = exponential_term, .support = ABOVE_ZERO,
     .settings = {{1, 0, {0.7}, {0}}, {3, 0, {1e-3, 1, 50}, {0}}}},
    {"log-normal", .term = log_normal_term, .support = ABOVE_ZERO,
     .settings = {{1, 1, {0.5}, {0.7}}, {2, 2, {-3, 4}, {2, 0.1}}, {1, 3, {0}, {1, 0.5, 3}}}},
    {"laplace", .term = laplace_term, .support = LINE, .centre = 1,
     .settings = {{1, 1, {0.5}, {0.7}}, {2, 1, {-3, 4}, {0.1}}, {1, 3, {0}, {1, 0.5, 30}}}},
    {"half-normal", .term = half_normal_term, .support = ABOVE_ZERO,
     .settings = {{1, 0, {0.7}, {0}}, {3, 0, {1e-3, 1, 50}, {0}}}},
    {"gumbel with a scale", .term = gumbel_scale_term, .support = LINE, .centre = 1,
     .settings = {{1, 1, {0.5}, {0.7}}, {2, 1, {-3, 4}, {0.3}}, {1, 3, {0}, {1, 0.5, 5}}}},
    {"truncated normal", .term = truncated_normal_term, .support = BOUNDED,
     .settings = {{1, 1, {0.5}, {0.7}, 1, 1, {-0.2}, {2}},
                  {2, 1, {0, 1}, {1}, 2, 2, {1, 0.5}, {1.5, 0.75}},
                  {1, 2, {0}, {1, 0.5}, 1, 1, {6}, {INF}},
                  {1, 1, {-40}, {1}, 1, 1, {0}, {1}},
                  {1, 1, {30}, {0.5}, 1, 1, {-1}, {0}}}},
    {"gamma", .term = gamma_term, .support = ABOVE_ZERO,
     .settings = {{1, 1, {0.7}, {2}}, {2, 1, {0.3, 5}, {0.1}}, {3, 1, {1, 30, 2000}, {10}}}},
    {"inverse gamma", .term = inverse_gamma_term, .support = ABOVE_ZERO,
     .settings = {{1, 1, {0.7}, {2}}, {2, 1, {0.5, 5}, {0.1}}, {1, 2, {30}, {10, 100}}}},
    {"beta", .term = beta_term, .support = UNIT,
     .settings = {{1, 1, {0.7}, {2}}, {2, 2, {0.5, 5}, {0.5, 1}}, {1, 2, {30}, {100, 3}}}},
    {"student t", .term = student_t_term, .support = LINE, .centre = 2,
     .settings = {{1, 1, {1}, {0.5}, 1, 0, {0.7}},
                  {2, 1, {3, 0.8}, {-3}, 1, 0, {2}},
                  {1, 2, {40}, {0, 1}, 2, 0, {1, 0.5}}}},
    {"poisson", poisson_twin, count_outcomes, number_outcome,
     .settings = {{1, 0, {3.5}, {0}}, {1, 0, {60}, {0}}, {1, 0, {1e-3}, {0}}}},
    {"geometric", geometric_twin, count_outcomes, number_outcome,
     .settings = {{1, 0, {0.5}, {0}}, {1, 0, {-0.9}, {0}}, {1, 0, {20}, {0}}}},
    {"binomial", binomial_twin, count_outcomes, number_outcome,
     .settings = {{1, 1, {10}, {0.3}}, {1, 1, {150}, {-1}}, {1, 1, {1}, {2}}, {1, 1, {0}, {0}}}},
    {"negative binomial", negative_binomial_twin, count_outcomes, number_outcome,
     .settings = {{1, 1, {2.5}, {-0.3}}, {1, 1, {0.4}, {-1}}, {1, 1, {50}, {-1}}}},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static const struct subject *subject_of(const char *name)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        if (strcmp(subjects[i].name, name) == 0) return &subjects[i];
    return NULL;
}

static const rws_family *family_of(const char *name)
{
    for (int i = 0; rws_families[i]; i++)
        if (strcmp(rws_families[i]->name, name) == 0) return rws_families[i];
    fail_msg("there is no family %s", name);
    return NULL;
}

/* The parameters of component j of a setting. */
static void parameters_of(const setting *s, int j, double *p)
{
    for (int k = 0; k < PARAMETERS; k++) p[k] = numbers_in(s, k) ? part(numbers_of(s, k), numbers_in(s, k), j) : 0;
}

static const integral *component(const struct subject *b, const setting *s, int j)
{
    double p[PARAMETERS];
    parameters_of(s, j, p);
    return integral_of(b->term, b->support, b->centre ? p[b->centre - 1] : 0, p);
}

static double density_of(const struct subject *b, const setting *s, const double *x)
{
    double total = 0, p[PARAMETERS];
    if (!b->term) return b->density(s, x);
    for (int j = 0; j < longer(s); j++) {
        parameters_of(s, j, p);
        total += b->term(x[j], p);
    }
    return total;
}

static int uniforms_of(const struct subject *b, const setting *s, const double *x, double *u)
{
    if (!b->term) return b->uniforms(s, x, u);
    for (int j = 0; j < longer(s); j++) u[j] = share_below(component(b, s, j), x[j]);
    return longer(s);
}

static double mean_of(const struct subject *b, const setting *s)
{
    double total = 0;
    if (!b->term) return b->mean(s);
    for (int j = 0; j < longer(s); j++) {
        const integral *q = component(b, s, j);
        for (int i = 0; i < CELLS; i++) total += piece(q, edge_of(q, i), edge_of(q, i + 1), sigmoid);
    }
    return total;
}

static bool is_continuous(const struct subject *b)
{
    return b->uniforms || b->term;
}

/* ---- a bench: one family, one setting, an engine to draw with */

typedef enum { OUT_VALUE, OUT_MEAN, OUT_G, OUT_G_TILDE } hand_out;

typedef struct {
    const rws_family     *family;
    const struct subject *subject;
    const setting        *setting;
    rws_params            params;
    rws_param            *p[PARAMETERS];
    rws_field             fields[1];
    const float          *field[1];
    bool                  observed, noisy; /* the value is data; a normal is drawn before it */
    hand_out              hand_out;
    rws_pass              pass;
    rws_engine           *engine;
} bench;

static rws_var visit(rws_path *path, const bench *b)
{
    if (b->noisy) rws_normal(path, "noise", rws_constant(path, 0), rws_constant(path, 1));
    rws_var p[PARAMETERS] = {{0}};
    for (int k = 0; k < PARAMETERS; k++)
        if (b->p[k]) p[k] = rws_parameter(path, b->p[k]);
    return rws_site_visit(path, "v", b->family, p);
}

static void program(rws_path *path, void *context)
{
    const bench *b = context;
    const bool   sleep = b->pass.mode == RWS_SLEEP;
    if (b->observed) {
        rws_path_side(path, RWS_SIDE_MODEL);
        visit(path, b);
        return;
    }
    rws_path_side(path, sleep ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
    const rws_var v = visit(path, b);
    rws_path_side(path, sleep ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
    visit(path, b);
    rws_path_side(path, RWS_SIDE_NONE);
    if (b->hand_out == OUT_MEAN) {
        rws_path_output(path, 0, (b->subject->term ? sum_of_sigmoids : b->subject->f)(path, v));
        return;
    }
    const bool    noted = b->hand_out == OUT_G || b->hand_out == OUT_G_TILDE;
    const rws_var from = noted ? rws_path_noted(path, b->hand_out == OUT_G ? RWS_NOTE_G : RWS_NOTE_G_TILDE) : v;
    const int     n = rws_dim(path, from) < VALUES ? rws_dim(path, from) : VALUES;
    for (int j = 0; j < n; j++) rws_path_output(path, j, rws_slice(path, from, j, 1));
    if (noted) rws_path_output(path, VALUES, v);
}

static rws_param *bench_param(bench *b, const char *name, const double *values, int n)
{
    if (!n) return NULL;
    rws_param *p = rws_params_add(&b->params, RWS_PHI, name, 1, n);
    for (int i = 0; i < n; i++) p->value[i] = (float)values[i];
    return p;
}

static void bench_init(bench *b, const rws_family *family, const setting *s)
{
    *b = (bench){.family = family, .subject = subject_of(family->name), .setting = s};
    for (int k = 0; k < PARAMETERS; k++)
        b->p[k] = bench_param(b, (char[]){(char)('a' + k), 0}, numbers_of(s, k), numbers_in(s, k));
    rws_params_pack(&b->params);
    b->engine = rws_engine_new(&b->params, b->fields, 0, NULL);
    b->pass = (rws_pass){.program = program,
                         .mode = RWS_WAKE,
                         .groups = 1u << RWS_PHI,
                         .fields = b->field,
                         .delta = 0.3,
                         .temperature = 0.6};
}

static void bench_release(bench *b)
{
    rws_engine_free(b->engine);
    rws_params_release(&b->params);
}

static rws_scores *bench_draw(bench *b, uint64_t seed, int n_data, int n_particles)
{
    rws_error err;
    b->pass.context = b;
    b->pass.key = rws_key_for(seed, 0, RWS_KEY_METRIC, 0);
    b->pass.n_data = n_data;
    b->pass.n_particles = n_particles;
    if (rws_engine_forward(b->engine, &b->pass, &err) != RWS_OK) fail_msg("%s: %s", b->family->name, err.text);
    return rws_engine_scores(b->engine);
}

static void value_of(const rws_scores *s, int row, double *x)
{
    for (int j = 0; j < VALUES; j++) x[j] = s->out[j] ? s->out[j][row] : 0;
}

/* Whether two log-densities agree, up to float rounding, which grows with their size. */
static bool as_dense(double got, double want)
{
    return near(got, want, 5e-5 * (1 + fabs(want)));
}

static int outcome_of(const bench *b, const double *x)
{
    for (int o = 0; o < b->subject->outcomes(b->setting); o++) {
        double at[WIDEST] = {0};
        b->subject->outcome(b->setting, o, at);
        if (memcmp(at, x, VALUES * sizeof *x) == 0) return o;
    }
    fail_msg("%s drew what is no outcome of it (%g …)", b->family->name, x[0]);
    return -1;
}

static double probability(const bench *b, int outcome)
{
    double x[WIDEST];
    b->subject->outcome(b->setting, outcome, x);
    return exp(density_of(b->subject, b->setting, x));
}

/* Every family with every setting: what most tests walk over. */
typedef void (*bench_test)(bench *b, int which);

static void walk(bench_test test)
{
    for (int f = 0; rws_families[f]; f++) {
        const struct subject *s = subject_of(rws_families[f]->name);
        if (!s) fail_msg("the family %s has no twin in this test", rws_families[f]->name);
        for (int i = 0; i < MAX_SETTINGS && s->settings[i].n_a; i++) {
            bench b;
            bench_init(&b, rws_families[f], &s->settings[i]);
            test(&b, i);
            bench_release(&b);
        }
    }
}

static const char *named(const bench *b, int which, const char *what)
{
    static char text[120];
    snprintf(text, sizeof text, "%s, setting %d: %s", b->family->name, which, what);
    return text;
}

static void every_twin_has_a_family(void **state)
{
    (void)state;
    int n = 0;
    for (; rws_families[n]; n++) {
        if (!subject_of(rws_families[n]->name))
            fail_msg("the family %s has no twin in this test", rws_families[n]->name);
        assert_true(rws_families[n]->reparameterised == is_continuous(subject_of(rws_families[n]->name)));
        assert_true(rws_families[n]->help && rws_families[n]->help[0]);
        for (int i = 0; i < n; i++) assert_string_not_equal(rws_families[i]->name, rws_families[n]->name);
    }
    assert_int_equal(n, N_SUBJECTS);
}

/* ---- densities of values that are given */

enum { POINTS = 64 };

/* Component j of a point made of the numbers x, which are between -2 and 5 and whose exponentials add up to `total`.
 * inside: the point is within bounds that the family has. */
static double point_of(const bench *b, const double *x, int j, double total, bool inside)
{
    double p[PARAMETERS];
    parameters_of(b->setting, j, p);
    if (b->subject->density == concrete_density) return x[j] - log(total);
    if (b->subject->density == uniform_density && inside) return p[0] + (x[j] + 2) / 7 * (p[1] - p[0]);
    if (b->subject->support == BOUNDED && inside) return p[2] + (x[j] + 2) / 7 * (fmin(p[3], p[2] + 2) - p[2]);
    if (b->subject->support == UNIT && inside) return (x[j] + 2) / 7;
    return x[j];
}

/* Values across the line (or the simplex), most of them possible. */
static int points_of(const bench *b, float *to)
{
    const int dim = is_continuous(b->subject) ? longer(b->setting) : 0;
    double    x[WIDEST] = {0};
    die       d = {3};
    if (b->subject->outcomes) {
        const int n = b->subject->outcomes(b->setting),
                  width = strcmp(b->family->name, "bernoulli vector") ? 1 : b->setting->n_a;
        for (int o = 0; o < n; o++) {
            b->subject->outcome(b->setting, o, x);
            for (int j = 0; j < width; j++) to[o * width + j] = (float)x[j];
        }
        return n;
    }
    for (int i = 0; i < POINTS; i++) {
        double total = 0;
        for (int j = 0; j < dim; j++) x[j] = die_between(&d, -2, 5);
        for (int j = 0; j < dim; j++) total += exp(x[j]);
        for (int j = 0; j < dim; j++) to[i * dim + j] = (float)point_of(b, x, j, total, i % 2);
    }
    return POINTS;
}

static void check_density(bench *b, int which)
{
    float     points[POINTS * WIDEST];
    const int n = points_of(b, points), dim = b->subject->outcomes
                                                  ? (b->subject->outcome == bits_outcome ? b->setting->n_a : 1)
                                                  : longer(b->setting);
    int       n_possible = 0;
    rws_engine_free(b->engine);
    b->observed = true;
    b->fields[0] = (rws_field){"v", dim};
    b->field[0] = points;
    b->engine = rws_engine_new(&b->params, b->fields, 1, NULL);
    const rws_scores *s = bench_draw(b, 1, n, 1);
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) {
        double x[WIDEST];
        for (int j = 0; j < dim; j++) x[j] = (double)points[i * dim + j];
        const double want = density_of(b->subject, b->setting, x);
        if (!as_dense(s->log_p[i], want)) fail_msg("%s is %g, not %g", named(b, which, "a density"), s->log_p[i], want);
        n_possible += isfinite(want);
    }
    assert_true(n_possible > 0);
}

static void densities_are_the_formulas(void **state)
{
    (void)state;
    walk(check_density);
}

/* The Concrete's formula is a density: over (0, 1) it integrates to 1, and up to a point to the probability. */
static void concrete_formula_integrates_to_one(void **state)
{
    (void)state;
    enum { N = 200000 };
    const struct subject *c = subject_of("concrete");
    for (int i = 0; i < 2; i++) {
        const setting *s = &c->settings[i];
        double         total = 0, u[4];
        for (int j = 0; j < N; j++) { /* by t, s_1 = sigmoid(t), ds = s (1 - s) dt */
            const double t = -60 + 120 * (j + 0.5) / N, x[2] = {-log1p(exp(t)), -log1p(exp(-t))};
            total += exp(concrete_density(s, x) + x[0] + x[1]) * 120 / N;
            if (j % 1000) continue;
            concrete_uniforms(s, x, u);
            assert_true(near(total, u[0], 1e-3));
        }
        assert_true(near(total, 1, 1e-6));
    }
}

/* ---- draws against the density */

/* How the draws are made: which particles share a row, and which side draws. */
static const struct layout {
    const char *name;
    rws_mode    mode;
    int         n_particles; /* per datum; 0: all draws are of one datum */
    bool        noisy;
} layouts[] = {
    {"one datum", RWS_WAKE, 0, false},
    {"few particles per datum", RWS_WAKE, 5, false},
    {"one particle per datum", RWS_WAKE, 1, false},
    {"asleep", RWS_SLEEP, 0, false},
    {"after another draw", RWS_WAKE, 0, true},
};

typedef struct {
    bench               *b;
    const struct layout *layout;
} draws;

/* Tests that x and y, both of mean 0, are independent: neither they nor their squares are correlated. */
static double independence_tail(const double *x, const double *y, size_t n, double x_square, double y_square)
{
    double *pair = malloc(n * sizeof *pair);
    for (size_t i = 0; i < n; i++) pair[i] = x[i] * y[i];
    double p = mean_tail(pair, n, 0, 1e-9);
    for (size_t i = 0; i < n; i++) pair[i] = (x[i] * x[i] - x_square) * (y[i] * y[i] - y_square);
    p = fmin(p, mean_tail(pair, n, 0, 1e-9));
    free(pair);
    return 2 * p;
}

enum { LAGS = 4 }; /* a block of random words serves so many neighbours */

/* Discrete families: tests how often each outcome came and, where rows are single particles, that neighbours are
 * independent. */
static double look_at_outcomes(const bench *b, const rws_scores *s, int n)
{
    const int n_outcomes = b->subject->outcomes(b->setting);
    double    seen[OUTCOMES] = {0}, expected[OUTCOMES], total = 0, mean = 0, square = 0, x[VALUES];
    double   *which = malloc((size_t)n * sizeof *which);
    for (int o = 0; o < n_outcomes; o++) {
        expected[o] = n * probability(b, o);
        mean += o * probability(b, o);
        square += o * o * probability(b, o);
    }
    for (int i = 0; i < s->n; i++) {
        value_of(s, i, x);
        const int o = outcome_of(b, x);
        seen[o] += s->count[i];
        total += s->count[i];
        which[i] = o - mean;
    }
    assert_true(total == n);
    double p = counts_tail(seen, expected, n_outcomes);
    square -= mean * mean;
    for (int lag = 1; lag <= LAGS && s->n == n; lag++)
        p = fmin(p, independence_tail(which, which + lag, (size_t)(n - lag), square, square));
    free(which);
    return fmin(1, (1 + LAGS) * p);
}

/* Continuous families: tests each uniform alone, against those of the next particles, and against the others of its own
 * particle. */
static double look_at_values(const bench *b, const rws_scores *s, int n)
{
    enum { MOST = 6 };
    double *u = malloc(MOST * (size_t)n * sizeof *u), p = 1, x[VALUES], at[MOST];
    int     m = 0, looks = 0;
    assert_int_equal(s->n, n);
    for (int i = 0; i < n; i++) {
        value_of(s, i, x);
        m = uniforms_of(b->subject, b->setting, x, at);
        for (int j = 0; j < m; j++) u[j * n + i] = at[j] - 0.5;
    }
    for (int j = 0; j < m; j++) {
        const double *mine = u + j * n;
        for (int lag = 1; lag <= LAGS; lag++, looks++)
            p = fmin(p, independence_tail(mine, mine + lag, (size_t)(n - lag), 1 / 12.0, 1 / 12.0));
        for (int k = 0; k < j && (b->subject->apart || b->subject->term); k++, looks++)
            p = fmin(p, independence_tail(mine, u + k * n, (size_t)n, 1 / 12.0, 1 / 12.0));
    }
    for (int j = 0; j < m; j++, looks++) {
        for (int i = 0; i < n; i++) u[j * n + i] += 0.5;
        p = fmin(p, uniform_tail(u + j * n, (size_t)n));
    }
    free(u);
    return fmin(1, looks * p);
}

static double look_at_draws(void *context, int round, int wide)
{
    const draws *d = context;
    bench       *b = d->b;
    const int    n = USUAL * wide, K = d->layout->n_particles ? d->layout->n_particles : n;
    b->pass.mode = d->layout->mode;
    b->noisy = d->layout->noisy;
    const rws_scores *s = bench_draw(b, 10 + (uint64_t)round, n / K, K);
    if (b->subject->outcome == number_outcome && K == n && !b->noisy && b->pass.mode == RWS_WAKE)
        assert_true(s->n <= b->subject->outcomes(b->setting)); /* equal draws share a row */
    if (!b->noisy) /* both sides score the drawn value, with the same result */
        for (int i = 0; i < s->n; i += 1 + s->n / 200) {
            double x[VALUES];
            value_of(s, i, x);
            const double want = density_of(b->subject, b->setting, x);
            if (!as_dense(s->log_q[i], want))
                fail_msg("%s drew %g, whose density is %g, not %g", b->family->name, x[0], s->log_q[i], want);
            assert_true(b->pass.mode == RWS_SLEEP ? s->log_p[i] == 0 : s->log_p[i] == s->log_q[i]);
            assert_true(s->log_d[i] == s->log_q[i]);
        }
    return b->subject->outcomes ? look_at_outcomes(b, s, n) : look_at_values(b, s, n);
}

static void check_draws(bench *b, int which)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        stays_likely(named(b, which, layouts[i].name), look_at_draws, &(draws){b, &layouts[i]});
}

static void draws_follow_the_density(void **state)
{
    (void)state;
    walk(check_draws);
}

/* ---- a particle's draw does not depend on the particles that share its row, its pass or its call */

/* Per datum, how many particles had each outcome. */
static void tally(const bench *b, const rws_scores *s, double (*seen)[OUTCOMES])
{
    double x[VALUES];
    for (int d = 0; d < s->B; d++)
        for (int i = (int)s->start[d]; i < (int)s->start[d + 1]; i++) {
            value_of(s, i, x);
            seen[d][outcome_of(b, x)] += s->count[i];
        }
}

static void check_company(bench *b, int which)
{
    enum { B = 3, K = 70, FIRST = 3, PIECE = 26 };
    double together[B][OUTCOMES] = {{0}}, apart[B][OUTCOMES] = {{0}}, values[B * K][VALUES];
    b->pass.first_datum = 5;
    b->pass.first_particle = FIRST;
    const rws_scores *s = bench_draw(b, 45, B, K);
    if (b->subject->outcomes) tally(b, s, together);
    else
        for (int i = 0; i < s->n; i++) value_of(s, i, values[i]);

    /* every particle alone; in two passes; each datum by itself */
    for (int how = 0; how < 3; how++) {
        memset(apart, 0, sizeof apart);
        b->pass.scalar = how == 0;
        const int n_passes = how == 0 ? 1 : how == 1 ? 2 : B;
        for (int pass = 0; pass < n_passes; pass++) {
            const int first = how == 1 && pass ? PIECE : 0, n = how == 1 ? (pass ? K - PIECE : PIECE) : K,
                      d = how == 2 ? pass : 0;
            b->pass.first_particle = (uint32_t)(FIRST + first);
            b->pass.first_datum = (uint32_t)(5 + d);
            s = bench_draw(b, 45, how == 2 ? 1 : B, n);
            if (b->subject->outcomes) tally(b, s, apart + d);
            for (int i = 0; i < s->n && !b->subject->outcomes; i++) {
                double x[VALUES];
                value_of(s, i, x);
                const double *want = values[(d + i / n) * K + first + i % n];
                for (int j = 0; j < VALUES;
                     j++) /* up to rounding: the last steps of a vectorised loop are computed one by one */
                    if (!near(x[j], want[j], 1e-5 * (1 + fabs(want[j]))))
                        fail_msg("%s: %g, and %g in company", named(b, which, "a draw"), x[j], want[j]);
            }
        }
        if (b->subject->outcomes && memcmp(apart, together, sizeof apart) != 0)
            fail_msg("%s", named(b, which, "draws depend on their company"));
    }
}

static void draws_do_not_depend_on_company(void **state)
{
    (void)state;
    walk(check_company);
}

/* Three categories of the Concrete, where pairs do not say it all: the mean of g / q over draws from q is 1 for any
 * other density g on the simplex; this is Dirichlet(3, 3, 3), whose ratio to q is bounded. */
static double look_at_simplex(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide;
    const rws_scores *s = bench_draw(b, 40 + (uint64_t)round, 1, n);
    double           *ratio = malloc((size_t)n * sizeof *ratio);
    for (int i = 0; i < n; i++)
        ratio[i] = exp(lgamma(9) - 3 * lgamma(3) + 2 * (s->out[0][i] + s->out[1][i] + s->out[2][i]) - s->log_q[i]);
    const double p = mean_tail(ratio, (size_t)n, 1, 0);
    free(ratio);
    return p;
}

static void concrete_draws_follow_the_joint_density(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, family_of("concrete"), &subject_of("concrete")->settings[2]);
    stays_likely("concrete of three", look_at_simplex, &b);
    bench_release(&b);
}

/* ---- impossible, certain, broken */

static rws_status draw_with(const rws_family *f, const setting *s, rws_error *err)
{
    bench b;
    bench_init(&b, f, s);
    b.pass.context = &b;
    b.pass.n_data = 2;
    b.pass.n_particles = 3;
    const rws_status status = rws_engine_forward(b.engine, &b.pass, err);
    bench_release(&b);
    return status;
}

static void what_is_no_distribution_is_said_so(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        setting     setting;
    } broken[] = {
        {"categorical", {3, 0, {-INF, -INF, -INF}, {0}}},
        {"categorical", {3, 0, {0, NAN, 0}, {0}}},
        {"categorical", {2, 0, {0, INF}, {0}}},
        {"bernoulli", {1, 0, {NAN}, {0}}},
        {"bernoulli vector", {2, 0, {0, NAN}, {0}}},
        {"normal", {1, 1, {0}, {NAN}}},
        {"normal", {1, 1, {0}, {-1}}},
        {"uniform", {1, 1, {1}, {NAN}}},
        {"gumbel", {1, 0, {NAN}, {0}}},
        {"concrete", {2, 1, {0, NAN}, {1}}},
        {"concrete", {2, 1, {0, 0}, {-1}}},
        {"exponential", {1, 0, {NAN}, {0}}},
        {"geometric", {1, 0, {NAN}, {0}}},
        {"binomial", {1, 1, {3}, {NAN}}},
        {"log-normal", {1, 1, {NAN}, {1}}},
        {"laplace", {1, 1, {NAN}, {1}}},
        {"half-normal", {1, 0, {-1}, {0}}},
        {"gumbel with a scale", {1, 1, {NAN}, {1}}},
        {"truncated normal", {1, 1, {NAN}, {1}, 1, 1, {0}, {1}}},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        rws_error err = {{0}};
        if (draw_with(family_of(broken[i].family), &broken[i].setting, &err) != RWS_BROKEN)
            fail_msg("%s, case %zu: not refused", broken[i].family, i);
        if (!strstr(err.text, "\"v\""))
            fail_msg("%s: the sentence does not name the site: %s", broken[i].family, err.text);
    }
}

/* Parameters that a family does not allow. One side has these, the other has good ones. */
typedef struct {
    const char *family;
    float       bad[PARAMETERS], good[PARAMETERS];
    const char *sentence;
} bad_parameters;

typedef struct {
    const bad_parameters *what;
    bool                  bad_guide, bad_model, sleep;
    int                   visits; /* of the site, the last of which has the bad parameters */
} bad_case;

static void visit_bad(rws_path *path, const bad_case *c, bool bad)
{
    for (int i = 0; i < c->visits; i++) {
        const float  *p = bad && i + 1 == c->visits ? c->what->bad : c->what->good;
        const rws_var logits[] = {rws_constant(path, p[0]), rws_constant(path, 0)};
        const bool    concrete = strcmp(c->what->family, "concrete") == 0;
        const rws_var in[] = {concrete ? rws_concat(path, logits, 2) : logits[0], rws_constant(path, p[1]),
                              rws_constant(path, p[2]), rws_constant(path, p[3])};
        rws_site_visit(path, "v", family_of(c->what->family), in);
    }
}

static void bad_program(rws_path *path, void *context)
{
    const bad_case *c = context;
    for (int i = 0; i < 2; i++) {
        const bool guide = c->sleep ? i : !i;
        rws_path_side(path, guide ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        visit_bad(path, c, guide ? c->bad_guide : c->bad_model);
    }
}

static void check_bad(const bad_case *c)
{
    const rws_params none = {0};
    for (int scalar = 0; scalar < 2; scalar++)
        for (int pathwise = 0; pathwise < 2; pathwise++) {
            rws_engine      *e = rws_engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
            rws_error        err = {{0}};
            char             sentence[200], site[40];
            const rws_pass   pass = {.program = bad_program,
                                     .context = (void *)c,
                                     .mode = c->sleep ? RWS_SLEEP : RWS_WAKE,
                                     .scalar = scalar,
                                     .pathwise = pathwise,
                                     .n_data = c->sleep ? 1 : 2,
                                     .n_particles = 3};
            const rws_status status = rws_engine_forward(e, &pass, &err);
            snprintf(site, sizeof site, c->visits > 1 ? "\"v\" (visit %d)" : "\"v\"", c->visits);
            snprintf(sentence, sizeof sentence, c->what->sentence, site);
            assert_string_equal(err.text, sentence);
            assert_int_equal(status, RWS_BROKEN);
            rws_engine_free(e);
        }
}

/* Drawn by the guide, scored by the model, and drawn by the model, where nothing scores them. */
static void bad_parameters_are_named(void **state)
{
    (void)state;
    static const bad_parameters list[] = {
        {"normal", {0, -1}, {0, 1}, "The standard deviation at site %s is -1; it must be above 0."},
        {"normal", {0, 0}, {0, 1}, "The standard deviation at site %s is 0; it must be above 0."},
        {"normal", {0, NAN}, {0, 1}, "The standard deviation at site %s is nan; it must be above 0."},
        {"uniform", {3, 1}, {0, 1}, "The bounds at site %s are 3 and 1; the first must be below the second."},
        {"uniform", {1, 1}, {0, 1}, "The bounds at site %s are 1 and 1; the first must be below the second."},
        {"uniform", {0, NAN}, {0, 1}, "The bounds at site %s are 0 and nan; the first must be below the second."},
        {"concrete", {0, 0}, {0, 1}, "The temperature at site %s is 0; it must be above 0."},
        {"concrete", {0, -2}, {0, 1}, "The temperature at site %s is -2; it must be above 0."},
        {"concrete", {0, NAN}, {0, 1}, "The temperature at site %s is nan; it must be above 0."},
        {"exponential", {0}, {1}, "The rate at site %s is 0; it must be above 0."},
        {"log-normal", {0, -1}, {0, 1}, "The standard deviation at site %s is -1; it must be above 0."},
        {"laplace", {0, NAN}, {0, 1}, "The scale at site %s is nan; it must be above 0."},
        {"half-normal", {-2}, {1}, "The scale at site %s is -2; it must be above 0."},
        {"gumbel with a scale", {0, 0}, {0, 1}, "The scale at site %s is 0; it must be above 0."},
        {"truncated normal", {0, 0, 0, 1}, {0, 1, 0, 1}, "The standard deviation at site %s is 0; it must be above 0."},
        {"truncated normal",
         {0, 1, 1, 0},
         {0, 1, 0, 1},
         "The bounds at site %s are 1 and 0; the first must be below the second."},
        {"gamma", {0, 1}, {1, 1}, "The shape at site %s is 0; it must be above 0."},
        {"gamma", {1, NAN}, {1, 1}, "The rate at site %s is nan; it must be above 0."},
        {"inverse gamma", {1, -1}, {1, 1}, "The scale at site %s is -1; it must be above 0."},
        {"beta", {0, 1}, {1, 1}, "The first shape at site %s is 0; it must be above 0."},
        {"beta", {1, -3}, {1, 1}, "The second shape at site %s is -3; it must be above 0."},
        {"student t", {0, 0, 1}, {1, 0, 1}, "The number of degrees of freedom at site %s is 0; it must be above 0."},
        {"student t", {1, 0, 0}, {1, 0, 1}, "The scale at site %s is 0; it must be above 0."},
        {"poisson", {0}, {1}, "The rate at site %s is 0; it must be above 0."},
        {"binomial", {1.5, 0}, {2, 0}, "The number of trials at site %s is 1.5; it must be a whole number."},
        {"binomial", {-1, 0}, {2, 0}, "The number of trials at site %s is -1; it must not be negative."},
        {"negative binomial", {-1, 0}, {2, 0}, "The shape at site %s is -1; it must be above 0."},
    };
    for (int i = 0; i < COUNT(list); i++)
        for (int visits = 1; visits < 3; visits++) {
            check_bad(&(bad_case){&list[i], .bad_guide = true, .visits = visits});
            check_bad(&(bad_case){&list[i], .bad_model = true, .visits = visits});
            check_bad(&(bad_case){&list[i], .bad_model = true, .sleep = true, .visits = visits});
        }
}

/* The log-density outside of any site: values that do not fit, and a bad parameter. */
static void densities_of_misfits(rws_path *path, void *context)
{
    const rws_var two = rws_constants(path, (float[]){1, 2}, 2), three = rws_constants(path, (float[]){1, 2, 3}, 3);
    const rws_var zero = rws_constant(path, 0);
    const int    *which = context;
    rws_path_output(path, 0,
                    *which == 0   ? rws_normal_density(path, two, three, rws_constant(path, 1))
                    : *which == 1 ? rws_concrete_density(path, two, three, rws_constant(path, 1))
                                  : rws_concrete_density(path, two, two, zero));
}

static void densities_outside_of_sites_are_checked(void **state)
{
    (void)state;
    const rws_params  none = {0};
    const char *const sentences[] = {
        "rws_normal_density takes vectors of one length or of 1, not of 2, 3 and 1 numbers.",
        "rws_concrete_density takes two vectors of one length and one temperature, not 2, 3 and 1 numbers.",
        "The temperature is 0; it must be above 0."};
    for (int i = 0; i < COUNT(sentences); i++) {
        rws_engine    *e = rws_engine_new(&none, (rws_field[1]){{0}}, 0, NULL);
        rws_error      err = {{0}};
        const rws_pass pass = {
            .program = densities_of_misfits, .context = &i, .mode = RWS_COMPUTE, .n_data = 1, .n_particles = 1};
        assert_int_not_equal(rws_engine_forward(e, &pass, &err), RWS_OK);
        assert_string_equal(err.text, sentences[i]);
        rws_engine_free(e);
    }
}

/* A standard deviation of 0 in rows that a branch keeps away from the site is no mistake. */
static void guarded(rws_path *path, void *context)
{
    const float logits[] = {0, 0, 0};
    (void)context;
    for (int side = 0; side < 2; side++) {
        rws_path_side(path, side ? RWS_SIDE_MODEL : RWS_SIDE_GUIDE);
        const rws_var z = rws_categorical(path, "z", rws_constants(path, logits, 3));
        const rws_var sd = rws_mul(path, z, rws_constant(path, 2)); /* at the rows of all z */
        if (rws_branch(path, z) > 0 && side) rws_normal(path, "x", rws_constant(path, 0), sd);
        else if (side) rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
    }
}

static void rows_that_a_branch_keeps_away_are_not_looked_at(void **state)
{
    (void)state;
    const rws_params none = {0};
    const rws_field  field = {"x", 1};
    const float      x[] = {0.5f, 1}, *fields[] = {x};
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_engine    *e = rws_engine_new(&none, &field, 1, NULL);
        rws_error      err = {{0}};
        const rws_pass pass = {.program = guarded, .scalar = scalar, .n_data = 2, .n_particles = 50, .fields = fields};
        if (rws_engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
        rws_engine_free(e);
    }
}

/* A long run with what cannot happen first, in the middle and last: it never does. Sums of the same numbers in another
 * order differ in the last bit, one of 2^24; a sampler that forgets it is found out by 10^8 draws. */
static void the_impossible_never_happens(void **state)
{
    (void)state;
    static const setting logits[] = {{5, 0, {-INF, 2, -INF, 2, -INF}, {0}},
                                     {4, 0, {-200, 0, -1e30, 0}, {0}},
                                     {2, 0, {-INF, 0}, {0}},
                                     {5, 0, {-3, -3, 1, -INF, -2}, {0}},
                                     {7, 0, {1, -3, -3, -3, -3, -3, -INF}, {0}}};
    const int            draws[] = {500000, 500000, 500000, 100000000, 40000000};
    for (int i = 0; i < 5; i++)
        for (int apart = 0; apart < 2; apart++) {
            const int n = apart ? 25000 : draws[i];
            bench     b;
            uint64_t  total = 0;
            bench_init(&b, family_of("categorical"), &logits[i]);
            const rws_scores *s = bench_draw(&b, 50, apart ? n : 1, apart ? 1 : n);
            for (int r = 0; r < s->n; r++) {
                assert_true(logits[i].a[(int)s->out[0][r]] > -100 && isfinite(s->log_q[r]));
                total += s->count[r];
            }
            assert_int_equal(total, n);
            bench_release(&b);
        }
}

/* ---- scores: the mean of the gradient of log q by its parameters is zero, unless they move the support */

static double expected_score(const bench *b, size_t i)
{
    if (b->subject->support == BOUNDED) { /* a bound that moves by 1 moves the mass by the density at the bound */
        const setting *s = b->setting;
        double         total = 0, p[PARAMETERS];
        int            k = 0;
        for (; i >= (size_t)numbers_in(s, k); k++) i -= (size_t)numbers_in(s, k);
        for (int j = 0; k >= 2 && j < longer(s); j++) {
            parameters_of(s, j, p);
            if ((numbers_in(s, k) == 1 || (size_t)j == i) && isfinite(p[k]))
                total += (k == 2 ? 1 : -1) * exp(b->subject->term(p[k], p));
        }
        return total;
    }
    if (b->subject->density != uniform_density) return 0;
    /* the density changes by 1 / (high - low) everywhere, and the moving ends of the interval compensate for it */
    const bool   high = i >= (size_t)b->setting->n_a;
    double       total = 0;
    const size_t j = high ? i - (size_t)b->setting->n_a : i;
    for (int k = 0; k < longer(b->setting); k++) {
        if ((high ? b->setting->n_b : b->setting->n_a) != 1 && (size_t)k != j) continue;
        const double width = part(b->setting->b, b->setting->n_b, k) - part(b->setting->a, b->setting->n_a, k);
        total += high ? -1 / width : 1 / width;
    }
    return total;
}

/* Tests means of batches, whose spread gives the standard error. */
static double look_at_gradients(bench *b, int round, int wide, double (*expected)(const bench *, size_t),
                                void (*weigh)(rws_scores *s, int row, double by))
{
    enum { EACH = 1000 };
    const size_t n = b->params.size, batches = 32 * (size_t)wide;
    float       *gradient = malloc(n * sizeof *gradient);
    double      *mean = malloc(n * batches * sizeof *mean), p = 1;
    for (size_t i = 0; i < batches; i++) {
        rws_scores *s = bench_draw(b, 1000 * (uint64_t)(round + 1) + i, 1, EACH);
        for (int r = 0; r < s->n; r++) weigh(s, r, (double)s->count[r] / EACH);
        memset(gradient, 0, n * sizeof *gradient);
        rws_engine_backward(b->engine, 1u << RWS_PHI, gradient, NULL);
        for (size_t j = 0; j < n; j++) mean[j * batches + i] = (double)gradient[j];
    }
    for (size_t j = 0; j < n; j++) {
        const double want = expected(b, j);
        p = fmin(p, mean_tail(mean + j * batches, batches, want, 1e-5 * (1 + fabs(want))));
    }
    free(gradient), free(mean);
    return fmin(1, (double)n * p);
}

static void weigh_q(rws_scores *s, int row, double by)
{
    s->coef_q[row] = by;
}

static void weigh_p(rws_scores *s, int row, double by)
{
    s->coef_p[row] = by;
}

static void weigh_out(rws_scores *s, int row, double by)
{
    s->coef_out[0][row] = by;
}

static double look_at_scores(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_score, weigh_q);
}

static double look_at_model_scores(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_score, weigh_p);
}

static void check_scores(bench *b, int which)
{
    stays_likely(named(b, which, "scores of the guide"), look_at_scores, b);
    stays_likely(named(b, which, "scores of the model"), look_at_model_scores, b);
}

static void scores_have_their_mean(void **state)
{
    (void)state;
    walk(check_scores);
}

/* ---- gradients through a draw */

/* The settings with parameter i (those of a first) moved up and down by h. */
static void move(const bench *b, size_t i, double h, setting *up, setting *down)
{
    int k = 0;
    *up = *down = *b->setting;
    for (; i >= (size_t)numbers_in(up, k); k++) i -= (size_t)numbers_in(up, k);
    ((double *)numbers_of(up, k))[i] += h;
    ((double *)numbers_of(down, k))[i] -= h;
}

/* The derivative of a function of the setting by parameter i, by central differences. */
static double derivative(const bench *b, double (*f)(const setting *s), size_t i)
{
    const double h = 1e-4;
    setting      up, down;
    move(b, i, h, &up, &down);
    return (f(&up) - f(&down)) / (2 * h);
}

static double expected_slope(const bench *b, size_t i)
{
    const double h = 1e-4;
    setting      up, down;
    move(b, i, h, &up, &down);
    return (mean_of(b->subject, &up) - mean_of(b->subject, &down)) / (2 * h);
}

static double look_at_slopes(void *context, int round, int wide)
{
    return look_at_gradients(context, round, wide, expected_slope, weigh_out);
}

static void gradient_of(bench *b, void (*weigh)(rws_scores *s, int row, double by), float *gradient)
{
    rws_scores *s = bench_draw(b, 60, 1, 500);
    for (int r = 0; r < s->n; r++) weigh(s, r, (double)s->count[r] / 500);
    memset(gradient, 0, b->params.size * sizeof *gradient);
    rws_engine_backward(b->engine, 1u << RWS_PHI, gradient, NULL);
}

static void weigh_r(rws_scores *s, int row, double by)
{
    s->coef_r[row] = by;
}

static void check_paths(bench *b, int which)
{
    float gradient[PARAMETERS * WIDEST];
    if (!b->family->reparameterised) return;
    assert_true(b->subject->term || b->subject->f);
    b->hand_out = OUT_MEAN;
    gradient_of(b, weigh_out, gradient); /* a value that counts as a constant has no gradient */
    for (size_t i = 0; i < b->params.size; i++) assert_true(gradient[i] == 0);
    b->pass.pathwise = true;
    if (!isnan(mean_of(b->subject, b->setting)))
        stays_likely(named(b, which, "gradients through a draw"), look_at_slopes, b);

    /* log q of a reparameterised value has a gradient by coef_r only */
    gradient_of(b, weigh_q, gradient);
    for (size_t i = 0; i < b->params.size; i++) assert_true(gradient[i] == 0);
    if (!b->subject->order) return;
    gradient_of(b, weigh_r, gradient);
    for (size_t i = 0; i < b->params.size; i++) {
        const double want = derivative(b, b->subject->order, i);
        if (!near((double)gradient[i], want, 1e-4 * (1 + fabs(want))))
            fail_msg("%s: %g, not %g", named(b, which, "log q along the path"), (double)gradient[i], want);
    }
}

static void paths_have_their_gradient(void **state)
{
    (void)state;
    walk(check_paths);
}

/* ---- defensive draws */

/* The probability of an outcome under the mixture: every choice, and every bit of a vector, is mixed with a uniform one
 * by itself. */
static double defended(const bench *b, int outcome)
{
    const double delta = b->pass.delta;
    double       x[WIDEST], total = 1;
    if (b->subject->outcome == number_outcome) return (1 - delta) * probability(b, outcome) + delta / b->setting->n_a;
    bits_outcome(b->setting, outcome, x);
    for (int j = 0; j < b->setting->n_a; j++)
        total *= (1 - delta) * sigmoid(x[j] == 1 ? b->setting->a[j] : -b->setting->a[j]) + delta / 2;
    return total;
}

static double look_at_defended(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide, n_outcomes = b->subject->outcomes(b->setting);
    const rws_scores *s = bench_draw(b, 70 + (uint64_t)round, 1, n);
    double            seen[OUTCOMES] = {0}, expected[OUTCOMES], x[VALUES];
    for (int o = 0; o < n_outcomes; o++) expected[o] = n * defended(b, o);
    for (int i = 0; i < s->n; i++) {
        value_of(s, i, x);
        const int o = outcome_of(b, x);
        seen[o] += s->count[i];
        assert_true(as_dense(s->log_d[i], log(defended(b, o))));
        assert_true(as_dense(s->log_q[i], density_of(b->subject, b->setting, x)));
        assert_true(s->log_p[i] == s->log_q[i]);
    }
    return counts_tail(seen, expected, n_outcomes);
}

static void check_defended(bench *b, int which)
{
    b->pass.proposal = RWS_DEFENSIVE;
    if (!b->family->choices && b->family->support != RWS_SUPPORT_BITS) { /* drawn as in a plain pass */
        const rws_scores *s = bench_draw(b, 70, 1, 100);
        for (int i = 0; i < s->n; i++) assert_true(s->log_d[i] == s->log_q[i]);
        return;
    }
    assert_non_null(b->family->draw_defensive);
    for (int i = 0; i < 2; i++) {
        b->pass.delta = i ? 0.05 : 0.5;
        stays_likely(named(b, which, "defensive draws"), look_at_defended, b);
    }
}

static void defensive_draws_follow_the_mixture(void **state)
{
    (void)state;
    walk(check_defended);
}

/* dww_ref_bug: draws z from q, notes the mixture's density there, then replaces z by a uniform one with probability
 * delta. So (z, what is used) has a joint law, and log_d tells z apart where the mixture's probabilities differ. */
static double look_at_wrong_delta(void *context, int round, int wide)
{
    bench            *b = context;
    const int         n = USUAL * wide, C = b->setting->n_a;
    const rws_scores *s = bench_draw(b, 80 + (uint64_t)round, 1, n);
    double            seen[OUTCOMES] = {0}, expected[OUTCOMES];
    for (int z = 0; z < C; z++)
        for (int used = 0; used < C; used++)
            expected[z * C + used] = n * probability(b, z) * ((1 - b->pass.delta) * (z == used) + b->pass.delta / C);
    for (int i = 0; i < s->n; i++) {
        int z = 0;
        while (z < C && !as_dense(s->log_d[i], log(defended(b, z)))) z++;
        assert_true(z < C);
        assert_true(as_dense(s->log_q[i], log(probability(b, (int)s->out[0][i]))));
        seen[z * C + (int)s->out[0][i]] += s->count[i];
    }
    return counts_tail(seen, expected, C * C);
}

static void wrong_delta_is_wrong_as_described(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, family_of("categorical"), &subject_of("categorical")->settings[0]);
    b.pass.proposal = RWS_DEFENSIVE;
    b.pass.wrong_delta = true;
    stays_likely("wrong delta", look_at_wrong_delta, &b);
    bench_release(&b);
}

/* ---- Gumbel and relaxed passes */

typedef struct {
    bench *perturbed, *conditional; /* the same pass, handing out g and g~ */
} gumbels;

/* The law of (z, g~) is that of (argmax g, g). So g~_i alone is a Gumbel at log pi_i; and given z, which leaves g and
 * g~ independent, they agree in mean and square. */
static double look_at_gumbels(void *context, int round, int wide)
{
    enum { C = 3 };
    const gumbels    *both = context;
    const int         n = USUAL * wide;
    const rws_scores *s = bench_draw(both->perturbed, 90 + (uint64_t)round, 1, n);
    const rws_scores *t = bench_draw(both->conditional, 90 + (uint64_t)round, 1, n);
    double            seen[C] = {0}, expected[C], p = 1, *x = malloc((size_t)n * sizeof *x);
    assert_true(s->n == n && t->n == n);
    for (int i = 0; i < n; i++) {
        const int z = (int)s->out[VALUES][i];
        assert_true(s->out[VALUES][i] == t->out[VALUES][i]);
        for (int j = 0; j < C; j++) {
            assert_true(s->out[j][i] <= s->out[z][i]);
            assert_true(t->out[j][i] <= t->out[z][i]);
        }
        assert_true(as_dense(s->log_q[i], log_share(both->perturbed->setting, z)));
        seen[z]++;
    }
    for (int j = 0; j < C; j++) expected[j] = n * probability(both->perturbed, j);
    p = fmin(p, counts_tail(seen, expected, C));
    for (int j = 0; j < C; j++)
        for (int k = 0; k < 2; k++) {
            const double *g = (k ? t : s)->out[j];
            for (int i = 0; i < n; i++) x[i] = exp(-exp(log_share(both->perturbed->setting, j) - g[i]));
            p = fmin(p, uniform_tail(x, (size_t)n));
        }
    for (int i = 0; i < n; i++) x[i] = exp(-exp(-t->out[(int)t->out[VALUES][i]][i])); /* the largest is a Gumbel at 0 */
    p = fmin(p, uniform_tail(x, (size_t)n));
    for (int z = 0; z < C; z++)
        for (int j = 0; j < C; j++)
            for (int power = 1; power <= 2; power++) {
                size_t m = 0;
                for (int i = 0; i < n; i++)
                    if ((int)s->out[VALUES][i] == z) x[m++] = pow(s->out[j][i], power) - pow(t->out[j][i], power);
                p = fmin(p, mean_tail(x, m, 0, 0));
            }
    free(x);
    return fmin(1, 26 * p);
}

static void conditional_gumbels_have_the_law_of_gumbels(void **state)
{
    (void)state;
    bench         g, conditional;
    const setting s = {3, 0, {1, -0.5, 0}, {0}};
    bench_init(&g, family_of("categorical"), &s);
    bench_init(&conditional, family_of("categorical"), &s);
    g.pass.proposal = conditional.pass.proposal = RWS_GUMBEL;
    g.hand_out = OUT_G;
    conditional.hand_out = OUT_G_TILDE;
    stays_likely("perturbed log-probabilities", look_at_gumbels, &(gumbels){&g, &conditional});
    bench_release(&g);
    bench_release(&conditional);
}

/* In a Gumbel pass impossible categories stay impossible, in g and in g~. */
static void impossible_gumbels(void **state)
{
    (void)state;
    const setting s = {3, 0, {0, -INF, 1}, {0}};
    for (int k = 0; k < 2; k++) {
        bench b;
        bench_init(&b, family_of("categorical"), &s);
        b.pass.proposal = RWS_GUMBEL;
        b.hand_out = k ? OUT_G_TILDE : OUT_G;
        const rws_scores *t = bench_draw(&b, 95, 1, USUAL);
        for (int i = 0; i < t->n; i++)
            assert_true(t->out[1][i] == -INF && t->out[VALUES][i] != 1 && isfinite(t->out[0][i]) &&
                        isfinite(t->out[2][i]));
        bench_release(&b);
    }
}

/* A relaxed categorical is a Concrete at the pass's temperature. */
static double look_at_relaxed(void *context, int round, int wide)
{
    bench  *b = context;
    setting s = *b->setting;
    s.n_b = 1;
    s.b[0] = b->pass.temperature;
    const bench       as_concrete = {.family = family_of("concrete"), .subject = subject_of("concrete"), .setting = &s};
    const rws_scores *t = bench_draw(b, 97 + (uint64_t)round, 1, USUAL * wide);
    for (int i = 0; i < t->n; i += 37) {
        double x[VALUES], soft = 0;
        value_of(t, i, x);
        for (int j = 0; j < s.n_a; j++) soft += exp(x[j] + log_share(&s, j));
        assert_true(as_dense(t->log_q[i], b->pass.relaxation == RWS_RELAX_SOFT ? log(soft) : concrete_density(&s, x)));
        assert_true(t->log_p[i] == t->log_q[i]);
    }
    return look_at_values(&as_concrete, t, USUAL * wide);
}

static void relaxed_choices_are_concrete(void **state)
{
    (void)state;
    static const setting logits[] = {{2, 0, {0.5, -0.5}, {0}}, {3, 0, {1, -0.5, 0}, {0}}};
    for (int i = 0; i < 4; i++) {
        bench b;
        bench_init(&b, family_of("categorical"), &logits[i % 2]);
        b.pass.proposal = RWS_RELAXED;
        b.pass.relaxation = i / 2 ? RWS_RELAX_SOFT : RWS_RELAX_DENSITY;
        stays_likely("a relaxed categorical", look_at_relaxed, &b);
        bench_release(&b);
    }
}

int main(void)
{
    rws_error err;
    if (rws_gemm_init(&err) != RWS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_twin_has_a_family),
        cmocka_unit_test(densities_are_the_formulas),
        cmocka_unit_test(concrete_formula_integrates_to_one),
        cmocka_unit_test(draws_follow_the_density),
        cmocka_unit_test(draws_do_not_depend_on_company),
        cmocka_unit_test(concrete_draws_follow_the_joint_density),
        cmocka_unit_test(what_is_no_distribution_is_said_so),
        cmocka_unit_test(bad_parameters_are_named),
        cmocka_unit_test(densities_outside_of_sites_are_checked),
        cmocka_unit_test(rows_that_a_branch_keeps_away_are_not_looked_at),
        cmocka_unit_test(the_impossible_never_happens),
        cmocka_unit_test(scores_have_their_mean),
        cmocka_unit_test(paths_have_their_gradient),
        cmocka_unit_test(defensive_draws_follow_the_mixture),
        cmocka_unit_test(wrong_delta_is_wrong_as_described),
        cmocka_unit_test(conditional_gumbels_have_the_law_of_gumbels),
        cmocka_unit_test(impossible_gumbels),
        cmocka_unit_test(relaxed_choices_are_concrete),
    };
    return cmocka_run_group_tests_name("dist", tests, NULL, NULL);
}
