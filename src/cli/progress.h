/* progress.h - one line on the terminal that says how far it is.
 *
 * Drawn on stderr, and only if that is a terminal this program is in the foreground of; otherwise every function does
 * nothing. It has no clock of its own: whoever runs the loop calls rws_progress_show when rws_pace says so.
 *
 *     ww on gmm  12000/100000  12% ▕███▌          ▏ 8123 it/s  0:10 left  p_error 0.0123
 */
#ifndef RWS_CLI_PROGRESS_H
#define RWS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *what; /* belongs to the caller */
    uint64_t    total;
    bool        active; /* there is a terminal to draw on */
    bool        unicode;
    bool        drawn;    /* the line is there and must be erased before anything else is written */
    double      drawn_at; /* when */
    double      asked_at;
    uint64_t    asked_done;
    double      rate, weight; /* running mean of iterations per second, recent seconds counting most */
    bool        uneven;       /* what is counted takes differently long: share and time left are the caller's */
    double      share, left;
    char        note[160];
} rws_progress;

/* `done` of `total` were done before the start. */
void rws_progress_init(rws_progress *p, const char *what, uint64_t done, uint64_t total);

/* A time in few characters: "1:02:03", "?" for a NaN. */
void rws_progress_time(char *out, size_t size, double seconds);

/* What is shown at the end of the line from now on: the latest metrics. */
void rws_progress_note(rws_progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Draws the line, unless it was drawn less than a tenth of a second ago. */
void rws_progress_show(rws_progress *p, uint64_t done);

/* The same where one of the total may take much longer than another: the share of the work that is done, and the
 * seconds that are left (NaN: unknown), are given. */
void rws_progress_show_share(rws_progress *p, uint64_t done, double share, double left);

/* Erases the line: before output, and at the end. The next rws_progress_show draws it again. */
void rws_progress_clear(rws_progress *p);

#endif
