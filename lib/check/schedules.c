/* schedules.c - the same draws, made in different orders, must have the same scores.
 *
 *     alone       a pass for each particle: no other execution of the programs can come between its choices
 *     together    one pass for all particles, twice
 *     backwards   the same, where paths are executed in another order
 *     scalar      a path for each particle
 *
 * What differs between two passes that are alike comes from elsewhere: random numbers of another generator, a clock, a variable
 * that lasts. What differs between orders is kept where other particles reach it: in the state (self) or in static variables. A
 * difference counts if it is found with two different sets of draws, so that a draw that rounding has moved is no finding. */
#include "check/check.h"

#include "base/error.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define SITES 256
#define ROUNDING 1e-4 /* of a score, relative: products of matrices add up in other orders */

/* What the particles have gained at a site, in all. */
typedef struct {
    const char *name;
    double      p, q;
} site_sum;

typedef struct {
    double    *log_p, *log_q; /* of all particles; those of a datum in ascending order */
    site_sum   site[SITES];   /* by number of the site */
    uint32_t   many;          /* particles of the row that is being read */
    rws_status status;
    rws_error  error;
} outcome;

typedef struct {
    bool        scalar, backwards;
    const char *name;
} schedule;

static const schedule orders[] = {
    {false, false, "together"}, {false, true, "in another order"}, {true, false, "in scalar mode"}};

static void add_term(void *context, const rws_row_term *t)
{
    outcome *o = context;
    if (t->number >= SITES) return;
    o->site[t->number].name = t->site;
    *(t->guided ? &o->site[t->number].q : &o->site[t->number].p) += o->many * fmax(t->value, -1e30);
}

/* Puts down all particles of the engine's table from place `at` on. */
static rws_status take(const rws_review *r, outcome *o, size_t at, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(r->engine), *whole = rws__scores_whole(rws__engine_scores(r->engine));
    for (int i = 0; i < s->n; i++) {
        o->many = s->count[i];
        RWS_TRY(rws__engine_terms(r->engine, i, add_term, o) == RWS_OK ? RWS_OK : rws_no_memory(err, "a review"));
    }
    for (int i = 0; i < whole->n; i++)
        for (uint32_t k = 0; k < whole->count[i]; k++, at++) {
            o->log_p[at] = whole->log_p[i];
            o->log_q[at] = whole->log_q[i];
        }
    return RWS_OK;
}

static void sort(const rws_review *r, outcome *o)
{
    const size_t K = (size_t)r->n_particles;
    for (size_t d = 0; d < (size_t)r->n_data; d++) {
        qsort(o->log_p + d * K, K, sizeof(double), rws__order_doubles);
        qsort(o->log_q + d * K, K, sizeof(double), rws__order_doubles);
    }
}

static rws_status outcome_new(rws_review *r, outcome **out, rws_error *err)
{
    const size_t n = (size_t)r->n_data * (size_t)r->n_particles;
    outcome     *o = *out = RWS_TRY_NEW(&r->memory, outcome, 1);
    if (!o) return rws_no_memory(err, "a review");
    *o = (outcome){.log_p = RWS_TRY_NEW(&r->memory, double, n), .log_q = RWS_TRY_NEW(&r->memory, double, n)};
    return o->log_p && o->log_q ? RWS_OK : rws_no_memory(err, "a review");
}

static rws_status run_together(rws_review *r, const schedule *how, uint32_t part, outcome **out, rws_error *err)
{
    const float *fields[RWS_FIELDS];
    RWS_TRY(outcome_new(r, out, err));
    rws_pass pass = rws__review_pass(r, 0, r->n_data, r->n_particles, part, fields);
    pass.scalar = how->scalar;
    pass.backwards = how->backwards;
    (*out)->status = rws__engine_forward(r->engine, &pass, &(*out)->error);
    if ((*out)->status != RWS_OK) return (*out)->status == RWS_STOPPED ? RWS_STOPPED : RWS_OK;
    if (rws__engine_uses(r->engine, r->uses) != RWS_OK) return rws_no_memory(err, "a review");
    RWS_TRY(take(r, *out, 0, err));
    sort(r, *out);
    return RWS_OK;
}

static rws_status run_alone(rws_review *r, uint32_t part, outcome **out, rws_error *err)
{
    const float *fields[RWS_FIELDS];
    RWS_TRY(outcome_new(r, out, err));
    outcome *o = *out;
    for (int d = 0; d < r->n_data; d++)
        for (int k = 0; k < r->n_particles; k++) {
            rws_pass pass = rws__review_pass(r, d, 1, 1, part, fields);
            pass.first_particle = (uint32_t)k;
            o->status = rws__engine_forward(r->engine, &pass, &o->error);
            if (o->status == RWS_STOPPED) return RWS_STOPPED;
            if (o->status != RWS_OK || rws__review_is_late(r)) return RWS_OK;
            RWS_TRY(take(r, o, (size_t)d * (size_t)r->n_particles + (size_t)k, err));
        }
    sort(r, o);
    return RWS_OK;
}

/* ---- comparing */

static bool differs(double a, double b)
{
    return a != b && !(fabs(a - b) <= ROUNDING * (1 + fabs(a)));
}

static bool particles_differ(const rws_review *r, const outcome *a, const outcome *b)
{
    for (int i = 0; i < r->n_data * r->n_particles; i++)
        if (differs(a->log_p[i], b->log_p[i]) || differs(a->log_q[i], b->log_q[i])) return true;
    return false;
}

static double relative(double a, double b)
{
    return fabs(a - b) / (1 + fabs(a));
}

/* The first site whose sums differ by more than rounding, else the one whose sums differ most; NULL: there is none. */
static const char *first_difference(const outcome *a, const outcome *b)
{
    const char *found = NULL;
    double      most = 0;
    for (int i = 0; i < SITES; i++) {
        const double by = fmax(relative(a->site[i].p, b->site[i].p), relative(a->site[i].q, b->site[i].q));
        if (by <= most) continue;
        found = a->site[i].name ? a->site[i].name : b->site[i].name;
        most = by;
        if (by > ROUNDING) break;
    }
    return found;
}

typedef enum { SAME, RANDOM, STATE, FAILS } verdict;

typedef struct {
    verdict     what;
    const char *site, *how;
    rws_error   error;
} difference;

static bool is_different(const rws_review *r, const outcome *a, const outcome *b, const schedule *how, verdict what,
                         difference *out)
{
    const bool fails = b->status != RWS_OK;
    if (!fails && !particles_differ(r, a, b)) return false;
    *out = (difference){fails ? FAILS : what, fails ? NULL : first_difference(a, b), how->name, b->error};
    return true;
}

/* Compares all orders with one set of draws. Ends early, with SAME, if there is no time. */
static rws_status compare(rws_review *r, uint32_t part, difference *out, rws_error *err)
{
    outcome  *alone, *first, *other;
    const int n = r->until > 0 ? 2 : 3; /* scalar mode is the slowest, and has no other mistakes */
    *out = (difference){.what = SAME};
    RWS_TRY(run_alone(r, part, &alone, err));
    if (alone->status != RWS_OK) {
        r->hopeless = true;
        const char *kind = alone->status == RWS_BROKEN ? "numbers" : "program";
        return rws__review_add(r, kind, RWS_MISTAKE, NULL, err, "%s", alone->error.text);
    }
    if (rws__review_is_late(r)) return RWS_OK;
    RWS_TRY(run_together(r, &orders[0], part, &first, err));
    RWS_TRY(run_together(r, &orders[0], part, &other, err));
    if (first->status == RWS_OK && is_different(r, first, other, &orders[0], RANDOM, out)) return RWS_OK;
    if (is_different(r, alone, first, &orders[0], STATE, out)) return RWS_OK;
    for (int i = 1; i < n && !rws__review_is_late(r); i++) {
        RWS_TRY(run_together(r, &orders[i], part, &other, err));
        if (is_different(r, alone, other, &orders[i], STATE, out)) return RWS_OK;
    }
    return RWS_OK;
}

static rws_status tell(rws_review *r, const difference *d, rws_error *err)
{
    const int n = r->n;
    r->hopeless = true;
    RWS_TRY(rws__check_kept(r, err));
    if (r->n > n) return RWS_OK; /* that is why */
    const char *at = d->site ? d->site : "", *first = d->site ? ", first at site \"" : "", *end = d->site ? "\"" : "";
    if (d->what == RANDOM)
        return rws__review_add(
            r, "random", RWS_MISTAKE, d->site, err,
            "Two executions with the same random numbers have different scores%s%s%s. The program takes "
            "numbers from elsewhere: from a generator of its own (rand, random, numpy.random), a clock or "
            "a file, or from a variable that lasts from one execution to the next. A program is a "
            "function of its choices; what is random is drawn at a site.",
            first, at, end);
    if (d->what == FAILS)
        return rws__review_add(
            r, "state", RWS_MISTAKE, NULL, err,
            "One particle at a time the programs run, but %s they fail: %s This happens if a program "
            "keeps a number in its state (self) or in a static variable across a choice, where the "
            "executions for other particles change it. Keep it in a local variable.",
            d->how, d->error.text);
    return rws__review_add(
        r, "state", RWS_MISTAKE, d->site, err,
        "The same draws have other scores if particles run %s than if each runs alone%s%s%s. The program "
        "keeps a number in its state (self) or in a static variable across a choice, where the executions "
        "for other particles change it. Keep it in a local variable, or pass it as an argument.",
        d->how, first, at, end);
}

rws_status rws__check_schedules(rws_review *r, rws_error *err)
{
    difference first, second;
    RWS_TRY(compare(r, 0, &first, err));
    if (first.what == SAME || r->hopeless) return RWS_OK;
    r->until = 0; /* there is a reason to look twice */
    RWS_TRY(compare(r, 1, &second, err));
    if (second.what == SAME || r->hopeless) return RWS_OK;
    return tell(r, first.what == RANDOM ? &first : &second, err);
}
