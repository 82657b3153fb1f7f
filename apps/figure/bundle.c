#include "figure/bundle.h"

#include "base/error.h"
#include "base/list.h"
#include "figure/style.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__bundles_release(rws_bundles *g)
{
    rws__arena_free(&g->memory);
    *g = (rws_bundles){0};
}

/* ---- keys */

/* Keys that make no curve of their own: a curve is the median over seeds, and the other keys change how runs are
 * measured, not what they learn. The method always makes one: the label and the colour of a curve are its method's. */
static bool is_ignored(const char *key, const char *const *more)
{
    static const char *const keys[] = {"seed", "threads", "eval_every", "eval_particles", "n_test"};
    if (strcmp(key, "method") == 0) return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    for (; more && *more; more++)
        if (strcmp(key, *more) == 0) return true;
    return false;
}

static bool is_listed(const char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0) return true;
    return false;
}

bool rws__bundle_departs(const rws_result *run, const char *key, const char **value)
{
    const char *own = rws_result_get(run, key);
    if (!*value) *value = own;
    return own && strcmp(own, *value) != 0;
}

bool rws__bundle_differs(const rws_result *const *runs, int n, const char *key)
{
    const char *value = NULL;
    for (int i = 0; i < n; i++)
        if (rws__bundle_departs(runs[i], key, &value)) return true;
    return false;
}

/* Looks at every key once, however many runs have it. */
static bool find_keys(const rws_result *const *runs, int n, const char *const *leave, rws_bundles *g)
{
    const char **seen = NULL;
    int          n_seen = 0, capacity = 0;
    bool         good = true;
    for (int i = 0; i < n && good; i++) {
        for (int k = 0; k < runs[i]->n_keys && good; k++) {
            const char *key = runs[i]->keys[k].key;
            if ((k < n_seen && strcmp(seen[k], key) == 0) || is_listed(seen, n_seen, key)) continue;
            good = rws__list_grow(&seen, n_seen, &capacity, sizeof *seen);
            if (good) seen[n_seen++] = key;
        }
    }
    good = good && (g->keys = RWS_TRY_NEW(&g->memory, const char *, n_seen + 1)) != NULL;
    for (int i = 0; i < n_seen && good; i++)
        if (!is_ignored(seen[i], leave) && rws__bundle_differs(runs, n, seen[i])) g->keys[g->n_keys++] = seen[i];
    free(seen);
    return good;
}

/* ---- bundles */

static int compare_texts(const char *a, const char *b)
{
    if (!a || !b) return (a != NULL) - (b != NULL);
    return strverscmp(a, b);
}

/* strverscmp says 0 for equal texts only. */
static int compare_values(const char *const *a, const char *const *b, int n)
{
    int order = 0;
    for (int i = 0; i < n && !order; i++) order = compare_texts(a[i], b[i]);
    return order;
}

static void describe(const rws_bundles *g, const rws_result *run, const char *panel, rws_bundle *out)
{
    size_t n = 0;
    out->method = rws_result_get(run, "method");
    n += (size_t)snprintf(out->label, sizeof out->label, "%s", out->method ? rws__style_name(out->method) : run->name);
    for (int i = 0; i < g->n_keys; i++) {
        const char *key = g->keys[i], *value = out->values[i];
        const char *name = strcmp(key, "particles") == 0 ? "K" : key;
        if (!value) continue;
        if (panel && strcmp(key, panel) == 0) snprintf(out->panel, sizeof out->panel, "%s = %s", name, value);
        else if (strcmp(key, "method") != 0 && n < sizeof out->label)
            n += (size_t)snprintf(out->label + n, sizeof out->label - n, ", %s = %s", name, value);
    }
}

static int style_index(const char *method)
{
    int i = 0;
    while (rws_styles[i].method && (!method || strcmp(rws_styles[i].method, method) != 0)) i++;
    return i;
}

static int by_style(const void *a, const void *b, void *context)
{
    const rws_bundle *x = a, *y = b;
    const int         panels = strverscmp(x->panel, y->panel);
    if (panels) return panels;
    const int order = style_index(x->method) - style_index(y->method);
    return order ? order : compare_values(x->values, y->values, *(const int *)context);
}

/* Curves of one method in one panel are shades of its colour, the last one full. */
static void shade(rws_bundles *g)
{
    for (int i = 0; i < g->n; i++) {
        int before = 0, after = 0;
        for (int k = 0; k < g->n; k++) {
            const bool alike = strcmp(g->list[k].panel, g->list[i].panel) == 0 &&
                               style_index(g->list[k].method) == style_index(g->list[i].method);
            before += alike && k < i;
            after += alike && k > i;
        }
        if (after) g->list[i].shade = (double)after / (before + after);
    }
}

static void sort(rws_bundles *g, int n_runs)
{
    qsort_r(g->list, (size_t)g->n, sizeof *g->list, by_style, &g->n_keys);
    shade(g);
    for (int i = 0; i < n_runs; i++) {
        int at = 0;
        while (g->list[at].first != g->of[i]) at++;
        g->of[i] = at;
    }
}

rws_status rws__bundles_make(const rws_result *const *runs, int n, const rws_bundle_options *options, rws_bundles *out,
                             rws_error *err)
{
    *out = (rws_bundles){0};
    if (!find_keys(runs, n, options->leave, out)) return rws_no_memory(err, "the curves of runs");
    out->list = RWS_TRY_NEW(&out->memory, rws_bundle, options->most + 1);
    out->of = RWS_TRY_NEW(&out->memory, int, n + 1);
    if (!out->list || !out->of) return rws_no_memory(err, "the curves of runs");
    for (int i = 0; i < n; i++) {
        const char **values = RWS_TRY_NEW(&out->memory, const char *, out->n_keys + 1);
        int          at = 0;
        if (!values) return rws_no_memory(err, "the curves of runs");
        for (int k = 0; k < out->n_keys; k++) values[k] = rws_result_get(runs[i], out->keys[k]);
        while (at < out->n && compare_values(out->list[at].values, values, out->n_keys) != 0) at++;
        if (at == options->most)
            return rws_fail(err, RWS_BAD_INPUT, "There are more than %d different curves: choose some with %s.",
                            options->most, options->advice);
        if (at == out->n) {
            out->list[out->n] = (rws_bundle){.values = values, .first = i};
            describe(out, runs[i], options->panel, &out->list[out->n++]);
        }
        out->list[at].n_runs++;
        out->of[i] = out->list[at].first; /* until the bundles are sorted */
    }
    sort(out, n);
    return RWS_OK;
}
