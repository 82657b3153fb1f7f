/* air_code.c - attend, infer, repeat as in the authors' code: grey images under the Bernoulli likelihood, WW with a baseline of
 * 1 / K, VIMCO with the signal of one particle, a penalty on the squares of all parameters. */
#include "paper/air.h"

#define RUNS(particles, seeds, iterations, every, final)                                                    \
    RWS_RUNS("air", "ww vimco", particles, seeds, iterations, every,                                        \
             "eval-particles 100\nfinal " final "\nlr 1e-5,400000:/3,1000000:/3\nl2 1e-5\nset air_gray 1\n" \
             "set ww.ww_baseline 1\nset vimco.vimco_air_ref 1\n")

static const char sweep[] = RUNS("2 5 10 20", "1-3", "2000000", "10000", "5000 10000");
static const char quick[] = RUNS("5 20", "1", "2000", "200", "100 100");

static const rws_result_key where[] = {{"model", "air"}, {"air_gray", "1"}, {0}};
static const rws_query_own  own[] = {{"ww", "ww_baseline", "1"}, {"vimco", "vimco_air_ref", "1"}, {0}};
static const rws_variant    variants[] = {{NULL, own}, {0}};

const rws_experiment rws_experiment_air_code = {
    .name = "air-code",
    .help = "the same as in the authors' code: grey images, a baseline for WW, a penalty",
    .code = true,
    .sweep = sweep,
    .quick = quick,
    .iterations = 2000000,
    .where = where,
    .variants = variants,
    .figures = rws_air_figures,
    .claims = rws_air_claims,
};
