/* sbn.c - sigmoid belief networks: WW and VIMCO with few and with thousands of particles; claims S1 to S3. */
#include "paper/compare.h"
#include "paper/panels.h"
#include "paper/paper.h"

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws_panels_three(q, "Sigmoid belief networks", methods, path, err);
}

static const rws_paper_figure figures[] = {
    {"sbn", "log evidence from a tenth of training on; final log evidence and KL(q || p) over the number of particles",
     draw,
     "Does WW learn faster, is VIMCO slightly better with few particles and equal with many, and has WW a much lower "
     "KL?",
     "S1 S2a S2b S3"},
    {0},
};

static void s1(const rws_query *q, rws_finding *f)
{
    rws_below_at_every_K(q, f, "vimco", "ww", "log_evidence", RWS_AT_TENTH, false);
}

/* Compares final evidences for K from `least` to `most`: WW below VIMCO plus `shift`, and the other way round if `both`. */
static void compare_ends(const rws_query *q, rws_finding *f, int least, int most, double shift, bool both)
{
    const rws_particles p = rws_query_particles(q);
    int                 n = 0;
    for (int k = 0; k < p.n; k++) {
        const rws_quantity ww = {"ww", p.K[k], "final_log_evidence"}, vimco = {"vimco", p.K[k], "final_log_evidence"};
        if (p.K[k] < least || p.K[k] > most) continue;
        const rws_compared c = rws_below(q, f, ww, shift, vimco), d = rws_below(q, f, vimco, shift, ww);
        const rws_verdict  verdict = both && d.verdict > c.verdict ? d.verdict : c.verdict;
        rws_finding_add(f, verdict, "K = %d: WW %.5g, VIMCO %.5g (p = %.2g)", p.K[k], c.a, c.b, c.p);
        n++;
    }
    if (n == 0) f->verdict = RWS_UNKNOWN;
}

static void s2_few(const rws_query *q, rws_finding *f)
{
    compare_ends(q, f, 2, 5, 0, false);
}

static void s2_many(const rws_query *q, rws_finding *f)
{
    compare_ends(q, f, 50, 1 << 30, 0.5, true);
}

static void s3(const rws_query *q, rws_finding *f)
{
    rws_below_at_every_K(q, f, "ww", "vimco", "final_kl", RWS_AT_END, true);
}

static const rws_claim claims[] = {
    {"S1", "WW learns faster than VIMCO: after a tenth of training its log evidence is higher at every K.", s1, true},
    {"S2a", "With up to 5 particles, VIMCO is slightly better than WW in final log evidence.", s2_few, true},
    {"S2b", "From 50 particles on, both are virtually the same in final log evidence (within 0.5 nats).", s2_many,
     true},
    {"S3", "WW ends with a much lower KL(q || p) than VIMCO at every K (the ratio is shown).", s3, true},
    {0},
};

static const char sweep[] = RWS_RUNS("sbn", "ww vimco", "2 5 10 50 100 500 1000 5000", "1-3", "1000000", "10000",
                                     "eval-particles 100\nlr 3e-4,500000:/3,800000:/3\nfinal 5000 10000\n");
static const char middle[] = RWS_RUNS("sbn", "ww vimco", "2 5", "1-3", "500000", "5000",
                                      "eval-particles 100\nlr 3e-4,250000:/3,400000:/3\nfinal 5000 1000\n")
    RWS_RUNS("sbn", "ww vimco", "50", "1", "500000", "5000",
             "eval-particles 100\nlr 3e-4,250000:/3,400000:/3\nfinal 5000 1000\n");
static const char quick[] =
    RWS_RUNS("sbn", "ww vimco", "2 5 10 50", "1", "3000", "100", "eval-particles 100\nfinal 200 200\n");

static const int            order[] = {5, 50, 2, 10, 100, 500, 1000, 5000, 0};
static const rws_result_key where[] = {{"model", "sbn"}, {0}};

const rws_experiment rws_experiment_sbn = {
    .name = "sbn",
    .help = "sigmoid belief networks: WW and VIMCO with few and many particles",
    .sweep = sweep,
    .quick = quick,
    .middle = middle,
    .order = order,
    .where = where,
    .variants = rws_vimco_variants,
    .figures = figures,
    .claims = claims,
};
