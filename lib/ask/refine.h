/* refine.h - chains whose stationary distribution is the posterior, with the guide as their proposal.
 *
 *     guide -> [rws__chains_resample, rws__chains_move] -> states -> the same answers, with chains in the place of weights
 */
#ifndef RWS_ASK_REFINE_H
#define RWS_ASK_REFINE_H

#include "program/program.h"

/* What a chain is at: a trace. */
typedef struct {
    double              log_p, log_q; /* log_q: of the choices that the question does not give; log_p -inf: none yet */
    double              log_given;    /* log q of those that it gives */
    const rws_choice   *choices;
    const double       *log_q_of;          /* of each choice */
    int                 n_choices, n_free; /* n_free: how many of them the question does not give */
    const rws_reported *reports;
    int                 n_reports;
    uint64_t            number; /* of the trace among those that the chain has been at */
    rws_arena           memory; /* of all this */
} rws_state;

typedef struct {
    const rws_program  *program;
    rws_engine         *engine;
    const rws_question *question; /* only its given choices and its seed are read */
    float             **fields;   /* the datum, for each chain */
    int         n, n_proposals;   /* chains; traces of the guide for each of them and call of rws__chains_resample */
    rws_random  random;
    rws_state  *now, *next;
    double     *log_total; /* scratch of a number for each chain */
    rws_choice *given;     /* scratch */
    uint32_t   *given_start, *picked;
    int         given_capacity;
} rws_chains;

/* Makes chains that are nowhere yet, about the datum in `fields`; `number` tells questions with equal seeds apart. To be
 * released also after a failure. */
rws_status rws__chains_begin(rws_chains *c, const rws_program *p, rws_engine *e, const rws_question *q,
                             float *const *fields, int n, int n_proposals, uint32_t number, rws_error *err);
void       rws__chains_release(rws_chains *c);

/* A step of iterated sampling importance resampling (i-SIR) of each chain, and of single-site Metropolis-Hastings. */
rws_status rws__chains_resample(rws_chains *c, rws_error *err);
rws_status rws__chains_move(rws_chains *c, rws_error *err);

#endif
