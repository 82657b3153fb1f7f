/* relax.c - the bound's gradient with a learned control variate (Grathwohl et al. 2018): a small network on the datum and
 * the perturbed log-probabilities, averaged over the particles; or the control variate of rebar; or the sum of both. */
#include "estimator/control.h"

#include "base/error.h"

#include <string.h>

static rws_var network(rws_path *path, const rws_method *m, const rws_control *c, rws_var g)
{
    rws_var parts[RWS_FIELDS + 1];
    int     n = rws__data_fields(path, m, parts);
    parts[n++] = g;
    return rws_mlp_parts(path, c->net, parts, n);
}

void rws__controls_add_net(rws_controls *c, rws_setup *s)
{
    const int n = s->relaxed_categories + rws__data_size(s);
    c->list[c->n++] = (rws_control){
        .v = network,
        .net = rws_setup_mlp(s, RWS_CONTROL, "rho", RWS_TANH, RWS_UNIFORM, (int[]){n, 16, 16, 1}, 4),
    };
}

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    const char   *which = rws_setup_text(s, "relax_control");
    const bool    sum = strcmp(which, "sum") == 0, net = sum || strcmp(which, "net") == 0;
    rws_controls *c = m->own = rws_setup_alloc(s, sizeof *c);
    if (!c) return rws_no_memory(err, "the control variate of relax");
    if (!net && strcmp(which, "rebar") != 0)
        return rws_fail(err, RWS_BAD_INPUT, "relax_control is net, rebar or sum, not \"%s\".", which);
    if (net) rws__controls_add_net(c, s);
    /* in a sum the network makes up for a wrong scale */
    return net && !sum ? RWS_OK : rws__controls_add_rebar(c, s, !sum, err);
}

const rws_estimator rws_estimator_relax = {
    .name = "relax",
    .help = "the bound's gradient with a learned control variate on relaxed choices",
    .when = "For one categorical site and no branches: as rebar, with a control variate that learns.",
    .settings =
        (const rws_setting[]){{"relax_control", "net", 0, 0, "the control variate: net, rebar, or the sum of both"},
                              RWS_REBAR_SETTINGS,
                              {0}},
    .setup = setup,
    RWS_CONTROL_ESTIMATOR,
};
