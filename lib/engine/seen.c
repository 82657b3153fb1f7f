/* seen.c - fields of the data: who may read them, and who may use what was made of them.
 *
 * Both programs may read an input. The guide alone reads an observed field, and the model must not use what the guide has
 * made of one: a model that knows the datum explains it without effort, and its evidence means nothing. In a wake pass the
 * guide reads a node of its own, which is marked as seen. So is what is made of it, up to the next draw:
 *
 *     guide    x (seen)  ->  mlp(x) (seen)  ->  z ~ normal(mlp(x), 1), a value of the site: not seen
 *     model    z  ->  x ~ normal(f(z), 1), scored at a node that is not seen
 *
 * A node that the model uses stops the pass if it is seen. A draw whose log-density was made before the value counted as
 * drawn may leave marks behind; they go when the operation is asked for again (record.c). */
#include "engine/internal.h"

#include "base/nearest.h"

#include <string.h>

/* The place of a field among those that were declared. */
static int find(rws_path *path, const char *field, const char *function)
{
    const rws_engine *e = path->e;
    rws_nearest       near = rws__nearest_to(field);
    if (!field) rws__path_mistake(path, "%s was given no name of a field (NULL).", function);
    for (int i = 0; i < e->n_fields; i++) {
        rws__nearest_try(&near, e->fields[i].name);
        if (strcmp(e->fields[i].name, field) == 0) return i;
    }
    rws__path_fail(path, RWS_BAD_INPUT, "The data have no field \"%s\"%s.", field, rws__nearest_hint(&near).text);
}

const rws_field *rws_path_field(rws_path *path, const char *name)
{
    return &path->e->fields[find(path, name, __func__)];
}

int rws__field_to_read(rws_path *path, const char *field, const char *function)
{
    const int        i = find(path, field, function);
    const rws_field *f = &path->e->fields[i];
    if (path->side == RWS_SIDE_MODEL && !f->input && !f->label)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The model looks at the data (field \"%s\"); only a guide may. What the model is conditional "
                       "on is an input (rws_setup_input).",
                       field);
    if (f->label)
        rws__path_fail(path, RWS_BAD_INPUT, "The %s looks at \"%s\", which is a label: only metrics may.",
                       rws__side_name(path->side), field);
    return i;
}

uint32_t rws__field_place(const rws_path *path, int field)
{
    const uint32_t own = (uint32_t)(path->e->n_fields + field);
    return path->side == RWS_SIDE_GUIDE && path->field[own] ? own : (uint32_t)field;
}

rws_var rws_observed(rws_path *path, const char *field)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    const int      i = rws__field_to_read(path, field, "rws_observed");
    const uint32_t id = path->field[rws__field_place(path, i)];
    if (path->e->fields[i].most && path->side != RWS_SIDE_NONE)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The %s reads \"%s\" as a whole, but it is a series; rws_length and rws_item read it.",
                       rws__side_name(path->side), field);
    if (!id)
        rws__path_fail(path, RWS_BAD_INPUT,
                       "The guide reads the field \"%s\", but the model never visited a site of that name.", field);
    return rws__returns(path, path_var(path, id));
}

/* The name of a field that a node is made of, or NULL. */
static const char *field_behind(const rws_path *path, uint32_t id)
{
    const rws_engine *e = path->e;
    const node       *n = &e->nodes[id];
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n->n_in && !more; i++)
            if (n->in[i] && e->nodes[n->in[i]].seen) n = &e->nodes[n->in[i]], more = true;
    }
    for (int f = 0; f < e->n_fields; f++) {
        if (&e->nodes[path->field[e->n_fields + f]] == n) return e->fields[f].name;
        for (int t = 0; e->item_nodes && e->item_nodes[e->n_fields + f] && t < e->fields[f].most; t++)
            if (&e->nodes[e->item_nodes[e->n_fields + f][t]] == n) return e->fields[f].name;
    }
    return NULL;
}

void rws__path_expect_unseen(rws_path *path, rws_var v)
{
    if (path->side != RWS_SIDE_MODEL || !path->e->nodes[v.id].seen) return;
    const char *name = field_behind(path, v.id);
    rws__path_mistake(
        path,
        "the model uses a value that the guide has made of the data%s%s%s; only a guide may look at what the "
        "model observes. What the model is conditional on is an input (rws_setup_input).",
        name ? " (field \"" : "", name ? name : "", name ? "\")" : "");
}
