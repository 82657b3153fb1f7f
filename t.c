/* test_air.c - Attend, Infer, Repeat against a twin of it that is small enough to be integrated.
 *
 * The tiny AIR sees 4 x 4 pixels, at most two objects of 2 x 2, each with one number to say what it is and one to say
 * where (a shift across). Its twin below is plain double arithmetic on the parameters by name. Sums over n and integrals
 * over (where, what) by the trapezoidal rule give log p(x), its gradient and the posterior; enumeration of n under fixed
 * noise gives the bound that VIMCO's gradient is of.
 */
#include "model/model.h"
#include "run/run.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE, GLIMPSE = 2, N = 2, HIDDEN = 8, PRIOR = 10 };

/* ---- a trainer for one image of ours */

static float image[PIXELS] = {0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0};

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        memcpy(fields[0] + i * PIXELS, image, sizeof image);
        fields[1][i] = 1;
    }
    return RWS_OK;
}

static const char *const small[] = {"images=blocks", "canvas=4", "glimpse=2", "what=1",
                                    "max_steps=2",   "free=1",   "hidden=8"};

static float *number(rws_trainer *t, const char *name, int i)
{
    const rws_params *p = rws_trainer_state_of(t).params;
    for (int k = 0; k < p->n; k++)
        if (strcmp(p->list[k]->name, name) == 0) return &p->list[k]->value[i];
    fail_msg("There is no parameter %s.", name);
    return NULL;
}

/* Parameters as they start, and moved by noise so that no gradient is zero by accident. The background becomes one that
 * a lit pixel can live with, and the guide, if asked for, wide enough for importance sampling. */
static rws_trainer *tiny(rws_config c, const char *set, bool wide)
{
    static rws_model model;
    rws_trainer     *t;
    rws_error        err = {""};
    die              d = {17};
    model = rws_model_air;
    model.data = data;
    c.model = "air";
    if (!c.method) c.method = "ww";
    if (!c.seed) c.seed = 1;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) c.set[c.n_set++] = small[i];
    if (set) c.set[c.n_set++] = set;
    if (rws_trainer_new_with(&c, &model, &t, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_params *p = rws_trainer_state_of(t).params;
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++) {
            float *v = &p->list[i]->value[k];
            if (strcmp(p->list[i]->name, "theta.background") == 0) *v = rws_param_size(p->list[i]) > 1 ? 2 : -1;
            if (strcmp(p->list[i]->name, "theta.mean") == 0) *v = 0.5f;
            *v += (float)die_between(&d, -0.4, 0.4);
        }
    if (wide) {
        for (int i = 0; i < 2 * HIDDEN; i++) {
            *number(t, "phi.where.4.weight", i) *= 0.2f;
            *number(t, "phi.what.4.weight", i) *= 0.2f;
        }
        *number(t, "phi.where.4.bias", 1) += 4;
        *number(t, "phi.what.4.bias", 1) += 1;
    }
    rws_trainer_state_loaded(t);
    return t;
}

/* ---- the twin */

typedef struct {
    const rws_params *params;
    double           *value; /* the flat vector */
    double            x[PIXELS];
    double            s; /* of a geometric prior; 0: categorical */
    bool              fixed;
} twin;

static twin twin_new(rws_trainer *t)
{
    twin m = {.params = rws_trainer_state_of(t).params};
    m.value = malloc(m.params->size * sizeof *m.value);
    for (size_t i = 0; i < m.params->size; i++) m.value[i] = (double)m.params->value[i];
    for (int i = 0; i < PIXELS; i++) m.x[i] = (double)image[i];
    return m;
}

static const rws_param *find(const twin *m, const char *name)
{
    for (int i = 0; i < m->params->n; i++)
        if (strcmp(m->params->list[i]->name, name) == 0) return m->params->list[i];
    return NULL;
}

static const double *values(const twin *m, const char *name)
{
    const rws_param *p = find(m, name);
    if (!p) fail_msg("no parameter \"%s\"", name);
    return m->value + p->offset;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double log_add(double a, double b)
{
    const double top = fmax(a, b);
    return top == -INFINITY ? top : top + log(exp(a - top) + exp(b - top));
}

static double log_normal(double x, double mean, double sd)
{
    return -0.5 * pow((x - mean) / sd, 2) - log(sd) - 0.5 * log(2 * M_PI);
}

/* out += W in + b */
static void affine(const twin *m, const char *layer, const char *w, const char *b, const double *in, int n_in,
                   double *out, int n_out)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", layer, w);
    const double *weight = values(m, name);
    snprintf(name, sizeof name, "%s.%s", layer, b);
    const double *bias = values(m, name);
    for (int o = 0; o < n_out; o++) {
        out[o] += bias[o];
        for (int i = 0; i < n_in; i++) out[o] += weight[o * n_in + i] * in[i];
    }
}

static void elu(double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : expm1(x[i]);
}

/* ELU between the layers, none after the last. */
static void mlp(const twin *m, const char *name, const double *in, const int *sizes, int n_sizes, double *out)
{
    double a[2][16] = {{0}};
    for (int i = 0; i + 1 < n_sizes; i++) {
        char layer[96];
        snprintf(layer, sizeof layer, "%s.%d", name, 2 * i);
        double *to = i + 2 < n_sizes ? a[i % 2] : out;
        for (int j = 0; j < sizes[i + 1]; j++) to[j] = 0;
        affine(m, layer, "weight", "bias", in, sizes[i], to, sizes[i + 1]);
        if (i + 2 < n_sizes) elu(to, sizes[i + 1]);
        in = to;
    }
}

/* spec 4.2: bilinear, and missing neighbours count as zero */
static double point(const double *picture, int side, double y, double x)
{
    const double fx = floor(x), fy = floor(y);
    double       total = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const int row = (int)fy + i, col = (int)fx + j;
            if (row < 0 || row >= side || col < 0 || col >= side) continue;
            total += (i ? y - fy : fy + 1 - y) * (j ? x - fx : fx + 1 - x) * (picture ? picture[row * side + col] : 1);
        }
    return total;
}

static double unit(int j, int n)
{
    return -1 + 2.0 * j / (n - 1);
}

#define SCALE 0.5 /* the setting's default */

static void read_glimpse(const twin *m, double where, double *out)
{
    for (int i = 0; i < GLIMPSE * GLIMPSE; i++)
        out[i] = point(m->x, SIDE, (SCALE * unit(i / GLIMPSE, GLIMPSE) + 1) * (SIDE - 1) / 2,
                       (SCALE * unit(i % GLIMPSE, GLIMPSE) + tanh(where) + 1) * (SIDE - 1) / 2);
}

/* An object: what it adds to the canvas and what of it it covers. */
typedef struct {
    double where, what, y[PIXELS], a[PIXELS];
} object;

static void place(const twin *m, object *o)
{
    double glimpse[GLIMPSE * GLIMPSE];
    mlp(m, "theta.decoder", &o->what, (int[]){1, HIDDEN, HIDDEN, GLIMPSE * GLIMPSE}, 4, glimpse);
    for (int i = 0; i < GLIMPSE * GLIMPSE; i++) glimpse[i] *= 0.25;
    for (int i = 0; i < PIXELS; i++) {
        const double y = (unit(i / SIDE, SIDE) / SCALE + 1) * (GLIMPSE - 1) / 2;
        const double x = ((unit(i % SIDE, SIDE) - tanh(o->where)) / SCALE + 1) * (GLIMPSE - 1) / 2;
        o->y[i] = point(glimpse, GLIMPSE, y, x);
        o->a[i] = point(NULL, GLIMPSE, y, x);
    }
}

typedef struct {
    double front[PIXELS], back[PIXELS];
} ground;

static ground background(const twin *m)
{
    const rws_param *mean = find(m, "theta.mean");
    const double    *dark = values(m, "theta.background");
    ground           g;
    for (int i = 0; i < PIXELS; i++) {
        const double p = mean ? fmin(1 - 1e-4, fmax(1e-4, m->value[mean->offset + (size_t)i])) : 0;
        g.front[i] = mean ? log(p) - log(1 - p) : dark[0];
        g.back[i] = mean ? dark[i] : -dark[0];
    }
    return g;
}

static double log_likelihood(const twin *m, const ground *g, const object *const *objects, int n)
{
    double total = 0;
    for (int i = 0; i < PIXELS; i++) {
        double y = 0, a = 0;
        for (int t = 0; t < n; t++) y += objects[t]->y[i], a += objects[t]->a[i];
        const double mask = sigmoid(20 * a - 10);
        const double l = fmin(16, fmax(-88, y + mask * g->front[i] + (mask - 1) * g->back[i]));
        total += m->x[i] * l - softplus(l);
    }
    return total;
}

static double log_prior(const twin *m, int n)
{
    if (m->s > 0) return n * log(m->s) + log1p(-m->s);
    const double *l = values(m, "theta.steps");
    return l[n] - log_add(log_add(l[0], l[1]), l[2]);
}

static void where_prior(const twin *m, int n, double *mean, double *sd)
{
    double in[1 + N] = {0}, h[PRIOR] = {0}, none[PRIOR] = {0}, y = 0, out[2] = {0};
    *mean = 0, *sd = 1;
    if (m->fixed) return;
    in[0] = values(m, "theta.where.start")[0];
    for (int i = 0; i < n; i++) in[1 + i] = 1;
    affine(m, "theta.where.in", "weight", "bias", in, 1 + N, h, PRIOR);
    elu(h, PRIOR);
    affine(m, "theta.where.x", "weight", "bias", none, PRIOR, &y, 1);
    affine(m, "theta.where.h", "weight", "bias", h, PRIOR, &y, 1);
    y = tanh(y);
    affine(m, "theta.where.out", "weight", "bias", &y, 1, out, 2);
    *mean = out[0], *sd = softplus(out[1]) + 0.01;
}

/* What the guide says at a step, and its state there. */
typedef struct {
    double h[HIDDEN], more, mean, sd; /* more: a logit */
} step;

static step take_step(const twin *m, const double *e, const double *h, double what, double where)
{
    double in[HIDDEN + 3], out[2];
    step   s = {.more = 0};
    memcpy(in, e, HIDDEN * sizeof *in);
    in[HIDDEN] = what, in[HIDDEN + 1] = where, in[HIDDEN + 2] = 1;
    affine(m, "phi.cell", "weight_ih", "bias_ih", in, HIDDEN + 3, s.h, HIDDEN);
    affine(m, "phi.cell", "weight_hh", "bias_hh", h, HIDDEN, s.h, HIDDEN);
    for (int i = 0; i < HIDDEN; i++) s.h[i] = tanh(s.h[i]);
    mlp(m, "phi.more", s.h, (int[]){HIDDEN, HIDDEN / 2, HIDDEN / 4, 1}, 4, &s.more);
    s.more += 1;
    mlp(m, "phi.where", s.h, (int[]){HIDDEN, HIDDEN, HIDDEN, 2}, 4, out);
    s.mean = out[0], s.sd = softplus(out[1] - 3) + 0.01;
    return s;
}

static void encode(const twin *m, double *e)
{
    mlp(m, "phi.encoder", m->x, (int[]){PIXELS, HIDDEN, HIDDEN}, 3, e);
    elu(e, HIDDEN);
}

/* mean and sd of what, at a place */
static void look(const twin *m, double where, double *mean, double *sd)
{
    double glimpse[GLIMPSE * GLIMPSE], out[2];
    read_glimpse(m, where, glimpse);
    mlp(m, "phi.what", glimpse, (int[]){GLIMPSE * GLIMPSE, HIDDEN, HIDDEN, 2}, 4, out);
    *mean = out[0], *sd = softplus(out[1]) + 0.01;
}

/* ---- integrals */

/* The mask rises from nothing to all while where moves by a tenth, so nodes are dense in the middle: where = sinh(s). */
enum { WHERES = 48, WHATS = 20, NODES = WHERES * WHATS };
#define REACH 5.0

static double where_at(int i)
{
    return sinh(asinh(REACH) * unit(i / WHATS, WHERES));
}

static double what_at(int i)
{
    return REACH * unit(i % WHATS, WHATS);
}

static double log_volume(int i)
{
    const double s = 2 * asinh(REACH) / (WHERES - 1), what = 2 * REACH / (WHATS - 1);
    return log(s * sqrt(1 + pow(where_at(i), 2)) * what);
}

static object *grid(const twin *m)
{
    object *o = malloc(NODES * sizeof *o);
    for (int i = 0; i < NODES; i++) {
        o[i].where = where_at(i);
        o[i].what = what_at(i);
        place(m, &o[i]);
    }
    return o;
}

/* The joint density of n, its objects and the image, times the volume of a node. */
typedef struct {
    double none, one[NODES], (*two)[NODES];
} table;

static double integrate(const twin *m, table *t)
{
    const ground g = background(m);
    object      *o = grid(m);
    double       mean[N + 1], sd[N + 1], at[N + 1][NODES], total = 0;
    for (int n = 1; n <= N; n++) {
        where_prior(m, n, &mean[n], &sd[n]);
        for (int i = 0; i < NODES; i++)
            at[n][i] = log_normal(o[i].where, mean[n], sd[n]) + log_normal(o[i].what, 0, 1) + log_volume(i);
    }
    const double none = log_prior(m, 0) + log_likelihood(m, &g, NULL, 0); /* the scale of all */
    total = 1;
    if (t) t->none = 1;
    for (int i = 0; i < NODES; i++) {
        const object *pair[] = {&o[i], NULL};
        const double  one = exp(log_prior(m, 1) + at[1][i] + log_likelihood(m, &g, pair, 1) - none);
        total += one;
        if (t) t->one[i] = one;
        for (int j = 0; j <= i; j++) {
            double two = 0;
            pair[1] = &o[j];
            if (at[2][i] + at[2][j] > -30) /* else nothing to speak of */
                two = exp(log_prior(m, 2) + at[2][i] + at[2][j] + log_likelihood(m, &g, pair, 2) - none);
            total += i == j ? two : 2 * two;
            if (t) t->two[i][j] = t->two[j][i] = two;
        }
    }
    free(o);
    return none + log(total);
}

static double log_evidence(twin *m)
{
    return integrate(m, NULL);
}

/* E log q under the posterior that the table holds. */
static const table *posterior;

static double expected_log_q(twin *m)
{
    double e[HIDDEN], total, weight, mean[WHERES], sd[WHERES];
    encode(m, e);
    const step   first = take_step(m, e, values(m, "phi.h0"), 0, 0);
    const double no = -softplus(first.more), yes = -softplus(-first.more);
    for (int i = 0; i < WHERES; i++) look(m, where_at(i * WHATS), &mean[i], &sd[i]);
    total = posterior->none * no, weight = posterior->none;
    for (int i = 0; i < NODES; i++) {
        const int    at = i / WHATS;
        const double where = where_at(i), what = what_at(i);
        const double here = yes + log_normal(where, first.mean, first.sd) + log_normal(what, mean[at], sd[at]);
        const step   then = take_step(m, e, first.h, what, where);
        total += posterior->one[i] * (here - softplus(then.more));
        weight += posterior->one[i];
        for (int j = 0; j < NODES; j++) {
            const int    next = j / WHATS;
            const double p = posterior->two[i][j];
            if (p < 1e-13) continue;
            total += p * (here - softplus(-then.more) + log_normal(where_at(j), then.mean, then.sd) +
                          log_normal(what_at(j), mean[next], sd[next]));
            weight += p;
        }
    }
    return total / weight;
}

/* ---- directions: one for each parameter, all of whose numbers it moves */

enum { DIRECTIONS = 64 };

static void direction(const rws_param *p, double *d)
{
    die dice = {p->offset + 1};
    for (size_t i = 0; i < rws_param_size(p); i++) d[i] = die_between(&dice, -1, 1);
}

static double along(const rws_param *p, const float *gradient)
{
    double d[4096], total = 0;
    direction(p, d);
    for (size_t i = 0; i < rws_param_size(p); i++) total += d[i] * (double)gradient[p->offset + i];
    return total;
}

/* Of a function of the twin, by central differences. */
static double slope(twin *m, const rws_param *p, double (*f)(twin *m))
{
    const double h = 1e-4;
    double       d[4096], up, down;
    direction(p, d);
    for (size_t i = 0; i < rws_param_size(p); i++) m->value[p->offset + i] += h * d[i];
    up = f(m);
    for (size_t i = 0; i < rws_param_size(p); i++) m->value[p->offset + i] -= 2 * h * d[i];
    down = f(m);
    for (size_t i = 0; i < rws_param_size(p); i++) m->value[p->offset + i] += h * d[i];
    return (up - down) / (2 * h);
}

/* Mean and standard error, over draws of the trainer's gradient, along every parameter's direction. */
typedef struct {
    double mean[DIRECTIONS], error[DIRECTIONS];
} estimate;

static estimate estimate_gradient(rws_trainer *t, int draws)
{
    const rws_params *p = rws_trainer_state_of(t).params;
    float            *g = malloc(p->size * sizeof *g);
    estimate          e = {{0}};
    rws_error         err = {""};
    assert_true(p->n <= DIRECTIONS);
    for (int k = 0; k < draws; k++) {
        if (rws_trainer_gradient(t, RWS_TRAIN, (uint64_t)k, g, &err) != RWS_OK) fail_msg("%s", err.text);
        for (int i = 0; i < p->n; i++) {
            const double x = along(p->list[i], g);
            e.mean[i] += x / draws;
            e.error[i] += x * x / draws;
        }
    }
    for (int i = 0; i < p->n; i++) e.error[i] = sqrt((e.error[i] - e.mean[i] * e.mean[i]) / (draws - 1));
    free(g);
    return e;
}

static void expect(const char *what, const rws_param *p, double got, double want, double error, double slack)
{
    if (getenv("AIR_SHOW")) printf("%-10s %-24s %12.6f %12.6f  se %.6f\n", what, p->name, got, want, error);
    if (!(fabs(got - want) <= 5 * error + slack))
        fail_msg("%s along %s: %.6f, not %.6f (standard error %.6f)", what, p->name, got, want, error);
}

/* ---- tests */

static double metric(rws_trainer *t, const char *name)
{
    rws_measures m;
    rws_error    err = {""};
    if (rws_trainer_evaluate(t, &m, &err) != RWS_OK) fail_msg("%s", err.text);
    for (int i = 0; i < m.n; i++)
        if (strcmp(rws_trainer_metric_name(t, i), name) == 0) return m.value[i];
    fail_msg("There is no metric %s.", name);
    return 0;
}

/* Every prior and background, and a grey image: the bound of many particles is the evidence. */
static void bound_is_evidence(void **state)
{
    (void)state;
    const struct {
        const char *set;
        double      s;
        bool        fixed, gray;
    } cases[] = {{NULL, 0},
                 {"steps=geometric_fixed", 0.75},
                 {"steps=geometric_anneal", 1 - 1e-7},
                 {"where=fixed", 0, true},
                 {"bg=const", 0},
                 {"air_gray=1", 0, false, true}};
    float kept[PIXELS];
    memcpy(kept, image, sizeof kept);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < PIXELS && cases[i].gray; k++) image[k] = 0.1f + 0.05f * (float)k;
        rws_trainer *t = tiny((rws_config){.particles = 40000, .n_test = 1}, cases[i].set, true);
        twin         m = twin_new(t);
        m.s = cases[i].s;
        m.fixed = cases[i].fixed;
        const double got = metric(t, "log_evidence"), want = log_evidence(&m), ess = 40000 * metric(t, "ess");
        if (getenv("AIR_SHOW")) printf("%-24s %.5f %.5f ess %.0f\n", cases[i].set ? cases[i].set : "", got, want, ess);
        if (!(fabs(got - want) < 5 / sqrt(ess) + 2e-3))
            fail_msg("%s: the bound is %.5f, the evidence %.5f", cases[i].set, got, want);
        free(m.value);
        rws_trainer_free(t);
    }
    memcpy(image, kept, sizeof kept);
}

/* With many particles wake-theta is the gradient of log p(x), and wake-phi that of E log q under the posterior. */
static void wake_gradients(void **state)
{
    (void)state;
    rws_trainer      *t = tiny((rws_config){.particles = 8000, .batch = 1}, NULL, true);
    const rws_params *p = rws_trainer_state_of(t).params;
    twin              m = twin_new(t);
    table            *all = malloc(sizeof *all);
    all->two = malloc(NODES * sizeof *all->two);
    integrate(&m, all);
    posterior = all;
    const estimate e = estimate_gradient(t, 16);
    for (int i = 0; i < p->n; i++) {
        const bool theta = p->list[i]->group == RWS_THETA;
        expect(theta ? "wake-theta" : "wake-phi", p->list[i], e.mean[i],
               slope(&m, p->list[i], theta ? log_evidence : expected_log_q), e.error[i], 2e-3);
    }
    free(all->two);
    free(all);
    free(m.value);
    rws_trainer_free(t);
}

/* VIMCO's gradient is that of E log((w_1 + w_2) / 2): the expectation over n by enumeration, over the rest by noise that
 * stays the same while a parameter moves. */
enum { SAMPLES = 2000 };
static double (*noise)[2][2 * N];
static double bounds[SAMPLES];

static void particle(const twin *m, const double *e, const step *first, const ground *g, const double *where_mean,
                     const double *where_sd, const double *eps, double *l, double *q)
{
    object        o[N];
    const object *pair[] = {&o[0], &o[1]};
    step          at = *first;
    double        log_q = 0, log_n = 0;
    l[0] = log_prior(m, 0) + log_likelihood(m, g, NULL, 0) + softplus(at.more);
    q[0] = sigmoid(-at.more);
    for (int n = 1; n <= N; n++) {
        double mean, sd, prior = 0;
        log_n -= softplus(-at.more);
        o[n - 1].where = at.mean + at.sd * eps[2 * n - 2];
        look(m, o[n - 1].where, &mean, &sd);
        o[n - 1].what = mean + sd * eps[2 * n - 1];
        log_q += log_normal(o[n - 1].where, at.mean, at.sd) + log_normal(o[n - 1].what, mean, sd);
        place(m, &o[n - 1]);
        for (int t = 0; t < n; t++)
            prior += log_normal(o[t].where, where_mean[n], where_sd[n]) + log_normal(o[t].what, 0, 1);
        if (n < N) at = take_step(m, e, at.h, o[n - 1].what, o[n - 1].where);
        const double stop = n < N ? -softplus(at.more) : 0;
        l[n] = log_prior(m, n) + prior + log_likelihood(m, g, pair, n) - log_q - log_n - stop;
        q[n] = exp(log_n + stop);
    }
}

static void fill_bounds(const twin *m)
{
    double       e[HIDDEN], mean[N + 1], sd[N + 1];
    const ground g = background(m);
    encode(m, e);
    const step first = take_step(m, e, values(m, "phi.h0"), 0, 0);
    for (int n = 1; n <= N; n++) where_prior(m, n, &mean[n], &sd[n]);
    for (int s = 0; s < SAMPLES; s++) {
        double l[2][N + 1], q[2][N + 1];
        for (int k = 0; k < 2; k++) particle(m, e, &first, &g, mean, sd, noise[s][k], l[k], q[k]);
        bounds[s] = 0;
        for (int i = 0; i <= N; i++)
            for (int j = 0; j <= N; j++) bounds[s] += q[0][i] * q[1][j] * (log_add(l[0][i], l[1][j]) - log(2));
    }
}

static void vimco_gradient(void **state)
{
    (void)state;
    rws_trainer      *t = tiny((rws_config){.method = "vimco", .particles = 2, .batch = 2000}, NULL, false);
    const rws_params *p = rws_trainer_state_of(t).params;
    twin              m = twin_new(t);
    die               dice = {3};
    double           *up = malloc(SAMPLES * sizeof *up);
    noise = malloc(SAMPLES * sizeof *noise);
    for (int s = 0; s < SAMPLES; s++)
        for (int k = 0; k < 4 * N; k++) {
            const double u = die_between(&dice, 0, 1), v = die_between(&dice, 0, 1);
            noise[s][k / (2 * N)][k % (2 * N)] = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
        }
    const estimate e = estimate_gradient(t, 10);
    for (int i = 0; i < p->n; i++) {
        const double h = 1e-4;
        double       d[4096], mean = 0, square = 0;
        direction(p->list[i], d);
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++) m.value[p->list[i]->offset + k] += h * d[k];
        fill_bounds(&m);
        memcpy(up, bounds, SAMPLES * sizeof *up);
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++) m.value[p->list[i]->offset + k] -= 2 * h * d[k];
        fill_bounds(&m);
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++) m.value[p->list[i]->offset + k] += h * d[k];
        for (int s = 0; s < SAMPLES; s++) {
            const double x = (up[s] - bounds[s]) / (2 * h);
            mean += x / SAMPLES;
            square += x * x / SAMPLES;
        }
        const double variance = (square - mean * mean) / SAMPLES;
        expect("vimco", p->list[i], e.mean[i], mean, sqrt(variance + e.error[i] * e.error[i]), 1e-3);
    }
    free(up);
    free(noise);
    free(m.value);
    rws_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_evidence),
        cmocka_unit_test(wake_gradients),
        cmocka_unit_test(vimco_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
