/* request.h - a request as the routes see it, the checks that it must pass first, and the reply.
 *
 * Nothing here knows sockets: server.c makes a request from libmicrohttpd's connection, and tests and fuzzers make one
 * from bytes.
 *
 *     connection -> [request: host, origin, token, type, path] -> routes -> reply -> connection
 */
#ifndef RWS_SERVE_REQUEST_H
#define RWS_SERVE_REQUEST_H

#include "rws.h"
#include "base/buffer.h"

enum {
    RWS_MAX_SEGMENTS = 8,       /* of a path */
    RWS_MAX_SEGMENT = 64,       /* bytes */
    RWS_MAX_ARGUMENTS = 64,     /* of a query */
    RWS_MAX_BODY = 1 << 20,     /* bytes */
    RWS_MAX_HEAD = 32 * 1024,   /* bytes of a request line with its headers */
    RWS_MAX_CONNECTIONS = 256,  /* at a time */
    RWS_MAX_REFUSED = 32,       /* connections beyond these while all are busy, refused with a 503 */
    RWS_MAX_FROM_ONE = 64,      /* connections from one address of the network */
    RWS_MAX_WATCHERS = 96,      /* connections that wait for events */
    RWS_WATCHERS_FROM_ONE = 48, /* of these, from one address */
    RWS_MAX_POINTS = 5000,      /* of a curve in a reply */
    RWS_MAX_DATA = 1000,        /* questions in a request */
    RWS_MAX_SAMPLES = 100000,   /* in a request */
    RWS_RECEIVE_SECONDS = 20,   /* until a request has arrived, from its connection's beginning or last reply */
    RWS_SEND_SECONDS = 60,      /* until a client has taken a reply, apart from a stream that it keeps reading */
};

typedef struct {
    const char *name, *value;
} rws_argument;

typedef struct {
    const char  *method;                                         /* "GET" */
    char         segment[RWS_MAX_SEGMENTS][RWS_MAX_SEGMENT + 1]; /* "/api/runs" is "api", "runs" */
    int          n_segments;
    rws_argument arguments[RWS_MAX_ARGUMENTS]; /* of the query, decoded */
    int          n_arguments;
    const char  *body;
    size_t       n_body;
    bool (*gone)(void *client); /* whether the client sends no more: it has most likely gone away; NULL: never */
    void       *client;
    uint64_t    from; /* address of the client; of IPv6 the network, which is one client's */
    const char *host, *origin, *site, *type, *authorization, *cookie, *accept, *match, *last_event; /* headers; NULL */
    bool        gzip; /* the client takes a reply that is compressed */
} rws_request;

/* A reply that is produced piece by piece. */
typedef struct {
    void *context;
    /* Appends the next piece; false at the end. May wait. */
    bool (*next)(void *context, rws_buffer *out);
    void (*free)(void *context);
} rws_stream;

typedef struct {
    int         status;
    const char *type;  /* content type */
    rws_buffer  body;  /* the bytes, unless `fixed` or `stream` has them */
    const char *fixed; /* bytes that live as long as the program; NULL: none */
    size_t      n_fixed;
    rws_stream  stream;                                        /* produces the bytes; next NULL: there is no stream */
    char        cookie[192], location[64], file[96], etag[40]; /* headers, unless empty; file: name of a download */
    const char *allow;                                         /* the method that the address takes, in a 405 */
    bool        retry;                                         /* the client may try again, in a 503 */
    bool        gzip;                                          /* the bytes are compressed */
} rws_reply;

/* ---- checks */

/* The conditions on which the server accepts a request. */
typedef struct {
    const char        *token; /* NULL: none is needed */
    int                port;
    const char *const *names; /* of the host, besides loopback names and, with `anywhere`, numeric addresses */
    int                n_names;
    bool               anywhere; /* listens on more than loopback */
} rws_gate;

/* Cuts "/api/runs/0a" into segments. False for a path that is not absolute, has an empty or too long segment, one that
 * begins with a dot, or a byte that no path of ours has (letters, digits, '-', '_', '.'): there is nothing to decode, and
 * nothing that leads up. */
bool rws__request_path(rws_request *r, const char *path);

/* Whether the Host header names this server: a name that an attacker has pointed to 127.0.0.1 does not. */
bool rws__gate_host(const rws_gate *g, const char *host);

/* Whether the request carries the token, as "Authorization: Bearer TOKEN" or in the cookie "rws-token"; true if none is
 * needed. The time taken does not depend on where the token differs. */
bool rws__gate_token(const rws_gate *g, const rws_request *r);
bool rws__token_equal(const char *token, const char *given);

/* Checks host, origin, token and content type, in this order. False with the reply if the request must not pass. */
bool rws__gate_pass(const rws_gate *g, const rws_request *r, rws_reply *reply);

/* ---- reading arguments */

const char *rws__request_argument(const rws_request *r, const char *name); /* the first of that name; NULL */

/* A whole number; `otherwise` if there is none. False with the reply if it is not a number in the range. */
bool rws__request_count(const rws_request *r, const char *name, double least, double most, double otherwise,
                        double *out, rws_reply *reply);

/* ---- replies */

/* {"error": message}; returns false, for `return rws__reply_fail(…)`. */
bool rws__reply_fail(rws_reply *reply, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The reply to a status of the library: 400, 500 (broken), 503 (stopped or no memory). */
bool rws__reply_status(rws_reply *reply, rws_status status, const rws_error *err);

void rws__reply_release(rws_reply *reply);

#endif
