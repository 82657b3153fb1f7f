/* grammar.c - libFuzzer harness for grammar files: whatever the bytes, they are refused with a sentence that names the
 * grammar, or the guarantees of grammar.h hold: every production can be read, names are found again, and a tree that is
 * drawn can be printed. */
#include "base/rng.h"
#include "models/corpora/parse_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const rws_grammar *g)
{
    double *log_p = malloc((size_t)g->n_productions * sizeof *log_p);
    rws__grammar_log_p(g, log_p);
    for (int a = 0; a < g->n_nonterminals; a++) {
        double total = 0;
        if (rws__grammar_nonterminal(g, g->nonterminals[a]) != a || g->first[a] >= g->first[a + 1]) abort();
        for (int i = g->first[a]; i < g->first[a + 1]; i++) {
            const rws_production *p = &g->productions[i];
            if (p->left != a || p->n_right < 1 || p->n_right > g->max_right) abort();
            for (int k = 0; k < p->n_right; k++)
                if (p->right[k].id < 0 || p->right[k].id >= (p->right[k].word ? g->n_terminals : g->n_nonterminals))
                    abort();
            total += exp(log_p[i]);
        }
        if (!(fabs(total - 1) < 1e-6)) abort();
    }
    for (int t = 0; t < g->n_terminals; t++)
        if (rws__grammar_word(g, g->terminals[t], strlen(g->terminals[t])) != t) abort();
    rws_random   random = rws__random_new(rws__key_for(1, 0, RWS_KEY_DATA, 0), 0);
    rws_sequence tree = {0}, sentence = {0};
    char         text[256];
    rws__parse_tree_sample(g, log_p, (rws_caps){20, 200}, &random, &tree, &sentence);
    if (rws__parse_tree_text(g, &tree, text, sizeof text) < 3) abort();
    rws__sequence_release(&tree);
    rws__sequence_release(&sentence);
    free(log_p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error    err = {""};
    rws_grammar *g;
    if (rws__grammar_parse((const char *)data, size, "fuzz", &g, &err) == RWS_OK) {
        check(g);
        rws__grammar_free(g);
        return 0;
    }
    const size_t length = strlen(err.text);
    if (g || length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"")) abort();
    return 0;
}
