/* canvas.h - images of several digits: drawn from MNIST's by a seed, kept in one file.
 *
 * A canvas has n digits, n uniform in 0 … max_digits, each another one of the digits at hand, cut to its ink, at a place
 * of its own: no two boxes share a pixel. Canvas i depends on seed, split and i alone, so that the first ones stay the
 * same however many are drawn. Binarisation is the model's business.
 *
 *     mnist -> [canvas] -> file -> [canvas] -> model
 *
 * The file, all numbers with the lowest byte first:
 *
 *     "RWSCNV1\n"                                       8 bytes
 *     seed                                              u64
 *     size, max_digits, n_train, n_test                 u32 each
 *     crc_train, crc_test, crc of all bytes before it   u32 each, as in gzip; of a split: of its counts and its pixels
 *     0                                                 u32
 *     counts of the training canvases, their pixels, counts of the test canvases, their pixels: bytes
 */
#ifndef RWS_DATA_CANVAS_H
#define RWS_DATA_CANVAS_H

#include "data/mnist.h"

enum { RWS_CANVAS_MAX_SIZE = 1024, RWS_CANVAS_MAX_DIGITS = 16, RWS_CANVAS_MAX_N = 10000000 };

typedef struct {
    int      n, size, max_digits;
    uint8_t *pixels; /* n x size x size */
    uint8_t *counts; /* n; how many digits are on each */
} rws_canvases;

/* From a file; path NULL is the cache's. The caller's to release. On failure *out is empty; if the file is missing, the
 * sentence says how to make it. */
rws_status rws_canvases_open(const char *path, rws_split split, rws_canvases *out, rws_error *err)
    __attribute__((warn_unused_result));

void rws_canvases_release(rws_canvases *c);

/* The same for a file that is in memory; `name` stands for it in sentences. */
rws_status rws_canvases_parse(const uint8_t *bytes, size_t size, const char *name, rws_split split, rws_canvases *out,
                              rws_error *err) __attribute__((warn_unused_result));

/* The cache's file of canvases; *path is the caller's to free. */
rws_status rws_canvases_path(char **path, rws_error *err) __attribute__((warn_unused_result));

/* ---- making them */

/* Asked now and then while canvases are drawn, `done` so far; false: stop. */
typedef bool (*rws_canvases_go_on)(void *context, int done);

/* Draws n canvases of the split from its digits. go_on may be NULL. Fails if the digits do not fit on the canvas, and
 * with RWS_STOPPED if go_on said so. */
rws_status rws_canvases_draw(const rws_digits *digits, rws_split split, int n, int size, int max_digits, uint64_t seed,
                             rws_canvases_go_on go_on, void *context, rws_canvases *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes both splits; atomic. Replaces a file of canvases but no other. */
rws_status rws_canvases_write(const char *path, uint64_t seed, const rws_canvases *train, const rws_canvases *test,
                              rws_error *err) __attribute__((warn_unused_result));

#endif
