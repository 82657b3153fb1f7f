/* site.c - what happens at a site: find the value or draw it, then add its log-density where one is wanted.
 *
 * Families may be an author's own (rws_family), so what they return is checked.
 */
#include "dist/dist.h"

#include "base/error.h"

#include <string.h>

int rws__dist_longest(rws_path *path, const rws_var *p, int n)
{
    int longest = 1;
    for (int i = 0; i < n; i++) longest = rws_dim(path, p[i]) > longest ? rws_dim(path, p[i]) : longest;
    return longest;
}

const rws_family *rws_family_find(const char *name)
{
    for (int i = 0; name && rws_families[i]; i++)
        if (strcmp(rws_families[i]->name, name) == 0) return rws_families[i];
    return NULL;
}

/* ---- families that may be an author's own */

void rws__family_check(rws_path *path, const rws_family *f, const char *function)
{
    if (!f) rws__path_mistake(path, "%s was given no family (NULL).", function);
    if (!f->name || !f->log_density)
        rws__path_mistake(path, "%s was given a family without %s.", function, f->name ? "a log-density" : "a name");
    if (f->n_params < 0 || f->n_params > RWS_FAMILY_PARAMS)
        rws__path_mistake(path, "the family \"%s\" has %d parameters; a family has 0 to %d.", f->name, f->n_params,
                          RWS_FAMILY_PARAMS);
    if ((int)f->support < 0 || f->support > RWS_SUPPORT_CERTAIN)
        rws__path_mistake(path, "the support of the family \"%s\" is %d, which is no rws_support.", f->name,
                          (int)f->support);
}

static void copy_params(rws_path *path, const rws_family *f, const rws_var *params, rws_var *p)
{
    if (f->n_params && !params) rws__path_mistake(path, "the family \"%s\" was given no parameters (NULL).", f->name);
    if (f->n_params) memcpy(p, params, (size_t)f->n_params * sizeof *p);
}

/* Copies the parameters and prepares them. */
static void take_params(rws_path *path, const rws_family *f, const rws_var *params, rws_var *p)
{
    copy_params(path, f, params, p);
    if (f->prepare) f->prepare(path, f, p);
}

static rws_var checked_density(rws_path *path, const rws_family *f, rws_var log_density)
{
    const int n = rws_dim(path, log_density);
    if (n != 1) rws__path_mistake(path, "the log-density of the family \"%s\" has %d numbers, not one.", f->name, n);
    return log_density;
}

static rws_var checked_value(rws_path *path, const rws_family *f, rws_var value, int length)
{
    const int n = rws_dim(path, value);
    if (n != length)
        rws__path_mistake(path, "the family \"%s\" drew a value of %d numbers, but its length is %d.", f->name, n,
                          length);
    return value;
}

int rws__family_length(rws_path *path, const rws_family *f, const rws_var *p)
{
    if (f->length) {
        const int n = f->length(path, f, p);
        if (n < 1) rws__path_mistake(path, "the family \"%s\" has values of %d numbers.", f->name, n);
        return n;
    }
    const int n = rws__dist_longest(path, p, f->n_params);
    for (int i = 0; i < f->n_params; i++)
        if (rws_dim(path, p[i]) != n && rws_dim(path, p[i]) != 1)
            rws__path_mistake(path, "the parameters of the %s have %d and %d numbers; each takes %d or 1.", f->name, n,
                              rws_dim(path, p[i]), n);
    return n;
}

/* ---- sites */

const rws_proposal *rws__path_proposal(const rws_path *path)
{
    static const rws_proposal plain = {.how = RWS_PLAIN};
    const rws_pass           *pass = rws__path_pass(path);
    return pass->mode == RWS_WAKE && pass->proposal ? pass->proposal : &plain;
}

/* A control variate on perturbed log-probabilities works for a single choice only. */
static void expect_only_site(rws_path *path, const rws_family *f, const char *site)
{
    const char *only = rws__path_proposal(path)->only_site;
    if (only &&
        (strcmp(site, only) != 0 || strcmp(f->name, "categorical") != 0 || rws__path_noted(path, RWS_NOTE_Z).id))
        rws_give_up(
            path,
            "The guide draws %s at site \"%s\", but this method needs a guide that draws one categorical at site "
            "\"%s\", which the model relaxes, and nothing else.",
            f->name, site, only);
}

static void refuse_to_draw(rws_path *path, const rws_family *f, const char *site)
{
    rws_give_up(path,
                "The %s at site \"%s\" has a log-density but no program that draws it; use a method without a sleep "
                "phase, such as ww, or write the draw.",
                f->name, site);
}

/* Goes through all values of a choice, of a site that is summed or in a pass that enumerates all choices. */
static rws_var draw_every(rws_path *path, const char *site, const rws_family *f, int n_choices)
{
    if (!f->choices)
        rws_give_up(path, "The %s at site \"%s\" is not a choice among finitely many, so that no sum goes through %s.",
                    f->name, site,
                    rws__path_pass(path)->enumerate ? "all choices of this model" : "its values (site.NAME=sum)");
    return rws__draw_every(path, n_choices);
}

static bool is_learned(rws_path *path, rws_var v)
{
    return v.id && rws__var_stop(path, v).id != v.id;
}

/* Neither gradient is right where the program jumps at a value whose support moves: the score does not see the support. */
static void expect_support(rws_path *path, const rws_family *f, const rws_var *p, const rws_visit *v)
{
    const bool moves = is_learned(path, v->values.low) || is_learned(path, v->values.high) ||
                       (f->support == RWS_SUPPORT_CERTAIN && is_learned(path, p[0]));
    if (moves)
        rws_give_up(
            path,
            "The guide draws a %s at site \"%s\" whose range is learned, and a program branches on it or compares "
            "it; this method has no gradient for that. Use ww, or draw from a range that stays and compute the "
            "value from the draw.",
            f->name, v->site);
}

/* Under by_jump the draw is the one that would be reparameterised, up to its gradient. */
static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, rws_visit *v)
{
    if (!f->draw) refuse_to_draw(path, f, v->site);
    const rws_var value = f->draw(path, f, p, !v->pathwise);
    if (rws__path_proposal(path)->how >= RWS_RELAXED) return value; /* a categorical is a point on the simplex then */
    checked_value(path, f, value, v->dim);
    if (v->pathwise && !v->by_jump) return value;
    const rws_var stopped = rws__var_stop(path, value);
    v->moves = v->by_jump && stopped.id != value.id;
    if (v->moves) expect_support(path, f, p, v);
    return stopped;
}

/* dww_ref_bug is what the authors' code does with one choice; there is no such code for several choices at once. */
static rws_var draw_defended(rws_path *path, const rws_family *f, const rws_var *p, const rws_visit *v,
                             rws_var *log_mixture)
{
    if (rws__path_proposal(path)->wrong_delta && f->draw_defensive != rws__draw_defended)
        rws_give_up(
            path, "dww_ref_bug is about single choices (categorical, bernoulli); at site \"%s\" the guide draws a %s.",
            v->site, f->name);
    return checked_value(path, f, f->draw_defensive(path, f, p, log_mixture), v->dim);
}

static void expect_length(rws_path *path, const rws_visit *v)
{
    const bool sleep = rws__path_pass(path)->mode == RWS_SLEEP;
    if (rws_dim(path, v->value) != v->dim && rws__path_proposal(path)->how < RWS_RELAXED)
        rws_give_up(path, "Site \"%s\" has %d numbers in the %s and %d in the %s.", v->site, v->dim,
                    sleep ? "guide" : "model", rws_dim(path, v->value), sleep ? "model" : "guide");
}

/* Sets the value of a visit, unless it is found or given; and *log_mixture if the family has drawn from a mixture. */
static void make_value(rws_path *path, const rws_family *f, const rws_var *p, rws_visit *v, rws_var *log_mixture)
{
    const rws_proposal *proposal = rws__path_proposal(path);
    if (v->what == RWS_VISIT_FOUND) expect_length(path, v);
    if (v->what == RWS_VISIT_FOUND && v->other) rws__support_check(path, v);
    else if (v->what == RWS_VISIT_GIVEN && proposal->how > RWS_DEFENSIVE)
        rws_give_up(path, "Choices can be given only where they would be drawn plainly.");
    if (v->what == RWS_VISIT_GUIDE) expect_only_site(path, f, v->site);
    if (v->what < RWS_VISIT_SUM) return;
    if (v->what == RWS_VISIT_SUM) v->value = draw_every(path, v->site, f, v->n_choices);
    else if (v->what == RWS_VISIT_GUIDE && proposal->how == RWS_DEFENSIVE && f->draw_defensive)
        v->value = draw_defended(path, f, p, v, log_mixture);
    else v->value = draw(path, f, p, v);
}

static rws_var visit(rws_path *path, const char *site, const rws_family *f, const rws_var *p)
{
    rws_var   log_density = {0}, log_drawn = {0};
    rws_visit v = {.site = site, .family = f->name, .reparameterised = f->reparameterised};
    v.dim = rws__family_length(path, f, p);
    v.n_choices = f->choices ? f->choices(path, f, p) : 0;
    v.values = rws__family_values(path, f, p, v.n_choices);
    v.size = f->size ? f->size(path, f, p) : f->choices ? v.n_choices : v.dim;
    rws__visit_begin(path, &v);
    make_value(path, f, p, &v, &log_drawn);
    const bool guided = v.what == RWS_VISIT_GUIDE;
    if (v.scored) {
        const bool found = v.what == RWS_VISIT_FOUND;
        log_density = checked_density(path, f, (found && f->score ? f->score : f->log_density)(path, f, v.value, p));
    }
    if (guided && rws__path_proposal(path)->how == RWS_DEFENSIVE && !log_drawn.id) log_drawn = log_density;
    rws__visit_end(path, &v, log_density, log_drawn);
    return v.value;
}

/* Parameters of one number each stand for all numbers of a value whose length is known. Returns the family of such a value. */
static const rws_family *widen(rws_path *path, const rws_family *f, const char *site, rws_var *p)
{
    const rws_family *of_many = f == &rws_bernoulli_family ? &rws_bernoulli_vector_family : f->length ? NULL : f;
    if (!site || !of_many || !f->n_params || rws__dist_longest(path, p, f->n_params) != 1) return f;
    const int n = rws__site_numbers(path, site);
    if (n <= 1) return f;
    p[0] = rws_add(path, p[0], rws_zeros(path, n));
    return of_many;
}

/* Where an automatic guide runs the model's program, the guide visits the site as it will. */
rws_var rws__site_work(rws_path *path, const char *site, const rws_family *f, const rws_var *params)
{
    rws_var given[RWS_FAMILY_PARAMS], p[RWS_FAMILY_PARAMS];
    rws__path_comes_to(path, site);
    copy_params(path, f, params, given);
    f = widen(path, f, site, given);
    take_params(path, f, given, p);
    const rws_automatic *a = rws__path_actor(path);
    return a ? a->visit(path, a, site, f, given, p) : visit(path, site, f, p);
}

rws_var rws__site_propose(rws_path *path, const char *site, const rws_family *f, const rws_var *params)
{
    rws_var p[RWS_FAMILY_PARAMS];
    take_params(path, f, params, p);
    return visit(path, site, f, p);
}

rws_var rws__site_visit_as(rws_path *path, const char *site, const rws_family *f, const rws_var *params,
                           const char *function)
{
    rws_var value;
    if (rws__replayed_as(path, &value, function)) return value;
    rws__family_check(path, f, function);
    return rws__returns(path, rws__site_work(path, site, f, params));
}

rws_var rws_site_visit_sized(rws_path *path, const char *site, const rws_family *f, const rws_var *params, size_t bytes)
{
    static const char function[] = "rws_site_visit";
    if (f && params && f->n_params > 0 && f->n_params <= RWS_FAMILY_PARAMS &&
        bytes < (size_t)f->n_params * sizeof *params)
        rws__path_mistake(path, "%s was given %zu parameters; the family \"%s\" has %d.", function,
                          bytes / sizeof *params, f->name ? f->name : "", f->n_params);
    return rws__site_visit_as(path, site, f, params, function);
}

/* ---- outside of sites */

rws_var rws_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *params)
{
    rws_var v, p[RWS_FAMILY_PARAMS];
    if (rws__replayed(path, &v)) return v;
    rws__family_check(path, f, __func__);
    take_params(path, f, params, p);
    const int length = rws__family_length(path, f, p), n = rws_dim(path, value);
    if (n != length)
        rws__path_mistake(path, "rws_log_density was given a value of %d numbers; values of this %s have %d.", n,
                          f->name, length);
    return rws__returns(path, checked_density(path, f, f->log_density(path, f, value, p)));
}

rws_var rws_draw_from(rws_path *path, const rws_family *f, const rws_var *params)
{
    rws_var v, p[RWS_FAMILY_PARAMS];
    if (rws__replayed(path, &v)) return v;
    if (!rws__path_is_nested(path))
        rws__path_mistake(path, "rws_draw_from was called by the program; it is for the draw of a distribution.");
    rws__family_check(path, f, __func__);
    take_params(path, f, params, p);
    if (!f->draw) rws__path_mistake(path, "the family \"%s\" cannot be drawn from.", f->name);
    const int length = rws__family_length(path, f, p);
    v = checked_value(path, f, f->draw(path, f, p, true), length);
    return rws__returns(path, rws__var_stop(path, v));
}

/* ---- observations with a density of their own */

typedef struct {
    rws_density *log_density;
    rws_drawer  *draw;
    const void  *context;
    int          dim;
} own_density;

static int own_length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)path, (void)p;
    return ((const own_density *)f->context)->dim;
}

static rws_var own_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)p;
    const own_density *own = f->context;
    return own->log_density(path, value, own->context);
}

static rws_var own_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)p, (void)stop;
    const own_density *own = f->context;
    return own->draw(path, own->context);
}

rws_var rws_observe(rws_path *path, const char *site, rws_density *log_density, rws_drawer *draw, const void *context)
{
    if (!site || !log_density)
        rws__path_mistake(path, "rws_observe was given no %s (NULL).", site ? "density" : "site");
    const own_density own = {log_density, draw, context, rws__site_observes(path, site)};
    const rws_family  f = {.name = "density of its own",
                           .length = own_length,
                           .draw = draw ? own_draw : NULL,
                           .log_density = own_log_density,
                           .context = &own};
    if (!own.dim) rws_give_up(path, "The data have no field \"%s\", which the model observes.", site);
    return rws__site_visit_as(path, site, &f, NULL, __func__);
}
