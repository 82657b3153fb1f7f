#include "models/corpora/cache.h"

#include "base/error.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

rws_status rws__cache_folder(char **folder, rws_error *err)
{
    const char *own = variable("RWS_CACHE"), *shared = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    if (own) *folder = strdup(own);
    else if (shared) *folder = rws__file_join(shared, "rws");
    else if (home) *folder = rws__file_join(home, ".cache/rws");
    else
        return rws_fail(err, RWS_BAD_INPUT,
                        "There is no place to keep data sets: none of RWS_CACHE, XDG_CACHE_HOME and HOME is set.");
    return *folder ? RWS_OK : rws_no_memory(err, "the path of the cache");
}
