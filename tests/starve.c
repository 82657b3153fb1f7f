/* starve.c - a shared object for LD_PRELOAD: one request for memory of a program fails.
 *
 * Requests of the program itself are counted or, if STARVE_LIBRARY is set, those of the library whose path has this text in
 * it. Others always get their memory: some libraries abort without it by design. The request number STARVE_AT fails; the
 * file STARVE_FILE then has the place of the request in the program, for addr2line.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

static struct {
    uintptr_t first, end;
} counted[8]; /* code whose requests are counted; the program's comes first */

static int       n_counted;
static uintptr_t base;
static long      left = -1; /* requests until the one that fails; negative: none */
static bool      ready;

/* Notes where the code of an object lies. */
static int note_object(struct dl_phdr_info *about, size_t size, void *context)
{
    (void)size, (void)context;
    const bool  program = !about->dlpi_name[0] && !base;
    const char *other = getenv("STARVE_LIBRARY");
    if (!program && !(other && strstr(about->dlpi_name, other))) return 0;
    if (program && other) {
        base = 1;
        return 0;
    }
    if (program) base = about->dlpi_addr ? about->dlpi_addr : 1;
    for (int i = 0; i < about->dlpi_phnum && n_counted < 8; i++) {
        const ElfW(Phdr) *p = &about->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        counted[n_counted].first = about->dlpi_addr + p->p_vaddr;
        counted[n_counted++].end = about->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 0;
}

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("STARVE_AT");
    if (!at) return;
    dl_iterate_phdr(note_object, NULL);
    left = atol(at);
    ready = true;
}

static void tell(uintptr_t from)
{
    const char *path = getenv("STARVE_FILE");
    char        text[32];
    const int   fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    const int   n = snprintf(text, sizeof text, "%lx\n", (unsigned long)(from - base - 1));
    if (fd < 0 || write(fd, text, (size_t)n) < 0) return;
    close(fd);
}

/* Whether the request from this place in the code fails. */
static bool fails(const void *place)
{
    const uintptr_t from = (uintptr_t)place;
    if (!ready) return false;
    for (int i = 0; i < n_counted; i++) {
        if (from < counted[i].first || from >= counted[i].end) continue;
        if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) != 0) return false;
        tell(from);
        errno = ENOMEM;
        return true;
    }
    return false;
}

#define PLACE __builtin_return_address(0)

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return fails(PLACE) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(PLACE) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    return fails(PLACE) ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails(PLACE) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    void *b = fails(PLACE) ? NULL : __libc_memalign(align, size);
    if (!b) return ENOMEM;
    *block = b;
    return 0;
}

char *strdup(const char *text)
{
    const size_t n = strlen(text) + 1;
    char        *copy = fails(PLACE) ? NULL : __libc_malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

char *strndup(const char *text, size_t most)
{
    const size_t n = strnlen(text, most);
    char        *copy = fails(PLACE) ? NULL : __libc_malloc(n + 1);
    if (!copy) return NULL;
    copy[n] = '\0';
    return memcpy(copy, text, n);
}

int vasprintf(char **out, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *out = n < 0 || fails(PLACE) ? NULL : __libc_malloc((size_t)n + 1);
    return *out ? vsnprintf(*out, (size_t)n + 1, format, args) : -1;
}

int asprintf(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    *out = n < 0 || fails(PLACE) ? NULL : __libc_malloc((size_t)n + 1);
    if (!*out) return -1;
    va_start(args, format);
    vsnprintf(*out, (size_t)n + 1, format, args);
    va_end(args);
    return n;
}

#pragma GCC visibility pop
