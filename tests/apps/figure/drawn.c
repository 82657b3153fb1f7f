#include "drawn.h"

#include "figure/style.h"

#include <stdio.h>
#include <string.h>

picture open_picture(const char *name)
{
    picture p = {.surface = cairo_image_surface_create_from_png(in_folder(name))};
    assert_int_equal(cairo_surface_status(p.surface), CAIRO_STATUS_SUCCESS);
    p.width = cairo_image_surface_get_width(p.surface);
    p.height = cairo_image_surface_get_height(p.surface);
    return p;
}

void close_picture(picture p)
{
    cairo_surface_destroy(p.surface);
}

uint32_t pixel_at(picture p, int x, int y)
{
    const unsigned char *row =
        cairo_image_surface_get_data(p.surface) + (size_t)y * cairo_image_surface_get_stride(p.surface);
    uint32_t pixel;
    memcpy(&pixel, row + 4 * (size_t)x, sizeof pixel);
    return pixel & 0xffffff;
}

/* Whether the pixel shows the method's colour, unmixed. */
static bool shows(picture p, int x, int y, const char *method)
{
    const uint32_t   pixel = pixel_at(p, x, y);
    const rws_colour c = rws__style_find(method)->colour;
    return fabs((pixel >> 16) - c.red * 255) < 3 && fabs((pixel >> 8 & 255) - c.green * 255) < 3 &&
           fabs((pixel & 255) - c.blue * 255) < 3;
}

bool find_colour(picture p, const char *method, int box[4], bool *columns)
{
    box[0] = p.width, box[1] = -1, box[2] = p.height, box[3] = -1;
    for (int x = 0; x < p.width; x++) {
        columns[x] = false;
        for (int y = 0; y < p.height; y++) {
            if (!shows(p, x, y, method)) continue;
            columns[x] = true;
            box[0] = x < box[0] ? x : box[0];
            box[1] = x > box[1] ? x : box[1];
            box[2] = y < box[2] ? y : box[2];
            box[3] = y > box[3] ? y : box[3];
        }
    }
    return box[1] >= 0;
}

void find_text(const char *svg, const char *text, double *x, double *y)
{
    char piece[64];
    snprintf(piece, sizeof piece, ">%s</text>", text);
    const char *at = strstr(svg, piece);
    assert_non_null(at);
    while (strncmp(at, "<text", 5) != 0) at--;
    assert_int_equal(sscanf(at, "<text x=\"%lf\" y=\"%lf\"", x, y), 2);
}
