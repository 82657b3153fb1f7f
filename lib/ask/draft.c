/* draft.c - answers in the making: rows of passes and states of chains, as a table of equal reports.
 *
 *     rows of the guide's particles, states of chains -> [candidates: equal reports] -> rws_answers, the most probable first
 *                                                        [entries: equal choices]
 */
#include "ask/draft.h"

#include "ask/ask.h"
#include "ask/mixing.h"
#include "base/error.h"
#include "estimator/weights.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define ANSWERS_BLOCK 2048 /* bytes that answers take at first */

/* ---- the table of equal reports */

typedef struct candidate {
    rws_answer        answer;                 /* until the table is closed, `guide` counts particles */
    double            log_weight, log_square; /* logs of the sums of its particles' weights and of their squares */
    double           *of_chain;               /* how many draws of each chain; NULL: none of any */
    int               number;
    struct candidate *next; /* the candidate that was found before this one */
} candidate;

typedef struct draft_entry {
    rws_weighted        particle;
    double              log_weight; /* of all its particles together */
    candidate          *candidate;
    int                 number, n_draws; /* of its chain */
    struct draft_entry *next;            /* the entry that was made before this one */
} entry;

typedef struct {
    rws_answers public;
    rws_arena memory;
} answers;

struct rws_draft {
    answers        *out;
    bool            listed, resampled; /* resampled: weights do not tell errors */
    void           *tree;              /* tsearch(3): all candidates, by their reports */
    void           *choices;           /* the same for entries, by their choices and chain */
    rws_row_reports scratch;           /* of one row */
    candidate      *last;
    entry          *last_entry;
    int             n_entries;
    double          log_weight, log_square; /* logs of the sums of weights and of their squares, over all particles */
    rws_tail        tail;
    bool            memory_short;
    int             n_chains, n_lost; /* that are somewhere, and that were nowhere */
    int            *chain;            /* the numbers of the former */
    entry         **at;               /* of each: where it is, as trace at_number of its own */
    uint64_t       *at_number;
    int *draws, n_rounds, capacity; /* the number of the entry of chain c in round t is draws[t * n_chains + c] */
};

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
static candidate *find(rws_draft *t, const rws_reported *list, int n)
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

static int compare_entries(const void *a, const void *b)
{
    const rws_weighted *x = &((const entry *)a)->particle, *y = &((const entry *)b)->particle;
    if (x->chain != y->chain) return x->chain < y->chain ? -1 : 1;
    if (x->n_choices != y->n_choices) return x->n_choices < y->n_choices ? -1 : 1;
    for (int i = 0; i < x->n_choices; i++) {
        const int order = compare_choices(&x->choices[i], &y->choices[i]);
        if (order) return order;
    }
    return 0;
}

static void forget_entry(void *item)
{
    (void)item; /* candidates and entries belong to the arena */
}

/* The entry with the choices of w, which is added if it is new. NULL without memory. */
static entry *find_entry(rws_draft *t, entry *w)
{
    entry *const *found = w->particle.choices ? tsearch(w, &t->choices, compare_entries) : NULL;
    if (!found || *found != w) return found ? *found : NULL;
    w->next = t->last_entry;
    w->number = t->n_entries++;
    return t->last_entry = w;
}

/* Lists the particles of a row. The engine has one row for equal particles of a pass; those of earlier passes are found
 * here. */
static rws_status add_particles(rws_draft *t, rws_engine *engine, int row, candidate *of, double log_weight,
                                rws_error *err)
{
    const rws_scores *s = rws__engine_scores(engine);
    rws_arena        *memory = &t->out->memory;
    entry            *w = RWS_TRY_NEW(memory, entry, 1);
    if (!w) return rws_no_memory(err, "particles");
    *w =
        (entry){.particle = {.log_p = s->log_p[row], .log_q = s->log_d[row]}, .log_weight = -INFINITY, .candidate = of};
    if (s->log_given) w->particle.log_given = s->log_given[row];
    w->particle.choices = rws__choices_of_row(memory, engine, row, &w->particle.n_choices);
    entry *found = find_entry(t, w);
    if (!found) return rws_no_memory(err, "particles");
    found->particle.count += (int)s->count[row];
    found->log_weight = rws__log_add(found->log_weight, log_weight);
    return RWS_OK;
}

rws_status rws__draft_add_rows(rws_draft *t, rws_engine *engine, int datum, rws_error *err)
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
        if (t->listed) RWS_TRY(add_particles(t, engine, i, e, log_weight, err));
    }
    return RWS_OK;
}

/* ---- states of chains */

static bool begin_chains(rws_draft *t, const rws_chains *c)
{
    rws_arena *memory = &t->out->memory;
    t->chain = RWS_TRY_NEW(memory, int, c->n);
    t->at = RWS_TRY_NEW(memory, entry *, c->n);
    t->at_number = RWS_TRY_NEW(memory, uint64_t, c->n);
    if (!t->chain || !t->at || !t->at_number) return false;
    for (int i = 0; i < c->n; i++) {
        if (c->now[i].log_p == -INFINITY) t->n_lost++;
        else t->chain[t->n_chains++] = i;
        t->at[i] = NULL;
    }
    return true;
}

static bool make_room(rws_draft *t)
{
    if (t->n_rounds < t->capacity) return true;
    const int capacity = 2 * t->capacity + 64;
    int      *longer = realloc(t->draws, (size_t)capacity * (size_t)t->n_chains * sizeof *longer);
    if (!longer) return false;
    t->draws = longer;
    t->capacity = capacity;
    return true;
}

/* The entry of a state of chain number `chain` (from 0); NULL without memory. */
static entry *entry_of(rws_draft *t, const rws_state *s, int chain)
{
    rws_arena *memory = &t->out->memory;
    candidate *e = find(t, s->reports, s->n_reports);
    entry     *w = e ? RWS_TRY_NEW(memory, entry, 1) : NULL;
    if (!w) return NULL;
    *w = (entry){.particle = {.log_p = s->log_p, .log_q = s->log_q, .log_given = s->log_given, .chain = chain + 1},
                 .candidate = e};
    w->particle.choices = rws__choices_copy(memory, s->choices, s->n_choices);
    w->particle.n_choices = s->n_choices;
    if (!e->of_chain && (e->of_chain = RWS_TRY_NEW(memory, double, t->n_chains)))
        memset(e->of_chain, 0, (size_t)t->n_chains * sizeof *e->of_chain);
    return e->of_chain ? find_entry(t, w) : NULL;
}

rws_status rws__draft_add_states(rws_draft *t, const rws_chains *chains, rws_error *err)
{
    if (!t->chain && !begin_chains(t, chains)) return rws_no_memory(err, "the states of chains");
    if (t->n_chains && !make_room(t)) return rws_no_memory(err, "the states of chains");
    for (int c = 0; c < t->n_chains; c++) {
        const rws_state *s = &chains->now[t->chain[c]];
        if (!t->at[c] || t->at_number[c] != s->number) t->at[c] = entry_of(t, s, c);
        if (!t->at[c]) return rws_no_memory(err, "the states of chains");
        t->at_number[c] = s->number;
        t->at[c]->n_draws++;
        t->at[c]->candidate->of_chain[c]++;
        t->draws[t->n_rounds * t->n_chains + c] = t->at[c]->number;
    }
    t->n_rounds++;
    return RWS_OK;
}

/* Sets the exact probability of a text, in every answer that has reported this text; if there is none, in a new answer,
 * which no particle has found. An answer may have reported numbers too; the exact posterior sums over these. */
void rws__draft_tell_exact(void *context, const char *name, const char *text, double probability)
{
    rws_draft *t = context;
    bool       known = false;
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
static double error_of(const rws_draft *t, const candidate *e)
{
    const double p = e->answer.posterior, all = exp(t->log_square - 2 * t->log_weight),
                 own = exp(e->log_square - 2 * t->log_weight);
    return sqrt(own * (1 - p) * (1 - p) + fmax(all - own, 0) * p * p);
}

double rws__chains_error(const double *contribution, int n_chains, double mean)
{
    double sum = 0;
    for (int c = 0; c < n_chains; c++) sum += pow(contribution[c] - mean, 2);
    return n_chains > 1 ? sqrt(sum * n_chains / (n_chains - 1)) : NAN;
}

/* The posterior probability of a candidate, and its standard error, by the draws of chains. */
static void estimate_by_chains(const rws_draft *t, candidate *e)
{
    rws_answer *a = &e->answer;
    const int   S = t->n_chains * t->n_rounds;
    a->posterior = 0;
    a->error = 0;
    if (!e->of_chain) return;
    for (int c = 0; c < t->n_chains; c++) a->posterior += e->of_chain[c] / S;
    a->error = rws__chains_error(e->of_chain, t->n_chains, a->posterior * t->n_rounds) / S;
}

static void estimate(rws_draft *t)
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
        if (t->n_chains) estimate_by_chains(t, e);
        /* an exact posterior names every text that is possible */
        if (isnan(a->exact) && !isnan(out->exact_log_evidence)) a->exact = 0;
    }
}

/* Sets what chains say of themselves. */
static bool judge_chains(rws_draft *t, char slowest[static RWS_QUANTITY_NAME])
{
    rws_answers   *out = &t->out->public;
    rws_quantities o = {0};
    rws_mixing     mixing;
    const int      C = t->n_chains, n = t->n_rounds;
    int           *draws = malloc(((size_t)C * (size_t)n + 1) * sizeof *draws);
    for (int i = 0; i < C * n && draws; i++) draws[i % C * n + i / C] = t->draws[i];
    for (const entry *w = t->last_entry; w; w = w->next)
        if (w->particle.chain)
            rws__quantities_add(&o, w->number, w->particle.choices, w->particle.n_choices, w->candidate->answer.reports,
                                w->candidate->answer.n_reports);
    rws__quantities_sort(&o);
    const bool good = draws && rws__mixing_worst(&o, draws, C, n, &mixing, slowest);
    rws__quantities_release(&o);
    free(draws);
    if (!good) return false;
    out->n_chains = C;
    out->n_draws = C * n;
    out->r_hat = mixing.r_hat;
    out->n_effective = mixing.n_effective;
    return true;
}

/* Lists the entries, as many as were made. */
static bool list_entries(rws_draft *t)
{
    rws_answers  *out = &t->out->public;
    const bool    possible = t->log_weight > -INFINITY;
    int           at = out->n_weighted = t->listed ? t->n_entries : 0;
    rws_weighted *particles = RWS_TRY_NEW(&t->out->memory, rws_weighted, at + 1);
    for (const entry *w = t->last_entry; w && particles && t->listed; w = w->next) {
        particles[--at] = w->particle;
        particles[at].answer = w->candidate->number;
        if (t->n_chains) particles[at].weight = (double)w->n_draws / out->n_draws;
        else particles[at].weight = possible ? exp(w->log_weight - t->log_weight) : NAN;
    }
    out->particles = particles ? rws__particles_sort(&t->out->memory, particles, out->n_weighted) : NULL;
    return out->particles != NULL;
}

/* From the table to the lists of the public structure. */
rws_status rws__draft_close(rws_draft *t, rws_error *err)
{
    rws_answers *out = &t->out->public;
    rws_arena   *memory = &t->out->memory;
    candidate  **sorted = RWS_TRY_NEW(memory, candidate *, out->n + 1);
    rws_answer  *list = RWS_TRY_NEW(memory, rws_answer, out->n + 1);
    char         slowest[RWS_QUANTITY_NAME] = "";
    int          n = 0;
    if (!sorted || !list || t->memory_short) return rws_no_memory(err, "answers");
    estimate(t);
    for (candidate *e = t->last; e; e = e->next) sorted[n++] = e;
    qsort(sorted, (size_t)n, sizeof *sorted, by_probability);
    for (int i = 0; i < n; i++) {
        sorted[i]->number = i;
        list[i] = sorted[i]->answer;
    }
    out->list = list;
    if (t->n_chains && !judge_chains(t, slowest)) return rws_no_memory(err, "answers");
    if (!list_entries(t)) return rws_no_memory(err, "answers");
    RWS_TRY(rws__answers_judge(out, t->n_lost, slowest, memory, err));
    if (t->resampled && !t->n_chains && out->verdict == RWS_RELIABLE) {
        out->verdict = RWS_DOUBTFUL;
        out->advice = "The particles were resampled, so that their weights do not tell the error; other seeds do.";
    }
    return RWS_OK;
}

/* ---- life */

void rws_answers_free(rws_answers *a)
{
    if (!a) return;
    rws__arena_free(&((answers *)a)->memory);
    free(a);
}

rws_draft *rws__draft_new(int n_particles, bool listed, bool resampled)
{
    rws_draft *t = calloc(1, sizeof *t);
    answers   *a = t ? calloc(1, sizeof *a) : NULL;
    if (!a) {
        free(t);
        return NULL;
    }
    a->memory.smallest = ANSWERS_BLOCK;
    a->public.n_particles = n_particles;
    a->public.exact_log_evidence = a->public.r_hat = a->public.n_effective = NAN;
    *t = (rws_draft){
        .out = a, .listed = listed, .resampled = resampled, .log_weight = -INFINITY, .log_square = -INFINITY};
    return t;
}

double *rws__draft_exact_log_evidence(rws_draft *t)
{
    return &t->out->public.exact_log_evidence;
}

rws_answers *rws__draft_take(rws_draft *t)
{
    rws_answers *a = &t->out->public;
    t->out = NULL;
    return a;
}

void rws__draft_free(rws_draft *t)
{
    if (!t) return;
    tdestroy(t->tree, forget_entry);
    tdestroy(t->choices, forget_entry);
    rws__tail_release(&t->tail);
    free(t->scratch.list);
    free(t->draws);
    if (t->out) rws_answers_free(&t->out->public);
    free(t);
}
