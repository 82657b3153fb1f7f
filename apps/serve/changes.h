/* changes.h - what has changed, numbered, for watchers that wait.
 *
 * One thread publishes; any number of threads wait for the next item. The last RWS_CHANGES_KEPT items are kept, so that a
 * watcher whose connection was lost continues where it was.
 *
 *     watching the folders -> [changes] -> server-sent events
 */
#ifndef RWS_SERVE_CHANGES_H
#define RWS_SERVE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { RWS_CHANGES_KEPT = 64 };

typedef struct rws_changes rws_changes;

/* Numbers begin after `before`. A server that is started again begins after all numbers of the server before it, so that a
 * watcher that comes with a number of that server has missed items, and is told so. NULL without memory. */
rws_changes *rws__changes_new(uint64_t before);
void         rws__changes_free(rws_changes *n);

/* Publishes a text, which is copied, and returns its number, one more than the latest. NULL stands for a text for which
 * there was no memory: watchers have missed it. */
uint64_t rws__changes_publish(rws_changes *n, const char *text);
uint64_t rws__changes_latest(rws_changes *n);

typedef enum { RWS_CHANGES_ITEM, RWS_CHANGES_NONE, RWS_CHANGES_MISSED, RWS_CHANGES_OVER } rws_changes_state;

/* Waits up to so many seconds for the item after number `after`. RWS_CHANGES_ITEM: *text is a copy of it, the caller's to
 * free, and *number its number. RWS_CHANGES_MISSED: it is no longer kept; *number is the latest. RWS_CHANGES_OVER: there will be
 * no more. */
rws_changes_state rws__changes_wait(rws_changes *n, uint64_t after, double seconds, uint64_t *number, char **text);

/* Wakes all watchers for good. */
void rws__changes_end(rws_changes *n);

#endif
