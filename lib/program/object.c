#include "program/object.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_KNOWN = 1000, MAX_BYTES = 1 << 20 /* of the list */ };

/* ---- fingerprints */

/* The bytes of an open file; NULL with errno. An empty file is not mapped. */
static const void *map(int fd, size_t *size)
{
    struct stat about;
    if (fstat(fd, &about) != 0) return NULL;
    if (!S_ISREG(about.st_mode) || about.st_size <= 0) errno = EINVAL;
    *size = (size_t)about.st_size;
    if (!S_ISREG(about.st_mode) || about.st_size <= 0) return NULL;
    void *bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

/* False without memory. */
static bool take_sha256(const void *bytes, size_t size, char out[static RWS_FINGERPRINT_SIZE])
{
    GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
    if (!sum) return false;
    g_checksum_update(sum, bytes, (gssize)size);
    snprintf(out, RWS_FINGERPRINT_SIZE, "sha256:%s", g_checksum_get_string(sum));
    g_checksum_free(sum);
    return true;
}

rws_status rws__object_open(const char *path, rws_object *out, rws_error *err)
{
    size_t size = 0;
    *out = (rws_object){.path = realpath(path, NULL), .fd = -1};
    /* O_NONBLOCK: opening a pipe by mistake must not wait for its writer. */
    if (out->path) out->fd = TEMP_FAILURE_RETRY(open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const void *bytes = out->fd >= 0 ? map(out->fd, &size) : NULL;
    const int   why = errno;
    const bool  taken = bytes && take_sha256(bytes, size, out->fingerprint);
    if (bytes) out->has_origin = memmem(bytes, size, "$ORIGIN", 7) || memmem(bytes, size, "${ORIGIN}", 9);
    if (bytes) munmap((void *)bytes, size);
    if (taken) return RWS_OK;
    rws__object_close(out);
    if (bytes || why == ENOMEM) return rws_no_memory(err, "the fingerprint of a file");
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be read as a shared object: %s.", rws__quote(path).text,
                    strerror(why));
}

void rws__object_close(rws_object *o)
{
    if (o->path && o->fd >= 0) close(o->fd);
    free(o->path);
    *o = (rws_object){.fd = -1};
}

rws_status rws__fingerprint(const char *path, char out[static RWS_FINGERPRINT_SIZE], rws_error *err)
{
    rws_object o;
    RWS_TRY(rws__object_open(path, &o, err));
    memcpy(out, o.fingerprint, sizeof o.fingerprint);
    rws__object_close(&o);
    return RWS_OK;
}

bool rws__object_fits(const rws_object *o, const char *fingerprint)
{
    char   text[RWS_FINGERPRINT_SIZE];
    size_t size = 0;
    if (strncmp(fingerprint, "fnv1a:", 6) != 0) return strcmp(o->fingerprint, fingerprint) == 0;
    const void *bytes = map(o->fd, &size);
    if (!bytes) return false;
    snprintf(text, sizeof text, "fnv1a:%016llx", (unsigned long long)rws__hash(RWS_HASH_BEGIN, bytes, size));
    munmap((void *)bytes, size);
    return strcmp(text, fingerprint) == 0;
}

bool rws__object_is_same_file(const rws_object *a, const rws_object *b)
{
    struct stat file, other;
    return fstat(a->fd, &file) == 0 && fstat(b->fd, &other) == 0 && file.st_ino == other.st_ino &&
           file.st_dev == other.st_dev;
}

/* ---- the user's list */

/* The folder of the list, for the caller to free; NULL if there is none. */
static char *folder_of_list(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/') return rws__file_join(state, "rws");
    return home && home[0] == '/' ? rws__file_join(home, ".local/state/rws") : NULL;
}

/* The text of the list, for the caller to free; NULL if there is none, or others may have written it. */
static char *read_list(const char *folder)
{
    struct stat about;
    char       *path = rws__file_join(folder, "objects"), *text = NULL;
    const int   fd = path ? TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) : -1;
    const bool  own = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                     !(about.st_mode & (S_IWGRP | S_IWOTH)) && about.st_size <= MAX_BYTES;
    if (own && (text = calloc(1, (size_t)about.st_size + 1)) &&
        read(fd, text, (size_t)about.st_size) != about.st_size) {
        free(text);
        text = NULL;
    }
    if (fd >= 0) close(fd);
    free(path);
    return text;
}

/* The line of an object, for the caller to free; NULL without memory, and for a path that does not fit a line. */
static char *line_of(const rws_object *o)
{
    char *line;
    if (strchr(o->path, '\n')) return NULL;
    return asprintf(&line, "%s  %s\n", strchr(o->fingerprint, ':') + 1, o->path) < 0 ? NULL : line;
}

static bool has_line(const char *list, const char *line)
{
    for (const char *at = list; (at = strstr(at, line)); at++)
        if (at == list || at[-1] == '\n') return true;
    return false;
}

bool rws__object_is_known(const rws_object *o)
{
    char      *folder = folder_of_list(), *list = folder ? read_list(folder) : NULL, *line = list ? line_of(o) : NULL;
    const bool known = line && has_line(list, line);
    free(folder);
    free(list);
    free(line);
    return known;
}

/* Writes the new line, and then the lines of other paths, the newest first. */
static bool write_lines(FILE *out, const char *line, const char *list)
{
    const char *path = strstr(line, "  ");
    fputs(line, out);
    for (int n = 1; list && *list && n < MAX_KNOWN; n++) {
        const size_t length = strcspn(list, "\n") + 1;
        const char  *other = strstr(list, "  ");
        if (!list[length - 1]) break; /* a last line without its end */
        if (other && other < list + length && strncmp(other, path, strlen(path)) != 0) fwrite(list, length, 1, out);
        list += length;
    }
    return fflush(out) == 0 && !ferror(out);
}

/* Through a temporary file, which mkstemp makes with the mode 0600. */
static void write_list(const char *folder, const char *line, const char *list)
{
    char     *path = rws__file_join(folder, "objects"), *temporary = rws__file_join(folder, ".objects-XXXXXX");
    const int fd = path && temporary ? mkostemp(temporary, O_CLOEXEC) : -1;
    FILE     *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool      good = out && write_lines(out, line, list);
    if (out) good &= fclose(out) == 0;
    else if (fd >= 0) close(fd);
    if (fd >= 0 && (!good || rename(temporary, path) != 0)) unlink(temporary);
    free(temporary);
    free(path);
}

/* The folder of the list, locked until it is closed; -1 if it cannot be had. On a file system without locks it is not
 * locked. */
static int lock_list(const char *folder)
{
    if (rws__file_make_folder(folder, NULL) != RWS_OK) return -1;
    const int fd = TEMP_FAILURE_RETRY(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd >= 0) (void)!TEMP_FAILURE_RETRY(flock(fd, LOCK_EX));
    return fd;
}

void rws__object_remember(const rws_object *o)
{
    char     *folder = rws__object_is_known(o) ? NULL : folder_of_list(), *line = folder ? line_of(o) : NULL;
    const int fd = line ? lock_list(folder) : -1;
    char     *list = fd >= 0 ? read_list(folder) : NULL;
    if (fd >= 0) write_list(folder, line, list);
    if (fd >= 0) close(fd);
    free(folder);
    free(line);
    free(list);
}
