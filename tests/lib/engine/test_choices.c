/* test_choices.c - choices that a pass is given instead of drawing them, and choices listed after a pass: what one pass
 * lists and another is given must have the same densities, for every family, batched and one particle at a time. */
#include "base/error.h"
#include "estimator/estimator.h"
#include "trained.h"

#include <math.h>
#include <string.h>

/* ---- a program with a site of every family, one of them in a loop whose length is drawn */

static rws_var numbers(rws_path *path, float a, float b, float c)
{
    return rws_constants(path, (float[]){a, b, c}, 3);
}

static void latents(rws_path *path, rws_var shift)
{
    const rws_var one = rws_constant(path, 1), logits = rws_add(path, numbers(path, 0, 0.5f, -1), shift);
    const int     kind = rws_choose(path, "kind", logits);
    rws_bernoulli(path, "bits", logits);
    while (rws_flip(path, "more", rws_affine(path, shift, 0.5f, 0)))
        rws_normal(path, "step", rws_affine(path, shift, 1, (float)kind), one);
    rws_uniform(path, "uniform", rws_affine(path, shift, 0, -1), one);
    rws_gumbel(path, "gumbel", logits);
    rws_concrete(path, "simplex", logits, one);
    rws_categorical(path, "quiet", logits);
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    latents(path, rws_observed(path, "x"));
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    latents(path, rws_constant(path, 0.25f));
    rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
}

static const rws_model every = {.guide = guide, .model = model};
static const rws_field field_x = {"x", 1};
static const float xs[] = {-0.5f, 0, 0.75f}, *const data[] = {xs};

enum { B = 3, K = 20, MOST = 200 };

static rws_pass pass_of(rws_method *m, rws_mode mode, bool scalar)
{
    return (rws_pass){.model = m->model,
                      .state = m->state,
                      .mode = mode,
                      .scalar = scalar,
                      .pathwise = true,
                      .n_data = mode == RWS_SLEEP ? 1 : B,
                      .n_particles = K,
                      .fields = mode == RWS_SLEEP ? NULL : data,
                      .key = rws__key_for(5, 6, RWS_KEY_WAKE, 0)};
}

static void run(rws_engine *e, const rws_pass *p)
{
    rws_error err = {""};
    if (rws__engine_forward(e, p, &err) != RWS_OK) fail_msg("%s", err.text);
}

/* ---- a list of choices with memory of its own */

typedef struct {
    rws_choice at[MOST];
    float      value[MOST][3];
    int        n;
} list;

static void keep(void *context, const rws_choice *c)
{
    list *l = context;
    assert_true(l->n < MOST && c->dim <= 3);
    memcpy(l->value[l->n], c->value, (size_t)c->dim * sizeof(float));
    l->at[l->n] = *c;
    l->at[l->n].value = l->value[l->n];
    l->n++;
}

static const rws_choice *choice(const list *l, const char *site, int visit)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].visit == visit && strcmp(l->at[i].site, site) == 0) return &l->at[i];
    return NULL;
}

static void assert_same(double a, double b)
{
    if (!(fabs(a - b) < 2e-5 * (1 + fabs(b)))) fail_msg("%.9g instead of %.9g", a, b);
}

/* Both passes are of one particle of one datum. */
static void score_again(rws_method *m, rws_engine *e, const list *l, const float *x, bool scalar, double log_p,
                        double log_q)
{
    rws_pass p = pass_of(m, RWS_WAKE, scalar);
    p.n_data = 1;
    p.n_particles = 3;
    p.fields = &x;
    p.given = l->at;
    p.n_given = l->n;
    p.given_all = true;
    for (int defensive = 0; defensive < 2; defensive++) {
        const rws_proposal mixture = {.how = RWS_DEFENSIVE, .delta = 0.2};
        p.proposal = defensive ? &mixture : NULL;
        run(e, &p);
        const rws_scores *s = rws__engine_scores(e);
        assert_int_equal(s->n, scalar ? 3 : 1);
        for (int i = 0; i < s->n; i++) {
            if (!isnan(log_p)) assert_same(s->log_p[i], log_p);
            assert_same(s->log_given[i], log_q);
            assert_true(s->log_q[i] == 0 && s->log_d[i] == 0); /* nothing was drawn */
        }
    }
}

static void wake_choices_score_as_drawn(void **unused)
{
    (void)unused;
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_method  m = {.model = &every};
        rws_params  none = {0};
        rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL), *again = rws__engine_new(&none, &field_x, 1, NULL);
        rws_pass    p = pass_of(&m, RWS_WAKE, scalar);
        p.choices = true;
        run(e, &p);
        const rws_scores *s = rws__engine_scores(e);
        for (int d = 0; d < B; d++)
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
                list l = {.n = 0};
                int  dim = 0;
                assert_int_equal(rws__engine_choices(e, (int)i, keep, &l), RWS_OK);
                assert_string_equal(l.at[0].site, "kind");
                assert_string_equal(l.at[1].site, "bits");
                assert_string_equal(l.at[l.n - 1].site, "quiet");
                assert_int_equal(*rws__engine_observed(e, (int)i, 0, &dim) == xs[d], 1);
                assert_int_equal(dim, 1);
                int visits = 0;
                while (choice(&l, "step", visits)) visits++;
                assert_true(*choice(&l, "more", visits)->value == 0);
                assert_int_equal(l.n, 2 + 2 * visits + 1 + 4);
                score_again(&m, again, &l, &xs[d], scalar, s->log_p[i], s->log_q[i]);
            }
        rws__engine_free(e);
        rws__engine_free(again);
    }
}

static void sleep_choices_and_data(void **unused)
{
    (void)unused;
    double total[2] = {0, 0};
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_method  m = {.model = &every};
        rws_params  none = {0};
        rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL), *again = rws__engine_new(&none, &field_x, 1, NULL);
        rws_pass    p = pass_of(&m, RWS_SLEEP, scalar);
        for (int listed = 0; listed < 2; listed++) {
            p.choices = listed;
            run(e, &p);
            const rws_scores *s = rws__engine_scores(e);
            for (int i = 0; i < s->n; i++) {
                list         l = {.n = 0};
                const float *x = rws__engine_observed(e, i, 0, NULL);
                if (listed) assert_int_equal(rws__engine_choices(e, i, keep, &l), RWS_OK);
                if (listed) score_again(&m, again, &l, x, scalar, NAN, s->log_q[i]);
                total[scalar] += (double)*x;
            }
        }
        rws__engine_free(e);
        rws__engine_free(again);
    }
    assert_same(total[0], total[1]); /* the model made the same data */
}

/* With some of the choices given as they would have been drawn, the rest is drawn as ever. */
static void partly_given(void **unused)
{
    (void)unused;
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_method  m = {.model = &every};
        rws_params  none = {0};
        rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL);
        rws_pass    p = pass_of(&m, RWS_WAKE, scalar);
        list        all = {.n = 0}, rest = {.n = 0};
        p.n_particles = p.n_data = 1;
        p.choices = true;
        run(e, &p);
        const double log_p = rws__engine_scores(e)->log_p[0];
        assert_int_equal(rws__engine_choices(e, 0, keep, &all), RWS_OK);
        const rws_choice some[] = {*choice(&all, "uniform", 0), *choice(&all, "kind", 0), *choice(&all, "bits", 0)};
        p.given = some;
        p.n_given = 3;
        run(e, &p);
        assert_same(rws__engine_scores(e)->log_p[0], log_p);
        assert_int_equal(rws__engine_choices(e, 0, keep, &rest), RWS_OK);
        assert_int_equal(rest.n, all.n);
        assert_memory_equal(rest.value, all.value, (size_t)all.n * sizeof all.value[0]);

        /* data given to the model in its sleep */
        const float      x = 1.5f;
        const rws_choice given_x = {"x", 0, 1, &x};
        p = pass_of(&m, RWS_SLEEP, scalar);
        p.given = &given_x;
        p.n_given = 1;
        run(e, &p);
        for (int i = 0; i < rws__engine_scores(e)->n; i++) assert_true(*rws__engine_observed(e, i, 0, NULL) == x);
        rws__engine_free(e);
    }
}

/* ---- choices of every datum's own */

/* Sums over the particles of a datum; log_p without impossible ones. */
typedef struct {
    double n, impossible, log_p, log_q, log_d, log_given;
} totals;

static totals add_up(const rws_scores *s, int d)
{
    totals t = {0};
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
        t.n += s->count[i];
        if (s->log_p[i] == -INFINITY) t.impossible += s->count[i];
        else t.log_p += s->count[i] * s->log_p[i];
        t.log_q += s->count[i] * s->log_q[i];
        t.log_d += s->count[i] * s->log_d[i];
        if (s->log_given) t.log_given += s->count[i] * s->log_given[i];
    }
    return t;
}

static void assert_totals(totals a, totals b)
{
    assert_true(a.n == b.n && a.impossible == b.impossible);
    assert_same(a.log_p, b.log_p);
    assert_same(a.log_q, b.log_q);
    assert_same(a.log_d, b.log_d);
    assert_same(a.log_given, b.log_given);
}

static const float zero = 0, one_f = 1, two_f = 2, some_bits[] = {0, 1, 0}, half_f = 0.5f;

/* Datum 0 has a loop of two turns, datum 1 nothing, datum 2 a vector and the second turn of a loop whose length is drawn. */
static const rws_choice own[] = {{"more", 0, 1, &one_f},    {"more", 1, 1, &one_f},  {"more", 2, 1, &zero},
                                 {"kind", 0, 1, &two_f},    {"step", 1, 1, &half_f}, {"bits", 0, 3, some_bits},
                                 {"uniform", 0, 1, &half_f}};
static const uint32_t   own_start[] = {0, 4, 4, 7};

/* In one pass for all data, in scalar mode, and in a pass for each datum with a list that holds for all its data: the same
 * particles with the same densities. */
static void data_have_choices_of_their_own(void **unused)
{
    (void)unused;
    rws_method  m = {.model = &every};
    rws_params  none = {0};
    rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL), *scalar = rws__engine_new(&none, &field_x, 1, NULL);
    for (int defensive = 0; defensive < 2; defensive++) {
        rws_pass p = pass_of(&m, RWS_WAKE, false);
        p.given = own;
        p.given_start = own_start;
        const rws_proposal mixture = {.how = RWS_DEFENSIVE, .delta = 0.3};
        p.proposal = defensive ? &mixture : NULL;
        p.choices = true;
        run(e, &p);
        p.scalar = true;
        run(scalar, &p);
        totals batched[B];
        for (int d = 0; d < B; d++) {
            batched[d] = add_up(rws__engine_scores(e), d);
            assert_totals(batched[d], add_up(rws__engine_scores(scalar), d));
        }
        assert_true(batched[0].impossible == 0 && batched[0].log_given < 0);
        assert_true(batched[1].impossible == 0 && batched[1].log_given == 0);
        assert_true(batched[2].impossible > 0 && batched[2].impossible < K);
        const rws_scores *s = rws__engine_scores(e);
        for (uint32_t i = s->start[0]; i < s->start[3]; i++) { /* the list says what was given */
            list l = {.n = 0};
            int  n_given = 0;
            assert_int_equal(rws__engine_choices(e, (int)i, keep, &l), RWS_OK);
            for (int k = 0; k < l.n; k++) n_given += l.at[k].given;
            assert_int_equal(n_given, i < s->start[1] ? 4 : i < s->start[2] ? 0 : choice(&l, "step", 1) ? 3 : 2);
            assert_int_equal(s->log_p[i] == -INFINITY, i >= s->start[2] && !choice(&l, "step", 1));
        }
        for (int d = 0; d < B; d++) {
            const float *x = &xs[d];
            p.scalar = false;
            p.n_data = 1;
            p.first_datum = (uint32_t)d;
            p.fields = &x;
            p.given = own + own_start[d];
            p.n_given = (int)(own_start[d + 1] - own_start[d]);
            p.given_start = NULL;
            run(e, &p);
            assert_totals(add_up(rws__engine_scores(e), 0), batched[d]);
        }
    }
    rws__engine_free(e);
    rws__engine_free(scalar);
}

/* A particle that does not visit what is given is impossible; and the engine says what no particle visited. */
static void particles_elsewhere_are_impossible(void **unused)
{
    (void)unused;
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_method       m = {.model = &every};
        rws_params       none = {0};
        rws_engine      *e = rws__engine_new(&none, &field_x, 1, NULL);
        const rws_choice given[] = {{"kind", 0, 1, &zero}, {"nowhere", 0, 1, &zero}};
        rws_pass         p = pass_of(&m, RWS_WAKE, scalar);
        p.given = given;
        p.n_given = 2;
        run(e, &p);
        for (int i = 0; i < rws__engine_scores(e)->n; i++) assert_true(rws__engine_scores(e)->log_p[i] == -INFINITY);
        assert_true(rws__engine_given_reached(e, 0) && !rws__engine_given_reached(e, 1));

        rws_error err = {""};
        p = pass_of(&m, RWS_SLEEP, scalar);
        p.given = given;
        p.n_given = 2;
        assert_int_equal(rws__engine_forward(e, &p, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "A value is given for site \"nowhere\" (visit 0), but the model does not"));
        rws__engine_free(e);
    }
}

/* A datum whose choices are all given has one particle only, so that a choice too many is a mistake. */
static void a_choice_too_many_is_named(void **unused)
{
    (void)unused;
    static const float simplex[] = {-1, -1, -1};
    const rws_choice   all[] = {{"kind", 0, 1, &two_f},     {"bits", 0, 3, some_bits},   {"more", 0, 1, &zero},
                                {"uniform", 0, 1, &half_f}, {"gumbel", 0, 3, some_bits}, {"simplex", 0, 3, simplex},
                                {"quiet", 0, 1, &one_f},    {"step", 0, 1, &half_f}};
    const uint32_t     start[] = {0, 0, 8, 8};
    for (int scalar = 0; scalar < 2; scalar++) {
        rws_method  m = {.model = &every};
        rws_params  none = {0};
        rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL);
        rws_pass    p = pass_of(&m, RWS_WAKE, scalar);
        rws_error   err = {""};
        p.given = all;
        p.given_start = start;
        assert_int_equal(rws__engine_forward(e, &p, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, "A value is given for site \"step\" (visit 0) of datum 1, but the guide does not "
                                      "visit it.");
        p.given_start = (const uint32_t[]){0, 0, 7, 7};
        run(e, &p);
        const rws_scores *s = rws__engine_scores(e);
        assert_true(s->log_q[s->start[1]] == 0 && s->log_given[s->start[1]] < 0);
        if (!scalar) assert_int_equal(s->start[2] - s->start[1], 1);
        rws_choice wrong[8];
        memcpy(wrong, all, sizeof wrong);
        wrong[0].value = &half_f;
        p.given = wrong;
        assert_int_equal(rws__engine_forward(e, &p, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text,
                            "The value given for site \"kind\" of datum 1 is 0.5, which is not a choice of 0 to 2.");
        rws__engine_free(e);
    }
}

static void bad_choices_are_named(void **unused)
{
    (void)unused;
    static const float good[] = {0, 1, 0}, half = 0.5f, three = 3, nan = NAN, minus = -1, bits[] = {0, 2, 0};
    const struct {
        rws_choice  choice;
        bool        all;
        const char *message;
    } cases[] = {
        {{"kind", 0, 1, &three}, false, "The value given for site \"kind\" is 3, which is not a choice of 0 to 2."},
        {{"kind", 0, 1, &half}, false, "The value given for site \"kind\" is 0.5, which is not a choice of 0 to 2."},
        {{"kind", 0, 1, &minus}, false, "The value given for site \"kind\" is -1, which"},
        {{"kind", 0, 1, &nan}, false, "The value given for site \"kind\" is "},
        {{"kind", 0, 3, good}, false, "Site \"kind\" has 1 number, but 3 are given."},
        {{"bits", 0, 3, bits}, false, "The value given for site \"bits\" is 2, which is not a choice of 0 to 1."},
        {{"more", 0, 1, &half}, false, "The value given for site \"more\" is 0.5, which is not a choice of 0 to 1."},
        {{"gumbel", 0, 3, (float[]){0, INFINITY, 0}}, false, "The value given for site \"gumbel\" is inf."},
        {{"kind", 0, 1, good}, true, "No value is given for site \"bits\"."},
        {{0}, true, "No value is given for site \"kind\"."},
    };
    rws_method  m = {.model = &every};
    rws_params  none = {0};
    rws_engine *e = rws__engine_new(&none, &field_x, 1, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int scalar = 0; scalar < 2; scalar++) {
            rws_pass  p = pass_of(&m, RWS_WAKE, scalar);
            rws_error err = {""};
            p.given = &cases[i].choice;
            p.n_given = cases[i].choice.site != NULL;
            p.given_all = cases[i].all;
            assert_int_equal(rws__engine_forward(e, &p, &err), RWS_BAD_INPUT);
            if (!strstr(err.text, cases[i].message)) fail_msg("\"%s\" instead of \"%s\"", err.text, cases[i].message);
        }
    rws_pass p = pass_of(&m, RWS_WAKE, false);
    run(e, &p); /* the engine is as good as new */
    p.proposal = &(rws_proposal){.how = RWS_GUMBEL};
    p.given = &cases[0].choice;
    p.n_given = 1;
    assert_int_equal(rws__engine_forward(e, &p, NULL), RWS_BAD_INPUT);
    rws__engine_free(e);
}

/* ---- particles of one datum that have parted draw different kinds of values under the same ordinal */

static void part(rws_path *path, const void *state)
{
    (void)state;
    const rws_var zero = rws_constant(path, 0);
    if (rws_flip(path, "side", zero)) rws_categorical(path, "z", rws_constants(path, (float[]){0, 0}, 2));
    else rws_normal(path, "y", zero, rws_constant(path, 1));
}

static void part_and_observe(rws_path *path, const void *state)
{
    part(path, state);
    rws_normal(path, "x", rws_constant(path, 0), rws_constant(path, 1));
}

/* The mean square of one particle's number is 1, whatever category the other particle draws. There are about 5000 pairs
 * for each category, so that 0.1 is five standard deviations: the test fails by chance once in a million. */
static void parted_particles_are_independent(void **unused)
{
    (void)unused;
    enum { DATA = 20000 };
    static const float     zeros[DATA];
    static const rws_model parted = {.guide = part, .model = part_and_observe};
    const float *const     fields[] = {zeros};
    rws_method             m = {.model = &parted};
    const rws_params       none = {0};
    rws_engine            *e = rws__engine_new(&none, &field_x, 1, NULL);
    rws_pass               p = pass_of(&m, RWS_WAKE, false);
    double                 squares[2] = {0}, n[2] = {0};
    p.n_data = DATA;
    p.n_particles = 2;
    p.fields = fields;
    p.choices = true;
    run(e, &p);
    const rws_scores *s = rws__engine_scores(e);
    for (int d = 0; d < DATA; d++) {
        list l = {.n = 0};
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            assert_int_equal(rws__engine_choices(e, (int)i, keep, &l), RWS_OK);
        const rws_choice *y = choice(&l, "y", 0), *z = choice(&l, "z", 0);
        if (!y || !z) continue;
        squares[(int)*z->value] += (double)(*y->value * *y->value);
        n[(int)*z->value]++;
    }
    for (int z = 0; z < 2; z++)
        if (n[z] < 4500 || !(fabs(squares[z] / n[z] - 1) < 0.1))
            fail_msg("mean square %g of %g numbers beside category %d", squares[z] / n[z], n[z], z);
    rws__engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wake_choices_score_as_drawn),
        cmocka_unit_test(sleep_choices_and_data),
        cmocka_unit_test(partly_given),
        cmocka_unit_test(data_have_choices_of_their_own),
        cmocka_unit_test(particles_elsewhere_are_impossible),
        cmocka_unit_test(a_choice_too_many_is_named),
        cmocka_unit_test(bad_choices_are_named),
        cmocka_unit_test(parted_particles_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
