/* signs.c - what the weights of an answer's particles say of it: a verdict, and a sentence of advice.
 *
 *     impossible                                         unreliable
 *     the exact posterior has what no particle found     unreliable
 *     fewer than 10 effective particles                  unreliable
 *     k_hat >= 0.7                                       unreliable; above 1 more particles do not help
 *     k_hat > k_limit, or fewer than 100 effective       doubtful
 *
 * of refined answers, in the place of the last three
 *     a chain has found no possible particle             unreliable
 *     R-hat > 1.1, or fewer than 10 effective draws      unreliable
 *     R-hat > 1.05, or fewer than 100                    doubtful
 *
 * k_hat does not count where ess is above 0.99: the tail of nearly equal weights is noise. The limits of k are those of Vehtari et al. (2024): 10^(1 / (1 - k)) particles are enough for k < 0.7.
 */
#include "ask/ask.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 10, ENOUGH = 100 /* effective particles */ };
#define MISSED 0.05   /* probability of answers that no particle has found */
#define EVEN 0.99     /* ess above which weights differ too little for their tail to matter */
#define MIXED 1.05    /* R-hat of chains that agree; 16 chains of 25 draws have an R-hat of 1.03 by chance */
#define APART 1.1     /* R-hat above which they tell of their beginnings (Gelman and Rubin, 1992) */
#define TOO_HEAVY 0.7 /* k above which more particles do not help soon */

const char *rws_trust_name(rws_trust v)
{
    static const char *const names[] = {"reliable", "doubtful", "unreliable"};
    return (unsigned)v < sizeof names / sizeof *names ? names[v] : NULL;
}

/* The exact probability of all answers that no possible particle has. */
static double missed(const rws_answers *a)
{
    double sum = 0;
    for (int i = 0; i < a->n; i++)
        if (a->list[i].exact > 0 && !(a->list[i].posterior > 0)) sum += a->list[i].exact;
    return sum;
}

/* A number of particles as advice gives it: rounded up to one digit. */
static double round_up(double n)
{
    const double unit = pow(10, floor(log10(n)));
    return ceil(n / unit - 0.01) * unit;
}

static rws_trust judge_impossible(const rws_answers *a, size_t size, char *advice)
{
    if (a->exact_log_evidence == -INFINITY)
        snprintf(advice, size, "The datum is impossible under the model, so that it has no posterior.");
    else
        snprintf(advice, size,
                 "No particle explains the datum: ask with more particles, or train on until the guide proposes what "
                 "explains it.");
    return RWS_UNRELIABLE;
}

static rws_trust judge_missed(double probability, size_t size, char *advice)
{
    snprintf(advice, size,
             "The exact posterior gives %.2g to answers that no particle has found, so that the guide misses a mode: "
             "train on, with sleep phases, or ask with more particles.",
             probability);
    return RWS_UNRELIABLE;
}

static rws_trust judge_heavy(const rws_answers *a, size_t size, char *advice)
{
    snprintf(advice, size,
             "The weights have a heavy tail (k_hat %.2f, limit %.2f): the guide rarely proposes what is most probable; "
             "train on or refine the answer, since more particles help %s.",
             a->k_hat, a->k_limit, a->k_hat > 1 ? "hardly" : "slowly");
    return RWS_UNRELIABLE;
}

static rws_trust judge_few(const rws_answers *a, double effective, size_t size, char *advice)
{
    const double needed = round_up(fmax(ENOUGH / a->ess, a->k_hat > 0 ? pow(10, 1 / (1 - a->k_hat)) : 0));
    const char  *weight = a->k_hat > a->k_limit ? " and k_hat is above its limit" : "";
    if (needed <= RWS_MAX_PARTICLES)
        snprintf(advice, size, "Only %.3g of %d particles count%s: ask with about %.0f, or train on.", effective,
                 a->n_particles, weight, needed);
    else
        snprintf(advice, size, "Only %.3g of %d particles count%s: train on, since more particles are not enough.",
                 effective, a->n_particles, weight);
    return effective < FEW ? RWS_UNRELIABLE : RWS_DOUBTFUL;
}

static rws_trust judge_chains(const rws_answers *a, int n_lost, const char *slowest, size_t size, char *advice)
{
    const bool apart = a->r_hat > MIXED;
    if (n_lost)
        snprintf(
            advice, size,
            "%d of %d chains found no possible particle while they warmed up: ask with more particles, or train on.",
            n_lost, a->n_chains + n_lost);
    else if (isnan(a->r_hat) && a->n_draws < 4 * a->n_chains)
        snprintf(advice, size, "The chains are too short to be compared: refine with 8 iterations or more.");
    else if (apart)
        snprintf(advice, size,
                 "The chains do not agree yet (R-hat %.3g at %s, limit %g): refine with more iterations, or train on.",
                 a->r_hat, slowest, MIXED);
    else if (a->n_effective < ENOUGH)
        snprintf(advice, size, "The %d draws of the chains count as %.3g: refine with more iterations.", a->n_draws,
                 a->n_effective);
    else {
        snprintf(advice, size,
                 "The chains agree, and the errors that are given hold, but they do not show what no chain has found.");
        return RWS_RELIABLE;
    }
    return n_lost || a->r_hat > APART || a->n_effective < FEW ? RWS_UNRELIABLE : RWS_DOUBTFUL;
}

static rws_trust judge(const rws_answers *a, int n_lost, const char *slowest, size_t size, char *advice)
{
    const double effective = a->ess * a->n_particles, lost = missed(a);
    if (a->log_evidence == -INFINITY && !a->n_chains) return judge_impossible(a, size, advice);
    if (lost > MISSED) return judge_missed(lost, size, advice);
    if (a->n_chains) return judge_chains(a, n_lost, slowest, size, advice);
    if (a->k_hat >= TOO_HEAVY && a->ess < EVEN) return judge_heavy(a, size, advice);
    if (effective < ENOUGH || (a->k_hat > a->k_limit && a->ess < EVEN)) return judge_few(a, effective, size, advice);
    snprintf(advice, size,
             "The weights are even enough for the errors that are given, but do not show what no particle has found.");
    return RWS_RELIABLE;
}

rws_status rws__answers_judge(rws_answers *a, int n_lost, const char *slowest, rws_arena *memory, rws_error *err)
{
    char advice[600];
    a->k_limit = rws_pareto_k_limit(a->n_particles);
    a->verdict = judge(a, n_lost, slowest, sizeof advice, advice);
    char *kept = rws__arena_try(memory, strlen(advice) + 1);
    if (!kept) return rws_no_memory(err, "answers");
    a->advice = strcpy(kept, advice);
    return RWS_OK;
}
