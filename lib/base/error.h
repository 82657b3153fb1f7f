/* error.h - the three kinds of error, and the message that goes with each.
 *
 * The world's errors (a file, an option) and the numbers' (a NaN) travel as an rws_status and a message in an
 * rws_error; the library neither prints nor exits. Our own bugs stop the program at the spot: RWS_CHECK is always on.
 */
#ifndef RWS_BASE_ERROR_H
#define RWS_BASE_ERROR_H

#include "rws.h"

#include <stdarg.h>

/* A check for our own bugs: the condition states the invariant. Aborts with file and line. */
#define RWS_CHECK(condition) (__builtin_expect(!!(condition), 1) ? (void)0 : rws__bug(__FILE__, __LINE__, #condition))

_Noreturn void rws__bug(const char *file, int line, const char *condition);

/* As rws_fail, with a va_list. */
rws_status rws__fail_v(rws_error *err, rws_status status, const char *format, va_list args);

/* Adds to the message, for instance a second one that says what to do. */
void rws__error_append(rws_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Calls a function of a model, whose last argument is the error, and returns its status; the message of a function that
 * fails without one names the function and the model. */
#define RWS_CALL_MODEL(m, function, err, ...) \
    (rws__error_clear(err), rws__called((m)->function(__VA_ARGS__, err), #function, NULL, (m)->name, err))

/* The same for an entry of a table of the model: what = "metric", entry->name. */
#define RWS_CALL_ENTRY(m, what, entry, function, err, ...) \
    (rws__error_clear(err), rws__called((entry)->function(__VA_ARGS__, err), what, (entry)->name, (m)->name, err))

void       rws__error_clear(rws_error *err);
rws_status rws__called(rws_status status, const char *what, const char *entry, const char *model, rws_error *err);

/* Refuses an argument that must not be NULL. */
#define RWS_NEED(argument, err) \
    RWS_TRY((argument) ? RWS_OK : rws_fail(err, RWS_BAD_INPUT, "The argument `%s` is NULL.", #argument))

#endif
