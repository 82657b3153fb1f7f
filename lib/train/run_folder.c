/* run_folder.c - a trainer and the folder of its run, which rank 0 alone reads and writes. */
#include "base/hash.h"
#include "program/plugin.h"
#include "store/checkpoint.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the fingerprint of the data, by which a run that continues sees whether they are the same */

static uint64_t hash_fields(const rws_trainer *t, float *const *fields, int n, uint64_t h)
{
    for (int f = 0; f < t->program.setup.n_fields; f++)
        h = rws__hash(h, fields[f], (size_t)n * (size_t)t->program.setup.fields[f].dim * sizeof(float));
    return h;
}

/* Training data may be drawn without end, so that the fingerprint is that of two batches: the first one and a later
 * one. */
rws_status rws__trainer_hash_data(rws_trainer *t, rws_error *err)
{
    const int      n = t->program.config.batch;
    const uint64_t at[] = {0, 7919};
    uint64_t       h = RWS_HASH_BEGIN;
    if (t->data_hash[RWS_TRAIN]) return RWS_OK; /* it was computed when the ranks compared their data */
    for (int i = 0; i < 2; i++) {
        rws_random random = rws__random_new(rws__key_for(t->program.config.seed, at[i], RWS_KEY_DATA, 0), 0);
        RWS_TRY(rws__setup_make_data(&t->program.setup, t->program.model, t->program.state, RWS_TRAIN,
                                     at[i] * (uint64_t)n, n, &random, t->batch, err));
        h = hash_fields(t, t->batch, n, h);
    }
    t->data_hash[RWS_TRAIN] = h;
    t->data_hash[RWS_TEST] = hash_fields(t, t->test, t->program.n_test, RWS_HASH_BEGIN);
    return RWS_OK;
}

/* ---- the folder */

static rws_status create(rws_trainer *t, const char *folder, rws_error *err)
{
    RWS_TRY(rws__trainer_hash_data(t, err));
    const rws_run_state s = rws__trainer_state_of(t);
    return rws__folder_create(folder, &s, &t->folder, err);
}

rws_status rws_trainer_keep(rws_trainer *t, const char *folder, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    rws_status status = RWS_OK;
    if (!folder) return rws_fail(err, RWS_BAD_INPUT, "The folder that the run is to be kept in has no name (NULL).");
    if (t->kept) return rws_fail(err, RWS_BAD_INPUT, "The run has a folder already.");
    if (t->ranks.rank == 0) status = create(t, folder, err);
    RWS_TRY(rws__trainer_agree(t, status, err));
    t->kept = true;
    return RWS_OK;
}

rws_status rws_trainer_save(rws_trainer *t, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    rws_status status = RWS_OK;
    if (!t->kept) return rws_fail(err, RWS_BAD_INPUT, "The run has no folder to be saved in.");
    RWS_TRY(rws__trainer_collect_slots(t, err));
    const rws_run_state s = rws__trainer_state_of(t);
    if (t->folder) status = rws__folder_save(t->folder, &s, err);
    RWS_TRY(rws__trainer_agree(t, status, err));
    t->saved = t->program.iteration;
    return RWS_OK;
}

/* The fingerprint of the shared object if the run began with another one, and the user accepts this one; otherwise NULL. */
static const char *accepted_object(const rws_trainer *t, const rws_recorded *r)
{
    const rws_object *o = rws__model_object(t->program.library);
    if (!o || !t->program.config.changed) return NULL;
    const bool other = r->fingerprint && !rws__object_fits(o, r->fingerprint);
    return other || (r->checkpoint && !rws__object_fits(o, r->checkpoint)) ? o->fingerprint : NULL;
}

/* Writes to the folder what has changed: a run that continues may have another number of iterations, other rates from
 * here on, and its shared object in another place, or another one. */
static rws_status amend(rws_trainer *t, const rws_config *stored, const char *folder, rws_error *err)
{
    const rws_config *c = &t->program.config;
    rws_schedule      had, has;
    const char       *object = accepted_object(t, rws__folder_recorded(t->folder));
    if (!object && c->iterations == stored->iterations && strcmp(c->lr, stored->lr) == 0 &&
        (!t->program.library || strcmp(c->model, rws__folder_recorded(t->folder)->model) == 0))
        return RWS_OK;
    if (c->iterations < t->program.iteration && c->iterations != stored->iterations)
        return rws_fail(err, RWS_BAD_INPUT, "The run in %s has done %llu iterations and cannot end after %llu.", folder,
                        (unsigned long long)t->program.iteration, (unsigned long long)c->iterations);
    RWS_TRY(rws__schedule_parse(stored->lr, &had, err));
    RWS_TRY(rws__schedule_parse(c->lr, &has, err));
    if (!rws__schedule_agree(&had, &has, t->program.iteration))
        return rws_fail(err, RWS_BAD_INPUT,
                        "lr %s contradicts the run in %s, which has had %s so far; only from iteration "
                        "%llu on may it be another, as in 1e-3,%llu:1e-4.",
                        c->lr, folder, stored->lr, (unsigned long long)t->program.iteration,
                        (unsigned long long)t->program.iteration);
    if (c->iterations != stored->iterations && t->program.iteration && t->program.method.anneals)
        rws__folder_warn(t->folder,
                         "The method anneals over all iterations: with another number of them, the run is no "
                         "longer what it would have been with that number from the beginning.");
    rws_config now = *c;
    if (!t->program.library) now.model = NULL; /* a model at hand may stand for a shared object */
    return rws__folder_amend(t->folder, &now, object, err);
}

rws_status rws__trainer_peek(rws_trainer *t, rws_folder *folder, rws_error *err)
{
    const rws_run_state s = rws__trainer_state_of(t);
    RWS_TRY(rws__folder_peek(folder, &s, err));
    rws_trainer_changed(t);
    return RWS_OK;
}

const char *rws_trainer_warnings(const rws_trainer *t)
{
    return t && t->folder ? rws__folder_warnings(t->folder) : "";
}

/* ---- the configuration of a run, from rank 0 to the others */

/* The entries of a folder about a run. They are sent like this, followed by their texts. */
typedef struct {
    rws_config   config;
    rws_recorded recorded;
} stored;

enum { TEXTS = 9 /* and the settings */ };

static const char **texts_of(stored *s, int i)
{
    rws_config   *c = &s->config;
    rws_recorded *r = &s->recorded;
    const char  **texts[TEXTS] = {&c->model, &c->method,      &c->optimiser,  &c->lr,   &r->folder,
                                  &r->model, &r->fingerprint, &r->checkpoint, &r->store};
    return i < TEXTS ? texts[i] : &c->set[i - TEXTS];
}

/* The structures and their texts, one after the other, in one block that the caller frees; NULL without memory. A text that is
 * NULL stays NULL. */
static char *pack(stored s, size_t *size)
{
    const int n = TEXTS + s.config.n_set;
    *size = sizeof s;
    for (int i = 0; i < n; i++) *size += *texts_of(&s, i) ? strlen(*texts_of(&s, i)) + 1 : 0;
    char *block = malloc(*size);
    if (!block) return NULL;
    char *at = block + sizeof s;
    memcpy(block, &s, sizeof s);
    for (int i = 0; i < n; i++)
        if (*texts_of(&s, i)) at = stpcpy(at, *texts_of(&s, i)) + 1;
    return block;
}

/* Reads the structures from a block; their texts point into the block. */
static void unpack(char *block, stored *out)
{
    stored     *s = (stored *)block;
    const char *at = block + sizeof *s;
    for (int i = 0; i < TEXTS + s->config.n_set; i++) {
        if (!*texts_of(s, i)) continue;
        *texts_of(s, i) = at;
        at += strlen(at) + 1;
    }
    *out = *s;
}

/* Every rank gets what rank 0 has read. The caller frees *block, which holds the texts on all ranks but rank 0. */
static rws_status broadcast_stored(rws_comm *comm, stored *s, char **block, rws_error *err)
{
    size_t size = 0;
    *block = NULL;
    if (!comm) return RWS_OK;
    if (rws__comm_rank(comm) == 0) *block = pack(*s, &size);
    RWS_TRY(rws__comm_broadcast(comm, &size, sizeof size, err));
    if (rws__comm_rank(comm)) *block = malloc(size);
    RWS_TRY(rws__comm_agree(comm, *block ? RWS_OK : rws_no_memory(err, "the configuration"), err));
    RWS_TRY(rws__comm_broadcast(comm, *block, size, err));
    if (rws__comm_rank(comm)) unpack(*block, s);
    return RWS_OK;
}

/* ---- continuing */

static rws_status open_locked(const char *path, stored *s, rws_folder **folder, rws_error *err)
{
    RWS_TRY(rws__folder_open(path, &s->config, folder, err));
    s->recorded = *rws__folder_recorded(*folder);
    return rws__folder_lock(*folder, err);
}

/* Loads the checkpoint, if there is one, and says in the folder what has changed. */
static rws_status load(rws_trainer *t, const rws_config *stored, const char *path, rws_error *err)
{
    RWS_TRY(rws__trainer_hash_data(t, err));
    const rws_run_state s = rws__trainer_state_of(t);
    if (rws__folder_has_checkpoint(t->folder)) RWS_TRY(rws__folder_load(t->folder, &s, err));
    else RWS_TRY(rws__folder_restart(t->folder, err));
    rws_trainer_changed(t);
    return amend(t, stored, path, err);
}

static rws_status resume(const char *path, const rws_config *changes, const rws_model *model, rws_folder **folder,
                         rws_trainer **out, char **block, rws_error *err)
{
    rws_comm  *comm = rws__comm_world();
    const bool writes = rws__comm_rank(comm) == 0;
    stored     s = {0};
    RWS_TRY(rws__comm_agree(comm, writes ? open_locked(path, &s, folder, err) : RWS_OK, err));
    RWS_TRY(broadcast_stored(comm, &s, block, err));
    rws_config config = s.config;
    if (changes->model) config.model = changes->model;
    config.changed = changes->changed;
    config.no_check = changes->no_check;
    if (changes->iterations) config.iterations = changes->iterations;
    if (changes->lr) config.lr = changes->lr;
    if (changes->threads) config.threads = changes->threads;
    config.limits = changes->limits;
    RWS_TRY(rws__trainer_open(&config, &s.recorded, model, out, err));
    rws_trainer *t = *out;
    t->folder = *folder;
    t->kept = true;
    *folder = NULL;
    const bool accepted = accepted_object(t, &s.recorded);
    RWS_TRY(rws__trainer_agree(t, writes ? load(t, &s.config, path, err) : RWS_OK, err));
    RWS_TRY(rws__trainer_broadcast_state(t, err));
    t->saved = t->program.iteration;
    return accepted ? rws_trainer_save(t, err) : RWS_OK; /* the checkpoint has the fingerprint too */
}

rws_status rws_trainer_resume(const char *path, const rws_config *changes, const rws_model *model, rws_trainer **out,
                              rws_error *err)
{
    RWS_NEED(out, err);
    static const rws_config none;
    rws_folder             *folder = NULL;
    char                   *block = NULL;
    *out = NULL;
    if (!path) return rws_fail(err, RWS_BAD_INPUT, "The folder of the run has no name (NULL).");
    const rws_status status = resume(path, changes ? changes : &none, model, &folder, out, &block, err);
    rws__folder_close(folder);
    free(block);
    if (status == RWS_OK) return RWS_OK;
    rws_trainer_free(*out);
    *out = NULL;
    return status;
}
