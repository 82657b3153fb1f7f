/* keys.h - a configuration as keys and values: what runs are compared and chosen by.
 *
 *     config.json in a store -> [keys] -> results, catalogue of rws serve
 */
#ifndef RWS_RUN_KEYS_H
#define RWS_RUN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* Takes a key and its value, which it copies. `most` is the number of keys that there are at most. False without memory. */
typedef bool rws_key_take(void *context, size_t most, const char *key, const char *value);

/* Calls `take` for the entries of a text of config.json, then for its settings; lists, objects and what is about the file
 * itself are left out. A text that is no JSON, or NULL, has no keys. False without memory. */
bool rws_keys_read(const char *config, rws_key_take *take, void *context);

#endif
