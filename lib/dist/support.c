/* support.c - guide and model may have different families at a site: what the guide draws must be possible in the model, and
 * what is possible in the model must be within the guide's reach.
 *
 * A guide that reaches too little learns a wrong evidence and shows nothing of it. A guide that reaches too far draws values
 * that are impossible, and where a density jumps there, the gradient through the value misses the jump. Both are known
 * from the supports, except for bounds that depend on parameters, which an op compares row by row:
 *
 *     guide   beta                low 0    high 1
 *     model   uniform(0, b)       low 0    high b        refused where b is not 1
 *
 * A guide may choose bounds narrower than the model's from the datum: it knows what the datum rules out. Whole numbers
 * beyond what the model counts to only have the density 0.
 */
#include "base/error.h"
#include "dist/dist.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

extern const rws_op rws_op_support_fit; /* below */

typedef enum { ALONE, REAL, WHOLE } line;

static const struct {
    line        on;
    float       low, high;
    const char *what, *such_as;
} supports[] = {
    [RWS_SUPPORT_REAL] = {REAL, -INFINITY, INFINITY, "any number", "normal, student t or laplace"},
    [RWS_SUPPORT_POSITIVE] = {REAL, 0, INFINITY, "a number above 0", "gamma or log-normal"},
    [RWS_SUPPORT_UNIT] = {REAL, 0, 1, "a number between 0 and 1", "beta, or uniform from 0 to 1"},
    [RWS_SUPPORT_COUNT] = {WHOLE, 0, INFINITY, "a whole number from 0 on", "poisson or negative binomial"},
    [RWS_SUPPORT_INDEX] = {WHOLE, 0, 0, "a choice", "categorical, with as many choices"},
    [RWS_SUPPORT_BITS] = {WHOLE, 0, 1, "zeros and ones", "bernoulli"},
    [RWS_SUPPORT_SIMPLEX] = {ALONE, 0, 0, "a point on the simplex", "dirichlet"},
    [RWS_SUPPORT_INTERVAL] = {REAL, -INFINITY, INFINITY, "a number between bounds", "uniform or truncated normal"},
    [RWS_SUPPORT_ANGLE] = {ALONE, 0, 0, "an angle", "von mises"},
    [RWS_SUPPORT_LOG_SIMPLEX] = {ALONE, 0, 0, "the log of a point on the simplex", "concrete"},
    [RWS_SUPPORT_PARTITION] = {ALONE, 0, 0, "whole numbers with a given sum", "multinomial"},
    [RWS_SUPPORT_CERTAIN] = {ALONE, 0, 0, "a number that is certain", "delta"},
};

rws_support rws__support_of_both(rws_support a, rws_support b)
{
    return a == b                                               ? a
           : supports[a].on == REAL && supports[b].on == REAL   ? RWS_SUPPORT_INTERVAL
           : supports[a].on == WHOLE && supports[b].on == WHOLE ? RWS_SUPPORT_COUNT
                                                                : RWS_SUPPORT_REAL;
}

static float lowest(const rws_values *v)
{
    return supports[v->support].low;
}

static float highest(const rws_values *v)
{
    return v->support == RWS_SUPPORT_INDEX ? (float)v->n_values - 1 : supports[v->support].high;
}

rws_var rws__values_bound(rws_path *path, const rws_values *v, bool high)
{
    const rws_var bound = high ? v->high : v->low;
    return bound.id ? bound : rws_constant(path, high ? highest(v) : lowest(v));
}

rws_values rws__family_values(rws_path *path, const rws_family *f, const rws_var *p, int n_choices)
{
    rws_var bound[2] = {{0}};
    if (f->bounds) f->bounds(path, f, p, bound);
    return (rws_values){.support = f->support,
                        .n_values = f->support == RWS_SUPPORT_BITS ? 2 : n_choices,
                        .low = bound[0],
                        .high = bound[1]};
}

/* ---- a guide and a model */

enum { MUST_COVER = 1, MUST_STAY = 2 }; /* the guide reaches all values of the model; it draws no others */

/* Bounds that are computed alike may differ by rounding. */
static float slack(float low, float high)
{
    return isfinite(high - low) ? 1e-5f * (high - low) : 0;
}

static bool covers(int must, float low, float high, float guide_low, float guide_high)
{
    const float e = slack(low, high);
    return !(must & MUST_COVER) || (guide_low <= low + e && guide_high >= high - e);
}

static bool stays(int must, float low, float high, float guide_low, float guide_high)
{
    const float e = slack(low, high);
    return !(must & MUST_STAY) || (guide_low >= low - e && guide_high <= high + e);
}

/* The bounds that a guide computes from the datum are its own affair. */
static bool chosen_by_datum(const rws_path *path, rws_var bound)
{
    return bound.id && !rws__var_is_fixed(path, bound);
}

static bool is_open(const rws_values *v)
{
    return v->low.id || v->high.id;
}

static bool fits(const rws_values *model, const rws_values *guide, int must)
{
    if (supports[model->support].on != supports[guide->support].on) return false;
    if (supports[model->support].on == ALONE) return model->support == guide->support;
    if (is_open(model) || is_open(guide)) return true; /* as far as it is known yet */
    const float low = lowest(model), high = highest(model);
    return covers(must, low, high, lowest(guide), highest(guide)) &&
           stays(must, low, high, lowest(guide), highest(guide));
}

static const char *text_of(const rws_values *v, char out[static 60])
{
    if (v->support != RWS_SUPPORT_INDEX) return supports[v->support].what;
    snprintf(out, 60, "a choice of 0 to %d", v->n_values - 1);
    return out;
}

static _Noreturn void refuse(rws_path *path, const rws_visit *v, bool in_guide)
{
    const rws_support model = (in_guide ? &v->other_values : &v->values)->support;
    char              here[60], there[60];
    rws_give_up(path,
                "Site \"%s\" is %s (%s) in the %s and %s (%s) in the %s. The guide must reach all values of the model, "
                "and no others: use a family such as %s.",
                v->site, v->family, text_of(&v->values, here), in_guide ? "guide" : "model", v->other,
                text_of(&v->other_values, there), in_guide ? "model" : "guide", supports[model].such_as);
}

static int place_of(const char *name)
{
    int i = 0;
    while (rws_families[i] && strcmp(rws_families[i]->name, name) != 0) i++;
    return i;
}

/* Adds a log-weight of 0 that is refused in rows where the bounds do not fit. */
static void compare_rows(rws_path *path, const rws_visit *v, const rws_values *model, const rws_values *guide, int must)
{
    const bool    in_guide = guide == &v->values;
    const rws_var in[] = {rws__values_bound(path, model, false), rws__values_bound(path, model, true),
                          rws__values_bound(path, guide, false), rws__values_bound(path, guide, true)};
    const int     here = place_of(v->family), there = place_of(v->other);
    for (int i = 0; i < 4; i++)
        if (rws_dim(path, in[i]) != 1 && rws_dim(path, in[i]) != v->dim)
            rws__path_mistake(path, "the bounds of the values have %d numbers; they have %d or 1.",
                              rws_dim(path, in[i]), v->dim);
    const rws_op_args args = {.k = must, .offset = 1000 * (in_guide ? there : here) + (in_guide ? here : there)};
    rws__site_term(path, in_guide ? RWS_TERM_Q : RWS_TERM_P, rws__record(path, &rws_op_support_fit, args, in, 4, 1));
}

void rws__support_check(rws_path *path, const rws_visit *v)
{
    const bool        in_guide = rws__path_pass(path)->mode == RWS_SLEEP;
    const rws_values *model = in_guide ? &v->other_values : &v->values,
                     *guide = in_guide ? &v->values : &v->other_values;
    const bool counts = model->support == RWS_SUPPORT_COUNT;
    const bool narrow = chosen_by_datum(path, guide->low) || chosen_by_datum(path, guide->high);
    const int  must = (narrow ? 0 : MUST_COVER) | (counts ? 0 : MUST_STAY);
    if (!fits(model, guide, must)) refuse(path, v, in_guide);
    if (supports[model->support].on != ALONE && (is_open(model) || is_open(guide)))
        compare_rows(path, v, model, guide, must);
}

/* ---- op. Inputs: lowest and highest value in the model, lowest and highest in the guide. */

static bool row_fits(const rws_call *c, size_t r, size_t j, bool (*rule)(int, float, float, float, float))
{
    return rule(c->args.k, rws__view_at(&c->in[0], r, j), rws__view_at(&c->in[1], r, j), rws__view_at(&c->in[2], r, j),
                rws__view_at(&c->in[3], r, j));
}

static size_t bounds_dim(const rws_call *c)
{
    int dim = 1;
    for (int s = 0; s < 4; s++) dim = c->in[s].dim > dim ? c->in[s].dim : dim;
    return (size_t)dim;
}

static void support_fit_forward(rws_call *c)
{
    const size_t dim = bounds_dim(c);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        c->out[r] = 0;
        for (size_t j = 0; j < dim; j++) c->refused |= !row_fits(c, r, j, covers) || !row_fits(c, r, j, stays);
    }
}

static const char *name_at(int place)
{
    return rws_families[place] ? rws_families[place]->name : "a family of its own";
}

static rws_status support_fit_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    for (size_t j = 0; j < bounds_dim(c); j++) {
        const bool reaches = row_fits(c, row, j, covers);
        if (reaches && row_fits(c, row, j, stays)) continue;
        return rws_fail(
            err, RWS_BAD_INPUT,
            "At site %s, %s has values from %g to %g in the model and %s from %g to %g in the guide, which %s. "
            "Give both the same bounds.",
            site ? site : "", name_at(c->args.offset / 1000), rws__plain(rws__view_at(&c->in[0], row, j)),
            rws__plain(rws__view_at(&c->in[1], row, j)), name_at(c->args.offset % 1000),
            rws__plain(rws__view_at(&c->in[2], row, j)), rws__plain(rws__view_at(&c->in[3], row, j)),
            reaches ? "draws values that are impossible" : "cannot reach all of them");
    }
    return RWS_OK;
}

const rws_op rws_op_support_fit = {
    .name = "support_fit", .constant = true, .forward = support_fit_forward, .explain = support_fit_explain};
