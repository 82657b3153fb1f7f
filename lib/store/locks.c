/* locks.c - whether files can be locked where a store is: some shared file systems have no locks. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tries to lock a temporary file in the folder or, if none can be made there, asks whether `path` could be locked. */
static bool try_lock(const char *folder, const char *path)
{
    char         name[4096];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int          command = F_SETLK;
    const bool   fits = snprintf(name, sizeof name, "%s/.locks-XXXXXX", folder) < (int)sizeof name;
    int          file = fits ? mkostemp(name, O_CLOEXEC) : -1;
    if (file >= 0) unlink(name);
    else {
        file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        command = F_GETLK;
    }
    if (file < 0) return true; /* opening the store will fail, with the reason */
    const bool has = fcntl(file, command, &lock) == 0 || (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP);
    close(file);
    return has;
}

/* Locks are tried once for each file system, because closing a file drops all locks that the process has on it, those of
 * an open store too. */
bool rws__store_has_locks(const char *path)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        dev_t device;
        bool  has;
    } known[16];
    static int  n_known;
    char        folder[4096] = ".";
    struct stat is;
    bool        has = true;
    const char *slash = strrchr(path, '/');
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode)) snprintf(folder, sizeof folder, "%s", path);
    else if (slash) snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (stat(folder, &is) != 0) return true;
    pthread_mutex_lock(&once);
    int i = 0;
    while (i < n_known && known[i].device != is.st_dev) i++;
    if (i < n_known) has = known[i].has;
    else {
        has = try_lock(folder, path);
        if (n_known < 16) {
            known[n_known].device = is.st_dev;
            known[n_known++].has = has;
        }
    }
    pthread_mutex_unlock(&once);
    return has;
}
