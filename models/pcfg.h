/* pcfg.h - what the files of the grammar's model share: pcfg.c has its setup, pcfg_derive.c the two programs,
 * pcfg_data.c the sentences, pcfg_exact.c the exact parser's answers, pcfg_snapshots.c the snapshots. */
#ifndef RWS_MODELS_PCFG_H
#define RWS_MODELS_PCFG_H

#include "models/corpora/sentences.h"
#include "models/corpora/parse_tree.h"
#include "models/model.h"

#define RWS_PCFG_HIDDEN 100
#define RWS_PCFG_SENTENCE "the sentence" /* the field; a blank, so that it cannot be the name of a non-terminal */

typedef struct {
    rws_grammar *g;
    rws_param  **theta; /* by non-terminal */
    rws_layer   *encoder, *core, **proposal;
    bool        *deep; /* by non-terminal: whether a choice is made at it or below it */
    bool         sequential, hard;
    int          n_places; /* largest number of times that a non-terminal stands in one right-hand side */
    rws_caps     caps;
    int          max_words; /* words of the longest sentence */
    float       *log_truth; /* by production; NULL if the file does not give probabilities */
    const char  *path[2];   /* files of sentences, by split; NULL: none */
    rws_unknown  unknown;
    rws_corpus  *corpus;   /* empty until data are first needed */
    double       labelled; /* share of the drawn training sentences whose tree is given */
    int         *label;    /* by non-terminal: the field with the productions of its nodes; 0: none */
    int          number;   /* the field with the number of a sentence of a file; 0: none */
} rws_pcfg;

/* The number of productions of a non-terminal. */
static inline int rws__pcfg_rules(const rws_grammar *g, int a)
{
    return g->first[a + 1] - g->first[a];
}

/* ---- pcfg_derive.c */

void rws__pcfg_guide(rws_path *path, const void *state);
void rws__pcfg_model(rws_path *path, const void *state);
void rws__pcfg_truth(rws_path *path, const void *state); /* the model with the probabilities of the grammar's file */

/* ---- pcfg_data.c. A datum is the number of words, then the words. */

void rws__pcfg_put(const rws_pcfg *m, const int *words, int n, float *datum);

/* Returns the number of words. */
int rws__pcfg_words(const float *datum, int *words);

rws_status rws__pcfg_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err);
rws_status rws__pcfg_read(const void *state, const char *text, float *const *fields, rws_error *err);

/* Sentences of one split: from the corpus, or else drawn from the grammar. */
typedef struct {
    const rws_pcfg *m;
    rws_split       split;
    int             n_file; /* sentences in the corpus; 0: draw from the grammar */
    double         *log_p;
    rws_sequence    tree, words;
    rws_cut         cut; /* of a drawn tree */
} rws_pcfg_source;

rws_status rws__pcfg_source_open(rws_pcfg_source *s, const rws_pcfg *m, rws_split split, rws_error *err);
void       rws__pcfg_source_close(rws_pcfg_source *s);

/* Sentence i of the corpus, or a drawn one; valid until the next call. NULL without memory. */
const int *rws__pcfg_source_take(rws_pcfg_source *s, int i, rws_random *random, int *n_words);

/* ---- pcfg_exact.c */

extern const rws_metric rws_pcfg_metrics[];

/* The logs of the learned probabilities, by production; the caller's to free. NULL without memory. */
double *rws__pcfg_log_p(const rws_pcfg *m);

/* The exact posterior by the parser: with the hard likelihood only, and for sentences with few enough words and
 * trees. */
rws_status rws__pcfg_posterior(const void *state, const float *const *fields, rws_teller *tell, void *context,
                               double *log_evidence, rws_error *err);

/* One step of expectation-maximisation: p(a -> r) becomes the expected uses of r, given the sentences, over the
 * expected uses of all rules of a. */
rws_status rws__pcfg_em(const void *state, int n_fresh, rws_random *random, rws_error *err);

/* ---- pcfg_snapshots.c */

extern const rws_snapshot rws_pcfg_snapshots[];

#endif
