/* held.h - which runs are being trained on this machine.
 *
 * A trainer holds a lock on its folder (checkpoint.c). Trying the lock could turn away a trainer that starts at that moment, so
 * the kernel's list of locks is read instead. Locks that are held on other machines are not in this list. */
#ifndef RWS_STORE_HELD_H
#define RWS_STORE_HELD_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

typedef struct {
    ino_t *inodes; /* of everything that is locked by flock */
    int    n, capacity;
} rws_held;

/* Reads the list. What there is no memory for is left out. */
rws_held rws__held_read(void);
bool     rws__held_has(const rws_held *h, const char *folder);

/* Whether a process trains the run in the folder, which may be NULL. A run that another machine wrote last counts as trained for
 * two minutes after its store was written, at `written`. `host` is the machine that wrote it, or NULL. */
bool rws__held_trains(const rws_held *h, const char *folder, const char *host, time_t written);

void rws__held_free(rws_held *h);

#endif
