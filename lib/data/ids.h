/* ids.h - different ids get the numbers 0, 1, 2, … in the order in which they first come.
 *
 * An id is some bytes: the cell of a text, or an element of an array. Ids are equal if their bytes are equal. The bytes
 * are not copied and must stay where they are as long as the list is used.
 */
#ifndef RWS_DATA_IDS_H
#define RWS_DATA_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *bytes;
    size_t      length;
    uint64_t    hash;
} rws_id;

/* A zeroed one is valid and empty. */
typedef struct {
    rws_id   *list; /* by number */
    int       n;
    uint32_t *table; /* by hash: the number of an id plus 1; 0: no id */
    size_t    size;  /* of the table, a power of two, at least 2 n; `list` holds half of it */
} rws_ids;

void rws__ids_release(rws_ids *ids);

/* The number of an id, which is new if it has not come before. -1 without memory. */
int rws__ids_number(rws_ids *ids, const char *bytes, size_t length);

#endif
