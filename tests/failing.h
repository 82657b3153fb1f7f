/* failing.h - a test that is linked with failing.c and its --wrap options can have any request for memory fail. Requests
 * of the library and of the test count; those of other libraries do not. */
#ifndef RWS_TESTS_FAILING_H
#define RWS_TESTS_FAILING_H

/* Lets request number n from now on fail, the first being 0, and with `from_then_on` all after it too; n < 0: none. */
void failing_set(long n, int from_then_on);

/* Requests since then. */
long failing_count(void);

#endif
