/* keys.h - a configuration as keys and values, by which runs are compared and chosen.
 *
 *     config.json in a store -> [keys] -> results, catalogue of rws serve
 */
#ifndef RWS_RESULTS_KEYS_H
#define RWS_RESULTS_KEYS_H

#include "rws_train.h"

#include <stdbool.h>
#include <stddef.h>

/* Takes a key and its value, and copies both. There are at most `most` keys. False without memory. */
typedef bool rws_key_take(void *context, size_t most, const char *key, const char *value);

/* Calls `take` for the entries of the text of a config.json, then for its settings. Lists, objects, the format and the
 * version are left out. A text that is not JSON has no keys, and neither has NULL. False without memory. */
bool rws_keys_read(const char *config, rws_key_take *take, void *context);

/* For a walk over runs: whether this one has another value of the key than *value, which is NULL at first and becomes the
 * value of the first run that has the key. A run that lacks the key, such as the setting of another method, does not
 * differ in it. */
bool rws_result_departs(const rws_result *run, const char *key, const char **value);

#endif
