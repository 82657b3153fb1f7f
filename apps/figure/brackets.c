/* brackets.c - reading, placing, printing.
 *
 * A subtree takes a stretch of the line that is as wide as those of its children together, or as its own label if that
 * is wider; a node stands in the middle between its first and its last child. Nodes are in pre-order, so moving a
 * subtree is one loop.
 */
#include "figure/brackets.h"

#include <glib.h>
#include <math.h>
#include <string.h>

void rws__brackets_release(rws_brackets *t)
{
    for (int i = 0; i < t->n; i++) g_free(t->nodes[i].label);
    g_free(t->nodes);
    *t = (rws_brackets){0};
}

/* ---- reading */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

bool rws__brackets_read(const char *text, rws_brackets *out)
{
    GArray     *nodes = g_array_new(false, true, sizeof(rws_bracket));
    int         open = -1; /* the innermost node that is not closed */
    const char *at = skip_blanks(text);
    bool        good = true;
    *out = (rws_brackets){0};
    while (good && *at) {
        if (*at == ')') {
            good = open >= 0;
            if (!good) break;
            rws_bracket *n = &g_array_index(nodes, rws_bracket, open);
            n->size = (int)nodes->len - open;
            open = n->parent;
            at = skip_blanks(at + 1);
            continue;
        }
        const bool   brackets = *at == '(';
        const char  *name = skip_blanks(at + brackets);
        const size_t length = strcspn(name, " \t\r\n()");
        good = length > 0 && (open >= 0 || (brackets && nodes->len == 0)); /* one root */
        if (!good) break;
        if (open >= 0) g_array_index(nodes, rws_bracket, open).n_below++;
        rws_bracket n = {.label = g_strndup(name, length), .word = !brackets, .parent = open, .size = 1};
        n.depth = open >= 0 ? g_array_index(nodes, rws_bracket, open).depth + 1 : 0;
        out->n_levels = MAX(out->n_levels, n.depth + 1);
        g_array_append_val(nodes, n);
        if (brackets) open = (int)nodes->len - 1;
        at = skip_blanks(name + length);
    }
    good = good && open < 0 && nodes->len > 0;
    out->n = (int)nodes->len;
    out->nodes = (rws_bracket *)(void *)g_array_free(nodes, false);
    if (!good) rws__brackets_release(out);
    return good;
}

/* ---- placing */

static void shift(rws_brackets *t, int i, double by)
{
    for (int k = i; k < i + t->nodes[i].size; k++) t->nodes[k].x += by;
}

/* Places subtrees from the leaves up: each is first placed with its left edge at 0, and then moved by its parent. */
void rws__brackets_place(rws_brackets *t, double gap, bool whole)
{
    double *width = g_new0(double, t->n);
    for (int i = t->n - 1; i >= 0; i--) {
        rws_bracket *n = &t->nodes[i];
        double       used = 0, first = 0, last = 0;
        for (int k = i + 1; k < i + n->size; k += t->nodes[k].size) {
            if (k > i + 1) used += gap;
            shift(t, k, used);
            used += width[k];
            if (k == i + 1) first = t->nodes[k].x;
            last = t->nodes[k].x;
        }
        n->x = n->n_below ? (first + last) / 2 : n->width / 2;
        if (whole) n->x = floor(n->x);
        const double left = n->x - (whole ? floor(n->width / 2) : n->width / 2);
        if (left < 0) {
            shift(t, i, -left);
            used -= n->n_below ? left : 0;
        }
        width[i] = fmax(used, fmax(left, 0) + n->width);
    }
    t->width = width[0];
    g_free(width);
}

/* ---- on a terminal */

enum { DEEPEST = 400, MAX_NODES = 4000 }; /* limits of a tree that is printed from the top down */

/* The number of characters; wide characters, which take two columns, are rare in trees and count as one. */
static int columns_of(const char *text)
{
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

typedef struct {
    const char *down, *across, *left, *right, *up, *tee, *cross, *fork, *last, *bar;
} pen;

static const pen box_pen = {"│", "─", "┌", "┐", "┴", "┬", "┼", "├─ ", "└─ ", "│  "};
static const pen ascii_pen = {"|", "-", "+", "+", "+", "+", "+", "|- ", "`- ", "|  "};

typedef struct {
    GString *text;
    int      column;
} line;

static void go_to(line *l, int column)
{
    for (; l->column < column; l->column++) g_string_append_c(l->text, ' ');
}

static void put(line *l, int column, const char *piece, int columns)
{
    go_to(l, column);
    g_string_append(l->text, piece);
    l->column += columns;
}

/* Draws the lines from a node to its children. */
static void put_branches(line *l, const rws_brackets *t, int i, const pen *p)
{
    const rws_bracket *n = &t->nodes[i];
    const int          middle = (int)n->x;
    if (n->n_below == 1) {
        put(l, middle, p->down, 1);
        return;
    }
    for (int k = i + 1, done = 0; k < i + n->size; k += t->nodes[k].size, done++) {
        const int at = (int)t->nodes[k].x;
        for (int c = done ? l->column : at; c < at; c++) put(l, c, c == middle ? p->up : p->across, 1);
        const char *mark = done == 0 ? p->left : done == n->n_below - 1 ? p->right : at == middle ? p->cross : p->tee;
        put(l, at, mark, 1);
    }
}

static void print_down(const rws_brackets *t, const pen *p, FILE *file)
{
    line l = {g_string_new(NULL), 0};
    for (int row = 0; row < 2 * t->n_levels - 1; row++) {
        g_string_truncate(l.text, 0);
        l.column = 0;
        for (int i = 0; i < t->n; i++) {
            const rws_bracket *n = &t->nodes[i];
            if (n->depth != row / 2) continue;
            if (row % 2 == 0) put(&l, (int)(n->x - floor(n->width / 2)), n->label, (int)n->width);
            else if (n->n_below) put_branches(&l, t, i, p);
        }
        fprintf(file, "%s\n", l.text->str);
    }
    g_string_free(l.text, true);
}

/* One line for each node, but for a node's only word, which stands on its line. */
static void print_across(const rws_brackets *t, const pen *p, FILE *file)
{
    GArray *last = g_array_sized_new(false, true, sizeof(bool), (guint)t->n_levels); /* by level: no sibling follows */
    g_array_set_size(last, (guint)t->n_levels);
    for (int i = 0; i < t->n; i++) {
        const rws_bracket *n = &t->nodes[i], *up = n->parent >= 0 ? &t->nodes[n->parent] : NULL;
        if (n->word && up && up->n_below == 1) continue;
        g_array_index(last, bool, n->depth) = up && i + n->size == n->parent + up->size;
        for (int d = 1; d <= n->depth; d++) {
            const bool ends = g_array_index(last, bool, d);
            fputs(d == n->depth ? (ends ? p->last : p->fork) : ends ? "   " : p->bar, file);
        }
        fputs(n->label, file);
        if (n->n_below == 1 && t->nodes[i + 1].word) fprintf(file, " %s", t->nodes[i + 1].label);
        fputc('\n', file);
    }
    g_array_free(last, true);
}

void rws__brackets_print(const char *text, int columns, bool unicode, FILE *file)
{
    const pen   *p = unicode ? &box_pen : &ascii_pen;
    rws_brackets t;
    if (!rws__brackets_read(text, &t)) {
        fprintf(file, "%s\n", text);
        return;
    }
    bool fits = t.n <= MAX_NODES && t.n_levels <= DEEPEST;
    for (int i = 0; i < t.n && fits; i++) t.nodes[i].width = columns_of(t.nodes[i].label);
    if (fits) rws__brackets_place(&t, 2, true);
    if (fits && t.width <= columns) print_down(&t, p, file);
    else print_across(&t, p, file);
    rws__brackets_release(&t);
}
