/* dist.h - distributions: a family knows how to draw and how to score; a site decides which of the two happens.
 *
 * Both are made of recorded ops, so a family has no loop over particles and no gradient code besides that of its ops. A
 * family does not know estimators; it draws as the proposal of the pass says.
 *
 * The struct rws_family is public (rws.h): a distribution of an author's own is made like the ones of this folder.
 *
 * The file of a distribution holds its family, its ops and its public function; the family and the ops are listed in
 * table.c.
 */
#ifndef RWS_DIST_DIST_H
#define RWS_DIST_DIST_H

#include "engine/engine.h"

/* How the guide draws a categorical choice. */
typedef enum {
    RWS_PLAIN,
    RWS_DEFENSIVE, /* from a mixture with the uniform distribution, of weight delta */
    RWS_GUMBEL,    /* as the largest of perturbed log-probabilities, which are noted: rws__path_noted */
    RWS_RELAXED,   /* a point on the simplex instead of a choice (Concrete), at `temperature` */
    RWS_SMOOTHED,  /* such a point, made of a stick of smoothed bits: smoothed.c */
} rws_drawing;

/* How the bits of a smoothed pass become numbers in [0, 1]. */
typedef enum { RWS_SMOOTH_SPIKE, RWS_SMOOTH_EXPONENTIAL, RWS_SMOOTH_POWER } rws_smoothing;

/* What an estimator asks of the families in a wake pass (rws_pass.proposal). All zero: plain draws. */
typedef struct rws_proposal {
    rws_drawing    how;
    double         delta;       /* RWS_DEFENSIVE */
    bool           wrong_delta; /* dww_ref_bug: the mixture's density at a plain draw instead of the one used */
    const char    *only_site;   /* RWS_GUMBEL: the guide may draw this site once and nothing else; NULL: any sites */
    double         temperature; /* RWS_RELAXED */
    rws_smoothing  smoothing;   /* RWS_SMOOTHED, and how near to bits the numbers are */
    double         sharpness;
    rws_relaxation relaxation; /* what takes the place of densities in a relaxed or smoothed pass */
} rws_proposal;

const rws_proposal *rws__path_proposal(const rws_path *path);

/* What a categorical site notes (rws__path_note) in a Gumbel, relaxed or smoothed pass. */
enum { RWS_NOTE_LOG_PI, RWS_NOTE_Z, RWS_NOTE_G, RWS_NOTE_G_TILDE };

/* Every family and every op of this folder, NULL-terminated; the tests walk both. */
extern const rws_family *const rws_families[];
extern const rws_family        rws_bernoulli_family, rws_bernoulli_vector_family;
extern const rws_op *const     rws_dist_ops[];

/* A categorical choice in a smoothed pass: the logits of its smoothed bits, one less than there are categories; their
 * log-density; and the log of the point on the simplex that they make (smoothed.c). */
rws_var rws__smoothed_draw(rws_path *path, rws_var log_pi);
rws_var rws__smoothed_density(rws_path *path, rws_var y, rws_var log_pi);
rws_var rws__stick_break(rws_path *path, rws_var y);

/* The length of the longest of n parameters. */
int rws__dist_longest(rws_path *path, const rws_var *p, int n);

/* For explain: a message if input `low` of this row, the lower bound, is not below the input after it, the upper bound. */
rws_status rws__explain_bounds(const rws_call *c, size_t row, int low, const char *site, rws_error *err);

/* The number with the share u of a Gamma of shape a and rate 1 below it, and its derivative by a; and the same for the
 * logarithm of that number. */
double rws__gamma_draw(double a, double u, double *by_a);
double rws__log_gamma_quantile(double a, double u, double *slope);

/* Draws the number of successes among `trials` trials. Each parameter has one number. */
rws_var rws__draw_binomial(rws_path *path, rws_var trials, rws_var logit);

/* rws_site_visit for a public function, which messages name. */
rws_var rws__site_visit_as(rws_path *path, const char *site, const rws_family *f, const rws_var *params,
                           const char *function);

/* The work of rws_site_visit, for public functions that have called rws__replayed and will call rws__returns. */
rws_var rws__site_work(rws_path *path, const char *site, const rws_family *f, const rws_var *params);

/* The same for an automatic guide, which visits the site with a family of its choice. */
rws_var rws__site_propose(rws_path *path, const char *site, const rws_family *f, const rws_var *params);
rws_var rws__mixture_propose(rws_path *path, const char *site, rws_var logits, const rws_component *components, int n);

/* Stops with a message if a family is not complete. */
void rws__family_check(rws_path *path, const rws_family *f, const char *function);

/* The length of the values of a family; stops with a message if its parameters do not fit each other. `site` is for the
 * message; NULL: outside of sites. */
int rws__family_length(rws_path *path, const rws_family *f, const rws_var *p);

/* The draw_defensive of a single choice: from the mixture of its log-probabilities p[0] with the uniform distribution or, in
 * a pass with wrong_delta, as the authors' code does it. *log_mixture becomes the log-density that its weight counts. */
rws_var rws__draw_defended(rws_path *path, const rws_family *f, const rws_var *p, rws_var *log_mixture);

/* What the values of a family are, with these parameters (support.c). n_choices: rws_family.choices, or 0. */
rws_values rws__family_values(rws_path *path, const rws_family *f, const rws_var *p, int n_choices);

/* The lowest or the highest of these values. */
rws_var rws__values_bound(rws_path *path, const rws_values *v, bool high);

/* The support of a value that is of one or of the other. */
rws_support rws__support_of_both(rws_support a, rws_support b);

/* For a visit whose value was drawn by another family: stops the pass with a message, now or when values are known, unless
 * the guide reaches what the model reaches, and no more. */
void rws__support_check(rws_path *path, const rws_visit *v);

/* The ops that several distributions use. */
extern const rws_op rws_op_defend, rws_op_gumbel_draw;

#endif
