/* test_checkpoint.c - a run's folder is read as it was written, bit for bit; files that do not fit are refused with a
 * message; no refusal, full disk or kill loses anything. */
#include "made_run.h"

#include "store/config.h"
#include "data/safetensors.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- making a folder -------------------------------------------------------------------------------------------- */

static void create_makes_parents(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    const char *tails[] = {"a/b//c/run", "a/b/d/", "e///"};
    for (int i = 0; i < 3; i++) {
        strcpy(run_path, in_folder(tails[i]));
        rws__folder_close(create(t));
    }
    assert_true(is_there("a/b/c/run/config.json"));
    assert_true(is_there("a/b/d/config.json"));
    assert_true(is_there("e/config.json"));

    assert_int_equal(mkdir(in_folder("empty"), 0777), 0);
    strcpy(run_path, in_folder("empty"));
    spill("empty/.rws-0123456789abcdef.tmp", "left by a kill", 14);
    spill("empty/.rws-0123456789abcdef0.tmp", "a user's", 8);
    spill("empty/config.json.tmp", "a user's", 8);
    rws__folder_close(create(t));
    assert_true(is_there("empty/config.json"));
    assert_int_equal(n_temporaries("empty"), 0);
    size_t size;
    char  *bytes = slurp("empty/config.json.tmp", &size);
    assert_string_equal(bytes, "a user's");
    free(bytes);
    assert_true(is_there("empty/.rws-0123456789abcdef0.tmp"));
    made_run_free(t);
}

static void create_refused(const made_run *t, const char *a, const char *b)
{
    rws_error   err = {""};
    rws_folder *f = (rws_folder *)&err;
    assert_refused(try_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, a, b);
    assert_null(f);
}

static void create_takes_nothing_over(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    const char *files[] = {"run/config.json", "run/checkpoint.safetensors", "run/metrics.sqlite"};
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        spill(files[i], "precious", 8);
        create_refused(t, run_path, i < 2 ? "resume it" : "metrics.sqlite");
        create_refused(t, run_path, "another folder");
        size_t size;
        char  *bytes = slurp(files[i], &size);
        assert_string_equal(bytes, "precious");
        free(bytes);
        unlink(in_folder(files[i]));
        assert_int_equal(rmdir(in_folder("run")), 0); /* nothing else was put there */
        assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    }
    assert_int_equal(rmdir(in_folder("run")), 0);
    assert_int_equal(symlink("nowhere", in_folder("run")), 0);
    create_refused(t, run_path, "folder");
    unlink(in_folder("run"));

    spill("run", "precious", 8);
    create_refused(t, run_path, "is a file");
    strcpy(run_path, in_folder("run/below"));
    create_refused(t, "/run\"", "is a file");
    run_path[0] = '\0';
    create_refused(t, "folder", "\"\"");
    memset(run_path, 'x', 300);
    run_path[300] = '\0';
    create_refused(t, "...xxx", "too long");
    made_run_free(t);
}

/* A run that ended before its first checkpoint and its first measures is replaced. */
static void create_replaces_a_run_in_vain(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_config  read;
    rws_folder *f = create(t);
    t->config.particles = 7;
    create_refused(t, run_path, "another process"); /* it is being trained */
    must(rws__folder_fail(f, 1, "It broke.", &err), &err);
    rws__folder_close(f);
    assert_string_equal(ask("SELECT count(*) FROM failures"), "1");

    rws__folder_close(create(t));
    assert_string_equal(ask("SELECT count(*) FROM failures"), "0");
    must(rws__folder_open(run_path, &read, &f, &err), &err);
    assert_int_equal(read.particles, 7);
    must(record(f, 1, 5, &err), &err); /* measures without a checkpoint: killed in between */
    must(rws__folder_fail(f, 1, "It broke.", &err), &err);
    create_refused(t, run_path, "resume it");
    must(rws__folder_restart(f, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM failures"), "0");
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "0");
    assert_string_equal(ask("SELECT iteration FROM runs"), "0");
    rws__folder_close(f);
    made_run_free(t);
}

static void one_process_trains_a_run(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_config  read;
    rws_folder *f = create(t), *other;
    assert_true(rws__folder_is_busy(run_path));
    must(rws__folder_open(run_path, &read, &other, &err), &err); /* looking is allowed */
    assert_refused(rws__folder_lock(other, &err), RWS_BAD_INPUT, &err, "\"", "another process");
    rws__folder_close(f);
    assert_false(rws__folder_is_busy(run_path));
    must(rws__folder_lock(other, &err), &err);
    must(rws__folder_lock(other, &err), &err);
    rws__folder_close(other);
    assert_false(rws__folder_is_busy(in_folder("nowhere")));
    made_run_free(t);
}

/* Asks again and again whether the run is being trained, as programs that wait for free runs do. */
static void *keep_asking(void *over)
{
    while (!__atomic_load_n((bool *)over, __ATOMIC_RELAXED)) (void)rws__folder_is_busy(run_path);
    return NULL;
}

static void a_question_blocks_no_lock(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_config  read;
    rws_folder *f;
    pthread_t   asking;
    bool        over = false;
    rws__folder_close(create(t));
    assert_int_equal(pthread_create(&asking, NULL, keep_asking, &over), 0);
    rws_status status = RWS_OK;
    int        n_busy = 0;
    for (int i = 0; i < 200 && status == RWS_OK; i++) {
        n_busy += rws__folder_is_busy(run_path); /* no process trains the run */
        must(rws__folder_open(run_path, &read, &f, &err), &err);
        status = rws__folder_lock(f, &err);
        rws__folder_close(f);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(asking, NULL);
    must(status, &err);
    assert_int_equal(n_busy, 0);
    made_run_free(t);
}

/* ---- the checkpoint --------------------------------------------------------------------------------------------- */

static void checkpoint_comes_back(void **state)
{
    (void)state;
    const rws_optimiser *const optimisers[] = {&two_slots, &one_slot, &no_slot};
    for (int i = 0; i < 3; i++) {
        for (int n_out = 1; n_out <= 20; n_out += 19) {
            made_run *a = made_run_new(optimisers[i], n_out), *b = made_run_new(optimisers[i], n_out);
            fill(a, 17);
            rws_folder *f = create(a);
            assert_false(rws__folder_has_checkpoint(f));
            save(f, b, 1); /* to be replaced */
            save(f, a, 1.0 / 3.0);
            assert_true(rws__folder_has_checkpoint(f));
            rws__folder_close(f);

            rws_error  err = {""};
            rws_config read;
            double     seconds = 0;
            must(rws__folder_open(run_path, &read, &f, &err), &err);
            assert_true(rws__folder_has_checkpoint(f));
            must(load(f, b, &seconds, &err), &err);
            assert_true(seconds == 1.0 / 3.0);
            assert_true(same_state(a, b));
            assert_false(is_there("run/metrics.sqlite")); /* there was nothing to forget */
            rws__folder_close(f);
            made_run_free(a);
            made_run_free(b);
            unlink(in_folder("run/checkpoint.safetensors"));
            unlink(in_folder("run/checkpoint.previous.safetensors"));
            unlink(in_folder("run/config.json"));
        }
    }
}

/* Names and shapes are a contract with readers in Python. */
static void checkpoint_has_known_tensors(void **state)
{
    (void)state;
    made_run *t = made_run_new(&two_slots, 1);
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
    rws_safetensors *st;
    assert_int_equal(rws__safetensors_open(in_folder("run/checkpoint.safetensors"), &st, &err), RWS_OK);
    assert_int_equal(rws__safetensors_count(st), n);
    const rws_tensor_in *found;
    for (size_t i = 0; i < n; i++) {
        const rws_status status = rws__safetensors_expect(st, expected[i].name, expected[i].dtype, expected[i].n_dims,
                                                          expected[i].shape, &found, &err);
        must(status, &err);
    }
    must(rws__safetensors_expect(st, "theta", RWS_DTYPE_F32, 1, (size_t[]){5}, &found, &err), &err);
    assert_memory_equal(found->data, t->params.list[2]->value, 5 * sizeof(float));
    assert_string_equal(rws__safetensors_metadata(st, "format"), "rws 1");
    assert_string_equal(rws__safetensors_metadata(st, "model"), "gmm");
    assert_string_equal(rws__safetensors_metadata(st, "method"), "rebar");
    assert_string_equal(rws__safetensors_metadata(st, "optimiser"), "adam");
    assert_string_equal(rws__safetensors_metadata(st, "version"), RWS_VERSION_STRING);
    rws__safetensors_close(st);
    rws__folder_close(f);
    made_run_free(t);
}

static void load_refuses_another_run(void **state)
{
    (void)state;
    made_run *t = made_run_new(&two_slots, 4), *wider = made_run_new(&two_slots, 5), *plain = made_run_new(&no_slot, 4);
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
    rws__folder_close(f);
    made_run_free(t);
    made_run_free(wider);
    made_run_free(plain);
}

static rws_folder *create_saved(made_run *t)
{
    fill(t, 8);
    rws_folder *f = create(t);
    save(f, t, 5);
    return f;
}

/* Writes the checkpoint again with one thing changed. */
typedef struct {
    const char    *drop, *drop_key; /* a tensor, or a key of the metadata, left out */
    const char    *change;          /* a tensor whose data, type or length is another */
    rws_tensor_out to;
    const char    *key, *value; /* of the metadata */
    bool           add;         /* `to` is one more tensor */
    bool           old;         /* the metadata is that of version 0.2 */
} edit;

static void rewrite(const char *from, const edit *e)
{
    rws_error        err = {""};
    rws_tensor_out   out[32];
    size_t           n = 0;
    json_t          *metadata = json_object();
    const char      *keys[] = {"format", "model", "method",   "optimiser",  "version",       "build",
                               "cpu",    "lr",    "identity", "iterations", "training_data", "test_data"};
    rws_safetensors *st;
    assert_int_equal(rws__safetensors_open(in_folder(from), &st, &err), RWS_OK);
    for (int i = 0; i < (e->old ? 5 : 12); i++) {
        if (e->drop_key && strcmp(keys[i], e->drop_key) == 0) continue;
        json_object_set_new(metadata, keys[i], json_string(rws__safetensors_metadata(st, keys[i])));
    }
    if (e->key) json_object_set_new(metadata, e->key, json_string(e->value));
    for (size_t i = 0; i < rws__safetensors_count(st); i++) {
        const rws_tensor_in *in = rws__safetensors_at(st, i);
        if (e->drop && strcmp(in->name, e->drop) == 0) continue;
        out[n] = (rws_tensor_out){.name = in->name, .dtype = in->dtype, .n_dims = in->n_dims, .data = in->data};
        memcpy(out[n].shape, in->shape, sizeof in->shape);
        if (e->change && strcmp(in->name, e->change) == 0) out[n] = e->to;
        n++;
    }
    if (e->add) out[n++] = e->to;
    must(rws__safetensors_write(in_folder("run/checkpoint.safetensors"), out, n, metadata, &err), &err);
    json_decref(metadata);
    rws__safetensors_close(st);
}

static void load_refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const float    zeros[16] = {0}, with_nan[5] = {0, 0, NAN}, with_inf[5] = {0, 0, 0, 0, -INFINITY};
    static const double   negative = -1, nan_seconds = NAN, doubles[5] = {0};
    static const uint64_t late = (uint64_t)INT64_MAX + 1, forever = UINT64_C(1000000000000001);
    static const uint64_t many[RWS_GROUPS] = {1, UINT64_MAX};
    float                 slot_nan[256] = {[2] = NAN};
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
        {{.drop_key = "version"}, "damaged, or not a checkpoint of rws: its metadata has no \"version\""},
        {{.drop_key = "build"}, "damaged, or not a checkpoint of rws: its metadata has no \"build\""},
        {{.drop_key = "cpu"}, "its metadata has no \"cpu\""},
        {{.drop_key = "identity"}, "its metadata has no \"identity\""},
        {{.drop_key = "lr"}, "its metadata has no \"lr\""},
        {{.drop_key = "iterations"}, "its metadata has no \"iterations\""},
        {{.drop_key = "training_data"}, "its metadata has no \"training_data\""},
        {{.drop_key = "test_data"}, "its metadata has no \"test_data\""},
        {{.key = "version", .value = "0.5.0", .drop_key = "lr"}, "its metadata has no \"lr\""},
        {{.key = "version", .value = "0.3.0", .old = true}, "its metadata has no \"build\""},
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
        {{.change = "iteration", .to = {"iteration", RWS_DTYPE_U64, 1, {1}, &forever}}, "\"iteration\""},
        {{.change = "optimiser.steps", .to = {"optimiser.steps", RWS_DTYPE_U64, 1, {RWS_GROUPS}, many}},
         "counts 18446744073709551615 steps"},
        {{.change = "optimiser.square", .to = {"optimiser.square", RWS_DTYPE_F32, 1, {25}, slot_nan}},
         "\"optimiser.square\" has a NaN"},
        {{.change = "seconds", .to = {"seconds", RWS_DTYPE_F64, 1, {1}, &negative}}, "\"seconds\""},
        {{.change = "seconds", .to = {"seconds", RWS_DTYPE_F64, 1, {1}, &nan_seconds}}, "\"seconds\""},
    };
    made_run   *t = made_run_new(&two_slots, 4);
    rws_folder *f = create_saved(t);
    size_t      size;
    char       *bytes = slurp("run/checkpoint.safetensors", &size);
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
    must(load(f, t, &seconds, &err), &err);
    rewrite("good", &(edit){.old = true, .key = "version", .value = "0.2.0"});
    must(load(f, t, &seconds, &err), &err);
    rws__folder_close(f);
    made_run_free(t);
}

static void load_refuses_damage(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_folder *f = create_saved(t);
    size_t      size;
    char       *bytes = slurp("run/checkpoint.safetensors", &size);
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
    /* A file with any bit of any byte flipped is refused. */
    for (size_t k = 0; k < size; k++) {
        const char good = bytes[k];
        bytes[k] = (char)(good ^ (1 << random_bits(&seed) % 8));
        spill("run/checkpoint.safetensors", bytes, size);
        bytes[k] = good;
        refuses_load(f, t, "run/checkpoint.safetensors", "run");
    }
    unlink(in_folder("run/checkpoint.safetensors"));
    assert_int_equal(mkdir(in_folder("run/checkpoint.safetensors"), 0777), 0);
    refuses_load(f, t, "run/checkpoint.safetensors", "regular");
    free(bytes);
    rws__folder_close(f);
    made_run_free(t);
}

/* The checkpoint before a damaged one is there, and is told of. */
static void previous_is_kept(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4), *first = made_run_new(&two_slots, 4);
    rws_folder *f = create_saved(t);
    assert_false(is_there("run/checkpoint.previous.safetensors"));
    fill(first, 8); /* as create_saved filled t */
    fill(t, 9);
    save(f, t, 6);
    spill("run/checkpoint.safetensors", "rubbish", 7);
    refuses_load(f, t, "too short", "\"mv -T -- '");
    refuses_load(f, t, "/checkpoint.previous.safetensors '", "'/checkpoint.safetensors\" continues from there.");
    unlink(in_folder("run/checkpoint.safetensors"));
    assert_true(rws__folder_has_checkpoint(f)); /* nothing is begun anew over the one that is left */
    refuses_load(f, t, "No such file", "checkpoint.previous.safetensors");
    assert_int_equal(rename(in_folder("run/checkpoint.previous.safetensors"), in_folder("run/checkpoint.safetensors")),
                     0);
    rws_error err = {""};
    double    seconds;
    must(load(f, t, &seconds, &err), &err);
    assert_true(same_state(t, first));
    rws__folder_close(f);
    made_run_free(t);
    made_run_free(first);
}

static void save_keeps_the_last_good_one(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_folder *f = create_saved(t);
    size_t      size, now;
    char       *bytes = slurp("run/checkpoint.safetensors", &size);

    t->params.list[2]->value[4] = NAN;
    assert_refused(try_save(f, t, 6, &err), RWS_BROKEN, &err, "run/checkpoint.safetensors", "\"theta\"");
    t->params.list[2]->value[4] = INFINITY;
    assert_refused(try_save(f, t, 6, &err), RWS_BROKEN, &err, "run/checkpoint.safetensors", "\"theta\"");
    t->params.list[2]->value[4] = 1;

    rws_param      *table = t->params.list[3]; /* as a kernel of 2 x 2, which has four dimensions */
    const rws_param matrix = *table;
    table->rows = 1, table->cols = 4, table->kernel = 2;
    table->value[3] = NAN;
    assert_refused(try_save(f, t, 6, &err), RWS_BROKEN, &err, "run/checkpoint.safetensors", "baseline.table");
    *table = matrix;
    table->value[3] = 1;

    /* A disk that is full in the middle of the file. */
    struct rlimit was, little;
    getrlimit(RLIMIT_FSIZE, &was);
    little = was;
    little.rlim_cur = 100;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    const rws_status full = try_save(f, t, 6, &err);
    rws_folder      *other;
    rws_error        other_err = {""};
    strcpy(run_path, in_folder("other"));
    const rws_status other_full = try_create(run_path, t, &other, &other_err);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    assert_refused(full, RWS_BAD_INPUT, &err, "run/checkpoint.safetensors", "too large");
    assert_refused(other_full, RWS_BAD_INPUT, &other_err, "other/config.json", "too large");
    assert_int_equal(n_temporaries("run"), 0);
    assert_int_equal(n_temporaries("other"), 0);
    assert_false(is_there("other/config.json"));
    rws__folder_close(create(t)); /* and then there is room again */

    char *bytes_now = slurp("run/checkpoint.safetensors", &now);
    assert_int_equal(size, now);
    assert_memory_equal(bytes, bytes_now, size);
    free(bytes);
    free(bytes_now);
    rws__folder_close(f);
    made_run_free(t);
}

/* A parameter with the name of one of the checkpoint's own tensors is refused. */
static void save_refuses_a_taken_name(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_folder *f = create(t);
    strcpy(t->params.list[2]->name, "optimiser.steps");
    assert_refused(try_save(f, t, 6, &err), RWS_BAD_INPUT, &err, "run/checkpoint.safetensors", "optimiser.steps");
    assert_false(rws__folder_has_checkpoint(f));
    rws__folder_close(f);
    made_run_free(t);
}

/* ---- kills ------------------------------------------------------------------------------------------------------ */

/* Makes the state after so many iterations; the numbers follow from the iteration. */
static void train_to(made_run *t, uint64_t iteration)
{
    fill(t, (uint32_t)iteration);
    t->iteration = iteration;
}

/* Begins or resumes, then evaluates and saves as fast as it can, until it is killed. */
static _Noreturn void run_until_killed(void)
{
    made_run   *t = made_run_new(&two_slots, 4);
    rws_folder *f;
    rws_config  read;
    rws_error   err;
    double      seconds = 0;
    if (try_create(run_path, t, &f, &err) != RWS_OK) {
        if (rws__folder_open(run_path, &read, &f, &err) != RWS_OK) _exit(3);
        if (rws__folder_has_checkpoint(f) && load(f, t, &seconds, &err) != RWS_OK) _exit(4);
    }
    for (uint64_t i = t->iteration + 1;; i++) {
        train_to(t, i);
        if (record(f, i, 1, &err) != RWS_OK) _exit(5);
        if (try_save(f, t, (double)i, &err) != RWS_OK) _exit(6);
    }
}

static void a_kill_leaves_a_folder_that_resumes(void **state)
{
    (void)state;
    uint32_t  seed = 5;
    uint64_t  reached = 0;
    made_run *t = made_run_new(&two_slots, 4), *expected = made_run_new(&two_slots, 4);
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
        must(rws__folder_open(run_path, &read, &f, &err), &err);
        if (rws__folder_has_checkpoint(f)) {
            must(load(f, t, &seconds, &err), &err);
            assert_true(seconds == (double)t->iteration && t->iteration >= reached);
            reached = t->iteration;
            train_to(expected, reached);
            assert_true(same_state(t, expected));
            char every[64]; /* every iteration of the past has its measures, none of the future has */
            snprintf(every, sizeof every, "%llu", 3 * (unsigned long long)reached);
            assert_string_equal(ask("SELECT count(*) FROM metrics"), every);
        }
        rws__folder_close(f);
    }
    assert_true(reached > 0);
    made_run_free(t);
    made_run_free(expected);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, run_setup, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(create_makes_parents),
        TEST(create_takes_nothing_over),
        TEST(create_replaces_a_run_in_vain),
        TEST(one_process_trains_a_run),
        TEST(a_question_blocks_no_lock),
        TEST(checkpoint_comes_back),
        TEST(checkpoint_has_known_tensors),
        TEST(load_refuses_another_run),
        TEST(load_refuses_what_does_not_fit),
        TEST(load_refuses_damage),
        TEST(previous_is_kept),
        TEST(save_keeps_the_last_good_one),
        TEST(save_refuses_a_taken_name),
        TEST(a_kill_leaves_a_folder_that_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
