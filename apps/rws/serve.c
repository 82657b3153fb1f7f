/* serve.c - rws serve: a page and an API that show, compare and ask runs.
 *
 *     parent: socket, token, address on stdout; starts the child again after a crash
 *        '-- child: the server (apps/serve), until SIGTERM
 *
 * A request that crashes the server takes the requests of that moment with it, and no more: the parent has the socket,
 * so that the next connections wait in its queue until the new child accepts them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "rws/output.h"
#include "serve/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KEY_LISTEN = 0x2000,
    KEY_TOKEN,
    KEY_HOST,
    KEY_OPEN,
    KEY_THREADS,
    KEY_MODEL,
    KEY_CHANGED,
    KEY_PARTICLES,
    KEY_SECONDS,
    KEY_MEMORY
};
enum { MAX_FOLDERS = 256, MAX_NAMES = 16 };

typedef struct {
    rws_serve_options serve;
    const char       *folders[MAX_FOLDERS], *names[MAX_NAMES], *models[MAX_NAMES];
    const char       *address;
    uint64_t          port, threads, particles, memory;
    double            seconds;
    bool              wants_token, open;
    char              token[33];
} session;

/* ---- options */

static error_t add(const struct argp_state *state, const char **list, int *n, int most, const char *what,
                   const char *arg)
{
    if (*n == most) return rws__arguments_fail(state, "%s can be given %d times at most.", what, most);
    list[(*n)++] = arg;
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    session *s = state->input;
    switch (key) {
    case 'p': return rws__arguments_count(state, "--port", arg, 0, 65535, &s->port);
    case KEY_LISTEN: s->address = arg; return 0;
    case KEY_TOKEN: s->wants_token = true; return 0;
    case KEY_HOST: return add(state, s->names, &s->serve.n_names, MAX_NAMES, "--host", arg);
    case KEY_OPEN: s->open = true; return 0;
    case KEY_THREADS: return rws__arguments_count(state, "--threads", arg, 1, 256, &s->threads);
    case KEY_MODEL: return add(state, s->models, &s->serve.n_models, MAX_NAMES, "--model", arg);
    case KEY_CHANGED: s->serve.changed = true; return 0;
    case KEY_PARTICLES: return rws__arguments_count(state, "--max-particles", arg, 1, RWS_MAX_PARTICLES, &s->particles);
    case KEY_SECONDS: return rws__arguments_real(state, "--max-seconds", arg, 0.1, 3600, &s->seconds);
    case KEY_MEMORY: return rws__arguments_count(state, "--max-memory", arg, 1, 1 << 20, &s->memory);
    case ARGP_KEY_ARG: return add(state, s->folders, &s->serve.n_folders, MAX_FOLDERS, "A folder", arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"port", 'p', "N", 0, "The port (default: 8765, or any that is free; 0: any that is free)", 1},
            {"open", KEY_OPEN, 0, 0, "Open the page in a browser", 1},
            {"threads", KEY_THREADS, "N", 0, "Questions that are answered at a time (default: one per core)", 1},
            {"listen", KEY_LISTEN, "ADDRESS", 0,
             "Listen on this address of the machine, such as 0.0.0.0, instead of 127.0.0.1; clients then need the "
             "token "
             "that is printed",
             2},
            {"token", KEY_TOKEN, 0, 0, "Clients need a token on 127.0.0.1 too", 2},
            {"host", KEY_HOST, "NAME", 0,
             "A further name of this machine in the addresses that browsers use; may be repeated", 2},
            {"model", KEY_MODEL, "PATH", 0,
             "A shared object that may be loaded to ask the runs that were trained with it; may be repeated", 2},
            {"changed", KEY_CHANGED, 0, 0, "Accept shared objects that have changed since their runs began", 2},
            {"max-particles", KEY_PARTICLES, "N", 0, "Most particles of a question (100000)", 2},
            {"max-seconds", KEY_SECONDS, "S", 0, "Most seconds that a question takes (30)", 2},
            {"max-memory", KEY_MEMORY, "MB", 0, "Most memory of all answers that clients have not read yet (512)", 2},
            {0},
        },
    .parser = parse,
    .args_doc = "[PATH...]",
    .doc =
        "Shows runs in a browser while they train, compares them, and asks them; other programs use the same over HTTP "
        "as JSON. PATH is as for `rws runs`, without exported files. Prints the address of the page. Ctrl-C ends it.",
};

#ifdef RWS_SERVE

enum { USUAL_PORT = 8765, MAX_CRASHES = 5 };
#define DRAIN_SECONDS 10.0 /* beyond the longest question */
#define END_SECONDS 2      /* after that, for a store that is being read */

/* ---- the child: one thread opens the server, the other waits for signals, so that a store that takes long delays none
 * */

typedef struct {
    const session        *session;
    int                   socket, pipe;
    _Atomic(rws_server *) server; /* NULL until it is open */
} serving;

/* Tells the parent how it went: an empty line, or the message of the failure. */
static void tell(int pipe, const char *message)
{
    const ssize_t n = write(pipe, message, strlen(message));
    if (n >= 0 && write(pipe, "\n", 1) < 0) return;
    close(pipe);
}

static void *open_server(void *context)
{
    serving         *c = context;
    rws_server      *server;
    rws_error        err = {""};
    const rws_status status = rws__server_new(&c->session->serve, c->socket, (int)c->session->port, &server, &err);
    c->server = server;
    tell(c->pipe, status == RWS_OK ? "" : err.text);
    if (status != RWS_OK) _exit(status == RWS_NO_MEMORY ? 1 : 2);
    return NULL;
}

static _Noreturn void serve(const session *s, int socket, int pipe, const sigset_t *signals)
{
    serving   c = {.session = s, .socket = socket, .pipe = pipe};
    pthread_t opener;
    int       number;
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 18); /* answers that are freed leave the process, whichever thread had them */
#endif
    if (pthread_create(&opener, NULL, open_server, &c) != 0) _exit(1);
    while (sigwait(signals, &number) == 0 && number != SIGINT && number != SIGTERM) continue;
    rws_server *server = c.server;
    if (!server) _exit(0);
    rws__server_drain(server, s->seconds + DRAIN_SECONDS);
    alarm(END_SECONDS); /* SIGALRM ends this process: nothing that it holds would be lost */
    rws__server_free(server);
    exit(0);
}

/* ---- the parent */

/* Starts the child and waits until it serves. Meanwhile a signal ends this process, and thereby the child. */
static rws_status start(const session *s, int socket, const sigset_t *signals, pid_t *child, rws_error *err)
{
    int pipes[2];
    if (pipe(pipes) != 0) return rws_fail(err, RWS_BAD_INPUT, "The server cannot be started: %s.", strerror(errno));
    fflush(stdout);
    const pid_t parent = getpid();
    *child = fork();
    const int why = errno;
    if (*child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(1); /* the parent died before prctl */
        close(pipes[0]);
        serve(s, socket, pipes[1], signals);
    }
    close(pipes[1]);
    sigset_t ends = *signals;
    sigdelset(&ends, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    char   line[sizeof err->text] = "";
    size_t n = 0;
    for (ssize_t got; n + 1 < sizeof line && (got = read(pipes[0], line + n, sizeof line - 1 - n)) != 0;)
        if (got > 0) n += (size_t)got;
        else if (errno != EINTR) break;
    close(pipes[0]);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    if (*child > 0 && n == 1 && line[0] == '\n') return RWS_OK;
    line[strcspn(line, "\n")] = '\0';
    int how = 0;
    if (*child < 0) return rws_fail(err, RWS_NO_MEMORY, "The server cannot be started: %s.", strerror(why));
    waitpid(*child, &how, 0);
    return rws_fail(err, WIFEXITED(how) && WEXITSTATUS(how) == 2 ? RWS_BAD_INPUT : RWS_NO_MEMORY, "%s",
                    line[0] ? line : "The server cannot be started.");
}

static void open_browser(const char *url)
{
    extern char **environ;
    const char   *browser = getenv("BROWSER");
    char *const   argv[] = {(char *)(browser && browser[0] ? browser : "xdg-open"), (char *)url, NULL};
    pid_t         pid;
    /* The browser neither inherits the signals that are blocked here nor the SIGPIPE that is ignored here. */
    posix_spawnattr_t usual;
    sigset_t          none, pipes;
    sigemptyset(&none);
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    posix_spawnattr_init(&usual);
    posix_spawnattr_setsigmask(&usual, &none);
    posix_spawnattr_setsigdefault(&usual, &pipes);
    posix_spawnattr_setflags(&usual, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int failed = posix_spawnp(&pid, argv[0], NULL, &usual, argv, environ);
    posix_spawnattr_destroy(&usual);
    if (failed) rws__note("There is no %s to open a browser with; open the address yourself.", argv[0]);
}

/* Prints the address of the server. */
static rws_status announce(const session *s, rws_error *err)
{
    const char *any = strcmp(s->address, "0.0.0.0") == 0 || strcmp(s->address, "::") == 0 ? "127.0.0.1" : s->address;
    const bool  six = strchr(any, ':') != NULL;
    char        url[256];
    snprintf(url, sizeof url, "http://%s%s%s:%d/%s%s", six ? "[" : "", any, six ? "]" : "", (int)s->port,
             s->serve.token ? "?token=" : "", s->serve.token ? s->serve.token : "");
    puts(url);
    RWS_TRY(rws__arguments_flush(err));
    if (s->serve.anywhere)
        rws__note(
            "Everyone in the network who has the token can ask these runs, and the connection is not encrypted: use a "
            "network that you trust, or an SSH tunnel to a server without --listen.");
    if (s->open) open_browser(url);
    return RWS_OK;
}

/* Waits for signals: passes the first one that asks to end on to the child, and starts a child that crashed again. */
static rws_status supervise(const session *s, int socket, const sigset_t *signals, pid_t child, rws_error *err)
{
    double crashes[MAX_CRASHES] = {0};
    int    number, n = 0, asked = 0, how;
    for (;;) {
        if (sigwait(signals, &number) != 0) continue;
        if (number == SIGINT || number == SIGTERM) kill(child, asked++ ? SIGKILL : SIGTERM);
        pid_t ended;
        while ((ended = waitpid(-1, &how, WNOHANG)) > 0) {
            if (ended != child) continue; /* the browser */
            if (asked || (WIFEXITED(how) && WEXITSTATUS(how) == 0)) return RWS_OK;
            const double now = rws__clock_now();
            if (n >= MAX_CRASHES && now - crashes[n % MAX_CRASHES] < 60)
                return rws_fail(err, RWS_BROKEN, "The server crashed %d times in a minute, and is not started again.",
                                MAX_CRASHES);
            crashes[n++ % MAX_CRASHES] = now;
            rws__note("The server crashed (%s) and is started again.",
                      WIFSIGNALED(how) ? strsignal(WTERMSIG(how)) : "it ended by itself");
            RWS_TRY(start(s, socket, signals, &child, err));
        }
    }
}

static rws_status listen_at(session *s, int *socket, rws_error *err)
{
    const bool usual = s->port == UINT64_MAX;
    int        port = usual ? USUAL_PORT : (int)s->port;
    rws_status status = rws__serve_listen(s->address, &port, socket, err);
    if (status != RWS_OK && usual) {
        port = 0;
        status = rws__serve_listen(s->address, &port, socket, err);
    }
    s->port = (uint64_t)port;
    return status;
}

static rws_status serve_until_stopped(session *s, rws_error *err)
{
    int      socket;
    sigset_t signals;
    pid_t    child;
    if ((s->serve.anywhere || s->wants_token) && !rws__serve_token(s->token))
        return rws_fail(err, RWS_BAD_INPUT, "The system has no random numbers for a token.");
    if (s->token[0]) s->serve.token = s->token;
    RWS_TRY(listen_at(s, &socket, err));
    sigemptyset(&signals);
    for (const int *n = (const int[]){SIGINT, SIGTERM, SIGCHLD, 0}; *n; n++) sigaddset(&signals, *n);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    RWS_TRY(start(s, socket, &signals, &child, err));
    const rws_status status = announce(s, err);
    if (status != RWS_OK) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        return status;
    }
    return supervise(s, socket, &signals, child, err);
}

#else

static rws_status serve_until_stopped(session *s, rws_error *err)
{
    (void)s;
    return rws_fail(
        err, RWS_BAD_INPUT,
        "This rws was built without its page: install libmicrohttpd-dev and libjs-dygraphs, and build again.");
}

#endif

static rws_status run(int argc, char **argv, rws_error *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    session    s = {.port = UINT64_MAX,
                    .threads = cores > 0 ? (uint64_t)cores : 1,
                    .particles = 100000,
                    .memory = 512,
                    .seconds = 30};
    RWS_TRY(rws__arguments_parse(&argp, "rws serve", argc, argv, 0, &s, err));
    if (s.serve.n_folders == 0) s.folders[s.serve.n_folders++] = ".";
    s.serve.folders = s.folders, s.serve.names = s.names, s.serve.models = s.models;
    s.serve.threads = (int)s.threads, s.serve.max_particles = (int)s.particles, s.serve.max_seconds = s.seconds;
    s.serve.max_memory = s.memory << 20;
    s.serve.anywhere = s.address && strcmp(s.address, "127.0.0.1") != 0 && strcmp(s.address, "::1") != 0;
    if (!s.address) s.address = "127.0.0.1";
    return serve_until_stopped(&s, err);
}

const rws_command rws_command_serve = {"serve", "show, compare and ask runs in a browser, and over HTTP", run, &argp};
