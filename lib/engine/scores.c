/* scores.c - adds up the log-density terms of every path and makes one table of rows, ordered by datum. */
#include "engine/internal.h"

#include <math.h>
#include <string.h>

static uint32_t output_of(const rws_engine *e, uint32_t at, int slot)
{
    for (uint32_t l = at; l != NONE; l = e->levels[l].parent)
        if (e->levels[l].outputs[slot] != NONE) return e->levels[l].outputs[slot];
    return NONE;
}

/* The results of all paths become rows of one matrix (rws__engine_result). */
static void check_results(rws_engine *e)
{
    const uint32_t first = output_of(e, e->ends[0].level, 0);
    for (uint32_t i = 1; i < e->n_ends; i++) {
        const uint32_t id = output_of(e, e->ends[i].level, 0);
        if (first != NONE && id != NONE && e->nodes[id].dim != e->nodes[first].dim)
            rws__engine_fail(e, RWS_BAD_INPUT, "The program returns %d numbers on one path and %d on another.",
                             e->nodes[first].dim, e->nodes[id].dim);
    }
}

/* Calls `each` for the levels above a level whose totals were begun: they may have gained terms since. */
static void each_above(rws_engine *e, uint32_t at, void (*each)(rws_engine *e, uint32_t at))
{
    const level *l = &e->levels[at];
    if (l->sums || l->parent == NONE) return;
    for (uint32_t p = 0; l->merge && p < l->merge->n; p++)
        if (e->levels[l->merge->parts[p].level].sums) each(e, l->merge->parts[p].level);
    if (!l->merge && e->levels[l->parent].sums) each(e, l->parent);
}

void rws__level_request(rws_engine *e, uint32_t at)
{
    each_above(e, at, rws__level_request);
    for (uint32_t t = e->levels[at].terms; t != e->levels[at].summed; t = e->terms[t].next)
        rws__request_rows(e, e->terms[t].node, at);
}

/* Asks for what was reported, and for what was chosen if that is wanted. */
static void request_segment(rws_engine *e, const segment *s)
{
    for (uint32_t k = 0; k < s->n_reports; k++)
        if (s->reports[k].node) rws__request_rows(e, s->reports[k].node, s->level);
    for (uint32_t k = 0; k < s->n_trace && e->pass.choices; k++) rws__request_rows(e, s->trace[k].var, s->level);
}

/* Computes the values that the table needs and that no path has waited for. */
static void execute_rest(rws_engine *e)
{
    for (uint32_t l = 0, n = e->n_levels; l < n; l++) rws__level_request(e, l);
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const uint32_t  last = e->ends[i].level;
        const rws_path *path = e->paths[e->ends[i].path];
        const segment   own = rws__segment_of(path);
        for (int s = 0; s < RWS_OUTPUTS; s++) {
            const uint32_t id = output_of(e, last, s);
            if (id != NONE) rws__request_rows(e, id, last);
        }
        request_segment(e, &own);
        for (int f = 0; f < e->n_fields && e->pass.choices; f++)
            if (path->field[f]) rws__request_rows(e, path->field[f], last);
    }
    for (uint32_t i = 0; i < e->n_segments; i++) request_segment(e, e->segments[i]);
    rws__engine_execute(e);
}

/* total = the values of n rows, or += if it is not fresh. */
static void add_values(const float *restrict value, const uint32_t *restrict map, uint32_t n, bool fresh,
                       double *restrict total)
{
    if (fresh && map)
        for (uint32_t i = 0; i < n; i++) total[i] = (double)value[map[i]];
    else if (fresh)
        for (uint32_t i = 0; i < n; i++) total[i] = (double)value[i];
    else if (map)
        for (uint32_t i = 0; i < n; i++) total[i] += (double)value[map[i]];
    else
        for (uint32_t i = 0; i < n; i++) total[i] += (double)value[i];
}

/* total of a row of a merged level = that of the row that it was. */
static void add_parts(rws_engine *e, level *l, int k)
{
    for (uint32_t p = 0; p < l->merge->n; p++) {
        const segment *s = &l->merge->parts[p];
        const double  *from = e->levels[s->level].total[k];
        if (!from) continue;
        if (!l->total[k]) l->total[k] = RWS_NEW0(&e->arena, double, l->n_rows);
        for (uint32_t i = 0; i < e->levels[s->level].n_rows; i++) l->total[k][s->to[i]] = from[i];
    }
}

/* total of a level = total of its parent, or of its parts, which have smaller numbers … */
static void sum_above(rws_engine *e, level *l)
{
    for (int k = 0; k < RWS_TERMS && l->merge; k++) add_parts(e, l, k);
    for (int k = 0; k < RWS_TERMS && l->parent != NONE && !l->merge; k++) {
        const double *above = e->levels[l->parent].total[k];
        if (!above) continue;
        const uint32_t *up = l->up, n = l->n_rows;
        double         *total = l->total[k] = RWS_NEW(&e->arena, double, n);
#pragma omp simd
        for (uint32_t i = 0; i < n; i++) total[i] = above[up[i]];
    }
}

/* … + its own terms. A level gains no terms when there are levels below it. */
void rws__level_sum(rws_engine *e, uint32_t at)
{
    level *l = &e->levels[at];
    if (l->place) return; /* it is beside a level and has no terms */
    each_above(e, at, rws__level_sum);
    if (!l->sums) sum_above(e, l);
    l->sums = true;
    for (uint32_t t = l->terms; t != l->summed; t = e->terms[t].next) {
        const int     k = e->terms[t].kind;
        const reading r = rws__node_read(e, e->terms[t].node, at);
        const bool    first = !l->total[k];
        if (first) l->total[k] = RWS_NEW(&e->arena, double, l->n_rows);
        add_values(r.value, r.row, l->n_rows, first, l->total[k]);
    }
    l->summed = l->terms;
}

static void add_up(rws_engine *e)
{
    for (uint32_t at = 0; at < e->n_levels; at++) rws__level_sum(e, at);
}

double rws__row_weight(const rws_engine *e, uint32_t at, uint32_t row)
{
    double *const *total = e->levels[at].total;
    double         d = total[RWS_TERM_D] ? total[RWS_TERM_D][row] : 0;
    for (int k = RWS_TERM_Q; k <= RWS_TERM_R && !total[RWS_TERM_D]; k++) d += total[k] ? total[k][row] : 0;
    const double p = total[RWS_TERM_P] ? total[RWS_TERM_P][row] : 0;
    return p == -INFINITY ? p : p - d + (total[RWS_TERM_W] ? total[RWS_TERM_W][row] : 0);
}

uint32_t rws__row_datum(rws_engine *e, uint32_t at, const uint32_t *to_base, uint32_t row)
{
    if (!pass_has_data(e)) return 0;
    if (!e->pass.scalar) return to_base ? to_base[row] : row;
    rws__level_particles(e, at);
    const level   *l = &e->levels[at];
    const uint32_t id = l->stride ? row * l->stride : l->particles[l->particles_start[row]];
    return id / ((uint32_t)e->pass.n_particles * l->width);
}

/* Makes e->place, which leads from the rows of all ends, one end after the other, to the table; NULL if that is the
 * order already (a program without branches keeps its data in order). */
static void order_by_datum(rws_engine *e, rws_scores *s)
{
    const bool     data = pass_has_data(e), alone = e->n_ends == 1 && !e->pass.scalar;
    const uint32_t B = (uint32_t)s->B, n = (uint32_t)s->n, only = e->ends[0].level;
    uint32_t      *start = RWS_NEW0(&e->arena, uint32_t, B + 1), at = 0;
    bool           in_order = true;
    s->start = start;
    e->place = NULL;
    s->datum = alone ? rws__level_map(e, only, data ? DATA : ROOT) : NULL;
    if (s->datum) { /* rows of a level are in the order of their parents */
        for (uint32_t row = 0; row < n; row++) start[s->datum[row] + 1] = row + 1;
        return;
    }
    uint32_t *datum = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const uint32_t  last = e->ends[i].level;
        const uint32_t *to_base = !data || e->pass.scalar ? NULL : rws__level_map(e, last, DATA);
        for (uint32_t row = 0; row < e->levels[last].n_rows; row++, at++) {
            datum[at] = rws__row_datum(e, last, to_base, row);
            in_order &= at == 0 || datum[at] >= datum[at - 1];
            start[datum[at] + 1]++;
        }
    }
    s->datum = datum;
    for (uint32_t d = 0; d < B; d++) start[d + 1] += start[d];
    if (in_order) return;
    uint32_t *next = RWS_NEW(&e->arena, uint32_t, B);
    memcpy(next, start, B * sizeof *next);
    e->place = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) e->place[i] = next[datum[i]]++;
    for (uint32_t d = 0; d < B; d++)
        for (uint32_t i = start[d]; i < start[d + 1]; i++) datum[i] = d;
}

uint32_t rws__scores_place(const rws_engine *e, uint32_t at)
{
    return e->place ? e->place[at] : at;
}

origin rws__scores_origin(rws_engine *e, int row)
{
    if (!e->origins) {
        e->origins = RWS_NEW(&e->arena, origin, e->scores.n);
        uint32_t at = 0;
        for (uint32_t l = 0; l < e->n_ends; l++)
            for (uint32_t i = 0; i < e->levels[e->ends[l].level].n_rows; i++)
                e->origins[rws__scores_place(e, at++)] = (origin){l, i};
    }
    return e->origins[row];
}

const float *rws__value_at(rws_engine *e, uint32_t at, uint32_t row_there, uint32_t id)
{
    const uint32_t *map = rws__level_map(e, at, e->nodes[id].all);
    const size_t    row = rws__node_row(e, &id, map ? map[row_there] : row_there);
    return e->nodes[id].value + row * (size_t)e->nodes[id].dim;
}

/* For each row of the table, the sum of its terms of one kind, or of two kinds. */
static const double *gather_totals(rws_engine *e, int n, rws_term first, rws_term second)
{
    const level *only = &e->levels[e->ends[0].level];
    if (e->n_ends == 1 && !e->place && only->total[first] && (second == first || !only->total[second]))
        return only->total[first];
    double  *out = RWS_NEW0(&e->arena, double, n);
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const level *l = &e->levels[e->ends[i].level];
        for (uint32_t row = 0; row < l->n_rows; row++, at++) {
            double *o = &out[rws__scores_place(e, at)];
            if (l->total[first]) *o += l->total[first][row];
            if (second != first && l->total[second]) *o += l->total[second][row];
        }
    }
    return out;
}

/* Rows whose path has not taken all choices that are given for their datum are impossible. Returns log_p, or a copy with
 * -inf for these rows. */
static const double *exclude_missing(rws_engine *e, int n, const double *log_p)
{
    double  *copy = NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const rws_path *path = e->paths[e->ends[i].path];
        const uint32_t  last = e->ends[i].level, *to_base = e->pass.scalar ? NULL : rws__level_map(e, last, 1);
        for (uint32_t row = 0; row < e->levels[last].n_rows; row++, at++) {
            if (!rws__given_missing(e, path, rws__row_datum(e, last, to_base, row))) continue;
            if (!copy) copy = memcpy(RWS_NEW(&e->arena, double, n), log_p, (size_t)n * sizeof *log_p);
            copy[rws__scores_place(e, at)] = -INFINITY;
        }
    }
    return copy ? copy : log_p;
}

static const uint32_t *gather_counts(rws_engine *e, int n)
{
    if (e->n_ends == 1 && !e->place) return e->levels[e->ends[0].level].count;
    uint32_t *count = RWS_NEW(&e->arena, uint32_t, n), at = 0;
    for (uint32_t i = 0; i < e->n_ends; i++)
        for (uint32_t row = 0; row < e->levels[e->ends[i].level].n_rows; row++)
            count[rws__scores_place(e, at++)] = e->levels[e->ends[i].level].count[row];
    return count;
}

static const double *gather_output(rws_engine *e, int n, int slot)
{
    double  *out = NULL;
    uint32_t at = 0;
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const level   *l = &e->levels[e->ends[i].level];
        const uint32_t id = output_of(e, e->ends[i].level, slot);
        if (id == NONE || e->nodes[id].dim != 1) {
            at += l->n_rows;
            continue;
        }
        if (!out) out = RWS_NEW0(&e->arena, double, n);
        const reading r = rws__node_read(e, id, e->ends[i].level);
        if (!e->place) add_values(r.value, r.row, l->n_rows, true, out + at);
        for (uint32_t row = 0; row < l->n_rows && e->place; row++)
            out[e->place[at + row]] = (double)r.value[r.row ? r.row[row] : row];
        at += l->n_rows;
    }
    return out;
}

/* Says which term of which site is NaN or inf. */
static void name_broken_term(rws_engine *e)
{
    uint32_t *level_of = RWS_NEW(&e->arena, uint32_t, e->n_terms);
    for (uint32_t l = 0; l < e->n_levels; l++)
        for (uint32_t t = e->levels[l].terms; t != NONE; t = e->terms[t].next) level_of[t] = l;
    for (uint32_t t = 0; t < e->n_terms; t++) {
        const uint32_t id = e->terms[t].node, *map = rws__level_map(e, level_of[t], e->nodes[id].all);
        const reading  r = rws__node_read(e, id, level_of[t]);
        for (uint32_t row = 0; row < e->levels[level_of[t]].n_rows; row++) {
            const float value = r.value[r.row ? r.row[row] : row];
            if (!isnan(value) && value != INFINITY) continue;
            if (rws__node_explain(e, id, map ? map[row] : row)) return;
            char text[160];
            e->status = rws_fail(&e->error, RWS_BROKEN, "The log-density of the %s at site %s is %f.",
                                 e->terms[t].kind == RWS_TERM_P ? "model" : "guide",
                                 rws__site_text(e, e->terms[t].site, e->terms[t].visit, text), rws__plain(value));
            return;
        }
    }
    e->status = rws_fail(&e->error, RWS_BROKEN, "A log-density is not a number.");
}

static bool has_terms(const rws_engine *e, rws_term kind)
{
    for (uint32_t i = 0; i < e->n_ends; i++)
        if (e->levels[e->ends[i].level].total[kind]) return true;
    return false;
}

/* Whether the density that particles were drawn from, log_d, has terms of this kind. */
static bool is_drawn_from(const rws_engine *e, rws_term kind)
{
    return !has_terms(e, RWS_TERM_D) ? kind == RWS_TERM_Q || kind == RWS_TERM_R : kind == RWS_TERM_D;
}

uint32_t rws__level_before(const rws_engine *e, uint32_t at, uint32_t *row)
{
    const level *l = &e->levels[at];
    if (l->parent == NONE) return NONE;
    const uint32_t to = l->merge ? l->merge->parts[l->merge->part[*row]].level : l->parent;
    *row = l->merge ? l->merge->row[*row] : l->up[*row];
    return to;
}

/* Says at which site row i of the table drew a value that its own density calls impossible: the first one. */
static void name_impossible_draw(rws_engine *e, int i)
{
    const origin   o = rws__scores_origin(e, i);
    const uint32_t last = e->ends[o.end].level;
    uint32_t       first = NONE, row = o.row;
    for (uint32_t l = last; l != NONE; l = rws__level_before(e, l, &row)) {
        for (uint32_t t = e->levels[l].terms; t != NONE; t = e->terms[t].next) {
            if (!is_drawn_from(e, e->terms[t].kind)) continue;
            const reading r = rws__node_read(e, e->terms[t].node, l);
            if (r.value[r.row ? r.row[row] : row] == -INFINITY && t < first) first = t;
        }
    }
    RWS_CHECK(first != NONE);
    char text[160];
    e->status = rws_fail(&e->error, RWS_BROKEN,
                         "The guide drew a value at site %s whose log-density under the guide is -inf, and which is "
                         "possible under the model; its weight would be infinite.",
                         rws__site_text(e, e->terms[first].site, e->terms[first].visit, text));
}

static bool is_broken(double x)
{
    return isnan(x) || x == INFINITY;
}

/* -inf is data; a NaN is not, and the message says where it came from. A weight is finite too: a particle that the
 * model calls possible is not drawn where its density is 0. */
static void check_numbers(rws_engine *e)
{
    const rws_scores *s = &e->scores;
    const double     *p = s->log_p, *q = s->log_q, *other = s->log_d == q ? p : s->log_d;
    double            zero = 0; /* NaN if a number is not finite */
    const int         n = s->n;
#pragma omp simd reduction(+ : zero)
    for (int i = 0; i < n; i++) zero += 0 * (p[i] + q[i] + other[i]);
    for (int i = 0; s->log_given && i < n; i++) zero += 0 * s->log_given[i];
    if (zero == 0) return;
    bool broken = false;
    for (int i = 0; i < s->n; i++)
        broken |= is_broken(s->log_p[i]) || is_broken(s->log_q[i]) || is_broken(s->log_d[i]) ||
                  (s->log_given && is_broken(s->log_given[i]));
    if (broken) {
        name_broken_term(e);
        return;
    }
    for (int i = 0; i < s->n && e->pass.mode == RWS_WAKE && e->status == RWS_OK; i++)
        if (s->log_d[i] == -INFINITY && s->log_p[i] > -INFINITY) name_impossible_draw(e, i);
}

/* What particles were drawn from, with what resampling has made of their log-weights. */
static const double *take_off(rws_engine *e, int n, const double *log_d)
{
    const double *more = gather_totals(e, n, RWS_TERM_W, RWS_TERM_W);
    double       *less = RWS_NEW(&e->arena, double, n);
    for (int i = 0; i < n; i++) less[i] = log_d[i] - more[i];
    return less;
}

static double *column_new(rws_engine *e, int n)
{
    return RWS_NEW(&e->arena, double, n + RWS_ROWS_BEHIND);
}

static double *column_of_zeros(rws_engine *e, int n)
{
    return memset(column_new(e, n), 0, (size_t)n * sizeof(double));
}

void rws__scores_columns(rws_engine *e, rws_scores *s)
{
    for (int i = 0; i < RWS_OUTPUTS; i++) s->coef_out[i] = s->out[i] ? RWS_NEW0(&e->arena, double, s->n) : NULL;
    s->L = RWS_NEW(&e->arena, double, s->B);
    s->l = column_new(e, s->n);
    s->w = column_new(e, s->n);
    for (int i = 0; i < 3; i++) s->work[i] = column_new(e, s->n);
    s->coef_p = column_of_zeros(e, s->n);
    s->coef_q = column_of_zeros(e, s->n);
    s->coef_r = column_of_zeros(e, s->n);
}

void rws__scores_make(rws_engine *e)
{
    if (e->pass.mode == RWS_COMPUTE) check_results(e);
    execute_rest(e);
    if (e->status != RWS_OK) return;
    add_up(e);
    rws_scores *s = &e->scores;
    *s = (rws_scores){.B = e->pass.n_data, .K = e->pass.n_particles};
    for (uint32_t i = 0; i < e->n_ends; i++) s->n += (int)e->levels[e->ends[i].level].n_rows;
    order_by_datum(e, s);
    e->origins = NULL;
    s->count = gather_counts(e, s->n);
    s->log_p = gather_totals(e, s->n, RWS_TERM_P, RWS_TERM_P);
    s->log_q = gather_totals(e, s->n, RWS_TERM_Q, RWS_TERM_R);
    if (e->n_given && e->pass.mode == RWS_WAKE) {
        s->log_p = exclude_missing(e, s->n, s->log_p);
        s->log_given = gather_totals(e, s->n, RWS_TERM_G, RWS_TERM_G);
        s->coef_given = RWS_NEW0(&e->arena, double, s->n);
    }
    s->log_d = has_terms(e, RWS_TERM_D) ? gather_totals(e, s->n, RWS_TERM_D, RWS_TERM_D) : s->log_q;
    if (has_terms(e, RWS_TERM_W)) s->log_d = take_off(e, s->n, s->log_d);
    for (int i = 0; i < RWS_OUTPUTS; i++) s->out[i] = gather_output(e, s->n, i);
    rws__scores_columns(e, s);
    check_numbers(e);
    if (e->status == RWS_OK) rws__sums_make(e);
}

/* Computes an output that was added after the table was made, and its column. */
void rws__scores_output(rws_engine *e, int slot)
{
    execute_rest(e);
    e->scores.out[slot] = gather_output(e, e->scores.n, slot);
    e->scores.coef_out[slot] = RWS_NEW0(&e->arena, double, e->scores.n);
}

rws_scores *rws__engine_scores(rws_engine *e)
{
    return &e->scores;
}

static void read_result(rws_engine *e, int *dim, float **result)
{
    float *out = NULL;
    size_t d = 0;
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const uint32_t last = e->ends[i].level, id = output_of(e, last, 0);
        if (id == NONE) return;
        const node *n = &e->nodes[id];
        if (!out) {
            d = (size_t)n->dim;
            out = RWS_NEW0(&e->arena, float, (size_t)e->pass.n_data *d);
        }
        RWS_CHECK((size_t)n->dim == d);
        const uint32_t *to_base = e->pass.scalar ? NULL : rws__level_map(e, last, 1);
        const reading   r = rws__node_read(e, id, last);
        for (uint32_t row = 0; row < e->levels[last].n_rows; row++)
            memcpy(out + rws__row_datum(e, last, to_base, row) * d, r.value + (r.row ? r.row[row] : row) * d,
                   d * sizeof(float));
    }
    *dim = (int)d;
    *result = out;
}

const float *rws__engine_result(rws_engine *e, int *dim)
{
    float *result = NULL;
    RWS_ENTER(e, read_result(e, dim, &result));
    return e->status == RWS_OK ? result : NULL;
}
