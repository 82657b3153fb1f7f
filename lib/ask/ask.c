/* ask.c - questions about one datum: the guide proposes particles, their importance weights say how probable they are.
 *
 *     datum -> guide's particles -> reports, weights -> [draft] -> answers, the most probable first
 *              chains of refine.c -> reports, states --->  exact posterior, if the model has one
 *
 * Nothing about the program changes, and everything that is written belongs to the answers; so several threads may ask
 * the same trained parameters, each with an engine of its own.
 */
#include "ask/ask.h"

#include "ask/draft.h"
#include "base/denormals.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000 /* particles of a pass about one datum, unless the model says fewer */

enum { CHAINS = 16 /* unless the question says how many */ };

/* Questions that share passes. They agree in everything but their data. */
typedef struct {
    const rws_program  *program;
    rws_engine         *engine;
    const rws_question *list;
    int                 n, K;   /* questions; particles of each */
    uint32_t            first;  /* the number of the first datum, for random numbers */
    float             **fields; /* n x dim each */
    bool               *reached;
    rws_draft         **drafts; /* one for each question */
} block;

/* Particles of a pass for each datum. Several data have all of theirs in one pass. */
static int particles_at_once(const block *b)
{
    const int limit = rws__program_at_once(b->program, AT_ONCE), most = limit < AT_ONCE ? limit : AT_ONCE;
    return b->n > 1 ? b->K : most;
}

static rws_status run_passes(block *b, rws_error *err)
{
    const rws_question *q = b->list;
    const int           K = b->K, most = particles_at_once(b);
    for (int k = 0; k < K; k += most) {
        const int end = K - k < most ? K : k + most;
        if (q->stop && q->stop(q->context))
            return rws_fail(err, RWS_STOPPED, "The question was stopped after %d of %d particles.", k, K);
        rws_pass pass = rws__program_question(b->program, (const float *const *)b->fields, q->seed, k, end);
        pass.n_data = b->n;
        pass.first_datum = b->first;
        pass.asked = true;
        pass.choices = q->particles;
        pass.resample = b->program->config.resample;
        pass.given = q->given;
        pass.n_given = q->n_given;
        RWS_TRY(rws__engine_forward(b->engine, &pass, err));
        for (int d = 0; d < b->n; d++) RWS_TRY(rws__draft_add_rows(b->drafts[d], b->engine, d, err));
        for (int i = 0; i < q->n_given; i++) b->reached[i] |= rws__engine_given_reached(b->engine, i);
    }
    return rws__question_check_reached(b->program, q, b->reached, err);
}

/* Sets where[f] to field f of datum d. */
static void point_at(const block *b, int d, float **where)
{
    for (int f = 0; f < b->program->setup.n_fields; f++)
        where[f] = b->fields[f] + (size_t)d * (size_t)b->program->setup.fields[f].dim;
}

/* ---- refinement */

/* Steps the chains of a question; the first half of all iterations is warm-up, and ends with as many Metropolis moves in an
 * iteration as the longest trace so far has choices. */
static rws_status run_chains(rws_chains *c, const rws_question *q, rws_draft *draft, rws_error *err)
{
    int n_moves = 1;
    for (int t = 0; t < q->refine; t++) {
        if (q->stop && q->stop(q->context))
            return rws_fail(err, RWS_STOPPED, "The question was stopped after %d of %d iterations of its chains.", t,
                            q->refine);
        RWS_TRY(rws__chains_resample(c, err));
        for (int i = 0; i < c->n && t < q->refine / 2; i++)
            n_moves = c->now[i].n_free > n_moves ? c->now[i].n_free : n_moves;
        for (int i = 0; i < n_moves; i++) RWS_TRY(rws__chains_move(c, err));
        if (t >= q->refine / 2) RWS_TRY(rws__draft_add_states(draft, c, err));
    }
    return RWS_OK;
}

static rws_status refine(block *b, int d, rws_error *err)
{
    const rws_question *q = &b->list[d];
    const int           n = q->chains ? q->chains : CHAINS;
    float              *fields[b->program->setup.n_fields + 1];
    rws_chains          c;
    point_at(b, d, fields);
    rws_status status = rws__chains_begin(&c, b->program, b->engine, q, fields, n, b->K < n ? 1 : b->K / n,
                                          b->first + (uint32_t)d, err);
    if (status == RWS_OK) status = run_chains(&c, q, b->drafts[d], err);
    rws__chains_release(&c);
    return status;
}

/* The exact posterior, if the model knows it, is that of the datum alone. */
static rws_status add_exact(block *b, rws_error *err)
{
    const rws_program *p = b->program;
    float             *fields[p->setup.n_fields + 1];
    if (!p->model->posterior || b->list->n_given) return RWS_OK;
    for (int d = 0; d < b->n; d++) {
        point_at(b, d, fields);
        RWS_TRY(RWS_CALL_MODEL(p->model, posterior, err, p->state, (const float *const *)fields, rws__draft_tell_exact,
                               b->drafts[d], rws__draft_exact_log_evidence(b->drafts[d])));
    }
    return RWS_OK;
}

static rws_status ask(block *b, float *const *test, rws_arena *memory, rws_error *err)
{
    const rws_question *q = b->list;
    float              *fields[b->program->setup.n_fields + 1];
    b->fields = rws__question_memory(b->program, b->n, memory);
    if (!b->fields) return rws_no_memory(err, "a datum");
    RWS_TRY(rws__question_check_given(q, err));
    b->reached = RWS_TRY_NEW(memory, bool, q->n_given + 1);
    if (!b->reached) return rws_no_memory(err, "given choices");
    memset(b->reached, 0, (size_t)q->n_given * sizeof *b->reached);
    for (int d = 0; d < b->n; d++) {
        point_at(b, d, fields);
        RWS_TRY(rws__question_read(b->program, test, &q[d], false, fields, err));
    }
    RWS_TRY(run_passes(b, err));
    for (int d = 0; d < b->n && q->refine; d++) RWS_TRY(refine(b, d, err));
    RWS_TRY(add_exact(b, err));
    for (int d = 0; d < b->n; d++) RWS_TRY(rws__draft_close(b->drafts[d], err));
    return RWS_OK;
}

static rws_status check(const rws_question *q, int K, rws_error *err)
{
    if (K < 1 || K > RWS_MAX_PARTICLES)
        return rws_fail(err, RWS_BAD_INPUT, "A question takes 1 to %d particles, not %d.", RWS_MAX_PARTICLES, K);
    if (q->refine < 0 || q->refine > RWS_MAX_REFINE)
        return rws_fail(err, RWS_BAD_INPUT, "Answers are refined by 0 to %d iterations, not %d.", RWS_MAX_REFINE,
                        q->refine);
    if (q->chains && (q->chains < 2 || q->chains > RWS_MAX_CHAINS))
        return rws_fail(err, RWS_BAD_INPUT, "Answers are refined by 2 to %d chains, not %d.", RWS_MAX_CHAINS,
                        q->chains);
    return RWS_OK;
}

rws_status rws__questions_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *list,
                              int n, uint32_t first, rws_answers **out, rws_error *err)
{
    const int      K = list->n_particles ? list->n_particles : RWS_QUESTION_PARTICLES;
    block          b = {p, engine, list, n, K, first, NULL, NULL, calloc((size_t)n, sizeof *b.drafts)};
    rws_arena      memory = {0};
    const unsigned denormals = rws__denormals_off();
    rws_status     status = check(list, K, err);
    bool           good = b.drafts != NULL;
    for (int d = 0; d < n && good; d++)
        good = (b.drafts[d] = rws__draft_new(K, list->particles, p->config.resample > 0)) != NULL;
    if (!good) status = rws_no_memory(err, "answers");
    if (status == RWS_OK) status = ask(&b, test, &memory, err);
    for (int d = 0; d < n; d++) {
        out[d] = status == RWS_OK ? rws__draft_take(b.drafts[d]) : NULL;
        if (b.drafts) rws__draft_free(b.drafts[d]);
    }
    free(b.drafts);
    rws__arena_free(&memory);
    rws__denormals_restore(denormals);
    return status;
}

rws_status rws__program_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *q,
                            rws_answers **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = NULL;
    if (!q) return rws_fail(err, RWS_BAD_INPUT, "There is no question (NULL).");
    return rws__questions_ask(p, engine, test, q, 1, 0, out, err);
}
