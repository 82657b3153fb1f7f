/* config.h - a run's configuration as a JSON file.
 *
 *     {"format": 1, "version": "0.1.0", "model": "gmm", "method": "ww", "particles": 20, …,
 *      "settings": {"theta_mult": "5", …}}
 *
 * Nothing is left to a default: a key that is missing, is unknown or has another type is refused. Two keys may be
 * missing: "model_fingerprint", which runs of a built-in model and runs of version 0.1 do not have, and "particle_shards",
 * which is written only if particles are cut. rws_trainer_new checks whether the values fit the model. A number above
 * 2^63 - 1, which JSON's readers do not agree on, is written as text. Settings are text, as they were typed.
 *
 *     trainer -> [config] -> config.json -> [config] -> rws_config -> trainer
 *
 * Every function that returns a status: RWS_BAD_INPUT with a message that names the file or the key, or RWS_NO_MEMORY.
 */
#ifndef RWS_STORE_CONFIG_H
#define RWS_STORE_CONFIG_H

#include "store/state.h"

#include <jansson.h>

#define RWS_CONFIG_FORMAT 1
#define RWS_CONFIG_FINGERPRINT "model_fingerprint" /* a key that may be missing */
#define RWS_KEY_SIZE 168                           /* bytes of a quoted key, with its end */

/* A configuration as JSON. A zeroed one is empty. */
typedef struct {
    json_t *document;
    char   *set; /* of a document that was read: the "name=value" texts, one after the other */
} rws_config_json;

void rws__config_release(rws_config_json *j);

/* The document of a configuration with all defaults filled in and of its settings; config->set is not looked at. A model that is a path becomes an absolute one, so that the run
 * can be resumed from another folder, and has the fingerprint of the shared object that is loaded, or of the file. Fails if the path leads
 * nowhere, a text is not UTF-8 or there are more settings than an rws_config can hold; *out is then NULL. The caller has
 * the reference. */
rws_status rws__config_describe(const rws_run_state *s, json_t **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes the iterations and the rates of another configuration into the document and, unless they are NULL, its model's path and
 * the fingerprint. Texts that are replaced are freed. Fails if a text is not UTF-8 or the path leads nowhere. */
rws_status rws__config_amend(json_t *document, const rws_config *config, const char *fingerprint, rws_error *err)
    __attribute__((warn_unused_result));

/* The document's model, and its fingerprint; NULL if it has none. */
const char *rws__config_model_of(const json_t *document);
const char *rws__config_fingerprint_of(const json_t *document);

/* The model in the text of a document, for the caller to free; "": there is none. NULL without memory. */
char *rws__config_model_in(const char *text);

/* The rates and the number of iterations. */
const char *rws__config_lr(const json_t *document);
uint64_t    rws__config_iterations(const json_t *document);

/* The document in one line, without the fingerprint: by this text runs are compared, and a model that was built again
 * does not make another kind of run. The caller frees it; NULL without memory. */
char *rws__config_text(const json_t *document) __attribute__((warn_unused_result));

/* The part of the document that makes the run what it is, in one line: all but the format, the version, the model's path
 * and fingerprint, the iterations, the rates, the threads and `scalar`, which may change while the run continues. The
 * caller frees it; NULL without memory. */
char *rws__config_identity(const json_t *document) __attribute__((warn_unused_result));

/* Compares that part with the text of another document. *key becomes the name of a key, or of a setting, that differs,
 * and "" if there is none. */
rws_status rws__config_compare(const json_t *document, const char *text, char key[static RWS_KEY_SIZE], rws_error *err)
    __attribute__((warn_unused_result));

/* Writes the document to `path`, through a temporary file (base/file.h): the file is there whole or not at all. */
rws_status rws__config_write(const char *path, const json_t *document, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads `path` into *config, whose texts belong to *out, which the caller releases. The path of a shared object is no model that
 * the user has named: config->model is then NULL, and *model, which is the document's, has it. After a failure all are as
 * they were. */
rws_status rws__config_read(const char *path, rws_config *config, const char **model, rws_config_json *out,
                            rws_error *err) __attribute__((warn_unused_result));

#endif
