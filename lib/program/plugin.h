/* plugin.h - a model by its name, or from a shared object by its path.
 *
 *     "gmm", "./mine.so" -> [plugin] -> rws_model -> trainer, rws list
 *
 * A shared object is code, so that it is loaded only if the user has named it: in this call, or before on this machine
 * (object.h). What the files of a run's folder say is only compared with it. rws__model_load alone decides.
 */
#ifndef RWS_PROGRAM_PLUGIN_H
#define RWS_PROGRAM_PLUGIN_H

#include "program/object.h"
#include "rws_train.h"

#include <string.h>

/* Whether the text is the path of a shared object, and not the name of a built-in model: it has a slash. */
static inline bool rws__model_is_path(const char *name_or_path)
{
    return strchr(name_or_path, '/') != NULL;
}

/* Every built-in model, NULL-terminated: models/table.c, which is linked with the library, lists them. */
extern const rws_model *const rws_models[];

/* Whether the model has everything that a model must have (a name, setup, data and model), and its tables of
 * settings, metrics and snapshots make sense. RWS_BAD_INPUT with a message that names the model and the entry. `path`
 * is that of its shared object; NULL: it has none. */
rws_status rws__model_check(const rws_model *m, const char *path, rws_error *err) __attribute__((warn_unused_result));

/* The entries about the model in the files of a run's folder. The texts are the folder's; NULL: there is no such entry. */
typedef struct rws_recorded {
    const char *folder;
    const char *model, *fingerprint; /* in config.json; the path of a shared object or the name of a model */
    const char *checkpoint;          /* the fingerprint in the checkpoint; "": the model is no shared object */
    const char *store;               /* the model in the store */
} rws_recorded;

/* Finds the built-in model that config->model names, or loads the shared object at this path. Where config->model is NULL, the
 * one that `recorded` names is loaded if the user has named it before; NULL: there is no run yet. *library is NULL for a built-in model;
 * otherwise the caller passes it to rws__model_unload, and *model is valid until then. RWS_BAD_INPUT with a message that
 * names the model or the file, or says how to name it; *model and *library are then NULL, and nothing was loaded unless
 * the message says that the object itself is at fault. */
rws_status rws__model_load(const rws_config *config, const rws_recorded *recorded, const rws_model **model,
                           void **library, rws_error *err) __attribute__((warn_unused_result));

/* Another reference to a library that is loaded, also if its file has changed since. The caller passes it to
 * rws__model_unload. NULL leads to NULL. */
void *rws__model_load_again(void *library);

void rws__model_unload(void *library); /* NULL is allowed */

/* The file that the library was loaded from, valid as long as the library. NULL leads to NULL. */
const rws_object *rws__model_object(const void *library);

#endif
