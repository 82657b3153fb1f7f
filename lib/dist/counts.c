/* counts.c - whole numbers from 0 on: Poisson, geometric, binomial and negative binomial.
 *
 * A draw is an index into a table of probabilities, so particles with equal outcomes share a row. A row of the table is a
 * window around the mode; the numbers outside of it have less than 2^-30 of the mass together, which rws_draw_index cannot
 * tell from 0. Indices begin after the mode and wrap around, so that the mode comes last and takes what the thresholds lose
 * by rounding:
 *
 *     index     0          1          …                       W - 1
 *     number    mode + 1   mode + 2   … last, first, first + 1, … mode
 *
 * The length W of the tables is the largest that a row of the path needs. A longer table adds numbers without mass, so a
 * draw does not depend on the other rows.
 */
#include "dist/each.h"
#include "tensor/special.h"

extern const rws_op rws_op_count_reach, rws_op_count_table, rws_op_count_value; /* below */

enum { POISSON, GEOMETRIC, BINOMIAL, NEGATIVE_BINOMIAL };

static double log_sigmoid(double x)
{
    return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
}

static double sigmoid(double x)
{
    return exp(log_sigmoid(x));
}

static bool whole(double x)
{
    return x == floor(x);
}

/* ---- log-densities; in[0] is the number */

static double poisson_density(const double *in, double *slope)
{
    const double x = in[0], rate = in[1];
    if (!(rate > 0) || !whole(x)) return NAN;
    if (x < 0) return rws__each_impossible(slope, 2);
    slope[0] = 0;
    slope[1] = x / rate - 1;
    if (x > RWS_LARGE || rate > RWS_LARGE) return rws__log_poisson(x, rate);
    return x * log(rate) - rate - rws__lgamma(x + 1);
}

static double geometric_density(const double *in, double *slope)
{
    const double x = in[0], logit = in[1];
    if (!whole(x)) return NAN;
    if (x < 0) return rws__each_impossible(slope, 2);
    slope[0] = 0;
    slope[1] = sigmoid(-logit) - x * sigmoid(logit);
    return log_sigmoid(logit) + (x == 0 ? 0 : x * log_sigmoid(-logit));
}

static double binomial_density(const double *in, double *slope)
{
    const double x = in[0], n = in[1], logit = in[2];
    if (!(n >= 0) || !whole(n) || !whole(x)) return NAN;
    if (x < 0 || x > n) return rws__each_impossible(slope, 3);
    slope[0] = slope[1] = 0;
    slope[2] = x - n * sigmoid(logit);
    if (n > RWS_LARGE) return rws__log_binomial(x, n, sigmoid(logit), sigmoid(-logit));
    return rws__lgamma(n + 1) - rws__lgamma(x + 1) - rws__lgamma(n - x + 1) + (x == 0 ? 0 : x * log_sigmoid(logit)) +
           (x == n ? 0 : (n - x) * log_sigmoid(-logit));
}

static double negative_binomial_density(const double *in, double *slope)
{
    const double x = in[0], shape = in[1], logit = in[2];
    if (!(shape > 0) || !whole(x)) return NAN;
    if (x < 0) return rws__each_impossible(slope, 3);
    slope[0] = 0;
    slope[1] = rws__digamma(x + shape) - rws__digamma(shape) + log_sigmoid(-logit);
    slope[2] = x * sigmoid(-logit) - shape * sigmoid(logit);
    if (x + shape > RWS_LARGE)
        return rws__log_binomial(x, x + shape, sigmoid(logit), sigmoid(-logit)) - log1p(x / shape);
    return rws__lgamma(x + shape) - rws__lgamma(x + 1) - rws__lgamma(shape) + shape * log_sigmoid(-logit) +
           (x == 0 ? 0 : x * log_sigmoid(logit));
}

/* ---- windows */

typedef struct {
    double first, mode, last;
} window;

/* The numbers that may be drawn under parameters p. Not finite if the parameters are not allowed. */
static window window_of(int kind, const double *p)
{
    double mean = 0, sd = 0, tail = 12, mode = 0, most = INFINITY;
    switch (kind) {
    case POISSON:
        mean = p[0] > 0 ? p[0] : NAN;
        sd = sqrt(mean);
        mode = floor(mean);
        break;
    case GEOMETRIC: tail = 2 - 22 / log_sigmoid(-p[0]); break;
    case BINOMIAL:
        mean = p[0] >= 0 && whole(p[0]) ? p[0] * sigmoid(p[1]) : NAN;
        sd = sqrt(mean * sigmoid(-p[1]));
        mode = fmin(floor((p[0] + 1) * sigmoid(p[1])), p[0]);
        most = p[0];
        break;
    default:
        mean = p[0] > 0 ? p[0] * exp(p[1]) : NAN;
        sd = sqrt(mean / sigmoid(-p[1]));
        tail = 12 - 25 / log_sigmoid(p[1]);
        mode = p[0] > 1 ? floor((p[0] - 1) * exp(p[1])) : 0;
    }
    if (isnan(mean + sd) || isnan(tail)) return (window){NAN, NAN, NAN};
    return (window){fmax(0, floor(mean - 8 * sd - 12)), mode, fmin(most, floor(mean + 8 * sd + tail))};
}

static void parameters_at(const rws_call *c, size_t row, int first, double *p)
{
    for (int s = first; s < c->n_in; s++) p[s - first] = (double)rws__view_row(&c->in[s], row)[0];
}

/* How long a table must be: last - first + 1. Inputs: the parameters, one number each. */
static void count_reach_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double p[2] = {0};
        parameters_at(c, r, 0, p);
        const window w = window_of(c->args.k, p);
        c->out[r] = (float)(w.last - w.first + 1);
        if (isnan(c->out[r])) c->refused = true;
    }
}

static double log_density_at(int kind, double x, const double *p)
{
    double in[] = {x, p[0], p[1]}, slope[3];
    switch (kind) {
    case POISSON: return poisson_density(in, slope);
    case GEOMETRIC: return geometric_density(in, slope);
    case BINOMIAL: return binomial_density(in, slope);
    default: return negative_binomial_density(in, slope);
    }
}

/* The number at an index of a table of n entries. */
static double number_at(const window *w, size_t index, size_t n)
{
    return w->first + (double)((index + (size_t)(w->mode - w->first) + 1) % n);
}

/* Rows of log-probabilities. Inputs: the parameters. */
static void count_table_forward(rws_call *c)
{
    const size_t n = (size_t)c->dim;
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double p[2] = {0};
        parameters_at(c, r, 0, p);
        const window w = window_of(c->args.k, p);
        for (size_t i = 0; i < n; i++) {
            const double x = isfinite(w.first) ? number_at(&w, i, n) : 0;
            c->out[r * n + i] = x > w.last ? -INFINITY : (float)log_density_at(c->args.k, x, p);
        }
    }
}

/* The numbers that drawn indices stand for. Inputs: the index, the parameters. args.offset is the length of the table. */
static void count_value_forward(rws_call *c)
{
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double p[2] = {0};
        parameters_at(c, r, 1, p);
        const window w = window_of(c->args.k, p);
        c->out[r] = (float)number_at(&w, (size_t)rws__view_row(&c->in[0], r)[0], (size_t)c->args.offset);
    }
}

/* ---- messages */

static rws_status explain_whole(const rws_call *c, size_t row, int s, const char *what, const char *site,
                                rws_error *err)
{
    for (size_t j = 0; j < (size_t)c->in[s].dim; j++) {
        const float x = rws__view_row(&c->in[s], row)[j];
        if (!whole((double)x))
            return rws_fail(err, RWS_BROKEN, "The %s%s%s is %g; it must be a whole number.", what,
                            site ? " at site " : "", site ? site : "", rws__plain(x));
    }
    return RWS_OK;
}

/* What is wrong with the parameters, which are the inputs from `first` on. */
static rws_status explain(const rws_call *c, int kind, size_t row, int first, const char *site, rws_error *err)
{
    switch (kind) {
    case POISSON: return rws__explain_positive(c, row, first, "rate", site, err);
    case GEOMETRIC: return RWS_OK;
    case BINOMIAL:
        RWS_TRY(explain_whole(c, row, first, "number of trials", site, err));
        for (size_t j = 0; j < (size_t)c->in[first].dim; j++)
            if (!(rws__view_row(&c->in[first], row)[j] >= 0))
                return rws_fail(err, RWS_BROKEN, "The number of trials%s%s is %g; it must not be negative.",
                                site ? " at site " : "", site ? site : "",
                                rws__plain(rws__view_row(&c->in[first], row)[j]));
        return RWS_OK;
    default: return rws__explain_positive(c, row, first, "shape", site, err);
    }
}

static rws_status count_reach_explain(const rws_call *c, size_t row, const char *site, rws_error *err)
{
    return explain(c, c->args.k, row, 0, site, err);
}

const rws_op rws_op_count_reach = {
    .name = "count_reach", .constant = true, .forward = count_reach_forward, .explain = count_reach_explain};
const rws_op rws_op_count_table = {.name = "count_table", .constant = true, .forward = count_table_forward};
const rws_op rws_op_count_value = {.name = "count_value", .constant = true, .forward = count_value_forward};

/* ---- draws: one number after the other */

static rws_var draw_number(rws_path *path, int kind, const rws_var *p, int n)
{
    rws_var     in[3];
    const float reach = rws__var_most(path, rws__record(path, &rws_op_count_reach, (rws_op_args){.k = kind}, p, n, 1));
    if (reach > RWS_MAX_INDEX)
        rws__path_mistake(
            path,
            "a draw would choose among %g whole numbers, which is more than %d; a number so large is as well "
            "drawn as a real one (normal, log-normal). Scoring has no such limit.",
            (double)reach, RWS_MAX_INDEX);
    /* A reach of NaN makes a table of 16 numbers, which the draw refuses. */
    const int W = reach > 16 ? ((int)reach + 15) / 16 * 16 : 16;
    in[0] = rws_draw_index(path, rws__record(path, &rws_op_count_table, (rws_op_args){.k = kind}, p, n, W));
    for (int i = 0; i < n; i++) in[i + 1] = p[i];
    return rws__record(path, &rws_op_count_value, (rws_op_args){.k = kind, .offset = W}, in, n + 1, 1);
}

rws_var rws__draw_binomial(rws_path *path, rws_var trials, rws_var logit)
{
    return draw_number(path, BINOMIAL, (rws_var[]){trials, logit}, 2);
}

static rws_var draw_numbers(rws_path *path, int kind, const rws_var *p, int n)
{
    const int dim = rws__dist_longest(path, p, n);
    if (dim == 1) return draw_number(path, kind, p, n);
    rws_var *numbers = rws_alloc(path, (size_t)dim * sizeof *numbers);
    for (int j = 0; j < dim; j++) {
        rws_var one[2] = {{0}};
        for (int i = 0; i < n; i++) one[i] = rws_dim(path, p[i]) == 1 ? p[i] : rws_slice(path, p[i], j, 1);
        numbers[j] = draw_number(path, kind, one, n);
    }
    return rws_concat(path, numbers, dim);
}

#define COUNT_FAMILY(name_, text_, help_, kind_, n_, ...)                                                         \
    static rws_status name_##_explain(const rws_call *c, size_t row, int first, const char *site, rws_error *err) \
    {                                                                                                             \
        RWS_TRY(explain(c, kind_, row, first, site, err));                                                        \
        return explain_whole(c, row, 0, "value", site, err);                                                      \
    }                                                                                                             \
    RWS_EACH_DENSITY(name_, n_, name_##_density, name_##_explain)                                                 \
    static rws_var name_##_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)                 \
    {                                                                                                             \
        (void)f, (void)stop;                                                                                      \
        return draw_numbers(path, kind_, p, n_);                                                                  \
    }                                                                                                             \
    const rws_family rws_##name_##_family = {.name = text_,                                                       \
                                             .help = help_,                                                       \
                                             .support = RWS_SUPPORT_COUNT,                                        \
                                             .n_params = n_,                                                      \
                                             .draw = name_##_draw,                                                \
                                             .log_density = name_##_log_density,                                  \
                                             __VA_ARGS__};

static void up_to_trials(rws_path *path, const rws_family *f, const rws_var *p, rws_var bound[2])
{
    (void)path, (void)f;
    bound[1] = p[0];
}

COUNT_FAMILY(poisson, "poisson", "a whole number, by its rate", POISSON, 1)
COUNT_FAMILY(geometric, "geometric", "the failures before the first success, by the logit of a success", GEOMETRIC, 1)
COUNT_FAMILY(binomial, "binomial",
             "the successes among so many trials, by the number of trials and the logit of a success", BINOMIAL, 2,
             .bounds = up_to_trials)
COUNT_FAMILY(negative_binomial, "negative binomial", "a whole number, by shape and logit; a Poisson with a Gamma rate",
             NEGATIVE_BINOMIAL, 2)

rws_var rws_poisson(rws_path *path, const char *site, rws_var rate)
{
    return rws__site_visit_as(path, site, &rws_poisson_family, &rate, __func__);
}

rws_var rws_geometric(rws_path *path, const char *site, rws_var logit)
{
    return rws__site_visit_as(path, site, &rws_geometric_family, &logit, __func__);
}

rws_var rws_binomial(rws_path *path, const char *site, rws_var trials, rws_var logit)
{
    return rws__site_visit_as(path, site, &rws_binomial_family, (rws_var[]){trials, logit}, __func__);
}

rws_var rws_negative_binomial(rws_path *path, const char *site, rws_var shape, rws_var logit)
{
    return rws__site_visit_as(path, site, &rws_negative_binomial_family, (rws_var[]){shape, logit}, __func__);
}
