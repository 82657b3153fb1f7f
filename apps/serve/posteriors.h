/* posteriors.h - posteriors of runs that are kept open, so that a question does not load a checkpoint.
 *
 * Threads share a posterior (rws_train.h: any number may ask it at once). The posterior of a run that is still training is
 * replaced when its checkpoint has changed; threads that are asking the old one finish with it. The posterior that was not
 * asked for the longest time is closed when there are more than RWS_POSTERIORS_MOST.
 *
 *     folder of a run -> [posteriors] -> rws_posterior -> questions
 */
#ifndef RWS_SERVE_POSTERIORS_H
#define RWS_SERVE_POSTERIORS_H

#include "rws_train.h"

enum { RWS_POSTERIORS_MOST = 8 };

typedef struct rws_posteriors rws_posteriors;
typedef struct rws_opened     rws_opened; /* a posterior that the caller holds */

rws_posteriors *rws__posteriors_new(void);               /* NULL without memory */
void            rws__posteriors_free(rws_posteriors *s); /* when no thread holds a posterior any more */

/* The posterior of the run in a folder, under its present checkpoint. The caller gives it back. `given` has the shared object that
 * the user has named for the run. Fails like rws_posterior_open. */
rws_status rws__posteriors_take(rws_posteriors *s, const char *folder, const rws_config *given, rws_opened **out,
                                rws_error *err) __attribute__((warn_unused_result));
void       rws__posteriors_give_back(rws_posteriors *s, rws_opened *w);

rws_posterior *rws__opened_posterior(rws_opened *w);

#endif
