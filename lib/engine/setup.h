/* setup.h - what a model declares once: settings, fields, parameters, layers.
 *
 * The structure behind the public rws_setup functions. It outlives setup: the run keeps it as long as the model.
 */
#ifndef RWS_ENGINE_SETUP_H
#define RWS_ENGINE_SETUP_H

#include "base/rng.h"
#include "engine/engine.h"

/* A setting and the text it has been given. */
typedef struct {
    const rws_setting *setting;
    const char        *value;
} rws_given;

/* A thing that is not in the arena and is released with the setup, such as a table. */
typedef struct rws_owned {
    struct rws_owned *next;
    void             *thing;
    void (*release)(void *thing);
} rws_owned;

/* The numbers of a parameter in the program that made the data. */
typedef struct {
    const rws_param *param;
    rws_scale        scale;
    const double    *numbers; /* as the author gave them */
    const float     *values;  /* the values of the parameter that stand for these numbers */
} rws_truth;

struct rws_setup {
    rws_params         params;
    rws_arena          memory;
    rws_owned         *kept; /* in the arena; the latest first */
    rws_field          fields[RWS_FIELDS];
    int                n_fields;
    const rws_table   *table;  /* the first that fields are made of; NULL: there is none */
    int                n_test; /* test data of the table that fields are made of; 0: there is no table */
    rws_given         *given;
    int                n_given;
    uint64_t           seed;
    const char        *model; /* its name, for messages; may be NULL */
    const rws_model   *owner;
    const char        *label_site[RWS_FIELDS]; /* by field: the site that a label has the value of; NULL: none */
    rws_site_gradient *gradients;              /* by score or reparameterised, by site; a later entry counts more */
    int                n_gradients;
    rws_truth         *truths;
    int                n_truths;
    const char        *relaxed_site;
    int                relaxed_categories; /* 0: the model has none */
    rws_status         status;             /* of the declarations so far; the author need not check each */
    rws_error          error;
};

void rws__setup_release(rws_setup *s);

/* rws_setup_param with a start that scales with n_in instead of the number of columns: a bias starts at the scale of
 * its weight. */
rws_param *rws__setup_param_scaled(rws_setup *s, rws_group group, const char *name, int rows, int cols, rws_init init,
                                   int n_in);

/* Has the model's function `data` make data first … first + n - 1. RWS_BAD_INPUT also if it leaves a number of a field as it was,
 * but for those behind the last item of a series, which become 0. */
rws_status rws__setup_make_data(const rws_setup *s, const rws_model *m, const void *state, rws_split split,
                                uint64_t first, int n, rws_random *random, float *const *fields, rws_error *err);

/* Whether the model has inputs. */
bool rws__setup_has_inputs(const rws_setup *s);

/* The value of a setting by name, or NULL. */
const char *rws__setup_given(const rws_setup *s, const char *name);

/* Takes over `thing`, which release(thing) gives back when the setup ends. False without memory: it stays the caller's. */
bool rws__setup_own(rws_setup *s, void *thing, void (*release)(void *thing));

/* The name of the site if it is to be summed (RWS_SUMMED), else NULL; site NULL: of any such site. */
const char *rws__setup_summed(const rws_setup *s, const char *site);

#endif
