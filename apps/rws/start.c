/* start.c - what happens before main: OpenBLAS starts without threads of its own.
 *
 * The program has its own threads and calls OpenBLAS on each of them. OpenBLAS starts a thread for every core all the same,
 * when it is loaded: a process that may have no more threads ends then and there, and one that may have no more memory
 * never ends, because these threads ask for memory again and again. Only an environment variable prevents the threads,
 * and OpenBLAS reads it before any function of the program is called, except for the function below. So
 * the program starts itself again with the variable, in the same process. Under valgrind it does not: valgrind would lose
 * sight of it.
 */
#include <string.h>
#include <unistd.h>

static const char variable[] = "OPENBLAS_NUM_THREADS=1";

/* Neither the C library nor a sanitizer is ready when this is called: it uses its arguments and the stack only. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void start(int argc, char **argv,
                                                                                 char **environment)
{
    int n = 0;
    (void)argc;
    for (; environment[n]; n++)
        if (strncmp(environment[n], variable, sizeof variable - 2) == 0 || strstr(environment[n], "/vgpreload_"))
            return;
    char *more[n + 2];
    for (int i = 0; i < n; i++) more[i] = environment[i];
    more[n] = (char *)variable;
    more[n + 1] = NULL;
    execve("/proc/self/exe", argv, more); /* a failure leaves the program as it would be without this file */
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = start;
