/* test_starved.c - without memory, everything that reads and writes files returns RWS_NO_MEMORY with a message and
 * frees what it had: each action is repeated with its first, second, third … allocation failing, until it succeeds.
 *
 * Requests of SQLite, jansson and zlib fail too. Under a sanitizer, which needs the place of malloc for itself, only those
 * of our own code do, and the sanitizer finds what is lost. */
#include "failing.h"
#include "files.h"

#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "models/corpora/canvas.h"
#include "models/corpora/idx.h"
#include "models/corpora/parse.h"
#include "models/corpora/sentences.h"
#include "data/table.h"
#include "engine/setup.h"
#include "rws_results.h"
#include "data/safetensors.h"
#include "store/store.h"

#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* SQLite must find these */

/* Thousands of files are written, and none has to survive a power cut. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

#pragma GCC visibility pop

typedef rws_status action(rws_error *err);

/* Runs the action with each of its allocations failing in turn. */
static void starve(action *run)
{
    rws_error err = {""};
    must(run(&err), &err); /* what libraries keep for good, they take now */
    for (long n = 0;; n++) {
        const long before = failing_live();
        err.text[0] = '\0';
        failing_set(n, false); /* only one, so that what comes after it is seen too */
        const rws_status status = run(&err);
        const bool       failed = failing_count() > n;
        failing_set(-1, false);
        const long lost = failing_live() - before;
        if (lost != 0) fail_msg("allocation %ld: %ld pieces of memory are lost", n, lost);
        if (!failed) {
            must(status, &err);
            assert_true(n > 3);
            return;
        }
        if (status == RWS_OK) continue; /* a library found a way around */
        if (status != RWS_NO_MEMORY) fail_msg("allocation %ld: status %d, \"%s\"", n, (int)status, err.text);
        assert_sentence(&err, "memory");
    }
}

/* ---- data */

static const char *const sentences = "stars saw ears\nastronomers saw stars with ears\nears saw telescopes\n";

/* A grammar, read from a file; sentences of a file; the exact parser on one of them; sentences that are drawn. */
static rws_status use_grammar(rws_error *err)
{
    double           log_p[64], counts[64], nodes[16], length;
    int              n_words;
    rws_grammar     *g = NULL;
    rws_corpus       corpus = {0};
    rws_parses       parses = {0};
    char            *text = NULL;
    size_t           size;
    rws_random       random = rws__random_new(rws__key_for(1, 0, RWS_KEY_TEST, 0), 0);
    rws_status       status = rws__grammar_read(in_folder("a.pcfg"), &g, err);
    rws_parse_chart *sum = NULL;
    if (status == RWS_OK)
        status = rws__corpus_read(g, in_folder("sentences"), NULL, RWS_UNKNOWN_REFUSE, 100, &corpus, err);
    if (status == RWS_OK) {
        const int *x = rws__corpus_sentence(&corpus, RWS_TRAIN, 1, &n_words);
        rws__grammar_log_p(g, log_p);
        status = rws__parses_init(&parses, g, log_p, x, n_words, 100, err);
        if (status == RWS_OK) status = rws__parse_chart_new(g, RWS_PARSE_SUM, log_p, x, n_words, &sum, err);
        if (status == RWS_OK) status = rws__parse_chart_expected_counts(sum, counts, err);
    }
    if (status == RWS_OK) status = rws__parse_tree_moments(g, log_p, nodes, &length, err);
    if (status == RWS_OK) status = rws__sentences_draw(g, 50, &random, &text, &size, err);
    free(text);
    rws__parse_chart_free(sum);
    rws__parses_release(&parses);
    rws__corpus_release(&corpus);
    rws__grammar_free(g);
    return status;
}

static void grammars(void **state)
{
    (void)state;
    static const char grammar[] = "start S\nS -> NP VP\nPP -> P NP\nVP -> V NP 0.7 | VP PP 0.3\nP -> with\nV -> saw\n"
                                  "NP -> NP PP 0.4 | astronomers 0.1 | ears 0.28 | stars 0.12 | telescopes 0.1\n";
    spill("a.pcfg", grammar, strlen(grammar));
    spill("sentences", sentences, strlen(sentences));
    starve(use_grammar);
}

/* Canvases drawn from digits, written, and read again; digits in an IDX file. */
static rws_status use_images(rws_error *err)
{
    uint8_t          pixels[4][8][8], labels[4] = {0};
    const rws_digits digits = {4, 8, 8, &pixels[0][0][0], labels};
    rws_idx          idx = {.n_dims = 3, .dims = {4, 8, 8}, .n_values = sizeof pixels, .values = &pixels[0][0][0]};
    rws_idx          again = {0};
    rws_canvases     train = {0}, test = {0}, read = {0};
    memset(pixels, 255, sizeof pixels);
    rws_status status = rws__canvases_draw(&digits, RWS_TRAIN, 5, 20, 2, 1, NULL, NULL, &train, err);
    if (status == RWS_OK) status = rws__canvases_draw(&digits, RWS_TEST, 5, 20, 2, 1, NULL, NULL, &test, err);
    if (status == RWS_OK) status = rws__canvases_write(in_folder("canvases"), 1, &train, &test, err);
    if (status == RWS_OK) status = rws__canvases_open(in_folder("canvases"), RWS_TEST, &read, err);
    if (status == RWS_OK) status = rws__idx_write(in_folder("idx"), &idx, err);
    if (status == RWS_OK) status = rws__idx_read(in_folder("idx"), &again, err);
    rws__canvases_release(&train);
    rws__canvases_release(&test);
    rws__canvases_release(&read);
    rws__idx_release(&again);
    return status;
}

static void images(void **state)
{
    (void)state;
    starve(use_images);
}

/* A text that grows: it is whole, or there is none. */
static rws_status use_text(rws_error *err)
{
    rws_text  t;
    FILE     *out = rws__text_open(&t);
    const int n = 5000;
    for (int i = 0; out && i < n; i++) fprintf(out, "line %6d\n", i);
    char *text = rws__text_end(&t);
    if (!text) return rws_no_memory(err, "a text");
    assert_int_equal(t.n, 12 * n);
    for (int i = 0; i < n; i++) assert_int_equal(atoi(text + 12 * i + 4), i);
    free(text);
    return RWS_OK;
}

static void texts(void **state)
{
    (void)state;
    starve(use_text);
}

static rws_status use_paths(rws_error *err)
{
    char      *inner = rws__file_join(in_folder("a"), "b"), *file = rws__file_join(inner, "c");
    uint8_t   *bytes = NULL;
    size_t     size;
    rws_status status = rws__file_make_folder(inner, err);
    if (status == RWS_OK) status = rws__file_write_text(file, "text", err);
    if (status == RWS_OK) status = rws__file_read(file, 100, &bytes, &size, err);
    free(bytes);
    free(file);
    free(inner);
    return status;
}

static void paths(void **state)
{
    (void)state;
    starve(use_paths);
}

/* Tables in a setup, from text with a file of test rows, from NPY, and from safetensors. */
static rws_status use_tables(rws_error *err)
{
    static const rws_setting settings[] = {{"data", "", 0, 0, "", false}, {"test_data", "", 0, 0, "", false}};
    static const char *const files[][2] = {
        {"table.csv", "table.csv"}, {"table.csv", ""}, {"table.npy", ""}, {"table.safetensors", ""}};
    for (int i = 0; i < COUNT(files); i++) {
        char train[100], test[100] = "";
        strcpy(train, in_folder(files[i][0]));
        if (*files[i][1]) strcpy(test, in_folder(files[i][1]));
        rws_given  given[2] = {{&settings[0], train}, {&settings[1], test}};
        rws_setup  s = {.given = given, .n_given = 2, .seed = 1};
        rws_random random = rws__random_new(rws__key_for(1, 0, RWS_KEY_TEST, 0), 0);
        float      x[8];
        rws_table *t = rws_setup_table(&s, NULL, &(rws_table_options){.test = "test_data"});
        if (rws_setup_table_field(&s, t, "x", "1:2") == 2)
            if (rws_table_fill(t, RWS_TEST, 0, 4, &random, (float *[]){x}, &s.error) != RWS_OK) s.status = RWS_BROKEN;
        const rws_status status = s.status;
        *err = s.error;
        rws__setup_release(&s);
        if (status != RWS_OK) return status;
    }
    return RWS_OK;
}

static void tables(void **state)
{
    (void)state;
    static const char    text[] = "a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n1,2\n3,4\n";
    static const char    npy[] = "\x93NUMPY\1\0\x39\0{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}ABCDEF";
    const float          x[6] = {1, 2, 3, 4, 5, 6};
    const rws_tensor_out tensor = {"x", RWS_DTYPE_F32, 2, {2, 3}, x};
    rws_error            err;
    spill("table.csv", text, strlen(text));
    spill("table.npy", npy, 10 + 57 + 6);
    must(rws__safetensors_write(in_folder("table.safetensors"), &tensor, 1, NULL, &err), &err);
    starve(use_tables);
}

/* ---- runs */

static rws_status use_tensors(rws_error *err)
{
    const float          x[6] = {1, 2, 3, 4, 5, 6};
    const rws_tensor_out tensors[] = {{"a", RWS_DTYPE_F32, 2, {2, 3}, x}, {"b", RWS_DTYPE_F32, 1, {6}, x}};
    rws_safetensors     *st;
    rws_status           status = rws__safetensors_write(in_folder("tensors"), tensors, 2, NULL, err);
    if (status == RWS_OK) status = rws__safetensors_open(in_folder("tensors"), &st, err);
    if (status == RWS_OK) rws__safetensors_close(st);
    return status;
}

static void tensors(void **state)
{
    (void)state;
    starve(use_tensors);
}

static rws_status use_store(rws_error *err)
{
    const char *const     names[] = {"p_error", "ess"};
    const double          values[] = {0.5, 3};
    const rws_shown       shown[] = {{"p", 0, "first", 0.25}, {"p", 1, NULL, 0.75}};
    const rws_store_run   run = {"one", "{\"method\": \"ww\", \"settings\": {\"start\": \"far\"}}", "0", "now"};
    const rws_store_entry entry = {10, 1.5, 2, names, values, 2, shown};
    const char *const path = in_folder("metrics.sqlite"), *const condition = "method=ws,ww";
    rws_store_progress progress;
    rws_results       *results = NULL;
    rws_status         status = rws__store_make(path, err);
    if (status == RWS_OK) status = rws__store_add(path, &run, &entry, 1, err);
    if (status == RWS_OK) status = rws__store_add_metrics(path, "one", &entry, err);
    if (status == RWS_OK) status = rws__store_fail(path, "one", 10, "It broke.", err);
    if (status == RWS_OK) status = rws__store_forget(path, "one", 9, 1, err);
    if (status == RWS_OK) status = rws__store_progress(path, "one", &progress, err);
    if (status == RWS_OK) status = rws__store_add(path, &run, &entry, 1, err);
    if (status == RWS_OK) status = rws_results_read((const char *const[]){folder}, 1, &results, err);
    if (status == RWS_OK) status = rws_results_filter(results, &condition, 1, err);
    if (status == RWS_OK) assert_int_equal(results->n, 1);
    rws_results_free(results);
    if (status == RWS_OK) status = rws__store_drop(path, "one", err);
    return status;
}

static void stores(void **state)
{
    (void)state;
    starve(use_store);
}

static rws_status use_sweep(rws_error *err)
{
    rws_sweep       *s = NULL;
    const rws_status status = rws_sweep_read(in_folder("sweep"), &s, err);
    if (status == RWS_OK) assert_int_equal(s->n, 240);
    rws_sweep_free(s);
    return status;
}

static void sweeps(void **state)
{
    (void)state;
    static const char text[] = "model gmm\nmethods ww dww\nparticles 2 5\nseeds 1-20\nset start far near\n"
                               "set dww.delta 0.1 0.2\n";
    spill("sweep", text, strlen(text));
    starve(use_sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammars), cmocka_unit_test(images), cmocka_unit_test(paths),  cmocka_unit_test(tables),
        cmocka_unit_test(tensors),  cmocka_unit_test(stores), cmocka_unit_test(sweeps), cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
