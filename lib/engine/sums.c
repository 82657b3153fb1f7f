/* sums.c - sites that are summed: a particle is divided into a row for each value, and its weight is the sum over its rows.
 *
 *     drawn     rows  0   1            x, y: 3 particles and 1
 *      |             /|\ /|\
 *     summed    0 1 2   3 4 5          z = 0, 1, 2: all 3 particles are in each of the rows 0, 1 and 2
 *      |\       |
 *     drawn     0 1                    u given x, z = 0: the three particles part, in each row by numbers of their own
 *
 * A particle k has drawn the choices a before the site and, in its row c, b_c after it. Its weight is
 *
 *     W_k = sum_c w_kc,   w_kc = p(a, c, b_c, x) / (q(a) q(b_c | a, c)),   E W_k = p(x),
 *
 * so the bound L = log (1/K) sum_k W_k is that of K particles whose site is summed exactly; the sum over the site draws nothing,
 * and the variance of W_k is that of W_k given the draws, by Rao and Blackwell at most that of p / q with a drawn site and the
 * best q for it. Estimators see the table of particles, with log W_k in the place of log p - log q, and write the coefficients
 * of one particle; here they become those of its rows:
 *
 *     of log p, and of log q by a share of the weight      c_k w_kc / W_k      since d log W_k = sum_c (w_kc / W_k) d log w_kc
 *     of log q by a score function (coef_score)            c_k                 for b_c and for a, which backward counts once
 *
 * The second is the gradient of E f(a, b_0, b_1, …) = E f (grad log q(a) + sum_c grad log q(b_c | a, c)), in which the draws of rows
 * must be independent given a. Therefore parts of a particle have counters of their own (words.h): part c of particle k at a level
 * of this width has number k width + c. The guide's density at a summed site is no part of any of this. */
#include "engine/internal.h"

#include <math.h>
#include <string.h>

static bool is_summed(const rws_engine *e)
{
    for (uint32_t i = 0; i < e->n_ends; i++)
        if (e->levels[e->ends[i].level].width > 1) return true;
    return false;
}

/* Lists the particles of each row of the table. */
static void list_particles(rws_engine *e, rws_sums *sums)
{
    const rws_scores *s = &e->scores;
    uint32_t         *start = RWS_NEW0(&e->arena, uint32_t, s->n + 1), at = 0;
    for (int i = 0; i < s->n; i++) start[i + 1] = start[i] + s->count[i];
    uint32_t *particle = RWS_NEW(&e->arena, uint32_t, start[s->n]);
    for (uint32_t end = 0; end < e->n_ends; end++) {
        rws__level_particles(e, e->ends[end].level);
        const level *l = &e->levels[e->ends[end].level];
        for (uint32_t i = 0; i < l->n_rows; i++, at++) {
            uint32_t *to = particle + start[rws__scores_place(e, at)];
            for (uint32_t k = 0; k < l->count[i]; k++)
                to[k] = (l->stride ? i * l->stride + k : l->particles[l->particles_start[i] + k]) / l->width;
        }
    }
    sums->start = start;
    sums->particle = particle;
}

/* log_p of particles: the log of the sum of the weights of their rows; and the first of these rows. */
static void add_rows(const rws_scores *s, rws_sums *sums, double *log_p)
{
    double *top = sums->whole.w;
    for (int k = 0; k < sums->whole.n; k++) top[k] = -INFINITY, log_p[k] = 0;
    for (int i = s->n - 1; i >= 0; i--)
        for (uint32_t j = sums->start[i]; j < sums->start[i + 1]; j++) {
            const uint32_t k = sums->particle[j];
            top[k] = fmax(top[k], s->l[i]);
            sums->first[k] = (uint32_t)i;
        }
    for (int i = 0; i < s->n; i++)
        for (uint32_t j = sums->start[i]; j < sums->start[i + 1] && s->l[i] > -INFINITY; j++)
            log_p[sums->particle[j]] += exp(s->l[i] - top[sums->particle[j]]);
    for (int k = 0; k < sums->whole.n; k++) log_p[k] = top[k] + log(log_p[k]);
}

static double *first_of(rws_engine *e, const rws_sums *sums, const double *column)
{
    double *to = column ? RWS_NEW(&e->arena, double, sums->whole.n) : NULL;
    for (int k = 0; k < sums->whole.n && column; k++) to[k] = column[sums->first[k]];
    return to;
}

/* The table of particles. An output of a program is that of a particle's first row. */
static void make_whole(rws_engine *e, rws_sums *sums)
{
    rws_scores    *s = &e->scores, *to = &sums->whole;
    const uint32_t B = (uint32_t)s->B, K = (uint32_t)s->K, n = B * K;
    uint32_t *start = RWS_NEW(&e->arena, uint32_t, B + 1), *count = RWS_NEW(&e->arena, uint32_t, n + RWS_ROWS_BEHIND);
    uint32_t *datum = RWS_NEW(&e->arena, uint32_t, n);
    double   *log_p = RWS_NEW(&e->arena, double, n), *none = RWS_NEW0(&e->arena, double, n);
    *to = (rws_scores){.B = s->B, .K = s->K, .n = (int)n, .start = start, .count = count, .datum = datum};
    to->log_p = log_p, to->log_q = to->log_d = none;
    for (uint32_t d = 0; d <= B; d++) start[d] = d * K;
    for (uint32_t k = 0; k < n; k++) count[k] = 1, datum[k] = k / K;
    sums->first = RWS_NEW(&e->arena, uint32_t, n);
    rws__scores_columns(e, to);
    add_rows(s, sums, log_p);
    for (int i = 0; i < RWS_OUTPUTS; i++) to->out[i] = first_of(e, sums, s->out[i]);
    rws__scores_columns(e, to);
    to->coef_score = RWS_NEW0(&e->arena, double, n);
}

void rws__sums_make(rws_engine *e)
{
    rws_scores *s = &e->scores;
    if (!is_summed(e)) return;
    rws_sums *sums = s->sums = RWS_NEW0(&e->arena, rws_sums, 1);
    for (int i = 0; i < s->n; i++) s->l[i] = s->log_p[i] == -INFINITY ? -INFINITY : s->log_p[i] - s->log_d[i];
    s->coef_score = RWS_NEW0(&e->arena, double, s->n);
    list_particles(e, sums);
    make_whole(e, sums);
}

/* The share that a row with log-weight l has of the weight of particle k. */
static double share_of(const rws_sums *sums, double l, uint32_t k)
{
    return l == -INFINITY ? 0 : exp(l - sums->whole.log_p[k]);
}

void rws__scores_part(rws_scores *s)
{
    const rws_sums   *sums = s->sums;
    const rws_scores *whole = sums ? &sums->whole : NULL;
    for (int i = 0; i < s->n && sums; i++)
        for (uint32_t j = sums->start[i]; j < sums->start[i + 1]; j++) {
            const uint32_t k = sums->particle[j];
            const double   share = share_of(sums, s->l[i], k);
            s->coef_p[i] += share * whole->coef_p[k];
            s->coef_q[i] += share * whole->coef_q[k];
            s->coef_r[i] += share * whole->coef_r[k];
            s->coef_score[i] += whole->coef_score[k];
        }
    for (int slot = 0; slot < RWS_OUTPUTS && sums; slot++)
        for (int k = 0; k < whole->n && whole->coef_out[slot]; k++)
            s->coef_out[slot][sums->first[k]] += whole->coef_out[slot][k];
}

double rws__row_share(const rws_scores *s, int i)
{
    double sum = 0;
    if (!s->sums) return s->count[i];
    for (uint32_t j = s->sums->start[i]; j < s->sums->start[i + 1]; j++)
        sum += share_of(s->sums, s->l[i], s->sums->particle[j]);
    return sum;
}

double rws__row_log_square(const rws_scores *s, int i)
{
    const double l = s->log_p[i] - s->log_d[i];
    double       sum = 0;
    if (!s->sums || l == -INFINITY) return 2 * l + log(s->count[i]);
    for (uint32_t j = s->sums->start[i]; j < s->sums->start[i + 1]; j++)
        sum += exp(s->sums->whole.log_p[s->sums->particle[j]] - l);
    return 2 * l + log(sum);
}
