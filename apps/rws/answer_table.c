#include "rws/answer_table.h"

#include "ask/frame.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "data/json.h"

#include <glib.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 30, MOST_DIM = 16 /* numbers of a choice that has columns */ };

bool rws__answer_table_is(const char *path)
{
    return g_str_has_suffix(path, ".csv") || g_str_has_suffix(path, ".jsonl");
}

/* ---- rows as JSON */

/* A missing cell has no key, -inf is null. */
static void write_row(const rws_frame *f, int row, rws_buffer *b)
{
    rws_frame_column c;
    rws__buffer_open(b, '{');
    for (int i = 0; rws_frame_column_at(f, i, &c); i++) {
        if (c.texts && c.texts[row]) rws__buffer_key_text(b, c.name, c.texts[row]);
        if (c.numbers && !isnan(c.numbers[row])) rws__buffer_key_exact(b, c.name, c.numbers[row]);
    }
    rws__buffer_close(b, '}');
    rws__buffer_add(b, "\n", 1);
}

static rws_status read_row(rws_frame *f, const char *line, size_t n, rws_error *err)
{
    json_error_t why;
    bool         starved, good = true;
    json_t      *row = rws__json_load(line, n, 0, &why, &starved), *value;
    const char  *key;
    if (starved) return rws_no_memory(err, "a table of answers");
    if (!json_is_object(row)) {
        json_decref(row);
        return rws_fail(err, RWS_BAD_INPUT, "A table that was interrupted has a line that is no row: \"%.60s\".", line);
    }
    good = rws__frame_begin(f);
    json_object_foreach(row, key, value)
    {
        if (json_is_string(value)) good = good && rws__frame_text(f, key, json_string_value(value));
        else good = good && rws__frame_number(f, key, json_is_number(value) ? json_number_value(value) : -INFINITY);
    }
    json_decref(row);
    return good ? RWS_OK : rws_no_memory(err, "a table of answers");
}

/* ---- the partial file */

static int count_lines(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '\n')); text++) n++;
    return n;
}

/* Reads the rows that are kept. *length is where they end. */
static rws_status read_partial(rws_answer_table *t, const char *text, const char *about, int block, size_t *length,
                               rws_error *err)
{
    const size_t n_about = strlen(about);
    const int    n = count_lines(text), rows = n > 0 ? (n - 1) / block * block : 0;
    *length = 0;
    if (n == 0) return RWS_OK;
    if (strncmp(text, about, n_about) != 0 || text[n_about] != '\n')
        return rws_fail(err, RWS_BAD_INPUT,
                        "%s has answers to other questions, or of another state of the run: remove it, or name another "
                        "--table.",
                        rws__quote_short(t->partial).text);
    const char *at = text + n_about + 1;
    for (int i = 0; i < rows; i++) {
        const char *end = strchr(at, '\n');
        RWS_TRY(read_row(t->frame, at, (size_t)(end - at), err));
        at = end + 1;
    }
    *length = (size_t)(at - text);
    t->n_done = rows;
    return RWS_OK;
}

static rws_status append(rws_answer_table *t, const char *bytes, size_t n, rws_error *err)
{
    for (ssize_t done; n > 0; bytes += done, n -= (size_t)done) {
        done = write(t->file, bytes, n);
        if (done < 0 && errno == EINTR) done = 0;
        if (done < 0)
            return rws_fail(err, RWS_BAD_INPUT, "%s cannot be written: %s.", rws__quote_short(t->partial).text,
                            strerror(errno));
    }
    return RWS_OK;
}

static rws_status open_partial(rws_answer_table *t, const char *about, int block, rws_error *err)
{
    uint8_t   *bytes = NULL;
    size_t     size = 0, length = 0;
    rws_status status = RWS_OK;
    if (rws__file_exists(t->partial)) RWS_TRY(rws__file_read(t->partial, MAX_BYTES, &bytes, &size, err));
    if (bytes) {
        bytes[size] = '\0';
        status = read_partial(t, (const char *)bytes, about, block, &length, err);
    }
    free(bytes);
    RWS_TRY(status);
    t->file = open(t->partial, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (t->file < 0 || ftruncate(t->file, (off_t)length) != 0 || lseek(t->file, 0, SEEK_END) < 0)
        return rws_fail(err, RWS_BAD_INPUT, "%s cannot be written: %s.", rws__quote_short(t->partial).text,
                        strerror(errno));
    if (length > 0) return RWS_OK;
    RWS_TRY(append(t, about, strlen(about), err));
    return append(t, "\n", 1, err);
}

rws_status rws__answer_table_open(rws_answer_table *t, const char *path, const char *about, int block, rws_error *err)
{
    *t = (rws_answer_table){.path = path, .file = -1};
    if (asprintf(&t->partial, "%s.partial", path) < 0) {
        t->partial = NULL;
        return rws_no_memory(err, "a table of answers");
    }
    RWS_TRY(rws_frame_new(&t->frame, err));
    return open_partial(t, about, block, err);
}

rws_status rws__answer_table_commit(rws_answer_table *t, rws_error *err)
{
    rws_buffer b = {0};
    write_row(t->frame, rws_frame_rows(t->frame) - 1, &b);
    const rws_status status = b.starved ? rws_no_memory(err, "a table of answers") : append(t, b.bytes, b.n, err);
    rws__buffer_release(&b);
    return status;
}

rws_status rws__answer_table_add(rws_answer_table *t, const char *name, const rws_answers *a, const char *message,
                                 rws_error *err)
{
    RWS_TRY(rws_frame_add(t->frame, a, message, MOST_DIM, err));
    if (!rws__frame_text(t->frame, "datum", name)) return rws_no_memory(err, "a table of answers");
    return rws__answer_table_commit(t, err);
}

/* ---- the file */

/* A cell in quotation marks, which are doubled inside, if it needs them. */
static void write_text(const char *text, rws_buffer *b)
{
    if (!text) return;
    if (!text[strcspn(text, ",\"\r\n#")]) {
        rws__buffer_add(b, text, strlen(text));
        return;
    }
    rws__buffer_add(b, "\"", 1);
    for (; *text; text++) rws__buffer_add(b, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    rws__buffer_add(b, "\"", 1);
}

/* The shortest digits that are read back as the same number. */
static void write_number(double x, rws_buffer *b)
{
    char text[40];
    if (isnan(x)) return;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    rws__buffer_add(b, text, strlen(text));
}

/* The heading if row is -1. The datum comes first. */
static void write_line(const rws_frame *f, int row, rws_buffer *b)
{
    rws_frame_column c;
    bool             first = true;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; rws_frame_column_at(f, i, &c); i++) {
            if ((strcmp(c.name, "datum") == 0) != (pass == 0)) continue;
            if (!first) rws__buffer_add(b, ",", 1);
            first = false;
            if (row < 0) write_text(c.name, b);
            else if (c.texts) write_text(c.texts[row], b);
            else write_number(c.numbers[row], b);
        }
    rws__buffer_add(b, "\n", 1);
}

rws_status rws__answer_table_finish(rws_answer_table *t, rws_error *err)
{
    rws_buffer b = {0};
    const bool csv = g_str_has_suffix(t->path, ".csv");
    const int  n = rws_frame_rows(t->frame);
    for (int row = csv ? -1 : 0; row < n; row++)
        if (csv) write_line(t->frame, row, &b);
        else write_row(t->frame, row, &b);
    const rws_status status = b.starved ? rws_no_memory(err, "a table of answers")
                                        : rws__file_write(t->path, &(rws_piece){b.bytes, b.n}, 1, err);
    rws__buffer_release(&b);
    if (status == RWS_OK) unlink(t->partial);
    return status;
}

void rws__answer_table_close(rws_answer_table *t)
{
    if (t->frame && t->file >= 0) close(t->file);
    rws_frame_free(t->frame);
    free(t->partial);
    *t = (rws_answer_table){.file = -1};
}
