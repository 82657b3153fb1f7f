/* list.c - rws list: models, methods, optimisers and their settings, distributions, layers and functions, read from the
 * tables that define them, or from the shared object of a user's model; or one of them. */
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "rws/listing.h"
#include "rws/output.h"
#include "dist/dist.h"
#include "nn/layer.h"
#include "program/plugin.h"
#include "program/program.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = 0x2000, KEY_WIDE };

typedef struct {
    const char *what, *model; /* NULL: was not given */
    bool        json, wide;
} list_options;

/* An entry of a table. */
typedef struct {
    const char        *name, *help;
    const char        *when;  /* to take a method; else NULL */
    const rws_model   *model; /* NULL: it is none */
    const rws_setting *settings;
    int                min_particles; /* of a method; else 0 */
} item;

static item item_of_model(const rws_model *m)
{
    return (item){m->name, m->help, .model = m, .settings = m->settings};
}

/* ---- the tables: entry i, or false */

static bool model_at(int i, item *out)
{
    const rws_model *m = rws_model_at(i);
    if (m) *out = item_of_model(m);
    return m != NULL;
}

static bool method_at(int i, item *out)
{
    rws_method_info m;
    if (!rws_method_at(i, &m)) return false;
    *out = (item){m.name, m.help, m.when, .settings = m.settings, .min_particles = m.min_particles};
    return true;
}

static bool optimiser_at(int i, item *out)
{
    rws_optimiser_info o;
    if (!rws_optimiser_at(i, &o)) return false;
    *out = (item){o.name, o.help};
    return true;
}

static bool family_at(int i, item *out)
{
    if (rws_families[i]) *out = (item){rws_families[i]->name, rws_families[i]->help};
    return rws_families[i] != NULL;
}

static bool layer_at(int i, item *out)
{
    if (rws_layer_kinds[i]) *out = (item){rws_layer_kinds[i]->name, rws_layer_kinds[i]->help};
    return rws_layer_kinds[i] != NULL;
}

static bool function_at(int i, item *out)
{
    if (i >= (int)(sizeof rws_functions / sizeof *rws_functions)) return false;
    *out = (item){rws_functions[i].name, rws_functions[i].help};
    return true;
}

typedef struct {
    const char *name, *one, *heading;
    bool (*at)(int i, item *out);
} kind;

static const kind kinds[] = {
    {"models", "model", "Models, with their metrics and settings (default, range):", model_at},
    {"methods", "method", "Methods, with their settings (default, range):", method_at},
    {"optimisers", "optimiser", "Optimisers:", optimiser_at},
    {"distributions", "distribution", "Distributions:", family_at},
    {"layers", "layer", "Layers:", layer_at},
    {"functions", "function", "Functions, for rws_apply:", function_at},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* A user's model may leave a text out. */
static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* ---- as JSON: one object for each entry */

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

static json_t *json_named(const char *name, const char *help)
{
    return json_pack("{s:o,s:o}", "name", rws__json_string(name), "help", rws__json_string(text_or_empty(help)));
}

static void json_item(const kind *k, const item *e)
{
    json_t *o = json_pack("{s:s,s:o,s:o}", "kind", k->one, "name", rws__json_string(e->name), "help",
                          rws__json_string(text_or_empty(e->help)));
    if (e->model) {
        json_t *metrics = json_array(), *snapshots = json_array();
        for (const rws_metric *m = e->model->metrics; m && m->name; m++)
            json_array_append_new(metrics, json_named(m->name, m->help));
        for (const rws_snapshot *s = e->model->snapshots; s && s->name; s++)
            json_array_append_new(snapshots, json_named(s->name, s->help));
        json_object_set_new(o, "metrics", metrics);
        json_object_set_new(o, "snapshots", snapshots);
    }
    if (e->when) {
        json_object_set_new(o, "when", json_string(e->when));
        json_object_set_new(o, "min_particles", json_integer(e->min_particles));
    }
    if (e->model || e->when) {
        json_t *settings = json_array();
        add_settings(settings, e->settings);
        if (e->model) add_settings(settings, rws__run_settings(e->model));
        json_object_set_new(o, "settings", settings);
    }
    rws__output_json(o);
}

/* ---- as text */

/* A table without headings: n columns and then one for a sentence. */
static rws_listing *table(int n)
{
    rws_listing *t = rws__listing_new();
    for (int i = 0; i < n; i++) rws__listing_column(t, "", RWS_CELL_LEFT);
    rws__listing_column(t, "", RWS_CELL_TEXT);
    return t;
}

static void print_metrics(const rws_metric *m, bool wide)
{
    if (!m || !m->name) return;
    rws_listing *t = table(1);
    for (; m->name; m++) {
        rws__listing_cell(t, "%-16s", m->name);
        rws__listing_cell(t, "%s", text_or_empty(m->help));
    }
    rws__listing_print(t, 6, wide);
}

static void add_setting_rows(rws_listing *t, const rws_setting *s)
{
    for (; s && s->name; s++) {
        rws__listing_cell(t, "%-16s", s->name);
        rws__listing_cell(t, "%s", text_or_empty(s->value));
        if (s->min == 0 && s->max == 0) rws__listing_cell(t, "text");
        else rws__listing_cell(t, "%g … %g", s->min, s->max);
        rws__listing_cell(t, "%s", text_or_empty(s->help));
    }
}

static void print_settings(const rws_setting *s, const rws_setting *more, bool wide)
{
    rws_listing *t = table(3);
    add_setting_rows(t, s);
    add_setting_rows(t, more);
    rws__listing_print(t, 6, wide);
}

static void print_item(const item *e, bool wide)
{
    rws_listing *t = table(1);
    rws__listing_cell(t, e->model || e->when ? "%-12s" : "%-17s", e->name);
    rws__listing_cell(t, "%s%s", text_or_empty(e->help), e->min_particles > 1 ? " (K > 1)" : "");
    rws__listing_print(t, 2, wide);
    if (e->model) print_metrics(e->model->metrics, wide);
    print_settings(e->settings, e->model ? rws__run_settings(e->model) : NULL, wide);
}

/* ---- walking the tables */

static void list_kind(const kind *k, const list_options *o)
{
    item e;
    if (!o->json) puts(k->heading);
    for (int i = 0; k->at(i, &e); i++) {
        if (o->json) json_item(k, &e);
        else print_item(&e, o->wide);
    }
    if (k->at != method_at || o->json) return;
    puts("Settings with every model and method:");
    print_settings(rws_open_settings, NULL, o->wide);
}

static void explain(const kind *k, const item *e, const list_options *o)
{
    if (o->json) return json_item(k, e);
    printf("%c%s:\n", toupper((unsigned char)k->one[0]), k->one + 1);
    print_item(e, o->wide);
    rws_listing *t = table(0);
    if (e->when) rws__listing_cell(t, "%s", e->when);
    if (e->when)
        rws__listing_cell(t, "It needs %d particle%s or more for each datum. docs/estimators.md has its equations.",
                          e->min_particles, e->min_particles == 1 ? "" : "s");
    rws__listing_print(t, 2, o->wide);
}

static rws_status list_settings(const list_options *o, const char *model, rws_error *err)
{
    const rws_model *m;
    void            *library;
    RWS_TRY(rws__model_load(&(rws_config){.model = model}, NULL, &m, &library, err));
    const item e = item_of_model(m);
    if (o->json) json_item(kinds, &e);
    else print_item(&e, o->wide);
    rws__model_unload(library);
    return RWS_OK;
}

/* One kind, or all entries with this name. */
static rws_status list_named(const list_options *o, rws_error *err)
{
    rws_nearest near = rws__nearest_to(o->what);
    bool        found = false;
    item        e;
    for (const kind *k = kinds; k < kinds + N_KINDS; k++) {
        rws__nearest_try(&near, k->name);
        if (strcmp(k->name, o->what) == 0) return list_kind(k, o), RWS_OK;
    }
    for (const kind *k = kinds; k < kinds + N_KINDS; k++)
        for (int i = 0; k->at(i, &e); i++) {
            rws__nearest_try(&near, e.name);
            if (strcmp(e.name, o->what) != 0) continue;
            explain(k, &e, o);
            found = true;
        }
    if (found) return RWS_OK;
    return rws_fail(
        err, RWS_BAD_INPUT,
        "rws lists models, methods, optimisers, distributions, layers, functions, settings and each of them "
        "by its name, not \"%s\"%s.",
        rws__quote_short(o->what).text, rws__nearest_hint(&near).text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    list_options *o = state->input;
    switch (key) {
    case KEY_JSON: o->json = true; return 0;
    case KEY_WIDE: o->wide = true; return 0;
    case ARGP_KEY_ARG:
        if (o->model || (o->what && strcmp(o->what, "settings") != 0)) return rws__arguments_extra(state, arg);
        *(o->what ? &o->model : &o->what) = arg;
        return 0;
    case ARGP_KEY_END:
        return o->what && strcmp(o->what, "settings") == 0 && !o->model
                   ? rws__arguments_fail(state, "Settings of which model?")
                   : 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = (const struct argp_option[]){{"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0},
                                            {"wide", KEY_WIDE, 0, 0, RWS_WIDE_HELP, 0},
                                            {0}},
    .parser = parse,
    .args_doc = "[models|methods|optimisers|distributions|layers|functions|NAME|settings MODEL]",
    .doc = "Lists models, methods, optimisers and their settings, distributions, layers and functions; or the one with "
           "this NAME, such as ww, and when to take it. With `settings`, MODEL is a name or the path of a "
           "shared object; a path alone means its settings.",
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    list_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws list", argc, argv, 0, &o, err));
    if (o.model) return list_settings(&o, o.model, err);
    if (o.what && rws__model_is_path(o.what)) return list_settings(&o, o.what, err);
    if (o.what) return list_named(&o, err);
    for (const kind *k = kinds; k < kinds + N_KINDS; k++) list_kind(k, &o);
    return RWS_OK;
}

const rws_command rws_command_list = {"list", "show models, methods, distributions and settings", run, &argp};
