#include "rws/reopen.h"

#include "base/error.h"
#include "base/quote.h"
#include "rws/report.h"
#include "program/plugin.h"

#include <unistd.h>

static rws_status find_model(const char *path, const char *model, rws_config *config, rws_error *err)
{
    const rws_quoted run = rws_quote(path), has = rws_quote(config->model);
    if (model && !rws_model_is_path(config->model))
        return rws_fail(err, RWS_BAD_INPUT, "--model %.100s: the run in \"%s\" has the built-in model %s.", model,
                        run.text, has.text);
    if (model && !rws_model_is_path(model))
        return rws_fail(err, RWS_BAD_INPUT,
                        "--model takes the path of a shared object, such as ./%.100s, not \"%.100s\".", model, model);
    if (model) config->model = model;
    else if (rws_model_is_path(config->model) && access(config->model, F_OK) != 0)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The run in \"%s\" has the model \"%s\", which is not there; if it has moved, add --model PATH.", run.text,
            has.text);
    return RWS_OK;
}

static rws_status compare_model(const rws_folder *folder, const rws_config *config, rws_error *err)
{
    bool changed;
    if (!rws_model_is_path(config->model)) return RWS_OK;
    RWS_TRY(rws_folder_compare_model(folder, config->model, &changed, err));
    if (changed)
        rws_note("%s has changed since this run began; what it computes now may not be what was trained.",
                 config->model);
    return RWS_OK;
}

rws_status rws_reopen(const char *path, const char *model, rws_config *config, rws_folder **folder, rws_error *err)
{
    *folder = NULL;
    RWS_TRY(rws_folder_open(path, config, folder, err));
    RWS_TRY(find_model(path, model, config, err));
    return compare_model(*folder, config, err);
}

rws_status rws_reopen_check(const char *path, const char *model, rws_error *err)
{
    rws_folder      *folder;
    rws_config       config;
    const rws_status status = rws_reopen(path, model, &config, &folder, err);
    rws_folder_close(folder);
    return status;
}

rws_status rws_reopen_checkpoint(const char *path, const rws_folder *folder, rws_error *err)
{
    if (rws_folder_has_checkpoint(folder)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "The run in \"%s\" has no checkpoint yet; train it further (--resume), or wait for one.",
                    rws_quote(path).text);
}
