/* progress.h - a line on the terminal that shows how much of the work is done.
 *
 * The line is drawn on stderr, if that is a terminal and this program is in its foreground; otherwise every function
 * does nothing. It has no timer: the loop calls rws__progress_show when rws__pace_due says so.
 *
 *     ww on gmm  12000/100000  12% ▕███▌          ▏ 8123 it/s  0:10 left  p_error 0.0123
 */
#ifndef RWS_RWS_PROGRESS_H
#define RWS_RWS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *what; /* the name of the work; belongs to the caller */
    uint64_t    total;
    bool        active; /* there is a terminal to draw on */
    bool        unicode;
    bool        drawn;    /* the line is on the screen and must be erased before other output */
    double      drawn_at; /* time */
    double      asked_at;
    uint64_t    asked_done;
    double      rate, weight; /* running mean of iterations per second, recent seconds counting most */
    bool        uneven;       /* pieces of work differ in length: the caller gives share and time left */
    double      share, left;
    char        note[160];
} rws_progress;

/* `done` of `total` pieces of work were done before the start. */
void rws__progress_init(rws_progress *p, const char *what, uint64_t done, uint64_t total);

/* Writes a time in few characters: "1:02:03", "?" for a NaN. */
void rws__progress_time(char *out, size_t size, double seconds);

/* Sets the text at the end of the line, such as the latest metrics. */
void rws__progress_note(rws_progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Draws the line, unless it was drawn less than a tenth of a second ago. */
void rws__progress_show(rws_progress *p, uint64_t done);

/* The same for pieces of work that differ much in length: the caller gives the share of the work that is done, and the
 * seconds that are left (NaN: unknown). */
void rws__progress_show_fraction(rws_progress *p, uint64_t done, double share, double left);

/* Erases the line: before output, and at the end. The next rws__progress_show draws it again. */
void rws__progress_clear(rws_progress *p);

#endif
