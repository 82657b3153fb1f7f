#include "base/file.h"

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

/* What rws_file_join returns without memory is refused where it is used. */
static rws_status no_path(rws_error *err)
{
    return rws_no_memory(err, "the path of a file");
}

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
    else if (!S_ISREG(is.st_mode))
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a regular file.", rws_quote(path).text);
    else *size = (size_t)is.st_size;
    if (status != RWS_OK) close(*fd);
    return status;
}

rws_status rws_file_read(const char *path, size_t most, uint8_t **bytes, size_t *size, rws_error *err)
{
    int    fd;
    size_t announced;
    *bytes = NULL;
    if (!path) return no_path(err);
    RWS_TRY(open_file(path, &fd, &announced, err));
    rws_status status = RWS_OK;
    if (announced > most)
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu bytes, and files of up to %zu are read.",
                          rws_quote(path).text, announced, most);
    else if (!(*bytes = malloc(announced + 1)))
        status = rws_fail(err, RWS_NO_MEMORY, "There is no memory for the %zu bytes of \"%s\".", announced,
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
    if (!path) return no_path(err);
    RWS_TRY(open_file(path, &fd, size, err));
    void      *map = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    rws_status status = RWS_OK;
    if (map == MAP_FAILED) status = errno == ENOMEM ? rws_no_memory(err, "a file") : refuse("read", path, err);
    close(fd);
    if (status == RWS_OK) *bytes = map;
    return status;
}

void rws_file_unmap(const uint8_t *bytes, size_t size)
{
    if (size) munmap((void *)bytes, size);
}

/* ---- writing */

/* A run is told to stop by signals and writes its checkpoint then, so every call below goes on after EINTR. */

/* All of it, through partial writes; false with errno. */
static bool write_all(int fd, const void *data, size_t n_bytes)
{
    const char *at = data;
    while (n_bytes > 0) {
        const ssize_t written = TEMP_FAILURE_RETRY(write(fd, at, n_bytes));
        if (written < 0) return false;
        at += written;
        n_bytes -= (size_t)written;
    }
    return true;
}

/* The folder that holds path, opened for fsync; -1 with errno. */
static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char       *folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!folder) return -1;
    const int fd = TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int why = errno;
    free(folder);
    errno = why;
    return fd;
}

/* Fills the temporary file and brings it to disk: that must be done before the name points at it. False with errno. */
static bool fill(int fd, const rws_piece *pieces, int n)
{
    bool written = true;
    for (int i = 0; i < n && written; i++) written = write_all(fd, pieces[i].bytes, pieces[i].size);
    written = written && TEMP_FAILURE_RETRY(fsync(fd)) == 0;
    const int why = errno;
    /* A close may report what the writes did not, but an interrupted one is done. */
    if (close(fd) != 0 && errno != EINTR && written) return false;
    errno = why;
    return written;
}

/* Fills the temporary file and puts it in the place of `path`; brings the folder to disk then. */
static rws_status replace(const char *path, const char *temporary, int folder, const rws_piece *pieces, int n,
                          rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    const int        fd = TEMP_FAILURE_RETRY(open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": %s.", rws_quote(temporary).text, strerror(errno));
    if (!fill(fd, pieces, n) || rename(temporary, path) != 0) {
        rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": %s.", file.text, strerror(errno));
        unlink(temporary);
        return RWS_BAD_INPUT;
    }
    /* Some file systems have no fsync for folders, and say so with EINVAL. */
    if (TEMP_FAILURE_RETRY(fsync(folder)) != 0 && errno != EINVAL)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "\"%s\" is written, but might not survive a power cut: its folder cannot be brought to disk (%s).",
            file.text, strerror(errno));
    return RWS_OK;
}

rws_status rws_file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
{
    if (!path) return no_path(err);
    char      *temporary = NULL;
    const int  folder = open_folder(path);
    rws_status status;
    if (folder < 0 && errno == ENOMEM) return no_path(err);
    if (folder < 0)
        return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": its folder cannot be opened (%s).",
                        rws_quote(path).text, strerror(errno));
    if (asprintf(&temporary, "%s.tmp", path) < 0) {
        temporary = NULL;
        status = no_path(err);
    } else status = replace(path, temporary, folder, pieces, n, err);
    close(folder);
    free(temporary);
    return status;
}

rws_status rws_file_write_text(const char *path, const char *text, rws_error *err)
{
    return rws_file_write(path, &(rws_piece){text, strlen(text)}, 1, err);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

rws_status rws_file_make_folder(const char *path, rws_error *err)
{
    char *part = path ? strdup(path) : NULL, *slash = part;
    if (!part) return no_path(err);
    rws_status status = RWS_OK;
    do {
        slash = strchr(slash + (*slash != '\0'), '/'); /* the next one, but not that of the root */
        if (slash) *slash = '\0';
        if (mkdir(part, 0777) != 0) {
            const int why = errno;
            if (why == EEXIST && !is_folder(part)) {
                status =
                    rws_fail(err, RWS_BAD_INPUT, "\"%s\" is a file, so it cannot be a folder.", rws_quote(part).text);
            } else if (!is_folder(part)) {
                status = rws_fail(err, RWS_BAD_INPUT, "Cannot make the folder \"%s\": %s.", rws_quote(part).text,
                                  strerror(why));
            }
        }
        if (slash) *slash = '/';
    } while (slash && status == RWS_OK);
    free(part);
    return status;
}

char *rws_file_join(const char *folder, const char *name)
{
    if (!folder || !name) return NULL;
    const size_t length = strlen(folder);
    char        *path;
    const int    n = asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return n < 0 ? NULL : path;
}
