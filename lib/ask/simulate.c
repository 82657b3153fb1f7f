/* simulate.c - data that the model makes, asked about: where is the truth among the answers?
 *
 *     model -> truth, datum -> particles -> rank of the truth among them, for each number that a trace has
 *
 * If the particles come from the posterior, truth and particles are exchangeable and the rank is uniform (Talts, Betancourt,
 * Simpson, Vehtari and Gelman, 2018). With K particles of weight w and a truth f,
 *
 *     rank = (S W(below f) + U (S W(equal f) + 1)) / (S + 1),   U uniform in (0, 1),   S = K ess
 *
 * so that ties are broken at random and equal weights have an exactly uniform rank. A number that a trace does not have, a visit
 * that is not made, counts as lower than any value. A simulation in which truth and all particles have the same value says nothing
 * and is left out, which keeps the ranks of the others uniform.
 */
#include "ask/ask.h"
#include "ask/frame.h"
#include "ask/posterior.h"
#include "base/error.h"
#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VISITS = 16, MAX_PARTS = 16, NAME = 320 };

typedef enum { REPORT, SITE, VISITS } kind;

/* A number of a trace. */
typedef struct {
    const char *name;
    kind        kind;
    int         visit, part, dim;
    double      value, weight, guide; /* shares of the particles that have it */
    int         count;
    bool        truth;
} outcome;

typedef struct {
    outcome *list;
    int      n, capacity;
    bool     starved;
} outcomes;

/* ---- the numbers of a trace */

static void add(outcomes *o, outcome x)
{
    o->starved |= !rws__list_grow(&o->list, o->n, &o->capacity, sizeof *o->list);
    if (!o->starved) o->list[o->n++] = x;
}

static void add_values(outcomes *o, outcome x, const float *value, int dim)
{
    x.dim = dim;
    for (int d = 0; d < dim && d < MAX_PARTS && x.visit < MAX_VISITS; d++) {
        x.part = d;
        x.value = (double)value[d];
        add(o, x);
    }
}

static bool is_last_visit(const rws_choice *list, int n, int i)
{
    for (int k = i + 1; k < n; k++)
        if (strcmp(list[k].site, list[i].site) == 0) return false;
    return true;
}

/* Adds all numbers of a trace; `share` has what they have in common. */
static void add_trace(outcomes *o, outcome share, const rws_choice *choices, int n_choices, const rws_reported *reports,
                      int n_reports)
{
    for (int i = 0; i < n_choices; i++) {
        share.name = choices[i].site;
        share.kind = SITE;
        share.visit = choices[i].visit;
        add_values(o, share, choices[i].value, choices[i].dim);
        if (!is_last_visit(choices, n_choices, i)) continue;
        share.kind = VISITS;
        share.visit = 0;
        add_values(o, share, (const float[]){(float)(choices[i].visit + 1)}, 1);
    }
    for (int i = 0; i < n_reports; i++) {
        share.name = reports[i].name;
        share.kind = REPORT;
        share.visit = 0;
        for (int k = 0; k < i; k++) share.visit += strcmp(reports[k].name, reports[i].name) == 0;
        if (reports[i].value && reports[i].dim == 1) add_values(o, share, reports[i].value, 1);
    }
}

static int by_quantity(const outcome *x, const outcome *y)
{
    const int names = x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
    if (names) return names;
    return x->visit != y->visit ? x->visit - y->visit : x->part - y->part;
}

static int by_value(const void *a, const void *b)
{
    const outcome *x = a, *y = b;
    const int      quantities = by_quantity(x, y), values = rws__number_order(x->value, y->value);
    return quantities ? quantities : values ? values : (int)y->truth - (int)x->truth;
}

/* ---- ranks */

/* Shares of particles, by weights and by the guide. */
typedef struct {
    double weight, guide;
    int    count;
} mass;

static void add_mass(mass *m, const outcome *x)
{
    m->weight += x->weight;
    m->guide += x->guide;
    m->count += x->count;
}

static double rank_of(double below, double equal, double size, double uniform)
{
    return (size * below + uniform * (size * equal + 1)) / (size + 1);
}

/* What the particles say of a number whose values are all whole. */
typedef struct {
    double value, probability;
} mode;

static void name_of(const outcome *x, char out[static NAME])
{
    char visit[16] = "", part[16] = "";
    if (x->visit) snprintf(visit, sizeof visit, ":%d", x->visit);
    if (x->dim > 1) snprintf(part, sizeof part, "[%d]", x->part);
    snprintf(out, NAME, "%s%.200s%s%s%s", x->kind == REPORT ? "report." : "", x->name, visit, part,
             x->kind == VISITS ? ".visits" : "");
}

static bool set(rws_frame *f, const char *name, const char *what, double value)
{
    char column[NAME + 32];
    snprintf(column, sizeof column, "%s.%s", name, what);
    return rws__frame_number(f, column, value);
}

/* The most probable value among n outcomes of a quantity, or that it is absent (-INFINITY). */
static mode find_mode(const outcome *list, int n, mass absent, bool guide)
{
    mode best = {-INFINITY, guide ? absent.guide : absent.weight};
    for (int i = 0, next; i < n; i = next) {
        double sum = 0;
        for (next = i; next < n && list[next].value == list[i].value; next++)
            sum += guide ? list[next].guide : list[next].weight;
        if (sum > best.probability) best = (mode){list[i].value, sum};
    }
    return best;
}

static bool set_confidence(rws_frame *f, const char *name, const outcome *list, int n, mass absent, double truth,
                           bool possible)
{
    bool whole = true;
    for (int i = 0; i < n; i++) whole &= list[i].value == floor(list[i].value);
    if (!whole) return true;
    const mode weighted = find_mode(list, n, absent, false), bare = find_mode(list, n, absent, true);
    if (possible &&
        (!set(f, name, "confidence", weighted.probability) || !set(f, name, "correct", weighted.value == truth)))
        return false;
    return set(f, name, "confidence_guide", bare.probability) && set(f, name, "correct_guide", bare.value == truth);
}

/* Sets the cells of a quantity that n outcomes have, the truth perhaps among them. */
static bool set_quantity(rws_frame *f, const outcome *list, int n, const rws_answers *a, rws_random *random)
{
    char         name[NAME];
    mass         below = {0}, equal = {0}, present = {0};
    double       truth = -INFINITY;
    const double uniform = rws_random_uniform(random);
    for (int i = 0; i < n; i++)
        if (list[i].truth) truth = list[i].value;
    for (int i = 0; i < n; i++) {
        add_mass(&present, &list[i]);
        if (list[i].value < truth) add_mass(&below, &list[i]);
        if (list[i].value == truth) add_mass(&equal, &list[i]);
    }
    const mass absent = {fmax(1 - present.weight, 0), fmax(1 - present.guide, 0), a->n_particles - present.count};
    mass      *add_to = truth == -INFINITY ? &equal : &below;
    *add_to = (mass){add_to->weight + absent.weight, add_to->guide + absent.guide, add_to->count + absent.count};
    if (equal.count == a->n_particles) return true;
    name_of(&list[0], name);
    if (a->ess > 0 && !set(f, name, "rank", rank_of(below.weight, equal.weight, a->ess * a->n_particles, uniform)))
        return false;
    return set(f, name, "rank_guide", rank_of(below.guide, equal.guide, a->n_particles, uniform)) &&
           set_confidence(f, name, list, n, absent, truth, a->ess > 0);
}

static bool set_all(rws_frame *f, outcomes *o, const rws_answers *a, rws_random *random)
{
    bool good = !o->starved;
    if (o->list) qsort(o->list, (size_t)o->n, sizeof *o->list, by_value);
    for (int i = 0, next; i < o->n && good; i = next) {
        for (next = i + 1; next < o->n && by_quantity(&o->list[i], &o->list[next]) == 0;) next++;
        good = set_quantity(f, o->list + i, next - i, a, random);
    }
    return good;
}

/* Adds a row: where the truth is among the answers. */
static bool add_row(rws_frame *f, const rws_sample *truth, const rws_answers *a, rws_random *random)
{
    outcomes o = {0};
    bool     good = rws__frame_begin(f);
    add_trace(&o, (outcome){.truth = true}, truth->choices, truth->n_choices, truth->reports, truth->n_reports);
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        const rws_answer   *answer = &a->list[w->answer];
        const outcome share = {.weight = w->weight, .guide = (double)w->count / a->n_particles, .count = w->count};
        add_trace(&o, share, w->choices, w->n_choices, answer->reports, answer->n_reports);
    }
    good = good && set_all(f, &o, a, random);
    if (!(a->ess > 0)) good = good && rws__frame_number(f, "impossible", 1);
    free(o.list);
    return good;
}

/* ---- simulations */

typedef struct {
    const rws_simulations *how;
    const rws_samples     *truths;
    rws_frame             *frame;
    rws_key                key;
    int                    first; /* of the portion */
    rws_status             status;
    rws_error              error;
} portion;

static bool take(void *context, int i, rws_answers *a, rws_status status, const char *message)
{
    portion   *p = context;
    rws_random random = rws__random_new(p->key, (uint32_t)(p->first + i));
    bool       good = true;
    if (a) good = add_row(p->frame, &p->truths->list[i], a, &random);
    else p->status = rws_fail(&p->error, status, "The model makes a datum that cannot be asked about: %s", message);
    rws_answers_free(a);
    if (!good) p->status = rws_no_memory(&p->error, "a calibration");
    if (p->status == RWS_OK && p->how->done && !p->how->done(p->how->context, p->first + i + 1))
        p->status = rws_fail(&p->error, RWS_STOPPED, "The simulations were stopped after %d.", p->first + i + 1);
    return p->status == RWS_OK;
}

static rws_status ask_portion(rws_posterior *p, portion *at, int n, rws_error *err)
{
    rws_question list[RWS_SIMULATIONS];
    for (int i = 0; i < n; i++)
        list[i] = (rws_question){.fields = at->truths->list[i].fields,
                                 .n_particles = at->how->n_particles,
                                 .seed = at->how->seed,
                                 .particles = true};
    const rws_many how = {
        .threads = at->how->threads, .first = (uint64_t)at->first, .each = take, .stop = at->how->stop, .context = at};
    const rws_status status = rws_posterior_ask_many(p, list, n, &how, err);
    return at->status == RWS_OK ? status : rws_fail(err, at->status, "%s", at->error.text);
}

static bool stops(void *context)
{
    const portion *p = context;
    return p->how->stop && p->how->stop(p->how->context);
}

/* Every portion has truths of a seed of its own, so that it does not depend on how many there are. */
static rws_status run_portion(rws_posterior *p, const rws_simulations *how, int first, int n, rws_frame *f,
                              rws_error *err)
{
    const rws_key   key = rws__key_for(how->seed, rws_posterior_iteration(p), RWS_KEY_TEST, RWS_TEST_TIES);
    rws_random      seeds = rws__random_new(key, UINT32_MAX - (uint32_t)(first / RWS_SIMULATIONS));
    rws_samples    *truths;
    const uint64_t  seed = (uint64_t)rws_random_below(&seeds, UINT32_MAX) << 32 | rws_random_below(&seeds, UINT32_MAX);
    rws_simulations own = *how;
    portion         at = {.how = &own, .frame = f, .key = key, .first = first};
    RWS_TRY(rws__posterior_sample_unless(p, NULL, RWS_SIMULATIONS, seed, stops, &at, &truths, err));
    at.truths = truths;
    const rws_status status = ask_portion(p, &at, n, err);
    rws_samples_free(truths);
    return status;
}

rws_status rws_posterior_simulate(rws_posterior *p, int n, const rws_simulations *how, rws_frame *f, rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(how, err);
    RWS_NEED(f, err);
    const int done = rws_frame_rows(f);
    if (n < 0 || n > RWS_MAX_TEST)
        return rws_fail(err, RWS_BAD_INPUT, "There can be 0 to %d simulations, not %d.", RWS_MAX_TEST, n);
    if (done < n && done % RWS_SIMULATIONS != 0)
        return rws_fail(err, RWS_BAD_INPUT, "Simulations continue from a multiple of %d, not from %d.", RWS_SIMULATIONS,
                        done);
    for (int i = done; i < n; i += RWS_SIMULATIONS)
        RWS_TRY(run_portion(p, how, i, n - i < RWS_SIMULATIONS ? n - i : RWS_SIMULATIONS, f, err));
    return RWS_OK;
}
