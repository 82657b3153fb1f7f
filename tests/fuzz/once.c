/* once.c - runs a harness without libFuzzer: once without any byte, and for each file with its bytes and with each of them
 * missing at the end in turn, as far as the first hundred of these. A harness that finds a mistake aborts. */
#include "bytes.h"

static void take(const char *path)
{
    static uint8_t bytes[1 << 17];
    FILE          *f = fopen(path, "rb");
    const size_t   size = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (!f || fclose(f) != 0 || size == 0) abort();
    for (size_t n = 0; n < 100 && n < size; n++) LLVMFuzzerTestOneInput(bytes, size - n);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) take(argv[i]);
    return 0;
}
