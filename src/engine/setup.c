#include "engine/setup.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rws_setup_release(rws_setup *s)
{
    rws_params_release(&s->params);
    rws_arena_free(&s->memory);
}

static void declare_failed(rws_setup *s, const char *format, const char *name)
{
    if (s->status == RWS_OK) s->status = rws_fail(&s->error, RWS_BAD_INPUT, format, name);
}

const char *rws_setup_given(const rws_setup *s, const char *name)
{
    for (int i = 0; i < s->n_given; i++)
        if (strcmp(s->given[i].setting->name, name) == 0) return s->given[i].value;
    return NULL;
}

const char *rws_setup_text(const rws_setup *s, const char *name)
{
    const char *value = rws_setup_given(s, name);
    RWS_CHECK(value && "a setting of this model's table");
    return value;
}

const char *rws_setup_path(rws_setup *s, const char *name)
{
    const char *text = rws_setup_text(s, name);
    char       *path = realpath(text, NULL);
    if (!path) return text;
    for (int i = 0; i < s->n_given; i++)
        if (strcmp(s->given[i].setting->name, name) == 0)
            s->given[i].value = strcpy(rws_setup_alloc(s, strlen(path) + 1), path);
    free(path);
    return rws_setup_text(s, name);
}

double rws_setup_number(const rws_setup *s, const char *name)
{
    return strtod(rws_setup_text(s, name), NULL);
}

int rws_setup_int(const rws_setup *s, const char *name)
{
    return (int)lrint(rws_setup_number(s, name));
}

void *rws_setup_alloc(rws_setup *s, size_t bytes)
{
    return rws_arena_zero(&s->memory, bytes);
}

static void declare_field(rws_setup *s, const char *name, int dim, bool label)
{
    if (s->n_fields == RWS_FIELDS || dim < 1) {
        declare_failed(s, "The field \"%s\" cannot be declared: too many fields, or an empty one.", name);
        return;
    }
    s->fields[s->n_fields++] = (rws_field){name, dim, label};
}

void rws_setup_field(rws_setup *s, const char *name, int dim)
{
    declare_field(s, name, dim, false);
}

void rws_setup_label(rws_setup *s, const char *name, int dim)
{
    declare_field(s, name, dim, true);
}

void rws_setup_relaxed(rws_setup *s, const char *site, int n_categories)
{
    RWS_CHECK(strlen(site) < sizeof s->relaxed_site && n_categories > 1);
    strcpy(s->relaxed_site, site);
    s->relaxed_categories = n_categories;
}

/* Every parameter has a stream of its own, by its place in the declaration. n_in: 0 for the columns. */
static void start(rws_setup *s, rws_param *p, rws_init init, int n_in)
{
    rws_random  g = rws_random_new(rws_key_for(s->seed, 0, RWS_KEY_INIT, 0), (uint32_t)s->params.n);
    const float scale = 1 / sqrtf((float)(n_in ? n_in : p->cols));
    for (size_t i = 0; i < rws_param_size(p); i++) {
        double x = 0;
        if (init == RWS_UNIFORM) x = 2 * rws_random_uniform(&g) - 1;
        if (init == RWS_TRUNCATED) do {
                x = rws_random_normal(&g);
            } while (fabs(x) > 2);
        p->value[i] = scale * (float)x;
    }
}

rws_param *rws_setup_param_scaled(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init,
                                  int n_in)
{
    static rws_param nothing; /* what a failed declaration returns; the run never starts */
    if (rows < 1 || cols < 1 || strlen(name) >= sizeof nothing.name) {
        declare_failed(s, "The parameter \"%s\" cannot be declared: it is empty, or its name is too long.", name);
        return &nothing;
    }
    rws_param *p = rws_params_add(&s->params, group, name, rows, cols);
    if (!p) {
        declare_failed(s, "Two parameters have the name \"%s\".", name);
        return &nothing;
    }
    start(s, p, init, n_in);
    return p;
}

rws_param *rws_setup_param(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init)
{
    return rws_setup_param_scaled(s, group, name, rows, cols, init, 0);
}
