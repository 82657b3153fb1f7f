/* safetensors.c - libFuzzer harness for the reader: whatever the bytes, a file is refused with a message, or every
 * tensor in it can be read to its last byte. Build with -fsanitize=fuzzer,address,undefined. */
#include "data/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* The optimiser must not drop the reads. */
static volatile unsigned char sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error        err = {""};
    rws_safetensors *st;
    if (rws__safetensors_parse(data, size, "fuzz", &st, &err) != RWS_OK) {
        const size_t length = strlen(err.text);
        if (length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"")) abort();
        return 0;
    }
    size_t n_bytes_in_all = 0;
    for (size_t i = 0; i < rws__safetensors_count(st); i++) {
        const rws_tensor_in *t = rws__safetensors_at(st, i);
        const size_t         n_bytes = t->n_elements * rws__dtype_size(t->dtype);
        if ((uintptr_t)t->data % rws__dtype_size(t->dtype) != 0) abort();
        if (rws__safetensors_find(st, t->name) != t) abort();
        const rws_tensor_in *same = NULL;
        if (rws__safetensors_expect(st, t->name, t->dtype, t->n_dims, t->shape, &same, &err) != RWS_OK) abort();
        for (size_t b = 0; b < n_bytes; b++) sink = ((const unsigned char *)t->data)[b];
        n_bytes_in_all += n_bytes;
    }
    if (n_bytes_in_all > size) abort();
    const char *format = rws__safetensors_metadata(st, "format");
    if (format) sink = (unsigned char)strlen(format);
    rws__safetensors_close(st);
    return 0;
}
