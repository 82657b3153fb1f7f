/* arguments.h - argp, with errors as messages.
 *
 * Every command has a struct argp of its own; this adds --help and --usage to it, and turns the complaints that getopt
 * and argp would print themselves into a message in an rws_error. It does not know any option.
 *
 *     argv -> [arguments] -> a command's parser -> its options
 */
#ifndef RWS_RWS_ARGUMENTS_H
#define RWS_RWS_ARGUMENTS_H

#include "rws.h"

#include <argp.h>
#include <stdio.h>

/* Parses argv[1] … by `argp`, whose parser gets `input`. `name` is the name of the program in its help: "rws train".
 * Fails with RWS_BAD_INPUT. Does not return from --help. */
rws_status rws__arguments_parse(const struct argp *argp, const char *name, int argc, char **argv, unsigned flags,
                                void *input, rws_error *err) __attribute__((warn_unused_result));

/* Calls visit with each option of a tree of parsers, and the parser that the option belongs to, until visit returns true.
 * Returns whether it did. */
bool rws__arguments_each(const struct argp *argp,
                         bool (*visit)(const struct argp *owner, const struct argp_option *option, void *context),
                         void *context);

/* Brings what was printed to its place. RWS_BAD_INPUT with a message if that is not possible. */
rws_status rws__arguments_flush(rws_error *err) __attribute__((warn_unused_result));

/* Ends the program after --help or --version: with status 0, or 2 and a message if they could not be written. */
_Noreturn void rws__arguments_leave(void);

/* ---- For parsers, which return the result of these functions. */

/* Ends the parse with the message. */
error_t rws__arguments_fail(const struct argp_state *state, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the parse because of one argument too many. */
error_t rws__arguments_extra(const struct argp_state *state, const char *argument);

/* A whole number in [min, max], decimal digits only. `option` as the user types it: "--particles". */
error_t rws__arguments_count(const struct argp_state *state, const char *option, const char *text, uint64_t min,
                             uint64_t max, uint64_t *out);

/* A finite number in [min, max]. */
error_t rws__arguments_real(const struct argp_state *state, const char *option, const char *text, double min,
                            double max, double *out);

/* The value of --limit: "stack=8192", in KB, "operations=N", "paths=N" or "nodes=N". */
error_t rws__arguments_limit(const struct argp_state *state, const char *text, rws_limits *out);

#define RWS_LIMIT_HELP \
    "A limit on programs: stack=KB, operations=N (of a path), paths=N or nodes=N (of a pass); may be repeated"

/* The name of a folder, which is not empty. */
error_t rws__arguments_folder(const struct argp_state *state, const char *option, const char *text, const char **out);

/* ---- For help filters: the text below the options, written by `list`. */
char *rws__arguments_below(int key, const char *text, void (*list)(FILE *stream));

#endif
