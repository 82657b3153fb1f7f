#include "sweep/runs.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "rws/options.h"
#include "rws/output.h"
#include "sweep/slurm.h"
#include "optim/schedule.h"
#include "store/checkpoint.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_done(const rws_sweep_entry *e, const rws_store_progress *p)
{
    return p->known && !p->failed && p->iteration >= e->run->config.iterations &&
           (p->measured || !e->run->final_particles);
}

char *rws__run_folder(const rws_campaign *s, const rws_sweep_entry *e)
{
    char *folder = rws__file_join(s->options->folder, e->run->name);
    rws__need_memory(folder != NULL, "the path of a run");
    return folder;
}

bool rws__run_is_busy(const rws_campaign *s, const rws_sweep_entry *e)
{
    char      *folder = rws__run_folder(s, e);
    const bool busy = rws__folder_is_busy(folder);
    free(folder);
    return busy;
}

char *rws__run_store(const rws_campaign *s, const rws_sweep_entry *e)
{
    char *folder = rws__run_folder(s, e);
    char *store = s->store ? strdup(s->store) : rws__file_join(folder, "metrics.sqlite");
    rws__need_memory(store != NULL, "the path of a run");
    free(folder);
    return store;
}

bool rws__folder_has(const char *folder, const char *name)
{
    char *path = rws__file_join(folder, name);
    rws__need_memory(path != NULL, "the path of a run");
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Refuses what the sweep wants of a run that is trained further, or was trained with other settings. */
static rws_status compare(const rws_config *wanted, const rws_config *stored, uint64_t done,
                          const rws_recorded *recorded, rws_error *err)
{
    const rws_options o = rws__options_of(wanted);
    const rws_quoted  run = rws__quote_short(recorded->folder);
    rws_config        unused;
    rws_schedule      had, has;
    RWS_TRY(rws__options_resume(&o, stored, recorded, &unused, err));
    if (done > wanted->iterations)
        return rws_fail(err, RWS_BAD_INPUT,
                        "iterations %" PRIu64 " contradict the run in %s, which has done %" PRIu64 ".",
                        wanted->iterations, run.text, done);
    if (!wanted->lr) return RWS_OK;
    RWS_TRY(rws__schedule_parse(stored->lr, &had, err));
    RWS_TRY(rws__schedule_parse(wanted->lr, &has, err));
    if (rws__schedule_agree(&had, &has, done)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "lr %s contradicts the run in %s, which has had %s.",
                    rws__quote_short(wanted->lr).text, run.text, rws__quote_short(stored->lr).text);
}

/* Refuses a finished run that is not the sweep's. One without a folder, of which only the metrics are known, is taken
 * as it is. */
static rws_status check_settings(const rws_campaign *s, const rws_sweep_entry *e, rws_error *err)
{
    char       *path = rws__run_folder(s, e);
    rws_folder *folder = NULL;
    rws_config  stored;
    rws_status  status = RWS_OK;
    if (rws__folder_has(path, "config.json")) status = rws__folder_open(path, &stored, &folder, err);
    if (folder) status = compare(&e->run->config, &stored, e->iteration, rws__folder_recorded(folder), err);
    rws__folder_close(folder);
    free(path);
    return status;
}

static void fail_early(rws_campaign *s, rws_sweep_entry *e, rws_status status, const char *message)
{
    e->stage = FAILED;
    e->failure = strdup(message);
    s->result.failed++;
    if (!s->result.worst) s->result.worst = status;
}

rws_status rws__run_find_progress(rws_campaign *s, rws_sweep_entry *e, rws_error *err)
{
    rws_store_progress p;
    char              *store = rws__run_store(s, e);
    const rws_status   status = rws__store_progress(store, e->run->name, &p, err);
    free(store);
    RWS_TRY(status);
    e->iteration = p.iteration;
    if (is_done(e, &p)) {
        const rws_status settings = check_settings(s, e, err);
        if (settings == RWS_BAD_INPUT) fail_early(s, e, settings, err->text);
        else RWS_TRY(settings);
        if (settings == RWS_OK) e->stage = FINISHED;
    } else if (rws_sweep_run_is_done(e->run, rws_sweep_run_result(e->run, s->options->known))) e->stage = FINISHED;
    else if (p.failed && !s->options->retry)
        fail_early(s, e, RWS_BROKEN, "It ended with a numerical failure before; --retry would try again.");
    if (p.known && p.iteration > 0 && !s->paces[e->kind].watched)
        s->paces[e->kind] = (rws_sweep_pace){p.seconds, (double)p.iteration, false};
    return RWS_OK;
}

static void find_kinds(rws_campaign *s, const rws_sweep *sweep)
{
    char **kinds = calloc((size_t)s->n, sizeof *kinds);
    rws__need_memory(kinds != NULL, "a sweep");
    for (int i = 0; i < s->n; i++) {
        rws_sweep_entry *e = &s->entries[i];
        e->run = &sweep->runs[i];
        kinds[i] = rws_sweep_kind(e->run);
        rws__need_memory(kinds[i] != NULL, "a sweep");
        while (strcmp(kinds[e->kind], kinds[i]) != 0) e->kind++;
    }
    for (int i = 0; i < s->n; i++) free(kinds[i]);
    free(kinds);
}

rws_status rws__campaign_separate(const char *folder, rws_error *err)
{
    if (!rws__folder_has(folder, "metrics.sqlite")) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "The runs in \"%s\" share a store, which two machines must not write: give tasks another --out.",
                    rws__quote(folder).text);
}

/* Whether every run has a store of its own: tasks work on the runs, or have begun them, or files cannot be locked. */
static bool is_separate(const rws_campaign *s, const rws_sweep *sweep)
{
    if (s->options->n_tasks) return true;
    if (rws__folder_has(s->options->folder, "metrics.sqlite")) return false;
    bool separate = rws__folder_has(s->options->folder, RWS_TASKS_FOLDER) || !rws__store_has_locks(s->options->folder);
    for (int i = 0; i < sweep->n && !separate; i++) {
        char *folder = rws__file_join(s->options->folder, sweep->runs[i].name);
        separate = rws__folder_has(folder, "metrics.sqlite");
        free(folder);
    }
    return separate;
}

rws_status rws__runs_prepare(rws_campaign *s, const rws_sweep *sweep, rws_error *err)
{
    RWS_TRY(rws__file_make_folder(s->options->folder, err));
    if (s->options->n_tasks) RWS_TRY(rws__campaign_separate(s->options->folder, err));
    if (s->options->n_tasks) {
        char            *tasks = rws__file_join(s->options->folder, RWS_TASKS_FOLDER);
        const rws_status status = rws__file_make_folder(tasks, err);
        free(tasks);
        RWS_TRY(status);
    }
    if (!is_separate(s, sweep)) {
        s->store = rws__file_join(s->options->folder, "metrics.sqlite");
        if (!s->store) return rws_no_memory(err, "a sweep");
        RWS_TRY(rws__store_make(s->store, err));
    }
    find_kinds(s, sweep);
    for (int i = 0; i < s->n; i++) {
        RWS_TRY(rws__run_find_progress(s, &s->entries[i], err));
        s->result.found += s->entries[i].stage == FINISHED;
    }
    return RWS_OK;
}
