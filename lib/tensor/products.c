/* products.c - noted products of rows, joined and added up. */
#include "tensor/products.h"

#include "base/error.h"
#include "tensor/bits.h"
#include "tensor/gemm.h"
#include "tensor/rows.h"

#include <stdlib.h>
#include <string.h>

#define THICK 48 /* a product of at least so many rows gains nothing from being joined with others */

void rws__products_add(rws_products *p, rws_product product)
{
    if (p->n == p->capacity) {
        const int    capacity = p->capacity ? 2 * p->capacity : 64;
        rws_product *list = RWS_NEW(p->arena, rws_product, capacity);
        if (p->n) memcpy(list, p->list, (size_t)p->n * sizeof *list);
        p->list = list;
        p->capacity = capacity;
    }
    p->list[p->n++] = product;
}

static inline __attribute__((always_inline)) void sum_columns(const float *x, const float *dy, size_t n, size_t dim,
                                                              const bool ones, float *to)
{
    size_t j = 0;
    for (; j + 8 <= dim; j += 8) { /* eight columns at a time, in four independent sums */
        rws_v8 sum[4] = {{0}};
        size_t r = 0;
        for (; r + 4 <= n; r += 4)
            for (size_t k = 0; k < 4; k++) sum[k] += (ones ? 1 : x[r + k]) * RWS_GET8(dy + (r + k) * dim + j);
        for (; r < n; r++) sum[0] += (ones ? 1 : x[r]) * RWS_GET8(dy + r * dim + j);
        RWS_AT8(to + j) += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    for (; j + 4 <= dim; j += 4) {
        rws_v4 sum[4] = {{0}};
        size_t r = 0;
        for (; r + 4 <= n; r += 4)
            for (size_t k = 0; k < 4; k++) sum[k] += (ones ? 1 : x[r + k]) * RWS_GET4(dy + (r + k) * dim + j);
        for (; r < n; r++) sum[0] += (ones ? 1 : x[r]) * RWS_GET4(dy + r * dim + j);
        RWS_AT4(to + j) += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    for (; j < dim; j++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t r = 0; r < n; r++) sum += (ones ? 1 : x[r]) * dy[r * dim + j];
        to[j] += sum;
    }
}

void rws__products_columns(const float *x, const float *dy, size_t n, size_t dim, float *to)
{
    if (!x) {
        sum_columns(NULL, dy, n, dim, true, to);
        return;
    }
    rws_gemm_flops += 2ull * n * dim;
    sum_columns(x, dy, n, dim, false, to);
}

static bool same_block(const rws_product *a, const rws_product *b)
{
    return a->w == b->w && a->offset == b->offset && a->n_x == b->n_x && a->bits == b->bits && a->scale == b->scale &&
           a->shift == b->shift;
}

/* Adds rows first … end - 1 of the product to the gradient; a row of the product is a row of its weight. */
static void multiply(const rws_product *p, int first, int end, float *gradient, rws_arena *scratch)
{
    const int    n_y = p->w->rows, n = end - first, cols = p->w->cols;
    const float *dy = p->dy + first;
    float       *to = gradient + p->w->offset + (size_t)first * (size_t)cols + p->offset;
    if (p->bits) rws__bits_tn(n, p->n_x, p->n, dy, n_y, p->x, p->scale, p->shift, to, cols, scratch);
    else if (cols == 1 && n == n_y) rws__products_columns(p->x, dy, (size_t)p->n, (size_t)n, to);
    else rws__gemm_tn(n, p->n_x, p->n, dy, n_y, p->x, p->n_x, to, cols);
}

static bool is_thin(const rws_product *p)
{
    return p->n < THICK;
}

/* One product of the stacked rows of all thin products in the chain that begins at `first`. */
static rws_product joined(const rws_product *list, int first, rws_arena *arena)
{
    rws_product  all = list[first];
    const size_t n_x = (size_t)all.n_x, n_y = (size_t)all.w->rows;
    all.n = 0;
    for (int i = first; i >= 0; i = list[i].next) all.n += is_thin(&list[i]) ? list[i].n : 0;
    float *x = RWS_NEW(arena, float, (size_t)all.n *n_x), *dy = RWS_NEW(arena, float, (size_t)all.n *n_y);
    all.x = x, all.dy = dy;
    for (int i = first; i >= 0; i = list[i].next) {
        if (!is_thin(&list[i])) continue;
        memcpy(x, list[i].x, (size_t)list[i].n * n_x * sizeof(float));
        memcpy(dy, list[i].dy, (size_t)list[i].n * n_y * sizeof(float));
        x += (size_t)list[i].n * n_x;
        dy += (size_t)list[i].n * n_y;
    }
    return all;
}

/* Chains products of the same columns of a weight, in the order in which they were noted. Lists the beginnings of the
 * chains, of which there are few, and returns how many there are. */
static int chain(rws_product *list, int n, rws_arena *arena, int **beginnings)
{
    int *first = RWS_NEW(arena, int, n), *last = RWS_NEW(arena, int, n), n_blocks = 0;
    for (int i = 0; i < n; i++) {
        int b = 0;
        while (b < n_blocks && !same_block(&list[first[b]], &list[i])) b++;
        list[i].next = -1;
        if (b == n_blocks) first[n_blocks++] = i;
        else list[last[b]].next = i;
        last[b] = i;
    }
    *beginnings = first;
    return n_blocks;
}

void rws__products_join(rws_products *p, rws_arena *arena)
{
    if (!p->n) return;
    int         *first, n_left = 0;
    const int    n_blocks = chain(p->list, p->n, arena, &first);
    rws_product *left = RWS_NEW(arena, rws_product, p->n);
    for (int b = 0; b < n_blocks; b++) {
        int n_thin = 0;
        for (int i = first[b]; i >= 0; i = p->list[i].next) n_thin += is_thin(&p->list[i]);
        for (int i = first[b]; i >= 0; i = p->list[i].next)
            if (!is_thin(&p->list[i]) || n_thin == 1) left[n_left++] = p->list[i];
        if (n_thin > 1) left[n_left++] = joined(p->list, first[b], arena);
    }
    memcpy(p->list, left, (size_t)n_left * sizeof *left);
    p->n = n_left;
}

bool rws__products_sum(const rws_products *p, const rws_param *w, int first, int end, float *gradient,
                       rws_arena *scratch)
{
    bool any = false;
    for (int i = 0; i < p->n; i++) {
        if (p->list[i].w != w) continue;
        multiply(&p->list[i], first, end, gradient, scratch);
        any = true;
    }
    return any;
}

void rws__products_flush(rws_products *p, float *gradient, rws_arena *scratch)
{
    rws_arena_mark mark = rws__arena_at(scratch);
    rws__products_join(p, scratch);
    for (int i = 0; i < p->n; i++) multiply(&p->list[i], 0, p->list[i].w->rows, gradient, scratch);
    rws__arena_release(scratch, mark);
    p->n = 0;
}
