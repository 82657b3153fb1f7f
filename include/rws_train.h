/* rws_train.h - train a program that was written with rws.h, keep what it learned, and ask it.
 *
 *     rws_config -> rws_trainer -> run's folder -> rws_posterior -> answers, samples, scores
 *                      ^                 |
 *                      '---- resume -----'
 *
 * A trainer owns everything that training changes: parameters, the optimiser's state, the number of iterations. It is
 * made from a configuration and a model (built in, in a shared object, or at hand), stepped as often as you like, and
 * kept in a folder if you name one. A posterior is a trained model and guide that only answers: what is behind a datum,
 * how probable are these choices, what does the model make by itself.
 *
 * The command line trains, evaluates, asks and samples by this header too. Models and guides are written with rws.h; the
 * metrics of runs are read, and many runs described, with rws_results.h.
 *
 * Failure. A function that returns rws_status writes the error message, a full sentence, into *err, which may be NULL,
 * unless it returns RWS_OK. The library never prints, never exits and never aborts because of what a caller, a file or
 * a program did. After a failure, what the function should have made is NULL.
 *
 * NULL. An argument that must not be NULL is refused: RWS_BAD_INPUT, or the result of an empty object (NULL, 0, false,
 * NaN).
 *
 * Threads. A trainer belongs to one thread at a time; a second thread that steps, trains, measures, asks, keeps or saves it
 * meanwhile gets RWS_BAD_INPUT, and no other function may be called then. Two trainers may be used by two threads at once. It starts
 * config.threads - 1 threads of its own. A posterior may be asked by any number of threads at once. rws_answers
 * and rws_samples are plain data: read them anywhere, free them once.
 *
 * Ownership. An object that a function hands out through a pointer to a pointer (_new, _open, _resume, _ask, …) belongs
 * to the caller, who frees it with the free function of its type; every free function accepts NULL. Pointers inside a
 * structure live as long as the structure. Texts that a caller passes are copied.
 *
 * Same bits. With the same configuration (except threads), the same build and the same kind of processor, training,
 * answers and samples are the same to the last bit, on any number of threads and after any interruption.
 */
#ifndef RWS_TRAIN_H
#define RWS_TRAIN_H

#include "rws.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#define RWS_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RWS_MUST_CHECK
#endif

/* -------------------------------------------------------------------------------------------------- configuration */

#define RWS_MAX_SET 64                                /* settings in a configuration */
#define RWS_MAX_ASK_SET 8                             /* settings that differ while a posterior is asked */
#define RWS_MAX_METRICS 64                            /* metrics of a model, with those that every model has */
#define RWS_MAX_PARTICLES 10000000                    /* per datum; and samples drawn at a time */
#define RWS_MAX_TEST 1000000                          /* test data */
#define RWS_MAX_ITERATIONS UINT64_C(1000000000000000) /* of a run */

/* Everything that is needed to repeat a run. A zeroed configuration with a model is valid: 0 and NULL mean the default,
 * which is the model's own (rws_defaults) if it has one and else the library's, given here. rws_config_fill and
 * rws_trainer_config show what the defaults are. */
typedef struct {
    const char *model;            /* "gmm", or the path of a shared object (with a slash); a name for a model at hand */
    const char *method;           /* "ww"; rws_method_at lists them */
    int         particles;        /* K, per datum: 10 */
    int         batch;            /* B, data per iteration: 100 */
    int         shards;           /* fixed parts of a batch that threads and ranks share; the numbers depend on it: 4 */
    int         n_test;           /* test data of an evaluation: 100 */
    int         eval_particles;   /* per test datum of an evaluation: as many as in training */
    uint64_t    iterations;       /* in all: 10000 */
    uint64_t    eval_every;       /* iterations between two evaluations: a twentieth of all iterations */
    uint64_t    seed;             /* of all random numbers; 0 is a seed like any other */
    int         threads;          /* changes no number: 1 */
    bool        scalar;           /* every particle is executed alone, nothing is shared: slow, for finding mistakes */
    const char *optimiser, *lr;   /* "adam", "1e-3"; lr may be a schedule, see `rws train --help` */
    double      l2;               /* weight of half the squared length of the parameters in the loss: 0 */
    const char *set[RWS_MAX_SET]; /* "name=value": settings of the model and the method */
    int         n_set;
    rws_limits  limits;          /* of the programs; changes no number: RWS_STACK_BYTES, RWS_MAX_OPERATIONS, … */
    int         particle_shards; /* parts into which a datum's particles are divided too; the numbers depend on it: 1 */
    bool        changed;         /* opening a run: its shared object may have other bytes than the run began with */
    double      resample; /* particles are resampled at steps where ess <= this share of K: see below; 0: never */
    bool        no_check; /* rws_trainer_train does not check the programs first: see rws_trainer_check */
} rws_config;

/* rws_config.resample, 0 to 1, makes a particle filter of a model whose guide shares a loop with it (rws_shared_loop): after a
 * step, the particles of a datum are drawn anew by their weights, if the effective number of those that take part is at most this
 * share of them. Evaluations and answers (log_evidence, posteriors) are then those of the filter. RWS_BAD_INPUT, of the first pass,
 * if guide and model share no loop, or particles are executed alone (scalar). */

/* Fills in every default, so that you can read them: those of the model at hand or, if model is NULL, of the model that
 * config->model names. A trainer does the same by itself. The texts that are filled in are static. */
rws_status rws_config_fill(rws_config *config, const rws_model *model, rws_error *err) RWS_MUST_CHECK;

/* -------------------------------------------------------------------------------------------------------- trainer */

typedef struct rws_trainer rws_trainer;

/* Checks the configuration, sets the model up and starts its parameters. `model` is the model at hand, which must live,
 * with all that it points to, as long as the trainer and all posteriors that are made of it. NULL: the one that
 * config->model names. RWS_BAD_INPUT with a message that names the option, setting, field or parameter; RWS_NO_MEMORY. */
rws_status rws_trainer_new(const rws_config *config, const rws_model *model, rws_trainer **out,
                           rws_error *err) RWS_MUST_CHECK;
void       rws_trainer_free(rws_trainer *t);

const rws_config *rws_trainer_config(const rws_trainer *t); /* with all defaults filled in */
const rws_model  *rws_trainer_model(const rws_trainer *t);
uint64_t          rws_trainer_iteration(const rws_trainer *t); /* how many are done */

/* Field i of a datum, in the order of declaration; false if there is none. */
bool   rws_trainer_field(const rws_trainer *t, int i, rws_field *out);
double rws_trainer_seconds(const rws_trainer *t); /* spent in rws_trainer_step so far, of this run */

/* One iteration: every phase of the method on the next batch. RWS_BROKEN after a numerical failure (a NaN, a gradient
 * that is not finite, every particle of every datum impossible), RWS_BAD_INPUT if the programs do not fit each other or
 * the data, RWS_NO_MEMORY. After a failure the iteration does not count, though parameters may have moved: those that
 * an earlier phase stepped, or others than those whose gradient is not finite. The trainer can still be evaluated,
 * asked, saved and stepped. */
rws_status rws_trainer_step(rws_trainer *t, rws_error *err) RWS_MUST_CHECK;

/* The numbers of one evaluation. A metric is NaN where it is not defined, as kl and ess of a single particle are not.
 * */
typedef struct {
    uint64_t           iteration;
    double             seconds; /* of training until then */
    int                n;
    const char *const *names; /* live as long as the trainer */
    double             value[RWS_MAX_METRICS];
    double             log_evidence_error; /* standard error of the metric log_evidence; NaN if that is exact */
    double impossible; /* share of the test data that no particle explains; log_evidence, kl and ess leave them out */
} rws_measures;

/* Measures all metrics on the test data at the present parameters. Changes nothing. */
rws_status rws_trainer_evaluate(rws_trainer *t, rws_measures *out, rws_error *err) RWS_MUST_CHECK;
double     rws_measures_get(const rws_measures *m, const char *metric); /* NaN if there is no such metric */

/* The gradient that an iteration would step along, uphill, at the present parameters, which stay as they are.
 * `gradient` has `size` floats (rws_trainer_size), laid out like all parameters one after the other
 * (rws_param_view.offset). The data are the present training batch, or all test data. Each `draw` has random numbers of
 * its own, so that an iteration has many gradients. */
rws_status rws_trainer_gradient(rws_trainer *t, rws_split split, uint64_t draw, float *gradient, size_t size,
                                rws_error *err) RWS_MUST_CHECK;

/* A function that gives choices to training: for each datum of every batch, the choices that the guide takes instead of
 * drawing them. It is called by the thread that steps the trainer, before the iteration (and before
 * rws_trainer_gradient on a training batch), for datum 0 … batch - 1. `fields` are those of the datum in the order of
 * declaration, labels included. It sets *choices and returns how many there are, 0 if nothing is given; the list must
 * last until the step ends, and must not name a site and visit twice. If it returns -1, the step (or the gradient)
 * fails with RWS_BAD_INPUT before anything has moved: the iteration does not count. */
typedef int rws_giver(void *context, uint64_t iteration, int datum, const float *const *fields,
                      const rws_choice **choices);

/* Training takes choices from this function from now on, instead of those of labels (rws_setup_label_site) and of the
 * setting `given`; NULL: from labels and the setting again. A resumed trainer has no function. RWS_BAD_INPUT if the
 * method cannot learn from given choices (rebar, relax, muprop, concrete, dvae, em). In an MPI job either all ranks
 * give a function or none does; one that fails on a rank fails the step on all. A program can build a memory of traces
 * on it: it gives a trace z that it has kept for the datum x; theta then learns from log p(x, z), and the guide from
 * log q(z | x). */
rws_status rws_trainer_give(rws_trainer *t, rws_giver *give, void *context, rws_error *err) RWS_MUST_CHECK;

/* The name of a site that no particle has visited since the trainer was made, though labels, the setting `given` or a
 * setting site.NAME name it: the name may be wrong. NULL if there is no such site. */
const char *rws_trainer_unvisited(const rws_trainer *t);

/* The name of a parameter of theta or phi whose gradient has been zero in every iteration, so that it has not learned:
 * no program may use it, or it may belong to the wrong group, as a network of the guide does that is not part of phi.
 * NULL if there is none, or if that is not known: with several ranks, and under an optimiser without memory. */
const char *rws_trainer_unlearned(const rws_trainer *t);

/* The name of a site for which the automatic guide of a model without a guide has no network, because no draw from the
 * prior came to it before training; all such sites share one. NULL if no particle has visited one. */
const char *rws_trainer_unguided(const rws_trainer *t);
/* A message that counts the training data that no particle has explained so far and names the first of them, with the
 * site that forbids it. NULL if there is none, or if the model says that this is no failure (rws_defaults.impossible).
 * The text belongs to the trainer. */
const char *rws_trainer_impossible(const rws_trainer *t);

/* A parameter matrix in the trainer's own memory. */
typedef struct {
    const char *name; /* as in the checkpoint: "phi.mlp.0.weight" */
    rws_group   group;
    int         rows, cols;
    size_t      offset; /* of its first number among all parameters */
    float      *values; /* rows x cols, row by row */
    int n_dims;   /* the sizes in the checkpoint, which are those of PyTorch: 1 for a vector, 4 for a convolution */
    int shape[4]; /* n_dims of them */
} rws_param_view;

int    rws_trainer_n_params(const rws_trainer *t);
size_t rws_trainer_size(const rws_trainer *t); /* numbers in all parameters */

/* Parameter i in the order of declaration, or by name. False if there is none. */
bool rws_trainer_param(rws_trainer *t, int i, rws_param_view *out);
bool rws_trainer_find(rws_trainer *t, const char *name, rws_param_view *out);

/* Must be called after numbers were written through a view, before any other function of the trainer. */
void rws_trainer_changed(rws_trainer *t);

/* ---------------------------------------------------------------------------------------------------- many machines */

/* Joins the other processes that mpirun or srun has started together with this one: the ranks of a job. Every trainer
 * that is made or resumed afterwards is one run over all ranks, and each rank must make the same calls in the same
 * order; only functions that read (rws_trainer_config, rws_trainer_ask, …) may be called by single ranks. Only rank 0
 * has a folder and writes. RWS_OK and one rank if the process was started alone. RWS_BAD_INPUT if this build has no
 * part for the MPI that started it, or the ranks cannot be joined. */
rws_status rws_ranks_open(rws_error *err) RWS_MUST_CHECK;
void       rws_ranks_close(void); /* to be called by all ranks, at the end */

int rws_rank(void);      /* 0 … rws_n_ranks() - 1; 0 before rws_ranks_open */
int rws_n_ranks(void);   /* 1 before rws_ranks_open */
int rws_rank_lost(void); /* the rank that is gone, after a function has failed because of it; -1: none */

/* ------------------------------------------------------------------------------------------------- a run's folder */

/* Keeps the run in a folder from now on: makes the folder and its parents, locks it and writes config.json.
 * RWS_BAD_INPUT if the folder holds another run already, is in use by another process or cannot be written; it is then
 * as it was. */
rws_status rws_trainer_keep(rws_trainer *t, const char *folder, rws_error *err) RWS_MUST_CHECK;

/* Writes the checkpoint, atomically: a kill at any moment leaves the old one or the new one. RWS_BROKEN if a parameter
 * is not finite, RWS_BAD_INPUT if the run has no folder or the file cannot be written: the old checkpoint stays. */
rws_status rws_trainer_save(rws_trainer *t, rws_error *err) RWS_MUST_CHECK;

/* Resumes the run in a folder, from its checkpoint or, if it was ended before its first one, from the beginning.
 * `changes` may be NULL; only its members model, changed, iterations, lr, threads and limits are read, and a member
 * that is 0 or NULL leaves the run's own value. `model` is as in rws_trainer_new. RWS_BAD_INPUT if there is no such
 * run, if another process has it, if a file is damaged or of a newer version, or if it does not fit the model.
 *
 * A shared object is loaded only if changes->model names its path, or if this user has named that path before on this
 * machine and the bytes are the same; never because the folder names it. RWS_BAD_INPUT, before anything is loaded, if
 * no object is named, if config.json, checkpoint and store disagree about the model, or if the object has other bytes
 * than the run began with and changes->changed is false. */
rws_status rws_trainer_resume(const char *folder, const rws_config *changes, const rws_model *model, rws_trainer **out,
                              rws_error *err) RWS_MUST_CHECK;

/* Warnings about the run's folder, after rws_trainer_keep or rws_trainer_resume: messages, or "".
 * They are about a checkpoint that was made by another build, on another processor or with other data, about measures
 * that are missing, and about a file system without locks. Only rank 0 has them. The text belongs to the trainer. */
const char *rws_trainer_warnings(const rws_trainer *t);

/* Callbacks of rws_trainer_train; all members may be zero. */
typedef struct {
    void *context;
    /* Called every 50 ms or so, on the calling thread, also during evaluations: true ends training after the current
     * iteration. An evaluation that is cut short by it is not recorded, and is made again on resuming. */
    bool (*stop)(void *context);
    /* Called every 50 ms or so, to show progress. */
    void (*progress)(void *context, const rws_trainer *t);
    /* Called after each evaluation, and once more at the end with final = true. A status other than RWS_OK ends
     * training. */
    rws_status (*evaluated)(void *context, rws_trainer *t, const rws_measures *m, bool final, rws_error *err);
    double save_every; /* fewest seconds between two checkpoints; 0: 5. Below 0: a checkpoint at each evaluation */
} rws_watch;

/* Steps until all iterations are done; evaluates at the first, at every eval_every-th and at the last; and, if the run
 * has a folder, records evaluations there and writes checkpoints. RWS_STOPPED if watch->stop said so, after a
 * checkpoint. After RWS_BROKEN the folder says so, and its last checkpoint is good. `watch` may be NULL. */
rws_status rws_trainer_train(rws_trainer *t, const rws_watch *watch, rws_error *err) RWS_MUST_CHECK;

/* ---------------------------------------------------------------------------------------------------------- check */

typedef enum {
    RWS_NOTE,    /* worth knowing; nothing is wrong */
    RWS_WARNING, /* likely not what the author means */
    RWS_MISTAKE, /* answers would be wrong, or training fails */
} rws_severity;

/* A finding of a review of a model. */
typedef struct {
    const char  *kind; /* "state", "random", "program", "dreams", "group", "unused", "gradient", "reach", "jump",
                        * "impossible", "global", "sum" or "writes" */
    rws_severity severity;
    const char  *about; /* the site, parameter or field; NULL: the whole */
    const char  *text;  /* what it is, and what to do */
} rws_check_finding;

typedef struct {
    const rws_check_finding *list; /* the most severe first */
    int                      n;
    double                   seconds;            /* that an iteration takes; NaN: an iteration failed */
    uint64_t                 rows, paths, calls; /* of an iteration: rows that are computed, paths, calls of kernels */
} rws_check_findings;

const char *rws_severity_name(rws_severity s); /* "note", "warning", "mistake"; static */

/* Reviews the programs at the present parameters, on a few data, and changes nothing. The same draws are made for all
 * particles at once, in another order, and for each particle alone, and must have the same scores; gradients are
 * compared with differences; parameters must be used by the program that they belong to; the guide must reach what the
 * model draws; data must be possible. Takes the time of some hundred small passes. A program that fails is a finding; a
 * status other than RWS_OK means that the review itself could not be made.
 *
 * rws_trainer_train makes the cheapest part of it (eight particles of two data and a hundred samples of the model, at
 * most 0.2 seconds) before its first iteration, for a model that is not built in and unless config.no_check is set. It
 * fails with RWS_BAD_INPUT and the text of the first mistake; rws_trainer_doubt is the text of the first warning, or
 * NULL, and lives as long as the trainer. */
rws_status  rws_trainer_check(rws_trainer *t, rws_check_findings **out, rws_error *err) RWS_MUST_CHECK;
const char *rws_trainer_doubt(const rws_trainer *t);
void        rws_check_free(rws_check_findings *f);

/* ------------------------------------------------------------------------------------------------------ posterior */

typedef struct rws_posterior rws_posterior;

/* Opens the run in a folder for asking; the folder is only read, and may belong to a run that is still training.
 * `changes` and `model` are as in rws_trainer_resume, but only the members model, changed, limits and set of `changes`
 * are read; `set` has up to RWS_MAX_ASK_SET settings that should differ from those of training. */
rws_status rws_posterior_open(const char *folder, const rws_config *changes, const rws_model *model,
                              rws_posterior **out, rws_error *err) RWS_MUST_CHECK;

/* Makes a posterior with a copy of the present parameters of a trainer. The trainer may be freed before the posterior;
 * a model at hand may not. */
rws_status rws_posterior_new(const rws_trainer *t, rws_posterior **out, rws_error *err) RWS_MUST_CHECK;
void       rws_posterior_free(rws_posterior *p);

const rws_config *rws_posterior_config(const rws_posterior *p); /* the run's; batch, shards and threads are 1 */
const rws_model  *rws_posterior_model(const rws_posterior *p);
uint64_t          rws_posterior_iteration(const rws_posterior *p);

/* Field i of a datum, in the order of declaration; false if there is none. */
bool rws_posterior_field(const rws_posterior *p, int i, rws_field *out);

/* Parameter i in the order of declaration; false if there is none. Its values must not be written. */
bool rws_posterior_param(const rws_posterior *p, int i, rws_param_view *out);

/* A report of a program about its particle (rws_report, rws_report_text): a text, or a value of dim numbers. */
typedef struct {
    const char  *name, *text; /* text: NULL for a value */
    const float *value;       /* NULL for a text */
    int          dim;
} rws_reported;

/* A question about one datum, which is given as fields, as a text or as a picture; if all three are NULL, the datum is
 * test datum number `test`, with the same numbers as in evaluations. If n_particles is 0, 1000 particles are drawn. */
typedef struct {
    const float *const *fields;  /* a pointer for each field in the order of declaration; NULL for a label */
    const char         *text;    /* read by rws_model.read */
    const rws_grey     *picture; /* read by rws_model.see */
    int                 test;    /* from 0, below RWS_MAX_TEST and the number of test data that the model has */
    int                 n_particles;
    uint64_t            seed;
    bool                particles; /* list the particles, with their choices */
    /* Choices that are known, by site and visit: every particle takes them, and the guide draws the rest. Answers are
     * then of the posterior given the datum and these choices, and log_evidence is log p(x, given). A particle that
     * does not visit all of these sites is impossible. The member `given` of a choice is not read. */
    const rws_choice *given;
    int               n_given;
    /* Called before every 2000 particles or fewer, on the calling thread: true ends the question with RWS_STOPPED. May
     * be NULL. */
    bool (*stop)(void *context);
    void *context;
    /* How many pointers `fields` has and, unless dims is NULL, how many numbers are behind each: the question is refused if
     * the model declares others. n_fields 0: not known. */
    int        n_fields;
    const int *dims;
} rws_question;

/* Equal reports of particles, and how probable they are given the datum. */
typedef struct {
    const rws_reported *reports; /* in the order of the program */
    int                 n_reports;
    double              guide;     /* share of the guide's particles */
    double              posterior; /* by importance weights; NaN if all particles are impossible */
    double exact; /* by the model's exact posterior; NaN if it is not known, as always where choices are given */
    double error; /* Monte-Carlo standard error of `posterior`; NaN if that is, or for a single particle */
} rws_answer;

/* Particles that made the same choices. */
typedef struct {
    double            log_p;   /* log p(z, x) of one of them */
    double            log_q;   /* log q(z | x) of what was drawn: the weight is exp(log_p - log_q) */
    double            weight;  /* normalised importance weight of all `count` together; NaN if all are impossible */
    int               count;   /* how many particles they are */
    int               answer;  /* the number of their answer in rws_answers.list */
    const rws_choice *choices; /* in the order of the visits */
    int               n_choices;
    double            log_given; /* log q of the choices that were given, which is no part of log_q; 0 if none was */
} rws_weighted;

/* The verdict on an answer by the weights of its particles. The weights do not tell of a mode that no particle has found. */
typedef enum {
    RWS_RELIABLE,   /* the errors that are stated hold */
    RWS_DOUBTFUL,   /* too few particles count, or k_hat is above its limit */
    RWS_UNRELIABLE, /* the answer is mostly chance, or none */
} rws_trust;

const char *rws_trust_name(rws_trust v); /* "reliable", "doubtful", "unreliable"; static */

/* Answers, the most probable first: by weights, then by the exact posterior, then by the guide. */
typedef struct {
    const rws_answer   *list;
    int                 n;
    const rws_weighted *particles; /* if the question asked for them; those with the largest weight first */
    int                 n_weighted;
    int                 n_particles;
    double              ess;                /* effective number of particles, as a share of them; 0 if impossible */
    double              log_evidence;       /* log of the mean weight; -inf if all particles are impossible */
    double              exact_log_evidence; /* NaN if it is not known */
    double              log_evidence_error; /* its Monte-Carlo standard error; NaN if impossible, or for one particle */
    double              k_hat;              /* rws_pareto_k of the weights; NaN if it cannot be estimated */
    double              k_limit;            /* rws_pareto_k_limit: weights with a larger k_hat are too uneven */
    rws_trust           verdict;
    const char         *advice; /* a sentence: why the verdict, and what to do */
} rws_answers;

/* The Pareto k of importance weights: the shape of the generalised Pareto distribution that fits the largest min(K / 5,
 * 3 sqrt(K)) of K weights (Vehtari, Simpson, Gelman, Yao and Gabry, 2024). Weight i belongs to counts[i] equal particles;
 * counts NULL: to one each. The variance of weights is infinite above 1/2, their mean above 1. NaN if fewer than five are
 * larger than the rest, if a weight is NaN, a count is below 1 or there are more than RWS_MAX_PARTICLES, or without memory. */
double rws_pareto_k(const double *log_weights, const int *counts, int n);

/* min(1 - 1 / log10(n_particles), 0.7): the largest k with which so many particles give an answer that can be trusted. */
double rws_pareto_k_limit(int n_particles);

/* Asks. RWS_BAD_INPUT if the model cannot be asked in this way or does not understand the text, if the datum has a NaN,
 * or if a given choice does not fit its site, is given twice, or is at a site and visit that no particle visits. */
rws_status rws_posterior_ask(rws_posterior *p, const rws_question *question, rws_answers **out,
                             rws_error *err) RWS_MUST_CHECK;
void       rws_answers_free(rws_answers *a);

/* Asks a trainer's present parameters. Only the thread that owns the trainer may call it. */
rws_status rws_trainer_ask(rws_trainer *t, const rws_question *question, rws_answers **out,
                           rws_error *err) RWS_MUST_CHECK;

/* How many questions are asked at once. */
typedef struct {
    int      threads; /* change no number; 0: as many as there are processors */
    uint64_t first;   /* the number of the first question: question i has draws of its own, those of datum first + i */
    /* Takes the answers to question i, for each question in order, on the calling thread; they belong to it. After a failure
     * `answers` is NULL, and `status` and `message` say why: RWS_BAD_INPUT or RWS_BROKEN, as of rws_posterior_ask. False ends
     * the questions with RWS_STOPPED. */
    bool (*each)(void *context, int i, rws_answers *answers, rws_status status, const char *message);
    bool (*stop)(void *context); /* called now and then, on the calling thread: true ends the questions; may be NULL */
    void *context;
} rws_many;

/* Asks n questions, each of which may be as in rws_posterior_ask; their members stop and context are not read. Neighbours that
 * differ only in their data, and give no choices, share passes of the engine, which is many times as fast for small models as
 * asking one by one. The answers to a question are those of rws_posterior_ask, but with draws of its own and, where other
 * data share its pass, up to rounding. Memory does not grow with n. The bits of answer i depend on `list` from the last
 * multiple of 16384 questions before first + i on; so a list may be continued from such a number with the bits of the whole.
 * RWS_OK also if single questions fail; RWS_STOPPED, RWS_NO_MEMORY, RWS_BAD_INPUT for a list or an rws_many that is wrong. */
rws_status rws_posterior_ask_many(rws_posterior *p, const rws_question *list, int n, const rws_many *how,
                                  rws_error *err) RWS_MUST_CHECK;

/* The text that an answer reports under a name; and the value that it reports there for the time-th time, from 0. NULL
 * if there is none. */
const char         *rws_answer_text(const rws_answer *a, const char *name);
const rws_reported *rws_answer_value(const rws_answer *a, const char *name, int time);

/* log p(z, x) and log q(z | x) of given choices: every site that guide and model visit must be listed. The question
 * says which datum; its particles, seed and given choices are not read. To score some choices and sum over the rest,
 * ask with rws_question.given. */
typedef struct {
    double log_p, log_q;
} rws_score;

rws_status rws_posterior_score(rws_posterior *p, const rws_question *question, const rws_choice *choices, int n,
                               rws_score *out, rws_error *err) RWS_MUST_CHECK;

/* A sample of the model: the datum that it made, its reports and its choices. */
typedef struct {
    const float *const *fields; /* in the order of declaration; NULL for a label */
    const rws_reported *reports;
    int                 n_reports;
    const rws_choice   *choices;
    int                 n_choices;
} rws_sample;

typedef struct {
    const rws_sample *list;
    int               n;
} rws_samples;

/* Samples of a model with inputs (rws_setup_input) are made with those of test data, which are drawn at random for each
 * sample, or with those of the datum of a question. Of its fields the inputs alone are read, and others may be NULL;
 * its particles, seed and given choices are not read. */
rws_status rws_posterior_sample(rws_posterior *p, int n, uint64_t seed, rws_samples **out,
                                rws_error *err) RWS_MUST_CHECK;
rws_status rws_posterior_sample_at(rws_posterior *p, const rws_question *inputs, int n, uint64_t seed,
                                   rws_samples **out, rws_error *err) RWS_MUST_CHECK;
void       rws_samples_free(rws_samples *s);

/* Posterior predictions: n data that the model makes of choices drawn from the weighted particles of answers, which must have been
 * asked for. The samples' choices are those of the particles. RWS_BAD_INPUT if no particle is possible. */
rws_status rws_posterior_predict(rws_posterior *p, const rws_answers *a, int n, uint64_t seed, rws_samples **out,
                                 rws_error *err) RWS_MUST_CHECK;

/* ---- members of answers, JSON and marginals */

typedef enum { RWS_MEMBER_NUMBER, RWS_MEMBER_COUNT, RWS_MEMBER_TEXT, RWS_MEMBER_TRUST } rws_member_type;

/* When JSON has a member: always, if it is not NaN, or if choices were given. */
typedef enum { RWS_MEMBER_ALWAYS, RWS_MEMBER_KNOWN, RWS_MEMBER_GIVEN } rws_member_when;

/* A number or a text of answers, of one of them or of particles. JSON, the HTTP API, tables of answers and Python have it under
 * this name. */
typedef struct {
    const char     *name, *help;
    rws_member_type type; /* double, int, const char *, rws_trust */
    rws_member_when when;
    bool            column; /* tables of many answers have it (rws_frame) */
    size_t          offset; /* in the structure */
} rws_answer_member;

typedef enum { RWS_OF_ANSWERS, RWS_OF_ANSWER, RWS_OF_PARTICLE } rws_member_of;

/* Member i of rws_answers, rws_answer or rws_weighted, apart from their lists; NULL beyond the last. */
const rws_answer_member *rws_answer_member_at(rws_member_of of, int i);

/* The member in a structure of its kind. A text, as which a verdict counts too; NULL if the member is a number. */
const char *rws_answer_member_text(const rws_answer_member *m, const void *structure);
double      rws_answer_member_number(const rws_answer_member *m, const void *structure);

/* The parts of answers that are written beside the evidence. A number that is larger than their number means all of them. */
typedef struct {
    int answers;   /* at most so many, the most probable first */
    int particles; /* at most so many, those with the largest weight first; 0: no "particles_listed" */
    int marginals; /* of choices of at most so many numbers; 0: no "marginals" */
} rws_answers_shown;

/* Answers as a JSON object, with the keys of `rws infer --json` and of the HTTP API. The caller frees the text. */
rws_status rws_answers_json(const rws_answers *a, const rws_answers_shown *parts, char **out,
                            rws_error *err) RWS_MUST_CHECK;

#define RWS_MARGINAL_VALUES 256 /* most values of a choice that is described by probabilities */

typedef struct {
    double value, posterior, guide;
    double error; /* Monte-Carlo standard error of `posterior` */
} rws_marginal_value;

/* The distribution of a choice by itself, under the posterior and under the guide: of a site, a visit and a number of
 * components, since the size of a site may depend on the path; or of a number that a program reports. A choice of one whole
 * number with few values has the probability of each, any other choice the mean and the standard deviation of each component
 * under the posterior. Probabilities of the posterior are NaN if all particles are impossible. */
typedef struct {
    const char               *name;
    bool                      report; /* or a site */
    int                       visit, dim;
    double                    posterior, guide; /* probability that the site is visited so often, and has this size */
    const rws_marginal_value *values;           /* ascending; NULL: mean and sd */
    int                       n_values;
    const double *mean, *sd;  /* dim of each, among the particles that visit the site; NaN if none is possible */
    double        error;      /* Monte-Carlo standard error of `posterior` */
    const double *mean_error; /* dim Monte-Carlo standard errors of `mean` */
} rws_marginal;

typedef struct {
    const rws_marginal *list; /* reports first; by name, visit and size */
    int                 n;
} rws_marginals;

/* The marginals of all choices of at most `most_dim` numbers, and of all reports that are a number. The question must have
 * asked for particles. The answers must not be freed before. */
rws_status rws_marginals_new(const rws_answers *a, int most_dim, rws_marginals **out, rws_error *err) RWS_MUST_CHECK;
void       rws_marginals_free(rws_marginals *m);

/* ---- a table of many answers */

/* A row for each question, and columns of numbers or of texts, in an order that does not depend on that of the rows except for
 * the first appearance of each name:
 *
 *     log_evidence, log_evidence_error, exact_log_evidence (if known), ess, k_hat, verdict; error: why there is no answer
 *     NAME, NAME.posterior, NAME.error, NAME.exact      a text that the most probable answer reports, and how probable that is
 *     SITE, SITE.probability, SITE=VALUE, …             a choice with few values: the most probable one; all probabilities
 *     SITE.mean, SITE.mean_error, SITE.sd               any other choice of one number; SITE[0].mean, … of several
 *     SITE.visited                                      the posterior probability that the site is visited
 *
 * A visit after the first is SITE:1, SITE:2, …; a number that is reported is report.NAME. */
typedef struct rws_frame rws_frame;

typedef struct {
    const char        *name;
    const double      *numbers; /* one for each row, NaN where it is missing; NULL: a column of texts */
    const char *const *texts;   /* one for each row, NULL where it is missing */
} rws_frame_column;

rws_status rws_frame_new(rws_frame **out, rws_error *err) RWS_MUST_CHECK;
void       rws_frame_free(rws_frame *f);

/* Adds a row with answers, which may be freed then, and the marginals of choices of at most `most_dim` numbers, if the
 * question asked for particles; or, if answers is NULL, with the message why there are none. */
rws_status rws_frame_add(rws_frame *f, const rws_answers *answers, const char *message, int most_dim,
                         rws_error *err) RWS_MUST_CHECK;
int        rws_frame_rows(const rws_frame *f);

/* Column i, whose numbers or texts belong to the table and last until a row is added; false if there is none. */
bool rws_frame_column_at(const rws_frame *f, int i, rws_frame_column *out);

/* ---- calibration by simulation (Talts et al., 2018): does the guide give the posterior of its model? */

#define RWS_SIMULATIONS 256 /* simulations of a portion */

typedef struct {
    int      n_particles; /* of each question; 0: 1000 */
    uint64_t seed;
    int      threads; /* change no number; 0: as many as there are processors */
    /* Called on the calling thread after each simulation, with how many the table has: false ends them. May be NULL. */
    bool (*done)(void *context, int n);
    bool (*stop)(
        void *context); /* called now and then, on the calling thread: true ends the simulations; may be NULL */
    void *context;
} rws_simulations;

/* Fills a table up to n rows. For each the model makes a trace and a datum, the guide is asked about the datum, and the row has
 * the rank of the truth, from 0 to 1, for each number that the trace has: SITE.rank by the weighted particles, SITE.rank_guide by
 * the particles of the guide; SITE:1, … at later visits, SITE[0], … of several components (the first 16 of each),
 * report.NAME of a reported number, SITE.visits of how often the site is visited. Ties are broken at random, a visit that is not
 * made counts as lower than any value, and there is no rank where truth and all particles agree. If all values are whole,
 * SITE.confidence is the probability of the most probable one and SITE.correct whether it is the truth. A row with `impossible`
 * has no possible particle. Continues with the bits of the whole from a multiple of RWS_SIMULATIONS rows. RWS_BAD_INPUT if the
 * model makes what cannot be asked about. */
rws_status rws_posterior_simulate(rws_posterior *p, int n, const rws_simulations *how, rws_frame *f,
                                  rws_error *err) RWS_MUST_CHECK;

#define RWS_CALIBRATION_BINS 20
#define RWS_CALIBRATION_GRID 32
#define RWS_CALIBRATION_INTERVALS 3
#define RWS_CALIBRATION_WIDTHS \
    {                          \
        0.5, 0.8, 0.95         \
    }

/* How the ranks of one quantity are distributed. */
typedef struct {
    const char *name;
    bool        guide;      /* ranks among the particles of the guide; else by importance weights */
    int         n;          /* ranks */
    double      p;          /* that uniform ranks are so uneven, exactly; NaN for fewer than 50 */
    double      p_adjusted; /* by Holm, for all tested quantities of this kind */
    double      coverage[RWS_CALIBRATION_INTERVALS]; /* of the central intervals of RWS_CALIBRATION_WIDTHS */
    double confidence_error, accuracy; /* expected calibration error of the most probable value; NaN if not whole */
    int    histogram[RWS_CALIBRATION_BINS];
    /* The empirical distribution function minus z at z = 1/GRID, …, and the bands that it stays in at all z with a probability of
     * 0.95 if ranks are uniform; where n is 50 or more. */
    double difference[RWS_CALIBRATION_GRID - 1], low[RWS_CALIBRATION_GRID - 1], high[RWS_CALIBRATION_GRID - 1];
} rws_calibrated;

typedef struct {
    const rws_calibrated *list; /* by the weights, then by the guide */
    int                   n, n_simulations, n_impossible;
} rws_calibration;

/* Describes a table of rws_posterior_simulate, which may be freed afterwards. */
rws_status rws_calibration_new(const rws_frame *f, rws_calibration **out, rws_error *err) RWS_MUST_CHECK;
void       rws_calibration_free(rws_calibration *c);

/* ------------------------------------------------------------------------------------- hosts of other languages */

/* A host executes programs that are written in another language, by an interpreter that has a lock, a stack of its own
 * kind, or frames that must be left in order. Models in C have none.
 *
 *     engine       enter   resume(path) …   leave   kernels   enter   resume(path) …   leave
 *                             |      ^
 *     host                 rws_path_run   returns when the path waits for values, or ends
 *                             v      |
 *     path's stack         rws_model.guide, then model: the host's own functions, which call the program
 *
 * A pass that fails is over for all of its paths. The library then resumes every path that waits once more, only to
 * have it leave its frames: instead of returning, the library function calls `escape`, which must jump (by longjmp) to
 * the host's code that called the library. From there the host unwinds its program and returns from guide or model. The
 * same happens where a library call of the path itself fails. */
typedef struct rws_host {
    /* Take and give back the interpreter's lock. Called before and after paths are executed, on the thread of the pass,
     * and before and after forget. Kernels run without the lock. */
    void (*enter)(void);
    void (*leave)(void);

    /* Executes a path until it waits or ends, by rws_path_run. `begins`: the programs start from the beginning, also if
     * the path was used before. */
    void (*resume)(rws_path *path, bool begins);

    /* Leaves the frames of the library on the path's stack, and does not return. NULL: the frames of the library and of
     * the host are dropped without unwinding, as for programs in C. */
    void (*escape)(rws_path *path);

    /* Gives back what the host keeps for a path (rws_path_slot), which ends. */
    void (*forget)(void *kept);
} rws_host;

/* A pointer for the host's use, one for each path, NULL at first. A path is used in many passes, for many executions.
 * */
void **rws_path_slot(rws_path *path);

/* For rws_host.resume: executes the path on its stack, until it waits, pauses or ends. */
void rws_path_run(rws_path *path);

/* The path's stack from its lowest address on, for an interpreter that watches how much of a stack is left. */
void *rws_path_stack(const rws_path *path, size_t *bytes);

/* Called on the path's stack: rws_path_run returns to the host, which may run the path again at any time. */
void rws_path_pause(rws_path *path);

/* Fails the pass with this message, and returns. */
void rws_path_refuse(rws_path *path, rws_status status, const char *message);

/* Whether the pass of the path has failed, and why; the message lives as long as the pass. */
rws_status rws_path_failure(const rws_path *path, const char **message);

/* Whether the programs of the path have ended. */
bool rws_path_ended(const rws_path *path);

/* --------------------------------------------------------------------------------------------------------- tables */

typedef struct {
    const char        *name, *help;
    const rws_setting *settings; /* or NULL; ends with a NULL name */
    int                min_particles;
    const char        *when; /* to take it: a sentence */
} rws_method_info;

typedef struct {
    const char *name, *help;
} rws_optimiser_info;

/* Entry i of each table; NULL or false beyond its end. */
const rws_model *rws_model_at(int i); /* the models that are built in */
bool             rws_method_at(int i, rws_method_info *out);
bool             rws_optimiser_at(int i, rws_optimiser_info *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
