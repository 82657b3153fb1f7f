/* object.h - a shared object on disk: its fingerprint, and whether this user has named it before.
 *
 *     path -> [object] -> an open file, its bytes' fingerprint -> plugin
 *     the user's list of objects that they have named <-> [object]
 *
 * The list is $XDG_STATE_HOME/rws/objects or ~/.local/state/rws/objects, a line "SHA-256, two spaces, absolute path"
 * for each object, as sha256sum writes them. It is read only if it is the user's and no other user may write it.
 */
#ifndef RWS_PROGRAM_OBJECT_H
#define RWS_PROGRAM_OBJECT_H

#include "rws.h"

#define RWS_FINGERPRINT_SIZE 80 /* bytes of the text "sha256:" and 64 hexadecimal digits, with its end */

typedef struct {
    char *path; /* absolute, without links */
    int   fd;   /* of the file whose bytes have the fingerprint */
    char  fingerprint[RWS_FINGERPRINT_SIZE];
    bool  has_origin; /* its bytes name $ORIGIN: it may need libraries beside it */
} rws_object;

/* Opens the file and takes its fingerprint. RWS_BAD_INPUT with a message that names the path, RWS_NO_MEMORY. After a
 * failure *out is empty. */
rws_status rws__object_open(const char *path, rws_object *out, rws_error *err) __attribute__((warn_unused_result));
void       rws__object_close(rws_object *o); /* an empty one is allowed */

/* Whether a run's file has the fingerprint of this object: as SHA-256, or as FNV-1a, which versions before 0.10
 * wrote. */
bool rws__object_fits(const rws_object *o, const char *fingerprint);

/* Whether both are open files with one inode; their bytes differ if the file was overwritten in between. */
bool rws__object_is_same_file(const rws_object *a, const rws_object *b);

/* Whether the user's list has this path with this fingerprint. */
bool rws__object_is_known(const rws_object *o);

/* Adds the object to the list, in place of what it had under this path. A failure leaves the list as it was. Processes
 * that do so at once wait for each other. */
void rws__object_remember(const rws_object *o);

/* The fingerprint of a file's bytes. */
rws_status rws__fingerprint(const char *path, char out[static RWS_FINGERPRINT_SIZE], rws_error *err)
    __attribute__((warn_unused_result));

#endif
