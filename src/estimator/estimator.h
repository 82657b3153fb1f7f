/* estimator.h - from log-weights to what each particle's two scores count.
 *
 * The engine hands over rows of particles with their log-densities; an estimator writes the coefficients of grad log p
 * and grad log q next to them. It does not sample, does not step and, apart from a few running numbers that it declares,
 * remembers nothing. Estimators that need more than coefficients (a control variate, a baseline) bring a program that
 * runs along with guide and model, and if need be a second round of coefficients.
 *
 *     engine -> scores -> [estimator] -> coefficients -> backward -> optimiser
 *
 * An iteration is one or two phases; or none, and then the model does the step itself. Shapes: B data, K particles; a row
 * stands for count[i] equal particles of a datum. A log-weight of -inf is data (an impossible trace); a NaN never gets
 * here.
 */
#ifndef RWS_ESTIMATOR_ESTIMATOR_H
#define RWS_ESTIMATOR_ESTIMATOR_H

#include "engine/setup.h"

/* The numbers an estimator can be told, by the names of spec and `--set`. */
typedef struct {
    double         delta; /* dww */
    bool           dww_ref_bug, vimco_no_logK, vimco_air_ref, ww_baseline;
    double         tau_start, tau_end;
    rws_relaxation concrete_prior;
    double         nvil_decay, nvil_lr; /* factor on the learning rate of its baseline */
    int            em_data;
} rws_method_settings;

#define RWS_METHOD_MEMORY 2

/* An estimator at work on a model. */
typedef struct {
    const struct rws_estimator *estimator;
    const rws_model            *model;
    const void                 *state; /* of the model */
    rws_setup                  *setup;
    rws_method_settings         set;
    rws_layer                  *net;                       /* control variate or baseline */
    rws_param                  *scale, *log_temperature;   /* rebar's two numbers */
    double                      memory[RWS_METHOD_MEMORY]; /* running numbers; part of the checkpoint */
    double                      progress; /* share of the iterations done when this one begins, in [0, 1) */
} rws_method;

/* What a phase adds up over its data, besides gradients. Shards add theirs in a fixed order. */
typedef struct {
    double   log_evidence, ess;  /* sums over data of log Z and of the effective number of particles */
    double   signal, signal2;    /* of L - baseline */
    uint64_t n_data, impossible; /* impossible: data for which every particle has weight 0 */
} rws_tally;

typedef struct {
    rws_mode     mode;
    rws_proposal proposal;
    unsigned     gradients; /* parameter groups this phase adds gradients of */
    unsigned     steps;     /* groups that are stepped after it; their gradients then begin anew */
    bool         pathwise;
    void (*program)(rws_path *path, void *method); /* NULL: guide and model, nothing else */
    /* Fills the coefficients. `share` is the weight of a datum (of a particle, in sleep): 1 / their number. */
    void (*weigh)(const rws_method *m, rws_scores *s, double share, rws_tally *tally);
    /* For control variates: coefficients for a second backward, on the tape extended by derivatives along `direction`,
     * which moves phi. Adds to the control group's gradient. NULL: none. */
    rws_status (*second)(const rws_method *m, rws_engine *e, double share, const float *direction, float *gradient,
                         rws_error *err);
} rws_phase;

typedef struct rws_estimator {
    const char        *name;
    const char        *help;     /* one line for `rws list` */
    const rws_setting *settings; /* or NULL; ends with a NULL name */
    int                min_particles;
    int                n_phases;
    rws_phase          phases[2];
    /* Declares networks of its own. NULL: none. */
    void (*setup)(rws_method *m, rws_setup *s);
    /* Why it cannot be used with a model, as the end of a sentence; NULL if it can. */
    const char *(*refuses)(const rws_model *model, const rws_setup *s);
    /* Updates its memory after an iteration. NULL: it has none. */
    void (*remember)(rws_method *m, const rws_tally *tally);
} rws_estimator;

/* Every estimator, NULL-terminated. --help and the tests walk this table: one that is not in it does not exist. */
extern const rws_estimator *const rws_estimators[];
extern const rws_estimator        rws_estimator_ws, rws_estimator_ww, rws_estimator_wws, rws_estimator_dww,
    rws_estimator_reinforce, rws_estimator_rloo, rws_estimator_nvil, rws_estimator_vimco, rws_estimator_rebar,
    rws_estimator_relax, rws_estimator_concrete, rws_estimator_em;

const rws_estimator *rws_estimator_find(const char *name);

/* What an estimator's own network sees of a datum: every field but labels. How many numbers that is, and the values, at
 * most RWS_FIELDS of them; returns how many. */
int rws_data_size(const rws_setup *s);
int rws_data_parts(rws_path *path, const rws_method *m, rws_var *parts);

/* Guide and model in the order the pass wants. */
void rws_programs(rws_path *path, void *method);

/* Fills in the settings from what the setup was given, and declares the estimator's own networks. */
rws_status rws_method_init(rws_method *m, const rws_estimator *e, const rws_model *model, const void *state,
                           rws_setup *setup, rws_error *err);

#define RWS_BIT(group) (1u << (group))

#endif
