/* pcfg_snapshots.c - the probabilities of NP's rules, and the trees that the guide draws most often for an ambiguous
 * sentence. */
#include "models/pcfg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "astronomers saw stars with telescopes"
#define GUESSES 1000
#define BEST 5

static rws_status measure_rules(rws_eval *e, const rws_pcfg *m, bool truth, rws_error *err)
{
    const int a = rws__grammar_nonterminal(m->g, "NP"), n = a < 0 ? 0 : rws__pcfg_rules(m->g, a);
    if (n == 0 || (truth && !m->log_truth)) return RWS_OK;
    double *log_p = rws__pcfg_log_p(m);
    if (!log_p) return rws_no_memory(err, "the probabilities of a grammar");
    for (int i = 0; i < n; i++) {
        const rws_production *p = &m->g->productions[m->g->first[a] + i];
        char                  label[256] = "";
        for (int k = 0; k < p->n_right; k++) {
            const rws_symbol s = p->right[k];
            const char      *name = s.word ? m->g->terminals[s.id] : m->g->nonterminals[s.id];
            if (k) strncat(label, " ", sizeof label - strlen(label) - 1);
            strncat(label, name, sizeof label - strlen(label) - 1);
        }
        rws_eval_show(e, label, truth ? p->p : exp(log_p[m->g->first[a] + i]));
    }
    free(log_p);
    return RWS_OK;
}

static rws_status measure_np(rws_eval *e, const void *state, rws_error *err)
{
    return measure_rules(e, state, false, err);
}

static rws_status measure_true_np(rws_eval *e, const void *state, rws_error *err)
{
    return measure_rules(e, state, true, err);
}

/* Different trees and the number of draws of each. */
typedef struct {
    struct {
        char *text;
        int   count;
    } * list;
    int  n;
    bool starved; /* there was no memory for a text */
} tally;

static void count_tree(const rws_particle *p, int count, void *context)
{
    tally      *t = context;
    const char *text = rws_particle_text(p, "tree", 0);
    int         i = 0;
    while (i < t->n && strcmp(t->list[i].text, text) != 0) i++;
    if (i == t->n) {
        char *copy = strdup(text);
        if (!copy) t->starved = true;
        if (!copy) return;
        t->list[t->n++].text = copy;
    }
    t->list[i].count += count;
}

static rws_status measure_trees(rws_eval *e, const void *state, rws_error *err)
{
    const rws_pcfg *m = state;
    const int   n_labels = m->g->n_nonterminals + 1; /* at most: productions of each, and the number of the sentence */
    const float no_number = NAN;
    int         words[8];
    const int   n = rws__grammar_tokens(m->g, EXAMPLE, words, 8);
    float      *x = calloc((size_t)(1 + m->max_words), sizeof *x);
    float      *unlabelled = calloc((size_t)(1 + m->caps.max_nodes), sizeof *unlabelled); /* a series without items */
    const float **fields = calloc((size_t)(1 + n_labels), sizeof *fields);
    tally         t = {.list = calloc(GUESSES, sizeof *t.list)};
    bool          known = n <= m->max_words;
    rws_status    status = x && unlabelled && fields && t.list ? RWS_OK : rws_no_memory(err, "the trees of a sentence");
    for (int i = 0; i < n; i++) known = known && words[i] != RWS_OOV;
    if (known && status == RWS_OK) {
        rws__pcfg_put(m, words, n, x);
        fields[0] = x;
        for (int i = 1; i <= n_labels; i++) fields[i] = unlabelled;
        if (m->number) fields[m->number] = &no_number;
        status = rws_eval_guess(e, fields, GUESSES, count_tree, &t, err);
    }
    if (t.starved) status = rws_no_memory(err, "the trees of a sentence");
    for (int k = 0; k < BEST && k < t.n && status == RWS_OK; k++) {
        int best = 0;
        for (int i = 1; i < t.n; i++)
            if (t.list[i].count > t.list[best].count) best = i;
        rws_eval_show(e, t.list[best].text, (double)t.list[best].count / GUESSES);
        t.list[best].count = 0;
    }
    for (int i = 0; i < t.n; i++) free(t.list[i].text);
    free(t.list);
    free(fields);
    free(unlabelled);
    free(x);
    return status;
}

const rws_snapshot rws_pcfg_snapshots[] = {
    {"np", "probabilities of the rules of NP", measure_np},
    {"true_np", "the same in the true grammar", measure_true_np},
    {"trees", "the trees that the guide draws most often for \"" EXAMPLE "\", and how often", measure_trees},
    {0},
};
