#include "results/growing.h"

#include "results/keys.h"
#include "results/results.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory */

static bool replace(const char **text, const char *by)
{
    free((char *)*text);
    *text = by ? strdup(by) : NULL;
    return !by || *text;
}

static void free_keys(rws_result *r)
{
    for (int i = 0; i < r->n_keys; i++) {
        free((char *)r->keys[i].key);
        free((char *)r->keys[i].value);
    }
    free((void *)r->keys);
    r->keys = NULL;
    r->n_keys = 0;
}

void rws__growing_free_series(rws_growing *g)
{
    for (int i = 0; i < g->n_series; i++) {
        free(g->series[i].name);
        free(g->series[i].iterations);
        free(g->series[i].seconds);
        free(g->series[i].values);
    }
    free(g->series);
    free(g->histories);
    g->series = NULL;
    g->histories = NULL;
    g->n_series = 0;
    if (g->result) g->result->n_histories = 0;
}

void rws__growing_release(rws_growing *g)
{
    rws__growing_free_series(g);
    rws__shots_release(&g->shots);
    free((char *)g->config);
    if (!g->result) return;
    const char *const texts[] = {g->result->host, g->result->version, g->result->started, g->result->failure};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free((char *)texts[i]);
    free_keys(g->result);
}

/* ---- curves */

/* The place of the metric among the entry's, which is made if it is new. NULL without memory. `guess` is where it was for
 * the last evaluation. */
static rws_series *find_series(rws_growing *g, const char *name, int guess)
{
    if (guess < g->n_series && strcmp(g->series[guess].name, name) == 0) return &g->series[guess];
    int at = 0;
    while (at < g->n_series && strcmp(g->series[at].name, name) < 0) at++;
    if (at < g->n_series && strcmp(g->series[at].name, name) == 0) return &g->series[at];
    rws_series *longer = realloc(g->series, ((size_t)g->n_series + 1) * sizeof *longer);
    if (longer) g->series = longer;
    rws_history *seen = longer ? realloc(g->histories, ((size_t)g->n_series + 1) * sizeof *seen) : NULL;
    char        *copy = seen ? strdup(name) : NULL;
    if (seen) g->histories = seen;
    if (!copy) return NULL;
    memmove(longer + at + 1, longer + at, (size_t)(g->n_series - at) * sizeof *longer);
    longer[at] = (rws_series){.name = copy};
    g->n_series++;
    return &longer[at];
}

static bool add_point(rws_series *s, const rws_point *r)
{
    while (s->n && s->iterations[s->n - 1] >= r->iteration) s->n--; /* measured again */
    if (s->n == s->capacity) {
        const int capacity = 2 * s->capacity + 32;
        double  **arrays[] = {&s->iterations, &s->seconds, &s->values};
        for (int i = 0; i < 3; i++) {
            double *longer = realloc(*arrays[i], (size_t)capacity * sizeof *longer);
            if (!longer) return false;
            *arrays[i] = longer;
        }
        s->capacity = capacity;
    }
    s->iterations[s->n] = r->iteration;
    s->seconds[s->n] = r->seconds;
    s->values[s->n++] = r->value;
    return true;
}

bool rws__growing_add(rws_growing *g, const rws_points *new)
{
    int at = -1, i;
    for (i = 0; i < new->n; i++) {
        rws_series *s = find_series(g, new->names[new->list[i].name], at + 1 < g->n_series ? at + 1 : 0);
        if (!s || !add_point(s, &new->list[i])) break;
        at = (int)(s - g->series);
    }
    for (int k = 0; k < g->n_series; k++) {
        const rws_series *s = &g->series[k];
        g->histories[k] = (rws_history){s->name, s->n, s->iterations, s->seconds, s->values};
    }
    g->result->histories = g->histories;
    g->result->n_histories = g->n_series;
    return i == new->n;
}

void rws__growing_take_shots(rws_growing *g, rws_shots *shots)
{
    rws__shots_release(&g->shots);
    g->shots = *shots;
    *shots = (rws_shots){0};
    g->result->shots = g->shots.list;
    g->result->n_shots = g->shots.n;
}

/* ---- configuration */

typedef struct {
    rws_result     *result;
    rws_result_key *keys;
} taking;

static bool take_key(void *context, size_t most, const char *key, const char *value)
{
    taking *t = context;
    if (!t->keys) t->result->keys = t->keys = calloc(most, sizeof *t->keys);
    rws_result_key copy = t->keys ? (rws_result_key){strdup(key), strdup(value)} : (rws_result_key){0};
    if (copy.key && copy.value) t->keys[t->result->n_keys++] = copy;
    else free((char *)copy.key), free((char *)copy.value);
    return copy.key && copy.value;
}

bool rws__growing_take_head(rws_growing *g, const rws_head *h)
{
    rws_result *r = g->result;
    taking      t = {r, NULL};
    bool        good = replace(&r->host, h->host);
    good &= replace(&r->version, h->version);
    good &= replace(&r->started, h->started);
    good &= replace(&r->failure, h->failure);
    good &= replace(&g->config, h->config);
    r->iteration = h->iteration;
    r->seconds = h->seconds;
    free_keys(r);
    good &= rws__keys_read(h->config, take_key, &t);
    rws__result_count_iterations(r);
    return good;
}
