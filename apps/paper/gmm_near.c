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
    return rws_panels_grid(q, "Gaussian mixture, near start", rws_gmm_methods, rows, 3, path, err);
}

const rws_paper_figure rws_gmm_near_figures[] = {
    {"gmm-near", "p error, q error and spread of gradients from a uniform start", draw,
     "Does WS outperform all other methods; has VIMCO the lowest gradient variance, and does its guide worsen with K?",
     "G10a G10b G10c G10d"},
    {0},
};

/* ---- claims: lower is better */

/* WS against the best of the others, for every K. */
static void best_of_all(const rws_query *q, rws_finding *f, const char *metric)
{
    for (int k = 0; k < GMM_K; k++) {
        const int K = rws_gmm_particles[k];
        int       next = GMM_CONCRETE;
        double    v[GMM_METHODS];
        for (int m = 0; m < GMM_METHODS; m++) {
            v[m] = rws_quantity_median(q, (rws_quantity){rws_gmm_methods[m], K, metric});
            if (m != GMM_WS && (isnan(v[m]) || v[m] < v[next]))
                next = m; /* a method without runs: not judged without it */
        }
        const rws_compared c =
            rws_less(q, f, (rws_quantity){"ws", K, metric}, 1, (rws_quantity){rws_gmm_methods[next], K, metric});
        rws_finding_add(f, c.verdict, "K = %d: WS %.3g, next %s %.3g (p = %.2g)", K, c.a, rws_gmm_names[next], c.b,
                        c.p);
    }
}

static void g10_p(const rws_query *q, rws_finding *f)
{
    best_of_all(q, f, "p_error");
}

static void g10_q(const rws_query *q, rws_finding *f)
{
    best_of_all(q, f, "q_error");
}

static void g10_spread(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++)
        for (int m = 0; m < GMM_METHODS; m++) {
            const int          K = rws_gmm_particles[k];
            const rws_quantity a = {"vimco", K, "grad_std", RWS_TYPICAL},
                               b = {rws_gmm_methods[m], K, "grad_std", RWS_TYPICAL};
            if (m == GMM_VIMCO) continue;
            const rws_compared c = rws_less(q, f, a, 1, b);
            if (c.verdict != RWS_HOLDS || m == GMM_WS)
                rws_finding_add(f, c.verdict, "K = %d: VIMCO %.2g, %s %.2g", K, c.a, rws_gmm_names[m], c.b);
        }
}

static void g10_worse(const rws_query *q, rws_finding *f)
{
    const rws_compared c =
        rws_less(q, f, (rws_quantity){"vimco", 2, "q_error"}, 1, (rws_quantity){"vimco", 20, "q_error"});
    rws_finding_add(f, c.verdict, "q error of VIMCO: %.3g with K = 2, %.3g with 20 (p = %.2g)", c.a, c.b, c.p);
}

const rws_claim rws_gmm_near_claims[] = {
    {"G10a", "From the near start WS outperforms all other methods in learning the model: lowest p error at every K.",
     g10_p, true},
    {"G10d", "From the near start WS outperforms all other methods in learning the guide: lowest q error at every K.",
     g10_q, true},
    {"G10b", "From the near start VIMCO has the gradient estimator that spreads least.", g10_spread, true},
    {"G10c", "From the near start the guide of VIMCO worsens with K: its q error rises from K = 2 to 20.", g10_worse,
     true},
    {0},
};

static const char sweep[] = GMM_SWEEP("near", "", ""), quick[] = GMM_QUICK("near", "", "");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "near"}, {"gmm_hidden", "1"}, {0}};

const rws_experiment rws_experiment_gmm_near = {
    .name = "gmm-near",
    .help = "Gaussian mixture from a uniform start",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .order = rws_gmm_order,
    .variants = rws_gmm_variants,
    .figures = rws_gmm_near_figures,
    .claims = rws_gmm_near_claims,
};
