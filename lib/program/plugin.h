/* plugin.h - a model by its name, or from a shared object by its path.
 *
 *     "gmm", "./mine.so" -> [plugin] -> rws_model -> trainer, rws list
 */
#ifndef RWS_PROGRAM_PLUGIN_H
#define RWS_PROGRAM_PLUGIN_H

#include "rws.h"

#include <string.h>

/* Whether the text is the path of a shared object, and not the name of a built-in model: it has a slash. */
static inline bool rws_model_is_path(const char *name_or_path)
{
    return strchr(name_or_path, '/') != NULL;
}

/* Every built-in model, NULL-terminated: models/table.c, which is linked with the library, lists them. */
extern const rws_model *const rws_models[];

/* Whether the model has everything that a model must have (a name, setup, data, guide and model), and its tables of
 * settings, metrics and snapshots make sense. RWS_BAD_INPUT with a sentence that names the model and the entry. `path` is
 * that of its shared object; NULL: it has none. */
rws_status rws_model_check(const rws_model *m, const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Finds a built-in model by its name, or loads a shared object from its path. *library is NULL for a built-in model;
 * otherwise the caller passes it to rws_model_unload, and *model is valid until then. RWS_BAD_INPUT with a sentence that
 * names the model or the file, or says that name_or_path is NULL; *model and *library are then NULL. */
rws_status rws_model_load(const char *name_or_path, const rws_model **model, void **library, rws_error *err)
    __attribute__((warn_unused_result));

/* Another reference to a library that is loaded, also if its file has changed since. The caller passes it to
 * rws_model_unload. RWS_NO_MEMORY; *out is then NULL. NULL leads to NULL. */
rws_status rws_model_load_again(void *library, void **out, rws_error *err) __attribute__((warn_unused_result));

void rws_model_unload(void *library); /* NULL is allowed */

#endif
