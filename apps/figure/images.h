/* images.h - a grid of small grey images, such as data beside a model's pictures of them.
 *
 *     snapshots -> [images] -> PNG, SVG or PDF
 *
 * All arguments belong to the caller and are only read.
 */
#ifndef RWS_FIGURE_IMAGES_H
#define RWS_FIGURE_IMAGES_H

#include "rws.h"

/* A frame on an image, in the colours of the page. */
typedef struct {
    int    image;            /* row by row */
    int    number;           /* of the frame on its image, which gives its colour */
    double x, y, wide, high; /* its middle and half its sides, in an image whose sides are at -1 and 1 */
} rws_image_box;

typedef struct {
    const char        *title; /* NULL for none */
    int                n_rows, n_columns;
    int                wide, high; /* pixels of an image */
    const double      *values; /* [n_rows][n_columns][high][wide]: 0 black, 1 white, NaN no pixel; all NaN: no image */
    const char *const *rows, *const *columns; /* names at the left and above; either may be NULL */
    double               width, dpi;          /* as in chart.h */
    const rws_image_box *boxes;
    int                  n_boxes;
} rws_images;

/* Writes the grid to the path, which ends in .png, .svg or .pdf; pixels stay sharp. Fails with RWS_BAD_INPUT if the
 * ending is another, the page has no room, or the file cannot be written; a file that was there is then untouched. */
rws_status rws__images_draw(const rws_images *images, const char *path, rws_error *err);

#endif
