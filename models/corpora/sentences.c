#include "models/corpora/sentences.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "models/corpora/parse_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__sentences_release(rws_sentences *s)
{
    free(s->start);
    free(s->tokens);
    *s = (rws_sentences){0};
}

/* ---- reading */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

enum { WORD_SHOWN = 80, TEXT_SHOWN = 60 }; /* bytes that an error sentence shows of a word and of a typed text */

/* The first bytes of a text for an error sentence: at most `most`, without a cut UTF-8 character at the end. */
static rws_quoted beginning(const char *text, size_t length, size_t most)
{
    size_t n = length < most ? length : most;
    while (n < length && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
    return rws__quote_prefix(text, n, RWS_MAX_QUOTED);
}

/* The place of a mistake in an error sentence. */
typedef struct {
    char text[RWS_MAX_QUOTED + 40];
} place;

/* The line of a file; with line 0, `name` is a text that a user typed and stands for itself. */
static place place_of(const char *name, int line)
{
    const size_t length = strlen(name);
    place        p;
    if (line) snprintf(p.text, sizeof p.text, "\"%s\", line %d", rws__quote(name).text, line);
    else
        snprintf(p.text, sizeof p.text, "\"%s%s\"", beginning(name, length, TEXT_SHOWN).text,
                 length > TEXT_SHOWN ? " ..." : "");
    return p;
}

typedef enum { TAKEN, SKIPPED, WRONG } verdict;

/* Writes the tokens of a line to tokens[*n] and after, and moves *n behind them; a skipped line leaves *n as it was.
 * `name` and `line` are those of place_of. */
static verdict read_line(const rws_grammar *g, const char *at, const char *end, const char *name, int line,
                         rws_unknown unknown, int max_words, int *tokens, int *n, rws_error *err)
{
    const int from = *n;
    verdict   is = TAKEN;
    for (;;) {
        while (at < end && is_blank(*at)) at++;
        if (at == end) break;
        const char *word = at;
        for (; at < end && !is_blank(*at); at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7f) {
                rws_fail(err, RWS_BAD_INPUT, "%s: there is a control character (byte %d) in the text.",
                         place_of(name, line).text, (unsigned char)*at);
                return WRONG;
            }
        if (*n - from == max_words) {
            rws_fail(err, RWS_BAD_INPUT, "%s: the sentence has more than %d words.", place_of(name, line).text,
                     max_words);
            return WRONG;
        }
        tokens[*n] = rws__grammar_word(g, word, (size_t)(at - word));
        if (tokens[*n] == RWS_OOV && unknown == RWS_UNKNOWN_REFUSE) {
            rws_fail(err, RWS_BAD_INPUT, "%s: the grammar has no word \"%s\".", place_of(name, line).text,
                     beginning(word, (size_t)(at - word), WORD_SHOWN).text);
            return WRONG;
        }
        if (tokens[*n] == RWS_OOV) is = SKIPPED;
        ++*n;
    }
    if (is == SKIPPED) *n = from;
    return is;
}

rws_status rws__sentences_parse(const rws_grammar *g, const char *text, size_t length, const char *name,
                                rws_unknown unknown, int max_words, rws_sentences *out, rws_error *err)
{
    *out = (rws_sentences){0};
    if (length > RWS_MAX_SENTENCES_BYTES)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is longer than %d bytes.", rws__quote(name).text,
                        RWS_MAX_SENTENCES_BYTES);
    /* A word and the blank behind it are two bytes, a sentence and the end of its line too. */
    rws_sentences s = {.start = malloc((length / 2 + 2) * sizeof *s.start),
                       .tokens = malloc((length / 2 + 1) * sizeof *s.tokens)};
    if (!s.start || !s.tokens) {
        rws__sentences_release(&s);
        return rws_no_memory(err, "a file of sentences");
    }
    const char *at = text, *const end = text + length;
    int n_tokens = s.start[0] = 0;
    for (int line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        const verdict is = read_line(g, at, stop, name, line, unknown, max_words, s.tokens, &n_tokens, err);
        if (is == WRONG) {
            rws__sentences_release(&s);
            return RWS_BAD_INPUT;
        }
        s.n_skipped += is == SKIPPED;
        if (n_tokens > s.start[s.n]) s.start[++s.n] = n_tokens;
        at = stop + (stop < end);
    }
    if (s.n == 0) {
        const int n_skipped = s.n_skipped;
        rws__sentences_release(&s);
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has no sentences%s.", rws__quote(name).text,
                        n_skipped ? " except some with words that the grammar does not have" : "");
    }
    *out = s;
    return RWS_OK;
}

rws_status rws__sentences_read(const rws_grammar *g, const char *path, rws_unknown unknown, int max_words,
                               rws_sentences *out, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    *out = (rws_sentences){0};
    RWS_TRY(rws__file_read(path, RWS_MAX_SENTENCES_BYTES, &bytes, &size, err));
    const rws_status status = rws__sentences_parse(g, (const char *)bytes, size, path, unknown, max_words, out, err);
    free(bytes);
    return status;
}

rws_status rws__sentences_type(const rws_grammar *g, const char *text, int max_words, int *tokens, int *n,
                               rws_error *err)
{
    *n = 0;
    if (read_line(g, text, text + strlen(text), text, 0, RWS_UNKNOWN_REFUSE, max_words, tokens, n, err) == WRONG)
        return RWS_BAD_INPUT;
    if (*n == 0) return rws_fail(err, RWS_BAD_INPUT, "%s: there is no word in this sentence.", place_of(text, 0).text);
    return RWS_OK;
}

/* ---- a corpus */

rws_status rws__corpus_read(const rws_grammar *g, const char *train, const char *test, rws_unknown unknown,
                            int max_words, rws_corpus *out, rws_error *err)
{
    const char *const paths[] = {[RWS_TRAIN] = train, [RWS_TEST] = test};
    *out = (rws_corpus){.held_out = train && !test};
    for (int split = 0; split < 2; split++) {
        if (!paths[split]) continue;
        const rws_status status = rws__sentences_read(g, paths[split], unknown, max_words, &out->file[split], err);
        if (status != RWS_OK) {
            rws__corpus_release(out);
            return status;
        }
        out->n[split] = out->file[split].n;
    }
    const int tenth = out->n[RWS_TRAIN] / 10;
    if (out->held_out && tenth) out->n[RWS_TRAIN] -= out->n[RWS_TEST] = tenth;
    else if (out->held_out) out->n[RWS_TEST] = out->n[RWS_TRAIN];
    return RWS_OK;
}

void rws__corpus_release(rws_corpus *c)
{
    for (int split = 0; split < 2; split++) rws__sentences_release(&c->file[split]);
    *c = (rws_corpus){0};
}

const int *rws__corpus_sentence(const rws_corpus *c, rws_split split, int i, int *n_words)
{
    RWS_CHECK(i >= 0 && i < c->n[split]);
    const rws_sentences *s = &c->file[c->held_out ? RWS_TRAIN : split];
    if (c->held_out && s->n >= 10) i = split == RWS_TEST ? 10 * i + 9 : i + i / 9;
    *n_words = s->start[i + 1] - s->start[i];
    return s->tokens + s->start[i];
}

/* ---- writing */

/* Writes n sentences, one on each line. */
static rws_status write_lines(const rws_grammar *g, const double *log_p, int n, rws_random *random, FILE *stream,
                              rws_error *err)
{
    const rws_caps caps = {1 << 20, 1 << 26};
    rws_sequence   tree = {0}, sentence = {0};
    rws_cut        cut = RWS_TREE_WHOLE;
    for (int i = 0; i < n; i++) {
        cut = rws__parse_tree_sample(g, log_p, caps, random, &tree, &sentence);
        if (cut != RWS_TREE_WHOLE) break;
        for (int k = 0; k < sentence.n; k++) fprintf(stream, "%s%s", k ? " " : "", g->terminals[sentence.at[k]]);
        fputc('\n', stream);
    }
    rws__sequence_release(&tree);
    rws__sequence_release(&sentence);
    if (cut == RWS_TREE_NO_MEMORY) return rws_no_memory(err, "a sentence");
    if (cut != RWS_TREE_WHOLE)
        return rws_fail(err, RWS_BAD_INPUT,
                        "A sentence that was drawn has a tree deeper than %d or of more than %d nodes.", caps.max_depth,
                        caps.max_nodes);
    return RWS_OK;
}

rws_status rws__sentences_finite(const rws_grammar *g, rws_error *err)
{
    double *log_p = malloc((size_t)(g->n_productions + g->n_nonterminals) * sizeof *log_p), words;
    if (!log_p) return rws_no_memory(err, "the probabilities of a grammar");
    rws__grammar_log_p(g, log_p);
    const rws_status status = rws__parse_tree_moments(g, log_p, log_p + g->n_productions, &words, err);
    free(log_p);
    if (status != RWS_OK || words < INFINITY) return status;
    return rws_fail(err, RWS_BAD_INPUT,
                    "With the grammar's probabilities the expected length of a sentence is infinite; lower those of "
                    "recursive rules.");
}

rws_status rws__sentences_draw(const rws_grammar *g, int n, rws_random *random, char **text, size_t *length,
                               rws_error *err)
{
    *text = NULL;
    if (!rws__grammar_is_given(g))
        return rws_fail(err, RWS_BAD_INPUT,
                        "The grammar gives no probabilities to draw sentences by; write one behind each rule.");
    RWS_TRY(rws__sentences_finite(g, err));
    double *log_p = malloc((size_t)g->n_productions * sizeof *log_p);
    if (!log_p) return rws_no_memory(err, "the probabilities of a grammar");
    rws__grammar_log_p(g, log_p);
    rws_status status = RWS_OK;
    rws_text   lines;
    FILE      *stream = rws__text_open(&lines);
    if (stream) status = write_lines(g, log_p, n, random, stream, err);
    *text = rws__text_end(&lines);
    *length = lines.n;
    if (status == RWS_OK && !*text) status = rws_no_memory(err, "the text of sentences");
    if (status != RWS_OK) {
        free(*text);
        *text = NULL;
    }
    free(log_p);
    return status;
}
