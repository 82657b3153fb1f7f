#include "trained.h"

#include <stdio.h>
#include <string.h>

rws_trainer *trainer_for(const rws_config *c, const rws_model *model)
{
    rws_trainer     *t = NULL;
    rws_error        err = {""};
    const rws_status status = model ? rws_trainer_new_with(c, model, &t, &err) : rws_trainer_new(c, &t, &err);
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
    if (rws_trainer_gradient(t, RWS_TRAIN, draw, gradient, &err) != RWS_OK) fail_msg("%s", err.text);
}

void evaluate(rws_trainer *t, rws_measures *m)
{
    rws_error err = {""};
    if (rws_trainer_evaluate(t, m, &err) != RWS_OK) fail_msg("%s", err.text);
}

double metric_of(const rws_trainer *t, const rws_measures *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(rws_trainer_metric_name(t, i), name) == 0) return m->value[i];
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
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    }
    if (!(scale > 0 && worst <= tolerance * scale)) fail_msg("%s: differs by %g of %g", what, worst, scale);
}
