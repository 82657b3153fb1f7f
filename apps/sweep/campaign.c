#include "sweep/runs.h"

#include "base/clock.h"
#include "base/error.h"
#include "program/config.h"
#include "rws/options.h"
#include "rws/output.h"
#include "rws/screen.h"
#include "rws/signals.h"
#include "sweep/slurm.h"
#include "store/checkpoint_file.h"
#include "store/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_RETRY = 0x3000, KEY_JSON, MAX_ARGUMENTS = 256, MAX_REFUSALS = 3 };

#define REFUSED 0.2     /* seconds until a run that was refused is tried again */
#define TASK_WRITES 5.0 /* seconds between two times that a task writes down what it does */
#define ELSEWHERE 2.0   /* seconds until a run that another program trains is looked at again */

/* ---- how long it takes */

static double seconds_each(const rws_sweep_pace *p)
{
    return p->iterations > 0 ? p->seconds / p->iterations : NAN;
}

/* The share of the work that is done, and the seconds that are left. If no run of a kind has been timed, the kind
 * counts as fast as the others on average. */
static void estimate(const rws_campaign *s, double *share, double *left)
{
    double todo = 0, done = 0, longest = 0, known = 0;
    int    n_todo = 0, n_known = 0;
    for (int i = 0; i < s->n; i++)
        if (s->paces[i].iterations > 0) known += seconds_each(&s->paces[i]), n_known++;
    for (int i = 0; i < s->n; i++) {
        const rws_sweep_entry *e = &s->entries[i];
        double                 each = seconds_each(&s->paces[e->kind]);
        const double           all = (double)e->run->config.iterations;
        const double gone = e->stage == FINISHED || e->stage == FAILED ? all : fmin((double)e->iteration, all);
        if (isnan(each)) each = known / n_known; /* NaN in the beginning */
        done += each * gone;
        todo += each * (all - gone);
        longest = fmax(longest, each * (all - gone));
        n_todo += gone < all;
    }
    const int at_once = n_todo < s->n_jobs ? n_todo : s->n_jobs;
    *share = done + todo > 0 ? done / (done + todo) : 0;
    *left = isnan(todo) ? NAN : at_once ? fmax(longest, todo / at_once) : 0;
}

static void show(rws_campaign *s)
{
    double share, left;
    char   note[128] = "";
    size_t used = 0;
    int    ended = 0;
    for (int i = 0; i < s->n; i++) ended += s->entries[i].stage == FINISHED || s->entries[i].stage == FAILED;
    for (int i = 0; i < s->n_jobs && used < sizeof note; i++) {
        if (!s->children[i].pid) continue;
        const rws_config *c = &s->entries[s->doing[i]].run->config;
        used += (size_t)snprintf(note + used, sizeof note - used, "%s%s k%d s%" PRIu64, used ? ", " : "", c->method,
                                 c->particles, c->seed);
    }
    if (s->result.failed) rws__progress_note(&s->progress, "%d failed; %s", s->result.failed, note);
    else rws__progress_note(&s->progress, "%s", note);
    estimate(s, &share, &left);
    rws__progress_show_fraction(&s->progress, (uint64_t)ended, share, left);
}

/* ---- starting */

typedef struct {
    char *list[MAX_ARGUMENTS];
    int   n;
} arguments;

static void add(arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(arguments *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    RWS_CHECK(a->n + 1 < MAX_ARGUMENTS);
    rws__need_memory(vasprintf(&a->list[a->n++], format, args) >= 0, "the arguments of a run");
    va_end(args);
}

static void add_training(arguments *a, const rws_sweep_entry *e, const rws_campaign_options *o, bool resume)
{
    const rws_config *c = &e->run->config;
    char              text[RWS_CONFIG_VALUE];
    add(a, "train");
    add(a, "%s", c->model);
    add(a, "--out=%s/%s", o->folder, e->run->name);
    if (resume) add(a, "--resume");
    if (resume && o->changed) add(a, "--changed");
    add(a, "--json");
    add(a, "--threads=1");
    add(a, "--seed=%" PRIu64, c->seed);
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (rws__config_has(m, c) &&
            (m->of_sweeps || m->offset == offsetof(rws_config, method) || m->offset == offsetof(rws_config, particles)))
            add(a, "--%s=%s", m->option, rws__config_value(m, c, text));
    for (int i = 0; i < c->n_set; i++) add(a, "--set=%s", c->set[i]);
}

static void add_measuring(arguments *a, const rws_sweep_entry *e, const rws_campaign_options *o)
{
    add(a, "eval");
    add(a, "%s/%s", o->folder, e->run->name);
    if (o->changed) add(a, "--changed");
    if (strchr(e->run->config.model, '/')) add(a, "--model=%s", e->run->config.model);
    add(a, "--record");
    add(a, "--json");
    add(a, "--threads=1");
    add(a, "--eval-particles=%d", e->run->final_particles);
    if (e->run->final_test) add(a, "--eval-data=%d", e->run->final_test);
}

/* Whether a run continues with what its folder has. A run that ended before its first checkpoint and its first measures
 * begins anew, as the sweep has it now. */
static bool resumes(const rws_campaign *s, const rws_sweep_entry *e)
{
    char      *folder = rws__run_folder(s, e);
    const bool there =
        rws__folder_has(folder, "config.json") && (e->iteration > 0 || rws__folder_has(folder, rws_checkpoint_name));
    free(folder);
    return there;
}

/* A run whose folder is gone begins without its old measures. */
static rws_status begin_anew(const rws_campaign *s, rws_sweep_entry *e, rws_error *err)
{
    if (e->iteration == 0) return RWS_OK;
    char            *store = rws__run_store(s, e);
    const rws_status status = rws__store_drop(store, e->run->name, err);
    free(store);
    e->iteration = 0;
    return status;
}

static rws_status launch(rws_campaign *s, int child, int index, rws_sweep_stage stage, rws_error *err)
{
    rws_sweep_entry *e = &s->entries[index];
    arguments        a = {{strdup("rws")}, 1};
    const bool       resume = stage == TRAINING && resumes(s, e);
    rws_status       status = RWS_OK;
    if (stage == TRAINING && !resume) status = begin_anew(s, e, err);
    if (stage == TRAINING) add_training(&a, e, s->options, resume);
    else add_measuring(&a, e, s->options);
    if (status == RWS_OK) status = rws__child_start(a.list, &s->children[child], err);
    for (int i = 0; i < a.n; i++) free(a.list[i]);
    if (status != RWS_OK) return status;
    s->doing[child] = index;
    if (stage == TRAINING) s->last[child][0] = '\0';
    e->stage = stage;
    e->began = rws__clock_now();
    e->began_at = e->iteration;
    return RWS_OK;
}

/* The next run that no process trains, -1 if there is none at the moment. The store is asked again, because another
 * program may have trained the run meanwhile. */
static rws_status choose(rws_campaign *s, int *index, rws_error *err)
{
    const double now = rws__clock_now();
    for (int i = 0; i < s->n; i++) {
        rws_sweep_entry *e = &s->entries[i];
        if (e->stage != WAITING || now < e->not_before) continue;
        if (rws__run_is_busy(s, e)) {
            e->not_before = now + ELSEWHERE;
            continue;
        }
        RWS_TRY(rws__run_find_progress(s, e, err));
        if (e->stage == FINISHED) s->result.finished++;
        if (e->stage != WAITING) continue;
        *index = i;
        return RWS_OK;
    }
    *index = -1;
    return RWS_OK;
}

/* ---- lines and ends */

static void take_line(void *context, int child, const char *text)
{
    rws_campaign    *s = context;
    rws_sweep_entry *e = &s->entries[s->doing[child]];
    uint64_t         iteration;
    snprintf(s->last[child], sizeof s->last[child], "%s", text);
    const char *at = strstr(text, "\"iteration\":");
    if (e->stage != TRAINING || !at || sscanf(at, "\"iteration\":%" SCNu64, &iteration) != 1) return;
    e->iteration = iteration;
    if (!s->paces[e->kind].watched && iteration > e->began_at + 1)
        s->paces[e->kind] = (rws_sweep_pace){rws__clock_now() - e->began, (double)(iteration - e->began_at), false};
}

/* The line that a child printed last. What `eval` has measured after training is called final_…, as in the store. */
static json_t *last_line(const rws_campaign *s, int child, bool final)
{
    json_t     *line = json_loads(s->last[child], 0, NULL), *named = json_object(), *value;
    const char *key;
    json_object_del(line, "final");
    json_object_foreach(line, key, value)
    {
        char       name[128];
        const bool metric = final && strcmp(key, "iteration") != 0 && strcmp(key, "seconds") != 0;
        snprintf(name, sizeof name, "%s%s", metric ? "final_" : "", key);
        json_object_set(named, name, value);
    }
    json_decref(line);
    return named;
}

static void print_end(rws_campaign *s, int child)
{
    const rws_sweep_entry *e = &s->entries[s->doing[child]];
    char                   left_text[32];
    double                 share, left;
    int                    ended = 0;
    for (int i = 0; i < s->n; i++) ended += s->entries[i].stage == FINISHED || s->entries[i].stage == FAILED;
    estimate(s, &share, &left);
    rws__progress_time(left_text, sizeof left_text, left);
    rws__progress_clear(&s->progress);
    json_t *line = last_line(s, child, e->stage == FINISHED && e->run->final_particles);
    if (s->options->json) {
        json_t *o = json_pack("{s:s,s:s}", "run", e->run->name, "state", e->failure ? "failed" : "finished");
        if (e->failure) json_object_set_new(o, "failure", json_string(e->failure));
        json_object_update_missing(o, line);
        json_object_set_new(o, "seconds_left", rws__json_real(round(left)));
        rws__output_json(o);
    } else if (e->failure) {
        printf("failed    %s: %s\n", e->run->name, e->failure);
    } else {
        const int columns = rws__screen_table(); /* metrics that do not fit are left out */
        int shown = 0, at_column = printf("finished  %s  (%d of %d, %s left)", e->run->name, ended, s->n, left_text);
        for (void *at = json_object_iter(line); at && shown < 3; at = json_object_iter_next(line, at)) {
            const json_t *value = json_object_iter_value(at);
            if (!json_is_real(value) || strcmp(json_object_iter_key(at), "seconds") == 0) continue;
            char      text[96];
            const int wide = snprintf(text, sizeof text, "  %s %.4g", json_object_iter_key(at), json_real_value(value));
            if (columns && at_column + wide > columns) break;
            fputs(text, stdout);
            at_column += wide;
            shown++;
        }
        putchar('\n');
    }
    fflush(stdout);
    json_decref(line);
}

static void note_failure(rws_campaign *s, int child, int status)
{
    rws_sweep_entry *e = &s->entries[s->doing[child]];
    const char      *complaint = s->children[child].complaint;
    int              n = 1;
    e->stage = FAILED;
    if (status < 0) n = asprintf(&e->failure, "It was ended by signal %d; the same command continues it.", -status);
    else if (complaint[0]) e->failure = strdup(complaint);
    else n = asprintf(&e->failure, "It ended with status %d.", status);
    rws__need_memory(n > 0 && e->failure, "the failure of a run");
    s->result.failed++;
    if (status == RWS_BAD_INPUT || s->result.worst == 0)
        s->result.worst = status == RWS_BROKEN ? RWS_BROKEN : RWS_BAD_INPUT;
    print_end(s, child);
}

static rws_status child_ended(rws_campaign *s, int child, rws_error *err)
{
    const int        index = s->doing[child];
    rws_sweep_entry *e = &s->entries[index];
    const int        status = rws__child_end(&s->children[child]);
    if (e->stage == TRAINING && e->iteration > e->began_at) {
        rws_sweep_pace *p = &s->paces[e->kind];
        if (!p->watched) *p = (rws_sweep_pace){.watched = true};
        p->seconds += rws__clock_now() - e->began;
        p->iterations += (double)(e->iteration - e->began_at);
    }
    if (status == RWS_OK && e->stage == TRAINING && e->run->final_particles && !rws__interrupted())
        return launch(s, child, index, MEASURING, err);
    if (status == RWS_OK && !(e->stage == TRAINING && e->run->final_particles)) {
        e->stage = FINISHED;
        e->iteration = e->run->config.iterations;
        s->result.finished++;
        print_end(s, child);
    } else if (rws__interrupted() || status == 0 || status == 130) {
        e->stage = WAITING;
    } else if (status == RWS_BAD_INPUT && rws__run_is_busy(s, e)) {
        e->stage = WAITING;
        e->not_before = rws__clock_now() + ELSEWHERE;
    } else if (status == RWS_BAD_INPUT && ++e->refused < MAX_REFUSALS) {
        /* Another program may have begun or finished the run first; if so, the next look at it shows that. */
        e->stage = WAITING;
        e->not_before = rws__clock_now() + REFUSED;
    } else {
        note_failure(s, child, status);
    }
    return RWS_OK;
}

/* ---- the loop */

static int n_running(const rws_campaign *s)
{
    int n = 0;
    for (int i = 0; i < s->n_jobs; i++) n += s->children[i].pid != 0;
    return n;
}

static bool has_waiting(const rws_campaign *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->entries[i].stage == WAITING) return true;
    return false;
}

static rws_status fill_places(rws_campaign *s, rws_error *err)
{
    for (int child = 0; child < s->n_jobs; child++) {
        int index;
        if (s->children[child].pid) continue;
        RWS_TRY(choose(s, &index, err));
        if (index < 0) return RWS_OK;
        RWS_TRY(launch(s, child, index, TRAINING, err));
    }
    return RWS_OK;
}

/* Writes down what the task does, for `rws sweep --status`. */
static void write_down(rws_campaign *s, bool ended)
{
    const rws_campaign_options *o = s->options;
    rws_task_run                runs[s->n_jobs];
    int                         n = 0;
    const double                now = rws__clock_now();
    if (!o->n_tasks || (!ended && now - s->written < TASK_WRITES)) return;
    s->written = now;
    for (int i = 0; i < s->n_jobs; i++)
        if (s->children[i].pid)
            runs[n++] = (rws_task_run){s->entries[s->doing[i]].run->name, s->entries[s->doing[i]].iteration};
    rws__task_write(o->folder, o->task, o->n_tasks, runs, n, ended);
}

/* After the first error of this program itself, as after Ctrl-C, no run is started, and those under way are stopped. */
static rws_status work(rws_campaign *s, rws_error *err)
{
    rws_status status = RWS_OK;
    bool       told = false;
    while (n_running(s) || (has_waiting(s) && status == RWS_OK && !rws__interrupted())) {
        const bool stop = status != RWS_OK || rws__interrupted();
        if (!stop) status = fill_places(s, err);
        if (stop && !told) {
            for (int i = 0; i < s->n_jobs; i++) rws__child_stop(&s->children[i]);
            told = true;
        }
        const int child = rws__children_read(s->children, s->n_jobs, 200, take_line, s);
        if (child >= 0) {
            rws_error        other;
            const rws_status end = child_ended(s, child, &other);
            if (status == RWS_OK && end != RWS_OK) *err = other, status = end;
        }
        show(s);
        write_down(s, false);
    }
    write_down(s, true);
    rws__progress_clear(&s->progress);
    return status;
}

static void print_summary(const rws_campaign *s)
{
    const rws_campaign_result *r = &s->result;
    if (s->options->json) {
        rws__output_json(json_pack("{s:b,s:i,s:i,s:i,s:i}", "final", 1, "runs", s->n, "finished",
                                   r->finished + r->found, "finished_before", r->found, "failed", r->failed));
        return;
    }
    printf("%d run%s: %d finished", s->n, s->n == 1 ? "" : "s", r->finished + r->found);
    if (r->found) printf(" (%d of them before)", r->found);
    if (r->failed) printf(", %d failed", r->failed);
    putchar('\n');
    for (int i = 0; i < s->n; i++)
        if (s->entries[i].failure) printf("failed    %s: %s\n", s->entries[i].run->name, s->entries[i].failure);
}

rws_status rws__campaign_run(const rws_sweep *sweep, const rws_campaign_options *o, rws_campaign_result *result,
                             rws_error *err)
{
    rws_campaign s = {.options = o, .n = sweep->n, .n_jobs = o->jobs ? (int)o->jobs : rws__options_cores()};
    s.entries = calloc((size_t)s.n, sizeof *s.entries);
    s.children = calloc((size_t)s.n_jobs, sizeof *s.children);
    s.doing = calloc((size_t)s.n_jobs, sizeof *s.doing);
    s.last = calloc((size_t)s.n_jobs, sizeof *s.last);
    s.paces = calloc((size_t)s.n, sizeof *s.paces);
    rws_status status = s.entries && s.children && s.doing && s.last && s.paces ? rws__runs_prepare(&s, sweep, err)
                                                                                : rws_no_memory(err, "a sweep");
    if (status == RWS_OK) {
        rws__signals_catch();
        rws__progress_init(&s.progress, o->what, 0, (uint64_t)s.n);
        status = work(&s, err);
        rws__signals_release();
    }
    if (status == RWS_OK && rws__interrupted())
        status = rws_fail(err, RWS_STOPPED, "Stopped: %d of %d runs are finished; the same command continues.",
                          s.result.finished + s.result.found, s.n);
    if (status == RWS_OK) print_summary(&s);
    *result = s.result;
    for (int i = 0; i < s.n && s.entries; i++) free(s.entries[i].failure);
    void *memory[] = {s.store, s.entries, s.children, s.doing, s.last, s.paces};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) free(memory[i]);
    return status;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_campaign_options *o = state->input;
    switch (key) {
    case 'j': return rws__arguments_count(state, "--jobs", arg, 1, 1024, &o->jobs);
    case KEY_RETRY: o->retry = true; return 0;
    case KEY_JSON: o->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rws_campaign_argp = {
    .options =
        (const struct argp_option[]){
            {"jobs", 'j', "N", 0, "Runs at a time, each on one thread (default: one per core)", 0},
            {"retry", KEY_RETRY, 0, 0, "Also runs that ended with a numerical failure before", 0},
            {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0},
            {0},
        },
    .parser = parse,
};

rws_status rws__campaign_verdict(const rws_campaign_result *r, rws_error *err)
{
    if (r->failed == 0) return RWS_OK;
    return rws_fail(err, r->worst == RWS_BROKEN ? RWS_BROKEN : RWS_BAD_INPUT, "%d of the runs failed.", r->failed);
}
