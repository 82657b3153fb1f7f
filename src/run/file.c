#include "run/file.h"

#include "run/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
static bool fill(int fd, const struct iovec *parts, size_t n)
{
    bool written = true;
    for (size_t i = 0; i < n && written; i++) written = write_all(fd, parts[i].iov_base, parts[i].iov_len);
    written = written && TEMP_FAILURE_RETRY(fsync(fd)) == 0;
    const int why = errno;
    /* A close may report what the writes did not, but an interrupted one is done. */
    if (close(fd) != 0 && errno != EINTR && written) return false;
    errno = why;
    return written;
}

rws_status rws_file_write(const char *path, const struct iovec *parts, size_t n, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    rws_status       status = RWS_BAD_INPUT;
    char            *temporary = NULL;
    const int        folder = open_folder(path);
    if (folder < 0) {
        rws_fail(err, status, "Cannot write \"%s\": its folder cannot be opened (%s).", file.text, strerror(errno));
        return status;
    }
    if (asprintf(&temporary, "%s.tmp", path) < 0) {
        temporary = NULL;
        rws_fail(err, status, "Cannot write \"%s\": no memory is left.", file.text);
        goto done;
    }
    const int fd = TEMP_FAILURE_RETRY(open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0) {
        rws_fail(err, status, "Cannot write \"%s\": %s.", rws_quote(temporary).text, strerror(errno));
        goto done;
    }
    if (!fill(fd, parts, n) || rename(temporary, path) != 0) {
        rws_fail(err, status, "Cannot write \"%s\": %s.", file.text, strerror(errno));
        unlink(temporary);
        goto done;
    }
    /* Some file systems have no fsync for folders, and say so with EINVAL. */
    if (TEMP_FAILURE_RETRY(fsync(folder)) != 0 && errno != EINVAL) {
        rws_fail(err, status,
                 "\"%s\" is written, but might not survive a power cut: its folder cannot be brought to disk (%s).",
                 file.text, strerror(errno));
        goto done;
    }
    status = RWS_OK;
done:
    close(folder);
    free(temporary);
    return status;
}

rws_status rws_file_write_text(const char *path, const char *text, rws_error *err)
{
    const struct iovec part = {(char *)text, strlen(text)};
    return rws_file_write(path, &part, 1, err);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

rws_status rws_file_make_folder(const char *path, rws_error *err)
{
    char *part = strdup(path), *slash = part;
    if (!part) return rws_fail(err, RWS_BAD_INPUT, "No memory is left for the folder \"%s\".", rws_quote(path).text);
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
    const size_t length = strlen(folder);
    char        *path;
    return asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name) < 0 ? NULL : path;
}
