/* core.h - the server without its sockets: what the routes share.
 *
 *     request -> [core: routes] -> catalogue, posteriors, changes, page -> reply
 *
 * Any number of threads may call rws__core_answer at once.
 */
#ifndef RWS_SERVE_CORE_H
#define RWS_SERVE_CORE_H

#include "serve/catalogue.h"
#include "serve/changes.h"
#include "serve/body.h"
#include "serve/request.h"
#include "serve/serve.h"
#include "serve/posteriors.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct rws_core {
    rws_serve_options options; /* borrowed */
    rws_gate          gate;
    rws_body_limits   limits;
    rws_catalogue    *catalogue;
    rws_changes      *changes;
    rws_posteriors   *posteriors;
    sem_t             work;     /* questions that may be answered at a time */
    pthread_mutex_t   drawing;  /* one figure is drawn at a time; taken before the catalogue is read */
    pthread_mutex_t   watching; /* protects the watchers */
    uint64_t          watchers[RWS_MAX_WATCHERS]; /* addresses of the clients that wait for events */
    int               n_watchers;
    atomic_bool       draining;
};

typedef struct rws_core rws_core;

/* `options` must live as long. Reads nothing yet. */
rws_status rws__core_new(const rws_serve_options *options, int port, rws_core **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws__core_free(rws_core *c); /* NULL is allowed */

/* Looks at the folders again, and tells watchers what has changed. One thread at a time. */
void rws__core_refresh(rws_core *c);

/* Checks the request and answers it. The caller releases *reply. */
void rws__core_answer(rws_core *c, const rws_request *r, rws_reply *reply);

/* ---- Routes. A handler returns true with a reply of status 200 unless it sets another, or false with a failure. */

typedef bool rws_handler(rws_core *c, const rws_request *r, rws_reply *reply);

typedef struct {
    const char  *method, *path; /* "/api/runs/{run}" */
    rws_handler *answer;
    /* Members that the description is made of (routes.c). */
    const char *id, *summary;
    const char *query;    /* names of the arguments, which blanks part; NULL: none */
    const char *body;     /* shape of the request's body; NULL: none */
    const char *examples; /* of bodies, as JSON */
    const char *type;     /* of the reply; NULL: application/json */
    const char *shape;    /* of the reply; NULL: no JSON, or any */
    const char *lines;    /* description of a reply that may come line by line; NULL: it does not */
} rws_route;

/* Every route, in routes.c: one that is not in it does not exist. Ends with a NULL method; a path has one method. */
extern const rws_route rws_routes[];

rws_handler rws__answer_overview, rws__answer_openapi, rws__answer_runs, rws__answer_run, rws__answer_metrics,
    rws__answer_metrics_of, rws__answer_snapshots, rws__answer_pictures, rws__answer_picture, rws__answer_compare,
    rws__answer_compare_svg, rws__answer_compare_pdf, rws__answer_compare_png, rws__answer_compare_csv,
    rws__answer_askable, rws__answer_infer, rws__answer_sample, rws__answer_score, rws__answer_calibrate,
    rws__answer_events;

/* ---- What several files of routes need. Functions that read runs are called between rws__catalogue_read and
 * rws__catalogue_done. */

/* The runs that "where" and "runs" of the query select; the caller frees *out. False with the reply if the query is wrong. */
bool rws__core_select(const rws_core *c, const rws_request *r, const rws_catalogue_run ***out, int *n,
                      rws_reply *reply);

/* The run that segment 2 of the path names; NULL with a 404. */
const rws_catalogue_run *rws__core_run(const rws_core *c, const rws_request *r, rws_reply *reply);

/* A run as an object with its configuration, last values and warnings. */
void rws__catalogue_run_write(const rws_core *c, const rws_catalogue_run *run, rws_buffer *out);

/* The warnings about a run, as an array of {"kind", "message"}. */
void rws__warnings_write(const rws_core *c, const rws_catalogue_run *run, rws_buffer *out);

/* The key "problems" with an array of {"path", "message"}. */
void rws__problems_write(const rws_core *c, rws_buffer *out);

/* Ends a reply: sets its type, or makes it a 503 if there was no memory for it. */
bool rws__reply_end(rws_reply *reply, const char *type);

#endif
