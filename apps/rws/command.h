/* command.h - one command of the program: a row of the table that main and `rws --help` walk.
 *
 * A command parses its own arguments, prints results on stdout and returns a status, with a message if it failed; it
 * neither prints that message nor exits. Only --help and --usage end the program from inside.
 *
 *     main -> [command] -> options -> run -> report
 */
#ifndef RWS_RWS_COMMAND_H
#define RWS_RWS_COMMAND_H

#include "rws.h"

#include <argp.h>

typedef struct rws_command rws_command;
struct rws_command {
    const char *name;
    const char *help; /* one line for `rws --help` */
    /* argv[0] is the command's name. RWS_STOPPED after Ctrl-C; the message says how to resume. */
    rws_status (*run)(int argc, char **argv, rws_error *err);
    const struct argp *argp;  /* its options: --help, the manual page and the completions are made of them */
    const rws_command *parts; /* the commands that its first argument names, ended by one without a name; or NULL */
    /* Whether mpirun or srun may start the command several times: as ranks, which call rws__command_join, or as tasks.
     * */
    bool ranks;
};

/* Joins the ranks, after the arguments are parsed. Only rank 0 prints from then on. The hint, which must stay, follows
 * the message that tells of a rank that is gone. */
rws_status rws__command_join(const char *hint, rws_error *err);

/* Every command, NULL-terminated. */
extern const rws_command *const rws_commands[];

/* The command or, among the parts of `of`, the part with this name; NULL, with a message: there is none. */
const rws_command *rws__command_find(const rws_command *of, const char *name, rws_error *err);

/* Does what `rws ARGUMENT…` does; argv[0] is not read. */
rws_status rws__command_dispatch(int argc, char **argv, rws_error *err);

#endif
