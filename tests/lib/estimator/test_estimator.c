/* test_estimator.c - every estimator of the table on the Gaussian mixture, against a twin that knows the answers.
 *
 *   frozen noise   one gradient, number by number, against the twin with the same draws
 *   expectation    the mean of many gradients against the sum over all tuples of choices
 *   control        what rebar and relax learn by, against differences of the variance they minimise
 *   nvil           its running numbers and its baseline
 *   refusals       what a method must not be asked for
 */
#include "estimator/control.h"
#include "known.h"
#include "models/model.h"
#include "trained.h"

#include <stdio.h>
#include <string.h>

/* ---- trainers on data that never change ------------------------------------------------------------------------- */

static const float few[] = {-3, 8, 17, 26.5f}, many[] = {2, 95, 161};

static const float *points(int C, int *n)
{
    *n = C == 4 ? COUNT(few) : COUNT(many);
    return C == 4 ? few : many;
}

/* The same few data over and over: a batch holds as many independent draws of the estimator for each. */
static rws_status repeat(const float *x, int n_x, int n, float *out)
{
    for (int i = 0; i < n; i++) out[i] = x[i % n_x];
    return RWS_OK;
}

static rws_status data_few(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                           float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    return repeat(few, COUNT(few), n, fields[0]);
}

static rws_status data_many(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                            float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    return repeat(many, COUNT(many), n, fields[0]);
}

static rws_config config_for(const char *method, const char *set, int C, int K, int batch)
{
    rws_config c = {.model = "gmm", .method = method, .particles = K, .batch = batch, .seed = 7, .n_test = 12};
    if (C == 4) c.set[c.n_set++] = "components=4";
    if (set) c.set[c.n_set++] = set;
    return c;
}

/* Parameters away from their start: theta and the guide's logits of order 1, tanh units that are not saturated. */
static void scatter(rws_trainer *t, int C)
{
    rws_params *p = rws__trainer_state_of(t).params;
    rws_random  g = rws__random_new(rws__key_for(99, 0, RWS_KEY_DATA, 0), 0);
    for (int i = 0; i < p->n; i++) {
        const rws_param *q = p->list[i];
        double           sd = 0.5;
        if (q->group == RWS_THETA) sd = 1;
        if (strcmp(q->name, "phi.mlp.0.weight") == 0) sd = C == 4 ? 0.1 : 0.015;
        if (strcmp(q->name, "rho.0.weight") == 0) sd = 0.1;
        for (size_t k = 0; k < rws__param_size(q); k++) q->value[k] = (float)(sd * rws_random_normal(&g));
        if (strcmp(q->name, "rho.scale") == 0) q->value[0] = 0.7f;
        if (strcmp(q->name, "rho.log_temperature") == 0) q->value[0] = -0.3f;
        if (strcmp(q->name, "t") == 0) q->value[0] = 0; /* muprop expands about 0 */
    }
    rws_trainer_changed(t);
}

static rws_trainer *trainer_from(const rws_config *c, int C)
{
    static rws_model models[2];
    rws_model       *model = &models[C == 4];
    *model = rws_model_gmm;
    model->data = C == 4 ? data_few : data_many;
    rws_trainer *t = trainer_for(c, model);
    scatter(t, C);
    return t;
}

static rws_trainer *trainer(const char *method, const char *set, int C, int K, int batch)
{
    const rws_config c = config_for(method, set, C, K, batch);
    return trainer_from(&c, C);
}

static exact twin_of(rws_trainer *t)
{
    return exact_read(rws__trainer_state_of(t).params, 1);
}

/* ---- what is known of each estimator ---------------------------------------------------------------------------- */

static const struct {
    int C, K;
} shapes[] = {{4, 1}, {4, 2}, {4, 3}, {20, 2}};

static bool is_wrong(const known *e)
{
    return e->set && strcmp(e->set, "dww_ref_bug=1") == 0;
}

/* Where the estimator is defined at all. */
static bool fits(const known *e, int K)
{
    return K >= rws__estimator_find(e->method)->min_particles;
}

static void test_every_estimator_is_known(void **state)
{
    (void)state;
    for (int i = 0; rws_estimators[i]; i++) {
        bool found = !rws_estimators[i]->n_phases; /* em has no coefficients to expect */
        for (int k = 0; k < COUNT(table); k++) found |= is(&table[k], rws_estimators[i]->name);
        if (!found) fail_msg("No expectation for estimator %s in known.h.", rws_estimators[i]->name);
        assert_ptr_equal(rws__estimator_find(rws_estimators[i]->name), rws_estimators[i]);
        assert_non_null(rws_estimators[i]->help);
    }
    for (int k = 0; k < COUNT(table); k++) assert_non_null(rws__estimator_find(table[k].method));
    assert_null(rws__estimator_find("no such method"));
}

static void law_of(const known *e, const exact *m, double x, exact_law *law)
{
    if (is_wrong(e)) exact_law_wrong(m, x, e->delta, law);
    else if (e->defensive) exact_law_defensive(m, x, e->delta, law);
    else exact_law_guide(m, x, law);
}

/* Numbers of the method's own: nvil's shift and divisor of L for a datum. */
static const double *set_of(const known *e, const exact *m, const double *memory, double x, double *room)
{
    if (!is(e, "nvil")) return NULL;
    exact_net_forward(m, &m->baseline, &x, room);
    room[0] += memory[0];
    room[1] = fmax(1, sqrt(memory[1]));
    return room;
}

/* ---- the twin itself -------------------------------------------------------------------------------------------- */

/* The twin's gradient of E[L] against differences of its E[L]; and every method said to be unbiased, by enumeration. */
static void test_twin(void **state)
{
    (void)state;
    for (int s = 0; s < COUNT(shapes); s++) {
        const int    C = shapes[s].C, K = shapes[s].K;
        rws_trainer *t = trainer("nvil", NULL, C, K, 4);
        exact        m = twin_of(t);
        int          n_x;
        const float *x = points(C, &n_x);
        double      *g = calloc(2 * m.n, sizeof *g), *other = g + m.n, memory[] = {0.3, 0};
        for (int i = 0; i < n_x; i++) {
            memset(g, 0, 2 * m.n * sizeof *g);
            exact_bound_gradient(&m, (double)x[i], K, g);
            for (size_t k = 0; k < m.first[RWS_PHI + 1]; k++) {
                const double at = m.value[k], h = 1e-5, weight[] = {-8, 8, -1, 1}; /* differences of fourth order */
                double       slope = 0;
                for (int j = 0; j < 4; j++) {
                    m.value[k] = at + h * (double[]){-1, 1, 2, -2}[j];
                    slope += weight[j] * exact_bound(&m, (double)x[i], K) / (12 * h);
                }
                m.value[k] = at;
                assert_true(fabs(slope - g[k]) < 1e-6 * (1 + fabs(g[k])));
            }
            for (int e = 0; e < COUNT(table); e++) {
                if (!table[e].bound || table[e].kind != COUNTED || !fits(&table[e], K)) continue;
                exact_law law;
                double    by[EXACT_MAX_C], room[2];
                memset(other, 0, m.n * sizeof *other);
                law_of(&table[e], &m, (double)x[i], &law);
                exact_expect(&law, K, table[e].a, set_of(&table[e], &m, memory, (double)x[i], room), by);
                exact_guide_gradient(&m, (double)x[i], by, other);
                for (size_t k = m.first[RWS_PHI]; k < m.first[RWS_PHI + 1]; k++)
                    assert_true(fabs(other[k] - g[k]) < 1e-9 * (1 + fabs(g[k])));
            }
        }
        free(g);
        exact_release(&m);
        rws_trainer_free(t);
    }
}

/* ---- frozen noise ----------------------------------------------------------------------------------------------- */

/* A particle's choice and log-weight, drawn as the engine draws them. */
static int drawn(const known *e, const exact *m, double x, rws_key key, uint32_t datum, uint32_t k, double *l)
{
    double    log_d[EXACT_MAX_C], log_p[EXACT_MAX_C];
    exact_law law;
    exact_log_joint(m, x, log_p);
    if (e->defensive) exact_law_defensive(m, x, e->delta, &law);
    else exact_law_guide(m, x, &law);
    for (int c = 0; c < m->C; c++) log_d[c] = log(law.chance[c]);
    if (!is_wrong(e)) {
        const int z = exact_draw(key, datum, k, 0, log_d, m->C);
        *l = log_p[z] - log_d[z];
        return z;
    }
    double log_q[EXACT_MAX_C], log_u[EXACT_MAX_C];
    exact_log_guide(m, x, log_q);
    const int plain = exact_draw(key, datum, k, 0, log_q, m->C);
    for (int c = 0; c < m->C; c++) log_u[c] = log((c == plain ? 1 - e->delta : 0) + e->delta / m->C);
    const int z = exact_draw(key, datum, k, 1, log_u, m->C);
    *l = log_p[z] - log_d[plain];
    return z;
}

/* by[z] += scale times what the datum's particles count; returns L. */
static double add_particles(const known *e, const exact *m, double x, int K, rws_key key, uint32_t datum,
                            exact_coefficients a, const double *set, double scale, double *by)
{
    double l[EXACT_MAX_K] = {0}, coef[EXACT_MAX_K];
    int    z[EXACT_MAX_K];
    for (int k = 0; k < K; k++) z[k] = drawn(e, m, x, key, datum, (uint32_t)k, &l[k]);
    a(l, K, set, coef);
    for (int k = 0; k < K; k++) by[z[k]] += scale * coef[k];
    return exact_log_sum(l, K) - log(K);
}

static rws_key metric_key(uint64_t draw, uint32_t phase)
{
    return rws__key_for(7, 0, RWS_KEY_METRIC, (uint32_t)(2 * draw) + phase);
}

static void frozen_wake(const known *e, const exact *m, const double *memory, double x, int K, uint64_t draw, int datum,
                        double share, double *g)
{
    static const known plain = {"ww"};
    double             by_theta[EXACT_MAX_C] = {0}, by_phi[EXACT_MAX_C] = {0}, room[2];
    const double       L =
        add_particles(&plain, m, x, K, metric_key(draw, 0), (uint32_t)datum, exact_w, NULL, share, by_theta);
    exact_prior_gradient(m, by_theta, g);
    if (e->wake > 0)
        add_particles(e, m, x, K, metric_key(draw, e->defensive ? 1 : 0), (uint32_t)datum, e->a,
                      set_of(e, m, memory, x, room), share * e->wake, by_phi);
    exact_guide_gradient(m, x, by_phi, g);
    if (is(e, "nvil")) { /* the baseline's squared error falls */
        double b;
        exact_net_forward(m, &m->baseline, &x, &b);
        exact_net_backward(m, &m->baseline, &x, (double[]){2 * share * (L - b)}, NULL, g);
    }
}

static void frozen_sleep(const known *e, const exact *m, int n, uint64_t draw, double *g)
{
    const rws_key key = metric_key(draw, 1);
    double        log_pi[EXACT_MAX_C];
    exact_log_prior(m, log_pi);
    for (int s = 0; s < n; s++) {
        const int    z = exact_draw(key, 0, (uint32_t)s, 0, log_pi, m->C);
        const double x = EXACT_SPACING * z + EXACT_SD * exact_draw_normal(key, 0, (uint32_t)s, 1);
        double       by[EXACT_MAX_C] = {0};
        by[z] = e->sleep / n;
        exact_guide_gradient(m, x, by, g);
    }
}

/* Theta's part of a control variate's gradient, whose particles are the largest of perturbed log-probabilities. */
static void frozen_control_theta(const exact *m, double x, int K, rws_key key, int datum, double share, double *g)
{
    double log_q[EXACT_MAX_C], log_p[EXACT_MAX_C], l[EXACT_MAX_K], w[EXACT_MAX_K], by[EXACT_MAX_C] = {0};
    int    z[EXACT_MAX_K];
    exact_log_guide(m, x, log_q);
    exact_log_joint(m, x, log_p);
    for (int k = 0; k < K; k++) {
        double u[EXACT_MAX_C];
        exact_draw_uniforms(key, (uint32_t)datum, (uint32_t)k, 0, m->C, u);
        z[k] = 0;
        for (int c = 0; c < m->C; c++)
            if (log_q[c] - log(-log(u[c])) > log_q[z[k]] - log(-log(u[z[k]]))) z[k] = c;
        l[k] = log_p[z[k]] - log_q[z[k]];
    }
    exact_w(l, K, NULL, w);
    for (int k = 0; k < K; k++) by[z[k]] += share * w[k];
    exact_prior_gradient(m, by, g);
}

static double concrete_bound(const known *e, const exact *m, double tau, const float *x, int n_x, int K, int batch,
                             rws_key key)
{
    double total = 0;
    for (int d = 0; d < batch; d++)
        total +=
            e->smoothed
                ? exact_smoothed_bound(m, e->smoothing, e->sharpness, (double)x[d % n_x], K, key, (uint32_t)d) / batch
                : exact_concrete_bound(m, e->prior, tau, (double)x[d % n_x], K, key, (uint32_t)d) / batch;
    return total;
}

static void frozen_concrete(const known *e, exact *m, double tau, const float *x, int n_x, int K, int batch,
                            rws_key key, double *g)
{
    for (size_t k = 0; k < m->first[RWS_PHI + 1]; k++) {
        const double at = m->value[k], h = 1e-6;
        m->value[k] = at + h;
        const double above = concrete_bound(e, m, tau, x, n_x, K, batch, key);
        m->value[k] = at - h;
        const double below = concrete_bound(e, m, tau, x, n_x, K, batch, key);
        m->value[k] = at;
        g[k] = (above - below) / (2 * h);
    }
}

/* phi's gradient of a method with a control variate, mean over the batch. */
static void frozen_control(const known *e, const exact *m, const float *x, int n_x, int K, int batch, uint64_t draw,
                           double *g)
{
    double *one = calloc(m->n, sizeof *one);
    for (int d = 0; d < batch; d++)
        exact_control_gradient(m, e->controls, (double)x[d % n_x], K, metric_key(draw, 0), (uint32_t)d, one);
    for (size_t k = 0; k < m->n; k++) g[k] += one[k] / batch;
    free(one);
}

static void frozen_gradient(const known *e, exact *m, const double *memory, const float *x, int n_x, int K, int batch,
                            uint64_t draw, double *g)
{
    memset(g, 0, m->n * sizeof *g);
    switch (e->kind) {
    case COUNTED:
        for (int d = 0; d < batch; d++) frozen_wake(e, m, memory, (double)x[d % n_x], K, draw, d, 1.0 / batch, g);
        if (e->sleep > 0) frozen_sleep(e, m, batch * K, draw, g);
        break;
    case CONTROLLED:
        frozen_control(e, m, x, n_x, K, batch, draw, g);
        for (int d = 0; d < batch; d++)
            frozen_control_theta(m, (double)x[d % n_x], K, metric_key(draw, 0), d, 1.0 / batch, g);
        break;
    case PATHWISE: frozen_concrete(e, m, 3, x, n_x, K, batch, metric_key(draw, 0), g); break;
    }
}

/* Largest difference between two gradients of a group, as a share of the largest number in it. */
static double distance(const float *a, const double *b, size_t first, size_t end)
{
    double top = 0, apart = 0;
    for (size_t k = first; k < end; k++) {
        top = fmax(top, fabs(b[k]));
        apart = worse(apart, fabs((double)a[k] - b[k]));
    }
    return top > 0 ? apart / top : apart;
}

/* One gradient of theta, phi and the baseline against the twin with the same draws: what remains is rounding. */
static void test_frozen_noise(void **state)
{
    (void)state;
    enum { BATCH = 9, DRAWS = 3 };
    for (int i = 0; i < COUNT(table); i++)
        for (int s = 0; s < COUNT(shapes); s++) {
            const known *e = &table[i];
            const int    C = shapes[s].C, K = shapes[s].K;
            if (!fits(e, K)) continue;
            rws_trainer *t = trainer(e->method, e->set, C, K, BATCH);
            double      *memory = rws__trainer_state_of(t).memory;
            if (is(e, "nvil")) memory[0] = -2.5, memory[1] = 6.25; /* signals are shifted and divided by 2.5 */
            exact        m = twin_of(t);
            int          n_x;
            const float *x = points(C, &n_x);
            float       *g = malloc(m.n * sizeof *g);
            double      *right = malloc(m.n * sizeof *right);
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                gradient_of(t, draw, g);
                frozen_gradient(e, &m, memory, x, n_x, K, BATCH, draw, right);
                for (int group = 0; group < RWS_GROUPS; group++) {
                    if (group == RWS_CONTROL) continue;
                    const double apart = distance(g, right, m.first[group], m.first[group + 1]);
                    /* near the edge of a spike, zeta is a small difference of floats */
                    const double allowed = e->smoothed && e->smoothing == RWS_SMOOTH_SPIKE ? 5e-2 : 2e-4;
                    if (!(apart < allowed))
                        fail_msg("%s, draw %d, group %d: gradients differ by %g of their size.", label(e, C, K),
                                 (int)draw, group, apart);
                }
            }
            free(g);
            free(right);
            exact_release(&m);
            rws_trainer_free(t);
        }
}

/* ---- expectation ------------------------------------------------------------------------------------------------ */

/* The expected gradient of theta and phi, mean over the data. */
static void expected_gradient(const known *e, const exact *m, const double *memory, const float *x, int n_x, int K,
                              double *g)
{
    double *sum = calloc(2 * m->n, sizeof *sum), *dream = sum + m->n;
    for (int i = 0; i < n_x; i++) {
        double by[EXACT_MAX_C], room[2];
        exact_wake_theta(m, (double)x[i], K, sum);
        if (e->kind == CONTROLLED) {
            exact_law law;
            exact_law_guide(m, (double)x[i], &law);
            exact_expect(&law, K, exact_reinforce, NULL, by);
            exact_guide_gradient(m, (double)x[i], by, sum);
        } else if (e->wake > 0) {
            exact_law law;
            law_of(e, m, (double)x[i], &law);
            exact_expect(&law, K, e->a, set_of(e, m, memory, (double)x[i], room), by);
            for (int c = 0; c < m->C; c++) by[c] *= e->wake;
            exact_guide_gradient(m, (double)x[i], by, sum);
        }
    }
    if (e->sleep > 0) exact_sleep(m, dream);
    for (size_t k = 0; k < m->n; k++) g[k] = sum[k] / n_x + e->sleep * dream[k];
    free(sum);
}

/* The mean of gradients, each itself a mean over many copies of the data, has t-distributed coordinates. All entries
 * and shapes together make about 13000 of them, so that a right estimator fails with probability below
 * 13000 * 2.5e-9 = 4e-5. */
static void check_expectation(const known *e, int C, int K, const double *memory)
{
    enum { COPIES = 400, DRAWS = 100 };
    int          n_x;
    const float *x = points(C, &n_x);
    rws_trainer *t = trainer(e->method, e->set, C, K, COPIES * n_x);
    if (memory) memcpy(rws__trainer_state_of(t).memory, memory, RWS_METHOD_MEMORY * sizeof *memory);
    exact   m = twin_of(t);
    double *right = malloc(m.n * sizeof *right);
    expected_gradient(e, &m, rws__trainer_state_of(t).memory, x, n_x, K, right);
    assert_mean(label(e, C, K), t, right, m.first[RWS_PHI + 1], DRAWS, 0);
    free(right);
    exact_release(&m);
    rws_trainer_free(t);
}

static void test_expectation(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++)
        for (int s = 0; s < COUNT(shapes); s++)
            if (table[i].kind != PATHWISE && fits(&table[i], shapes[s].K))
                check_expectation(&table[i], shapes[s].C, shapes[s].K, NULL);
}

/* E[L] of a smoothed choice among two, K = 1: the integral over the uniform that its only bit is drawn from. */
static double smoothed_integral(const exact *m, const known *e, const float *x, int n_x)
{
    enum { POINTS = 2000 };
    double total = 0;
    for (int i = 0; i < n_x; i++)
        for (int j = 0; j < POINTS; j++)
            total += exact_smoothed_at(m, e->smoothing, e->sharpness, (double)x[i], (j + 0.5) / POINTS) / POINTS / n_x;
    return total;
}

/* The gradient of that integral. A spike is left out: there the density jumps where a bit leaves the spike, which a gradient
 * through the draw does not see (dvae.c). */
static void test_smoothed_expectation(void **state)
{
    (void)state;
    enum { COPIES = 400, DRAWS = 100 };
    for (int i = 0; i < COUNT(table); i++) {
        const known *e = &table[i];
        if (!e->smoothed || e->smoothing == RWS_SMOOTH_SPIKE) continue;
        rws_config c = config_for(e->method, e->set, 0, 1, COPIES * COUNT(few));
        c.set[c.n_set++] = "components=2";
        rws_trainer *t = trainer_from(&c, 4);
        exact        m = twin_of(t);
        double      *right = calloc(m.n, sizeof *right);
        for (size_t k = 0; k < m.first[RWS_PHI + 1]; k++) {
            const double at = m.value[k], h = 1e-5;
            m.value[k] = at + h;
            right[k] = smoothed_integral(&m, e, few, COUNT(few));
            m.value[k] = at - h;
            right[k] = (right[k] - smoothed_integral(&m, e, few, COUNT(few))) / (2 * h);
            m.value[k] = at;
        }
        assert_mean(label(e, 2, 1), t, right, m.first[RWS_PHI + 1], DRAWS, 0);
        free(right);
        exact_release(&m);
        rws_trainer_free(t);
    }
}

/* With a variance above 1 the signal is scaled: what nvil then estimates is not the bound's gradient, but known. */
static void test_nvil_scaled_expectation(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++)
        if (is(&table[i], "nvil")) check_expectation(&table[i], 4, 2, (double[]){-4, 9});
}

/* ---- what control variates learn by ----------------------------------------------------------------------------- */

/* J = |g_phi|^2 / D */
static double spread(const known *e, const exact *m, const float *x, int n_x, int K, int batch, uint64_t draw)
{
    double      *g = calloc(m->n, sizeof *g), total = 0;
    const size_t first = m->first[RWS_PHI], end = m->first[RWS_PHI + 1];
    frozen_control(e, m, x, n_x, K, batch, draw, g);
    for (size_t k = first; k < end; k++) total += g[k] * g[k];
    free(g);
    return total / (double)(end - first);
}

/* Sets the scale of a control variate to exactly 0. */
static bool forget_scale(rws_trainer *t)
{
    rws_params *p = rws__trainer_state_of(t).params;
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, "rho.scale") == 0) {
            p->list[i]->value[0] = 0;
            rws_trainer_changed(t);
            return true;
        }
    return false;
}

static void check_control_gradient(bool forgotten)
{
    enum { BATCH = 5, DRAWS = 2 };
    int n_forgotten = 0;
    for (int i = 0; i < COUNT(table); i++)
        for (int s = 0; s < COUNT(shapes); s++) {
            const known *e = &table[i];
            const int    C = shapes[s].C, K = shapes[s].K;
            if (e->kind != CONTROLLED || e->controls == EXACT_MUPROP) continue; /* which learns nothing */
            rws_trainer *t = trainer(e->method, e->set, C, K, BATCH);
            if (forgotten) n_forgotten += forget_scale(t);
            exact        m = twin_of(t);
            int          n_x;
            const float *x = points(C, &n_x);
            float       *g = malloc(m.n * sizeof *g);
            double      *right = calloc(m.n, sizeof *right);
            const size_t first = m.first[RWS_CONTROL], end = m.first[RWS_CONTROL + 1];
            assert_true(end > first);
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                gradient_of(t, draw, g);
                for (size_t k = first; k < end; k++) {
                    const double at = m.value[k], h = 1e-5;
                    m.value[k] = at + h;
                    const double above = spread(e, &m, x, n_x, K, BATCH, draw);
                    m.value[k] = at - h;
                    const double below = spread(e, &m, x, n_x, K, BATCH, draw);
                    m.value[k] = at;
                    right[k] = -(above - below) / (2 * h);
                }
                const double apart = distance(g, right, first, end);
                if (!(apart < 5e-4))
                    fail_msg("%s, draw %d: gradients of the control variate differ by %g.", label(e, C, K), (int)draw,
                             apart);
            }
            free(g);
            free(right);
            exact_release(&m);
            rws_trainer_free(t);
        }
    assert_true(!forgotten || n_forgotten >= COUNT(shapes));
}

static void test_control_gradient(void **state)
{
    (void)state;
    check_control_gradient(false);
}

/* A control variate whose scale is 0 learns its scale. */
static void test_control_gradient_at_scale_0(void **state)
{
    (void)state;
    check_control_gradient(true);
}

static double engine_spread(rws_trainer *t, float *g)
{
    const rws_params *p = rws__trainer_state_of(t).params;
    double            total = 0;
    gradient_of(t, 0, g);
    for (size_t k = p->first[RWS_PHI]; k < p->first[RWS_PHI + 1]; k++) total += (double)g[k] * (double)g[k];
    return total / (double)(p->first[RWS_PHI + 1] - p->first[RWS_PHI]);
}

/* The same from the engine alone: coarse, as floats only allow large differences. */
static void test_control_gradient_by_engine(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++) {
        if (table[i].kind != CONTROLLED || table[i].controls == EXACT_MUPROP) continue;
        rws_trainer *t = trainer(table[i].method, table[i].set, 4, 3, 16);
        rws_params  *p = rws__trainer_state_of(t).params;
        float       *g = malloc(2 * p->size * sizeof *g), *moved = g + p->size;
        double      *right = calloc(p->size, sizeof *right);
        gradient_of(t, 0, g);
        for (size_t k = p->first[RWS_CONTROL]; k < p->first[RWS_CONTROL + 1]; k++) {
            const float at = p->value[k], h = 4e-3f;
            p->value[k] = at + h;
            rws_trainer_changed(t);
            const double above = engine_spread(t, moved);
            p->value[k] = at - h;
            rws_trainer_changed(t);
            const double below = engine_spread(t, moved);
            p->value[k] = at;
            right[k] = -(above - below) / (2 * (double)h);
        }
        rws_trainer_changed(t);
        assert_true(distance(g, right, p->first[RWS_CONTROL], p->first[RWS_CONTROL + 1]) < 1e-2);
        free(g);
        free(right);
        rws_trainer_free(t);
    }
}

/* A control variate that learns must lower the spread of the gradient, here from the same start on fixed data. */
static void test_control_learns(void **state)
{
    (void)state;
    rws_config c = config_for("relax", NULL, 4, 2, 64);
    c.lr = "1e-2";
    rws_trainer *t = trainer_from(&c, 4);
    rws_params  *p = rws__trainer_state_of(t).params;
    const size_t first = p->first[RWS_CONTROL], size = p->size;
    float       *start = malloc(size * sizeof *start), *g = malloc(size * sizeof *g);
    double       before = 0, after = 0;
    memcpy(start, p->value, size * sizeof *start);
    for (int round = 0; round < 2; round++) {
        double total = 0;
        for (uint64_t draw = 0; draw < 200; draw++) {
            gradient_of(t, draw, g);
            for (size_t k = p->first[RWS_PHI]; k < p->first[RWS_PHI + 1]; k++) total += (double)g[k] * (double)g[k];
        }
        if (round == 1) {
            after = total;
            break;
        }
        before = total;
        for (int i = 0; i < 300; i++) { /* theta and phi stay where they are */
            steps(t, 1);
            memcpy(p->value, start, first * sizeof *start);
            rws_trainer_changed(t);
        }
    }
    assert_true(after < 0.8 * before);
    free(start);
    free(g);
    rws_trainer_free(t);
}

/* ---- nvil ------------------------------------------------------------------------------------------------------- */

/* Running mean and variance of L - b(x) over iterations of training, replayed by the twin with the same draws. The
 * guide's gradients with those numbers are in test_frozen_noise. */
static void test_nvil_memory(void **state)
{
    (void)state;
    enum { BATCH = 24, K = 3 };
    const known *e = entry("nvil", NULL);
    rws_config   c = config_for("nvil", "nvil_decay=0.7", 4, K, BATCH);
    rws_trainer *t = trainer_from(&c, 4);
    double       mean = 0, variance = 0;
    double      *memory = rws__trainer_state_of(t).memory;
    assert_true(memory[0] == 0 && memory[1] == 0);
    for (uint64_t i = 0; i < 8; i++) {
        exact         m = twin_of(t);
        const rws_key key = rws__key_for(7, i, RWS_KEY_WAKE, 0);
        double        sum = 0, squares = 0;
        for (int d = 0; d < BATCH; d++) {
            const double x = (double)few[d % COUNT(few)];
            double       b, by[EXACT_MAX_C];
            exact_net_forward(&m, &m.baseline, &x, &b);
            const double error = add_particles(e, &m, x, K, key, (uint32_t)d, exact_w, NULL, 1, by) - b;
            sum += error / BATCH, squares += error * error / BATCH;
        }
        mean = 0.7 * mean + 0.3 * sum;
        variance = 0.7 * variance + 0.3 * (squares - sum * sum);
        steps(t, 1);
        assert_true(close_to(memory[0], mean, 1e-5));
        assert_true(close_to(memory[1], variance, 1e-5));
        exact_release(&m);
    }
    rws_trainer_free(t);
}

/* The baseline learns at nvil_lr times the rate: one step of plain gradient ascent shows it. */
static void test_nvil_rate(void **state)
{
    (void)state;
    rws_config c = config_for("nvil", "nvil_lr=4", 4, 2, 8);
    c.optimiser = "sgd";
    c.lr = "1e-3";
    rws_trainer *t = trainer_from(&c, 4);
    rws_params  *p = rws__trainer_state_of(t).params;
    exact        m = twin_of(t);
    double      *g = calloc(m.n, sizeof *g);
    const known *e = entry("nvil", NULL);
    for (int d = 0; d < 8; d++) {
        const double x = (double)few[d % COUNT(few)];
        double       b, by[EXACT_MAX_C];
        exact_net_forward(&m, &m.baseline, &x, &b);
        const double L =
            add_particles(e, &m, x, 2, rws__key_for(7, 0, RWS_KEY_WAKE, 0), (uint32_t)d, exact_w, NULL, 1, by);
        exact_net_backward(&m, &m.baseline, &x, (double[]){2 * (L - b) / 8}, NULL, g);
    }
    steps(t, 1);
    double top = 0;
    for (size_t k = m.first[RWS_BASELINE]; k < m.first[RWS_BASELINE + 1]; k++) top = fmax(top, fabs(g[k]));
    for (size_t k = m.first[RWS_BASELINE]; k < m.first[RWS_BASELINE + 1]; k++)
        assert_true(fabs((double)p->value[k] - m.value[k] - 4e-3 * g[k]) < 4e-3 * 1e-4 * top + 1e-7);
    free(g);
    exact_release(&m);
    rws_trainer_free(t);
}

/* ---- concrete's temperature ------------------------------------------------------------------------------------- */

/* It falls linearly from tau_start to tau_end: in iteration 40 of 100 it is 3 - 0.4 * 2.5 = 2. Seen in a step of plain
 * gradient ascent, and in the gradient asked for before it. */
static void test_concrete_temperature(void **state)
{
    (void)state;
    enum { BATCH = 6, K = 2 };
    const known *e = entry("concrete", NULL);
    rws_config   c = config_for("concrete", NULL, 4, K, BATCH);
    c.iterations = 100;
    c.optimiser = "sgd";
    c.lr = "0.125";
    rws_trainer *t = trainer_from(&c, 4);
    rws_params  *p = rws__trainer_state_of(t).params;
    exact        m = twin_of(t);
    float       *g = malloc(m.n * sizeof *g);
    double      *right = calloc(m.n, sizeof *right);
    *rws__trainer_state_of(t).iteration = 40;
    gradient_of(t, 0, g);
    steps(t, 1);
    frozen_concrete(e, &m, 2, few, COUNT(few), K, BATCH, rws__key_for(7, 40, RWS_KEY_WAKE, 0), right);
    double top = 0;
    for (size_t k = 0; k < m.n; k++) top = fmax(top, fabs(right[k]));
    for (size_t k = 0; k < m.n; k++)
        assert_true(fabs((double)p->value[k] - m.value[k] - 0.125 * right[k]) < 0.125 * 2e-4 * top + 1e-6);
    frozen_concrete(e, &m, 2, few, COUNT(few), K, BATCH, rws__key_for(7, 40, RWS_KEY_METRIC, 0), right);
    assert_true(distance(g, right, 0, m.n) < 2e-4);
    free(g);
    free(right);
    exact_release(&m);
    rws_trainer_free(t);
}

/* ---- parts of a batch ------------------------------------------------------------------------------------------- */

/* Every method gives the same gradient whether a batch is cut into shards or not, and whether particles share rows or
 * not; also where some shards have no data, after a pass in which they had. */
static void test_shards(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(table); i++) {
        const known *e = &table[i];
        rws_config   c = config_for(e->method, e->set, 4, 3, 7);
        c.shards = 1;
        rws_trainer *t = trainer_from(&c, 4);
        const size_t size = rws__trainer_state_of(t).params->size;
        float       *a = malloc(2 * size * sizeof *a), *b = a + size;
        double      *right = malloc(size * sizeof *right);
        gradient_of(t, 3, a);
        for (size_t k = 0; k < size; k++) right[k] = (double)a[k];
        rws_trainer_free(t);
        for (int variant = 0; variant < 3; variant++) {
            rws_error  err;
            rws_config other = c;
            other.shards = (int[]){3, 10, 1}[variant];
            other.threads = variant == 0 ? 2 : 1;
            other.scalar = variant == 2;
            t = trainer_from(&other, 4);
            assert_int_equal(rws_trainer_gradient(t, RWS_TEST, 0, b, rws_trainer_size(t), &err), RWS_OK);
            gradient_of(t, 3, b);
            for (int group = 0; group < RWS_GROUPS; group++) {
                const rws_params *p = rws__trainer_state_of(t).params;
                const double      apart = distance(b, right, p->first[group], p->first[group + 1]);
                if (!(apart < 1e-4))
                    fail_msg("%s, %d shards%s: group %d differs by %g.", label(e, 4, 3), other.shards,
                             other.scalar ? ", scalar" : "", group, apart);
            }
            rws_trainer_free(t);
        }
        free(a);
        free(right);
    }
}

/* ---- programs around a relaxed choice ---------------------------------------------------------------------------- */

/* A relaxed model that branches, where the guide does not. */
static rws_var branching(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how)
{
    const rws_var v = rws_model_gmm.relaxed(path, state, log_s, temperature, how);
    if (!rws_branch(path, rws_greater(path, rws_observed(path, "x"), rws_constant(path, 10)))) return v;
    return rws_affine(path, rws_model_gmm.relaxed(path, state, log_s, temperature, how), 1, 0);
}

static const char *const relaxing[] = {"concrete", "dvae", "rebar", "relax", "muprop"};

static void test_relaxed_branches(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(relaxing); i++) {
        rws_model other = rws_model_gmm;
        other.relaxed = branching;
        other.data = data_few;
        const rws_config c =
            config_for(relaxing[i], strcmp(relaxing[i], "relax") == 0 ? "relax_control=rebar" : NULL, 4, 3, 8);
        rws_trainer *a = trainer_from(&c, 4), *b = trainer_for(&c, &other);
        scatter(b, 4);
        const size_t size = rws__trainer_state_of(a).params->size;
        float       *g = malloc(2 * size * sizeof *g);
        gradient_of(a, 3, g);
        gradient_of(b, 3, g + size);
        assert_close(g + size, g, size, 1e-4, relaxing[i]);
        free(g);
        rws_trainer_free(a);
        rws_trainer_free(b);
    }
}

/* Programs that draw more than the relaxed choice, or something else in its place. */
static int which_extra;

static void draw_extra(rws_path *path)
{
    const rws_var even = rws_constants(path, (float[]){0, 0, 0, 0}, 4), zero = rws_constant(path, 0);
    if (which_extra == 0) rws_categorical(path, "w", even);
    else if (which_extra == 1) rws_normal(path, "w", zero, rws_constant(path, 1));
    else if (which_extra == 2) rws_bernoulli(path, "z", zero);
    else if (which_extra == 3) rws_categorical(path, "z", even);
}

static void extra_guide(rws_path *path, const void *state)
{
    draw_extra(path);
    if (which_extra < 4) rws_model_gmm.guide(path, state);
    else if (which_extra == 4) rws_categorical(path, "z", rws_constants(path, (float[]){0, 0, 0}, 3));
    else if (which_extra == 6) {
        const rws_var     even = rws_zeros(path, 4), odd = rws_constants(path, (float[]){0, 1, 0, 1}, 4);
        const rws_family *one = rws_family_find("categorical");
        rws_mixture(path, "z", rws_zeros(path, 2), (rws_component[]){{one, &even}, {one, &odd}}, 2);
    }
}

static void extra_model(rws_path *path, const void *state)
{
    const rws_var sd = rws_constant(path, 5);
    draw_extra(path);
    if (which_extra < 4 || which_extra == 6) rws_model_gmm.model(path, state);
    else if (which_extra == 4)
        rws_normal(path, "x", rws_categorical(path, "z", rws_constants(path, (float[]){0, 0, 0}, 3)), sd);
    else rws_normal(path, "x", rws_constant(path, 0), sd);
}

static void test_one_relaxed_choice(void **state)
{
    (void)state;
    const char *const messages[] = {
        "The guide draws categorical at site \"w\", but this method needs a guide that draws one categorical at",
        "The guide draws normal at site \"w\"",
        "The guide draws bernoulli at site \"z\"",
        "The guide draws categorical at site \"z\"",
        "Site \"z\" is a choice of 3 in the guide, but rws_setup_relaxed was given 4.",
        "The guide does not draw site \"z\", which the model relaxes.",
        "a mixture cannot be relaxed; this method needs a guide that draws a plain categorical.",
    };
    for (int i = 0; i < COUNT(relaxing); i++)
        for (which_extra = i < 2 ? 6 : 0; /* concrete and dvae have messages of the engine for the other cases */
             which_extra < COUNT(messages); which_extra++) {
            rws_model other = rws_model_gmm;
            rws_error err = {""};
            other.guide = extra_guide;
            other.model = extra_model;
            other.data = data_few;
            const rws_config c = config_for(relaxing[i], NULL, 4, 3, 8);
            rws_trainer     *t = trainer_for(&c, &other);
            float           *g = malloc(rws_trainer_size(t) * sizeof *g);
            const rws_status status = rws_trainer_gradient(t, RWS_TRAIN, 0, g, rws_trainer_size(t), &err);
            if (status != RWS_BAD_INPUT || !strstr(err.text, messages[which_extra]))
                fail_msg("%s, case %d: status %d, \"%s\"", relaxing[i], which_extra, (int)status, err.text);
            free(g);
            rws_trainer_free(t);
        }
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void expect_refusal(const rws_config *c, const rws_model *model, const char *part)
{
    rws_trainer     *t = NULL;
    rws_error        err = {""};
    const rws_status status = rws_trainer_new(c, model, &t, &err);
    if (status != RWS_BAD_INPUT || !strstr(err.text, part))
        fail_msg("%s %s: status %d, \"%s\" without \"%s\"", c->method, c->n_set ? c->set[c->n_set - 1] : "",
                 (int)status, err.text, part);
    assert_null(t);
}

/* The temperature of the relaxed bound starts where it is told, and an iteration leaves it no colder than it may be. */
static void test_temperature_of_rebar(void **state)
{
    (void)state;
    static const char *const methods[] = {"rebar", "relax"};
    for (int i = 0; i < COUNT(methods); i++) {
        rws_config c = config_for(methods[i], "rebar_tau=0.2", 4, 3, 8);
        if (i == 1) c.set[c.n_set++] = "relax_control=sum";
        rws_trainer      *t = trainer_for(&c, &rws_model_gmm);
        const rws_params *p = rws__trainer_state_of(t).params;
        const rws_param  *tau = p->list[p->n - 1]; /* the one that was declared last */
        rws_error         err;
        assert_string_equal(tau->name, "rho.log_temperature");
        assert_true(fabsf(tau->value[0] - logf(0.2f)) < 1e-6f);
        tau->value[0] = -10;
        rws_trainer_changed(t);
        assert_int_equal(rws_trainer_step(t, &err), RWS_OK);
        assert_true(fabsf(tau->value[0] - logf(0.1f)) < 1e-6f);
        rws_trainer_free(t);
    }
}

static const rws_setting *setting_of(const rws_estimator *e, const char *name)
{
    for (int i = 0; e->settings && e->settings[i].name; i++)
        if (strcmp(e->settings[i].name, name) == 0) return &e->settings[i];
    return NULL;
}

static void test_refusals(void **state)
{
    (void)state;
    rws_model hard = rws_model_gmm;
    hard.relaxed = NULL;
    for (int i = 0; rws_estimators[i]; i++) {
        const rws_estimator *e = rws_estimators[i];
        rws_config           c = config_for(e->name, NULL, 4, 3, 4);
        if (!e->n_phases) { /* em: the model would have to do it */
            expect_refusal(&c, &rws_model_gmm, "Method em does not apply to model gmm: it has no exact sums");
            continue;
        }
        rws_trainer_free(trainer_for(&c, &rws_model_gmm));
        if (e->refuses) expect_refusal(&c, &hard, e->name);
        else rws_trainer_free(trainer_for(&c, &hard));

        c.particles = 1;
        if (e->min_particles > 1) expect_refusal(&c, &rws_model_gmm, "at least 2 particles");
        else rws_trainer_free(trainer_for(&c, &rws_model_gmm));

        for (int j = 0; rws_estimators[j]; j++) /* settings of its own and of others, at their defaults */
            for (const rws_setting *s = rws_estimators[j]->settings; s && s->name; s++) {
                char text[80];
                snprintf(text, sizeof text, "%s=%s", s->name, s->value);
                c = config_for(e->name, text, 4, 3, 4);
                if (setting_of(e, s->name)) rws_trainer_free(trainer_for(&c, &rws_model_gmm));
                else expect_refusal(&c, &rws_model_gmm, rws_estimators[j]->name);
                if (!setting_of(e, s->name) || (s->min == 0 && s->max == 0)) continue;
                snprintf(text, sizeof text, "%s=%g", s->name, s->max + 1);
                expect_refusal(&c, &rws_model_gmm, s->name);
                snprintf(text, sizeof text, "%s=nan", s->name);
                expect_refusal(&c, &rws_model_gmm, s->name);
                snprintf(text, sizeof text, "%s=much", s->name);
                expect_refusal(&c, &rws_model_gmm, s->name);
            }
    }
    for (int i = 0; i < COUNT(relaxing); i++) assert_true(rws__estimator_find(relaxing[i])->refuses);
    assert_int_equal(rws__estimator_find("vimco")->min_particles, 2);
    assert_int_equal(rws__estimator_find("rloo")->min_particles, 2);

    rws_config c = config_for("concrete", "concrete_prior=firm", 4, 3, 4);
    expect_refusal(&c, &rws_model_gmm, "concrete_prior");
    c = config_for("rebar", "rebar_tau=0.05", 4, 3, 4);
    expect_refusal(&c, &rws_model_gmm, "rebar_tau=0.05 is below rebar_coldest=0.1; set both.");
    c = config_for("dww", "=0.2", 4, 3, 4);
    expect_refusal(&c, &rws_model_gmm, "name=value");
    c = config_for("dww", "gamma=0.2", 4, 3, 4);
    expect_refusal(&c, &rws_model_gmm, "gamma");
    c = config_for("guess", NULL, 4, 3, 4);
    expect_refusal(&c, &rws_model_gmm, "guess");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_estimator_is_known),
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_frozen_noise),
        cmocka_unit_test(test_control_gradient),
        cmocka_unit_test(test_control_gradient_at_scale_0),
        cmocka_unit_test(test_control_gradient_by_engine),
        cmocka_unit_test(test_control_learns),
        cmocka_unit_test(test_nvil_memory),
        cmocka_unit_test(test_nvil_rate),
        cmocka_unit_test(test_concrete_temperature),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_relaxed_branches),
        cmocka_unit_test(test_one_relaxed_choice),
        cmocka_unit_test(test_temperature_of_rebar),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_expectation),
        cmocka_unit_test(test_smoothed_expectation),
        cmocka_unit_test(test_nvil_scaled_expectation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
