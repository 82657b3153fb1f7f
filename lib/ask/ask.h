/* ask.h - what questions, scores and samples share: a program, an engine, a datum. */
#ifndef RWS_ASK_ASK_H
#define RWS_ASK_ASK_H

#include "program/program.h"

#include <math.h>

/* Does the work of rws_posterior_ask and rws_trainer_ask, on an engine that the caller chooses. `test` are the program's
 * test data by field, if they are at hand; NULL: they are made. */
rws_status rws__program_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *question,
                            rws_answers **out, rws_error *err);

enum { RWS_QUESTION_PARTICLES = 1000 /* unless the question says how many */ };

/* The same for n questions that agree in everything but their data, in one pass for all; question i has the draws of datum
 * first + i. Either all have answers, or out is n times NULL. */
rws_status rws__questions_ask(const rws_program *p, rws_engine *engine, float *const *test, const rws_question *list,
                              int n, uint32_t first, rws_answers **out, rws_error *err);

/* How many data of questions with n_particles share a pass in rws_posterior_ask_many. */
int rws__questions_at_once(const rws_program *p, int n_particles);

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

/* Memory for n data, zeroed: a pointer for each field. NULL without memory. */
float **rws__question_memory(const rws_program *p, int n, rws_arena *memory);

/* The test data that evaluations see, p->n_test by field. RWS_NO_MEMORY, or the failure of the model. The caller releases
 * them, also after a failure. */
rws_status rws__test_make(const rws_program *p, int n, float **data, rws_error *err);
void       rws__test_release(const rws_program *p, float **data);

/* Writes the datum of a question to `fields`; with `inputs`, other fields may be missing. RWS_BAD_INPUT if the model cannot
 * be asked in this way, or does not understand the text or the picture. */
rws_status rws__question_read(const rws_program *p, float *const *test, const rws_question *q, bool inputs,
                              float *const *fields, rws_error *err);

/* RWS_BAD_INPUT if a choice that is given is none, or is given twice. */
rws_status rws__question_check_given(const rws_question *q, rws_error *err);

/* RWS_BAD_INPUT if there is a given choice that no particle has visited. */
rws_status rws__question_check_reached(const rws_program *p, const rws_question *q, const bool *reached,
                                       rws_error *err);

/* The largest log-weights of a question's particles, of which the Pareto k is estimated. A zeroed one is valid and empty. */
typedef struct {
    double log_weight, count; /* of each of `count` equal particles */
} rws_tail_entry;

typedef struct {
    rws_tail_entry *list;
    int             n, capacity;
} rws_tail;

/* Adds `count` particles; n_particles is the number of all that will be added. False without memory. */
bool rws__tail_add(rws_tail *t, double log_weight, double count, int n_particles);
void rws__tail_release(rws_tail *t);

/* The Pareto k of n_particles, as rws_pareto_k has it. Sorts the tail. */
double rws__tail_pareto_k(rws_tail *t, int n_particles);

/* Sets k_limit, verdict and advice of answers, whose other members are known. RWS_NO_MEMORY. */
rws_status rws__answers_judge(rws_answers *a, rws_arena *memory, rws_error *err);

/* The reports of a row, in the engine's memory. A zeroed one is valid; the caller frees the list. */
typedef struct {
    rws_reported *list;
    int           n, capacity;
    bool          memory_short;
} rws_row_reports;

/* Lists what a row has reported, in the place of what was listed before. False without memory. */
bool rws__row_reports(rws_engine *engine, int row, rws_row_reports *out);

/* A copy of reports; NULL: no memory. */
const rws_reported *rws__reports_copy(rws_arena *memory, const rws_reported *list, int n);

/* Copies of what a row of the engine's table has reported, and of its choices. NULL: no memory. */
const rws_reported *rws__reports_of_row(rws_arena *memory, rws_engine *engine, int row, int *n);
const rws_choice   *rws__choices_of_row(rws_arena *memory, rws_engine *engine, int row, int *n);

#endif
