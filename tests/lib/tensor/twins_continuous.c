/* twins_continuous.c - the twins of the ops of continuous distributions, and the shapes to try them with. */
#include "twins.h"

static void normal_draw(const row *r)
{
    EACH(at(r, 0, j) + at(r, 1, j) * at(r, 2, j));
}

static void normal_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < widest(r); j++) {
        const double sd = at(r, 2, j);
        r->out[0] += log(exp(-pow(at(r, 0, j) - at(r, 1, j), 2) / (2 * sd * sd)) / (sd * sqrt(2 * M_PI)));
    }
}

static void uniform_draw(const row *r)
{
    EACH((1 - at(r, 2, j)) * at(r, 0, j) + at(r, 2, j) * at(r, 1, j));
}

static void uniform_density(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < widest(r); j++) r->out[0] += log(1 / (at(r, 2, j) - at(r, 1, j)));
}

static void exponential_draw(const row *r)
{
    EACH(-log(at(r, 1, j)) / at(r, 0, j));
}

static void exponential_density(const row *r)
{
    SUM_EACH(log(at(r, 1, j) * exp(-at(r, 1, j) * at(r, 0, j))));
}

static void log_normal_draw(const row *r)
{
    EACH(exp(at(r, 0, j) + at(r, 1, j) * at(r, 2, j)));
}

static double normal_at(double x, double mean, double sd)
{
    return exp(-pow((x - mean) / sd, 2) / 2) / (sd * sqrt(2 * M_PI));
}

static void log_normal_density(const row *r)
{
    SUM_EACH(log(normal_at(log(at(r, 0, j)), at(r, 1, j), at(r, 2, j)) / at(r, 0, j)));
}

static void laplace_draw(const row *r)
{
    EACH(at(r, 0, j) + at(r, 1, j) * (at(r, 2, j) < 0.5 ? log(2 * at(r, 2, j)) : -log(2 - 2 * at(r, 2, j))));
}

static void laplace_density(const row *r)
{
    SUM_EACH(log(exp(-fabs(at(r, 0, j) - at(r, 1, j)) / at(r, 2, j)) / (2 * at(r, 2, j))));
}

static void half_normal_draw(const row *r)
{
    EACH(at(r, 0, j) * fabs(at(r, 1, j)));
}

static void half_normal_density(const row *r)
{
    SUM_EACH(log(2 * normal_at(at(r, 0, j), 0, at(r, 1, j))));
}

static void gumbel_scale_draw(const row *r)
{
    EACH(at(r, 0, j) - at(r, 1, j) * log(-log(at(r, 2, j))));
}

static void gumbel_scale_density(const row *r)
{
    SUM_EACH(-(at(r, 0, j) - at(r, 1, j)) / at(r, 2, j) - exp(-(at(r, 0, j) - at(r, 1, j)) / at(r, 2, j)) -
             log(at(r, 2, j)));
}

static double normal_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

/* The root of an increasing function of x and up to four numbers, by bisection. */
static double root(double (*f)(double x, const double *p), const double *p, double low, double high)
{
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        if (f(middle, p) < 0) low = middle;
        else high = middle;
    }
    return (low + high) / 2;
}

static double truncated_gap(double x, const double *p) /* mean, sd, low, high, u */
{
    const double low = normal_below((p[2] - p[0]) / p[1]), high = normal_below((p[3] - p[0]) / p[1]);
    return (normal_below((x - p[0]) / p[1]) - low) / (high - low) - p[4];
}

static void truncated_normal_draw(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        double p[5];
        for (int s = 0; s < 5; s++) p[s] = at(r, s, j);
        r->out[j] = root(truncated_gap, p, p[2], p[3]);
    }
}

static void truncated_normal_density(const row *r)
{
    SUM_EACH(log(normal_at(at(r, 0, j), at(r, 1, j), at(r, 2, j)) /
                 (normal_below((at(r, 4, j) - at(r, 1, j)) / at(r, 2, j)) -
                  normal_below((at(r, 3, j) - at(r, 1, j)) / at(r, 2, j)))));
}

/* x^a e^-x / Gamma(a + 1) (1 + x / (a + 1) + …), for every x that the twins meet */
static double gamma_below(double a, double x)
{
    double term = 1, sum = 1;
    for (int n = 1; n < 400; n++) sum += term *= x / (a + n);
    return exp(a * log(x) - x - lgamma(a + 1)) * sum;
}

static double gamma_gap(double log_x, const double *p) /* shape, u */
{
    return gamma_below(p[0], exp(log_x)) - p[1];
}

static double gamma_quantile(double shape, double u)
{
    return exp(root(gamma_gap, (double[]){shape, u}, -60, 4));
}

static void gamma_draw(const row *r)
{
    EACH(gamma_quantile(at(r, 0, j), at(r, 2, j)) / at(r, 1, j));
}

static double gamma_at(double x, double a, double rate)
{
    return pow(rate, a) * pow(x, a - 1) * exp(-rate * x) / tgamma(a);
}

static void gamma_density(const row *r)
{
    SUM_EACH(log(gamma_at(at(r, 0, j), at(r, 1, j), at(r, 2, j))));
}

static void inverse_gamma_draw(const row *r)
{
    EACH(at(r, 1, j) / gamma_quantile(at(r, 0, j), at(r, 2, j)));
}

static void inverse_gamma_density(const row *r)
{
    SUM_EACH(log(gamma_at(1 / at(r, 0, j), at(r, 1, j), at(r, 2, j)) / pow(at(r, 0, j), 2)));
}

/* The series of the incomplete Beta function, for x up to 1/2. */
static double beta_series(double a, double b, double x)
{
    double term = 1, sum = 1 / a;
    for (int n = 1; n < 80; n++) {
        term *= (n - b) / n * x;
        sum += term / (a + n);
    }
    return pow(x, a) * sum * exp(lgamma(a + b) - lgamma(a) - lgamma(b));
}

static double beta_gap(double t, const double *p) /* a, b, u */
{
    const double x = 1 / (1 + exp(-t)), y = 1 / (1 + exp(t));
    return (x < 0.5 ? beta_series(p[0], p[1], x) : 1 - beta_series(p[1], p[0], y)) - p[2];
}

static void beta_draw(const row *r)
{
    EACH(1 / (1 + exp(-root(beta_gap, (double[]){at(r, 0, j), at(r, 1, j), at(r, 2, j)}, -40, 40))));
}

static void beta_density(const row *r)
{
    SUM_EACH(log(pow(at(r, 0, j), at(r, 1, j) - 1) * pow(1 - at(r, 0, j), at(r, 2, j) - 1) *
                 tgamma(at(r, 1, j) + at(r, 2, j)) / (tgamma(at(r, 1, j)) * tgamma(at(r, 2, j)))));
}

static void student_t_draw(const row *r)
{
    EACH(at(r, 1, j) +
         at(r, 2, j) * at(r, 4, j) * sqrt(at(r, 0, j) / 2 / gamma_quantile(at(r, 0, j) / 2, at(r, 3, j))));
}

static void student_t_density(const row *r)
{
    SUM_EACH(log(tgamma((at(r, 1, j) + 1) / 2) / tgamma(at(r, 1, j) / 2) / sqrt(M_PI * at(r, 1, j)) / at(r, 3, j) *
                 pow(1 + pow((at(r, 0, j) - at(r, 2, j)) / at(r, 3, j), 2) / at(r, 1, j), -(at(r, 1, j) + 1) / 2)));
}

static void dirichlet_draw(const row *r)
{
    double total = 0;
    for (int j = 0; j < r->dim; j++) total += r->out[j] = gamma_quantile(at(r, 0, j), at(r, 1, j));
    for (int j = 0; j < r->dim; j++) r->out[j] /= total;
}

static void dirichlet_density(const row *r)
{
    double sum = 0, product = 1;
    for (int j = 0; j < r->in_dim[1]; j++) {
        sum += r->in[1][j];
        product *= pow(r->in[0][j], r->in[1][j] - 1) / tgamma(r->in[1][j]);
    }
    r->out[0] = log(tgamma(sum) * product);
}

/* The integral of exp(k cos x) over the circle, where a sum is exact. */
static double circle(double k)
{
    enum { N = 32 };
    double total = 0;
    for (int i = 0; i < N; i++) total += exp(k * cos(2 * M_PI * i / N)) * 2 * M_PI / N;
    return total;
}

static double von_mises_gap(double x, const double *p) /* concentration, u, the integral over the circle */
{
    enum { N = 60 };
    double total = 0; /* Simpson */
    for (int i = 0; i <= N; i++)
        total += (i == 0 || i == N ? 1 : i % 2 ? 4 : 2) * exp(p[0] * cos(-M_PI + (x + M_PI) * i / N));
    return total * (x + M_PI) / (3 * N) / p[2] - p[1];
}

static void von_mises_draw(const row *r)
{
    EACH(remainder(at(r, 0, j) +
                       root(von_mises_gap, (double[]){at(r, 1, j), at(r, 2, j), circle(at(r, 1, j))}, -M_PI, M_PI),
                   2 * M_PI));
}

static void von_mises_density(const row *r)
{
    SUM_EACH(at(r, 2, j) * cos(at(r, 0, j) - at(r, 1, j)) - log(circle(at(r, 2, j))));
}

/* Entry (i, j) of a Cholesky factor of n rows, as a matrix or as its lower triangle. */
static double factor_at(const row *r, int s, int n, int i, int j)
{
    if (j > i) return 0;
    return r->in[s][r->in_dim[s] == n * n ? i * n + j : i * (i + 1) / 2 + j];
}

static void multivariate_normal_draw(const row *r)
{
    for (int i = 0; i < r->dim; i++) {
        r->out[i] = r->in[0][i];
        for (int j = 0; j <= i; j++) r->out[i] += factor_at(r, 1, r->dim, i, j) * r->in[2][j];
    }
}

/* y = (L L^T)^-1 y by elimination; returns the determinant. */
static double solve_covariance(const row *r, int s, int n, double *y)
{
    double a[4][4], determinant = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i][j] = 0;
            for (int k = 0; k < n; k++) a[i][j] += factor_at(r, s, n, i, k) * factor_at(r, s, n, j, k);
        }
    for (int k = 0; k < n; k++) {
        determinant *= a[k][k];
        for (int i = k + 1; i < n; i++) {
            const double by = a[i][k] / a[k][k];
            for (int j = k; j < n; j++) a[i][j] -= by * a[k][j];
            y[i] -= by * y[k];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) y[i] -= a[i][j] * y[j];
        y[i] /= a[i][i];
    }
    return determinant;
}

static void multivariate_normal_density(const row *r)
{
    const int n = r->in_dim[1];
    double    y[4], total = 0;
    for (int i = 0; i < n; i++) y[i] = r->in[0][i] - r->in[1][i];
    const double determinant = solve_covariance(r, 2, n, y);
    for (int i = 0; i < n; i++) total += y[i] * (r->in[0][i] - r->in[1][i]);
    r->out[0] = -total / 2 - log(pow(2 * M_PI, n) * determinant) / 2;
}

static void multivariate_normal_pull(const row *r)
{
    for (int i = 0; i < r->dim; i++) r->out[i] = r->in[0][i];
    solve_covariance(r, 1, r->dim, r->out);
}

ALONG(exponential, 0)
ALONG(log_normal, 0)
ALONG(laplace, 0)
ALONG(half_normal, 0)
ALONG(gumbel_scale, 0)
ALONG(truncated_normal, 0)
ALONG(gamma, 0)
ALONG(inverse_gamma, 0)
ALONG(beta, 0)
ALONG(student_t, 0)
ALONG(von_mises, 0)

static const subject list[] = {
    {"normal_draw",
     normal_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(REAL, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(REAL, 1, POSITIVE, 5, NOISE, 5)},
      {33, THREE(REAL, 33, POSITIVE, 1, NOISE, 33)}}},
    {"normal_density",
     normal_density,
     {{1, THREE(REAL, 1, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 5, REAL, 5, POSITIVE, 5)},
      {1, THREE(REAL, 5, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 5, REAL, 1, POSITIVE, 5)},
      {1, THREE(REAL, 1, REAL, 5, POSITIVE, 1)},
      {1, THREE(REAL, 33, REAL, 33, POSITIVE, 1)}}},
    {"uniform_draw",
     uniform_draw,
     {{1, THREE(LOW, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(LOW, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(LOW, 1, POSITIVE, 5, NOISE, 5)},
      {33, THREE(LOW, 33, POSITIVE, 1, NOISE, 33)}}},
    {"uniform_density",
     uniform_density,
     {{1, THREE(INNER, 1, LOW, 1, POSITIVE, 1)},
      {1, THREE(INNER, 5, LOW, 5, POSITIVE, 5)},
      {1, THREE(INNER, 5, LOW, 1, POSITIVE, 5)},
      {1, THREE(INNER, 33, LOW, 33, POSITIVE, 1)}}},
    {"exponential_draw",
     exponential_draw,
     {{1, TWO(POSITIVE, 1, NOISE, 1)}, {5, TWO(POSITIVE, 5, NOISE, 5)}, {5, TWO(POSITIVE, 1, NOISE, 5)}}},
    {"exponential_density",
     exponential_density,
     {{1, TWO(POSITIVE, 1, POSITIVE, 1)}, {1, TWO(POSITIVE, 5, POSITIVE, 5)}, {1, TWO(POSITIVE, 5, POSITIVE, 1)}}},
    {"log_normal_draw",
     log_normal_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(REAL, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(REAL, 1, POSITIVE, 5, NOISE, 5)}}},
    {"log_normal_density",
     log_normal_density,
     {{1, THREE(POSITIVE, 1, REAL, 1, POSITIVE, 1)},
      {1, THREE(POSITIVE, 5, REAL, 5, POSITIVE, 5)},
      {1, THREE(POSITIVE, 5, REAL, 1, POSITIVE, 1)}}},
    {"laplace_draw",
     laplace_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(REAL, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(REAL, 1, POSITIVE, 5, NOISE, 5)}}},
    {"laplace_density",
     laplace_density,
     {{1, THREE(LOW, 1, POSITIVE, 1, POSITIVE, 1)},
      {1, THREE(POSITIVE, 5, LOW, 5, POSITIVE, 5)},
      {1, THREE(LOW, 5, POSITIVE, 1, POSITIVE, 1)}}},
    {"half_normal_draw",
     half_normal_draw,
     {{1, TWO(POSITIVE, 1, NOISE, 1)}, {5, TWO(POSITIVE, 5, NOISE, 5)}, {5, TWO(POSITIVE, 1, NOISE, 5)}}},
    {"half_normal_density",
     half_normal_density,
     {{1, TWO(POSITIVE, 1, POSITIVE, 1)}, {1, TWO(POSITIVE, 5, POSITIVE, 5)}, {1, TWO(POSITIVE, 5, POSITIVE, 1)}}},
    {"gumbel_scale_draw",
     gumbel_scale_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {5, THREE(REAL, 5, POSITIVE, 5, NOISE, 5)},
      {5, THREE(REAL, 1, POSITIVE, 5, NOISE, 5)}}},
    {"gumbel_scale_density",
     gumbel_scale_density,
     {{1, THREE(REAL, 1, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 5, REAL, 5, POSITIVE, 5)},
      {1, THREE(REAL, 5, REAL, 1, POSITIVE, 1)}}},
    {"truncated_normal_draw",
     truncated_normal_draw,
     {{1, {{REAL, 1}, {POSITIVE, 1}, {LOW, 1}, {POSITIVE, 1}, {NOISE, 1}}},
      {5, {{REAL, 5}, {POSITIVE, 1}, {LOW, 5}, {POSITIVE, 1}, {NOISE, 5}}}}},
    {"truncated_normal_density",
     truncated_normal_density,
     {{1, {{INNER, 1}, {REAL, 1}, {POSITIVE, 1}, {LOW, 1}, {POSITIVE, 1}}},
      {1, {{INNER, 5}, {REAL, 5}, {POSITIVE, 1}, {LOW, 5}, {POSITIVE, 1}}}}},
    {"gamma_draw",
     gamma_draw,
     {{1, THREE(POSITIVE, 1, POSITIVE, 1, NOISE, 1)}, {3, THREE(POSITIVE, 3, POSITIVE, 1, NOISE, 3)}}},
    {"gamma_density",
     gamma_density,
     {{1, THREE(POSITIVE, 1, POSITIVE, 1, POSITIVE, 1)}, {1, THREE(POSITIVE, 5, POSITIVE, 5, POSITIVE, 1)}}},
    {"inverse_gamma_draw",
     inverse_gamma_draw,
     {{1, THREE(POSITIVE, 1, POSITIVE, 1, NOISE, 1)}, {3, THREE(POSITIVE, 3, POSITIVE, 1, NOISE, 3)}}},
    {"inverse_gamma_density",
     inverse_gamma_density,
     {{1, THREE(POSITIVE, 1, POSITIVE, 1, POSITIVE, 1)}, {1, THREE(POSITIVE, 5, POSITIVE, 5, POSITIVE, 1)}}},
    {"beta_draw",
     beta_draw,
     {{1, THREE(POSITIVE, 1, POSITIVE, 1, NOISE, 1)}, {3, THREE(POSITIVE, 3, POSITIVE, 1, NOISE, 3)}}},
    {"beta_density",
     beta_density,
     {{1, THREE(INSIDE, 1, POSITIVE, 1, POSITIVE, 1)}, {1, THREE(INSIDE, 5, POSITIVE, 5, POSITIVE, 1)}}},
    {"student_t_draw",
     student_t_draw,
     {{1, {{POSITIVE, 1}, {REAL, 1}, {POSITIVE, 1}, {NOISE, 1}, {NOISE, 1}}},
      {3, {{POSITIVE, 3}, {REAL, 1}, {POSITIVE, 1}, {NOISE, 3}, {NOISE, 3}}}}},
    {"student_t_density",
     student_t_density,
     {{1, {{REAL, 1}, {POSITIVE, 1}, {REAL, 1}, {POSITIVE, 1}}},
      {1, {{REAL, 5}, {POSITIVE, 1}, {REAL, 5}, {POSITIVE, 5}}}}},
    {"dirichlet_draw", dirichlet_draw, {{1, TWO(POSITIVE, 1, NOISE, 1)}, {5, TWO(POSITIVE, 5, NOISE, 5)}}},
    {"dirichlet_density", dirichlet_density, {{1, TWO(SHARES, 2, POSITIVE, 2)}, {1, TWO(SHARES, 5, POSITIVE, 5)}}},
    {"von_mises_draw",
     von_mises_draw,
     {{1, THREE(SMALL, 1, POSITIVE, 1, NOISE, 1)}, {3, THREE(SMALL, 3, POSITIVE, 1, NOISE, 3)}}},
    {"von_mises_density",
     von_mises_density,
     {{1, THREE(REAL, 1, REAL, 1, POSITIVE, 1)}, {1, THREE(REAL, 5, REAL, 5, POSITIVE, 1)}}},
    {"multivariate_normal_draw",
     multivariate_normal_draw,
     {{1, THREE(REAL, 1, POSITIVE, 1, NOISE, 1)},
      {3, THREE(REAL, 3, POSITIVE, 9, NOISE, 3)},
      {3, THREE(REAL, 3, POSITIVE, 6, NOISE, 3)}}},
    {"multivariate_normal_density",
     multivariate_normal_density,
     {{1, THREE(REAL, 1, REAL, 1, POSITIVE, 1)},
      {1, THREE(REAL, 3, REAL, 3, POSITIVE, 9)},
      {1, THREE(REAL, 3, REAL, 3, POSITIVE, 6)}},
     20},
    {"multivariate_normal_pull", /* gradients pass through y only, so the factor is noise */
     multivariate_normal_pull,
     {{1, TWO(REAL, 1, NOISE, 1)}, {2, TWO(REAL, 2, NOISE, 4)}, {2, TWO(REAL, 2, NOISE, 3)}},
     20},
    {"exponential_density_tangent",
     exponential_density_tangent,
     {{1, {{POSITIVE, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {POSITIVE, 3}, {SMALL, 3}, {SMALL, 3}}}},
     20},
    {"log_normal_density_tangent",
     log_normal_density_tangent,
     {{1, {{POSITIVE, 1}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {REAL, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"laplace_density_tangent",
     laplace_density_tangent,
     {{1, {{POSITIVE, 1}, {LOW, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {LOW, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"half_normal_density_tangent",
     half_normal_density_tangent,
     {{1, {{POSITIVE, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {POSITIVE, 3}, {SMALL, 3}, {SMALL, 3}}}},
     20},
    {"gumbel_scale_density_tangent",
     gumbel_scale_density_tangent,
     {{1, {{REAL, 1}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{REAL, 3}, {REAL, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"truncated_normal_density_tangent",
     truncated_normal_density_tangent,
     {{1,
       {{INNER, 1},
        {REAL, 1},
        {POSITIVE, 1},
        {LOW, 1},
        {POSITIVE, 1},
        {SMALL, 1},
        {SMALL, 1},
        {SMALL, 1},
        {SMALL, 1},
        {SMALL, 1}}},
      {1,
       {{INNER, 3},
        {REAL, 3},
        {POSITIVE, 1},
        {LOW, 1},
        {POSITIVE, 1},
        {SMALL, 3},
        {SMALL, 3},
        {SMALL, 1},
        {SMALL, 1},
        {SMALL, 1}}}},
     20},
    {"gamma_density_tangent",
     gamma_density_tangent,
     {{1, {{POSITIVE, 1}, {POSITIVE, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {POSITIVE, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"inverse_gamma_density_tangent",
     inverse_gamma_density_tangent,
     {{1, {{POSITIVE, 1}, {POSITIVE, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{POSITIVE, 3}, {POSITIVE, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"beta_density_tangent",
     beta_density_tangent,
     {{1, {{INSIDE, 1}, {POSITIVE, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{INSIDE, 3}, {POSITIVE, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"student_t_density_tangent",
     student_t_density_tangent,
     {{1, {{REAL, 1}, {POSITIVE, 1}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{REAL, 3}, {POSITIVE, 3}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}, {SMALL, 1}}}},
     20},
    {"von_mises_density_tangent",
     von_mises_density_tangent,
     {{1, {{REAL, 1}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{REAL, 3}, {REAL, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
};
const subject_table continuous_twins = {list, COUNT(list)};
