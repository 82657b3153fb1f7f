/* machine.h - what the bits of a run depend on besides its seed and configuration: how the program was built, and the
 * processor that it runs on. */
#ifndef RWS_RUN_MACHINE_H
#define RWS_RUN_MACHINE_H

enum { RWS_MACHINE_SIZE = 128 }; /* bytes of a description, with its end */

/* Compiler, optimisation and vector width: "gcc-12 -O avx2". */
void rws_machine_build(char out[static RWS_MACHINE_SIZE]);

/* Vector features of the processor, by which libm chooses its functions, and the kernels that OpenBLAS has chosen:
 * "avx2 fma avx512f, OpenBLAS SkylakeX". */
void rws_machine_cpu(char out[static RWS_MACHINE_SIZE]);

#endif
