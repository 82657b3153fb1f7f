/* forest.h - sums over shards, in the order of one fixed binary tree over the shards' numbers.
 *
 *     0   1   2   3   4   5   6        shards
 *      \ /     \ /     \ /    |
 *      0-1     2-3     4-5    6
 *         \   /           \  /
 *          0-3             4-6         a missing right half is nothing: the left half goes up as it is
 *             \           /
 *                  0-6
 *
 * Additions of floats are made along this tree wherever the shards are computed, so that neither threads nor ranks
 * change a bit. A rank that holds shards 2 … 5 adds up 2-3 and 4-5 by itself and hands over these two: the forest of a
 * range is the least number of whole subtrees that cover it. Subtrees that come from the left and from the right are
 * joined when they are brothers.
 */
#ifndef RWS_TRAIN_FOREST_H
#define RWS_TRAIN_FOREST_H

#include <stddef.h>

#define RWS_MAX_FOREST 40 /* subtrees of a range of up to 2^20 shards */

/* The sum over shards first … first + size - 1; size is a power of 2 that divides first. */
typedef struct {
    int    first, size;
    float *sum; /* NULL: zeros */
} rws_subtree;

/* Subtrees of neighbouring ranges, from left to right, no two of which are brothers. A zeroed one is empty. */
typedef struct {
    int         n;
    rws_subtree list[RWS_MAX_FOREST];
} rws_forest;

/* Adds the subtree right of all others; `length` numbers. Sums of brothers are added into the memory of the left one.
 * */
void rws__forest_add(rws_forest *f, rws_subtree tree, size_t length);

/* The forest of shards first … end - 1, without sums. */
rws_forest rws__forest_of(int first, int end);

/* The sum of the whole tree, when the forest is that of all shards; NULL: zeros. The forest is then empty. */
float *rws__forest_sum(rws_forest *f, size_t length);

#endif
