/* edit.c - the edit distance, row by row. */
#include "data/edit.h"

int rws_edit_distance(const int *a, int n_a, const int *b, int n_b, int *row)
{
    /* A common beginning and a common end cost nothing. */
    while (n_a > 0 && n_b > 0 && a[0] == b[0]) a++, b++, n_a--, n_b--;
    while (n_a > 0 && n_b > 0 && a[n_a - 1] == b[n_b - 1]) n_a--, n_b--;
    if (n_a < n_b) {
        const int *s = a, n = n_a;
        a = b, n_a = n_b;
        b = s, n_b = n;
    }
    if (n_b == 0) return n_a;

    /* row[j] is the distance of a's first i tokens and b's first j; `diagonal` is row[j - 1] as it was for i - 1. */
    for (int j = 0; j <= n_b; j++) row[j] = j;
    for (int i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int least = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < least) least = row[j] + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    return row[n_b];
}
