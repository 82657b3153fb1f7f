/* families.c - the twins of all families, and the settings to try them with. */
#include "families.h"

#include <stdio.h>
#include <string.h>

#define EULER 0.57721566490153286

/* ---- twins */

int numbers_in(const setting *s, int k)
{
    return k == 0 ? s->n_a : k == 1 ? s->n_b : k == 2 ? s->n_c : s->n_d;
}

const double *numbers_of(const setting *s, int k)
{
    return k == 0 ? s->a : k == 1 ? s->b : k == 2 ? s->c : s->d;
}

double part(const double *v, int n, int j)
{
    return v[n == 1 ? 0 : j];
}

int longer(const setting *s)
{
    int n = 1;
    for (int k = 0; k < PARAMETERS; k++) n = numbers_in(s, k) > n ? numbers_in(s, k) : n;
    return n;
}

double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* log of softmax(a)_j; -inf stays -inf */
double log_share(const setting *s, int j)
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

void number_outcome(const setting *s, int outcome, double *x)
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

void bits_outcome(const setting *s, int outcome, double *x)
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

double uniform_density(const setting *s, const double *x)
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
double concrete_density(const setting *s, const double *x)
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
int concrete_uniforms(const setting *s, const double *x, double *u)
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

static rws_var sum_of_sines(rws_path *path, rws_var v)
{
    return rws_sum(path, rws_apply(path, RWS_SIN, v));
}

static double von_mises_term(double x, const double *p)
{
    enum { N = 2000 };
    static double known, total;
    if (known != p[1]) { /* the integral of exp(k cos x - k), over the circle, where a sum is exact */
        known = p[1];
        total = 0;
        for (int i = 0; i < N; i++) total += exp(p[1] * (cos(2 * M_PI * i / N) - 1)) * 2 * M_PI / N;
    }
    return p[1] * (cos(x - p[0]) - 1) - log(total);
}

/* ---- vectors whose numbers belong together */

double dirichlet_density(const setting *s, const double *x)
{
    double total = 0, all = 0, sum = 0;
    for (int j = 0; j < s->n_a; j++) {
        if (!(x[j] > 0)) return -INF;
        sum += x[j];
        all += s->a[j];
        total += (s->a[j] - 1) * log(x[j]) - lgamma(s->a[j]);
    }
    return fabs(sum - 1) < 1e-3 ? total + lgamma(all) : -INF;
}

/* Each number is a Beta, and so is the share that the first has of the first two. */
static int dirichlet_uniforms(const setting *s, const double *x, double *u)
{
    double all = 0;
    for (int j = 0; j < s->n_a; j++) all += s->a[j];
    for (int j = 0; j < s->n_a; j++)
        u[j] = share_below(integral_of(beta_term, UNIT, 0, (double[PARAMETERS]){s->a[j], all - s->a[j]}), x[j]);
    u[s->n_a] =
        share_below(integral_of(beta_term, UNIT, 0, (double[PARAMETERS]){s->a[0], s->a[1]}), x[0] / (x[0] + x[1]));
    return s->n_a + 1;
}

static double dirichlet_mean(const setting *s)
{
    double total = 0, all = 0;
    for (int j = 0; j < s->n_a; j++) all += s->a[j];
    for (int j = 0; j < s->n_a; j++) total += s->a[j] * (s->a[j] + 1) / (all * (all + 1));
    return total;
}

static int first_width(const setting *s)
{
    return s->n_a;
}

/* Entry (i, j) of a Cholesky factor, a matrix or its lower triangle. */
static double factor_at(const setting *s, int i, int j)
{
    if (j > i) return 0;
    return s->b[s->n_b == s->n_a * s->n_a ? i * s->n_a + j : i * (i + 1) / 2 + j];
}

/* z = L^-1 (x - m), the noise behind x */
static void noise_behind(const setting *s, const double *x, double *z)
{
    for (int i = 0; i < s->n_a; i++) {
        z[i] = x[i] - s->a[i];
        for (int j = 0; j < i; j++) z[i] -= factor_at(s, i, j) * z[j];
        z[i] /= factor_at(s, i, i);
    }
}

static double factor_order(const setting *s)
{
    double total = 0;
    for (int i = 0; i < s->n_a; i++) total -= log(factor_at(s, i, i));
    return total;
}

static double multivariate_density(const setting *s, const double *x)
{
    double z[WIDEST], total = factor_order(s);
    noise_behind(s, x, z);
    for (int i = 0; i < s->n_a; i++) total -= z[i] * z[i] / 2 + log(2 * M_PI) / 2;
    return total;
}

static int multivariate_uniforms(const setting *s, const double *x, double *u)
{
    double z[WIDEST];
    noise_behind(s, x, z);
    for (int i = 0; i < s->n_a; i++) u[i] = 0.5 * erfc(-z[i] / sqrt(2));
    return s->n_a;
}

static double multivariate_mean(const setting *s) /* of the sum of squares */
{
    double total = 0;
    for (int i = 0; i < s->n_a; i++) {
        total += s->a[i] * s->a[i];
        for (int j = 0; j <= i; j++) total += factor_at(s, i, j) * factor_at(s, i, j);
    }
    return total;
}

static int n_width(const setting *s)
{
    return s->n;
}

static double categoricals_density(const setting *s, const double *x)
{
    const int C = s->n_a / s->n;
    double    total = 0;
    for (int i = 0; i < s->n; i++) {
        setting one = {.n_a = C};
        memcpy(one.a, s->a + i * C, (size_t)C * sizeof(double));
        total += log_share(&one, (int)x[i]);
    }
    return total;
}

static int categoricals_outcomes(const setting *s)
{
    int n = 1;
    for (int i = 0; i < s->n; i++) n *= s->n_a / s->n;
    return n;
}

void digits_outcome(const setting *s, int outcome, double *x)
{
    const int C = s->n_a / s->n;
    for (int i = 0; i < s->n; i++, outcome /= C) x[i] = outcome % C;
}

static int second_width(const setting *s)
{
    return s->n_b;
}

static double multinomial_density(const setting *s, const double *x)
{
    setting things = {.n_a = s->n_b};
    double  total = lgamma(s->a[0] + 1), sum = 0;
    memcpy(things.a, s->b, sizeof s->b);
    for (int j = 0; j < s->n_b; j++) {
        if (x[j] < 0) return -INF;
        sum += x[j];
        if (x[j] > 0) total += x[j] * log_share(&things, j) - lgamma(x[j] + 1);
    }
    return sum == s->a[0] ? total : -INF;
}

/* The numbers of all things but the last are digits; the last takes the rest, which is negative for what is no outcome. */
static int multinomial_outcomes(const setting *s)
{
    int n = 1;
    for (int j = 0; j + 1 < s->n_b; j++) n *= (int)s->a[0] + 1;
    return n;
}

static void multinomial_outcome(const setting *s, int outcome, double *x)
{
    const int base = (int)s->a[0] + 1, last = s->n_b - 1;
    x[last] = s->a[0];
    for (int j = 0; j < last; j++, outcome /= base) x[last] -= x[j] = outcome % base;
}

static double delta_density(const setting *s, const double *x)
{
    for (int j = 0; j < s->n_a; j++)
        if (x[j] != s->a[j]) return -INF;
    return 0;
}

static int certain(const setting *s)
{
    (void)s;
    return 1;
}

static void delta_outcome(const setting *s, int outcome, double *x)
{
    (void)outcome;
    memcpy(x, s->a, (size_t)s->n_a * sizeof *x);
}

static double delta_mean(const setting *s)
{
    double total = 0;
    for (int j = 0; j < s->n_a; j++) total += s->a[j] * s->a[j];
    return total;
}

/* A mixture of normals, by logits, means and standard deviations. */
static double mixture_density(const setting *s, const double *x)
{
    double total = 0;
    for (int c = 0; c < s->n_a; c++)
        total += exp(log_share(s, c) - pow((x[0] - s->b[c]) / s->c[c], 2) / 2) / (s->c[c] * sqrt(2 * M_PI));
    return log(total);
}

static int mixture_uniforms(const setting *s, const double *x, double *u)
{
    u[0] = 0;
    for (int c = 0; c < s->n_a; c++) u[0] += exp(log_share(s, c)) * 0.5 * erfc(-(x[0] - s->b[c]) / s->c[c] / sqrt(2));
    return 1;
}

static int one_wide(const setting *s)
{
    (void)s;
    return 1;
}

static rws_var visit_mixture(rws_path *path, const rws_var *p)
{
    rws_component components[WIDEST];
    rws_var       params[WIDEST][2];
    const int     n = rws_dim(path, p[0]);
    for (int c = 0; c < n; c++) {
        for (int k = 0; k < 2; k++) params[c][k] = rws_slice(path, p[k + 1], c, 1);
        components[c] = (rws_component){family_of("normal"), params[c]};
    }
    return rws_mixture(path, "v", p[0], components, n);
}

static rws_var first_share(rws_path *path, rws_var v)
{
    return rws_apply(path, RWS_EXP, rws_slice(path, v, 0, 1));
}

static const subject subjects[] = {
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
    {"dirichlet", dirichlet_density, .uniforms = dirichlet_uniforms, .mean = dirichlet_mean, .f = sum_of_squares,
     .width = first_width, .settings = {{3, 0, {1, 2, 0.5}, {0}}, {2, 0, {0.3, 5}, {0}}, {4, 0, {10, 20, 5, 1}, {0}}}},
    {"von mises", .term = von_mises_term, .support = CIRCLE, .f = sum_of_sines,
     .settings = {{1, 1, {0.5}, {2}}, {3, 3, {-3, 0, 1}, {0.1, 5, 100}}, {1, 2, {3}, {1, 500}}}},
    {"multivariate normal", multivariate_density, .uniforms = multivariate_uniforms, .apart = true,
     .mean = multivariate_mean, .f = sum_of_squares, .order = factor_order, .width = first_width,
     .settings = {{1, 1, {0.5}, {2}},
                  {2, 4, {1, -2}, {1.5, 99, -0.7, 0.5}},
                  {3, 6, {0, 1, 2}, {0.3, -0.2, 1, 0.1, 0.8, 2}}}},
    {"categoricals", categoricals_density, categoricals_outcomes, digits_outcome, .width = n_width,
     .settings = {{6, 0, {0.3, -1, 1.2, 0, 0, 2}, {0}, .n = 2},
                  {8, 0, {0.5, -0.5, 1, -INF, 0, 1, 2, 0}, {0}, .n = 4},
                  {4, 0, {0, 1, 2, 3}, {0}, .n = 1}}},
    {"multinomial", multinomial_density, multinomial_outcomes, multinomial_outcome, .width = second_width,
     .settings = {{1, 3, {4}, {0.5, -0.5, 1}}, {1, 2, {20}, {0, 2}}, {1, 4, {2}, {0, -INF, 1, -INF}}}},
    {"delta", delta_density, certain, delta_outcome, .mean = delta_mean, .f = sum_of_squares, .width = first_width,
     .settings = {{1, 0, {0.5}, {0}}, {3, 0, {-2, 4, 1024}, {0}}}},
    {"mixture", mixture_density, .uniforms = mixture_uniforms, .width = one_wide, .scored = true,
     .visit = visit_mixture,
     .settings = {{2, 2, {0.5, -0.5}, {-1, 2}, 2, 0, {0.5, 1}}, {3, 3, {0, 1, 0}, {-5, 0, 5}, 3, 0, {1, 0.1, 3}}}},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

const struct subject *subject_of(const char *name)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        if (strcmp(subjects[i].name, name) == 0) return &subjects[i];
    return NULL;
}

const rws_family *family_of(const char *name)
{
    for (int i = 0; rws_families[i]; i++)
        if (strcmp(rws_families[i]->name, name) == 0) return rws_families[i];
    fail_msg("there is no family %s", name);
    return NULL;
}

/* The parameters of component j of a setting. */
void parameters_of(const setting *s, int j, double *p)
{
    for (int k = 0; k < PARAMETERS; k++) p[k] = numbers_in(s, k) ? part(numbers_of(s, k), numbers_in(s, k), j) : 0;
}

static const integral *component(const struct subject *b, const setting *s, int j)
{
    double p[PARAMETERS];
    parameters_of(s, j, p);
    return integral_of(b->term, b->support, b->centre ? p[b->centre - 1] : 0, p);
}

double density_of(const struct subject *b, const setting *s, const double *x)
{
    double total = 0, p[PARAMETERS];
    if (!b->term) return b->density(s, x);
    for (int j = 0; j < longer(s); j++) {
        parameters_of(s, j, p);
        total += b->term(x[j], p);
    }
    return total;
}

int uniforms_of(const struct subject *b, const setting *s, const double *x, double *u)
{
    if (!b->term) return b->uniforms(s, x, u);
    for (int j = 0; j < longer(s); j++) u[j] = share_below(component(b, s, j), x[j]);
    return longer(s);
}

double mean_of(const struct subject *b, const setting *s)
{
    double total = 0;
    if (!b->term) return b->mean(s);
    for (int j = 0; j < longer(s); j++) {
        const integral *q = component(b, s, j);
        for (int i = 0; i < CELLS; i++)
            total += piece(q, edge_of(q, i), edge_of(q, i + 1), b->support == CIRCLE ? sin : sigmoid);
    }
    return total;
}

int width_of(const bench *b)
{
    return b->subject->width                     ? b->subject->width(b->setting)
           : b->subject->outcome == bits_outcome ? b->setting->n_a
           : b->subject->outcomes                ? 1
                                                 : longer(b->setting);
}

bool is_continuous(const struct subject *b)
{
    return b->uniforms || b->term;
}

int n_families_known(void)
{
    return N_SUBJECTS;
}
