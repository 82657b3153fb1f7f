/* paper.c - figures and claims of any experiment. */
#include "paper/paper.h"

#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const rws_query_own vimco_as_printed[] = {{"vimco", "vimco_no_logK", "0"}, {0}};
static const rws_query_own vimco_no_logK[] = {{"vimco", "vimco_no_logK", "1"}, {0}};

const rws_variant rws_vimco_variants[] = {{NULL, vimco_as_printed}, {"VIMCO without log K", vimco_no_logK}, {0}};

static rws_query query_of(const rws_experiment *e, const rws_results *r, const rws_variant *v)
{
    return (rws_query){.results = r, .where = e->where, .own = v->own, .iterations = e->iterations};
}

/* Whether there are runs with the settings in which the variant differs from the paper. */
static bool has_runs(const rws_experiment *e, const rws_results *r, const rws_variant *v)
{
    const rws_query q = query_of(e, r, v);
    for (int i = 0; v->own[i].method; i++) {
        const rws_query_own *paper = e->variants[0].own;
        for (int k = 0; paper[k].method; k++)
            if (strcmp(paper[k].key, v->own[i].key) == 0 && strcmp(paper[k].value, v->own[i].value) != 0)
                return rws__query_first_run(&q, v->own[i].method, 0) != NULL;
    }
    return false;
}

/* Runs that are much shorter than the paper's show where training is, and not where it ends. */
static void check(const rws_experiment *e, const rws_claim *c, const rws_query *q, rws_finding *f)
{
    rws_evidence   evidence = {.n = 0};
    const uint64_t done = rws__query_iterations(q);
    if (c->statements) rws__evidence_compare(&evidence, q, c->statements);
    if (c->check) c->check(q, &evidence);
    *f = rws__evidence_judge(&evidence);
    if (2 * done < e->iterations && f->verdict != RWS_UNKNOWN) {
        f->verdict = RWS_HOLDS;
        rws__finding_add(f, RWS_UNDECIDED, "%" PRIu64 " of %" PRIu64 " iterations decide nothing", done, e->iterations);
    }
}

int rws__paper_check(const rws_experiment *e, const rws_results *r, rws_checked *out, int capacity)
{
    int  n = 0;
    bool starved = false;
    for (const rws_claim *c = e->claims; c->name; c++) {
        for (const rws_variant *v = e->variants; v->own && n < capacity; v++) {
            if (v->name && (!c->varies || !has_runs(e, r, v))) continue;
            rws_query    q = query_of(e, r, v);
            rws_checked *checked = &out[n++];
            q.starved = &starved;
            *checked = (rws_checked){e, c, v->name, rws__finding_new()};
            check(e, c, &q, &checked->finding);
            if (checked->finding.seeds < 0) checked->finding.seeds = 0;
        }
    }
    return starved ? -1 : n;
}

rws_status rws__paper_draw(const rws_experiment *e, const rws_results *r, const char *folder, rws_error *err)
{
    static const char *const endings[] = {"png", "svg", "pdf"};
    bool                     starved = false;
    rws_query                q = query_of(e, r, &e->variants[0]);
    q.starved = &starved;
    for (const rws_paper_figure *f = e->figures; f->file; f++) {
        for (int i = 0; i < 3; i++) {
            char *path;
            if (asprintf(&path, "%s/%s.%s", folder, f->file, endings[i]) < 0)
                return rws_no_memory(err, "the path of a figure");
            const rws_status status = f->draw(&q, path, err);
            free(path);
            RWS_TRY(status);
            if (starved) return rws_no_memory(err, "the runs of a figure");
        }
    }
    return RWS_OK;
}

/* ---- as text */

rws_status rws__paper_table(const rws_experiment *e, const rws_results *r, char **out, rws_error *err)
{
    bool      starved = false;
    rws_query q = query_of(e, r, &e->variants[0]);
    q.starved = &starved;
    *out = e->table ? e->table(&q) : NULL;
    if (!e->table || (*out && !starved)) return RWS_OK;
    free(*out);
    *out = NULL;
    return rws_no_memory(err, "a table of results");
}

/* A '|' would end the cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|') fputc('\\', out);
        fputc(*text, out);
    }
}

/* Whether one of the claims was checked on runs with the settings of the authors' code (or of the text). */
static bool has_settings(const rws_checked *claims, int n, bool code)
{
    for (int i = 0; i < n; i++)
        if (claims[i].experiment->code == code) return true;
    return false;
}

/* All findings about a claim with one kind of settings, one below the other. */
static void put_findings(FILE *out, const rws_checked *claims, int n, const char *name, bool code)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        const rws_checked *c = &claims[i];
        if (c->experiment->code != code || strcmp(c->claim->name, name) != 0) continue;
        if (any) fputs("<br>", out);
        if (c->variant) fprintf(out, "%s: ", c->variant);
        fprintf(out, "**%s** (%d %s). ", rws_verdict_names[c->finding.verdict], c->finding.seeds,
                c->finding.seeds == 1 ? "seed" : "seeds");
        put_cell(out, c->finding.numbers);
        any = true;
    }
}

/* Settings of the text first, then those of the code; a column without claims is left out. */
char *rws__paper_markdown(const rws_checked *claims, int n)
{
    static const char *const headings[] = {"settings of the text", "settings of the authors' code"};
    rws_text                 text;
    FILE                    *out = rws__text_open(&text);
    if (!out) return NULL;
    fputs("| claim | what the paper says |", out);
    for (int code = 0; code < 2; code++)
        if (has_settings(claims, n, code)) fprintf(out, " %s |", headings[code]);
    fputs("\n|---|---|", out);
    for (int code = 0; code < 2; code++)
        if (has_settings(claims, n, code)) fputs("---|", out);
    fputs("\n", out);
    for (int i = 0; i < n; i++) {
        const rws_claim *claim = claims[i].claim;
        bool             before = false;
        for (int k = 0; k < i; k++) before = before || strcmp(claims[k].claim->name, claim->name) == 0;
        if (before) continue;
        fprintf(out, "| %s | ", claim->name);
        put_cell(out, claim->text);
        fputs(" |", out);
        for (int code = 0; code < 2; code++) {
            if (!has_settings(claims, n, code)) continue;
            fputs(" ", out);
            put_findings(out, claims, n, claim->name, code);
            fputs(" |", out);
        }
        fputs("\n", out);
    }
    return rws__text_end(&text);
}

char *rws__paper_json(const rws_checked *claims, int n)
{
    json_t *list = json_array();
    bool    whole = list != NULL;
    for (int i = 0; i < n && whole; i++) {
        const rws_checked *c = &claims[i];
        json_t            *item = json_pack("{s:s,s:s,s:s,s:s?,s:s,s:s,s:i,s:s}", "claim", c->claim->name, "experiment",
                                            c->experiment->name, "settings", c->experiment->code ? "code" : "text", "variant",
                                            c->variant, "verdict", rws_verdict_names[c->finding.verdict], "numbers",
                                            c->finding.numbers, "seeds", c->finding.seeds, "text", c->claim->text);
        whole = json_array_append_new(list, item) == 0;
    }
    char *text = whole ? json_dumps(list, JSON_INDENT(2)) : NULL;
    json_decref(list);
    return text;
}
