#include "rws/marginal.h"

#include "base/error.h"
#include "rws/report.h"
#include "ask/marginal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static rws_marginals make(const rws_answers *a)
{
    rws_marginals m;
    rws_error     err;
    rws_need_memory(rws_marginals_make(a, false, INT_MAX, &m, &err) == RWS_OK, "the choices of particles");
    return m;
}

/* ---- lines */

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
        printf("   mean %s, sd %s", rws_report_number(m->mean[d], one), rws_report_number(m->sd[d], two));
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

void rws_marginals_print(const rws_answers *a)
{
    rws_marginals m = make(a);
    bool          any = false;
    for (int i = 0; i < m.n; i++) any = any || m.list[i].posterior > 0;
    if (any) putchar('\n');
    else if (m.n) puts("  No particle is possible, so that no choice has a posterior.");
    for (int i = 0, next; i < m.n; i = next) {
        for (next = i; next < m.n && is_same_site(&m.list[i], &m.list[next]);) next++;
        print_site(m.list + i, next - i);
    }
    rws_marginals_release(&m);
}

/* ---- JSON */

static json_t *describe_values(const rws_marginal *m)
{
    json_t *list = json_array();
    for (int i = 0; i < m->n_values; i++)
        json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "value", rws_report_real(m->values[i].value),
                                              "posterior", rws_report_real(m->values[i].posterior), "guide",
                                              rws_report_real(m->values[i].guide)));
    return list;
}

static json_t *describe_numbers(const double *numbers, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, rws_report_real(numbers[i]));
    return list;
}

json_t *rws_marginals_describe(const rws_answers *a)
{
    rws_marginals m = make(a);
    json_t       *array = json_array();
    for (int i = 0; i < m.n; i++) {
        const rws_marginal *at = &m.list[i];
        json_t *object = json_pack("{s:o,s:i,s:o,s:o}", "site", rws_report_string(at->name), "visit", at->visit,
                                   "posterior", rws_report_real(at->posterior), "guide", rws_report_real(at->guide));
        if (at->values) json_object_set_new(object, "values", describe_values(at));
        else {
            json_object_set_new(object, "mean", describe_numbers(at->mean, at->dim));
            json_object_set_new(object, "sd", describe_numbers(at->sd, at->dim));
        }
        json_array_append_new(array, object);
    }
    rws_marginals_release(&m);
    return array;
}
