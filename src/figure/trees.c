#include "figure/trees.h"

#include "base/error.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>
#include <math.h>
#include <string.h>

/* Distances in points. */
static const double EDGE = 6, TITLE_GAP = 8, CAPTION_GAP = 3, LEVEL = 22, WORD_GAP = 7, APART = 18, ROW_GAP = 14;

/* Nothing is drawn smaller than this share of its size. */
static const double LEAST = 0.25;

enum { DEEPEST = 1000, MOST_NODES = 20000 };

/* A symbol with its children, or a word, which has none. */
typedef struct {
    char  *label;
    bool   word;
    int    parent, depth;
    guint  end;   /* the first node that is not below it */
    double width; /* of the label */
    double x;     /* its middle, from the left of the tree */
} node;

typedef struct {
    GArray *nodes; /* of node, parents before children, from left to right */
    double  width, height, caption_height, scale;
    int     depth;
} layout;

/* ---- reading */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* The nodes of the text in pre-order; false if it is not a tree. */
static bool read_nodes(const char *text, GArray *nodes)
{
    int parent = -1, depth = 0;
    while (*text) {
        if (is_blank(*text)) {
            text++;
            continue;
        }
        if (*text == ')') {
            if (parent < 0) return false;
            node *done = &g_array_index(nodes, node, parent);
            done->end = nodes->len;
            parent = done->parent;
            depth--;
            text++;
            continue;
        }
        const bool open = *text == '(';
        if (parent < 0 && (nodes->len > 0 || !open)) return false; /* one root, and it is a symbol */
        if (open) text++;
        const size_t length = strcspn(text, " \t\n()");
        if (length == 0 || depth == DEEPEST || nodes->len == MOST_NODES) return false;
        const node one = {
            .label = g_strndup(text, length), .word = !open, .parent = parent, .depth = depth, .end = nodes->len + 1};
        g_array_append_val(nodes, one);
        text += length;
        if (open) {
            parent = (int)nodes->len - 1;
            depth++;
        }
    }
    return nodes->len > 0 && parent < 0;
}

static void free_nodes(GArray *nodes)
{
    for (guint i = 0; i < nodes->len; i++) g_free(g_array_index(nodes, node, i).label);
    g_array_free(nodes, TRUE);
}

size_t rws_trees_words(const char *text, char *words, size_t room)
{
    GArray *nodes = g_array_new(FALSE, FALSE, sizeof(node));
    size_t  n = 0;
    if (room) words[0] = '\0';
    if (read_nodes(text, nodes)) {
        for (guint i = 0; i < nodes->len; i++) {
            const node *one = &g_array_index(nodes, node, i);
            if (!one->word) continue;
            n += (size_t)g_snprintf(words + MIN(n, room), (gulong)(n < room ? room - n : 0), "%s%s", n ? " " : "",
                                    one->label);
        }
    }
    free_nodes(nodes);
    return n;
}

/* ---- places */

static rws_text look_of(const node *one)
{
    return (rws_text){.size = one->word ? 8.5 : 8, .colour = one->word ? RWS_INK : RWS_GREY};
}

/* Lays out node i and all below it from `left` on. Children stand side by side, a symbol over the middle of its first
 * and last; if its own label sticks out at the left, all of it moves. Returns where it ends. */
static double place(layout *l, guint i, double left)
{
    node  *one = &g_array_index(l->nodes, node, i);
    double right = left - WORD_GAP, first = 0;
    if (i + 1 == one->end) {
        one->x = left + one->width / 2;
        return left + one->width;
    }
    for (guint child = i + 1; child < one->end; child = g_array_index(l->nodes, node, child).end) {
        right = place(l, child, right + WORD_GAP);
        if (child == i + 1) first = g_array_index(l->nodes, node, child).x;
        one->x = (first + g_array_index(l->nodes, node, child).x) / 2;
    }
    const double out = left - (one->x - one->width / 2);
    for (guint k = i; out > 0 && k < one->end; k++) g_array_index(l->nodes, node, k).x += out;
    return MAX(right + MAX(out, 0), one->x + one->width / 2);
}

static void measure(rws_canvas *canvas, const rws_drawn_tree *tree, double page, layout *l)
{
    double caption = 0;
    for (guint i = 0; i < l->nodes->len; i++) {
        node          *one = &g_array_index(l->nodes, node, i);
        const rws_text look = look_of(one);
        rws_canvas_measure(canvas, one->label, &look, &one->width, NULL);
        l->depth = MAX(l->depth, one->depth);
    }
    if (tree->caption)
        rws_canvas_measure(canvas, tree->caption, &(rws_text){.size = RWS_SIZE_PANEL}, &caption, &l->caption_height);
    const double width = place(l, 0, 0);
    l->scale = MAX(MIN(1, (page - 2 * EDGE) / width), LEAST);
    l->width = MAX(width * l->scale, caption);
    l->height = (l->depth * LEVEL + 12) * l->scale + (tree->caption ? l->caption_height + CAPTION_GAP : 0);
}

/* ---- drawing */

static void draw_tree(rws_canvas *canvas, const rws_drawn_tree *tree, const layout *l, double x, double y)
{
    cairo_t   *cairo = rws_canvas_cairo(canvas);
    rws_colour words = tree->method ? rws_colour_ink(rws_style_find(tree->method)->colour) : RWS_INK;
    double     right = 0;
    for (guint i = 0; i < l->nodes->len; i++) {
        const node *one = &g_array_index(l->nodes, node, i);
        right = MAX(right, one->x + one->width / 2);
    }
    x += (l->width - right * l->scale) / 2;
    if (tree->caption) {
        rws_canvas_text(canvas, x + g_array_index(l->nodes, node, 0).x * l->scale, y, 0.5, 0, tree->caption,
                        &(rws_text){.size = RWS_SIZE_PANEL, .bold = true, .colour = RWS_INK});
        y += l->caption_height + CAPTION_GAP;
    }
    cairo_set_line_width(cairo, 0.6);
    for (guint i = 0; i < l->nodes->len; i++) {
        const node *one = &g_array_index(l->nodes, node, i);
        if (one->parent < 0) continue;
        const node *up = &g_array_index(l->nodes, node, one->parent);
        /* from below the one label to above the other */
        rws_canvas_colour(canvas, RWS_GREY, 1);
        cairo_move_to(cairo, x + up->x * l->scale, y + (up->depth * LEVEL + 11) * l->scale);
        cairo_line_to(cairo, x + one->x * l->scale, y + (one->depth * LEVEL + 1) * l->scale);
        cairo_stroke(cairo);
    }
    for (guint i = 0; i < l->nodes->len; i++) {
        const node *one = &g_array_index(l->nodes, node, i);
        rws_text    look = look_of(one);
        look.size *= l->scale;
        if (one->word) look.colour = words;
        rws_canvas_text(canvas, x + one->x * l->scale, y + (one->depth * LEVEL + 6) * l->scale, 0.5, 0.5, one->label,
                        &look);
    }
}

/* How many trees from `first` on stand in one row, and how much room they take. */
static int fit_row(const layout *layouts, int first, int n, double page, double *width, double *height)
{
    int count = 0;
    *width = *height = 0;
    while (first + count < n) {
        const layout *l = &layouts[first + count];
        const double  more = l->width + (count ? APART : 0);
        if (count && *width + more > page - 2 * EDGE) break;
        *width += more;
        *height = MAX(*height, l->height);
        count++;
    }
    return count;
}

static rws_status draw(const rws_trees *t, rws_canvas *canvas, layout *layouts, rws_error *err)
{
    const double page = t->width > 0 ? t->width : RWS_PAGE_WIDTH;
    rws_text     title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK, .wrap = page - 40};
    double       top = EDGE, width, height, title_height = 0;
    for (int i = 0; i < t->n_trees; i++) measure(canvas, &t->trees[i], page, &layouts[i]);
    if (t->title) rws_canvas_measure(canvas, t->title, &title, NULL, &title_height);
    if (t->title) top += title_height + TITLE_GAP;
    double bottom = top;
    for (int i = 0; i < t->n_trees;) {
        i += fit_row(layouts, i, t->n_trees, page, &width, &height);
        bottom += height + (i < t->n_trees ? ROW_GAP : 0);
    }
    if (t->n_trees == 0) bottom += 2 * LEVEL;
    RWS_TRY(rws_canvas_page(canvas, page, bottom + EDGE, t->title, err));
    if (t->title) rws_canvas_text(canvas, page / 2, EDGE, 0.5, 0, t->title, &title);
    if (t->n_trees == 0)
        rws_canvas_text(canvas, page / 2, top + LEVEL, 0.5, 0.5, "no data",
                        &(rws_text){.size = RWS_SIZE_TICK, .colour = RWS_GREY});
    for (int i = 0; i < t->n_trees;) {
        const int n = fit_row(layouts, i, t->n_trees, page, &width, &height);
        double    x = (page - width) / 2;
        for (int k = i; k < i + n; k++) {
            draw_tree(canvas, &t->trees[k], &layouts[k], x, top);
            x += layouts[k].width + APART;
        }
        top += height + ROW_GAP;
        i += n;
    }
    return RWS_OK;
}

rws_status rws_trees_draw(const rws_trees *trees, const char *path, rws_error *err)
{
    rws_canvas *canvas = NULL;
    layout     *layouts = g_new0(layout, trees->n_trees + 1);
    rws_status  status = rws_canvas_new(path, trees->dpi, &canvas, err);
    for (int i = 0; i < trees->n_trees; i++) layouts[i].nodes = g_array_new(FALSE, FALSE, sizeof(node));
    for (int i = 0; i < trees->n_trees && status == RWS_OK; i++)
        if (!read_nodes(trees->trees[i].text, layouts[i].nodes))
            status = rws_fail(err, RWS_BAD_INPUT, "The figure '%s' cannot be drawn: \"%.100s\" is not a tree.", path,
                              trees->trees[i].text);
    if (status == RWS_OK) status = draw(trees, canvas, layouts, err);
    if (status == RWS_OK) status = rws_canvas_save(canvas, err);
    else rws_canvas_free(canvas);
    for (int i = 0; i < trees->n_trees; i++) free_nodes(layouts[i].nodes);
    g_free(layouts);
    return status;
}
