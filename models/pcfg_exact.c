/* pcfg_exact.c - exact answers about a grammar: its distance from the truth, and by a parser log p(x), the posterior
 * over trees and expectation-maximisation. */
#include "models/pcfg.h"

#include "models/corpora/parse.h"

#include <math.h>
#include <stdlib.h>

/* ---- the distance from the truth */

static void log_softmax(const float *logits, int n, double *out)
{
    double top = -INFINITY, total = 0;
    for (int i = 0; i < n; i++) out[i] = (double)logits[i];
    for (int i = 0; i < n; i++) top = fmax(top, out[i]);
    for (int i = 0; i < n; i++) total += exp(out[i] - top);
    for (int i = 0; i < n; i++) out[i] = out[i] - top - log(total);
}

double *rws__pcfg_log_p(const rws_pcfg *m)
{
    double *log_p = malloc((size_t)m->g->n_productions * sizeof *log_p);
    for (int a = 0; a < m->g->n_nonterminals && log_p; a++)
        log_softmax(rws_param_values(m->theta[a]), rws__pcfg_rules(m->g, a), log_p + m->g->first[a]);
    return log_p;
}

static rws_status no_log_p(rws_error *err)
{
    return rws_no_memory(err, "the probabilities of a grammar");
}

/* KL(truth || theta), mean over the non-terminals. */
static rws_status p_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e;
    const rws_pcfg *m = state;
    *value = m->log_truth ? 0 : NAN;
    if (!m->log_truth) return RWS_OK;
    double *log_p = rws__pcfg_log_p(m);
    if (!log_p) return no_log_p(err);
    for (int i = 0; i < m->g->n_productions; i++) {
        const double p = m->g->productions[i].p;
        *value += p * (log(p) - log_p[i]) / m->g->n_nonterminals;
    }
    free(log_p);
    return RWS_OK;
}

#define DREAMS 100

static rws_status q_error(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const rws_pcfg *m = state;
    *value = NAN;
    if (!m->log_truth) return RWS_OK;
    const rws_status status = rws_eval_dream(e, rws__pcfg_truth, DREAMS, value, err);
    *value = -*value;
    return status;
}

#define LONGEST 100 /* most words of a sentence that is parsed exactly */

/* log p(x) by the exact parser, mean over the test sentences that the grammar derives. */
static rws_status log_p_exact(rws_eval *e, const void *state, double *value, rws_error *err)
{
    const rws_pcfg *m = state;
    const float    *x = rws_eval_field(e, RWS_PCFG_SENTENCE);
    double         *log_p = rws__pcfg_log_p(m), total = 0, log_x;
    int             n = 0, words[LONGEST];
    rws_status      status = RWS_OK;
    if (!log_p) return no_log_p(err);
    for (int d = 0; d < rws_eval_size(e) && status == RWS_OK; d++, x += 1 + m->max_words) {
        if (x[0] > LONGEST) { /* no mean at all, because the mean over the short sentences alone would mislead */
            n = 0;
            break;
        }
        status = rws_eval_check_stop(e, err);
        if (status == RWS_OK) status = rws__parse_log_p(m->g, log_p, words, rws__pcfg_words(x, words), &log_x, err);
        if (status == RWS_OK && log_x > -INFINITY) total += log_x, n++;
    }
    *value = n ? total / n : NAN;
    free(log_p);
    return status;
}

static double truncated(const rws_particle *p, const void *state)
{
    (void)state;
    return (double)rws_particle_report(p, "truncated", 0)[0];
}

const rws_metric rws_pcfg_metrics[] = {
    {"p_error", "KL from the true to the learned rule probabilities, mean over the non-terminals", p_error},
    {"q_error", "-log q(z|x), mean over 100 trees and sentences of the true grammar", q_error},
    {"log_p_exact", "log p(x) by an exact parser, mean over the test sentences if none has more than 100 words",
     log_p_exact},
    {"truncated", "share of the guide's trees that meet a cap", .guide = truncated},
    {0},
};

/* ---- the posterior */

#define MAX_TREES 10000

/* Tells the probability of each tree, which particles report under the name "tree". */
static rws_status tell_trees(const rws_pcfg *m, const rws_parses *parses, rws_teller *tell_one, void *context,
                             rws_error *err)
{
    bool done = true;
    for (int i = 0; i < parses->n_trees && done; i++) {
        const size_t length = rws__parse_tree_text(m->g, &parses->trees[i], NULL, 0);
        char        *text = malloc(length + 1);
        done = text && length > 0 && rws__parse_tree_text(m->g, &parses->trees[i], text, length + 1) == length;
        if (done) tell_one(context, "tree", text, parses->posterior[i]);
        free(text);
    }
    return done ? RWS_OK : rws_no_memory(err, "the text of a tree");
}

rws_status rws__pcfg_posterior(const void *state, const float *const *fields, rws_teller *tell_one, void *context,
                               double *log_evidence, rws_error *err)
{
    const rws_pcfg *m = state;
    rws_parses      parses;
    *log_evidence = NAN;
    if (!m->hard || fields[0][0] > LONGEST) return RWS_OK;
    int       words[LONGEST];
    const int n = rws__pcfg_words(fields[0], words);
    double   *log_p = rws__pcfg_log_p(m);
    if (!log_p) return no_log_p(err);
    rws_status status = rws__parses_init(&parses, m->g, log_p, words, n, MAX_TREES, err);
    if (status == RWS_OK && parses.n_all <= MAX_TREES) {
        *log_evidence = parses.log_evidence;
        status = tell_trees(m, &parses, tell_one, context, err);
    }
    rws__parses_release(&parses);
    free(log_p);
    return status;
}

/* ---- expectation-maximisation */

#define LEAST 1e-30 /* least probability of a rule, so that its log is finite */

/* Adds to `counts` how often each production is expected to be used in a sentence. `more` is scratch memory for as many
 * numbers. */
static rws_status add_counts(const rws_pcfg *m, const double *log_p, const int *words, int n_words, double *counts,
                             double *more, rws_error *err)
{
    rws_parse_chart *chart;
    RWS_TRY(rws__parse_chart_new(m->g, RWS_PARSE_SUM, log_p, words, n_words, &chart, err));
    rws_status status = RWS_OK;
    if (rws__parse_chart_total(chart) > -INFINITY) {
        status = rws__parse_chart_expected_counts(chart, more, err);
        for (int i = 0; i < m->g->n_productions && status == RWS_OK; i++) counts[i] += more[i];
    }
    rws__parse_chart_free(chart);
    return status;
}

rws_status rws__pcfg_em(const void *state, int n_fresh, rws_random *random, rws_error *err)
{
    const rws_pcfg    *m = state;
    const rws_grammar *g = m->g;
    rws_pcfg_source    s;
    RWS_TRY(rws__pcfg_source_open(&s, m, RWS_TRAIN, err));
    const size_t n = (size_t)g->n_productions;
    double      *log_p = rws__pcfg_log_p(m), *counts = calloc(2 * n, sizeof *counts), all = 0;
    rws_status   status = log_p && counts ? RWS_OK : no_log_p(err);
    for (int i = 0; i < (s.n_file ? s.n_file : n_fresh) && status == RWS_OK; i++) {
        int        n_words;
        const int *words = rws__pcfg_source_take(&s, i, random, &n_words);
        status =
            words ? add_counts(m, log_p, words, n_words, counts, counts + n, err) : rws_no_memory(err, "a sentence");
    }
    for (int a = 0; a < g->n_nonterminals && status == RWS_OK; a++) {
        float *logits = rws_param_values(m->theta[a]);
        double total = 0;
        for (int i = g->first[a]; i < g->first[a + 1]; i++) total += counts[i];
        for (int i = 0; i < rws__pcfg_rules(g, a) && total > 0; i++)
            logits[i] = (float)log(fmax(counts[g->first[a] + i] / total, LEAST));
        all += total;
    }
    if (status == RWS_OK && all == 0)
        status = rws_fail(err, RWS_BAD_INPUT, "The grammar derives none of the sentences to learn from.");
    free(counts);
    free(log_p);
    rws__pcfg_source_close(&s);
    return status;
}
