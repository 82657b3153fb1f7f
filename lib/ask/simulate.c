/* simulate.c - data that the model makes, asked about: where is the truth among the answers?
 *
 *     model -> truth, datum -> particles -> rank of the truth among them, for each number that a trace has
 *
 * If the particles come from the posterior, truth and particles are exchangeable and the rank is uniform (Talts, Betancourt,
 * Simpson, Vehtari and Gelman, 2018). With K particles of weight w and a truth f,
 *
 *     rank = (S W(below f) + U (S W(equal f) + 1)) / (S + 1),   U uniform in (0, 1),   S = K ess, or that of the chains
 *
 * so that ties are broken at random and equal weights have an exactly uniform rank. A number that a trace does not have, a visit
 * that is not made, counts as lower than any value. A simulation in which truth and all particles have the same value says nothing
 * and is left out, which keeps the ranks of the others uniform.
 */
#include "ask/ask.h"
#include "ask/frame.h"
#include "ask/quantities.h"
#include "ask/posterior.h"
#include "base/error.h"

#include <stdio.h>

enum { TRUTH = -1 /* the trace of the model; the others are numbers of particles */ };

/* ---- ranks */

/* Shares of particles, by weights and by the guide. */
typedef struct {
    double weight, guide;
    int    count;
} mass;

/* The shares of the particle that a number belongs to; none if that is the truth. */
static mass mass_of(const rws_answers *a, const rws_quantity *x)
{
    if (x->trace == TRUTH) return (mass){0};
    const rws_weighted *w = &a->particles[x->trace];
    return (mass){w->weight, (double)w->count / a->n_particles, w->count};
}

static void add_mass(mass *to, mass m)
{
    to->weight += m.weight;
    to->guide += m.guide;
    to->count += m.count;
}

/* Whether there is a posterior; and as how many independent draws of it the particles count. */
static bool is_possible(const rws_answers *a)
{
    return a->ess > 0 || a->n_chains > 0;
}

static double size_of(const rws_answers *a)
{
    return a->n_chains ? a->n_effective : a->ess * a->n_particles;
}

static double rank_of(double below, double equal, double size, double uniform)
{
    return (size * below + uniform * (size * equal + 1)) / (size + 1);
}

/* What the particles say of a number whose values are all whole. */
typedef struct {
    double value, probability;
} mode;

static bool set(rws_frame *f, const char *name, const char *what, double value)
{
    char column[RWS_QUANTITY_NAME + 32];
    snprintf(column, sizeof column, "%s.%s", name, what);
    return rws__frame_number(f, column, value);
}

/* The most probable value among n numbers of a quantity, or that it is absent (-INFINITY). */
static mode find_mode(const rws_answers *a, const rws_quantity *list, int n, mass absent, bool guide)
{
    mode best = {-INFINITY, guide ? absent.guide : absent.weight};
    for (int i = 0, next; i < n; i = next) {
        mass sum = {0};
        for (next = i; next < n && list[next].value == list[i].value; next++) add_mass(&sum, mass_of(a, &list[next]));
        const double probability = guide ? sum.guide : sum.weight;
        if (probability > best.probability) best = (mode){list[i].value, probability};
    }
    return best;
}

static bool set_confidence(rws_frame *f, const char *name, const rws_answers *a, const rws_quantity *list, int n,
                           mass absent, double truth)
{
    bool whole = true;
    for (int i = 0; i < n; i++) whole &= list[i].value == floor(list[i].value);
    if (!whole) return true;
    const mode weighted = find_mode(a, list, n, absent, false), bare = find_mode(a, list, n, absent, true);
    if (is_possible(a) &&
        (!set(f, name, "confidence", weighted.probability) || !set(f, name, "correct", weighted.value == truth)))
        return false;
    return set(f, name, "confidence_guide", bare.probability) && set(f, name, "correct_guide", bare.value == truth);
}

/* Sets the cells of a quantity that n numbers have, the truth perhaps among them. */
static bool set_quantity(rws_frame *f, const rws_quantity *list, int n, const rws_answers *a, rws_random *random)
{
    char         name[RWS_QUANTITY_NAME];
    mass         below = {0}, equal = {0}, present = {0};
    double       truth = -INFINITY;
    const double uniform = rws_random_uniform(random);
    for (int i = 0; i < n; i++)
        if (list[i].trace == TRUTH) truth = list[i].value;
    for (int i = 0; i < n; i++) {
        const mass m = mass_of(a, &list[i]);
        add_mass(&present, m);
        if (list[i].value < truth) add_mass(&below, m);
        if (list[i].value == truth) add_mass(&equal, m);
    }
    const mass absent = {fmax(1 - present.weight, 0), fmax(1 - present.guide, 0), a->n_particles - present.count};
    add_mass(truth == -INFINITY ? &equal : &below, absent);
    if (equal.count == a->n_particles && !(a->n_chains && equal.weight < 1 - 1e-9)) return true;
    rws__quantity_name(&list[0], name);
    if (is_possible(a) && !set(f, name, "rank", rank_of(below.weight, equal.weight, size_of(a), uniform))) return false;
    return set(f, name, "rank_guide", rank_of(below.guide, equal.guide, a->n_particles, uniform)) &&
           set_confidence(f, name, a, list, n, absent, truth);
}

static bool set_all(rws_frame *f, const rws_quantities *o, const rws_answers *a, rws_random *random)
{
    bool good = !o->starved;
    for (int i = 0, next; i < o->n && good; i = next) {
        next = rws__quantities_end(o, i);
        good = set_quantity(f, o->list + i, next - i, a, random);
    }
    return good;
}

/* Adds a row: where the truth is among the answers. */
static bool add_row(rws_frame *f, const rws_sample *truth, const rws_answers *a, rws_random *random)
{
    rws_quantities o = {0};
    bool           good = rws__frame_begin(f);
    rws__quantities_add(&o, TRUTH, truth->choices, truth->n_choices, truth->reports, truth->n_reports);
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        const rws_answer   *answer = &a->list[w->answer];
        rws__quantities_add(&o, i, w->choices, w->n_choices, answer->reports, answer->n_reports);
    }
    rws__quantities_sort(&o);
    good = good && set_all(f, &o, a, random);
    if (!is_possible(a)) good = good && rws__frame_number(f, "impossible", 1);
    rws__quantities_release(&o);
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

static bool stops(void *context)
{
    const portion *p = context;
    return p->how->stop && p->how->stop(p->how->context);
}

static rws_status ask_portion(rws_posterior *p, portion *at, int n, rws_error *err)
{
    rws_question list[RWS_SIMULATIONS];
    for (int i = 0; i < n; i++)
        list[i] = (rws_question){.fields = at->truths->list[i].fields,
                                 .n_particles = at->how->n_particles,
                                 .seed = at->how->seed,
                                 .refine = at->how->refine,
                                 .chains = at->how->chains,
                                 .particles = true};
    const rws_many how = {
        .threads = at->how->threads, .first = (uint64_t)at->first, .each = take, .stop = stops, .context = at};
    const rws_status status = rws_posterior_ask_many(p, list, n, &how, err);
    return at->status == RWS_OK ? status : rws_fail(err, at->status, "%s", at->error.text);
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
