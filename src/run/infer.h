/* infer.h - asks a trained run: what is behind a datum, and what its model would say by itself.
 *
 * An answer is what particles have reported (rws_report); those that reported the same are one answer. How probable it
 * is given the datum, the guide's particles tell by their importance weights and, where a model can sum over all its
 * choices, the exact posterior. Nothing is printed and nothing about the run changes.
 *
 *     text of a user -> rws_model.read -> guide's particles -> [infer] -> answers
 *     his picture ----> rws_model.see
 *                                  model's own samples -> [infer] -> samples
 */
#ifndef RWS_RUN_INFER_H
#define RWS_RUN_INFER_H

#include "base/arena.h"
#include "run/run.h"

/* One report: a text, or a value of dim numbers. */
typedef struct {
    const char  *name, *text;
    const float *value;
    int          dim;
} rws_told;

typedef struct {
    const rws_told *told; /* in the order of the program */
    int             n_told;
    double          guide;     /* its share of the guide's particles */
    double          posterior; /* by their weights; NaN if all of them are impossible */
    double          exact;     /* NaN if nobody knows */
} rws_answer;

/* To be released. The most probable come first: by weights, then by the exact posterior, then by the guide. */
typedef struct {
    rws_answer *list;
    int         n;
    int         n_particles;
    double      ess;                              /* the effective number of particles, as a share of them */
    double      log_evidence, exact_log_evidence; /* log of the mean weight, -inf if there is none; NaN if unknown */
    rws_arena   memory;
} rws_answers;

/* Asks about the datum that the text stands for. RWS_BAD_INPUT if the model cannot be asked so, or if it does not
 * understand the text. *out is empty after a failure. */
rws_status rws_infer(rws_trainer *t, const char *text, int n_particles, uint64_t seed, rws_answers *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same about a picture, of a model that sees them (rws_model.see), and about one of the test data, which a trainer
 * that was made for asking does not have. */
rws_status rws_infer_picture(rws_trainer *t, const rws_grey *picture, int n_particles, uint64_t seed, rws_answers *out,
                             rws_error *err) __attribute__((warn_unused_result));
rws_status rws_infer_test(rws_trainer *t, int datum, int n_particles, uint64_t seed, rws_answers *out, rws_error *err)
    __attribute__((warn_unused_result));

/* n samples of the model, each an answer without probabilities (NaN). Fails like the engine. */
rws_status rws_sample(rws_trainer *t, int n, uint64_t seed, rws_answers *out, rws_error *err)
    __attribute__((warn_unused_result));

void rws_answers_release(rws_answers *a);

/* The text that an answer has under a name, or NULL; and the value that it has there, the first being at time 0. */
const char     *rws_answer_text(const rws_answer *a, const char *name);
const rws_told *rws_answer_value(const rws_answer *a, const char *name, int time);

#endif
