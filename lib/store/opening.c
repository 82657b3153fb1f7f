/* opening.c - how a store is opened and checked: as a file that anyone may have made; store.h says what is refused. */
#include "base/file.h"
#include "store/checksum.h"
#include "store/store.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_COPIED = 1 << 30,      /* bytes of a store or journal that is copied */
    COPY_TRIES = 5,            /* of a store that is being written, */
    COPY_PAUSE = 20000000,     /* and nanoseconds between two of them */
    MILLISECONDS = 10000,      /* processor time that any store may take, */
    MILLISECONDS_PER_MB = 200, /* and that it may take for its size */
    BLOCK = 512,               /* bytes that stat counts in, */
    COMPRESSED = 16,           /* how many bytes of a file one of them may hold, */
    SMALL = 1 << 20,           /* and bytes that any file may have */
    STEPS = 1000,              /* of SQLite between two looks at the clock; one may read a chain of pages */
};

static int patience = 10000; /* milliseconds to wait for a locked file */

void rws__store_patience(int milliseconds)
{
    patience = milliseconds;
}

int rws__store_patience_now(void)
{
    return patience;
}

/* A function below that returns an int returns an SQLite result code, or one of store.h. */

/* ---- reading the file through SQLite: closing a descriptor of our own would drop the locks that the process has on it */

static sqlite3_file *file_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return file && file->pMethods ? file : NULL;
}

static int64_t whole_size(sqlite3 *db)
{
    sqlite3_file *file = file_of(db);
    sqlite3_int64 size = 0;
    return file && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : 0;
}

/* A sparse file costs its sender nothing, so that holes do not count. A file system that compresses may say that a file
 * takes less than its size; one that says 0 blocks does not know, and another may not know yet of the last ones. */
int64_t rws__store_size(sqlite3 *db)
{
    struct stat   is;
    const int64_t size = whole_size(db);
    const bool    known = stat(sqlite3_db_filename(db, "main"), &is) == 0 && is.st_blocks > 0;
    const int64_t most = known ? SMALL + (int64_t)is.st_blocks * BLOCK * COMPRESSED : size;
    return size < most ? size : most;
}

/* Whether the header says that the store has a write-ahead log. */
static bool is_write_ahead(sqlite3 *db)
{
    uint8_t       versions[2] = {0};
    sqlite3_file *file = file_of(db);
    const int     code = file ? file->pMethods->xRead(file, versions, sizeof versions, 18) : SQLITE_OK;
    return code == SQLITE_OK && (versions[0] == 2 || versions[1] == 2);
}

/* ---- the files beside it */

static const char *journal_of(sqlite3 *db)
{
    return sqlite3_filename_journal(sqlite3_db_filename(db, "main"));
}

/* What SQLite reads of a store's first page, and of the first header of its journal. */
typedef struct {
    int64_t  size; /* of the store */
    uint32_t page; /* bytes of a page, as the store says; 0: it is empty, or its first page was not written yet */
} shape;

static shape shape_of(sqlite3 *db)
{
    uint16_t      page = 0;
    sqlite3_file *file = file_of(db);
    const bool    whole = file && file->pMethods->xRead(file, &page, sizeof page, 16) == SQLITE_OK;
    page = be16toh(page);
    return (shape){whole_size(db), !whole ? 0 : page == 1 ? 1 << 16 : page};
}

static bool is_sector(uint32_t bytes)
{
    return bytes >= 512 && bytes <= 1 << 16 && (bytes & (bytes - 1)) == 0;
}

static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

/* Whether a journal begins as SQLite writes one for a store of this shape. SQLite makes the store as large as it was before the
 * transaction, and counts in the store's own pages if the journal says 0. A journal that begins with 0 was not brought to disk
 * before the store was written to, and SQLite does not read it. */
static bool is_header(int fd, shape store)
{
    uint32_t header[7] = {0}; /* the magic number, records, a seed, pages before, bytes of a sector, bytes of a page */
    if (pread(fd, header, sizeof header, 0) < 1 || !*(const uint8_t *)header) return true;
    const uint32_t sector = be32toh(header[5]), page = be32toh(header[6]);
    return memcmp(header, magic, sizeof magic) == 0 && is_sector(sector) && is_sector(page) &&
           (!store.page || page == store.page) && (int64_t)be32toh(header[4]) * page <= store.size;
}

/* Whether the file ends with the name of a super-journal, which SQLite would delete: the journal of several databases that
 * change together, and rws never attaches one. */
static bool names_another(int fd)
{
    struct stat is;
    uint8_t     last[8];
    return fstat(fd, &is) == 0 && is.st_size >= 16 &&
           pread(fd, last, sizeof last, is.st_size - (off_t)sizeof last) == sizeof last &&
           memcmp(last, magic, sizeof magic) == 0;
}

/* Refuses a journal that is not a file of its own, or not one that a writer of rws left. */
static int check_journal(const char *path, shape store)
{
    struct stat is;
    if (lstat(path, &is) != 0) return SQLITE_OK; /* there is none; SQLite finds out what else is wrong */
    if (!S_ISREG(is.st_mode)) return RWS_STORE_JOURNAL;
    const int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0) return errno == ENOENT ? SQLITE_OK : SQLITE_CANTOPEN;
    const bool ours = is_header(fd, store) && !names_another(fd);
    close(fd);
    return ours ? SQLITE_OK : RWS_STORE_JOURNAL;
}

/* SQLite has the file open, and has not looked at the files beside it yet. */
static int check_beside(sqlite3 *db)
{
    struct stat is;
    if (lstat(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), &is) == 0 || is_write_ahead(db))
        return RWS_STORE_WRITE_AHEAD;
    return check_journal(journal_of(db), shape_of(db));
}

/* ---- limits */

static intptr_t processor_time(void) /* of this thread, in milliseconds */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (intptr_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int is_late(void *deadline)
{
    return processor_time() > (intptr_t)deadline;
}

/* Limits what a store may make SQLite do. The deadline is of processor time, because a slow disk or a busy machine is no fault of the
 * store. */
static int set_limits(sqlite3 *db)
{
    static const struct {
        int what, most;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 1 << 20},  {SQLITE_LIMIT_SQL_LENGTH, 1 << 14}, {SQLITE_LIMIT_COLUMN, 64},
        {SQLITE_LIMIT_EXPR_DEPTH, 64},   {SQLITE_LIMIT_COMPOUND_SELECT, 4},  {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1}, {SQLITE_LIMIT_VDBE_OP, 1 << 14},    {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    static const int switches[][2] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, {SQLITE_DBCONFIG_DQS_DDL, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
    };
    int code = sqlite3_busy_timeout(db, patience);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) sqlite3_limit(db, limits[i].what, limits[i].most);
    for (size_t i = 0; i < sizeof switches / sizeof *switches && !code; i++)
        code = sqlite3_db_config(db, switches[i][0], switches[i][1], NULL);
    const int64_t own = rws__store_size(db) / (1 << 20) * MILLISECONDS_PER_MB;
    sqlite3_progress_handler(db, STEPS, is_late, (void *)(processor_time() + MILLISECONDS + (intptr_t)own));
    return code ? code : rws__checksum_prepare(db);
}

/* ---- opening */

static int open_as_is(const char *path, int flags, sqlite3 **db)
{
    /* Without locks SQLite would wait for them for ever. A run's own store has one writer, and needs none. */
    int code = sqlite3_open_v2(path, db, flags, rws__store_has_locks(path) ? NULL : "unix-none");
    if (!code) code = check_beside(*db);
    return code ? code : set_limits(*db);
}

/* SQLite looks at the journal when it reads for the first time. */
static int read_first(sqlite3 *db)
{
    return sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA schema_version;", NULL, NULL, NULL);
}

static bool is_same(const struct stat *is, const struct stat *was)
{
    return is->st_dev == was->st_dev && is->st_ino == was->st_ino && is->st_size == was->st_size &&
           is->st_mtim.tv_sec == was->st_mtim.tv_sec && is->st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

static bool is_unchanged(const char *path, const struct stat *was)
{
    struct stat is;
    return lstat(path, &is) == 0 && is_same(&is, was);
}

const char *rws__store_tmpdir(void)
{
    const char *where = getenv("TMPDIR");
    return where && *where ? where : "/tmp";
}

static int write_bytes(const char *path, const void *bytes, size_t size)
{
    rws_error        err;
    const rws_status status = rws__file_write(path, &(rws_piece){bytes, size}, 1, &err);
    return status == RWS_OK ? SQLITE_OK : status == RWS_NO_MEMORY ? SQLITE_NOMEM : RWS_STORE_TMPDIR;
}

static int copy_main(sqlite3 *db, const char *to)
{
    const int64_t size = whole_size(db);
    if (size > rws__store_size(db)) return SQLITE_CORRUPT;
    uint8_t      *bytes = size <= MAX_COPIED ? malloc((size_t)size + 1) : NULL;
    sqlite3_file *file = file_of(db);
    int           code = bytes && file ? file->pMethods->xRead(file, bytes, (int)size, 0) : SQLITE_NOMEM;
    if (!code) code = write_bytes(to, bytes, (size_t)size);
    free(bytes);
    return code;
}

static int copy_journal(const char *from, const char *to)
{
    uint8_t  *bytes = NULL;
    size_t    size;
    rws_error err;
    const int code =
        rws__file_read(from, MAX_COPIED, &bytes, &size, &err) == RWS_OK ? write_bytes(to, bytes, size) : SQLITE_BUSY;
    free(bytes);
    return code;
}

/* Copies a store and its journal to `to` and `to`-journal, and opens the copy, in which SQLite then undoes what was not
 * finished. The copy holds if the journal stays the same meanwhile: all that a process can have written to the store since
 * is in the journal, and undoing it again does no harm. */
static int copy_and_open(sqlite3 *db, const char *to, sqlite3 **copy)
{
    char        to_journal[PATH_MAX + 16];
    struct stat journal;
    snprintf(to_journal, sizeof to_journal, "%s-journal", to);
    int code = lstat(journal_of(db), &journal) == 0 ? copy_main(db, to) : SQLITE_BUSY;
    if (!code) code = copy_journal(journal_of(db), to_journal);
    if (!code && !is_unchanged(journal_of(db), &journal)) code = SQLITE_BUSY;
    if (!code) code = open_as_is(to, SQLITE_OPEN_READWRITE, copy);
    if (!code) code = read_first(*copy);
    unlink(to_journal);
    unlink(to);
    return code;
}

/* Takes a copy in the place of a store whose writer was killed. Its folder is removed before this returns; the connection
 * keeps the file. */
static int replace_by_copy(sqlite3 **db)
{
    char     folder[PATH_MAX], path[PATH_MAX];
    sqlite3 *copy = NULL;
    if (snprintf(folder, sizeof folder - 32, "%s/rws-store-XXXXXX", rws__store_tmpdir()) >= PATH_MAX - 32 ||
        !mkdtemp(folder))
        return RWS_STORE_TMPDIR;
    snprintf(path, sizeof path, "%.*s/metrics.sqlite", PATH_MAX - 32, folder);
    const int code = copy_and_open(*db, path, &copy);
    rmdir(folder);
    if (code) sqlite3_close(copy);
    if (code) return code;
    sqlite3_close(*db);
    *db = copy;
    return SQLITE_OK;
}

static int open_reader(const char *path, sqlite3 **db)
{
    int code = SQLITE_BUSY;
    for (int i = 0; i < COPY_TRIES && code == SQLITE_BUSY; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = COPY_PAUSE}, NULL);
        sqlite3_close(*db);
        *db = NULL;
        code = open_as_is(path, SQLITE_OPEN_READONLY, db);
        if (!code) code = read_first(*db);
        if (code == SQLITE_BUSY) return code; /* it was waited for */
        if ((code & 0xff) == SQLITE_READONLY) code = replace_by_copy(db);
    }
    return code;
}

/* Stores that took too long, as they were then: a command, and a server, that meets one again does not read it again. */
static struct {
    pthread_mutex_t lock;
    struct stat     list[256];
    int             next;
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER};

void rws__store_remember_slow(const char *path)
{
    struct stat is;
    if (!path || stat(path, &is) != 0) return;
    pthread_mutex_lock(&slow.lock);
    slow.list[slow.next++ % (sizeof slow.list / sizeof *slow.list)] = is;
    pthread_mutex_unlock(&slow.lock);
}

static bool is_known_slow(const struct stat *is)
{
    bool known = false;
    pthread_mutex_lock(&slow.lock);
    for (size_t i = 0; i < sizeof slow.list / sizeof *slow.list; i++) known |= is_same(is, &slow.list[i]);
    pthread_mutex_unlock(&slow.lock);
    return known;
}

int rws__store_open(const char *path, bool writes, sqlite3 **db)
{
    struct stat is;
    *db = NULL;
    if (!path) return SQLITE_NOMEM;
    const bool there = stat(path, &is) == 0;
    if (there && !S_ISREG(is.st_mode)) return SQLITE_NOTADB; /* opening a pipe would wait */
    if (there && is_known_slow(&is)) return SQLITE_INTERRUPT;
    if (!writes) return open_reader(path, db);
    if (rws__file_is_link(path)) return RWS_STORE_LINK;
    const int code = open_as_is(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, db);
    return code ? code
                : sqlite3_exec(*db, "PRAGMA cell_size_check = ON; PRAGMA synchronous = EXTRA;", NULL, NULL, NULL);
}

/* ---- the tables */

#define TEXT_OF(x) #x
#define DIGITS(x) TEXT_OF(x)

/* All that the schema of a store has, in the order in which it was made. Files of older formats have the first of them. */
static const struct {
    const char *name, *table, *sql; /* sql: NULL for an index that SQLite makes for a primary key */
} parts[] = {
    {"metrics", "metrics",
     "CREATE TABLE metrics(run TEXT, iteration INTEGER, seconds REAL, name TEXT, value REAL,"
     " PRIMARY KEY(run, iteration, name)) WITHOUT ROWID"},
    {"runs", "runs",
     "CREATE TABLE runs(run TEXT PRIMARY KEY, config TEXT, host TEXT, version TEXT, started TEXT,"
     " iteration INTEGER, seconds REAL)"},
    {"sqlite_autoindex_runs_1", "runs", NULL},
    {"snapshots", "snapshots",
     "CREATE TABLE snapshots(run TEXT, iteration INTEGER, name TEXT, place INTEGER, label TEXT,"
     " value REAL, PRIMARY KEY(run, iteration, name, place)) WITHOUT ROWID"},
    {"failures", "failures", "CREATE TABLE failures(run TEXT PRIMARY KEY, iteration INTEGER, sentence TEXT)"},
    {"sqlite_autoindex_failures_1", "failures", NULL},
    {"checksums", "checksums",
     "CREATE TABLE checksums(run TEXT PRIMARY KEY, about INTEGER, numbers INTEGER) WITHOUT ROWID"},
};

enum { N_PARTS = sizeof parts / sizeof *parts };

/* Whether a file of the format may have n parts. Version 0.1 wrote the first three, and no format. */
static bool fits_format(int format, int n)
{
    return format == 0 ? n == 0 || n == 3 : n == (format == 1 ? 6 : N_PARTS);
}

/* Whether two texts are the same but for blanks; versions broke their lines in different places. */
static bool same_words(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ') a++;
        while (*b == ' ') b++;
        if (*a != *b || !*a) return *a == *b;
    }
}

/* Whether a row of the schema (type, name, tbl_name, sql) is that part of ours. */
static bool is_part(sqlite3_stmt *row, int i)
{
    const char *const ours[] = {i < N_PARTS && parts[i].sql ? "table" : "index", parts[i % N_PARTS].name,
                                parts[i % N_PARTS].table, parts[i % N_PARTS].sql};
    for (int k = 0; k < 4; k++) {
        const char *text = (const char *)sqlite3_column_text(row, k);
        if (i >= N_PARTS || !text != !ours[k] || (text && !same_words(text, ours[k]))) return false;
    }
    return true;
}

/* The number of parts that the file has. RWS_STORE_FOREIGN if it has anything else. */
static int count_parts(sqlite3 *db, int *n)
{
    sqlite3_stmt *s;
    int           code =
        sqlite3_prepare_v2(db, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid", -1, &s, NULL);
    *n = 0;
    if (code) return code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW && is_part(s, *n)) ++*n;
    const bool foreign = code == SQLITE_ROW;
    code = sqlite3_finalize(s);
    return foreign ? RWS_STORE_FOREIGN : code;
}

static bool is_name_of_part(const char *name)
{
    for (int i = 0; i < N_PARTS; i++)
        if (strcmp(parts[i].name, name) == 0) return true;
    return false;
}

bool rws__store_foreign(sqlite3 *db, char kind[static 16], char name[static 64])
{
    sqlite3_stmt *s;
    bool          found = false;
    if (sqlite3_prepare_v2(db, "SELECT type, name FROM sqlite_master ORDER BY rowid", -1, &s, NULL)) return false;
    while (!found && sqlite3_step(s) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(s, 0), *own = (const char *)sqlite3_column_text(s, 1);
        if (!type || !own || is_name_of_part(own)) continue;
        snprintf(kind, 16, "%s", type);
        snprintf(name, 64, "%s", own);
        found = true;
    }
    sqlite3_finalize(s);
    return found;
}

int rws__store_check(sqlite3 *db, int *format)
{
    sqlite3_stmt *s;
    int           n, code = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL);
    if (code) return code;
    *format = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int(s, 0) : 0;
    code = sqlite3_finalize(s);
    if (!code && *format > RWS_STORE_FORMAT) return SQLITE_SCHEMA;
    if (!code) code = count_parts(db, &n);
    return code || fits_format(*format, n) ? code : RWS_STORE_FOREIGN;
}

int rws__store_complete(sqlite3 *db)
{
    int n, code = count_parts(db, &n);
    for (int i = n; i < N_PARTS && !code; i++)
        if (parts[i].sql) code = sqlite3_exec(db, parts[i].sql, NULL, NULL, NULL);
    return code ? code : sqlite3_exec(db, "PRAGMA user_version = " DIGITS(RWS_STORE_FORMAT), NULL, NULL, NULL);
}
