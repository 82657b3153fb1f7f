/* gemm_ready.h - the set-up of tests that multiply matrices without a trainer, which would do this for them. */
#ifndef RWS_TESTS_GEMM_READY_H
#define RWS_TESTS_GEMM_READY_H

/* rws_gemm_init, for cmocka_run_group_tests: the group fails, with the sentence, if it fails. */
int gemm_ready(void **state);

#endif
