/* guide.h - a guide for a model that has none: the model's own program, run on the guide's side.
 *
 *     in the place of the guide      the model's program: it branches, loops and recurses as the model does
 *     at a latent site               a proposal: the prior's family with a head's output added to the prior's parameters
 *     at an observed site            the datum
 *
 * The head of a site sees an encoding of the data, for every series the states of a reader at the next item, the prior's
 * parameters, and the state of a recurrent cell over the choices made so far. Its last layer starts at zero, so that an
 * untrained guide is the prior, which is a valid proposal. The model's own run then records operations that are known already.
 *
 *     setup -> [discover] -> sites -> parameters of phi -> rws_automatic -> engine
 *
 * Layers need sizes before anything is trained: a pass of prior draws finds the sites. A site that is met only later is
 * proposed by a head that all such sites share, and rws__guide_unknown names it.
 */
#ifndef RWS_GUIDE_GUIDE_H
#define RWS_GUIDE_GUIDE_H

#include "engine/setup.h"

typedef struct rws_guide rws_guide;

/* Sizes, which are settings of a run. */
typedef struct {
    int  width;      /* units of each hidden layer */
    int  memory;     /* units of the state over the choices made so far; 0: heads do not see them */
    int  components; /* of the mixture that a continuous value comes from */
    bool rest;       /* the model's own guide runs first, and the automatic one proposes what it has left out */
} rws_guide_sizes;

/* Finds the sites of the model's program and declares the guide's parameters, after the model's setup. What is returned
 * belongs to the setup. NULL after a failure, with the status. Fails like a pass of the program. */
rws_guide *rws__guide_new(rws_setup *s, const rws_model *model, const void *state, const rws_limits *limits,
                          const rws_guide_sizes *sizes, rws_status *status, rws_error *err);

/* What an engine takes; NULL leads to NULL. */
const rws_automatic *rws__guide_automatic(const rws_guide *g);

/* Sets the parameters by which numbers of the data come to mean 0 and standard deviation 1, from n data. */
void rws__guide_scale(rws_guide *g, int n, const float *const *fields);

/* The name of a site that was met in a pass and has no head of its own; NULL: there is none, or no guide. */
const char *rws__guide_unknown(const rws_guide *g);

#endif
