#include "program/plugin.h"

#include "base/error.h"
#include "base/quote.h"

#include <dlfcn.h>
#include <glib.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what a model must have */

/* What the model lacks; NULL: nothing. */
static const char *lack_of(const rws_model *m)
{
    if (!m->name) return "a name";
    if (!m->setup) return "the function setup";
    if (!m->data) return "the function data";
    if (!m->guide) return "a guide";
    return m->model ? NULL : "the program model";
}

/* What is wrong with a setting by itself; NULL: nothing. */
static const char *fault_of(const rws_setting *s, char out[static 128])
{
    if (!s->value) return "has no default (NULL)";
    if (!*s->name || strchr(s->name, '=')) return "has a name that --set cannot give";
    if (s->min == 0 && s->max == 0) return NULL; /* text: the model knows */
    char        *end;
    const double x = g_ascii_strtod(s->value, &end);
    snprintf(out, 128, "has the default %.40s, which is no %s from %g to %g", rws_quote_short(s->value).text,
             s->whole ? "whole number" : "number", s->min, s->max);
    if (!(s->min <= s->max)) snprintf(out, 128, "has %g as its least value and %g as its greatest", s->min, s->max);
    else if (end != s->value && !*end && x >= s->min && x <= s->max && (!s->whole || x == floor(x))) return NULL;
    return out;
}

static rws_status check_settings(const rws_setting *list, const char *owner, rws_error *err)
{
    char text[128];
    for (int i = 0; list && list[i].name; i++) {
        const rws_quoted name = rws_quote_short(list[i].name);
        const char      *fault = fault_of(&list[i], text);
        if (fault) return rws_fail(err, RWS_BAD_INPUT, "Setting \"%s\" of %s %s.", name.text, owner, fault);
        for (int k = 0; k < i; k++)
            if (strcmp(list[k].name, list[i].name) == 0)
                return rws_fail(err, RWS_BAD_INPUT, "Two settings of %s are called \"%s\".", owner, name.text);
    }
    return RWS_OK;
}

static rws_status check_metrics(const rws_model *m, const char *owner, rws_error *err)
{
    for (const rws_metric *at = m->metrics; at && at->name; at++) {
        const rws_quoted name = rws_quote_short(at->name);
        const int        n = (at->measure != NULL) + (at->posterior != NULL) + (at->guide != NULL);
        if (n != 1)
            return rws_fail(err, RWS_BAD_INPUT,
                            "Metric \"%s\" of %s has %s of the functions measure, posterior and guide; it takes one.",
                            name.text, owner, n ? "more than one" : "none");
        for (const rws_metric *other = m->metrics; other < at; other++)
            if (strcmp(other->name, at->name) == 0)
                return rws_fail(err, RWS_BAD_INPUT, "Two metrics of %s are called \"%s\".", owner, name.text);
    }
    for (const rws_snapshot *at = m->snapshots; at && at->name; at++)
        if (!at->measure)
            return rws_fail(err, RWS_BAD_INPUT, "Snapshot \"%s\" of %s lacks the function measure.",
                            rws_quote_short(at->name).text, owner);
    return RWS_OK;
}

rws_status rws_model_check(const rws_model *m, const char *path, rws_error *err)
{
    char        owner[RWS_QUOTED_MAX + 32];
    const char *lack = lack_of(m);
    if (path) snprintf(owner, sizeof owner, "the model in \"%s\"", rws_quote_short(path).text);
    else snprintf(owner, sizeof owner, "the model %s", m->name ? rws_quote_short(m->name).text : "at hand");
    if (lack) return rws_fail(err, RWS_BAD_INPUT, "T%s lacks %s.", owner + 1, lack);
    RWS_TRY(check_settings(m->settings, owner, err));
    return check_metrics(m, owner, err);
}

/* ---- loading */

static rws_status check(const rws_model *model, const char *path, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    if (!model)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" has no symbol rws_user_model; it should define `const rws_model rws_user_model`.",
                        file.text);
    if (model->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" was built for version %d of rws.h, and this program has %d; build it again.", file.text,
                        model->abi, RWS_ABI);
    return rws_model_check(model, path, err);
}

static rws_status load(const char *path, const rws_model **model, void **library, rws_error *err)
{
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        const char *why = dlerror();
        return rws_fail(err, RWS_BAD_INPUT, "The model \"%s\" cannot be loaded: %s.", rws_quote(path).text,
                        why ? rws_quote(why).text : "no reason is given");
    }
    const rws_model *found = dlsym(opened, "rws_user_model");
    const rws_status status = check(found, path, err);
    if (status != RWS_OK) {
        dlclose(opened);
        return status;
    }
    *model = found;
    *library = opened;
    return RWS_OK;
}

rws_status rws_model_load(const char *name_or_path, const rws_model **model, void **library, rws_error *err)
{
    *model = NULL;
    *library = NULL;
    if (!name_or_path) return rws_fail(err, RWS_BAD_INPUT, "The configuration names no model.");
    if (rws_model_is_path(name_or_path)) return load(name_or_path, model, library, err);
    for (int i = 0; rws_models[i]; i++) {
        if (strcmp(rws_models[i]->name, name_or_path) != 0) continue;
        *model = rws_models[i];
        return RWS_OK;
    }
    const rws_quoted name = rws_quote_short(name_or_path);
    const size_t     n = strlen(name_or_path);
    const bool       is_file = n > 3 && strcmp(name_or_path + n - 3, ".so") == 0;
    return rws_fail(err, RWS_BAD_INPUT,
                    "There is no model \"%s\". `rws list` shows the models that are built in. A shared object is given "
                    "by its path, with a slash: ./%s%s. A run of a model in Python is opened in Python: "
                    "rws.open(folder, model).",
                    name.text, name.text, is_file ? "" : ".so");
}

rws_status rws_model_load_again(void *library, void **out, rws_error *err)
{
    struct link_map *map;
    *out = NULL;
    if (!library) return RWS_OK;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) *out = dlopen(map->l_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return *out ? RWS_OK : rws_no_memory(err, "the model of a posterior");
}

void rws_model_unload(void *library)
{
    if (library) dlclose(library);
}
