/* store.c - libFuzzer harness for stores, SQLite files that rws runs, plot and export open: whatever the bytes, they are
 * refused with a message that names the file, or every run, number and snapshot can be read. The file lies in the working
 * folder, since SQLite puts its journal beside it. */
#include "results.h"
#include "store/store.h"

#include <fcntl.h>

static const char path[] = "fuzz-store.sqlite";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error          err = {""};
    rws_store_progress progress;
    char              *name = NULL, *config = NULL;
    const int          fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) abort();
    rws__store_patience(10);
    results_check(path);
    if (rws__store_progress(path, "run", &progress, &err) != RWS_OK) bytes_check_refusal(&err, path);
    if (rws__store_identify(path, "run", &name, &config, &err) != RWS_OK) bytes_check_refusal(&err, path);
    else if (!name != !config) abort();
    free(name);
    free(config);
    unlink("fuzz-store.sqlite-journal");
    return 0;
}
