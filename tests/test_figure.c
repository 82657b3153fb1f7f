/* test_figure.c - percentiles, ranges and ticks against values worked out by hand, the files of every type, and the
 * pictures where a mistake would show: gaps, clipping, names. */
#include "figure/axis.h"
#include "figure/bars.h"
#include "figure/chart.h"
#include "figure/gather.h"
#include "figure/hinton.h"
#include "figure/images.h"
#include "figure/png.h"
#include "figure/stats.h"
#include "figure/style.h"
#include "figure/terminal.h"
#include "figure/trees.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairo.h>
#include <cmocka.h>

/* fontconfig keeps a little memory of its own until the program ends. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

#define assert_near(value, expected, error)                                                                        \
    do {                                                                                                           \
        double value_ = (value), expected_ = (expected);                                                           \
        if (!(fabs(value_ - expected_) <= (error))) fail_msg("%s is %.17g, not %.17g", #value, value_, expected_); \
    } while (0)

static char folder[] = "/tmp/rws-figure-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* The path of a file in the test's folder; valid until the fourth call from here. */
static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int  next;
    char       *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* The whole file with a 0 behind it; the caller frees it. */
static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 22);
    assert_non_null(bytes);
    *size = fread(bytes, 1, (1 << 22) - 1, file);
    fclose(file);
    return bytes;
}

static int count(const char *text, const char *piece)
{
    int n = 0;
    for (const char *at = strstr(text, piece); at; at = strstr(at + 1, piece)) n++;
    return n;
}

/* ---- stats ---- */

static void test_percentiles(void **state)
{
    (void)state;
    const double four[] = {1, 2, 3, 4}, five[] = {-2, 0, 1, 10, 100};
    assert_near(rws_stats_percentile(four, 4, 25), 1.75, 1e-15);
    assert_near(rws_stats_percentile(four, 4, 50), 2.5, 1e-15);
    assert_near(rws_stats_percentile(four, 4, 75), 3.25, 1e-15);
    assert_near(rws_stats_percentile(four, 4, 0), 1, 0);
    assert_near(rws_stats_percentile(four, 4, 100), 4, 0);
    assert_near(rws_stats_percentile(five, 5, 25), 0, 0);
    assert_near(rws_stats_percentile(five, 5, 50), 1, 0);
    /* Rank 4 * 0.9 = 3.6: from 10 to 100 by 0.6. */
    assert_near(rws_stats_percentile(five, 5, 90), 64, 1e-12);
    assert_near(rws_stats_percentile(five, 1, 75), -2, 0);
    assert_true(isnan(rws_stats_percentile(five, 0, 50)));
    const double low[] = {-INFINITY, -INFINITY, 3};
    assert_true(rws_stats_percentile(low, 3, 25) == -INFINITY);
}

static void test_quartiles(void **state)
{
    (void)state;
    /* The third run breaks at its last point and counts nowhere. */
    const double runs[5][3] = {{4, 10, -1}, {2, 20, -1}, {0, 0, NAN}, {1, 40, -1}, {3, 30, -1}};
    double       low[3], median[3], high[3];
    assert_int_equal(rws_stats_quartiles(&runs[0][0], 5, 3, low, median, high), 4);
    const double expected[3][3] = {{1.75, 2.5, 3.25}, {17.5, 25, 32.5}, {-1, -1, -1}};
    for (int i = 0; i < 3; i++) {
        assert_near(low[i], expected[i][0], 1e-14);
        assert_near(median[i], expected[i][1], 1e-14);
        assert_near(high[i], expected[i][2], 1e-14);
    }
    assert_int_equal(rws_stats_quartiles(&runs[0][0], 1, 3, NULL, median, NULL), 1);
    assert_near(median[1], 10, 0);
    assert_int_equal(rws_stats_quartiles(&runs[2][0], 1, 3, low, median, high), 0);
    for (int i = 0; i < 3; i++) assert_true(isnan(low[i]) && isnan(median[i]) && isnan(high[i]));
    assert_int_equal(rws_stats_quartiles(NULL, 0, 3, low, median, high), 0);
    assert_true(isnan(median[0]));
    assert_int_equal(rws_stats_quartiles(&runs[0][0], 5, 0, NULL, NULL, NULL), 5);
}

/* ---- style ---- */

static void test_styles(void **state)
{
    (void)state;
    static const struct {
        const char *method, *name;
        bool        dashed;
    } known[] = {
        {"ws", "WS", false},      {"ww", "WW", false},      {"wws", "WWS", false},
        {"dww", "δ-WW", false},   {"true", "True", false},  {"reinforce", "REINFORCE", true},
        {"rloo", "RLOO", true},   {"nvil", "NVIL", true},   {"vimco", "VIMCO", true},
        {"rebar", "REBAR", true}, {"relax", "RELAX", true}, {"concrete", "Concrete", true},
        {"em", "EM", true},
    };
    int n = 0;
    while (rws_styles[n].method) n++;
    assert_int_equal(n, LENGTH(known));
    for (int i = 0; i < n; i++) {
        const rws_style *style = rws_style_find(known[i].method);
        assert_string_equal(style->method, known[i].method);
        assert_string_equal(rws_style_name(known[i].method), known[i].name);
        assert_int_equal(style->n_dash > 0, known[i].dashed);
        assert_int_equal(style->n_dash % 2, 0);
    }
    /* No two share a colour, and no two dashed ones a dash. */
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            const rws_style *a = &rws_styles[i], *b = &rws_styles[k];
            double           apart = fabs(a->colour.red - b->colour.red) + fabs(a->colour.green - b->colour.green) +
                           fabs(a->colour.blue - b->colour.blue);
            assert_true(apart > 0.15);
            if (a->n_dash) assert_true(a->n_dash != b->n_dash || memcmp(a->dash, b->dash, sizeof a->dash) != 0);
        }
    }
    assert_null(rws_style_find("ppo")->method);
    assert_string_equal(rws_style_name("ppo"), "ppo");
    assert_string_equal(rws_style_name(NULL), "");
    rws_colour white = rws_colour_tint((rws_colour){0.2, 0.4, 0.6}, 1);
    assert_near(white.red + white.green + white.blue, 3, 1e-12);
    /* The palest colour is dark enough to read as text: 4.5 to 1. */
    rws_colour ink = rws_colour_ink(rws_style_find("dww")->colour);
    assert_true(0.2126 * pow(ink.red, 2.2) + 0.7152 * pow(ink.green, 2.2) + 0.0722 * pow(ink.blue, 2.2) < 0.19);
}

static double to_linear(double channel)
{
    return channel <= 0.04045 ? channel / 12.92 : pow((channel + 0.055) / 1.055, 2.4);
}

/* CIE L*a*b* of the colour as seen through a deficiency, a matrix on linear RGB. */
static void seen(rws_colour colour, const double deficiency[3][3], double lab[3])
{
    const double white[3] = {0.9505, 1, 1.089};
    const double to_xyz[3][3] = {{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}};
    const double rgb[3] = {to_linear(colour.red), to_linear(colour.green), to_linear(colour.blue)};
    double       shown[3], f[3];
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += deficiency[i][k] * rgb[k];
        shown[i] = fmin(fmax(sum, 0), 1);
    }
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += to_xyz[i][k] * shown[k];
        f[i] = sum / white[i] > 0.008856 ? cbrt(sum / white[i]) : 7.787 * sum / white[i] + 16.0 / 116;
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

/* The methods of the paper's figures stay apart for everyone (Machado, Oliveira and Fernandes 2009, full severity):
 * 15 in L*a*b* is seen at a glance. */
static void test_colours(void **state)
{
    (void)state;
    static const char *const together[] = {"true", "concrete", "relax", "reinforce", "vimco", "ws", "ww", "dww", "wws"};
    static const double      deficiencies[4][3][3] = {
             {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
             {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
             {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
             {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
    };
    for (int d = 0; d < 4; d++) {
        for (int i = 0; i < LENGTH(together); i++) {
            for (int k = 0; k < i; k++) {
                double a[3], b[3];
                seen(rws_style_find(together[i])->colour, deficiencies[d], a);
                seen(rws_style_find(together[k])->colour, deficiencies[d], b);
                double apart = hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
                if (apart < 15) fail_msg("%s and %s are %g apart (%d)", together[i], together[k], apart, d);
            }
        }
    }
}

/* ---- axes ---- */

static rws_range range_of(rws_axis axis, double padding, int n, const double *values)
{
    rws_extent extent = rws_extent_empty();
    rws_range  range;
    rws_error  err;
    for (int i = 0; i < n; i++) rws_extent_add(&extent, values[i]);
    assert_int_equal(rws_axis_range(&axis, &extent, NULL, padding, &range, &err), RWS_OK);
    assert_true(isfinite(range.low) && isfinite(range.high) && range.low < range.high);
    return range;
}

#define RANGE(axis, padding, ...) range_of(axis, padding, LENGTH(((double[]){__VA_ARGS__})), (double[]){__VA_ARGS__})

static void test_linear_ranges(void **state)
{
    (void)state;
    const rws_axis linear = {0};
    rws_range      r = RANGE(linear, 0, 0, 99000);
    assert_near(r.low, 0, 0);
    assert_near(r.high, 100000, 1e-6); /* the tick that is almost reached */
    r = RANGE(linear, 0.05, 3, 10);
    assert_true(r.low < 3 && r.low > 2 && r.high > 10 && r.high < 11);
    r = RANGE(linear, 0.05, 1, 10);
    assert_near(r.low, 0, 0); /* near zero, so from zero */
    r = RANGE(linear, 0.05, 5, 5, 5);
    assert_true(r.low < 5 && r.high > 5);
    r = RANGE(linear, 0.05, 0, 0);
    assert_near(r.low, -1, 0);
    r = RANGE(linear, 0, NAN, INFINITY, 2, 4, -INFINITY);
    assert_near(r.low, 2, 0);
    assert_near(r.high, 4, 0);
    r = RANGE(linear, 0, NAN);
    assert_near(r.high, 1, 0);
    r = RANGE(linear, 0.05, -1.7e308, 1.7e308);
    assert_true(isfinite(r.high - r.low));
    RANGE(linear, 0.05, 5e-324, 3e-323);
    RANGE(linear, 0.05, 1e9, 1e9 + 1e-7);
    RANGE(linear, 0.05, 1.7e308);

    rws_axis fixed = {.low = 0, .high = 0.3};
    r = RANGE(fixed, 0.05, 7, 9);
    assert_near(r.low, 0, 0);
    assert_near(r.high, 0.3, 0);
    r = RANGE(((rws_axis){.low = 300, .high = NAN}), 0, -500, 640);
    assert_near(r.low, 300, 0);
    assert_true(r.high >= 640);
    /* One end fixed beyond all data. */
    RANGE(((rws_axis){.low = 10, .high = NAN}), 0, 1, 2);
    RANGE(((rws_axis){.low = NAN, .high = -3}), 0, 1, 2);
}

static void test_log_ranges(void **state)
{
    (void)state;
    const rws_axis log = {.scale = RWS_AXIS_LOG};
    rws_range      r = RANGE(log, 0.05, 0.011, 0.9);
    assert_near(r.low, 0.01, 1e-12); /* decades that are almost reached */
    assert_near(r.high, 1, 1e-12);
    r = RANGE(log, 0.05, 0.1, 0.9);
    assert_true(r.low < 0.1); /* data on the decade itself keep their distance */
    r = RANGE(log, 0, 0, -3, 0.02, 5, NAN);
    assert_near(r.low, 0.02, 1e-12); /* what is not positive does not count */
    r = RANGE(log, 0, 1e-300, 1);
    assert_near(log10(r.high / r.low), 12, 1e-9); /* no more than twelve decades */
    r = RANGE(log, 0.05, 0.52, 0.58);
    assert_true(r.low > 0.5 && r.high < 0.6); /* a narrow range stays narrow */
    r = RANGE(log, 0.05, 7, 7);
    assert_true(r.low < 7 && r.high > 7 && r.high / r.low < 10);
    r = RANGE(log, 0.05, 0, -1);
    assert_near(r.low, 0.1, 0);
    RANGE(log, 0.05, 5e-324);
    RANGE(log, 0.05, 1.7e308);
    RANGE(log, 0.05, 5e-324, 1.7e308);

    /* A band widens the range by a decade at most. */
    rws_extent core = rws_extent_empty(), fringe = rws_extent_empty();
    rws_extent_add(&core, 1);
    rws_extent_add(&core, 20);
    rws_extent_add(&fringe, 1e-9);
    rws_extent_add(&fringe, 30);
    assert_int_equal(rws_axis_range(&log, &core, &fringe, 0, &r, NULL), RWS_OK);
    assert_near(r.low, 0.1, 1e-12);
    assert_near(r.high, 30, 1e-9);

    assert_near(rws_range_place(r, 0), -1, 0);
    assert_near(rws_range_place(r, -4), -1, 0);
    assert_near(rws_range_place(r, 0.1), 0, 1e-12);
    assert_near(rws_range_place(r, sqrt(3)), 0.5, 1e-12);
    assert_near(rws_range_place(r, 1e300), 2, 0);
    assert_true(isnan(rws_range_place(r, NAN)) && isnan(rws_range_place(r, INFINITY)));
}

static void test_refused_ranges(void **state)
{
    (void)state;
    const rws_axis bad[] = {
        {.label = "loss", .low = 2, .high = 1},
        {.label = "loss", .low = 0, .high = INFINITY},
        {.label = "loss", .low = 0, .high = 1, .scale = RWS_AXIS_LOG},
        {.label = "loss", .low = NAN, .high = -1, .scale = RWS_AXIS_LOG},
        {.label = "loss", .low = 1, .high = 1 + 1e-15},
        {.label = "loss", .low = 0, .high = 1e-320},
    };
    rws_extent extent = rws_extent_empty();
    rws_range  range;
    for (int i = 0; i < LENGTH(bad); i++) {
        rws_error err = {""};
        assert_int_equal(rws_axis_range(&bad[i], &extent, NULL, 0, &range, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "loss"));
        assert_int_equal(err.text[strlen(err.text) - 1], '.');
    }
}

/* The labels of the major ticks, joined by spaces. */
static const char *labels(rws_axis axis, double low, double high, int wanted, bool ascii)
{
    static char text[1024];
    rws_tick    ticks[RWS_MAX_TICKS];
    rws_range   range = {axis.scale, low, high};
    int         n = rws_axis_ticks(&axis, range, wanted, ascii, ticks);
    assert_true(n >= 0 && n <= RWS_MAX_TICKS);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        double place = rws_range_place(range, ticks[i].value);
        assert_true(place > -1e-5 && place < 1 + 1e-5);
        if (ticks[i].minor) {
            assert_string_equal(ticks[i].text, "");
            continue;
        }
        assert_true(strlen(text) + strlen(ticks[i].text) + 2 < sizeof text);
        if (text[0]) strcat(text, " ");
        strcat(text, ticks[i].text);
    }
    return text;
}

static void test_linear_ticks(void **state)
{
    (void)state;
    const rws_axis linear = {0};
    assert_string_equal(labels(linear, 0, 100000, 6, false), "0 20k 40k 60k 80k 100k");
    assert_string_equal(labels(linear, 0, 100000, 3, false), "0 50k 100k");
    assert_string_equal(labels(linear, 0, 2000, 5, false), "0 500 1000 1500 2000");
    assert_string_equal(labels(linear, 0, 2e6, 5, false), "0 0.5M 1.0M 1.5M 2.0M");
    assert_string_equal(labels(linear, 0, 0.3, 4, false), "0 0.1 0.2 0.3");
    assert_string_equal(labels(linear, 0, 0.3, 7, false), "0 0.05 0.10 0.15 0.20 0.25 0.30");
    assert_string_equal(labels(linear, -1, 1, 5, false), "−1.0 −0.5 0 0.5 1.0");
    assert_string_equal(labels(linear, -1, 1, 5, true), "-1.0 -0.5 0 0.5 1.0");
    assert_string_equal(labels(linear, 0, 4e-5, 5, false), "0 1×10⁻⁵ 2×10⁻⁵ 3×10⁻⁵ 4×10⁻⁵");
    assert_string_equal(labels(linear, 0, 3e12, 4, true), "0 1e12 2e12 3e12");
    /* No suffix where it would need decimals upon decimals. */
    assert_string_equal(labels(linear, 20000, 20004, 5, false), "20000 20001 20002 20003 20004");
    labels(linear, -1e300, 1e300, 5, false);
    labels(linear, 0, 1e-290, 5, false);
    labels(linear, 1e9, 1e9 + 1, 5, false);

    const double K[] = {2, 5, 10, 20, 5000};
    rws_axis     chosen = {.scale = RWS_AXIS_LOG, .ticks = K, .n_ticks = 5};
    assert_string_equal(labels(chosen, 1.8, 22, 5, false), "2 5 10 20");
    assert_string_equal(labels(chosen, 1.8, 5000, 5, false), "2 5 10 20 5000");
}

static void test_log_ticks(void **state)
{
    (void)state;
    const rws_axis log = {.scale = RWS_AXIS_LOG};
    assert_string_equal(labels(log, 0.008, 1.2, 4, false), "10⁻² 10⁻¹ 10⁰");
    assert_string_equal(labels(log, 0.008, 1.2, 4, true), "1e-2 1e-1 1e0");
    assert_string_equal(labels(log, 1e-12, 1, 5, false), "10⁻¹² 10⁻⁹ 10⁻⁶ 10⁻³ 10⁰");
    assert_string_equal(labels(log, 10, 1e5, 2, false), "10¹ 10⁴"); /* two labels, whatever the stride */
    assert_string_equal(labels(log, 0.15, 0.9, 4, false), "0.2 0.5");
    assert_string_equal(labels(log, 0.21, 0.45, 4, false), "0.3 0.4");
    assert_string_equal(labels(log, 1.5e-5, 9e-5, 4, false), "2×10⁻⁵ 5×10⁻⁵");
    assert_true(count(labels(log, 0.51, 0.59, 4, false), ".") >= 2); /* no digit in sight: linear ones */
    labels(log, 1e-307, 1e308, 5, false);

    /* Minor ticks at 2 to 9 between decades. */
    rws_tick ticks[RWS_MAX_TICKS];
    int      n = rws_axis_ticks(&log, (rws_range){RWS_AXIS_LOG, 0.1, 10}, 4, false, ticks), n_minor = 0;
    for (int i = 0; i < n; i++) n_minor += ticks[i].minor;
    assert_int_equal(n_minor, 16);
    assert_int_equal(n, 19);
}

static void test_captions(void **state)
{
    (void)state;
    char text[64];
    assert_string_equal(rws_axis_caption(&(rws_axis){.label = "time", .unit = "s"}, text, sizeof text), "time (s)");
    assert_string_equal(rws_axis_caption(&(rws_axis){.label = "K"}, text, sizeof text), "K");
    assert_string_equal(rws_axis_caption(&(rws_axis){0}, text, sizeof text), "");
}

/* ---- files ---- */

enum { N_POINTS = 40 };

static double xs[N_POINTS], ys[3][N_POINTS], lows[N_POINTS], highs[N_POINTS];

/* Three curves that fall from 1 to the ends given, on a logarithmic scale. */
static void make_curves(rws_curve curves[3], const double ends[3])
{
    static const char *const methods[] = {"vimco", "ws", "dww"};
    for (int i = 0; i < N_POINTS; i++) {
        xs[i] = i * 1000;
        for (int c = 0; c < 3; c++) ys[c][i] = pow(ends[c], i / (N_POINTS - 1.0));
        lows[i] = ys[0][i] * 0.9;
        highs[i] = ys[0][i] * 1.2;
    }
    for (int c = 0; c < 3; c++) curves[c] = (rws_curve){.method = methods[c], .n = N_POINTS, .x = xs, .y = ys[c]};
    curves[0].low = lows;
    curves[0].high = highs;
}

static rws_chart one_panel(const rws_panel *panel, const rws_axis *x, const rws_axis *y)
{
    return (rws_chart){.n_rows = 1, .n_columns = 1, .panels = panel, .x = x, .y = y};
}

static void test_files(void **state)
{
    (void)state;
    rws_curve curves[3];
    make_curves(curves, (double[]){0.5, 0.1, 0.01});
    rws_panel panels[2] = {{"K = 2 & <more>", curves, 3}, {"K = 20", curves, 3}};
    rws_axis  x = {.label = "iteration"}, axes[2] = {x, x},
             y = {.label = "p error", .unit = "nats", .scale = RWS_AXIS_LOG};
    rws_chart   chart = {.title = "Errors", .n_rows = 1, .n_columns = 2, .panels = panels, .x = axes, .y = &y};
    rws_error   err;
    const char *names[] = {"chart.png", "chart.svg", "chart.PDF"};
    for (int i = 0; i < 3; i++) {
        const char *path = in_folder(names[i]);
        size_t      size, again;
        assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
        char *bytes = read_all(path, &size);
        assert_true(size > 3000);
        if (i == 0) {
            assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n", 8);
            /* 7 inches at 220 dots, in the header's big-endian width. */
            assert_int_equal((unsigned char)bytes[18] << 8 | (unsigned char)bytes[19], 1540);
        } else if (i == 1) {
            const char *words[] = {"K = 2 &amp; &lt;more&gt;<",
                                   ">K = 20<",
                                   ">iteration<",
                                   ">p error (nats)<",
                                   ">10⁻²<",
                                   ">40k<",
                                   ">WS<",
                                   ">VIMCO<",
                                   ">δ-WW<",
                                   "<title>Errors</title>"};
            for (int w = 0; w < LENGTH(words); w++) assert_non_null(strstr(bytes, words[w]));
            assert_non_null(strstr(bytes + size - 10, "</svg>"));
        } else {
            assert_memory_equal(bytes, "%PDF", 4);
            assert_null(strstr(bytes, "CreationDate"));
        }
        /* The same again: the same bytes, but for cairo's running number in an SVG. */
        assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
        char *twice = read_all(path, &again);
        if (i != 1) {
            assert_int_equal(size, again);
            assert_memory_equal(bytes, twice, size);
        }
        free(bytes);
        free(twice);
        unlink(path);
    }
    /* remove_folder fails if anything is left beside them. */
}

static void test_refused_files(void **state)
{
    (void)state;
    rws_curve curves[3];
    make_curves(curves, (double[]){0.5, 0.1, 0.01});
    rws_panel   panel = {NULL, curves, 3};
    rws_axis    x = {0}, y = {0};
    rws_chart   chart = one_panel(&panel, &x, &y);
    const char *wrong[] = {"figure.jpg", "figure", "png", "figure.png.gz", "figure.", ""};
    for (int i = 0; i < LENGTH(wrong); i++) {
        rws_error err = {""};
        assert_int_equal(rws_chart_draw(&chart, wrong[i], &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "must end in .png, .svg or .pdf."));
    }
    rws_error err = {""};
    assert_int_equal(rws_chart_draw(&chart, in_folder("no/such/folder.png"), &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "No such file or directory"));

    /* A figure that fails leaves the one before it. */
    const char *path = in_folder("kept.svg");
    FILE       *file = fopen(path, "w");
    fputs("old", file);
    fclose(file);
    y = (rws_axis){.label = "loss", .low = 3, .high = 1};
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    y = (rws_axis){0};
    chart.width = 40;
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "no room"));
    chart.width = 0;
    chart.height = 1e7;
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    chart.height = 0;
    chart.dpi = -1;
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    size_t size;
    char  *bytes = read_all(path, &size);
    assert_string_equal(bytes, "old");
    free(bytes);
    unlink(path);
}

/* ---- pictures ---- */

typedef struct {
    cairo_surface_t *surface;
    int              width, height;
} picture;

static picture open_picture(const char *path)
{
    picture p = {.surface = cairo_image_surface_create_from_png(path)};
    assert_int_equal(cairo_surface_status(p.surface), CAIRO_STATUS_SUCCESS);
    p.width = cairo_image_surface_get_width(p.surface);
    p.height = cairo_image_surface_get_height(p.surface);
    return p;
}

/* Whether the pixel shows the method's colour, unmixed. */
static bool shows(picture p, int x, int y, const char *method)
{
    const unsigned char *row =
        cairo_image_surface_get_data(p.surface) + (size_t)y * cairo_image_surface_get_stride(p.surface);
    uint32_t pixel;
    memcpy(&pixel, row + 4 * (size_t)x, sizeof pixel);
    rws_colour c = rws_style_find(method)->colour;
    return fabs((pixel >> 16 & 255) - c.red * 255) < 3 && fabs((pixel >> 8 & 255) - c.green * 255) < 3 &&
           fabs((pixel & 255) - c.blue * 255) < 3;
}

/* The box around the method's colour, in pixels, and for each column of pixels whether it is there. */
static bool find_colour(picture p, const char *method, int box[4], bool *columns)
{
    box[0] = p.width, box[1] = -1, box[2] = p.height, box[3] = -1;
    for (int x = 0; x < p.width; x++) {
        columns[x] = false;
        for (int y = 0; y < p.height; y++) {
            if (!shows(p, x, y, method)) continue;
            columns[x] = true;
            box[0] = x < box[0] ? x : box[0];
            box[1] = x > box[1] ? x : box[1];
            box[2] = y < box[2] ? y : box[2];
            box[3] = y > box[3] ? y : box[3];
        }
    }
    return box[1] >= 0;
}

static void test_gaps(void **state)
{
    (void)state;
    double x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i;
        y[i] = 3;
    }
    /* A gap in the middle, and a lone point in a gap of its own near the end. */
    for (int i = 40; i < 60; i++) y[i] = NAN;
    y[80] = y[84] = NAN;
    y[81] = y[83] = INFINITY;
    rws_curve curve = {.method = "ws", .n = 100, .x = x, .y = y};
    rws_panel panel = {NULL, &curve, 1};
    rws_axis  axis = {0}, level = {.low = 0, .high = 6};
    rws_chart chart = one_panel(&panel, &axis, &level);
    chart.names = RWS_NAMES_NONE;
    rws_error   err;
    const char *path = in_folder("gaps.png");
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
    picture p = open_picture(path);
    bool   *columns = calloc(p.width, sizeof *columns);
    int     box[4], gaps = 0, widest = 0;
    assert_true(find_colour(p, "ws", box, columns));
    for (int at = box[0], run = 0; at <= box[1]; at++) {
        run = columns[at] ? 0 : run + 1;
        gaps += run == 8;
        widest = run > widest ? run : widest;
    }
    assert_int_equal(gaps, 3);
    /* 21 of 99 steps are missing in the middle. */
    assert_true(abs(widest - (box[1] - box[0]) * 21 / 99) < 10);
    free(columns);
    cairo_surface_destroy(p.surface);
    unlink(path);
}

static void test_clipping(void **state)
{
    (void)state;
    double x[30], y[30];
    for (int i = 0; i < 30; i++) {
        x[i] = i;
        y[i] = i < 15 ? 0.5 : i < 20 ? 1e-9 : 0;
    }
    rws_curve curve = {.method = "ws", .n = 30, .x = x, .y = y, .low = y, .high = y};
    rws_panel panel = {NULL, &curve, 1};
    rws_axis  axis = {.label = "iteration"}, error = {.scale = RWS_AXIS_LOG, .low = 1e-3, .high = 1};
    rws_chart chart = one_panel(&panel, &axis, &error);
    chart.names = RWS_NAMES_NONE;
    rws_error   err;
    const char *path = in_folder("clipped.png");
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
    picture p = open_picture(path);
    bool   *columns = calloc(p.width, sizeof *columns);
    int     box[4];
    assert_true(find_colour(p, "ws", box, columns));
    /* It leaves through the floor half way, and does not reach the labels below. */
    assert_true(box[1] < p.width * 6 / 10);
    assert_true(box[3] > p.height / 2 && box[3] < p.height - 70);
    free(columns);
    cairo_surface_destroy(p.surface);
    unlink(path);
}

/* Where an SVG has the text: the first place its invisible copy says. */
static void find_text(const char *svg, const char *text, double *x, double *y)
{
    char piece[64];
    snprintf(piece, sizeof piece, ">%s</text>", text);
    const char *at = strstr(svg, piece);
    assert_non_null(at);
    while (strncmp(at, "<text", 5) != 0) at--;
    assert_int_equal(sscanf(at, "<text x=\"%lf\" y=\"%lf\"", x, y), 2);
}

static void test_names(void **state)
{
    (void)state;
    rws_curve   curves[3];
    rws_error   err;
    const char *path = in_folder("names.svg");
    /* Apart: at the ends. Together: a legend above. Two of one name: a legend as well. */
    const double ends[3][3] = {{0.5, 0.1, 0.01}, {0.1, 0.1001, 0.1002}, {0.5, 0.1, 0.01}};
    for (int i = 0; i < 3; i++) {
        make_curves(curves, ends[i]);
        if (i == 2) curves[2].method = "ws";
        rws_panel panel = {"title", curves, 3};
        rws_axis  x = {0}, y = {.scale = RWS_AXIS_LOG};
        rws_chart chart = one_panel(&panel, &x, &y);
        chart.height = i == 1 ? 20 : 0;
        assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
        size_t size;
        char  *svg = read_all(path, &size);
        double name_x, name_y, title_x, title_y;
        find_text(svg, "VIMCO", &name_x, &name_y);
        find_text(svg, "title", &title_x, &title_y);
        assert_int_equal(count(svg, ">VIMCO</text>"), 1);
        assert_int_equal(count(svg, ">WS</text>"), 1);
        if (i == 0) {
            double other_x, other_y;
            assert_true(name_x > 400 && name_y > title_y);
            find_text(svg, "WS", &other_x, &other_y);
            assert_true(other_y > name_y + 9 && other_x == name_x);
        } else {
            assert_true(name_y < title_y);
        }
        free(svg);
    }
    unlink(path);
}

/* Whatever the data, every file type is drawn. */
static void draw_everywhere(const rws_chart *chart)
{
    const char *names[] = {"edge.png", "edge.svg", "edge.pdf"};
    for (int i = 0; i < 3; i++) {
        rws_error   err = {""};
        const char *path = in_folder(names[i]);
        if (rws_chart_draw(chart, path, &err) != RWS_OK) fail_msg("%s", err.text);
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_true(status.st_size > 500);
        unlink(path);
    }
}

static void test_edge_cases(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 3};
    const double ys_[][4] = {
        {1, 1, 1, 1},
        {0, 0, 0, 0},
        {NAN, NAN, NAN, NAN},
        {NAN, 2, NAN, NAN},
        {1e-300, 1, 1e300, 1e308},
        {-1.7e308, 1.7e308, 0, INFINITY},
        {5e-324, 1e-323, 5e-324, 0},
        {1e9, 1e9 + 1e-6, 1e9, 1e9},
        {-5, -4, -3, -2},
    };
    rws_axis axis = {.label = "iteration"};
    for (int log = 0; log < 2; log++) {
        rws_axis level = {.label = "a label that is much too long to stand beside one panel",
                          .scale = log ? RWS_AXIS_LOG : 0};
        for (int i = 0; i < LENGTH(ys_); i++) {
            for (int n = 0; n <= 4; n += i ? 4 : 1) {
                rws_curve curve = {.method = "ws", .n = n, .x = x, .y = ys_[i], .low = ys_[i], .high = ys_[i]};
                rws_panel panel = {NULL, &curve, 1};
                rws_chart chart = one_panel(&panel, &axis, &level);
                draw_everywhere(&chart);
            }
        }
    }
    rws_panel panels[4] = {{0}};
    rws_axis  axes[2] = {{0}};
    rws_chart chart = {.n_rows = 2, .n_columns = 2, .panels = panels, .x = axes, .y = axes};
    draw_everywhere(&chart);
    rws_axis own[4] = {{0}};
    chart.y = own;
    chart.own_y = true;
    draw_everywhere(&chart);
    /* Text that is not UTF-8, has control characters, or comes from a method nobody knows. */
    rws_curve curve = {.method = "ppo", .label = "a\x01\xff<b>&\t", .n = 4, .x = x, .y = x, .line = RWS_LINE_DASHED};
    panels[0] = (rws_panel){"two\nlines", &curve, 1};
    draw_everywhere(&chart);
}

static void test_no_data(void **state)
{
    (void)state;
    rws_curve   curve = {.method = "ws"};
    rws_panel   panel = {NULL, &curve, 1};
    rws_axis    axis = {0};
    rws_chart   chart = one_panel(&panel, &axis, &axis);
    rws_error   err;
    const char *path = in_folder("none.svg");
    assert_int_equal(rws_chart_draw(&chart, path, &err), RWS_OK);
    size_t size;
    char  *svg = read_all(path, &size);
    assert_non_null(strstr(svg, ">no data<"));
    free(svg);
    unlink(path);
}

/* ---- bars and squares ---- */

static void test_bars(void **state)
{
    (void)state;
    const char  *groups[] = {"NP PP", "astronomers", "ears"};
    const double truth[] = {0.4, 0.1, 0.18}, ws[] = {0.38, NAN, -0.2}, low[] = {0.3, 0, -0.3}, high[] = {0.5, 0, -0.1};
    rws_bar_series series[] = {
        {"true", NULL, truth, NULL, NULL}, {"ws", NULL, ws, low, high}, {"vimco", NULL, truth, NULL, NULL}};
    rws_bars    bars = {.title = "NP",
                        .n_groups = 3,
                        .n_series = 3,
                        .groups = groups,
                        .series = series,
                        .numbers = true,
                        .y = {.label = "probability"}};
    rws_error   err;
    const char *names[] = {"bars.png", "bars.svg", "bars.pdf"};
    for (int i = 0; i < 3; i++) {
        const char *path = in_folder(names[i]);
        assert_int_equal(rws_bars_draw(&bars, path, &err), RWS_OK);
        size_t size;
        char  *bytes = read_all(path, &size);
        assert_true(size > 3000);
        const char *words[] = {">astronomers<", ">NP PP<", ">probability<", ">True<", ">VIMCO<", ">0.38<"};
        for (int w = 0; i == 1 && w < LENGTH(words); w++) assert_non_null(strstr(bytes, words[w]));
        free(bytes);
        unlink(path);
    }
    /* Names too long for their groups are slanted, not lost. */
    const char *path = in_folder("bars.svg");
    bars.width = 160;
    assert_int_equal(rws_bars_draw(&bars, path, &err), RWS_OK);
    size_t size;
    char  *svg = read_all(path, &size);
    assert_non_null(strstr(svg, "rotate(-35.00"));
    free(svg);
    unlink(path);

    bars.n_groups = 0;
    assert_int_equal(rws_bars_draw(&bars, path, &err), RWS_OK);
    bars.n_series = 0;
    assert_int_equal(rws_bars_draw(&bars, path, &err), RWS_OK);
    unlink(path);
    bars.y.scale = RWS_AXIS_LOG;
    assert_int_equal(rws_bars_draw(&bars, path, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_bars_draw(&bars, "bars.gif", &err), RWS_BAD_INPUT);
}

static void test_hinton(void **state)
{
    (void)state;
    const rws_strip   strips[] = {{"true", NULL}, {"ws", NULL}};
    const char       *rows[] = {"iteration 0"}, *columns[] = {"p(z)", "q(z)"};
    const rws_heading heading = {"K = 2", 0, 2};
    /* The first panel: one large square and three of a quarter of its side; WS has what is too small to draw. */
    const double values[2][2][5] = {{{0.64, 0, 0.04, 0.04, 0.04}, {1e-3, 0, NAN, 1e-9, -1}},
                                    {{0.2, 0.2, 0.2, 0.2, 0.2}, {0, 0, 1, 0, 0}}};
    rws_hinton   hinton = {.title = "GMM",
                           .n_rows = 1,
                           .n_columns = 2,
                           .n_strips = 2,
                           .n_values = 5,
                           .rows = rows,
                           .columns = columns,
                           .headings = &heading,
                           .n_headings = 1,
                           .strips = strips,
                           .values = &values[0][0][0],
                           .x_label = "z"};
    rws_error    err;
    const char  *path = in_folder("hinton.png");
    assert_int_equal(rws_hinton_draw(&hinton, path, &err), RWS_OK);
    picture p = open_picture(path);
    bool   *found = calloc(p.width, sizeof *found);
    int     box[4];
    /* WS is drawn in the second panel only (its name is darker than its colour). */
    assert_true(find_colour(p, "ws", box, found));
    assert_true(box[0] > p.width / 2);
    assert_true(abs((box[1] - box[0]) - (box[3] - box[2])) <= 1);
    int n_pixels = 0;
    for (int x = box[0]; x <= box[1]; x++) n_pixels += found[x];
    assert_int_equal(n_pixels, box[1] - box[0] + 1);
    free(found);
    cairo_surface_destroy(p.surface);
    unlink(path);

    path = in_folder("hinton.svg");
    assert_int_equal(rws_hinton_draw(&hinton, path, &err), RWS_OK);
    size_t      size;
    char       *svg = read_all(path, &size);
    const char *words[] = {">True<", ">WS<", ">K = 2<", ">p(z)<", ">iteration 0<", ">z<"};
    for (int w = 0; w < LENGTH(words); w++) assert_non_null(strstr(svg, words[w]));
    free(svg);
    unlink(path);
    path = in_folder("hinton.pdf");
    assert_int_equal(rws_hinton_draw(&hinton, path, &err), RWS_OK);
    unlink(path);
    hinton.width = 60;
    assert_int_equal(rws_hinton_draw(&hinton, path, &err), RWS_BAD_INPUT);
    assert_int_equal(rws_hinton_draw(&hinton, "hinton.txt", &err), RWS_BAD_INPUT);
}

/* ---- terminal ---- */

/* What the chart prints; the caller frees it. */
static char *printed(const rws_terminal *terminal)
{
    /* Static, since the stream keeps their addresses: gcc 12 takes the text itself for a pointer to them. */
    static char  *text;
    static size_t size;
    rws_error     err = {""};
    FILE         *file = open_memstream(&text, &size);
    assert_non_null(file);
    if (rws_terminal_draw(terminal, file, &err) != RWS_OK) fail_msg("%s", err.text);
    fclose(file);
    return text;
}

static void test_terminal_known(void **state)
{
    (void)state;
    const double    x[] = {0, 10, 20}, up[] = {0, 5, 10}, top[] = {10, 10, 10}, bottom[] = {0, 0, NAN};
    const rws_curve diagonal = {.method = "dww", .n = 3, .x = x, .y = up};
    rws_terminal    t = {.title = "T",
                         .curves = &diagonal,
                         .n_curves = 1,
                         .x = {.label = "x"},
                         .y = {.label = "y", .low = 0, .high = 10},
                         .width = 23,
                         .height = 10};
    /* Thirteen columns and five rows: the row falls by one in three columns, from 4 - 0/3 to 4 - 12/3. */
    char *text = printed(&t);
    assert_string_equal(text, "         T\n"
                              "y\n"
                              "10+           ** * d-WW\n"
                              "  |        ***\n"
                              "  |     ***\n"
                              "  |  ***\n"
                              " 0+**\n"
                              "  ++-----------+\n"
                              "   0          20\n"
                              "         x\n");
    free(text);

    /* The highest of four dots and the lowest; the second ends half way, where x is 10 of 20: dot 15 of 0 to 29. */
    const rws_curve flat[] = {{.method = "ww", .n = 3, .x = x, .y = top},
                              {.method = "ws", .n = 3, .x = x, .y = bottom}};
    t = (rws_terminal){
        .curves = flat, .n_curves = 2, .y = {.low = 0, .high = 10}, .width = 21, .height = 5, .unicode = true};
    text = printed(&t);
    assert_string_equal(text, "10┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉ WW\n"
                              "  │\n"
                              " 0┤⣀⣀⣀⣀⣀⣀⣀⣀        WS\n"
                              "  └┬─────────────┬\n"
                              "   0            20\n");
    free(text);

    /* With colour: each curve in its own, and the terminal's restored behind it. */
    t.n_curves = 1;
    t.colour = true;
    text = printed(&t);
    assert_non_null(strstr(text, "┤\033[38;5;25m⠉"));
    assert_non_null(strstr(text, "⠉\033[0m \033[38;5;25mWW\033[0m\n"));
    free(text);
}

static void test_terminal_edges(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 3},
                 ys_[][4] = {{1, 1, 1, 1}, {NAN, 2, NAN, NAN}, {1e-300, 1, 1e300, 0}, {-1.7e308, 1.7e308, 0, 1}};
    for (int i = 0; i < LENGTH(ys_); i++) {
        for (int variant = 0; variant < 8; variant++) {
            rws_curve    curve = {.method = "vimco", .label = "a\033[2Jb\xff", .n = 4, .x = x, .y = ys_[i]};
            rws_terminal t = {.curves = &curve,
                              .n_curves = 1,
                              .unicode = variant & 1,
                              .colour = variant & 2,
                              .y.scale = variant & 4 ? RWS_AXIS_LOG : RWS_AXIS_LINEAR};
            char        *text = printed(&t);
            int          n_lines = count(text, "\n");
            assert_int_equal(n_lines, 24);
            assert_null(strstr(text, "\033[2J"));
            assert_int_equal(strstr(text, "\033[38;5;") != NULL, (variant & 2) != 0);
            for (const char *c = text; *c && !(variant & 1); c++)
                assert_true(*c == '\n' || *c == '\033' || (*c >= 32 && *c < 127));
            free(text);
        }
    }
    /* Black stays the terminal's own colour; without curves it says so. */
    rws_curve    truth = {.method = "true", .n = 4, .x = x, .y = x};
    rws_terminal t = {.curves = &truth, .n_curves = 1, .unicode = true, .colour = true, .width = 40, .height = 9};
    char        *text = printed(&t);
    assert_null(strstr(text, "\033[38;5;"));
    free(text);
    t.n_curves = 0;
    text = printed(&t);
    assert_non_null(strstr(text, "no data"));
    free(text);

    rws_error err = {""};
    t.width = 10;
    assert_int_equal(rws_terminal_draw(&t, stdout, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "too small"));
    t.width = 80;
    t.height = 3;
    assert_int_equal(rws_terminal_draw(&t, stdout, &err), RWS_BAD_INPUT);
    t.height = 0;
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(rws_terminal_draw(&t, full, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "cannot be written"));
        fclose(full);
    }
}

/* ---- trees and images ---- */

static void test_trees(void **state)
{
    (void)state;
    char words[64];
    assert_int_equal(rws_trees_words("(S (NP stars) (VP (V saw) (NP ears)))", words, sizeof words), 14);
    assert_string_equal(words, "stars saw ears");
    assert_int_equal(rws_trees_words("(S (NP stars) (VP (V saw) (NP ears)))", words, 6), 14);
    assert_string_equal(words, "stars");
    assert_int_equal(rws_trees_words("(S (NP stars) VP)", words, sizeof words), 8); /* unexpanded */
    assert_string_equal(words, "stars VP");

    const char *const wrong[] = {"",  "S",       "(S",      "(S))",      "(S) (S)", "(S (NP)",
                                 ")", "( (NP))", "stars x", "(S) stars", "(S ()) "};
    rws_error         err = {""};
    for (int i = 0; i < LENGTH(wrong); i++) {
        const rws_drawn_tree tree = {wrong[i], NULL, NULL};
        const rws_trees      figure = {.trees = &tree, .n_trees = 1};
        assert_int_equal(rws_trees_words(wrong[i], words, sizeof words), 0);
        assert_int_equal(rws_trees_draw(&figure, in_folder("wrong.svg"), &err), RWS_BAD_INPUT);
        assert_int_equal(access(in_folder("wrong.svg"), F_OK), -1);
    }

    /* Children in order from left to right, below their parent, which is over their middle. */
    const rws_drawn_tree tree = {"(S (NP stars) (VP (V saw) (NP ears)))", "0.5", "ws"};
    const rws_trees      figure = {.title = "A tree", .trees = &tree, .n_trees = 1};
    size_t               size;
    double               x[6], y[6];
    assert_int_equal(rws_trees_draw(&figure, in_folder("tree.svg"), &err), RWS_OK);
    char             *svg = read_all(in_folder("tree.svg"), &size);
    const char *const labels[] = {"S", "VP", "stars", "saw", "ears", "V"};
    for (int i = 0; i < 6; i++) find_text(svg, labels[i], &x[i], &y[i]);
    assert_true(x[2] < x[3] && x[3] < x[4]);
    assert_true(y[0] < y[1] && y[1] < y[5] && y[5] < y[3]);
    assert_true(x[1] > x[3] && x[1] < x[4]);
    assert_non_null(strstr(svg, ">0.5<"));
    free(svg);
    unlink(in_folder("tree.svg"));

    /* A deep one, and one far wider than the page, become smaller. */
    static char deep[8000], wide[8000];
    strcpy(wide, "(S");
    for (int i = 0; i < 400; i++) strcat(deep, "(A "), strcat(wide, " (N word)");
    strcat(deep, "x");
    for (int i = 0; i < 400; i++) strcat(deep, ")");
    strcat(wide, ")");
    const rws_drawn_tree odd[] = {{deep, "deep", NULL}, {wide, "wide", "vimco"}};
    const rws_trees      both = {.trees = odd, .n_trees = 2};
    const rws_trees      none = {.title = "none"};
    assert_int_equal(rws_trees_draw(&both, in_folder("odd.pdf"), &err), RWS_OK);
    assert_int_equal(rws_trees_draw(&none, in_folder("none.png"), &err), RWS_OK);
    unlink(in_folder("odd.pdf"));
    unlink(in_folder("none.png"));
}

static void test_images(void **state)
{
    (void)state;
    /* two images of 2 x 2 pixels: black, white, grey, nothing; and all white */
    const double      values[] = {0, 1, 0.5, NAN, 2, 2, 2, 2};
    const char *const names[] = {"a", "b"};
    rws_images        figure = {
               .n_rows = 1, .n_columns = 2, .wide = 2, .high = 2, .values = values, .columns = names, .dpi = 72};
    rws_error err = {""};
    assert_int_equal(rws_images_draw(&figure, in_folder("images.png"), &err), RWS_OK);
    cairo_surface_t *s = cairo_image_surface_create_from_png(in_folder("images.png"));
    const int        width = cairo_image_surface_get_width(s), height = cairo_image_surface_get_height(s);
    const int        stride = cairo_image_surface_get_stride(s);
    int              black = 0, grey = 0, white = 0;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            const uint32_t pixel =
                ((const uint32_t *)(void *)(cairo_image_surface_get_data(s) + y * stride))[x] & 0xffffff;
            black += pixel == 0;
            grey += pixel == 0x808080;
            white += pixel == 0xffffff;
        }
    }
    cairo_surface_destroy(s);
    unlink(in_folder("images.png"));
    /* an image is 90 points wide, so a pixel covers 45 x 45, but for its frame */
    assert_true(black > 1800 && black < 2100);
    assert_true(grey > 1800 && grey < 2100);
    assert_true(white > 5 * 1900);
    figure.n_columns = 1000;
    assert_int_equal(rws_images_draw(&figure, in_folder("images.png"), &err), RWS_BAD_INPUT);
}

/* One pixel: a colour and how opaque it is, as PNG; what it is in grey. */
static int grey_of(double red, double green, double blue, double alpha)
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 3, 2);
    cairo_t         *cairo = cairo_create(s);
    cairo_set_source_rgba(cairo, red, green, blue, alpha);
    cairo_rectangle(cairo, 2, 1, 1, 1);
    cairo_fill(cairo);
    cairo_destroy(cairo);
    assert_int_equal(cairo_surface_write_to_png(s, in_folder("one.png")), CAIRO_STATUS_SUCCESS);
    cairo_surface_destroy(s);
    rws_grey  picture;
    rws_error err = {""};
    assert_int_equal(rws_png_read(in_folder("one.png"), &picture, &err), RWS_OK);
    assert_true(picture.wide == 3 && picture.high == 2);
    for (int i = 0; i < 5; i++) assert_int_equal(picture.grey[i], 0);
    const int grey = picture.grey[5];
    rws_png_release(&picture);
    assert_null(picture.grey);
    return grey;
}

static void test_png(void **state)
{
    (void)state;
    assert_true(rws_png_is("a/b.png") && rws_png_is("B.PNG") && !rws_png_is("png") && !rws_png_is("a.png.gz"));
    assert_int_equal(grey_of(1, 1, 1, 1), 255);
    assert_int_equal(grey_of(1, 1, 1, 0.5), 128);
    assert_int_equal(grey_of(1, 1, 1, 0), 0);
    assert_in_range(grey_of(0, 1, 0, 1), 149, 151);
    assert_in_range(grey_of(1, 0, 0, 1), 76, 78);
    assert_in_range(grey_of(0, 0, 1, 1), 28, 30);

    /* every file that is cut short is refused, and so is one that announces too much */
    rws_grey    picture;
    rws_error   err;
    const char *path = in_folder("one.png");
    FILE       *file = fopen(path, "rb");
    char        bytes[4096];
    size_t      size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t n = 0; n < size - 12; n++) { /* behind that is the end's own chunk */
        file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, n, file), n);
        fclose(file);
        err.text[0] = '\0';
        assert_int_equal(rws_png_read(path, &picture, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "one.png"));
        assert_null(picture.grey);
    }
    bytes[18] = 0x7f;
    file = fopen(path, "wb");
    fwrite(bytes, 1, size, file);
    fclose(file);
    assert_int_equal(rws_png_read(path, &picture, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "32515 x 2 pixels"));
    unlink(path);
    assert_int_equal(rws_png_read(path, &picture, &err), RWS_BAD_INPUT);
}

/* ---- gathering ---- */

static void test_gather(void **state)
{
    (void)state;
    double            iterations[] = {1, 10, 20}, seconds[3][3] = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
    double            values[3][3] = {{5, 3, 1}, {6, 4, 2}, {7, 5, 3}};
    const char       *K[] = {"2", "2", "20"};
    rws_result_key    keys[3];
    rws_series        series[3];
    rws_result        results[3];
    const rws_result *runs[3];
    rws_gathered      g;
    rws_error         err = {""};
    for (int i = 0; i < 3; i++) {
        keys[i] = (rws_result_key){"particles", K[i]};
        series[i] = (rws_series){"loss", 3, iterations, seconds[i], values[i]};
        results[i] = (rws_result){.name = "r", .n_keys = 1, .keys = &keys[i], .n_series = 1, .series = &series[i]};
        runs[i] = &results[i];
    }
    rws_gather(runs, 3, "loss", RWS_X_ITERATION, &g);
    assert_int_equal(g.n, 3);
    assert_int_equal(g.n_runs, 3);
    assert_true(g.x[1] == 10 && g.median[1] == 4 && g.low[1] == 3.5 && g.high[2] == 2.5);
    assert_non_null(rws_gathered_curve(&g, "ww").low);
    rws_gathered_release(&g);
    rws_gather(runs, 3, "loss", RWS_X_SECONDS, &g);
    assert_true(g.x[2] == 6);
    rws_gathered_release(&g);
    rws_gather(runs, 3, "nothing", RWS_X_ITERATION, &g);
    assert_int_equal(g.n, 0);

    series[2].n = 2; /* it has not got as far */
    rws_gather(runs, 3, "loss", RWS_X_ITERATION, &g);
    assert_int_equal(g.n_runs, 2);
    assert_true(g.median[2] == 1.5);
    rws_gathered_release(&g);
    rws_gather(runs + 2, 1, "loss", RWS_X_ITERATION, &g);
    assert_null(rws_gathered_curve(&g, "ww").low); /* one run has no quartiles */
    rws_gathered_release(&g);

    assert_int_equal(rws_gather_over(runs, 3, "particles", "loss", &g, &err), RWS_OK);
    assert_int_equal(g.n, 2);
    assert_true(g.x[0] == 2 && g.x[1] == 20 && g.median[0] == 1.5 && g.median[1] == 5);
    rws_gathered_release(&g);
    keys[1].value = "many";
    assert_int_equal(rws_gather_over(runs, 3, "particles", "loss", &g, &err), RWS_BAD_INPUT);
    rws_gathered_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),    cmocka_unit_test(test_quartiles),
        cmocka_unit_test(test_styles),         cmocka_unit_test(test_colours),
        cmocka_unit_test(test_linear_ranges),  cmocka_unit_test(test_log_ranges),
        cmocka_unit_test(test_refused_ranges), cmocka_unit_test(test_linear_ticks),
        cmocka_unit_test(test_log_ticks),      cmocka_unit_test(test_captions),
        cmocka_unit_test(test_files),          cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_gaps),           cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_edge_cases),
        cmocka_unit_test(test_no_data),        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_hinton),         cmocka_unit_test(test_terminal_known),
        cmocka_unit_test(test_terminal_edges), cmocka_unit_test(test_trees),
        cmocka_unit_test(test_images),         cmocka_unit_test(test_png),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests_name("figure", tests, make_folder, remove_folder);
}
