/* chart.c - the layout and the drawing of a chart. */
#include "figure/chart_plan.h"

#include "base/error.h"

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

/* Marks of a longer curve, if there is a legend. */
static const int FEW_MARKS = 3;

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

/* ---- layout ---- */

static int wanted_y(double height)
{
    return (int)fmax(2, round(height / 22));
}

/* Chooses as many x ticks as leave a gap between their labels. */
static void choose_x_ticks(rws_chart_plan *p, int column)
{
    rws_chart_scale *x = &p->x[column];
    const rws_axis  *axis = &p->chart->x[column];
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
static void overhang(const rws_chart_plan *p, int column, double *before, double *after)
{
    const rws_chart_scale *x = &p->x[column];
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
static double y_margin(const rws_chart_plan *p, int column)
{
    const rws_chart *chart = p->chart;
    double           ticks = 0, caption = 0;
    for (int row = 0; row < chart->n_rows; row++) {
        const rws_chart_scale *y = &p->y[row * chart->n_columns + column];
        char                   text[256];
        double                 height;
        ticks = fmax(ticks, rws__ticks_width(p->canvas, y->ticks, y->n_ticks));
        if (!rws__axis_caption(rws__chart_y_axis(chart, row, column), text, sizeof text)[0]) continue;
        rws__canvas_measure(p->canvas, text, &(rws_text){.size = RWS_SIZE_LABEL, .wrap = p->height + GAP}, NULL,
                            &height);
        caption = fmax(caption, LABEL_GAP + height);
    }
    return ticks + TICK_ROOM + caption;
}

static rws_status place_columns(rws_chart_plan *p, double page, const char *path, rws_error *err)
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

static double at_x(const rws_chart_plan *p, int column, rws_box box, double value)
{
    return box.x + box.width * rws__range_place(p->x[column].range, value);
}

static double at_y(const rws_chart_scale *y, rws_box box, double value)
{
    return box.y + box.height * (1 - rws__range_place(y->range, value));
}

/* One polygon per stretch where both edges have a place; a stretch of a single point is a whisker. */
static void draw_band(const rws_chart_plan *p, int column, const rws_chart_scale *y, rws_box box,
                      const rws_curve *curve)
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

static void draw_line(const rws_chart_plan *p, int column, const rws_chart_scale *y, rws_box box,
                      const rws_curve *curve)
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
static void draw_marks(const rws_chart_plan *p, int column, const rws_chart_scale *y, rws_box box,
                       const rws_curve *curve)
{
    int key = rws__chart_find_key(p, curve);
    /* Each method has places of its own, so that marks of curves that run together do not cover each other. */
    double next = p->few_marks && rws__chart_is_solid(&p->keys[key]) ? (key + 0.5) / p->n_keys / FEW_MARKS : INFINITY;
    for (int i = 0; i < curve->n; i++) {
        double across = rws__range_place(p->x[column].range, curve->x[i]), up = rws__range_place(y->range, curve->y[i]);
        if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) continue;
        bool alone = (i == 0 || !isfinite(curve->x[i - 1]) || !isfinite(curve->y[i - 1])) &&
                     (i + 1 == curve->n || !isfinite(curve->x[i + 1]) || !isfinite(curve->y[i + 1]));
        bool due = across >= next;
        while (across >= next) next += 1.0 / FEW_MARKS;
        if (rws__chart_has_marks(curve) || alone || due)
            rws__frame_mark(p->canvas, curve->method, curve->shade, box.x + box.width * across,
                            box.y + box.height * (1 - up));
    }
}

/* A triangle at the edge where a curve is beyond it for the last time. */
static void draw_leaving(const rws_chart_plan *p, int column, const rws_chart_scale *y, rws_box box,
                         const rws_curve *curve)
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

static void draw_panel(const rws_chart_plan *p, int row, int column, rws_box box)
{
    const rws_chart       *chart = p->chart;
    const rws_panel       *panel = rws__chart_panel(chart, row, column);
    const rws_chart_scale *x = &p->x[column], *y = &p->y[row * chart->n_columns + column];
    cairo_t               *cairo = rws__canvas_cairo(p->canvas);

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
    for (int c = 0; c < panel->n_curves && rws__chart_y_axis(chart, row, column)->robust; c++)
        draw_leaving(p, column, y, box, &panel->curves[c]);
}

static void draw_names(const rws_chart_plan *p, int row, rws_box box)
{
    cairo_t        *cairo = rws__canvas_cairo(p->canvas);
    rws_chart_name *names;
    int             n = rws__chart_place_names(p, row, &names);
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
        rws__canvas_text(p->canvas, right + NAME_GAP, to, 0, 0.5, rws__chart_label(names[i].curve),
                         &(rws_text){.size = RWS_SIZE_KEY, .colour = rws__colour_ink(colour)});
    }
    g_free(names);
}

/* One x label for all columns if they agree, else one each. */
static void draw_x_labels(const rws_chart_plan *p, double top)
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

static void draw_y_label(const rws_chart_plan *p, int row, int column, rws_box box)
{
    char     text[256];
    double   margin = y_margin(p, column);
    rws_text look = {.size = RWS_SIZE_LABEL, .colour = RWS_INK, .turn = -90, .wrap = p->height + GAP};
    rws__axis_caption(rws__chart_y_axis(p->chart, row, column), text, sizeof text);
    rws__canvas_text(p->canvas, box.x - margin, box.y + box.height / 2, 0.5, 0, text, &look);
}

/* Computes ranges, ticks, names and columns, before the height of the page is known. */
static rws_status lay_out(rws_chart_plan *p, double page, const char *path, rws_error *err)
{
    const rws_chart *chart = p->chart;
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_TICK}, NULL, &p->tick_height);
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_LABEL}, NULL, &p->label_height);
    double guess = (page - 50) / chart->n_columns;
    p->height = chart->height > 0 ? chart->height : fmin(fmax(0.72 * guess, 86), 200);
    RWS_TRY(rws__chart_find_ranges(p, err));
    rws__chart_decide_names(p);
    for (int i = 0; i < chart->n_rows * chart->n_columns; i++) {
        const rws_axis *axis = rws__chart_y_axis(chart, i / chart->n_columns, i % chart->n_columns);
        p->y[i].n_ticks = rws__axis_ticks(axis, p->y[i].range, wanted_y(p->height), false, p->y[i].ticks);
    }
    return place_columns(p, page, path, err);
}

/* Places the rows from `top` on; returns where the last row ends. */
static double place_rows(rws_chart_plan *p, double top)
{
    const rws_chart *chart = p->chart;
    double           title;
    rws__canvas_measure(p->canvas, "Xg", &(rws_text){.size = RWS_SIZE_PANEL}, NULL, &title);
    for (int row = 0; row < chart->n_rows; row++) {
        bool titled = false;
        for (int column = 0; column < chart->n_columns; column++)
            titled = titled || rws__chart_panel(chart, row, column)->title;
        top += titled ? title + PANEL_GAP : row == 0 ? p->tick_height / 2 : 0;
        p->top[row] = top;
        top += p->height + (row + 1 < chart->n_rows ? GAP : 0);
    }
    return top;
}

static void draw_panels(const rws_chart_plan *p)
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

static rws_status draw(rws_chart_plan *p, const char *path, rws_error *err)
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
    rws_chart_plan p = {.chart = chart};
    RWS_TRY(rws__canvas_new(path, chart->dpi, &p.canvas, err));
    rws__canvas_font(p.canvas, chart->font);
    p.x = g_new0(rws_chart_scale, chart->n_columns);
    p.y = g_new0(rws_chart_scale, chart->n_rows * chart->n_columns);
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
