#include "figure/canvas.h"

#include "base/error.h"
#include "base/file.h"
#include "figure/memory.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <glib.h>
#include <math.h>
#include <pango/pangocairo.h>
#include <string.h>
#include <strings.h>

typedef enum {
    TYPE_PNG,
    TYPE_SVG,
    TYPE_PDF,
} file_type;

static const char *const endings[] = {[TYPE_PNG] = ".png", [TYPE_SVG] = ".svg", [TYPE_PDF] = ".pdf"};

struct rws_canvas {
    char            *path;
    file_type        type;
    double           dpi;
    PangoFontMap    *fonts; /* its own, so that nothing outlives the canvas */
    PangoContext    *context;
    const char      *font;    /* NULL: the usual one */
    cairo_surface_t *surface; /* NULL until the page is opened */
    cairo_t         *cairo;
    GByteArray      *bytes; /* the file so far: cairo writes here, never to disk */
    GString         *words; /* SVG only: the invisible text */
    char            *title;
};

/* A copy without control characters, which XML does not allow, and with valid UTF-8, because Pango prints warnings
 * about other text. */
static char *clean(const char *string)
{
    char *valid = g_utf8_make_valid(string ? string : "", -1);
    for (char *c = valid; *c; c++) {
        if (((unsigned char)*c < 32 && *c != '\n') || *c == 127) *c = ' ';
    }
    return valid;
}

rws_status rws__canvas_new(const char *path, double dpi, rws_canvas **out, rws_error *err)
{
    *out = NULL;
    const char *ending = strrchr(path, '.');
    int         type = -1;
    for (int i = 0; ending && i < (int)G_N_ELEMENTS(endings); i++) {
        if (strcasecmp(ending, endings[i]) == 0) type = i;
    }
    if (type < 0) return rws_fail(err, RWS_BAD_INPUT, "The figure '%s' must end in .png, .svg or .pdf.", path);
    if (!(dpi >= 0 && dpi <= 2400))
        return rws_fail(err, RWS_BAD_INPUT, "The figure '%s' cannot have %g dots per inch.", path, dpi);
    RWS_TRY(rws__figure_check_memory(err));

    rws_canvas *canvas = g_new0(rws_canvas, 1);
    canvas->path = g_strdup(path);
    canvas->type = (file_type)type;
    canvas->dpi = dpi > 0 ? dpi : 220;
    canvas->fonts = pango_cairo_font_map_new();
    canvas->context = pango_font_map_create_context(canvas->fonts);
    canvas->bytes = g_byte_array_new();
    /* Hinting rounds widths to pixels, and would make a layout depend on the file's type. */
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    pango_cairo_context_set_font_options(canvas->context, options);
    cairo_font_options_destroy(options);
    pango_context_set_round_glyph_positions(canvas->context, FALSE);
    *out = canvas;
    return RWS_OK;
}

static cairo_status_t take_bytes(void *closure, const unsigned char *data, unsigned int length)
{
    g_byte_array_append(closure, data, length);
    return CAIRO_STATUS_SUCCESS;
}

rws_status rws__canvas_page(rws_canvas *canvas, double width, double height, const char *title, rws_error *err)
{
    RWS_CHECK(!canvas->surface);
    double scale = canvas->type == TYPE_PNG ? canvas->dpi / 72 : 1;
    if (!(width > 0 && height > 0 && width * scale <= 32000 && height * scale <= 32000))
        return rws_fail(err, RWS_BAD_INPUT, "The figure '%s' cannot be %g by %g points large.", canvas->path, width,
                        height);
    canvas->title = clean(title);
    switch (canvas->type) {
    case TYPE_PNG:
        canvas->surface =
            cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * scale), (int)ceil(height * scale));
        cairo_surface_set_device_scale(canvas->surface, scale, scale);
        break;
    case TYPE_SVG:
        canvas->surface = cairo_svg_surface_create_for_stream(take_bytes, canvas->bytes, width, height);
        canvas->words = g_string_new(NULL);
        break;
    case TYPE_PDF:
        canvas->surface = cairo_pdf_surface_create_for_stream(take_bytes, canvas->bytes, width, height);
        if (canvas->title[0]) cairo_pdf_surface_set_metadata(canvas->surface, CAIRO_PDF_METADATA_TITLE, canvas->title);
        /* No date in the file, so that the same data give the same file. */
        cairo_pdf_surface_set_metadata(canvas->surface, CAIRO_PDF_METADATA_CREATE_DATE, "");
        break;
    }
    canvas->cairo = cairo_create(canvas->surface);
    cairo_set_source_rgb(canvas->cairo, 1, 1, 1);
    cairo_paint(canvas->cairo);
    pango_cairo_update_context(canvas->cairo, canvas->context);
    return RWS_OK;
}

void rws__canvas_font(rws_canvas *canvas, const char *family)
{
    canvas->font = family;
}

cairo_t *rws__canvas_cairo(rws_canvas *canvas)
{
    RWS_CHECK(canvas->cairo);
    return canvas->cairo;
}

/* A space at which no line is broken: "K = 20" stays in one piece. */
#define HOLD "\u00a0"

static PangoLayout *lay_out(rws_canvas *canvas, const char *string, const rws_text *text)
{
    RWS_CHECK(text->size > 0);
    PangoLayout          *layout = pango_layout_new(canvas->context);
    PangoFontDescription *font = pango_font_description_from_string("DejaVu Sans, sans-serif");
    if (canvas->font) pango_font_description_set_family(font, canvas->font);
    pango_font_description_set_absolute_size(font, text->size * PANGO_SCALE);
    if (text->bold) pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    if (text->wrap > 0) {
        pango_layout_set_width(layout, (int)(text->wrap * PANGO_SCALE));
        pango_layout_set_wrap(layout, PANGO_WRAP_WORD);
        pango_layout_set_alignment(layout, PANGO_ALIGN_CENTER);
    }
    char *cleaned = clean(string);
    if (text->wrap > 0) {
        char **parts = g_strsplit(cleaned, " = ", -1);
        g_free(cleaned);
        cleaned = g_strjoinv(HOLD "=" HOLD, parts);
        g_strfreev(parts);
    }
    pango_layout_set_text(layout, cleaned, -1);
    g_free(cleaned);
    return layout;
}

void rws__canvas_measure(rws_canvas *canvas, const char *string, const rws_text *text, double *width, double *height)
{
    PangoLayout   *layout = lay_out(canvas, string, text);
    PangoRectangle box;
    pango_layout_get_extents(layout, NULL, &box);
    if (width) *width = (double)box.width / PANGO_SCALE;
    if (height) *height = (double)box.height / PANGO_SCALE;
    g_object_unref(layout);
}

/* Numbers inside XML need a point in every locale. */
static void append_number(GString *xml, const char *name, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, "%.2f", value);
    g_string_append_printf(xml, " %s=\"%s\"", name, number);
}

/* One invisible <text> per line of the layout, where the line is drawn. (left, top) is the layout's corner relative to
 * the anchor (x, y) it turns about. */
static void append_words(GString *xml, PangoLayout *layout, double x, double y, double left, double top,
                         const rws_text *text)
{
    PangoLayoutIter *iter = pango_layout_get_iter(layout);
    do {
        PangoLayoutLine *line = pango_layout_iter_get_line_readonly(iter);
        PangoRectangle   box;
        pango_layout_iter_get_line_extents(iter, NULL, &box);
        if (line->length == 0) continue;
        char *raw = g_strndup(pango_layout_get_text(layout) + line->start_index, line->length);
        /* Plain spaces, so that a search finds what was written. */
        char **parts = g_strsplit(g_strstrip(raw), HOLD, -1);
        char  *plain = g_strjoinv(" ", parts);
        char  *escaped = g_markup_escape_text(plain, -1);
        g_string_append(xml, "<text");
        append_number(xml, "x", x + left + (double)box.x / PANGO_SCALE);
        append_number(xml, "y", y + top + (double)pango_layout_iter_get_baseline(iter) / PANGO_SCALE);
        append_number(xml, "font-size", text->size);
        if (box.width > 0) append_number(xml, "textLength", (double)box.width / PANGO_SCALE);
        if (text->turn != 0) {
            char numbers[3][G_ASCII_DTOSTR_BUF_SIZE];
            g_ascii_formatd(numbers[0], sizeof numbers[0], "%.2f", text->turn);
            g_ascii_formatd(numbers[1], sizeof numbers[1], "%.2f", x);
            g_ascii_formatd(numbers[2], sizeof numbers[2], "%.2f", y);
            g_string_append_printf(xml, " transform=\"rotate(%s %s %s)\"", numbers[0], numbers[1], numbers[2]);
        }
        g_string_append_printf(xml, ">%s</text>\n", escaped);
        g_free(escaped);
        g_free(plain);
        g_strfreev(parts);
        g_free(raw);
    } while (pango_layout_iter_next_line(iter));
    pango_layout_iter_free(iter);
}

void rws__canvas_text(rws_canvas *canvas, double x, double y, double across, double down, const char *string,
                      const rws_text *text)
{
    RWS_CHECK(canvas->cairo);
    if (!string || !string[0]) return;
    PangoLayout   *layout = lay_out(canvas, string, text);
    PangoRectangle box;
    pango_layout_get_extents(layout, NULL, &box);
    double left = -across * box.width / PANGO_SCALE - (double)box.x / PANGO_SCALE;
    double top = -down * box.height / PANGO_SCALE - (double)box.y / PANGO_SCALE;

    cairo_save(canvas->cairo);
    cairo_translate(canvas->cairo, x, y);
    cairo_rotate(canvas->cairo, text->turn * G_PI / 180);
    cairo_move_to(canvas->cairo, left, top);
    rws__canvas_colour(canvas, text->colour, 1);
    pango_cairo_update_layout(canvas->cairo, layout);
    pango_cairo_show_layout(canvas->cairo, layout);
    cairo_restore(canvas->cairo);

    if (canvas->words) append_words(canvas->words, layout, x, y, left, top, text);
    g_object_unref(layout);
}

void rws__canvas_colour(rws_canvas *canvas, rws_colour colour, double alpha)
{
    cairo_set_source_rgba(canvas->cairo, colour.red, colour.green, colour.blue, alpha);
}

/* Puts the title behind <svg …> and the invisible text before </svg>. */
static void finish_svg(rws_canvas *canvas)
{
    GByteArray *bytes = canvas->bytes;
    char       *xml = g_strndup((const char *)bytes->data, bytes->len);
    char       *root = strstr(xml, "<svg");
    char       *head = root ? strchr(root, '>') : NULL;
    char       *tail = g_strrstr(xml, "</svg>");
    if (head && tail) {
        char *title = g_markup_escape_text(canvas->title, -1);
        g_byte_array_set_size(bytes, 0);
        g_byte_array_append(bytes, (guint8 *)xml, (guint)(head + 1 - xml));
        GString *middle = g_string_new("\n");
        if (title[0]) g_string_append_printf(middle, "<title>%s</title>", title);
        g_byte_array_append(bytes, (guint8 *)middle->str, (guint)middle->len);
        g_byte_array_append(bytes, (guint8 *)(head + 1), (guint)(tail - head - 1));
        g_string_printf(
            middle, "<g fill=\"#000\" fill-opacity=\"0\" font-family=\"DejaVu Sans, sans-serif\">\n%s</g>\n</svg>\n",
            canvas->words->str);
        g_byte_array_append(bytes, (guint8 *)middle->str, (guint)middle->len);
        g_string_free(middle, TRUE);
        g_free(title);
    }
    g_free(xml);
}

rws_status rws__canvas_save(rws_canvas *canvas, rws_error *err)
{
    RWS_CHECK(canvas->cairo);
    cairo_status_t drawn = cairo_status(canvas->cairo);
    if (drawn == CAIRO_STATUS_SUCCESS && canvas->type == TYPE_PNG)
        drawn = cairo_surface_write_to_png_stream(canvas->surface, take_bytes, canvas->bytes);
    cairo_surface_finish(canvas->surface);
    if (drawn == CAIRO_STATUS_SUCCESS) drawn = cairo_surface_status(canvas->surface);

    rws_status status;
    if (drawn != CAIRO_STATUS_SUCCESS) {
        status = rws_fail(err, RWS_BAD_INPUT, "The figure '%s' cannot be drawn: %s.", canvas->path,
                          cairo_status_to_string(drawn));
    } else {
        if (canvas->type == TYPE_SVG) finish_svg(canvas);
        status = rws__file_write(canvas->path, &(rws_piece){canvas->bytes->data, canvas->bytes->len}, 1, err);
    }
    rws__canvas_free(canvas);
    return status;
}

void rws__canvas_free(rws_canvas *canvas)
{
    if (!canvas) return;
    if (canvas->cairo) cairo_destroy(canvas->cairo);
    /* The surface may still flush into bytes. */
    if (canvas->surface) cairo_surface_destroy(canvas->surface);
    g_object_unref(canvas->context);
    g_object_unref(canvas->fonts);
    g_byte_array_unref(canvas->bytes);
    if (canvas->words) g_string_free(canvas->words, TRUE);
    g_free(canvas->title);
    g_free(canvas->path);
    g_free(canvas);
}
