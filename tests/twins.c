/* twins.c - the twins of all ops, and the shapes to try them with. */
#include "twins.h"

#include "base/rng.h"
#include "smoothed.h"

#include <string.h>

static double at(const row *r, int s, int j)
{
    return r->in[s][r->in_dim[s] == 1 ? 0 : j];
}

static int widest(const row *r)
{
    int n = 1;
    for (int s = 0; s < r->n_in; s++)
        if (r->in_dim[s] > n) n = r->in_dim[s];
    return n;
}

/* The derivative of log Gamma: the sum of 1 / k - 1 / (k + x - 1) over k = 1, 2, … and minus Euler's constant. The rest of
 * the sum after N terms is (x - 1) / N (1 - x / (2 N)) with an error below 1e-9. */
static double slope_of_lgamma(double x)
{
    enum { N = 4000 };
    double total = -0.57721566490153286 + (x - 1) / N * (1 - x / (2.0 * N));
    for (int k = N; k > 0; k--) total += 1.0 / k - 1 / (k + x - 1);
    return total;
}

/* The sum of 1 / (k + x)^2 over k = 0, 1, … */
static double bend_of_lgamma(double x)
{
    enum { N = 4000 };
    double total = 1 / (N + x - 0.5);
    for (int k = N - 1; k >= 0; k--) total += 1 / ((k + x) * (k + x));
    return total;
}

double function(int f, double x)
{
    switch ((rws_function)f) {
    case RWS_LINEAR: return x;
    case RWS_TANH: return tanh(x);
    case RWS_RELU: return fmax(x, 0);
    case RWS_ELU: return x > 0 ? x : exp(x) - 1;
    case RWS_SIGMOID: return 1 / (1 + exp(-x));
    case RWS_SOFTPLUS: return log(1 + exp(x));
    case RWS_EXP: return exp(x);
    case RWS_LOG: return log(x);
    case RWS_SQRT: return sqrt(x);
    case RWS_SQUARE: return pow(x, 2);
    case RWS_SIN: return sin(x);
    case RWS_COS: return cos(x);
    case RWS_ABS: return x < 0 ? -x : x;
    case RWS_LOG_SIGMOID: return log(1 / (1 + exp(-x)));
    case RWS_LOG1P: return log(1 + x);
    case RWS_EXPM1: return exp(x) - 1;
    case RWS_LGAMMA: return lgamma(x);
    case RWS_DIGAMMA: return slope_of_lgamma(x);
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

/* f'(x) where f(x) = y */
static double slope(int f, double y)
{
    switch ((rws_function)f) {
    case RWS_LINEAR: return 1;
    case RWS_TANH: return 1 / pow(cosh(atanh(y)), 2);
    case RWS_RELU: return y > 0;
    case RWS_ELU: return y > 0 ? 1 : exp(log1p(y));
    case RWS_SIGMOID: return 1 / (2 + 2 * cosh(log(y / (1 - y))));
    case RWS_SOFTPLUS: return 1 / (1 + 1 / (exp(y) - 1));
    case RWS_EXP: return exp(log(y));
    case RWS_LOG: return 1 / exp(y);
    default: break; /* the others have slopes of x */
    }
    fail_msg("no twin for function %d", f);
    return 0;
}

#define EACH(expression) \
    for (int j = 0; j < r->dim; j++) r->out[j] = (expression)

static void affine(const row *r)
{
    EACH(r->s * at(r, 0, j) + r->t);
}

static void add(const row *r)
{
    EACH(at(r, 0, j) + at(r, 1, j));
}

static void sub(const row *r)
{
    EACH(at(r, 0, j) - at(r, 1, j));
}

static void mul(const row *r)
{
    EACH(at(r, 0, j) * at(r, 1, j));
}

static void quotient(const row *r)
{
    EACH(at(r, 0, j) / at(r, 1, j));
}

static void apply(const row *r)
{
    EACH(function(r->k, at(r, 0, j)));
}

static void apply_tangent(const row *r)
{
    EACH(slope(r->k, at(r, 0, j)) * at(r, 1, j));
}

static double map_slope(int f, double x)
{
    switch ((rws_function)f) {
    case RWS_SQRT: return 1 / (2 * sqrt(x));
    case RWS_SQUARE: return 2 * x;
    case RWS_SIN: return cos(x);
    case RWS_COS: return -sin(x);
    case RWS_ABS: return x < 0 ? -1 : 1;
    case RWS_LOG_SIGMOID: return 1 / (1 + exp(x));
    case RWS_LOG1P: return 1 / (1 + x);
    case RWS_EXPM1: return exp(x);
    case RWS_LGAMMA: return slope_of_lgamma(x);
    case RWS_DIGAMMA: return bend_of_lgamma(x);
    default: fail_msg("no twin for function %d", f); return 0;
    }
}

static void map_tangent(const row *r)
{
    EACH(map_slope(r->k, at(r, 0, j)) * at(r, 1, j));
}

static void smaller(const row *r)
{
    EACH(fmin(at(r, 0, j), at(r, 1, j)));
}

static void larger(const row *r)
{
    EACH(fmax(at(r, 0, j), at(r, 1, j)));
}

static void power(const row *r)
{
    EACH(exp(at(r, 1, j) * log(at(r, 0, j))));
}

static void cumulative(const row *r)
{
    for (int j = 0; j < r->dim; j++) r->out[j] = r->in[0][j] + (j ? r->out[j - 1] : 0);
}

static void total(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        r->out[j] = 0;
        for (int s = 0; s < r->n_in; s++) r->out[j] += at(r, s, j);
    }
}

static void matrix_row(const row *r)
{
    EACH(r->in[0][(int)r->in[1][0] * r->dim + j]);
}

static void greater(const row *r)
{
    EACH(at(r, 0, j) > at(r, 1, j));
}

static void argmax(const row *r)
{
    int best = 0;
    for (int j = 0; j < r->in_dim[0]; j++)
        if (r->in[0][j] > r->in[0][best]) best = j;
    r->out[0] = best;
}

static void onehot(const row *r)
{
    EACH(j == (int)r->in[0][0]);
}

static void concat(const row *r)
{
    int to = 0;
    for (int s = 0; s < r->n_in; s++)
        for (int j = 0; j < r->in_dim[s]; j++) r->out[to++] = r->in[s][j];
}

static void slice(const row *r)
{
    EACH(r->in[0][r->k + j]);
}

static void sum(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j];
}

/* The log-softmax of x, or of x / t. */
static void log_softmax(const row *r)
{
    const double t = r->n_in > 1 ? r->in[1][0] : 1;
    double       total = 0;
    for (int j = 0; j < r->dim; j++) total += exp(r->in[0][j] / t);
    EACH(r->in[0][j] / t - log(total));
}

/* The mean of input 1 by the softmax of input 2, or of the sum of inputs 2 and 3. Input 0 holds that softmax and is not
 * read. */
static double mean_of(const row *r, bool two)
{
    double total = 0, weighted = 0;
    for (int j = 0; j < r->in_dim[1]; j++) {
        const double e = exp(r->in[2][j] + (two ? r->in[3][j] : 0));
        total += e;
        weighted += e * r->in[1][j];
    }
    return weighted / total;
}

static void log_softmax_tangent(const row *r)
{
    const double t = r->n_in > 3 ? r->in[3][0] : 1;
    EACH((r->in[1][j] - mean_of(r, false)) / t);
}

static void softmax_dot(const row *r)
{
    r->out[0] = mean_of(r, r->n_in > 3);
}

static void log_softmax_pick(const row *r)
{
    double total = 0;
    for (int j = 0; j < r->in_dim[0]; j++) total += exp(r->in[0][j]);
    r->out[0] = r->in[0][(int)r->in[1][0]] - log(total);
}

static void dot(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j] * r->in[1][j];
}

static void exp_dot(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++)
        r->out[0] += exp(r->in[0][j]) * r->in[1][j] * (r->n_in > 2 ? r->in[2][j] : 1);
}

static void log_sum_exp(const row *r)
{
    double total = 0;
    for (int j = 0; j < r->in_dim[0]; j++) total += exp(r->in[0][j] + (r->n_in > 1 ? r->in[1][j] : 0));
    r->out[0] = log(total);
}

static void pick(const row *r)
{
    r->out[0] = r->in[0][(int)r->in[1][0]];
}

static void dense(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        double y = r->b ? r->b[j] : 0;
        for (int s = 1; s < r->n_in; s++) y += r->in[s][j];
        for (int i = 0; r->in[0] && i < r->in_dim[0]; i++) y += r->w[j * r->cols + r->offset + i] * r->in[0][i];
        r->out[j] = function(r->k, y);
    }
}

static void bits(const row *r)
{
    for (int j = 0; j < r->dim; j++) {
        double y = r->b ? r->b[j] : 0;
        for (int i = 0; i < r->in_dim[0]; i++) y += r->w[j * r->cols + r->offset + i] * (r->s * r->in[0][i] + r->t);
        r->out[j] = y;
    }
}

static void embed(const row *r)
{
    const int index = r->offset + (int)r->in[0][0];
    EACH(r->k ? r->w[index * r->cols + j] : r->w[j * r->cols + index]);
}

static void gru(const row *r)
{
    const int     H = r->dim;
    const double *a = r->in[0], *c = r->in[1], *h = r->in[2];
    for (int j = 0; j < H; j++) {
        const double reset = function(RWS_SIGMOID, a[j] + c[j]), update = function(RWS_SIGMOID, a[H + j] + c[H + j]);
        const double fresh = tanh(a[2 * H + j] + reset * c[2 * H + j]);
        r->out[j] = (1 - update) * fresh + update * h[j];
    }
}

/* One point of a picture of rows x cols, bilinear: missing neighbours count as zero. */
static double point(const double *image, int rows, int cols, double y, double x)
{
    const double fx = floor(x), fy = floor(y), dx = fx + 1 - x, dy = fy + 1 - y;
    double       total = 0;
    if (!(x > -1 && x < cols && y > -1 && y < rows)) return 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const int row = (int)fy + i, col = (int)fx + j;
            if (row < 0 || row >= rows || col < 0 || col >= cols) continue;
            total += (i ? 1 - dy : dy) * (j ? 1 - dx : dx) * (image ? image[row * cols + col] : 1);
        }
    return total;
}

static double unit(int j, int n)
{
    return -1 + 2.0 * j / (n - 1);
}

double written(int j, int n, int n_source, double scale, double shift)
{
    return ((unit(j, n) - shift) / scale + 1) * (n_source - 1) / 2;
}

double seen(int j, int n, int n_source, double scale, double shift)
{
    return (scale * unit(j, n) + shift + 1) * (n_source - 1) / 2;
}

static void attend(const row *r)
{
    const int     rows = r->k, cols = r->in_dim[0] / rows, out_rows = r->offset, out_cols = r->dim / out_rows;
    const double *w = r->in[1];
    EACH(point(r->in[0], rows, cols, seen(j / out_cols, out_rows, rows, w[1], w[3]),
               seen(j % out_cols, out_cols, cols, w[0], w[2])));
}

static double placed(const double *glimpse, int rows, int cols, const double *w, int out_rows, int out_cols, int j)
{
    return point(glimpse, rows, cols, written(j / out_cols, out_rows, rows, w[1], w[3]),
                 written(j % out_cols, out_cols, cols, w[0], w[2]));
}

static void place(const row *r)
{
    EACH(placed(r->in[0], r->k, r->in_dim[0] / r->k, r->in[1], r->offset, r->dim / r->offset, j));
}

static void cover(const row *r)
{
    EACH(placed(NULL, r->k, (int)r->t, r->in[0], r->offset, r->dim / r->offset, j));
}

/* The logit of pixel j; inputs from `at` are front, back, glimpse, where, … */
static double pixel(const row *r, int at, int j)
{
    double y = 0, a = 0;
    for (int s = at + 2; s < r->n_in; s += 2) {
        const int cols = r->in_dim[s] / r->k, out_cols = r->in_dim[at] / r->offset;
        y += placed(r->in[s], r->k, cols, r->in[s + 1], r->offset, out_cols, j);
        a += placed(NULL, r->k, cols, r->in[s + 1], r->offset, out_cols, j);
    }
    const double mask = function(RWS_SIGMOID, 20 * a - 10);
    return fmin(16, fmax(-88, y + mask * r->in[at][j] + (mask - 1) * r->in[at + 1][j]));
}

static void picture(const row *r)
{
    EACH(pixel(r, 0, j));
}

static void picture_bits(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j] * pixel(r, 1, j) - log1p(exp(pixel(r, 1, j)));
}

static void clip(const row *r)
{
    EACH(fmin(r->t, fmax(r->s, at(r, 0, j))));
}

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

/* The float whose bits are a word. Small words are denormal floats, which survive the conversion to double and back. */
float float_of(uint32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
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
        if (j % 4 == 0) rws_rng_blocks(key, 1, &word[0], &word[1], word[2], (uint32_t)j / 4 + 1, block);
        r->out[j] = (double)rws_unit(block[j % 4]) < (1 - r->s) * function(RWS_SIGMOID, r->in[0][j]) + r->s / 2;
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

#define SUM_EACH(expression) \
    r->out[0] = 0;           \
    for (int j = 0; j < widest(r); j++) r->out[0] += (expression)

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

/* The derivative of a twin along directions, which are its second half of inputs; inputs before `first` do not move. The
 * error of the difference is of the order h^4. */
static void along(const row *r, void (*twin)(const row *r), int first)
{
    static const double weight[] = {1 / 12.0, -8 / 12.0, 8 / 12.0, -1 / 12.0}, step[] = {-2, -1, 1, 2};
    const double        h = 1e-3;
    const int           n = r->n_in / 2;
    double              moved[RWS_OP_INPUTS][8], total = 0;
    for (int k = 0; k < 4; k++) {
        row there = *r;
        there.n_in = n;
        for (int s = 0; s < n; s++) {
            const int dim = r->in_dim[s] > r->in_dim[n + s] ? r->in_dim[s] : r->in_dim[n + s];
            for (int j = 0; j < dim; j++) moved[s][j] = at(r, s, j) + (s < first ? 0 : h * step[k] * at(r, n + s, j));
            there.in[s] = moved[s];
            there.in_dim[s] = dim;
        }
        twin(&there);
        total += weight[k] * r->out[0] / h;
    }
    r->out[0] = total;
}

#define ALONG(name_, first_)                          \
    static void name_##_density_tangent(const row *r) \
    {                                                 \
        along(r, name_##_density, first_);            \
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
ALONG(poisson, 1)
ALONG(geometric, 1)
ALONG(binomial, 2)
ALONG(negative_binomial, 1)
ALONG(von_mises, 0)

static void delta_density_tangent(const row *r)
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

#define ONE(a)   \
    {            \
        {        \
            a, 1 \
        }        \
    }
#define TWO(a, n, b, m) \
    {                   \
        {a, n},         \
        {               \
            b, m        \
        }               \
    }
#define THREE(a, n, b, m, c, o) \
    {                           \
        {a, n}, {b, m},         \
        {                       \
            c, o                \
        }                       \
    }

const subject subjects[] = {
    {"affine",
     affine,
     {{1, ONE(REAL), .s = 2, .t = -1}, {5, {{REAL, 5}}, .s = -0.5f, .t = 3}, {33, {{REAL, 33}}, .s = 1}}},
    {"detach", slice, {{1, ONE(REAL)}, {5, {{REAL, 5}}}}},
    {"add",
     add,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"sub",
     sub,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"mul",
     mul,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"div",
     quotient,
     {{1, TWO(REAL, 1, POSITIVE, 1)},
      {5, TWO(REAL, 5, LOW, 5)},
      {5, TWO(REAL, 1, POSITIVE, 5)},
      {33, TWO(REAL, 33, POSITIVE, 1)}}},
    {"apply",
     apply,
     {{1, ONE(FOR_X), .each_function = true},
      {5, {{FOR_X, 5}}, .each_function = true},
      {33, {{FOR_X, 33}}, .each_function = true}}},
    {"apply_tangent",
     apply_tangent,
     {{1, TWO(FOR_Y, 1, REAL, 1), .each_function = true},
      {5, TWO(FOR_Y, 5, REAL, 5), .each_function = true},
      {5, TWO(FOR_Y, 5, REAL, 1), .each_function = true},
      {33, TWO(FOR_Y, 33, REAL, 33), .each_function = true}}},
    {"map", apply, {{1, ONE(FOR_X), .each_map = true}, {5, {{FOR_X, 5}}, .each_map = true}}},
    {"map_tangent",
     map_tangent,
     {{1, TWO(FOR_X, 1, REAL, 1), .each_map = true},
      {5, TWO(FOR_X, 5, REAL, 5), .each_map = true},
      {5, TWO(FOR_X, 5, REAL, 1), .each_map = true}}},
    {"min",
     smaller,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"max",
     larger,
     {{1, TWO(REAL, 1, REAL, 1)},
      {5, TWO(REAL, 5, REAL, 5)},
      {5, TWO(REAL, 1, REAL, 5)},
      {33, TWO(REAL, 33, REAL, 1)}}},
    {"power",
     power,
     {{1, TWO(POSITIVE, 1, REAL, 1)},
      {5, TWO(POSITIVE, 5, REAL, 5)},
      {5, TWO(POSITIVE, 1, REAL, 5)},
      {33, TWO(POSITIVE, 33, REAL, 1)}}},
    {"cumulative", cumulative, {{1, ONE(REAL)}, {5, {{REAL, 5}}}, {33, {{REAL, 33}}}}},
    {"total",
     total,
     {{1, ONE(REAL)},
      {5, THREE(REAL, 5, REAL, 1, REAL, 5)},
      {33, {{REAL, 33}, {REAL, 33}, {REAL, 33}, {REAL, 1}, {REAL, 33}, {REAL, 33}, {REAL, 33}, {REAL, 33}}}}},
    {"row",
     matrix_row,
     {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1},
      {5, TWO(REAL, 20, INDEX, 1), .n_index = 4},
      {33, TWO(REAL, 66, INDEX, 1), .n_index = 2}}},
    {"clip", clip, {{5, {{REAL, 5}}, .s = -1, .t = 1.25f}, {33, {{REAL, 33}}, .s = -0.5f, .t = 9}}},
    {"greater", greater, {{1, TWO(REAL, 1, REAL, 1)}, {5, TWO(REAL, 5, REAL, 1)}, {33, TWO(REAL, 1, REAL, 33)}}},
    {"argmax", argmax, {{1, ONE(REAL)}, {1, {{REAL, 5}}}, {1, {{REAL, 33}}}}},
    {"onehot", onehot, {{1, ONE(INDEX), .n_index = 1}, {5, ONE(INDEX), .n_index = 5}, {33, ONE(INDEX), .n_index = 33}}},
    {"concat",
     concat,
     {{1, ONE(REAL)},
      {9, THREE(REAL, 3, REAL, 1, REAL, 5)},
      {13, {{REAL, 1}, {REAL, 2}, {REAL, 3}, {REAL, 1}, {REAL, 1}, {REAL, 1}, {REAL, 1}, {REAL, 3}}}}},
    {"slice", slice, {{1, ONE(REAL)}, {2, {{REAL, 5}}, .k = 1}, {1, {{REAL, 5}}, .k = 4}, {17, {{REAL, 33}}, .k = 9}}},
    {"sum", sum, {{1, ONE(REAL)}, {1, {{REAL, 5}}}, {1, {{REAL, 33}}}}},
    {"log_softmax",
     log_softmax,
     {{1, ONE(REAL)}, {2, {{REAL, 2}}}, {5, {{REAL, 5}}}, {33, {{REAL, 33}}}, {13, TWO(REAL, 13, POSITIVE, 1)}}},
    {"log_softmax_pick",
     log_softmax_pick,
     {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1},
      {1, TWO(REAL, 5, INDEX, 1), .n_index = 5},
      {1, TWO(REAL, 20, INDEX, 1), .n_index = 20}}},
    {"log_softmax_tangent",
     log_softmax_tangent,
     {{1, THREE(SOFTMAX, 1, REAL, 1, REAL, 1)},
      {13, THREE(SOFTMAX, 13, REAL, 13, REAL, 13)},
      {20, {{SOFTMAX, 20}, {REAL, 20}, {REAL, 20}, {POSITIVE, 1}}}}},
    {"dot", dot, {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 33, REAL, 33)}}},
    {"exp_dot",
     exp_dot,
     {{1, TWO(REAL, 1, REAL, 1)}, {1, TWO(REAL, 20, REAL, 20)}, {1, THREE(REAL, 13, REAL, 13, REAL, 13)}}},
    {"log_sum_exp",
     log_sum_exp,
     {{1, ONE(REAL)}, {1, {{REAL, 2}}}, {1, {{REAL, 33}}}, {1, TWO(REAL, 5, REAL, 5)}, {1, TWO(REAL, 20, REAL, 20)}}},
    {"softmax_dot",
     softmax_dot,
     {{1, THREE(SOFTMAX, 1, REAL, 1, REAL, 1)},
      {1, THREE(SOFTMAX, 5, REAL, 5, REAL, 5)},
      {1, {{SOFTMAX, 20}, {REAL, 20}, {REAL, 20}, {REAL, 20}}}}},
    {"pick", pick, {{1, TWO(REAL, 1, INDEX, 1), .n_index = 1}, {1, TWO(REAL, 5, INDEX, 1), .n_index = 5}}},
    {"bits",
     bits,
     {{1, {{FLAG, 1}}, .s = 1, .rows = 1, .cols = 1},
      {5, {{FLAG, 9}}, .s = 2, .t = -1, .rows = 5, .cols = 9, .bias = true},
      {33, {{FLAG, 40}}, .s = 2, .t = -1, .rows = 33, .cols = 51, .offset = 7, .bias = true}}},
    {"dense",
     dense,
     {{4, {{SMALL, 3}}, .rows = 4, .cols = 3, .bias = true, .each_function = true},
      {1, ONE(SMALL), .rows = 1, .cols = 1, .bias = true, .each_function = true},
      {9, {{SMALL, 1}}, .rows = 9, .cols = 1, .k = RWS_TANH},              /* one input … */
      {9, {{SMALL, 2}}, .rows = 9, .cols = 7, .offset = 3, .k = RWS_TANH}, /* … and two */
      {1, {{SMALL, 6}}, .rows = 1, .cols = 6, .bias = true, .k = RWS_SIGMOID},
      {7, {{SMALL, 5}}, .rows = 7, .cols = 11, .offset = 4}, /* some columns of W, without bias */
      {5, {{SMALL, 1}}, .rows = 5, .cols = 4, .offset = 2},  /* one column of W */
      {6, {{ABSENT, 0}, {SMALL, 6}, {SMALL, 6}}, .rows = 6, .cols = 2, .bias = true, .k = RWS_TANH},
      {5,
       {{SMALL, 3}, {SMALL, 5}, {SMALL, 5}, {SMALL, 5}},
       .rows = 5,
       .cols = 8,
       .offset = 5,
       .bias = true,
       .k = RWS_TANH},
      {3,
       {{SMALL, 2}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}, {SMALL, 3}},
       .rows = 3,
       .cols = 2},
      {33, {{SMALL, 17}, {SMALL, 33}}, .rows = 33, .cols = 17, .bias = true, .k = RWS_TANH}}},
    {"embed",
     embed,
     {{1, ONE(INDEX), .rows = 1, .cols = 1, .n_index = 1, .t = 1},
      {4, ONE(INDEX), .rows = 4, .cols = 9, .offset = 2, .n_index = 5, .t = 5},
      {3, ONE(INDEX), .rows = 7, .cols = 3, .k = 1, .n_index = 7},
      {1, ONE(INDEX), .rows = 5, .cols = 1, .k = 1, .n_index = 5}}},
    {"gru",
     gru,
     {{1, THREE(REAL, 3, REAL, 3, REAL, 1)},
      {5, THREE(REAL, 15, REAL, 15, REAL, 5)},
      {17, THREE(REAL, 51, REAL, 51, REAL, 17)}}},
    {"attend",
     attend,
     {{12, TWO(REAL, 30, WHERE, 4), .k = 5, .offset = 3, .source_cols = 6},
      {4, TWO(REAL, 63, WHERE, 4), .k = 9, .offset = 2, .source_cols = 7},
      {60, TWO(REAL, 12, WHERE, 4), .k = 4, .offset = 6, .source_cols = 3}}},
    {"place",
     place,
     {{56, TWO(REAL, 12, WHERE, 4), .k = 3, .offset = 8, .source_cols = 4},
      {9, TWO(REAL, 30, WHERE, 4), .k = 6, .offset = 3, .source_cols = 5},
      {51, TWO(REAL, 4, WHERE, 4), .k = 2, .offset = 3, .source_cols = 2}}},
    {"cover",
     cover,
     {{56, {{WHERE, 4}}, .k = 3, .t = 4, .offset = 8, .source_cols = 4},
      {51, {{WHERE, 4}}, .k = 2, .t = 2, .offset = 3, .source_cols = 2}}},
    {"picture",
     picture,
     {{20, TWO(REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {56, {{REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {51,
       {{STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2}}},
    {"picture_bits",
     picture_bits,
     {{1, THREE(BIT, 20, REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {1, {{BIT, 56}, {REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {1,
       {{BIT, 51}, {STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2},
      {1, {{NOISE, 36}, {REAL, 36}, {REAL, 36}, {REAL, 12}, {WHERE, 4}}, .k = 4, .offset = 4, .source_cols = 3}},
     .slack = 10},
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
    {"von_mises_density_tangent",
     von_mises_density_tangent,
     {{1, {{REAL, 1}, {REAL, 1}, {POSITIVE, 1}, {SMALL, 1}, {SMALL, 1}, {SMALL, 1}}},
      {1, {{REAL, 3}, {REAL, 3}, {POSITIVE, 1}, {SMALL, 3}, {SMALL, 3}, {SMALL, 1}}}},
     20},
    {"delta_density_tangent",
     delta_density_tangent,
     {{1, {{INDEX, 1}, {INDEX, 1}, {ZERO, 1}, {ZERO, 1}}, .n_index = 4},
      {1, {{INDEX, 3}, {INDEX, 3}, {ZERO, 3}, {ZERO, 3}}, .n_index = 4}},
     20},
};
const int n_subjects = COUNT(subjects);

const subject *subject_of(const char *name)
{
    for (int i = 0; i < n_subjects; i++)
        if (strcmp(subjects[i].name, name) == 0) return &subjects[i];
    for (int i = 0; i < n_matrix_subjects; i++)
        if (strcmp(matrix_subjects[i].name, name) == 0) return &matrix_subjects[i];
    return NULL;
}
