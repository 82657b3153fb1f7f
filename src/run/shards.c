/* shards.c - how a phase is spread over a batch.
 *
 *     batch    |    shard 0    |    shard 1    |    shard 2    |    shard 3    |     fixed by the configuration
 *     passes   |  |  |  |  |                                                          as many data as fit in memory
 *
 * Threads take whole shards, in any order; a shard adds to a gradient of its own, and the sums over shards are made in
 * their order. Therefore the number of threads changes nothing.
 *
 * The gradients of large weights are sums of products of rows. A shard's last pass may leave these products to update.c,
 * which computes them slice by slice while the slice is in the cache; the engine must then keep its pass until the step,
 * so that every shard has an engine of its own.
 */
#include "run/trainer.h"

#include <string.h>

/* Shard i of n has data [i B / n, (i + 1) B / n), which may be none. */
static bool range_of(const rws_phase_work *w, int i, int *first, int *end)
{
    const int n = w->t->config.shards;
    *first = (int)((int64_t)w->n_data * i / n);
    *end = (int)((int64_t)w->n_data * (i + 1) / n);
    return *first < *end;
}

/* Data of one pass: as many as the model says fit, at least one; all if a second backward is to find them. */
static int data_at_once(const rws_phase_work *w)
{
    const int limit = w->t->model->defaults.at_once, K = w->t->config.particles;
    if (!limit || w->phase->second) return w->n_data;
    return limit > K ? limit / K : 1;
}

/* Products may wait if nothing else comes before the step that needs them. */
static bool may_defer(const rws_phase_work *w)
{
    return w->t->defers && !w->phase->second && !(w->phase->gradients & ~w->phase->steps);
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

static rws_shard *shard_begin(const rws_phase_work *w, int i)
{
    rws_shard *s = &w->t->shards[i];
    s->status = RWS_OK;
    s->tally = (rws_tally){0};
    return s;
}

static void run_shard(void *context, int i, int worker)
{
    const rws_phase_work *w = context;
    rws_trainer          *t = w->t;
    rws_shard            *s = shard_begin(w, i);
    rws_engine           *engine = t->engines[t->engine_per_shard ? i : worker];
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
    (void)worker;
    const rws_phase_work *w = context;
    rws_trainer          *t = w->t;
    rws_shard            *s = shard_begin(w, i);
    int                   first, end;
    if (!range_of(w, i, &first, &end)) return; /* its engine holds an older pass */
    touch_all(t, s);
    s->status = w->phase->second(&t->method, t->engines[i], w->share, t->direction, s->gradient, &s->error);
}

/* Runs a job on every shard. The first shard that failed, in their order, says why. */
static rws_status run_all(const rws_phase_work *w, rws_pool_job *job, rws_error *err)
{
    rws_trainer *t = w->t;
    rws_pool_run(t->pool, t->config.shards, job, (void *)w);
    for (int i = 0; i < t->config.shards; i++) {
        const rws_shard *s = &t->shards[i];
        if (s->status != RWS_OK) return rws_fail(err, s->status, "%s", s->error.text);
        t->tally.log_evidence += s->tally.log_evidence;
        t->tally.ess += s->tally.ess;
        t->tally.signal += s->tally.signal;
        t->tally.signal2 += s->tally.signal2;
        t->tally.n_data += s->tally.n_data;
        t->tally.impossible += s->tally.impossible;
    }
    return RWS_OK;
}

rws_status rws_shards_run(const rws_phase_work *w, rws_error *err)
{
    return run_all(w, run_shard, err);
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
    return run_all(w, run_shard_second, err);
}

void rws_shards_forget(rws_trainer *t)
{
    for (int i = 0; i < t->config.shards; i++) {
        memset(t->shards[i].gradient, 0, t->setup.params.size * sizeof(float));
        memset(t->shards[i].touched, 0, (size_t)t->setup.params.n * sizeof(bool));
        t->shards[i].products = NULL;
    }
}
