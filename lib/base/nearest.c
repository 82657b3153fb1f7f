#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* LETTER: the price of a letter. CASE: of the other case, and of - for _. A text of PART letters is near to names that
 * contain it. */
enum { LONGEST = 60, LETTER = 4, CASE = 1, PART = 3 };

rws_nearest rws__nearest_to(const char *name)
{
    return (rws_nearest){.name = name, .distance = INT_MAX};
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int price(char a, char b)
{
    if (a == b) return 0;
    if (strchr("-_", a) && strchr("-_", b)) return CASE;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? CASE : LETTER;
}

/* The edit distance of two names, row by row of its table. Two neighbours that changed places count as one letter. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
    int rows[3][LONGEST + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++) above[j] = LETTER * (int)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = LETTER * (int)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(above[j], row[j - 1]) + LETTER, above[j - 1] + price(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + LETTER);
        }
        int *free = before;
        before = above, above = row, row = free;
    }
    return above[m];
}

void rws__nearest_try(rws_nearest *n, const char *candidate)
{
    const size_t a = n->name ? strlen(n->name) : 0, b = strlen(candidate);
    if (!a || !b || a > LONGEST || b > LONGEST) return;
    const int longer = (int)(a > b ? a : b), most = LETTER * longer / 3;
    const int least_limit = longer > 1 ? LETTER : LETTER / 2; /* "Y" is near to "y", "x" is not */
    const int limit = most > least_limit ? most : least_limit;
    int       d = distance(n->name, a, candidate, b);
    if (d > limit && a >= PART && strstr(candidate, n->name)) d = limit;
    if (d > limit || d >= n->distance) return;
    n->best = candidate;
    n->distance = d;
}

rws_nearest_text rws__nearest_hint(const rws_nearest *n)
{
    rws_nearest_text out = {""};
    if (n->best) snprintf(out.text, sizeof out.text, " (did you mean \"%s\"?)", n->best);
    return out;
}
