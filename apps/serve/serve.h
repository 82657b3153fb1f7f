/* serve.h - a server of runs over HTTP.
 *
 * Shows runs, compares them and asks them, as a page and as JSON (docs/serve.md). It prints nothing; the command line
 * makes the socket known and waits for signals.
 *
 *     folders of runs -> [serve] -> browser, curl, other programs
 */
#ifndef RWS_SERVE_SERVE_H
#define RWS_SERVE_SERVE_H

#include "rws_train.h"

typedef struct {
    const char *const *folders; /* as for rws__catalogue_new */
    int                n_folders;
    const char        *token; /* NULL: none is needed */
    const char *const *names; /* further names of this host that requests may use, besides those of loopback */
    int                n_names;
    bool               anywhere; /* the socket is not on loopback */
    const char *const *models;   /* shared objects that may be loaded when a run of theirs is asked */
    int                n_models;
    bool               changed;       /* they may have changed since their runs began */
    int                threads;       /* questions that are answered at a time */
    int                max_particles; /* of a question */
    double             max_seconds;   /* of a question */
    size_t             max_memory;    /* bytes of all answers that clients have not taken yet; 0: no limit */
} rws_serve_options;

/* A socket that listens on a numeric address ("127.0.0.1", "::", "0.0.0.0") and port; port 0 is any that is free, and
 * *port becomes the port. RWS_BAD_INPUT with a message if it is taken or the address is not this machine's. */
rws_status rws__serve_listen(const char *address, int *port, int *socket, rws_error *err)
    __attribute__((warn_unused_result));

/* 128 random bits as 32 hexadecimal digits. False if the system has none. */
bool rws__serve_token(char out[static 33]);

typedef struct rws_server rws_server;

/* Serves on the socket, which is the caller's, with threads of its own. `options` must live as long as the server. */
rws_status rws__server_new(const rws_serve_options *options, int socket, int port, rws_server **out, rws_error *err)
    __attribute__((warn_unused_result));

/* Accepts no more connections, ends streams of events, and waits for requests that are being answered, for at most so many
 * seconds. */
void rws__server_drain(rws_server *s, double seconds);

/* Ends all connections and frees the server; waits for a store that is being read. NULL is allowed. */
void rws__server_free(rws_server *s);

#endif
