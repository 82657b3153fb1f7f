#include "serve/body.h"

#include "base/error.h"
#include "base/quote.h"
#include "data/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOP = 10,
    MAX_TOP = 1000,
    MAX_REFINE = 10000,
    MAX_TEXT = 20000,
    MAX_SIDE = 1024,
    MAX_CHOICES = 20000,
    MAX_TEST = 1000000
};

void rws__body_release(rws_body *p)
{
    for (int i = 0; i < p->n_data; i++) {
        free((void *)p->data[i].picture.grey);
        free(p->data[i].numbers);
        free(p->data[i].fields);
    }
    for (int i = 0; i < p->n_choices; i++) free((void *)p->choices[i].value);
    free(p->choices);
    free(p->data);
    json_decref(p->document);
    *p = (rws_body){0};
}

/* ---- numbers */

static rws_status read_count(const json_t *object, const char *key, double least, double most, double *out,
                             rws_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value) return RWS_OK;
    const double number = json_is_number(value) ? json_number_value(value) : NAN;
    if (number >= least && number <= most && number == floor(number)) {
        *out = number;
        return RWS_OK;
    }
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is a whole number from %.0f to %.0f.", key, least, most);
}

static rws_status read_int(const json_t *object, const char *key, int least, int most, int *out, rws_error *err)
{
    double number = *out;
    RWS_TRY(read_count(object, key, least, most, &number, err));
    *out = (int)number;
    return RWS_OK;
}

static rws_status read_bool(const json_t *object, const char *key, bool *out, rws_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value)) return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is true or false.", key);
    if (value) *out = json_is_true(value);
    return RWS_OK;
}

static bool to_float(const json_t *value, float *out)
{
    if (!json_is_number(value)) return false;
    *out = (float)json_number_value(value);
    return isfinite(*out);
}

/* A number, or an array of `dim` of them. */
static bool read_numbers(const json_t *value, int dim, float *out)
{
    if (dim == 1 && json_is_number(value)) return to_float(value, out);
    if (!json_is_array(value) || json_array_size(value) != (size_t)dim) return false;
    for (int i = 0; i < dim; i++)
        if (!to_float(json_array_get(value, (size_t)i), &out[i])) return false;
    return true;
}

/* ---- a datum */

/* An array of items becomes their number, followed by the items. */
static rws_status read_series(const json_t *value, const rws_field *f, float *out, rws_error *err)
{
    const size_t n = json_array_size(value);
    bool         good = json_is_array(value) && n <= (size_t)f->most;
    out[0] = (float)n;
    for (size_t i = 0; i < n && good; i++)
        good = read_numbers(json_array_get(value, i), f->item, out + 1 + i * (size_t)f->item);
    if (good) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "The field \"%s\" is an array of at most %d items of %d finite number%s each.",
                    rws__quote_short(f->name).text, f->most, f->item, f->item == 1 ? "" : "s");
}

static rws_status read_field(const json_t *value, const rws_field *f, float *out, rws_error *err)
{
    if (!value)
        return rws_fail(err, RWS_BAD_INPUT, "The datum has no value for the field \"%s\".",
                        rws__quote_short(f->name).text);
    if (f->most > 0) return read_series(value, f, out, err);
    if (read_numbers(value, f->dim, out)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "The field \"%s\" is %s%d finite number%s.", rws__quote_short(f->name).text,
                    f->dim == 1 ? "" : "an array of ", f->dim, f->dim == 1 ? "" : "s");
}

/* Which fields a datum has: inputs alone, or all but labels. */
static bool is_read(const rws_field *f, bool inputs)
{
    return inputs ? f->input : !f->label;
}

static rws_status read_fields(const json_t *object, const rws_field *fields, int n, bool inputs, rws_body_datum *out,
                              rws_error *err)
{
    size_t total = 0;
    if (!json_is_object(object))
        return rws_fail(err, RWS_BAD_INPUT, "\"fields\" is an object with the numbers of each field.");
    for (int i = 0; i < n; i++) total += is_read(&fields[i], inputs) ? (size_t)fields[i].dim : 0;
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool known = false;
        for (int i = 0; i < n && !known; i++) known = is_read(&fields[i], inputs) && strcmp(fields[i].name, key) == 0;
        if (!known)
            return rws_fail(err, RWS_BAD_INPUT, "The model has no %s \"%s\".", inputs ? "input" : "field",
                            rws__quote_short(key).text);
    }
    out->numbers = calloc(total + 1, sizeof *out->numbers);
    out->fields = calloc((size_t)n + 1, sizeof *out->fields);
    if (!out->numbers || !out->fields) return rws_no_memory(err, "a datum");
    float *at = out->numbers;
    for (int i = 0; i < n; i++) {
        if (!is_read(&fields[i], inputs)) continue;
        RWS_TRY(read_field(json_object_get(object, fields[i].name), &fields[i], at, err));
        out->fields[i] = at;
        at += fields[i].dim;
    }
    out->question.fields = out->fields;
    return RWS_OK;
}

static rws_status read_picture(const json_t *object, rws_body_datum *out, rws_error *err)
{
    const json_t *grey = json_object_get(object, "grey");
    int           wide = 0, high = 0;
    RWS_TRY(read_int(object, "wide", 1, MAX_SIDE, &wide, err));
    RWS_TRY(read_int(object, "high", 1, MAX_SIDE, &high, err));
    const size_t n = (size_t)wide * (size_t)high;
    if (n == 0 || json_array_size(grey) != n)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"picture\" is {\"wide\": W, \"high\": H, \"grey\": [W x H numbers from 0 "
                        "(black) to 255 (white), row by row]}.");
    uint8_t *pixels = malloc(n);
    if (!pixels) return rws_no_memory(err, "a picture");
    out->picture = (rws_grey){"picture", wide, high, pixels};
    out->question.picture = &out->picture;
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(grey, i);
        const double  level = json_is_number(value) ? json_number_value(value) : -1;
        if (!(level >= 0 && level <= 255)) return rws_fail(err, RWS_BAD_INPUT, "A pixel is a number from 0 to 255.");
        pixels[i] = (uint8_t)lrint(level);
    }
    return RWS_OK;
}

static rws_status read_text(const json_t *value, rws_body_datum *out, rws_error *err)
{
    if (!json_is_string(value)) return rws_fail(err, RWS_BAD_INPUT, "\"text\" is a text.");
    if (json_string_length(value) > MAX_TEXT)
        return rws_fail(err, RWS_BAD_INPUT, "\"text\" has at most %d bytes.", MAX_TEXT);
    out->question.text = json_string_value(value);
    return RWS_OK;
}

/* The keys of which a datum has one. */
static const char *const ways[] = {"text", "picture", "fields", "test"};

static rws_status read_datum(const json_t *object, const rws_field *fields, int n, bool inputs, rws_body_datum *out,
                             rws_error *err)
{
    int way = -1;
    for (int i = 0; i < 4; i++) {
        if (!json_object_get(object, ways[i])) continue;
        if (way >= 0) return rws_fail(err, RWS_BAD_INPUT, "A datum has either \"%s\" or \"%s\".", ways[way], ways[i]);
        way = i;
    }
    switch (way) {
    case 0: return read_text(json_object_get(object, "text"), out, err);
    case 1: return read_picture(json_object_get(object, "picture"), out, err);
    case 2: return read_fields(json_object_get(object, "fields"), fields, n, inputs, out, err);
    case 3: return read_int(object, "test", 0, MAX_TEST, &out->question.test, err);
    default:
        return rws_fail(err, RWS_BAD_INPUT, "Which datum? Give it as \"text\", \"picture\", \"fields\" or \"test\".");
    }
}

/* ---- choices: all of them for a score, those that are known for a question */

static rws_status read_choice(const json_t *object, rws_choice *out, rws_error *err)
{
    const json_t *site = json_object_get(object, "site"), *value = json_object_get(object, "value");
    const int     dim = json_is_array(value) ? (int)json_array_size(value) : 1;
    RWS_TRY(read_int(object, "visit", 0, 1000000000, &out->visit, err));
    float *numbers = calloc((size_t)dim + 1, sizeof *numbers);
    if (!numbers) return rws_no_memory(err, "choices");
    out->value = numbers;
    out->site = json_string_value(site);
    out->dim = dim;
    if (out->site && dim > 0 && read_numbers(value, dim, numbers)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "A choice is {\"site\": \"NAME\", \"visit\": 0, \"value\": a finite number or an "
                    "array of them}.");
}

static rws_status read_choices(const json_t *body, const char *key, rws_body *out, rws_error *err)
{
    const json_t *list = json_object_get(body, key);
    const size_t  n = json_array_size(list);
    if (!list) return rws_fail(err, RWS_BAD_INPUT, "A score needs \"%s\", an array of all choices.", key);
    if (!json_is_array(list) || n > MAX_CHOICES)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is an array of at most %d choices.", key, MAX_CHOICES);
    out->choices = calloc(n + 1, sizeof *out->choices);
    if (!out->choices) return rws_no_memory(err, "choices");
    for (size_t i = 0; i < n; i++) {
        out->n_choices++;
        RWS_TRY(read_choice(json_array_get(list, i), &out->choices[i], err));
    }
    return RWS_OK;
}

/* ---- the body */

/* Whether the key is one of the words of a list, which blanks part. */
static bool is_word(const char *key, const char *words)
{
    for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (strlen(key) == n && strncmp(at, key, n) == 0) return true;
        at += n;
    }
    return false;
}

static rws_status check_keys(const json_t *object, const char *allowed, rws_error *err)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (is_word(key, allowed)) continue;
        return rws_fail(err, RWS_BAD_INPUT, "There is no key \"%s\" here; the keys are%s.", rws__quote_short(key).text,
                        allowed);
    }
    return RWS_OK;
}

#define DATUM " text picture fields test"

static rws_status read_data(const json_t *body, const rws_field *fields, int n_fields, const rws_body_limits *limits,
                            rws_body *out, rws_error *err)
{
    const json_t *list = json_object_get(body, "data");
    const size_t  n = list ? json_array_size(list) : 1;
    out->many = list != NULL;
    if (n < 1 || n > (size_t)limits->data)
        return rws_fail(err, RWS_BAD_INPUT, "\"data\" is an array of 1 to %d data.", limits->data);
    out->data = calloc(n, sizeof *out->data);
    if (!out->data) return rws_no_memory(err, "data");
    for (size_t i = 0; i < n; i++) {
        const json_t *datum = list ? json_array_get(list, i) : body;
        out->n_data++;
        if (!json_is_object(datum)) return rws_fail(err, RWS_BAD_INPUT, "A datum is an object.");
        if (list) RWS_TRY(check_keys(datum, DATUM, err));
        RWS_TRY(read_datum(datum, fields, n_fields, false, &out->data[i], err));
    }
    for (int i = 0; list && i < 4; i++)
        if (json_object_get(body, ways[i]))
            return rws_fail(err, RWS_BAD_INPUT, "A request has one datum or \"data\", not both.");
    return RWS_OK;
}

/* The inputs that samples are to have, if any are given. */
static rws_status read_inputs(const json_t *body, const rws_field *fields, int n_fields, rws_body *out, rws_error *err)
{
    if (!json_object_get(body, "fields") && !json_object_get(body, "test")) return RWS_OK;
    out->data = calloc(1, sizeof *out->data);
    if (!out->data) return rws_no_memory(err, "data");
    out->n_data = 1;
    return read_datum(body, fields, n_fields, true, &out->data[0], err);
}

static rws_status read_body(const json_t *body, rws_body_kind kind, const rws_field *fields, int n_fields,
                            const rws_body_limits *limits, rws_body *out, rws_error *err)
{
    static const char *const keys[] = {
        [RWS_BODY_INFER] = DATUM " data given particles seed refine top particles_listed marginals",
        [RWS_BODY_SAMPLE] = " n seed particles_listed fields test",
        [RWS_BODY_SCORE] = DATUM " choices",
        [RWS_BODY_CALIBRATE] = " simulations particles seed refine",
    };
    double seed = 1;
    if (!json_is_object(body)) return rws_fail(err, RWS_BAD_INPUT, "The body is a JSON object.");
    RWS_TRY(check_keys(body, keys[kind], err));
    RWS_TRY(read_count(body, "seed", 0, 9007199254740992.0, &seed, err));
    RWS_TRY(read_int(body, "particles", 1, limits->particles, &out->particles, err));
    RWS_TRY(read_int(body, "top", 0, MAX_TOP, &out->top, err));
    RWS_TRY(read_int(body, "refine", 0, MAX_REFINE, &out->refine, err));
    RWS_TRY(read_int(body, "n", 1, limits->samples, &out->samples, err));
    RWS_TRY(read_int(body, "simulations", 50, limits->samples, &out->samples, err));
    RWS_TRY(read_bool(body, "particles_listed", &out->listed, err));
    RWS_TRY(read_bool(body, "marginals", &out->marginals, err));
    out->seed = (uint64_t)seed;
    if (kind == RWS_BODY_SAMPLE) return read_inputs(body, fields, n_fields, out, err);
    if (kind == RWS_BODY_CALIBRATE) return RWS_OK;
    RWS_TRY(read_data(body, fields, n_fields, limits, out, err));
    if ((double)out->n_data * out->particles > limits->work)
        return rws_fail(err, RWS_BAD_INPUT, "A request takes at most %.0f particles of all data together, not %d x %d.",
                        limits->work, out->n_data, out->particles);
    if (kind == RWS_BODY_SCORE) RWS_TRY(read_choices(body, "choices", out, err));
    else if (json_object_get(body, "given")) RWS_TRY(read_choices(body, "given", out, err));
    for (int i = 0; i < out->n_data; i++) {
        rws_question *q = &out->data[i].question;
        q->n_particles = out->particles;
        q->seed = out->seed;
        q->particles = out->listed || out->marginals;
        q->refine = out->refine;
        if (kind == RWS_BODY_SCORE) continue; /* its choices are no condition */
        q->given = out->choices;
        q->n_given = out->n_choices;
    }
    return RWS_OK;
}

static rws_status load(const char *text, size_t n, json_t **out, rws_error *err)
{
    json_error_t why;
    bool         starved;
    *out = rws__json_load(text, n, JSON_REJECT_DUPLICATES, &why, &starved);
    if (starved) return rws_no_memory(err, "a question");
    if (*out) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "The body is not JSON: line %d, column %d: %s.", why.line, why.column,
                    rws__quote_short(why.text).text);
}

rws_status rws__body_read(const char *body, size_t n, rws_body_kind kind, const rws_field *fields, int n_fields,
                          const rws_body_limits *limits, rws_body *out, rws_error *err)
{
    *out = (rws_body){.particles = limits->particles < 1000 ? limits->particles : 1000, .top = TOP, .samples = 1};
    RWS_TRY(load(body, n, &out->document, err));
    return read_body(out->document, kind, fields, n_fields, limits, out, err);
}

static bool says_how(const json_t *datum)
{
    for (int i = 0; i < 4; i++)
        if (json_object_get(datum, ways[i])) return true;
    return false;
}

rws_status rws__body_read_datum(const char *text, size_t n, const rws_field *fields, int n_fields,
                                const rws_body_limits *limits, rws_body *out, rws_error *err)
{
    *out = (rws_body){.particles = 1};
    RWS_TRY(load(text, n, &out->document, err));
    if (json_is_object(out->document) && !says_how(out->document)) {
        json_t *datum = json_pack("{s:o}", "fields", out->document);
        if (!datum) return rws_no_memory(err, "a question");
        out->document = datum;
    }
    return read_body(out->document, RWS_BODY_INFER, fields, n_fields, limits, out, err);
}
