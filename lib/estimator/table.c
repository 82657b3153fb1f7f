/* table.c - every estimator, and how one is put to work on a model. */
#include "base/error.h"
#include "estimator/estimator.h"

#include <string.h>

extern const rws_estimator rws_estimator_ws, rws_estimator_ww, rws_estimator_wws, rws_estimator_dww,
    rws_estimator_reinforce, rws_estimator_rloo, rws_estimator_nvil, rws_estimator_vimco, rws_estimator_rebar,
    rws_estimator_relax, rws_estimator_muprop, rws_estimator_concrete, rws_estimator_dvae, rws_estimator_em;

const rws_estimator *const rws_estimators[] = {
    &rws_estimator_ws,    &rws_estimator_ww,        &rws_estimator_wws,
    &rws_estimator_dww,   &rws_estimator_reinforce, &rws_estimator_rloo,
    &rws_estimator_nvil,  &rws_estimator_vimco,     &rws_estimator_rebar,
    &rws_estimator_relax, &rws_estimator_muprop,    &rws_estimator_concrete,
    &rws_estimator_dvae,  &rws_estimator_em,        NULL,
};

const rws_estimator *rws__estimator_find(const char *name)
{
    for (int i = 0; rws_estimators[i]; i++)
        if (strcmp(rws_estimators[i]->name, name) == 0) return rws_estimators[i];
    return NULL;
}

int rws__data_size(const rws_setup *s)
{
    int n = 0;
    for (int i = 0; i < s->n_fields; i++) n += s->fields[i].label ? 0 : s->fields[i].dim;
    return n;
}

int rws__data_fields(rws_path *path, const rws_method *m, rws_var *parts)
{
    int n = 0;
    for (int i = 0; i < m->setup->n_fields; i++)
        if (!m->setup->fields[i].label) parts[n++] = rws_observed(path, m->setup->fields[i].name);
    return n;
}

rws_status rws__method_init(rws_method *m, const rws_estimator *e, const rws_model *model, const void *state,
                            rws_setup *setup, rws_error *err)
{
    *m = (rws_method){.estimator = e, .model = model, .state = state, .setup = setup};
    for (int g = 0; g < RWS_GROUPS; g++) m->rate[g] = 1;
    const char *why = e->refuses ? e->refuses(model, setup) : NULL;
    if (why)
        return rws_fail(err, RWS_BAD_INPUT, "Method %s does not apply to model %s: %s.", e->name, model->name, why);
    return e->setup ? e->setup(m, setup, err) : RWS_OK;
}
