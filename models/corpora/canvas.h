/* canvas.h - images of several digits: drawn from MNIST's by a seed, kept in one file.
 *
 * A canvas has n different digits, n uniform in 0 … max_digits. Each digit is cut to the box of its ink, and no two
 * boxes share a pixel. Canvas i depends on seed, split and i alone, so that a longer file begins with the canvases of a
 * shorter one. Pixels stay grey; the model makes them black and white.
 *
 *     mnist -> [canvas] -> file -> [canvas] -> model
 *
 * The file, all numbers with the lowest byte first:
 *
 *     "RWSCNV1\n"                                       8 bytes
 *     seed                                              u64
 *     size, max_digits, n_train, n_test                 u32 each
 *     crc_train, crc_test, crc of all bytes before it   u32 each, as in gzip; a split's covers its counts and pixels
 *     0                                                 u32
 *     counts of the training canvases, their pixels, counts of the test canvases, their pixels: bytes
 */
#ifndef RWS_MODELS_CORPORA_CANVAS_H
#define RWS_MODELS_CORPORA_CANVAS_H

#include "models/corpora/mnist.h"

enum { RWS_MAX_CANVAS_SIZE = 1024, RWS_MAX_CANVAS_DIGITS = 16, RWS_MAX_CANVASES = 10000000 };

typedef struct {
    int      n, size, max_digits;
    uint8_t *pixels; /* n x size x size */
    uint8_t *counts; /* n; number of digits on each */
} rws_canvases;

/* Reads the canvases of a split from a file, or from the cache's file if path is NULL; the caller releases *out. On
 * failure *out is empty; if the file is missing, the sentence says how to make it. */
rws_status rws__canvases_open(const char *path, rws_split split, rws_canvases *out, rws_error *err)
    __attribute__((warn_unused_result));

void rws__canvases_release(rws_canvases *c);

/* The same for a file that is in memory; `name` stands for it in sentences. */
rws_status rws__canvases_parse(const uint8_t *bytes, size_t size, const char *name, rws_split split, rws_canvases *out,
                               rws_error *err) __attribute__((warn_unused_result));

/* The path of the cache's file of canvases, the caller's to free. */
rws_status rws__canvases_path(char **path, rws_error *err) __attribute__((warn_unused_result));

/* ---- drawing canvases */

/* Called every few hundred canvases, with the number `done` so far; returns false to stop. */
typedef bool (*rws_canvases_progress)(void *context, int done);

/* Draws n canvases from the digits of a split. proceed may be NULL. RWS_BAD_INPUT if the digits do not fit on the canvas,
 * RWS_STOPPED if proceed returned false. */
rws_status rws__canvases_draw(const rws_digits *digits, rws_split split, int n, int size, int max_digits, uint64_t seed,
                              rws_canvases_progress proceed, void *context, rws_canvases *out, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes both splits, atomically. Refuses to replace a file that is not a canvas file. */
rws_status rws__canvases_write(const char *path, uint64_t seed, const rws_canvases *train, const rws_canvases *test,
                               rws_error *err) __attribute__((warn_unused_result));

#endif
