/* control.h - what rebar and relax share: control variates on perturbed log-probabilities.
 *
 * With g the perturbed log-probabilities behind a choice, g~ a second draw given the choice, and c a number per datum
 * made of one number v_k per particle (or the sum of two such numbers),
 *
 *     g_phi = (L - c(g~)) sum_k grad log q(z_k) + grad c(g) - grad c(g~) - sum_k w_k grad log q(z_k)
 *
 * is unbiased whatever c is. Its parameters rho minimise J = |g_phi|^2 / D, whose gradient is that of
 *
 *     (1/B) sum_x [ -s c(g~) + Dc(g) - Dc(g~) ],   D: derivative along u = 2 g_phi / D in phi,  s = sum_k D log q(z_k).
 *
 * An estimator of this kind differs from the others only in the control variates that its setup declares.
 */
#ifndef RWS_ESTIMATOR_CONTROL_H
#define RWS_ESTIMATOR_CONTROL_H

#include "estimator/iwae.h"

#define RWS_CONTROLS 2

/* One control variate: c = scale * mean_k v_k, or scale * log mean_k exp v_k. */
typedef struct rws_control {
    rws_var (*v)(rws_path *path, const rws_method *m, const struct rws_control *c, rws_var g);
    bool       log_mean_exp;
    rws_param *scale;           /* learned; NULL: 1 */
    rws_param *log_temperature; /* of a relaxation, learned; NULL: there is none */
    float      log_coldest;     /* the least value of log_temperature */
    rws_layer *net;             /* NULL: there is none */
} rws_control;

/* The type of rws_method.own: the control variate is the sum of these. */
typedef struct {
    int         n;
    rws_control list[RWS_CONTROLS];
} rws_controls;

/* The control variates of rebar.c and relax.c, added to a list. */
rws_status rws__controls_add_rebar(rws_controls *c, rws_setup *s, bool scaled, rws_error *err);
void       rws__controls_add_net(rws_controls *c, rws_setup *s);

const char *rws__control_refuses(const rws_model *model, const rws_setup *s);
void        rws__control_prepare(const rws_method *m, rws_proposal *proposal);
void        rws__control_sides(rws_path *path, void *method); /* guide and model, and checks what was drawn */
void        rws__control_program(rws_path *path, void *method);
void        rws__control_weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally);
rws_status  rws__control_extend(const rws_method *m, rws_engine *e, const float *direction, rws_error *err);
void        rws__control_weigh_second(const rws_method *m, rws_scores *s, double share, float *gradient);
void        rws__control_remember(rws_method *m, const rws_tally *tally);

/* The settings of rws__controls_add_rebar. */
#define RWS_REBAR_SETTINGS                                                                                      \
    {"rebar_tau", "1", 0.001, 100, "temperature of the relaxed bound at the beginning; it is learned"},         \
    {                                                                                                           \
        "rebar_coldest", "0.1", 0.001, 100, "and never falls below this: low temperatures make noisy gradients" \
    }

/* Everything but name, help, settings and setup. */
#define RWS_CONTROL_ESTIMATOR                                                          \
    .min_particles = 1, .n_phases = 1,                                                 \
    .phases = {{.mode = RWS_WAKE,                                                      \
                .drawing = RWS_GUMBEL,                                                 \
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),                    \
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI) | RWS_BIT(RWS_CONTROL), \
                .program = rws__control_program,                                       \
                .prepare = rws__control_prepare,                                       \
                .weigh = rws__control_weigh,                                           \
                .extend = rws__control_extend,                                         \
                .weigh_second = rws__control_weigh_second,                             \
                .second_gradients = RWS_BIT(RWS_CONTROL)}},                            \
    .refuses = rws__control_refuses, .remember = rws__control_remember

#endif
