/* sbn.c - sigmoid belief networks: WW and VIMCO with few and with thousands of particles; claims S1 to S3. */
#include "paper/compare.h"
#include "paper/panels.h"
#include "paper/paper.h"

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws__panels_three(q, "Sigmoid belief networks", methods, path, err);
}

static const rws_paper_figure figures[] = {
    {"sbn", "log evidence from a tenth of training on; final log evidence and KL(q || p) over the number of particles",
     draw,
     "Does WW learn faster, is VIMCO slightly better with few particles and equal with many, and has WW a much lower "
     "KL?",
     "S1 S2a S2b S3"},
    {0},
};

#define STATEMENTS (const rws_statement[])
#define SAME(K)                                                          \
    {                                                                    \
        "final_log_evidence", "ww", "vimco", K, .low = -0.5, .high = 0.5 \
    }

static const rws_claim claims[] = {
    {"S1", "WW learns faster than VIMCO: after a tenth of training its log evidence is higher at every K.",
     .statements = STATEMENTS{{"log_evidence", "ww", "vimco", .moment = RWS_AT_TENTH, RWS_ABOVE(0)}, {0}},
     .varies = true},
    {"S2a", "With up to 5 particles, VIMCO is slightly better than WW in final log evidence.",
     .statements = STATEMENTS{{"final_log_evidence", "vimco", "ww", 2, RWS_ABOVE(0)},
                              {"final_log_evidence", "vimco", "ww", 5, RWS_ABOVE(0)},
                              {0}},
     .varies = true},
    {"S2b", "From 50 particles on, both are virtually the same in final log evidence (within 0.5 nats).",
     .statements = STATEMENTS{SAME(50), SAME(100), SAME(500), SAME(1000), SAME(5000), {0}}, .varies = true},
    {"S3", "WW ends with a lower KL(q || p) than VIMCO at every K (the paper: much lower).",
     .statements = STATEMENTS{{"final_kl", "ww", "vimco", RWS_BELOW(0)}, {0}}, .varies = true},
    {0},
};

static const char sweep[] = RWS_RUNS("sbn", "ww vimco", "2 5 10 50 100 500 1000 5000", "1-3", "1000000", "10000",
                                     "eval-particles 100\nlr 3e-4,500000:/3,800000:/3\nfinal 5000 10000\n");
static const char quick[] =
    RWS_RUNS("sbn", "ww vimco", "2 5 10 50", "1", "3000", "100", "eval-particles 100\nfinal 200 200\n");

static const rws_result_key where[] = {{"model", "sbn"}, {0}};

const rws_experiment rws_experiment_sbn = {
    .name = "sbn",
    .help = "sigmoid belief networks: WW and VIMCO with few and many particles",
    .sweep = sweep,
    .quick = quick,
    .iterations = 1000000,
    .where = where,
    .variants = rws_vimco_variants,
    .figures = figures,
    .claims = claims,
};
