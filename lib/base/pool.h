/* pool.h - a few threads that share a list of independent jobs. */
#ifndef RWS_BASE_POOL_H
#define RWS_BASE_POOL_H

#include "rws.h"

typedef struct rws_pool rws_pool;

/* n threads in all, the caller's included; *out is NULL if n is 1. RWS_NO_MEMORY if the system gives no more threads.
 * */
rws_status rws__pool_new(int n, rws_pool **out, rws_error *err) __attribute__((warn_unused_result));
void       rws__pool_free(rws_pool *p); /* NULL is allowed */

/* Job number `index`; no two jobs that run at the same time have the same worker, of 0 … threads - 1. */
typedef void rws_pool_job(void *context, int index, int worker);

/* Runs jobs 0 … n - 1, each once, on whichever thread is free; returns when all are done. With a NULL pool they run
 * here, in order. */
void rws__pool_run(rws_pool *p, int n, rws_pool_job *job, void *context);

#endif
