#include "serve/changes.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct rws_changes {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    char           *items[RWS_CHANGES_KEPT]; /* item number i is at i % RWS_CHANGES_KEPT; NULL: there is none */
    uint64_t        latest;
    bool            over;
};

rws_changes *rws__changes_new(uint64_t before)
{
    rws_changes       *n = calloc(1, sizeof *n);
    pthread_condattr_t clock;
    if (!n) return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&n->lock, NULL);
    n->latest = before;
    return n;
}

void rws__changes_free(rws_changes *n)
{
    if (!n) return;
    for (int i = 0; i < RWS_CHANGES_KEPT; i++) free(n->items[i]);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

uint64_t rws__changes_publish(rws_changes *n, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    pthread_mutex_lock(&n->lock);
    const uint64_t number = ++n->latest;
    free(n->items[number % RWS_CHANGES_KEPT]);
    n->items[number % RWS_CHANGES_KEPT] = copy; /* NULL without memory: watchers count it as missed */
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    return number;
}

uint64_t rws__changes_latest(rws_changes *n)
{
    pthread_mutex_lock(&n->lock);
    const uint64_t latest = n->latest;
    pthread_mutex_unlock(&n->lock);
    return latest;
}

static struct timespec moment_in(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double at = (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec += (time_t)floor(at);
    t.tv_nsec = (long)((at - floor(at)) * 1e9);
    return t;
}

rws_changes_state rws__changes_wait(rws_changes *n, uint64_t after, double seconds, uint64_t *number, char **text)
{
    const struct timespec until = moment_in(seconds);
    rws_changes_state     state = RWS_CHANGES_NONE;
    *text = NULL;
    pthread_mutex_lock(&n->lock);
    while (!n->over && n->latest == after && pthread_cond_timedwait(&n->changed, &n->lock, &until) == 0) continue;
    if (n->over) state = RWS_CHANGES_OVER;
    else if (n->latest != after) {
        const bool  kept = after < n->latest && n->latest - after <= RWS_CHANGES_KEPT;
        const char *item = kept ? n->items[(after + 1) % RWS_CHANGES_KEPT] : NULL;
        *text = item ? strdup(item) : NULL;
        *number = *text ? after + 1 : n->latest;
        state = *text ? RWS_CHANGES_ITEM : RWS_CHANGES_MISSED;
    }
    pthread_mutex_unlock(&n->lock);
    return state;
}

void rws__changes_end(rws_changes *n)
{
    pthread_mutex_lock(&n->lock);
    n->over = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}
