/* twins_vision.c - the twins of the ops of the folder vision, and the shapes to try them with. */
#include "twins.h"

/* One point of a picture of rows x cols, bilinear: missing neighbours count as zero. */
static double point(const double *image, int rows, int cols, double y, double x)
{
    const double fx = floor(x), fy = floor(y), dx = fx + 1 - x, dy = fy + 1 - y;
    double       total = 0;
    if (!(x > -1 && x < cols && y > -1 && y < rows)) return 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const int row = (int)fy + i, col = (int)fx + j;
            if (row < 0 || row >= rows || col < 0 || col >= cols) continue;
            total += (i ? 1 - dy : dy) * (j ? 1 - dx : dx) * (image ? image[row * cols + col] : 1);
        }
    return total;
}

static double unit(int j, int n)
{
    return -1 + 2.0 * j / (n - 1);
}

double written(int j, int n, int n_source, double scale, double shift)
{
    return ((unit(j, n) - shift) / scale + 1) * (n_source - 1) / 2;
}

double seen(int j, int n, int n_source, double scale, double shift)
{
    return (scale * unit(j, n) + shift + 1) * (n_source - 1) / 2;
}

static void attend(const row *r)
{
    const int     rows = r->k, cols = r->in_dim[0] / rows, out_rows = r->offset, out_cols = r->dim / out_rows;
    const double *w = r->in[1];
    EACH(point(r->in[0], rows, cols, seen(j / out_cols, out_rows, rows, w[1], w[3]),
               seen(j % out_cols, out_cols, cols, w[0], w[2])));
}

static double placed(const double *glimpse, int rows, int cols, const double *w, int out_rows, int out_cols, int j)
{
    return point(glimpse, rows, cols, written(j / out_cols, out_rows, rows, w[1], w[3]),
                 written(j % out_cols, out_cols, cols, w[0], w[2]));
}

static void place(const row *r)
{
    EACH(placed(r->in[0], r->k, r->in_dim[0] / r->k, r->in[1], r->offset, r->dim / r->offset, j));
}

static void cover(const row *r)
{
    EACH(placed(NULL, r->k, (int)r->t, r->in[0], r->offset, r->dim / r->offset, j));
}

/* The logit of pixel j; inputs from `at` are front, back, glimpse, where, … */
static double pixel(const row *r, int at, int j)
{
    double y = 0, a = 0;
    for (int s = at + 2; s < r->n_in; s += 2) {
        const int cols = r->in_dim[s] / r->k, out_cols = r->in_dim[at] / r->offset;
        y += placed(r->in[s], r->k, cols, r->in[s + 1], r->offset, out_cols, j);
        a += placed(NULL, r->k, cols, r->in[s + 1], r->offset, out_cols, j);
    }
    const double mask = function(RWS_SIGMOID, 20 * a - 10);
    return fmin(16, fmax(-88, y + mask * r->in[at][j] + (mask - 1) * r->in[at + 1][j]));
}

static void picture(const row *r)
{
    EACH(pixel(r, 0, j));
}

static void picture_bits(const row *r)
{
    r->out[0] = 0;
    for (int j = 0; j < r->in_dim[0]; j++) r->out[0] += r->in[0][j] * pixel(r, 1, j) - log1p(exp(pixel(r, 1, j)));
}

static const subject list[] = {
    {"attend",
     attend,
     {{12, TWO(REAL, 30, WHERE, 4), .k = 5, .offset = 3, .source_cols = 6},
      {4, TWO(REAL, 63, WHERE, 4), .k = 9, .offset = 2, .source_cols = 7},
      {60, TWO(REAL, 12, WHERE, 4), .k = 4, .offset = 6, .source_cols = 3}}},
    {"place",
     place,
     {{56, TWO(REAL, 12, WHERE, 4), .k = 3, .offset = 8, .source_cols = 4},
      {9, TWO(REAL, 30, WHERE, 4), .k = 6, .offset = 3, .source_cols = 5},
      {51, TWO(REAL, 4, WHERE, 4), .k = 2, .offset = 3, .source_cols = 2}}},
    {"cover",
     cover,
     {{56, {{WHERE, 4}}, .k = 3, .t = 4, .offset = 8, .source_cols = 4},
      {51, {{WHERE, 4}}, .k = 2, .t = 2, .offset = 3, .source_cols = 2}}},
    {"picture",
     picture,
     {{20, TWO(REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {56, {{REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {51,
       {{STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2}}},
    {"picture_bits",
     picture_bits,
     {{1, THREE(BIT, 20, REAL, 20, REAL, 20), .k = 3, .offset = 4},
      {1, {{BIT, 56}, {REAL, 56}, {REAL, 56}, {REAL, 12}, {WHERE, 4}}, .k = 3, .offset = 8, .source_cols = 4},
      {1,
       {{BIT, 51}, {STEEP, 51}, {STEEP, 51}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}, {REAL, 4}, {WHERE, 4}},
       .k = 2,
       .offset = 3,
       .source_cols = 2},
      {1, {{NOISE, 36}, {REAL, 36}, {REAL, 36}, {REAL, 12}, {WHERE, 4}}, .k = 4, .offset = 4, .source_cols = 3}},
     .slack = 10},
};
const subject_table vision_twins = {list, COUNT(list)};
