/* gallery.h - drawings of what answers tell: pictures in a grid, or trees side by side.
 *
 * An answer has a picture if it reported one as rws.h says: "picture", beside it "seen", and boxes "where".
 *
 *     answers -> [gallery] -> figure -> PNG, SVG or PDF
 */
#ifndef RWS_CLI_GALLERY_H
#define RWS_CLI_GALLERY_H

#include "run/run.h"

/* Pictures of one size; a zeroed one is valid and empty. */
typedef struct {
    bool    pairs; /* of each answer what it saw, with boxes, and below it what was made of it; otherwise the latter */
    double *values;
    int     n, side;
} rws_gallery;

/* Adds an answer's. False if it has no picture, or one that is not square or not like the others. */
bool rws_gallery_add(rws_gallery *g, const rws_reported *reports, int n);

/* Draws them, ten in a row at most; fails like rws_images_draw. There must be one. */
rws_status rws_gallery_draw(const rws_gallery *g, const char *title, const char *path, rws_error *err)
    __attribute__((warn_unused_result));
void rws_gallery_release(rws_gallery *g);

/* Draws the trees of n answers, each with a line above it; `captions` may be NULL. RWS_BAD_INPUT if one has no tree: the
 * sentence says that --out has nothing to draw. */
rws_status rws_gallery_trees(const rws_answer *a, int n, const char *const *captions, const char *title,
                             const char *path, rws_error *err) __attribute__((warn_unused_result));

#endif
