/* cut.c - weighing where the particles of a datum are in several shards.
 *
 *     shard 0   rows of datum 0, of datum 1, …  -.                    .-> coefficients of shard 0's rows
 *     shard 1   rows of datum 0, of datum 1, …  -+-> joined -> weigh -+-> coefficients of shard 1's rows
 *
 * An estimator sees all particles of a datum, so that every estimator works as it is: the normaliser of the weights,
 * the leave-one-out sums and the rest come from the joined table. A row is a few dozen bytes and stands for a particle
 * that took microseconds, so that handing rows over costs little. Rows of a datum are in the order of the shards. Every
 * rank that has one of the shards joins and weighs the table for itself; only the rank of the first shard tallies.
 */
#include "train/phase.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS (3 + RWS_OUTPUTS) /* log_p, log_q, log_d, outputs */

/* The rows of a shard are this header, start[B + 1], count[n], and n doubles for each column in the mask. Each of these
 * begins at a multiple of 8 bytes. */
typedef struct {
    int      B, n;
    unsigned columns; /* bit c: column c is there */
    int      unused;
} header;

struct rws_joined {
    rws_scores scores;
    double    *numbers; /* the block that the arrays of `scores` lie in */
    size_t     capacity;
    char     **rows;   /* by shard of the part: where its rows are */
    char     **copies; /* by shard of the part: its rows, if another rank has the shard; else NULL */
    size_t    *bytes;  /* capacity of each copy, on the ranks that need one; the same number on all ranks */
};

static size_t whole(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t start_bytes(const header *h)
{
    return whole((size_t)(h->B + 1) * sizeof(uint32_t));
}

static size_t count_bytes(const header *h)
{
    return whole((size_t)h->n * sizeof(uint32_t));
}

static const uint32_t *start_of(const char *rows)
{
    return (const uint32_t *)(const void *)(rows + sizeof(header));
}

static const uint32_t *count_of(const char *rows)
{
    return (const uint32_t *)(const void *)(rows + sizeof(header) + start_bytes((const header *)(const void *)rows));
}

/* Column c; NULL if the rows do not have it. */
static const double *column_of(const char *rows, int c)
{
    const header *h = (const header *)(const void *)rows;
    if (!(h->columns >> c & 1)) return NULL;
    const int before = __builtin_popcount(h->columns & ((1u << c) - 1));
    return (const double *)(const void *)(rows + sizeof *h + start_bytes(h) + count_bytes(h)) +
           (size_t)before * (size_t)h->n;
}

static int parts_of(const rws_trainer *t)
{
    return t->program.config.particle_shards;
}

rws_status rws__cut_new(rws_trainer *t, rws_error *err)
{
    if (parts_of(t) == 1) return RWS_OK;
    t->joined = calloc((size_t)t->program.config.shards, sizeof *t->joined);
    for (int i = 0; i < t->program.config.shards && t->joined; i++) {
        rws_joined *j = &t->joined[i];
        j->rows = calloc((size_t)parts_of(t), sizeof(char *));
        j->copies = calloc((size_t)parts_of(t), sizeof(char *));
        j->bytes = calloc((size_t)parts_of(t), sizeof(size_t));
        if (!j->rows || !j->copies || !j->bytes) return rws_no_memory(err, "the shards");
    }
    if (t->ranks.comm) t->moves = malloc((size_t)t->n_shards * (size_t)(t->ranks.size + 1) * sizeof *t->moves);
    return t->joined && (t->moves || !t->ranks.comm) ? RWS_OK : rws_no_memory(err, "the shards");
}

void rws__cut_free(rws_trainer *t)
{
    for (int i = 0; i < t->program.config.shards && t->joined; i++) {
        rws_joined *j = &t->joined[i];
        for (int k = 0; k < parts_of(t) && j->copies && rws_rank_lost() < 0; k++)
            free(j->copies[k]); /* if a rank is lost, MPI may still write to it */
        free(j->rows);
        free(j->copies);
        free(j->bytes);
        free(j->numbers);
    }
    free(t->joined);
    free(t->moves);
}

/* ---- writing */

static const double *column_in(const rws_scores *s, int c, bool second)
{
    if (c < 3) return second ? NULL : (const double *[]){s->log_p, s->log_q, s->log_d}[c];
    return s->out[c - 3];
}

rws_status rws__cut_write(const rws_phase_work *w, int shard, rws_engine *engine)
{
    const rws_scores *s = rws__engine_scores(engine);
    rws_shard        *to = &w->t->shards[shard];
    header            h = {.B = s->B, .n = s->n};
    for (int c = 0; c < COLUMNS; c++) h.columns |= (unsigned)(column_in(s, c, w->second) != NULL) << c;
    const size_t column = (size_t)s->n * sizeof(double);
    to->n_rows_bytes = sizeof h + start_bytes(&h) + count_bytes(&h) + (size_t)__builtin_popcount(h.columns) * column;
    if (to->n_rows_bytes > to->rows_capacity) {
        free(to->rows);
        to->rows_capacity = 2 * to->n_rows_bytes;
        to->rows = malloc(to->rows_capacity);
        if (!to->rows) to->rows_capacity = 0;
        if (!to->rows) return rws_no_memory(&to->error, "the rows of a shard");
    }
    char *at = to->rows;
    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, s->start, (size_t)(s->B + 1) * sizeof(uint32_t));
    memcpy(at + sizeof h + start_bytes(&h), s->count, (size_t)s->n * sizeof(uint32_t));
    at += sizeof h + start_bytes(&h) + count_bytes(&h);
    for (int c = 0; c < COLUMNS; c++) {
        const double *from = column_in(s, c, w->second);
        if (!from) continue;
        memcpy(at, from, column);
        at += column;
    }
    return RWS_OK;
}

/* ---- bringing rows to this rank */

/* The ranks that have shards of part i of the data. */
static void ranks_of(const rws_trainer *t, int i, int *first, int *last)
{
    *first = rws__ranks_holder(t->ranks.size, t->n_shards, i * parts_of(t));
    *last = rws__ranks_holder(t->ranks.size, t->n_shards, (i + 1) * parts_of(t) - 1);
}

static bool is_mine(const rws_trainer *t, int i)
{
    int first, last;
    ranks_of(t, i, &first, &last);
    return first <= t->ranks.rank && t->ranks.rank <= last;
}

static bool is_own(const rws_trainer *t, int shard)
{
    return t->ranks.first <= shard && shard < t->ranks.end;
}

/* Enlarges the memory for the rows of a shard if it is too small. False without memory. */
static bool make_copy(rws_trainer *t, int i, int part)
{
    rws_joined *j = &t->joined[i];
    const int   shard = i * parts_of(t) + part;
    free(j->copies[part]);
    j->copies[part] = NULL;
    j->bytes[part] = 2 * t->shards[shard].n_rows_bytes;
    if (is_own(t, shard) || !is_mine(t, i)) return true;
    return (j->copies[part] = malloc(j->bytes[part])) != NULL;
}

/* Enlarges the memory for the rows of other ranks. Every rank knows how many rows each shard has, and therefore whether any rank needs
 * memory: only then they have to agree. */
static rws_status make_copies(rws_trainer *t, rws_error *err)
{
    const int P = parts_of(t);
    bool      grows = false, memory = true;
    for (int k = 0; k < t->n_shards && t->ranks.comm; k++)
        RWS_TRY(rws__comm_check_size(t->shards[k].n_rows_bytes, err));
    for (int k = 0; k < t->n_shards && t->ranks.comm; k++) {
        if (t->joined[k / P].bytes[k % P] >= t->shards[k].n_rows_bytes) continue;
        grows = true;
        memory &= make_copy(t, k / P, k % P);
    }
    if (!grows) return RWS_OK;
    const rws_status status =
        rws__trainer_agree(t, memory ? RWS_OK : rws_no_memory(err, "the rows of other ranks"), err);
    for (int k = 0; k < t->n_shards && status != RWS_OK; k++) t->joined[k / P].bytes[k % P] = 0;
    return status;
}

/* Starts the messages of one shard of part i. */
static rws_status move_rows(rws_trainer *t, int i, int part, int *n, rws_error *err)
{
    rws_joined *j = &t->joined[i];
    const int   shard = i * parts_of(t) + part, tag = 2 * t->n_slices + shard;
    rws_shard  *s = &t->shards[shard];
    int         first, last;
    j->rows[part] = is_own(t, shard) ? s->rows : j->copies[part];
    if (!s->n_rows_bytes) return RWS_OK;
    if (!is_own(t, shard))
        return rws__comm_receive(t->ranks.comm, rws__ranks_holder(t->ranks.size, t->n_shards, shard), tag,
                                 j->rows[part], s->n_rows_bytes, &t->moves[(*n)++], err);
    ranks_of(t, i, &first, &last);
    for (int rank = first; rank <= last; rank++)
        if (rank != t->ranks.rank)
            RWS_TRY(rws__comm_send(t->ranks.comm, rank, tag, s->rows, s->n_rows_bytes, &t->moves[(*n)++], err));
    return RWS_OK;
}

static rws_status bring_rows(rws_trainer *t, rws_error *err)
{
    int n = 0;
    RWS_TRY(make_copies(t, err));
    for (int i = 0; i < t->program.config.shards; i++)
        for (int part = 0; part < parts_of(t) && is_mine(t, i); part++) RWS_TRY(move_rows(t, i, part, &n, err));
    return n ? rws__comm_wait(t->ranks.comm, t->moves, n, err) : RWS_OK;
}

/* ---- joining and weighing */

static const header *header_of(const char *rows)
{
    return (const header *)(const void *)rows;
}

/* Hands out `bytes` of the block, and moves on. */
static void *take(char **at, size_t bytes)
{
    void *here = *at;
    *at += whole(bytes);
    return here;
}

/* Makes the arrays large enough for n rows of B data. False without memory. The second weighing has as many rows as the
 * first one and reads what the first one left, so that the block is large enough and stays where it is. */
static bool make_room(rws_joined *j, size_t B, size_t n, bool second)
{
    const size_t rows = 8 + COLUMNS + RWS_OUTPUTS; /* of doubles */
    const size_t bytes = 2 * whole((B + 2 * n + 2) * sizeof(uint32_t)) + B * sizeof(double) +
                         rows * whole((n + RWS_ROWS_BEHIND) * sizeof(double));
    if (bytes <= j->capacity) return true;
    RWS_CHECK(!second);
    free(j->numbers);
    j->numbers = malloc(2 * bytes);
    j->capacity = j->numbers ? 2 * bytes : 0;
    return j->numbers != NULL;
}

/* Lays the table out in its block, in the same places for both weighings. `columns` is the mask of the columns that
 * exist. */
static void lay_out(rws_joined *j, unsigned columns, bool second, uint32_t **start, uint32_t **count, double **column)
{
    rws_scores  *s = &j->scores;
    const size_t B = (size_t)s->B, n = (size_t)s->n, row = (n + RWS_ROWS_BEHIND) * sizeof(double);
    char        *at = (char *)j->numbers;
    *start = take(&at, (B + 1) * sizeof(uint32_t));
    *count = take(&at, 2 * n * sizeof(uint32_t));
    s->start = *start;
    s->count = *count;
    s->datum = *count + n;
    s->L = take(&at, B * sizeof(double));
    double **work[] = {&s->l, &s->w, &s->work[0], &s->work[1], &s->work[2], &s->coef_p, &s->coef_q, &s->coef_r};
    for (size_t k = 0; k < sizeof work / sizeof *work; k++) *work[k] = take(&at, row);
    for (int c = 0; c < COLUMNS; c++) column[c] = take(&at, row);
    for (int c = 0; c < RWS_OUTPUTS; c++) {
        double *coef = take(&at, row);
        s->out[c] = columns >> (c + 3) & 1 ? column[c + 3] : NULL;
        s->coef_out[c] = s->out[c] ? memset(coef, 0, row) : NULL;
    }
    if (second) return;
    s->log_p = column[0];
    s->log_q = column[1];
    s->log_d = column[2];
    memset(s->coef_p, 0, row);
    memset(s->coef_q, 0, row);
    memset(s->coef_r, 0, row);
}

/* Copies the rows of datum d of one shard. Returns how many there are. */
static uint32_t copy_rows(const char *rows, int d, uint32_t *count, double *const *column, uint32_t to)
{
    const uint32_t *from = start_of(rows);
    const size_t    n = from[d + 1] - from[d];
    memcpy(count + to, count_of(rows) + from[d], n * sizeof *count);
    for (int c = 0; c < COLUMNS; c++) {
        const double *values = column_of(rows, c);
        if (values) memcpy(column[c] + to, values + from[d], n * sizeof(double));
    }
    return (uint32_t)n;
}

/* Makes the joined table of part i: the rows of datum d of every shard, one shard after the other. False without
 * memory. */
static bool join(rws_trainer *t, int i, bool second)
{
    rws_joined *j = &t->joined[i];
    const int   P = parts_of(t), B = header_of(j->rows[0])->B;
    uint32_t   *start, *count, to = 0;
    double     *column[COLUMNS];
    size_t      n = 0;
    unsigned    columns = 0;
    for (int k = 0; k < P; k++) {
        n += (size_t)header_of(j->rows[k])->n;
        columns |= header_of(j->rows[k])->columns;
    }
    if (!make_room(j, (size_t)B, n, second)) return false;
    if (!second) j->scores = (rws_scores){.B = B, .K = t->program.config.particles, .n = (int)n};
    lay_out(j, columns, second, &start, &count, column);
    for (int d = 0; d < B; d++) {
        start[d] = to;
        for (int k = 0; k < P; k++) to += copy_rows(j->rows[k], d, count, column, to);
        for (uint32_t row = start[d]; row < to; row++) count[n + row] = (uint32_t)d;
    }
    start[B] = to;
    return true;
}

/* There is no memory for the table of part i. The shards of this rank fail with it, by which all ranks know after
 * backward. */
static void fail_part(rws_trainer *t, int i)
{
    for (int shard = i * parts_of(t); shard < (i + 1) * parts_of(t); shard++)
        if (is_own(t, shard))
            t->shards[shard].status = rws_no_memory(&t->shards[shard].error, "the rows of all particles of a datum");
}

static void weigh_part(void *context, int i, int worker)
{
    (void)worker;
    const rws_phase_work *w = context;
    rws_trainer          *t = w->t;
    rws_tally             unused = {0};
    const int             first = i * parts_of(t);
    const bool            tallies = is_own(t, first);
    if (!is_mine(t, i) || t->shards[first].n_rows_bytes == 0) return;
    if (!join(t, i, w->second)) {
        fail_part(t, i);
        return;
    }
    rws__phase_weigh(w, tallies ? &t->shards[first] : NULL, &t->joined[i].scores,
                     tallies ? &t->shards[first].tally : &unused);
}

rws_status rws__cut_weigh(const rws_phase_work *w, rws_error *err)
{
    RWS_TRY(bring_rows(w->t, err));
    rws__pool_run(w->t->pool, w->t->program.config.shards, weigh_part, (void *)w);
    return RWS_OK;
}

/* ---- reading */

void rws__cut_read(const rws_phase_work *w, int shard, rws_engine *engine)
{
    rws_trainer      *t = w->t;
    const int         i = shard / parts_of(t), part = shard % parts_of(t);
    const rws_joined *j = &t->joined[i];
    const rws_scores *from = &j->scores;
    rws_scores       *to = rws__engine_scores(engine);
    for (int d = 0; d < to->B; d++) {
        uint32_t at = from->start[d];
        for (int k = 0; k < part; k++) at += start_of(j->rows[k])[d + 1] - start_of(j->rows[k])[d];
        const size_t bytes = (to->start[d + 1] - to->start[d]) * sizeof(double);
        memcpy(to->coef_p + to->start[d], from->coef_p + at, bytes);
        memcpy(to->coef_q + to->start[d], from->coef_q + at, bytes);
        memcpy(to->coef_r + to->start[d], from->coef_r + at, bytes);
        for (int c = 0; c < RWS_OUTPUTS; c++)
            if (to->coef_out[c] && from->coef_out[c])
                memcpy(to->coef_out[c] + to->start[d], from->coef_out[c] + at, bytes);
    }
}
