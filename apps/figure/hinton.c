#include "figure/hinton.h"

#include "base/error.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>

/* Distances in points. */
static const double EDGE = 6, GAP = 7, HEADING_GAP = 12, ROW_GAP = 8, NAME_GAP = 4, TITLE_GAP = 6, TEXT_GAP = 2;
static const double MIN_PANEL = 24;

/* A strip is as high as a line of its method's name. */
static const double STRIP = 9.2;

/* Probabilities up to this are not drawn. */
static const double LEAST = 1e-3;

/* Between two squares, and between a panel's edge and the first cell. */
static const double APART = 0.25, PAD = 2.5;

static const rws_colour STRIPE = {0.955, 0.955, 0.955};

static const double *strip_at(const rws_hinton *h, int row, int column, int strip)
{
    return h->values + (((size_t)row * h->n_columns + column) * h->n_strips + strip) * h->n_values;
}

/* The side of a square of probability 1: the largest at which every square of the panel stays within its strip and does
 * not touch others. */
static double panel_scale(const rws_hinton *h, int row, int column, double pitch)
{
    double scale = INFINITY;
    for (int strip = 0; strip < h->n_strips; strip++) {
        const double *p = strip_at(h, row, column, strip);
        for (int i = 0; i < h->n_values; i++) {
            if (!(p[i] > LEAST)) continue;
            double side = sqrt(p[i]);
            scale = fmin(scale, (STRIP - 1) / side);
            scale = fmin(scale, 2 * (PAD + pitch * (fmin(i, h->n_values - 1 - i) + 0.5)) / side);
            /* Squares farther apart than the height of a strip cannot touch. */
            for (int j = i + 1; j < h->n_values && (j - i) * pitch <= STRIP + APART; j++) {
                if (p[j] > LEAST)
                    scale = fmin(scale, fmax((j - i) * pitch - APART, 0.2 * pitch) * 2 / (side + sqrt(p[j])));
            }
        }
    }
    return isfinite(scale) ? scale : STRIP - 1;
}

static void draw_panel(const rws_hinton *h, rws_canvas *canvas, int row, int column, rws_box box)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    double   pitch = (box.width - 2 * PAD) / h->n_values, scale = panel_scale(h, row, column, pitch);
    for (int strip = 0; strip < h->n_strips; strip++) {
        double top = box.y + strip * STRIP;
        if (strip % 2 == 0) {
            rws__canvas_colour(canvas, STRIPE, 1);
            cairo_rectangle(cairo, box.x, top, box.width, STRIP);
            cairo_fill(cairo);
        }
        const double *p = strip_at(h, row, column, strip);
        for (int i = 0; i < h->n_values; i++) {
            if (!(p[i] > LEAST)) continue;
            double side = scale * sqrt(p[i]);
            cairo_rectangle(cairo, box.x + PAD + (i + 0.5) * pitch - side / 2, top + (STRIP - side) / 2, side, side);
        }
        rws__canvas_colour(canvas, rws__style_find(h->strips[strip].method)->colour, 1);
        cairo_fill(cairo);
    }
}

/* Draws the numbers of the outcomes under the lowest panel, as many as fit. */
static void draw_outcomes(const rws_hinton *h, rws_canvas *canvas, rws_box box)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    double   pitch = (box.width - 2 * PAD) / h->n_values;
    rws_text look = {.size = 7, .colour = RWS_GREY};
    char     text[16];
    double   widest;
    snprintf(text, sizeof text, "%d", h->n_values - 1);
    rws__canvas_measure(canvas, text, &look, &widest, NULL);
    int step = 1;
    for (int k = 1; step * pitch < widest + 5; k++)
        step = (k % 3 == 1 ? 2 : k % 3 == 2 ? 5 : 10) * (int)pow(10, (k - 1) / 3);
    for (int i = 0; i < h->n_values; i += step) {
        double x = box.x + PAD + (i + 0.5) * pitch, bottom = box.y + box.height;
        cairo_set_line_width(cairo, 0.6);
        rws__canvas_colour(canvas, RWS_GREY, 1);
        cairo_move_to(cairo, x, bottom);
        cairo_line_to(cairo, x, bottom + 2);
        cairo_stroke(cairo);
        snprintf(text, sizeof text, "%d", i);
        rws__canvas_text(canvas, x, bottom + 2.5, 0.5, 0, text, &look);
    }
}

/* The widest strip name. */
static double names_width(const rws_hinton *h, rws_canvas *canvas)
{
    double widest = 0;
    for (int s = 0; s < h->n_strips; s++) {
        const char *name = h->strips[s].label ? h->strips[s].label : rws__style_name(h->strips[s].method);
        double      width;
        rws__canvas_measure(canvas, name, &(rws_text){.size = RWS_SIZE_TICK}, &width, NULL);
        widest = fmax(widest, width);
    }
    return widest;
}

/* A wider gap where a heading begins, so that the columns under one heading stand together. */
static double gap_before(const rws_hinton *h, int column)
{
    for (int i = 0; i < h->n_headings; i++) {
        if (column > 0 && h->headings[i].first == column) return HEADING_GAP;
    }
    return column > 0 ? GAP : 0;
}

/* Draws each heading over its columns, with a line under it. */
static void draw_headings(const rws_hinton *h, rws_canvas *canvas, const double *left, double width, double top,
                          double line)
{
    cairo_t *cairo = rws__canvas_cairo(canvas);
    for (int i = 0; i < h->n_headings; i++) {
        const rws_heading *heading = &h->headings[i];
        double             from = left[heading->first], to = left[heading->first + heading->n_columns - 1] + width;
        rws__canvas_text(canvas, (from + to) / 2, top, 0.5, 0, heading->label,
                         &(rws_text){.size = RWS_SIZE_PANEL, .bold = true, .colour = RWS_INK});
        rws__canvas_colour(canvas, RWS_GREY, 1);
        cairo_set_line_width(cairo, 0.6);
        cairo_move_to(cairo, from, top + line);
        cairo_line_to(cairo, to, top + line);
        cairo_stroke(cairo);
    }
}

/* A row's name at the edge of the page, and its strips' names up to `right`. */
static void draw_names(const rws_hinton *h, rws_canvas *canvas, int row, double top, double right)
{
    if (h->rows)
        rws__canvas_text(canvas, EDGE, top + h->n_strips * STRIP / 2, 0.5, 0, h->rows[row],
                         &(rws_text){.size = RWS_SIZE_LABEL, .colour = RWS_INK, .turn = -90});
    for (int s = 0; s < h->n_strips; s++) {
        const char *name = h->strips[s].label ? h->strips[s].label : rws__style_name(h->strips[s].method);
        rws_colour  colour = rws__colour_ink(rws__style_find(h->strips[s].method)->colour);
        rws__canvas_text(canvas, right, top + (s + 0.5) * STRIP, 1, 0.5, name,
                         &(rws_text){.size = RWS_SIZE_TICK, .colour = colour});
    }
}

static rws_status draw(const rws_hinton *h, rws_canvas *canvas, double *left, const char *path, rws_error *err)
{
    double   page = h->width > 0 ? h->width : RWS_PAGE_WIDTH;
    double   tick, panel, label, title_height = 0;
    rws_text title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK, .wrap = page - 40};
    rws_text head = {.size = RWS_SIZE_PANEL, .colour = RWS_INK};
    rws__canvas_measure(canvas, "0", &(rws_text){.size = 7}, NULL, &tick);
    rws__canvas_measure(canvas, "Xg", &head, NULL, &panel);
    rws__canvas_measure(canvas, "Xg", &(rws_text){.size = RWS_SIZE_LABEL}, NULL, &label);
    if (h->title) rws__canvas_measure(canvas, h->title, &title, NULL, &title_height);

    double names = names_width(h, canvas), start = EDGE + (h->rows ? label + NAME_GAP : 0) + names + NAME_GAP;
    double gaps = 0;
    for (int column = 0; column < h->n_columns; column++) gaps += gap_before(h, column);
    double width = (page - start - EDGE - gaps) / h->n_columns, height = h->n_strips * STRIP;
    if (width < MIN_PANEL)
        return rws_fail(err, RWS_BAD_INPUT, "The figure '%s' has no room for %d columns of panels in %g points.", path,
                        h->n_columns, page);
    for (int column = 0; column < h->n_columns; column++)
        left[column] = (column ? left[column - 1] + width : start) + gap_before(h, column);

    double top = EDGE + (h->title ? title_height + TITLE_GAP : 0);
    double heading_top = top;
    if (h->n_headings) top += panel + 5;
    head.wrap = width + GAP - 2;
    double names_height = 0;
    for (int column = 0; h->columns && column < h->n_columns; column++) {
        double tall;
        rws__canvas_measure(canvas, h->columns[column], &head, NULL, &tall);
        names_height = fmax(names_height, tall);
    }
    if (h->columns) top += names_height + TEXT_GAP;
    double bottom = top + h->n_rows * (height + ROW_GAP) - ROW_GAP;
    double x_label = h->x_label ? label : 0;
    RWS_TRY(rws__canvas_page(canvas, page, bottom + 3 + tick + x_label + EDGE, h->title, err));

    if (h->title) rws__canvas_text(canvas, page / 2, EDGE, 0.5, 0, h->title, &title);
    draw_headings(h, canvas, left, width, heading_top, panel + 1.5);
    for (int column = 0; column < h->n_columns; column++) {
        double middle = left[column] + width / 2;
        if (h->columns) rws__canvas_text(canvas, middle, top - TEXT_GAP, 0.5, 1, h->columns[column], &head);
        for (int row = 0; row < h->n_rows; row++) {
            rws_box box = {left[column], top + row * (height + ROW_GAP), width, height};
            draw_panel(h, canvas, row, column, box);
            if (row + 1 == h->n_rows) draw_outcomes(h, canvas, box);
        }
        if (h->x_label)
            rws__canvas_text(canvas, middle, bottom + 3 + tick, 0.5, 0, h->x_label,
                             &(rws_text){.size = RWS_SIZE_LABEL, .colour = RWS_INK});
    }
    for (int row = 0; row < h->n_rows; row++)
        draw_names(h, canvas, row, top + row * (height + ROW_GAP), start - NAME_GAP);
    return RWS_OK;
}

rws_status rws__hinton_draw(const rws_hinton *hinton, const char *path, rws_error *err)
{
    RWS_CHECK(hinton->n_rows > 0 && hinton->n_columns > 0 && hinton->n_strips > 0 && hinton->n_values > 0);
    for (int i = 0; i < hinton->n_headings; i++)
        RWS_CHECK(hinton->headings[i].first >= 0 && hinton->headings[i].n_columns > 0 &&
                  hinton->headings[i].first + hinton->headings[i].n_columns <= hinton->n_columns);
    rws_canvas *canvas;
    RWS_TRY(rws__canvas_new(path, hinton->dpi, &canvas, err));
    double    *left = g_new(double, hinton->n_columns);
    rws_status status = draw(hinton, canvas, left, path, err);
    if (status == RWS_OK) status = rws__canvas_save(canvas, err);
    else rws__canvas_free(canvas);
    g_free(left);
    return status;
}
