/* families.h - what the tests of distributions share: a plain twin in double for every family of rws_families, settings to
 * try it with, and a bench that draws and scores it in the engine.
 *
 * One site "v" is visited by guide and model with the same parameters, which are parameters of the guide, so that their
 * gradients show. Values come out as outputs, one number each. A family that is in rws_families but not in the table of
 * twins fails every test that walks it. All statistical tests are by the rule of support.h: they fail wrongly in one of
 * 10^12 choices of the seeds.
 */
#ifndef RWS_TESTS_FAMILIES_H
#define RWS_TESTS_FAMILIES_H

#include "dist/dist.h"

#include "support.h"

#define WIDEST 40 /* numbers in a parameter */
#define VALUES 5  /* numbers of a value that are handed out; the output after these is for a choice */
#define OUTCOMES 160
#define USUAL 10000 /* draws of a statistical test, unless it is widened */
#define INF ((double)INFINITY)

/* What the author of a program gives a family. */
typedef struct {
    int    n_a, n_b;
    double a[WIDEST], b[WIDEST];
    int    n_c, n_d;
    double c[WIDEST], d[WIDEST];
    int    n; /* how many categoricals; 0: the family has no such number */
} setting;

enum { PARAMETERS = 4 };

typedef double term(double x, const double *p);

typedef enum {
    NOT_ALONE,  /* the family has twins of its own */
    LINE,       /* all numbers */
    ABOVE_ZERO, /* numbers above 0 */
    UNIT,       /* numbers between 0 and 1 */
    BOUNDED,    /* numbers between parameters c and d; d may be infinite */
    CIRCLE,     /* angles from -pi to pi */
} support;

#define MAX_SETTINGS 6

typedef struct subject {
    const char *name;
    double (*density)(const setting *s, const double *x); /* the log-density */
    /* discrete families: how many outcomes there are, and the value of each */
    int (*outcomes)(const setting *s);
    void (*outcome)(const setting *s, int outcome, double *x);
    /* continuous families: functions of x that are uniform if x has this distribution; `apart`: they are independent */
    int (*uniforms)(const setting *s, const double *x, double *u);
    bool apart;
    double (*mean)(const setting *s); /* E f(x) … */
    rws_var (*f)(rws_path *path, rws_var v);
    double (*order)(
        const setting
            *s);  /* E log q, if the derivative of log q of a draw by the parameters is the same for all draws */
    term   *term; /* independent components: the log-density of one, from which all of the above is computed */
    support support;
    int     centre;                 /* parameter centre - 1 is where the density has a kink; 0: there is none */
    int (*width)(const setting *s); /* numbers of a value; NULL: as many as the longest parameter */
    bool scored;                    /* a continuous family that is not reparameterised */
    rws_var (*visit)(rws_path      *path,
                     const rws_var *p); /* visits site "v" by a function of its own; NULL: rws_site_visit */
    setting settings[MAX_SETTINGS];
} subject;

typedef enum { OUT_VALUE, OUT_MEAN, OUT_G, OUT_G_TILDE } hand_out;

typedef struct {
    const rws_family     *family;
    rws_family            own; /* the family with the context of the setting */
    const struct subject *subject;
    const setting        *setting;
    rws_params            params;
    rws_param            *p[PARAMETERS];
    rws_field             fields[1];
    const float          *field[1];
    bool                  observed, noisy; /* the value is data; a normal is drawn before it */
    hand_out              hand_out;
    rws_pass              pass;
    rws_proposal          proposal;
    rws_engine           *engine;
} bench;

enum { POINTS = 64 };

/* Every family with every setting: what most tests walk over. */
typedef void (*bench_test)(bench *b, int which);

int                   numbers_in(const setting *s, int k);
const double         *numbers_of(const setting *s, int k);
double                part(const double *v, int n, int j);
int                   longer(const setting *s);
double                sigmoid(double x);
double                log_share(const setting *s, int j);
double                concrete_density(const setting *s, const double *x);
double                dirichlet_density(const setting *s, const double *x);
int                   concrete_uniforms(const setting *s, const double *x, double *u);
double                uniform_density(const setting *s, const double *x);
void                  number_outcome(const setting *s, int outcome, double *x);
void                  bits_outcome(const setting *s, int outcome, double *x);
const struct subject *subject_of(const char *name);
const rws_family     *family_of(const char *name);
void                  parameters_of(const setting *s, int j, double *p);
double                density_of(const struct subject *b, const setting *s, const double *x);
int                   uniforms_of(const struct subject *b, const setting *s, const double *x, double *u);
double                mean_of(const struct subject *b, const setting *s);
bool                  is_continuous(const struct subject *b);
void                  bench_init(bench *b, const rws_family *family, const setting *s);
void                  bench_release(bench *b);
rws_scores           *bench_draw(bench *b, uint64_t seed, int n_data, int n_particles);
void                  value_of(const rws_scores *s, int row, double *x);
bool                  as_dense(double got, double want);
int                   outcome_of(const bench *b, const double *x);
double                probability(const bench *b, int outcome);
void                  walk(bench_test test);
const char           *named(const bench *b, int which, const char *what);
double                look_at_outcomes(const bench *b, const rws_scores *s, int n);
double                look_at_values(const bench *b, const rws_scores *s, int n);
int                   width_of(const bench *b); /* numbers of a value */
void                  digits_outcome(const setting *s, int outcome, double *x);
int                   points_of(const bench *b, float *to);
int                   n_families_known(void); /* subjects in the table */

#endif
