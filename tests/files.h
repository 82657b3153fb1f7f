/* files.h - what tests of files share: a folder of their own, whole files in and out of it, and the shape of a refusal.
 *
 * Files are named relative to the folder; a name that begins with / is a path.
 */
#ifndef RWS_TESTS_FILES_H
#define RWS_TESTS_FILES_H

#include "support.h"

#include "rws.h"

/* ---- set-ups and tear-downs of cmocka */

int folder_make(void **state);
int folder_remove(void **state);       /* with all that is in it */
int folder_remove_empty(void **state); /* fails if a test left anything behind */

/* ---- files */

extern char folder[];

/* The path of a name; valid until the fourth call from here. */
const char *in_folder(const char *name);

bool is_there(const char *name);

/* The whole file, with a 0 behind it; the caller frees it. */
char *slurp(const char *name, size_t *size);
void  spill(const char *name, const void *bytes, size_t size);

int occurrences(const char *text, const char *piece);

/* ---- statuses */

void must(rws_status status, const rws_error *err);

/* A whole sentence that has the words in it. */
void assert_sentence(const rws_error *err, const char *words);

/* A refusal is a status and such a sentence. */
void assert_refused(rws_status status, rws_status expected, const rws_error *err, const char *a, const char *b);

#endif
