/* nolocks.c - LD_PRELOAD=nolocks.so makes every file system one without locks, as some shared ones are. */
#undef _FILE_OFFSET_BITS /* which would make fcntl another name of fcntl64 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>

static bool is_lock(int command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
           command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

static int call(const char *name, int file, int command, void *argument)
{
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
    if (!is_lock(command)) return real(file, command, argument);
    errno = ENOLCK;
    return -1;
}

#pragma GCC visibility push(default)

int fcntl(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return call("fcntl", file, command, argument);
}

int fcntl64(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return call("fcntl64", file, command, argument);
}

int flock(int file, int operation)
{
    (void)file;
    (void)operation;
    errno = ENOLCK;
    return -1;
}
