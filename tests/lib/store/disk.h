/* disk.h - a disk that fails when it is told to, and that remembers what was done to it.
 *
 * disk.c has functions in the place of open, read, write, fsync, rename and their relatives, for the library and for
 * SQLite alike. They look at calls about files below one folder and let the others pass.
 *
 *     library, SQLite -> [disk] -> system
 *                          |
 *                          +-> one call fails, or does half of what it should
 *                          +-> a log of changes, of which folders after a loss of power are made
 */
#ifndef RWS_TESTS_DISK_H
#define RWS_TESTS_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* Ways to fail. DISK_SHORT: a read or a write does half of what it was asked for, and says so. */
typedef enum { DISK_EIO, DISK_ENOSPC, DISK_EINTR, DISK_SHORT, DISK_WAYS } disk_way;

extern const char *const disk_ways[];

/* From now on calls about files below `folder`, an absolute path, are counted, and the n-th that can fail in that way does;
 * n = 0: none. */
void disk_watch(const char *folder, long n, disk_way way);

/* The calls that could have failed since disk_watch. */
long disk_calls(void);

/* The name of the call that failed; NULL: none. */
const char *disk_failed(void);

/* Begins a log of changes below the folder of disk_watch, which must be empty. */
void disk_record(void);

/* The number of changes in the log. */
int disk_changes(void);

/* What a loss of power leaves of changes that fsync did not bring to disk. */
typedef enum {
    DISK_NONE,    /* nothing */
    DISK_ALL,     /* everything, as after a kill */
    DISK_NAMES,   /* names (create, rename, unlink), but no bytes */
    DISK_BYTES,   /* bytes, but no names */
    DISK_HALF,    /* everything, but of the last write to each file its first half */
    DISK_SOME,    /* any of the changes; of a write any of its sectors */
    DISK_ORDERED, /* the first few names, in order, and any of the writes */
    DISK_LOSSES
} disk_loss;

extern const char *const disk_losses[];

/* Makes `folder`, which must not exist, as a loss of power after the first n changes leaves the folder of disk_watch. */
void disk_restore(const char *folder, int n, disk_loss loss, uint64_t seed);

#endif
