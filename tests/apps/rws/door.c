/* door.c - a model that writes a line to the file $RWS_DOOR_MARK when its shared object is loaded: a test sees whether a command
 * has run code, and whose. DOOR is a number that makes two such objects differ. With BESIDE it needs the library beside.c. */
#include <stdio.h>
#include <stdlib.h>

#include "toy.c"

#ifndef DOOR
#define DOOR 0
#endif

#ifdef BESIDE
int beside(void);
#else
static int beside(void)
{
    return 0;
}
#endif

__attribute__((constructor)) static void leave_mark(void)
{
    const char *path = getenv("RWS_DOOR_MARK");
    FILE       *mark = path ? fopen(path, "a") : NULL;
    if (!mark) return;
    fprintf(mark, "%d\n", DOOR + beside());
    fclose(mark);
}
