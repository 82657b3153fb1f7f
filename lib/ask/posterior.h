/* posterior.h - posteriors of programs at hand, their engines, and samples that a caller may stop. */
#ifndef RWS_ASK_POSTERIOR_H
#define RWS_ASK_POSTERIOR_H

#include "program/program.h"

/* A posterior with a copy of the program's present parameters; the program may be released before it. */
rws_status rws__posterior_copy(const rws_program *from, rws_posterior **out, rws_error *err)
    __attribute__((warn_unused_result));

const rws_program *rws__posterior_program(const rws_posterior *p);

/* An engine that waits for a question. */
typedef struct rws_idle {
    rws_engine      *engine;
    struct rws_idle *next;
} rws_idle;

/* Takes an engine out of the posterior, from any thread, and puts it back. NULL with a message: no memory. */
rws_idle *rws__posterior_take(rws_posterior *p, rws_error *err);
void      rws__posterior_give_back(rws_posterior *p, rws_idle *e);

/* rws_posterior_sample, or rws_posterior_sample_at if `at` is not NULL, that ends with RWS_STOPPED soon after `stop` has
 * returned true; it is asked now and then, on the
 * thread of the caller. NULL: never. */
rws_status rws__posterior_sample_unless(rws_posterior *p, const rws_question *at, int n, uint64_t seed,
                                        bool (*stop)(void *context), void *context, rws_samples **out, rws_error *err)
    __attribute__((warn_unused_result));

#endif
