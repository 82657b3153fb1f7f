#include "sweep/slurm.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "rws/output.h"
#include "store/held.h"
#include "results/results.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENT 60 /* seconds after which a task that has written nothing is taken for gone */

/* ---- other programs */

/* Runs a program. *line becomes the first line that it prints or, if it prints nothing, complains; g_free frees it. Returns its
 * exit status, 127 if it cannot be started. */
static int run_program(const char *const *argv, char **line)
{
    char      *out = NULL, *complaint = NULL;
    int        status = 0;
    const bool ran =
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &complaint, &status, NULL);
    const char *text = !ran ? "" : out[0] ? out : complaint;
    *line = g_strndup(text, strcspn(text, "\n"));
    g_free(out);
    g_free(complaint);
    return ran && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* ---- the records of tasks */

/* A file of the tasks, or their folder if the name is NULL; g_free frees it. */
static char *task_path(const char *folder, const char *name)
{
    return g_build_filename(folder, RWS_TASKS_FOLDER, name, NULL);
}

void rws__task_write(const char *folder, int task, int n_tasks, const rws_task_run *runs, int n, bool ended)
{
    char        name[32], host[64] = "?";
    rws_error   ignored;
    const char *job = getenv("SLURM_ARRAY_JOB_ID");
    snprintf(name, sizeof name, "%d", task);
    gethostname(host, sizeof host - 1);
    json_t *o = json_pack("{s:i,s:i,s:s,s:i,s:s*,s:I,s:b,s:[]}", "task", task, "tasks", n_tasks, "host", host, "pid",
                          (int)getpid(), "job", job, "time", (json_int_t)time(NULL), "ended", ended, "runs");
    for (int i = 0; i < n && o; i++)
        json_array_append_new(json_object_get(o, "runs"),
                              json_pack("{s:s,s:I}", "run", runs[i].run, "iteration", (json_int_t)runs[i].iteration));
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL, *path = task_path(folder, name);
    if (text) (void)!rws__file_replace(path, &(rws_piece){text, strlen(text)}, 1, &ignored);
    g_free(path);
    free(text);
    json_decref(o);
}

static int is_task(const struct dirent *entry)
{
    return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

/* The records that the tasks have written, an object for each, by rising number. The caller releases the array. */
static json_t *read_tasks(const char *folder)
{
    char           *tasks = task_path(folder, NULL);
    struct dirent **names = NULL;
    const int       n = scandir(tasks, &names, is_task, versionsort);
    json_t         *list = json_array();
    for (int i = 0; i < n; i++) {
        char *path = task_path(folder, names[i]->d_name);
        json_array_append_new(list, json_load_file(path, 0, NULL));
        g_free(path);
        free(names[i]);
    }
    free(names);
    g_free(tasks);
    return list;
}

/* ---- status */

typedef struct {
    const char *state; /* finished, failed, training, waiting, stopped */
    uint64_t    iteration;
    json_t     *task; /* that trains it, or trained it last; borrowed */
    bool        silent;
} standing;

/* `held` tells whether a process on this machine trains the run. */
static standing standing_of(const rws_sweep_run *run, const rws_result *r, json_t *tasks, bool held)
{
    standing s = {.state = "waiting", .iteration = r ? r->iteration : 0};
    size_t   i, k;
    json_t  *task, *one;
    json_array_foreach(tasks, i, task)
    {
        json_array_foreach(json_object_get(task, "runs"), k, one)
        {
            const char *name = json_string_value(json_object_get(one, "run"));
            if (!name || strcmp(name, run->name) != 0) continue;
            const json_int_t iteration = json_integer_value(json_object_get(one, "iteration"));
            const bool       ended = json_is_true(json_object_get(task, "ended"));
            s.task = task;
            s.silent = time(NULL) - json_integer_value(json_object_get(task, "time")) > SILENT;
            s.state = ended || s.silent ? "stopped" : "training";
            if ((uint64_t)iteration > s.iteration) s.iteration = (uint64_t)iteration;
        }
    }
    if (r && strcmp(s.state, "waiting") == 0 && r->iteration > 0) s.state = "stopped";
    if (held) s.state = "training";
    if (r && r->failure && strcmp(s.state, "training") != 0) s.state = "failed";
    if (rws_sweep_run_is_done(run, r)) s.state = "finished";
    if (strcmp(s.state, "finished") == 0 || strcmp(s.state, "failed") == 0) s.task = NULL;
    return s;
}

static void print_standing(const rws_sweep_run *run, const standing *s, bool json)
{
    char        who[160] = "";
    const char *host = json_string_value(json_object_get(s->task, "host")),
               *job = json_string_value(json_object_get(s->task, "job"));
    const int task = (int)json_integer_value(json_object_get(s->task, "task"));
    if (json) {
        json_t *o = json_pack("{s:s,s:s,s:I,s:I}", "run", run->name, "state", s->state, "iteration",
                              (json_int_t)s->iteration, "iterations", (json_int_t)run->config.iterations);
        if (s->task) json_object_set_new(o, "task", json_integer(task));
        if (host) json_object_set_new(o, "host", json_string(host));
        if (job) json_object_set_new(o, "job", json_string(job));
        rws__output_json(o);
        return;
    }
    if (s->task)
        snprintf(who, sizeof who, "  task %d on %s%s%s%s", task, host ? host : "?", job ? ", job " : "", job ? job : "",
                 s->silent ? ", which is silent" : "");
    printf("%-9s %10" PRIu64 "/%-10" PRIu64 " %s%s\n", s->state, s->iteration, run->config.iterations, run->name, who);
}

rws_status rws__slurm_status(const rws_sweep *sweep, const char *folder, bool json, rws_error *err)
{
    static const char *const states[] = {"finished", "training", "waiting", "stopped", "failed"};
    rws_results             *r;
    int                      count[5] = {0};
    RWS_TRY(rws__results_read_if_any(folder, &r, err));
    json_t  *tasks = read_tasks(folder);
    rws_held held = rws__held_read();
    for (int i = 0; i < sweep->n; i++) {
        char *own = rws__file_join(folder, sweep->runs[i].name);
        rws__need_memory(own != NULL, "the state of a run");
        const standing s =
            standing_of(&sweep->runs[i], rws_sweep_run_result(&sweep->runs[i], r), tasks, rws__held_has(&held, own));
        free(own);
        print_standing(&sweep->runs[i], &s, json);
        for (int k = 0; k < 5; k++) count[k] += strcmp(s.state, states[k]) == 0;
    }
    if (json) {
        json_t *o = json_pack("{s:b,s:i}", "final", 1, "runs", sweep->n);
        for (int k = 0; k < 5; k++) json_object_set_new(o, states[k], json_integer(count[k]));
        rws__output_json(o);
    } else {
        printf("%d run%s:", sweep->n, sweep->n == 1 ? "" : "s");
        for (int k = 0, any = 0; k < 5; k++)
            if (count[k]) printf("%s %d %s", any++ ? "," : "", count[k], states[k]);
        putchar('\n');
    }
    json_decref(tasks);
    rws__held_free(&held);
    rws_results_free(r);
    return RWS_OK;
}

/* ---- submitting */

static rws_status check_queue(const char *name, rws_error *err)
{
    char     *line;
    const int status =
        run_program((const char *[]){"squeue", "--noheader", "--name", name, "--format=%i", NULL}, &line);
    rws_status result = RWS_OK;
    if (status == 127)
        result = rws_fail(err, RWS_BAD_INPUT,
                          "Slurm is not installed here (there is no squeue); --task I/N serves other schedulers.");
    else if (status != 0)
        result = rws_fail(err, RWS_BAD_INPUT, "Slurm does not answer: %s", rws__quote_short(line).text);
    else if (line[0])
        result = rws_fail(err, RWS_BAD_INPUT,
                          "Tasks of this sweep are in the queue already: job %s (%s). Wait for them, or end them with: "
                          "scancel --name %s",
                          line, name, name);
    g_free(line);
    return result;
}

/* The tasks that have runs to do, as Slurm writes them: "1,2,5". g_free frees it. */
static char *list_tasks(const rws_sweep *sweep, const rws_results *r, int n_tasks, int *n)
{
    GString *list = g_string_new(NULL);
    *n = 0;
    for (int task = 0; task < n_tasks; task++) {
        bool todo = false;
        for (int i = task; i < sweep->n; i += n_tasks) {
            const rws_result *one = rws_sweep_run_result(&sweep->runs[i], r);
            const bool failed = one && one->failure && one->n_histories; /* one that measured nothing begins anew */
            todo |= !rws_sweep_run_is_done(&sweep->runs[i], one) && !failed;
        }
        if (todo) g_string_append_printf(list, "%s%d", (*n)++ ? "," : "", task + 1);
    }
    return g_string_free(list, FALSE);
}

/* Copies the sweep file, which may be edited while tasks wait, and writes the script that every task is. */
static rws_status write_script(const char *file, const char *folder, int n_tasks, bool changed, const char *script,
                               rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    char    *tasks = task_path(folder, NULL), *copy = task_path(folder, "sweep");
    char    *self = g_file_read_link("/proc/self/exe", NULL);
    char    *program = g_shell_quote(self ? self : "rws"), *sweep = g_shell_quote(copy), *out = g_shell_quote(folder);
    /* exec: Slurm's signals go to the process of the script, which is then the program. */
    char      *text = g_strdup_printf("#!/bin/sh\nexec %s sweep %s --out %s --task \"$SLURM_ARRAY_TASK_ID/%d\" --jobs "
                                           "\"${SLURM_CPUS_PER_TASK:-1}\"%s\n",
                                      program, sweep, out, n_tasks, changed ? " --changed" : "");
    rws_status status = rws__file_make_folder(tasks, err);
    if (status == RWS_OK) status = rws__file_read(file, RWS_MAX_SWEEP_BYTES, &bytes, &size, err);
    if (status == RWS_OK) {
        status = rws__file_replace(copy, &(rws_piece){bytes, size}, 1, err);
        free(bytes);
    }
    if (status == RWS_OK) status = rws__file_replace(script, &(rws_piece){text, strlen(text)}, 1, err);
    char *const texts[] = {tasks, copy, self, program, sweep, out, text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) g_free(texts[i]);
    return status;
}

/* *job becomes the number of the job, which g_free frees. */
static rws_status submit(const char *script, const char *name, const char *folder, const char *tasks,
                         char *const *options, int n_options, char **job, rws_error *err)
{
    GPtrArray  *argv = g_ptr_array_new_with_free_func(g_free);
    char *const own[] = {"sbatch", "--parsable", "--requeue", "--open-mode=append", "--signal=B:TERM@30", "--job-name"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) g_ptr_array_add(argv, g_strdup(own[i]));
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, g_strconcat("--array=", tasks, NULL));
    g_ptr_array_add(argv, g_strdup_printf("--output=%s/" RWS_TASKS_FOLDER "/%%a.log", folder));
    for (int i = 0; i < n_options; i++) g_ptr_array_add(argv, g_strdup(options[i]));
    g_ptr_array_add(argv, g_strdup(script));
    g_ptr_array_add(argv, NULL);
    const int status = run_program((const char *const *)argv->pdata, job);
    g_ptr_array_free(argv, TRUE);
    if (status == 127) return rws_fail(err, RWS_BAD_INPUT, "There is no sbatch here.");
    if (status != 0) return rws_fail(err, RWS_BAD_INPUT, "sbatch refused: %s", rws__quote(*job).text);
    (*job)[strcspn(*job, ";")] = '\0'; /* of several clusters: job;cluster */
    return RWS_OK;
}

static void print_job(const rws_sweep *sweep, const char *file, const char *folder, int n, const char *job, bool json)
{
    if (json) {
        json_t *o = json_pack("{s:b,s:i,s:i}", "final", 1, "runs", sweep->n, "tasks", n);
        if (n) json_object_set_new(o, "job", json_string(job));
        rws__output_json(o);
    } else if (n) {
        printf("job %s: %d task%s for %d run%s; `rws sweep %s --out %s --status` shows what they do\n", job, n,
               n == 1 ? "" : "s", sweep->n, sweep->n == 1 ? "" : "s", file, folder);
    } else {
        printf("%d run%s: nothing is left to do\n", sweep->n, sweep->n == 1 ? "" : "s");
    }
}

rws_status rws__slurm_submit(const rws_sweep *sweep, const char *file, const rws_campaign_options *o, int n_tasks,
                             char *const *options, int n_options, rws_error *err)
{
    const char  *folder = o->folder;
    rws_results *r = NULL;
    char        *job = NULL;
    int          n = 0;
    RWS_TRY(rws__file_make_folder(folder, err));
    RWS_TRY(rws__campaign_separate(folder, err));
    char *real = realpath(folder, NULL);
    if (!real) return rws_fail(err, RWS_BAD_INPUT, "\"%s\": %s.", rws__quote(folder).text, strerror(errno));
    char      *base = g_path_get_basename(real), *name = g_strconcat("rws-", base, NULL);
    rws_status status = check_queue(name, err);
    if (status == RWS_OK) status = rws__results_read_if_any(folder, &r, err);
    if (!n_tasks) n_tasks = sweep->n < RWS_MAX_TASKS ? sweep->n : RWS_MAX_TASKS;
    if (n_tasks > sweep->n) n_tasks = sweep->n;
    char *tasks = status == RWS_OK ? list_tasks(sweep, r, n_tasks, &n) : NULL, *script = task_path(real, "script");
    if (n) status = write_script(file, real, n_tasks, o->changed, script, err);
    if (n && status == RWS_OK) status = submit(script, name, real, tasks, options, n_options, &job, err);
    if (status == RWS_OK) print_job(sweep, file, folder, n, job, o->json);
    rws_results_free(r);
    char *const texts[] = {job, base, name, tasks, script};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) g_free(texts[i]);
    free(real);
    return status;
}

/* ---- queueing again */

void rws__slurm_requeue(void)
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID"),
               *single = getenv("SLURM_JOB_ID");
    if (!single) return;
    char *job = array && task ? g_strconcat(array, "_", task, NULL) : g_strdup(single), *state, *answer = NULL;
    const char *const queue[] = {"squeue", "--noheader", "--jobs", job, "--format=%T", NULL};
    const char *const again[] = {"scontrol", "requeue", job, NULL};
    if (run_program(queue, &state) != 0 || strncmp(state, "CANCELLED", 9) != 0) {
        if (run_program(again, &answer) == 0) rws__note("Slurm queues task %s again.", job);
        else rws__note("Slurm does not queue task %s again: %s", job, answer);
    }
    g_free(job);
    g_free(state);
    g_free(answer);
}
