/* probe.h - how long the parts of a run take: a few iterations and one evaluation of each kind of run.
 *
 *     configuration -> [probe] -> seconds -> budget
 *
 * Runs that differ in seed, iterations or rate are of one kind (RWS_SWEEP_PACE), which is measured once.
 */
#ifndef RWS_RWS_PROBE_H
#define RWS_RWS_PROBE_H

#include "paper/budget.h"

typedef struct rws_probes rws_probes;

rws_probes *rws__probes_new(void);
void        rws__probes_free(rws_probes *p);

/* An rws_price, whose context is an rws_probes. Fails as the training of the run would. */
rws_status rws__probe(void *context, const rws_sweep_run *run, rws_cost *out, rws_error *err);

/* The number of kinds that were measured, and the seconds that this took. */
int rws__probes_count(const rws_probes *p, double *seconds);

#endif
