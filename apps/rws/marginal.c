#include "rws/marginal.h"

#include "base/error.h"
#include "figure/bars.h"
#include "rws/output.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_site(const rws_marginal *a, const rws_marginal *b)
{
    return a->visit == b->visit && strcmp(a->name, b->name) == 0;
}

static void print_values(const rws_marginal *m)
{
    for (int i = 0; i < m->n_values; i++)
        if (m->values[i].posterior >= 0.0005) printf("   %.9g: %.3f", m->values[i].value, m->values[i].posterior);
}

static void print_moments(const rws_marginal *m)
{
    char one[32], two[32];
    for (int d = 0; d < m->dim; d++)
        printf("   mean %s, sd %s", rws__output_number(m->mean[d], one), rws__output_number(m->sd[d], two));
}

/* The sizes of a site at one visit, each in a line. */
static void print_site(const rws_marginal *list, int n)
{
    double visited = 0;
    for (int i = 0; i < n; i++) visited += list[i].posterior;
    for (int i = 0; i < n; i++) {
        if (!(list[i].posterior > 0)) continue;
        printf("  %s", list[i].name);
        if (list[i].visit) printf(":%d", list[i].visit); /* as --given takes it */
        if (n > 1) printf("   of size %d: %.3f", list[i].dim, list[i].posterior);
        if (list[i].values) print_values(&list[i]);
        else print_moments(&list[i]);
        if (visited < 0.9995) printf("   not visited: %.3f", 1 - visited);
        putchar('\n');
    }
}

void rws__marginals_print(const rws_answers *a)
{
    rws_marginals *m;
    rws_error      err;
    bool           any = false;
    int            from = 0;
    rws__need_memory(rws_marginals_new(a, INT_MAX, &m, &err) == RWS_OK, "the choices of particles");
    while (from < m->n && m->list[from].report) from++; /* answers have shown them */
    for (int i = from; i < m->n; i++) any = any || m->list[i].posterior > 0;
    if (any) putchar('\n');
    else if (from < m->n) puts("  No particle is possible, so that no choice has a posterior.");
    for (int i = from, next; i < m->n; i = next) {
        for (next = i; next < m->n && is_same_site(&m->list[i], &m->list[next]);) next++;
        print_site(m->list + i, next - i);
    }
    rws_marginals_free(m);
}

/* ---- as bars */

enum { MOST_BARS = 40 };

typedef struct {
    char        names[MOST_BARS][80];
    const char *groups[MOST_BARS];
    double      posterior[MOST_BARS], guide[MOST_BARS];
    int         n;
} bars;

static void add_bars(bars *b, const rws_marginal *m)
{
    for (int i = 0; i < m->n_values && b->n < MOST_BARS; i++) {
        const rws_marginal_value *v = &m->values[i];
        if (!(v->posterior >= 0.0005) && !(v->guide >= 0.0005)) continue;
        if (m->visit) snprintf(b->names[b->n], sizeof b->names[0], "%s:%d = %.9g", m->name, m->visit, v->value);
        else snprintf(b->names[b->n], sizeof b->names[0], "%s = %.9g", m->name, v->value);
        b->groups[b->n] = b->names[b->n];
        b->posterior[b->n] = v->posterior;
        b->guide[b->n++] = v->guide;
    }
}

bool rws__marginals_draw(const rws_answers *a, const char *method, const char *title, const char *path,
                         rws_status *status, rws_error *err)
{
    rws_marginals *m;
    bars          *b = calloc(1, sizeof *b);
    rws__need_memory(b && rws_marginals_new(a, INT_MAX, &m, err) == RWS_OK, "the choices of particles");
    for (int i = 0; i < m->n; i++) add_bars(b, &m->list[i]);
    const rws_bar_series series[] = {{.method = method, .label = "posterior", .values = b->posterior},
                                     {.label = "guide", .values = b->guide}};
    const rws_bars       drawn = {.title = title,
                                  .n_groups = b->n,
                                  .n_series = 2,
                                  .groups = b->groups,
                                  .series = series,
                                  .y = {.label = "probability"},
                                  .numbers = b->n <= 8};
    const bool           any = b->n > 0;
    if (any) *status = rws__bars_draw(&drawn, path, err);
    rws_marginals_free(m);
    free(b);
    return any;
}
