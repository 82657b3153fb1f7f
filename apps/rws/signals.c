#include "rws/signals.h"

volatile sig_atomic_t rws_signals_caught;

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

enum { N = sizeof numbers / sizeof *numbers };

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* nohup has a program ignore SIGHUP, and this stays so. A shell has a background job (`rws train … &` in a script) ignore
 * SIGINT; it is caught all the same, because the script may send it. */
static bool is_ours(int number)
{
    return number != SIGHUP || !is_ignored(number);
}

void rws_signals_release(void)
{
    for (int i = 0; i < N; i++)
        if (is_ours(numbers[i])) signal(numbers[i], SIG_DFL);
}

/* Resets all signals: TERM after INT must end the program at once too. SA_RESETHAND would reset only the one that came. */
static void caught(int number)
{
    rws_signals_caught = number;
    rws_signals_release();
}

void rws_signals_catch(void)
{
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N; i++)
        if (is_ours(numbers[i])) sigaction(numbers[i], &action, NULL);
}
