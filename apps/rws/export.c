/* export.c - rws export: metrics or snapshots of runs as CSV with a heading, or as JSON, one object per line. The CSV
 * of metrics can be read again, see results/exported.c. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "rws/command.h"
#include "rws/output.h"
#include "rws/select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_FORMAT = 0x2000, KEY_SNAPSHOTS };

typedef struct {
    rws_select  select;
    const char *out; /* NULL: stdout */
    bool        json, format_given, snapshots;
} export_options;

/* The columns, which are the same in every row. */
typedef struct {
    const char **keys, **metrics;
    int          n_keys, n_metrics;
} columns;

/* A row that is written cell by cell, as CSV or as a JSON object. */
typedef struct {
    FILE   *file;
    bool    heading; /* CSV: cells are names */
    bool    first;
    json_t *object; /* NULL for CSV */
} row;

/* Whether a cell of CSV needs no quotation marks: they keep separators and ends of lines in it, a # at its beginning
 * and blanks around it. */
static bool is_plain(const char *text)
{
    const size_t length = strlen(text);
    return text[0] != '#' && text[0] != ' ' && (!length || text[length - 1] != ' ') &&
           !text[strcspn(text, ",;\t\"\r\n")];
}

static void put_csv(row *r, const char *text)
{
    if (!r->first) fputc(',', r->file);
    r->first = false;
    if (is_plain(text)) {
        fputs(text, r->file);
        return;
    }
    fputc('"', r->file);
    rws__text_put_quoted(r->file, text);
    fputc('"', r->file);
}

static void put_text(row *r, const char *name, const char *text)
{
    if (r->object) json_object_set_new(r->object, name, rws__json_string(text));
    else put_csv(r, r->heading ? name : text ? text : "");
}

static void put_value(row *r, const char *name, const char *text)
{
    if (r->object) json_object_set_new(r->object, name, text ? rws__json_value(text) : json_null());
    else put_text(r, name, text);
}

/* 17 digits: the same double when it is read again. */
static void put_number(row *r, const char *name, double value)
{
    char text[32] = "nan"; /* without the sign that a NaN may have */
    if (!isnan(value)) snprintf(text, sizeof text, "%.17g", value);
    if (r->object) json_object_set_new(r->object, name, rws__json_real(value));
    else put_csv(r, r->heading ? name : text);
}

/* A number that was not measured. In CSV this is not the same as one that was measured and is NaN. */
static void put_nothing(row *r, const char *name)
{
    if (r->object) json_object_set_new(r->object, name, json_null());
    else put_csv(r, r->heading ? name : "");
}

static void put_count(row *r, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.0f", value);
    if (r->object) json_object_set_new(r->object, name, json_integer((json_int_t)value));
    else put_csv(r, r->heading ? name : text);
}

static void begin_row(row *r, bool json)
{
    r->first = true;
    if (!json) return;
    r->object = json_object();
    rws__need_memory(r->object != NULL, "a JSON object");
}

static void end_row(row *r)
{
    if (r->object) rws__json_dump(r->object, r->file, 17);
    r->object = NULL;
    fputc('\n', r->file);
}

static void put_run(row *r, const columns *c, const rws_result *run)
{
    put_text(r, "run", run->name);
    put_text(r, "version", run->version);
    put_text(r, "failure", run->failure);
    for (int k = 0; k < c->n_keys; k++) put_value(r, c->keys[k], rws_result_get(run, c->keys[k]));
}

/* A metric of a run, as far as its points are written. A run that has no such metric has no points. */
typedef struct {
    const rws_history *history;
    int                at; /* the next point */
} cursor;

static bool has_more(const cursor *k)
{
    return k->history && k->at < k->history->n;
}

/* Writes the points of one iteration, behind which the cursors are then. */
static void put_evaluation(row *r, const columns *c, const rws_result *run, cursor *cursors, double iteration,
                           double seconds, bool json)
{
    begin_row(r, json);
    put_run(r, c, run);
    put_count(r, "iteration", iteration);
    put_number(r, "seconds", seconds);
    for (int m = 0; m < c->n_metrics; m++) {
        cursor    *k = &cursors[m];
        const bool here = has_more(k) && k->history->iterations[k->at] == iteration;
        if (here) put_number(r, c->metrics[m], k->history->values[k->at]);
        else put_nothing(r, c->metrics[m]);
        while (has_more(k) && k->history->iterations[k->at] <= iteration) k->at++;
    }
    end_row(r);
}

/* A row for each iteration at which any metric was measured; metrics may have been measured at different ones. */
static void put_evaluations(row *r, const columns *c, const rws_result *run, cursor *cursors, bool json)
{
    for (int m = 0; m < c->n_metrics; m++) cursors[m] = (cursor){.history = rws_result_history(run, c->metrics[m])};
    for (;;) {
        double next = INFINITY, seconds = NAN;
        for (int m = 0; m < c->n_metrics; m++) {
            const rws_history *h = cursors[m].history;
            const int          at = cursors[m].at;
            if (has_more(&cursors[m]) && h->iterations[at] < next) next = h->iterations[at], seconds = h->seconds[at];
        }
        if (isinf(next)) return;
        put_evaluation(r, c, run, cursors, next, seconds, json);
    }
}

static void put_shot(row *r, const columns *c, const rws_result *run, const rws_shot *shot, bool json)
{
    for (int i = 0; i < shot->n; i++) {
        begin_row(r, json);
        put_run(r, c, run);
        put_count(r, "iteration", (double)shot->iteration);
        put_text(r, "snapshot", shot->name);
        put_count(r, "place", i);
        put_text(r, "label", shot->labels[i]);
        put_number(r, "value", shot->values[i]);
        end_row(r);
    }
}

static void write_rows(const rws_results *results, const export_options *o, FILE *file)
{
    columns c;
    row     r = {.file = file};
    c.keys = rws__select_keys(results, &c.n_keys);
    c.metrics = rws__select_metrics(results, &c.n_metrics);
    cursor *cursors = calloc((size_t)c.n_metrics + 1, sizeof *cursors);
    rws__need_memory(cursors != NULL, "the export");
    if (!o->json) { /* the heading is written as the row of an empty run */
        const rws_result  blank = {.name = ""};
        const char *const none[] = {NULL};
        const rws_shot    empty = {"", 0, 1, (const double[]){0}, none};
        r.heading = true;
        if (o->snapshots) put_shot(&r, &c, &blank, &empty, false);
        else put_evaluation(&r, &c, &blank, cursors, 0, 0, false);
        r.heading = false;
    }
    for (int i = 0; i < results->n; i++) {
        const rws_result *run = &results->runs[i];
        if (!o->snapshots) put_evaluations(&r, &c, run, cursors, o->json);
        for (int k = 0; o->snapshots && k < run->n_shots; k++) put_shot(&r, &c, run, &run->shots[k], o->json);
    }
    free(cursors);
    free(c.keys);
    free(c.metrics);
}

/* ---- the command */

static const struct argp_option options[] = {
    {"format", KEY_FORMAT, "csv|json", 0,
     "The format (default: by the ending of --out: .csv, .json or .jsonl; csv without one)", 2},
    {"snapshots", KEY_SNAPSHOTS, 0, 0, "The runs' snapshots instead of their metrics", 2},
    {"out", 'o', "FILE", 0, "Write to this file (default: stdout)", 2},
    {0},
};

/* The format by the ending of --out. A name without an ending, such as /dev/stdout, means CSV. */
static error_t take_format(export_options *o, struct argp_state *state)
{
    const char *slash = strrchr(o->out, '/');
    const char *ending = strrchr(slash ? slash + 1 : o->out, '.');
    o->json = ending && (strcmp(ending, ".json") == 0 || strcmp(ending, ".jsonl") == 0);
    if (!ending || o->json || strcmp(ending, ".csv") == 0) return 0;
    return rws__arguments_fail(
        state,
        "\"%s\" ends neither in .csv nor in .json nor in .jsonl: say the format with --format csv or --format json.",
        rws__quote_short(o->out).text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    export_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->select; return 0;
    case KEY_FORMAT:
        if (strcmp(arg, "csv") != 0 && strcmp(arg, "json") != 0)
            return rws__arguments_fail(state, "--format is csv or json, not \"%s\".", rws__quote_short(arg).text);
        o->format_given = true;
        o->json = strcmp(arg, "json") == 0;
        return 0;
    case KEY_SNAPSHOTS: o->snapshots = true; return 0;
    case 'o':
        if (!arg[0]) return rws__arguments_fail(state, "--out needs the name of a file.");
        o->out = arg;
        return 0;
    case ARGP_KEY_END: return o->out && !o->format_given ? take_format(o, state) : 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Writes the metrics of runs as CSV or JSON: one row or object for each evaluation, with the run's "
           "configuration. PATH is as for `rws runs`.",
    .children = (const struct argp_child[]){{.argp = &rws_select_argp}, {0}},
};

static rws_status write_file(const rws_results *r, const export_options *o, rws_error *err)
{
    rws_text rows;
    FILE    *file = rws__text_open(&rows);
    if (file) write_rows(r, o, file);
    char            *text = rws__text_end(&rows);
    const rws_status status = text ? rws__file_write_text(o->out, text, err) : rws_no_memory(err, "the export");
    free(text);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    export_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws export", argc, argv, 0, &o, err));
    rws_results *r;
    RWS_TRY(rws__select_read(&o.select, &r, err));
    rws_status status = RWS_OK;
    if (o.out) status = write_file(r, &o, err);
    else write_rows(r, &o, stdout);
    rws_results_free(r);
    return status;
}

const rws_command rws_command_export = {"export", "write the metrics of runs as CSV or JSON", run, &argp};
