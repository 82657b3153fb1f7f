#include "torture.h"

#include "failing.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAMES = 24, LEAKS = 4, SLOTS = 1 << 16, SECONDS = 60 };

typedef struct {
    int   n;
    void *at[FRAMES];
} trail;

/* How a repetition went. In memory that parent and child share. */
typedef struct {
    bool       finished;
    rws_status status;
    rws_error  error;
    double     result;
    trail      failed, died; /* where the allocation was that failed; where the signal came */
    long       n_allocations, n_live;
    int        n_leaks;
    trail      leaks[LEAKS];
} account;

static account *shared;

/* ---- where allocations come from */

static void note(trail *t)
{
    t->n = backtrace(t->at, FRAMES);
}

static void refused(const void *place)
{
    (void)place;
    note(&shared->failed);
}

/* Blocks that were allocated since tracing began and not freed, with their trails: a table with linear probing. A freed
 * slot keeps a mark, so that those behind it are still found. */
static struct {
    void *block;
    trail at;
} slots[SLOTS];

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static char            freed_mark;

static size_t slot_of(const void *block)
{
    return (size_t)((uintptr_t)block / 16 * 0x9e3779b97f4a7c15u >> 48) % SLOTS;
}

static void remember(void *block)
{
    trail t;
    note(&t);
    pthread_mutex_lock(&slots_lock);
    for (size_t i = slot_of(block), looked = 0; looked < SLOTS; i = (i + 1) % SLOTS, looked++)
        if (!slots[i].block || slots[i].block == &freed_mark) {
            slots[i].block = block;
            slots[i].at = t;
            break;
        }
    pthread_mutex_unlock(&slots_lock);
}

static void forget(void *block)
{
    pthread_mutex_lock(&slots_lock);
    for (size_t i = slot_of(block), looked = 0; looked < SLOTS && slots[i].block; i = (i + 1) % SLOTS, looked++)
        if (slots[i].block == block) {
            slots[i].block = &freed_mark;
            break;
        }
    pthread_mutex_unlock(&slots_lock);
}

/* ---- one repetition, in the child */

static void die(int signal)
{
    note(&shared->died);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    raise(signal);
}

static void catch_signals(void)
{
    static char            stack[1 << 16];
    const stack_t          other = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_handler = die, .sa_flags = SA_ONSTACK | SA_NODEFER};
    const int              signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

static void find_leaks(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].block && slots[i].block != &freed_mark && shared->n_leaks < LEAKS)
            shared->leaks[shared->n_leaks++] = slots[i].at;
}

/* Runs the scenario, with its n-th allocation failing. To trace every block takes longer than the scenario. */
static void repetition(const scenario *s, long n, bool traced)
{
    const long live = failing_live();
    failing_hook = (failing_hooks){.refused = refused};
    if (traced) failing_hook.made = remember, failing_hook.freed = forget;
    failing_set(n - 1, false);
    shared->status = s->run(s->context, &shared->result, &shared->error);
    shared->n_allocations = failing_count();
    shared->n_live = failing_live() - live;
    failing_set(-1, false);
    failing_hook = (failing_hooks){NULL};
    if (traced && shared->n_live > 0) find_leaks();
    shared->finished = true;
}

/* Forks, and returns how the child ended: 0, or the signal. */
static int in_child(const scenario *s, long n, bool traced)
{
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(99);
    }
    if (child == 0) {
        const int silence = open("/dev/null", O_WRONLY); /* what a library says before it aborts */
        dup2(silence, STDERR_FILENO);
        catch_signals();
        alarm(SECONDS);
        repetition(s, n, traced);
        _exit(0);
    }
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

/* ---- the report */

extern char __executable_start, etext;

/* Names of functions by address; addr2line is asked once for each. */
static struct {
    const void *at;
    char        name[80];
} names[4000];

static int n_names;

static const char *name_of(const void *at)
{
    for (int i = 0; i < n_names; i++)
        if (names[i].at == at) return names[i].name;
    return NULL;
}

static void learn_names(const trail *t)
{
    char command[1024], place[400];
    int  first = n_names, length = snprintf(command, sizeof command, "addr2line -f -e /proc/%d/exe", (int)getpid());
    for (int i = 0; i < t->n && n_names < (int)(sizeof names / sizeof *names); i++)
        if ((char *)t->at[i] > &__executable_start && (char *)t->at[i] < &etext && !name_of(t->at[i])) {
            names[n_names++].at = t->at[i];
            length += snprintf(command + length, sizeof command - (size_t)length, " %lx",
                               (unsigned long)((char *)t->at[i] - &__executable_start - 1));
        }
    if (n_names == first) return;
    FILE *tool = popen(command, "r");
    for (int i = first; tool && i < n_names && fgets(names[i].name, sizeof names->name, tool); i++) {
        names[i].name[strcspn(names[i].name, "\n")] = 0;
        if (!fgets(place, sizeof place, tool)) break;
    }
    if (tool) pclose(tool);
}

/* Whether a function is one of failing.c or of the above, or has no name. */
static bool is_ours(const char *name)
{
    static const char ours[] = " ?? note remember refused made malloc calloc memalign aligned_alloc posix_memalign map "
                               "mmap_plain mmap mmap_large mmap64 mprotect realloc die ";
    char              word[100];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(ours, word) != NULL;
}

/* The functions of a trail that belong to this program and not to failing.c, innermost first. */
static void describe(const trail *t, char *to, size_t size)
{
    int shown = 0;
    snprintf(to, size, "a library");
    learn_names(t);
    for (int i = 0; i < t->n && shown < 4; i++) {
        const char *name = name_of(t->at[i]);
        if (!name || is_ours(name)) continue;
        const size_t length = shown ? strlen(to) : 0;
        snprintf(to + length, size - length, "%s%s", shown++ ? " < " : "", name);
    }
}

/* The library whose code comes first in a trail, behind failing.c and the C library; NULL if this program's does. */
static const char *library_of(const trail *t)
{
    for (int i = 0; i < t->n; i++) {
        Dl_info     about;
        const char *name = name_of(t->at[i]);
        if (name && !is_ours(name)) return NULL;
        if (name || !dladdr(t->at[i], &about) || !about.dli_fname) continue;
        if (!strstr(about.dli_fname, "libc.so") && !strstr(about.dli_fname, "libgcc")) return about.dli_fname;
    }
    return NULL;
}

/* Whether a library that asked for memory died of it, which nothing of ours can prevent: in its own code; or, for the
 * parser of jansson 2.14, anywhere, because it writes behind a text that could not grow. */
static bool is_a_librarys(void)
{
    learn_names(&shared->failed);
    learn_names(&shared->died);
    const char *asked = library_of(&shared->failed), *died = library_of(&shared->died);
    if (asked && strstr(asked, "libjansson")) return true;
    return asked && died && strcmp(asked, died) == 0;
}

/* Bad endings, each with how often it came: the same place and the same end are one. */
typedef struct {
    long first;
    int  n;
    char what[1024];
} ending;

static ending endings[400];
static int    n_endings;

static void bad(long n, const char *what)
{
    for (int i = 0; i < n_endings; i++)
        if (strcmp(endings[i].what, what) == 0) {
            endings[i].n++;
            return;
        }
    if (n_endings == (int)(sizeof endings / sizeof *endings)) return;
    endings[n_endings] = (ending){n, 1, ""};
    snprintf(endings[n_endings++].what, sizeof endings->what, "%s", what);
}

/* Whether the repetition was right; if not, that becomes a line of the report. */
static bool judge(const account *good, long n, int signal)
{
    char where[400], more[400], what[1024];
    if ((signal || shared->n_live > good->n_live) && is_a_librarys()) return true;
    if (signal || !shared->finished) {
        describe(&shared->failed, where, sizeof where);
        describe(&shared->died, more, sizeof more);
        if (signal == SIGALRM) snprintf(what, sizeof what, "%s: does not end", where);
        else snprintf(what, sizeof what, "%s: signal %d in %s", where, signal, more);
    } else if (shared->n_live > good->n_live) {
        describe(&shared->failed, where, sizeof where);
        describe(&shared->leaks[0], more, sizeof more);
        snprintf(what, sizeof what, "%s: leaves %ld blocks, one of %s", where, shared->n_live - good->n_live, more);
    } else if (shared->status == RWS_OK && memcmp(&shared->result, &good->result, sizeof good->result) != 0) {
        describe(&shared->failed, where, sizeof where);
        snprintf(what, sizeof what, "%s: RWS_OK with a wrong result", where);
    } else if (shared->status != RWS_OK && shared->status != RWS_NO_MEMORY && shared->status != RWS_BAD_INPUT) {
        describe(&shared->failed, where, sizeof where);
        snprintf(what, sizeof what, "%s: status %d, \"%s\"", where, (int)shared->status, shared->error.text);
    } else if (shared->status != RWS_OK && !shared->error.text[0]) {
        describe(&shared->failed, where, sizeof where);
        snprintf(what, sizeof what, "%s: status %d without a message", where, (int)shared->status);
    } else return true;
    bad(n, what);
    return false;
}

int torture(const scenario *s)
{
    trail warm;
    note(&warm); /* loads what backtrace needs */
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) exit(99);

    /* Caches that last are filled here, once; the child inherits them. */
    rws_error err = {""};
    double    result;
    for (int i = 0; i < 2; i++)
        if (s->run(s->context, &result, &err) != RWS_OK) {
            printf("%s: fails by itself: %s\n", s->name, err.text);
            return 1;
        }
    const int signal = in_child(s, 0, true);
    if (signal || !shared->finished || shared->status != RWS_OK) {
        printf("%s: fails by itself in a child: signal %d, %s\n", s->name, signal, shared->error.text);
        return 1;
    }
    const account good = *shared;
    if (good.n_live > 0) {
        char where[400];
        describe(&good.leaks[0], where, sizeof where);
        printf("%s: leaves %ld blocks when nothing fails, one of %s\n", s->name, good.n_live, where);
    }

    if (getenv("FAIL_AT")) {
        memset(shared, 0, sizeof *shared);
        repetition(s, atol(getenv("FAIL_AT")), false);
        printf("%s: status %d, \"%s\", leaves %ld blocks\n", s->name, (int)shared->status, shared->error.text,
               shared->n_live);
        return 0;
    }

    int n_bad = good.n_live > 0, n_tried = 0, n_ok = 0, n_refused = 0, n_theirs = 0;
    n_endings = 0;
    for (long n = 1; n <= good.n_allocations; n += s->stride ? s->stride : 1) {
        int ended = in_child(s, n, false);
        if (!ended && shared->n_live > good.n_live) ended = in_child(s, n, true);
        n_tried++;
        if (!judge(&good, n, ended)) n_bad++;
        else if (ended) n_theirs++;
        else if (shared->status == RWS_OK) n_ok++;
        else n_refused++;
    }
    printf("%s: %ld allocations, %d made to fail: %d a status, %d the right result, %d end in a library, %d bad\n",
           s->name, good.n_allocations, n_tried, n_refused, n_ok, n_theirs, n_bad);
    for (int i = 0; i < n_endings; i++)
        printf("  allocation %ld%s %s\n", endings[i].first, endings[i].n > 1 ? " and more:" : ":", endings[i].what);
    munmap(shared, sizeof *shared);
    return n_bad;
}
