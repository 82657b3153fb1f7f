/* exported.c - runs from a file that `rws export` wrote as CSV.
 *
 *     run  version  failure   model  method …    iteration  seconds   ess  log_evidence …
 *     `-------- run --------' `--- keys ---'     `--- evaluation ---' `--- metrics ----'
 *
 * A row is an evaluation. Rows of a run follow each other, and the iteration rises: a row with another name, or with an
 * iteration that is not higher, begins the next run. An empty cell is a key or a metric that the run does not have there;
 * a metric that was measured and is NaN is "nan". Version 0.8 and before wrote an empty cell for both, and version 0.7 and
 * before wrote no columns "version" and "failure".
 */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/cells.h"
#include "results/results.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30 }; /* of a file */

/* A number of an evaluation. */
typedef struct {
    double value;
    bool   measured; /* false: the cell was empty, and the value is NaN */
} number;

typedef struct {
    rws_results *results;
    rws_cells    cells;
    const char **names; /* of the columns */
    int          n_columns;
    int          first_key;    /* the column behind those of the run */
    int          at_iteration; /* the column behind the keys; seconds and metrics follow */
    rws_cell    *row;          /* the cells of a line */
    int          line;         /* of the row */
    rws_cell     run;          /* the name of the run that is being read; empty before the first */
    number      *numbers;      /* its evaluations: iteration, seconds and all metrics of each */
    size_t       n, capacity;  /* evaluations */
} reader;

static rws_status no_memory(const reader *r)
{
    return rws_no_memory(r->cells.err, "exported runs");
}

static int n_metrics(const reader *r)
{
    return r->n_columns - r->at_iteration - 2;
}

/* The numbers of evaluation i. */
static number *evaluation(const reader *r, size_t i)
{
    return r->numbers + i * (size_t)(r->n_columns - r->at_iteration);
}

/* A copy of the text of a cell; NULL for an empty cell, and without memory, when `starved` is set. */
static const char *text_of(reader *r, const rws_cell *cell)
{
    if (cell->length == 0) return NULL;
    char *text = rws__arena_try(&r->results->memory->arena, cell->length + 1);
    if (text) rws__cell_copy(cell, text);
    else r->results->memory->starved = true;
    return text;
}

/* ---- the heading */

static bool is_named(const reader *r, int column, const char *name)
{
    return column < r->n_columns && r->names[column] && strcmp(r->names[column], name) == 0;
}

/* Reads the first line, and finds the columns of the run, its keys and its metrics. */
static rws_status read_heading(reader *r)
{
    rws_cells again = r->cells;
    for (rws_cell c = {0}; !c.last; r->n_columns++) RWS_TRY(rws__cells_read(&again, r->n_columns + 1, &c));
    r->names = rws__results_zeroed(r->results, (size_t)r->n_columns * sizeof *r->names);
    r->row = rws__results_zeroed(r->results, (size_t)r->n_columns * sizeof *r->row);
    if (!r->names || !r->row) return no_memory(r);
    for (int i = 0; i < r->n_columns; i++) {
        RWS_TRY(rws__cells_read(&r->cells, i + 1, &r->row[i]));
        r->names[i] = text_of(r, &r->row[i]);
    }
    r->first_key = is_named(r, 1, "version") && is_named(r, 2, "failure") ? 3 : 1;
    r->at_iteration = r->first_key;
    while (r->at_iteration < r->n_columns && !is_named(r, r->at_iteration, "iteration")) r->at_iteration++;
    if (r->results->memory->starved) return no_memory(r);
    if (!is_named(r, 0, "run") || !is_named(r, r->at_iteration + 1, "seconds"))
        return rws__refuse(r->cells.err, r->cells.name, 0,
                           "is no export of runs: its columns are not run, …, iteration, seconds, …, as `rws export` "
                           "writes them.");
    for (int i = 0; i < r->n_columns; i++)
        if (!r->names[i]) return rws__refuse(r->cells.err, r->cells.name, 0, "has no name for column %d.", i + 1);
    return RWS_OK;
}

/* ---- one run */

static int by_metric(const void *a, const void *b)
{
    return strcmp(((const rws_history *)a)->metric, ((const rws_history *)b)->metric);
}

/* Makes the history of metric m, if the run has it. */
static rws_status add_history(reader *r, rws_history *series, int *n_series, int m)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += evaluation(r, i)[2 + m].measured;
    if (n == 0) return RWS_OK;
    double *x = RWS_TRY_NEW(&r->results->memory->arena, double, 3 * n);
    if (!x) return no_memory(r);
    double *seconds = x + n, *values = seconds + n;
    series[(*n_series)++] = (rws_history){r->names[r->at_iteration + 2 + m], (int)n, x, seconds, values};
    for (size_t i = 0, k = 0; i < r->n; i++) {
        const number *e = evaluation(r, i);
        if (!e[2 + m].measured) continue;
        x[k] = e[0].value, seconds[k] = e[1].value, values[k] = e[2 + m].value;
        k++;
    }
    return RWS_OK;
}

/* Gives the run its histories, once all its evaluations are read. */
static rws_status end_run(reader *r)
{
    if (!r->run.length) return RWS_OK;
    rws_result   *run = &r->results->runs[r->results->n - 1];
    const number *last = evaluation(r, r->n - 1);
    rws_history  *series = rws__results_zeroed(r->results, ((size_t)n_metrics(r) + 1) * sizeof *series);
    if (!series) return no_memory(r);
    run->iteration = (uint64_t)last[0].value;
    run->seconds = isnan(last[1].value) ? 0 : last[1].value;
    run->histories = series;
    for (int m = 0; m < n_metrics(r); m++) RWS_TRY(add_history(r, series, &run->n_histories, m));
    qsort(series, (size_t)run->n_histories, sizeof *series, by_metric);
    return RWS_OK;
}

/* Begins a run with the name and the keys of the row. */
static rws_status begin_run(reader *r)
{
    RWS_TRY(end_run(r));
    rws_result     *run = rws__results_add(r->results);
    rws_result_key *keys = rws__results_zeroed(r->results, (size_t)(r->at_iteration - r->first_key + 1) * sizeof *keys);
    if (!run || !keys) return no_memory(r);
    r->n = 0;
    r->run = r->row[0];
    run->name = text_of(r, &r->run);
    run->store = rws__results_text(r->results, r->cells.name);
    if (r->first_key > 1) {
        run->version = text_of(r, &r->row[1]);
        run->failure = text_of(r, &r->row[2]);
    }
    run->keys = keys;
    for (int i = r->first_key; i < r->at_iteration; i++)
        if (r->row[i].length) keys[run->n_keys++] = (rws_result_key){r->names[i], text_of(r, &r->row[i])};
    if (r->results->memory->starved) return no_memory(r);
    rws__result_count_iterations(run);
    return RWS_OK;
}

/* ---- rows */

/* Reads the cells of a line. */
static rws_status read_row(reader *r)
{
    int n = 0;
    r->line = r->cells.line;
    for (bool last = false; !last; last = r->row[n++].last) {
        if (n == r->n_columns)
            return rws__refuse(r->cells.err, r->cells.name, r->line, "it has more than the %d columns of the heading.",
                               n);
        RWS_TRY(rws__cells_read(&r->cells, n + 1, &r->row[n]));
    }
    if (n < r->n_columns)
        return rws__refuse(r->cells.err, r->cells.name, r->line, "it has %d column%s, and the heading has %d.", n,
                           n == 1 ? "" : "s", r->n_columns);
    if (r->row[0].length == 0) return rws__refuse(r->cells.err, r->cells.name, r->line, "it has no name of a run.");
    return RWS_OK;
}

/* The number in a column. */
static rws_status read_number(const reader *r, int column, number *out)
{
    const rws_cell *c = &r->row[column];
    char           *end = (char *)c->text;
    *out = (number){c->length ? g_ascii_strtod(c->text, &end) : NAN, c->length > 0};
    if (end == c->text + c->length) return RWS_OK;
    return rws__refuse(r->cells.err, r->cells.name, r->line, "it has \"%s\" in column \"%s\", which is not a number.",
                       rws__quote_prefix(c->text, c->length, RWS_QUOTED_SHORT).text,
                       rws__quote_short(r->names[column]).text);
}

/* Makes space for one more evaluation. */
static bool make_room(reader *r)
{
    if (r->n < r->capacity) return true;
    const size_t capacity = 2 * r->capacity + 64, width = (size_t)(r->n_columns - r->at_iteration);
    number      *more = realloc(r->numbers, capacity * width * sizeof *more);
    if (!more) return false;
    r->numbers = more;
    r->capacity = capacity;
    return true;
}

/* Whether the row continues with the run of the row before. */
static bool goes_on(const reader *r, double iteration)
{
    const rws_cell *name = &r->row[0];
    return name->length == r->run.length && memcmp(name->text, r->run.text, name->length) == 0 &&
           iteration > evaluation(r, r->n - 1)[0].value;
}

static rws_status take_row(reader *r)
{
    number first;
    RWS_TRY(read_number(r, r->at_iteration, &first));
    const double iteration = first.value;
    if (!(iteration >= 0 && iteration < 0x1p53 && iteration == rint(iteration)))
        return rws__refuse(r->cells.err, r->cells.name, r->line, "its iteration is not a whole number.");
    if (!goes_on(r, iteration)) RWS_TRY(begin_run(r));
    if (!make_room(r)) return no_memory(r);
    number *e = evaluation(r, r->n++);
    for (int i = r->at_iteration; i < r->n_columns; i++) RWS_TRY(read_number(r, i, &e[i - r->at_iteration]));
    return RWS_OK;
}

static rws_status read_rows(reader *r)
{
    if (rws__cells_find_line(&r->cells)) RWS_TRY(read_heading(r));
    if (!r->n_columns) return rws__refuse(r->cells.err, r->cells.name, 0, "is empty.");
    while (rws__cells_find_line(&r->cells)) {
        RWS_TRY(read_row(r));
        RWS_TRY(take_row(r));
    }
    return end_run(r);
}

rws_status rws__exported_read(rws_results *results, const char *path, rws_error *err)
{
    reader   r = {.results = results};
    uint8_t *bytes;
    size_t   size;
    RWS_TRY(rws__file_read(path, MAX_BYTES, &bytes, &size, err));
    bytes[size] = '\0'; /* there is room for it; it ends the number that the file may end with */
    rws_status status = rws__cells_init(&r.cells, bytes, size, path, err);
    if (status == RWS_OK) status = read_rows(&r);
    free(r.numbers);
    free(bytes);
    return status;
}
