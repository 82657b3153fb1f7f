/* merge.c - several paths become one, and what the rows of a path have done before.
 *
 * A path whose particles have come together has a trace for the time since then only; what was before is told by
 * segments, the traces of the paths that became one, which lead to segments before:
 *
 *     path 1   -- z=0 ----- y --\               /-- z=1 --\
 *                                merge - z - …--           merge - z -   the path's own trace
 *     path 2   -- z=1 - w - y --/               \-- z=0 --/
 *
 * Rows may have made different numbers of draws and of visits. So these numbers are counters, with a number for each
 * row of the merged level. The program that scores takes for each row the value of its next visit, from the segment
 * in which it was drawn (history). */
#include "engine/internal.h"

#include <string.h>

/* ---- counters */

static uint32_t counter_at(counter c, const uint32_t *map, uint32_t i)
{
    return c.offset + (c.base ? c.base[map ? map[i] : i] : 0);
}

/* The numbers by which a counter of the last merge exceeds its offset, for each row of the path; NULL: none does. */
static const uint32_t *beyond(rws_path *path, counter c)
{
    rws_engine *e = path->e;
    if (!c.base) return NULL;
    const uint32_t *map = rws__level_map(e, path->level, path->before->level), n = e->levels[path->level].n_rows;
    if (!map) return c.base;
    uint32_t *rows = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) rows[i] = c.base[map[i]];
    return rows;
}

ordinals rws__path_ordinals(rws_path *path)
{
    const uint32_t  ordinal = path->ordinal++ + sums_ordinal(&path->e->levels[path->level]);
    const uint32_t *more = path->before ? beyond(path, path->before->ordinal) : NULL;
    if (!more) return (ordinals){NULL, ordinal};
    const uint32_t n = path->e->levels[path->level].n_rows;
    uint32_t      *rows = RWS_NEW(&path->e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) rows[i] = ordinal + more[i];
    return (ordinals){rows, ordinal};
}

static counter visits_before(const rws_path *path, uint32_t site)
{
    const merge *m = path->before;
    return m && site < m->n_sites ? m->visits[site] : (counter){0};
}

static counter scored_before(const rws_path *path, uint32_t site)
{
    const merge *m = path->before;
    return m && site < m->n_sites ? m->scored[site] : (counter){0};
}

uint32_t rws__next_visit(const rws_path *path, uint32_t site)
{
    const visited *v = site < path->n_sites ? &path->sites[site] : NULL;
    return v && v->last != NONE ? path->trace[v->last].visit + 1 : visits_before(path, site).offset;
}

const uint32_t *rws__visits_beyond(rws_path *path, uint32_t site)
{
    return beyond(path, visits_before(path, site));
}

/* Visits of a site by the side that scores, of the row with fewest. With a history, visited.next counts them. */
static uint32_t n_scored(const rws_path *path, uint32_t site)
{
    const visited *v = site < path->n_sites ? &path->sites[site] : NULL;
    if (path->history) return v && v->next != NONE ? v->next : scored_before(path, site).offset;
    if (!v || v->last == NONE || path->before) return 0; /* with `before`, it draws: the other side has a history */
    return v->next == NONE ? path->trace[v->last].visit + 1 : path->trace[v->next].visit;
}

static counter count_draws(const rws_path *path, uint32_t none)
{
    (void)none;
    return (counter){path->before ? path->before->ordinal.base : NULL, path->ordinal};
}

static counter count_visits(const rws_path *path, uint32_t site)
{
    return (counter){visits_before(path, site).base, rws__next_visit(path, site)};
}

static counter count_scored(const rws_path *path, uint32_t site)
{
    return (counter){scored_before(path, site).base, n_scored(path, site)};
}

/* The counter of a merged level, from those of the paths. */
static counter add_up(const merge *m, rws_path **paths, counter (*of)(const rws_path *path, uint32_t site),
                      uint32_t site)
{
    rws_engine   *e = paths[0]->e;
    const counter first = of(paths[0], site);
    uint32_t      least = UINT32_MAX, same = 1;
    for (uint32_t p = 0; p < m->n; p++) {
        const counter c = of(paths[p], site);
        same &= !c.base && c.offset == first.offset;
    }
    if (same) return first;
    uint32_t *all = RWS_NEW(&e->arena, uint32_t, e->levels[m->level].n_rows);
    for (uint32_t p = 0; p < m->n; p++) {
        const counter   c = of(paths[p], site);
        const segment  *s = &m->parts[p];
        const uint32_t *map = c.base ? rws__level_map(e, s->level, paths[p]->before->level) : NULL;
        for (uint32_t i = 0; i < e->levels[s->level].n_rows; i++) {
            const uint32_t number = counter_at(c, map, i);
            if (s->to && s->to[i] == NONE) continue; /* resampling has left it out */
            all[s->to ? s->to[i] : i] = number;
            least = number < least ? number : least;
        }
    }
    for (uint32_t i = 0; i < e->levels[m->level].n_rows; i++) all[i] -= least;
    return (counter){all, least};
}

/* ---- segments */

segment rws__segment_of(const rws_path *path)
{
    return (segment){.level = path->level,
                     .trace = path->trace,
                     .n_trace = path->n_trace,
                     .reports = path->reports,
                     .n_reports = path->n_reports,
                     .before = path->before};
}

bool rws__past_before(rws_engine *e, past *p)
{
    const merge *m = p->in->before;
    if (!m) return false;
    const uint32_t *map = rws__level_map(e, p->in->level, m->level), at = map ? map[p->row] : p->row;
    p->in = &m->parts[m->part ? m->part[at] : 0];
    p->row = m->row ? m->row[at] : at;
    return true;
}

const past *rws__past_of(rws_engine *e, const rws_path *path, uint32_t row, uint32_t *n)
{
    segment *own = RWS_NEW(&e->arena, segment, 1);
    past     p = {own, row};
    *own = rws__segment_of(path);
    for (*n = 1; rws__past_before(e, &p);) ++*n;
    past *all = RWS_NEW(&e->arena, past, *n);
    p = (past){own, row};
    for (uint32_t i = *n; i-- > 0; rws__past_before(e, &p)) all[i] = p;
    return all;
}

/* The segment of a path ends. The path's arrays are copied, because the path will use them again. */
static void end_segment(rws_path *path, segment *s)
{
    rws_engine *e = path->e;
    *s = rws__segment_of(path);
    trace_entry *trace = RWS_NEW(&e->arena, trace_entry, s->n_trace + 1);
    report      *reports = RWS_NEW(&e->arena, report, s->n_reports + 1);
    if (s->n_trace) memcpy(trace, path->trace, s->n_trace * sizeof *trace);
    if (s->n_reports) memcpy(reports, path->reports, s->n_reports * sizeof *reports);
    s->trace = trace;
    s->reports = reports;
    *RWS_PUSH(e, e->segments, e->n_segments, e->segment_capacity) = s;
}

/* The first path continues at the level of the merge, with a trace of its own. */
static void begin_segment(rws_path **paths, merge *m)
{
    rws_path   *path = paths[0];
    rws_engine *e = path->e;
    m->ordinal = add_up(m, paths, count_draws, 0);
    m->n_sites = e->n_sites;
    m->visits = RWS_NEW(&e->arena, counter, m->n_sites + 1);
    m->scored = RWS_NEW(&e->arena, counter, m->n_sites + 1);
    for (uint32_t s = 0; s < m->n_sites; s++) {
        m->visits[s] = add_up(m, paths, count_visits, s);
        m->scored[s] = add_up(m, paths, count_scored, s);
    }
    path->ordinal = m->ordinal.offset;
    path->n_trace = path->n_scored = path->n_sites = path->n_reports = 0;
    path->before = m;
    path->level = m->level;
}

void rws__segment_below(rws_path *path, uint32_t to, uint32_t ordinal)
{
    rws_engine     *e = path->e;
    const uint32_t *up = e->levels[to].up;
    merge          *m = RWS_NEW0(&e->arena, merge, 1);
    uint32_t       *down = RWS_NEW(&e->arena, uint32_t, e->levels[path->level].n_rows);
    for (uint32_t i = 0; i < e->levels[path->level].n_rows; i++) down[i] = NONE;
    for (uint32_t i = 0; i < e->levels[to].n_rows; i++) down[up[i]] = i;
    *m = (merge){.level = to, .n = 1, .parts = RWS_NEW(&e->arena, segment, 1), .row = up};
    end_segment(path, m->parts);
    m->parts->to = down;
    begin_segment(&path, m);
    m->ordinal = (counter){NULL, ordinal};
    path->ordinal = ordinal;
}

/* ---- nodes that are made of rows of other nodes */

const rws_op rws__op_join = {.name = "join"};

uint32_t rws__node_join(rws_engine *e, uint32_t at, const join *of)
{
    uint8_t depends = 0;
    bool    seen = false;
    for (uint32_t s = 0; s < of->n; s++) seen |= e->nodes[of->source[s]].seen;
    for (uint32_t s = 0; s < of->n; s++) depends |= e->nodes[of->source[s]].depends & (e->pass.groups | DRAWN);
    const uint32_t id = rws__node_new(e, &rws__op_join, at, e->nodes[of->source[0]].dim, depends);
    e->nodes[id].seen = seen;
    e->nodes[id].in[0] = e->n_joins;
    *RWS_PUSH(e, e->joins, e->n_joins, e->join_capacity) = *of;
    return id;
}

void rws__join_forward(rws_engine *e, const node *n, float *out)
{
    const join       of = e->joins[n->in[0]];
    const uint32_t  *up = n->rows == n->all ? NULL : e->levels[n->rows].up;
    const size_t     dim = (size_t)n->dim;
    const uint32_t **map = RWS_NEW(&e->arena, const uint32_t *, of.n);
    for (uint32_t s = 0; s < of.n; s++) map[s] = rws__level_map(e, of.at[s], e->nodes[of.source[s]].all);
    for (uint32_t i = 0; i < e->levels[n->rows].n_rows; i++) {
        const uint32_t at = up ? up[i] : i, s = of.which[at];
        uint32_t       id = of.source[s];
        const uint32_t row = rws__node_row(e, &id, map[s] ? map[s][of.row[at]] : of.row[at]);
        const float   *from = e->nodes[id].value + row * dim;
        if (dim == 1) out[i] = *from;
        else memcpy(out + i * dim, from, dim * sizeof *out);
    }
}

/* ---- paths become one */

static uint32_t *counts_of(rws_engine *e, rws_path **paths, uint32_t n, uint32_t entry)
{
    uint32_t *next = RWS_NEW0(&e->arena, uint32_t, e->levels[entry].n_rows + 1);
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t *map = rws__level_map(e, paths[p]->level, entry);
        for (uint32_t i = 0; i < e->levels[paths[p]->level].n_rows; i++) next[(map ? map[i] : i) + 1]++;
    }
    for (uint32_t i = 0; i < e->levels[entry].n_rows; i++) next[i + 1] += next[i];
    return next;
}

/* The merged level of some paths: its rows are in the order of those of the entry, and, where these are equal, of the
 * paths. */
static uint32_t merged_level(rws_engine *e, rws_path **paths, merge *m, uint32_t entry)
{
    uint32_t *next = counts_of(e, paths, m->n, entry), n = next[e->levels[entry].n_rows];
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, n), *count = RWS_NEW(&e->arena, uint32_t, n);
    uint32_t *part = RWS_NEW(&e->arena, uint32_t, n), *row = RWS_NEW(&e->arena, uint32_t, n), n_covered = 0;
    bool      single = true;
    for (uint32_t p = 0; p < m->n; p++) {
        const level    *l = &e->levels[paths[p]->level];
        const uint32_t *map = rws__level_map(e, paths[p]->level, entry);
        uint32_t       *to = RWS_NEW(&e->arena, uint32_t, l->n_rows);
        for (uint32_t i = 0; i < l->n_rows; i++) {
            const uint32_t above = map ? map[i] : i, at = to[i] = next[above]++;
            up[at] = above;
            count[at] = l->count[i];
            part[at] = p;
            row[at] = i;
            single &= count[at] == 1;
        }
        m->parts[p].to = to;
    }
    for (uint32_t i = 0; i < n; i++) n_covered += i == 0 || up[i] != up[i - 1];
    const uint32_t to = rws__level_new(e, entry, n);
    level         *l = &e->levels[to];
    l->up = up;
    l->count = count;
    l->single = single;
    l->merge = m;
    l->width = e->levels[paths[0]->level].width;
    if (n_covered < e->levels[entry].n_rows) l->cover = to;
    m->part = part;
    m->row = row;
    return m->level = to;
}

/* What `source` is in each part, as a value of the merged level: the value itself if all have the same one of the entry. */
static uint32_t merged_value(rws_engine *e, const merge *m, const uint32_t *at, const uint32_t *source, uint32_t entry)
{
    bool same = source[0] == 0 || e->nodes[source[0]].level <= entry;
    for (uint32_t p = 0; p < m->n; p++) same &= source[p] == source[0];
    return same ? source[0] : rws__node_join(e, m->level, &(join){m->n, source, at, m->part, m->row});
}

/* The values that the paths carry, as values of the merged level. */
static const uint32_t *merged_carry(rws_engine *e, rws_path **paths, const merge *m, const uint32_t *at)
{
    const loop *l = paths[0]->loop;
    uint32_t   *carry = RWS_NEW(&e->arena, uint32_t, l->n_words);
    memcpy(carry, paths[0]->carry, l->n_words * sizeof *carry);
    for (uint32_t v = 0; v < 2 * l->n_values; v += 2) {
        uint32_t *source = RWS_NEW(&e->arena, uint32_t, m->n);
        for (uint32_t p = 0; p < m->n; p++) source[p] = paths[p]->carry[v];
        carry[v] = merged_value(e, m, at, source, l->entry);
    }
    return carry;
}

/* The fields that the model has drawn in a sleep pass, as values of the merged level. */
static void merge_fields(rws_engine *e, rws_path **paths, const merge *m, uint32_t *at)
{
    for (int f = 0; f < e->n_fields && e->pass.mode == RWS_SLEEP; f++) {
        uint32_t *source = RWS_NEW(&e->arena, uint32_t, m->n);
        for (uint32_t p = 0; p < m->n; p++) source[p] = paths[p]->field[f];
        paths[0]->field[f] = merged_value(e, m, at, source, paths[0]->loop->entry);
    }
}

void rws__merge(rws_engine *e, rws_path **paths, uint32_t n)
{
    merge *m = RWS_NEW0(&e->arena, merge, 1);
    m->n = n;
    m->parts = RWS_NEW(&e->arena, segment, n);
    for (uint32_t p = 0; p < n; p++) end_segment(paths[p], &m->parts[p]);
    merged_level(e, paths, m, paths[0]->loop->entry);
    if ((rws__path_draws(paths[0]) || paths[0]->scored) && !e->pass.enumerate) rws__level_particles(e, m->level);
    uint32_t *at = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t p = 0; p < n; p++) at[p] = m->parts[p].level;
    if (!paths[0]->ended) paths[0]->carry = merged_carry(e, paths, m, at);
    merge_fields(e, paths, m, at);
    begin_segment(paths, m);
}

/* ---- what was chosen, by row */

/* Counts the choices of a row by site or, if `choice` is not NULL, writes them backwards from `end`. */
static void walk(rws_engine *e, past p, uint32_t *end, kept_choice **choice)
{
    do
        for (uint32_t t = p.in->n_trace; t-- > 0;) {
            const trace_entry *x = &p.in->trace[t];
            if (e->sites[x->site].field >= 0 && e->pass.mode != RWS_SLEEP) continue; /* an item of the data */
            if (!choice) end[x->site]++;
            else choice[x->site][--end[x->site]] = (kept_choice){x->kept, p.row};
        }
    while (rws__past_before(e, &p));
}

/* Numbers the choices of a segment. */
static void keep_entries(rws_engine *e, segment *s)
{
    trace_entry *trace = (trace_entry *)s->trace;
    for (uint32_t t = 0; t < s->n_trace; t++) {
        trace[t].kept = e->n_kept;
        *RWS_PUSH(e, e->kept, e->n_kept, e->kept_capacity) = (kept_entry){&trace[t], s->level};
    }
}

void rws__history_make(rws_path *path)
{
    rws_engine    *e = path->e;
    const uint32_t at = path->level, n = e->levels[at].n_rows, S = e->n_sites;
    merge         *m = RWS_NEW0(&e->arena, merge, 1);
    history       *h = RWS_NEW0(&e->arena, history, 1);
    *m = (merge){.level = at, .n = 1, .parts = RWS_NEW(&e->arena, segment, 1)};
    *h = (history){at, S, RWS_NEW0(&e->arena, uint32_t *, S + 1), RWS_NEW0(&e->arena, kept_choice *, S + 1)};
    end_segment(path, m->parts);
    for (; e->n_segments_kept < e->n_segments; e->n_segments_kept++) keep_entries(e, e->segments[e->n_segments_kept]);
    uint32_t *end = RWS_NEW(&e->arena, uint32_t, S + 1);
    for (uint32_t s = 0; s < S; s++) h->start[s] = RWS_NEW0(&e->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        memset(end, 0, S * sizeof *end);
        walk(e, (past){m->parts, i}, end, NULL);
        for (uint32_t s = 0; s < S; s++) h->start[s][i + 1] = h->start[s][i] + end[s];
    }
    for (uint32_t s = 0; s < S; s++) h->choice[s] = RWS_NEW(&e->arena, kept_choice, h->start[s][n] + 1);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < S; s++) end[s] = h->start[s][i + 1];
        walk(e, (past){m->parts, i}, end, h->choice);
    }
    begin_segment(&path, m);
    path->history = h;
}

/* The choice at a visit of a site, more[i] visits later for row i of the path. NULL: a row has no such visit; sets which. */
static const kept_choice **choices_at(rws_path *path, uint32_t s, uint32_t visit, const uint32_t *more,
                                      uint32_t *missing)
{
    rws_engine         *e = path->e;
    const history      *h = path->history;
    const uint32_t      n = e->levels[path->level].n_rows, *map = rws__level_map(e, path->level, h->level);
    const kept_choice **choice = RWS_NEW(&e->arena, const kept_choice *, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = map ? map[i] : i, at = visit + (more ? more[i] : 0);
        const uint32_t all = s < h->n_sites ? h->start[s][row + 1] - h->start[s][row] : 0;
        choice[i] = at < all ? &h->choice[s][h->start[s][row] + at] : NULL;
        if (choice[i]) continue;
        *missing = at;
        return NULL;
    }
    return choice;
}

/* The next choice at the site that is visited, for each row. */
static const kept_choice **next_choices(rws_path *path)
{
    const uint32_t s = path->site;
    path->site_visit = n_scored(path, s);
    return choices_at(path, s, path->site_visit, beyond(path, scored_before(path, s)), &path->site_visit);
}

/* Whether values that were chosen in two ways can be rows of one value. */
static bool alike(const rws_engine *e, const trace_entry *a, const trace_entry *b)
{
    return strcmp(a->family, b->family) == 0 && a->size == b->size && a->n_values == b->n_values &&
           a->support == b->support && !a->low == !b->low && !a->high == !b->high &&
           e->nodes[a->var].dim == e->nodes[b->var].dim && (!a->low || e->nodes[a->low].dim == e->nodes[b->low].dim) &&
           (!a->high || e->nodes[a->high].dim == e->nodes[b->high].dim);
}

/* Parts the path if some of the choices are not like the first. */
static bool parts(rws_path *path, const kept_choice **choice)
{
    rws_engine        *e = path->e;
    const uint32_t     n = e->levels[path->level].n_rows;
    const trace_entry *first = e->kept[choice[0]->entry].entry;
    uint32_t          *part = RWS_NEW(&e->arena, uint32_t, n), others = 0;
    for (uint32_t i = 0; i < n; i++) others |= part[i] = !alike(e, first, e->kept[choice[i]->entry].entry);
    if (others) rws__path_split(path, part, 2);
    return others;
}

/* The distinct entries of some choices, and which of them is that of each row. */
static uint32_t distinct(rws_engine *e, const kept_choice **choice, uint32_t n, uint32_t *which, uint32_t *entry)
{
    uint32_t n_entries = 0, mask = 15;
    while (mask < 2 * n) mask = 2 * mask + 1;
    uint32_t *table = RWS_NEW0(&e->arena, uint32_t, mask + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = choice[i]->entry * 0x9e3779b9u >> 7 & mask;
        while (table[at] && entry[table[at] - 1] != choice[i]->entry) at = (at + 1) & mask;
        if (!table[at]) {
            entry[n_entries++] = choice[i]->entry;
            table[at] = n_entries;
        }
        which[i] = table[at] - 1;
    }
    return n_entries;
}

static uint32_t join_of(rws_engine *e, uint32_t at, join j, const uint32_t *entry, size_t member)
{
    uint32_t *source = RWS_NEW(&e->arena, uint32_t, j.n);
    for (uint32_t s = 0; s < j.n; s++)
        memcpy(&source[s], (const char *)e->kept[entry[s]].entry + member, sizeof *source);
    j.source = source;
    return source[0] ? rws__node_join(e, at, &j) : 0;
}

/* One entry that stands for the choices of all rows. */
static trace_entry joined(rws_path *path, const kept_choice **choice)
{
    rws_engine    *e = path->e;
    const uint32_t n = e->levels[path->level].n_rows;
    uint32_t      *which = RWS_NEW(&e->arena, uint32_t, n), *entry = RWS_NEW(&e->arena, uint32_t, n);
    const uint32_t n_entries = distinct(e, choice, n, which, entry);
    trace_entry    t = *e->kept[entry[0]].entry;
    t.visit = path->site_visit;
    if (n_entries == 1 && e->kept[entry[0]].level == path->history->level) return t; /* the path sees its node */
    uint32_t *at = RWS_NEW(&e->arena, uint32_t, n_entries), *row = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t s = 0; s < n_entries; s++) at[s] = e->kept[entry[s]].level;
    for (uint32_t i = 0; i < n; i++) row[i] = choice[i]->row;
    const join j = {n_entries, NULL, at, which, row};
    t.known = 0;
    t.var = join_of(e, path->level, j, entry, offsetof(trace_entry, var));
    t.low = join_of(e, path->level, j, entry, offsetof(trace_entry, low));
    t.high = join_of(e, path->level, j, entry, offsetof(trace_entry, high));
    return t;
}

bool rws__history_next(rws_path *path, trace_entry *t)
{
    const kept_choice **choice = next_choices(path);
    while (choice && parts(path, choice)) choice = next_choices(path);
    if (!choice) return false;
    *t = joined(path, choice);
    return true;
}

uint32_t rws__history_item(rws_path *path, uint32_t site, uint32_t t)
{
    uint32_t            missing;
    const kept_choice **choice = choices_at(path, site, t, NULL, &missing);
    return choice ? joined(path, choice).var : 0;
}

bool rws__history_missing(rws_path *path, uint32_t *site, uint32_t *visit)
{
    rws_engine     *e = path->e;
    const history  *h = path->history;
    const uint32_t *map = rws__level_map(e, path->level, h->level);
    for (uint32_t s = 0; s < h->n_sites; s++) {
        if (e->sites[s].field >= 0 || e->sites[s].how == RWS_SUMMED) continue;
        const uint32_t *more = beyond(path, scored_before(path, s)), scored = n_scored(path, s);
        for (uint32_t i = 0; i < e->levels[path->level].n_rows; i++) {
            const uint32_t row = map ? map[i] : i;
            *site = s;
            *visit = scored + (more ? more[i] : 0);
            if (*visit < h->start[s][row + 1] - h->start[s][row]) return true;
        }
    }
    return false;
}
