#include "rws/signals.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t rws_signals_caught;

static struct {
    pthread_t       thread;
    bool            on;
    sem_t           asked; /* posted by the first signal, and by rws__signals_unwatch */
    const char     *message;
    atomic_bool     over;
    atomic_uint     readings;      /* of the flag */
    _Atomic(double) last, longest; /* time of the last reading; longest time between two, in seconds */
} watch;

bool rws__interrupted(void)
{
    const double now = rws__clock_now();
    watch.longest = fmax(watch.longest, now - watch.last);
    watch.last = now;
    watch.readings++;
    return rws_signals_caught != 0;
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

enum { N = sizeof numbers / sizeof *numbers };

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* nohup has a program ignore SIGHUP, and this stays so. A shell has a background job (`rws train … &` in a script)
 * ignore SIGINT; it is caught all the same, because the script may send it. */
static bool is_ours(int number)
{
    return number != SIGHUP || !is_ignored(number);
}

void rws__signals_release(void)
{
    for (int i = 0; i < N; i++)
        if (is_ours(numbers[i])) signal(numbers[i], SIG_DFL);
}

/* Resets all signals: TERM after INT must end the program at once too. SA_RESETHAND would reset only the one that came.
 * */
static void caught(int number)
{
    const int was = errno;
    rws_signals_caught = number;
    rws__signals_release();
    if (watch.on) sem_post(&watch.asked);
    errno = was;
}

void rws__signals_catch(void)
{
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N; i++)
        if (is_ours(numbers[i])) sigaction(numbers[i], &action, NULL);
}

/* ---- a program that does not return */

#define TICK 0.1

/* Ends the process when the flag has not been read for the grace. It counts pauses of its own instead of comparing
 * times, so that a process that was suspended is not taken for one that hangs. */
static void *wait_for_readings(void *context)
{
    (void)context;
    while (sem_wait(&watch.asked) != 0) continue;
    unsigned seen = watch.readings;
    double   left = RWS_SIGNALS_GRACE + 3 * watch.longest;
    for (; !watch.over && left > 0; left -= TICK) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(TICK * 1e9)}, NULL);
        if (seen != watch.readings) left = RWS_SIGNALS_GRACE + 3 * watch.longest;
        seen = watch.readings;
    }
    if (watch.over) return NULL;
    if (watch.message && write(STDERR_FILENO, watch.message, strlen(watch.message)) < 0) _exit(130);
    _exit(130);
}

void rws__signals_watch(const char *message)
{
    sigset_t all, were;
    watch.message = message;
    watch.last = rws__clock_now();
    watch.over = false;
    watch.longest = 0;
    if (sem_init(&watch.asked, 0, 0) != 0) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &were); /* signals are for the other threads */
    watch.on = pthread_create(&watch.thread, NULL, wait_for_readings, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &were, NULL);
}

void rws__signals_unwatch(void)
{
    if (!watch.on) return;
    watch.over = true;
    sem_post(&watch.asked);
    pthread_join(watch.thread, NULL);
    watch.on = false;
}
