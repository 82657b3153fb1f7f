#include "tensor/params.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *vector_new(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof(float) + 64) / 64 * 64 + 64);
    RWS_CHECK(v && "memory for parameters");
    memset(v, 0, n * sizeof(float));
    return v;
}

void rws_params_release(rws_params *p)
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

rws_param *rws_params_add(rws_params *p, rws_group group, const char *name, int rows, int cols)
{
    RWS_CHECK(!p->value && rows > 0 && cols > 0 && group < RWS_GROUPS);
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->list[i]->name, name) == 0) return NULL;
    if (p->n == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->list = realloc(p->list, (size_t)p->capacity * sizeof *p->list);
        RWS_CHECK(p->list);
    }
    rws_param *param = calloc(1, sizeof *param);
    RWS_CHECK(param && strlen(name) < sizeof param->name);
    strcpy(param->name, name);
    param->group = group;
    param->rows = rows;
    param->cols = cols;
    param->value = vector_new(rws_param_size(param));
    return p->list[p->n++] = param;
}

void rws_params_pack(rws_params *p)
{
    RWS_CHECK(!p->value);
    for (int g = 0; g < RWS_GROUPS; g++) {
        p->first[g] = p->size;
        for (int i = 0; i < p->n; i++) {
            rws_param *param = p->list[i];
            if (param->group != (rws_group)g) continue;
            param->offset = p->size;
            p->size += rws_param_size(param);
            if (param->transposed) {
                param->transposed_at = p->transposed_size;
                p->transposed_size += (rws_param_size(param) + 15) / 16 * 16;
            }
        }
    }
    p->first[RWS_GROUPS] = p->size;
    p->value = vector_new(p->size);
    p->transposed = vector_new(p->transposed_size);
    for (int i = 0; i < p->n; i++) {
        rws_param *param = p->list[i];
        memcpy(p->value + param->offset, param->value, rws_param_size(param) * sizeof(float));
        free(param->value);
        param->value = p->value + param->offset;
    }
    rws_params_transpose(p, ~0u, p->value, p->transposed);
}

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));

/* Eight rows of eight numbers; `cols` and `rows` are the steps from row to row in w and in t. */
static inline void transpose_tile(const float *w, size_t cols, float *t, size_t rows)
{
    v8 a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = *(const v8 *)(w + (size_t)i * cols);
    for (int i = 0; i < 8; i += 2) { /* pairs of numbers, of quarters, of halves */
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = i; j < i + 2; j++) {
            a[j] = __builtin_shufflevector(b[j], b[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[j + 2] = __builtin_shufflevector(b[j], b[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        *(v8 *)(t + (size_t)i * rows) = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(v8 *)(t + (size_t)(i + 4) * rows) = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

static void transpose(const float *w, size_t rows, size_t cols, float *t)
{
    const size_t whole_rows = rows / 8 * 8, whole_cols = cols / 8 * 8;
    for (size_t i = 0; i < whole_rows; i += 8)
        for (size_t j = 0; j < whole_cols; j += 8) transpose_tile(w + i * cols + j, cols, t + j * rows + i, rows);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = i < whole_rows ? whole_cols : 0; j < cols; j++) t[j * rows + i] = w[i * cols + j];
}

void rws_params_transpose(const rws_params *p, unsigned groups, const float *from, float *to)
{
    for (int i = 0; i < p->n; i++) {
        const rws_param *param = p->list[i];
        if (!param->transposed || !(groups >> param->group & 1)) continue;
        transpose(from + param->offset, (size_t)param->rows, (size_t)param->cols, to + param->transposed_at);
    }
}

float *rws_param_values(const rws_param *p)
{
    return p->value;
}
