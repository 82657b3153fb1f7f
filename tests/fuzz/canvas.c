/* canvas.c - libFuzzer harness for the reader: whatever the bytes, a file is refused with a message, or every canvas
 * in it can be read. The checksums are corrected first, because otherwise every file would be refused. Build with
 * -fsanitize=fuzzer,address,undefined. */
#include "models/corpora/canvas.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { AT_SIZE = 16, AT_TRAIN = 24, AT_CRC_TRAIN = 32, AT_CRC_TEST = 36, AT_CRC_HEADER = 40, HEADER = 48 };

/* The optimiser must not drop the reads. */
static volatile unsigned char sink;

static uint64_t get(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_crc(uint8_t *to, const uint8_t *from, size_t size)
{
    const uint32_t value = (uint32_t)crc32_z(0, from, size);
    memcpy(to, &value, sizeof value);
}

static void repair(uint8_t *bytes, size_t size)
{
    if (size < HEADER) return;
    const uint64_t side = get(bytes + AT_SIZE) % 4096, train = get(bytes + AT_TRAIN) * (side * side + 1);
    const size_t   split = train < size - HEADER ? train : size - HEADER;
    put_crc(bytes + AT_CRC_TRAIN, bytes + HEADER, split);
    put_crc(bytes + AT_CRC_TEST, bytes + HEADER + split, size - HEADER - split);
    put_crc(bytes + AT_CRC_HEADER, bytes, AT_CRC_HEADER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    repair(bytes, size);
    for (int split = RWS_TRAIN; split <= RWS_TEST; split++) {
        rws_error    err = {""};
        rws_canvases c;
        if (rws__canvases_parse(bytes, size, "fuzz", split, &c, &err) != RWS_OK) {
            const size_t length = strlen(err.text);
            if (length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"") || c.pixels) abort();
            continue;
        }
        for (int i = 0; i < c.n; i++) {
            if (c.counts[i] > c.max_digits) abort();
            for (int j = 0; j < c.size * c.size; j++)
                sink = c.pixels[(size_t)i * (size_t)(c.size * c.size) + (size_t)j];
        }
        rws__canvases_release(&c);
    }
    free(bytes);
    return 0;
}
