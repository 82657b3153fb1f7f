/* clock.h - a clock, and a counter by which a loop reads it rarely. */
#ifndef RWS_BASE_CLOCK_H
#define RWS_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Seconds since some moment in the past; it never goes back. */
static inline double rws__clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The pace of a loop that shows its progress or saves its state now and then: rws__pace_due is true about every 50 ms,
 * however long an iteration takes. The clock is read once in `stride` iterations; the stride follows the speed of the
 * loop and at most doubles at a time. */
typedef struct {
    uint64_t left, stride;
    double   last;
} rws_pace;

static inline rws_pace rws__pace_start(void)
{
    return (rws_pace){.left = 1, .stride = 1, .last = rws__clock_now()};
}

static inline bool rws__pace_due(rws_pace *p)
{
    const double period = 0.05;
    if (--p->left > 0) return false;
    const double now = rws__clock_now(), share = (now - p->last) / period;
    if (share < 0.5) {
        p->stride *= 2;
    } else {
        p->stride = (uint64_t)((double)p->stride / share);
        if (p->stride == 0) p->stride = 1;
    }
    p->left = p->stride;
    p->last = now;
    return share >= 0.5;
}

#endif
