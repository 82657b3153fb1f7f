/* most.c - the largest number of a value, for draws whose tables must be as long as the values ask for. */
#include "engine/internal.h"

float rws_var_most(rws_path *path, rws_var v)
{
    rws_path_need(path, &v, 1);
    const reading r = rws_node_read(path->e, v.id, path->level);
    float         most = -INFINITY;
    for (size_t i = 0; i < (size_t)r.n * (size_t)path->e->nodes[v.id].dim; i++)
        most = r.value[i] > most || isnan(r.value[i]) ? r.value[i] : most;
    return most;
}
