/* arena.h - memory that is given back all at once.
 *
 * An arena hands out 64-byte aligned pieces from a list of blocks; reset makes all of it free again and keeps the
 * blocks. After the first iterations of a steady load it never asks the system again. Blocks that were not needed in a
 * thousand resets are given back.
 */
#ifndef RWS_BASE_ARENA_H
#define RWS_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct rws_arena_block rws_arena_block;

typedef struct {
    rws_arena_block *first, *current;
    size_t           used;     /* in the current block */
    size_t           smallest; /* bytes of the first block; 0: 2^18 */
    uint64_t         n_blocks; /* blocks that were ever requested from the system */
    uint64_t         n_resets;
    /* Called when the system has no memory, unless NULL. It may leave by longjmp or by another fiber; if it returns,
     * the request is answered with NULL. The arena is as it was before the request. */
    void (*no_memory)(void *context);
    void *context;
} rws_arena;

/* A place in an arena: everything handed out after it is given back by rws__arena_release. */
typedef struct {
    rws_arena_block *block;
    size_t           used;
} rws_arena_mark;

/* A zeroed rws_arena is a valid empty one. */
void           rws__arena_free(rws_arena *a);
void           rws__arena_reset(rws_arena *a);
void          *rws__arena_alloc(rws_arena *a, size_t bytes); /* not zeroed; without memory: no_memory, or abort */
void          *rws__arena_try(rws_arena *a, size_t bytes);   /* not zeroed; NULL without memory */
void          *rws__arena_zero(rws_arena *a, size_t bytes);
rws_arena_mark rws__arena_at(const rws_arena *a);
void           rws__arena_release(rws_arena *a, rws_arena_mark mark);
void           rws__arena_jump(void *context); /* a no_memory that leaves by longjmp; context points to a jmp_buf */
size_t         rws__arena_bytes(const rws_arena *a); /* held from the system */

#define RWS_NEW(arena, type, n) ((type *)rws__arena_alloc((arena), sizeof(type) * (size_t)(n)))
#define RWS_NEW0(arena, type, n) ((type *)rws__arena_zero((arena), sizeof(type) * (size_t)(n)))
#define RWS_TRY_NEW(arena, type, n) ((type *)rws__arena_try((arena), sizeof(type) * (size_t)(n)))

#endif
