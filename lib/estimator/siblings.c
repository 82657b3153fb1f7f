#include "estimator/siblings.h"

#include "base/error.h"
#include "base/quote.h"

#include <string.h>

rws_status rws__siblings_read(rws_method *m, rws_setup *s, rws_error *err)
{
    const char *text = rws_setup_text(s, "baseline");
    m->siblings = strcmp(text, "siblings") == 0;
    if (m->siblings || strcmp(text, "datum") == 0) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "Setting baseline is datum or siblings, not \"%s\".",
                    rws__quote_short(text).text);
}

/* The normalised weight of one particle of a row. */
static double weight(const rws_scores *s, uint32_t row)
{
    return s->w[row] / s->count[row];
}

/* ---- what takes the place of a particle's own weight, as a share of the sum of all weights of its datum */

static double arithmetic(double total, double own, double n)
{
    return (total - own) / (n - 1);
}

/* impossible: how many of the n particles weigh nothing; logs: the sum of log w over the others, less n times that of the datum. */
static double geometric_mean(double logs, double impossible, double own, double n)
{
    const bool none = own == -INFINITY;
    if (impossible - none > 0) return 0;
    return exp((logs - (none ? 0 : own)) / (n - 1));
}

/* The log-weight of a particle as a share of all. */
static double log_share(const rws_scores *s, uint32_t row)
{
    return s->l[row] - s->L[s->datum[row]] - log(s->K);
}

static double signal(double own, double instead)
{
    const double without = 1 - own + instead;
    return without > 0 ? -log(without) : 0;
}

/* ---- sums over the particles of the rows above: their number; then weights, or logs and impossible ones */

/* own: the signals of particles without siblings; NULL: they are compared with all others of their datum. */
static void add_signals(const rws_scores *s, uint32_t n, const uint32_t *row, const uint32_t *at, const uint32_t *above,
                        const double *own_signal, double *sums, double *coef)
{
    for (uint32_t k = 0; k < n; k++) {
        sums[3 * above[k]] += s->count[row[k]];
        sums[3 * above[k] + 1] += s->w[row[k]];
    }
    for (uint32_t k = 0; k < n; k++) {
        const double own = weight(s, row[k]), many = sums[3 * above[k]];
        const double instead = many > 1 ? arithmetic(sums[3 * above[k] + 1], own, many) : arithmetic(1, own, s->K);
        const double by = many > 1 || !own_signal ? signal(own, instead) : own_signal[row[k]];
        if (s->L[s->datum[row[k]]] == -INFINITY) continue;
        coef[at[k]] += s->choice_share * (s->count[row[k]] * by - s->w[row[k]]);
    }
}

static void weigh_arithmetic(const rws_scores *s, uint32_t n, const uint32_t *row, const uint32_t *at,
                             const uint32_t *above, double *sums, double *coef)
{
    add_signals(s, n, row, at, above, NULL, sums, coef);
}

static void weigh_own(const rws_scores *s, uint32_t n, const uint32_t *row, const uint32_t *at, const uint32_t *above,
                      double *sums, double *coef)
{
    add_signals(s, n, row, at, above, s->work[0], sums, coef);
}

/* The same sums over a whole datum. */
static void add_up_datum(const rws_scores *s, uint32_t d, double *logs, double *impossible)
{
    *logs = *impossible = 0;
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
        if (s->l[i] == -INFINITY) *impossible += s->count[i];
        else *logs += s->count[i] * log_share(s, i);
}

static void weigh_geometric(const rws_scores *s, uint32_t n, const uint32_t *row, const uint32_t *at,
                            const uint32_t *above, double *sums, double *coef)
{
    for (uint32_t k = 0; k < n; k++) {
        const bool none = s->l[row[k]] == -INFINITY;
        sums[3 * above[k]] += s->count[row[k]];
        if (none) sums[3 * above[k] + 2] += s->count[row[k]];
        else sums[3 * above[k] + 1] += s->count[row[k]] * log_share(s, row[k]);
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t d = s->datum[row[k]];
        double         many = sums[3 * above[k]], logs = sums[3 * above[k] + 1], impossible = sums[3 * above[k] + 2];
        if (s->L[d] == -INFINITY) continue;
        if (many <= 1) add_up_datum(s, d, &logs, &impossible), many = s->K;
        const double own = s->l[row[k]] == -INFINITY ? -INFINITY : log_share(s, row[k]);
        const double by = signal(weight(s, row[k]), geometric_mean(logs, impossible, own, many));
        coef[at[k]] += s->choice_share * (s->count[row[k]] * by - s->w[row[k]]);
    }
}

void rws__siblings_weigh(const rws_method *m, rws_scores *s, double share, rws_signal how)
{
    static rws_choice_weigher *const weighers[] = {weigh_arithmetic, weigh_geometric, weigh_own};
    if (!m->siblings) return;
    s->weigh_choices = weighers[how];
    s->choice_share = share;
}
