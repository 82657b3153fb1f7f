/* grammar.h - probabilistic context-free grammars: the text format, its checks, and the form that programs use.
 *
 * The reader takes text from memory or from a file and returns a grammar with all the properties that samplers and
 * parser rely on. It does not learn probabilities and does not parse sentences.
 *
 *     file.pcfg -> [grammar] -> tree (samples), parse (exact answers), model
 *
 * The format, line by line (a line has at most 4096 bytes, a file at most 1 MiB):
 *
 *     # A comment: from a '#' that begins a symbol to the end of the line.
 *     start S
 *     S  -> NP VP     1.0
 *     NP -> NP PP     0.4 | astronomers 0.1 | ears 0.18
 *         | "McDonald" 0.32
 *
 *   - Symbols and numbers are separated by blanks, and so are `->` and `|`. One line says which symbol is the start.
 *   - `A -> …` gives alternatives for A, a line that begins with `|` gives more, and so does another `A -> …`.
 *   - A right-hand side is one or more symbols, at most 64, words and non-terminals in any mixture.
 *   - A symbol is a non-terminal if it has a rule and a word otherwise. A symbol that begins with a capital and
 *     has no rule is refused as undefined. Text without blanks in double quotes is a word: "McDonald", "0.5", "|".
 *   - A number at the end of an alternative is its probability, in (0, 1]. Either all alternatives of a non-terminal
 *     have one, and then they sum to 1 within 1e-6 (and are divided by their sum), or none, and then all are equally
 *     probable: a place to start learning from. A bare symbol cannot look like a number.
 *
 * What a grammar that was read guarantees: every non-terminal can be reached from the start and can end in words; no
 * right-hand side is empty; no rule is there twice; no chain of single-symbol rules leads from a non-terminal back to
 * itself, so that a sentence has finitely many trees. Its expected size may still be infinite (see rws__parse_tree_moments).
 */
#ifndef RWS_MODELS_CORPORA_GRAMMAR_H
#define RWS_MODELS_CORPORA_GRAMMAR_H

#include "rws.h"

enum {
    RWS_MAX_GRAMMAR_BYTES = 1 << 20,
    RWS_MAX_GRAMMAR_LINE = 4096,
    RWS_MAX_GRAMMAR_RIGHT = 64,
    RWS_MAX_GRAMMAR_NONTERMINALS = 4096,
};

/* The token of every word that is not in the grammar and of every non-terminal that was not expanded. It equals itself
 * and no word. */
#define RWS_OOV (-1)

typedef struct {
    bool word;
    int  id; /* index in terminals if it is a word, else in nonterminals */
} rws_symbol;

typedef struct {
    int               left; /* a non-terminal */
    int               n_right;
    const rws_symbol *right;
    double            p;
    int               line; /* where it was written */
} rws_production;

/* Names are sorted by their bytes. Productions are sorted by their left-hand sides and, within one, stand as written:
 * the productions of non-terminal a are first[a] … first[a + 1] - 1. All memory belongs to the grammar. */
typedef struct rws_grammar {
    int                n_terminals, n_nonterminals, n_productions;
    int                start;
    const char *const *terminals, *const *nonterminals;
    const int                 *first; /* n_nonterminals + 1 */
    const rws_production      *productions;
    const bool                *given;      /* by non-terminal: whether the file gave its probabilities */
    const int                 *unit_order; /* all non-terminals; if A -> B is a rule, B comes before A */
    int                        max_right, max_productions;
    struct rws_grammar_memory *memory;
} rws_grammar;

/* Reads `length` bytes of text; `name` stands for them in sentences. On success *out is the caller's to free; otherwise
 * *out is NULL and the status RWS_BAD_INPUT, with a sentence that names the line or the rule, or RWS_NO_MEMORY. */
rws_status rws__grammar_parse(const char *text, size_t length, const char *name, rws_grammar **out, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file. */
rws_status rws__grammar_read(const char *path, rws_grammar **out, rws_error *err) __attribute__((warn_unused_result));

/* The same for a grammar of the program by its name, or else for a file by its path. The list of names ends with
 * NULL. */
extern const char *const rws_grammar_names[];
rws_status               rws__grammar_find(const char *name_or_path, rws_grammar **out, rws_error *err)
    __attribute__((warn_unused_result));

void rws__grammar_free(rws_grammar *g); /* NULL is fine */

/* The id of a name, or -1. */
int rws__grammar_nonterminal(const rws_grammar *g, const char *name);

/* The token of a word of `length` bytes: its id, or RWS_OOV. */
int rws__grammar_word(const rws_grammar *g, const char *word, size_t length);

/* Whether the probability of every rule is known: it was given, or the rule has no alternative. */
bool rws__grammar_is_given(const rws_grammar *g);

/* The logs of the grammar's own probabilities, by production. */
void rws__grammar_log_p(const rws_grammar *g, double *log_p);

/* The tokens of a text of words separated by blanks; an unknown word becomes RWS_OOV. Returns the number of words, and
 * writes at most `capacity` tokens. */
int rws__grammar_tokens(const rws_grammar *g, const char *text, int *tokens, int capacity);

#endif
