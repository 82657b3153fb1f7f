/* canvas.h - one page, drawn once, saved as PNG, SVG or PDF.
 *
 * Wraps cairo and Pango: the file's type comes from the ending of its name, lengths are points (1/72 inch) with y
 * growing downwards, and text measures the same on every type, so one layout serves all three. It does not know axes or
 * curves.
 *
 *     chart, bars, hinton -> [canvas] -> file
 *
 * An SVG shows its text as outlines, so that it looks the same where the font is missing, and has the same text
 * invisibly on top, so that it can be searched, selected and read aloud. The file is written atomically. Without memory
 * the program ends, as it does inside Pango.
 */
#ifndef RWS_FIGURE_CANVAS_H
#define RWS_FIGURE_CANVAS_H

#include "figure/style.h"
#include "rws.h"

#include <cairo.h>
#include <stdbool.h>

typedef struct rws_canvas rws_canvas;

/* The look of a piece of text. Zeroed except for size: black, upright, a new line only at a newline. */
typedef struct {
    double     size; /* points */
    bool       bold;
    rws_colour colour;
    double     turn; /* degrees clockwise about the anchor: -90 reads upwards */
    double     wrap; /* breaks lines to this width, centred; 0 for no breaking */
} rws_text;

/* Starts a canvas for the path, without a page yet: text can be measured, nothing can be drawn. dpi is for PNG only; 0
 * stands for 220. Fails with RWS_BAD_INPUT if the path does not end in .png, .svg or .pdf, and with RWS_NO_MEMORY; *out
 * is then NULL. The caller owns *out until rws__canvas_save or rws__canvas_free takes it. */
rws_status rws__canvas_new(const char *path, double dpi, rws_canvas **out, rws_error *err);

/* The family of all text, which must stay; NULL for DejaVu Sans. */
void rws__canvas_font(rws_canvas *canvas, const char *family);

/* Opens the white page, once. Fails with RWS_BAD_INPUT if it has no size or would be larger than cairo can hold; the
 * canvas then still needs rws__canvas_free. title goes into the file's metadata and may be NULL. */
rws_status rws__canvas_page(rws_canvas *canvas, double width, double height, const char *title, rws_error *err);

/* The page to draw on. Belongs to the canvas. */
cairo_t *rws__canvas_cairo(rws_canvas *canvas);

/* Writes the width and the height of the text's box, unturned; either may be NULL. */
void rws__canvas_measure(rws_canvas *canvas, const char *string, const rws_text *text, double *width, double *height);

/* Draws the string with the point (across, down) of its box, each from 0 to 1, at (x, y). Bytes that are not UTF-8 and
 * control characters are shown as replacements. */
void rws__canvas_text(rws_canvas *canvas, double x, double y, double across, double down, const char *string,
                      const rws_text *text);

void rws__canvas_colour(rws_canvas *canvas, rws_colour colour, double alpha);

/* Writes the file and frees the canvas, also when it fails: RWS_BAD_INPUT if the file cannot be written, in which
 * case a file that was there before is untouched. */
rws_status rws__canvas_save(rws_canvas *canvas, rws_error *err);

/* Frees a canvas without writing anything. NULL is allowed. */
void rws__canvas_free(rws_canvas *canvas);

#endif
