/* file.h - files that are there whole or not at all.
 *
 * Writes beside the target, brings that to disk and renames it: whoever looks, after a kill or a power cut too, finds
 * the old file or the new one. It does not know what is in them.
 *
 *     config, safetensors, export -> [file] -> disk
 */
#ifndef RWS_RUN_FILE_H
#define RWS_RUN_FILE_H

#include "rws.h"

#include <sys/uio.h>

/* Replaces `path` by the n parts, one after the other, through `path`.tmp. RWS_BAD_INPUT with a sentence that names
 * the file; `path` is then as it was, unless the sentence says that it is written, and `path`.tmp is gone. */
rws_status rws_file_write(const char *path, const struct iovec *parts, size_t n, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a text. */
rws_status rws_file_write_text(const char *path, const char *text, rws_error *err) __attribute__((warn_unused_result));

/* Makes the folder and its parents; one that is there is fine. RWS_BAD_INPUT with a sentence that names it. */
rws_status rws_file_make_folder(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* FOLDER/NAME, the caller's to free; NULL without memory. */
char *rws_file_join(const char *folder, const char *name);

#endif
