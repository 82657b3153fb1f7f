/* reopen.h - a run's folder that is opened again, by train --resume, eval, infer, sample and bench: the options that
 * say which shared object it has, and the checkpoint that it must have.
 *
 *     RUN, --model, --changed -> [reopen] -> rws_folder, rws_config -> trainer
 */
#ifndef RWS_RWS_REOPEN_H
#define RWS_RWS_REOPEN_H

#include "rws/arguments.h"
#include "store/checkpoint.h"

/* --model and --changed, for the members `model` and `changed` of an rws_config, which is the parser's input. */
extern const struct argp rws_reopen_argp;

/* Opens the folder. The model and `changed` that the user gave take the place of those in *config; given->model, the
 * path of a shared object or NULL, must live as long. The caller closes *folder. Fails like rws__folder_open. */
rws_status rws__reopen(const char *path, const rws_config *given, rws_config *config, rws_folder **folder,
                       rws_error *err) __attribute__((warn_unused_result));

/* RWS_BAD_INPUT if the run has no checkpoint yet. */
rws_status rws__reopen_checkpoint(const char *path, const rws_folder *folder, rws_error *err)
    __attribute__((warn_unused_result));

#endif
