#include "serve/warm.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct rws_warm {
    char           *folder;
    rws_posterior  *posterior; /* NULL only if it could not be opened */
    struct timespec time;      /* of the checkpoint */
    ino_t           inode;
    double          asked;  /* time of the last question */
    int             held;   /* how many threads hold it */
    bool            listed; /* in the list; if not, the last thread that gives it back closes it */
    rws_warm       *next;
};

struct rws_warm_set {
    pthread_mutex_t lock;    /* of the list */
    pthread_mutex_t opening; /* one checkpoint is loaded at a time */
    rws_warm       *list;
};

rws_warm_set *rws_warm_set_new(void)
{
    rws_warm_set *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->opening, NULL);
    return s;
}

static void close_one(rws_warm *w)
{
    rws_posterior_free(w->posterior);
    free(w->folder);
    free(w);
}

void rws_warm_set_free(rws_warm_set *s)
{
    if (!s) return;
    for (rws_warm *w = s->list, *next; w; w = next) {
        next = w->next;
        close_one(w);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->opening);
    free(s);
}

static void look(const char *folder, struct stat *is)
{
    char *path = rws_file_join(folder, "checkpoint.safetensors");
    if (!path || stat(path, is) != 0) memset(is, 0, sizeof *is);
    free(path);
}

/* Takes a posterior out of the list; it is closed now, or by the last thread that gives it back. */
static void unlist(rws_warm_set *s, rws_warm *w)
{
    rws_warm **at = &s->list;
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
    w->listed = false;
    if (w->held == 0) close_one(w);
}

/* The listed posterior of the folder, held for the caller; NULL if there is none with the present checkpoint. */
static rws_warm *find(rws_warm_set *s, const char *folder, const struct stat *is)
{
    rws_warm *w = s->list;
    while (w && strcmp(w->folder, folder) != 0) w = w->next;
    if (!w || w->inode != is->st_ino || w->time.tv_sec != is->st_mtim.tv_sec || w->time.tv_nsec != is->st_mtim.tv_nsec)
        return NULL;
    w->held++;
    w->asked = rws_clock_now();
    return w;
}

static void put(rws_warm_set *s, rws_warm *new)
{
    rws_warm *oldest = NULL;
    int       n = 0;
    for (rws_warm *w = s->list, *next; w; w = next) {
        next = w->next;
        if (strcmp(w->folder, new->folder) == 0) unlist(s, w);
        else if (n++, !oldest || w->asked < oldest->asked) oldest = w;
    }
    if (n >= RWS_WARM_MOST) unlist(s, oldest);
    new->next = s->list;
    s->list = new;
}

static rws_warm *try_find(rws_warm_set *s, const char *folder, const struct stat *is)
{
    pthread_mutex_lock(&s->lock);
    rws_warm *w = find(s, folder, is);
    pthread_mutex_unlock(&s->lock);
    return w;
}

static rws_status open_one(rws_warm_set *s, const char *folder, const rws_config *given, rws_warm **out, rws_error *err)
{
    struct stat is;
    look(folder, &is);
    if ((*out = try_find(s, folder, &is))) return RWS_OK; /* another thread has opened it meanwhile */
    rws_warm *w = calloc(1, sizeof *w);
    if (w) w->folder = strdup(folder);
    if (!w || !w->folder) {
        free(w);
        return rws_no_memory(err, "a posterior");
    }
    const rws_status status = rws_posterior_open(folder, given, NULL, &w->posterior, err);
    if (status != RWS_OK) {
        close_one(w);
        return status;
    }
    w->time = is.st_mtim, w->inode = is.st_ino;
    w->asked = rws_clock_now();
    w->held = 1;
    w->listed = true;
    pthread_mutex_lock(&s->lock);
    put(s, w);
    pthread_mutex_unlock(&s->lock);
    *out = w;
    return RWS_OK;
}

rws_status rws_warm_take(rws_warm_set *s, const char *folder, const rws_config *given, rws_warm **out, rws_error *err)
{
    struct stat is;
    look(folder, &is);
    if ((*out = try_find(s, folder, &is))) return RWS_OK;
    pthread_mutex_lock(&s->opening);
    const rws_status status = open_one(s, folder, given, out, err);
    pthread_mutex_unlock(&s->opening);
    return status;
}

void rws_warm_give_back(rws_warm_set *s, rws_warm *w)
{
    pthread_mutex_lock(&s->lock);
    w->held--;
    if (w->held == 0 && !w->listed) close_one(w);
    pthread_mutex_unlock(&s->lock);
}

rws_posterior *rws_warm_posterior(rws_warm *w)
{
    return w->posterior;
}
