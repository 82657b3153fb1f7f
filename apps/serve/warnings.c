/* warnings.c - warnings about a run: rows that are damaged, numerical failures, a branch that has closed,
 * evidence that falls. */
#include "serve/core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(rws_buffer *out, const char *kind, const char *message)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "kind", kind);
    rws__buffer_key_text(out, "message", message);
    rws__buffer_close(out, '}');
}

static const rws_history *evidence_of(const rws_result *r)
{
    const rws_history *exact = rws_result_history(r, "log_p_exact");
    return exact ? exact : rws_result_history(r, "log_evidence");
}

/* A metric that was a number and is none now. */
static void check_broken(const rws_result *r, rws_buffer *out)
{
    char text[256];
    for (int i = 0; i < r->n_histories; i++) {
        const rws_history *h = &r->histories[i];
        int                k = h->n;
        while (k > 0 && !isfinite(h->values[k - 1])) k--;
        if (k == h->n || k == 0) continue;
        snprintf(text, sizeof text,
                 "%.60s is not a number since iteration %.0f: lower the learning rate, or look at the "
                 "data of that time.",
                 h->metric, h->iterations[k]);
        add(out, "broken", text);
    }
}

/* Whether two runs learn the same thing, so that their evidence can be compared. */
static bool comparable(const rws_result *a, const rws_result *b)
{
    static const char *const may_differ[] = {"seed",       "threads",    "method", "particles", "eval_particles",
                                             "eval_every", "iterations", "lr",     "optimiser", "l2",
                                             "batch",      "shards",     "n_test"};
    for (int i = 0; i < a->n_keys; i++) {
        /* the keys of two runs mostly stand in the same order */
        const char *key = a->keys[i].key;
        const char *other =
            i < b->n_keys && strcmp(b->keys[i].key, key) == 0 ? b->keys[i].value : rws_result_get(b, key);
        bool differs = other && strcmp(other, a->keys[i].value) != 0;
        for (size_t k = 0; k < sizeof may_differ / sizeof *may_differ && differs; k++)
            differs = strcmp(key, may_differ[k]) != 0;
        if (differs) return false;
    }
    return evidence_of(b) && evidence_of(b)->n > 0;
}

static double last_of(const rws_history *h)
{
    return h && h->n ? h->values[h->n - 1] : NAN;
}

/* All particles weigh the same while the evidence is low: the guide proposes only what it knows, and the model has
 * forgotten the rest. */
static void check_closed(const rws_core *c, const rws_result *r, rws_buffer *out)
{
    const rws_history *evidence = evidence_of(r);
    const double       ess = rws_result_last(r, "ess"), last = last_of(evidence);
    double             best = -INFINITY;
    const char        *whose = NULL, *K = rws_result_get(r, "particles");
    char               text[400];
    if (!(ess > 0.98) || !isfinite(last) || !K || atoi(K) < 2) return;
    for (int i = 0; i < rws__catalogue_n(c->catalogue); i++) {
        const rws_result *other = &rws__catalogue_at(c->catalogue, i)->result;
        const double      value = last_of(evidence_of(other));
        if (other == r || !comparable(r, other) || !(value > best)) continue;
        best = value;
        whose = other->name;
    }
    if (!whose || last > best - fmax(0.05, 0.05 * fabs(best))) return;
    const char *method = rws_result_get(r, "method");
    snprintf(
        text, sizeof text,
        "All particles weigh the same (ess %.2f) while log p(x) is %.4g, below the %.4g of %.80s: the guide may have "
        "closed a branch. %s",
        ess, last, best, whose,
        method && strcmp(method, "ww") == 0 ? "Try defensive wake-wake (dww), or more particles."
                                            : "Try wake-wake (ww) with more particles, or defensive wake-wake (dww).");
    add(out, "closed", text);
}

/* The mean of three evaluations that end at i, against noise. */
static double smooth(const rws_history *h, int i)
{
    return (h->values[i] + h->values[i - 1] + h->values[i - 2]) / 3;
}

/* The evidence has lost a tenth of what it had gained. */
static void check_falling(const rws_result *r, rws_buffer *out)
{
    const rws_history *h = evidence_of(r);
    char               text[256];
    int                best = 2;
    if (!h || h->n < 8) return;
    for (int i = 3; i < h->n; i++)
        if (smooth(h, i) > smooth(h, best)) best = i;
    const double gained = smooth(h, best) - smooth(h, 2), lost = smooth(h, best) - smooth(h, h->n - 1);
    double       noise = 0;
    for (int i = h->n / 2 + 1; i < h->n; i++) noise += fabs(h->values[i] - h->values[i - 1]) / (h->n - h->n / 2 - 1);
    if (!(lost > 0.1 * gained) || !(lost > 3 * noise) || !(lost > 0.01 * fabs(smooth(h, best)))) return;
    snprintf(text, sizeof text, "%.60s falls: %.4g now, %.4g at iteration %.0f. A lower learning rate may help.",
             h->metric, smooth(h, h->n - 1), smooth(h, best), h->iterations[best]);
    add(out, "falling", text);
}

void rws__warnings_write(const rws_core *c, const rws_catalogue_run *run, rws_buffer *out)
{
    const rws_result *r = &run->result;
    rws__buffer_open(out, '[');
    if (run->damaged)
        add(out, "damaged",
            "Rows of this run in its store are not those that were written: its numbers may be wrong. Restore a copy "
            "of the store, or train the run again.");
    if (r->failure) add(out, "failed", r->failure);
    check_broken(r, out);
    if (!r->failure) check_closed(c, r, out);
    if (!r->failure) check_falling(r, out);
    rws__buffer_close(out, ']');
}
