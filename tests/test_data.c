/* test_data.c - IDX files and canvases are read to the last byte or refused with a sentence that names the file; what is
 * random in them repeats and has the distribution it should. */
#include "support.h"

#include "data/file.h"
#include "data/idx.h"
#include "data/mnist.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[] = "/tmp/rws-data-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test left anything behind */
}

/* One whole sentence that has the words in it. */
static void assert_sentence(const rws_error *err, const char *words)
{
    const size_t n = strlen(err->text);
    assert_true(n > 0 && err->text[n - 1] == '.');
    if (!strstr(err->text, words)) fail_msg("\"%s\" is not in: %s", words, err->text);
}

static size_t pack(const uint8_t *bytes, size_t size, uint8_t *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

/* ---- IDX */

static const uint8_t tiny[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 255};

static rws_status parse(const uint8_t *bytes, size_t size, rws_idx *out, rws_error *err)
{
    /* a copy of just this size, so that a sanitizer sees any byte read behind it */
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const rws_status status = rws_idx_parse(copy, size, "some-file", out, err);
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
    rws_idx_release(idx);
    assert_null(idx->values);
}

static void assert_refused(const uint8_t *bytes, size_t size, const char *words)
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
    for (size_t cut = 0; cut < sizeof tiny; cut++) assert_refused(tiny, cut, cut < 4 ? "not an IDX file" : "cut short");
    for (size_t cut = 0; cut < n; cut++) assert_refused(packed, cut, "some-file");
    assert_refused(packed, n - 1, "cut short");
}

static void idx_trailing_bytes(void **state)
{
    (void)state;
    uint8_t longer[sizeof tiny + 1] = {0}, packed[128];
    memcpy(longer, tiny, sizeof tiny);
    assert_refused(longer, sizeof longer, "goes on after");
    assert_refused(packed, pack(longer, sizeof longer, packed, sizeof packed), "goes on after");
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed - 1);
    packed[n] = 0;
    assert_refused(packed, n + 1, "goes on after");
}

static void idx_wrong_bits(void **state)
{
    (void)state;
    uint8_t bad[sizeof tiny], packed[128];
    for (int at = 0; at < 2; at++) {
        memcpy(bad, tiny, sizeof tiny);
        bad[at] = 1;
        assert_refused(bad, sizeof bad, "not an IDX file");
    }
    memcpy(bad, tiny, sizeof tiny);
    bad[2] = 0x0d;
    assert_refused(bad, sizeof bad, "type 0x0d");
    for (int dims = 0; dims < 256; dims++) {
        bad[2] = 8;
        bad[3] = (uint8_t)dims;
        if (dims != 2)
            assert_refused(bad, sizeof bad, dims == 1 ? "goes on after" : dims > 2 && dims < 5 ? "" : "dimensions");
    }
    /* a changed byte of a packed file is found by gzip's own checksum, wherever it is but in the header's leisure fields */
    const size_t n = pack(tiny, sizeof tiny, packed, sizeof packed);
    for (size_t at = 10; at < n; at++) {
        packed[at] ^= 0x10;
        assert_refused(packed, n, "some-file");
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
    assert_refused(overflows, sizeof overflows, "more than");
    assert_refused(wraps, sizeof wraps, "more than");
    assert_refused(large, sizeof large, "cut short");
    assert_refused(packed, pack(large, sizeof large, packed, sizeof packed), "cut short");
    assert_int_equal(parse(empty, sizeof empty, &idx, &err), RWS_OK);
    assert_int_equal(idx.n_values, 0);
    rws_idx_release(&idx);
}

static void idx_on_disk(void **state)
{
    (void)state;
    char     *path = rws_file_join(folder, "tiny");
    rws_idx   idx;
    rws_error err = {""};
    assert_int_equal(rws_idx_read(path, &idx, &err), RWS_BAD_INPUT);
    assert_sentence(&err, path);
    assert_int_equal(rws_idx_read(folder, &idx, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "not a file");
    assert_int_equal(parse(tiny, sizeof tiny, &idx, &err), RWS_OK);
    assert_int_equal(rws_idx_write(path, &idx, &err), RWS_OK);
    rws_idx_release(&idx);
    uint8_t *bytes;
    size_t   size;
    assert_int_equal(rws_file_read(path, sizeof tiny, &bytes, &size, &err), RWS_OK);
    assert_int_equal(size, sizeof tiny);
    assert_memory_equal(bytes, tiny, sizeof tiny);
    free(bytes);
    assert_int_equal(rws_idx_read(path, &idx, &err), RWS_OK);
    assert_tiny(&idx);
    assert_int_equal(rws_file_read(path, sizeof tiny - 1, &bytes, &size, &err), RWS_BAD_INPUT);
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
            assert_int_equal(rws_cache_folder(&found, &err), RWS_OK);
            assert_string_equal(found, rows[i].want);
            free(found);
        } else {
            assert_int_equal(rws_cache_folder(&found, &err), RWS_BAD_INPUT);
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
    assert_int_equal(rws_mnist_open(RWS_TRAIN, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`rws data mnist`");
    assert_null(digits.pixels);
    assert_int_equal(rws_mnist_binary(RWS_PART_TEST, &binary, &n, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "t10k-images-idx3-ubyte");
    assert_null(binary);
    assert_int_equal(rws_mnist_install(folder, folder, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "train-images-idx3-ubyte");
    unsetenv("RWS_CACHE");
}

/* Files of the right sizes: opened where only sizes count, refused where they must be MNIST's. */
static void mnist_of_paper(void **state)
{
    (void)state;
    char *inside = rws_file_join(folder, "mnist"), *images = rws_file_join(inside, "t10k-images-idx3-ubyte"),
         *labels = rws_file_join(inside, "t10k-labels-idx1-ubyte");
    rws_error  err = {""};
    rws_digits digits;
    rws_idx    i = {.n_dims = 3, .dims = {10000, 28, 28}, .n_values = 7840000};
    rws_idx    l = {.n_dims = 1, .dims = {10000}, .n_values = 10000};
    i.values = calloc(i.n_values, 1);
    l.values = calloc(l.n_values, 1);
    for (size_t at = 0; at < i.n_values; at++) i.values[at] = (uint8_t)(at / 784 % 256);
    l.values[9999] = 9;
    setenv("RWS_CACHE", folder, 1);
    assert_int_equal(rws_file_make_folder(inside, &err), RWS_OK);
    assert_int_equal(rws_idx_write(images, &i, &err), RWS_OK);
    assert_int_equal(rws_idx_write(labels, &l, &err), RWS_OK);
    assert_int_equal(rws_mnist_open(RWS_TEST, &digits, &err), RWS_OK);
    assert_int_equal(digits.n, 10000);
    assert_int_equal(digits.rows * digits.cols, 784);
    assert_int_equal(digits.labels[9999], 9);
    assert_memory_equal(digits.pixels, i.values, i.n_values);
    rws_digits_release(&digits);

    l.values[3] = 10;
    assert_int_equal(rws_idx_write(labels, &l, &err), RWS_OK);
    assert_int_equal(rws_mnist_open(RWS_TEST, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "label 10");
    i.dims[0] = 28, i.dims[1] = 10000;
    assert_int_equal(rws_idx_write(images, &i, &err), RWS_OK);
    assert_int_equal(rws_mnist_open(RWS_TEST, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "10000 x 28 x 28");
    assert_int_equal(rws_mnist_open(RWS_TRAIN, &digits, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`rws data mnist`");
    i.dims[0] = 10000, i.dims[1] = 28;

    /* as a source: the right sizes, the wrong bytes */
    char *train_images = rws_file_join(inside, "train-images.idx3-ubyte");
    i.dims[0] = 60000, i.n_values = 60000 * 784;
    free(i.values);
    i.values = calloc(i.n_values, 1);
    assert_int_equal(rws_idx_write(train_images, &i, &err), RWS_OK);
    assert_int_equal(rws_mnist_install(inside, "/nowhere", &err), RWS_BAD_INPUT);
    assert_sentence(&err, "SHA-256");
    assert_sentence(&err, "train-images.idx3-ubyte");
    assert_int_equal(rws_mnist_verify(folder, &err), RWS_BAD_INPUT);

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
    rws_digits_binarise(&d, RWS_TRAIN, 0, N, x);
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
    assert_true(chi_square_tail(z2, N - 2) > LEVEL); /* the numbers are fixed: passed once, passed always */

    /* the same again, also for a part of the digits; other digits of the other split */
    d.n = 10;
    d.pixels += 100 * PIXELS;
    rws_digits_binarise(&d, RWS_TRAIN, 100, 10, again);
    assert_memory_equal(again, x + 100 * PIXELS, 10 * PIXELS * sizeof *x);
    rws_digits_binarise(&d, RWS_TEST, 100, 10, again);
    assert_memory_not_equal(again, x + 100 * PIXELS, 10 * PIXELS * sizeof *x);
    free(grey), free(x), free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_plain_and_packed), cmocka_unit_test(idx_cut_anywhere),
        cmocka_unit_test(idx_trailing_bytes),   cmocka_unit_test(idx_wrong_bits),
        cmocka_unit_test(idx_hostile_sizes),    cmocka_unit_test(idx_on_disk),
        cmocka_unit_test(cache_is_found),       cmocka_unit_test(mnist_is_missing),
        cmocka_unit_test(mnist_of_paper),       cmocka_unit_test(binary_pixels),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
