/* setup_table.c - tables as a model's setup declares them: settings become files, files become tables.
 *
 * This file is in this folder because it needs the setup (engine) and the tables (data). A failure is recorded in the setup, as for every declaration. */
#include "base/error.h"
#include "base/quote.h"
#include "data/table.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records a failure in the setup, unless there was one before. */
static void record(rws_setup *s, rws_status status, const rws_error *err)
{
    if (s->status != RWS_OK) return;
    s->status = status;
    s->error = *err;
}

static const char *model_of(const rws_setup *s)
{
    return s->model ? s->model : "of no name";
}

/* ---- declaring */

static rws_status read_table(rws_setup *s, const char *setting, const rws_table_options *o, rws_table **out,
                             rws_error *err)
{
    const char *const path[2] = {rws_setup_path(s, setting), o->test ? rws_setup_path(s, o->test) : ""};
    const char *const given[2] = {path[RWS_TRAIN], *path[RWS_TEST] ? path[RWS_TEST] : NULL};
    rws_sheet         sheet[2] = {{0}, {0}};
    if (s->status != RWS_OK) return rws_fail(err, s->status, "%s", s->error.text); /* there is no such setting */
    if (!*path[RWS_TRAIN])
        return rws_fail(err, RWS_BAD_INPUT, "Model %s needs a file to learn from: give `%s=FILE`.", model_of(s),
                        setting);
    rws_status status = RWS_OK;
    for (int split = 0; split < 2 && status == RWS_OK; split++)
        if (given[split]) status = rws__sheet_read(given[split], o, &sheet[split], err);
    if (status != RWS_OK) {
        for (int split = 0; split < 2; split++) rws__sheet_release(&sheet[split]);
        return status;
    }
    return rws__table_new(sheet, given, o, s->seed, out, err);
}

static void free_table(void *table)
{
    rws__table_free(table);
}

/* Has the setup keep the table, and returns it. After a failure, which is recorded, returns an empty table. */
static rws_table *kept(rws_setup *s, rws_table *t, rws_status status, rws_error *err)
{
    static rws_table nothing; /* what a failure returns; it stays empty, and the run never starts */
    if (status == RWS_OK && !rws__setup_own(s, t, free_table)) {
        rws__table_free(t);
        status = rws_no_memory(err, "a table");
    }
    if (status == RWS_OK) return t;
    record(s, status, err);
    return &nothing;
}

rws_table *rws_setup_table(rws_setup *s, const char *setting, const rws_table_options *options)
{
    static const rws_table_options defaults;
    rws_table                     *t = NULL;
    rws_error                      err;
    const rws_status status = read_table(s, setting ? setting : "data", options ? options : &defaults, &t, &err);
    return kept(s, t, status, &err);
}

rws_table *rws_setup_table_numbers(rws_setup *s, const char *name, const float *values, size_t rows, int columns,
                                   const float *test_values, size_t n_test, const rws_table_options *options)
{
    static const rws_table_options defaults;
    const char *const              path[2] = {name, n_test ? name : NULL};
    const float *const             from[2] = {values, test_values};
    const size_t                   n[2] = {rows, n_test};
    rws_sheet                      sheet[2] = {{0}, {0}};
    rws_table                     *t = NULL;
    rws_error                      err;
    rws_status                     status = RWS_OK;
    for (int split = 0; split < 2 && status == RWS_OK; split++)
        if (n[split] || split == RWS_TRAIN)
            status = rws__sheet_from_array(from[split], (rws_element){'f', sizeof(float)}, n[split],
                                           columns > 0 ? (size_t)columns : 0, name, NULL, &sheet[split], &err);
    if (status == RWS_OK) status = rws__table_new(sheet, path, options ? options : &defaults, s->seed, &t, &err);
    else
        for (int split = 0; split < 2; split++) rws__sheet_release(&sheet[split]);
    return kept(s, t, status, &err);
}

/* Whether a field of this name can be made of the table. */
static bool can_declare(rws_setup *s, const rws_table *t, const char *name)
{
    rws_error err;
    if (s->status != RWS_OK) return false;
    if (rws_table_columns(t)) {
        const int n = rws_table_rows(t, RWS_TEST);
        if (n > s->n_test) s->n_test = n;
        if (!s->table) s->table = t;
        return true;
    }
    record(s,
           rws_fail(&err, RWS_BAD_INPUT, "Model %s declares the field \"%s\" without a table.", model_of(s),
                    name ? name : "NULL"),
           &err);
    return false;
}

static int declare(rws_setup *s, rws_table *t, const char *name, const char *columns,
                   void (*field)(rws_setup *s, const char *name, int dim))
{
    rws_error err;
    int       dim = 1;
    if (!can_declare(s, t, name)) return 1;
    if (s->n_fields < RWS_FIELDS) {
        const rws_status status = rws__table_add_field(t, s->n_fields, columns, field == rws_setup_label, &dim, &err);
        if (status != RWS_OK) {
            record(s, status, &err);
            return 1;
        }
    }
    field(s, name, dim); /* one field too many fails there */
    return dim;
}

rws_datum_name rws__program_datum(const rws_program *p, rws_split split, uint64_t first, int i, rws_random random)
{
    rws_datum_name out;
    const char    *path = NULL;
    const int      row = rws__table_number(p->setup.table, split, first, i, &random, &path);
    if (row < 0 || !path) snprintf(out.text, sizeof out.text, "datum %llu", (unsigned long long)first + (unsigned)i);
    else snprintf(out.text, sizeof out.text, "row %d of \"%s\"", row, rws__quote_short(path).text);
    return out;
}

int rws_setup_table_field(rws_setup *s, rws_table *t, const char *name, const char *columns)
{
    return declare(s, t, name, columns, rws_setup_field);
}

int rws_setup_table_label(rws_setup *s, rws_table *t, const char *name, const char *columns)
{
    return declare(s, t, name, columns, rws_setup_label);
}

int rws_setup_table_series(rws_setup *s, rws_table *t, const char *name, const char *columns, int most)
{
    rws_error err;
    int       dim = 1;
    if (!can_declare(s, t, name)) return 1;
    if (s->n_fields < RWS_FIELDS) {
        const rws_status status = rws__table_add_series(t, s->n_fields, columns, &most, &dim, &err);
        if (status != RWS_OK) {
            record(s, status, &err);
            return 1;
        }
    }
    rws_setup_series(s, name, dim, most);
    return dim;
}

void rws_setup_table_length(rws_setup *s, rws_table *t, const char *name)
{
    if (!can_declare(s, t, name)) return;
    if (s->n_fields < RWS_FIELDS) rws__table_add_length(t, s->n_fields);
    rws_setup_field(s, name, 1);
}

int rws_setup_table_row_series(rws_setup *s, rws_table *t, const char *name, const char *columns, int dim)
{
    rws_error err;
    int       n = 1 + dim;
    if (!can_declare(s, t, name)) return 1;
    rws_status status = RWS_OK;
    if (s->n_fields < RWS_FIELDS) status = rws__table_add_field(t, s->n_fields, columns, false, &n, &err);
    if (status == RWS_OK && (dim < 1 || n < 1 + dim || (n - 1) % dim))
        status = rws_fail(&err, RWS_BAD_INPUT,
                          "Model %s: series \"%s\" has %d columns, which are not a length and items of %d numbers.",
                          model_of(s), name ? name : "NULL", n, dim);
    if (status != RWS_OK) {
        record(s, status, &err);
        return 1;
    }
    rws_setup_series(s, name, dim, (n - 1) / dim);
    return (n - 1) / dim;
}
