/* ask.h - what infer and sample share: a trained run that is asked, and answers on stdout.
 *
 *     RUN -> [ask] -> trainer -> answers -> [ask] -> stdout
 */
#ifndef RWS_CLI_ASK_H
#define RWS_CLI_ASK_H

#include "cli/arguments.h"
#include "run/run.h"

#include <jansson.h>

typedef struct {
    const char    *path; /* the run's folder, as typed */
    rws_config     changes;
    uint64_t       seed;
    bool           json;
    rws_posterior *posterior;
} rws_asked;

/* Options --seed, --set and --json: for a command's argp_child. The input is an rws_asked. Arguments, RUN among them,
 * are the command's. */
extern const struct argp rws_asked_argp;

/* Opens the run. To be closed in any case. */
rws_status rws_asked_open(rws_asked *a, rws_error *err) __attribute__((warn_unused_result));
void       rws_asked_close(rws_asked *a);

/* Adds what an answer tells to an object: a text, a number, or an array of numbers; of a name that is told of more than
 * once, an array of those. */
void rws_asked_describe(const rws_reported *reports, int n, json_t *object);

/* Prints what an answer tells, each line indented: its texts, a tree also as a drawing unless `brackets`, or if it has
 * none its numbers, but for pictures. A text that is `known` already is left out; NULL: none is. False if that was
 * nothing. */
bool rws_asked_print(const rws_reported *reports, int n, const char *known, int indent, bool brackets);

#endif
