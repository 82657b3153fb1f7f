#include "models/corpora/mnist.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/rng.h"
#include "models/corpora/cache.h"
#include "models/corpora/idx.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "mnist"
#define PHASE 0xb1000000u /* marks random numbers of binary digits; no other data key has these bits */

enum { N_FILES = 4, N_VALID = 10000 };

static const struct {
    const char *name;
    int         n_dims;
    size_t      dims[3];
    const char *sha256; /* of the uncompressed file */
} files[N_FILES] = {
    {"train-images-idx3-ubyte",
     3,
     {RWS_MNIST_TRAIN, RWS_MNIST_SIDE, RWS_MNIST_SIDE},
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte",
     1,
     {RWS_MNIST_TRAIN},
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte",
     3,
     {RWS_MNIST_TEST, RWS_MNIST_SIDE, RWS_MNIST_SIDE},
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte", 1, {RWS_MNIST_TEST}, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};

/* The row of `files` with a split's images; its labels are in the next row. */
static int first_file(rws_split split)
{
    return split == RWS_TRAIN ? 0 : 2;
}

/* ---- reading */

/* "60000 x 28 x 28" */
typedef struct {
    char text[64];
} shape_text;

static shape_text show_shape(const size_t *dims, int n_dims)
{
    shape_text out = {""};
    size_t     used = 0;
    for (int d = 0; d < n_dims; d++)
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%zu", d ? " x " : "", dims[d]);
    return out;
}

static rws_status load(const char *path, int file, rws_idx *out, rws_error *err)
{
    RWS_TRY(rws__idx_read(path, out, err));
    const size_t *dims = files[file].dims;
    const int     n_dims = files[file].n_dims;
    if (out->n_dims != n_dims || memcmp(out->dims, dims, (size_t)n_dims * sizeof *dims) != 0) {
        const shape_text has = show_shape(out->dims, out->n_dims);
        rws__idx_release(out);
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" holds %s bytes, and MNIST has %s there.", rws__quote(path).text,
                        has.text, show_shape(dims, n_dims).text);
    }
    for (size_t i = 0; n_dims == 1 && i < out->n_values; i++) {
        if (out->values[i] <= 9) continue;
        rws_fail(err, RWS_BAD_INPUT, "\"%s\" has the label %d at place %zu, and digits end at 9.",
                 rws__quote(path).text, out->values[i], i);
        rws__idx_release(out);
        return RWS_BAD_INPUT;
    }
    return RWS_OK;
}

rws_status rws__mnist_folder(const char *cache, char **folder, rws_error *err)
{
    char *root = NULL;
    if (!cache) RWS_TRY(rws__cache_folder(&root, err));
    *folder = rws__file_join(cache ? cache : root, FOLDER);
    free(root);
    return *folder ? RWS_OK : rws_no_memory(err, "the path of MNIST's folder");
}

/* Loads a file of the folder. */
static rws_status load_cached(const char *folder, int file, rws_idx *out, rws_error *err)
{
    char      *path = rws__file_join(folder, files[file].name);
    rws_status status;
    *out = (rws_idx){0};
    if (!path) return rws_no_memory(err, "the path of a file");
    if (access(path, F_OK) != 0)
        status =
            rws_fail(err, RWS_BAD_INPUT, "MNIST is not in the cache: there is no \"%s\". Run `rws data mnist` first.",
                     rws__quote(path).text);
    else status = load(path, file, out, err);
    free(path);
    return status;
}

rws_status rws__mnist_open(rws_split split, rws_digits *out, rws_error *err)
{
    const int  file = first_file(split);
    rws_idx    images, labels;
    char      *folder;
    rws_status status;
    *out = (rws_digits){0};
    RWS_TRY(rws__mnist_folder(NULL, &folder, err));
    status = load_cached(folder, file, &images, err);
    if (status == RWS_OK) {
        status = load_cached(folder, file + 1, &labels, err);
        if (status != RWS_OK) rws__idx_release(&images);
    }
    free(folder);
    if (status != RWS_OK) return status;
    *out = (rws_digits){.n = (int)images.dims[0],
                        .rows = (int)images.dims[1],
                        .cols = (int)images.dims[2],
                        .pixels = images.values,
                        .labels = labels.values};
    return RWS_OK;
}

void rws__digits_release(rws_digits *d)
{
    free(d->pixels);
    free(d->labels);
    *d = (rws_digits){0};
}

/* ---- binary images */

void rws__digits_binarise(const rws_digits *d, rws_split split, int first, int n, float *out)
{
    const rws_key key = rws__key_for(0, 0, RWS_KEY_DATA, PHASE | (uint32_t)split);
    const size_t  n_pixels = (size_t)d->rows * (size_t)d->cols;
    RWS_CHECK(first >= 0 && n >= 0 && n <= d->n);
    for (int i = 0; i < n; i++) {
        rws_random     g = rws__random_new(key, (uint32_t)(first + i));
        const uint8_t *grey = d->pixels + (size_t)i * n_pixels;
        float         *x = out + (size_t)i * n_pixels;
        rws_random_uniforms(&g, n_pixels, x);
        /* u is in (0, 1), so a pixel of 0 stays 0 and one of 255 becomes 1 */
        for (size_t j = 0; j < n_pixels; j++) x[j] = 255 * x[j] < (float)grey[j];
    }
}

rws_status rws__mnist_binary(rws_mnist_subset subset, float **out, int *n, rws_error *err)
{
    const rws_split split = subset == RWS_SUBSET_TEST ? RWS_TEST : RWS_TRAIN;
    rws_digits      all;
    *out = NULL;
    *n = 0;
    RWS_TRY(rws__mnist_open(split, &all, err));
    const int first = subset == RWS_SUBSET_VALID ? all.n - N_VALID : 0;
    const int count = subset == RWS_SUBSET_TRAIN ? all.n - N_VALID : all.n - first;
    *out = malloc((size_t)count * RWS_MNIST_PIXELS * sizeof **out);
    if (*out) {
        rws_digits some = all;
        some.n = count;
        some.pixels += (size_t)first * RWS_MNIST_PIXELS;
        rws__digits_binarise(&some, split, first, count, *out);
        *n = count;
    }
    rws__digits_release(&all);
    return *out ? RWS_OK : rws_no_memory(err, "the binary digits of MNIST");
}

/* ---- into the cache */

static rws_status compare(const rws_idx *idx, int file, const char *path, rws_error *err)
{
    uint8_t      header[RWS_MAX_IDX_HEADER];
    const size_t n_header = rws__idx_header(idx, header);
    GChecksum   *sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(sum, header, (gssize)n_header);
    g_checksum_update(sum, idx->values, (gssize)idx->n_values);
    const bool same = strcmp(g_checksum_get_string(sum), files[file].sha256) == 0;
    g_checksum_free(sum);
    if (same) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" has the sizes of MNIST's %s but not its bytes (by SHA-256); take the original file.",
                    rws__quote(path).text, files[file].name);
}

/* Finds the file under one of the names in use; *path is the caller's to free, and NULL if there is no such file. */
static rws_status find_file(const char *folder, const char *name, char **path, rws_error *err)
{
    static const char *const endings[] = {"", ".gz"};
    for (int dotted = 0; dotted < 2; dotted++) {
        for (int e = 0; e < 2; e++) {
            char variant[64];
            snprintf(variant, sizeof variant, "%s%s", name, endings[e]);
            if (dotted) *strstr(variant, "-idx") = '.';
            *path = rws__file_join(folder, variant);
            if (!*path) return rws_no_memory(err, "the path of a file");
            if (access(*path, F_OK) == 0) return RWS_OK;
            free(*path);
        }
    }
    *path = NULL;
    return RWS_OK;
}

static rws_status load_original(const char *folder, int file, rws_idx *out, rws_error *err)
{
    char *path;
    RWS_TRY(find_file(folder, files[file].name, &path, err));
    if (!path)
        return rws_fail(err, RWS_BAD_INPUT, "The folder \"%s\" has no file %s, nor %s.gz.", rws__quote(folder).text,
                        files[file].name, files[file].name);
    rws_status status = load(path, file, out, err);
    if (status == RWS_OK) status = compare(out, file, path, err);
    free(path);
    return status;
}

/* Loads all four files; the caller releases them, also after a failure. */
static rws_status load_originals(const char *folder, rws_idx idx[N_FILES], rws_error *err)
{
    for (int i = 0; i < N_FILES; i++) RWS_TRY(load_original(folder, i, &idx[i], err));
    return RWS_OK;
}

static rws_status write_files(const char *folder, const rws_idx idx[N_FILES], rws_error *err)
{
    RWS_TRY(rws__file_make_folder(folder, err));
    rws_status status = RWS_OK;
    for (int i = 0; i < N_FILES && status == RWS_OK; i++) {
        char *path = rws__file_join(folder, files[i].name);
        status = rws__idx_write(path, &idx[i], err);
        free(path);
    }
    return status;
}

rws_status rws__mnist_install(const char *from, const char *cache, rws_error *err)
{
    rws_idx idx[N_FILES] = {0};
    char   *folder;
    RWS_TRY(rws__mnist_folder(cache, &folder, err));
    rws_status status = load_originals(from, idx, err);
    if (status == RWS_OK) status = write_files(folder, idx, err);
    for (int i = 0; i < N_FILES; i++) rws__idx_release(&idx[i]);
    free(folder);
    return status;
}

rws_status rws__mnist_verify(const char *cache, rws_error *err)
{
    char      *folder;
    rws_status status = RWS_OK;
    RWS_TRY(rws__mnist_folder(cache, &folder, err));
    for (int i = 0; i < N_FILES && status == RWS_OK; i++) {
        rws_idx idx;
        char   *path = rws__file_join(folder, files[i].name);
        status = load_cached(folder, i, &idx, err);
        if (status == RWS_OK) status = path ? compare(&idx, i, path, err) : rws_no_memory(err, "the path of a file");
        rws__idx_release(&idx);
        free(path);
    }
    free(folder);
    return status;
}
