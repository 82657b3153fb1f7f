/* dist.h - distributions: a family knows how to draw and how to score; a site decides which of the two happens.
 *
 * Both are made of recorded ops, so a family has no loop over particles and no gradient code besides that of its ops. A
 * family does not know estimators; it draws as the pass says (plain, defensive, Gumbel, relaxed).
 *
 * The file of a distribution holds its family, its ops and its public function; the family and the ops are listed in
 * table.c.
 */
#ifndef RWS_DIST_DIST_H
#define RWS_DIST_DIST_H

#include "engine/engine.h"

/* In what follows p is the family's parameters, n_params of them, after `prepare`. */
typedef struct {
    const char *name;
    const char *help;       /* one line for `rws list` */
    bool        continuous; /* reparameterised in a pathwise pass */
    bool        binary;     /* a value is a vector of zeros and ones */
    int         n_params;   /* less than RWS_OP_INPUTS */
    /* Turns what the author gave into what draw and density work on (logits into log-probabilities). NULL: as given. */
    void (*prepare)(rws_path *path, rws_var *p);
    /* How many numbers a value has. NULL: as many as the longest parameter; the others have as many, or one. */
    int (*length)(rws_path *path, const rws_var *p);
    /* How many values there are: 0 … n - 1. NULL: the family is not a choice. */
    int (*choices)(rws_path *path, const rws_var *p);
    /* The size that guide and model must agree in. NULL: the number of choices or, where there are none, the length. */
    int (*size)(rws_path *path, const rws_var *p);
    rws_var (*draw)(rws_path *path, const rws_var *p, bool stop); /* stop: the value counts as a constant */
    rws_var (*log_density)(rws_path *path, rws_var value, const rws_var *p);
    /* The same for a value that was not drawn here, if there is a shorter way to it. May be NULL. */
    rws_var (*score)(rws_path *path, rws_var value, const rws_var *p);
    /* The guide's draw in a defensive pass, and the log-density of the mixture at it. NULL: draws as in any pass. */
    rws_var (*draw_defensive)(rws_path *path, const rws_var *p, rws_var *log_density);
} rws_family;

/* Every family and every op of this room, NULL-terminated; the tests walk both. */
extern const rws_family *const rws_families[];
extern const rws_op *const     rws_dist_ops[];

/* Visits a site with the n_params parameters that the author gave: finds the value or draws it, and adds its log-
 * density where one is wanted. Returns the value. */
rws_var rws_site_visit(rws_path *path, const char *site, const rws_family *f, const rws_var *params);

/* A categorical choice in a smoothed pass: the logits of its smoothed bits, one less than there are categories; their
 * log-density; and the log of the point on the simplex that they make (smoothed.c). */
rws_var rws_smoothed_draw(rws_path *path, rws_var log_pi);
rws_var rws_smoothed_density(rws_path *path, rws_var y, rws_var log_pi);
rws_var rws_stick_break(rws_path *path, rws_var y);

/* The length of the longest of n parameters. */
int rws_dist_longest(rws_path *path, const rws_var *p, int n);

/* For explain: a sentence if input `low` of this row, the lower bound, is not below the input after it, the upper bound. */
rws_status rws_explain_bounds(const rws_call *c, size_t row, int low, const char *site, rws_error *err);

/* The ops that several distributions use. */
extern const rws_op rws_op_defend, rws_op_gumbel_draw;

#endif
