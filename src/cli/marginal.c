#include "cli/marginal.h"

#include "base/error.h"
#include "cli/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const rws_choice *choice;
    double            weight;
} weighed;

/* By site and visit, then by the first number. */
static int compare(const void *x, const void *y)
{
    const rws_choice *a = ((const weighed *)x)->choice, *b = ((const weighed *)y)->choice;
    const int         site = strcmp(a->site, b->site);
    if (site) return site;
    if (a->visit != b->visit) return a->visit < b->visit ? -1 : 1;
    return (a->value[0] > b->value[0]) - (a->value[0] < b->value[0]);
}

/* All choices of all particles that are possible, sorted; the caller frees the list. */
static weighed *sort_choices(const rws_answers *a, size_t *n)
{
    size_t most = 0;
    for (int i = 0; i < a->n_weighted; i++) most += (size_t)a->particles[i].n_choices;
    weighed *list = calloc(most + 1, sizeof *list);
    rws_need_memory(list != NULL, "the choices of particles");
    *n = 0;
    for (int i = 0; i < a->n_weighted; i++)
        for (int k = 0; k < a->particles[i].n_choices && a->particles[i].weight > 0; k++)
            list[(*n)++] = (weighed){&a->particles[i].choices[k], a->particles[i].weight};
    qsort(list, *n, sizeof *list, compare);
    return list;
}

/* The number of entries, from the first one, of the same site and visit. */
static size_t n_alike(const weighed *list, size_t n)
{
    size_t k = 1;
    while (k < n && list[k].choice->visit == list[0].choice->visit &&
           !strcmp(list[k].choice->site, list[0].choice->site))
        k++;
    return k;
}

static bool is_whole(const weighed *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].choice->dim != 1 || list[i].choice->value[0] != rintf(list[i].choice->value[0])) return false;
    return true;
}

/* The numbers that every value has: the size of a site may depend on the path. */
static int shortest(const weighed *list, size_t n)
{
    int dim = list[0].choice->dim;
    for (size_t i = 1; i < n; i++) dim = list[i].choice->dim < dim ? list[i].choice->dim : dim;
    return dim;
}

static double sum(const weighed *list, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) total += list[i].weight;
    return total;
}

/* The weight of the first value, and the number of entries that have it. */
static double same_value(const weighed *list, size_t n, size_t *count)
{
    *count = 1;
    while (*count < n && list[*count].choice->value[0] == list[0].choice->value[0]) ++*count;
    return sum(list, *count);
}

/* Mean and standard deviation of component j among the particles that visit the site. */
static void moments(const weighed *list, size_t n, int j, double *mean, double *sd)
{
    const double total = sum(list, n);
    double       var = 0;
    *mean = 0;
    for (size_t i = 0; i < n; i++) *mean += list[i].weight / total * (double)list[i].choice->value[j];
    for (size_t i = 0; i < n; i++) var += list[i].weight / total * pow((double)list[i].choice->value[j] - *mean, 2);
    *sd = sqrt(var);
}

static void print_values(const weighed *list, size_t n)
{
    size_t k;
    for (size_t i = 0; i < n; i += k) {
        const double p = same_value(list + i, n - i, &k);
        if (p >= 0.0005) printf("   %g: %.3f", (double)list[i].choice->value[0], p);
    }
}

static void print_moments(const weighed *list, size_t n)
{
    double mean, sd;
    char   one[32], two[32];
    for (int j = 0; j < shortest(list, n); j++) {
        moments(list, n, j, &mean, &sd);
        printf("   mean %s, sd %s", rws_report_number(mean, one), rws_report_number(sd, two));
    }
}

void rws_marginals_print(const rws_answers *a)
{
    size_t   n, k;
    weighed *list = sort_choices(a, &n);
    if (n) putchar('\n');
    for (size_t i = 0; i < n; i += k) {
        const rws_choice *c = list[i].choice;
        k = n_alike(list + i, n - i);
        const double visited = sum(list + i, k);
        printf("  %s", c->site);
        if (c->visit) printf(":%d", c->visit); /* as --given takes it */
        if (is_whole(list + i, k)) print_values(list + i, k);
        else print_moments(list + i, k);
        if (visited < 0.9995) printf("   not visited: %.3f", 1 - visited);
        putchar('\n');
    }
    free(list);
}

static void describe_values(const weighed *list, size_t n, json_t *object)
{
    json_t *values = json_array();
    size_t  k;
    for (size_t i = 0; i < n; i += k) {
        const double p = same_value(list + i, n - i, &k);
        json_array_append_new(values, json_pack("{s:o,s:o}", "value", rws_report_real((double)list[i].choice->value[0]),
                                                "posterior", rws_report_real(p)));
    }
    json_object_set_new(object, "values", values);
}

static void describe_moments(const weighed *list, size_t n, json_t *object)
{
    json_t *means = json_array(), *sds = json_array();
    double  mean, sd;
    for (int j = 0; j < shortest(list, n); j++) {
        moments(list, n, j, &mean, &sd);
        json_array_append_new(means, rws_report_real(mean));
        json_array_append_new(sds, rws_report_real(sd));
    }
    json_object_set_new(object, "mean", means);
    json_object_set_new(object, "sd", sds);
}

json_t *rws_marginals_describe(const rws_answers *a)
{
    size_t   n, k;
    weighed *list = sort_choices(a, &n);
    json_t  *array = json_array();
    for (size_t i = 0; i < n; i += k) {
        const rws_choice *c = list[i].choice;
        k = n_alike(list + i, n - i);
        json_t *object = json_pack("{s:s,s:i,s:o}", "site", c->site, "visit", c->visit, "visited",
                                   rws_report_real(sum(list + i, k)));
        if (is_whole(list + i, k)) describe_values(list + i, k, object);
        else describe_moments(list + i, k, object);
        json_array_append_new(array, object);
    }
    free(list);
    return array;
}
