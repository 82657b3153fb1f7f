/* watch.c - notices a rank that is gone: killed, ended, or cut off from the network.
 *
 *     rank 1 --.
 *     rank 2 --+-- TCP --> rank 0        a byte each way every second
 *     rank 3 --'
 *
 * MPI by itself may wait for minutes, or for ever. Each rank has a connection to rank 0, on the network that the ranks
 * share, and a thread that sends and hears a byte every second. A connection that ends without a goodbye, or that is
 * silent for SILENCE seconds, is a rank that is gone: rank 0 tells the others which one, and every wait of comm.c ends
 * with the sentence that names it.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEAT 1.0    /* seconds between two bytes */
#define SILENCE 5.0 /* seconds without a byte after which a rank is gone */
#define PAUSE 3.0   /* seconds that this thread itself may have stood still (a suspended job) without blaming others */
#define CONNECT_MOST 10.0 /* seconds until all ranks must be connected */
#define ADDRESSES 16

enum { BEATS = 'b', GOODBYE = 'e', GONE = 'g' };

/* A connection, to rank 0 or, on rank 0, from another rank. */
typedef struct {
    int     socket; /* -1: none */
    int     rank;
    bool    goodbye; /* the other side ends in order */
    double  heard;
    uint8_t said[5]; /* an unfinished message: GONE and the number of a rank, 4 bytes */
    int     n_said;
} line;

struct rws_comm_watch {
    rws_comm   *comm;
    line       *lines;
    int         n;
    pthread_t   thread;
    atomic_bool stop;
    int         wake[2]; /* a pipe that ends the thread's poll */
};

/* Where rank 0 listens. */
typedef struct {
    uint64_t cookie; /* strangers do not know it */
    uint32_t address[ADDRESSES];
    int      n;
    uint16_t port;
    bool     listens;
} invitation;

/* What a rank says first. */
typedef struct {
    uint64_t cookie;
    int32_t  rank;
} greeting;

static void list_addresses(invitation *i)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (int loopback = 0; loopback < 2; loopback++) /* those of networks first */
        for (const struct ifaddrs *a = all; a && i->n < ADDRESSES; a = a->ifa_next)
            if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && a->ifa_flags & IFF_UP &&
                !(a->ifa_flags & IFF_LOOPBACK) == !loopback)
                i->address[i->n++] = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(all);
}

static int listen_here(invitation *i)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t          size = sizeof here;
    const int          s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    i->listens = s >= 0 && bind(s, (struct sockaddr *)&here, sizeof here) == 0 && listen(s, 4096) == 0 &&
                 getsockname(s, (struct sockaddr *)&here, &size) == 0 &&
                 getrandom(&i->cookie, sizeof i->cookie, 0) == sizeof i->cookie;
    i->port = here.sin_port;
    list_addresses(i);
    return s;
}

static bool ready(int socket, short events, double seconds)
{
    struct pollfd p = {.fd = socket, .events = events};
    return poll(&p, 1, (int)(1000 * seconds)) > 0;
}

static void set_up(int socket)
{
    const int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Connects to rank 0 at one of its addresses; -1 if none answers in the right way. */
static int connect_to(const invitation *i, int rank)
{
    for (int k = 0; k < i->n; k++) {
        struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = i->port, .sin_addr.s_addr = i->address[k]};
        const greeting     hello = {i->cookie, rank};
        uint64_t           answer = 0;
        int                error = 0;
        socklen_t          size = sizeof error;
        const int          s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s < 0) return -1;
        const bool on_the_way = connect(s, (struct sockaddr *)&there, sizeof there) == 0 || errno == EINPROGRESS;
        if (on_the_way && ready(s, POLLOUT, 2) && getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && !error &&
            send(s, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello && ready(s, POLLIN, 5) &&
            recv(s, &answer, sizeof answer, 0) == sizeof answer && answer == ~i->cookie) {
            set_up(s);
            return s;
        }
        close(s);
    }
    return -1;
}

/* Takes in the other ranks as they come. */
static void accept_all(rws_comm_watch *w, int listening, const invitation *i)
{
    const double since = rws_clock_now();
    for (int missing = w->n; missing > 0 && rws_clock_now() - since < CONNECT_MOST;) {
        if (!ready(listening, POLLIN, 0.2)) continue;
        const int      s = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        greeting       hello;
        const uint64_t answer = ~i->cookie;
        if (s < 0) continue;
        if (ready(s, POLLIN, 2) && recv(s, &hello, sizeof hello, 0) == sizeof hello && hello.cookie == i->cookie &&
            hello.rank > 0 && hello.rank <= w->n && w->lines[hello.rank - 1].socket < 0 &&
            send(s, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer) {
            set_up(s);
            w->lines[hello.rank - 1].socket = s;
            missing--;
        } else {
            close(s);
        }
    }
}

static void say(const line *l, const void *bytes, size_t n)
{
    if (l->socket >= 0) (void)!send(l->socket, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Rank 0 tells all others. */
static void tell_gone(rws_comm_watch *w, int rank)
{
    uint8_t       message[5] = {GONE};
    const int32_t number = rank;
    memcpy(message + 1, &number, 4);
    for (int i = 0; i < w->n && rws_comm_rank(w->comm) == 0; i++)
        if (w->lines[i].rank != rank) say(&w->lines[i], message, sizeof message);
}

static void gone(rws_comm_watch *w, line *l, const char *how)
{
    close(l->socket);
    l->socket = -1;
    if (l->goodbye) return;
    rws_comm_lost(w->comm, l->rank, how);
    tell_gone(w, l->rank);
}

static void hear(rws_comm_watch *w, line *l)
{
    uint8_t       bytes[256];
    const ssize_t n = recv(l->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        gone(w, l, "has ended unexpectedly");
        return;
    }
    l->heard = rws_clock_now();
    for (ssize_t i = 0; i < n; i++) {
        if (l->n_said == 0 && bytes[i] == GOODBYE) l->goodbye = true;
        if (l->n_said == 0 && bytes[i] != GONE) continue;
        l->said[l->n_said++] = bytes[i];
        if (l->n_said < 5) continue;
        int32_t rank;
        memcpy(&rank, l->said + 1, 4);
        l->n_said = 0;
        if (rank >= 0 && rank < rws_comm_size(w->comm)) rws_comm_lost(w->comm, rank, "is gone");
    }
}

static void *listen_to_all(void *context)
{
    rws_comm_watch *w = context;
    struct pollfd  *polls = calloc((size_t)w->n + 1, sizeof *polls);
    double          last = rws_clock_now(), beat = 0;
    while (polls && !w->stop) {
        for (int i = 0; i < w->n; i++) polls[i] = (struct pollfd){.fd = w->lines[i].socket, .events = POLLIN};
        polls[w->n] = (struct pollfd){.fd = w->wake[0], .events = POLLIN};
        poll(polls, (nfds_t)w->n + 1, 250);
        const double now = rws_clock_now();
        if (now - last > PAUSE)
            for (int i = 0; i < w->n; i++)
                w->lines[i].heard = now; /* this process was suspended, others may have been */
        last = now;
        for (int i = 0; i < w->n; i++)
            if (w->lines[i].socket >= 0 && polls[i].revents) hear(w, &w->lines[i]);
        for (int i = 0; i < w->n; i++)
            if (w->lines[i].socket >= 0 && now - w->lines[i].heard > SILENCE)
                gone(w, &w->lines[i], "has not been heard of for 5 seconds");
        if (now - beat < BEAT) continue;
        beat = now;
        for (int i = 0; i < w->n; i++) say(&w->lines[i], &(uint8_t){BEATS}, 1);
    }
    free(polls);
    return NULL;
}

static void watch_free(rws_comm_watch *w)
{
    for (int i = 0; i < w->n && w->lines; i++)
        if (w->lines[i].socket >= 0) close(w->lines[i].socket);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] > 0) close(w->wake[i]);
    free(w->lines);
    free(w);
}

/* A connection per rank may be more than a process usually opens. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* False: this rank has no connection. */
static bool connect_all(rws_comm_watch *w, int listening, const invitation *i)
{
    if (!i->listens) return false;
    if (rws_comm_rank(w->comm) == 0) accept_all(w, listening, i);
    else w->lines[0].socket = connect_to(i, rws_comm_rank(w->comm));
    bool all = true;
    for (int k = 0; k < w->n; k++) {
        all &= w->lines[k].socket >= 0;
        w->lines[k].heard = rws_clock_now();
    }
    return all;
}

rws_status rws_comm_watch_start(rws_comm *c, rws_comm_watch **out, rws_error *err)
{
    const int       rank = rws_comm_rank(c), R = rws_comm_size(c);
    rws_comm_watch *w = calloc(1, sizeof *w);
    invitation      i = {0};
    int             all[R], listening = -1, mine;
    *out = NULL;
    if (!w) return rws_no_memory(err, "the watch over the ranks");
    w->comm = c;
    w->n = rank ? 1 : R - 1;
    w->lines = calloc((size_t)w->n, sizeof *w->lines);
    if (!w->lines || pipe2(w->wake, O_CLOEXEC) != 0) {
        watch_free(w);
        return rws_no_memory(err, "the watch over the ranks");
    }
    for (int k = 0; k < w->n; k++) w->lines[k] = (line){.socket = -1, .rank = rank ? 0 : k + 1};
    if (rank == 0) raise_limit();
    if (rank == 0) listening = listen_here(&i);
    rws_status status = rws_comm_broadcast(c, &i, sizeof i, err);
    mine = status == RWS_OK && connect_all(w, listening, &i);
    if (listening >= 0) close(listening);
    if (status == RWS_OK) status = rws_comm_gather(c, &mine, sizeof mine, all, err);
    for (int k = 0; k < R && mine && status == RWS_OK; k++) mine &= all[k];
    if (status == RWS_OK && mine && pthread_create(&w->thread, NULL, listen_to_all, w) == 0) *out = w;
    else watch_free(w);
    return status;
}

void rws_comm_watch_stop(rws_comm_watch *w)
{
    if (!w) return;
    /* What is said first: after it, the end of the connection is no news. */
    for (int i = 0; i < w->n; i++) say(&w->lines[i], &(uint8_t){GOODBYE}, 1);
    w->stop = true;
    (void)!write(w->wake[1], "", 1);
    pthread_join(w->thread, NULL);
    watch_free(w);
}
