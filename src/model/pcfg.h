/* pcfg.h - what the parts of the grammar's model share: pcfg.c declares it, pcfg_derive.c has the two programs,
 * pcfg_data.c the sentences, pcfg_exact.c what an exact parser knows, pcfg_snapshots.c what figures show. */
#ifndef RWS_MODEL_PCFG_H
#define RWS_MODEL_PCFG_H

#include "data/sentences.h"
#include "data/tree.h"
#include "model/model.h"

#define RWS_PCFG_HIDDEN 100
#define RWS_PCFG_SENTENCE "the sentence" /* the datum; no non-terminal has a blank in its name */

typedef struct {
    rws_grammar *g;
    rws_param  **theta; /* by non-terminal */
    rws_layer   *encoder, *core, **proposal;
    bool        *deep; /* by non-terminal: something is chosen at it or below it */
    bool         sequential, hard;
    int          n_places; /* how often a non-terminal stands in one right-hand side, at most */
    rws_caps     caps;
    int          room;      /* words of the longest sentence */
    float       *log_truth; /* by production; NULL if nobody knows */
    const char  *path[2];   /* files of sentences, by split; NULL: none */
    rws_unknown  unknown;
    rws_corpus  *corpus; /* empty until somebody asks for data */
} rws_pcfg;

/* How many productions a non-terminal has. */
static inline int rws_pcfg_rules(const rws_grammar *g, int a)
{
    return g->first[a + 1] - g->first[a];
}

/* ---- pcfg_derive.c */

void rws_pcfg_guide(rws_path *path, const void *state);
void rws_pcfg_model(rws_path *path, const void *state);
void rws_pcfg_truth(rws_path *path, const void *state); /* the model with the probabilities of the grammar's file */

/* ---- pcfg_data.c: a sentence as a datum is the number of its words, then the words */

void rws_pcfg_put(const rws_pcfg *m, const int *words, int n, float *datum);

/* Returns the number of words. */
int rws_pcfg_words(const float *datum, int *words);

rws_status rws_pcfg_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                         float *const *fields, rws_error *err);
rws_status rws_pcfg_read(const void *state, const char *text, float *const *fields, rws_error *err);

/* Sentences of one split: the corpus's, or fresh ones of the grammar's. */
typedef struct {
    const rws_pcfg *m;
    rws_split       split;
    int             n_file; /* in the corpus; 0: it has none */
    double         *log_p;
    rws_sequence    tree, words;
} rws_pcfg_source;

rws_status rws_pcfg_source_open(rws_pcfg_source *s, const rws_pcfg *m, rws_split split, rws_error *err);
void       rws_pcfg_source_close(rws_pcfg_source *s);

/* Sentence i of the corpus, or a fresh one; valid until the next call. NULL without memory. */
const int *rws_pcfg_source_take(rws_pcfg_source *s, int i, rws_random *random, int *n_words);

/* ---- pcfg_exact.c */

extern const rws_metric rws_pcfg_metrics[];

/* The logs of the learned probabilities, by production; the caller's to free. NULL without memory. */
double *rws_pcfg_log_p(const rws_pcfg *m);

/* By the parser, which knows the hard likelihood only, and for sentences whose trees can be counted out. */
rws_status rws_pcfg_posterior(const void *state, const float *const *fields, rws_teller *tell, void *context,
                              double *log_evidence, rws_error *err);

/* p(a -> r) becomes the share of r in how often a's rules are expected to be used, given the sentences. */
rws_status rws_pcfg_em(const void *state, int n_fresh, rws_random *random, rws_error *err);

/* ---- pcfg_snapshots.c */

extern const rws_snapshot rws_pcfg_snapshots[];

#endif
