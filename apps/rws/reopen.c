#include "rws/reopen.h"

#include "base/error.h"
#include "base/quote.h"

enum { KEY_MODEL = 0x4000, KEY_CHANGED };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_config *given = state->input;
    switch (key) {
    case KEY_MODEL: given->model = arg; return 0;
    case KEY_CHANGED: given->changed = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rws_reopen_argp = {
    .options =
        (const struct argp_option[]){
            {"model", KEY_MODEL, "PATH", 0, "The shared object of the run, which is loaded only if you name it", 0},
            {"changed", KEY_CHANGED, 0, 0, "Accept a shared object that has changed since the run began", 0},
            {0},
        },
    .parser = parse,
};

rws_status rws__reopen(const char *path, const rws_config *given, rws_config *config, rws_folder **folder,
                       rws_error *err)
{
    RWS_TRY(rws__folder_open(path, config, folder, err));
    if (given->model) config->model = given->model;
    config->changed = given->changed;
    return RWS_OK;
}

rws_status rws__reopen_checkpoint(const char *path, const rws_folder *folder, rws_error *err)
{
    if (rws__folder_has_checkpoint(folder)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "The run in \"%s\" has no checkpoint yet; train it further (--resume), or wait for one.",
                    rws__quote(path).text);
}
