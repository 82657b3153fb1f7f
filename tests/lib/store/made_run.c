#include "made_run.h"

#include <stdio.h>
#include <string.h>

/* ---- the state */

rws_run_state state_of(const made_run *t, double *seconds)
{
    made_run *run = (made_run *)t;
    return (rws_run_state){.config = &t->config,
                           .settings = t->given,
                           .n_settings = t->n_given,
                           .model = t->model.name,
                           .params = &run->params,
                           .optimiser = t->optimiser,
                           .slot = {t->slot[0], t->slot[1]},
                           .steps = run->steps,
                           .iteration = &run->iteration,
                           .memory = run->memory,
                           .seconds = seconds,
                           .data_hash = {t->data_hash[0], t->data_hash[1]}};
}

const rws_optimiser two_slots = {.name = "adam", .n_slots = 2, .slot_names = {"mean", "square"}};
const rws_optimiser one_slot = {.name = "momentum", .n_slots = 1, .slot_names = {"velocity"}};
const rws_optimiser no_slot = {.name = "sgd"};

void give(made_run *t, const char *name, const char *value)
{
    assert_true(t->n_given < MAX_GIVEN);
    t->settings[t->n_given] = (rws_setting){.name = name};
    t->given[t->n_given] = (rws_given){&t->settings[t->n_given], value};
    t->n_given++;
}

made_run *made_run_new(const rws_optimiser *optimiser, int n_out)
{
    made_run *t = calloc(1, sizeof *t);
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
    rws__params_add(&t->params, RWS_PHI, "phi.mlp.0.weight", n_out, 3)->transposed = true;
    rws__params_add(&t->params, RWS_PHI, "phi.mlp.0.bias", 1, n_out);
    rws__params_add(&t->params, RWS_THETA, "theta", 1, 5);
    rws__params_add(&t->params, RWS_BASELINE, "baseline.table", 2, 2);
    rws__params_pack(&t->params);
    for (int i = 0; i < 2; i++) t->slot[i] = calloc(t->params.size, sizeof *t->slot[i]);
    return t;
}

void made_run_free(made_run *t)
{
    rws__params_release(&t->params);
    for (int i = 0; i < 2; i++) free(t->slot[i]);
    free(t);
}

uint32_t random_bits(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8 ^ *seed << 16;
}

void fill(made_run *t, uint32_t seed)
{
    const float odd[] = {-0.0f, 1e-45f, -1e-39f, 3.4028235e38f, 1.0f / 3.0f};
    for (size_t i = 0; i < t->params.size; i++) {
        do {
            const uint32_t bits = random_bits(&seed);
            memcpy(&t->params.value[i], &bits, sizeof bits);
        } while (!isfinite(t->params.value[i]));
        if (i < 5) t->params.value[i] = odd[i];
        for (int k = 0; k < 2; k++) {
            do { /* a slot may be anything but NaN */
                const uint32_t bits = random_bits(&seed);
                memcpy(&t->slot[k][i], &bits, sizeof bits);
            } while (isnan(t->slot[k][i]));
        }
    }
    t->iteration = random_bits(&seed) % 1000 + 100;
    for (int i = 0; i < RWS_GROUPS; i++) t->steps[i] = random_bits(&seed) % 3; /* tests set small iterations */
    const uint64_t nan_bits = 0x7ff8000012345678u;
    memcpy(&t->memory[0], &nan_bits, sizeof nan_bits);
    t->memory[1] = -1.0 / 3.0;
    rws__params_transpose(&t->params, ~0u, t->params.value, t->params.transposed);
}

bool same_state(const made_run *a, const made_run *b)
{
    const size_t bytes = a->params.size * sizeof(float);
    bool         same = a->params.size == b->params.size && a->optimiser == b->optimiser;
    same = same && a->iteration == b->iteration && memcmp(a->steps, b->steps, sizeof a->steps) == 0;
    same = same && memcmp(a->params.value, b->params.value, bytes) == 0;
    same = same && memcmp(a->params.transposed, b->params.transposed, a->params.transposed_size * sizeof(float)) == 0;
    for (int i = 0; i < a->optimiser->n_slots; i++) same = same && memcmp(a->slot[i], b->slot[i], bytes) == 0;
    return same && memcmp(a->memory, b->memory, sizeof a->memory) == 0;
}

/* ---- its run's folder */

char run_path[PATH_MAX];

int run_setup(void **state)
{
    const int status = folder_make(state);
    strcpy(run_path, in_folder("run"));
    return status;
}

rws_status try_create(const char *path, const made_run *t, rws_folder **out, rws_error *err)
{
    const rws_run_state s = state_of(t, NULL);
    return rws__folder_create(path, &s, out, err);
}

rws_status try_save(rws_folder *f, const made_run *t, double seconds, rws_error *err)
{
    const rws_run_state s = state_of(t, &seconds);
    return rws__folder_save(f, &s, err);
}

rws_folder *create(const made_run *t)
{
    rws_error   err = {""};
    rws_folder *f = NULL;
    must(try_create(run_path, t, &f, &err), &err);
    assert_non_null(f);
    return f;
}

void save(rws_folder *f, made_run *t, double seconds)
{
    rws_error err = {""};
    must(try_save(f, t, seconds, &err), &err);
    assert_int_equal(n_temporaries("run"), 0);
}

static rws_status loaded(made_run *t, rws_status status)
{
    if (status == RWS_OK) rws__params_transpose(&t->params, ~0u, t->params.value, t->params.transposed);
    return status;
}

rws_status load(rws_folder *f, made_run *t, double *seconds, rws_error *err)
{
    const rws_run_state s = state_of(t, seconds);
    return loaded(t, rws__folder_load(f, &s, err));
}

rws_status look(rws_folder *f, made_run *t, double *seconds, rws_error *err)
{
    const rws_run_state s = state_of(t, seconds);
    return loaded(t, rws__folder_peek(f, &s, err));
}

void refuses_load(rws_folder *f, made_run *t, const char *a, const char *b)
{
    made_run *before = made_run_new(t->optimiser, t->params.list[0]->rows);
    memcpy(before->params.value, t->params.value, t->params.size * sizeof(float));
    rws__params_transpose(&before->params, ~0u, before->params.value, before->params.transposed);
    for (int i = 0; i < 2; i++) memcpy(before->slot[i], t->slot[i], t->params.size * sizeof(float));
    memcpy(before->steps, t->steps, sizeof t->steps);
    memcpy(before->memory, t->memory, sizeof t->memory);
    before->iteration = t->iteration;
    double    seconds = 123;
    rws_error err = {""};
    assert_refused(load(f, t, &seconds, &err), RWS_BAD_INPUT, &err, a, b);
    err.text[0] = '\0';
    assert_refused(look(f, t, &seconds, &err), RWS_BAD_INPUT, &err, a, b);
    assert_true(same_state(t, before));
    assert_true(seconds == 123);
    made_run_free(before);
}

/* ---- its store */

sqlite3 *store_open(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(in_folder("run/metrics.sqlite"), &db), SQLITE_OK);
    return db;
}

const char *ask(const char *sql)
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

rws_status record(rws_folder *f, uint64_t iteration, double value, rws_error *err)
{
    static const char *const names[] = {"p_error", "log_evidence", "ess"};
    const rws_measures       m = {.iteration = iteration,
                                  .seconds = (double)iteration / 2,
                                  .n = 3,
                                  .names = names,
                                  .value = {value, -INFINITY, NAN}};
    const rws_status         status = rws__folder_record(f, &m, NULL, err);
    if (status != RWS_OK) return status;
    return rws__folder_flush(f, err);
}
