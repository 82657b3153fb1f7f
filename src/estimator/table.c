/* table.c - every estimator, and how one is put to work on a model. */
#include "base/error.h"
#include "estimator/estimator.h"

#include <stdlib.h>
#include <string.h>

const rws_estimator *const rws_estimators[] = {
    &rws_estimator_ws,
    &rws_estimator_ww,
    &rws_estimator_wws,
    &rws_estimator_dww,
    &rws_estimator_reinforce,
    &rws_estimator_rloo,
    &rws_estimator_nvil,
    &rws_estimator_vimco,
    &rws_estimator_rebar,
    &rws_estimator_relax,
    &rws_estimator_concrete,
    &rws_estimator_em,
    NULL,
};

const rws_estimator *rws_estimator_find(const char *name)
{
    for (int i = 0; rws_estimators[i]; i++)
        if (strcmp(rws_estimators[i]->name, name) == 0) return rws_estimators[i];
    return NULL;
}

int rws_data_size(const rws_setup *s)
{
    int n = 0;
    for (int i = 0; i < s->n_fields; i++) n += s->fields[i].label ? 0 : s->fields[i].dim;
    return n;
}

int rws_data_parts(rws_path *path, const rws_method *m, rws_var *parts)
{
    int n = 0;
    for (int i = 0; i < m->setup->n_fields; i++)
        if (!m->setup->fields[i].label) parts[n++] = rws_observed(path, m->setup->fields[i].name);
    return n;
}

void rws_programs(rws_path *path, void *method)
{
    const rws_method *m = method;
    const bool        sleep = rws_path_pass(path)->mode == RWS_SLEEP;
    for (int i = 0; i < 2; i++) {
        const bool guide = (i == 0) != sleep;
        rws_path_side(path, guide ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        (guide ? m->model->guide : m->model->model)(path, m->state);
    }
    rws_path_side(path, RWS_SIDE_NONE);
}

static double number(const rws_setup *s, const char *name)
{
    const char *value = rws_setup_given(s, name);
    return value ? strtod(value, NULL) : 0;
}

static bool flag(const rws_setup *s, const char *name)
{
    return number(s, name) != 0;
}

rws_status rws_method_init(rws_method *m, const rws_estimator *e, const rws_model *model, const void *state,
                           rws_setup *setup, rws_error *err)
{
    *m = (rws_method){.estimator = e, .model = model, .state = state, .setup = setup};
    const char *why = e->refuses ? e->refuses(model, setup) : NULL;
    if (why)
        return rws_fail(err, RWS_BAD_INPUT, "Method %s does not apply to model %s: %s.", e->name, model->name, why);
    const char *prior = rws_setup_given(setup, "concrete_prior");
    m->set = (rws_method_settings){
        .delta = number(setup, "delta"),
        .dww_ref_bug = flag(setup, "dww_ref_bug"),
        .vimco_no_logK = flag(setup, "vimco_no_logK"),
        .vimco_air_ref = flag(setup, "vimco_air_ref"),
        .ww_baseline = flag(setup, "ww_baseline"),
        .tau_start = number(setup, "tau_start"),
        .tau_end = number(setup, "tau_end"),
        .nvil_decay = number(setup, "nvil_decay"),
        .nvil_lr = number(setup, "nvil_lr"),
        .em_data = (int)number(setup, "em_data"),
        .concrete_prior = !prior || strcmp(prior, "argmax") == 0 ? RWS_RELAX_ARGMAX
                          : strcmp(prior, "soft") == 0           ? RWS_RELAX_SOFT
                                                                 : RWS_RELAX_DENSITY,
    };
    if (prior && strcmp(prior, "argmax") != 0 && strcmp(prior, "soft") != 0 && strcmp(prior, "density") != 0)
        return rws_fail(err, RWS_BAD_INPUT, "concrete_prior is argmax, soft or density, not \"%s\".", prior);
    if (e->setup) e->setup(m, setup);
    return RWS_OK;
}
