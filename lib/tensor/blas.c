#include "tensor/blas.h"

#include "base/error.h"

#include <pthread.h>
#include <sys/mman.h>

enum { MOST = 64 }; /* buffers; OpenBLAS has places for at least twice as many */

#define BUFFER ((size_t)1 << 27) /* bytes of a buffer; memory is taken only for the bytes that a product uses */

/* OpenBLAS exports these two functions without declaring them in its headers; another BLAS does not have them. */
void *blas_memory_alloc(int unused) __attribute__((weak));
void  blas_memory_free(void *buffer) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             n_claimed, n_made;

static bool has_room(void)
{
    void *map = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    munmap(map, BUFFER);
    return true;
}

/* Takes n buffers at the same time, so that n exist, and gives them back. Returns how many it got. */
static int make_buffers(int n)
{
    void *taken[MOST];
    int   got = 0;
    for (; got < n && (got < n_made || has_room()); got++) taken[got] = blas_memory_alloc(0);
    for (int i = 0; i < got; i++) blas_memory_free(taken[i]);
    return got;
}

rws_status rws_blas_claim(int n, rws_error *err)
{
    pthread_mutex_lock(&lock);
    n_claimed += n;
    const int  needed = n_claimed < MOST ? n_claimed : MOST;
    const bool missing = blas_memory_alloc && blas_memory_free && needed > n_made;
    if (missing) n_made = make_buffers(needed);
    const bool enough = !missing || n_made == needed;
    if (!enough) n_claimed -= n;
    pthread_mutex_unlock(&lock);
    return enough ? RWS_OK : rws_no_memory(err, "the work space of OpenBLAS");
}

void rws_blas_unclaim(int n)
{
    pthread_mutex_lock(&lock);
    n_claimed -= n;
    pthread_mutex_unlock(&lock);
}
