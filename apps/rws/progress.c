#include "rws/progress.h"

#include "base/clock.h"
#include "rws/screen.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REDRAW 0.1 /* seconds between two drawings, at least */
#define MEMORY 8.0 /* seconds after which a speed counts 1/e */

enum { MIN_BAR = 8, MAX_BAR = 40, WIDEST = 400 };

void rws__progress_init(rws_progress *p, const char *what, uint64_t done, uint64_t total)
{
    *p = (rws_progress){.what = what, .total = total, .asked_at = rws__clock_now(), .asked_done = done};
    const char *term = getenv("TERM");
    p->active = isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
    if (!p->active) return;
    p->unicode = rws__screen_unicode();
}

void rws__progress_note(rws_progress *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->note, sizeof p->note, format, args);
    va_end(args);
}

static int terminal_width(void)
{
    const int width = rws__screen_columns(STDERR_FILENO);
    return width < WIDEST ? width : WIDEST;
}

/* Only the bar is not ASCII; in all other parts of the line a byte is a column. */
static void format_bar(const rws_progress *p, char *out, double share, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int                steps = (int)(share * width * 8);
    const int                full = p->unicode ? steps / 8 : (int)(share * width);
    char                    *end = stpcpy(out, p->unicode ? "▕" : "[");
    int                      column = 0;
    for (; column < full; column++) end = stpcpy(end, p->unicode ? "█" : "#");
    if (p->unicode && column < width && steps % 8) end = stpcpy(end, eighths[steps % 8]), column++;
    for (; column < width; column++) *end++ = p->unicode ? ' ' : '.';
    strcpy(end, p->unicode ? "▏" : "]");
}

void rws__progress_time(char *out, size_t size, double seconds)
{
    const double minutes = floor(seconds / 60), hours = floor(minutes / 60);
    if (!(seconds >= 0) || hours > 9999) snprintf(out, size, "?");
    else if (hours > 0)
        snprintf(out, size, "%.0f:%02.0f:%02.0f", hours, minutes - 60 * hours, floor(seconds - 60 * minutes));
    else snprintf(out, size, "%.0f:%02.0f", minutes, floor(seconds - 60 * minutes));
}

static void draw(const rws_progress *p, uint64_t done)
{
    const double share = p->uneven ? p->share : p->total ? fmin(1, (double)done / (double)p->total) : 1;
    const double rate = p->weight > 0 ? p->rate / p->weight : 0;
    const int    columns = terminal_width() - 1; /* a character in the last one would wrap the line */
    char         total[24], left[32], speed[40] = "", head[160], tail[320], bar[3 * MAX_BAR + 16] = "", line[1024];
    const int    n_total = snprintf(total, sizeof total, "%" PRIu64, p->total);
    rws__progress_time(left, sizeof left, p->uneven ? p->left : rate > 0 ? (double)(p->total - done) / rate : NAN);
    if (!p->uneven) snprintf(speed, sizeof speed, "%.*f it/s  ", rate >= 100 ? 0 : rate >= 1 ? 1 : 3, rate);

    /* If the line is too long, the note is left out first, then the name, then the bar. */
    for (int level = 0; level < 3; level++) {
        const int n_head = snprintf(head, sizeof head, "%s%s%*" PRIu64 "/%s %3.0f%%", level < 2 ? p->what : "",
                                    level < 2 ? "  " : "", n_total, done, total, floor(100 * share));
        const int n_tail = snprintf(tail, sizeof tail, "%s%s left%s%s", speed, left,
                                    level < 1 && p->note[0] ? "  " : "", level < 1 ? p->note : "");
        int       width = columns - n_head - n_tail - 4;
        if (width > MAX_BAR) width = MAX_BAR;
        if (width < MIN_BAR) continue;
        format_bar(p, bar, share, width);
        break;
    }
    int n = snprintf(line, sizeof line, "\r%s%s%s %s", head, bar[0] ? " " : "", bar, tail);
    if (!bar[0] && n > columns + 1) n = columns + 1;
    fprintf(stderr, "%.*s\033[K", n, line);
}

/* Whether this program is in the foreground of the terminal. */
static bool in_foreground(void)
{
    return tcgetpgrp(STDERR_FILENO) == getpgrp();
}

void rws__progress_show(rws_progress *p, uint64_t done)
{
    if (!p->active) return;
    const double now = rws__clock_now(), passed = now - p->asked_at;
    if (now - p->drawn_at < REDRAW) return;
    if (passed > 0) {
        const double keep = exp(-passed / MEMORY);
        p->rate = keep * p->rate + (1 - keep) * (double)(done - p->asked_done) / passed;
        p->weight = keep * p->weight + (1 - keep);
        p->asked_at = now;
        p->asked_done = done;
    }
    if (!in_foreground()) return;
    draw(p, done);
    p->drawn = true;
    p->drawn_at = now;
}

void rws__progress_show_fraction(rws_progress *p, uint64_t done, double share, double left)
{
    const double now = rws__clock_now();
    if (!p->active || now - p->drawn_at < REDRAW || !in_foreground()) return;
    p->uneven = true;
    p->share = share;
    p->left = left;
    draw(p, done);
    p->drawn = true;
    p->drawn_at = now;
}

void rws__progress_clear(rws_progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}
