#include "base/arena.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 64
#define SMALLEST_BLOCK ((size_t)1 << 18)
#define PATIENCE 1000 /* resets after which blocks that were not needed go back to the system */

struct rws_arena_block {
    rws_arena_block *next;
    size_t           bytes;     /* size of data */
    uint64_t         needed_at; /* n_resets when the block was last needed */
    char             pad[ALIGN - sizeof(rws_arena_block *) - sizeof(size_t) - sizeof(uint64_t)];
    char             data[];
};

static void free_blocks(rws_arena_block *b)
{
    for (rws_arena_block *next; b; b = next) {
        next = b->next;
        free(b);
    }
}

void rws__arena_free(rws_arena *a)
{
    free_blocks(a->first);
    *a = (rws_arena){0};
}

/* Blocks are used one after the other, so that the unused ones are the last ones of the list, and the largest. */
static void shrink(rws_arena *a)
{
    for (rws_arena_block *b = a->first; b; b = b->next)
        if (b->next && b->next->needed_at + PATIENCE <= a->n_resets) {
            free_blocks(b->next);
            b->next = NULL;
        }
}

void rws__arena_reset(rws_arena *a)
{
    a->current = a->first;
    a->used = 0;
    if (++a->n_resets % PATIENCE == 0) shrink(a);
}

/* Moves on to a block with `bytes` free: the next one if it is large enough, else a new one in front of it. False
 * if the system has no memory; the arena is then as it was. */
static bool grow(rws_arena *a, size_t bytes)
{
    rws_arena_block *next = a->current ? a->current->next : a->first;
    if (!next || next->bytes < bytes) {
        size_t size = a->current ? 2 * a->current->bytes : a->smallest ? a->smallest : SMALLEST_BLOCK;
        if (size < bytes) size = bytes;
        rws_arena_block *b = aligned_alloc(ALIGN, (sizeof *b + size + ALIGN - 1) / ALIGN * ALIGN);
        if (!b) return false;
        b->bytes = size;
        b->next = next;
        if (a->current) a->current->next = b;
        else a->first = b;
        next = b;
        a->n_blocks++;
    }
    next->needed_at = a->n_resets;
    a->current = next;
    a->used = 0;
    return true;
}

static inline void *take(rws_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) return NULL; /* smaller sizes cannot wrap around in what follows */
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if ((!a->current || a->used + bytes > a->current->bytes) && !grow(a, bytes)) return NULL;
    void *p = a->current->data + a->used;
    a->used += bytes;
    return p;
}

void *rws__arena_alloc(rws_arena *a, size_t bytes)
{
    void *p = take(a, bytes);
    if (__builtin_expect(!p, 0)) {
        RWS_CHECK(a->no_memory && "memory for the arena");
        a->no_memory(a->context);
    }
    return p;
}

void *rws__arena_try(rws_arena *a, size_t bytes)
{
    return take(a, bytes);
}

void *rws__arena_zero(rws_arena *a, size_t bytes)
{
    void *p = rws__arena_alloc(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void rws__arena_jump(void *context)
{
    longjmp(*(jmp_buf *)context, 1);
}

rws_arena_mark rws__arena_at(const rws_arena *a)
{
    return (rws_arena_mark){a->current, a->used};
}

void rws__arena_release(rws_arena *a, rws_arena_mark mark)
{
    a->current = mark.block ? mark.block : a->first;
    a->used = mark.block ? mark.used : 0;
}

size_t rws__arena_bytes(const rws_arena *a)
{
    size_t total = 0;
    for (const rws_arena_block *b = a->first; b; b = b->next) total += b->bytes;
    return total;
}
