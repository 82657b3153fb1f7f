/* gmm_snr.c - the signal-to-noise ratio of the gradients of theta and phi over the number of particles, which is the paper's
 * explanation of why tighter bounds impair the guide (section 2, after Rainforth et al. 2018). */
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>

enum { FEW = 2, MANY = 100 };

static const char *const methods[] = {"relax", "reinforce", "vimco", "ws", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}},
        {"snr_phi", {.label = "signal to noise, φ", .scale = RWS_AXIS_LOG}},
        {"snr_theta", {.label = "signal to noise, θ", .scale = RWS_AXIS_LOG}},
    };
    return rws_panels_over_particles(q, "Gaussian mixture, near start", methods, rows, 3, path, err);
}

static const rws_paper_figure figures[] = {
    {"gmm-snr",
     "spread and signal-to-noise ratio of the gradients over the number of particles, at the last evaluation; the "
     "claims "
     "take the median over all evaluations",
     draw,
     "Does the signal-to-noise ratio of φ's gradient fall with K for IWAE, and rise for WS and WW, while θ's rises for "
     "all?",
     "N1 N2 N3 N4"},
    {0},
};

static rws_quantity typical(const char *method, int K, const char *metric)
{
    return (rws_quantity){method, K, metric, RWS_TYPICAL};
}

/* Whether a ratio falls, or rises, from FEW to MANY particles, and the power of K that this is. */
static void moves(const rws_query *q, rws_finding *f, const char *method, const char *metric, bool falls)
{
    const rws_quantity few = typical(method, FEW, metric), many = typical(method, MANY, metric);
    const rws_compared c = falls ? rws_less(q, f, many, 1, few) : rws_less(q, f, few, 1, many);
    const double       from = falls ? c.b : c.a, to = falls ? c.a : c.b;
    rws_finding_add(f, c.verdict, "%s: %.3g with K = %d, %.3g with %d, like K^%.2f (p = %.2g)", method, from, FEW, to,
                    MANY, log(to / from) / log((double)MANY / FEW), c.p);
}

static void n1(const rws_query *q, rws_finding *f)
{
    moves(q, f, "reinforce", "snr_phi", true);
    moves(q, f, "relax", "snr_phi", true);
    moves(q, f, "vimco", "snr_phi", true);
}

static void n2(const rws_query *q, rws_finding *f)
{
    for (int m = 0; methods[m]; m++) moves(q, f, methods[m], "snr_theta", false);
}

static void n3(const rws_query *q, rws_finding *f)
{
    moves(q, f, "ws", "snr_phi", false);
    moves(q, f, "ww", "snr_phi", false);
}

static void n4(const rws_query *q, rws_finding *f)
{
    moves(q, f, "ws", "grad_std", true);
    moves(q, f, "ww", "grad_std", true);
}

static const rws_claim claims[] = {
    {"N1", "The signal-to-noise ratio of φ's gradient falls with K for REINFORCE, RELAX and VIMCO (like K^-0.5).", n1,
     false},
    {"N2", "The signal-to-noise ratio of θ's gradient rises with K for all methods (like K^0.5).", n2, false},
    {"N3", "More particles lower the noise of φ's gradient for WS and WW: its signal-to-noise ratio rises.", n3, false},
    {"N4", "The estimators of φ's gradient of WS and WW spread less with more particles (like K^-0.5).", n4, false},
    {0},
};

#define RUNS(seeds, iterations, every)                                                           \
    RWS_RUNS("gmm", "relax reinforce vimco ws ww", "2 5 10 20 50 100", seeds, iterations, every, \
             "set start near\nset gmm_hidden 2\nset theta_mult 0.5\nset grad_snr 1\n")

static const char sweep[] = RUNS("1-10", "2000", "100"), quick[] = RUNS("1-3", "400", "40");

static const int            order[] = {FEW, MANY, 20, 50, 5, 10, 0};
static const rws_result_key where[] = {{"model", "gmm"}, {"grad_snr", "1"}, {0}};
static const rws_query_own  own[] = {{"vimco", "vimco_no_logK", "0"}, {"relax", "relax_control", "net"}, {0}};
static const rws_variant    variants[] = {{NULL, own}, {0}};

const rws_experiment rws_experiment_gmm_snr = {
    .name = "gmm-snr",
    .help = "Gaussian mixture: noise of the gradients over the number of particles",
    .code = true,
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .order = order,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
