/* signals.h - Ctrl-C: the first sets a flag, so that the program can save its state; the second ends it at once. */
#ifndef RWS_RWS_SIGNALS_H
#define RWS_RWS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP (unless that is ignored) only sets the flag; a second one has its default
 * action. */
void rws_signals_catch(void);

/* All have their default action again, for work that may end at any moment, such as drawing figures. */
void rws_signals_release(void);

extern volatile sig_atomic_t rws_signals_caught;

/* Reads the flag; cheap enough for every iteration. */
static inline bool rws_interrupted(void)
{
    return rws_signals_caught != 0;
}

#endif
