/* setup_table.c - tables as a model's setup declares them: settings become files, files become tables.
 *
 * This file is in this folder because it needs the setup (engine), the readers of text and arrays (data) and the reader
 * of safetensors (run). A failure is recorded in the setup, as for every declaration. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/table.h"
#include "engine/setup.h"
#include "data/safetensors.h"

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

/* ---- reading */

/* Whether the bytes begin like safetensors: the length of a header that fits, and its opening brace. Text never does.
 * */
static bool is_safetensors(const uint8_t *bytes, size_t size, const char *path)
{
    static const char ending[] = ".safetensors";
    const size_t      length = strlen(path);
    uint64_t          header;
    if (length > strlen(ending) && strcmp(path + length - strlen(ending), ending) == 0) return true;
    if (size < sizeof header + 2) return false;
    memcpy(&header, bytes, sizeof header);
    return header <= size - sizeof header && bytes[sizeof header] == '{';
}

static rws_status choose_tensor(const rws_safetensors *st, const char *path, const char *name,
                                const rws_tensor_in **out, rws_error *err)
{
    const size_t n = rws__safetensors_count(st);
    if (!name && n != 1)
        return rws__refuse(err, path, 0, "has %zu tensors, and the model does not say which it wants.", n);
    *out = name ? rws__safetensors_find(st, name) : rws__safetensors_at(st, 0);
    if (name && !*out) return rws__refuse(err, path, 0, "has no tensor \"%s\".", rws__quote_short(name).text);
    return RWS_OK;
}

static rws_status read_tensor(const uint8_t *bytes, size_t size, const char *path, const rws_table_options *o,
                              rws_sheet *out, rws_error *err)
{
    static const rws_element elements[] = {
        [RWS_DTYPE_F32] = {'f', 4}, [RWS_DTYPE_F64] = {'f', 8}, [RWS_DTYPE_I32] = {'i', 4},
        [RWS_DTYPE_I64] = {'i', 8}, [RWS_DTYPE_U64] = {'u', 8}, [RWS_DTYPE_U8] = {'u', 1},
    };
    _Static_assert(sizeof elements / sizeof *elements == RWS_DTYPE_COUNT, "an element for every dtype");
    rws_safetensors     *st;
    const rws_tensor_in *t = NULL;
    RWS_TRY(rws__safetensors_parse(bytes ? (const void *)bytes : "", size, path, &st, err));
    rws_status status = choose_tensor(st, path, o->tensor, &t, err);
    if (status == RWS_OK && (t->n_dims < 1 || t->n_dims > 2))
        status = rws__refuse(err, path, 0, "has a tensor \"%s\" of %d dimensions; tensors of 1 or 2 are read.",
                             rws__quote_short(t->name).text, t->n_dims);
    if (status == RWS_OK)
        status = rws__sheet_from_array(t->data, elements[t->dtype], t->shape[0], t->n_dims == 2 ? t->shape[1] : 1, path,
                                       o->id, out, err);
    rws__safetensors_close(st);
    return status;
}

static rws_status read_file(const char *path, const rws_table_options *o, rws_sheet *out, rws_error *err)
{
    const uint8_t *bytes;
    size_t         size;
    RWS_TRY(rws__file_map(path, &bytes, &size, err));
    rws_status status;
    if (rws__npy_is(bytes, size)) status = rws__npy_parse(bytes, size, path, o->id, out, err);
    else if (is_safetensors(bytes, size, path)) status = read_tensor(bytes, size, path, o, out, err);
    else status = rws__csv_parse(bytes, size, path, o->header, o->skip_missing, o->id, out, err);
    rws__file_unmap(bytes, size);
    return status;
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
        if (given[split]) status = read_file(given[split], o, &sheet[split], err);
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
