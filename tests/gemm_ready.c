#include "gemm_ready.h"

#include "tensor/gemm.h"

#include <stdio.h>

int gemm_ready(void **state)
{
    rws_error err;
    (void)state;
    if (rws_gemm_init(&err) == RWS_OK) return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
