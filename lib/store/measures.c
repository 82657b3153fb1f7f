/* measures.c - evaluations wait in memory until they are flushed, and are then added to the store in one transaction. */
#include "store/folder.h"

#include "base/error.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

void rws__folder_forget_pending(rws_folder *f)
{
    for (int i = 0; i < f->n_pending; i++) rws__snapshots_release(&f->kept[i].shown);
    f->n_pending = 0;
}

rws_status rws__folder_record(rws_folder *f, const rws_measures *m, const rws_snapshots *shown, rws_error *err)
{
    RWS_CHECK(m->n >= 0 && m->n <= RWS_MAX_METRICS);
    for (int i = 0; i < m->n; i++) f->metrics[i] = m->names[i];
    f->metrics[m->n] = "impossible";
    f->impossible |= m->impossible > 0;
    if (!rws__list_grow(&f->kept, f->n_pending, &f->pending_capacity, sizeof *f->kept))
        return rws_no_memory(err, "the numbers of an evaluation");
    pending *p = &f->kept[f->n_pending++];
    *p = (pending){.iteration = m->iteration, .n = m->n, .seconds = m->seconds};
    memcpy(p->value, m->value, (size_t)m->n * sizeof *m->value);
    if (f->impossible) p->value[p->n++] = m->impossible;
    for (int i = 0; shown && i < shown->n; i++) {
        if (rws__snapshots_add(&p->shown, &shown->list[i])) continue;
        rws__snapshots_release(&p->shown);
        f->n_pending--;
        return rws_no_memory(err, "a snapshot");
    }
    return RWS_OK;
}

rws_status rws__folder_lacks(const rws_folder *f, uint64_t iteration, bool *missing, rws_error *err)
{
    rws_store_progress progress;
    RWS_TRY(rws__store_progress(f->store_path, f->name, &progress, err));
    *missing = progress.iteration < iteration;
    return RWS_OK;
}

rws_status rws__folder_flush(rws_folder *f, rws_error *err)
{
    if (f->n_pending == 0) return RWS_OK;
    char            *config = rws__config_text(f->config.document);
    rws_store_entry *entries = calloc((size_t)f->n_pending, sizeof *entries);
    rws_status       status = RWS_OK;
    if (!config || !entries) {
        status = rws_no_memory(err, "the numbers of an evaluation");
    } else {
        for (int i = 0; i < f->n_pending; i++) {
            const pending *p = &f->kept[i];
            entries[i] =
                (rws_store_entry){p->iteration, p->seconds, p->n, f->metrics, p->value, p->shown.n, p->shown.list};
        }
        const rws_store_run run = {f->name, config, RWS_VERSION_STRING, f->started};
        status = rws__store_add(f->store_path, &run, entries, f->n_pending, err);
    }
    free(entries);
    free(config);
    if (status == RWS_OK) rws__folder_forget_pending(f);
    return status;
}

rws_status rws__folder_fail(rws_folder *f, uint64_t iteration, const char *message, rws_error *err)
{
    RWS_TRY(rws__folder_flush(f, err));
    return rws__store_fail(f->store_path, f->name, iteration, message, err);
}

rws_status rws__folder_add(rws_folder *f, uint64_t iteration, double seconds, int n, const char *const *names,
                           const double *values, rws_error *err)
{
    const rws_store_entry entry = {
        .iteration = iteration, .seconds = seconds, .n = n, .names = names, .values = values};
    return rws__store_add_metrics(f->store_path, f->name, &entry, err);
}
