/* estimator.h - from log-weights to the coefficients of the two score functions.
 *
 * The engine hands over rows of particles with their log-densities; an estimator writes the coefficients of grad log p
 * and grad log q next to them. It does not sample, does not step and, apart from a few running numbers that it declares,
 * remembers nothing. An estimator that needs more than coefficients (a control variate, a baseline) brings a program
 * that runs along with guide and model and, if need be, a second round of coefficients.
 *
 *     engine -> scores -> [estimator] -> coefficients -> backward -> optimiser
 *
 * An iteration is one or two phases, or a step that the estimator makes by other means (em). Shapes: B data, K
 * particles; a row stands for count[i] equal particles of a datum. A log-weight of -inf is data (an impossible trace); a
 * NaN never gets here.
 *
 * An estimator owns its settings, networks and parameters (rws_method.own) and prepares its own proposals
 * (rws_phase.prepare): a new one is a file of this folder, a line in table.c and its tests.
 */
#ifndef RWS_ESTIMATOR_ESTIMATOR_H
#define RWS_ESTIMATOR_ESTIMATOR_H

#include "dist/dist.h"
#include "engine/setup.h"

#define RWS_METHOD_MEMORY 2

/* An estimator at work on a model. */
typedef struct {
    const struct rws_estimator *estimator;
    const rws_model            *model;
    const void                 *state; /* the model's */
    rws_setup                  *setup;
    void                       *own;                       /* what rws_estimator.setup leaves here; NULL: nothing */
    double                      rate[RWS_GROUPS];          /* factor of each parameter group's learning rate */
    double                      memory[RWS_METHOD_MEMORY]; /* running numbers; part of the checkpoint */
    double                      progress; /* share of the iterations done when this one begins, in [0, 1) */
    bool                        siblings; /* choices are compared with those of particles in the same row: siblings.h */
    bool                        anneals;  /* its numbers depend on the progress */
} rws_method;

/* Sums over the data of a phase, besides gradients. Those of the shards are added in a fixed order. */
typedef struct {
    double   log_evidence, ess;  /* log Z and the effective number of particles */
    double   signal, signal2;    /* L - baseline and its square */
    uint64_t n_data, impossible; /* impossible: data whose particles all have weight 0 */
} rws_tally;

typedef struct {
    rws_mode    mode;
    rws_drawing drawing;
    unsigned    gradients; /* bit g: this phase adds to the gradient of parameter group g */
    unsigned    steps;     /* bit g: group g is stepped after this phase, and its gradient begins anew */
    bool        pathwise;  /* continuous values are reparameterised */
    bool        labels;    /* the guide learns in this phase from choices that are given: rws__weigh_given */
    void (*program)(rws_path *path, void *method); /* NULL: rws__programs, guide and model and nothing else */
    /* Fills in what a proposal of this phase's drawing needs from the estimator's settings. NULL: nothing. */
    void (*prepare)(const rws_method *m, rws_proposal *proposal);
    /* Fills the coefficients. `share` is the weight of a datum (of a particle, in sleep): 1 / their number. */
    void (*weigh)(const rws_method *m, rws_scores *s, double share, rws_tally *tally);
    /* For control variates, a second backward on the tape extended by derivatives along `direction`. `extend` makes these
     * outputs of the table. `weigh_second` fills the coefficients; derivatives that no coefficient can express it adds to
     * `gradient`, a flat vector, which one of the shards that have the same data is given and the others are not (NULL). The
     * second backward adds to the gradients of `second_gradients`, a mask like `gradients`. NULL: there is no second
     * backward. */
    rws_status (*extend)(const rws_method *m, rws_engine *e, const float *direction, rws_error *err);
    void (*weigh_second)(const rws_method *m, rws_scores *s, double share, float *gradient);
    unsigned second_gradients;
    /* The parameter that `direction` moves, a single number. NULL: it moves phi along its gradient, by 2 g_phi / D. */
    const rws_param *(*along)(const rws_method *m);
} rws_phase;

typedef struct rws_estimator {
    const char        *name;
    const char        *help;     /* one line for `rws list` */
    const char        *when;     /* to take it: a sentence for `rws list NAME` */
    const rws_setting *settings; /* or NULL; ends with a NULL name */
    int                min_particles;
    int                n_phases; /* 0: `step` does all */
    rws_phase          phases[2];
    /* Reads the estimator's settings (rws_setup_number, …), declares its networks and parameters, and leaves them in
     * m->own, which comes from rws_setup_alloc. NULL: it has none. */
    rws_status (*setup)(rws_method *m, rws_setup *s, rws_error *err);
    /* Why it cannot be used with a model, as the end of a message; NULL if it can. */
    const char *(*refuses)(const rws_model *model, const rws_setup *s);
    /* Updates its memory after an iteration. NULL: it has none. */
    void (*remember)(rws_method *m, const rws_tally *tally);
    /* One whole step of theta, without phases; `random` is the same stream in every iteration. NULL: phases. */
    rws_status (*step)(const rws_method *m, rws_random *random, rws_error *err);
} rws_estimator;

/* Every estimator, NULL-terminated. --help and the tests walk this table: one that is not in it does not exist. */
extern const rws_estimator *const rws_estimators[];

const rws_estimator *rws__estimator_find(const char *name);

/* The inputs of an estimator's own network for a datum: every field but labels. rws__data_size is how many numbers that is;
 * rws__data_fields writes the values to `parts`, which has room for RWS_FIELDS, and returns how many there are. */
int rws__data_size(const rws_setup *s);
int rws__data_fields(rws_path *path, const rws_method *m, rws_var *parts);

/* Puts an estimator to work on a model. RWS_BAD_INPUT if it does not apply to the model, or a setting is wrong. */
rws_status rws__method_init(rws_method *m, const rws_estimator *e, const rws_model *model, const void *state,
                            rws_setup *setup, rws_error *err);

#define RWS_BIT(group) (1u << (group))

#endif
