/* relaxed.h - what concrete and dvae share: the pathwise gradient of the bound of a relaxed model, whose choice is a point
 * on the simplex. The relaxed model is another model; evaluation is of the real one. */
#ifndef RWS_ESTIMATOR_RELAXED_H
#define RWS_ESTIMATOR_RELAXED_H

#include "estimator/control.h"

const char *rws__relaxed_refuses(const rws_model *model, const rws_setup *s);
void        rws__relaxed_program(rws_path *path, void *method);
void        rws__relaxed_weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally);

/* Everything but name, help, settings and setup. */
#define RWS_RELAXED_ESTIMATOR(how, prepared)                        \
    .min_particles = 1, .n_phases = 1,                              \
    .phases = {{.mode = RWS_WAKE,                                   \
                .drawing = how,                                     \
                .pathwise = true,                                   \
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI), \
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI),     \
                .program = rws__relaxed_program,                    \
                .prepare = prepared,                                \
                .weigh = rws__relaxed_weigh}},                      \
    .refuses = rws__relaxed_refuses

#endif
