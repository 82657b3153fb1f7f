#include "clusters.h"

#include <math.h>

enum { C = 3 };

static const double prior[C] = {0.2, 0.5, 0.3}, mean[C] = {-2, 0, 3};

spoiled clusters_guide = {1, 0};

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    rws_setup_param(s, RWS_THETA, "theta.unused", 1, 1, RWS_ZERO);
    rws_setup_param(s, RWS_PHI, "phi.unused", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++)
        fields[0][i] = (float)(mean[rws_random_choose(random, prior, C)] + M_SQRT2 * rws_random_normal(random));
    return RWS_OK;
}

/* z and the visits to w, which the two programs share. */
static void rest(rws_path *path, int c, rws_var at, float sd)
{
    rws_var z = rws_normal(path, "z", at, rws_constant(path, sd));
    for (int i = 0; i < c; i++) rws_normal(path, "w", rws_constant(path, 0), rws_constant(path, 1));
    rws_report(path, "z", z);
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    float slope[C], shift[C];
    for (int c = 0; c < C; c++) { /* log p(c) - (x - mean)^2 / 4, but for what all have */
        slope[c] = (float)(mean[c] / 2) / clusters_guide.temperature;
        shift[c] = (float)(log(prior[c]) - mean[c] * mean[c] / 4) / clusters_guide.temperature;
    }
    shift[C - 1] -= clusters_guide.dropped;
    const rws_var x = rws_observed(path, "x");
    const rws_var logits =
        rws_add(path, rws_mul(path, rws_constants(path, slope, C), x), rws_constants(path, shift, C));
    const int c = rws_choose(path, "c", logits);
    rest(path, c, rws_affine(path, x, 0.5f, (float)mean[c] / 2), (float)M_SQRT1_2 * clusters_guide.temperature);
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    float logits[C];
    for (int c = 0; c < C; c++) logits[c] = (float)log(prior[c]);
    const int     c = rws_choose(path, "c", rws_constants(path, logits, C));
    const rws_var z = rws_normal(path, "z", rws_constant(path, (float)mean[c]), rws_constant(path, 1));
    for (int i = 0; i < c; i++) rws_normal(path, "w", rws_constant(path, 0), rws_constant(path, 1));
    rws_report(path, "z", z);
    rws_normal(path, "x", z, rws_constant(path, 1));
}

const rws_model clusters_model = {
    .abi = RWS_ABI, .name = "clusters", .help = "", .setup = setup, .data = data, .guide = guide, .model = model};

rws_posterior *clusters_posterior(void)
{
    const rws_config c = {.model = "clusters", .method = "ww", .seed = 1};
    rws_posterior   *p;
    rws_error        err = {""};
    rws_trainer     *t = trainer_for(&c, &clusters_model);
    if (rws_posterior_new(t, &p, &err) != RWS_OK) fail_msg("%s", err.text);
    rws_trainer_free(t);
    return p;
}

double clusters_log_evidence(double x)
{
    double sum = 0;
    for (int c = 0; c < C; c++) sum += prior[c] * exp(-(x - mean[c]) * (x - mean[c]) / 4) / sqrt(4 * M_PI);
    return log(sum);
}
