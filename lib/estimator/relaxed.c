#include "estimator/relaxed.h"

#include "base/error.h"

/* The log of the point on the simplex that the guide drew. The result is logged like that of a library function, because a
 * path that splits later must not look for the site a second time. */
static rws_var relaxed_choice(rws_path *path, const rws_setup *s)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    rws_visit visit = {.site = s->relaxed_site, .family = "categorical", .size = s->relaxed_categories, .dim = 1};
    rws__visit_begin(path, &visit);
    const bool smoothed = rws__path_proposal(path)->how == RWS_SMOOTHED;
    return rws__returns(path, smoothed ? rws__stick_break(path, visit.value) : visit.value);
}

void rws__relaxed_program(rws_path *path, void *method)
{
    const rws_method   *m = method;
    const rws_proposal *proposal = rws__path_proposal(path);
    rws__path_side(path, RWS_SIDE_GUIDE);
    rws__guide(path);
    rws__path_side(path, RWS_SIDE_MODEL);
    const rws_var log_s = relaxed_choice(path, m->setup);
    rws__path_fields_scored(path);
    rws__path_side(path, RWS_SIDE_NONE);
    const rws_var tau = rws_constant(path, (float)proposal->temperature);
    rws__site_term(path, RWS_TERM_P, m->model->relaxed(path, m->state, log_s, tau, proposal->relaxation));
}

void rws__relaxed_weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    (void)m;
    rws__weigh(s, share, tally);
    for (int i = 0; i < s->n; i++) s->coef_q[i] = -share * s->w[i];
}

const char *rws__relaxed_refuses(const rws_model *model, const rws_setup *s)
{
    for (int i = 0; i < s->n_gradients; i++)
        if (s->gradients[i].how == RWS_SCORE) return "it reparameterises everything, and a site is to have its score";
    return rws__control_refuses(model, s);
}
