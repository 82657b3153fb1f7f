#include "figure/memory.h"

#include "base/error.h"

#include <pthread.h>
#include <sys/mman.h>

enum { THREADS = 4 }; /* more than Pango has at a time */

#define BYTES ((size_t)256 << 20) /* of address space; a chart takes about 150 MB with its fonts and Pango's threads */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  over;
    bool            is_over;
} gate;

static void *wait_at(void *context)
{
    gate *g = context;
    pthread_mutex_lock(&g->lock);
    while (!g->is_over) pthread_cond_wait(&g->over, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static bool has_memory(void)
{
    void *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return false;
    munmap(map, BYTES);
    return true;
}

/* Whether the process may have THREADS more threads at the same time. */
static bool has_threads(void)
{
    gate      g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t threads[THREADS];
    int       n = 0;
    while (n < THREADS && pthread_create(&threads[n], NULL, wait_at, &g) == 0) n++;
    pthread_mutex_lock(&g.lock);
    g.is_over = true;
    pthread_cond_broadcast(&g.over);
    pthread_mutex_unlock(&g.lock);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    return n == THREADS;
}

rws_status rws__figure_check_memory(rws_error *err)
{
    static bool found; /* any thread may set it: it only becomes true */
    if (__atomic_load_n(&found, __ATOMIC_RELAXED)) return RWS_OK;
    if (!has_memory()) return rws_no_memory(err, "drawing a picture");
    if (!has_threads())
        return rws_fail(err, RWS_NO_MEMORY, "The system gives fewer than %d threads, which drawing a picture takes.",
                        THREADS);
    __atomic_store_n(&found, true, __ATOMIC_RELAXED);
    return RWS_OK;
}
