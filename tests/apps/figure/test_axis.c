/* test_axis.c - ranges, ticks and their labels against values worked out by hand. */
#include "files.h"

#include "figure/axis.h"

#include <string.h>

static rws_range range_of(rws_axis axis, double padding, int n, const double *values)
{
    rws_extent extent = rws__extent_empty();
    rws_range  range;
    rws_error  err;
    for (int i = 0; i < n; i++) rws__extent_add(&extent, values[i]);
    assert_int_equal(rws__axis_range(&axis, &extent, NULL, padding, &range, &err), RWS_OK);
    assert_true(isfinite(range.low) && isfinite(range.high) && range.low < range.high);
    return range;
}

#define RANGE(axis, padding, ...) range_of(axis, padding, COUNT(((double[]){__VA_ARGS__})), (double[]){__VA_ARGS__})

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
    assert_true(r.low < 0.1); /* data on a power of ten are padded */
    r = RANGE(log, 0, 0, -3, 0.02, 5, NAN);
    assert_near(r.low, 0.02, 1e-12); /* values that are not positive do not count */
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
    rws_extent core = rws__extent_empty(), fringe = rws__extent_empty();
    rws__extent_add(&core, 1);
    rws__extent_add(&core, 20);
    rws__extent_add(&fringe, 1e-9);
    rws__extent_add(&fringe, 30);
    assert_int_equal(rws__axis_range(&log, &core, &fringe, 0, &r, NULL), RWS_OK);
    assert_near(r.low, 0.1, 1e-12);
    assert_near(r.high, 30, 1e-9);

    assert_near(rws__range_place(r, 0), -1, 0);
    assert_near(rws__range_place(r, -4), -1, 0);
    assert_near(rws__range_place(r, 0.1), 0, 1e-12);
    assert_near(rws__range_place(r, sqrt(3)), 0.5, 1e-12);
    assert_near(rws__range_place(r, 1e300), 2, 0);
    assert_true(isnan(rws__range_place(r, NAN)) && isnan(rws__range_place(r, INFINITY)));
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
    rws_extent extent = rws__extent_empty();
    rws_range  range;
    for (int i = 0; i < COUNT(bad); i++) {
        rws_error err = {""};
        assert_int_equal(rws__axis_range(&bad[i], &extent, NULL, 0, &range, &err), RWS_BAD_INPUT);
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
    int         n = rws__axis_ticks(&axis, range, wanted, ascii, ticks);
    assert_true(n >= 0 && n <= RWS_MAX_TICKS);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        double place = rws__range_place(range, ticks[i].value);
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
    /* No suffix if it would need many decimals. */
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
    assert_true(occurrences(labels(log, 0.51, 0.59, 4, false), ".") >= 2); /* no digit within the range: linear ticks */
    labels(log, 1e-307, 1e308, 5, false);

    /* Minor ticks at 2 to 9 between decades. */
    rws_tick ticks[RWS_MAX_TICKS];
    int      n = rws__axis_ticks(&log, (rws_range){RWS_AXIS_LOG, 0.1, 10}, 4, false, ticks), n_minor = 0;
    for (int i = 0; i < n; i++) n_minor += ticks[i].minor;
    assert_int_equal(n_minor, 16);
    assert_int_equal(n, 19);
}

static void test_captions(void **state)
{
    (void)state;
    char text[64];
    assert_string_equal(rws__axis_caption(&(rws_axis){.label = "time", .unit = "s"}, text, sizeof text), "time (s)");
    assert_string_equal(rws__axis_caption(&(rws_axis){.label = "K"}, text, sizeof text), "K");
    assert_string_equal(rws__axis_caption(&(rws_axis){0}, text, sizeof text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_ranges), cmocka_unit_test(test_log_ranges), cmocka_unit_test(test_refused_ranges),
        cmocka_unit_test(test_linear_ticks),  cmocka_unit_test(test_log_ticks),  cmocka_unit_test(test_captions),
    };
    return cmocka_run_group_tests_name("axis", tests, NULL, NULL);
}
