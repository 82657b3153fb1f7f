/* step.c - from the gradients of shards to new parameters.
 *
 *     shard 0   products of weights -.
 *     shard 1   products of weights -+-> gradient of a part -> optimiser -> parameters -> transposed copy
 *     …         biases and the rest -'
 *
 * The flat vector is cut into parts, each of whole rows of parameters. A thread takes a part through all of this while
 * it is in the cache; the gradients of weights do not exist anywhere else. Shards are added in their order, so who works
 * on a part, and when, changes nothing.
 */
#include "run/trainer.h"

#include "tensor/gemm.h"
#include "tensor/products.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 16384 /* numbers of a part, about */
#define ROWS 96     /* of a weight; long rows: fewer, but a multiple of FEW */
#define FEW 12

/* Rows of a parameter. */
typedef struct {
    const rws_param *param;
    int              first, end;
} piece;

/* Of one group; the pieces are next to each other in the flat vector. */
struct rws_part {
    rws_group group;
    size_t    from, end;
    int       n_pieces;
    piece    *pieces;
};

static int rows_at_once(const rws_param *p)
{
    const int fit = SLICE / p->cols;
    return fit >= FEW * 4 ? ROWS : fit >= FEW ? fit / FEW * FEW : FEW;
}

static void add_piece(rws_trainer *t, const piece *p)
{
    const size_t from = p->param->offset + (size_t)p->first * (size_t)p->param->cols;
    const size_t size = (size_t)(p->end - p->first) * (size_t)p->param->cols;
    rws_part    *part = t->n_parts ? &t->parts[t->n_parts - 1] : NULL;
    if (!part || part->group != p->param->group || part->end - part->from + size > SLICE) {
        t->parts = realloc(t->parts, (size_t)(t->n_parts + 1) * sizeof *t->parts);
        RWS_CHECK(t->parts);
        part = &t->parts[t->n_parts++];
        *part = (rws_part){.group = p->param->group, .from = from};
    }
    part->end = from + size;
    part->pieces = realloc(part->pieces, (size_t)(part->n_pieces + 1) * sizeof *part->pieces);
    RWS_CHECK(part->pieces);
    part->pieces[part->n_pieces++] = *p;
}

void rws_trainer_cut(rws_trainer *t)
{
    const rws_params *params = &t->setup.params;
    for (int g = 0; g < RWS_GROUPS; g++)
        for (int i = 0; i < params->n; i++) {
            const rws_param *p = params->list[i];
            const int        n = rows_at_once(p);
            for (int first = 0; first < p->rows && p->group == (rws_group)g; first += n)
                add_piece(t, &(piece){p, first, p->rows - first < n ? p->rows : first + n});
        }
    t->puts_off = params->size > SLICE;
    t->scratch = calloc((size_t)t->config.threads, sizeof *t->scratch);
    RWS_CHECK(t->scratch);
}

void rws_trainer_uncut(rws_trainer *t)
{
    for (int i = 0; i < t->n_parts; i++) free(t->parts[i].pieces);
    for (int i = 0; i < t->config.threads && t->scratch; i++) rws_arena_free(&t->scratch[i]);
    free(t->parts);
    free(t->scratch);
}

typedef struct {
    rws_trainer         *t;
    unsigned             groups;
    bool                 steps; /* else only adds up */
    float                lr[RWS_GROUPS];
    atomic_bool          broken; /* a gradient is not finite */
    atomic_uint_fast64_t flops;
} part_job;

/* The sum of the shards' gradients, in their order, becomes the first one's; the others begin anew. False if there are
 * none. */
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

static void step_part(part_job *j, const rws_part *part, bool any)
{
    rws_trainer *t = j->t;
    rws_params  *p = &t->setup.params;
    const size_t from = part->from, n = part->end - from;
    float       *gradient = t->shards[0].gradient + from, total = 0;
    float       *slot[2] = {t->slot[0] ? t->slot[0] + from : NULL, t->slot[1] ? t->slot[1] + from : NULL};
#pragma omp simd reduction(+ : total)
    for (size_t k = 0; k < n; k++) total += gradient[k] * 0;
    if (total != 0) { /* NaN: something times zero that is not zero */
        j->broken = true;
        return;
    }
    t->optimiser->step(&t->optim, j->lr[part->group], t->steps[part->group], n, p->value + from, gradient, slot);
    if (any) memset(gradient, 0, n * sizeof(float));
    for (int i = 0; i < part->n_pieces; i++)
        rws_param_transpose(part->pieces[i].param, part->pieces[i].first, part->pieces[i].end, p->value, p->transposed);
}

static void work_on_part(void *context, int index, int worker)
{
    part_job       *j = context;
    rws_trainer    *t = j->t;
    const rws_part *part = &t->parts[index];
    const uint64_t  flops = rws_gemm_flops;
    bool            any = false;
    if (!(j->groups >> part->group & 1)) return;
    rws_flush_denormals();
    for (int i = 0; i < part->n_pieces; i++) any |= sum_piece(t, &part->pieces[i], &t->scratch[worker]);
    if (j->steps) step_part(j, part, any);
    j->flops += rws_gemm_flops - flops;
}

/* Small vectors are not worth waking anybody, nor is what one thread alone has in its cache. */
static void run_parts(part_job *j)
{
    rws_trainer *t = j->t;
    rws_pool_run(t->puts_off && t->config.shards > 1 ? t->pool : NULL, t->n_parts, work_on_part, j);
    t->flops += j->flops;
    for (int k = 0; k < t->setup.params.n; k++) {
        const rws_param *p = t->setup.params.list[k];
        if (!(j->groups >> p->group & 1)) continue;
        for (int i = 0; i < t->config.shards; i++) t->shards[i].touched[p->number] = !j->steps && i == 0;
    }
    for (int i = 0; i < t->config.shards; i++) t->shards[i].products = NULL;
}

void rws_trainer_sum(rws_trainer *t, unsigned groups)
{
    part_job j = {.t = t, .groups = groups};
    run_parts(&j);
}

static rws_status describe_broken(const rws_trainer *t, rws_error *err)
{
    const rws_params *p = &t->setup.params;
    for (int i = 0; i < p->n; i++)
        for (size_t k = 0; k < rws_param_size(p->list[i]); k++)
            if (!isfinite(t->shards[0].gradient[p->list[i]->offset + k]))
                return rws_fail(err, RWS_BROKEN, "In iteration %llu the gradient of %s is not a finite number.",
                                (unsigned long long)t->iteration + 1, p->list[i]->name);
    RWS_CHECK(!"a gradient that is not finite");
    return RWS_BROKEN;
}

rws_status rws_trainer_move(rws_trainer *t, unsigned groups, rws_error *err)
{
    const rws_params *p = &t->setup.params;
    part_job          j = {.t = t, .groups = groups, .steps = true};
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (!(groups >> g & 1) || p->first[g] == p->first[g + 1]) continue;
        double lr = (double)rws_schedule_at(&t->schedule, (rws_group)g, t->iteration);
        if (g == RWS_BASELINE) lr *= t->method.set.nvil_lr;
        j.lr[g] = (float)lr;
        t->steps[g]++;
    }
    run_parts(&j);
    return j.broken ? describe_broken(t, err) : RWS_OK;
}
