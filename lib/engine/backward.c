/* backward.c - the tape in reverse: from a coefficient per row to the gradient of every parameter.
 *
 * A term of log p or log q at a level counts as much as all the rows below it together. So coefficients are added up
 * along the levels, from the ends of paths to the root, and each term is seeded once where it lives.
 */
#include "engine/internal.h"
#include "tensor/gemm.h"

#include <math.h>
#include <string.h>

/* A row of the table is left out if its coefficients are so small that leaving out all such rows of its datum changes
 * the sum of absolute coefficients by less than the share `negligible`; a row of a level is left out if all rows below
 * it are. Few particles carry weight, so that this saves most of the work. It does not pay for programs that compute
 * next to nothing. */

/* No row is left out below so many floating-point operations of the forward pass per row of the table. */
#define WORTHWHILE 4000

/* Coefficients that are not finite leave no row out, so that the gradient is not finite either and the update sees it. */
static void mark(const rws_scores *s, double negligible, const double *coef, int d, uint8_t *alive)
{
    double         total = 0;
    const uint32_t first = s->start[d], end = s->start[d + 1];
    for (uint32_t i = first; i < end; i++) total += fabs(coef[i]);
    const bool   broken = !isfinite(total);
    const double least = negligible * total / (end - first);
    for (uint32_t i = first; i < end; i++) alive[i] |= broken || fabs(coef[i]) > least;
}

/* For each row of the table, whether backward works on it; NULL if no row is left out. */
static const uint8_t *alive_rows(rws_engine *e)
{
    const rws_scores *s = &e->scores;
    const double *tables[N_COEF + 1 + RWS_OUTPUTS] = {s->coef_p, s->coef_q, s->coef_r, s->coef_given, s->coef_score};
    uint8_t      *alive = RWS_NEW0(&e->arena, uint8_t, s->n);
    for (int slot = 0; slot < RWS_OUTPUTS; slot++) tables[N_COEF + 1 + slot] = s->coef_out[slot];
    for (int d = 0; d < s->B; d++)
        for (int t = 0; t < N_COEF + 1 + RWS_OUTPUTS; t++)
            if (tables[t]) mark(s, e->pass.negligible, tables[t], d, alive);
    return memchr(alive, 0, (size_t)s->n) ? alive : NULL;
}

/* Lists the live rows of a level. */
static void list_live(rws_engine *e, level *l, const uint8_t *alive)
{
    uint32_t *live = RWS_NEW(&e->arena, uint32_t, l->n_rows);
    uint32_t *position = RWS_NEW(&e->arena, uint32_t, l->n_rows), n = 0;
    for (uint32_t row = 0; row < l->n_rows; row++) {
        position[row] = n;
        if (alive[row]) live[n++] = row;
    }
    l->n_live = n;
    if (n < l->n_rows) l->live = live, l->position = position;
}

/* Whether a projection of the home has rows that become live, or makes rows of the home live. */
static bool spreads(const level *l, uint32_t n_home, uint8_t *home, uint8_t *own)
{
    bool spread = false;
    for (uint32_t row = 0; row < n_home; row++) {
        spread |= home[row] && !own[l->place[row]];
        own[l->place[row]] |= home[row];
    }
    for (uint32_t row = 0; row < l->n_rows; row++) {
        spread |= own[row] && !home[l->up[row]];
        home[l->up[row]] |= own[row];
    }
    return spread;
}

/* A row of a projection is live if one of the rows that it stands for is. Its node may read other nodes at the row that `up`
 * leads to, so that is live, too, and so are the rows of other projections that it has. */
static void projections_alive(rws_engine *e, uint8_t **alive, uint32_t home)
{
    for (bool spread = true; spread;) {
        spread = false;
        for (uint32_t id = e->levels[home].dependence; id; id = e->dependences[id].next) {
            const uint32_t at = e->dependences[id].rows;
            if (at == NONE || at == home) continue;
            if (!alive[at]) alive[at] = RWS_NEW0(&e->arena, uint8_t, e->levels[at].n_rows);
            spread |= spreads(&e->levels[at], e->levels[home].n_rows, alive[home], alive[at]);
        }
    }
    for (uint32_t id = e->levels[home].dependence; id; id = e->dependences[id].next) {
        const uint32_t at = e->dependences[id].rows;
        if (at != NONE && at != home) list_live(e, &e->levels[at], alive[at]);
    }
}

/* A row of a part of a merged level is live if the row that it became is. */
static void parts_alive(rws_engine *e, uint8_t **alive, uint32_t at)
{
    const merge *m = e->levels[at].merge;
    for (uint32_t row = 0; row < e->levels[at].n_rows && m; row++)
        if (alive[at][row]) alive[m->parts[m->part[row]].level][m->row[row]] = 1;
}

/* A row of a narrowed level is live if a live row of a level that reads it stands on it. Readers that are narrowed
 * levels themselves come first; they are beside a lower level, or have fewer rows. */
static const uint8_t *narrowed_alive(rws_engine *e, uint8_t **alive, uint32_t at)
{
    if (alive[at]) return alive[at];
    alive[at] = RWS_NEW0(&e->arena, uint8_t, e->levels[at].n_rows);
    for (const reader *r = e->levels[at].readers; r; r = r->next) {
        const uint8_t  *above = narrowed_alive(e, alive, r->level);
        const uint32_t *map = rws__level_map(e, r->level, at);
        for (uint32_t row = 0; row < e->levels[r->level].n_rows; row++) {
            const uint32_t to = map ? map[row] : row;
            if (above[row] && to != NONE) alive[at][to] = 1;
        }
    }
    list_live(e, &e->levels[at], alive[at]);
    return alive[at];
}

/* Finds the rows of every level that backward works on, and where the rows of a node begin in its call. */
static void find_live(rws_engine *e)
{
    for (uint32_t i = 0; i < e->n_levels; i++) {
        level *l = &e->levels[i];
        l->n_live = l->n_rows;
        l->live = l->position = NULL;
    }
    const bool try =
        e->pass.negligible > 0 && !e->scores.weigh_choices && e->forward_flops > WORTHWHILE * (uint64_t)e->scores.n;
    const uint8_t *table = try ? alive_rows(e) : NULL;
    if (table) {
        uint8_t **alive = RWS_NEW(&e->arena, uint8_t *, e->n_levels);
        for (uint32_t i = 0; i < e->n_levels; i++)
            alive[i] = e->levels[i].place ? NULL : RWS_NEW0(&e->arena, uint8_t, e->levels[i].n_rows);
        uint32_t at = 0;
        for (uint32_t i = 0; i < e->n_ends; i++)
            for (uint32_t row = 0; row < e->levels[e->ends[i].level].n_rows; row++)
                alive[e->ends[i].level][row] = table[rws__scores_place(e, at++)];
        for (uint32_t i = e->n_levels; i-- > 0;) {
            level *l = &e->levels[i];
            if (l->place) continue;
            projections_alive(e, alive, i);
            parts_alive(e, alive, i);
            for (uint32_t row = 0; row < l->n_rows && l->parent != NONE; row++)
                if (alive[i][row]) alive[l->parent][l->up[row]] = 1;
            list_live(e, l, alive[i]);
        }
        for (uint32_t i = e->n_levels; i-- > 0;) narrowed_alive(e, alive, i); /* most readers have larger numbers */
    }
    for (uint32_t i = 0; i < e->n_calls; i++) {
        call *c = &e->calls[i];
        c->gradient = NULL;
        c->n_live = 0;
        for (uint32_t k = 0; k < c->n_nodes; k++) {
            node *n = &e->nodes[e->order[c->first + k]];
            n->first_live = c->n_live;
            c->n_live += e->levels[n->rows].n_live;
        }
    }
}

static uint32_t live_row(const level *l, uint32_t i)
{
    return l->live ? l->live[i] : i;
}

static uint32_t live_position(const level *l, uint32_t row)
{
    return l->position ? l->position[row] : row;
}

static float *param_gradient(const rws_engine *e, const rws_param *p, float *gradient)
{
    if (e->touched) e->touched[p->number] = true;
    return gradient + p->offset;
}

float *rws__node_gradient(rws_engine *e, uint32_t id, float *gradient)
{
    node *n = &e->nodes[id];
    if (n->param) return param_gradient(e, n->param, gradient);
    call *c = &e->calls[n->call];
    if (!c->gradient) c->gradient = RWS_NEW0(&e->arena, float, (size_t)c->n_live *(size_t)c->c.dim);
    return c->gradient + (size_t)n->first_live * (size_t)n->dim;
}

/* The gradient of a row of a node, in whichever part the row is. */
static float *row_gradient(rws_engine *e, uint32_t id, uint32_t row, float *gradient)
{
    const uint32_t place = rws__node_row(e, &id, row);
    const node    *n = &e->nodes[id];
    return rws__node_gradient(e, id, gradient) + live_position(&e->levels[n->rows], place) * (size_t)n->dim;
}

/* gradient of a node += coefficients of the rows of level `at`, which is at or below the node's level */
static void seed(rws_engine *e, uint32_t id, uint32_t at, const double *coef, unsigned groups, float *gradient)
{
    const node *n = &e->nodes[id];
    if (!(n->depends & groups)) return;
    const level   *from = &e->levels[at];
    const uint32_t part = rws__node_part(e, id, at);
    if (part == NONE) {
        const uint32_t *map = rws__level_map(e, at, n->all);
        for (uint32_t i = 0; i < from->n_live; i++) {
            const uint32_t row = live_row(from, i);
            *row_gradient(e, id, map ? map[row] : row, gradient) += (float)coef[row];
        }
        return;
    }
    n = &e->nodes[part];
    float          *g = rws__node_gradient(e, part, gradient);
    const uint32_t *map = rws__level_map(e, at, n->rows);
    const level    *to = &e->levels[n->rows];
    if (from->live || to->live)
        for (uint32_t i = 0; i < from->n_live; i++) {
            const uint32_t row = live_row(from, i);
            g[live_position(to, map ? map[row] : row)] += (float)coef[row];
        }
    else if (map)
        for (uint32_t i = 0; i < from->n_rows; i++) g[map[i]] += (float)coef[i];
    else
        for (uint32_t i = 0; i < from->n_rows; i++) g[i] += (float)coef[i];
}

/* The part of a table of coefficients that belongs to an end whose rows begin at `at`. */
static double *leaf_coef(rws_engine *e, double *table, uint32_t at, uint32_t n)
{
    if (!e->place) return table + at;
    double *coef = RWS_NEW(&e->arena, double, n);
    for (uint32_t row = 0; row < n; row++) coef[row] = table[e->place[at + row]];
    return coef;
}

/* ---- coefficients of choices by themselves */

static bool is_below(const rws_engine *e, uint32_t at, uint32_t above)
{
    while (at != above && at != NONE) at = e->levels[at].parent;
    return at == above;
}

/* A coefficient for each row of a level, from all rows of the table that stand on it: rws_scores.weigh_choices. */
static double *weigh_choices(rws_engine *e, uint32_t at_level)
{
    const rws_scores *s = &e->scores;
    const level      *l = &e->levels[at_level];
    uint32_t         *row = RWS_NEW(&e->arena, uint32_t, s->n), *at = RWS_NEW(&e->arena, uint32_t, s->n);
    uint32_t         *above = RWS_NEW(&e->arena, uint32_t, s->n), n = 0, begin = 0;
    double           *coef = RWS_NEW0(&e->arena, double, l->n_rows);
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const uint32_t  end = e->ends[i].level, n_rows = e->levels[end].n_rows;
        const bool      below = is_below(e, end, at_level);
        const uint32_t *map = below ? rws__level_map(e, end, at_level) : NULL;
        for (uint32_t k = 0; k < n_rows && below; k++, n++) {
            row[n] = rws__scores_place(e, begin + k);
            at[n] = map ? map[k] : k;
            above[n] = e->levels[at_level].up[at[n]];
        }
        begin += n_rows;
    }
    double *sums = RWS_NEW0(&e->arena, double, 3 * (size_t)e->levels[e->levels[at_level].parent].n_rows);
    s->weigh_choices(s, n, row, at, above, sums, coef);
    return coef;
}

static bool has_choices(const rws_engine *e, const level *l)
{
    for (uint32_t t = l->terms; t != NONE; t = e->terms[t].next)
        if (e->terms[t].kind == RWS_TERM_Q) return l->parent != NONE;
    return false;
}

static void seed_level(rws_engine *e, uint32_t at, unsigned groups, float *gradient)
{
    const level  *l = &e->levels[at];
    const double *own = e->scores.weigh_choices && has_choices(e, l) ? weigh_choices(e, at) : NULL;
    for (uint32_t t = e->levels[at].terms; t != NONE; t = e->terms[t].next) {
        const rws_term kind = e->terms[t].kind;
        const double  *coef = kind == RWS_TERM_Q && own ? own : kind < N_COEF ? e->levels[at].coef[kind] : NULL;
        if (coef) seed(e, e->terms[t].node, at, coef, groups, gradient);
        if (kind == RWS_TERM_Q && l->coef[SCORE]) seed(e, e->terms[t].node, at, l->coef[SCORE], groups, gradient);
    }
}

/* The coefficients of a level, zeros at first; NULL if nothing above it has such a term. */
static double *coefs_of(rws_engine *e, level *to, int k)
{
    const int terms = k == SCORE ? RWS_TERM_Q : k;
    if (to->total[terms] && !to->coef[k]) to->coef[k] = RWS_NEW0(&e->arena, double, to->n_rows);
    return to->total[terms] ? to->coef[k] : NULL;
}

/* Adds the coefficients of rows of a level to those of the rows that they stand on. The score functions of a particle are whole
 * in each of the rows of a summed site. */
static void hand_up(rws_engine *e, const level *l, int k)
{
    const double share = k == SCORE && l->values ? 1.0 / l->values : 1;
    double      *to = coefs_of(e, &e->levels[l->parent], k);
    for (uint32_t i = 0; i < l->n_rows && to; i++) to[l->up[i]] += share * l->coef[k][i];
}

/* The same for a merged level and its parts. */
static void hand_to_parts(rws_engine *e, const level *l, int k)
{
    for (uint32_t p = 0; p < l->merge->n; p++) {
        const segment *s = &l->merge->parts[p];
        double        *to = coefs_of(e, &e->levels[s->level], k);
        for (uint32_t i = 0; i < e->levels[s->level].n_rows && to; i++) to[i] += l->coef[k][s->to[i]];
    }
}

static void seed_terms(rws_engine *e, unsigned groups, float *gradient)
{
    const rws_scores *s = &e->scores;
    double           *tables[N_COEF + 1] = {s->coef_p, s->coef_q, s->coef_r, s->coef_given, s->coef_score};
    for (uint32_t l = 0; l < e->n_levels; l++)
        for (int k = 0; k <= N_COEF; k++) e->levels[l].coef[k] = NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->n_ends; i++) {
        level *l = &e->levels[e->ends[i].level];
        for (int k = 0; k <= N_COEF; k++)
            if (l->total[k == SCORE ? RWS_TERM_Q : k] && tables[k])
                l->coef[k] = leaf_coef(e, tables[k], at, l->n_rows); /* else no level above has terms of this kind */
        for (int slot = 0; slot < RWS_OUTPUTS; slot++) {
            if (!s->coef_out[slot]) continue;
            const double *coef = leaf_coef(e, s->coef_out[slot], at, l->n_rows);
            for (uint32_t up = e->ends[i].level; up != NONE; up = e->levels[up].parent)
                if (e->levels[up].outputs[slot] != NONE) {
                    seed(e, e->levels[up].outputs[slot], e->ends[i].level, coef, groups, gradient);
                    break;
                }
        }
        at += l->n_rows;
    }
    for (uint32_t at_level = e->n_levels; at_level-- > 0;) {
        level *l = &e->levels[at_level];
        seed_level(e, at_level, groups, gradient);
        for (int k = 0; k <= N_COEF && l->parent != NONE; k++)
            if (l->coef[k] && l->merge) hand_to_parts(e, l, k);
            else if (l->coef[k]) hand_up(e, l, k);
    }
}

static bool wanted(const rws_engine *e, const call *c, int s, unsigned groups)
{
    if (c->source[s] != NONE && (c->n_nodes == 1 || c->c.in[s].row)) return e->nodes[c->source[s]].depends & groups;
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (e->nodes[e->nodes[e->order[c->first + i]].in[s]].depends & groups) return true;
    return false;
}

/* Adds the gradients of rows that were gathered from several nodes to the gradients of these nodes. */
static void scatter(rws_engine *e, const call *c, int s, unsigned groups, const float *from, float *gradient)
{
    const size_t dim = (size_t)c->c.in[s].dim;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const node    *n = &e->nodes[e->order[c->first + i]], *source = &e->nodes[n->in[s]];
        const level   *mine = &e->levels[n->rows];
        const uint32_t rows = mine->n_live;
        if (source->depends & groups && rows) {
            const uint32_t  part = rws__node_part(e, n->in[s], n->rows);
            const bool      one = part != NONE;
            float          *to = one ? rws__node_gradient(e, part, gradient) : NULL;
            const level    *its = one ? &e->levels[e->nodes[part].rows] : NULL;
            const uint32_t *map = rws__level_map(e, n->rows, one ? e->nodes[part].rows : source->all);
            for (uint32_t r = 0; r < rows; r++) {
                const uint32_t at = live_row(mine, r), row = map ? map[at] : at;
                float *restrict sum =
                    one ? to + live_position(its, row) * dim : row_gradient(e, n->in[s], row, gradient);
                for (size_t j = 0; j < dim; j++) sum[j] += from[r * dim + j];
            }
        }
        from += rows * dim;
    }
}

/* Whether input s is all of another call's output, which is used once here and has no gradient yet. */
static bool is_whole(const rws_engine *e, const call *c, int s)
{
    const node *n = &e->nodes[c->source[s]];
    if (n->param || c->c.in[s].row || e->calls[n->call].gradient || e->calls[n->call].c.n != c->c.n ||
        e->calls[n->call].n_live != c->n_live)
        return false;
    for (int i = 0; i < c->c.n_in; i++)
        if (i != s && c->source[i] && c->source[i] != NONE && e->nodes[c->source[i]].call == n->call) return false;
    return true;
}

/* Places of the live rows of a call among those of input s, which has the same rows in the same order, but may have more
 * live ones: a narrowed level with further readers. NULL: it has the same live rows. */
static const uint32_t *live_places(rws_engine *e, const call *c, int s)
{
    const node *first = &e->nodes[c->source[s]];
    uint32_t    differ = 0, at = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const node *n = &e->nodes[e->order[c->first + i]];
        if (n->rows == e->nodes[n->in[s]].rows) continue;
        const node *m = &e->nodes[rws__node_part(e, n->in[s], n->rows)];
        differ |= e->levels[n->rows].n_live != e->levels[m->rows].n_live;
    }
    if (!differ) return NULL;
    uint32_t *place = RWS_NEW(&e->arena, uint32_t, c->n_live);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const node  *n = &e->nodes[e->order[c->first + i]], *m = &e->nodes[rws__node_part(e, n->in[s], n->rows)];
        const level *mine = &e->levels[n->rows], *its = &e->levels[m->rows];
        for (uint32_t r = 0; r < mine->n_live; r++)
            place[at++] = m->first_live - first->first_live + live_position(its, live_row(mine, r));
    }
    return place;
}

/* Where to add the gradient of input s, which is one node's or contiguous in one call. */
static rws_sink sink_of(rws_engine *e, const call *c, int s, const uint32_t *rows, float *gradient)
{
    const rws_view *v = &c->c.in[s];
    const size_t    dim = (size_t)v->dim;
    if (is_whole(e, c, s)) {
        call *source = &e->calls[e->nodes[c->source[s]].call];
        source->gradient = RWS_NEW(&e->arena, float, (size_t)c->n_live *dim);
        return (rws_sink){.data = source->gradient, .fresh = true};
    }
    rws_sink     sink = {rws__node_gradient(e, c->source[s], gradient), v->row, false};
    const level *its = &e->levels[e->nodes[c->source[s]].rows];
    if (!v->row) sink.row = live_places(e, c, s);
    if (!v->row || (!rows && !its->live)) return sink;
    uint32_t *row = RWS_NEW(&e->arena, uint32_t, c->n_live);
    for (uint32_t i = 0; i < c->n_live; i++) row[i] = live_position(its, v->row[rows ? rows[i] : i]);
    sink.row = row;
    return sink;
}

static void *gather(rws_engine *e, const void *from, const uint32_t *rows, uint32_t n, size_t bytes)
{
    if (!from) return NULL;
    char *to = RWS_NEW(&e->arena, char, n *bytes);
    for (uint32_t i = 0; i < n; i++) memcpy(to + i * bytes, (const char *)from + rows[i] * bytes, bytes);
    return to;
}

/* Sets *k to the call with its live rows only. Returns the list of live rows; NULL: all rows are live. */
static const uint32_t *narrow(rws_engine *e, const call *c, rws_call *k)
{
    *k = c->c;
    k->gout = c->gradient;
    if ((int)c->n_live == k->n) return NULL;
    uint32_t *rows = RWS_NEW(&e->arena, uint32_t, c->n_live), at = 0, first = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        const level *l = &e->levels[e->nodes[e->order[c->first + i]].rows];
        for (uint32_t r = 0; r < l->n_live; r++) rows[at++] = first + live_row(l, r);
        first += l->n_rows;
    }
    const size_t width = (size_t)k->in[0].dim * sizeof(float);
    k->n = (int)c->n_live;
    k->out = k->op->forgets ? NULL : gather(e, c->c.out, rows, c->n_live, (size_t)k->dim * sizeof(float));
    k->saved = gather(e, c->c.saved, rows, c->n_live, width);
    k->kept = gather(e, c->c.kept, rows, c->n_live, width);
    k->places = gather(e, c->c.places, rows, c->n_live, sizeof *k->places);
    for (int s = 0; s < k->n_in; s++) {
        uint32_t *row = RWS_NEW(&e->arena, uint32_t, c->n_live);
        for (uint32_t i = 0; i < c->n_live; i++) row[i] = k->in[s].row ? k->in[s].row[rows[i]] : rows[i];
        k->in[s].row = row;
    }
    return rows;
}

static void backward_call(rws_engine *e, call *c, unsigned groups, float *gradient)
{
    rws_call        k;
    const uint32_t *rows = narrow(e, c, &k);
    float          *gathered[RWS_OP_INPUTS] = {0};
    for (int s = 0; s < k.n_in; s++) {
        k.gin[s] = (rws_sink){0};
        if (!c->source[s] || !wanted(e, c, s, groups)) continue;
        if (c->source[s] != NONE) k.gin[s] = sink_of(e, c, s, rows, gradient);
        else {
            gathered[s] = RWS_NEW(&e->arena, float, (size_t)k.n *(size_t)k.in[s].dim);
            k.gin[s] = (rws_sink){.data = gathered[s], .fresh = true};
        }
    }
    const rws_param *w = k.args.w, *b = k.args.b;
    k.gw = k.gb = NULL;
    if (w && !k.args.tangent && param_moves(w, &k.args, groups))
        k.gw = k.op->defers ? gradient + w->offset : param_gradient(e, w, gradient);
    if (b && !k.args.tangent && param_moves(b, &k.args, groups)) k.gb = param_gradient(e, b, gradient);
    k.op->backward(&k);
    for (int s = 0; s < k.n_in; s++) rws__call_clear(&k, s); /* zeros for an input that the op has no gradient for */
    for (int s = 0; s < k.n_in; s++)
        if (gathered[s]) scatter(e, c, s, groups, gathered[s], gradient);
}

/* The gradient of a node that is made of rows of others is added to these. */
static void backward_join(rws_engine *e, const call *c, unsigned groups, float *gradient)
{
    const node     *n = &e->nodes[e->order[c->first]];
    const join      of = e->joins[n->in[0]];
    const level    *l = &e->levels[n->rows];
    const uint32_t *up = n->rows == n->all ? NULL : l->up;
    const size_t    dim = (size_t)n->dim;
    for (uint32_t i = 0; i < l->n_live; i++) {
        const uint32_t row = live_row(l, i), at = up ? up[row] : row, s = of.which[at];
        if (!(e->nodes[of.source[s]].depends & groups)) continue;
        const uint32_t *map = rws__level_map(e, of.at[s], e->nodes[of.source[s]].all);
        float          *to = row_gradient(e, of.source[s], map ? map[of.row[at]] : of.row[at], gradient);
        for (size_t j = 0; j < dim; j++) to[j] += c->gradient[i * dim + j];
    }
}

static void walk_back(rws_engine *e, unsigned groups, float *gradient)
{
    RWS_CHECK((groups & ~e->pass.groups) == 0);
    find_live(e);
    seed_terms(e, groups, gradient);
    for (uint32_t i = e->n_calls; i-- > 0;) {
        call      *c = &e->calls[i];
        const bool is_join = c->c.op == &rws__op_join;
        if (!c->gradient || !(c->c.op->backward || is_join) || !(c->depends & groups)) continue;
        rws__engine_check_stop(e, &c->c);
        if (is_join) backward_join(e, c, groups, gradient);
        else backward_call(e, c, groups, gradient);
    }
}

static void backward(rws_engine *e, unsigned groups, float *gradient)
{
    const uint64_t flops = rws_gemm_flops;
    walk_back(e, groups, gradient);
    rws__products_flush(&e->products, gradient, &e->arena);
    e->stats.flops += rws_gemm_flops - flops;
}

rws_status rws__engine_backward(rws_engine *e, unsigned groups, float *gradient, rws_error *err)
{
    RWS_ENTER(e, backward(e, groups, gradient));
    return rws__engine_status(e, err);
}

static void backward_deferred(rws_engine *e, unsigned groups, float *gradient, bool *touched)
{
    const uint64_t flops = rws_gemm_flops;
    e->touched = touched;
    walk_back(e, groups, gradient);
    rws__products_join(&e->products, &e->arena);
    e->stats.flops += rws_gemm_flops - flops;
}

rws_status rws__engine_backward_deferred(rws_engine *e, unsigned groups, float *gradient, bool *touched,
                                         const rws_products **products, rws_error *err)
{
    RWS_ENTER(e, backward_deferred(e, groups, gradient, touched));
    e->touched = NULL;
    *products = e->status == RWS_OK ? &e->products : NULL;
    return rws__engine_status(e, err);
}
