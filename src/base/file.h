/* file.h - whole files, read at once and written at once.
 *
 * Writing is atomic: at any moment, also after a power cut, a path holds its old bytes or its new ones. This file knows
 * nothing of what is in the files.
 *
 *     disk -> [file] -> idx, canvas -> model
 *     config, checkpoint, export -> [file] -> disk
 */
#ifndef RWS_BASE_FILE_H
#define RWS_BASE_FILE_H

#include "rws.h"

/* Reads a regular file of at most `most` bytes; *bytes is the caller's to free and never NULL on success. */
rws_status rws_file_read(const char *path, size_t most, uint8_t **bytes, size_t *size, rws_error *err)
    __attribute__((warn_unused_result));

/* The same without a copy, for a file of any size; until rws_file_unmap. An empty file has no bytes to look at. */
rws_status rws_file_map(const char *path, const uint8_t **bytes, size_t *size, rws_error *err)
    __attribute__((warn_unused_result));
void rws_file_unmap(const uint8_t *bytes, size_t size);

typedef struct {
    const void *bytes;
    size_t      size;
} rws_piece;

/* Replaces `path` by the pieces, one after the other, through `path`.tmp. RWS_BAD_INPUT with a sentence that names the
 * file; `path` is then as it was, unless the sentence says that it is written, and `path`.tmp is gone. */
rws_status rws_file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a text. */
rws_status rws_file_write_text(const char *path, const char *text, rws_error *err) __attribute__((warn_unused_result));

/* Makes a folder and those above it; one that is there already will do. */
rws_status rws_file_make_folder(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* "folder/name", the caller's to free; stops the program when no memory is left. */
char *rws_file_join(const char *folder, const char *name);

#endif
