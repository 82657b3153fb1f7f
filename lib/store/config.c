#include "store/config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/json.h"
#include "program/config.h"
#include "program/object.h"
#include "program/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const must_be[] = {
    [RWS_CONFIG_TEXT] = "text",
    [RWS_CONFIG_INT] = "a whole number that fits in 32 bits",
    [RWS_CONFIG_COUNT] = "a whole number from 0 to 18446744073709551615 (in quotes if it is above 9223372036854775807)",
    [RWS_CONFIG_NUMBER] = "a number",
    [RWS_CONFIG_FLAG] = "true or false",
};

/* Keys that may be missing: they are not written if the value is the default. */
#define PARTICLE_SHARDS "particle_shards" /* 1 */
#define RESAMPLE "resample"               /* 0 */

#define MAX_BYTES (1 << 20) /* of config.json */

enum { MAX_SETTINGS = sizeof((rws_config *)0)->set / sizeof(char *) };

void rws__config_release(rws_config_json *j)
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

/* Whether jansson takes the text: json_string refuses what json_string_nocheck does not. */
static bool is_utf8(const char *text)
{
    json_t    *checked = json_string(text), *unchecked = json_string_nocheck(text);
    const bool valid = checked || !unchecked;
    json_decref(checked);
    json_decref(unchecked);
    return valid;
}

static rws_status put_text(json_t *object, const char *key, const char *text, rws_error *err)
{
    if (json_object_set_new(object, key, json_string(text)) == 0) return RWS_OK;
    if (is_utf8(key) && is_utf8(text)) return rws_no_memory(err, "config.json");
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be written to config.json: it is not UTF-8.",
                    rws__quote(key).text);
}

/* The value is taken over; NULL stands for failed memory. */
static rws_status put_value(json_t *object, const char *key, json_t *value, rws_error *err)
{
    return json_object_set_new(object, key, value) == 0 ? RWS_OK : rws_no_memory(err, "config.json");
}

static rws_status put(json_t *document, const rws_config *config, const rws_config_member *m, rws_error *err)
{
    const void *p = (const char *)config + m->offset;
    switch (m->kind) {
    case RWS_CONFIG_TEXT: {
        const char *text = *(const char *const *)p;
        RWS_CHECK(text && "defaults are filled in");
        return put_text(document, m->name, text, err);
    }
    case RWS_CONFIG_INT: return put_value(document, m->name, json_integer(*(const int *)p), err);
    case RWS_CONFIG_COUNT: return put_value(document, m->name, big_count(*(const uint64_t *)p), err);
    case RWS_CONFIG_FLAG: return put_value(document, m->name, json_boolean(*(const bool *)p), err);
    case RWS_CONFIG_NUMBER: return put_value(document, m->name, json_real(*(const double *)p), err);
    }
    RWS_CHECK(!"a kind of value");
    return RWS_OK;
}

/* The path of a shared object, absolute, for the caller to free; *path is NULL for the name of a built-in model. */
static rws_status find_model(const char *model, char **path, rws_error *err)
{
    *path = NULL;
    if (!rws__model_is_path(model)) return RWS_OK;
    *path = realpath(model, NULL);
    if (*path) return RWS_OK;
    if (errno == ENOMEM) return rws_no_memory(err, "the path of the model");
    return rws_fail(err, RWS_BAD_INPUT, "The model \"%s\" cannot be found: %s.", rws__quote(model).text,
                    strerror(errno));
}

static rws_status amend_model(json_t *document, const char *model, rws_error *err)
{
    char *path;
    RWS_TRY(find_model(model, &path, err));
    const rws_status status = put_text(document, "model", path ? path : model, err);
    free(path);
    return status;
}

/* Whether the document has this text under the key. Such a text must not be replaced, because `config` may point to it. */
static bool is_text_of(const json_t *document, const char *key, const char *text)
{
    return strcmp(json_string_value(json_object_get(document, key)), text) == 0;
}

rws_status rws__config_amend(json_t *document, const rws_config *config, const char *fingerprint, rws_error *err)
{
    if (fingerprint) RWS_TRY(put_text(document, RWS_CONFIG_FINGERPRINT, fingerprint, err));
    if (config->model && !is_text_of(document, "model", config->model))
        RWS_TRY(amend_model(document, config->model, err));
    if (!is_text_of(document, "lr", config->lr)) RWS_TRY(put_text(document, "lr", config->lr, err));
    return put_value(document, "iterations", big_count(config->iterations), err);
}

static rws_status describe_settings(json_t *document, const rws_given *settings, int n, rws_error *err)
{
    if (n > MAX_SETTINGS)
        return rws_fail(err, RWS_BAD_INPUT, "Model and method have %d settings together, and a run can have %d.", n,
                        MAX_SETTINGS);
    json_t *object = json_object();
    RWS_TRY(put_value(document, "settings", object, err)); /* the document has it from now on */
    /* Where model and method have a setting of the same name, --set reaches the later one; so does this. */
    for (int i = 0; i < n; i++) RWS_TRY(put_text(object, settings[i].setting->name, settings[i].value, err));
    return RWS_OK;
}

static rws_status describe(json_t *document, const rws_config *config, const rws_run_state *s, rws_error *err)
{
    char of_file[RWS_FINGERPRINT_SIZE];
    if (!document) return rws_no_memory(err, "config.json");
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if ((strcmp(m->name, PARTICLE_SHARDS) != 0 || config->particle_shards > 1) &&
            (strcmp(m->name, RESAMPLE) != 0 || config->resample > 0))
            RWS_TRY(put(document, config, m, err));
    if (rws__model_is_path(config->model)) {
        if (!s->object) RWS_TRY(rws__fingerprint(config->model, of_file, err)); /* the model is at hand */
        RWS_TRY(put_text(document, RWS_CONFIG_FINGERPRINT, s->object ? s->object : of_file, err));
    }
    return describe_settings(document, s->settings, s->n_settings, err);
}

rws_status rws__config_describe(const rws_run_state *s, json_t **out, rws_error *err)
{
    rws_config absolute = *s->config;
    char      *path;
    *out = NULL;
    RWS_TRY(find_model(absolute.model, &path, err));
    if (path) absolute.model = path;
    json_t          *document = json_pack("{s:i, s:s}", "format", RWS_CONFIG_FORMAT, "version", RWS_VERSION_STRING);
    const rws_status status = describe(document, &absolute, s, err);
    free(path);
    if (status == RWS_OK) *out = document;
    else json_decref(document);
    return status;
}

const char *rws__config_model_of(const json_t *document)
{
    return json_string_value(json_object_get(document, "model"));
}

const char *rws__config_fingerprint_of(const json_t *document)
{
    return json_string_value(json_object_get(document, RWS_CONFIG_FINGERPRINT));
}

char *rws__config_model_in(const char *text)
{
    json_error_t why;
    bool         starved;
    json_t      *document = rws__json_load(text, strlen(text), 0, &why, &starved);
    const char  *model = json_string_value(json_object_get(document, "model"));
    char        *copy = document || !starved ? strdup(model ? model : "") : NULL;
    json_decref(document);
    return copy;
}

const char *rws__config_lr(const json_t *document)
{
    return json_string_value(json_object_get(document, "lr"));
}

rws_status rws__config_write(const char *path, const json_t *document, rws_error *err)
{
    char *text = rws__json_text(document, JSON_INDENT(4));
    if (!text) return rws_no_memory(err, "config.json");
    const rws_piece  parts[] = {{text, strlen(text)}, {"\n", 1}};
    const rws_status status = rws__file_replace(path, parts, 2, err);
    free(text);
    return status;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* If memory runs out, jansson reports a mistake in the text or leaves out a character, and only errno tells what happened. */
static json_t *parse(int fd, json_error_t *why)
{
    errno = 0;
    json_t *document = json_loadfd(fd, JSON_REJECT_DUPLICATES, why);
    if (document && errno != ENOMEM) return document;
    json_decref(document);
    return NULL;
}

/* The JSON object in the file, a new reference. */
static rws_status load(const char *path, json_t **document, rws_error *err)
{
    const rws_quoted file = rws__quote(path);
    rws_status       status = RWS_OK;
    json_error_t     why;
    struct stat      about;
    *document = NULL;
    /* O_NONBLOCK: opening a pipe by mistake must not wait for its writer. */
    const int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0 && errno == ENOENT) {
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is missing: its folder is not that of a run.", file.text);
    } else if (fd < 0 || fstat(fd, &about) != 0) {
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": %s.", file.text, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot read \"%s\": it is not a regular file.", file.text);
    } else if (about.st_size > MAX_BYTES) {
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a configuration: it has more than %d bytes.", file.text,
                          MAX_BYTES);
    } else if (!(*document = parse(fd, &why))) {
        status = errno == ENOMEM ? rws_no_memory(err, "config.json")
                                 : rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not JSON: line %d: %s.", file.text, why.line,
                                            rws__quote(why.text).text);
    } else if (!json_is_object(*document)) {
        status =
            rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a configuration: it is JSON, but not an object.", file.text);
    }
    if (fd >= 0) close(fd);
    return status;
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

uint64_t rws__config_iterations(const json_t *document)
{
    uint64_t n;
    return read_big_count(json_object_get(document, "iterations"), &n) ? n : 0;
}

/* False if the value is of another type or out of range. */
static bool read_value(const json_t *value, rws_config_kind kind, void *out)
{
    const json_int_t n = json_integer_value(value);
    switch (kind) {
    case RWS_CONFIG_TEXT: *(const char **)out = json_string_value(value); return json_is_string(value);
    case RWS_CONFIG_INT: *(int *)out = (int)n; return json_is_integer(value) && n >= INT_MIN && n <= INT_MAX;
    case RWS_CONFIG_COUNT: return read_big_count(value, out);
    case RWS_CONFIG_FLAG: *(bool *)out = json_is_true(value); return json_is_boolean(value);
    case RWS_CONFIG_NUMBER: *(double *)out = json_number_value(value); return json_is_number(value);
    }
    RWS_CHECK(!"a kind of value");
    return false;
}

static bool is_known(const char *key)
{
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (strcmp(key, m->name) == 0) return true;
    static const char *const others[] = {"format", "version", "settings", RWS_CONFIG_FINGERPRINT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(key, others[i]) == 0) return true;
    }
    return false;
}

/* Settings as "name=value" in config->set; the caller frees *text, which holds them. */
static rws_status read_settings(const char *path, json_t *settings, rws_config *config, char **text, rws_error *err)
{
    const char *name;
    json_t     *value;
    size_t      size = 1;
    if (json_object_size(settings) > MAX_SETTINGS) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu \"settings\", and a run can have %d.",
                        rws__quote(path).text, json_object_size(settings), MAX_SETTINGS);
    }
    json_object_foreach(settings, name, value)
    {
        if (!json_is_string(value)) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the setting \"%s\" must be text (in quotes, also a number).",
                            rws__quote(path).text, rws__quote(name).text);
        }
        size += strlen(name) + json_string_length(value) + 2;
    }
    char *at = *text = malloc(size);
    if (!at) return rws_no_memory(err, "the settings of a run");
    json_object_foreach(settings, name, value)
    {
        config->set[config->n_set++] = at;
        at += sprintf(at, "%s=%s", name, json_string_value(value)) + 1;
    }
    return RWS_OK;
}

static rws_status check_format(const char *file, const json_t *document, rws_error *err)
{
    const json_t *format = json_object_get(document, "format");
    if (!format) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"format\" is missing.", file);
    if (json_is_integer(format) && json_integer_value(format) == RWS_CONFIG_FORMAT) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the \"format\" is not %d, the one that this version (%s) reads.", file,
                    RWS_CONFIG_FORMAT, RWS_VERSION_STRING);
}

static rws_status read_member(const char *file, const json_t *document, const rws_config_member *m, rws_config *config,
                              rws_error *err)
{
    const json_t *value = json_object_get(document, m->name);
    if (!value && strcmp(m->name, PARTICLE_SHARDS) == 0) {
        config->particle_shards = 1;
        return RWS_OK;
    }
    if (!value && strcmp(m->name, RESAMPLE) == 0) return RWS_OK;
    if (!value) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is missing.", file, m->name);
    if (!read_value(value, m->kind, (char *)config + m->offset))
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"%s\" must be %s.", file, m->name, must_be[m->kind]);
    if (!rws__config_fits(m, config))
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"%s\" must be between %llu and %llu.", file, m->name,
                        (unsigned long long)m->least, (unsigned long long)m->most);
    return RWS_OK;
}

/* The keys that are no members of an rws_config. */
static rws_status check_others(const char *file, json_t *document, rws_error *err)
{
    const json_t *version = json_object_get(document, "version"), *settings = json_object_get(document, "settings"),
                 *fingerprint = json_object_get(document, RWS_CONFIG_FINGERPRINT);
    if (!version || !settings)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is missing.", file,
                        version ? "settings" : "version");
    if (!json_is_string(version)) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"version\" must be text.", file);
    if (!json_is_object(settings)) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"settings\" must be an object.", file);
    if (fingerprint && !json_is_string(fingerprint))
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\": \"%s\" must be text.", file, RWS_CONFIG_FINGERPRINT);
    for (void *at = json_object_iter(document); at; at = json_object_iter_next(document, at))
        if (!is_known(json_object_iter_key(at)))
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the key \"%s\" is unknown.", file,
                            rws__quote(json_object_iter_key(at)).text);
    return RWS_OK;
}

static rws_status read_document(const char *path, json_t *document, rws_config *config, char **text, rws_error *err)
{
    const rws_quoted file = rws__quote(path);
    RWS_TRY(check_format(file.text, document, err));
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        RWS_TRY(read_member(file.text, document, m, config, err));
    RWS_TRY(check_others(file.text, document, err));
    return read_settings(path, json_object_get(document, "settings"), config, text, err);
}

/* Appends to the message about a configuration that another version wrote which one that was. */
static void name_version(const json_t *document, rws_error *err)
{
    const char *version = json_string_value(json_object_get(document, "version"));
    if (version && strcmp(version, RWS_VERSION_STRING) != 0)
        rws__error_append(err, " Version %s of rws wrote it, and this is %s.", rws__quote_short(version).text,
                          RWS_VERSION_STRING);
}

rws_status rws__config_read(const char *path, rws_config *config, const char **model, rws_config_json *out,
                            rws_error *err)
{
    rws_config      read = {0};
    rws_config_json json = {0};
    rws_status      status = load(path, &json.document, err);
    if (status == RWS_OK) status = read_document(path, json.document, &read, &json.set, err);
    if (status != RWS_OK) {
        if (status == RWS_BAD_INPUT) name_version(json.document, err);
        rws__config_release(&json);
        return status;
    }
    *config = read;
    *model = read.model;
    if (rws__model_is_path(read.model)) config->model = NULL;
    *out = json;
    return RWS_OK;
}
