/* output.h - results on stdout: JSON objects, one per line, or a table with aligned columns.
 *
 * The only file that knows how numbers are written. A metric that is NaN is absent: a table has "-". An object has null
 * for a metric of the model's own, which the model cannot measure on these data, and no key for one of the library's
 * (kl and ess say nothing about a single particle). Progress and complaints go to stderr; only rws__note and
 * rws__complain are here.
 *
 *     trainer -> measures -> [report] -> stdout
 */
#ifndef RWS_RWS_OUTPUT_H
#define RWS_RWS_OUTPUT_H

#include "rws_train.h"
#include "base/buffer.h"

#include <jansson.h>

/* rws__note prints "rws: " and a message on stderr if this is rank 0; rws__complain does so on any rank. */
void rws__note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rws__complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts a ? in the place of each control character, which a terminal would obey: names of runs may have any. */
void rws__output_tame(char *text);

/* `word` as a shell takes it for one word, in quotes where it needs them. False: it does not fit into `size` bytes. */
bool rws__shell_word(const char *word, char *out, size_t size);

/* Ends the program with a message and exit status 1. `what` completes "There is no memory for". */
_Noreturn void rws__without_memory(const char *what);

/* The same if `there` is false: for code that prints and has no status to return. */
static inline void rws__need_memory(bool there, const char *what)
{
    if (!there) rws__without_memory(what);
}

/* A number as JSON has it: null if it is NaN or infinite. */
json_t *rws__json_real(double value);

/* A text as JSON has it: null if it is NULL, or not UTF-8, as paths may be. */
json_t *rws__json_string(const char *text);

/* Adds a number to an object, unless it is NaN: a number that is unknown has no key, so that null is an infinite one.
 * */
void rws__json_set_known(json_t *object, const char *key, double value);

/* A text of a configuration as JSON: a number if it reads like one, true, false or a string. A whole number that JSON's
 * integers here do not hold, such as a seed of 2^63 or more, is a string, so that no digit is lost. */
json_t *rws__json_value(const char *text);

/* A number as text: "-" if it is NaN, which says that there is no such number. */
const char *rws__output_number(double value, char out[static 32]);

/* Lets the functions below notice values for which there was no memory; called before the first object is made. */
void rws__json_prepare(void);

/* Writes an object with so many digits, and frees it. Ends the program if a part of any object is missing. */
void rws__json_dump(json_t *object, FILE *file, int digits);

/* Prints an object on a line of its own, at once, and frees it. */
void rws__output_json(json_t *object);

/* The same for the text of a buffer, which is released. */
void rws__output_buffer(rws_buffer *b);

/* One evaluation as an object: {"iteration":…, "seconds":…, <metric>:…}, after "final":true if it is the last; with the
 * standard error of log_evidence where that is an estimate, and with the share of impossible test data if there are
 * any. */
void rws__output_measures(const rws_model *model, const rws_measures *m, double seconds, bool final);

/* The same as row number `row` of a table, with a heading above the first, and above the first of each screen. On a
 * terminal, unless `wide`, metrics that do not fit beside the others are left out, and a note says so. */
void rws__output_row(const rws_measures *m, double seconds, int row, bool wide);

/* Notes that no particle explains a part of the test data, if so. */
void rws__output_impossible(const rws_measures *m);

/* The first two metrics in few characters: "p_error 0.0123  q_error 0.2". */
void rws__output_brief(const rws_measures *m, char *out, size_t size);

#endif
