/* sentences.h - sentences of a grammar as text: one on each line, words between blanks.
 *
 * The reader turns lines into tokens and refuses words that the grammar does not have; the writer turns drawn sentences
 * into lines. A corpus has sentences to learn from and sentences to test with. Whether the grammar derives a sentence
 * is not checked here.
 *
 *     file of sentences -> [sentences] -> pcfg          grammar -> [sentences] -> file of sentences
 *
 * Lines without words are ignored. A file has at most 256 MiB.
 */
#ifndef RWS_MODELS_CORPORA_SENTENCES_H
#define RWS_MODELS_CORPORA_SENTENCES_H

#include "models/corpora/grammar.h"

enum { RWS_MAX_SENTENCES_BYTES = 1 << 28 };

/* Sentence i is tokens[start[i]] … tokens[start[i + 1] - 1]. A zeroed one is valid and empty. */
typedef struct {
    int  n;
    int *start; /* n + 1 */
    int *tokens;
    int  n_skipped; /* sentences left out because of unknown words */
} rws_sentences;

void rws__sentences_release(rws_sentences *s);

typedef enum { RWS_UNKNOWN_REFUSE, RWS_UNKNOWN_SKIP } rws_unknown;

/* Reads `length` bytes of text; `name` stands for them in sentences. *out is empty on failure: RWS_BAD_INPUT with a
 * sentence that names the line with an unknown word (unless such sentences are skipped), with more than max_words words
 * or with a control character, or that says that no sentence is left; or RWS_NO_MEMORY. */
rws_status rws__sentences_parse(const rws_grammar *g, const char *text, size_t length, const char *name,
                                rws_unknown unknown, int max_words, rws_sentences *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file. */
rws_status rws__sentences_read(const rws_grammar *g, const char *path, rws_unknown unknown, int max_words,
                               rws_sentences *out, rws_error *err) __attribute__((warn_unused_result));

/* The tokens of one sentence that a user typed: at most max_words; *n is their number. */
rws_status rws__sentences_type(const rws_grammar *g, const char *text, int max_words, int *tokens, int *n,
                               rws_error *err) __attribute__((warn_unused_result));

/* Sentences for training and for tests. Without a file of test sentences, every tenth training sentence is held out for
 * tests; with fewer than ten sentences, all serve both. */
typedef struct {
    rws_sentences file[2]; /* by rws_split */
    int           n[2];
    bool          held_out; /* test sentences come from file[RWS_TRAIN] */
} rws_corpus;

/* Either path may be NULL; without `train` the corpus has no training sentences. Fails like rws__sentences_read; *out is
 * then empty. */
rws_status rws__corpus_read(const rws_grammar *g, const char *train, const char *test, rws_unknown unknown,
                            int max_words, rws_corpus *out, rws_error *err) __attribute__((warn_unused_result));
void       rws__corpus_release(rws_corpus *c);

/* Sentence i of 0 … n[split] - 1, and the number of its words. */
const int *rws__corpus_sentence(const rws_corpus *c, rws_split split, int i, int *n_words);

/* RWS_BAD_INPUT if the expected length of a sentence is infinite by the grammar's own probabilities, which it must
 * have: drawing sentences would need any amount of memory. */
rws_status rws__sentences_finite(const rws_grammar *g, rws_error *err) __attribute__((warn_unused_result));

/* n sentences drawn by the grammar's own probabilities, as lines of text; *text is the caller's to free. RWS_BAD_INPUT
 * if the grammar has no probabilities of its own, or if the expected length of a sentence is infinite. */
rws_status rws__sentences_draw(const rws_grammar *g, int n, rws_random *random, char **text, size_t *length,
                               rws_error *err) __attribute__((warn_unused_result));

#endif
