/* files.h - what tests of files share: a folder for each test, reading and writing whole files, checks of refusals.
 *
 * Files are named relative to the folder; a name that begins with / is a path.
 */
#ifndef RWS_TESTS_FILES_H
#define RWS_TESTS_FILES_H

#include "support.h"

#include "rws.h"

/* ---- set-ups and tear-downs of cmocka */

int folder_make(void **state);
int folder_remove(void **state);       /* with its files */
int folder_remove_empty(void **state); /* fails if a test left anything behind */

/* ---- files */

extern char folder[];

/* The path of a name; valid until the fourth call after this one. */
const char *in_folder(const char *name);

bool is_there(const char *name);

/* The number of temporary files (base/file.h) in a folder. */
int n_temporaries(const char *name);

/* The bytes of the file, followed by a zero byte; the caller frees them. */
char *slurp(const char *name, size_t *size);
void  spill(const char *name, const void *bytes, size_t size);

int occurrences(const char *text, const char *piece);

/* ---- statuses */

void must(rws_status status, const rws_error *err);

/* Checks that the text is a message and has the words in it. */
void assert_sentence(const rws_error *err, const char *words);

/* Checks the status, and that the message has both texts in it. */
void assert_refused(rws_status status, rws_status expected, const rws_error *err, const char *a, const char *b);

#endif
