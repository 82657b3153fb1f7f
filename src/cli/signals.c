#include "cli/signals.h"

volatile sig_atomic_t rws_signals_caught;

/* Resets both signals: TERM after INT must end the program at once too. SA_RESETHAND would reset only the one that came. */
static void caught(int number)
{
    rws_signals_caught = number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

void rws_signals_catch(void)
{
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    /* A shell has a background job (`rws train … &` in a script) ignore SIGINT; it is caught all the same, because the
     * script may send it. */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void rws_signals_release(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}
