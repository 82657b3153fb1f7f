/* columns.h - eight rows side by side: column j of the eight rows is one vector.
 *
 * A sum or maximum along a row is then computed lane by lane: no vector is added up across its lanes, and the result of
 * a row does not depend on its neighbours. Where fewer than eight rows are left, the last row takes the free lanes, and
 * is read and written several times.
 */
#ifndef RWS_TENSOR_COLUMNS_H
#define RWS_TENSOR_COLUMNS_H

#include "tensor/rows.h"
#include "tensor/tile.h"

/* How many rows make a tile of about RWS_TILE numbers: a multiple of eight. */
static inline size_t rws__columns_tile(size_t dim)
{
    return dim < RWS_TILE / 8 ? RWS_TILE / (8 * dim) * 8 : 8;
}

/* Row r + i, or the last row before `end`. */
static inline size_t rws__columns_row(size_t r, size_t i, size_t end)
{
    return r + i < end ? r + i : end - 1;
}

/* Where the eight columns after those at j begin. The last eight begin at dim - 8, so they may overlap the eight
 * before. */
static inline size_t rws__columns_next(size_t j, size_t dim)
{
    return j + 16 > dim && j + 8 < dim ? dim - 8 : j + 8;
}

/* to[j] = column j of rows r … r + 7 of a view. */
static inline void rws__columns_load(const rws_view *v, size_t r, size_t end, rws_v8 *to)
{
    const size_t dim = (size_t)v->dim;
    const float *row[8];
    for (size_t i = 0; i < 8; i++) row[i] = rws__view_row(v, rws__columns_row(r, i, end));
    for (size_t i = 0; i < 8 && dim < 8; i++)
        for (size_t j = 0; j < dim; j++) to[j][i] = row[i][j];
    for (size_t j = 0; j < dim && dim >= 8; j = rws__columns_next(j, dim)) {
        rws_v8 tile[8];
        for (size_t i = 0; i < 8; i++) tile[i] = RWS_GET8(row[i] + j);
        rws__tile_transpose(tile);
        for (size_t i = 0; i < 8; i++) to[j + i] = tile[i];
    }
}

/* Rows r … r + 7 of a matrix = scale from + shift; every row has its own scale and shift. */
static inline void rws__columns_store(const rws_v8 *from, rws_v8 scale, rws_v8 shift, size_t r, size_t end, size_t dim,
                                      float *matrix)
{
    float *row[8];
    for (size_t i = 0; i < 8; i++) row[i] = matrix + rws__columns_row(r, i, end) * dim;
    for (size_t i = 0; i < 8 && dim < 8; i++)
        for (size_t j = 0; j < dim; j++) row[i][j] = from[j][i] * scale[i] + shift[i];
    for (size_t j = 0; j < dim && dim >= 8; j = rws__columns_next(j, dim)) {
        rws_v8 tile[8];
        for (size_t i = 0; i < 8; i++) tile[i] = from[j + i] * scale + shift;
        rws__tile_transpose(tile);
        for (size_t i = 0; i < 8; i++) RWS_AT8(row[i] + j) = tile[i];
    }
}

#endif
