#include "rws/questions.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/sheet.h"
#include "figure/png.h"
#include "rws/datum.h"
#include "serve/body.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_BYTES = 1 << 30, MAX_FIELDS = 256 };

struct rws_named_datum {
    char     *name;
    rws_datum datum;
    rws_grey  picture;
    rws_body  body;
};

/* ---- the list */

void rws__questions_release(rws_question_list *l)
{
    for (int i = 0; i < l->n; i++) {
        rws_named_datum *d = l->data[i];
        free(d->name);
        rws__datum_release(&d->datum);
        rws__png_release(&d->picture);
        rws__body_release(&d->body);
        free(d);
    }
    free(l->list);
    free(l->data);
    *l = (rws_question_list){0};
}

const char *rws__questions_name(const rws_question_list *l, int i)
{
    return l->data[i]->name;
}

static rws_status grow(rws_question_list *l, rws_error *err)
{
    const int     capacity = 2 * l->capacity + 16;
    rws_question *list = realloc(l->list, (size_t)capacity * sizeof *list);
    if (list) l->list = list;
    rws_named_datum **data = realloc(l->data, (size_t)capacity * sizeof *data);
    if (data) l->data = data;
    if (!list || !data) return rws_no_memory(err, "questions");
    l->capacity = capacity;
    return RWS_OK;
}

/* Adds an empty question with this name. */
static rws_status add(rws_question_list *l, const char *name, rws_error *err)
{
    if (l->n == INT_MAX / 4) return rws_fail(err, RWS_BAD_INPUT, "There are too many data.");
    if (l->n == l->capacity) RWS_TRY(grow(l, err));
    rws_named_datum *d = calloc(1, sizeof *d);
    if (!d || !(d->name = strdup(name))) {
        free(d);
        return rws_no_memory(err, "questions");
    }
    l->list[l->n] = (rws_question){0};
    l->data[l->n++] = d;
    return RWS_OK;
}

rws_status rws__questions_add(rws_question_list *l, const rws_posterior *p, const char *typed, rws_error *err)
{
    const rws_model *m = rws_posterior_model(p);
    RWS_TRY(add(l, typed, err));
    rws_question    *q = &l->list[l->n - 1];
    rws_named_datum *d = l->data[l->n - 1];
    if (m->see && rws__png_is(typed)) {
        RWS_TRY(rws__png_read(d->name, &d->picture, err));
        q->picture = &d->picture;
    } else if (m->read) q->text = d->name;
    else {
        RWS_TRY(rws__datum_read(p, typed, false, &d->datum, err));
        q->fields = d->datum.fields;
    }
    return RWS_OK;
}

rws_status rws__questions_add_test(rws_question_list *l, int number, rws_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "test datum %d", number);
    RWS_TRY(add(l, name, err));
    l->list[l->n - 1].test = number;
    return RWS_OK;
}

/* ---- lines */

static rws_status add_json(rws_question_list *l, const rws_posterior *p, const char *line, const char *name,
                           rws_error *err)
{
    static const rws_body_limits limits = {RWS_MAX_PARTICLES, 1, 1e18, 1};
    rws_field                    fields[MAX_FIELDS];
    int                          n = 0;
    while (n < MAX_FIELDS && rws_posterior_field(p, n, &fields[n])) n++;
    RWS_TRY(add(l, name, err));
    rws_body *body = &l->data[l->n - 1]->body;
    RWS_TRY(rws__body_read_datum(line, strlen(line), fields, n, &limits, body, err));
    l->list[l->n - 1] = body->data[0].question;
    return RWS_OK;
}

/* Puts the place in front of a message. */
static rws_status refuse_line(rws_status status, const char *path, int line, rws_error *err)
{
    const rws_error said = *err;
    if (status != RWS_BAD_INPUT) return status;
    return rws_fail(err, status, "%s, line %d: %s", rws__quote_short(path).text, line, said.text);
}

static rws_status add_lines(rws_question_list *l, const rws_posterior *p, const char *path, bool json, rws_error *err)
{
    uint8_t   *bytes;
    size_t     size;
    rws_status status = RWS_OK;
    int        number = 0;
    char       name[32];
    RWS_TRY(rws__file_read(path, MAX_BYTES, &bytes, &size, err));
    bytes[size] = '\0'; /* the memory has one byte more */
    for (char *at = (char *)bytes, *end = at + size; at < end && status == RWS_OK;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        *stop = '\0';
        number++;
        if (strlen(at) < (size_t)(stop - at))
            status = rws_fail(err, RWS_BAD_INPUT, "The line has a zero byte; a datum is text without zero bytes.");
        at[strcspn(at, "\r")] = '\0';
        snprintf(name, sizeof name, "line %d", number);
        if (status == RWS_OK && at[strspn(at, " \t")])
            status = json ? add_json(l, p, at, name, err) : rws__questions_add(l, p, at, err);
        status = refuse_line(status, path, number, err);
        at = stop + 1;
    }
    free(bytes);
    return status;
}

/* ---- tables */

/* The column of component k of a field by name: "x" of a field of one number, else "x[0]", "x.0" or "x_0"; -1: none. */
static int named_column(const rws_sheet *s, const rws_field *f, int k)
{
    static const char *const forms[] = {"%s[%d]", "%s.%d", "%s_%d"};
    char                     name[300];
    for (int i = 0; s->names && i < s->n_columns; i++) {
        if (f->dim == 1 && strcmp(s->names[i], f->name) == 0) return i;
        for (int form = 0; form < 3; form++) {
            snprintf(name, sizeof name, forms[form], f->name, k);
            if (f->dim > 1 && strcmp(s->names[i], name) == 0) return i;
        }
    }
    return -1;
}

/* The columns of all numbers of a datum, which the caller frees: by name or, if names do not tell and there are as many columns
 * as numbers, in their order. */
static rws_status find_columns(const rws_posterior *p, const rws_sheet *s, const char *path, int **out, int *total,
                               rws_error *err)
{
    rws_field f;
    bool      named = true;
    int       n = 0;
    *total = 0;
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        if (f.most && !f.label)
            return rws_fail(
                err, RWS_BAD_INPUT,
                "%s: the field \"%s\" is a series, which a table has no place for; write data as JSON lines "
                "(.jsonl), such as {\"%s\": [1, 2]}.",
                rws__quote_short(path).text, f.name, f.name);
        *total += f.label ? 0 : f.dim;
    }
    if (!(*out = calloc((size_t)*total + 1, sizeof **out))) return rws_no_memory(err, "columns");
    for (int i = 0; rws_posterior_field(p, i, &f); i++)
        for (int k = 0; k < f.dim && !f.label; k++, n++) named &= ((*out)[n] = named_column(s, &f, k)) >= 0;
    if (!named && s->n_columns != *total)
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s has %d columns, whose names are not those of the model's fields; a datum of model %s is %d "
                        "numbers. `rws infer RUN \"1 2\"` names the fields.",
                        rws__quote_short(path).text, s->n_columns, rws_posterior_model(p)->name, *total);
    for (int i = 0; i < *total && !named; i++) (*out)[i] = i;
    return RWS_OK;
}

static rws_status add_row(rws_question_list *l, const rws_posterior *p, const rws_sheet *s, int row, const int *columns,
                          rws_error *err)
{
    char      name[32];
    rws_field f;
    int       n = 0;
    snprintf(name, sizeof name, "row %d", row);
    RWS_TRY(add(l, name, err));
    rws_datum *d = &l->data[l->n - 1]->datum;
    RWS_TRY(rws__datum_make(p, false, d, err));
    for (int i = 0; rws_posterior_field(p, i, &f); i++)
        for (int k = 0; k < f.dim && !f.label; k++, n++)
            d->numbers[n] = s->values[(size_t)row * (size_t)s->n_columns + (size_t)columns[n]];
    l->list[l->n - 1].fields = d->fields;
    return RWS_OK;
}

static rws_status add_sheet(rws_question_list *l, const rws_posterior *p, const rws_sheet *s, const char *path,
                            rws_error *err)
{
    int       *columns = NULL, total;
    rws_status status = find_columns(p, s, path, &columns, &total, err);
    for (int i = 0; i < total && status == RWS_OK; i++) status = rws__sheet_check_column(s, columns[i], path, err);
    for (int r = 0; r < s->n_rows && status == RWS_OK; r++) status = add_row(l, p, s, r, columns, err);
    free(columns);
    return status;
}

static rws_status add_table(rws_question_list *l, const rws_posterior *p, const char *path, rws_error *err)
{
    rws_sheet  s = {0};
    rws_status status = rws__sheet_read(path, &(rws_table_options){0}, &s, err);
    if (status == RWS_OK) status = add_sheet(l, p, &s, path, err);
    rws__sheet_release(&s);
    return status;
}

/* ---- pictures */

static int is_picture(const struct dirent *entry)
{
    return rws__png_is(entry->d_name);
}

static rws_status add_folder(rws_question_list *l, const rws_posterior *p, const char *path, rws_error *err)
{
    struct dirent **entries;
    const int       n = scandir(path, &entries, is_picture, alphasort);
    rws_status      status = RWS_OK;
    if (n <= 0 || !rws_posterior_model(p)->see)
        status =
            rws_fail(err, RWS_BAD_INPUT, "%s is a folder%s.", rws__quote_short(path).text,
                     rws_posterior_model(p)->see ? " without PNGs" : ", and the model cannot be asked about pictures");
    for (int i = 0; i < n; i++) {
        char *file = rws__file_join(path, entries[i]->d_name);
        if (!file) status = rws_no_memory(err, "questions");
        if (status == RWS_OK) status = rws__questions_add(l, p, file, err);
        free(file);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return status;
}

/* ---- files */

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

rws_status rws__questions_add_file(rws_question_list *l, const rws_posterior *p, const char *path, rws_error *err)
{
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return add_folder(l, p, path, err);
    if (ends_with(path, ".jsonl") || ends_with(path, ".ndjson")) return add_lines(l, p, path, true, err);
    if (ends_with(path, ".txt") || rws_posterior_model(p)->read) return add_lines(l, p, path, false, err);
    return add_table(l, p, path, err);
}

/* ---- the fingerprint */

static uint64_t add_bytes(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *at = bytes, *end = at + n; at < end; at++) h = (h ^ *at) * UINT64_C(1099511628211);
    return h;
}

static uint64_t add_question(uint64_t h, const rws_question *q, const rws_posterior *p)
{
    rws_field f;
    h = add_bytes(h, &q->test, sizeof q->test);
    for (int i = 0; q->fields && rws_posterior_field(p, i, &f); i++)
        if (q->fields[i]) h = add_bytes(h, q->fields[i], (size_t)f.dim * sizeof(float));
    if (q->text) h = add_bytes(h, q->text, strlen(q->text) + 1);
    if (q->picture) h = add_bytes(h, q->picture->grey, (size_t)q->picture->wide * (size_t)q->picture->high);
    return h;
}

/* FNV-1a. */
uint64_t rws__questions_fingerprint(const rws_question_list *l, const rws_posterior *p)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (int i = 0; i < l->n; i++) h = add_question(h, &l->list[i], p);
    return h;
}
