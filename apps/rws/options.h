/* options.h - the options that train and bench share, from the command line to an rws_config.
 *
 * One table has the name, the place and the range of each option; parsing and the comparison with a run that is resumed
 * walk it. The trainer checks whether a value fits the model and the method.
 *
 *     argv -> [options] -> rws_config -> trainer
 */
#ifndef RWS_RWS_OPTIONS_H
#define RWS_RWS_OPTIONS_H

#include "rws/arguments.h"
#include "program/plugin.h"

typedef struct {
    rws_config  config; /* 0 and NULL for options that were not given; text lives as long as argv */
    uint64_t    given;  /* bit i: the option in row i of the table was given */
    const char *out;    /* NULL: none */
    const char *model;  /* new path of the shared object of a run that is resumed; NULL: it has not moved */
    bool        resume, json;
    char        data[4096];       /* the setting that --data stands for */
    char        given_file[4096]; /* the setting that --given stands for */
} rws_options;

/* For a command's argp_child; the input is an rws_options. MODEL is an argument, which may be missing with --resume
 * only. */
extern const struct argp rws_options_argp;

/* Whether the option of that name was given: "iterations". */
bool rws__options_given(const rws_options *o, const char *name);

/* The same; afterwards the option counts as not given. */
bool rws__options_take(rws_options *o, const char *name);

/* Fills options that were not given with the program's own defaults; those that depend on the model stay 0. */
void rws__options_fill(rws_options *o);

/* Options that give all that a configuration does not leave to defaults, which are 0 or NULL. */
rws_options rws__options_of(const rws_config *config);

/* The model that the user has named: by --model, or as MODEL; NULL: none. */
const char *rws__options_model(const rws_options *o);

/* The configuration with which a run continues: its own (`run`, whose folder is
 * recorded->folder), with the model, threads, iterations and rates that
 * were given. Any other option that was given must agree with the run: if not, RWS_BAD_INPUT with a message that names
 * it. */
rws_status rws__options_resume(const rws_options *o, const rws_config *run, const rws_recorded *recorded,
                               rws_config *out, rws_error *err) __attribute__((warn_unused_result));

/* Copies a message of the library, which names members of rws_config in backquotes: "`n_test` must be …" becomes
 * "--eval-data must be …". A text that does not fit is cut. */
void rws__options_spell(const char *text, char *out, size_t size);

/* The number of cores that this program may use. */
int rws__options_cores(void);

#endif
