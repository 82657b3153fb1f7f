/* test_loop.c - loops that say what they carry: values, gradients, choices and reports are those of a plain loop and of
 * particles that run alone, however paths come together; and they come together. */
#include "engine/internal.h"
#include "engine/setup.h"
#include "estimator/estimator.h"
#include "files.h"
#include "trained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES = 3, LONGEST = 3, MOST = 5 };

typedef struct {
    rws_layer *state, *duration, *mean, *last;        /* phi */
    rws_param *next, *lasts, *shift, *prior, *spread; /* theta */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    world *w = rws_setup_alloc(s, sizeof *w);
    if (!w) return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the world.");
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "x", 1, MOST);
    w->state = rws_setup_mlp(s, RWS_PHI, "phi.state", RWS_TANH, RWS_UNIFORM, (int[]){2 + STATES, 8, STATES}, 3);
    w->duration = rws_setup_mlp(s, RWS_PHI, "phi.duration", RWS_TANH, RWS_UNIFORM, (int[]){1 + STATES, 8, LONGEST}, 3);
    w->mean = rws_setup_mlp(s, RWS_PHI, "phi.mean", RWS_TANH, RWS_UNIFORM, (int[]){2 + STATES, 8, 1}, 3);
    w->last = rws_setup_mlp(s, RWS_PHI, "phi.last", RWS_TANH, RWS_UNIFORM, (int[]){2, 8, 1}, 3);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES + 1, STATES, RWS_UNIFORM);
    w->lasts = rws_setup_param(s, RWS_THETA, "theta.lasts", STATES, LONGEST, RWS_UNIFORM);
    w->shift = rws_setup_param(s, RWS_THETA, "theta.shift", STATES, 1, RWS_UNIFORM);
    w->prior = rws_setup_param(s, RWS_THETA, "theta.prior", STATES, 1, RWS_UNIFORM);
    w->spread = rws_setup_param(s, RWS_THETA, "theta.spread", 1, 1, RWS_ZERO);
    *state = w;
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float *row = fields[1] + (size_t)i * (1 + MOST);
        row[0] = (float)(1 + rws_random_below(random, MOST));
        fields[0][i] = row[0] - 1;
        for (int t = 0; t < MOST; t++) row[1 + t] = t < (int)row[0] ? (float)rws_random_normal(random) : 0;
    }
    return RWS_OK;
}

/* ---- segments of one to three days, each with a level; the days of series of unequal length */

static bool plain;      /* loops are those of C */
static bool discrete;   /* no level is drawn */
static bool drifts;     /* what the guide carries depends on phi also where draws are constants */
static bool in_turn;    /* guide and model share the loop over days; "last" is drawn in the step that ends it */
static bool by_segment; /* a step of the guide is a segment, so that days and steps do not agree */

static void go(rws_path *path, rws_step *step, const void *env, void *carry, size_t size, size_t clock)
{
    if (!plain && in_turn) rws_shared_loop(path, "days", step, env, carry, size, clock);
    else if (!plain) rws_loop(path, step, env, carry, size, clock);
    else
        while (step(path, env, carry)) continue;
}

typedef struct {
    rws_var level, sum;
    int     t, s, left;
} day;

typedef struct {
    const world *w;
    rws_var      n, x[MOST], shift[STATES], spread;
} before;

/* Whether the datum has a day t. */
static bool has_day(rws_path *path, const before *b, int t)
{
    return rws_branch(path, rws_greater(path, b->n, rws_constant(path, (float)t)));
}

static rws_var constants_of(rws_path *path, int s)
{
    float c[STATES] = {0};
    if (s >= 0) c[s] = 1;
    return rws_constants(path, c, STATES);
}

static void guide_segment(rws_path *path, const before *b, day *c)
{
    const rws_var x = rws_item(path, "x", c->t);
    rws_var       in[3] = {x, constants_of(path, c->s), c->sum};
    c->s = rws_choose(path, "state", rws_mlp_parts(path, b->w->state, in, 3));
    in[1] = constants_of(path, c->s);
    c->left = 1 + rws_choose(path, "duration", rws_mlp_parts(path, b->w->duration, in, 2));
    c->level = rws_constant(path, 0.5f);
    if (!discrete)
        c->level = rws_normal(path, "level", rws_mlp_parts(path, b->w->mean, in, 3), rws_constant(path, 0.8f));
}

static void guide_last(rws_path *path, const before *b, rws_var sum)
{
    const rws_var in[] = {sum, rws_constant(path, 1)};
    rws_bernoulli(path, "last", rws_mlp_parts(path, b->w->last, in, 2));
}

static bool guide_step(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    day          *c = carry;
    if (!has_day(path, b, c->t)) {
        if (in_turn) guide_last(path, b, c->sum);
        c->level = (rws_var){0};
        c->t = c->s = c->left = 0;
        return false;
    }
    if (c->left == 0) {
        guide_segment(path, b, c);
        c->sum = rws_apply(path, RWS_TANH, rws_add(path, c->sum, c->level));
        const rws_var in[] = {c->sum, rws_item(path, "x", c->t)};
        if (drifts) c->sum = rws_add(path, c->sum, rws_mlp_parts(path, b->w->last, in, 2));
    }
    if (by_segment) c->t += c->left, c->left = 0;
    else c->t++, c->left--;
    if (c->left == 0) c->level = (rws_var){0};
    return true;
}

static void guide(rws_path *path, const void *state)
{
    before b = {.w = state, .n = rws_length(path, "x")};
    day    c = {.s = -1, .sum = rws_constant(path, 0)};
    go(path, guide_step, &b, &c, sizeof c, offsetof(day, t));
    rws__path_note(path, 0, c.sum);
    if (!in_turn) guide_last(path, &b, c.sum);
}

static bool model_step(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    day          *c = carry;
    if (!has_day(path, b, c->t)) {
        const rws_var sum = c->sum;
        if (in_turn) rws_bernoulli(path, "last", sum);
        *c = (day){.sum = sum};
        return false;
    }
    if (c->left == 0) {
        c->s = rws_choose(path, "state", rws_slice(path, rws_parameter(path, b->w->next), (c->s + 1) * STATES, STATES));
        c->left = 1 + rws_choose(path, "duration",
                                 rws_slice(path, rws_parameter(path, b->w->lasts), c->s * LONGEST, LONGEST));
        c->level = rws_constant(path, 0.5f);
        if (!discrete)
            c->level = rws_normal(path, "level", rws_slice(path, rws_parameter(path, b->w->prior), c->s, 1),
                                  rws_constant(path, 1));
        c->sum = rws_apply(path, RWS_TANH, rws_add(path, c->sum, c->level));
        if (rws_reports(path)) {
            char text[40];
            snprintf(text, sizeof text, "day %d: %d", c->t, c->s);
            rws_report_text(path, "begins", text);
            rws_report(path, "sum", c->sum);
        }
    }
    rws_normal(path, "x", rws_add(path, rws_mul(path, c->level, b->shift[c->s]), c->sum), b->spread);
    c->t++;
    if (--c->left == 0) c->level = (rws_var){0};
    return true;
}

static void model(rws_path *path, const void *state)
{
    before b = {.w = state};
    day    c = {.s = -1, .sum = rws_constant(path, 0)};
    b.n = rws_affine(path, rws_categorical(path, "n", rws_zeros(path, MOST)), 1, 1);
    for (int s = 0; s < STATES; s++) b.shift[s] = rws_slice(path, rws_parameter(path, b.w->shift), s, 1);
    b.spread = rws_apply(path, RWS_EXP, rws_parameter(path, b.w->spread));
    go(path, model_step, &b, &c, sizeof c, offsetof(day, t));
    if (!in_turn) rws_bernoulli(path, "last", c.sum);
}

/* ---- loops within loops, and calls: a walk that turns back, in which each step is a choice or two */

typedef struct {
    rws_var sum;
    int     kind;
} turn;

typedef struct {
    rws_var sum;
    int     t, at;
} inner;

static bool walk_step(rws_path *path, const void *env, void *carry)
{
    const before *b = env;
    inner        *c = carry;
    const rws_var in[] = {c->sum, rws_constant(path, (float)c->at)};
    const bool    draws = b->n.id != 0;
    c->at += rws_flip(path, "right", draws ? rws_mlp_parts(path, b->w->last, in, 2) : c->sum) ? 1 : -1;
    c->sum = rws_apply(path, RWS_TANH, rws_add(path, c->sum, rws_constant(path, 0.3f * (float)c->at)));
    if (++c->t < 3) return true;
    c->t = 0;
    c->at = c->at > 0;
    return false;
}

static void turn_once(rws_path *path, const void *env, void *result)
{
    const before *b = env;
    turn         *r = result;
    const rws_var in[] = {r->sum, rws_constant(path, (float)r->kind)};
    const int two = rws_flip(path, "two", b->n.id ? rws_mlp_parts(path, b->w->last, in, 2) : rws_constant(path, 0.2f));
    inner     c = {.sum = r->sum};
    for (int i = 0; i <= two; i++) go(path, walk_step, b, &c, sizeof c, offsetof(inner, t));
    r->sum = c.sum;
    r->kind = c.at;
}

static void walk(rws_path *path, const before *b)
{
    turn r = {.sum = rws_constant(path, 0.1f)};
    for (int i = 0; i < 3; i++)
        if (plain) turn_once(path, b, &r);
        else RWS_CALL(path, turn_once, b, r, kind);
    rws_bernoulli(path, "last", rws_add(path, r.sum, rws_constant(path, (float)r.kind)));
}

static void walk_guide(rws_path *path, const void *state)
{
    const before b = {.w = state, .n = rws_length(path, "x")};
    walk(path, &b);
}

static void walk_model(rws_path *path, const void *state)
{
    const before b = {.w = state};
    const int    n = 1 + rws_choose(path, "n", rws_zeros(path, MOST));
    walk(path, &b);
    rws_var shift = rws_slice(path, rws_parameter(path, b.w->shift), 0, 1);
    for (int t = 0; t < n; t++) rws_normal(path, "x", shift, rws_constant(path, 1));
}

static const rws_model models[] = {{.name = "days", .guide = guide, .model = model},
                                   {.name = "walk", .guide = walk_guide, .model = walk_model}};

enum { DAYS, WALK, N_MODELS };

/* ---- passes */

/* Runs both programs, and hands out a number that the guide has noted behind its loop. */
static void with_output(rws_path *path, void *unused)
{
    (void)unused;
    rws__programs(path);
    rws__path_output(path, 0, rws_sum(path, rws_apply(path, RWS_EXP, rws__path_noted(path, 0))));
}

typedef struct {
    rws_setup   setup;
    world      *world;
    rws_engine *engine;
    float      *n, *x;
    int         B, K;
} bench;

static bench *bench_new(int B, int K)
{
    bench     *b = malloc(sizeof *b);
    rws_random random = rws__random_new(rws__key_for(0, 0, RWS_KEY_TEST, 0), 0);
    rws_error  err = {""};
    void      *state = NULL;
    *b = (bench){.setup = {.seed = 5}, .B = B, .K = K};
    assert_int_equal(setup(&b->setup, &random, &state, &err), RWS_OK);
    rws__params_pack(&b->setup.params);
    b->world = state;
    b->n = malloc((size_t)B * sizeof *b->n);
    b->x = malloc((size_t)(B * (1 + MOST)) * sizeof *b->x);
    assert_int_equal(data(state, RWS_TRAIN, 0, B, &random, (float *[]){b->n, b->x}, &err), RWS_OK);
    b->engine = rws__engine_new(&b->setup.params, b->setup.fields, b->setup.n_fields, NULL);
    return b;
}

static void bench_free(bench *b)
{
    rws__engine_free(b->engine);
    rws__setup_release(&b->setup);
    free(b->n);
    free(b->x);
    free(b);
}

typedef enum { PLAINLY, PATHWISE, GIVEN, OWN, DEFENDED, ENUMERATED, WITH_OUTPUT, SILENT } way;

static rws_status forward(bench *b, const rws_model *m, way how, bool scalar, rws_error *err)
{
    static const float      zero = 0, one = 1, two = 2;
    static const rws_choice days[] = {
        {"state", 1, 1, &one, 0}, {"state", 0, 1, &two, 0}, {"level", 0, 1, &one, 0}, {"duration", 0, 1, &zero, 0}};
    static const rws_choice turns[] = {
        {"right", 4, 1, &one, 0}, {"two", 0, 1, &one, 0}, {"right", 3, 1, &one, 0}, {"right", 7, 1, &zero, 0}};
    const rws_choice         *given = m->guide == guide ? days : turns;
    static const rws_proposal mixture = {.how = RWS_DEFENSIVE, .delta = 0.3};
    uint32_t                 *start = calloc((size_t)b->B + 1, sizeof *start);
    for (int d = 1; d <= b->B; d++) start[d] = d < 3 ? 1 : d < 4 ? 2 : 4;
    const rws_pass   pass = {.program = how == WITH_OUTPUT ? with_output : NULL,
                             .model = m,
                             .state = b->world,
                             .mode = RWS_WAKE,
                             .pathwise = how == PATHWISE,
                             .n_data = b->B,
                             .n_particles = b->K,
                             .fields = (const float *[]){b->n, b->x},
                             .scalar = scalar,
                             .groups = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),
                             .negligible = scalar ? 0 : 1e-7,
                             .given = given,
                             .n_given = how == GIVEN ? 2 : 0,
                             .given_start = how == OWN ? start : NULL,
                             .enumerate = how == ENUMERATED,
                             .proposal = how == DEFENDED ? &mixture : NULL,
                             .reports = how != SILENT,
                             .choices = true,
                             .key = rws__key_for(1, 2, RWS_KEY_WAKE, 0)};
    const rws_status status = rws__engine_forward(b->engine, &pass, err);
    free(start);
    return status;
}

typedef struct {
    double log_p, log_q, choices, reports;
} particle;

static void add_choice(void *sum, const rws_choice *c)
{
    double weight = 0.1 * (c->visit + 1) * (c->given ? 1.3 : 1);
    for (const char *s = c->site; *s; s++) weight = fmod(weight * 1.7 + *s, 3);
    *(double *)sum = 0.9 * *(double *)sum + weight * (double)*c->value;
}

static void add_report(void *sum, const char *name, int dim, const float *value, const char *text)
{
    double number = dim ? (double)*value : 0;
    for (const char *s = dim ? name : text; *s; s++) number = fmod(number * 1.7 + *s, 3);
    *(double *)sum = 0.9 * *(double *)sum + number;
}

static double key(const particle *x)
{
    return isfinite(x->log_p) ? x->log_q + 0.618 * x->log_p : -1e9 + x->log_q + x->choices;
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
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            particle p = {s->log_p[i], s->log_q[i], 0, 0};
            assert_int_equal(s->datum[i], d);
            assert_int_equal(rws__engine_choices(b->engine, (int)i, add_choice, &p.choices), RWS_OK);
            if (b->engine->pass.reports)
                assert_int_equal(rws__engine_reports(b->engine, (int)i, add_report, &p.reports), RWS_OK);
            for (uint32_t k = 0; k < s->count[i]; k++) *next++ = p;
        }
        qsort(next - b->K, (size_t)b->K, sizeof *table, by_key);
    }
    assert_int_equal(next - table, b->B * b->K);
    return table;
}

/* Coefficients that fall with log q; steeply, most rows have next to none, and backward leaves them out. */
static float *backward(bench *b, double steep)
{
    rws_scores *s = rws__engine_scores(b->engine);
    float      *g = calloc(b->setup.params.size, sizeof *g);
    rws_error   err = {""};
    for (int d = 0; d < s->B; d++) {
        double top = -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = fmax(top, s->log_q[i]);
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            const double w = isfinite(s->log_p[i]) ? s->count[i] * exp(steep * (s->log_q[i] - top)) : 0;
            s->coef_p[i] = w;
            s->coef_q[i] = -0.5 * w;
            s->coef_r[i] = 0.3 * w;
            if (s->coef_given) s->coef_given[i] = 0.2 * w;
        }
    }
    if (rws__engine_backward(b->engine, RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI), g, &err) != RWS_OK)
        fail_msg("%s", err.text);
    return g;
}

static void assert_equal(bench *a, bench *b, const char *what)
{
    particle *x = particles_of(a), *y = particles_of(b);
    for (int i = 0; i < a->B * a->K; i++) {
        double apart =
            fabs(x[i].log_q - y[i].log_q) + fabs(x[i].choices - y[i].choices) + fabs(x[i].reports - y[i].reports);
        if (isfinite(x[i].log_p) || isfinite(y[i].log_p)) apart += fabs(x[i].log_p - y[i].log_p);
        if (!(apart < 1e-3))
            fail_msg("%s: particle %d: p %g %g, q %g %g, choices %g %g, reports %g %g", what, i, x[i].log_p, y[i].log_p,
                     x[i].log_q, y[i].log_q, x[i].choices, y[i].choices, x[i].reports, y[i].reports);
    }
    for (int steep = 0; steep < 3; steep++) {
        float *g = backward(a, 10 * steep), *h = backward(b, 10 * steep);
        assert_close(g, h, a->setup.params.size, 1e-4, what);
        free(g);
        free(h);
    }
    free(x);
    free(y);
}

/* Derivatives along a direction, of values that steps have carried. */
static void derivatives_equal_scalar(void **unused)
{
    (void)unused;
    double sum[2] = {0, 0};
    drifts = true;
    for (int scalar = 0; scalar < 2; scalar++) {
        bench    *b = bench_new(5, 30);
        float    *direction = calloc(b->setup.params.size, sizeof *direction);
        rws_error err = {""};
        for (size_t i = 0; i < b->setup.params.size; i++) direction[i] = 0.1f * (float)(i % 7) - 0.3f;
        if (forward(b, &models[DAYS], WITH_OUTPUT, scalar, &err) != RWS_OK) fail_msg("%s", err.text);
        free(backward(b, 0));
        if (rws__engine_tangent(b->engine, 0, 1, RWS_BIT(RWS_PHI), direction, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_scores *s = rws__engine_scores(b->engine);
        for (int i = 0; i < s->n; i++) sum[scalar] += s->count[i] * s->out[1][i] * (1 + s->out[0][i]);
        free(direction);
        bench_free(b);
    }
    drifts = false;
    if (!(fabs(sum[0]) > 1e-3 && near(sum[0], sum[1], 1e-4 * fabs(sum[1])))) fail_msg("%.9g, not %.9g", sum[0], sum[1]);
}

static const char *const names[] = {"plainly",  "pathwise",   "given",          "own",
                                    "defended", "enumerated", "with an output", "silently"};

/* Values, gradients, choices and reports: loops beside particles that run alone, and plain loops beside both. */
static void loops_equal_scalar(void **state)
{
    const int sizes[][2] = {{6, 40}, {20, 7}, {1, 100}};
    for (int m = 0; m < N_MODELS; m++)
        for (int how = 0; how <= SILENT; how++)
            for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
                if (how == ENUMERATED || how == WITH_OUTPUT) continue;
                const int *size = sizes[k / 2];
                by_segment = k % 2;
                in_turn = *state;
                if ((m == WALK || in_turn) && by_segment) continue;
                bench *a = bench_new(size[0], size[1]), *b = bench_new(size[0], size[1]),
                      *c = bench_new(size[0], size[1]);
                rws_error err = {""};
                char      what[80];
                snprintf(what, sizeof what, "%s, %s, %d x %d%s", models[m].name, names[how], size[0], size[1],
                         by_segment ? ", by segment" : "");
                if (forward(a, &models[m], how, false, &err) != RWS_OK) fail_msg("%s: %s", what, err.text);
                if (forward(b, &models[m], how, true, &err) != RWS_OK) fail_msg("%s: %s", what, err.text);
                plain = true;
                if (forward(c, &models[m], how, true, &err) != RWS_OK) fail_msg("%s: %s", what, err.text);
                plain = false;
                assert_equal(a, b, what);
                assert_equal(a, c, what);
                bench_free(a);
                bench_free(b);
                bench_free(c);
            }
    by_segment = in_turn = false;
}

/* Rows of every level are in the order of the rows that they stand on, also where paths have come together. */
static void assert_in_order(const rws_engine *e)
{
    uint32_t n_merged = 0;
    for (uint32_t i = 1; i < e->n_levels; i++) {
        const level *l = &e->levels[i];
        n_merged += l->merge != NULL;
        for (uint32_t row = 1; row < l->n_rows && !l->projected; row++) assert_true(l->up[row] >= l->up[row - 1]);
    }
    assert_true(n_merged > 0);
}

static void paths_come_together(void **unused)
{
    (void)unused;
    uint64_t paths[2], operations[2];
    for (int i = 0; i < 2; i++) {
        bench    *b = bench_new(4, 200);
        rws_error err = {""};
        plain = i;
        if (forward(b, &models[DAYS], PLAINLY, false, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_engine_stats s = rws__engine_take_stats(b->engine);
        paths[i] = s.paths;
        operations[i] = s.operations;
        if (!plain) assert_in_order(b->engine);
        bench_free(b);
    }
    plain = false;
    if (!(paths[0] < paths[1] && 5 * operations[0] < operations[1]))
        fail_msg("paths %llu of %llu, calls %llu of %llu", (unsigned long long)paths[0], (unsigned long long)paths[1],
                 (unsigned long long)operations[0], (unsigned long long)operations[1]);
}

/* Impossible particles end at the step that finds them so: weights and gradients are those of particles that run alone, and it is
 * counted how many ended. */
static void impossible_particles_end(void **unused)
{
    (void)unused;
    bench  *b[2];
    float  *g[2];
    double  sum[2] = {0, 0};
    int64_t n_ended[2] = {0, 0};
    in_turn = true;
    for (int alone = 0; alone < 2; alone++) {
        rws_error err = {""};
        b[alone] = bench_new(6, 50);
        b[alone]->world->next->value[1 * STATES + 1] = -INFINITY; /* from state 0 to state 1 */
        plain = alone;
        if (forward(b[alone], &models[DAYS], SILENT, alone, &err) != RWS_OK) fail_msg("%s", err.text);
        const rws_engine_stats stats = rws__engine_take_stats(b[alone]->engine);
        const rws_scores      *s = rws__engine_scores(b[alone]->engine);
        for (int i = 0; i < s->n; i++) {
            sum[alone] += s->count[i] * exp(s->log_p[i] - s->log_q[i]);
            n_ended[alone] += s->log_p[i] == -INFINITY ? s->count[i] : 0;
        }
        if (!alone) assert_int_equal(stats.ended, n_ended[alone]);
        g[alone] = backward(b[alone], 0);
    }
    assert_true(n_ended[0] > 0 && n_ended[0] == n_ended[1] && near(sum[0], sum[1], 1e-5 * sum[1]));
    assert_close(g[0], g[1], b[0]->setup.params.size, 1e-4, "with impossible particles");
    for (int i = 0; i < 2; i++) free(g[i]), bench_free(b[i]);
    plain = in_turn = false;
}

/* ---- exact: all choices, against a recursion over the segments */

static void softmax(const float *logits, int n, double *out)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += out[i] = exp((double)logits[i]);
    for (int i = 0; i < n; i++) out[i] /= sum;
}

static double rest(const world *w, const float *x, int n, int t, int s, double sum)
{
    if (t >= n) return 1;
    double       next[STATES], lasts[LONGEST], total = 0;
    const double after = tanh(sum + 0.5), sd = exp((double)*w->spread->value);
    softmax(w->next->value + (s + 1) * STATES, STATES, next);
    for (int to = 0; to < STATES; to++) {
        double p = next[to];
        softmax(w->lasts->value + to * LONGEST, LONGEST, lasts);
        for (int left = 1; left <= LONGEST; left++) {
            const int k = t + left - 1;
            if (k < n) {
                const double z = ((double)x[k] - 0.5 * (double)w->shift->value[to] - after) / sd;
                p *= exp(-0.5 * z * z) / (sd * sqrt(2 * M_PI));
            }
            total += lasts[left - 1] * p * rest(w, x, n, t + left, to, after);
        }
    }
    return total;
}

static double exact(const bench *b, int d)
{
    const float *row = b->x + d * (1 + MOST);
    return log(rest(b->world, row + 1, (int)row[0], 0, -1, 0) / MOST);
}

static void all_choices_add_up(void **unused)
{
    (void)unused;
    bench            *b = bench_new(5, 59049 * 2);
    const rws_params *p = &b->setup.params;
    rws_error         err = {""};
    discrete = true;
    if (forward(b, &models[DAYS], ENUMERATED, false, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_scores *s = rws__engine_scores(b->engine);
    for (int d = 0; d < b->B; d++) {
        double sum = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) sum += exp(s->log_p[i]);
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) s->coef_p[i] = exp(s->log_p[i]) / sum;
        if (!near(log(sum), exact(b, d), 1e-5)) fail_msg("datum %d: %.9g, not %.9g", d, log(sum), exact(b, d));
    }
    float *g = calloc(p->size, sizeof *g);
    if (rws__engine_backward(b->engine, RWS_BIT(RWS_THETA), g, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_param *const moved[] = {b->world->shift, b->world->next, b->world->lasts, b->world->spread};
    for (int i = 0; i < 4; i++) {
        float      *at = moved[i]->value;
        const float kept = *at;
        double      slope = 0;
        for (int side = -1; side < 2; side += 2) {
            *at = kept + 0.01f * (float)side;
            for (int d = 0; d < b->B; d++) slope += side * exact(b, d) / 0.02;
        }
        *at = kept;
        if (!near((double)g[moved[i]->offset], slope, 1e-3 * (1 + fabs(slope))))
            fail_msg("%s: %g, not %g", moved[i]->name, (double)g[moved[i]->offset], slope);
    }
    free(g);
    discrete = false;
    bench_free(b);
}

/* ---- in training */

static const rws_model whole = {.abi = RWS_ABI,
                                .name = "days",
                                .help = "segments",
                                .defaults = {.batch = 9, .particles = 12, .n_test = 20, .shards = 3},
                                .setup = setup,
                                .data = data,
                                .guide = guide,
                                .model = model};

static rws_trainer *trained(const char *method, bool alone, int threads)
{
    rws_trainer *t = trainer_for(
        &(rws_config){.model = "days", .method = method, .seed = 4, .scalar = alone, .threads = threads}, &whole);
    steps(t, 3);
    return t;
}

/* Dreams: lengths, items and fields are those of particles that dream alone. */
static void dreams_are_the_same(void **unused)
{
    (void)unused;
    double total[2] = {0, 0};
    for (int alone = 0; alone < 2; alone++) {
        rws_trainer *t =
            trainer_for(&(rws_config){.model = "days", .method = "ww", .seed = 4, .scalar = alone}, &whole);
        rws_posterior *p;
        rws_samples   *s;
        rws_error      err = {""};
        if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
        if (rws_posterior_sample(p, 200, 1, &s, &err) != RWS_OK) fail_msg("%s", err.text);
        for (int i = 0; i < s->n; i++) {
            const float *x = s->list[i].fields[1];
            const int    n = (int)x[0];
            assert_true(n >= 1 && n <= MOST && s->list[i].fields[0][0] == (float)(n - 1));
            for (int k = 0; k < MOST; k++) total[alone] += (k + 1) * (double)x[1 + k];
            for (int k = n; k < MOST; k++) assert_true(x[1 + k] == 0);
        }
        rws_samples_free(s);
        rws_posterior_free(p);
        rws_trainer_free(t);
    }
    assert_true(near(total[0], total[1], 1e-3 * fabs(total[1])));
}

static void methods_agree(void **unused)
{
    (void)unused;
    const char *methods[] = {"ww", "ws", "wws", "dww", "vimco", "rloo", "reinforce", "nvil"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        rws_trainer *a = trained(methods[i], false, 1), *b = trained(methods[i], true, 1),
                    *c = trained(methods[i], false, 3);
        const size_t n = rws_trainer_size(a);
        float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
        gradient_of(a, 5, g);
        gradient_of(b, 5, h);
        assert_close(g, h, n, 1e-3, methods[i]);
        gradient_of(c, 5, h);
        assert_memory_equal(g, h, n * sizeof *g); /* threads change no bit */
        free(g), free(h);
        rws_trainer_free(a);
        rws_trainer_free(b);
        rws_trainer_free(c);
    }
}

/* ---- mistakes */

typedef struct {
    rws_var v;
    char    small;
    int     t;
} padded;

typedef enum {
    NONE_MADE,
    OWNERS_PATH,
    FALLING,
    LEAKS,
    NO_VALUE,
    PADDING,
    NO_CLOCK,
    ENDLESS,
    IN_FRAME,
    NOT_SHARED,
    TWICE_SHARED,
    DRAWN_BEHIND,
    NOT_VISITED
} mistake;
static mistake made;

typedef struct {
    rws_path *owner;
    rws_var  *leak;
} wrong_env;

static bool wrong_step(rws_path *path, const void *env, void *carry)
{
    const wrong_env *b = env;
    inner           *c = carry;
    if (made == OWNERS_PATH) rws_constant(b->owner, 1);
    if (made == FALLING) return c->t -= 1, true;
    if (made == LEAKS && c->t) rws_add(path, *b->leak, c->sum);
    if (made == LEAKS) *b->leak = c->sum;
    if (made == NO_VALUE) c->sum.id = 1u << 30;
    if (made == ENDLESS) return true;
    return ++c->t < 3;
}

static bool padded_step(rws_path *path, const void *env, void *carry)
{
    (void)path, (void)env, (void)carry;
    return false;
}

static void wrong_guide(rws_path *path, const void *state)
{
    rws_var         leak = rws_constant(path, 1);
    const wrong_env env = {path, &leak};
    inner           c = {.sum = rws_constant(path, 0)};
    padded          p = {.v = c.sum};
    day             d = {.s = -1, .sum = rws_constant(path, 0)};
    if (made >= NOT_SHARED && made != TWICE_SHARED) {
        const char *name = made == NOT_SHARED ? "weeks" : "days";
        if (made == NOT_VISITED) rws_bernoulli(path, "other", leak);
        const before b = {.w = state, .n = rws_length(path, "x")};
        RWS_SHARED_LOOP(path, name, guide_step, &b, d, t);
        if (made == DRAWN_BEHIND) rws_bernoulli(path, "other", leak);
        return;
    }
    if (made == TWICE_SHARED) {
        guide(path, state);
    } else if (made == PADDING) RWS_LOOP(path, padded_step, &env, p, t);
    else if (made == NO_CLOCK) rws_loop(path, wrong_step, &env, &c, sizeof c, sizeof c);
    else RWS_LOOP(path, wrong_step, &env, c, t);
    if (made == IN_FRAME) rws_add(path, leak, c.sum);
    guide(path, state);
}

static void mistakes_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        mistake     made;
        const char *words;
    } cases[] = {
        {OWNERS_PATH, "was given a path that does not run"},
        {FALLING, "falls from 0 to -1"},
        {LEAKS, "a value of another step"},
        {NO_VALUE, "number 0 is no value of this step"},
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
        {PADDING, "padding at byte 9"},
#endif
        {NO_CLOCK, "rws_loop hands on 16 bytes"},
        {ENDLESS, "does it end?"},
        {NOT_SHARED, "shares the loop \"weeks\" with the model, which comes to the loop \"days\""},
        {TWICE_SHARED, "behind another one"},
        {DRAWN_BEHIND, "draws site \"other\" behind the loop"},
        {NOT_VISITED, "has drawn site \"other\", and the model has not visited it before the loop \"days\""}
    };
    const rws_model wrong = {.name = "wrong", .guide = wrong_guide, .model = model};
    for (int scalar = 0; scalar < 2; scalar++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            bench    *b = bench_new(2, 3);
            rws_error err = {""};
            made = cases[i].made;
            in_turn = made >= NOT_SHARED;
            b->engine->limits.max_operations = 5000;
            assert_refused(forward(b, &wrong, PLAINLY, scalar, &err), RWS_BAD_INPUT, &err, "In the ", cases[i].words);
            made = NONE_MADE, in_turn = false; /* the engine is ready for another pass */
            if (forward(b, &wrong, PLAINLY, scalar, &err) != RWS_OK) fail_msg("%s", err.text);
            bench_free(b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_equal_scalar),
        cmocka_unit_test_prestate(loops_equal_scalar, "shared"),
        cmocka_unit_test(derivatives_equal_scalar),
        cmocka_unit_test(dreams_are_the_same),
        cmocka_unit_test(paths_come_together),
        cmocka_unit_test(all_choices_add_up),
        cmocka_unit_test(methods_agree),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(impossible_particles_end),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
