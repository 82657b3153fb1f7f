#include "paper/query.h"

#include "base/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rws_verdict_names[] = {
    [RWS_HOLDS] = "holds",
    [RWS_UNDECIDED] = "undecided",
    [RWS_FAILS] = "does not hold",
    [RWS_UNKNOWN] = "not enough runs",
};

/* ---- findings */

rws_finding rws__finding_new(void)
{
    return (rws_finding){.verdict = RWS_HOLDS, .seeds = -1};
}

/* A part that does not hold says so, since the other parts may. */
void rws__finding_add(rws_finding *f, rws_verdict verdict, const char *format, ...)
{
    size_t       n = strlen(f->numbers);
    const size_t capacity = sizeof f->numbers;
    va_list      args;
    if (verdict > f->verdict) f->verdict = verdict;
    if (n) snprintf(f->numbers + n, capacity - n, "; ");
    n = strlen(f->numbers);
    va_start(args, format);
    vsnprintf(f->numbers + n, capacity - n, format, args);
    va_end(args);
    n = strlen(f->numbers);
    if (verdict != RWS_HOLDS) snprintf(f->numbers + n, capacity - n, " [%s]", rws_verdict_names[verdict]);
}

void rws__finding_seeds(rws_finding *f, int n)
{
    if (!f) return;
    if (f->seeds < 0 || n < f->seeds) f->seeds = n;
}

/* ---- runs */

static bool matches(const rws_query *q, const rws_result *r, const char *method, int K)
{
    char particles[16];
    snprintf(particles, sizeof particles, "%d", K);
    if (method && !rws_result_has(r, "method", method)) return false;
    if (K && !rws_result_has(r, "particles", particles)) return false;
    for (int i = 0; q->where && q->where[i].key; i++)
        if (!rws_result_has(r, q->where[i].key, q->where[i].value)) return false;
    for (int i = 0; q->own && q->own[i].method; i++)
        if (rws_result_has(r, "method", q->own[i].method) && !rws_result_has(r, q->own[i].key, q->own[i].value))
            return false;
    return true;
}

static bool fits(const rws_query *q, const rws_result *r, const char *method, int K)
{
    return matches(q, r, method, K) && strcmp(rws_result_state(r), "finished") == 0;
}

void *rws__query_alloc(const rws_query *q, int n, size_t size)
{
    void *memory = calloc((size_t)n + 1, size);
    if (!memory && q->starved) *q->starved = true;
    return memory;
}

const rws_result **rws__query_runs(const rws_query *q, const char *method, int K, int *n)
{
    const rws_result **runs = rws__query_alloc(q, q->results->n, sizeof *runs);
    *n = 0;
    for (int i = 0; runs && i < q->results->n; i++)
        if (fits(q, &q->results->runs[i], method, K)) runs[(*n)++] = &q->results->runs[i];
    return runs;
}

const rws_result *rws__query_first_run(const rws_query *q, const char *method, int K)
{
    for (int i = 0; i < q->results->n; i++)
        if (fits(q, &q->results->runs[i], method, K)) return &q->results->runs[i];
    return NULL;
}

const rws_shot *rws__query_shot(const rws_query *q, const char *method, int K, const char *name)
{
    const rws_result *run = rws__query_first_run(q, method, K);
    return run ? rws_result_shot(run, name, UINT64_MAX) : NULL;
}

/* ---- numbers */

rws_status rws__query_curve(const rws_query *q, const char *method, int K, const char *metric, rws_gathered *out,
                            rws_error *err)
{
    int                n;
    const rws_result **runs = rws__query_runs(q, method, K, &n);
    const rws_status   status = rws_gather(runs, n, metric, RWS_X_ITERATION, out, err);
    free(runs);
    return status;
}

rws_particles rws__query_particles(const rws_query *q)
{
    rws_particles p = {0};
    for (int i = 0; i < q->results->n; i++) {
        const rws_result *r = &q->results->runs[i];
        const char       *text = rws_result_get(r, "particles");
        const int         value = text ? atoi(text) : 0;
        bool              known = value <= 0 || !fits(q, r, NULL, 0);
        for (int k = 0; k < p.n && !known; k++) known = p.K[k] == value;
        if (!known && p.n < RWS_MAX_K) p.K[p.n++] = value;
    }
    qsort(p.K, (size_t)p.n, sizeof *p.K, rws__order_ints);
    return p;
}

uint64_t rws__query_iterations(const rws_query *q)
{
    uint64_t most = 0;
    for (int i = 0; i < q->results->n; i++)
        if (fits(q, &q->results->runs[i], NULL, 0) && q->results->runs[i].iterations > most)
            most = q->results->runs[i].iterations;
    return most;
}

/* The fewest and the most seeds that a method has with one number of particles. */
static void count_seeds(const rws_query *q, int *least, int *most)
{
    *least = *most = 0;
    for (int i = 0; i < q->results->n; i++) {
        const rws_result *r = &q->results->runs[i];
        const char       *method = rws_result_get(r, "method"), *K = rws_result_get(r, "particles");
        bool              seen[64] = {false};
        int               n = 0;
        if (!fits(q, r, NULL, 0) || !method || !K) continue;
        for (int k = 0; k < q->results->n; k++) {
            const char *seed = rws_result_get(&q->results->runs[k], "seed");
            if (seed && fits(q, &q->results->runs[k], method, atoi(K))) seen[atoi(seed) & 63] = true;
        }
        for (int k = 0; k < 64; k++) n += seen[k];
        if (!*least || n < *least) *least = n;
        if (n > *most) *most = n;
    }
}

char *rws__query_note(const rws_query *q, char *text, size_t size)
{
    static const struct {
        const char *key, *value, *note;
    } readings[] = {{"vimco_no_logK", "0", "VIMCO with log K, "},
                    {"vimco_no_logK", "1", "VIMCO without log K, "},
                    {"vimco_air_ref", "0", "VIMCO as printed, "},
                    {"vimco_air_ref", "1", "VIMCO with the signal of one particle, "},
                    {"ww_baseline", "1", "WW with a baseline, "}};
    const uint64_t done = rws__query_iterations(q);
    size_t         n = 0;
    int            least, most;
    count_seeds(q, &least, &most);
    text[0] = '\0';
    for (int i = 0; q->own && q->own[i].method; i++)
        for (size_t k = 0; k < sizeof readings / sizeof *readings; k++)
            if (strcmp(q->own[i].key, readings[k].key) == 0 && strcmp(q->own[i].value, readings[k].value) == 0)
                n += (size_t)snprintf(text + n, size - n, "%s", readings[k].note);
    if (least < most) n += (size_t)snprintf(text + n, size - n, "%d to %d seeds, ", least, most);
    else n += (size_t)snprintf(text + n, size - n, "%d %s, ", most, most == 1 ? "seed" : "seeds");
    n += (size_t)snprintf(text + n, size - n, "%" PRIu64, done);
    if (q->iterations > done) n += (size_t)snprintf(text + n, size - n, " of %" PRIu64, q->iterations);
    snprintf(text + n, size - n, " iterations");
    return text;
}
