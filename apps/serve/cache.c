/* cache.c - replies that are kept, because several watchers ask for the same reply when something has changed.
 *
 * A reply is good as long as the serial number of the catalogue is that of the reply. The oldest is overwritten.
 */
#include "serve/core.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 64, MAX_KEY = RWS_MAX_HEAD, MAX_KEPT = 8 << 20, STRIPES = 16 };

typedef struct {
    char    *key; /* path and query */
    uint64_t serial;
    char    *bytes;
    size_t   n;
} kept;

struct rws_reply_cache {
    pthread_mutex_t lock;
    kept            list[KEPT];
    int             next;            /* the place that is overwritten next */
    pthread_mutex_t making[STRIPES]; /* by the hash of the key: a reply that many want is made once */
};

void rws__reply_cache_free(rws_reply_cache *c)
{
    if (!c) return;
    for (int i = 0; i < KEPT; i++) free(c->list[i].key), free(c->list[i].bytes);
    pthread_mutex_destroy(&c->lock);
    for (int i = 0; i < STRIPES; i++) pthread_mutex_destroy(&c->making[i]);
    free(c);
}

rws_reply_cache *rws__reply_cache_new(void)
{
    rws_reply_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    pthread_mutex_init(&c->lock, NULL);
    for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&c->making[i], NULL);
    return c;
}

static pthread_mutex_t *stripe_of(rws_reply_cache *c, const char *key)
{
    unsigned hash = 5381;
    for (; *key; key++) hash = 33 * hash + (unsigned char)*key;
    return &c->making[hash % STRIPES];
}

/* Names and values may contain any byte; therefore the key has the length of each. A segment has no slash. */
static bool make_key(const rws_request *r, rws_buffer *key)
{
    for (int i = 0; i < r->n_segments; i++) rws__buffer_print(key, "/%s", r->segment[i]);
    for (int i = 0; i < r->n_arguments; i++) {
        const rws_argument *a = &r->arguments[i];
        rws__buffer_print(key, "/%zu:%s,%zu:%s", strlen(a->name), a->name, strlen(a->value), a->value);
    }
    return key->bytes && !key->starved && key->n < MAX_KEY;
}

static bool cache_find(rws_reply_cache *c, const char *key, uint64_t serial, rws_reply *reply)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < KEPT && !found; i++) {
        const kept *k = &c->list[i];
        if (!k->key || k->serial != serial || strcmp(k->key, key) != 0) continue;
        rws__buffer_add(&reply->body, k->bytes, k->n);
        found = !reply->body.starved;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void cache_put(rws_reply_cache *c, const char *key, uint64_t serial, const rws_buffer *body)
{
    if (body->n > MAX_KEPT) return;
    kept new = {strdup(key), serial, malloc(body->n + 1), body->n};
    if (new.key &&new.bytes) memcpy(new.bytes, body->bytes, body->n);
    pthread_mutex_lock(&c->lock);
    int at = c->next;
    for (int i = 0; i < KEPT; i++)
        if (c->list[i].key && strcmp(c->list[i].key, key) == 0) at = i;
    if (at == c->next) c->next = (c->next + 1) % KEPT;
    const kept old = c->list[at];
    c->list[at] = new.key &&new.bytes ? new : (kept){0};
    if (!c->list[at].key) free(new.key), free(new.bytes);
    pthread_mutex_unlock(&c->lock);
    free(old.key);
    free(old.bytes);
}

/* ---- answering */

bool rws__core_answer_cached(rws_core *c, const rws_route *route, const rws_request *r, rws_reply *reply)
{
    rws_buffer key = {0};
    rws__catalogue_read(c->catalogue);
    const uint64_t serial = rws__catalogue_serial(c->catalogue);
    rws__catalogue_done(c->catalogue);
    const bool keep = make_key(r, &key);
    bool       good = keep && cache_find(c->cache, key.bytes, serial, reply);
    if (!good && keep) {
        pthread_mutex_t *making = stripe_of(c->cache, key.bytes);
        pthread_mutex_lock(making);
        good = cache_find(c->cache, key.bytes, serial, reply); /* another thread has made it meanwhile */
        if (!good && (good = route->answer(c, r, reply))) cache_put(c->cache, key.bytes, serial, &reply->body);
        pthread_mutex_unlock(making);
    } else if (!good) good = route->answer(c, r, reply);
    if (good) rws__reply_end(reply, "application/json");
    rws__buffer_release(&key);
    return good;
}
