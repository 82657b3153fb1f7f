/* numbers.c - hash tables of numbers: of levels and dependences that may be asked for again within a pass. */
#include "engine/internal.h"

/* Hashes that agree in these bits are taken for equal, so that whoever finds a number compares what it stands for. */
static uint64_t upper(uint64_t hash)
{
    return hash >> 32 << 32;
}

uint32_t rws__numbers_next(const numbers *t, uint64_t hash, uint32_t *place)
{
    while (t->capacity) {
        const uint64_t slot = t->slots[((uint32_t)(hash >> 32) + (*place)++) & (t->capacity - 1)];
        if (!slot) break;
        if (upper(slot) == upper(hash)) return (uint32_t)slot;
    }
    return 0;
}

static void put(numbers *t, uint64_t slot)
{
    uint32_t at = (uint32_t)(slot >> 32) & (t->capacity - 1);
    while (t->slots[at]) at = (at + 1) & (t->capacity - 1);
    t->slots[at] = slot;
}

uint32_t rws__numbers_add(rws_engine *e, numbers *t, uint64_t hash, uint32_t number)
{
    if (2 * t->n >= t->capacity) {
        const numbers old = *t;
        t->capacity = old.capacity ? 4 * old.capacity : 64;
        t->slots = RWS_NEW0(&e->arena, uint64_t, t->capacity);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.slots[i]) put(t, old.slots[i]);
    }
    t->n++;
    put(t, upper(hash) | number);
    return number;
}
