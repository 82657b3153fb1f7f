/* gmm_snr.c - the signal-to-noise ratio of the gradients of theta and phi over the number of particles, which is the paper's
 * explanation of why tighter bounds impair the guide (section 2, after Rainforth et al. 2018). */
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>

static const char *const methods[] = {"relax", "reinforce", "vimco", "ws", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}},
        {"snr_phi", {.label = "signal to noise, φ", .scale = RWS_AXIS_LOG}},
        {"snr_theta", {.label = "signal to noise, θ", .scale = RWS_AXIS_LOG}, "ww"},
    };
    return rws__panels_over_particles(q, "Gaussian mixture, near start", methods, rows, 3, path, err);
}

static const rws_paper_figure figures[] = {
    {"gmm-snr",
     "spread and signal-to-noise ratio of the gradients over the number of particles, at one trained state; θ has one "
     "estimator",
     draw,
     "Does the signal-to-noise ratio of φ's gradient fall with K for IWAE, and rise for WS and WW, while θ's rises for "
     "all?",
     "N1 N2 N3 N4"},
    {0},
};

/* The power of K at the start and at the trained state. */
#define POWERS(metric, methods, ...)                                                \
    (const rws_statement[])                                                         \
    {                                                                               \
        {metric, methods, .K = RWS_OVER_K, .moment = RWS_AT_START, __VA_ARGS__},    \
            {metric, methods, .K = RWS_OVER_K, .moment = RWS_AT_LAST, __VA_ARGS__}, \
        {                                                                           \
            0                                                                       \
        }                                                                           \
    }

static const rws_claim claims[] = {
    {"N1", "The signal-to-noise ratio of φ's gradient falls with K for REINFORCE, RELAX and VIMCO (like K^-0.5).",
     .statements = POWERS("snr_phi", "reinforce relax vimco", RWS_BELOW(0))},
    {"N2", "The signal-to-noise ratio of θ's gradient, one estimator for all methods, rises with K (like K^0.5).",
     .statements = POWERS("snr_theta", "ww", RWS_ABOVE(0))},
    {"N3", "More particles lower the noise of φ's gradient for WS and WW: its signal-to-noise ratio rises.",
     .statements = POWERS("snr_phi", "ws ww", RWS_ABOVE(0))},
    {"N4", "The estimators of φ's gradient of WS and WW spread less with more particles (like K^-0.5).",
     .statements = POWERS("grad_std", "ws ww", RWS_BELOW(0))},
    {0},
};

#define RUNS(seeds, iterations, every)                                                           \
    RWS_RUNS("gmm", "relax reinforce vimco ws ww", "2 5 10 20 50 100", seeds, iterations, every, \
             "set start near\nset gmm_hidden 2\nset theta_mult 0.5\nset grad_snr 300\n")

static const char sweep[] = RUNS("1-5", "2000", "2000"), quick[] = RUNS("1-3", "400", "400");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "near"}, {0}};
static const rws_query_own  own[] = {{"vimco", "vimco_no_logK", "0"}, {"relax", "relax_control", "net"}, {0}};
static const rws_variant    variants[] = {{NULL, own}, {0}};

const rws_experiment rws_experiment_gmm_snr = {
    .name = "gmm-snr",
    .help = "Gaussian mixture: noise of the gradients over the number of particles",
    .code = true,
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
