/* test_store.c - the evaluations of a run are in its store, and those after the iteration it resumes from are removed;
 * a store that cannot be used is refused with a message, and several runs share a store without loss. */
#include "made_run.h"

#include "rws_results.h"

#include "store/config.h"
#include "store/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static made_run   *t;
static rws_folder *f; /* NULL: none */
static rws_error   err;
static double      seconds;

static int begin(void **state)
{
    if (run_setup(state)) return -1;
    t = made_run_new(&two_slots, 4);
    f = NULL;
    err.text[0] = '\0';
    return 0;
}

static int begin_run(void **state)
{
    if (begin(state)) return -1;
    f = create(t);
    return 0;
}

static int begin_sweep(void **state)
{
    return begin(state) ? -1 : mkdir(run_path, 0777);
}

static int end(void **state)
{
    rws__folder_close(f);
    made_run_free(t);
    rws__store_patience(10000);
    return folder_remove(state);
}

/* ---- a run */

static void measures_are_recorded(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= 500; i += 100) must(record(f, i, (double)i / 3, &err), &err);
    must(record(f, 500, 0.1, &err), &err); /* again */
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
    assert_string_equal(ask("SELECT version FROM runs"), RWS_VERSION_STRING);
    assert_string_equal(ask("SELECT started GLOB '20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z'"
                            " FROM runs"),
                        "1");
    assert_string_equal(ask("SELECT length(host) > 0 FROM runs"), "1");
    assert_string_equal(ask("PRAGMA journal_mode"), "delete");
    assert_false(is_there("run/metrics.sqlite-journal"));

    json_t *stored = json_loads(ask("SELECT config FROM runs"), 0, NULL);
    json_t *written = json_load_file(in_folder("run/config.json"), 0, NULL);
    assert_true(stored && json_equal(stored, written));
    json_decref(stored);
    json_decref(written);
    rws__folder_close(f);

    /* A run that was opened continues with the same rows. */
    char       started[64], link[PATH_MAX];
    rws_config read;
    strcpy(started, ask("SELECT started FROM runs"));
    strcpy(link, in_folder("link"));
    assert_int_equal(symlink("run", link), 0);
    must(rws__folder_open(link, &read, &f, &err), &err);
    must(record(f, 600, 1, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM runs"), "1");
    assert_string_equal(ask("SELECT iteration FROM runs"), "600");
    assert_string_equal(ask("SELECT started FROM runs"), started);
}

static void load_forgets_later_measures(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= 500; i += 100) must(record(f, i, 1, &err), &err);
    sqlite3 *db = store_open(); /* another run shares the store */
    assert_int_equal(sqlite3_exec(db, "INSERT INTO metrics VALUES('other', 900, 1, 'ess', 2)", NULL, NULL, NULL), 0);
    sqlite3_close(db);
    t->iteration = 300;
    save(f, t, 77);

    must(look(f, t, &seconds, &err), &err);
    assert_true(seconds == 77);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'run'"), "18");
    must(load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'run'"), "12");
    assert_string_equal(ask("SELECT max(iteration) FROM metrics WHERE run = 'run'"), "300");
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE run = 'other'"), "1");
    assert_string_equal(ask("SELECT iteration || ' ' || seconds FROM runs"), "300 77.0");

    /* A file that a kill left without tables. */
    spill("run/metrics.sqlite", "", 0);
    must(load(f, t, &seconds, &err), &err);
    must(record(f, 400, 1, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
}

static void a_refused_load_forgets_nothing(void **state)
{
    (void)state;
    must(record(f, 100, 1, &err), &err);
    save(f, t, 77);
    t->config.method = "ww";
    refuses_load(f, t, "run/checkpoint.safetensors", "\"ww\"");
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
}

static void a_locked_store_is_refused(void **state)
{
    (void)state;
    rws__store_patience(30);
    fill(t, 1);
    t->iteration = 100;
    must(record(f, 200, 1, &err), &err);
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
        assert_refused(record(f, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "locked");
        made_run *before = made_run_new(&two_slots, 4);
        fill(before, 2);
        err.text[0] = '\0';
        assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "locked");
        assert_true(same_state(t, before));
        sqlite3_finalize(reader);
        sqlite3_close(db);
        assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
        made_run_free(before);
    }
    must(record(f, 300, 1, &err), &err);
    must(load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "0");
}

static void a_read_only_store_is_refused(void **state)
{
    (void)state;
    t->iteration = 100;
    must(record(f, 200, 1, &err), &err);
    save(f, t, 77);
    /* root may write anywhere, so the test takes another user id for a while */
    const bool root_user = geteuid() == 0;
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(in_folder("run/metrics.sqlite"), 0444), 0);
    if (root_user && seteuid(65534) != 0) skip();
    const rws_status recording = record(f, 300, 1, &err);
    rws_error        load_err = {""}, look_err = {""};
    const rws_status loading = load(f, t, &seconds, &load_err);
    const rws_status looking = look(f, t, &seconds, &look_err);
    if (root_user) assert_int_equal(seteuid(0), 0);
    assert_refused(recording, RWS_BAD_INPUT, &err, "run/metrics.sqlite", "read-only");
    assert_refused(loading, RWS_BAD_INPUT, &load_err, "run/metrics.sqlite", "read-only");
    must(looking, &look_err);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
}

static void what_is_not_a_store_is_refused(void **state)
{
    (void)state;
    char text[600];
    memset(text, 'x', sizeof text);
    spill("run/metrics.sqlite", text, sizeof text);
    assert_refused(record(f, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "SQLite");
    size_t size;
    char  *bytes = slurp("run/metrics.sqlite", &size);
    assert_int_equal(size, sizeof text);
    assert_memory_equal(bytes, text, size);
    free(bytes);
    unlink(in_folder("run/metrics.sqlite"));

    sqlite3 *db = store_open();
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE metrics(other)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_refused(record(f, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "not a store of runs");
    assert_string_equal(ask("SELECT count(*) FROM sqlite_master WHERE name = 'runs'"), "0"); /* rolled back */
    unlink(in_folder("run/metrics.sqlite"));
    assert_int_equal(mkdir(in_folder("run/metrics.sqlite"), 0777), 0);
    assert_refused(record(f, 300, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "is not an SQLite file");
}

static void evaluations_wait_for_a_flush(void **state)
{
    (void)state;
    rws_snapshots shown = {0};
    must(record(f, 100, 1, &err), &err);
    char label[] = "NP -> \"NP\" PP";
    rws__snapshots_add(&shown, &(rws_shown){"np", 0, label, 0.5});
    rws__snapshots_add(&shown, &(rws_shown){"np", 1, NULL, NAN});
    rws__snapshots_add(&shown, &(rws_shown){"trees", 0, "", 0.25});
    memset(label, 'x', sizeof label - 1); /* it was copied */
    static const char *const names[] = {"p_error", "log_evidence", "ess"};
    for (uint64_t i = 200; i <= 400; i += 100) {
        const rws_measures m = {.iteration = i, .seconds = 1, .n = 3, .names = names, .value = {1, 2, 3}};
        must(rws__folder_record(f, &m, i == 200 ? NULL : &shown, &err), &err);
    }
    rws__snapshots_release(&shown);
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
    must(rws__folder_fail(f, 350, "It broke.", &err), &err);
    assert_string_equal(ask("SELECT iteration || sentence FROM failures"), "350It broke.");
    must(load(f, t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT count(*) FROM failures"), "0");
    assert_string_equal(ask("SELECT max(iteration) FROM snapshots"), "300");
    must(rws__folder_add(f, 300, 9, 1, (const char *[]){"final_kl"}, (double[]){4}, &err), &err);
    assert_string_equal(ask("SELECT value FROM metrics WHERE name = 'final_kl'"), "4.0");
    assert_string_equal(ask("SELECT iteration FROM runs"), "300");
}

static void a_store_of_a_newer_program_is_refused(void **state)
{
    (void)state;
    must(record(f, 100, 1, &err), &err);
    sqlite3 *db = store_open();
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_refused(record(f, 200, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "newer");
    assert_string_equal(ask("SELECT max(iteration) FROM metrics"), "100");
}

/* ---- sweeps */

/* A folder with a store and without a configuration belongs to a sweep; the runs in it write to that store. */
static void runs_of_a_sweep_find_its_store(void **state)
{
    (void)state;
    rws_folder *runs[2];
    char        path[PATH_MAX];
    strcpy(path, in_folder("run/metrics.sqlite"));
    must(rws__store_make(path, &err), &err);
    must(rws__store_make(path, &err), &err); /* a second call does nothing */
    for (int i = 0; i < 2; i++) {
        strcpy(path, in_folder(i ? "run/b" : "run/a"));
        must(try_create(path, t, &runs[i], &err), &err);
        must(record(runs[i], 100, i, &err), &err);
    }
    assert_string_equal(ask("SELECT group_concat(run) FROM runs ORDER BY run"), "a,b");
    assert_false(is_there("run/a/metrics.sqlite"));
    t->iteration = 50;
    save(runs[0], t, 1);
    for (int i = 0; i < 2; i++) rws__folder_close(runs[i]);

    rws_config read;
    strcpy(path, in_folder("run/a"));
    must(rws__folder_open(path, &read, &runs[0], &err), &err);
    must(load(runs[0], t, &seconds, &err), &err);
    assert_string_equal(ask("SELECT group_concat(run) FROM metrics WHERE name = 'ess'"), "b");
    rws__folder_close(runs[0]);

    /* b's folder is gone but its metrics are in the store; they must not become another run's */
    strcpy(path, in_folder("run/b/config.json"));
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_refused(try_create(path, t, &runs[1], &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "\"b\"");
    char store[PATH_MAX];
    strcpy(store, in_folder("run/metrics.sqlite"));
    must(rws__store_drop(store, "b", &err), &err);
    must(try_create(path, t, &runs[1], &err), &err);
    rws__folder_close(runs[1]);

    /* inside a run's own folder a run is on its own */
    assert_int_equal(mkdir(in_folder("run/a/inner"), 0777), 0);
    spill("run/a/metrics.sqlite", "", 0);
    strcpy(path, in_folder("run/a/inner"));
    must(try_create(path, t, &runs[0], &err), &err);
    must(record(runs[0], 100, 1, &err), &err);
    assert_true(is_there("run/a/inner/metrics.sqlite"));
    rws__folder_close(runs[0]);
}

/* Runs of a sweep write to one file at the same time; each waits for its turn and nothing is lost. */
static void several_runs_share_a_store(void **state)
{
    (void)state;
    enum { RUNS = 4, ITERATIONS = 15 };
    const char *const names[] = {"r0", "r1", "r2", "r3"}, *const metrics[] = {"kl", "ess"};
    char  path[PATH_MAX];
    pid_t children[RUNS];
    strcpy(path, in_folder("run/metrics.sqlite"));
    for (int i = 0; i < RUNS; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        const rws_store_run run = {names[i], "{}", "1", "2000-01-01T00:00:00Z"};
        for (uint64_t k = 1; k <= ITERATIONS; k++) {
            const rws_store_entry entry = {
                .iteration = k, .seconds = 1, .n = 2, .names = metrics, .values = (double[]){1, 2}};
            if (rws__store_add(path, &run, &entry, 1, &err) == RWS_OK) continue;
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

static void change(const char *sql)
{
    sqlite3 *db = store_open();
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void rows_that_changed_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *there, *back; /* a change of a row, and its undoing */
    } changes[] = {
        {"UPDATE metrics SET value = 7 WHERE iteration = 100 AND name = 'ess'",
         "UPDATE metrics SET value = NULL WHERE iteration = 100 AND name = 'ess'"},
        {"UPDATE metrics SET iteration = 101 WHERE iteration = 100 AND name = 'ess'",
         "UPDATE metrics SET iteration = 100 WHERE iteration = 101 AND name = 'ess'"},
        {"UPDATE runs SET host = host || 'x'", "UPDATE runs SET host = substr(host, 1, length(host) - 1)"},
        {"UPDATE runs SET iteration = iteration + 1", "UPDATE runs SET iteration = iteration - 1"},
        {"UPDATE checksums SET run = 'other runs'", "UPDATE checksums SET run = 'run'"},
        {"INSERT INTO snapshots VALUES('run', 100, 'p', 0, 'a', 1)", "DELETE FROM snapshots WHERE label = 'a'"},
    };
    for (uint64_t i = 0; i <= 300; i += 100) must(record(f, i, 1, &err), &err);
    t->iteration = 300;
    save(f, t, 77);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        change(changes[i].there);
        assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "damaged");
        const bool head = strstr(changes[i].there, "runs");
        if (head) assert_refused(record(f, 400, 1, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "damaged");
        else must(record(f, 400, 1, &err), &err); /* an addition does not look at numbers before, and hides nothing */
        assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "damaged");
        change(changes[i].back);
        must(load(f, t, &seconds, &err), &err);
    }
}

/* The message names the first of the damaged runs; a run that is whole is used beside them. */
static void a_damaged_run_is_named(void **state)
{
    (void)state;
    static const char *const runs[] = {"gmm-1", "gmm-2", "gmm-3"}, *const names[] = {"loss"};
    const double          value = 1;
    const rws_store_entry entry = {.iteration = 1, .n = 1, .names = names, .values = &value};
    char                 *store = strdup(in_folder("run/metrics.sqlite"));
    for (int i = 0; i < 3; i++)
        must(rws__store_add(store, &(rws_store_run){runs[i], "{}", "1", "now"}, &entry, 1, &err), &err);
    change("UPDATE metrics SET value = 7 WHERE run = 'gmm-2'");
    assert_refused(rws__store_add_metrics(store, "gmm-2", &entry, &err), RWS_BAD_INPUT, &err,
                   "run/metrics.sqlite\" is damaged", "rows of the run \"gmm-2\" are not");
    change("UPDATE runs SET host = '' WHERE run = 'gmm-1'");
    assert_refused(rws__store_add_metrics(store, "gmm-2", &entry, &err), RWS_BAD_INPUT, &err,
                   "\"gmm-1\" and of 1 other run are not", "train these runs again");
    must(rws__store_add_metrics(store, "gmm-3", &entry, &err), &err);
    free(store);
}

/* A run's name is in its row and in the index by which the row is found: a change of one of them is a change. */
static void a_name_that_changed_is_refused(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= 300; i += 100) must(record(f, i, 1, &err), &err);
    t->iteration = 300;
    save(f, t, 77);
    FILE *store = fopen(in_folder("run/metrics.sqlite"), "r+b");
    assert_non_null(store);
    static char  bytes[1 << 20];
    const size_t size = fread(bytes, 1, sizeof bytes, store);
    int          n_names = 0; /* beside a configuration: the row, and what it was before, in unused bytes */
    for (char *name = bytes; (name = memmem(name, size - (size_t)(name - bytes), "run{", 4)); n_names++) *name = 'f';
    assert_in_range(n_names, 1, 8);
    rewind(store);
    assert_int_equal(fwrite(bytes, 1, size, store), size);
    assert_int_equal(fclose(store), 0);
    assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "damaged");
}

static void a_store_of_format_1_gets_checksums(void **state)
{
    (void)state;
    for (uint64_t i = 0; i <= 300; i += 100) must(record(f, i, 1, &err), &err);
    change("DROP TABLE checksums; PRAGMA user_version = 1;");
    must(record(f, 400, 1, &err), &err);
    assert_string_equal(ask("PRAGMA user_version"), "2");
    assert_string_equal(ask("SELECT count(*) FROM checksums"), "1");
    t->iteration = 300;
    save(f, t, 77);
    must(load(f, t, &seconds, &err), &err);
    change("UPDATE metrics SET value = 7 WHERE iteration = 100");
    assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "damaged");
}

/* Early versions 0.1.0 wrote the first tables, and no format. */
static void a_store_without_a_format_is_read_after_the_next_write(void **state)
{
    (void)state;
    const char  *path = run_path;
    rws_results *r;
    must(record(f, 0, 1, &err), &err);
    change("DROP TABLE checksums; DROP TABLE failures; DROP TABLE snapshots; PRAGMA user_version = 0;"
           "UPDATE runs SET version = '0.1.0'");
    assert_refused(rws_results_read(&path, 1, &r, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", "version 0.1.0");
    must(record(f, 100, 1, &err), &err);
    must(rws_results_read(&path, 1, &r, &err), &err);
    rws_results_free(r);
}

/* A watcher tells by the host whether a lock of the run would be seen there. */
static void the_host_is_that_of_the_last_writer(void **state)
{
    (void)state;
    char host[256] = "", said[300];
    gethostname(host, sizeof host - 1);
    must(record(f, 0, 1, &err), &err);
    change("UPDATE runs SET host = 'elsewhere'; DELETE FROM checksums;");
    must(record(f, 100, 1, &err), &err);
    snprintf(said, sizeof said, "%s", ask("SELECT host FROM runs"));
    assert_string_equal(said, host);
}

/* ---- stores of others */

/* The journal of a writer that was killed in a transaction that removed all metrics: SQLite has not deleted it. */
static void kill_a_writer(void)
{
    const pid_t child = fork();
    if (child == 0) {
        sqlite3   *db = store_open();
        const bool began =
            sqlite3_exec(db, "PRAGMA cache_spill = 1; BEGIN; DELETE FROM metrics;", NULL, NULL, NULL) == 0;
        _exit(began && sqlite3_db_cacheflush(db) == SQLITE_OK ? 0 : 1);
    }
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_true(is_there("run/metrics.sqlite-journal"));
}

/* A reader sees the store as it was before the writer that was killed, and leaves both files as they are; the next writer
 * undoes the rest. */
static void a_killed_writer_is_undone_by_the_next(void **state)
{
    (void)state;
    size_t             size, after;
    rws_store_progress progress;
    char              *path = strdup(in_folder("run/metrics.sqlite"));
    for (uint64_t i = 0; i <= 300; i += 100) must(record(f, i, 1, &err), &err);
    must(
        rws__store_add_metrics(
            path, "run",
            &(rws_store_entry){.iteration = 300, .n = 1, .names = (const char *[]){"final_x"}, .values = (double[]){1}},
            &err),
        &err);
    kill_a_writer();
    char *bytes = slurp("run/metrics.sqlite", &size);
    must(rws__store_progress(path, "run", &progress, &err), &err);
    assert_true(progress.known && progress.measured && progress.iteration == 300);
    char *later = slurp("run/metrics.sqlite", &after);
    assert_int_equal(size, after);
    assert_memory_equal(bytes, later, size);
    assert_true(is_there("run/metrics.sqlite-journal"));
    setenv("TMPDIR", in_folder("nowhere"), 1);
    assert_refused(rws__store_progress(path, "run", &progress, &err), RWS_BAD_INPUT, &err, "metrics.sqlite",
                   "Set TMPDIR");
    unsetenv("TMPDIR");
    must(record(f, 400, 1, &err), &err);
    assert_false(is_there("run/metrics.sqlite-journal"));
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "16");
    free(bytes);
    free(later);
    free(path);
}

/* All doors of store.c refuse the store with a message that has the words. */
static void refuses_store(const char *words)
{
    rws_store_progress progress;
    char              *path = strdup(in_folder("run/metrics.sqlite")), *name, *config;
    err.text[0] = '\0';
    assert_refused(rws__store_progress(path, "run", &progress, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", words);
    assert_refused(rws__store_identify(path, "run", &name, &config, &err), RWS_BAD_INPUT, &err, "metrics.sqlite",
                   words);
    assert_refused(rws__store_forget(path, "run", 0, 0, &err), RWS_BAD_INPUT, &err, "metrics.sqlite", words);
    assert_refused(rws__store_configure(path, "run", "{}", &err), RWS_BAD_INPUT, &err, "metrics.sqlite", words);
    assert_refused(rws__store_drop(path, "run", &err), RWS_BAD_INPUT, &err, "metrics.sqlite", words);
    free(path);
}

/* SQLite would delete the file that the journal names. */
static void a_journal_that_names_a_file_is_refused(void **state)
{
    (void)state;
    static const char magic[] = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
    char              victim[PATH_MAX], journal[PATH_MAX];
    for (uint64_t i = 0; i <= 300; i += 100) must(record(f, i, 1, &err), &err);
    kill_a_writer();
    strcpy(victim, in_folder("victim"));
    strcpy(journal, in_folder("run/metrics.sqlite-journal"));
    spill("victim", "mine", 4);
    uint32_t sum = 0;
    for (const char *c = victim; *c; c++) sum += (uint32_t)(int)*c;
    const uint32_t length = (uint32_t)strlen(victim);
    FILE          *file = fopen(journal, "ab");
    assert_non_null(file);
    fwrite((const uint8_t[]){0, 4, 0, 1}, 1, 4, file); /* the number of the page that SQLite never uses */
    fwrite(victim, 1, length, file);
    for (int i = 3; i >= 0; i--) fputc((int)(length >> 8 * i & 255), file);
    for (int i = 3; i >= 0; i--) fputc((int)(sum >> 8 * i & 255), file);
    fwrite(magic, 1, 8, file);
    assert_int_equal(fclose(file), 0);
    refuses_store("names another file");
    assert_refused(record(f, 400, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "names another file");
    assert_true(is_there("victim") && is_there("run/metrics.sqlite-journal"));
    unlink(journal);
    assert_int_equal(symlink(victim, journal), 0);
    refuses_store("is a link");
    assert_true(is_there("victim"));
    unlink(journal);
    static const char        begin[] = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\0\0\0\0\0\0\0\0";
    static const char *const rest[] = {
        "\x7f\0\0\0"
        "\0\0\x02\0"
        "\0\0\x10\0", /* pages before, bytes of a sector and of a page: too many pages, */
        "\x7f\0\0\0"
        "\0\0\x02\0"
        "\0\0\0\0", /* a page of 0 bytes, which SQLite takes for the store's own, */
        "\0\0\0\x01"
        "\0\0\x02\0"
        "\0\0\x02\0", /* other pages than the store's, */
        "\0\0\0\x01"
        "\0\0\0\x20"
        "\0\0\x10\0", /* a sector that no disk has */
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        char header[512] = {0};
        memcpy(header, begin, 16);
        memcpy(header + 16, rest[i], 12);
        spill("run/metrics.sqlite-journal", header, sizeof header);
        refuses_store("other pages");
    }
    unlink(journal);
    must(record(f, 500, 1, &err), &err);
}

#define ENDLESS "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)"

static void a_foreign_schema_is_refused(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT * FROM r WHERE " ENDLESS " > 0",
        "CREATE TRIGGER t BEFORE UPDATE ON runs BEGIN SELECT " ENDLESS "; END",
        "CREATE TRIGGER t BEFORE DELETE ON metrics BEGIN SELECT " ENDLESS "; END",
        "CREATE INDEX i ON metrics(value)",
        "CREATE TABLE more(x)",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE failures ADD COLUMN g AS (abs(iteration))",
        "DROP TABLE checksums",
        "PRAGMA user_version = 1",
    };
    must(record(f, 100, 1, &err), &err);
    size_t size;
    char  *bytes = slurp("run/metrics.sqlite", &size);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        change(changes[i]);
        refuses_store("not a store of runs");
        spill("run/metrics.sqlite", bytes, size);
    }
    free(bytes);
    change("CREATE INDEX i ON metrics(value)");
    refuses_store(
        "has the index \"i\", which rws does not make. This removes it, if it is yours: sqlite3 FILE \"DROP index i\"");
    change("DROP index i; ANALYZE;");
    refuses_store("sqlite3 FILE \"DROP table sqlite_stat1\"");
    change("VACUUM; ANALYZE; DROP TABLE sqlite_stat1;");
    must(record(f, 200, 1, &err), &err);
    change("PRAGMA journal_mode = WAL");
    refuses_store("write-ahead log");
    assert_false(is_there("run/metrics.sqlite-wal") || is_there("run/metrics.sqlite-shm"));
    change("PRAGMA journal_mode = DELETE");
    must(record(f, 300, 1, &err), &err);
}

/* A cell that is larger than any that rws writes is not read. */
static void a_large_cell_is_refused(void **state)
{
    (void)state;
    must(record(f, 100, 1, &err), &err);
    change("UPDATE runs SET config = CAST(zeroblob(100000000) AS TEXT)");
    rws__folder_close(f);
    rws_config config;
    must(rws__folder_open(in_folder("run"), &config, &f, &err), &err);
    assert_non_null(strstr(rws__folder_warnings(f), "longer than any that rws writes"));
    assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, "run", "checkpoint");
}

/* Rows of `runs` that share one chain of pages with a long text: many times the size of the store in memory. The page of the table is
 * filled with copies of its one row. */
static void texts_that_rows_share_are_refused(void **state)
{
    (void)state;
    enum { PAGE = 4096 };
    must(record(f, 100, 1, &err), &err);
    change("DROP TABLE checksums; PRAGMA user_version = 1");
    uint8_t *bytes = NULL, *page = NULL;
    size_t   size, at = 0;
    for (int more = 0; at < 3 * PAGE / 4; more += 300) { /* until most of the row is in other pages */
        char sql[128];
        snprintf(sql, sizeof sql, "UPDATE runs SET config = '{' || hex(zeroblob(%d)) || '}'; VACUUM", 350000 + more);
        change(sql);
        free(bytes);
        const int root = atoi(ask("SELECT rootpage FROM sqlite_master WHERE name = 'runs'"));
        bytes = (uint8_t *)slurp("run/metrics.sqlite", &size);
        page = bytes + PAGE * (size_t)(root - 1);
        at = (size_t)page[8] << 8 | page[9];
        assert_true(page[0] == 13 && page[4] == 1 && more < 9000);
    }
    const size_t cell = PAGE - at, n = (PAGE - 8) / (cell + 2);
    for (size_t i = 1; i < n; i++) {
        const size_t to = PAGE - (i + 1) * cell;
        memcpy(page + to, page + at, cell);
        page[8 + 2 * i] = (uint8_t)(to >> 8), page[9 + 2 * i] = (uint8_t)to;
        page[5] = (uint8_t)(to >> 8), page[6] = (uint8_t)to;
    }
    page[4] = (uint8_t)n;
    spill("run/metrics.sqlite", bytes, size);
    free(bytes);
    const char  *paths[] = {in_folder("run")};
    rws_results *runs;
    assert_refused(rws_results_read(paths, 1, &runs, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "damaged");
}

/* A store that took too long is not read again until it changes. */
static void a_slow_store_is_remembered(void **state)
{
    (void)state;
    rws_store_progress progress;
    char              *path = strdup(in_folder("run/metrics.sqlite"));
    must(record(f, 100, 1, &err), &err);
    assert_refused(rws__store_explain(NULL, path, "read", SQLITE_INTERRUPT, &err), RWS_BAD_INPUT, &err,
                   "run/metrics.sqlite", "more time");
    assert_refused(rws__store_progress(path, "run", &progress, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite",
                   "more time");
    change("PRAGMA user_version = 2; VACUUM");
    must(rws__store_progress(path, "run", &progress, &err), &err);
    free(path);
}

/* Holes of a sparse file, which a stranger gets for nothing, give a store neither time nor rows. */
static void holes_do_not_count(void **state)
{
    (void)state;
    struct stat is;
    sqlite3    *db;
    must(record(f, 100, 1, &err), &err);
    assert_int_equal(truncate(in_folder("run/metrics.sqlite"), INT64_C(1) << 40), 0);
    assert_int_equal(stat(in_folder("run/metrics.sqlite"), &is), 0);
    assert_true(is.st_size == INT64_C(1) << 40);
    assert_int_equal(rws__store_open(in_folder("run/metrics.sqlite"), false, &db), SQLITE_OK);
    assert_true(rws__store_size(db) > 0 && rws__store_size(db) < 1 << 24);
    sqlite3_close(db);
    must(record(f, 200, 1, &err), &err); /* the store is whole */
}

static void a_link_is_not_written_through(void **state)
{
    (void)state;
    char store[PATH_MAX], empty[PATH_MAX];
    strcpy(store, in_folder("run/metrics.sqlite"));
    strcpy(empty, in_folder("empty"));
    spill("empty", "", 0);
    unlink(store);
    assert_int_equal(symlink(empty, store), 0);
    assert_refused(record(f, 100, 1, &err), RWS_BAD_INPUT, &err, "run/metrics.sqlite", "is a link");
    size_t size;
    free(slurp("empty", &size));
    assert_int_equal(size, 0);
}

int main(void)
{
#define RUN(f) cmocka_unit_test_setup_teardown(f, begin_run, end)
#define SWEEP(f) cmocka_unit_test_setup_teardown(f, begin_sweep, end)
    const struct CMUnitTest tests[] = {
        RUN(measures_are_recorded),
        RUN(load_forgets_later_measures),
        RUN(a_refused_load_forgets_nothing),
        RUN(a_locked_store_is_refused),
        RUN(a_read_only_store_is_refused),
        RUN(what_is_not_a_store_is_refused),
        RUN(evaluations_wait_for_a_flush),
        RUN(a_store_of_a_newer_program_is_refused),
        RUN(rows_that_changed_are_refused),
        RUN(a_name_that_changed_is_refused),
        RUN(a_store_of_format_1_gets_checksums),
        RUN(a_store_without_a_format_is_read_after_the_next_write),
        RUN(the_host_is_that_of_the_last_writer),
        RUN(a_killed_writer_is_undone_by_the_next),
        RUN(a_journal_that_names_a_file_is_refused),
        RUN(a_foreign_schema_is_refused),
        RUN(texts_that_rows_share_are_refused),
        RUN(a_slow_store_is_remembered),
        RUN(a_large_cell_is_refused),
        RUN(holes_do_not_count),
        RUN(a_link_is_not_written_through),
        SWEEP(a_damaged_run_is_named),
        SWEEP(runs_of_a_sweep_find_its_store),
        SWEEP(several_runs_share_a_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
