/* gmm_tried.c - what the authors tried on the Gaussian mixture and left out of their figures: REBAR and the three control
 * variates of RELAX, the relaxations of DVAE, other temperatures of Concrete, wake-wake-sleep; and MuProp. */
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    static const char *const    methods[] = {"concrete",
                                             "dvae smoothing spike",
                                             "dvae smoothing exponential",
                                             "dvae smoothing power",
                                             "rebar",
                                             "relax",
                                             "muprop",
                                             "reinforce",
                                             "vimco",
                                             "ws",
                                             "ww",
                                             "wws",
                                             NULL};
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .scale = RWS_AXIS_LOG}},
        {"q_error", {.label = "q error", .scale = RWS_AXIS_LOG}},
        {"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}},
    };
    return rws__panels_grid(q, "Gaussian mixture, far start: what was tried", methods, rows, 3, path, err);
}

static const rws_paper_figure figures[] = {
    {"gmm-tried", "methods that the paper tried and did not plot, beside those that it did", draw,
     "Are DVAE's relaxations worse than all others, is RELAX best with the network alone, Concrete with 0.5, and WWS "
     "no better than WW or WS?",
     "G12 G13 G14 G15"},
    {0},
};

/* ---- claims: lower is better */

#define BOTH "p_error q_error"
#define STATEMENTS (const rws_statement[])

static const rws_claim claims[] = {
    {"G12",
     "The relaxations of DVAE (exponential, power; the gradient of spikes is biased) perform worse than any of the "
     "alternatives (the paper: considerably).",
     .statements = STATEMENTS{{BOTH, "dvae", "concrete relax reinforce vimco ws ww rebar muprop wws", 5, RWS_ABOVE(1),
                               .key = "smoothing", .left_values = "exponential power"},
                              {0}}},
    {"G13", "Of RELAX's control variates, the network alone leads to the best training.",
     .statements = STATEMENTS{{BOTH, "relax", "relax", 5, RWS_BELOW(1), .key = "relax_control", .left_values = "net",
                               .right_values = "rebar sum"},
                              {0}}},
    {"G14", "Concrete is best with the terminal temperature 0.5: lower ones do not train, higher ones are worse.",
     .statements = STATEMENTS{{BOTH, "concrete", "concrete", 5, RWS_BELOW(1), .key = "tau_end", .left_values = "0.5",
                               .right_values = "0.1 1 2"},
                              {0}}},
    {"G15", "Wake-wake-sleep yields only minor improvements over WW, the better of WW and WS (less than a fifth).",
     .statements = STATEMENTS{{BOTH, "wws", "ww", 5, RWS_ABOVE(0.8)}, {0}}},
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
    .iterations = 100000,
    .where = where,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
