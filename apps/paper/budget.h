/* budget.h - an experiment that fits into some hours: its sweep with fewer iterations, particles and seeds.
 *
 * A price tells the seconds of a run. The choice tries all numbers of seeds and of K, each with the largest share of the
 * iterations that fits, and takes the one that loses least. It measures nothing and trains nothing.
 *
 *     sweep, price of each run, hours -> [budget] -> a smaller sweep, and what it left out
 *
 * What a choice loses, in halvings of the iterations: a half for each halving of the seeds down to three, because
 * three can decide; three more below three; one for each K that is left out, and four more if only one K remains. An
 * experiment of fewer than three seeds loses one for each halving of the seeds.
 */
#ifndef RWS_PAPER_BUDGET_H
#define RWS_PAPER_BUDGET_H

#include "paper/paper.h"
#include "rws_results.h"

enum { RWS_BUDGET_K = 16 };

/* A smaller sweep. */
typedef struct {
    double share;           /* of the iterations */
    int    seeds;           /* the first ones of each block, at most this many */
    int    n_K;             /* numbers of particles that are left out */
    int    K[RWS_BUDGET_K]; /* these */
} rws_plan;

/* The seconds of the parts of a run. */
typedef struct {
    double setup, iteration, evaluation;
    double final; /* of the measurement after training, for one test datum */
} rws_cost;

/* Sets *out for runs like this one. */
typedef rws_status rws_price(void *context, const rws_sweep_run *run, rws_cost *out, rws_error *err);

typedef struct {
    double     hours;
    int        jobs; /* runs at a time */
    rws_price *price;
    void      *context;
} rws_budget;

/* The sweep's text, made smaller, which the caller frees; NULL without memory. If `rate_stays`, the changes of the
 * learning rate keep their iterations; otherwise these are multiplied by the share too. */
char *rws__plan_apply(const char *sweep, const rws_plan *plan, bool rate_stays);

/* The hours that the sweep's runs take, as many at a time as there are jobs. */
rws_status rws__budget_hours(const rws_budget *b, const char *sweep, const char *name, double *hours, rws_error *err)
    __attribute__((warn_unused_result));

/* The experiment within the budget. `full` and `middle` are its sweeps as they would run; middle may be NULL. The whole is
 * chosen if it fits; then a part of the full sweep with all iterations, if that loses least; then the middle one, longer or
 * shorter. *sweep and *what are the caller's to free: the sweep file, and a Markdown text of what is run and what is left
 * out. RWS_BAD_INPUT if nothing fits; RWS_NO_MEMORY. */
rws_status rws__budget_choose(const rws_budget *b, const rws_experiment *e, const char *full, const char *middle,
                              char **sweep, char **what, rws_error *err) __attribute__((warn_unused_result));

#endif
