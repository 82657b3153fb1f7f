/* document.c - an experiment's report as Markdown, and the numbers of its runs as CSV. */
#include "base/text.h"
#include "paper/paper.h"
#include "figure/bundle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST = 10, MAX_METRICS = 64 };

static bool is_of(const rws_experiment *e, const rws_result *r)
{
    for (int i = 0; e->where && e->where[i].key; i++)
        if (!rws_result_has(r, e->where[i].key, e->where[i].value)) return false;
    return true;
}

static bool is_finished(const rws_experiment *e, const rws_result *r)
{
    return is_of(e, r) && strcmp(rws_result_state(r), "finished") == 0;
}

/* ---- the report */

/* The values of a key in the finished runs, each once, in the order of the runs. */
static void put_values(FILE *out, const rws_experiment *e, const rws_results *r, const char *key)
{
    bool any = false;
    for (int i = 0; i < r->n; i++) {
        const char *value = is_finished(e, &r->runs[i]) ? rws_result_get(&r->runs[i], key) : NULL;
        bool        known = !value;
        for (int k = 0; k < i && !known; k++)
            known = is_finished(e, &r->runs[k]) && rws_result_has(&r->runs[k], key, value);
        if (known) continue;
        fprintf(out, "%s%s", any ? ", " : "", value);
        any = true;
    }
}

static void put_versions(FILE *out, const rws_experiment *e, const rws_results *r)
{
    bool any = false;
    for (int i = 0; i < r->n; i++) {
        bool known = !is_finished(e, &r->runs[i]) || !r->runs[i].version;
        for (int k = 0; k < i && !known; k++)
            known = is_finished(e, &r->runs[k]) && r->runs[k].version &&
                    strcmp(r->runs[k].version, r->runs[i].version) == 0;
        if (known) continue;
        fprintf(out, "%s%s", any ? ", " : "", r->runs[i].version);
        any = true;
    }
}

static void put_runs(FILE *out, const rws_experiment *e, const rws_results *r)
{
    int    finished = 0, failed = 0, unfinished = 0;
    double seconds = 0;
    for (int i = 0; i < r->n; i++) {
        if (!is_of(e, &r->runs[i])) continue;
        const bool done = is_finished(e, &r->runs[i]);
        finished += done;
        failed += r->runs[i].failure != NULL;
        unfinished += !done && !r->runs[i].failure;
        if (done) seconds += r->runs[i].seconds;
    }
    fprintf(out, "%d runs are finished, %d failed and %d are not finished.", finished, failed, unfinished);
    if (finished) {
        fputs(" Finished runs have iterations ", out);
        put_values(out, e, r, "iterations");
        fputs("; K = ", out);
        put_values(out, e, r, "particles");
        fputs("; seeds ", out);
        put_values(out, e, r, "seed");
        fprintf(out, "; together %.3g hours of training on one thread each; version ", seconds / 3600);
        put_versions(out, e, r);
        char            note[160];
        const rws_query q = {.results = r, .where = e->where, .own = e->variants[0].own, .iterations = e->iterations};
        fprintf(out, ". Figures: %s.", rws__query_note(&q, note, sizeof note));
    }
    fputs("\n\n", out);
}

/* Whether the word is in a list with blanks between. */
static bool is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

/* The answer in one line: yes, no, in part or open, then the claims by verdict. */
static void put_answer(FILE *out, const rws_paper_figure *f, const rws_checked *claims, int n)
{
    int counts[RWS_VERDICTS] = {0};
    for (int i = 0; i < n; i++)
        if (!claims[i].variant && is_listed(f->answers, claims[i].claim->name)) counts[claims[i].finding.verdict]++;
    const char *answer = counts[RWS_HOLDS] && counts[RWS_FAILS] ? "In part"
                         : counts[RWS_FAILS]                    ? "No"
                         : counts[RWS_HOLDS] && (counts[RWS_UNDECIDED] + counts[RWS_UNKNOWN])
                             ? "In part, the rest is open"
                         : counts[RWS_HOLDS] ? "Yes"
                                             : "Open";
    fprintf(out, "*%s* %s:", f->question, answer);
    for (int v = 0, any = 0; v < RWS_VERDICTS; v++) {
        bool first = true;
        for (int i = 0; i < n; i++) {
            if (claims[i].variant || claims[i].finding.verdict != (rws_verdict)v ||
                !is_listed(f->answers, claims[i].claim->name))
                continue;
            if (first) fprintf(out, "%s %s:", any++ ? ";" : "", rws_verdict_names[v]);
            fprintf(out, "%s %s", first ? "" : ",", claims[i].claim->name);
            first = false;
        }
    }
    fputs(".\n\n", out);
}

static void put_verdicts(FILE *out, const rws_checked *claims, int n)
{
    int counts[RWS_VERDICTS] = {0};
    for (int i = 0; i < n; i++) counts[claims[i].finding.verdict]++;
    fprintf(out, "%d statements are judged (some for more than one reading of a method):", n);
    for (int v = 0; v < RWS_VERDICTS; v++) fprintf(out, "%s %s %d", v ? "," : "", rws_verdict_names[v], counts[v]);
    fputs(".\n\n", out);
}

char *rws__paper_document(const rws_experiment *e, const rws_results *r, const rws_checked *claims, int n)
{
    char    *table = n ? rws__paper_markdown(claims, n) : NULL;
    rws_text text;
    FILE    *out = table || !n ? rws__text_open(&text) : NULL;
    if (!out) {
        free(table);
        return NULL;
    }
    fprintf(out, "# %s: %s\n\n", e->name, e->help);
    put_runs(out, e, r);
    if (n) put_verdicts(out, claims, n);
    for (const rws_paper_figure *f = e->figures; f->file; f++) {
        fprintf(out, "## %s\n\n![%s](%s.png)\n\n", f->caption, f->caption, f->file);
        if (f->question) put_answer(out, f, claims, n);
    }
    if (table) fprintf(out, "## Claims\n\n%s", table);
    free(table);
    return rws__text_end(&text);
}

/* ---- numbers */

static double mean_of_last(const rws_result *r, const char *metric)
{
    const rws_history *h = rws_result_history(r, metric);
    if (!h || h->n == 0) return NAN;
    const int first = h->n > LAST ? h->n - LAST : 0;
    double    total = 0;
    for (int i = first; i < h->n; i++) total += h->values[i];
    return total / (h->n - first);
}

/* Whether finished runs of the experiment that have this key differ in it. */
static bool varies(const rws_experiment *e, const rws_results *r, const char *key)
{
    const char *value = NULL;
    for (int i = 0; i < r->n; i++)
        if (is_finished(e, &r->runs[i]) && rws__bundle_departs(&r->runs[i], key, &value)) return true;
    return false;
}

/* The settings in which the run differs from others, in quotation marks: "delta=0.1". The method, K and the seed have
 * columns of their own. */
static void put_settings(FILE *out, const rws_experiment *e, const rws_results *all, const rws_result *r)
{
    static const char *const own[] = {"method", "particles", "seed", "eval_particles", "threads", "version", "model"};
    bool                     any = false;
    for (int i = 0; i < r->n_keys; i++) {
        const char *key = r->keys[i].key;
        bool        skip = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) skip = skip || strcmp(key, own[k]) == 0;
        if (skip || !varies(e, all, key)) continue;
        fprintf(out, "%s%s=", any ? " " : "\"", key);
        rws__text_put_quoted(out, r->keys[i].value);
        any = true;
    }
    if (any) fputc('"', out);
}

char *rws__paper_csv(const rws_experiment *e, const rws_results *r)
{
    const char *metrics[MAX_METRICS];
    int         n_metrics = 0;
    rws_text    text;
    FILE       *out = rws__text_open(&text);
    if (!out) return NULL;
    for (int i = 0; i < r->n; i++)
        for (int h = 0; is_finished(e, &r->runs[i]) && h < r->runs[i].n_histories; h++) {
            const char *name = r->runs[i].histories[h].metric;
            bool        known = n_metrics == MAX_METRICS;
            for (int k = 0; k < n_metrics && !known; k++) known = strcmp(metrics[k], name) == 0;
            if (!known) metrics[n_metrics++] = name;
        }
    fputs("model,method,settings,particles,seed,iterations,seconds", out);
    for (int k = 0; k < n_metrics; k++) fprintf(out, ",%s", metrics[k]);
    fputc('\n', out);
    for (int i = 0; i < r->n; i++) {
        const rws_result *run = &r->runs[i];
        if (!is_finished(e, run)) continue;
        const char *model = rws_result_get(run, "model"), *slash = model ? strrchr(model, '/') : NULL;
        fprintf(out, "%s,%s,", slash ? slash + 1 : model, rws_result_get(run, "method"));
        put_settings(out, e, r, run);
        fprintf(out, ",%s,%s,%s,%.0f", rws_result_get(run, "particles"), rws_result_get(run, "seed"),
                rws_result_get(run, "iterations"), run->seconds);
        for (int k = 0; k < n_metrics; k++) {
            const double value = mean_of_last(run, metrics[k]);
            if (isnan(value)) fputc(',', out);
            else fprintf(out, ",%.5g", value);
        }
        fputc('\n', out);
    }
    return rws__text_end(&text);
}
