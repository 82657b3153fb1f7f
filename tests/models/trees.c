#include "trees.h"

#include "support.h"

#include <string.h>

bool trees_equal(const rws_sequence *a, const rws_sequence *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, sizeof *a->at * (size_t)a->n) == 0);
}

/* Walks the node of non-terminal a, whose production is number *next of the tree. Returns the depth of the deepest
 * non-terminal below it, which is at `depth` itself; adds its words to the sentence unless that is NULL. */
static int walk(const rws_grammar *g, const rws_sequence *tree, int *next, int a, int depth, rws_sequence *sentence)
{
    int deepest = depth;
    assert_true(*next < tree->n);
    const int i = tree->at[(*next)++];
    if (i == RWS_LEAF) {
        if (sentence) assert_true(rws__sequence_push(sentence, RWS_OOV));
        return depth;
    }
    assert_true(i >= g->first[a] && i < g->first[a + 1]);
    for (int k = 0; k < g->productions[i].n_right; k++) {
        const rws_symbol s = g->productions[i].right[k];
        if (s.word && sentence) assert_true(rws__sequence_push(sentence, s.id));
        const int below = s.word ? depth : walk(g, tree, next, s.id, depth + 1, sentence);
        if (below > deepest) deepest = below;
    }
    return deepest;
}

static int walk_all(const rws_grammar *g, const rws_sequence *tree, rws_sequence *sentence)
{
    int       next = 0;
    const int depth = walk(g, tree, &next, g->start, 0, sentence);
    assert_int_equal(next, tree->n);
    return depth;
}

void tree_yield(const rws_grammar *g, const rws_sequence *tree, rws_sequence *sentence)
{
    sentence->n = 0;
    walk_all(g, tree, sentence);
}

double tree_log_p(const rws_sequence *tree, const double *log_p)
{
    double sum = 0;
    for (int i = 0; i < tree->n; i++)
        if (tree->at[i] != RWS_LEAF) sum += log_p[tree->at[i]];
    return sum;
}

int tree_depth(const rws_grammar *g, const rws_sequence *tree)
{
    return walk_all(g, tree, NULL);
}
