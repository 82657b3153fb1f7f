/* pcfg.c - the probabilistic grammar: curves, trees for a sentence, learned rules; claims P1 to P8.
 *
 * The snapshots of a run: `trees` are the trees that the guide draws most often for the sentence below, each with its
 * share, the most frequent first; `np` and `true_np` are the probabilities of the rules of NP.
 */
#include "figure/bars.h"
#include "figure/style.h"
#include "figure/trees.h"
#include "paper/compare.h"
#include "paper/panels.h"
#include "paper/paper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE "astronomers saw stars with telescopes"

static const char *const methods[] = {"reinforce", "vimco", "ws", "ww", NULL};

enum { N_TREES = 5, MAX_RULES = 64 };

/* ---- figures */

static rws_status draw_main(const rws_query *q, const char *path, rws_error *err)
{
    static const rws_panels_row rows[] = {
        {"p_error", {.label = "p error", .low = 0, .high = 0.3}},
        {"q_error", {.label = "q error", .low = 0, .high = 40}},
    };
    return rws__panels_grid(q, "Probabilistic grammar", methods, rows, 2, path, err);
}

static rws_status draw_trees(const rws_query *q, const char *method, const char *path, rws_error *err)
{
    const rws_shot *shot = rws__query_shot(q, method, 20, "trees");
    rws_drawn_tree  trees[N_TREES];
    char            captions[N_TREES][32], title[160];
    int             n = 0;
    for (; shot && n < shot->n && n < N_TREES && shot->labels[n]; n++) {
        char       words[256];
        const bool right = rws__trees_words(shot->labels[n], words, sizeof words) && strcmp(words, SENTENCE) == 0;
        snprintf(captions[n], sizeof captions[n], "%.3g", shot->values[n]);
        trees[n] = (rws_drawn_tree){shot->labels[n], captions[n], right ? method : NULL};
    }
    snprintf(title, sizeof title, "Trees for “" SENTENCE "”, %s with K = 20", rws__style_name(method));
    const rws_trees figure = {.title = title, .trees = trees, .n_trees = n};
    return rws__trees_draw(&figure, path, err);
}

static rws_status draw_ws(const rws_query *q, const char *path, rws_error *err)
{
    return draw_trees(q, "ws", path, err);
}

static rws_status draw_vimco(const rws_query *q, const char *path, rws_error *err)
{
    return draw_trees(q, "vimco", path, err);
}

static rws_status draw_np(const rws_query *q, const char *path, rws_error *err)
{
    static const char *const compared[] = {"ws", "vimco"};
    const char              *groups[MAX_RULES];
    rws_bar_series           series[3];
    int                      n_series = 0, n_groups = 0;
    for (int i = 0; i < 2; i++) {
        const rws_shot *truth = rws__query_shot(q, compared[i], 20, "true_np");
        const rws_shot *learned = rws__query_shot(q, compared[i], 20, "np");
        if (!truth || !learned || truth->n != learned->n || truth->n > MAX_RULES) continue;
        if (n_series == 0) {
            n_groups = truth->n;
            for (int k = 0; k < n_groups; k++) groups[k] = truth->labels[k] ? truth->labels[k] : "";
            series[n_series++] = (rws_bar_series){.method = "true", .values = truth->values};
        }
        if (learned->n == n_groups)
            series[n_series++] = (rws_bar_series){.method = compared[i], .values = learned->values};
    }
    const rws_bars figure = {.title = "Probabilities of the rules of NP, K = 20",
                             .n_groups = n_groups,
                             .n_series = n_series,
                             .groups = groups,
                             .series = series,
                             .y = {.label = "probability", .low = 0, .high = NAN}};
    return rws__bars_draw(&figure, path, err);
}

static const rws_paper_figure figures[] = {
    {"pcfg-main", "p error and q error over the iterations, by the number of particles", draw_main,
     "Does WS improve with K and become the best in p and q, while WW improves less and VIMCO and REINFORCE do not?",
     "P1 P2 P3a P3b P3c P4 P8"},
    {"pcfg-trees-ws", "trees that the guide learned by WS draws most often", draw_ws,
     "Do the trees drawn most often yield the sentence?", "P5"},
    {"pcfg-trees-vimco", "trees that the guide learned by VIMCO draws most often", draw_vimco,
     "Does none of the trees yield the sentence?", "P6"},
    {"pcfg-np", "probabilities of the rules of NP", draw_np,
     "Are the rules that WS learned close to the truth, and those of VIMCO poor?", "P7"},
    {0},
};

/* ---- claims: lower is better */

/* The part of a run's snapshot of trees that is about the sentence. */
typedef struct {
    int    n;               /* of the trees drawn most often yield it; -1: the run has no snapshot */
    double shares[N_TREES]; /* of the draws that these have */
    double total;
} parses;

static parses parses_of(const rws_result *run)
{
    const rws_shot *shot = rws_result_shot(run, "trees", UINT64_MAX);
    parses          p = {.n = shot ? 0 : -1};
    for (int i = 0; shot && i < shot->n && i < N_TREES; i++) {
        char words[256];
        if (!shot->labels[i] || !rws__trees_words(shot->labels[i], words, sizeof words)) continue;
        if (strcmp(words, SENTENCE) != 0) continue;
        p.shares[p.n++] = shot->values[i];
        p.total += shot->values[i];
    }
    return p;
}

static bool has_both(const parses *p)
{
    return p->n >= 2;
}

static bool has_none(const parses *p)
{
    return p->n == 0;
}

/* Rarely: less than a tenth of the draws. */
static bool are_rare(const parses *p)
{
    return p->total < 0.1;
}

/* Whether the trees of most runs with K = 20 are so; the numbers are those of the first run, which the figure shows. */
static void judge_trees(const rws_query *q, rws_evidence *e, const char *method, bool (*is_so)(const parses *p))
{
    int                n, n_seen = 0, n_fit = 0;
    const rws_result **runs = rws__query_runs(q, method, 20, &n);
    parses             first = {.n = 0};
    for (int i = 0; i < n; i++) {
        const parses p = parses_of(runs[i]);
        if (p.n < 0) continue;
        if (n_seen++ == 0) first = p;
        n_fit += is_so(&p);
    }
    free(runs);
    rws__evidence_most(
        e, n_fit, n_seen,
        "so in %d of %d runs; in the first, %d of the %d trees drawn most often yield the sentence, with shares "
        "%.3g and %.3g, together %.3g (the ratio of its two parses is 1.33 under the true grammar)",
        n_fit, n_seen, first.n, N_TREES, first.shares[0], first.shares[1], first.total);
}

static void p5(const rws_query *q, rws_evidence *e)
{
    judge_trees(q, e, "ws", has_both);
}

static void p6(const rws_query *q, rws_evidence *e)
{
    judge_trees(q, e, "vimco", has_none);
}

static void p9(const rws_query *q, rws_evidence *e)
{
    judge_trees(q, e, "ww", are_rare);
}

/* Total variation distance: half the sum of the differences, which is the largest difference in the probability of any
 * set of rules. NaN without snapshots. */
static double distance(const rws_result *run)
{
    const rws_shot *truth = rws_result_shot(run, "true_np", UINT64_MAX);
    const rws_shot *learned = rws_result_shot(run, "np", UINT64_MAX);
    double          total = 0;
    if (!truth || !learned || truth->n != learned->n) return NAN;
    for (int i = 0; i < truth->n; i++) total += fabs(truth->values[i] - learned->values[i]);
    return total / 2;
}

/* The run of the list with the same seed; NULL: there is none. */
static const rws_result *same_seed(const rws_result *run, const rws_result **list, int n)
{
    const char *seed = rws_result_get(run, "seed");
    for (int i = 0; i < n && seed; i++)
        if (rws_result_has(list[i], "seed", seed)) return list[i];
    return NULL;
}

static void p7(const rws_query *q, rws_evidence *e)
{
    int                n_ws, n_vimco, n_seen = 0, n_fit = 0;
    const rws_result **ws = rws__query_runs(q, "ws", 20, &n_ws), **vimco = rws__query_runs(q, "vimco", 20, &n_vimco);
    double             first[2] = {NAN, NAN};
    for (int i = 0; i < n_ws; i++) {
        const rws_result *other = same_seed(ws[i], vimco, n_vimco);
        const double      near = distance(ws[i]), far = other ? distance(other) : NAN;
        if (isnan(near) || isnan(far)) continue;
        if (n_seen++ == 0) first[0] = near, first[1] = far;
        n_fit += near < 0.1 && far > 2 * near;
    }
    free(ws);
    free(vimco);
    rws__evidence_most(e, n_fit, n_seen,
                       "so for %d of %d seeds; total variation from the truth for the first: WS %.3g, VIMCO %.3g",
                       n_fit, n_seen, first[0], first[1]);
}

#define BOTH "p_error q_error"
#define STATEMENTS (const rws_statement[])
#define CAPPED(more, fewer)                                     \
    {                                                           \
        "truncated", more, fewer, RWS_MEAN_K, RWS_ABOVE(-0.001) \
    }

static const rws_claim claims[] = {
    {"P1", "With K = 20, WS has the lowest p error and the lowest q error.",
     .statements = STATEMENTS{{BOTH, "ws", "reinforce vimco ww", 20, RWS_BELOW(1)}, {0}}, .varies = true},
    {"P2", "p and q errors of WS fall from K = 2 to 20.",
     .statements = STATEMENTS{{BOTH, "ws", .K = 20, .K_right = 2, RWS_BELOW(1)}, {0}}},
    {"P3a", "The guide of WW improves with K: its q error falls from K = 2 to 20.",
     .statements = STATEMENTS{{"q_error", "ww", .K = 20, .K_right = 2, RWS_BELOW(1)}, {0}}},
    {"P3b", "With K = 20 the guide of WW is significantly worse than that of WS.",
     .statements = STATEMENTS{{"q_error", "ww", "ws", 20, RWS_ABOVE(1)}, {0}}},
    {"P3c",
     "Learning of the model does not improve with K for WW: from K = 2 to 20 the p error falls by less than 5 %.",
     .statements = STATEMENTS{{"p_error", "ww", .K = 20, .K_right = 2, RWS_ABOVE(0.95)}, {0}}},
    {"P4", "The guides of VIMCO and REINFORCE do not improve with K (q errors fall by less than 5 %).",
     .statements = STATEMENTS{{"q_error", "vimco reinforce", .K = 20, .K_right = 2, RWS_ABOVE(0.95)}, {0}},
     .varies = true},
    {"P5", "Given “" SENTENCE "”, both of its parses are among the trees that WS (K = 20) draws most often.",
     .check = p5},
    {"P6", "None of the trees that VIMCO (K = 20) draws most often yields the sentence.", .check = p6, .varies = true},
    {"P7", "The rules of NP: WS (K = 20) comes within 0.1 of the truth, VIMCO is at least twice as far off.",
     .check = p7, .varies = true},
    {"P8",
     "Trees that grow too long: REINFORCE at least as often as VIMCO, VIMCO as WS and WW (mean share over all K).",
     .statements = STATEMENTS{CAPPED("reinforce", "vimco"), CAPPED("vimco", "ws"), CAPPED("vimco", "ww"), {0}},
     .varies = true},
    {"P9", "Proposals of WW (K = 20) rarely are parse trees of the sentence: less than a tenth of its draws.",
     .check = p9},
    {0},
};

/* ---- runs */

#define RUNS(seeds, every)                                                           \
    RWS_RUNS("pcfg", "reinforce vimco ws ww", "2 5 10 20", seeds, "2000", every, "") \
    RWS_RUNS("pcfg", "vimco", "2 5 10 20", seeds, "2000", every, "set vimco.vimco_no_logK 1\n")

static const char sweep[] = RUNS("1-10", "10"), quick[] = RUNS("1-3", "20");

static const rws_result_key where[] = {{"model", "pcfg"}, {0}};

const rws_experiment rws_experiment_pcfg = {
    .name = "pcfg",
    .help = "probabilistic grammar: WS, WW, VIMCO, REINFORCE; trees and rules",
    .sweep = sweep,
    .quick = quick,
    .iterations = 2000,
    .where = where,
    .variants = rws_vimco_variants,
    .figures = figures,
    .claims = claims,
};
