/* idx.c - libFuzzer harness for the reader: whatever the bytes, a file is refused with a message, or all its values can
 * be read and written again to a file that reads the same. Build with -fsanitize=fuzzer,address,undefined. */
#include "models/corpora/idx.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error err = {""};
    rws_idx   idx, again;
    if (rws__idx_parse(data, size, "fuzz", &idx, &err) != RWS_OK) {
        const size_t length = strlen(err.text);
        if (length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"") || idx.values) abort();
        return 0;
    }
    uint8_t *plain = malloc(RWS_MAX_IDX_HEADER + idx.n_values);
    if (!plain) abort();
    const size_t n_header = rws__idx_header(&idx, plain);
    memcpy(plain + n_header, idx.values, idx.n_values);
    if (rws__idx_parse(plain, n_header + idx.n_values, "plain", &again, &err) != RWS_OK) abort();
    if (again.n_values != idx.n_values || memcmp(again.values, idx.values, idx.n_values) != 0) abort();
    rws__idx_release(&again);
    rws__idx_release(&idx);
    free(plain);
    return 0;
}
