/* sbn.c - sigmoid belief networks: WW and VIMCO with few and with thousands of particles; claims S1 to S3. */
#include "paper/panels.h"
#include "paper/paper.h"

#include <math.h>

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws_panels_three(q, "Sigmoid belief networks", methods, path, err);
}

static const rws_paper_figure figures[] = {
    {"sbn", "log evidence over the iterations; final log evidence and KL(q || p) over the number of particles", draw},
    {0},
};

static void s1(const rws_query *q, rws_finding *f)
{
    const rws_particles p = rws_query_particles(q);
    for (int k = 0; k < p.n; k++) {
        const double ww = rws_query_after(q, f, "ww", p.K[k], "log_evidence", 0.1);
        const double vimco = rws_query_after(q, f, "vimco", p.K[k], "log_evidence", 0.1);
        rws_finding_add(f, ww > vimco, "K = %d: WW %.5g, VIMCO %.5g", p.K[k], ww, vimco);
    }
}

/* Few particles: up to 5. Many: from 50 on, where the values are equal within half a nat or the quartiles. */
static void s2(const rws_query *q, rws_finding *f)
{
    const rws_particles p = rws_query_particles(q);
    for (int k = 0; k < p.n; k++) {
        const rws_quartiles ww = rws_query_spread(q, f, "ww", p.K[k], "final_log_evidence");
        const rws_quartiles vimco = rws_query_spread(q, f, "vimco", p.K[k], "final_log_evidence");
        const double        apart = fabs(ww.median - vimco.median);
        const bool          same = apart <= fmax(0.5, fmax(ww.high - ww.low, vimco.high - vimco.low));
        rws_finding_add(f, p.K[k] <= 5 ? vimco.median > ww.median : p.K[k] < 50 || same, "K = %d: WW %.5g, VIMCO %.5g",
                        p.K[k], ww.median, vimco.median);
    }
}

static void s3(const rws_query *q, rws_finding *f)
{
    const rws_particles p = rws_query_particles(q);
    for (int k = 0; k < p.n; k++) {
        const double ww = rws_query_final(q, f, "ww", p.K[k], "final_kl");
        const double vimco = rws_query_final(q, f, "vimco", p.K[k], "final_kl");
        rws_finding_add(f, 2 * ww <= vimco, "K = %d: WW %.4g, VIMCO %.4g", p.K[k], ww, vimco);
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

static const char sweep[] =
    RWS_RUNS("sbn", "ww vimco", "2 5 10 50 100 500 1000 5000", "1-3", "1000000", "10000", "final 5000 10000\n");
static const char quick[] = RWS_RUNS("sbn", "ww vimco", "2 5 10 50", "1", "3000", "100", "final 200 200\n");

static const rws_result_key where[] = {{"model", "sbn"}, {0}};

const rws_experiment rws_experiment_sbn = {
    .name = "sbn",
    .help = "sigmoid belief networks: WW and VIMCO with few and many particles",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = rws_vimco_variants,
    .figures = figures,
    .claims = claims,
};
