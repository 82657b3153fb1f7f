/* draw.c - libFuzzer harness for the JSON of rws draw: whatever the bytes, they are refused with a sentence, or a picture is
 * drawn. The first byte chooses what is drawn. */
#include "bytes.h"
#include "rws/draw.c" /* its functions are static */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rws_status (*const kinds[])(const json_t *, const char *, rws_error *) = {draw_trees, draw_images,
                                                                                     draw_hinton};
    rws_error err = {""};
    if (size == 0) return 0;
    json_t *object = json_loadb((const char *)data + 1, size - 1, 0, NULL);
    if (json_is_object(object) && kinds[data[0] % 3](object, "fuzz-draw.svg", &err) != RWS_OK)
        bytes_check_refusal(&err, NULL);
    json_decref(object);
    return 0;
}
