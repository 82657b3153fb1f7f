/* program.h - a model at hand, set up: what a configuration and a model make before anything is trained or asked.
 *
 *     configuration, model -> choose -> settings -> setup -> fields, parameters, state, method -> trainer, posterior
 *
 * A trainer adds everything that training needs (data, shards, optimiser), a posterior adds nothing but engines.
 * Nothing here trains, asks or opens a file of a run.
 */
#ifndef RWS_PROGRAM_PROGRAM_H
#define RWS_PROGRAM_PROGRAM_H

#include "estimator/estimator.h"
#include "guide/guide.h"
#include "program/plugin.h"

typedef struct {
    rws_config       config; /* all defaults filled in; its texts are the program's own */
    const rws_model *model;
    void            *library; /* the shared object of a user's model; NULL: none */
    rws_setup        setup;
    void            *state; /* what the model's setup made */
    rws_guide       *guide; /* the automatic one; NULL: the model has a guide of its own */
    rws_method       method;
    uint64_t         iteration; /* iterations that the parameters have been trained */
    int              n_test; /* test data of an evaluation: as many as the configuration says, if there are as many */
} rws_program;

/* Finds the model (NULL: the one that the configuration or, for a run that is opened, `recorded` names; see
 * rws__model_load) and checks the configuration, with all defaults filled in.
 * After a failure too, the caller releases the program. */
rws_status rws__program_choose(rws_program *p, const rws_config *config, const rws_recorded *recorded,
                               const rws_model *model, rws_error *err);

/* Runs the model's setup, then the estimator's, and lays the parameters out. `more` has n settings "name=value" that
 * count more than those of the configuration. After rws__program_choose; after a failure too, the caller releases the
 * program. */
rws_status rws__program_set_up(rws_program *p, const char *const *more, int n, rws_error *err);

void rws__program_release(rws_program *p); /* a zeroed program may be released too */

/* The caller has written numbers of parameters: to be called before any engine runs. */
void rws__program_changed(rws_program *p);

/* An engine for the programs, with the limits of the configuration. NULL: no memory. */
rws_engine *rws__program_engine_new(const rws_program *p);

/* What a datum is called, for messages: "row 17 of "FILE"" if the model's data come from a table, else "datum 17" by the order in
 * which the model makes them; numbers count from 0. It is datum i of those from `first` on, made with this stream. */
typedef struct {
    char text[200];
} rws_datum_name;
rws_datum_name rws__program_datum(const rws_program *p, rws_split split, uint64_t first, int i, rws_random random);

/* Writes the first n test data to data, by field: the numbers that every evaluation sees. */
rws_status rws__program_make_test(const rws_program *p, int n, float *const *data, rws_error *err);

/* ---- pass.c */

/* A pass of guide and model over n_data data, with n_particles each. */
rws_pass rws__program_pass(const rws_program *p, rws_mode mode, int n_data, int n_particles, const float *const *fields,
                           rws_key key);

/* Particles first … end - 1 of one datum, with their reports: for questions. */
rws_pass rws__program_question(const rws_program *p, const float *const *fields, uint64_t seed, int first, int end);

/* Inputs of dreams first … first + n - 1: those of one of the n_data data each, drawn by the number of the dream; NULL for
 * other fields. NULL without memory. */
const float *const *rws__program_draw_inputs(const rws_program *p, const float *const *data, int n_data, rws_key key,
                                             uint32_t first, int n, rws_arena *memory);

/* Parameter i in the order of declaration; false if there is none. */
bool rws__program_param(const rws_program *p, int i, rws_param_view *out);

/* Particles of a pass: as many as the model says (rws_defaults.at_once), or `most`. */
int rws__program_at_once(const rws_program *p, int most);

/* ---- settings.c */

/* Settings that runs of this model have besides the model's and the method's; NULL: none; ends with a NULL name. */
const rws_setting *rws__run_settings(const rws_model *m);
/* Settings that a run of any model has only if the user gives them; ends with a NULL name. */
extern const rws_setting rws_open_settings[];
#define RWS_SITE_PREFIX "site." /* one of them is called site.NAME, for every site NAME of the programs */

/* The model's and the method's settings with the values that they are given. */
rws_status rws__program_make_settings(rws_program *p, const rws_estimator *estimator, const char *const *more,
                                      int n_more, rws_error *err);

/* Tells the setup what the settings site.NAME say, after the model has said how gradients come. RWS_BAD_INPUT if one
 * says neither score nor reparameterised. */
rws_status rws__program_make_gradients(rws_program *p, rws_error *err);

/* What the settings say about an automatic guide. *automatic: whether there is one. RWS_BAD_INPUT if they contradict the model. */
rws_status rws__program_guide_sizes(rws_program *p, rws_guide_sizes *sizes, bool *automatic, rws_error *err);

/* The file that the setting `given` names; NULL: none. */
const char *rws__program_given_file(rws_program *p);

/* RWS_BAD_INPUT unless n choices are listed and each has a site, a value and a visit. */
rws_status rws__choices_check(const rws_choice *list, int n, rws_error *err);

#endif
