#include "estimator/control.h"

#include "base/error.h"
#include "base/vecmath.h"

#include <string.h>

const char *rws_control_refuses(const rws_model *model, const rws_setup *s)
{
    if (model->relaxed && s->relaxed_categories) return NULL;
    return "it needs a single choice that can be relaxed, and this model has none (a program that branches on its "
           "choices cannot be run on a mixture of them)";
}

void rws_control_program(rws_path *path, const rws_method *m,
                         rws_var (*v)(rws_path *path, const rws_method *m, rws_var g))
{
    rws_programs(path, (void *)m);
    rws_path_output(path, RWS_OUT_V, v(path, m, rws_path_noted(path, RWS_NOTE_G)));
    rws_path_output(path, RWS_OUT_V_TILDE, v(path, m, rws_path_noted(path, RWS_NOTE_G_TILDE)));
    rws_path_output(path, RWS_OUT_LOG_Q,
                    rws_pick(path, rws_path_noted(path, RWS_NOTE_LOG_PI), rws_path_noted(path, RWS_NOTE_Z)));
}

/* For each datum (every row is one particle: g is continuous): c in `of`, and its derivatives by the v_k in `by`. */
static void reduce(rws_reduction how, const rws_scores *s, const double *v, double *by, double *of)
{
    if (!how.log_mean_exp) {
        for (int i = 0; i < s->n; i++) by[i] = how.scale / s->K;
        for (int d = 0; d < s->B; d++) {
            double c = 0;
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) c += v[i];
            of[d] = how.scale * c / s->K;
        }
        return;
    }
    for (int d = 0; d < s->B; d++) {
        double top = -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) top = v[i] > top ? v[i] : top;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) by[i] = v[i] - top;
        of[d] = top;
    }
#pragma omp simd
    for (int i = 0; i < s->n; i++) by[i] = exp(by[i]);
    for (int d = 0; d < s->B; d++) {
        double total = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) total += by[i];
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) by[i] *= how.scale / total;
        of[d] = how.scale * (of[d] + log(total / s->K));
    }
}

void rws_control_weigh(rws_reduction how, rws_scores *s, double share, rws_tally *tally)
{
    double *c = s->work[0]; /* a number per datum, and data have rows */
    rws_weigh(s, share, tally);
    reduce(how, s, s->out[RWS_OUT_V], s->coef_out[RWS_OUT_V], c);
    reduce(how, s, s->out[RWS_OUT_V_TILDE], s->coef_out[RWS_OUT_V_TILDE], c);
    for (int d = 0; d < s->B; d++) {
        const bool possible = s->L[d] > -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            s->coef_q[i] = possible ? share * (s->L[d] - c[d]) - s->coef_p[i] : 0;
            s->coef_out[RWS_OUT_V][i] *= possible ? share : 0;
            s->coef_out[RWS_OUT_V_TILDE][i] *= possible ? -share : 0;
        }
    }
}

/* Returns sum_k (dc/dv_k) dv_k. by_dv holds dc/dv and becomes sign times it, the derivative of sign times that sum by dv;
 * its derivative by v is added to by_v. */
static double derivative(rws_reduction how, const double *dv, int first, int end, double sign, double *by_v,
                         double *by_dv)
{
    double total = 0;
    for (int i = first; i < end; i++) total += by_dv[i] * dv[i];
    for (int i = first; i < end; i++) {
        /* weights of a log-mean-exp move with v: d w_k = w_k (dv_k - sum_j w_j dv_j) */
        if (how.log_mean_exp) by_v[i] += sign * by_dv[i] * (dv[i] - total / how.scale);
        by_dv[i] *= sign;
    }
    return total;
}

rws_status rws_control_extend(rws_engine *e, const float *direction, rws_error *err)
{
    const int from[] = {RWS_OUT_V, RWS_OUT_V_TILDE, RWS_OUT_LOG_Q};
    for (int i = 0; i < 3; i++)
        RWS_TRY(rws_engine_tangent(e, from[i], RWS_OUT_DV + i, RWS_BIT(RWS_PHI), direction, err));
    return RWS_OK;
}

double rws_control_weigh_second(rws_reduction how, rws_scores *s, double share)
{
    double     **coef = s->coef_out;
    double       scale_total = 0;
    const size_t bytes = (size_t)s->n * sizeof(double);
    memset(s->coef_p, 0, bytes);
    memset(s->coef_q, 0, bytes);
    memset(s->coef_r, 0, bytes);
    memset(coef[RWS_OUT_V], 0, bytes);
    memset(coef[RWS_OUT_LOG_Q], 0, bytes);
    memset(coef[RWS_OUT_D_LOG_Q], 0, bytes);
    double *c = s->work[0], *c_tilde = s->work[1];
    reduce(how, s, s->out[RWS_OUT_V], coef[RWS_OUT_DV], c);
    reduce(how, s, s->out[RWS_OUT_V_TILDE], coef[RWS_OUT_DV_TILDE], c_tilde);
    /* -J rises along these: minus the bracket of control.h */
    for (int d = 0; d < s->B; d++) {
        const int    first = (int)s->start[d], end = (int)s->start[d + 1];
        const double counts = s->L[d] == -INFINITY ? 0 : share;
        double       moved = 0; /* s of control.h */
        for (int i = first; i < end; i++) moved += s->out[RWS_OUT_D_LOG_Q][i];
        for (int i = first; i < end; i++) coef[RWS_OUT_V_TILDE][i] = counts * moved * coef[RWS_OUT_DV_TILDE][i];
        const double dc = derivative(how, s->out[RWS_OUT_DV], first, end, -counts, coef[RWS_OUT_V], coef[RWS_OUT_DV]);
        const double dc_tilde = derivative(how, s->out[RWS_OUT_DV_TILDE], first, end, counts, coef[RWS_OUT_V_TILDE],
                                           coef[RWS_OUT_DV_TILDE]);
        scale_total += counts * (moved * c_tilde[d] - dc + dc_tilde) / how.scale;
    }
    return scale_total;
}
