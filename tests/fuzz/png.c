/* png.c - libFuzzer harness for pictures: whatever the bytes, they are refused with a message that names the file, or every
 * grey value can be read. The checksums of the chunks are corrected first, because otherwise every file would be refused. */
#include "bytes.h"
#include "figure/png.h"

#include <zlib.h>

/* The optimiser must not drop the reads. */
static volatile unsigned char sink;

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* A chunk is its length, four letters, so many bytes, and a checksum of letters and bytes. */
static void repair(uint8_t *bytes, size_t size)
{
    for (size_t at = 8; at + 12 <= size;) {
        const uint32_t length = big_endian(bytes + at);
        if (length > size - at - 12) return;
        const uint32_t crc = (uint32_t)crc32_z(0, bytes + at + 4, length + 4);
        for (int i = 0; i < 4; i++) bytes[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += length + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error err = {""};
    rws_grey  picture;
    uint8_t  *bytes = malloc(size ? size : 1);
    if (!bytes) abort();
    if (size) memcpy(bytes, data, size);
    repair(bytes, size);
    const char *path = bytes_file(bytes, size);
    free(bytes);
    if (rws__png_read(path, &picture, &err) != RWS_OK) {
        bytes_check_refusal(&err, path);
        if (picture.grey) abort();
        return 0;
    }
    if (picture.wide < 1 || picture.high < 1 || picture.wide > RWS_MAX_PNG_SIDE || picture.high > RWS_MAX_PNG_SIDE)
        abort();
    for (size_t i = 0; i < (size_t)picture.wide * (size_t)picture.high; i++) sink = picture.grey[i];
    rws__png_release(&picture);
    return 0;
}
