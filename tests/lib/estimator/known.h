/* known.h - what is known of each estimator, in all its settings: the table that tests of estimators walk. */
#ifndef RWS_TESTS_KNOWN_H
#define RWS_TESTS_KNOWN_H

#include "exact.h"
#include "support.h"

#include "estimator/estimator.h"

#include <stdio.h>
#include <string.h>

typedef enum { COUNTED, CONTROLLED, PATHWISE } kind; /* coefficients only; a control variate too; a relaxed model */

/* phi's gradient is `wake` times that of particles of a law counted by a, plus `sleep` times that of the model's own
 * samples. Theta's is w_k's of the guide's particles, but for a relaxed model. */
typedef struct {
    const char        *method, *set;
    kind               kind;
    exact_coefficients a;
    double             wake, sleep;
    bool               defensive;
    double             delta;
    int                controls; /* EXACT_NET, EXACT_REBAR, EXACT_MUPROP */
    bool               bound;    /* unbiased for the gradient of E[L] */
    rws_relaxation     prior;
    bool               smoothed; /* a relaxed model whose choice is a stick of smoothed bits */
    rws_smoothing      smoothing;
    double             sharpness;
} known;

static const known table[] = {
    {"ws", .sleep = 1},
    {"ww", .a = exact_w, .wake = 1},
    {"ww", "ww_baseline=1", .a = exact_centred, .wake = 1},
    {"wws", .a = exact_w, .wake = 0.5, .sleep = 0.5},
    {"dww", .a = exact_w, .wake = 1, .defensive = true, .delta = 0.2},
    {"dww", "delta=0", .a = exact_w, .wake = 1, .defensive = true},
    {"dww", "delta=1", .a = exact_w, .wake = 1, .defensive = true, .delta = 1},
    {"dww", "dww_ref_bug=1", .a = exact_w, .wake = 1, .defensive = true, .delta = 0.2},
    {"reinforce", .a = exact_reinforce, .wake = 1, .bound = true},
    {"rloo", .a = exact_rloo, .wake = 1, .bound = true},
    {"nvil", .a = exact_reinforce, .wake = 1, .bound = true},
    {"vimco", .a = exact_vimco, .wake = 1, .bound = true},
    {"vimco", "vimco_no_logK=1", .a = exact_vimco_no_logK, .wake = 1, .bound = true},
    {"vimco", "vimco_air_ref=1", .a = exact_vimco_air_ref, .wake = 1},
    {"rebar", .kind = CONTROLLED, .controls = EXACT_REBAR, .bound = true},
    {"relax", .kind = CONTROLLED, .controls = EXACT_NET, .bound = true},
    {"relax", "relax_control=rebar", .kind = CONTROLLED, .controls = EXACT_REBAR, .bound = true},
    {"relax", "relax_control=sum", .kind = CONTROLLED, .controls = EXACT_NET | EXACT_REBAR, .bound = true},
    {"muprop", .kind = CONTROLLED, .controls = EXACT_MUPROP, .bound = true},
    {"concrete", .kind = PATHWISE, .prior = RWS_RELAX_ARGMAX},
    {"concrete", "concrete_prior=soft", .kind = PATHWISE, .prior = RWS_RELAX_SOFT},
    {"concrete", "concrete_prior=density", .kind = PATHWISE, .prior = RWS_RELAX_DENSITY},
    {"dvae", .kind = PATHWISE, .smoothed = true, .smoothing = RWS_SMOOTH_EXPONENTIAL, .sharpness = 8},
    {"dvae", "smoothing=spike", .kind = PATHWISE, .smoothed = true, .smoothing = RWS_SMOOTH_SPIKE, .sharpness = 8},
    {"dvae", "smoothing=power", .kind = PATHWISE, .smoothed = true, .smoothing = RWS_SMOOTH_POWER, .sharpness = 8},
};

static inline bool is(const known *e, const char *method)
{
    return strcmp(e->method, method) == 0;
}

static inline const known *entry(const char *method, const char *set)
{
    for (int i = 0; i < COUNT(table); i++)
        if (is(&table[i], method) && (set ? table[i].set && strcmp(table[i].set, set) == 0 : !table[i].set))
            return &table[i];
    fail_msg("no entry");
    return NULL;
}

static inline const char *label(const known *e, int C, int K)
{
    static char text[120];
    snprintf(text, sizeof text, "%s %s C=%d K=%d", e->method, e->set ? e->set : "", C, K);
    return text;
}

#endif
