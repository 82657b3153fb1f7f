/* call.c - how a kernel reads its inputs and adds to their gradients, whether their rows are contiguous, indexed or
 * repeated; and the messages about inputs that a kernel cannot work with. */
#include "base/error.h"
#include "tensor/op.h"

#include <string.h>

const float *rws__call_input(rws_call *c, int s, int dim)
{
    const rws_view *v = &c->in[s];
    if (!v->row && v->dim == dim) return v->data;
    RWS_CHECK(v->dim == dim || v->dim == 1);
    float *flat = RWS_NEW(c->arena, float, (size_t)c->n *(size_t)dim);
    if (dim == 1) {
        if (v->same)
            for (int i = 0; i < c->n; i++) flat[i] = v->data[0];
        else
            for (int i = 0; i < c->n; i++) flat[i] = v->data[v->row[i]];
        return flat;
    }
    for (int i = 0; i < c->n; i++) {
        const float *from = v->data + (v->row ? v->row[i] : (uint32_t)i) * (size_t)v->dim;
        float       *to = flat + (size_t)i * (size_t)dim;
        if (v->dim == dim) memcpy(to, from, (size_t)dim * sizeof(float));
        else
            for (int j = 0; j < dim; j++) to[j] = from[0];
    }
    return flat;
}

static bool direct(const rws_call *c, int s, int dim)
{
    return !c->gin[s].row && c->in[s].dim == dim;
}

void rws__call_clear(rws_call *c, int s)
{
    rws_sink *g = &c->gin[s];
    if (g->fresh) memset(g->data, 0, (size_t)c->n * (size_t)c->in[s].dim * sizeof(float));
    g->fresh = false;
}

float *rws__call_claim(rws_call *c, int s, int dim, bool *fresh)
{
    *fresh = false;
    if (!c->gin[s].data) return NULL;
    if (direct(c, s, dim)) {
        *fresh = c->gin[s].fresh;
        c->gin[s].fresh = false;
        return c->gin[s].data;
    }
    rws__call_clear(c, s);
    *fresh = true;
    return RWS_NEW(c->arena, float, (size_t)c->n *(size_t)dim);
}

float *rws__call_open(rws_call *c, int s, int dim)
{
    bool   fresh;
    float *g = rws__call_claim(c, s, dim, &fresh);
    if (fresh) memset(g, 0, (size_t)c->n * (size_t)dim * sizeof(float));
    return g;
}

void rws__call_close(rws_call *c, int s, int dim, float *gradient)
{
    if (!gradient || direct(c, s, dim)) return;
    const rws_sink *g = &c->gin[s];
    const int       own = c->in[s].dim;
    for (int i = 0; i < c->n; i++) {
        float       *to = g->data + (g->row ? g->row[i] : (uint32_t)i) * (size_t)own;
        const float *from = gradient + (size_t)i * (size_t)dim;
        if (own == dim)
            for (int j = 0; j < dim; j++) to[j] += from[j];
        else
            for (int j = 0; j < dim; j++) to[0] += from[j];
    }
}

bool rws__call_positive(const rws_call *c, int s)
{
    const rws_view *v = &c->in[s];
    const size_t    dim = (size_t)v->dim, n = v->same ? 1 : (size_t)c->n;
    int             outside = 0;
    if (v->row)
        for (size_t r = 0; r < n; r++)
            for (size_t j = 0; j < dim; j++) outside |= !(rws__view_row(v, r)[j] > 0);
    else
#pragma omp simd reduction(| : outside)
        for (size_t i = 0; i < n * dim; i++) outside |= !(v->data[i] > 0);
    return !outside;
}

rws_status rws__explain_positive(const rws_call *c, size_t row, int s, const char *what, const char *site,
                                 rws_error *err)
{
    for (size_t j = 0; j < (size_t)c->in[s].dim; j++) {
        const double x = rws__plain(rws__view_row(&c->in[s], row)[j]);
        if (!(x > 0))
            return rws_fail(err, RWS_BROKEN, "The %s%s%s is %g; it must be above 0.", what, site ? " at site " : "",
                            site ? site : "", x);
    }
    return RWS_OK;
}

rws_status rws__explain_index(const rws_call *c, size_t row, int s, uint32_t n, const char *function, const char *site,
                              rws_error *err)
{
    const float x = rws__view_row(&c->in[s], row)[0];
    if (rws__index(x, n) < n) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "The index of %s%s%s is %g; it must be a whole number from 0 to %u.", function,
                    site ? " after site " : "", site ? site : "", rws__plain(x), n - 1);
}
