/* pool.h - a few threads that share a list of independent jobs. */
#ifndef RWS_RUN_POOL_H
#define RWS_RUN_POOL_H

typedef struct rws_pool rws_pool;

/* n threads in all, the caller's included; NULL if n is 1. */
rws_pool *rws_pool_new(int n);
void      rws_pool_free(rws_pool *p);

/* Runs job(context, 0) … job(context, n - 1), each once, on whichever thread is free; returns when all are done. With a
 * NULL pool they run here, in order. */
void rws_pool_run(rws_pool *p, int n, void (*job)(void *context, int index), void *context);

#endif
