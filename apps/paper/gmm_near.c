/* gmm_near.c - the Gaussian mixture from a uniform start: the appendix's figure and claim G10. */
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .scale = RWS_AXIS_LOG}},
        {"q_error", {.label = "q error", .scale = RWS_AXIS_LOG}},
        {"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}},
    };
    return rws__panels_grid(q, "Gaussian mixture, near start", rws_gmm_methods, rows, 3, path, err);
}

const rws_paper_figure rws_gmm_near_figures[] = {
    {"gmm-near", "p error, q error and spread of gradients from a uniform start", draw,
     "Does WS outperform all other methods; has VIMCO the lowest gradient variance, and does its guide worsen with K?",
     "G10a G10b G10c G10d"},
    {0},
};

/* ---- claims: lower is better */

#define OTHERS "concrete relax reinforce vimco ww dww"
#define STATEMENTS (const rws_statement[])

const rws_claim rws_gmm_near_claims[] = {
    {"G10a", "From the near start WS outperforms all other methods in learning the model: lowest p error at every K.",
     .statements = STATEMENTS{{"p_error", "ws", OTHERS, RWS_BELOW(1)}, {0}}, .varies = true},
    {"G10d", "From the near start WS outperforms all other methods in learning the guide: lowest q error at every K.",
     .statements = STATEMENTS{{"q_error", "ws", OTHERS, RWS_BELOW(1)}, {0}}, .varies = true},
    {"G10b", "From the near start VIMCO has the gradient estimator that spreads least.",
     .statements = STATEMENTS{{"grad_std", "vimco", "concrete relax reinforce ws ww dww", RWS_BELOW(1)}, {0}},
     .varies = true},
    {"G10c", "From the near start the guide of VIMCO worsens with K: its q error rises from K = 2 to 20.",
     .statements = STATEMENTS{{"q_error", "vimco", .K = 20, .K_right = 2, RWS_ABOVE(1)}, {0}}, .varies = true},
    {0},
};

static const char sweep[] = GMM_SWEEP("near", "", ""), quick[] = GMM_QUICK("near", "", "");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "near"}, {"gmm_hidden", "1"}, {0}};

const rws_experiment rws_experiment_gmm_near = {
    .name = "gmm-near",
    .help = "Gaussian mixture from a uniform start",
    .sweep = sweep,
    .quick = quick,
    .iterations = 100000,
    .where = where,
    .variants = rws_gmm_variants,
    .figures = rws_gmm_near_figures,
    .claims = rws_gmm_near_claims,
};
