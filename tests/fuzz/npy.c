/* npy.c - libFuzzer harness for the reader of NPY arrays: whatever the bytes, a file is refused with a message, or has as
 * many numbers as its shape says, each finite or in a column with a flaw. Build with
 * -fsanitize=fuzzer,address,undefined. */
#include "data/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error err = {""};
    rws_sheet s;
    if (rws__npy_parse(data, size, "fuzz", size % 2 ? "1" : NULL, &s, &err) != RWS_OK) {
        const size_t length = strlen(err.text);
        if (length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"") || s.values || s.ids) abort();
        return 0;
    }
    if (s.n_rows < 1 || s.n_columns < 1 || (size_t)s.n_rows * (size_t)s.n_columns > size) abort();
    for (int k = 0; k < s.n_columns; k++)
        for (int i = 0; i < s.n_rows; i++)
            if (!isfinite(s.values[(size_t)i * (size_t)s.n_columns + (size_t)k]) &&
                rws__sheet_check_column(&s, k, "fuzz", &err) == RWS_OK)
                abort();
    rws__sheet_release(&s);
    return 0;
}
