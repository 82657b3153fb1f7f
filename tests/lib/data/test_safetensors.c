/* test_safetensors.c - tensors that were written are read back, damaged files are refused with a message, and an old
 * file survives every failure to write a new one. */
#include "files.h"

#include "data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[128];

static int setup(void **state)
{
    if (folder_make(state)) return -1;
    strcpy(path, in_folder("file.safetensors"));
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void write_or_fail(const rws_tensor_out *tensors, size_t n, json_t *metadata)
{
    rws_error err = {""};
    if (rws__safetensors_write(path, tensors, n, metadata, &err) != RWS_OK) fail_msg("%s", err.text);
    assert_int_equal(n_temporaries(""), 0);
}

/* The file, or NULL with a message in *err. */
static rws_safetensors *open_file(const char *name, rws_error *err)
{
    rws_safetensors *st;
    const rws_status status = rws__safetensors_open(name, &st, err);
    assert_int_equal(status == RWS_OK, st != NULL);
    return st;
}

static rws_safetensors *parse_bytes(const void *bytes, size_t size, const char *name, rws_error *err)
{
    rws_safetensors *st;
    const rws_status status = rws__safetensors_parse(bytes, size, name, &st, err);
    assert_int_equal(status == RWS_OK, st != NULL);
    return st;
}

static rws_safetensors *open_or_fail(void)
{
    rws_error        err = {""};
    rws_safetensors *st = open_file(path, &err);
    if (!st) fail_msg("%s", err.text);
    return st;
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

static const float    f32[6] = {1.5f, -2.0f, 0.0f, 3e38f, 1e-45f, -0.0f};
static const double   f64[2] = {1.0 / 3.0, -1e300};
static const int32_t  i32[3] = {INT32_MIN, 0, INT32_MAX};
static const int64_t  i64[2] = {INT64_MIN, INT64_MAX};
static const uint64_t u64[1] = {UINT64_MAX};
static const uint8_t  u8[5] = {0, 1, 127, 128, 255};

/* Sizes and order chosen so that any layout in the order given would misalign what follows the bytes. */
static const rws_tensor_out all[] = {
    {"bytes", RWS_DTYPE_U8, 1, {5}, u8},
    {"phi.mlp.0.weight", RWS_DTYPE_F32, 2, {2, 3}, f32},
    {"theta", RWS_DTYPE_F64, 1, {2}, f64},
    {"a", RWS_DTYPE_I32, 4, {1, 3, 1, 1}, i32},
    {"\xc3\xa9 \"quoted\"\\\n", RWS_DTYPE_I64, 3, {1, 2, 1}, i64},
    {"scalar", RWS_DTYPE_U64, 0, {0}, u64},
    {"nothing", RWS_DTYPE_F64, 2, {0, 7}, NULL},
};
enum { N_ALL = sizeof all / sizeof *all };

static void check_equal(const rws_safetensors *st, const rws_tensor_out *tensors, size_t n)
{
    assert_int_equal(rws__safetensors_count(st), n);
    for (size_t i = 0; i < n; i++) {
        const rws_tensor_in *t = rws__safetensors_find(st, tensors[i].name);
        assert_non_null(t);
        assert_string_equal(t->name, tensors[i].name);
        assert_int_equal(t->dtype, tensors[i].dtype);
        assert_int_equal(t->n_dims, tensors[i].n_dims);
        size_t n_elements = 1;
        for (int d = 0; d < t->n_dims; d++) {
            assert_int_equal(t->shape[d], tensors[i].shape[d]);
            n_elements *= t->shape[d];
        }
        assert_int_equal(t->n_elements, n_elements);
        assert_non_null(t->data);
        assert_int_equal((uintptr_t)t->data % rws__dtype_size(t->dtype), 0);
        if (n_elements) assert_memory_equal(t->data, tensors[i].data, n_elements * rws__dtype_size(t->dtype));
        const rws_tensor_in *expected = NULL;
        rws_error            err = {""};
        assert_int_equal(rws__safetensors_expect(st, tensors[i].name, tensors[i].dtype, tensors[i].n_dims,
                                                 tensors[i].shape, &expected, &err),
                         RWS_OK);
        assert_ptr_equal(expected, t);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    json_t *metadata = json_pack("{s:s, s:s}", "format", "rws", "iteration", "400000");
    write_or_fail(all, N_ALL, metadata);
    assert_int_equal(metadata->refcount, 1);
    json_decref(metadata);

    rws_safetensors *st = open_or_fail();
    check_equal(st, all, N_ALL);
    assert_string_equal(rws__safetensors_metadata(st, "format"), "rws");
    assert_string_equal(rws__safetensors_metadata(st, "iteration"), "400000");
    assert_null(rws__safetensors_metadata(st, "seed"));
    assert_null(rws__safetensors_find(st, "phi"));
    assert_null(rws__safetensors_find(st, "__metadata__"));
    /* A new file under the same name does not change a file that is open. */
    write_or_fail(NULL, 0, NULL);
    check_equal(st, all, N_ALL);
    rws__safetensors_close(st);
    st = open_or_fail();
    assert_int_equal(rws__safetensors_count(st), 0);
    assert_null(rws__safetensors_metadata(st, "format"));
    rws__safetensors_close(st);
    rws__safetensors_close(NULL);
}

/* The bytes themselves, as other readers of the format expect them. */
static void test_bytes(void **state)
{
    (void)state;
    size_t size;
    write_or_fail(NULL, 0, NULL);
    char *bytes = slurp(path, &size);
    assert_int_equal(size, 16);
    assert_memory_equal(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16);
    free(bytes);

    const float          x[2] = {1.0f, -2.0f};
    const uint8_t        y[1] = {7};
    const rws_tensor_out two[] = {{"y", RWS_DTYPE_U8, 0, {0}, y}, {"x", RWS_DTYPE_F32, 2, {2, 1}, x}};
    write_or_fail(two, 2, NULL);
    bytes = slurp(path, &size);
    const char   header[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                            "\"y\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}";
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_int_equal(size, 8 + padded + 9);
    assert_int_equal((unsigned char)bytes[0], padded);
    assert_memory_equal(bytes + 1, "\0\0\0\0\0\0\0", 7);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, "\0\0\x80\x3f\0\0\0\xc0\x07", 9);
    free(bytes);
}

/* Names of every length move the end of the header through all residues; the data stays aligned. */
static void test_name_lengths(void **state)
{
    (void)state;
    char name[40];
    for (size_t length = 0; length < sizeof name - 1; length++) {
        memset(name, 'n', length);
        name[length] = '\0';
        const rws_tensor_out one = {name, RWS_DTYPE_F64, 1, {2}, f64};
        write_or_fail(&one, 1, NULL);
        rws_safetensors *st = open_or_fail();
        check_equal(st, &one, 1);
        rws__safetensors_close(st);
        size_t size;
        char  *bytes = slurp(path, &size);
        assert_int_equal((8 + (unsigned char)bytes[0]) % 8, 0);
        free(bytes);
    }
}

static void test_many_tensors(void **state)
{
    (void)state;
    enum { N = 1000 };
    static rws_tensor_out tensors[N];
    static char           names[N][16];
    static float          data[N];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "t.%d", i);
        data[i] = (float)i;
        tensors[i] = (rws_tensor_out){names[i], RWS_DTYPE_F32, 1, {1}, &data[i]};
    }
    write_or_fail(tensors, N, NULL);
    rws_safetensors *st = open_or_fail();
    check_equal(st, tensors, N);
    /* Iteration follows the data, which is the order of writing where all types have one size. */
    for (int i = 0; i < N; i++) assert_string_equal(rws__safetensors_at(st, (size_t)i)->name, names[i]);
    rws__safetensors_close(st);
}

static void test_expect(void **state)
{
    (void)state;
    write_or_fail(all, N_ALL, NULL);
    rws_safetensors     *st = open_or_fail();
    const size_t         other[2] = {3, 2};
    const rws_tensor_in *out = NULL;
    rws_error            err = {""};
    assert_int_equal(rws__safetensors_expect(st, "phi.gru", RWS_DTYPE_F32, 2, other, &out, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "no tensor \"phi.gru\"");
    assert_sentence(&err, path);
    assert_int_equal(rws__safetensors_expect(st, "phi.mlp.0.weight", RWS_DTYPE_F32, 2, other, &out, &err),
                     RWS_BAD_INPUT);
    assert_sentence(&err, "\"phi.mlp.0.weight\" is F32 [2, 3], but F32 [3, 2] is needed");
    assert_int_equal(rws__safetensors_expect(st, "theta", RWS_DTYPE_F32, 0, NULL, &out, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "\"theta\" is F64 [2], but F32 [] is needed");
    assert_null(out);
    rws__safetensors_close(st);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* A file with this header, as it is, and n_data bytes 0, 1, 2, ... of data; the caller frees it. */
static char *craft(const char *header, size_t n_data, size_t *size)
{
    const uint64_t length = strlen(header);
    *size = 8 + length + n_data;
    char *bytes = malloc(*size);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < n_data; i++) bytes[8 + length + i] = (char)i;
    return bytes;
}

#define ENTRY(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        const char *header;
        size_t      n_data;
        const char *said; /* NULL: the file is good */
    } cases[] = {
        {"{}", 0, NULL},
        {"  { } \n\t ", 0, NULL},
        {"{\"t\":" ENTRY("F32", "[1]", "[0,4]") "}", 4, NULL},
        {"{\"t\":" ENTRY("F32", "[]", "[0,4]") "}", 4, NULL},
        {"{\"t\":" ENTRY("F32", "[0]", "[0,0]") "}", 0, NULL},
        {"{\"t\":" ENTRY("F32", "[4611686018427387904,4611686018427387904,0]", "[0,0]") "}", 0, NULL},
        {"{\"t\":" ENTRY("U8", "[2]", "[1,3]") ",\"s\":" ENTRY("U8", "[1]", "[0,1]") "}", 3, NULL},
        {"{\"t\":" ENTRY("U8", "[2]", "[0,2]") ",\"s\":" ENTRY("U8", "[0]", "[0,0]") "}", 2, NULL},
        {"{\"t\":" ENTRY("U8", "[2]", "[0,2]") ",\"s\":" ENTRY("U8", "[0]", "[2,2]") "}", 2, NULL},
        {"{\"__metadata__\":{\"a\":\"b\"}}", 0, NULL},
        /* the header as a whole */
        {"", 0, "not a JSON object"},
        {"{", 0, "not a JSON object"},
        {"{\"t\":", 0, "not a JSON object"},
        {"[]", 0, "it is an array"},
        {"17", 0, "not a JSON object"},
        {"null", 0, "not a JSON object"},
        {"{} {}", 0, "not a JSON object"},
        {"\xff\xfe{}", 0, "not a JSON object"},
        {"{\"a\xff\":1}", 0, "not a JSON object"},
        {"{\"__metadata__\":[]}", 0, "metadata that is not"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "metadata under \"a\""},
        {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "twice"},
        {"{\"t\":" ENTRY("U8", "[1]", "[0,1]") ",\"t\":" ENTRY("U8", "[1]", "[1,2]") "}", 2, "\"t\""},
        {"{\"t\":" ENTRY("U8", "[1]", "[0,1]") ",\"t\":" ENTRY("U8", "[1]", "[1,2]") "}", 2, "twice"},
        /* dtype */
        {"{\"t\":1}", 0, "\"t\" is not described"},
        {"{\"t\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"t\" has no dtype"},
        {"{\"t\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"t\" has no dtype"},
        {"{\"t\":" ENTRY("BF16", "[2]", "[0,4]") "}", 4, "\"t\" has the dtype \"BF16\""},
        {"{\"t\":" ENTRY("f32", "[1]", "[0,4]") "}", 4, "unknown"},
        {"{\"t\":" ENTRY("", "[1]", "[0,4]") "}", 4, "unknown"},
        {"{\"t\\u001b[31m\":" ENTRY("\\u0007", "[1]", "[0,4]") "}", 4, "\"t?[31m\" has the dtype \"?\""},
        /* shape */
        {"{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"t\" needs a shape"},
        {"{\"t\":" ENTRY("F32", "1", "[0,4]") "}", 4, "\"t\" needs a shape"},
        {"{\"t\":" ENTRY("F32", "[1.0]", "[0,4]") "}", 4, "\"t\" needs a shape"},
        {"{\"t\":" ENTRY("F32", "[\"1\"]", "[0,4]") "}", 4, "\"t\" needs a shape"},
        {"{\"t\":" ENTRY("F32", "[-1]", "[0,4]") "}", 4, "none negative"},
        {"{\"t\":" ENTRY("F32", "[-1,-1]", "[0,4]") "}", 4, "none negative"},
        {"{\"t\":" ENTRY("F32", "[1,1,1,1,1]", "[0,4]") "}", 4, "at most 4"},
        {"{\"t\":" ENTRY("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "\"t\" has a shape too large"},
        {"{\"t\":" ENTRY("F32", "[4611686018427387904]", "[0,0]") "}", 0, "\"t\" has a shape too large"},
        {"{\"t\":" ENTRY("F64", "[2305843009213693953]", "[0,8]") "}", 8, "\"t\" has a shape too large"},
        {"{\"t\":" ENTRY("F32", "[18446744073709551615]", "[0,4]") "}", 4, "not a JSON object"},
        {"{\"t\":" ENTRY("U8", "[9223372036854775807]", "[0,4]") "}", 4, "\"t\" has 4 bytes"},
        {"{\"t\":" ENTRY("F32", "[2]", "[0,4]") "}", 4, "\"t\" has 4 bytes in the file, but its shape and dtype make"},
        {"{\"t\":" ENTRY("F32", "[1]", "[0,3]") "}", 3, "\"t\" has 3 bytes"},
        {"{\"t\":" ENTRY("F32", "[]", "[0,0]") "}", 0, "\"t\" has 0 bytes"},
        /* offsets */
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[1]", "[0]") "}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[1]", "[0,4,8]") "}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[1]", "[-4,0]") "}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[1]", "[0.0,4.0]") "}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[1]", "{}") "}", 4, "\"t\" needs data_offsets"},
        {"{\"t\":" ENTRY("F32", "[2]", "[0,8]") "}", 4, "\"t\" should lie at bytes 0 to 8 of the data, which has 4"},
        {"{\"t\":" ENTRY("F32", "[1]", "[4,0]") "}", 4, "\"t\" should lie"},
        {"{\"t\":" ENTRY("F32", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4, "\"t\" should lie"},
        /* overlaps, gaps, bytes left over */
        {"{\"s\":" ENTRY("U8", "[2]", "[0,2]") ",\"t\":" ENTRY("U8", "[2]", "[1,3]") "}", 3, "\"t\" begins at byte 1"},
        {"{\"s\":" ENTRY("U8", "[2]", "[0,2]") ",\"t\":" ENTRY("U8", "[2]", "[1,3]") "}", 3, "overlaps"},
        {"{\"s\":" ENTRY("U8", "[2]", "[0,2]") ",\"t\":" ENTRY("U8", "[2]", "[0,2]") "}", 2, "overlaps"},
        {"{\"s\":" ENTRY("U8", "[4]", "[0,4]") ",\"t\":" ENTRY("U8", "[0]", "[2,2]") "}", 4, "overlaps"},
        {"{\"s\":" ENTRY("U8", "[1]", "[0,1]") ",\"t\":" ENTRY("U8", "[1]", "[2,3]") "}", 3, "hole"},
        {"{\"t\":" ENTRY("U8", "[1]", "[1,2]") "}", 2, "\"t\" begins at byte 1 of the data, which leaves a hole"},
        {"{\"t\":" ENTRY("U8", "[1]", "[0,1]") "}", 2, "has 2 bytes of data, of which its tensors account for 1"},
        {"{}", 1, "account for 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        char  *bytes = craft(cases[i].header, cases[i].n_data, &size);
        spill(path, bytes, size);
        rws_error        err = {""};
        rws_safetensors *st = open_file(path, &err);
        if ((st == NULL) != (cases[i].said != NULL)) fail_msg("%s: %s", cases[i].header, st ? "read" : err.text);
        if (cases[i].said) {
            assert_sentence(&err, cases[i].said);
            assert_sentence(&err, path);
            assert_null(parse_bytes(bytes, size, "memory", NULL));
        }
        rws__safetensors_close(st);
        free(bytes);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    const struct {
        uint64_t    announced;
        const char *said;
    } cases[] = {
        {9, "header of 9 bytes is announced and 8 bytes follow"},
        {UINT64_MAX, "announced"},
        {UINT64_MAX - 7, "announced"}, /* + 8 would wrap to 0 */
        {(uint64_t)1 << 63, "announced"},
        {0, "not a JSON object"},
        {1, "not a JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bytes[16] = "........{}      ";
        memcpy(bytes, &cases[i].announced, 8);
        spill(path, bytes, 16);
        rws_error err = {""};
        assert_null(open_file(path, &err));
        assert_sentence(&err, cases[i].said);
        assert_sentence(&err, path);
    }
    /* One byte more than the format allows; the file is a hole on disk. */
    const uint64_t length = 100000001;
    spill(path, &length, 8);
    assert_int_equal(truncate(path, (off_t)(8 + length)), 0);
    rws_error err = {""};
    assert_null(open_file(path, &err));
    assert_sentence(&err, "has a header of 100000001 bytes");
}

/* Every proper beginning of a file is refused; the whole is read. The copies end where the memory does, so that the
 * address sanitizer sees a read beyond. */
static void test_cut_short(void **state)
{
    (void)state;
    json_t *metadata = json_pack("{s:s}", "k", "v");
    write_or_fail(all, N_ALL, metadata);
    json_decref(metadata);
    size_t size;
    char  *whole = slurp(path, &size);
    for (size_t n = 0; n <= size; n++) {
        char *part = malloc(n ? n : 1);
        memcpy(part, whole, n);
        spill(path, part, n);
        rws_error        err = {""};
        rws_safetensors *from_memory = parse_bytes(part, n, "memory", &err);
        rws_safetensors *from_file = open_file(path, &err);
        assert_int_equal(from_memory != NULL, n == size);
        assert_int_equal(from_file != NULL, n == size);
        if (n < size) assert_sentence(&err, path);
        if (n < 8) assert_sentence(&err, "too short");
        if (from_memory) check_equal(from_memory, all, N_ALL);
        rws__safetensors_close(from_memory);
        rws__safetensors_close(from_file);
        free(part);
    }
    free(whole);
}

/* Other writers need not align: the values are right all the same, and the pointers are usable. */
static void test_misaligned(void **state)
{
    (void)state;
    const char *header = "{\"b\":" ENTRY("U8", "[1]", "[0,1]") ",\"x\":" ENTRY("F32", "[2]", "[1,9]") ",\"y\":" ENTRY(
        "I64", "[1]", "[9,17]") ",\"e\":" ENTRY("F64", "[0]", "[17,17]") "}";
    size_t        size;
    char         *bytes = craft(header, 17, &size);
    const float   x[2] = {0.1f, 1e10f};
    const int64_t y = -5;
    memcpy(bytes + size - 16, x, 8);
    memcpy(bytes + size - 8, &y, 8);
    char *shifted = malloc(size + 8);
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(shifted + shift, bytes, size);
        rws_error        err = {""};
        rws_safetensors *st = parse_bytes(shifted + shift, size, "memory", &err);
        if (!st) fail_msg("%s", err.text);
        const rws_tensor_out wanted[] = {
            {"b", RWS_DTYPE_U8, 1, {1}, "\0"},
            {"x", RWS_DTYPE_F32, 1, {2}, x},
            {"y", RWS_DTYPE_I64, 1, {1}, &y},
            {"e", RWS_DTYPE_F64, 1, {0}, NULL},
        };
        check_equal(st, wanted, 4);
        rws__safetensors_close(st);
    }
    free(shifted);
    free(bytes);
}

static void test_not_a_file(void **state)
{
    (void)state;
    rws_error err = {""};
    assert_null(open_file("/tmp/rws-there-is-no-such-file", &err));
    assert_sentence(&err, "/tmp/rws-there-is-no-such-file");
    assert_sentence(&err, strerror(ENOENT));
    assert_null(open_file(folder, &err));
    assert_sentence(&err, "not a regular file");
    assert_null(open_file("/dev/null", &err));
    assert_sentence(&err, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(open_file(path, &err)); /* and does not wait */
    assert_sentence(&err, "not a regular file");
    assert_null(open_file(path, NULL));
}

/* Names longer than a message: the end of the path and the reason are both still there. */
static void test_long_names(void **state)
{
    (void)state;
    char name[2000];
    memset(name, 'x', sizeof name);
    strcpy(name + sizeof name - 10, "/the.file");
    rws_error err = {""};
    assert_null(parse_bytes("abc", 3, name, &err));
    assert_sentence(&err, "/the.file\" is too short");

    char header[3000];
    snprintf(header, sizeof header, "{\"%s\":" ENTRY("F32", "[1]", "[0,8]") "}", name);
    size_t size;
    char  *bytes = craft(header, 4, &size);
    assert_null(parse_bytes(bytes, size, name, &err));
    assert_sentence(&err, "/the.file\" should lie at bytes 0 to 8");
    free(bytes);
}

/* ---- failures to write ------------------------------------------------------------------------------------------- */

static void check_old_file(void)
{
    assert_int_equal(n_temporaries(""), 0);
    rws_safetensors *st = open_or_fail();
    check_equal(st, all, N_ALL);
    rws__safetensors_close(st);
}

static void test_write_nowhere(void **state)
{
    (void)state;
    const rws_tensor_out one = {"t", RWS_DTYPE_F32, 1, {6}, f32};
    rws_error            err = {""};
    char                 below[200];
    snprintf(below, sizeof below, "%s/missing/file", folder);
    assert_int_equal(rws__safetensors_write(below, &one, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, below);
    assert_sentence(&err, strerror(ENOENT));

    write_or_fail(all, N_ALL, NULL);
    snprintf(below, sizeof below, "%s/file", path); /* a folder that is a file */
    assert_int_equal(rws__safetensors_write(below, &one, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, below);
    assert_sentence(&err, strerror(ENOTDIR));
    check_old_file();

    /* A folder that takes no files even from root. */
    assert_int_equal(rws__safetensors_write("/proc/self/file", &one, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "/proc/self/file");
    assert_int_equal(rws__safetensors_write("/proc/self/file", &one, 1, NULL, NULL), RWS_BAD_INPUT);

    /* A folder stands where the file should. */
    assert_int_equal(rws__safetensors_write(folder, &one, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, folder);
    assert_int_equal(n_temporaries(""), 0);
    check_old_file();
}

/* A limit on the size of files stands for the full disk: the writing stops in the middle, wherever that is. */
static void test_disk_full(void **state)
{
    (void)state;
    write_or_fail(all, N_ALL, NULL);
    static float         big[4096];
    const rws_tensor_out tensors[] = {{"t", RWS_DTYPE_F32, 1, {4096}, big}, {"u", RWS_DTYPE_F32, 1, {4096}, big}};
    struct rlimit        old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    const rlim_t limits[] = {0, 5, 8, 20, 1000, 17000, 32800};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        rws_error           err = {""};
        const struct rlimit limit = {limits[i], old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const rws_status status = rws__safetensors_write(path, tensors, 2, NULL, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, RWS_BAD_INPUT);
        assert_sentence(&err, path);
        assert_sentence(&err, strerror(EFBIG));
        check_old_file();
    }
    signal(SIGXFSZ, SIG_DFL);
    write_or_fail(tensors, 2, NULL);
}

static void test_write_bad_names(void **state)
{
    (void)state;
    write_or_fail(all, N_ALL, NULL);
    rws_error            err = {""};
    const rws_tensor_out twice[] = {{"t", RWS_DTYPE_F32, 1, {6}, f32}, {"t", RWS_DTYPE_F64, 1, {2}, f64}};
    assert_int_equal(rws__safetensors_write(path, twice, 2, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "\"t\" is taken");
    const rws_tensor_out reserved = {"__metadata__", RWS_DTYPE_F32, 1, {6}, f32};
    assert_int_equal(rws__safetensors_write(path, &reserved, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "\"__metadata__\" is taken");
    const rws_tensor_out garbled = {"t\xff", RWS_DTYPE_F32, 1, {6}, f32};
    assert_int_equal(rws__safetensors_write(path, &garbled, 1, NULL, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "UTF-8");
    check_old_file();
}

/* A name without a folder goes into the working directory. */
static void test_write_here(void **state)
{
    (void)state;
    const int before = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(folder), 0);
    rws_error        err = {""};
    const rws_status status = rws__safetensors_write("file.safetensors", all, N_ALL, NULL, &err);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_int_equal(status, RWS_OK);
    check_old_file();
}

/* Every allocation inside the JSON library fails once, on writing and on reading: there is a message, nothing leaks
 * (the address sanitizer watches) and the old file stays. */
static long allocations_left;

static void *failing_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void test_no_memory(void **state)
{
    (void)state;
    const rws_tensor_out one = {"t", RWS_DTYPE_F32, 2, {2, 3}, f32};
    json_t              *metadata = json_pack("{s:s}", "k", "v");
    write_or_fail(all, N_ALL, NULL);
    size_t        size;
    char         *bytes = slurp(path, &size);
    json_malloc_t old_malloc;
    json_free_t   old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);

    int n_failures = 0;
    for (long allowed = 0;; allowed++, n_failures++) {
        rws_error err = {""};
        allocations_left = allowed;
        json_set_alloc_funcs(failing_malloc, free);
        const rws_status status = rws__safetensors_write(path, &one, 1, metadata, &err);
        json_set_alloc_funcs(old_malloc, old_free);
        if (status == RWS_OK) break;
        assert_sentence(&err, path);
        check_old_file();
    }
    assert_true(n_failures > 5);

    n_failures = 0;
    for (long allowed = 0;; allowed++, n_failures++) {
        rws_error err = {""};
        allocations_left = allowed;
        json_set_alloc_funcs(failing_malloc, free);
        rws_safetensors *st = parse_bytes(bytes, size, "memory", &err);
        json_set_alloc_funcs(old_malloc, old_free);
        if (st) {
            check_equal(st, all, N_ALL);
            rws__safetensors_close(st);
            break;
        }
        assert_sentence(&err, "memory");
    }
    assert_true(n_failures > 5);
    json_decref(metadata);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, remove_file),
        cmocka_unit_test_teardown(test_bytes, remove_file),
        cmocka_unit_test_teardown(test_name_lengths, remove_file),
        cmocka_unit_test_teardown(test_many_tensors, remove_file),
        cmocka_unit_test_teardown(test_expect, remove_file),
        cmocka_unit_test_teardown(test_refusals, remove_file),
        cmocka_unit_test_teardown(test_lengths, remove_file),
        cmocka_unit_test_teardown(test_cut_short, remove_file),
        cmocka_unit_test_teardown(test_misaligned, remove_file),
        cmocka_unit_test_teardown(test_not_a_file, remove_file),
        cmocka_unit_test_teardown(test_long_names, remove_file),
        cmocka_unit_test_teardown(test_write_nowhere, remove_file),
        cmocka_unit_test_teardown(test_disk_full, remove_file),
        cmocka_unit_test_teardown(test_write_bad_names, remove_file),
        cmocka_unit_test_teardown(test_write_here, remove_file),
        cmocka_unit_test_teardown(test_no_memory, remove_file),
    };
    return cmocka_run_group_tests_name("safetensors", tests, setup, folder_remove_empty);
}
