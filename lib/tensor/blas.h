/* blas.h - work space of OpenBLAS, which is asked for before it is needed.
 *
 * A product of OpenBLAS takes a buffer for the thread that calls it. If the system has no memory for the buffer, OpenBLAS
 * asks again for ever, and the program hangs. So there is a claim for every thread that may compute a product: it
 * makes the buffers beforehand, or fails with a sentence. OpenBLAS keeps its buffers until the process ends and uses
 * them again.
 */
#ifndef RWS_TENSOR_BLAS_H
#define RWS_TENSOR_BLAS_H

#include "rws.h"

/* From now on n more threads may compute products at the same time. Any thread may call this. RWS_NO_MEMORY if there is
 * no memory for their buffers. */
rws_status rws_blas_claim(int n, rws_error *err) __attribute__((warn_unused_result));

/* Takes a claim of n threads back. */
void rws_blas_unclaim(int n);

#endif
