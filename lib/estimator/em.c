/* em.c - expectation and maximisation: the reference for models whose posterior can be summed over exactly.
 *
 * The model does the step itself (rws_model.em); there are no particles, and the guide is left alone.
 */
#include "estimator/estimator.h"

#include "base/error.h"

typedef struct {
    int n_data;
} settings;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of em");
    set->n_data = rws_setup_int(s, "em_data");
    return RWS_OK;
}

static rws_status step(const rws_method *m, rws_random *random, rws_error *err)
{
    const settings *set = m->own;
    return RWS_CALL_MODEL(m->model, em, err, m->state, set->n_data, random);
}

static const char *refuses(const rws_model *model, const rws_setup *s)
{
    (void)s;
    return model->em ? NULL : "it has no exact sums over its choices";
}

const rws_estimator rws_estimator_em = {
    .name = "em",
    .help = "expectation-maximisation, exact: theta alone, where a model can sum over all choices",
    .when = "For models that can sum over all choices, such as pcfg: the standard that others are measured by.",
    .settings = (const rws_setting[]){{"em_data", "1000", 1, 1e7,
                                       "data in the sample that it learns from, where they are drawn fresh", true},
                                      {0}},
    .min_particles = 1,
    .setup = setup,
    .refuses = refuses,
    .step = step,
};
