/* signals.h - Ctrl-C: the first sets a flag, so that the program can save its state; the second ends it at once. */
#ifndef RWS_RWS_SIGNALS_H
#define RWS_RWS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP (unless that is ignored) only sets the flag; a second one has its
 * default action. */
void rws__signals_catch(void);

/* All have their default action again, for work that may end at any moment, such as drawing figures. */
void rws__signals_release(void);

/* From now on the process ends, with this message and exit status 130, if a signal was caught and the flag is not read
 * for RWS_SIGNALS_GRACE seconds and three times the longest time between two readings so far: a program of the model
 * that is in an endless loop never returns to the library, which would read the flag. `message` must live until
 * rws__signals_unwatch; NULL: the process ends without a word. */
void rws__signals_watch(const char *message);
void rws__signals_unwatch(void);

#define RWS_SIGNALS_GRACE 10.0

extern volatile sig_atomic_t rws_signals_caught;

/* Reads the flag; cheap enough for every iteration. */
bool rws__interrupted(void);

#endif
