/* folder.c - making, opening and locking a run's folder; which store has its metrics, and under which name. */
#include "store/folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "store/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 10       /* for a lock that another process has */
#define LOCK_PAUSE 10000000 /* nanoseconds between two of them */

void rws__folder_close(rws_folder *f)
{
    if (!f) return;
    rws__folder_forget_pending(f);
    free(f->kept);
    if (f->lock >= 0) close(f->lock);
    char *const texts[] = {f->path,          f->name,       f->config_path,       f->checkpoint_path,
                           f->previous_path, f->store_path, f->checkpoint_object, f->store_model};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    rws__config_release(&f->config);
    free(f);
}

static void set_paths(rws_folder *f, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    f->path = strndup(path, length);
    if (!f->path) return;
    f->config_path = rws__file_join(f->path, "config.json");
    f->checkpoint_path = rws__file_join(f->path, rws_checkpoint_name);
    f->previous_path = rws__file_join(f->path, rws_checkpoint_previous_name);
    f->store_path = rws__file_join(f->path, "metrics.sqlite");
}

/* The paths of a folder that need not exist yet. */
static rws_status folder_new(const char *path, rws_folder **out, rws_error *err)
{
    rws_folder *f = calloc(1, sizeof *f);
    if (f) f->lock = -1;
    if (f) set_paths(f, path);
    if (!f || !f->path || !f->config_path || !f->checkpoint_path || !f->previous_path || !f->store_path) {
        rws__folder_close(f);
        return rws_no_memory(err, "the folder of a run");
    }
    const time_t now = time(NULL);
    struct tm    utc;
    strftime(f->started, sizeof f->started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    *out = f;
    return RWS_OK;
}

/* Where a sweep keeps its store: the folder above has one and is not itself a run's. False without memory. */
static bool find_store(rws_folder *f, const char *above)
{
    char *store = rws__file_join(above, "metrics.sqlite"), *config = rws__file_join(above, "config.json");
    if (store && config && rws__file_exists(store) && !rws__file_exists(config)) {
        char *own = f->store_path;
        f->store_path = store;
        f->shared = true;
        store = own;
    }
    const bool has_memory = store && config;
    free(store);
    free(config);
    return has_memory;
}

/* The run has the name of its folder, in whatever way that was typed: "." and a link to the folder are the same run. */
static rws_status name_run(rws_folder *f, rws_error *err)
{
    char *real = realpath(f->path, NULL);
    if (!real && errno == ENOMEM) return rws_no_memory(err, "the folder of a run");
    if (!real) {
        return rws_fail(err, RWS_BAD_INPUT, "There is no run in \"%s\": %s.", rws__quote(f->path).text,
                        strerror(errno));
    }
    char *slash = strrchr(real, '/');
    f->name = strdup(slash && slash[1] ? slash + 1 : real);
    if (slash) slash[slash == real] = '\0'; /* the folder above the root is the root */
    const bool has_memory = find_store(f, real) && f->name;
    free(real);
    return has_memory ? RWS_OK : rws_no_memory(err, "the folder of a run");
}

void rws__folder_warn(rws_folder *f, const char *message)
{
    const size_t n = strlen(f->warnings);
    snprintf(f->warnings + n, sizeof f->warnings - n, "%s%s", n ? " " : "", message);
}

/* Locks the folder, or leaves the reason in errno. rws__folder_is_busy has a lock for a moment, so that one that is taken is
 * tried for again before it counts as that of a process that trains. */
static bool try_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE};
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EINTR && (errno != EWOULDBLOCK || i >= LOCK_TRIES)) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Refuses to write to a run whose files are links: a folder that comes from elsewhere could lead to any file. */
static rws_status refuse_links(const rws_folder *f, rws_error *err)
{
    const char *const files[] = {f->config_path, f->checkpoint_path, f->previous_path, f->store_path};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (rws__file_is_link(files[i]))
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\" is a link, and a run writes to files of its own folder only; put the file itself "
                            "in its place.",
                            rws__quote(files[i]).text);
    return RWS_OK;
}

rws_status rws__folder_lock(rws_folder *f, rws_error *err)
{
    if (f->lock >= 0) return RWS_OK;
    RWS_TRY(refuse_links(f, err));
    const int  fd = TEMP_FAILURE_RETRY(open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool locked = fd >= 0 && try_lock(fd);
    if (fd >= 0 && !locked && errno == EWOULDBLOCK) {
        close(fd);
        return rws_fail(err, RWS_BAD_INPUT,
                        "The run in \"%s\" is being trained by another process, or belongs to another trainer of this "
                        "one.",
                        rws__quote(f->path).text);
    }
    f->lock = fd;
    if (locked) rws__file_clean_folder(f->path); /* the lock says that no process is writing there */
    else {
        char message[RWS_MAX_QUOTED + 256];
        snprintf(message, sizeof message,
                 "\"%s\" cannot be locked (%s): make sure that no other process trains the run.",
                 rws__quote(f->path).text, strerror(errno));
        rws__folder_warn(f, message);
    }
    return RWS_OK;
}

bool rws__folder_is_busy(const char *path)
{
    const int  fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return busy;
}

/* The measures of another run that has this name must not be mixed up with those of the new one. */
static rws_status check_store(const rws_folder *f, rws_error *err)
{
    rws_store_progress progress = {.known = !f->shared && rws__file_exists(f->store_path)};
    if (f->shared) RWS_TRY(rws__store_progress(f->store_path, f->name, &progress, err));
    if (!progress.known) return RWS_OK;
    if (f->shared)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" holds the metrics of another run called \"%.60s\": choose another folder.",
                        rws__quote(f->store_path).text, rws__quote(f->name).text);
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" holds the metrics of other runs, a sweep's perhaps: choose another folder, or move the "
                    "file away.",
                    rws__quote(f->store_path).text);
}

static rws_status holds_run(const rws_folder *f, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" holds a run already: resume it, or choose another folder.",
                    rws__quote(f->path).text);
}

/* Prepares a folder that has a config.json but no checkpoint, and that no process trains, for a new run: the run in it
 * ended before it measured anything, and nothing is lost. A config.json that cannot be read may be another program's, and where
 * there are measures the run is resumed instead: both are refused. */
static rws_status take_over(const rws_folder *f, rws_error *err)
{
    rws_config         had;
    rws_config_json    json;
    rws_store_progress progress;
    const char        *model;
    const rws_status   status = rws__config_read(f->config_path, &had, &model, &json, err);
    if (status == RWS_NO_MEMORY) return status;
    if (status != RWS_OK) return holds_run(f, err);
    rws__config_release(&json);
    RWS_TRY(rws__store_progress(f->store_path, f->name, &progress, err));
    if (progress.known) return holds_run(f, err);
    /* The store may have the record of a numerical failure of the earlier run. */
    return rws__file_exists(f->store_path) ? rws__store_drop(f->store_path, f->name, err) : RWS_OK;
}

static rws_status create(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    if (rws__file_exists(f->checkpoint_path) || rws__file_exists(f->previous_path)) return holds_run(f, err);
    RWS_TRY(rws__config_describe(s, &f->config.document, err));
    RWS_TRY(rws__file_make_folder(f->path, err));
    RWS_TRY(name_run(f, err));
    RWS_TRY(rws__folder_lock(f, err));
    RWS_TRY(rws__file_exists(f->config_path) ? take_over(f, err) : check_store(f, err));
    return rws__config_write(f->config_path, f->config.document, err);
}

rws_status rws__folder_create(const char *path, const rws_run_state *s, rws_folder **out, rws_error *err)
{
    rws_folder *f;
    *out = NULL;
    RWS_TRY(folder_new(path, &f, err));
    const rws_status status = create(f, s, err);
    if (status == RWS_OK) *out = f;
    else rws__folder_close(f);
    return status;
}

rws_status rws__folder_adopt_name(rws_folder *f, rws_error *err)
{
    char      *name, *config;
    char       key[RWS_KEY_SIZE] = "";
    rws_status status = rws__store_identify(f->store_path, f->name, &name, &config, err);
    if (status == RWS_OK && f->shared && name && strcmp(name, f->name) != 0) { /* the sweep's only run is another one */
        free(name);
        free(config);
        name = config = NULL;
    }
    if (status == RWS_OK && config) status = rws__config_compare(f->config.document, config, key, err);
    f->has_measures = name != NULL;
    free(f->store_model);
    f->store_model = config ? rws__config_model_in(config) : NULL;
    if (status == RWS_OK && config && !f->store_model) status = rws_no_memory(err, "the store of a run");
    if (status == RWS_OK && key[0])
        status = rws_fail(err, RWS_BAD_INPUT,
                          "\"%s\" holds the metrics of another run than \"%.100s\": their \"%.60s\" differs.",
                          rws__quote_short(f->store_path).text, rws__quote_short(f->config_path).text, key);
    if (status == RWS_OK && name && !f->shared) {
        free(f->name);
        f->name = name;
        name = NULL;
    }
    free(name);
    free(config);
    return status;
}

const char *rws__folder_warnings(const rws_folder *f)
{
    return f->warnings;
}

/* Notes what config.json, checkpoint and store say about the model. A checkpoint that cannot be read is refused later. One
 * without the key may be older, but no version that writes SHA-256 into config.json leaves it out. */
static rws_status note_model(rws_folder *f, const char *model, rws_error *err)
{
    rws_checkpoint_file *st;
    rws_error            unread;
    const char          *object = rws__config_fingerprint_of(f->config.document);
    f->recorded = (rws_recorded){f->path, model, object, NULL, f->store_model};
    const rws_status status = rws__checkpoint_open(f->checkpoint_path, &st, &unread);
    if (status != RWS_OK) return status == RWS_NO_MEMORY ? rws_no_memory(err, "a checkpoint") : RWS_OK;
    const char *found = rws__checkpoint_metadata(st, "model_fingerprint");
    if (!found && object && strncmp(object, "sha256:", 7) == 0) found = "";
    f->recorded.checkpoint = f->checkpoint_object = found ? strdup(found) : NULL;
    const bool memory = !found || f->checkpoint_object;
    rws__checkpoint_close(st);
    return memory ? RWS_OK : rws_no_memory(err, "the folder of a run");
}

rws_status rws__folder_open(const char *path, rws_config *config, rws_folder **out, rws_error *err)
{
    const char *model;
    rws_folder *f;
    *out = NULL;
    RWS_TRY(folder_new(path, &f, err));
    rws_status status = name_run(f, err);
    if (status == RWS_OK) status = rws__config_read(f->config_path, config, &model, &f->config, err);
    if (status != RWS_OK) {
        rws__folder_close(f);
        return status;
    }
    status = rws__folder_adopt_name(f, err);
    if (status == RWS_BAD_INPUT) rws__folder_warn(f, err->text); /* rws__folder_load needs the store, a look does not */
    if (status == RWS_OK || status == RWS_BAD_INPUT) status = note_model(f, model, err);
    if (status == RWS_OK) *out = f;
    else rws__folder_close(f);
    return status;
}

const rws_recorded *rws__folder_recorded(const rws_folder *f)
{
    return &f->recorded;
}

rws_status rws__folder_amend(rws_folder *f, const rws_config *config, const char *fingerprint, rws_error *err)
{
    RWS_TRY(rws__config_amend(f->config.document, config, fingerprint, err));
    f->recorded.model = rws__config_model_of(f->config.document);
    f->recorded.fingerprint = rws__config_fingerprint_of(f->config.document);
    RWS_TRY(rws__config_write(f->config_path, f->config.document, err));
    char            *text = rws__config_text(f->config.document);
    const rws_status status =
        text ? rws__store_configure(f->store_path, f->name, text, err) : rws_no_memory(err, "config.json");
    free(text);
    return status;
}

bool rws__folder_has_checkpoint(const rws_folder *f)
{
    return rws__file_exists(f->checkpoint_path) || errno != ENOENT || rws__file_exists(f->previous_path);
}

rws_status rws__folder_restart(rws_folder *f, rws_error *err)
{
    RWS_TRY(rws__folder_adopt_name(f, err));
    return rws__store_forget(f->store_path, f->name, 0, 0, err);
}
