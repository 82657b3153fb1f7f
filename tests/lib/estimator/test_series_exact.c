/* test_series_exact.c - every estimator of the table on models with a series of up to three items, against sums over all
 * traces and all tuples of particles.
 *
 *   chain     a state for each item, which C code branches on: 2, 4 or 8 traces       methods without a relaxed model
 *   mixture   one state for all items, never branched on: 4 traces                    all methods
 *
 * The expected gradient of phi is that of sum_z by[z] log q(z|x), where by[z] comes from exact_expect; gradients of the two
 * log-densities are differences of a twin in double precision. A relaxed model is compared draw by draw. */
#include "known.h"
#include "lib/dist/smoothed.h"
#include "trained.h"

#include <string.h>

enum { ITEMS = 3, SYMBOLS = 2, STATES = 2, KINDS = 4, TRACES = 8, N_DATA = 3, SEED = 7 };

static const float items[N_DATA][1 + ITEMS] = {{1, 1}, {2, 0, 1}, {3, 1, 1, 0}};

/* ---- the models */

typedef struct {
    rws_param *first, *next, *emit; /* theta: logits; next is the chain's */
    rws_layer *seen, *before;       /* phi: logits from an item, and from the state before */
} net;

static rws_status setup(rws_setup *s, void **state, int n_states, bool chain)
{
    net *m = *state = rws_setup_alloc(s, sizeof *m);
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "x", 1, ITEMS);
    m->first = rws_setup_param(s, RWS_THETA, "theta.first", 1, n_states, RWS_ZERO);
    if (chain) m->next = rws_setup_param(s, RWS_THETA, "theta.next", n_states, n_states, RWS_ZERO);
    else rws_setup_relaxed(s, "z", n_states);
    m->emit = rws_setup_param(s, RWS_THETA, "theta.emit", n_states, SYMBOLS, RWS_ZERO);
    m->seen = rws_setup_embedding(s, RWS_PHI, "phi.seen", SYMBOLS, n_states);
    m->before = rws_setup_embedding(s, RWS_PHI, "phi.before", chain ? n_states + 1 : ITEMS, n_states);
    return RWS_OK;
}

static rws_status setup_chain(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    return setup(s, state, STATES, true);
}

static rws_status setup_mixture(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    return setup(s, state, KINDS, false);
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)random, (void)err;
    for (int i = 0; i < n; i++) {
        fields[0][i] = items[i % N_DATA][0] - 1;
        memcpy(fields[1] + (size_t)i * (1 + ITEMS), items[i % N_DATA], sizeof items[0]);
    }
    return RWS_OK;
}

static int model_length(rws_path *path)
{
    return 1 + rws_choose(path, "n", rws_constants(path, (float[ITEMS]){0}, ITEMS));
}

static rws_var row(rws_path *path, const rws_param *p, int i, int n)
{
    return rws_slice(path, rws_parameter(path, p), i * n, n);
}

static void model_chain(rws_path *path, const void *state)
{
    const net *m = state;
    const int  n = model_length(path);
    for (int t = 0, z = 0; t < n; t++) {
        z = rws_choose(path, "z", t ? row(path, m->next, z, STATES) : rws_parameter(path, m->first));
        rws_categorical(path, "x", row(path, m->emit, z, SYMBOLS));
    }
}

static void guide_chain(rws_path *path, const void *state)
{
    const net *m = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    for (int t = 0, z = STATES; t < n; t++)
        z = rws_choose(path, "z",
                       rws_add(path, rws_embedding(path, m->seen, rws_item(path, "x", t)),
                               rws_embedding(path, m->before, rws_constant(path, (float)z))));
}

static void model_mixture(rws_path *path, const void *state)
{
    const net    *m = state;
    const int     n = model_length(path);
    const rws_var z = rws_categorical(path, "z", rws_parameter(path, m->first));
    for (int t = 0; t < n; t++) rws_categorical(path, "x", rws_row(path, rws_parameter(path, m->emit), SYMBOLS, z));
}

static void guide_mixture(rws_path *path, const void *state)
{
    const net *m = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    rws_var    logits = rws_embedding(path, m->before, rws_constant(path, (float)(n - 1)));
    for (int t = 0; t < n; t++) logits = rws_add(path, logits, rws_embedding(path, m->seen, rws_item(path, "x", t)));
    rws_categorical(path, "z", logits);
}

/* The items are emitted by the mean of the states' logits under the point. */
static rws_var relaxed(rws_path *path, const void *state, rws_var log_s, rws_var temperature, rws_relaxation how)
{
    const net    *m = state;
    const int     n = rws_branch(path, rws_length(path, "x"));
    const rws_var log_pi = rws_log_softmax(path, rws_parameter(path, m->first)), s = rws_apply(path, RWS_EXP, log_s);
    rws_var       total, mean[KINDS];
    switch (how) {
    case RWS_RELAX_SOFT: total = rws_log_sum_exp(path, rws_add(path, log_s, log_pi)); break;
    case RWS_RELAX_DENSITY: total = rws_relaxed_density(path, log_s, log_pi, temperature); break;
    default: total = rws_pick(path, log_pi, rws_argmax(path, log_s)); break;
    }
    for (int c = 0; c < KINDS; c++) mean[c] = rws_mul(path, row(path, m->emit, c, SYMBOLS), rws_slice(path, s, c, 1));
    const rws_var log_emit = rws_log_softmax(path, rws_sum_many(path, mean, KINDS));
    for (int t = 0; t < n; t++) total = rws_add(path, total, rws_pick(path, log_emit, rws_item(path, "x", t)));
    return rws_affine(path, total, 1, -(float)log(ITEMS));
}

static const rws_model chain = {.abi = RWS_ABI,
                                .name = "chain",
                                .help = "a state for each item",
                                .setup = setup_chain,
                                .data = data,
                                .guide = guide_chain,
                                .model = model_chain};
static const rws_model mixture = {.abi = RWS_ABI,
                                  .name = "mixture",
                                  .help = "a state for all items",
                                  .setup = setup_mixture,
                                  .data = data,
                                  .guide = guide_mixture,
                                  .model = model_mixture,
                                  .relaxed = relaxed};

/* ---- the twin */

typedef struct {
    const rws_params *params;
    double           *value; /* laid out like the trainer's numbers */
    bool              chain;
} twin;

static const double *at(const twin *w, const char *name)
{
    return w->value + param_of(w->params, "%s", name)->offset;
}

static int n_traces(const twin *w, const float *x)
{
    return w->chain ? 1 << (int)x[0] : KINDS;
}

static double log_softmax_at(const double *logits, int n, int i)
{
    return logits[i] - exact_log_sum(logits, n);
}

/* The state of item t in a trace: a bit of the number, or the number. */
static int state_at(const twin *w, int trace, int t)
{
    return w->chain ? trace >> t & 1 : trace;
}

static double log_p(const twin *w, const float *x, int trace)
{
    const double *first = at(w, "theta.first"), *next = w->chain ? at(w, "theta.next") : NULL;
    const double *emit = at(w, "theta.emit");
    double        total = log_softmax_at(first, w->chain ? STATES : KINDS, state_at(w, trace, 0)) - log(ITEMS);
    for (int t = 0; t < (int)x[0]; t++) {
        const int z = state_at(w, trace, t);
        if (t && w->chain) total += log_softmax_at(next + state_at(w, trace, t - 1) * STATES, STATES, z);
        total += log_softmax_at(emit + z * SYMBOLS, SYMBOLS, (int)x[1 + t]);
    }
    return total;
}

/* log q of a trace; of a defensive draw, each of whose choices is uniform with probability delta. */
static double log_q(const twin *w, const float *x, int trace, double delta)
{
    const double *seen = at(w, "phi.seen.weight"), *before = at(w, "phi.before.weight");
    const int     n = (int)x[0], C = w->chain ? STATES : KINDS;
    double        total = 0, logits[KINDS];
    for (int t = 0; t < (w->chain ? n : 1); t++) {
        const int last = !w->chain ? n - 1 : t ? state_at(w, trace, t - 1) : STATES;
        for (int c = 0; c < C; c++) {
            logits[c] = before[last * C + c];
            for (int i = w->chain ? t : 0; i < (w->chain ? t + 1 : n); i++) logits[c] += seen[(int)x[1 + i] * C + c];
        }
        total += log((1 - delta) * exp(log_softmax_at(logits, C, state_at(w, trace, t))) + delta / C);
    }
    return total;
}

/* g += sum_trace by[trace] grad log-density, by differences. */
static void add_gradient(twin *w, const float *x, const double *by, bool model, double *g)
{
    for (size_t k = 0; k < w->params->first[RWS_PHI + 1]; k++) {
        const double here = w->value[k], h = 1e-5;
        double       slope = 0;
        for (int side = -1; side <= 1; side += 2) {
            w->value[k] = here + side * h;
            for (int z = 0; z < n_traces(w, x); z++)
                slope += side * by[z] * (model ? log_p(w, x, z) : log_q(w, x, z, 0)) / (2 * h);
        }
        w->value[k] = here;
        g[k] += slope;
    }
}

static void law_of(const twin *w, const float *x, double delta, exact_law *law)
{
    law->n = law->C = n_traces(w, x);
    for (int z = 0; z < law->n; z++) {
        const double log_d = log_q(w, x, z, delta);
        law->category[z] = z;
        law->chance[z] = exp(log_d);
        law->l[z] = log_p(w, x, z) - log_d;
    }
}

/* dww_ref_bug: a plain draw, then perhaps another one, with the density of the first. */
static void law_of_wrong(const twin *w, const float *x, double delta, exact_law *law)
{
    law->C = n_traces(w, x);
    law->n = law->C * law->C;
    for (int plain = 0; plain < law->C; plain++)
        for (int z = 0; z < law->C; z++) {
            const int i = plain * law->C + z;
            law->category[i] = z;
            law->chance[i] = exp(log_q(w, x, plain, 0)) * ((z == plain ? 1 - delta : 0) + delta / law->C);
            law->l[i] = log_p(w, x, z) - log_q(w, x, plain, delta);
        }
}

/* g += scale * E_p grad log q(z|x): the sum over all lengths, items and traces. */
static void add_sleep(twin *w, double scale, double *g)
{
    for (int n = 1; n <= ITEMS; n++)
        for (int bits = 0; bits < 1 << n; bits++) {
            float  x[1 + ITEMS] = {(float)n};
            double by[TRACES];
            for (int t = 0; t < n; t++) x[1 + t] = (float)(bits >> t & 1);
            for (int z = 0; z < n_traces(w, x); z++) by[z] = scale * exp(log_p(w, x, z));
            add_gradient(w, x, by, false, g);
        }
}

static bool is_wrong(const known *e)
{
    return e->set && strcmp(e->set, "dww_ref_bug=1") == 0;
}

static void expected_gradient(const known *e, twin *w, int K, double *g)
{
    memset(g, 0, w->params->size * sizeof *g);
    for (int i = 0; i < N_DATA; i++) {
        const float *x = items[i];
        exact_law    law;
        double       by[EXACT_MAX_C];
        law_of(w, x, 0, &law);
        exact_expect(&law, K, exact_w, NULL, by);
        for (int z = 0; z < law.C; z++) by[z] /= N_DATA;
        add_gradient(w, x, by, true, g);
        if (e->kind == COUNTED && e->wake == 0) continue;
        if (is_wrong(e)) law_of_wrong(w, x, e->delta, &law);
        else law_of(w, x, e->defensive ? e->delta : 0, &law);
        exact_expect(&law, K, e->kind == COUNTED ? e->a : exact_reinforce, NULL, by);
        for (int z = 0; z < law.C; z++) by[z] *= (e->kind == COUNTED ? e->wake : 1) / N_DATA;
        add_gradient(w, x, by, false, g);
    }
    if (e->sleep > 0) add_sleep(w, e->sleep, g);
}

/* ---- trainers */

static rws_trainer *trainer(const known *e, const rws_model *model, int K, int batch)
{
    rws_config c = {.model = model->name, .method = e->method, .particles = K, .batch = batch, .seed = SEED};
    if (e->set) c.set[c.n_set++] = e->set;
    rws_trainer *t = trainer_for(&c, model);
    rws_params  *p = rws__trainer_state_of(t).params;
    rws_random   g = rws__random_new(rws__key_for(99, 0, RWS_KEY_DATA, 0), 0);
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < rws__param_size(p->list[i]); k++)
            if (p->list[i]->group <= RWS_PHI) p->list[i]->value[k] = (float)rws_random_normal(&g);
    rws_trainer_changed(t);
    return t;
}

static twin twin_of(rws_trainer *t, bool is_chain)
{
    const rws_params *p = rws__trainer_state_of(t).params;
    twin              w = {p, malloc(p->size * sizeof *w.value), is_chain};
    for (size_t k = 0; k < p->size; k++) w.value[k] = (double)p->value[k];
    return w;
}

/* The chain has no relaxed model, and dww_ref_bug is about a single choice. */
static bool fits(const known *e, bool is_chain, int K)
{
    return K >= rws__estimator_find(e->method)->min_particles && (!is_chain || (e->kind == COUNTED && !is_wrong(e)));
}

/* About 2000 numbers, of which each fails with probability 2.5e-9 if it is right. */
static void expectations_are_exact(void **state)
{
    (void)state;
    enum { COPIES = 200, DRAWS = 100 };
    for (int i = 0; i < COUNT(table); i++)
        for (int K = 1; K <= 3; K++)
            for (int is_chain = 0; is_chain < 2; is_chain++) {
                if (table[i].kind == PATHWISE || !fits(&table[i], is_chain, K)) continue;
                rws_trainer *t = trainer(&table[i], is_chain ? &chain : &mixture, K, COPIES * N_DATA);
                twin         w = twin_of(t, is_chain);
                double      *right = malloc(w.params->size * sizeof *right);
                expected_gradient(&table[i], &w, K, right);
                assert_mean(label(&table[i], is_chain ? TRACES : KINDS, K), t, right, w.params->first[RWS_PHI + 1],
                            DRAWS, 0);
                free(right), free(w.value);
                rws_trainer_free(t);
            }
}

/* ---- a relaxed model, with the engine's own draws */

static double relaxed_bound(const twin *w, const known *e, double tau, const float *x, int K, rws_key key, int datum)
{
    const double *first = at(w, "theta.first"), *emit = at(w, "theta.emit");
    double        log_pi[KINDS], log_guide[KINDS], l[EXACT_MAX_K];
    for (int c = 0; c < KINDS; c++) {
        log_pi[c] = log_softmax_at(first, KINDS, c);
        log_guide[c] = log_q(w, x, c, 0);
    }
    for (int k = 0; k < K; k++) {
        double ls[KINDS], logits[SYMBOLS] = {0}, both[2][KINDS];
        int    top = 0;
        double ratio = 0;
        exact_draw_uniforms(key, (uint32_t)datum, (uint32_t)k, 0, KINDS - e->smoothed, ls);
        if (e->smoothed) {
            double s[KINDS];
            ratio = smoothed_choice(e->smoothing, e->sharpness, KINDS, log_guide, log_pi, ls, s);
            for (int c = 0; c < KINDS; c++) ls[c] = log(s[c]);
        } else
            for (int c = 0; c < KINDS; c++) ls[c] = (log_guide[c] - log(-log(ls[c]))) / tau;
        const double sum = exact_log_sum(ls, KINDS);
        for (int c = 0; c < KINDS; c++) {
            ls[c] -= sum;
            for (int v = 0; v < SYMBOLS; v++) logits[v] += exp(ls[c]) * emit[c * SYMBOLS + v];
            if (ls[c] > ls[top]) top = c;
            both[0][c] = ls[c] + log_pi[c];
            both[1][c] = ls[c] + log_guide[c];
        }
        l[k] = -log(ITEMS);
        for (int t = 0; t < (int)x[0]; t++) l[k] += log_softmax_at(logits, SYMBOLS, (int)x[1 + t]);
        const double q = exact_concrete_density(ls, log_guide, tau, KINDS);
        if (e->smoothed) l[k] += ratio;
        else if (e->prior == RWS_RELAX_ARGMAX) l[k] += log_pi[top] - q;
        else if (e->prior == RWS_RELAX_DENSITY) l[k] += exact_concrete_density(ls, log_pi, tau, KINDS) - q;
        else l[k] += exact_log_sum(both[0], KINDS) - exact_log_sum(both[1], KINDS);
    }
    return exact_log_sum(l, K) - log(K);
}

static void relaxed_gradients_are_exact(void **state)
{
    (void)state;
    enum { BATCH = 9, K = 3 };
    const double tau = 3; /* at the first iteration */
    for (int i = 0; i < COUNT(table); i++) {
        if (table[i].kind != PATHWISE) continue;
        rws_trainer *t = trainer(&table[i], &mixture, K, BATCH);
        twin         w = twin_of(t, false);
        const size_t end = w.params->first[RWS_PHI + 1];
        float       *g = malloc(w.params->size * sizeof *g);
        double       scale = 0, apart = 0;
        gradient_of(t, 0, g);
        for (size_t k = 0; k < end; k++) {
            const double here = w.value[k], h = 1e-6;
            double       slope = 0;
            for (int side = -1; side <= 1; side += 2) {
                w.value[k] = here + side * h;
                for (int d = 0; d < BATCH; d++)
                    slope += side / (2 * h) / BATCH *
                             relaxed_bound(&w, &table[i], tau, items[d % N_DATA], K,
                                           rws__key_for(SEED, 0, RWS_KEY_METRIC, 0), d);
            }
            w.value[k] = here;
            scale = fmax(scale, fabs(slope));
            apart = worse(apart, fabs(slope - (double)g[k]));
        }
        /* near the edge of a spike, a smoothed bit is a small difference of floats */
        const double allowed = table[i].smoothed && table[i].smoothing == RWS_SMOOTH_SPIKE ? 5e-2 : 2e-4;
        if (!(scale > 0 && apart < allowed * scale))
            fail_msg("%s: gradients differ by %g of %g", label(&table[i], KINDS, K), apart, scale);
        free(g), free(w.value);
        rws_trainer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectations_are_exact),
        cmocka_unit_test(relaxed_gradients_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
