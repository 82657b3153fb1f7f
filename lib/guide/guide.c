/* guide.c - the program that runs in the place of a guide. */
#include "guide/internal.h"

#include <stdio.h>
#include <string.h>

int rws__guide_field_of(const rws_guide *g, const char *site)
{
    for (int i = 0; i < g->setup->n_fields; i++)
        if (!g->setup->fields[i].label && !g->setup->fields[i].input && strcmp(g->setup->fields[i].name, site) == 0)
            return i;
    return -1;
}

const head *rws__guide_head(const rws_guide *g, const char *site, const rws_family *f, int width)
{
    const rule *rule = rws__guide_rule(f);
    for (int i = 0; i < g->n_heads; i++) {
        const head *h = &g->heads[i];
        if (strcmp(h->site, site) == 0 && strcmp(h->family, f->name) == 0 && (h->width == width || h->grows) &&
            h->rule == rule)
            return h;
    }
    return NULL;
}

/* Notes a site without a head; passes of several threads may come here at once. */
static const head *unknown(const rws_guide *g, const char *site)
{
    rws_guide *note = (rws_guide *)g;
    int        none = 0;
    if (__atomic_compare_exchange_n(&note->noted, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        snprintf(note->unknown, sizeof note->unknown, "%s", site);
        __atomic_store_n(&note->noted, 2, __ATOMIC_RELEASE);
    }
    return &g->heads[g->n_heads];
}

const char *rws__guide_unknown(const rws_guide *g)
{
    return g && __atomic_load_n(&g->noted, __ATOMIC_ACQUIRE) == 2 ? g->unknown : NULL;
}

/* ---- sites */

static rws_var observed(rws_path *path, const rws_guide *g, int field)
{
    const rws_field *f = &g->setup->fields[field];
    return f->most ? rws_item(path, f->name, rws__guide_series(path, g, field)->seen++) : rws_observed(path, f->name);
}

/* The prior's parameters, of which the proposal depends on the values only: theta does not learn by the guide's density.
 * In a pathwise pass theta is frozen, and values carry gradients. */
static void take_prior(rws_path *path, const rws_family *f, const rws_var *params, rws_var *prior)
{
    const bool pathwise = rws__path_pass(path)->pathwise;
    for (int i = 0; i < f->n_params; i++) prior[i] = pathwise ? params[i] : rws__var_stop(path, params[i]);
}

/* Whether a particle has visited a site far more often than prior draws did. The rest comes from the prior, which ends: a head that has
 * learned to go on might not. */
static bool is_far(const head *h, int visits)
{
    return visits >= 4 * h->most_visits + 100;
}

static rws_var latent(rws_path *path, const rws_guide *g, const char *site, const rws_family *f, const rws_var *params)
{
    const int   width = f->n_params ? rws__dist_longest(path, params, f->n_params) : 1;
    const head *h = rws__guide_head(g, site, f, width);
    rws_var     prior[RWS_FAMILY_PARAMS], value;
    if (!h) h = unknown(g, site);
    const int visits = rws__guide_head_state(path, g, (int)(h - g->heads))->visits;
    take_prior(path, f, params, prior);
    if (!g->sizes.rest || !rws__path_guided(path, site, (uint32_t)visits, &value))
        value = is_far(h, visits) ? rws__site_propose(path, site, f, prior)
                                  : rws__guide_propose(path, g, h, site, f, prior);
    rws__guide_chose(path, g, h, value);
    return value;
}

static rws_var visit(rws_path *path, const rws_automatic *a, const char *site, const rws_family *f,
                     const rws_var *params, const rws_var *p)
{
    const rws_guide *g = (const rws_guide *)a;
    const int        field = rws__guide_field_of(g, site);
    (void)p;
    return field >= 0 ? observed(path, g, field) : latent(path, g, site, f, params);
}

/* ---- the program */

static void run(rws_path *path, const rws_automatic *a)
{
    const rws_guide *g = (const rws_guide *)a;
    const rws_pass  *pass = rws__path_pass(path);
    if (g->sizes.rest) g->model->guide(path, pass->state);
    for (int i = 0; i < g->setup->n_fields; i++)
        if (g->reader[i])
            rws__guide_series(path, g, i)->length = rws_branch(path, rws_length(path, g->setup->fields[i].name));
    if (pass->pathwise) rws__path_freeze(path, 1u << RWS_THETA);
    rws__path_acts(path, true);
    g->model->model(path, pass->state);
    rws__path_acts(path, false);
    rws__path_freeze(path, 0);
}

rws_guide *rws__guide_new(rws_setup *s, const rws_model *model, const void *state, const rws_limits *limits,
                          const rws_guide_sizes *sizes, rws_status *status, rws_error *err)
{
    const size_t n = (size_t)s->n_fields;
    rws_guide   *g = rws_setup_alloc(s, sizeof *g);
    if (g) {
        *g = (rws_guide){.automatic = {run, visit}, .setup = s, .model = model, .sizes = *sizes};
        g->n_categories = rws_setup_alloc(s, n * sizeof *g->n_categories);
        g->shift = rws_setup_alloc(s, n * sizeof *g->shift);
        g->factor = rws_setup_alloc(s, n * sizeof *g->factor);
        g->reader = rws_setup_alloc(s, n * sizeof *g->reader);
        g->series = rws_setup_alloc(s, n * sizeof *g->series);
    }
    for (int i = 0; i < s->n_fields && s->status == RWS_OK; i++)
        g->series[i] = s->fields[i].most && !s->fields[i].label ? g->n_series++ : -1;
    *status = s->status == RWS_OK ? rws__guide_discover(g, s, state, limits, err) : s->status;
    if (*status == RWS_OK) rws__guide_declare(g, s);
    if (g) g->automatic.bytes = rws__guide_bytes(g, g->n_heads);
    return *status == RWS_OK ? g : NULL;
}

const rws_automatic *rws__guide_automatic(const rws_guide *g)
{
    return g ? &g->automatic : NULL;
}
