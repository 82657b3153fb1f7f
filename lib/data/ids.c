#include "data/ids.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void rws__ids_release(rws_ids *ids)
{
    free(ids->list);
    free(ids->table);
    *ids = (rws_ids){0};
}

/* The high bits are folded into the low ones, which the table uses. */
static uint64_t hash_of(const char *bytes, size_t length)
{
    const uint64_t h = rws__hash(RWS_HASH_BEGIN, bytes, length);
    return h ^ h >> 32;
}

static bool grow(rws_ids *ids)
{
    const size_t size = ids->size ? 2 * ids->size : 64;
    uint32_t    *table = calloc(size, sizeof *table);
    rws_id      *list = realloc(ids->list, size / 2 * sizeof *list);
    if (list) ids->list = list;
    if (!table || !list) {
        free(table);
        return false;
    }
    for (int i = 0; i < ids->n; i++) {
        size_t at = ids->list[i].hash & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = (uint32_t)i + 1;
    }
    free(ids->table);
    ids->table = table;
    ids->size = size;
    return true;
}

int rws__ids_number(rws_ids *ids, const char *bytes, size_t length)
{
    if (2 * (size_t)ids->n >= ids->size && !grow(ids)) return -1;
    const uint64_t hash = hash_of(bytes, length);
    size_t         at = hash & (ids->size - 1);
    for (; ids->table[at]; at = (at + 1) & (ids->size - 1)) {
        const rws_id *id = &ids->list[ids->table[at] - 1];
        if (id->hash == hash && id->length == length && memcmp(id->bytes, bytes, length) == 0)
            return (int)ids->table[at] - 1;
    }
    ids->list[ids->n] = (rws_id){bytes, length, hash};
    ids->table[at] = (uint32_t)++ids->n;
    return ids->n - 1;
}
