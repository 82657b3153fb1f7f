#include "store/machine.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

void rws__machine_build(char out[static RWS_MACHINE_SIZE])
{
#if defined(__clang__)
    const char *compiler = "clang";
    const int   version = __clang_major__;
#else
    const char *compiler = "gcc";
    const int   version = __GNUC__;
#endif
#if defined(__AVX512F__)
    const char *width = "avx512";
#elif defined(__AVX2__)
    const char *width = "avx2";
#else
    const char *width = "plain";
#endif
#if defined(__OPTIMIZE__)
    const char *optimised = " -O";
#else
    const char *optimised = "";
#endif
#if defined(RWS_PORTABLE)
    const char *portable = " portable";
#else
    const char *portable = "";
#endif
    snprintf(out, RWS_MACHINE_SIZE, "%s-%d%s %s%s glibc-%s", compiler, version, optimised, width, portable,
             gnu_get_libc_version());
}

void rws__machine_cpu(char out[static RWS_MACHINE_SIZE])
{
#if defined(RWS_PORTABLE)
    snprintf(out, RWS_MACHINE_SIZE, "any");
#else
    size_t      n = 0;
    out[0] = '\0';
#if defined(__x86_64__)
    const struct {
        const char *name;
        int         is_there;
    } features[] = {
        {"sse4.2", __builtin_cpu_supports("sse4.2")},     {"avx", __builtin_cpu_supports("avx")},
        {"avx2", __builtin_cpu_supports("avx2")},         {"fma", __builtin_cpu_supports("fma")},
        {"avx512f", __builtin_cpu_supports("avx512f")},   {"avx512dq", __builtin_cpu_supports("avx512dq")},
        {"avx512vl", __builtin_cpu_supports("avx512vl")}, {"avx512bw", __builtin_cpu_supports("avx512bw")},
    };
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (features[i].is_there) n += (size_t)sprintf(out + n, "%s%s", n ? " " : "", features[i].name);
#endif
#endif
}
