#include "ask/quantities.h"

#include "ask/ask.h"
#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VISITS = 16, MAX_PARTS = 16 };

void rws__quantities_release(rws_quantities *o)
{
    free(o->list);
    *o = (rws_quantities){0};
}

static void add(rws_quantities *o, rws_quantity x)
{
    o->starved |= !rws__list_grow(&o->list, o->n, &o->capacity, sizeof *o->list);
    if (!o->starved) o->list[o->n++] = x;
}

static void add_values(rws_quantities *o, rws_quantity x, const float *value, int dim)
{
    x.dim = dim;
    for (int d = 0; d < dim && d < MAX_PARTS && x.visit < MAX_VISITS; d++) {
        x.part = d;
        x.value = (double)value[d];
        add(o, x);
    }
}

static bool is_last_visit(const rws_choice *list, int n, int i)
{
    for (int k = i + 1; k < n; k++)
        if (strcmp(list[k].site, list[i].site) == 0) return false;
    return true;
}

void rws__quantities_add(rws_quantities *o, int trace, const rws_choice *choices, int n_choices,
                         const rws_reported *reports, int n_reports)
{
    for (int i = 0; i < n_choices; i++) {
        const rws_choice *c = &choices[i];
        rws_quantity      x = {.name = c->site, .kind = RWS_QUANTITY_SITE, .visit = c->visit, .trace = trace};
        add_values(o, x, c->value, c->dim);
        if (!is_last_visit(choices, n_choices, i)) continue;
        x.kind = RWS_QUANTITY_VISITS;
        x.visit = 0;
        add_values(o, x, (const float[]){(float)(c->visit + 1)}, 1);
    }
    for (int i = 0; i < n_reports; i++) {
        rws_quantity x = {.name = reports[i].name, .kind = RWS_QUANTITY_REPORT, .trace = trace};
        for (int k = 0; k < i; k++) x.visit += strcmp(reports[k].name, x.name) == 0;
        if (reports[i].value && reports[i].dim == 1) add_values(o, x, reports[i].value, 1);
    }
}

static int by_quantity(const rws_quantity *x, const rws_quantity *y)
{
    const int names = x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
    if (names) return names;
    return x->visit != y->visit ? x->visit - y->visit : x->part - y->part;
}

static int by_value(const void *a, const void *b)
{
    const rws_quantity *x = a, *y = b;
    const int           quantities = by_quantity(x, y), values = rws__number_order(x->value, y->value);
    return quantities ? quantities : values ? values : x->trace - y->trace;
}

void rws__quantities_sort(rws_quantities *o)
{
    if (o->list) qsort(o->list, (size_t)o->n, sizeof *o->list, by_value);
}

int rws__quantities_end(const rws_quantities *o, int i)
{
    int end = i + 1;
    while (end < o->n && by_quantity(&o->list[i], &o->list[end]) == 0) end++;
    return end;
}

void rws__quantity_name(const rws_quantity *x, char out[static RWS_QUANTITY_NAME])
{
    char visit[16] = "", part[16] = "";
    if (x->visit) snprintf(visit, sizeof visit, ":%d", x->visit);
    if (x->dim > 1) snprintf(part, sizeof part, "[%d]", x->part);
    snprintf(out, RWS_QUANTITY_NAME, "%s%.200s%s%s%s", x->kind == RWS_QUANTITY_REPORT ? "report." : "", x->name, visit,
             part, x->kind == RWS_QUANTITY_VISITS ? ".visits" : "");
}
