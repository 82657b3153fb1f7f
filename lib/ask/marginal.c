#include "ask/marginal.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value of a particle, with the particle's share of the posterior and of the guide. */
typedef struct {
    const char  *name;
    int          visit, dim;
    bool         report;
    const float *value;
    double       posterior, guide;
} outcome;

static int by_site(const outcome *x, const outcome *y)
{
    if (x->report != y->report) return y->report - x->report;
    const int names = strcmp(x->name, y->name);
    return names ? names : x->visit != y->visit ? x->visit - y->visit : x->dim - y->dim;
}

static int by_outcome(const void *a, const void *b)
{
    const outcome *x = a, *y = b;
    const int      sites = by_site(x, y);
    if (sites) return sites;
    return x->value[0] < y->value[0] ? -1 : x->value[0] > y->value[0];
}

/* ---- all values of all particles */

static size_t count_outcomes(const rws_answers *a, bool reports)
{
    size_t n = 0;
    for (int i = 0; i < a->n && reports; i++) n += (size_t)a->list[i].n_reports;
    for (int i = 0; i < a->n_weighted; i++) n += (size_t)a->particles[i].n_choices;
    return n;
}

static int count_before(const rws_reported *list, int k)
{
    int n = 0;
    for (int i = 0; i < k; i++) n += strcmp(list[i].name, list[k].name) == 0;
    return n;
}

static int collect(const rws_answers *a, bool reports, int most_dim, outcome *out)
{
    int n = 0;
    for (int i = 0; i < a->n && reports; i++) {
        const rws_answer *answer = &a->list[i];
        for (int k = 0; k < answer->n_reports; k++) {
            const rws_reported *r = &answer->reports[k];
            if (r->text || r->dim != 1) continue;
            out[n++] = (outcome){r->name,      count_before(answer->reports, k), 1, true, r->value, answer->posterior,
                                 answer->guide};
        }
    }
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        for (int k = 0; k < w->n_choices; k++) {
            const rws_choice *c = &w->choices[k];
            if (c->dim < 1 || c->dim > most_dim) continue;
            out[n++] =
                (outcome){c->site, c->visit, c->dim, false, c->value, w->weight, (double)w->count / a->n_particles};
        }
    }
    return n;
}

/* ---- a choice */

/* The number of different values, if all are whole numbers; 0 otherwise. */
static int count_values(const outcome *list, int n)
{
    int distinct = 1;
    for (int i = 0; i < n; i++) {
        if (list[i].dim != 1 || list[i].value[0] != floorf(list[i].value[0])) return 0;
        distinct += i && list[i].value[0] != list[i - 1].value[0];
    }
    return distinct;
}

static bool take_values(const outcome *list, int n, int n_values, rws_arena *memory, rws_marginal *out)
{
    out->values = RWS_TRY_NEW(memory, rws_marginal_value, n_values);
    if (!out->values) return false;
    for (int i = 0; i < n; i++) {
        if (i == 0 || list[i].value[0] != list[i - 1].value[0])
            out->values[out->n_values++] = (rws_marginal_value){.value = (double)list[i].value[0]};
        out->values[out->n_values - 1].posterior += list[i].posterior;
        out->values[out->n_values - 1].guide += list[i].guide;
    }
    return true;
}

static bool take_moments(const outcome *list, int n, rws_arena *memory, rws_marginal *out)
{
    out->mean = RWS_TRY_NEW(memory, double, out->dim);
    out->sd = RWS_TRY_NEW(memory, double, out->dim);
    if (!out->mean || !out->sd) return false;
    for (int d = 0; d < out->dim; d++) {
        double mean = 0, square = 0;
        for (int i = 0; i < n; i++) mean += list[i].posterior / out->posterior * (double)list[i].value[d];
        for (int i = 0; i < n; i++)
            square += list[i].posterior / out->posterior * pow((double)list[i].value[d] - mean, 2);
        out->mean[d] = mean;
        out->sd[d] = sqrt(square);
    }
    return true;
}

static bool take(const outcome *list, int n, rws_arena *memory, rws_marginal *out)
{
    *out = (rws_marginal){.name = list[0].name, .report = list[0].report, .visit = list[0].visit, .dim = list[0].dim};
    for (int i = 0; i < n; i++) out->posterior += list[i].posterior, out->guide += list[i].guide;
    const int n_values = count_values(list, n);
    if (n_values > 0 && n_values <= RWS_MARGINAL_VALUES) return take_values(list, n, n_values, memory, out);
    return take_moments(list, n, memory, out);
}

/* ---- all */

void rws_marginals_release(rws_marginals *m)
{
    rws_arena_free(&m->memory);
    *m = (rws_marginals){0};
}

rws_status rws_marginals_make(const rws_answers *a, bool reports, int most_dim, rws_marginals *out, rws_error *err)
{
    outcome *all = malloc((count_outcomes(a, reports) + 1) * sizeof *all);
    *out = (rws_marginals){0};
    if (!all) return rws_no_memory(err, "the choices of particles");
    const int n = collect(a, reports, most_dim, all);
    int       n_sites = 0;
    qsort(all, (size_t)n, sizeof *all, by_outcome);
    for (int i = 0; i < n; i++) n_sites += i == 0 || by_site(&all[i - 1], &all[i]) != 0;
    out->list = RWS_TRY_NEW(&out->memory, rws_marginal, n_sites + 1);
    bool good = out->list != NULL;
    for (int i = 0, next; i < n && good; i = next) {
        for (next = i; next < n && by_site(&all[i], &all[next]) == 0;) next++;
        good = take(all + i, next - i, &out->memory, &out->list[out->n++]);
    }
    free(all);
    return good ? RWS_OK : rws_no_memory(err, "the choices of particles");
}
