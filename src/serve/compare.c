/* compare.c - runs that differ only in their seed as one curve: median and quartiles, as JSON, CSV and figures.
 *
 * Unlike `rws plot`, which leaves out runs that are shorter than others, a point is the median of the runs that have
 * reached it: curves grow while runs train.
 */
#include "base/error.h"
#include "base/file.h"
#include "figure/chart.h"
#include "figure/style.h"
#include "run/stats.h"
#include "serve/core.h"
#include "serve/thin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_KEYS = 48, MOST_GROUPS = 200, MOST_CURVES = 40, MOST_PANELS = 8, POINTS = 600 };

/* Runs that agree in everything but their seed. */
typedef struct {
    char               identity[512], label[200], panel[80];
    const char        *method;
    const rws_listed **runs;
    int                n_runs;
    double             shade;
    int                n; /* points */
    double            *x, *median, *low, *high, *count;
} group;

typedef struct {
    const char        *metric;
    bool               seconds, log_x, log_y;
    double             from, to, points;
    const char        *panel_key; /* NULL: no panels */
    const rws_listed **runs;
    int                n_runs;
    const char        *keys[MOST_KEYS]; /* in which they differ */
    int                n_keys;
    group             *groups;
    int                n_groups;
} comparison;

static void release(comparison *p)
{
    for (int i = 0; i < p->n_groups; i++) {
        group *g = &p->groups[i];
        free(g->runs);
        free(g->x);
        free(g->median);
        free(g->low);
        free(g->high);
        free(g->count);
    }
    free(p->groups);
    free(p->runs);
}

/* ---- groups */

/* Keys that make no curve of their own: they change how runs are measured, not what they learn. */
static bool is_ignored(const char *key)
{
    static const char *const keys[] = {"seed", "threads", "eval_every", "eval_particles", "n_test", "iterations"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static bool is_listed(const char *const *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0) return true;
    return false;
}

static bool differs(const comparison *p, const char *key)
{
    const char *first = NULL;
    for (int i = 0; i < p->n_runs; i++) {
        const char *value = rws_result_get(&p->runs[i]->result, key);
        if (value && first && strcmp(first, value) != 0) return true;
        if (value) first = value;
    }
    return false;
}

/* Looks at every key once, however many runs have it. */
static void find_keys(comparison *p)
{
    const char *seen[8 * MOST_KEYS];
    int         n_seen = 0;
    for (int i = 0; i < p->n_runs; i++) {
        const rws_result *r = &p->runs[i]->result;
        for (int k = 0; k < r->n_keys && n_seen < 8 * MOST_KEYS; k++) {
            const char *key = r->keys[k].key;
            if ((k < n_seen && strcmp(seen[k], key) == 0) || is_listed(seen, n_seen, key)) continue;
            seen[n_seen++] = key;
            if (!is_ignored(key) && p->n_keys < MOST_KEYS && differs(p, key)) p->keys[p->n_keys++] = key;
        }
    }
}

static void describe(const comparison *p, const rws_result *r, group *g)
{
    size_t n = 0, m = 0;
    g->method = rws_result_get(r, "method");
    m += (size_t)snprintf(g->label, sizeof g->label, "%s", g->method ? rws_style_name(g->method) : r->name);
    for (int i = 0; i < p->n_keys; i++) {
        const char *key = p->keys[i], *value = rws_result_get(r, key);
        if (!value) continue;
        if (n < sizeof g->identity)
            n += (size_t)snprintf(g->identity + n, sizeof g->identity - n, "%s=%s;", key, value);
        const char *name = strcmp(key, "particles") == 0 ? "K" : key;
        if (p->panel_key && strcmp(key, p->panel_key) == 0)
            snprintf(g->panel, sizeof g->panel, "%.30s = %.40s", name, value);
        else if (strcmp(key, "method") != 0 && m < sizeof g->label)
            m += (size_t)snprintf(g->label + m, sizeof g->label - m, ", %s = %s", name, value);
    }
}

static int style_index(const char *method)
{
    int i = 0;
    while (rws_styles[i].method && (!method || strcmp(rws_styles[i].method, method) != 0)) i++;
    return i;
}

static int by_style(const void *a, const void *b)
{
    const group *x = a, *y = b;
    const int    panels = strverscmp(x->panel, y->panel);
    if (panels) return panels;
    const int order = style_index(x->method) - style_index(y->method);
    return order ? order : strverscmp(x->identity, y->identity);
}

/* Curves of one method in one panel are shades of its colour, the last one full. */
static void shade(comparison *p)
{
    for (int i = 0; i < p->n_groups; i++) {
        int before = 0, after = 0;
        for (int k = 0; k < p->n_groups; k++) {
            const bool alike = strcmp(p->groups[k].panel, p->groups[i].panel) == 0 &&
                               style_index(p->groups[k].method) == style_index(p->groups[i].method);
            before += alike && k < i;
            after += alike && k > i;
        }
        if (after) p->groups[i].shade = 0.6 * after / (before + after);
    }
}

static bool make_groups(comparison *p, rws_reply *reply)
{
    static const char no_memory[] = "There is no memory for this reply.";
    p->groups = calloc(MOST_GROUPS, sizeof *p->groups);
    if (!p->groups) return rws_reply_fail(reply, 503, no_memory);
    for (int i = 0; i < p->n_runs; i++) {
        group g = {0};
        int   at = 0;
        describe(p, &p->runs[i]->result, &g);
        while (at < p->n_groups && strcmp(p->groups[at].identity, g.identity) != 0) at++;
        if (at == MOST_GROUPS)
            return rws_reply_fail(reply, 400,
                                  "There are more than %d different curves: choose some with where, such as "
                                  "where=method=ww.",
                                  MOST_GROUPS);
        if (at == p->n_groups) {
            p->groups[p->n_groups] = g;
            p->groups[p->n_groups].runs = calloc((size_t)p->n_runs, sizeof *g.runs);
            if (!p->groups[p->n_groups++].runs) return rws_reply_fail(reply, 503, no_memory);
        }
        p->groups[at].runs[p->groups[at].n_runs++] = p->runs[i];
    }
    if (p->n_groups) qsort(p->groups, (size_t)p->n_groups, sizeof *p->groups, by_style);
    shade(p);
    return true;
}

/* ---- medians */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* All iterations at which some run of the group was measured; returns how many. */
static int merge(const group *g, const char *metric, double **out)
{
    int total = 0, n = 0;
    for (int i = 0; i < g->n_runs; i++) {
        const rws_history *h = rws_result_history(&g->runs[i]->result, metric);
        total += h ? h->n : 0;
    }
    double *all = malloc(((size_t)total + 1) * sizeof *all);
    for (int i = 0; i < g->n_runs && all; i++) {
        const rws_history *h = rws_result_history(&g->runs[i]->result, metric);
        for (int k = 0; h && k < h->n; k++) all[n++] = h->iterations[k];
    }
    bool sorted = true;
    for (int i = 1; i < n && sorted; i++) sorted = all[i] >= all[i - 1];
    if (!sorted) qsort(all, (size_t)n, sizeof *all, ascending);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (kept == 0 || all[kept - 1] != all[i]) all[kept++] = all[i];
    *out = all;
    return kept;
}

/* Adds the point of one iteration to the group, if any run has a number there. */
static void add_point(const comparison *p, group *g, const rws_history *const *histories, double iteration, int *at,
                      double *values, double *times)
{
    int n = 0;
    for (int i = 0; i < g->n_runs; i++) {
        const rws_history *h = histories[i];
        if (!h || at[i] >= h->n || h->iterations[at[i]] != iteration) continue;
        if (isfinite(h->values[at[i]])) values[n] = h->values[at[i]], times[n++] = h->seconds[at[i]];
        at[i]++;
    }
    if (n == 0) return;
    qsort(values, (size_t)n, sizeof *values, ascending);
    qsort(times, (size_t)n, sizeof *times, ascending);
    const double x = p->seconds ? rws_stats_percentile(times, n, 50) : iteration;
    if (x < p->from || x > p->to) return;
    g->x[g->n] = x;
    g->median[g->n] = rws_stats_percentile(values, n, 50);
    g->low[g->n] = rws_stats_percentile(values, n, 25);
    g->high[g->n] = rws_stats_percentile(values, n, 75);
    g->count[g->n++] = n;
}

/* Fewer points, at the same places of the median and its band. */
static void thin(group *g, int most)
{
    int *keep = g->n > most ? malloc((size_t)most * sizeof *keep) : NULL;
    if (!keep) return;
    const int n = rws_thin(g->x, g->median, g->n, most, keep);
    double   *rows[] = {g->x, g->median, g->low, g->high, g->count};
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < n; i++) rows[r][i] = rows[r][keep[i]];
    g->n = n;
    free(keep);
}

static bool gather(comparison *p, group *g)
{
    double   *iterations;
    const int most = merge(g, p->metric, &iterations);
    double  **rows[] = {&g->x, &g->median, &g->low, &g->high, &g->count};
    bool      good = iterations != NULL;
    for (int r = 0; r < 5; r++) good &= (*rows[r] = malloc(((size_t)most + 1) * sizeof(double))) != NULL;
    double             *values = malloc(2 * (size_t)(g->n_runs + 1) * sizeof *values);
    int                *at = calloc((size_t)g->n_runs + 1, sizeof *at);
    const rws_history **histories = calloc((size_t)g->n_runs + 1, sizeof *histories);
    good = good && values && at && histories;
    for (int i = 0; i < g->n_runs && good; i++) histories[i] = rws_result_history(&g->runs[i]->result, p->metric);
    for (int i = 0; i < most && good; i++) add_point(p, g, histories, iterations[i], at, values, values + g->n_runs);
    if (good) thin(g, (int)p->points);
    free(histories);
    free(at);
    free(values);
    free(iterations);
    return good;
}

/* ---- the query */

static bool read_range(const rws_request *r, comparison *p, rws_reply *reply)
{
    const char *const names[] = {"from", "to"};
    double *const     ends[] = {&p->from, &p->to};
    p->from = -INFINITY, p->to = INFINITY;
    for (int i = 0; i < 2; i++) {
        const char *text = rws_request_argument(r, names[i]);
        char       *end;
        if (!text) continue;
        *ends[i] = strtod(text, &end);
        if (end == text || *end || isnan(*ends[i])) return rws_reply_fail(reply, 400, "\"%s\" is a number.", names[i]);
    }
    return true;
}

static bool read_comparison(const rws_core *c, const rws_request *r, comparison *p, rws_reply *reply)
{
    const char *x = rws_request_argument(r, "x"), *log = rws_request_argument(r, "log");
    const char *panel = rws_request_argument(r, "panel");
    *p = (comparison){.metric = rws_request_argument(r, "metric")};
    if (!p->metric || !p->metric[0]) return rws_reply_fail(reply, 400, "Which metric? Add metric=NAME.");
    if (x && strcmp(x, "iteration") != 0 && strcmp(x, "seconds") != 0)
        return rws_reply_fail(reply, 400, "\"x\" is iteration or seconds.");
    if (log && strspn(log, "xy,") != strlen(log)) return rws_reply_fail(reply, 400, "\"log\" is x, y or x,y.");
    p->seconds = x && strcmp(x, "seconds") == 0;
    p->log_x = log && strchr(log, 'x');
    p->log_y = log && strchr(log, 'y');
    p->panel_key = panel && panel[0] && strcmp(panel, "none") != 0 ? panel : NULL;
    if (!read_range(r, p, reply)) return false;
    if (!rws_request_count(r, "points", 3, RWS_MAX_POINTS, POINTS, &p->points, reply)) return false;
    if (!rws_core_select(c, r, &p->runs, &p->n_runs, reply)) return false;
    find_keys(p);
    if (!make_groups(p, reply)) return false;
    for (int i = 0; i < p->n_groups; i++)
        if (!gather(p, &p->groups[i])) return rws_reply_fail(reply, 503, "There is no memory for this reply.");
    return true;
}

/* ---- as JSON */

static void write_group(const comparison *p, const group *g, rws_buffer *out)
{
    rws_buffer_open(out, '{');
    rws_buffer_key(out, "label");
    rws_buffer_text(out, g->label);
    rws_buffer_key(out, "panel");
    rws_buffer_text(out, g->panel);
    rws_buffer_key(out, "method");
    rws_buffer_text(out, g->method);
    rws_buffer_key(out, "shade");
    rws_buffer_number(out, g->shade);
    rws_buffer_key(out, "keys");
    rws_buffer_open(out, '{');
    for (int i = 0; i < p->n_keys; i++) {
        const char *value = rws_result_get(&g->runs[0]->result, p->keys[i]);
        if (!value) continue;
        rws_buffer_key(out, p->keys[i]);
        rws_buffer_value(out, value);
    }
    rws_buffer_close(out, '}');
    rws_buffer_key(out, "runs");
    rws_buffer_open(out, '[');
    for (int i = 0; i < g->n_runs; i++) rws_buffer_text(out, g->runs[i]->id);
    rws_buffer_close(out, ']');
    const double *const rows[] = {g->x, g->median, g->low, g->high, g->count};
    const char *const   names[] = {"x", "median", "low", "high", "count"};
    for (int i = 0; i < 5; i++) {
        rws_buffer_key(out, names[i]);
        rws_buffer_numbers(out, rows[i], g->n);
    }
    rws_buffer_close(out, '}');
}

static void write_json(const comparison *p, rws_buffer *out)
{
    rws_buffer_open(out, '{');
    rws_buffer_key(out, "metric");
    rws_buffer_text(out, p->metric);
    rws_buffer_key(out, "x");
    rws_buffer_text(out, p->seconds ? "seconds" : "iteration");
    rws_buffer_key(out, "keys");
    rws_buffer_open(out, '[');
    for (int i = 0; i < p->n_keys; i++) rws_buffer_text(out, p->keys[i]);
    rws_buffer_close(out, ']');
    rws_buffer_key(out, "groups");
    rws_buffer_open(out, '[');
    for (int i = 0; i < p->n_groups; i++) write_group(p, &p->groups[i], out);
    rws_buffer_close(out, ']');
    rws_buffer_close(out, '}');
}

bool rws_answer_compare(rws_core *c, const rws_request *r, rws_reply *reply)
{
    comparison p;
    rws_catalogue_read(c->catalogue);
    const bool good = read_comparison(c, r, &p, reply);
    if (good) write_json(&p, &reply->body);
    release(&p);
    rws_catalogue_done(c->catalogue);
    return good && rws_reply_end(reply, "application/json");
}

/* ---- as CSV */

/* A text in quotation marks. A spreadsheet would compute a text that begins with one of =+-@. */
static void write_cell(rws_buffer *out, const char *text)
{
    rws_buffer_add(out, "\"", 1);
    if (strchr("=+-@\t\r", text[0]) && text[0]) rws_buffer_add(out, "'", 1);
    for (; *text; text++) rws_buffer_print(out, *text == '"' ? "\"\"" : "%c", *text);
    rws_buffer_add(out, "\"", 1);
}

static void write_csv(const comparison *p, rws_buffer *out)
{
    rws_buffer_print(out, "curve,panel,%s,median,quartile1,quartile3,runs\r\n", p->seconds ? "seconds" : "iteration");
    for (int i = 0; i < p->n_groups; i++) {
        const group *g = &p->groups[i];
        for (int k = 0; k < g->n; k++) {
            write_cell(out, g->label);
            rws_buffer_add(out, ",", 1);
            write_cell(out, g->panel);
            rws_buffer_print(out, ",%.15g,%.9g,%.9g,%.9g,%.0f\r\n", g->x[k], g->median[k], g->low[k], g->high[k],
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

bool rws_answer_compare_csv(rws_core *c, const rws_request *r, rws_reply *reply)
{
    comparison p;
    rws_catalogue_read(c->catalogue);
    const bool good = read_comparison(c, r, &p, reply);
    if (good) write_csv(&p, &reply->body);
    if (good) name_file(&p, "csv", reply);
    release(&p);
    rws_catalogue_done(c->catalogue);
    return good && rws_reply_end(reply, "text/csv; charset=utf-8");
}

/* ---- as a figure, by the figures' own code */

typedef struct {
    rws_panel panels[MOST_PANELS];
    rws_curve curves[MOST_CURVES];
    rws_axis  x[MOST_PANELS], y;
    int       n_panels, n_curves;
    char      caption[64];
} drawing;

static rws_status lay_out(const comparison *p, drawing *d, rws_error *err)
{
    const char *panel = NULL;
    for (int i = 0; i < p->n_groups; i++) {
        const group *g = &p->groups[i];
        if (g->n == 0) continue;
        if (d->n_curves == MOST_CURVES || (d->n_panels == MOST_PANELS && strcmp(panel, g->panel) != 0))
            return rws_fail(err, RWS_BAD_INPUT, "A figure has at most %d curves in %d panels: choose some runs.",
                            MOST_CURVES, MOST_PANELS);
        rws_curve *curve = &d->curves[d->n_curves];
        *curve = (rws_curve){.method = g->method,
                             .label = g->label,
                             .n = g->n,
                             .x = g->x,
                             .y = g->median,
                             .low = g->n_runs > 1 ? g->low : NULL,
                             .high = g->n_runs > 1 ? g->high : NULL,
                             .shade = g->shade};
        if (!panel || strcmp(panel, g->panel) != 0) {
            panel = g->panel;
            d->panels[d->n_panels++] = (rws_panel){.title = panel[0] ? panel : NULL, .curves = curve};
        }
        d->panels[d->n_panels - 1].n_curves++;
        d->n_curves++;
    }
    if (d->n_panels == 0) return rws_fail(err, RWS_BAD_INPUT, "No run that was chosen has this metric.");
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
    if (status == RWS_OK) status = rws_chart_draw(&chart, path, err);
    free(d);
    return status;
}

/* Figures are written to files; this one is in a folder of its own, and goes when it was read. */
static rws_status draw_bytes(const comparison *p, const char *ending, rws_buffer *out, rws_error *err)
{
    const char *where = getenv("TMPDIR");
    char        folder[512], path[540];
    uint8_t    *bytes;
    size_t      size;
    snprintf(folder, sizeof folder, "%.480s/rws-figure-XXXXXX", where && where[0] ? where : "/tmp");
    if (!mkdtemp(folder)) return rws_fail(err, RWS_BAD_INPUT, "There is no room for a temporary file.");
    snprintf(path, sizeof path, "%s/figure.%s", folder, ending);
    rws_status status = draw(p, path, err);
    if (status == RWS_OK) status = rws_file_read(path, 1 << 28, &bytes, &size, err);
    if (status == RWS_OK) {
        rws_buffer_add(out, (const char *)bytes, size);
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
    rws_catalogue_read(c->catalogue);
    bool good = read_comparison(c, r, &p, reply);
    if (good) {
        pthread_mutex_lock(&c->drawing);
        const rws_status status = draw_bytes(&p, ending, &reply->body, &err);
        pthread_mutex_unlock(&c->drawing);
        good = status == RWS_OK || rws_reply_status(reply, status, &err);
    }
    if (good) name_file(&p, ending, reply);
    release(&p);
    rws_catalogue_done(c->catalogue);
    return good && rws_reply_end(reply, type);
}

bool rws_answer_compare_svg(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "svg", "image/svg+xml", reply);
}

bool rws_answer_compare_pdf(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "pdf", "application/pdf", reply);
}

bool rws_answer_compare_png(rws_core *c, const rws_request *r, rws_reply *reply)
{
    return answer_figure(c, r, "png", "image/png", reply);
}
