/* starve.c - with failing.c, a shared object for LD_PRELOAD: one request for memory of a program fails.
 *
 * Requests of the program itself count or, if STARVE_LIBRARY is set, those of the library whose path has this text in it.
 * Others always get their memory: some libraries abort without it by design. The request number STARVE_AT, from 1, fails;
 * the file STARVE_FILE then has the place of the request in the program, for addr2line.
 */
#include "failing.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    uintptr_t first, end;
} counted[8]; /* code whose requests count */

static int       n_counted;
static uintptr_t base; /* of the program; 1 if it lies where it was linked to */

/* Notes where the code of an object lies. The program comes first and has no name. */
static int note_object(struct dl_phdr_info *about, size_t size, void *context)
{
    (void)size, (void)context;
    const bool  program = !about->dlpi_name[0] && !base;
    const char *other = getenv("STARVE_LIBRARY");
    if (program) base = about->dlpi_addr && !other ? about->dlpi_addr : 1;
    if (other ? program || !strstr(about->dlpi_name, other) : !program) return 0;
    for (int i = 0; i < about->dlpi_phnum && n_counted < 8; i++) {
        const ElfW(Phdr) *p = &about->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        counted[n_counted].first = about->dlpi_addr + p->p_vaddr;
        counted[n_counted++].end = about->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 0;
}

static bool counts(const void *place)
{
    for (int i = 0; i < n_counted; i++)
        if ((uintptr_t)place >= counted[i].first && (uintptr_t)place < counted[i].end) return true;
    return false;
}

static void tell(const void *place)
{
    const char *path = getenv("STARVE_FILE");
    const int   fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0) return;
    dprintf(fd, "%lx\n", (unsigned long)((uintptr_t)place - base - 1));
    close(fd);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("STARVE_AT");
    if (!at) return;
    dl_iterate_phdr(note_object, NULL);
    failing_hook = (failing_hooks){.counts = counts, .refused = tell};
    failing_set(atol(at) - 1, false);
}
