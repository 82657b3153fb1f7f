/* picture_grid.h - drawings of answers: pictures in a grid, or trees side by side.
 *
 * An answer has a picture if its reports are named as rws.h says: "picture", the model's image; "seen", the datum; and
 * "where", the boxes.
 *
 *     answers -> [gallery] -> figure -> PNG, SVG or PDF
 */
#ifndef RWS_RWS_PICTURE_GRID_H
#define RWS_RWS_PICTURE_GRID_H

#include "figure/images.h"
#include "rws_train.h"

/* Pictures of one size; a zeroed one is valid and empty. */
typedef struct {
    bool pairs; /* two pictures for each answer, "seen" with the boxes and "picture" below it; else "picture" alone */
    double        *values;
    int            n, side;
    rws_image_box *boxes; /* of "seen"; `image` is the number of the picture */
    int            n_boxes, room;
} rws_picture_grid;

/* Adds the picture among the reports of an answer or a sample. False if there is none, or one that is not square or has
 * another size than the others. */
bool rws__picture_grid_add(rws_picture_grid *g, const rws_reported *reports, int n);

/* Draws the pictures once, ten in a row at most; fails like rws__images_draw. There must be at least one. */
rws_status rws__picture_grid_draw(rws_picture_grid *g, const char *title, const char *path, rws_error *err)
    __attribute__((warn_unused_result));
void rws__picture_grid_release(rws_picture_grid *g);

/* Draws the trees of n answers, each with a line above it; `captions` may be NULL. RWS_BAD_INPUT if one has no tree:
 * the message says that --out has nothing to draw. */
rws_status rws__answer_trees_draw(const rws_answer *a, int n, const char *const *captions, const char *title,
                                  const char *path, rws_error *err) __attribute__((warn_unused_result));

#endif
