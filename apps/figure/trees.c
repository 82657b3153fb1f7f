#include "figure/trees.h"

#include "base/error.h"
#include "figure/brackets.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>

/* Distances in points. */
static const double EDGE = 6, TITLE_GAP = 8, CAPTION_GAP = 3, LEVEL = 22, WORD_GAP = 7, APART = 18, ROW_GAP = 14;

/* The smallest scale at which a tree is drawn. */
static const double LEAST = 0.25;

enum { DEEPEST = 1000, MAX_NODES = 20000 };

typedef struct {
    rws_brackets tree;
    double       width, height, caption_height, scale;
} layout;

/* Reads a tree. False, with nothing to release, if the text is not a tree or the tree is too large to draw. */
static bool read_tree(const char *text, rws_brackets *out)
{
    if (!rws__brackets_read(text, out)) return false;
    if (out->n_levels <= DEEPEST && out->n <= MAX_NODES) return true;
    rws__brackets_release(out);
    return false;
}

size_t rws__trees_words(const char *text, char *words, size_t size)
{
    rws_brackets tree;
    size_t       n = 0;
    if (size) words[0] = '\0';
    if (!read_tree(text, &tree)) return 0;
    for (int i = 0; i < tree.n; i++)
        if (tree.nodes[i].word)
            n += (size_t)g_snprintf(words + MIN(n, size), (gulong)(n < size ? size - n : 0), "%s%s", n ? " " : "",
                                    tree.nodes[i].label);
    rws__brackets_release(&tree);
    return n;
}

/* ---- places */

static rws_text style_of(const rws_bracket *one)
{
    return (rws_text){.size = one->word ? 8.5 : 8, .colour = one->word ? RWS_INK : RWS_GREY};
}

static void measure(rws_canvas *canvas, const rws_drawn_tree *tree, double page, layout *l)
{
    double caption = 0;
    for (int i = 0; i < l->tree.n; i++) {
        rws_bracket   *one = &l->tree.nodes[i];
        const rws_text look = style_of(one);
        rws__canvas_measure(canvas, one->label, &look, &one->width, NULL);
    }
    rws__brackets_place(&l->tree, WORD_GAP, false);
    if (tree->caption)
        rws__canvas_measure(canvas, tree->caption, &(rws_text){.size = RWS_SIZE_PANEL}, &caption, &l->caption_height);
    l->scale = MAX(MIN(1, (page - 2 * EDGE) / l->tree.width), LEAST);
    l->width = MAX(l->tree.width * l->scale, caption);
    l->height =
        ((l->tree.n_levels - 1) * LEVEL + 12) * l->scale + (tree->caption ? l->caption_height + CAPTION_GAP : 0);
}

/* ---- drawing */

static void draw_tree(rws_canvas *canvas, const rws_drawn_tree *tree, const layout *l, double x, double y)
{
    cairo_t   *cairo = rws__canvas_cairo(canvas);
    rws_colour words = tree->method ? rws__colour_ink(rws__style_find(tree->method)->colour) : RWS_INK;
    x += (l->width - l->tree.width * l->scale) / 2;
    if (tree->caption) {
        rws__canvas_text(canvas, x + l->tree.nodes[0].x * l->scale, y, 0.5, 0, tree->caption,
                         &(rws_text){.size = RWS_SIZE_PANEL, .bold = true, .colour = RWS_INK});
        y += l->caption_height + CAPTION_GAP;
    }
    cairo_set_line_width(cairo, 0.6);
    for (int i = 0; i < l->tree.n; i++) {
        const rws_bracket *one = &l->tree.nodes[i];
        if (one->parent < 0) continue;
        const rws_bracket *up = &l->tree.nodes[one->parent];
        /* from below the parent's label to above the child's */
        rws__canvas_colour(canvas, RWS_GREY, 1);
        cairo_move_to(cairo, x + up->x * l->scale, y + (up->depth * LEVEL + 11) * l->scale);
        cairo_line_to(cairo, x + one->x * l->scale, y + (one->depth * LEVEL + 1) * l->scale);
        cairo_stroke(cairo);
    }
    for (int i = 0; i < l->tree.n; i++) {
        const rws_bracket *one = &l->tree.nodes[i];
        rws_text           look = style_of(one);
        look.size *= l->scale;
        if (one->word) look.colour = words;
        rws__canvas_text(canvas, x + one->x * l->scale, y + (one->depth * LEVEL + 6) * l->scale, 0.5, 0.5, one->label,
                         &look);
    }
}

/* The number of trees from `first` on that fit in one row, and the width they take. */
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
    if (t->title) rws__canvas_measure(canvas, t->title, &title, NULL, &title_height);
    if (t->title) top += title_height + TITLE_GAP;
    double bottom = top;
    for (int i = 0; i < t->n_trees;) {
        i += fit_row(layouts, i, t->n_trees, page, &width, &height);
        bottom += height + (i < t->n_trees ? ROW_GAP : 0);
    }
    if (t->n_trees == 0) bottom += 2 * LEVEL;
    RWS_TRY(rws__canvas_page(canvas, page, bottom + EDGE, t->title, err));
    if (t->title) rws__canvas_text(canvas, page / 2, EDGE, 0.5, 0, t->title, &title);
    if (t->n_trees == 0)
        rws__canvas_text(canvas, page / 2, top + LEVEL, 0.5, 0.5, "no data",
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

rws_status rws__trees_draw(const rws_trees *trees, const char *path, rws_error *err)
{
    rws_canvas *canvas = NULL;
    layout     *layouts = g_new0(layout, trees->n_trees + 1);
    rws_status  status = rws__canvas_new(path, trees->dpi, &canvas, err);
    for (int i = 0; i < trees->n_trees && status == RWS_OK; i++)
        if (!read_tree(trees->trees[i].text, &layouts[i].tree))
            status = rws_fail(err, RWS_BAD_INPUT, "The figure '%s' cannot be drawn: \"%.100s\" is not a tree.", path,
                              trees->trees[i].text);
    if (status == RWS_OK) status = draw(trees, canvas, layouts, err);
    if (status == RWS_OK) status = rws__canvas_save(canvas, err);
    else rws__canvas_free(canvas);
    for (int i = 0; i < trees->n_trees; i++) rws__brackets_release(&layouts[i].tree);
    g_free(layouts);
    return status;
}
