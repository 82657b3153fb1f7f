/* multinomial.c - how often each of C things came in so many trials, by the number of trials and logits.
 *
 * A draw is C - 1 binomials, one after the other: thing i takes each of the remaining trials with probability
 * p_i / (p_i + … + p_C-1), and the last thing takes the rest. Particles with equal numbers share a row. */
#include "base/error.h"
#include "dist/dist.h"
#include "tensor/special.h"
#include "tensor/tangent.h"

extern const rws_op rws_op_multinomial_logit, rws_op_multinomial_density; /* below */

static void prepare(rws_path *path, const rws_family *f, rws_var *p)
{
    (void)f;
    if (rws_dim(path, p[0]) != 1)
        rws__path_mistake(path, "rws_multinomial takes one number of trials, not %d.", rws_dim(path, p[0]));
    p[1] = rws_log_softmax(path, p[1]);
}

static int length(rws_path *path, const rws_family *f, const rws_var *p)
{
    (void)f;
    return rws_dim(path, p[1]);
}

static rws_var draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)
{
    (void)f, (void)stop;
    const int C = rws_dim(path, p[1]);
    rws_var  *x = rws_alloc(path, (size_t)C * sizeof *x), left = p[0];
    for (int i = 0; i + 1 < C; i++) {
        const rws_var logit = rws__record(path, &rws_op_multinomial_logit, (rws_op_args){.k = i}, &p[1], 1, 1);
        x[i] = rws__draw_binomial(path, left, logit);
        left = rws_sub(path, left, x[i]);
    }
    x[C - 1] = left;
    return C == 1 ? left : rws_concat(path, x, C);
}

static rws_var log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)
{
    (void)f;
    return rws__record(path, &rws_op_multinomial_density, (rws_op_args){0}, (rws_var[]){value, p[0], p[1]}, 3, 1);
}

const rws_family rws_multinomial_family = {
    .name = "multinomial",
    .help = "how often each of C things came in so many trials, by the number of trials and logits",
    .support = RWS_SUPPORT_PARTITION,
    .n_params = 2,
    .prepare = prepare,
    .length = length,
    .draw = draw,
    .log_density = log_density,
};

rws_var rws_multinomial(rws_path *path, const char *site, rws_var trials, rws_var logits)
{
    return rws__site_visit_as(path, site, &rws_multinomial_family, (rws_var[]){trials, logits}, __func__);
}

/* ---- ops */

/* log p_k - log(p_k+1 + … + p_C-1). A thing that is impossible together with all that follow has the logit 0; no trials are
 * left for it. Input: log-probabilities. */
static void multinomial_logit_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *l = rws__view_row(&c->in[0], r);
        double       rest = 0;
        for (int j = c->args.k + 1; j < c->in[0].dim; j++) rest += exp((double)l[j]);
        const double mine = (double)l[c->args.k];
        c->out[r] = mine == -INFINITY && rest == 0 ? 0 : (float)(mine - log(rest));
    }
}

static bool whole(float x)
{
    return x == floorf(x);
}

static bool allowed(const float *x, float trials, size_t C)
{
    bool fine = trials >= 0 && whole(trials);
    for (size_t j = 0; j < C; j++) fine &= whole(x[j]);
    return fine;
}

static bool adds_up(const float *x, float trials, size_t C)
{
    double total = 0;
    for (size_t j = 0; j < C; j++) {
        if (x[j] < 0) return false;
        total += (double)x[j];
    }
    return total == (double)trials;
}

/* lgamma(n + 1) + the sum of x_j log p_j - lgamma(x_j + 1). Log-probabilities that were rounded add up to 1 only within 1e-7,
 * which n trials multiply, so that they are divided by their sum. Where x is what p expects, the rounding of single ones
 * then cancels; and the gradient stays x_j, since log_softmax, which made them, has the rest. */
static double log_density_at(const float *x, double n, const float *l, size_t C)
{
    double total = rws__lgamma(n + 1), all = 0;
    for (size_t j = 0; j < C; j++) all += exp((double)l[j]);
    const double log_all = log(all);
    for (size_t j = 0; j < C; j++)
        if (x[j] != 0) total += (double)x[j] * ((double)l[j] - log_all) - rws__lgamma((double)x[j] + 1);
    return total;
}

/* The same as binomials, one after the other, as in a draw: no two large numbers are subtracted. */
static double large_log_density_at(const float *x, double n, const float *l, size_t C)
{
    double total = 0, rest = 0, left = 0; /* probability and trials of the things after thing j */
    for (size_t j = C; j-- > 0;) {
        const double mine = exp((double)l[j]), all = rest + mine, trials = left + (double)x[j];
        if (trials > 0) total += all > 0 ? rws__log_binomial((double)x[j], trials, mine / all, rest / all) : -INFINITY;
        rest = all;
        left = trials;
    }
    return left == n ? total : -INFINITY;
}

/* Inputs: x, n, log p. */
static void multinomial_density_forward(rws_call *c)
{
    const size_t C = (size_t)c->in[2].dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r), n = rws__view_row(&c->in[1], r)[0],
                    *l = rws__view_row(&c->in[2], r);
        const bool fine = allowed(x, n, C);
        c->refused |= !fine;
        if (!fine) c->out[r] = NAN;
        else if (!adds_up(x, n, C)) c->out[r] = -INFINITY;
        else c->out[r] = (float)(n > RWS_LARGE ? large_log_density_at : log_density_at)(x, (double)n, l, C);
    }
}

static void multinomial_density_backward(rws_call *c)
{
    const size_t C = (size_t)c->in[2].dim;
    float       *g = rws__call_open(c, 2, c->in[2].dim);
    for (size_t r = 0; g && r < (size_t)c->n; r++) {
        const float *x = rws__view_row(&c->in[0], r);
        if (!adds_up(x, rws__view_row(&c->in[1], r)[0], C)) continue;
        for (size_t j = 0; j < C; j++) g[r * C + j] += c->gout[r] * x[j];
    }
    rws__call_close(c, 2, c->in[2].dim, g);
}

/* The density is linear in the log-probabilities, and whole numbers do not move. */
static rws_var multinomial_density_tangent(rws_tangent *t)
{
    if (t->d[0].id || t->d[1].id) return RWS_NO_TANGENT;
    return rws__tangent_record(t, &rws_op_dot, (rws_op_args){0}, (rws_var[]){t->in[0], t->d[2]}, 2, 1);
}

static rws_status explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    const float n = rws__view_row(&c->in[1], row)[0];
    const char *in = site ? " at site " : "", *name = site ? site : "";
    if (!whole(n))
        return rws_fail(err, RWS_BROKEN, "The number of trials%s%s is %g; it must be a whole number.", in, name,
                        rws__plain(n));
    if (!(n >= 0))
        return rws_fail(err, RWS_BROKEN, "The number of trials%s%s is %g; it must not be negative.", in, name,
                        rws__plain(n));
    for (int j = 0; j < c->in[0].dim; j++) {
        const float x = rws__view_row(&c->in[0], row)[j];
        if (!whole(x))
            return rws_fail(err, RWS_BROKEN, "The value%s%s is %g; it must be a whole number.", in, name,
                            rws__plain(x));
    }
    return RWS_OK;
}

const rws_op rws_op_multinomial_logit = {
    .name = "multinomial_logit", .constant = true, .forward = multinomial_logit_forward};
const rws_op rws_op_multinomial_density = {.name = "multinomial_density",
                                           .forgets = true,
                                           .forward = multinomial_density_forward,
                                           .backward = multinomial_density_backward,
                                           .tangent = multinomial_density_tangent,
                                           .explain = explain};
