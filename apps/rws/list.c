/* list.c - rws list: models, methods, optimisers and their settings, distributions, layers and functions, read from the
 * tables that define them, or from the shared object of a user's model. */
#include "base/error.h"
#include "base/quote.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "rws/output.h"
#include "dist/dist.h"
#include "nn/layer.h"
#include "program/plugin.h"
#include "program/program.h"

#include <stdio.h>
#include <string.h>

enum {
    MODELS = 1,
    METHODS = 2,
    OPTIMISERS = 4,
    SETTINGS = 8,
    DISTRIBUTIONS = 16,
    LAYERS = 32,
    FUNCTIONS = 64,
    ALL = MODELS | METHODS | OPTIMISERS | DISTRIBUTIONS | LAYERS | FUNCTIONS,
    KEY_JSON = 0x2000
};

typedef struct {
    unsigned    what;  /* 0: everything but settings */
    const char *model; /* of SETTINGS: a name or the path of a shared object */
    bool        json;
} list_options;

/* A user's model may leave a text out. */
static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* ---- as JSON: one object for each model, method or optimiser */

static void add_settings(json_t *list, const rws_setting *s)
{
    for (; s && s->name; s++) {
        const bool text = s->min == 0 && s->max == 0;
        json_t    *o =
            json_pack("{s:o,s:o,s:o}", "name", rws__json_string(s->name), "default",
                      rws__json_string(text_or_empty(s->value)), "help", rws__json_string(text_or_empty(s->help)));
        if (!text) json_object_set_new(o, "min", json_real(s->min));
        if (!text) json_object_set_new(o, "max", json_real(s->max));
        json_array_append_new(list, o);
    }
}

static json_t *json_settings(const rws_setting *s)
{
    json_t *list = json_array();
    add_settings(list, s);
    return list;
}

static json_t *json_entry(const char *kind, const char *name, const char *help)
{
    return json_pack("{s:s,s:o,s:o}", "kind", kind, "name", rws__json_string(name), "help",
                     rws__json_string(text_or_empty(help)));
}

static json_t *json_named(const char *name, const char *help)
{
    return json_pack("{s:o,s:o}", "name", rws__json_string(name), "help", rws__json_string(text_or_empty(help)));
}

static void json_model(const rws_model *m)
{
    json_t *o = json_entry("model", m->name, m->help), *metrics = json_array();
    for (const rws_metric *k = m->metrics; k && k->name; k++)
        json_array_append_new(metrics, json_named(k->name, k->help));
    json_object_set_new(o, "metrics", metrics);
    json_t *snapshots = json_array();
    for (const rws_snapshot *k = m->snapshots; k && k->name; k++)
        json_array_append_new(snapshots, json_named(k->name, k->help));
    json_object_set_new(o, "snapshots", snapshots);
    json_t *settings = json_settings(m->settings);
    add_settings(settings, rws__run_settings(m));
    json_object_set_new(o, "settings", settings);
    rws__output_json(o);
}

static void json_method(const rws_method_info *e)
{
    json_t *o = json_entry("method", e->name, e->help);
    json_object_set_new(o, "min_particles", json_integer(e->min_particles));
    json_object_set_new(o, "settings", json_settings(e->settings));
    rws__output_json(o);
}

/* ---- as text */

static void print_settings(const rws_setting *s)
{
    for (; s && s->name; s++) {
        char range[64];
        if (s->min == 0 && s->max == 0) snprintf(range, sizeof range, "text");
        else snprintf(range, sizeof range, "%g … %g", s->min, s->max);
        /* "…" is one column and three bytes */
        printf("      %-16s %-8s %-*s %s\n", s->name, text_or_empty(s->value), strchr(range, ' ') ? 16 : 14, range,
               text_or_empty(s->help));
    }
}

static void print_model(const rws_model *m)
{
    printf("  %-12s %s\n", m->name, text_or_empty(m->help));
    for (const rws_metric *k = m->metrics; k && k->name; k++)
        printf("      %-16s %s\n", k->name, text_or_empty(k->help));
    print_settings(m->settings);
    print_settings(rws__run_settings(m));
}

static void print_method(const rws_method_info *e)
{
    printf("  %-12s %s%s\n", e->name, e->help, e->min_particles > 1 ? " (K > 1)" : "");
    print_settings(e->settings);
}

/* ---- walking the tables */

static rws_status list_settings(const list_options *o, rws_error *err)
{
    const rws_model *m;
    void            *library;
    RWS_TRY(rws__model_load(&(rws_config){.model = o->model}, NULL, &m, &library, err));
    (o->json ? json_model : print_model)(m);
    rws__model_unload(library);
    return RWS_OK;
}

/* One line, or one object, for an entry that has a name and a help text. */
static void entry(const char *kind, const char *name, const char *help, int width, bool json)
{
    if (json) rws__output_json(json_entry(kind, name, help));
    else printf("  %-*s %s\n", width, name, text_or_empty(help));
}

static void list_vocabulary(unsigned what, bool json)
{
    if (what & DISTRIBUTIONS && !json) puts("Distributions:");
    for (int i = 0; what & DISTRIBUTIONS && rws_families[i]; i++)
        entry("distribution", rws_families[i]->name, rws_families[i]->help, 19, json);
    if (what & LAYERS && !json) puts("Layers:");
    for (int i = 0; what & LAYERS && rws_layer_kinds[i]; i++)
        entry("layer", rws_layer_kinds[i]->name, rws_layer_kinds[i]->help, 19, json);
    if (what & FUNCTIONS && !json) puts("Functions, for rws_apply:");
    for (int i = 0; what & FUNCTIONS && i < (int)(sizeof rws_functions / sizeof *rws_functions); i++)
        entry("function", rws_functions[i].name, rws_functions[i].help, 12, json);
}

static void list_tables(unsigned what, bool json)
{
    const rws_model   *model;
    rws_method_info    method;
    rws_optimiser_info optimiser;
    if (what & MODELS && !json) puts("Models, with their metrics and settings (default, range):");
    for (int i = 0; what & MODELS && (model = rws_model_at(i)); i++) (json ? json_model : print_model)(model);
    if (what & METHODS && !json) puts("Methods, with their settings (default, range):");
    for (int i = 0; what & METHODS && rws_method_at(i, &method); i++) (json ? json_method : print_method)(&method);
    if (what & METHODS && !json) {
        puts("Settings with every model and method:");
        print_settings(rws_open_settings);
    }
    if (what & OPTIMISERS && !json) puts("Optimisers:");
    for (int i = 0; what & OPTIMISERS && rws_optimiser_at(i, &optimiser); i++)
        entry("optimiser", optimiser.name, optimiser.help, 12, json);
    list_vocabulary(what, json);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const struct {
        const char *name;
        unsigned    what;
    } kinds[] = {{"models", MODELS},
                 {"methods", METHODS},
                 {"optimisers", OPTIMISERS},
                 {"settings", SETTINGS},
                 {"distributions", DISTRIBUTIONS},
                 {"layers", LAYERS},
                 {"functions", FUNCTIONS}};
    list_options *o = state->input;
    switch (key) {
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->what == SETTINGS && !o->model) {
            o->model = arg;
            return 0;
        }
        if (o->what) return rws__arguments_extra(state, arg);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(kinds[i].name, arg) == 0) o->what = kinds[i].what;
        if (o->what) return 0;
        if (!rws__model_is_path(arg))
            return rws__arguments_fail(
                state,
                "rws lists models, methods, optimisers, distributions, layers, functions and settings, not \"%s\".",
                rws__quote_short(arg).text);
        o->what = SETTINGS;
        o->model = arg;
        return 0;
    case ARGP_KEY_END:
        return o->what == SETTINGS && !o->model ? rws__arguments_fail(state, "Settings of which model?") : 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = (const struct argp_option[]){{"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0}, {0}},
    .parser = parse,
    .args_doc = "[models|methods|optimisers|distributions|layers|functions|settings MODEL]",
    .doc = "Lists models, methods, optimisers and their settings, distributions, layers and functions. With "
           "`settings`, MODEL is a name or the path of a "
           "shared object; a path alone means its settings.",
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    list_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws list", argc, argv, 0, &o, err));
    if (o.what == SETTINGS) return list_settings(&o, err);
    list_tables(o.what ? o.what : ALL, o.json);
    return RWS_OK;
}

const rws_command rws_command_list = {"list", "show models, methods, distributions and settings", run, &argp};
