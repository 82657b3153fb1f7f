/* failing.h - makes allocations fail, one after the other, and says what became of it.
 *
 * A program that is linked with failing.c has its own malloc, calloc, realloc, aligned_alloc, posix_memalign, free, mmap,
 * munmap and pthread_create in the place of the system's: they forward, count, and fail once where they are told to.
 * strdup, asprintf, fopen and the libraries (SQLite, jansson) allocate through them too.
 *
 *     warm up -> count allocations of a scenario -> for each: fork, let that one fail, run, judge
 *
 * A repetition is right if it ends with an accepted status, or with the result that the scenario has when nothing fails,
 * and leaves no block behind. Each runs in a process of its own, so that a crash is a line of the report.
 */
#ifndef RWS_TESTS_FAILING_H
#define RWS_TESTS_FAILING_H

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
