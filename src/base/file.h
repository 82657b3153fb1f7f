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

/* All functions: RWS_BAD_INPUT with a sentence that names the file, or RWS_NO_MEMORY. */

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

/* Replaces `path` by the pieces, one after the other, through `path`.tmp. After a failure `path` is as it was, unless
 * the sentence says that it is written, and `path`.tmp is gone. */
rws_status rws_file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a text. */
rws_status rws_file_write_text(const char *path, const char *text, rws_error *err) __attribute__((warn_unused_result));

/* Makes a folder and the folders above it, as far as they do not exist. */
rws_status rws_file_make_folder(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* "folder/name", the caller's to free; NULL without memory, or if either is NULL. The functions above take a
 * path of NULL for such a one and return RWS_NO_MEMORY, so that the result need not be checked before it is used. */
char *rws_file_join(const char *folder, const char *name);

#endif
