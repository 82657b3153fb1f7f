/* datum.h - data that a user names on the command line: numbers for the fields of a model, and numbers of test data.
 *
 *     "0.3 1.2" -> [datum] -> rws_question.fields
 *     "0.3 [1 2 2]"   the same, with a series
 *     "0-9,12"  -> [datum] -> rws_question.test
 */
#ifndef RWS_RWS_DATUM_H
#define RWS_RWS_DATUM_H

#include "rws_train.h"

/* A datum as numbers. A zeroed one is empty. */
typedef struct {
    float        *numbers;
    const float **fields; /* for each field of the model, a place in `numbers`; NULL for one that is not read */
} rws_datum;

/* Makes a datum of zeros, with all fields except labels, or with the inputs alone. The caller releases *out, also after a failure. */
rws_status rws__datum_make(const rws_posterior *p, bool inputs, rws_datum *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads the numbers of all fields except labels, or those of the inputs alone, in the order of declaration, separated by spaces, commas or
 * semicolons. The numbers of a series stand in brackets, which the last field does not need: "7 [0 3 1]", "7 0 3 1".
 * Each item may have brackets too: "[[1 2] [3 4]]".
 * RWS_BAD_INPUT with a message that names the fields and how many numbers each has. The caller releases *out, also
 * after a failure. */
rws_status rws__datum_read(const rws_posterior *p, const char *text, bool inputs, rws_datum *out, rws_error *err)
    __attribute__((warn_unused_result));
void rws__datum_release(rws_datum *d);

/* The next number or range of a list such as "0-9,12", at *at, which moves past it and past a comma. False at the end
 * of the list and, with *at where it was, for a text that is not such a list. */
bool rws__datum_range(const char **at, int *from, int *to);

#endif
