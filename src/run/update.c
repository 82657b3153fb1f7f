/* update.c - from the gradients of the shards to new parameters.
 *
 *     shard 0   products of weights -.
 *     shard 1   products of weights -+-> gradient of a slice -> optimiser -> parameters -> transposed copy
 *     …         biases and the rest -'
 *
 * The flat vector is cut into slices, each of whole rows of parameters of one group. A thread takes a slice through all
 * of this while the slice is in the cache; the gradients of weights exist nowhere else. Shards are added in their order,
 * so that it changes nothing which thread works on a slice, and when.
 */
#include "run/trainer.h"

#include "tensor/gemm.h"
#include "tensor/products.h"

#include <math.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 16384 /* numbers of a slice, about */
#define ROWS 96     /* rows of a piece of a weight; long rows: fewer, but a multiple of FEW */
#define FEW 12

/* Rows first … end - 1 of a parameter. */
typedef struct {
    const rws_param *param;
    int              first, end;
} piece;

/* Pieces of one group that are next to each other in the flat vector. */
struct rws_param_slice {
    rws_group group;
    size_t    from, end;
    int       n_pieces;
    piece    *pieces;
};

static int rows_of_piece(const rws_param *p)
{
    const int fit = SLICE / p->cols;
    return fit >= FEW * 4 ? ROWS : fit >= FEW ? fit / FEW * FEW : FEW;
}

static bool add_piece(rws_trainer *t, const piece *p)
{
    const size_t     from = p->param->offset + (size_t)p->first * (size_t)p->param->cols;
    const size_t     size = (size_t)(p->end - p->first) * (size_t)p->param->cols;
    rws_param_slice *slice = t->n_slices ? &t->slices[t->n_slices - 1] : NULL;
    if (!slice || slice->group != p->param->group || slice->end - slice->from + size > SLICE) {
        rws_param_slice *longer = realloc(t->slices, (size_t)(t->n_slices + 1) * sizeof *longer);
        if (!longer) return false;
        t->slices = longer;
        slice = &t->slices[t->n_slices++];
        *slice = (rws_param_slice){.group = p->param->group, .from = from};
    }
    slice->end = from + size;
    piece *longer = realloc(slice->pieces, (size_t)(slice->n_pieces + 1) * sizeof *longer);
    if (!longer) return false;
    slice->pieces = longer;
    slice->pieces[slice->n_pieces++] = *p;
    return true;
}

rws_status rws_slices_new(rws_trainer *t, rws_error *err)
{
    const rws_params *params = &t->setup.params;
    bool              memory = true;
    for (int g = 0; g < RWS_GROUPS; g++)
        for (int i = 0; i < params->n; i++) {
            const rws_param *p = params->list[i];
            const int        n = rows_of_piece(p);
            for (int first = 0; first < p->rows && p->group == (rws_group)g && memory; first += n)
                memory = add_piece(t, &(piece){p, first, p->rows - first < n ? p->rows : first + n});
        }
    t->defers = params->size > SLICE;
    t->scratch = calloc((size_t)t->config.threads, sizeof *t->scratch);
    return memory && t->scratch ? RWS_OK : rws_no_memory(err, "the slices of the parameters");
}

void rws_slices_free(rws_trainer *t)
{
    for (int i = 0; i < t->n_slices; i++) free(t->slices[i].pieces);
    for (int i = 0; i < t->config.threads && t->scratch; i++) rws_arena_free(&t->scratch[i]);
    free(t->slices);
    free(t->scratch);
}

typedef struct {
    rws_trainer         *t;
    unsigned             groups;
    bool                 steps; /* else the gradients are only added up */
    float                lr[RWS_GROUPS];
    atomic_bool          broken; /* a gradient is not finite */
    atomic_bool          no_memory;
    atomic_uint_fast64_t flops;
} slice_work;

/* The sum of the shards' gradients of a piece, in their order, becomes that of shard 0; the others begin anew. False if
 * no shard has touched the parameter. */
static bool sum_piece(rws_trainer *t, const piece *p, rws_arena *scratch)
{
    const size_t size = (size_t)(p->end - p->first) * (size_t)p->param->cols;
    const size_t from = p->param->offset + (size_t)p->first * (size_t)p->param->cols;
    float *restrict sum = t->shards[0].gradient + from;
    bool any = t->shards[0].touched[p->param->number];
    for (int i = 0; i < t->config.shards; i++) {
        const rws_shard *s = &t->shards[i];
        if (s->products)
            any |= rws_products_sum(s->products, p->param, p->first, p->end, t->shards[0].gradient, scratch);
        if (i == 0 || !s->touched[p->param->number]) continue;
        float *restrict part = s->gradient + from;
        for (size_t k = 0; k < size; k++) sum[k] += part[k];
        memset(part, 0, size * sizeof(float));
        any = true;
    }
    return any;
}

static void step_slice(slice_work *j, const rws_param_slice *slice, bool any)
{
    rws_trainer *t = j->t;
    rws_params  *p = &t->setup.params;
    const size_t from = slice->from, n = slice->end - from;
    float       *gradient = t->shards[0].gradient + from, total = 0;
    float       *slot[2] = {t->slot[0] ? t->slot[0] + from : NULL, t->slot[1] ? t->slot[1] + from : NULL};
#pragma omp simd reduction(+ : total)
    for (size_t k = 0; k < n; k++) total += gradient[k] * 0;
    if (total != 0) { /* NaN: something times zero that is not zero */
        j->broken = true;
        return;
    }
    t->optimiser->step(&t->optim, j->lr[slice->group], t->steps[slice->group], n, p->value + from, gradient, slot);
    if (any) memset(gradient, 0, n * sizeof(float));
    for (int i = 0; i < slice->n_pieces; i++)
        rws_param_transpose(slice->pieces[i].param, slice->pieces[i].first, slice->pieces[i].end, p->value,
                            p->transposed);
}

static void sum_and_step(slice_work *j, const rws_param_slice *slice, rws_arena *scratch)
{
    const uint64_t flops = rws_gemm_flops;
    bool           any = false;
    for (int i = 0; i < slice->n_pieces; i++) any |= sum_piece(j->t, &slice->pieces[i], scratch);
    if (j->steps) step_slice(j, slice, any);
    j->flops += rws_gemm_flops - flops;
}

static void work_on_slice(void *context, int index, int worker)
{
    slice_work            *j = context;
    const rws_param_slice *slice = &j->t->slices[index];
    rws_arena             *scratch = &j->t->scratch[worker];
    jmp_buf                leave;
    if (!(j->groups >> slice->group & 1)) return;
    scratch->no_memory = rws_arena_jump;
    scratch->context = &leave;
    if (setjmp(leave) == 0) sum_and_step(j, slice, scratch);
    else j->no_memory = true;
}

/* Serial if the parameters fit one slice, or if there is one shard, whose gradient is in the cache of its thread. */
static void run_slices(slice_work *j)
{
    rws_trainer *t = j->t;
    rws_pool_run(t->defers && t->config.shards > 1 ? t->pool : NULL, t->n_slices, work_on_slice, j);
    t->flops += j->flops;
    for (int k = 0; k < t->setup.params.n; k++) {
        const rws_param *p = t->setup.params.list[k];
        if (!(j->groups >> p->group & 1)) continue;
        for (int i = 0; i < t->config.shards; i++) t->shards[i].touched[p->number] = !j->steps && i == 0;
    }
    for (int i = 0; i < t->config.shards; i++) t->shards[i].products = NULL;
}

rws_status rws_trainer_sum(rws_trainer *t, unsigned groups, rws_error *err)
{
    slice_work j = {.t = t, .groups = groups};
    run_slices(&j);
    return j.no_memory ? rws_no_memory(err, "the products of a slice") : RWS_OK;
}

static rws_status describe_broken(const rws_trainer *t, rws_error *err)
{
    const rws_params *p = &t->setup.params;
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++)
            if (!isfinite(t->shards[0].gradient[p->list[i]->offset + k]))
                return rws_fail(err, RWS_BROKEN, "The gradient of %s is not a finite number.", p->list[i]->name);
    RWS_CHECK(!"a gradient that is not finite");
    return RWS_BROKEN;
}

rws_status rws_trainer_update(rws_trainer *t, unsigned groups, rws_error *err)
{
    const rws_params *p = &t->setup.params;
    slice_work        j = {.t = t, .groups = groups, .steps = true};
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (!(groups >> g & 1) || p->first[g] == p->first[g + 1]) continue;
        j.lr[g] = (float)((double)rws_schedule_at(&t->schedule, (rws_group)g, t->iteration) * t->method.rate[g]);
        t->steps[g]++;
    }
    run_slices(&j);
    if (j.no_memory) return rws_no_memory(err, "the products of a slice");
    return j.broken ? describe_broken(t, err) : RWS_OK;
}
