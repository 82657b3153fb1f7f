/* draft.h - answers in the making: rows of passes and states of chains become candidates and entries.
 *
 *     passes -> rws__draft_add_rows, rws__draft_add_states -> rws__draft_close -> rws_answers
 */
#ifndef RWS_ASK_DRAFT_H
#define RWS_ASK_DRAFT_H

#include "ask/refine.h"

typedef struct rws_draft rws_draft;

/* Answers by n_particles of the guide, with their particles if `listed`; where these are resampled, weights do
 * not tell errors. NULL without memory. */
rws_draft *rws__draft_new(int n_particles, bool listed, bool resampled);
void       rws__draft_free(rws_draft *t);

/* Adds the rows of a datum of the last pass. */
rws_status rws__draft_add_rows(rws_draft *t, rws_engine *engine, int datum, rws_error *err);

/* Adds what each chain is at as a draw of the posterior; chains that are nowhere the first time are left out for good. */
rws_status rws__draft_add_states(rws_draft *t, const rws_chains *chains, rws_error *err);

/* An rws_teller, with the draft as its context, for the exact posterior. */
void rws__draft_tell_exact(void *draft, const char *name, const char *text, double probability);

/* Where the exact log evidence belongs. */
double *rws__draft_exact_log_evidence(rws_draft *t);

/* Finishes the answers, which belong to the draft until rws__draft_take hands them over. */
rws_status   rws__draft_close(rws_draft *t, rws_error *err);
rws_answers *rws__draft_take(rws_draft *t);

#endif
