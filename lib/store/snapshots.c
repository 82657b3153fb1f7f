/* snapshots.c - lists of numbers with labels. */
#include "store/state.h"

#include <stdlib.h>
#include <string.h>

bool rws__snapshots_add(rws_snapshots *s, const rws_shown *shown)
{
    if (s->n == s->capacity) {
        const int  capacity = 2 * s->capacity + 64;
        rws_shown *longer = realloc(s->list, (size_t)capacity * sizeof *longer);
        if (!longer) return false;
        s->list = longer;
        s->capacity = capacity;
    }
    rws_shown copy = *shown;
    if (shown->label && !(copy.label = strdup(shown->label))) return false;
    s->list[s->n++] = copy;
    return true;
}

void rws__snapshots_release(rws_snapshots *s)
{
    for (int i = 0; i < s->n; i++) free(s->list[i].label);
    free(s->list);
    *s = (rws_snapshots){0};
}
