/* exported.c - libFuzzer harness for runs that `rws export` wrote as CSV: whatever the bytes, they are refused with a message
 * that names the file, or every run and number can be read. The file lies in the working folder, since its ending says what
 * it is. */
#include "results.h"

#include <fcntl.h>
#include <unistd.h>

static const char path[] = "fuzz-exported.csv";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) abort();
    results_check(path);
    return 0;
}
