#include "run/config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum { TEXT, COUNT, BIG_COUNT, FLAG, NUMBER } kind;

static const char *const must_be[] = {
    [TEXT] = "text",
    [COUNT] = "a whole number that fits in 32 bits",
    [BIG_COUNT] = "a whole number from 0 to 18446744073709551615 (in quotes if it is above 9223372036854775807)",
    [FLAG] = "true or false",
    [NUMBER] = "a number",
};

/* Writer and reader both walk this table, so what is written is read. */
static const struct {
    const char *key;
    kind        kind;
    size_t      at;
} fields[] = {
    {"model", TEXT, offsetof(rws_config, model)},
    {"method", TEXT, offsetof(rws_config, method)},
    {"particles", COUNT, offsetof(rws_config, particles)},
    {"batch", COUNT, offsetof(rws_config, batch)},
    {"shards", COUNT, offsetof(rws_config, shards)},
    {"n_test", COUNT, offsetof(rws_config, n_test)},
    {"eval_particles", COUNT, offsetof(rws_config, eval_particles)},
    {"iterations", BIG_COUNT, offsetof(rws_config, iterations)},
    {"eval_every", BIG_COUNT, offsetof(rws_config, eval_every)},
    {"seed", BIG_COUNT, offsetof(rws_config, seed)},
    {"threads", COUNT, offsetof(rws_config, threads)},
    {"scalar", FLAG, offsetof(rws_config, scalar)},
    {"optimiser", TEXT, offsetof(rws_config, optimiser)},
    {"lr", TEXT, offsetof(rws_config, lr)},
    {"l2", NUMBER, offsetof(rws_config, l2)},
};

enum { N_FIELDS = sizeof fields / sizeof *fields, MAX_SETTINGS = sizeof((rws_config *)0)->set / sizeof(char *) };

void rws_config_release(rws_config_json *j)
{
    json_decref(j->document);
    free(j->set);
    *j = (rws_config_json){0};
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *big_count(uint64_t n)
{
    char text[24];
    if (n <= INT64_MAX) return json_integer((json_int_t)n);
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return json_string(text);
}

/* A new reference; NULL if the text is not UTF-8, the number not finite, or without memory. */
static json_t *value_of(const rws_config *config, kind kind, size_t at)
{
    const void *p = (const char *)config + at;
    switch (kind) {
    case TEXT: {
        const char *text = *(const char *const *)p;
        RWS_CHECK(text && "defaults are filled in");
        return json_string(text);
    }
    case COUNT: return json_integer(*(const int *)p);
    case BIG_COUNT: return big_count(*(const uint64_t *)p);
    case FLAG: return json_boolean(*(const bool *)p);
    case NUMBER: return json_real(*(const double *)p);
    }
    RWS_CHECK(!"a kind of value");
    return NULL;
}

static json_t *describe_settings(const rws_given *settings, int n, rws_error *err)
{
    if (n > MAX_SETTINGS) {
        rws_fail(err, RWS_BAD_INPUT, "Model and method have %d settings together, and a run can have %d.", n,
                 MAX_SETTINGS);
        return NULL;
    }
    json_t *object = json_object();
    for (int i = 0; i < n; i++) {
        /* Where model and method have a setting of the same name, --set reaches the later one; so does this. */
        if (json_object_set_new(object, settings[i].setting->name, json_string(settings[i].value)) == 0) continue;
        rws_fail(err, RWS_BAD_INPUT,
                 "The setting \"%s\" cannot be written to config.json: it is not UTF-8, or no memory is left.",
                 rws_quote(settings[i].setting->name).text);
        json_decref(object);
        return NULL;
    }
    return object;
}

/* False, with a sentence, if it has no place in JSON. */
static bool put(json_t *document, const rws_config *config, int field, rws_error *err)
{
    json_t *value = value_of(config, fields[field].kind, fields[field].at);
    if (json_object_set_new(document, fields[field].key, value) == 0) return true;
    rws_fail(err, RWS_BAD_INPUT,
             "\"%s\" cannot be written to config.json: it is not UTF-8, not finite, or no memory is left.",
             fields[field].key);
    return false;
}

rws_status rws_config_amend(json_t *document, const rws_config *config, rws_error *err)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const json_t *had = json_object_get(document, fields[i].key);
        const bool    lr = strcmp(fields[i].key, "lr") == 0;
        if (lr && strcmp(json_string_value(had), config->lr) == 0) continue; /* perhaps it is its own text */
        if ((lr || strcmp(fields[i].key, "iterations") == 0) && !put(document, config, i, err)) return RWS_BAD_INPUT;
    }
    return RWS_OK;
}

json_t *rws_config_describe(const rws_config *config, const rws_given *settings, int n_settings, rws_error *err)
{
    rws_config absolute = *config;
    char      *path = NULL;
    if (strchr(config->model, '/')) {
        absolute.model = path = realpath(config->model, NULL);
        if (!path) {
            rws_fail(err, RWS_BAD_INPUT, "The model \"%s\" cannot be found: %s.", rws_quote(config->model).text,
                     strerror(errno));
            return NULL;
        }
    }
    json_t *document = json_pack("{s:i, s:s}", "format", RWS_CONFIG_FORMAT, "version", RWS_VERSION_STRING);
    for (int i = 0; i < N_FIELDS; i++)
        if (!put(document, &absolute, i, err)) goto failed;
    json_t *object = describe_settings(settings, n_settings, err);
    if (!object) goto failed;
    if (json_object_set_new(document, "settings", object) != 0) {
        rws_fail(err, RWS_BAD_INPUT, "\"settings\" cannot be written to config.json: no memory is left.");
        goto failed;
    }
    free(path);
    return document;
failed:
    free(path);
    json_decref(document);
    return NULL;
}

rws_status rws_config_write(const char *path, const json_t *document, rws_error *err)
{
    char *text = json_dumps(document, JSON_INDENT(4));
    if (!text) return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": no memory is left.", rws_quote(path).text);
    const rws_piece  parts[] = {{text, strlen(text)}, {"\n", 1}};
    const rws_status status = rws_file_write(path, parts, 2, err);
    free(text);
    return status;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The JSON object in the file, a new reference; NULL with a sentence. */
static json_t *load(const char *path, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    json_t          *document = NULL;
    json_error_t     why;
    struct stat      about;
    /* O_NONBLOCK: opening a pipe by mistake must not wait for its writer. */
    const int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0 && errno == ENOENT) {
        rws_fail(err, RWS_BAD_INPUT, "\"%s\" is missing: its folder is not that of a run.", file.text);
    } else if (fd < 0 || fstat(fd, &about) != 0) {
        rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", file.text, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": it is not a regular file.", file.text);
    } else if (!(document = json_loadfd(fd, JSON_REJECT_DUPLICATES, &why))) {
        rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not JSON: line %d: %s.", file.text, why.line, rws_quote(why.text).text);
    } else if (!json_is_object(document)) {
        rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a configuration: it is JSON, but not an object.", file.text);
        json_decref(document);
        document = NULL;
    }
    if (fd >= 0) close(fd);
    return document;
}

static bool read_big_count(const json_t *value, uint64_t *out)
{
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return json_integer_value(value) >= 0;
    }
    const char *text = json_string_value(value);
    if (!text || !*text || text[strspn(text, "0123456789")]) return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

/* False if the value is of another type or out of range. */
static bool read_value(const json_t *value, kind kind, void *out)
{
    const json_int_t n = json_integer_value(value);
    switch (kind) {
    case TEXT: *(const char **)out = json_string_value(value); return json_is_string(value);
    case COUNT: *(int *)out = (int)n; return json_is_integer(value) && n >= INT_MIN && n <= INT_MAX;
    case BIG_COUNT: return read_big_count(value, out);
    case FLAG: *(bool *)out = json_is_true(value); return json_is_boolean(value);
    case NUMBER: *(double *)out = json_number_value(value); return json_is_number(value);
    }
    RWS_CHECK(!"a kind of value");
    return false;
}

static bool is_known(const char *key)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(key, fields[i].key) == 0) return true;
    }
    return strcmp(key, "format") == 0 || strcmp(key, "version") == 0 || strcmp(key, "settings") == 0;
}

/* Settings to "name=value" in config->set; *text owns them. */
static rws_status read_settings(const char *path, json_t *settings, rws_config *config, char **text, rws_error *err)
{
    const char *name;
    json_t     *value;
    size_t      size = 1;
    if (json_object_size(settings) > MAX_SETTINGS) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu \"settings\", and a run can have %d.", rws_quote(path).text,
                        json_object_size(settings), MAX_SETTINGS);
    }
    json_object_foreach(settings, name, value)
    {
        if (!json_is_string(value)) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the setting \"%s\" must be text (in quotes, also a number).",
                            rws_quote(path).text, rws_quote(name).text);
        }
        size += strlen(name) + json_string_length(value) + 2;
    }
    char *at = *text = malloc(size);
    if (!at) return rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": no memory is left.", rws_quote(path).text);
    json_object_foreach(settings, name, value)
    {
        config->set[config->n_set++] = at;
        at += sprintf(at, "%s=%s", name, json_string_value(value)) + 1;
    }
    return RWS_OK;
}

static rws_status read_document(const char *path, json_t *document, rws_config *config, char **text, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    const json_t    *format = json_object_get(document, "format");
    if (!format) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"format\" is missing.", file.text);
    if (!json_is_integer(format) || json_integer_value(format) != RWS_CONFIG_FORMAT) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the \"format\" is not %d, the one that this version (%s) reads.",
                        file.text, RWS_CONFIG_FORMAT, RWS_VERSION_STRING);
    }
    for (int i = 0; i < N_FIELDS; i++) {
        const json_t *value = json_object_get(document, fields[i].key);
        if (!value) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is missing.", file.text, fields[i].key);
        if (!read_value(value, fields[i].kind, (char *)config + fields[i].at)) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"%s\" must be %s.", file.text, fields[i].key,
                            must_be[fields[i].kind]);
        }
    }
    const json_t *version = json_object_get(document, "version");
    json_t       *settings = json_object_get(document, "settings");
    if (!version || !settings) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is missing.", file.text,
                        version ? "settings" : "version");
    }
    if (!json_is_string(version)) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"version\" must be text.", file.text);
    if (!json_is_object(settings)) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"settings\" must be an object.", file.text);
    }
    for (void *at = json_object_iter(document); at; at = json_object_iter_next(document, at)) {
        if (is_known(json_object_iter_key(at))) continue;
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is unknown.", file.text,
                        rws_quote(json_object_iter_key(at)).text);
    }
    return read_settings(path, settings, config, text, err);
}

rws_status rws_config_read(const char *path, rws_config *config, rws_config_json *out, rws_error *err)
{
    rws_config      read = {0};
    rws_config_json json = {.document = load(path, err)};
    if (!json.document) return RWS_BAD_INPUT;
    const rws_status status = read_document(path, json.document, &read, &json.set, err);
    if (status != RWS_OK) {
        rws_config_release(&json);
        return status;
    }
    *config = read;
    *out = json;
    return RWS_OK;
}
