/* config.h - the members of an rws_config in one table: their names, kinds and limits.
 *
 * config.json, the command line, sweep files, the arguments of a run of a sweep and the comparison of ranks walk this table, so
 * that a member that is written is read, has one range and counts in every comparison. Texts of `set` are not in it.
 */
#ifndef RWS_PROGRAM_CONFIG_H
#define RWS_PROGRAM_CONFIG_H

#include "rws_train.h"

typedef enum {
    RWS_CONFIG_TEXT,   /* const char * */
    RWS_CONFIG_INT,    /* int */
    RWS_CONFIG_COUNT,  /* uint64_t */
    RWS_CONFIG_NUMBER, /* double */
    RWS_CONFIG_FLAG,   /* bool */
} rws_config_kind;

typedef struct {
    const char     *name;   /* in rws_config, config.json and Python */
    const char     *option; /* on the command line and in sweep files */
    rws_config_kind kind;
    size_t          offset;
    uint64_t        least, most; /* 0 and 0: any */
    bool            free;        /* a run that continues may be given another value */
    bool            of_sweeps;   /* a line of a sweep file has it for all runs of a model */
} rws_config_member;

extern const rws_config_member rws_config_members[]; /* ends with a NULL name */

/* The member with this option; NULL: there is none. */
const rws_config_member *rws__config_member(const char *option);

enum { RWS_CONFIG_VALUE = 32 };

/* The value of a member: its text (NULL becomes ""), or a number in decimal, or 1 for a flag, written to `out`. */
const char *rws__config_value(const rws_config_member *m, const rws_config *c, char out[static RWS_CONFIG_VALUE]);

/* Whether a member has a value: it is not NULL, 0 or false, which stand for the default. */
bool rws__config_has(const rws_config_member *m, const rws_config *c);

/* Whether a number lies within the limits of its member. */
bool rws__config_fits(const rws_config_member *m, const rws_config *c);

#endif
