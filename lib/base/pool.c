#include "base/pool.h"

#include "base/denormals.h"
#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define SPIN 10000 /* looks for work, some 0.2 ms, before a thread sleeps: waking it takes a good part of that time */

struct rws_pool {
    pthread_mutex_t lock;
    pthread_cond_t  begin, end;
    int             n_threads, n_started; /* the caller's thread is not counted */
    pthread_t      *threads;
    int             spin; /* 0 if there are more threads than cores */
    bool            stop;
    int             next, n;
    atomic_uint     round;
    atomic_int      running;
    rws_pool_job   *job;
    void           *context;
};

static inline void rest(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Takes jobs until there are none; the lock is held between them. */
static void work(rws_pool *p, int self)
{
    while (p->next < p->n) {
        const int index = p->next++;
        p->running++;
        pthread_mutex_unlock(&p->lock);
        p->job(p->context, index, self);
        pthread_mutex_lock(&p->lock);
        if (--p->running == 0 && p->next == p->n) pthread_cond_signal(&p->end);
    }
}

static void *worker(void *arg)
{
    rws_pool *p = arg;
    rws__denormals_off();
    pthread_mutex_lock(&p->lock);
    const int self = ++p->n_started;
    for (unsigned seen = 0; !p->stop;) {
        if (p->round == seen) {
            pthread_mutex_unlock(&p->lock);
            for (int i = 0; i < p->spin && p->round == seen; i++) rest();
            pthread_mutex_lock(&p->lock);
        }
        while (p->round == seen && !p->stop) pthread_cond_wait(&p->begin, &p->lock);
        seen = p->round;
        work(p, self);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

rws_status rws__pool_new(int n, rws_pool **out, rws_error *err)
{
    *out = NULL;
    if (n <= 1) return RWS_OK;
    rws_pool *p = calloc(1, sizeof *p);
    if (!p) return rws_no_memory(err, "threads");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->end, NULL);
    p->spin = n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN : 0;
    p->threads = calloc((size_t)n, sizeof *p->threads);
    while (p->threads && p->n_threads < n - 1 && pthread_create(&p->threads[p->n_threads], NULL, worker, p) == 0)
        p->n_threads++;
    if (p->n_threads == n - 1) {
        *out = p;
        return RWS_OK;
    }
    const int started = p->n_threads + 1;
    rws__pool_free(p);
    return rws_fail(err, RWS_NO_MEMORY, "The system gives only %d of %d threads; ask for fewer.", started, n);
}

void rws__pool_free(rws_pool *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_threads; i++) pthread_join(p->threads[i], NULL);
    free(p->threads);
    free(p);
}

void rws__pool_run(rws_pool *p, int n, rws_pool_job *job, void *context)
{
    if (!p || n == 1) {
        for (int i = 0; i < n; i++) job(context, i, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->job = job;
    p->context = context;
    p->next = 0;
    p->n = n;
    p->round++;
    pthread_cond_broadcast(&p->begin);
    work(p, 0);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->spin && p->running > 0; i++) rest();
    pthread_mutex_lock(&p->lock);
    while (p->running > 0) pthread_cond_wait(&p->end, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
