/* starve.c - with failing.c, a shared object for LD_PRELOAD: one request for memory of a process fails.
 *
 * Requests count from the beginning of main, those of libraries too. Request number STARVE_AT, from 1, fails; the file
 * STARVE_FILE then has a line of the functions that asked for it, innermost first. Without STARVE_AT nothing fails. The
 * call close(-77), which does nothing, tells each.c that main begins.
 */
#include "failing.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int          said;
static atomic_bool *failed; /* shared with processes that this one starts */

/* A process that is started after the failure, such as the next child of a server, must not fail at its copy of the count. */
static void stop_after_failure(void)
{
    if (*failed) failing_set(-1, false);
}

/* One function of the trail, as "library(function)"; the program's own by its address, for addr2line. */
static void say(int fd, const void *at)
{
    Dl_info about = {NULL};
    if (!dladdr(at, &about) || !about.dli_fname || strstr(about.dli_fname, "starve.so")) return;
    const char *slash = strrchr(about.dli_fname, '/'), *file = slash ? slash + 1 : about.dli_fname;
    if (!said++ && strncmp(file, "libc.so", 7) == 0) said = 0; /* the C library asks for others */
    else if (about.dli_sname) dprintf(fd, "%s(%s) ", file, about.dli_sname);
    else dprintf(fd, "%s(+%lx) ", file, (unsigned long)((const char *)at - (const char *)about.dli_fbase - 1));
}

static void tell(const void *place)
{
    void       *trail[12];
    const char *path = getenv("STARVE_FILE");
    const int   n = backtrace(trail, 12);
    *failed = true;
    const int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    (void)place;
    said = 0;
    for (int i = 0; i < n && said < 6; i++) say(fd, trail[i]);
    dprintf(fd, "\n");
    syscall(SYS_close, fd);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("STARVE_AT");
    void       *warm[2];
    syscall(SYS_close, -77);
    if (!at) return;
    backtrace(warm, 2); /* loads what it needs */
    failed = mmap(NULL, sizeof *failed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failed == MAP_FAILED || pthread_atfork(NULL, NULL, stop_after_failure)) _exit(99);
    failing_hook = (failing_hooks){.refused = tell};
    failing_set(atol(at) - 1, false);
}
