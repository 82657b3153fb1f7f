#include "serve/posteriors.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "store/checkpoint_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct rws_opened {
    char           *folder;
    rws_posterior  *posterior; /* NULL only if it could not be opened */
    struct timespec time;      /* of the checkpoint */
    ino_t           inode;
    double          asked;  /* time of the last question */
    int             held;   /* how many threads hold it */
    bool            listed; /* in the list; if not, the last thread that gives it back closes it */
    rws_opened     *next;
};

struct rws_posteriors {
    pthread_mutex_t lock;    /* of the list */
    pthread_mutex_t opening; /* one checkpoint is loaded at a time */
    rws_opened     *list;
};

rws_posteriors *rws__posteriors_new(void)
{
    rws_posteriors *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->opening, NULL);
    return s;
}

static void close_one(rws_opened *w)
{
    rws_posterior_free(w->posterior);
    free(w->folder);
    free(w);
}

void rws__posteriors_free(rws_posteriors *s)
{
    if (!s) return;
    for (rws_opened *w = s->list, *next; w; w = next) {
        next = w->next;
        close_one(w);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->opening);
    free(s);
}

static void read_status(const char *folder, struct stat *is)
{
    char *path = rws__file_join(folder, rws_checkpoint_name);
    if (!path || stat(path, is) != 0) memset(is, 0, sizeof *is);
    free(path);
}

/* Takes a posterior out of the list; it is closed now, or by the last thread that gives it back. */
static void unlist(rws_posteriors *s, rws_opened *w)
{
    rws_opened **at = &s->list;
    while (*at && *at != w) at = &(*at)->next;
    if (*at) *at = w->next;
    w->listed = false;
    if (w->held == 0) close_one(w);
}

/* The listed posterior of the folder, held for the caller; NULL if there is none with the present checkpoint. */
static rws_opened *find(rws_posteriors *s, const char *folder, const struct stat *is)
{
    rws_opened *w = s->list;
    while (w && strcmp(w->folder, folder) != 0) w = w->next;
    if (!w || w->inode != is->st_ino || w->time.tv_sec != is->st_mtim.tv_sec || w->time.tv_nsec != is->st_mtim.tv_nsec)
        return NULL;
    w->held++;
    w->asked = rws__clock_now();
    return w;
}

static void put(rws_posteriors *s, rws_opened *new)
{
    rws_opened *oldest = NULL;
    int         n = 0;
    for (rws_opened *w = s->list, *next; w; w = next) {
        next = w->next;
        if (strcmp(w->folder, new->folder) == 0) unlist(s, w);
        else if (n++, !oldest || w->asked < oldest->asked) oldest = w;
    }
    if (n >= RWS_POSTERIORS_MOST) unlist(s, oldest);
    new->next = s->list;
    s->list = new;
}

static rws_opened *try_find(rws_posteriors *s, const char *folder, const struct stat *is)
{
    pthread_mutex_lock(&s->lock);
    rws_opened *w = find(s, folder, is);
    pthread_mutex_unlock(&s->lock);
    return w;
}

static rws_status open_one(rws_posteriors *s, const char *folder, const rws_config *given, rws_opened **out,
                           rws_error *err)
{
    struct stat is;
    read_status(folder, &is);
    if ((*out = try_find(s, folder, &is))) return RWS_OK; /* another thread has opened it meanwhile */
    rws_opened *w = calloc(1, sizeof *w);
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
    w->asked = rws__clock_now();
    w->held = 1;
    w->listed = true;
    pthread_mutex_lock(&s->lock);
    put(s, w);
    pthread_mutex_unlock(&s->lock);
    *out = w;
    return RWS_OK;
}

rws_status rws__posteriors_take(rws_posteriors *s, const char *folder, const rws_config *given, rws_opened **out,
                                rws_error *err)
{
    struct stat is;
    read_status(folder, &is);
    if ((*out = try_find(s, folder, &is))) return RWS_OK;
    pthread_mutex_lock(&s->opening);
    const rws_status status = open_one(s, folder, given, out, err);
    pthread_mutex_unlock(&s->opening);
    return status;
}

void rws__posteriors_give_back(rws_posteriors *s, rws_opened *w)
{
    pthread_mutex_lock(&s->lock);
    w->held--;
    if (w->held == 0 && !w->listed) close_one(w);
    pthread_mutex_unlock(&s->lock);
}

rws_posterior *rws__opened_posterior(rws_opened *w)
{
    return w->posterior;
}
