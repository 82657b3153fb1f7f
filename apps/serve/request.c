#include "serve/request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- paths */

bool rws__request_path(rws_request *r, const char *path)
{
    r->n_segments = 0;
    if (path[0] != '/') return false;
    for (const char *at = path + 1; *at;) {
        const size_t n = strcspn(at, "/");
        if (n == 0 || n > RWS_MAX_SEGMENT || at[0] == '.' || r->n_segments == RWS_MAX_SEGMENTS) return false;
        for (size_t i = 0; i < n; i++)
            if (!isalnum((unsigned char)at[i]) && !strchr("-_.", at[i])) return false;
        memcpy(r->segment[r->n_segments], at, n);
        r->segment[r->n_segments++][n] = '\0';
        at += n;
        if (*at == '/' && !*++at) return false; /* a slash at the end */
    }
    return true;
}

/* ---- host, origin, token */

/* Cuts "[::1]:80" or "name:80" into name and port. False if it is neither. The name has no brackets. */
static bool cut_host(const char *host, char *name, size_t size, long *port)
{
    const bool   brackets = host[0] == '[';
    const size_t n = strcspn(host + brackets, brackets ? "]" : ":");
    const char  *rest = host + brackets + n;
    char        *end;
    if (n == 0 || n >= size || (brackets && *rest++ != ']')) return false;
    memcpy(name, host + brackets, n);
    name[n] = '\0';
    *port = 80;
    if (!*rest) return true;
    if (*rest++ != ':' || !isdigit((unsigned char)*rest) || strlen(rest) > 5) return false;
    *port = strtol(rest, &end, 10);
    return !*end;
}

static bool is_numeric(const char *name)
{
    unsigned char address[16];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

bool rws__gate_host(const rws_gate *g, const char *host)
{
    char name[256];
    long port;
    if (!host || !cut_host(host, name, sizeof name, &port) || port != g->port) return false;
    static const char *const loopback[] = {"127.0.0.1", "localhost", "::1"};
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        if (strcasecmp(name, loopback[i]) == 0) return true;
    for (int i = 0; i < g->n_names; i++)
        if (strcasecmp(name, g->names[i]) == 0) return true;
    return g->anywhere && is_numeric(name); /* an attack by DNS needs a name */
}

/* Whether the origin is "http://HOST" or "https://HOST" with the host of the request. */
static bool same_origin(const char *origin, const char *host)
{
    const bool secure = strncasecmp(origin, "https://", 8) == 0;
    return (secure || strncasecmp(origin, "http://", 7) == 0) && strcasecmp(origin + (secure ? 8 : 7), host) == 0;
}

bool rws__token_equal(const char *token, const char *given)
{
    const size_t  n = strlen(token), m = strlen(given);
    volatile char differ = (char)(n != m);
    for (size_t i = 0; i < n; i++) differ |= (char)(token[i] ^ (m ? given[i % m] : 0));
    return differ == 0;
}

/* The token of the cookie, cut out into `out`; NULL if there is none. */
static const char *cookie_token(const char *cookie, char *out, size_t size)
{
    static const char name[] = "rws-token=";
    for (const char *at = cookie; at; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, name, sizeof name - 1) != 0) {
            if (!*at) return NULL;
            continue;
        }
        at += sizeof name - 1;
        const size_t n = strcspn(at, "; ");
        if (n >= size) return NULL;
        memcpy(out, at, n);
        out[n] = '\0';
        return out;
    }
    return NULL;
}

bool rws__gate_token(const rws_gate *g, const rws_request *r)
{
    char        cookie[128];
    const char *given = NULL;
    if (!g->token) return true;
    if (r->authorization && strncasecmp(r->authorization, "Bearer ", 7) == 0) given = r->authorization + 7;
    else if (r->cookie) given = cookie_token(r->cookie, cookie, sizeof cookie);
    return given && rws__token_equal(g->token, given);
}

/* application/json, with or without a charset of UTF-8. Forms of other sites cannot send it. */
static bool is_json(const char *type)
{
    static const char name[] = "application/json";
    if (!type || strncasecmp(type, name, sizeof name - 1) != 0) return false;
    const char *rest = type + sizeof name - 1;
    rest += strspn(rest, " ");
    if (!*rest) return true;
    rest += *rest == ';';
    return strcasecmp(rest + strspn(rest, " "), "charset=utf-8") == 0;
}

bool rws__gate_pass(const rws_gate *g, const rws_request *r, rws_reply *reply)
{
    const bool post = strcmp(r->method, "POST") == 0;
    if (!rws__gate_host(g, r->host))
        return rws__reply_fail(reply, 421,
                               "The Host header does not name this server. Use the address that rws serve "
                               "printed; a further name needs --host NAME.");
    const bool other = post && r->site && strcmp(r->site, "same-origin") != 0 && strcmp(r->site, "none") != 0;
    if (other || (r->origin && !same_origin(r->origin, r->host)))
        return rws__reply_fail(reply, 403, "Pages of other sites cannot use this server.");
    if (!rws__gate_token(g, r))
        return rws__reply_fail(reply, 401,
                               "This server needs its token: open the address that rws serve printed, or send "
                               "the header \"Authorization: Bearer TOKEN\".");
    if (post && !is_json(r->type))
        return rws__reply_fail(reply, 415,
                               "The body must be JSON: send the header \"Content-Type: application/json\".");
    return true;
}

/* ---- arguments */

const char *rws__request_argument(const rws_request *r, const char *name)
{
    for (int i = 0; i < r->n_arguments; i++)
        if (strcmp(r->arguments[i].name, name) == 0) return r->arguments[i].value;
    return NULL;
}

bool rws__request_count(const rws_request *r, const char *name, double least, double most, double otherwise,
                        double *out, rws_reply *reply)
{
    const char *text = rws__request_argument(r, name);
    char       *end;
    *out = otherwise;
    if (!text) return true;
    *out = strtod(text, &end);
    if (end != text && !*end && *out >= least && *out <= most && *out == floor(*out)) return true;
    return rws__reply_fail(reply, 400, "\"%s\" is a whole number from %.0f to %.0f.", name, least, most);
}

/* ---- replies */

bool rws__reply_fail(rws_reply *reply, int status, const char *format, ...)
{
    char    message[sizeof(rws_error) + 512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    rws__buffer_release(&reply->body);
    rws__buffer_open(&reply->body, '{');
    rws__buffer_key_text(&reply->body, "error", message);
    rws__buffer_close(&reply->body, '}');
    reply->status = status;
    reply->type = "application/json";
    return false;
}

bool rws__reply_status(rws_reply *reply, rws_status status, const rws_error *err)
{
    reply->retry = status == RWS_NO_MEMORY;
    switch (status) {
    case RWS_BAD_INPUT: return rws__reply_fail(reply, 400, "%s", err->text);
    case RWS_BROKEN: return rws__reply_fail(reply, 500, "%s", err->text);
    default: return rws__reply_fail(reply, 503, "%s", err->text);
    }
}

void rws__reply_release(rws_reply *reply)
{
    rws__buffer_release(&reply->body);
    if (reply->stream.free) reply->stream.free(reply->stream.context);
    *reply = (rws_reply){0};
}
