/* csv.c - libFuzzer harness for the reader of tables from text: whatever the bytes, a text is refused with a message, or
 * every cell is a finite number or NaN in a column with a flaw; a sheet without flaws, written as text, reads the same.
 * Build with -fsanitize=fuzzer,address,undefined. */
#include "data/sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const rws_error *err)
{
    const size_t length = strlen(err->text);
    if (length == 0 || err->text[length - 1] != '.' || !strstr(err->text, "\"fuzz\"")) abort();
}

/* Writes the numbers and reads them again. */
static void round_trip(const rws_sheet *s)
{
    char  *text;
    size_t length;
    FILE  *stream = open_memstream(&text, &length);
    if (!stream) abort();
    for (int i = 0; i < s->n_rows; i++)
        for (int k = 0; k < s->n_columns; k++)
            fprintf(stream, "%.9g%c", (double)s->values[(size_t)i * (size_t)s->n_columns + (size_t)k],
                    k + 1 < s->n_columns ? ',' : '\n');
    fclose(stream);
    rws_sheet again;
    if (rws__csv_parse((uint8_t *)text, length, "again", RWS_HEADER_NONE, false, NULL, &again, NULL) != RWS_OK) abort();
    if (again.n_rows != s->n_rows || again.n_columns != s->n_columns) abort();
    for (size_t i = 0; i < (size_t)s->n_rows * (size_t)s->n_columns; i++)
        if (again.values[i] != s->values[i]) abort();
    rws__sheet_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error        err = {""};
    rws_sheet        s;
    const rws_header header = size ? (rws_header)(data[size - 1] % 3) : RWS_HEADER_GUESSED;
    const bool       skip = size && data[size - 1] & 4;
    const char      *id = size && data[size - 1] & 8 ? "1" : NULL;
    if (rws__csv_parse(data, size, "fuzz", header, skip, id, &s, &err) != RWS_OK) {
        check_sentence(&err);
        if (s.values || s.names || s.flaws || s.ids || s.lines || s.numbers) abort();
        return 0;
    }
    if (s.n_rows < 1 || s.n_columns < 1 || (s.n_ids > 0) != (id != NULL) || s.n_ids > s.n_rows) abort();
    for (int i = 0, next = 0; id && i < s.n_rows; i++) { /* ids are numbered as they come */
        if (s.ids[i] < 0 || s.ids[i] > next || (i && s.lines[i] <= s.lines[i - 1])) abort();
        next += s.ids[i] == next;
    }
    bool fine = true;
    for (int k = 0; k < s.n_columns; k++) {
        const bool flaw = rws__sheet_check_column(&s, k, "fuzz", &err) != RWS_OK;
        fine &= !flaw;
        if (flaw) check_sentence(&err);
        if (s.names && strlen(s.names[k]) > size) abort();
        for (int i = 0; i < s.n_rows && !flaw; i++)
            if (!isfinite(s.values[(size_t)i * (size_t)s.n_columns + (size_t)k])) abort();
    }
    if (fine) round_trip(&s);
    rws__sheet_release(&s);
    return 0;
}
