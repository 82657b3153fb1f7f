/* tree.c - reading brackets, placing nodes, drawing.
 *
 * Nodes stand in pre-order, so those below node i are i + 1 … i + size - 1, and moving a subtree is one loop. A subtree
 * has a stretch of the line for itself, as wide as its children's together or as its own label; a node stands in the
 * middle between its first and its last child.
 */
#include "figure/tree.h"

#include "base/error.h"
#include "base/quote.h"
#include "figure/canvas.h"
#include "figure/frame.h"
#include "figure/style.h"

#include <glib.h>
#include <math.h>
#include <string.h>

typedef struct {
    char  *label;
    bool   word;                  /* nothing was in brackets */
    int    parent, size, n_below; /* size: of the subtree, itself included; n_below: children */
    int    depth;
    double width, x; /* of the label; its middle */
} node;

typedef struct {
    node  *nodes;
    int    n, n_levels;
    double width;
} tree;

static void tree_release(tree *t)
{
    for (int i = 0; i < t->n; i++) g_free(t->nodes[i].label);
    g_free(t->nodes);
    *t = (tree){0};
}

/* ---- reading */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Returns false, with nothing to release, if the text is not one tree. */
static bool tree_read(const char *text, tree *out)
{
    GArray     *nodes = g_array_new(false, true, sizeof(node));
    int         open = -1; /* the innermost node that is not closed */
    const char *at = skip_blanks(text);
    bool        good = true;
    *out = (tree){0};
    while (good && *at) {
        if (*at == ')') {
            good = open >= 0;
            if (!good) break;
            node *n = &g_array_index(nodes, node, open);
            n->size = (int)nodes->len - open;
            open = n->parent;
            at = skip_blanks(at + 1);
            continue;
        }
        const bool   brackets = *at == '(';
        const char  *name = skip_blanks(at + brackets);
        const size_t length = strcspn(name, " \t\r\n()");
        good = length > 0 && (open >= 0 || nodes->len == 0);
        if (!good) break;
        if (open >= 0) g_array_index(nodes, node, open).n_below++;
        node n = {.label = g_strndup(name, length), .word = !brackets, .parent = open, .size = 1};
        n.depth = open >= 0 ? g_array_index(nodes, node, open).depth + 1 : 0;
        out->n_levels = MAX(out->n_levels, n.depth + 1);
        g_array_append_val(nodes, n);
        if (brackets) open = (int)nodes->len - 1;
        at = skip_blanks(name + length);
    }
    good = good && open < 0 && nodes->len > 0;
    out->n = (int)nodes->len;
    out->nodes = (node *)(void *)g_array_free(nodes, false);
    if (!good) tree_release(out);
    return good;
}

/* ---- placing */

static void shift(tree *t, int i, double by)
{
    for (int k = i; k < i + t->nodes[i].size; k++) t->nodes[k].x += by;
}

/* From the leaves up, each subtree with its left edge at 0 first; then it is moved to where it goes. */
static void place(tree *t, double gap, bool whole)
{
    double *width = g_new0(double, t->n);
    for (int i = t->n - 1; i >= 0; i--) {
        node  *n = &t->nodes[i];
        double used = 0, first = 0, last = 0;
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

/* Columns are characters; those that are wider are rare in trees. */
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

/* What leads from a node to those below it. */
static void put_branches(line *l, const tree *t, int i, const pen *p)
{
    const node *n = &t->nodes[i];
    const int   middle = (int)n->x;
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

static void print_down(const tree *t, const pen *p, FILE *file)
{
    line l = {g_string_new(NULL), 0};
    for (int row = 0; row < 2 * t->n_levels - 1; row++) {
        g_string_truncate(l.text, 0);
        l.column = 0;
        for (int i = 0; i < t->n; i++) {
            const node *n = &t->nodes[i];
            if (n->depth != row / 2) continue;
            if (row % 2 == 0) put(&l, (int)(n->x - floor(n->width / 2)), n->label, (int)n->width);
            else if (n->n_below) put_branches(&l, t, i, p);
        }
        fprintf(file, "%s\n", l.text->str);
    }
    g_string_free(l.text, true);
}

/* One line for each node, but for a node's only word, which stands on its line. */
static void print_across(const tree *t, const pen *p, FILE *file)
{
    GArray *last = g_array_sized_new(false, true, sizeof(bool), (guint)t->n_levels); /* by level: no sibling follows */
    g_array_set_size(last, (guint)t->n_levels);
    for (int i = 0; i < t->n; i++) {
        const node *n = &t->nodes[i], *up = n->parent >= 0 ? &t->nodes[n->parent] : NULL;
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

void rws_tree_print(const char *text, int columns, bool unicode, FILE *file)
{
    const pen *p = unicode ? &box_pen : &ascii_pen;
    tree       t;
    if (!tree_read(text, &t)) {
        fprintf(file, "%s\n", text);
        return;
    }
    bool fits = t.n <= 20 * columns && t.n_levels <= RWS_TREE_DEEPEST;
    for (int i = 0; i < t.n && fits; i++) t.nodes[i].width = columns_of(t.nodes[i].label);
    if (fits) place(&t, 2, true);
    if (fits && t.width <= columns) print_down(&t, p, file);
    else print_across(&t, p, file);
    tree_release(&t);
}

/* ---- in a picture: distances in points */

static const double EDGE = 8, GAP = 7, LEVEL = 23, CLEAR = 1.5, BETWEEN = 22, CAPTION_GAP = 7, ROW_GAP = 16,
                    TITLE_GAP = 9;

static rws_text look_of(const node *n)
{
    return (rws_text){.size = RWS_SIZE_TICK, .bold = n->word, .colour = RWS_INK};
}

static rws_text caption_look(void)
{
    return (rws_text){.size = RWS_SIZE_LABEL, .colour = RWS_GREY};
}

typedef struct {
    tree   t;
    double x, y;                          /* its upper left corner */
    double width, caption_height, height; /* with the caption */
} placed;

static void measure(rws_canvas *canvas, const rws_tree_item *item, placed *out)
{
    for (int i = 0; i < out->t.n; i++) {
        const rws_text look = look_of(&out->t.nodes[i]);
        rws_canvas_measure(canvas, out->t.nodes[i].label, &look, &out->t.nodes[i].width, NULL);
    }
    place(&out->t, GAP, false);
    double         caption_width = 0;
    const rws_text look = caption_look();
    if (item->caption) rws_canvas_measure(canvas, item->caption, &look, &caption_width, &out->caption_height);
    out->width = fmax(out->t.width, caption_width);
}

/* Rows of trees from left to right, each row centred on the page. Returns where the last one ends. */
static double arrange(placed *list, int n, double top, double *page)
{
    for (int i = 0; i < n; i++) *page = fmax(*page, list[i].width + 2 * EDGE);
    for (int i = 0; i < n;) {
        double width = list[i].width, height = 0;
        int    end = i + 1;
        while (end < n && width + BETWEEN + list[end].width <= *page - 2 * EDGE) width += BETWEEN + list[end++].width;
        for (int k = i; k < end; k++) height = fmax(height, (list[k].t.n_levels - 1) * LEVEL + 12);
        double x = (*page - width) / 2, lowest = 0;
        for (int k = i; k < end; k++) {
            list[k].x = x;
            list[k].y = top;
            list[k].height = height;
            x += list[k].width + BETWEEN;
            lowest = fmax(lowest, list[k].caption_height ? CAPTION_GAP + list[k].caption_height : 0);
        }
        top += height + lowest + (end < n ? ROW_GAP : 0);
        i = end;
    }
    return top;
}

static void draw_tree(rws_canvas *canvas, const placed *p, const rws_tree_item *item)
{
    const rws_colour words = item->method ? rws_colour_ink(rws_style_find(item->method)->colour) : RWS_INK;
    cairo_t         *cairo = rws_canvas_cairo(canvas);
    const double     left = p->x + (p->width - p->t.width) / 2;
    double           tall;
    rws_canvas_measure(canvas, "Xg", &(rws_text){.size = RWS_SIZE_TICK}, NULL, &tall);
    rws_canvas_colour(canvas, RWS_GREY, 1);
    cairo_set_line_width(cairo, 0.7);
    for (int i = 1; i < p->t.n; i++) {
        const node *n = &p->t.nodes[i], *up = &p->t.nodes[n->parent];
        cairo_move_to(cairo, left + up->x, p->y + up->depth * LEVEL + tall + CLEAR);
        cairo_line_to(cairo, left + n->x, p->y + n->depth * LEVEL - CLEAR);
    }
    cairo_stroke(cairo);
    for (int i = 0; i < p->t.n; i++) {
        const node *n = &p->t.nodes[i];
        rws_text    look = look_of(n);
        if (n->word) look.colour = words;
        rws_canvas_text(canvas, left + n->x, p->y + n->depth * LEVEL, 0.5, 0, n->label, &look);
    }
    rws_text look = caption_look();
    look.wrap = p->width + 1; /* centred */
    if (item->caption)
        rws_canvas_text(canvas, p->x + p->width / 2, p->y + p->height + CAPTION_GAP, 0.5, 0, item->caption, &look);
}

static rws_status draw(const rws_trees *trees, placed *list, rws_canvas *canvas, rws_error *err)
{
    double   page = trees->width > 0 ? trees->width : RWS_PAGE_WIDTH, top = EDGE;
    rws_text title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK};
    for (int i = 0; i < trees->n; i++) measure(canvas, &trees->items[i], &list[i]);
    if (trees->title) {
        double width, height;
        rws_canvas_measure(canvas, trees->title, &title, &width, &height);
        page = fmax(page, width + 2 * EDGE);
        top += height + TITLE_GAP;
    }
    const double end = arrange(list, trees->n, top, &page);
    RWS_TRY(rws_canvas_page(canvas, page, end + EDGE, trees->title, err));
    if (trees->title) rws_canvas_text(canvas, page / 2, EDGE, 0.5, 0, trees->title, &title);
    for (int i = 0; i < trees->n; i++) draw_tree(canvas, &list[i], &trees->items[i]);
    return RWS_OK;
}

rws_status rws_trees_draw(const rws_trees *trees, const char *path, rws_error *err)
{
    RWS_CHECK(trees->n >= 0);
    rws_canvas *canvas;
    RWS_TRY(rws_canvas_new(path, trees->dpi, &canvas, err));
    placed    *list = g_new0(placed, trees->n + 1);
    rws_status status = RWS_OK;
    for (int i = 0; i < trees->n && status == RWS_OK; i++)
        if (!tree_read(trees->items[i].text, &list[i].t) || list[i].t.n_levels > RWS_TREE_DEEPEST)
            status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be drawn: it is not a tree, or too deep.",
                              rws_quote(trees->items[i].text).text);
    if (status == RWS_OK) status = draw(trees, list, canvas, err);
    if (status == RWS_OK) status = rws_canvas_save(canvas, err);
    else rws_canvas_free(canvas);
    for (int i = 0; i < trees->n; i++) tree_release(&list[i].t);
    g_free(list);
    return status;
}

size_t rws_tree_words(const char *text, char *words, size_t room)
{
    tree   t;
    size_t n = 0;
    if (room) words[0] = '\0';
    if (!tree_read(text, &t)) return 0;
    for (int i = 0; i < t.n; i++)
        if (t.nodes[i].word)
            n += (size_t)g_snprintf(words + MIN(n, room), (gulong)(n < room ? room - n : 0), "%s%s", n ? " " : "",
                                    t.nodes[i].label);
    tree_release(&t);
    return n;
}
