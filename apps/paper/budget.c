#include "paper/budget.h"

#include "base/error.h"
#include "base/text.h"
#include "paper/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILLED 0.9       /* share of the hours that is planned: runs at the same time slow each other down */
#define LEAST_SHARE 1e-3 /* of the iterations */

enum { DECIDING = RWS_MIN_SEEDS, MAX_WORDS = 256, MIN_FINAL = 100, LINE = 4096, MAX_SEEDS = 1000 };

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "the plan of an experiment");
}

/* ---- a smaller sweep */

static bool is_left_out(const rws_plan *p, int K)
{
    for (int i = 0; i < p->n_K; i++)
        if (p->K[i] == K) return true;
    return false;
}

static uint64_t scaled(uint64_t n, double share)
{
    const double some = round((double)n * share);
    return some < 1 ? 1 : (uint64_t)some;
}

/* Words of the line, which is changed. */
static int split(char *line, char **words)
{
    int n = 0;
    for (char *word = strtok(line, " \t\n"); word && n < MAX_WORDS; word = strtok(NULL, " \t\n")) words[n++] = word;
    return n;
}

/* The first `most` of numbers and ranges. Returns how many there are. */
static int put_seeds(FILE *out, char **words, int n, int most)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const char    *dash = strchr(words[i], '-');
        const uint64_t first = strtoull(words[i], NULL, 10), last = dash ? strtoull(dash + 1, NULL, 10) : first;
        for (uint64_t seed = first; seed <= last && count < MAX_SEEDS; seed++)
            if (++count <= most) fprintf(out, " %" PRIu64, seed);
    }
    return count;
}

/* A schedule whose iterations, the numbers before a ':' and around its '-', are multiplied. */
static void put_rate(FILE *out, const char *text, double share)
{
    fputc(' ', out);
    for (const char *part = text; *part;) {
        const size_t length = strcspn(part, ",");
        const char  *colon = memchr(part, ':', length), *end = part + length;
        if (colon) {
            while (part < colon) {
                char *behind;
                fprintf(out, "%" PRIu64, scaled(strtoull(part, &behind, 10), share));
                if (*behind == '-') fputc(*behind++, out);
                part = behind > part ? behind : colon;
            }
        }
        fprintf(out, "%.*s", (int)(end - part), part);
        if (*end) fputc(*end++, out);
        part = end;
    }
}

/* Writes a line of a sweep file, made smaller; *empty becomes true if it names particles and all are left out. */
static void put_line(FILE *out, const char *text, size_t length, const rws_plan *p, bool rate_stays, bool *empty)
{
    char line[LINE], *words[MAX_WORDS];
    snprintf(line, sizeof line, "%.*s", (int)length, text);
    const int n = split(line, words);
    if (n == 0) return;
    const char *key = words[0];
    fprintf(out, "%s", key);
    if (strcmp(key, "particles") == 0) {
        int kept = 0;
        for (int i = 1; i < n; i++)
            if (!is_left_out(p, atoi(words[i]))) fprintf(out, " %s", words[i]), kept++;
        *empty = kept == 0;
    } else if (strcmp(key, "seeds") == 0) {
        put_seeds(out, words + 1, n - 1, p->seeds);
    } else if (n > 1 && (strcmp(key, "iterations") == 0 || strcmp(key, "eval-every") == 0)) {
        fprintf(out, " %" PRIu64, scaled(strtoull(words[1], NULL, 10), p->share));
    } else if (n > 1 && strcmp(key, "lr") == 0 && !rate_stays) {
        put_rate(out, words[1], p->share);
    } else if (n > 2 && strcmp(key, "final") == 0) {
        const uint64_t data = strtoull(words[2], NULL, 10), fewer = scaled(data, fmin(1, p->share));
        fprintf(out, " %s %" PRIu64, words[1], fewer > MIN_FINAL || fewer == data ? fewer : MIN_FINAL);
    } else {
        for (int i = 1; i < n; i++) fprintf(out, " %s", words[i]);
    }
    fputc('\n', out);
}

/* A block, from its line "model" to the next one. Returns where it ends; NULL without memory. */
static const char *put_block(FILE *out, const char *at, const rws_plan *p, bool rate_stays)
{
    rws_text block;
    bool     empty = false;
    FILE    *to = rws__text_open(&block);
    for (bool first = true; to && *at && (first || strncmp(at, "model", 5) != 0); first = false) {
        const size_t length = strcspn(at, "\n");
        put_line(to, at, length, p, rate_stays, &empty);
        at += length + (at[length] == '\n');
    }
    char *text = rws__text_end(&block);
    if (text && !empty) fputs(text, out);
    if (!text) at = NULL;
    free(text);
    return at;
}

char *rws__plan_apply(const char *sweep, const rws_plan *plan, bool rate_stays)
{
    rws_text smaller;
    FILE    *out = rws__text_open(&smaller);
    while (out && sweep && *sweep) sweep = put_block(out, sweep, plan, rate_stays);
    char *text = rws__text_end(&smaller);
    if (sweep) return text;
    free(text);
    return NULL;
}

/* ---- what it costs */

/* Seconds of all runs, or of one. */
typedef struct {
    double training, evaluations, final; /* setup counts as training */
} parts;

static double sum(parts p)
{
    return p.training + p.evaluations + p.final;
}

static rws_status seconds_of(const rws_budget *b, const rws_sweep_run *run, parts *out, rws_error *err)
{
    rws_cost       cost;
    const uint64_t every = run->config.eval_every ? run->config.eval_every : run->config.iterations / 20 + 1;
    RWS_TRY(b->price(b->context, run, &cost, err));
    *out = (parts){.training = cost.setup + cost.iteration * (double)run->config.iterations,
                   .evaluations = cost.evaluation * (double)(run->config.iterations / every + 1)};
    if (run->final_particles) out->final = cost.final * (run->final_test ? run->final_test : 100);
    return RWS_OK;
}

/* The parts of the work, and the hours until it is done. */
static rws_status work_of(const rws_budget *b, const char *sweep, const char *name, parts *all, double *hours,
                          rws_error *err)
{
    rws_sweep *s;
    double     longest = 0;
    rws_status status = RWS_OK;
    *all = (parts){0};
    RWS_TRY(rws_sweep_parse(sweep, strlen(sweep), name, &s, err));
    for (int i = 0; i < s->n && status == RWS_OK; i++) {
        parts one = {0};
        status = seconds_of(b, &s->runs[i], &one, err);
        all->training += one.training;
        all->evaluations += one.evaluations;
        all->final += one.final;
        longest = fmax(longest, sum(one));
    }
    rws_sweep_free(s);
    *hours = fmax(longest, sum(*all) / b->jobs) / 3600;
    return status;
}

rws_status rws__budget_hours(const rws_budget *b, const char *sweep, const char *name, double *hours, rws_error *err)
{
    parts all;
    return work_of(b, sweep, name, &all, hours, err);
}

/* ---- choosing */

/* Shares of the iterations, rising, so that numbers of iterations stay round. */
enum { IN_DECADE = 10, DECADES = 6, SHARES = IN_DECADE * DECADES };

static double share_at(int i)
{
    static const double steps[IN_DECADE] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8};
    return steps[i % IN_DECADE] * pow(10, i / IN_DECADE) * LEAST_SHARE;
}

/* The largest number of seeds of a K in a sweep, and all its K, ascending. */
typedef struct {
    int      n_K, K[RWS_BUDGET_K], seeds[RWS_BUDGET_K], most_seeds, runs;
    uint64_t iterations; /* most */
    int      final_particles, final_test;
} extent;

static void note_seed(extent *x, int K, int index)
{
    int at = 0;
    while (at < x->n_K && x->K[at] < K) at++;
    if ((at == x->n_K || x->K[at] != K) && x->n_K < RWS_BUDGET_K) {
        for (int i = x->n_K++; i > at; i--) x->K[i] = x->K[i - 1], x->seeds[i] = x->seeds[i - 1];
        x->K[at] = K;
        x->seeds[at] = 0;
    }
    if (at < x->n_K && x->K[at] == K && index > x->seeds[at]) x->seeds[at] = index;
    if (index > x->most_seeds) x->most_seeds = index;
}

/* Whether two runs have the same model, method and settings. */
static bool same_kind(const rws_config *a, const rws_config *b)
{
    bool same = strcmp(a->model, b->model) == 0 && strcmp(a->method, b->method) == 0 && a->n_set == b->n_set;
    for (int i = 0; same && i < a->n_set; i++) same = strcmp(a->set[i], b->set[i]) == 0;
    return same;
}

/* Runs are sorted by seed: the position of a run among those of its kind with this K is the number of its seeds so far. */
static void measure(const rws_sweep *s, extent *x)
{
    *x = (extent){.runs = s->n};
    for (int i = 0; i < s->n; i++) {
        const rws_sweep_run *r = &s->runs[i];
        int                  index = 1;
        for (int k = 0; k < i; k++)
            index += s->runs[k].config.particles == r->config.particles && same_kind(&s->runs[k].config, &r->config);
        note_seed(x, r->config.particles, index);
        if (r->config.iterations > x->iterations) x->iterations = r->config.iterations;
        if (r->final_particles) x->final_particles = r->final_particles, x->final_test = r->final_test;
    }
}

static rws_status extent_of(const char *text, const char *name, extent *x, rws_error *err)
{
    rws_sweep *s;
    RWS_TRY(rws_sweep_parse(text, strlen(text), name, &s, err));
    measure(s, x);
    rws_sweep_free(s);
    return RWS_OK;
}

static double lost(const rws_plan *p, const extent *x)
{
    const double halvings = log2((double)x->most_seeds / p->seeds);
    const double for_seeds = x->most_seeds < DECIDING ? halvings : halvings / 2 + (p->seeds < DECIDING ? 3 : 0);
    const double for_one_K = x->n_K > 1 && x->n_K - p->n_K < 2 ? 4 : 0;
    return for_seeds + for_one_K + p->n_K - log2(p->share);
}

/* Leaves out the last n of the order: the experiment's own, or the largest K first. */
static void leave_out(const rws_experiment *e, const extent *x, int n, rws_plan *p)
{
    int order[RWS_BUDGET_K], known = 0;
    for (int i = 0; e->order && e->order[i] && known < RWS_BUDGET_K; i++)
        for (int k = 0; k < x->n_K; k++)
            if (x->K[k] == e->order[i]) order[known++] = e->order[i];
    if (!e->order)
        for (int k = 0; k < x->n_K; k++) order[known++] = x->K[k];
    p->n_K = 0;
    for (int i = 0; i < n && i + 1 < known; i++) p->K[p->n_K++] = order[known - 1 - i];
}

/* The hours of a plan. */
static rws_status hours_of(const rws_budget *b, const rws_experiment *e, const char *base, const rws_plan *p,
                           double *hours, rws_error *err)
{
    char *text = rws__plan_apply(base, p, e->rate_stays);
    if (!text) return no_memory(err);
    const rws_status status = rws__budget_hours(b, text, e->name, hours, err);
    free(text);
    return status;
}

/* The largest share of the iterations, up to `most`, with which the plan fits; 0 if none does. */
static rws_status largest_share(const rws_budget *b, const rws_experiment *e, const char *base, double most,
                                rws_plan *p, rws_error *err)
{
    int fits = -1, above = SHARES;
    while (above - fits > 1) {
        const int middle = (fits + above) / 2;
        double    hours = INFINITY;
        p->share = share_at(middle);
        if (p->share <= most * (1 + 1e-9)) RWS_TRY(hours_of(b, e, base, p, &hours, err));
        if (hours <= b->hours * FILLED) fits = middle;
        else above = middle;
    }
    p->share = fits < 0 ? 0 : share_at(fits);
    return RWS_OK;
}

static rws_status choose(const rws_budget *b, const rws_experiment *e, const char *base, double most, rws_plan *best,
                         rws_error *err)
{
    extent x;
    RWS_TRY(extent_of(base, e->name, &x, err));
    *best = (rws_plan){.share = 0};
    for (int seeds = x.most_seeds; seeds >= 1; seeds--)
        for (int left = 0; left < x.n_K; left++) {
            rws_plan p = {.seeds = seeds};
            leave_out(e, &x, left, &p);
            if (p.n_K < left) break;
            RWS_TRY(largest_share(b, e, base, most, &p, err));
            if (p.share > 0 && (best->share == 0 || lost(&p, &x) < lost(best, &x) - 1e-9)) *best = p;
        }
    return RWS_OK;
}

/* ---- what is left out */

static void put_count(FILE *out, uint64_t n)
{
    if (n >= 1000) put_count(out, n / 1000), fprintf(out, ",%03d", (int)(n % 1000));
    else fprintf(out, "%d", (int)n);
}

static void put_extent(FILE *out, const extent *x, int row)
{
    bool same = true;
    for (int k = 0; k < x->n_K; k++) same = same && x->seeds[k] == x->most_seeds;
    switch (row) {
    case 0: put_count(out, (uint64_t)x->runs); break;
    case 1: put_count(out, x->iterations); break;
    case 2:
        for (int k = 0; k < x->n_K; k++) fprintf(out, "%s%d", k ? ", " : "", x->K[k]);
        break;
    case 3:
        if (same) fprintf(out, "%d", x->most_seeds);
        for (int k = 0; k < x->n_K && !same; k++) fprintf(out, "%s%d with K = %d", k ? ", " : "", x->seeds[k], x->K[k]);
        break;
    default:
        if (x->final_particles) {
            fprintf(out, "%d particles", x->final_particles);
            if (x->final_test) fprintf(out, ", %d test data", x->final_test);
        } else fputs("none", out);
    }
}

/* Names the kinds of runs, regardless of K, that the full sweep has and the chosen one lacks. */
static void put_kinds(FILE *out, const rws_sweep *full, const rws_sweep *chosen)
{
    bool any = false;
    for (int i = 0; i < full->n; i++) {
        const rws_config *c = &full->runs[i].config;
        bool              known = false;
        for (int k = 0; k < i && !known; k++) known = same_kind(&full->runs[k].config, c);
        for (int k = 0; k < chosen->n && !known; k++) known = same_kind(&chosen->runs[k].config, c);
        if (known) continue;
        fprintf(out, "%s%s", any ? "; " : "\nLeft out as a whole: ", c->method);
        for (int s = 0; s < c->n_set; s++) fprintf(out, " %s", c->set[s]);
        any = true;
    }
    if (any) fputs(".\n", out);
}

static rws_status describe(const rws_budget *b, const rws_experiment *e, const char *full, const char *middle,
                           const char *chosen, char **what, rws_error *err)
{
    static const char *const rows[] = {"runs", "iterations", "K", "seeds", "measured at the end with"};
    rws_sweep               *all = NULL, *some = NULL;
    double                   hours[3];
    parts                    work[3];
    extent                   x, y, z;
    if (middle) RWS_TRY(extent_of(middle, e->name, &z, err));
    RWS_TRY(work_of(b, full, e->name, &work[0], &hours[0], err));
    RWS_TRY(work_of(b, chosen, e->name, &work[1], &hours[1], err));
    if (middle) RWS_TRY(work_of(b, middle, e->name, &work[2], &hours[2], err));
    RWS_TRY(rws_sweep_parse(full, strlen(full), e->name, &all, err));
    rws_status status = rws_sweep_parse(chosen, strlen(chosen), e->name, &some, err);
    rws_text   text;
    FILE      *out = status == RWS_OK ? rws__text_open(&text) : NULL;
    if (out) {
        measure(all, &x);
        measure(some, &y);
        fprintf(out, "| %s | in full | within %g %s |\n|---|---|---|\n", e->name, b->hours,
                b->hours == 1 ? "hour" : "hours");
        for (int row = 0; row < 5; row++) {
            fprintf(out, "| %s | ", rows[row]);
            put_extent(out, &x, row);
            fputs(" | ", out);
            put_extent(out, &y, row);
            fputs(" |\n", out);
        }
        fprintf(out, "| hours, %d at a time, by a short probe of each kind of run | %.3g | %.3g |\n", b->jobs, hours[0],
                hours[1]);
        fputs("| share of evaluations; of the measurement at the end |", out);
        for (int i = 0; i < 2; i++)
            fprintf(out, " %.0f %%; %.0f %% |", 100 * work[i].evaluations / sum(work[i]),
                    100 * work[i].final / sum(work[i]));
        fputs("\n", out);
        if (middle) {
            fputs("\nThe middle size of this experiment (", out);
            put_count(out, z.iterations);
            fprintf(out, " iterations) takes %.3g hours.\n", hours[2]);
        }
        put_kinds(out, all, some);
        if (y.most_seeds < DECIDING) fprintf(out, "\nFewer than %d seeds decide no claim.\n", DECIDING);
    }
    if (status == RWS_OK && !(*what = rws__text_end(&text))) status = no_memory(err);
    rws_sweep_free(some);
    rws_sweep_free(all);
    return status;
}

/* Describes the sweep that was chosen, which is NULL without memory; frees it if that fails. */
static rws_status finish(const rws_budget *b, const rws_experiment *e, const char *full, const char *middle,
                         char **sweep, char **what, rws_error *err)
{
    const rws_status status = *sweep ? describe(b, e, full, middle, *sweep, what, err) : no_memory(err);
    if (status == RWS_OK) return RWS_OK;
    free(*sweep);
    *sweep = NULL;
    return status;
}

rws_status rws__budget_choose(const rws_budget *b, const rws_experiment *e, const char *full, const char *middle,
                              char **sweep, char **what, rws_error *err)
{
    const char *base = full;
    double      hours;
    rws_plan    p;
    RWS_TRY(rws__budget_hours(b, full, e->name, &hours, err));
    if (hours <= b->hours * FILLED) {
        *sweep = strdup(full);
        return finish(b, e, full, middle, sweep, what, err);
    }
    RWS_TRY(choose(b, e, full, 1, &p, err));
    if (middle && p.share < 1) {
        extent x, y;
        RWS_TRY(extent_of(full, e->name, &x, err));
        RWS_TRY(extent_of(middle, e->name, &y, err));
        base = middle;
        RWS_TRY(choose(b, e, middle, (double)x.iterations / (double)y.iterations, &p, err));
    }
    if (p.share == 0)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "%g hours are not enough for %s, not even for one seed, the fewest particles and a thousandth of "
            "the iterations.",
            b->hours, e->name);
    *sweep = rws__plan_apply(base, &p, e->rate_stays);
    return finish(b, e, full, middle, sweep, what, err);
}
