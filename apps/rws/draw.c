/* draw.c - rws draw: trees, images and Hinton diagrams from JSON on the standard input, for programs in other
 * languages. */
#include "base/error.h"
#include "base/quote.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "figure/hinton.h"
#include "figure/images.h"
#include "figure/trees.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 4096 }; /* rows, columns, pixels of a side; keeps products small */

typedef struct {
    const char *kind, *out;
} draw_options;

static const struct argp_option options[] = {
    {"out", 'o', "FILE", 0, "Draw to this file: .png, .svg or .pdf", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    draw_options *o = state->input;
    switch (key) {
    case 'o': o->out = arg; return 0;
    case ARGP_KEY_ARG:
        if (o->kind) return rws__arguments_extra(state, arg);
        o->kind = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->kind) return rws__arguments_fail(state, "What should be drawn: trees, images or hinton?");
        if (!o->out || !*o->out) return rws__arguments_fail(state, "The picture needs a file: --out FILE.");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "trees|images|hinton",
    .doc = "Draws what a JSON object on the standard input describes. trees: {\"trees\": [{\"text\": \"(S ...)\", "
           "\"caption\": \"0.57\"}, ...]}. "
           "images: {\"rows\": R, \"columns\": C, \"high\": H, \"wide\": W, \"values\": [R C H W numbers from 0, "
           "black, to 1; null: no "
           "pixel]}. hinton: {\"strips\": [name, ...], \"columns\": [name, ...], \"values\": [columns strips N "
           "probabilities]}. Each may have "
           "a \"title\".",
};

static rws_status refuse(rws_error *err, const char *what)
{
    return rws_fail(err, RWS_BAD_INPUT, "The JSON to draw %s.", what);
}

static const char *text_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* A list of texts; NULL if there is none, or no memory. */
static const char **texts_of(const json_t *list)
{
    const size_t n = json_array_size(list);
    const char **out = n ? calloc(n, sizeof *out) : NULL;
    for (size_t i = 0; i < n && out; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        out[i] = text ? text : "";
    }
    return out;
}

/* The numbers of a list, which has n of them; null is NaN. */
static rws_status numbers_of(const json_t *list, size_t n, double **out, rws_error *err)
{
    if (json_array_size(list) != n || n == 0) return refuse(err, "does not have as many values as its sizes say");
    double *x = *out = malloc(n * sizeof *x);
    if (!x) return rws_no_memory(err, "a picture");
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        x[i] = json_is_number(v) ? json_number_value(v) : (double)NAN;
    }
    return RWS_OK;
}

static rws_status draw_trees(const json_t *o, const char *path, rws_error *err)
{
    const json_t *list = json_object_get(o, "trees");
    const size_t  n = json_array_size(list);
    if (n == 0 || n > MAX_SIDE) return refuse(err, "has no list of trees, or a list that is too long");
    rws_drawn_tree *trees = calloc(n, sizeof *trees);
    if (!trees) return rws_no_memory(err, "trees");
    rws_status status = RWS_OK;
    for (size_t i = 0; i < n && status == RWS_OK; i++) {
        const json_t *t = json_array_get(list, i);
        trees[i] = (rws_drawn_tree){.text = text_at(t, "text"), .caption = text_at(t, "caption")};
        if (!trees[i].text) status = refuse(err, "has a tree without a text");
    }
    const rws_trees page = {.title = text_at(o, "title"), .trees = trees, .n_trees = (int)n};
    if (status == RWS_OK) status = rws__trees_draw(&page, path, err);
    free(trees);
    return status;
}

static rws_status draw_images(const json_t *o, const char *path, rws_error *err)
{
    static const char *const keys[] = {"rows", "columns", "high", "wide"};
    size_t                   size[4], n = 1;
    double                  *values = NULL;
    for (int i = 0; i < 4; i++) {
        const json_int_t x = json_integer_value(json_object_get(o, keys[i]));
        if (x < 1 || x > MAX_SIDE) return refuse(err, "lacks rows, columns, high or wide");
        size[i] = (size_t)x;
        n *= size[i];
    }
    RWS_TRY(numbers_of(json_object_get(o, "values"), n, &values, err));
    const rws_images images = {.title = text_at(o, "title"),
                               .n_rows = (int)size[0],
                               .n_columns = (int)size[1],
                               .high = (int)size[2],
                               .wide = (int)size[3],
                               .values = values};
    const rws_status status = rws__images_draw(&images, path, err);
    free(values);
    return status;
}

static rws_status draw_hinton(const json_t *o, const char *path, rws_error *err)
{
    const json_t *names = json_object_get(o, "strips"), *columns = json_object_get(o, "columns");
    const size_t n_strips = json_array_size(names), n_columns = json_array_size(columns) ? json_array_size(columns) : 1;
    const size_t total = json_array_size(json_object_get(o, "values"));
    if (n_strips < 1 || n_strips > MAX_SIDE || n_columns > MAX_SIDE || total % (n_strips * n_columns))
        return refuse(err, "has no strips, or not as many values for each");
    double *values = NULL;
    RWS_TRY(numbers_of(json_object_get(o, "values"), total, &values, err));
    const char **strip_names = texts_of(names), **column_names = texts_of(columns);
    rws_strip   *strips = calloc(n_strips, sizeof *strips);
    rws_status   status = strip_names && strips ? RWS_OK : rws_no_memory(err, "a diagram");
    for (size_t i = 0; i < n_strips && status == RWS_OK; i++) strips[i] = (rws_strip){.method = strip_names[i]};
    const rws_hinton hinton = {.title = text_at(o, "title"),
                               .n_rows = 1,
                               .n_columns = (int)n_columns,
                               .n_strips = (int)n_strips,
                               .n_values = (int)(total / (n_strips * n_columns)),
                               .columns = column_names,
                               .strips = strips,
                               .values = values};
    if (status == RWS_OK) status = rws__hinton_draw(&hinton, path, err);
    free(strips);
    free(strip_names);
    free(column_names);
    free(values);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    static const struct {
        const char *name;
        rws_status (*draw)(const json_t *o, const char *path, rws_error *err);
    } kinds[] = {{"trees", draw_trees}, {"images", draw_images}, {"hinton", draw_hinton}};
    draw_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws draw", argc, argv, 0, &o, err));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, o.kind) != 0) continue;
        json_error_t why;
        json_t      *object = json_loadf(stdin, 0, &why);
        if (!json_is_object(object)) {
            json_decref(object);
            return rws_fail(err, RWS_BAD_INPUT, "The standard input is not a JSON object.");
        }
        const rws_status status = kinds[i].draw(object, o.out, err);
        json_decref(object);
        return status;
    }
    return rws_fail(err, RWS_BAD_INPUT, "rws draw draws trees, images or hinton, not \"%s\".",
                    rws__quote_short(o.kind).text);
}

const rws_command rws_command_draw = {"draw", "draw trees, images or Hinton diagrams that JSON describes", run, &argp};
