/* carrier.h - the part that carries bytes between ranks, which is loaded only if the program was started by mpirun or
 * srun: one shared object per MPI, since their binary interfaces differ (librws-openmpi.so, librws-mpich.so).
 *
 *     comm.c -> dlopen -> [carrier] -> MPI
 *
 * A carrier knows ranks, messages and nothing else: every collective operation is built of messages in comm.c. Its
 * functions are called by one thread at a time.
 */
#ifndef RWS_COMM_CARRIER_H
#define RWS_COMM_CARRIER_H

#include <stdbool.h>
#include <stddef.h>

#define RWS_CARRIER_VERSION 2
#define RWS_CARRIER_SYMBOL "rws_carrier"
#define RWS_MAX_CARRIER_BYTES ((size_t)1 << 30) /* of one message */

/* Messages of two channels never meet. */
typedef enum { RWS_CHANNEL_CONTROL, RWS_CHANNEL_SLICES, RWS_CHANNELS } rws_channel;

typedef struct {
    int         version; /* RWS_CARRIER_VERSION */
    const char *name;    /* "Open MPI" */
    /* Joins the other ranks. False: it cannot, and `why` has the reason. */
    bool (*open)(int *rank, int *size, char *why, size_t length);
    /* Starts a message, whose memory must stay as it is until the message is done. A ticket, or -1 if it failed. */
    int (*send)(const void *data, size_t bytes, int to, rws_channel channel, int tag);
    int (*receive)(void *data, size_t bytes, int from, rws_channel channel, int tag);
    /* 1: the message is done and its ticket is void; 0: not yet; -1: it failed. */
    int (*test)(int ticket);
    /* Moves on messages that are under way. Most MPIs do that only while one of their functions runs. */
    void (*progress)(void);
    void (*close)(void); /* to be called by all ranks, when no message is under way */
} rws_carrier;

#endif
