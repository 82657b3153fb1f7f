/* parse_tree.c - walking and drawing trees.
 *
 * Every walk keeps the symbols still to come on an explicit stack, the leftmost on top, so that deep trees do not
 * overflow the stack of the program.
 */
#include "models/corpora/parse_tree.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------------- sequences */

bool rws__sequence_push(rws_sequence *s, int value)
{
    if (s->n == s->capacity) {
        const int capacity = s->capacity ? 2 * s->capacity : 32;
        int      *at = s->capacity < 1 << 30 ? realloc(s->at, sizeof *at * (size_t)capacity) : NULL;
        if (!at) return false;
        s->at = at;
        s->capacity = capacity;
    }
    s->at[s->n++] = value;
    return true;
}

void rws__sequence_release(rws_sequence *s)
{
    free(s->at);
    *s = (rws_sequence){0};
}

/* ------------------------------------------------------------------------------------------------------------ walks */

typedef struct {
    rws_symbol symbol;
    int        depth;
} place;

typedef struct {
    place *at, few[128];
    int    n, capacity;
} stack;

static void stack_release(stack *s)
{
    if (s->at != s->few) free(s->at);
}

/* False without memory; the caller releases the stack then as always. */
static bool stack_push(stack *s, rws_symbol symbol, int depth)
{
    if (s->n == s->capacity) {
        place *more = s->capacity < 1 << 29 ? malloc(sizeof *more * 2 * (size_t)s->capacity) : NULL;
        if (!more) return false;
        memcpy(more, s->at, sizeof *more * (size_t)s->n);
        stack_release(s);
        s->at = more;
        s->capacity *= 2;
    }
    s->at[s->n++] = (place){symbol, depth};
    return true;
}

/* The right-hand side of a production, its first symbol on top. */
static bool stack_expand(stack *s, const rws_production *p, int depth)
{
    for (int k = p->n_right - 1; k >= 0; k--)
        if (!stack_push(s, p->right[k], depth + 1)) return false;
    return true;
}

/* Makes a stack that holds the start symbol alone. */
static void stack_start(stack *s, const rws_grammar *g)
{
    s->at = s->few;
    s->capacity = (int)(sizeof s->few / sizeof *s->few);
    s->at[0] = (place){{.word = false, .id = g->start}, 0};
    s->n = 1;
}

static int draw_production(const rws_grammar *g, const double *log_p, int a, rws_random *random)
{
    const int last = g->first[a + 1] - 1;
    int       i = g->first[a];
    if (i == last) return i;
    double left = rws_random_uniform(random);
    for (; i < last; i++)
        if ((left -= exp(log_p[i])) < 0) return i;
    while (i > g->first[a] && log_p[i] == -INFINITY) i--; /* rounding alone can lead here */
    return i;
}

rws_cut rws__parse_tree_sample(const rws_grammar *g, const double *log_p, rws_caps caps, rws_random *random,
                               rws_sequence *tree, rws_sequence *sentence)
{
    stack   todo;
    rws_cut cut = RWS_TREE_WHOLE;
    int     n_expanded = 0;
    bool    memory = true; /* whether memory sufficed so far */
    tree->n = 0;
    if (sentence) sentence->n = 0;
    stack_start(&todo, g);
    while (todo.n > 0 && memory) {
        const place at = todo.at[--todo.n];
        if (at.symbol.word) {
            if (sentence) memory = rws__sequence_push(sentence, at.symbol.id);
        } else if (at.depth > caps.max_depth || n_expanded >= caps.max_nodes) {
            cut |= at.depth > caps.max_depth ? RWS_TREE_TOO_DEEP : RWS_TREE_TOO_LARGE;
            memory = rws__sequence_push(tree, RWS_LEAF) && (!sentence || rws__sequence_push(sentence, RWS_OOV));
        } else {
            const int i = draw_production(g, log_p, at.symbol.id, random);
            n_expanded++;
            memory = rws__sequence_push(tree, i) && stack_expand(&todo, &g->productions[i], at.depth);
        }
    }
    stack_release(&todo);
    return memory ? cut : RWS_TREE_NO_MEMORY;
}

/* The production of the non-terminal that is next in the walk, checked to belong to it; NULL for a leaf. */
static const rws_production *next_production(const rws_grammar *g, const rws_sequence *tree, int *next, int a)
{
    RWS_CHECK(*next < tree->n);
    const int i = tree->at[(*next)++];
    if (i == RWS_LEAF) return NULL;
    RWS_CHECK(i >= g->first[a] && i < g->first[a + 1]);
    return &g->productions[i];
}

/* ------------------------------------------------------------------------------------------------------------- text */

static size_t put(char *text, size_t capacity, size_t at, const char *piece)
{
    for (; *piece; piece++, at++)
        if (at + 1 < capacity) text[at] = *piece;
    return at;
}

size_t rws__parse_tree_text(const rws_grammar *g, const rws_sequence *tree, char *text, size_t capacity)
{
    enum { CLOSE = -1 }; /* as the depth of a place: the bracket that ends a node */
    stack  todo;
    int    next = 0;
    size_t length = 0;
    bool   memory = true;
    stack_start(&todo, g);
    while (todo.n > 0 && memory) {
        const place at = todo.at[--todo.n];
        if (at.depth == CLOSE) {
            length = put(text, capacity, length, ")");
            continue;
        }
        if (length > 0) length = put(text, capacity, length, " ");
        if (at.symbol.word) {
            length = put(text, capacity, length, g->terminals[at.symbol.id]);
            continue;
        }
        const rws_production *p = next_production(g, tree, &next, at.symbol.id);
        if (p) length = put(text, capacity, length, "(");
        length = put(text, capacity, length, g->nonterminals[at.symbol.id]);
        if (!p) continue;
        memory = stack_push(&todo, at.symbol, CLOSE) && stack_expand(&todo, p, at.depth);
    }
    stack_release(&todo);
    if (!memory) length = 0;
    if (capacity > 0) text[length < capacity ? length : capacity - 1] = '\0';
    return length;
}

/* ---------------------------------------------------------------------------------------------------------- moments */

/* x becomes m^-1 x, by elimination without exchanges. False if it meets a pivot that is not positive; x is then of no
 * use. */
static bool solve(size_t N, double *m, double *x)
{
    for (size_t c = 0; c < N; c++) {
        if (!(m[c * N + c] > 1e-12)) return false;
        for (size_t r = c + 1; r < N; r++) {
            const double f = m[r * N + c] / m[c * N + c];
            if (f == 0) continue;
            for (size_t k = c; k < N; k++) m[r * N + k] -= f * m[c * N + k];
            x[r] -= f * x[c];
        }
    }
    for (size_t c = N; c-- > 0;) {
        for (size_t k = c + 1; k < N; k++) x[c] -= m[c * N + k] * x[k];
        x[c] /= m[c * N + c];
    }
    return true;
}

/* With M[a][b] the expected number of children b of a node a, the expected numbers of nodes are the row of the start in
 * 1 + M + M^2 + … = (1 - M)^-1. The sum is finite exactly if elimination without exchanges meets only positive pivots
 * (1 - M is then a non-singular M-matrix: Berman and Plemmons, chapter 6). */
rws_status rws__parse_tree_moments(const rws_grammar *g, const double *log_p, double *nodes, double *length,
                                   rws_error *err)
{
    const size_t N = (size_t)g->n_nonterminals;
    double      *m = calloc(N * N, sizeof *m), *words = calloc(N, sizeof *words);
    if (!m || !words) {
        free(m);
        free(words);
        return rws_no_memory(err, "the expected size of a sentence");
    }

    /* m is the transpose of 1 - M, and m nodes = e_start. */
    for (size_t a = 0; a < N; a++) {
        m[a * N + a] += 1;
        nodes[a] = a == (size_t)g->start;
        for (int i = g->first[a]; i < g->first[a + 1]; i++)
            for (int k = 0; k < g->productions[i].n_right; k++) {
                const rws_symbol s = g->productions[i].right[k];
                if (s.word) words[a] += exp(log_p[i]);
                else m[(size_t)s.id * N + a] -= exp(log_p[i]);
            }
    }
    const bool finite = solve(N, m, nodes);
    *length = 0;
    for (size_t c = N; c-- > 0;) {
        if (!finite) nodes[c] = INFINITY;
        *length += finite ? nodes[c] * words[c] : INFINITY;
    }
    free(m);
    free(words);
    return RWS_OK;
}
