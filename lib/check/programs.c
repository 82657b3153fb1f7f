/* programs.c - what the two programs use, reach and leave out. */
#include "check/check.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

/* ---- parameters */

/* Whether the method steps theta and phi along different gradients. */
static bool has_two_gradients(const rws_program *p)
{
    return p->method.estimator->n_phases > 1;
}

static rws_status check_group(rws_review *r, const rws_param *p, rws_error *err)
{
    const rws_use *use = &r->uses[p->number];
    if (p->group == RWS_PHI && use->model)
        return rws__review_add(
            r, "group", RWS_MISTAKE, p->name, err,
            "The model uses the parameter \"%s\", which belongs to the guide (phi); methods learn it "
            "differently, or not at all, and answers differ with them. Parameters of the model belong to "
            "theta.",
            p->name);
    if (p->group == RWS_THETA && use->guide && !use->model)
        return rws__review_add(
            r, "group", has_two_gradients(r->program) ? RWS_MISTAKE : RWS_WARNING, p->name, err,
            "Only the guide uses the parameter \"%s\", but it belongs to the model (theta). Methods that "
            "step the two apart (ws, wws, dww) do not learn it. Give it to phi, by a name such as "
            "\"phi.net\".",
            p->name);
    return RWS_OK;
}

rws_status rws__check_groups(rws_review *r, rws_error *err)
{
    const rws_params *list = &r->program->setup.params;
    for (int i = 0; i < list->n; i++) RWS_TRY(check_group(r, list->list[i], err));
    return RWS_OK;
}

rws_status rws__check_unused(rws_review *r, rws_error *err)
{
    const rws_params *list = &r->program->setup.params;
    for (int i = 0; i < list->n; i++) {
        const rws_param *p = list->list[i];
        if (p->group > RWS_PHI || p->unused || r->uses[p->number].recorded) continue;
        RWS_TRY(rws__review_add(r, "unused", RWS_WARNING, p->name, err,
                                "No program has used the parameter \"%s\". Leave it out, or say that it may be unused "
                                "(rws_setup_unused).",
                                p->name));
    }
    return RWS_OK;
}

/* ---- dreams */

#define DREAMS 400
#define CHEAP_DREAMS 100
#define SHARE 0.02   /* of dreams that a guide cannot reach, above which it is no accident of rounding */
#define HARDLY -50.0 /* log q of a choice that a guide does not propose: e^-50 */

typedef struct {
    const char *site; /* the one that the guide cannot reach; NULL: none so far */
    bool        here; /* in the row that is being read */
} unreached;

static void look_for_unreached(void *context, const rws_row_term *t)
{
    unreached *u = context;
    if (!t->guided || (t->value > -INFINITY && !(t->n_values && t->value < HARDLY))) return;
    if (u->site && strcmp(u->site, t->site) != 0) return;
    u->site = t->site;
    u->here = true;
}

static rws_status count_unreached(rws_review *r, int dreams, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(r->engine);
    unreached         u = {0};
    uint32_t          n = 0;
    for (int i = 0; i < s->n; i++) {
        u.here = false;
        if (s->log_q[i] > HARDLY) continue;
        if (rws__engine_terms(r->engine, i, look_for_unreached, &u) != RWS_OK) return rws_no_memory(err, "a review");
        n += u.here ? s->count[i] : 0;
    }
    if (!n) return RWS_OK;
    return rws__review_add(
        r, "reach", RWS_MISTAKE, u.site, err,
        "The guide cannot propose what the model draws at site \"%s\" in %.3g %% of the model's samples: "
        "its probability there is zero, or as good as zero. Such posteriors are never found, and the "
        "evidence is too low while kl and ess look good. Let the guide give every value of the model "
        "some probability.",
        u.site, 100.0 * n / dreams);
}

rws_status rws__check_dreams(rws_review *r, rws_error *err)
{
    rws_error      why;
    const bool     inputs = rws__setup_has_inputs(&r->program->setup); /* of the data that are looked at */
    const int      dreams = r->until > 0 ? CHEAP_DREAMS : DREAMS, n = inputs && r->n_data < dreams ? r->n_data : 1;
    const rws_pass pass =
        rws__program_pass(r->program, RWS_SLEEP, n, dreams / n, inputs ? r->fields : NULL, rws__review_key(r, 2));
    const rws_status status = rws__engine_forward(r->engine, &pass, &why);
    if (status == RWS_STOPPED) return status;
    if (status != RWS_OK)
        return rws__review_add(r, "dreams", RWS_NOTE, NULL, err,
                               "The model cannot be sampled from, so that ws and `sample` cannot be used, and what the "
                               "guide reaches was not looked at: %s",
                               why.text);
    if (rws__engine_uses(r->engine, r->uses) != RWS_OK) return rws_no_memory(err, "a review");
    return count_unreached(r, n * (dreams / n), err);
}

/* ---- a latent of all data */

static void look_for_global(void *context, const rws_row_term *t)
{
    const unsigned learned = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI);
    const unsigned varies = RWS_MADE_OF_DATA | RWS_MADE_OF_CHOICES | RWS_MADE_OF_BRANCH;
    if (t->guided && t->made_of & learned && !(t->made_of & varies)) *(const char **)context = t->site;
}

static bool data_vary(const rws_review *r)
{
    const rws_setup *s = &r->program->setup;
    for (int f = 0; f < s->n_fields; f++) {
        const size_t dim = (size_t)s->fields[f].dim;
        for (int d = 1; d < r->n_data && !s->fields[f].label; d++)
            if (memcmp(r->fields[f], r->fields[f] + (size_t)d * dim, dim * sizeof(float)) != 0) return true;
    }
    return false;
}

rws_status rws__check_global(rws_review *r, rws_error *err)
{
    const float *fields[RWS_FIELDS], **at = fields;
    const char  *site = NULL;
    rws_error    why;
    if (!data_vary(r) || r->program->guide) return RWS_OK;
    const rws_pass   pass = rws__review_pass(r, 0, r->n_data, r->n_particles, 3, at);
    const rws_status status = rws__engine_forward(r->engine, &pass, &why);
    if (status != RWS_OK) return status == RWS_STOPPED ? status : RWS_OK;
    if (rws__engine_terms(r->engine, 0, look_for_global, &site) != RWS_OK) return rws_no_memory(err, "a review");
    if (!site) return RWS_OK;
    return rws__review_add(
        r, "global", RWS_WARNING, site, err,
        "The guide draws site \"%s\" from parameters alone, without looking at the datum. Each datum has "
        "a draw of its own there, and the posterior is that given one datum. If all data share one value, "
        "make them one datum: one field, or a series, that holds all rows, and a batch of 1; if each has "
        "its own, let the guide look at the datum.",
        site);
}

/* ---- jumps */

rws_status rws__check_jumps(rws_review *r, rws_error *err)
{
    const float *fields[RWS_FIELDS];
    rws_error    why;
    bool         end = false;
    rws_pass     pass = rws__review_pass(r, 0, r->n_data, r->n_particles, 4, fields);
    pass.pathwise = true;
    pass.groups = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI);
    const rws_status status = rws__engine_forward(r->engine, &pass, &why);
    if (status == RWS_STOPPED) return status;
    if (status != RWS_OK) return rws__review_add(r, "jump", RWS_WARNING, NULL, err, "%s", why.text);
    for (uint32_t i = 0; !end; i++) {
        const char *site = rws__engine_jump(r->engine, i, &end);
        if (!site) continue;
        RWS_TRY(rws__review_add(
            r, "jump", RWS_NOTE, site, err,
            "A program branches on, looks at or compares a value that is made of site \"%s\". Methods "
            "that differentiate through values (vimco, reinforce, rloo, nvil) take the score of this site "
            "instead; say so in setup, by gradient score (rws_setup_gradient), and every pass begins "
            "with it.",
            site));
    }
    return RWS_OK;
}

/* ---- sites that could be summed */

enum { SITES = 64, FEW = 8 /* values */, SHORT = 1 /* draws behind the site */ };

/* What the rows have shown of each site, by its number. */
typedef struct {
    int later; /* draws behind the term that is read, in this row */
    struct {
        const char *site;
        int         n_values;
        bool        unfit; /* it is visited again, has many values or a long future */
    } list[SITES];
} futures;

static void look_at_future(void *context, const rws_row_term *t)
{
    futures *f = context;
    if (!t->guided) return;
    const int later = f->later++;
    if (t->number >= SITES) return;
    f->list[t->number].site = t->site;
    f->list[t->number].n_values = t->n_values;
    f->list[t->number].unfit |= t->visit > 0 || t->n_values < 2 || t->n_values > FEW || later > SHORT;
}

rws_status rws__check_sums(rws_review *r, rws_error *err)
{
    const float     *fields[RWS_FIELDS];
    rws_error        why;
    futures          f = {0};
    const rws_pass   pass = rws__review_pass(r, 0, r->n_data, r->n_particles, 6, fields);
    const rws_status status = rws__engine_forward(r->engine, &pass, &why);
    if (status != RWS_OK) return status == RWS_STOPPED ? status : RWS_OK;
    for (int i = 0; i < rws__engine_scores(r->engine)->n; i++) {
        f.later = 0;
        if (rws__engine_terms(r->engine, i, look_at_future, &f) != RWS_OK) return rws_no_memory(err, "a review");
    }
    for (int i = 0; i < SITES; i++)
        if (f.list[i].site && !f.list[i].unfit)
            RWS_TRY(
                rws__review_add(r, "sum", RWS_NOTE, f.list[i].site, err,
                                "Site \"%s\" has %d values and hardly any draw behind it: a sum over its values in the "
                                "place of a draw takes its noise away, for %d rows of a particle instead of one. The "
                                "setting is site.%s=sum.",
                                f.list[i].site, f.list[i].n_values, f.list[i].n_values, f.list[i].site));
    return RWS_OK;
}
