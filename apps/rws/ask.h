/* ask.h - what infer and sample share: a trained run that is opened for asking, and the reports, fields and choices of
 * its particles on stdout.
 *
 *     RUN -> [ask] -> rws_posterior -> answers, samples -> [ask] -> stdout
 */
#ifndef RWS_RWS_ASK_H
#define RWS_RWS_ASK_H

#include "rws/arguments.h"
#include "rws_train.h"

#include <jansson.h>

typedef struct {
    const char    *path;    /* the run's folder, as typed */
    rws_config     changes; /* --set, --model and --changed */
    uint64_t       seed;
    bool           choices; /* show random choices too */
    bool           json;
    rws_posterior *posterior;
} rws_asked;

/* Options --model, --changed, --seed, --set, --choices and --json: for a command's argp_child. The input is an
 * rws_asked. The command parses its arguments, RUN among them, itself. */
extern const struct argp rws_asked_argp;

/* Opens the run. To be closed also after a failure. */
rws_status rws_asked_open(rws_asked *a, rws_error *err) __attribute__((warn_unused_result));
void       rws_asked_close(rws_asked *a);

/* Adds reports to an object: a text, a number, or an array of numbers; for a name that was reported more than once, an
 * array of those. */
void rws_asked_describe(const rws_reported *reports, int n, json_t *object);

/* Prints reports, each line indented: the texts, a tree also as a drawing unless `brackets`, then the numbers, except
 * pictures. Texts other than a tree have their names if there are several reports. A text equal to `known`, the datum,
 * is left out beside other texts; NULL: none is. "truncated 0" is left out beside a tree. False if nothing was
 * printed. */
bool rws_asked_print(const rws_reported *reports, int n, const char *known, int indent, bool brackets);

/* The fields of a sample by their names, labels left out: as an object, and printed, one field on each line. Returns
 * the number of lines. */
json_t *rws_asked_describe_fields(const rws_posterior *p, const float *const *fields);
int     rws_asked_print_fields(const rws_posterior *p, const float *const *fields);

/* Random choices in the order of their visits: as an array of {"site":…, "visit":…, "value":…}, with "given":true if
 * the choice was given, and printed, one choice on each line: "site value", at later visits "site:visit value". */
json_t *rws_asked_describe_choices(const rws_choice *choices, int n);
void    rws_asked_print_choices(const rws_choice *choices, int n, int indent);

#endif
