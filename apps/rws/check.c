/* check.c - rws check: reviews the programs of a model on a few data, and tells what is wrong or worth knowing. */
#include "base/error.h"
#include "rws/command.h"
#include "rws/options.h"
#include "rws/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static int count(const rws_check_findings *f, rws_severity severity)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) n += f->list[i].severity == severity;
    return n;
}

static void print_json(const rws_check_findings *f)
{
    for (int i = 0; i < f->n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "kind", rws__json_string(f->list[i].kind));
        json_object_set_new(o, "severity", rws__json_string(rws_severity_name(f->list[i].severity)));
        if (f->list[i].about) json_object_set_new(o, "about", rws__json_string(f->list[i].about));
        json_object_set_new(o, "text", rws__json_string(f->list[i].text));
        rws__output_json(o);
    }
    json_t *o = json_object();
    json_object_set_new(o, "final", json_true());
    json_object_set_new(o, "mistakes", json_integer(count(f, RWS_MISTAKE)));
    json_object_set_new(o, "warnings", json_integer(count(f, RWS_WARNING)));
    json_object_set_new(o, "notes", json_integer(count(f, RWS_NOTE)));
    rws__json_set_known(o, "us_per_iteration", 1e6 * f->seconds);
    json_object_set_new(o, "rows_per_iteration", json_integer((json_int_t)f->rows));
    json_object_set_new(o, "paths_per_iteration", json_integer((json_int_t)f->paths));
    json_object_set_new(o, "kernel_calls_per_iteration", json_integer((json_int_t)f->calls));
    rws__output_json(o);
}

static void print_text(const rws_check_findings *f)
{
    for (int i = 0; i < f->n; i++)
        printf("%s (%s): %s\n", rws_severity_name(f->list[i].severity), f->list[i].kind, f->list[i].text);
    if (!f->n) puts("Nothing was found.");
    if (!isnan(f->seconds))
        printf("An iteration takes %.3g ms: %" PRIu64 " rows, %" PRIu64 " paths, %" PRIu64 " calls of kernels.\n",
               1e3 * f->seconds, f->rows, f->paths, f->calls);
}

static rws_status print_findings(const rws_check_findings *f, bool json, rws_error *err)
{
    const int n = count(f, RWS_MISTAKE);
    if (json) print_json(f);
    else print_text(f);
    return n ? rws_fail(err, RWS_BAD_INPUT, "The model has %d mistake%s.", n, n == 1 ? "" : "s") : RWS_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_options *o = state->input;
    (void)arg;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = o;
        return 0;
    }
    if (key == ARGP_KEY_END && (o->out || o->resume))
        return rws__arguments_fail(state, "check looks at a model, not at a run: leave out --out and --resume.");
    return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .parser = parse,
    .doc =
        "Reviews a model and its guide on a few data, at the parameters that training starts from: whether scores "
        "depend on the order in which particles run or on numbers from elsewhere, whether gradients agree with "
        "differences, whether parameters are used by the program that they belong to, whether the guide reaches what "
        "the model draws, whether data are possible, and what an iteration costs. The options are those of rws train. "
        "Exit status 2 if there is a mistake.",
    .children = (const struct argp_child[]){{.argp = &rws_options_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    rws_options         o;
    rws_trainer        *trainer = NULL;
    rws_check_findings *f = NULL;
    RWS_TRY(rws__arguments_parse(&argp, "rws check", argc, argv, 0, &o, err));
    rws__options_fill(&o);
    rws__json_prepare();
    rws_status status = rws_trainer_new(&o.config, NULL, &trainer, err);
    if (status == RWS_OK) status = rws_trainer_check(trainer, &f, err);
    if (status == RWS_OK) status = print_findings(f, o.json, err);
    rws_check_free(f);
    rws_trainer_free(trainer);
    return status;
}

const rws_command rws_command_check = {"check", "look for mistakes in a model and its guide", run, &argp};
