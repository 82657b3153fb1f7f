/* kumaraswamy.c - a distribution of your own: unfair coins whose bias has Kumaraswamy's distribution.
 *     make examples && build/rws train build/examples/kumaraswamy.so --method vimco
 *
 * Every coin has a bias x, the share of heads, and is thrown 20 times. The distribution function of the bias,
 * 1 - (1 - x^a)^b, can be inverted, so that a draw is an expression. The shapes a and b are to be learned. */
#include <math.h>
#include <rws.h>

#define THROWS 20

/* x = (1 - u^(1/b))^(1/a), kept inside of (0, 1) where a float would round it to an end. */
static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    const rws_var u = rws_draw_noise(path, RWS_NOISE_UNIFORM, rws_dim(path, rws_add(path, p[0], p[1])));
    const rws_var power = rws_apply(path, RWS_EXPM1, rws_div(path, rws_apply(path, RWS_LOG, u), p[1]));
    const rws_var log_x = rws_div(path, rws_apply(path, RWS_LOG, rws_affine(path, power, -1, 0)), p[0]);
    return rws_clip(path, rws_apply(path, RWS_EXP, log_x), 1e-6f, 1 - 1e-6f);
}

/* The sum of log a + log b + (a - 1) log x + (b - 1) log(1 - x^a). */
static rws_var log_density(rws_path *path, const rws_family *f, rws_var x, const rws_var *p)
{
    (void)f;
    const rws_var log_x = rws_apply(path, RWS_LOG, x), shapes = rws_mul(path, p[0], p[1]);
    const rws_var power = rws_apply(path, RWS_EXP, rws_mul(path, p[0], log_x));
    const rws_var rest = rws_apply(path, RWS_LOG1P, rws_affine(path, power, -1, 0));
    const rws_var terms = rws_add(path, rws_mul(path, rws_affine(path, p[0], 1, -1), log_x),
                                  rws_mul(path, rws_affine(path, p[1], 1, -1), rest));
    return rws_sum(path, rws_add(path, rws_apply(path, RWS_LOG, shapes), terms));
}

static const rws_family kumaraswamy = {.name = "kumaraswamy",
                                       .support = RWS_SUPPORT_UNIT,
                                       .reparameterised = true,
                                       .n_params = 2,
                                       .draw = draw,
                                       .log_density = log_density};

typedef struct {
    rws_param *shapes; /* theta: log a and log b */
    rws_layer *look;   /* phi: from the heads to log a and log b of the bias */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    world *w = rws_setup_alloc(s, sizeof *w);
    rws_setup_field(s, "heads", 1);
    w->shapes = rws_setup_param(s, RWS_THETA, "theta.shapes", 1, 2, RWS_ZERO);
    w->look = rws_setup_mlp(s, RWS_PHI, "phi.look", RWS_TANH, RWS_UNIFORM, (int[]){1, 16, 2}, 3);
    *state = w;
    return RWS_OK;
}

static rws_var bias(rws_path *path, rws_var log_shapes)
{
    const rws_var shapes = rws_apply(path, RWS_EXP, log_shapes);
    const rws_var p[] = {rws_slice(path, shapes, 0, 1), rws_slice(path, shapes, 1, 1)};
    return rws_site_visit(path, "bias", &kumaraswamy, p);
}

static void model(rws_path *path, const void *state)
{
    const world  *w = state;
    const rws_var x = bias(path, rws_parameter(path, w->shapes));
    const rws_var logit =
        rws_sub(path, rws_apply(path, RWS_LOG, x), rws_apply(path, RWS_LOG1P, rws_affine(path, x, -1, 0)));
    rws_binomial(path, "heads", rws_constant(path, THROWS), logit);
}

static void guide(rws_path *path, const void *state)
{
    const rws_var x = rws_affine(path, rws_observed(path, "heads"), 2.0f / THROWS, -1);
    bias(path, rws_mlp(path, ((const world *)state)->look, x));
}

/* Coins of shapes 2 and 5. */
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) {
        const double x = pow(1 - pow(rws_random_uniform(g), 1 / 5.0), 1 / 2.0);
        to[0][i] = 0;
        for (int k = 0; k < THROWS; k++) to[0][i] += rws_random_uniform(g) < x;
    }
    return RWS_OK;
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "kumaraswamy",
    .help = "unfair coins, with a distribution of its own",
    .defaults = {.particles = 10, .iterations = 5000, .lr = "3e-3", .shards = 1},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
