/* shortage.c - the linker puts these in the place of malloc and its kin: -Wl,--wrap=malloc,… */
#include "shortage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_long n_requests, fails_at = -1;
static atomic_bool and_later;

void shortage_set(long n, int from_then_on)
{
    fails_at = n;
    and_later = from_then_on;
    n_requests = 0;
}

long shortage_count(void)
{
    return n_requests;
}

static bool refuse(void)
{
    const long n = n_requests++, at = fails_at;
    if (at < 0 || !(n == at || (n > at && and_later))) return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int   __real_mprotect(void *at, size_t bytes, int protection);

void *__wrap_malloc(size_t bytes)
{
    return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return refuse() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return refuse() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return refuse() ? NULL : __real_aligned_alloc(alignment, bytes);
}

char *__wrap_strdup(const char *text)
{
    return refuse() ? NULL : __real_strdup(text);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return refuse() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, offset);
}

/* What mmap is called where offsets have 64 bits. */
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return __wrap_mmap(at, bytes, protection, flags, file, offset);
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    return refuse() ? -1 : __real_mprotect(at, bytes, protection);
}
