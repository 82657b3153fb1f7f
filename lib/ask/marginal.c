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
    double       squares; /* sum of squares of the particles' normalised weights */
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

static size_t count_outcomes(const rws_answers *a)
{
    size_t n = 0;
    for (int i = 0; i < a->n; i++) n += (size_t)a->list[i].n_reports;
    for (int i = 0; i < a->n_weighted; i++) n += (size_t)a->particles[i].n_choices;
    return n;
}

static int count_before(const rws_reported *list, int k)
{
    int n = 0;
    for (int i = 0; i < k; i++) n += strcmp(list[i].name, list[k].name) == 0;
    return n;
}

/* The sum of squares of the normalised weights of the particles of entry i of the list. */
static double squares_of(const rws_weighted *w)
{
    return w->weight * w->weight / w->count;
}

/* The same sums for each answer, into out[n]; returns the sum over all. */
static double sum_squares(const rws_answers *a, double *out)
{
    double all = 0;
    for (int i = 0; i < a->n; i++) out[i] = 0;
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        if (w->answer >= 0 && w->answer < a->n) out[w->answer] += squares_of(w);
        all += squares_of(w);
    }
    return all;
}

/* The standard error of a probability, estimated by weights whose squares sum to `own` where it is counted and to `all`
 * everywhere. */
static double error_of(double probability, double own, double all)
{
    return sqrt(own * pow(1 - probability, 2) + fmax(all - own, 0) * probability * probability);
}

static int collect(const rws_answers *a, const double *squares, int most_dim, outcome *out)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        const rws_answer *answer = &a->list[i];
        for (int k = 0; k < answer->n_reports; k++) {
            const rws_reported *r = &answer->reports[k];
            if (r->text || r->dim != 1) continue;
            out[n++] = (outcome){
                r->name,   count_before(answer->reports, k), 1, true, r->value, answer->posterior, answer->guide,
                squares[i]};
        }
    }
    for (int i = 0; i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        for (int k = 0; k < w->n_choices; k++) {
            const rws_choice *c = &w->choices[k];
            if (c->dim < 1 || c->dim > most_dim) continue;
            out[n++] =
                (outcome){c->site,      c->visit, c->dim, false, c->value, w->weight, (double)w->count / a->n_particles,
                          squares_of(w)};
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

static bool take_values(const outcome *list, int n, int n_values, double all, rws_arena *memory, rws_marginal *out)
{
    rws_marginal_value *values = RWS_TRY_NEW(memory, rws_marginal_value, n_values);
    if (!values) return false;
    for (int i = 0; i < n; i++) {
        if (i == 0 || list[i].value[0] != list[i - 1].value[0])
            values[out->n_values++] = (rws_marginal_value){.value = (double)list[i].value[0]};
        values[out->n_values - 1].posterior += list[i].posterior;
        values[out->n_values - 1].guide += list[i].guide;
        values[out->n_values - 1].error += list[i].squares;
    }
    for (int i = 0; i < out->n_values; i++) values[i].error = error_of(values[i].posterior, values[i].error, all);
    out->values = values;
    return true;
}

static bool take_moments(const outcome *list, int n, rws_arena *memory, rws_marginal *out)
{
    double *means = RWS_TRY_NEW(memory, double, out->dim), *sds = RWS_TRY_NEW(memory, double, out->dim),
           *errors = RWS_TRY_NEW(memory, double, out->dim);
    if (!means || !sds || !errors) return false;
    for (int d = 0; d < out->dim; d++) {
        double mean = 0, square = 0, error = 0;
        for (int i = 0; i < n; i++) mean += list[i].posterior / out->posterior * (double)list[i].value[d];
        for (int i = 0; i < n; i++)
            square += list[i].posterior / out->posterior * pow((double)list[i].value[d] - mean, 2);
        for (int i = 0; i < n; i++) error += list[i].squares * pow((double)list[i].value[d] - mean, 2);
        means[d] = mean;
        sds[d] = sqrt(square);
        errors[d] = sqrt(error) / out->posterior;
    }
    out->mean = means;
    out->sd = sds;
    out->mean_error = errors;
    return true;
}

static bool take(const outcome *list, int n, double all, rws_arena *memory, rws_marginal *out)
{
    double own = 0;
    *out = (rws_marginal){.name = list[0].name, .report = list[0].report, .visit = list[0].visit, .dim = list[0].dim};
    for (int i = 0; i < n; i++) {
        out->posterior += list[i].posterior;
        out->guide += list[i].guide;
        own += list[i].squares;
    }
    out->error = error_of(out->posterior, own, all);
    const int n_values = count_values(list, n);
    if (n_values > 0 && n_values <= RWS_MARGINAL_VALUES) return take_values(list, n, n_values, all, memory, out);
    return take_moments(list, n, memory, out);
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
static bool take_all(const outcome *all, int n, double squares, marginals *out)
{
    int n_sites = 0;
    for (int i = 0; i < n; i++) n_sites += i == 0 || by_site(&all[i - 1], &all[i]) != 0;
    rws_marginal *list = RWS_TRY_NEW(&out->memory, rws_marginal, n_sites + 1);
    bool          good = list != NULL;
    out->public.list = list;
    for (int i = 0, next; i < n && good; i = next) {
        for (next = i; next < n && by_site(&all[i], &all[next]) == 0;) next++;
        good = take(all + i, next - i, squares, &out->memory, &list[out->public.n++]);
    }
    return good;
}

rws_status rws_marginals_new(const rws_answers *a, int most_dim, rws_marginals **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(a, err);
    outcome     *all = malloc((count_outcomes(a) + 1) * sizeof *all);
    marginals   *m = calloc(1, sizeof *m);
    double      *squares = malloc(((size_t)a->n + 1) * sizeof *squares);
    const double sum = squares ? sum_squares(a, squares) : 0;
    const int    n = all && squares ? collect(a, squares, most_dim, all) : 0;
    if (all) qsort(all, (size_t)n, sizeof *all, by_outcome);
    const bool good = all && squares && m && take_all(all, n, sum, m);
    free(squares);
    free(all);
    if (good) *out = &m->public;
    else rws_marginals_free(m ? &m->public : NULL);
    return good ? RWS_OK : rws_no_memory(err, "the choices of particles");
}
