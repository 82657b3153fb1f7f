/* test_air.c - Attend, Infer, Repeat against a twin of it that is small enough to be integrated.
 *
 * The tiny AIR sees 4 x 4 pixels, at most two objects of 2 x 2, each with one number to say what it is and one to say
 * where (a shift across). Its twin below computes with the parameters in double precision. Sums over n and integrals
 * over (where, what) by the trapezoidal rule give log p(x), its gradient and the posterior; enumeration of n under
 * fixed noise gives the bound that VIMCO's gradient is of.
 */
#include "trained.h"

#include "models/model.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE, GLIMPSE = 2, N = 2, HIDDEN = 8, PRIOR = 10 };

/* ---- a trainer for one image of the test */

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
    return &param_of(rws__trainer_state_of(t).params, "%s", name)->value[i];
}

/* A trainer whose parameters are moved from their start by noise, so that no gradient is zero by accident. The
 * background is set so that a lit pixel is not impossible; with `wide`, the guide's sd is large enough for importance
 * sampling. */
static rws_trainer *tiny(rws_config c, const char *set, bool wide)
{
    static rws_model model;
    die              d = {17};
    model = rws_model_air;
    model.data = data;
    c.model = "air";
    if (!c.method) c.method = "ww";
    if (!c.seed) c.seed = 1;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) c.set[c.n_set++] = small[i];
    if (set) c.set[c.n_set++] = set;
    rws_trainer      *t = trainer_for(&c, &model);
    const rws_params *p = rws__trainer_state_of(t).params;
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < rws__param_size(p->list[i]); k++) {
            float *v = &p->list[i]->value[k];
            if (strcmp(p->list[i]->name, "theta.background") == 0) *v = rws__param_size(p->list[i]) > 1 ? 2 : -1;
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
    rws_trainer_changed(t);
    return t;
}

/* ---- the twin */

typedef struct {
    size_t w, b; /* places in the flat vector */
    int    n_in, n_out;
} layer;

typedef struct {
    const rws_params *params;
    double           *value; /* the flat vector */
    double            x[PIXELS];
    double            s; /* of a geometric prior; 0: categorical */
    bool              fixed, normal;
    layer             prior[4], decoder[3], encoder[2], cell[2], more[3], where[3], what[3];
} twin;

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

static layer layer_named(const twin *m, const char *name, const char *suffix)
{
    char weight[128], bias[128];
    snprintf(weight, sizeof weight, "%s.weight%s", name, suffix);
    snprintf(bias, sizeof bias, "%s.bias%s", name, suffix);
    const rws_param *w = find(m, weight), *b = find(m, bias);
    return w ? (layer){w->offset, b->offset, w->cols, w->rows} : (layer){0};
}

static twin twin_new(rws_trainer *t)
{
    static const char *const prior[] = {"in", "x", "h", "out"};
    twin                     m = {.params = rws__trainer_state_of(t).params};
    char                     name[96];
    m.value = malloc(m.params->size * sizeof *m.value);
    for (size_t i = 0; i < m.params->size; i++) m.value[i] = (double)m.params->value[i];
    for (int i = 0; i < PIXELS; i++) m.x[i] = (double)image[i];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "theta.where.%s", prior[i]);
        m.prior[i] = layer_named(&m, name, "");
    }
    const struct {
        const char *name;
        layer      *layers;
        int         n;
    } mlps[] = {{"theta.decoder", m.decoder, 3},
                {"phi.encoder", m.encoder, 2},
                {"phi.more", m.more, 3},
                {"phi.where", m.where, 3},
                {"phi.what", m.what, 3}};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < mlps[i].n; k++) {
            snprintf(name, sizeof name, "%s.%d", mlps[i].name, 2 * k);
            mlps[i].layers[k] = layer_named(&m, name, "");
        }
    m.cell[0] = layer_named(&m, "phi.cell", "_ih");
    m.cell[1] = layer_named(&m, "phi.cell", "_hh");
    return m;
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
static void affine(const twin *m, layer l, const double *in, double *out)
{
    for (int o = 0; o < l.n_out; o++) {
        out[o] += m->value[l.b + (size_t)o];
        for (int i = 0; i < l.n_in; i++) out[o] += m->value[l.w + (size_t)(o * l.n_in + i)] * in[i];
    }
}

static void elu(double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : expm1(x[i]);
}

/* ELU between the layers, none after the last. */
static void mlp(const twin *m, const layer *layers, int n, const double *in, double *out)
{
    double a[2][16];
    for (int i = 0; i < n; i++) {
        double *to = i + 1 < n ? a[i % 2] : out;
        for (int j = 0; j < layers[i].n_out; j++) to[j] = 0;
        affine(m, layers[i], in, to);
        if (i + 1 < n) elu(to, layers[i].n_out);
        in = to;
    }
}

/* Bilinear interpolation; neighbours outside the picture count as zero. */
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

/* An object: the logits that it adds to the canvas, and the pixels that it covers. */
typedef struct {
    double where, what, y[PIXELS], a[PIXELS];
} object;

static void place(const twin *m, object *o)
{
    double glimpse[GLIMPSE * GLIMPSE];
    mlp(m, m->decoder, 3, &o->what, glimpse);
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
    ground g = {{0}, {0}};
    if (m->normal) return g;
    const rws_param *mean = find(m, "theta.mean");
    const double    *dark = values(m, "theta.background");
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
        if (m->normal) {
            total += log_normal(m->x[i], y, 0.3);
            continue;
        }
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
    double in[4] = {0}; /* 1 + N inputs; with an odd length gcc warns of the rest of a vector load */
    double h[PRIOR] = {0}, none[PRIOR] = {0}, y = 0, out[2] = {0};
    *mean = 0, *sd = 1;
    if (m->fixed) return;
    in[0] = values(m, "theta.where.start")[0];
    for (int i = 0; i < N; i++) in[1 + i] = i < n;
    affine(m, m->prior[0], in, h);
    elu(h, PRIOR);
    affine(m, m->prior[1], none, &y);
    affine(m, m->prior[2], h, &y);
    y = tanh(y);
    affine(m, m->prior[3], &y, out);
    *mean = out[0], *sd = softplus(out[1]) + 0.01;
}

/* The guide's distributions at a step, and its state. */
typedef struct {
    double h[HIDDEN], more, mean, sd; /* more: a logit */
} step;

static step take_step(const twin *m, const double *e, const double *h, double what, double where)
{
    double in[HIDDEN + 3], out[2];
    step   s = {.more = 0};
    memcpy(in, e, HIDDEN * sizeof *in);
    in[HIDDEN] = what, in[HIDDEN + 1] = where, in[HIDDEN + 2] = 1;
    affine(m, m->cell[0], in, s.h);
    affine(m, m->cell[1], h, s.h);
    for (int i = 0; i < HIDDEN; i++) s.h[i] = tanh(s.h[i]);
    mlp(m, m->more, 3, s.h, &s.more);
    s.more += 1;
    mlp(m, m->where, 3, s.h, out);
    s.mean = out[0], s.sd = softplus(out[1] - 3) + 0.01;
    return s;
}

static void encode(const twin *m, double *e)
{
    mlp(m, m->encoder, 2, m->x, e);
    elu(e, HIDDEN);
}

/* mean and sd of what, at a place */
static void look(const twin *m, double where, double *mean, double *sd)
{
    double glimpse[GLIMPSE * GLIMPSE], out[2];
    read_glimpse(m, where, glimpse);
    mlp(m, m->what, 3, glimpse, out);
    *mean = out[0], *sd = softplus(out[1]) + 0.01;
}

/* ---- integrals */

/* The mask rises from nothing to all while where moves by a tenth, so nodes are dense in the middle: where =
 * sinh(s). */
enum { WHERES = 40, WHATS = 20, NODES = WHERES * WHATS };
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
            if (at[2][i] + at[2][j] > -24) /* smaller terms do not count */
                two = exp(log_prior(m, 2) + at[2][i] + at[2][j] + log_likelihood(m, &g, pair, 2) - none);
            total += i == j ? two : 2 * two;
            if (t) t->two[i][j] = t->two[j][i] = two;
        }
    }
    free(o);
    return none + log(total);
}

static double log_evidence(const twin *m)
{
    return integrate(m, NULL);
}

/* E log q under the posterior that the table holds. */
static const table *posterior;

static double expected_log_q(const twin *m)
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

/* ---- directions: one for each layer or other parameter, along all of its numbers */

enum { DIRECTIONS = 40 };

typedef struct {
    char   name[96];
    size_t first, end; /* in the flat vectors */
} span;

static int spans(const rws_params *p, span *out)
{
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        const rws_param *q = p->list[i];
        const char      *last = strrchr(q->name, '.');
        const bool       layer = strncmp(last, ".weight", 7) == 0 || strncmp(last, ".bias", 5) == 0;
        const int        length = layer ? (int)(last - q->name) : (int)strlen(q->name);
        if (!n || strncmp(out[n - 1].name, q->name, (size_t)length) != 0 || out[n - 1].name[length]) {
            assert_true(n < DIRECTIONS);
            out[n] = (span){.first = q->offset};
            memcpy(out[n++].name, q->name, (size_t)length);
        }
        out[n - 1].end = q->offset + rws__param_size(q);
    }
    return n;
}

static void move(double *value, const span *s, double h)
{
    die d = {s->first + 1};
    for (size_t i = s->first; i < s->end; i++) value[i] += h * die_between(&d, -1, 1);
}

static double along(const float *gradient, const span *s)
{
    die    d = {s->first + 1};
    double total = 0;
    for (size_t i = s->first; i < s->end; i++) total += (double)gradient[i] * die_between(&d, -1, 1);
    return total;
}

#define STEP 1e-4 /* of central differences */

/* Mean and standard error, over draws of the trainer's gradient, along every direction. */
typedef struct {
    int    n;
    span   span[DIRECTIONS];
    double mean[DIRECTIONS], error[DIRECTIONS];
} estimate;

static estimate estimate_gradient(rws_trainer *t, int draws)
{
    const rws_params *p = rws__trainer_state_of(t).params;
    float            *g = malloc(p->size * sizeof *g);
    estimate          e = {.n = 0};
    e.n = spans(p, e.span);
    for (int k = 0; k < draws; k++) {
        gradient_of(t, (uint64_t)k, g);
        for (int i = 0; i < e.n; i++) {
            const double x = along(g, &e.span[i]);
            e.mean[i] += x / draws;
            e.error[i] += x * x / draws;
        }
    }
    for (int i = 0; i < e.n; i++) e.error[i] = sqrt(fmax(0, e.error[i] - e.mean[i] * e.mean[i]) / (draws - 1));
    free(g);
    return e;
}

static void expect(const char *what, const estimate *e, int i, double want, double error)
{
    error = sqrt(error * error + e->error[i] * e->error[i]);
    if (!(fabs(e->mean[i] - want) <= 5 * error + 1e-3))
        fail_msg("%s along %s: %.6f, not %.6f (standard error %.6f)", what, e->span[i].name, e->mean[i], want, error);
}

/* ---- tests */

/* Every prior and background, and a grey image: the bound of many particles is the evidence. */
static void bound_is_evidence(void **state)
{
    (void)state;
    const struct {
        const char *set;
        double      s;
        bool        fixed, gray, normal;
    } cases[] = {{NULL, 0},
                 {"steps=geometric_fixed", 0.75},
                 {"steps=geometric_anneal", 1 - 1e-7},
                 {"where=fixed", 0, true},
                 {"bg=const", 0},
                 {"air_gray=1", 0, false, true},
                 {"likelihood=normal", 0, false, true, true}};
    float kept[PIXELS];
    memcpy(kept, image, sizeof kept);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < PIXELS && cases[i].gray; k++) image[k] = 0.1f + 0.05f * (float)k;
        rws_trainer *t = tiny((rws_config){.particles = 40000, .n_test = 1}, cases[i].set, true);
        twin         m = twin_new(t);
        m.s = cases[i].s;
        m.fixed = cases[i].fixed;
        m.normal = cases[i].normal;
        const double got = metric(t, "log_evidence"), want = log_evidence(&m), ess = 40000 * metric(t, "ess");
        if (!(fabs(got - want) < 5 / sqrt(ess) + 2e-3))
            fail_msg("%s: the bound is %.5f, the evidence %.5f", cases[i].set, got, want);
        free(m.value);
        rws_trainer_free(t);
    }
    memcpy(image, kept, sizeof kept);
}

/* With many particles wake-theta is the gradient of log p(x), and wake-phi that of E log q under the posterior. */
static void check_wake_gradients(const char *set)
{
    rws_trainer *t = tiny((rws_config){.particles = 8000, .batch = 1}, set, true);
    twin         m = twin_new(t);
    m.normal = set != NULL;
    table *all = malloc(sizeof *all);
    all->two = malloc(NODES * sizeof *all->two);
    integrate(&m, all);
    posterior = all;
    const estimate e = estimate_gradient(t, 48);
    for (int i = 0; i < e.n; i++) {
        const bool theta = strncmp(e.span[i].name, "theta", 5) == 0;
        double (*f)(const twin *m) = theta ? log_evidence : expected_log_q;
        move(m.value, &e.span[i], STEP);
        const double up = f(&m);
        move(m.value, &e.span[i], -2 * STEP);
        const double down = f(&m);
        move(m.value, &e.span[i], STEP);
        expect(theta ? "wake-theta" : "wake-phi", &e, i, (up - down) / (2 * STEP), 0);
    }
    free(all->two);
    free(all);
    free(m.value);
    rws_trainer_free(t);
}

static void wake_gradients(void **state)
{
    (void)state;
    check_wake_gradients(NULL);
    check_wake_gradients("likelihood=normal");
}

/* ---- VIMCO: the expectation over n by enumeration, over the rest by noise that stays the same while parameters
 * move */

enum { SAMPLES = 4000, K = 2 };

/* Log-weights of a sample's particles for each n, and the probabilities of n. */
typedef struct {
    double l[K][N + 1], q[K][N + 1];
} sample;

static double noise[SAMPLES][K][2 * N];

static void weigh(const twin *m, const double *e, const step *first, const ground *g, const double *where_mean,
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

static void weigh_all(const twin *m, sample *out)
{
    double       e[HIDDEN], mean[N + 1], sd[N + 1];
    const ground g = background(m);
    encode(m, e);
    const step first = take_step(m, e, values(m, "phi.h0"), 0, 0);
    for (int n = 1; n <= N; n++) where_prior(m, n, &mean[n], &sd[n]);
    for (int s = 0; s < SAMPLES; s++)
        for (int k = 0; k < K; k++) weigh(m, e, &first, &g, mean, sd, noise[s][k], out[s].l[k], out[s].q[k]);
}

/* E log((w_1 + w_2) / 2) given the noise. */
static double bound(const sample *now, const sample *was)
{
    double total = 0;
    (void)was;
    for (int i = 0; i <= N; i++)
        for (int j = 0; j <= N; j++)
            total += now->q[0][i] * now->q[1][j] * (log_add(now->l[0][i], now->l[1][j]) - log(K));
    return total;
}

/* What vimco_air_ref follows instead: the same for the log-weights alone, and for n the mean log-weight, which a score
 * function differentiates through the probabilities alone. */
static double reference(const sample *now, const sample *was)
{
    double total = 0;
    for (int i = 0; i <= N; i++)
        for (int j = 0; j <= N; j++)
            total += was->q[0][i] * was->q[1][j] * (log_add(now->l[0][i], now->l[1][j]) - log(K));
    for (int k = 0; k < K; k++)
        for (int i = 0; i <= N; i++) total += was->l[k][i] * now->q[k][i] / K;
    return total;
}

static void check_vimco(const char *set, double (*f)(const sample *now, const sample *was))
{
    rws_trainer *t = tiny((rws_config){.method = "vimco", .particles = K, .batch = 2000}, set, false);
    twin         m = twin_new(t);
    sample      *table = malloc(3 * SAMPLES * sizeof *table), *was = table, *up = was + SAMPLES, *down = up + SAMPLES;
    weigh_all(&m, was);
    const estimate e = estimate_gradient(t, 24);
    for (int i = 0; i < e.n; i++) {
        double mean = 0, square = 0;
        move(m.value, &e.span[i], STEP);
        weigh_all(&m, up);
        move(m.value, &e.span[i], -2 * STEP);
        weigh_all(&m, down);
        move(m.value, &e.span[i], STEP);
        for (int s = 0; s < SAMPLES; s++) {
            const double x = (f(&up[s], &was[s]) - f(&down[s], &was[s])) / (2 * STEP);
            mean += x / SAMPLES;
            square += x * x / SAMPLES;
        }
        expect(set ? set : "vimco", &e, i, mean, sqrt(fmax(0, square - mean * mean) / SAMPLES));
    }
    free(table);
    free(m.value);
    rws_trainer_free(t);
}

static void vimco_gradient(void **state)
{
    (void)state;
    die d = {3};
    for (int s = 0; s < SAMPLES; s++)
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 2 * N; i++)
                noise[s][k][i] = sqrt(-2 * log(die_between(&d, 0, 1))) * cos(2 * M_PI * die_between(&d, 0, 1));
    check_vimco(NULL, bound);
    check_vimco("vimco_air_ref=1", reference);
}

/* ---- batching and threads change nothing; a larger model, with all four coordinates */

static const char *const methods[] = {"ww", "ws", "wws", "dww", "reinforce", "rloo", "nvil", "vimco"};

static rws_trainer *larger(const char *method, rws_config c)
{
    static const char *const sets[] = {"images=blocks", "canvas=13", "glimpse=6", "what=5", "hidden=16"};
    c.model = "air", c.method = method, c.batch = 6, c.particles = 4, c.seed = 3, c.n_test = 8;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) c.set[c.n_set++] = sets[i];
    return trainer_for(&c, NULL);
}

static void batched_equals_scalar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        rws_trainer *t[] = {larger(methods[i], (rws_config){.shards = 1}),
                            larger(methods[i], (rws_config){.shards = 1, .scalar = true})};
        const size_t size = rws__trainer_state_of(t[0]).params->size;
        float       *g = malloc(2 * size * sizeof *g);
        for (uint64_t draw = 0; draw < 3; draw++) {
            for (int k = 0; k < 2; k++) gradient_of(t[k], draw, g + (size_t)k * size);
            assert_close(g, g + size, size, 1e-4, methods[i]);
        }
        free(g);
        rws_trainer_free(t[0]);
        rws_trainer_free(t[1]);
    }
}

static void threads_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        rws_trainer *t[] = {larger(methods[i], (rws_config){.threads = 1}),
                            larger(methods[i], (rws_config){.threads = 2})};
        for (int k = 0; k < 2; k++) steps(t[k], 10);
        const rws_params *a = rws__trainer_state_of(t[0]).params, *b = rws__trainer_state_of(t[1]).params;
        assert_memory_equal(a->value, b->value, a->size * sizeof(float));
        rws_trainer_free(t[0]);
        rws_trainer_free(t[1]);
    }
}

/* ---- sizes, settings, data */

static void sizes_are_the_papers(void **state)
{
    (void)state;
    const rws_config  c = {.model = "air", .method = "ww", .set = {"images=blocks"}, .n_set = 1, .n_test = 2};
    rws_trainer      *t = trainer_for(&c, NULL);
    const rws_params *p = rws__trainer_state_of(t).params;
    assert_int_equal(p->first[RWS_THETA + 1] - p->first[RWS_THETA], 186864);
    assert_int_equal(p->first[RWS_PHI + 1] - p->first[RWS_PHI], 1220973);
    assert_int_equal(rws_trainer_config(t)->batch, 32);
    assert_string_equal(rws_trainer_config(t)->optimiser, "rmsprop");
    for (int i = 0; i < PIXELS; i++) assert_true(*number(t, "theta.background", i) == 88);
    rws_trainer_free(t);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    const struct {
        const char *set, *message, *beside;
    } list[] = {
        {"images=cats", "There are no canvases \"cats\"; make them with `rws data multimnist --out FILE`."},
        {"steps=many", "steps is categorical or geometric_anneal or geometric_fixed, not \"many\"."},
        {"where=here", "where is learned or fixed, not \"here\"."},
        {"likelihood=maximum", "likelihood is bernoulli or normal, not \"maximum\"."},
        {"bg=red", "bg is image or const, not \"red\"."},
        {"free=3", "free is 1, 2 or 4, not 3."},
        {"scale=0.4", "scale is for free=1 and free=2; with free=4 the scales are random."},
        {"bg=const", "bg is for likelihood=bernoulli; with likelihood=normal the background is black.",
         "likelihood=normal"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rws_config   c = {.model = "air",
                          .method = "ww",
                          .set = {"images=blocks", "canvas=8", list[i].set, list[i].beside},
                          .n_set = list[i].beside ? 4 : 3};
        rws_trainer *t;
        rws_error    err = {""};
        assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, list[i].message);
    }
    rws_config   c = {.model = "air", .method = "ww", .set = {"images=blocks", "canvas=8"}, .n_set = 2, .n_test = 1001};
    rws_trainer *t;
    rws_error    err = {""};
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "There are 1000 test images"));
}

static float *seen[RWS_TEST + 1][2];

static rws_status watched_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                               float *const *fields, rws_error *err)
{
    const rws_status status = rws_model_air.data(state, split, first, n, random, fields, err);
    for (int f = 0; f < 2; f++) {
        const size_t size = (size_t)n * (f ? 1 : 400) * sizeof(float);
        seen[split][f] = memcpy(realloc(seen[split][f], size), fields[f], size);
    }
    return status;
}

/* Blocks are white with a grey rim of 128: black stays black, white stays white, and grey is either, half and half. */
static void images_are_binarised(void **state)
{
    (void)state;
    enum { IMAGES = 600, SIZE = 400 };
    rws_model model = rws_model_air;
    float    *x[2][2]; /* by air_gray and split */
    double    counts[3] = {0}, grey = 0, ones = 0;
    model.data = watched_data;
    for (int gray = 0; gray < 2; gray++) {
        rws_config  c = {.model = "air", .method = "ww", .batch = IMAGES, .n_test = IMAGES, .particles = 1};
        const char *sets[] = {"images=blocks", "canvas=20", "glimpse=5", "hidden=4", "what=1", "air_gray=1"};
        c.n_set = gray ? 6 : 5;
        memcpy(c.set, sets, sizeof sets);
        rws_trainer *t = trainer_for(&c, &model);
        steps(t, 1);
        for (int split = 0; split < 2; split++) {
            x[gray][split] = malloc(IMAGES * SIZE * sizeof(float));
            memcpy(x[gray][split], seen[split][0], IMAGES * SIZE * sizeof(float));
        }
        rws_trainer_free(t);
    }
    for (int i = 0; i < IMAGES; i++) {
        assert_in_range((int)seen[RWS_TRAIN][1][i], 0, 2);
        counts[(int)seen[RWS_TRAIN][1][i]]++;
    }
    /* the test images are the same in both runs; only the rim is random */
    for (int i = 0; i < IMAGES * SIZE; i++) {
        const float shade = x[1][RWS_TEST][i], bit = x[0][RWS_TEST][i];
        assert_true(bit == 0 || bit == 1);
        if (shade == 0 || shade == 1) assert_true(bit == shade);
        else grey++, ones += (double)bit;
    }
    assert_true(grey > 1000);
    assert_true(normal_tail((ones - grey * 128 / 255) / sqrt(grey / 4)) > 1e-6);
    assert_true(counts_tail(counts, (double[]){IMAGES / 3.0, IMAGES / 3.0, IMAGES / 3.0}, 3) > 1e-6);
    for (int k = 0; k < 4; k++) free(x[k / 2][k % 2]), free(seen[k / 2][k % 2]), seen[k / 2][k % 2] = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_evidence),        cmocka_unit_test(wake_gradients),
        cmocka_unit_test(vimco_gradient),           cmocka_unit_test(batched_equals_scalar),
        cmocka_unit_test(threads_change_nothing),   cmocka_unit_test(sizes_are_the_papers),
        cmocka_unit_test(wrong_settings_are_named), cmocka_unit_test(images_are_binarised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
