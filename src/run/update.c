/* update.c - from the gradients of the shards to new parameters.
 *
 *     shard 0   products of weights -.
 *     shard 1   products of weights -+-> gradient of a slice -> optimiser -> parameters -> transposed copy
 *     …         biases and the rest -'
 *
 * The flat vector is cut into slices, each of whole rows of parameters of one group. A thread takes a slice through all
 * of this while the slice is in the cache; the gradients of weights exist nowhere else. Shards are added along a fixed
 * tree (tree.h), so that it changes nothing which thread or rank works on a slice, and when.
 *
 * Over several ranks (ranks.h) a slice has an owner. The others compute what their shards add to it, send that and go on
 * with the next slice while the message is under way; their own slices come last, when most messages are there.
 *
 *     rank 1   slices of rank 2, of rank 0: products -> send          own slices: products, receive, add, step, send back
 *     rank 2   slices of rank 0, of rank 1: products -> send          own slices: …
 *
 * Every message with new values ends with a number that is not 0 if the owner could not step the slice.
 *
 * Messages between machines go by MPI. Ranks of one machine see each other's outgoing messages in shared memory
 * (rws_comm_share): a message is written once, and a mark beside it says for which update. No message is written over
 * before it was read, because a rank sends for an update only after it has the values of the last one, and because
 * all ranks exchange outcomes (shards.c) between two updates.
 */
#include "run/trainer.h"

#include "run/tree.h"
#include "tensor/gemm.h"
#include "tensor/products.h"

#include <limits.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 16384             /* numbers of a slice, about */
#define FEW_NUMBERS (2 * SLICE) /* parameters of a model that rank 0 owns all */
#define ROWS 96                 /* rows of a piece of a weight; long rows: fewer, but a multiple of FEW */
#define FEW 12

/* Rows first … end - 1 of a parameter. */
typedef struct {
    const rws_param *param;
    int              first, end;
} piece;

/* At the beginning of a rank's shared block, for each slice: where its messages are, and for which update they are. */
typedef struct {
    _Alignas(64) rws_mark sums_of, values_of; /* update */
    size_t sums, values;                      /* bytes from the beginning of the block */
} posting;

/* Messages about a slice. */
typedef struct {
    posting      *posting;  /* this rank's own, for: */
    float        *out;      /* the forest of this rank's shards and of those that others brought, for the parent; NULL:
                               there is no shard, or no parent */
    float        *values;   /* of the slice, and one number more: STEPPED, … */
    float       **in;       /* forests of the sources, in their order; NULL: this rank, or without shards */
    rws_transfer *incoming; /* by source; -1 if it shares its memory */
    rws_transfer *leaving;  /* values, by source */
    rws_transfer  sending;  /* `out` */
    rws_transfer  coming;   /* values, from the parent */
    rws_route    *route;
} mail;

/* Pieces of one group that are next to each other in the flat vector. */
struct rws_param_slice {
    rws_group group;
    size_t    from, end;
    int       n_pieces, owner; /* the rank that steps it */
    piece    *pieces;
    mail     *mail; /* NULL: the trainer is alone */
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

/* Slices of each group go to the ranks in turn, as many to each. */
static void find_owners(rws_trainer *t)
{
    const int R = t->ranks.size;
    t->few_params = t->setup.params.size <= FEW_NUMBERS;
    for (int g = 0; g < RWS_GROUPS; g++) {
        int n = 0, k = 0;
        for (int i = 0; i < t->n_slices; i++) n += t->slices[i].group == (rws_group)g;
        for (int i = 0; i < t->n_slices; i++)
            if (t->slices[i].group == (rws_group)g) t->slices[i].owner = t->few_params ? 0 : k++ * R / n;
    }
}

/* Shards that source number k of a route brings. */
static void range_of_source(const rws_trainer *t, const rws_route *route, int k, int *first, int *end)
{
    const rws_ranks *r = &t->ranks;
    int              ignored;
    rws_ranks_range(r->size, route->source[k], t->n_shards, first, &ignored);
    rws_ranks_range(r->size, rws_ranks_brings(r, t->few_params, route->source[k]) - 1, t->n_shards, &ignored, end);
}

/* Numbers of the message with which source k of a route brings its sums; 0: it has no shards. */
static size_t numbers_from(const rws_trainer *t, const rws_param_slice *s, const rws_route *route, int k)
{
    int first, end;
    range_of_source(t, route, k, &first, &end);
    return (size_t)rws_forest_of(first, end).n * (s->end - s->from);
}

/* Numbers of the message with this rank's sums and of those that others brought; 0: there is none. */
static size_t numbers_out(const rws_trainer *t, const rws_param_slice *s, const rws_route *route)
{
    int first = t->ranks.first, end = t->ranks.end, from, last;
    for (int k = 0; k < route->n; k++) {
        range_of_source(t, route, k, &from, &last);
        if (from < last && last > end) end = last;
    }
    return route->parent < 0 ? 0 : (size_t)rws_forest_of(first, end).n * (s->end - s->from);
}

/* What a rank has posted about a slice; NULL: its memory is not shared. */
static posting *posting_of(const rws_trainer *t, int rank, int index)
{
    char *block = t->shared.of[rank];
    return block ? (posting *)(void *)block + index : NULL;
}

static float *sums_of(const rws_trainer *t, int rank, int index)
{
    return (float *)(void *)(t->shared.of[rank] + posting_of(t, rank, index)->sums);
}

static float *values_of(const rws_trainer *t, int rank, int index)
{
    return (float *)(void *)(t->shared.of[rank] + posting_of(t, rank, index)->values);
}

static bool mail_new(rws_trainer *t, rws_param_slice *s)
{
    mail *m = s->mail = calloc(1, sizeof *m);
    if (!m || !(m->route = malloc(sizeof *m->route + (size_t)t->ranks.size * sizeof(int)))) return false;
    rws_ranks_route(&t->ranks, s->owner, t->few_params, m->route);
    m->in = calloc((size_t)m->route->n, sizeof *m->in);
    m->incoming = malloc((size_t)m->route->n * sizeof *m->incoming);
    m->leaving = malloc((size_t)m->route->n * sizeof *m->leaving);
    return m->in && m->incoming && m->leaving;
}

/* Messages that come by MPI need a place of their own; those of ranks that share memory stay where they are. */
static bool mail_places(rws_trainer *t, int index)
{
    rws_param_slice *s = &t->slices[index];
    mail            *m = s->mail;
    m->posting = posting_of(t, t->ranks.rank, index);
    m->values = values_of(t, t->ranks.rank, index);
    m->out = numbers_out(t, s, m->route) ? sums_of(t, t->ranks.rank, index) : NULL;
    for (int k = 0; k < m->route->n; k++) {
        const int    rank = m->route->source[k];
        const size_t n = numbers_from(t, s, m->route, k);
        if (rank == t->ranks.rank || !n) continue;
        m->in[k] = posting_of(t, rank, index) ? sums_of(t, rank, index) : malloc(n * sizeof(float));
        if (!m->in[k]) return false;
    }
    return true;
}

/* Adds a message of so many numbers to a block; returns where it begins. */
static size_t append(size_t *bytes, size_t numbers)
{
    const size_t at = *bytes;
    *bytes += (numbers * sizeof(float) + 63) / 64 * 64;
    return at;
}

static void mail_free(rws_trainer *t, int index)
{
    mail *m = t->slices[index].mail;
    if (!m) return;
    for (int k = 0; m->route && m->in && k < m->route->n; k++)
        if (t->shared.of && !posting_of(t, m->route->source[k], index)) free(m->in[k]);
    void *parts[] = {m->in, m->incoming, m->leaving, m->route, m};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

/* The order in which this rank works on slices: its own come last. */
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
    find_owners(t);
    t->defers = params->size > SLICE;
    t->scratch = calloc((size_t)t->config.threads, sizeof *t->scratch);
    memory = memory && make_order(t) && t->scratch;
    return memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters");
}

rws_status rws_slices_share(rws_trainer *t, rws_error *err)
{
    if (!t->ranks.comm) return RWS_OK;
    size_t   bytes = (size_t)t->n_slices * sizeof(posting);
    posting *plan = aligned_alloc(64, bytes + 64);
    bool     memory = plan != NULL;
    for (int i = 0; i < t->n_slices && memory; i++) {
        const rws_param_slice *s = &t->slices[i];
        memory = mail_new(t, &t->slices[i]);
        if (!memory) break;
        plan[i] = (posting){.sums = append(&bytes, numbers_out(t, s, s->mail->route))};
        plan[i].values = append(&bytes, s->end - s->from + 1);
    }
    rws_status status = rws_trainer_agree(t, memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters"), err);
    if (status == RWS_OK) status = rws_comm_share(t->ranks.comm, bytes, &t->shared, err);
    if (status == RWS_OK) memcpy(t->shared.of[t->ranks.rank], plan, (size_t)t->n_slices * sizeof *plan);
    free(plan);
    RWS_TRY(status);
    RWS_TRY(rws_trainer_agree(t, RWS_OK, err)); /* all ranks have written their plans */
    for (int i = 0; i < t->n_slices && memory; i++) memory = mail_places(t, i);
    return rws_trainer_agree(t, memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters"), err);
}

void rws_slices_free(rws_trainer *t)
{
    const bool whole = rws_rank_lost() < 0; /* else messages may still be on their way into memory */
    for (int i = 0; i < t->n_slices; i++) {
        free(t->slices[i].pieces);
        if (whole) mail_free(t, i);
    }
    if (whole && t->ranks.comm) rws_comm_unshare(t->ranks.comm, &t->shared);
    for (int i = 0; i < t->config.threads && t->scratch; i++) rws_arena_free(&t->scratch[i]);
    free(t->slices);
    free(t->slice_order);
    free(t->scratch);
}

enum { STEPPED, NOT_FINITE };

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

static size_t length_of(const rws_param_slice *s)
{
    return s->end - s->from;
}

/* ---- the sum of this rank's shards */

/* Memory of one slice each, for sums that have no other place. */
typedef struct {
    float     *slot[RWS_FOREST_MOST];
    rws_arena *arena;
} slots;

/* Zeros in a slot that the forest does not use. */
static float *zeros(slots *s, const rws_forest *f, size_t length)
{
    for (int k = 0;; k++) {
        bool used = false;
        RWS_CHECK(k < RWS_FOREST_MOST);
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

/* What shard i adds to the slice; NULL: nothing. It is summed up where the shard has its gradient if there is something
 * already, and for the first shard, which the others are added to. */
static float *leaf(rws_trainer *t, const rws_param_slice *slice, int i, const rws_forest *f, slots *scratch)
{
    const rws_shard *s = &t->shards[i];
    bool             any = is_touched(s, slice);
    float           *to = s->gradient + slice->from;
    if (!s->products) return any ? to : NULL;
    if (!any && i != t->ranks.first) to = zeros(scratch, f, length_of(slice));
    for (int k = 0; k < slice->n_pieces; k++) {
        const piece *p = &slice->pieces[k];
        any |= rws_products_sum(s->products, p->param, p->first, p->end, to - slice->from, scratch->arena);
    }
    return any ? to : NULL;
}

static rws_forest sum_own(slice_work *j, const rws_param_slice *slice, slots *scratch)
{
    const uint64_t flops = rws_gemm_flops;
    rws_trainer   *t = j->t;
    rws_forest     f = {0};
    for (int i = t->ranks.first; i < t->ranks.end; i++)
        rws_forest_add(&f, (rws_subtree){i, 1, leaf(t, slice, i, &f, scratch)}, length_of(slice));
    j->flops += rws_gemm_flops - flops;
    return f;
}

/* The gradients of this rank's shards begin anew. The place of shard 0 is left alone if it holds the sum. */
static void clear_own(const slice_work *j, const rws_param_slice *slice)
{
    rws_trainer *t = j->t;
    for (int i = t->ranks.first; i < t->ranks.end; i++) {
        rws_shard *s = &t->shards[i];
        if (i == 0 && !j->steps) continue;
        if (is_touched(s, slice) || (s->products && i == t->ranks.first))
            memset(s->gradient + slice->from, 0, length_of(slice) * sizeof(float));
    }
}

/* ---- the step of a slice */

static bool is_finite(const float *gradient, size_t n)
{
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t k = 0; k < n; k++) total += gradient[k] * 0;
    return total == 0; /* NaN: something times zero that is not zero */
}

/* Notes the first parameter, in the order of declaration, whose gradient is not finite. */
static void note_broken(slice_work *j, const rws_param_slice *slice, const float *gradient)
{
    for (int i = 0; i < slice->n_pieces; i++) {
        const piece *p = &slice->pieces[i];
        const size_t from = p->param->offset + (size_t)p->first * (size_t)p->param->cols - slice->from;
        const size_t n = (size_t)(p->end - p->first) * (size_t)p->param->cols;
        if (is_finite(gradient + from, n)) continue;
        int was = j->broken;
        while ((!was || was > p->param->number + 1) &&
               !atomic_compare_exchange_weak(&j->broken, &was, p->param->number + 1)) {}
    }
}

static void transpose(rws_trainer *t, const rws_param_slice *slice)
{
    rws_params *p = &t->setup.params;
    for (int i = 0; i < slice->n_pieces; i++)
        rws_param_transpose(slice->pieces[i].param, slice->pieces[i].first, slice->pieces[i].end, p->value,
                            p->transposed);
}

static bool step_slice(slice_work *j, const rws_param_slice *slice, float *gradient)
{
    rws_trainer *t = j->t;
    rws_params  *p = &t->setup.params;
    const size_t from = slice->from, n = length_of(slice);
    float       *slot[2] = {t->slot[0] ? t->slot[0] + from : NULL, t->slot[1] ? t->slot[1] + from : NULL};
    if (!is_finite(gradient, n)) {
        note_broken(j, slice, gradient);
        return false;
    }
    t->optimiser->step(&t->optim, j->lr[slice->group], t->steps[slice->group], n, p->value + from, gradient, slot);
    transpose(t, slice);
    return true;
}

/* The sum over all shards is known: steps the slice, or leaves the sum in the place of shard 0. True if all is well. */
static bool finish(slice_work *j, const rws_param_slice *slice, rws_forest *f, slots *scratch)
{
    const size_t n = length_of(slice);
    float       *kept = j->t->shards[0].gradient + slice->from, *sum = rws_forest_sum(f, n);
    if (!sum) sum = zeros(scratch, f, n);
    const bool well = !j->steps || step_slice(j, slice, sum);
    if (!j->steps && kept != sum) memcpy(kept, sum, n * sizeof(float));
    clear_own(j, slice);
    return well;
}

static void sum_and_step(slice_work *j, int index, rws_arena *arena)
{
    const rws_param_slice *slice = &j->t->slices[index];
    slots                  scratch = {.arena = arena};
    rws_forest             f = sum_own(j, slice, &scratch);
    finish(j, slice, &f, &scratch);
}

/* ---- the same over ranks */

/* Where the numbers of a slice are that travel: new values, or the sum of the gradients. */
static float *place_of(const slice_work *j, const rws_param_slice *slice)
{
    rws_trainer *t = j->t;
    return (j->steps ? t->setup.params.value : t->shards[0].gradient) + slice->from;
}

/* Everything that will come by MPI is expected before it comes. */
static rws_status expect(slice_work *j, int index, rws_error *err)
{
    rws_trainer           *t = j->t;
    const rws_param_slice *slice = &t->slices[index];
    mail                  *m = slice->mail;
    m->sending = m->coming = -1;
    for (int k = 0; k < m->route->n; k++) m->incoming[k] = m->leaving[k] = -1;
    for (int k = 0; k < m->route->n; k++) {
        const int source = m->route->source[k];
        if (!m->in[k] || posting_of(t, source, index)) continue;
        RWS_TRY(rws_comm_receive(t->ranks.comm, source, 2 * index, m->in[k],
                                 numbers_from(t, slice, m->route, k) * sizeof(float), &m->incoming[k], err));
    }
    if (m->route->parent < 0 || posting_of(t, m->route->parent, index)) return RWS_OK;
    return rws_comm_receive(t->ranks.comm, m->route->parent, 2 * index + 1, m->values,
                            (length_of(slice) + 1) * sizeof(float), &m->coming, err);
}

/* Values go on to the ranks that the slice's sums came from. */
static rws_status pass_on(slice_work *j, int index, rws_error *err)
{
    rws_trainer           *t = j->t;
    const rws_param_slice *slice = &t->slices[index];
    mail                  *m = slice->mail;
    const size_t           bytes = (length_of(slice) + 1) * sizeof(float);
    int                    n_near = 0;
    for (int k = 0; k < m->route->n; k++)
        n_near += m->route->source[k] != t->ranks.rank && posting_of(t, m->route->source[k], index);
    if (n_near) rws_comm_post(t->ranks.comm, &m->posting->values_of, t->n_updates, bytes, n_near);
    for (int k = 0; k < m->route->n; k++) {
        if (posting_of(t, m->route->source[k], index)) continue;
        RWS_TRY(
            rws_comm_send(t->ranks.comm, m->route->source[k], 2 * index + 1, m->values, bytes, &m->leaving[k], err));
    }
    return RWS_OK;
}

/* Waits for the sums of source k. */
static rws_status wait_for_sums(slice_work *j, int index, int k, rws_error *err)
{
    rws_trainer   *t = j->t;
    mail          *m = t->slices[index].mail;
    const posting *near = posting_of(t, m->route->source[k], index);
    if (near) return rws_comm_await(t->ranks.comm, &near->sums_of, t->n_updates, err);
    return rws_comm_wait(t->ranks.comm, &m->incoming[k], 1, err);
}

/* The forest of all sources, in the order of their ranks: own shards, and what others bring. */
static rws_status collect(slice_work *j, int index, rws_forest *own, rws_forest *all, rws_error *err)
{
    rws_trainer *t = j->t;
    mail        *m = t->slices[index].mail;
    const size_t n = length_of(&t->slices[index]);
    for (int k = 0; k < m->route->n; k++) {
        rws_forest brought = *own;
        if (m->route->source[k] != t->ranks.rank) {
            int first, end;
            if (!m->in[k]) continue;
            RWS_TRY(wait_for_sums(j, index, k, err));
            range_of_source(t, m->route, k, &first, &end);
            brought = rws_forest_of(first, end);
            for (int i = 0; i < brought.n; i++) brought.list[i].sum = m->in[k] + (size_t)i * n;
        }
        for (int i = 0; i < brought.n; i++) rws_forest_add(all, brought.list[i], n);
    }
    return RWS_OK;
}

/* Hands the forest over to the parent. */
static rws_status send_sums(slice_work *j, int index, const rws_forest *all, rws_error *err)
{
    rws_trainer *t = j->t;
    mail        *m = t->slices[index].mail;
    const size_t n = length_of(&t->slices[index]), bytes = (size_t)all->n * n * sizeof(float);
    for (int i = 0; i < all->n; i++) {
        if (all->list[i].sum) memcpy(m->out + (size_t)i * n, all->list[i].sum, n * sizeof(float));
        else memset(m->out + (size_t)i * n, 0, n * sizeof(float));
    }
    if (!posting_of(t, m->route->parent, index))
        return rws_comm_send(t->ranks.comm, m->route->parent, 2 * index, m->out, bytes, &m->sending, err);
    rws_comm_post(t->ranks.comm, &m->posting->sums_of, t->n_updates, bytes, 1);
    return RWS_OK;
}

static rws_status collect_and_step(slice_work *j, int index, rws_arena *arena, rws_error *err)
{
    rws_trainer           *t = j->t;
    const rws_param_slice *slice = &t->slices[index];
    mail                  *m = slice->mail;
    const size_t           n = length_of(slice);
    slots                  scratch = {.arena = arena};
    rws_forest             own = sum_own(j, slice, &scratch), all = {0};
    RWS_TRY(collect(j, index, &own, &all, err));
    if (m->route->parent < 0) {
        const bool well = finish(j, slice, &all, &scratch);
        memcpy(m->values, place_of(j, slice), n * sizeof(float));
        m->values[n] = well ? STEPPED : NOT_FINITE;
        return pass_on(j, index, err);
    }
    if (m->out) RWS_TRY(send_sums(j, index, &all, err)); /* else there are more ranks than shards */
    clear_own(j, slice);
    return RWS_OK;
}

/* Takes new values from the slice's owner. */
static rws_status take_values(slice_work *j, int index, rws_error *err)
{
    rws_trainer           *t = j->t;
    const rws_param_slice *slice = &t->slices[index];
    mail                  *m = slice->mail;
    const size_t           n = length_of(slice);
    if (m->route->parent < 0) return RWS_OK;
    const posting *near = posting_of(t, m->route->parent, index);
    const float   *values = near ? values_of(t, m->route->parent, index) : m->values;
    if (near) RWS_TRY(rws_comm_await(t->ranks.comm, &near->values_of, t->n_updates, err));
    else RWS_TRY(rws_comm_wait(t->ranks.comm, &m->coming, 1, err));
    if (near && m->route->n > 1) memcpy(m->values, values, (n + 1) * sizeof(float));
    RWS_TRY(pass_on(j, index, err));
    if (values[n] != STEPPED) {
        int none = 0; /* the owner knows which parameter it is */
        atomic_compare_exchange_strong(&j->broken, &none, INT_MAX);
        return RWS_OK;
    }
    memcpy(place_of(j, slice), values, n * sizeof(float));
    if (j->steps) transpose(t, slice);
    return RWS_OK;
}

static rws_status wait_until_sent(slice_work *j, int index, rws_error *err)
{
    mail *m = j->t->slices[index].mail;
    RWS_TRY(rws_comm_wait(j->t->ranks.comm, &m->sending, 1, err));
    return rws_comm_wait(j->t->ranks.comm, m->leaving, m->route->n, err);
}

/* ---- jobs of the pool */

static void note_failure(slice_work *j, rws_status status, const rws_error *err)
{
    bool was = false;
    if (status != RWS_OK && atomic_compare_exchange_strong(&j->stopped, &was, true)) j->error = *err;
}

static bool is_wanted(const slice_work *j, int index)
{
    return !j->stopped && j->groups >> j->t->slices[index].group & 1;
}

static void add_slice(void *context, int place, int worker)
{
    slice_work *j = context;
    rws_arena  *scratch = &j->t->scratch[worker];
    const int   index = j->t->slice_order[place];
    jmp_buf     leave;
    rws_error   err;
    if (!is_wanted(j, index)) return;
    scratch->no_memory = rws_arena_jump;
    scratch->context = &leave;
    const rws_arena_mark mark = rws_arena_at(scratch);
    if (setjmp(leave) != 0) j->no_memory = true;
    else if (!j->t->ranks.comm) sum_and_step(j, index, scratch);
    else note_failure(j, collect_and_step(j, index, scratch, &err), &err);
    rws_arena_release(scratch, mark);
}

static void take_slice(void *context, int place, int worker)
{
    (void)worker;
    slice_work *j = context;
    const int   index = j->t->slice_order[place];
    rws_error   err;
    if (is_wanted(j, index)) note_failure(j, take_values(j, index, &err), &err);
}

/* After the first failure nothing more is sent or waited for: the job is over. */
static void run_over_ranks(slice_work *j, rws_pool *pool)
{
    rws_trainer *t = j->t;
    rws_error    err;
    t->n_updates++;
    for (int i = 0; i < t->n_slices; i++)
        if (is_wanted(j, i)) note_failure(j, expect(j, i, &err), &err);
    rws_pool_run(pool, t->n_slices, add_slice, j);
    rws_pool_run(pool, t->n_slices, take_slice, j);
    for (int i = 0; i < t->n_slices; i++)
        if (is_wanted(j, i)) note_failure(j, wait_until_sent(j, i, &err), &err);
}

/* Serial if the parameters fit one slice, or if there is one shard, whose gradient is in the cache of its thread. */
static rws_status run_slices(slice_work *j, rws_error *err)
{
    rws_trainer *t = j->t;
    rws_pool    *pool = t->defers && t->n_shards > 1 ? t->pool : NULL;
    if (t->ranks.comm) run_over_ranks(j, pool);
    else rws_pool_run(pool, t->n_slices, add_slice, j);
    t->flops += j->flops;
    for (int k = 0; k < t->setup.params.n; k++) {
        const rws_param *p = t->setup.params.list[k];
        if (!(j->groups >> p->group & 1)) continue;
        for (int i = t->ranks.first; i < t->ranks.end; i++) t->shards[i].touched[p->number] = !j->steps && i == 0;
    }
    for (int i = t->ranks.first; i < t->ranks.end; i++) t->shards[i].products = NULL;
    if (j->no_memory) return rws_no_memory(err, "the products of a slice");
    return j->stopped ? rws_fail(err, RWS_BAD_INPUT, "%s", j->error.text) : RWS_OK;
}

rws_status rws_trainer_sum(rws_trainer *t, unsigned groups, rws_error *err)
{
    slice_work j = {.t = t, .groups = groups};
    return run_slices(&j, err);
}

/* Each rank knows of its own slices; the first parameter of all ranks is named. */
static rws_status describe_broken(const slice_work *j, rws_error *err)
{
    rws_trainer *t = j->t;
    int          first = j->broken, all[t->ranks.size];
    if (t->ranks.comm) {
        RWS_TRY(rws_comm_gather(t->ranks.comm, &first, sizeof first, all, err));
        for (int i = 0; i < t->ranks.size; i++)
            if (all[i] && all[i] < first) first = all[i];
    }
    RWS_CHECK(first > 0 && first <= t->setup.params.n);
    return rws_fail(err, RWS_BROKEN, "The gradient of %s is not a finite number.",
                    t->setup.params.list[first - 1]->name);
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
    RWS_TRY(run_slices(&j, err));
    return j.broken ? describe_broken(&j, err) : RWS_OK;
}

rws_status rws_trainer_collect_slots(rws_trainer *t, rws_error *err)
{
    rws_comm  *c = t->ranks.comm;
    rws_status status = RWS_OK;
    if (!c) return RWS_OK;
    for (int i = 0; i < t->n_slices && status == RWS_OK; i++) {
        const rws_param_slice *s = &t->slices[i];
        for (int k = 0; k < 2 && s->owner != 0 && status == RWS_OK; k++) {
            rws_transfer moving = -1;
            if (!t->slot[k]) continue;
            if (t->ranks.rank == s->owner)
                status = rws_comm_send(c, 0, 2 * i, t->slot[k] + s->from, length_of(s) * sizeof(float), &moving, err);
            else if (t->ranks.rank == 0)
                status = rws_comm_receive(c, s->owner, 2 * i, t->slot[k] + s->from, length_of(s) * sizeof(float),
                                          &moving, err);
            if (status == RWS_OK) status = rws_comm_wait(c, &moving, 1, err);
        }
    }
    return status;
}
