#include "rws/picture_grid.h"

#include "base/error.h"
#include "rws/output.h"
#include "figure/images.h"
#include "figure/trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 10 };

/* ---- pictures */

/* `where` has scale x, scale y, shift x and shift y, in a picture whose sides are at -1 and 1. */
static void draw_box(double *image, int side, const float *where)
{
    const double middle = (side - 1) / 2.0;
    int          edge[4]; /* left, top, right, bottom */
    for (int i = 0; i < 4; i++) {
        const double u = (double)where[2 + i % 2] + (i < 2 ? -1 : 1) * (double)where[i % 2];
        edge[i] = (int)lrint(fmin(fmax((u + 1) * middle, 0), side - 1));
    }
    for (int x = edge[0]; x <= edge[2]; x++) image[edge[1] * side + x] = image[edge[3] * side + x] = 0.5;
    for (int y = edge[1]; y <= edge[3]; y++) image[y * side + edge[0]] = image[y * side + edge[2]] = 0.5;
}

static size_t size_of(const rws_picture_grid *g)
{
    return (size_t)g->side * (size_t)g->side;
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
        if (where->dim == 4) draw_box(at, side, where->value);
    return true;
}

rws_status rws__picture_grid_draw(const rws_picture_grid *g, const char *title, const char *path, rws_error *err)
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
    for (int row = 0; row < lines * each; row++) names[row] = row % 2 ? "reconstruction" : "seen";
    const rws_images images = {.title = title,
                               .n_rows = lines * each,
                               .n_columns = columns,
                               .wide = g->side,
                               .high = g->side,
                               .values = grid,
                               .rows = g->pairs ? names : NULL};
    const rws_status status = rws__images_draw(&images, path, err);
    free(grid);
    free(names);
    return status;
}

void rws__picture_grid_release(rws_picture_grid *g)
{
    free(g->values);
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
