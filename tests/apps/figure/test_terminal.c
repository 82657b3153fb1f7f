/* test_terminal.c - curves on a terminal, character by character. */
#include "files.h"

#include "figure/terminal.h"

#include <stdio.h>
#include <string.h>

/* What the chart prints; the caller frees it. */
static char *printed(const rws_terminal *terminal)
{
    /* Static, since the stream keeps their addresses: gcc 12 takes the text itself for a pointer to them. */
    static char  *text;
    static size_t size;
    rws_error     err = {""};
    FILE         *file = open_memstream(&text, &size);
    assert_non_null(file);
    if (rws__terminal_draw(terminal, file, &err) != RWS_OK) fail_msg("%s", err.text);
    fclose(file);
    return text;
}

static void known_charts(void **state)
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

static void edge_cases(void **state)
{
    (void)state;
    const double x[] = {0, 1, 2, 3},
                 ys_[][4] = {{1, 1, 1, 1}, {NAN, 2, NAN, NAN}, {1e-300, 1, 1e300, 0}, {-1.7e308, 1.7e308, 0, 1}};
    for (int i = 0; i < COUNT(ys_); i++) {
        for (int variant = 0; variant < 8; variant++) {
            rws_curve    curve = {.method = "vimco", .label = "a\033[2Jb\xff", .n = 4, .x = x, .y = ys_[i]};
            rws_terminal t = {.curves = &curve,
                              .n_curves = 1,
                              .unicode = variant & 1,
                              .colour = variant & 2,
                              .y.scale = variant & 4 ? RWS_AXIS_LOG : RWS_AXIS_LINEAR};
            char        *text = printed(&t);
            int          n_lines = occurrences(text, "\n");
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
    assert_int_equal(rws__terminal_draw(&t, stdout, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "too small"));
    t.width = 80;
    t.height = 3;
    assert_int_equal(rws__terminal_draw(&t, stdout, &err), RWS_BAD_INPUT);
    t.height = 0;
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(rws__terminal_draw(&t, full, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "cannot be written"));
        fclose(full);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_charts),
        cmocka_unit_test(edge_cases),
    };
    return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
