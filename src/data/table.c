#include "data/table.h"

#include "base/error.h"
#include "base/quote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws_table_free(rws_table *t)
{
    if (!t) return;
    for (int split = 0; split < 2; split++) {
        rws_sheet_release(&t->sheet[split]);
        free(t->path[split]);
        free(t->list[split]);
    }
    for (int i = 0; i < t->n_fields; i++) free(t->fields[i].columns);
    free(t);
}

/* ---- which rows */

/* The number of test rows among the first n. The small number is for shares that a double holds a little too small. */
static int n_held_out(int n, double share)
{
    return (int)floor(n * share + 1e-9);
}

static rws_status hold_out(rws_table *t, const rws_table_options *o, rws_error *err)
{
    const double share = o->test_share == 0 ? 0.1 : o->test_share;
    if (!(share > 0 && share <= 1))
        return rws_fail(err, RWS_BAD_INPUT, "The share of test rows must be between 0 and 1, not %g.", share);
    const int n = t->sheet[RWS_TRAIN].n_rows, n_test = n_held_out(n, share);
    t->n[RWS_TRAIN] = t->n[RWS_TEST] = n;
    if (n_test == 0 || n_test == n) return RWS_OK;
    t->n[RWS_TRAIN] = n - n_test;
    t->n[RWS_TEST] = n_test;
    for (int split = 0; split < 2; split++) {
        t->list[split] = malloc((size_t)t->n[split] * sizeof *t->list[split]);
        if (!t->list[split]) return rws_no_memory(err, "the rows of a table");
    }
    int put[2] = {0, 0};
    for (int row = 0; row < n; row++) {
        const bool test =
            o->test_last ? row >= n - n_test : n_held_out(row + 1, share) > put[RWS_TEST] && put[RWS_TEST] < n_test;
        const rws_split split = test ? RWS_TEST : RWS_TRAIN;
        t->list[split][put[split]++] = row;
    }
    RWS_CHECK(put[RWS_TEST] == n_test);
    return RWS_OK;
}

static rws_status compare(const rws_table *t, rws_error *err)
{
    const rws_sheet *a = &t->sheet[RWS_TRAIN], *b = &t->sheet[RWS_TEST];
    const rws_quoted train = rws_quote_short(t->path[RWS_TRAIN]), test = rws_quote_short(t->path[RWS_TEST]);
    if (a->n_columns != b->n_columns)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %d columns and \"%s\" has %d; they must have the same.",
                        train.text, a->n_columns, test.text, b->n_columns);
    for (int i = 0; a->names && b->names && i < a->n_columns; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return rws_fail(err, RWS_BAD_INPUT, "Column %d is \"%s\" in \"%s\" and \"%s\" in \"%s\".", i + 1,
                            rws_quote_short(a->names[i]).text, train.text, rws_quote_short(b->names[i]).text,
                            test.text);
    return RWS_OK;
}

static rws_status fill_in(rws_table *t, const char *const path[2], const rws_table_options *o, rws_error *err)
{
    for (int split = 0; split < 2; split++)
        if (path[split] && !(t->path[split] = strdup(path[split]))) return rws_no_memory(err, "the path of a table");
    if (!path[RWS_TEST]) return hold_out(t, o, err);
    for (int split = 0; split < 2; split++) t->n[split] = t->sheet[split].n_rows;
    return compare(t, err);
}

rws_status rws_table_new(rws_sheet sheet[2], const char *const path[2], const rws_table_options *options, uint64_t seed,
                         rws_table **out, rws_error *err)
{
    rws_table *t = *out = calloc(1, sizeof *t);
    if (!t) {
        for (int split = 0; split < 2; split++) rws_sheet_release(&sheet[split]);
        return rws_no_memory(err, "a table");
    }
    for (int split = 0; split < 2; split++) {
        t->sheet[split] = sheet[split];
        sheet[split] = (rws_sheet){0};
    }
    t->order = options->order;
    t->seed = seed;
    const rws_status status = fill_in(t, path, options, err);
    if (status != RWS_OK) {
        rws_table_free(t);
        *out = NULL;
    }
    return status;
}

/* The sheet that the rows of a split come from. */
static const rws_sheet *sheet_of(const rws_table *t, rws_split split)
{
    return &t->sheet[t->path[RWS_TEST] ? split : RWS_TRAIN];
}

/* ---- which columns */

/* Whether a name of a column is the `length` bytes of text. */
static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

typedef enum { FOUND, UNKNOWN, AMBIGUOUS } finding;

/* A column by its name, or else by its number from 1. *column counts from 0. */
static finding find_column(const rws_sheet *s, const char *text, size_t length, int *column)
{
    int n = 0;
    for (int i = 0; s->names && i < s->n_columns; i++)
        if (is_name(s->names[i], text, length) && n++ == 0) *column = i;
    if (n) return n == 1 ? FOUND : AMBIGUOUS;
    int64_t number = 0;
    for (size_t k = 0; k < length; k++) {
        if (text[k] < '0' || text[k] > '9' || number > s->n_columns) return UNKNOWN;
        number = 10 * number + (text[k] - '0');
    }
    *column = (int)number - 1;
    return number >= 1 && number <= s->n_columns ? FOUND : UNKNOWN;
}

/* A column, or two with a colon between them. */
static finding find_range(const rws_sheet *s, const char *text, size_t length, int *first, int *last)
{
    const finding one = find_column(s, text, length, first);
    *last = *first;
    if (one != UNKNOWN) return one;
    for (size_t k = 0; k < length; k++)
        if (text[k] == ':' && find_column(s, text, k, first) == FOUND &&
            find_column(s, text + k + 1, length - k - 1, last) == FOUND && *first <= *last)
            return FOUND;
    return UNKNOWN;
}

/* The names of the columns for a sentence, as far as there is room; their number, if they have none. */
static void list_names(const rws_sheet *s, char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size, "%d column%s", s->n_columns, s->n_columns == 1 ? "" : "s");
    for (int i = 0; s->names && i < s->n_columns; i++) {
        const rws_quoted name = rws_quote_short(s->names[i]);
        if (n + strlen(name.text) + 10 > size) {
            snprintf(to + n, size - n, ", ...");
            return;
        }
        n += (size_t)snprintf(to + n, size - n, "%s\"%s\"", i ? ", " : ": ", name.text);
    }
}

static rws_status refuse_column(const rws_table *t, finding what, const char *text, size_t length, rws_error *err)
{
    const rws_quoted asked = rws_quote_part(text, length, RWS_QUOTED_SHORT);
    char             names[160];
    if (what == AMBIGUOUS)
        return rws_refuse(err, t->path[RWS_TRAIN], 0, "has several columns \"%s\"; name the column by its number.",
                          asked.text);
    list_names(&t->sheet[RWS_TRAIN], names, sizeof names);
    return rws_refuse(err, t->path[RWS_TRAIN], 0, "has no column \"%s\"; it has %s.", asked.text, names);
}

/* Resolves a list of columns. With `to` NULL the columns are only counted, so that a second call can write them. */
static rws_status resolve(const rws_table *t, const char *columns, int *to, int *n, rws_error *err)
{
    const char *at = columns;
    *n = 0;
    for (bool more = true; more;) {
        const char *stop = strchrnul(at, ','), *end = stop;
        more = *stop == ',';
        while (at < end && *at == ' ') at++;
        while (at < end && end[-1] == ' ') end--;
        int           first = 0, last = 0;
        const finding found = find_range(&t->sheet[RWS_TRAIN], at, (size_t)(end - at), &first, &last);
        if (found != FOUND) return refuse_column(t, found, at, (size_t)(end - at), err);
        if (__builtin_add_overflow(*n, last - first + 1, n))
            return rws_fail(err, RWS_BAD_INPUT, "The list of columns \"%s\" is too long.",
                            rws_quote_short(columns).text);
        for (int i = first; to && i <= last; i++) *to++ = i;
        at = stop + 1;
    }
    return RWS_OK;
}

/* A label may lack a value, which is then NaN. */
static bool is_only_missing(const rws_sheet *s, int column)
{
    return s->flaws[column].what == RWS_CELL_EMPTY || s->flaws[column].what == RWS_CELL_NOT_FINITE;
}

rws_status rws_table_add_field(rws_table *t, int at, const char *columns, bool label, int *dim, rws_error *err)
{
    RWS_CHECK(t->n_fields < RWS_FIELDS && t->sheet[RWS_TRAIN].n_columns > 0);
    if (columns && strcmp(columns, "#") == 0) {
        t->fields[t->n_fields++] = (rws_table_field){at, 1, NULL};
        *dim = 1;
        return RWS_OK;
    }
    const int n_all = t->sheet[RWS_TRAIN].n_columns;
    int       n = n_all;
    if (columns) RWS_TRY(resolve(t, columns, NULL, &n, err));
    int *list = malloc((size_t)n * sizeof *list);
    if (!list) return rws_no_memory(err, "the columns of a field");
    rws_status status = RWS_OK;
    if (columns) status = resolve(t, columns, list, &n, err);
    else
        for (int i = 0; i < n; i++) list[i] = i;
    for (int split = 0; split < 2; split++)
        for (int i = 0; i < n && t->path[split] && status == RWS_OK; i++)
            if (!label || !is_only_missing(&t->sheet[split], list[i]))
                status = rws_sheet_check_column(&t->sheet[split], list[i], t->path[split], err);
    if (status != RWS_OK) {
        free(list);
        return status;
    }
    t->fields[t->n_fields++] = (rws_table_field){at, n, list};
    *dim = n;
    return RWS_OK;
}

/* ---- numbers */

static uint32_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9); /* the finaliser of splitmix64 */
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x >> 32 ^ x);
}

/* A Feistel network permutes the numbers of 2 * half bits; it is applied until the number is below n. From 64 rows on there
 * are at most 4 n such numbers, so that this takes at most four turns on average. Fewer than 256 numbers would leave the
 * network too few permutations to choose from. */
uint32_t rws_table_shuffle(uint64_t seed, uint64_t epoch, uint32_t n, uint32_t place)
{
    RWS_CHECK(place < n);
    int half = 4;
    while (half < 16 && UINT64_C(1) << (2 * half) < n) half++;
    const uint32_t mask = (UINT32_C(1) << half) - 1;
    const uint64_t key = seed * UINT64_C(0x9e3779b97f4a7c15) + epoch * UINT64_C(0xd1342543de82ef95);
    uint32_t       x = place;
    do {
        uint32_t left = x >> half, right = x & mask;
        for (uint64_t round = 1; round <= 6; round++) {
            const uint32_t next = left ^ (mix(key + (round << 32 | right)) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= n);
    return x;
}

/* The place in the list of rows of the datum that is number `i` of all data. */
static uint32_t choose(const rws_table *t, rws_split split, uint64_t i, rws_random *random)
{
    const uint32_t n = (uint32_t)t->n[split];
    if (split == RWS_TRAIN && t->order == RWS_ROWS_DRAWN) return rws_random_below(random, n);
    if (split == RWS_TRAIN && t->order == RWS_ROWS_SHUFFLED)
        return rws_table_shuffle(t->seed, i / n, n, (uint32_t)(i % n));
    return (uint32_t)(i % n);
}

rws_status rws_table_fill(const rws_table *t, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err)
{
    if (rws_table_rows(t, split) == 0) return rws_fail(err, RWS_BAD_INPUT, "The table has no rows to learn from.");
    for (int i = 0; i < n; i++) {
        const uint32_t place = choose(t, split, first + (uint64_t)i, random);
        const float   *row = rws_table_row(t, split, (int)place);
        for (int f = 0; f < t->n_fields; f++) {
            const rws_table_field *field = &t->fields[f];
            float                 *to = fields[field->at] + (size_t)i * (size_t)field->dim;
            for (int k = 0; k < field->dim && field->columns; k++) to[k] = row[field->columns[k]];
            if (!field->columns) to[0] = (float)(t->list[split] ? t->list[split][place] : (int)place);
        }
    }
    return RWS_OK;
}

int rws_table_rows(const rws_table *t, rws_split split)
{
    return t && (split == RWS_TRAIN || split == RWS_TEST) ? t->n[split] : 0;
}

int rws_table_columns(const rws_table *t)
{
    return t ? t->sheet[RWS_TRAIN].n_columns : 0;
}

const float *rws_table_row(const rws_table *t, rws_split split, int i)
{
    if (i < 0 || i >= rws_table_rows(t, split)) return NULL;
    const rws_sheet *s = sheet_of(t, split);
    const int        row = t->list[split] ? t->list[split][i] : i;
    return s->values + (size_t)row * (size_t)s->n_columns;
}

int rws_table_column(const rws_table *t, const char *name)
{
    int found = 0;
    if (!t || !name || !t->sheet[RWS_TRAIN].names) return 0;
    for (int i = 0; i < t->sheet[RWS_TRAIN].n_columns; i++)
        if (strcmp(t->sheet[RWS_TRAIN].names[i], name) == 0) {
            if (found) return 0;
            found = i + 1;
        }
    return found;
}

const char *rws_table_name(const rws_table *t, int column)
{
    if (column < 1 || column > rws_table_columns(t) || !t->sheet[RWS_TRAIN].names) return NULL;
    return t->sheet[RWS_TRAIN].names[column - 1];
}
