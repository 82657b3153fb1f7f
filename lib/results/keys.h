/* keys.h - a configuration as keys and values, by which runs are compared and chosen.
 *
 *     config.json in a store -> [keys] -> results, catalogue of rws serve
 */
#ifndef RWS_RESULTS_KEYS_H
#define RWS_RESULTS_KEYS_H

#include "rws_results.h"

#include <stdbool.h>
#include <stddef.h>

/* Takes a key and its value, and copies both. There are at most `most` keys. False without memory. */
typedef bool rws_key_take(void *context, size_t most, const char *key, const char *value);

/* Calls `take` for the entries of the text of a config.json, then for its settings. Lists, objects, the format and the
 * version are left out. A text that is not JSON has no keys, and neither has NULL. False without memory. */
bool rws__keys_read(const char *config, rws_key_take *take, void *context);

#endif
