/* gradients.c - gradients of every parameter against differences.
 *
 * Of some data, the choices of one particle each are taken and held; f is a sum of their log p and log q with different
 * shares, so that they do not cancel. Then, for each parameter w and a direction d of random numbers,
 *
 *     (f(w + h d) - f(w - h d)) / 2 h   =   d . grad f
 *
 * up to rounding. A parameter is told if no step h of several and no direction of two agrees, so that a kink between w - h d
 * and w + h d is no finding. */
#include "check/check.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define CASES 3
#define WITHIN 0.03    /* relative error that is allowed */
#define ROUNDING 3e-6f /* of f, relative */

/* A datum with the choices of one of its particles. */
typedef struct {
    int         datum, n, capacity;
    rws_choice *list;
    rws_arena  *memory;
    bool        short_of_memory;
} held;

static void copy_choice(void *context, const rws_choice *c)
{
    held *h = context;
    if (h->n == h->capacity) {
        const int   more = h->capacity ? 2 * h->capacity : 16;
        rws_choice *list = RWS_TRY_NEW(h->memory, rws_choice, more);
        if (list && h->n) memcpy(list, h->list, (size_t)h->n * sizeof *list);
        h->short_of_memory |= !list;
        if (!list) return;
        h->list = list;
        h->capacity = more;
    }
    float *value = RWS_TRY_NEW(h->memory, float, c->dim);
    h->short_of_memory |= !value;
    if (!value) return;
    h->list[h->n] = *c;
    h->list[h->n++].value = memcpy(value, c->value, (size_t)c->dim * sizeof *value);
}

/* The possible row of a datum with the most particles; -1: there is none. */
static int best_row(const rws_scores *s, int d)
{
    int best = -1;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
        if (isfinite(s->log_p[i]) && (best < 0 || s->count[i] > s->count[best])) best = (int)i;
    return best;
}

/* Takes the choices of one particle for each of the first data. */
static rws_status hold(rws_review *r, held *list, int *n, rws_error *err)
{
    const float *fields[RWS_FIELDS];
    rws_error    why;
    rws_pass     pass = rws__review_pass(r, 0, r->n_data, r->n_particles, 6, fields);
    pass.choices = true;
    *n = 0;
    if (rws__engine_forward(r->engine, &pass, &why) != RWS_OK) return RWS_OK;
    for (int d = 0; d < r->n_data && *n < CASES; d++) {
        const int row = best_row(rws__engine_scores(r->engine), d);
        if (row < 0) continue;
        held *h = &list[(*n)++];
        *h = (held){.datum = d, .memory = &r->memory};
        if (rws__engine_choices(r->engine, row, copy_choice, h) != RWS_OK || h->short_of_memory)
            return rws_no_memory(err, "a review");
    }
    return RWS_OK;
}

/* f; NaN if a pass fails. Adds its gradient to `gradient` unless that is NULL. Where theta moves, the density of an automatic
 * guide is left out, which counts theta as a constant. */
static double score(rws_review *r, const held *list, int n, bool theta_moves, float *gradient)
{
    static const double share[CASES] = {1, 0.4, 0.7};
    const float        *fields[RWS_FIELDS];
    rws_error           why;
    double              f = 0;
    for (int i = 0; i < n; i++) {
        rws_pass pass = rws__review_pass(r, list[i].datum, 1, 1, 6, fields);
        pass.given = list[i].list;
        pass.n_given = list[i].n;
        pass.groups = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI);
        if (rws__engine_forward(r->engine, &pass, &why) != RWS_OK) return NAN;
        rws_scores *s = rws__engine_scores(r->engine);
        const bool  guide = s->log_given && !(theta_moves && r->program->guide);
        f += share[i] * (s->log_p[0] + (guide ? s->log_given[0] : 0));
        s->coef_p[0] = share[i];
        if (s->coef_given) s->coef_given[0] = share[i];
        if (gradient && rws__engine_backward(r->engine, pass.groups, gradient, &why) != RWS_OK) return NAN;
    }
    return f;
}

static void move(rws_review *r, const rws_param *p, const float *from, const float *direction, float h)
{
    for (size_t i = 0; i < rws__param_size(p); i++) p->value[i] = from[i] + h * direction[i];
    rws__params_transpose(&r->program->setup.params, RWS_BIT(p->group), r->program->setup.params.value,
                          r->program->setup.params.transposed);
}

/* Whether slope and difference agree for this step; writes the difference. */
static bool agrees(rws_review *r, const held *list, int n, const rws_param *p, const float *from,
                   const float *direction, float h, double slope, double *difference)
{
    move(r, p, from, direction, h);
    const double above = score(r, list, n, p->group == RWS_THETA, NULL);
    move(r, p, from, direction, -h);
    const double below = score(r, list, n, p->group == RWS_THETA, NULL);
    move(r, p, from, direction, 0);
    *difference = (above - below) / (2 * (double)h);
    if (!isfinite(*difference)) return true; /* the step leads to where the program has no score */
    const double noise = (1 + fabs(above)) * (double)(ROUNDING / h);
    return fabs(*difference - slope) <= WITHIN * (fabs(slope) + fabs(*difference)) + noise;
}

static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

static rws_status check_param(rws_review *r, const held *list, int n, const rws_param *p, const float *gradient,
                              rws_error *err)
{
    static const float steps[] = {1e-2f, 1e-3f, 3e-2f, 3e-3f};
    const size_t       size = rws__param_size(p);
    float             *from = RWS_TRY_NEW(&r->memory, float, size), *direction = RWS_TRY_NEW(&r->memory, float, size);
    double             slope = 0, difference = 0;
    if (!from || !direction) return rws_no_memory(err, "a review");
    memcpy(from, p->value, size * sizeof *from);
    for (uint32_t draw = 0; draw < 2; draw++) {
        rws_random random = rws__random_new(rws__review_key(r, 7 + draw), (uint32_t)p->number);
        slope = 0;
        for (size_t i = 0; i < size; i++) {
            direction[i] = (float)rws_random_normal(&random);
            slope += (double)(direction[i] * gradient[p->offset + i]);
        }
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            if (agrees(r, list, n, p, from, direction, steps[i], slope, &difference)) return RWS_OK;
    }
    const bool none = largest(gradient + p->offset, size) == 0;
    return rws__review_add(
        r, "gradient", none ? RWS_WARNING : RWS_MISTAKE, p->name, err,
        "The scores change with the parameter \"%s\" at the rate %.4g, but their gradient says %.4g. %s", p->name,
        difference, slope,
        none ? "A program computes with numbers that it has read from the parameter (rws_param_values, "
               "rws_look), or makes them constant (rws_detach): the parameter does not learn from there. "
               "Compute with rws_parameter."
             : "The gradient of a family or an operation of the program's own is wrong, or a part of the "
               "parameter is read as plain numbers.");
}

rws_status rws__check_gradients(rws_review *r, rws_error *err)
{
    const rws_params *params = &r->program->setup.params;
    held              list[CASES];
    int               n;
    RWS_TRY(hold(r, list, &n, err));
    float *gradient = RWS_TRY_NEW(&r->memory, float, params->size + 1);
    if (!gradient) return rws_no_memory(err, "a gradient");
    memset(gradient, 0, params->size * sizeof *gradient);
    if (n == 0 || isnan(score(r, list, n, false, gradient))) return RWS_OK;
    for (int i = 0; i < params->n && !rws__review_is_late(r); i++)
        if (params->list[i]->group <= RWS_PHI) RWS_TRY(check_param(r, list, n, params->list[i], gradient, err));
    return RWS_OK;
}
