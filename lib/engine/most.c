/* most.c - the largest number of a value, for draws whose tables must be as long as the values ask for. */
#include "engine/internal.h"

float rws__var_most(rws_path *path, rws_var v)
{
    rws__path_need(path, &v, 1);
    const reading r = rws__node_read(path->e, v.id, path->level);
    const size_t  n = path->e->levels[path->level].n_rows, dim = (size_t)path->e->nodes[v.id].dim;
    float         most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const float *row = r.value + (r.row ? r.row[i] : i) * dim;
        for (size_t j = 0; j < dim; j++) most = row[j] > most || isnan(row[j]) ? row[j] : most;
    }
    return most;
}
