/* list.h - a list that grows by one item at a time. */
#ifndef RWS_BASE_LIST_H
#define RWS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes space for one more item in a list of n items of `size` bytes, whose pointer is at `list`. False without memory: the
 * list is as it was. */
static inline bool rws__list_grow(void *list, int n, int *capacity, size_t size)
{
    void *at;
    if (n < *capacity) return true;
    const int more = 2 * *capacity + 16;
    memcpy(&at, list, sizeof at); /* the pointer is one to any type */
    void *longer = realloc(at, (size_t)more * size);
    if (!longer) return false;
    memcpy(list, &longer, sizeof longer);
    *capacity = more;
    return true;
}

#endif
