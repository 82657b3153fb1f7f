/* test_sheet.c - sheets are read from text and from arrays of NPY, and whatever is strange about them is accepted or refused
 * with its place. */
#include "files.h"

#include "base/rng.h"
#include "data/table.h"

#include <stdio.h>
#include <string.h>

/* ---- text */

static rws_status parse_bytes(const char *text, size_t length, rws_header header, bool skip_missing, rws_sheet *out,
                              rws_error *err)
{
    /* a copy of exactly this size, so that a sanitizer sees a read behind the end */
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    const rws_status status = rws__csv_parse(copy, length, "d.csv", header, skip_missing, NULL, out, err);
    free(copy);
    return status;
}

static void parse(const char *text, rws_sheet *out)
{
    rws_error err = {""};
    must(parse_bytes(text, strlen(text), RWS_HEADER_GUESSED, false, out, &err), &err);
    for (int i = 0; i < out->n_columns; i++) must(rws__sheet_check_column(out, i, "d.csv", &err), &err);
}

static void texts_of_all_kinds_are_read(void **state)
{
    (void)state;
    static const char *const same[] = {
        "a,b,c\n1,2,3\n4,5,6\n",
        "a,b,c\n1,2,3\n4,5,6",
        "a,b,c\r\n1,2,3\r\n4,5,6\r\n",
        "a,b,c\r1,2,3\r4,5,6\r",
        "\357\273\277a,b,c\n1,2,3\n4,5,6\n", /* a byte order mark */
        "a;b;c\n1;2;3\n4;5;6\n",
        "a\tb\tc\n1\t2\t3\n4\t5\t6\n",
        "# a comment, of no consequence; \"\n\n  \n a , b,c  \n1 ,  2,3\n  # another\n\n4,5,\t6 \n\n",
        "\"a\",\"b\",\"c\"\n\"1\",2, \"3\" \n4,5,6\n",
        "a,b,c\n1e0,20e-1,+3\n4.,.5e1,0.0006e4\n",
        "a,b,c\n1.0000000000000000000000000,2,0000000000000000000000000003\n400000000000000000000e-20,5,6\n",
    };
    for (int i = 0; i < COUNT(same); i++) {
        rws_sheet s;
        parse(same[i], &s);
        assert_int_equal(s.n_rows, 2);
        assert_int_equal(s.n_columns, 3);
        for (int k = 0; k < 6; k++) assert_true(s.values[k] == (float)(k + 1));
        assert_string_equal(s.names[0], "a");
        assert_string_equal(s.names[2], "c");
        rws__sheet_release(&s);
    }
}

static void headers_are_guessed_or_given(void **state)
{
    (void)state;
    rws_sheet s;
    rws_error err = {""};
    parse("1,2\n3,4\n", &s);
    assert_true(s.n_rows == 2 && !s.names);
    rws__sheet_release(&s);
    /* years are numbers, and names of columns */
    must(parse_bytes("id,2019\n3,4\n", 12, RWS_HEADER_GIVEN, false, &s, &err), &err);
    assert_int_equal(s.n_rows, 1);
    assert_string_equal(s.names[1], "2019");
    rws__sheet_release(&s);
    must(parse_bytes("x,y\n3,4\n", 8, RWS_HEADER_NONE, false, &s, &err), &err);
    assert_true(s.n_rows == 2 && !s.names && isnan(s.values[0]));
    assert_refused(rws__sheet_check_column(&s, 0, "d.csv", &err), RWS_BAD_INPUT, &err, "line 1, column 1:", "\"x\"");
    rws__sheet_release(&s);
    /* separators, doubled quotation marks and ends of lines in a name; the line is counted */
    parse("\"a,\"\"b\"\"\n\",\"\"\n1,2\n", &s);
    assert_string_equal(s.names[0], "a,\"b\"\n");
    assert_string_equal(s.names[1], "");
    assert_int_equal(s.n_rows, 1);
    rws__sheet_release(&s);
}

/* Against what the C library makes of the text. */
static void numbers_are_exact(void **state)
{
    (void)state;
    static const char *const list[] = {
        "0",
        "-0",
        "0.1",
        "-123456.789",
        "3.4028234e38",
        "-3.4028235e38",
        "1e-45",
        "1e-400",
        "9007199254740993",
        "1e22",
        "123456789e-30",
        "0.3333333333333333333333333333333333333333",
        "16777217",
        "4.35e-10",
        "1E5",
        "1e+5",
        "18446744073709551616",
        "0.000000000000000000000000001",
        "7.038531e-26",
    };
    for (int i = 0; i < COUNT(list); i++) {
        rws_sheet s;
        parse(list[i], &s);
        const float want = (float)strtod(list[i], NULL);
        if (memcmp(s.values, &want, sizeof want) != 0) fail_msg("%s is read as %.9g", list[i], (double)s.values[0]);
        rws__sheet_release(&s);
    }
    rws_random random = rws__random_new(rws__key_for(1, 0, RWS_KEY_TEST, 0), 0);
    for (int i = 0; i < 20000; i++) {
        char         text[64];
        const double x = rws_random_normal(&random) * pow(10, 20 * rws_random_normal(&random) / 3);
        rws_sheet    s;
        snprintf(text, sizeof text, i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.9e" : "%.4f", x);
        const float want = (float)strtod(text, NULL);
        if (!isfinite(want)) continue;
        parse(text, &s);
        if (memcmp(s.values, &want, sizeof want) != 0) fail_msg("%s is read as %.9g", text, (double)s.values[0]);
        rws__sheet_release(&s);
    }
}

static void flaws_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int         column;
        const char *message;
    } list[] = {
        {"name,age\nann,3\nbob,abc\n", 1, "\"d.csv\", line 3, column 2 (\"age\"): \"abc\" is not a number."},
        {"1,2\n3,\n", 1, "\"d.csv\", line 2, column 2: the cell is empty."},
        {"1,2\n,4\n", 0, "\"d.csv\", line 2, column 1: the cell is empty."},
        {"1,2\n\"\",4\n", 0, "\"d.csv\", line 2, column 1: the cell is empty."},
        {"1\nnan\n", 0, "\"d.csv\", line 2, column 1: \"nan\" is not a finite number."},
        {"1\n-Inf\ninf", 0, "\"d.csv\", line 2, column 1: \"-Inf\" is not a finite number."},
        {"1\n1e39\n", 0, "\"d.csv\", line 2, column 1: \"1e39\" is too large; numbers go up to 3.4e38."},
        {"1\n1e99999999999\n", 0,
         "\"d.csv\", line 2, column 1: \"1e99999999999\" is too large; numbers go up to 3.4e38."},
        {"1\n0x10\n", 0, "\"d.csv\", line 2, column 1: \"0x10\" is not a number."},
        {"1\n1.2.3\n", 0, "\"d.csv\", line 2, column 1: \"1.2.3\" is not a number."},
        {"1\n1e\n", 0, "\"d.csv\", line 2, column 1: \"1e\" is not a number."},
        {"1\n1e+\n", 0, "\"d.csv\", line 2, column 1: \"1e+\" is not a number."},
        {"1\n.\n", 0, "\"d.csv\", line 2, column 1: \".\" is not a number."},
        {"1\n-\n", 0, "\"d.csv\", line 2, column 1: \"-\" is not a number."},
        {"1\n1 2\n", 0, "\"d.csv\", line 2, column 1: \"1 2\" is not a number."},
        {"1\n1\1\n", 0, "\"d.csv\", line 2, column 1: \"1?\" is not a number."},
        {"1;2\n1,5;2\n", 0, "\"d.csv\", line 2, column 1: \"1,5\" is not a number."},
        {"1\n\n#\n\"\na\"\n", 0, "\"d.csv\", line 4, column 1: \"?a\" is not a number."},
        {"1\nabcdefghijklmnopqrstuvwxyz0123456789\n", 0,
         "\"d.csv\", line 2, column 1: \"...ijklmnopqrstuvwxyz0123456789\" is not a number."},
    };
    for (int i = 0; i < COUNT(list); i++) {
        rws_sheet s;
        rws_error err = {""};
        must(parse_bytes(list[i].text, strlen(list[i].text), RWS_HEADER_GUESSED, false, &s, &err), &err);
        assert_int_equal(rws__sheet_check_column(&s, list[i].column, "d.csv", &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, list[i].message);
        rws__sheet_release(&s);
    }
}

static void bad_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        size_t      length; /* 0: of the text */
    } list[] = {
        {"", "\"d.csv\" has no rows.", 0},
        {"\n \r\n\t\n# x\n", "\"d.csv\" has no rows.", 0},
        {"a,b\n", "\"d.csv\" has no rows.", 0},
        {"\xef\xbb\xbf", "\"d.csv\" has no rows.", 0},
        {"1,2\n3\n", "\"d.csv\", line 2: it has 1 column, and line 1 has 2.", 0},
        {"\n1,2,3\n\n3,4\n", "\"d.csv\", line 4: it has 2 columns, and line 2 has 3.", 0},
        {"1,2\n3,4,\n", "\"d.csv\", line 2: it has more than the 2 columns of line 1.", 0},
        {"1,2\n3,\"4\n5,6\n", "\"d.csv\", line 2: column 2 has no closing quotation mark.", 0},
        {"\"", "\"d.csv\", line 1: column 1 has no closing quotation mark.", 0},
        {"1,2\n\"3\"4,5\n", "\"d.csv\", line 2: column 1 has text behind its closing quotation mark.", 0},
        {"\xff\xfe\x31\0", "\"d.csv\" is UTF-16 text; save it as UTF-8.", 4},
        {"\x1f\x8b\x08", "\"d.csv\" is compressed by gzip; unpack it first.", 0},
        {"PK\3\4", "\"d.csv\" is a ZIP archive (a spreadsheet, or NPZ); save it as CSV, or by numpy.save.", 0},
    };
    for (int i = 0; i < COUNT(list); i++) {
        rws_sheet    s;
        rws_error    err = {""};
        const size_t length = list[i].length ? list[i].length : strlen(list[i].text);
        assert_int_equal(parse_bytes(list[i].text, length, RWS_HEADER_GUESSED, false, &s, &err), RWS_BAD_INPUT);
        assert_string_equal(err.text, list[i].message);
        assert_true(!s.values && !s.names && !s.flaws);
    }
}

static void rows_with_missing_cells_can_be_left_out(void **state)
{
    (void)state;
    static const char text[] = "a,b\n1,2\n3,\nNA,4\n5,6\nnan,7\n?,8\nnull,9\nN/A,1\n\"\",1\n7,8\n";
    rws_sheet         s;
    rws_error         err = {""};
    must(parse_bytes(text, strlen(text), RWS_HEADER_GUESSED, true, &s, &err), &err);
    assert_int_equal(s.n_rows, 3);
    assert_true(s.values[0] == 1 && s.values[3] == 6 && s.values[5] == 8);
    must(rws__sheet_check_column(&s, 0, "d.csv", &err), &err);
    rws__sheet_release(&s);
    assert_refused(parse_bytes("1,\n,2\n", 6, RWS_HEADER_GUESSED, true, &s, &err), RWS_BAD_INPUT, &err, "d.csv",
                   "no rows");
}

/* Time grows with the size and not with its square: 16 MB of each kind in seconds, also with a sanitizer. */
static void large_texts_take_linear_time(void **state)
{
    (void)state;
    const size_t size = 16 << 20;
    char        *text = malloc(size);
    rws_sheet    s;
    rws_error    err = {""};
    assert_non_null(text);
    const char *const pieces[] = {"1.5\n", "1,2,3,4,5,6,7\n", "\n", "1,", "\"", "\"1\"\n", "#", ",", "\r"};
    for (int i = 0; i < COUNT(pieces); i++) {
        const size_t length = strlen(pieces[i]);
        for (size_t at = 0; at < size; at++) text[at] = pieces[i][at % length];
        const rws_status status =
            rws__csv_parse((uint8_t *)text, size, "d.csv", RWS_HEADER_GUESSED, false, NULL, &s, &err);
        if (i == 0) assert_int_equal(s.n_rows, size / 4);
        if (i == 3) assert_true(status == RWS_OK && s.n_columns == (int)(size / 2) + 1 && s.n_rows == 1);
        rws__sheet_release(&s);
    }
    /* a line of many columns, then many lines of one */
    memset(text, ',', size / 2);
    for (size_t at = size / 2; at < size; at++) text[at] = "\n1"[at % 2];
    assert_int_equal(rws__csv_parse((uint8_t *)text, size, "d.csv", RWS_HEADER_NONE, false, NULL, &s, &err),
                     RWS_BAD_INPUT);
    free(text);
}

/* ---- arrays */

/* An NPY file of version 1 with this header. */
static rws_status npy(const char *descr_etc, const void *data, size_t size, rws_sheet *out, rws_error *err)
{
    const size_t length = strlen(descr_etc);
    uint8_t     *file = malloc(10 + length + size);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)length;
    file[9] = (uint8_t)(length >> 8);
    memcpy(file + 10, descr_etc, length);
    if (size) memcpy(file + 10 + length, data, size);
    const rws_status status = rws__npy_parse(file, 10 + length + size, "x.npy", NULL, out, err);
    free(file);
    return status;
}

static void arrays_of_all_types_are_read(void **state)
{
    (void)state;
    static const float    f4[] = {1, -2, 3.5f, 4, 5, 6};
    static const double   f8[] = {1, -2, 3.5, 4, 5, 6};
    static const int8_t   i1[] = {1, -2, 3, 4, 5, 6};
    static const int16_t  i2[] = {1, -2, 3, 4, 5, 6};
    static const int32_t  i4[] = {1, -2, 3, 4, 5, 6};
    static const int64_t  i8[] = {1, -2, 3, 4, 5, 6};
    static const uint8_t  u1[] = {1, 2, 3, 4, 5, 6};
    static const uint16_t u2[] = {1, 2, 3, 4, 5, 6};
    static const uint32_t u4[] = {1, 2, 3, 4, 5, 6};
    static const uint64_t u8[] = {1, 2, 3, 4, 5, UINT64_MAX};
    static const struct {
        const char *type;
        const void *data;
        size_t      size;
    } list[] = {
        {"<f4", f4, sizeof f4}, {"<f8", f8, sizeof f8}, {"|i1", i1, sizeof i1}, {"<i2", i2, sizeof i2},
        {"<i4", i4, sizeof i4}, {"<i8", i8, sizeof i8}, {"|u1", u1, sizeof u1}, {"<u2", u2, sizeof u2},
        {"<u4", u4, sizeof u4}, {"<u8", u8, sizeof u8}, {"|b1", u1, sizeof u1},
    };
    for (int i = 0; i < COUNT(list); i++) {
        char      header[100];
        rws_sheet s;
        rws_error err = {""};
        for (int dims = 1; dims <= 2; dims++) {
            snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }  \n", list[i].type,
                     dims == 1 ? "(6,)" : "(2, 3)");
            must(npy(header, list[i].data, list[i].size, &s, &err), &err);
            assert_int_equal(s.n_rows, dims == 1 ? 6 : 2);
            assert_int_equal(s.n_columns, dims == 1 ? 1 : 3);
            const bool negative = list[i].type[1] == 'f' || list[i].type[1] == 'i';
            assert_true(s.values[1] == (negative ? -2 : 2));
            assert_true(s.values[2] == (list[i].type[1] == 'f' ? 3.5f : 3));
            assert_true(s.values[5] == (strcmp(list[i].type, "<u8") == 0 ? 0x1p64f : 6));
            for (int k = 0; k < s.n_columns; k++) must(rws__sheet_check_column(&s, k, "x.npy", &err), &err);
            rws__sheet_release(&s);
        }
    }
}

static void bad_arrays_are_refused(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, NAN, INFINITY, 6};
    static const struct {
        const char *header, *message;
        size_t      size;
    } list[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (6,)}", "big-endian", 24},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "Fortran order", 24},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (12,)}", "type \"<f2\"", 24},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "type \"<c8\"", 24},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': (3,)}", "type \"<U2\"", 24},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "type \"|O\"", 24},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", "cannot be understood", 24},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "0 dimensions", 4},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}", "3 dimensions", 24},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "20 bytes of data", 20},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "24 bytes of data", 24},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", "no numbers", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "0 bytes of data", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "cannot be understood", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,)}", "cannot be understood", 24},
        {"{'descr': '<f4', 'fortran_order': False}", "cannot be understood", 24},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (6,)}", "cannot be understood", 24},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", "cannot be understood", 24},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "cannot be understood", 24},
        {"", "cannot be understood", 24},
    };
    rws_sheet s;
    rws_error err = {""};
    for (int i = 0; i < COUNT(list); i++) {
        const rws_status status = npy(list[i].header, x, list[i].size, &s, &err);
        assert_refused(status, RWS_BAD_INPUT, &err, "\"x.npy\"", list[i].message);
        assert_true(!s.values && !s.flaws);
    }
    must(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", x, 24, &s, &err), &err);
    must(rws__sheet_check_column(&s, 2, "x.npy", &err), &err);
    assert_int_equal(rws__sheet_check_column(&s, 0, "x.npy", &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"x.npy\", element [1, 0]: \"nan\" is not a finite number.");
    rws__sheet_release(&s);

    /* cut anywhere within the header, and of versions that do not exist */
    const uint8_t bytes[] = "\x93NUMPY\1\0\x0a\0{'descr': ";
    for (size_t n = 0; n < sizeof bytes - 1; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, n);
        assert_refused(rws__npy_parse(copy, n, "x.npy", NULL, &s, &err), RWS_BAD_INPUT, &err, "\"x.npy\"", "");
        free(copy);
    }
    assert_refused(rws__npy_parse((const uint8_t *)"\x93NUMPY\7\0\0\0\0\0", 12, "x.npy", NULL, &s, &err), RWS_BAD_INPUT,
                   &err, "version 7", "");
    assert_false(rws__npy_is((const uint8_t *)"1,2\n3,4\n", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_all_kinds_are_read),
        cmocka_unit_test(headers_are_guessed_or_given),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(flaws_have_a_place),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(rows_with_missing_cells_can_be_left_out),
        cmocka_unit_test(large_texts_take_linear_time),
        cmocka_unit_test(arrays_of_all_types_are_read),
        cmocka_unit_test(bad_arrays_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
