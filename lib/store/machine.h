/* machine.h - what the bits of a run depend on besides its seed and configuration: how the program was built, and the
 * processor that it runs on. */
#ifndef RWS_STORE_MACHINE_H
#define RWS_STORE_MACHINE_H

enum { RWS_MACHINE_SIZE = 128 }; /* bytes of a description, with its end */

/* Compiler, optimisation, vector width and C library: "gcc-12 -O avx2 glibc-2.36", with "portable" after the width if it is
 * a portable build. */
void rws__machine_build(char out[static RWS_MACHINE_SIZE]);

/* Vector features of the processor, by which libm chooses its functions: "avx2 fma avx512f". The bits of a portable build do not depend on them: "any". */
void rws__machine_cpu(char out[static RWS_MACHINE_SIZE]);

#endif
