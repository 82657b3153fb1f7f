/* test_optim.c - every optimiser against a sequence worked out by hand and against a plain twin in double, and the
 * schedule's language. */
#include "support.h"

#include "optim/optim.h"
#include "optim/schedule.h"

#include <string.h>

/* ---- plain twins: one element, in double, written from the formulas for DESCENT on the loss --------------------- */

typedef struct {
    double param, slot[2];
} element;

static void twin_sgd(const rws_optim_config *c, double lr, int t, double d, element *e)
{
    (void)c, (void)t;
    e->param -= lr * d;
}

static void twin_momentum(const rws_optim_config *c, double lr, int t, double d, element *e)
{
    (void)t;
    e->slot[0] = c->momentum * e->slot[0] + d;
    e->param -= lr * e->slot[0];
}

static void twin_adam(const rws_optim_config *c, double lr, int t, double d, element *e)
{
    e->slot[0] = c->beta1 * e->slot[0] + (1 - c->beta1) * d;
    e->slot[1] = c->beta2 * e->slot[1] + (1 - c->beta2) * d * d;
    const double mean = e->slot[0] / (1 - pow(c->beta1, t)), square = e->slot[1] / (1 - pow(c->beta2, t));
    e->param -= lr * mean / (sqrt(square) + c->eps);
}

static void twin_rmsprop(const rws_optim_config *c, double lr, int t, double d, element *e)
{
    (void)t;
    e->slot[0] = c->rho * e->slot[0] + (1 - c->rho) * d * d;
    e->slot[1] = c->momentum * e->slot[1] + lr * d / sqrt(e->slot[0] + c->eps);
    e->param -= e->slot[1];
}

/* What has to be known of each optimiser. The sequences start at param = 1 with lr = 0.1 and ascend along 1, -2, 0.5;
 * they were worked out in 40-digit decimals. odd_slot is the slot that changes sign with the gradient. */
static const struct {
    const char *name;
    void (*twin)(const rws_optim_config *c, double lr, int t, double loss_gradient, element *e);
    int    odd_slot;
    double after[3], slots[3][2];    /* l2 = 0 */
    double after_l2[3], slots_l2[2]; /* l2 = 0.5; slots after step 3 */
} known[] = {
    {"sgd", twin_sgd, -1, {1.1, 0.9, 0.95}, {{0}}, {1.05, 0.7975, 0.807625}, {0}},
    {"momentum",
     twin_momentum,
     0,
     {1.1, 0.99, 0.941},
     {{1, 0}, {-1.1, 0}, {-0.49, 0}},
     {1.05, 0.8425, 0.663625},
     {-1.78875, 0}},
    {"adam",
     twin_adam,
     0,
     {1.099999999, 1.06338964652792, 1.04972058032618},
     {{0.1, 0.001}, {-0.11, 0.004999}, {-0.049, 0.005244001}},
     {1.099999998, 1.03986215711552, 0.992886587248566},
     {-0.190993107765776, 0.00674589499279758}},
    {"rmsprop",
     twin_rmsprop,
     1,
     {1.099999999995, 1.01458839613584, 0.983456888035318},
     {{1, 0.099999999995}, {1.3, -0.0854116038591592}, {1.195, -0.0311315081005223}},
     {1.05198752448819, 0.890475830081486, 0.74987487263008},
     {1.32380789241556, -0.140600957451405}},
};
enum { N_KNOWN = sizeof known / sizeof *known };

static int find_known(const char *name)
{
    for (int k = 0; k < N_KNOWN; k++) {
        if (strcmp(known[k].name, name) == 0) return k;
    }
    fail_msg("no sequence and no twin for the optimiser %s", name);
    return -1;
}

/* Relative to the wanted number if that is above 1. */
static void assert_within(double got, double wanted, double tolerance)
{
    assert_near(got, wanted, tolerance * fmax(1.0, fabs(wanted)));
}

static void test_table(void **state)
{
    (void)state;
    int n = 0;
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++, n++) {
        assert_non_null((*o)->name);
        assert_non_null((*o)->help);
        assert_non_null((*o)->step);
        assert_in_range((*o)->n_slots, 0, 2);
        for (int s = 0; s < 2; s++) assert_int_equal((*o)->slot_names[s] != NULL, s < (*o)->n_slots);
        assert_ptr_equal(rws__optimiser_find((*o)->name), *o);
        rws_error err;
        assert_int_equal(rws__optim_config_check(&(*o)->defaults, &err), RWS_OK);
        find_known((*o)->name);
    }
    assert_int_equal(n, N_KNOWN);
    assert_null(rws__optimiser_find("adagrad"));
    assert_null(rws__optimiser_find(""));
    assert_float_equal(rws__optimiser_find("rmsprop")->slot_init[0], 1.0, 0.0);
    assert_float_equal(rws__optimiser_find("rmsprop")->defaults.eps, 1e-10, 0.0);
    assert_float_equal(rws__optimiser_find("adam")->defaults.eps, 1e-8, 0.0);
}

#define FIELD(name) offsetof(rws_optim_config, name)

static void test_config(void **state)
{
    (void)state;
    const rws_optim_config good = rws__optimiser_find("adam")->defaults;
    const struct {
        size_t      offset;
        double      value;
        const char *said; /* NULL: allowed */
    } cases[] = {
        {FIELD(beta1), 1.0, "beta1"},  {FIELD(beta1), -0.1, "beta1"},      {FIELD(beta1), 0.0, NULL},
        {FIELD(beta2), 1.5, "beta2"},  {FIELD(beta2), 0.99999, NULL},      {FIELD(beta2), NAN, "beta2"},
        {FIELD(rho), INFINITY, "rho"}, {FIELD(momentum), 1.0, "momentum"}, {FIELD(momentum), 0.0, NULL},
        {FIELD(eps), 0.0, "eps"},      {FIELD(eps), 1e-60, "eps"},         {FIELD(eps), NAN, "eps"},
        {FIELD(l2), -1e-5, "l2"},      {FIELD(l2), INFINITY, "l2"},        {FIELD(l2), 1e-5, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rws_optim_config c = good;
        memcpy((char *)&c + cases[i].offset, &cases[i].value, sizeof(double));
        rws_error err = {""};
        assert_int_equal(rws__optim_config_check(&c, &err), cases[i].said ? RWS_BAD_INPUT : RWS_OK);
        if (cases[i].said) assert_non_null(strstr(err.text, cases[i].said));
    }
}

/* Step 1 also shows the starting values: with s at 0 instead of 1, rmsprop's first step would be 0.316. */
static void test_hand_sequences(void **state)
{
    (void)state;
    const float ascent[3] = {1.0f, -2.0f, 0.5f};
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        const int k = find_known((*o)->name);
        for (int with_l2 = 0; with_l2 < 2; with_l2++) {
            rws_optim_config c = (*o)->defaults;
            c.l2 = with_l2 ? 0.5 : 0.0;
            float p = 1.0f, state0 = -7.0f, state1 = -7.0f, *const slot[2] = {&state0, &state1};
            rws__optimiser_reset(*o, 1, slot);
            for (int t = 1; t <= 3; t++) {
                (*o)->step(&c, 0.1f, (uint64_t)t, 1, &p, &ascent[t - 1], slot);
                assert_within(p, with_l2 ? known[k].after_l2[t - 1] : known[k].after[t - 1], 5e-7);
                for (int s = 0; s < (*o)->n_slots && (!with_l2 || t == 3); s++) {
                    assert_within(*slot[s], with_l2 ? known[k].slots_l2[s] : known[k].slots[t - 1][s], 5e-7);
                }
            }
            /* A slot the optimiser does not have is not touched. */
            for (int s = (*o)->n_slots; s < 2; s++) assert_float_equal(*slot[s], -7.0f, 0.0);
        }
    }
}

/* Uniform in [-1, 1), from a 64-bit linear congruence: enough to fill vectors. */
static float uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}

enum { N_RANDOM = 1037, N_STEPS = 40 };

/* The gradient of element i at a step: scales from 1e-6 to 1, and exact zeros. */
static float random_gradient(uint64_t *rng, int i)
{
    const float u = uniform(rng);
    return i % 11 == 0 ? 0.0f : u * powf(10.0f, (float)(i % 7 - 6));
}

/* Once with the defaults and once with an eps that is felt, which tells apart where it is added. */
static void test_against_twin(void **state)
{
    (void)state;
    static float   p[N_RANDOM], g[N_RANDOM], s0[N_RANDOM], s1[N_RANDOM];
    static element twin[N_RANDOM];
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        const int k = find_known((*o)->name);
        for (int large_eps = 0; large_eps < 2; large_eps++) {
            uint64_t         rng = 1;
            rws_optim_config c = (*o)->defaults;
            c.l2 = 1e-3;
            if (large_eps) c.eps = 0.1;
            float *const slot[2] = {s0, s1};
            rws__optimiser_reset(*o, N_RANDOM, slot);
            for (int i = 0; i < N_RANDOM; i++) {
                p[i] = uniform(&rng);
                twin[i] = (element){p[i], {(*o)->slot_init[0], (*o)->slot_init[1]}};
            }
            for (int t = 1; t <= N_STEPS; t++) {
                const float lr = t < 20 ? 1e-3f : 1e-3f / 3;
                for (int i = 0; i < N_RANDOM; i++) g[i] = random_gradient(&rng, i);
                (*o)->step(&c, lr, (uint64_t)t, N_RANDOM, p, g, slot);
                for (int i = 0; i < N_RANDOM; i++) {
                    known[k].twin(&c, lr, t, -(double)g[i] + c.l2 * twin[i].param, &twin[i]);
                }
            }
            for (int i = 0; i < N_RANDOM; i++) {
                assert_within(p[i], twin[i].param, N_STEPS * 0x1p-23); /* an ulp of 1 in each step */
                for (int s = 0; s < (*o)->n_slots; s++) {
                    const double sign = s == known[k].odd_slot ? -1.0 : 1.0;
                    assert_within(slot[s][i], sign * twin[i].slot[s], N_STEPS * 0x1p-23);
                }
            }
        }
    }
}

/* The bits do not depend on where a vector is cut or how it is aligned: ranges are stepped by different threads. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    static float whole[3][N_RANDOM], parts[3][N_RANDOM + 1], g[N_RANDOM];
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        uint64_t         rng = 2;
        rws_optim_config c = (*o)->defaults;
        c.l2 = 1e-3;
        for (int i = 0; i < N_RANDOM; i++) whole[0][i] = parts[0][i + 1] = uniform(&rng);
        float *const whole_slot[2] = {whole[1], whole[2]}, *const parts_slot[2] = {parts[1] + 1, parts[2] + 1};
        memset(whole[1], 0, sizeof whole[1]);
        memset(whole[2], 0, sizeof whole[2]);
        memset(parts[1], 0, sizeof parts[1]);
        memset(parts[2], 0, sizeof parts[2]);
        rws__optimiser_reset(*o, N_RANDOM, whole_slot);
        rws__optimiser_reset(*o, N_RANDOM, parts_slot);
        for (int t = 1; t <= N_STEPS; t++) {
            for (int i = 0; i < N_RANDOM; i++) g[i] = random_gradient(&rng, i);
            (*o)->step(&c, 1e-2f, (uint64_t)t, N_RANDOM, whole[0], g, whole_slot);
            for (size_t from = 0, n; from < N_RANDOM; from += n) {
                n = 1 + (size_t)(rng >> 20) % 40;
                uniform(&rng);
                if (n > N_RANDOM - from) n = N_RANDOM - from;
                float *const range[2] = {parts[1] + 1 + from, parts[2] + 1 + from};
                (*o)->step(&c, 1e-2f, (uint64_t)t, n, parts[0] + 1 + from, g + from, range);
            }
        }
        for (int v = 0; v < 3; v++) assert_memory_equal(whole[v], parts[v] + 1, sizeof whole[v]);
    }
}

static void test_no_elements(void **state)
{
    (void)state;
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        float p = 1.0f, g = 1.0f, s0 = 2.0f, s1 = 3.0f, *const slot[2] = {&s0, &s1};
        rws__optimiser_reset(*o, 0, slot);
        (*o)->step(&(*o)->defaults, 0.1f, 1, 0, &p, &g, slot);
        assert_float_equal(p, 1.0f, 0.0);
        assert_float_equal(s0, 2.0f, 0.0);
        assert_float_equal(s1, 3.0f, 0.0);
    }
}

/* At the rate 0 no bit of a parameter changes, with any state and with l2; afterwards it moves again. */
static void test_frozen(void **state)
{
    (void)state;
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        const float start[] = {1.0f, -0.0f, 0.0f, -3.5f, FLT_MIN / 4, 1e30f};
        enum { N = sizeof start / sizeof *start };
        float p[N], s0[N], s1[N], *const slot[2] = {s0, s1};
        const float      g[N] = {1.0f, -1.0f, 0.0f, 5.0f, -2.0f, 1e5f};
        rws_optim_config c = (*o)->defaults;
        c.l2 = 0.1;
        memcpy(p, start, sizeof p);
        rws__optimiser_reset(*o, N, slot);
        for (uint64_t t = 1; t <= 5; t++) (*o)->step(&c, 0.0f, t, N, p, g, slot);
        assert_memory_equal(p, start, sizeof p);
        (*o)->step(&c, 0.1f, 6, N, p, g, slot);
        float moved[N];
        memcpy(moved, p, sizeof p);
        assert_true(moved[0] > start[0]);
        for (uint64_t t = 7; t <= 9; t++) (*o)->step(&c, 0.0f, t, N, p, g, slot);
        assert_memory_equal(p, moved, sizeof p);
    }
}

/* A parameter whose gradient is 0 from the second step on comes to rest, with its state at exactly 0 and not at a
 * subnormal number; a NaN is not flushed away. */
static void test_rest_and_nan(void **state)
{
    (void)state;
    for (const rws_optimiser *const *o = rws_optimisers; *o; o++) {
        float p = 1.0f, g = 1.0f, s0 = 0, s1 = 0, *const slot[2] = {&s0, &s1};
        rws__optimiser_reset(*o, 1, slot);
        rws_optim_config c = (*o)->defaults;
        c.beta2 = 0.9;
        for (int t = 1; t <= 3000; t++, g = 0.0f) (*o)->step(&c, 1e-3f, (uint64_t)t, 1, &p, &g, slot);
        assert_true(isfinite(p));
        for (int s = 0; s < (*o)->n_slots; s++) assert_float_equal(*slot[s], 0.0f, 0.0);
        const float before = p;
        (*o)->step(&c, 1e-3f, 3001, 1, &p, &g, slot);
        assert_float_equal(p, before, 0.0);

        g = NAN;
        (*o)->step(&c, 1e-3f, 3002, 1, &p, &g, slot);
        assert_true(isnan(p));
        for (int s = 0; s < (*o)->n_slots; s++) assert_true(isnan(*slot[s]));
    }
}

/* beta1 = 0 has log(beta1) = -inf on the way; the correction must still be 1. And t beyond float's integers. */
static void test_adam_edges(void **state)
{
    (void)state;
    const rws_optimiser *adam = rws__optimiser_find("adam");
    rws_optim_config     c = adam->defaults;
    c.beta1 = 0.0;
    float p = 0.0f, g = 3.0f, m = 0, v = 0, *const slot[2] = {&m, &v};
    adam->step(&c, 0.5f, 1, 1, &p, &g, slot);
    assert_within(p, 0.5, 1e-6);

    c = adam->defaults;
    p = 0.0f, m = 1.0f, v = 4.0f, g = 0.0f;
    adam->step(&c, 1.0f, (uint64_t)1 << 40, 1, &p, &g, slot);
    assert_within(p, 0.9 / sqrt(0.999 * 4.0), 1e-6);
}

/* ---- schedule --------------------------------------------------------------------------------------------------- */

static void test_schedule_values(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t    iteration;
        double      rate;
        rws_group   group;
    } cases[] = {
        {"1e-3", 0, 1e-3},
        {"1e-3", UINT64_MAX, 1e-3},
        {"0.5", 7, 0.5},
        {".5", 7, 0.5},
        {"0", 7, 0.0},
        {"1e-5,400000:/3,1000000:/3", 0, 1e-5},
        {"1e-5,400000:/3,1000000:/3", 399999, 1e-5},
        {"1e-5,400000:/3,1000000:/3", 400000, 1e-5 / 3},
        {"1e-5,400000:/3,1000000:/3", 999999, 1e-5 / 3},
        {"1e-5,400000:/3,1000000:/3", 1000000, 1e-5 / 9},
        {"1e-5,400000:/3,1000000:/3", UINT64_MAX, 1e-5 / 9},
        {" 1e-5 , 400000:/3 ,  1000000:/3 ", 400000, 1e-5 / 3},
        {"1e-3,10:*0.5,20:*0.5", 20, 2.5e-4},
        {"1e-3,10:2e-4", 9, 1e-3},
        {"1e-3,10:2e-4", 10, 2e-4},
        {"1e-3,0:2e-4", 0, 2e-4},
        {"0,0-1000:1e-3", 0, 0.0},
        {"0,0-1000:1e-3", 250, 2.5e-4},
        {"0,0-1000:1e-3", 1000, 1e-3},
        {"0,0-1000:1e-3", 5000, 1e-3},
        {"1e-3,2000-9000:/10", 2000, 1e-3},
        {"1e-3,2000-9000:/10", 5500, 5.5e-4},
        {"1e-3,2000-9000:/10", 9000, 1e-4},
        {"1,10-20:0", 15, 0.5},
        {"1,10-20:0", 20, 0.0},
        {"0,0-10:1,10-20:0", 10, 1.0},
        {"0,0-10:1,10-20:0", 15, 0.5},
        {"0,0-10:1,10:/4", 9, 0.9},
        {"0,0-10:1,10:/4", 10, 0.25},
        {"1,10:/2,10-20:0", 15, 0.25},
        {"1,18446744073709551615:/2", UINT64_MAX - 1, 1.0},
        {"1,18446744073709551615:/2", UINT64_MAX, 0.5},
        {"1e-3,10:/2", 10, 5e-4, RWS_BASELINE},
        {"theta=0,phi=1e-3", 0, 0, RWS_THETA},
        {"theta=0,phi=1e-3", 0, 1e-3, RWS_PHI},
        {"theta=0,phi=1e-3", 0, 1e-3, RWS_CONTROL},
        {"theta=0,phi=1e-3", 0, 1e-3, RWS_BASELINE},
        {"phi=1e-3,theta=0", 0, 0, RWS_THETA},
        {"theta=1e-3,5000:/4,phi=1e-4", 4999, 1e-3, RWS_THETA},
        {"theta=1e-3,5000:/4,phi=1e-4", 5000, 2.5e-4, RWS_THETA},
        {"theta=1e-3,5000:/4,phi=1e-4", 5000, 1e-4, RWS_PHI},
        {" theta=1e-3 , 5:/4 , phi=1e-4 ,6:/2", 6, 2.5e-4, RWS_THETA},
        {" theta=1e-3 , 5:/4 , phi=1e-4 ,6:/2", 6, 5e-5, RWS_PHI},
        {"1e-3,100:/2,phi=1e-4", 100, 5e-4, RWS_THETA},
        {"1e-3,100:/2,phi=1e-4", 100, 1e-4, RWS_PHI},
        {"1e-3,100:/2,phi=1e-4", 100, 1e-4, RWS_CONTROL},
        {"1e-3,control=1,baseline=2", 100, 1e-3, RWS_PHI},
        {"1e-3,control=1,baseline=2", 100, 1, RWS_CONTROL},
        {"1e-3,control=1,baseline=2", 100, 2, RWS_BASELINE},
        {"1e-3,theta=0,5:1", 5, 1e-3, RWS_BASELINE},
        {"1e-3,theta=0,5:1", 4, 0, RWS_THETA},
        {"1e-3,theta=0,5:1", 5, 1, RWS_THETA},
        {"theta=1", 5, 0, RWS_PHI}, /* which rws__schedule_cover refuses if phi has parameters */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rws_schedule s;
        rws_error    err = {""};
        if (rws__schedule_parse(cases[i].text, &s, &err) != RWS_OK) fail_msg("%s", err.text);
        const float got = rws__schedule_at(&s, cases[i].group, cases[i].iteration), wanted = (float)cases[i].rate;
        if (!(fabsf(got - wanted) <= 1e-7f * wanted)) {
            fail_msg("\"%s\" at %llu: got %.9g, wanted %.9g", cases[i].text, (unsigned long long)cases[i].iteration,
                     (double)got, (double)wanted);
        }
    }
}

static void test_schedule_cover(void **state)
{
    (void)state;
    enum { THETA = 1 << RWS_THETA, PHI = 1 << RWS_PHI, CONTROL = 1 << RWS_CONTROL, ALL = (1 << RWS_GROUPS) - 1 };
    static const struct {
        const char *text;
        unsigned    groups;
        const char *said; /* NULL: all of the groups have rates */
    } cases[] = {
        {"1e-3", ALL, NULL},
        {"theta=1,phi=1", ALL, NULL},
        {"phi=1", PHI | CONTROL, NULL},
        {"phi=1", THETA | PHI, "theta=RATE"},
        {"theta=1", THETA, NULL},
        {"theta=1", THETA | PHI, "phi=RATE"},
        {"theta=1,control=1", ALL, "phi=RATE"},
        {"1,theta=1", ALL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rws_schedule s;
        rws_error    err = {""};
        assert_int_equal(rws__schedule_parse(cases[i].text, &s, &err), RWS_OK);
        assert_int_equal(rws__schedule_cover(&s, cases[i].groups, cases[i].text, &err),
                         cases[i].said ? RWS_BAD_INPUT : RWS_OK);
        if (cases[i].said && !strstr(err.text, cases[i].said)) fail_msg("\"%s\": %s", cases[i].text, err.text);
    }
}

static void test_schedules_agree(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        uint64_t    first_difference; /* so many steps they have in common */
    } cases[] = {
        {"1e-3", "0.001", UINT64_MAX},
        {"1e-3", "1e-4", 0},
        {"1e-3", "1e-3,100:1e-4", 100},
        {"1e-3,100:/10,200:/10", "1e-3,100:1e-4,150:0", 150},
        {"0,0-1000:1", "0,0-1000:1,1000:2", 1000},
        {"0,0-1000:1", "0,0-900:0.9,950:2", 901},
        {"1,10-20:2", "1,10-21:2", 11},
        {"1,10-20:2,20-30:1", "1,10-20:2,25-30:1", 21},
        {"1e-3", "theta=1e-3,phi=1e-3", UINT64_MAX},
        {"1e-3", "1e-3,phi=1e-3,7:0", 7},
        {"1e-3", "1e-3,phi=1e-3,7:0,control=1e-3", 7},
        {"phi=1e-3", "theta=5,phi=1e-3", UINT64_MAX}, /* theta has no parameters, or the first would be refused */
        {"theta=0,phi=1", "theta=0,30:1,phi=1", 30},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rws_schedule a, b;
        rws_error    err;
        assert_int_equal(rws__schedule_parse(cases[i].a, &a, &err), RWS_OK);
        assert_int_equal(rws__schedule_parse(cases[i].b, &b, &err), RWS_OK);
        const uint64_t n = cases[i].first_difference;
        assert_true(rws__schedule_agree(&a, &b, n) && rws__schedule_agree(&b, &a, n));
        if (n == UINT64_MAX) continue;
        for (uint64_t more = n + 1; more < n + 50; more++) assert_false(rws__schedule_agree(&a, &b, more));
        assert_false(rws__schedule_agree(&b, &a, UINT64_MAX));
    }
}

static void test_schedule_refusals(void **state)
{
    (void)state;
    const struct {
        const char *text, *said;
    } cases[] = {
        {"", "begin with a rate"},
        {"fast", "begin with a rate"},
        {"-1e-3", "begin with a rate"},
        {"inf", "begin with a rate"},
        {"nan", "begin with a rate"},
        {"1e39", "begin with a rate"},
        {"0x10", "begin with a rate"},
        {".", "begin with a rate"},
        {"1e-3x", "from \"x\" on"},
        {"1e-3;10:/3", "from \";10:/3\" on"},
        {"1e-3,", "an iteration at \"\""},
        {"1e-3,,10:/3", "an iteration"},
        {"1e-3,-5:/3", "an iteration"},
        {"1e-3,18446744073709551616:/3", "an iteration"},
        {"1e-3,10", "a colon"},
        {"1e-3,1e5x:/3", "a colon"},
        {"1e-3,10:", "after the colon"},
        {"1e-3,10:/", "after the colon"},
        {"1e-3,10:/-3", "after the colon"},
        {"1e-3,10:nan", "after the colon"},
        {"1e-3,10:/0", "factor of 0"},
        {"1e-3,10:*0", "factor of 0"},
        {"1e30,10:*1e30", "beyond all bounds"},
        {"1e30,10:/1e-30", "beyond all bounds"},
        {"1e-3,10-:/3", "a second iteration"},
        {"1e-3,10-10:/3", "ends before"},
        {"1e-3,10-5:/3", "ends before"},
        {"1e-3,10:/3,10:/3", "out of order"},
        {"1e-3,10:/3,9:/3", "out of order"},
        {"1e-3,10-20:0,15:/3", "out of order"},
        {"1e-3,10-20:0,15-30:1", "out of order"},
        {"1,1:/2,2:/2,3:/2,4:/2,5:/2,6:/2,7:/2,8:/2,9:/2,10:/2,11:/2,12:/2,13:/2,14:/2,15:/2,16:/2,17:/2",
         "more than 16"},
        {"theta=", "a rate such as 1e-3 at \"\""},
        {"theta=0,", "an iteration at \"\""},
        {"theta=0,phi", "an iteration at \"phi\""},
        {"theta=0,phi=x", "a rate such as 1e-3 at \"x\""},
        {"theta=0 phi=1", "from \"phi=1\" on"},
        {"theta=0,theta=1", "names the group theta twice"},
        {"the=0", "names a group \"the\""},
        {"thetas=0", "names a group \"thetas\""},
        {"1e-3,rho=1", "names a group \"rho\""},
        {"phi=1,10:/3,9:/3", "out of order"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rws_schedule s = {.rates[RWS_PHI].start = 42.0};
        rws_error    err = {""};
        assert_int_equal(rws__schedule_parse(cases[i].text, &s, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, cases[i].said)) fail_msg("\"%s\": %s", cases[i].text, err.text);
        assert_float_equal(s.rates[RWS_PHI].start, 42.0, 0.0);
        assert_int_equal(rws__schedule_parse(cases[i].text, &s, NULL), RWS_BAD_INPUT);
    }
    /* A text of any length still leaves a message. */
    char *big = malloc(10001);
    memset(big, '7', 10000);
    big[10000] = '\0';
    rws_schedule s;
    rws_error    err = {""};
    assert_int_equal(rws__schedule_parse(big, &s, &err), RWS_BAD_INPUT);
    assert_int_equal(err.text[strlen(err.text) - 1], '.');
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_hand_sequences),
        cmocka_unit_test(test_against_twin),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_no_elements),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_rest_and_nan),
        cmocka_unit_test(test_adam_edges),
        cmocka_unit_test(test_schedule_values),
        cmocka_unit_test(test_schedule_cover),
        cmocka_unit_test(test_schedules_agree),
        cmocka_unit_test(test_schedule_refusals),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
