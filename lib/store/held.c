#include "store/held.h"

#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

rws_held rws__held_read(void)
{
    rws_held      h = {0};
    FILE         *file = fopen("/proc/locks", "re");
    char          line[256];
    unsigned long inode;
    while (file && fgets(line, sizeof line, file)) {
        if (!strstr(line, " FLOCK ") || sscanf(line, "%*s %*s %*s %*s %*s %*x:%*x:%lu", &inode) != 1) continue;
        if (!rws__list_grow(&h.inodes, h.n, &h.capacity, sizeof *h.inodes)) break;
        h.inodes[h.n++] = (ino_t)inode;
    }
    if (file) fclose(file);
    return h;
}

bool rws__held_has(const rws_held *h, const char *folder)
{
    struct stat is;
    if (!folder || stat(folder, &is) != 0) return false;
    for (int i = 0; i < h->n; i++)
        if (h->inodes[i] == is.st_ino) return true;
    return false;
}

bool rws__held_trains(const rws_held *h, const char *folder, const char *host, time_t written)
{
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return (host && strcmp(host, own) != 0 && time(NULL) - written < 120) || rws__held_has(h, folder);
}

void rws__held_free(rws_held *h)
{
    free(h->inodes);
    *h = (rws_held){0};
}
