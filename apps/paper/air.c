/* air.c - attend, infer, repeat: WW and VIMCO by the number of particles; claims A1 to A5. */
#include "paper/air.h"
#include "paper/compare.h"
#include "paper/panels.h"

#include <math.h>
#include <stdlib.h>

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws__panels_three(q, "Attend, infer, repeat", methods, path, err);
}

const rws_paper_figure rws_air_figures[] = {
    {"air", "log evidence from a tenth of training on; final log evidence and KL(q || p) over the number of particles",
     draw,
     "Does training with VIMCO vary more; does the evidence of WW rise with K and that of VIMCO up to K = 10 only; has "
     "WW better guides?",
     "A1a A1b A2 A3 A4a A4b A5a A5b"},
    {0},
};

/* ---- claims: higher evidence and lower KL are better */

#define EVIDENCE "final_log_evidence"
#define STATEMENTS (const rws_statement[])

const rws_claim rws_air_claims[] = {
    {"A1a", "Training curves of VIMCO vary more than those of WW over time (second half, without the trend).",
     .statements = STATEMENTS{{"log_evidence", "ww", "vimco", .moment = RWS_WOBBLE, RWS_BELOW(1)}, {0}},
     .varies = true},
    {"A1b", "Training of VIMCO varies more than that of WW over seeds (distance from their median).",
     .statements = STATEMENTS{{EVIDENCE, "ww", "vimco", .moment = RWS_FROM_MEDIAN, RWS_BELOW(0)}, {0}}, .varies = true},
    {"A2", "WW: the final log evidence rises with K.",
     .statements = STATEMENTS{{EVIDENCE, "ww", .K = RWS_OVER_K, RWS_ABOVE(0)}, {0}}},
    {"A3", "VIMCO: the final log evidence rises up to K = 10, and no further.",
     .statements = STATEMENTS{{EVIDENCE, "vimco", .K = 5, .K_right = 2, RWS_ABOVE(0)},
                              {EVIDENCE, "vimco", .K = 10, .K_right = 5, RWS_ABOVE(0)},
                              {EVIDENCE, "vimco", .K = 20, .K_right = 10, RWS_BELOW(0)},
                              {0}},
     .varies = true},
    {"A4a", "At every K, WW has a lower final KL(q || p) than VIMCO.",
     .statements = STATEMENTS{{"final_kl", "ww", "vimco", RWS_BELOW(0)}, {0}}, .varies = true},
    {"A4b",
     "At every K, the final KL(q || p) of WW varies less over seeds than that of VIMCO (distance from the median).",
     .statements = STATEMENTS{{"final_kl", "ww", "vimco", .moment = RWS_FROM_MEDIAN, RWS_BELOW(0)}, {0}},
     .varies = true},
    {"A5a", "KL(q || p) grows for VIMCO from K = 10 to 20.",
     .statements = STATEMENTS{{"final_kl", "vimco", .K = 20, .K_right = 10, RWS_ABOVE(0)}, {0}}, .varies = true},
    {"A5b", "KL(q || p) falls for WW with K.",
     .statements = STATEMENTS{{"final_kl", "ww", .K = RWS_OVER_K, RWS_BELOW(0)}, {0}}},
    {0},
};

#define FULL(methods, more)                                          \
    RWS_RUNS("air", methods, "2 5 10 20", "1-3", "2000000", "10000", \
             "eval-particles 100\nfinal 5000 10000\nlr 1e-5,400000:/3,1000000:/3\n" more)

static const char sweep[] = FULL("ww vimco", "") FULL("vimco", "set vimco.vimco_air_ref 1\n");
static const char quick[] =
    RWS_RUNS("air", "ww vimco", "2 5 10 20", "1", "2000", "200", "eval-particles 100\nfinal 100 100\n");

static const rws_result_key where[] = {{"model", "air"}, {"air_gray", "0"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_air_ref", "0"}, {0}};
static const rws_query_own  reference[] = {{"vimco", "vimco_air_ref", "1"}, {0}};
static const rws_variant    variants[] = {{NULL, as_printed}, {"VIMCO as in the code", reference}, {0}};

const rws_experiment rws_experiment_air = {
    .name = "air",
    .help = "attend, infer, repeat: WW and VIMCO on images with several digits",
    .sweep = sweep,
    .quick = quick,
    .iterations = 2000000,
    .where = where,
    .variants = variants,
    .figures = rws_air_figures,
    .claims = rws_air_claims,
};
