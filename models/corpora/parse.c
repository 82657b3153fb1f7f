/* parse.c - parsing by charts.
 *
 * Rules of any length are cut into steps: besides a plane for every non-terminal a chart has, for every production of
 * k >= 2 symbols, planes for its first 2, 3, …, k symbols,
 *
 *     first l of r over [i, j)  =  sum over m of  (first l - 1 of r over [i, m)) * (symbol l of r over [m, j))
 *
 * and as nothing derives the empty string, both factors are about shorter stretches. So stretches are filled from short
 * to long, in each of them first the steps and then the non-terminals. Non-terminals come in the grammar's unit_order,
 * in which B is computed before A if A -> B is a rule.
 *
 * The three kinds differ in what sum and product are: (log-sum-exp, +), (max, +) and (+, *). Walks down the chart redo
 * the same terms: expected counts share out the expected number of uses among them, trees follow one of them.
 */
#include "models/corpora/parse.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rws_parse_chart {
    const rws_grammar *g;
    rws_parse_kind     kind;
    int                n;
    int               *tokens;
    double            *weight; /* by production: log_p, or 0 and 1 in a COUNT chart */
    int               *steps;  /* by production: the plane of its first 2 symbols; those of more follow */
    int                n_planes;
    double            *values; /* planes of (n + 1) * (n + 1) */
};

/* Zeroed; NULL without memory, never for n = 0. */
static void *get(size_t n, size_t size)
{
    return calloc(n ? n : 1, size);
}

static size_t cell(const rws_parse_chart *c, int plane, int from, int to)
{
    const size_t side = (size_t)c->n + 1;
    return ((size_t)plane * side + (size_t)from) * side + (size_t)to;
}

static double zero(const rws_parse_chart *c)
{
    return c->kind == RWS_PARSE_COUNT ? 0 : -INFINITY;
}

static double one(const rws_parse_chart *c)
{
    return c->kind == RWS_PARSE_COUNT ? 1 : 0;
}

static double times(const rws_parse_chart *c, double x, double y)
{
    return c->kind == RWS_PARSE_COUNT ? x * y : x + y;
}

static double sum(const rws_parse_chart *c, const double *terms, int n)
{
    double total = zero(c), most = -INFINITY;
    if (c->kind == RWS_PARSE_COUNT) {
        for (int i = 0; i < n; i++) total += terms[i];
        return total;
    }
    for (int i = 0; i < n; i++) most = fmax(most, terms[i]);
    if (c->kind == RWS_PARSE_MAX || n == 1 || most == -INFINITY) return most;
    total = 0;
    for (int i = 0; i < n; i++) total += exp(terms[i] - most);
    return most + log(total);
}

/* A symbol over a stretch. */
static double symbol_value(const rws_parse_chart *c, rws_symbol s, int from, int to)
{
    if (!s.word) return c->values[cell(c, s.id, from, to)];
    return to == from + 1 && c->tokens[from] == s.id ? one(c) : zero(c);
}

/* The first l >= 1 symbols of production r over a stretch. */
static double prefix_value(const rws_parse_chart *c, int r, int l, int from, int to)
{
    if (l == 1) return symbol_value(c, c->g->productions[r].right[0], from, to);
    return c->values[cell(c, c->steps[r] + l - 2, from, to)];
}

/* Production r over a stretch: its weight times that of its right-hand side. */
static double production_value(const rws_parse_chart *c, int r, int from, int to)
{
    return times(c, c->weight[r], prefix_value(c, r, c->g->productions[r].n_right, from, to));
}

/* The term of a step: its first l - 1 symbols up to m, and symbol l from there. */
static double step_term(const rws_parse_chart *c, int r, int l, int from, int m, int to)
{
    return times(c, prefix_value(c, r, l - 1, from, m), symbol_value(c, c->g->productions[r].right[l - 1], m, to));
}

/* The smallest m for which step_term is not zero; the largest is to - 1. A word as symbol l has length 1. */
static int first_split(const rws_parse_chart *c, int r, int l, int from, int to)
{
    return c->g->productions[r].right[l - 1].word ? to - 1 : from + l - 1;
}

static void fill_stretch(rws_parse_chart *c, int from, int to, double *terms)
{
    const rws_grammar *g = c->g;
    for (int r = 0; r < g->n_productions; r++)
        for (int l = 2; l <= g->productions[r].n_right; l++) {
            int n = 0;
            for (int m = first_split(c, r, l, from, to); m < to && to - from >= l; m++)
                terms[n++] = step_term(c, r, l, from, m, to);
            c->values[cell(c, c->steps[r] + l - 2, from, to)] = sum(c, terms, n);
        }
    for (int u = 0; u < g->n_nonterminals; u++) {
        const int a = g->unit_order[u];
        int       n = 0;
        for (int r = g->first[a]; r < g->first[a + 1]; r++) terms[n++] = production_value(c, r, from, to);
        c->values[cell(c, a, from, to)] = sum(c, terms, n);
    }
}

/* An empty chart for n words; NULL without memory. */
static rws_parse_chart *chart_alloc(const rws_grammar *g, int n, size_t n_planes)
{
    rws_parse_chart *c = get(1, sizeof *c);
    if (!c) return NULL;
    c->g = g;
    c->n = n;
    c->n_planes = (int)n_planes;
    c->tokens = get((size_t)n, sizeof *c->tokens);
    c->weight = get((size_t)g->n_productions, sizeof *c->weight);
    c->steps = get((size_t)g->n_productions, sizeof *c->steps);
    c->values = get(n_planes * ((size_t)n + 1) * ((size_t)n + 1), sizeof *c->values);
    if (c->tokens && c->weight && c->steps && c->values) return c;
    rws_parse_chart_free(c);
    return NULL;
}

rws_status rws_parse_chart_new(const rws_grammar *g, rws_parse_kind kind, const double *log_p, const int *tokens, int n,
                               rws_parse_chart **out, rws_error *err)
{
    *out = NULL;
    RWS_CHECK(n >= 0);
    size_t n_planes = (size_t)g->n_nonterminals;
    for (int r = 0; r < g->n_productions; r++) {
        n_planes += (size_t)g->productions[r].n_right - 1;
        if (log_p && (isnan(log_p[r]) || log_p[r] == INFINITY))
            return rws_fail(err, RWS_BROKEN, "The log-probability of production %d, a rule for %s, is %g.", r,
                            g->nonterminals[g->productions[r].left], log_p[r]);
    }
    const double bytes = (double)n_planes * ((double)n + 1) * ((double)n + 1) * sizeof(double);
    if (bytes > 0x1p30)
        return rws_fail(err, RWS_BAD_INPUT, "A sentence of %d words needs %.3g GiB to be parsed exactly, more than 1.",
                        n, bytes / 0x1p30);

    rws_parse_chart *c = chart_alloc(g, n, n_planes);
    double          *terms = get((size_t)(n > g->max_productions ? n : g->max_productions), sizeof *terms);
    if (!c || !terms) {
        rws_parse_chart_free(c);
        free(terms);
        return rws_no_memory(err, "parsing a sentence");
    }
    c->kind = kind;
    if (n > 0) memcpy(c->tokens, tokens, sizeof *tokens * (size_t)n);
    for (int r = 0, plane = g->n_nonterminals; r < g->n_productions; r++) {
        const double weight = log_p ? log_p[r] : log(g->productions[r].p);
        c->weight[r] = kind == RWS_PARSE_COUNT ? weight > -INFINITY : weight;
        c->steps[r] = plane;
        plane += g->productions[r].n_right - 1;
    }
    for (int length = 1; length <= n; length++)
        for (int from = 0; from + length <= n; from++) fill_stretch(c, from, from + length, terms);
    free(terms);
    *out = c;
    return RWS_OK;
}

void rws_parse_chart_free(rws_parse_chart *c)
{
    if (!c) return;
    free(c->tokens);
    free(c->weight);
    free(c->steps);
    free(c->values);
    free(c);
}

double rws_parse_chart_value(const rws_parse_chart *c, int a, int from, int to)
{
    RWS_CHECK(a >= 0 && a < c->g->n_nonterminals && 0 <= from && from < to && to <= c->n);
    return c->values[cell(c, a, from, to)];
}

double rws_parse_chart_total(const rws_parse_chart *c)
{
    return c->n > 0 ? c->values[cell(c, c->g->start, 0, c->n)] : zero(c);
}

/* ------------------------------------------------------------------------------------------------------- walking
 * down */

static void give(const rws_parse_chart *c, double *mass, rws_symbol s, int from, int to, double share)
{
    if (!s.word) mass[cell(c, s.id, from, to)] += share;
}

/* A non-terminal passes its mass at a stretch on to its productions: to the only symbol, or to the last step. */
static void pass_to_productions(const rws_parse_chart *c, int a, int from, int to, double *mass, double *counts)
{
    const rws_grammar *g = c->g;
    const double       here = mass[cell(c, a, from, to)], all = c->values[cell(c, a, from, to)];
    for (int r = g->first[a]; here > 0 && r < g->first[a + 1]; r++) {
        const double share = here * exp(production_value(c, r, from, to) - all);
        const int    k = g->productions[r].n_right;
        counts[r] += share;
        if (k == 1) give(c, mass, g->productions[r].right[0], from, to, share);
        else mass[cell(c, c->steps[r] + k - 2, from, to)] += share;
    }
}

/* Step l of production r, the first l symbols of its right side, passes its mass on to symbol l and to step l - 1. */
static void pass_to_parts(const rws_parse_chart *c, int r, int l, int from, int to, double *mass)
{
    const rws_symbol *right = c->g->productions[r].right;
    const size_t      at = cell(c, c->steps[r] + l - 2, from, to);
    if (!(mass[at] > 0)) return;
    for (int m = first_split(c, r, l, from, to); m < to; m++) {
        const double share = mass[at] * exp(step_term(c, r, l, from, m, to) - c->values[at]);
        if (!(share > 0)) continue;
        give(c, mass, right[l - 1], m, to, share);
        if (l == 2) give(c, mass, right[0], from, m, share);
        else mass[cell(c, c->steps[r] + l - 3, from, m)] += share;
    }
}

/* mass[cell] is the expected number of nodes (or steps) at a cell, given the sentence: inside times outside over p(x).
 * A cell's mass is complete once all longer stretches, and the non-terminals after it in unit_order, have passed theirs
 * on. A cell passes its mass on in shares; each share is the quotient of a term and its sum, so nothing under- or
 * overflows. */
rws_status rws_parse_chart_expected_counts(const rws_parse_chart *c, double *counts, rws_error *err)
{
    const rws_grammar *g = c->g;
    RWS_CHECK(c->kind == RWS_PARSE_SUM && rws_parse_chart_total(c) > -INFINITY);
    double *mass = get((size_t)c->n_planes * ((size_t)c->n + 1) * ((size_t)c->n + 1), sizeof *mass);
    if (!mass) return rws_no_memory(err, "the expected counts of a sentence's rules");
    for (int r = 0; r < g->n_productions; r++) counts[r] = 0;
    mass[cell(c, g->start, 0, c->n)] = 1;

    for (int length = c->n; length >= 1; length--)
        for (int from = 0, to = length; to <= c->n; from++, to++) {
            for (int u = g->n_nonterminals - 1; u >= 0; u--)
                pass_to_productions(c, g->unit_order[u], from, to, mass, counts);
            for (int r = 0; r < g->n_productions; r++)
                for (int l = g->productions[r].n_right; l >= 2; l--) pass_to_parts(c, r, l, from, to, mass);
        }
    free(mass);
    return RWS_OK;
}

/* A node still to be written; in a COUNT chart, index is the number of its tree. */
typedef struct {
    rws_symbol symbol;
    int        from, to;
    double     index;
} node;

/* Whether the tree goes through this term. In a MAX chart that is the first term that equals the maximum; in a COUNT
 * chart the term whose trees include number *index, from which the trees of the terms before are subtracted. */
static bool follow(const rws_parse_chart *c, double term, double whole, double *index)
{
    if (c->kind == RWS_PARSE_MAX) return term == whole;
    if (*index < term) return true;
    *index -= term;
    return false;
}

/* Writes the tree that `follow` leads to. Number i of x * y trees of a product is number floor(i / y) of the left one
 * and number i mod y of the right one. */
static rws_status descend(const rws_parse_chart *c, double index, rws_sequence *tree, rws_error *err)
{
    const rws_grammar *g = c->g;
    bool               memory = true; /* whether memory sufficed so far */
    tree->n = 0;

    /* The stretches on the stack are disjoint, so there are at most n. */
    node *todo = get((size_t)c->n + 1, sizeof *todo);
    int   n_todo = 0;
    if (!todo) return rws_no_memory(err, "a tree");
    todo[n_todo++] = (node){{.word = false, .id = g->start}, 0, c->n, index};
    while (n_todo > 0 && memory) {
        node at = todo[--n_todo];
        if (at.symbol.word) continue;

        const int    a = at.symbol.id;
        const double whole = c->values[cell(c, a, at.from, at.to)];
        int          r = g->first[a];
        while (r < g->first[a + 1] && !follow(c, production_value(c, r, at.from, at.to), whole, &at.index)) r++;
        RWS_CHECK(r < g->first[a + 1]);
        memory = rws_sequence_push(tree, r);

        /* From the last symbol to the first, so that the first ends up on top. */
        const rws_symbol *right = g->productions[r].right;
        for (int l = g->productions[r].n_right; l >= 2; l--) {
            const double step = c->values[cell(c, c->steps[r] + l - 2, at.from, at.to)];
            int          m = first_split(c, r, l, at.from, at.to);
            while (m < at.to && !follow(c, step_term(c, r, l, at.from, m, at.to), step, &at.index)) m++;
            RWS_CHECK(m < at.to);
            const double n_right = c->kind == RWS_PARSE_COUNT ? symbol_value(c, right[l - 1], m, at.to) : 1;
            todo[n_todo++] = (node){right[l - 1], m, at.to, fmod(at.index, n_right)};
            at.index = floor(at.index / n_right);
            at.to = m;
        }
        todo[n_todo++] = (node){right[0], at.from, at.to, at.index};
    }
    free(todo);
    return memory ? RWS_OK : rws_no_memory(err, "a tree");
}

rws_status rws_parse_chart_best(const rws_parse_chart *c, rws_sequence *tree, rws_error *err)
{
    RWS_CHECK(c->kind == RWS_PARSE_MAX && rws_parse_chart_total(c) > -INFINITY);
    return descend(c, 0, tree, err);
}

rws_status rws_parse_chart_tree(const rws_parse_chart *c, double i, rws_sequence *tree, rws_error *err)
{
    RWS_CHECK(c->kind == RWS_PARSE_COUNT && rws_parse_chart_total(c) < 0x1p53);
    RWS_CHECK(i >= 0 && i < rws_parse_chart_total(c) && i == floor(i));
    return descend(c, i, tree, err);
}

/* ------------------------------------------------------------------------------------------------------ in one call */

rws_status rws_parse_log_p(const rws_grammar *g, const double *log_p, const int *tokens, int n, double *log_evidence,
                           rws_error *err)
{
    rws_parse_chart *c;
    RWS_TRY(rws_parse_chart_new(g, RWS_PARSE_SUM, log_p, tokens, n, &c, err));
    *log_evidence = rws_parse_chart_total(c);
    rws_parse_chart_free(c);
    return RWS_OK;
}

/* The first max_trees trees of a COUNT chart, with their probabilities. */
static rws_status list_trees(const rws_parse_chart *c, const double *log_p, int max_trees, rws_parses *out,
                             rws_error *err)
{
    out->n_all = rws_parse_chart_total(c);
    if (out->n_all >= 0x1p53) return RWS_OK;
    const int n = out->n_all < max_trees ? (int)out->n_all : max_trees;
    out->trees = get((size_t)n, sizeof *out->trees);
    out->posterior = get((size_t)n, sizeof *out->posterior);
    if (!out->trees || !out->posterior) return rws_no_memory(err, "the trees of a sentence");
    for (out->n_trees = 0; out->n_trees < n;) {
        const int     i = out->n_trees++;
        rws_sequence *tree = &out->trees[i];
        double        log_tree = 0;
        RWS_TRY(rws_parse_chart_tree(c, i, tree, err));
        for (int k = 0; k < tree->n; k++)
            log_tree += log_p ? log_p[tree->at[k]] : log(c->g->productions[tree->at[k]].p);
        out->posterior[i] = exp(log_tree - out->log_evidence);
    }
    return RWS_OK;
}

rws_status rws_parses_init(rws_parses *out, const rws_grammar *g, const double *log_p, const int *tokens, int n,
                           int max_trees, rws_error *err)
{
    rws_parse_chart *c;
    RWS_CHECK(max_trees >= 0);
    *out = (rws_parses){.log_evidence = -INFINITY};
    RWS_TRY(rws_parse_log_p(g, log_p, tokens, n, &out->log_evidence, err));
    RWS_TRY(rws_parse_chart_new(g, RWS_PARSE_COUNT, log_p, tokens, n, &c, err));
    const rws_status status = list_trees(c, log_p, max_trees, out, err);
    rws_parse_chart_free(c);
    return status;
}

void rws_parses_release(rws_parses *p)
{
    for (int i = 0; i < p->n_trees; i++) rws_sequence_release(&p->trees[i]);
    free(p->trees);
    free(p->posterior);
    *p = (rws_parses){0};
}
