/* air.c - attend, infer, repeat: WW and VIMCO by the number of particles; claims A1 to A5. */
#include "paper/air.h"
#include "paper/compare.h"
#include "paper/panels.h"

#include <math.h>
#include <stdlib.h>

static const char *const methods[] = {"vimco", "ww", NULL};

static rws_status draw(const rws_query *q, const char *path, rws_error *err)
{
    return rws_panels_three(q, "Attend, infer, repeat", methods, path, err);
}

const rws_paper_figure rws_air_figures[] = {
    {"air", "log evidence from a tenth of training on; final log evidence and KL(q || p) over the number of particles",
     draw,
     "Does training with VIMCO vary more; does the evidence of WW rise with K and that of VIMCO up to K = 10 only; has "
     "WW better guides?",
     "A1a A1b A2 A3 A4a A4b A5a A5b"},
    {0},
};

/* ---- claims: higher evidence and lower KL are better */

static rws_quantity final_of(const char *method, int K, const char *metric)
{
    return (rws_quantity){method, K, metric};
}

static void a1_time(const rws_query *q, rws_finding *f)
{
    rws_below_at_every_K(q, f, "ww", "vimco", "log_evidence", RWS_WOBBLE, false);
}

/* The standard deviation over seeds of a number at the end of training; NaN for fewer than three seeds. */
static double deviation(const rws_query *q, rws_quantity a, int *seeds)
{
    int     n;
    double *v = rws_quantity_values(q, a, &n), mean = 0, squares = 0;
    for (int i = 0; i < n; i++) mean += v[i] / n;
    for (int i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    free(v);
    *seeds = n;
    return n < 3 ? NAN : sqrt(squares / (n - 1));
}

/* Standard deviations over seeds differ at a level of 5 % if their ratio is beyond the quantile of F for n - 1 and n - 1 degrees
 * of freedom, which for 3, 4, 5 and 10 seeds has the root 4.4, 3.1, 2.6 and 1.8. */
static void less_spread(const rws_query *q, rws_finding *f, const char *metric)
{
    const rws_particles p = rws_query_particles(q);
    for (int k = 0; k < p.n; k++) {
        int          n_ww, n_vimco;
        const double ww = deviation(q, final_of("ww", p.K[k], metric), &n_ww),
                     vimco = deviation(q, final_of("vimco", p.K[k], metric), &n_vimco);
        const int    n = n_ww < n_vimco ? n_ww : n_vimco;
        const double least = n >= 10 ? 1.8 : n >= 5 ? 2.6 : n == 4 ? 3.1 : 4.4;
        rws_finding_seeds(f, n);
        if (n < 3)
            rws_finding_add(f, RWS_UNKNOWN, "K = %d: %d %s; a standard deviation needs three", p.K[k], n,
                            n == 1 ? "seed" : "seeds");
        else
            rws_finding_add(f,
                            vimco > least * ww   ? RWS_HOLDS
                            : ww > least * vimco ? RWS_FAILS
                                                 : RWS_UNDECIDED,
                            "K = %d: standard deviation over seeds WW %.3g, VIMCO %.3g", p.K[k], ww, vimco);
    }
}

static void a1_seeds(const rws_query *q, rws_finding *f)
{
    less_spread(q, f, "final_log_evidence");
}

/* Each step of K must raise the method's number (sign 1) or lower it (-1). With fewer than five seeds the trend decides,
 * if the medians go the same way at each step. */
static void moves_with_particles(const rws_query *q, rws_finding *f, const char *method, const char *metric, int sign)
{
    const rws_particles p = rws_query_particles(q);
    bool                few = false, agree = true;
    for (int k = 0; k < p.n; k++) few = few || rws_query_count(q, f, method, p.K[k]) < 5;
    for (int k = 1; k < p.n; k++) {
        const rws_quantity before = final_of(method, p.K[k - 1], metric), after = final_of(method, p.K[k], metric);
        const rws_compared c = sign > 0 ? rws_below(q, f, before, 0, after) : rws_below(q, f, after, 0, before);
        agree = agree && c.a < c.b;
        rws_finding_add(f, few && c.seeds ? RWS_HOLDS : c.verdict, "K = %d: %.5g, K = %d: %.5g (p = %.2g)", p.K[k - 1],
                        sign > 0 ? c.a : c.b, p.K[k], sign > 0 ? c.b : c.a, c.p);
    }
    if (p.n < 2) f->verdict = RWS_UNKNOWN;
    if (!few || p.n < 2) return;
    const rws_trend t = rws_trend_of(q, f, final_of(method, 0, metric), p.K, p.n, sign);
    rws_finding_add(f, t.verdict == RWS_HOLDS && !agree ? RWS_UNDECIDED : t.verdict, "trend over %d %s (p = %.2g)",
                    t.seeds, t.seeds == 1 ? "seed" : "seeds", t.p);
}

static void a2(const rws_query *q, rws_finding *f)
{
    moves_with_particles(q, f, "ww", "final_log_evidence", 1);
}

static void a3(const rws_query *q, rws_finding *f)
{
    static const int K[] = {2, 5, 10, 20};
    for (int k = 1; k < 4; k++) {
        const rws_quantity few = final_of("vimco", K[k - 1], "final_log_evidence");
        const rws_quantity many = final_of("vimco", K[k], "final_log_evidence");
        const rws_compared c = k < 3 ? rws_below(q, f, few, 0, many) : rws_below(q, f, many, 0, few);
        rws_finding_add(f, c.verdict, "K = %d: %.5g, K = %d: %.5g (p = %.2g)", K[k - 1], k < 3 ? c.a : c.b, K[k],
                        k < 3 ? c.b : c.a, c.p);
    }
}

static void a4_lower(const rws_query *q, rws_finding *f)
{
    rws_below_at_every_K(q, f, "ww", "vimco", "final_kl", RWS_AT_END, false);
}

static void a4_spread(const rws_query *q, rws_finding *f)
{
    less_spread(q, f, "final_kl");
}

static void a5_vimco(const rws_query *q, rws_finding *f)
{
    const rws_compared c = rws_below(q, f, final_of("vimco", 10, "final_kl"), 0, final_of("vimco", 20, "final_kl"));
    rws_finding_add(f, c.verdict, "VIMCO: %.4g with K = 10, %.4g with 20 (p = %.2g)", c.a, c.b, c.p);
}

static void a5_ww(const rws_query *q, rws_finding *f)
{
    moves_with_particles(q, f, "ww", "final_kl", -1);
}

const rws_claim rws_air_claims[] = {
    {"A1a", "Training curves of VIMCO vary more than those of WW over time (second half, without the trend).", a1_time,
     true},
    {"A1b", "Training of VIMCO varies more than that of WW over seeds.", a1_seeds, true},
    {"A2", "WW: the final log evidence rises with every step of K.", a2, false},
    {"A3", "VIMCO: the final log evidence rises up to K = 10, and no further.", a3, true},
    {"A4a", "At every K, WW has a lower final KL(q || p) than VIMCO.", a4_lower, true},
    {"A4b", "At every K, the final KL(q || p) of WW varies less over seeds than that of VIMCO.", a4_spread, true},
    {"A5a", "KL(q || p) grows for VIMCO from K = 10 to 20.", a5_vimco, true},
    {"A5b", "KL(q || p) falls for WW with every step of K.", a5_ww, false},
    {0},
};

#define FULL(methods, more)                                          \
    RWS_RUNS("air", methods, "2 5 10 20", "1-3", "2000000", "10000", \
             "eval-particles 100\nfinal 5000 10000\nlr 1e-5,400000:/3,1000000:/3\n" more)

static const char sweep[] = FULL("ww vimco", "") FULL("vimco", "set vimco.vimco_air_ref 1\n");
static const char middle[] = RWS_RUNS("air", "ww vimco", "2 5 10 20", "1-2", "50000", "1000",
                                      "eval-particles 100\nfinal 5000 1000\nlr 1e-5,400000:/3,1000000:/3\n");
static const char quick[] =
    RWS_RUNS("air", "ww vimco", "2 5 10 20", "1", "2000", "200", "eval-particles 100\nfinal 100 100\n");

const int rws_air_order[] = {5, 20, 2, 10, 0};

static const rws_result_key where[] = {{"model", "air"}, {"air_gray", "0"}, {0}};
static const rws_query_own  as_printed[] = {{"vimco", "vimco_air_ref", "0"}, {0}};
static const rws_query_own  reference[] = {{"vimco", "vimco_air_ref", "1"}, {0}};
static const rws_variant    variants[] = {{NULL, as_printed}, {"VIMCO as in the code", reference}, {0}};

const rws_experiment rws_experiment_air = {
    .name = "air",
    .help = "attend, infer, repeat: WW and VIMCO on images with several digits",
    .sweep = sweep,
    .quick = quick,
    .middle = middle,
    .order = rws_air_order,
    .rate_stays = true,
    .where = where,
    .variants = variants,
    .figures = rws_air_figures,
    .claims = rws_air_claims,
};
