#include "cli/signals.h"

volatile sig_atomic_t rws_signals_caught;

/* SA_RESETHAND resets only the signal that came: TERM after INT must end the program at once too. */
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
    const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        /* A job that a script started with `&` ignores SIGINT, and should go on ignoring it. */
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
        sigaction(numbers[i], &action, NULL);
    }
}
