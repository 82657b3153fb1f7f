/* failing.h - requests for memory that fail where a test tells them to.
 *
 * failing.c stands in the place of malloc, calloc, realloc, memalign, aligned_alloc, posix_memalign, free, mmap, munmap
 * and mprotect. Its functions forward, count, and refuse. What counts as a request depends on how it is built:
 *
 *     linked                 every request of the process, those of the libraries too    test_memory, test_starved;
 *                            also as a shared object for LD_PRELOAD                      starve.so, for each.c
 *     -DFAILING_WRAPPED      requests of the code that is linked with -Wl,--wrap=…;      test_shortage, test_comm; under
 *                            sanitizers and valgrind keep their own malloc behind it     sanitizers test_starved too
 *
 * Nothing fails before failing_set.
 */
#ifndef RWS_TESTS_FAILING_H
#define RWS_TESTS_FAILING_H

#include <stdbool.h>

/* Lets request number n from now on fail, the first being 0, and with `and_later` all after it too; n < 0: none. */
void failing_set(long n, bool and_later);

/* Requests since failing_set. */
long failing_count(void);

/* Blocks and mappings that are in use. Always 0 if wrapped: a library may free what the program made, or make what the
 * program frees. */
long failing_live(void);

/* What a test wants to know of requests; a NULL is not called. The requests of these functions themselves do not count. */
typedef struct {
    void (*refused)(const void *place);
    void (*made)(void *block);
    void (*freed)(void *block);
} failing_hooks;

extern failing_hooks failing_hook;

#endif
