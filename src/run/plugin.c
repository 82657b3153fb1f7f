/* plugin.c - where models come from: built in by name, or a shared object by path. */
#include "model/model.h"
#include "run/trainer.h"

#include <dlfcn.h>
#include <string.h>

static rws_status load(const char *path, const rws_model **model, void **library, rws_error *err)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) return rws_fail(err, RWS_BAD_INPUT, "The model %s cannot be loaded: %s.", path, dlerror());
    const rws_model *m = dlsym(*library, "rws_user_model");
    if (!m)
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s has no symbol rws_user_model; it should define `const rws_model rws_user_model`.", path);
    if (m->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s was built for version %d of rws.h, and this program has %d; build it again.", path, m->abi,
                        RWS_ABI);
    if (!m->name || !m->setup || !m->data || !m->guide || !m->model)
        return rws_fail(err, RWS_BAD_INPUT, "The model in %s lacks a name, setup, data, guide or model.", path);
    *model = m;
    return RWS_OK;
}

rws_status rws_model_load(const char *name, const rws_model **model, void **library, rws_error *err)
{
    *library = NULL;
    if (strchr(name, '/')) return load(name, model, library, err);
    for (int i = 0; rws_models[i]; i++)
        if (strcmp(rws_models[i]->name, name) == 0) {
            *model = rws_models[i];
            return RWS_OK;
        }
    return rws_fail(err, RWS_BAD_INPUT,
                    "There is no model \"%s\"; `rws list` shows them, and a model of your own is given by "
                    "its path (./%s).",
                    name, name);
}

rws_status rws_trainer_find_model(rws_trainer *t, const char *name, rws_error *err)
{
    return rws_model_load(name, &t->model, &t->library, err);
}
