/* config_compare.c - whether two configurations are of the same run. */
#include "store/config.h"

#include "base/error.h"
#include "base/quote.h"
#include "data/json.h"
#include "program/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *rws__config_text(const json_t *document)
{
    json_t *copy = rws__json_copy(document); /* a shallow copy, which leaves the document as it is */
    if (copy) json_object_del(copy, RWS_CONFIG_FINGERPRINT);
    char *text = copy ? rws__json_text(copy, JSON_COMPACT) : NULL;
    json_decref(copy);
    return text;
}

/* Keys that may change while a run continues. */
static bool may_change(const char *key)
{
    static const char *const keys[] = {"format", "version", "model", RWS_CONFIG_FINGERPRINT, "scalar"};
    const rws_config_member *m = rws__config_member(key); /* those that may change have one name everywhere */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return m && m->free;
}

char *rws__config_identity(const json_t *document)
{
    json_t *copy = rws__json_copy(document); /* shallow */
    if (!copy) return NULL;
    const char *key;
    json_t     *value;
    void       *next;
    json_object_foreach_safe(copy, next, key, value)
    {
        if (may_change(key)) json_object_del(copy, key);
    }
    char *text = rws__json_text(copy, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(copy);
    return text;
}

/* The first key that has different values in the two objects, or that only one of them has; NULL if there is none. Keys that
 * may change are left out. */
static const char *first_difference(json_t *a, json_t *b)
{
    for (int turn = 0; turn < 2; turn++) {
        json_t *from = turn ? b : a, *to = turn ? a : b;
        for (void *at = json_object_iter(from); at; at = json_object_iter_next(from, at)) {
            const char *key = json_object_iter_key(at);
            json_t     *one = json_object_iter_value(at), *two = json_object_get(to, key);
            if (may_change(key) || (two && json_equal(one, two))) continue;
            if (json_is_object(one) && json_is_object(two)) return first_difference(one, two);
            return key;
        }
    }
    return NULL;
}

rws_status rws__config_compare(const json_t *document, const char *text, char key[static RWS_KEY_SIZE], rws_error *err)
{
    json_error_t why;
    bool         starved;
    key[0] = '\0';
    json_t *other = rws__json_load(text, strlen(text), 0, &why, &starved);
    if (starved) return rws_no_memory(err, "config.json");
    const char *differs = json_is_object(other) ? first_difference((json_t *)document, other) : "format";
    if (differs) snprintf(key, RWS_KEY_SIZE, "%s", rws__quote_short(differs).text);
    json_decref(other);
    return RWS_OK;
}
