#include "results/reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs */

void rws__head_release(rws_head *h)
{
    char *const texts[] = {h->name, h->config, h->host, h->version, h->started, h->failure};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
}

/* How many more rows, and bytes of text, a store may have. */
typedef struct {
    int64_t rows, bytes;
} budget;

static budget budget_of(sqlite3 *db)
{
    const int64_t size = rws__store_size(db);
    return (budget){size, size};
}

/* Takes a row, with the texts of the columns from `first` to before `end`, from the budget. Returns SQLITE_CORRUPT if it is used up: rows
 * share pages, and would fill the memory. */
static int spend(budget *left, sqlite3_stmt *s, int first, int end)
{
    left->rows--;
    for (int i = first; i < end; i++)
        if (sqlite3_column_type(s, i) == SQLITE_TEXT) left->bytes -= sqlite3_column_bytes(s, i);
    return left->rows < 0 || left->bytes < 0 ? SQLITE_CORRUPT : SQLITE_OK;
}

/* Copies a text or NULL; false without memory. */
static bool copy_text(sqlite3_stmt *s, int column, char **out)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

int rws__heads_read(sqlite3 *db, const char *only, rws_heads *out)
{
    static const char sql[] = "SELECT run, config, host, version, started, sentence, iteration, seconds, early"
                              " FROM " RWS_STORE_ALL_RUNS " WHERE ?1 IS NULL OR run = ?1";
    budget            left = budget_of(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, only, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        code = spend(&left, s, 0, 6);
        if (!code && !rws__list_grow(&out->list, out->n, &out->capacity, sizeof *out->list)) code = SQLITE_NOMEM;
        if (code) break;
        rws_head *h = &out->list[out->n++];
        *h = (rws_head){.iteration = (uint64_t)sqlite3_column_int64(s, 6),
                        .seconds = sqlite3_column_double(s, 7),
                        .early = sqlite3_column_int(s, 8)};
        char **const texts[] = {&h->name, &h->config, &h->host, &h->version, &h->started, &h->failure};
        for (int i = 0; i < 6; i++)
            if (!copy_text(s, i, texts[i])) code = SQLITE_NOMEM;
        if (!h->name) h->name = strdup("");
        if (!h->name) code = SQLITE_NOMEM;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static double number_at(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? NAN : sqlite3_column_double(s, column);
}

void rws__points_release(rws_points *p)
{
    for (int i = 0; i < p->n_names; i++) free(p->names[i]);
    free(p->names);
    free(p->list);
    *p = (rws_points){0};
}

/* The number of a name, which is made if it is new; -1 without memory. Evaluations have the same names in the same order,
 * so that `guess`, the one after the last, is mostly right. */
static int find_name(rws_points *p, const char *name, int guess)
{
    if (guess < p->n_names && strcmp(p->names[guess], name) == 0) return guess;
    for (int i = 0; i < p->n_names; i++)
        if (strcmp(p->names[i], name) == 0) return i;
    if (!rws__list_grow(&p->names, p->n_names, &p->capacity_names, sizeof *p->names)) return -1;
    char *copy = strdup(name);
    if (copy) p->names[p->n_names++] = copy;
    return copy ? p->n_names - 1 : -1;
}

/* In the order of the primary key, so that SQLite need not sort. */
int rws__points_read(sqlite3 *db, const char *run, double from, rws_points *out)
{
    static const char sql[] = "SELECT name, iteration, seconds, value FROM metrics WHERE run = ?1 AND iteration >= ?2"
                              " ORDER BY run, iteration, name";
    budget            left = budget_of(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL), last = -1;
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code) code = sqlite3_bind_int64(s, 2, (sqlite3_int64)from);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        last = find_name(out, name ? name : "", last + 1 < out->n_names ? last + 1 : 0);
        const bool grown = last >= 0 && rws__list_grow(&out->list, out->n, &out->capacity, sizeof *out->list);
        code = grown ? spend(&left, s, 0, 1) : SQLITE_NOMEM;
        if (grown) out->list[out->n++] = (rws_point){last, number_at(s, 1), number_at(s, 2), number_at(s, 3)};
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int rws__shots_count(sqlite3 *db, const char *run, int *n)
{
    static const char sql[] = "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE run = ?1 LIMIT ?2)";
    const int64_t     most = rws__store_size(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code) code = sqlite3_bind_int64(s, 2, most);
    if (!code && (code = sqlite3_step(s)) == SQLITE_ROW) *n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return code != SQLITE_ROW ? code : *n < most ? SQLITE_OK : SQLITE_CORRUPT;
}

void rws__shots_release(rws_shots *s)
{
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->list[i].n; k++) free((char *)s->list[i].labels[k]);
        free((void *)s->list[i].labels);
        free((void *)s->list[i].values);
        free((char *)s->list[i].name);
    }
    free(s->list);
    *s = (rws_shots){0};
}

static bool add_shown(rws_shots *out, const char *name, uint64_t iteration, const char *label, double value)
{
    rws_shot *now = out->n ? &out->list[out->n - 1] : NULL;
    if (!now || now->iteration != iteration || strcmp(now->name, name) != 0) {
        if (!rws__list_grow(&out->list, out->n, &out->capacity, sizeof *out->list)) return false;
        now = &out->list[out->n];
        *now = (rws_shot){.name = strdup(name), .iteration = iteration};
        if (!now->name) return false;
        out->n++;
        out->capacity_now = 0;
    }
    int capacity = out->capacity_now;
    if (!rws__list_grow(&now->values, now->n, &capacity, sizeof *now->values)) return false;
    if (!rws__list_grow(&now->labels, now->n, &out->capacity_now, sizeof *now->labels)) return false;
    char *copy = label ? strdup(label) : NULL;
    ((double *)now->values)[now->n] = value;
    ((const char **)now->labels)[now->n++] = copy;
    return !label || copy;
}

static int by_name_and_iteration(const void *a, const void *b)
{
    const rws_shot *x = a, *y = b;
    const int       order = strcmp(x->name, y->name);
    return order ? order : (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

/* In the order of the primary key: SQLite would sort all rows with their texts, before it gave one of them. */
int rws__shots_read(sqlite3 *db, const char *run, rws_shots *out)
{
    static const char sql[] = "SELECT name, iteration, label, value FROM snapshots WHERE run = ?1"
                              " ORDER BY run, iteration, name, place";
    budget            left = budget_of(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const bool  added = add_shown(out, name ? name : "", (uint64_t)sqlite3_column_int64(s, 1),
                                      (const char *)sqlite3_column_text(s, 2), number_at(s, 3));
        code = added ? spend(&left, s, 0, 3) : SQLITE_NOMEM;
    }
    sqlite3_finalize(s);
    if (out->n) qsort(out->list, (size_t)out->n, sizeof *out->list, by_name_and_iteration);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
