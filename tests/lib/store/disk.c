#include "disk.h"

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FDS = 1024, SECTOR = 512 };

typedef enum { OPEN, CREATE, READ, WRITE, SYNC, RENAME, UNLINK, TRUNCATE, MKDIR, LINK } call;

const char *const disk_ways[] = {"EIO", "ENOSPC", "EINTR", "short"};
const char *const disk_losses[] = {"none", "all", "names", "bytes", "half", "some", "ordered"};

static const char *const calls[] = {"open",   "create", "read",     "write", "fsync",
                                    "rename", "unlink", "truncate", "mkdir", "link"};

static char        root[PATH_MAX]; /* "": calls are not looked at */
static long        n_calls, fail_at;
static disk_way    way;
static const char *failed;
static bool        recording;

static bool can_fail(call c)
{
    switch (way) {
    case DISK_ENOSPC: return c != OPEN && c != READ && c != UNLINK;
    case DISK_EINTR: return c == OPEN || c == CREATE || c == READ || c == WRITE || c == SYNC || c == TRUNCATE;
    case DISK_SHORT: return c == READ || c == WRITE;
    default: return true;
    }
}

/* Whether this call is the one that fails. */
static bool fails(call c)
{
    if (!can_fail(c) || ++n_calls != fail_at) return false;
    failed = calls[c];
    errno = way == DISK_EIO ? EIO : way == DISK_ENOSPC ? ENOSPC : EINTR;
    return true;
}

/* ---- open files: their paths, and their numbers in the log */

static struct {
    char *path; /* NULL: not below the folder */
    int   file; /* -1: a folder, or not in the log */
} fds[MAX_FDS];

static bool is_below(const char *path)
{
    const size_t n = strlen(root);
    return n && strncmp(path, root, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The path of a name in a folder; false if it is not below the folder that is watched. */
static bool resolve(int at, const char *name, char path[PATH_MAX])
{
    if (!root[0]) return false;
    const bool relative = name[0] != '/' && at >= 0 && at < MAX_FDS && fds[at].path;
    snprintf(path, PATH_MAX, "%s%s%s", relative ? fds[at].path : "", relative ? "/" : "", name);
    return is_below(path);
}

static bool is_watched(int fd)
{
    return root[0] && fd >= 0 && fd < MAX_FDS && fds[fd].path;
}

/* ---- the log */

typedef struct {
    call   what;
    char  *path, *to; /* relative to the folder; `to` of a rename or link */
    int    file;
    off_t  at; /* of a write, or the length of a truncation */
    size_t size;
    void  *bytes;
} change;

static struct {
    change *list;
    int     n, capacity;
    struct {
        char *path;
        int   file;
    } names[4096]; /* as they are now, in the order of their making */
    int n_names, n_files;
} history;

static const char *below(const char *path)
{
    return path[strlen(root)] ? path + strlen(root) + 1 : "";
}

static void note(change c)
{
    if (!recording) return;
    if (history.n == history.capacity) {
        history.capacity = 2 * history.capacity + 1024;
        history.list = realloc(history.list, (size_t)history.capacity * sizeof *history.list);
    }
    history.list[history.n++] = c;
}

static int find_name(const char *path)
{
    for (int i = 0; i < history.n_names; i++)
        if (strcmp(history.names[i].path, path) == 0) return i;
    return -1;
}

static void set_name(const char *path, int file)
{
    int i = find_name(path);
    if (i < 0) {
        i = history.n_names++;
        history.names[i].path = strdup(path);
    }
    history.names[i].file = file;
}

static void drop_name(const char *path)
{
    const int i = find_name(path);
    if (i >= 0) history.names[i] = history.names[--history.n_names];
}

static void note_open(const char *path, int fd, int flags)
{
    int        i = find_name(path);
    const bool is_folder = flags & O_DIRECTORY || (i >= 0 && history.names[i].file < 0);
    fds[fd].file = -1;
    struct stat about;
    if (is_folder || (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode))) return;
    if (i < 0) {
        set_name(path, history.n_files);
        note((change){.what = CREATE, .path = strdup(below(path)), .file = history.n_files++});
        i = find_name(path);
    } else if (flags & O_TRUNC) {
        note((change){.what = TRUNCATE, .file = history.names[i].file});
    }
    fds[fd].file = history.names[i].file;
}

static void note_write(int fd, const void *bytes, size_t size, off_t at)
{
    if (!recording || fds[fd].file < 0) return;
    change c = {.what = WRITE, .file = fds[fd].file, .at = at, .size = size, .bytes = malloc(size)};
    memcpy(c.bytes, bytes, size);
    note(c);
}

/* ---- the calls */

#pragma GCC visibility push(default) /* SQLite is to find these too */

static int do_open(int at, const char *name, int flags, mode_t mode)
{
    char       path[PATH_MAX];
    const bool watched = resolve(at, name, path);
    if (watched && fails(flags & O_CREAT ? CREATE : OPEN)) return -1;
    const int fd = (int)syscall(SYS_openat, at, name, flags, mode);
    if (fd < 0 || fd >= MAX_FDS) return fd;
    free(fds[fd].path);
    fds[fd].path = watched ? strdup(path) : NULL;
    if (watched && recording) note_open(path, fd, flags);
    return fd;
}

int my_open(const char *path, int flags, ...) __asm__("open");
int my_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return do_open(AT_FDCWD, path, flags, mode);
}

int my_open64(const char *path, int flags, ...) __asm__("open64");
int my_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return do_open(AT_FDCWD, path, flags, mode);
}

int my_openat(int at, const char *path, int flags, ...) __asm__("openat");
int my_openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return do_open(at, path, flags, mode);
}

int my_openat64(int at, const char *path, int flags, ...) __asm__("openat64");
int my_openat64(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return do_open(at, path, flags, mode);
}

int close(int fd)
{
    if (fd >= 0 && fd < MAX_FDS) {
        free(fds[fd].path);
        fds[fd].path = NULL;
    }
    return (int)syscall(SYS_close, fd);
}

/* Half of the bytes of a call that is to be short; -1 if it fails. */
static ssize_t allowed(int fd, call c, size_t n)
{
    if (!is_watched(fd) || (way == DISK_SHORT && n < 2) || !fails(c)) return (ssize_t)n;
    return way == DISK_SHORT ? (ssize_t)(n / 2) : -1;
}

ssize_t read(int fd, void *to, size_t n)
{
    const ssize_t most = allowed(fd, READ, n);
    return most < 0 ? -1 : syscall(SYS_read, fd, to, (size_t)most);
}

ssize_t write(int fd, const void *from, size_t n)
{
    const ssize_t most = allowed(fd, WRITE, n);
    if (most < 0) return -1;
    const off_t   at = is_watched(fd) ? (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
    const ssize_t done = syscall(SYS_write, fd, from, (size_t)most);
    if (done > 0 && is_watched(fd)) note_write(fd, from, (size_t)done, at);
    return done;
}

ssize_t my_pread(int fd, void *to, size_t n, off_t at) __asm__("pread");
ssize_t my_pread(int fd, void *to, size_t n, off_t at)
{
    const ssize_t most = allowed(fd, READ, n);
    return most < 0 ? -1 : syscall(SYS_pread64, fd, to, (size_t)most, at);
}

ssize_t my_pread64(int fd, void *to, size_t n, off_t at) __asm__("pread64");
ssize_t my_pread64(int fd, void *to, size_t n, off_t at)
{
    return my_pread(fd, to, n, at);
}

ssize_t my_pwrite(int fd, const void *from, size_t n, off_t at) __asm__("pwrite");
ssize_t my_pwrite(int fd, const void *from, size_t n, off_t at)
{
    const ssize_t most = allowed(fd, WRITE, n);
    if (most < 0) return -1;
    const ssize_t done = syscall(SYS_pwrite64, fd, from, (size_t)most, at);
    if (done > 0 && is_watched(fd)) note_write(fd, from, (size_t)done, at);
    return done;
}

ssize_t my_pwrite64(int fd, const void *from, size_t n, off_t at) __asm__("pwrite64");
ssize_t my_pwrite64(int fd, const void *from, size_t n, off_t at)
{
    return my_pwrite(fd, from, n, at);
}

static int do_sync(int fd, long number)
{
    if (is_watched(fd) && fails(SYNC)) return -1;
    if (!is_watched(fd)) return (int)syscall(number, fd);
    note((change){.what = SYNC,
                  .file = fds[fd].file,
                  .path = recording && fds[fd].file < 0 ? strdup(below(fds[fd].path)) : NULL});
    return 0; /* the disk of a test need not turn */
}

int fsync(int fd)
{
    return do_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return do_sync(fd, SYS_fdatasync);
}

static int do_truncate(int fd, off_t length)
{
    if (is_watched(fd) && fails(TRUNCATE)) return -1;
    const int status = (int)syscall(SYS_ftruncate, fd, length);
    if (status == 0 && is_watched(fd)) note((change){.what = TRUNCATE, .file = fds[fd].file, .at = length});
    return status;
}

int my_ftruncate(int fd, off_t length) __asm__("ftruncate");
int my_ftruncate(int fd, off_t length)
{
    return do_truncate(fd, length);
}

int my_ftruncate64(int fd, off_t length) __asm__("ftruncate64");
int my_ftruncate64(int fd, off_t length)
{
    return do_truncate(fd, length);
}

int renameat(int from_at, const char *from_name, int to_at, const char *to_name)
{
    char       from[PATH_MAX], to[PATH_MAX];
    const bool watched = resolve(from_at, from_name, from) && resolve(to_at, to_name, to);
    if (watched && fails(RENAME)) return -1;
    const int status = (int)syscall(SYS_renameat, from_at, from_name, to_at, to_name);
    if (status == 0 && watched && recording) {
        const int file = history.names[find_name(from)].file;
        set_name(to, file);
        drop_name(from);
        note((change){.what = RENAME, .path = strdup(below(from)), .to = strdup(below(to)), .file = file});
    }
    return status;
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int at, const char *name, int flags)
{
    char       path[PATH_MAX];
    const bool watched = resolve(at, name, path);
    if (watched && fails(UNLINK)) return -1;
    const int status = (int)syscall(SYS_unlinkat, at, name, flags);
    if (status == 0 && watched && recording) {
        drop_name(path);
        note((change){.what = UNLINK, .path = strdup(below(path))});
    }
    return status;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int linkat(int from_at, const char *from_name, int to_at, const char *to_name, int flags)
{
    char       from[PATH_MAX], to[PATH_MAX];
    const bool watched = resolve(from_at, from_name, from) && resolve(to_at, to_name, to);
    if (watched && fails(LINK)) return -1;
    const int status = (int)syscall(SYS_linkat, from_at, from_name, to_at, to_name, flags);
    if (status == 0 && watched && recording) {
        const int file = history.names[find_name(from)].file;
        set_name(to, file);
        note((change){.what = LINK, .to = strdup(below(to)), .file = file});
    }
    return status;
}

int mkdir(const char *name, mode_t mode)
{
    char       path[PATH_MAX];
    const bool watched = resolve(AT_FDCWD, name, path);
    if (watched && fails(MKDIR)) return -1;
    const int status = (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    if (status == 0 && watched && recording) {
        set_name(path, -1);
        note((change){.what = MKDIR, .path = strdup(below(path)), .file = -1});
    }
    return status;
}

#pragma GCC visibility pop

void disk_watch(const char *folder, long n, disk_way how)
{
    snprintf(root, sizeof root, "%s", folder);
    n_calls = 0;
    fail_at = n;
    way = how;
    failed = NULL;
    recording = false;
}

long disk_calls(void)
{
    return n_calls;
}

const char *disk_failed(void)
{
    return failed;
}

void disk_record(void)
{
    recording = true;
}

int disk_changes(void)
{
    return history.n;
}

/* ---- after a loss of power */

typedef struct {
    char  *bytes;
    size_t size, capacity;
} content;

static void resize(content *c, size_t size)
{
    if (size > c->capacity) {
        c->bytes = realloc(c->bytes, size);
        c->capacity = size;
    }
    if (size > c->size) memset(c->bytes + c->size, 0, size - c->size);
    c->size = size;
}

static void put(content *c, const change *w, size_t from, size_t end)
{
    if (end <= from) return;
    if (c->size < (size_t)w->at + end) resize(c, (size_t)w->at + end);
    memcpy(c->bytes + w->at + from, (const char *)w->bytes + from, end - from);
}

/* Any of the sectors that the write touches. */
static void put_sectors(content *c, const change *w, die *d)
{
    for (size_t from = 0; from < w->size;) {
        size_t end = from + SECTOR - ((size_t)w->at + from) % SECTOR;
        if (end > w->size) end = w->size;
        if (die_below(d, 2)) put(c, w, from, end);
        from = end;
    }
}

/* The names in the restored folder: path and file, -1 for a folder. */
typedef struct {
    struct {
        const char *path;
        int         file;
    } list[4096];
    int n;
} directory;

static void forget(directory *all, const char *path)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->list[i].path, path) == 0) all->list[i] = all->list[--all->n];
}

static void apply_name(directory *all, const change *c)
{
    const char *made = c->what == RENAME || c->what == LINK ? c->to : c->what == UNLINK ? NULL : c->path;
    if (c->what == RENAME || c->what == UNLINK) forget(all, c->path);
    if (!made) return;
    forget(all, made);
    all->list[all->n].path = made;
    all->list[all->n++].file = c->file;
}

static bool is_name(const change *c)
{
    return c->what == CREATE || c->what == RENAME || c->what == UNLINK || c->what == LINK || c->what == MKDIR;
}

/* Whether a change of names is one of the folder `path`. */
static bool is_in(const change *c, const char *folder)
{
    const char  *path = c->to ? c->to : c->path, *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    return strlen(folder) == n && strncmp(path, folder, n) == 0;
}

/* The change in [i + 1, n) that brings change i to disk. */
static bool is_synced(int i, int n)
{
    const change *c = &history.list[i];
    for (int k = i + 1; k < n; k++) {
        const change *s = &history.list[k];
        if (s->what != SYNC) continue;
        if (is_name(c) ? s->path && is_in(c, s->path) : !s->path && s->file == c->file) return true;
    }
    return false;
}

static bool is_last_write(int i, int n)
{
    for (int k = i + 1; k < n; k++)
        if (history.list[k].what == WRITE && history.list[k].file == history.list[i].file) return false;
    return true;
}

static void write_out(const char *folder, const directory *names, const content *files)
{
    char path[PATH_MAX];
    syscall(SYS_mkdirat, AT_FDCWD, folder, 0777);
    for (int turn = 0; turn < 2; turn++) /* folders first */
        for (int i = 0; i < names->n; i++) {
            const int file = names->list[i].file;
            snprintf(path, sizeof path, "%s/%s", folder, names->list[i].path);
            if (turn == 0 && file < 0) syscall(SYS_mkdirat, AT_FDCWD, path, 0777);
            if (turn == 0 || file < 0) continue;
            const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
            if (fd < 0) continue; /* its folder is lost */
            if (syscall(SYS_write, fd, files[file].bytes, files[file].size) < 0) abort();
            syscall(SYS_close, fd);
        }
}

void disk_restore(const char *folder, int n, disk_loss loss, uint64_t seed)
{
    static directory names;
    content         *files = calloc((size_t)history.n_files + 1, sizeof *files);
    die              d = {seed};
    names.n = 0;
    int  n_pending = 0;
    bool kept[n + 1];
    for (int i = 0; i < n; i++) n_pending += is_name(&history.list[i]) && !is_synced(i, n);
    int first = die_below(&d, n_pending + 1);
    for (int i = 0; i < n; i++) {
        const change *c = &history.list[i];
        const bool    name = is_name(c);
        kept[i] = is_synced(i, n) || loss == DISK_ALL || loss == DISK_HALF || (loss == DISK_NAMES && name) ||
                  (loss == DISK_BYTES && !name) || (loss == DISK_SOME && die_below(&d, 2)) ||
                  (loss == DISK_ORDERED && (name ? first-- > 0 : die_below(&d, 2)));
        if (!kept[i] || c->what == SYNC) continue;
        const bool torn = !is_synced(i, n);
        if (name) apply_name(&names, c);
        else if (c->what == TRUNCATE && c->file >= 0) resize(&files[c->file], (size_t)c->at);
        else if (c->what == WRITE && torn && loss == DISK_HALF && is_last_write(i, n))
            put(&files[c->file], c, 0, c->size / 2);
        else if (c->what == WRITE && torn && (loss == DISK_SOME || loss == DISK_ORDERED))
            put_sectors(&files[c->file], c, &d);
        else if (c->what == WRITE) put(&files[c->file], c, 0, c->size);
    }
    write_out(folder, &names, files);
    for (int i = 0; i < history.n_files; i++) free(files[i].bytes);
    free(files);
}
