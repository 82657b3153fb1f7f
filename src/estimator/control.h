/* control.h - what rebar and relax share: a control variate c on perturbed log-probabilities.
 *
 * With g the perturbed log-probabilities behind a choice, g~ a second draw given the choice, and c a number per datum
 * made of one number v_k per particle,
 *
 *     g_phi = (L - c(g~)) sum_k grad log q(z_k) + grad c(g) - grad c(g~) - sum_k w_k grad log q(z_k)
 *
 * is unbiased whatever c is. Its parameters rho minimise J = |g_phi|^2 / D, whose gradient is that of
 *
 *     (1/B) sum_x [ -s c(g~) + Dc(g) - Dc(g~) ],   D: derivative along u = 2 g_phi / D in phi,  s = sum_k D log q(z_k).
 */
#ifndef RWS_ESTIMATOR_CONTROL_H
#define RWS_ESTIMATOR_CONTROL_H

#include "estimator/iwae.h"

/* Outputs of a program with a control variate: v(g), v(g~), log q(z), and their derivatives. */
enum { RWS_OUT_V, RWS_OUT_V_TILDE, RWS_OUT_LOG_Q, RWS_OUT_DV, RWS_OUT_DV_TILDE, RWS_OUT_D_LOG_Q };

/* How the v_k of a datum make c. */
typedef struct {
    bool   log_mean_exp; /* else the mean */
    double scale;
} rws_reduction;

#define RWS_CONTROL_PHASE                                                                         \
    .mode = RWS_WAKE, .proposal = RWS_GUMBEL, .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI), \
    .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI) | RWS_BIT(RWS_CONTROL), .extend = rws_control_extend

const char *rws_control_refuses(const rws_model *model, const rws_setup *s);

/* Runs guide and model, then v on g and on g~. */
void rws_control_program(rws_path *path, const rws_method *m,
                         rws_var (*v)(rws_path *path, const rws_method *m, rws_var g));

void rws_control_weigh(rws_reduction how, rws_scores *s, double share, rws_tally *tally);

/* rws_phase.extend of both; and the coefficients of the second backward. Returns the derivative of -J by the scale of the
 * reduction. */
rws_status rws_control_extend(rws_engine *e, const float *direction, rws_error *err);
double     rws_control_weigh_second(rws_reduction how, rws_scores *s, double share);

#endif
