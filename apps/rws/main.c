/* main.c - rws COMMAND: finds the command, prints the message of its error, and returns the exit status. */
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "rws/crash.h"
#include "rws/output.h"
#include "comm/comm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The table of commands, in the order of --help: each is rws_command_NAME in NAME.c. */
/* clang-format off */
#define COMMANDS(COMMAND)                                                                            \
    COMMAND(train) COMMAND(check) COMMAND(eval) COMMAND(infer) COMMAND(sample) COMMAND(calibrate) COMMAND(sweep) \
    COMMAND(runs) COMMAND(export) COMMAND(plot) COMMAND(serve) COMMAND(draw) COMMAND(reproduce)      \
    COMMAND(bench) COMMAND(data) COMMAND(list) COMMAND(demo) COMMAND(help)
#define DECLARE(name) extern const rws_command rws_command_##name;
#define POINTER(name) &rws_command_##name,
/* clang-format on */

COMMANDS(DECLARE)
const rws_command *const rws_commands[] = {COMMANDS(POINTER) NULL};

typedef struct {
    int at; /* index of the command in argv; 0: there is none */
} top_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    top_options *o = state->input;
    switch (key) {
    case 'V': puts("rws " RWS_VERSION_STRING); rws__arguments_leave();
    case ARGP_KEY_ARG:
        (void)arg;
        o->at = state->next - 1;
        state->next = state->argc; /* the rest is the command's */
        return 0;
    case ARGP_KEY_END: return o->at ? 0 : rws__arguments_fail(state, "Which command? See rws --help.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void list_commands(FILE *stream)
{
    fputs("Commands:\n", stream);
    for (int i = 0; rws_commands[i]; i++) fprintf(stream, "  %-10s %s\n", rws_commands[i]->name, rws_commands[i]->help);
    fputs("\n`rws COMMAND --help` tells more. Exit status: 0 if all went well, 1 after a numerical failure or without "
          "memory, 2 for bad input, 130 when stopped.",
          stream);
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    return rws__arguments_below(key, text, list_commands);
}

/* The i-th command, or part of `of`; NULL after the last. */
static const rws_command *command_at(const rws_command *of, int i)
{
    if (!of) return rws_commands[i];
    return of->parts && of->parts[i].name ? &of->parts[i] : NULL;
}

const rws_command *rws__command_find(const rws_command *of, const char *name, rws_error *err)
{
    const rws_command *c;
    rws_nearest        near = rws__nearest_to(name);
    for (int i = 0; (c = command_at(of, i)); i++) {
        if (strcmp(c->name, name) == 0) return c;
        rws__nearest_try(&near, c->name);
    }
    rws_fail(err, RWS_BAD_INPUT, "There is no %s \"%s\"%s; see rws%s%s --help.", of ? of->name : "command",
             rws__quote_short(name).text, rws__nearest_hint(&near).text, of ? " " : "", of ? of->name : "");
    return NULL;
}

static const struct argp argp = {
    .options = (const struct argp_option[]){{"version", 'V', 0, 0, "Print the version", -1}, {0}},
    .parser = parse,
    .args_doc = "COMMAND [ARGUMENT...]",
    .doc = "Learns generative programs that branch, loop and recurse on random choices.\v ",
    .help_filter = help_filter,
};

rws_status rws__command_dispatch(int argc, char **argv, rws_error *err)
{
    top_options      o = {0};
    const rws_status status = rws__arguments_parse(&argp, "rws", argc, argv, ARGP_IN_ORDER, &o, err);
    if (status != RWS_OK) return status;
    const rws_command *command = rws__command_find(NULL, argv[o.at], err);
    if (!command) return RWS_BAD_INPUT;
    if (!command->ranks && rws__comm_started() > 1)
        return rws_fail(err, RWS_BAD_INPUT, "rws %s works alone, not as %d ranks: start it without mpirun or srun.",
                        command->name, rws__comm_started());
    return command->run(argc - o.at, argv + o.at, err);
}

static const char *hint = ""; /* what follows the message about a rank that is gone */

static void tell_loss(const char *message)
{
    rws__complain("%s%s", message, hint);
}

rws_status rws__command_join(const char *hint_of_loss, rws_error *err)
{
    hint = hint_of_loss;
    rws__comm_on_loss(tell_loss);
    RWS_TRY(rws_ranks_open(err));
    rws_status status = RWS_OK;
    if (rws_rank() > 0 && !freopen("/dev/null", "w", stdout))
        status = rws_fail(err, RWS_BAD_INPUT, "/dev/null cannot be opened: %s.", strerror(errno));
    return rws__comm_agree(rws__comm_world(), status, err);
}

static int exit_status(rws_status status)
{
    switch (status) {
    case RWS_OK: return 0;
    case RWS_BROKEN:
    case RWS_NO_MEMORY: return 1;
    case RWS_BAD_INPUT: return 2;
    case RWS_STOPPED: return 130;
    }
    return 1;
}

/* The message about a rank that is gone was printed when the loss was noticed. */
static void tell(const char *message)
{
    const int rank = rws_n_ranks() > 1 ? rws_rank() : rws__comm_started() > 1 ? rws__comm_started_as() : 0;
    if (rank == 0 && rws_rank_lost() < 0) rws__complain("%s", message);
}

/* Exported: where the program is installed for any processor it is a shared library (lib/levels). */
__attribute__((visibility("default"))) int main(int argc, char **argv)
{
    rws_error err = {{0}};
    /* A caller that ignores the ends of its children hands this down, and then no child has an exit status. */
    signal(SIGCHLD, SIG_DFL);
    rws__crash_explain();
    rws__json_prepare();
    rws_status status = rws__command_dispatch(argc, argv, &err);
    if (status == RWS_OK) status = rws__arguments_flush(&err);
    if (status != RWS_OK) tell(err.text);
    if (rws_rank_lost() >= 0) { /* MPI cannot be ended in order without that rank */
        fflush(NULL);
        usleep(500000); /* launchers drop what was printed when they see ranks end */
        _exit(exit_status(status));
    }
    rws_ranks_close();
    return exit_status(status);
}
