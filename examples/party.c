/* party.c - a model without a guide: each guest of a party moves x by about 1; how many came?
 *     make examples && build/rws train build/examples/party.so --particles 20 --iterations 2000 --out party
 *     build/rws infer party 2.7
 * The number of guests has no bound, and nobody sees it. The program itself runs in the guide's place (docs/your-model.md). */
#include <rws.h>

typedef struct {
    rws_param *more; /* theta: the log-odds that another guest comes */
} party;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    party *w = *state = rws_setup_alloc(s, sizeof *w);
    rws_setup_field(s, "x", 1);
    w->more = rws_setup_param(s, RWS_THETA, "theta.more", 1, 1, RWS_ZERO);
    return RWS_OK;
}

static void model(rws_path *path, const void *state)
{
    const party *w = state;
    int          n = 0;
    while (rws_flip(path, "more", rws_parameter(path, w->more))) n++;
    rws_report(path, "guests", rws_constant(path, (float)n));
    rws_normal(path, "x", rws_constant(path, (float)n), rws_constant(path, 0.4f)); /* observed */
}

static rws_status data(const void *w, rws_split split, uint64_t first, int n, rws_random *g, float *const *to,
                       rws_error *e)
{
    (void)w, (void)split, (void)first, (void)e;
    for (int i = 0; i < n; i++)
        for (to[0][i] = 0.4f * (float)rws_random_normal(g); rws_random_uniform(g) < 0.6;) to[0][i]++;
    return RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "party",
    .help = "how many guests came?",
    .defaults = {.particles = 20, .iterations = 2000},
    .setup = setup,
    .data = data,
    .model = model,
};
