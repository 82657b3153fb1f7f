/* sbn.c - sigmoid belief networks: WW and VIMCO with few and with thousands of particles; claims S1 to S3. */
#include "base/error.h"
#include "paper/panels.h"
#include "paper/paper.h"

#include <math.h>
#include <stdlib.h>

static const char *const methods[] = {"vimco", "ww", NULL};

enum { MOST_K = 16 };

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws_panels_three(q, "Sigmoid belief networks", methods, "log_evidence", "final_log_evidence", "final_kl",
                            path, err);
}

static const rws_paper_figure figures[] = {
    {"sbn", "log evidence over the iterations; final log evidence and KL(q || p) over the number of particles", draw},
    {0},
};

/* The median over seeds after a tenth of the evaluations. */
static double early(const rws_query *q, const char *method, int K)
{
    const rws_result **runs = calloc((size_t)q->results->n + 1, sizeof *runs);
    RWS_CHECK(runs);
    rws_gathered g;
    rws_gather(runs, rws_query_runs(q, method, K, runs), "log_evidence", RWS_X_ITERATION, &g);
    const double value = g.n ? g.median[g.n / 10] : NAN;
    rws_gathered_release(&g);
    free(runs);
    return value;
}

static void s1(const rws_query *q, rws_finding *f)
{
    int       K[MOST_K];
    const int n_K = rws_query_particles(q, K, MOST_K);
    for (int k = 0; k < n_K; k++) {
        const double ww = early(q, "ww", K[k]), vimco = early(q, "vimco", K[k]);
        rws_query_count(q, f, "ww", K[k]);
        rws_query_count(q, f, "vimco", K[k]);
        rws_finding_add(f, ww > vimco, "K = %d: WW %.5g, VIMCO %.5g", K[k], ww, vimco);
    }
}

/* Few: up to 5. Many: from 50 on; the same within half a nat or the quartiles. */
static void s2(const rws_query *q, rws_finding *f)
{
    int       K[MOST_K];
    const int n_K = rws_query_particles(q, K, MOST_K);
    for (int k = 0; k < n_K; k++) {
        const rws_quartiles ww = rws_query_spread(q, f, "ww", K[k], "final_log_evidence");
        const rws_quartiles vimco = rws_query_spread(q, f, "vimco", K[k], "final_log_evidence");
        const double        apart = fabs(ww.median - vimco.median);
        const bool          same = apart <= fmax(0.5, fmax(ww.high - ww.low, vimco.high - vimco.low));
        rws_finding_add(f, K[k] <= 5 ? vimco.median > ww.median : K[k] < 50 || same, "K = %d: WW %.5g, VIMCO %.5g",
                        K[k], ww.median, vimco.median);
    }
}

static void s3(const rws_query *q, rws_finding *f)
{
    int       K[MOST_K];
    const int n_K = rws_query_particles(q, K, MOST_K);
    for (int k = 0; k < n_K; k++) {
        const double ww = rws_query_final(q, f, "ww", K[k], "final_kl");
        const double vimco = rws_query_final(q, f, "vimco", K[k], "final_kl");
        rws_finding_add(f, 2 * ww <= vimco, "K = %d: WW %.4g, VIMCO %.4g", K[k], ww, vimco);
    }
}

static const rws_claim claims[] = {
    {"S1", "WW learns faster than VIMCO early: after a tenth of training its log evidence is higher at every K.", s1,
     true},
    {"S2",
     "Final log evidence: VIMCO is better with up to 5 particles; from 50 on both are equal (within 0.5 nats or the "
     "spread over seeds).",
     s2, true},
    {"S3", "Final KL(q || p): that of WW is at most half that of VIMCO, at every K.", s3, true},
    {0},
};

#define RUNS(particles, seeds, iterations, every, final) \
    "model      sbn\n"                                   \
    "methods    ww vimco\n"                              \
    "particles  " particles "\n"                         \
    "seeds      " seeds "\n"                             \
    "iterations " iterations "\n"                        \
    "eval-every " every "\n"                             \
    "final      " final "\n"

static const char sweep[] = RUNS("2 5 10 50 100 500 1000 5000", "1-3", "1000000", "10000", "5000 10000");
static const char quick[] = RUNS("2 5 10 50", "1", "3000", "100", "200 200");

static const rws_result_key where[] = {{"model", "sbn"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_no_logK", "0"}, {0}};
static const rws_variant    variants[] = {{NULL, as_printed}, {0}};

const rws_experiment rws_experiment_sbn = {
    .name = "sbn",
    .help = "sigmoid belief networks: WW and VIMCO with few and many particles",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
