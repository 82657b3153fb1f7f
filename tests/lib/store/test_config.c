/* test_config.c - a configuration is read as it was written, and config.json is read strictly. */
#include "made_run.h"

#include "store/config.h"
#include "program/object.h"
#include "program/plugin.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
        made_run *t = made_run_new(&two_slots, 4);
        t->config.seed = seeds[i];
        t->config.scalar = i % 2;
        t->config.l2 = (double)i / 3;
        rws__folder_close(create(t));
        assert_int_equal(n_temporaries("run"), 0);

        rws_error   err = {""};
        rws_config  read;
        rws_folder *f;
        must(rws__folder_open(run_path, &read, &f, &err), &err);
        same_config(&t->config, &read);
        assert_int_equal(read.n_set, 3);
        assert_string_equal(read.set[0], "theta_mult=5");
        assert_string_equal(read.set[1], "text=a=b, \"c\" \\ \xc3\xa4\n");
        assert_string_equal(read.set[2], "empty=");
        assert_false(rws__folder_has_checkpoint(f));
        rws__folder_close(f);
        made_run_free(t);
        assert_int_equal(unlink(in_folder("run/config.json")), 0);
    }
}

static void config_is_plain_json(void **state)
{
    (void)state;
    made_run *t = made_run_new(&two_slots, 4);
    rws__folder_close(create(t));
    json_t *j = json_load_file(in_folder("run/config.json"), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(j, "format")), 1);
    assert_string_equal(json_string_value(json_object_get(j, "version")), RWS_VERSION_STRING);
    assert_string_equal(json_string_value(json_object_get(j, "seed")), "18446744073709551557");
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "settings"), "theta_mult")), "5");
    json_decref(j);
    made_run_free(t);
}

/* A run with no settings, one with the most settings, and one with too many, which is refused before its folder is made. */
static void config_has_room_for_settings(void **state)
{
    (void)state;
    static char names[65][16];
    for (int n = 0; n <= 65; n += n == 0 ? 64 : 1) {
        made_run   *t = made_run_new(&two_slots, 4);
        rws_error   err = {""};
        rws_folder *f;
        rws_config  read;
        t->n_given = 0;
        for (int i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "name%d", i);
            give(t, names[i], "x");
        }
        const rws_status status = try_create(run_path, t, &f, &err);
        if (n <= 64) {
            must(status, &err);
            rws__folder_close(f);
            must(rws__folder_open(run_path, &read, &f, &err), &err);
            assert_int_equal(read.n_set, n);
            if (n) assert_string_equal(read.set[63], "name63=x");
            rws__folder_close(f);
            assert_int_equal(unlink(in_folder("run/config.json")), 0);
            assert_int_equal(rmdir(in_folder("run")), 0);
        } else {
            assert_refused(status, RWS_BAD_INPUT, &err, "65", "settings");
            assert_null(f);
            assert_false(is_there("run"));
        }
        made_run_free(t);
    }
}

static void open_refused(const char *a, const char *b)
{
    rws_error   err = {""};
    rws_config  read, before;
    rws_folder *f = (rws_folder *)&err;
    memset(&read, 0x5a, sizeof read);
    before = read;
    assert_refused(rws__folder_open(run_path, &read, &f, &err), RWS_BAD_INPUT, &err, a, b);
    assert_null(f);
    assert_memory_equal(&read, &before, sizeof read);
}

static void put_config(const json_t *j)
{
    assert_int_equal(json_dump_file(j, in_folder("run/config.json"), 0), 0);
}

static void config_is_read_strictly(void **state)
{
    (void)state;
    const char *key, *const others[] = {"null", "[]", "-1.5", "true", "\"-1\"", "\"1x\"", "18446744073709551616", "{}"};
    json_t *value, *good, *j;
    open_refused("run", "no run");
    made_run *t = made_run_new(&two_slots, 4);
    rws__folder_close(create(t));
    good = json_load_file(in_folder("run/config.json"), 0, NULL);
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
    unlink(in_folder("run/config.json"));
    open_refused("run/config.json", "missing");
    assert_int_equal(mkfifo(in_folder("run/config.json"), 0600), 0);
    open_refused("run/config.json", "regular");
    free(bytes);
    json_decref(good);
    made_run_free(t);
}

/* What another version wrote and this one cannot read is refused with the name of that version. */
static void the_version_is_named(void **state)
{
    (void)state;
    made_run *t = made_run_new(&two_slots, 4);
    rws__folder_close(create(t));
    json_t *j = json_load_file(in_folder("run/config.json"), 0, NULL);
    json_object_del(j, "eval_particles");
    json_object_set_new(j, "version", json_string("0.1.0"));
    put_config(j);
    open_refused("\"eval_particles\" is missing", "Version 0.1.0 of rws");
    json_decref(j);
    made_run_free(t);
}

/* The path of a shared object becomes absolute; the name of a built-in model stays. */
static void model_path_becomes_absolute(void **state)
{
    (void)state;
    char here[PATH_MAX], expected[PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_config  read;
    rws_folder *f;
    spill("mine.so", "x", 1);
    assert_non_null(realpath(in_folder("mine.so"), expected));
    assert_int_equal(chdir(folder), 0);
    t->config.model = "./mine.so";
    rws__folder_close(create(t));
    assert_int_equal(chdir(here), 0);
    must(rws__folder_open(run_path, &read, &f, &err), &err);
    assert_null(read.model); /* a file names no model that may be loaded */
    assert_string_equal(rws__folder_recorded(f)->model, expected);
    rws__folder_close(f);
    assert_string_equal(t->config.model, "./mine.so");

    t->config.model = "./nowhere/mine.so";
    strcpy(run_path, in_folder("other"));
    assert_refused(try_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "nowhere/mine.so", "model");
    assert_false(is_there("other"));
    made_run_free(t);
}

/* The fingerprint is that of the bytes, is optional, and is left out of the text by which runs are compared. */
static void model_has_a_fingerprint(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_object  object, other;
    char        path[PATH_MAX];
    const char *vector = "sha256:c3ab8ff13720e8ad9047dd39466b3c8974e592c2fa383d4a3960714caef0c4f2"; /* of "foobar" */
    strcpy(path, in_folder("mine.so"));
    spill("mine.so", "foobar", 6);
    must(rws__object_open(path, &object, &err), &err);
    assert_string_equal(object.fingerprint, vector);
    assert_true(rws__object_fits(&object, vector));
    assert_true(rws__object_fits(&object, "fnv1a:85944171f73967e8")); /* a test vector of FNV */
    assert_false(rws__object_fits(&object, "fnv1a:85944171f73967e9"));
    assert_true(rws__object_is_same_file(&object, &object));
    t->config.model = path;
    rws__folder_close(create(t));
    unlink(path);
    spill("mine.so", "foobaR", 6);
    must(rws__object_open(path, &other, &err), &err);
    assert_false(rws__object_is_same_file(&object, &other)); /* the first one is open, and its inode taken */
    rws__object_close(&object);
    object = other;
    assert_false(rws__object_fits(&object, vector));
    assert_false(rws__object_fits(&object, "fnv1a:85944171f73967e8"));
    rws__object_close(&object);
    assert_refused(rws__object_open(in_folder("nowhere.so"), &object, &err), RWS_BAD_INPUT, &err, "nowhere.so", "");

    json_t *j = json_load_file(in_folder("run/config.json"), 0, NULL);
    assert_string_equal(rws__config_fingerprint_of(j), vector);
    char *text = rws__config_text(j);
    assert_null(strstr(text, "fingerprint"));
    assert_non_null(strstr(text, "mine.so"));
    free(text);
    json_object_set_new(j, "model_fingerprint", json_integer(1));
    put_config(j);
    open_refused("run/config.json", "\"model_fingerprint\"");
    json_decref(j);
    made_run_free(t);
}

/* Names 8 objects in as many processes: none is lost from the list. */
static void objects_are_named_at_once(void)
{
    char       name[8];
    rws_object o[8];
    rws_error  err = {""};
    pid_t      child[8];
    int        status;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%d.so", i);
        spill(name, name, 4);
        must(rws__object_open(in_folder(name), &o[i], &err), &err);
    }
    for (int i = 0; i < 8; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            rws__object_remember(&o[i]);
            _exit(0);
        }
    }
    for (int i = 0; i < 8; i++) assert_int_equal(waitpid(child[i], &status, 0), child[i]);
    for (int i = 0; i < 8; i++) {
        assert_true(rws__object_is_known(&o[i]));
        rws__object_close(&o[i]);
    }
}

/* The list of objects that the user has named: an entry for each path, the mode 0600, and no list that others may write. */
static void named_objects_are_remembered(void **state)
{
    (void)state;
    rws_error   err = {""};
    rws_object  one, two;
    struct stat about;
    setenv("XDG_STATE_HOME", in_folder(""), 1);
    spill("one.so", "one", 3);
    spill("two.so", "two", 3);
    must(rws__object_open(in_folder("one.so"), &one, &err), &err);
    must(rws__object_open(in_folder("two.so"), &two, &err), &err);
    assert_false(rws__object_is_known(&one));
    rws__object_remember(&one);
    assert_true(rws__object_is_known(&one));
    assert_false(rws__object_is_known(&two));
    rws__object_remember(&two);
    assert_true(rws__object_is_known(&one) && rws__object_is_known(&two));
    assert_int_equal(stat(in_folder("rws/objects"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    rws__object_close(&one);
    spill("one.so", "other", 5); /* another object under the same path */
    must(rws__object_open(in_folder("one.so"), &one, &err), &err);
    assert_false(rws__object_is_known(&one));
    rws__object_remember(&one);
    assert_true(rws__object_is_known(&one) && rws__object_is_known(&two));
    assert_int_equal(chmod(in_folder("rws/objects"), 0660), 0);
    assert_false(rws__object_is_known(&one) || rws__object_is_known(&two));
    rws__object_remember(&two); /* in a new list */
    assert_true(rws__object_is_known(&two));
    assert_false(rws__object_is_known(&one));
    objects_are_named_at_once();
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", "", 1);
    rws__object_remember(&one); /* there is no place for it */
    assert_false(rws__object_is_known(&one));
    rws__object_close(&one);
    rws__object_close(&two);
}

/* Iterations, rates and the path of the model can be replaced; a text that stays is not freed. */
static void config_is_amended(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_config  read;
    rws_folder *f;
    char        path[PATH_MAX];
    spill("mine.so", "x", 1);
    strcpy(path, in_folder("mine.so"));
    t->config.model = path;
    rws__folder_close(create(t));
    must(rws__folder_open(run_path, &read, &f, &err), &err);
    read.iterations = UINT64_C(1000000000000000);
    must(rws__folder_amend(f, &read, NULL, &err), &err);
    assert_string_equal(rws__folder_recorded(f)->model, path);
    assert_string_equal(read.lr, t->config.lr);
    spill("yours.so", "x", 1);
    strcpy(path, in_folder("run/../yours.so"));
    rws_config other = read;
    other.model = path;
    other.lr = "1";
    must(rws__folder_amend(f, &other, NULL, &err), &err);
    rws__folder_close(f);
    must(rws__folder_open(run_path, &read, &f, &err), &err);
    assert_true(read.iterations == UINT64_C(1000000000000000));
    assert_string_equal(read.lr, "1");
    assert_string_equal(rws__folder_recorded(f)->model, in_folder("yours.so"));
    other = read;
    other.model = "./nowhere/mine.so";
    assert_refused(rws__folder_amend(f, &other, NULL, &err), RWS_BAD_INPUT, &err, "nowhere/mine.so", "found");
    rws__folder_close(f);
    made_run_free(t);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    made_run   *t = made_run_new(&two_slots, 4);
    rws_error   err = {""};
    rws_folder *f;
    give(t, "path", "\xff");
    assert_refused(try_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "\"path\"", "UTF-8");
    t->n_given--;
    t->config.lr = "\xff";
    assert_refused(try_create(run_path, t, &f, &err), RWS_BAD_INPUT, &err, "\"lr\"", "UTF-8");
    assert_false(is_there("run"));
    made_run_free(t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, run_setup, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(config_comes_back),
        TEST(config_is_plain_json),
        TEST(config_has_room_for_settings),
        TEST(config_is_read_strictly),
        TEST(the_version_is_named),
        TEST(model_path_becomes_absolute),
        TEST(model_has_a_fingerprint),
        TEST(named_objects_are_remembered),
        TEST(config_is_amended),
        TEST(text_that_is_not_utf8_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
