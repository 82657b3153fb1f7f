/* watch.c - notices a rank that is gone: killed, ended, or cut off from the network.
 *
 *     rank 1 --.
 *     rank 2 --+--> rank 0        a byte each way every second
 *     rank 3 --'
 *
 * MPI by itself may wait for minutes, or for ever, for a machine that is cut off. Each rank has a connection to rank 0 by
 * TCP, on the network that the ranks share, and a thread that sends and receives a byte every second. A connection that
 * ends without a goodbye, or that is silent for SILENCE seconds, is a rank that is gone: rank 0 tells the other ranks which
 * one, and every wait of comm.c ends with the message that names it. If rank 0 is gone, every rank notices it by itself.
 *
 * A launcher (mpirun, srun) names a rank that has died, too, and ends the others, perhaps before they have said so.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BEAT 1.0    /* seconds between two bytes */
#define SILENCE 5.0 /* seconds without a byte after which a rank is gone */
#define PAUSE 3.0   /* seconds that this thread itself may have stood still (a suspended job) without blaming others */
#define TICK 250    /* milliseconds between two looks at the clock */
#define ADDRESSES 16

enum { BEATS = 'b', GOODBYE = 'e', GONE = 'g' };

/* A connection between a rank and rank 0, at either end. */
typedef struct {
    int     socket;  /* -1: none */
    int     rank;    /* at the other end */
    bool    goodbye; /* the other side ends in order */
    double  heard;
    uint8_t said[5]; /* an unfinished message: GONE and the number of a rank, 4 bytes */
    int     n_said;
} line;

/* The addresses and the port at which rank 0 listens. */
typedef struct {
    uint64_t cookie; /* a number that other programs do not know */
    uint32_t address[ADDRESSES];
    int      n;
    uint16_t port;
    bool     listens;
} invitation;

struct rws_comm_watch {
    rws_comm   *comm;
    line       *lines;     /* of rank 0: one for each rank, its own unused; of another rank: the one to rank 0 */
    int         n;         /* lines */
    int         listening; /* of rank 0, until all ranks are connected; else -1 */
    invitation  invitation;
    pthread_t   thread;
    atomic_bool stop;
    int         wake[2]; /* a pipe that lets the thread begin, and ends its poll */
    bool        begun;   /* there is a thread */
};

/* The first message of a rank. */
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

/* ---- both ends of a connection */

static void say(const line *l, const void *bytes, size_t n)
{
    if (l->socket >= 0) (void)!send(l->socket, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_gone(const line *l, int rank)
{
    uint8_t       message[5] = {GONE};
    const int32_t number = rank;
    memcpy(message + 1, &number, 4);
    say(l, message, sizeof message);
}

static void hang_up(line *l)
{
    if (l->socket >= 0) close(l->socket);
    l->socket = -1;
}

/* Takes in what was said; false: the connection has ended. *gone becomes the number of a rank, if one is said to be. */
static bool hear(line *l, int *gone)
{
    uint8_t bytes[256];
    for (;;) {
        const ssize_t n = recv(l->socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return true;
        if (n <= 0) return false;
        l->heard = rws__clock_now();
        for (ssize_t i = 0; i < n; i++) {
            if (l->n_said == 0 && bytes[i] == GOODBYE) l->goodbye = true;
            if (l->n_said == 0 && bytes[i] != GONE) continue;
            l->said[l->n_said++] = bytes[i];
            if (l->n_said < 5) continue;
            int32_t rank;
            memcpy(&rank, l->said + 1, 4);
            l->n_said = 0;
            *gone = rank;
        }
    }
}

/* ---- the thread of a rank */

static void watch_line(rws_comm_watch *w, line *l, double now)
{
    int        gone = -1;
    const bool lives = hear(l, &gone);
    if (gone >= 0 && gone < rws__comm_size(w->comm)) rws__comm_lost(w->comm, gone, "is gone");
    if (lives && now - l->heard <= SILENCE) return;
    if (lives) rws__comm_lost(w->comm, l->rank, "has not been heard of for 5 seconds");
    else if (!l->goodbye) rws__comm_lost(w->comm, l->rank, "has ended unexpectedly");
    hang_up(l); /* after a silent rank was told that it is taken for gone */
}

/* A connection per rank may be more than a process usually opens. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* On rank 0: takes in the other ranks as they come, until all have or the thread is woken. */
static void accept_all(rws_comm_watch *w)
{
    int missing = w->n - 1;
    raise_limit();
    while (missing > 0) {
        struct pollfd polls[2] = {{.fd = w->listening, .events = POLLIN}, {.fd = w->wake[0], .events = POLLIN}};
        poll(polls, 2, -1);
        if (polls[1].revents) return; /* a rank could not connect */
        const int      s = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        greeting       hello;
        const uint64_t answer = ~w->invitation.cookie;
        if (s < 0) continue;
        if (ready(s, POLLIN, 2) && recv(s, &hello, sizeof hello, 0) == sizeof hello &&
            hello.cookie == w->invitation.cookie && hello.rank > 0 && hello.rank < w->n &&
            w->lines[hello.rank].socket < 0 && send(s, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer) {
            set_up(s);
            w->lines[hello.rank].socket = s;
            missing--;
        } else {
            close(s);
        }
    }
}

/* Waits until a connection has something to say, the thread is woken, or it is time to look at the clock. */
static void wait_for_lines(rws_comm_watch *w, struct pollfd *polls)
{
    for (int i = 0; i < w->n; i++) polls[i] = (struct pollfd){.fd = w->lines[i].socket, .events = POLLIN};
    polls[w->n] = (struct pollfd){.fd = w->wake[0], .events = POLLIN};
    poll(polls, (nfds_t)w->n + 1, TICK);
}

/* The thread is made before the ranks agree that all of them watch, and waits for what they agree on. */
static void *watch(void *context)
{
    rws_comm_watch *w = context;
    char            begin;
    if (w->listening >= 0) accept_all(w);
    if (TEMP_FAILURE_RETRY(read(w->wake[0], &begin, 1)) != 1) return NULL;
    struct pollfd polls[w->n + 1];
    double        last = rws__clock_now(), beat = 0;
    for (int i = 0; i < w->n; i++) w->lines[i].heard = last;
    while (!w->stop) {
        wait_for_lines(w, polls);
        const double now = rws__clock_now();
        for (int i = 0; i < w->n; i++) {
            if (now - last > PAUSE) w->lines[i].heard = now; /* this process was suspended, and others may have been */
            if (w->lines[i].socket >= 0) watch_line(w, &w->lines[i], now);
            if (now - beat >= BEAT) say(&w->lines[i], &(uint8_t){BEATS}, 1);
        }
        if (now - beat >= BEAT) beat = now;
        last = now;
    }
    return NULL;
}

void rws__comm_watch_tell(rws_comm_watch *w, int rank)
{
    for (int i = 0; w && i < w->n; i++) say_gone(&w->lines[i], rank);
}

/* ---- beginning and end */

/* Wakes the thread, which begins, or ends if it is to stop. */
static void wake(rws_comm_watch *w)
{
    (void)!TEMP_FAILURE_RETRY(write(w->wake[1], "", 1));
}

static void watch_free(rws_comm_watch *w)
{
    if (!w) return;
    if (w->begun) {
        w->stop = true;
        wake(w);
        pthread_join(w->thread, NULL);
    }
    for (int i = 0; i < w->n; i++) hang_up(&w->lines[i]);
    if (w->listening >= 0) close(w->listening);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] > 0) close(w->wake[i]);
    free(w->lines);
    free(w);
}

/* NULL: there is no memory, or no pipe. */
static rws_comm_watch *watch_new(rws_comm *c)
{
    const int       rank = rws__comm_rank(c), n = rank == 0 ? rws__comm_size(c) : 1;
    rws_comm_watch *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->comm = c;
    w->listening = -1;
    w->lines = calloc((size_t)n, sizeof *w->lines);
    if (!w->lines || pipe2(w->wake, O_CLOEXEC) != 0) {
        free(w->lines);
        free(w);
        return NULL;
    }
    w->n = n;
    for (int i = 0; i < n; i++) w->lines[i] = (line){.socket = -1, .rank = i};
    if (rank == 0) w->listening = listen_here(&w->invitation);
    return w;
}

rws_status rws__comm_watch_start(rws_comm *c, rws_comm_watch **out, rws_error *err)
{
    const int       rank = rws__comm_rank(c), R = rws__comm_size(c);
    rws_comm_watch *w = watch_new(c);
    invitation      i = w && rank == 0 ? w->invitation : (invitation){0};
    int             all[R], mine;
    *out = NULL;
    rws_status status = rws__comm_broadcast(c, &i, sizeof i, err);
    mine = w && i.listens && status == RWS_OK;
    if (mine && rank > 0) mine = (w->lines[0].socket = connect_to(&i, rank)) >= 0;
    /* A rank that lacks anything for the watch says so here, and then no rank watches. */
    if (mine) mine = w->begun = pthread_create(&w->thread, NULL, watch, w) == 0;
    if (status == RWS_OK) status = rws__comm_gather(c, &mine, sizeof mine, all, err);
    for (int k = 0; k < R && mine && status == RWS_OK; k++) mine &= all[k];
    if (status != RWS_OK || !mine) {
        watch_free(w);
        return status;
    }
    wake(w);
    *out = w;
    return RWS_OK;
}

void rws__comm_watch_stop(rws_comm_watch *w)
{
    /* After a goodbye the end of a connection is in order. */
    for (int i = 0; w && i < w->n; i++) say(&w->lines[i], &(uint8_t){GOODBYE}, 1);
    watch_free(w);
}
