/* most.c - the largest number of a value, for draws whose tables must be as long as the values ask for. */
#include "engine/internal.h"

float rws_var_most(rws_path *path, rws_var v)
{
    const rws_engine *e = path->e;
    rws_path_need(path, &v, 1);
    const node *n = &e->nodes[v.id];
    float       most = -INFINITY;
    for (size_t i = 0; i < (size_t)e->levels[n->level].n_rows * (size_t)n->dim; i++)
        most = n->value[i] > most || isnan(n->value[i]) ? n->value[i] : most;
    return most;
}
