/* digest.h - one number for what a run's folder says, so that two runs can be compared. */
#ifndef RWS_TESTS_DIGEST_H
#define RWS_TESTS_DIGEST_H

#include "rws.h"

#include <stdbool.h>
#include <stdint.h>

/* A digest of the checkpoint's tensors, without the seconds, and of the names of its metadata; false if it cannot be read. */
bool digest_checkpoint(const char *folder, uint64_t *hash);

/* Only of the names of the metadata and of the tensors, which are the same at every iteration. */
bool digest_names(const char *folder, uint64_t *hash);

/* A digest of the checkpoint and of all that was measured; 0 with a message if the folder cannot be read. */
uint64_t digest_run(const char *folder, rws_error *err);

#endif
