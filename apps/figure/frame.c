#include "figure/frame.h"

#include <glib.h>
#include <math.h>

const double RWS_SIZE_TITLE = 10, RWS_SIZE_PANEL = 8.5, RWS_SIZE_LABEL = 8.5, RWS_SIZE_TICK = 7.5, RWS_SIZE_KEY = 8.5;

const rws_colour RWS_INK = {0.13, 0.13, 0.13}, RWS_GREY = {0.38, 0.38, 0.38}, RWS_PALE = {0.90, 0.90, 0.90};

const double RWS_PAGE_WIDTH = 504;

static const double LINE_WIDTH = 1.2, MARK_RADIUS = 2;
static const double TICK = 3, MINOR_TICK = 1.8, TICK_GAP = 2;

/* A key is its sample, a gap, its label; keys stand a wider gap apart. */
static const double SAMPLE = 23, BAR_SAMPLE = 11, SAMPLE_GAP = 4, KEY_GAP = 15, KEY_LEADING = 3;

static double sample_width(const rws_legend_key *key)
{
    return key->bar ? BAR_SAMPLE : SAMPLE;
}

static double key_width(rws_canvas *canvas, const rws_legend_key *key)
{
    double width;
    rws__canvas_measure(canvas, key->label, &(rws_text){.size = RWS_SIZE_KEY}, &width, NULL);
    return sample_width(key) + SAMPLE_GAP + width;
}

rws_legend rws__legend_fit(rws_canvas *canvas, const rws_legend_key *keys, int n_keys, double width)
{
    rws_legend legend = {0};
    if (n_keys == 0) return legend;
    double height, widest = 0, all = -KEY_GAP;
    rws__canvas_measure(canvas, "Xg", &(rws_text){.size = RWS_SIZE_KEY}, NULL, &height);
    for (int i = 0; i < n_keys; i++) {
        double one = key_width(canvas, &keys[i]);
        widest = fmax(widest, one);
        all += one + KEY_GAP;
    }
    if (all <= width) {
        /* One row needs no aligned columns: each key takes what it needs. */
        return (rws_legend){1, n_keys, all, height, 0};
    }
    int most = (int)fmax(1, floor((width + KEY_GAP) / (widest + KEY_GAP)));
    legend.n_rows = (n_keys + most - 1) / most;
    legend.n_columns = (n_keys + legend.n_rows - 1) / legend.n_rows;
    legend.cell = widest + KEY_GAP;
    legend.width = legend.n_columns * legend.cell - KEY_GAP;
    legend.height = legend.n_rows * height + (legend.n_rows - 1) * KEY_LEADING;
    return legend;
}

void rws__legend_draw(rws_canvas *canvas, const rws_legend *legend, const rws_legend_key *keys, int n_keys, double x,
                      double y)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    double   line = legend->n_rows ? (legend->height + KEY_LEADING) / legend->n_rows : 0;
    double   next = x;
    for (int i = 0; i < n_keys; i++) {
        const rws_legend_key *key = &keys[i];
        double                left = legend->cell > 0 ? x + i % legend->n_columns * legend->cell : next;
        double                middle = y + i / legend->n_columns * line + (line - KEY_LEADING) / 2;
        if (key->bar) {
            rws__frame_bar(canvas, key->method, key->shade, (rws_box){left, middle - 4, BAR_SAMPLE, 8});
        } else {
            cairo_save(cairo);
            rws__frame_pen(canvas, key->method, key->line, key->shade);
            cairo_move_to(cairo, left, middle);
            cairo_line_to(cairo, left + SAMPLE, middle);
            cairo_stroke(cairo);
            cairo_restore(cairo);
            if (key->marks) rws__frame_mark(canvas, key->method, key->shade, left + SAMPLE / 2, middle);
        }
        rws__canvas_text(canvas, left + sample_width(key) + SAMPLE_GAP, middle, 0, 0.5, key->label,
                         &(rws_text){.size = RWS_SIZE_KEY, .colour = RWS_INK});
        next += key_width(canvas, key) + KEY_GAP;
    }
}

double rws__ticks_width(rws_canvas *canvas, const rws_tick *ticks, int n_ticks)
{
    double widest = 0;
    for (int i = 0; i < n_ticks; i++) {
        double width;
        if (ticks[i].minor) continue;
        rws__canvas_measure(canvas, ticks[i].text, &(rws_text){.size = RWS_SIZE_TICK}, &width, NULL);
        widest = fmax(widest, width);
    }
    return widest;
}

void rws__frame_grid(rws_canvas *canvas, rws_box box, rws_range x_range, const rws_tick *x, int n_x, rws_range y_range,
                     const rws_tick *y, int n_y)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    cairo_save(cairo);
    cairo_set_line_width(cairo, 0.5);
    rws__canvas_colour(canvas, RWS_PALE, 1);
    for (int i = 0; i < n_x; i++) {
        if (x[i].minor) continue;
        double place = box.x + box.width * rws__range_place(x_range, x[i].value);
        cairo_move_to(cairo, place, box.y);
        cairo_line_to(cairo, place, box.y + box.height);
    }
    for (int i = 0; i < n_y; i++) {
        if (y[i].minor) continue;
        double place = box.y + box.height * (1 - rws__range_place(y_range, y[i].value));
        cairo_move_to(cairo, box.x, place);
        cairo_line_to(cairo, box.x + box.width, place);
    }
    cairo_stroke(cairo);
    cairo_restore(cairo);
}

void rws__frame_x_axis(rws_canvas *canvas, rws_box box, rws_range range, const rws_tick *ticks, int n_ticks,
                       bool labels)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    double   bottom = box.y + box.height;
    cairo_save(cairo);
    cairo_set_line_width(cairo, 0.6);
    rws__canvas_colour(canvas, RWS_GREY, 1);
    cairo_move_to(cairo, box.x - 0.3, bottom);
    cairo_line_to(cairo, box.x + box.width + 0.3, bottom);
    for (int i = 0; i < n_ticks; i++) {
        double place = box.x + box.width * rws__range_place(range, ticks[i].value);
        cairo_move_to(cairo, place, bottom);
        cairo_line_to(cairo, place, bottom + (ticks[i].minor ? MINOR_TICK : TICK));
    }
    cairo_stroke(cairo);
    cairo_restore(cairo);
    for (int i = 0; labels && i < n_ticks; i++) {
        double place = box.x + box.width * rws__range_place(range, ticks[i].value);
        rws__canvas_text(canvas, place, bottom + TICK + TICK_GAP - 0.5, 0.5, 0, ticks[i].text,
                         &(rws_text){.size = RWS_SIZE_TICK, .colour = RWS_GREY});
    }
}

void rws__frame_y_axis(rws_canvas *canvas, rws_box box, rws_range range, const rws_tick *ticks, int n_ticks,
                       bool labels)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    cairo_save(cairo);
    cairo_set_line_width(cairo, 0.6);
    rws__canvas_colour(canvas, RWS_GREY, 1);
    cairo_move_to(cairo, box.x, box.y);
    cairo_line_to(cairo, box.x, box.y + box.height);
    for (int i = 0; i < n_ticks; i++) {
        double place = box.y + box.height * (1 - rws__range_place(range, ticks[i].value));
        cairo_move_to(cairo, box.x, place);
        cairo_line_to(cairo, box.x - (ticks[i].minor ? MINOR_TICK : TICK), place);
    }
    cairo_stroke(cairo);
    cairo_restore(cairo);
    for (int i = 0; labels && i < n_ticks; i++) {
        double place = box.y + box.height * (1 - rws__range_place(range, ticks[i].value));
        rws__canvas_text(canvas, box.x - TICK - TICK_GAP, place, 1, 0.5, ticks[i].text,
                         &(rws_text){.size = RWS_SIZE_TICK, .colour = RWS_GREY});
    }
}

void rws__frame_pen(rws_canvas *canvas, const char *method, rws_line line, double shade)
{
    static const double plain_dash[] = {4, 2};
    cairo_t            *cairo = rws__canvas_cairo(canvas);
    const rws_style    *style = rws__style_find(method);
    cairo_set_line_width(cairo, LINE_WIDTH);
    cairo_set_line_cap(cairo, CAIRO_LINE_CAP_BUTT);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    rws__canvas_colour(canvas, rws__colour_shade(style->colour, shade), 1);
    if (line == RWS_LINE_SOLID || (line == RWS_LINE_AS_METHOD && style->n_dash == 0)) cairo_set_dash(cairo, NULL, 0, 0);
    else if (style->n_dash > 0) cairo_set_dash(cairo, style->dash, style->n_dash, 0);
    else cairo_set_dash(cairo, plain_dash, 2, 0);
}

void rws__frame_mark(rws_canvas *canvas, const char *method, double shade, double x, double y)
{
    cairo_t         *cairo = rws__canvas_cairo(canvas);
    const rws_style *style = rws__style_find(method);
    double           r = MARK_RADIUS;
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_set_dash(cairo, NULL, 0, 0);
    cairo_new_path(cairo);
    switch (style->mark) {
    case RWS_MARK_CIRCLE: cairo_arc(cairo, 0, 0, r, 0, 2 * G_PI); break;
    case RWS_MARK_SQUARE: cairo_rectangle(cairo, -0.9 * r, -0.9 * r, 1.8 * r, 1.8 * r); break;
    case RWS_MARK_DIAMOND:
        cairo_move_to(cairo, 0, -1.3 * r);
        cairo_line_to(cairo, 1.3 * r, 0);
        cairo_line_to(cairo, 0, 1.3 * r);
        cairo_line_to(cairo, -1.3 * r, 0);
        break;
    case RWS_MARK_UP:
    case RWS_MARK_DOWN:
        if (style->mark == RWS_MARK_DOWN) cairo_scale(cairo, 1, -1);
        cairo_move_to(cairo, 0, -1.25 * r);
        cairo_line_to(cairo, 1.15 * r, 0.8 * r);
        cairo_line_to(cairo, -1.15 * r, 0.8 * r);
        break;
    case RWS_MARK_PLUS:
    case RWS_MARK_CROSS: {
        /* Twelve corners of a cross with arms of half-width w. */
        double w = 0.36 * r, l = 1.25 * r;
        if (style->mark == RWS_MARK_CROSS) cairo_rotate(cairo, G_PI / 4);
        for (int side = 0; side < 4; side++) {
            cairo_line_to(cairo, -w, -l);
            cairo_line_to(cairo, w, -l);
            cairo_line_to(cairo, w, -w);
            cairo_rotate(cairo, G_PI / 2);
        }
        break;
    }
    }
    cairo_close_path(cairo);
    /* A white edge keeps a mark readable on lines and bands. */
    cairo_set_source_rgb(cairo, 1, 1, 1);
    cairo_set_line_width(cairo, 1.2);
    cairo_stroke_preserve(cairo);
    rws__canvas_colour(canvas, rws__colour_shade(style->colour, shade), 1);
    cairo_fill(cairo);
    cairo_restore(cairo);
}

void rws__frame_bar(rws_canvas *canvas, const char *method, double shade, rws_box box)
{
    cairo_t         *cairo = rws__canvas_cairo(canvas);
    const rws_style *style = rws__style_find(method);
    rws_colour       colour = rws__colour_shade(style->colour, shade);
    cairo_save(cairo);
    cairo_rectangle(cairo, box.x, box.y, box.width, box.height);
    if (style->n_dash == 0) {
        rws__canvas_colour(canvas, colour, 1);
        cairo_fill(cairo);
    } else {
        rws__canvas_colour(canvas, rws__colour_tint(colour, 0.72), 1);
        cairo_fill_preserve(cairo);
        cairo_clip(cairo);
        rws__canvas_colour(canvas, colour, 1);
        cairo_set_line_width(cairo, 1);
        /* Hatches lie on one family of lines for the whole page, so that neighbouring bars match. */
        for (double c = floor((box.x + box.y) / 3.5) * 3.5; c < box.x + box.width + box.y + box.height; c += 3.5) {
            cairo_move_to(cairo, c - box.y + 1, box.y - 1);
            cairo_line_to(cairo, c - box.y - box.height - 1, box.y + box.height + 1);
        }
        cairo_stroke(cairo);
        cairo_reset_clip(cairo);
        cairo_set_line_width(cairo, 0.8);
        cairo_rectangle(cairo, box.x + 0.4, box.y + 0.4, fmax(box.width - 0.8, 0), fmax(box.height - 0.4, 0));
        cairo_stroke(cairo);
    }
    cairo_restore(cairo);
}
