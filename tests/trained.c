#include "trained.h"

#include <stdio.h>
#include <string.h>

rws_trainer *trainer_for(const rws_config *c, const rws_model *model)
{
    rws_trainer     *t = NULL;
    rws_error        err = {""};
    const rws_status status = model ? rws_trainer_new(c, model, &t, &err) : rws_trainer_new(c, NULL, &t, &err);
    if (status != RWS_OK) fail_msg("%s: %s", c->method, err.text);
    return t;
}

void steps(rws_trainer *t, int n)
{
    rws_error err = {""};
    for (int i = 0; i < n; i++)
        if (rws_trainer_step(t, &err) != RWS_OK) fail_msg("%s", err.text);
}

void gradient_of(rws_trainer *t, uint64_t draw, float *gradient)
{
    rws_error err = {""};
    if (rws_trainer_gradient(t, RWS_TRAIN, draw, gradient, rws_trainer_size(t), &err) != RWS_OK)
        fail_msg("%s", err.text);
}

void evaluate(rws_trainer *t, rws_measures *m)
{
    rws_error err = {""};
    if (rws_trainer_evaluate(t, m, &err) != RWS_OK) fail_msg("%s", err.text);
}

double metric_of(const rws_trainer *t, const rws_measures *m, const char *name)
{
    (void)t;
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->names[i], name) == 0) return m->value[i];
    fail_msg("There is no metric %s.", name);
    return 0;
}

double metric(rws_trainer *t, const char *name)
{
    rws_measures m;
    evaluate(t, &m);
    return metric_of(t, &m, name);
}

rws_param *param_of(const rws_params *p, const char *format, ...)
{
    char    name[200];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, name) == 0) return p->list[i];
    fail_msg("There is no parameter %s.", name);
    return NULL;
}

void assert_close(const float *a, const float *b, size_t n, double tolerance, const char *what)
{
    double scale = 0, worst = 0;
    for (size_t i = 0; i < n; i++) {
        scale = fmax(scale, fabs((double)a[i]));
        worst = worse(worst, fabs((double)a[i] - (double)b[i]));
    }
    if (!(scale > 0 && worst <= tolerance * scale)) fail_msg("%s: differs by %g of %g", what, worst, scale);
}

/* ---- means of gradients */

typedef struct {
    uint64_t draws;
    double  *sum, *squares;
} sample;

static void draw_more(rws_trainer *t, sample *s, uint64_t n, size_t end, float *g)
{
    for (uint64_t i = 0; i < n; i++) {
        gradient_of(t, s->draws++, g);
        for (size_t k = 0; k < end; k++) {
            s->sum[k] += (double)g[k];
            s->squares[k] += (double)g[k] * (double)g[k];
        }
    }
}

/* The largest of Student's t over all numbers of the mean gradient; NaN if one of them is. */
static double largest_t(const sample *s, const double *right, size_t end, double slack, size_t *at)
{
    double top = 0, scale = 0;
    for (size_t k = 0; k < end; k++) scale = fmax(scale, fabs(right[k]));
    for (size_t k = 0; k < end; k++) {
        const double n = (double)s->draws, mean = s->sum[k] / n;
        const double variance = fmax(0, s->squares[k] / n - mean * mean) / (n - 1);
        const double rounding = 1e-6 * scale; /* rounding of sums of floats, which is not part of the spread */
        const double apart = fabs(mean - right[k]) - slack;
        const double t = apart < 0 ? 0 : apart / sqrt(variance + rounding * rounding);
        if (!isnan(top) && !(t <= top)) top = t, *at = k;
    }
    return top;
}

void assert_mean(const char *what, rws_trainer *t, const double *right, size_t end, uint64_t draws, double slack)
{
    const double bound = 6;
    sample       s = {0, calloc(end, sizeof(double)), calloc(end, sizeof(double))};
    float       *g = malloc(rws__trainer_state_of(t).params->size * sizeof *g);
    size_t       at = 0;
    double       top = INFINITY;
    for (uint64_t n = draws; n <= 16 * draws && !(top < bound); n *= 4) {
        draw_more(t, &s, n - s.draws, end, g);
        top = largest_t(&s, right, end, slack, &at);
    }
    if (getenv("RWS_TEST_VERBOSE")) printf("%-40s %5d draws, t = %.2f\n", what, (int)s.draws, top);
    if (!(top < bound))
        fail_msg("%s: number %d of the gradient is %g on average, not %g (t = %.1f).", what, (int)at,
                 s.sum[at] / (double)s.draws, right[at], top);
    free(s.sum);
    free(s.squares);
    free(g);
}
