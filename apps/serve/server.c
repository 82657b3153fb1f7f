/* server.c - connections: libmicrohttpd on one side, the routes on the other.
 *
 * Every connection has a thread, so that a stream of events or a long question delays no other client. One more thread
 * looks at the folders once a second and cuts off clients that are too slow: libmicrohttpd's own limit is on silence, and a
 * client that sends a byte now and then would never meet it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/quote.h"
#include "serve/core.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 16 * 1024, STACK = 4 << 20, LEAST_COMPRESSED = 1024, COMPRESSION = 5 };
#define STALL_SECONDS 2.0   /* after which a client that does not read is cut off, if memory is short */
#define FIRST_SECONDS 2     /* that the address waits for the first look at all stores */
#define MEMORY_SECONDS 10.0 /* that an answer waits for memory which clients hold */

/* A connection: what it is doing, and since when. */
typedef struct peer {
    int          socket;
    bool         sending, streaming;
    bool         refused; /* one beyond RWS_MAX_CONNECTIONS */
    bool         closed;  /* to make room for another */
    uint64_t     from;    /* the client's address */
    double       since;
    size_t       holds; /* bytes in memory that the client is to take */
    double       moved; /* when it took the last block of them */
    struct peer *next;
} peer;

struct rws_server {
    rws_core          *core;
    struct MHD_Daemon *daemon;
    pthread_t          watcher;
    bool               watching;
    pthread_mutex_t    lock; /* protects the members below */
    pthread_cond_t     wake;
    peer              *peers;
    int                n_peers;
    bool               looked; /* at all stores */
    bool               over;
};

/* ---- the socket */

rws_status rws__serve_listen(const char *address, int *port, int *out, rws_error *err)
{
    struct sockaddr_in  four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    const bool          is_four = inet_pton(AF_INET, address, &four.sin_addr) == 1;
    if (!is_four && inet_pton(AF_INET6, address, &six.sin6_addr) != 1)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a numeric address, such as 0.0.0.0 or ::.",
                        rws__quote_short(address).text);
    const int fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    void     *at = is_four ? (void *)&four : (void *)&six;
    socklen_t size = is_four ? sizeof four : sizeof six;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd < 0 || bind(fd, at, size) != 0 || listen(fd, 128) != 0 || getsockname(fd, at, &size) != 0) {
        const int why = errno;
        if (fd >= 0) close(fd);
        return rws_fail(err, RWS_BAD_INPUT, "Cannot listen on %s port %d: %s.", address, *port, strerror(why));
    }
    *port = ntohs(is_four ? four.sin_port : six.sin6_port);
    *out = fd;
    return RWS_OK;
}

bool rws__serve_token(char out[static 33])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
    for (int i = 0; i < 16; i++) sprintf(out + 2 * i, "%02x", bytes[i]);
    return true;
}

/* ---- connections */

/* The address as a number; of an IPv6 address the network. */
static uint64_t address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    uint64_t                        network = 0;
    if (info && info->client_addr->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr.s_addr;
    if (info && info->client_addr->sa_family == AF_INET6)
        memcpy(&network, &((const struct sockaddr_in6 *)(const void *)info->client_addr)->sin6_addr, sizeof network);
    return network;
}

/* Closes the connection that has been silent for longest, while no answer is on its way; false if there is none. Called under
 * the lock. */
static bool make_room(rws_server *s)
{
    peer *oldest = NULL;
    for (peer *l = s->peers; l; l = l->next)
        if (!l->sending && !l->closed && !l->refused && (!oldest || l->since < oldest->since)) oldest = l;
    if (!oldest) return false;
    oldest->closed = true;
    shutdown(oldest->socket, SHUT_RDWR);
    return true;
}

static void note_connection(void *context, struct MHD_Connection *connection, void **own,
                            enum MHD_ConnectionNotificationCode code)
{
    rws_server *s = context;
    pthread_mutex_lock(&s->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        peer                           *l = calloc(1, sizeof *l);
        *own = l;
        if (l && info) {
            const bool full = s->n_peers++ >= RWS_MAX_CONNECTIONS;
            *l = (peer){.socket = info->connect_fd,
                        .refused = full && !make_room(s),
                        .from = address_of(connection),
                        .since = rws__clock_now(),
                        .next = s->peers};
            s->peers = l;
        }
    } else if (*own) {
        peer **at = &s->peers;
        while (*at && *at != *own) at = &(*at)->next;
        if (*at) *at = (*at)->next, s->n_peers--;
        free(*own);
        *own = NULL;
    }
    pthread_mutex_unlock(&s->lock);
}

static peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void note_phase(rws_server *s, struct MHD_Connection *connection, bool sending, bool streaming)
{
    peer *l = peer_of(connection);
    if (!l) return;
    pthread_mutex_lock(&s->lock);
    l->sending = sending;
    l->streaming = streaming;
    l->since = rws__clock_now();
    l->holds = 0;
    pthread_mutex_unlock(&s->lock);
}

/* The client takes the next block of `holds` bytes in memory. */
static void note_block(rws_server *s, struct MHD_Connection *connection, size_t holds)
{
    peer *l = peer_of(connection);
    if (!l) return;
    pthread_mutex_lock(&s->lock);
    l->holds = holds;
    l->moved = rws__clock_now();
    pthread_mutex_unlock(&s->lock);
}

/* Cuts off the clients that have taken too long; and, while answers fill more than half of the memory for them, those that do
 * not read theirs. The socket is shut, not closed: it is the connection's. */
static void cut_slow(rws_server *s)
{
    const double now = rws__clock_now(), compute = s->core->options.max_seconds;
    const bool   pressed = rws__buffer_pressed();
    pthread_mutex_lock(&s->lock);
    for (peer *l = s->peers; l; l = l->next) {
        const double limit = l->sending ? RWS_SEND_SECONDS + 2 * compute : RWS_RECEIVE_SECONDS;
        const bool   stalls = pressed && l->holds > BLOCK && now - l->moved > STALL_SECONDS;
        if ((!l->streaming && now - l->since > limit) || stalls) shutdown(l->socket, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
}

static struct timespec seconds_from_now(int seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += seconds;
    return t;
}

static void *watch(void *context)
{
    rws_server *s = context;
    pthread_mutex_lock(&s->lock);
    while (!s->over) {
        pthread_mutex_unlock(&s->lock);
        cut_slow(s);
        rws__core_refresh(s->core);
        const struct timespec until = seconds_from_now(1);
        pthread_mutex_lock(&s->lock);
        if (!s->looked) pthread_cond_broadcast(&s->wake);
        s->looked = true;
        if (!s->over) pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Waits for the runs, so that the first answer has them. A store that takes long does not make others wait: what comes later is an
 * event. */
static void await_runs(rws_server *s)
{
    const struct timespec until = seconds_from_now(FIRST_SECONDS);
    pthread_mutex_lock(&s->lock);
    while (!s->looked && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0) continue;
    pthread_mutex_unlock(&s->lock);
}

/* ---- a request */

/* A request whose body is still coming. */
typedef struct {
    rws_request request;
    rws_buffer  body;
    bool        begun, bad_path, bad_query, bad_header;
    int         n_hosts;
    bool too_large, hopeless; /* a body that is too large is read to its end, unless it is hopeless: a client that
                                        is cut off while it sends would not see the reply */
} incoming;

static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    incoming *in = context;
    (void)kind;
    in->bad_query |= in->request.n_arguments == RWS_MAX_ARGUMENTS;
    if (in->request.n_arguments < RWS_MAX_ARGUMENTS)
        in->request.arguments[in->request.n_arguments++] = (rws_argument){key, value ? value : ""};
    return MHD_YES;
}

/* A byte behind a zero byte would not be seen by anything that reads the text. */
static enum MHD_Result check_argument(void *context, enum MHD_ValueKind kind, const char *key, size_t n_key,
                                      const char *value, size_t n_value)
{
    incoming *in = context;
    (void)kind;
    in->bad_query |= !key || strlen(key) != n_key || (value && strlen(value) != n_value);
    return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A header whose name has a blank, such as "Host : x", is another one for some proxies. */
static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    incoming *in = context;
    (void)kind;
    (void)value;
    in->n_hosts += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
    in->bad_header |= strpbrk(key, " \t") != NULL;
    return MHD_YES;
}

/* Called with the address as it was sent, before anything else. libmicrohttpd decodes it, and %00 would hide what
 * follows. */
static void *note_address(void *context, const char *address, struct MHD_Connection *connection)
{
    incoming *in = calloc(1, sizeof *in);
    (void)context;
    (void)connection;
    if (in) in->bad_path = strstr(address, "%00") != NULL;
    return in;
}

/* Whether the list of encodings has gzip, and not with a weight of 0. */
static bool takes_gzip(const char *list)
{
    const char *at = list ? strstr(list, "gzip") : NULL;
    return at && strncmp(at + 4, ";q=0", 4) != 0;
}

static void receive(incoming *in, struct MHD_Connection *connection, const char *url, const char *method)
{
    rws_request *r = &in->request;
    in->begun = true;
    r->method = method;
    in->bad_path |= !rws__request_path(r, url);
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, check_argument, in);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, in);
    MHD_get_connection_values(connection, MHD_HEADER_KIND, check_header, in);
    r->host = header(connection, MHD_HTTP_HEADER_HOST);
    r->origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    r->site = header(connection, "Sec-Fetch-Site");
    r->type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    r->authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    r->cookie = header(connection, MHD_HTTP_HEADER_COOKIE);
    r->accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
    r->match = header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    r->gzip = takes_gzip(header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    r->last_event = header(connection, "Last-Event-ID");
    const char              *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const unsigned long long n = length ? strtoull(length, NULL, 10) : 0;
    in->too_large = n > RWS_MAX_BODY;
    in->hopeless = n > 8 * RWS_MAX_BODY;
}

/* ---- a reply */

/* A reply on its way: the piece that was produced last, and how much of it is gone. A reply that is no stream is one piece. */
typedef struct {
    rws_server            *server;
    struct MHD_Connection *connection;
    bool                   events;
    rws_stream             stream;
    rws_buffer             piece;
    size_t                 sent;
} outgoing;

/* Waits while clients hold more than half of the memory for answers: soon they have read, or are cut off. */
static void await_memory(const rws_server *s)
{
    const double until = rws__clock_now() + MEMORY_SECONDS;
    while (rws__buffer_pressed() && !s->core->draining && rws__clock_now() < until) usleep(20000);
}

static ssize_t flow(void *context, uint64_t at, char *out, size_t size)
{
    outgoing *f = context;
    (void)at;
    if (f->sent == f->piece.n) {
        if (!f->stream.next) return MHD_CONTENT_READER_END_OF_STREAM;
        rws__buffer_release(&f->piece);
        f->sent = 0;
        note_phase(f->server, f->connection, true, f->events); /* the client has taken the last piece */
        if (!f->events) await_memory(f->server);
        if (!f->stream.next(f->stream.context, &f->piece)) return MHD_CONTENT_READER_END_OF_STREAM;
        if (f->piece.starved) return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    note_block(f->server, f->connection, f->piece.capacity);
    const size_t left = f->piece.n - f->sent, n = left < size ? left : size;
    memcpy(out, f->piece.bytes + f->sent, n);
    f->sent += n;
    return (ssize_t)n;
}

static void end_flow(void *context)
{
    outgoing *f = context;
    if (f->stream.free) f->stream.free(f->stream.context);
    rws__buffer_release(&f->piece);
    free(f);
}

static struct MHD_Response *make_response(rws_server *s, struct MHD_Connection *connection, bool events,
                                          rws_reply *reply)
{
    if (!reply->stream.next && !reply->body.n)
        return MHD_create_response_from_buffer(reply->n_fixed, (void *)reply->fixed, MHD_RESPMEM_PERSISTENT);
    outgoing *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f = (outgoing){
        .server = s, .connection = connection, .events = events, .stream = reply->stream, .piece = reply->body};
    const uint64_t size = reply->stream.next ? MHD_SIZE_UNKNOWN : reply->body.n;
    reply->stream = (rws_stream){0};
    reply->body = (rws_buffer){0};
    struct MHD_Response *response = MHD_create_response_from_callback(size, BLOCK, flow, f, end_flow);
    if (!response) end_flow(f);
    return response;
}

/* Headers of every reply: nothing is loaded from elsewhere, no site shows the page in a frame, types are not guessed. */
static const char *const always[][2] = {
    {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
                                "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

static void add_headers(struct MHD_Response *response, const rws_reply *reply)
{
    char disposition[128];
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        MHD_add_response_header(response, always[i][0], always[i][1]);
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s\"", reply->file);
    const char *const some[][2] = {
        {"Content-Type", reply->type},
        {"Cache-Control", reply->etag[0] ? "no-cache" : "no-store"},
        {"ETag", reply->etag[0] ? reply->etag : NULL},
        {"Content-Encoding", reply->gzip ? "gzip" : NULL},
        {"Vary", "Accept-Encoding"},
        {"Set-Cookie", reply->cookie[0] ? reply->cookie : NULL},
        {"Location", reply->location[0] ? reply->location : NULL},
        {"Content-Disposition", reply->file[0] ? disposition : NULL},
        {"Allow", reply->allow},
        {"Retry-After", reply->retry ? "1" : NULL},
        {"WWW-Authenticate", reply->status == 401 ? "Bearer" : NULL},
        {"Connection", reply->status == 413 || reply->status == 503 ? "close" : NULL},
    };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i][1]) MHD_add_response_header(response, some[i][0], some[i][1]);
}

/* Compresses a reply of text that is worth it; without memory it stays as it is. */
static void compress_reply(rws_reply *reply)
{
    z_stream     z = {0};
    const char  *from = reply->body.n ? reply->body.bytes : reply->fixed;
    const size_t n = reply->body.n ? reply->body.n : reply->n_fixed;
    const bool   text = reply->type && (strncmp(reply->type, "text/", 5) == 0 || strstr(reply->type, "json") ||
                                      strstr(reply->type, "javascript") || strstr(reply->type, "svg"));
    if (reply->stream.next || !text || n < LEAST_COMPRESSED || n > UINT32_MAX) return;
    if (deflateInit2(&z, COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return;
    const size_t most = deflateBound(&z, (uLong)n);
    char        *out = malloc(most);
    rws_buffer   body = {0};
    z.next_in = (Bytef *)from, z.avail_in = (uInt)n, z.next_out = (Bytef *)out, z.avail_out = (uInt)most;
    if (out && deflate(&z, Z_FINISH) == Z_STREAM_END) rws__buffer_add(&body, out, z.total_out);
    deflateEnd(&z);
    free(out);
    if (!body.n || body.starved) return rws__buffer_release(&body);
    rws__buffer_release(&reply->body);
    reply->body = body;
    reply->gzip = true;
}

static enum MHD_Result respond(rws_server *s, struct MHD_Connection *connection, rws_reply *reply)
{
    const bool           events = reply->type && strcmp(reply->type, "text/event-stream") == 0;
    const unsigned       status = (unsigned)reply->status;
    struct MHD_Response *response = make_response(s, connection, events, reply);
    if (!response) {
        rws__reply_release(reply);
        return MHD_NO;
    }
    add_headers(response, reply);
    note_phase(s, connection, true, events);
    const enum MHD_Result done = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    rws__reply_release(reply);
    return done;
}

/* Whether a client has closed its connection, or its half of it, or the server has shut it (rws__server_drain).
 * libmicrohttpd does not look at a connection while a reply is computed for it. */
static bool is_gone(void *client)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd                   p = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

/* ---- libmicrohttpd calls this when the headers are there, for each part of the body, and when all of it is there */

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *part, size_t *n_part, void **own)
{
    rws_server *s = context;
    incoming   *in = *own;
    rws_reply   reply = {0};
    (void)version;
    if (!in) return MHD_NO; /* no memory */
    if (!in->begun) {
        receive(in, connection, url, method);
        if (!in->hopeless) return MHD_YES;
        rws__reply_fail(&reply, 413, "A body has at most %d bytes.", RWS_MAX_BODY);
        return respond(s, connection, &reply);
    }
    if (*n_part > 0) {
        in->too_large |= in->body.n + *n_part > RWS_MAX_BODY;
        if (!in->too_large) rws__buffer_add(&in->body, part, *n_part);
        *n_part = 0;
        return MHD_YES;
    }
    in->request.body = in->body.n ? in->body.bytes : "";
    in->request.n_body = in->body.n;
    in->request.gone = is_gone;
    in->request.client = connection;
    const peer *l = peer_of(connection);
    in->request.from = l ? l->from : 0;
    note_phase(s, connection, true, false);
    await_memory(s);
    reply.retry = l && l->refused;
    if (reply.retry) rws__reply_fail(&reply, 503, "The server has too many connections; try again later.");
    else if (in->n_hosts > 1) /* a proxy may have looked at the other one */
        rws__reply_fail(&reply, 400, "The request has more than one Host header.");
    else if (in->bad_header) rws__reply_fail(&reply, 400, "The name of a header has a blank.");
    else if (in->too_large) rws__reply_fail(&reply, 413, "A body has at most %d bytes.", RWS_MAX_BODY);
    else if (in->body.starved) rws__reply_fail(&reply, 503, "There is no memory for this request.");
    else if (in->bad_query) rws__reply_fail(&reply, 400, "The query has too many arguments, or a zero byte.");
    else if (in->bad_path) rws__reply_fail(&reply, 404, "There is no such address; /api lists them.");
    else rws__core_answer(s->core, &in->request, &reply);
    if (in->request.gzip) compress_reply(&reply);
    return respond(s, connection, &reply);
}

static void complete(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code)
{
    incoming *in = *own;
    (void)code;
    note_phase(context, connection, false, false);
    if (in) rws__buffer_release(&in->body);
    free(in);
    *own = NULL;
}

/* ---- life */

static void free_server(rws_server *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->watching) pthread_join(s->watcher, NULL);
    rws__core_free(s->core);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

rws_status rws__server_new(const rws_serve_options *options, int socket, int port, rws_server **out, rws_error *err)
{
    rws_server        *s = calloc(1, sizeof *s);
    pthread_condattr_t clock;
    *out = NULL;
    if (!s) return rws_no_memory(err, "a server");
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    const rws_status status = rws__core_new(options, port, &s->core, err);
    if (status != RWS_OK) {
        free_server(s);
        return status;
    }
    /* libmicrohttpd's limit on silence counts the time in which a question is answered; cut_slow has the shorter ones. */
    const unsigned silence = RWS_RECEIVE_SECONDS + RWS_SEND_SECONDS + 3 * (unsigned)ceil(options->max_seconds);
    s->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        handle, s, MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_NOTIFY_COMPLETED, complete, s,
        MHD_OPTION_URI_LOG_CALLBACK, note_address, s, MHD_OPTION_NOTIFY_CONNECTION, note_connection, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(RWS_MAX_CONNECTIONS + RWS_MAX_REFUSED),
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->anywhere ? (unsigned)RWS_MAX_FROM_ONE : 0u,
        MHD_OPTION_CONNECTION_TIMEOUT, silence, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)RWS_MAX_HEAD,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    s->watching = s->daemon && pthread_create(&s->watcher, NULL, watch, s) == 0;
    if (s->watching) {
        await_runs(s);
        *out = s;
        return RWS_OK;
    }
    if (s->daemon) MHD_stop_daemon(s->daemon);
    free_server(s);
    return rws_fail(err, RWS_NO_MEMORY, "The server cannot be started: there are no threads, or no connections, left.");
}

void rws__server_drain(rws_server *s, double seconds)
{
    const double until = rws__clock_now() + seconds;
    s->core->draining = true;
    MHD_quiesce_daemon(s->daemon); /* the socket stays open, and is the caller's */
    rws__changes_end(s->core->changes);
    for (bool busy = true; busy && rws__clock_now() < until;) {
        busy = false;
        pthread_mutex_lock(&s->lock);
        for (const peer *l = s->peers; l && !busy; l = l->next) busy = l->sending;
        pthread_mutex_unlock(&s->lock);
        if (busy) usleep(20000);
    }
}

void rws__server_free(rws_server *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    for (const peer *l = s->peers; l; l = l->next) shutdown(l->socket, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
    MHD_stop_daemon(s->daemon);
    free_server(s);
}
