/* keep.c - a trainer and the folder of its run. */
#include "run/checkpoint.h"
#include "run/trainer.h"

#include <string.h>

rws_status rws_trainer_keep(rws_trainer *t, const char *folder, rws_error *err)
{
    if (t->folder) return rws_fail(err, RWS_BAD_INPUT, "The run has a folder already.");
    return rws_folder_create(folder, t, &t->folder, err);
}

rws_status rws_trainer_save(rws_trainer *t, rws_error *err)
{
    if (!t->folder) return rws_fail(err, RWS_BAD_INPUT, "The run has no folder to be saved in.");
    return rws_folder_save(t->folder, t, t->seconds, err);
}

/* A run that goes on may have more iterations, other rates from here on, and its shared object elsewhere; its folder says
 * so. */
static rws_status amend(rws_trainer *t, const rws_config *stored, const char *folder, rws_error *err)
{
    const rws_config *c = &t->config;
    rws_schedule      had, has;
    if (c->iterations == stored->iterations && strcmp(c->lr, stored->lr) == 0 && strcmp(c->model, stored->model) == 0)
        return RWS_OK;
    RWS_TRY(rws_schedule_parse(stored->lr, &had, err));
    RWS_TRY(rws_schedule_parse(c->lr, &has, err));
    if (!rws_schedule_agree(&had, &has, t->iteration))
        return rws_fail(err, RWS_BAD_INPUT,
                        "lr %s contradicts the run in %s, which has had %s so far; only from iteration "
                        "%llu on may it be another, as in 1e-3,%llu:1e-4.",
                        c->lr, folder, stored->lr, (unsigned long long)t->iteration, (unsigned long long)t->iteration);
    return rws_folder_amend(t->folder, c, err);
}

static rws_status resume(const char *path, const rws_config *changes, const rws_model *model, rws_folder **folder,
                         rws_trainer **out, rws_error *err)
{
    rws_config stored, config;
    RWS_TRY(rws_folder_open(path, &stored, folder, err));
    RWS_TRY(rws_folder_lock(*folder, err));
    config = stored;
    if (changes->model) config.model = changes->model;
    if (changes->iterations) config.iterations = changes->iterations;
    if (changes->lr) config.lr = changes->lr;
    if (changes->threads) config.threads = changes->threads;
    config.limits = changes->limits;
    RWS_TRY(rws_trainer_new(&config, model, out, err));
    rws_trainer *t = *out;
    t->folder = *folder;
    *folder = NULL;
    if (rws_folder_has_checkpoint(t->folder)) RWS_TRY(rws_folder_load(t->folder, t, &t->seconds, err));
    else RWS_TRY(rws_folder_restart(t->folder, err));
    return amend(t, &stored, path, err);
}

rws_status rws_trainer_resume(const char *path, const rws_config *changes, const rws_model *model, rws_trainer **out,
                              rws_error *err)
{
    static const rws_config none;
    rws_folder             *folder = NULL;
    *out = NULL;
    const rws_status status = resume(path, changes ? changes : &none, model, &folder, out, err);
    rws_folder_close(folder);
    if (status == RWS_OK) return RWS_OK;
    rws_trainer_free(*out);
    *out = NULL;
    return status;
}
