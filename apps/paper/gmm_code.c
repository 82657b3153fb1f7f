/* gmm_code.c - the Gaussian mixture, from both starts, with the settings of the authors' code where they differ from
 * the paper: two hidden layers, softmax(theta / 2), Concrete's temperature down to 1, VIMCO without its log K. */
#include "paper/gmm.h"

#define ALL "set gmm_hidden 2\nset theta_mult 0.5\n"
#define CONCRETE "set concrete.tau_end 1\n"
#define DELTAS(seeds) GMM_RUNS("far", "dww", "2", seeds, ALL "set dww.delta 0.05 0.1 0.4\n")

static const char sweep[] = GMM_SWEEP("far", ALL, CONCRETE) DELTAS("1-10"),
                  quick[] = GMM_QUICK("far", ALL, CONCRETE) DELTAS("1-3");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "far"}, {"gmm_hidden", "2"}, {0}};
static const rws_query_own  code[] = {{"vimco", "vimco_no_logK", "1"}, {"dww", "delta", "0.2"}, {0}};
static const rws_query_own  with_logK[] = {{"vimco", "vimco_no_logK", "0"}, {"dww", "delta", "0.2"}, {0}};
static const rws_variant    variants[] = {{NULL, code}, {"VIMCO with log K", with_logK}, {0}};

const rws_experiment rws_experiment_gmm_code = {
    .name = "gmm-code",
    .help = "the same with the settings of the authors' code",
    .code = true,
    .sweep = sweep,
    .quick = quick,
    .iterations = 100000,
    .where = where,
    .variants = variants,
    .figures = rws_gmm_figures,
    .claims = rws_gmm_claims,
};

static const char near_sweep[] = GMM_SWEEP("near", ALL, CONCRETE), near_quick[] = GMM_QUICK("near", ALL, CONCRETE);

static const rws_result_key near_where[] = {{"model", "gmm"}, {"start", "near"}, {"gmm_hidden", "2"}, {0}};

const rws_experiment rws_experiment_gmm_near_code = {
    .name = "gmm-near-code",
    .help = "from a uniform start, with the settings of the authors' code",
    .code = true,
    .sweep = near_sweep,
    .quick = near_quick,
    .iterations = 100000,
    .where = near_where,
    .variants = variants,
    .figures = rws_gmm_near_figures,
    .claims = rws_gmm_near_claims,
};
