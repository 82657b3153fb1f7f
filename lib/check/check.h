/* check.h - a review of a user's programs on a few data: what a careful reader would try.
 *
 *     program, engine, some data -> [check] -> findings
 *
 * Every part runs a few small passes and adds to a list what it finds. A pass that fails is a finding too; a status other than
 * RWS_OK means that the part could not be carried out. Parameters are moved for differences and put back; nothing else changes.
 */
#ifndef RWS_CHECK_CHECK_H
#define RWS_CHECK_CHECK_H

#include "base/arena.h"
#include "program/program.h"

typedef struct {
    rws_program        *program;
    rws_engine         *engine;
    const float *const *fields; /* the data to look at, by field */
    int                 n_data;
    int                 n_particles; /* of a datum, for the parts that compare particles */
    double              until;       /* the clock's time after which no further pass begins; 0: there is none */
    rws_arena           memory;      /* of the texts, and of scratch */
    rws_check_finding  *list;
    int                 n, capacity;
    rws_use            *uses;   /* by number of the parameter: in all passes so far */
    float              *values; /* of the parameters, at the beginning */
    bool hopeless; /* the programs fail on a single particle, or are no functions: nothing else can be tried */
} rws_review;

/* Makes an empty review, which the caller releases, also after a failure. */
rws_status rws__review_begin(rws_review *r, rws_program *p, rws_engine *e, const float *const *fields, int n_data,
                             rws_error *err);
void       rws__review_release(rws_review *r);

/* Adds a finding, unless the last one has the same kind and is about another parameter of the same layer. */
rws_status rws__review_add(rws_review *r, const char *kind, rws_severity severity, const char *about, rws_error *err,
                           const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Whether the programs fail on a single particle, as a run would say too. */
bool rws__review_is_failure(const rws_check_finding *f);

bool rws__review_is_late(const rws_review *r);

/* The findings as the public header has them, the most severe first. */
rws_status rws__review_findings(const rws_review *r, rws_check_findings **out, rws_error *err);

/* A key of the review's random numbers; parts have different ones. */
rws_key rws__review_key(const rws_review *r, uint32_t part);

/* A pass of the guide and the model over data first … first + n - 1, with n_particles each. `fields` has room for all fields,
 * and lasts as long as the pass. */
rws_pass rws__review_pass(const rws_review *r, int first, int n, int n_particles, uint32_t part, const float **fields);

/* schedules.c: the same draws in other orders must have the same scores. */
rws_status rws__check_schedules(rws_review *r, rws_error *err);

/* programs.c */
rws_status rws__check_groups(rws_review *r, rws_error *err); /* each program uses parameters of its own; uses so far */
rws_status rws__check_unused(rws_review *r, rws_error *err); /* every parameter is used */
rws_status rws__check_dreams(rws_review *r, rws_error *err); /* the guide reaches what the model draws */
rws_status rws__check_global(rws_review *r, rws_error *err); /* a latent of all data in a model of single data */
rws_status rws__check_jumps(rws_review *r, rws_error *err);
rws_status rws__check_sums(rws_review *r, rws_error *err); /* choices that cost less to sum than to draw */

/* gradients.c: gradients agree with differences. */
rws_status rws__check_gradients(rws_review *r, rws_error *err);

/* rows.c: every datum of a split is possible; `fields` has its first n data. */
rws_status rws__check_rows(rws_review *r, rws_split split, int n, const float *const *fields, rws_error *err);

/* rows.c: the text that names a datum of an iteration's batch of n which no particle explains, and the site that forbids it:
 * "datum 17 (y = -3), which is impossible at site "y""; "" if each is possible. */
rws_status rws__find_impossible(rws_review *r, uint64_t iteration, int n, const float *const *fields, char *out,
                                size_t size, rws_error *err);

/* rows.c: in the review so far no program has written to a parameter; making a datum writes to none. */
rws_status rws__check_kept(rws_review *r, rws_error *err);
rws_status rws__check_writes(rws_review *r, rws_error *err);

/* rows.c: makes the first n training data. */
rws_status rws__check_data(rws_review *r, int n, float *const *fields, rws_error *err);

#endif
