/* settings.c - which settings a run has, and whether what the user typed fits them. */
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "program/program.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const rws_setting of_gradients[] = {
    {"std_ref", "0", 0, 1, "1: grad_std divided as in the authors' code", true},
    {"grad_snr", "0", 0, 1e6,
     "1: also measure the signal-to-noise ratios of the gradients, snr_theta and snr_phi; more: from so many draws",
     true},
    {0},
};

const rws_setting *rws__run_settings(const rws_model *m)
{
    return m->defaults.grad_std ? of_gradients : NULL;
}

static int count(const rws_setting *table)
{
    int n = 0;
    while (table && table[n].name) n++;
    return n;
}

static int add(rws_given *given, int n, const rws_setting *table)
{
    for (int i = 0; table && table[i].name; i++) given[n++] = (rws_given){&table[i], table[i].value};
    return n;
}

static bool has(const rws_setting *table, const char *name, size_t length)
{
    for (int i = 0; table && table[i].name; i++)
        if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0) return true;
    return false;
}

static rws_status check(const rws_setting *s, const char *value, rws_error *err)
{
    if (s->min == 0 && s->max == 0) return RWS_OK; /* text: its owner knows */
    char  *end;
    double x = g_ascii_strtod(value, &end);
    if (end == value || *end)
        return rws_fail(err, RWS_BAD_INPUT, "Setting %s must be a number, not \"%s\".", s->name, value);
    if (!(x >= s->min && x <= s->max))
        return rws_fail(err, RWS_BAD_INPUT, "Setting %s must be between %g and %g, not %s.", s->name, s->min, s->max,
                        value);
    if (s->whole && x != floor(x))
        return rws_fail(err, RWS_BAD_INPUT, "Setting %s must be a whole number, not %s.", s->name, value);
    return RWS_OK;
}

enum { GIVEN, SITE, GUIDE, GUIDE_WIDTH, GUIDE_MEMORY, GUIDE_COMPONENTS };

const rws_setting rws_open_settings[] = {
    [GIVEN] = {"given", "", 0, 0, "CSV file of choices that are known: datum,site,visit,value"},
    [SITE] = {RWS_SITE_PREFIX "NAME", "", 0, 0,
              "score or reparameterised: how the gradient of the values at site NAME comes; sum: all its values are "
              "gone through"},
    [GUIDE] =
        {"guide", "", 0, 0,
         "hand, the model's own; automatic, which a model without one has; or rest: automatic for the sites that the "
         "model's own leaves out"},
    [GUIDE_WIDTH] = {"guide.width", "32", 1, 4096, "units of the layers of an automatic guide", true},
    [GUIDE_MEMORY] = {"guide.memory", "16", 0, 4096, "units of its state over the choices made so far", true},
    [GUIDE_COMPONENTS] = {"guide.components", "3", 1, 100,
                          "of the mixtures that it draws continuous values from; 1 with pathwise gradients", true},
    {0},
};

static bool is_open(const rws_given *g, int which)
{
    return g->setting->help == rws_open_settings[which].help;
}

/* The entry of rws_open_settings that the first `length` bytes of the text name; -1: none. */
static int open_setting(const char *text, size_t length)
{
    const size_t prefix = strlen(RWS_SITE_PREFIX);
    if (length > prefix && strncmp(text, RWS_SITE_PREFIX, prefix) == 0) return SITE;
    for (int i = 0; rws_open_settings[i].name; i++)
        if (i != SITE && strlen(rws_open_settings[i].name) == length &&
            strncmp(text, rws_open_settings[i].name, length) == 0)
            return i;
    return -1;
}

/* Adds a setting of rws_open_settings if the first `length` bytes of the text name one. NULL if they do not, or without
 * memory. */
static rws_given *add_open(rws_setup *s, const char *text, size_t length)
{
    const int which = open_setting(text, length);
    if (which < 0) return NULL;
    rws_setting *own = rws_setup_alloc(s, sizeof *own);
    char        *name = rws_setup_alloc(s, length + 1);
    if (!own || !name) return NULL;
    *own = rws_open_settings[which];
    own->name = memcpy(name, text, length);
    s->given[s->n_given] = (rws_given){own, ""};
    return &s->given[s->n_given++];
}

/* ---- the automatic guide */

static const char *open_value(const rws_setup *s, int which)
{
    const char *value = rws__setup_given(s, rws_open_settings[which].name);
    return value ? value : rws_open_settings[which].value;
}

static int open_number(const rws_setup *s, int which)
{
    return (int)g_ascii_strtod(open_value(s, which), NULL);
}

static bool is_pathwise(const rws_estimator *e)
{
    bool pathwise = false;
    for (int i = 0; i < e->n_phases; i++) pathwise |= e->phases[i].pathwise;
    return pathwise;
}

rws_status rws__program_guide_sizes(rws_program *p, rws_guide_sizes *sizes, bool *automatic, rws_error *err)
{
    const rws_setup *s = &p->setup;
    const char      *how = open_value(s, GUIDE);
    const bool       hand = strcmp(how, "hand") == 0, rest = strcmp(how, "rest") == 0;
    const bool one = is_pathwise(p->method.estimator) && !rws__setup_given(s, rws_open_settings[GUIDE_COMPONENTS].name);
    if (*how && !hand && !rest && strcmp(how, "automatic") != 0)
        return rws_fail(err, RWS_BAD_INPUT, "Setting guide is hand, automatic or rest, not \"%s\".", how);
    if ((hand || rest) && !p->model->guide)
        return rws_fail(err, RWS_BAD_INPUT, "Model %s has no guide of its own, so that setting guide cannot be %s.",
                        p->model->name, how);
    *automatic = !p->model->guide || (*how && !hand);
    *sizes = (rws_guide_sizes){.width = open_number(s, GUIDE_WIDTH),
                               .memory = open_number(s, GUIDE_MEMORY),
                               .components = one ? 1 : open_number(s, GUIDE_COMPONENTS),
                               .rest = rest};
    return RWS_OK;
}

const char *rws__program_given_file(rws_program *p)
{
    for (int i = 0; i < p->setup.n_given; i++)
        if (is_open(&p->setup.given[i], GIVEN))
            return *p->setup.given[i].value ? rws_setup_path(&p->setup, rws_open_settings[GIVEN].name) : NULL;
    return NULL;
}

rws_status rws__program_make_gradients(rws_program *p, rws_error *err)
{
    static const char *const hows[] = {"reparameterised", "score", "sum", NULL};
    rws_setup               *s = &p->setup;
    for (int i = 0; i < s->n_given; i++) {
        const char *name = s->given[i].setting->name, *value = s->given[i].value;
        if (!is_open(&s->given[i], SITE)) continue;
        int k = 0;
        while (hows[k] && strcmp(value, hows[k]) != 0) k++;
        if (!hows[k])
            return rws_fail(err, RWS_BAD_INPUT, "Setting %s is score, reparameterised or sum, not \"%s\".", name,
                            value);
        rws_setup_gradient(s, name + strlen(RWS_SITE_PREFIX), (rws_gradient)k);
    }
    return RWS_OK;
}

/* The first `length` characters of text are no setting of this model and method. */
static rws_status refuse_unknown(const rws_program *p, const rws_estimator *estimator, const char *text, size_t length,
                                 rws_error *err)
{
    const rws_quoted name = rws__quote_prefix(text, length, RWS_QUOTED_SHORT);
    char             owners[128] = "";
    int              n_owners = 0;
    for (int k = 0; rws_estimators[k]; k++)
        if (has(rws_estimators[k]->settings, text, length)) {
            const size_t used = strlen(owners);
            snprintf(owners + used, sizeof owners - used, "%s%s", n_owners++ ? " and " : "", rws_estimators[k]->name);
        }
    if (n_owners)
        return rws_fail(err, RWS_BAD_INPUT, "Setting %s belongs to %s %s, not to %s.", name.text,
                        n_owners == 1 ? "method" : "the methods", owners, estimator->name);
    rws_nearest near = rws__nearest_to(name.text);
    for (int i = 0; i < p->setup.n_given; i++) rws__nearest_try(&near, p->setup.given[i].setting->name);
    return rws_fail(err, RWS_BAD_INPUT, "Neither model %s nor method %s has a setting \"%s\"%s; `rws list` shows them.",
                    p->model->name, estimator->name, name.text, rws__nearest_hint(&near).text);
}

/* Gives a setting the value that "name=value" says. */
static rws_status give(rws_program *p, const rws_estimator *estimator, const char *text, rws_error *err)
{
    rws_setup   *s = &p->setup;
    const char  *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0)
        return rws_fail(err, RWS_BAD_INPUT, "`set` takes name=value, not \"%s\".", rws__quote_short(text).text);
    rws_given *g = NULL;
    for (int k = 0; k < s->n_given; k++)
        if (strlen(s->given[k].setting->name) == length && strncmp(s->given[k].setting->name, text, length) == 0)
            g = &s->given[k];
    if (!g) g = add_open(s, text, length);
    if (!g) return refuse_unknown(p, estimator, text, length, err);
    RWS_TRY(check(g->setting, equals + 1, err));
    char *value = rws_setup_alloc(s, strlen(equals + 1) + 1);
    if (!value) return rws_no_memory(err, "the settings");
    g->value = strcpy(value, equals + 1);
    return RWS_OK;
}

rws_status rws__program_make_settings(rws_program *p, const rws_estimator *estimator, const char *const *more,
                                      int n_more, rws_error *err)
{
    const rws_config  *c = &p->config;
    rws_setup         *s = &p->setup;
    const rws_setting *run = rws__run_settings(p->model);
    const int          n = count(p->model->settings) + count(estimator->settings) + count(run) + c->n_set + n_more + 1;
    s->given = rws_setup_alloc(s, (size_t)n * sizeof *s->given);
    if (!s->given) return rws_no_memory(err, "the settings");
    s->n_given = add(s->given, 0, p->model->settings);
    s->n_given = add(s->given, s->n_given, estimator->settings);
    s->n_given = add(s->given, s->n_given, run);
    for (int i = 0; i < c->n_set; i++) RWS_TRY(give(p, estimator, c->set[i], err));
    for (int i = 0; i < n_more; i++) RWS_TRY(give(p, estimator, more[i], err));
    return RWS_OK;
}
