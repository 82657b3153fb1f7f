/* pcfg_world.h - what tests of the grammar share: the model without a trainer, passes over its data, and trees read
 * back from the brackets that the guide reports into lists of productions. */
#ifndef RWS_TESTS_PCFG_WORLD_H
#define RWS_TESTS_PCFG_WORLD_H

#include "trained.h"

#include "models/corpora/parse_tree.h"
#include "models/model.h"

typedef struct {
    rws_setup    setup;
    rws_given    given[16];
    void        *state;
    rws_method   method;
    rws_engine  *engine;
    rws_grammar *g;
    int          dim; /* of a datum */
} world;

/* Settings as "name=value", the last one NULL. */
world *world_new(const char *const *set);
void   world_free(world *w);

/* A trainer of the model, with these settings added to c. */
rws_trainer *trainer(const char *method, rws_config c, const char *const *set);

/* Adds to the logits of a non-terminal's first production, in theta and in the guide, to make long trees likely. */
void favour(const rws_params *params, const char *nonterminal, float theta, float phi);

void log_theta(const world *w, double *log_p); /* of all productions */

/* ---- data, which the caller frees */

float *datum_of(const world *w, const int *tokens, int n);
float *datum(const world *w, const char *text);
float *data(const world *w, int B); /* B data of the model */

/* ---- passes */

typedef struct {
    int      B, K;
    uint32_t draw;
    rws_mode mode;
    bool     scalar;
    unsigned groups;
} how;

rws_scores *pass(world *w, const float *x, how h);

/* ---- trees */

rws_sequence tree_of(world *w, int row); /* the tree that the row reported */
bool         has_leaf(const rws_sequence *tree);

#endif
