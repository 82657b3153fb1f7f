/* gmm_near.c - the Gaussian mixture from a uniform start: the appendix's figure and claim G10. */
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
    return rws_panels_grid(q, "Gaussian mixture, near start", rws_gmm_methods, rows, 3, path, err);
}

static const rws_paper_figure figures[] = {
    {"gmm-near", "p error, q error and spread of gradients from a uniform start", draw},
    {0},
};

static void g10(const rws_query *q, rws_finding *f)
{
    static const char *const errors[] = {"p_error", "q_error"}, *const error_names[] = {"p", "q"};
    for (int k = 0; k < GMM_K; k++) {
        for (int e = 0; e < 2; e++) {
            double v[GMM_METHODS];
            int    other = 0;
            for (int m = 0; m < GMM_METHODS; m++)
                v[m] = rws_query_final(q, f, rws_gmm_methods[m], rws_gmm_particles[k], errors[e]);
            for (int m = 1; m < GMM_METHODS; m++)
                if (m != GMM_WS && v[m] < v[other]) other = m;
            rws_finding_add(f, v[GMM_WS] < v[other], "K = %d, %s error: WS %.3g, next %s %.3g, VIMCO %.3g",
                            rws_gmm_particles[k], error_names[e], v[GMM_WS], rws_gmm_names[other], v[other],
                            v[GMM_VIMCO]);
        }
        double spread[GMM_METHODS];
        int    least = 0;
        for (int m = 0; m < GMM_METHODS; m++) {
            spread[m] = rws_query_typical(q, f, rws_gmm_methods[m], rws_gmm_particles[k], "grad_std");
            if (spread[m] < spread[least]) least = m;
        }
        rws_finding_add(f, least == GMM_VIMCO, "spread: VIMCO %.2g, least %s %.2g", spread[GMM_VIMCO],
                        rws_gmm_names[least], spread[least]);
    }
    const double few = rws_query_final(q, f, "vimco", 2, "q_error"),
                 many = rws_query_final(q, f, "vimco", 20, "q_error");
    rws_finding_add(f, many > few, "q error of VIMCO: %.3g with K = 2, %.3g with 20", few, many);
}

static const rws_claim claims[] = {
    {"G10",
     "From the near start WS has the lowest p and q error for all K; VIMCO has the least spread of gradients and is "
     "yet worse than WS; VIMCO's q error grows from K = 2 to 20.",
     g10, true},
    {0},
};

static const char sweep[] = GMM_SWEEP("near", "", ""), quick[] = GMM_QUICK("near", "", "");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "near"}, {0}};

const rws_experiment rws_experiment_gmm_near = {
    .name = "gmm-near",
    .help = "Gaussian mixture from a uniform start",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = rws_gmm_variants,
    .figures = figures,
    .claims = claims,
};
