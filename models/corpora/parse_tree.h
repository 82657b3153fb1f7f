/* parse_tree.h - derivation trees: how they are stored, drawn from a grammar, and how large they are expected to be.
 *
 * A tree is stored as the list of its productions in pre-order, children left to right:
 *
 *             S                          S -> NP VP, NP -> stars, VP -> V NP, V -> saw, NP -> ears
 *          NP    VP
 *       stars   V  NP                    A non-terminal that was not expanded is RWS_LEAF in the list and RWS_OOV
 *             saw  ears                  in the sentence.
 *
 * Two trees are equal if their lists are. Probabilities come as log_p, one number per production of the grammar, so
 * that learned probabilities can take the place of the grammar's own; they need not sum to 1 unless samples are drawn.
 */
#ifndef RWS_MODELS_CORPORA_TREE_H
#define RWS_MODELS_CORPORA_TREE_H

#include "models/corpora/grammar.h"

#define RWS_LEAF (-1)

/* A growing list of ints: the productions of a tree, or the tokens of a sentence. A zeroed one is valid and empty. */
typedef struct {
    int *at;
    int  n, capacity;
} rws_sequence;

/* Adds a value at the end. False without memory; the list is then as it was. */
bool rws__sequence_push(rws_sequence *s, int value) __attribute__((warn_unused_result));
void rws__sequence_release(rws_sequence *s);

/* Limits of a tree. The start has depth 0; a non-terminal is expanded if its depth is at most max_depth and fewer than
 * max_nodes were expanded before it, in pre-order. Otherwise it stays a leaf, which has probability 1. */
typedef struct {
    int max_depth, max_nodes;
} rws_caps;

/* Which caps a tree met: a set of bits. RWS_TREE_NO_MEMORY stands alone: memory ended before the tree did. */
typedef enum { RWS_TREE_WHOLE = 0, RWS_TREE_TOO_DEEP = 1, RWS_TREE_TOO_LARGE = 2, RWS_TREE_NO_MEMORY = 4 } rws_cut;

/* Draws a tree and, unless `sentence` is NULL, its sentence; both lists are overwritten. */
rws_cut rws__parse_tree_sample(const rws_grammar *g, const double *log_p, rws_caps caps, rws_random *random,
                               rws_sequence *tree, rws_sequence *sentence);

/* The tree as "(S (NP stars) (VP (V saw) (NP ears)))", an unexpanded non-terminal as its name. Writes like snprintf:
 * returns the length of the whole text, and writes at most capacity - 1 bytes of it; 0 without memory. */
size_t rws__parse_tree_text(const rws_grammar *g, const rws_sequence *tree, char *text, size_t capacity);

/* The expected number of nodes of every non-terminal (n_nonterminals numbers) and the expected number of words, without
 * caps; all of them are infinite if the expected size of a tree is. Time n_nonterminals^3. RWS_NO_MEMORY is the only
 * failure. */
rws_status rws__parse_tree_moments(const rws_grammar *g, const double *log_p, double *nodes, double *length,
                                   rws_error *err) __attribute__((warn_unused_result));

#endif
