// coin.cpp - a model in C++, for the test of what is installed: three coins, one of them chosen in secret and thrown twice.
#include <rws.h>

#include <cmath>

namespace
{

struct coins {
    rws_param *which;
    rws_layer *net;
};

const double odds[] = {0.1, 0.5, 0.9};

rws_status setup(rws_setup *s, rws_random *, void **state, rws_error *)
{
    auto *c = static_cast<coins *>(rws_setup_alloc(s, sizeof(coins)));
    rws_setup_field(s, "throws", 2);
    c->which = rws_setup_param(s, RWS_THETA, "theta.which", 1, 3, RWS_ZERO);
    c->net = rws_setup_linear(s, RWS_PHI, "phi.net", 2, 3, RWS_UNIFORM);
    *state = c;
    return RWS_OK;
}

rws_status data(const void *, rws_split, uint64_t, int n, rws_random *random, float *const *fields, rws_error *)
{
    for (int i = 0; i < n; i++) {
        const double p = odds[rws_random_uniform(random) < 0.7 ? 0 : 2];
        for (int j = 0; j < 2; j++) fields[0][2 * i + j] = rws_random_uniform(random) < p;
    }
    return RWS_OK;
}

void model(rws_path *path, const void *state)
{
    const int   z = rws_choose(path, "coin", rws_parameter(path, static_cast<const coins *>(state)->which));
    const float logit = static_cast<float>(std::log(odds[z] / (1 - odds[z]))), logits[] = {logit, logit};
    rws_bernoulli(path, "throws", rws_constants(path, logits, 2));
}

void guide(rws_path *path, const void *state)
{
    rws_choose(path, "coin", rws_linear(path, static_cast<const coins *>(state)->net, rws_observed(path, "throws")));
}

rws_model describe()
{
    rws_model m = {};
    m.abi = RWS_ABI;
    m.name = "coin";
    m.help = "three coins, one of them thrown twice";
    m.setup = setup;
    m.data = data;
    m.model = model;
    m.guide = guide;
    return m;
}

} // namespace

const rws_model rws_user_model = describe();
