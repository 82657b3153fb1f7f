#include "run/plugin.h"

#include "base/error.h"
#include "base/quote.h"
#include "model/model.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

bool rws_model_is_whole(const rws_model *m)
{
    return m->name && m->setup && m->data && m->guide && m->model;
}

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
    if (!rws_model_is_whole(model))
        return rws_fail(err, RWS_BAD_INPUT, "The model in \"%s\" lacks a name, setup, data, guide or model.",
                        file.text);
    return RWS_OK;
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
