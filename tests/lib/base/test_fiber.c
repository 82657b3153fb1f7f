/* test_fiber.c - fibers keep their place: registers, stacks, re-arming, threads.
 *
 * Runs as it is under AddressSanitizer, ThreadSanitizer and valgrind, which see what an assertion cannot.
 */
#include "support.h"

#include "base/fiber.h"

#include <execinfo.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#if defined(__has_feature)
#define WITH_ASAN __has_feature(address_sanitizer)
#define WITH_TSAN __has_feature(thread_sanitizer)
#else /* gcc defines them to 1, or not at all */
#define WITH_ASAN __SANITIZE_ADDRESS__
#define WITH_TSAN __SANITIZE_THREAD__
#endif

#define STACK ((size_t)64 << 10)

/* A generator: each resume brings the next value. */
typedef struct {
    rws_fiber *fiber;
    int        n, seed; /* how many values; where they start */
    int64_t    value;
    double     real;
} generator;

__attribute__((noinline)) static double mix(double x, int i)
{
    return x * 1.0000001 + i;
}

/* More live values than there are registers to keep them, integer and real, across every yield. */
static void generate(void *arg)
{
    generator *g = arg;
    int64_t    a = g->seed, b = a + 1, c = a + 2, d = a + 3, e = a + 4, h = a + 5, k = a + 6;
    double     p = a, q = p + 0.5, r = p + 0.25, s = p + 0.125, t = p - 0.5, u = p - 0.25, v = p - 0.125, w = p - 1;
    for (int i = 0; i < g->n; i++) {
        a += b, b += c & 7, c += d & 7, d += e & 7, e += h & 7, h += k & 7, k += 1;
        p = mix(p, i), q = mix(q, i), r = mix(r, i), s = mix(s, i), t = mix(t, i), u = mix(u, i), v = mix(v, i);
        w += p * q - r * s + t * u - v;
        g->value = a + b + c + d + e + h + k;
        g->real = p + q + r + s + t + u + v + w;
        if (g->fiber) rws__fiber_yield(g->fiber);
    }
}

/* What generate() leaves when it is not interrupted: the reference. */
static generator generated(int n, int seed)
{
    generator twin = {.n = n, .seed = seed};
    void (*volatile same_code)(void *) = generate; /* not a copy compiled differently, which may round differently */
    same_code(&twin);
    return twin;
}

static void values_survive_a_yield(void **state)
{
    (void)state;
    enum { N = 3, STEPS = 100 };
    generator g[N];
    for (int j = 0; j < N; j++) {
        g[j] = (generator){.fiber = rws__fiber_new(STACK), .n = STEPS, .seed = 1000 * j};
        assert_non_null(g[j].fiber);
        assert_true(rws__fiber_done(g[j].fiber));
        rws__fiber_start(g[j].fiber, generate, &g[j]);
        assert_false(rws__fiber_done(g[j].fiber));
    }
    for (int i = 1; i <= STEPS; i++) {
        for (int j = 0; j < N; j++) {
            generator twin = generated(i, 1000 * j);
            rws__fiber_resume(g[j].fiber);
            assert_false(rws__fiber_done(g[j].fiber));
            assert_int_equal(g[j].value, twin.value);
            assert_memory_equal(&g[j].real, &twin.real, sizeof(double));
        }
    }
    for (int j = 0; j < N; j++) {
        rws__fiber_resume(g[j].fiber);
        assert_true(rws__fiber_done(g[j].fiber));
        rws__fiber_free(g[j].fiber);
    }
    rws__fiber_free(NULL);
}

/* The registers that a call must preserve, filled by hand and looked at after the yield. Each architecture's list is
 * written out; where there is none the test above has to do.
 */
static void hold_registers(void *arg)
{
    generator *g = arg;
#if defined(__x86_64__)
    register int64_t r0 __asm__("rbx") = g->seed + 1, r1 __asm__("r12") = g->seed + 2, r2 __asm__("r13") = g->seed + 3,
                        r3 __asm__("r14") = g->seed + 4, r4 __asm__("r15") = g->seed + 5;
#define HOLD __asm__ volatile("" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4))
#elif defined(__aarch64__)
    register int64_t r0 __asm__("x19") = g->seed + 1, r1 __asm__("x22") = g->seed + 2, r2 __asm__("x24") = g->seed + 3,
                        r3 __asm__("x27") = g->seed + 4, r4 __asm__("x28") = g->seed + 5;
    register double d0 __asm__("d8") = g->seed + 6, d1 __asm__("d11") = g->seed + 7, d2 __asm__("d15") = g->seed + 8;
#define HOLD __asm__ volatile("" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+w"(d0), "+w"(d1), "+w"(d2))
#else
    int64_t r0 = g->seed + 1, r1 = g->seed + 2, r2 = g->seed + 3, r3 = g->seed + 4, r4 = g->seed + 5;
#define HOLD (void)0
#endif
    HOLD;
    rws__fiber_yield(g->fiber);
    HOLD;
    g->value = r0 + 10 * r1 + 100 * r2 + 1000 * r3 + 10000 * r4;
#if defined(__aarch64__)
    g->value += (int64_t)(d0 + d1 + d2) - 3 * g->seed - 21;
#endif
}

static void registers_survive_a_yield(void **state)
{
    (void)state;
    generator g[2] = {{.seed = 0}, {.seed = 4}};
    for (int j = 0; j < 2; j++) {
        g[j].fiber = rws__fiber_new(STACK);
        rws__fiber_start(g[j].fiber, hold_registers, &g[j]);
    }
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) rws__fiber_resume(g[j].fiber);
    }
    assert_int_equal(g[0].value, 54321);
    assert_int_equal(g[1].value, 54321 + 4 * 11111);
    for (int j = 0; j < 2; j++) {
        assert_true(rws__fiber_done(g[j].fiber));
        rws__fiber_free(g[j].fiber);
    }
}

static void thousands_of_fibers(void **state)
{
    (void)state;
    enum { N = 5000, STEPS = 3 };
    generator *g = calloc(N, sizeof *g);
    assert_non_null(g);
    for (int j = 0; j < N; j++) {
        g[j] = (generator){.fiber = rws__fiber_new(STACK), .n = STEPS, .seed = j};
        assert_non_null(g[j].fiber);
        rws__fiber_start(g[j].fiber, generate, &g[j]);
    }
    for (int i = 1; i <= STEPS; i++) {
        for (int j = 0; j < N; j++) rws__fiber_resume(g[j].fiber);
        for (int j = 0; j < N; j++) assert_int_equal(g[j].value, generated(i, j).value);
    }
    for (int j = 0; j < N; j++) {
        if (j % 2) rws__fiber_resume(g[j].fiber); /* the others are freed half-way */
        assert_int_equal(rws__fiber_done(g[j].fiber), j % 2);
        rws__fiber_free(g[j].fiber);
    }
    free(g);
}

/* A stack asked for and not touched costs address space only. */
static void untouched_stacks_cost_nothing(void **state)
{
    (void)state;
    enum { N = 100 };
    rws_fiber    *f[N];
    struct rusage before, after;
    if (RUNNING_ON_VALGRIND) skip();
    getrusage(RUSAGE_SELF, &before);
    for (int j = 0; j < N; j++) {
        generator g = {.n = 0};
        f[j] = rws__fiber_new((size_t)8 << 20);
        assert_non_null(f[j]);
        rws__fiber_start(f[j], generate, &g);
        rws__fiber_resume(f[j]);
        assert_true(rws__fiber_done(f[j]));
    }
    getrusage(RUSAGE_SELF, &after);
#if !WITH_ASAN && !WITH_TSAN
    assert_true(after.ru_maxrss - before.ru_maxrss < 100 << 10); /* kilobytes; all of it would be 800 MB */
#endif
    for (int j = 0; j < N; j++) rws__fiber_free(f[j]);
}

static void a_stack_that_cannot_be_had_is_null(void **state)
{
    (void)state;
    assert_null(rws__fiber_new(SIZE_MAX));
    assert_null(rws__fiber_new(SIZE_MAX / 16));
}

/* Recursion down to 4 KB above the guard page, with a yield at the bottom and at each step of the way back. */
typedef struct {
    rws_fiber *fiber;
    char      *top;
    size_t     limit;
    int        depth, deepest, returned;
} diver;

__attribute__((noinline)) static int dive(diver *d, int depth)
{
    volatile char ballast[200];
    memset((char *)ballast, depth & 127, sizeof ballast);
    d->depth = depth;
    if ((size_t)(d->top - (char *)__builtin_frame_address(0)) + 4096 < d->limit) {
        if (dive(d, depth + 1) != depth + 1) return -1;
    } else {
        d->deepest = depth;
    }
    rws__fiber_yield(d->fiber);
    for (size_t i = 0; i < sizeof ballast; i++) {
        if (ballast[i] != (depth & 127)) return -1;
    }
    d->returned++;
    return depth;
}

static void dive_in(void *arg)
{
    diver *d = arg;
    d->top = __builtin_frame_address(0);
    d->returned = dive(d, 0) == 0 ? d->returned : -1;
}

static void recursion_nearly_fills_the_stack(void **state)
{
    (void)state;
    diver d = {.fiber = rws__fiber_new(STACK), .limit = STACK};
    rws__fiber_start(d.fiber, dive_in, &d);
    int n_resumes = 0;
    while (!rws__fiber_done(d.fiber)) {
        rws__fiber_resume(d.fiber);
        n_resumes++;
    }
    assert_true(d.deepest > 20);
    assert_int_equal(d.returned, d.deepest + 1);
    assert_int_equal(n_resumes, d.deepest + 2);
    rws__fiber_free(d.fiber);
}

/* Overflowing the stack hits the guard page: the process dies, and nothing beside the stack is written. */
static void overflow_is_caught(void **state)
{
    (void)state;
    if (RUNNING_ON_VALGRIND) skip();
#if WITH_TSAN
    skip(); /* it does not follow fibers into a forked child */
#endif
    diver d = {.fiber = rws__fiber_new(STACK), .limit = SIZE_MAX};
    rws__fiber_start(d.fiber, dive_in, &d);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        rws__fiber_resume(d.fiber);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS));
    rws__fiber_free(d.fiber);
}

/* A fiber that has an overflow function continues there, and can be used again. */
typedef struct {
    rws_fiber *fiber;
    int        n_overflows;
    size_t     array; /* bytes on the stack at once; 0: recursion */
} spender;

static void spend_no_more(void *arg)
{
    spender *s = arg;
    s->n_overflows++;
    char text[2000]; /* the stack is empty again */
    snprintf(text, sizeof text, "%d", s->n_overflows);
    for (;;) rws__fiber_yield(s->fiber);
}

__attribute__((noinline)) static int recurse(volatile int *depth)
{
    volatile char ballast[1000];
    ballast[0] = 1;
    return ++*depth > 0 ? recurse(depth) + ballast[0] : 0; /* always */
}

static void spend(void *arg)
{
    spender     *s = arg;
    volatile int depth = 0;
    if (s->array) {
        volatile char *large = __builtin_alloca(s->array);
        large[0] = 1; /* its far end first: below the stack's own pages */
        large[s->array - 1] = large[0];
    } else recurse(&depth);
}

static void *overflow_again_and_again(void *arg)
{
    spender *s = arg;
    rws__fiber_thread(true);
    for (int i = 0; i < 20; i++) {
        s->array = i % 4 == 3 ? (size_t)4 << 20 : 0;
        rws__fiber_start(s->fiber, spend, s);
        rws__fiber_resume(s->fiber);
    }
    return NULL;
}

static void overflow_is_told(void **state)
{
    (void)state;
    if (RUNNING_ON_VALGRIND) skip();
#if WITH_TSAN
    skip();
#endif
    spender   s[3];
    pthread_t thread[2];
    for (int i = 0; i < 3; i++) {
        s[i] = (spender){.fiber = rws__fiber_new(STACK)};
        rws__fiber_on_overflow(s[i].fiber, spend_no_more);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, overflow_again_and_again, &s[i]), 0);
    overflow_again_and_again(&s[2]);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s[i].n_overflows, 20);
        generator g = {.fiber = s[i].fiber, .n = 1, .seed = i};
        rws__fiber_start(s[i].fiber, generate, &g);
        rws__fiber_resume(s[i].fiber);
        rws__fiber_free(s[i].fiber);
    }
}

/* Any other fault goes to the handler that was there before, on a fiber and off it. */
static void fault(void *arg)
{
    (void)arg;
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void end_well(int number)
{
    (void)number;
    _exit(7);
}

static struct sigaction installed_before;

static void chain(int number, siginfo_t *info, void *context)
{
    installed_before.sa_sigaction(number, info, context);
}

static void other_faults_are_not_ours(void **state)
{
    (void)state;
    if (RUNNING_ON_VALGRIND) skip();
#if WITH_TSAN || WITH_ASAN
    skip(); /* their handlers were there before */
#endif
    for (int kind = 0; kind < 8; kind++) {
        pid_t child = fork(); /* whether the handler of this process is in place by now does not matter */
        assert_true(child >= 0);
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            if (kind & 1) signal(SIGSEGV, end_well);
            else signal(SIGSEGV, SIG_DFL);
            rws__fiber_thread(true);
            rws_fiber *f = rws__fiber_new(STACK);
            rws__fiber_on_overflow(f, spend_no_more);
            rws__fiber_start(f, fault, NULL);
            if (kind & 4) { /* one that is installed afterwards and passes faults on */
                sigaction(SIGSEGV, NULL, &installed_before);
                sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = chain, .sa_flags = SA_SIGINFO}, NULL);
                rws__fiber_thread(true);
            }
            if (kind & 2) rws__fiber_resume(f);
            fault(NULL);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (kind & 1) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        else assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

static void an_abandoned_fiber_starts_afresh(void **state)
{
    (void)state;
    diver d = {.fiber = rws__fiber_new(STACK), .limit = STACK};
    for (int round = 0; round < 50; round++) {
        d.returned = 0;
        rws__fiber_start(d.fiber, dive_in, &d);
        if (round % 3 == 0) rws__fiber_start(d.fiber, dive_in, &d); /* armed twice, never run between */
        for (int i = 0; i <= round % 7; i++) rws__fiber_resume(d.fiber);
        assert_int_equal(d.returned, round % 7);
        assert_false(rws__fiber_done(d.fiber)); /* deep down, or on the way up */

        generator g = {.fiber = d.fiber, .n = 2, .seed = round};
        rws__fiber_start(d.fiber, generate, &g);
        rws__fiber_resume(d.fiber);
        assert_int_equal(g.value, generated(1, round).value);
        rws__fiber_resume(d.fiber);
        assert_int_equal(g.value, generated(2, round).value);
        if (round % 2) rws__fiber_resume(d.fiber);
        assert_int_equal(rws__fiber_done(d.fiber), round % 2);
    }
    rws__fiber_start(d.fiber, dive_in, &d);
    rws__fiber_resume(d.fiber);
    rws__fiber_free(d.fiber);
}

/* Fibers run with the rounding of the thread that resumes them, at every resume. */
static void look_at_rounding(void *arg)
{
    generator *g = arg;
    for (;;) {
        g->value = fegetround();
        rws__fiber_yield(g->fiber);
    }
}

static void floating_point_control_is_the_resumers(void **state)
{
    (void)state;
    if (RUNNING_ON_VALGRIND) skip();
    const int modes[] = {FE_UPWARD, FE_TONEAREST, FE_TOWARDZERO};
    generator g = {.fiber = rws__fiber_new(STACK)};
    rws__fiber_start(g.fiber, look_at_rounding, &g);
    for (int i = 0; i < 3; i++) {
        fesetround(modes[i]);
        rws__fiber_resume(g.fiber);
        int after = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(g.value, modes[i]);
        assert_int_equal(after, modes[i]);
    }
    rws__fiber_free(g.fiber);
}

/* A backtrace taken on a fiber ends at its bottom frame. */
typedef struct {
    rws_fiber *fiber;
    int        shallow, deep; /* frames seen */
} tracer;

__attribute__((noinline)) static int frames_below(int depth)
{
    void        *frame[64];
    volatile int n = depth > 0 ? frames_below(depth - 1) : backtrace(frame, 64);
    return n;
}

static void trace(void *arg)
{
    tracer *t = arg;
    t->shallow = frames_below(0);
    rws__fiber_yield(t->fiber);
    t->deep = frames_below(10);
}

static void backtraces_end_at_the_bottom(void **state)
{
    (void)state;
    tracer t = {.fiber = rws__fiber_new(4 * STACK)};
    rws__fiber_start(t.fiber, trace, &t);
    while (!rws__fiber_done(t.fiber)) rws__fiber_resume(t.fiber);
    assert_in_range(t.shallow, 2, 8); /* frames_below, trace, fiber_main, boot */
    assert_int_equal(t.deep, t.shallow + 10);
    rws__fiber_free(t.fiber);
}

/* cmocka's assertions belong to the main thread: the others count what they find wrong. */
static void *run_own_fibers(void *arg)
{
    enum { N = 50, STEPS = 200 };
    intptr_t  n_wrong = 0;
    const int seed = *(const int *)arg;
    generator g[N];
    for (int j = 0; j < N; j++) {
        g[j] = (generator){.fiber = rws__fiber_new(STACK), .n = STEPS, .seed = seed + j};
        rws__fiber_start(g[j].fiber, generate, &g[j]);
    }
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < N; j++) rws__fiber_resume(g[j].fiber);
    }
    for (int j = 0; j < N; j++) {
        n_wrong += g[j].value != generated(STEPS, seed + j).value;
        rws__fiber_free(g[j].fiber);
    }
    return (void *)n_wrong;
}

static void two_threads_with_fibers_of_their_own(void **state)
{
    (void)state;
    pthread_t thread[2];
    int       seed[2] = {0, 100000};
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&thread[t], NULL, run_own_fibers, &seed[t]), 0);
    for (int t = 0; t < 2; t++) {
        void *n_wrong;
        assert_int_equal(pthread_join(thread[t], &n_wrong), 0);
        assert_null(n_wrong);
    }
}

/* One set of fibers, resumed by two threads in turn: a barrier on either side of each turn. */
enum { MOVED = 20, TURNS = 100 };

typedef struct {
    pthread_barrier_t barrier;
    generator         g[MOVED];
} shared_fibers;

typedef struct {
    shared_fibers *shared;
    int            parity;
} mover;

static void *take_turns(void *arg)
{
    mover *m = arg;
    for (int i = 0; i < TURNS; i++) {
        for (int j = 0; j < MOVED; j++) {
            if ((i + j) % 2 == m->parity) rws__fiber_resume(m->shared->g[j].fiber);
        }
        pthread_barrier_wait(&m->shared->barrier);
    }
    return NULL;
}

static void fibers_move_between_threads(void **state)
{
    (void)state;
    shared_fibers s;
    assert_int_equal(pthread_barrier_init(&s.barrier, NULL, 2), 0);
    for (int j = 0; j < MOVED; j++) {
        s.g[j] = (generator){.fiber = rws__fiber_new(STACK), .n = TURNS, .seed = j};
        rws__fiber_start(s.g[j].fiber, generate, &s.g[j]);
    }
    pthread_t thread[2];
    mover     m[2] = {{&s, 0}, {&s, 1}};
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&thread[t], NULL, take_turns, &m[t]), 0);
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_join(thread[t], NULL), 0);
    for (int j = 0; j < MOVED; j++) {
        generator twin = generated(TURNS, j);
        assert_int_equal(s.g[j].value, twin.value);
        assert_memory_equal(&s.g[j].real, &twin.real, sizeof(double));
        if (j % 2) { /* finished, or abandoned, on a third thread */
            rws__fiber_resume(s.g[j].fiber);
            assert_true(rws__fiber_done(s.g[j].fiber));
        }
        rws__fiber_free(s.g[j].fiber);
    }
    pthread_barrier_destroy(&s.barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_a_yield),
        cmocka_unit_test(registers_survive_a_yield),
        cmocka_unit_test(thousands_of_fibers),
        cmocka_unit_test(untouched_stacks_cost_nothing),
        cmocka_unit_test(a_stack_that_cannot_be_had_is_null),
        cmocka_unit_test(recursion_nearly_fills_the_stack),
        cmocka_unit_test(overflow_is_caught),
        cmocka_unit_test(other_faults_are_not_ours),
        cmocka_unit_test(overflow_is_told),
        cmocka_unit_test(an_abandoned_fiber_starts_afresh),
        cmocka_unit_test(floating_point_control_is_the_resumers),
        cmocka_unit_test(backtraces_end_at_the_bottom),
        cmocka_unit_test(two_threads_with_fibers_of_their_own),
        cmocka_unit_test(fibers_move_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
