/* comm.c - messages, and the collective operations that are made of them. */
#include "comm/job.h"

#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPIN 2000     /* looks at a message before the thread yields */
#define PATIENCE 0.05 /* seconds of yielding before the thread sleeps between two looks */
#define NAP 200000    /* nanoseconds of such a sleep */
#define TAG_GATHER 1
#define TAG_BROADCAST 2

int rws__comm_rank(const rws_comm *c)
{
    return c ? c->rank : 0;
}

int rws__comm_size(const rws_comm *c)
{
    return c ? c->size : 1;
}

const char *rws__comm_describe(const rws_comm *c, int rank, char *out, size_t size)
{
    snprintf(out, size, "Rank %d on %s (process %d)", rank, c->members[rank].host, c->members[rank].pid);
    return out;
}

const rws_member *rws__comm_members(const rws_comm *c)
{
    return c->members;
}

/* ---- ranks that are gone */

static void (*teller)(const char *message);

void rws__comm_on_loss(void (*tell)(const char *message))
{
    teller = tell;
}

rws_status rws__comm_alive(const rws_comm *c, rws_error *err)
{
    char who[160];
    if (!c || !c->lost) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s %s; all ranks stop.", rws__comm_describe(c, c->lost - 1, who, sizeof who),
                    c->how);
}

void rws__comm_lost(rws_comm *c, int rank, const char *how)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    const bool first = !c->lost;
    rws_error  message;
    if (first) {
        snprintf(c->how, sizeof c->how, "%s", how);
        c->lost = rank + 1;
    }
    if (first) rws__comm_watch_tell(c->watch, rank);
    if (first && c->rank == (rank == 0) && teller && rws__comm_alive(c, &message) != RWS_OK) teller(message.text);
    pthread_mutex_unlock(&once);
}

/* ---- messages */

static void count_time(rws_comm *c, double since)
{
    c->nanoseconds += (uint64_t)(1e9 * (rws__clock_now() - since));
}

static rws_status message_failed(rws_comm *c, int other, rws_error *err)
{
    struct timespec moment = {0, 300000000}; /* the watch knows better what has happened, but a little later */
    nanosleep(&moment, NULL);
    rws__comm_lost(c, other, "cannot be reached");
    return rws__comm_alive(c, err);
}

/* Notes who is at the other end of a message. Without memory a failure of the message would name rank 0. */
static void note_other(rws_comm *c, int ticket, int other)
{
    if (ticket >= c->n_others) {
        const int n = 2 * ticket + 64;
        int      *longer = realloc(c->others, (size_t)n * sizeof *longer);
        if (!longer) return;
        memset(longer + c->n_others, 0, (size_t)(n - c->n_others) * sizeof *longer);
        c->others = longer;
        c->n_others = n;
    }
    c->others[ticket] = other;
}

rws_status rws__comm_check_size(size_t bytes, rws_error *err)
{
    if (bytes <= RWS_MAX_CARRIER_BYTES) return RWS_OK; /* a carrier counts bytes by an int */
    return rws_fail(err, RWS_BAD_INPUT,
                    "Ranks would exchange %zu bytes in one message, and at most %zu fit: take fewer particles, a "
                    "smaller batch or more shards.",
                    bytes, RWS_MAX_CARRIER_BYTES);
}

static rws_status start(rws_comm *c, bool sends, int other, rws_channel channel, int tag, void *data, size_t bytes,
                        rws_transfer *out, rws_error *err)
{
    const double since = rws__clock_now();
    RWS_TRY(rws__comm_alive(c, err));
    RWS_TRY(rws__comm_check_size(bytes, err));
    pthread_mutex_lock(&c->lock);
    *out = sends ? c->carrier->send(data, bytes, other, channel, tag)
                 : c->carrier->receive(data, bytes, other, channel, tag);
    if (*out >= 0) note_other(c, *out, other);
    if (channel == RWS_CHANNEL_SLICES) c->carrier->progress();
    pthread_mutex_unlock(&c->lock);
    if (sends) {
        c->bytes += bytes;
        c->messages++;
    }
    count_time(c, since);
    return *out >= 0 ? RWS_OK : message_failed(c, other, err);
}

rws_status rws__comm_send(rws_comm *c, int to, int tag, const void *data, size_t bytes, rws_transfer *out,
                          rws_error *err)
{
    return start(c, true, to, RWS_CHANNEL_SLICES, tag, (void *)data, bytes, out, err);
}

rws_status rws__comm_receive(rws_comm *c, int from, int tag, void *data, size_t bytes, rws_transfer *out,
                             rws_error *err)
{
    return start(c, false, from, RWS_CHANNEL_SLICES, tag, data, bytes, out, err);
}

/* Waits for a while that grows with the time that was waited already. */
static void rest(const rws_comm *c, unsigned looks, double since)
{
    if (looks < SPIN && !c->crowded) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    } else if (looks % 64 || rws__clock_now() - since < PATIENCE) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){0, NAP}, NULL);
    }
}

rws_status rws__comm_wait(rws_comm *c, rws_transfer *list, int n, rws_error *err)
{
    const double since = rws__clock_now();
    rws_status   status = RWS_OK;
    for (int i = 0; i < n && status == RWS_OK; i++) {
        for (unsigned looks = 0; list[i] >= 0 && status == RWS_OK; looks++) {
            pthread_mutex_lock(&c->lock);
            const int done = c->carrier->test(list[i]), other = list[i] < c->n_others ? c->others[list[i]] : 0;
            pthread_mutex_unlock(&c->lock);
            if (done > 0) list[i] = -1;
            else if (done < 0) status = message_failed(c, other, err);
            else if (c->lost) status = rws__comm_alive(c, err);
            else rest(c, looks, since);
        }
    }
    count_time(c, since);
    return status;
}

/* ---- marks in shared memory */

void rws__comm_post(rws_comm *c, rws_mark *mark, unsigned value, size_t bytes, int n)
{
    atomic_store_explicit(mark, value, memory_order_release);
    c->bytes += bytes * (size_t)n;
    c->messages += (unsigned)n;
}

static bool has_come(const rws_mark *mark, unsigned value)
{
    return (int)(atomic_load_explicit(mark, memory_order_acquire) - value) >= 0;
}

rws_status rws__comm_await(rws_comm *c, const rws_mark *mark, unsigned value, rws_error *err)
{
    if (has_come(mark, value)) return RWS_OK;
    const double since = rws__clock_now();
    rws_status   status = RWS_OK;
    for (unsigned looks = 1; !has_come(mark, value) && status == RWS_OK; looks++) {
        if (looks % 64 == 0) {
            pthread_mutex_lock(&c->lock);
            c->carrier->progress();
            pthread_mutex_unlock(&c->lock);
        }
        if (c->lost) status = rws__comm_alive(c, err);
        else rest(c, looks, since);
    }
    count_time(c, since);
    return status;
}

/* ---- collective operations */

static rws_status exchange(rws_comm *c, int tag, int to, void *out, int from, void *in, size_t bytes, rws_error *err)
{
    rws_transfer both[2];
    RWS_TRY(start(c, false, from, RWS_CHANNEL_CONTROL, tag, in, bytes, &both[0], err));
    RWS_TRY(start(c, true, to, RWS_CHANNEL_CONTROL, tag, out, bytes, &both[1], err));
    return rws__comm_wait(c, both, 2, err);
}

/* In round k a rank has the blocks of 2^k ranks, from its own on, and gets as many more from the rank 2^k further. */
rws_status rws__comm_collect(rws_comm *c, char *blocks, size_t bytes, rws_error *err)
{
    const int R = c->size;
    for (int k = 1; k < R; k *= 2) {
        const int n = k < R - k ? k : R - k;
        RWS_TRY(exchange(c, TAG_GATHER, (c->rank - k + R) % R, blocks, (c->rank + k) % R, blocks + (size_t)k * bytes,
                         (size_t)n * bytes, err));
    }
    return RWS_OK;
}

/* The number of bytes that a rank has in the piece of n bytes behind the first `done` ones. */
static size_t bytes_in_piece(const size_t *start, int rank, size_t done, size_t n)
{
    const size_t bytes = start[rank + 1] - start[rank], left = bytes > done ? bytes - done : 0;
    return left < n ? left : n;
}

/* Piece by piece through a buffer of the job, so that a rank needs no memory that it may not get. */
rws_status rws__comm_gather_blocks(rws_comm *c, void *all, const size_t *start, rws_error *err)
{
    const int R = c->size;
    char     *bytes = all;
    size_t    most = 0;
    for (int i = 0; i < R; i++) most = start[i + 1] - start[i] > most ? start[i + 1] - start[i] : most;
    for (size_t done = 0, n; done < most; done += n) {
        n = most - done < RWS_COMM_PIECE ? most - done : RWS_COMM_PIECE;
        memcpy(c->gathered, bytes + start[c->rank] + done, bytes_in_piece(start, c->rank, done, n));
        RWS_TRY(rws__comm_collect(c, c->gathered, n, err));
        for (int i = 1; i < R; i++) {
            const int rank = (c->rank + i) % R;
            memcpy(bytes + start[rank] + done, c->gathered + (size_t)i * n, bytes_in_piece(start, rank, done, n));
        }
    }
    return RWS_OK;
}

rws_status rws__comm_gather(rws_comm *c, const void *mine, size_t bytes, void *all, rws_error *err)
{
    size_t start[c->size + 1];
    for (int i = 0; i <= c->size; i++) start[i] = (size_t)i * bytes;
    memcpy((char *)all + start[c->rank], mine, bytes);
    return rws__comm_gather_blocks(c, all, start, err);
}

/* A binomial tree over the ranks as they are counted from the root: rank r gets it from r without its lowest bit, and
 * passes it on to r + 1, r + 2, r + 4, … below that bit. */
static rws_status broadcast(rws_comm *c, int root, char *data, size_t bytes, rws_error *err)
{
    const int    R = c->size, rank = (c->rank - root + R) % R;
    rws_transfer t;
    int          bit = 1;
    while (bit < R && !(rank & bit)) bit *= 2;
    if (rank) {
        RWS_TRY(start(c, false, (rank - bit + root) % R, RWS_CHANNEL_CONTROL, TAG_BROADCAST, data, bytes, &t, err));
        RWS_TRY(rws__comm_wait(c, &t, 1, err));
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        if (rank + bit >= R) continue;
        RWS_TRY(start(c, true, (rank + bit + root) % R, RWS_CHANNEL_CONTROL, TAG_BROADCAST, data, bytes, &t, err));
        RWS_TRY(rws__comm_wait(c, &t, 1, err));
    }
    return RWS_OK;
}

rws_status rws__comm_broadcast_from(rws_comm *c, int root, void *data, size_t bytes, rws_error *err)
{
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < RWS_MAX_CARRIER_BYTES ? bytes - done : RWS_MAX_CARRIER_BYTES;
        RWS_TRY(broadcast(c, root, (char *)data + done, n, err));
    }
    return RWS_OK;
}

rws_status rws__comm_broadcast(rws_comm *c, void *data, size_t bytes, rws_error *err)
{
    return rws__comm_broadcast_from(c, 0, data, bytes, err);
}

rws_status rws__comm_agree(rws_comm *c, rws_status status, rws_error *err)
{
    if (!c) return status;
    int       mine = status, all[c->size], first = 0;
    rws_error text = {{0}};
    char      who[160];
    if (status != RWS_OK && err) text = *err;
    RWS_TRY(rws__comm_gather(c, &mine, sizeof mine, all, err));
    while (first < c->size && all[first] == RWS_OK) first++;
    if (first == c->size) return RWS_OK;
    RWS_TRY(rws__comm_broadcast_from(c, first, &text, sizeof text, err));
    if (first == 0) return rws_fail(err, (rws_status)all[0], "%s", text.text);
    return rws_fail(err, (rws_status)all[first], "%s: %.300s", rws__comm_describe(c, first, who, sizeof who),
                    text.text);
}

rws_comm_stats rws__comm_take_stats(rws_comm *c)
{
    if (!c) return (rws_comm_stats){0};
    return (rws_comm_stats){1e-9 * (double)atomic_exchange(&c->nanoseconds, 0), atomic_exchange(&c->bytes, 0),
                            atomic_exchange(&c->messages, 0)};
}
