#include "failing.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef FAILING_WRAPPED
#define NAME(name) __wrap_##name
#define REAL(name) __real_##name
#define PREFIX "__wrap_"
#else
#define NAME(name) name
#define REAL(name) __libc_##name
#define PREFIX ""
#endif
#define PLACE __builtin_return_address(0)

failing_hooks failing_hook;

static atomic_long n_requests, n_live, fails_at = -1;
static atomic_bool also_later;

/* A hook is being called. The model keeps the first use from asking for memory. */
static __thread bool paused __attribute__((tls_model("initial-exec")));

void failing_set(long n, bool and_later)
{
    fails_at = n;
    also_later = and_later;
    n_requests = 0;
}

long failing_count(void)
{
    return n_requests;
}

long failing_live(void)
{
#ifdef FAILING_WRAPPED
    return 0;
#else
    return n_live;
#endif
}

/* Counts a request from this place in the code; whether it is to fail. */
static bool refused(const void *place)
{
    if (paused) return false;
    const long n = n_requests++, at = fails_at;
    if (at < 0 || n < at || (n > at && !also_later)) return false;
    paused = true;
    if (failing_hook.refused) failing_hook.refused(place);
    paused = false;
    errno = ENOMEM;
    return true;
}

static void *made(void *block)
{
    if (!block || paused) return block;
    n_live++;
    paused = true;
    if (failing_hook.made) failing_hook.made(block);
    paused = false;
    return block;
}

static void freed(void *block)
{
    if (!block || paused) return;
    n_live--;
    paused = true;
    if (failing_hook.freed) failing_hook.freed(block);
    paused = false;
}

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *block, size_t size);
void *REAL(memalign)(size_t align, size_t size);
void  REAL(free)(void *block);

#ifdef FAILING_WRAPPED
void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int   __real_munmap(void *map, size_t size);
int   __real_mprotect(void *map, size_t size, int protection);
#else
#define __real_mmap(...) ((void *)syscall(SYS_mmap, __VA_ARGS__))
#define __real_munmap(...) ((int)syscall(SYS_munmap, __VA_ARGS__))
#define __real_mprotect(...) ((int)syscall(SYS_mprotect, __VA_ARGS__))
#endif

#pragma GCC visibility push(default) /* the libraries are to find these too */

void *NAME(malloc)(size_t size)
{
    return refused(PLACE) ? NULL : made(REAL(malloc)(size));
}

void *NAME(calloc)(size_t n, size_t size)
{
    return refused(PLACE) ? NULL : made(REAL(calloc)(n, size));
}

void *NAME(memalign)(size_t align, size_t size)
{
    return refused(PLACE) ? NULL : made(REAL(memalign)(align, size));
}

void *NAME(aligned_alloc)(size_t align, size_t size)
{
    return refused(PLACE) ? NULL : made(REAL(memalign)(align, size));
}

int NAME(posix_memalign)(void **block, size_t align, size_t size)
{
    void *b = refused(PLACE) ? NULL : made(REAL(memalign)(align, size));
    if (!b) return ENOMEM;
    *block = b;
    return 0;
}

void NAME(free)(void *block)
{
    freed(block);
    REAL(free)(block);
}

/* A size of 0 frees the block, which cannot fail. */
void *NAME(realloc)(void *block, size_t size)
{
    if ((size || !block) && refused(PLACE)) return NULL;
    void *new = REAL(realloc)(block, size);
    if (new || !size) freed(block);
    return made(new);
}

static void *map(const void *place, void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    void *new = refused(place) ? MAP_FAILED : __real_mmap(at, size, protection, flags, file, offset);
    return new == MAP_FAILED ? new : made(new);
}

/* The headers call mmap by the second name where offsets have 64 bits. */
void *mmap_plain(void *at, size_t size, int protection, int flags, int file, off_t offset) __asm__(PREFIX "mmap");
void *mmap_plain(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return map(PLACE, at, size, protection, flags, file, offset);
}

void *mmap_large(void *at, size_t size, int protection, int flags, int file, off_t offset) __asm__(PREFIX "mmap64");
void *mmap_large(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return map(PLACE, at, size, protection, flags, file, offset);
}

int NAME(munmap)(void *at, size_t size)
{
    freed(at);
    return __real_munmap(at, size);
}

int NAME(mprotect)(void *at, size_t size, int protection)
{
    return refused(PLACE) ? -1 : __real_mprotect(at, size, protection);
}

/* Texts that the C library makes, with requests of its own, which are not wrapped. */
#ifdef FAILING_WRAPPED

static char *copy(const void *place, const char *text, size_t length)
{
    char *new = refused(place) ? NULL : made(REAL(malloc)(length + 1));
    if (!new) return NULL;
    new[length] = '\0';
    return memcpy(new, text, length);
}

char *NAME(strdup)(const char *text)
{
    return copy(PLACE, text, strlen(text));
}

char *NAME(strndup)(const char *text, size_t most)
{
    return copy(PLACE, text, strnlen(text, most));
}

static int print(const void *place, char **out, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *out = n < 0 || refused(place) ? NULL : made(REAL(malloc)((size_t)n + 1));
    return *out ? vsnprintf(*out, (size_t)n + 1, format, args) : -1;
}

int NAME(vasprintf)(char **out, const char *format, va_list args)
{
    return print(PLACE, out, format, args);
}

int NAME(asprintf)(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = print(PLACE, out, format, args);
    va_end(args);
    return n;
}

#endif
