/* report.c - reports of programs on their particles, read again by row of the table. */
#include "engine/internal.h"

#include <string.h>

bool rws_reports(const rws_path *path)
{
    return path->e->pass.reports && !path->acts;
}

bool rws_reports_all(const rws_path *path)
{
    return rws_reports(path) && path->e->pass.asked;
}

static const char *copy(rws_path *path, const char *text)
{
    return strcpy(RWS_NEW(&path->e->arena, char, strlen(text) + 1), text);
}

static void add_report(rws_path *path, report what)
{
    *RWS_PUSH(path->e, path->reports, path->n_reports, path->report_capacity) = what;
    rws__returns(path, (rws_var){0});
}

void rws_report(rws_path *path, const char *name, rws_var v)
{
    rws_var none;
    if (!rws_reports(path) || rws__replayed(path, &none)) return;
    if (!name) rws__path_mistake(path, "rws_report was given no name (NULL).");
    rws__path_expect(path, v, "rws_report");
    add_report(path, (report){.name = copy(path, name), .node = v.id});
}

void rws_report_text(rws_path *path, const char *name, const char *text)
{
    rws_var none;
    if (!rws_reports(path) || rws__replayed(path, &none)) return;
    if (!name || !text) rws__path_mistake(path, "rws_report_text was given no %s (NULL).", name ? "text" : "name");
    add_report(path, (report){.name = copy(path, name), .text = copy(path, text)});
}

static void read_reports(rws_engine *e, int i, rws_reporter *each, void *context)
{
    const origin o = rws__scores_origin(e, i);
    uint32_t     n;
    const past  *all = rws__past_of(e, e->paths[e->ends[o.end].path], o.row, &n);
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t k = 0; k < all[s].in->n_reports; k++) {
            const report *p = &all[s].in->reports[k];
            const float  *value = p->node ? rws__value_at(e, all[s].in->level, all[s].row, p->node) : NULL;
            each(context, p->name, value ? e->nodes[p->node].dim : 0, value, p->text);
        }
}

rws_status rws__engine_reports(rws_engine *e, int i, rws_reporter *each, void *context)
{
    RWS_CHECK(e->pass.reports && i >= 0 && i < e->scores.n);
    RWS_ENTER(e, read_reports(e, i, each, context));
    return e->status;
}

typedef struct {
    const char  *name, *text;
    const float *value;
    int          time, dim;
} search;

static void match(void *context, const char *name, int dim, const float *value, const char *text)
{
    search *s = context;
    if (strcmp(name, s->name) == 0 && s->time-- == 0) s->dim = dim, s->value = value, s->text = text;
}

const float *rws__engine_report(rws_engine *e, int i, const char *name, int time, int *dim)
{
    search           s = {.name = name, .time = time};
    const rws_status status = rws__engine_reports(e, i, match, &s);
    if (dim) *dim = s.dim;
    return status == RWS_OK ? s.value : NULL;
}

const char *rws__engine_report_text(rws_engine *e, int i, const char *name, int time)
{
    search s = {.name = name, .time = time};
    return rws__engine_reports(e, i, match, &s) == RWS_OK ? s.text : NULL;
}
