/* store.c - libFuzzer harness for stores, SQLite files that rws runs, plot and export open: whatever the bytes, they are
 * refused with a sentence that names the file, or every run, number and snapshot can be read. The file lies in the working
 * folder, since SQLite puts its journal beside it. */
#include "bytes.h"
#include "run/gather.h"
#include "run/store.h"
#include "rws_train.h"

#include <fcntl.h>
#include <math.h>

static const char path[] = "fuzz-store.sqlite";

/* The optimiser must not drop the reads. */
static volatile double sink;

static void check(const rws_result *r)
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
        rws_gather(&r, 1, h->metric, RWS_X_ITERATION, &g);
        for (int k = 0; k < g.n; k++) sink = g.x[k] + g.median[k];
        rws_gathered_release(&g);
    }
    for (int i = 0; i < r->n_shots; i++)
        for (int k = 0; k < r->shots[i].n; k++) {
            sink = r->shots[i].values[k];
            if (r->shots[i].labels && r->shots[i].labels[k]) sink = (double)strlen(r->shots[i].labels[k]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error          err = {""};
    rws_results       *results;
    rws_store_progress progress;
    char              *name = NULL, *config = NULL;
    const char        *paths[] = {path};
    const int          fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) abort();
    rws_store_patience(10);
    if (rws_results_read(paths, 1, &results, &err) == RWS_OK) {
        for (int i = 0; i < results->n; i++) check(&results->runs[i]);
        rws_results_free(results);
    } else {
        bytes_check_refusal(&err, path);
        if (results) abort();
    }
    if (rws_store_ask(path, "run", &progress, &err) != RWS_OK) bytes_check_refusal(&err, path);
    if (rws_store_identify(path, "run", &name, &config, &err) != RWS_OK) bytes_check_refusal(&err, path);
    else if (!name != !config) abort();
    free(name);
    free(config);
    unlink("fuzz-store.sqlite-journal");
    return 0;
}
