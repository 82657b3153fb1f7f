/* sweep.c - rws sweep: trains all runs that a sweep file describes. */
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/campaign.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char          *file, *out;
    bool                 list;
    rws_campaign_options campaign;
} sweep_options;

enum { KEY_LIST = 0x2000 };

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "The folder of the runs (default: FILE without its ending)", 0},
    {"list", KEY_LIST, 0, 0, "Only print the names of the runs", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    sweep_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->campaign; return 0;
    case 'o': return rws_arguments_folder(state, "--out", arg, &o->out);
    case KEY_LIST: o->list = true; return 0;
    case ARGP_KEY_ARG:
        if (o->file) return rws_arguments_extra(state, arg);
        o->file = arg;
        return 0;
    case ARGP_KEY_END: return o->file ? 0 : rws_arguments_fail(state, "Which sweep? Name its file.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Trains all runs that FILE describes, and goes on where it was stopped. A file:\v"
           "    model      gmm\n"
           "    methods    ws ww dww\n"
           "    particles  2 5 10 20\n"
           "    seeds      1-10\n"
           "    set        start far\n"
           "    set        dww.delta 0.1 0.2 # every combination is a run\n"
           "    iterations 100000            # also batch, lr, optimiser, l2, shards,\n"
           "    eval-every 1000              # eval-data, eval-particles\n"
           "    final      5000 1000         # after training: particles, test data",
    .children = (const struct argp_child[]){{.argp = &rws_campaign_argp}, {0}},
};

static rws_status do_sweep(const sweep_options *o, rws_sweep *sweep, rws_error *err)
{
    char                folder[4096];
    const char         *slash = strrchr(o->file, '/'), *dot = strrchr(o->file, '.');
    rws_campaign_result result;
    RWS_TRY(rws_sweep_check(sweep, err));
    if (o->list) {
        for (int i = 0; i < sweep->n; i++) puts(sweep->runs[i].name);
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
    RWS_TRY(rws_campaign_run(sweep, &campaign, &result, err));
    return rws_campaign_verdict(&result, err);
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    sweep_options o = {0};
    rws_sweep    *sweep;
    RWS_TRY(rws_arguments_parse(&argp, "rws sweep", argc, argv, 0, &o, err));
    RWS_TRY(rws_sweep_read(o.file, &sweep, err));
    const rws_status status = do_sweep(&o, sweep, err);
    rws_sweep_free(sweep);
    return status;
}

const rws_command rws_command_sweep = {"sweep", "train all runs of a sweep file", run};
