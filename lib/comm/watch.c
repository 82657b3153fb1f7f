/* watch.c - notices a rank that is gone: killed, ended, or cut off from the network.
 *
 *     rank 0 --.
 *     rank 1 --+--> guard, a process beside rank 0        a byte each way every second
 *     rank 2 --'
 *
 * MPI by itself may wait for minutes, or for ever. Each rank has a connection to the guard (rank 0 a local one, the
 * others TCP on the network that the ranks share) and a thread that sends and hears a byte every second. A connection
 * that ends without a goodbye, or that is silent for SILENCE seconds, is a rank that is gone: the guard tells the user
 * and the other ranks which one, and every wait of comm.c ends with the message that names it.
 *
 * The guard is a process of its own, in a session of its own, because launchers kill all ranks as soon as one has died,
 * often before a rank has found out which one. The guard outlives the ranks until it has named the one that ended
 * first: the kernel keeps the ends of connections in the order in which they came (epoll), however late the guard gets
 * to run. It is forked before MPI is opened, since MPI does not like processes that fork, and has nothing to do with
 * MPI.
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
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEAT 1.0    /* seconds between two bytes */
#define SILENCE 5.0 /* seconds without a byte after which a rank is gone */
#define PAUSE 3.0   /* seconds that this thread itself may have stood still (a suspended job) without blaming others */
#define MAX_CONNECT_SECONDS 10.0 /* seconds until all ranks must be connected */
#define TICK 250                 /* milliseconds between two looks at the clock */
#define LAST 10.0                /* seconds that the guard waits for the other ranks to end after one is gone */
#define ADDRESSES 16

enum { BEATS = 'b', GOODBYE = 'e', GONE = 'g', START = 's' };

/* A connection between a rank and the guard, at either end. */
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
    line        guard;
    pthread_t   thread;
    atomic_bool stop;
    int         wake[2]; /* a pipe that lets the thread begin, and ends its poll */
    bool        begun;   /* there is a thread */
    pid_t       process; /* the guard's, on rank 0; else 0 */
};

/* Where the guard listens. */
typedef struct {
    uint64_t cookie; /* strangers do not know it */
    uint32_t address[ADDRESSES];
    int      n;
    uint16_t port;
    bool     listens;
} invitation;

struct rws_comm_guard {
    invitation invitation;
    int        socket; /* to the guard */
    pid_t      process;
};

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

/* Connects to the guard at one of its addresses; -1 if none answers in the right way. */
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

/* ---- the guard */

typedef struct {
    rws_comm *comm; /* the copy of rank 0's that the guard has */
    line     *lines;
    int       n;    /* ranks */
    int       ends; /* epoll: connections that have ended */
    int       lost; /* -1: no rank */
    double    lost_at;
} guard;

/* Tells the user, and all ranks. The first loss counts: launchers end the other ranks after it. */
static void lose(guard *g, int rank, const char *how)
{
    if (g->lost >= 0 || rank < 0 || rank >= g->n) return;
    g->lost = rank;
    g->lost_at = rws__clock_now();
    rws__comm_lost(g->comm, rank, how);
    for (int i = 0; i < g->n; i++) say_gone(&g->lines[i], rank);
}

static void listen_to(guard *g, line *l)
{
    int        gone = -1;
    const bool lives = hear(l, &gone);
    if (gone >= 0) lose(g, gone, "cannot be reached");
    if (lives) return;
    hang_up(l);
    if (!l->goodbye) lose(g, l->rank, "has ended unexpectedly");
}

/* A job may be suspended as a whole, without its guard: rank 0, beside it, is then silent as well. */
static void check_silence(guard *g, double now, bool paused)
{
    const bool suspended = paused || (g->lines[0].socket >= 0 && now - g->lines[0].heard > 2 * BEAT);
    for (int i = 0; i < g->n; i++) {
        line *l = &g->lines[i];
        if (suspended && i > 0) l->heard = now;
        if (i == 0 || l->socket < 0 || now - l->heard <= SILENCE) continue;
        hang_up(l);
        lose(g, l->rank, "has not been heard of for 5 seconds");
    }
}

static int n_connected(const guard *g)
{
    int n = 0;
    for (int i = 0; i < g->n; i++) n += g->lines[i].socket >= 0;
    return n;
}

static void stand_guard(guard *g)
{
    struct epoll_event events[64];
    double             last = rws__clock_now(), beat = 0;
    for (int i = 0; i < g->n; i++) {
        struct epoll_event e = {.events = EPOLLRDHUP, .data.u32 = (uint32_t)i};
        g->lines[i].heard = last;
        epoll_ctl(g->ends, EPOLL_CTL_ADD, g->lines[i].socket, &e);
    }
    while (n_connected(g) && (g->lost < 0 || last - g->lost_at < LAST)) {
        const int    n = epoll_wait(g->ends, events, 64, TICK);
        const double now = rws__clock_now();
        for (int i = 0; i < n; i++)
            if (g->lines[events[i].data.u32].socket >= 0) listen_to(g, &g->lines[events[i].data.u32]);
        if (n == 64) continue; /* there may be more, which have ended before anything below */
        for (int i = 0; i < g->n; i++)
            if (g->lines[i].socket >= 0) listen_to(g, &g->lines[i]);
        check_silence(g, now, now - last > PAUSE);
        last = now;
        if (now - beat < BEAT) continue;
        beat = now;
        for (int i = 0; i < g->n; i++) say(&g->lines[i], &(uint8_t){BEATS}, 1);
    }
}

/* Takes in the other ranks as they come; false: not all do. */
static bool accept_all(guard *g, int listening, const invitation *i)
{
    const double since = rws__clock_now();
    int          missing = g->n - 1;
    while (missing > 0 && rws__clock_now() - since < MAX_CONNECT_SECONDS) {
        struct pollfd polls[2] = {{.fd = listening, .events = POLLIN}, {.fd = g->lines[0].socket, .events = POLLIN}};
        poll(polls, 2, TICK);
        if (polls[1].revents) return false; /* rank 0 says nothing until all are there: it has ended */
        if (!polls[0].revents) continue;
        const int      s = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        greeting       hello;
        const uint64_t answer = ~i->cookie;
        if (s < 0) continue;
        if (ready(s, POLLIN, 2) && recv(s, &hello, sizeof hello, 0) == sizeof hello && hello.cookie == i->cookie &&
            hello.rank > 0 && hello.rank < g->n && g->lines[hello.rank].socket < 0 &&
            send(s, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer) {
            set_up(s);
            g->lines[hello.rank].socket = s;
            missing--;
        } else {
            close(s);
        }
    }
    return !missing;
}

static bool read_all(int socket, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = read(socket, (char *)to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* A connection per rank may be more than a process usually opens. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* What `ps` shows, in place of the arguments of rank 0. */
static void set_title(int process)
{
    char  text[1024], *at;
    FILE *f = fopen("/proc/self/stat", "re");
    if (!f) return;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    unsigned long first = 0, end = 0;
    at = strrchr(text, ')');
    for (int field = 2; at && field < 48; field++) at = strchr(at + 1, ' '); /* 48 and 49: see proc(5) */
    if (!at || sscanf(at, " %lu %lu", &first, &end) != 2 || end <= first) return;
    memset((void *)first, 0, end - first);
    snprintf((char *)first, end - first, "rws: guard of the ranks of process %d", process);
    prctl(PR_SET_NAME, "rws-guard");
}

/* Only stderr, the connection to rank 0 and the listening socket stay open: launchers look at the end of others. */
static void leave_rank(int *socket, int *listening)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP};
    const int        nothing = open("/dev/null", O_RDWR);
    setsid();
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    int       high = *socket > *listening ? *socket : *listening;
    const int one = fcntl(*socket, F_DUPFD, high + 1), two = fcntl(*listening, F_DUPFD, high + 1);
    for (int i = 0; i < 2 && nothing >= 0; i++) dup2(nothing, i);
    *socket = dup2(one, 3);
    *listening = dup2(two, 4);
    close_range(5, ~0u, 0);
}

static _Noreturn void be_guard(rws_comm *c, int socket, int listening, const invitation *i)
{
    const int rank0 = (int)getppid();
    guard     g = {.comm = c, .lost = -1};
    uint8_t   word = 0;
    leave_rank(&socket, &listening);
    set_title(rank0);
    raise_limit();
    if (!read_all(socket, &g.n, sizeof g.n) || g.n < 2) _exit(0); /* no guard is needed */
    rws_member *members = calloc((size_t)g.n, sizeof *members);
    g.lines = calloc((size_t)g.n, sizeof *g.lines);
    if (!members || !g.lines || !read_all(socket, members, (size_t)g.n * sizeof *members)) _exit(1);
    rws__comm_become_guard(c, g.n, members);
    for (int k = 0; k < g.n; k++) g.lines[k] = (line){.socket = k ? -1 : socket, .rank = k};
    g.ends = epoll_create1(EPOLL_CLOEXEC);
    if (!accept_all(&g, listening, i) || g.ends < 0) _exit(1);
    close(listening);
    if (!read_all(socket, &word, 1) || word != START) _exit(0); /* a rank could not connect */
    stand_guard(&g);
    _exit(0);
}

rws_comm_guard *rws__comm_guard_start(rws_comm *c)
{
    rws_comm_guard *g = calloc(1, sizeof *g);
    int             ends[2] = {-1, -1};
    if (!g) return NULL;
    g->process = -1;
    const int listening = listen_here(&g->invitation);
    if (g->invitation.listens && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        fflush(NULL); /* nothing is printed twice */
        g->process = fork();
        if (g->process == 0) be_guard(c, ends[1], listening, &g->invitation);
    }
    if (listening >= 0) close(listening);
    if (ends[1] >= 0) close(ends[1]);
    g->socket = ends[0];
    if (g->process > 0) return g;
    if (ends[0] >= 0) close(ends[0]);
    free(g);
    return NULL;
}

void rws__comm_guard_drop(rws_comm_guard *g)
{
    if (!g) return;
    close(g->socket);
    waitpid(g->process, NULL, 0);
    free(g);
}

/* ---- the thread of a rank */

/* The thread is made before the ranks agree that all of them watch, and waits for what they agree on. */
static void *listen_to_guard(void *context)
{
    rws_comm_watch *w = context;
    char            begin;
    if (TEMP_FAILURE_RETRY(read(w->wake[0], &begin, 1)) != 1) return NULL;
    double last = rws__clock_now(), beat = 0;
    w->guard.heard = last;
    while (!w->stop) {
        struct pollfd polls[2] = {{.fd = w->guard.socket, .events = POLLIN}, {.fd = w->wake[0], .events = POLLIN}};
        poll(polls, 2, TICK);
        const double now = rws__clock_now();
        if (now - last > PAUSE) w->guard.heard = now; /* this process was suspended, and the guard may have been */
        last = now;
        if (w->guard.socket < 0) continue;
        int        gone = -1;
        const bool lives = hear(&w->guard, &gone);
        if (gone >= 0 && gone < rws__comm_size(w->comm)) rws__comm_lost(w->comm, gone, "is gone");
        if (!lives || now - w->guard.heard > SILENCE) {
            hang_up(&w->guard);
            rws__comm_lost(w->comm, 0,
                           lives ? "has not been heard of for 5 seconds"
                                 : "or the guard beside it, which watches over the ranks, has ended unexpectedly");
        }
        if (now - beat < BEAT) continue;
        beat = now;
        say(&w->guard, &(uint8_t){BEATS}, 1);
    }
    return NULL;
}

bool rws__comm_watch_tell(rws_comm_watch *w, int rank)
{
    if (!w || w->guard.socket < 0) return false;
    say_gone(&w->guard, rank);
    return true;
}

/* Rank 0 tells the guard who the ranks are. */
static bool introduce_all(const rws_comm *c, const rws_comm_guard *g)
{
    const int    n = rws__comm_size(c);
    const size_t bytes = (size_t)n * sizeof(rws_member);
    return g && send(g->socket, &n, sizeof n, MSG_NOSIGNAL) == sizeof n &&
           send(g->socket, rws__comm_members(c), bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

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
    hang_up(&w->guard);
    if (w->process > 0) waitpid(w->process, NULL, 0);
    for (int i = 0; i < 2; i++)
        if (w->wake[i] > 0) close(w->wake[i]);
    free(w);
}

/* NULL: there is no memory, or no pipe. */
static rws_comm_watch *watch_new(rws_comm *c)
{
    rws_comm_watch *w = calloc(1, sizeof *w);
    if (w && pipe2(w->wake, O_CLOEXEC) != 0) {
        free(w);
        return NULL;
    }
    if (!w) return NULL;
    w->comm = c;
    w->guard = (line){.socket = -1};
    return w;
}

rws_status rws__comm_watch_start(rws_comm *c, rws_comm_guard *g, rws_comm_watch **out, rws_error *err)
{
    const int       rank = rws__comm_rank(c), R = rws__comm_size(c);
    rws_comm_watch *w = watch_new(c);
    invitation      i = {0};
    int             all[R], mine;
    *out = NULL;
    if (w && rank == 0 && introduce_all(c, g)) i = g->invitation;
    rws_status status = rws__comm_broadcast(c, &i, sizeof i, err);
    if (w && rank == 0 && g) {
        w->guard.socket = g->socket;
        w->process = g->process;
        free(g);
    } else {
        rws__comm_guard_drop(g);
        if (w && status == RWS_OK && i.listens) w->guard.socket = connect_to(&i, rank);
    }
    /* A rank that lacks anything for the watch says so here, and then no rank watches. */
    mine = w && w->guard.socket >= 0;
    if (mine) mine = w->begun = pthread_create(&w->thread, NULL, listen_to_guard, w) == 0;
    if (status == RWS_OK) status = rws__comm_gather(c, &mine, sizeof mine, all, err);
    for (int k = 0; k < R && mine && status == RWS_OK; k++) mine &= all[k];
    if (status != RWS_OK || !mine) {
        watch_free(w);
        return status;
    }
    if (rank == 0) say(&w->guard, &(uint8_t){START}, 1);
    wake(w);
    *out = w;
    return RWS_OK;
}

void rws__comm_watch_stop(rws_comm_watch *w)
{
    if (!w) return;
    /* What is said first: after it, the end of the connection is no news. */
    say(&w->guard, &(uint8_t){GOODBYE}, 1);
    watch_free(w);
}
