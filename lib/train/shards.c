/* shards.c - how a phase is distributed over a batch.
 *
 *     batch    |    shard 0    |    shard 1    |    shard 2    |    shard 3    |     fixed by the configuration
 *     passes   |  |  |  |  |                                                          as many data as fit in memory
 *     ranks    |            rank 0             |            rank 1             |     any number
 *
 * Threads take whole shards of their rank, in any order; a shard adds to a gradient of its own, and the sums over
 * shards are made along a fixed tree (update.c). Therefore neither the number of threads nor that of ranks changes
 * anything.
 *
 * With config.particle_shards, shards cut the particles of every datum as well. Weights compare all particles of a
 * datum: all shards make forward, exchange the rows of their tables (cut.c), and only then make backward.
 *
 *     datum 0  | particles 0 … 49 | 50 … 99 |      shards 0 and 1
 *     datum 1  | particles 0 … 49 | 50 … 99 |      shards 2 and 3
 *
 * The gradients of large weights are sums of products of rows. A shard's last pass may leave these products to
 * update.c, which computes them slice by slice while the slice is in the cache; the engine must then keep its pass
 * until the step, so that every shard has an engine of its own.
 */
#include "train/phase.h"

#include <stdlib.h>
#include <string.h>

/* Shards weigh together if they have particles of the same data; a dream is weighed alone. */
static bool is_cut(const rws_phase_work *w)
{
    return w->t->program.config.particle_shards > 1 && w->phase->mode != RWS_SLEEP;
}

static rws_engine *engine_of(const rws_trainer *t, int shard, int worker)
{
    return t->engines[t->engine_per_shard ? shard - t->ranks.first : worker];
}

static rws_shard *shard_begin(const rws_phase_work *w, int i)
{
    rws_shard *s = &w->t->shards[i];
    s->status = RWS_OK;
    s->tally = (rws_tally){0};
    s->n_rows_bytes = 0;
    return s;
}

/* ---- the passes of a shard */

/* The parts of a pass: one job makes both, or shards exchange their rows in between. */
enum { BEGIN = 1, FINISH = 2 };

typedef struct {
    const rws_phase_work *work;
    unsigned              parts;
    int                   round; /* which of the shard's passes; -1: all of them */
} shard_job;

static rws_status run_pass(const shard_job *j, int i, rws_engine *engine, int first, int end, bool last)
{
    const rws_phase_work *w = j->work;
    rws_shard            *s = &w->t->shards[i];
    const bool            cut = is_cut(w);
    if (j->parts & BEGIN) RWS_TRY(rws__phase_begin(w, s, engine, first, end));
    if (j->parts & BEGIN && cut) RWS_TRY(rws__cut_write(w, i, engine));
    if (!(j->parts & FINISH)) return RWS_OK;
    if (cut) rws__cut_read(w, i, engine);
    else rws__phase_weigh(w, s, rws__engine_scores(engine), &s->tally);
    return rws__phase_finish(w, s, engine, last);
}

static void run_shard(void *context, int i, int worker)
{
    const shard_job      *j = context;
    const rws_phase_work *w = j->work;
    const int             at_once = rws__phase_at_once(w);
    rws_shard            *s = j->parts & BEGIN ? shard_begin(w, i) : &w->t->shards[i];
    int                   first, end;
    if (!rws__phase_range(w, i, &first, &end)) return; /* no data: the engine may hold an older pass */
    for (int round = 0; first < end && s->status == RWS_OK; round++) {
        const int next = end - first < at_once ? end : first + at_once;
        if (j->round < 0 || j->round == round)
            s->status = run_pass(j, i, engine_of(w->t, i, worker), first, next, next == end);
        first = next;
    }
}

/* ---- how the jobs of all shards, on all ranks, have ended */

typedef struct rws_outcome {
    rws_tally tally;
    int       status;
    int       request; /* RWS_REQUEST_… of the shard's rank */
    uint64_t  bytes;
} outcome;

bool rws__shards_make_outcomes(rws_trainer *t)
{
    return (t->outcomes = calloc((size_t)t->n_shards, sizeof *t->outcomes)) != NULL;
}

static rws_status exchange_outcomes(rws_trainer *t, outcome *all, rws_error *err)
{
    for (int i = t->ranks.first; i < t->ranks.end; i++) {
        const rws_shard *s = &t->shards[i];
        all[i] = (outcome){s->tally, s->status, t->request, s->n_rows_bytes};
    }
    return rws__trainer_exchange(t, t->n_shards, all, sizeof *all, err);
}

/* Fails with the message of a shard, which the rank of the shard sends to the others. */
static rws_status describe_failure(rws_trainer *t, int shard, rws_status status, rws_error *err)
{
    rws_error text = {{0}};
    if (t->ranks.first <= shard && shard < t->ranks.end) text = t->shards[shard].error;
    if (t->ranks.comm)
        RWS_TRY(rws__comm_broadcast_from(t->ranks.comm, rws__ranks_holder(t->ranks.size, t->n_shards, shard), &text,
                                         sizeof text, err));
    return rws_fail(err, status, "%s", text.text);
}

/* The shards of a rank that has no batch fail, by which all ranks know. */
static void fail_own(const rws_phase_work *w)
{
    for (int i = w->t->ranks.first; i < w->t->ranks.end; i++) {
        rws_shard *s = shard_begin(w, i);
        s->status = w->t->batch_status;
        s->error = w->t->batch_error;
    }
}

/* Runs the job on every shard; then every rank knows how all of them ended, and the tallies are added in their order.
 * */
static rws_status run_all(const shard_job *j, rws_error *err)
{
    const rws_phase_work *w = j->work;
    rws_trainer          *t = w->t;
    outcome              *all = t->outcomes;
    if (t->batch_status == RWS_OK) rws__trainer_run_range(t, t->ranks.first, t->ranks.end, run_shard, (void *)j);
    else fail_own(w);
    rws_status status = exchange_outcomes(t, all, err);
    for (int i = 0; i < t->n_shards && status == RWS_OK; i++) {
        const rws_tally *tally = &all[i].tally;
        if (all[i].status != RWS_OK) status = describe_failure(t, i, (rws_status)all[i].status, err);
        t->shards[i].n_rows_bytes = all[i].bytes;
        t->requests |= all[i].request;
        t->tally.log_evidence += tally->log_evidence;
        t->tally.ess += tally->ess;
        t->tally.signal += tally->signal;
        t->tally.signal2 += tally->signal2;
        t->tally.n_data += tally->n_data;
        t->tally.impossible += tally->impossible;
    }
    return status;
}

/* ---- a phase */

/* Shards that weigh together make one pass each, exchange their rows, and only then make the next. */
static rws_status run_rounds(const rws_phase_work *w, rws_error *err)
{
    int most = 0, first, end;
    for (int i = 0; i < w->t->n_shards; i++)
        if (rws__phase_range(w, i, &first, &end) && end - first > most) most = end - first;
    for (int round = 0; round * rws__phase_at_once(w) < most; round++) {
        RWS_TRY(run_all(&(shard_job){w, BEGIN, round}, err));
        RWS_TRY(rws__cut_weigh(w, err));
        RWS_TRY(run_all(&(shard_job){w, FINISH, round}, err));
    }
    return RWS_OK;
}

static rws_status run(const rws_phase_work *w, rws_error *err)
{
    return is_cut(w) ? run_rounds(w, err) : run_all(&(shard_job){w, BEGIN | FINISH, -1}, err);
}

/* The direction in which the second backward differentiates. */
static rws_status find_direction(const rws_phase_work *w, rws_error *err)
{
    rws_trainer *t = w->t;
    const size_t first = t->program.setup.params.first[RWS_PHI], end = t->program.setup.params.first[RWS_PHI + 1];
    RWS_TRY(rws__trainer_sum(t, RWS_BIT(RWS_PHI), err));
    memset(t->direction, 0, t->program.setup.params.size * sizeof(float));
    if (w->phase->along) t->direction[w->phase->along(&t->program.method)->offset] = 1;
    else
        for (size_t k = first; k < end; k++)
            t->direction[k] = t->shards[0].gradient[k] * (float)(2.0 / (double)(end - first));
    return RWS_OK;
}

rws_status rws__shards_run(const rws_phase_work *w, rws_error *err)
{
    rws_phase_work second = *w;
    second.second = true;
    RWS_TRY(run(w, err));
    if (!w->phase->extend) return RWS_OK;
    RWS_TRY(find_direction(w, err));
    return run(&second, err);
}

void rws__shards_forget(rws_trainer *t)
{
    for (int i = 0; i < t->n_shards; i++) {
        if (!t->shards[i].gradient) continue; /* the shard belongs to another rank */
        memset(t->shards[i].gradient, 0, t->program.setup.params.size * sizeof(float));
        memset(t->shards[i].touched, 0, (size_t)t->program.setup.params.n * sizeof(bool));
        t->shards[i].products = NULL;
    }
}
