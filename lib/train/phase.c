/* phase.c - the mathematics of a phase on one shard: a pass forward, its weights, a pass backward.
 *
 *     begin     forward: guide and model on some data of the shard      | second time: extend the tape by derivatives
 *     finish    weigh: coefficients of the rows; backward: gradients    | second time: weigh_second, backward
 *
 * Between the two, shards that have particles of the same data exchange their rows (cut.c). Who runs which shard is
 * none of this file's business (shards.c).
 */
#include "train/phase.h"

#include "estimator/weights.h"
#include "train/given.h"

#include <string.h>

/* Share of a datum's total |coefficient| that backward may drop; below float32 rounding. */
#define NEGLIGIBLE 1e-6

/* ---- which part of the batch is a shard's */

/* Part i of the n parts of the data is [i B / n, (i + 1) B / n), which may be none. */
bool rws__phase_range(const rws_phase_work *w, int shard, int *first, int *end)
{
    const int n = w->t->program.config.shards, i = shard / w->t->program.config.particle_shards;
    *first = (int)((int64_t)w->n_data * i / n);
    *end = (int)((int64_t)w->n_data * (i + 1) / n);
    return *first < *end;
}

static void particles_of(const rws_trainer *t, int shard, int n, int *first, int *end)
{
    const int parts = t->program.config.particle_shards, i = shard % parts;
    *first = (int)((int64_t)n * i / parts);
    *end = (int)((int64_t)n * (i + 1) / parts);
}

/* The number of data in one pass: as many as fit in memory by the model's at_once, at least one; all of them if the
 * phase has a second backward, which needs the pass in the engine. */
int rws__phase_at_once(const rws_phase_work *w)
{
    const rws_config *c = &w->t->program.config;
    const int         limit = w->t->program.model->defaults.at_once,
              K = (c->particles + c->particle_shards - 1) / c->particle_shards;
    if (!limit || w->phase->extend) return w->n_data;
    return limit > K ? limit / K : 1;
}

/* ---- the pass */

static rws_pass make_pass(const rws_phase_work *w, int shard, int first, int end, const float **fields,
                          rws_proposal *proposal)
{
    rws_trainer     *t = w->t;
    const rws_phase *phase = w->phase;
    const bool       sleep = phase->mode == RWS_SLEEP;
    const bool       alone = sleep && !rws__setup_has_inputs(&t->program.setup); /* dreams belong to no datum */
    const int        n = end - first, K = t->program.config.particles;
    int              from, to; /* particles of the shard: of each datum, or of all dreams */
    particles_of(t, shard, alone ? n * K : K, &from, &to);
    for (int f = 0; f < t->program.setup.n_fields && !alone; f++)
        fields[f] = w->fields[f] + (size_t)first * (size_t)t->program.setup.fields[f].dim;
    rws_pass pass =
        rws__program_pass(&t->program, phase->mode, alone ? 1 : n, to - from, alone ? NULL : fields, w->key);
    pass.program = phase->program;
    pass.apart = t->program.method.siblings;
    pass.first_datum = alone ? 0 : (uint32_t)first;
    pass.first_particle = (uint32_t)(from + (alone ? first * K : 0));
    *proposal = (rws_proposal){.how = phase->drawing};
    pass.proposal = proposal;
    pass.pathwise = phase->pathwise;
    pass.groups = phase->gradients | (phase->extend ? RWS_BIT(RWS_CONTROL) : 0);
    pass.negligible = t->program.config.scalar ? 0 : NEGLIGIBLE;
    if (phase->prepare) phase->prepare(&t->program.method, proposal);
    if (!sleep && w->fields == (const float *const *)t->batch) rws__given_put(t, first, &pass);
    return pass;
}

rws_phase rws__phase_with_labels(const rws_trainer *t, const rws_phase *phase)
{
    rws_phase p = *phase;
    if (t->given && p.labels) p.gradients |= RWS_BIT(RWS_PHI);
    return p;
}

/* ---- forward and backward */

/* Products may wait if nothing else comes before the step that needs them. */
static bool may_defer(const rws_phase_work *w)
{
    return w->t->defers && !w->phase->extend && !(w->phase->gradients & ~w->phase->steps);
}

static void touch_all(const rws_trainer *t, rws_shard *s)
{
    memset(s->touched, 1, (size_t)t->program.setup.params.n * sizeof *s->touched);
}

static rws_status backward(const rws_phase_work *w, rws_shard *s, rws_engine *engine, bool last)
{
    if (last && may_defer(w))
        return rws__engine_backward_deferred(engine, w->phase->gradients, s->gradient, s->touched, &s->products,
                                             &s->error);
    touch_all(w->t, s);
    return rws__engine_backward(engine, w->phase->gradients, s->gradient, &s->error);
}

rws_status rws__phase_begin(const rws_phase_work *w, rws_shard *s, rws_engine *engine, int first, int end)
{
    rws_proposal proposal;
    const float *fields[w->t->program.setup.n_fields];
    if (w->second) return w->phase->extend(&w->t->program.method, engine, w->t->direction, &s->error);
    const rws_pass pass = make_pass(w, (int)(s - w->t->shards), first, end, fields, &proposal);
    return rws__engine_forward(engine, &pass, &s->error);
}

void rws__phase_weigh(const rws_phase_work *w, rws_shard *s, rws_scores *scores, rws_tally *tally)
{
    if (w->second) w->phase->weigh_second(&w->t->program.method, scores, w->share, s ? s->gradient : NULL);
    else w->phase->weigh(&w->t->program.method, rws__scores_whole(scores), w->share, tally);
    rws__scores_part(scores);
}

rws_status rws__phase_finish(const rws_phase_work *w, rws_shard *s, rws_engine *engine, bool last)
{
    if (!w->second && w->phase->labels) rws__weigh_given(rws__engine_scores(engine));
    if (!w->second) return backward(w, s, engine, last);
    touch_all(w->t, s);
    return rws__engine_backward(engine, w->phase->second_gradients, s->gradient, &s->error);
}
