#include "serve/entry.h"

#include "results/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory */

static void replace(const char **text, const char *by)
{
    free((char *)*text);
    *text = by ? strdup(by) : NULL;
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

void rws_entry_free_shots(rws_entry *e)
{
    for (int i = 0; i < e->public.result.n_shots; i++) {
        rws_shot *s = &e->shots[i];
        for (int k = 0; k < s->n; k++) free((char *)s->labels[k]);
        free((void *)s->labels);
        free((void *)s->values);
        free((char *)s->name);
    }
    free(e->shots);
    e->shots = NULL;
    e->public.result.n_shots = e->n_shown = 0;
}

void rws_entry_free_series(rws_entry *e)
{
    for (int i = 0; i < e->n_series; i++) {
        free(e->series[i].name);
        free(e->series[i].iterations);
        free(e->series[i].seconds);
        free(e->series[i].values);
    }
    free(e->series);
    free(e->histories);
    e->series = NULL;
    e->histories = NULL;
    e->n_series = e->public.result.n_histories = 0;
}

void rws_entry_free(rws_entry *e)
{
    if (!e) return;
    rws_result *r = &e->public.result;
    rws_entry_free_series(e);
    rws_entry_free_shots(e);
    free_keys(r);
    const char *const texts[] = {r->name, r->host, r->version, r->started, r->failure};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free((char *)texts[i]);
    free(e->store);
    free(e->folder);
    free((char *)e->config);
    free(e);
}

/* ---- curves */

/* The place of the metric among the entry's, which is made if it is new. NULL without memory. `guess` is where it was for
 * the last evaluation. */
static rws_series *find_series(rws_entry *e, const char *name, int guess)
{
    if (guess < e->n_series && strcmp(e->series[guess].name, name) == 0) return &e->series[guess];
    int at = 0;
    while (at < e->n_series && strcmp(e->series[at].name, name) < 0) at++;
    if (at < e->n_series && strcmp(e->series[at].name, name) == 0) return &e->series[at];
    rws_series *longer = realloc(e->series, ((size_t)e->n_series + 1) * sizeof *longer);
    if (longer) e->series = longer;
    rws_history *seen = longer ? realloc(e->histories, ((size_t)e->n_series + 1) * sizeof *seen) : NULL;
    char        *copy = seen ? strdup(name) : NULL;
    if (seen) e->histories = seen;
    if (!copy) return NULL;
    memmove(longer + at + 1, longer + at, (size_t)(e->n_series - at) * sizeof *longer);
    longer[at] = (rws_series){.name = copy};
    e->n_series++;
    return &longer[at];
}

static bool add_point(rws_series *s, const rws_point *r)
{
    while (s->n && s->iterations[s->n - 1] >= r->iteration) s->n--; /* measured again */
    if (s->n == s->room) {
        const int room = 2 * s->room + 32;
        double  **arrays[] = {&s->iterations, &s->seconds, &s->values};
        for (int i = 0; i < 3; i++) {
            double *longer = realloc(*arrays[i], (size_t)room * sizeof *longer);
            if (!longer) return false;
            *arrays[i] = longer;
        }
        s->room = room;
    }
    s->iterations[s->n] = r->iteration;
    s->seconds[s->n] = r->seconds;
    s->values[s->n++] = r->value;
    return true;
}

void rws_entry_add(rws_entry *e, const rws_points *new)
{
    int at = -1;
    for (int i = 0; i < new->n; i++) {
        rws_series *s = find_series(e, new->names[new->list[i].name], at + 1 < e->n_series ? at + 1 : 0);
        if (!s || !add_point(s, &new->list[i])) break;
        at = (int)(s - e->series);
    }
    for (int i = 0; i < e->n_series; i++) {
        const rws_series *s = &e->series[i];
        e->histories[i] = (rws_history){s->name, s->n, s->iterations, s->seconds, s->values};
    }
    e->public.result.histories = e->histories;
    e->public.result.n_histories = e->n_series;
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

/* Without memory the rest of the keys is left out. */
static void set_keys(rws_result *r, const char *config)
{
    taking t = {r, NULL};
    free_keys(r);
    rws_keys_read(config, take_key, &t);
    const char *iterations = rws_result_get(r, "iterations");
    r->iterations = iterations ? strtoull(iterations, NULL, 10) : 0;
}

void rws_entry_take_head(rws_entry *e, const rws_head *h)
{
    rws_result *r = &e->public.result;
    replace(&r->host, h->host);
    replace(&r->version, h->version);
    replace(&r->started, h->started);
    replace(&r->failure, h->failure);
    r->iteration = h->iteration;
    r->seconds = h->seconds;
    replace(&e->config, h->config);
    set_keys(r, h->config);
}
