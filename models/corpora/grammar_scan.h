/* grammar_scan.h - the first pass over the text of a grammar: lines become alternatives whose symbols are still pieces of
 * the text.
 *
 *     text -> [grammar_scan] -> alternatives -> grammar.c: productions, checks
 */
#ifndef RWS_CORPORA_GRAMMAR_SCAN_H
#define RWS_CORPORA_GRAMMAR_SCAN_H

#include "models/corpora/grammar.h"
#include "base/arena.h"
#include "base/quote.h"

typedef struct {
    const char *at;
    int         length;
    bool        quoted;
} rws_grammar_piece;

typedef struct {
    rws_grammar_piece left;
    int               first, n; /* right-hand side: pieces[first] … pieces[first + n - 1] of the reader */
    double            p;        /* NaN: not given */
    int               line;
} rws_grammar_alternative;

typedef struct {
    rws_arena                scratch;
    const char              *name;
    rws_grammar_piece       *pieces;
    rws_grammar_alternative *alternatives;
    int                      n_pieces, n_alternatives;
    rws_grammar_piece        start;
    int                      start_line;
    rws_error               *err;
} rws_grammar_reader;

/* A symbol in a message, beside others. */
static inline rws_quoted rws__piece_quote(rws_grammar_piece p)
{
    return rws__quote_prefix(p.at, (size_t)p.length, RWS_QUOTED_SHORT);
}

/* Reads the alternatives and the start symbol; r->name and r->err are set. Pieces point into the text, and the memory is
 * r->scratch. */
rws_status rws__grammar_scan(rws_grammar_reader *r, const char *text, size_t length);

#endif
