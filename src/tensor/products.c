#include "tensor/products.h"

#include "base/error.h"
#include "tensor/gemm.h"

#include <stdlib.h>
#include <string.h>

#define THICK 48 /* rows from which a product of its own is as fast as a shared one */

void rws_products_add(rws_products *p, rws_product product)
{
    if (p->n == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 64;
        p->list = realloc(p->list, (size_t)p->capacity * sizeof *p->list);
        RWS_CHECK(p->list);
    }
    p->list[p->n++] = product;
}

static bool same_block(const rws_product *a, const rws_product *b)
{
    return a->w == b->w && a->offset == b->offset && a->n_x == b->n_x;
}

static void multiply(const rws_product *p, float *gradient)
{
    rws_gemm_tn(p->w->rows, p->n_x, p->n, p->dy, p->w->rows, p->x, p->n_x, gradient + p->w->offset + p->offset,
                p->w->cols);
}

void rws_products_flush(rws_products *p, float *gradient, rws_arena *scratch)
{
    for (int i = 0; i < p->n; i++) {
        rws_product *first = &p->list[i];
        if (!first->w) continue;
        /* all thin ones for the same block, in the order they were noted */
        int total = 0;
        for (int j = i; j < p->n; j++)
            if (p->list[j].w && same_block(first, &p->list[j]) && p->list[j].n < THICK) total += p->list[j].n;
        if (first->n >= THICK || total == first->n) {
            multiply(first, gradient);
            continue;
        }
        rws_arena_mark mark = rws_arena_at(scratch);
        const size_t   n_x = (size_t)first->n_x, n_y = (size_t)first->w->rows;
        float *x = RWS_NEW(scratch, float, (size_t)total *n_x), *dy = RWS_NEW(scratch, float, (size_t)total *n_y);
        size_t at = 0;
        for (int j = i; j < p->n; j++) {
            rws_product *q = &p->list[j];
            if (!q->w || !same_block(first, q) || q->n >= THICK) continue;
            memcpy(x + at * n_x, q->x, (size_t)q->n * n_x * sizeof(float));
            memcpy(dy + at * n_y, q->dy, (size_t)q->n * n_y * sizeof(float));
            at += (size_t)q->n;
            if (j > i) q->w = NULL;
        }
        rws_product all = {first->w, first->offset, first->n_x, total, x, dy};
        multiply(&all, gradient);
        rws_arena_release(scratch, mark);
    }
    p->n = 0;
}
