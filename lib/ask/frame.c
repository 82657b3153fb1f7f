/* frame.c - a table of many answers: columns are made as answers need them.
 *
 *     stem        0   0     0     1    1                 columns with one stem stand side by side, SITE=VALUE by value
 *     column      z  z=0   z=2   mu.mean  mu.sd
 *     row 0       2  0.25  0.75  0.1      0.3
 *     row 1       1  -     -     …                       a cell that was not set is missing
 */
#include "ask/frame.h"

#include "base/error.h"
#include "base/list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char   *name;
    size_t  stem;    /* length of the part of the name that the columns of one choice share */
    double  value;   /* of SITE=VALUE; -INFINITY: another column */
    double *numbers; /* `capacity` of the table; NULL: texts */
    char  **texts;
} column;

struct rws_frame {
    column *columns;
    int     n_columns, column_capacity;
    int     n_rows, capacity;
    int     next; /* the column that probably comes next: rows are alike */
};

/* ---- columns */

rws_status rws_frame_new(rws_frame **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = calloc(1, sizeof **out);
    return *out ? RWS_OK : rws_no_memory(err, "a table");
}

void rws_frame_free(rws_frame *f)
{
    if (!f) return;
    for (int i = 0; i < f->n_columns; i++) {
        column *c = &f->columns[i];
        for (int r = 0; c->texts && r < f->n_rows; r++) free(c->texts[r]);
        free(c->texts);
        free(c->numbers);
        free(c->name);
    }
    free(f->columns);
    free(f);
}

int rws_frame_rows(const rws_frame *f)
{
    return f ? f->n_rows : 0;
}

bool rws_frame_column_at(const rws_frame *f, int i, rws_frame_column *out)
{
    if (!f || !out || i < 0 || i >= f->n_columns) return false;
    const column *c = &f->columns[i];
    *out = (rws_frame_column){c->name, c->numbers, (const char *const *)c->texts};
    return true;
}

static int find(rws_frame *f, const char *name)
{
    for (int k = 0; k < f->n_columns; k++) {
        const int i = (f->next + k) % f->n_columns;
        if (strcmp(f->columns[i].name, name) == 0) return i;
    }
    return -1;
}

/* The part of a name before ".mean", "=3", "[2].mean" and the like. */
static size_t stem_of(const char *name)
{
    const char *at = strpbrk(strncmp(name, "report.", 7) == 0 ? name + 7 : name, ".=[");
    return at ? (size_t)(at - name) : strlen(name);
}

static bool stands_before(const column *x, const column *y)
{
    return x->stem == y->stem && strncmp(x->name, y->name, x->stem) == 0 && x->value <= y->value;
}

/* The place of a new column: behind the columns of its stem with a lower value, else behind all. */
static int place_of(const rws_frame *f, const column *c)
{
    for (int i = f->n_columns; i > 0; i--)
        if (stands_before(&f->columns[i - 1], c)) return i;
    return f->n_columns;
}

/* A new column without cells; its number, or -1 without memory. */
static int add_column(rws_frame *f, const char *name, bool text)
{
    const char  *equal = strrchr(name, '=');
    column       c = {.name = strdup(name), .stem = stem_of(name), .value = equal ? atof(equal + 1) : -INFINITY};
    const size_t n = (size_t)f->capacity;
    if (text) c.texts = calloc(n, sizeof *c.texts);
    else c.numbers = malloc(n * sizeof *c.numbers);
    if (!c.name || (!c.texts && !c.numbers) ||
        !rws__list_grow(&f->columns, f->n_columns, &f->column_capacity, sizeof *f->columns)) {
        free(c.name);
        free(c.texts);
        free(c.numbers);
        return -1;
    }
    for (int r = 0; r < f->capacity && c.numbers; r++) c.numbers[r] = NAN;
    const int at = place_of(f, &c);
    memmove(f->columns + at + 1, f->columns + at, (size_t)(f->n_columns - at) * sizeof c);
    f->columns[at] = c;
    f->n_columns++;
    return at;
}

/* The column with this name and kind of cells, with a row that is begun; NULL without memory. */
static column *column_for(rws_frame *f, const char *name, bool text)
{
    int i = find(f, name);
    if (i < 0) i = add_column(f, name, text);
    if (i < 0 || !f->n_rows || !f->columns[i].texts == text) return NULL;
    f->next = (i + 1) % f->n_columns;
    return &f->columns[i];
}

/* ---- cells */

static bool grow(column *c, int from, int to)
{
    if (c->texts) {
        char **longer = realloc(c->texts, (size_t)to * sizeof *longer);
        if (!longer) return false;
        memset(longer + from, 0, (size_t)(to - from) * sizeof *longer);
        c->texts = longer;
        return true;
    }
    double *longer = realloc(c->numbers, (size_t)to * sizeof *longer);
    for (int i = from; i < to && longer; i++) longer[i] = NAN;
    if (longer) c->numbers = longer;
    return longer != NULL;
}

bool rws__frame_begin(rws_frame *f)
{
    if (f->n_rows == f->capacity) {
        const int capacity = 2 * f->capacity + 64;
        for (int i = 0; i < f->n_columns; i++)
            if (!grow(&f->columns[i], f->capacity, capacity)) return false;
        f->capacity = capacity;
    }
    f->n_rows++;
    f->next = 0;
    return true;
}

bool rws__frame_number(rws_frame *f, const char *name, double value)
{
    column *c = column_for(f, name, false);
    if (c) c->numbers[f->n_rows - 1] = value;
    return c != NULL;
}

bool rws__frame_text(rws_frame *f, const char *name, const char *value)
{
    column *c = column_for(f, name, true);
    char   *copy = c ? strdup(value) : NULL;
    if (!copy) return false;
    free(c->texts[f->n_rows - 1]);
    c->texts[f->n_rows - 1] = copy;
    return true;
}

/* ---- answers */

enum { NAME = 320 };

/* The name of a choice or a report, followed by `what`. */
static bool set(rws_frame *f, const rws_marginal *m, int component, const char *what, double value)
{
    char visit[16] = "", part[16] = "", name[NAME];
    if (m->visit) snprintf(visit, sizeof visit, ":%d", m->visit);
    if (component >= 0) snprintf(part, sizeof part, "[%d]", component);
    snprintf(name, sizeof name, "%s%.200s%s%s%s", m->report ? "report." : "", m->name, visit, part, what);
    return rws__frame_number(f, name, value);
}

static bool set_values(rws_frame *f, const rws_marginal *m)
{
    int  best = 0;
    char what[40];
    for (int i = 1; i < m->n_values; i++)
        if (m->values[i].posterior > m->values[best].posterior) best = i;
    bool good = set(f, m, -1, "", m->posterior > 0 ? m->values[best].value : NAN) &&
                set(f, m, -1, ".probability", m->values[best].posterior);
    for (int i = 0; i < m->n_values && good; i++) {
        snprintf(what, sizeof what, "=%.9g", m->values[i].value);
        good = set(f, m, -1, what, m->values[i].posterior);
    }
    return good;
}

static bool set_moments(rws_frame *f, const rws_marginal *m)
{
    bool good = true;
    for (int d = 0; d < m->dim && good; d++) {
        const int part = m->dim == 1 ? -1 : d;
        good = set(f, m, part, ".mean", m->mean[d]) && set(f, m, part, ".mean_error", m->mean_error[d]) &&
               set(f, m, part, ".sd", m->sd[d]);
    }
    return good;
}

static bool set_marginals(rws_frame *f, const rws_answers *a, int most_dim)
{
    rws_marginals *all;
    if (rws_marginals_new(a, most_dim, &all, NULL) != RWS_OK) return false;
    bool good = true;
    for (int i = 0; i < all->n && good; i++) {
        const rws_marginal *m = &all->list[i];
        good = (m->values ? set_values(f, m) : set_moments(f, m)) && set(f, m, -1, ".visited", m->posterior);
    }
    rws_marginals_free(all);
    return good;
}

/* The texts that the most probable answer reports. */
static bool set_answer(rws_frame *f, const rws_answer *a)
{
    char name[NAME];
    bool good = true;
    for (int i = 0; i < a->n_reports && good; i++) {
        const rws_reported *r = &a->reports[i];
        if (!r->text) continue;
        good = rws__frame_text(f, r->name, r->text);
        snprintf(name, sizeof name, "%.200s.posterior", r->name);
        good = good && rws__frame_number(f, name, a->posterior);
        snprintf(name, sizeof name, "%.200s.error", r->name);
        good = good && rws__frame_number(f, name, a->error);
        snprintf(name, sizeof name, "%.200s.exact", r->name);
        good = good && (isnan(a->exact) || rws__frame_number(f, name, a->exact));
    }
    return good;
}

static bool set_evidence(rws_frame *f, const rws_answers *a)
{
    const rws_answer_member *m;
    bool                     good = true;
    for (int i = 0; good && (m = rws_answer_member_at(RWS_OF_ANSWERS, i)); i++) {
        const char  *text = rws_answer_member_text(m, a);
        const double number = text ? 0 : rws_answer_member_number(m, a);
        if (!m->column || (m->when == RWS_MEMBER_KNOWN && isnan(number))) continue;
        good = text ? rws__frame_text(f, m->name, text) : rws__frame_number(f, m->name, number);
    }
    return good;
}

rws_status rws_frame_add(rws_frame *f, const rws_answers *a, const char *message, int most_dim, rws_error *err)
{
    RWS_NEED(f, err);
    bool good = rws__frame_begin(f);
    if (!a) good = good && rws__frame_text(f, "error", message ? message : "");
    else
        good = good && set_evidence(f, a) && (!a->n || set_answer(f, &a->list[0])) &&
               (!a->n_weighted || set_marginals(f, a, most_dim));
    return good ? RWS_OK : rws_no_memory(err, "a table of answers");
}
