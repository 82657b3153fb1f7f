/* sweep.c - rws sweep: trains all runs that a sweep file describes. */
#include "base/error.h"
#include "base/quote.h"
#include "rws/arguments.h"
#include "sweep/campaign.h"
#include "rws/command.h"
#include "rws/output.h"
#include "rws/signals.h"
#include "sweep/slurm.h"
#include "comm/comm.h"

#include <stdio.h>
#include <string.h>

#define MAX_SBATCH 200 /* options of sbatch */

typedef struct {
    const char          *file, *out;
    bool                 list, slurm, status;
    uint64_t             tasks;
    char                *sbatch[MAX_SBATCH];
    int                  n_sbatch;
    rws_campaign_options campaign;
} sweep_options;

enum { KEY_LIST = 0x2000, KEY_SLURM, KEY_STATUS, KEY_TASK, KEY_TASKS, KEY_CHANGED };

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "The folder of the runs (default: FILE without its ending)", 0},
    {"list", KEY_LIST, 0, 0, "Only print the names of the runs", 0},
    {"status", KEY_STATUS, 0, 0, "Only print how far each run is, and which task trains it", 0},
    {"changed", KEY_CHANGED, 0, 0, "Continue runs also if their shared objects have changed since they began", 0},
    {"slurm", KEY_SLURM, 0, 0,
     "Submit the runs that are not finished to Slurm, as an array of tasks; options of sbatch follow --", 1},
    {"tasks", KEY_TASKS, "N", 0, "With --slurm: the number of tasks (default: one per run, at most 1000)", 1},
    {"task", KEY_TASK, "I/N", 0,
     "Be task I of N: train the runs I, I + N, I + 2 N, ... of the sweep, each with a store of its own; for any "
     "scheduler",
     1},
    {0},
};

static error_t parse_task(const char *text, rws_campaign_options *o, const struct argp_state *state)
{
    char end;
    if (sscanf(text, "%d/%d%c", &o->task, &o->n_tasks, &end) == 2 && o->task >= 1 && o->task <= o->n_tasks &&
        o->n_tasks <= RWS_MAX_SWEEP_RUNS)
        return 0;
    return rws__arguments_fail(state, "--task takes I/N with I from 1 to N, as in 3/12, not \"%s\".",
                               rws__quote_short(text).text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    sweep_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->campaign; return 0;
    case 'o': return rws__arguments_folder(state, "--out", arg, &o->out);
    case KEY_LIST: o->list = true; return 0;
    case KEY_STATUS: o->status = true; return 0;
    case KEY_CHANGED: o->campaign.changed = true; return 0;
    case KEY_SLURM: o->slurm = true; return 0;
    case KEY_TASKS: return rws__arguments_count(state, "--tasks", arg, 1, RWS_MAX_TASKS, &o->tasks);
    case KEY_TASK: return parse_task(arg, &o->campaign, state);
    case ARGP_KEY_ARG:
        if (o->file && o->slurm && o->n_sbatch < MAX_SBATCH) {
            o->sbatch[o->n_sbatch++] = arg;
            return 0;
        }
        if (o->file) return rws__arguments_extra(state, arg);
        o->file = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->file) return rws__arguments_fail(state, "Which sweep? Name its file.");
        if (o->slurm + o->status + o->list + (o->campaign.n_tasks > 0) > 1)
            return rws__arguments_fail(state, "--list, --status, --slurm and --task do not go together.");
        if (o->tasks && !o->slurm) return rws__arguments_fail(state, "--tasks goes with --slurm.");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE [-- SBATCH-OPTION...]",
    .doc = "Trains all runs that FILE describes, and continues where it was stopped. Below the options is an "
           "example of such a file.\v"
           "    model      gmm\n"
           "    methods    ws ww dww\n"
           "    particles  2 5 10 20\n"
           "    seeds      1-10\n"
           "    set        start far\n"
           "    set        dww.delta 0.1 0.2 # every combination is a run\n"
           "    lr         1e-3 1e-4         # also batch, optimiser, l2, eval-every, shards,\n"
           "    iterations 10k               # particle-shards, eval-data, eval-particles\n"
           "    final      5000 1000         # after training: particles, test data",
    .children = (const struct argp_child[]){{.argp = &rws_campaign_argp}, {0}},
};

/* Leaves the runs of one task. */
static void select_task(rws_sweep *sweep, const rws_campaign_options *o)
{
    int n = 0;
    for (int i = o->task - 1; i < sweep->n; i += o->n_tasks) sweep->runs[n++] = sweep->runs[i];
    sweep->n = n;
}

static rws_status do_sweep(const sweep_options *o, rws_sweep *sweep, rws_error *err)
{
    char                folder[4096];
    const char         *slash = strrchr(o->file, '/'), *dot = strrchr(o->file, '.');
    rws_campaign_result result;
    RWS_TRY(rws_sweep_check(sweep, !o->list, err));
    if (o->list) {
        for (int i = 0; i < sweep->n; i++) {
            if (o->campaign.json) rws__output_json(json_pack("{s:o}", "run", rws__json_string(sweep->runs[i].name)));
            else puts(sweep->runs[i].name);
        }
        return RWS_OK;
    }
    if (!o->out && (!dot || (slash && dot < slash) || dot == o->file))
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%.200s\" has no ending to leave out; name the folder of the runs with --out.", o->file);
    const int length = o->out ? snprintf(folder, sizeof folder, "%s", o->out)
                              : snprintf(folder, sizeof folder, "%.*s", (int)(dot - o->file), o->file);
    if (length >= (int)sizeof folder) return rws_fail(err, RWS_BAD_INPUT, "The name of the folder is too long.");
    rws_campaign_options campaign = o->campaign;
    campaign.what = "sweep";
    campaign.folder = folder;
    if (o->status) return rws__slurm_status(sweep, folder, campaign.json, err);
    if (o->slurm) return rws__slurm_submit(sweep, o->file, &campaign, (int)o->tasks, o->sbatch, o->n_sbatch, err);
    if (campaign.n_tasks) select_task(sweep, &campaign);
    const rws_status status = rws__campaign_run(sweep, &campaign, &result, err);
    if (status == RWS_STOPPED && campaign.n_tasks && rws_signals_caught == SIGTERM) rws__slurm_requeue();
    RWS_TRY(status);
    return rws__campaign_verdict(&result, err);
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    sweep_options o = {0};
    rws_sweep    *sweep;
    RWS_TRY(rws__arguments_parse(&argp, "rws sweep", argc, argv, 0, &o, err));
    if (!o.campaign.n_tasks && rws__comm_started() > 1)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "rws sweep works alone, not as %d ranks: start it without mpirun or srun, or give each its --task "
            "I/N.",
            rws__comm_started());
    rws__comm_forget_start(); /* its runs are not ranks of one job */
    if (o.campaign.n_tasks)
        rws__signals_catch(); /* Slurm may send one at any time, and the task must then be queued again */
    RWS_TRY(rws_sweep_read(o.file, &sweep, err));
    const rws_status status = do_sweep(&o, sweep, err);
    rws_sweep_free(sweep);
    return status;
}

const rws_command rws_command_sweep = {"sweep", "train all runs of a sweep file", run, &argp, .ranks = true};
