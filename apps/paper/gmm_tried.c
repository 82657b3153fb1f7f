/* gmm_tried.c - what the authors tried on the Gaussian mixture and left out of their figures: REBAR and the three control
 * variates of RELAX, the relaxations of DVAE, other temperatures of Concrete, wake-wake-sleep; and MuProp. */
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>
#include <string.h>

enum { K = 5 };

static const char *const errors[] = {"p_error", "q_error"};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    static const char *const    methods[] = {"concrete", "dvae", "rebar", "relax", "muprop", "reinforce",
                                             "vimco",    "ws",   "ww",    "wws",   NULL};
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .scale = RWS_AXIS_LOG}},
        {"q_error", {.label = "q error", .scale = RWS_AXIS_LOG}},
        {"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}},
    };
    return rws_panels_grid(q, "Gaussian mixture, far start: what was tried", methods, rows, 3, path, err);
}

static const rws_paper_figure figures[] = {
    {"gmm-tried", "methods that the paper tried and did not plot, beside those that it did", draw,
     "Are DVAE's relaxations worse than all others, is RELAX best with the network alone, Concrete with 0.5, and WWS "
     "no better than WW or WS?",
     "G12 G13 G14 G15"},
    {0},
};

/* ---- claims: lower is better */

/* Each smoothing against the worst of the other methods. */
static void g12(const rws_query *q, rws_finding *f)
{
    static const char *const others[] = {"concrete", "relax", "reinforce", "vimco", "ws",
                                         "ww",       "rebar", "muprop",    "wws"};
    static const char *const smoothings[] = {"spike", "exponential", "power"};
    for (int e = 0; e < 2; e++) {
        const char *worst = NULL;
        double      most = -INFINITY;
        for (size_t m = 0; m < sizeof others / sizeof *others; m++) {
            const double v = rws_quantity_median(q, (rws_quantity){others[m], K, errors[e]});
            if (!worst || v > most || isnan(v)) worst = others[m], most = v;
            if (isnan(v)) break; /* without the runs of a method nothing can be said */
        }
        for (int s = 0; s < 3; s++) {
            const rws_quantity dvae = {"dvae", K, errors[e], .key = "smoothing", .value = smoothings[s]};
            const rws_compared c = rws_less(q, f, (rws_quantity){worst, K, errors[e]}, 1, dvae);
            rws_finding_add(f, c.verdict, "%c error: DVAE (%s) %.3g, worst of the others %s %.3g (p = %.2g)",
                            errors[e][0], smoothings[s], c.b, worst, c.a, c.p);
        }
    }
}

static void g13(const rws_query *q, rws_finding *f)
{
    static const char *const others[] = {"rebar", "sum"};
    const rws_quantity       net[] = {{"relax", K, "p_error", .key = "relax_control", .value = "net"},
                                      {"relax", K, "q_error", .key = "relax_control", .value = "net"}};
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < 2; i++) {
            const rws_quantity other = {"relax", K, errors[e], .key = "relax_control", .value = others[i]};
            const rws_compared c = rws_less(q, f, net[e], 1, other);
            rws_finding_add(f, c.verdict, "%c error: network %.3g, %s %.3g (p = %.2g)", errors[e][0], c.a, others[i],
                            c.b, c.p);
        }
}

static void g14(const rws_query *q, rws_finding *f)
{
    static const char *const others[] = {"0.1", "1", "2"};
    for (int i = 0; i < 3; i++) {
        const rws_quantity half = {"concrete", K, "q_error", .key = "tau_end", .value = "0.5"};
        const rws_quantity other = {"concrete", K, "q_error", .key = "tau_end", .value = others[i]};
        const rws_compared c = rws_less(q, f, half, 1, other);
        rws_finding_add(f, c.verdict, "q error: %.3g down to 0.5, %.3g down to %s (p = %.2g)", c.a, c.b, others[i],
                        c.p);
    }
}

/* Minor: not below four fifths of the better of WW and WS. */
static void g15(const rws_query *q, rws_finding *f)
{
    for (int e = 0; e < 2; e++) {
        const double       ww = rws_quantity_median(q, (rws_quantity){"ww", K, errors[e]});
        const double       ws = rws_quantity_median(q, (rws_quantity){"ws", K, errors[e]});
        const char        *better = isnan(ww) || ww < ws ? "ww" : "ws";
        const rws_compared c =
            rws_less(q, f, (rws_quantity){better, K, errors[e]}, 1 / 0.8, (rws_quantity){"wws", K, errors[e]});
        rws_finding_add(f, c.verdict, "%c error: WWS %.3g, %s %.3g (p = %.2g)", errors[e][0], c.b, better, c.a, c.p);
    }
}

static const rws_claim claims[] = {
    {"G12", "The relaxations of DVAE perform worse than any of the alternatives (the paper: considerably).", g12,
     false},
    {"G13", "Of RELAX's control variates, the network alone leads to the best training.", g13, false},
    {"G14", "Concrete is best with the terminal temperature 0.5: lower ones do not train, higher ones are worse.", g14,
     false},
    {"G15", "Wake-wake-sleep yields only minor improvements over the better of WW and WS (less than a fifth).", g15,
     false},
    {0},
};

/* ---- runs */

#define ALL "set start far\nset gmm_hidden 2\nset theta_mult 0.5\n"
#define RUNS(methods, seeds, iterations, every, more) RWS_RUNS("gmm", methods, "5", seeds, iterations, every, ALL more)
#define SWEEP(seeds, iterations, every)                                                \
    RUNS("reinforce vimco ws ww wws rebar muprop", seeds, iterations, every, "")       \
    RUNS("relax", seeds, iterations, every, "set relax.relax_control net rebar sum\n") \
    RUNS("concrete", seeds, iterations, every, "set concrete.tau_end 0.1 0.5 1 2\n")   \
    RUNS("dvae", seeds, iterations, every, "set dvae.smoothing spike exponential power\n")

static const char sweep[] = SWEEP("1-5", "100000", "1000"), quick[] = SWEEP("1", "5000", "250");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "far"}, {"gmm_hidden", "2"}, {0}};
static const rws_query_own  own[] = {{"vimco", "vimco_no_logK", "0"},
                                     {"relax", "relax_control", "net"},
                                     {"concrete", "tau_end", "0.5"},
                                     {"dvae", "smoothing", "exponential"},
                                     {0}};
static const rws_variant    variants[] = {{NULL, own}, {0}};

const rws_experiment rws_experiment_gmm_tried = {
    .name = "gmm-tried",
    .help = "Gaussian mixture: the methods that the paper tried and did not plot",
    .code = true,
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
