#include "models/corpora/grammar_scan.h"

#include "base/error.h"

#include <glib.h>
#include <math.h>
#include <string.h>

typedef rws_grammar_piece       piece;
typedef rws_grammar_alternative alternative;
typedef rws_grammar_reader      reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool piece_is(piece p, const char *text)
{
    return !p.quoted && (size_t)p.length == strlen(text) && memcmp(p.at, text, (size_t)p.length) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A piece is a number if g_ascii_strtod reads all of it, also "nan" and "inf", which are refused as probabilities
 * later. */
static bool piece_number(piece p, double *value)
{
    char  copy[64];
    char *end;
    if (p.quoted || p.length == 0 || p.length >= (int)sizeof copy) return false;
    memcpy(copy, p.at, (size_t)p.length);
    copy[p.length] = '\0';
    *value = g_ascii_strtod(copy, &end);
    return *end == '\0';
}

/* An unquoted piece that begins like a number is more likely a mistyped number than a word. */
static bool piece_nearly_number(piece p)
{
    if (p.quoted) return false;
    const bool sign = p.at[0] == '.' || p.at[0] == '+' || p.at[0] == '-';
    return is_digit(p.at[0]) || (sign && p.length > 1 && is_digit(p.at[1]));
}

/* The next piece of a line, with length 0 at the end of the line; moves *at behind the piece. */
static rws_status next_piece(const reader *r, int line, const char **at, const char *end, piece *out)
{
    while (*at < end && is_blank(**at)) ++*at;
    const char *from = *at;
    *out = (piece){.at = from};
    if (from == end || *from == '#') {
        *at = end;
        return RWS_OK;
    }
    while (*at < end && !is_blank(**at)) ++*at;
    *out = (piece){.at = from, .length = (int)(*at - from)};
    if (*from == '"') {
        if (out->length < 3 || (*at)[-1] != '"')
            return rws__refuse(r->err, r->name, line,
                               "the quoted word %s does not end in a quotation mark before the next blank.",
                               rws__piece_quote(*out).text);
        *out = (piece){.at = from + 1, .length = out->length - 2, .quoted = true};
    }
    if (memchr(out->at, '"', (size_t)out->length))
        return rws__refuse(r->err, r->name, line, "%s has a quotation mark inside.",
                           rws__quote_prefix(from, (size_t)(*at - from), RWS_QUOTED_SHORT).text);
    if (!out->quoted && out->length > 1 && !piece_is(*out, "->") &&
        (memchr(from, '|', (size_t)out->length) || memmem(from, (size_t)out->length, "->", 2)))
        return rws__refuse(r->err, r->name, line, "there should be blanks on both sides of -> and | in %s.",
                           rws__piece_quote(*out).text);
    return RWS_OK;
}

/* Ends the alternative whose pieces stand from pieces[first] on: takes off its probability and checks the symbols. */
static rws_status close_alternative(reader *r, piece left, int first, int line)
{
    alternative     *a = &r->alternatives[r->n_alternatives++];
    const rws_quoted lhs = rws__piece_quote(left);
    *a = (alternative){.left = left, .first = first, .n = r->n_pieces - first, .p = NAN, .line = line};

    double p;
    if (a->n > 0 && piece_number(r->pieces[first + a->n - 1], &p)) {
        if (!(p > 0 && p <= 1))
            return rws__refuse(r->err, r->name, line, "a rule for %s has probability %g, which is not in (0, 1].",
                               lhs.text, p);
        a->p = p;
        a->n--;
    }
    if (a->n == 0) return rws__refuse(r->err, r->name, line, "a rule for %s has an empty right-hand side.", lhs.text);
    if (a->n > RWS_MAX_GRAMMAR_RIGHT)
        return rws__refuse(r->err, r->name, line, "a rule for %s has %d symbols on its right-hand side, more than %d.",
                           lhs.text, a->n, RWS_MAX_GRAMMAR_RIGHT);
    for (int i = 0; i < a->n; i++) {
        const piece s = r->pieces[first + i];
        if (piece_is(s, "->"))
            return rws__refuse(r->err, r->name, line, "there is a second -> in the rule for %s.", lhs.text);
        if (piece_nearly_number(s) || piece_number(s, &p))
            return rws__refuse(r->err, r->name, line,
                               "%s in a rule for %s is neither a symbol nor a probability at the end of the rule.",
                               rws__piece_quote(s).text, lhs.text);
    }
    return RWS_OK;
}

/* Reads the alternatives from `at` to the end of the line. */
static rws_status scan_alternatives(reader *r, piece left, int line, const char *at, const char *end)
{
    int first = r->n_pieces;
    for (;;) {
        piece p;
        RWS_TRY(next_piece(r, line, &at, end, &p));
        if (p.length == 0) return close_alternative(r, left, first, line);
        if (piece_is(p, "|")) {
            RWS_TRY(close_alternative(r, left, first, line));
            first = r->n_pieces;
        } else {
            r->pieces[r->n_pieces++] = p;
        }
    }
}

static rws_status scan_line(reader *r, int line, const char *at, const char *end)
{
    piece  head, second, third;
    double number;
    for (const char *c = at; c < end; c++)
        if (!is_blank(*c) && ((unsigned char)*c < 0x20 || *c == 0x7f))
            return rws__refuse(r->err, r->name, line, "there is a control character (byte %d) in the text.",
                               (unsigned char)*c);

    RWS_TRY(next_piece(r, line, &at, end, &head));
    if (head.length == 0) return RWS_OK;
    if (piece_is(head, "|")) {
        if (r->n_alternatives == 0)
            return rws__refuse(r->err, r->name, line, "the line begins with | but no rule comes before it.");
        return scan_alternatives(r, r->alternatives[r->n_alternatives - 1].left, line, at, end);
    }
    if (piece_is(head, "->")) return rws__refuse(r->err, r->name, line, "there is no symbol in front of the ->.");

    RWS_TRY(next_piece(r, line, &at, end, &second));
    if (piece_is(second, "->")) {
        if (head.quoted)
            return rws__refuse(r->err, r->name, line, "the quoted word \"%s\" cannot have rules.",
                               rws__piece_quote(head).text);
        if (piece_nearly_number(head) || piece_number(head, &number))
            return rws__refuse(r->err, r->name, line, "the number %s cannot have rules.", rws__piece_quote(head).text);
        return scan_alternatives(r, head, line, at, end);
    }
    if (!piece_is(head, "start"))
        return rws__refuse(r->err, r->name, line, "after the symbol %s there should be a ->.",
                           rws__piece_quote(head).text);
    if (second.length == 0)
        return rws__refuse(r->err, r->name, line, "after the word start there should be the start symbol.");
    RWS_TRY(next_piece(r, line, &at, end, &third));
    if (third.length > 0) return rws__refuse(r->err, r->name, line, "after the word start there should be one symbol.");
    if (r->start_line)
        return rws__refuse(r->err, r->name, line, "the start symbol was already given in line %d.", r->start_line);
    r->start = second;
    r->start_line = line;
    return RWS_OK;
}

rws_status rws__grammar_scan(reader *r, const char *text, size_t length)
{
    if (length > RWS_MAX_GRAMMAR_BYTES)
        return rws__refuse(r->err, r->name, 0, "is longer than %d bytes.", RWS_MAX_GRAMMAR_BYTES);
    r->pieces = RWS_TRY_NEW(&r->scratch, piece, length / 2 + 2); /* a piece and the blank behind it are two bytes */
    r->alternatives = RWS_TRY_NEW(&r->scratch, alternative, length / 2 + 2);
    if (!r->pieces || !r->alternatives) return rws_no_memory(r->err, "a grammar");

    const char *at = text, *const end = text + length;
    for (int line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (stop - at > RWS_MAX_GRAMMAR_LINE)
            return rws__refuse(r->err, r->name, line, "the line is longer than %d bytes.", RWS_MAX_GRAMMAR_LINE);
        RWS_TRY(scan_line(r, line, at, stop));
        at = stop + (stop < end);
    }
    if (r->n_alternatives == 0) return rws__refuse(r->err, r->name, 0, "has no rules.");
    if (!r->start_line)
        return rws__refuse(r->err, r->name, 0, "does not say which symbol is the start (a line such as: start S).");
    return RWS_OK;
}
