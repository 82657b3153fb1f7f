/* exchange.c - messages between ranks about slices of the parameters (slices.h).
 *
 * The ranks that do not own a slice compute what their shards add to it, send that and continue with the next slice
 * while the message is under way; their own slices come last, when most messages are there.
 *
 *     rank 1   slices of rank 2, of rank 0: products -> send          own slices: products, receive, add, step, send
 *     back
 *     rank 2   slices of rank 0, of rank 1: products -> send          own slices: …
 *
 * Every message ends with a number (rws_message_status) that is not 0 if a rank could not add up or step the slice.
 *
 * Messages between machines go by MPI. Ranks of one machine see each other's outgoing messages in shared memory
 * (rws__comm_map): a message is written once, and a mark beside it says for which update. No message is written over
 * before it was read, because a rank sends for an update only after it has the values of the last one, and because
 * all ranks exchange outcomes (shards.c) between two updates.
 */
#include "train/slices.h"

#include <stdlib.h>
#include <string.h>

/* At the beginning of a rank's shared block, for each slice: where its messages are, and for which update they are. */
typedef struct {
    _Alignas(64) rws_mark sums_of, values_of; /* update */
    size_t sums, values;                      /* bytes from the beginning of the block */
} posting;

/* Messages about a slice. */
struct rws_exchange {
    posting      *posting;  /* of this rank, in shared memory: where `out` and `values` are */
    float        *out;      /* the forest of this rank's shards and of those that others brought, for the parent; NULL:
                               there is no shard, or no parent */
    float        *values;   /* new values of the slice, and one number more: an rws_message_status */
    float       **in;       /* by source: its forest; NULL for this rank and for a source without shards */
    rws_transfer *incoming; /* by source: the transfer of its forest; -1 if the source shares its memory */
    rws_transfer *leaving;  /* by source: the transfer of `values` to it */
    rws_transfer  sending;  /* the transfer of `out` to the parent */
    rws_transfer  coming;   /* the transfer of `values` from the parent */
    rws_route    *route;
};

/* ---- where messages come from and where they are */

/* Shards that source number k of a route brings. */
static void range_of_source(const rws_trainer *t, const rws_route *route, int k, int *first, int *end)
{
    const rws_ranks *r = &t->ranks;
    int              ignored;
    rws__ranks_range(r->size, route->source[k], t->n_shards, first, &ignored);
    rws__ranks_range(r->size, rws__ranks_brings(r, t->few_params, route->source[k]) - 1, t->n_shards, &ignored, end);
}

/* The length, in numbers, of a message with the sums of shards first … end - 1, and the outcome; 0 if there are no shards.
 * */
static size_t numbers_of(const rws_param_slice *s, int first, int end)
{
    return first < end ? (size_t)rws__forest_of(first, end).n * rws__param_slice_size(s) + 1 : 0;
}

/* The length, in numbers, of the message with the sums of source k; 0 if the source has no shards. */
static size_t numbers_from(const rws_trainer *t, const rws_param_slice *s, const rws_route *route, int k)
{
    int first, end;
    range_of_source(t, route, k, &first, &end);
    return numbers_of(s, first, end);
}

/* The length, in numbers, of the message with the sums of this rank and of its sources; 0 if there is no message. */
static size_t numbers_out(const rws_trainer *t, const rws_param_slice *s, const rws_route *route)
{
    int first = t->ranks.first, end = t->ranks.end, from, last;
    for (int k = 0; k < route->n; k++) {
        range_of_source(t, route, k, &from, &last);
        if (from < last && last > end) end = last;
    }
    return route->parent < 0 ? 0 : numbers_of(s, first, end);
}

/* The posting of a rank about a slice; NULL: its memory is not shared. */
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

static bool exchange_new(rws_trainer *t, rws_param_slice *s)
{
    rws_exchange *m = s->exchange = calloc(1, sizeof *m);
    if (!m || !(m->route = malloc(sizeof *m->route + (size_t)t->ranks.size * sizeof(int)))) return false;
    rws__ranks_route(&t->ranks, s->owner, t->few_params, m->route);
    m->in = calloc((size_t)m->route->n, sizeof *m->in);
    m->incoming = malloc((size_t)m->route->n * sizeof *m->incoming);
    m->leaving = malloc((size_t)m->route->n * sizeof *m->leaving);
    return m->in && m->incoming && m->leaving;
}

/* Messages that come by MPI need a place of their own; those of ranks that share memory stay where they are. */
static bool exchange_places(rws_trainer *t, int index)
{
    rws_param_slice *s = &t->slices[index];
    rws_exchange    *m = s->exchange;
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

/* Appends a message of so many numbers to a block; returns where the message begins, in bytes. */
static size_t append(size_t *bytes, size_t numbers)
{
    const size_t at = *bytes;
    *bytes += (numbers * sizeof(float) + 63) / 64 * 64;
    return at;
}

rws_status rws__slices_map(rws_trainer *t, rws_error *err)
{
    if (!t->ranks.comm) return RWS_OK;
    size_t   bytes = (size_t)t->n_slices * sizeof(posting);
    posting *plan = aligned_alloc(64, bytes + 64);
    bool     memory = plan != NULL;
    for (int i = 0; i < t->n_slices && memory; i++) {
        const rws_param_slice *s = &t->slices[i];
        memory = exchange_new(t, &t->slices[i]);
        if (!memory) break;
        plan[i] = (posting){.sums = append(&bytes, numbers_out(t, s, s->exchange->route))};
        plan[i].values = append(&bytes, rws__param_slice_size(s) + 1);
    }
    rws_status status =
        rws__trainer_agree(t, memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters"), err);
    if (status == RWS_OK) status = rws__comm_map(t->ranks.comm, bytes, &t->shared, err);
    if (status == RWS_OK) memcpy(t->shared.of[t->ranks.rank], plan, (size_t)t->n_slices * sizeof *plan);
    free(plan);
    RWS_TRY(status);
    RWS_TRY(rws__trainer_agree(t, RWS_OK, err)); /* all ranks have written their plans */
    for (int i = 0; i < t->n_slices && memory; i++) memory = exchange_places(t, i);
    return rws__trainer_agree(t, memory ? RWS_OK : rws_no_memory(err, "the slices of the parameters"), err);
}

static void exchange_free(rws_trainer *t, int index)
{
    rws_exchange *m = t->slices[index].exchange;
    if (!m) return;
    for (int k = 0; m->route && m->in && k < m->route->n; k++)
        if (t->shared.of && !posting_of(t, m->route->source[k], index)) free(m->in[k]);
    void *parts[] = {m->in, m->incoming, m->leaving, m->route, m};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) free(parts[i]);
}

void rws__exchange_free(rws_trainer *t)
{
    if (!t->ranks.comm || rws_rank_lost() >= 0) return;
    for (int i = 0; i < t->n_slices; i++) exchange_free(t, i);
    rws__comm_unshare(t->ranks.comm, &t->shared);
}

/* ---- the messages of an update */

rws_status rws__exchange_expect(rws_trainer *t, int index, rws_error *err)
{
    const rws_param_slice *slice = &t->slices[index];
    rws_exchange          *m = slice->exchange;
    m->sending = m->coming = -1;
    for (int k = 0; k < m->route->n; k++) m->incoming[k] = m->leaving[k] = -1;
    for (int k = 0; k < m->route->n; k++) {
        const int source = m->route->source[k];
        if (!m->in[k] || posting_of(t, source, index)) continue;
        RWS_TRY(rws__comm_receive(t->ranks.comm, source, 2 * index, m->in[k],
                                  numbers_from(t, slice, m->route, k) * sizeof(float), &m->incoming[k], err));
    }
    if (m->route->parent < 0 || posting_of(t, m->route->parent, index)) return RWS_OK;
    return rws__comm_receive(t->ranks.comm, m->route->parent, 2 * index + 1, m->values,
                             (rws__param_slice_size(slice) + 1) * sizeof(float), &m->coming, err);
}

/* Values continue to the ranks that the slice's sums came from. */
static rws_status pass_on(rws_trainer *t, int index, rws_error *err)
{
    const rws_param_slice *slice = &t->slices[index];
    rws_exchange          *m = slice->exchange;
    const size_t           bytes = (rws__param_slice_size(slice) + 1) * sizeof(float);
    int                    n_near = 0;
    for (int k = 0; k < m->route->n; k++)
        n_near += m->route->source[k] != t->ranks.rank && posting_of(t, m->route->source[k], index);
    if (n_near) rws__comm_post(t->ranks.comm, &m->posting->values_of, t->n_updates, bytes, n_near);
    for (int k = 0; k < m->route->n; k++) {
        if (posting_of(t, m->route->source[k], index)) continue;
        RWS_TRY(
            rws__comm_send(t->ranks.comm, m->route->source[k], 2 * index + 1, m->values, bytes, &m->leaving[k], err));
    }
    return RWS_OK;
}

/* Waits for the sums of source k. */
static rws_status wait_for_sums(rws_trainer *t, int index, int k, rws_error *err)
{
    rws_exchange  *m = t->slices[index].exchange;
    const posting *near = posting_of(t, m->route->source[k], index);
    if (near) return rws__comm_await(t->ranks.comm, &near->sums_of, t->n_updates, err);
    return rws__comm_wait(t->ranks.comm, &m->incoming[k], 1, err);
}

rws_status rws__exchange_collect(rws_trainer *t, int index, const rws_forest *own, rws_forest *all,
                                 rws_message_status *outcome, rws_error *err)
{
    rws_exchange *m = t->slices[index].exchange;
    const size_t  n = rws__param_slice_size(&t->slices[index]);
    for (int k = 0; k < m->route->n; k++) {
        rws_forest brought = *own;
        if (m->route->source[k] != t->ranks.rank) {
            int first, end;
            if (!m->in[k]) continue;
            RWS_TRY(wait_for_sums(t, index, k, err));
            range_of_source(t, m->route, k, &first, &end);
            brought = rws__forest_of(first, end);
            for (int i = 0; i < brought.n; i++) brought.list[i].sum = m->in[k] + (size_t)i * n;
            if (m->in[k][(size_t)brought.n * n] != RWS_MESSAGE_OK) *outcome = RWS_MESSAGE_NO_MEMORY;
        }
        for (int i = 0; i < brought.n; i++) rws__forest_add(all, brought.list[i], n);
    }
    return RWS_OK;
}

rws_status rws__exchange_send_sums(rws_trainer *t, int index, const rws_forest *all, rws_message_status outcome,
                                   rws_error *err)
{
    rws_exchange *m = t->slices[index].exchange;
    const size_t  n = rws__param_slice_size(&t->slices[index]), bytes = ((size_t)all->n * n + 1) * sizeof(float);
    if (!m->out) return RWS_OK; /* there are more ranks than shards */
    for (int i = 0; i < all->n; i++) {
        if (all->list[i].sum) memcpy(m->out + (size_t)i * n, all->list[i].sum, n * sizeof(float));
        else memset(m->out + (size_t)i * n, 0, n * sizeof(float));
    }
    m->out[(size_t)all->n * n] = (float)outcome;
    if (!posting_of(t, m->route->parent, index))
        return rws__comm_send(t->ranks.comm, m->route->parent, 2 * index, m->out, bytes, &m->sending, err);
    rws__comm_post(t->ranks.comm, &m->posting->sums_of, t->n_updates, bytes, 1);
    return RWS_OK;
}

rws_status rws__exchange_give(rws_trainer *t, int index, const float *values, rws_message_status outcome,
                              rws_error *err)
{
    rws_exchange *m = t->slices[index].exchange;
    const size_t  n = rws__param_slice_size(&t->slices[index]);
    memcpy(m->values, values, n * sizeof(float));
    m->values[n] = (float)outcome;
    return pass_on(t, index, err);
}

rws_status rws__exchange_take(rws_trainer *t, int index, float *values, rws_message_status *outcome, rws_error *err)
{
    rws_exchange  *m = t->slices[index].exchange;
    const int      parent = m->route->parent;
    const size_t   n = rws__param_slice_size(&t->slices[index]);
    const posting *near = posting_of(t, parent, index);
    const float   *brought = near ? values_of(t, parent, index) : m->values;
    if (near) RWS_TRY(rws__comm_await(t->ranks.comm, &near->values_of, t->n_updates, err));
    else RWS_TRY(rws__comm_wait(t->ranks.comm, &m->coming, 1, err));
    if (near && m->route->n > 1) memcpy(m->values, brought, (n + 1) * sizeof(float));
    RWS_TRY(pass_on(t, index, err));
    *outcome = (rws_message_status)brought[n];
    if (*outcome == RWS_MESSAGE_OK) memcpy(values, brought, n * sizeof(float));
    return RWS_OK;
}

rws_status rws__exchange_wait(rws_trainer *t, int index, rws_error *err)
{
    rws_exchange *m = t->slices[index].exchange;
    RWS_TRY(rws__comm_wait(t->ranks.comm, &m->sending, 1, err));
    return rws__comm_wait(t->ranks.comm, m->leaving, m->route->n, err);
}

/* ---- the state of the optimiser */

/* Brings numbers of slice `index` from its owner to rank 0; they have the same place on both. */
static rws_status bring(rws_trainer *t, int index, float *numbers, rws_error *err)
{
    rws_comm              *c = t->ranks.comm;
    const rws_param_slice *s = &t->slices[index];
    const size_t           bytes = rws__param_slice_size(s) * sizeof(float);
    rws_transfer           moving = -1;
    if (t->ranks.rank == s->owner) RWS_TRY(rws__comm_send(c, 0, 2 * index, numbers, bytes, &moving, err));
    else if (t->ranks.rank == 0) RWS_TRY(rws__comm_receive(c, s->owner, 2 * index, numbers, bytes, &moving, err));
    return rws__comm_wait(c, &moving, 1, err);
}

rws_status rws__trainer_collect_slots(rws_trainer *t, rws_error *err)
{
    for (int i = 0; i < t->n_slices && t->ranks.comm; i++)
        for (int k = 0; k < 2 && t->slices[i].owner != 0; k++)
            if (t->slot[k]) RWS_TRY(bring(t, i, t->slot[k] + t->slices[i].from, err));
    return RWS_OK;
}
