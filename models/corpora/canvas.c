#include "models/corpora/canvas.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/rng.h"
#include "models/corpora/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's byte order is taken for the machine's");

enum {
    TRIES = 6,        /* random places that are tried for one digit */
    RESTARTS = 10000, /* attempts at one canvas before it is called too small */
    PACE = 256,       /* canvases between two calls of proceed */
};

#define MAX_BYTES ((uint64_t)1 << 32) /* pixels of one split */
#define FILE_NAME "multimnist.canvases"
#define PHASE 0xca000000u /* marks random numbers of canvases; no other data key has these bits */

/* ---- drawing */

typedef struct {
    int top, left, rows, cols;
} box;

/* The smallest box that holds all ink; a box without rows if there is no ink. */
static box find_ink(const uint8_t *image, int rows, int cols)
{
    int top = rows, bottom = -1, left = cols, right = -1;
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            if (!image[r * cols + c]) continue;
            if (r < top) top = r;
            if (r > bottom) bottom = r;
            if (c < left) left = c;
            if (c > right) right = c;
        }
    }
    return bottom < 0 ? (box){0} : (box){top, left, bottom - top + 1, right - left + 1};
}

static bool overlap(box a, box b)
{
    return a.top < b.top + b.rows && b.top < a.top + a.rows && a.left < b.left + b.cols && b.left < a.left + a.cols;
}

static int draw_offset(rws_random *g, int left)
{
    return (int)floor(rws_random_uniform(g) * left + 0.5);
}

/* The digits that the canvases of a split are drawn from. */
typedef struct {
    const rws_digits *digits;
    box              *ink;  /* of each digit */
    int               size; /* side of a canvas */
} material;

/* Chooses n different digits. */
static void choose(const material *e, rws_random *g, int n, int *chosen)
{
    for (int i = 0; i < n; i++) {
        bool seen = true;
        while (seen) {
            chosen[i] = (int)rws_random_below(g, (uint32_t)e->digits->n);
            seen = false;
            for (int j = 0; j < i; j++) seen = seen || chosen[j] == chosen[i];
        }
    }
}

/* Finds places for the n boxes that do not overlap. False if TRIES places of one box were all taken. */
static bool place(const material *e, rws_random *g, int n, const int *chosen, box *places)
{
    for (int i = 0; i < n; i++) {
        box  b = e->ink[chosen[i]];
        bool taken = true;
        for (int t = 0; t < TRIES && taken; t++) {
            b.top = draw_offset(g, e->size - b.rows);
            b.left = draw_offset(g, e->size - b.cols);
            taken = false;
            for (int j = 0; j < i; j++) taken = taken || overlap(b, places[j]);
        }
        if (taken) return false;
        places[i] = b;
    }
    return true;
}

static void paste(const material *e, int digit, box to, uint8_t *canvas)
{
    const box      from = e->ink[digit];
    const int      cols = e->digits->cols;
    const uint8_t *image = e->digits->pixels + (size_t)digit * (size_t)(e->digits->rows * cols);
    for (int r = 0; r < from.rows; r++)
        memcpy(canvas + (to.top + r) * e->size + to.left, image + (from.top + r) * cols + from.left, (size_t)from.cols);
}

/* Draws n digits on a canvas of zeros. False if they cannot be placed. */
static bool draw_canvas(const material *e, rws_random *g, int n, uint8_t *canvas)
{
    int chosen[RWS_MAX_CANVAS_DIGITS];
    box places[RWS_MAX_CANVAS_DIGITS];
    for (int start = 0; start < RESTARTS; start++) {
        choose(e, g, n, chosen);
        if (!place(e, g, n, chosen, places)) continue;
        for (int i = 0; i < n; i++) paste(e, chosen[i], places[i], canvas);
        return true;
    }
    return false;
}

static rws_status draw_all(const material *e, rws_split split, uint64_t seed, rws_canvases_progress proceed,
                           void *context, rws_canvases *out, rws_error *err)
{
    const rws_key key = rws__key_for(seed, 0, RWS_KEY_DATA, PHASE | (uint32_t)split);
    const size_t  n_pixels = (size_t)e->size * (size_t)e->size;
    for (int i = 0; i < out->n; i++) {
        if (proceed && i % PACE == 0 && !proceed(context, i))
            return rws_fail(err, RWS_STOPPED, "Stopped after %d of %d canvases.", i, out->n);
        rws_random g = rws__random_new(key, (uint32_t)i);
        const int  n = (int)rws_random_below(&g, (uint32_t)out->max_digits + 1);
        if (!draw_canvas(e, &g, n, out->pixels + (size_t)i * n_pixels))
            return rws_fail(err, RWS_BAD_INPUT,
                            "A canvas of %d x %d pixels is too small for %d digits that do not overlap: %d attempts at "
                            "one failed.",
                            e->size, e->size, n, RESTARTS);
        out->counts[i] = (uint8_t)n;
    }
    return RWS_OK;
}

rws_status rws__canvases_draw(const rws_digits *digits, rws_split split, int n, int size, int max_digits, uint64_t seed,
                              rws_canvases_progress proceed, void *context, rws_canvases *out, rws_error *err)
{
    *out = (rws_canvases){0};
    RWS_CHECK(n >= 1 && n <= RWS_MAX_CANVASES && size >= 1 && size <= RWS_MAX_CANVAS_SIZE);
    RWS_CHECK(max_digits >= 1 && max_digits <= RWS_MAX_CANVAS_DIGITS);
    if (size < digits->rows || size < digits->cols)
        return rws_fail(err, RWS_BAD_INPUT, "A canvas of %d x %d pixels is too small for digits of %d x %d.", size,
                        size, digits->rows, digits->cols);
    if (digits->n < max_digits)
        return rws_fail(err, RWS_BAD_INPUT, "%d different digits on a canvas cannot be chosen from %d.", max_digits,
                        digits->n);
    const uint64_t n_bytes = (uint64_t)n * (uint64_t)(size * size);
    if (n_bytes > MAX_BYTES)
        return rws_fail(err, RWS_BAD_INPUT, "%d canvases of %d x %d pixels are more than %llu bytes.", n, size, size,
                        (unsigned long long)MAX_BYTES);
    *out = (rws_canvases){.n = n, .size = size, .max_digits = max_digits};
    out->pixels = calloc(n_bytes, 1);
    out->counts = malloc((size_t)n);
    material e = {.digits = digits, .ink = malloc((size_t)digits->n * sizeof *e.ink), .size = size};

    rws_status status = RWS_OK;
    if (!out->pixels || !out->counts || !e.ink)
        status = rws_fail(err, RWS_NO_MEMORY, "There is no memory for %d canvases of %d x %d pixels.", n, size, size);
    for (int i = 0; i < digits->n && status == RWS_OK; i++) {
        e.ink[i] =
            find_ink(digits->pixels + (size_t)i * (size_t)(digits->rows * digits->cols), digits->rows, digits->cols);
        if (e.ink[i].rows == 0) status = rws_fail(err, RWS_BAD_INPUT, "Digit number %d has no ink.", i);
    }
    if (status == RWS_OK) status = draw_all(&e, split, seed, proceed, context, out, err);
    free(e.ink);
    if (status != RWS_OK) rws__canvases_release(out);
    return status;
}

void rws__canvases_release(rws_canvases *c)
{
    free(c->pixels);
    free(c->counts);
    *c = (rws_canvases){0};
}

/* ---- the file */

typedef struct {
    char     magic[8];
    uint64_t seed;
    uint32_t size, max_digits;
    uint32_t n[2];   /* by split */
    uint32_t crc[2]; /* by split */
    uint32_t crc_header, zero;
} header;

_Static_assert(sizeof(header) == 48 && offsetof(header, crc_header) == 40, "as in the drawing, without padding");
_Static_assert(RWS_TRAIN == 0 && RWS_TEST == 1, "splits are places in the file");

static const char magic[8] = {'R', 'W', 'S', 'C', 'N', 'V', '1', '\n'};

static uint32_t crc_of(const uint8_t *counts, size_t n, const uint8_t *pixels, size_t n_pixels)
{
    return (uint32_t)crc32_z(crc32_z(0, counts, n), pixels, n_pixels);
}

static uint32_t crc_of_header(const header *h)
{
    return (uint32_t)crc32_z(0, (const uint8_t *)h, offsetof(header, crc_header));
}

/* Bytes of a split: a count and the pixels of each canvas. */
static size_t section_size(const header *h, int split)
{
    return (size_t)h->n[split] * ((size_t)h->size * h->size + 1);
}

static rws_status read_header(const uint8_t *bytes, size_t size, const char *name, header *h, rws_error *err)
{
    if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return rws__refuse(err, name, 0, "is not a file of canvases.");
    if (size < sizeof *h) return rws__refuse(err, name, 0, "is cut short within its header.");
    memcpy(h, bytes, sizeof *h);
    if (h->crc_header != crc_of_header(h) || h->zero != 0)
        return rws__refuse(err, name, 0, "is damaged: the checksum of its header is wrong.");
    if (h->size < 1 || h->size > RWS_MAX_CANVAS_SIZE || h->max_digits < 1 || h->max_digits > RWS_MAX_CANVAS_DIGITS)
        return rws__refuse(err, name, 0, "announces %u digits on canvases of %u pixels a side, which cannot be.",
                           h->max_digits, h->size);
    for (int split = 0; split < 2; split++) /* with at most 10^7 canvases of 2^20 pixels nothing below overflows */
        if (h->n[split] > RWS_MAX_CANVASES)
            return rws__refuse(err, name, 0, "announces %u canvases, and up to %d are read.", h->n[split],
                               RWS_MAX_CANVASES);
    const size_t announced = sizeof *h + section_size(h, RWS_TRAIN) + section_size(h, RWS_TEST);
    if (size != announced)
        return rws__refuse(err, name, 0, "%s: it announces %zu bytes and has %zu.",
                           size < announced ? "is cut short" : "continues after its end", announced, size);
    return RWS_OK;
}

rws_status rws__canvases_parse(const uint8_t *bytes, size_t size, const char *name, rws_split split, rws_canvases *out,
                               rws_error *err)
{
    header h;
    *out = (rws_canvases){0};
    RWS_TRY(read_header(bytes, size, name, &h, err));
    const size_t   n = h.n[split], n_pixels = n * h.size * h.size;
    const uint8_t *counts = bytes + sizeof h + (split == RWS_TEST ? section_size(&h, RWS_TRAIN) : 0);
    if (crc_of(counts, n, counts + n, n_pixels) != h.crc[split])
        return rws__refuse(err, name, 0, "is damaged: the checksum of its canvases is wrong.");
    for (size_t i = 0; i < n; i++)
        if (counts[i] > h.max_digits)
            return rws__refuse(err, name, 0, "has %d digits on canvas %zu, and announces at most %u.", counts[i], i,
                               h.max_digits);
    *out = (rws_canvases){.n = (int)n, .size = (int)h.size, .max_digits = (int)h.max_digits};
    out->counts = malloc(n ? n : 1);
    out->pixels = malloc(n_pixels ? n_pixels : 1);
    if (!out->counts || !out->pixels) {
        rws__canvases_release(out);
        return rws_fail(err, RWS_NO_MEMORY, "There is no memory for the %zu bytes of \"%s\".", n_pixels,
                        rws__quote(name).text);
    }
    memcpy(out->counts, counts, n);
    memcpy(out->pixels, counts + n, n_pixels);
    return RWS_OK;
}

rws_status rws__canvases_path(char **path, rws_error *err)
{
    char *cache;
    RWS_TRY(rws__cache_folder(&cache, err));
    *path = rws__file_join(cache, FILE_NAME);
    free(cache);
    return *path ? RWS_OK : rws_no_memory(err, "the path of the canvases");
}

rws_status rws__canvases_open(const char *path, rws_split split, rws_canvases *out, rws_error *err)
{
    char *own = NULL;
    *out = (rws_canvases){0};
    if (!path) RWS_TRY(rws__canvases_path(&own, err));
    const char    *from = path ? path : own;
    const uint8_t *bytes;
    size_t         size;
    rws_status     status;
    if (access(from, F_OK) != 0)
        status = rws_fail(err, RWS_BAD_INPUT, "There are no canvases \"%s\"; make them with `rws data multimnist%s`.",
                          rws__quote(from).text, path ? " --out FILE" : "");
    else status = rws__file_map(from, &bytes, &size, err);
    if (status == RWS_OK) {
        status = rws__canvases_parse(bytes, size, from, split, out, err);
        rws__file_unmap(bytes, size);
    }
    free(own);
    return status;
}

/* Refuses to overwrite a file that is not a canvas file. */
static rws_status check_target(const char *path, rws_error *err)
{
    const uint8_t *bytes;
    size_t         size;
    if (access(path, F_OK) != 0) return RWS_OK;
    RWS_TRY(rws__file_map(path, &bytes, &size, err));
    const bool is_canvases = size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
    rws__file_unmap(bytes, size);
    return is_canvases ? RWS_OK
                       : rws__refuse(err, path, 0, "exists and is not a file of canvases; it was left as it is.");
}

rws_status rws__canvases_write(const char *path, uint64_t seed, const rws_canvases *train, const rws_canvases *test,
                               rws_error *err)
{
    const rws_canvases *splits[] = {[RWS_TRAIN] = train, [RWS_TEST] = test};
    header              h = {.seed = seed, .size = (uint32_t)train->size, .max_digits = (uint32_t)train->max_digits};
    rws_piece           pieces[5] = {{&h, sizeof h}};
    RWS_CHECK(train->size == test->size && train->max_digits == test->max_digits);
    memcpy(h.magic, magic, sizeof magic);
    for (int split = 0; split < 2; split++) {
        const rws_canvases *c = splits[split];
        const size_t        n = (size_t)c->n, n_pixels = n * (size_t)(c->size * c->size);
        h.n[split] = (uint32_t)n;
        h.crc[split] = crc_of(c->counts, n, c->pixels, n_pixels);
        pieces[1 + 2 * split] = (rws_piece){c->counts, n};
        pieces[2 + 2 * split] = (rws_piece){c->pixels, n_pixels};
    }
    h.crc_header = crc_of_header(&h);
    RWS_TRY(check_target(path, err));
    return rws__file_write(path, pieces, 5, err);
}
