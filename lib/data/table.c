#include "data/table.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/vecmath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__table_free(rws_table *t)
{
    if (!t) return;
    for (int split = 0; split < 2; split++) {
        rws__sheet_release(&t->sheet[split]);
        free(t->path[split]);
        free(t->list[split]);
        free(t->start[split]);
        free(t->rows[split]);
    }
    for (int i = 0; i < t->n_fields; i++) free(t->fields[i].columns);
    free(t);
}

/* ---- which rows */

/* Lists the rows of a sheet by their ids: a counting sort, which keeps the order of rows with the same id. */
static rws_status group(rws_table *t, rws_split split, rws_error *err)
{
    const rws_sheet *s = &t->sheet[split];
    if (s->n_ids == 0) return RWS_OK;
    int *start = t->start[split] = calloc((size_t)s->n_ids + 1, sizeof *start);
    if (!start) return rws_no_memory(err, "the ids of a table");
    for (int row = 0; row < s->n_rows; row++) start[s->ids[row]]++;
    for (int i = 0; i < s->n_ids; i++)
        if (start[i] > RWS_MAX_WHOLE)
            return rws__refuse(err, t->path[split], 0,
                               "has %d rows of one id; a datum has at most %d, since a float holds their number.",
                               start[i], RWS_MAX_WHOLE);
    int *rows = t->rows[split] = malloc((size_t)s->n_rows * sizeof *rows);
    if (!rows) return rws_no_memory(err, "the ids of a table");
    for (int i = 0, at = 0; i <= s->n_ids; i++) at += start[i], start[i] = at; /* the end of each id */
    for (int row = s->n_rows; row-- > 0;) rows[--start[s->ids[row]]] = row;
    return RWS_OK;
}

static int n_data(const rws_table *t, rws_split split)
{
    return t->rows[split] ? t->sheet[split].n_ids : t->sheet[split].n_rows;
}

/* The rows of a datum of a sheet; *n says how many there are. NULL: the datum is the row of its number. */
static const int *rows_of(const rws_table *t, rws_split sheet, int datum, int *n)
{
    const int *start = t->start[sheet];
    *n = start ? start[datum + 1] - start[datum] : 1;
    return start ? t->rows[sheet] + start[datum] : NULL;
}

/* The number of test data among the first n. The small number is for shares that a double holds a little too small. */
static int n_held_out(int n, double share)
{
    return (int)floor(n * share + 1e-9);
}

static rws_status hold_out(rws_table *t, const rws_table_options *o, rws_error *err)
{
    const double share = o->test_share == 0 ? 0.1 : o->test_share;
    if (!(share > 0 && share <= 1))
        return rws_fail(err, RWS_BAD_INPUT, "The share of test rows must be between 0 and 1, not %g.", share);
    const int n = n_data(t, RWS_TRAIN), n_test = n_held_out(n, share);
    t->n[RWS_TRAIN] = t->n[RWS_TEST] = n;
    if (n_test == 0 || n_test == n) return RWS_OK;
    t->n[RWS_TRAIN] = n - n_test;
    t->n[RWS_TEST] = n_test;
    for (int split = 0; split < 2; split++) {
        t->list[split] = malloc((size_t)t->n[split] * sizeof *t->list[split]);
        if (!t->list[split]) return rws_no_memory(err, "the rows of a table");
    }
    int put[2] = {0, 0};
    for (int i = 0; i < n; i++) {
        const bool test =
            o->test_last ? i >= n - n_test : n_held_out(i + 1, share) > put[RWS_TEST] && put[RWS_TEST] < n_test;
        const rws_split split = test ? RWS_TEST : RWS_TRAIN;
        t->list[split][put[split]++] = i;
    }
    RWS_CHECK(put[RWS_TEST] == n_test);
    return RWS_OK;
}

static rws_status compare(const rws_table *t, rws_error *err)
{
    const rws_sheet *a = &t->sheet[RWS_TRAIN], *b = &t->sheet[RWS_TEST];
    const rws_quoted train = rws__quote_short(t->path[RWS_TRAIN]), test = rws__quote_short(t->path[RWS_TEST]);
    if (a->n_columns != b->n_columns)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has %d columns and \"%s\" has %d; they must have the same number.",
                        train.text, a->n_columns, test.text, b->n_columns);
    for (int i = 0; a->names && b->names && i < a->n_columns; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return rws_fail(err, RWS_BAD_INPUT, "Column %d is \"%s\" in \"%s\" and \"%s\" in \"%s\".", i + 1,
                            rws__quote_short(a->names[i]).text, train.text, rws__quote_short(b->names[i]).text,
                            test.text);
    return RWS_OK;
}

static rws_status fill_in(rws_table *t, const char *const path[2], const rws_table_options *o, rws_error *err)
{
    for (int split = 0; split < 2; split++)
        if (path[split] && !(t->path[split] = strdup(path[split]))) return rws_no_memory(err, "the path of a table");
    for (int split = 0; split < 2; split++) RWS_TRY(group(t, (rws_split)split, err));
    if (!path[RWS_TEST]) return hold_out(t, o, err);
    for (int split = 0; split < 2; split++) t->n[split] = n_data(t, (rws_split)split);
    return compare(t, err);
}

rws_status rws__table_new(rws_sheet sheet[2], const char *const path[2], const rws_table_options *options,
                          uint64_t seed, rws_table **out, rws_error *err)
{
    rws_table *t = *out = calloc(1, sizeof *t);
    if (!t) {
        for (int split = 0; split < 2; split++) rws__sheet_release(&sheet[split]);
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
        rws__table_free(t);
        *out = NULL;
    }
    return status;
}

/* The sheet that the data of a split come from. */
static rws_split sheet_of(const rws_table *t, rws_split split)
{
    return t->path[RWS_TEST] ? split : RWS_TRAIN;
}

/* ---- which columns */

/* A column, or two with a colon between them. */
static rws_column_finding find_range(const rws_sheet *s, const char *text, size_t length, int *first, int *last)
{
    const rws_column_finding one = rws__sheet_find_column(s, text, length, first);
    *last = *first;
    if (one != RWS_COLUMN_UNKNOWN) return one;
    for (size_t k = 0; k < length; k++)
        if (text[k] == ':' && rws__sheet_find_column(s, text, k, first) == RWS_COLUMN_FOUND &&
            rws__sheet_find_column(s, text + k + 1, length - k - 1, last) == RWS_COLUMN_FOUND && *first <= *last)
            return RWS_COLUMN_FOUND;
    return RWS_COLUMN_UNKNOWN;
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
        const rws_sheet         *s = &t->sheet[RWS_TRAIN];
        int                      first = 0, last = 0;
        const rws_column_finding found = find_range(s, at, (size_t)(end - at), &first, &last);
        if (found != RWS_COLUMN_FOUND)
            return rws__sheet_refuse_column(s, t->path[RWS_TRAIN], found, at, (size_t)(end - at), err);
        if (__builtin_add_overflow(*n, last - first + 1, n))
            return rws_fail(err, RWS_BAD_INPUT, "The list of columns \"%s\" is too long.",
                            rws__quote_short(columns).text);
        for (int i = first; to && i <= last; i++) *to++ = i;
        at = stop + 1;
    }
    return RWS_OK;
}

/* The columns of a field, which must be finite numbers; numbers of a label may be missing and are NaN then. *list is
 * the caller's to free; it is NULL on failure. */
static rws_status find_columns(const rws_table *t, const char *columns, bool label, int **list, int *n, rws_error *err)
{
    RWS_CHECK(t->n_fields < RWS_FIELDS && t->sheet[RWS_TRAIN].n_columns > 0);
    *list = NULL;
    *n = t->sheet[RWS_TRAIN].n_columns;
    if (columns) RWS_TRY(resolve(t, columns, NULL, n, err));
    int *to = malloc((size_t)*n * sizeof *to);
    if (!to) return rws_no_memory(err, "the columns of a field");
    rws_status status = RWS_OK;
    if (columns) status = resolve(t, columns, to, n, err);
    else
        for (int i = 0; i < *n; i++) to[i] = i;
    for (int split = 0; split < 2; split++)
        for (int i = 0; i < *n && t->path[split] && status == RWS_OK; i++)
            status = (label ? rws__sheet_check_label : rws__sheet_check_column)(&t->sheet[split], to[i], t->path[split],
                                                                                err);
    if (status == RWS_OK) *list = to;
    else free(to);
    return status;
}

/* A field of a datum with several rows must be the same in all of them. */
static rws_status check_same(const rws_table *t, rws_split sheet, const int *columns, int n, rws_error *err)
{
    const rws_sheet *s = &t->sheet[sheet];
    for (int d = 0; t->rows[sheet] && d < s->n_ids; d++) {
        int          n_rows;
        const int   *rows = rows_of(t, sheet, d, &n_rows);
        const float *first = s->values + (size_t)rows[0] * (size_t)s->n_columns;
        for (int i = 1; i < n_rows; i++)
            for (int k = 0; k < n; k++) {
                const float *row = s->values + (size_t)rows[i] * (size_t)s->n_columns;
                if (row[columns[k]] == first[columns[k]] || (isnan(row[columns[k]]) && isnan(first[columns[k]])))
                    continue;
                char wrong[160];
                snprintf(wrong, sizeof wrong,
                         "it is %.9g, but %.9g in %s %d, which has the same id; a field has one value for each id, and "
                         "a series has many.",
                         (double)row[columns[k]], (double)first[columns[k]], s->array ? "row" : "line",
                         s->lines[rows[0]]);
                return rws__sheet_refuse_cell(s, s->lines[rows[i]], columns[k], t->path[sheet], wrong, err);
            }
    }
    return RWS_OK;
}

/* The number of datum d of a sheet in its file. */
static int number_of(const rws_table *t, rws_split sheet, int d)
{
    const rws_sheet *s = &t->sheet[sheet];
    int              n;
    const int       *rows = rows_of(t, sheet, d, &n);
    return s->numbers ? s->numbers[rows ? rows[0] : d] : d;
}

/* The numbers of data as floats: the largest one must not be the number of another datum too. */
static rws_status check_numbers(const rws_table *t, rws_split sheet, rws_error *err)
{
    int most = 0;
    for (int d = 0; d < n_data(t, sheet); d++) most = number_of(t, sheet, d) > most ? number_of(t, sheet, d) : most;
    if (most < RWS_MAX_WHOLE) return RWS_OK;
    return rws__refuse(err, t->path[sheet], 0,
                       "has a datum of number %d, and \"#\" numbers data from 0 to %d, since a float holds the number.",
                       most, RWS_MAX_WHOLE - 1);
}

rws_status rws__table_add_field(rws_table *t, int at, const char *columns, bool label, int *dim, rws_error *err)
{
    int *list, n;
    if (columns && strcmp(columns, "#") == 0) {
        RWS_CHECK(t->n_fields < RWS_FIELDS);
        for (int split = 0; split < 2; split++) RWS_TRY(check_numbers(t, (rws_split)split, err));
        t->fields[t->n_fields++] = (rws_table_field){.at = at, .dim = 1};
        *dim = 1;
        return RWS_OK;
    }
    RWS_TRY(find_columns(t, columns, label, &list, &n, err));
    for (int split = 0; split < 2; split++) {
        const rws_status status = check_same(t, (rws_split)split, list, n, err);
        if (status == RWS_OK) continue;
        free(list);
        return status;
    }
    t->fields[t->n_fields++] = (rws_table_field){at, n, list, 0};
    *dim = n;
    return RWS_OK;
}

static rws_status check_lengths(const rws_table *t, rws_split sheet, int most, rws_error *err)
{
    for (int d = 0; t->rows[sheet] && d < t->sheet[sheet].n_ids; d++) {
        int        n;
        const int *rows = rows_of(t, sheet, d, &n);
        if (rows && n > most)
            return rws__refuse(err, t->path[sheet], 0,
                               "has %d rows of the id that begins in %s %d, and a series of the model has at most %d "
                               "items.",
                               n, t->sheet[sheet].array ? "row" : "line", t->sheet[sheet].lines[rows[0]], most);
    }
    return RWS_OK;
}

rws_status rws__table_add_series(rws_table *t, int at, const char *columns, int *most, int *dim, rws_error *err)
{
    int *list, n;
    if (!t->rows[RWS_TRAIN])
        return rws_fail(err, RWS_BAD_INPUT,
                        "A series is made of a table without ids; the option id of the table names their column.");
    if (*most == 0) *most = rws_table_longest(t);
    for (int split = 0; split < 2; split++) RWS_TRY(check_lengths(t, (rws_split)split, *most, err));
    RWS_TRY(find_columns(t, columns, false, &list, &n, err));
    t->fields[t->n_fields++] = (rws_table_field){at, n, list, *most};
    *dim = n;
    return RWS_OK;
}

void rws__table_add_length(rws_table *t, int at)
{
    RWS_CHECK(t->n_fields < RWS_FIELDS);
    t->fields[t->n_fields++] = (rws_table_field){.at = at};
}

/* ---- numbers */

static uint32_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9); /* the finaliser of splitmix64 */
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x >> 32 ^ x);
}

/* A Feistel network permutes the numbers of 2 * half bits; it is applied until the number is below n. From 64 rows on
 * there are at most 4 n such numbers, so that this takes at most four turns on average. Fewer than 256 numbers would
 * leave the network too few permutations to choose from. */
uint32_t rws__table_shuffle(uint64_t seed, uint64_t epoch, uint32_t n, uint32_t place)
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

/* The place in the list of data of the datum that is number `i` of all data. */
static uint32_t choose(const rws_table *t, rws_split split, uint64_t i, rws_random *random)
{
    const uint32_t n = (uint32_t)t->n[split];
    if (split == RWS_TRAIN && t->order == RWS_ROWS_DRAWN) return rws_random_below(random, n);
    if (split == RWS_TRAIN && t->order == RWS_ROWS_SHUFFLED)
        return rws__table_shuffle(t->seed, i / n, n, (uint32_t)(i % n));
    return (uint32_t)(i % n);
}

/* One field of datum i of a batch, from datum d of a sheet. */
static void fill_field(const rws_table *t, rws_split sheet, int d, const rws_table_field *f, size_t i, float *to)
{
    const rws_sheet *s = &t->sheet[sheet];
    int              n;
    const int       *rows = rows_of(t, sheet, d, &n);
    const int        n_items = f->most ? n : 1;
    if (!f->columns) {
        to[i] = (float)(f->dim ? number_of(t, sheet, d) : n); /* exact: see check_numbers and group */
        return;
    }
    to += i * (f->most ? 1 + (size_t)f->most * (size_t)f->dim : (size_t)f->dim);
    if (f->most) *to++ = (float)n;
    for (int item = 0; item < n_items; item++) {
        const float *row = s->values + (size_t)(rows ? rows[item] : d) * (size_t)s->n_columns;
        for (int k = 0; k < f->dim; k++) *to++ = row[f->columns[k]];
    }
    if (f->most) memset(to, 0, (size_t)(f->most - n) * (size_t)f->dim * sizeof *to);
}

/* The number within its sheet of datum i of a split. */
static int datum_of(const rws_table *t, rws_split split, int i)
{
    return t->list[split] ? t->list[split][i] : i;
}

rws_status rws_table_fill(const rws_table *t, rws_split split, uint64_t first, int n, rws_random *random,
                          float *const *fields, rws_error *err)
{
    if (rws_table_rows(t, split) == 0) return rws_fail(err, RWS_BAD_INPUT, "The table has no rows to learn from.");
    for (int i = 0; i < n; i++) {
        const int d = datum_of(t, split, (int)choose(t, split, first + (uint64_t)i, random));
        for (int f = 0; f < t->n_fields; f++)
            fill_field(t, sheet_of(t, split), d, &t->fields[f], (size_t)i, fields[t->fields[f].at]);
    }
    return RWS_OK;
}

int rws__table_number(const rws_table *t, rws_split split, uint64_t first, int i, rws_random *random, const char **path)
{
    uint32_t place = 0;
    if (rws_table_rows(t, split) == 0) return -1;
    for (int k = 0; k <= i; k++) place = choose(t, split, first + (uint64_t)k, random);
    *path = t->path[sheet_of(t, split)];
    return number_of(t, sheet_of(t, split), datum_of(t, split, (int)place));
}

int rws_table_rows(const rws_table *t, rws_split split)
{
    return t && (split == RWS_TRAIN || split == RWS_TEST) ? t->n[split] : 0;
}

int rws_table_longest(const rws_table *t)
{
    int longest = 0;
    for (int split = 0; t && split < 2; split++)
        for (int d = 0, n; d < n_data(t, (rws_split)split); d++) {
            rows_of(t, (rws_split)split, d, &n);
            longest = n > longest ? n : longest;
        }
    return longest;
}

int rws_table_columns(const rws_table *t)
{
    return t ? t->sheet[RWS_TRAIN].n_columns : 0;
}

const float *rws_table_item(const rws_table *t, rws_split split, int i, int item)
{
    if (i < 0 || i >= rws_table_rows(t, split)) return NULL;
    const rws_split sheet = sheet_of(t, split);
    const int       d = datum_of(t, split, i);
    int             n;
    const int      *rows = rows_of(t, sheet, d, &n);
    if (item < 0 || item >= n) return NULL;
    return t->sheet[sheet].values + (size_t)(rows ? rows[item] : d) * (size_t)t->sheet[sheet].n_columns;
}

const float *rws_table_row(const rws_table *t, rws_split split, int i)
{
    return rws_table_item(t, split, i, 0);
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
