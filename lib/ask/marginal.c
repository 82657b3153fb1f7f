/* marginal.c - the distribution of each random choice by itself. */
#include "ask/ask.h"
#include "base/arena.h"
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
    int          count, chain;
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
    return rws__number_order((double)x->value[0], (double)y->value[0]);
}

/* ---- all values of all particles */

static const rws_answer *answer_of(const rws_answers *a, const rws_weighted *w)
{
    static const rws_answer silent;
    return w->answer >= 0 && w->answer < a->n ? &a->list[w->answer] : &silent;
}

static size_t count_outcomes(const rws_answers *a)
{
    size_t n = 0;
    for (int i = 0; i < a->n_weighted; i++)
        n += (size_t)a->particles[i].n_choices + (size_t)answer_of(a, &a->particles[i])->n_reports;
    return n;
}

static int count_before(const rws_reported *list, int k)
{
    int n = 0;
    for (int i = 0; i < k; i++) n += strcmp(list[i].name, list[k].name) == 0;
    return n;
}

static int collect(const rws_answers *a, int most_dim, outcome *out)
{
    int n = 0;
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        const rws_answer   *answer = answer_of(a, w);
        const outcome       share = {.posterior = w->weight,
                                     .guide = (double)w->count / a->n_particles,
                                     .count = w->count,
                                     .chain = w->chain,
                                     .dim = 1};
        for (int k = 0; k < answer->n_reports; k++) {
            const rws_reported *r = &answer->reports[k];
            if (r->text || r->dim != 1) continue;
            out[n] = share;
            out[n].name = r->name;
            out[n].visit = count_before(answer->reports, k);
            out[n].report = true;
            out[n++].value = r->value;
        }
        for (int k = 0; k < w->n_choices; k++) {
            const rws_choice *c = &w->choices[k];
            if (c->dim < 1 || c->dim > most_dim) continue;
            out[n] = share;
            out[n].name = c->site;
            out[n].visit = c->visit;
            out[n].dim = c->dim;
            out[n++].value = c->value;
        }
    }
    return n;
}

/* ---- standard errors */

/* What is independent of one another: the particles, sum of whose squared weights is `squares`; or the chains. */
typedef struct {
    double  squares;
    int     n_chains;
    double *of_chain; /* scratch, a number for each */
} source;

/* The standard error of the sum of posterior (value - mean) over some outcomes, those at component d; d = -1: of their
 * probability, which is `mean` of all. */
static double error_of(const source *s, const outcome *list, int n, int d, double mean)
{
    double own = 0, sum = 0;
    for (int c = 0; c < s->n_chains; c++) s->of_chain[c] = 0;
    for (int i = 0; i < n; i++) {
        const double f = d < 0 ? 1 : (double)list[i].value[d] - mean, w = list[i].posterior * f;
        if (list[i].chain) s->of_chain[list[i].chain - 1] += w;
        if (list[i].count) sum += w * w / list[i].count;
        if (list[i].count) own += pow(list[i].posterior, 2) / list[i].count;
    }
    if (s->n_chains) return rws__chains_error(s->of_chain, s->n_chains, d < 0 ? mean / s->n_chains : 0);
    return d < 0 ? sqrt(own * pow(1 - mean, 2) + fmax(s->squares - own, 0) * mean * mean) : sqrt(sum);
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

static bool take_values(const outcome *list, int n, int n_values, const source *s, rws_arena *memory, rws_marginal *out)
{
    rws_marginal_value *values = RWS_TRY_NEW(memory, rws_marginal_value, n_values);
    if (!values) return false;
    for (int i = 0, next; i < n; i = next) {
        rws_marginal_value *v = &values[out->n_values++];
        *v = (rws_marginal_value){.value = (double)list[i].value[0]};
        for (next = i; next < n && list[next].value[0] == list[i].value[0]; next++) {
            v->posterior += list[next].posterior;
            v->guide += list[next].guide;
        }
        v->error = error_of(s, list + i, next - i, -1, v->posterior);
    }
    out->values = values;
    return true;
}

static bool take_moments(const outcome *list, int n, const source *s, rws_arena *memory, rws_marginal *out)
{
    double *means = RWS_TRY_NEW(memory, double, out->dim), *sds = RWS_TRY_NEW(memory, double, out->dim),
           *errors = RWS_TRY_NEW(memory, double, out->dim);
    if (!means || !sds || !errors) return false;
    for (int d = 0; d < out->dim; d++) {
        double mean = 0, square = 0;
        for (int i = 0; i < n; i++) mean += list[i].posterior / out->posterior * (double)list[i].value[d];
        for (int i = 0; i < n; i++)
            square += list[i].posterior / out->posterior * pow((double)list[i].value[d] - mean, 2);
        means[d] = mean;
        sds[d] = sqrt(square);
        errors[d] = error_of(s, list, n, d, mean) / out->posterior;
    }
    out->mean = means;
    out->sd = sds;
    out->mean_error = errors;
    return true;
}

static bool take(const outcome *list, int n, const source *s, rws_arena *memory, rws_marginal *out)
{
    *out = (rws_marginal){.name = list[0].name, .report = list[0].report, .visit = list[0].visit, .dim = list[0].dim};
    for (int i = 0; i < n; i++) {
        out->posterior += list[i].posterior;
        out->guide += list[i].guide;
    }
    out->error = error_of(s, list, n, -1, out->posterior);
    const int n_values = count_values(list, n);
    if (n_values > 0 && n_values <= RWS_MARGINAL_VALUES) return take_values(list, n, n_values, s, memory, out);
    return take_moments(list, n, s, memory, out);
}

/* ---- all */

typedef struct {
    rws_marginals public;
    rws_arena memory;
} marginals;

void rws_marginals_free(rws_marginals *m)
{
    if (!m) return;
    rws__arena_free(&((marginals *)m)->memory);
    free(m);
}

/* The outcomes, sorted, as marginals. */
static bool take_all(const outcome *all, int n, const source *s, marginals *out)
{
    int n_sites = 0;
    for (int i = 0; i < n; i++) n_sites += i == 0 || by_site(&all[i - 1], &all[i]) != 0;
    rws_marginal *list = RWS_TRY_NEW(&out->memory, rws_marginal, n_sites + 1);
    bool          good = list != NULL;
    out->public.list = list;
    for (int i = 0, next; i < n && good; i = next) {
        for (next = i; next < n && by_site(&all[i], &all[next]) == 0;) next++;
        good = take(all + i, next - i, s, &out->memory, &list[out->public.n++]);
    }
    return good;
}

rws_status rws_marginals_new(const rws_answers *a, int most_dim, rws_marginals **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(a, err);
    outcome   *all = malloc((count_outcomes(a) + 1) * sizeof *all);
    marginals *m = calloc(1, sizeof *m);
    source     s = {.n_chains = a->n_chains, .of_chain = malloc(((size_t)a->n_chains + 1) * sizeof(double))};
    const int  n = all ? collect(a, most_dim, all) : 0;
    for (int i = 0; i < a->n_weighted; i++)
        if (a->particles[i].count) s.squares += pow(a->particles[i].weight, 2) / a->particles[i].count;
    if (all) qsort(all, (size_t)n, sizeof *all, by_outcome);
    const bool good = all && m && s.of_chain && take_all(all, n, &s, m);
    free(s.of_chain);
    free(all);
    if (good) *out = &m->public;
    else rws_marginals_free(m ? &m->public : NULL);
    return good ? RWS_OK : rws_no_memory(err, "the choices of particles");
}
