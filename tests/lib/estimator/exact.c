#include "exact.h"

#include "lib/dist/smoothed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 128 /* of a layer */

/* ---- the numbers */

static const rws_param *find(const rws_params *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, name) == 0) return p->list[i];
    return NULL;
}

static exact_net find_net(const rws_params *p, const char *name)
{
    exact_net net = {0};
    for (;; net.n_layers++) {
        char text[120];
        snprintf(text, sizeof text, "%s.%d.weight", name, 2 * net.n_layers);
        const rws_param *w = find(p, text);
        if (!w) return net;
        snprintf(text, sizeof text, "%s.%d.bias", name, 2 * net.n_layers);
        net.size[net.n_layers] = w->cols;
        net.size[net.n_layers + 1] = w->rows;
        net.weight[net.n_layers] = w->offset;
        net.bias[net.n_layers] = find(p, text)->offset;
    }
}

static size_t place(const rws_params *p, const char *name)
{
    const rws_param *found = find(p, name);
    return found ? found->offset : 0;
}

exact exact_read(const rws_params *p, double mult)
{
    exact m = {
        .C = (int)rws__param_size(find(p, "theta")),
        .mult = mult,
        .n = p->size,
        .value = malloc(p->size * sizeof(double)),
        .theta = place(p, "theta"),
        .scale = place(p, "rho.scale"),
        .log_temperature = place(p, "rho.log_temperature"),
        .guide = find_net(p, "phi.mlp"),
        .control = find_net(p, "rho"),
        .baseline = find_net(p, "baseline"),
    };
    memcpy(m.first, p->first, sizeof m.first);
    for (size_t i = 0; i < p->size; i++) m.value[i] = (double)p->value[i];
    return m;
}

void exact_release(exact *m)
{
    free(m->value);
    *m = (exact){0};
}

/* ---- the model */

double exact_log_sum(const double *l, int n)
{
    double top = -INFINITY, total = 0;
    for (int i = 0; i < n; i++) top = fmax(top, l[i]);
    if (top == -INFINITY) return top;
    for (int i = 0; i < n; i++) total += exp(l[i] - top);
    return top + log(total);
}

static void normalise(double *l, int n)
{
    const double total = exact_log_sum(l, n);
    for (int i = 0; i < n; i++) l[i] -= total;
}

/* h[0] is the input, h[i] the output of layer i. */
static void run_net(const exact *m, const exact_net *net, const double *in, double h[][MAX_WIDTH])
{
    memcpy(h[0], in, (size_t)net->size[0] * sizeof(double));
    for (int i = 0; i < net->n_layers; i++)
        for (int o = 0; o < net->size[i + 1]; o++) {
            const double *w = m->value + net->weight[i] + (size_t)(o * net->size[i]);
            double        total = m->value[net->bias[i] + (size_t)o];
            for (int j = 0; j < net->size[i]; j++) total += w[j] * h[i][j];
            h[i + 1][o] = i + 1 < net->n_layers ? tanh(total) : total;
        }
}

void exact_net_forward(const exact *m, const exact_net *net, const double *in, double *out)
{
    double h[6][MAX_WIDTH];
    run_net(m, net, in, h);
    memcpy(out, h[net->n_layers], (size_t)net->size[net->n_layers] * sizeof(double));
}

void exact_net_backward(const exact *m, const exact_net *net, const double *in, const double *by_out, double *by_in,
                        double *gradient)
{
    double h[6][MAX_WIDTH], by[MAX_WIDTH], below[MAX_WIDTH];
    run_net(m, net, in, h);
    memcpy(by, by_out, (size_t)net->size[net->n_layers] * sizeof(double));
    for (int i = net->n_layers - 1; i >= 0; i--) {
        memset(below, 0, sizeof below);
        for (int o = 0; o < net->size[i + 1]; o++) {
            const double slope = i + 1 < net->n_layers ? 1 - h[i + 1][o] * h[i + 1][o] : 1;
            const size_t row = net->weight[i] + (size_t)(o * net->size[i]);
            if (gradient) gradient[net->bias[i] + (size_t)o] += by[o] * slope;
            for (int j = 0; j < net->size[i]; j++) {
                if (gradient) gradient[row + (size_t)j] += by[o] * slope * h[i][j];
                below[j] += by[o] * slope * m->value[row + (size_t)j];
            }
        }
        memcpy(by, below, sizeof by);
    }
    if (by_in) memcpy(by_in, by, (size_t)net->size[0] * sizeof(double));
}

void exact_truth(int C, double *p)
{
    double total = 0;
    for (int c = 0; c < C; c++) total += c + 5;
    for (int c = 0; c < C; c++) p[c] = (c + 5) / total;
}

double exact_log_normal(double x, double mean)
{
    const double d = (x - mean) / EXACT_SD;
    return -d * d / 2 - log(EXACT_SD * sqrt(2 * M_PI));
}

void exact_log_prior(const exact *m, double *log_pi)
{
    for (int c = 0; c < m->C; c++) log_pi[c] = m->mult * m->value[m->theta + (size_t)c];
    normalise(log_pi, m->C);
}

void exact_log_joint(const exact *m, double x, double *log_p)
{
    exact_log_prior(m, log_p);
    for (int c = 0; c < m->C; c++) log_p[c] += exact_log_normal(x, EXACT_SPACING * c);
}

void exact_log_guide(const exact *m, double x, double *log_q)
{
    exact_net_forward(m, &m->guide, &x, log_q);
    normalise(log_q, m->C);
}

double exact_evidence(int C, const double *log_pi, double x, double *posterior)
{
    double l[EXACT_MAX_C] = {0};
    for (int c = 0; c < C; c++) l[c] = log_pi[c] + exact_log_normal(x, EXACT_SPACING * c);
    const double log_p = exact_log_sum(l, C);
    for (int c = 0; c < C && posterior; c++) posterior[c] = exp(l[c] - log_p);
    return log_p;
}

/* From derivatives by log-probabilities to derivatives by their logits. */
static void to_logits(const double *log_p, const double *by, int C, double *by_logit)
{
    double total = 0;
    for (int c = 0; c < C; c++) total += by[c];
    for (int c = 0; c < C; c++) by_logit[c] = by[c] - total * exp(log_p[c]);
}

void exact_guide_gradient(const exact *m, double x, const double *by, double *gradient)
{
    double log_q[EXACT_MAX_C], by_logit[EXACT_MAX_C];
    exact_log_guide(m, x, log_q);
    to_logits(log_q, by, m->C, by_logit);
    exact_net_backward(m, &m->guide, &x, by_logit, NULL, gradient);
}

void exact_prior_gradient(const exact *m, const double *by, double *gradient)
{
    double log_pi[EXACT_MAX_C], by_logit[EXACT_MAX_C];
    exact_log_prior(m, log_pi);
    to_logits(log_pi, by, m->C, by_logit);
    for (int c = 0; c < m->C; c++) gradient[m->theta + (size_t)c] += m->mult * by_logit[c];
}

/* ---- expectations */

void exact_law_defensive(const exact *m, double x, double delta, exact_law *law)
{
    double log_p[EXACT_MAX_C], log_q[EXACT_MAX_C];
    exact_log_joint(m, x, log_p);
    exact_log_guide(m, x, log_q);
    law->n = law->C = m->C;
    for (int c = 0; c < m->C; c++) {
        law->category[c] = c;
        law->chance[c] = (1 - delta) * exp(log_q[c]) + delta / m->C;
        law->l[c] = log_p[c] - log(law->chance[c]);
    }
}

void exact_law_guide(const exact *m, double x, exact_law *law)
{
    exact_law_defensive(m, x, 0, law);
}

void exact_law_wrong(const exact *m, double x, double delta, exact_law *law)
{
    double    log_p[EXACT_MAX_C], log_q[EXACT_MAX_C];
    exact_law right;
    exact_log_joint(m, x, log_p);
    exact_log_guide(m, x, log_q);
    exact_law_defensive(m, x, delta, &right);
    law->n = m->C * m->C;
    law->C = m->C;
    for (int plain = 0; plain < m->C; plain++)
        for (int used = 0; used < m->C; used++) {
            const int i = plain * m->C + used;
            law->category[i] = used;
            law->chance[i] = exp(log_q[plain]) * ((plain == used ? 1 - delta : 0) + delta / m->C);
            law->l[i] = log_p[used] - log(right.chance[plain]);
        }
}

static double log_mean(const double *l, int K)
{
    return exact_log_sum(l, K) - log(K);
}

void exact_w(const double *l, int K, const double *set, double *a)
{
    (void)set;
    const double total = exact_log_sum(l, K);
    for (int k = 0; k < K; k++) a[k] = exp(l[k] - total);
}

void exact_centred(const double *l, int K, const double *set, double *a)
{
    exact_w(l, K, set, a);
    for (int k = 0; k < K; k++) a[k] -= 1.0 / K;
}

void exact_reinforce(const double *l, int K, const double *set, double *a)
{
    const double L = log_mean(l, K), signal = set ? (L - set[0]) / set[1] : L;
    exact_w(l, K, NULL, a);
    for (int k = 0; k < K; k++) a[k] = signal - a[k];
}

void exact_rloo(const double *l, int K, const double *set, double *a)
{
    const double L = log_mean(l, K);
    exact_w(l, K, set, a);
    for (int k = 0; k < K; k++) {
        double others[EXACT_MAX_K];
        int    n = 0;
        for (int j = 0; j < K; j++)
            if (j != k) others[n++] = l[j];
        a[k] = L - log_mean(others, n) - a[k];
    }
}

/* log( (1/K) (sum_{j != k} w_j + the geometric mean of those) ) */
static double baseline_of(const double *l, int K, int k)
{
    double with_mean[EXACT_MAX_K], total = 0;
    for (int j = 0; j < K; j++)
        if (j != k) total += l[j];
    for (int j = 0; j < K; j++) with_mean[j] = j == k ? total / (K - 1) : l[j];
    return log_mean(with_mean, K);
}

void exact_vimco(const double *l, int K, const double *set, double *a)
{
    const double L = log_mean(l, K);
    exact_w(l, K, set, a);
    for (int k = 0; k < K; k++) a[k] = L - baseline_of(l, K, k) - a[k];
}

void exact_vimco_no_logK(const double *l, int K, const double *set, double *a)
{
    exact_vimco(l, K, set, a);
    for (int k = 0; k < K; k++) a[k] -= log(K);
}

void exact_vimco_air_ref(const double *l, int K, const double *set, double *a)
{
    exact_w(l, K, set, a);
    for (int k = 0; k < K; k++) a[k] = (l[k] - baseline_of(l, K, k)) / K - a[k];
}

/* Calls f for every tuple of K states that can happen. */
static void every_tuple(const exact_law *law, int K,
                        void (*f)(const exact_law *law, const int *state, int K, double chance, void *context),
                        void *context)
{
    int state[EXACT_MAX_K] = {0};
    for (;;) {
        double chance = 1;
        for (int k = 0; k < K; k++) chance *= law->chance[state[k]];
        if (chance > 0) f(law, state, K, chance, context);
        int k = 0;
        while (k < K && ++state[k] == law->n) state[k++] = 0;
        if (k == K) return;
    }
}

typedef struct {
    exact_coefficients a;
    const double      *set;
    double            *by;
} expectation;

static void add_tuple(const exact_law *law, const int *state, int K, double chance, void *context)
{
    const expectation *e = context;
    double             l[EXACT_MAX_K] = {0}, a[EXACT_MAX_K];
    for (int k = 0; k < K; k++) l[k] = law->l[state[k]];
    e->a(l, K, e->set, a);
    for (int k = 0; k < K; k++) e->by[law->category[state[k]]] += chance * a[k];
}

void exact_expect(const exact_law *law, int K, exact_coefficients a, const double *set, double *by)
{
    expectation e = {a, set, by};
    memset(by, 0, (size_t)law->C * sizeof *by);
    every_tuple(law, K, add_tuple, &e);
}

static void add_bound(const exact_law *law, const int *state, int K, double chance, void *context)
{
    double l[EXACT_MAX_K];
    for (int k = 0; k < K; k++) l[k] = law->l[state[k]];
    *(double *)context += chance * log_mean(l, K);
}

double exact_bound(const exact *m, double x, int K)
{
    exact_law law;
    double    total = 0;
    exact_law_guide(m, x, &law);
    every_tuple(&law, K, add_bound, &total);
    return total;
}

/* grad E[L] = E[L sum_k grad log q(z_k)] + E[grad L], where q's part of grad L is -sum_k w_k grad log q(z_k). */
void exact_bound_gradient(const exact *m, double x, int K, double *gradient)
{
    exact_law law;
    double    by[EXACT_MAX_C];
    exact_law_guide(m, x, &law);
    exact_expect(&law, K, exact_reinforce, NULL, by);
    exact_guide_gradient(m, x, by, gradient);
    exact_wake_theta(m, x, K, gradient);
}

void exact_wake_theta(const exact *m, double x, int K, double *gradient)
{
    exact_law law;
    double    by[EXACT_MAX_C];
    exact_law_guide(m, x, &law);
    exact_expect(&law, K, exact_w, NULL, by);
    exact_prior_gradient(m, by, gradient);
}

/* The trapezoidal rule converges faster than any power of the step: the integrand is analytic in a strip and falls like
 * a Gaussian. */
void exact_sleep(const exact *m, double *gradient)
{
    enum { POINTS = 2000 };
    const double reach = 10 * EXACT_SD, step = 2 * reach / POINTS;
    double       log_pi[EXACT_MAX_C];
    exact_log_prior(m, log_pi);
    for (int z = 0; z < m->C; z++)
        for (int i = 0; i <= POINTS; i++) {
            const double x = EXACT_SPACING * z - reach + i * step;
            double       by[EXACT_MAX_C] = {0};
            by[z] = step * exp(log_pi[z] + exact_log_normal(x, EXACT_SPACING * z));
            exact_guide_gradient(m, x, by, gradient);
        }
}

/* ---- the engine's draws */

int exact_draw(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal, const double *log_p, int C)
{
    uint32_t words[4], rest[4], group = k / 8;
    rws__rng_blocks(key, 1, &group, &datum, ordinal, 0, words);
    rws__rng_blocks(key, 1, &k, &datum, ordinal, 1u << 30, rest);
    const int16_t half = (int16_t)(words[k % 8 / 2] >> (16 * (k % 2)) & 0xffff);
    const double  u = (((uint32_t)(half + 32768) << 14) | (rest[0] & 0x3fff)) * 0x1p-30;
    double        sum = 0;
    for (int c = 0; c < C - 1; c++) {
        sum += exp(log_p[c]);
        if (u < sum) return c;
    }
    return C - 1;
}

double exact_draw_normal(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal)
{
    uint32_t words[4], group = k / 4, pair = k & 2;
    rws__rng_blocks(key, 1, &group, &datum, ordinal, 1u << 31, words);
    const double u = (double)rws__unit(words[pair]), v = (double)rws__unit(words[pair + 1]), r = sqrt(-2 * log(u));
    return k & 1 ? r * sin(2 * M_PI * v) : r * cos(2 * M_PI * v);
}

void exact_draw_uniforms(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal, int dim, double *out)
{
    const float clip = 1e-6f;
    uint32_t    words[4];
    for (int i = 0; i < dim; i++) {
        if (i % 4 == 0) rws__rng_blocks(key, 1, &k, &datum, ordinal, (uint32_t)i / 4 + 1, words);
        const float u = rws__unit(words[i % 4]);
        out[i] = (double)(u < clip ? clip : u > 1 - clip ? 1 - clip : u);
    }
}

/* ---- control variates */

/* v(g) of one particle, and dv/dg. */
static double control_value(const exact *m, int control, double x, const double *log_q, const double *g, double *by_g)
{
    const int C = m->C;
    if (control == EXACT_NET) {
        double in[EXACT_MAX_C + 1] = {x}, by_in[EXACT_MAX_C + 1], v;
        memcpy(in + 1, g, (size_t)C * sizeof *g);
        exact_net_forward(m, &m->control, in, &v);
        exact_net_backward(m, &m->control, in, (double[]){1}, by_in, NULL);
        memcpy(by_g, by_in + 1, (size_t)C * sizeof *g);
        return v;
    }
    const double tau = exp(m->value[m->log_temperature]);
    double       ls[EXACT_MAX_C], under_p[EXACT_MAX_C], under_q[EXACT_MAX_C] = {0}, by[EXACT_MAX_C];
    double       mean = 0, total = 0;
    for (int c = 0; c < C; c++) ls[c] = g[c] / tau;
    normalise(ls, C);
    exact_log_prior(m, under_p);
    for (int c = 0; c < C; c++) {
        under_p[c] += ls[c];
        under_q[c] = log_q[c] + ls[c];
        mean += exp(ls[c]) * EXACT_SPACING * c;
    }
    const double log_p = exact_log_sum(under_p, C), log_r = exact_log_sum(under_q, C);
    for (int c = 0; c < C; c++) {
        by[c] = exp(under_p[c] - log_p) - exp(under_q[c] - log_r) +
                exp(ls[c]) * EXACT_SPACING * c * (x - mean) / (EXACT_SD * EXACT_SD);
        total += by[c];
    }
    for (int c = 0; c < C; c++) by_g[c] = (by[c] - exp(ls[c]) * total) / tau;
    return log_p + exact_log_normal(x, mean) - log_r;
}

/* c of K particles, and dc/dv_k. */
static double control_reduce(int control, double scale, const double *v, int K, double *by_v)
{
    double mean = 0;
    if (control == EXACT_REBAR) {
        exact_w(v, K, NULL, by_v);
        for (int k = 0; k < K; k++) by_v[k] *= scale;
        return scale * log_mean(v, K);
    }
    for (int k = 0; k < K; k++) mean += v[k] / K, by_v[k] = 1.0 / K;
    return mean;
}

/* The log-weight h at the point pi of the simplex, and its derivatives there, theta and the guide inside h fixed. */
static double mean_weight(const exact *m, double x, const double *log_q, double *by_s)
{
    double log_pi[EXACT_MAX_C], under_p = 0, under_q = 0, mean = 0;
    exact_log_prior(m, log_pi);
    for (int c = 0; c < m->C; c++) {
        const double s = exp(log_q[c]);
        under_p += s * exp(log_pi[c]);
        under_q += s * s;
        mean += s * EXACT_SPACING * c;
    }
    for (int c = 0; c < m->C; c++)
        by_s[c] =
            exp(log_pi[c]) / under_p - exp(log_q[c]) / under_q + EXACT_SPACING * c * (x - mean) / (EXACT_SD * EXACT_SD);
    return log(under_p) + exact_log_normal(x, mean) - log(under_q);
}

/* by += the derivative of h(pi) by the log-probabilities. Returns the first-order expansion at the choices. */
static double add_expansion(const exact *m, double x, const double *log_q, const int *z, int K, double *by)
{
    double by_s[EXACT_MAX_C], mean = 0;
    double c = mean_weight(m, x, log_q, by_s);
    for (int i = 0; i < m->C; i++) {
        by[i] += exp(log_q[i]) * by_s[i];
        mean += exp(log_q[i]) * by_s[i];
    }
    for (int k = 0; k < K; k++) c += (by_s[z[k]] - mean) / K;
    return c;
}

/* The draws of one particle: perturbed log-probabilities, those given the choice, and the slope of these. */
typedef struct {
    double g[EXACT_MAX_C], gt[EXACT_MAX_C], slope[EXACT_MAX_C];
} perturbed;

/* by += dc(g) - dc(g~) by the log-probabilities. Returns c(g~). */
static double add_control(const exact *m, int control, double scale, double x, const double *log_q, const perturbed *d,
                          int K, double *by)
{
    double v[EXACT_MAX_K] = {0}, vt[EXACT_MAX_K] = {0}, by_v[EXACT_MAX_K], by_vt[EXACT_MAX_K];
    double by_g[EXACT_MAX_K][EXACT_MAX_C], by_gt[EXACT_MAX_K][EXACT_MAX_C];
    for (int k = 0; k < K; k++) {
        v[k] = control_value(m, control, x, log_q, d[k].g, by_g[k]);
        vt[k] = control_value(m, control, x, log_q, d[k].gt, by_gt[k]);
    }
    control_reduce(control, scale, v, K, by_v);
    const double c = control_reduce(control, scale, vt, K, by_vt);
    for (int k = 0; k < K; k++)
        for (int i = 0; i < m->C; i++) by[i] += by_v[k] * by_g[k][i] - by_vt[k] * by_gt[k][i] * d[k].slope[i];
    return c;
}

void exact_control_gradient(const exact *m, int controls, double x, int K, rws_key key, uint32_t datum,
                            double *gradient)
{
    const int C = m->C;
    double    log_q[EXACT_MAX_C], log_p[EXACT_MAX_C], by[EXACT_MAX_C] = {0}, l[EXACT_MAX_K] = {0}, w[EXACT_MAX_K];
    perturbed draws[EXACT_MAX_K];
    int       z[EXACT_MAX_K];
    exact_log_guide(m, x, log_q);
    exact_log_joint(m, x, log_p);
    for (int k = 0; k < K; k++) {
        perturbed *d = &draws[k];
        double     u[EXACT_MAX_C] = {0};
        exact_draw_uniforms(key, datum, (uint32_t)k, 0, C, u);
        z[k] = 0;
        for (int c = 0; c < C; c++) {
            d->g[c] = log_q[c] - log(-log(u[c]));
            if (d->g[c] > d->g[z[k]]) z[k] = c;
        }
        exact_draw_uniforms(key, datum, (uint32_t)k, 1, C, u);
        const double least = -log(u[z[k]]);
        for (int c = 0; c < C; c++) {
            const double other = -log(u[c]) / exp(log_q[c]);
            d->gt[c] = c == z[k] ? -log(least) : -log(other + least);
            d->slope[c] = c == z[k] ? 0 : other / (other + least);
        }
        l[k] = log_p[z[k]] - log_q[z[k]];
    }
    double signal = log_mean(l, K);
    if (controls & EXACT_NET) signal -= add_control(m, EXACT_NET, 1, x, log_q, draws, K, by);
    if (controls & EXACT_REBAR) /* its scale is learned where it is alone */
        signal -= add_control(m, EXACT_REBAR, controls & EXACT_NET ? 1 : m->value[m->scale], x, log_q, draws, K, by);
    if (controls & EXACT_MUPROP) signal -= add_expansion(m, x, log_q, z, K, by);
    exact_w(l, K, NULL, w);
    for (int k = 0; k < K; k++) by[z[k]] += signal - w[k];
    exact_guide_gradient(m, x, by, gradient);
}

/* ---- relaxed choices */

double exact_concrete_density(const double *ls, const double *log_pi, double tau, int C)
{
    double sum = 0, y[EXACT_MAX_C];
    for (int c = 0; c < C; c++) {
        sum += log_pi[c] - (tau + 1) * ls[c];
        y[c] = log_pi[c] - tau * ls[c];
    }
    return lgamma(C) + (C - 1) * log(tau) + sum - C * exact_log_sum(y, C);
}

static double soft_mass(const double *ls, const double *log_pi, int C)
{
    double y[EXACT_MAX_C];
    for (int c = 0; c < C; c++) y[c] = ls[c] + log_pi[c];
    return exact_log_sum(y, C);
}

double exact_concrete_bound(const exact *m, rws_relaxation prior, double tau, double x, int K, rws_key key,
                            uint32_t datum)
{
    const int C = m->C;
    double    log_q[EXACT_MAX_C], log_pi[EXACT_MAX_C], l[EXACT_MAX_K];
    exact_log_guide(m, x, log_q);
    exact_log_prior(m, log_pi);
    for (int k = 0; k < K; k++) {
        double ls[EXACT_MAX_C], mean = 0;
        int    top = 0;
        exact_draw_uniforms(key, datum, (uint32_t)k, 0, C, ls);
        for (int c = 0; c < C; c++) ls[c] = (log_q[c] - log(-log(ls[c]))) / tau;
        normalise(ls, C);
        for (int c = 0; c < C; c++) {
            mean += exp(ls[c]) * EXACT_SPACING * c;
            if (ls[c] > ls[top]) top = c;
        }
        l[k] = exact_log_normal(x, mean);
        switch (prior) {
        case RWS_RELAX_ARGMAX: l[k] += log_pi[top] - exact_concrete_density(ls, log_q, tau, C); break;
        case RWS_RELAX_SOFT: l[k] += soft_mass(ls, log_pi, C) - soft_mass(ls, log_q, C); break;
        case RWS_RELAX_DENSITY:
            l[k] += exact_concrete_density(ls, log_pi, tau, C) - exact_concrete_density(ls, log_q, tau, C);
            break;
        }
    }
    return log_mean(l, K);
}

static double smoothed_weight(const exact *m, rws_smoothing how, double b, double x, const double *u)
{
    double log_q[EXACT_MAX_C], log_pi[EXACT_MAX_C], s[EXACT_MAX_C], mean = 0;
    exact_log_guide(m, x, log_q);
    exact_log_prior(m, log_pi);
    const double l = smoothed_choice(how, b, m->C, log_q, log_pi, u, s);
    for (int c = 0; c < m->C; c++) mean += s[c] * EXACT_SPACING * c;
    return l + exact_log_normal(x, mean);
}

double exact_smoothed_bound(const exact *m, rws_smoothing how, double b, double x, int K, rws_key key, uint32_t datum)
{
    double l[EXACT_MAX_K] = {0}, u[EXACT_MAX_C] = {0};
    for (int k = 0; k < K; k++) {
        exact_draw_uniforms(key, datum, (uint32_t)k, 0, m->C - 1, u);
        l[k] = smoothed_weight(m, how, b, x, u);
    }
    return log_mean(l, K);
}

double exact_smoothed_at(const exact *m, rws_smoothing how, double b, double x, double u)
{
    return smoothed_weight(m, how, b, x, &u);
}
