/* em.c - expectation and maximisation: the reference for models whose posterior can be summed over exactly.
 *
 * The model does the step itself (rws_model.em); there are no particles, and the guide is left alone.
 */
#include "estimator/estimator.h"

static const char *refuses(const rws_model *model, const rws_setup *s)
{
    (void)s;
    return model->em ? NULL : "it has no exact sums over its choices";
}

const rws_estimator rws_estimator_em = {
    .name = "em",
    .help = "expectation-maximisation, exact: theta alone, where a model can sum over all choices",
    .settings = (const rws_setting[]){{"em_data", "1000", 1, 1e7,
                                       "data in the sample that it learns from, where they are drawn fresh", true},
                                      {0}},
    .min_particles = 1,
    .refuses = refuses,
};
