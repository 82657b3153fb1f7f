/* checkpoint_file.h - the file of a checkpoint: its names in a run's folder, and its format. No other file of the tree knows them,
 * so that another format is a change of checkpoint_file.c and a reader and a writer beside data/safetensors.c.
 *
 *     inventory of a run -> [checkpoint_file] -> checkpoint.safetensors -> [checkpoint_file] -> inventory of a run
 *
 * It is a list of named tensors with metadata, a text for each key. Functions return and fail as those of data/safetensors.h.
 */
#ifndef RWS_STORE_CHECKPOINT_FILE_H
#define RWS_STORE_CHECKPOINT_FILE_H

#include "data/safetensors.h"

extern const char rws_checkpoint_name[];          /* "checkpoint.safetensors" */
extern const char rws_checkpoint_previous_name[]; /* "checkpoint.previous.safetensors": the one before it */

typedef rws_safetensors rws_checkpoint_file;

/* Replaces the file atomically. */
rws_status rws__checkpoint_write(const char *path, const rws_tensor_out *tensors, size_t n, json_t *metadata,
                                 rws_error *err) __attribute__((warn_unused_result));

rws_status rws__checkpoint_open(const char *path, rws_checkpoint_file **out, rws_error *err)
    __attribute__((warn_unused_result));
void rws__checkpoint_close(rws_checkpoint_file *c);

/* RWS_BAD_INPUT if the bytes are not those that were written. */
rws_status rws__checkpoint_verify(const rws_checkpoint_file *c, rws_error *err) __attribute__((warn_unused_result));

const char *rws__checkpoint_metadata(const rws_checkpoint_file *c, const char *key); /* NULL: it has no such key */

const rws_tensor_in *rws__checkpoint_tensor(const rws_checkpoint_file *c, size_t i); /* NULL beyond the last */
const rws_tensor_in *rws__checkpoint_find(const rws_checkpoint_file *c, const char *name);

/* The tensor with the name, type and shape of `like`. */
rws_status rws__checkpoint_expect(const rws_checkpoint_file *c, const rws_tensor_out *like, const rws_tensor_in **out,
                                  rws_error *err) __attribute__((warn_unused_result));

#endif
