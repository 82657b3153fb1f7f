/* mpi.c - the carrier on MPI. Built once for each MPI that is installed, into a shared object of its own. */
#include "comm/carrier.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Comm     channels[RWS_CHANNELS];
static MPI_Request *requests; /* by ticket */
static int         *unused;   /* tickets that are free: a stack */
static int          n_unused, capacity;

static bool carrier_open(int *rank, int *size, char *why, size_t length)
{
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
        snprintf(why, length, "MPI_Init_thread failed");
        return false;
    }
    if (provided < MPI_THREAD_SERIALIZED) {
        snprintf(why, length, "this MPI may not be used by threads in turn (MPI_THREAD_SERIALIZED)");
        return false;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    for (int i = 0; i < RWS_CHANNELS; i++) {
        if (MPI_Comm_dup(MPI_COMM_WORLD, &channels[i]) != MPI_SUCCESS) {
            snprintf(why, length, "MPI_Comm_dup failed");
            return false;
        }
        MPI_Comm_set_errhandler(channels[i], MPI_ERRORS_RETURN);
    }
    return true;
}

static bool make_room(void)
{
    const int    n = capacity ? 2 * capacity : 64;
    MPI_Request *longer = realloc(requests, (size_t)n * sizeof *longer);
    if (!longer) return false;
    requests = longer;
    int *more = realloc(unused, (size_t)n * sizeof *more);
    if (!more) return false;
    unused = more;
    for (int i = n; i-- > capacity;) unused[n_unused++] = i;
    capacity = n;
    return true;
}

static int carrier_send(const void *data, size_t bytes, int to, rws_channel channel, int tag)
{
    if (!n_unused && !make_room()) return -1;
    const int ticket = unused[n_unused - 1];
    if (MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, channels[channel], &requests[ticket]) != MPI_SUCCESS) return -1;
    n_unused--;
    return ticket;
}

static int carrier_receive(void *data, size_t bytes, int from, rws_channel channel, int tag)
{
    if (!n_unused && !make_room()) return -1;
    const int ticket = unused[n_unused - 1];
    if (MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, channels[channel], &requests[ticket]) != MPI_SUCCESS)
        return -1;
    n_unused--;
    return ticket;
}

static int carrier_test(int ticket)
{
    int        done = 0;
    MPI_Status status;
    if (MPI_Test(&requests[ticket], &done, &status) != MPI_SUCCESS) return -1;
    if (done) unused[n_unused++] = ticket;
    return done;
}

static void carrier_progress(void)
{
    int any;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, channels[RWS_CHANNEL_SLICES], &any, MPI_STATUS_IGNORE);
}

static void carrier_close(void)
{
    for (int i = 0; i < RWS_CHANNELS; i++) MPI_Comm_free(&channels[i]);
    MPI_Finalize();
    free(requests);
    free(unused);
}

__attribute__((visibility("default"))) extern const rws_carrier rws_carrier_mpi __asm__(RWS_CARRIER_SYMBOL);

const rws_carrier rws_carrier_mpi = {
    .version = RWS_CARRIER_VERSION,
    .name = RWS_MPI_NAME,
    .open = carrier_open,
    .send = carrier_send,
    .receive = carrier_receive,
    .test = carrier_test,
    .progress = carrier_progress,
    .close = carrier_close,
};
