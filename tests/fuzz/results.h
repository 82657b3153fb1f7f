/* results.h - for the harnesses of files with runs: whatever was read, every run, number and snapshot can be used. */
#ifndef RWS_FUZZ_RESULTS_H
#define RWS_FUZZ_RESULTS_H

#include "bytes.h"
#include "rws_results.h"

#include <stdlib.h>
#include <string.h>

/* The optimiser must not drop the reads. */
static volatile double sink;

static void results_check_run(const rws_result *r)
{
    if (!r->name || !r->store) abort();
    sink = (double)strlen(rws_result_state(r));
    for (int i = 0; i < r->n_keys; i++) {
        if (!r->keys[i].key || !r->keys[i].value) abort();
        if (!rws_result_get(r, r->keys[i].key)) abort();
    }
    for (int i = 0; i < r->n_histories; i++) {
        const rws_history *h = &r->histories[i];
        if (!h->metric || h->n < 1 || !rws_result_history(r, h->metric)) abort();
        for (int k = 0; k < h->n; k++) {
            sink = h->iterations[k] + h->seconds[k] + h->values[k];
            if (k && !(h->iterations[k] > h->iterations[k - 1])) abort();
        }
        rws_gathered g;
        if (rws_gather(&r, 1, h->metric, RWS_X_ITERATION, &g, NULL) != RWS_OK) abort();
        for (int k = 0; k < g.n; k++) sink = g.x[k] + g.median[k];
        rws_gathered_release(&g);
    }
    for (int i = 0; i < r->n_shots; i++)
        for (int k = 0; k < r->shots[i].n; k++) {
            sink = r->shots[i].values[k];
            if (r->shots[i].labels && r->shots[i].labels[k]) sink = (double)strlen(r->shots[i].labels[k]);
        }
}

/* Reads the file: it is refused with a message that names it, or all of its runs can be used. */
static void results_check(const char *path)
{
    rws_error    err = {""};
    rws_results *results;
    if (rws_results_read(&path, 1, &results, &err) == RWS_OK) {
        for (int i = 0; i < results->n; i++) results_check_run(&results->runs[i]);
        rws_results_free(results);
    } else {
        bytes_check_refusal(&err, path);
        if (results) abort();
    }
}

#endif
