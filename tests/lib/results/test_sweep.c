/* test_sweep.c - sweep files: which runs they stand for, and what is refused with which line. */
#include "support.h"

#include "results/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rws_sweep *parse(const char *text)
{
    rws_sweep *s;
    rws_error  err = {""};
    if (rws_sweep_parse(text, strlen(text), "test.sweep", &s, &err) != RWS_OK) fail_msg("%s", err.text);
    return s;
}

static void refuse_bytes(const char *text, size_t length, const char *words)
{
    rws_sweep *s = (rws_sweep *)1;
    rws_error  err = {""};
    if (rws_sweep_parse(text, length, "test.sweep", &s, &err) != RWS_BAD_INPUT) fail_msg("accepted: %s", text);
    assert_null(s);
    const size_t n = strlen(err.text);
    if (n == 0 || !strchr(".?", err.text[n - 1]) || !strstr(err.text, "\"test.sweep\""))
        fail_msg("not a sentence: %s", err.text);
    if (!strstr(err.text, words)) fail_msg("\"%s\" is not in: %s", words, err.text);
}

static void refuse(const char *text, const char *words)
{
    refuse_bytes(text, strlen(text), words);
}

static const rws_sweep_run *find(const rws_sweep *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->runs[i].name, name) == 0) return &s->runs[i];
    fail_msg("There is no run %s.", name);
    return NULL;
}

static void all_combinations(void **state)
{
    (void)state;
    rws_sweep *s =
        parse("# far start\n"
              "model gmm\r\n"
              "methods ws ww # two of them\n"
              "\n"
              "\tparticles 2 20\n"
              "seeds 1-3 7\n"
              "set start far\n"
              "iterations 500\n"
              "eval-every 50\n"
              "batch 10\neval-data 20\neval-particles 30\nshards 2\noptimiser sgd\nlr 1e-3,5:/3\nl2 0.5\nfinal 100 50");
    assert_int_equal(s->n, 2 * 2 * 4);
    /* seed by seed, many particles first, methods as written */
    assert_string_equal(s->runs[0].name, "gmm-start=far-ws-k20-s1");
    assert_string_equal(s->runs[1].name, "gmm-start=far-ww-k20-s1");
    assert_string_equal(s->runs[2].name, "gmm-start=far-ws-k2-s1");
    assert_string_equal(s->runs[4].name, "gmm-start=far-ws-k20-s2");
    const rws_sweep_run *r = find(s, "gmm-start=far-ww-k2-s7");
    assert_string_equal(r->config.model, "gmm");
    assert_string_equal(r->config.method, "ww");
    assert_int_equal(r->config.particles, 2);
    assert_int_equal(r->config.seed, 7);
    assert_int_equal(r->config.iterations, 500);
    assert_int_equal(r->config.eval_every, 50);
    assert_int_equal(r->config.batch, 10);
    assert_int_equal(r->config.n_test, 20);
    assert_int_equal(r->config.eval_particles, 30);
    assert_int_equal(r->config.shards, 2);
    assert_int_equal(r->config.threads, 1);
    assert_string_equal(r->config.optimiser, "sgd");
    assert_string_equal(r->config.lr, "1e-3,5:/3");
    assert_true(r->config.l2 == 0.5);
    assert_int_equal(r->config.n_set, 1);
    assert_string_equal(r->config.set[0], "start=far");
    assert_int_equal(r->final_particles, 100);
    assert_int_equal(r->final_test, 50);
    rws_sweep_free(s);
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    rws_sweep *s = parse("\xef\xbb\xbfmodel gmm\r\nmethods ww\r\nparticles 2\r\n");
    assert_int_equal(s->n, 1);
    assert_string_equal(s->runs[0].config.model, "gmm");
    rws_sweep_free(s);
}

static void means_have_standard_errors(void **state)
{
    (void)state;
    double              values[] = {1, NAN, 2, 6}, one[] = {7};
    const rws_quartiles q = rws__means_of(values, 4), alone = rws__means_of(one, 1);
    assert_true(q.n == 3 && fabs(q.median - 3) < 1e-12);
    assert_true(fabs(q.high - q.median - sqrt(7.0 / 3)) < 1e-12 && fabs(q.median - q.low - sqrt(7.0 / 3)) < 1e-12);
    assert_true(alone.median == 7 && alone.low == 7 && alone.high == 7);
    assert_true(isnan(rws__means_of(values, 0).median));
}

/* Every key may have several values, which are then a part of the names. */
static void every_key_may_vary(void **state)
{
    (void)state;
    rws_sweep *s = parse("model gmm\nmethods ww\nparticles 2\nlr 1e-3 theta=0,phi=1e-2\nbatch 1e2\noptimiser adam sgd\n"
                         "iterations 10k 20k\n");
    assert_int_equal(s->n, 8);
    const rws_sweep_run *r = find(s, "gmm-lr=1e-3-optimiser=sgd-iterations=20k-ww-k2-s1");
    assert_string_equal(r->config.lr, "1e-3");
    assert_string_equal(r->config.optimiser, "sgd");
    assert_true(r->config.iterations == 20000 && r->config.batch == 100);
    find(s, "gmm-lr=theta=0_phi=1e-2-optimiser=adam-iterations=10k-ww-k2-s1");
    rws_sweep_free(s);
}

static void settings_of_a_method(void **state)
{
    (void)state;
    rws_sweep *s = parse("model gmm\nmethods ww dww\nparticles 2\nset dww.delta 0.1 0.2\nset start far near\n"
                         "model ./my/own.so\nmethods vimco\nparticles 3\nset vimco.vimco_no_logK 1\nset file a/b\n");
    assert_int_equal(s->n, 2 + 4 + 1);
    const rws_sweep_run *r = find(s, "gmm-start=near-dww-delta=0.1-k2-s1");
    assert_int_equal(r->config.n_set, 2);
    assert_string_equal(r->config.set[0], "start=near");
    assert_string_equal(r->config.set[1], "delta=0.1");
    assert_int_equal(find(s, "gmm-start=far-ww-k2-s1")->config.n_set, 1);
    r = find(s, "own-file=a_b-vimco-vimco_no_logK=1-k3-s1");
    assert_string_equal(r->config.model, "./my/own.so");
    assert_string_equal(r->config.set[0], "file=a/b");
    assert_int_equal(r->config.iterations, 0);
    rws_sweep_free(s);

    /* the dot of site.NAME, a setting that any run may have, does not end the name of a method */
    s = parse("model gmm\nmethods ww\nparticles 2\nset site.z score reparameterised\n");
    assert_int_equal(s->n, 2);
    assert_string_equal(find(s, "gmm-site.z=score-ww-k2-s1")->config.set[0], "site.z=score");
    rws_sweep_free(s);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    refuse("", "names no model");
    refuse("# nothing\n", "names no model");
    refuse("methods ww\n", "line 1");
    refuse("model\n", "one name");
    refuse("model gmm pcfg\n", "one name");
    refuse("model gmm\nparticles 2\n", "methods");
    refuse("model gmm\nmethods ww\n", "particles");
    refuse("model gmm\n\nmethods nonsense\n", "line 3: there is no method \"nonsense\"");
    refuse("model gmm\nmethods ww\nmethods ws\n", "given already");
    refuse("model gmm\nmethods ww\nparticles 0\n", "\"0\"");
    refuse("model gmm\nmethods ww\nparticles -1\n", "\"-1\"");
    refuse("model gmm\nmethods ww\nparticles 2.5\n", "\"2.5\"");
    refuse("model gmm\nmethods ww\nparticles\n", "needs a value");
    refuse("model gmm\nmethods ww\nparticles 2\nseeds 3-1\n", "\"3-1\"");
    refuse("model gmm\nmethods ww\nparticles 2\nseeds 1-\n", "\"1-\"");
    refuse("model gmm\nmethods ww\nparticles 2\nseeds 0-18446744073709551615\n", "seeds");
    refuse("model gmm\nmethods ww\nparticles 2\nseeds 18446744073709551616\n", "seeds");
    refuse("model gmm\nmethods ww\nparticles 2\niterations 1.5\n", "\"1.5\"");
    refuse("model gmm\nmethods ww\nparticles 2\nl2 nan\n", "\"nan\"");
    refuse("model gmm\nmethods ww\nparticles 2\nl2 1 -2\n", "l2 is a number");
    refuse("model gmm\nmethods ww\nparticles 2\nnonsense 1\n", "\"nonsense\"");
    refuse("model gmm\nmethods ww\nparticles 2\nset start\n", "set needs");
    refuse("model gmm\nmethods ww\nparticles 2\nset start=far 1\n", "blanks between");
    refuse("model gmm\nmethods ww\nparticles 2\nset start far\nset start near\n", "set already");
    refuse("model gmm\nmethods ww\nparticles 2\nset dww.delta 0.1\n", "not among the methods");
    refuse("model gmm\nmethods ww\nparticles 2\nset nonsense.delta 0.1\n", "\"nonsense\"");
    refuse("model gmm\nmethods ww\nparticles 2\nfinal 1 2 3\n", "final");
    refuse("model gmm\nmethods ww ww\nparticles 2\n", "gmm-ww-k2-s1");
    refuse("model gmm\nmethods ww\nparticles 2\nset a x/y x_y\n", "x_y");
    refuse("model gmm\nmethods ww\nparticles 2\nseeds 1-20001\n", "20000");
    refuse("model gmm\nmethods ww ws\nparticles 2\nseeds 1-10001\n", "20000");
    refuse("model gmm\nmethods w\001w\n", "control");
    refuse_bytes("model g\0m\n", 10, "control");
    char *long_one = malloc(RWS_MAX_SWEEP_BYTES + 2);
    memset(long_one, '\n', RWS_MAX_SWEEP_BYTES + 1);
    refuse_bytes(long_one, RWS_MAX_SWEEP_BYTES + 1, "longer");
    for (int i = 0; i + 2 < RWS_MAX_SWEEP_BYTES; i += 2) memcpy(long_one + i, "a ", 2);
    refuse_bytes(long_one, RWS_MAX_SWEEP_BYTES, "words");
    free(long_one);
}

static void a_missing_file_is_refused(void **state)
{
    (void)state;
    rws_sweep *s;
    rws_error  err = {""};
    assert_int_equal(rws_sweep_read("/nowhere/at.all", &s, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "/nowhere/at.all"));
    assert_int_equal(rws_sweep_read("/", &s, &err), RWS_BAD_INPUT);
}

static void settling_asks_the_model(void **state)
{
    (void)state;
    rws_error  err = {""};
    rws_sweep *s = parse("model gmm\nmethods ww\nparticles 2\nseeds 1-2\n"
                         "model gmm\nmethods ws\nparticles 2\niterations 7\n");
    assert_int_equal(rws_sweep_check(s, true, &err), RWS_OK);
    assert_int_equal(find(s, "gmm-ww-k2-s2")->config.iterations, 100000);
    assert_int_equal(find(s, "gmm-ws-k2-s1")->config.iterations, 7);
    rws_sweep_free(s);
    const char *const wrong[] = {"model nonsense\nmethods ww\nparticles 2\n",
                                 "model gmm\nmethods vimco\nparticles 2 1\n",
                                 "model gmm\nmethods ww\nparticles 2\nset nonsense 1\n",
                                 "model gmm\nmethods ww\nparticles 2\nset start there\n",
                                 "model gmm\nmethods ww\nparticles 2\nlr 1e-3\n"
                                 "model gmm\nmethods ww\nparticles 2\nseeds 2\nlr nonsense\n",
                                 "model gmm\nmethods ww\nparticles 2\noptimiser sgd\n"
                                 "model gmm\nmethods ww\nparticles 2\nseeds 2\noptimiser nonsense\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s = parse(wrong[i]);
        err.text[0] = '\0';
        assert_int_equal(rws_sweep_check(s, true, &err), RWS_BAD_INPUT);
        assert_true(strlen(err.text) > 10);
        rws_sweep_free(s);
    }
}

/* The first run of two blocks, of which the second has the lines besides. */
static bool is_alike(const char *lines)
{
    char text[512];
    snprintf(text, sizeof text,
             "model gmm\nmethods ww\nparticles 2\niterations 9\nmodel gmm\nmethods ww\nparticles 2\nseeds 2\n%s",
             lines);
    rws_sweep *s = parse(text);
    char      *one = rws_sweep_kind(&s->runs[0]), *two = rws_sweep_kind(&s->runs[1]);
    const bool alike = strcmp(one, two) == 0;
    free(one);
    free(two);
    rws_sweep_free(s);
    return alike;
}

static void kinds_of_runs(void **state)
{
    (void)state;
    static const char *const others[] = {"iterations 8\n", "lr 1\n",     "eval-every 3\n",  "optimiser sgd\n",
                                         "l2 1\n",         "shards 2\n", "batch 7\n",       "particle-shards 2\n",
                                         "eval-data 7\n",  "final 7\n",  "set start far\n", "eval-particles 7\n"};
    assert_true(is_alike("iterations 9\n"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char lines[64];
        snprintf(lines, sizeof lines, "%s%s", i ? "iterations 9\n" : "", others[i]);
        assert_false(is_alike(lines));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_combinations),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(every_key_may_vary),
        cmocka_unit_test(means_have_standard_errors),
        cmocka_unit_test(settings_of_a_method),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_missing_file_is_refused),
        cmocka_unit_test(settling_asks_the_model),
        cmocka_unit_test(kinds_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
