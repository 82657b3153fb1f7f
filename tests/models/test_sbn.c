/* test_sbn.c - a sigmoid belief network of 3-3-3 units over 4 pixels, against sums over all its 2^9 states.
 *
 *   twin          the sums themselves: their gradients against differences, the bound's growth with K
 *   evidence      log p(x), KL, effective number and the bound for K = 1 and 2, as an evaluation measures them
 *   posterior     theta's gradient with many particles is the posterior's mean
 *   expectation   the mean gradient of every method that applies against the sum over all pairs of states
 *   sameness      batched and scalar, one thread and two, few data at a time and all, chunks of particles and all
 *   work          the number of multiplications
 */
#include "lib/estimator/known.h"
#include "models/model.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

enum { UNITS = 3, LAYERS = 3, PIXELS = 4, STATES = 1 << (UNITS * LAYERS), IMAGES = 3 };

static const float images[IMAGES][PIXELS] = {{1, 0, 1, 1}, {0, 0, 1, 0}, {1, 1, 0, 0}};

/* ---- trainers on constant data ----------------------------------------------------------------------------------- */

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) memcpy(fields[0] + i * PIXELS, images[i % IMAGES], sizeof *images);
    return RWS_OK;
}

static rws_config config_for(const char *method, int K, int batch)
{
    rws_config c = {.model = "sbn", .method = method, .particles = K, .batch = batch, .seed = 7, .n_test = 12};
    c.set[c.n_set++] = "layers=3,3,3";
    c.set[c.n_set++] = "data=noise";
    c.set[c.n_set++] = "pixels=4";
    return c;
}

/* Sets random weights of order 1, so that layers depend on each other and the guide is not the posterior. */
static void scatter(rws_trainer *t)
{
    rws_params *p = rws__trainer_state_of(t).params;
    rws_random  g = rws__random_new(rws__key_for(99, 0, RWS_KEY_DATA, 0), 0);
    for (size_t k = 0; k < p->size; k++) p->value[k] = (float)(0.6 * rws_random_normal(&g));
    rws_trainer_changed(t);
}

/* at_once: particles of a pass. */
static rws_trainer *trainer_at_once(const rws_config *c, int at_once)
{
    static rws_model models[4];
    static int       n_models;
    rws_model       *model = &models[n_models++ % 4];
    *model = rws_model_sbn;
    model->data = data;
    model->defaults.at_once = at_once;
    rws_trainer *t = trainer_for(c, model);
    scatter(t);
    return t;
}

static rws_trainer *trainer(const rws_config *c)
{
    return trainer_at_once(c, 0);
}

/* ---- the twin ---------------------------------------------------------------------------------------------------- */

/* Parameters in double precision and their offsets, layer by layer from the pixels upwards. */
typedef struct {
    size_t  n, first[RWS_GROUPS + 1];
    double *value;
    size_t  down_weight[LAYERS], down_bias[LAYERS], up_weight[LAYERS], up_bias[LAYERS], prior;
} twin;

static size_t place(const rws_params *p, const char *group, const char *what, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s.%s", group, what, part);
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, name) == 0) return p->list[i]->offset;
    fail_msg("no parameter %s", name);
    return 0;
}

static twin twin_of(rws_trainer *t)
{
    static const char *const layer[] = {"x", "h1", "h2", "h3"};
    const rws_params        *p = rws__trainer_state_of(t).params;
    twin                     m = {.n = p->size, .value = malloc(p->size * sizeof(double))};
    memcpy(m.first, p->first, sizeof m.first);
    for (size_t k = 0; k < p->size; k++) m.value[k] = (double)p->value[k];
    for (int i = 0; i < LAYERS; i++) {
        m.down_weight[i] = place(p, "theta", layer[i], "weight");
        m.down_bias[i] = place(p, "theta", layer[i], "bias");
        m.up_weight[i] = place(p, "phi", layer[i + 1], "weight");
        m.up_bias[i] = place(p, "phi", layer[i + 1], "bias");
    }
    m.prior = place(p, "theta", "h3", "bias");
    return m;
}

static double sigmoid(double l)
{
    return 1 / (1 + exp(-l));
}

/* The log-probability of `out` given `in` through a map, or with a bias alone (n_in 0); delta: every unit's own mixture
 * with a fair coin. g += by times its gradient, without delta. */
static double log_layer(const twin *m, size_t weight, size_t bias, const double *in, int n_in, const double *out,
                        int n_out, double delta, double by, double *g)
{
    double total = 0;
    for (int o = 0; o < n_out; o++) {
        double l = m->value[bias + (size_t)o];
        for (int i = 0; i < n_in; i++) l += m->value[weight + (size_t)(o * n_in + i)] * in[i];
        total += log((1 - delta) * sigmoid(out[o] > 0.5 ? l : -l) + delta / 2);
        const double error = by * (out[o] - sigmoid(l));
        if (g) g[bias + (size_t)o] += error;
        for (int i = 0; i < n_in && g; i++) g[weight + (size_t)(o * n_in + i)] += error * in[i];
    }
    return total;
}

/* Layer i of a state: bits, and signs. */
static void layer_of(int state, int i, double *h, double *s)
{
    for (int j = 0; j < UNITS; j++) {
        h[j] = state >> (UNITS * i + j) & 1;
        s[j] = 2 * h[j] - 1;
    }
}

static double log_model(const twin *m, const float *image, int state, double by, double *g)
{
    double h[LAYERS][UNITS], s[LAYERS][UNITS], x[PIXELS], total;
    for (int i = 0; i < LAYERS; i++) layer_of(state, i, h[i], s[i]);
    for (int j = 0; j < PIXELS; j++) x[j] = (double)image[j];
    total = log_layer(m, 0, m->prior, NULL, 0, h[LAYERS - 1], UNITS, 0, by, g);
    for (int i = LAYERS - 1; i > 0; i--)
        total += log_layer(m, m->down_weight[i], m->down_bias[i], s[i], UNITS, h[i - 1], UNITS, 0, by, g);
    return total + log_layer(m, m->down_weight[0], m->down_bias[0], s[0], UNITS, x, PIXELS, 0, by, g);
}

/* The mean pixel of noise is 1/2. */
static double log_guide(const twin *m, const float *image, int state, double delta, double by, double *g)
{
    double h[UNITS], s[UNITS], in[PIXELS], total = 0;
    for (int j = 0; j < PIXELS; j++) in[j] = (double)image[j] - 0.5;
    for (int i = 0; i < LAYERS; i++) {
        layer_of(state, i, h, s);
        total += log_layer(m, m->up_weight[i], m->up_bias[i], in, i ? UNITS : PIXELS, h, UNITS, delta, by, g);
        memcpy(in, s, sizeof s);
    }
    return total;
}

/* For every state of an image: log p(h, x), log q(h|x), and the log-probability d that it is drawn with. */
typedef struct {
    double p[STATES], q[STATES], d[STATES];
} sheet;

static void fill(const twin *m, const float *image, double delta, sheet *s)
{
    for (int i = 0; i < STATES; i++) {
        s->p[i] = log_model(m, image, i, 0, NULL);
        s->q[i] = log_guide(m, image, i, 0, 0, NULL);
        s->d[i] = delta > 0 ? log_guide(m, image, i, delta, 0, NULL) : s->q[i];
    }
}

/* E[L] for K = 1 or 2. */
static double bound(const sheet *s, int K)
{
    double total = 0;
    for (int i = 0; i < STATES; i++) {
        if (K == 1) total += exp(s->q[i]) * (s->p[i] - s->q[i]);
        for (int k = 0; k < STATES && K == 2; k++) {
            const double l[] = {s->p[i] - s->q[i], s->p[k] - s->q[k]};
            total += exp(s->q[i] + s->q[k]) * (exact_log_sum(l, 2) - log(2));
        }
    }
    return total;
}

/* by[i] = E sum_{k: state of k is i} a_k, where K = 1 or 2 particles are drawn from exp(d). */
static void expect(const sheet *s, int K, exact_coefficients a, double *by)
{
    for (int i = 0; i < STATES; i++) {
        double l[2] = {s->p[i] - s->d[i]}, coef[2];
        by[i] = 0;
        if (K == 1) {
            a(l, 1, NULL, coef);
            by[i] = exp(s->d[i]) * coef[0];
        }
        for (int k = 0; k < STATES && K == 2; k++) {
            l[1] = s->p[k] - s->d[k];
            a(l, 2, NULL, coef);
            by[i] += 2 * exp(s->d[i] + s->d[k]) * coef[0];
        }
    }
}

static void add_gradient(const twin *m, const float *image, const double *by_p, const double *by_q, double scale,
                         double *g)
{
    for (int i = 0; i < STATES; i++) {
        if (by_p) log_model(m, image, i, scale * by_p[i], g);
        if (by_q) log_guide(m, image, i, 0, scale * by_q[i], g);
    }
}

/* E_p grad log q(h|x), over all 2^PIXELS images. */
static void add_sleep(const twin *m, double scale, double *g)
{
    for (int x = 0; x < 1 << PIXELS; x++) {
        float image[PIXELS];
        for (int j = 0; j < PIXELS; j++) image[j] = (float)(x >> j & 1);
        for (int i = 0; i < STATES; i++) log_guide(m, image, i, 0, scale * exp(log_model(m, image, i, 0, NULL)), g);
    }
}

/* ---- the twin itself --------------------------------------------------------------------------------------------- */

static double slope_of_bound(twin *m, const float *image, int K, size_t k)
{
    static sheet s;
    const double at = m->value[k], h = 1e-3, weight[] = {-8, 8, -1, 1}; /* differences of fourth order */
    double       slope = 0;
    for (int j = 0; j < 4; j++) {
        m->value[k] = at + h * (double[]){-1, 1, 2, -2}[j];
        fill(m, image, 0, &s);
        slope += weight[j] * bound(&s, K) / (12 * h);
    }
    m->value[k] = at;
    return slope;
}

static void test_twin(void **state)
{
    (void)state;
    static sheet     s;
    const rws_config c = config_for("ww", 2, 3);
    rws_trainer     *t = trainer(&c);
    twin             m = twin_of(t);
    assert_int_equal(m.first[RWS_PHI], 3 + 2 * (9 + 3) + (12 + 4));
    assert_int_equal(m.n, m.first[RWS_PHI] + (12 + 3) + 2 * (9 + 3));
    double *g = malloc(m.n * sizeof *g);
    for (int d = 0; d < IMAGES; d++) {
        fill(&m, images[d], 0, &s);
        const double log_p = exact_log_sum(s.p, STATES), one = bound(&s, 1), two = bound(&s, 2);
        assert_true(near(exact_log_sum(s.q, STATES), 0, 1e-12));
        assert_true(one < two && two < log_p); /* the bound grows with K */
        for (int K = 1; K <= 2; K++) {
            double by_p[STATES], by_q[STATES];
            memset(g, 0, m.n * sizeof *g);
            expect(&s, K, exact_w, by_p);
            expect(&s, K, exact_reinforce, by_q);
            add_gradient(&m, images[d], by_p, by_q, 1, g);
            for (size_t k = (size_t)d; k < m.n; k += K == 1 ? 1 : 9)
                assert_true(near(slope_of_bound(&m, images[d], K, k), g[k], 1e-8));
            if (K == 1) continue;
            const exact_coefficients others[] = {exact_rloo, exact_vimco, exact_vimco_no_logK};
            for (int i = 0; i < COUNT(others); i++) {
                double *same = calloc(m.n, sizeof *same);
                expect(&s, K, others[i], by_q);
                add_gradient(&m, images[d], by_p, by_q, 1, same);
                for (size_t k = 0; k < m.n; k++) assert_true(near(same[k], g[k], 1e-10));
                free(same);
            }
        }
    }
    free(g);
    free(m.value);
    rws_trainer_free(t);
}

/* ---- evidence ---------------------------------------------------------------------------------------------------- */

/* Mean and variance under the guide of a function of a state's log-weight. */
static void moments(const sheet *s, double (*f)(double l, double log_p), double log_p, double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int i = 0; i < STATES; i++) *mean += exp(s->q[i]) * f(s->p[i] - s->q[i], log_p);
    for (int i = 0; i < STATES; i++) *variance += exp(s->q[i]) * pow(f(s->p[i] - s->q[i], log_p) - *mean, 2);
}

static double plain(double l, double log_p)
{
    (void)log_p;
    return l;
}

static double weight(double l, double log_p)
{
    return exp(l - log_p);
}

static double square(double l, double log_p)
{
    return exp(2 * (l - log_p));
}

/* With many particles; six standard errors each, by the delta method and as if the two sums that kl and ess are made of
 * were perfectly correlated. A right program fails in less than 1e-8 of all choices of the seed. */
static void test_evidence(void **state)
{
    (void)state;
    enum { N = 100000 };
    static sheet s;
    rws_config   c = config_for("ww", 2, 3);
    c.n_test = IMAGES;
    c.eval_particles = N;
    rws_trainer *t = trainer(&c);
    twin         m = twin_of(t);
    rws_measures got;
    evaluate(t, &got);
    double log_p = 0, kl = 0, ess = 0, error = 0, kl_error = 0, ess_error = 0;
    for (int d = 0; d < IMAGES; d++) {
        double mean, variance, w, w_variance, squares, squares_variance;
        fill(&m, images[d], 0, &s);
        const double evidence = exact_log_sum(s.p, STATES);
        moments(&s, plain, evidence, &mean, &variance);
        moments(&s, weight, evidence, &w, &w_variance);
        moments(&s, square, evidence, &squares, &squares_variance);
        assert_true(near(w, 1, 1e-9));
        log_p += evidence / IMAGES;
        kl += (evidence - mean) / IMAGES;
        ess += 1 / squares / IMAGES;
        error += w_variance / N / IMAGES / IMAGES;
        kl_error += pow(sqrt(variance) + sqrt(w_variance), 2) / N / IMAGES / IMAGES;
        ess_error += pow((2 * sqrt(w_variance) + sqrt(squares_variance) / squares) / squares, 2) / N / IMAGES / IMAGES;
    }
    assert_true(near(metric_of(t, &got, "log_evidence"), log_p, 6 * sqrt(error)));
    assert_true(near(metric_of(t, &got, "kl"), kl, 6 * sqrt(kl_error)));
    assert_true(near(metric_of(t, &got, "ess"), ess, 6 * sqrt(ess_error)));
    free(m.value);
    rws_trainer_free(t);
}

/* E[L] for one and two particles: means over many copies of the data, by their standard error, which is that of an
 * evaluation plus what the images differ by. */
static void test_bound(void **state)
{
    (void)state;
    static sheet s;
    for (int K = 1; K <= 2; K++) {
        rws_config c = config_for("ww", K, 3);
        c.n_test = 30000;
        rws_trainer *t = trainer(&c);
        twin         m = twin_of(t);
        rws_measures got;
        double       right = 0;
        for (int d = 0; d < IMAGES; d++) {
            fill(&m, images[d], 0, &s);
            right += bound(&s, K) / IMAGES;
        }
        evaluate(t, &got);
        assert_true(got.log_evidence_error > 1e-3 && got.log_evidence_error < 2e-2);
        assert_true(near(metric_of(t, &got, "log_evidence"), right, 6 * got.log_evidence_error));
        if (K == 1) assert_true(isnan(metric_of(t, &got, "kl")));
        free(m.value);
        rws_trainer_free(t);
    }
}

/* The standard error of an evaluation is the spread of evaluations with other seeds. */
static void test_evidence_error(void **state)
{
    (void)state;
    enum { SEEDS = 60 };
    double sum = 0, squares = 0, said = 0;
    for (int i = 0; i < SEEDS; i++) {
        rws_config c = config_for("ww", 1, 3);
        /* The error includes differences between images, which are the same for every seed; hence the limits below. */
        c.n_test = 301;
        c.seed = (uint64_t)(100 + i);
        rws_trainer *t = trainer(&c);
        rws_measures got;
        evaluate(t, &got);
        const double L = metric_of(t, &got, "log_evidence");
        sum += L, squares += L * L, said += got.log_evidence_error;
        rws_trainer_free(t);
    }
    const double spread = sqrt((squares - sum * sum / SEEDS) / (SEEDS - 1));
    said /= SEEDS;
    assert_true(spread < 1.3 * said && spread > 0.5 * said);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Whether the entry of known.h holds here: it needs no relaxed model, and is not the one that repeats a mistake of the
 * authors' code. */
static bool applies(const known *e)
{
    return e->kind == COUNTED && !(e->set && strcmp(e->set, "dww_ref_bug=1") == 0);
}

/* The authors' code has no vectors of choices, so that there is no mistake of it to repeat. */
static void test_wrong_density_is_refused(void **state)
{
    (void)state;
    rws_config c = config_for("dww", 2, 3);
    rws_error  err = {""};
    c.set[c.n_set++] = "dww_ref_bug=1";
    rws_trainer *t = trainer(&c);
    assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
    if (!strstr(err.text, "dww_ref_bug is about single choices (categorical, bernoulli); at site \"h1\""))
        fail_msg("%s", err.text);
    rws_trainer_free(t);
}

/* Every method has an entry that applies, or refuses a model without a single categorical site. */
static void test_methods(void **state)
{
    (void)state;
    for (int i = 0; rws_estimators[i]; i++) {
        bool found = false;
        for (int k = 0; k < COUNT(table); k++) found |= applies(&table[k]) && is(&table[k], rws_estimators[i]->name);
        if (found) continue;
        const rws_config c = config_for(rws_estimators[i]->name, 2, 3);
        rws_trainer     *t;
        rws_error        err = {""};
        assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, rws_estimators[i]->name));
    }
}

static void expected_gradient(const known *e, const twin *m, int K, double *g)
{
    static sheet s;
    memset(g, 0, m->n * sizeof *g);
    for (int d = 0; d < IMAGES; d++) {
        double by[STATES];
        fill(m, images[d], 0, &s);
        expect(&s, K, exact_w, by);
        add_gradient(m, images[d], by, NULL, 1.0 / IMAGES, g);
        if (e->wake == 0) continue;
        if (e->delta > 0) fill(m, images[d], e->delta, &s);
        expect(&s, K, e->a, by);
        add_gradient(m, images[d], NULL, by, e->wake / IMAGES, g);
    }
    if (e->sleep > 0) add_sleep(m, e->sleep, g);
}

/* 22 pairs of an entry and a number of particles times 82 numbers: about 1800 t's, so that a right program fails with
 * probability below 1800 * 2.5e-9 = 5e-6. */
static void test_expectation(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++)
        for (int K = rws__estimator_find(table[i].method)->min_particles; K <= 2 && applies(&table[i]); K++) {
            rws_config c = config_for(table[i].method, K, 200 * IMAGES);
            if (table[i].set) c.set[c.n_set++] = table[i].set;
            rws_trainer *t = trainer(&c);
            twin         m = twin_of(t);
            double      *right = malloc(m.n * sizeof *right);
            char         what[80];
            snprintf(what, sizeof what, "%s %s K=%d", table[i].method, table[i].set ? table[i].set : "", K);
            expected_gradient(&table[i], &m, K, right);
            assert_mean(what, t, right, m.first[RWS_PHI + 1], 40, 0);
            free(right);
            free(m.value);
            rws_trainer_free(t);
        }
}

/* With K particles the weighted mean is off by about 1/K times the spread of the weights. */
static void test_posterior(void **state)
{
    (void)state;
    enum { K = 20000 };
    static sheet     s;
    const rws_config c = config_for("ww", K, IMAGES);
    rws_trainer     *t = trainer(&c);
    twin             m = twin_of(t);
    double          *right = calloc(m.n, sizeof *right);
    for (int d = 0; d < IMAGES; d++) {
        double posterior[STATES];
        fill(&m, images[d], 0, &s);
        const double log_p = exact_log_sum(s.p, STATES);
        for (int i = 0; i < STATES; i++) posterior[i] = exp(s.p[i] - log_p);
        add_gradient(&m, images[d], posterior, posterior, 1.0 / IMAGES, right);
    }
    assert_mean("posterior", t, right, m.n, 12, 10.0 / K);
    free(right);
    free(m.value);
    rws_trainer_free(t);
}

/* ---- sameness ---------------------------------------------------------------------------------------------------- */

static double distance(const float *a, const float *b, size_t n)
{
    double top = 0, apart = 0;
    for (size_t k = 0; k < n; k++) {
        top = fmax(top, fabs((double)b[k]));
        apart = worse(apart, fabs((double)a[k] - (double)b[k]));
    }
    return top > 0 ? apart / top : apart;
}

/* Every particle alone, and a few data at a time, give the gradient of all together. */
static void test_passes(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++) {
        if (!applies(&table[i])) continue;
        rws_config c = config_for(table[i].method, 5, 11);
        if (table[i].set) c.set[c.n_set++] = table[i].set;
        rws_config scalar = c;
        scalar.scalar = true;
        rws_trainer *t[] = {trainer(&c), trainer(&scalar), trainer_at_once(&c, 12), trainer_at_once(&c, 1)};
        const size_t size = rws__trainer_state_of(t[0]).params->size;
        float       *g = malloc(2 * size * sizeof *g);
        gradient_of(t[0], 3, g);
        for (int k = 1; k < COUNT(t); k++) {
            gradient_of(t[k], 3, g + size);
            if (!(distance(g + size, g, size) < 1e-5)) fail_msg("%s: gradients differ (%d).", table[i].method, k);
        }
        for (int k = 0; k < COUNT(t); k++) rws_trainer_free(t[k]);
        free(g);
    }
}

/* The bits are the same with more threads than shards and with fewer. */
static void test_threads(void **state)
{
    (void)state;
    static const char *const methods[] = {"ww", "vimco", "wws", "nvil"};
    for (int i = 0; i < COUNT(methods); i++) {
        float       *first = NULL;
        rws_measures measured = {0};
        for (int threads = 1; threads <= 4; threads++) {
            rws_config c = config_for(methods[i], 5, 11);
            c.shards = 3;
            c.threads = threads;
            c.n_test = 100;
            c.eval_particles = 50;
            rws_trainer      *t = trainer_at_once(&c, 12);
            const rws_params *p = rws__trainer_state_of(t).params;
            rws_measures      m;
            steps(t, 20);
            evaluate(t, &m);
            if (first) {
                assert_memory_equal(first, p->value, p->size * sizeof *first);
                assert_memory_equal(m.value, measured.value, sizeof m.value);
            } else {
                first = malloc(p->size * sizeof *first);
                memcpy(first, p->value, p->size * sizeof *first);
                measured = m;
            }
            rws_trainer_free(t);
        }
        free(first);
    }
}

/* An evaluation with particles in chunks of any size equals that with all particles at once. */
static void test_chunks(void **state)
{
    (void)state;
    static const int at_once[] = {100000, 333, 64, 7, 1};
    double           first[3] = {0};
    for (int i = 0; i < COUNT(at_once); i++) {
        rws_config c = config_for("ww", 2, 3);
        c.n_test = 9;
        c.eval_particles = 500;
        c.threads = 2;
        rws_trainer *t = trainer_at_once(&c, at_once[i]);
        rws_measures m;
        evaluate(t, &m);
        const char *const names[] = {"log_evidence", "kl", "ess"};
        for (int k = 0; k < 3; k++) {
            const double got = metric_of(t, &m, names[k]);
            if (i == 0) first[k] = got;
            if (!near(got, first[k], 1e-6))
                fail_msg("%s is %.9g in chunks of %d, not %.9g", names[k], got, at_once[i], first[k]);
        }
        rws_trainer_free(t);
    }
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

/* The pixels are multiplied by their weights once per image and not once per particle, no gradient passes through a
 * layer, and the number of parameters is that of the paper's network. */
static void test_work(void **state)
{
    (void)state;
    enum { B = 6, K = 5, PER_PARTICLE = 316800, PER_IMAGE = 156800 };
    rws_config   c = {.model = "sbn", .method = "vimco", .particles = K, .batch = B, .seed = 1, .n_test = B};
    rws_trainer *t;
    rws_error    err = {""};
    c.set[c.n_set++] = "data=noise";
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_OK);
    const rws_params *p = rws__trainer_state_of(t).params;
    assert_int_equal(p->first[RWS_PHI], 238184);
    assert_int_equal(p->size - p->first[RWS_PHI], 237400);
    const uint64_t forward = 2ull * (PER_PARTICLE * B * K + PER_IMAGE * B);
    rws_measures   m;
    rws__trainer_take_stats(t);
    evaluate(t, &m);
    assert_int_equal(rws__trainer_take_stats(t).flops, forward);
    steps(t, 1);
    const uint64_t step = rws__trainer_take_stats(t).flops;
    assert_true(step > forward && step <= 2 * forward);
    rws_trainer_free(t);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static void test_settings(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "layers=",      "layers=3,,3", "layers=0",     "layers=3,x",
        "layers=3,3,",  "layers=-1",   "layers=99999", "layers=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
        "sbn_center=x", "data=x",      "pixels=0"};
    rws_trainer *t;
    rws_error    err;
    for (int i = 0; i < COUNT(wrong); i++) {
        rws_config c = config_for("ww", 2, 3);
        c.set[c.n_set++] = wrong[i];
        err.text[0] = '\0';
        assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
        char name[16] = "";
        memcpy(name, wrong[i], strcspn(wrong[i], "="));
        assert_non_null(strstr(err.text, name));
    }
    static const char *const right[] = {"layers=1", "layers=5", "layers=4,1,2,7", "sbn_center=half"};
    for (int i = 0; i < COUNT(right); i++) {
        rws_config c = config_for("ww", 2, 3);
        c.set[c.n_set++] = right[i];
        t = trainer(&c);
        steps(t, 1);
        rws_trainer_free(t);
    }
}

/* V ((x - mean + 1) / 2) + c = (V / 2) (x - mean) + (c + V 1 / 2): the same logits, draws and measures. */
static void test_centring(void **state)
{
    (void)state;
    rws_config half = config_for("ww", 2, 3), mean = half;
    half.set[half.n_set++] = "sbn_center=half";
    mean.set[mean.n_set++] = "sbn_center=mean";
    half.eval_particles = mean.eval_particles = 500;
    rws_trainer *t[] = {trainer(&half), trainer(&mean)};
    rws_params  *p = rws__trainer_state_of(t[1]).params;
    const size_t weight = place(p, "phi", "h1", "weight"), bias = place(p, "phi", "h1", "bias");
    rws_measures m[2];
    for (int o = 0; o < UNITS; o++)
        for (int i = 0; i < PIXELS; i++) {
            p->value[weight + (size_t)(o * PIXELS + i)] /= 2;
            p->value[bias + (size_t)o] += p->value[weight + (size_t)(o * PIXELS + i)];
        }
    rws_trainer_changed(t[1]);
    for (int i = 0; i < 2; i++) evaluate(t[i], &m[i]);
    for (int i = 0; i < m[0].n; i++) assert_true(near(m[0].value[i], m[1].value[i], 1e-5));
    for (int i = 0; i < 2; i++) rws_trainer_free(t[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin),        cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_bound),       cmocka_unit_test(test_evidence_error),
        cmocka_unit_test(test_methods),     cmocka_unit_test(test_wrong_density_is_refused),
        cmocka_unit_test(test_expectation), cmocka_unit_test(test_posterior),
        cmocka_unit_test(test_passes),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_chunks),      cmocka_unit_test(test_work),
        cmocka_unit_test(test_settings),    cmocka_unit_test(test_centring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
