/* join.c - joining a job: which MPI has started this process, its carrier, and ranks that fit together. */
#include "comm/job.h"

#include "base/error.h"
#include "comm/carriers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION_SIZE 64

static rws_comm *world;

rws_comm *rws__comm_world(void)
{
    return world && world->size > 1 ? world : NULL;
}

int rws_rank(void)
{
    return rws__comm_rank(world);
}

int rws_n_ranks(void)
{
    return rws__comm_size(world);
}

int rws_rank_lost(void)
{
    return world ? world->lost - 1 : -1;
}

/* The kinds of MPI that a rank may have been started by, and how that shows. */
static const struct {
    const char *file, *variables[4];
} kinds[] = {
    {"librws-openmpi.so", {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}},
    {"librws-mpich.so", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMIX_RANK"}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static bool started_by(int kind)
{
    for (int i = 0; i < 4 && kinds[kind].variables[i]; i++)
        if (getenv(kinds[kind].variables[i])) return true;
    return false;
}

static long number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

int rws__comm_started(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i])) return (int)number_of(variables[i]);
    return 0;
}

int rws__comm_started_as(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i])) return (int)number_of(variables[i]);
    return 0;
}

void rws__comm_forget_start(void)
{
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < 4 && kinds[i].variables[k]; k++) unsetenv(kinds[i].variables[k]);
    unsetenv("SLURM_STEP_NUM_TASKS");
}

/* The folder of the program or library that this code is in. */
static bool own_folder(char *out, size_t size)
{
    Dl_info about;
    char    self[4096];
    if (dladdr((void *)rws_ranks_open, &about) == 0 || !about.dli_fname) return false;
    const char   *file = about.dli_fname;
    const ssize_t n = strchr(file, '/') ? -1 : readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        file = self;
    }
    const char *slash = strrchr(file, '/');
    if (!slash) return false;
    const char *level = strstr(file, "/glibc-hwcaps/"); /* a folder of the library for one level of processors */
    return snprintf(out, size, "%.*s", (int)((level ? level : slash) - file), file) < (int)size;
}

/* The carrier is beside the program or the library, or where `make install` puts it. */
static void *load(const char *file, const rws_carrier **carrier)
{
    char folder[4096], path[3][8300];
    int  n = 0;
    if (own_folder(folder, sizeof folder)) {
        snprintf(path[n++], sizeof path[0], "%s/%s", folder, file);
        snprintf(path[n++], sizeof path[0], "%s/rws/%s", folder, file);
    }
    snprintf(path[n++], sizeof path[0], "%s/%s", RWS_CARRIER_FOLDER, file);
    for (int i = 0; i < n; i++) {
        /* Open MPI loads parts of its own, which must find the symbols of its main library. */
        void *library = dlopen(path[i], RTLD_NOW | RTLD_GLOBAL);
        if (!library) continue;
        *carrier = dlsym(library, RWS_CARRIER_SYMBOL);
        if (*carrier && (*carrier)->version == RWS_CARRIER_VERSION) return library;
        dlclose(library);
    }
    return NULL;
}

static rws_status find_carrier(rws_comm *c, bool *found, rws_error *err)
{
    bool started = false;
    *found = false;
    if (rws__comm_started() == 1) return RWS_OK; /* and children of this process may not be ranks */
    for (int i = 0; i < KINDS && !*found; i++) {
        if (!started_by(i)) continue;
        started = true;
        c->library = load(kinds[i].file, &c->carrier);
        *found = c->library != NULL;
    }
    if (*found) return RWS_OK;
    if (started)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The program was started by an MPI that this build has no part for: install it (scripts/setup "
                        "cluster), build again, or start the program without mpirun.");
    if (number_of("SLURM_STEP_NUM_TASKS") > 1)
        return rws_fail(err, RWS_BAD_INPUT,
                        "srun started %ld tasks that do not know each other: add --mpi=pmix (or what `srun --mpi=list` "
                        "shows for your MPI), or -n 1.",
                        number_of("SLURM_STEP_NUM_TASKS"));
    return RWS_OK;
}

/* Where the block of a rank is after rws__comm_collect. */
static int place_of(const rws_comm *c, int rank)
{
    return (rank - c->rank + c->size) % c->size;
}

/* The first message of all: programs of other versions may have other messages, but this one is the same for ever. A rank
 * that has no memory could not tell the others yet; therefore the versions are on the stack. */
static rws_status compare_versions(rws_comm *c, rws_error *err)
{
    char all[c->size][VERSION_SIZE];
    memset(all, 0, (size_t)c->size * VERSION_SIZE);
    strcpy(all[0], RWS_VERSION_STRING);
    RWS_TRY(rws__comm_collect(c, all[0], VERSION_SIZE, err));
    const char *first = all[place_of(c, 0)];
    for (int i = 1; i < c->size; i++)
        if (memcmp(all[place_of(c, i)], first, VERSION_SIZE) != 0)
            return rws_fail(err, RWS_BAD_INPUT,
                            "Rank %d has version %.60s of the program and rank 0 has version %.60s: all ranks need the "
                            "same.",
                            i, all[place_of(c, i)], first);
    return RWS_OK;
}

/* All memory of the job. Later collective operations need none. */
static rws_status make_memory(rws_comm *c, rws_error *err)
{
    int lacks[c->size];
    c->members = calloc((size_t)c->size, sizeof *c->members);
    c->gathered = calloc((size_t)c->size, RWS_COMM_PIECE);
    lacks[0] = !c->members || !c->gathered;
    RWS_TRY(rws__comm_collect(c, (char *)lacks, sizeof *lacks, err));
    for (int i = 0; i < c->size; i++)
        if (lacks[place_of(c, i)]) return rws_fail(err, RWS_NO_MEMORY, "Rank %d has no memory for the ranks.", i);
    return RWS_OK;
}

/* Every rank learns the machines and processes of all. */
static rws_status introduce(rws_comm *c, rws_error *err)
{
    rws_member me = {.pid = (int)getpid()};
    gethostname(me.host, sizeof me.host - 1);
    for (int i = 0; i < c->size; i++) c->members[i].host[0] = '?';
    RWS_TRY(rws__comm_gather(c, &me, sizeof me, c->members, err));
    int here = 0;
    for (int i = 0; i < c->size; i++) here += strcmp(c->members[i].host, me.host) == 0;
    c->crowded = here > sysconf(_SC_NPROCESSORS_ONLN);
    return RWS_OK;
}

/* Ranks that cannot work together fail here. */
static rws_status meet(rws_comm *c, rws_error *err)
{
    if (c->size == 1) return RWS_OK;
    RWS_TRY(compare_versions(c, err));
    RWS_TRY(make_memory(c, err));
    return introduce(c, err);
}

static rws_status open_world(rws_comm *c, rws_error *err)
{
    bool found;
    char why[128] = "";
    RWS_TRY(find_carrier(c, &found, err));
    if (!found) return RWS_OK;
    if (!c->carrier->open(&c->rank, &c->size, why, sizeof why))
        return rws_fail(err, RWS_BAD_INPUT, "The ranks cannot be joined by %s: %s.", c->carrier->name, why);
    RWS_TRY(meet(c, err));
    return c->size > 1 ? rws__comm_watch_start(c, &c->watch, err) : RWS_OK;
}

rws_status rws_ranks_open(rws_error *err)
{
    if (world) return RWS_OK;
    rws_comm *c = calloc(1, sizeof *c);
    if (!c) return rws_no_memory(err, "the ranks");
    c->size = 1;
    pthread_mutex_init(&c->lock, NULL);
    world = c;
    const rws_status status = open_world(c, err);
    if (status == RWS_OK) return RWS_OK;
    world = NULL;
    if (!c->carrier) free(c); /* else what MPI has begun cannot be undone, and the watch may be using c */
    return status;
}

void rws_ranks_close(void)
{
    rws_comm *c = world;
    if (!c) return;
    world = NULL;
    rws_error ignored;
    int       word = 0, words[c->size];
    /* Messages of a job that is over are under way for ever: MPI is left as it is. */
    const bool whole = c->size == 1 || rws__comm_gather(c, &word, sizeof word, words, &ignored) == RWS_OK;
    rws__comm_watch_stop(c->watch);
    if (c->carrier && whole) c->carrier->close();
    free(c->members);
    free(c->gathered);
    free(c->others);
    free(c);
}
