/* engine.h - runs programs written for one particle for all of them at once, and differentiates what was run.
 *
 * A pass is one execution of a program for a range of data and particles. Forward leaves a table of rows with their
 * log-densities; the caller writes a coefficient next to each row, and backward adds the gradient of the weighted sum
 * to a flat vector. The engine knows neither models nor estimators, and does not own the parameters.
 *
 *     data, parameters -> [forward] -> rws_scores -> estimator -> coefficients -> [backward] -> gradient
 *
 * One engine belongs to one thread at a time; it keeps its memory from pass to pass.
 */
#ifndef RWS_ENGINE_ENGINE_H
#define RWS_ENGINE_ENGINE_H

#include "base/rng.h"
#include "rws_train.h"
#include "tensor/op.h"

typedef struct rws_engine rws_engine;

/* The program that visits a site. */
typedef enum { RWS_SIDE_NONE, RWS_SIDE_GUIDE, RWS_SIDE_MODEL } rws_side;

typedef enum {
    RWS_WAKE,    /* the guide draws, the model scores, data are given */
    RWS_SLEEP,   /* the model draws, data included; the guide scores; every particle dreams a datum */
    RWS_COMPUTE, /* no sites at all */
} rws_mode;

#define RWS_OUTPUTS 10 /* extra numbers per row that a program may hand out */

typedef struct {
    void (*program)(rws_path *path, void *context); /* runs the two sides in the right order; NULL: rws__programs */
    void            *context;
    const rws_model *model; /* of rws__programs */
    const void      *state;
    rws_mode         mode;
    bool   enumerate; /* wake: all choices are gone through, and K is the most combinations: rws__draw_every */
    bool   pathwise;  /* gradients pass through continuous values (reparameterised) */
    bool   reports;   /* reports of programs are wanted */
    bool   asked;     /* … for a person to read: rws_reports_all */
    bool   scalar;    /* every particle alone, nothing shared or merged: the reference */
    double resample; /* resample at steps of a loop that guide and model share where ess <= this share of K; 0: never */
    bool   apart;    /* loops do not bring paths together: rows are those of a history (siblings.h) */
    bool   backwards;  /* paths are executed in another order, which changes nothing but by a mistake of a program */
    double negligible; /* share of a datum's total |coefficient| that backward may leave out; see backward.c */
    unsigned groups;   /* bit g: gradients of parameter group g may be asked for */
    rws_key  key;
    uint64_t iteration;                   /* of training, for programs that change with it */
    uint32_t first_datum, first_particle; /* global indices, for the random numbers */
    int      n_data, n_particles;         /* n_particles per datum; in sleep without fields, n_data is 1 */
    /* How families draw for the guide in a wake pass, for them to read (dist/dist.h); lasts as long as the pass. NULL:
     * plainly. */
    const struct rws_proposal *proposal;
    /* n_data x dim each, in the order of the declaration; in sleep the inputs alone are read, and NULL: there are none */
    const float *const *fields;
    /* Where the drawing side reaches a site and visit that is listed here, every particle takes the given value instead
     * of drawing one. In a wake pass the guide's log-density of the value is log_given, not log_q, and a particle that
     * does not visit all sites that are given for its datum is impossible: log_p is -inf. The list must last as long as
     * the pass; no site and visit is listed twice. RWS_BAD_INPUT for a value that does not fit its site, and for a site
     * that certainly no particle visits (choices.c). */
    const rws_choice *given;
    int               n_given;
    /* n_data + 1 places: datum d has choices given_start[d] … given_start[d + 1] - 1 of the list, and n_given is not
     * looked at. NULL: the list holds for every datum. */
    const uint32_t *given_start;
    bool            given_all; /* a latent site that is not listed is RWS_BAD_INPUT */
    bool            choices;   /* the values at all latent sites are wanted after the pass: rws__engine_choices */
} rws_pass;

typedef struct rws_scores rws_scores;

/* Writes coefficients for the choices that were drawn at one level. Listed are n rows of the table, `at[k]`, the row of the level
 * that row[k] stands on, and `above[k]`, the row that its particles shared before this choice. coef has a number for each row
 * of the level, zeros; `sums` has three for each of the rows above, zeros. */
typedef void rws_choice_weigher(const rws_scores *s, uint32_t n, const uint32_t *row, const uint32_t *at,
                                const uint32_t *above, double *sums, double *coef);

/* The rows of a finished forward pass, ordered by datum: those of datum d are start[d] … start[d + 1] - 1. A row stands
 * for count[i] particles that made the same choices. */
struct rws_scores {
    int             B, K, n;
    const uint32_t *start, *count;
    const uint32_t *datum;     /* of each row */
    const double   *log_p;     /* of latents and data under the model */
    const double   *log_q;     /* of the latents under the guide, without those that were given */
    const double   *log_given; /* of the given choices under the guide; NULL if none was given */
    const double
        *log_d; /* of the latents under what they were drawn from: log_q unless a site or resampling says otherwise */
    const double *out[RWS_OUTPUTS];
    /* To be filled in before backward, zero at first: the coefficient of a row's gradient, for all its particles
     * together. */
    double *coef_p;
    double *coef_q;     /* log q of choices, and of all sites in a pass that is not pathwise */
    double *coef_r;     /* log q of continuous values in a pathwise pass */
    double *coef_given; /* log q of given choices; NULL if none was given */
    double *coef_out[RWS_OUTPUTS];
    double *l, *w, *L; /* scratch for weighing: a number per row, per row, per datum */
    double *work[3];   /* scratch: three numbers per row */
    double                 *
        coef_score; /* of a table with sums (sums.c), else NULL: score functions of a particle, which are no share of its rows */
    struct rws_sums    *sums;          /* the particles that rows belong to; NULL: no site was summed */
    rws_choice_weigher *weigh_choices; /* in the place of coef_q for choices that paths drew; NULL: coef_q */
    double              choice_share;  /* the share of a datum, for it */
};

/* Where sites were summed, a particle is in several rows: see sums.c. */
typedef struct rws_sums {
    rws_scores      whole; /* the table of the particles: a row for each, in order, whose log_p is that of its weight */
    const uint32_t *start; /* n + 1 places in `particle`, for each row of the table of rows */
    const uint32_t *particle; /* rows of `whole` */
    uint32_t       *first;    /* for each particle, its first row */
} rws_sums;

/* The table of particles, which is the table itself where no site was summed. */
static inline rws_scores *rws__scores_whole(rws_scores *s)
{
    return s->sums ? &s->sums->whole : s;
}

/* The coefficients of particles, which an estimator has written in rws__scores_whole, become those of rows. */
void rws__scores_part(rws_scores *s);

/* What particles of row i there are in this row: the sum of the shares that it has of their weights, and the log of the sum
 * of their weights in this row times their whole weights. Without sums these are count and log(count w^2). */
double rws__row_share(const rws_scores *s, int i);
double rws__row_log_square(const rws_scores *s, int i);

/* Numbers that the columns to be filled in and the scratch have space for behind the last row. */
#define RWS_ROWS_BEHIND 8

typedef struct {
    uint64_t rows, particles, calls, flops;
    uint64_t nodes, paths, operations; /* that were recorded; that were run; library calls that paths made */
    uint64_t ended, resampled; /* particles that were impossible after a step; data that were resampled, each time */
    int64_t  ended_clock;      /* the sum of the clocks of the steps after which particles ended */
    uint64_t needed, history;  /* 0 unless rws__engine_count_rows is on; history: rows of the levels of nodes */
} rws_engine_stats;

/* An engine for programs with these parameters and data, which must outlive it; limits may be NULL. NULL when there is
 * no memory. */
rws_engine *rws__engine_new(const rws_params *params, const rws_field *fields, int n_fields, const rws_limits *limits);
void        rws__engine_free(rws_engine *e);

/* The author's or the user's choice how gradients treat the values at a site (rws_setup_gradient). */
typedef struct {
    const char  *site;
    rws_gradient how;
} rws_site_gradient;

/* Sets these choices for n sites, before the first pass. If a site has two entries, the later one counts. The list must
 * outlive the engine. */
void rws__engine_set_gradients(rws_engine *e, const rws_site_gradient *list, int n);

/* Whether a particle has visited the site in any pass of this engine. */
bool rws__engine_has_site(const rws_engine *e, const char *site);

/* The host of the language that programs are written in (rws_train.h); NULL, which a new engine has: C. To be called before
 * the first pass. */
void rws__engine_host(rws_engine *e, const rws_host *host);

/* The engine asks `stop` now and then in long passes, on the thread of the pass: true ends the pass with RWS_STOPPED. NULL:
 * never. */
void rws__engine_watch(rws_engine *e, bool (*stop)(void *context), void *context);

/* A guide that is not written by the author but made of the model's own program (lib/guide), which then runs on the guide's
 * side. Meanwhile every site calls `visit` in the place of what it does otherwise. */
typedef struct rws_automatic rws_automatic;
struct rws_automatic {
    void (*run)(rws_path *path, const rws_automatic *a); /* in the place of rws_model.guide; as a program of its own */
    /* Inside of the public function of a site. p: the parameters as they were given and as the family has prepared them. */
    rws_var (*visit)(rws_path *path, const rws_automatic *a, const char *site, const rws_family *f,
                     const rws_var *params, const rws_var *p);
    size_t bytes; /* of rws__path_memory */
};

/* To be called before the first pass; it must outlive the engine. NULL, which a new engine has: models have guides. */
void rws__engine_automatic(rws_engine *e, const rws_automatic *a);

/* Runs a pass of at least one datum and one particle. Fails if the program does not fit (a site only one side visits, …) or
 * if the numbers break; the message names the site. After a failure there is no table, and the engine is ready for another pass. */
rws_status rws__engine_forward(rws_engine *e, const rws_pass *pass, rws_error *err);

/* The table of the last pass; lives until the next. */
rws_scores *rws__engine_scores(rws_engine *e);

/* gradient (flat, laid out like the parameters) += sum over rows of coef_p grad log p + coef_q grad log q + …, for the
 * groups in the mask, which must be among those of the pass. RWS_NO_MEMORY leaves a part of it in the gradient. */
rws_status rws__engine_backward(rws_engine *e, unsigned groups, float *gradient, rws_error *err);

/* The same without the products of rows that the gradients of weights are sums of: these are handed out in *products,
 * and last until the next pass. touched[i] becomes true for every parameter, by its number, that something was added
 * to. */
rws_status rws__engine_backward_deferred(rws_engine *e, unsigned groups, float *gradient, bool *touched,
                                         const rws_products **products, rws_error *err);

/* Second derivatives, forward over reverse: the directional derivative of output `from` along `direction` (flat), which
 * moves only the parameters of the groups in the mask, becomes output `to`. Extends the table of the last pass; to be
 * called after the first backward. A further call in the same pass with the same `direction`, which must then hold the same
 * numbers, uses what the first call has computed. */
rws_status rws__engine_tangent(rws_engine *e, int from, int to, unsigned groups, const float *direction,
                               rws_error *err);

/* After RWS_COMPUTE: the value of a program's result (rws__path_output 0), n_data x dim. */
const float *rws__engine_result(rws_engine *e, int *dim);

/* Report number `time` (the first is 0) of row i of the table under a name: a value, or a text. NULL if there is none,
 * or no memory. Lives until the next pass. */
const float *rws__engine_report(rws_engine *e, int i, const char *name, int time, int *dim);
const char  *rws__engine_report_text(rws_engine *e, int i, const char *name, int time);

/* Calls `each` for every report of row i, in order. RWS_OK or RWS_NO_MEMORY. */
typedef void rws_reporter(void *context, const char *name, int dim, const float *value, const char *text);
rws_status   rws__engine_reports(rws_engine *e, int i, rws_reporter *each, void *context)
    __attribute__((warn_unused_result));

/* Calls `each` for the value of every latent site of row i of the table, in the order in which the drawing side visited
 * them. Needs rws_pass.choices. The values live until the next pass. RWS_OK or RWS_NO_MEMORY. */
typedef void rws_choice_reader(void *context, const rws_choice *choice);
rws_status   rws__engine_choices(rws_engine *e, int row, rws_choice_reader *each, void *context)
    __attribute__((warn_unused_result));

/* Whether some particle of the last pass took choice i of rws_pass.given, whose list held for every datum. */
bool rws__engine_given_reached(const rws_engine *e, int i);

/* Field number `field` of the datum that row i of the table belongs to, after any pass; after a sleep pass, what the
 * model made. NULL: no program made it (a label, in a sleep pass), or no memory. Lives until the next pass. */
const float *rws__engine_observed(rws_engine *e, int row, int field, int *dim);

/* A log-density that a row of the table has gained at a site. */
typedef struct {
    const char *site;
    int         number; /* of the site, in the order in which the engine came to know them */
    int         visit;
    bool        guided;   /* a part of log_q; else of log_p */
    int         n_values; /* of a choice among so many; 0: it is none, or observed */
    double      value;
    unsigned    made_of; /* bits RWS_MADE_OF_… */
} rws_row_term;

/* What a term is computed from: parameters of group g (bit g), the datum, choices other than its own; and that it was reached
 * by a branch. */
enum { RWS_MADE_OF_DATA = 0x10, RWS_MADE_OF_CHOICES = 0x20, RWS_MADE_OF_BRANCH = 0x40 };

/* Calls `each` for every log-density of row i of the table, the last first. RWS_OK or RWS_NO_MEMORY. */
typedef void rws_term_reader(void *context, const rws_row_term *t);
rws_status   rws__engine_terms(rws_engine *e, int row, rws_term_reader *each, void *context)
    __attribute__((warn_unused_result));

/* How the last pass has used a parameter. */
typedef struct {
    bool recorded;     /* by any program */
    bool model, guide; /* log_p, or log_q, is computed from it */
} rws_use;

/* Adds the uses of the last pass to uses[i], for every parameter by its number. RWS_OK or RWS_NO_MEMORY. */
rws_status rws__engine_uses(rws_engine *e, rws_use *uses) __attribute__((warn_unused_result));

/* The name of the site with number i if the last pass made a jump of its values, and nobody has chosen how its gradient comes;
 * else NULL. *end becomes true behind the last site. */
const char *rws__engine_jump(const rws_engine *e, uint32_t i, bool *end);

rws_engine_stats rws__engine_take_stats(rws_engine *e);          /* since the last call */
void             rws__engine_count_rows(rws_engine *e, bool on); /* counts these, which takes time */
uint64_t         rws__engine_allocations(const rws_engine *e);   /* requests to the system so far */

/* ---- For programs that drive programs (estimators), and for distributions and layers, which record operations. */

const rws_pass *rws__path_pass(const rws_path *path);
void            rws__path_side(rws_path *path, rws_side side); /* the side that the following library calls belong to */
void            rws__programs(rws_path *path); /* runs the guide and the model of the pass in the order that it wants */
void            rws__guide(rws_path *path);    /* runs the guide of the pass, which may be an automatic one */
void            rws__path_output(rws_path *path, int slot, rws_var v);

/* For automatic guides. rws__path_acts says that the model's program begins or ends to run in the guide's place, and
 * rws__path_actor whose `visit` its sites call; NULL: none. rws__path_memory is memory that is zero at first, and of which a
 * path that splits off has a copy: it keeps nodes by their ids, which rws__path_value makes values of. */
void                 rws__path_acts(rws_path *path, bool acts);
const rws_automatic *rws__path_actor(const rws_path *path);
void                *rws__path_memory(rws_path *path);
rws_var              rws__path_value(const rws_path *path, uint32_t id);

/* Whether the guide has drawn, or scored, visit number `visit` of a site already; *value is what it is there. */
bool rws__path_guided(rws_path *path, const char *site, uint32_t visit, rws_var *value);

/* Parameters of these groups count as constants in what is recorded from here on. */
void rws__path_freeze(rws_path *path, unsigned groups);

/* Every public function that hands out a value is either replayed or recorded: it begins with
 *     if (rws__replayed(path, &v)) return v;      and ends with      return rws__returns(path, v);
 * What happens between the two is not replayed, so it may call other such functions. The function's name is for
 * messages; a helper of several public functions says which one it works for by rws__replayed_as. */
bool    rws__replayed_as(rws_path *path, rws_var *v, const char *function);
rws_var rws__returns(rws_path *path, rws_var v);
#define rws__replayed(path, v) rws__replayed_as((path), (v), __func__)

/* The author's mistake: stops the pass with RWS_BAD_INPUT and a message that begins with the program and the site it
 * visited last, "In the guide, after site "a" (visit 2): ", or the site that it has come to, "In the guide, at site "b": ". */
_Noreturn void rws__path_mistake(rws_path *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* rws_dim of an argument, for a function that has not called rws__replayed yet. */
int rws__dim_for(const rws_path *path, rws_var v, const char *function);

/* Whether the function that has called rws__replayed was called by another library function, not by a program. */
bool rws__path_is_nested(const rws_path *path);

/* The length of a value at a site that observes a field or an item of a series; 0: the site is latent. */
int rws__site_observes(const rws_path *path, const char *site);

/* The same, or the length of the value that the other side has drawn at a site to be visited next; 0: this side draws it, and
 * says how long it is. The path may split. */
int rws__site_numbers(rws_path *path, const char *site);

/* v as a constant: v itself if no gradient passes through it anyway. */
rws_var rws__var_stop(rws_path *path, rws_var v);

rws_var rws__record(rws_path *path, const rws_op *op, rws_op_args args, const rws_var *in, int n_in, int dim);

/* The op and inputs behind a value; NULL for one that was not computed. */
const rws_op *rws__var_op(const rws_path *path, rws_var v, rws_var *in, rws_op_args *args);

/* Whether the value v is computed at a level above that of another value; or above the level of the path. */
bool rws__var_is_shared(const rws_path *path, rws_var v, rws_var than);
bool rws__var_is_above(const rws_path *path, rws_var v);

/* Whether v is made of constants and parameters alone. */
bool rws__var_is_fixed(const rws_path *path, rws_var v);

/* Whether v is computed at the level of the path. */
bool rws__var_is_here(const rws_path *path, rws_var v);

/* The program has come to this site, which messages name until rws__visit_begin. A family must not visit sites. */
void rws__path_comes_to(rws_path *path, const char *site);

/* What the values at a visit may be, for one program: the support of its family, the number of values of a choice (else 0),
 * and the lowest and the highest value where parameters say so; {0}: what the support says. */
typedef struct {
    rws_support support;
    int         n_values;
    rws_var     low, high;
} rws_values;

/* A visit of a site. The visitor fills in the first members and calls rws__visit_begin, which fills in the others; makes the
 * value if it is to be drawn; and hands value and log-density to rws__visit_end. */
typedef struct {
    const char *site, *family;
    int         size;      /* what both sides must agree in if they have one family (the number of categories, say) */
    int         dim;       /* the length of the value */
    int         n_choices; /* an observed value is in 0 … n_choices - 1; 0: it may be any number */
    bool        reparameterised; /* the family can be */
    rws_values  values;          /* a given value is in 0 … values.n_values - 1, unless that is 0 */
    enum {
        RWS_VISIT_FOUND, /* `value` was drawn by the other side, or is observed */
        RWS_VISIT_GIVEN, /* `value` is given, and takes the place of a draw */
        RWS_VISIT_SUM,   /* all values of a choice are gone through: rws__draw_every */
        RWS_VISIT_GUIDE, /* the guide draws it */
        RWS_VISIT_DREAM, /* the model draws it, in a sleep pass */
    } what;
    bool    pathwise; /* gradients pass through the value */
    bool    by_jump;  /* they would, but the program makes a jump of values of this site, so that they come by score */
    bool    moves;    /* to be set by the visitor with by_jump: the value was drawn with parameters that learn */
    bool    scored;   /* this pass needs the log-density of the current side */
    rws_var value;
    const char *other; /* the family of the side that drew a value that is found, if it is another one; else NULL */
    rws_values  other_values; /* and what its values may be */
} rws_visit;

/* If values are given for some data of the path only, the path splits here. Stops with a message if the sides do not agree,
 * or a given or observed value does not fit. Whether two families fit each other is for the visitor to say. */
void rws__visit_begin(rws_path *path, rws_visit *v);

/* Notes the value that was drawn or given, and adds its log-density to every particle of the path; not if it is {0}.
 * log_drawn: the log-density of what the value was drawn from, where a site of this pass says so; else {0}. */
void rws__visit_end(rws_path *path, const rws_visit *v, rws_var log_density, rws_var log_drawn);

/* A program calls this if it has scored the data by other means than visiting their sites. */
void rws__path_fields_scored(rws_path *path);

/* log p; log q of choices; log q of reparameterised values; log q of given choices; log-density of what was drawn from; what
 * resampling adds to the log-weight, which no site does */
typedef enum { RWS_TERM_P, RWS_TERM_Q, RWS_TERM_R, RWS_TERM_G, RWS_TERM_D, RWS_TERM_W, RWS_TERMS } rws_term;

/* Adds a log-density to every particle of the path. */
void rws__site_term(rws_path *path, rws_term kind, rws_var log_density);

/* Values that one part of a pass keeps for another. */
#define RWS_NOTES 4
void    rws__path_note(rws_path *path, int slot, rws_var v);
rws_var rws__path_noted(const rws_path *path, int slot);

/* Computes v now and returns the largest of its numbers in the rows of the path, for draws whose tables are as long as the
 * values ask for. NaN if one of these numbers is NaN. */
float rws__var_most(rws_path *path, rws_var v);

/* The counter of a row's random numbers, in the place of the numbers: for ops that compute the numbers as they need them
 * (rws__counter_row) instead of reading them from memory. They are the bits that rws_draw_noise would use. */
typedef struct {
    uint32_t particle, datum, ordinal;
    rws_key  key;
} rws_counter;
#define RWS_COUNTER ((int)(sizeof(rws_counter) / sizeof(float)))

rws_var rws__draw_counters(rws_path *path);

/* Goes through all of 0 … n - 1: every row becomes n rows, each with all its particles (sums.c) or, in a pass that enumerates, an
 * even share of them. Fails with RWS_BAD_INPUT where that would be too many. */
rws_var rws__draw_every(rws_path *path, int n);

/* Words 0 … n - 1 of a particle, for a draw of a vector; n is a multiple of 16. */
static inline void rws__counter_row(const rws_counter *c, size_t n, uint32_t *out)
{
    rws__rng_row(c->key, n / 4, c->particle, c->datum, c->ordinal, 1, out);
}

#endif
