/* ask.h - what questions, scores and samples share: a program, an engine, a datum. */
#ifndef RWS_ASK_ASK_H
#define RWS_ASK_ASK_H

#include "program/program.h"

#include <math.h>

/* Does the work of rws_posterior_ask and rws_trainer_ask, on an engine that the caller chooses. `test` are the program's
 * test data by field, if they are at hand; NULL: they are made. */
rws_status rws__program_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *question,
                            rws_answers **out, rws_error *err);

/* The order of numbers in all sorted lists of answers, for qsort: ascending, NaN below all others. */
static inline int rws__number_order(double x, double y)
{
    return isnan(x) || isnan(y) ? isnan(y) - isnan(x) : (x > y) - (x < y);
}

/* Particles in the order of rws_answers: those with the largest weight first, NaN last, equal ones as they were. NULL: no
 * memory. */
const rws_weighted *rws__particles_sort(rws_arena *memory, const rws_weighted *particles, int n);

/* Field i of a datum; false if there is none, or `out` is NULL. */
bool rws__program_field(const rws_program *p, int i, rws_field *out);

/* Memory for a datum, zeroed: a pointer for each field. NULL without memory. */
float **rws__question_room(const rws_program *p, rws_arena *memory);

/* Writes the datum of a question to `fields`. RWS_BAD_INPUT if the model cannot be asked in this way, or does not understand
 * the text or the picture. */
rws_status rws__question_read(const rws_program *p, float *const *test, const rws_question *q, float *const *fields,
                              rws_error *err);

/* Copies of what a row of the engine's table has reported, and of its choices. NULL: no memory. */
const rws_reported *rws__reports_of_row(rws_arena *memory, rws_engine *engine, int row, int *n);
const rws_choice   *rws__choices_of_row(rws_arena *memory, rws_engine *engine, int row, int *n);

#endif
