/* test_images.c - images that are drawn, pixel by pixel, and PNG files that are read. */
#include "drawn.h"

#include "figure/images.h"
#include "figure/png.h"

#include <string.h>
#include <unistd.h>

static void test_images(void **state)
{
    (void)state;
    /* two images of 2 x 2 pixels: black, white, grey, nothing; and all white */
    const double      values[] = {0, 1, 0.5, NAN, 2, 2, 2, 2};
    const char *const names[] = {"a", "b"};
    rws_images        figure = {
               .n_rows = 1, .n_columns = 2, .wide = 2, .high = 2, .values = values, .columns = names, .dpi = 72};
    rws_error err = {""};
    assert_int_equal(rws__images_draw(&figure, in_folder("images.png"), &err), RWS_OK);
    picture p = open_picture("images.png");
    int     black = 0, grey = 0, white = 0;
    for (int y = 0; y < p.height; y++) {
        for (int x = 0; x < p.width; x++) {
            const uint32_t pixel = pixel_at(p, x, y);
            black += pixel == 0;
            grey += pixel == 0x808080;
            white += pixel == 0xffffff;
        }
    }
    close_picture(p);
    unlink(in_folder("images.png"));
    /* an image is 90 points wide, so a pixel covers 45 x 45, but for its frame */
    assert_true(black > 1800 && black < 2100);
    assert_true(grey > 1800 && grey < 2100);
    assert_true(white > 5 * 1900);
    figure.n_columns = 1000;
    assert_int_equal(rws__images_draw(&figure, in_folder("images.png"), &err), RWS_BAD_INPUT);
}

/* One pixel: a colour and how opaque it is, as PNG; what it is in grey. */
static int grey_of(double red, double green, double blue, double alpha)
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 3, 2);
    cairo_t         *cairo = cairo_create(s);
    cairo_set_source_rgba(cairo, red, green, blue, alpha);
    cairo_rectangle(cairo, 2, 1, 1, 1);
    cairo_fill(cairo);
    cairo_destroy(cairo);
    assert_int_equal(cairo_surface_write_to_png(s, in_folder("one.png")), CAIRO_STATUS_SUCCESS);
    cairo_surface_destroy(s);
    rws_grey  picture;
    rws_error err = {""};
    assert_int_equal(rws__png_read(in_folder("one.png"), &picture, &err), RWS_OK);
    assert_true(picture.wide == 3 && picture.high == 2);
    for (int i = 0; i < 5; i++) assert_int_equal(picture.grey[i], 0);
    const int grey = picture.grey[5];
    rws__png_release(&picture);
    assert_null(picture.grey);
    return grey;
}

static void test_png(void **state)
{
    (void)state;
    assert_true(rws__png_is("a/b.png") && rws__png_is("B.PNG") && !rws__png_is("png") && !rws__png_is("a.png.gz"));
    assert_int_equal(grey_of(1, 1, 1, 1), 255);
    assert_int_equal(grey_of(1, 1, 1, 0.5), 128);
    assert_int_equal(grey_of(1, 1, 1, 0), 0);
    assert_in_range(grey_of(0, 1, 0, 1), 149, 151);
    assert_in_range(grey_of(1, 0, 0, 1), 76, 78);
    assert_in_range(grey_of(0, 0, 1, 1), 28, 30);

    /* every file that is cut short is refused, and so is one that announces too much */
    rws_grey    picture;
    rws_error   err;
    const char *path = in_folder("one.png");
    size_t      size;
    char       *bytes = slurp(path, &size);
    for (size_t n = 0; n < size - 12; n++) { /* behind that is the end's own chunk */
        spill(path, bytes, n);
        err.text[0] = '\0';
        assert_int_equal(rws__png_read(path, &picture, &err), RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "one.png"));
        assert_null(picture.grey);
    }
    bytes[18] = 0x7f;
    spill(path, bytes, size);
    free(bytes);
    assert_int_equal(rws__png_read(path, &picture, &err), RWS_BAD_INPUT);
    assert_non_null(strstr(err.text, "32515 x 2 pixels"));
    unlink(path);
    assert_int_equal(rws__png_read(path, &picture, &err), RWS_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_png),
    };
    return cmocka_run_group_tests_name("images", tests, folder_make, folder_remove_empty);
}
