/* paper.c - figures and claims of any experiment. */
#include "paper/paper.h"

#include "base/error.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const rws_query_own vimco_as_printed[] = {{"vimco", "vimco_no_logK", "0"}, {0}};
static const rws_query_own vimco_no_logK[] = {{"vimco", "vimco_no_logK", "1"}, {0}};

const rws_variant rws_vimco_variants[] = {{NULL, vimco_as_printed}, {"VIMCO without log K", vimco_no_logK}, {0}};

static rws_query query_of(const rws_experiment *e, const rws_results *r, const rws_variant *v)
{
    return (rws_query){.results = r, .where = e->where, .own = v->own};
}

/* Whether there are runs with the settings in which the variant differs from the paper. */
static bool has_runs(const rws_experiment *e, const rws_results *r, const rws_variant *v)
{
    const rws_query q = query_of(e, r, v);
    for (int i = 0; v->own[i].method; i++) {
        const rws_query_own *paper = e->variants[0].own;
        for (int k = 0; paper[k].method; k++)
            if (strcmp(paper[k].key, v->own[i].key) == 0 && strcmp(paper[k].value, v->own[i].value) != 0)
                return rws_query_first_run(&q, v->own[i].method, 0) != NULL;
    }
    return false;
}

int rws_paper_check(const rws_experiment *e, const rws_results *r, rws_checked *out, int room)
{
    int n = 0;
    for (const rws_claim *c = e->claims; c->name; c++) {
        for (const rws_variant *v = e->variants; v->own && n < room; v++) {
            if (v->name && (!c->varies || !has_runs(e, r, v))) continue;
            const rws_query q = query_of(e, r, v);
            rws_checked    *checked = &out[n++];
            *checked = (rws_checked){e, c, v->name, rws_finding_new()};
            c->check(&q, &checked->finding);
            if (checked->finding.seeds < 0) checked->finding.seeds = 0;
            if (checked->finding.seeds == 0) checked->finding.verdict = RWS_UNKNOWN;
        }
    }
    return n;
}

rws_status rws_paper_draw(const rws_experiment *e, const rws_results *r, const char *folder, rws_error *err)
{
    static const char *const endings[] = {"png", "svg", "pdf"};
    const rws_query          q = query_of(e, r, &e->variants[0]);
    for (const rws_paper_figure *f = e->figures; f->file; f++) {
        for (int i = 0; i < 3; i++) {
            char *path;
            RWS_CHECK(asprintf(&path, "%s/%s.%s", folder, f->file, endings[i]) > 0);
            const rws_status status = f->draw(&q, path, err);
            free(path);
            if (status != RWS_OK) return status;
        }
    }
    return RWS_OK;
}

/* ---- as text */

/* A '|' would end the cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|') fputc('\\', out);
        fputc(*text, out);
    }
}

char *rws_paper_markdown(const rws_checked *claims, int n)
{
    char  *text = NULL;
    size_t size;
    FILE  *out = open_memstream(&text, &size);
    RWS_CHECK(out);
    fputs("| claim | what the paper says | | numbers (medians over seeds) | seeds |\n|---|---|---|---|---|\n", out);
    for (int i = 0; i < n; i++) {
        const rws_checked *c = &claims[i];
        fprintf(out, "| %s", c->claim->name);
        if (c->variant) fprintf(out, " (%s)", c->variant);
        fputs(" | ", out);
        put_cell(out, c->claim->text);
        fprintf(out, " | **%s** | ", rws_verdict_names[c->finding.verdict]);
        put_cell(out, c->finding.numbers);
        fprintf(out, " | %d |\n", c->finding.seeds);
    }
    RWS_CHECK(fclose(out) == 0);
    return text;
}

char *rws_paper_json(const rws_checked *claims, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const rws_checked *c = &claims[i];
        json_array_append_new(list, json_pack("{s:s,s:s,s:s?,s:s,s:s,s:i,s:s}", "claim", c->claim->name, "experiment",
                                              c->experiment->name, "variant", c->variant, "verdict",
                                              rws_verdict_names[c->finding.verdict], "numbers", c->finding.numbers,
                                              "seeds", c->finding.seeds, "text", c->claim->text));
    }
    char *text = json_dumps(list, JSON_INDENT(2));
    RWS_CHECK(text);
    json_decref(list);
    return text;
}
