/* test_figure.c - statistics and styles against values worked out by hand; bars, squares and trees at their places;
 * runs that make a curve, and are gathered into it. Axes, charts, images and the terminal have tests of their own. */
#include "drawn.h"

#include "figure/bars.h"
#include "figure/bundle.h"
#include "figure/curve.h"
#include "figure/hinton.h"
#include "figure/style.h"
#include "figure/trees.h"
#include "rws_results.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- quartiles ---- */

static void test_quartiles(void **state)
{
    (void)state;
    double              four[] = {4, 1, 3, 2}, five[] = {NAN, 100, 0, 10, 1, -2}, low[] = {-INFINITY, 3, -INFINITY};
    const rws_quartiles q = rws_quartiles_of(four, 4), r = rws_quartiles_of(five, 6), s = rws_quartiles_of(five, 1);
    assert_near(q.low, 1.75, 1e-15);
    assert_near(q.median, 2.5, 1e-15);
    assert_near(q.high, 3.25, 1e-15);
    assert_true(r.n == 5 && r.low == 0 && r.median == 1 && r.high == 10); /* NaN is left out */
    assert_true(s.n == 1 && s.low == -2 && s.high == -2);
    assert_true(rws_quartiles_of(low, 3).low == -INFINITY && rws_quartiles_of(low, 3).median == -INFINITY);
    assert_true(isnan(rws_quartiles_of(low, 0).median) && isnan(rws_quartiles_of((double[]){NAN}, 1).low));
}

/* ---- style ---- */

static double contrast(rws_colour c)
{
    double part[] = {c.red, c.green, c.blue};
    for (int i = 0; i < 3; i++) part[i] = part[i] <= 0.04045 ? part[i] / 12.92 : pow((part[i] + 0.055) / 1.055, 2.4);
    return 1.05 / (0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2] + 0.05);
}

/* Curves of one method in several shades stand out from the paper, and differ. */
static void pale_curves_can_be_seen(void **state)
{
    (void)state;
    for (const rws_style *s = rws_styles; s->method; s++) {
        const rws_colour half = rws__colour_shade(s->colour, 0.5), pale = rws__colour_shade(s->colour, 1);
        assert_true(contrast(pale) >= 3);
        assert_true(contrast(half) >= fmin(3, contrast(s->colour)));
        assert_true(fabs(contrast(half) - contrast(pale)) > 0.2);
        assert_true(contrast(rws__colour_shade(s->colour, 0)) == contrast(s->colour));
    }
}

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
        {"em", "EM", true},       {"dvae", "DVAE", true},   {"muprop", "MuProp", true},
    };
    int n = 0;
    while (rws_styles[n].method) n++;
    assert_int_equal(n, COUNT(known));
    for (int i = 0; i < n; i++) {
        const rws_style *style = rws__style_find(known[i].method);
        assert_string_equal(style->method, known[i].method);
        assert_string_equal(rws__style_name(known[i].method), known[i].name);
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
    assert_null(rws__style_find("ppo")->method);
    assert_string_equal(rws__style_name("ppo"), "ppo");
    assert_string_equal(rws__style_name(NULL), "");
    rws_colour white = rws__colour_tint((rws_colour){0.2, 0.4, 0.6}, 1);
    assert_near(white.red + white.green + white.blue, 3, 1e-12);
    /* The palest colour is dark enough to read as text: 4.5 to 1. */
    rws_colour ink = rws__colour_ink(rws__style_find("dww")->colour);
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

/* The methods of the paper's figures can be told apart with each deficiency of colour vision (Machado, Oliveira and
 * Fernandes 2009, full severity): a distance of 15 in L*a*b* is easy to see. */
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
        for (int i = 0; i < COUNT(together); i++) {
            for (int k = 0; k < i; k++) {
                double a[3], b[3];
                seen(rws__style_find(together[i])->colour, deficiencies[d], a);
                seen(rws__style_find(together[k])->colour, deficiencies[d], b);
                double apart = hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
                if (apart < 15) fail_msg("%s and %s are %g apart (%d)", together[i], together[k], apart, d);
            }
        }
    }
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
        assert_int_equal(rws__bars_draw(&bars, path, &err), RWS_OK);
        size_t size;
        char  *bytes = slurp(path, &size);
        assert_true(size > 3000);
        const char *words[] = {">astronomers<", ">NP PP<", ">probability<", ">True<", ">VIMCO<", ">0.38<"};
        for (int w = 0; i == 1 && w < COUNT(words); w++) assert_non_null(strstr(bytes, words[w]));
        free(bytes);
        unlink(path);
    }
    /* Names too long for their groups are slanted, not lost. */
    const char *path = in_folder("bars.svg");
    bars.width = 160;
    assert_int_equal(rws__bars_draw(&bars, path, &err), RWS_OK);
    size_t size;
    char  *svg = slurp(path, &size);
    assert_non_null(strstr(svg, "rotate(-35.00"));
    free(svg);
    unlink(path);

    bars.n_groups = 0;
    assert_int_equal(rws__bars_draw(&bars, path, &err), RWS_OK);
    bars.n_series = 0;
    assert_int_equal(rws__bars_draw(&bars, path, &err), RWS_OK);
    unlink(path);
    bars.y.scale = RWS_AXIS_LOG;
    assert_int_equal(rws__bars_draw(&bars, path, &err), RWS_BAD_INPUT);
    assert_int_equal(rws__bars_draw(&bars, "bars.gif", &err), RWS_BAD_INPUT);
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
    assert_int_equal(rws__hinton_draw(&hinton, path, &err), RWS_OK);
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
    close_picture(p);
    unlink(path);

    path = in_folder("hinton.svg");
    assert_int_equal(rws__hinton_draw(&hinton, path, &err), RWS_OK);
    size_t      size;
    char       *svg = slurp(path, &size);
    const char *words[] = {">True<", ">WS<", ">K = 2<", ">p(z)<", ">iteration 0<", ">z<"};
    for (int w = 0; w < COUNT(words); w++) assert_non_null(strstr(svg, words[w]));
    free(svg);
    unlink(path);
    path = in_folder("hinton.pdf");
    assert_int_equal(rws__hinton_draw(&hinton, path, &err), RWS_OK);
    unlink(path);
    hinton.width = 60;
    assert_int_equal(rws__hinton_draw(&hinton, path, &err), RWS_BAD_INPUT);
    assert_int_equal(rws__hinton_draw(&hinton, "hinton.txt", &err), RWS_BAD_INPUT);
}

/* ---- trees ---- */

static void test_trees(void **state)
{
    (void)state;
    char words[64];
    assert_int_equal(rws__trees_words("(S (NP stars) (VP (V saw) (NP ears)))", words, sizeof words), 14);
    assert_string_equal(words, "stars saw ears");
    assert_int_equal(rws__trees_words("(S (NP stars) (VP (V saw) (NP ears)))", words, 6), 14);
    assert_string_equal(words, "stars");
    assert_int_equal(rws__trees_words("(S (NP stars) VP)", words, sizeof words), 8); /* unexpanded */
    assert_string_equal(words, "stars VP");

    const char *const wrong[] = {"",  "S",       "(S",      "(S))",      "(S) (S)", "(S (NP)",
                                 ")", "( (NP))", "stars x", "(S) stars", "(S ()) "};
    rws_error         err = {""};
    for (int i = 0; i < COUNT(wrong); i++) {
        const rws_drawn_tree tree = {wrong[i], NULL, NULL};
        const rws_trees      figure = {.trees = &tree, .n_trees = 1};
        assert_int_equal(rws__trees_words(wrong[i], words, sizeof words), 0);
        assert_int_equal(rws__trees_draw(&figure, in_folder("wrong.svg"), &err), RWS_BAD_INPUT);
        assert_int_equal(access(in_folder("wrong.svg"), F_OK), -1);
    }

    /* Children in order from left to right, below their parent, which is over their middle. */
    const rws_drawn_tree tree = {"(S (NP stars) (VP (V saw) (NP ears)))", "0.5", "ws"};
    const rws_trees      figure = {.title = "A tree", .trees = &tree, .n_trees = 1};
    size_t               size;
    double               x[6], y[6];
    assert_int_equal(rws__trees_draw(&figure, in_folder("tree.svg"), &err), RWS_OK);
    char             *svg = slurp(in_folder("tree.svg"), &size);
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
    assert_int_equal(rws__trees_draw(&both, in_folder("odd.pdf"), &err), RWS_OK);
    assert_int_equal(rws__trees_draw(&none, in_folder("none.png"), &err), RWS_OK);
    unlink(in_folder("odd.pdf"));
    unlink(in_folder("none.png"));
}

/* ---- gathering ---- */

static void test_gather(void **state)
{
    (void)state;
    double            iterations[] = {1, 10, 20}, seconds[3][3] = {{1, 2, 3}, {2, 4, 6}, {3, 6, 9}};
    double            values[3][3] = {{5, 3, 1}, {6, 4, 2}, {7, 5, 3}};
    const char       *K[] = {"2", "2", "20"};
    rws_result_key    keys[3];
    rws_history       series[3];
    rws_result        results[3];
    const rws_result *runs[3];
    rws_gathered      g;
    rws_error         err = {""};
    for (int i = 0; i < 3; i++) {
        keys[i] = (rws_result_key){"particles", K[i]};
        series[i] = (rws_history){"loss", 3, iterations, seconds[i], values[i]};
        results[i] =
            (rws_result){.name = "r", .n_keys = 1, .keys = &keys[i], .n_histories = 1, .histories = &series[i]};
        runs[i] = &results[i];
    }
    assert_int_equal(rws_gather(runs, 3, "loss", RWS_X_ITERATION, &g, &err), RWS_OK);
    assert_int_equal(g.n, 3);
    assert_int_equal(g.n_runs, 3);
    assert_true(g.x[1] == 10 && g.median[1] == 4 && g.low[1] == 3.5 && g.high[2] == 2.5);
    assert_non_null(rws__gathered_curve(&g, "ww").low);
    rws_gathered_release(&g);
    assert_int_equal(rws_gather(runs, 3, "loss", RWS_X_SECONDS, &g, &err), RWS_OK);
    assert_true(g.x[2] == 6);
    rws_gathered_between(&g, 4.5, INFINITY); /* of 2, 4, 6 */
    assert_true(g.n == 1 && g.x[0] == 6 && g.median[0] == 2 && g.low[0] == 1.5);
    rws_gathered_between(&g, 7, INFINITY);
    assert_int_equal(g.n, 0);
    rws_gathered_release(&g);
    assert_int_equal(rws_gather(runs, 3, "nothing", RWS_X_ITERATION, &g, &err), RWS_OK);
    assert_int_equal(g.n, 0);

    series[2].n = 2; /* this run has fewer evaluations */
    assert_int_equal(rws_gather(runs, 3, "loss", RWS_X_ITERATION, &g, &err), RWS_OK);
    assert_int_equal(g.n_runs, 3);
    assert_true(g.median[1] == 4 && g.count[1] == 3 && g.median[2] == 1.5 && g.count[2] == 2);
    rws_gathered_release(&g);
    values[0][1] = NAN; /* no value, at this iteration */
    assert_int_equal(rws_gather(runs, 3, "loss", RWS_X_SECONDS, &g, &err), RWS_OK);
    assert_true(g.n == 3 && g.median[1] == 4.5 && g.count[1] == 2 && g.x[1] == 5 && g.median[0] == 6 && g.x[2] == 4.5);
    rws_gathered_release(&g);
    assert_int_equal(rws_gather(runs + 2, 1, "loss", RWS_X_ITERATION, &g, &err), RWS_OK);
    assert_null(rws__gathered_curve(&g, "ww").low); /* one run has no quartiles */
    rws_gathered_release(&g);

    assert_int_equal(rws_gather_over(runs, 3, "particles", "loss", &g, &err), RWS_OK);
    assert_int_equal(g.n, 2);
    assert_true(g.x[0] == 2 && g.x[1] == 20 && g.median[0] == 1.5 && g.median[1] == 5);
    rws_gathered_release(&g);
    keys[1].value = "many";
    assert_int_equal(rws_gather_over(runs, 3, "particles", "loss", &g, &err), RWS_BAD_INPUT);
    rws_gathered_release(&g);
}

/* ---- bundles ---- */

static void test_bundles(void **state)
{
    (void)state;
    enum { RUNS = 6, KEYS = 60 };
    /* Runs 0 and 1 differ in the seed, run 2 in the last of many keys, run 3 at the end of a long value, run 4 in the method;
     * run 5 has the keys of run 0 without K. */
    static char       names[KEYS][8], text[2][700];
    rws_result_key    keys[RUNS][KEYS];
    rws_result        runs[RUNS] = {0};
    const rws_result *list[RUNS];
    for (int k = 0; k < KEYS; k++) snprintf(names[k], sizeof names[k], "k%d", k);
    for (int i = 0; i < 2; i++) snprintf(text[i], sizeof text[i], "%0650d", i);
    for (int r = 0; r < RUNS; r++) {
        for (int k = 0; k < KEYS; k++) keys[r][k] = (rws_result_key){names[k], "same"};
        keys[r][0] = (rws_result_key){"method", r == 4 ? "em" : "ww"};
        keys[r][1] = (rws_result_key){"seed", r == 1 ? "2" : "1"};
        keys[r][2] = (rws_result_key){"long", text[r == 3]};
        keys[r][3] = (rws_result_key){r == 5 ? "other" : "particles", r == 4 ? "20" : "5"};
        for (int k = 10; k < KEYS; k++) keys[r][k].value = r == 4 ? "early" : "same";
        if (r == 2) keys[r][KEYS - 1].value = "late";
        runs[r] = (rws_result){.name = "run", .keys = keys[r], .n_keys = KEYS};
        list[r] = &runs[r];
    }
    rws_error          err;
    rws_bundles        b;
    rws_bundle_options options = {.most = 5, .advice = "fewer"};
    assert_int_equal(rws__bundles_make(list, RUNS, &options, &b, &err), RWS_OK);
    assert_int_equal(b.n, 5);
    assert_int_equal(b.of[0], b.of[1]);
    for (int i = 1; i < RUNS; i++)
        for (int k = 1; k < i; k++) assert_int_not_equal(b.of[i], b.of[k]);
    assert_int_equal(b.list[b.of[0]].n_runs, 2);
    assert_int_equal(b.of[4], 0); /* EM comes first in a legend */
    assert_true(b.list[0].shade == 0 && b.list[4].shade == 0);
    assert_near(b.list[1].shade, 1, 1e-15);
    rws__bundles_release(&b);

    options.most = 4;
    assert_int_equal(rws__bundles_make(list, RUNS, &options, &b, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "There are more than 4 different curves: choose some with fewer.");
    rws__bundles_release(&b);

    options =
        (rws_bundle_options){.most = 5, .panel = "particles", .leave = (const char *const[]){"long", "k59", NULL}};
    assert_int_equal(rws__bundles_make(list, 5, &options, &b, &err), RWS_OK);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.list[0].n_runs, 4);
    assert_string_equal(b.list[0].panel, "K = 5");
    assert_string_equal(b.list[1].panel, "K = 20");
    assert_memory_equal(b.list[1].label, "EM, k10 = early, k11", 20); /* without K */
    rws__bundles_release(&b);

    /* Runs 0 and 4 with a panel for each method: each curve has the name of its own method. */
    options.leave = (const char *const[]){"method", "particles", "k59", NULL};
    for (int k = 10; k < KEYS; k++) keys[4][k].value = "same";
    assert_int_equal(rws__bundles_make((const rws_result *const[]){list[0], list[4]}, 2, &options, &b, &err), RWS_OK);
    assert_int_equal(b.n, 2);
    assert_string_equal(b.list[b.of[0]].method, "ww");
    assert_string_equal(b.list[b.of[0]].label, "WW");
    assert_string_equal(b.list[b.of[1]].method, "em");
    assert_string_equal(b.list[b.of[1]].label, "EM");
    rws__bundles_release(&b);
    assert_true(rws__bundle_differs(list, 2, "seed"));
    assert_false(rws__bundle_differs(list, 2, "particles"));

    assert_int_equal(rws__bundles_make(list, 0, &options, &b, &err), RWS_OK);
    assert_int_equal(b.n, 0);
    rws__bundles_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quartiles), cmocka_unit_test(test_styles), cmocka_unit_test(pale_curves_can_be_seen),
        cmocka_unit_test(test_colours),   cmocka_unit_test(test_bars),   cmocka_unit_test(test_hinton),
        cmocka_unit_test(test_trees),     cmocka_unit_test(test_gather), cmocka_unit_test(test_bundles),
    };
    return cmocka_run_group_tests_name("figure", tests, folder_make, folder_remove_empty);
}
