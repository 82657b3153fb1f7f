#include "sweep/slurm.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "rws/report.h"
#include "store/held.h"
#include "results/results.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SILENT 60 /* seconds after which a task that has written nothing is taken for gone */
#define MAX_ARGUMENTS 256

/* ---- other programs */

/* Runs a program and keeps the first line that it prints, at most `size` bytes; of stderr too if `errors`. Returns its
 * exit status, 127 if it cannot be started. */
static int ask_program(char *const *argv, char *out, size_t size, bool errors)
{
    int ends[2], status = 0;
    out[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) return 127;
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(errors ? ends[1] : null, STDERR_FILENO);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    char   bytes[4096]; /* all is read: a program whose pipe is closed early ends by SIGPIPE */
    for (ssize_t n; pid > 0 && (n = TEMP_FAILURE_RETRY(read(ends[0], bytes, sizeof bytes))) > 0;) {
        const size_t kept = (size_t)n < size - 1 - used ? (size_t)n : size - 1 - used;
        memcpy(out + used, bytes, kept);
        used += kept;
    }
    close(ends[0]);
    out[used] = '\0';
    out[strcspn(out, "\n")] = '\0'; /* the first line says it */
    if (pid <= 0 || TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* ---- what tasks write down */

static char *task_path(const char *folder, const char *name)
{
    char *tasks = rws_file_join(folder, RWS_TASKS_FOLDER), *path = rws_file_join(tasks, name);
    free(tasks);
    return path;
}

void rws_task_write(const char *folder, int task, int n_tasks, const rws_task_run *runs, int n, bool ended)
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
    if (text) (void)!rws_file_write_text(path, text, &ignored);
    free(path);
    free(text);
    json_decref(o);
}

static int is_task(const struct dirent *entry)
{
    return entry->d_name[strspn(entry->d_name, "0123456789")] == '\0';
}

/* What the tasks have written down, an object for each, by rising number; the caller frees the list and the objects. */
static json_t **read_tasks(const char *folder, int *n)
{
    char           *tasks = rws_file_join(folder, RWS_TASKS_FOLDER);
    struct dirent **names = NULL;
    const int       n_names = tasks ? scandir(tasks, &names, is_task, versionsort) : 0;
    json_t        **list = calloc((size_t)(n_names > 0 ? n_names : 1), sizeof *list);
    rws_need_memory(tasks && list, "the tasks of a sweep");
    *n = 0;
    for (int i = 0; i < n_names; i++) {
        char *path = rws_file_join(tasks, names[i]->d_name);
        rws_need_memory(path != NULL, "the tasks of a sweep");
        if ((list[*n] = json_load_file(path, 0, NULL))) ++*n;
        free(path);
        free(names[i]);
    }
    free(names);
    free(tasks);
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
static standing standing_of(const rws_sweep_run *run, const rws_result *r, json_t *const *tasks, int n_tasks, bool held)
{
    standing s = {.state = "waiting", .iteration = r ? r->iteration : 0};
    for (int i = 0; i < n_tasks; i++) {
        size_t  k;
        json_t *one;
        json_array_foreach(json_object_get(tasks[i], "runs"), k, one)
        {
            const char *name = json_string_value(json_object_get(one, "run"));
            if (!name || strcmp(name, run->name) != 0) continue;
            const json_int_t iteration = json_integer_value(json_object_get(one, "iteration"));
            const bool       ended = json_is_true(json_object_get(tasks[i], "ended"));
            s.task = tasks[i];
            s.silent = time(NULL) - json_integer_value(json_object_get(tasks[i], "time")) > SILENT;
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
        rws_report_json(o);
        return;
    }
    if (s->task)
        snprintf(who, sizeof who, "  task %d on %s%s%s%s", task, host ? host : "?", job ? ", job " : "", job ? job : "",
                 s->silent ? ", which is silent" : "");
    printf("%-9s %10" PRIu64 "/%-10" PRIu64 " %s%s\n", s->state, s->iteration, run->config.iterations, run->name, who);
}

rws_status rws_slurm_status(const rws_sweep *sweep, const char *folder, bool json, rws_error *err)
{
    static const char *const states[] = {"finished", "training", "waiting", "stopped", "failed"};
    rws_results             *r;
    int                      n_tasks, count[5] = {0};
    RWS_TRY(rws_results_read_if_any(folder, &r, err));
    json_t **tasks = read_tasks(folder, &n_tasks);
    rws_held held = rws_held_read();
    for (int i = 0; i < sweep->n; i++) {
        char *own = rws_file_join(folder, sweep->runs[i].name);
        rws_need_memory(own != NULL, "the state of a run");
        const standing s = standing_of(&sweep->runs[i], rws_sweep_run_result(&sweep->runs[i], r), tasks, n_tasks,
                                       rws_held_has(&held, own));
        free(own);
        print_standing(&sweep->runs[i], &s, json);
        for (int k = 0; k < 5; k++) count[k] += strcmp(s.state, states[k]) == 0;
    }
    if (json) {
        json_t *o = json_pack("{s:b,s:i}", "final", 1, "runs", sweep->n);
        for (int k = 0; k < 5; k++) json_object_set_new(o, states[k], json_integer(count[k]));
        rws_report_json(o);
    } else {
        printf("%d run%s:", sweep->n, sweep->n == 1 ? "" : "s");
        for (int k = 0, any = 0; k < 5; k++)
            if (count[k]) printf("%s %d %s", any++ ? "," : "", count[k], states[k]);
        putchar('\n');
    }
    for (int i = 0; i < n_tasks; i++) json_decref(tasks[i]);
    free(tasks);
    rws_held_free(&held);
    rws_results_free(r);
    return RWS_OK;
}

/* ---- submitting */

/* "rws-" and the name of the folder. */
static void name_job(const char *folder, char *out, size_t size)
{
    char       *real = realpath(folder, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    snprintf(out, size, "rws-%s", slash && slash[1] ? slash + 1 : "sweep");
    free(real);
}

static rws_status check_queue(const char *folder, rws_error *err)
{
    char        name[256], out[256];
    char *const argv[] = {"squeue", "--noheader", "--name", name, "--format=%i", NULL};
    name_job(folder, name, sizeof name);
    const int status = ask_program(argv, out, sizeof out, true);
    if (status == 127)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Slurm is not installed here (there is no squeue); --task I/N serves other schedulers.");
    if (status != 0) return rws_fail(err, RWS_BAD_INPUT, "Slurm does not answer: %s", rws_quote_short(out).text);
    if (!out[0]) return RWS_OK;
    return rws_fail(
        err, RWS_BAD_INPUT,
        "Tasks of this sweep are in the queue already: job %s (%s). Wait for them, or end them with: scancel "
        "--name %s",
        out, name, name);
}

/* The tasks that have runs to do, as Slurm writes them: "1,2,5". The caller frees it. */
static char *list_tasks(const rws_sweep *sweep, const rws_results *r, int n_tasks, int *n)
{
    rws_text list;
    FILE    *out = rws_text_open(&list);
    rws_need_memory(out != NULL, "the tasks of a sweep");
    *n = 0;
    for (int task = 0; task < n_tasks; task++) {
        bool todo = false;
        for (int i = task; i < sweep->n; i += n_tasks) {
            const rws_result *one = rws_sweep_run_result(&sweep->runs[i], r);
            const bool failed = one && one->failure && one->n_histories; /* one that measured nothing begins anew */
            todo |= !rws_sweep_run_is_done(&sweep->runs[i], one) && !failed;
        }
        if (todo) fprintf(out, "%s%d", (*n)++ ? "," : "", task + 1);
    }
    char *text = rws_text_end(&list);
    rws_need_memory(text != NULL, "the tasks of a sweep");
    return text;
}

/* Copies the sweep file, which may be edited while tasks wait, and writes the script that every task is. */
static rws_status write_script(const char *file, const char *folder, int n_tasks, char **script, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    char     self[4096], text[16384], program[4200], dir[4200], copy_word[4300];
    char    *tasks = rws_file_join(folder, RWS_TASKS_FOLDER), *copy = task_path(folder, "sweep");
    *script = task_path(folder, "script");
    rws_need_memory(tasks && copy && *script, "the tasks of a sweep");
    rws_status    status = rws_file_make_folder(tasks, err);
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (status == RWS_OK) status = rws_file_read(file, RWS_SWEEP_MAX_BYTES, &bytes, &size, err);
    if (status == RWS_OK) {
        status = rws_file_replace(copy, &(rws_piece){bytes, size}, 1, err);
        free(bytes);
    }
    self[n > 0 ? n : 0] = '\0';
    char *real = realpath(folder, NULL), *real_copy = realpath(copy, NULL);
    if (status == RWS_OK &&
        (!real || !real_copy || !rws_shell_word(self, program, sizeof program) ||
         !rws_shell_word(real, dir, sizeof dir) || !rws_shell_word(real_copy, copy_word, sizeof copy_word)))
        status = rws_fail(err, RWS_BAD_INPUT, "The name of the folder is too long.");
    if (status == RWS_OK) {
        /* exec: Slurm's signals go to the process of the script, which is then the program. */
        snprintf(text, sizeof text,
                 "#!/bin/sh\nexec %s sweep %s --out %s --task \"$SLURM_ARRAY_TASK_ID/%d\" --jobs "
                 "\"${SLURM_CPUS_PER_TASK:-1}\"\n",
                 program, copy_word, dir, n_tasks);
        status = rws_file_write_text(*script, text, err);
    }
    free(real);
    free(real_copy);
    free(tasks);
    free(copy);
    return status;
}

static rws_status submit(const char *script, const char *folder, const char *tasks, char *const *options, int n_options,
                         char *job, size_t size, rws_error *err)
{
    char  name[256], array[8192], output[4300];
    char *argv[MAX_ARGUMENTS] = {"sbatch", "--parsable", "--requeue", "--open-mode=append", "--signal=B:TERM@30"};
    int   n = 5;
    char *real = realpath(folder, NULL);
    name_job(folder, name, sizeof name);
    snprintf(array, sizeof array, "--array=%s", tasks);
    snprintf(output, sizeof output, "--output=%s/" RWS_TASKS_FOLDER "/%%a.log", real ? real : folder);
    free(real);
    argv[n++] = "--job-name";
    argv[n++] = name;
    argv[n++] = array;
    argv[n++] = output;
    if (n + n_options + 2 > MAX_ARGUMENTS) return rws_fail(err, RWS_BAD_INPUT, "There are too many options of sbatch.");
    for (int i = 0; i < n_options; i++) argv[n++] = options[i];
    argv[n++] = (char *)script;
    argv[n] = NULL;
    const int status = ask_program(argv, job, size, true);
    if (status == 127) return rws_fail(err, RWS_BAD_INPUT, "There is no sbatch here.");
    if (status != 0) return rws_fail(err, RWS_BAD_INPUT, "sbatch refused: %s", rws_quote(job).text);
    job[strcspn(job, ";")] = '\0'; /* of several clusters: job;cluster */
    return RWS_OK;
}

rws_status rws_slurm_submit(const rws_sweep *sweep, const char *file, const char *folder, int n_tasks,
                            char *const *options, int n_options, bool json, rws_error *err)
{
    rws_results *r = NULL;
    char        *script = NULL, job[256];
    int          n = 0;
    RWS_TRY(rws_file_make_folder(folder, err));
    RWS_TRY(rws_campaign_separate(folder, err));
    RWS_TRY(check_queue(folder, err));
    RWS_TRY(rws_results_read_if_any(folder, &r, err));
    if (!n_tasks) n_tasks = sweep->n < RWS_MAX_TASKS ? sweep->n : RWS_MAX_TASKS;
    if (n_tasks > sweep->n) n_tasks = sweep->n;
    char *tasks = list_tasks(sweep, r, n_tasks, &n);
    rws_results_free(r);
    rws_status status = RWS_OK;
    if (n) status = write_script(file, folder, n_tasks, &script, err);
    if (n && status == RWS_OK) status = submit(script, folder, tasks, options, n_options, job, sizeof job, err);
    if (status == RWS_OK && json) {
        json_t *o = json_pack("{s:b,s:i,s:i}", "final", 1, "runs", sweep->n, "tasks", n);
        if (n) json_object_set_new(o, "job", json_string(job));
        rws_report_json(o);
    } else if (status == RWS_OK && n) {
        printf("job %s: %d task%s for %d run%s; `rws sweep %s --out %s --status` shows what they do\n", job, n,
               n == 1 ? "" : "s", sweep->n, sweep->n == 1 ? "" : "s", file, folder);
    } else if (status == RWS_OK) {
        printf("%d run%s: nothing is left to do\n", sweep->n, sweep->n == 1 ? "" : "s");
    }
    free(script);
    free(tasks);
    return status;
}

/* ---- queueing again */

void rws_slurm_requeue(void)
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID"),
               *single = getenv("SLURM_JOB_ID");
    char job[128], out[256];
    if (!single) return;
    if (array && task) snprintf(job, sizeof job, "%s_%s", array, task);
    else snprintf(job, sizeof job, "%s", single);
    char *const state[] = {"squeue", "--noheader", "--jobs", job, "--format=%T", NULL};
    char *const again[] = {"scontrol", "requeue", job, NULL};
    if (ask_program(state, out, sizeof out, false) == 0 && strncmp(out, "CANCELLED", 9) == 0) return;
    if (ask_program(again, out, sizeof out, true) == 0) rws_note("Slurm queues task %s again.", job);
    else rws_note("Slurm does not queue task %s again: %s", job, out);
}
