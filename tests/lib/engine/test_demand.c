/* test_demand.c - rows on demand: what paths compute from the datum after they split is computed for their rows only,
 * once; what does not depend on all choices is computed once for each combination that it depends on; and values,
 * gradients and derivatives are those of particles that run alone. */
#include "engine/internal.h"
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "trained.h"

#include <string.h>

enum { DIM = 6, CHOICES = 10, MOST = 5, KINDS = 4, WIDE = 64 };

typedef struct {
    rws_layer *net, *deep, *more, *shared, *from_shared, *late, *mean, *chain;
    rws_param *bits, *kinds, *stop, *next;
    bool       broken; /* the model's standard deviation is negative for two of the paths */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    world *w = rws_setup_alloc(s, sizeof *w);
    if (!w) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the world.");
    rws_setup_field(s, "x", DIM);
    const rws_init u = RWS_UNIFORM;
    w->net = rws_setup_mlp(s, RWS_PHI, "phi.net", RWS_TANH, u, (int[]){DIM + CHOICES, WIDE, WIDE, KINDS}, 4);
    w->deep = rws_setup_mlp(s, RWS_PHI, "phi.deep", RWS_TANH, u, (int[]){DIM + CHOICES, 16, 1}, 3);
    w->more = rws_setup_mlp(s, RWS_PHI, "phi.more", RWS_RELU, u, (int[]){DIM + 1, WIDE, 1}, 3);
    w->shared = rws_setup_mlp(s, RWS_PHI, "phi.shared", RWS_ELU, u, (int[]){DIM, WIDE, WIDE}, 3);
    w->from_shared = rws_setup_mlp(s, RWS_PHI, "phi.from", RWS_TANH, u, (int[]){WIDE + 1, WIDE, KINDS}, 3);
    w->late = rws_setup_mlp(s, RWS_PHI, "phi.late", RWS_TANH, u, (int[]){WIDE + 1, 8, 1}, 3);
    w->mean = rws_setup_mlp(s, RWS_THETA, "theta.mean", RWS_TANH, u, (int[]){KINDS + 1, 16, DIM}, 3);
    w->chain = rws_setup_mlp(s, RWS_PHI, "phi.chain", RWS_TANH, u, (int[]){DIM + KINDS + 1, 16, KINDS}, 3);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", KINDS, KINDS, RWS_UNIFORM);
    w->bits = rws_setup_param(s, RWS_PHI, "phi.bits", 1, CHOICES, RWS_ZERO);
    w->kinds = rws_setup_param(s, RWS_THETA, "theta.kinds", 1, KINDS, RWS_ZERO);
    w->stop = rws_setup_param(s, RWS_THETA, "theta.stop", 1, MOST + 2, RWS_ZERO);
    *state = w;
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n * DIM; i++) fields[0][i] = (float)rws_random_normal(random);
    return RWS_OK;
}

static void x_given(rws_path *path, const world *w, rws_var kind, int n, rws_var spread)
{
    const rws_var in[] = {rws_onehot(path, kind, KINDS), rws_constant(path, (float)n)};
    rws_normal(path, "x", rws_mlp_parts(path, w->mean, in, 2), spread);
}

/* ---- ten choices, and then a network of the datum and of constants that depend on the path */

static int ten_bits(rws_path *path, rws_param *p)
{
    int bits = 0;
    for (int i = 0; i < CHOICES; i++)
        bits |= rws_flip(path, "b", p ? rws_slice(path, rws_parameter(path, p), i, 1) : rws_constant(path, 0)) << i;
    return bits;
}

static rws_var as_constants(rws_path *path, int bits, int n)
{
    float c[CHOICES] = {0};
    for (int i = 0; i < n; i++) c[i] = bits >> i & 1 ? 1 : -1;
    return rws_constants(path, c, CHOICES);
}

static void ten_guide(rws_path *path, const void *state)
{
    const world  *w = state;
    const int     bits = ten_bits(path, w->bits);
    const rws_var in[] = {rws_observed(path, "x"), as_constants(path, bits, CHOICES)};
    rws_categorical(path, "z", rws_mlp_parts(path, w->net, in, 2));
}

static void ten_model(rws_path *path, const void *state)
{
    const world  *w = state;
    const int     bits = ten_bits(path, NULL);
    const rws_var z = rws_categorical(path, "z", rws_parameter(path, w->kinds));
    x_given(path, w, z, bits, rws_constant(path, 1));
}

/* The same with a network before every choice. */
static void deep_guide(rws_path *path, const void *state)
{
    const world *w = state;
    int          bits = 0;
    for (int i = 0; i < CHOICES; i++) {
        const rws_var in[] = {rws_observed(path, "x"), as_constants(path, bits, i)};
        bits |= rws_flip(path, "b", rws_mlp_parts(path, w->deep, in, 2)) << i;
    }
    const rws_var in[] = {rws_observed(path, "x"), as_constants(path, bits, CHOICES)};
    rws_categorical(path, "z", rws_mlp_parts(path, w->net, in, 2));
}

/* ---- paths of different lengths, which come to a shared value at different times; then noise and one more split */

static void ragged_guide(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var x = rws_observed(path, "x"), shared = rws_mlp(path, w->shared, x);
    int           n = 0;
    while (n < MOST) {
        const rws_var in[] = {x, rws_constant(path, (float)n)};
        if (!rws_flip(path, "more", rws_affine(path, rws_mlp_parts(path, w->more, in, 2), 1, 0.5f))) break;
        n++;
    }
    const rws_var in[] = {shared, rws_constant(path, (float)n)};
    const rws_var h = rws_mlp_parts(path, w->from_shared, in, 2);
    const int     kind = rws_choose(path, "z", n % 2 ? rws_affine(path, h, 2, 0) : h);
    const rws_var v = rws_normal(path, "v", rws_slice(path, h, kind, 1), rws_constant(path, 0.5f));
    const rws_var late = rws_mlp_parts(path, w->late, (rws_var[]){shared, v}, 2);
    if (rws_flip(path, "last", late))
        rws_flip(path, "again", rws_mul(path, rws_apply(path, RWS_TANH, late), rws_slice(path, shared, kind, 1)));
}

static void ragged_model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var stop = rws_parameter(path, w->stop), one = rws_constant(path, 1);
    int           n = 0;
    while (n < MOST && rws_flip(path, "more", rws_slice(path, stop, n, 1))) n++;
    const rws_var z = rws_categorical(path, "z", rws_parameter(path, w->kinds));
    const rws_var v = rws_normal(path, "v", rws_constant(path, 0), one);
    if (rws_flip(path, "last", rws_slice(path, stop, MOST, 1))) rws_flip(path, "again", v);
    x_given(path, w, z, n, w->broken && n == 3 ? rws_affine(path, v, 0, -1) : one);
}

/* ---- no splits at all */

static void plain_guide(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var in[] = {rws_observed(path, "x"), as_constants(path, 0, CHOICES)};
    rws_categorical(path, "z", rws_mlp_parts(path, w->net, in, 2));
}

static void plain_model(rws_path *path, const void *state)
{
    const world *w = state;
    x_given(path, w, rws_categorical(path, "z", rws_parameter(path, w->kinds)), 0, rws_constant(path, 1));
}

/* ---- choices of which each depends on the one before it; then a split, after which paths come back to early ones */

static rws_var from_kind(rws_path *path, const world *w, rws_var kind, int n)
{
    const rws_var in[] = {rws_observed(path, "x"), rws_onehot(path, kind, KINDS), rws_constant(path, 0.1f * (float)n)};
    return rws_mlp_parts(path, w->chain, in, 3);
}

static void chain_guide(rws_path *path, const void *state)
{
    const world *w = state;
    rws_var      z[MOST + 1] = {rws_constant(path, 0)};
    for (int t = 0; t < MOST; t++) z[t + 1] = rws_categorical(path, "z", from_kind(path, w, z[t], t));
    rws__path_note(path, 0, rws_log_softmax(path, from_kind(path, w, z[3], MOST)));
    const int     kind = rws_choose(path, "kind", from_kind(path, w, z[2], MOST + 1));
    const rws_var late = from_kind(path, w, z[3], MOST + 2 + kind);
    if (kind % 2) rws_categorical(path, "late", late);
    else rws_normal(path, "v", rws_pick(path, late, z[4]), rws_constant(path, 0.5f));
}

static void chain_model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var next = rws_parameter(path, w->next), one = rws_constant(path, 1);
    rws_var       z[MOST + 1] = {rws_constant(path, 0)};
    for (int t = 0; t < MOST; t++) z[t + 1] = rws_categorical(path, "z", rws_row(path, next, KINDS, z[t]));
    const int kind = rws_choose(path, "kind", rws_parameter(path, w->kinds));
    if (kind % 2) rws_categorical(path, "late", rws_row(path, next, KINDS, z[1]));
    else rws_normal(path, "v", rws_sum(path, rws_row(path, next, KINDS, z[2])), one);
    x_given(path, w, z[MOST], kind, one);
}

/* ---- values of two choices and of the later one alone, which are read by further values of both: two projections of one level. Few
 * rows carry weight, and a row that is live in one projection makes rows of the other live. */

static void pairs_guide(rws_path *path, const void *state)
{
    const world *w = state;
    rws_var      z[MOST + 2] = {rws_constant(path, 0), rws_constant(path, 1)};
    for (int t = 0; t < MOST; t++) {
        const rws_var x = rws_observed(path, "x"), before = rws_onehot(path, z[t], KINDS), none = rws_zeros(path, 2);
        const rws_var now = rws_onehot(path, z[t + 1], CHOICES - KINDS);
        const rws_var both = rws_mlp_parts(path, w->net, (rws_var[]){x, before, now}, 3);
        const rws_var own = rws_mlp_parts(path, w->net, (rws_var[]){x, rws_onehot(path, z[t + 1], CHOICES)}, 2);
        const rws_var again = rws_mlp_parts(path, w->net, (rws_var[]){x, before, own, none}, 4);
        z[t + 2] = rws_categorical(path, "z", rws_add(path, rws_affine(path, both, 2, 0), again));
    }
}

static void pairs_model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var next = rws_parameter(path, w->next);
    rws_var       z = rws_constant(path, 0);
    for (int t = 0; t < MOST; t++) z = rws_categorical(path, "z", rws_row(path, next, KINDS, z));
    x_given(path, w, z, 0, rws_constant(path, 1));
}

/* ---- choices that the datum does not depend on */

enum { LINKS = 4 };

static void links_guide(rws_path *path, const void *state)
{
    rws_var z = rws_constant(path, 0);
    for (int t = 0; t < LINKS; t++) z = rws_categorical(path, "z", from_kind(path, state, z, t));
}

static void links_model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var next = rws_parameter(path, w->next), one = rws_constant(path, 1);
    rws_var       z = rws_constant(path, 0);
    for (int t = 0; t < LINKS; t++) z = rws_categorical(path, "z", rws_row(path, next, KINDS, z));
    rws_normal(path, "x", rws_zeros(path, DIM), one);
}

static const rws_model models[] = {
    {.abi = RWS_ABI, .name = "ten", .setup = setup, .data = data, .guide = ten_guide, .model = ten_model},
    {.abi = RWS_ABI, .name = "deep", .setup = setup, .data = data, .guide = deep_guide, .model = ten_model},
    {.abi = RWS_ABI, .name = "ragged", .setup = setup, .data = data, .guide = ragged_guide, .model = ragged_model},
    {.abi = RWS_ABI, .name = "chain", .setup = setup, .data = data, .guide = chain_guide, .model = chain_model},
    {.abi = RWS_ABI, .name = "links", .setup = setup, .data = data, .guide = links_guide, .model = links_model},
    {.abi = RWS_ABI, .name = "pairs", .setup = setup, .data = data, .guide = pairs_guide, .model = pairs_model},
    {.abi = RWS_ABI, .name = "plain", .setup = setup, .data = data, .guide = plain_guide, .model = plain_model},
};
enum { TEN, DEEP, RAGGED, CHAIN, LINKS_ONLY, PAIRS, PLAIN, N_MODELS };

/* ---- an engine with a pass */

typedef struct {
    rws_setup   setup;
    world      *world;
    rws_engine *engine;
    float      *x;
    int         B, K;
    enum { PLAINLY, GIVEN, DEFENDED, N_HOW, ENUMERATED } how; /* the choices */
} bench;

static bench *bench_new(int B, int K)
{
    bench     *b = calloc(1, sizeof *b);
    rws_random random = rws__random_new(rws__key_for(5, 0, RWS_KEY_DATA, 0), 0);
    rws_error  err = {""};
    void      *state;
    *b = (bench){.setup = {.seed = 5}, .B = B, .K = K};
    assert_int_equal(setup(&b->setup, &random, &state, &err), RWS_OK);
    rws__params_pack(&b->setup.params);
    b->world = state;
    for (int i = 0; i < CHOICES; i++) b->world->bits->value[i] = 0.2f * (float)(i % 3 - 1);
    b->x = malloc((size_t)(B * DIM) * sizeof *b->x);
    assert_int_equal(data(state, RWS_TRAIN, 0, B, &random, &b->x, &err), RWS_OK);
    b->engine = rws__engine_new(&b->setup.params, b->setup.fields, b->setup.n_fields, NULL);
    return b;
}

static void bench_free(bench *b)
{
    rws__engine_free(b->engine);
    rws__setup_release(&b->setup);
    free(b->x);
    free(b);
}

/* Runs both programs, and hands out a value of the datum and the path whose derivative needs what softmaxes save. */
static void with_output(rws_path *path, void *method)
{
    const rws_method *m = method;
    const world      *w = m->state;
    rws__programs(path);
    rws__path_side(path, RWS_SIDE_NONE);
    const rws_var shared = rws_mlp(path, w->shared, rws_observed(path, "x"));
    const rws_var in[] = {shared, rws_constant(path, 2)};
    const rws_var h = rws_log_softmax(path, rws_mlp_parts(path, w->from_shared, in, 2)), g = rws__path_noted(path, 0);
    rws_var       sum = rws_sum(path, rws_mul(path, h, rws_apply(path, RWS_EXP, h)));
    if (g.id) sum = rws_add(path, sum, rws_sum(path, rws_mul(path, g, rws_apply(path, RWS_EXP, g))));
    rws__path_output(path, 0, sum);
}

static rws_status forward(bench *b, int model, bool scalar, bool output, rws_error *err)
{
    static rws_method   method;
    static const float *fields[1];
    fields[0] = b->x;
    method = (rws_method){.model = &models[model], .state = b->world, .setup = &b->setup};
    static const float        two = 2, one = 1;
    static const rws_choice   given[] = {{"z", 2, 1, &two}, {"z", 4, 1, &one}, {"z", 2, 1, &one}};
    static const rws_proposal mixture = {.how = RWS_DEFENSIVE, .delta = 0.3};
    uint32_t                 *start = calloc((size_t)b->B + 1, sizeof *start);
    for (int d = 1; d <= b->B; d++) start[d] = d == 1 ? 2 : 3; /* of datum 0, and datum 1 */
    const rws_pass   pass = {.program = output ? with_output : NULL,
                             .context = &method,
                             .model = method.model,
                             .state = method.state,
                             .mode = RWS_WAKE,
                             .pathwise = true,
                             .n_data = b->B,
                             .n_particles = b->K,
                             .fields = fields,
                             .scalar = scalar,
                             .groups = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                             .negligible = scalar ? 0 : 1e-7,
                             .given = b->how == GIVEN ? given : NULL,
                             .given_start = b->how == GIVEN ? start : NULL,
                             .enumerate = b->how == ENUMERATED,
                             .proposal = b->how == DEFENDED ? &mixture : NULL,
                             .key = rws__key_for(1, 2, RWS_KEY_WAKE, 0)};
    const rws_status status = rws__engine_forward(b->engine, &pass, err);
    free(start);
    return status;
}

typedef struct {
    double log_p, log_q, out;
} particle;

static double key(const particle *x)
{
    return x->log_q + 0.618 * x->log_p;
}

static int by_key(const void *a, const void *b)
{
    return (key(a) > key(b)) - (key(a) < key(b));
}

/* The table as particles, sorted within each datum. */
static particle *particles_of(const bench *b)
{
    const rws_scores *s = rws__engine_scores(b->engine);
    particle         *table = malloc((size_t)(b->B * b->K) * sizeof *table), *next = table;
    for (int d = 0; d < b->B; d++) {
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            for (uint32_t k = 0; k < s->count[i]; k++)
                *next++ = (particle){s->log_p[i], s->log_q[i], s->out[0] ? s->out[0][i] : 0};
        qsort(next - b->K, (size_t)b->K, sizeof *table, by_key);
    }
    assert_int_equal(next - table, b->B * b->K);
    return table;
}

/* Coefficients that fall steeply with log q, so that most rows have next to none: backward leaves them out. */
static void weigh(const bench *b, double steep)
{
    rws_scores *s = rws__engine_scores(b->engine);
    for (int d = 0; d < s->B; d++) {
        double top = -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = fmax(top, s->log_q[i]);
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            const double w = s->count[i] * exp(steep * (s->log_q[i] - top));
            s->coef_p[i] = w;
            s->coef_q[i] = -0.5 * w;
            s->coef_r[i] = 0.3 * w;
            if (s->out[0]) s->coef_out[0][i] = 0.7 * w;
            if (s->out[1]) s->coef_out[1][i] = 1.1 * w;
        }
    }
}

static float *backward(bench *b, double steep)
{
    float    *g = calloc(b->setup.params.size, sizeof *g);
    rws_error err = {""};
    weigh(b, steep);
    if (rws__engine_backward(b->engine, RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI), g, &err) != RWS_OK)
        fail_msg("%s", err.text);
    return g;
}

static void assert_same_particles(const bench *a, const bench *b, const char *name)
{
    particle *x = particles_of(a), *y = particles_of(b);
    for (int i = 0; i < a->B * a->K; i++) {
        const double apart = fabs(x[i].log_p - y[i].log_p) + fabs(x[i].log_q - y[i].log_q) + fabs(x[i].out - y[i].out);
        if (!(apart < 1e-3)) fail_msg("%s: particle %d differs by %g", name, i, apart);
    }
    free(x);
    free(y);
}

/* Values and gradients, with rows left out and with all rows. */
static void batched_equals_scalar(void **unused)
{
    (void)unused;
    const int sizes[][2] = {{20, 20}, {3, 50}, {70, 4}};
    for (int m = 0; m < N_MODELS; m++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            bench    *a = bench_new(sizes[k][0], sizes[k][1]), *b = bench_new(sizes[k][0], sizes[k][1]);
            rws_error err = {""};
            if (forward(a, m, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
            if (forward(b, m, true, false, &err) != RWS_OK) fail_msg("%s", err.text);
            assert_same_particles(a, b, models[m].name);
            for (int steep = 0; steep < 2; steep++) {
                float *g = backward(a, 40 * steep), *h = backward(b, 40 * steep);
                assert_close(g, h, a->setup.params.size, 2e-4, models[m].name);
                free(g);
                free(h);
            }
            bench_free(a);
            bench_free(b);
        }
}

/* The same however choices are made. */
static void chains_equal_scalar(void **unused)
{
    (void)unused;
    for (int how = 0; how < N_HOW; how++) {
        bench    *a = bench_new(3, 400), *b = bench_new(3, 400);
        rws_error err = {""};
        a->how = b->how = how;
        if (forward(a, CHAIN, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
        if (forward(b, CHAIN, true, false, &err) != RWS_OK) fail_msg("%s", err.text);
        assert_same_particles(a, b, "chain");
        for (int steep = 0; steep < 2; steep++) {
            float *g = backward(a, 40 * steep), *h = backward(b, 40 * steep);
            assert_close(g, h, a->setup.params.size, 2e-4, "chain");
            free(g);
            free(h);
        }
        bench_free(a);
        bench_free(b);
    }
}

/* The densities of all combinations add up to that of the datum. */
static void enumerated_choices_add_up(void **unused)
{
    (void)unused;
    bench    *b = bench_new(3, 256);
    rws_error err = {""};
    b->how = ENUMERATED;
    if (forward(b, LINKS_ONLY, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_scores *s = rws__engine_scores(b->engine);
    for (int d = 0; d < b->B; d++) {
        double right = -0.5 * DIM * log(2 * M_PI), sum = 0;
        for (int j = 0; j < DIM; j++) right -= 0.5 * (double)b->x[d * DIM + j] * (double)b->x[d * DIM + j];
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) sum += exp(s->log_p[i]);
        assert_int_equal(s->start[d + 1] - s->start[d], 256);
        assert_true(fabs(log(sum) - right) < 1e-4);
    }
    bench_free(b);
}

/* Coefficients that are no numbers break the gradient, which the update then sees. They must not make all rows of their
 * datum look negligible. */
static void broken_coefficients_reach_the_gradient(void **unused)
{
    (void)unused;
    static const double broken[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        bench    *b = bench_new(20, 20);
        float    *g = calloc(b->setup.params.size, sizeof *g);
        rws_error err = {""};
        bool      seen = false;
        if (forward(b, TEN, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
        weigh(b, 40);
        const rws_scores *s = rws__engine_scores(b->engine);
        for (uint32_t row = 0; row < s->start[1]; row++) s->coef_p[row] = s->coef_q[row] = s->coef_r[row] = broken[i];
        assert_int_equal(rws__engine_backward(b->engine, RWS_BIT(RWS_PHI), g, &err), RWS_OK);
        for (size_t k = 0; k < b->setup.params.size; k++) seen |= !isfinite(g[k]);
        assert_true(seen);
        free(g);
        bench_free(b);
    }
}

static bool is_live(const level *l, uint32_t row)
{
    return !l->live || (l->position[row] < l->n_live && l->live[l->position[row]] == row);
}

/* How many projections of a level have rows that backward leaves out. A row that backward works on reads rows that it works on. */
static int expect_live(const rws_engine *e, uint32_t home)
{
    int n = 0;
    for (uint32_t id = e->levels[home].dependence; id; id = e->dependences[id].next) {
        const level *at = &e->levels[home],
                    *beside = &e->levels[e->dependences[id].rows == NONE ? home : e->dependences[id].rows];
        if (beside == at) continue;
        for (uint32_t row = 0; row < at->n_rows; row++)
            if (is_live(at, row) && !is_live(beside, beside->place[row]))
                fail_msg("Row %u of level %u is live, and what it reads beside it is not.", row, home);
        for (uint32_t row = 0; row < beside->n_rows; row++)
            assert_true(!is_live(beside, row) || is_live(at, beside->up[row]));
        n += beside->live != NULL;
    }
    return n;
}

/* With two projections of one level, what is live in one of them makes rows of the level live, and so rows of the other. */
static void what_a_live_row_reads_is_live(void **unused)
{
    (void)unused;
    int n = 0;
    for (int steep = 1; steep < 200; steep *= 3) {
        bench    *b = bench_new(6, 100);
        rws_error err = {""};
        if (forward(b, PAIRS, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
        free(backward(b, steep));
        for (uint32_t at = 0; at < b->engine->n_levels; at++) n += expect_live(b->engine, at);
        bench_free(b);
    }
    assert_true(n > 0);
}

/* Outputs, their derivatives along a direction, and the gradients of both. */
static void derivatives_equal_scalar(void **unused)
{
    (void)unused;
    for (int m = 0; m < N_MODELS; m++) {
        bench    *a = bench_new(20, 20), *b = bench_new(20, 20);
        float    *direction = malloc(a->setup.params.size * sizeof *direction), *g[2];
        rws_error err = {""};
        die       d = {9};
        for (size_t i = 0; i < a->setup.params.size; i++) direction[i] = (float)die_between(&d, -1, 1);
        bench *both[] = {a, b};
        for (int scalar = 0; scalar < 2; scalar++) {
            bench *t = both[scalar];
            if (forward(t, m, scalar, true, &err) != RWS_OK) fail_msg("%s", err.text);
            free(backward(t, 0)); /* derivatives come after the first backward */
            if (rws__engine_tangent(t->engine, 0, 1, RWS_BIT(RWS_PHI), direction, &err) != RWS_OK)
                fail_msg("%s", err.text);
            g[scalar] = backward(t, 3);
        }
        assert_same_particles(a, b, models[m].name);
        const rws_scores *s = rws__engine_scores(a->engine), *one = rws__engine_scores(b->engine);
        double            sum = 0, alone = 0;
        for (int i = 0; i < s->n; i++) sum += s->count[i] * s->out[1][i];
        for (int i = 0; i < one->n; i++) alone += one->out[1][i];
        assert_true(fabs(sum - alone) < 1e-4 * (1 + fabs(alone)));
        assert_close(g[0], g[1], a->setup.params.size, 2e-4, models[m].name);
        for (int i = 0; i < 2; i++) free(g[i]);
        free(direction);
        bench_free(a);
        bench_free(b);
    }
}

/* ---- rows */

static rws_engine_stats rows_of(int model, int B, int K)
{
    bench    *b = bench_new(B, K);
    rws_error err = {""};
    rws__engine_count_rows(b->engine, true);
    if (forward(b, model, false, false, &err) != RWS_OK) fail_msg("%s", err.text);
    const rws_engine_stats s = rws__engine_take_stats(b->engine);
    bench_free(b);
    return s;
}

static void few_rows_are_computed_that_are_not_needed(void **unused)
{
    (void)unused;
    for (int m = 0; m < N_MODELS; m++) {
        const rws_engine_stats s = rows_of(m, 20, 20);
        print_message("%-6s computed %llu needed %llu by history %llu calls %llu\n", models[m].name,
                      (unsigned long long)s.rows, (unsigned long long)s.needed, (unsigned long long)s.history,
                      (unsigned long long)s.calls);
        assert_true(s.rows >= s.needed);
        assert_true((double)s.rows <= 1.2 * (double)s.needed);
    }
    const rws_engine_stats chain = rows_of(CHAIN, 20, 100);
    assert_true(2 * chain.rows < chain.history);
    const rws_engine_stats plain = rows_of(PLAIN, 20, 20);
    assert_int_equal(plain.rows, plain.needed);
    assert_true(plain.rows <= plain.history && plain.paths == 1 && plain.nodes > 0 && plain.operations > 0);
}

/* ---- messages, threads */

static void broken_rows_are_named(void **unused)
{
    (void)unused;
    bench    *b = bench_new(20, 20);
    rws_error err = {""};
    b->world->broken = true;
    assert_int_equal(forward(b, RAGGED, false, false, &err), RWS_BROKEN);
    assert_non_null(strstr(err.text, "\"x\""));
    b->world->broken = false; /* the engine continues */
    assert_int_equal(forward(b, RAGGED, false, false, &err), RWS_OK);
    for (int i = 0; i < b->setup.params.n; i++) { /* a network that is reached after all splits */
        const rws_param *p = b->setup.params.list[i];
        if (strstr(p->name, "phi.net") && strstr(p->name, "bias")) p->value[0] = NAN;
    }
    assert_int_equal(forward(b, TEN, false, false, &err), RWS_BROKEN);
    assert_non_null(strstr(err.text, "\"z\""));
    bench_free(b);
}

static void threads_change_nothing(void **unused)
{
    (void)unused;
    for (int m = 0; m < N_MODELS; m++) {
        rws_trainer *t[2];
        for (int i = 0; i < 2; i++) {
            t[i] = trainer_for(&(rws_config){.model = models[m].name,
                                             .method = "ww",
                                             .seed = 3,
                                             .batch = 12,
                                             .particles = 10,
                                             .shards = 4,
                                             .threads = i ? 3 : 1},
                               &models[m]);
            steps(t[i], 10);
        }
        const rws_params *p = rws__trainer_state_of(t[0]).params, *q = rws__trainer_state_of(t[1]).params;
        assert_memory_equal(p->value, q->value, p->size * sizeof(float));
        for (int i = 0; i < 2; i++) rws_trainer_free(t[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batched_equals_scalar),         cmocka_unit_test(chains_equal_scalar),
        cmocka_unit_test(enumerated_choices_add_up),     cmocka_unit_test(broken_coefficients_reach_the_gradient),
        cmocka_unit_test(derivatives_equal_scalar),      cmocka_unit_test(few_rows_are_computed_that_are_not_needed),
        cmocka_unit_test(what_a_live_row_reads_is_live), cmocka_unit_test(broken_rows_are_named),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
