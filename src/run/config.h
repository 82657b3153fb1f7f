/* config.h - a run's configuration as a JSON file.
 *
 *     {"format": 1, "version": "0.1.0", "model": "gmm", "method": "ww", "particles": 20, …,
 *      "settings": {"theta_mult": "5", …}}
 *
 * Nothing is left to a default: a key that is missing, that is unknown or has another type is refused. Whether the
 * values fit the model is for rws_trainer_new to say. A number above 2^63 - 1, which JSON's readers do not agree on, is
 * written as text. Settings are text, as they were typed.
 *
 *     trainer -> [config] -> config.json -> [config] -> rws_config -> trainer
 */
#ifndef RWS_RUN_CONFIG_H
#define RWS_RUN_CONFIG_H

#include "run/run.h"

#include <jansson.h>

#define RWS_CONFIG_FORMAT 1

/* A configuration as JSON. A zeroed one is empty. */
typedef struct {
    json_t *document;
    char   *set; /* of one that was read: the "name=value" texts, one after the other */
} rws_config_json;

void rws_config_release(rws_config_json *j);

/* The document of a configuration with all defaults filled in (rws_trainer_config) and of its settings
 * (rws_trainer_settings); config->set is not looked at. A model that is a path becomes an absolute one, so that the run
 * can be resumed from another folder. NULL with a sentence if the path leads nowhere, a text is not UTF-8 or there are
 * more settings than an rws_config can hold. The caller has the reference. */
json_t *rws_config_describe(const rws_config *config, const rws_given *settings, int n_settings, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes the iterations and the rates of another configuration into the document. The text of rates that were others is
 * gone. RWS_BAD_INPUT if the new ones are not UTF-8. */
rws_status rws_config_amend(json_t *document, const rws_config *config, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes the document to `path`, through `path`.tmp, which is brought to disk and renamed: the file is there whole or
 * not at all. RWS_BAD_INPUT with a sentence that names the file; `path`.tmp is then gone. */
rws_status rws_config_write(const char *path, const json_t *document, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads `path` into *config, whose texts belong to *out, which the caller releases. RWS_BAD_INPUT with a sentence that
 * names the file and the key; both are then as they were. */
rws_status rws_config_read(const char *path, rws_config *config, rws_config_json *out, rws_error *err)
    __attribute__((warn_unused_result));

#endif
