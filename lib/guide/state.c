/* state.c - what a head sees. What depends on the datum alone is computed once per datum, and a choice enters the state of the
 * cell only if a head comes after it. */
#include "guide/internal.h"

enum { BOUND = 1000000 };

/* ---- what a path keeps */

size_t rws__guide_bytes(const rws_guide *g, int n_heads)
{
    return sizeof(memory) + (size_t)g->n_series * sizeof(series_state) + (size_t)(n_heads + 1) * sizeof(head_state);
}

static series_state *all_series(rws_path *path)
{
    return (series_state *)((memory *)rws__path_memory(path) + 1);
}

series_state *rws__guide_series(rws_path *path, const rws_guide *g, int field)
{
    return all_series(path) + g->series[field];
}

head_state *rws__guide_head_state(rws_path *path, const rws_guide *g, int i)
{
    return (head_state *)(all_series(path) + g->n_series) + i;
}

/* ---- numbers of any size as inputs of a layer */

/* sign(x) log(1 + |x|) */
static rws_var squashed(rws_path *path, rws_var x)
{
    const rws_var zero = rws_constant(path, 0), in = rws_clip(path, x, -BOUND, BOUND);
    const rws_var above = rws_apply(path, RWS_LOG1P, rws_max(path, in, zero));
    const rws_var below = rws_apply(path, RWS_LOG1P, rws_max(path, rws_affine(path, in, -1, 0), zero));
    return rws_sub(path, above, below);
}

rws_var rws__guide_onehot(rws_path *path, rws_var index, int n)
{
    return rws_onehot(path, rws_clip(path, index, 0, (float)(n - 1)), n);
}

static rws_var scaled(rws_path *path, const rws_guide *g, int field, rws_var x)
{
    if (g->n_categories[field]) return rws__guide_onehot(path, x, g->n_categories[field]);
    const rws_var at = rws_sub(path, x, rws_parameter(path, g->shift[field]));
    return rws_clip(path, rws_mul(path, at, rws_parameter(path, g->factor[field])), -20, 20);
}

/* ---- data */

/* Reads a series from both ends; keeps the states at each item and returns the last ones. */
static rws_var read_series(rws_path *path, const rws_guide *g, int field)
{
    series_state *s = rws__guide_series(path, g, field);
    const int     n = s->length;
    rws_var      *items = rws_alloc(path, (size_t)(n + 1) * sizeof *items),
            *states = rws_alloc(path, (size_t)(n + 1) * sizeof *states);
    for (int t = 0; t < n; t++) items[t] = scaled(path, g, field, rws_item(path, g->setup->fields[field].name, t));
    const rws_var last = rws_bidirectional(path, g->reader[field], items, n, states);
    uint32_t     *ids = rws_alloc(path, (size_t)(n + 1) * sizeof *ids);
    for (int t = 0; t < n; t++) ids[t] = states[t].id;
    s->states = ids;
    return last;
}

static void encode(rws_path *path, const rws_guide *g, memory *m)
{
    rws_var *parts = rws_alloc(path, (size_t)g->setup->n_fields * sizeof *parts);
    int      n = 0;
    for (int i = 0; i < g->setup->n_fields; i++)
        if (g->reader[i]) parts[n++] = read_series(path, g, i);
        else if (!g->setup->fields[i].label)
            parts[n++] = scaled(path, g, i, rws_observed(path, g->setup->fields[i].name));
    if (n == 0) return;
    const rws_var all = n == 1 ? parts[0] : rws_concat(path, parts, n);
    m->encoded = rws_apply(path, RWS_ELU, rws_linear(path, g->encoder, all)).id;
}

/* How many items the program has come past: of a series that it observes, those that it has observed; of an input, as many as of
 * the series that it has observed most of. */
static int items_past(rws_path *path, const rws_guide *g, int field)
{
    int most = 0;
    if (!g->setup->fields[field].input) return rws__guide_series(path, g, field)->seen;
    for (int i = 0; i < g->setup->n_fields; i++)
        if (g->reader[i] && rws__guide_series(path, g, i)->seen > most) most = rws__guide_series(path, g, i)->seen;
    return most;
}

/* The states of the readers at the items that come next; zeros behind the last item. */
static rws_var next(rws_path *path, const rws_guide *g)
{
    rws_var *parts = rws_alloc(path, (size_t)g->n_series * sizeof *parts);
    int      n = 0;
    for (int i = 0; i < g->setup->n_fields; i++) {
        if (!g->reader[i]) continue;
        const series_state *s = rws__guide_series(path, g, i);
        const int           at = items_past(path, g, i);
        parts[n++] = at < s->length ? rws__path_value(path, s->states[at])
                                    : rws_zeros(path, rws_layer_picture(g->reader[i], NULL, NULL, NULL));
    }
    return n == 1 ? parts[0] : rws_concat(path, parts, n);
}

int rws__guide_about(rws_path *path, const rws_guide *g, rws_var about[2])
{
    memory *m = rws__path_memory(path);
    int     n = 0;
    if (!m->encoded) encode(path, g, m);
    if (m->encoded) about[n++] = rws__path_value(path, m->encoded);
    if (g->n_series) about[n++] = next(path, g);
    return n;
}

/* ---- choices */

static rws_var value_of(rws_path *path, const head *h, rws_var value)
{
    if (h->n_choices > 2 && h->dim == 1) return rws__guide_onehot(path, value, h->n_choices);
    if (h->n_choices || h->support == RWS_SUPPORT_BITS || h->support == RWS_SUPPORT_UNIT) return value;
    return squashed(path, value);
}

/* The state after all choices so far. */
static rws_var advance(rws_path *path, const rws_guide *g, memory *m)
{
    rws_var state = m->state ? rws__path_value(path, m->state) : rws_zeros(path, g->sizes.memory);
    if (!m->choice) return state;
    const head   *h = &g->heads[m->chosen_at];
    const rws_var in = rws_linear(path, h->up, value_of(path, h, rws__path_value(path, m->choice)));
    state = rws_gru(path, g->cell, &in, 1, state);
    m->state = state.id;
    m->choice = 0;
    return state;
}

void rws__guide_chose(rws_path *path, const rws_guide *g, const head *h, rws_var value)
{
    memory *m = rws__path_memory(path);
    if (g->cell) advance(path, g, m);
    m->choice = value.id;
    m->chosen_at = (int)(h - g->heads);
    rws__guide_head_state(path, g, m->chosen_at)->visits++;
}

/* ---- a head */

/* The parameters of the prior as inputs: logarithms of probabilities down to -10, other numbers squashed. */
static rws_var about_prior(rws_path *path, const head *h, const rws_var *prior, int n)
{
    const rws_var all = n == 1 ? prior[0] : rws_concat(path, prior, n);
    if (h->n_choices || h->support == RWS_SUPPORT_BITS) return rws_clip(path, all, -10, 10);
    return squashed(path, all);
}

rws_var rws__guide_hidden(rws_path *path, const rws_guide *g, const head *h, const rws_var *prior)
{
    const int visit = rws__guide_head_state(path, g, (int)(h - g->heads))->visits;
    const int last = h->most_visits < MAX_VISITS ? h->most_visits : MAX_VISITS;
    rws_var   parts[5];
    int       n = rws__guide_about(path, g, parts), n_params = 0;
    if (g->cell) parts[n++] = advance(path, g, rws__path_memory(path));
    for (int dims = 0; dims < h->n_prior && !h->grows; n_params++) dims += rws_dim(path, prior[n_params]);
    if (n_params && h->n_prior <= MAX_WIDTH) parts[n++] = about_prior(path, h, prior, n_params);
    if (h->most_visits > 1) parts[n++] = rws_onehot_at(path, visit < last ? visit : last - 1, last);
    return rws_apply(path, RWS_ELU, rws_linear_parts(path, h->hidden, parts, n));
}
