#include "figure/bars.h"

#include "base/error.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>
#include <math.h>

/* Distances in points. */
static const double EDGE = 6, TICK_ROOM = 5, LABEL_GAP = 5, TITLE_GAP = 6, LEGEND_GAP = 8, NAME_GAP = 4;

/* The share of a group's width that its bars take, and the widest a bar gets. */
static const double FILLED = 0.78, WIDEST = 34;

/* Names that do not fit under their groups are slanted by this many degrees. */
static const double SLANT = 35;

/* Three digits, like a label on the axis. */
static char *number_text(double value, char *text, int size)
{
    double magnitude = fabs(value);
    if (value == round(value) && magnitude < 1e5) return g_ascii_formatd(text, size, "%.0f", value);
    if (magnitude >= 0.01 && magnitude < 10) return g_ascii_formatd(text, size, "%.2f", value);
    return g_ascii_formatd(text, size, "%.3g", value);
}

static rws_status y_range(const rws_bars *bars, rws_range *range, rws_error *err)
{
    rws_extent extent = rws__extent_empty();
    rws__extent_add(&extent, 0);
    for (int s = 0; s < bars->n_series; s++) {
        for (int g = 0; g < bars->n_groups; g++) {
            rws__extent_add(&extent, bars->series[s].values[g]);
            if (!bars->series[s].low) continue;
            rws__extent_add(&extent, bars->series[s].low[g]);
            rws__extent_add(&extent, bars->series[s].high[g]);
        }
    }
    return rws__axis_range(&bars->y, &extent, NULL, bars->numbers ? 0.09 : 0.05, range, err);
}

/* The widest word of the names and their height when broken to the width. */
static void measure_names(const rws_bars *bars, rws_canvas *canvas, double wrap, double *widest, double *height)
{
    *widest = *height = 0;
    for (int g = 0; g < bars->n_groups; g++) {
        double width, tall;
        rws__canvas_measure(canvas, bars->groups[g], &(rws_text){.size = RWS_SIZE_KEY, .wrap = wrap}, &width, &tall);
        *widest = fmax(*widest, width);
        *height = fmax(*height, tall);
    }
}

/* The place of a value in the box; at the end of the box for a value beyond it. */
static double at_y(rws_range range, rws_box box, double value)
{
    return box.y + box.height * (1 - fmin(fmax(rws__range_place(range, value), 0), 1));
}

static void draw_whisker(rws_canvas *canvas, double x, double low, double high)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    if (isnan(low) || isnan(high)) return;
    cairo_move_to(cairo, x, low);
    cairo_line_to(cairo, x, high);
    for (int end = 0; end < 2; end++) {
        cairo_move_to(cairo, x - 2, end ? high : low);
        cairo_line_to(cairo, x + 2, end ? high : low);
    }
    /* A white line under the dark one, so that it is visible on a bar of any colour. */
    rws__canvas_colour(canvas, (rws_colour){1, 1, 1}, 1);
    cairo_set_line_width(cairo, 2);
    cairo_stroke_preserve(cairo);
    rws__canvas_colour(canvas, RWS_INK, 1);
    cairo_set_line_width(cairo, 0.8);
    cairo_stroke(cairo);
}

static void draw_group(const rws_bars *bars, rws_canvas *canvas, rws_range range, rws_box box, int g)
{
    double width = box.width / bars->n_groups;
    double bar = fmin(width * FILLED / bars->n_series, WIDEST);
    double left = box.x + width * (g + 0.5) - bar * bars->n_series / 2;
    double zero = at_y(range, box, 0);
    for (int s = 0; s < bars->n_series; s++) {
        const rws_bar_series *series = &bars->series[s];
        double                value = series->values[g], x = left + s * bar;
        if (isnan(rws__range_place(range, value))) continue;
        double end = at_y(range, box, value);
        /* A thin white gap between neighbours; a value of zero has no bar. */
        if (fabs(zero - end) > 0.05)
            rws__frame_bar(canvas, series->method, 0, (rws_box){x + 0.5, fmin(zero, end), bar - 1, fabs(zero - end)});
        double tip = end;
        if (series->low && isfinite(series->low[g]) && isfinite(series->high[g])) {
            double bottom = at_y(range, box, series->low[g]);
            double top = at_y(range, box, series->high[g]);
            draw_whisker(canvas, x + bar / 2, bottom, top);
            tip = value >= 0 ? fmin(tip, top) : fmax(tip, bottom);
        }
        if (!bars->numbers) continue;
        char     text[32];
        double   width;
        rws_text look = {.size = 7, .colour = RWS_INK};
        number_text(value, text, sizeof text);
        rws__canvas_measure(canvas, text, &look, &width, NULL);
        if (width <= bar * 1.02 + 1)
            rws__canvas_text(canvas, x + bar / 2, value >= 0 ? tip - 1 : tip + 1, 0.5, value >= 0 ? 1 : 0, text, &look);
    }
}

/* The groups' names under the box: upright and broken to the width of their group, or slanted. */
static void draw_names(const rws_bars *bars, rws_canvas *canvas, rws_box box, bool slanted)
{
    const double   width = box.width / MAX(bars->n_groups, 1), under = box.y + box.height + NAME_GAP;
    const rws_text look = {
        .size = RWS_SIZE_KEY, .colour = RWS_INK, .turn = slanted ? -SLANT : 0, .wrap = slanted ? 0 : width - 6};
    for (int g = 0; g < bars->n_groups; g++)
        rws__canvas_text(canvas, box.x + width * (g + 0.5) + (slanted ? 3 : 0), under, slanted ? 1 : 0.5, 0,
                         bars->groups[g], &look);
}

/* The zero line: the axis, unless bars hang below it. */
static void draw_zero(rws_canvas *canvas, rws_range range, rws_box box)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    double   zero = at_y(range, box, 0);
    rws__canvas_colour(canvas, RWS_GREY, 1);
    cairo_set_line_width(cairo, 0.6);
    cairo_move_to(cairo, box.x, zero);
    cairo_line_to(cairo, box.x + box.width, zero);
    cairo_stroke(cairo);
}

static rws_status draw(const rws_bars *bars, rws_canvas *canvas, rws_legend_key *keys, rws_error *err)
{
    double    page = bars->width > 0 ? bars->width : RWS_PAGE_WIDTH;
    double    tall = bars->height > 0 ? bars->height : fmin(fmax(page * 0.36, 110), 180);
    rws_range range;
    rws_tick  ticks[RWS_MAX_TICKS];
    char      caption[256];
    double    title_height = 0, label_height = 0, tick_height;
    RWS_TRY(y_range(bars, &range, err));
    int n_ticks = rws__axis_ticks(&bars->y, range, (int)fmax(2, round(tall / 22)), false, ticks);
    rws__axis_caption(&bars->y, caption, sizeof caption);
    rws__canvas_measure(canvas, "Xg", &(rws_text){.size = RWS_SIZE_TICK}, NULL, &tick_height);

    rws_text label = {.size = RWS_SIZE_LABEL, .colour = RWS_INK, .turn = -90, .wrap = tall + 10};
    rws_text title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK, .wrap = page - 40};
    if (caption[0]) rws__canvas_measure(canvas, caption, &label, NULL, &label_height);
    if (bars->title) rws__canvas_measure(canvas, bars->title, &title, NULL, &title_height);

    double left =
        EDGE + rws__ticks_width(canvas, ticks, n_ticks) + TICK_ROOM + (caption[0] ? LABEL_GAP + label_height : 0);
    double width = (page - left - EDGE) / MAX(bars->n_groups, 1);
    double widest, below;
    measure_names(bars, canvas, width - 6, &widest, &below);
    bool slanted = widest > width - 5;
    if (slanted) {
        measure_names(bars, canvas, 0, &widest, &below);
        below = widest * sin(SLANT * G_PI / 180) + below * cos(SLANT * G_PI / 180);
    }
    rws_legend legend = {0};
    if (bars->n_series > 1) legend = rws__legend_fit(canvas, keys, bars->n_series, page - 2 * EDGE);

    double top = EDGE + (bars->title ? title_height + TITLE_GAP : 0);
    double legend_top = top;
    if (legend.n_rows) top += legend.height + LEGEND_GAP;
    else top += tick_height / 2;
    rws_box box = {left, top, page - left - EDGE, tall};
    RWS_TRY(rws__canvas_page(canvas, page, top + tall + NAME_GAP + below + EDGE, bars->title, err));

    if (bars->title) rws__canvas_text(canvas, page / 2, EDGE, 0.5, 0, bars->title, &title);
    if (legend.n_rows) {
        double middle = legend.width <= box.width ? box.x + box.width / 2 : page / 2;
        rws__legend_draw(canvas, &legend, keys, bars->n_series, middle - legend.width / 2, legend_top);
    }
    rws__frame_grid(canvas, box, range, NULL, 0, range, ticks, n_ticks);
    for (int g = 0; g < bars->n_groups; g++) draw_group(bars, canvas, range, box, g);
    draw_names(bars, canvas, box, slanted);
    if (bars->n_groups == 0 || bars->n_series == 0)
        rws__canvas_text(canvas, box.x + box.width / 2, box.y + tall / 2, 0.5, 0.5, "no data",
                         &(rws_text){.size = RWS_SIZE_TICK, .colour = RWS_GREY});
    rws__frame_y_axis(canvas, box, range, ticks, n_ticks, true);
    draw_zero(canvas, range, box);
    rws__canvas_text(canvas, EDGE, box.y + tall / 2, 0.5, 0, caption, &label);
    return RWS_OK;
}

rws_status rws__bars_draw(const rws_bars *bars, const char *path, rws_error *err)
{
    RWS_CHECK(bars->n_groups >= 0 && bars->n_series >= 0);
    for (int s = 0; s < bars->n_series; s++) RWS_CHECK(!bars->series[s].low == !bars->series[s].high);
    if (bars->y.scale != RWS_AXIS_LINEAR)
        return rws_fail(err, RWS_BAD_INPUT, "The bars of '%s' begin at zero, which a logarithmic axis does not have.",
                        path);
    rws_canvas *canvas;
    RWS_TRY(rws__canvas_new(path, bars->dpi, &canvas, err));
    rws_legend_key *keys = g_new0(rws_legend_key, bars->n_series + 1);
    for (int s = 0; s < bars->n_series; s++) {
        const rws_bar_series *series = &bars->series[s];
        keys[s] = (rws_legend_key){.method = series->method,
                                   .bar = true,
                                   .label = series->label ? series->label : rws__style_name(series->method)};
    }
    rws_status status = draw(bars, canvas, keys, err);
    if (status == RWS_OK) status = rws__canvas_save(canvas, err);
    else rws__canvas_free(canvas);
    g_free(keys);
    return status;
}
