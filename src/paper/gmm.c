/* gmm.c - the Gaussian mixture from the far start: figures 3, 4 and of the spread of gradients; claims G1 to G9 and
 * G11. */
#include "figure/hinton.h"
#include "paper/gmm.h"
#include "paper/panels.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rws_gmm_methods[] = {"concrete", "relax", "reinforce", "vimco", "ws", "ww", "dww", NULL};
const char *const rws_gmm_names[] = {"Concrete", "RELAX", "REINFORCE", "VIMCO", "WS", "WW", "δ-WW", NULL};
const int         rws_gmm_particles[GMM_K] = {2, 5, 10, 20};

enum { COMPONENTS = 20 };

static const char *const errors[] = {"p_error", "q_error"};
static const char *const error_names[] = {"p", "q"};

/* ---- figures */

static rws_status draw_main(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .scale = RWS_AXIS_LOG}},
        {"q_error", {.label = "q error", .scale = RWS_AXIS_LOG}},
    };
    return rws_panels_grid(q, "Gaussian mixture, far start", rws_gmm_methods, rows, 2, path, err);
}

static rws_status draw_std(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {{"grad_std", {.label = "std of the φ gradient", .scale = RWS_AXIS_LOG}}};
    return rws_panels_grid(q, "Gaussian mixture, far start", rws_gmm_methods, rows, 1, path, err);
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
            const rws_result *run = rws_query_first_run(q, strip ? rws_gmm_methods[strip - 1] : NULL, halves[half]);
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
    const rws_particles      p = rws_query_particles(q);
    const int                halves[] = {p.K[0], p.K[p.n ? p.n - 1 : 0]};
    hinton_values            values;
    uint64_t                 moments[MOMENTS];
    rws_strip                strips[STRIPS] = {{.method = "true"}};
    const char              *rows[MOMENTS];
    char                     headings[HALVES][24], row_names[MOMENTS][48];
    for (size_t i = 0; i < sizeof values / sizeof(double); i++) ((double *)values)[i] = NAN;
    const int n_moments = collect(q, halves, values, moments);
    if (n_moments == 0)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The Hinton diagram needs finished runs with snapshots, and there are none.");
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
    return rws_hinton_draw(&h, path, err);
}

const rws_paper_figure rws_gmm_figures[] = {
    {"gmm-main", "p error and q error of every method over the iterations, by the number of particles", draw_main},
    {"gmm-hinton", "learned mixtures and posteriors in the beginning, the middle and the end", draw_hinton},
    {"gmm-std", "spread of the guide's gradient over the iterations", draw_std},
    {0},
};

/* ---- claims: lower is better */

static void finals(const rws_query *q, rws_finding *f, int K, const char *metric, double *out)
{
    for (int m = 0; m < GMM_METHODS; m++) out[m] = rws_query_final(q, f, rws_gmm_methods[m], K, metric);
}

static int least(const double *values)
{
    int best = 0;
    for (int m = 1; m < GMM_METHODS; m++)
        if (values[m] < values[best]) best = m;
    return best;
}

static int least_but(const double *values, int a, int b)
{
    double others[GMM_METHODS];
    memcpy(others, values, sizeof others);
    others[a] = others[b] = INFINITY;
    return least(others);
}

static void g1(const rws_query *q, rws_finding *f)
{
    for (int e = 0; e < 2; e++) {
        double v[GMM_METHODS];
        finals(q, f, 2, errors[e], v);
        const int other = least_but(v, GMM_DWW, GMM_DWW);
        rws_finding_add(f, v[GMM_DWW] < v[other], "%s error: δ-WW %.3g, next %s %.3g", error_names[e], v[GMM_DWW],
                        rws_gmm_names[other], v[other]);
    }
}

static void g2(const rws_query *q, rws_finding *f)
{
    for (int e = 0; e < 2; e++) {
        double v[GMM_METHODS];
        finals(q, f, 20, errors[e], v);
        const int    other = least_but(v, GMM_WW, GMM_DWW);
        const double worse = fmax(v[GMM_WW], v[GMM_DWW]), better = fmin(v[GMM_WW], v[GMM_DWW]);
        rws_finding_add(f, worse < v[other] && worse <= 2 * better, "%s error: WW %.3g, δ-WW %.3g, next %s %.3g",
                        error_names[e], v[GMM_WW], v[GMM_DWW], rws_gmm_names[other], v[other]);
    }
}

static void g3(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        double v[GMM_METHODS];
        finals(q, f, rws_gmm_particles[k], "p_error", v);
        int worst = GMM_RELAX;
        for (int m = GMM_RELAX; m < GMM_METHODS; m++)
            if (m != GMM_WS && v[m] > v[worst]) worst = m;
        rws_finding_add(f, v[GMM_WS] > v[worst], "K = %d: WS %.3g, next %s %.3g", rws_gmm_particles[k], v[GMM_WS],
                        rws_gmm_names[worst], v[worst]);
    }
}

static void falls_with_particles(const rws_query *q, rws_finding *f, int method, const char *metric, const char *name)
{
    double v[GMM_K];
    bool   falls = true;
    for (int k = 0; k < GMM_K; k++) v[k] = rws_query_final(q, f, rws_gmm_methods[method], rws_gmm_particles[k], metric);
    for (int k = 1; k < GMM_K; k++) falls = falls && v[k] < v[k - 1];
    rws_finding_add(f, falls, "%s of %s: %.3g, %.3g, %.3g, %.3g", name, rws_gmm_names[method], v[0], v[1], v[2], v[3]);
}

static void g4(const rws_query *q, rws_finding *f)
{
    static const int both[] = {GMM_WS, GMM_WW};
    for (int i = 0; i < 2; i++)
        for (int e = 0; e < 2; e++) falls_with_particles(q, f, both[i], errors[e], error_names[e]);
}

/* "Does not fall" allows 5 %, which seeds may cause. */
static void g5(const rws_query *q, rws_finding *f)
{
    static const int worsen[] = {GMM_REINFORCE, GMM_RELAX, GMM_CONCRETE},
                     iwae[] = {GMM_REINFORCE, GMM_RELAX, GMM_VIMCO};
    for (int i = 0; i < 3; i++) {
        const char  *method = rws_gmm_methods[worsen[i]];
        const double few = rws_query_final(q, f, method, 2, "p_error"),
                     many = rws_query_final(q, f, method, 20, "p_error");
        rws_finding_add(f, many >= 0.95 * few, "p error of %s: %.3g with K = 2, %.3g with 20", rws_gmm_names[worsen[i]],
                        few, many);
    }
    const double few = rws_query_final(q, f, "vimco", 2, "p_error"),
                 many = rws_query_final(q, f, "vimco", 20, "p_error");
    rws_finding_add(f, many < few, "VIMCO %.3g, %.3g", few, many);
    for (int i = 0; i < 3; i++) {
        const char  *method = rws_gmm_methods[iwae[i]];
        const double q2 = rws_query_final(q, f, method, 2, "q_error"),
                     q20 = rws_query_final(q, f, method, 20, "q_error");
        rws_finding_add(f, q20 >= 0.95 * q2, "q error of %s: %.3g, %.3g", rws_gmm_names[iwae[i]], q2, q20);
    }
}

/* Two methods are in opposite order if both errors differ by a tenth or more, with opposite signs. */
static void g6(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        double v[2][GMM_METHODS];
        int    against = 0, pairs = 0, a = 0, b = 0;
        for (int e = 0; e < 2; e++) finals(q, f, rws_gmm_particles[k], errors[e], v[e]);
        for (int i = 0; i < GMM_METHODS; i++) {
            for (int j = i + 1; j < GMM_METHODS; j++) {
                const double x = log(v[0][i] / v[0][j]), y = log(v[1][i] / v[1][j]);
                pairs++;
                if (x * y >= 0 || fabs(x) < log(1.1) || fabs(y) < log(1.1)) continue;
                against++;
                a = i;
                b = j;
            }
        }
        if (against)
            rws_finding_add(f, false, "K = %d: %d of %d pairs in opposite order, such as %s and %s",
                            rws_gmm_particles[k], against, pairs, rws_gmm_names[a], rws_gmm_names[b]);
        else rws_finding_add(f, true, "K = %d: no pair of %d in opposite order", rws_gmm_particles[k], pairs);
    }
}

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

/* Counts the runs whose support ends at `last` at the latest or, if `last` is the last component, has all components.
 * Adds a part that holds if most runs do. */
static void count_supports(const rws_query *q, rws_finding *f, int method, int K, int last, int mode)
{
    int                n, n_shots = 0, fit = 0;
    const rws_result **runs = rws_query_runs(q, rws_gmm_methods[method], K, &n);
    double            *ends = calloc((size_t)n + 1, sizeof *ends);
    RWS_CHECK(ends);
    for (int i = 0; i < n; i++) {
        support s;
        if (!support_of(runs[i], &s)) continue;
        ends[n_shots++] = s.last;
        const bool covers = s.n == COMPONENTS;
        fit += last == COMPONENTS - 1 ? covers : s.last <= last && (mode < 0 || s.mode == mode);
    }
    rws_query_count(q, f, rws_gmm_methods[method], K);
    if (last == COMPONENTS - 1)
        rws_finding_add(f, 2 * fit > n_shots, "%s: all %d in %d of %d runs", rws_gmm_names[method], COMPONENTS, fit,
                        n_shots);
    else
        rws_finding_add(f, 2 * fit > n_shots, "%s: within 0…%d in %d of %d runs, median end %.3g",
                        rws_gmm_names[method], last, fit, n_shots, rws_quartiles_of(ends, n_shots).median);
    free(ends);
    free(runs);
}

static void g7(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_WS, 2, 9, 9);
    count_supports(q, f, GMM_WW, 2, 14, -1);
    count_supports(q, f, GMM_VIMCO, 2, 17, -1);
    count_supports(q, f, GMM_RELAX, 2, 17, -1);
    count_supports(q, f, GMM_REINFORCE, 2, 17, -1);
    count_supports(q, f, GMM_DWW, 2, COMPONENTS - 1, -1);
}

static void g8(const rws_query *q, rws_finding *f)
{
    static const int iwae[] = {GMM_REINFORCE, GMM_RELAX, GMM_VIMCO};
    count_supports(q, f, GMM_WS, 20, COMPONENTS - 2, -1);
    count_supports(q, f, GMM_WW, 20, COMPONENTS - 1, -1);
    count_supports(q, f, GMM_DWW, 20, COMPONENTS - 1, -1);
    const double best = fmin(rws_query_final(q, f, "ww", 20, "p_error"), rws_query_final(q, f, "dww", 20, "p_error"));
    for (int i = 0; i < 3; i++) {
        const double p = rws_query_final(q, f, rws_gmm_methods[iwae[i]], 20, "p_error");
        rws_finding_add(f, p > best, "p error of %s %.3g, best of WW and δ-WW %.3g", rws_gmm_names[iwae[i]], p, best);
    }
}

static void g9(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        double v[GMM_METHODS];
        for (int m = 0; m < GMM_METHODS; m++)
            v[m] = rws_query_typical(q, f, rws_gmm_methods[m], rws_gmm_particles[k], "grad_std");
        const double wake = fmax(v[GMM_WS], v[GMM_WW]), score = fmin(v[GMM_REINFORCE], v[GMM_RELAX]);
        rws_finding_add(f, wake < score && v[GMM_VIMCO] <= 2 * wake,
                        "K = %d: WS %.2g, WW %.2g, VIMCO %.2g, REINFORCE %.2g, RELAX %.2g", rws_gmm_particles[k],
                        v[GMM_WS], v[GMM_WW], v[GMM_VIMCO], v[GMM_REINFORCE], v[GMM_RELAX]);
        const double first = rws_query_after(q, f, "concrete", rws_gmm_particles[k], "grad_std", 0);
        const double other = fmin(rws_query_after(q, f, "reinforce", rws_gmm_particles[k], "grad_std", 0),
                                  rws_query_after(q, f, "relax", rws_gmm_particles[k], "grad_std", 0));
        rws_finding_add(f, first < other, "at the start Concrete %.2g, REINFORCE or RELAX %.2g", first, other);
    }
}

static void g11(const rws_query *q, rws_finding *f)
{
    static const char *const deltas[] = {"0.05", "0.1", "0.2", "0.4"};
    for (int e = 0; e < 2; e++) {
        double v[4], low = INFINITY, high = 0;
        for (int d = 0; d < 4; d++) {
            const rws_query_own own[] = {{"dww", "delta", deltas[d]}, {0}};
            const rws_query     other = {q->results, q->where, own};
            v[d] = rws_query_final(&other, f, "dww", 2, errors[e]);
            low = fmin(low, v[d]);
            high = fmax(high, v[d]);
        }
        rws_finding_add(f, high <= 2 * low, "%s error with K = 2 and δ = 0.05, 0.1, 0.2, 0.4: %.3g, %.3g, %.3g, %.3g",
                        error_names[e], v[0], v[1], v[2], v[3]);
    }
}

const rws_claim rws_gmm_claims[] = {
    {"G1", "With K = 2, δ-WW has the lowest final p and q error of all methods.", g1, true},
    {"G2", "With K = 20, WW and δ-WW have the lowest p and q errors and are within a factor of 2.", g2, true},
    {"G3", "WS has the highest p error for every K (Concrete, which fails, aside).", g3, true},
    {"G4", "Final p and q errors of WS and of WW fall with every step of K.", g4, false},
    {"G5",
     "From K = 2 to 20 the p error of REINFORCE, RELAX and Concrete does not fall (by more than 5 %), that of VIMCO "
     "does; the q errors of REINFORCE, RELAX and VIMCO do not fall.",
     g5, true},
    {"G6", "p errors and q errors put the methods into the same order (differences below 10 % aside).", g6, true},
    {"G7",
     "Branches are pruned with K = 2: in most runs p(z) > 0.001 only within 0…9 for WS (mode 9), 0…14 for WW, 0…17 for "
     "VIMCO, RELAX and REINFORCE; δ-WW keeps all 20.",
     g7, true},
    {"G8",
     "With K = 20 only WS prunes: WW and δ-WW keep all 20 components; REINFORCE, RELAX and VIMCO end at a worse p.", g8,
     true},
    {"G9",
     "The gradients of WW and WS spread less than those of REINFORCE and RELAX, those of VIMCO as little (within a "
     "factor of 2); those of Concrete little at the start.",
     g9, true},
    {"G11", "δ-WW is robust: final errors for δ from 0.05 to 0.4 are within a factor of 2.", g11, false},
    {0},
};

/* ---- runs */

#define DELTAS(seeds) GMM_RUNS("far", "dww", "2", seeds, "set dww.delta 0.05 0.1 0.4\n")

static const char sweep[] = GMM_SWEEP("far", "", "") DELTAS("1-10"), quick[] = GMM_QUICK("far", "", "") DELTAS("1-3");

static const rws_result_key where[] = {{"model", "gmm"}, {"start", "far"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_no_logK", "0"}, {"dww", "delta", "0.2"}, {0}};
static const rws_query_own  no_logK[] = {{"vimco", "vimco_no_logK", "1"}, {"dww", "delta", "0.2"}, {0}};

const rws_variant rws_gmm_variants[] = {{NULL, as_printed}, {"VIMCO without log K", no_logK}, {0}};

const rws_experiment rws_experiment_gmm = {
    .name = "gmm",
    .help = "Gaussian mixture from a start far away: all methods",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = rws_gmm_variants,
    .figures = rws_gmm_figures,
    .claims = rws_gmm_claims,
};
