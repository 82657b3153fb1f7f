/* pcfg_data.c - the grammar's sentences: from a file, drawn from the grammar, or typed by a user. */
#include "model/pcfg.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void rws_pcfg_put(const rws_pcfg *m, const int *tokens, int n, float *x)
{
    memset(x, 0, (size_t)(1 + m->room) * sizeof *x);
    x[0] = (float)n;
    for (int i = 0; i < n; i++) x[1 + i] = (float)tokens[i];
}

int rws_pcfg_words(const float *datum, int *words)
{
    const int n = (int)datum[0];
    for (int i = 0; i < n; i++) words[i] = (int)datum[1 + i];
    return n;
}

/* ---- sources of sentences */

/* The first call reads the files of sentences. */
rws_status rws_pcfg_source_open(rws_pcfg_source *s, const rws_pcfg *m, rws_split split, rws_error *err)
{
    *s = (rws_pcfg_source){.m = m, .split = split};
    if (!m->corpus->n[RWS_TRAIN] && !m->corpus->n[RWS_TEST])
        RWS_TRY(rws_corpus_read(m->g, m->path[RWS_TRAIN], m->path[RWS_TEST], m->unknown, m->room, m->corpus, err));
    s->n_file = m->corpus->n[split];
    if (!s->n_file && !m->log_truth)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The grammar gives no probabilities to draw sentences by; give it some, or sentences (--data).");
    s->log_p = malloc((size_t)m->g->n_productions * sizeof *s->log_p);
    if (!s->log_p) return rws_no_memory(err, "the probabilities of a grammar");
    rws_grammar_log_p(m->g, s->log_p);
    return RWS_OK;
}

void rws_pcfg_source_close(rws_pcfg_source *s)
{
    free(s->log_p);
    rws_sequence_release(&s->tree);
    rws_sequence_release(&s->words);
}

const int *rws_pcfg_source_take(rws_pcfg_source *s, int i, rws_random *random, int *n_words)
{
    if (s->n_file) return rws_corpus_sentence(s->m->corpus, s->split, i, n_words);
    if (rws_tree_sample(s->m->g, s->log_p, s->m->caps, random, &s->tree, &s->words) == RWS_TREE_NO_MEMORY) return NULL;
    *n_words = s->words.n;
    return s->words.at;
}

/* Training sentences of a file are drawn uniformly; test sentences come in order, and again from the first after the
 * last. */
rws_status rws_pcfg_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                         float *const *fields, rws_error *err)
{
    const rws_pcfg *m = state;
    rws_pcfg_source s;
    RWS_TRY(rws_pcfg_source_open(&s, m, split, err));
    rws_status status = RWS_OK;
    for (int d = 0; d < n && status == RWS_OK; d++) {
        int i = 0, n_words;
        if (s.n_file && split == RWS_TRAIN) i = (int)rws_random_below(random, (uint32_t)s.n_file);
        else if (s.n_file) i = (int)((first + (uint64_t)d) % (uint64_t)s.n_file);
        const int *words = rws_pcfg_source_take(&s, i, random, &n_words);
        if (words) rws_pcfg_put(m, words, n_words, fields[0] + (size_t)d * (size_t)(1 + m->room));
        else status = rws_no_memory(err, "a sentence");
    }
    rws_pcfg_source_close(&s);
    return status;
}

rws_status rws_pcfg_read(const void *state, const char *text, float *const *fields, rws_error *err)
{
    const rws_pcfg *m = state;
    int            *words = malloc((size_t)m->room * sizeof *words), n;
    if (!words) return rws_no_memory(err, "a sentence");
    const rws_status status = rws_sentences_type(m->g, text, m->room, words, &n, err);
    if (status == RWS_OK) rws_pcfg_put(m, words, n, fields[0]);
    free(words);
    return status;
}
