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
    const int64_t     most = rws__store_size(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, only, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        code = rws__list_grow(&out->list, out->n, &out->capacity, sizeof *out->list) ? SQLITE_OK : SQLITE_NOMEM;
        if (!code && out->n > most) code = SQLITE_CORRUPT;
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
    const int64_t     most = rws__store_size(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL), last = -1;
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code) code = sqlite3_bind_int64(s, 2, (sqlite3_int64)from);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        last = find_name(out, name ? name : "", last + 1 < out->n_names ? last + 1 : 0);
        const bool grown = last >= 0 && rws__list_grow(&out->list, out->n, &out->capacity, sizeof *out->list);
        code = !grown ? SQLITE_NOMEM : out->n > most ? SQLITE_CORRUPT : SQLITE_OK;
        if (grown) out->list[out->n++] = (rws_point){last, number_at(s, 1), number_at(s, 2), number_at(s, 3)};
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int rws__shots_count(sqlite3 *db, const char *run, int *n)
{
    sqlite3_stmt *s = NULL;
    int           code = sqlite3_prepare_v2(db, "SELECT count(*) FROM snapshots WHERE run = ?1", -1, &s, NULL);
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    if (!code && (code = sqlite3_step(s)) == SQLITE_ROW) *n = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW ? SQLITE_OK : code;
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

int rws__shots_read(sqlite3 *db, const char *run, rws_shots *out)
{
    static const char sql[] = "SELECT name, iteration, label, value FROM snapshots WHERE run = ?1"
                              " ORDER BY name, iteration, place";
    const int64_t     most = rws__store_size(db);
    sqlite3_stmt     *s = NULL;
    int               code = sqlite3_prepare_v2(db, sql, -1, &s, NULL), n = 0;
    if (!code) code = sqlite3_bind_text(s, 1, run, -1, SQLITE_STATIC);
    while (!code && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const bool  added = add_shown(out, name ? name : "", (uint64_t)sqlite3_column_int64(s, 1),
                                      (const char *)sqlite3_column_text(s, 2), number_at(s, 3));
        code = !added ? SQLITE_NOMEM : ++n > most ? SQLITE_CORRUPT : SQLITE_OK;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
