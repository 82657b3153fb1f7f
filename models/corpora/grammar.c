/* grammar.c - reading and checking grammars.
 *
 * Three passes: lines become alternatives whose symbols are still pieces of text (grammar_scan.c); names are sorted and
 * the alternatives become productions (build); then the promises of grammar.h are checked one by one. Until build has
 * copied the names, pieces point into the caller's text. All memory that the grammar keeps is in its arena,
 * so rws__grammar_free gives it back at any point.
 */
#include "models/corpora/grammar_scan.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

#include <glib.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rws_grammar_memory {
    rws_arena keep;
};

typedef rws_grammar_piece       piece;
typedef rws_grammar_alternative alternative;
typedef rws_grammar_reader      reader;

/* ---- memory */

static rws_status no_memory(const reader *r)
{
    return rws_no_memory(r->err, "a grammar");
}

/* n zeroed bytes of the arena; NULL without memory. */
static void *zeroed(rws_arena *a, size_t n)
{
    void *p = rws__arena_try(a, n);
    return p ? memset(p, 0, n) : NULL;
}

/* ---- productions */

static int compare_pieces(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    const int    shorter = x->length < y->length ? x->length : y->length;
    const int    order = memcmp(x->at, y->at, (size_t)shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Sorts n pieces and drops repetitions; returns how many are left. */
static int sort_pieces(piece *p, int n)
{
    int kept = 0;
    qsort(p, (size_t)n, sizeof *p, compare_pieces);
    for (int i = 0; i < n; i++)
        if (kept == 0 || compare_pieces(&p[kept - 1], &p[i]) != 0) p[kept++] = p[i];
    return kept;
}

static int find_piece(const piece *sorted, int n, piece p)
{
    const piece *at = bsearch(&p, sorted, (size_t)n, sizeof p, compare_pieces);
    return at ? (int)(at - sorted) : -1;
}

/* NULL without memory. */
static const char *const *copy_names(rws_arena *keep, const piece *p, int n)
{
    const char **names = RWS_TRY_NEW(keep, const char *, n + 1);
    size_t       bytes = 0;
    for (int i = 0; i < n; i++) bytes += (size_t)p[i].length + 1;
    char *at = RWS_TRY_NEW(keep, char, bytes + 1);
    if (!names || !at) return NULL;
    for (int i = 0; i < n; i++) {
        names[i] = at;
        memcpy(at, p[i].at, (size_t)p[i].length);
        at[p[i].length] = '\0';
        at += p[i].length + 1;
    }
    names[n] = NULL;
    return names;
}

/* The symbols of a grammar, sorted: left-hand sides and words. */
typedef struct {
    piece *lefts, *words;
    int    n_lefts, n_words;
} symbols;

static rws_status collect_symbols(reader *r, symbols *out)
{
    out->lefts = RWS_TRY_NEW(&r->scratch, piece, r->n_alternatives);
    out->words = RWS_TRY_NEW(&r->scratch, piece, r->n_pieces + 1);
    if (!out->lefts || !out->words) return no_memory(r);
    out->n_words = 0;
    for (int i = 0; i < r->n_alternatives; i++) out->lefts[i] = r->alternatives[i].left;
    out->n_lefts = sort_pieces(out->lefts, r->n_alternatives);
    if (out->n_lefts > RWS_MAX_GRAMMAR_NONTERMINALS)
        return rws__refuse(r->err, r->name, 0, "has %d non-terminals, more than %d.", out->n_lefts,
                           RWS_MAX_GRAMMAR_NONTERMINALS);
    for (int i = 0; i < r->n_alternatives; i++) {
        const alternative *a = &r->alternatives[i];
        for (int k = 0; k < a->n; k++) {
            const piece s = r->pieces[a->first + k];
            if (!s.quoted && find_piece(out->lefts, out->n_lefts, s) >= 0) continue;
            if (!s.quoted && s.at[0] >= 'A' && s.at[0] <= 'Z')
                return rws__refuse(r->err, r->name, a->line,
                                   "%s in a rule for %s is undefined: it has no rules (a word with a capital stands in "
                                   "quotation marks).",
                                   rws__piece_quote(s).text, rws__piece_quote(a->left).text);
            out->words[out->n_words++] = s;
        }
    }
    out->n_words = sort_pieces(out->words, out->n_words);
    return RWS_OK;
}

static rws_symbol find_symbol(const symbols *all, piece s)
{
    const int nonterminal = s.quoted ? -1 : find_piece(all->lefts, all->n_lefts, s);
    return nonterminal >= 0 ? (rws_symbol){.word = false, .id = nonterminal}
                            : (rws_symbol){.word = true, .id = find_piece(all->words, all->n_words, s)};
}

/* Counting sort by left-hand side, which keeps the order of writing. Returns the productions, whose probabilities are
 * as written; NULL without memory. */
static rws_production *place_productions(reader *r, const symbols *all, rws_grammar *g)
{
    rws_arena *const keep = &g->memory->keep;
    const int        N = all->n_lefts;
    int              n_right = 0, *first = zeroed(keep, (size_t)(N + 1) * sizeof *first);
    int             *next = RWS_TRY_NEW(&r->scratch, int, N);
    if (!first || !next) return NULL;
    for (int i = 0; i < r->n_alternatives; i++) {
        first[find_piece(all->lefts, N, r->alternatives[i].left) + 1]++;
        n_right += r->alternatives[i].n;
    }
    for (int a = 0; a < N; a++) {
        if (first[a + 1] > g->max_productions) g->max_productions = first[a + 1];
        first[a + 1] += first[a];
        next[a] = first[a];
    }
    rws_production *productions = RWS_TRY_NEW(keep, rws_production, r->n_alternatives);
    rws_symbol     *right = RWS_TRY_NEW(keep, rws_symbol, n_right);
    if (!productions || !right) return NULL;
    for (int i = 0; i < r->n_alternatives; i++) {
        const alternative *a = &r->alternatives[i];
        const int          left = find_piece(all->lefts, N, a->left);
        productions[next[left]++] =
            (rws_production){.left = left, .n_right = a->n, .right = right, .p = a->p, .line = a->line};
        for (int k = 0; k < a->n; k++) right[k] = find_symbol(all, r->pieces[a->first + k]);
        right += a->n;
        if (a->n > g->max_right) g->max_right = a->n;
    }
    g->n_productions = r->n_alternatives;
    g->first = first;
    g->productions = productions;
    return productions;
}

/* Checks that probabilities are given for all productions of a non-terminal or for none, and makes them sum to 1. */
static rws_status set_probabilities(reader *r, rws_production *productions, rws_grammar *g)
{
    bool *given = zeroed(&g->memory->keep, (size_t)g->n_nonterminals * sizeof *given);
    if (!given) return no_memory(r);
    g->given = given;
    for (int a = 0; a < g->n_nonterminals; a++) {
        const int       n = g->first[a + 1] - g->first[a];
        rws_production *p = productions + g->first[a];
        double          sum = 0;
        given[a] = !isnan(p[0].p);
        for (int i = 0; i < n; i++) {
            if (isnan(p[i].p) == given[a])
                return rws__refuse(r->err, r->name, p[i].line,
                                   "some rules for %s have a probability and some have none.",
                                   rws__quote_short(g->nonterminals[a]).text);
            sum += given[a] ? p[i].p : 1;
        }
        if (given[a] && fabs(sum - 1) > 1e-6)
            return rws__refuse(r->err, r->name, p[0].line,
                               "the probabilities of the rules for %s sum to %.9g and not to 1.",
                               rws__quote_short(g->nonterminals[a]).text, sum);
        for (int i = 0; i < n; i++) p[i].p = given[a] ? p[i].p / sum : 1 / sum;
    }
    return RWS_OK;
}

static rws_status build(reader *r, rws_grammar *g)
{
    symbols all = {0};
    RWS_TRY(collect_symbols(r, &all));
    g->start = r->start.quoted ? -1 : find_piece(all.lefts, all.n_lefts, r->start);
    if (g->start < 0)
        return rws__refuse(r->err, r->name, r->start_line, "the start symbol %s is undefined: it has no rules.",
                           rws__piece_quote(r->start).text);
    g->n_nonterminals = all.n_lefts;
    g->n_terminals = all.n_words;
    g->nonterminals = copy_names(&g->memory->keep, all.lefts, all.n_lefts);
    g->terminals = copy_names(&g->memory->keep, all.words, all.n_words);
    if (!g->nonterminals || !g->terminals) return no_memory(r);
    rws_production *productions = place_productions(r, &all, g);
    return productions ? set_probabilities(r, productions, g) : no_memory(r);
}

/* ---- checks */

static int compare_productions(const void *a, const void *b)
{
    const rws_production *x = *(const rws_production *const *)a, *y = *(const rws_production *const *)b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    if (x->n_right != y->n_right) return x->n_right < y->n_right ? -1 : 1;
    for (int k = 0; k < x->n_right; k++) {
        if (x->right[k].word != y->right[k].word) return x->right[k].word ? -1 : 1;
        if (x->right[k].id != y->right[k].id) return x->right[k].id < y->right[k].id ? -1 : 1;
    }
    return 0;
}

static rws_status check_duplicates(reader *r, const rws_grammar *g)
{
    const rws_production **sorted = RWS_TRY_NEW(&r->scratch, const rws_production *, g->n_productions);
    if (!sorted) return no_memory(r);
    for (int i = 0; i < g->n_productions; i++) sorted[i] = &g->productions[i];
    qsort(sorted, (size_t)g->n_productions, sizeof *sorted, compare_productions);
    for (int i = 1; i < g->n_productions; i++) {
        const rws_production *x = sorted[i - 1], *y = sorted[i];
        if (compare_productions(&x, &y) != 0) continue;
        const rws_symbol s = x->right[0];
        return rws__refuse(r->err, r->name, x->line > y->line ? x->line : y->line,
                           "the rule %s -> %s%s is already in line %d.",
                           rws__quote_short(g->nonterminals[x->left]).text,
                           rws__quote_short(s.word ? g->terminals[s.id] : g->nonterminals[s.id]).text,
                           x->n_right > 1 ? " ..." : "", x->line < y->line ? x->line : y->line);
    }
    return RWS_OK;
}

/* Whether a production is A -> B with one non-terminal B. */
static bool is_unit(const rws_production *p)
{
    return p->n_right == 1 && !p->right[0].word;
}

/* Orders non-terminals so that B comes before A if A -> B is a rule: A is placed once every such B is. A non-terminal
 * that cannot be placed lies on a cycle of such rules or leads to one. */
static rws_status check_unit_cycles(reader *r, rws_grammar *g)
{
    const int N = g->n_nonterminals;
    int      *order = RWS_TRY_NEW(&g->memory->keep, int, N), n_ordered = 0, before;
    bool     *placed = zeroed(&r->scratch, (size_t)N * sizeof *placed);
    if (!order || !placed) return no_memory(r);
    do {
        before = n_ordered;
        for (int a = 0; a < N; a++) {
            bool ready = !placed[a];
            for (int i = g->first[a]; ready && i < g->first[a + 1]; i++)
                ready = !is_unit(&g->productions[i]) || placed[g->productions[i].right[0].id];
            if (ready) placed[a] = true, order[n_ordered++] = a;
        }
    } while (n_ordered > before);
    g->unit_order = order;
    if (n_ordered == N) return RWS_OK;

    /* N steps from a non-terminal that was not placed, along others that were not placed, end on a cycle. */
    int at = 0, next = 0, line = 0;
    while (placed[at]) at++;
    for (int step = 0; step <= N; step++) {
        for (int i = g->first[at]; i < g->first[at + 1]; i++)
            if (is_unit(&g->productions[i]) && !placed[g->productions[i].right[0].id]) {
                next = g->productions[i].right[0].id;
                line = g->productions[i].line;
                break;
            }
        if (step < N) at = next;
    }
    return rws__refuse(r->err, r->name, line,
                       "the rule %s -> %s is part of a chain of single-symbol rules from %s back to itself.",
                       rws__quote_short(g->nonterminals[at]).text, rws__quote_short(g->nonterminals[next]).text,
                       rws__quote_short(g->nonterminals[at]).text);
}

static rws_status check_endings(reader *r, const rws_grammar *g)
{
    bool *ends = zeroed(&r->scratch, (size_t)g->n_nonterminals * sizeof *ends), more;
    if (!ends) return no_memory(r);
    do {
        more = false;
        for (int i = 0; i < g->n_productions; i++) {
            const rws_production *p = &g->productions[i];
            bool                  all = !ends[p->left];
            for (int k = 0; all && k < p->n_right; k++) all = p->right[k].word || ends[p->right[k].id];
            if (all) ends[p->left] = more = true;
        }
    } while (more);
    for (int a = 0; a < g->n_nonterminals; a++)
        if (!ends[a])
            return rws__refuse(r->err, r->name, g->productions[g->first[a]].line,
                               "no derivation from %s ends in words alone.", rws__quote_short(g->nonterminals[a]).text);
    return RWS_OK;
}

static rws_status check_reachable(reader *r, const rws_grammar *g)
{
    bool *seen = zeroed(&r->scratch, (size_t)g->n_nonterminals * sizeof *seen);
    int  *queue = RWS_TRY_NEW(&r->scratch, int, g->n_nonterminals), n = 0;
    if (!seen || !queue) return no_memory(r);
    seen[g->start] = true;
    queue[n++] = g->start;
    for (int q = 0; q < n; q++)
        for (int i = g->first[queue[q]]; i < g->first[queue[q] + 1]; i++)
            for (int k = 0; k < g->productions[i].n_right; k++) {
                const rws_symbol s = g->productions[i].right[k];
                if (s.word || seen[s.id]) continue;
                seen[s.id] = true;
                queue[n++] = s.id;
            }
    for (int a = 0; a < g->n_nonterminals; a++)
        if (!seen[a])
            return rws__refuse(
                r->err, r->name, g->productions[g->first[a]].line, "%s cannot be reached from the start symbol %s.",
                rws__quote_short(g->nonterminals[a]).text, rws__quote_short(g->nonterminals[g->start]).text);
    return RWS_OK;
}

static rws_status read_all(reader *r, const char *text, size_t length, rws_grammar *g)
{
    RWS_TRY(rws__grammar_scan(r, text, length));
    RWS_TRY(build(r, g));
    RWS_TRY(check_duplicates(r, g));
    RWS_TRY(check_unit_cycles(r, g));
    RWS_TRY(check_endings(r, g));
    return check_reachable(r, g);
}

/* ---- functions */

rws_status rws__grammar_parse(const char *text, size_t length, const char *name, rws_grammar **out, rws_error *err)
{
    reader       r = {.name = name, .err = err};
    rws_grammar *g = calloc(1, sizeof *g);
    *out = NULL;
    if (g) g->memory = calloc(1, sizeof *g->memory);
    const rws_status status = g && g->memory ? read_all(&r, text, length, g) : no_memory(&r);
    rws__arena_free(&r.scratch);
    if (status == RWS_OK) *out = g;
    else rws__grammar_free(g);
    return status;
}

rws_status rws__grammar_read(const char *path, rws_grammar **out, rws_error *err)
{
    uint8_t *text; /* of a regular file: a run's configuration can come from elsewhere, and must not wait for a pipe */
    size_t   length;
    *out = NULL;
    RWS_TRY(rws__file_read(path, RWS_MAX_GRAMMAR_BYTES, &text, &length, err));
    const rws_status status = rws__grammar_parse((const char *)text, length, path, out, err);
    free(text);
    return status;
}

void rws__grammar_free(rws_grammar *g)
{
    if (!g) return;
    if (g->memory) rws__arena_free(&g->memory->keep);
    free(g->memory);
    free(g);
}

static int find_name(const char *const *names, int n, const char *name, size_t length)
{
    int low = 0, high = n;
    while (low < high) {
        const int    middle = low + (high - low) / 2;
        const size_t its = strlen(names[middle]);
        int          order = memcmp(names[middle], name, its < length ? its : length);
        if (order == 0) order = (its > length) - (its < length);
        if (order == 0) return middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

int rws__grammar_nonterminal(const rws_grammar *g, const char *name)
{
    return find_name(g->nonterminals, g->n_nonterminals, name, strlen(name));
}

int rws__grammar_word(const rws_grammar *g, const char *word, size_t length)
{
    const int id = find_name(g->terminals, g->n_terminals, word, length);
    return id >= 0 ? id : RWS_OOV;
}

bool rws__grammar_is_given(const rws_grammar *g)
{
    for (int a = 0; a < g->n_nonterminals; a++)
        if (!g->given[a] && g->first[a + 1] - g->first[a] > 1) return false;
    return true;
}

void rws__grammar_log_p(const rws_grammar *g, double *log_p)
{
    for (int i = 0; i < g->n_productions; i++) log_p[i] = log(g->productions[i].p);
}

int rws__grammar_tokens(const rws_grammar *g, const char *text, int *tokens, int capacity)
{
    int n = 0;
    for (;;) {
        text += strspn(text, " \t\r\n");
        const size_t length = strcspn(text, " \t\r\n");
        if (length == 0) return n;
        RWS_CHECK(n < INT_MAX);
        if (n < capacity) tokens[n] = rws__grammar_word(g, text, length);
        n++;
        text += length;
    }
}

/* ---- grammars of the program, whose text grammars.S includes */

extern const char rws_grammar_astronomers[], rws_grammar_astronomers_end[], rws_grammar_orders[],
    rws_grammar_orders_end[], rws_grammar_garden[], rws_grammar_garden_end[];

static const struct {
    const char *begin, *end;
} files[] = {
    {rws_grammar_astronomers, rws_grammar_astronomers_end},
    {rws_grammar_orders, rws_grammar_orders_end},
    {rws_grammar_garden, rws_grammar_garden_end},
};
const char *const rws_grammar_names[] = {"astronomers", "orders", "garden", NULL};

rws_status rws__grammar_find(const char *name, rws_grammar **out, rws_error *err)
{
    for (int i = 0; rws_grammar_names[i]; i++)
        if (strcmp(rws_grammar_names[i], name) == 0)
            return rws__grammar_parse(files[i].begin, (size_t)(files[i].end - files[i].begin), name, out, err);
    return rws__grammar_read(name, out, err);
}
