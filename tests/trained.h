/* trained.h - what tests of trainers share: what should not fail does not, numbers are found by name, and gradients are
 * compared. */
#ifndef RWS_TESTS_TRAINED_H
#define RWS_TESTS_TRAINED_H

#include "support.h"

#include "train/inspect.h"

/* With a model of the test's own, or with the one that the configuration names if that is NULL. */
rws_trainer *trainer_for(const rws_config *c, const rws_model *model);

void steps(rws_trainer *t, int n);
void gradient_of(rws_trainer *t, uint64_t draw, float *gradient);
void evaluate(rws_trainer *t, rws_measures *m);

/* A metric of an evaluation, and of one that is made for it. */
double metric_of(const rws_trainer *t, const rws_measures *m, const char *name);
double metric(rws_trainer *t, const char *name);

rws_param *param_of(const rws_params *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* That n numbers, not all of them 0, differ by no more than `tolerance` of the largest: single ones may cancel. */
void assert_close(const float *a, const float *b, size_t n, double tolerance, const char *what);

/* That the first `end` numbers of the mean gradient over many draws are right, but for `slack`: by Student's t of each.
 * The sample is widened four and sixteen times before a t above 6 counts, which a right number has with probability
 * 2.5e-9. */
void assert_mean(const char *what, rws_trainer *t, const double *right, size_t end, uint64_t draws, double slack);

#endif
