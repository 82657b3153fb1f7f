/* coal.c - change points in the accidents of British coal mines: when did mining become safer?
 *     make examples && build/rws train build/examples/coal.so
 * The years fall into stretches. Each stretch has a rate of its own, and its years have Poisson numbers of accidents:
 *     1851                      1887                                        1962
 *     |--------- 3.1 -----------|------------------- 0.9 --------------------|     rates: Gamma(2, 1)
 *      4 5 4 1 0 4 3 4 0 6 3 3 …  … 0 1 0 1 0 2 1 0 1 1 …                           counts: seen
 * A stretch ends after each of its years with a probability that is learned. The metric "exact" is log p(x) by dynamic
 * programming over the stretches, whose rates can be integrated out. */
#include <math.h>
#include <rws.h>

enum { YEARS = 112, SHAPE = 2, RATE = 1 };

/* Accidents with ten or more deaths, 1851 to 1962: R. G. Jarrett, A note on the intervals between coal-mining disasters,
 * Biometrika 66 (1979), 191-193. */
static const float counts[YEARS] = {4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 4, 0, 2, 6, 3, 3, 5, 4, 5, 3, 1, 4, 4, 1, 5, 5,
                                    3, 4, 2, 5, 2, 2, 3, 4, 2, 1, 3, 2, 2, 1, 1, 1, 1, 3, 0, 0, 1, 0, 1, 1, 0, 0, 3, 1,
                                    0, 3, 2, 2, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1, 0, 2, 3, 3, 1, 1,
                                    2, 1, 1, 1, 1, 2, 4, 2, 0, 0, 0, 1, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1};

typedef struct {
    rws_param *change; /* theta: log-odds that a stretch ends after a year */
    rws_param *ends;   /* phi: row s has the logits of the length of a stretch that begins in year s */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_field(s, "counts", YEARS);
    w->change = rws_setup_param(s, RWS_THETA, "theta.change", 1, 1, RWS_ZERO);
    w->ends = rws_setup_param(s, RWS_PHI, "phi.ends", YEARS, YEARS, RWS_ZERO);
    rws_param_values(w->change)[0] = -3;
    return RWS_OK;
}

/* There is one datum. */
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)g, (void)e;
    for (int i = 0; i < n * YEARS; i++) to[0][i] = counts[i % YEARS];
    return RWS_OK;
}

/* The log-probabilities of the lengths 1 … n of a stretch that begins n years before the end. */
static rws_var lengths(rws_path *path, rws_var log_odds, int n)
{
    float earlier[YEARS], ends[YEARS];
    for (int i = 0; i < n; i++) earlier[i] = (float)i, ends[i] = i < n - 1;
    const rws_var stay = rws_apply(path, RWS_LOG_SIGMOID, rws_affine(path, log_odds, -1, 0));
    const rws_var end = rws_apply(path, RWS_LOG_SIGMOID, log_odds);
    return rws_add(path, rws_mul(path, stay, rws_constants(path, earlier, n)),
                   rws_mul(path, end, rws_constants(path, ends, n)));
}

static void model(rws_path *path, const void *state)
{
    const world *w = state;
    rws_var      rates[YEARS];
    int          n = 0;
    for (int start = 0; start < YEARS; n++) {
        const int length = 1 + rws_choose(path, "length", lengths(path, rws_parameter(path, w->change), YEARS - start));
        rws_var   rate = rws_gamma(path, "rate", rws_constant(path, SHAPE), rws_constant(path, RATE));
        float     ones[YEARS];
        for (int i = 0; i < length; i++) ones[i] = 1;
        rates[n] = rws_mul(path, rate, rws_constants(path, ones, length));
        start += length;
    }
    rws_report(path, "stretches", rws_constant(path, (float)n));
    rws_poisson(path, "counts", rws_concat(path, rates, n)); /* observed */
}

/* Given the stretch, the rate is a Gamma with as many more accidents and years: no need to learn that. */
static void guide(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var seen = rws_observed(path, "counts"), ends = rws_parameter(path, w->ends);
    for (int start = 0; start < YEARS;) {
        const int length = 1 + rws_choose(path, "length", rws_slice(path, ends, start * YEARS, YEARS - start));
        rws_var   sum = rws_sum(path, rws_slice(path, seen, start, length));
        rws_gamma(path, "rate", rws_affine(path, sum, 1, SHAPE), rws_constant(path, (float)(RATE + length)));
        start += length;
    }
}

/* from[s] is log p(x_s … x_111 | a stretch begins in year s): the sum over the lengths of that stretch. */
static rws_status exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const double log_odds = (double)rws_param_values(((const world *)state)->change)[0];
    const double stay = -log1p(exp(log_odds)), end = -log1p(exp(-log_odds));
    double       from[YEARS + 1] = {0};

    for (int s = YEARS - 1; s >= 0; s--) {
        double sum = 0, factorials = 0, p = 0;
        for (int n = 1; n <= YEARS - s; n++) {
            sum += (double)counts[s + n - 1], factorials += lgamma(1 + (double)counts[s + n - 1]);
            const double marginal =
                SHAPE * log(RATE) - lgamma(SHAPE) + lgamma(SHAPE + sum) - (SHAPE + sum) * log(RATE + n) - factorials;
            p += exp(marginal + (n - 1) * stay + (n < YEARS - s ? end : 0) + from[s + n]);
        }
        from[s] = log(p);
    }
    return (void)e, (void)err, *value = from[0], RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "coal",
    .help = "change points in the accidents of British coal mines",
    .metrics = (const rws_metric[]){{"exact", "log p(x) at theta", exact}, {0}},
    .defaults = {.batch = 1, .particles = 100, .iterations = 3000, .n_test = 1, .lr = "3e-2,2000:1e-2", .shards = 1},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
