/* answers_json.h - answers, samples and choices as JSON, with the same keys on the command line, in the HTTP API and in Python.
 *
 *     rws_answers, rws_sample -> [answers_json] -> rws_buffer -> stdout, reply, rws_answers_json
 *
 * Values of choices, fields and reports have 9 digits, from which a float is read back; every other number has as many as a
 * double takes. A buffer without memory is starved.
 */
#ifndef RWS_ASK_ANSWERS_JSON_H
#define RWS_ASK_ANSWERS_JSON_H

#include "base/buffer.h"
#include "rws_train.h"

/* The members of an object, which the caller opens and closes: the evidence, answers and, where `parts` says so, marginals and
 * particles. */
void rws__answers_write(const rws_answers *a, const rws_answers_shown *parts, rws_buffer *out);

/* A sample as an object: its reports, its fields (unless it reports a text) and, if `choices`, its choices. */
void rws__sample_write(const rws_posterior *p, const rws_sample *s, bool choices, rws_buffer *out);

/* A quantity of a calibration as an object. */
void rws__calibrated_write(const rws_calibrated *c, rws_buffer *out);

/* Choices as an array, in the order of their visits. */
void rws__choices_write(const rws_choice *list, int n, rws_buffer *out);

#endif
