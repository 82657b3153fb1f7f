/* update.c - from the gradients of the shards to new parameters.
 *
 *     shard 0   products of weights -.
 *     shard 1   products of weights -+-> gradient of a slice -> optimiser -> parameters -> transposed copy
 *     …         biases and the rest -'
 *
 * The flat vector is cut into slices, each of whole rows of parameters of one group. A thread takes a slice through all
 * of this while the slice is in the cache; the gradients of weights exist nowhere else. Shards are added along a fixed
 * tree (forest.h), so that it changes nothing which thread or rank works on a slice, and when.
 *
 * Over several ranks (ranks.h) a slice has an owner, which steps it. The other ranks hand over what their shards add to
 * it and take its new values: exchange.c.
 */
#include "train/slices.h"

#include "tensor/gemm.h"
#include "tensor/products.h"

#include <limits.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 16384             /* numbers in a slice, about */
#define FEW_NUMBERS (2 * SLICE) /* rank 0 owns all slices if the parameters have no more numbers than this */
#define ROWS 96                 /* rows in a piece of a weight; if rows are long, fewer, but a multiple of FEW */
#define FEW 12

static int rows_of_piece(const rws_param *p)
{
    const int fit = SLICE / p->cols;
    return fit >= FEW * 4 ? ROWS : fit >= FEW ? fit / FEW * FEW : FEW;
}

static bool add_piece(rws_trainer *t, const rws_param_rows *p)
{
    const size_t     from = p->param->offset + (size_t)p->first * (size_t)p->param->cols;
    const size_t     size = (size_t)(p->end - p->first) * (size_t)p->param->cols;
    rws_param_slice *slice = t->n_slices ? &t->slices[t->n_slices - 1] : NULL;
    if (!slice || slice->group != p->param->group || rws__param_slice_size(slice) + size > SLICE) {
        rws_param_slice *longer = realloc(t->slices, (size_t)(t->n_slices + 1) * sizeof *longer);
        if (!longer) return false;
        t->slices = longer;
        slice = &t->slices[t->n_slices++];
        *slice = (rws_param_slice){.group = p->param->group, .from = from};
    }
    slice->end = from + size;
    rws_param_rows *longer = realloc(slice->pieces, (size_t)(slice->n_pieces + 1) * sizeof *longer);
    if (!longer) return false;
    slice->pieces = longer;
    slice->pieces[slice->n_pieces++] = *p;
    return true;
}

/* Neighbouring slices of a group go to the same rank, and every rank gets about as many. */
static void find_owners(rws_trainer *t)
{
    const int R = t->ranks.size;
    t->few_params = t->program.setup.params.size <= FEW_NUMBERS;
    for (int g = 0; g < RWS_GROUPS; g++) {
        int n = 0, k = 0;
        for (int i = 0; i < t->n_slices; i++) n += t->slices[i].group == (rws_group)g;
        for (int i = 0; i < t->n_slices; i++)
            if (t->slices[i].group == (rws_group)g) t->slices[i].owner = t->few_params ? 0 : k++ * R / n;
    }
}

/* Sets the order in which this rank works on slices: its own slices come last. */
static bool make_order(rws_trainer *t)
{
    const int R = t->ranks.size;
    int       n = 0;
    t->slice_order = malloc((size_t)(t->n_slices + 1) * sizeof *t->slice_order);
    for (int k = 1; k <= R && t->slice_order; k++)
        for (int i = 0; i < t->n_slices; i++)
            if (t->slices[i].owner == (t->ranks.rank + k) % R) t->slice_order[n++] = i;
    return t->slice_order != NULL;
}

rws_status rws__slices_new(rws_trainer *t, rws_error *err)
{
    const rws_params *params = &t->program.setup.params;
    bool              memory = true;
    for (int g = 0; g < RWS_GROUPS; g++)
        for (int i = 0; i < params->n; i++) {
            const rws_param *p = params->list[i];
            const int        n = rows_of_piece(p);
            for (int first = 0; first < p->rows && p->group == (rws_group)g && memory; first += n)
                memory = add_piece(t, &(rws_param_rows){p, first, p->rows - first < n ? p->rows : first + n});
        }
    find_owners(t);
    t->defers = params->size > SLICE;
    t->scratch = calloc((size_t)t->program.config.threads, sizeof *t->scratch);
    memory = memory && make_order(t) && t->scratch;
    return memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters");
}

void rws__slices_free(rws_trainer *t)
{
    rws__exchange_free(t);
    for (int i = 0; i < t->n_slices; i++) free(t->slices[i].pieces);
    for (int i = 0; i < t->program.config.threads && t->scratch; i++) rws__arena_free(&t->scratch[i]);
    free(t->slices);
    free(t->slice_order);
    free(t->scratch);
}

/* One update: what is done with the slices of some groups. */
typedef struct {
    rws_trainer         *t;
    unsigned             groups;
    bool                 steps; /* else the gradients are only added up */
    float                lr[RWS_GROUPS];
    atomic_int           broken; /* number, plus one, of the first parameter whose gradient is not finite; 0: none */
    atomic_bool          no_memory, stopped;
    atomic_uint_fast64_t flops;
    rws_error            error; /* why communication stopped */
} slice_work;

/* ---- the sum of this rank's shards */

/* Memory of one slice each, for sums that have no other place. */
typedef struct {
    float     *slot[RWS_MAX_FOREST];
    rws_arena *arena;
} slots;

/* Returns a slot that no sum of the forest uses, filled with zeros. */
static float *zeros(slots *s, const rws_forest *f, size_t length)
{
    for (int k = 0;; k++) {
        bool used = false;
        RWS_CHECK(k < RWS_MAX_FOREST);
        for (int i = 0; i < f->n; i++) used |= s->slot[k] && f->list[i].sum == s->slot[k];
        if (used) continue;
        if (!s->slot[k]) s->slot[k] = RWS_NEW(s->arena, float, length);
        return memset(s->slot[k], 0, length * sizeof(float));
    }
}

static bool is_touched(const rws_shard *s, const rws_param_slice *slice)
{
    bool touched = false;
    for (int i = 0; i < slice->n_pieces; i++) touched |= s->touched[slice->pieces[i].param->number];
    return touched;
}

/* The gradient of shard i for the slice; NULL if it is all zeros. Products are added in the shard's own gradient if
 * that has numbers already or if the shard is the first, because the other shards are added to the first; otherwise in
 * a slot. */
static float *sum_shard(rws_trainer *t, const rws_param_slice *slice, int i, const rws_forest *f, slots *scratch)
{
    const rws_shard *s = &t->shards[i];
    bool             any = is_touched(s, slice);
    float           *to = s->gradient + slice->from;
    if (!s->products) return any ? to : NULL;
    if (!any && i != t->ranks.first) to = zeros(scratch, f, rws__param_slice_size(slice));
    for (int k = 0; k < slice->n_pieces; k++) {
        const rws_param_rows *p = &slice->pieces[k];
        any |= rws__products_sum(s->products, p->param, p->first, p->end, to - slice->from, scratch->arena);
    }
    return any ? to : NULL;
}

static rws_forest sum_own(slice_work *j, const rws_param_slice *slice, slots *scratch)
{
    const uint64_t flops = rws_gemm_flops;
    rws_trainer   *t = j->t;
    rws_forest     f = {0};
    for (int i = t->ranks.first; i < t->ranks.end; i++)
        rws__forest_add(&f, (rws_subtree){i, 1, sum_shard(t, slice, i, &f, scratch)}, rws__param_slice_size(slice));
    j->flops += rws_gemm_flops - flops;
    return f;
}

/* Zeroes the slice in the gradients of this rank's shards, except in shard 0 where it holds the sum. */
static void clear_own(const slice_work *j, const rws_param_slice *slice)
{
    rws_trainer *t = j->t;
    for (int i = t->ranks.first; i < t->ranks.end; i++) {
        rws_shard *s = &t->shards[i];
        if (i == 0 && !j->steps) continue;
        if (is_touched(s, slice) || (s->products && i == t->ranks.first))
            memset(s->gradient + slice->from, 0, rws__param_slice_size(slice) * sizeof(float));
    }
}

/* ---- the step of a slice */

static bool is_finite(const float *gradient, size_t n)
{
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t k = 0; k < n; k++) total += gradient[k] * 0;
    return total == 0; /* a NaN or an infinite number times zero is NaN, and so is the total then */
}

/* Notes the first parameter, in the order of declaration, whose gradient is not finite. */
static void note_broken(slice_work *j, const rws_param_slice *slice, const float *gradient)
{
    for (int i = 0; i < slice->n_pieces; i++) {
        const rws_param_rows *p = &slice->pieces[i];
        const size_t          from = p->param->offset + (size_t)p->first * (size_t)p->param->cols - slice->from;
        const size_t          n = (size_t)(p->end - p->first) * (size_t)p->param->cols;
        if (is_finite(gradient + from, n)) continue;
        int was = j->broken;
        while ((!was || was > p->param->number + 1) &&
               !atomic_compare_exchange_weak(&j->broken, &was, p->param->number + 1)) {}
    }
}

static void transpose(rws_trainer *t, const rws_param_slice *slice)
{
    rws_params *p = &t->program.setup.params;
    for (int i = 0; i < slice->n_pieces; i++)
        rws__param_transpose(slice->pieces[i].param, slice->pieces[i].first, slice->pieces[i].end, p->value,
                             p->transposed);
}

static bool step_slice(slice_work *j, const rws_param_slice *slice, float *gradient)
{
    rws_trainer *t = j->t;
    rws_params  *p = &t->program.setup.params;
    const size_t from = slice->from, n = rws__param_slice_size(slice);
    float       *slot[2] = {t->slot[0] ? t->slot[0] + from : NULL, t->slot[1] ? t->slot[1] + from : NULL};
    if (!is_finite(gradient, n)) {
        note_broken(j, slice, gradient);
        return false;
    }
    t->optimiser->step(&t->optim, j->lr[slice->group], t->steps[slice->group], n, p->value + from, gradient, slot);
    transpose(t, slice);
    return true;
}

/* Steps the slice along the sum over all shards, or leaves the sum in the gradient of shard 0. False if the sum is not
 * finite. */
static bool finish(slice_work *j, const rws_param_slice *slice, rws_forest *f, slots *scratch)
{
    const size_t n = rws__param_slice_size(slice);
    float       *kept = j->t->shards[0].gradient + slice->from, *sum = rws__forest_sum(f, n);
    if (!sum) sum = zeros(scratch, f, n);
    const bool finite = !j->steps || step_slice(j, slice, sum);
    if (!j->steps && kept != sum) memcpy(kept, sum, n * sizeof(float));
    clear_own(j, slice);
    return finite;
}

/* ---- memory that there may not be */

/* A slice that a thread works on. */
typedef struct {
    slice_work            *job;
    int                    index;
    const rws_param_slice *slice;
    slots                  scratch;
    rws_forest             own, all; /* sums of this rank's shards; of the shards of all ranks that brought theirs */
    bool                   well;     /* the slice is finished, and its gradient is finite */
} slice_sum;

static void sum_shards(slice_sum *s)
{
    s->own = sum_own(s->job, s->slice, &s->scratch);
}

static void finish_slice(slice_sum *s)
{
    s->well = finish(s->job, s->slice, &s->all, &s->scratch);
}

/* Does a part of the work. False, with a note, if the scratch memory does not suffice for it. */
static bool attempt(void (*part)(slice_sum *s), slice_sum *s)
{
    jmp_buf leave;
    s->scratch.arena->no_memory = rws__arena_jump;
    s->scratch.arena->context = &leave;
    if (setjmp(leave) != 0) {
        s->job->no_memory = true;
        return false;
    }
    part(s);
    return true;
}

static void sum_and_step(slice_sum *s)
{
    if (!attempt(sum_shards, s)) return;
    s->all = s->own;
    attempt(finish_slice, s);
}

/* ---- the same over ranks */

/* The numbers of a slice that travel between ranks: the new values, or the sum of the gradients. */
static float *place_of(const slice_work *j, const rws_param_slice *slice)
{
    rws_trainer *t = j->t;
    return (j->steps ? t->program.setup.params.value : t->shards[0].gradient) + slice->from;
}

static bool is_owner(const rws_trainer *t, int index)
{
    return t->slices[index].owner == t->ranks.rank;
}

/* The owner of a slice has the sums of all ranks, or the outcome of one that has none. */
static rws_message_status step_own(slice_sum *s, rws_message_status outcome)
{
    if (outcome == RWS_MESSAGE_OK && !attempt(finish_slice, s)) outcome = RWS_MESSAGE_NO_MEMORY;
    if (outcome != RWS_MESSAGE_OK) return outcome;
    return s->well ? RWS_MESSAGE_OK : RWS_MESSAGE_NOT_FINITE;
}

/* Sums of all ranks come to the owner, which steps the slice and sends its values to them. A rank without memory for
 * its sums continues without them. */
static rws_status collect_and_step(slice_sum *s, rws_error *err)
{
    rws_trainer       *t = s->job->t;
    rws_message_status outcome = RWS_MESSAGE_OK;
    if (!attempt(sum_shards, s)) {
        s->own = rws__forest_of(t->ranks.first, t->ranks.end);
        outcome = RWS_MESSAGE_NO_MEMORY;
    }
    RWS_TRY(rws__exchange_collect(t, s->index, &s->own, &s->all, &outcome, err));
    if (is_owner(t, s->index)) {
        outcome = step_own(s, outcome);
        if (outcome == RWS_MESSAGE_NO_MEMORY) s->job->no_memory = true;
        return rws__exchange_give(t, s->index, place_of(s->job, s->slice), outcome, err);
    }
    RWS_TRY(rws__exchange_send_sums(t, s->index, &s->all, outcome, err));
    clear_own(s->job, s->slice);
    return RWS_OK;
}

/* Takes new values from the slice's owner. */
static rws_status take_values(slice_work *j, int index, rws_error *err)
{
    rws_trainer           *t = j->t;
    const rws_param_slice *slice = &t->slices[index];
    rws_message_status     outcome;
    int                    none = 0;
    if (is_owner(t, index)) return RWS_OK;
    RWS_TRY(rws__exchange_take(t, index, place_of(j, slice), &outcome, err));
    switch (outcome) {
    case RWS_MESSAGE_OK:
        if (j->steps) transpose(t, slice);
        break;
    case RWS_MESSAGE_NOT_FINITE: /* the owner knows which parameter it is */
        atomic_compare_exchange_strong(&j->broken, &none, INT_MAX);
        break;
    case RWS_MESSAGE_NO_MEMORY: j->no_memory = true; break;
    }
    return RWS_OK;
}

/* ---- jobs of the pool */

static void note_failure(slice_work *j, rws_status status, const rws_error *err)
{
    bool was = false;
    if (status != RWS_OK && atomic_compare_exchange_strong(&j->stopped, &was, true)) j->error = *err;
}

static bool is_wanted(const slice_work *j, int index)
{
    const bool over = j->stopped || (j->no_memory && !j->t->ranks.comm); /* other ranks wait for all messages */
    return !over && j->groups >> j->t->slices[index].group & 1;
}

static void add_slice(void *context, int place, int worker)
{
    slice_work *j = context;
    rws_arena  *scratch = &j->t->scratch[worker];
    const int   index = j->t->slice_order[place];
    slice_sum   s = {.job = j, .index = index, .slice = &j->t->slices[index], .scratch = {.arena = scratch}};
    rws_error   err;
    if (!is_wanted(j, index)) return;
    const rws_arena_mark mark = rws__arena_at(scratch);
    if (!j->t->ranks.comm) sum_and_step(&s);
    else note_failure(j, collect_and_step(&s, &err), &err);
    rws__arena_release(scratch, mark);
}

static void take_slice(void *context, int place, int worker)
{
    (void)worker;
    slice_work *j = context;
    const int   index = j->t->slice_order[place];
    rws_error   err;
    if (is_wanted(j, index)) note_failure(j, take_values(j, index, &err), &err);
}

/* Updates the slices together with the other ranks. After the first failure nothing more is sent or waited for, because
 * the job of ranks is over. */
static void run_over_ranks(slice_work *j, rws_pool *pool)
{
    rws_trainer *t = j->t;
    rws_error    err;
    t->n_updates++;
    for (int i = 0; i < t->n_slices; i++)
        if (is_wanted(j, i)) note_failure(j, rws__exchange_expect(t, i, &err), &err);
    rws__pool_run(pool, t->n_slices, add_slice, j);
    rws__pool_run(pool, t->n_slices, take_slice, j);
    for (int i = 0; i < t->n_slices; i++)
        if (is_wanted(j, i)) note_failure(j, rws__exchange_wait(t, i, &err), &err);
}

/* Serial if the parameters fit one slice, or if there is one shard, whose gradient is in the cache of its thread. */
static rws_status run_slices(slice_work *j, rws_error *err)
{
    rws_trainer *t = j->t;
    rws_pool    *pool = t->defers && t->n_shards > 1 ? t->pool : NULL;
    if (t->ranks.comm) run_over_ranks(j, pool);
    else rws__pool_run(pool, t->n_slices, add_slice, j);
    t->flops += j->flops;
    for (int k = 0; k < t->program.setup.params.n; k++) {
        const rws_param *p = t->program.setup.params.list[k];
        if (!(j->groups >> p->group & 1)) continue;
        for (int i = t->ranks.first; i < t->ranks.end; i++) t->shards[i].touched[p->number] = !j->steps && i == 0;
    }
    for (int i = t->ranks.first; i < t->ranks.end; i++) t->shards[i].products = NULL;
    if (j->no_memory) return rws_no_memory(err, "the products of a slice");
    return j->stopped ? rws_fail(err, RWS_BAD_INPUT, "%s", j->error.text) : RWS_OK;
}

rws_status rws__trainer_sum(rws_trainer *t, unsigned groups, rws_error *err)
{
    slice_work j = {.t = t, .groups = groups};
    return run_slices(&j, err);
}

/* Names the first parameter, in the order of declaration, whose gradient is not finite on any rank. */
static rws_status describe_broken(const slice_work *j, rws_error *err)
{
    rws_trainer *t = j->t;
    int          first = j->broken, all[t->ranks.size];
    if (t->ranks.comm) {
        RWS_TRY(rws__comm_gather(t->ranks.comm, &first, sizeof first, all, err));
        for (int i = 0; i < t->ranks.size; i++)
            if (all[i] && all[i] < first) first = all[i];
    }
    RWS_CHECK(first > 0 && first <= t->program.setup.params.n);
    return rws_fail(err, RWS_BROKEN, "The gradient of %s is not a finite number.",
                    t->program.setup.params.list[first - 1]->name);
}

rws_status rws__trainer_update(rws_trainer *t, unsigned groups, rws_error *err)
{
    const rws_params *p = &t->program.setup.params;
    slice_work        j = {.t = t, .groups = groups, .steps = true};
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (!(groups >> g & 1) || p->first[g] == p->first[g + 1]) continue;
        j.lr[g] = (float)((double)rws__schedule_at(&t->schedule, (rws_group)g, t->program.iteration) *
                          t->program.method.rate[g]);
        t->steps[g]++;
    }
    RWS_TRY(run_slices(&j, err));
    return j.broken ? describe_broken(&j, err) : RWS_OK;
}
