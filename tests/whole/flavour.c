/* flavour.c - prints what the bits of a run depend on besides its seed: compiler, vector width, libm. */
#include <gnu/libc-version.h>
#include <stdio.h>

int main(void)
{
#ifdef __clang__
    printf("clang-%d", __clang_major__);
#else
    printf("gcc-%d", __GNUC__);
#endif
#if defined(__AVX512F__)
    printf(" avx512");
#elif defined(__AVX2__)
    printf(" avx2");
#elif defined(__aarch64__)
    printf(" neon");
#endif
#if defined(RWS_PORTABLE)
    printf(" portable");
#endif
    printf(" glibc-%s\n", gnu_get_libc_version());
    return 0;
}
