/* test_checkpoint.c - a run's folder gives back what was put in, bit for bit, refuses with a sentence what does not
 * fit, and loses nothing by a refusal, a full disk or a kill.
 *
 * The trainer here is a stand-in: a few parameters and numbers behind the functions of run.h that the folder calls. The
 * program is therefore linked with the files it tests, not with the library. */
#include "run/checkpoint.h"
#include "run/config.h"
#include "run/safetensors.h"
#include "run/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HUGE_SEED 18446744073709551557u

/* ---- a stand-in for the trainer --------------------------------------------------------------------------------- */

enum { MAX_GIVEN = 80 };

struct rws_trainer {
    rws_config           config;
    rws_model            model;
    rws_setting          settings[MAX_GIVEN];
    rws_given            given[MAX_GIVEN];
    int                  n_given;
    rws_params           params;
    const rws_optimiser *optimiser;
    float               *slot[2];
    uint64_t             steps[RWS_GROUPS], iteration;
    double               memory[RWS_METHOD_MEMORY];
    const char          *metrics[RWS_METRICS];
    int                  n_metrics;
    int                  n_loaded; /* calls of rws_trainer_state_loaded */
};

const rws_config *rws_trainer_config(const rws_trainer *t)
{
    return &t->config;
}

const rws_model *rws_trainer_model(const rws_trainer *t)
{
    return &t->model;
}

const rws_given *rws_trainer_settings(const rws_trainer *t, int *n)
{
    *n = t->n_given;
    return t->given;
}

int rws_trainer_n_metrics(const rws_trainer *t)
{
    return t->n_metrics;
}

const char *rws_trainer_metric_name(const rws_trainer *t, int i)
{
    return t->metrics[i];
}

rws_trainer_state rws_trainer_state_of(rws_trainer *t)
{
    return (rws_trainer_state){.params = &t->params,
                               .optimiser = t->optimiser,
                               .slot = {t->slot[0], t->slot[1]},
                               .steps = t->steps,
                               .iteration = &t->iteration,
                               .memory = t->memory};
}

void rws_trainer_state_loaded(rws_trainer *t)
{
    rws_params_transpose(&t->params, ~0u, t->params.value, t->params.transposed);
    t->n_loaded++;
}

static const rws_optimiser two_slots = {.name = "adam", .n_slots = 2, .slot_names = {"mean", "square"}};
static const rws_optimiser one_slot = {.name = "momentum", .n_slots = 1, .slot_names = {"velocity"}};
static const rws_optimiser no_slot = {.name = "sgd"};

static void give(rws_trainer *t, const char *name, const char *value)
{
    assert_true(t->n_given < MAX_GIVEN);
    t->settings[t->n_given] = (rws_setting){.name = name};
    t->given[t->n_given] = (rws_given){&t->settings[t->n_given], value};
    t->n_given++;
}

/* With parameters in all groups, declared in another order than that of the flat vector. `n_out` is the size of the
 * guide's layer: with 1 its weight is a matrix of one row. */
static rws_trainer *trainer_new(const rws_optimiser *optimiser, int n_out)
{
    rws_trainer *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->config = (rws_config){.model = "gmm",
                             .method = "rebar",
                             .particles = 20,
                             .batch = 100,
                             .shards = 4,
                             .n_test = 77,
                             .eval_particles = 5000,
                             .iterations = 200000,
                             .eval_every = 1000,
                             .seed = HUGE_SEED,
                             .threads = 2,
                             .scalar = true,
                             .optimiser = optimiser->name,
                             .lr = "1e-3*0.5@1000",
                             .l2 = 0.1};
    t->model = (rws_model){.abi = RWS_ABI, .name = "gmm"};
    give(t, "theta_mult", "5");
    give(t, "text", "a=b, \"c\" \\ \xc3\xa4\n");
    give(t, "empty", "");
    t->optimiser = optimiser;
    rws_params_add(&t->params, RWS_PHI, "phi.mlp.0.weight", n_out, 3)->transposed = true;
    rws_params_add(&t->params, RWS_PHI, "phi.mlp.0.bias", 1, n_out);
    rws_params_add(&t->params, RWS_THETA, "theta", 1, 5);
    rws_params_add(&t->params, RWS_BASELINE, "baseline.table", 2, 2);
    rws_params_pack(&t->params);
    for (int i = 0; i < 2; i++) t->slot[i] = calloc(t->params.size, sizeof *t->slot[i]);
    t->metrics[t->n_metrics++] = "p_error";
    t->metrics[t->n_metrics++] = "log_evidence";
    t->metrics[t->n_metrics++] = "ess";
    return t;
}

static void trainer_free(rws_trainer *t)
{
    rws_params_release(&t->params);
    for (int i = 0; i < 2; i++) free(t->slot[i]);
    free(t);
}

static uint32_t random_bits(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8 ^ *seed << 16;
}

/* Any finite float may be a parameter: zeros with a sign, subnormals, the largest. */
static void fill(rws_trainer *t, uint32_t seed)
{
    const float odd[] = {-0.0f, 1e-45f, -1e-39f, 3.4028235e38f, 1.0f / 3.0f};
    for (size_t i = 0; i < t->params.size; i++) {
        do {
            const uint32_t bits = random_bits(&seed);
            memcpy(&t->params.value[i], &bits, sizeof bits);
        } while (!isfinite(t->params.value[i]));
        if (i < 5) t->params.value[i] = odd[i];
        for (int k = 0; k < 2; k++) {
            const uint32_t bits = random_bits(&seed); /* a slot may be anything, a NaN with a message too */
            memcpy(&t->slot[k][i], &bits, sizeof bits);
        }
    }
    for (int i = 0; i < RWS_GROUPS; i++) t->steps[i] = ((uint64_t)random_bits(&seed) << 32) + (uint64_t)i;
    t->iteration = random_bits(&seed) % 1000 + 100;
    const uint64_t nan_bits = 0x7ff8000012345678u;
    memcpy(&t->memory[0], &nan_bits, sizeof nan_bits);
    t->memory[1] = -1.0 / 3.0;
    rws_params_transpose(&t->params, ~0u, t->params.value, t->params.transposed);
}

static bool same_state(const rws_trainer *a, const rws_trainer *b)
{
    const size_t bytes = a->params.size * sizeof(float);
    bool         same = a->params.size == b->params.size && a->optimiser == b->optimiser;
    same = same && a->iteration == b->iteration && memcmp(a->steps, b->steps, sizeof a->steps) == 0;
    same = same && memcmp(a->params.value, b->params.value, bytes) == 0;
    same = same && memcmp(a->params.transposed, b->params.transposed, a->params.transposed_size * sizeof(float)) == 0;
    for (int i = 0; i < a->optimiser->n_slots; i++) same = same && memcmp(a->slot[i], b->slot[i], bytes) == 0;
    return same && memcmp(a->memory, b->memory, sizeof a->memory) == 0;
}

/* ---- folders ---------------------------------------------------------------------------------------------------- */

static char root[PATH_MAX], run_path[PATH_MAX], text_buffer[PATH_MAX];

/* root/NAME; overwritten by the next call. */
static const char *in_root(const char *name)
{
    assert_true((size_t)snprintf(text_buffer, sizeof text_buffer, "%.200s/%s", root, name) < sizeof text_buffer);
    return text_buffer;
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/rws-checkpoint-XXXXXX");
    if (!mkdtemp(root)) return -1;
    strcpy(run_path, in_root("run"));
    return 0;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about, (void)type, (void)where;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    rws_store_patience(10000);
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_there(const char *name)
{
    struct stat about;
    return lstat(in_root(name), &about) == 0;
}

/* The whole file, with a zero after it; the caller frees it. */
static char *slurp(const char *name, size_t *size)
{
    FILE *f = fopen(in_root(name), "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    bytes[*size] = '\0';
    fclose(f);
    return bytes;
}

static void spill(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(in_root(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* A refusal is a status and a whole sentence with these words in it. */
static void check_refused(rws_status status, rws_status expected, const rws_error *err, const char *a, const char *b)
{
    if (status != expected) fail_msg("status %d instead of %d (%s, %s)", status, expected, a, b);
    const size_t length = strlen(err->text);
    if (length < 10 || err->text[length - 1] != '.') fail_msg("not a sentence: %s", err->text);
    if (!strstr(err->text, a)) fail_msg("\"%s\" is not in: %s", a, err->text);
    if (!strstr(err->text, b)) fail_msg("\"%s\" is not in: %s", b, err->text);
}

static void must(rws_status status, const rws_error *err)
{
    if (status != RWS_OK) fail_msg("refused: %s", err->text);
}

static rws_folder *create(const rws_trainer *t)
{
    rws_error   err = {""};
    rws_folder *f = NULL;
    must(rws_folder_create(run_path, t, &f, &err), &err);
    assert_non_null(f);
    return f;
}

static void save(rws_folder *f, rws_trainer *t, double seconds)
{
    rws_error err = {""};
    must(rws_folder_save(f, t, seconds, &err), &err);
    assert_false(is_there("run/checkpoint.safetensors.tmp"));
}

/* The load is refused, with these words, and changes nothing. */
static void refuses_load(rws_folder *f, rws_trainer *t, const char *a, const char *b)
{
    rws_trainer *before = trainer_new(t->optimiser, t->params.list[0]->rows);
    memcpy(before->params.value, t->params.value, t->params.size * sizeof(float));
    rws_params_transpose(&before->params, ~0u, before->params.value, before->params.transposed);
    for (int i = 0; i < 2; i++) memcpy(before->slot[i], t->slot[i], t->params.size * sizeof(float));
    memcpy(before->steps, t->steps, sizeof t->steps);
    memcpy(before->memory, t->memory, sizeof t->memory);
    before->iteration = t->iteration;
    const int n_loaded = t->n_loaded;
    double    seconds = 123;
    rws_error err = {""};
    check_refused(rws_folder_load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, a, b);
    err.text[0] = '\0';
    check_refused(rws_folder_look(f, t, &seconds, &err), RWS_BAD_INPUT, &err, a, b);
    assert_true(same_state(t, before));
    assert_int_equal(t->n_loaded, n_loaded);
    assert_true(seconds == 123);
    trainer_free(before);
}

/* ---- the configuration ------------------------------------------------------------------------------------------ */

static void same_config(const rws_config *a, const rws_config *b)
{
    assert_string_equal(a->model, b->model);
    assert_string_equal(a->method, b->method);
    assert_int_equal(a->particles, b->particles);
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->shards, b->shards);
    assert_int_equal(a->n_test, b->n_test);
    assert_int_equal(a->eval_particles, b->eval_particles);
    assert_true(a->iterations == b->iterations);
    assert_true(a->eval_every == b->eval_every);
    assert_true(a->seed == b->seed);
    assert_int_equal(a->threads, b->threads);
    assert_true(a->scalar == b->scalar);
    assert_string_equal(a->optimiser, b->optimiser);
    assert_string_equal(a->lr, b->lr);
    assert_memory_equal(&a->l2, &b->l2, sizeof a->l2);
}

static void config_comes_back(void **state)
{
    (void)state;
    const uint64_t seeds[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX, HUGE_SEED};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        rws_trainer *t = trainer_new(&two_slots, 4);
        t->config.seed = seeds[i];
        t->config.scalar = i % 2;
        t->config.l2 = (double)i / 3;
        rws_folder_close(create(t));
        assert_false(is_there("run/config.json.tmp"));

        rws_error   err = {""};
        rws_config  read;
        rws_folder *f;
        must(rws_folder_open(run_path, &read, &f, &err), &err);
        same_config(&t->config, &read);
        assert_int_equal(read.n_set, 3);
        assert_string_equal(read.set[0], "theta_mult=5");
        assert_string_equal(read.set[1], "text=a=b, \"c\" \\ \xc3\xa4\n");
        assert_string_equal(read.set[2], "empty=");
        assert_false(rws_folder_has_checkpoint(f));
        rws_folder_close(f);
        trainer_free(t);
        assert_int_equal(unlink(in_root("run/config.json")), 0);
    }
}

static void config_is_plain_json(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_folder_close(create(t));
    json_t *j = json_load_file(in_root("run/config.json"), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(j, "format")), 1);
    assert_string_equal(json_string_value(json_object_get(j, "version")), RWS_VERSION);
    assert_string_equal(json_string_value(json_object_get(j, "seed")), "18446744073709551557");
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "settings"), "theta_mult")), "5");
    json_decref(j);
    trainer_free(t);
}

/* No settings, and as many as there can be; one more is refused before anything is made. */
static void config_has_room_for_settings(void **state)
{
    (void)state;
    static char names[65][16];
    for (int n = 0; n <= 65; n += n == 0 ? 64 : 1) {
        rws_trainer *t = trainer_new(&two_slots, 4);
        rws_error    err = {""};
        rws_folder  *f;
        rws_config   read;
        t->n_given = 0;
        for (int i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "name%d", i);
            give(t, names[i], "x");
        }
        const rws_status status = rws_folder_create(run_path, t, &f, &err);
        if (n <= 64) {
            must(status, &err);
            rws_folder_close(f);
            must(rws_folder_open(run_path, &read, &f, &err), &err);
            assert_int_equal(read.n_set, n);
            if (n) assert_string_equal(read.set[63], "name63=x");
            rws_folder_close(f);
            assert_int_equal(unlink(in_root("run/config.json")), 0);
            assert_int_equal(rmdir(in_root("run")), 0);
        } else {
            check_refused(status, RWS_BAD_INPUT, &err, "65", "settings");
            assert_null(f);
            assert_false(is_there("run"));
        }
        trainer_free(t);
    }
}

static void open_refused(const char *a, const char *b)
{
    rws_error   err = {""};
    rws_config  read, before;
    rws_folder *f = (rws_folder *)&err;
    memset(&read, 0x5a, sizeof read);
    before = read;
    check_refused(rws_folder_open(run_path, &read, &f, &err), RWS_BAD_INPUT, &err, a, b);
    assert_null(f);
    assert_memory_equal(&read, &before, sizeof read);
}

static void put_config(const json_t *j)
{
    assert_int_equal(json_dump_file(j, in_root("run/config.json"), 0), 0);
}

static void config_is_read_strictly(void **state)
{
    (void)state;
    const char *key, *const others[] = {"null", "[]", "-1.5", "true", "\"-1\"", "\"1x\"", "18446744073709551616", "{}"};
    json_t *value, *good, *j;
    open_refused("run", "no run");
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_folder_close(create(t));
    good = json_load_file(in_root("run/config.json"), 0, NULL);
    assert_int_equal(json_object_size(good), 18);

    json_object_foreach(good, key, value)
    {
        j = json_copy(good);
        json_object_del(j, key);
        put_config(j);
        char named[64];
        snprintf(named, sizeof named, "\"%s\"", key);
        open_refused("run/config.json", named);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            json_t *other = json_loads(others[i], JSON_DECODE_ANY, NULL);
            if (!other) continue; /* too large for this reader's integers; below as text */
            const bool fits = (json_is_string(other) && json_is_string(value) && strcmp(key, "seed") != 0) ||
                              (json_is_true(other) && json_is_boolean(value)) ||
                              (json_is_object(other) && json_is_object(value)) ||
                              (json_is_real(other) && json_is_real(value));
            json_object_set_new(j, key, other);
            put_config(j);
            if (!fits) open_refused("run/config.json", named);
        }
        json_decref(j);
    }

    const struct {
        const char *key, *value, *word;
    } wrong[] = {
        {"format", "2", "format"},
        {"format", "0", "format"},
        {"batch", "2147483648", "\"batch\""},
        {"seed", "-1", "\"seed\""},
        {"seed", "\"18446744073709551616\"", "\"seed\""},
        {"seed", "\"\"", "\"seed\""},
        {"seed", "\" 1\"", "\"seed\""},
        {"seed", "\"+1\"", "\"seed\""},
        {"settings", "{\"theta_mult\": 5}", "\"theta_mult\""},
        {"bacth", "5", "\"bacth\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        j = json_copy(good);
        json_object_set_new(j, wrong[i].key, json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        put_config(j);
        open_refused("run/config.json", wrong[i].word);
        json_decref(j);
    }
    j = json_copy(good);
    json_t *many = json_object();
    for (int i = 0; i < 65; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        json_object_set_new(many, name, json_string(""));
    }
    json_object_set_new(j, "settings", many);
    put_config(j);
    open_refused("run/config.json", "\"settings\"");
    json_decref(j);

    put_config(good);
    size_t size;
    char  *bytes = slurp("run/config.json", &size);
    for (size_t n = 0; n < size; n++) { /* cut short anywhere */
        spill("run/config.json", bytes, n);
        open_refused("run/config.json", "JSON");
    }
    spill("run/config.json", "[1]", 3);
    open_refused("run/config.json", "object");
    spill("run/config.json", "{\"format\": 1, \"format\": 1}", 26);
    open_refused("run/config.json", "JSON");
    spill("run/config.json", "\0\xff\x01garbage", 10);
    open_refused("run/config.json", "JSON");
    unlink(in_root("run/config.json"));
    open_refused("run/config.json", "missing");
    assert_int_equal(mkfifo(in_root("run/config.json"), 0600), 0);
    open_refused("run/config.json", "regular");
    free(bytes);
    json_decref(good);
    trainer_free(t);
}

/* A model of the user's own is found again from elsewhere; a built-in one keeps its name. */
static void model_path_becomes_absolute(void **state)
{
    (void)state;
    char here[PATH_MAX], expected[PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_config   read;
    rws_folder  *f;
    spill("mine.so", "", 0);
    assert_non_null(realpath(in_root("mine.so"), expected));
    assert_int_equal(chdir(root), 0);
    t->config.model = "./mine.so";
    rws_folder_close(create(t));
    assert_int_equal(chdir(here), 0);
    must(rws_folder_open(run_path, &read, &f, &err), &err);
    assert_string_equal(read.model, expected);
    rws_folder_close(f);
    assert_string_equal(t->config.model, "./mine.so");

    t->config.model = "./nowhere/mine.so";
    strcpy(run_path, in_root("other"));
    check_refused(rws_folder_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "nowhere/mine.so", "model");
    assert_false(is_there("other"));
    trainer_free(t);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f;
    give(t, "path", "\xff");
    check_refused(rws_folder_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "\"path\"", "UTF-8");
    t->n_given--;
    t->config.lr = "\xff";
    check_refused(rws_folder_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "\"lr\"", "UTF-8");
    assert_false(is_there("run"));
    trainer_free(t);
}

/* ---- making a folder -------------------------------------------------------------------------------------------- */

static void create_makes_parents(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    const char  *tails[] = {"a/b//c/run", "a/b/d/", "e///"};
    for (int i = 0; i < 3; i++) {
        strcpy(run_path, in_root(tails[i]));
        rws_folder_close(create(t));
    }
    assert_true(is_there("a/b/c/run/config.json"));
    assert_true(is_there("a/b/d/config.json"));
    assert_true(is_there("e/config.json"));

    assert_int_equal(mkdir(in_root("empty"), 0777), 0);
    strcpy(run_path, in_root("empty"));
    spill("empty/config.json.tmp", "left by a kill", 14);
    rws_folder_close(create(t));
    assert_true(is_there("empty/config.json"));
    assert_false(is_there("empty/config.json.tmp"));
    trainer_free(t);
}

static void create_refused(const rws_trainer *t, const char *a, const char *b)
{
    rws_error   err = {""};
    rws_folder *f = (rws_folder *)&err;
    check_refused(rws_folder_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, a, b);
    assert_null(f);
}

static void create_takes_nothing_over(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    const char  *files[] = {"run/config.json", "run/checkpoint.safetensors", "run/metrics.sqlite"};
    assert_int_equal(mkdir(in_root("run"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        spill(files[i], "precious", 8);
        create_refused(t, run_path, i < 2 ? "--resume" : "metrics.sqlite");
        create_refused(t, run_path, "--out");
        size_t size;
        char  *bytes = slurp(files[i], &size);
        assert_string_equal(bytes, "precious");
        free(bytes);
        unlink(in_root(files[i]));
        assert_int_equal(rmdir(in_root("run")), 0); /* nothing else was put there */
        assert_int_equal(mkdir(in_root("run"), 0777), 0);
    }
    assert_int_equal(rmdir(in_root("run")), 0);
    assert_int_equal(symlink("nowhere", in_root("run")), 0);
    create_refused(t, run_path, "folder");
    unlink(in_root("run"));

    spill("run", "precious", 8);
    create_refused(t, run_path, "is a file");
    strcpy(run_path, in_root("run/below"));
    create_refused(t, "/run\"", "is a file");
    run_path[0] = '\0';
    create_refused(t, "folder", "\"\"");
    memset(run_path, 'x', 300);
    run_path[300] = '\0';
    create_refused(t, "...xxx", "too long");
    trainer_free(t);
}

/* ---- the checkpoint --------------------------------------------------------------------------------------------- */

static void checkpoint_comes_back(void **state)
{
    (void)state;
    const rws_optimiser *const optimisers[] = {&two_slots, &one_slot, &no_slot};
    for (int i = 0; i < 3; i++) {
        for (int n_out = 1; n_out <= 20; n_out += 19) {
            rws_trainer *a = trainer_new(optimisers[i], n_out), *b = trainer_new(optimisers[i], n_out);
            fill(a, 17);
            rws_folder *f = create(a);
            assert_false(rws_folder_has_checkpoint(f));
            save(f, b, 1); /* to be replaced */
            spill("run/checkpoint.safetensors.tmp", "left by a kill", 14);
            save(f, a, 1.0 / 3.0);
            assert_true(rws_folder_has_checkpoint(f));
            rws_folder_close(f);

            rws_error  err = {""};
            rws_config read;
            double     seconds = 0;
            must(rws_folder_open(run_path, &read, &f, &err), &err);
            assert_true(rws_folder_has_checkpoint(f));
            must(rws_folder_load(f, b, &seconds, &err), &err);
            assert_true(seconds == 1.0 / 3.0);
            assert_true(same_state(a, b));
            assert_int_equal(b->n_loaded, 1);
            assert_false(is_there("run/metrics.sqlite")); /* there was nothing to forget */
            rws_folder_close(f);
            trainer_free(a);
            trainer_free(b);
            unlink(in_root("run/checkpoint.safetensors"));
            unlink(in_root("run/config.json"));
        }
    }
}

/* Names and shapes are a contract with readers in Python. */
static void checkpoint_has_known_tensors(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 1);
    fill(t, 3);
    rws_folder *f = create(t);
    save(f, t, 5);
    const struct {
        const char *name;
        rws_dtype   dtype;
        int         n_dims;
        size_t      shape[2];
    } expected[] = {
        {"phi.mlp.0.weight", RWS_DTYPE_F32, 2, {1, 3}},
        {"phi.mlp.0.bias", RWS_DTYPE_F32, 1, {1}},
        {"theta", RWS_DTYPE_F32, 1, {5}},
        {"baseline.table", RWS_DTYPE_F32, 2, {2, 2}},
        {"optimiser.mean", RWS_DTYPE_F32, 1, {13}},
        {"optimiser.square", RWS_DTYPE_F32, 1, {13}},
        {"optimiser.steps", RWS_DTYPE_U64, 1, {RWS_GROUPS}},
        {"iteration", RWS_DTYPE_U64, 1, {1}},
        {"method.memory", RWS_DTYPE_F64, 1, {RWS_METHOD_MEMORY}},
        {"seconds", RWS_DTYPE_F64, 1, {1}},
    };
    const size_t     n = sizeof expected / sizeof *expected;
    rws_error        err = {""};
    rws_safetensors *st = rws_safetensors_open(in_root("run/checkpoint.safetensors"), &err);
    assert_non_null(st);
    assert_int_equal(rws_safetensors_count(st), n);
    const rws_tensor_in *found;
    for (size_t i = 0; i < n; i++) {
        const rws_status status = rws_safetensors_expect(st, expected[i].name, expected[i].dtype, expected[i].n_dims,
                                                         expected[i].shape, &found, &err);
        must(status, &err);
    }
    must(rws_safetensors_expect(st, "theta", RWS_DTYPE_F32, 1, (size_t[]){5}, &found, &err), &err);
    assert_memory_equal(found->data, t->params.list[2]->value, 5 * sizeof(float));
    assert_string_equal(rws_safetensors_metadata(st, "format"), "rws 1");
    assert_string_equal(rws_safetensors_metadata(st, "model"), "gmm");
    assert_string_equal(rws_safetensors_metadata(st, "method"), "rebar");
    assert_string_equal(rws_safetensors_metadata(st, "optimiser"), "adam");
    assert_string_equal(rws_safetensors_metadata(st, "version"), RWS_VERSION);
    rws_safetensors_close(st);
    rws_folder_close(f);
    trainer_free(t);
}

static void load_refuses_another_run(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4), *wider = trainer_new(&two_slots, 5), *plain = trainer_new(&no_slot, 4);
    fill(t, 3);
    fill(wider, 4);
    fill(plain, 5);
    rws_folder *f = create(t);
    refuses_load(f, t, "run/checkpoint.safetensors", "No such file");
    save(f, t, 5);
    t->model.name = "pcfg";
    refuses_load(f, t, "model \"gmm\"", "\"pcfg\"");
    t->model.name = "gmm";
    t->config.method = "ww";
    refuses_load(f, t, "method \"rebar\"", "\"ww\"");
    t->config.method = "rebar";
    refuses_load(f, plain, "optimiser \"adam\"", "\"sgd\"");
    refuses_load(f, wider, "run/checkpoint.safetensors", "\"phi.mlp.0.weight\"");
    rws_folder_close(f);
    trainer_free(t);
    trainer_free(wider);
    trainer_free(plain);
}

/* Writes the checkpoint again with one thing changed. */
typedef struct {
    const char    *drop, *drop_key; /* a tensor, or a key of the metadata, left out */
    const char    *change;          /* a tensor whose data, type or length is another */
    rws_tensor_out to;
    const char    *key, *value; /* of the metadata */
    bool           add;         /* `to` is one more tensor */
} edit;

static void rewrite(const char *from, const edit *e)
{
    rws_error        err = {""};
    rws_tensor_out   out[32];
    size_t           n = 0;
    json_t          *metadata = json_object();
    const char      *keys[] = {"format", "model", "method", "optimiser", "version"};
    rws_safetensors *st = rws_safetensors_open(in_root(from), &err);
    assert_non_null(st);
    for (int i = 0; i < 5; i++) {
        if (e->drop_key && strcmp(keys[i], e->drop_key) == 0) continue;
        json_object_set_new(metadata, keys[i], json_string(rws_safetensors_metadata(st, keys[i])));
    }
    if (e->key) json_object_set_new(metadata, e->key, json_string(e->value));
    for (size_t i = 0; i < rws_safetensors_count(st); i++) {
        const rws_tensor_in *in = rws_safetensors_at(st, i);
        if (e->drop && strcmp(in->name, e->drop) == 0) continue;
        out[n] = (rws_tensor_out){.name = in->name, .dtype = in->dtype, .n_dims = in->n_dims, .data = in->data};
        memcpy(out[n].shape, in->shape, sizeof in->shape);
        if (e->change && strcmp(in->name, e->change) == 0) out[n] = e->to;
        n++;
    }
    if (e->add) out[n++] = e->to;
    must(rws_safetensors_write(in_root("run/checkpoint.safetensors"), out, n, metadata, &err), &err);
    json_decref(metadata);
    rws_safetensors_close(st);
}

static void load_refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const float    zeros[16] = {0}, with_nan[5] = {0, 0, NAN}, with_inf[5] = {0, 0, 0, 0, -INFINITY};
    static const double   negative = -1, nan_seconds = NAN, doubles[5] = {0};
    static const uint64_t late = (uint64_t)INT64_MAX + 1;
    const struct {
        edit        edit;
        const char *word;
    } edits[] = {
        {{.drop = "theta"}, "\"theta\""},
        {{.drop = "optimiser.mean"}, "\"optimiser.mean\""},
        {{.drop = "optimiser.steps"}, "\"optimiser.steps\""},
        {{.drop = "iteration"}, "\"iteration\""},
        {{.drop = "method.memory"}, "\"method.memory\""},
        {{.drop = "seconds"}, "\"seconds\""},
        {{.drop_key = "format"}, "\"format\""},
        {{.drop_key = "model"}, "\"model\""},
        {{.drop_key = "method"}, "\"method\""},
        {{.drop_key = "optimiser"}, "\"optimiser\""},
        {{.key = "format", .value = "rws 2"}, "\"rws 2\""},
        {{.key = "model", .value = "pcfg\n"}, "\"pcfg?\""},
        {{.add = true, .to = {"phi.extra", RWS_DTYPE_F32, 1, {2}, zeros}}, "\"phi.extra\""},
        {{.add = true, .to = {"optimiser.third", RWS_DTYPE_F32, 1, {2}, zeros}}, "\"optimiser.third\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F32, 1, {6}, zeros}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F32, 1, {0}, NULL}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F32, 2, {1, 5}, zeros}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F64, 1, {5}, doubles}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_I32, 1, {5}, zeros}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F32, 1, {5}, with_nan}}, "\"theta\""},
        {{.change = "theta", .to = {"theta", RWS_DTYPE_F32, 1, {5}, with_inf}}, "\"theta\""},
        {{.change = "optimiser.mean", .to = {"optimiser.mean", RWS_DTYPE_F32, 1, {16}, zeros}}, "\"optimiser.mean\""},
        {{.change = "iteration", .to = {"iteration", RWS_DTYPE_U64, 1, {1}, &late}}, "\"iteration\""},
        {{.change = "iteration", .to = {"iteration", RWS_DTYPE_I64, 1, {1}, &late}}, "\"iteration\""},
        {{.change = "seconds", .to = {"seconds", RWS_DTYPE_F64, 1, {1}, &negative}}, "\"seconds\""},
        {{.change = "seconds", .to = {"seconds", RWS_DTYPE_F64, 1, {1}, &nan_seconds}}, "\"seconds\""},
    };
    rws_trainer *t = trainer_new(&two_slots, 4);
    fill(t, 8);
    rws_folder *f = create(t);
    save(f, t, 5);
    size_t size;
    char  *bytes = slurp("run/checkpoint.safetensors", &size);
    spill("good", bytes, size);
    free(bytes);
    fill(t, 9);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        rewrite("good", &edits[i].edit);
        refuses_load(f, t, "run/checkpoint.safetensors", edits[i].word);
    }
    rewrite("good", &(edit){0}); /* it was the edits */
    rws_error err = {""};
    double    seconds;
    must(rws_folder_load(f, t, &seconds, &err), &err);
    rws_folder_close(f);
    trainer_free(t);
}

static void load_refuses_damage(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    fill(t, 8);
    rws_folder *f = create(t);
    save(f, t, 5);
    size_t size;
    char  *bytes = slurp("run/checkpoint.safetensors", &size);
    fill(t, 9);
    for (size_t n = 0; n < size; n += n < 64 || n + 64 > size ? 1 : 7) {
        spill("run/checkpoint.safetensors", bytes, n);
        refuses_load(f, t, "run/checkpoint.safetensors", "run");
    }
    uint32_t seed = 1;
    char     noise[3000];
    for (int i = 0; i < 200; i++) {
        const size_t n = random_bits(&seed) % sizeof noise;
        for (size_t k = 0; k < n; k++) noise[k] = (char)random_bits(&seed);
        if (n > 8) memset(noise + 2, 0, 6); /* a header's length that may be true */
        spill("run/checkpoint.safetensors", noise, n);
        refuses_load(f, t, "run/checkpoint.safetensors", "run");
    }
    /* Any byte of the header changed: refused, or it was one that says nothing (a space, the version). */
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    for (size_t k = 0; k < 8 + header; k++) {
        rws_error  err = {""};
        double     seconds = -1;
        const char good = bytes[k];
        bytes[k] = (char)(good ^ (1 << random_bits(&seed) % 7));
        spill("run/checkpoint.safetensors", bytes, size);
        bytes[k] = good;
        if (rws_folder_look(f, t, &seconds, &err) == RWS_OK) fill(t, 9);
        else refuses_load(f, t, "run/checkpoint.safetensors", "run");
    }
    unlink(in_root("run/checkpoint.safetensors"));
    assert_int_equal(mkdir(in_root("run/checkpoint.safetensors"), 0777), 0);
    refuses_load(f, t, "run/checkpoint.safetensors", "regular");
    free(bytes);
    rws_folder_close(f);
    trainer_free(t);
}

static void save_keeps_the_last_good_one(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    fill(t, 8);
    rws_folder *f = create(t);
    save(f, t, 5);
    size_t size, now;
    char  *bytes = slurp("run/checkpoint.safetensors", &size);

    t->params.list[2]->value[4] = NAN;
    check_refused(rws_folder_save(f, t, 6, &err), RWS_BROKEN, &err, "run/checkpoint.safetensors", "\"theta\"");
    t->params.list[2]->value[4] = INFINITY;
    check_refused(rws_folder_save(f, t, 6, &err), RWS_BROKEN, &err, "run/checkpoint.safetensors", "\"theta\"");
    t->params.list[2]->value[4] = 1;

    /* A disk that is full in the middle of the file. */
    struct rlimit was, little;
    getrlimit(RLIMIT_FSIZE, &was);
    little = was;
    little.rlim_cur = 100;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    const rws_status full = rws_folder_save(f, t, 6, &err);
    rws_folder      *other;
    rws_error        other_err = {""};
    strcpy(run_path, in_root("other"));
    const rws_status other_full = rws_folder_create(run_path, t, &other, &other_err);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    check_refused(full, RWS_BAD_INPUT, &err, "run/checkpoint.safetensors", "too large");
    check_refused(other_full, RWS_BAD_INPUT, &other_err, "other/config.json", "too large");
    assert_false(is_there("run/checkpoint.safetensors.tmp"));
    assert_false(is_there("other/config.json.tmp"));
    assert_false(is_there("other/config.json"));
    rws_folder_close(create(t)); /* and then there is room again */

    assert_int_equal(mkdir(in_root("third"), 0777), 0);
    assert_int_equal(mkdir(in_root("third/config.json.tmp"), 0777), 0);
    strcpy(run_path, in_root("third"));
    create_refused(t, "third/config.json.tmp", "directory");

    char *bytes_now = slurp("run/checkpoint.safetensors", &now);
    assert_int_equal(size, now);
    assert_memory_equal(bytes, bytes_now, size);
    free(bytes);
    free(bytes_now);
    rws_folder_close(f);
    trainer_free(t);
}

/* A parameter that is called like something of ours cannot be told from it later. */
static void save_refuses_a_taken_name(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    strcpy(t->params.list[2]->name, "optimiser.steps");
    check_refused(rws_folder_save(f, t, 6, &err), RWS_BAD_INPUT, &err, "run/checkpoint.safetensors", "optimiser.steps");
    assert_false(rws_folder_has_checkpoint(f));
    rws_folder_close(f);
    trainer_free(t);
}

/* ---- the measures ----------------------------------------------------------------------------------------------- */

static sqlite3 *store_open(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(in_root("run/metrics.sqlite"), &db), SQLITE_OK);
    return db;
}

/* The first column of the first row as text, NULL as "NULL"; overwritten by the next call. */
static const char *ask(const char *sql)
{
    static char   answer[4096];
    sqlite3      *db = store_open();
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    const int   got = sqlite3_step(s);
    const char *text = got == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : "no row";
    snprintf(answer, sizeof answer, "%s", text ? text : "NULL");
    sqlite3_finalize(s);
    sqlite3_close(db);
    return answer;
}

static rws_status record(rws_folder *f, const rws_trainer *t, uint64_t iteration, double value, rws_error *err)
{
    const rws_measures m = {.iteration = iteration, .n = 3, .value = {value, -INFINITY, NAN}};
    rws_folder_record(f, t, &m, NULL, (double)iteration / 2);
    return rws_folder_flush(f, err);
}

static void measures_are_recorded(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    for (uint64_t i = 0; i <= 500; i += 100) must(record(f, t, i, (double)i / 3, &err), &err);
    must(record(f, t, 500, 0.1, &err), &err); /* again */
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "18");
    assert_string_equal(ask("SELECT count(DISTINCT run) FROM metrics WHERE run = 'run'"), "1");
    assert_string_equal(ask("SELECT value = 0.1 FROM metrics WHERE iteration = 500 AND name = 'p_error'"), "1");
    assert_string_equal(ask("SELECT value = 200 / 3.0 FROM metrics WHERE iteration = 200 AND name = 'p_error'"), "1");
    assert_string_equal(ask("SELECT value = -1e999 FROM metrics WHERE iteration = 100 AND name = 'log_evidence'"), "1");
    assert_string_equal(ask("SELECT value FROM metrics WHERE iteration = 100 AND name = 'ess'"), "NULL");
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE name = 'ess' AND value IS NULL"), "6");
    assert_string_equal(ask("SELECT seconds FROM metrics WHERE iteration = 300"), "150.0");
    assert_string_equal(ask("SELECT count(*) FROM runs"), "1");
    assert_string_equal(ask("SELECT iteration || ' ' || seconds FROM runs"), "500 250.0");
    assert_string_equal(ask("SELECT version FROM runs"), RWS_VERSION);
    assert_string_equal(ask("SELECT started GLOB '20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z'"
                            " FROM runs"),
                        "1");
    assert_string_equal(ask("SELECT length(host) > 0 FROM runs"), "1");
    assert_string_equal(ask("PRAGMA journal_mode"), "delete");
    assert_false(is_there("run/metrics.sqlite-journal"));

    json_t *stored = json_loads(ask("SELECT config FROM runs"), 0, NULL);
    json_t *written = json_load_file(in_root("run/config.json"), 0, NULL);
    assert_true(stored && json_equal(stored, written));
    json_decref(stored);
    json_decref(written);
    rws_folder_close(f);

    /* A run that was opened goes on with the same rows. */
    char       started[64], link[PATH_MAX];
    rws_config read;
    strcpy(started, ask("SELECT started FROM runs"));
    strcpy(link, in_root("link"));
    assert_int_equal(symlink("run", link), 0);
    must(rws_folder_open(link, &read, &f, &err), &err);
    must(record(f, t, 600, 1, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM runs"), "1");
    assert_string_equal(ask("SELECT iteration FROM runs"), "600");
    assert_string_equal(ask("SELECT started FROM runs"), started);
    rws_folder_close(f);
    trainer_free(t);
}

static void load_forgets_later_measures(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    double       seconds;
    for (uint64_t i = 0; i <= 500; i += 100) must(record(f, t, i, 1, &err), &err);
    sqlite3 *db = store_open(); /* another run shares the store */
    assert_int_equal(sqlite3_exec(db, "INSERT INTO metrics VALUES('other', 900, 1, 'ess', 2)", NULL, NULL, NULL), 0);
    sqlite3_close(db);
    t->iteration = 300;
    save(f, t, 77);

    must(rws_folder_look(f, t, &seconds, &err), &err);
    assert_true(seconds == 77);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'run'"), "18");
    must(rws_folder_load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'run'"), "12");
    assert_string_equal(ask("SELECT max(iteration) FROM metrics WHERE run = 'run'"), "300");
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'other'"), "1");
    assert_string_equal(ask("SELECT iteration || ' ' || seconds FROM runs"), "300 77.0");

    /* A file that a kill left without tables. */
    spill("run/metrics.sqlite", "", 0);
    must(rws_folder_load(f, t, &seconds, &err), &err);
    must(record(f, t, 400, 1, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
    rws_folder_close(f);
    trainer_free(t);
}

static void a_refused_load_forgets_nothing(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    must(record(f, t, 100, 1, &err), &err);
    save(f, t, 77);
    t->config.method = "ww";
    refuses_load(f, t, "run/checkpoint.safetensors", "\"ww\"");
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
    rws_folder_close(f);
    trainer_free(t);
}

static void a_locked_store_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    double       seconds;
    rws_store_patience(30);
    fill(t, 1);
    t->iteration = 100;
    must(record(f, t, 200, 1, &err), &err);
    save(f, t, 77);
    fill(t, 2);

    const char *const locks[] = {"BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"};
    for (int i = 0; i < 3; i++) {
        sqlite3      *db = store_open();
        sqlite3_stmt *reader = NULL;
        if (i < 2) assert_int_equal(sqlite3_exec(db, locks[i], NULL, NULL, NULL), SQLITE_OK);
        /* a reader in the middle of its rows keeps a writer from its commit */
        if (i == 2) {
            assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM metrics", -1, &reader, NULL), SQLITE_OK);
            assert_int_equal(sqlite3_step(reader), SQLITE_ROW);
        }
        err.text[0] = '\0';
        check_refused(record(f, t, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "locked");
        rws_trainer *before = trainer_new(&two_slots, 4);
        fill(before, 2);
        err.text[0] = '\0';
        check_refused(rws_folder_load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "locked");
        assert_true(same_state(t, before));
        assert_int_equal(t->n_loaded, 0);
        sqlite3_finalize(reader);
        sqlite3_close(db);
        assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
        trainer_free(before);
    }
    must(record(f, t, 300, 1, &err), &err);
    must(rws_folder_load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "0");
    rws_folder_close(f);
    trainer_free(t);
}

static void a_read_only_store_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    double       seconds;
    t->iteration = 100;
    must(record(f, t, 200, 1, &err), &err);
    save(f, t, 77);
    /* root may write anywhere, so it becomes someone else for a while */
    const bool root_user = geteuid() == 0;
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(chmod(in_root("run/metrics.sqlite"), 0444), 0);
    if (root_user && seteuid(65534) != 0) skip();
    const rws_status recording = record(f, t, 300, 1, &err);
    rws_error        load_err = {""}, look_err = {""};
    const rws_status loading = rws_folder_load(f, t, &seconds, &load_err);
    const rws_status looking = rws_folder_look(f, t, &seconds, &look_err);
    if (root_user) assert_int_equal(seteuid(0), 0);
    check_refused(recording, RWS_BAD_INPUT, &err, "run/metrics.sqlite", "read-only");
    check_refused(loading, RWS_BAD_INPUT, &load_err, "run/metrics.sqlite", "read-only");
    must(looking, &look_err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
    rws_folder_close(f);
    trainer_free(t);
}

static void what_is_not_a_store_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    char         text[600];
    memset(text, 'x', sizeof text);
    spill("run/metrics.sqlite", text, sizeof text);
    check_refused(record(f, t, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "SQLite");
    size_t size;
    char  *bytes = slurp("run/metrics.sqlite", &size);
    assert_int_equal(size, sizeof text);
    assert_memory_equal(bytes, text, size);
    free(bytes);
    unlink(in_root("run/metrics.sqlite"));

    sqlite3 *db = store_open();
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE metrics(other)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    check_refused(record(f, t, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "metrics has no column");
    assert_string_equal(ask("SELECT count(*) FROM sqlite_master WHERE name = 'runs'"), "0"); /* rolled back */
    unlink(in_root("run/metrics.sqlite"));
    assert_int_equal(mkdir(in_root("run/metrics.sqlite"), 0777), 0);
    check_refused(record(f, t, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "open");
    rws_folder_close(f);
    trainer_free(t);
}

static void evaluations_wait_for_a_flush(void **state)
{
    (void)state;
    rws_trainer  *t = trainer_new(&two_slots, 4);
    rws_error     err = {""};
    rws_folder   *f = create(t);
    rws_snapshots shown = {0};
    double        seconds;
    must(record(f, t, 100, 1, &err), &err);
    char label[] = "NP -> \"NP\" PP";
    rws_snapshots_add(&shown, &(rws_shown){"np", 0, label, 0.5});
    rws_snapshots_add(&shown, &(rws_shown){"np", 1, NULL, NAN});
    rws_snapshots_add(&shown, &(rws_shown){"trees", 0, "", 0.25});
    memset(label, 'x', sizeof label - 1); /* it was copied */
    for (uint64_t i = 200; i <= 400; i += 100) {
        const rws_measures m = {.iteration = i, .n = 3, .value = {1, 2, 3}};
        rws_folder_record(f, t, &m, i == 200 ? NULL : &shown, 1);
    }
    rws_snapshots_release(&shown);
    assert_string_equal(ask("SELECT max(iteration) FROM metrics"), "100");
    t->iteration = 300;
    save(f, t, 7); /* flushes first */
    assert_string_equal(ask("SELECT count(*) || ' ' || max(iteration) FROM metrics"), "12 400");
    assert_string_equal(ask("SELECT count(*) FROM snapshots"), "6");
    assert_string_equal(ask("SELECT label || value FROM snapshots WHERE name = 'np' AND place = 0 AND iteration = 300"),
                        "NP -> \"NP\" PP0.5");
    assert_string_equal(ask("SELECT label FROM snapshots WHERE name = 'np' AND place = 1"), "NULL");
    assert_string_equal(ask("SELECT value FROM snapshots WHERE name = 'np' AND place = 1"), "NULL");
    assert_string_equal(ask("SELECT label FROM snapshots WHERE name = 'trees'"), "");
    must(rws_folder_fail(f, 350, "It broke.", &err), &err);
    assert_string_equal(ask("SELECT iteration || sentence FROM failures"), "350It broke.");
    must(rws_folder_load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM failures"), "0");
    assert_string_equal(ask("SELECT max(iteration) FROM snapshots"), "300");
    must(rws_folder_add(f, 300, 9, 1, (const char *[]){"final_kl"}, (double[]){4}, &err), &err);
    assert_string_equal(ask("SELECT value FROM metrics WHERE name = 'final_kl'"), "4.0");
    assert_string_equal(ask("SELECT iteration FROM runs"), "300");
    rws_folder_close(f);
    trainer_free(t);
}

static void a_store_of_a_newer_program_is_refused(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f = create(t);
    must(record(f, t, 100, 1, &err), &err);
    sqlite3 *db = store_open();
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    check_refused(record(f, t, 200, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "newer");
    assert_string_equal(ask("SELECT max(iteration) FROM metrics"), "100");
    rws_folder_close(f);
    trainer_free(t);
}

/* A folder with a store and without a configuration is a sweep's: the runs in it measure into that store. */
static void runs_of_a_sweep_find_its_store(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_folder  *f[2];
    char         path[PATH_MAX];
    assert_int_equal(mkdir(in_root("run"), 0777), 0);
    strcpy(path, in_root("run/metrics.sqlite"));
    must(rws_store_make(path, &err), &err);
    must(rws_store_make(path, &err), &err); /* again is nothing */
    for (int i = 0; i < 2; i++) {
        strcpy(path, in_root(i ? "run/b" : "run/a"));
        must(rws_folder_create(path, t, &f[i], &err), &err);
        must(record(f[i], t, 100, i, &err), &err);
    }
    assert_string_equal(ask("SELECT group_concat(run) FROM runs ORDER BY run"), "a,b");
    assert_false(is_there("run/a/metrics.sqlite"));
    t->iteration = 50;
    save(f[0], t, 1);
    for (int i = 0; i < 2; i++) rws_folder_close(f[i]);

    rws_config read;
    double     seconds;
    strcpy(path, in_root("run/a"));
    must(rws_folder_open(path, &read, &f[0], &err), &err);
    must(rws_folder_load(f[0], t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT group_concat(run) FROM metrics WHERE name = 'ess'"), "b");
    rws_folder_close(f[0]);

    /* b's folder is gone, its measures are not: they must not get another run's */
    strcpy(path, in_root("run/b/config.json"));
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    check_refused(rws_folder_create(path, t, &f[1], &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "\"b\"");
    char store[PATH_MAX];
    strcpy(store, in_root("run/metrics.sqlite"));
    must(rws_store_drop(store, "b", &err), &err);
    must(rws_folder_create(path, t, &f[1], &err), &err);
    rws_folder_close(f[1]);

    /* inside a run's own folder a run is on its own */
    assert_int_equal(mkdir(in_root("run/a/inner"), 0777), 0);
    spill("run/a/metrics.sqlite", "", 0);
    strcpy(path, in_root("run/a/inner"));
    must(rws_folder_create(path, t, &f[0], &err), &err);
    must(record(f[0], t, 100, 1, &err), &err);
    assert_true(is_there("run/a/inner/metrics.sqlite"));
    rws_folder_close(f[0]);
    trainer_free(t);
}

static void one_process_trains_a_run(void **state)
{
    (void)state;
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_error    err = {""};
    rws_config   read;
    rws_folder  *f = create(t), *other;
    assert_true(rws_folder_is_busy(run_path));
    must(rws_folder_open(run_path, &read, &other, &err), &err); /* looking is allowed */
    check_refused(rws_folder_lock(other, &err), RWS_BAD_INPUT, &err, "\"", "another process");
    rws_folder_close(f);
    assert_false(rws_folder_is_busy(run_path));
    must(rws_folder_lock(other, &err), &err);
    must(rws_folder_lock(other, &err), &err);
    rws_folder_close(other);
    assert_false(rws_folder_is_busy(in_root("nowhere")));
    trainer_free(t);
}

/* Runs of a sweep write to one file at the same time; each waits for its turn and nothing is lost. */
static void several_runs_share_a_store(void **state)
{
    (void)state;
    enum { RUNS = 4, ITERATIONS = 15 };
    const char *const names[] = {"r0", "r1", "r2", "r3"}, *const metrics[] = {"kl", "ess"};
    char  path[PATH_MAX];
    pid_t children[RUNS];
    assert_int_equal(mkdir(in_root("run"), 0777), 0);
    strcpy(path, in_root("run/metrics.sqlite"));
    for (int i = 0; i < RUNS; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        const rws_store_run run = {names[i], "{}", "1", "2000-01-01T00:00:00Z"};
        for (uint64_t k = 1; k <= ITERATIONS; k++) {
            rws_error             err;
            const rws_store_entry entry = {
                .iteration = k, .seconds = 1, .n = 2, .names = metrics, .values = (double[]){1, 2}};
            if (rws_store_add(path, &run, &entry, 1, &err) == RWS_OK) continue;
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        _exit(0);
    }
    for (int i = 0; i < RUNS; i++) {
        int how = -1;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_int_equal(how, 0);
    }
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "120");
    assert_string_equal(ask("SELECT count(*) || ' ' || min(iteration) FROM runs"), "4 15");
}

/* ---- kills ------------------------------------------------------------------------------------------------------ */

/* The state after so many iterations, from which the numbers can be told. */
static void train_to(rws_trainer *t, uint64_t iteration)
{
    fill(t, (uint32_t)iteration);
    t->iteration = iteration;
}

/* What a run does, as fast as it can, until it is killed: begin or resume, then evaluate and save. */
static _Noreturn void run_until_killed(void)
{
    rws_trainer *t = trainer_new(&two_slots, 4);
    rws_folder  *f;
    rws_config   read;
    rws_error    err;
    double       seconds = 0;
    if (rws_folder_create(run_path, t, &f, &err) != RWS_OK) {
        if (rws_folder_open(run_path, &read, &f, &err) != RWS_OK) _exit(3);
        if (rws_folder_has_checkpoint(f) && rws_folder_load(f, t, &seconds, &err) != RWS_OK) _exit(4);
    }
    for (uint64_t i = t->iteration + 1;; i++) {
        train_to(t, i);
        if (record(f, t, i, 1, &err) != RWS_OK) _exit(5);
        if (rws_folder_save(f, t, (double)i, &err) != RWS_OK) _exit(6);
    }
}

static void a_kill_leaves_a_folder_that_resumes(void **state)
{
    (void)state;
    uint32_t     seed = 5;
    uint64_t     reached = 0;
    rws_trainer *t = trainer_new(&two_slots, 4), *expected = trainer_new(&two_slots, 4);
    /* a slow machine gets longer until it has saved once */
    for (int i = 0; i < 30 || (reached == 0 && i < 300); i++) {
        const pid_t child = fork();
        if (child == 0) run_until_killed();
        usleep(random_bits(&seed) % (40000 + 1000 * (uint32_t)i));
        kill(child, SIGKILL);
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        if (!WIFSIGNALED(how)) fail_msg("the run ended with %d", WEXITSTATUS(how));
        if (!is_there("run/config.json")) continue;

        rws_error   err = {""};
        rws_config  read;
        rws_folder *f;
        double      seconds;
        must(rws_folder_open(run_path, &read, &f, &err), &err);
        if (rws_folder_has_checkpoint(f)) {
            must(rws_folder_load(f, t, &seconds, &err), &err);
            assert_true(seconds == (double)t->iteration && t->iteration >= reached);
            reached = t->iteration;
            train_to(expected, reached);
            assert_true(same_state(t, expected));
            char every[64]; /* every iteration of the past has its measures, none of the future has */
            snprintf(every, sizeof every, "%llu", 3 * (unsigned long long)reached);
            assert_string_equal(ask("SELECT count(*) FROM metrics"), every);
        }
        rws_folder_close(f);
    }
    assert_true(reached > 0);
    trainer_free(t);
    trainer_free(expected);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(config_comes_back),
        TEST(config_is_plain_json),
        TEST(config_has_room_for_settings),
        TEST(config_is_read_strictly),
        TEST(model_path_becomes_absolute),
        TEST(text_that_is_not_utf8_is_refused),
        TEST(create_makes_parents),
        TEST(create_takes_nothing_over),
        TEST(checkpoint_comes_back),
        TEST(checkpoint_has_known_tensors),
        TEST(load_refuses_another_run),
        TEST(load_refuses_what_does_not_fit),
        TEST(load_refuses_damage),
        TEST(save_keeps_the_last_good_one),
        TEST(save_refuses_a_taken_name),
        TEST(measures_are_recorded),
        TEST(load_forgets_later_measures),
        TEST(a_refused_load_forgets_nothing),
        TEST(a_locked_store_is_refused),
        TEST(a_read_only_store_is_refused),
        TEST(what_is_not_a_store_is_refused),
        TEST(evaluations_wait_for_a_flush),
        TEST(a_store_of_a_newer_program_is_refused),
        TEST(runs_of_a_sweep_find_its_store),
        TEST(one_process_trains_a_run),
        TEST(several_runs_share_a_store),
        TEST(a_kill_leaves_a_folder_that_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
