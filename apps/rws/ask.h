/* ask.h - what infer and sample share: a trained run that is opened for asking, and the reports, fields and choices of
 * its particles on stdout.
 *
 *     RUN -> [ask] -> rws_posterior -> answers, samples -> [ask] -> stdout
 */
#ifndef RWS_RWS_ASK_H
#define RWS_RWS_ASK_H

#include "rws/arguments.h"
#include "rws_train.h"

typedef struct {
    const char    *path;    /* the run's folder, as typed */
    rws_config     changes; /* --set, --model and --changed */
    uint64_t       seed;
    uint64_t       refine, chains; /* --refine, --chains; 0: no refinement; 16 */
    bool           choices;        /* show random choices too */
    bool           json;
    rws_posterior *posterior;
} rws_asked;

/* Options --model, --changed, --seed, --refine, --chains, --set, --choices and --json: for a command's argp_child. The input is an
 * rws_asked. The command parses its arguments, RUN among them, itself. */
extern const struct argp rws_asked_argp;

/* Opens the run. To be closed also after a failure. */
rws_status rws__asked_open(rws_asked *a, rws_error *err) __attribute__((warn_unused_result));
void       rws__asked_close(rws_asked *a);

/* Prints reports, each line indented: the texts, a tree also as a drawing unless `brackets`, then the numbers, except
 * pictures. Texts other than a tree have their names if there are several reports. A text equal to `known`, the datum,
 * is left out beside other texts; NULL: none is. "truncated 0" is left out beside a tree. False if nothing was
 * printed. */
bool rws__asked_print(const rws_reported *reports, int n, const char *known, int indent, bool brackets);

/* Prints the fields of a sample, one on each line, labels left out. Returns the number of lines. */
int rws__asked_print_fields(const rws_posterior *p, const float *const *fields);

/* Prints random choices in the order of their visits, one on each line: "site value", at later visits "site:visit value". */
void rws__asked_print_choices(const rws_choice *choices, int n, int indent);

#endif
