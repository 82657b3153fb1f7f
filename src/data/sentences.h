/* sentences.h - sentences of a grammar as text: one on each line, words between blanks.
 *
 * The reader turns lines into tokens and refuses what the grammar has no word for; the writer does the reverse for
 * sentences that are drawn. A corpus has some to learn from and some to test with. Nobody asks here whether the grammar
 * derives a sentence.
 *
 *     file of sentences -> [sentences] -> pcfg          grammar -> [sentences] -> file of sentences
 *
 * Lines without words are passed over. A file has at most 256 MiB.
 */
#ifndef RWS_DATA_SENTENCES_H
#define RWS_DATA_SENTENCES_H

#include "data/grammar.h"

enum { RWS_SENTENCES_MAX_BYTES = 1 << 28 };

/* Sentence i is tokens[start[i]] … tokens[start[i + 1] - 1]. A zeroed one is valid and empty. */
typedef struct {
    int  n;
    int *start; /* n + 1 */
    int *tokens;
    int  n_skipped; /* left out for their unknown words */
} rws_sentences;

void rws_sentences_release(rws_sentences *s);

typedef enum { RWS_UNKNOWN_REFUSE, RWS_UNKNOWN_SKIP } rws_unknown;

/* Reads `length` bytes of text; `name` stands for them in sentences. RWS_BAD_INPUT, *out then empty, names the line
 * where a word is unknown (unless its sentence is to be skipped), where there are more than max_words of them or a
 * control character; or says that no sentence is left. */
rws_status rws_sentences_parse(const rws_grammar *g, const char *text, size_t length, const char *name,
                               rws_unknown unknown, int max_words, rws_sentences *out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file. */
rws_status rws_sentences_read(const rws_grammar *g, const char *path, rws_unknown unknown, int max_words,
                              rws_sentences *out, rws_error *err) __attribute__((warn_unused_result));

/* The tokens of one sentence that somebody typed: at most max_words, whose number is *n. */
rws_status rws_sentences_type(const rws_grammar *g, const char *text, int max_words, int *tokens, int *n,
                              rws_error *err) __attribute__((warn_unused_result));

/* Sentences by their use. Without a file for tests these are every tenth of the others, which are not learned from; of
 * fewer than ten all serve both. */
typedef struct {
    rws_sentences file[2]; /* by rws_split */
    int           n[2];
    bool          held_out; /* a tenth of file[RWS_TRAIN] is for tests */
} rws_corpus;

/* Either path may be NULL; a corpus without file[RWS_TRAIN] has nothing to learn from. Fails like rws_sentences_read,
 * *out then empty. */
rws_status rws_corpus_read(const rws_grammar *g, const char *train, const char *test, rws_unknown unknown,
                           int max_words, rws_corpus *out, rws_error *err) __attribute__((warn_unused_result));
void       rws_corpus_release(rws_corpus *c);

/* Sentence i of 0 … n[split] - 1, and how many words it has. */
const int *rws_corpus_sentence(const rws_corpus *c, rws_split split, int i, int *n_words);

/* n sentences drawn by the grammar's own probabilities, as lines of text; *text is the caller's to free. RWS_BAD_INPUT
 * if the grammar has no probabilities of its own, or such that a sentence has no finite expected length. */
rws_status rws_sentences_draw(const rws_grammar *g, int n, rws_random *random, char **text, size_t *length,
                              rws_error *err) __attribute__((warn_unused_result));

#endif
