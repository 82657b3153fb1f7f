/* share.c - memory that the ranks of one machine share.
 *
 * A rank's block is an anonymous file (memfd) that the others open as /proc/PROCESS/fd/NUMBER and map: it has no name
 * that could be left behind, and needs no space in /dev/shm, which containers often keep small. A block begins with a
 * random number that its owner tells by message. A process of another machine or container, which only happens to have
 * that name or number, does not know it; blocks are then not shared, and messages go by MPI.
 */
#include "comm/comm.h"

#include "base/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define HEAD 64 /* bytes before a block, which hold the random number */

/* The message of a rank about its block. */
typedef struct {
    uint64_t key, bytes;
    int      file; /* -1: others cannot see it */
} offer;

/* This rank's own block: of a file or, if the system gives none, of usual memory. */
static char *make_own(offer *o)
{
    const char *setting = getenv("RWS_SHARED_MEMORY");
    const bool  wanted = !setting || strcmp(setting, "no") != 0;
    o->file = wanted ? memfd_create("rws", MFD_CLOEXEC) : -1;
    if (o->file >= 0 &&
        (posix_fallocate(o->file, 0, (off_t)o->bytes) != 0 || getrandom(&o->key, sizeof o->key, 0) != sizeof o->key)) {
        close(o->file);
        o->file = -1;
    }
    char *base = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, o->file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                      o->file, 0);
    if (base == MAP_FAILED) return NULL;
    memcpy(base, &o->key, sizeof o->key);
    return base;
}

static char *map_other(const offer *o, int process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, o->file);
    const int file = o->file < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return NULL;
    /* A file that is too short would be another one, and could not be read. */
    char *base = lseek(file, 0, SEEK_END) == (off_t)o->bytes
                     ? mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
    close(file);
    if (base == MAP_FAILED) return NULL;
    if (memcmp(base, &o->key, sizeof o->key) == 0) return base;
    munmap(base, o->bytes);
    return NULL;
}

static void unmap(rws_shared *s, int rank)
{
    if (s->of[rank]) munmap(s->of[rank] - HEAD, s->bytes[rank]);
    s->of[rank] = NULL;
}

/* Whether two ranks give the same name of their machine. */
static bool are_near(const rws_comm *c, int one, int other)
{
    const rws_member *m = rws__comm_members(c);
    return strcmp(m[one].host, m[other].host) == 0;
}

/* Maps the blocks of the other ranks of this machine; true if all of them can be seen. */
static bool map_others(const rws_comm *c, const offer *offers, rws_shared *s)
{
    const int rank = rws__comm_rank(c);
    bool      all = offers[rank].file >= 0;
    for (int i = 0; i < rws__comm_size(c) && all; i++) {
        s->bytes[i] = offers[i].bytes;
        if (i == rank || !are_near(c, i, rank)) continue;
        char *base = map_other(&offers[i], rws__comm_members(c)[i].pid);
        all = base != NULL;
        if (base) s->of[i] = base + HEAD;
    }
    return all;
}

/* The ranks of a machine share if each of them sees all others. */
static rws_status agree_to_share(rws_comm *c, offer *mine, offer *offers, int *seen, rws_shared *s, rws_error *err)
{
    const int rank = rws__comm_rank(c), R = rws__comm_size(c);
    RWS_TRY(rws__comm_gather(c, mine, sizeof *mine, offers, err));
    int all = map_others(c, offers, s);
    RWS_TRY(rws__comm_gather(c, &all, sizeof all, seen, err));
    for (int i = 0; i < R; i++) all &= seen[i] || !are_near(c, i, rank);
    for (int i = 0; i < R && !all; i++)
        if (i != rank) unmap(s, i);
    return RWS_OK;
}

rws_status rws__comm_map(rws_comm *c, size_t bytes, rws_shared *out, rws_error *err)
{
    const int rank = rws__comm_rank(c), R = rws__comm_size(c);
    offer     mine = {.bytes = bytes + HEAD}, *offers = malloc((size_t)R * sizeof *offers);
    int      *seen = malloc((size_t)R * sizeof *seen);
    char     *base = make_own(&mine);
    *out = (rws_shared){calloc((size_t)R, sizeof *out->of), calloc((size_t)R, sizeof *out->bytes)};
    const bool memory = offers && seen && base && out->of && out->bytes;
    if (memory) {
        out->of[rank] = base + HEAD;
        out->bytes[rank] = mine.bytes;
    } else if (base) {
        munmap(base, mine.bytes);
    }
    rws_status status = rws__comm_agree(c, memory ? RWS_OK : rws_no_memory(err, "messages between ranks"), err);
    if (status == RWS_OK) status = agree_to_share(c, &mine, offers, seen, out, err);
    if (mine.file >= 0) close(mine.file);
    free(offers);
    free(seen);
    return status;
}

void rws__comm_unshare(const rws_comm *c, rws_shared *s)
{
    for (int i = 0; i < rws__comm_size(c) && s->of && s->bytes; i++) unmap(s, i);
    free(s->of);
    free(s->bytes);
    *s = (rws_shared){0};
}
