/* options.h - the options that train and bench share, from the command line to an rws_config.
 *
 * One table says what each option is called, where its value goes and what it may be; parsing and the comparison with a
 * run that is to be resumed walk it. Whether a value fits the model and the method is the trainer's to say.
 *
 *     argv -> [options] -> rws_config -> trainer
 */
#ifndef RWS_CLI_OPTIONS_H
#define RWS_CLI_OPTIONS_H

#include "cli/arguments.h"
#include "run/run.h"

typedef struct {
    rws_config  config; /* 0 and NULL where nothing was given; text lives as long as argv */
    uint64_t    given;  /* bit i: row i of the table was */
    const char *out;    /* NULL: none */
    const char *model;  /* the shared object of a run that is resumed, where it has moved; NULL: it has not */
    bool        resume, json;
    char        data[4096]; /* the setting that --data is */
} rws_options;

/* For a command's argp_child; the input is an rws_options. MODEL is an argument too, and may be missing with --resume
 * only. */
extern const struct argp rws_options_argp;

/* Whether the option of that name was given: "iterations". */
bool rws_options_given(const rws_options *o, const char *name);

/* The same, and from now on it counts as not given. */
bool rws_options_take(rws_options *o, const char *name);

/* Fills what was not given with the program's own defaults; what depends on the model stays 0. */
void rws_options_fill(rws_options *o);

/* The configuration with which a run goes on: its own (`run`, of `folder`), with the threads and iterations that were
 * given. Any other option that was given must be what the run has: if not, RWS_BAD_INPUT with a sentence that names
 * it. */
rws_status rws_options_resume(const rws_options *o, const rws_config *run, const char *folder, rws_config *out,
                              rws_error *err) __attribute__((warn_unused_result));

/* How many cores this program may use. */
int rws_options_cores(void);

#endif
