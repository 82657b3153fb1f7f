/* ask.c - questions about one datum: the guide proposes particles, their importance weights say how probable they are.
 *
 *     datum -> guide's particles -> reports, weights -> [table of equal reports] -> answers, the most probable first
 *                                                          exact posterior, if the model has one
 *
 * Nothing about the program changes, and everything that is written belongs to the answers; so several threads may ask
 * the same trained parameters, each with an engine of its own.
 */
#include "ask/ask.h"

#include "base/denormals.h"
#include "base/error.h"
#include "base/quote.h"
#include "estimator/weights.h"

#include <limits.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000       /* particles of a pass about one datum, unless the model says fewer */
#define ANSWERS_BLOCK 2048 /* bytes that answers take at first */

/* ---- the table of equal reports */

typedef struct candidate {
    rws_answer        answer;                 /* until the table is closed, `guide` counts particles */
    double            log_weight, log_square; /* logs of the sums of its particles' weights and of their squares */
    int               number;
    struct candidate *next; /* the candidate that was found before this one */
} candidate;

typedef struct weighted {
    rws_weighted     particle;
    double           log_weight; /* of all its particles together */
    const candidate *candidate;
    struct weighted *next; /* the entry that was made before this one */
} weighted;

typedef struct {
    rws_answers public;
    rws_arena memory;
} answers;

typedef struct {
    answers        *out;
    void           *tree;      /* tsearch(3): all candidates, by their reports */
    void           *particles; /* the same for particles, by their choices */
    rws_row_reports scratch;   /* of one row */
    candidate      *last;
    weighted       *last_particle;
    double          log_weight, log_square; /* logs of the sums of weights and of their squares, over all particles */
    rws_tail        tail;
    bool            resampled; /* weights do not tell errors */
    bool            memory_short;
} table;

static int compare_reports(const rws_reported *a, const rws_reported *b)
{
    const int names = strcmp(a->name, b->name);
    if (names) return names;
    if (!a->text != !b->text) return a->text ? 1 : -1;
    if (a->text) return strcmp(a->text, b->text);
    if (a->dim != b->dim) return a->dim - b->dim;
    return memcmp(a->value, b->value, (size_t)a->dim * sizeof *a->value);
}

static int compare_candidates(const void *a, const void *b)
{
    const rws_answer *x = &((const candidate *)a)->answer, *y = &((const candidate *)b)->answer;
    if (x->n_reports != y->n_reports) return x->n_reports - y->n_reports;
    for (int i = 0; i < x->n_reports; i++) {
        const int order = compare_reports(&x->reports[i], &y->reports[i]);
        if (order) return order;
    }
    return 0;
}

/* The candidate with these reports, which is made if it is new. NULL without memory. */
static candidate *find(table *t, const rws_reported *list, int n)
{
    const candidate   key = {.answer = {.reports = list, .n_reports = n}};
    rws_arena        *memory = &t->out->memory;
    candidate *const *old = tfind(&key, &t->tree, compare_candidates);
    if (old) return *old;
    candidate *e = RWS_TRY_NEW(memory, candidate, 1);
    if (!e) return NULL;
    *e = (candidate){.answer = {rws__reports_copy(memory, list, n), n, .exact = NAN},
                     .log_weight = -INFINITY,
                     .log_square = -INFINITY,
                     .next = t->last};
    if (!e->answer.reports || !tsearch(e, &t->tree, compare_candidates)) return NULL;
    t->last = e;
    t->out->public.n++;
    return e;
}

static int compare_choices(const rws_choice *a, const rws_choice *b)
{
    const int sites = strcmp(a->site, b->site);
    if (sites) return sites;
    if (a->visit != b->visit) return a->visit < b->visit ? -1 : 1;
    if (a->dim != b->dim) return a->dim < b->dim ? -1 : 1;
    return memcmp(a->value, b->value, (size_t)a->dim * sizeof *a->value);
}

static int compare_particles(const void *a, const void *b)
{
    const rws_weighted *x = &((const weighted *)a)->particle, *y = &((const weighted *)b)->particle;
    if (x->n_choices != y->n_choices) return x->n_choices < y->n_choices ? -1 : 1;
    for (int i = 0; i < x->n_choices; i++) {
        const int order = compare_choices(&x->choices[i], &y->choices[i]);
        if (order) return order;
    }
    return 0;
}

static void forget_entry(void *item)
{
    (void)item; /* candidates and particles belong to the arena */
}

/* Lists the particles of a row. The engine has one row for equal particles of a pass; those of earlier passes are found
 * here. */
static rws_status add_particles(table *t, rws_engine *engine, int row, const candidate *of, double log_weight,
                                rws_error *err)
{
    const rws_scores *s = rws__engine_scores(engine);
    rws_arena        *memory = &t->out->memory;
    weighted         *w = RWS_TRY_NEW(memory, weighted, 1);
    if (!w) return rws_no_memory(err, "particles");
    *w = (weighted){.particle = {.log_p = s->log_p[row], .log_q = s->log_d[row], .count = (int)s->count[row]},
                    .log_weight = log_weight,
                    .candidate = of,
                    .next = t->last_particle};
    if (s->log_given) w->particle.log_given = s->log_given[row];
    w->particle.choices = rws__choices_of_row(memory, engine, row, &w->particle.n_choices);
    weighted *const *found = w->particle.choices ? tsearch(w, &t->particles, compare_particles) : NULL;
    if (!found) return rws_no_memory(err, "particles");
    if (*found != w) {
        (*found)->particle.count += w->particle.count;
        (*found)->log_weight = rws__log_add((*found)->log_weight, log_weight);
        return RWS_OK;
    }
    t->last_particle = w;
    t->out->public.n_weighted++;
    return RWS_OK;
}

/* Adds the rows of a datum of the pass. */
static rws_status add_rows(table *t, rws_engine *engine, int datum, bool particles, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(engine), *whole = rws__scores_whole(rws__engine_scores(engine));
    for (uint32_t i = whole->start[datum]; i < whole->start[datum + 1]; i++)
        if (!rws__tail_add(&t->tail, whole->log_p[i] - whole->log_d[i], whole->count[i], t->out->public.n_particles))
            return rws_no_memory(err, "answers");
    for (int i = (int)s->start[datum]; i < (int)s->start[datum + 1]; i++) {
        const double log_weight = s->log_p[i] - s->log_d[i] + log(s->count[i]), log_square = rws__row_log_square(s, i);
        candidate   *e = rws__row_reports(engine, i, &t->scratch) ? find(t, t->scratch.list, t->scratch.n) : NULL;
        if (!e) return rws_no_memory(err, "answers");
        e->answer.guide += rws__row_share(s, i);
        e->log_weight = rws__log_add(e->log_weight, log_weight);
        e->log_square = rws__log_add(e->log_square, log_square);
        t->log_weight = rws__log_add(t->log_weight, log_weight);
        t->log_square = rws__log_add(t->log_square, log_square);
        if (particles) RWS_TRY(add_particles(t, engine, i, e, log_weight, err));
    }
    return RWS_OK;
}

/* Sets the exact probability of a text, in every answer that has reported this text; if there is none, in a new answer,
 * which no particle has found. An answer may have reported numbers too; the exact posterior sums over these. */
static void tell_exact(void *context, const char *name, const char *text, double probability)
{
    table *t = context;
    bool   known = false;
    for (candidate *e = t->last; e; e = e->next) {
        const char *has = rws_answer_text(&e->answer, name);
        if (!has || strcmp(has, text) != 0) continue;
        e->answer.exact = probability;
        known = true;
    }
    candidate *e = known ? NULL : find(t, &(rws_reported){.name = name, .text = text}, 1);
    if (e) e->answer.exact = probability;
    else t->memory_short |= !known;
}

static int by_probability(const void *a, const void *b)
{
    const candidate *const *p = a, *const *q = b;
    const rws_answer       *x = &(*p)->answer, *y = &(*q)->answer;
    const int order[] = {rws__number_order(y->posterior, x->posterior), rws__number_order(y->exact, x->exact),
                         rws__number_order(y->guide, x->guide)};
    for (int i = 0; i < 3; i++)
        if (order[i]) return order[i];
    for (int i = 0; i < x->n_reports && i < y->n_reports; i++) {
        const int reports_differ = compare_reports(&x->reports[i], &y->reports[i]);
        if (reports_differ) return reports_differ;
    }
    return x->n_reports - y->n_reports;
}

static int by_weight(const void *a, const void *b)
{
    const rws_weighted *x = *(const rws_weighted *const *)a, *y = *(const rws_weighted *const *)b;
    const int           order = rws__number_order(y->weight, x->weight);
    return order ? order : (x > y) - (x < y);
}

const rws_weighted *rws__particles_sort(rws_arena *memory, const rws_weighted *particles, int n)
{
    const rws_weighted **order = RWS_TRY_NEW(memory, const rws_weighted *, n + 1);
    rws_weighted        *sorted = RWS_TRY_NEW(memory, rws_weighted, n + 1);
    if (!order || !sorted) return NULL;
    for (int i = 0; i < n; i++) order[i] = &particles[i];
    qsort(order, (size_t)n, sizeof *order, by_weight);
    for (int i = 0; i < n; i++) sorted[i] = *order[i];
    return sorted;
}

/* Standard errors of what is estimated by normalised weights w: the variance of a mean m of f is sum w^2 (f - m)^2, that of
 * log evidence by the delta method (sum w^2 - 1/K) K / (K - 1). */
static double error_of(const table *t, const candidate *e)
{
    const double p = e->answer.posterior, all = exp(t->log_square - 2 * t->log_weight),
                 own = exp(e->log_square - 2 * t->log_weight);
    return sqrt(own * (1 - p) * (1 - p) + fmax(all - own, 0) * p * p);
}

static void estimate(table *t)
{
    rws_answers *out = &t->out->public;
    const double K = out->n_particles;
    const bool   possible = t->log_weight > -INFINITY;
    out->log_evidence = t->log_weight - log(K);
    out->ess = possible ? exp(2 * t->log_weight - t->log_square) / K : 0;
    out->log_evidence_error = possible && K > 1 && !t->resampled ? sqrt(fmax(1 / out->ess - 1, 0) / (K - 1)) : NAN;
    out->k_hat = t->resampled ? NAN : rws__tail_pareto_k(&t->tail, out->n_particles);
    for (candidate *e = t->last; e; e = e->next) {
        rws_answer *a = &e->answer;
        a->guide /= K;
        a->posterior = possible ? exp(e->log_weight - t->log_weight) : NAN;
        a->error = possible && K > 1 && !t->resampled ? error_of(t, e) : NAN;
        /* an exact posterior names every text that is possible */
        if (isnan(a->exact) && !isnan(out->exact_log_evidence)) a->exact = 0;
    }
}

/* From the table to the lists of the public structure. */
static rws_status close_table(table *t, rws_error *err)
{
    rws_answers  *out = &t->out->public;
    rws_arena    *memory = &t->out->memory;
    const bool    possible = t->log_weight > -INFINITY;
    candidate   **sorted = RWS_TRY_NEW(memory, candidate *, out->n + 1);
    rws_answer   *list = RWS_TRY_NEW(memory, rws_answer, out->n + 1);
    rws_weighted *particles = RWS_TRY_NEW(memory, rws_weighted, out->n_weighted + 1);
    int           n = 0;
    if (!sorted || !list || !particles || t->memory_short) return rws_no_memory(err, "answers");
    estimate(t);
    for (candidate *e = t->last; e; e = e->next) sorted[n++] = e;
    qsort(sorted, (size_t)n, sizeof *sorted, by_probability);
    for (int i = 0; i < n; i++) {
        sorted[i]->number = i;
        list[i] = sorted[i]->answer;
    }
    int at = out->n_weighted;
    for (const weighted *w = t->last_particle; w; w = w->next) {
        particles[--at] = w->particle;
        particles[at].answer = w->candidate->number;
        particles[at].weight = possible ? exp(w->log_weight - t->log_weight) : NAN;
    }
    out->list = list;
    out->particles = rws__particles_sort(memory, particles, out->n_weighted);
    if (!out->particles) return rws_no_memory(err, "answers");
    RWS_TRY(rws__answers_judge(out, memory, err));
    if (t->resampled && out->verdict == RWS_RELIABLE) {
        out->verdict = RWS_DOUBTFUL;
        out->advice = "The particles were resampled, so that their weights do not tell the error; other seeds do.";
    }
    return RWS_OK;
}

/* ---- asking */

void rws_answers_free(rws_answers *a)
{
    if (!a) return;
    rws__arena_free(&((answers *)a)->memory);
    free(a);
}

/* False without memory. */
static bool open_table(table *t, int n_particles)
{
    answers *a = calloc(1, sizeof *a);
    if (!a) return false;
    a->memory.smallest = ANSWERS_BLOCK;
    a->public.n_particles = n_particles;
    a->public.exact_log_evidence = NAN;
    *t = (table){.out = a, .log_weight = -INFINITY, .log_square = -INFINITY};
    return true;
}

static void release_table(table *t)
{
    tdestroy(t->tree, forget_entry);
    tdestroy(t->particles, forget_entry);
    rws__tail_release(&t->tail);
    free(t->scratch.list);
    if (t->out) rws_answers_free(&t->out->public);
}

/* Questions that share passes. They agree in everything but their data. */
typedef struct {
    const rws_program  *program;
    rws_engine         *engine;
    const rws_question *list;
    int                 n;
    uint32_t            first;  /* the number of the first datum, for random numbers */
    float             **fields; /* n x dim each */
    bool               *reached;
    table              *tables; /* one for each question */
} block;

/* Particles of a pass for each datum. Several data have all of theirs in one pass. */
static int particles_at_once(const block *b, int K)
{
    const int limit = rws__program_at_once(b->program, AT_ONCE), most = limit < AT_ONCE ? limit : AT_ONCE;
    return b->n > 1 ? K : most;
}

static rws_status run_passes(block *b, rws_error *err)
{
    const rws_question *q = b->list;
    const int           K = b->tables->out->public.n_particles, most = particles_at_once(b, K);
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
        for (int d = 0; d < b->n; d++) RWS_TRY(add_rows(&b->tables[d], b->engine, d, q->particles, err));
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

/* The exact posterior, if the model knows it, is that of the datum alone. */
static rws_status add_exact(block *b, rws_error *err)
{
    const rws_program *p = b->program;
    float             *fields[p->setup.n_fields + 1];
    if (!p->model->posterior || b->list->n_given) return RWS_OK;
    for (int d = 0; d < b->n; d++) {
        point_at(b, d, fields);
        RWS_TRY(RWS_CALL_MODEL(p->model, posterior, err, p->state, (const float *const *)fields, tell_exact,
                               &b->tables[d], &b->tables[d].out->public.exact_log_evidence));
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
    RWS_TRY(add_exact(b, err));
    for (int d = 0; d < b->n; d++) RWS_TRY(close_table(&b->tables[d], err));
    return RWS_OK;
}

rws_status rws__questions_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *list,
                              int n, uint32_t first, rws_answers **out, rws_error *err)
{
    block          b = {p, engine, list, n, first, NULL, NULL, calloc((size_t)n, sizeof *b.tables)};
    rws_arena      memory = {0};
    const int      K = list->n_particles ? list->n_particles : RWS_QUESTION_PARTICLES;
    const unsigned denormals = rws__denormals_off();
    rws_status     status = RWS_OK;
    if (K < 1 || K > RWS_MAX_PARTICLES)
        status = rws_fail(err, RWS_BAD_INPUT, "A question takes 1 to %d particles, not %d.", RWS_MAX_PARTICLES, K);
    bool good = b.tables != NULL;
    for (int d = 0; d < n && good; d++) good = open_table(&b.tables[d], K);
    for (int d = 0; d < n && good; d++) b.tables[d].resampled = p->config.resample > 0;
    if (!good) status = rws_no_memory(err, "answers");
    if (status == RWS_OK) status = ask(&b, test, &memory, err);
    for (int d = 0; d < n; d++) {
        out[d] = NULL;
        if (status == RWS_OK) {
            out[d] = &b.tables[d].out->public;
            b.tables[d].out = NULL;
        }
        if (b.tables) release_table(&b.tables[d]);
    }
    free(b.tables);
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
