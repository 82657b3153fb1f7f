#include "estimator/control.h"

#include "base/error.h"
#include "base/vecmath.h"

#include <string.h>

const char *rws__control_refuses(const rws_model *model, const rws_setup *s)
{
    if (model->relaxed && s->relaxed_categories) return NULL;
    return "it needs a single choice that can be relaxed, and this model has none (a program that branches on its "
           "choices cannot be run on a mixture of them)";
}

void rws__control_prepare(const rws_method *m, rws_proposal *proposal)
{
    proposal->only_site = m->setup->relaxed_site;
}

void rws__control_sides(rws_path *path, void *method)
{
    const rws_setup *s = ((const rws_method *)method)->setup;
    const char      *site = s->relaxed_site;
    const int        C = s->relaxed_categories;
    rws__programs(path);
    const rws_var log_pi = rws__path_noted(path, RWS_NOTE_LOG_PI);
    if (!log_pi.id) rws_give_up(path, "The guide does not draw site \"%s\", which the model relaxes.", site);
    if (rws_dim(path, log_pi) != C)
        rws_give_up(path, "Site \"%s\" is a choice of %d in the guide, but rws_setup_relaxed was given %d.", site,
                    rws_dim(path, log_pi), C);
}

/* Outputs of the program: v(g) and v(g~) of every control variate, log q(z), and the derivatives of all of these. */
enum { LOG_Q = 2 * RWS_CONTROLS, DERIVATIVES };

static int v_at(int i)
{
    return 2 * i;
}

static int v_tilde_at(int i)
{
    return 2 * i + 1;
}

void rws__control_program(rws_path *path, void *method)
{
    const rws_method   *m = method;
    const rws_controls *c = m->own;
    rws__control_sides(path, method);
    for (int i = 0; i < c->n; i++) {
        const rws_control *one = &c->list[i];
        rws__path_output(path, v_at(i), one->v(path, m, one, rws__path_noted(path, RWS_NOTE_G)));
        rws__path_output(path, v_tilde_at(i), one->v(path, m, one, rws__path_noted(path, RWS_NOTE_G_TILDE)));
    }
    rws__path_output(path, LOG_Q,
                     rws_pick(path, rws__path_noted(path, RWS_NOTE_LOG_PI), rws__path_noted(path, RWS_NOTE_Z)));
}

static double scale_of(const rws_control *c)
{
    return c->scale ? (double)c->scale->value[0] : 1;
}

/* Computes c of every datum at this scale (`of`) and its derivatives by the v_k (`by`). A row is one particle, since g is
 * continuous. */
static void reduce(const rws_control *control, double scale, const rws_scores *s, const double *v, double *by,
                   double *of)
{
    if (!control->log_mean_exp) {
        for (int i = 0; i < s->n; i++) by[i] = scale / s->K;
        for (int d = 0; d < s->B; d++) {
            double c = 0;
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) c += v[i];
            of[d] = scale * c / s->K;
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
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) by[i] *= scale / total;
        of[d] = scale * (of[d] + log(total / s->K));
    }
}

void rws__control_weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const rws_controls *controls = m->own;
    double             *c = s->work[0], *total = s->work[1]; /* a number per datum; B <= n */
    rws__weigh(s, share, tally);
    for (int d = 0; d < s->B; d++) total[d] = 0;
    for (int k = 0; k < controls->n; k++) {
        double      *by = s->coef_out[v_at(k)], *by_tilde = s->coef_out[v_tilde_at(k)];
        const double scale = scale_of(&controls->list[k]);
        reduce(&controls->list[k], scale, s, s->out[v_at(k)], by, c);
        reduce(&controls->list[k], scale, s, s->out[v_tilde_at(k)], by_tilde, c);
        for (int d = 0; d < s->B; d++) {
            const double counts = s->L[d] > -INFINITY ? share : 0;
            total[d] += c[d];
            for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) by[i] *= counts, by_tilde[i] *= -counts;
        }
    }
    for (int d = 0; d < s->B; d++) {
        const bool possible = s->L[d] > -INFINITY;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
            s->coef_q[i] = possible ? share * (s->L[d] - total[d]) - s->coef_p[i] : 0;
    }
}

/* Returns sum_k (dc/dv_k) dv_k at scale 1. by_dv holds dc/dv at scale 1 and becomes `times` it, the derivative of `times`
 * that sum by dv; its derivative by v is added to by_v. */
static double derivative(const rws_control *control, const double *dv, int first, int end, double times, double *by_v,
                         double *by_dv)
{
    double total = 0;
    for (int i = first; i < end; i++) total += by_dv[i] * dv[i];
    for (int i = first; i < end; i++) {
        /* weights of a log-mean-exp move with v: d w_k = w_k (dv_k - sum_j w_j dv_j) */
        if (control->log_mean_exp) by_v[i] += times * by_dv[i] * (dv[i] - total);
        by_dv[i] *= times;
    }
    return total;
}

/* Coefficients of one control variate in the second backward. `moved` is s of control.h for each datum. Returns the
 * derivative of -J by its scale, which is not 0 where the scale is; so everything is computed at scale 1 first. */
static double second_of(const rws_control *control, rws_scores *s, double share, int at, const double *moved)
{
    const int    v = v_at(at), v_tilde = v_tilde_at(at), dv = DERIVATIVES + v, dv_tilde = DERIVATIVES + v_tilde;
    double     **coef = s->coef_out, *c_tilde = s->work[1], by_scale = 0;
    const double scale = scale_of(control);
    reduce(control, 1, s, s->out[v], coef[dv], c_tilde); /* for the derivatives; c is overwritten below */
    reduce(control, 1, s, s->out[v_tilde], coef[dv_tilde], c_tilde);
    memset(coef[v], 0, (size_t)s->n * sizeof(double));
    /* the coefficients of minus the bracket of control.h, because steps ascend and J is to fall */
    for (int d = 0; d < s->B; d++) {
        const int    first = (int)s->start[d], end = (int)s->start[d + 1];
        const double counts = s->L[d] == -INFINITY ? 0 : share;
        for (int i = first; i < end; i++) coef[v_tilde][i] = counts * moved[d] * scale * coef[dv_tilde][i];
        const double dc = derivative(control, s->out[dv], first, end, -counts * scale, coef[v], coef[dv]);
        const double dc_tilde =
            derivative(control, s->out[dv_tilde], first, end, counts * scale, coef[v_tilde], coef[dv_tilde]);
        by_scale += counts * (moved[d] * c_tilde[d] - dc + dc_tilde);
    }
    return by_scale;
}

rws_status rws__control_extend(const rws_method *m, rws_engine *e, const float *direction, rws_error *err)
{
    const rws_controls *c = m->own;
    for (int i = 0; i < c->n; i++) {
        RWS_TRY(rws__engine_tangent(e, v_at(i), DERIVATIVES + v_at(i), RWS_BIT(RWS_PHI), direction, err));
        RWS_TRY(rws__engine_tangent(e, v_tilde_at(i), DERIVATIVES + v_tilde_at(i), RWS_BIT(RWS_PHI), direction, err));
    }
    return rws__engine_tangent(e, LOG_Q, DERIVATIVES + LOG_Q, RWS_BIT(RWS_PHI), direction, err);
}

void rws__control_weigh_second(const rws_method *m, rws_scores *s, double share, float *gradient)
{
    const rws_controls *c = m->own;
    const size_t        bytes = (size_t)s->n * sizeof(double);
    memset(s->coef_p, 0, bytes);
    memset(s->coef_q, 0, bytes);
    memset(s->coef_r, 0, bytes);
    memset(s->coef_out[LOG_Q], 0, bytes);
    memset(s->coef_out[DERIVATIVES + LOG_Q], 0, bytes);
    double *moved = s->work[0];
    for (int d = 0; d < s->B; d++) {
        double sum = 0;
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) sum += s->out[DERIVATIVES + LOG_Q][i];
        moved[d] = sum;
    }
    for (int i = 0; i < c->n; i++) {
        const double by_scale = second_of(&c->list[i], s, share, i, moved);
        if (c->list[i].scale && gradient) gradient[c->list[i].scale->offset] += (float)by_scale;
    }
}

void rws__control_remember(rws_method *m, const rws_tally *tally)
{
    (void)tally;
    const rws_controls *c = m->own;
    for (int i = 0; i < c->n; i++) {
        const rws_control *one = &c->list[i];
        float             *log_temperature = one->log_temperature ? rws_param_values(one->log_temperature) : NULL;
        if (log_temperature && *log_temperature < one->log_coldest) *log_temperature = one->log_coldest;
    }
}
