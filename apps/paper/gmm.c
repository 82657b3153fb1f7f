/* gmm.c - the Gaussian mixture from the far start: figures 3, 4 and of the spread of gradients; claims G1 to G9, G11
 * and G16. */
#include "figure/hinton.h"
#include "figure/style.h"
#include "paper/compare.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rws_gmm_methods[] = {"concrete", "relax", "reinforce", "vimco", "ws", "ww", "dww", NULL};
const char *const rws_gmm_names[] = {"Concrete", "RELAX", "REINFORCE", "VIMCO", "WS", "WW", "δ-WW", NULL};
const int         rws_gmm_particles[GMM_K] = {2, 5, 10, 20};
enum { COMPONENTS = 20 };

#define UNIFORM 0.728 /* q error of a guide that is uniform over the components */

/* ---- figures */

static rws_status draw_main(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .scale = RWS_AXIS_LOG}},
        {"q_error", {.label = "q error", .scale = RWS_AXIS_LOG}},
    };
    return rws__panels_grid(q, "Gaussian mixture, far start", rws_gmm_methods, rows, 2, path, err);
}

static rws_status draw_std(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {{"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}}};
    return rws__panels_grid(q, "Gaussian mixture, far start", rws_gmm_methods, rows, 1, path, err);
}

/* Layout of the Hinton diagram. Rows: moments of training. Columns: p, and q at three x, for the least and the largest
 * K. Strips: the truth and the methods. */
enum { MOMENTS = 3, HALVES = 2, PLACES = 4, STRIPS = GMM_METHODS + 1 };

typedef double hinton_values[MOMENTS][HALVES][PLACES][STRIPS][COMPONENTS];

/* The iterations of the run's snapshots, at most MOMENTS. */
static int moments_of(const rws_result *r, const char *snapshot, uint64_t *moments)
{
    int n = 0;
    for (int i = 0; i < r->n_shots && n < MOMENTS; i++)
        if (strcmp(r->shots[i].name, snapshot) == 0) moments[n++] = r->shots[i].iteration;
    return n;
}

/* Takes the snapshots of the first run of each method; values without a snapshot stay as they are. Returns the number
 * of moments. */
static int collect(const rws_query *q, const int halves[HALVES], hinton_values values, uint64_t *moments)
{
    static const char *const snapshots[2][PLACES] = {{"true_p", "true_q_0", "true_q_95", "true_q_190"},
                                                     {"p", "q_0", "q_95", "q_190"}};
    int                      n_moments = 0;
    for (int half = 0; half < HALVES; half++) {
        for (int strip = 0; strip < STRIPS; strip++) {
            /* the truth is in every run's snapshots */
            const rws_result *run = rws__query_first_run(q, strip ? rws_gmm_methods[strip - 1] : NULL, halves[half]);
            if (!run) continue;
            if (!n_moments) n_moments = moments_of(run, "p", moments);
            for (int moment = 0; moment < n_moments; moment++) {
                for (int place = 0; place < PLACES; place++) {
                    const rws_shot *shot = rws_result_shot(run, snapshots[strip > 0][place], moments[moment]);
                    for (int c = 0; shot && c < COMPONENTS && c < shot->n; c++)
                        values[moment][half][place][strip][c] = shot->values[c];
                }
            }
        }
    }
    return n_moments;
}

static rws_status draw_hinton(const rws_query *q, const char *path, rws_error *err)
{
    static const char *const columns[] = {"p(z)", "q(z|x = 0)", "q(z|x = 95)", "q(z|x = 190)",
                                          "p(z)", "q(z|x = 0)", "q(z|x = 95)", "q(z|x = 190)"};
    const rws_particles      p = rws__query_particles(q);
    const int                halves[] = {p.K[0], p.K[p.n ? p.n - 1 : 0]};
    hinton_values            values;
    uint64_t                 moments[MOMENTS];
    rws_strip                strips[STRIPS] = {{.method = "true"}};
    const char              *rows[MOMENTS];
    char                     headings[HALVES][24], row_names[MOMENTS][48];
    for (size_t i = 0; i < sizeof values / sizeof(double); i++) ((double *)values)[i] = NAN;
    int n_moments = collect(q, halves, values, moments);
    if (n_moments == 0) moments[n_moments++] = 0; /* exported runs have no snapshots: an empty diagram */
    for (int i = 0; i < HALVES; i++) snprintf(headings[i], sizeof headings[i], "K = %d", halves[i]);
    for (int m = 0; m < GMM_METHODS; m++) strips[m + 1].method = rws_gmm_methods[m];
    for (int i = 0; i < n_moments; i++) {
        snprintf(row_names[i], sizeof row_names[i], "iteration %llu", (unsigned long long)moments[i]);
        rows[i] = row_names[i];
    }
    const rws_heading over[] = {{headings[0], 0, PLACES}, {headings[1], PLACES, PLACES}};
    const rws_hinton  h = {.title = "Gaussian mixture, far start, one run of each method",
                           .n_rows = n_moments,
                           .n_columns = HALVES * PLACES,
                           .n_strips = STRIPS,
                           .n_values = COMPONENTS,
                           .rows = rows,
                           .columns = columns,
                           .headings = over,
                           .n_headings = HALVES,
                           .strips = strips,
                           .values = (const double *)values,
                           .x_label = "z",
                           .width = 720};
    return rws__hinton_draw(&h, path, err);
}

const rws_paper_figure rws_gmm_figures[] = {
    {"gmm-main", "p error and q error of every method over the iterations, by the number of particles", draw_main,
     "Do WS and WW improve with K while IWAE methods suffer; is WS worst and δ-WW good with few particles; do p and q "
     "develop alike?",
     "G1 G2a G2b G2c G3 G4a G4b G5a G5b G5c G5d G6"},
    {"gmm-hinton", "learned mixtures and posteriors in the beginning, the middle and the end", draw_hinton,
     "Are branches pruned with K = 2 by all methods except δ-WW, and with K = 20 by WS only, where IWAE ends with a "
     "suboptimal model?",
     "G7a G7b G7c G7d G7e G7f G8a G8b"},
    {"gmm-std", "spread of the guide's gradient over the iterations", draw_std,
     "Do WW and WS have gradient estimators of lower variance than IWAE except VIMCO?", "G9a G9b G9c"},
    {0},
};

/* ---- claims: lower is better */

/* Ranks 0 … n - 1. */
static void ranks_of(const double *values, int n, double *ranks)
{
    for (int i = 0; i < n; i++) {
        ranks[i] = 0;
        for (int j = 0; j < n; j++) ranks[i] += values[j] < values[i] ? 1 : j != i && values[j] == values[i] ? 0.5 : 0;
    }
}

/* Spearman's correlation of the methods' p and q errors for one seed; NaN if a method lacks it. */
static double correlation(const double *p, const double *v, int n)
{
    double x[GMM_METHODS], y[GMM_METHODS], xy = 0, xx = 0, yy = 0;
    ranks_of(p, n, x);
    ranks_of(v, n, y);
    for (int i = 0; i < n; i++) {
        const double a = x[i] - (n - 1) / 2.0, b = y[i] - (n - 1) / 2.0;
        if (isnan(p[i]) || isnan(v[i])) return NAN;
        xy += a * b, xx += a * a, yy += b * b;
    }
    return xy / sqrt(xx * yy);
}

static double value_of_seed(const rws_query *q, int method, int K, const char *metric, int seed)
{
    const rws_seed_values s = rws__seed_values_of(q, (rws_quantity){rws_gmm_methods[method], K, metric, 0, NULL, NULL});
    for (int i = 0; i < s.n; i++)
        if (s.seed[i] == seed) return s.value[i];
    return NAN;
}

/* The same order: a rank correlation of more than a half. */
static void g6(const rws_query *q, rws_evidence *e)
{
    for (int k = 0; k < GMM_K; k++) {
        const int K = rws_gmm_particles[k];
        double    rho[RWS_MAX_SEEDS], mean = 0;
        int       n = 0;
        for (int seed = 1; seed <= RWS_MAX_SEEDS; seed++) {
            double p[GMM_METHODS], v[GMM_METHODS];
            for (int m = 0; m < GMM_METHODS; m++) {
                p[m] = value_of_seed(q, m, K, "p_error", seed);
                v[m] = value_of_seed(q, m, K, "q_error", seed);
            }
            rho[n] = correlation(p, v, GMM_METHODS);
            if (!isnan(rho[n])) n++;
        }
        for (int i = 0; i < n; i++) mean += rho[i] / n;
        rws__evidence_add(e, rho, n, 0.5, INFINITY, "K = %d: mean rank correlation %.2f, claimed above 0.5", K, mean);
    }
}

/* ---- branch pruning */

/* The components with p(z) > 1e-3 at the end of training. */
typedef struct {
    int n, last, mode;
} support;

static bool support_of(const rws_result *r, support *s)
{
    const rws_shot *p = rws_result_shot(r, "p", UINT64_MAX);
    *s = (support){.last = -1};
    for (int c = 0; p && c < p->n; c++) {
        if (p->values[c] > 1e-3) s->n++, s->last = c;
        if (p->values[c] > p->values[s->mode]) s->mode = c;
    }
    return p != NULL;
}

/* The support that a run should have: all components, not all of them, or an end or a peak at a place give or take one. */
typedef enum { ALL, PRUNED, ENDS_NEAR, PEAKS_NEAR } expected;

static void count_supports(const rws_query *q, rws_evidence *e, const char *method, int K, expected what, int place)
{
    static const char *const texts[] = {"all %d components", "fewer than %d components", "ends at %d, give or take one",
                                        "largest p(z) at %d, give or take one"};
    int                      n, n_shots = 0, fit = 0;
    char                     text[64];
    const rws_result       **runs = rws__query_runs(q, method, K, &n);
    for (int i = 0; i < n; i++) {
        support s;
        if (!support_of(runs[i], &s)) continue;
        n_shots++;
        const bool all = s.n == COMPONENTS;
        fit += what == ALL || what == PRUNED ? all == (what == ALL)
                                             : abs((what == PEAKS_NEAR ? s.mode : s.last) - place) <= 1;
    }
    free(runs);
    snprintf(text, sizeof text, texts[what], place);
    rws__evidence_most(e, fit, n_shots, "%s: %s in %d of %d runs, claimed for most", rws__style_name(method), text, fit,
                       n_shots);
}

static void g7_ws(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "ws", 2, ENDS_NEAR, 9);
}

static void g7_ws_mode(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "ws", 2, PEAKS_NEAR, 9);
}

static void g7_ww(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "ww", 2, ENDS_NEAR, 14);
}

static void g7_iwae(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "vimco", 2, ENDS_NEAR, 17);
    count_supports(q, e, "relax", 2, ENDS_NEAR, 17);
    count_supports(q, e, "reinforce", 2, ENDS_NEAR, 17);
}

static void g7_dww(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "dww", 2, ALL, COMPONENTS);
}

static void g8(const rws_query *q, rws_evidence *e)
{
    count_supports(q, e, "ws", 20, PRUNED, COMPONENTS);
    count_supports(q, e, "ww", 20, ALL, COMPONENTS);
    count_supports(q, e, "dww", 20, ALL, COMPONENTS);
}

#define BOTH "p_error q_error"
#define STATEMENTS (const rws_statement[])

const rws_claim rws_gmm_claims[] = {
    {"G1", "With K = 2, δ-WW has the lowest p error and the lowest q error of all methods.", .varies = true,
     .statements = STATEMENTS{{BOTH, "dww", "concrete relax reinforce vimco ws ww", 2, RWS_BELOW(1)}, {0}}},
    {"G2a", "With K = 20, WW and δ-WW have lower p and q errors than any other method.", .varies = true,
     .statements = STATEMENTS{{BOTH, "ww dww", "concrete relax reinforce vimco ws", 20, RWS_BELOW(1)}, {0}}},
    {"G2b", "With K = 20, δ-WW performs similarly to WW (within a factor of 2).",
     .statements = STATEMENTS{{BOTH, "dww", "ww", 20, .low = 0.5, .high = 2}, {0}}},
    {"G2c", "With K = 20, WW learns the best model fastest: its p error is lowest also after a third of training.",
     .varies = true,
     .statements =
         STATEMENTS{{"p_error", "ww", "concrete relax reinforce vimco ws", 20, .moment = RWS_AT_THIRD, RWS_BELOW(1)},
                    {0}}},
    {"G3", "WS has the highest p error of all methods for every K (Concrete, which fails, aside).", .varies = true,
     .statements = STATEMENTS{{"p_error", "relax reinforce vimco ww dww", "ws", RWS_BELOW(1)}, {0}}},
    {"G4a", "More particles lead to better guides for WS and WW: q errors fall with K.",
     .statements = STATEMENTS{{"q_error", "ws ww", .K = RWS_OVER_K, RWS_BELOW(0)}, {0}}},
    {"G4b", "Learning of the model improves with K for WS and WW: p errors fall with K.",
     .statements = STATEMENTS{{"p_error", "ws ww", .K = RWS_OVER_K, RWS_BELOW(0)}, {0}}},
    {"G5a",
     "More particles do not lead to better guides for REINFORCE, RELAX and Concrete: from K = 2 to 20 q errors fall "
     "by less than 5 %.",
     .statements = STATEMENTS{{"q_error", "reinforce relax concrete", .K = 20, .K_right = 2, RWS_ABOVE(0.95)}, {0}}},
    {"G5b", "More particles do not lead to a better guide for VIMCO: its q error falls by less than 5 %.",
     .varies = true, .statements = STATEMENTS{{"q_error", "vimco", .K = 20, .K_right = 2, RWS_ABOVE(0.95)}, {0}}},
    {"G5c", "Learning of the model worsens with K for REINFORCE, RELAX and Concrete: p errors rise from K = 2 to 20.",
     .statements = STATEMENTS{{"p_error", "reinforce relax concrete", .K = 20, .K_right = 2, RWS_ABOVE(1)}, {0}}},
    {"G5d", "Learning of the model does not worsen with K for VIMCO: its p error falls from K = 2 to 20.",
     .varies = true, .statements = STATEMENTS{{"p_error", "vimco", .K = 20, .K_right = 2, RWS_BELOW(1)}, {0}}},
    {"G6", "p errors and q errors put the methods into the same order.", .check = g6, .varies = true},
    {"G7a", "With K = 2, WS prunes branches: p(z) > 0.001 for z = 0…9 only.", .check = g7_ws},
    {"G7b", "With K = 2, WW prunes branches: p(z) > 0.001 for z = 0…14 only.", .check = g7_ww},
    {"G7c", "With K = 2, VIMCO, RELAX and REINFORCE prune branches: p(z) > 0.001 for z = 0…17 only.", .check = g7_iwae,
     .varies = true},
    {"G7d", "With K = 2, δ-WW prunes no branch.", .check = g7_dww},
    {"G7e", "With K = 2, the model of WS peaks at z = 9.", .check = g7_ws_mode},
    {"G7f", "Concrete fails: at every K its q error stays above half that of a uniform guide.",
     .statements = STATEMENTS{{"q_error", "concrete", .constant = UNIFORM, RWS_ABOVE(0.5)}, {0}}},
    {"G8a", "With K = 20, WS prunes branches; WW and δ-WW do not.", .check = g8},
    {"G8b", "With K = 20, REINFORCE, RELAX and VIMCO learn a worse model than WW.", .varies = true,
     .statements = STATEMENTS{{"p_error", "reinforce", "ww", 20, RWS_ABOVE(1)},
                              {"p_error", "relax", "ww", 20, RWS_ABOVE(1)},
                              {"p_error", "vimco", "ww", 20, RWS_ABOVE(1)},
                              {0}}},
    {"G9a", "The gradient estimators of WS and WW spread less than those of REINFORCE and RELAX.",
     .statements = STATEMENTS{{"grad_std", "ws ww", "reinforce relax", RWS_BELOW(1)}, {0}}},
    {"G9b", "The gradient estimator of Concrete spreads little to begin with: less than that of REINFORCE.",
     .statements = STATEMENTS{{"grad_std", "concrete", "reinforce", .moment = RWS_AT_START, RWS_BELOW(1)}, {0}}},
    {"G9c", "VIMCO is the exception among IWAE methods: its gradient estimator spreads no more than that of WW.",
     .varies = true, .statements = STATEMENTS{{"grad_std", "vimco", "ww", RWS_BELOW(1)}, {0}}},
    {"G11", "δ-WW is robust to the choice of δ: with δ from 0.05 to 0.4 its errors are below half of those of WW.",
     .statements =
         STATEMENTS{{BOTH, "dww", "ww", 2, .key = "delta", .left_values = "0.05 0.1 0.2 0.4", RWS_BELOW(0.5)}, {0}}},
    {"G16",
     "The family of guides can capture the true posterior: the q error of δ-WW with K = 20 is below a tenth of a "
     "uniform guide's.",
     .statements = STATEMENTS{{"q_error", "dww", .K = 20, .constant = UNIFORM, RWS_BELOW(0.1)}, {0}}},
    {0},
};

/* ---- runs */

#define DELTAS(seeds) GMM_RUNS("far", "dww", "2", seeds, "set dww.delta 0.05 0.1 0.4\n")

static const char sweep[] = GMM_SWEEP("far", "", "") DELTAS("1-10"), quick[] = GMM_QUICK("far", "", "") DELTAS("1-3");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "far"}, {"gmm_hidden", "1"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_no_logK", "0"}, {"dww", "delta", "0.2"}, {0}};
static const rws_query_own  no_logK[] = {{"vimco", "vimco_no_logK", "1"}, {"dww", "delta", "0.2"}, {0}};

const rws_variant rws_gmm_variants[] = {{NULL, as_printed}, {"VIMCO without log K", no_logK}, {0}};

const rws_experiment rws_experiment_gmm = {
    .name = "gmm",
    .help = "Gaussian mixture from a start far away: all methods",
    .sweep = sweep,
    .quick = quick,
    .iterations = 100000,
    .where = where,
    .variants = rws_gmm_variants,
    .figures = rws_gmm_figures,
    .claims = rws_gmm_claims,
};
