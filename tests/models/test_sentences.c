/* test_sentences.c - files of sentences are read word by word or refused with the line; sentences that were
 * drawn can be read again and have the grammar's distribution. */
#include "files.h"

#include "base/rng.h"
#include "models/corpora/sentences.h"
#include "models/corpora/parse_tree.h"

#include <stdio.h>
#include <string.h>

static rws_grammar *astronomers, *orders;

static int setup(void **state)
{
    (void)state;
    return rws__grammar_find("astronomers", &astronomers, NULL) != RWS_OK ||
           rws__grammar_find("orders", &orders, NULL) != RWS_OK;
}

static int teardown(void **state)
{
    (void)state;
    rws__grammar_free(astronomers);
    rws__grammar_free(orders);
    return 0;
}

static rws_status parse(const char *text, size_t length, rws_unknown unknown, int max_words, rws_sentences *out,
                        rws_error *err)
{
    /* a copy of exactly this size, so that a sanitizer sees a read behind the end */
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    const rws_status status =
        rws__sentences_parse(astronomers, copy, length, "some-file", unknown, max_words, out, err);
    free(copy);
    return status;
}

static void lines_become_tokens(void **state)
{
    (void)state;
    const char    text[] = "astronomers saw stars\n\n  \t\r\n ears\tsaw  with \r\nstars";
    const int     tokens[] = {0, 2, 3, 1, 2, 5, 3}, start[] = {0, 3, 6, 7};
    rws_sentences s;
    rws_error     err = {""};
    if (parse(text, strlen(text), RWS_UNKNOWN_REFUSE, 3, &s, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.n_skipped, 0);
    assert_memory_equal(s.start, start, sizeof start);
    assert_memory_equal(s.tokens, tokens, sizeof tokens);
    rws__sentences_release(&s);
    assert_int_equal(s.n, 0);
}

static void unknown_words_are_named_or_skipped(void **state)
{
    (void)state;
    const char    text[] = "stars saw ears\nstars saw moons\nears\nstar saw\n";
    rws_sentences s;
    rws_error     err = {""};
    assert_int_equal(parse(text, strlen(text), RWS_UNKNOWN_REFUSE, 9, &s, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"some-file\", line 2: the grammar has no word \"moons\".");
    assert_true(s.n == 0 && !s.start && !s.tokens);
    if (parse(text, strlen(text), RWS_UNKNOWN_SKIP, 9, &s, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.n_skipped, 2);
    assert_int_equal(s.start[2], 4);
    assert_int_equal(s.tokens[3], 1);
    rws__sentences_release(&s);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
        size_t      length; /* 0: of the text */
    } list[] = {
        {"", "\"some-file\" has no sentences.", 0},
        {" \n\r\n\t", "\"some-file\" has no sentences.", 0},
        {"stars\nsaw stars with\n", "\"some-file\", line 2: the sentence has more than 2 words.", 0},
        {"stars\nsaw\1", "\"some-file\", line 2: there is a control character (byte 1) in the text.", 0},
        {"saw\0stars", "\"some-file\", line 1: there is a control character (byte 0) in the text.", 9},
        {"\"stars\"", "\"some-file\", line 1: the grammar has no word \"\"stars\"\".", 0},
        {"Stars", "\"some-file\", line 1: the grammar has no word \"Stars\".", 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rws_sentences s;
        rws_error     err = {""};
        const size_t  length = list[i].length ? list[i].length : strlen(list[i].text);
        assert_int_equal(parse(list[i].text, length, RWS_UNKNOWN_REFUSE, 2, &s, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, list[i].sentence);
    }
    rws_sentences s;
    rws_error     err = {""};
    assert_int_equal(parse("moons\n", 6, RWS_UNKNOWN_SKIP, 2, &s, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text,
                        "\"some-file\" has no sentences except some with words that the grammar does not have.");
    assert_int_equal(rws__sentences_read(astronomers, "/nowhere/sentences", RWS_UNKNOWN_SKIP, 2, &s, &err),
                     RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "/nowhere/sentences"));
}

static void typed_sentences_are_read(void **state)
{
    (void)state;
    int       tokens[4], n;
    rws_error err = {""};
    assert_int_equal(rws__sentences_type(astronomers, " stars saw ears ", 4, tokens, &n, &err), RWS_OK);
    assert_true(n == 3 && tokens[0] == 3 && tokens[1] == 2 && tokens[2] == 1);
    static const struct {
        const char *text, *sentence;
    } list[] = {
        {"", "\"\": there is no word in this sentence."},
        {"stars saw moons", "\"stars saw moons\": the grammar has no word \"moons\"."},
        {"saw saw saw saw saw", "\"saw saw saw saw saw\": the sentence has more than 4 words."},
        {"stars\nsaw ears", "\"stars?saw ears\": there is a control character (byte 10) in the text."},
    };
    rws_error long_word = {""}; /* 1 + 2 n bytes: 60 and 80 bytes would end within a letter */
    char      text[301] = "x", *end = text + 1, want[400];
    while (end < text + sizeof text - 2) end = stpcpy(end, "\u00e9");
    assert_int_equal(rws__sentences_type(astronomers, text, 4, tokens, &n, &long_word), RWS_BAD_INPUT);
    snprintf(want, sizeof want, "\"%.59s ...\": the grammar has no word \"%.79s\".", text, text);
    assert_string_equal(long_word.text, want);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_int_equal(rws__sentences_type(astronomers, list[i].text, 4, tokens, &n, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, list[i].sentence);
    }
}

/* Every sentence of the file is for training or for tests; sentence i has i + 1 words. */
static void check_corpus(const char *train, const char *test, int n_train, int n_test)
{
    rws_corpus c;
    rws_error  err = {""};
    if (rws__corpus_read(astronomers, train, test, RWS_UNKNOWN_REFUSE, 100, &c, &err) != RWS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(c.n[RWS_TRAIN], n_train);
    assert_int_equal(c.n[RWS_TEST], n_test);
    for (int split = 0; split < 2; split++)
        for (int i = 0, n_words; i < c.n[split]; i++) {
            const int *words = rws__corpus_sentence(&c, (rws_split)split, i, &n_words);
            assert_true(n_words >= 1 && words[0] == 3 && words[n_words - 1] == 3);
            if (test || n_train == n_test) assert_int_equal(n_words, i + 1);
            else if (split == RWS_TEST) assert_int_equal(n_words, 10 * i + 10);
            else assert_int_equal(n_words, 1 + 10 * (i / 9) + i % 9);
        }
    rws__corpus_release(&c);
    assert_null(c.file[RWS_TRAIN].tokens);
}

static void a_corpus_holds_out_a_tenth(void **state)
{
    (void)state;
    static const struct {
        int n, n_train, n_test;
    } list[] = {{1, 1, 1}, {9, 9, 9}, {10, 9, 1}, {11, 10, 1}, {19, 18, 1}, {20, 18, 2}, {29, 27, 2}, {35, 32, 3}};
    char text[8000], path[64];
    strcpy(path, in_folder("sentences"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char *at = text;
        for (int i = 0; i < list[k].n; i++)
            for (int w = 0; w <= i; w++) at = stpcpy(at, w < i ? "stars " : "stars\n");
        spill(path, text, strlen(text));
        check_corpus(path, NULL, list[k].n_train, list[k].n_test);
        check_corpus(path, path, list[k].n, list[k].n);
        check_corpus(NULL, path, 0, list[k].n);
    }
    check_corpus(NULL, NULL, 0, 0);
    rws_corpus c;
    rws_error  err = {""};
    assert_int_equal(rws__corpus_read(astronomers, path, "/nowhere", RWS_UNKNOWN_REFUSE, 100, &c, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "/nowhere"));
}

static double length_look(void *context, int round, int wide)
{
    (void)context;
    const int     n = 2000 * wide;
    rws_random    random = rws__random_new(rws__key_for(4, (uint64_t)round, RWS_KEY_DATA, 0), 0);
    rws_sentences s;
    rws_error     err = {""};
    char         *text;
    size_t        length;
    if (rws__sentences_draw(orders, n, &random, &text, &length, &err) != RWS_OK) fail_msg("%s", err.text);
    if (rws__sentences_parse(orders, text, length, "drawn", RWS_UNKNOWN_REFUSE, 1000, &s, &err) != RWS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(s.n, n);
    double log_p[64], nodes[16], mean, *lengths = malloc((size_t)n * sizeof *lengths);
    assert_true(orders->n_productions <= 64 && orders->n_nonterminals <= 16);
    rws__grammar_log_p(orders, log_p);
    assert_int_equal(rws__parse_tree_moments(orders, log_p, nodes, &mean, &err), RWS_OK);
    for (int i = 0; i < n; i++) lengths[i] = s.start[i + 1] - s.start[i];
    const double tail = mean_tail(lengths, (size_t)n, mean, 0);
    free(lengths);
    free(text);
    rws__sentences_release(&s);
    return tail;
}

static void drawn_sentences_are_read_again(void **state)
{
    (void)state;
    stays_likely("the mean length", length_look, NULL);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"start S\nS -> S S 0.6 | a 0.4", "start S\nS -> S S | a"};
    static const char *const words[] = {"expected length of a sentence is infinite", "no probabilities"};
    for (int i = 0; i < 2; i++) {
        rws_grammar *g;
        rws_error    err = {""};
        rws_random   random = rws__random_new(rws__key_for(4, 0, RWS_KEY_DATA, 0), 0);
        char        *text;
        size_t       length;
        assert_int_equal(rws__grammar_parse(texts[i], strlen(texts[i]), "test", &g, &err), RWS_OK);
        assert_int_equal(rws__sentences_draw(g, 1, &random, &text, &length, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, words[i]));
        assert_null(text);
        rws__grammar_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_tokens),
        cmocka_unit_test(unknown_words_are_named_or_skipped),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(typed_sentences_are_read),
        cmocka_unit_test_setup_teardown(a_corpus_holds_out_a_tenth, folder_make, folder_remove),
        cmocka_unit_test(drawn_sentences_are_read_again),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
