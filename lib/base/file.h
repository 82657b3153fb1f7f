/* file.h - whole files, read at once and written at once.
 *
 * Writing is atomic: at any moment, also after a power cut, a path holds its old bytes or its new ones. This file knows
 * nothing of what is in the files. A temporary file has a name that cannot be guessed and is made exclusively, so that
 * no file of others is taken for it.
 *
 *     disk -> [file] -> idx, canvas -> model
 *     config, checkpoint, export -> [file] -> disk
 */
#ifndef RWS_BASE_FILE_H
#define RWS_BASE_FILE_H

#include "rws.h"

/* All functions: RWS_BAD_INPUT with a message that names the file, or RWS_NO_MEMORY. */

/* Reads a regular file of at most `most` bytes; *bytes is the caller's to free and never NULL on success. */
rws_status rws__file_read(const char *path, size_t most, uint8_t **bytes, size_t *size, rws_error *err)
    __attribute__((warn_unused_result));

/* Reads a text of at most `most` bytes, also from a pipe. *length is most + 1 if the text is longer, which the caller
 * must refuse. `what` is the kind of file in messages, such as "grammar". *text is the caller's to free. */
rws_status rws__file_read_text(const char *path, const char *what, size_t most, char **text, size_t *length,
                               rws_error *err) __attribute__((warn_unused_result));

/* As rws__file_read, without a copy and for a file of any size. The bytes are there until rws__file_unmap; an empty file
 * has none. */
rws_status rws__file_map(const char *path, const uint8_t **bytes, size_t *size, rws_error *err)
    __attribute__((warn_unused_result));
void rws__file_unmap(const uint8_t *bytes, size_t size);

typedef struct {
    const void *bytes;
    size_t      size;
} rws_piece;

/* Writes the pieces, one after the other, to `path`. A new or regular file is replaced atomically, through a temporary
 * file beside it; links are followed, and mode and owner are kept. A device, a pipe and a file that is the program's
 * stdout or stderr are written to directly, and never replaced. After a failure a regular `path` is as it was, unless
 * the message says that it is written, and the temporary file is gone. */
rws_status rws__file_write(const char *path, const rws_piece *pieces, int n, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for a file of the program's own: anything but a new or regular file is refused, links too, since a folder that
 * comes from elsewhere could lead to any file. */
rws_status rws__file_replace(const char *path, const rws_piece *pieces, int n, rws_error *err)
    __attribute__((warn_unused_result));

/* Removes temporary files (.rws-<16 hexadecimal digits>.tmp) that killed writers left in a folder. The caller makes
 * sure that no process is writing there. */
void rws__file_clean_folder(const char *path);

/* rws__file_write for a text. */
rws_status rws__file_write_text(const char *path, const char *text, rws_error *err) __attribute__((warn_unused_result));

/* Makes a folder and the folders above it, as far as they do not exist. */
rws_status rws__file_make_folder(const char *path, rws_error *err) __attribute__((warn_unused_result));

/* Whether the path has an entry in its folder, be it a link that leads nowhere; errno says why not. */
bool rws__file_exists(const char *path);

/* Whether the path leads to a file or a folder, perhaps by a link. NULL leads nowhere. */
bool rws__file_leads(const char *path);

bool rws__file_is_link(const char *path);

/* "folder/name", the caller's to free; NULL without memory, or if either is NULL. The functions above return
 * RWS_NO_MEMORY for a path of NULL, so that the result need not be checked before it is used. */
char *rws__file_join(const char *folder, const char *name);

#endif
