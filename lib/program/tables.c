/* tables.c - what a run can be made of, for callers that list it. */
#include "optim/optim.h"
#include "program/plugin.h"
#include "program/program.h"

/* Entry i of a NULL-terminated table; NULL beyond its end. */
#define AT(table, i, found)                              \
    for (int at_ = 0; (i) >= 0 && (table)[at_]; at_++) { \
        if (at_ == (i)) (found) = (table)[at_];          \
    }

const rws_model *rws_model_at(int i)
{
    const rws_model *model = NULL;
    AT(rws_models, i, model);
    return model;
}

bool rws_method_at(int i, rws_method_info *out)
{
    const rws_estimator *e = NULL;
    AT(rws_estimators, i, e);
    if (e && out) *out = (rws_method_info){e->name, e->help, e->settings, e->min_particles, e->when};
    return e != NULL;
}

bool rws_optimiser_at(int i, rws_optimiser_info *out)
{
    const rws_optimiser *o = NULL;
    AT(rws_optimisers, i, o);
    if (o && out) *out = (rws_optimiser_info){o->name, o->help};
    return o != NULL;
}
