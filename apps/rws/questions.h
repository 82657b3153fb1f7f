/* questions.h - what a user names on the command line, as questions to a posterior.
 *
 *     "0.3 1.2", a sentence, a PNG, numbers of test data, FILE -> [questions] -> rws_posterior_ask, rws_posterior_ask_many
 */
#ifndef RWS_RWS_QUESTIONS_H
#define RWS_RWS_QUESTIONS_H

#include "rws_train.h"

typedef struct rws_named_datum rws_named_datum;

/* A zeroed list is valid and empty. Questions have data only; the caller sets particles, seed and the like. */
typedef struct {
    rws_question     *list;
    rws_named_datum **data; /* of each question: its memory and its name */
    int               n, capacity;
} rws_question_list;

/* Adds a datum as it was typed: a text that the model reads, the path of a PNG, or the numbers of its fields. */
rws_status rws__questions_add(rws_question_list *l, const rws_posterior *p, const char *typed, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds a test datum. */
rws_status rws__questions_add_test(rws_question_list *l, int number, rws_error *err)
    __attribute__((warn_unused_result));

/* Adds the data of a file: JSON lines (.jsonl); lines as they would be typed (.txt, or any file if the model reads texts); a
 * folder with PNGs; else a table (CSV, NPY, safetensors) with a column for each number of the fields, by name or in their
 * order. RWS_BAD_INPUT with a message that names the file, and the line where there are lines. */
rws_status rws__questions_add_file(rws_question_list *l, const rws_posterior *p, const char *path, rws_error *err)
    __attribute__((warn_unused_result));

/* The datum as a user calls it. */
const char *rws__questions_name(const rws_question_list *l, int i);

/* A number that tells lists with other data apart. */
uint64_t rws__questions_fingerprint(const rws_question_list *l, const rws_posterior *p);

void rws__questions_release(rws_question_list *l);

#endif
