/* air.c - attend, infer, repeat: WW and VIMCO by the number of particles; claims A1 to A5. */
#include "paper/panels.h"
#include "paper/paper.h"

#include <math.h>
#include <stdlib.h>

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws_panels_three(q, "Attend, infer, repeat", methods, path, err);
}

static const rws_paper_figure figures[] = {
    {"air", "log evidence over the iterations; final log evidence and KL(q || p) over the number of particles", draw},
    {0},
};

/* ---- claims: higher evidence and lower KL are better */

/* The variation of a method's curves, as means over the evaluations and over K: the distance between the quartiles over
 * seeds, and the step from one evaluation to the next in the second half. */
static void variation(const rws_query *q, rws_finding *f, const char *method, double *seeds, double *steps)
{
    const rws_particles p = rws_query_particles(q);
    int                 n_seeds = 0, n_steps = 0;
    *seeds = *steps = 0;
    for (int k = 0; k < p.n; k++) {
        int                n;
        const rws_result **runs = rws_query_runs(q, method, p.K[k], &n);
        rws_gathered       g;
        rws_gather(runs, n, "log_evidence", RWS_X_ITERATION, &g);
        for (int i = 0; i < g.n && g.n_runs > 1; i++) *seeds += g.high[i] - g.low[i], n_seeds++;
        rws_gathered_release(&g);
        for (int r = 0; r < n; r++) {
            const rws_history *s = rws_result_history(runs[r], "log_evidence");
            for (int i = s ? s->n / 2 + 1 : 1; s && i < s->n; i++)
                *steps += fabs(s->values[i] - s->values[i - 1]), n_steps++;
        }
        rws_query_count(q, f, method, p.K[k]);
        free(runs);
    }
    *seeds = n_seeds ? *seeds / n_seeds : NAN;
    *steps = n_steps ? *steps / n_steps : NAN;
}

static void a1(const rws_query *q, rws_finding *f)
{
    double ww[2], vimco[2];
    variation(q, f, "ww", &ww[0], &ww[1]);
    variation(q, f, "vimco", &vimco[0], &vimco[1]);
    if (isnan(ww[0]) || isnan(vimco[0])) f->verdict = RWS_UNKNOWN; /* one seed has no quartiles */
    rws_finding_add(
        f, vimco[0] > ww[0] && vimco[1] > ww[1],
        "between quartiles over seeds: VIMCO %.3g, WW %.3g nats; from one evaluation to the next: %.3g, %.3g", vimco[0],
        ww[0], vimco[1], ww[1]);
}

/* The final values of a method over K, and whether they rise (direction 1) or fall (-1) with every step. */
static bool is_monotone(const rws_query *q, rws_finding *f, const char *method, const char *metric, int direction)
{
    const rws_particles p = rws_query_particles(q);
    double              before = direction > 0 ? -INFINITY : INFINITY;
    bool                monotone = p.n > 1;
    for (int k = 0; k < p.n; k++) {
        const double now = rws_query_final(q, f, method, p.K[k], metric);
        monotone = monotone && direction * (now - before) > 0;
        before = now;
        rws_finding_add(f, true, "K = %d: %.5g", p.K[k], now);
    }
    return monotone;
}

static void a2(const rws_query *q, rws_finding *f)
{
    const bool rises = is_monotone(q, f, "ww", "final_log_evidence", 1);
    rws_finding_add(f, rises, "%s", rises ? "rising" : "not rising throughout");
}

static void a3(const rws_query *q, rws_finding *f)
{
    double v[4];
    for (int k = 0; k < 4; k++)
        v[k] = rws_query_final(q, f, "vimco", (const int[]){2, 5, 10, 20}[k], "final_log_evidence");
    rws_finding_add(f, v[0] < v[1] && v[1] < v[2] && v[3] <= v[2], "K = 2, 5, 10, 20: %.5g, %.5g, %.5g, %.5g", v[0],
                    v[1], v[2], v[3]);
}

static void a4(const rws_query *q, rws_finding *f)
{
    const rws_particles p = rws_query_particles(q);
    for (int k = 0; k < p.n; k++) {
        const rws_quartiles ww = rws_query_spread(q, f, "ww", p.K[k], "final_kl");
        const rws_quartiles vimco = rws_query_spread(q, f, "vimco", p.K[k], "final_kl");
        const bool          narrow = ww.n_runs < 2 || ww.high - ww.low < vimco.high - vimco.low;
        rws_finding_add(f, ww.median < vimco.median && narrow, "K = %d: WW %.4g (%.4g…%.4g), VIMCO %.4g (%.4g…%.4g)",
                        p.K[k], ww.median, ww.low, ww.high, vimco.median, vimco.low, vimco.high);
    }
}

static void a5(const rws_query *q, rws_finding *f)
{
    const double v10 = rws_query_final(q, f, "vimco", 10, "final_kl"),
                 v20 = rws_query_final(q, f, "vimco", 20, "final_kl");
    rws_finding_add(f, v20 > v10, "VIMCO: %.4g with K = 10, %.4g with 20; WW:", v10, v20);
    const bool falls = is_monotone(q, f, "ww", "final_kl", -1);
    rws_finding_add(f, falls, "%s", falls ? "falling" : "not falling throughout");
}

static const rws_claim claims[] = {
    {"A1", "Training curves of VIMCO vary more than those of WW, over seeds and over time.", a1, true},
    {"A2", "WW: the final log evidence rises with every step of K.", a2, false},
    {"A3", "VIMCO: the final log evidence rises up to K = 10, and no further.", a3, true},
    {"A4", "At every K, WW has a lower final KL(q || p) than VIMCO, and less spread.", a4, true},
    {"A5", "KL(q || p) grows for VIMCO from K = 10 to 20, and falls for WW with every step of K.", a5, true},
    {0},
};

#define FULL(methods, more)                                          \
    RWS_RUNS("air", methods, "2 5 10 20", "1-3", "2000000", "10000", \
             "final 5000 10000\nlr 1e-5,400000:/3,1000000:/3\n" more)

static const char sweep[] = FULL("ww vimco", "") FULL("vimco", "set vimco.vimco_air_ref 1\n");
static const char quick[] = RWS_RUNS("air", "ww vimco", "2 5 10 20", "1", "2000", "200", "final 100 100\n");

static const rws_result_key where[] = {{"model", "air"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_air_ref", "0"}, {0}};
static const rws_query_own  reference[] = {{"vimco", "vimco_air_ref", "1"}, {0}};
static const rws_variant    variants[] = {{NULL, as_printed}, {"VIMCO as in the code", reference}, {0}};

const rws_experiment rws_experiment_air = {
    .name = "air",
    .help = "attend, infer, repeat: WW and VIMCO on images with several digits",
    .sweep = sweep,
    .quick = quick,
    .where = where,
    .variants = variants,
    .figures = figures,
    .claims = claims,
};
