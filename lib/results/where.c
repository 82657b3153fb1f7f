/* where.c - conditions on runs: "key=value,value". */
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "results/results.h"
#include "rws_results.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* ---- a value */

/* Whether the text is a whole number; *digits is then behind its sign and its leading zeros. */
static bool is_whole(const char *text, const char **digits)
{
    const char *first = text + (text[0] == '-');
    *digits = first + strspn(first, "0");
    return first[0] && !first[strspn(first, "0123456789")];
}

/* Whole numbers are compared by their digits: a seed may have more of them than a double. */
static bool same_value(const char *a, const char *b)
{
    const char *digits_a, *digits_b;
    if (is_whole(a, &digits_a) && is_whole(b, &digits_b))
        return strcmp(digits_a, digits_b) == 0 && (!*digits_a || (a[0] == '-') == (b[0] == '-'));
    char        *end_a, *end_b;
    const double x = g_ascii_strtod(a, &end_a), y = g_ascii_strtod(b, &end_b);
    return strcmp(a, b) == 0 || (end_a != a && end_b != b && !*end_a && !*end_b && x == y);
}

bool rws_result_has(const rws_result *r, const char *key, const char *value)
{
    const char *own = value ? rws_result_get(r, key) : NULL;
    if (own && strcmp(key, "state") == 0 && strcmp(own, "unfinished") == 0 && strcmp(value, own) != 0)
        own = r->training ? "training" : "stopped";
    return own && same_value(own, value);
}

/* ---- a condition */

/* A condition in parts: the values stand one after the other, each ended by a zero byte. */
typedef struct {
    char *key, *values;
    int   n_values;
} condition;

/* Takes the text apart. The caller frees out->key, also after a failure. */
static rws_status parse(const char *text, condition *out, rws_error *err)
{
    const char *equals = strchr(text, '=');
    *out = (condition){.n_values = 1};
    if (!equals || equals == text)
        return rws_fail(err, RWS_BAD_INPUT, "A condition is key=value, such as method=ww, not \"%s\".",
                        rws__quote(text).text);
    out->key = strdup(text);
    if (!out->key) return rws_no_memory(err, "a condition");
    out->values = out->key + (equals - text) + 1;
    out->values[-1] = '\0';
    for (char *at = out->values; *at; at++)
        if (*at == ',') *at = '\0', out->n_values++;
    return RWS_OK;
}

static const char *next_value(const char *value)
{
    return value + strlen(value) + 1;
}

static bool is_met(const condition *c, const rws_result *r)
{
    const char *value = c->values;
    for (int i = 0; i < c->n_values; i++, value = next_value(value))
        if (rws_result_has(r, c->key, value)) return true;
    return false;
}

static rws_status check_states(const condition *c, rws_error *err)
{
    static const char *const states[] = {"finished", "failed", "unfinished", "training", "stopped", NULL};
    const char              *value = c->values;
    for (int i = 0; i < c->n_values; i++, value = next_value(value)) {
        if (g_strv_contains(states, value)) continue;
        rws_nearest near = rws__nearest_to(value);
        for (const char *const *s = states; *s; s++) rws__nearest_try(&near, *s);
        return rws_fail(err, RWS_BAD_INPUT,
                        "There is no state \"%s\"%s; the states are finished, failed and unfinished, which is training "
                        "or stopped.",
                        rws__quote(value).text, rws__nearest_hint(&near).text);
    }
    return RWS_OK;
}

rws_status rws__results_check_key(const rws_result *const *runs, int n, const char *key, rws_error *err)
{
    for (int i = 0; i < n; i++)
        if (rws_result_get(runs[i], key)) return RWS_OK;
    rws_nearest near = rws__nearest_to(key);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i]->n_keys; k++) rws__nearest_try(&near, runs[i]->keys[k].key);
    return rws_fail(err, RWS_BAD_INPUT, "No run has \"%s\" in its configuration%s; `rws export` shows the keys.",
                    rws__quote(key).text, rws__nearest_hint(&near).text);
}

/* Whether the condition can be asked of the runs. */
static rws_status check(const condition *c, const rws_result *const *runs, int n, rws_error *err)
{
    if (strcmp(c->key, "state") == 0) return check_states(c, err);
    return n ? rws__results_check_key(runs, n, c->key, err) : RWS_OK;
}

/* ---- several */

rws_status rws_results_choose(const rws_result **runs, int *n_runs, const char *const *conditions, int n,
                              rws_error *err)
{
    RWS_NEED(runs && n_runs, err);
    const rws_result **left = calloc((size_t)*n_runs + 1, sizeof *left);
    int                n_left = *n_runs;
    rws_status         status = left ? RWS_OK : rws_no_memory(err, "a list of runs");
    for (int i = 0; i < n_left && left; i++) left[i] = runs[i];
    for (int i = 0; i < n && status == RWS_OK; i++) {
        condition c = {0};
        int       n_met = 0;
        if (!conditions || !conditions[i]) status = rws_fail(err, RWS_BAD_INPUT, "Condition %d is NULL.", i);
        else status = parse(conditions[i], &c, err);
        if (status == RWS_OK) status = check(&c, runs, *n_runs, err);
        for (int k = 0; k < n_left && status == RWS_OK; k++)
            if (is_met(&c, left[k])) left[n_met++] = left[k];
        n_left = n_met;
        free(c.key);
    }
    for (int i = 0; i < n_left && status == RWS_OK; i++) runs[i] = left[i];
    if (status == RWS_OK) *n_runs = n_left;
    free(left);
    return status;
}

rws_status rws_results_filter(rws_results *r, const char *const *conditions, int n, rws_error *err)
{
    RWS_NEED(r, err);
    const rws_result **runs = calloc((size_t)r->n + 1, sizeof *runs);
    int                n_runs = r->n;
    if (!runs) return rws_no_memory(err, "a list of runs");
    for (int i = 0; i < r->n; i++) runs[i] = &r->runs[i];
    const rws_status status = rws_results_choose(runs, &n_runs, conditions, n, err);
    if (status == RWS_OK) r->n = n_runs;
    for (int i = 0; i < n_runs && status == RWS_OK; i++) r->runs[i] = *runs[i];
    free(runs);
    return status;
}
