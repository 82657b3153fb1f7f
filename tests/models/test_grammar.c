/* test_grammar.c - grammars are read or refused with a sentence; charts agree with closed forms, with enumeration by
 * hand and with differences; samples agree with their expectations. */
#include "support.h"
#include "trees.h"

#include "base/rng.h"
#include "models/corpora/grammar.h"
#include "models/corpora/parse.h"
#include "models/corpora/parse_tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef RWS_GRAMMARS
#define RWS_GRAMMARS NULL
#endif

static rws_grammar *astronomers;
static double       astronomers_log_p[12];

/* A file of models/grammars, relative to the source of the test or to the working directory. */
static const char *grammar_path(const char *name)
{
    static char path[4096];
    const char *slash = strrchr(__FILE__, '/');
    const char *folders[] = {RWS_GRAMMARS, NULL, "models/grammars", "../models/grammars"};
    char        beside[2048];
    snprintf(beside, sizeof beside, "%.*s/../../models/grammars", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".");
    folders[1] = beside;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!folders[i]) continue;
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (access(path, R_OK) == 0) break;
    }
    return path;
}

static rws_grammar *read_grammar(const char *name)
{
    rws_grammar *g;
    rws_error    err = {""};
    if (rws__grammar_read(grammar_path(name), &g, &err) != RWS_OK) fail_msg("%s", err.text);
    return g;
}

static rws_grammar *parse_grammar(const char *text)
{
    rws_grammar *g;
    rws_error    err = {""};
    if (rws__grammar_parse(text, strlen(text), "test", &g, &err) != RWS_OK) fail_msg("%s", err.text);
    return g;
}

static int setup(void **state)
{
    (void)state;
    astronomers = read_grammar("astronomers.pcfg");
    assert_int_equal(astronomers->n_productions, 12);
    rws__grammar_log_p(astronomers, astronomers_log_p);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rws__grammar_free(astronomers);
    return 0;
}

static double log_evidence(const rws_grammar *g, const double *log_p, const int *tokens, int n)
{
    double value;
    assert_int_equal(rws__parse_log_p(g, log_p, tokens, n, &value, NULL), RWS_OK);
    return value;
}

static double evidence(const char *text)
{
    int       tokens[64];
    const int n = rws__grammar_tokens(astronomers, text, tokens, 64);
    assert_true(n <= 64);
    return exp(log_evidence(astronomers, NULL, tokens, n));
}

/* ----------------------------------------------------------------------------------------------------------- format */

static void names_are_sorted_and_rules_in_order(void **state)
{
    (void)state;
    const char        *words[] = {"astronomers", "ears", "saw", "stars", "telescopes", "with"};
    const char        *nonterminals[] = {"NP", "P", "PP", "S", "V", "VP"};
    const int          sizes[] = {6, 1, 1, 1, 1, 2};
    const rws_grammar *g = astronomers;
    assert_int_equal(g->n_terminals, 6);
    assert_int_equal(g->n_nonterminals, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(g->terminals[i], words[i]);
        assert_string_equal(g->nonterminals[i], nonterminals[i]);
        assert_int_equal(g->first[i + 1] - g->first[i], sizes[i]);
        assert_int_equal(rws__grammar_word(g, words[i], strlen(words[i])), i);
        assert_int_equal(rws__grammar_nonterminal(g, nonterminals[i]), i);
        assert_true(g->given[i]);
    }
    assert_int_equal(g->start, 3);
    assert_int_equal(g->max_right, 2);
    assert_int_equal(g->max_productions, 6);
    assert_int_equal(rws__grammar_word(g, "NP", 2), RWS_OOV);
    assert_int_equal(rws__grammar_word(g, "star", 4), RWS_OOV);
    assert_int_equal(rws__grammar_word(g, "starss", 6), RWS_OOV);
    assert_int_equal(rws__grammar_nonterminal(g, ""), -1);

    const rws_production *np = g->productions;
    assert_int_equal(np[0].n_right, 2);
    assert_false(np[0].right[0].word || np[0].right[1].word);
    assert_int_equal(np[0].right[1].id, 2);
    const double p[] = {0.4, 0.1, 0.18, 0.04, 0.18, 0.1};
    for (int i = 0; i < 6; i++) {
        assert_true(near(np[i].p, p[i], 1e-15));
        if (i > 0) assert_true(np[i].right[0].word && np[i].right[0].id == i - 1);
    }

    int tokens[4];
    assert_int_equal(rws__grammar_tokens(g, "  with moons\tears\n", tokens, 4), 3);
    assert_true(tokens[0] == 5 && tokens[1] == RWS_OOV && tokens[2] == 1);
    assert_int_equal(rws__grammar_tokens(g, "", tokens, 4), 0);
    assert_int_equal(rws__grammar_tokens(g, "ears ears ears ears ears", tokens, 4), 5);
}

static void text_in_other_forms(void **state)
{
    (void)state;
    rws_grammar *g = parse_grammar("# nothing\r\n\r\n"
                                   "S -> A b \"0.5\" B # the rest\n"
                                   "\t| \"A\" \"|\" \"->\" . #| x\r\n"
                                   "start S\n"
                                   "A -> a 0.3333334 | b 0.3333333\n"
                                   "B -> A | start\nstart -> x\nA -> \xff\xfe 0.3333333");
    assert_int_equal(g->n_nonterminals, 4);
    assert_int_equal(g->n_productions, 8);
    const char *words[] = {"->", ".", "0.5", "A", "a", "b", "x", "|", "\xff\xfe"};
    assert_int_equal(g->n_terminals, 9);
    for (int i = 0; i < 9; i++) assert_string_equal(g->terminals[i], words[i]);

    /* A's rules from both places; probabilities divided by their sum, or equal where there are none. */
    const int a = rws__grammar_nonterminal(g, "A"), s = rws__grammar_nonterminal(g, "S");
    assert_int_equal(g->first[a + 1] - g->first[a], 3);
    assert_true(near(g->productions[g->first[a]].p + 2 * g->productions[g->first[a] + 1].p, 1, 1e-15));
    assert_true(g->given[a] && !g->given[s]);
    assert_true(g->productions[g->first[s]].p == 0.5);
    assert_int_equal(g->productions[g->first[s]].n_right, 4);
    assert_int_equal(g->productions[g->first[a] + 2].line, 9);

    /* Single-symbol rules: what they lead to comes first. */
    int at[4];
    for (int i = 0; i < 4; i++) at[g->unit_order[i]] = i;
    assert_true(at[a] < at[rws__grammar_nonterminal(g, "B")]);
    rws__grammar_free(g);
}

static void bad_grammars_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence; /* a part of it */
    } cases[] = {
        {"", "has no rules"},
        {"\n# only a comment\n\n", "has no rules"},
        {"start S\n", "has no rules"},
        {"S -> a\n", "does not say which symbol is the start"},
        {"start T\nS -> a\n", "line 1: the start symbol T is undefined"},
        {"start a\nS -> a\n", "line 1: the start symbol a is undefined"},
        {"start \"S\"\nS -> a\n", "the start symbol S is undefined"},
        {"start\nS -> a\n", "line 1: after the word start"},
        {"start S T\nS -> a\n", "there should be one symbol"},
        {"start S\nstart S\nS -> a\n", "line 2: the start symbol was already given in line 1"},
        {"start S\nS -> a T\n", "line 2: T in a rule for S is undefined"},
        {"start S\nS a b\n", "line 2: after the symbol S there should be a ->"},
        {"start S\nS\n", "line 2: after the symbol S there should be a ->"},
        {"start S\n-> a\n", "line 2: there is no symbol in front"},
        {"start S\n| a\n", "line 2: the line begins with | but no rule"},
        {"start S\nS ->\n", "line 2: a rule for S has an empty right-hand side"},
        {"start S\nS -> 0.5 | a 0.5\n", "has an empty right-hand side"},
        {"start S\nS -> a |\n", "has an empty right-hand side"},
        {"start S\nS -> | a\n", "has an empty right-hand side"},
        {"start S\nS -> a -> b\n", "second ->"},
        {"start S\nS->a\n", "blanks on both sides"},
        {"start S\nS -> a|b\n", "blanks on both sides of -> and | in a|b"},
        {"start S\nS -> a 0.5 b\n", "line 2: 0.5 in a rule for S is neither"},
        {"start S\nS -> a 0,5 | b 0.5\n", "line 2: 0,5 in a rule for S is neither"},
        {"start S\nS -> a 0.5 0.5\n", "0.5 in a rule for S is neither"},
        {"start S\n1 -> a\n", "the number 1 cannot have rules"},
        {"start S\n\"S\" -> a\n", "the quoted word \"S\" cannot have rules"},
        {"start S\nS -> \"a b\"\n", "does not end in a quotation mark"},
        {"start S\nS -> \"\"\n", "does not end in a quotation mark"},
        {"start S\nS -> a\"b\n", "quotation mark inside"},
        {"start S\nS -> a -0.5 | b 1.5\n", "line 2: a rule for S has probability -0.5, which is not in (0, 1]"},
        {"start S\nS -> a 1.5\n", "probability 1.5, which is not in"},
        {"start S\nS -> a 0 | b 1\n", "probability 0, which is not in"},
        {"start S\nS -> a nan\n", "nan, which is not in"},
        {"start S\nS -> a inf\n", "probability inf, which is not in"},
        {"start S\nS -> a 0.5 | b 0.4\n", "line 2: the probabilities of the rules for S sum to 0.9 and not to 1"},
        {"start S\nS -> a 0.5 | b 0.500002\n", "sum to 1.000002 and not"},
        {"start S\nS -> a 0.5\n| b\n", "line 3: some rules for S have a probability and some have none"},
        {"start S\nS -> a | b 0.5\n", "some rules for S have a probability and some have none"},
        {"start S\nS -> a b\nS -> c | a b\n", "line 3: the rule S -> a ... is already in line 2"},
        {"start S\nS -> a | a\n", "line 2: the rule S -> a is already in line 2"},
        {"start S\nS -> S | a\n", "line 2: the rule S -> S is part of a chain"},
        {"start S\nS -> A\nA -> B | a\nB -> A | b\n", "back to itself"},
        {"start S\nS -> A b | c\nA -> a A\n", "line 3: no derivation from A ends in words alone"},
        {"start S\nS -> S S\n", "line 2: no derivation from S"},
        {"start S\nS -> a\nA -> b\n", "line 3: A cannot be reached from the start symbol S"},
        {"start S\nS -> a\x01\n", "line 2: there is a control character (byte 1)"},
    };
    rws_grammar *g;
    rws_error    err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err.text[0] = '\0';
        const rws_status status = rws__grammar_parse(cases[i].text, strlen(cases[i].text), "some.pcfg", &g, &err);
        if (status != RWS_BAD_INPUT || g || !strstr(err.text, cases[i].sentence) || !strstr(err.text, "\"some.pcfg\""))
            fail_msg("case %zu: status %d, \"%s\" lacks \"%s\"", i, (int)status, err.text, cases[i].sentence);
        assert_int_equal(err.text[strlen(err.text) - 1], '.');
    }
    assert_int_equal(rws__grammar_parse("start S\nS -> a\0b", 16, "x", &g, &err), RWS_BAD_INPUT);
    assert_int_equal(rws__grammar_parse("", 0, "x", &g, NULL), RWS_BAD_INPUT);
}

static void large_grammars_are_refused(void **state)
{
    (void)state;
    const size_t capacity = RWS_MAX_GRAMMAR_BYTES + 2;
    char        *text = malloc(capacity);
    rws_grammar *g;
    rws_error    err;

    memset(text, '\n', capacity);
    assert_int_equal(rws__grammar_parse(text, capacity, "x", &g, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "longer than 1048576 bytes"));

    memset(text, ' ', capacity);
    memcpy(text, "start S\n", 8);
    assert_int_equal(rws__grammar_parse(text, 8 + RWS_MAX_GRAMMAR_LINE + 1, "x", &g, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "line 2: the line is longer than 4096 bytes"));
    memcpy(text + 8, "S -> a", 6);
    assert_int_equal(rws__grammar_parse(text, 8 + RWS_MAX_GRAMMAR_LINE, "x", &g, &err), RWS_OK);
    rws__grammar_free(g);

    for (int n = 64; n <= 65; n++) {
        int length = sprintf(text, "start S\nS ->");
        for (int i = 0; i < n; i++) length += sprintf(text + length, " a");
        assert_int_equal(rws__grammar_parse(text, (size_t)length, "x", &g, &err), n == 64 ? RWS_OK : RWS_BAD_INPUT);
        if (n == 65) assert_non_null(strstr(err.text, "has 65 symbols"));
        rws__grammar_free(g);
    }

    int length = sprintf(text, "start N0\n");
    for (int i = 0; i < 4097; i++) length += sprintf(text + length, "N%d -> N%d a | b\n", i, (i + 1) % 4097);
    assert_int_equal(rws__grammar_parse(text, (size_t)length, "x", &g, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "has 4097 non-terminals"));

    /* Long names are shortened in sentences, from text and from a path. */
    length = sprintf(text, "start S\nS -> a ");
    for (int i = 0; i < 3000; i++) text[length++] = i ? 'x' : 'T';
    char long_name[2001];
    memset(long_name, 'p', 2000);
    long_name[2000] = '\0';
    assert_int_equal(rws__grammar_parse(text, (size_t)length, long_name, &g, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "is undefined: it has no rules"));
    free(text);
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    rws_grammar *g;
    rws_error    err;
    assert_int_equal(rws__grammar_read("/nowhere/at.all", &g, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"/nowhere/at.all\" cannot be read: No such file or directory.");
    assert_int_equal(rws__grammar_read("/", &g, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "is not a regular file"));
    assert_null(g);
}

static char *file_text(const char *name, size_t *length)
{
    FILE *f = fopen(grammar_path(name), "rb");
    char *text = malloc(1 << 16);
    assert_non_null(f);
    *length = fread(text, 1, 1 << 16, f);
    fclose(f);
    return text;
}

/* Every beginning of a file, and every file with one byte changed, is read or refused. */
static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    const char *files[] = {"astronomers.pcfg", "orders.pcfg", "garden.pcfg"};
    die         d = {1};
    for (int f = 0; f < 3; f++) {
        size_t       length;
        char        *text = file_text(files[f], &length);
        rws_grammar *g;
        for (size_t n = 0; n < length; n++) {
            char *cut = malloc(n ? n : 1); /* exactly as long, so that a sanitizer sees a read behind the end */
            memcpy(cut, text, n);
            rws_error        err = {""};
            const rws_status status = rws__grammar_parse(cut, n, files[f], &g, &err);
            assert_true(status == RWS_OK ? g != NULL : status == RWS_BAD_INPUT && err.text[0]);
            rws__grammar_free(g);
            free(cut);
        }
        for (int i = 0; i < 500; i++) {
            const size_t      at = die_next(&d) % length;
            const char        was = text[at];
            static const char likely[] = "\n|#\"->. A0";
            text[at] = i % 2 ? likely[die_below(&d, sizeof likely)] : (char)die_next(&d);
            rws_error        err = {""};
            const rws_status status = rws__grammar_parse(text, length, files[f], &g, &err);
            assert_true(status == RWS_OK ? g != NULL : status == RWS_BAD_INPUT && err.text[0]);
            rws__grammar_free(g);
            text[at] = was;
        }
        free(text);
    }
}

/* ------------------------------------------------------------------------------------ the astronomers, closed forms */

/* A[n]: the rules of a noun phrase of n nouns, without its words; B[n]: the same for a verb phrase. Each noun beyond
 * the first also counts `noun`: 1, or the probability of all nouns together if their sum is wanted. */
static void closed_form(double p0, double pv, double noun, int n_max, double *A, double *B)
{
    A[1] = 1;
    B[1] = 1 - pv;
    for (int n = 2; n <= n_max; n++) {
        double a = 0, b = 0;
        for (int i = 1; i < n; i++) {
            a += A[i] * A[n - i];
            b += B[i] * A[n - i];
        }
        A[n] = noun * p0 * a;
        B[n] = (1 - pv) * A[n] + noun * pv * b;
    }
}

static void astronomers_have_the_known_numbers(void **state)
{
    (void)state;
    assert_true(near(evidence("astronomers saw stars with ears"), 0.0015876, 1e-15));
    assert_true(near(evidence("astronomers saw stars with telescopes"), 0.000882, 1e-15));
    assert_true(evidence("astronomers saw") == 0);
    assert_true(evidence("astronomers saw moons") == 0);
    assert_true(evidence("") == 0);

    int        tokens[5];
    rws_parses parses;
    char       text[128];
    rws__grammar_tokens(astronomers, "astronomers saw stars with telescopes", tokens, 5);
    assert_int_equal(rws__parses_init(&parses, astronomers, astronomers_log_p, tokens, 5, 100, NULL), RWS_OK);
    assert_int_equal(parses.n_trees, 2);
    assert_true(parses.n_all == 2);
    for (int i = 0; i < 2; i++) {
        const size_t length = rws__parse_tree_text(astronomers, &parses.trees[i], text, sizeof text);
        assert_int_equal(length, strlen(text));
        const double log_tree = tree_log_p(&parses.trees[i], astronomers_log_p);
        if (strstr(text, "(VP (VP (V saw)")) {
            assert_true(near(parses.posterior[i], 3.0 / 7, 1e-12));
            assert_true(near(exp(log_tree), 0.000378, 1e-15));
        } else {
            assert_string_equal(text,
                                "(S (NP astronomers) (VP (V saw) (NP (NP stars) (PP (P with) (NP telescopes)))))");
            assert_true(near(parses.posterior[i], 4.0 / 7, 1e-12));
            assert_int_equal(tree_depth(astronomers, &parses.trees[i]), 4);
            assert_true(near(exp(log_tree), 0.000504, 1e-15));
            char few[8];
            assert_int_equal(rws__parse_tree_text(astronomers, &parses.trees[i], few, sizeof few), length);
            assert_string_equal(few, "(S (NP ");
        }
    }

    rws__parses_release(&parses);
}

/* All shapes up to 15 words, with the grammar's probabilities and others, and the number of trees. */
static void charts_agree_with_the_closed_form(void **state)
{
    (void)state;
    const double lex[5] = {0.1, 0.18, 0.04, 0.18, 0.1};
    die          d = {2};
    double       A[9], B[9];
    for (int other = 0; other < 2; other++) {
        const double p0 = other ? 0.7 : 0.4, pv = other ? 0.25 : 0.3, scale = other ? 0.3 / 0.6 : 1;
        double       log_p[12];
        memcpy(log_p, astronomers_log_p, sizeof log_p);
        log_p[0] = log(p0);
        for (int w = 0; w < 5; w++) log_p[1 + w] = log(lex[w] * scale);
        log_p[10] = log(1 - pv);
        log_p[11] = log(pv);
        closed_form(p0, pv, 1, 8, A, B);
        for (int m = 1; m <= 7; m++)
            for (int a = 1; a <= m; a++) {
                int    tokens[15], n = 0;
                double p = A[a] * B[m + 1 - a], C[9], D[9];
                for (int i = 0; i <= m; i++) {
                    const int w = die_below(&d, 5);
                    if (i > 0) tokens[n++] = i == a ? 2 : 5;
                    tokens[n++] = w;
                    p *= lex[w] * scale;
                }
                assert_true(near(log_evidence(astronomers, log_p, tokens, n), log(p), 1e-11));

                /* The same recursion counts trees, with all factors 1. */
                C[1] = D[1] = 1;
                for (int k = 2; k <= m + 1; k++) {
                    C[k] = 0;
                    for (int i = 1; i < k; i++) C[k] += C[i] * C[k - i];
                    D[k] = C[k];
                    for (int i = 1; i < k; i++) D[k] += D[i] * C[k - i];
                }
                rws_parse_chart *c;
                assert_int_equal(rws__parse_chart_new(astronomers, RWS_PARSE_COUNT, log_p, tokens, n, &c, NULL),
                                 RWS_OK);
                assert_true(rws__parse_chart_total(c) == C[a] * D[m + 1 - a]);
                rws__parse_chart_free(c);
            }
    }
    closed_form(0.4, 0.3, 1, 6, A, B);
    const double known_A[] = {1, .4, .32, .32, .3584, .43008}, known_B[] = {.7, .49, .455, .4865, .56567, .695121};
    for (int n = 1; n <= 6; n++) assert_true(near(A[n], known_A[n - 1], 1e-9) && near(B[n], known_B[n - 1], 1e-9));
}

static void moments_are_exact(void **state)
{
    (void)state;
    double nodes[6], length, all = 0, entropy = 0;
    assert_int_equal(rws__parse_tree_moments(astronomers, astronomers_log_p, nodes, &length, NULL), RWS_OK);
    assert_true(isfinite(length));
    const double known[] = {85.0 / 7, 37.0 / 7, 37.0 / 7, 1, 1, 10.0 / 7}; /* NP P PP S V VP */
    for (int a = 0; a < 6; a++) {
        assert_true(near(nodes[a], known[a], 1e-9));
        all += nodes[a];
        for (int r = astronomers->first[a]; r < astronomers->first[a + 1]; r++)
            entropy -= nodes[a] * exp(astronomers_log_p[r]) * astronomers_log_p[r];
    }
    assert_true(near(length, 95.0 / 7, 1e-9));
    assert_true(near(all, 26.143, 1e-3));
    assert_true(near(entropy, 19.97478, 1e-5));

    /* The series over the number of nouns, m + 1, each of which has probability 0.6. */
    enum { SERIES = 2000 };
    static double A[SERIES + 1], B[SERIES + 1];
    double        total = 0, mean = 0, below = 0, upto = 0;
    closed_form(0.4, 0.3, 0.6, SERIES, A, B);
    for (int m = 1; m < SERIES; m++) {
        double p = 0;
        for (int a = 1; a <= m; a++) p += 0.36 * A[a] * B[m + 1 - a];
        total += p;
        mean += (2 * m + 1) * p;
        if (2 * m + 1 < 7) below += p;
        if (2 * m + 1 <= 7) upto += p;
    }
    assert_true(near(total, 1, 1e-9));
    assert_true(near(mean, 95.0 / 7, 1e-6));
    assert_true(below < 0.5 && upto >= 0.5); /* the median is 7 */

    /* Above p0 = 1/2 trees grow without end; other grammars are finite. */
    double log_p[12];
    memcpy(log_p, astronomers_log_p, sizeof log_p);
    log_p[0] = log(0.51);
    assert_int_equal(rws__parse_tree_moments(astronomers, log_p, nodes, &length, NULL), RWS_OK);
    assert_true(isinf(length) && isinf(nodes[0]));
    log_p[0] = log(0.499);
    assert_int_equal(rws__parse_tree_moments(astronomers, log_p, nodes, &length, NULL), RWS_OK);
    assert_true(isfinite(length));
}

/* The chance that a tree meets the depth cap, by recursion on the depth that is left. */
static double cut_chance(int max_depth)
{
    double whole[6] = {0}, next[6];
    for (int depth = max_depth; depth >= 0; depth--) {
        for (int a = 0; a < 6; a++) {
            next[a] = 0;
            for (int r = astronomers->first[a]; r < astronomers->first[a + 1]; r++) {
                double p = astronomers->productions[r].p;
                for (int k = 0; k < astronomers->productions[r].n_right; k++)
                    if (!astronomers->productions[r].right[k].word) p *= whole[astronomers->productions[r].right[k].id];
                next[a] += p;
            }
        }
        memcpy(whole, next, sizeof whole);
    }
    return 1 - whole[astronomers->start];
}

static double sample_look(void *context, int round, int wide)
{
    (void)context;
    const int    n = 4000 * wide;
    double      *length = malloc(sizeof *length * (size_t)n), *deep = malloc(sizeof *deep * (size_t)n);
    double       p;
    double       seen[6] = {0}, expected[6], n_np = 0;
    rws_random   random = rws__random_new(rws__key_for(7, 0, RWS_KEY_TEST, 0), (uint32_t)round);
    rws_sequence tree = {0}, sentence = {0}, again = {0};
    for (int i = 0; i < n; i++) {
        const rws_cut whole = rws__parse_tree_sample(astronomers, astronomers_log_p, (rws_caps){100000, 1000000},
                                                     &random, &tree, &sentence);
        assert_true(whole == RWS_TREE_WHOLE);
        length[i] = sentence.n;
        deep[i] = tree_depth(astronomers, &tree) > 10;
        tree_yield(astronomers, &tree, &again);
        assert_true(trees_equal(&sentence, &again));
        for (int k = 0; k < tree.n; k++)
            if (tree.at[k] < 6) seen[tree.at[k]]++, n_np++;
    }
    for (int k = 0; k < 6; k++) expected[k] = n_np * exp(astronomers_log_p[k]);
    p = fmin(mean_tail(length, (size_t)n, 95.0 / 7, 0), mean_tail(deep, (size_t)n, cut_chance(10), 0));
    p = fmin(p, counts_tail(seen, expected, 6));
    free(length);
    free(deep);
    rws__sequence_release(&tree);
    rws__sequence_release(&sentence);
    rws__sequence_release(&again);
    return p;
}

static void samples_follow_the_grammar(void **state)
{
    (void)state;
    stays_likely("length, depth and rules of samples", sample_look, NULL);
    const int    depths[] = {10, 20, 30, 50, 100};
    const double known[] = {0.183, 0.0387, 0.00875, 4.6e-4, 3.0e-7}, digit[] = {5e-4, 5e-5, 5e-6, 5e-6, 5e-9};
    for (int i = 0; i < 5; i++) assert_true(near(cut_chance(depths[i]), known[i], 1.01 * digit[i]));
}

static void caps_leave_leaves(void **state)
{
    (void)state;
    rws_random   random = rws__random_new(rws__key_for(8, 0, RWS_KEY_TEST, 0), 0);
    rws_sequence tree = {0}, sentence = {0}, again = {0};
    double       log_p[12];
    char         text[64];
    memcpy(log_p, astronomers_log_p, sizeof log_p);

    /* Depth 0 is expanded with max_depth 0, its children are not. */
    assert_int_equal(rws__parse_tree_sample(astronomers, log_p, (rws_caps){0, 100}, &random, &tree, &sentence),
                     RWS_TREE_TOO_DEEP);
    assert_true(tree.n == 3 && tree.at[1] == RWS_LEAF && tree.at[2] == RWS_LEAF);
    assert_true(sentence.n == 2 && sentence.at[0] == RWS_OOV && sentence.at[1] == RWS_OOV);
    rws__parse_tree_text(astronomers, &tree, text, sizeof text);
    assert_string_equal(text, "(S NP VP)");
    assert_true(tree_log_p(&tree, log_p) == 0);
    assert_true(log_evidence(astronomers, NULL, sentence.at, sentence.n) == -INFINITY);

    /* Supercritical: NP -> NP PP without end. */
    for (int i = 1; i < 6; i++) log_p[i] = -INFINITY;
    log_p[0] = 0;
    assert_int_equal(rws__parse_tree_sample(astronomers, log_p, (rws_caps){1 << 20, 2000}, &random, &tree, &sentence),
                     RWS_TREE_TOO_LARGE);
    int n_expanded = 0;
    for (int i = 0; i < tree.n; i++) n_expanded += tree.at[i] != RWS_LEAF;
    assert_int_equal(n_expanded, 2000);
    assert_int_equal(rws__parse_tree_sample(astronomers, log_p, (rws_caps){20, 2000}, &random, &tree, NULL),
                     RWS_TREE_TOO_DEEP | RWS_TREE_TOO_LARGE);

    for (int i = 0; i < 300; i++) {
        rws__parse_tree_sample(astronomers, astronomers_log_p, (rws_caps){5, 20}, &random, &tree, &sentence);
        tree_yield(astronomers, &tree, &again);
        assert_true(trees_equal(&sentence, &again));
        assert_true(tree_depth(astronomers, &tree) <= 6);
    }
    rws__sequence_release(&tree);
    rws__sequence_release(&sentence);
    rws__sequence_release(&again);
}

/* Z(x) = sum over sentences y of p(y) exp(-Lev(x, y)^2), over all y of up to 5 nouns. */
static void relaxed_evidence_by_enumeration(void **state)
{
    (void)state;
    const double lex[5] = {0.1, 0.18, 0.04, 0.18, 0.1};
    int          x[5], n_y = 0;
    double       A[6], B[6], Z = 0, by_distance[16] = {0};
    rws__grammar_tokens(astronomers, "astronomers saw stars with telescopes", x, 5);
    closed_form(0.4, 0.3, 1, 5, A, B);
    for (int m = 1; m <= 4; m++) {
        int n_words = 1;
        for (int i = 0; i <= m; i++) n_words *= 5;
        for (int a = 1; a <= m; a++)
            for (int code = 0; code < n_words; code++) {
                int    y[9], row[6], n = 0, rest = code;
                double p = A[a] * B[m + 1 - a];
                for (int i = 0; i <= m; i++, rest /= 5) {
                    if (i > 0) y[n++] = i == a ? 2 : 5;
                    y[n++] = rest % 5;
                    p *= lex[rest % 5];
                }
                if (m <= 2) assert_true(near(log_evidence(astronomers, NULL, y, n), log(p), 1e-12));
                const int distance = rws_edit_distance(x, 5, y, n, row);
                Z += p * exp(-distance * distance);
                by_distance[distance] += p * exp(-distance * distance);
                n_y++;
            }
    }
    assert_int_equal(n_y, 14650);
    assert_true(near(Z, 0.0060866779, 5.1e-11));
    assert_true(near(log(Z), -5.1016528, 5.1e-8));
    const double known[] = {0.144907, 0.657467, 0.193689, 0.003933, 3.5e-6};
    for (int d = 0; d < 5; d++) assert_true(near(by_distance[d] / Z, known[d], 5.1e-7));
}

/* ------------------------------------------------------------------------------------- charts against trees by hand */

/* All leftmost derivations of a sentence, by brute force: the symbols still to come are a stack. */
typedef struct {
    const rws_grammar *g;
    const double      *log_p;
    const int         *x;
    int                n, used[64], n_used, n_trees;
    double             p, expected[64];
} brute;

static void derive(brute *b, const rws_symbol *todo, int n_todo, int at, double log_p)
{
    if (n_todo > b->n - at) return; /* every symbol becomes at least one word */
    if (n_todo == 0) {
        if (at < b->n || log_p == -INFINITY) return;
        b->n_trees++;
        b->p += exp(log_p);
        for (int i = 0; i < b->n_used; i++) b->expected[b->used[i]] += exp(log_p);
        return;
    }
    if (todo[0].word) {
        if (todo[0].id == b->x[at]) derive(b, todo + 1, n_todo - 1, at + 1, log_p);
        return;
    }
    for (int r = b->g->first[todo[0].id]; r < b->g->first[todo[0].id + 1]; r++) {
        const rws_production *p = &b->g->productions[r];
        rws_symbol            next[32];
        if (p->n_right + n_todo - 1 > b->n - at) continue;
        memcpy(next, p->right, sizeof *next * (size_t)p->n_right);
        memcpy(next + p->n_right, todo + 1, sizeof *next * (size_t)(n_todo - 1));
        assert_true(b->n_used < 64);
        b->used[b->n_used++] = r;
        derive(b, next, n_todo - 1 + p->n_right, at, log_p + b->log_p[r]);
        b->n_used--;
    }
}

/* A grammar over A … D and a … c, single-symbol rules only to later letters; NULL if it happens to be refused. */
static rws_grammar *random_grammar(die *d)
{
    char         text[4096];
    int          length = sprintf(text, "start A\n");
    rws_grammar *g;
    const int    N = 1 + die_below(d, 4);
    for (int a = 0; a < N; a++) {
        const int n = 1 + die_below(d, 4);
        double    p[4], sum = 0;
        for (int i = 0; i < n; i++) sum += p[i] = die_between(d, 0.1, 1);
        for (int i = 0; i < n; i++) {
            const int k = i == 0 ? 1 : 1 + die_below(d, 4);
            length += i == 0 ? sprintf(text + length, "%c ->", 'A' + a) : sprintf(text + length, " |");
            for (int j = 0; j < k; j++) {
                const bool word = i == 0 ? a + 1 == N || die_below(d, 2) : die_below(d, 2);
                const int  from = k == 1 ? a + 1 : 0;
                if (word || from >= N) length += sprintf(text + length, " %c", 'a' + die_below(d, 3));
                else length += sprintf(text + length, " %c", 'A' + from + die_below(d, N - from));
            }
            length += sprintf(text + length, " %.17g", p[i] / sum);
        }
        length += sprintf(text + length, "\n");
    }
    rws_error err = {""};
    if (rws__grammar_parse(text, (size_t)length, "random", &g, &err) == RWS_OK) return g;
    if (!strstr(err.text, "is already in line") && !strstr(err.text, "be reached") &&
        !strstr(err.text, "ends in words"))
        fail_msg("%s\n%s", err.text, text);
    return NULL;
}

static int same_text(const rws_grammar *g, const rws_sequence *a, const rws_sequence *b)
{
    char s[1024], t[1024];
    rws__parse_tree_text(g, a, s, sizeof s);
    rws__parse_tree_text(g, b, t, sizeof t);
    return strcmp(s, t) == 0;
}

static void check_sentence(const rws_grammar *g, const double *log_p, const int *x, int n, int *n_ambiguous)
{
    brute            b = {.g = g, .log_p = log_p, .x = x, .n = n};
    const rws_symbol start = {.word = false, .id = g->start};
    derive(&b, &start, 1, 0, 0);

    rws_parse_chart *sum;
    rws_parses       parses;
    assert_int_equal(rws__parse_chart_new(g, RWS_PARSE_SUM, log_p, x, n, &sum, NULL), RWS_OK);
    assert_int_equal(rws__parses_init(&parses, g, log_p, x, n, 3000, NULL), RWS_OK);
    assert_true(near(rws__parse_chart_total(sum), log(b.p), 1e-11));
    assert_true(parses.n_all == b.n_trees);
    if (b.n_trees == 0) {
        assert_int_equal(parses.n_trees, 0);
    } else {
        double       expected[64], total = 0;
        rws_sequence sentence = {0};
        assert_int_equal(rws__parse_chart_expected_counts(sum, expected, NULL), RWS_OK);
        for (int r = 0; r < g->n_productions; r++) assert_true(near(expected[r], b.expected[r] / b.p, 1e-10));

        /* As many different trees as there are, each of this sentence, with probabilities that sum to 1. */
        assert_int_equal(parses.n_trees, b.n_trees < 3000 ? b.n_trees : 3000);
        for (int i = 0; i < parses.n_trees; i++) {
            tree_yield(g, &parses.trees[i], &sentence);
            assert_true(sentence.n == n && memcmp(sentence.at, x, sizeof *x * (size_t)n) == 0);
            total += parses.posterior[i];
            for (int k = 0; k < i && i < 60; k++) {
                assert_false(trees_equal(&parses.trees[i], &parses.trees[k]));
                assert_false(same_text(g, &parses.trees[i], &parses.trees[k]));
            }
        }
        if (b.n_trees <= 3000) assert_true(near(total, 1, 1e-10));
        *n_ambiguous += b.n_trees > 1;
        rws__sequence_release(&sentence);
    }
    rws__parses_release(&parses);
    rws__parse_chart_free(sum);
}

static void charts_agree_with_brute_force(void **state)
{
    (void)state;
    die          d = {3};
    int          n_grammars = 0, n_ambiguous = 0, n_chains = 0;
    rws_random   random = rws__random_new(rws__key_for(9, 0, RWS_KEY_TEST, 0), 0);
    rws_sequence tree = {0}, sentence = {0};
    while (n_grammars < 150) {
        rws_grammar *g = random_grammar(&d);
        if (!g) continue;
        double log_p[64];
        rws__grammar_log_p(g, log_p);
        if (n_grammars % 5 == 4) log_p[die_below(&d, g->n_productions)] = -INFINITY;
        if (n_grammars % 5 == 3)
            for (int r = 0; r < g->n_productions; r++) log_p[r] += die_between(&d, -2, 1); /* not normalised */
        for (int r = 0; r < g->n_productions; r++)
            n_chains += g->productions[r].n_right == 1 && !g->productions[r].right[0].word;
        for (int i = 0; i < 5; i++) {
            rws__parse_tree_sample(g, log_p, (rws_caps){20, 30}, &random, &tree, &sentence);
            if (sentence.n <= 6) check_sentence(g, log_p, sentence.at, sentence.n, &n_ambiguous);
            int       x[5];
            const int n = die_below(&d, 6);
            for (int k = 0; k < n; k++) x[k] = die_below(&d, g->n_terminals + 1) - (die_below(&d, 8) == 0);
            check_sentence(g, log_p, x, n, &n_ambiguous);
        }
        rws__grammar_free(g);
        n_grammars++;
    }
    assert_true(n_ambiguous > 50 && n_chains > 50); /* ambiguous sentences and chains are among them */
    rws__sequence_release(&tree);
    rws__sequence_release(&sentence);
}

/* d log p(x) / d log_p = expected counts, also for long sentences and for the grammars of the program. */
static void expected_counts_are_the_gradient(void **state)
{
    (void)state;
    const char *files[] = {"astronomers.pcfg", "orders.pcfg", "garden.pcfg"};
    for (int f = 0; f < 3; f++) {
        rws_grammar *g = read_grammar(files[f]);
        rws_random   random = rws__random_new(rws__key_for(10, 0, RWS_KEY_TEST, 0), (uint32_t)f);
        rws_sequence tree = {0}, sentence = {0};
        double       log_p[128], counts[128], low, high;
        assert_true(g->n_productions <= 128);
        rws__grammar_log_p(g, log_p);
        for (int i = 0; i < 4;) {
            rws__parse_tree_sample(g, log_p, (rws_caps){30, 2000}, &random, &tree, &sentence);
            if (sentence.n < 4 || sentence.n > 14) continue;
            i++;
            rws_parse_chart *c;
            assert_int_equal(rws__parse_chart_new(g, RWS_PARSE_SUM, log_p, sentence.at, sentence.n, &c, NULL), RWS_OK);
            assert_int_equal(rws__parse_chart_expected_counts(c, counts, NULL), RWS_OK);
            rws__parse_chart_free(c);
            for (int r = 0; r < g->n_productions; r++) {
                const double keep = log_p[r], h = 1e-4;
                if (counts[r] == 0 && r % 8) continue; /* only some of the rules that are not used */
                log_p[r] = keep + h;
                high = log_evidence(g, log_p, sentence.at, sentence.n);
                log_p[r] = keep - h;
                low = log_evidence(g, log_p, sentence.at, sentence.n);
                log_p[r] = keep;
                assert_true(near((high - low) / (2 * h), counts[r], 1e-7));
            }
        }
        rws__sequence_release(&tree);
        rws__sequence_release(&sentence);
        rws__grammar_free(g);
    }
}

/* A sentence whose probability is far below the smallest double. */
static void long_sentences_do_not_underflow(void **state)
{
    (void)state;
    rws_grammar *g = parse_grammar("start S\nS -> a S 0.000001 | a 0.999999\n");
    enum { n = 150 };
    int              x[n] = {0};
    double           counts[2];
    rws_parse_chart *c;
    assert_int_equal(rws__parse_chart_new(g, RWS_PARSE_SUM, NULL, x, n, &c, NULL), RWS_OK);
    assert_true(near(rws__parse_chart_total(c), (n - 1) * log(0.000001) + log(0.999999), 1e-9));
    assert_int_equal(rws__parse_chart_expected_counts(c, counts, NULL), RWS_OK);
    assert_true(near(counts[0], n - 1, 1e-9) && near(counts[1], 1, 1e-9));
    rws__parse_chart_free(c);
    rws__grammar_free(g);

    /* S -> S S | a has the Catalan number 29 of trees over 30 words, which a double holds exactly. */
    g = parse_grammar("start S\nS -> S S 0.3 | a 0.7\n");
    assert_int_equal(rws__parse_chart_new(g, RWS_PARSE_COUNT, NULL, x, 30, &c, NULL), RWS_OK);
    assert_true(rws__parse_chart_total(c) == 1002242216651368.0);
    rws__parse_chart_free(c);

    rws_parses parses;
    assert_int_equal(rws__parses_init(&parses, g, NULL, x, 30, 5, NULL), RWS_OK);
    assert_true(parses.n_trees == 5 && parses.n_all == 1002242216651368.0);
    rws_sequence sentence = {0};
    tree_yield(g, &parses.trees[4], &sentence);
    assert_true(sentence.n == 30 && parses.trees[4].n == 59 && !trees_equal(&parses.trees[3], &parses.trees[4]));
    rws__parses_release(&parses);
    assert_int_equal(rws__parses_init(&parses, g, NULL, x, 60, 5, NULL), RWS_OK);
    assert_true(parses.n_trees == 0 && parses.n_all > 0x1p53);
    rws__parses_release(&parses);
    rws__sequence_release(&sentence);
    rws__grammar_free(g);
}

static void broken_numbers_are_refused(void **state)
{
    (void)state;
    double           log_p[12];
    int             *x = calloc(100000, sizeof *x);
    rws_parse_chart *c;
    rws_parses       parses;
    rws_error        err;
    memcpy(log_p, astronomers_log_p, sizeof log_p);
    log_p[3] = NAN;
    assert_int_equal(rws__parse_chart_new(astronomers, RWS_PARSE_SUM, log_p, x, 3, &c, &err), RWS_BROKEN);
    assert_non_null(strstr(err.text, "a rule for NP, is nan"));
    assert_null(c);
    log_p[3] = INFINITY;
    assert_int_equal(rws__parses_init(&parses, astronomers, log_p, x, 3, 10, &err), RWS_BROKEN);
    rws__parses_release(&parses);
    assert_int_equal(rws__parse_chart_new(astronomers, RWS_PARSE_SUM, NULL, x, 100000, &c, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "A sentence of 100000 words needs"));
    free(x);
}

/* The grammars of the project: as large as they say, and small enough to be sampled. */
static void grammars_of_the_program(void **state)
{
    (void)state;
    rws_grammar *g = read_grammar("orders.pcfg");
    double       log_p[128], nodes[32], length;
    rws__grammar_log_p(g, log_p);
    assert_int_equal(rws__parse_tree_moments(g, log_p, nodes, &length, NULL), RWS_OK);
    assert_true(length < 15);
    rws__grammar_free(g);

    g = read_grammar("garden.pcfg");
    rws__grammar_log_p(g, log_p);
    assert_true(g->n_nonterminals >= 8 && g->n_terminals >= 30);
    assert_int_equal(rws__parse_tree_moments(g, log_p, nodes, &length, NULL), RWS_OK);
    assert_true(length < 30);

    int        x[16];
    rws_parses parses;
    const int  n = rws__grammar_tokens(g, "anna sees the cat near the tree with a ladder and sings", x, 16);
    assert_int_equal(rws__parses_init(&parses, g, log_p, x, n, 100, NULL), RWS_OK);
    assert_true(parses.n_trees > 1);
    rws__parses_release(&parses);
    rws__grammar_free(g);
}

/* ---------------------------------------------------------------------------------------------------- edit distance */

static int min3(int a, int b, int c)
{
    return a < b ? (a < c ? a : c) : (b < c ? b : c);
}

static int slow_distance(const int *a, int n_a, const int *b, int n_b)
{
    if (n_a == 0 || n_b == 0) return n_a + n_b;
    return min3(slow_distance(a, n_a - 1, b, n_b) + 1, slow_distance(a, n_a, b, n_b - 1) + 1,
                slow_distance(a, n_a - 1, b, n_b - 1) + (a[n_a - 1] != b[n_b - 1]));
}

static void edit_distance_is_a_distance(void **state)
{
    (void)state;
    enum { LONG = 1500 };
    die d = {4};
    int s[3][12], n[3], row[LONG + 1];
    for (int i = 0; i < 3000; i++) {
        for (int k = 0; k < 3; k++) {
            n[k] = die_below(&d, 12);
            for (int j = 0; j < n[k]; j++) s[k][j] = die_below(&d, 4) - 1; /* RWS_OOV among them */
        }
        const int ab = rws_edit_distance(s[0], n[0], s[1], n[1], row),
                  bc = rws_edit_distance(s[1], n[1], s[2], n[2], row);
        const int ac = rws_edit_distance(s[0], n[0], s[2], n[2], row);
        assert_int_equal(ab, rws_edit_distance(s[1], n[1], s[0], n[0], row));
        assert_int_equal(rws_edit_distance(s[0], n[0], s[0], n[0], row), 0);
        assert_true(ac <= ab + bc && ab >= abs(n[0] - n[1]));
        assert_true((ab == 0) == (n[0] == n[1] && memcmp(s[0], s[1], sizeof(int) * (size_t)n[0]) == 0));
        if (n[0] <= 5 && n[1] <= 5) assert_int_equal(ab, slow_distance(s[0], n[0], s[1], n[1]));
    }

    const int words[] = {0, 1, 2}, unknown[] = {RWS_OOV, RWS_OOV, RWS_OOV}, mixed[] = {0, RWS_OOV, 2};
    assert_int_equal(rws_edit_distance(words, 3, unknown, 3, row), 3);
    assert_int_equal(rws_edit_distance(words, 3, mixed, 3, row), 1);
    assert_int_equal(rws_edit_distance(unknown, 3, mixed, 3, row), 2);
    assert_int_equal(rws_edit_distance(unknown, 3, unknown, 2, row), 1);
    assert_int_equal(rws_edit_distance(NULL, 0, words, 3, row), 3);
    assert_int_equal(rws_edit_distance(NULL, 0, NULL, 0, row), 0);

    int *a = malloc(sizeof(int) * LONG), *b = malloc(sizeof(int) * LONG);
    for (int i = 0; i < LONG; i++) a[i] = i, b[i] = i == 0 || i == LONG - 1 ? -2 : i;
    assert_int_equal(rws_edit_distance(a, LONG, b, LONG, row), 2);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted_and_rules_in_order),
        cmocka_unit_test(text_in_other_forms),
        cmocka_unit_test(bad_grammars_are_refused),
        cmocka_unit_test(large_grammars_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
        cmocka_unit_test(damaged_files_are_refused_or_read),
        cmocka_unit_test(astronomers_have_the_known_numbers),
        cmocka_unit_test(charts_agree_with_the_closed_form),
        cmocka_unit_test(moments_are_exact),
        cmocka_unit_test(samples_follow_the_grammar),
        cmocka_unit_test(caps_leave_leaves),
        cmocka_unit_test(relaxed_evidence_by_enumeration),
        cmocka_unit_test(charts_agree_with_brute_force),
        cmocka_unit_test(expected_counts_are_the_gradient),
        cmocka_unit_test(long_sentences_do_not_underflow),
        cmocka_unit_test(broken_numbers_are_refused),
        cmocka_unit_test(grammars_of_the_program),
        cmocka_unit_test(edit_distance_is_a_distance),
    };
    return cmocka_run_group_tests_name("grammar", tests, setup, teardown);
}
