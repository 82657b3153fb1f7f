/* bytes.h - what harnesses share: the bytes as a file that a reader can open, and the check of a refusal. */
#ifndef RWS_FUZZ_BYTES_H
#define RWS_FUZZ_BYTES_H

#include "rws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the bytes to a file in memory, the same one every time. Returns its path. */
static inline const char *bytes_file(const uint8_t *data, size_t size)
{
    static int  fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    return path;
}

/* A refusal is one message that names the thing. */
static inline void bytes_check_refusal(const rws_error *err, const char *name)
{
    const size_t length = strlen(err->text);
    if (length == 0 || !strchr(".?", err->text[length - 1]) || (name && !strstr(err->text, name))) {
        fprintf(stderr, "message: \"%s\"\n", err->text);
        abort();
    }
    for (size_t i = 0; i < length; i++)
        if (err->text[i] == '\n' || err->text[i] == '\033') abort();
}

#endif
