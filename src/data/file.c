#include "data/file.h"

#include "base/error.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rws_status refuse(const char *verb, const char *path, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be %s: %s.", rws_quote(path).text, verb, strerror(errno));
}

/* ---- reading */

/* Until `size` bytes or the end of the file; -1 with errno. */
static ssize_t read_all(int fd, uint8_t *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = TEMP_FAILURE_RETRY(read(fd, out + done, size - done));
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* Opens a regular file; *fd is the caller's to close. */
static rws_status open_file(const char *path, int *fd, size_t *size, rws_error *err)
{
    struct stat is;
    *fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); /* a pipe would keep us waiting */
    if (*fd < 0) return refuse("read", path, err);
    rws_status status = RWS_OK;
    if (fstat(*fd, &is) != 0) status = refuse("read", path, err);
    else if (!S_ISREG(is.st_mode)) status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a file.", rws_quote(path).text);
    else *size = (size_t)is.st_size;
    if (status != RWS_OK) close(*fd);
    return status;
}

rws_status rws_file_read(const char *path, size_t most, uint8_t **bytes, size_t *size, rws_error *err)
{
    int    fd;
    size_t announced;
    *bytes = NULL;
    RWS_TRY(open_file(path, &fd, &announced, err));
    rws_status status = RWS_OK;
    if (announced > most)
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu bytes, and files of up to %zu are read.",
                          rws_quote(path).text, announced, most);
    else if (!(*bytes = malloc(announced + 1)))
        status = rws_fail(err, RWS_BAD_INPUT, "No memory is left for the %zu bytes of \"%s\".", announced,
                          rws_quote(path).text);
    else {
        const ssize_t got = read_all(fd, *bytes, announced);
        if (got < 0) status = refuse("read", path, err);
        *size = (size_t)got; /* fewer if somebody cut it meanwhile; its reader will see that */
    }
    close(fd);
    if (status != RWS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

rws_status rws_file_map(const char *path, const uint8_t **bytes, size_t *size, rws_error *err)
{
    int fd;
    *bytes = NULL;
    RWS_TRY(open_file(path, &fd, size, err));
    void            *map = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const rws_status status = map == MAP_FAILED ? refuse("read", path, err) : RWS_OK;
    close(fd);
    if (status == RWS_OK) *bytes = map;
    return status;
}

void rws_file_unmap(const uint8_t *bytes, size_t size)
{
    if (size) munmap((void *)bytes, size);
}

/* ---- writing */

/* All of it, through partial writes; false with errno. */
static bool write_all(int fd, const rws_piece *pieces, int n)
{
    for (int i = 0; i < n; i++) {
        const char *at = pieces[i].bytes;
        for (size_t left = pieces[i].size; left > 0;) {
            const ssize_t written = TEMP_FAILURE_RETRY(write(fd, at, left));
            if (written < 0) return false;
            at += written;
            left -= (size_t)written;
        }
    }
    return true;
}

/* The folder that holds path brought to disk, so that the name is; false with errno. */
static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char       *folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    RWS_CHECK(folder);
    const int fd = TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    free(folder);
    if (fd < 0) return false;
    /* Some file systems have no fsync for folders, and say so with EINVAL. */
    const bool synced = TEMP_FAILURE_RETRY(fsync(fd)) == 0 || errno == EINVAL;
    const int  why = errno;
    close(fd);
    errno = why;
    return synced;
}

rws_status rws_file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
{
    /* A name of its own, so that two that write the same file at once do not write into each other's. */
    char *temporary = NULL;
    RWS_CHECK(asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) >= 0);
    const int  fd = TEMP_FAILURE_RETRY(open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    rws_status status = RWS_OK;
    if (fd < 0) {
        status = refuse("written", path, err);
        free(temporary);
        return status;
    }
    /* The bytes must be on disk before the name points at them. */
    bool written = write_all(fd, pieces, n) && TEMP_FAILURE_RETRY(fsync(fd)) == 0;
    int  why = errno;
    if (close(fd) != 0 && errno != EINTR && written) written = false, why = errno;
    if (written && rename(temporary, path) != 0) written = false, why = errno;
    errno = why;
    if (!written) {
        status = refuse("written", path, err);
        unlink(temporary);
    } else if (!sync_folder(path)) {
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is written, but might not survive a power cut: %s.",
                          rws_quote(path).text, strerror(errno));
    }
    free(temporary);
    return status;
}

rws_status rws_file_make_folder(const char *path, rws_error *err)
{
    char *part = strdup(path);
    RWS_CHECK(part);
    bool made = true;
    for (char *at = part; made && *at; at++) {
        const bool last = at[1] == '\0';
        if (!last && (*at != '/' || at == part)) continue;
        if (!last) *at = '\0';
        made = mkdir(part, 0777) == 0 || errno == EEXIST;
        if (!last) *at = '/';
    }
    free(part);
    if (!made)
        return rws_fail(err, RWS_BAD_INPUT, "The folder \"%s\" cannot be made: %s.", rws_quote(path).text,
                        strerror(errno));
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a folder.", rws_quote(path).text);
}

/* ---- places */

char *rws_file_join(const char *folder, const char *name)
{
    char        *path = NULL;
    const size_t n = strlen(folder);
    RWS_CHECK(asprintf(&path, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name) >= 0);
    return path;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

rws_status rws_cache_folder(char **folder, rws_error *err)
{
    const char *own = variable("RWS_CACHE"), *shared = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    if (own) *folder = strdup(own);
    else if (shared) *folder = rws_file_join(shared, "rws");
    else if (home) *folder = rws_file_join(home, ".cache/rws");
    else
        return rws_fail(err, RWS_BAD_INPUT,
                        "There is no place to keep data sets: none of RWS_CACHE, XDG_CACHE_HOME and HOME is set.");
    RWS_CHECK(*folder);
    return RWS_OK;
}
