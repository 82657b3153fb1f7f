/* shortage.h - a test that is linked with shortage.c and its --wrap options can have any request for memory fail. Requests
 * of the library and of the test count; those of other libraries do not. */
#ifndef RWS_TESTS_SHORTAGE_H
#define RWS_TESTS_SHORTAGE_H

/* Lets request number n from now on fail, the first being 0, and with `from_then_on` all after it too; n < 0: none. */
void shortage_set(long n, int from_then_on);

/* Requests since then. */
long shortage_count(void);

#endif
