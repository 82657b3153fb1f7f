/* test_disk.c - what becomes of a run if its disk fails, loses power or changes a byte.
 *
 *     test_disk calls STRIDE    every STRIDE-th call about a file fails once, in each way: the run continues to the same bits
 *     test_disk power STRIDE    power is lost after every STRIDE-th change: the folder continues to the same bits, or is
 *                               refused with a message
 *     test_disk bytes STRIDE [FILE [BEGIN]]
 *                               every STRIDE-th byte of each file, or of FILE, is changed, from byte BEGIN on: refused, or
 *                               the same bits
 *
 * A try is a child process; a crash and a hang count as failures. Each part is made for a run with a store of its own and
 * for a run that shares the store of a sweep.
 */
#include "digest.h"
#include "disk.h"
#include "support.h"

#include "base/file.h"
#include "store/checkpoint.h"
#include "train/trainer.h"
#include "store/store.h"
#include "rws_train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITERATIONS = 6, LONGER = 8, SECONDS = 20 };

/* How a try went; parent and child share it. */
static struct {
    bool       finished;
    rws_status status;
    rws_error  error;
    uint64_t   digest; /* of the whole folder after training; 0 if it could not be read */
    char       call[16];
    char       warnings[600];
} * outcome;

static char        top[64], run_path[96];
static bool        shares; /* the store of a sweep */
static int         stride, begin;
static const char *only; /* the file whose bytes change; NULL: each */

/* ---- folders */

static void empty(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *e; (e = readdir(folder));) {
        char inner[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (e->d_type == DT_DIR) {
            empty(inner);
            rmdir(inner);
        } else {
            unlink(inner);
        }
    }
    closedir(folder);
}

static void prepare_top(void)
{
    empty(top);
    rmdir(top);
    mkdir(top, 0777);
    char      store[128];
    rws_error err;
    snprintf(store, sizeof store, "%s/metrics.sqlite", top);
    if (shares && rws__store_make(store, &err) != RWS_OK) exit(99);
}

static bool has_temporaries(void)
{
    DIR *folder = opendir(run_path);
    bool found = false;
    if (!folder) return false;
    for (const struct dirent *e; (e = readdir(folder));) found |= strncmp(e->d_name, ".rws-", 5) == 0;
    closedir(folder);
    return found;
}

/* ---- training, in a child */

static rws_status train(uint64_t iterations, rws_error *err)
{
    const rws_config c = {.model = "gmm",
                          .method = "ww",
                          .particles = 2,
                          .batch = 4,
                          .shards = 1,
                          .threads = 1,
                          .n_test = 3,
                          .iterations = iterations,
                          .eval_every = 2,
                          .seed = 1,
                          .set = {"components=3"},
                          .n_set = 1};
    rws_trainer     *t = NULL;
    struct stat      is;
    char             config[160];
    snprintf(config, sizeof config, "%s/config.json", run_path);
    const bool       begun = stat(config, &is) == 0;
    const rws_config longer = {.iterations = iterations == ITERATIONS ? 0 : iterations};
    rws_status       status =
        begun ? rws_trainer_resume(run_path, &longer, NULL, &t, err) : rws_trainer_new(&c, NULL, &t, err);
    if (status == RWS_OK && begun) snprintf(outcome->warnings, sizeof outcome->warnings, "%s", rws_trainer_warnings(t));
    if (status == RWS_OK && !begun) status = rws_trainer_keep(t, run_path, err);
    if (status == RWS_OK) status = rws_trainer_train(t, &(rws_watch){.save_every = -1}, err);
    rws_trainer_free(t);
    return status;
}

typedef struct {
    uint64_t iterations;
    long     fail_at;
    disk_way way;
} task;

static void work(const task *w)
{
    disk_watch(top, w->fail_at, w->way);
    outcome->status = train(w->iterations, &outcome->error);
    snprintf(outcome->call, sizeof outcome->call, "%s", disk_failed() ? disk_failed() : "");
    disk_watch("", 0, DISK_EIO);
    if (outcome->status == RWS_OK) {
        outcome->digest = digest_run(run_path, &outcome->error);
        if (!outcome->digest) outcome->status = RWS_BAD_INPUT;
    }
    outcome->finished = true;
}

/* Returns how the child ended: 0, or the signal. */
static int try_once(const task *w)
{
    memset(outcome, 0, sizeof *outcome);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) exit(99);
    if (child == 0) {
        alarm(SECONDS);
        work(w);
        _exit(0);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

/* ---- the account */

static long n_tries, n_failures, n_same, n_refused, n_said;

static void complain(const char *what, const char *why)
{
    n_failures++;
    if (n_failures <= 40) printf("# %s%s: %s\n", what, shares ? ", shared store" : "", why);
}

static bool is_sentence(const char *text)
{
    const size_t n = strlen(text);
    return n > 1 && (text[n - 1] == '.' || strstr(text, "rename checkpoint.previous"));
}

/* Judges the try that is over: the right digest; or a refusal with a message, if that is allowed. */
static void judge(const char *what, int signal, uint64_t right, bool may_refuse)
{
    char why[700];
    if (signal || !outcome->finished) {
        snprintf(why, sizeof why, "ended by signal %d", signal);
        complain(what, why);
    } else if (outcome->status != RWS_OK) {
        if (may_refuse && is_sentence(outcome->error.text)) n_refused++;
        else complain(what, outcome->error.text);
    } else if (outcome->digest == right && has_temporaries()) {
        complain(what, "leaves temporary files");
    } else if (outcome->digest == right) {
        n_same++;
    } else if (may_refuse && outcome->warnings[0]) {
        n_said++;
    } else {
        complain(what, "other bits, or other measures");
    }
}

static uint64_t uninterrupted(uint64_t iterations)
{
    prepare_top();
    const int signal = try_once(&(task){.iterations = iterations});
    if (signal || outcome->status != RWS_OK || !outcome->digest) {
        printf("Bail out! The uninterrupted run: signal %d, %s\n", signal, outcome->error.text);
        exit(99);
    }
    return outcome->digest;
}

/* ---- calls that fail */

static void fail_calls(void)
{
    const uint64_t right = uninterrupted(ITERATIONS);
    for (int way = 0; way < DISK_WAYS; way++)
        for (long n = 1 + (way * 7) % stride;; n += stride) {
            char what[200];
            prepare_top();
            const int signal = try_once(&(task){ITERATIONS, n, (disk_way)way});
            snprintf(what, sizeof what, "call %ld (%s) with %s", n, outcome->call, disk_ways[way]);
            if (!signal && !outcome->call[0]) break; /* there are no more calls */
            n_tries++;
            if (signal || (outcome->status != RWS_OK && !is_sentence(outcome->error.text)))
                complain(what, signal ? "a signal" : "no sentence");
            else if (outcome->status == RWS_OK && outcome->digest != right)
                complain(what, "is not noticed, but makes other bits");
            judge(what, try_once(&(task){.iterations = ITERATIONS}), right, false);
        }
}

/* ---- power that is lost */

static void lose_power(void)
{
    const uint64_t right = uninterrupted(ITERATIONS);
    rws_error      err;
    empty(top);
    rmdir(top);
    mkdir(top, 0777);
    disk_watch(top, 0, DISK_EIO);
    disk_record();
    char store[128], checkpoint[160];
    snprintf(store, sizeof store, "%s/metrics.sqlite", top);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", run_path);
    if (shares && rws__store_make(store, &err) != RWS_OK) exit(99);
    if (train(ITERATIONS, &err) != RWS_OK) exit(99);
    disk_watch("", 0, DISK_EIO);
    const int n = disk_changes();
    for (int k = 0; k <= n; k += stride)
        for (int loss = 0; loss < DISK_LOSSES; loss++)
            for (int seed = 0; seed < (loss >= DISK_SOME ? 4 : 1); seed++) {
                char what[200];
                empty(top);
                rmdir(top);
                disk_restore(top, k, (disk_loss)loss, (uint64_t)(seed * 1000 + k));
                if (shares && !(access(store, F_OK) == 0)) continue; /* the sweep has not begun */
                snprintf(what, sizeof what, "power lost after %d of %d changes, kept: %s (seed %d)", k, n,
                         disk_losses[loss], seed);
                n_tries++;
                if (k == n && access(checkpoint, F_OK) != 0) complain(what, "a checkpoint that was saved is lost");
                judge(what, try_once(&(task){.iterations = ITERATIONS}), right, true);
            }
}

/* ---- bytes that change */

static char *slurp(const char *path, size_t *size)
{
    uint8_t  *bytes;
    rws_error err;
    if (rws__file_read(path, 1 << 26, &bytes, size, &err) != RWS_OK) exit(99);
    return (char *)bytes;
}

static void spill(const char *path, const char *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) exit(99);
    close(fd);
}

static void change_bytes(void)
{
    static const char *const names[] = {"config.json", "checkpoint.safetensors", "metrics.sqlite"};
    char                    *bytes[3], paths[3][160];
    size_t                   size[3];
    uninterrupted(ITERATIONS);
    for (int i = 0; i < 3; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", shares && i == 2 ? top : run_path, names[i]);
        bytes[i] = slurp(paths[i], &size[i]);
    }
    /* The run that continues from here, without a change. */
    if (try_once(&(task){.iterations = LONGER}) || outcome->status != RWS_OK) exit(99);
    const uint64_t right = outcome->digest;
    for (int f = shares ? 2 : 0; f < 3; f++) {
        if (only && strcmp(only, names[f]) != 0) continue;
        const long tries = n_tries, failures = n_failures, same = n_same, refused = n_refused, said = n_said;
        for (size_t at = (size_t)begin; at < size[f]; at += (size_t)stride)
            for (int kind = 0; kind < 2; kind++) {
                const char was = bytes[f][at];
                char       what[200];
                if (f == 2 && kind == (int)(at % 2)) continue; /* a store is large: one of both for each byte */
                snprintf(what, sizeof what, "%s: byte %zu, %s", names[f], at, kind ? "all bits" : "one bit");
                bytes[f][at] = (char)(was ^ (kind ? 0xff : 1 << (at * 5 / 3 % 8)));
                prepare_top();
                mkdir(run_path, 0777);
                for (int i = 0; i < 3; i++) spill(paths[i], bytes[i], size[i]);
                bytes[f][at] = was;
                n_tries++;
                judge(what, try_once(&(task){.iterations = LONGER}), right, true);
            }
        printf("# %s%s: %ld changes, %ld refused, %ld the same bits, %ld said, %ld failures\n", names[f],
               shares ? " of a sweep" : "", n_tries - tries, n_refused - refused, n_same - same, n_said - said,
               n_failures - failures);
    }
    for (int i = 0; i < 3; i++) free(bytes[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *title;
        void (*run)(void);
    } parts[] = {
        {"calls", "calls that fail", fail_calls},
        {"power", "power that is lost", lose_power},
        {"bytes", "bytes that change", change_bytes},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(top, sizeof top, "%s/rws-disk-XXXXXX", memory);
    if (outcome == MAP_FAILED || !mkdtemp(top)) return 99;
    snprintf(run_path, sizeof run_path, "%s/run", top);
    stride = argc > 2 ? atoi(argv[2]) : 1;
    only = argc > 3 ? argv[3] : NULL;
    begin = argc > 4 ? atoi(argv[4]) : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (argc < 2 || stride < 1 || strcmp(argv[1], parts[i].name) != 0) continue;
        for (int turn = 0; turn < 2; turn++) {
            /* The log of a run with its own store is not that of a run with a shared one: a process for each. */
            fflush(stdout);
            const pid_t child = fork();
            if (child == 0) {
                shares = turn;
                n_tries = n_failures = 0;
                parts[i].run();
                printf("%sok %d - %s, %s: %ld tries, %ld failures (%ld the same bits, %ld refused, %ld said)\n",
                       n_failures ? "not " : "", turn + 1, parts[i].title, turn ? "shared store" : "own store", n_tries,
                       n_failures, n_same, n_refused, n_said);
                fflush(stdout);
                _exit(n_failures ? 1 : 0);
            }
            int how;
            if (child < 0 || waitpid(child, &how, 0) != child || !WIFEXITED(how) || WEXITSTATUS(how) == 99) return 99;
        }
        puts("1..2");
    }
    empty(top);
    rmdir(top);
    return 0;
}
