#include "train/ranks.h"

#include "base/error.h"
#include "base/hash.h"
#include "program/config.h"
#include "program/object.h"
#include "train/trainer.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void rws__ranks_range(int size, int rank, int n, int *first, int *end)
{
    *first = (int)((int64_t)n * rank / size);
    *end = (int)((int64_t)n * (rank + 1) / size);
}

int rws__ranks_holder(int size, int n, int i)
{
    int rank = (int)((int64_t)i * size / n), first, end;
    for (rws__ranks_range(size, rank, n, &first, &end); i >= end;) rws__ranks_range(size, ++rank, n, &first, &end);
    return rank;
}

rws_ranks rws__ranks_make(rws_comm *comm, int n_shards)
{
    rws_ranks r = {.comm = comm, .rank = rws__comm_rank(comm), .size = rws__comm_size(comm)};
    rws__ranks_range(r.size, r.rank, n_shards, &r.first, &r.end);
    return r;
}

static int lowest_bit(const rws_ranks *r, int rank)
{
    int bit = 1;
    while (bit < r->size && !(rank & bit)) bit *= 2;
    return bit;
}

void rws__ranks_route(const rws_ranks *r, int root, bool few, rws_route *route)
{
    RWS_CHECK(!few || root == 0);
    *route = (rws_route){.parent = r->rank == root ? -1 : root};
    if (few && r->rank) route->parent = r->rank - lowest_bit(r, r->rank);
    if (few) {
        route->source[route->n++] = r->rank;
        for (int bit = 1; bit < lowest_bit(r, r->rank) && r->rank + bit < r->size; bit *= 2)
            route->source[route->n++] = r->rank + bit;
        return;
    }
    for (int i = 0; i < r->size; i++)
        if (i == r->rank || r->rank == root) route->source[route->n++] = i;
}

int rws__ranks_brings(const rws_ranks *r, bool few, int rank)
{
    if (!few || rank == r->rank) return rank + 1;
    const int end = rank + lowest_bit(r, rank);
    return end < r->size ? end : r->size;
}

/* ---- sharing out work and exchanging what came of it */

typedef struct {
    rws_pool_job *job;
    void         *context;
    int           first;
} own_work;

static void run_own(void *context, int index, int worker)
{
    const own_work *w = context;
    w->job(w->context, w->first + index, worker);
}

void rws__trainer_run_range(rws_trainer *t, int first, int end, rws_pool_job *job, void *context)
{
    own_work w = {job, context, first};
    rws__pool_run(t->pool, end - first, run_own, &w);
}

rws_status rws__trainer_exchange(rws_trainer *t, int n, void *records, size_t size, rws_error *err)
{
    const rws_ranks *r = &t->ranks;
    size_t           start[r->size + 1];
    int              first, end = 0;
    if (!r->comm) return RWS_OK;
    for (int rank = 0; rank < r->size; rank++) {
        rws__ranks_range(r->size, rank, n, &first, &end);
        start[rank] = (size_t)first * size;
    }
    start[r->size] = (size_t)end * size;
    return rws__comm_gather_blocks(r->comm, records, start, err);
}

rws_status rws__trainer_distribute(rws_trainer *t, int n, rws_pool_job *job, void *context, void *records, size_t size,
                                   rws_error *err)
{
    int first, end;
    rws__ranks_range(t->ranks.size, t->ranks.rank, n, &first, &end);
    rws__trainer_run_range(t, first, end, job, context);
    return rws__trainer_exchange(t, n, records, size, err);
}

rws_status rws__trainer_agree(rws_trainer *t, rws_status status, rws_error *err)
{
    return rws__comm_agree(t->ranks.comm, status, err);
}

rws_status rws__trainer_requests(rws_trainer *t, rws_error *err)
{
    const rws_ranks *r = &t->ranks;
    if (!r->comm) {
        t->requests |= t->request;
        return RWS_OK;
    }
    int all[r->size];
    RWS_TRY(rws__comm_gather(r->comm, &t->request, sizeof t->request, all, err));
    for (int i = 0; i < r->size; i++) t->requests |= all[i];
    return RWS_OK;
}

/* ---- state that the ranks hold together */

rws_status rws__trainer_broadcast_state(rws_trainer *t, rws_error *err)
{
    rws_comm    *c = t->ranks.comm;
    rws_params  *p = &t->program.setup.params;
    const size_t bytes = p->size * sizeof(float);
    if (!c) return RWS_OK;
    RWS_TRY(rws__comm_broadcast(c, p->value, bytes, err));
    for (int i = 0; i < 2; i++)
        if (t->slot[i]) RWS_TRY(rws__comm_broadcast(c, t->slot[i], bytes, err));
    RWS_TRY(rws__comm_broadcast(c, t->steps, sizeof t->steps, err));
    RWS_TRY(rws__comm_broadcast(c, &t->program.iteration, sizeof t->program.iteration, err));
    RWS_TRY(rws__comm_broadcast(c, t->program.method.memory, sizeof t->program.method.memory, err));
    RWS_TRY(rws__comm_broadcast(c, &t->seconds, sizeof t->seconds, err));
    if (t->ranks.rank) rws_trainer_changed(t);
    return RWS_OK;
}

/* ---- ranks that do not belong together */

enum { FINGERPRINTS = 6 };

typedef struct {
    uint64_t of[FINGERPRINTS];
} fingerprints;

static const char *const fingerprint_of[FINGERPRINTS] = {"version or build", "options",       "model",
                                                         "test data",        "training data", "first parameters"};

static uint64_t hash_text(uint64_t h, const char *text)
{
    return text ? rws__hash(h, text, strlen(text) + 1) : h;
}

static uint64_t hash_config(const rws_config *c, uint64_t h)
{
    char text[RWS_CONFIG_VALUE];
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (strcmp(m->name, "model") != 0 && strcmp(m->name, "threads") != 0)
            h = hash_text(h, rws__config_value(m, c, text));
    for (int i = 0; i < c->n_set; i++) h = hash_text(h, c->set[i]);
    return h;
}

/* The bytes of the program, or of the library in it, and those of the model if it is a shared object. */
static rws_status hash_files(const rws_trainer *t, fingerprints *out, rws_error *err)
{
    Dl_info     about;
    char        text[RWS_FINGERPRINT_SIZE];
    const char *self =
        dladdr((void *)rws__trainer_meet, &about) && strchr(about.dli_fname, '/') ? about.dli_fname : "/proc/self/exe";
    RWS_TRY(rws__fingerprint(self, text, err));
    out->of[0] = hash_text(hash_text(out->of[0], RWS_VERSION_STRING), text);
    out->of[2] = hash_text(out->of[2], t->program.model->name);
    if (!t->program.library) return RWS_OK;
    RWS_TRY(rws__fingerprint(t->program.config.model, text, err));
    out->of[2] = hash_text(out->of[2], text);
    return RWS_OK;
}

static rws_status compare(const rws_trainer *t, const fingerprints *all, rws_error *err)
{
    char who[160];
    for (int k = 0; k < FINGERPRINTS; k++)
        for (int rank = 1; rank < t->ranks.size; rank++)
            if (all[rank].of[k] != all[0].of[k])
                return rws_fail(
                    err, RWS_BAD_INPUT,
                    "%s differs from rank 0 in its %s: all ranks need the same program, options, model and data.",
                    rws__comm_describe(t->ranks.comm, rank, who, sizeof who), fingerprint_of[k]);
    return RWS_OK;
}

rws_status rws__trainer_meet(rws_trainer *t, rws_error *err)
{
    const rws_ranks *r = &t->ranks;
    fingerprints     mine, all[r->size];
    if (!r->comm) return RWS_OK;
    for (int k = 0; k < FINGERPRINTS; k++) mine.of[k] = RWS_HASH_BEGIN;
    rws_status status = hash_files(t, &mine, err);
    if (status == RWS_OK) status = rws__trainer_hash_data(t, err);
    mine.of[1] = hash_config(&t->program.config, RWS_HASH_BEGIN);
    mine.of[3] = t->data_hash[RWS_TEST];
    mine.of[4] = t->data_hash[RWS_TRAIN];
    mine.of[5] = rws__hash(RWS_HASH_BEGIN, t->program.setup.params.value, t->program.setup.params.size * sizeof(float));
    RWS_TRY(rws__trainer_agree(t, status, err));
    RWS_TRY(rws__comm_gather(r->comm, &mine, sizeof mine, all, err));
    return compare(t, all, err);
}
