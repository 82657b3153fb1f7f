#include "rws/picture_grid.h"

#include "base/error.h"
#include "base/list.h"
#include "rws/output.h"
#include "figure/trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 10 };

/* ---- pictures */

static size_t size_of(const rws_picture_grid *g)
{
    return (size_t)g->side * (size_t)g->side;
}

/* `where` has scale x, scale y, shift x and shift y, in a picture whose sides are at -1 and 1. */
static void add_box(rws_picture_grid *g, int number, const float *where)
{
    rws__need_memory(rws__list_grow(&g->boxes, g->n_boxes, &g->room, sizeof *g->boxes), "pictures");
    g->boxes[g->n_boxes++] = (rws_image_box){
        g->n - 1, number, (double)where[2], (double)where[3], fabs((double)where[0]), fabs((double)where[1])};
}

bool rws__picture_grid_add(rws_picture_grid *g, const rws_reported *reports, int n)
{
    const rws_answer    answer = {.reports = reports, .n_reports = n}, *a = &answer;
    const rws_reported *picture = rws_answer_value(a, "picture", 0), *seen = rws_answer_value(a, "seen", 0), *where;
    if (!picture || (g->pairs && (!seen || seen->dim != picture->dim))) return false;
    const int side = (int)lrint(sqrt(picture->dim));
    if (side * side != picture->dim || (g->n && side != g->side)) return false;
    g->side = side;
    const size_t size = size_of(g), each = g->pairs ? 2 * size : size;
    g->values = realloc(g->values, each * (size_t)(g->n + 1) * sizeof *g->values);
    rws__need_memory(g->values != NULL, "pictures");
    double *at = g->values + each * (size_t)g->n++;
    for (size_t i = 0; i < size; i++) at[each - size + i] = (double)picture->value[i];
    if (!g->pairs) return true;
    for (size_t i = 0; i < size; i++) at[i] = (double)seen->value[i];
    for (int t = 0; (where = rws_answer_value(a, "where", t)); t++)
        if (where->dim == 4) add_box(g, t, where->value);
    return true;
}

rws_status rws__picture_grid_draw(rws_picture_grid *g, const char *title, const char *path, rws_error *err)
{
    RWS_CHECK(g->n > 0);
    const int    each = g->pairs ? 2 : 1; /* rows */
    const int    lines = (g->n + MAX_COLUMNS - 1) / MAX_COLUMNS, columns = (g->n + lines - 1) / lines;
    const size_t size = size_of(g), n_cells = (size_t)(lines * each) * (size_t)columns;
    double      *grid = malloc(n_cells * size * sizeof *grid);
    const char **names = calloc((size_t)(lines * each), sizeof *names);
    if (!grid || !names) {
        free(grid);
        free(names);
        return rws_no_memory(err, "pictures");
    }
    for (size_t i = 0; i < n_cells * size; i++) grid[i] = NAN;
    for (int i = 0; i < g->n; i++)
        for (int row = 0; row < each; row++) {
            const size_t cell = (size_t)((i / columns * each + row) * columns + i % columns);
            memcpy(grid + cell * size, g->values + (size_t)(each * i + row) * size, size * sizeof *grid);
        }
    for (int i = 0; i < g->n_boxes; i++) { /* from the number of the picture to its place in the grid */
        const int picture = g->boxes[i].image;
        g->boxes[i].image = picture / columns * each * columns + picture % columns;
    }
    for (int row = 0; row < lines * each; row++) names[row] = row % 2 ? "reconstruction" : "seen";
    const rws_images images = {.title = title,
                               .n_rows = lines * each,
                               .n_columns = columns,
                               .wide = g->side,
                               .high = g->side,
                               .values = grid,
                               .rows = g->pairs ? names : NULL,
                               .boxes = g->boxes,
                               .n_boxes = g->n_boxes};
    const rws_status status = rws__images_draw(&images, path, err);
    free(grid);
    free(names);
    return status;
}

void rws__picture_grid_release(rws_picture_grid *g)
{
    free(g->values);
    free(g->boxes);
    *g = (rws_picture_grid){.pairs = g->pairs};
}

/* ---- trees */

rws_status rws__answer_trees_draw(const rws_answer *a, int n, const char *const *captions, const char *title,
                                  const char *path, rws_error *err)
{
    rws_drawn_tree *items = calloc((size_t)n + 1, sizeof *items);
    if (!items) return rws_no_memory(err, "trees");
    rws_status status = RWS_OK;
    for (int i = 0; i < n && status == RWS_OK; i++) {
        items[i] = (rws_drawn_tree){.text = rws_answer_text(&a[i], "tree"), .caption = captions ? captions[i] : NULL};
        if (!items[i].text)
            status = rws_fail(err, RWS_BAD_INPUT, "--out draws trees or pictures, and this model has neither.");
    }
    const rws_trees trees = {.title = title, .trees = items, .n_trees = n};
    if (status == RWS_OK) status = rws__trees_draw(&trees, path, err);
    free(items);
    return status;
}
