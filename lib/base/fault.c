/* fault.c - the handler of SIGSEGV, which hands a fault on the guard of a running fiber to that fiber, and every other fault to the
 * handler that was there before. Every thread that runs fibers has a stack of its own for signals, since the handler cannot run
 * on a stack that is full.
 */
#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

_Thread_local rws_fault_state rws_fault_thread;

/* The handler finds the state of its thread by a key, because the first use of a thread-local variable may allocate memory; the
 * key of a thread that runs no fibers has NULL. */
static pthread_key_t state_key;
static bool          has_key;

/* Handlers of SIGSEGV that our handler was put in front of, the oldest first. A handler that was installed after ours
 * may pass a fault on to ours; then ours passes it on to the handler before that one. */
#define MAX_BEFORE 16
static struct sigaction before[MAX_BEFORE];
static atomic_int       n_before, n_passed; /* n_passed: how often the fault at hand was passed on */
static pthread_mutex_t  installing = PTHREAD_MUTEX_INITIALIZER;

static void pass_on(int number, siginfo_t *info, void *context)
{
    const int at = n_before - 1 - n_passed++;
    if (at >= 0 && before[at].sa_flags & SA_SIGINFO) before[at].sa_sigaction(number, info, context);
    else if (at >= 0 && before[at].sa_handler != SIG_DFL && before[at].sa_handler != SIG_IGN)
        before[at].sa_handler(number);
    else signal(number, SIG_DFL); /* the fault happens again, and ends the process as ever */
    n_passed--;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const rws_fault_state *state = pthread_getspecific(state_key);
    if (state && state->running && rws__fiber_catch(state->running, info->si_addr, context)) return;
    pass_on(number, info, context);
}

static bool is_in_front(void)
{
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault);
}

/* Installs the handler unless it is the first to be called already. */
static void put_in_front(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&installing);
    if (!is_in_front() && n_before < MAX_BEFORE && sigaction(SIGSEGV, NULL, &before[n_before]) == 0) {
        int at = 0; /* if the handler is in the list already, it was put back, and the handlers after it are gone */
        while (before[at].sa_sigaction != before[n_before].sa_sigaction) at++;
        n_before = at + 1;
        sigaction(SIGSEGV, &action, NULL);
    }
    pthread_mutex_unlock(&installing);
}

/* The handler cannot run on a stack that is full, so every thread has another one for signals. */
static size_t alternate_bytes;

static void thread_ends(void *arg)
{
    rws_fault_state *state = arg;
    stack_t          now;
    if (!state->alternate) return;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == state->alternate)
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE, .ss_size = alternate_bytes}, NULL);
    munmap(state->alternate, alternate_bytes);
}

static void prepare(void)
{
    const size_t frame = getauxval(AT_MINSIGSTKSZ); /* of a signal, with all registers; 0: an older kernel */
    alternate_bytes = (size_t)64 << 10;
    while (alternate_bytes < 8 * frame) alternate_bytes *= 2;
    has_key = pthread_key_create(&state_key, thread_ends) == 0;
}

static void make_alternate(rws_fault_state *state)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return; /* the thread has one already */
    void *memory =
        mmap(NULL, alternate_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    state->alternate = memory;
    if (sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = alternate_bytes}, NULL) == 0) return;
    munmap(memory, alternate_bytes);
    state->alternate = NULL;
}

void rws__fiber_thread(bool install)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    if (!has_key) return;
    n_passed = 0; /* a handler may have left by longjmp */
    if (!pthread_getspecific(state_key) && pthread_setspecific(state_key, &rws_fault_thread) == 0)
        make_alternate(&rws_fault_thread);
    if (install && !is_in_front()) put_in_front();
}

/* The library may be unloaded while the process continues. */
__attribute__((destructor)) static void uninstall(void)
{
    if (n_before && is_in_front()) sigaction(SIGSEGV, &before[n_before - 1], NULL);
    if (has_key) pthread_key_delete(state_key);
}
