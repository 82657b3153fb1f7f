/* torture.h - lets the allocations of a scenario fail, one after the other, and says what became of it. The program is
 * linked with failing.c.
 *
 *     warm up -> count allocations of a scenario -> for each: fork, let that one fail, run, judge
 *
 * A repetition is right if it ends with an accepted status, or with the result that the scenario has when nothing fails,
 * and leaves no block behind. Each runs in a process of its own, so that a crash is a line of the report.
 */
#ifndef RWS_TESTS_TORTURE_H
#define RWS_TESTS_TORTURE_H

#include "rws.h"

typedef struct {
    const char *name;
    /* Does the work and gives everything back. A number that tells right results from wrong ones goes to *result. */
    rws_status (*run)(const void *context, double *result, rws_error *err);
    const void *context;
    int         stride; /* fail every so many-th allocation only; 0: each */
} scenario;

/* Runs the scenario with each of its allocations failing, prints a line for every place where that ends badly, and
 * returns the number of bad repetitions. */
int torture(const scenario *s);

#endif
