/* params.c - the flat vector of parameters and its transposed copies. */
#include "tensor/params.h"

#include "base/error.h"
#include "base/list.h"
#include "tensor/tile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *vector_new(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof(float) + 64) / 64 * 64 + 64);
    if (v) memset(v, 0, n * sizeof(float));
    return v;
}

void rws__params_release(rws_params *p)
{
    for (int i = 0; i < p->n; i++) {
        if (!p->value) free(p->list[i]->value);
        free(p->list[i]);
    }
    free(p->list);
    free(p->value);
    free(p->transposed);
    *p = (rws_params){0};
}

rws_param *rws__params_add(rws_params *p, rws_group group, const char *name, int rows, int cols)
{
    RWS_CHECK(!p->value && rows > 0 && cols > 0 && group < RWS_GROUPS);
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, name) == 0) return NULL;
    if (!rws__list_grow(&p->list, p->n, &p->capacity, sizeof *p->list)) return NULL;
    rws_param *param = calloc(1, sizeof *param);
    if (!param) return NULL;
    RWS_CHECK(strlen(name) < sizeof param->name);
    strcpy(param->name, name);
    param->group = group;
    param->number = p->n;
    param->rows = rows;
    param->cols = cols;
    param->value = vector_new(rws__param_size(param));
    if (!param->value) {
        free(param);
        return NULL;
    }
    return p->list[p->n++] = param;
}

bool rws__params_pack(rws_params *p)
{
    RWS_CHECK(!p->value);
    p->size = p->transposed_size = 0;
    for (int g = 0; g < RWS_GROUPS; g++) {
        p->first[g] = p->size;
        for (int i = 0; i < p->n; i++) {
            rws_param *param = p->list[i];
            if (param->group != (rws_group)g) continue;
            param->offset = p->size;
            p->size += rws__param_size(param);
            if (param->transposed) {
                param->transposed_at = p->transposed_size;
                p->transposed_size += (rws__param_size(param) + 15) / 16 * 16;
            }
        }
    }
    p->first[RWS_GROUPS] = p->size;
    float *value = vector_new(p->size);
    p->transposed = vector_new(p->transposed_size);
    if (!value || !p->transposed) {
        free(value);
        free(p->transposed);
        p->transposed = NULL;
        return false;
    }
    p->value = value;
    for (int i = 0; i < p->n; i++) {
        rws_param *param = p->list[i];
        memcpy(p->value + param->offset, param->value, rws__param_size(param) * sizeof(float));
        free(param->value);
        param->value = p->value + param->offset;
    }
    rws__params_transpose(p, ~0u, p->value, p->transposed);
    return true;
}

bool rws__params_unpack(rws_params *p)
{
    float **own = calloc((size_t)p->n + 1, sizeof *own);
    bool    memory = own != NULL;
    for (int i = 0; i < p->n && memory; i++) memory = (own[i] = vector_new(rws__param_size(p->list[i]))) != NULL;
    for (int i = 0; i < p->n && own; i++) {
        if (!memory) free(own[i]);
        else p->list[i]->value = memcpy(own[i], p->list[i]->value, rws__param_size(p->list[i]) * sizeof(float));
    }
    free(own);
    if (!memory) return false;
    free(p->value);
    free(p->transposed);
    p->value = p->transposed = NULL;
    return true;
}

/* Transposes eight rows of eight numbers; `cols` and `rows` are the distances of rows in w and in t. */
static inline void transpose_tile(const float *w, size_t cols, float *t, size_t rows)
{
    rws_v8 a[8];
    for (int i = 0; i < 8; i++) a[i] = *(const rws_v8 *)(w + (size_t)i * cols);
    rws__tile_transpose(a);
    for (int i = 0; i < 8; i++) *(rws_v8 *)(t + (size_t)i * rows) = a[i];
}

void rws__param_transpose(const rws_param *p, int first, int end, const float *from, float *to)
{
    if (!p->transposed) return;
    const float *w = from + p->offset;
    float       *t = to + p->transposed_at;
    const size_t rows = (size_t)p->rows, cols = (size_t)p->cols, low = (size_t)first, high = (size_t)end;
    const size_t whole_rows = low + (high - low) / 8 * 8, whole_cols = cols / 8 * 8;
    for (size_t i = low; i < whole_rows; i += 8)
        for (size_t j = 0; j < whole_cols; j += 8) transpose_tile(w + i * cols + j, cols, t + j * rows + i, rows);
    for (size_t i = low; i < high; i++)
        for (size_t j = i < whole_rows ? whole_cols : 0; j < cols; j++) t[j * rows + i] = w[i * cols + j];
}

void rws__params_transpose(const rws_params *p, unsigned groups, const float *from, float *to)
{
    for (int i = 0; i < p->n; i++)
        if (groups >> p->list[i]->group & 1) rws__param_transpose(p->list[i], 0, p->list[i]->rows, from, to);
}

float *rws_param_values(const rws_param *p)
{
    return p ? p->value : NULL;
}

void rws_param_read(const rws_param *p, rws_scale scale, double *numbers)
{
    for (int row = 0; row < p->rows && p->value; row++) {
        const float *x = p->value + (size_t)row * (size_t)p->cols;
        double      *to = numbers + (size_t)row * (size_t)p->cols, sum = 0;
        float        most = -INFINITY;
        for (int i = 0; i < p->cols; i++) most = fmaxf(most, x[i]);
        for (int i = 0; i < p->cols; i++) {
            const double value = (double)x[i];
            to[i] = scale == RWS_LOGARITHMS ? exp(value)
                    : scale == RWS_LOG_ODDS ? 1 / (1 + exp(-value))
                    : scale == RWS_LOGITS   ? exp(value - (double)most)
                                            : value;
            sum += to[i];
        }
        for (int i = 0; i < p->cols && scale == RWS_LOGITS; i++) to[i] /= sum;
    }
}

int rws__param_shape(const rws_param *p, int shape[RWS_PARAM_DIMS])
{
    const int K = p->kernel;
    if (K) {
        memcpy(shape, (const int[]){p->rows, p->cols / (K * K), K, K}, 4 * sizeof *shape);
        return 4;
    }
    /* A layer's weight, which has a transposed copy, is a matrix also if it has a single output. */
    const bool vector = p->rows == 1 && !p->transposed;
    shape[0] = vector ? p->cols : p->rows;
    shape[1] = p->cols;
    return vector ? 1 : 2;
}
