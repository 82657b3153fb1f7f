/* snapshots.c - lists of numbers with labels. */
#include "base/error.h"
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

void rws_snapshots_add(rws_snapshots *s, const rws_shown *shown)
{
    if (s->n == s->capacity) {
        s->capacity = 2 * s->capacity + 64;
        s->list = realloc(s->list, (size_t)s->capacity * sizeof *s->list);
        RWS_CHECK(s->list && "memory for a snapshot");
    }
    s->list[s->n] = *shown;
    if (shown->label) s->list[s->n].label = strdup(shown->label);
    s->n++;
}

void rws_snapshots_release(rws_snapshots *s)
{
    for (int i = 0; i < s->n; i++) free(s->list[i].label);
    free(s->list);
    *s = (rws_snapshots){0};
}
