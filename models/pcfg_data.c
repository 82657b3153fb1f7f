/* pcfg_data.c - the grammar's sentences: from a file, drawn from the grammar, or typed by a user. */
#include "models/pcfg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rws__pcfg_put(const rws_pcfg *m, const int *tokens, int n, float *x)
{
    memset(x, 0, (size_t)(1 + m->max_words) * sizeof *x);
    x[0] = (float)n;
    for (int i = 0; i < n; i++) x[1 + i] = (float)tokens[i];
}

int rws__pcfg_words(const float *datum, int *words)
{
    const int n = (int)datum[0];
    for (int i = 0; i < n; i++) words[i] = (int)datum[1 + i];
    return n;
}

/* ---- sources of sentences */

/* The first call reads the files of sentences. */
rws_status rws__pcfg_source_open(rws_pcfg_source *s, const rws_pcfg *m, rws_split split, rws_error *err)
{
    *s = (rws_pcfg_source){.m = m, .split = split};
    if (!m->corpus->n[RWS_TRAIN] && !m->corpus->n[RWS_TEST])
        RWS_TRY(
            rws__corpus_read(m->g, m->path[RWS_TRAIN], m->path[RWS_TEST], m->unknown, m->max_words, m->corpus, err));
    s->n_file = m->corpus->n[split];
    if (!s->n_file && !m->log_truth)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The grammar gives no probabilities to draw sentences by; give it some, or sentences (`data=FILE`).");
    s->log_p = malloc((size_t)m->g->n_productions * sizeof *s->log_p);
    if (!s->log_p) return rws_no_memory(err, "the probabilities of a grammar");
    rws__grammar_log_p(m->g, s->log_p);
    return RWS_OK;
}

void rws__pcfg_source_close(rws_pcfg_source *s)
{
    free(s->log_p);
    rws__sequence_release(&s->tree);
    rws__sequence_release(&s->words);
}

const int *rws__pcfg_source_take(rws_pcfg_source *s, int i, rws_random *random, int *n_words)
{
    if (s->n_file) return rws__corpus_sentence(s->m->corpus, s->split, i, n_words);
    s->cut = rws__parse_tree_sample(s->m->g, s->log_p, s->m->caps, random, &s->tree, &s->words);
    if (s->cut == RWS_TREE_NO_MEMORY) return NULL;
    *n_words = s->words.n;
    return s->words.at;
}

/* ---- labels */

/* Whether the tree of sentence i of training is given: every tenth of them, for a share of 0.1. */
static bool is_labelled(const rws_pcfg *m, uint64_t i)
{
    return floor((double)(i + 1) * m->labelled) > floor((double)i * m->labelled);
}

/* Appends a production to the label of its non-terminal. */
static void append(const rws_pcfg *m, float *const *fields, int datum, int production)
{
    const int a = m->g->productions[production].left;
    if (!m->label[a]) return;
    float *row = fields[m->label[a]] + (size_t)datum * (size_t)(1 + m->caps.max_nodes);
    row[1 + (int)row[0]] = (float)(production - m->g->first[a]);
    row[0]++;
}

/* The depths of the nodes of a tree, a list of productions in pre-order. Returns the largest; -1 without memory. */
static int find_depths(const rws_grammar *g, const rws_sequence *tree, int *depth)
{
    int *left = malloc(((size_t)tree->n + 1) * sizeof *left), n = 0, deepest = 0; /* children to come, by depth */
    if (!left) return -1;
    for (int i = 0; i < tree->n; i++) {
        const rws_production *p = &g->productions[tree->at[i]];
        int                   children = 0;
        for (int k = 0; k < p->n_right; k++) children += !p->right[k].word;
        depth[i] = n;
        deepest = n > deepest ? n : deepest;
        if (n) left[n - 1]--;
        left[n++] = children;
        while (n && left[n - 1] == 0) n--;
    }
    free(left);
    return deepest;
}

/* Writes the tree of a datum to its labels, in the order in which the guide visits: by depth or, in a sequential
 * derivation, in pre-order. A tree that met the caps stays unknown. */
static rws_status put_tree(const rws_pcfg *m, const rws_pcfg_source *s, float *const *fields, int datum, rws_error *err)
{
    int *depth = malloc(((size_t)s->tree.n + 1) * sizeof *depth);
    if (!depth) return rws_no_memory(err, "the labels of a tree");
    const int deepest = m->sequential ? 0 : find_depths(m->g, &s->tree, depth);
    for (int d = 0; d <= deepest; d++)
        for (int i = 0; i < s->tree.n; i++)
            if (m->sequential || depth[i] == d) append(m, fields, datum, s->tree.at[i]);
    free(depth);
    return deepest >= 0 ? RWS_OK : rws_no_memory(err, "the labels of a tree");
}

static rws_status put_labels(const rws_pcfg *m, const rws_pcfg_source *s, uint64_t i, float *const *fields, int datum,
                             rws_error *err)
{
    for (int a = 0; a < m->g->n_nonterminals; a++)
        if (m->label[a]) fields[m->label[a]][(size_t)datum * (size_t)(1 + m->caps.max_nodes)] = 0;
    const bool known = s->split == RWS_TRAIN && is_labelled(m, i) && s->cut == RWS_TREE_WHOLE;
    return known ? put_tree(m, s, fields, datum, err) : RWS_OK;
}

/* ---- data */

/* Training sentences of a file are drawn uniformly; test sentences come in order, and again from the first after the
 * last. */
rws_status rws__pcfg_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err)
{
    const rws_pcfg *m = state;
    rws_pcfg_source s;
    RWS_TRY(rws__pcfg_source_open(&s, m, split, err));
    rws_status status = RWS_OK;
    for (int d = 0; d < n && status == RWS_OK; d++) {
        int i = 0, n_words;
        if (s.n_file && split == RWS_TRAIN) i = (int)rws_random_below(random, (uint32_t)s.n_file);
        else if (s.n_file) i = (int)((first + (uint64_t)d) % (uint64_t)s.n_file);
        const int *words = rws__pcfg_source_take(&s, i, random, &n_words);
        if (words) rws__pcfg_put(m, words, n_words, fields[0] + (size_t)d * (size_t)(1 + m->max_words));
        else status = rws_no_memory(err, "a sentence");
        if (m->number) fields[m->number][d] = split == RWS_TRAIN ? (float)i : NAN;
        if (status == RWS_OK && m->labelled > 0) status = put_labels(m, &s, first + (uint64_t)d, fields, d, err);
    }
    rws__pcfg_source_close(&s);
    return status;
}

rws_status rws__pcfg_read(const void *state, const char *text, float *const *fields, rws_error *err)
{
    const rws_pcfg *m = state;
    int            *words = malloc((size_t)m->max_words * sizeof *words), n;
    if (!words) return rws_no_memory(err, "a sentence");
    const rws_status status = rws__sentences_type(m->g, text, m->max_words, words, &n, err);
    if (status == RWS_OK) rws__pcfg_put(m, words, n, fields[0]);
    free(words);
    return status;
}
