#include "estimator/control.h"

#include "base/error.h"

const char *rws_control_refuses(const rws_model *model, const rws_setup *s)
{
    if (model->relaxed && s->relaxed_categories) return NULL;
    return "it needs a single choice that can be relaxed, and this model has none (a program that branches on its "
           "choices "
           "cannot be run on a mixture of them)";
}

void rws_control_program(rws_run *r, const rws_method *m, rws_var (*v)(rws_run *r, const rws_method *m, rws_var g))
{
    rws_programs(r, (void *)m);
    rws_run_output(r, RWS_OUT_V, v(r, m, rws_run_noted(r, RWS_NOTE_G)));
    rws_run_output(r, RWS_OUT_V_TILDE, v(r, m, rws_run_noted(r, RWS_NOTE_G_TILDE)));
    rws_run_output(r, RWS_OUT_LOG_Q, rws_pick(r, rws_run_noted(r, RWS_NOTE_LOG_PI), rws_run_noted(r, RWS_NOTE_Z)));
}

/* c of rows first … end - 1 (every row is one particle: g is continuous), and its derivatives by them. */
static double reduce(rws_reduction how, const double *v, int first, int end, double *by)
{
    const int n = end - first;
    double    c = 0, top = -INFINITY;
    if (!how.log_mean_exp) {
        for (int i = first; i < end; i++) {
            c += v[i];
            if (by) by[i] = how.scale / n;
        }
        return how.scale * c / n;
    }
    for (int i = first; i < end; i++) top = v[i] > top ? v[i] : top;
    for (int i = first; i < end; i++) c += exp(v[i] - top);
    for (int i = first; by && i < end; i++) by[i] = how.scale * exp(v[i] - top) / c;
    return how.scale * (top + log(c / n));
}

void rws_control_weigh(rws_reduction how, rws_scores *s, double share, rws_tally *tally)
{
    rws_weigh(s, share, tally);
    for (int d = 0; d < s->B; d++) {
        const int first = (int)s->start[d], end = (int)s->start[d + 1];
        if (s->L[d] == -INFINITY) continue;
        reduce(how, s->out[RWS_OUT_V], first, end, s->coef_out[RWS_OUT_V]);
        const double signal = s->L[d] - reduce(how, s->out[RWS_OUT_V_TILDE], first, end, s->coef_out[RWS_OUT_V_TILDE]);
        for (int i = first; i < end; i++) {
            s->coef_q[i] = share * signal - s->coef_p[i];
            s->coef_out[RWS_OUT_V][i] *= share;
            s->coef_out[RWS_OUT_V_TILDE][i] *= -share;
        }
    }
}

/* sum_k (dc/dv_k) dv_k, and its derivatives by v and by dv. */
static double derivative(rws_reduction how, const double *v, const double *dv, int first, int end, double sign,
                         double *by_v, double *by_dv)
{
    double total = 0;
    reduce(how, v, first, end, by_dv);
    for (int i = first; i < end; i++) total += by_dv[i] * dv[i];
    for (int i = first; i < end; i++) {
        /* weights of a log-mean-exp move with v: d w_k = w_k (dv_k - sum_j w_j dv_j) */
        if (how.log_mean_exp) by_v[i] += sign * by_dv[i] * (dv[i] - total / how.scale);
        by_dv[i] *= sign;
    }
    return total;
}

rws_status rws_control_second(rws_engine *e, rws_reduction how, double share, const float *direction, float *gradient,
                              double *by_scale, rws_error *err)
{
    const int from[] = {RWS_OUT_V, RWS_OUT_V_TILDE, RWS_OUT_LOG_Q};
    for (int i = 0; i < 3; i++)
        RWS_TRY(rws_engine_tangent(e, from[i], RWS_OUT_DV + i, RWS_BIT(RWS_PHI), direction, err));

    rws_scores *s = rws_engine_scores(e);
    double    **coef = s->coef_out;
    double      scale_total = 0;
    for (int i = 0; i < s->n; i++) {
        s->coef_p[i] = s->coef_q[i] = s->coef_r[i] = 0;
        for (int j = 0; j < RWS_OUTPUTS; j++)
            if (coef[j]) coef[j][i] = 0;
    }
    /* -J rises along these: minus the bracket of control.h */
    for (int d = 0; d < s->B; d++) {
        const int first = (int)s->start[d], end = (int)s->start[d + 1];
        double    moved = 0; /* s of control.h */
        if (s->L[d] == -INFINITY) continue;
        for (int i = first; i < end; i++) moved += s->out[RWS_OUT_D_LOG_Q][i];
        const double c = reduce(how, s->out[RWS_OUT_V_TILDE], first, end, coef[RWS_OUT_V_TILDE]);
        for (int i = first; i < end; i++) coef[RWS_OUT_V_TILDE][i] *= share * moved;
        const double dc = derivative(how, s->out[RWS_OUT_V], s->out[RWS_OUT_DV], first, end, -share, coef[RWS_OUT_V],
                                     coef[RWS_OUT_DV]);
        const double dc_tilde = derivative(how, s->out[RWS_OUT_V_TILDE], s->out[RWS_OUT_DV_TILDE], first, end, share,
                                           coef[RWS_OUT_V_TILDE], coef[RWS_OUT_DV_TILDE]);
        scale_total += share * (moved * c - dc + dc_tilde) / how.scale;
    }
    if (by_scale) *by_scale += scale_total;
    rws_engine_backward(e, RWS_BIT(RWS_CONTROL), gradient);
    return RWS_OK;
}
