#include "base/file.h"

#include "base/error.h"
#include "base/quote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path of NULL is what rws__file_join returned without memory. */
static rws_status no_path(rws_error *err)
{
    return rws_no_memory(err, "the path of a file");
}

static rws_status refuse(const char *verb, const char *path, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be %s: %s.", rws__quote(path).text, verb, strerror(errno));
}

/* ---- reading */

/* Reads `size` bytes, or fewer if the file ends before. Returns how many; -1 with errno. */
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
    *fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); /* a pipe is not waited for */
    if (*fd < 0) return refuse("read", path, err);
    rws_status status = RWS_OK;
    if (fstat(*fd, &is) != 0) status = refuse("read", path, err);
    else if (!S_ISREG(is.st_mode))
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a regular file.", rws__quote(path).text);
    else *size = (size_t)is.st_size;
    if (status != RWS_OK) close(*fd);
    return status;
}

rws_status rws__file_read(const char *path, size_t most, uint8_t **bytes, size_t *size, rws_error *err)
{
    int    fd;
    size_t announced;
    *bytes = NULL;
    if (!path) return no_path(err);
    RWS_TRY(open_file(path, &fd, &announced, err));
    rws_status status = RWS_OK;
    if (announced > most)
        status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %zu bytes, and files of up to %zu are read.",
                          rws__quote(path).text, announced, most);
    else if (!(*bytes = malloc(announced + 1)))
        status = rws_fail(err, RWS_NO_MEMORY, "There is no memory for the %zu bytes of \"%s\".", announced,
                          rws__quote(path).text);
    else {
        const ssize_t got = read_all(fd, *bytes, announced);
        if (got < 0) status = refuse("read", path, err);
        *size = (size_t)got; /* fewer if the file became shorter meanwhile, which the caller finds as a damaged file */
    }
    close(fd);
    if (status != RWS_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

static rws_status refuse_text(const char *verb, const char *what, const char *path, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "The %s file \"%s\" cannot be %s: %s.", what, rws__quote(path).text, verb,
                    strerror(errno));
}

rws_status rws__file_read_text(const char *path, const char *what, size_t most, char **text, size_t *length,
                               rws_error *err)
{
    rws_status status = RWS_OK;
    *text = NULL;
    if (!path) return no_path(err);
    FILE *f = fopen(path, "rbe");
    if (!f) return errno == ENOMEM ? rws_no_memory(err, "the text of a file") : refuse_text("opened", what, path, err);
    if (!(*text = malloc(most + 1))) status = rws_no_memory(err, "the text of a file");
    else {
        *length = fread(*text, 1, most + 1, f);
        if (ferror(f)) status = refuse_text("read", what, path, err);
    }
    fclose(f);
    if (status == RWS_OK) return RWS_OK;
    free(*text);
    *text = NULL;
    return status;
}

rws_status rws__file_map(const char *path, const uint8_t **bytes, size_t *size, rws_error *err)
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

void rws__file_unmap(const uint8_t *bytes, size_t size)
{
    if (size) munmap((void *)bytes, size);
}

/* ---- writing */

/* A run is told to stop by signals and writes its checkpoint then, so every call below continues after EINTR. */

/* Writes all bytes, in several calls if need be; false with errno. */
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

static rws_status cannot_write(const char *path, int why, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": %s.", rws__quote(path).text, strerror(why));
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

/* Writes the pieces and brings them to disk; closes fd. False with errno. A pipe or a device has no fsync and says so
 * with EINVAL or ENOTSUP, which is not a failure if `direct`. */
static bool fill(int fd, const rws_piece *pieces, int n, bool direct)
{
    bool written = true;
    for (int i = 0; i < n && written; i++) written = write_all(fd, pieces[i].bytes, pieces[i].size);
    if (written && TEMP_FAILURE_RETRY(fsync(fd)) != 0)
        written = direct && (errno == EINVAL || errno == ENOTSUP || errno == EROFS);
    const int why = errno;
    /* A close may report what the writes did not, but an interrupted one is done. */
    if (close(fd) != 0 && errno != EINTR && written) return false;
    errno = why;
    return written;
}

/* ".rws-0123456789abcdef.tmp" */
typedef struct {
    char text[32];
} temporary_name;

enum { RANDOM_DIGITS = 16, NAME_TRIES = 100 };

/* Makes a file that did not exist before, of a name that cannot be guessed; links are not followed. -1 with errno. */
static int make_temporary(int folder, temporary_name *name)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        uint64_t random;
        if (TEMP_FAILURE_RETRY(getrandom(&random, sizeof random, 0)) != sizeof random) return -1;
        snprintf(name->text, sizeof name->text, ".rws-%016llx.tmp", (unsigned long long)random);
        const int fd =
            TEMP_FAILURE_RETRY(openat(folder, name->text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static bool is_temporary(const char *name)
{
    return strncmp(name, ".rws-", 5) == 0 && strspn(name + 5, "0123456789abcdef") == RANDOM_DIGITS &&
           strcmp(name + 5 + RANDOM_DIGITS, ".tmp") == 0;
}

void rws__file_clean_folder(const char *path)
{
    DIR *folder = path ? opendir(path) : NULL;
    if (!folder) return;
    for (const struct dirent *e; (e = readdir(folder));) {
        struct stat is;
        if (is_temporary(e->d_name) && fstatat(dirfd(folder), e->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(is.st_mode))
            unlinkat(dirfd(folder), e->d_name, 0);
    }
    closedir(folder);
}

/* Fills a temporary file and puts it in the place of `path`, which is not a link; brings the folder to disk then. `was`
 * is the regular file that is there, whose mode and owner the new file gets; NULL: there is none. */
static rws_status replace(const char *path, int folder, const struct stat *was, const rws_piece *pieces, int n,
                          rws_error *err)
{
    const char    *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    temporary_name temporary;
    const int      fd = make_temporary(folder, &temporary);
    if (fd < 0) return cannot_write(path, errno, err);
    if (was) {
        /* Only root can keep a foreign owner; the mode comes second, because a change of owner clears bits of it. */
        if ((was->st_uid != geteuid() || was->st_gid != getegid()) && fchown(fd, was->st_uid, was->st_gid) != 0)
            errno = 0;
        (void)!fchmod(fd, was->st_mode & 07777);
    }
    if (!fill(fd, pieces, n, false) || renameat(folder, temporary.text, folder, name) != 0) {
        const int why = errno;
        unlinkat(folder, temporary.text, 0);
        return cannot_write(path, why, err);
    }
    /* Some file systems have no fsync for folders, and say so with EINVAL. */
    if (TEMP_FAILURE_RETRY(fsync(folder)) != 0 && errno != EINVAL)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "\"%s\" is written, but might not survive a power cut: its folder cannot be brought to disk (%s).",
            rws__quote(path).text, strerror(errno));
    return RWS_OK;
}

/* The place that a path leads to: the target of a link, and of the link that this target is, also if it does not exist
 * yet. The caller frees it; NULL with errno. */
static char *follow(const char *path)
{
    enum { MAX_LINKS = 40 };
    char  target[PATH_MAX];
    char *at = strdup(path);
    int   n = 0;
    for (; at && n <= MAX_LINKS; n++) {
        const ssize_t length = readlink(at, target, sizeof target - 1);
        if (length < 0) return at; /* not a link */
        target[length] = '\0';
        const char *slash = target[0] == '/' ? NULL : strrchr(at, '/');
        char       *next;
        if (asprintf(&next, "%.*s%s", slash ? (int)(slash - at + 1) : 0, at, target) < 0) next = NULL;
        free(at);
        at = next;
    }
    free(at);
    errno = n > MAX_LINKS ? ELOOP : ENOMEM;
    return NULL;
}

static rws_status replace_file(const char *path, const struct stat *was, const rws_piece *pieces, int n, rws_error *err)
{
    /* A file that may not be written is not replaced either. */
    if (was && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return cannot_write(path, errno, err);
    char *real = follow(path);
    if (!real && errno == ENOMEM) return no_path(err);
    if (!real) return cannot_write(path, errno, err);
    const int  folder = open_folder(real);
    const int  why = errno;
    rws_status status;
    if (folder < 0 && why == ENOMEM) status = no_path(err);
    else if (folder < 0)
        status = rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": its folder cannot be opened (%s).",
                          rws__quote(path).text, strerror(why));
    else status = replace(real, folder, was, pieces, n, err);
    if (folder >= 0) close(folder);
    free(real);
    return status;
}

/* The descriptor, 1 or 2, that is open on the file already, so that `--out /dev/stdout` and `--out x >x` do not take
 * the file away from the shell; -1: neither. */
static int standard_stream(const struct stat *is)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat open;
        if (fstat(fd, &open) == 0 && open.st_dev == is->st_dev && open.st_ino == is->st_ino) return fd;
    }
    return -1;
}

/* Writes to a device, a pipe or a stream of the program, without replacing it. */
static rws_status write_directly(const char *path, int stream, const rws_piece *pieces, int n, rws_error *err)
{
    const int fd = stream >= 0 ? fcntl(stream, F_DUPFD_CLOEXEC, 3)
                               : TEMP_FAILURE_RETRY(open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (fd < 0 || !fill(fd, pieces, n, true)) return cannot_write(path, errno, err);
    return RWS_OK;
}

rws_status rws__file_replace(const char *path, const rws_piece *pieces, int n, rws_error *err)
{
    struct stat is;
    if (!path) return no_path(err);
    const bool exists = lstat(path, &is) == 0;
    if (exists && !S_ISREG(is.st_mode))
        return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": it is %s.", rws__quote(path).text,
                        S_ISLNK(is.st_mode) ? "a link; put the file itself in its place" : "not a regular file");
    return replace_file(path, exists ? &is : NULL, pieces, n, err);
}

rws_status rws__file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
{
    struct stat is;
    if (!path) return no_path(err);
    if (stat(path, &is) != 0) return replace_file(path, NULL, pieces, n, err);
    if (S_ISDIR(is.st_mode)) return cannot_write(path, EISDIR, err);
    const int stream = standard_stream(&is);
    if (stream >= 0 || !S_ISREG(is.st_mode)) return write_directly(path, stream, pieces, n, err);
    return replace_file(path, &is, pieces, n, err);
}

rws_status rws__file_write_text(const char *path, const char *text, rws_error *err)
{
    return rws__file_write(path, &(rws_piece){text, strlen(text)}, 1, err);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Brings the name of a new folder to disk. A failure is ignored here: files in the folder are brought to disk when they
 * are written, and a failure then has a message. */
static void sync_name(const char *path)
{
    const int above = open_folder(path);
    if (above < 0) return;
    (void)!TEMP_FAILURE_RETRY(fsync(above));
    close(above);
}

rws_status rws__file_make_folder(const char *path, rws_error *err)
{
    char *part = path ? strdup(path) : NULL, *slash = part;
    if (!part) return no_path(err);
    rws_status status = RWS_OK;
    do {
        slash = strchr(slash + (*slash != '\0'), '/'); /* the next one, but not that of the root */
        if (slash) *slash = '\0';
        if (mkdir(part, 0777) == 0) sync_name(part);
        else {
            const int why = errno;
            if (why == EEXIST && !is_folder(part)) {
                status =
                    rws_fail(err, RWS_BAD_INPUT, "\"%s\" is a file, so it cannot be a folder.", rws__quote(part).text);
            } else if (!is_folder(part)) {
                status = rws_fail(err, RWS_BAD_INPUT, "Cannot make the folder \"%s\": %s.", rws__quote(part).text,
                                  strerror(why));
            }
        }
        if (slash) *slash = '/';
    } while (slash && status == RWS_OK);
    free(part);
    return status;
}

bool rws__file_leads(const char *path)
{
    struct stat about;
    return path && stat(path, &about) == 0;
}

bool rws__file_exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

bool rws__file_is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

char *rws__file_join(const char *folder, const char *name)
{
    if (!folder || !name) return NULL;
    const size_t length = strlen(folder);
    char        *path;
    const int    n = asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return n < 0 ? NULL : path;
}
