/* pool.h - a few threads that share a list of independent jobs. */
#ifndef RWS_RUN_POOL_H
#define RWS_RUN_POOL_H

typedef struct rws_pool rws_pool;

/* n threads in all, the caller's included; NULL if n is 1. */
rws_pool *rws_pool_new(int n);
void      rws_pool_free(rws_pool *p);

/* Job number `index`; no two jobs that run at the same time have the same worker, of 0 … threads - 1. */
typedef void rws_job(void *context, int index, int worker);

/* Runs jobs 0 … n - 1, each once, on whichever thread is free; returns when all are done. With a NULL pool they run
 * here, in order. */
void rws_pool_run(rws_pool *p, int n, rws_job *job, void *context);

#endif
