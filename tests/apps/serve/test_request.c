/* test_request.c - the parts of rws serve that need no socket: text as JSON, thinned curves, paths, hosts, tokens, news. */
#include "base/buffer.h"
#include "serve/changes.h"
#include "serve/request.h"
#include "serve/downsample.h"

#include "support.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text */

/* Whatever the bytes, the buffer has a JSON document that jansson, which is strict about UTF-8, reads. */
static void test_any_bytes_are_json(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        char text[16] = "";
        for (int k = 0; k < 12; k++) {
            random = random * 1664525 + 1013904223;
            text[k] = (char)(random >> (k % 2 ? 24 : 16) | 0x40 * (k % 3 == 0));
            if (!text[k]) text[k] = '"';
        }
        rws_buffer b = {0};
        rws__buffer_open(&b, '{');
        rws__buffer_key(&b, text);
        rws__buffer_text(&b, text);
        rws__buffer_close(&b, '}');
        json_t *document = json_loadb(b.bytes, b.n, 0, NULL);
        assert_non_null(document);
        assert_null(strchr(b.bytes, '<'));
        json_decref(document);
        rws__buffer_release(&b);
    }
}

static void test_numbers_and_commas(void **state)
{
    (void)state;
    static const struct {
        double      value;
        const char *text;
    } numbers[] = {{0, "0"},           {-3, "-3"},          {123456789012, "123456789012"},
                   {0.1, "0.1"},       {1e300, "1e+300"},   {NAN, "null"},
                   {INFINITY, "null"}, {-INFINITY, "null"}, {-0.25, "-0.25"},
                   {1e15, "1e+15"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        rws_buffer b = {0};
        rws__buffer_number(&b, numbers[i].value);
        assert_string_equal(b.bytes, numbers[i].text);
        rws__buffer_release(&b);
    }
    rws_buffer b = {0};
    rws__buffer_open(&b, '[');
    rws__buffer_numbers(&b, (const double[]){1, 2}, 2);
    rws__buffer_open(&b, '{');
    rws__buffer_key(&b, "a");
    rws__buffer_text(&b, NULL);
    rws__buffer_key(&b, "b");
    rws__buffer_true(&b, true);
    rws__buffer_close(&b, '}');
    rws__buffer_value(&b, "1e-3");
    rws__buffer_value(&b, "0x10");
    rws__buffer_value(&b, "1e-5,10:/3");
    rws__buffer_value(&b, "18446744073709551615");
    rws__buffer_value(&b, "-9007199254740993");
    rws__buffer_value(&b, "007");
    rws__buffer_value(&b, "-0");
    rws__buffer_close(&b, ']');
    assert_string_equal(b.bytes, "[[1,2],{\"a\":null,\"b\":true},0.001,\"0x10\",\"1e-5,10:/3\","
                                 "18446744073709551615,-9007199254740993,7,-0]");
    rws__buffer_release(&b);
}

/* ---- curves */

static void test_thin_keeps_what_stands_out(void **state)
{
    (void)state;
    enum { N = 10000, MOST = 50 };
    double *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    int     keep[MOST];
    for (int i = 0; i < N; i++) x[i] = i, y[i] = sin(i * 1e-3);
    y[0] = y[1] = y[N - 1] = NAN;
    y[3333] = 9;
    y[7777] = -9;
    const int n = rws__downsample(x, y, N, MOST, keep);
    bool      peak = false, hole = false;
    assert_int_equal(n, MOST);
    assert_int_equal(keep[0], 2);
    assert_int_equal(keep[n - 1], N - 2);
    for (int i = 0; i < n; i++) {
        assert_true(isfinite(y[keep[i]]) && (i == 0 || keep[i] > keep[i - 1]));
        peak |= keep[i] == 3333;
        hole |= keep[i] == 7777;
    }
    assert_true(peak && hole);
    for (int few = 0; few <= 5; few++) {
        assert_int_equal(rws__downsample(x, y, few, MOST, keep), few);
        for (int i = 0; i < few; i++) assert_int_equal(keep[i], i);
    }
    for (int most = 3; most < 20; most++)
        for (int many = 1; many < 60; many++) assert_true(rws__downsample(x, y, many, most, keep) <= most);
    free(x);
    free(y);
}

/* ---- paths, hosts, tokens */

static void test_paths(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "a",
                                      "//",
                                      "/a/",
                                      "/a//b",
                                      "/.",
                                      "/..",
                                      "/a/..",
                                      "/.git",
                                      "/a/%2e",
                                      "/a b",
                                      "/a\\b",
                                      "/a\x80",
                                      "/a/b/c/d/e/f/g/h/i",
                                      "/0123456789012345678901234567890123456789012345678901234567890123456789"};
    rws_request              r;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(rws__request_path(&r, bad[i]));
    assert_true(rws__request_path(&r, "/"));
    assert_int_equal(r.n_segments, 0);
    assert_true(rws__request_path(&r, "/api/compare.svg"));
    assert_int_equal(r.n_segments, 2);
    assert_string_equal(r.segment[1], "compare.svg");
}

static void test_hosts(void **state)
{
    (void)state;
    const char *const names[] = {"my.machine"};
    const rws_gate    loopback = {.port = 8765}, wide = {.port = 8765, .names = names, .n_names = 1, .anywhere = true};
    static const struct {
        const char *host;
        bool        here, anywhere;
    } hosts[] = {{"127.0.0.1:8765", true, true},
                 {"localhost:8765", true, true},
                 {"[::1]:8765", true, true},
                 {"LocalHost:8765", true, true},
                 {"10.0.0.1:8765", false, true},
                 {"[fe80::1]:8765", false, true},
                 {"my.machine:8765", false, true},
                 {"evil.example:8765", false, false},
                 {"127.0.0.1", false, false},
                 {"127.0.0.1:80", false, false},
                 {"127.0.0.1:", false, false},
                 {"127.0.0.1:8765x", false, false},
                 {"127.0.0.1:+8765", false, false},
                 {"[::1:8765", false, false},
                 {"[]:8765", false, false},
                 {":8765", false, false},
                 {"", false, false},
                 {"localhost.:8765", false, false}};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_int_equal(rws__gate_host(&loopback, hosts[i].host), hosts[i].here);
        assert_int_equal(rws__gate_host(&wide, hosts[i].host), hosts[i].anywhere);
    }
    assert_false(rws__gate_host(&loopback, NULL));
}

static void test_tokens(void **state)
{
    (void)state;
    const rws_gate g = {.token = "0123abcd"};
    assert_true(rws__token_equal("0123abcd", "0123abcd"));
    static const char *const wrong[] = {"", "0", "0123abc", "0123abcd0", "0123abce", "1123abcd", "0123abcd0123abcd"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(rws__token_equal(g.token, wrong[i]));
    static const struct {
        const char *authorization, *cookie;
        bool        good;
    } tries[] = {{"Bearer 0123abcd", NULL, true},
                 {"bearer 0123abcd", NULL, true},
                 {"Basic 0123abcd", NULL, false},
                 {"0123abcd", NULL, false},
                 {NULL, "rws-token=0123abcd", true},
                 {NULL, "a=b; rws-token=0123abcd; c", true},
                 {NULL, "xrws-token=0123abcd", false},
                 {NULL, "rws-token=", false},
                 {NULL, ";;;", false},
                 {NULL, "a=rws-token=0123abcd", false},
                 {"Bearer x", "rws-token=0123abcd", false},
                 {NULL, NULL, false}};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const rws_request r = {.authorization = tries[i].authorization, .cookie = tries[i].cookie};
        assert_int_equal(rws__gate_token(&g, &r), tries[i].good);
    }
}

/* ---- news */

static void test_news(void **state)
{
    (void)state;
    rws_changes *n = rws__changes_new(0);
    uint64_t     number;
    char        *text;
    assert_int_equal(rws__changes_wait(n, 0, 0.01, &number, &text), RWS_CHANGES_NONE);
    assert_int_equal(rws__changes_publish(n, "one"), 1);
    assert_int_equal(rws__changes_publish(n, "two"), 2);
    assert_int_equal(rws__changes_wait(n, 0, 1, &number, &text), RWS_CHANGES_ITEM);
    assert_string_equal(text, "one");
    assert_int_equal(number, 1);
    free(text);
    assert_int_equal(rws__changes_wait(n, 99, 1, &number, &text), RWS_CHANGES_MISSED); /* of another server */
    for (int i = 0; i < RWS_CHANGES_KEPT; i++) rws__changes_publish(n, "more");
    assert_int_equal(rws__changes_wait(n, 1, 1, &number, &text), RWS_CHANGES_MISSED);
    assert_int_equal(number, 2 + RWS_CHANGES_KEPT);
    assert_int_equal(rws__changes_publish(n, NULL), 3 + RWS_CHANGES_KEPT);
    assert_int_equal(rws__changes_wait(n, number, 1, &number, &text), RWS_CHANGES_MISSED);
    assert_int_equal(number, 3 + RWS_CHANGES_KEPT);
    rws__changes_end(n);
    assert_int_equal(rws__changes_wait(n, number, 1, &number, &text), RWS_CHANGES_OVER);
    rws__changes_free(n);

    /* A server that is started again does not continue the numbers of the one before. */
    n = rws__changes_new(1000);
    assert_int_equal(rws__changes_latest(n), 1000);
    assert_int_equal(rws__changes_publish(n, "first"), 1001);
    for (uint64_t before = 900; before < 1000; before++) {
        assert_int_equal(rws__changes_wait(n, before, 1, &number, &text), RWS_CHANGES_MISSED);
        assert_int_equal(number, 1001);
    }
    assert_int_equal(rws__changes_wait(n, 1000, 1, &number, &text), RWS_CHANGES_ITEM);
    assert_string_equal(text, "first");
    free(text);
    rws__changes_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_bytes_are_json),
        cmocka_unit_test(test_numbers_and_commas),
        cmocka_unit_test(test_thin_keeps_what_stands_out),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
