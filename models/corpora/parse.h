/* parse.h - exact answers about a sentence under a grammar: its probability, its trees, its expected rule counts.
 *
 * A chart holds one number for every non-terminal and every stretch of the sentence: the sum over the trees of that
 * stretch, or their number. Samplers and learners are tested against it; it takes O(n^3) time
 * and is not made for speed beyond that.
 *
 *     grammar, log_p, sentence -> [chart] -> log p(x), expected counts, trees
 *
 * log_p has one number per production of the grammar and need not be normalised; -inf is a rule that is never used, NaN
 * and +inf are refused. Sentences are arrays of tokens; one that the grammar cannot derive, the empty one or one with
 * RWS_OOV among them, has the sum -inf and no trees.
 */
#ifndef RWS_MODELS_CORPORA_PARSE_H
#define RWS_MODELS_CORPORA_PARSE_H

#include "models/corpora/grammar.h"
#include "models/corpora/parse_tree.h"

typedef enum {
    RWS_PARSE_SUM,   /* log of the sum of the probabilities of all trees: inside */
    RWS_PARSE_COUNT, /* number of trees whose probability is not 0; exact below 2^53 */
} rws_parse_kind;

typedef struct rws_parse_chart rws_parse_chart;

/* Fills a chart, which borrows the grammar but neither log_p nor the tokens. On success *out is the caller's to free.
 * RWS_BROKEN if log_p has a NaN or +inf, RWS_BAD_INPUT if the chart would be larger than 1 GiB, RWS_NO_MEMORY. log_p
 * may be NULL, for the grammar's own probabilities. */
rws_status rws__parse_chart_new(const rws_grammar *g, rws_parse_kind kind, const double *log_p, const int *tokens,
                                int n, rws_parse_chart **out, rws_error *err) __attribute__((warn_unused_result));
void       rws__parse_chart_free(rws_parse_chart *c); /* NULL is fine */

/* The number of the start symbol over the whole sentence. */
double rws__parse_chart_total(const rws_parse_chart *c);

/* The functions below fail with RWS_NO_MEMORY only. */

/* The expected number of uses of each production, given the sentence: the gradient of log p(x) with respect to log_p.
 * The chart must be a SUM chart of a possible sentence. */
rws_status rws__parse_chart_expected_counts(const rws_parse_chart *c, double *counts, rws_error *err)
    __attribute__((warn_unused_result));

/* log p(x). */
rws_status rws__parse_log_p(const rws_grammar *g, const double *log_p, const int *tokens, int n, double *log_evidence,
                            rws_error *err) __attribute__((warn_unused_result));

/* The trees of a sentence with their probabilities given the sentence. */
typedef struct {
    double        log_evidence;
    double        n_all;   /* trees of the sentence */
    int           n_trees; /* trees in this list */
    rws_sequence *trees;
    double       *posterior;
} rws_parses;

/* Fills *out with the first max_trees trees in a fixed order; none if the sentence has 2^53 or
 * more. The caller releases *out, also after a failure. */
rws_status rws__parses_init(rws_parses *out, const rws_grammar *g, const double *log_p, const int *tokens, int n,
                            int max_trees, rws_error *err) __attribute__((warn_unused_result));
void       rws__parses_release(rws_parses *p);

#endif
