/* calibrate.c - rws calibrate: does a guide give the posterior of its model? Calibration by simulation, as a table and a figure. */
#include "base/buffer.h"
#include "base/error.h"
#include "figure/chart.h"
#include "rws/answer_table.h"
#include "rws/ask.h"
#include "rws/command.h"
#include "rws/listing.h"
#include "rws/output.h"
#include "rws/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TABLE = 0x2000, GRID = RWS_CALIBRATION_GRID, MAX_PANELS = 24, COLUMNS = 3 };
#define LEVEL 0.05 /* of adjusted p values */

typedef struct {
    rws_asked        asked;
    uint64_t         simulations, particles, threads;
    const char      *table, *out; /* NULL: none */
    rws_answer_table rows;        /* with --table */
    rws_frame       *frame;
    rws_progress     progress;
    rws_status       status;
    rws_error        error;
} calibrate_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    calibrate_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &o->asked; return 0;
    case 'n': return rws__arguments_count(state, "--simulations", arg, 50, RWS_MAX_TEST, &o->simulations);
    case 'k': return rws__arguments_count(state, "--particles", arg, 1, RWS_MAX_PARTICLES, &o->particles);
    case 't': return rws__arguments_count(state, "--threads", arg, 0, 1024, &o->threads);
    case 'o': o->out = arg; return 0;
    case KEY_TABLE:
        o->table = arg;
        return rws__answer_table_is(arg) ? 0 : rws__arguments_fail(state, "--table writes a .csv or a .jsonl file.");
    case ARGP_KEY_ARG:
        if (o->asked.path) return rws__arguments_extra(state, arg);
        o->asked.path = arg;
        return 0;
    case ARGP_KEY_END: return o->asked.path ? 0 : rws__arguments_fail(state, "Which run? Name its folder.");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"simulations", 'n', "N", 0, "Data that the model makes and the guide is asked about (1000)", 0},
            {"particles", 'k', "N", 0, "Particles of the guide for each datum (1000)", 0},
            {"threads", 't', "N", 0, "Threads (0: as many as there are processors)", 0},
            {"table", KEY_TABLE, "FILE", 0,
             "Also write the ranks, a row for each simulation, .csv or .jsonl; after an interruption the same command "
             "continues",
             0},
            {"out", 'o', "FILE", 0,
             "Also draw the distribution of the ranks less the uniform one, with bands, as a PNG, SVG or PDF", 0},
            {0},
        },
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Tests whether a guide gives the posterior of its model, by simulation: the model makes random choices and a "
        "datum, the guide is asked about the datum, and the choice that was made has a rank among the answers. The "
        "ranks are uniform if the answers are those of the posterior. This is tested for each number that a trace has "
        "(a choice at each visit, a number that is reported, how often a site is visited), by the importance weights "
        "and by the bare guide. p values are exact, and adjusted (Holm) for the number of tests. The table also has "
        "how "
        "often the central intervals of 50, 80 and 95 % have the truth, and for discrete choices the expected "
        "calibration error of the most probable value. The theta of the run is taken as it is: this says nothing of "
        "how well "
        "the model fits data.",
    .children = (const struct argp_child[]){{.argp = &rws_asked_argp}, {0}},
};

/* ---- results */

static void add_row(rws_listing *t, const rws_calibrated *c)
{
    rws__listing_cell(t, "%s", c->name);
    rws__listing_cell(t, "%s", c->guide ? "guide" : "weights");
    rws__listing_cell(t, "%d", c->n);
    rws__listing_cell(t, isnan(c->p) ? "-" : "%.2g", c->p);
    rws__listing_cell(t, isnan(c->p_adjusted) ? "-" : "%.2g", c->p_adjusted);
    for (int i = 0; i < RWS_CALIBRATION_INTERVALS; i++) rws__listing_cell(t, "%.1f", 100 * c->coverage[i]);
    rws__listing_cell(t, isnan(c->confidence_error) ? "-" : "%.3f", c->confidence_error);
    rws__listing_cell(t, "%s", c->p_adjusted < LEVEL ? "*" : "");
}

static int count_rejected(const rws_calibration *c, bool guide, int *tested)
{
    int n = 0;
    *tested = 0;
    for (int i = 0; i < c->n; i++) {
        *tested += c->list[i].guide == guide && !isnan(c->list[i].p);
        n += c->list[i].guide == guide && c->list[i].p_adjusted < LEVEL;
    }
    return n;
}

static void print_table(const rws_calibration *c)
{
    int                      tested;
    static const char *const headings[] = {"quantity", "by", "ranks", "p", "adj. p", "50 %", "80 %", "95 %", "ECE", ""};
    rws_listing             *t = rws__listing_new();
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        rws__listing_column(t, headings[i], i < 2 || i == 9 ? RWS_CELL_LEFT : RWS_CELL_RIGHT);
    for (int i = 0; i < c->n; i++) add_row(t, &c->list[i]);
    rws__listing_print(t, 0, false);
    for (int guide = 0; guide < 2; guide++) {
        const int rejected = count_rejected(c, guide, &tested);
        printf("%s: %d of %d quantities are not calibrated (adjusted p < %g)%s\n",
               guide ? "The bare guide" : "The importance weights", rejected, tested, LEVEL, rejected ? " *" : "");
    }
    if (c->n_impossible)
        printf("%d of %d simulated data are impossible for all particles, and have no ranks by weights: the guide does "
               "not "
               "reach them.\n",
               c->n_impossible, c->n_simulations);
}

static void write_list(rws_buffer *b, const char *key, const double *list, int n)
{
    rws__buffer_open_key(b, key, '[');
    for (int i = 0; i < n; i++) rws__buffer_exact(b, list[i]);
    rws__buffer_close(b, ']');
}

static void print_json(const rws_calibrated *c)
{
    rws_buffer b = {0};
    rws__buffer_open(&b, '{');
    rws__buffer_key_text(&b, "quantity", c->name);
    rws__buffer_key_text(&b, "by", c->guide ? "guide" : "weights");
    rws__buffer_key_number(&b, "ranks", c->n);
    rws__buffer_key_exact(&b, "p", c->p);
    rws__buffer_key_exact(&b, "p_adjusted", c->p_adjusted);
    write_list(&b, "coverage", c->coverage, RWS_CALIBRATION_INTERVALS);
    if (!isnan(c->confidence_error)) {
        rws__buffer_key_exact(&b, "ece", c->confidence_error);
        rws__buffer_key_exact(&b, "accuracy", c->accuracy);
    }
    rws__buffer_open_key(&b, "histogram", '[');
    for (int i = 0; i < RWS_CALIBRATION_BINS; i++) rws__buffer_number(&b, c->histogram[i]);
    rws__buffer_close(&b, ']');
    if (!isnan(c->p)) {
        write_list(&b, "difference", c->difference, GRID - 1);
        write_list(&b, "low", c->low, GRID - 1);
        write_list(&b, "high", c->high, GRID - 1);
    }
    rws__buffer_close(&b, '}');
    rws__output_buffer(&b);
}

static void print_final(const rws_calibration *c)
{
    rws_buffer b = {0};
    int        tested;
    rws__buffer_open(&b, '{');
    rws__buffer_key_true(&b, "final", true);
    rws__buffer_key_number(&b, "simulations", c->n_simulations);
    rws__buffer_key_number(&b, "impossible", c->n_impossible);
    rws__buffer_key_number(&b, "rejected", count_rejected(c, false, &tested));
    rws__buffer_key_number(&b, "rejected_guide", count_rejected(c, true, &tested));
    rws__buffer_key_number(&b, "tested", tested);
    rws__buffer_close(&b, '}');
    rws__output_buffer(&b);
}

/* ---- the figure */

typedef struct {
    double x[GRID + 1], zero[GRID + 1], y[2][GRID + 1], low[GRID + 1], high[GRID + 1];
} drawing;

static void fill(drawing *d, const rws_calibrated *c)
{
    for (int g = 0; g < GRID - 1; g++) {
        d->y[c->guide][g + 1] = c->difference[g];
        if (c->guide) continue;
        d->low[g + 1] = c->low[g];
        d->high[g + 1] = c->high[g];
    }
}

/* Panels of the quantities that both kinds of ranks test, those with the smallest p first. */
static int pick(const rws_calibration *c, const rws_calibrated *(*out)[2])
{
    int n = 0;
    for (int i = 0; i < c->n && n < MAX_PANELS; i++) {
        if (c->list[i].guide || isnan(c->list[i].p)) continue;
        for (int k = 0; k < c->n; k++) {
            if (!c->list[k].guide || strcmp(c->list[k].name, c->list[i].name) != 0) continue;
            out[n][0] = &c->list[i];
            out[n++][1] = &c->list[k];
        }
    }
    return n;
}

static rws_status draw(const rws_calibration *c, const char *path, rws_error *err)
{
    const rws_calibrated *picked[MAX_PANELS][2];
    const int n = pick(c, picked), columns = n < COLUMNS ? n : COLUMNS, rows = n ? (n + columns - 1) / columns : 0;
    if (n == 0)
        return rws_fail(err, RWS_BAD_INPUT, "--out: no quantity has 50 ranks, so that there is nothing to draw.");
    drawing  *d = calloc((size_t)n, sizeof *d);
    rws_curve curves[MAX_PANELS][3];
    rws_panel panels[MAX_PANELS + COLUMNS] = {{0}};
    rws_axis  x[COLUMNS], y[MAX_PANELS];
    if (!d) return rws_no_memory(err, "a figure");
    for (int i = 0; i < n; i++) {
        for (int g = 0; g <= GRID; g++) d[i].x[g] = (double)g / GRID;
        fill(&d[i], picked[i][0]);
        fill(&d[i], picked[i][1]);
        curves[i][0] =
            (rws_curve){"ws", "95 % band", GRID + 1, d[i].x, d[i].zero, d[i].low, d[i].high, RWS_LINE_DASHED, 0.7};
        curves[i][1] = (rws_curve){"vimco", "guide", GRID + 1, d[i].x, d[i].y[1], NULL, NULL, RWS_LINE_SOLID, 0};
        curves[i][2] = (rws_curve){"ww", "weights", GRID + 1, d[i].x, d[i].y[0], NULL, NULL, RWS_LINE_SOLID, 0};
        panels[i] = (rws_panel){picked[i][0]->name, curves[i], 3};
    }
    for (int i = 0; i < columns; i++) x[i] = (rws_axis){.label = "rank", .low = 0, .high = 1};
    for (int i = 0; i < rows; i++) y[i] = (rws_axis){.label = "ECDF difference", .low = NAN, .high = NAN};
    const rws_chart chart = {
        .n_rows = rows, .n_columns = columns, .panels = panels, .x = x, .y = y, .names = RWS_NAMES_LEGEND};
    const rws_status status = rws__chart_draw(&chart, path, err);
    free(d);
    return status;
}

/* ---- simulations */

static bool done(void *context, int n)
{
    calibrate_options *o = context;
    if (o->table) o->status = rws__answer_table_commit(&o->rows, &o->error);
    rws__progress_show(&o->progress, (uint64_t)n);
    return o->status == RWS_OK;
}

static rws_status open_frame(calibrate_options *o, rws_error *err)
{
    char about[400];
    if (!o->table) return rws_frame_new(&o->frame, err);
    snprintf(about, sizeof about,
             "{\"calibrate\":\"%.100s\",\"iteration\":%" PRIu64 ",\"particles\":%" PRIu64 ",\"seed\":%" PRIu64
             ",\"simulations\":%" PRIu64 ",\"settings\":%d}",
             rws_posterior_model(o->asked.posterior)->name, rws_posterior_iteration(o->asked.posterior), o->particles,
             o->asked.seed, o->simulations, o->asked.changes.n_set);
    RWS_TRY(rws__answer_table_open(&o->rows, o->table, about, RWS_SIMULATIONS, err));
    o->frame = o->rows.frame;
    if (o->rows.n_done) rws__note("%d of %" PRIu64 " simulations are there already.", o->rows.n_done, o->simulations);
    return RWS_OK;
}

static rws_status simulate(calibrate_options *o, rws_error *err)
{
    const rws_simulations how = {.n_particles = (int)o->particles,
                                 .seed = o->asked.seed,
                                 .threads = (int)o->threads,
                                 .done = done,
                                 .context = o};
    rws__progress_init(&o->progress, "calibrate", (uint64_t)rws_frame_rows(o->frame), o->simulations);
    const rws_status status = rws_posterior_simulate(o->asked.posterior, (int)o->simulations, &how, o->frame, err);
    rws__progress_clear(&o->progress);
    if (o->status != RWS_OK) return rws_fail(err, o->status, "%s", o->error.text);
    return status == RWS_OK && o->table ? rws__answer_table_finish(&o->rows, err) : status;
}

static rws_status report(const calibrate_options *o, rws_error *err)
{
    rws_calibration *c;
    RWS_TRY(rws_calibration_new(o->frame, &c, err));
    for (int i = 0; i < c->n && o->asked.json; i++) print_json(&c->list[i]);
    if (o->asked.json) print_final(c);
    else print_table(c);
    const rws_status status = o->out ? draw(c, o->out, err) : RWS_OK;
    rws_calibration_free(c);
    return status;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    calibrate_options o = {.simulations = 1000, .particles = 1000, .rows.file = -1};
    RWS_TRY(rws__arguments_parse(&argp, "rws calibrate", argc, argv, 0, &o, err));
    rws_status status = rws__asked_open(&o.asked, err);
    if (status == RWS_OK) status = open_frame(&o, err);
    if (status == RWS_OK) status = simulate(&o, err);
    if (status == RWS_OK) status = report(&o, err);
    if (o.table) rws__answer_table_close(&o.rows);
    else rws_frame_free(o.frame);
    rws__asked_close(&o.asked);
    return status;
}

const rws_command rws_command_calibrate = {
    "calibrate", "test by simulation whether a guide gives the posterior of its model", run, &argp, NULL, false};
