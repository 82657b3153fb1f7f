/* each.c - requests for memory, or calls about files, of each command fail once, one in each try.
 *
 *     each BUILD WHAT STRIDE [COMMAND]...    WHAT is memory, EIO, ENOSPC or EACCES
 *
 * A try is a process that begins with a fresh copy of a trained run. It must end well, with the output that it has
 * otherwise, or with a message and status 1 or 2. The folder must then be whole: training continues to the bits of a run
 * in which nothing failed. A server must answer the next question as if nothing had failed.
 *
 *     starve.so in the process -> memory: the request number n has no memory
 *     seccomp, and this process as the supervisor -> files: call number n of the process and its children has an error
 *
 * Libraries that end the process without memory by design are listed in `aborting`. Prints TAP.
 */
#include "lib/store/digest.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 60 };

/* Libraries that end the process without memory, which no caller can prevent; docs/testing.md has the table too. */
static const struct {
    const char *library, *what;
} aborting[] = {
    {"libjansson", "the parser of 2.14 writes behind a text that could not grow"},
    {"libglib-2.0", "g_malloc, g_realloc and g_slice_alloc abort"},
    {"libgobject-2.0", "uses what GLib could not allocate"},
    {"libpango", "uses fonts that fontconfig could not find"},
    {"libfontconfig", "assertions of FcFontSetMatch and FcFontSetSort; FcPatternDuplicate and others use NULL"},
    {"libexpat", "fontconfig does not look whether its files could be parsed"},
    {"libfreetype", "fontconfig uses a face that could not be opened"},
    {"libharfbuzz", "Pango uses a face that could not be made"},
    {"libcairo", "Pango uses a font that could not be made"},
};

typedef struct {
    const char *name, *arguments;
    bool        begun;  /* the folder `new` is there, with a run of 4 iterations */
    bool        timed;  /* the output has times in it: only its lines are counted */
    bool        serves; /* asked a question over HTTP */
} command;

static const command commands[] = {
    {"train", "train gmm --method ww -k 2 -b 4 -n 4 --eval-every 2 --threads 2 --out new", false, true, false},
    {"resume", "train gmm --out new --resume -n 6", true, true, false},
    {"eval", "eval new", true, false, false},
    {"infer", "infer new 3 --particles 10", true, false, false},
    {"sample", "sample new -n 3", true, false, false},
    {"runs", "runs new", true, false, false},
    {"export", "export new", true, false, false},
    {"json", "export new --format json", true, false, false},
    {"--json", "infer new 3 --particles 10 --choices --marginals --json", true, false, false},
    {"exported", "export ../mine.csv", true, false, false},
    {"serve", "serve --port 0 new", true, false, true},
    {"list", "list", true, false, false},
    {"data", "data sentences -n 3", true, false, false},
    {"plot", "plot p_error new --out new.png", true, false, false},
    {"bench", "bench gmm -n 3", true, true, false},
    {"sweep", "sweep ../small.sweep --out new", false, true, false},
};

/* ---- calls about files */

enum { WRITES = 1, PATH = 2, FILE_0 = 4, MAPS = 8, LOCKS = 16, OPENS = 32 };

static const struct {
    int         number;
    const char *name;
    int         kind; /* FILE_0: the first argument is an open file */
} calls[] = {
#ifdef SYS_open
    {SYS_open, "open", PATH},
    {SYS_rename, "rename", PATH | WRITES},
    {SYS_link, "link", PATH | WRITES},
    {SYS_unlink, "unlink", PATH},
    {SYS_mkdir, "mkdir", PATH | WRITES},
    {SYS_rmdir, "rmdir", PATH},
    {SYS_stat, "stat", PATH},
    {SYS_lstat, "lstat", PATH},
    {SYS_access, "access", PATH},
#endif
    {SYS_openat, "openat", PATH | OPENS},
    {SYS_renameat, "renameat", PATH | WRITES},
    {SYS_renameat2, "renameat2", PATH | WRITES},
    {SYS_linkat, "linkat", PATH | WRITES},
    {SYS_unlinkat, "unlinkat", PATH},
    {SYS_mkdirat, "mkdirat", PATH | WRITES},
    {SYS_newfstatat, "fstatat", PATH},
    {SYS_statx, "statx", PATH},
    {SYS_faccessat, "faccessat", PATH},
    {SYS_read, "read", FILE_0},
    {SYS_pread64, "pread", FILE_0},
    {SYS_readv, "readv", FILE_0},
    {SYS_write, "write", FILE_0 | WRITES},
    {SYS_pwrite64, "pwrite", FILE_0 | WRITES},
    {SYS_writev, "writev", FILE_0 | WRITES},
    {SYS_fsync, "fsync", FILE_0 | WRITES},
    {SYS_fdatasync, "fdatasync", FILE_0 | WRITES},
    {SYS_ftruncate, "ftruncate", FILE_0 | WRITES},
    {SYS_fallocate, "fallocate", FILE_0 | WRITES},
    {SYS_fchmod, "fchmod", FILE_0},
    {SYS_getdents64, "getdents", FILE_0},
    {SYS_close, "close", FILE_0 | WRITES},
    {SYS_flock, "flock", FILE_0 | LOCKS},
    {SYS_fcntl, "fcntl", FILE_0 | LOCKS},
    {SYS_mmap, "mmap", MAPS},
};

enum { N_CALLS = sizeof calls / sizeof *calls };

typedef enum { MEMORY, EIO_, ENOSPC_, EACCES_ } what;

static const char *const whats[] = {"memory", "EIO", "ENOSPC", "EACCES"};

/* What a try says of itself; also written by the child that asks the server. */
static struct {
    int  listener; /* in the child, before it begins */
    char id[32], answer[4000], asked[4000], complaint[300];
} * shared;

static const char *program, *shim;
static what        fails;
static long        stride, n_calls, fails_at;
static bool        began;
static char        place[1000]; /* what failed in this try; "": nothing */

/* The program of the filter: the calls of the table are told to the supervisor, others pass. */
static int filter(void)
{
    struct sock_filter code[N_CALLS + 3];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N_CALLS; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number,
                                                   (uint8_t)(N_CALLS - i), 0);
    code[N_CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[N_CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    const struct sock_fprog all = {N_CALLS + 3, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all);
}

/* Whether the open file `fd` of the process is one on a disk, and not its stderr. */
static bool is_file(unsigned process, uint64_t fd)
{
    char        path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%u/fd/%d", process, (int)fd);
    return fd != STDERR_FILENO && stat(path, &about) == 0 && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
}

/* Whether the call can fail in the way that is tried. */
static bool can_fail(const struct seccomp_notif *n, int kind)
{
    const __u64 *a = n->data.args;
    if (kind & MAPS && (a[3] & MAP_ANONYMOUS || fails != EIO_)) return false;
    if (kind & FILE_0 && !is_file(n->pid, a[0])) return false;
    if (n->data.nr == SYS_fcntl && a[1] != F_SETLK && a[1] != F_SETLKW && a[1] != F_OFD_SETLK && a[1] != F_OFD_SETLKW)
        return false;
    const bool creates = kind & OPENS && a[2] & O_CREAT;
    return fails == EIO_ || (fails == ENOSPC_ && (kind & WRITES || creates)) || (fails == EACCES_ && kind & PATH);
}

/* A close that fails has closed its file all the same: something else takes the number. */
static void close_there(int listener, const struct seccomp_notif *n)
{
    const int                        nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const struct seccomp_notif_addfd add = {n->id, SECCOMP_ADDFD_FLAG_SETFD, (uint32_t)nothing,
                                            (uint32_t)n->data.args[0], O_CLOEXEC};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    close(nothing);
}

/* Answers one call: it continues, or fails. */
static void answer(int listener)
{
    struct seccomp_notif      n = {0};
    struct seccomp_notif_resp reply = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0) return;
    int i = 0;
    while (calls[i].number != n.data.nr) i++;
    reply.id = n.id;
    if (n.data.nr == SYS_close && (int)n.data.args[0] == -77) began = true;
    else if (began && can_fail(&n, calls[i].kind) && ++n_calls == fails_at) {
        const int error = calls[i].kind & MAPS ? ENODEV : fails == EIO_ ? EIO : fails == ENOSPC_ ? ENOSPC : EACCES;
        if (n.data.nr == SYS_close) close_there(listener, &n);
        snprintf(place, sizeof place, "%s", calls[i].name);
        reply = (struct seccomp_notif_resp){.id = n.id, .error = -error};
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* ---- files */

static char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = calloc(1, 1 << 22);
    *size = f ? fread(bytes, 1, (1 << 22) - 1, f) : 0;
    if (f) fclose(f);
    return bytes;
}

/* Calls `each` for every file of a folder, except those that begin with a point. */
static int walk(const char *folder, int (*each)(const char *from, const char *name))
{
    DIR *d = opendir(folder);
    int  sum = 0;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) sum += each(folder, e->d_name);
    if (d) closedir(d);
    return sum;
}

static int drop(const char *folder, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (unlink(path) == 0) return 0;
    walk(path, drop);
    return rmdir(path);
}

static int copy(const char *folder, const char *name)
{
    char   path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *bytes = slurp(path, &size);
    snprintf(path, sizeof path, "new/%s", name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) exit(99);
    free(bytes);
    return 0;
}

/* Whether a file of the folder is not the one of `new`. */
static int differs(const char *folder, const char *name)
{
    char   path[600];
    size_t n_a, n_b;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *a = slurp(path, &n_a);
    snprintf(path, sizeof path, "new/%s", name);
    char     *b = slurp(path, &n_b);
    const int other = n_a != n_b || memcmp(a, b, n_a) != 0;
    free(a);
    free(b);
    return other;
}

static int one(const char *folder, const char *name)
{
    (void)folder, (void)name;
    return 1;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool is_untouched(void)
{
    return walk("../short", differs) == 0 && walk("../short", one) == walk("new", one);
}

/* ---- processes */

static void begin(const char *arguments, long at)
{
    char  words[300], number[32], *argv[32] = {(char *)program};
    int   n = 1;
    FILE *out = freopen("../out", "wb", stdout), *err = freopen("../err", "wb", stderr);
    snprintf(words, sizeof words, "%s", arguments);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[n++] = w;
    snprintf(number, sizeof number, "%ld", at);
    if (at && fails == MEMORY) setenv("STARVE_AT", number, 1);
    if (at) setenv("LD_PRELOAD", shim, 1);
    setpgid(0, 0);
    if (at && fails != MEMORY) {
        shared->listener = filter();
        kill(getpid(), SIGSTOP);
    }
    if (out && err) execv(program, argv);
    _exit(127);
}

static void ask(int process);

/* Waits for the process while it supervises its calls; its status, 128 + signal, or 124 if it does not end. */
static int attend(pid_t child, bool watched)
{
    int           status = 0;
    const int     process = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd two[2] = {{process, POLLIN, 0}, {-1, POLLIN, 0}};
    const time_t  end = time(NULL) + SECONDS;
    if (watched) {
        waitpid(child, &status, WUNTRACED);
        two[1].fd = (int)syscall(SYS_pidfd_getfd, process, shared->listener, 0);
        kill(child, SIGCONT);
        if (two[1].fd < 0) {
            puts("1..0 # SKIP calls cannot be supervised (seccomp)");
            exit(0);
        }
    }
    while (!(two[0].revents & POLLIN) && time(NULL) < end) {
        poll(two, 2, 1000);
        if (two[1].revents & POLLIN) answer(two[1].fd);
    }
    const bool late = !(two[0].revents & POLLIN);
    if (two[1].fd >= 0) close(two[1].fd); /* the calls of those that are left fail, too */
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
    close(process);
    return late ? 124 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs the command, with its call or request number `at` failing; 0: none. */
static int run(const command *c, const char *arguments, long at)
{
    fflush(NULL);
    n_calls = 0, fails_at = at, began = false, place[0] = '\0';
    unlink("../place");
    unlink("../out"); /* the port of the last server */
    shared->complaint[0] = shared->asked[0] = '\0';
    const pid_t child = fork();
    if (child == 0) begin(arguments, at);
    pid_t client = -1;
    if (c->serves) {
        const int process = (int)syscall(SYS_pidfd_open, child, 0);
        client = fork();
        if (client == 0) {
            signal(SIGPIPE, SIG_IGN); /* the server may close a connection while a request is sent */
            ask(process);
            _exit(0);
        }
        close(process);
    }
    const int status = attend(child, at && fails != MEMORY);
    if (client > 0) waitpid(client, NULL, 0);
    if (fails == MEMORY) {
        size_t size;
        char  *text = slurp("../place", &size);
        snprintf(place, sizeof place, "%s", text);
        place[strcspn(place, "\n")] = '\0';
        free(text);
    }
    return status;
}

/* ---- a question to a server, in a process of its own */

/* The reply to a request, NUL-terminated, in `reply`; its status, or 0 if the connection is closed without one. */
static int request(int port, const char *path, const char *body, char reply[4000])
{
    struct sockaddr_in there = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct timeval patience = {20, 0};
    const int            s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t               n = 0;
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(s, (struct sockaddr *)&there, sizeof there) == 0) {
        dprintf(s, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n", body ? "POST" : "GET", path, port);
        if (body) dprintf(s, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        else dprintf(s, "\r\n");
        for (ssize_t got; n < 3999 && (got = recv(s, reply + n, 3999 - n, 0)) > 0;) n += (size_t)got;
    }
    close(s);
    reply[n] = '\0';
    const char *end = strstr(reply, "\r\n\r\n");
    const int   status = n > 12 ? atoi(reply + 9) : 0;
    if (end) memmove(reply, end + 4, strlen(end + 4) + 1);
    return status;
}

static int question(int port, char reply[4000])
{
    char path[100];
    snprintf(path, sizeof path, "/api/runs/%s/infer", shared->id);
    return request(port, path, "{\"fields\":{\"x\":3},\"particles\":10}", reply);
}

static int port_of_server(int process)
{
    for (int i = 0; i < 1000; i++) {
        size_t      size;
        char       *text = slurp("../out", &size);
        const char *colon = size && text[size - 1] == '\n' ? strrchr(text, ':') : NULL;
        const int   port = colon ? atoi(colon + 1) : 0;
        free(text);
        if (port || poll(&(struct pollfd){process, POLLIN, 0}, 1, 10) > 0) return port;
    }
    return 0;
}

/* Asks twice: the first reply may be an error; the second must be right, at the latest after 10 seconds. Then ends the
 * server. */
static void ask(int process)
{
    char      second[4000];
    const int port = port_of_server(process);
    if (!port) return;
    const int a = question(port, shared->asked);
    int       b = question(port, second);
    for (int i = 0; i < 100 && b != 200; i++) { /* a server that could not read the runs reads them again */
        poll(NULL, 0, 100);
        b = question(port, second);
    }
    if (a == 200 ? strcmp(shared->asked, shared->answer) != 0 : a && !strstr(shared->asked, "\"error\""))
        snprintf(shared->complaint, sizeof shared->complaint, "the first reply is %d %.100s", a, shared->asked);
    else if (b != 200 || strcmp(second, shared->answer) != 0)
        snprintf(shared->complaint, sizeof shared->complaint, "the reply after %d is %d %.100s", a, b, second);
    syscall(SYS_pidfd_send_signal, process, SIGTERM, NULL, 0);
}

/* Learns the run's name in the API and the right answer from a server in which nothing fails. */
static void learn(const command *c)
{
    fflush(NULL);
    unlink("../out");
    const pid_t child = fork();
    if (child == 0) begin(c->arguments, 0);
    const int process = (int)syscall(SYS_pidfd_open, child, 0), port = port_of_server(process);
    char      reply[4000];
    if (request(port, "/api/runs", NULL, reply) != 200) exit(99);
    const char *id = strstr(reply, "\"id\":\"");
    snprintf(shared->id, sizeof shared->id, "%.*s", id ? (int)strcspn(id + 6, "\"") : 0, id ? id + 6 : "");
    if (question(port, shared->answer) != 200) exit(99);
    kill(child, SIGTERM);
    close(process);
    waitpid(child, NULL, 0);
}

/* ---- the account */

static int    n_reports, n_bad_commands;
static long   n_tries, n_wrong, n_well, n_refused, n_aborted;
static char  *expected;
static size_t expected_size;

static uint64_t right[2], right_names; /* digests of a run in which nothing failed: after 4 iterations, and after 6 */

static void complain(const command *c, long at, const char *why)
{
    if (n_wrong++ < 40) printf("# %s: %s %ld at %s: %s\n", c->name, whats[fails], at, place, why);
    fflush(stdout);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static bool is_output(const command *c)
{
    size_t     size;
    char      *out = slurp("../out", &size);
    const bool same = c->serves  ? true
                      : c->timed ? lines(out) == lines(expected)
                                 : size == expected_size && memcmp(out, expected, size) == 0;
    free(out);
    return same;
}

/* The last line of stderr, in `line`; whether it is a message. */
static bool is_message(char line[200])
{
    size_t size;
    char  *err = slurp("../err", &size);
    if (size && err[size - 1] == '\n') err[--size] = '\0';
    const char *last = strrchr(err, '\n');
    last = last ? last + 1 : err;
    snprintf(line, 200, "%s", last);
    const bool good = strncmp(last, "rws: ", 5) == 0 && strchr(".)", err[size - 1]) && !strstr(last, "bug at");
    free(err);
    return good;
}

/* Whether the library that asked for the memory ends the process without it. */
static bool is_aborting(void)
{
    const char *asked =
        strncmp(place, "rws(", 4) == 0 ? strchr(place, ' ') + 1 : place; /* behind an allocator of ours */
    for (size_t i = 0; i < sizeof aborting / sizeof *aborting; i++)
        if (strncmp(asked, aborting[i].library, strlen(aborting[i].library)) == 0) return true;
    return false;
}

static void judge(const command *c, long at, int status)
{
    char       line[200], why[600];
    const bool message = is_message(line);
    if (shared->complaint[0]) complain(c, at, shared->complaint);
    else if (status == 0 && !is_output(c)) complain(c, at, "exit status 0 with another output");
    else if (status == 0) n_well++;
    else if ((status == 1 || status == 2) && message) n_refused++;
    else if (status > 128 && is_aborting()) n_aborted++;
    else {
        snprintf(why, sizeof why, "status %d, %s", status, line);
        complain(c, at, why);
    }
}

static uint64_t seen[20000]; /* folders from which the next run came to the right bits */
static int      n_seen;

static int mix_name(const char *folder, const char *name)
{
    char        path[600];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint64_t hash = stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return (int)(hash ^ hash >> 32) & 0xffffff;
}

/* A digest of `new`: names and sizes of its files, its checkpoint, its measures; 0 if they cannot be read. */
static uint64_t state_of_folder(void)
{
    rws_error      err;
    const uint64_t run = exists("new/checkpoint.safetensors") ? digest_run("new", &err) : !exists("new/metrics.sqlite");
    return run ? run + (uint64_t)walk("new", mix_name) : 0;
}

static bool is_seen(uint64_t state)
{
    for (int i = 0; i < n_seen; i++)
        if (state && seen[i] == state) return true;
    return false;
}

/* Continues from the folder that the try left, with nothing failing, and compares; not from a folder that is equal to an
 * earlier one. */
static void continue_run(const command *c, long at, int status)
{
    char      was[1000], why[1500], line[200];
    uint64_t  names;
    rws_error err = {""};
    if (c->begun && is_untouched()) return;
    snprintf(was, sizeof was, "%s", place);
    if (digest_names("new", &names) && names != right_names) complain(c, at, "the checkpoint has not all names");
    static const command plain = {.name = "the next"};
    const uint64_t       state = state_of_folder();
    int                  next = 0;
    if (is_seen(state)) return;
    if (strcmp(c->name, "sweep") == 0) {
        next = run(&plain, c->arguments, 0);
    } else {
        if (!exists("new/config.json")) next = run(&plain, commands[0].arguments, 0);
        if (!next) next = run(&plain, c->begun ? commands[1].arguments : "train gmm --out new --resume", 0);
    }
    snprintf(place, sizeof place, "%s", was);
    is_message(line);
    snprintf(why, sizeof why, "after status %d the next run ends with %d, %s", status, next, line);
    if (next) complain(c, at, why);
    else if (strcmp(c->name, "sweep") != 0 && digest_run("new", &err) != right[c->begun])
        complain(c, at, "other bits afterwards");
    else if (n_seen < (int)(sizeof seen / sizeof *seen)) seen[n_seen++] = state;
}

static void prepare(const command *c)
{
    walk(".", drop);
    if (c->begun) {
        mkdir("new", 0777);
        walk("../short", copy);
    }
}

static void try_command(const command *c)
{
    n_tries = n_wrong = n_well = n_refused = n_aborted = n_seen = 0;
    prepare(c);
    if (c->serves) learn(c);
    static const command plain = {.name = "good"};
    if (!c->serves && run(&plain, c->arguments, 0) != 0) exit(99);
    expected = slurp("../out", &expected_size);
    for (long at = stride / 2 + 1;; at += stride) {
        prepare(c);
        const int status = run(c, c->arguments, at);
        if (!place[0]) break;
        n_tries++;
        judge(c, at, status);
        continue_run(c, at, status);
    }
    printf("%sok %d - %s, %s: %ld tries, %ld failures (%ld end well, %ld with a message, %ld in a library)\n",
           n_wrong ? "not " : "", ++n_reports, c->name, whats[fails], n_tries, n_wrong, n_well, n_refused, n_aborted);
    fflush(stdout);
    n_bad_commands += n_wrong > 0;
    free(expected);
}

/* The runs that others are copies of or are compared with. */
static void make_runs(void)
{
    static const command plain = {.name = "whole"};
    rws_error            err = {""};
    FILE                *sweep = fopen("../small.sweep", "w");
    fputs("model gmm\nmethods ww\nparticles 2\nseeds 1-2\niterations 4\neval-every 2\nfinal 10\n", sweep);
    fclose(sweep);
    if (run(&plain, commands[0].arguments, 0) || run(&plain, "export new --out ../mine.csv", 0)) exit(99);
    if (rename("new", "../short") || mkdir("new", 0777)) exit(99);
    walk("../short", copy);
    right[0] = digest_run("new", &err);
    if (run(&plain, commands[1].arguments, 0)) exit(99);
    right[1] = digest_run("new", &err);
    if (!right[0] || !right[1] || !digest_names("new", &right_names)) exit(99);
}

static int make_folder(char *top)
{
    strcpy(top, access("/dev/shm", W_OK) == 0 ? "/dev/shm/rws-each-XXXXXX" : "/tmp/rws-each-XXXXXX");
    return mkdtemp(top) && chdir(top) == 0 && mkdir("tries", 0777) == 0 ? chdir("tries") : -1;
}

int main(int argc, char **argv)
{
    char top[40], paths[2][4096];
    if (argc < 4 || !realpath(argv[1], paths[0])) return 99;
    snprintf(paths[1], sizeof paths[1], "%s/tests/starve.so", argv[1]);
    strcat(paths[0], "/rws");
    if (!(shim = realpath(paths[1], NULL))) return 99;
    program = paths[0];
    while (strcmp(argv[2], whats[fails]) != 0)
        if (++fails > EACCES_) return 99;
    stride = atol(argv[3]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || stride < 1 || make_folder(top)) return 99;
    setenv("STARVE_FILE", "../place", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    make_runs();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int k = argc > 4 ? 4 : 3; k < argc; k++)
            if (argc == 4 || strcmp(argv[k], commands[i].name) == 0) try_command(&commands[i]);
    printf("1..%d\n", n_reports);
    if (chdir("/") == 0) drop(top, ".");
    return n_bad_commands > 0;
}
