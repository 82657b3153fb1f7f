/* edit.h - the edit distance of two sentences, in words.
 *
 * Sentences are arrays of token ids; equal ids match, so RWS_OOV matches RWS_OOV and no word.
 */
#ifndef RWS_DATA_EDIT_H
#define RWS_DATA_EDIT_H

/* Levenshtein's distance: the least number of insertions, deletions and replacements, each of one token, that turn a
 * into b. Time n_a * n_b. `row` is scratch memory for min(n_a, n_b) + 1 ints. */
int rws_edit_distance(const int *a, int n_a, const int *b, int n_b, int *row);

#endif
