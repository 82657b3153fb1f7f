#include "rws/probe.h"

#include "base/clock.h"
#include "base/error.h"
#include "rws/output.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 0.25 /* seconds of iterations that are timed */

typedef struct {
    char    *name; /* of rws_sweep_kind */
    rws_cost cost;
} kind;

struct rws_probes {
    kind  *kinds;
    int    n;
    double seconds;
};

rws_probes *rws__probes_new(void)
{
    rws_probes *p = calloc(1, sizeof *p);
    rws__need_memory(p != NULL, "the times of runs");
    return p;
}

void rws__probes_free(rws_probes *p)
{
    if (!p) return;
    for (int i = 0; i < p->n; i++) free(p->kinds[i].name);
    free(p->kinds);
    free(p);
}

int rws__probes_count(const rws_probes *p, double *seconds)
{
    *seconds = p->seconds;
    return p->n;
}

/* The seconds of an iteration; the first one, in which memory grows, is not timed. */
static rws_status time_iterations(rws_trainer *t, double *each, rws_error *err)
{
    uint64_t n = 0;
    RWS_TRY(rws_trainer_step(t, err));
    const double start = rws__clock_now();
    double       now = start;
    for (; n == 0 || now - start < LEAST; n++, now = rws__clock_now()) RWS_TRY(rws_trainer_step(t, err));
    *each = (now - start) / (double)n;
    return RWS_OK;
}

static rws_status measure(const rws_sweep_run *run, rws_cost *out, rws_error *err)
{
    rws_trainer *t;
    rws_measures measures;
    const double start = rws__clock_now();
    RWS_TRY(rws_trainer_new(&run->config, NULL, &t, err));
    out->setup = rws__clock_now() - start;
    rws_status   status = time_iterations(t, &out->iteration, err);
    const double before = rws__clock_now();
    if (status == RWS_OK) status = rws_trainer_evaluate(t, &measures, err);
    out->evaluation = rws__clock_now() - before;
    const rws_config *c = rws_trainer_config(t);
    out->final = out->evaluation / c->n_test * run->final_particles / c->eval_particles;
    rws_trainer_free(t);
    return status;
}

rws_status rws__probe(void *context, const rws_sweep_run *run, rws_cost *out, rws_error *err)
{
    rws_probes  *p = context;
    char        *name = rws_sweep_kind(run, RWS_SWEEP_PACE);
    const double start = rws__clock_now();
    rws_status   status = RWS_OK;
    int          i = 0;
    rws__need_memory(name != NULL, "the times of runs");
    while (i < p->n && strcmp(p->kinds[i].name, name) != 0) i++;
    if (i == p->n) {
        kind *more = realloc(p->kinds, (size_t)(p->n + 1) * sizeof *more);
        rws__need_memory(more != NULL, "the times of runs");
        p->kinds = more;
        p->kinds[i] = (kind){.name = name};
        status = measure(run, &p->kinds[i].cost, err);
        if (status == RWS_OK) p->n++;
        else free(name);
        p->seconds += rws__clock_now() - start;
    } else free(name);
    if (status == RWS_OK) *out = p->kinds[i].cost;
    return status;
}
