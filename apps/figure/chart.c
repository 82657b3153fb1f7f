#include "figure/chart.h"

#include "base/error.h"
#include "base/order.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Distances in points. */
static const double EDGE = 6;          /* around the page */
static const double GAP = 11;          /* between panels that share an axis */
static const double WIDE_GAP = 17;     /* between panels that do not */
static const double TICK_ROOM = 5;     /* a tick mark and the gap to its label */
static const double LABEL_GAP = 5;     /* between tick labels and the axis label */
static const double NAME_GAP = 5;      /* from a curve's end to its name */
static const double LEGEND_GAP = 7;    /* below the legend */
static const double TITLE_GAP = 6;     /* below the chart's title */
static const double PANEL_GAP = 3;     /* below a panel's title */
static const double X_LABEL_APART = 9; /* between the last label of a panel and the first of the next */
static const double MIN_PANEL = 30;

/* Curves with this many points or fewer show where their points are. */
static const int MARKS_UP_TO = 16;

/* Marks of a longer curve, if there is a legend. */
static const int FEW_MARKS = 3;

/* A name may stand this many lines away from its curve's end before a legend reads better. */
static const double NAME_REACH = 1.6;

typedef struct {
    rws_range range;
    rws_tick  ticks[RWS_MAX_TICKS];
    int       n_ticks;
} scale;

typedef struct {
    const rws_curve *curve;
    double           target, place; /* where the curve ends and where its name goes, points below the panel's top */
} name;

typedef struct {
    const rws_chart *chart;
    rws_canvas      *canvas;
    scale           *x;    /* [n_columns] */
    scale           *y;    /* [n_rows * n_columns]; equal along a row unless own_y */
    rws_legend_key  *keys; /* one per name of a curve, in order of appearance */
    int              n_keys;
    bool             names_at_ends;
    bool             few_marks; /* on long solid curves */
    double           name_width;
    double           line;         /* height of a line of names */
    double           height;       /* of a panel */
    double          *left, *width; /* [n_columns] of the panels */
    double          *top;          /* [n_rows] of the panels */
    double           tick_height, label_height;
} plan;

static const char *label_of(const rws_curve *curve)
{
    return curve->label ? curve->label : rws__style_name(curve->method);
}

static bool same_name(const rws_curve *a, const rws_curve *b)
{
    return g_strcmp0(a->method, b->method) == 0 && strcmp(label_of(a), label_of(b)) == 0;
}

static bool has_marks(const rws_curve *curve)
{
    return curve->n <= MARKS_UP_TO && curve->line != RWS_LINE_LEVEL;
}

static const rws_panel *panel_at(const rws_chart *chart, int row, int column)
{
    return &chart->panels[row * chart->n_columns + column];
}

static const rws_axis *y_axis(const rws_chart *chart, int row, int column)
{
    return chart->own_y ? &chart->y[row * chart->n_columns + column] : &chart->y[row];
}

static void check(const rws_chart *chart)
{
    RWS_CHECK(chart->n_rows > 0 && chart->n_columns > 0 && chart->panels && chart->x && chart->y);
    for (int p = 0; p < chart->n_rows * chart->n_columns; p++) {
        for (int c = 0; c < chart->panels[p].n_curves; c++) {
            const rws_curve *curve = &chart->panels[p].curves[c];
            RWS_CHECK(curve->n >= 0 && (curve->n == 0 || (curve->x && curve->y)) && !curve->low == !curve->high);
        }
    }
}

/* ---- ranges ---- */

static void add_x(rws_extent *extent, bool *marks, const rws_panel *panel)
{
    for (int c = 0; c < panel->n_curves; c++) {
        const rws_curve *curve = &panel->curves[c];
        if (has_marks(curve) && curve->n > 0) *marks = true;
        for (int i = 0; i < curve->n; i++) {
            if (isfinite(curve->y[i])) rws__extent_add(extent, curve->x[i]);
        }
    }
}

/* Values more than three widths of the middle half away from it do not stretch a robust axis, if there are enough to
 * tell. */
static rws_status find_fences(const rws_panel *panel, double fences[2], rws_error *err)
{
    enum { ENOUGH = 8 };
    int n = 0;
    for (int c = 0; c < panel->n_curves; c++) n += panel->curves[c].n;
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    if (!values) return rws_no_memory(err, "the values of a chart");
    n = 0;
    for (int c = 0; c < panel->n_curves; c++)
        for (int i = 0; i < panel->curves[c].n; i++)
            if (isfinite(panel->curves[c].y[i])) values[n++] = panel->curves[c].y[i];
    qsort(values, (size_t)n, sizeof *values, rws__order_doubles);
    const double low = n ? values[n / 4] : 0, high = n ? values[n - 1 - n / 4] : 0;
    fences[0] = n < ENOUGH ? -INFINITY : low - 3 * (high - low);
    fences[1] = n < ENOUGH ? INFINITY : high + 3 * (high - low);
    free(values);
    return RWS_OK;
}

/* Removes from the extent what lies beyond the fences. */
static void keep_within(rws_extent *extent, const rws_panel *panel, const double fences[2])
{
    *extent = rws__extent_empty();
    for (int c = 0; c < panel->n_curves; c++)
        for (int i = 0; i < panel->curves[c].n; i++)
            if (panel->curves[c].y[i] >= fences[0] && panel->curves[c].y[i] <= fences[1])
                rws__extent_add(extent, panel->curves[c].y[i]);
}

static void add_y(rws_extent *core, rws_extent *fringe, const rws_panel *panel)
{
    for (int c = 0; c < panel->n_curves; c++) {
        const rws_curve *curve = &panel->curves[c];
        for (int i = 0; i < curve->n; i++) {
            if (!isfinite(curve->x[i])) continue;
            rws__extent_add(core, curve->y[i]);
            if (!curve->low) continue;
            rws__extent_add(fringe, curve->low[i]);
            rws__extent_add(fringe, curve->high[i]);
        }
    }
}

static rws_status find_ranges(plan *p, rws_error *err)
{
    const rws_chart *chart = p->chart;
    for (int column = 0; column < chart->n_columns; column++) {
        rws_extent extent = rws__extent_empty();
        bool       marks = false;
        for (int row = 0; row < chart->n_rows; row++) add_x(&extent, &marks, panel_at(chart, row, column));
        /* A long curve runs from edge to edge; marks need a margin around them. */
        RWS_TRY(rws__axis_range(&chart->x[column], &extent, NULL, marks ? 0.06 : 0, &p->x[column].range, err));
    }
    for (int row = 0; row < chart->n_rows; row++) {
        rws_extent core = rws__extent_empty(), fringe = rws__extent_empty();
        for (int column = 0; column < chart->n_columns; column++) {
            if (chart->own_y) {
                core = rws__extent_empty();
                fringe = rws__extent_empty();
            }
            add_y(&core, &fringe, panel_at(chart, row, column));
            if (!chart->own_y && column + 1 < chart->n_columns) continue;
            if (chart->own_y && y_axis(chart, row, column)->robust) {
                double fences[2] = {0};
                RWS_TRY(find_fences(panel_at(chart, row, column), fences, err));
                keep_within(&core, panel_at(chart, row, column), fences);
                fringe = rws__extent_empty();
            }
            rws_range range;
            RWS_TRY(rws__axis_range(y_axis(chart, row, column), &core, &fringe, 0.05, &range, err));
            for (int c = chart->own_y ? column : 0; c <= column; c++) p->y[row * chart->n_columns + c].range = range;
        }
    }
    return RWS_OK;
}

/* ---- names ---- */

/* The key of a curve: its index, or n_keys if it has none yet. */
static int find_key(const plan *p, const rws_curve *curve)
{
    int k = 0;
    while (k < p->n_keys &&
           (g_strcmp0(p->keys[k].method, curve->method) != 0 || strcmp(p->keys[k].label, label_of(curve)) != 0))
        k++;
    return k;
}

static bool is_solid(const rws_legend_key *key)
{
    return key->line == RWS_LINE_SOLID ||
           (key->line == RWS_LINE_AS_METHOD && rws__style_find(key->method)->n_dash == 0);
}

static void collect_keys(plan *p)
{
    const rws_chart *chart = p->chart;
    int              n = 0;
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) n += chart->panels[i].n_curves;
    p->keys = g_new0(rws_legend_key, n + 1);
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) {
        for (int c = 0; c < chart->panels[i].n_curves; c++) {
            const rws_curve *curve = &chart->panels[i].curves[c];
            int              k = find_key(p, curve);
            if (k == p->n_keys) {
                p->keys[p->n_keys++] = (rws_legend_key){
                    .method = curve->method, .label = label_of(curve), .line = curve->line, .shade = curve->shade};
            }
            if (curve->n > 0 && has_marks(curve)) p->keys[k].marks = true;
            /* The key of curves of one name in several shades has the darkest shade. */
            p->keys[k].shade = fmin(p->keys[k].shade, curve->shade);
        }
    }
}

/* With a legend, solid lines get a few marks, which tell them apart in print without colour. */
static void decide_marks(plan *p)
{
    int n_solid = 0;
    for (int k = 0; k < p->n_keys; k++) n_solid += is_solid(&p->keys[k]);
    p->few_marks = n_solid > 1 && !p->names_at_ends;
    for (int k = 0; k < p->n_keys && p->few_marks; k++) {
        if (is_solid(&p->keys[k])) p->keys[k].marks = true;
    }
}

static int by_target(const void *left, const void *right)
{
    const name *a = left, *b = right;
    return (a->target > b->target) - (a->target < b->target);
}

/* Moves the names, sorted by target, as little as possible (least squares) so that each is a line below the one before
 * and all are beside the panel.
 *
 * With u_i = target_i - i * line the order constraint becomes u_0 <= u_1 <= …: isotonic regression, solved by pooling
 * neighbours that are out of order into blocks with their mean. */
static void separate_names(name *names, int n, double line, double height)
{
    double *mean = g_new(double, n + 1);
    int    *size = g_new(int, n + 1);
    int     n_blocks = 0;
    for (int i = 0; i < n; i++) {
        mean[n_blocks] = names[i].target - i * line;
        size[n_blocks++] = 1;
        while (n_blocks > 1 && mean[n_blocks - 2] > mean[n_blocks - 1]) {
            n_blocks--;
            int total = size[n_blocks - 1] + size[n_blocks];
            mean[n_blocks - 1] = (mean[n_blocks - 1] * size[n_blocks - 1] + mean[n_blocks] * size[n_blocks]) / total;
            size[n_blocks - 1] = total;
        }
    }
    double lowest = height - line * 0.35 - (n - 1) * line;
    for (int block = 0, i = 0; block < n_blocks; block++) {
        double offset = fmax(fmin(mean[block], lowest), line * 0.35);
        for (int k = 0; k < size[block]; k++, i++) names[i].place = offset + i * line;
    }
    g_free(mean);
    g_free(size);
}

/* Finds where the names of a row's curves go, beside its last panel. Returns their number, or -1 if they do not fit: a
 * curve of the row is not in that panel, or twice, or does not reach its right edge; or a name would stand too far
 * from its end. *names is then NULL; else it is the caller's to free. */
static int place_names(const plan *p, int row, name **names)
{
    const rws_chart *chart = p->chart;
    int              last = chart->n_columns - 1;
    const rws_panel *panel = panel_at(chart, row, last);
    rws_range        x = p->x[last].range, y = p->y[row * chart->n_columns + last].range;
    *names = NULL;
    for (int column = 0; column <= last; column++) {
        const rws_panel *other = panel_at(chart, row, column);
        for (int c = 0; c < other->n_curves; c++) {
            int n_equal = 0;
            for (int k = 0; k < panel->n_curves; k++) n_equal += same_name(&other->curves[c], &panel->curves[k]);
            if (n_equal != 1) return -1;
        }
    }
    name *found = g_new0(name, panel->n_curves + 1);
    bool  fits = panel->n_curves * p->line <= p->height + p->line * 0.3;
    for (int c = 0; c < panel->n_curves && fits; c++) {
        const rws_curve *curve = &panel->curves[c];
        int              end = curve->n - 1;
        while (end >= 0 && (isnan(rws__range_place(x, curve->x[end])) || isnan(rws__range_place(y, curve->y[end]))))
            end--;
        double across = end >= 0 ? rws__range_place(x, curve->x[end]) : NAN;
        double up = end >= 0 ? rws__range_place(y, curve->y[end]) : NAN;
        fits = across > 0.9 && across <= 1 && up >= 0 && up <= 1;
        found[c] = (name){.curve = curve, .target = p->height * (1 - up)};
    }
    if (fits) {
        qsort(found, panel->n_curves, sizeof *found, by_target);
        separate_names(found, panel->n_curves, p->line, p->height);
        for (int c = 0; c < panel->n_curves; c++) {
            if (fabs(found[c].place - found[c].target) > NAME_REACH * p->line) fits = false;
        }
    }
    if (!fits) {
        g_free(found);
        return -1;
    }
    *names = found;
    return panel->n_curves;
}

static void decide_names(plan *p)
{
    rws_text look = {.size = RWS_SIZE_KEY};
    rws__canvas_measure(p->canvas, "Xg", &look, NULL, &p->line);
    p->names_at_ends = p->chart->names == RWS_NAMES_FIT;
    for (int row = 0; row < p->chart->n_rows && p->names_at_ends; row++) {
        name *names;
        if (place_names(p, row, &names) < 0) p->names_at_ends = false;
        g_free(names);
    }
    for (int k = 0; p->names_at_ends && k < p->n_keys; k++) {
        double width;
        rws__canvas_measure(p->canvas, p->keys[k].label, &look, &width, NULL);
        p->name_width = fmax(p->name_width, width);
    }
}

/* ---- layout ---- */

static int wanted_y(double height)
{
    return (int)fmax(2, round(height / 22));
}

/* Chooses as many x ticks as leave a gap between their labels. */
static void choose_x_ticks(plan *p, int column)
{
    scale          *x = &p->x[column];
    const rws_axis *axis = &p->chart->x[column];
    for (int wanted = 6; wanted >= 1; wanted--) {
        x->n_ticks = rws__axis_ticks(axis, x->range, wanted, false, x->ticks);
        double widest = rws__ticks_width(p->canvas, x->ticks, x->n_ticks) + 9;
        double nearest = INFINITY, before = NAN;
        for (int i = 0; i < x->n_ticks; i++) {
            if (x->ticks[i].minor) continue;
            double place = rws__range_place(x->range, x->ticks[i].value) * p->width[column];
            if (!isnan(before)) nearest = fmin(nearest, fabs(place - before));
            before = place;
        }
        if (nearest >= widest || axis->ticks) return;
    }
}

/* How far the labels of a column's first and last tick reach beyond its panel. */
static void overhang(const plan *p, int column, double *before, double *after)
{
    const scale *x = &p->x[column];
    *before = *after = 0;
    for (int i = 0; i < x->n_ticks; i++) {
        if (x->ticks[i].minor) continue;
        double half, place = rws__range_place(x->range, x->ticks[i].value) * p->width[column];
        rws__canvas_measure(p->canvas, x->ticks[i].text, &(rws_text){.size = RWS_SIZE_TICK}, &half, NULL);
        half /= 2;
        *before = fmax(*before, half - place);
        *after = fmax(*after, place + half - p->width[column]);
    }
}

/* The margin left of a column for its y tick labels and its axis label. */
static double y_margin(const plan *p, int column)
{
    const rws_chart *chart = p->chart;
    double           ticks = 0, caption = 0;
    for (int row = 0; row < chart->n_rows; row++) {
        const scale *y = &p->y[row * chart->n_columns + column];
        char         text[256];
        double       height;
        ticks = fmax(ticks, rws__ticks_width(p->canvas, y->ticks, y->n_ticks));
        if (!rws__axis_caption(y_axis(chart, row, column), text, sizeof text)[0]) continue;
        rws__canvas_measure(p->canvas, text, &(rws_text){.size = RWS_SIZE_LABEL, .wrap = p->height + GAP}, NULL,
                            &height);
        caption = fmax(caption, LABEL_GAP + height);
    }
    return ticks + TICK_ROOM + caption;
}

static rws_status place_columns(plan *p, double page, const char *path, rws_error *err)
{
    const rws_chart *chart = p->chart;
    int              n = chart->n_columns;
    double          *margin = g_new0(double, n);
    rws_status       status = RWS_OK;
    for (int column = 0; column < n; column++) {
        margin[column] = column == 0 ? EDGE + y_margin(p, 0) : chart->own_y ? WIDE_GAP + y_margin(p, column) : GAP;
    }
    double right = EDGE + (p->names_at_ends ? NAME_GAP + p->name_width : 0);
    /* The ticks depend on the panels' width, and the panels' width on the overhang of the ticks' labels, so the
     * computation is repeated. */
    for (int round = 0; round < 3; round++) {
        double taken = right;
        for (int column = 0; column < n; column++) taken += margin[column];
        double width = (page - taken) / n, left = 0;
        if (width < MIN_PANEL) {
            status = rws_fail(err, RWS_BAD_INPUT, "The figure '%s' has no room for %d columns of panels in %g points.",
                              path, n, page);
            break;
        }
        for (int column = 0; column < n; column++) {
            p->width[column] = width;
            p->left[column] = left + margin[column];
            left = p->left[column] + width;
            choose_x_ticks(p, column);
        }
        double after = 0;
        for (int column = 0; column < n; column++) {
            double before, next;
            overhang(p, column, &before, &next);
            if (column > 0) margin[column] = fmax(margin[column], after + before + X_LABEL_APART);
            after = next;
        }
        right = fmax(right, EDGE + after);
    }
    g_free(margin);
    return status;
}

/* ---- drawing ---- */

static double at_x(const plan *p, int column, rws_box box, double value)
{
    return box.x + box.width * rws__range_place(p->x[column].range, value);
}

static double at_y(const scale *y, rws_box box, double value)
{
    return box.y + box.height * (1 - rws__range_place(y->range, value));
}

/* One polygon per stretch where both edges have a place; a stretch of a single point is a whisker. */
static void draw_band(const plan *p, int column, const scale *y, rws_box box, const rws_curve *curve)
{
    cairo_t   *cairo = rws__canvas_cairo(p->canvas);
    rws_colour colour = rws__colour_shade(rws__style_find(curve->method)->colour, curve->shade);
    for (int from = 0, to; from < curve->n; from = to + 1) {
        for (to = from; to < curve->n; to++) {
            if (!isfinite(curve->x[to]) || !isfinite(curve->low[to]) || !isfinite(curve->high[to])) break;
        }
        if (to == from) continue;
        for (int i = from; i < to; i++)
            cairo_line_to(cairo, at_x(p, column, box, curve->x[i]), at_y(y, box, curve->high[i]));
        for (int i = to - 1; i >= from; i--)
            cairo_line_to(cairo, at_x(p, column, box, curve->x[i]), at_y(y, box, curve->low[i]));
        if (to - from > 1) {
            cairo_close_path(cairo);
            rws__canvas_colour(p->canvas, colour, 0.17);
            cairo_fill(cairo);
        } else {
            cairo_set_line_width(cairo, 1);
            rws__canvas_colour(p->canvas, colour, 0.6);
            cairo_stroke(cairo);
        }
    }
}

static void draw_line(const plan *p, int column, const scale *y, rws_box box, const rws_curve *curve)
{
    cairo_t *cairo = rws__canvas_cairo(p->canvas);
    cairo_save(cairo);
    rws__frame_pen(p->canvas, curve->method, curve->line, curve->shade);
    for (int i = 0; i < curve->n; i++) {
        double px = at_x(p, column, box, curve->x[i]), py = at_y(y, box, curve->y[i]);
        if (isnan(px) || isnan(py)) cairo_new_sub_path(cairo);
        else cairo_line_to(cairo, px, py);
    }
    cairo_stroke(cairo);
    cairo_restore(cairo);
}

/* Marks at every point of a short curve; on a long one at points with a gap on both sides, where no line is, and at
 * a few places if it needs them. */
static void draw_marks(const plan *p, int column, const scale *y, rws_box box, const rws_curve *curve)
{
    int key = find_key(p, curve);
    /* Each method has places of its own, so that marks of curves that run together do not cover each other. */
    double next = p->few_marks && is_solid(&p->keys[key]) ? (key + 0.5) / p->n_keys / FEW_MARKS : INFINITY;
    for (int i = 0; i < curve->n; i++) {
        double across = rws__range_place(p->x[column].range, curve->x[i]), up = rws__range_place(y->range, curve->y[i]);
        if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) continue;
        bool alone = (i == 0 || !isfinite(curve->x[i - 1]) || !isfinite(curve->y[i - 1])) &&
                     (i + 1 == curve->n || !isfinite(curve->x[i + 1]) || !isfinite(curve->y[i + 1]));
        bool due = across >= next;
        while (across >= next) next += 1.0 / FEW_MARKS;
        if (has_marks(curve) || alone || due)
            rws__frame_mark(p->canvas, curve->method, curve->shade, box.x + box.width * across,
                            box.y + box.height * (1 - up));
    }
}

/* A triangle at the edge where a curve is beyond it for the last time. */
static void draw_leaving(const plan *p, int column, const scale *y, rws_box box, const rws_curve *curve)
{
    cairo_t     *cairo = rws__canvas_cairo(p->canvas);
    const double size = 3.5;
    double       x = NAN, up = NAN;
    for (int i = 0; i < curve->n; i++) {
        const double place = rws__range_place(y->range, curve->y[i]);
        if (place < 0 || place > 1) x = at_x(p, column, box, curve->x[i]), up = place;
    }
    if (isnan(x)) return;
    const double edge = up < 0 ? box.y + box.height : box.y, tip = up < 0 ? edge - 1 : edge + 1;
    const double back = up < 0 ? tip - 1.6 * size : tip + 1.6 * size;
    cairo_move_to(cairo, x, tip);
    cairo_line_to(cairo, x - size, back);
    cairo_line_to(cairo, x + size, back);
    cairo_close_path(cairo);
    rws__canvas_colour(p->canvas, rws__style_find(curve->method)->colour, 1);
    cairo_fill(cairo);
}

static bool is_empty(const rws_panel *panel)
{
    for (int c = 0; c < panel->n_curves; c++) {
        for (int i = 0; i < panel->curves[c].n; i++) {
            if (isfinite(panel->curves[c].x[i]) && isfinite(panel->curves[c].y[i])) return false;
        }
    }
    return true;
}

static void draw_panel(const plan *p, int row, int column, rws_box box)
{
    const rws_chart *chart = p->chart;
    const rws_panel *panel = panel_at(chart, row, column);
    const scale     *x = &p->x[column], *y = &p->y[row * chart->n_columns + column];
    cairo_t         *cairo = rws__canvas_cairo(p->canvas);

    bool empty = is_empty(panel);
    if (!empty) rws__frame_grid(p->canvas, box, x->range, x->ticks, x->n_ticks, y->range, y->ticks, y->n_ticks);
    rws__frame_x_axis(p->canvas, box, x->range, x->ticks, x->n_ticks, row + 1 == chart->n_rows);
    rws__frame_y_axis(p->canvas, box, y->range, y->ticks, y->n_ticks, column == 0 || chart->own_y);
    if (panel->title)
        rws__canvas_text(p->canvas, box.x + box.width / 2, box.y - PANEL_GAP, 0.5, 1, panel->title,
                         &(rws_text){.size = RWS_SIZE_PANEL, .colour = RWS_INK});
    if (empty) {
        rws__canvas_text(p->canvas, box.x + box.width / 2, box.y + box.height / 2, 0.5, 0.5, "no data",
                         &(rws_text){.size = RWS_SIZE_TICK, .colour = RWS_GREY});
        return;
    }
    cairo_save(cairo);
    cairo_rectangle(cairo, box.x, box.y, box.width, box.height);
    cairo_clip(cairo);
    for (int c = 0; c < panel->n_curves; c++) {
        if (panel->curves[c].low) draw_band(p, column, y, box, &panel->curves[c]);
    }
    cairo_restore(cairo);
    cairo_save(cairo);
    /* Half a line's width more than the panel, so that a curve along an edge keeps its weight. */
    cairo_rectangle(cairo, box.x - 0.7, box.y - 0.7, box.width + 1.4, box.height + 1.4);
    cairo_clip(cairo);
    for (int c = 0; c < panel->n_curves; c++) draw_line(p, column, y, box, &panel->curves[c]);
    cairo_restore(cairo);
    for (int c = 0; c < panel->n_curves; c++) draw_marks(p, column, y, box, &panel->curves[c]);
    for (int c = 0; c < panel->n_curves && y_axis(chart, row, column)->robust; c++)
        draw_leaving(p, column, y, box, &panel->curves[c]);
}

static void draw_names(const plan *p, int row, rws_box box)
{
    cairo_t *cairo = rws__canvas_cairo(p->canvas);
    name    *names;
    int      n = place_names(p, row, &names);
    for (int i = 0; i < n; i++) {
        rws_colour colour = rws__style_find(names[i].curve->method)->colour;
        double     right = box.x + box.width, from = box.y + names[i].target, to = box.y + names[i].place;
        if (fabs(to - from) > 1) {
            cairo_move_to(cairo, right + 0.8, from);
            cairo_line_to(cairo, right + NAME_GAP - 0.8, to);
            cairo_set_line_width(cairo, 0.6);
            rws__canvas_colour(p->canvas, colour, 0.8);
            cairo_stroke(cairo);
        }
        rws__canvas_text(p->canvas, right + NAME_GAP, to, 0, 0.5, label_of(names[i].curve),
                         &(rws_text){.size = RWS_SIZE_KEY, .colour = rws__colour_ink(colour)});
    }
    g_free(names);
}

/* One x label for all columns if they agree, else one each. */
static void draw_x_labels(const plan *p, double top)
{
    const rws_chart *chart = p->chart;
    rws_text         look = {.size = RWS_SIZE_LABEL, .colour = RWS_INK};
    char             first[256], text[256];
    bool             agree = true;
    int              last = chart->n_columns - 1;
    rws__axis_caption(&chart->x[0], first, sizeof first);
    for (int column = 1; column <= last; column++)
        agree = agree && strcmp(first, rws__axis_caption(&chart->x[column], text, sizeof text)) == 0;
    if (agree && !chart->own_y) {
        rws__canvas_text(p->canvas, (p->left[0] + p->left[last] + p->width[last]) / 2, top, 0.5, 0, first, &look);
        return;
    }
    for (int column = 0; column <= last; column++)
        rws__canvas_text(p->canvas, p->left[column] + p->width[column] / 2, top, 0.5, 0,
                         rws__axis_caption(&chart->x[column], text, sizeof text), &look);
}

static void draw_y_label(const plan *p, int row, int column, rws_box box)
{
    char     text[256];
    double   margin = y_margin(p, column);
    rws_text look = {.size = RWS_SIZE_LABEL, .colour = RWS_INK, .turn = -90, .wrap = p->height + GAP};
    rws__axis_caption(y_axis(p->chart, row, column), text, sizeof text);
    rws__canvas_text(p->canvas, box.x - margin, box.y + box.height / 2, 0.5, 0, text, &look);
}

/* Computes ranges, ticks, names and columns, before the height of the page is known. */
static rws_status lay_out(plan *p, double page, const char *path, rws_error *err)
{
    const rws_chart *chart = p->chart;
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_TICK}, NULL, &p->tick_height);
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_LABEL}, NULL, &p->label_height);
    double guess = (page - 50) / chart->n_columns;
    p->height = chart->height > 0 ? chart->height : fmin(fmax(0.72 * guess, 86), 200);
    RWS_TRY(find_ranges(p, err));
    collect_keys(p);
    decide_names(p);
    decide_marks(p);
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) {
        const rws_axis *axis = y_axis(chart, i / chart->n_columns, i % chart->n_columns);
        p->y[i].n_ticks = rws__axis_ticks(axis, p->y[i].range, wanted_y(p->height), false, p->y[i].ticks);
    }
    return place_columns(p, page, path, err);
}

/* Places the rows from `top` on; returns where the last row ends. */
static double place_rows(plan *p, double top)
{
    const rws_chart *chart = p->chart;
    double           title;
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_PANEL}, NULL, &title);
    for (int row = 0; row < chart->n_rows; row++) {
        bool titled = false;
        for (int column = 0; column < chart->n_columns; column++)
            titled = titled || panel_at(chart, row, column)->title;
        top += titled ? title + PANEL_GAP : row == 0 ? p->tick_height / 2 : 0;
        p->top[row] = top;
        top += p->height + (row + 1 < chart->n_rows ? GAP : 0);
    }
    return top;
}

static void draw_panels(const plan *p)
{
    const rws_chart *chart = p->chart;
    for (int row = 0; row < chart->n_rows; row++) {
        for (int column = 0; column < chart->n_columns; column++) {
            rws_box box = {p->left[column], p->top[row], p->width[column], p->height};
            draw_panel(p, row, column, box);
            if (column == 0 || chart->own_y) draw_y_label(p, row, column, box);
            if (p->names_at_ends && column + 1 == chart->n_columns) draw_names(p, row, box);
        }
    }
}

static rws_status draw(plan *p, const char *path, rws_error *err)
{
    const rws_chart *chart = p->chart;
    double           page = chart->width > 0 ? chart->width : RWS_PAGE_WIDTH;
    double           title_height = 0, note_height = 0, x_label = 0;
    rws_text         title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK, .wrap = page - 40};
    RWS_TRY(lay_out(p, page, path, err));

    rws_legend legend = {0};
    if (!p->names_at_ends && chart->names != RWS_NAMES_NONE)
        legend = rws__legend_fit(p->canvas, p->keys, p->n_keys, page - 2 * EDGE);
    const rws_text note = {.size = RWS_SIZE_TICK, .colour = RWS_GREY, .wrap = page - 40};
    if (chart->title) rws__canvas_measure(p->canvas, chart->title, &title, NULL, &title_height);
    if (chart->note) rws__canvas_measure(p->canvas, chart->note, &note, NULL, &note_height);
    for (int column = 0; column < chart->n_columns; column++) {
        char text[256];
        if (rws__axis_caption(&chart->x[column], text, sizeof text)[0]) x_label = p->label_height + LABEL_GAP - 2;
    }
    double top = EDGE + (chart->title ? title_height + note_height + TITLE_GAP : 0) +
                 (legend.n_rows ? legend.height + LEGEND_GAP : 0);
    double labels_end = place_rows(p, top) + TICK_ROOM + p->tick_height;
    RWS_TRY(rws__canvas_page(p->canvas, page, labels_end + x_label + EDGE, chart->title, err));

    if (chart->title) rws__canvas_text(p->canvas, page / 2, EDGE, 0.5, 0, chart->title, &title);
    if (chart->note) rws__canvas_text(p->canvas, page / 2, EDGE + title_height, 0.5, 0, chart->note, &note);
    if (legend.n_rows) {
        /* Over the panels if it is no wider than they are, else over the page. */
        double panels = p->left[chart->n_columns - 1] + p->width[chart->n_columns - 1] - p->left[0];
        double middle = legend.width <= panels ? p->left[0] + panels / 2 : page / 2;
        rws__legend_draw(p->canvas, &legend, p->keys, p->n_keys, middle - legend.width / 2,
                         top - LEGEND_GAP - legend.height);
    }
    draw_panels(p);
    draw_x_labels(p, labels_end + LABEL_GAP - 2);
    return RWS_OK;
}

rws_status rws__chart_draw(const rws_chart *chart, const char *path, rws_error *err)
{
    check(chart);
    plan p = {.chart = chart};
    RWS_TRY(rws__canvas_new(path, chart->dpi, &p.canvas, err));
    rws__canvas_font(p.canvas, chart->font);
    p.x = g_new0(scale, chart->n_columns);
    p.y = g_new0(scale, chart->n_rows * chart->n_columns);
    p.left = g_new0(double, chart->n_columns);
    p.width = g_new0(double, chart->n_columns);
    p.top = g_new0(double, chart->n_rows);

    rws_status status = draw(&p, path, err);
    if (status == RWS_OK) status = rws__canvas_save(p.canvas, err);
    else rws__canvas_free(p.canvas);
    g_free(p.keys);
    g_free(p.top);
    g_free(p.width);
    g_free(p.left);
    g_free(p.y);
    g_free(p.x);
    return status;
}
