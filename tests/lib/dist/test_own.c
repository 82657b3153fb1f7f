/* test_own.c - distributions and densities of an author's own: the example plug-in, families that err, observations whose
 * log-density is an expression, and kernels in C. */
#include "trained.h"

#include "../examples/kumaraswamy.c"

#include <string.h>

/* ---- the example: density, draw and gradients against formulas in double; it learns */

static double twin(const double *in) /* x, a, b */
{
    return log(in[1]) + log(in[2]) + (in[1] - 1) * log(in[0]) + (in[2] - 1) * log1p(-pow(in[0], in[1]));
}

typedef struct {
    const rws_family *family;
    rws_param        *p[3]; /* x, a, b */
    bool              drawn;
} bench;

/* Slot 0 is the log-density at x; or, where the value is drawn, the value. */
static void program(rws_path *path, void *context)
{
    const bench  *b = context;
    const rws_var p[] = {rws_parameter(path, b->p[1]), rws_parameter(path, b->p[2])};
    if (!b->drawn) {
        rws__path_output(path, 0, rws_log_density(path, b->family, rws_parameter(path, b->p[0]), p));
        return;
    }
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var x = rws_site_visit(path, "x", b->family, p);
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_site_visit(path, "x", b->family, p);
    rws__path_side(path, RWS_SIDE_NONE);
    rws__path_output(path, 0, x);
}

static rws_scores *forward(rws_engine *e, bench *b, int n)
{
    rws_error      err;
    const rws_pass pass = {.program = program,
                           .context = b,
                           .mode = b->drawn ? RWS_WAKE : RWS_COMPUTE,
                           .groups = 1u << RWS_PHI,
                           .pathwise = true,
                           .key = rws__key_for(3, 0, RWS_KEY_METRIC, 0),
                           .n_data = 1,
                           .n_particles = n};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    return rws__engine_scores(e);
}

static double look_at_draws(void *context, int round, int wide)
{
    const int         n = 20000 * wide;
    bench            *b = ((void **)context)[0];
    rws_engine       *e = ((void **)context)[1];
    const rws_scores *s = forward(e, b, n);
    const double      a = (double)b->p[1]->value[0], shape = (double)b->p[2]->value[0];
    double           *u = malloc((size_t)n * sizeof *u);
    (void)round;
    for (int i = 0; i < n; i++) {
        const double in[] = {s->out[0][i], a, shape};
        const double slack = in[0] > 0.01 && in[0] < 0.99 ? 1e-4 : 0.1; /* 1 - x^a has few digits near 0 and 1 */
        if (!near(s->log_q[i], twin(in), slack * (1 + fabs(twin(in)))))
            fail_msg("at %g: %g, not %g", in[0], s->log_q[i], twin(in));
        u[i] = 1 - pow(1 - pow(in[0], a), shape);
    }
    const double p = uniform_tail(u, (size_t)n);
    free(u);
    return p;
}

static void the_example_is_right(void **state)
{
    (void)state;
    const double cases[][3] = {{0.3, 2, 5}, {0.9, 0.5, 0.7}, {0.05, 1, 1}, {0.5, 20, 3}};
    for (int i = 0; i < COUNT(cases); i++) {
        bench       b = {.family = &kumaraswamy};
        rws_params  params = {0};
        float       gradient[3] = {0};
        const char *names[] = {"x", "a", "b"};
        for (int k = 0; k < 3; k++) {
            b.p[k] = rws__params_add(&params, RWS_PHI, names[k], 1, 1);
            b.p[k]->value[0] = (float)cases[i][k];
        }
        rws__params_pack(&params);
        rws_engine *e = rws__engine_new(&params, (rws_field[1]){{0}}, 0, NULL);
        rws_scores *s = forward(e, &b, 1);
        assert_true(near(s->out[0][0], twin(cases[i]), 1e-5));
        s->coef_out[0][0] = 1;
        assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
        for (int k = 0; k < 3; k++) {
            double up[3], down[3];
            memcpy(up, cases[i], sizeof up), memcpy(down, cases[i], sizeof down);
            up[k] += 1e-6, down[k] -= 1e-6;
            const double want = (twin(up) - twin(down)) / 2e-6;
            if (!near((double)gradient[k], want, 1e-4 * (1 + fabs(want))))
                fail_msg("case %d, by %s: %g, not %g", i, names[k], (double)gradient[k], want);
        }

        b.drawn = true;
        stays_likely("kumaraswamy", look_at_draws, (void *[]){&b, e});

        /* the derivative of the one draw by its shapes: x(u) with u from the distribution function */
        s = forward(e, &b, 1);
        const double x = s->out[0][0], v = pow(1 - pow(x, cases[i][1]), cases[i][2]);
        s->coef_out[0][0] = 1;
        memset(gradient, 0, sizeof gradient);
        assert_int_equal(rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL), RWS_OK);
        for (int k = 1; k < 3; k++) {
            double up[3], down[3];
            memcpy(up, cases[i], sizeof up), memcpy(down, cases[i], sizeof down);
            up[k] += 1e-6, down[k] -= 1e-6;
            const double want =
                (pow(1 - pow(v, 1 / up[2]), 1 / up[1]) - pow(1 - pow(v, 1 / down[2]), 1 / down[1])) / 2e-6;
            if (!near((double)gradient[k], want, 1e-3 * (1 + fabs(want))))
                fail_msg("case %d, a draw by %s: %g, not %g", i, names[k], (double)gradient[k], want);
        }
        rws__engine_free(e);
        rws__params_release(&params);
    }
}

/* log p(heads) by a sum over a fine grid of the bias. */
static double exact(double a, double b, int heads)
{
    enum { N = 20000 };
    double total = 0;
    for (int i = 0; i < N; i++) {
        const double x = (i + 0.5) / N;
        total += exp(twin((double[]){x, a, b}) + heads * log(x) + (THROWS - heads) * log1p(-x)) / N;
    }
    return log(total) + lgamma(THROWS + 1) - lgamma(heads + 1) - lgamma(THROWS - heads + 1);
}

static void the_example_learns(void **state)
{
    (void)state;
    const char *const methods[] = {"ww", "vimco", "ws"};
    for (int i = 0; i < COUNT(methods); i++) {
        rws_trainer *t =
            trainer_for(&(rws_config){.model = "own", .method = methods[i], .lr = "1e-2", .seed = 2}, &rws_user_model);
        rws_param_view shapes;
        assert_true(rws_trainer_find(t, "theta.shapes", &shapes));
        steps(t, 1500);
        const double a = exp((double)shapes.values[0]), b = exp((double)shapes.values[1]);
        double       lost = 0; /* nats per coin, against the truth */
        for (int h = 0; h <= THROWS; h++) lost += exp(exact(2, 5, h)) * (exact(2, 5, h) - exact(a, b, h));
        if (!(lost < 0.02)) fail_msg("%s: shapes %g and %g, %g nats from the truth", methods[i], a, b, lost);
        for (int h = 0; h <= THROWS; h += 5) { /* the guide finds what the grid finds */
            const float  heads = (float)h;
            rws_answers *answers;
            rws_error    err;
            if (rws_trainer_ask(t, &(rws_question){.fields = (const float *const[]){&heads}, .n_particles = 20000},
                                &answers, &err) != RWS_OK)
                fail_msg("%s", err.text);
            assert_true(near(answers->log_evidence, exact(a, b, h), 0.1));
            rws_answers_free(answers);
        }
        rws_trainer_free(t);
    }
}

/* ---- families that err */

static rws_family bad;

static void visits_bad(rws_path *path, const void *state)
{
    (void)state;
    rws_site_visit(path, "bias", &bad, (rws_var[]){rws_constant(path, 1), rws_constants(path, (float[]){1, 2}, 2)});
}

static void visits_nothing(rws_path *path, const void *state)
{
    (void)path, (void)state;
}

static void bad_model(rws_path *path, const void *state)
{
    visits_bad(path, state);
    rws_binomial(path, "heads", rws_constant(path, THROWS), rws_constant(path, 0));
}

static rws_var two_numbers(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f, (void)value;
    return rws_draw_noise(path, RWS_NOISE_NORMAL, rws_dim(path, p[1]));
}

static rws_var nothing(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)path, (void)f, (void)value, (void)p;
    return (rws_var){0};
}

static rws_var three_drawn(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)p, (void)stop;
    return rws_draw_noise(path, RWS_NOISE_NORMAL, 3);
}

static rws_var branches(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    rws_branch(path, p[0]);
    return p[0];
}

static rws_var visits(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    return rws_normal(path, "inner", p[0], p[0]);
}

static int no_length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)path, (void)f, (void)p;
    return 0;
}

static void a_family_that_errs_is_named(void **state)
{
    (void)state;
    const rws_family good = {.name = "bad", .n_params = 2, .draw = draw, .log_density = log_density};
    struct {
        rws_family  family;
        const char *words;
    } cases[] = {
        {good, "The parameters"}, /* fits, and is replaced below */
        {good, "a family without a name"},
        {good, "a family without a log-density"},
        {good, "the family \"bad\" has 12 parameters; a family has 0 to 11."},
        {good, "the log-density of the family \"bad\" has 2 numbers, not one."},
        {good, "no value"},
        {good, "the family \"bad\" drew a value of 3 numbers, but its length is 2."},
        {good, "may branch only in its own code"},
        {good, "visits the site \"inner\" while it draws or scores"},
        {good, "the family \"bad\" has values of 0 numbers."},
        {good, "has a log-density but no program that draws it"},
    };
    cases[1].family.name = NULL;
    cases[2].family.log_density = NULL;
    cases[3].family.n_params = 12;
    cases[4].family.log_density = two_numbers;
    cases[5].family.log_density = nothing;
    cases[6].family.draw = three_drawn;
    cases[7].family.draw = branches;
    cases[8].family.draw = visits;
    cases[9].family.length = no_length;
    cases[10].family.draw = NULL;
    for (int i = 1; i < COUNT(cases); i++) {
        rws_model m = rws_user_model;
        rws_error err = {""};
        m.guide = visits_bad;
        m.model = bad_model;
        bad = cases[i].family;
        rws_trainer     *t = trainer_for(&(rws_config){.model = "bad", .method = "ww", .seed = 1}, &m);
        const rws_status status = rws_trainer_step(t, &err);
        if (status != RWS_BAD_INPUT || !strstr(err.text, cases[i].words))
            fail_msg("case %d: status %d, \"%s\"", i, status, err.text);
        rws_trainer_free(t);
    }
    assert_ptr_equal(rws_family_find("no such family"), NULL);
    assert_ptr_equal(rws_family_find(NULL), NULL);
    assert_string_equal(rws_family_find("gamma")->name, "gamma");
}

/* ---- a draw by log-probabilities of any op, which may have saved other numbers than their exponentials */

static rws_var only_index(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    return rws_draw_index(path, rws_log_sum_exp(path, rws_log_softmax(path, p[0])));
}

static rws_var certain(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f, (void)p;
    return rws_affine(path, value, 0, 0);
}

static int one_number(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)path, (void)f, (void)p;
    return 1;
}

static void only_program(rws_path *path, void *context)
{
    const rws_family f = {
        .name = "only", .n_params = 1, .length = one_number, .draw = only_index, .log_density = certain};
    const rws_var logits = rws_constants(path, (float[]){0.5f, 1, -1}, 3);
    (void)context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws__path_output(path, 0, rws_site_visit(path, "z", &f, &logits));
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_site_visit(path, "z", &f, &logits);
    rws__path_side(path, RWS_SIDE_NONE);
}

static void a_draw_takes_log_probabilities_of_any_op(void **state)
{
    (void)state;
    const rws_params params = {0};
    const rws_pass   pass = {.program = only_program, .mode = RWS_WAKE, .n_data = 1, .n_particles = 5};
    rws_engine      *e = rws__engine_new(&params, (rws_field[1]){{0}}, 0, NULL);
    rws_error        err = {""};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(rws__engine_scores(e)->n, 1);
    assert_true(rws__engine_scores(e)->out[0][0] == 0);
    rws__engine_free(e);
}

/* ---- functions of draws in the program's own code, and densities that do not fit */

static int which_mistake;

static void mistaken_guide(rws_path *path, const void *state)
{
    (void)state;
    const rws_var one = rws_constant(path, 1), two = rws_constants(path, (float[]){1, 2}, 2);
    switch (which_mistake) {
    case 0: rws_draw_noise(path, RWS_NOISE_NORMAL, 1); break;
    case 1: rws_draw_index(path, two); break;
    case 2: rws_draw_from(path, rws_family_find("normal"), (rws_var[]){one, one}); break;
    case 3: rws_log_density(path, rws_family_find("normal"), two, (rws_var[]){one, one}); break;
    case 4: rws_log_density(path, NULL, two, (rws_var[]){one, one}); break;
    case 5: rws_log_density(path, rws_family_find("normal"), one, NULL); break;
    case 6:
        rws_log_density(path, rws_family_find("normal"), one,
                        (rws_var[]){two, rws_constants(path, (float[]){1, 2, 3}, 3)});
        break;
    default: rws_site_visit(path, "bias", NULL, &one);
    }
}

static void mistakes_of_a_program_are_sentences(void **state)
{
    (void)state;
    const char *const words[] = {
        "rws_draw_noise was called by the program",
        "rws_draw_index was called by the program",
        "rws_draw_from was called by the program",
        "rws_log_density was given a value of 2 numbers; values of this normal have 1.",
        "rws_log_density was given no family (NULL).",
        "the family \"normal\" was given no parameters (NULL).",
        "the parameters of the normal have 3 and 2 numbers; each takes 3 or 1.",
        "rws_site_visit was given no family (NULL).",
    };
    rws_model m = rws_user_model;
    m.guide = mistaken_guide;
    for (which_mistake = 0; which_mistake < COUNT(words); which_mistake++) {
        rws_error    err = {""};
        rws_trainer *t = trainer_for(&(rws_config){.model = "bad", .method = "ww", .seed = 1}, &m);
        assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, words[which_mistake])) fail_msg("\"%s\"", err.text);
        rws_trainer_free(t);
    }
}

/* ---- densities that are expressions: a mixture of three normals, with the observation built in or written down */

enum { C = 3 };

typedef struct {
    rws_param *prior, *means; /* theta */
    rws_layer *look;          /* phi */
} mixture;

static rws_status mixture_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)err;
    mixture *m = rws_setup_alloc(s, sizeof *m);
    rws_setup_field(s, "x", 2);
    m->prior = rws_setup_param(s, RWS_THETA, "theta.prior", 1, C, RWS_ZERO);
    m->means = rws_setup_param(s, RWS_THETA, "theta.means", C, 2, RWS_ZERO);
    m->look = rws_setup_mlp(s, RWS_PHI, "phi.look", RWS_TANH, RWS_UNIFORM, (int[]){2, 5, C}, 3);
    for (int i = 0; i < 2 * C; i++) rws_param_values(m->means)[i] = (float)rws_random_normal(random);
    for (int i = 0; i < C; i++) rws_param_values(m->prior)[i] = (float)rws_random_normal(random);
    rws_setup_relaxed(s, "z", C);
    *state = m;
    return RWS_OK;
}

static rws_status mixture_data(const void *w, rws_split split, uint64_t first, int n, rws_random *g, float *const *to,
                               rws_error *e)
{
    (void)w, (void)split, (void)first, (void)e;
    for (int i = 0; i < 2 * n; i++) to[0][i] = (float)rws_random_normal(g) * 2;
    return RWS_OK;
}

static rws_var mean_of(rws_path *path, const mixture *m, rws_var z)
{
    return rws_row(path, rws_parameter(path, m->means), 2, z);
}

static void built_in(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", mean_of(path, m, z), rws_constant(path, 0.7f));
}

typedef struct {
    rws_var mean, sd;
} moments;

static rws_var own_density(rws_path *path, rws_var x, const void *context)
{
    const moments *m = context;
    const rws_var  d = rws_div(path, rws_sub(path, x, m->mean), m->sd);
    const rws_var  half = rws_affine(path, rws_apply(path, RWS_SQUARE, d), -0.5f, -0.5f * logf(2 * (float)M_PI));
    return rws_sum(path, rws_sub(path, half, rws_apply(path, RWS_LOG, m->sd)));
}

static rws_var own_draw(rws_path *path, const void *context)
{
    const moments *m = context;
    const rws_var  e = rws_draw_noise(path, RWS_NOISE_NORMAL, 2);
    return rws_add(path, m->mean, rws_mul(path, m->sd, e));
}

static bool without_draw;

static void written_down(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    const moments  at = {mean_of(path, m, z), rws_constant(path, 0.7f)};
    rws_observe(path, "x", own_density, without_draw ? NULL : own_draw, &at);
}

static void mixture_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_mlp(path, m->look, rws_observed(path, "x")));
}

static const rws_model with_normal = {.abi = RWS_ABI,
                                      .name = "normal",
                                      .help = "a mixture",
                                      .defaults = {.batch = 12, .particles = 6, .n_test = 20, .shards = 3},
                                      .setup = mixture_setup,
                                      .data = mixture_data,
                                      .guide = mixture_guide,
                                      .model = built_in};

static rws_model with_expression(void)
{
    rws_model m = with_normal;
    m.model = written_down;
    return m;
}

static rws_trainer *start(const rws_model *m, const char *method, bool scalar)
{
    return trainer_for(&(rws_config){.model = "own", .method = method, .seed = 5, .scalar = scalar}, m);
}

/* Methods that need more than the two programs (em, and the ones with a relaxed model) are left out. */
static bool applies(const char *method)
{
    return !rws__estimator_find(method)->refuses;
}

static void the_expression_is_the_built_in_density(void **state)
{
    (void)state;
    const rws_model own = with_expression();
    rws_method_info info;
    int             n_methods = 0;
    for (int i = 0; rws_method_at(i, &info); i++) {
        if (!applies(info.name)) continue;
        n_methods++;
        for (int scalar = 0; scalar < 2; scalar++) {
            rws_trainer *a = start(&with_normal, info.name, false), *b = start(&own, info.name, scalar);
            const size_t n = rws_trainer_size(a);
            float       *g = calloc(n, sizeof *g), *h = calloc(n, sizeof *h);
            for (uint64_t k = 0; k < 3; k++) {
                gradient_of(a, k, g);
                gradient_of(b, k, h);
                assert_close(g, h, n, 1e-4, info.name);
                steps(a, 1);
                steps(b, 1);
            }
            assert_true(near(metric(a, "log_evidence"), metric(b, "log_evidence"), 1e-4));
            free(g), free(h);
            rws_trainer_free(a);
            rws_trainer_free(b);
        }
    }
    assert_true(n_methods >= 8);
}

/* Log-weights of single particles, and log p(x) by enumeration. */
static void evidence_is_the_sum_over_choices(void **state)
{
    (void)state;
    const rws_model own = with_expression();
    rws_trainer    *t = start(&own, "ww", false);
    rws_param_view  prior, means;
    const float     x[] = {0.3f, -1};
    rws_answers    *a;
    rws_error       err;
    assert_true(rws_trainer_find(t, "theta.prior", &prior) && rws_trainer_find(t, "theta.means", &means));
    double log_p[C], top = 0, total = 0;
    for (int z = 0; z < C; z++) top += exp((double)prior.values[z]);
    for (int z = 0; z < C; z++) {
        log_p[z] = (double)prior.values[z] - log(top);
        for (int j = 0; j < 2; j++)
            log_p[z] +=
                -pow(((double)x[j] - (double)means.values[2 * z + j]) / 0.7, 2) / 2 - log(0.7) - log(2 * M_PI) / 2;
        total += exp(log_p[z]);
    }
    if (rws_trainer_ask(
            t, &(rws_question){.fields = (const float *const[]){x}, .n_particles = 40000, .seed = 1, .particles = true},
            &a, &err) != RWS_OK)
        fail_msg("%s", err.text);
    assert_true(near(a->log_evidence, log(total), 6 * sqrt((1 / a->ess - 1) / a->n_particles)));
    rws_answers_free(a);
    rws_trainer_free(t);
}

static void without_a_draw_there_are_no_dreams(void **state)
{
    (void)state;
    const rws_model   own = with_expression();
    const char *const methods[] = {"ws", "wws"};
    rws_posterior    *p;
    rws_samples      *s;
    rws_error         err = {""};
    without_draw = true;
    for (int i = 0; i < COUNT(methods); i++) {
        rws_trainer *t = start(&own, methods[i], false);
        assert_int_equal(rws_trainer_step(t, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text,
                            "The density of its own at site \"x\" has a log-density but no program that draws "
                            "it; use a method without a sleep phase, such as ww, or write the draw.");
        rws_trainer_free(t);
    }
    rws_trainer *t = start(&own, "ww", false);
    steps(t, 2);
    assert_int_equal(rws_posterior_new(t, &p, &err), RWS_OK);
    assert_int_equal(rws_posterior_sample(p, 3, 1, &s, &err), RWS_BAD_INPUT);
    rws_posterior_free(p);
    rws_trainer_free(t);
    without_draw = false;
}

/* Dreams of the own draw are those of the built-in one: the same noise, the same numbers. */
static void dreams_are_the_same(void **state)
{
    (void)state;
    const rws_model own = with_expression(), *models[] = {&with_normal, &own};
    rws_samples    *s[2];
    for (int i = 0; i < 2; i++) {
        rws_trainer   *t = start(models[i], "ww", false);
        rws_posterior *p;
        rws_error      err;
        if (rws_posterior_new(t, &p, &err) != RWS_OK || rws_posterior_sample(p, 50, 1, &s[i], &err) != RWS_OK)
            fail_msg("%s", err.text);
        rws_posterior_free(p);
        rws_trainer_free(t);
    }
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 2; j++)
            assert_true(near((double)s[0]->list[i].fields[0][j], (double)s[1]->list[i].fields[0][j], 1e-5));
    rws_samples_free(s[0]);
    rws_samples_free(s[1]);
}

/* ---- densities in series: an item at a time */

static rws_status series_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    mixture *m = NULL;
    (void)random, (void)err;
    m = rws_setup_alloc(s, sizeof *m);
    rws_setup_series(s, "x", 2, 4);
    m->means = rws_setup_param(s, RWS_THETA, "theta.means", 1, 2, RWS_ZERO);
    *state = m;
    return RWS_OK;
}

static rws_status series_data(const void *w, rws_split split, uint64_t first, int n, rws_random *g, float *const *to,
                              rws_error *e)
{
    (void)w, (void)split, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        to[0][9 * i] = 3;
        for (int j = 1; j < 9; j++) to[0][9 * i + j] = (float)rws_random_normal(g);
    }
    return RWS_OK;
}

static bool as_built_in;

static void series_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const moments  at = {rws_parameter(path, m->means), rws_constant(path, 0.7f)};
    for (int t = 0; t < 3; t++) {
        if (as_built_in) rws_normal(path, "x", at.mean, at.sd);
        else rws_observe(path, "x", own_density, own_draw, &at);
    }
}

static void items_have_densities_too(void **state)
{
    (void)state;
    const rws_model in_series = {.abi = RWS_ABI,
                                 .name = "series",
                                 .help = "items",
                                 .defaults = {.batch = 12, .particles = 2, .n_test = 20, .shards = 1},
                                 .setup = series_setup,
                                 .data = series_data,
                                 .guide = visits_nothing,
                                 .model = series_model};
    double          evidence[2];
    float           gradient[2][2];
    for (int i = 0; i < 2; i++) {
        as_built_in = i;
        rws_trainer *t = start(&in_series, "ww", false);
        evidence[i] = metric(t, "log_evidence");
        gradient_of(t, 0, gradient[i]);
        rws_trainer_free(t);
    }
    assert_true(near(evidence[0], evidence[1], 1e-4));
    assert_close(gradient[0], gradient[1], 2, 1e-5, "items");
}

/* ---- what rws_observe and rws_simulate refuse */

static int which_observation;

static double broken_kernel(const float *datum, const float *made, int dim, const void *context)
{
    (void)datum, (void)made, (void)dim;
    return *(const double *)context;
}

static void mistaken_model(rws_path *path, const void *state)
{
    static const double broken = NAN, impossible = -INFINITY;
    const float         made[] = {0, 0};
    const mixture      *m = state;
    const rws_var       z = rws_categorical(path, "z", rws_parameter(path, m->prior));
    const moments       at = {mean_of(path, m, z), rws_constant(path, 0.7f)};
    switch (which_observation) {
    case 0: rws_observe(path, "y", own_density, NULL, &at); break;
    case 1: rws_observe(path, "x", NULL, NULL, &at); break;
    case 2: rws_observe(path, NULL, own_density, NULL, &at); break;
    case 3:
        rws_observe(path, "x", own_density, NULL, &at);
        rws_observe(path, "x", own_density, NULL, &at);
        break;
    case 4: rws_simulate(path, "x", NULL, broken_kernel, &broken); break;
    case 5: rws_simulate(path, "y", made, broken_kernel, &broken); break;
    case 6: rws_simulate(path, "x", made, broken_kernel, &broken); break;
    default: rws_simulate(path, "x", made, broken_kernel, &impossible);
    }
}

static void observations_that_err_are_named(void **state)
{
    (void)state;
    static const struct {
        rws_status  status;
        const char *words;
    } cases[] = {
        {RWS_BAD_INPUT, "The data have no field \"y\", which the model observes."},
        {RWS_BAD_INPUT, "rws_observe was given no density (NULL)."},
        {RWS_BAD_INPUT, "rws_observe was given no site (NULL)."},
        {RWS_BAD_INPUT, "The model visits site \"x\" twice"},
        {RWS_BAD_INPUT, "rws_simulate was given NULL."},
        {RWS_BAD_INPUT, "The data have no field \"y\", which the model simulates."},
        {RWS_BROKEN, "\"x\""},
        {RWS_BROKEN, "impossible"},
    };
    rws_model m = with_normal;
    m.model = mistaken_model;
    for (which_observation = 0; which_observation < COUNT(cases); which_observation++) {
        rws_error        err = {""};
        rws_trainer     *t = start(&m, "ww", false);
        const rws_status status = rws_trainer_step(t, &err);
        if (status != cases[which_observation].status || !strstr(err.text, cases[which_observation].words))
            fail_msg("case %d: status %d, \"%s\"", which_observation, status, err.text);
        rws_trainer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_right),
        cmocka_unit_test(the_example_learns),
        cmocka_unit_test(a_family_that_errs_is_named),
        cmocka_unit_test(a_draw_takes_log_probabilities_of_any_op),
        cmocka_unit_test(mistakes_of_a_program_are_sentences),
        cmocka_unit_test(the_expression_is_the_built_in_density),
        cmocka_unit_test(evidence_is_the_sum_over_choices),
        cmocka_unit_test(without_a_draw_there_are_no_dreams),
        cmocka_unit_test(dreams_are_the_same),
        cmocka_unit_test(items_have_densities_too),
        cmocka_unit_test(observations_that_err_are_named),
    };
    return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}
