/* trees.h - what tests read out of a derivation tree, one call for each node. */
#ifndef RWS_TESTS_TREES_H
#define RWS_TESTS_TREES_H

#include "models/corpora/parse_tree.h"

bool trees_equal(const rws_sequence *a, const rws_sequence *b);

/* The words at the leaves, left to right; the list is overwritten. */
void tree_yield(const rws_grammar *g, const rws_sequence *tree, rws_sequence *sentence);

/* The sum of log_p over the productions of a tree. */
double tree_log_p(const rws_sequence *tree, const double *log_p);

/* The depth of the deepest non-terminal; the start has depth 0. */
int tree_depth(const rws_grammar *g, const rws_sequence *tree);

#endif
