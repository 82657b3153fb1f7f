/* shards.c - how a phase is spread over a batch.
 *
 *     batch    |    shard 0    |    shard 1    |    shard 2    |    shard 3    |     fixed by the configuration
 *     passes   |  |  |  |  |                                                          as many data as fit in memory
 *     ranks    |            rank 0             |            rank 1             |     any number
 *
 * Threads take whole shards of their rank, in any order; a shard adds to a gradient of its own, and the sums over shards
 * are made along a fixed tree (update.c). Therefore neither the number of threads nor that of ranks changes anything.
 *
 * With config.particle_shards, shards cut the particles of every datum as well. Weights compare all particles of a
 * datum: all shards make forward, exchange the rows of their tables (cut.c), and only then make backward.
 *
 *     datum 0  | particles 0 … 49 | 50 … 99 |      shards 0 and 1
 *     datum 1  | particles 0 … 49 | 50 … 99 |      shards 2 and 3
 *
 * The gradients of large weights are sums of products of rows. A shard's last pass may leave these products to update.c,
 * which computes them slice by slice while the slice is in the cache; the engine must then keep its pass until the step,
 * so that every shard has an engine of its own.
 */
#include "train/trainer.h"

#include "estimator/weights.h"

#include <stdlib.h>
#include <string.h>

/* Part i of the n parts of the data is [i B / n, (i + 1) B / n), which may be none. */
static bool range_of(const rws_phase_work *w, int shard, int *first, int *end)
{
    const int n = w->t->config.shards, i = shard / w->t->config.particle_shards;
    *first = (int)((int64_t)w->n_data * i / n);
    *end = (int)((int64_t)w->n_data * (i + 1) / n);
    return *first < *end;
}

void rws_shard_particles(const rws_trainer *t, int shard, int n, int *first, int *end)
{
    const int parts = t->config.particle_shards, i = shard % parts;
    *first = (int)((int64_t)n * i / parts);
    *end = (int)((int64_t)n * (i + 1) / parts);
}

/* Shards weigh together if they have particles of the same data; a dream is weighed alone. */
static bool is_cut(const rws_phase_work *w)
{
    return w->t->config.particle_shards > 1 && w->phase->mode != RWS_SLEEP;
}

/* The number of data in one pass: as many as fit in memory by the model's at_once, at least one; all of them if the phase
 * has a second backward, which needs the pass in the engine. */
static int data_at_once(const rws_phase_work *w)
{
    const rws_config *c = &w->t->config;
    const int limit = w->t->model->defaults.at_once, K = (c->particles + c->particle_shards - 1) / c->particle_shards;
    if (!limit || w->phase->extend) return w->n_data;
    return limit > K ? limit / K : 1;
}

/* Products may wait if nothing else comes before the step that needs them. */
static bool may_defer(const rws_phase_work *w)
{
    return w->t->defers && !w->phase->extend && !(w->phase->gradients & ~w->phase->steps);
}

static void touch_all(const rws_trainer *t, rws_shard *s)
{
    memset(s->touched, 1, (size_t)t->setup.params.n * sizeof *s->touched);
}

rws_status rws_shard_backward(const rws_phase_work *w, rws_shard *s, rws_engine *engine, bool last)
{
    if (last && may_defer(w))
        return rws_engine_backward_deferred(engine, w->phase->gradients, s->gradient, s->touched, &s->products,
                                            &s->error);
    touch_all(w->t, s);
    return rws_engine_backward(engine, w->phase->gradients, s->gradient, &s->error);
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
    return s;
}

/* ---- how the jobs of all shards, on all ranks, have ended */

typedef struct rws_outcome {
    rws_tally tally;
    int       status;
    int       wish; /* what the shard's rank wishes */
    uint64_t  bytes;
} outcome;

bool rws_shards_make_outcomes(rws_trainer *t)
{
    return (t->outcomes = calloc((size_t)t->n_shards, sizeof *t->outcomes)) != NULL;
}

static rws_status exchange_outcomes(rws_trainer *t, outcome *all, rws_error *err)
{
    for (int i = t->ranks.first; i < t->ranks.end; i++) {
        const rws_shard *s = &t->shards[i];
        all[i] = (outcome){s->tally, s->status, t->wish, s->n_rows_bytes};
    }
    return rws_trainer_exchange(t, t->n_shards, all, sizeof *all, err);
}

/* Fails with the sentence of a shard, which the rank of the shard sends to the others. */
static rws_status describe_failure(rws_trainer *t, int shard, rws_status status, rws_error *err)
{
    rws_error text = {{0}};
    if (t->ranks.first <= shard && shard < t->ranks.end) text = t->shards[shard].error;
    if (t->ranks.comm)
        RWS_TRY(rws_comm_broadcast_from(t->ranks.comm, rws_ranks_holder(t->ranks.size, t->n_shards, shard), &text,
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

/* Runs a job on every shard; then every rank knows how all of them ended, and the tallies are added in their order. */
static rws_status run_all(const rws_phase_work *w, rws_pool_job *job, rws_error *err)
{
    rws_trainer *t = w->t;
    outcome     *all = t->outcomes;
    if (t->batch_status == RWS_OK) rws_trainer_run_range(t, t->ranks.first, t->ranks.end, job, (void *)w);
    else fail_own(w);
    rws_status status = exchange_outcomes(t, all, err);
    for (int i = 0; i < t->n_shards && status == RWS_OK; i++) {
        const rws_tally *tally = &all[i].tally;
        if (all[i].status != RWS_OK) status = describe_failure(t, i, (rws_status)all[i].status, err);
        t->shards[i].n_rows_bytes = all[i].bytes;
        t->wishes |= all[i].wish;
        t->tally.log_evidence += tally->log_evidence;
        t->tally.ess += tally->ess;
        t->tally.signal += tally->signal;
        t->tally.signal2 += tally->signal2;
        t->tally.n_data += tally->n_data;
        t->tally.impossible += tally->impossible;
    }
    return status;
}

/* ---- shards that weigh by themselves */

static void run_shard(void *context, int i, int worker)
{
    const rws_phase_work *w = context;
    rws_shard            *s = shard_begin(w, i);
    rws_engine           *engine = engine_of(w->t, i, worker);
    const int             at_once = data_at_once(w);
    int                   first, end;
    if (!range_of(w, i, &first, &end)) return;
    for (int next; first < end && s->status == RWS_OK; first = next) {
        next = end - first < at_once ? end : first + at_once;
        s->status = rws_phase_pass(w, s, engine, first, next, next == end);
    }
}

static void run_shard_second(void *context, int i, int worker)
{
    const rws_phase_work *w = context;
    rws_trainer          *t = w->t;
    rws_shard            *s = shard_begin(w, i);
    rws_engine           *engine = engine_of(t, i, worker);
    int                   first, end;
    if (!range_of(w, i, &first, &end)) return; /* the shard has no data, and its engine holds an older pass */
    touch_all(t, s);
    s->status = w->phase->extend(&t->method, engine, t->direction, &s->error);
    if (s->status != RWS_OK) return;
    w->phase->weigh_second(&t->method, rws_engine_scores(engine), w->share, s->gradient);
    s->status = rws_engine_backward(engine, w->phase->second_gradients, s->gradient, &s->error);
}

/* ---- shards that weigh together, one pass of each at a time */

typedef struct {
    rws_phase_work work;
    int            round;
} round_work;

/* The data of a shard's pass in this round; false: it has none. */
static bool round_of(const round_work *r, int shard, int *first, int *end)
{
    const int at_once = data_at_once(&r->work);
    int       last;
    if (!range_of(&r->work, shard, first, &last)) return false;
    const int64_t from = *first + (int64_t)r->round * at_once;
    if (from >= last) return false;
    *first = (int)from;
    *end = last - *first < at_once ? last : *first + at_once;
    return true;
}

static void round_forward(void *context, int i, int worker)
{
    const round_work *r = context;
    rws_shard        *s = shard_begin(&r->work, i);
    rws_engine       *engine = engine_of(r->work.t, i, worker);
    int               first, end;
    s->n_rows_bytes = 0;
    if (!round_of(r, i, &first, &end)) return;
    s->status = rws_phase_forward(&r->work, s, engine, first, end);
    if (s->status == RWS_OK) s->status = rws_cut_write(&r->work, i, engine, false);
}

static void round_backward(void *context, int i, int worker)
{
    const round_work *r = context;
    rws_trainer      *t = r->work.t;
    rws_shard        *s = &t->shards[i];
    rws_engine       *engine = engine_of(t, i, worker);
    int               first, end, all_first, all_end;
    if (s->status != RWS_OK || !round_of(r, i, &first, &end)) return;
    range_of(&r->work, i, &all_first, &all_end);
    rws_cut_read(&r->work, i, engine);
    if (r->work.phase->labels) rws_weigh_given(rws_engine_scores(engine));
    s->status = rws_shard_backward(&r->work, s, engine, end == all_end);
}

static void round_extend(void *context, int i, int worker)
{
    const round_work *r = context;
    rws_trainer      *t = r->work.t;
    rws_shard        *s = shard_begin(&r->work, i);
    rws_engine       *engine = engine_of(t, i, worker);
    int               first, end;
    s->n_rows_bytes = 0;
    if (!round_of(r, i, &first, &end)) return;
    touch_all(t, s);
    s->status = r->work.phase->extend(&t->method, engine, t->direction, &s->error);
    if (s->status == RWS_OK) s->status = rws_cut_write(&r->work, i, engine, true);
}

static void round_second(void *context, int i, int worker)
{
    const round_work *r = context;
    rws_trainer      *t = r->work.t;
    rws_shard        *s = &t->shards[i];
    rws_engine       *engine = engine_of(t, i, worker);
    int               first, end;
    if (s->status != RWS_OK || !round_of(r, i, &first, &end)) return;
    rws_cut_read(&r->work, i, engine);
    s->status = rws_engine_backward(engine, r->work.phase->second_gradients, s->gradient, &s->error);
}

static rws_status run_round(const round_work *r, bool second, rws_error *err)
{
    RWS_TRY(run_all(&r->work, second ? round_extend : round_forward, err));
    for (int i = r->work.t->ranks.first; i < r->work.t->ranks.end; i++) r->work.t->shards[i].tally = (rws_tally){0};
    RWS_TRY(rws_cut_weigh(&r->work, second, err));
    return run_all(&r->work, second ? round_second : round_backward, err);
}

static rws_status run_rounds(const rws_phase_work *w, bool second, rws_error *err)
{
    round_work r = {*w, 0};
    int        most = 0, first, end;
    for (int i = 0; i < w->t->n_shards; i++)
        if (range_of(w, i, &first, &end) && end - first > most) most = end - first;
    for (const int at_once = data_at_once(w); r.round * at_once < most; r.round++) RWS_TRY(run_round(&r, second, err));
    return RWS_OK;
}

/* ---- a phase */

rws_status rws_shards_run(const rws_phase_work *w, rws_error *err)
{
    return is_cut(w) ? run_rounds(w, false, err) : run_all(w, run_shard, err);
}

rws_status rws_shards_run_second(const rws_phase_work *w, rws_error *err)
{
    /* the direction in which the second backward differentiates */
    rws_trainer *t = w->t;
    const size_t first = t->setup.params.first[RWS_PHI], end = t->setup.params.first[RWS_PHI + 1];
    RWS_TRY(rws_trainer_sum(t, RWS_BIT(RWS_PHI), err));
    memset(t->direction, 0, t->setup.params.size * sizeof(float));
    if (w->phase->along) t->direction[w->phase->along(&t->method)->offset] = 1;
    else
        for (size_t k = first; k < end; k++)
            t->direction[k] = t->shards[0].gradient[k] * (float)(2.0 / (double)(end - first));
    return is_cut(w) ? run_rounds(w, true, err) : run_all(w, run_shard_second, err);
}

void rws_shards_forget(rws_trainer *t)
{
    for (int i = 0; i < t->n_shards; i++) {
        if (!t->shards[i].gradient) continue; /* the shard belongs to another rank */
        memset(t->shards[i].gradient, 0, t->setup.params.size * sizeof(float));
        memset(t->shards[i].touched, 0, (size_t)t->setup.params.n * sizeof(bool));
        t->shards[i].products = NULL;
    }
}
