/* compare.c - runs that differ only in their seed as one curve: median and quartiles, as JSON, CSV and figures. */
#include "base/error.h"
#include "base/file.h"
#include "figure/chart.h"
#include "figure/bundle.h"
#include "rws_results.h"
#include "serve/core.h"
#include "serve/downsample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GROUPS = 200, MAX_CURVES = 40, MAX_PANELS = 8, POINTS = 600 };

/* Runs that agree in everything but their seed. */
typedef struct {
    const rws_bundle         *about;
    const rws_catalogue_run **runs;
    int                       n_runs;
    rws_gathered              curve;
} group;

typedef struct {
    const char               *metric;
    bool                      seconds, log_x, log_y;
    double                    from, to, points;
    const char               *panel_key; /* NULL: no panels */
    const rws_catalogue_run **runs;
    int                       n_runs;
    rws_bundles               bundles;
    group                    *groups; /* one for each bundle */
    int                       n_groups;
} comparison;

static void release(comparison *p)
{
    for (int i = 0; i < p->n_groups; i++) {
        free(p->groups[i].runs);
        rws_gathered_release(&p->groups[i].curve);
    }
    free(p->groups);
    free(p->runs);
    rws__bundles_release(&p->bundles);
}

/* ---- bundles */

/* Runs that were trained for different numbers of iterations are one curve, which fewer of them reach. */
static rws_status make_groups(comparison *p, rws_error *err)
{
    static const char *const leave[] = {"iterations", NULL};
    const rws_bundle_options options = {
        .leave = leave, .panel = p->panel_key, .most = MAX_GROUPS, .advice = "where, such as where=method=ww"};
    const rws_result **results = calloc((size_t)p->n_runs + 1, sizeof *results);
    if (!results) return rws_no_memory(err, "a comparison");
    for (int i = 0; i < p->n_runs; i++) results[i] = &p->runs[i]->result;
    const rws_status status = rws__bundles_make(results, p->n_runs, &options, &p->bundles, err);
    free(results);
    if (status != RWS_OK) return status;
    p->groups = calloc((size_t)p->bundles.n + 1, sizeof *p->groups);
    if (!p->groups) return rws_no_memory(err, "a comparison");
    for (; p->n_groups < p->bundles.n; p->n_groups++) {
        group *g = &p->groups[p->n_groups];
        g->about = &p->bundles.list[p->n_groups];
        g->runs = calloc((size_t)g->about->n_runs, sizeof *g->runs);
        if (!g->runs) return rws_no_memory(err, "a comparison");
    }
    for (int i = 0; i < p->n_runs; i++) {
        group *g = &p->groups[p->bundles.of[i]];
        g->runs[g->n_runs++] = p->runs[i];
    }
    return RWS_OK;
}

/* ---- medians */

/* Leaves out points, the same ones of the median and of its band. */
static void reduce(rws_gathered *g, int most)
{
    int *keep = g->n > most ? malloc((size_t)most * sizeof *keep) : NULL;
    if (!keep) return;
    const int n = rws__downsample(g->x, g->median, g->n, most, keep);
    double   *rows[] = {g->x, g->median, g->low, g->high, g->count};
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < n; i++) rows[r][i] = rows[r][keep[i]];
    g->n = n;
    free(keep);
}

static rws_status gather(const comparison *p, group *g, rws_error *err)
{
    const rws_result **runs = calloc((size_t)g->n_runs + 1, sizeof *runs);
    if (!runs) return rws_no_memory(err, "a comparison");
    for (int i = 0; i < g->n_runs; i++) runs[i] = &g->runs[i]->result;
    const rws_status status =
        rws_gather(runs, g->n_runs, p->metric, p->seconds ? RWS_X_SECONDS : RWS_X_ITERATION, &g->curve, err);
    free(runs);
    rws_gathered_between(&g->curve, p->from, p->to);
    reduce(&g->curve, (int)p->points);
    return status;
}

/* ---- the query */

static bool read_range(const rws_request *r, comparison *p, rws_reply *reply)
{
    const char *const names[] = {"from", "to"};
    double *const     ends[] = {&p->from, &p->to};
    p->from = -INFINITY, p->to = INFINITY;
    for (int i = 0; i < 2; i++) {
        const char *text = rws__request_argument(r, names[i]);
        char       *end;
        if (!text) continue;
        *ends[i] = strtod(text, &end);
        if (end == text || *end || isnan(*ends[i])) return rws__reply_fail(reply, 400, "\"%s\" is a number.", names[i]);
    }
    return true;
}

static bool read_comparison(const rws_core *c, const rws_request *r, comparison *p, rws_reply *reply)
{
    const char *x = rws__request_argument(r, "x"), *log = rws__request_argument(r, "log");
    const char *panel = rws__request_argument(r, "panel");
    *p = (comparison){.metric = rws__request_argument(r, "metric")};
    if (!p->metric || !p->metric[0]) return rws__reply_fail(reply, 400, "Which metric? Add metric=NAME.");
    if (x && strcmp(x, "iteration") != 0 && strcmp(x, "seconds") != 0)
        return rws__reply_fail(reply, 400, "\"x\" is iteration or seconds.");
    if (log && strspn(log, "xy,") != strlen(log)) return rws__reply_fail(reply, 400, "\"log\" is x, y or x,y.");
    p->seconds = x && strcmp(x, "seconds") == 0;
    p->log_x = log && strchr(log, 'x');
    p->log_y = log && strchr(log, 'y');
    p->panel_key = panel && panel[0] && strcmp(panel, "none") != 0 ? panel : NULL;
    if (!read_range(r, p, reply)) return false;
    if (!rws__request_count(r, "points", 3, RWS_MAX_POINTS, POINTS, &p->points, reply)) return false;
    if (!rws__core_select(c, r, &p->runs, &p->n_runs, reply)) return false;
    rws_error  err = {""};
    rws_status status = make_groups(p, &err);
    for (int i = 0; i < p->n_groups && status == RWS_OK; i++) status = gather(p, &p->groups[i], &err);
    return status == RWS_OK || rws__reply_status(reply, status, &err);
}

/* ---- as JSON */

static void write_group(const comparison *p, const group *g, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "label", g->about->label);
    rws__buffer_key_text(out, "panel", g->about->panel);
    rws__buffer_key_text(out, "method", g->about->method);
    rws__buffer_key_number(out, "shade", g->about->shade);
    rws__buffer_open_key(out, "keys", '{');
    for (int i = 0; i < p->bundles.n_keys; i++) {
        if (!g->about->values[i]) continue;
        rws__buffer_key(out, p->bundles.keys[i]);
        rws__buffer_value(out, g->about->values[i]);
    }
    rws__buffer_close(out, '}');
    rws__buffer_open_key(out, "runs", '[');
    for (int i = 0; i < g->n_runs; i++) rws__buffer_text(out, g->runs[i]->id);
    rws__buffer_close(out, ']');
    rws__buffer_open_key(out, "damaged", '[');
    for (int i = 0; i < g->n_runs; i++)
        if (g->runs[i]->damaged) rws__buffer_text(out, g->runs[i]->id);
    rws__buffer_close(out, ']');
    const double *const rows[] = {g->curve.x, g->curve.median, g->curve.low, g->curve.high, g->curve.count};
    const char *const   names[] = {"x", "median", "low", "high", "count"};
    for (int i = 0; i < 5; i++) {
        rws__buffer_key(out, names[i]);
        rws__buffer_numbers(out, rows[i], g->curve.n);
    }
    rws__buffer_close(out, '}');
}

static void write_json(const comparison *p, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "metric", p->metric);
    rws__buffer_key_text(out, "x", p->seconds ? "seconds" : "iteration");
    rws__buffer_open_key(out, "keys", '[');
    for (int i = 0; i < p->bundles.n_keys; i++) rws__buffer_text(out, p->bundles.keys[i]);
    rws__buffer_close(out, ']');
    rws__buffer_open_key(out, "groups", '[');
    for (int i = 0; i < p->n_groups; i++) write_group(p, &p->groups[i], out);
    rws__buffer_close(out, ']');
    rws__buffer_close(out, '}');
}

bool rws__answer_compare(rws_core *c, const rws_request *r, rws_reply *reply)
{
    comparison p;
    rws__catalogue_read(c->catalogue);
    const bool good = read_comparison(c, r, &p, reply);
    if (good) write_json(&p, &reply->body);
    release(&p);
    rws__catalogue_done(c->catalogue);
    return good && rws__reply_end(reply, "application/json");
}

/* ---- as CSV */

/* A text in quotation marks. A spreadsheet would compute a text that begins with one of =+-@. */
static void write_cell(rws_buffer *out, const char *text)
{
    rws__buffer_add(out, "\"", 1);
    if (strchr("=+-@\t\r", text[0]) && text[0]) rws__buffer_add(out, "'", 1);
    for (; *text; text++) rws__buffer_print(out, *text == '"' ? "\"\"" : "%c", *text);
    rws__buffer_add(out, "\"", 1);
}

static void write_csv(const comparison *p, rws_buffer *out)
{
    rws__buffer_print(out, "curve,panel,%s,median,quartile1,quartile3,runs\r\n", p->seconds ? "seconds" : "iteration");
    for (int i = 0; i < p->n_groups; i++) {
        const rws_bundle   *about = p->groups[i].about;
        const rws_gathered *g = &p->groups[i].curve;
        for (int k = 0; k < g->n; k++) {
            write_cell(out, about->label);
            rws__buffer_add(out, ",", 1);
            write_cell(out, about->panel);
            rws__buffer_print(out, ",%.15g,%.9g,%.9g,%.9g,%.0f\r\n", g->x[k], g->median[k], g->low[k], g->high[k],
                              g->count[k]);
        }
    }
}

/* The name of a download: the metric's letters and digits. */
static void name_file(const comparison *p, const char *ending, rws_reply *reply)
{
    char name[64];
    int  n = 0;
    for (const char *at = p->metric; *at && n < 60; at++)
        name[n++] = ((*at | 32) >= 'a' && (*at | 32) <= 'z') || (*at >= '0' && *at <= '9') || *at == '_' ? *at : '-';
    name[n] = '\0';
    snprintf(reply->file, sizeof reply->file, "%s.%s", name, ending);
}

bool rws__answer_compare_csv(rws_core *c, const rws_request *r, rws_reply *reply)
{
    comparison p;
    rws__catalogue_read(c->catalogue);
    const bool good = read_comparison(c, r, &p, reply);
    if (good) write_csv(&p, &reply->body);
    if (good) name_file(&p, "csv", reply);
    release(&p);
    rws__catalogue_done(c->catalogue);
    return good && rws__reply_end(reply, "text/csv; charset=utf-8");
}

/* ---- as a figure, by the figures' own code */

/* Whether a logarithmic axis can show any of the medians. */
static bool has_positive(const comparison *p)
{
    for (int i = 0; i < p->n_groups; i++)
        for (int k = 0; k < p->groups[i].curve.n; k++)
            if (p->groups[i].curve.median[k] > 0) return true;
    return false;
}

typedef struct {
    rws_panel panels[MAX_PANELS];
    rws_curve curves[MAX_CURVES];
    rws_axis  x[MAX_PANELS], y;
    int       n_panels, n_curves;
    char      caption[64];
} drawing;

static rws_status lay_out(const comparison *p, drawing *d, rws_error *err)
{
    const char *panel = NULL;
    for (int i = 0; i < p->n_groups; i++) {
        const group *g = &p->groups[i];
        if (g->curve.n == 0) continue;
        if (d->n_curves == MAX_CURVES || (d->n_panels == MAX_PANELS && strcmp(panel, g->about->panel) != 0))
            return rws_fail(err, RWS_BAD_INPUT, "A figure has at most %d curves in %d panels: choose some runs.",
                            MAX_CURVES, MAX_PANELS);
        rws_curve *curve = &d->curves[d->n_curves];
        *curve = rws__gathered_curve(&g->curve, g->about->method);
        curve->label = g->about->label;
        curve->shade = g->about->shade;
        if (!panel || strcmp(panel, g->about->panel) != 0) {
            panel = g->about->panel;
            d->panels[d->n_panels++] = (rws_panel){.title = panel[0] ? panel : NULL, .curves = curve};
        }
        d->panels[d->n_panels - 1].n_curves++;
        d->n_curves++;
    }
    if (d->n_panels == 0)
        return rws_fail(err, RWS_BAD_INPUT, "No run that was chosen has this metric%s.",
                        isinf(p->from) && isinf(p->to) ? "" : " from \"from\" to \"to\"");
    if (p->log_y && !has_positive(p))
        return rws_fail(
            err, RWS_BAD_INPUT,
            "No value of this metric is above 0, and a logarithmic axis shows no others: leave out \"log\".");
    return RWS_OK;
}

static rws_status draw(const comparison *p, const char *path, rws_error *err)
{
    drawing *d = calloc(1, sizeof *d);
    if (!d) return rws_no_memory(err, "a figure");
    rws_status status = lay_out(p, d, err);
    snprintf(d->caption, sizeof d->caption, "%s", p->metric);
    for (char *at = d->caption; *at; at++)
        if (*at == '_') *at = ' ';
    for (int i = 0; i < d->n_panels; i++)
        d->x[i] = (rws_axis){.label = p->seconds ? "training time" : "iteration",
                             .unit = p->seconds ? "s" : NULL,
                             .scale = p->log_x ? RWS_AXIS_LOG : RWS_AXIS_LINEAR};
    d->y = (rws_axis){.label = d->caption, .scale = p->log_y ? RWS_AXIS_LOG : RWS_AXIS_LINEAR};
    const rws_chart chart = {.n_rows = 1,
                             .n_columns = d->n_panels,
                             .panels = d->panels,
                             .x = d->x,
                             .y = &d->y,
                             .width = d->n_panels == 1 ? 330 : 0};
    if (status == RWS_OK) status = rws__chart_draw(&chart, path, err);
    free(d);
    return status;
}

/* Draws the figure to a file in a temporary folder, reads its bytes, and removes the file and the folder. */
static rws_status draw_bytes(const comparison *p, const char *ending, rws_buffer *out, rws_error *err)
{
    const char *where = getenv("TMPDIR");
    char        folder[512], path[540];
    uint8_t    *bytes;
    size_t      size;
    snprintf(folder, sizeof folder, "%.480s/rws-figure-XXXXXX", where && where[0] ? where : "/tmp");
    if (!mkdtemp(folder)) return rws_fail(err, RWS_BAD_INPUT, "A temporary folder cannot be made.");
    snprintf(path, sizeof path, "%s/figure.%s", folder, ending);
    rws_status status = draw(p, path, err);
    if (status == RWS_OK) status = rws__file_read(path, 1 << 28, &bytes, &size, err);
    if (status == RWS_OK) {
        rws__buffer_add(out, (const char *)bytes, size);
        free(bytes);
    }
    unlink(path);
    rmdir(folder);
    return status;
}

static bool answer_figure(rws_core *c, const rws_request *r, const char *ending, const char *type, rws_reply *reply)
{
    comparison p;
    rws_error  err = {""};
    /* Taken first, so that a refresh does not wait for figures that wait for each other. */
    pthread_mutex_lock(&c->drawing);
    rws__catalogue_read(c->catalogue);
    bool good = read_comparison(c, r, &p, reply);
    if (good) {
        const rws_status status = draw_bytes(&p, ending, &reply->body, &err);
        good = status == RWS_OK || rws__reply_status(reply, status, &err);
    }
    if (good) name_file(&p, ending, reply);
    release(&p);
    rws__catalogue_done(c->catalogue);
    pthread_mutex_unlock(&c->drawing);
    return good && rws__reply_end(reply, type);
}

bool rws__answer_compare_svg(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "svg", "image/svg+xml", reply);
}

bool rws__answer_compare_pdf(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "pdf", "application/pdf", reply);
}

bool rws__answer_compare_png(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "png", "image/png", reply);
}
