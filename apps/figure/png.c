#include "figure/png.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"

#include <cairo.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_BYTES = 1 << 28, HEADER = 24 /* bytes up to the end of the sizes */ };

bool rws__png_is(const char *path)
{
    const char *ending = strrchr(path, '.');
    return ending && strcasecmp(ending, ".png") == 0;
}

typedef struct {
    const uint8_t *at;
    size_t         left;
} source;

static cairo_status_t pull(void *closure, unsigned char *out, unsigned int n)
{
    source *s = closure;
    if (n > s->left) return CAIRO_STATUS_READ_ERROR;
    memcpy(out, s->at, n);
    s->at += n;
    s->left -= n;
    return CAIRO_STATUS_SUCCESS;
}

static unsigned big_endian(const uint8_t *b)
{
    return (unsigned)b[0] << 24 | (unsigned)b[1] << 16 | (unsigned)b[2] << 8 | b[3];
}

/* Checks the header before memory is allocated, because a few bytes can announce a picture of any size. */
static rws_status check_header(const uint8_t *bytes, size_t size, const char *path, rws_error *err)
{
    static const uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (size < HEADER || memcmp(bytes, magic, sizeof magic) != 0)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is not a PNG file.", rws__quote(path).text);
    const unsigned wide = big_endian(bytes + 16), high = big_endian(bytes + 20);
    if (wide > RWS_MAX_PNG_SIDE || high > RWS_MAX_PNG_SIDE)
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" is %u x %u pixels, and a side of %d is the most that is read.",
                        rws__quote(path).text, wide, high, RWS_MAX_PNG_SIDE);
    return RWS_OK;
}

/* The picture on a black ground with 32 bits per pixel, whatever format cairo read it in. */
static cairo_surface_t *on_black(cairo_surface_t *any)
{
    cairo_surface_t *plain = cairo_image_surface_create(CAIRO_FORMAT_RGB24, cairo_image_surface_get_width(any),
                                                        cairo_image_surface_get_height(any));
    cairo_t         *cairo = cairo_create(plain);
    cairo_set_source_surface(cairo, any, 0, 0);
    cairo_paint(cairo);
    cairo_destroy(cairo);
    cairo_surface_flush(plain);
    return plain;
}

/* Luma of a colour (ITU-R BT.601, weights in 1/256). */
static uint8_t grey_of(uint32_t pixel)
{
    const uint32_t red = pixel >> 16 & 255, green = pixel >> 8 & 255, blue = pixel & 255;
    return (uint8_t)((77 * red + 150 * green + 29 * blue + 128) >> 8);
}

static rws_status take(cairo_surface_t *any, const char *path, rws_grey *out, rws_error *err)
{
    cairo_surface_t *plain = on_black(any);
    const int        wide = cairo_image_surface_get_width(plain), high = cairo_image_surface_get_height(plain);
    const int        stride = cairo_image_surface_get_stride(plain);
    const uint8_t   *data = cairo_image_surface_get_data(plain);
    uint8_t         *grey = data ? malloc((size_t)wide * (size_t)high + 1) : NULL;
    for (int y = 0; y < high && grey; y++) {
        const uint32_t *row = (const uint32_t *)(const void *)(data + (size_t)y * (size_t)stride);
        for (int x = 0; x < wide; x++) grey[(size_t)y * (size_t)wide + (size_t)x] = grey_of(row[x]);
    }
    cairo_surface_destroy(plain);
    if (!grey) return rws_fail(err, RWS_BAD_INPUT, "\"%s\" cannot be read: no memory is left.", rws__quote(path).text);
    *out = (rws_grey){path, wide, high, grey};
    return RWS_OK;
}

rws_status rws__png_read(const char *path, rws_grey *out, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    *out = (rws_grey){0};
    RWS_TRY(rws__file_read(path, MAX_BYTES, &bytes, &size, err));
    rws_status status = check_header(bytes, size, path, err);
    if (status == RWS_OK) {
        source           s = {bytes, size};
        cairo_surface_t *any = cairo_image_surface_create_from_png_stream(pull, &s);
        if (cairo_surface_status(any) == CAIRO_STATUS_SUCCESS) status = take(any, path, out, err);
        else
            status = rws_fail(err, RWS_BAD_INPUT, "\"%s\" is a PNG file that is damaged or cut short.",
                              rws__quote(path).text);
        cairo_surface_destroy(any);
    }
    free(bytes);
    return status;
}

void rws__png_release(rws_grey *picture)
{
    free((void *)picture->grey);
    *picture = (rws_grey){0};
}
