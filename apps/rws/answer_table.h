/* answer_table.h - the file of a table of answers (CSV or JSON lines), which an interrupted command continues.
 *
 *     answers -> [answer_table] -> FILE.partial, a line for each answer -> FILE, at once when all are there
 *
 * The first line of FILE.partial says what was asked, and is compared before it is continued.
 */
#ifndef RWS_RWS_ANSWER_TABLE_H
#define RWS_RWS_ANSWER_TABLE_H

#include "rws_train.h"

typedef struct {
    const char *path; /* as given; ends in .csv or .jsonl */
    char       *partial;
    int         file; /* descriptor of `partial`; -1: not open */
    rws_frame  *frame;
    int         n_done; /* rows that an interrupted command has left */
} rws_answer_table;

/* Whether a table may have this name. */
bool rws__answer_table_is(const char *path);

/* Opens the table for answers to the questions that `about`, one line of text, describes, and reads the rows that are there
 * already: a multiple of `block`, so that the rest has the same bits. RWS_BAD_INPUT if FILE.partial is about other questions. To
 * be closed also after a failure. */
rws_status rws__answer_table_open(rws_answer_table *t, const char *path, const char *about, int block, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds the answers to a datum with this name, or the message why there are none. */
rws_status rws__answer_table_add(rws_answer_table *t, const char *name, const rws_answers *a, const char *message,
                                 rws_error *err) __attribute__((warn_unused_result));

/* Keeps the last row of the table, which was added to its frame. */
rws_status rws__answer_table_commit(rws_answer_table *t, rws_error *err) __attribute__((warn_unused_result));

/* Writes the file and removes FILE.partial. */
rws_status rws__answer_table_finish(rws_answer_table *t, rws_error *err) __attribute__((warn_unused_result));
void       rws__answer_table_close(rws_answer_table *t);

#endif
