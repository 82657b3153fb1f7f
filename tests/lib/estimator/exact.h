/* exact.h - a plain twin of the Gaussian mixture in double precision, which tells the truth about it.
 *
 * The twin reads its numbers from a trainer's parameters and keeps their layout, so a gradient of the one can be laid
 * next to a gradient of the other. Expectations over K particles are sums over all tuples of choices; what continuous
 * noise enters is either integrated on a fine grid or drawn by the engine's own counters. Nothing here is fast.
 *
 * Every gradient is the direction of ascent for one datum, and is added to what the vector holds.
 */
#ifndef RWS_TESTS_EXACT_H
#define RWS_TESTS_EXACT_H

#include "base/rng.h"
#include "dist/dist.h"
#include "tensor/params.h"

#define EXACT_MAX_C 20
#define EXACT_MAX_K 64
#define EXACT_SPACING 10.0
#define EXACT_SD 5.0

/* An mlp with tanh between its layers, as places in the vector of numbers. */
typedef struct {
    int    n_layers; /* 0: there is none */
    int    size[6];
    size_t weight[5], bias[5];
} exact_net;

typedef struct {
    int       C;
    double    mult; /* theta_mult */
    size_t    n;    /* all numbers */
    size_t    first[RWS_GROUPS + 1];
    double   *value;                         /* n; laid out like the trainer's */
    size_t    theta, scale, log_temperature; /* the last two of rebar only */
    exact_net guide, control, baseline;
} exact;

/* A copy of the numbers as they are now. Parameters are found by name. */
exact exact_read(const rws_params *params, double mult);
void  exact_release(exact *m);

/* ---- the model */

double exact_log_sum(const double *l, int n); /* log sum exp; -inf of nothing */
void   exact_net_forward(const exact *m, const exact_net *net, const double *in, double *out);
/* gradient += d(by_out . out); by_in (written) and gradient may be NULL. */
void   exact_net_backward(const exact *m, const exact_net *net, const double *in, const double *by_out, double *by_in,
                          double *gradient);
void   exact_truth(int C, double *p); /* the mixture that the data come from */
double exact_log_normal(double x, double mean);
void   exact_log_prior(const exact *m, double *log_pi);          /* C */
void   exact_log_joint(const exact *m, double x, double *log_p); /* C: log p(z, x) */
void   exact_log_guide(const exact *m, double x, double *log_q); /* C */
/* log p(x) of a mixture, and its posterior if that is not NULL. */
double exact_evidence(int C, const double *log_pi, double x, double *posterior);
/* sum_z by[z] grad log q(z|x), sum_z by[z] grad log p(z) */
void exact_guide_gradient(const exact *m, double x, const double *by, double *gradient);
void exact_prior_gradient(const exact *m, const double *by, double *gradient);

/* ---- expectations over K particles */

/* What one particle may turn out to be: a category and a log-weight, with some probability. */
typedef struct {
    int    n, C;
    int    category[EXACT_MAX_C * EXACT_MAX_C];
    double chance[EXACT_MAX_C * EXACT_MAX_C], l[EXACT_MAX_C * EXACT_MAX_C];
} exact_law;

void exact_law_guide(const exact *m, double x, exact_law *law);
void exact_law_defensive(const exact *m, double x, double delta, exact_law *law);
void exact_law_wrong(const exact *m, double x, double delta, exact_law *law); /* dww_ref_bug: density of a plain draw */

/* What each of K particles' scores count, given their log-weights; set: numbers of the method's own. Written straight
 * from the definitions, with sums over the others for each particle. */
typedef void (*exact_coefficients)(const double *l, int K, const double *set, double *a);
void exact_w(const double *l, int K, const double *set, double *a);         /* w_k */
void exact_centred(const double *l, int K, const double *set, double *a);   /* w_k - 1/K */
void exact_reinforce(const double *l, int K, const double *set, double *a); /* set: shift and divisor of L, or NULL */
void exact_rloo(const double *l, int K, const double *set, double *a);
void exact_vimco(const double *l, int K, const double *set, double *a);
void exact_vimco_no_logK(const double *l, int K, const double *set, double *a);
void exact_vimco_air_ref(const double *l, int K, const double *set, double *a);

/* by[z] = E sum_{k: z_k = z} a_k: the expected gradient is that of sum_z by[z] log q(z|x). */
void   exact_expect(const exact_law *law, int K, exact_coefficients a, const double *set, double *by);
double exact_bound(const exact *m, double x, int K);                            /* E[L] */
void   exact_bound_gradient(const exact *m, double x, int K, double *gradient); /* phi's and theta's */
void   exact_wake_theta(const exact *m, double x, int K, double *gradient);
void   exact_sleep(const exact *m, double *gradient); /* E_p grad log q(z|x) */

/* ---- the same draws as the engine's */

/* Index and uniforms drawn as number `ordinal` on the path of particle k of a datum. */
int    exact_draw(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal, const double *log_p, int C);
double exact_draw_normal(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal);
void   exact_draw_uniforms(rws_key key, uint32_t datum, uint32_t k, uint32_t ordinal, int dim, double *out);

/* RELAX, REBAR or both control variates together: phi's gradient of a datum, with the noise of this key. */
enum { EXACT_NET = 1, EXACT_REBAR = 2, EXACT_MUPROP = 4 }; /* muprop's is an expansion, and alone */
void exact_control_gradient(const exact *m, int controls, double x, int K, rws_key key, uint32_t datum,
                            double *gradient);

/* The bound of the model whose choice is a stick of smoothed bits. */
double exact_smoothed_bound(const exact *m, rws_smoothing how, double b, double x, int K, rws_key key, uint32_t datum);

/* The log-weight of a choice among two whose bit is drawn from this uniform. */
double exact_smoothed_at(const exact *m, rws_smoothing how, double b, double x, double u);

/* The log-density of the Concrete distribution with these logits at a point on the simplex, of which ls is the log. */
double exact_concrete_density(const double *ls, const double *logits, double tau, int C);

/* The bound of the relaxed model at a temperature. */
double exact_concrete_bound(const exact *m, rws_relaxation prior, double tau, double x, int K, rws_key key,
                            uint32_t datum);

#endif
