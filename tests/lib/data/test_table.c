/* test_table.c - the rows of a table are split and come in the declared order, columns become fields, rows with one id a
 * series, and a model learns from a file that a setting names. */
#include "files.h"
#include "trained.h"

#include "base/rng.h"
#include "data/table.h"
#include "data/safetensors.h"
#include "train/trainer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- tables in a setup */

static const rws_setting table_settings[] = {
    {"data", "", 0, 0, "a file", false}, {"test_data", "", 0, 0, "another", false}, {0}};

/* A setup by hand, as the trainer makes it. */
typedef struct {
    rws_setup s;
    rws_given given[2];
} world;

static void world_init(world *w, const char *train, const char *test)
{
    memset(w, 0, sizeof *w);
    w->given[0] = (rws_given){&table_settings[0], train};
    w->given[1] = (rws_given){&table_settings[1], test};
    w->s.given = w->given;
    w->s.n_given = 2;
    w->s.model = "mine";
    w->s.seed = 1;
}

/* A text with `n` rows: i, 10 i, a word. */
static const char *numbered(const char *name, int n)
{
    char *text = malloc((size_t)n * 40 + 40);
    int   length = sprintf(text, "i,ten,word\n");
    assert_non_null(text);
    for (int i = 0; i < n; i++) length += sprintf(text + length, "%d,%d,w%d\n", i, 10 * i, i);
    spill(name, text, (size_t)length);
    free(text);
    return in_folder(name);
}

static void rows_are_split(void **state)
{
    (void)state;
    static const struct {
        int    n;
        double share;
        bool   last;
        int    n_test, first_test, second_test; /* the numbers of the first two test rows */
    } list[] = {
        {100, 0, false, 10, 9, 19},    {100, 0.2, false, 20, 4, 9}, {100, 0.2, true, 20, 80, 81},
        {100, 0.29, true, 29, 71, 72}, {100, 0.5, false, 50, 1, 3}, {10, 0.3, false, 3, 3, 6},
        {100, 1, false, 100, 0, 1},    {9, 0, false, 9, 0, 1},      {100, 0.999, false, 99, 1, 2},
        {3, 0.01, true, 3, 0, 1},
    };
    for (int i = 0; i < COUNT(list); i++) {
        world                   w;
        const rws_table_options o = {.test_share = list[i].share, .test_last = list[i].last};
        world_init(&w, numbered("split.csv", list[i].n), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        must(w.s.status, &w.s.error);
        assert_int_equal(rws_table_rows(t, RWS_TEST), list[i].n_test);
        const bool both = list[i].n_test == list[i].n;
        assert_int_equal(rws_table_rows(t, RWS_TRAIN), both ? list[i].n : list[i].n - list[i].n_test);
        assert_true(rws_table_row(t, RWS_TEST, 0)[0] == (float)list[i].first_test);
        assert_true(rws_table_row(t, RWS_TEST, 1)[0] == (float)list[i].second_test);
        /* each row is in one of the two */
        bool seen[100] = {false};
        for (int split = 0; split < (both ? 1 : 2); split++)
            for (int k = 0; k < rws_table_rows(t, (rws_split)split); k++) {
                const int row = (int)rws_table_row(t, (rws_split)split, k)[0];
                assert_false(seen[row]);
                seen[row] = true;
            }
        for (int k = 0; k < list[i].n; k++) assert_true(seen[k]);
        assert_null(rws_table_row(t, RWS_TEST, list[i].n_test));
        assert_null(rws_table_row(t, RWS_TEST, -1));
        rws__setup_release(&w.s);
    }
    const double wrong[] = {-0.1, 1.1, NAN};
    for (int i = 0; i < COUNT(wrong); i++) {
        world                   w;
        const rws_table_options o = {.test_share = wrong[i]};
        world_init(&w, numbered("split.csv", 20), "");
        assert_int_equal(rws_table_rows(rws_setup_table(&w.s, NULL, &o), RWS_TRAIN), 0);
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "share", "between 0 and 1");
        rws__setup_release(&w.s);
    }
}

static void test_rows_come_from_another_file(void **state)
{
    (void)state;
    world                   w;
    const rws_table_options o = {.test = "test_data"};
    char                    train[PATH_MAX];
    strcpy(train, numbered("train.csv", 20));
    world_init(&w, train, numbered("test.csv", 3));
    rws_table *t = rws_setup_table(&w.s, "data", &o);
    must(w.s.status, &w.s.error);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), 20);
    assert_int_equal(rws_table_rows(t, RWS_TEST), 3);
    rws__setup_release(&w.s);

    world_init(&w, train, ""); /* no test file: rows are held out */
    t = rws_setup_table(&w.s, "data", &o);
    assert_int_equal(rws_table_rows(t, RWS_TEST), 2);
    rws__setup_release(&w.s);

    spill("other.csv", "i,ten\n1,2\n", 10);
    world_init(&w, train, in_folder("other.csv"));
    rws_setup_table(&w.s, "data", &o);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "3 columns", "2");
    rws__setup_release(&w.s);

    spill("other.csv", "i,nine,word\n1,2,3\n", 18);
    world_init(&w, train, in_folder("other.csv"));
    rws_setup_table(&w.s, "data", &o);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "Column 2", "\"nine\"");
    rws__setup_release(&w.s);

    spill("other.csv", "i,ten,word\n1,2,3\n1,x,3\n", 23); /* flaws of test rows count too */
    world_init(&w, train, in_folder("other.csv"));
    t = rws_setup_table(&w.s, "data", &o);
    must(w.s.status, &w.s.error);
    rws_setup_table_field(&w.s, t, "x", "ten");
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "other.csv\", line 3, column 2 (\"ten\")", "\"x\" is not");
    rws__setup_release(&w.s);
}

/* A label may be missing in some rows, a field must not; "#" is the number of a row in its file. */
static void labels_may_be_missing(void **state)
{
    (void)state;
    static const char       text[] = "x,z\n1,\n2,5\n3,nan\n4,6\n";
    const rws_table_options o = {.order = RWS_ROWS_IN_ORDER, .test_share = 0.25, .test_last = false};
    world                   w;
    float x[3], z[3], number[3], *const fields[] = {x, z, number};
    rws_error err = {""};
    spill("m.csv", text, strlen(text));
    world_init(&w, in_folder("m.csv"), "");
    rws_table *t = rws_setup_table(&w.s, NULL, &o);
    rws_setup_table_field(&w.s, t, "x", "x");
    assert_int_equal(rws_setup_table_label(&w.s, t, "z", "z"), 1);
    assert_int_equal(rws_setup_table_label(&w.s, t, "datum", "#"), 1);
    must(w.s.status, &w.s.error);
    must(rws_table_fill(t, RWS_TRAIN, 0, 3, NULL, fields, &err), &err);
    for (int i = 0; i < 3; i++) assert_true(number[i] == x[i] - 1 && (x[i] == 2 ? z[i] == 5 : isnan(z[i])));
    must(rws_table_fill(t, RWS_TEST, 0, 1, NULL, fields, &err), &err);
    assert_true(x[0] == 4 && number[0] == 3 && z[0] == 6);
    rws_setup_table_field(&w.s, t, "y", "z");
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "m.csv\", line 2, column 2 (\"z\")", "the cell is empty");
    rws__setup_release(&w.s);
}

/* A cell of a label that is neither a number nor missing is refused, also behind one that is missing. */
static void labels_are_numbers_or_missing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *message;
    } bad[] = {
        {"x,z\n1,\n2,1\n3,l\n", "line 4, column 2 (\"z\")", "\"l\" is not a number"},
        {"x,z\n1,l\n2,\n3,m\n", "line 2, column 2 (\"z\")", "\"l\" is not a number"},
        {"x,z\n1,nan\n2,NA\n", "line 3, column 2 (\"z\")", "\"NA\" is not a number"},
        {"x,z\n1,\n2,-inf\n", "line 3, column 2 (\"z\")", "\"-inf\" is not a finite number"},
        {"x,z\n1,inf\n2,3\n", "line 2, column 2 (\"z\")", "\"inf\" is not a finite number"},
        {"x,z\n1,\n2,\n3,1e39\n", "line 4, column 2 (\"z\")", "\"1e39\" is too large"},
    };
    world w;
    for (int i = 0; i < COUNT(bad); i++) {
        spill("m.csv", bad[i].text, strlen(bad[i].text));
        world_init(&w, in_folder("m.csv"), "");
        rws_setup_table_label(&w.s, rws_setup_table(&w.s, NULL, NULL), "z", "z");
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, bad[i].place, bad[i].message);
        rws__setup_release(&w.s);
    }
    const float values[] = {NAN, 1, INFINITY};
    world_init(&w, "", "");
    rws_setup_table_label(&w.s, rws_setup_table_numbers(&w.s, "numbers", values, 3, 1, NULL, 0, NULL), "z", NULL);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "element [2, 0]", "\"inf\" is not a finite number");
    rws__setup_release(&w.s);
}

/* "#" is the number in the file: of a row, or of an id, also where rows before it are left out. */
static void numbers_are_those_of_the_file(void **state)
{
    (void)state;
    static const char text[] = "x,id\n0,a\n,b\n\n2,c\n# no row\nNA,a\n4,b\n5,c\n6,d\n";
    rws_table_options o = {.order = RWS_ROWS_IN_ORDER, .test_share = 1, .skip_missing = true};
    world             w;
    float x[5], number[5], *const fields[] = {x, number};
    rws_error err = {""};
    spill("m.csv", text, strlen(text));
    world_init(&w, in_folder("m.csv"), "");
    rws_table *t = rws_setup_table(&w.s, NULL, &o);
    rws_setup_table_field(&w.s, t, "x", "x");
    rws_setup_table_label(&w.s, t, "datum", "#");
    must(w.s.status, &w.s.error);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), 5);
    must(rws_table_fill(t, RWS_TRAIN, 0, 5, NULL, fields, &err), &err);
    for (int i = 0; i < 5; i++) assert_true(number[i] == x[i]);
    rws__setup_release(&w.s);

    /* the ids with rows come as a, c, b, d; the file has them as a, b, c, d */
    o.id = "id";
    world_init(&w, in_folder("m.csv"), "");
    t = rws_setup_table(&w.s, NULL, &o);
    rws_setup_table_length(&w.s, t, "n");
    rws_setup_table_label(&w.s, t, "datum", "#");
    must(w.s.status, &w.s.error);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), 4);
    must(rws_table_fill(t, RWS_TRAIN, 0, 4, NULL, fields, &err), &err);
    assert_true(number[0] == 0 && number[1] == 2 && number[2] == 1 && number[3] == 3);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 1 && x[3] == 1);
    rws__setup_release(&w.s);
}

static void columns_become_fields(void **state)
{
    (void)state;
    static const char text[] = "a,b:c,2,d,d,e f\n1,2,3,4,5,6\n7,8,9,10,11,12\n";
    static const struct {
        const char *columns;
        int         n;
        float       row[6];
    } good[] = {
        {NULL, 6, {1, 2, 3, 4, 5, 6}},
        {"a", 1, {1}},
        {"b:c", 1, {2}},
        {"2", 1, {3}}, /* its name */
        {"5,4", 2, {5, 4}},
        {"a:2", 3, {1, 2, 3}},
        {"4:6", 3, {4, 5, 6}},
        {" e f , a", 2, {6, 1}},
        {"a:b:c,a", 3, {1, 2, 1}},
        {"b:c:6", 5, {2, 3, 4, 5, 6}},
    };
    const rws_table_options o = {.header = RWS_HEADER_GIVEN}; /* a name looks like a number */
    spill("c.csv", text, strlen(text));
    for (int i = 0; i < COUNT(good); i++) {
        world w;
        float x[6], label[1];
        world_init(&w, in_folder("c.csv"), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        rws_setup_field(&w.s, "another", 2);
        assert_int_equal(rws_setup_table_field(&w.s, t, "x", good[i].columns), good[i].n);
        assert_int_equal(rws_setup_table_label(&w.s, t, "label", "a"), 1);
        must(w.s.status, &w.s.error);
        assert_true(w.s.n_fields == 3 && w.s.fields[1].dim == good[i].n && w.s.fields[2].label);
        assert_int_equal(rws_table_columns(t), 6);
        assert_int_equal(rws_table_column(t, "2"), 3);
        assert_int_equal(rws_table_column(t, "d"), 0);
        assert_int_equal(rws_table_column(t, "x"), 0);
        assert_string_equal(rws_table_name(t, 6), "e f");
        assert_true(!rws_table_name(t, 0) && !rws_table_name(t, 7));
        must(rws_table_fill(t, RWS_TEST, 2, 1, NULL, (float *[]){NULL, x, label}, &w.s.error), &w.s.error);
        assert_memory_equal(x, good[i].row, (size_t)good[i].n * sizeof *x);
        assert_true(label[0] == 1);
        rws__setup_release(&w.s);
    }
    static const struct {
        const char *columns, *message;
    } bad[] = {
        {"z", "has no column \"z\"; it has 6 columns: \"a\", \"b:c\", \"2\", \"d\", \"d\", \"e f\"."},
        {"d", "has several columns \"d\"; name the column by its number."},
        {"0", "has no column \"0\""},
        {"7", "has no column \"7\""},
        {"99999999999999999999999", "has no column \"999"},
        {"5:4", "has no column \"5:4\""},
        {"a,", "has no column \"\""},
        {"", "has no column \"\""},
        {"a:", "has no column \"a:\""},
        {"A", "has no column \"A\""},
    };
    for (int i = 0; i < COUNT(bad); i++) {
        world w;
        world_init(&w, in_folder("c.csv"), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        assert_int_equal(rws_setup_table_field(&w.s, t, "x", bad[i].columns), 1);
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "c.csv\"", bad[i].message);
        rws__setup_release(&w.s);
    }
}

/* The numbers of the rows that data first … first + n - 1 are. */
static void rows_of(const rws_table *t, rws_split split, uint64_t first, int n, uint64_t iteration, int *rows)
{
    float      x[400];
    rws_error  err = {""};
    rws_random random = rws__random_new(rws__key_for(1, iteration, RWS_KEY_DATA, 0), 0);
    must(rws_table_fill(t, split, first, n, &random, (float *[]){x}, &err), &err);
    for (int i = 0; i < n; i++) rows[i] = (int)x[i];
}

static void rows_come_in_their_order(void **state)
{
    (void)state;
    int         rows[400], again[400];
    const char *path = numbered("order.csv", 100);
    for (rws_rows order = RWS_ROWS_SHUFFLED; order <= RWS_ROWS_DRAWN; order++) {
        world                   w;
        const rws_table_options o = {.order = order, .test_share = 0.1, .test_last = true};
        world_init(&w, path, "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        rws_setup_table_field(&w.s, t, "x", "i");
        must(w.s.status, &w.s.error);
        rows_of(t, RWS_TEST, 5, 20, 0, rows);
        for (int i = 0; i < 20; i++) assert_int_equal(rows[i], 90 + (5 + i) % 10);
        rows_of(t, RWS_TRAIN, 0, 360, 7, rows);
        rows_of(t, RWS_TRAIN, 0, 360, 7, again);
        assert_memory_equal(rows, again, sizeof rows[0] * 360);
        int counts[4][90] = {{0}}, in_place = 0, like_last = 0;
        for (int i = 0; i < 360; i++) {
            assert_in_range(rows[i], 0, 89);
            counts[i / 90][rows[i]]++;
            in_place += rows[i] == i % 90;
            like_last += i >= 90 && rows[i] == rows[i - 90];
        }
        if (order == RWS_ROWS_IN_ORDER) assert_int_equal(in_place, 360);
        else assert_true(in_place < 30 && like_last < 30);
        for (int e = 0; e < 4 && order != RWS_ROWS_DRAWN; e++)
            for (int k = 0; k < 90; k++) assert_int_equal(counts[e][k], 1);
        if (order == RWS_ROWS_SHUFFLED) { /* batches do not matter, nor does the iteration's stream */
            rows_of(t, RWS_TRAIN, 123, 100, 8, again);
            assert_memory_equal(again, rows + 123, 100 * sizeof *rows);
        }
        rws__setup_release(&w.s);
    }
}

/* Every place of every epoch has every row with the same probability: the tail of Pearson's statistic. */
static double look_at_shuffle(void *context, int round, int wide)
{
    const uint32_t n = *(const uint32_t *)context;
    double         seen[64] = {0}, expected[64], p = 1;
    const int      n_epochs = 4000 * wide;
    for (uint32_t place = 0; place < n; place++) {
        for (uint32_t k = 0; k < n; k++) seen[k] = 0, expected[k] = n_epochs / (double)n;
        for (int epoch = 0; epoch < n_epochs; epoch++)
            seen[rws__table_shuffle((uint64_t)round + 1, (uint64_t)epoch, n, place)]++;
        p = fmin(p, n * counts_tail(seen, expected, (int)n));
    }
    return p;
}

static void shuffles_are_permutations(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3000; n += 1 + n / 3) {
        bool *seen = calloc(n, 1);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t row = rws__table_shuffle(3, n, n, i);
            assert_true(row < n && !seen[row]);
            seen[row] = true;
        }
        free(seen);
    }
    assert_true(rws__table_shuffle(1, 1, INT_MAX, INT_MAX - 1) < INT_MAX);
    const uint32_t sizes[] = {2, 3, 7, 16, 50};
    for (int i = 0; i < COUNT(sizes); i++) stays_likely("a shuffle", look_at_shuffle, (void *)&sizes[i]);
}

static void files_of_all_formats_are_told_apart(void **state)
{
    (void)state;
    const float          x[6] = {1, 2, 3, 4, 5, 6};
    const double         y[2] = {7, 8};
    const rws_tensor_out tensors[] = {
        {"x", RWS_DTYPE_F32, 2, {2, 3}, x}, {"y", RWS_DTYPE_F64, 1, {2}, y}, {"cube", RWS_DTYPE_F32, 3, {1, 2, 3}, x}};
    world     w;
    rws_error err = {""};
    must(rws__safetensors_write(in_folder("three.safetensors"), tensors, 3, NULL, &err), &err);
    must(rws__safetensors_write(in_folder("one"), tensors, 1, NULL, &err), &err);
    char npy_file[200];
    int  length = sprintf(npy_file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    memmove(npy_file + 10, npy_file, (size_t)length);
    memcpy(npy_file, "\x93NUMPY\1\0", 8);
    npy_file[8] = (char)length, npy_file[9] = 0;
    memcpy(npy_file + 10 + length, x, sizeof x);
    spill("array", npy_file, 10 + (size_t)length + sizeof x);
    spill("text.npy", "1,2,3\n4,5,6\n", 12);
    spill("cut.safetensors", "1,2,3\n4,5,6\n", 12);

    static const struct {
        const char *file, *tensor;
    } good[] = {{"one", NULL}, {"three.safetensors", "x"}, {"array", NULL}, {"text.npy", NULL}};
    for (int i = 0; i < COUNT(good); i++) {
        const rws_table_options o = {.tensor = good[i].tensor};
        world_init(&w, in_folder(good[i].file), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        must(w.s.status, &w.s.error);
        assert_int_equal(rws_table_rows(t, RWS_TRAIN), 2);
        assert_memory_equal(rws_table_row(t, RWS_TRAIN, 1), x + 3, 3 * sizeof *x);
        assert_true(!rws_table_name(t, 1) && rws_table_column(t, "x") == 0);
        rws__setup_release(&w.s);
    }
    static const struct {
        const char *file, *tensor, *message;
    } bad[] = {
        {"three.safetensors", NULL, "has 3 tensors, and the model does not say which it wants."},
        {"three.safetensors", "z", "has no tensor \"z\"."},
        {"three.safetensors", "cube", "has a tensor \"cube\" of 3 dimensions; tensors of 1 or 2 are read."},
        {"cut.safetensors", NULL, "safetensors"},
        {"missing", NULL, "missing"},
        {".", NULL, ""},
    };
    for (int i = 0; i < COUNT(bad); i++) {
        const rws_table_options o = {.tensor = bad[i].tensor};
        world_init(&w, in_folder(bad[i].file), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, bad[i].file, bad[i].message);
        /* the table that a failure returns can be used everywhere */
        assert_int_equal(rws_setup_table_field(&w.s, t, "x", "1"), 1);
        assert_int_equal(rws_table_rows(t, RWS_TRAIN) + rws_table_columns(t) + rws_table_column(t, "x"), 0);
        assert_true(!rws_table_row(t, RWS_TRAIN, 0) && !rws_table_name(t, 1));
        assert_refused(rws_table_fill(t, RWS_TRAIN, 0, 1, NULL, NULL, &err), RWS_BAD_INPUT, &err, "no rows", "");
        rws__setup_release(&w.s);
    }
}

/* ---- series: rows with the same id */

/* One id comes back after others, one id is a word, and one has a separator in it. */
static const char visits[] = "who,age,x,y\n"
                             "ann,30,1,10\n"
                             "ann,30,2,20\n"
                             "7,40,3,30\n"
                             "ann,30,4,40\n"
                             "\"b,c\",50,5,50\n"
                             "7,40,6,60\n"
                             "7.0,60,7,70\n";

static void rows_of_an_id_are_a_series(void **state)
{
    (void)state;
    static const float want[4][1 + 2 * 4] = {
        {3, 10, 1, 20, 2, 40, 4}, {2, 30, 3, 60, 6}, {1, 50, 5}, {1, 70, 7}}; /* length; y and x of each row */
    world                   w;
    float                   series[4 * 9], age[4], length[4], label[4];
    const rws_table_options o = {.id = "who", .test_share = 1};
    memset(series, 0x7f, sizeof series); /* what a batch held before */
    spill("visits.csv", visits, strlen(visits));
    world_init(&w, in_folder("visits.csv"), "");
    rws_table *t = rws_setup_table(&w.s, NULL, &o);
    assert_int_equal(rws_table_longest(t), 3);
    assert_int_equal(rws_setup_table_series(&w.s, t, "s", "y,x", 4), 2);
    assert_int_equal(rws_setup_table_field(&w.s, t, "age", "age"), 1);
    rws_setup_table_length(&w.s, t, "n");
    assert_int_equal(rws_setup_table_label(&w.s, t, "label", "age"), 1);
    must(w.s.status, &w.s.error);
    assert_true(w.s.fields[0].dim == 9 && w.s.fields[0].item == 2 && w.s.fields[0].most == 4);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), 4);
    must(rws_table_fill(t, RWS_TEST, 0, 4, NULL, (float *[]){series, age, length, label}, &w.s.error), &w.s.error);
    assert_memory_equal(series, want, sizeof want);
    for (int i = 0; i < 4; i++) assert_true(length[i] == want[i][0] && age[i] == 30 + 10 * (float)i);
    assert_true(rws_table_row(t, RWS_TRAIN, 1)[2] == 3 && rws_table_item(t, RWS_TRAIN, 1, 1)[2] == 6);
    assert_true(!rws_table_item(t, RWS_TRAIN, 1, 2) && !rws_table_item(t, RWS_TRAIN, 1, -1));
    rws__setup_release(&w.s);

    world_init(&w, in_folder("visits.csv"), ""); /* as long as the longest */
    rws_setup_table_series(&w.s, rws_setup_table(&w.s, NULL, &o), "s", "x", 0);
    assert_true(w.s.fields[0].dim == 4 && w.s.fields[0].most == 3);
    rws__setup_release(&w.s);
}

static void bad_series_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *id, *series, *field;
        int         most;
        const char *message;
    } list[] = {
        {visits, "whom", "x", NULL, 0, "has no column \"whom\"; it has 4 columns: \"who\", \"age\", \"x\", \"y\"."},
        {visits, NULL, "x", NULL, 0, "table without ids; the option id of the table names their column."},
        {visits, "who", "x", NULL, 2,
         "d.csv\" has 3 rows of the id that begins in line 2, and a series of the model has at most 2 items."},
        {visits, "who", "who", NULL, 0, "d.csv\", line 2, column 1 (\"who\"): \"ann\" is not a number."},
        {visits, "who", "x", "y", 0,
         "d.csv\", line 3, column 4 (\"y\"): it is 20, but 10 in line 2, which has the same id; a field has one value "
         "for each id, and a series has many."},
        {"a,b\n1,2\n,3\n", "a", "b", NULL, 0, "d.csv\", line 3, column 1 (\"a\"): the id is empty."},
        {"a,b\n1,2\n1,x\n", "a", "b", NULL, 0, "d.csv\", line 3, column 2 (\"b\"): \"x\" is not a number."},
        {"a,b,a\n1,2,3\n", "a", "b", NULL, 0, "has several columns \"a\"; name the column by its number."},
        {visits, "who", "x", NULL, -1, "has at most -1"},
    };
    for (int i = 0; i < COUNT(list); i++) {
        world                   w;
        const rws_table_options o = {.id = list[i].id};
        spill("d.csv", list[i].text, strlen(list[i].text));
        world_init(&w, in_folder("d.csv"), "");
        rws_table *t = rws_setup_table(&w.s, NULL, &o);
        rws_setup_table_series(&w.s, t, "s", list[i].series, list[i].most);
        if (list[i].field) rws_setup_table_field(&w.s, t, "f", list[i].field);
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, list[i].message, "");
        rws_setup_table_length(&w.s, t, "n"); /* the first failure counts */
        assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, list[i].message, "");
        rws__setup_release(&w.s);
    }
    world                   w;
    const rws_table_options o = {.id = "a", .skip_missing = true}; /* a row without an id is missing */
    static const char       some[] = "a,b\n1,2\n,3\n1,4\n2,\n";
    spill("d.csv", some, strlen(some));
    world_init(&w, in_folder("d.csv"), "");
    rws_table *t = rws_setup_table(&w.s, NULL, &o);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), 1);
    assert_int_equal(rws_table_longest(t), 2);
    rws__setup_release(&w.s);
}

/* Ids of arrays are compared exactly: these are one number as floats. */
static void ids_of_arrays_are_exact(void **state)
{
    (void)state;
    static const int64_t x[] = {16777216, 1, 16777217, 2, 16777216, 3, INT64_MIN, 4};
    static const float   y[] = {1, 2, NAN, 3};
    rws_sheet            s;
    rws_error            err = {""};
    must(rws__sheet_from_array(x, (rws_element){'i', 8}, 4, 2, "x", "1", &s, &err), &err);
    assert_int_equal(s.n_ids, 3);
    assert_memory_equal(s.ids, ((int[]){0, 1, 0, 2}), 4 * sizeof(int));
    rws__sheet_release(&s);
    assert_int_equal(rws__sheet_from_array(y, (rws_element){'f', 4}, 2, 2, "y", "1", &s, &err), RWS_BAD_INPUT);
    assert_string_equal(err.text, "\"y\", element [1, 0]: an id must be a finite number.");
    assert_true(!s.values && !s.ids);
    assert_refused(rws__sheet_from_array(y, (rws_element){'f', 4}, 2, 2, "y", "3", &s, &err), RWS_BAD_INPUT, &err,
                   "\"y\" has no column \"3\"", "");
}

/* Numbers of data and of rows are floats, which count up to 2^24. */
static void numbers_beyond_floats_are_refused(void **state)
{
    (void)state;
    enum { MOST = 1 << 24 };
    static const rws_table_options o = {.test_share = 1};
    const char *const              path[2] = {"x", NULL};
    static const float             x[] = {1, 2, 3};
    rws_error                      err = {""};
    for (int more = 0; more < 2; more++) { /* as if rows before the last one were left out */
        rws_sheet  s[2] = {{0}, {0}};
        rws_table *t = NULL;
        float      number[3], *fields[] = {number};
        int        dim;
        must(rws__sheet_from_array(x, (rws_element){'f', 4}, 3, 1, "x", NULL, &s[0], &err), &err);
        s[0].numbers = malloc(3 * sizeof(int));
        memcpy(s[0].numbers, (int[]){0, 5, MOST - 1 + more}, 3 * sizeof(int));
        must(rws__table_new(s, path, &o, 1, &t, &err), &err);
        const rws_status status = rws__table_add_field(t, 0, "#", true, &dim, &err);
        if (more) assert_refused(status, RWS_BAD_INPUT, &err, "\"x\" has a datum of number 16777216", "0 to 16777215");
        else {
            must(status, &err);
            must(rws_table_fill(t, RWS_TEST, 0, 3, NULL, fields, &err), &err);
            assert_true(number[2] == MOST - 1);
        }
        rws__table_free(t);
    }

    /* one id; the pages of the ids are never written to */
    rws_sheet  s[2] = {{.n_rows = MOST + 1, .n_columns = 1, .n_ids = 1, .ids = calloc(MOST + 1, sizeof(int))}, {0}};
    rws_table *t = NULL;
    assert_refused(rws__table_new(s, path, &o, 1, &t, &err), RWS_BAD_INPUT, &err, "\"x\" has 16777217 rows of one id",
                   "at most 16777216");
    assert_null(t);

    world w;
    world_init(&w, "", "");
    rws_setup_series(&w.s, "x", 1, MOST);
    must(w.s.status, &w.s.error);
    rws_setup_series(&w.s, "y", 1, MOST + 1);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "The series \"y\" has up to 16777217 items", "16777216");
    rws__setup_release(&w.s);
}

/* 1,000 ids of 1 to 7 rows, shuffled among each other: each datum is in one split, whole and in order. */
static void ids_are_split_as_a_whole(void **state)
{
    (void)state;
    enum { IDS = 1000 };
    char      *text = malloc(IDS * 7 * 32 + 32);
    int        length = sprintf(text, "id,item,total\n"), next[IDS] = {0};
    world      w;
    bool       seen[IDS] = {false};
    rws_random random = rws__random_new(rws__key_for(2, 0, RWS_KEY_TEST, 0), 0);
    assert_non_null(text);
    for (int left = 4 * IDS; left > 0;) {
        const int i = (int)rws_random_below(&random, IDS), total = 1 + i % 7;
        if (next[i] == total) {
            left--;
            continue;
        }
        length += sprintf(text + length, "s%d,%d,%d\n", i, 10 * i + next[i]++, total);
    }
    for (int i = 0; i < IDS; i++)
        while (next[i] < 1 + i % 7) length += sprintf(text + length, "s%d,%d,%d\n", i, 10 * i + next[i]++, 1 + i % 7);
    spill("ids.csv", text, (size_t)length);
    free(text);
    world_init(&w, in_folder("ids.csv"), "");
    rws_table *t = rws_setup_table(&w.s, NULL, &(rws_table_options){.id = "id", .test_share = 0.2});
    rws_setup_table_series(&w.s, t, "x", "item", 0);
    rws_setup_table_field(&w.s, t, "total", "total");
    rws_setup_table_length(&w.s, t, "n");
    must(w.s.status, &w.s.error);
    assert_int_equal(rws_table_rows(t, RWS_TEST), IDS / 5);
    assert_int_equal(rws_table_rows(t, RWS_TRAIN), IDS - IDS / 5);
    for (int split = 0; split < 2; split++)
        for (int i = 0; i < rws_table_rows(t, (rws_split)split); i++) {
            float x[8], total, n;
            must(rws_table_fill(t, (rws_split)split, (uint64_t)i, 1, &random, (float *[]){x, &total, &n}, &w.s.error),
                 &w.s.error);
            const int id = (int)x[1] / 10;
            assert_false(seen[id]);
            seen[id] = true;
            assert_true(x[0] == total && n == total && (int)total == 1 + id % 7);
            for (int k = 0; k < (int)n; k++) assert_true(x[1 + k] == (float)(10 * id + k));
        }
    for (int i = 0; i < IDS; i++) assert_true(seen[i]);
    rws__setup_release(&w.s);
}

static void mistakes_of_a_model_fail_its_setup(void **state)
{
    (void)state;
    world w;
    world_init(&w, "", "");
    rws_setup_table(&w.s, NULL, NULL);
    assert_int_equal(w.s.status, RWS_BAD_INPUT);
    assert_string_equal(w.s.error.text, "Model mine needs a file to learn from: give `data=FILE`.");
    rws__setup_release(&w.s);
    world_init(&w, "", "");
    rws_setup_table(&w.s, "test_data", NULL);
    assert_string_equal(w.s.error.text, "Model mine needs a file to learn from: give `test_data=FILE`.");
    rws__setup_release(&w.s);
    world_init(&w, "", "");
    rws_setup_table(&w.s, "file", NULL);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "\"file\"", "not in its table");
    rws__setup_release(&w.s);
    world_init(&w, "", "");
    assert_int_equal(rws_setup_table_field(&w.s, NULL, "x", NULL), 1);
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "\"x\"", "without a table");
    rws__setup_release(&w.s);
    /* a name that is taken; more fields than there may be */
    world_init(&w, numbered("many.csv", 20), "");
    rws_table *t = rws_setup_table(&w.s, NULL, NULL);
    for (int i = 0; i < RWS_FIELDS; i++) {
        char name[10];
        snprintf(name, sizeof name, "f%d", i);
        rws_setup_table_field(&w.s, t, name, "i:ten");
    }
    must(w.s.status, &w.s.error);
    rws_setup_table_field(&w.s, t, "more", "i");
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "\"more\"", "one too many");
    rws__setup_release(&w.s);
    world_init(&w, in_folder("many.csv"), "");
    t = rws_setup_table(&w.s, NULL, NULL);
    rws_setup_table_field(&w.s, t, "x", "i");
    rws_setup_table_field(&w.s, t, "x", "i");
    assert_refused(w.s.status, RWS_BAD_INPUT, &w.s.error, "\"x\"", "twice");
    rws__setup_release(&w.s);
}

/* ---- a model that learns */

typedef struct {
    rws_table *table;
    rws_param *mean;
} gauss;

static rws_status gauss_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    gauss *g = *state = rws_setup_alloc(s, sizeof *g);
    g->table = rws_setup_table(s, NULL, &(rws_table_options){.test = "test_data"});
    const int dim = rws_setup_table_field(s, g->table, "x", "i,ten");
    g->mean = rws_setup_param(s, RWS_THETA, "theta.mean", 1, dim, RWS_ZERO);
    return RWS_OK;
}

static rws_status gauss_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    return rws_table_fill(((const gauss *)state)->table, split, first, n, random, fields, err);
}

static void gauss_model(rws_path *path, const void *state)
{
    const gauss *g = state;
    rws_flip(path, "coin", rws_constant(path, 0));
    rws_normal(path, "x", rws_parameter(path, g->mean), rws_constant(path, 10));
}

static void gauss_guide(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "coin", rws_constant(path, 0));
}

static const rws_model gauss_model_struct = {.abi = RWS_ABI,
                                             .name = "gauss",
                                             .settings = table_settings,
                                             .setup = gauss_setup,
                                             .data = gauss_data,
                                             .guide = gauss_guide,
                                             .model = gauss_model};

/* Its mean becomes that of the training rows, and the path is absolute in the configuration. */
static void a_model_learns_from_a_file(void **state)
{
    (void)state;
    char       here[PATH_MAX];
    rws_config c = {
        .batch = 9, .particles = 2, .set = {"data=./learn.csv"}, .n_set = 1, .lr = "0.5", .iterations = 300};
    rws_error err = {""};
    numbered("learn.csv", 9); /* all rows serve both purposes */
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    rws_trainer *t = trainer_for(&c, &gauss_model_struct);
    assert_int_equal(chdir(here), 0);
    steps(t, 300);
    const rws_param *mean = param_of(&t->program.setup.params, "theta.mean");
    assert_near(mean->value[0], 4, 0.5);
    assert_near(mean->value[1], 40, 0.5);
    assert_string_equal(rws__setup_given(&t->program.setup, "data"), in_folder("learn.csv"));
    rws_trainer_free(t);

    c.set[0] = "data=/nowhere/x.csv";
    assert_refused(rws_trainer_new(&c, &gauss_model_struct, &t, &err), RWS_BAD_INPUT, &err, "/nowhere/x.csv", "");
    c.n_set = 0;
    assert_refused(rws_trainer_new(&c, &gauss_model_struct, &t, &err), RWS_BAD_INPUT, &err, "gauss",
                   "give `data=FILE`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_split),
        cmocka_unit_test(test_rows_come_from_another_file),
        cmocka_unit_test(labels_may_be_missing),
        cmocka_unit_test(labels_are_numbers_or_missing),
        cmocka_unit_test(numbers_are_those_of_the_file),
        cmocka_unit_test(columns_become_fields),
        cmocka_unit_test(rows_come_in_their_order),
        cmocka_unit_test(shuffles_are_permutations),
        cmocka_unit_test(files_of_all_formats_are_told_apart),
        cmocka_unit_test(rows_of_an_id_are_a_series),
        cmocka_unit_test(bad_series_are_refused),
        cmocka_unit_test(ids_of_arrays_are_exact),
        cmocka_unit_test(numbers_beyond_floats_are_refused),
        cmocka_unit_test(ids_are_split_as_a_whole),
        cmocka_unit_test(mistakes_of_a_model_fail_its_setup),
        cmocka_unit_test(a_model_learns_from_a_file),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
