/* dist.h - distributions: a family knows how to draw and how to score; a site decides which of the two happens.
 *
 * Both are made of recorded ops, so a family has no loop over particles and no gradient code besides that of its ops. A
 * family does not know estimators; it draws as the pass says (plain, defensive, Gumbel, relaxed).
 *
 * The struct rws_family is public (rws.h): a distribution of an author's own is made like the ones of this room.
 *
 * The file of a distribution holds its family, its ops and its public function; the family and the ops are listed in
 * table.c.
 */
#ifndef RWS_DIST_DIST_H
#define RWS_DIST_DIST_H

#include "engine/engine.h"

/* Every family and every op of this room, NULL-terminated; the tests walk both. */
extern const rws_family *const rws_families[];
extern const rws_op *const     rws_dist_ops[];

/* The length of the longest of n parameters. */
int rws_dist_longest(rws_path *path, const rws_var *p, int n);

/* For explain: a sentence if input `low` of this row, the lower bound, is not below the input after it, the upper bound. */
rws_status rws_explain_bounds(const rws_call *c, size_t row, int low, const char *site, rws_error *err);

/* The ops that several distributions use. */
extern const rws_op rws_op_defend, rws_op_gumbel_draw;

#endif
