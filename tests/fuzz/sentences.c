/* sentences.c - libFuzzer harness for the reader: whatever the bytes, a text is refused with a sentence, or its tokens are
 * words of the grammar, every sentence has some, and no more than allowed. Build with
 * -fsanitize=fuzzer,address,undefined. */
#include "models/corpora/sentences.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rws_grammar *g;
    if (!g && rws__grammar_find("astronomers", &g, NULL) != RWS_OK) abort();
    rws_error         err = {""};
    rws_sentences     s;
    const rws_unknown unknown = size && data[0] & 1 ? RWS_UNKNOWN_SKIP : RWS_UNKNOWN_REFUSE;
    if (rws__sentences_parse(g, (const char *)data, size, "fuzz", unknown, MOST, &s, &err) != RWS_OK) {
        const size_t length = strlen(err.text);
        if (length == 0 || err.text[length - 1] != '.' || !strstr(err.text, "\"fuzz\"") || s.tokens) abort();
        return 0;
    }
    if (s.n < 1 || s.start[0] != 0 || (unknown == RWS_UNKNOWN_REFUSE && s.n_skipped)) abort();
    for (int i = 0; i < s.n; i++) {
        const int n = s.start[i + 1] - s.start[i];
        if (n < 1 || n > MOST) abort();
    }
    for (int k = 0; k < s.start[s.n]; k++)
        if (s.tokens[k] < 0 || s.tokens[k] >= g->n_terminals) abort();
    rws__sentences_release(&s);
    return 0;
}
