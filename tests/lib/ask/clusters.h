/* clusters.h - a model whose posterior the guide has exactly, or spoiled in a known way.
 *
 *     c ~ (0.2, 0.5, 0.3), z ~ N(mean of c, 1), x ~ N(z, 1); site w is visited c times, w ~ N(0, 1), and does not touch x
 */
#ifndef RWS_TESTS_CLUSTERS_H
#define RWS_TESTS_CLUSTERS_H

#include "trained.h"

/* What is wrong with the guide of every model that is asked from now on; {1, 0}: nothing, it is the posterior. */
typedef struct {
    float temperature; /* log q(c | x) is divided by it, and the standard deviation of z multiplied */
    float dropped;     /* subtracted from the logit of the last cluster */
} spoiled;

extern spoiled clusters_guide;

extern const rws_model clusters_model;

/* A posterior of the model, whose parameter nobody needs. */
rws_posterior *clusters_posterior(void);

/* log p(x). */
double clusters_log_evidence(double x);

#endif
