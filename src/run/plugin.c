/* plugin.c - where models come from. */
#include "model/model.h"
#include "run/trainer.h"

#include <dlfcn.h>
#include <string.h>

static rws_status load(rws_trainer *t, const char *path, rws_error *err)
{
    t->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!t->library) return rws_fail(err, RWS_BAD_INPUT, "The model %s cannot be loaded: %s.", path, dlerror());
    t->model = dlsym(t->library, "rws_user_model");
    if (!t->model)
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s has no symbol rws_user_model; it should define `const rws_model rws_user_model`.", path);
    if (t->model->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s was built for version %d of rws.h, and this program has %d; build it again.", path,
                        t->model->abi, RWS_ABI);
    if (!t->model->name || !t->model->setup || !t->model->data || !t->model->guide || !t->model->model)
        return rws_fail(err, RWS_BAD_INPUT, "The model in %s lacks a name, setup, data, guide or model.", path);
    return RWS_OK;
}

rws_status rws_trainer_find_model(rws_trainer *t, const char *name, rws_error *err)
{
    if (strchr(name, '/')) return load(t, name, err);
    for (int i = 0; rws_models[i]; i++)
        if (strcmp(rws_models[i]->name, name) == 0) {
            t->model = rws_models[i];
            return RWS_OK;
        }
    return rws_fail(err, RWS_BAD_INPUT,
                    "There is no model \"%s\"; `rws list` shows them, and a model of your own is given by "
                    "its path (./%s).",
                    name, name);
}
