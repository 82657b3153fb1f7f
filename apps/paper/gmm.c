/* gmm.c - the Gaussian mixture from the far start: figures 3, 4 and of the spread of gradients; claims G1 to G9, G11
 * and G16. */
#include "figure/hinton.h"
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
const int         rws_gmm_order[] = {2, 20, 5, 10, 0};

enum { COMPONENTS = 20 };

#define UNIFORM 0.728 /* q error of a guide that is uniform over the components */

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

static rws_quantity at_end(int method, int K, const char *metric)
{
    return (rws_quantity){rws_gmm_methods[method], K, metric};
}

static void medians(const rws_query *q, int K, const char *metric, double *out)
{
    for (int m = 0; m < GMM_METHODS; m++) out[m] = rws_quantity_median(q, at_end(m, K, metric));
}

/* The method with the lowest value (sign 1) or the highest one (-1) of all methods except a and b. If a method has no runs,
 * that method is returned, so that a claim about all methods is not judged without it. */
static int extreme_but(const double *values, int sign, int a, int b)
{
    int best = -1;
    for (int m = 0; m < GMM_METHODS; m++) {
        if (m == a || m == b) continue;
        if (isnan(values[m])) return m;
        if (best < 0 || sign * values[m] < sign * values[best]) best = m;
    }
    return best;
}

static void g1(const rws_query *q, rws_finding *f)
{
    for (int e = 0; e < 2; e++) {
        double v[GMM_METHODS];
        medians(q, 2, errors[e], v);
        const int          next = extreme_but(v, 1, GMM_DWW, GMM_DWW);
        const rws_compared c = rws_less(q, f, at_end(GMM_DWW, 2, errors[e]), 1, at_end(next, 2, errors[e]));
        rws_finding_add(f, c.verdict, "%s error: δ-WW %.3g, next %s %.3g (p = %.2g)", error_names[e], c.a,
                        rws_gmm_names[next], c.b, c.p);
    }
}

/* Lowest: not more than a tenth above the best of the others. */
static void g2(const rws_query *q, rws_finding *f)
{
    static const int both[] = {GMM_WW, GMM_DWW};
    for (int e = 0; e < 2; e++) {
        double v[GMM_METHODS];
        medians(q, 20, errors[e], v);
        const int next = extreme_but(v, 1, GMM_WW, GMM_DWW);
        for (int i = 0; i < 2; i++) {
            const rws_compared c = rws_less(q, f, at_end(both[i], 20, errors[e]), 1.1, at_end(next, 20, errors[e]));
            rws_finding_add(f, c.verdict, "%s error: %s %.3g, best of the others %s %.3g (p = %.2g)", error_names[e],
                            rws_gmm_names[both[i]], c.a, rws_gmm_names[next], c.b, c.p);
        }
    }
}

static void g2_similar(const rws_query *q, rws_finding *f)
{
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < 2; i++) {
            const int          a = i ? GMM_DWW : GMM_WW, b = i ? GMM_WW : GMM_DWW;
            const rws_compared c = rws_less(q, f, at_end(a, 20, errors[e]), 2, at_end(b, 20, errors[e]));
            rws_finding_add(f, c.verdict, "%s error: %s %.3g, %s %.3g", error_names[e], rws_gmm_names[a], c.a,
                            rws_gmm_names[b], c.b);
        }
}

/* Fastest: not more than a tenth above the best of the others after a third of training. */
static void g2_fastest(const rws_query *q, rws_finding *f)
{
    double v[GMM_METHODS];
    for (int m = 0; m < GMM_METHODS; m++)
        v[m] = rws_quantity_median(q, (rws_quantity){rws_gmm_methods[m], 20, "p_error", RWS_AT_THIRD});
    const int          next = extreme_but(v, 1, GMM_WW, GMM_DWW);
    const rws_compared c = rws_less(q, f, (rws_quantity){"ww", 20, "p_error", RWS_AT_THIRD}, 1.1,
                                    (rws_quantity){rws_gmm_methods[next], 20, "p_error", RWS_AT_THIRD});
    rws_finding_add(f, c.verdict, "p error after a third of training: WW %.3g, best of the others %s %.3g (p = %.2g)",
                    c.a, rws_gmm_names[next], c.b, c.p);
}

static void g3(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        const int K = rws_gmm_particles[k];
        double    v[GMM_METHODS];
        medians(q, K, "p_error", v);
        const int          next = extreme_but(v, -1, GMM_WS, GMM_CONCRETE);
        const rws_compared c = rws_less(q, f, at_end(next, K, "p_error"), 1, at_end(GMM_WS, K, "p_error"));
        rws_finding_add(f, c.verdict, "K = %d: WS %.3g, next %s %.3g (p = %.2g)", K, c.b, rws_gmm_names[next], c.a,
                        c.p);
    }
}

/* Falls from K = 2 to 20, and rises by more than 5 % at no step. */
static void falls_with_particles(const rws_query *q, rws_finding *f, int method, const char *metric, const char *name)
{
    const rws_compared all = rws_less(q, f, at_end(method, 20, metric), 1, at_end(method, 2, metric));
    rws_finding_add(f, all.verdict, "%s error of %s: %.3g with K = 2, %.3g with 20 (p = %.2g)", name,
                    rws_gmm_names[method], all.b, all.a, all.p);
    for (int k = 1; k < GMM_K; k++) {
        const int          K = rws_gmm_particles[k], before = rws_gmm_particles[k - 1];
        const rws_compared c = rws_less(q, f, at_end(method, K, metric), 1.05, at_end(method, before, metric));
        if (c.verdict != RWS_HOLDS)
            rws_finding_add(f, c.verdict, "%.3g with K = %d, %.3g with %d", c.b, before, c.a, K);
    }
}

static void g4_q(const rws_query *q, rws_finding *f)
{
    falls_with_particles(q, f, GMM_WS, "q_error", "q");
    falls_with_particles(q, f, GMM_WW, "q_error", "q");
}

static void g4_p(const rws_query *q, rws_finding *f)
{
    falls_with_particles(q, f, GMM_WS, "p_error", "p");
    falls_with_particles(q, f, GMM_WW, "p_error", "p");
}

/* Whether an error with K = 20 is at most 5 % below that with K = 2. */
static void does_not_fall(const rws_query *q, rws_finding *f, int method, const char *metric, const char *name)
{
    const rws_compared c = rws_less(q, f, at_end(method, 2, metric), 1 / 0.95, at_end(method, 20, metric));
    rws_finding_add(f, c.verdict, "%s error of %s: %.3g with K = 2, %.3g with 20 (p = %.2g)", name,
                    rws_gmm_names[method], c.a, c.b, c.p);
}

static void g5_q(const rws_query *q, rws_finding *f)
{
    static const int iwae[] = {GMM_REINFORCE, GMM_RELAX, GMM_CONCRETE};
    for (int i = 0; i < 3; i++) does_not_fall(q, f, iwae[i], "q_error", "q");
}

static void g5_q_vimco(const rws_query *q, rws_finding *f)
{
    does_not_fall(q, f, GMM_VIMCO, "q_error", "q");
}

static void g5_p(const rws_query *q, rws_finding *f)
{
    static const int iwae[] = {GMM_REINFORCE, GMM_RELAX, GMM_CONCRETE};
    for (int i = 0; i < 3; i++) {
        const rws_compared c = rws_less(q, f, at_end(iwae[i], 2, "p_error"), 1, at_end(iwae[i], 20, "p_error"));
        rws_finding_add(f, c.verdict, "p error of %s: %.3g with K = 2, %.3g with 20 (p = %.2g)", rws_gmm_names[iwae[i]],
                        c.a, c.b, c.p);
    }
}

static void g5_p_vimco(const rws_query *q, rws_finding *f)
{
    const rws_compared c = rws_less(q, f, at_end(GMM_VIMCO, 20, "p_error"), 1, at_end(GMM_VIMCO, 2, "p_error"));
    rws_finding_add(f, c.verdict, "p error of VIMCO: %.3g with K = 2, %.3g with 20 (p = %.2g)", c.b, c.a, c.p);
}

/* ---- the order of the methods */

static void ranks_of(const double *values, int n, double *ranks)
{
    for (int i = 0; i < n; i++) {
        ranks[i] = 0;
        for (int j = 0; j < n; j++) ranks[i] += values[j] < values[i] ? 1 : j != i && values[j] == values[i] ? 0.5 : 0;
    }
}

/* Spearman's correlation of ranks 0 … n - 1. */
static double correlation(const double *x, const double *y, int n)
{
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < n; i++) {
        const double a = x[i] - (n - 1) / 2.0, b = y[i] - (n - 1) / 2.0;
        xy += a * b, xx += a * a, yy += b * b;
    }
    return xy / sqrt(xx * yy);
}

/* Counts the orders of y, from place `at` on, whose correlation with x reaches `least`. */
static int count_orders(const double *x, double *y, int at, int n, double least)
{
    if (at == n) return correlation(x, y, n) >= least - 1e-9;
    int reached = 0;
    for (int i = at; i < n; i++) {
        double keep = y[at];
        y[at] = y[i], y[i] = keep;
        reached += count_orders(x, y, at + 1, n, least);
        keep = y[at];
        y[at] = y[i], y[i] = keep;
    }
    return reached;
}

static void g6(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        double p[GMM_METHODS], v[GMM_METHODS], x[GMM_METHODS], y[GMM_METHODS];
        bool   all = true;
        medians(q, rws_gmm_particles[k], "p_error", p);
        medians(q, rws_gmm_particles[k], "q_error", v);
        for (int m = 0; m < GMM_METHODS; m++) {
            rws_query_count(q, f, rws_gmm_methods[m], rws_gmm_particles[k]);
            all = all && !isnan(p[m]) && !isnan(v[m]);
        }
        if (!all) continue;
        ranks_of(p, GMM_METHODS, x);
        ranks_of(v, GMM_METHODS, y);
        const double rho = correlation(x, y, GMM_METHODS);
        const double chance = count_orders(x, y, 0, GMM_METHODS, rho) / 5040.0; /* 7! */
        rws_finding_add(f,
                        chance < RWS_LEVEL ? RWS_HOLDS
                        : rho <= 0         ? RWS_FAILS
                                           : RWS_UNDECIDED,
                        "K = %d: rank correlation %.2f (p = %.2g)", rws_gmm_particles[k], rho, chance);
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

/* What a run's support should be: all components, not all of them, or an end at `last` give or take one. */
typedef enum { ALL, PRUNED, ENDS_NEAR } expected;

static void count_supports(const rws_query *q, rws_finding *f, int method, int K, expected what, int last)
{
    int                n, n_shots = 0, fit = 0;
    const rws_result **runs = rws_query_runs(q, rws_gmm_methods[method], K, &n);
    double            *ends = rws_query_alloc(q, n, sizeof *ends);
    for (int i = 0; ends && i < n; i++) {
        support s;
        if (!support_of(runs[i], &s)) continue;
        ends[n_shots++] = s.last;
        const bool all = s.n == COMPONENTS;
        fit += what == ALL ? all : what == PRUNED ? !all : abs(s.last - last) <= 1;
    }
    rws_query_count(q, f, rws_gmm_methods[method], K);
    const rws_verdict verdict = rws_most(fit, n_shots);
    const char       *name = rws_gmm_names[method];
    if (what == ENDS_NEAR)
        rws_finding_add(f, verdict, "%s: ends at %d, give or take one, in %d of %d runs, median end %.3g", name, last,
                        fit, n_shots, rws_quartiles_of(ends, n_shots).median);
    else
        rws_finding_add(f, verdict, "%s: %s %d components in %d of %d runs", name, what == ALL ? "all" : "fewer than",
                        COMPONENTS, fit, n_shots);
    free(ends);
    free(runs);
}

static void g7_ws(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_WS, 2, ENDS_NEAR, 9);
}

static void g7_ws_mode(const rws_query *q, rws_finding *f)
{
    int                n, n_shots = 0, fit = 0;
    const rws_result **runs = rws_query_runs(q, "ws", 2, &n);
    for (int i = 0; i < n; i++) {
        support s;
        if (!support_of(runs[i], &s)) continue;
        n_shots++;
        fit += abs(s.mode - 9) <= 1;
    }
    free(runs);
    rws_query_count(q, f, "ws", 2);
    rws_finding_add(f, rws_most(fit, n_shots), "largest p(z) at 9, give or take one, in %d of %d runs", fit, n_shots);
}

/* Fails: the guide's q error stays above half that of a uniform guide. */
static void g7_concrete(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        int     n, fit = 0;
        double *v = rws_quantity_values(q, at_end(GMM_CONCRETE, rws_gmm_particles[k], "q_error"), &n);
        for (int i = 0; i < n; i++) fit += v[i] > UNIFORM / 2;
        rws_query_count(q, f, "concrete", rws_gmm_particles[k]);
        rws_finding_add(f, rws_most(fit, n), "K = %d: q error %.3g, above %.3g in %d of %d runs", rws_gmm_particles[k],
                        rws_quartiles_of(v, n).median, UNIFORM / 2, fit, n);
        free(v);
    }
}

static void g7_ww(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_WW, 2, ENDS_NEAR, 14);
}

static void g7_iwae(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_VIMCO, 2, ENDS_NEAR, 17);
    count_supports(q, f, GMM_RELAX, 2, ENDS_NEAR, 17);
    count_supports(q, f, GMM_REINFORCE, 2, ENDS_NEAR, 17);
}

static void g7_dww(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_DWW, 2, ALL, 0);
}

static void g8(const rws_query *q, rws_finding *f)
{
    count_supports(q, f, GMM_WS, 20, PRUNED, 0);
    count_supports(q, f, GMM_WW, 20, ALL, 0);
    count_supports(q, f, GMM_DWW, 20, ALL, 0);
}

static void g8_iwae(const rws_query *q, rws_finding *f)
{
    static const int iwae[] = {GMM_REINFORCE, GMM_RELAX, GMM_VIMCO};
    for (int i = 0; i < 3; i++) {
        const rws_compared c = rws_less(q, f, at_end(GMM_WW, 20, "p_error"), 1, at_end(iwae[i], 20, "p_error"));
        rws_finding_add(f, c.verdict, "p error: WW %.3g, %s %.3g (p = %.2g)", c.a, rws_gmm_names[iwae[i]], c.b, c.p);
    }
}

/* ---- gradients */

static void g9(const rws_query *q, rws_finding *f)
{
    static const int wake[] = {GMM_WS, GMM_WW}, score[] = {GMM_REINFORCE, GMM_RELAX};
    for (int k = 0; k < GMM_K; k++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                const int          K = rws_gmm_particles[k];
                const rws_quantity a = {rws_gmm_methods[wake[i]], K, "grad_std", RWS_TYPICAL};
                const rws_quantity b = {rws_gmm_methods[score[j]], K, "grad_std", RWS_TYPICAL};
                const rws_compared c = rws_less(q, f, a, 1, b);
                rws_finding_add(f, c.verdict, "K = %d: %s %.2g, %s %.2g", K, rws_gmm_names[wake[i]], c.a,
                                rws_gmm_names[score[j]], c.b);
            }
}

/* Not more than a tenth above that of WW. */
static void g9_vimco(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        const int          K = rws_gmm_particles[k];
        const rws_quantity a = {"vimco", K, "grad_std", RWS_TYPICAL}, b = {"ww", K, "grad_std", RWS_TYPICAL};
        const rws_compared c = rws_less(q, f, a, 1.1, b);
        rws_finding_add(f, c.verdict, "K = %d: VIMCO %.2g, WW %.2g", K, c.a, c.b);
    }
}

static void g9_concrete(const rws_query *q, rws_finding *f)
{
    for (int k = 0; k < GMM_K; k++) {
        const int          K = rws_gmm_particles[k];
        const rws_quantity a = {"concrete", K, "grad_std", RWS_AT_START},
                           b = {"reinforce", K, "grad_std", RWS_AT_START};
        const rws_compared c = rws_less(q, f, a, 1, b);
        rws_finding_add(f, c.verdict, "K = %d, first evaluation: Concrete %.2g, REINFORCE %.2g", K, c.a, c.b);
    }
}

/* ---- the family of guides */

static void g16(const rws_query *q, rws_finding *f)
{
    int     n, fit = 0;
    double *v = rws_quantity_values(q, at_end(GMM_DWW, 20, "q_error"), &n);
    for (int i = 0; i < n; i++) fit += v[i] < UNIFORM / 10;
    rws_query_count(q, f, "dww", 20);
    rws_finding_add(f, rws_most(fit, n), "q error of δ-WW with K = 20: %.3g, below %.3g in %d of %d runs",
                    rws_quartiles_of(v, n).median, UNIFORM / 10, fit, n);
    free(v);
}

/* ---- defensive proposals */

/* Robust: whatever δ is, the error stays below half that of WW. */
static void g11(const rws_query *q, rws_finding *f)
{
    static const char *const deltas[] = {"0.05", "0.1", "0.2", "0.4"};
    for (int e = 0; e < 2; e++)
        for (int d = 0; d < 4; d++) {
            const rws_quantity a = {"dww", 2, errors[e], .key = "delta", .value = deltas[d]};
            const rws_compared c = rws_less(q, f, a, 0.5, at_end(GMM_WW, 2, errors[e]));
            rws_finding_add(f, c.verdict, "%s error with δ = %s: %.3g; WW %.3g", error_names[e], deltas[d], c.a, c.b);
        }
}

const rws_claim rws_gmm_claims[] = {
    {"G1", "With K = 2, δ-WW has the lowest p error and the lowest q error of all methods.", g1, true},
    {"G2a", "With K = 20, no method has lower p and q errors than WW and δ-WW (by more than a tenth).", g2, true},
    {"G2b", "With K = 20, δ-WW performs similarly to WW (within a factor of 2).", g2_similar, false},
    {"G2c", "With K = 20, WW learns the best model fastest: its p error is lowest also after a third of training.",
     g2_fastest, true},
    {"G3", "WS has the highest p error of all methods for every K (Concrete, which fails, aside).", g3, true},
    {"G4a", "More particles lead to better guides for WS and WW: q errors fall with K.", g4_q, false},
    {"G4b", "Learning of the model improves with K for WS and WW: p errors fall with K.", g4_p, false},
    {"G5a", "More particles do not lead to better guides for REINFORCE, RELAX and Concrete.", g5_q, false},
    {"G5b", "More particles do not lead to a better guide for VIMCO.", g5_q_vimco, true},
    {"G5c", "Learning of the model worsens with K for REINFORCE, RELAX and Concrete: p errors rise.", g5_p, false},
    {"G5d", "Learning of the model does not worsen with K for VIMCO: its p error falls.", g5_p_vimco, true},
    {"G6", "p errors and q errors put the methods into the same order.", g6, true},
    {"G7a", "With K = 2, WS prunes branches: p(z) > 0.001 for z = 0…9 only.", g7_ws, false},
    {"G7b", "With K = 2, WW prunes branches: p(z) > 0.001 for z = 0…14 only.", g7_ww, false},
    {"G7c", "With K = 2, VIMCO, RELAX and REINFORCE prune branches: p(z) > 0.001 for z = 0…17 only.", g7_iwae, true},
    {"G7d", "With K = 2, δ-WW prunes no branch.", g7_dww, false},
    {"G7e", "With K = 2, the model of WS peaks at z = 9.", g7_ws_mode, false},
    {"G7f", "Concrete fails: at every K its q error stays above half that of a uniform guide.", g7_concrete, false},
    {"G8a", "With K = 20, WS prunes branches; WW and δ-WW do not.", g8, false},
    {"G8b", "With K = 20, REINFORCE, RELAX and VIMCO learn a worse model than WW.", g8_iwae, true},
    {"G9a", "The gradient estimators of WS and WW spread less than those of REINFORCE and RELAX.", g9, false},
    {"G9b", "The gradient estimator of Concrete spreads little to begin with: less than that of REINFORCE.",
     g9_concrete, false},
    {"G9c", "VIMCO is the exception among IWAE methods: its gradient estimator spreads no more than that of WW.",
     g9_vimco, true},
    {"G11", "δ-WW is robust to the choice of δ: with δ from 0.05 to 0.4 its errors are below half of those of WW.", g11,
     false},
    {"G16",
     "The family of guides can capture the true posterior: the q error of δ-WW with K = 20 is below a tenth of a "
     "uniform "
     "guide's.",
     g16, false},
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
    .where = where,
    .order = rws_gmm_order,
    .variants = rws_gmm_variants,
    .figures = rws_gmm_figures,
    .claims = rws_gmm_claims,
};
