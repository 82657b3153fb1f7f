/* dist.h - distributions: a family knows how to draw and how to score; a site decides which of the two happens.
 *
 * Both are made of recorded operations, so a family has no loop over particles and no gradient code of its own beyond
 * its density's op. It does not know estimators; it obeys the pass (plain, defensive, Gumbel, relaxed).
 */
#ifndef RWS_DIST_DIST_H
#define RWS_DIST_DIST_H

#include "engine/engine.h"

#define RWS_DIST_PARAMS 2

typedef struct {
    const char *name;
    bool        continuous; /* reparameterised in a pathwise pass */
    bool        binary;     /* a value is a vector of zeros and ones */
    int         n_params;
    /* From what the author gave to what draw and density work on (logits to log-probabilities). May be NULL. */
    void (*prepare)(rws_path *path, rws_var *p);
    int (*size)(rws_path *path, const rws_var *p);                /* what guide and model must agree in */
    int (*choices)(rws_path *path, const rws_var *p);             /* how many values there are; NULL: not a choice */
    int (*dim)(rws_path *path, const rws_var *p);                 /* the length of a value */
    rws_var (*draw)(rws_path *path, const rws_var *p, bool stop); /* stop: the value counts as a constant */
    rws_var (*log_density)(rws_path *path, rws_var value, const rws_var *p);
    /* The same of a value that was not drawn here, if there is a shorter way to it. May be NULL. */
    rws_var (*score)(rws_path *path, rws_var value, const rws_var *p);
    /* The guide's draw in a defensive pass, and the log-density of the mixture at it. NULL: draws as ever. */
    rws_var (*draw_defended)(rws_path *path, const rws_var *p, rws_var *log_density);
} rws_family;

extern const rws_family rws_categorical_family, rws_bernoulli_family, rws_bernoulli_vector_family, rws_normal_family,
    rws_uniform_family, rws_gumbel_family, rws_concrete_family;

/* Every family, NULL-terminated; the tests walk it. */
extern const rws_family *const rws_families[];

/* Visits a site. */
rws_var rws_site_visit(rws_path *path, const char *site, const rws_family *f, rws_var a, rws_var b);

int rws_dist_widest(rws_path *path, const rws_var *p); /* the longer of two parameters; one number stands for many */

extern const rws_op rws_op_defend, rws_op_defend_at, rws_op_conditional_gumbel, rws_op_log_sigmoids,
    rws_op_bernoulli_draw, rws_op_bernoulli_density, rws_op_bernoulli_defended, rws_op_normal_draw,
    rws_op_normal_density, rws_op_uniform_draw, rws_op_uniform_density, rws_op_gumbel_draw, rws_op_gumbel_density,
    rws_op_concrete_density;

#endif
