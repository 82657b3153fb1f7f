#include "results/keys.h"

#include "data/json.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

/* The value as a text: its own text if it is one, else a text that is written to `text`. */
static const char *value_text(const json_t *value, char text[static 64])
{
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_integer(value)) snprintf(text, 64, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) g_ascii_formatd(text, 64, "%.15g", json_real_value(value));
    else snprintf(text, 64, "%s", json_is_true(value) ? "true" : "false");
    return text;
}

bool rws__keys_read(const char *config, rws_key_take *take, void *context)
{
    json_error_t  why;
    bool          starved = false;
    json_t       *document = config ? rws__json_load(config, strlen(config), 0, &why, &starved) : NULL;
    json_t       *settings = json_object_get(document, "settings");
    json_t *const objects[] = {document, settings};
    const size_t  most = json_object_size(document) + json_object_size(settings);
    bool          good = !starved;
    for (int i = 0; i < 2; i++) {
        for (void *at = json_object_iter(objects[i]); at && good; at = json_object_iter_next(objects[i], at)) {
            const char   *key = json_object_iter_key(at);
            const json_t *value = json_object_iter_value(at);
            const bool    of_file = i == 0 && (strcmp(key, "format") == 0 || strcmp(key, "version") == 0);
            char          text[64];
            if (of_file || json_is_object(value) || json_is_array(value)) continue;
            good = take(context, most, key, value_text(value, text));
        }
    }
    json_decref(document);
    return good;
}
