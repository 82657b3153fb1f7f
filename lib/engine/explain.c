/* explain.c - rows that an op cannot work with (rws_op.explain): an index out of range, a negative standard deviation.
 *
 * An op may compute all rows of its nodes, also rows that no path reads (demand.c). A value that was made before a branch has
 * rows of both sides, and so has what one side makes of it afterwards:
 *
 *     z            rows 1 4 7              a level with a row for each value of z
 *     z < 5        rows 1 4                the level of a path that continues with pick(a, z), where a has 5 numbers
 *     pick(a, z)   rows 1 4 7              computed where z is; the row of 7 is refused, but no path reads it
 *
 * So a refused row fails the pass only if a row in demand is made of it: a row of a value that a waiting path needs or,
 * at the end of the pass, a row of a log-density, an output or a report.
 */
#include "engine/internal.h"

#include <stdio.h>

bool rws__node_explain(rws_engine *e, uint32_t id, uint32_t row)
{
    row = rws__node_row(e, &id, row);
    const node *n = &e->nodes[id];
    if (row == NONE || !n->op || !n->op->explain || n->call == NONE) return false;
    const rws_call *c = &e->calls[n->call].c;
    const size_t    first = (size_t)(n->value - c->out) / (size_t)c->dim; /* the node's first row in the call */
    char            text[160], site[200];
    const char     *side = n->side == RWS_SIDE_NONE ? "" : rws__side_name(n->side);
    if (n->site != NO_SITE)
        snprintf(site, sizeof site, "%s%s%s", rws__site_text(e, n->site, n->visit, text), *side ? " in the " : "",
                 side);
    rws_error        error;
    const rws_status status = n->op->explain(c, first + row, n->site == NO_SITE ? NULL : site, &error);
    if (status == RWS_OK) return false;
    e->status = status;
    e->error = error;
    return true;
}

/* made[i] tells whether node i is node id or is computed from it. */
static const bool *made_of(rws_engine *e, uint32_t id)
{
    bool *made = RWS_NEW0(&e->arena, bool, e->n_nodes);
    made[id] = true;
    for (uint32_t i = id + 1; i < e->n_nodes; i++) /* inputs have smaller numbers */
    {
        uint32_t        n_in;
        const uint32_t *in = node_inputs(e, &e->nodes[i], &n_in);
        for (uint32_t s = 0; s < n_in; s++) made[i] |= made[in[s]];
    }
    return made;
}

/* Whether a level is an ancestor of another one, or the same. Ancestors have smaller numbers. */
static bool is_above(const rws_engine *e, uint32_t at, uint32_t above)
{
    while (at != NONE && at > above) at = e->levels[at].parent;
    return at == above;
}

/* The same for a node of a step before: the rows that rows of the level come from, through the parts of merged levels. */
static bool explain_rows_before(rws_engine *e, uint32_t id, uint32_t at)
{
    bool **from = RWS_NEW0(&e->arena, bool *, at + 1);
    for (uint32_t l = at + 1; l-- > e->nodes[id].level;) {
        const merge *m = e->levels[l].merge;
        const bool   mine = l == at;
        for (uint32_t row = 0; row < e->levels[l].n_rows && (mine || from[l]); row++) {
            if (!mine && !from[l][row]) continue;
            const uint32_t to = m ? m->parts[m->part[row]].level : e->levels[l].parent;
            if (to == NONE) continue;
            if (!from[to]) from[to] = RWS_NEW0(&e->arena, bool, e->levels[to].n_rows);
            from[to][m ? m->row[row] : e->levels[l].up[row]] = true;
        }
    }
    const uint32_t  to = e->nodes[id].level;
    const uint32_t *map = rws__level_map(e, to, e->nodes[id].all);
    for (uint32_t row = 0; row < e->levels[to].n_rows && from[to]; row++)
        if (from[to][row] && rws__node_explain(e, id, map ? map[row] : row)) return true;
    return false;
}

/* Fails the pass and returns true if a row of node id that a level reads was refused. */
static bool explain_rows(rws_engine *e, uint32_t id, uint32_t at)
{
    if (!is_above(e, at, e->nodes[id].level)) return explain_rows_before(e, id, at);
    const uint32_t *map = rws__level_map(e, at, e->nodes[id].all);
    for (uint32_t row = 0; row < e->levels[at].n_rows; row++)
        if (rws__node_explain(e, id, map ? map[row] : row)) return true;
    return false;
}

static bool explain_segment(rws_engine *e, const bool *made, uint32_t id, const segment *s)
{
    for (uint32_t k = 0; k < s->n_reports; k++)
        if (made[s->reports[k].node] && explain_rows(e, id, s->level)) return true;
    for (uint32_t k = 0; k < s->n_trace && e->pass.choices; k++)
        if (made[s->trace[k].var] && explain_rows(e, id, s->level)) return true;
    return false;
}

/* The same for the rows of node id that waiting paths read or, where no path waits, the table of scores. */
static bool explain_node(rws_engine *e, uint32_t id)
{
    const bool *made = made_of(e, id);
    for (uint32_t i = 0; i < e->n_waiting; i++) {
        const rws_path *path = e->paths[e->waiting[i]];
        for (int k = 0; k < path->n_wants; k++)
            if (made[path->wants[k].id] && explain_rows(e, id, path->level)) return true;
    }
    if (e->n_waiting) return false;
    for (uint32_t l = 0; l < e->n_levels; l++) {
        for (uint32_t t = e->levels[l].terms; t != NONE; t = e->terms[t].next)
            if (made[e->terms[t].node] && explain_rows(e, id, l)) return true;
        for (int s = 0; s < RWS_OUTPUTS; s++)
            if (e->levels[l].outputs[s] != NONE && made[e->levels[l].outputs[s]] && explain_rows(e, id, l)) return true;
    }
    for (uint32_t i = 0; i < e->n_ends; i++) {
        const rws_path *path = e->paths[e->ends[i].path];
        const segment   own = rws__segment_of(path);
        if (explain_segment(e, made, id, &own)) return true;
        for (int f = 0; f < e->n_fields && e->pass.choices; f++)
            if (made[path->field[f]] && explain_rows(e, id, path->level)) return true;
    }
    for (uint32_t i = 0; i < e->n_segments; i++)
        if (explain_segment(e, made, id, e->segments[i])) return true;
    return false;
}

void rws__call_explain(rws_engine *e, uint32_t call_number)
{
    const call *c = &e->calls[call_number];
    for (uint32_t i = 0; i < c->n_nodes; i++)
        if (explain_node(e, e->nodes[e->order[c->first + i]].origin)) return;
}
