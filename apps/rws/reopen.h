/* reopen.h - a run's folder that is opened again, by train --resume, eval, infer, sample and bench.
 *
 * Finds the shared object of the run, which may have moved, and says on stderr if it has changed. It makes no trainer.
 *
 *     RUN, --model -> [reopen] -> rws_folder, rws_config -> trainer
 */
#ifndef RWS_RWS_REOPEN_H
#define RWS_RWS_REOPEN_H

#include "store/checkpoint.h"

/* Opens the folder. `model` is the path given with --model, where the run's shared object is now; NULL: where it was. It
 * takes the place of config->model and must live as long. The caller closes *folder, also after a failure; it may be
 * NULL. RWS_BAD_INPUT if there is no run, if its shared object is not there, or if --model was given for a built-in
 * model. */
rws_status rws_reopen(const char *path, const char *model, rws_config *config, rws_folder **folder, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a folder that rws_train.h opens: only checks, and notes the change. */
rws_status rws_reopen_check(const char *path, const char *model, rws_error *err) __attribute__((warn_unused_result));

/* RWS_BAD_INPUT if the run has no checkpoint yet. */
rws_status rws_reopen_checkpoint(const char *path, const rws_folder *folder, rws_error *err)
    __attribute__((warn_unused_result));

#endif
