/* flavour.c - prints what the bits of a run depend on besides its seed: compiler, vector width, BLAS kernels, libm. A
 * portable build does not depend on kernels that are chosen by the processor. */
#include <gnu/libc-version.h>
#include <stdio.h>

char *openblas_get_corename(void);
char *openblas_get_config(void);

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
    printf(" portable glibc-%s\n", gnu_get_libc_version());
#else
    char version[32] = "?";
    sscanf(openblas_get_config(), "OpenBLAS %31s", version);
    printf(" openblas-%s-%s glibc-%s\n", version, openblas_get_corename(), gnu_get_libc_version());
#endif
    return 0;
}
