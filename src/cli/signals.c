#include "cli/signals.h"

volatile sig_atomic_t rws_signals_caught;

/* SA_RESETHAND would reset only the signal that came: TERM after INT must end the program at once too. */
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
    /* Also where a shell had SIGINT ignored, as for a script's `rws train … &`: that script may well send it. */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
