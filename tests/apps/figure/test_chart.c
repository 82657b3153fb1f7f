/* test_chart.c - the files of every type, and the pictures where a mistake would show: gaps, clipping, names. */
#include "drawn.h"

#include "figure/chart.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
        assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
        char *bytes = slurp(path, &size);
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
            for (int w = 0; w < COUNT(words); w++) assert_non_null(strstr(bytes, words[w]));
            assert_non_null(strstr(bytes + size - 10, "</svg>"));
        } else {
            assert_memory_equal(bytes, "%PDF", 4);
            assert_null(strstr(bytes, "CreationDate"));
        }
        /* The same again: the same bytes, but for cairo's running number in an SVG. */
        assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
        char *twice = slurp(path, &again);
        if (i != 1) {
            assert_int_equal(size, again);
            assert_memory_equal(bytes, twice, size);
        }
        free(bytes);
        free(twice);
        unlink(path);
    }
    /* folder_remove_empty fails if anything is left beside them. */
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
    for (int i = 0; i < COUNT(wrong); i++) {
        rws_error err = {""};
        assert_int_equal(rws__chart_draw(&chart, wrong[i], &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "must end in .png, .svg or .pdf."));
    }
    rws_error err = {""};
    assert_int_equal(rws__chart_draw(&chart, in_folder("no/such/folder.png"), &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "No such file or directory"));

    /* A figure that fails leaves the one before it. */
    const char *path = in_folder("kept.svg");
    spill(path, "old", 3);
    y = (rws_axis){.label = "loss", .low = 3, .high = 1};
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    y = (rws_axis){0};
    chart.width = 40;
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "no room"));
    chart.width = 0;
    chart.height = 1e7;
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    chart.height = 0;
    chart.dpi = -1;
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_BAD_INPUT);
    size_t size;
    char  *bytes = slurp(path, &size);
    assert_string_equal(bytes, "old");
    free(bytes);
    unlink(path);
}

/* ---- pictures ---- */

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
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
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
    close_picture(p);
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
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
    picture p = open_picture(path);
    bool   *columns = calloc(p.width, sizeof *columns);
    int     box[4];
    assert_true(find_colour(p, "ws", box, columns));
    /* The curve leaves the panel at its lower edge half way, and does not reach the labels below. */
    assert_true(box[1] < p.width * 6 / 10);
    assert_true(box[3] > p.height / 2 && box[3] < p.height - 70);
    free(columns);
    close_picture(p);
    unlink(path);
}

/* Draws a rising curve and one that starts far below it. Returns the height of the first in pixels; *height becomes that of the
 * picture. */
static int height_of_rising(bool robust, const char *note, int *height)
{
    double x[30], y[30], far[30];
    for (int i = 0; i < 30; i++) {
        x[i] = i;
        y[i] = i / 29.0;
        far[i] = i < 3 ? -1000 : 0.5;
    }
    const rws_curve curves[] = {{.method = "ws", .n = 30, .x = x, .y = y}, {.method = "ww", .n = 30, .x = x, .y = far}};
    const rws_panel panel = {NULL, curves, 2};
    const rws_axis  axis = {.label = "iteration"}, error = {.label = "log evidence", .robust = robust};
    rws_chart       chart = one_panel(&panel, &axis, &error);
    chart.names = RWS_NAMES_NONE;
    chart.own_y = true;
    chart.title = "A title";
    chart.note = note;
    rws_error   err;
    const char *path = in_folder("robust.png");
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
    picture p = open_picture(path);
    bool   *columns = calloc(p.width, sizeof *columns);
    int     box[4];
    assert_true(find_colour(p, "ws", box, columns));
    *height = p.height;
    free(columns);
    close_picture(p);
    unlink(path);
    return box[3] - box[2];
}

/* A curve that is far away does not flatten the others on a robust axis; a note makes the picture higher; two runs have no band. */
static void test_robust(void **state)
{
    (void)state;
    int plain, noted;
    assert_true(height_of_rising(true, NULL, &plain) > plain / 3);
    assert_true(height_of_rising(false, "2 seeds", &noted) < noted / 20);
    assert_true(noted > plain + 10);
    double             values[] = {1, 2};
    const rws_gathered two = {.n = 2, .n_runs = 2, .x = values, .median = values, .low = values, .high = values};
    rws_gathered       three = two;
    three.n_runs = 3;
    assert_null(rws__gathered_curve(&two, "ws").low);
    assert_non_null(rws__gathered_curve(&three, "ws").low);
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
        assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
        size_t size;
        char  *svg = slurp(path, &size);
        double name_x, name_y, title_x, title_y;
        find_text(svg, "VIMCO", &name_x, &name_y);
        find_text(svg, "title", &title_x, &title_y);
        assert_int_equal(occurrences(svg, ">VIMCO</text>"), 1);
        assert_int_equal(occurrences(svg, ">WS</text>"), 1);
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

/* Every file type is drawn for any data. */
static void draw_everywhere(const rws_chart *chart)
{
    const char *names[] = {"edge.png", "edge.svg", "edge.pdf"};
    for (int i = 0; i < 3; i++) {
        rws_error   err = {""};
        const char *path = in_folder(names[i]);
        if (rws__chart_draw(chart, path, &err) != RWS_OK) fail_msg("%s", err.text);
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
        for (int i = 0; i < COUNT(ys_); i++) {
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
    /* Text that is not UTF-8, has control characters, or belongs to an unknown method. */
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
    assert_int_equal(rws__chart_draw(&chart, path, &err), RWS_OK);
    size_t size;
    char  *svg = slurp(path, &size);
    assert_non_null(strstr(svg, ">no data<"));
    free(svg);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),      cmocka_unit_test(test_refused_files), cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_robust),     cmocka_unit_test(test_clipping),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_edge_cases), cmocka_unit_test(test_no_data),
    };
    return cmocka_run_group_tests_name("chart", tests, folder_make, folder_remove_empty);
}
