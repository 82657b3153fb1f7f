#include "figure/images.h"

#include "base/error.h"
#include "figure/canvas.h"
#include "figure/frame.h"

#include <glib.h>
#include <math.h>

/* Distances in points. */
static const double EDGE = 6, GAP = 4, NAME_GAP = 5, TITLE_GAP = 6, LARGEST = 90, SMALLEST = 8;

/* An image as a cairo surface, which the caller destroys. */
static cairo_surface_t *surface_of(const rws_images *g, const double *values)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, g->wide, g->high);
    unsigned char   *data = cairo_image_surface_get_data(surface);
    const int        stride = cairo_image_surface_get_stride(surface);
    cairo_surface_flush(surface);
    for (int y = 0; data && y < g->high; y++) {
        guint32 *row = (guint32 *)(void *)(data + (size_t)y * stride);
        for (int x = 0; x < g->wide; x++) {
            const double  value = values[(size_t)y * g->wide + x];
            const guint32 grey = isnan(value) ? 0 : (guint32)lround(255 * fmin(fmax(value, 0), 1));
            row[x] = isnan(value) ? 0 : 0xff000000u | grey << 16 | grey << 8 | grey;
        }
    }
    cairo_surface_mark_dirty(surface);
    return surface;
}

static bool is_empty(const rws_images *g, const double *values)
{
    size_t i = 0, size = (size_t)g->wide * (size_t)g->high;
    while (i < size && isnan(values[i])) i++;
    return i == size;
}

static void draw_image(const rws_images *g, rws_canvas *canvas, const double *values, rws_box box)
{
    if (is_empty(g, values)) return;
    cairo_t         *cairo = rws__canvas_cairo(canvas);
    cairo_surface_t *surface = surface_of(g, values);
    cairo_save(cairo);
    cairo_translate(cairo, box.x, box.y);
    cairo_scale(cairo, box.width / g->wide, box.height / g->high);
    cairo_set_source_surface(cairo, surface, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cairo), CAIRO_FILTER_NEAREST);
    cairo_rectangle(cairo, 0, 0, g->wide, g->high);
    cairo_fill(cairo);
    cairo_restore(cairo);
    cairo_surface_destroy(surface);
    cairo_set_line_width(cairo, 0.5);
    rws__canvas_colour(canvas, RWS_GREY, 1);
    cairo_rectangle(cairo, box.x, box.y, box.width, box.height);
    cairo_stroke(cairo);
}

/* The colours of drawings.js. */
static void draw_box(rws_canvas *canvas, const rws_image_box *b, rws_box image)
{
    static const rws_colour colours[] = {{0xE6 / 255.0, 0x9F / 255.0, 0x00 / 255.0},
                                         {0x56 / 255.0, 0xB4 / 255.0, 0xE9 / 255.0},
                                         {0x00 / 255.0, 0x9E / 255.0, 0x73 / 255.0},
                                         {0xCC / 255.0, 0x79 / 255.0, 0xA7 / 255.0}};
    cairo_t                *cairo = rws__canvas_cairo(canvas);
    const double            wide = image.width / 2, high = image.height / 2;
    cairo_save(cairo);
    cairo_rectangle(cairo, image.x, image.y, image.width, image.height);
    cairo_clip(cairo);
    cairo_rectangle(cairo, image.x + wide * (1 + b->x - b->wide), image.y + high * (1 + b->y - b->high),
                    2 * wide * b->wide, 2 * high * b->high);
    cairo_set_line_width(cairo, fmax(1, image.width / 60));
    rws__canvas_colour(canvas, colours[(size_t)b->number % (sizeof colours / sizeof *colours)], 1);
    cairo_stroke(cairo);
    cairo_restore(cairo);
}

static rws_status draw(const rws_images *g, rws_canvas *canvas, const char *path, rws_error *err)
{
    const double page = g->width > 0 ? g->width : RWS_PAGE_WIDTH;
    rws_text     title = {.size = RWS_SIZE_TITLE, .bold = true, .colour = RWS_INK, .wrap = page - 40};
    rws_text     name = {.size = RWS_SIZE_LABEL, .colour = RWS_INK};
    double       left = EDGE, top = EDGE, height;
    for (int r = 0; g->rows && r < g->n_rows; r++) {
        double width;
        rws__canvas_measure(canvas, g->rows[r], &name, &width, NULL);
        left = fmax(left, EDGE + width + NAME_GAP);
    }
    const double wide = fmin((page - left - EDGE - (g->n_columns - 1) * GAP) / g->n_columns, LARGEST);
    const double high = wide * g->high / g->wide;
    if (wide < SMALLEST)
        return rws_fail(err, RWS_BAD_INPUT, "The figure '%s' has no room for %d images in %g points.", path,
                        g->n_columns, page);
    name.wrap = wide + GAP;
    if (g->title) {
        rws__canvas_measure(canvas, g->title, &title, NULL, &height);
        top += height + TITLE_GAP;
    }
    double above = 0;
    for (int c = 0; g->columns && c < g->n_columns; c++) {
        rws__canvas_measure(canvas, g->columns[c], &name, NULL, &height);
        above = fmax(above, height + 2);
    }
    RWS_TRY(rws__canvas_page(canvas, left + g->n_columns * (wide + GAP) - GAP + EDGE,
                             top + above + g->n_rows * (high + GAP) - GAP + EDGE, g->title, err));
    const double middle = (left + g->n_columns * (wide + GAP) - GAP + EDGE) / 2;
    if (g->title) rws__canvas_text(canvas, middle, EDGE, 0.5, 0, g->title, &title);
    for (int c = 0; g->columns && c < g->n_columns; c++)
        rws__canvas_text(canvas, left + c * (wide + GAP) + wide / 2, top + above - 2, 0.5, 1, g->columns[c], &name);
    name.wrap = 0;
    for (int r = 0; r < g->n_rows; r++) {
        const double y = top + above + r * (high + GAP);
        if (g->rows) rws__canvas_text(canvas, left - NAME_GAP, y + high / 2, 1, 0.5, g->rows[r], &name);
        for (int c = 0; c < g->n_columns; c++) {
            const rws_box box = {left + c * (wide + GAP), y, wide, high};
            draw_image(g, canvas, g->values + ((size_t)r * g->n_columns + c) * g->wide * g->high, box);
            for (int b = 0; b < g->n_boxes; b++)
                if (g->boxes[b].image == r * g->n_columns + c) draw_box(canvas, &g->boxes[b], box);
        }
    }
    return RWS_OK;
}

rws_status rws__images_draw(const rws_images *images, const char *path, rws_error *err)
{
    RWS_CHECK(images->n_rows > 0 && images->n_columns > 0 && images->wide > 0 && images->high > 0);
    rws_canvas *canvas;
    RWS_TRY(rws__canvas_new(path, images->dpi, &canvas, err));
    const rws_status status = draw(images, canvas, path, err);
    if (status == RWS_OK) return rws__canvas_save(canvas, err);
    rws__canvas_free(canvas);
    return status;
}
