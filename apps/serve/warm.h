/* warm.h - posteriors of runs that are kept open, so that a question does not load a checkpoint.
 *
 * Threads share a posterior (rws_train.h: any number may ask it at once). The posterior of a run that is still training is
 * replaced when its checkpoint has changed; threads that are asking the old one finish with it. The posterior that was not
 * asked for the longest time is closed when there are more than RWS_WARM_MOST.
 *
 *     folder of a run -> [warm] -> rws_posterior -> questions
 */
#ifndef RWS_SERVE_WARM_H
#define RWS_SERVE_WARM_H

#include "rws_train.h"

enum { RWS_WARM_MOST = 8 };

typedef struct rws_warm_set rws_warm_set;
typedef struct rws_warm     rws_warm; /* a posterior that the caller holds */

rws_warm_set *rws_warm_set_new(void);             /* NULL without memory */
void          rws_warm_set_free(rws_warm_set *s); /* when no thread holds a posterior any more */

/* The posterior of the run in a folder, under its present checkpoint. The caller gives it back. `given` has the shared object that
 * the user has named for the run. Fails like rws_posterior_open. */
rws_status rws_warm_take(rws_warm_set *s, const char *folder, const rws_config *given, rws_warm **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws_warm_give_back(rws_warm_set *s, rws_warm *w);

rws_posterior *rws_warm_posterior(rws_warm *w);

#endif
