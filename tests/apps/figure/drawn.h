/* drawn.h - the pixels of a PNG and the words of an SVG, for tests of figures. */
#ifndef RWS_TESTS_DRAWN_H
#define RWS_TESTS_DRAWN_H

#include "files.h"

#include <cairo.h>

typedef struct {
    cairo_surface_t *surface;
    int              width, height;
} picture;

picture  open_picture(const char *name);
void     close_picture(picture p);
uint32_t pixel_at(picture p, int x, int y); /* 0xrrggbb */

/* The box around the method's colour, in pixels, and for each column of pixels whether it is there. */
bool find_colour(picture p, const char *method, int box[4], bool *columns);

/* The first place of the text in an SVG, from its invisible copy. */
void find_text(const char *svg, const char *text, double *x, double *y);

#endif
