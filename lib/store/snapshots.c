/* snapshots.c - lists of numbers with labels. */
#include "store/state.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

bool rws__snapshots_add(rws_snapshots *s, const rws_shown *shown)
{
    if (!rws__list_grow(&s->list, s->n, &s->capacity, sizeof *s->list)) return false;
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
