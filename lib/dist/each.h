/* each.h - families whose components are independent: their ops and their family from two functions of one component.
 *
 *     density(in, slope): the log-density of in[0] under the parameters in[1], in[2], …
 *     draw(in, slope):    a value from the parameters in[0], in[1], … and one number of noise after these
 *
 * Both compute in double and write the derivative by every input but the noise to `slope`. A parameter that is not allowed
 * gives NaN; an impossible value has the log-density -inf and slopes of 0. Each parameter has as many numbers as the value,
 * or one.
 */
#ifndef RWS_DIST_EACH_H
#define RWS_DIST_EACH_H

#include "base/error.h"
#include "dist/dist.h"
#include "tensor/tangent.h"

#define RWS_MAX_EACH 6 /* inputs of a function */

#define RWS_LOG_ROOT_2_PI 0.91893853320467274178

typedef double rws_each_function(const double *in, double *slope);

static inline double rws__each_impossible(double *slope, int n)
{
    for (int i = 0; i < n; i++) slope[i] = 0;
    return -INFINITY;
}

/* A value as a float that is above 0. What is too small for a normal float becomes the smallest one. */
static inline double rws__each_positive(double x)
{
    return x < 0x1p-126 ? 0x1p-126 : x > 0x1.fffffep127 ? 0x1.fffffep127 : x;
}

static inline __attribute__((always_inline)) void rws__each_density_forward(rws_call *c, int n_in, rws_each_function *f)
{
    int          dim = 1;
    const float *x[RWS_MAX_EACH];
    for (int s = 0; s < n_in; s++) dim = c->in[s].dim > dim ? c->in[s].dim : dim;
    for (int s = 0; s < n_in; s++) x[s] = rws__call_input(c, s, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double total = 0;
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) {
            double in[RWS_MAX_EACH], slope[RWS_MAX_EACH];
            for (int s = 0; s < n_in; s++) in[s] = (double)x[s][i];
            total += f(in, slope);
        }
        c->out[r] = (float)total;
    }
}

static inline __attribute__((always_inline)) void rws__each_density_backward(rws_call *c, int n_in,
                                                                             rws_each_function *f)
{
    int          dim = 1;
    const float *x[RWS_MAX_EACH];
    float       *g[RWS_MAX_EACH];
    for (int s = 0; s < n_in; s++) dim = c->in[s].dim > dim ? c->in[s].dim : dim;
    for (int s = 0; s < n_in; s++) x[s] = rws__call_input(c, s, dim), g[s] = rws__call_open(c, s, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        double in[RWS_MAX_EACH], slope[RWS_MAX_EACH] = {0};
        if (c->gout[i / (size_t)dim] == 0) continue;
        for (int s = 0; s < n_in; s++) in[s] = (double)x[s][i];
        f(in, slope);
        for (int s = 0; s < n_in; s++)
            if (g[s]) g[s][i] += (float)((double)c->gout[i / (size_t)dim] * slope[s]);
    }
    for (int s = 0; s < n_in; s++) rws__call_close(c, s, dim, g[s]);
}

/* The directional derivative of a log-density: the sum over components and inputs of slope_s d_s. Inputs: those of the
 * density, n_in of them, then as many directions d. */
static inline __attribute__((always_inline)) void rws__each_tangent_forward(rws_call *c, int n_in, rws_each_function *f)
{
    int          dim = 1;
    const float *x[2 * RWS_MAX_EACH];
    for (int s = 0; s < 2 * n_in; s++) dim = c->in[s].dim > dim ? c->in[s].dim : dim;
    for (int s = 0; s < 2 * n_in; s++) x[s] = rws__call_input(c, s, dim);
    for (size_t r = 0; r < (size_t)c->n; r++) {
        double total = 0;
        for (size_t i = r * (size_t)dim; i < (r + 1) * (size_t)dim; i++) {
            double in[RWS_MAX_EACH], slope[RWS_MAX_EACH] = {0};
            for (int s = 0; s < n_in; s++) in[s] = (double)x[s][i];
            f(in, slope);
            for (int s = 0; s < n_in; s++)
                if (x[n_in + s][i] != 0) total += slope[s] * (double)x[n_in + s][i];
        }
        c->out[r] = (float)total;
    }
}

/* The derivatives of slope . d by the inputs are those of the slopes along d, since second derivatives commute: a central
 * difference of slopes, which are exact, over a step that is small against every input that is not 0. */
static inline __attribute__((always_inline)) void rws__each_tangent_backward(rws_call *c, int n_in,
                                                                             rws_each_function *f)
{
    int          dim = 1;
    const float *x[2 * RWS_MAX_EACH];
    float       *g[2 * RWS_MAX_EACH];
    for (int s = 0; s < 2 * n_in; s++) dim = c->in[s].dim > dim ? c->in[s].dim : dim;
    for (int s = 0; s < 2 * n_in; s++) x[s] = rws__call_input(c, s, dim), g[s] = rws__call_open(c, s, dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)dim; i++) {
        double       in[RWS_MAX_EACH], up[RWS_MAX_EACH], down[RWS_MAX_EACH], slope[RWS_MAX_EACH] = {0};
        double       high[RWS_MAX_EACH] = {0}, low[RWS_MAX_EACH] = {0}, least = INFINITY, most = 0;
        const double by = (double)c->gout[i / (size_t)dim];
        if (by == 0) continue;
        for (int s = 0; s < n_in; s++) {
            in[s] = (double)x[s][i];
            least = in[s] != 0 ? fmin(least, fabs(in[s])) : least;
            most = fmax(most, fabs((double)x[n_in + s][i]));
        }
        if (most == 0) most = 1;
        const double h = 1e-5 * (isfinite(least) ? least : 1) / most;
        for (int s = 0; s < n_in; s++) {
            const double d = (double)x[n_in + s][i];
            up[s] = d == 0 ? in[s] : in[s] + h * d;
            down[s] = d == 0 ? in[s] : in[s] - h * d;
        }
        f(in, slope), f(up, high), f(down, low);
        for (int s = 0; s < n_in; s++) {
            if (g[s]) g[s][i] += (float)(by * (high[s] - low[s]) / (2 * h));
            if (g[n_in + s]) g[n_in + s][i] += (float)(by * slope[s]);
        }
    }
    for (int s = 0; s < 2 * n_in; s++) rws__call_close(c, s, dim, g[s]);
}

/* Records the op above for a log-density that moves. */
static inline rws_var rws__each_tangent(rws_tangent *t, const rws_op *op)
{
    rws_var in[2 * RWS_MAX_EACH];
    for (int s = 0; s < t->n_in; s++) {
        in[s] = t->in[s];
        in[t->n_in + s] = t->d[s].id ? t->d[s] : rws__tangent_zeros(t, 1);
    }
    return rws__tangent_record(t, op, (rws_op_args){0}, in, 2 * t->n_in, 1);
}

static inline __attribute__((always_inline)) void rws__each_draw_forward(rws_call *c, int n_in, rws_each_function *f)
{
    const float *x[RWS_MAX_EACH];
    for (int s = 0; s < n_in; s++) x[s] = rws__call_input(c, s, c->dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) {
        double in[RWS_MAX_EACH], slope[RWS_MAX_EACH];
        for (int s = 0; s < n_in; s++) in[s] = (double)x[s][i];
        c->out[i] = (float)f(in, slope);
        if (isnan(c->out[i])) c->refused = true;
    }
}

static inline __attribute__((always_inline)) void rws__each_draw_backward(rws_call *c, int n_in, rws_each_function *f)
{
    const float *x[RWS_MAX_EACH];
    float       *g[RWS_MAX_EACH];
    for (int s = 0; s < n_in; s++) x[s] = rws__call_input(c, s, c->dim), g[s] = rws__call_open(c, s, c->dim);
    for (size_t i = 0; i < (size_t)c->n * (size_t)c->dim; i++) {
        double in[RWS_MAX_EACH], slope[RWS_MAX_EACH] = {0};
        if (c->gout[i] == 0) continue;
        for (int s = 0; s < n_in; s++) in[s] = (double)x[s][i];
        f(in, slope);
        for (int s = 0; s < n_in; s++)
            if (g[s]) g[s][i] += (float)((double)c->gout[i] * slope[s]);
    }
    for (int s = 0; s < n_in; s++) rws__call_close(c, s, c->dim, g[s]);
}

/* The message about the first parameter that must be above 0 and is not; positive[i] is the name of parameter i, or NULL
 * if it may be any number. The parameters are the inputs from `first` on. */
static inline rws_status rws__each_explain(const rws_call *c, size_t row, int first, int n, const char *const *positive,
                                           const char *site, rws_error *err)
{
    for (int i = 0; i < n; i++)
        if (positive[i]) RWS_TRY(rws__explain_positive(c, row, first + i, positive[i], site, err));
    return RWS_OK;
}

/* A message about the parameters, which are the inputs from `first` on; RWS_OK if they are right. */
typedef rws_status rws_each_explainer(const rws_call *c, size_t row, int first, const char *site, rws_error *err);

/* The log-density op of a family with n parameters: rws_op_NAME_density, and the function of the family that records it. */
#define RWS_EACH_DENSITY(name_, n_, density_, explain_)                                                        \
    static void name_##_density_forward(rws_call *c)                                                           \
    {                                                                                                          \
        rws__each_density_forward(c, (n_) + 1, density_);                                                      \
    }                                                                                                          \
    static void name_##_density_backward(rws_call *c)                                                          \
    {                                                                                                          \
        rws__each_density_backward(c, (n_) + 1, density_);                                                     \
    }                                                                                                          \
    static rws_status name_##_density_explain(const rws_call *c, size_t row, const char *site, rws_error *err) \
    {                                                                                                          \
        return explain_(c, row, 1, site, err);                                                                 \
    }                                                                                                          \
    static void name_##_density_tangent_forward(rws_call *c)                                                   \
    {                                                                                                          \
        rws__each_tangent_forward(c, (n_) + 1, density_);                                                      \
    }                                                                                                          \
    static void name_##_density_tangent_backward(rws_call *c)                                                  \
    {                                                                                                          \
        rws__each_tangent_backward(c, (n_) + 1, density_);                                                     \
    }                                                                                                          \
    const rws_op   rws_op_##name_##_density_tangent = {.name = #name_ "_density_tangent",                      \
                                                       .forgets = true,                                        \
                                                       .forward = name_##_density_tangent_forward,             \
                                                       .backward = name_##_density_tangent_backward};          \
    static rws_var name_##_density_tangent(rws_tangent *t)                                                     \
    {                                                                                                          \
        return rws__each_tangent(t, &rws_op_##name_##_density_tangent);                                        \
    }                                                                                                          \
    const rws_op   rws_op_##name_##_density = {.name = #name_ "_density",                                      \
                                               .forgets = true,                                                \
                                               .forward = name_##_density_forward,                             \
                                               .backward = name_##_density_backward,                           \
                                               .tangent = name_##_density_tangent,                             \
                                               .explain = name_##_density_explain};                            \
    static rws_var name_##_log_density(rws_path *path, const rws_family *f, rws_var value, const rws_var *p)   \
    {                                                                                                          \
        (void)f;                                                                                               \
        rws_var in[RWS_MAX_EACH] = {value};                                                                    \
        for (int i = 0; i < (n_); i++) in[i + 1] = p[i];                                                       \
        return rws__record(path, &rws_op_##name_##_density, (rws_op_args){0}, in, (n_) + 1, 1);                \
    }

/* The op of a draw: rws_op_NAME_draw, and the function of the family that records it. */
#define RWS_EACH_DRAW(name_, n_, draw_, explain_, noise_)                                                   \
    static void name_##_draw_forward(rws_call *c)                                                           \
    {                                                                                                       \
        rws__each_draw_forward(c, (n_) + 1, draw_);                                                         \
    }                                                                                                       \
    static void name_##_draw_backward(rws_call *c)                                                          \
    {                                                                                                       \
        rws__each_draw_backward(c, (n_) + 1, draw_);                                                        \
    }                                                                                                       \
    static rws_status name_##_draw_explain(const rws_call *c, size_t row, const char *site, rws_error *err) \
    {                                                                                                       \
        return explain_(c, row, 0, site, err);                                                              \
    }                                                                                                       \
    const rws_op   rws_op_##name_##_draw = {.name = #name_ "_draw",                                         \
                                            .forgets = true,                                                \
                                            .forward = name_##_draw_forward,                                \
                                            .backward = name_##_draw_backward,                              \
                                            .explain = name_##_draw_explain};                               \
    static rws_var name_##_draw(rws_path *path, const rws_family *f, const rws_var *p, bool stop)           \
    {                                                                                                       \
        (void)f;                                                                                            \
        const int dim = rws__dist_longest(path, p, n_);                                                     \
        rws_var   in[RWS_MAX_EACH];                                                                         \
        for (int i = 0; i < (n_); i++) in[i] = p[i];                                                        \
        in[n_] = rws_draw_noise(path, noise_, dim);                                                         \
        return rws__record(path, &rws_op_##name_##_draw, (rws_op_args){.stop = stop}, in, (n_) + 1, dim);   \
    }

/* Both ops and the family: rws_NAME_family. The last argument may add members to the struct. */
#define RWS_EACH_FAMILY(name_, text_, help_, support_, n_, density_, draw_, explain_, noise_, ...) \
    RWS_EACH_DENSITY(name_, n_, density_, explain_)                                                \
    RWS_EACH_DRAW(name_, n_, draw_, explain_, noise_)                                              \
    const rws_family rws_##name_##_family = {.name = text_,                                        \
                                             .help = help_,                                        \
                                             .support = support_,                                  \
                                             .reparameterised = true,                              \
                                             .n_params = n_,                                       \
                                             .draw = name_##_draw,                                 \
                                             .log_density = name_##_log_density,                   \
                                             __VA_ARGS__};

/* The explainer of a family in which a table `positive` names the parameters that must be above 0. */
#define RWS_EACH_EXPLAIN(positive_)                                                                                    \
    static rws_status explain(const rws_call *c, size_t row, int first, const char *site, rws_error *err)              \
    {                                                                                                                  \
        return rws__each_explain(c, row, first, (int)(sizeof(positive_) / sizeof *(positive_)), positive_, site, err); \
    }

#endif
