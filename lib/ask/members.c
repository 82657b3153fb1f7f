/* members.c - the numbers and texts that answers consist of, each with its name: one list for JSON, the HTTP API, tables of
 * answers and Python. The lists of reports, choices and particles are not here.
 */
#include "rws_train.h"

#include <stddef.h>

#define AT(type, member) .offset = offsetof(type, member)

static const rws_answer_member of_answers[] = {
    {"log_evidence", "the log of the mean weight", .column = true, AT(rws_answers, log_evidence)},
    {"log_evidence_error", "its standard error", .column = true, AT(rws_answers, log_evidence_error)},
    {"exact_log_evidence", "log p of the datum, where the model knows it", .when = RWS_MEMBER_KNOWN, .column = true,
     AT(rws_answers, exact_log_evidence)},
    {"ess", "the effective number of particles, as a share of them", .column = true, AT(rws_answers, ess)},
    {"k_hat", "the Pareto k of the weights", .column = true, AT(rws_answers, k_hat)},
    {"k_limit", "weights with a larger k_hat are too uneven", AT(rws_answers, k_limit)},
    {"verdict", "reliable, doubtful or unreliable", RWS_MEMBER_TRUST, .column = true, AT(rws_answers, verdict)},
    {"advice", "why, and what to do", RWS_MEMBER_TEXT, AT(rws_answers, advice)},
    {0},
};

static const rws_answer_member of_answer[] = {
    {"posterior", "its probability by importance weights", AT(rws_answer, posterior)},
    {"error", "the standard error of posterior", AT(rws_answer, error)},
    {"exact", "its probability, where the model knows it", .when = RWS_MEMBER_KNOWN, AT(rws_answer, exact)},
    {"guide", "the share of the particles of the guide", AT(rws_answer, guide)},
    {0},
};

static const rws_answer_member of_particle[] = {
    {"weight", "the normalised importance weight of all of them", AT(rws_weighted, weight)},
    {"count", "how many particles made these choices", RWS_MEMBER_COUNT, AT(rws_weighted, count)},
    {"answer", "the number of their answer", RWS_MEMBER_COUNT, AT(rws_weighted, answer)},
    {"log_p", "log p of the choices and the datum", AT(rws_weighted, log_p)},
    {"log_q", "log q of the choices that were drawn", AT(rws_weighted, log_q)},
    {"log_given", "log q of the choices that were given, if any was; it is no part of log_q", .when = RWS_MEMBER_GIVEN,
     AT(rws_weighted, log_given)},
    {0},
};

const rws_answer_member *rws_answer_member_at(rws_member_of of, int i)
{
    static const rws_answer_member *const lists[] = {of_answers, of_answer, of_particle};
    if ((unsigned)of > RWS_OF_PARTICLE || i < 0) return NULL;
    const rws_answer_member *m = lists[of];
    while (i > 0 && m->name) m++, i--;
    return m->name ? m : NULL;
}

const char *rws_answer_member_text(const rws_answer_member *m, const void *structure)
{
    const char *at = (const char *)structure + m->offset;
    if (m->type == RWS_MEMBER_TRUST) return rws_trust_name(*(const rws_trust *)at);
    return m->type == RWS_MEMBER_TEXT ? *(const char *const *)at : NULL;
}

double rws_answer_member_number(const rws_answer_member *m, const void *structure)
{
    const char *at = (const char *)structure + m->offset;
    return m->type == RWS_MEMBER_COUNT ? *(const int *)at : *(const double *)at;
}
