/* demand.c - rows on demand: a row of a node is computed only if a path that waits can reach it, and only once.
 *
 * What is asked for are nodes, each by a level: that of a path that waits, or of a log-density. One scan over the nodes
 * downwards, in which a node passes on to its inputs which of its rows will be computed, unites all demands on a node
 * before it is reached, because inputs have smaller numbers:
 *
 *     level a  rows 2 5     asks for y    y    at the level of the data: rows 2 5 7, computed for a narrowed level N
 *     level b  rows 5 7     asks for y    h    an input of y at the same level, asked for by N: the same rows
 *                                         x    a leaf node: nothing to compute, y and h read it through a map
 *
 * A level covers an ancestor if every row of the ancestor has rows there. Draws refine rows, and only splits drop some,
 * so without splits all levels cover all of their ancestors, and a demand is seen to be for all rows at a glance.
 *
 * A narrowed level notes which levels read it, because backward works on the live rows only: a row of a narrowed level
 * is live if a live row of a reader stands on it. A reader's rows are all among those of the narrowed level; where they
 * are not, the parent takes the reader's place, which makes too many rows live, but keeps the notes free of circles. */
#include "engine/internal.h"

#include <stdlib.h>
#include <string.h>

/* A demand for some rows is worth a narrowed level if it saves one row in SHARE, and at least LEAST rows. Else all rows
 * are computed: the others are often asked for later, and maps and a further call cost as much as a few rows. */
#define SHARE 8
#define LEAST 4

#define MAX_PARTS 8 /* of a node; the last computes all rows that are left */

/* ---- sets of rows as bits */

static uint32_t n_words(uint32_t n_rows)
{
    return (n_rows + 63) / 64;
}

static uint32_t count(const uint64_t *bits, uint32_t n_rows)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < n_words(n_rows); w++) n += (uint32_t)__builtin_popcountll(bits[w]);
    return n;
}

/* Adds the rows of level `to` that the rows of a level below stand on. */
static void add_image(rws_engine *e, uint32_t from, uint32_t to, uint64_t *bits)
{
    const uint32_t *map = rws__level_map(e, from, to), n = e->levels[from].n_rows;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = map ? map[i] : i;
        bits[row / 64] |= (uint64_t)1 << row % 64;
    }
}

static uint64_t *bits_of(rws_engine *e, uint32_t at)
{
    return RWS_NEW0(&e->arena, uint64_t, n_words(e->levels[at].n_rows));
}

/* ---- narrowed levels */

/* The level of the tree that a projection is beside; of another level, itself. */
static uint32_t home(const rws_engine *e, uint32_t at)
{
    return e->levels[at].projected ? e->levels[at].parent : at;
}

static bool covers(const rws_engine *e, uint32_t from, uint32_t ancestor)
{
    return ancestor == ROOT || e->levels[from].cover <= home(e, ancestor); /* ancestors have smaller numbers */
}

/* Whether to compute only n of all rows. Derivatives need what forward saved, which exists only for rows that were
 * computed, so derivatives are computed for no other rows. */
static bool worthwhile(const rws_engine *e, uint32_t n, uint32_t all)
{
    if (e->tangent) return n < all;
    return all - n >= LEAST && all - n >= all / SHARE;
}

static void add_reader(rws_engine *e, uint32_t narrowed, uint32_t from)
{
    level       *l = &e->levels[narrowed];
    const level *r = &e->levels[from];
    if (from == narrowed || (l->readers && l->readers->level == from)) return;
    if (r->place && r->parent == l->parent && r->n_rows == l->n_rows)
        from = l->parent; /* equal rows: see the head of this file */
    reader *next = RWS_NEW(&e->arena, reader, 1);
    *next = (reader){from, l->readers};
    l->readers = next;
}

static void add_readers(rws_engine *e, uint32_t narrowed, const reader *r)
{
    for (; r; r = r->next) add_reader(e, narrowed, r->level);
}

static uint32_t narrowed_new(rws_engine *e, uint32_t parent, const uint64_t *bits, uint32_t n)
{
    const uint32_t all = e->levels[parent].n_rows, to = rws__level_new(e, parent, n);
    uint32_t      *up = RWS_NEW(&e->arena, uint32_t, n), *place = RWS_NEW(&e->arena, uint32_t, all), at = 0;
    for (uint32_t row = 0; row < all; row++) {
        const bool in = bits[row / 64] >> row % 64 & 1;
        place[row] = in ? at : NONE;
        if (in) up[at++] = row;
    }
    level *l = &e->levels[to];
    l->up = up;
    l->place = place;
    l->cover = to;
    return to;
}

static uint64_t hash_rows(uint32_t parent, const uint64_t *bits, uint32_t n_rows)
{
    uint64_t h = parent;
    for (uint32_t w = 0; w < n_words(n_rows); w++) h = hash_word(h, bits[w]);
    return h;
}

static bool has_rows(const level *l, uint32_t parent, const uint64_t *bits, uint32_t n)
{
    uint32_t i = 0;
    if (l->parent != parent || l->n_rows != n) return false;
    while (i < n && bits[l->up[i] / 64] >> l->up[i] % 64 & 1) i++;
    return i == n;
}

/* A narrowed level with these rows: one that was made for several readers before, or a new one. */
static uint32_t narrowed_find(rws_engine *e, uint32_t parent, const uint64_t *bits, uint32_t n)
{
    const uint64_t h = hash_rows(parent, bits, e->levels[parent].n_rows);
    uint32_t       place = 0;
    for (uint32_t at; (at = rws__numbers_next(&e->narrowed, h, &place));)
        if (has_rows(&e->levels[at], parent, bits, n)) return at;
    return rws__numbers_add(e, &e->narrowed, h, narrowed_new(e, parent, bits, n));
}

/* The level that nodes at level `at` are computed for if the rows of one level read them, and do not cover it. */
static uint32_t new_image(rws_engine *e, uint32_t from, uint32_t at)
{
    const uint32_t all = e->levels[at].n_rows;
    uint64_t      *bits = bits_of(e, at);
    add_image(e, from, at, bits);
    const uint32_t n = count(bits, all);
    if (!worthwhile(e, n, all)) return at;
    const uint32_t to = narrowed_new(e, at, bits, n);
    add_reader(e, to, from);
    if (n == e->levels[from].n_rows && !e->levels[at].projected) /* in the same order, so row i stands on row i */
        rws__level_note_map(e, from, to, NULL);
    return to;
}

static uint32_t rows_for_one(rws_engine *e, uint32_t from, uint32_t at)
{
    if (covers(e, from, at)) return at;
    from = e->levels[from].cover;
    const level *l = &e->levels[from];
    if (l->place && l->parent == at) return from;
    for (int i = 0; i < N_IMAGES; i++)
        if (l->images[i].at == at && (l->images[i].rows != at || !e->tangent)) return l->images[i].rows;
    const uint32_t rows = new_image(e, from, at);
    level         *f = &e->levels[from];
    f->images[f->next_image++ % N_IMAGES] = (known_image){at, rows};
    return rows;
}

/* The same if several levels read the nodes. */
static uint32_t rows_for_many(rws_engine *e, const mixture *m, uint32_t at)
{
    const uint32_t all = e->levels[at].n_rows, n = count(m->rows, all);
    if (!worthwhile(e, n, all)) return at;
    const uint32_t to = narrowed_find(e, at, m->rows, n);
    add_readers(e, to, m->readers);
    return to;
}

/* ---- demands */

static void mix(rws_engine *e, mixture *m, uint32_t from, uint32_t at)
{
    const uint32_t cover = e->levels[from].cover;
    reader        *r = RWS_NEW(&e->arena, reader, 1);
    *r = (reader){cover > home(e, at) ? cover : at, m->readers};
    m->readers = r;
    add_image(e, r->level, at, m->rows);
}

static void join_demand(rws_engine *e, node *n, uint32_t from)
{
    if (covers(e, from, n->all)) {
        n->reader = n->all;
        return;
    }
    if (!(n->reader & MIXED)) {
        const uint32_t first = n->reader;
        *RWS_PUSH(e, e->mixtures, e->n_mixtures, e->mixture_capacity) = (mixture){bits_of(e, n->all), NULL};
        n->reader = MIXED | (e->n_mixtures - 1);
        mix(e, &e->mixtures[e->n_mixtures - 1], first, n->all);
    }
    mix(e, &e->mixtures[n->reader & ~MIXED], from, n->all);
}

static void grow_requested(rws_engine *e, uint32_t word)
{
    while (e->requested_capacity <= word) {
        const uint32_t before = e->requested_capacity;
        e->asked = rws__grow(e, e->asked, &e->requested_capacity, sizeof *e->asked);
        memset(e->asked + before, 0, (e->requested_capacity - before) * sizeof *e->asked);
    }
}

static void demand(rws_engine *e, uint32_t id, uint32_t from)
{
    node *n = &e->nodes[id];
    if (n->state == DONE && (n->rows == n->all || !n->op)) return;
    if (n->reader == from) return;
    if (n->reader != NONE) {
        if (n->reader & MIXED || !covers(e, n->reader, n->all)) join_demand(e, n, from);
        return;
    }
    if (n->needs && n->state == WAITING) n->all = rws__dependence_rows(e, n->needs);
    const uint32_t word = id / 64;
    n->reader = from;
    if (word >= e->requested_capacity) grow_requested(e, word);
    e->asked[word] |= (uint64_t)1 << id % 64;
    if (word < e->requested_low) e->requested_low = word;
    if (word >= e->requested_end) e->requested_end = word + 1;
}

void rws__request_rows(rws_engine *e, uint32_t id, uint32_t from)
{
    if (e->counts) *RWS_PUSH(e, e->asks, e->n_row_requests, e->row_request_capacity) = (ask){id, from};
    demand(e, id, from);
}

/* Removes the rows that a node has already from a set of rows. Returns how many rows of its level the node does not
 * have. */
static uint32_t take_away(const rws_engine *e, uint32_t id, uint64_t *bits)
{
    uint32_t n_left = e->levels[e->nodes[id].all].n_rows;
    for (uint32_t p = id; p; p = e->nodes[p].more) {
        const level *l = &e->levels[e->nodes[p].rows];
        for (uint32_t i = 0; i < l->n_rows; i++) bits[l->up[i] / 64] &= ~((uint64_t)1 << l->up[i] % 64);
        n_left -= l->n_rows;
    }
    return n_left;
}

static uint32_t n_parts(const rws_engine *e, uint32_t id)
{
    uint32_t n = 0;
    for (; id; id = e->nodes[id].more) n++;
    return n;
}

/* A new part of node id, which has some rows already, for the other rows that are asked for. NONE: no row is missing. */
static uint32_t missing(rws_engine *e, uint32_t id, uint32_t reader)
{
    const uint32_t at = e->nodes[id].all, all = e->levels[at].n_rows;
    mixture        m = {NULL, NULL};
    if (reader & MIXED) m = e->mixtures[reader & ~MIXED];
    else {
        m.rows = bits_of(e, at);
        mix(e, &m, reader, at);
    }
    const uint32_t n_requested = count(m.rows, all), n_left = take_away(e, id, m.rows), n = count(m.rows, all);
    if (n == 0 && !e->nodes[id].more) add_readers(e, e->nodes[id].rows, m.readers);
    else if (n < n_requested) /* the readers read several parts */
        for (uint32_t p = id; p; p = e->nodes[p].more) add_reader(e, e->nodes[p].rows, at);
    if (n == 0) return NONE;

    const bool rest = !e->tangent && (!worthwhile(e, n, n_left) || n_parts(e, id) + 1 == MAX_PARTS);
    if (rest) {
        for (uint32_t row = 0; row < all; row++) m.rows[row / 64] |= (uint64_t)1 << row % 64;
        take_away(e, id, m.rows);
    }
    const uint32_t rows = narrowed_find(e, at, m.rows, rest ? n_left : n), part = rws__node_more(e, id);
    e->nodes[part].rows = rows;
    if (n < n_requested) add_reader(e, rows, at);
    else add_readers(e, rows, m.readers);
    return part;
}

/* The rows of level `at` that are to be computed if these rows are read: the level, or a narrowed level beside it. */
static uint32_t rows_for_bits(rws_engine *e, uint32_t at, const uint64_t *bits)
{
    const uint32_t n = count(bits, e->levels[at].n_rows);
    if (!worthwhile(e, n, e->levels[at].n_rows)) return at;
    const uint32_t to = narrowed_find(e, at, bits, n);
    add_reader(e, to, at);
    return to;
}

/* Asks for the rows that a node is made of. */
static void visit_join(rws_engine *e, uint32_t id)
{
    const node      n = e->nodes[id]; /* copies: narrowed levels may move these */
    const join      of = e->joins[n.in[0]];
    const uint32_t *up = n.rows == n.all ? NULL : e->levels[n.rows].up, rows = e->levels[n.rows].n_rows;
    uint64_t      **bits = RWS_NEW0(&e->arena, uint64_t *, of.n);
    for (uint32_t i = 0; i < rows; i++) {
        const uint32_t at = up ? up[i] : i, s = of.which[at], row = of.row[at];
        if (!bits[s]) bits[s] = bits_of(e, of.at[s]);
        bits[s][row / 64] |= (uint64_t)1 << row % 64;
    }
    for (uint32_t s = 0; s < of.n; s++)
        if (bits[s]) demand(e, of.source[s], rows_for_bits(e, of.at[s], bits[s]));
}

/* Lists a node that was asked for, unless it has the rows, and asks for its inputs. */
static void visit(rws_engine *e, uint32_t id)
{
    const uint32_t reader = e->nodes[id].reader, at = e->nodes[id].all;
    uint32_t       part = id;
    e->nodes[id].reader = NONE;
    if (e->nodes[id].state == DONE) {
        part = missing(e, id, reader);
        if (part == NONE) return;
    } else {
        const uint32_t rows =
            reader & MIXED ? rows_for_many(e, &e->mixtures[reader & ~MIXED], at) : rows_for_one(e, reader, at);
        e->nodes[id].rows = rows;
    }
    e->nodes[id].state = e->nodes[part].state = NEEDED;
    *RWS_PUSH(e, e->pending, e->n_pending, e->pending_capacity) = part;
    if (e->nodes[part].op == &rws__op_join) {
        visit_join(e, part);
        return;
    }
    const node *n = &e->nodes[part];
    const bool  some = e->levels[at].projected && n->rows != at;
    for (int s = 0; s < n->n_in; s++) {
        const node *m = &e->nodes[n->in[s]];
        if (n->in[s]) demand(e, n->in[s], n->rows);
        if (some && m->needs && m->all == m->level)
            demand(e, n->in[s], m->level); /* not only the rows that `up` leads to */
    }
}

static void forget(rws_engine *e)
{
    e->requested_low = NONE;
    e->requested_end = e->n_mixtures = 0;
}

void rws__demand_begin(rws_engine *e)
{
    for (uint32_t w = e->requested_low; w < e->requested_end; w++) e->asked[w] = 0;
    forget(e);
}

void rws__demand(rws_engine *e)
{
    e->n_pending = 0;
    for (uint32_t w = e->requested_end; w-- > e->requested_low;)
        while (e->asked[w]) {
            const uint32_t bit = 63 - (uint32_t)__builtin_clzll(e->asked[w]);
            e->asked[w] ^= (uint64_t)1 << bit;
            visit(e, 64 * w + bit);
        }
    forget(e);
    for (uint32_t i = 0, j = e->n_pending; i + 1 < j; i++) {
        const uint32_t swap = e->pending[--j];
        e->pending[j] = e->pending[i];
        e->pending[i] = swap;
    }
}

/* ---- reading what was computed */

uint32_t rws__node_row(const rws_engine *e, uint32_t *id, uint32_t row)
{
    for (; *id; *id = e->nodes[*id].more) {
        const node  *n = &e->nodes[*id];
        const level *l = &e->levels[n->rows];
        if (n->rows == n->all) return row;
        if (l->place[row] != NONE && n->value) return l->place[row];
    }
    return NONE;
}

bool rws__node_has(rws_engine *e, uint32_t id, uint32_t from)
{
    const node *n = &e->nodes[id];
    if (n->state != DONE || n->rows == n->all) return n->state == DONE;
    const uint32_t *map = rws__level_map(e, from, n->all);
    for (uint32_t i = 0; i < e->levels[from].n_rows; i++) {
        uint32_t part = id;
        if (rws__node_row(e, &part, map ? map[i] : i) == NONE) return false;
    }
    return true;
}

uint32_t rws__node_find(rws_engine *e, uint32_t id, uint32_t from)
{
    const uint32_t *map = rws__level_map(e, from, e->nodes[id].all);
    uint32_t        part = id;
    rws__node_row(e, &part, map ? map[0] : 0);
    const uint32_t *place = e->levels[e->nodes[part].rows].place;
    for (uint32_t i = 1; i < e->levels[from].n_rows; i++)
        if (place[map ? map[i] : i] == NONE) return NONE;
    return part;
}

reading rws__node_gather(rws_engine *e, uint32_t id, uint32_t from)
{
    const node     *first = &e->nodes[id];
    const uint32_t *map = rws__level_map(e, from, first->all), n = e->levels[from].n_rows;
    const bool      known = node_exp(first);
    const size_t    dim = (size_t)first->dim;
    float          *value = RWS_NEW(&e->arena, float, n *dim), *exp = known ? RWS_NEW(&e->arena, float, n *dim) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t     at = id;
        const size_t row = rws__node_row(e, &at, map ? map[i] : i);
        memcpy(value + i * dim, e->nodes[at].value + row * dim, dim * sizeof(float));
        if (known) memcpy(exp + i * dim, e->nodes[at].saved + row * dim, dim * sizeof(float));
    }
    return (reading){value, exp, NULL, n};
}

/* ---- counting, for rws bench and tests: which rows would have been enough */

static uint64_t *needed_rows(rws_engine *e, uint64_t **needed, uint32_t id)
{
    if (!needed[id]) needed[id] = bits_of(e, e->nodes[id].all);
    return needed[id];
}

/* Adds the rows that node n, of which `rows` are needed, needs of an input at level `in`. */
static void add_needed(rws_engine *e, const node *n, const uint64_t *rows, uint32_t in, uint64_t *bits)
{
    const uint32_t *map = rws__level_map(e, n->all, in);
    for (uint32_t i = 0; i < e->levels[n->all].n_rows; i++) {
        const uint32_t row = map ? map[i] : i;
        if (rows[i / 64] >> i % 64 & 1) bits[row / 64] |= (uint64_t)1 << row % 64;
    }
}

static void add_needed_by_join(rws_engine *e, const node *n, uint64_t **needed, const uint64_t *rows)
{
    const join of = e->joins[n->in[0]];
    for (uint32_t i = 0; i < e->levels[n->all].n_rows; i++) {
        const uint32_t s = of.which[i];
        if (!(rows[i / 64] >> i % 64 & 1) || !e->nodes[of.source[s]].op) continue;
        const uint32_t *map = rws__level_map(e, of.at[s], e->nodes[of.source[s]].all);
        const uint32_t  row = map ? map[of.row[i]] : of.row[i];
        needed_rows(e, needed, of.source[s])[row / 64] |= (uint64_t)1 << row % 64;
    }
}

/* The rows of the level of node n that the rows that were computed stand for. */
static uint32_t rows_by_history(rws_engine *e, const node *n)
{
    const uint32_t *map = rws__level_map(e, n->level, n->rows), all = e->levels[n->level].n_rows;
    uint32_t        n_rows = 0;
    if (n->rows == n->level || n->rows == n->all) return all;
    for (uint32_t i = 0; i < all; i++) n_rows += map[i] != NONE;
    return n_rows;
}

void rws__demand_count(rws_engine *e)
{
    uint64_t **needed = RWS_NEW0(&e->arena, uint64_t *, e->n_nodes);
    for (uint32_t i = 0; i < e->n_row_requests; i++)
        add_image(e, e->asks[i].level, e->nodes[e->asks[i].node].all, needed_rows(e, needed, e->asks[i].node));
    for (uint32_t id = e->n_nodes; id-- > 0;) {
        const node *n = &e->nodes[id];
        if (n->op && n->value) e->stats.history += rows_by_history(e, n);
        if (!needed[id] || !n->op) continue;
        e->stats.needed += count(needed[id], e->levels[n->all].n_rows);
        if (n->op == &rws__op_join) add_needed_by_join(e, n, needed, needed[id]);
        for (int s = 0; s < n->n_in; s++)
            if (n->in[s] && e->nodes[n->in[s]].op)
                add_needed(e, n, needed[id], e->nodes[n->in[s]].all, needed_rows(e, needed, n->in[s]));
    }
    e->n_row_requests = 0;
}

void rws__engine_count_rows(rws_engine *e, bool on)
{
    e->counts = on;
}
