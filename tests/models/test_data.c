/* test_data.c - IDX files and canvases are read to the last byte or refused with a message that names the file; random
 * numbers repeat and have the right distribution. */
#include "files.h"

#include "base/file.h"
#include "models/corpora/cache.h"
#include "models/corpora/canvas.h"
#include "models/corpora/idx.h"
#include "models/corpora/mnist.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static size_t pack(const uint8_t *bytes, size_t size, uint8_t *out, size_t capacity)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)capacity};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return capacity - z.avail_out;
}

/* ---- IDX */

static const uint8_t tiny[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 255};

static rws_status parse(const uint8_t *bytes, size_t size, rws_idx *out, rws_error *err)
{
    /* a copy of exactly this size, so that a sanitizer sees a read behind the end */
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const rws_status status = rws__idx_parse(copy, size, "some-file", out, err);
    free(copy);
    return status;
}

static void assert_tiny(rws_idx *idx)
{
    assert_int_equal(idx->n_dims, 2);
    assert_int_equal(idx->dims[0], 2);
    assert_int_equal(idx->dims[1], 3);
    assert_int_equal(idx->n_values, 6);
    assert_memory_equal(idx->values, tiny + 12, 6);
    rws__idx_release(idx);
    assert_null(idx->values);
}

static void assert_refuses(const uint8_t *bytes, size_t size, const char *words)
{
    rws_idx   idx;
    rws_error err = {""};
    assert_int_equal(parse(bytes, size, &idx, &err), RWS_BAD_INPUT);
    assert_null(idx.values);
    assert_sentence(&err, "some-file");
    assert_sentence(&err, words);
}

static void idx_plain_and_packed(void **state)
{
    (void)state;
    uint8_t   packed[128];
    rws_idx   idx;
    rws_error err;
    assert_int_equal(parse(tiny, sizeof tiny, &idx, &err), RWS_OK);
    assert_tiny(&idx);
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed);
    assert_int_equal(parse(packed, n, &idx, &err), RWS_OK);
    assert_tiny(&idx);
}

static void idx_cut_anywhere(void **state)
{
    (void)state;
    uint8_t      packed[128];
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed - 1);
    for (size_t cut = 0; cut < sizeof tiny; cut++) assert_refuses(tiny, cut, cut < 4 ? "not an IDX file" : "cut short");
    for (size_t cut = 0; cut < n; cut++) assert_refuses(packed, cut, "some-file");
    assert_refuses(packed, n - 1, "cut short");
}

static void idx_trailing_bytes(void **state)
{
    (void)state;
    uint8_t longer[sizeof tiny + 1] = {0}, packed[128];
    memcpy(longer, tiny, sizeof tiny);
    assert_refuses(longer, sizeof longer, "continues after");
    assert_refuses(packed, pack(longer, sizeof longer, packed, sizeof packed), "continues after");
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed - 1);
    packed[n] = 0;
    assert_refuses(packed, n + 1, "continues after");
}

static void idx_wrong_bits(void **state)
{
    (void)state;
    uint8_t bad[sizeof tiny], packed[128];
    for (int at = 0; at < 2; at++) {
        memcpy(bad, tiny, sizeof tiny);
        bad[at] = 1;
        assert_refuses(bad, sizeof bad, "not an IDX file");
    }
    memcpy(bad, tiny, sizeof tiny);
    bad[2] = 0x0d;
    assert_refuses(bad, sizeof bad, "type 0x0d");
    for (int dims = 0; dims < 256; dims++) {
        bad[2] = 8;
        bad[3] = (uint8_t)dims;
        if (dims != 2)
            assert_refuses(bad, sizeof bad, dims == 1 ? "continues after" : dims > 2 && dims < 5 ? "" : "dimensions");
    }
    /* gzip's checksum finds a changed byte anywhere except in the optional fields of its header */
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed);
    for (size_t at = 10; at < n; at++) {
        packed[at] ^= 0x10;
        assert_refuses(packed, n, "some-file");
        packed[at] ^= 0x10;
    }
}

static void idx_hostile_sizes(void **state)
{
    (void)state;
    static const uint8_t overflows[] = {0,    0,    8,    4,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t wraps[] = {0, 0, 8, 4, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 7}; /* 2^64 */
    static const uint8_t large[] = {0, 0, 8, 1, 0x40, 0, 0, 0};
    static const uint8_t empty[] = {0, 0, 8, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    uint8_t              packed[128];
    rws_idx              idx;
    rws_error            err;
    assert_refuses(overflows, sizeof overflows, "more than");
    assert_refuses(wraps, sizeof wraps, "more than");
    assert_refuses(large, sizeof large, "cut short");
    assert_refuses(packed, pack(large, sizeof large, packed, sizeof packed), "cut short");
    assert_int_equal(parse(empty, sizeof empty, &idx, &err), RWS_OK);
    assert_int_equal(idx.n_values, 0);
    rws__idx_release(&idx);
}

static void idx_on_disk(void **state)
{
    (void)state;
    char     *path = rws__file_join(folder, "tiny");
    rws_idx   idx;
    rws_error err = {""};
    assert_int_equal(rws__idx_read(path, &idx, &err), RWS_BAD_INPUT);
    assert_sentence(&err, path);
    assert_int_equal(rws__idx_read(folder, &idx, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "not a regular file");
    assert_int_equal(parse(tiny, sizeof tiny, &idx, &err), RWS_OK);
    assert_int_equal(rws__idx_write(path, &idx, &err), RWS_OK);
    rws__idx_release(&idx);
    uint8_t *bytes;
    size_t   size;
    assert_int_equal(rws__file_read(path, sizeof tiny, &bytes, &size, &err), RWS_OK);
    assert_int_equal(size, sizeof tiny);
    assert_memory_equal(bytes, tiny, sizeof tiny);
    free(bytes);
    assert_int_equal(rws__idx_read(path, &idx, &err), RWS_OK);
    assert_tiny(&idx);
    assert_int_equal(rws__file_read(path, sizeof tiny - 1, &bytes, &size, &err), RWS_BAD_INPUT);
    assert_sentence(&err, path);
    unlink(path);
    free(path);
}

/* ---- the cache */

static void cache_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *own, *shared, *home, *want;
    } rows[] = {
        {"/own", "/shared", "/home/a", "/own"},
        {"", "/shared/", "/home/a", "/shared/rws"},
        {NULL, NULL, "/home/a", "/home/a/.cache/rws"},
        {NULL, "", NULL, NULL},
    };
    char     *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL, *found;
    rws_error err = {""};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const names[] = {"RWS_CACHE", "XDG_CACHE_HOME", "HOME"};
        const char *const values[] = {rows[i].own, rows[i].shared, rows[i].home};
        for (int v = 0; v < 3; v++) values[v] ? setenv(names[v], values[v], 1) : unsetenv(names[v]);
        if (rows[i].want) {
            assert_int_equal(rws__cache_folder(&found, &err), RWS_OK);
            assert_string_equal(found, rows[i].want);
            free(found);
        } else {
            assert_int_equal(rws__cache_folder(&found, &err), RWS_BAD_INPUT);
            assert_sentence(&err, "RWS_CACHE");
        }
    }
    if (home) setenv("HOME", home, 1);
    free(home);
}

/* ---- MNIST */

static void mnist_is_missing(void **state)
{
    (void)state;
    rws_digits digits;
    rws_error  err = {""};
    float     *binary;
    int        n;
    setenv("RWS_CACHE", folder, 1);
    assert_int_equal(rws__mnist_open(RWS_TRAIN, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`rws data mnist`");
    assert_null(digits.pixels);
    assert_int_equal(rws__mnist_binary(RWS_SUBSET_TEST, &binary, &n, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "t10k-images-idx3-ubyte");
    assert_null(binary);
    assert_int_equal(rws__mnist_install(folder, folder, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "train-images-idx3-ubyte");
    unsetenv("RWS_CACHE");
}

/* Files of the right sizes with other bytes: opened, because reading checks only sizes; refused by install and
 * verify. */
static void files_of_the_right_sizes(void **state)
{
    (void)state;
    char *inside = rws__file_join(folder, "mnist"), *images = rws__file_join(inside, "t10k-images-idx3-ubyte"),
         *labels = rws__file_join(inside, "t10k-labels-idx1-ubyte");
    rws_error  err = {""};
    rws_digits digits;
    rws_idx    i = {.n_dims = 3, .dims = {10000, 28, 28}, .n_values = 7840000};
    rws_idx    l = {.n_dims = 1, .dims = {10000}, .n_values = 10000};
    i.values = calloc(i.n_values, 1);
    l.values = calloc(l.n_values, 1);
    for (size_t at = 0; at < i.n_values; at++) i.values[at] = (uint8_t)(at / 784 % 256);
    l.values[9999] = 9;
    setenv("RWS_CACHE", folder, 1);
    assert_int_equal(rws__file_make_folder(inside, &err), RWS_OK);
    assert_int_equal(rws__idx_write(images, &i, &err), RWS_OK);
    assert_int_equal(rws__idx_write(labels, &l, &err), RWS_OK);
    assert_int_equal(rws__mnist_open(RWS_TEST, &digits, &err), RWS_OK);
    assert_int_equal(digits.n, 10000);
    assert_int_equal(digits.rows * digits.cols, 784);
    assert_int_equal(digits.labels[9999], 9);
    assert_memory_equal(digits.pixels, i.values, i.n_values);
    rws__digits_release(&digits);

    l.values[3] = 10;
    assert_int_equal(rws__idx_write(labels, &l, &err), RWS_OK);
    assert_int_equal(rws__mnist_open(RWS_TEST, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "label 10");
    i.dims[0] = 28, i.dims[1] = 10000;
    assert_int_equal(rws__idx_write(images, &i, &err), RWS_OK);
    assert_int_equal(rws__mnist_open(RWS_TEST, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "10000 x 28 x 28");
    assert_int_equal(rws__mnist_open(RWS_TRAIN, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`rws data mnist`");
    i.dims[0] = 10000, i.dims[1] = 28;

    /* as a source: the right sizes, the wrong bytes */
    char *train_images = rws__file_join(inside, "train-images.idx3-ubyte");
    i.dims[0] = 60000, i.n_values = 60000 * 784;
    free(i.values);
    i.values = calloc(i.n_values, 1);
    assert_int_equal(rws__idx_write(train_images, &i, &err), RWS_OK);
    assert_int_equal(rws__mnist_install(inside, "/nowhere", &err), RWS_BAD_INPUT);
    assert_sentence(&err, "SHA-256");
    assert_sentence(&err, "train-images.idx3-ubyte");
    assert_int_equal(rws__mnist_verify(folder, &err), RWS_BAD_INPUT);

    unsetenv("RWS_CACHE");
    unlink(train_images), unlink(images), unlink(labels);
    assert_int_equal(rmdir(inside), 0);
    free(i.values), free(l.values), free(train_images), free(images), free(labels), free(inside);
}

static void binary_pixels(void **state)
{
    (void)state;
    enum { N = 256, SIDE = 20, PIXELS = SIDE * SIDE };
    uint8_t   *grey = malloc(N * PIXELS);
    float     *x = malloc(N * PIXELS * sizeof *x), *again = malloc(N * PIXELS * sizeof *x);
    rws_digits d = {.n = N, .rows = SIDE, .cols = SIDE, .pixels = grey};
    for (int i = 0; i < N * PIXELS; i++) grey[i] = (uint8_t)(i / PIXELS);
    rws__digits_binarise(&d, RWS_TRAIN, 0, N, x);
    double z2 = 0;
    for (int i = 0; i < N; i++) {
        double       ones = 0;
        const double p = i / 255.0;
        for (int j = 0; j < PIXELS; j++) {
            assert_true(x[i * PIXELS + j] == 0 || x[i * PIXELS + j] == 1);
            ones += x[i * PIXELS + j];
        }
        if (i == 0 || i == 255) assert_true(ones == p * PIXELS);
        else z2 += (ones - p * PIXELS) * (ones - p * PIXELS) / (PIXELS * p * (1 - p));
    }
    assert_true(chi_square_tail(z2, N - 2) > LEVEL); /* the seed is fixed, so a test that passed once always passes */

    /* the same again, also for a part of the digits; other digits of the other split */
    d.n = 10;
    d.pixels += 100 * PIXELS;
    rws__digits_binarise(&d, RWS_TRAIN, 100, 10, again);
    assert_memory_equal(again, x + 100 * PIXELS, 10 * PIXELS * sizeof *x);
    rws__digits_binarise(&d, RWS_TEST, 100, 10, again);
    assert_memory_not_equal(again, x + 100 * PIXELS, 10 * PIXELS * sizeof *x);
    free(grey), free(x), free(again);
}

/* ---- canvases */

enum { N_DIGITS = 5, SIDE = 7, INK = 40 };

/* Digit k is a full rectangle of 2 + k/2 rows and 5 - k columns in the colour INK + k, somewhere on the paper. A canvas
 * can then be read back: a digit is whole if and only if nothing lies on it. */
static int digit_rows(int k)
{
    return 2 + k / 2;
}

static int digit_cols(int k)
{
    return 5 - k;
}

static rws_digits fake_digits(uint8_t *pixels)
{
    memset(pixels, 0, N_DIGITS * SIDE * SIDE);
    for (int k = 0; k < N_DIGITS; k++)
        for (int r = 0; r < digit_rows(k); r++)
            memset(pixels + (k * SIDE + k % 3 + r) * SIDE + 1 + k % 2, INK + k, (size_t)digit_cols(k));
    return (rws_digits){.n = N_DIGITS, .rows = SIDE, .cols = SIDE, .pixels = pixels};
}

/* Returns the number of digits on a canvas, checks that each is whole, and writes their places to top and left (-1: not
 * on the canvas). */
static int read_canvas(const uint8_t *canvas, int size, int top[N_DIGITS], int left[N_DIGITS])
{
    int n = 0, painted = 0, ink = 0;
    for (int i = 0; i < size * size; i++) ink += canvas[i] != 0;
    for (int k = 0; k < N_DIGITS; k++) {
        const uint8_t *at = memchr(canvas, INK + k, (size_t)(size * size));
        top[k] = left[k] = -1;
        if (!at) continue;
        top[k] = (int)(at - canvas) / size;
        left[k] = (int)(at - canvas) % size;
        for (int r = 0; r < digit_rows(k); r++)
            for (int c = 0; c < digit_cols(k); c++) {
                assert_true(top[k] + r < size && left[k] + c < size);
                assert_int_equal(canvas[(top[k] + r) * size + left[k] + c], INK + k);
            }
        painted += digit_rows(k) * digit_cols(k);
        n++;
    }
    assert_int_equal(ink, painted);
    return n;
}

static void draw(rws_split split, int n, int size, int max_digits, uint64_t seed, rws_canvases *out)
{
    uint8_t          pixels[N_DIGITS * SIDE * SIDE];
    const rws_digits digits = fake_digits(pixels);
    rws_error        err = {""};
    if (rws__canvases_draw(&digits, split, n, size, max_digits, seed, NULL, NULL, out, &err) != RWS_OK)
        fail_msg("%s", err.text);
}

/* On a small canvas places are often taken and canvases often drawn again; n is still uniform. */
static double look_at_canvases(void *context, int round, int wide)
{
    enum { MAX = 3, SIZE = 9 };
    (void)context;
    const int    n = 2000 * wide;
    rws_canvases c;
    draw(RWS_TRAIN, n, SIZE, MAX, (uint64_t)round, &c);
    double seen[MAX + 1] = {0}, expected[MAX + 1], used[N_DIGITS] = {0}, even[N_DIGITS];
    int    n_single = 0;
    for (int i = 0; i < n; i++) {
        int       top[N_DIGITS], left[N_DIGITS];
        const int found = read_canvas(c.pixels + (size_t)i * SIZE * SIZE, SIZE, top, left);
        assert_int_equal(found, c.counts[i]);
        seen[found]++;
        n_single += found == 1;
        for (int k = 0; k < N_DIGITS && found == 1; k++) used[k] += top[k] >= 0;
    }
    for (int k = 0; k <= MAX; k++) expected[k] = n / (MAX + 1.0);
    for (int k = 0; k < N_DIGITS; k++) even[k] = n_single / (double)N_DIGITS;
    rws__canvases_release(&c);
    return fmin(1, 2 * fmin(counts_tail(seen, expected, MAX + 1), counts_tail(used, even, N_DIGITS)));
}

static void canvas_counts(void **state)
{
    (void)state;
    stays_likely("digits on a canvas, and which", look_at_canvases, NULL);
}

/* Where a digit alone on its canvas is: round(u * capacity) on each axis, the two independent. */
static double look_at_places(void *context, int round, int wide)
{
    enum { SIZE = 7, K = 3, ROWS = 3, COLS = 2, TOPS = SIZE - ROWS + 1, LEFTS = SIZE - COLS + 1 };
    (void)context;
    const int    n = 20000 * wide;
    rws_canvases c;
    double       seen[TOPS * LEFTS] = {0}, expected[TOPS * LEFTS], total = 0;
    assert_true(digit_rows(K) == ROWS && digit_cols(K) == COLS);
    draw(RWS_TEST, n, SIZE, 1, 100 + (uint64_t)round, &c);
    for (int i = 0; i < n; i++) {
        int top[N_DIGITS], left[N_DIGITS];
        read_canvas(c.pixels + (size_t)i * SIZE * SIZE, SIZE, top, left);
        if (top[K] >= 0) seen[top[K] * LEFTS + left[K]]++, total++;
    }
    for (int t = 0; t < TOPS; t++)
        for (int l = 0; l < LEFTS; l++)
            expected[t * LEFTS + l] = total * (t == 0 || t == TOPS - 1 ? 0.5 : 1) / (TOPS - 1) *
                                      (l == 0 || l == LEFTS - 1 ? 0.5 : 1) / (LEFTS - 1);
    rws__canvases_release(&c);
    return counts_tail(seen, expected, TOPS * LEFTS);
}

static void canvas_places(void **state)
{
    (void)state;
    stays_likely("places of a digit", look_at_places, NULL);
}

static void canvas_repeats(void **state)
{
    (void)state;
    enum { SIZE = 12, N = 100 };
    rws_canvases a, b;
    draw(RWS_TRAIN, N, SIZE, 2, 7, &a);
    draw(RWS_TRAIN, N / 2, SIZE, 2, 7, &b);
    assert_memory_equal(a.pixels, b.pixels, N / 2 * SIZE * SIZE);
    assert_memory_equal(a.counts, b.counts, N / 2);
    rws__canvases_release(&b);
    draw(RWS_TRAIN, N, SIZE, 2, 8, &b);
    assert_memory_not_equal(a.pixels, b.pixels, N * SIZE * SIZE);
    rws__canvases_release(&b);
    draw(RWS_TEST, N, SIZE, 2, 7, &b);
    assert_memory_not_equal(a.pixels, b.pixels, N * SIZE * SIZE);
    rws__canvases_release(&a);
    rws__canvases_release(&b);
}

static bool stop_at_once(void *context, int done)
{
    (void)context;
    return done < 1000;
}

static void canvas_refusals(void **state)
{
    (void)state;
    uint8_t      pixels[N_DIGITS * SIDE * SIDE];
    rws_digits   digits = fake_digits(pixels);
    rws_error    err = {""};
    rws_canvases c;
    assert_int_equal(rws__canvases_draw(&digits, RWS_TRAIN, 10, SIDE - 1, 1, 1, NULL, NULL, &c, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "too small for digits of 7 x 7");
    assert_int_equal(rws__canvases_draw(&digits, RWS_TRAIN, 10, SIDE, 6, 1, NULL, NULL, &c, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "cannot be chosen from 5");
    assert_int_equal(rws__canvases_draw(&digits, RWS_TRAIN, 5000, SIDE, 1, 1, stop_at_once, NULL, &c, &err),
                     RWS_STOPPED);
    assert_null(c.pixels);
    memset(pixels, 1, sizeof pixels); /* as large as the canvas: two never fit */
    assert_int_equal(rws__canvases_draw(&digits, RWS_TRAIN, 50, SIDE, 2, 1, NULL, NULL, &c, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "too small for 2 digits");
    assert_null(c.pixels);
    memset(pixels, 0, SIDE * SIDE);
    assert_int_equal(rws__canvases_draw(&digits, RWS_TRAIN, 50, SIDE, 1, 1, NULL, NULL, &c, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "number 0 has no ink");
}

static void assert_same_canvases(const rws_canvases *a, const rws_canvases *b)
{
    assert_true(a->n == b->n && a->size == b->size && a->max_digits == b->max_digits);
    assert_memory_equal(a->counts, b->counts, (size_t)a->n);
    assert_memory_equal(a->pixels, b->pixels, (size_t)(a->n * a->size * a->size));
}

static void canvas_file(void **state)
{
    (void)state;
    enum { SIZE = 8, HEADER = 48, N_TRAIN = 3, N_TEST = 2, BYTES = HEADER + (N_TRAIN + N_TEST) * (SIZE * SIZE + 1) };
    rws_canvases train, test, got;
    rws_error    err = {""};
    setenv("RWS_CACHE", folder, 1);
    assert_int_equal(rws__canvases_open(NULL, RWS_TRAIN, &got, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`rws data multimnist`");

    char *path;
    assert_int_equal(rws__canvases_path(&path, &err), RWS_OK);
    draw(RWS_TRAIN, N_TRAIN, SIZE, 2, 3, &train);
    draw(RWS_TEST, N_TEST, SIZE, 2, 3, &test);
    assert_int_equal(rws__canvases_write(path, 3, &train, &test, &err), RWS_OK);
    assert_int_equal(rws__canvases_write(path, 3, &train, &test, &err), RWS_OK); /* replaces a file of canvases */
    assert_int_equal(rws__canvases_open(NULL, RWS_TRAIN, &got, &err), RWS_OK);
    assert_same_canvases(&got, &train);
    rws__canvases_release(&got);
    assert_int_equal(rws__canvases_open(path, RWS_TEST, &got, &err), RWS_OK);
    assert_same_canvases(&got, &test);
    rws__canvases_release(&got);

    uint8_t *bytes;
    size_t   size;
    assert_int_equal(rws__file_read(path, 1 << 20, &bytes, &size, &err), RWS_OK);
    assert_int_equal(size, BYTES);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        assert_int_equal(rws__canvases_parse(part, cut, "some-file", RWS_TEST, &got, &err), RWS_BAD_INPUT);
        assert_sentence(&err, "some-file");
        assert_sentence(&err, cut < 8 ? "not a file of canvases" : "cut short");
        assert_null(got.pixels);
        free(part);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        const size_t    train_end = HEADER + N_TRAIN * (SIZE * SIZE + 1);
        const rws_split split = bit / 8 < train_end ? RWS_TRAIN : RWS_TEST;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(rws__canvases_parse(bytes, size, "some-file", split, &got, &err), RWS_BAD_INPUT);
        assert_sentence(&err, "some-file");
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    uint8_t *longer = calloc(size + 1, 1);
    memcpy(longer, bytes, size);
    assert_int_equal(rws__canvases_parse(longer, size + 1, "some-file", RWS_TRAIN, &got, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "continues after its end");
    free(longer);
    free(bytes);

    /* a file of another kind is not overwritten, and an empty file is of another kind */
    for (size_t length = 0; length < 6; length += 5) {
        const rws_piece thesis = {"dear ", length};
        assert_int_equal(rws__file_write(path, &thesis, 1, &err), RWS_OK);
        assert_int_equal(rws__canvases_write(path, 3, &train, &test, &err), RWS_BAD_INPUT);
        assert_sentence(&err, "left as it is");
        assert_int_equal(rws__canvases_open(path, RWS_TRAIN, &got, &err), RWS_BAD_INPUT);
        assert_int_equal(rws__file_read(path, 5, &bytes, &size, &err), RWS_OK);
        assert_int_equal(size, length);
        free(bytes);
    }
    unlink(path);
    free(path);
    unsetenv("RWS_CACHE");
    rws__canvases_release(&train);
    rws__canvases_release(&test);
}

static void write_fails(void **state)
{
    (void)state;
    const rws_piece piece = {"x", 1};
    rws_error       err = {""};
    assert_int_equal(rws__file_write("/nowhere/file", &piece, 1, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "/nowhere/file");
    assert_int_equal(rws__file_write(folder, &piece, 1, &err), RWS_BAD_INPUT); /* the temporary is removed again */
    assert_sentence(&err, folder);
    char *in_file = rws__file_join("/dev/null", "folder");
    assert_int_equal(rws__file_make_folder(in_file, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "/dev/null");
    free(in_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_plain_and_packed),
        cmocka_unit_test(idx_cut_anywhere),
        cmocka_unit_test(idx_trailing_bytes),
        cmocka_unit_test(idx_wrong_bits),
        cmocka_unit_test(idx_hostile_sizes),
        cmocka_unit_test(idx_on_disk),
        cmocka_unit_test(cache_is_found),
        cmocka_unit_test(mnist_is_missing),
        cmocka_unit_test(files_of_the_right_sizes),
        cmocka_unit_test(binary_pixels),
        cmocka_unit_test(canvas_counts),
        cmocka_unit_test(canvas_places),
        cmocka_unit_test(canvas_repeats),
        cmocka_unit_test(canvas_refusals),
        cmocka_unit_test(canvas_file),
        cmocka_unit_test(write_fails),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove_empty);
}
