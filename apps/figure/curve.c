#include "figure/curve.h"

#include <stdbool.h>

rws_curve rws__gathered_curve(const rws_gathered *g, const char *method)
{
    const bool band = g->n_runs > 2;
    return (rws_curve){.method = method,
                       .n = g->n,
                       .x = g->x,
                       .y = g->median,
                       .low = band ? g->low : NULL,
                       .high = band ? g->high : NULL};
}
