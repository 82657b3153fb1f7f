#include "store/checkpoint.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "optim/schedule.h"
#include "program/plugin.h"
#include "store/config.h"
#include "store/machine.h"
#include "data/safetensors.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECKPOINT_FORMAT "rws 1"
#define LOCK_TRIES 10       /* for a lock that another process has */
#define LOCK_PAUSE 10000000 /* nanoseconds between two of them */
#define MOST_PHASES (sizeof((rws_estimator *)0)->phases / sizeof(rws_phase))

/* An evaluation that waits to be flushed. */
typedef struct {
    uint64_t      iteration;
    int           n;
    double        value[RWS_MAX_METRICS + 1];
    double        seconds;
    rws_snapshots shown;
} pending;

struct rws_folder {
    char           *path; /* as typed, without slashes at the end */
    char           *name; /* of the run in the store */
    char           *config_path, *checkpoint_path, *previous_path, *store_path;
    bool            shared; /* the store is the sweep's */
    int             lock;   /* -1: none */
    rws_config_json config;
    char            started[32];
    const char     *metrics[RWS_MAX_METRICS + 1]; /* names; the trainer's, and "impossible" */
    bool            impossible;                   /* there were impossible test data, so that their share is recorded */
    pending        *kept;
    int             n_kept, kept_capacity;
    bool            has_measures; /* the store knows the run */
    rws_recorded    recorded;
    char           *checkpoint_object, *store_model; /* of recorded */
    char            remarks[1024];                   /* sentences */
};

/* ---- the folder ------------------------------------------------------------------------------------------------- */

static void forget_kept(rws_folder *f)
{
    for (int i = 0; i < f->n_kept; i++) rws_snapshots_release(&f->kept[i].shown);
    f->n_kept = 0;
}

void rws_folder_close(rws_folder *f)
{
    if (!f) return;
    forget_kept(f);
    free(f->kept);
    if (f->lock >= 0) close(f->lock);
    char *const texts[] = {f->path,          f->name,       f->config_path,       f->checkpoint_path,
                           f->previous_path, f->store_path, f->checkpoint_object, f->store_model};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    rws_config_release(&f->config);
    free(f);
}

static void set_paths(rws_folder *f, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    f->path = strndup(path, length);
    if (!f->path) return;
    f->config_path = rws_file_join(f->path, "config.json");
    f->checkpoint_path = rws_file_join(f->path, "checkpoint.safetensors");
    f->previous_path = rws_file_join(f->path, "checkpoint.previous.safetensors");
    f->store_path = rws_file_join(f->path, "metrics.sqlite");
}

/* The paths of a folder that need not exist yet. */
static rws_status folder_new(const char *path, rws_folder **out, rws_error *err)
{
    rws_folder *f = calloc(1, sizeof *f);
    if (f) f->lock = -1;
    if (f) set_paths(f, path);
    if (!f || !f->path || !f->config_path || !f->checkpoint_path || !f->previous_path || !f->store_path) {
        rws_folder_close(f);
        return rws_no_memory(err, "the folder of a run");
    }
    const time_t now = time(NULL);
    struct tm    utc;
    strftime(f->started, sizeof f->started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    *out = f;
    return RWS_OK;
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* Where a sweep keeps its store: the folder above has one and is not itself a run's. False without memory. */
static bool find_store(rws_folder *f, const char *above)
{
    char *store = rws_file_join(above, "metrics.sqlite"), *config = rws_file_join(above, "config.json");
    if (store && config && exists(store) && !exists(config)) {
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
        return rws_fail(err, RWS_BAD_INPUT, "There is no run in \"%s\": %s.", rws_quote(f->path).text, strerror(errno));
    }
    char *slash = strrchr(real, '/');
    f->name = strdup(slash && slash[1] ? slash + 1 : real);
    if (slash) slash[slash == real] = '\0'; /* the folder above the root is the root */
    const bool has_memory = find_store(f, real) && f->name;
    free(real);
    return has_memory ? RWS_OK : rws_no_memory(err, "the folder of a run");
}

void rws_folder_remark(rws_folder *f, const char *sentence)
{
    const size_t n = strlen(f->remarks);
    snprintf(f->remarks + n, sizeof f->remarks - n, "%s%s", n ? " " : "", sentence);
}

/* Locks the folder, or leaves the reason in errno. rws_folder_is_busy has a lock for a moment, so that one that is taken is
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

rws_status rws_folder_lock(rws_folder *f, rws_error *err)
{
    if (f->lock >= 0) return RWS_OK;
    const int  fd = TEMP_FAILURE_RETRY(open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool locked = fd >= 0 && try_lock(fd);
    if (fd >= 0 && !locked && errno == EWOULDBLOCK) {
        close(fd);
        return rws_fail(err, RWS_BAD_INPUT,
                        "The run in \"%s\" is being trained by another process, or belongs to another trainer of this "
                        "one.",
                        rws_quote(f->path).text);
    }
    f->lock = fd;
    if (locked) rws_file_clean_folder(f->path); /* the lock says that no process is writing there */
    else {
        char sentence[RWS_MAX_QUOTED + 256];
        snprintf(sentence, sizeof sentence,
                 "\"%s\" cannot be locked (%s): make sure that no other process trains the run.",
                 rws_quote(f->path).text, strerror(errno));
        rws_folder_remark(f, sentence);
    }
    return RWS_OK;
}

bool rws_folder_is_busy(const char *path)
{
    const int  fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return busy;
}

/* The measures of another run that has this name must not be mixed up with those of the new one. */
static rws_status check_store(const rws_folder *f, rws_error *err)
{
    rws_store_progress progress = {.known = !f->shared && exists(f->store_path)};
    if (f->shared) RWS_TRY(rws_store_ask(f->store_path, f->name, &progress, err));
    if (!progress.known) return RWS_OK;
    if (f->shared)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" holds the metrics of another run called \"%.60s\": choose another folder.",
                        rws_quote(f->store_path).text, rws_quote(f->name).text);
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" holds the metrics of other runs, a sweep's perhaps: choose another folder, or move the "
                    "file away.",
                    rws_quote(f->store_path).text);
}

static rws_status holds_run(const rws_folder *f, rws_error *err)
{
    return rws_fail(err, RWS_BAD_INPUT, "\"%s\" holds a run already: resume it, or choose another folder.",
                    rws_quote(f->path).text);
}

/* Prepares a folder that has a config.json but no checkpoint, and that no process trains, for a new run: the run in it
 * ended before it measured anything, and nothing is lost. A config.json that cannot be read may be anybody's, and where
 * there are measures the run is resumed instead: both are refused. */
static rws_status take_over(const rws_folder *f, rws_error *err)
{
    rws_config         had;
    rws_config_json    json;
    rws_store_progress progress;
    const char        *model;
    const rws_status   status = rws_config_read(f->config_path, &had, &model, &json, err);
    if (status == RWS_NO_MEMORY) return status;
    if (status != RWS_OK) return holds_run(f, err);
    rws_config_release(&json);
    RWS_TRY(rws_store_ask(f->store_path, f->name, &progress, err));
    if (progress.known) return holds_run(f, err);
    /* The store may have the record that the numbers of the earlier run broke. */
    return exists(f->store_path) ? rws_store_drop(f->store_path, f->name, err) : RWS_OK;
}

static rws_status create(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    if (exists(f->checkpoint_path) || exists(f->previous_path)) return holds_run(f, err);
    RWS_TRY(rws_config_describe(s->config, s->settings, s->n_settings, &f->config.document, err));
    RWS_TRY(rws_file_make_folder(f->path, err));
    RWS_TRY(name_run(f, err));
    RWS_TRY(rws_folder_lock(f, err));
    RWS_TRY(exists(f->config_path) ? take_over(f, err) : check_store(f, err));
    return rws_config_write(f->config_path, f->config.document, err);
}

rws_status rws_folder_create(const char *path, const rws_run_state *s, rws_folder **out, rws_error *err)
{
    rws_folder *f;
    *out = NULL;
    RWS_TRY(folder_new(path, &f, err));
    const rws_status status = create(f, s, err);
    if (status == RWS_OK) *out = f;
    else rws_folder_close(f);
    return status;
}

/* A run whose folder was renamed keeps its old name in its store; under two names it would be two runs. The store must
 * be this run's: the configuration that it has must be the folder's, but for what may change. */
static rws_status keep_name(rws_folder *f, rws_error *err)
{
    char      *name, *config;
    char       key[RWS_KEY_SIZE] = "";
    rws_status status = rws_store_identify(f->store_path, f->name, &name, &config, err);
    if (status == RWS_OK && f->shared && name && strcmp(name, f->name) != 0) { /* the sweep's only run is another one */
        free(name);
        free(config);
        name = config = NULL;
    }
    if (status == RWS_OK && config) status = rws_config_compare(f->config.document, config, key, err);
    f->has_measures = name != NULL;
    free(f->store_model);
    f->store_model = config ? rws_config_model_in(config) : NULL;
    if (status == RWS_OK && key[0])
        status = rws_fail(err, RWS_BAD_INPUT,
                          "\"%s\" holds the metrics of another run than \"%.100s\": their \"%.60s\" differs.",
                          rws_quote_short(f->store_path).text, rws_quote_short(f->config_path).text, key);
    if (status == RWS_OK && name && !f->shared) {
        free(f->name);
        f->name = name;
        name = NULL;
    }
    free(name);
    free(config);
    return status;
}

const char *rws_folder_remarks(const rws_folder *f)
{
    return f->remarks;
}

/* Notes what config.json, checkpoint and store say about the model. A checkpoint that cannot be read is refused later. */
static void note_model(rws_folder *f, const char *model)
{
    rws_safetensors *st;
    rws_error        unread;
    if (rws_safetensors_open(f->checkpoint_path, &st, &unread) == RWS_OK) {
        const char *object = rws_safetensors_metadata(st, "model_fingerprint");
        f->checkpoint_object = object ? strdup(object) : NULL;
        rws_safetensors_close(st);
    }
    f->recorded = (rws_recorded){f->path, model, rws_config_fingerprint_of(f->config.document), f->checkpoint_object,
                                 f->store_model};
}

rws_status rws_folder_open(const char *path, rws_config *config, rws_folder **out, rws_error *err)
{
    const char *model;
    rws_folder *f;
    *out = NULL;
    RWS_TRY(folder_new(path, &f, err));
    rws_status status = name_run(f, err);
    if (status == RWS_OK) status = rws_config_read(f->config_path, config, &model, &f->config, err);
    if (status != RWS_OK) {
        rws_folder_close(f);
        return status;
    }
    status = keep_name(f, err);
    if (status == RWS_BAD_INPUT) rws_folder_remark(f, err->text); /* rws_folder_load needs the store, a look does not */
    else if (status != RWS_OK) {
        rws_folder_close(f);
        return status;
    }
    note_model(f, model);
    config->recorded = &f->recorded;
    *out = f;
    return RWS_OK;
}

rws_status rws_folder_amend(rws_folder *f, const rws_config *config, rws_error *err)
{
    RWS_TRY(rws_config_amend(f->config.document, config, err));
    RWS_TRY(rws_config_write(f->config_path, f->config.document, err));
    char            *text = rws_config_text(f->config.document);
    const rws_status status =
        text ? rws_store_configure(f->store_path, f->name, text, err) : rws_no_memory(err, "config.json");
    free(text);
    return status;
}

bool rws_folder_has_checkpoint(const rws_folder *f)
{
    return exists(f->checkpoint_path) || errno != ENOENT || exists(f->previous_path);
}

rws_status rws_folder_restart(rws_folder *f, rws_error *err)
{
    RWS_TRY(keep_name(f, err));
    return rws_store_forget(f->store_path, f->name, 0, 0, err);
}

/* ---- the checkpoint --------------------------------------------------------------------------------------------- */

/* Every tensor of a checkpoint; `data` is where the numbers are, NULL where they are not wanted. Saving and loading walk
 * the same list, so that neither leaves anything out. The parameters come first. */
typedef struct {
    rws_tensor_out *tensors;
    size_t          n, n_params;
    char            slot_names[2][64];
} inventory;

static void list_vector(inventory *all, const char *name, rws_dtype dtype, size_t n, const void *data)
{
    all->tensors[all->n++] = (rws_tensor_out){.name = name, .dtype = dtype, .n_dims = 1, .shape = {n}, .data = data};
}

/* False without memory. The caller frees all->tensors. */
static bool take_inventory(const rws_run_state *s, inventory *all)
{
    *all = (inventory){.n_params = (size_t)s->params->n};
    all->tensors = calloc(all->n_params + 6, sizeof *all->tensors);
    if (!all->tensors) return false;
    for (int i = 0; i < s->params->n; i++) {
        const rws_param *p = s->params->list[i];
        rws_tensor_out  *t = &all->tensors[all->n++];
        int              shape[RWS_PARAM_DIMS];
        *t = (rws_tensor_out){p->name, RWS_DTYPE_F32, rws_param_shape(p, shape), .data = p->value};
        for (int d = 0; d < t->n_dims; d++) t->shape[d] = (size_t)shape[d];
    }
    for (int i = 0; i < s->optimiser->n_slots; i++) {
        char     *name = all->slot_names[i];
        const int length = snprintf(name, sizeof all->slot_names[i], "optimiser.%s", s->optimiser->slot_names[i]);
        RWS_CHECK(length > 0 && (size_t)length < sizeof all->slot_names[i]);
        list_vector(all, name, RWS_DTYPE_F32, s->params->size, s->slot[i]);
    }
    list_vector(all, "optimiser.steps", RWS_DTYPE_U64, RWS_GROUPS, s->steps);
    list_vector(all, "iteration", RWS_DTYPE_U64, 1, s->iteration);
    list_vector(all, "method.memory", RWS_DTYPE_F64, RWS_METHOD_MEMORY, s->memory);
    list_vector(all, "seconds", RWS_DTYPE_F64, 1, s->seconds);
    return true;
}

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return false;
    }
    return true;
}

static bool has_nan(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i])) return true;
    }
    return false;
}

static bool is_slot(const char *tensor)
{
    return strncmp(tensor, "optimiser.", 10) == 0 && strcmp(tensor, "optimiser.steps") != 0;
}

static size_t n_elements(const rws_tensor_out *t)
{
    size_t n = 1;
    for (int d = 0; d < t->n_dims; d++) n *= t->shape[d];
    return n;
}

/* Gives the checkpoint that is about to be replaced a second name. On a file system without hard links, and if anything
 * else prevents it, only the newest one is kept. */
static void keep_previous(const rws_folder *f)
{
    char *link_path = rws_file_join(f->path, ".rws-0000000000000000.tmp"); /* cleaned up like other temporary files */
    if (!link_path) return;
    unlink(link_path);
    /* Renaming does nothing if both names are of the same file, so the link is removed also after a success. */
    if (linkat(AT_FDCWD, f->checkpoint_path, AT_FDCWD, link_path, AT_SYMLINK_FOLLOW) == 0) {
        (void)!rename(link_path, f->previous_path);
        unlink(link_path);
    }
    free(link_path);
}

enum { HASH_SIZE = 17 }; /* 16 digits and the end */

static const char *hash_text(const rws_run_state *s, rws_split split, char out[static HASH_SIZE])
{
    snprintf(out, HASH_SIZE, "%016llx", (unsigned long long)s->data_hash[split]);
    return out;
}

/* The keys of the metadata, each with the version whose checkpoints have it first: a checkpoint that lacks a key of its own
 * version is damaged. */
enum {
    FORMAT,
    MODEL,
    METHOD,
    OPTIMISER,
    VERSION,
    BUILD,
    CPU,
    IDENTITY,
    LR,
    ITERATIONS,
    TRAINING_DATA,
    TEST_DATA,
    OBJECT,
    N_KEYS
};

static const struct {
    const char *key;
    int         since; /* 0.since */
} keys[N_KEYS] = {
    [FORMAT] = {"format", 1},
    [MODEL] = {"model", 1},
    [METHOD] = {"method", 1},
    [OPTIMISER] = {"optimiser", 1},
    [VERSION] = {"version", 1},
    [BUILD] = {"build", 3},
    [CPU] = {"cpu", 3},
    [IDENTITY] = {"identity", 3},
    [LR] = {"lr", 4},
    [ITERATIONS] = {"iterations", 4},
    [TRAINING_DATA] = {"training_data", 6},
    [TEST_DATA] = {"test_data", 6},
    [OBJECT] = {"model_fingerprint", 10},
};

/* The metadata of a checkpoint, all keys of it, or a failure. */
static rws_status describe(const char *path, const char *const values[static N_KEYS], json_t **out, rws_error *err)
{
    *out = json_object();
    for (int i = 0; i < N_KEYS && *out; i++) {
        if (values[i] && json_object_set_new(*out, keys[i].key, json_string(values[i])) == 0) continue;
        json_decref(*out);
        *out = NULL;
    }
    if (*out && json_object_size(*out) == N_KEYS) return RWS_OK;
    if (g_utf8_validate(values[MODEL], -1, NULL)) return rws_no_memory(err, "the metadata of a checkpoint");
    return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": the model's name is not UTF-8.", rws_quote(path).text);
}

/* Refuses a checkpoint without a key that its own version writes. */
static rws_status check_keys(const rws_safetensors *st, const char *file, rws_error *err)
{
    const char *version = rws_safetensors_metadata(st, keys[VERSION].key);
    int         major = 0, minor = 1;
    if (version) sscanf(version, "%d.%d", &major, &minor);
    for (int i = 0; i < N_KEYS; i++)
        if ((major > 0 || minor >= keys[i].since) && !rws_safetensors_metadata(st, keys[i].key))
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\" is damaged, or not a checkpoint of rws: its metadata has no \"%s\".", file,
                            keys[i].key);
    return RWS_OK;
}

static rws_status save(const rws_folder *f, const rws_run_state *s, const inventory *all, rws_error *err)
{
    const char *path = f->checkpoint_path;
    /* A checkpoint with a NaN could not be loaded; it must not replace one that can. */
    for (size_t i = 0; i < all->n; i++) {
        const rws_tensor_out *e = &all->tensors[i];
        if (i >= all->n_params && is_slot(e->name) && has_nan(e->data, n_elements(e)))
            return rws_fail(err, RWS_BROKEN, "\"%s\" is not replaced: a number of \"%s\" has become NaN.",
                            rws_quote(path).text, e->name);
        if (i >= all->n_params || all_finite(e->data, n_elements(e))) continue;
        return rws_fail(err, RWS_BROKEN, "\"%s\" is not replaced: the parameter \"%s\" has become NaN or infinite.",
                        rws_quote(path).text, rws_quote(all->tensors[i].name).text);
    }
    char build[RWS_MACHINE_SIZE], cpu[RWS_MACHINE_SIZE];
    rws_machine_build(build);
    rws_machine_cpu(cpu);
    const rws_config *c = s->config;
    char              iterations[24], training[HASH_SIZE], test[HASH_SIZE];
    snprintf(iterations, sizeof iterations, "%llu", (unsigned long long)c->iterations);
    const char       *object = rws_config_fingerprint_of(f->config.document);
    char             *identity = rws_config_identity(f->config.document);
    const char *const values[N_KEYS] = {[FORMAT] = CHECKPOINT_FORMAT,
                                        [MODEL] = s->model,
                                        [METHOD] = c->method,
                                        [OPTIMISER] = s->optimiser->name,
                                        [VERSION] = RWS_VERSION_STRING,
                                        [BUILD] = build,
                                        [CPU] = cpu,
                                        [TRAINING_DATA] = hash_text(s, RWS_TRAIN, training),
                                        [TEST_DATA] = hash_text(s, RWS_TEST, test),
                                        [IDENTITY] = identity,
                                        [LR] = c->lr,
                                        [ITERATIONS] = iterations,
                                        [OBJECT] = object ? object : ""};
    json_t           *metadata;
    const rws_status  described = describe(path, values, &metadata, err);
    free(identity);
    RWS_TRY(described);
    keep_previous(f);
    const rws_status status = rws_safetensors_write(path, all->tensors, all->n, metadata, err);
    json_decref(metadata);
    return status;
}

rws_status rws_folder_save(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    RWS_CHECK(isfinite(*s->seconds) && *s->seconds >= 0);
    RWS_TRY(rws_folder_flush(f, err));
    inventory all;
    if (!take_inventory(s, &all)) return rws_no_memory(err, "the list of tensors of a checkpoint");
    const rws_status status = save(f, s, &all, err);
    free(all.tensors);
    return status;
}

static rws_status check_metadata(const rws_safetensors *st, const char *file, const char *key, const char *needed,
                                 rws_error *err)
{
    const char *found = rws_safetensors_metadata(st, key);
    if (strcmp(found, needed) != 0) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has the %s \"%.60s\", but \"%.60s\" is needed.", file, key,
                        rws_quote(found).text, rws_quote(needed).text);
    }
    return RWS_OK;
}

static bool is_listed(const inventory *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->tensors[i].name, name) == 0) return true;
    }
    return false;
}

/* The configuration must be the one that the checkpoint was trained with; a checkpoint of an older version does not say. */
static rws_status check_identity(const rws_folder *f, const rws_safetensors *st, rws_error *err)
{
    const char *identity = rws_safetensors_metadata(st, keys[IDENTITY].key);
    char        key[RWS_KEY_SIZE];
    if (!identity) return RWS_OK;
    RWS_TRY(rws_config_compare(f->config.document, identity, key, err));
    if (!key[0]) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" has another \"%.60s\" than the run was trained with: undo the change, or begin a new run.",
                    rws_quote(f->config_path).text, key);
}

/* The rates of a run that goes on must be those that it was trained with; from here on they may be others, and then that
 * is said, as is another number of iterations: neither is part of the identity, because both may be changed. A checkpoint of
 * an older version says neither. */
static rws_status check_course(rws_folder *f, const rws_safetensors *st, rws_error *err)
{
    const uint64_t iteration = *(const uint64_t *)rws_safetensors_find(st, "iteration")->data;
    const char    *had = rws_safetensors_metadata(st, "lr"), *wanted = rws_safetensors_metadata(st, "iterations");
    const char    *has = rws_config_lr(f->config.document);
    const uint64_t n = rws_config_iterations(f->config.document);
    char           sentence[2 * RWS_MAX_QUOTED + 128];
    rws_schedule   old, new;
    if (had && has && strcmp(had, has) != 0) {
        RWS_TRY(rws_schedule_parse(had, &old, err));
        RWS_TRY(rws_schedule_parse(has, &new, err));
        if (!rws_schedule_agree(&old, &new, iteration))
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\" has lr %s, but the run was trained with lr %s: undo the change; `lr` changes the "
                            "rates of iterations to come.",
                            rws_quote_short(f->config_path).text, rws_quote_short(has).text, rws_quote_short(had).text);
        snprintf(sentence, sizeof sentence, "From here on lr is %s, and no longer %s.", rws_quote_short(has).text,
                 rws_quote_short(had).text);
        rws_folder_remark(f, sentence);
    }
    if (wanted && strtoull(wanted, NULL, 10) != n) {
        snprintf(sentence, sizeof sentence, "\"%s\" asks for %llu iterations; it was %s at the last checkpoint.",
                 rws_quote_short(f->config_path).text, (unsigned long long)n, rws_quote_short(wanted).text);
        rws_folder_remark(f, sentence);
    }
    return RWS_OK;
}

/* A group of parameters is stepped once in a phase at most. */
static rws_status check_steps(const rws_safetensors *st, const char *file, rws_error *err)
{
    const uint64_t  iteration = *(const uint64_t *)rws_safetensors_find(st, "iteration")->data;
    const uint64_t *steps = rws_safetensors_find(st, "optimiser.steps")->data;
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (steps[g] <= MOST_PHASES * iteration) continue;
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\": the tensor \"optimiser.steps\" counts %llu steps, which %llu iterations cannot make.",
                        file, (unsigned long long)steps[g], (unsigned long long)iteration);
    }
    return RWS_OK;
}

/* The file's tensors into found, in the order of the inventory. Refuses a checkpoint of another model, method or optimiser than
 * the trainer has, and one whose tensors are not the trainer's. */
static rws_status check_fit(const rws_safetensors *st, const char *path, const rws_run_state *s, const inventory *all,
                            const rws_tensor_in **found, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    RWS_TRY(check_keys(st, file.text, err));
    RWS_TRY(check_metadata(st, file.text, "format", CHECKPOINT_FORMAT, err));
    RWS_TRY(check_metadata(st, file.text, "model", s->model, err));
    RWS_TRY(check_metadata(st, file.text, "method", s->config->method, err));
    RWS_TRY(check_metadata(st, file.text, "optimiser", s->optimiser->name, err));
    for (size_t i = 0; i < all->n; i++) {
        const rws_tensor_out *e = &all->tensors[i];
        RWS_TRY(rws_safetensors_expect(st, e->name, e->dtype, e->n_dims, e->shape, &found[i], err));
    }
    for (size_t i = 0; i < rws_safetensors_count(st); i++) {
        const char *name = rws_safetensors_at(st, i)->name;
        if (is_listed(all, name)) continue;
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has a tensor \"%s\" that the run does not.", file.text,
                        rws_quote(name).text);
    }
    return RWS_OK;
}

/* Refuses numbers that training cannot have written, and a file that is not as it was written. */
static rws_status check_numbers(const rws_safetensors *st, const char *path, const inventory *all,
                                const rws_tensor_in *const *found, rws_error *err)
{
    const rws_quoted file = rws_quote(path);
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->tensors[i].name;
        if (i < all->n_params && !all_finite(found[i]->data, found[i]->n_elements)) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"%s\" has a NaN or an infinite number in it.",
                            file.text, rws_quote(name).text);
        }
        if (i >= all->n_params && is_slot(name) && has_nan(found[i]->data, found[i]->n_elements))
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"%s\" has a NaN in it.", file.text, name);
        if (strcmp(name, "iteration") == 0 && *(const uint64_t *)found[i]->data > RWS_MAX_ITERATIONS) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"iteration\" has a number beyond all training.",
                            file.text);
        }
        if (strcmp(name, "seconds") == 0) {
            const double seconds = *(const double *)found[i]->data;
            if (isfinite(seconds) && seconds >= 0) continue;
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"seconds\" is %g, which is not a time.", file.text,
                            seconds);
        }
    }
    RWS_TRY(check_steps(st, file.text, err));
    return rws_safetensors_verify(st, err);
}

/* The inventory says where the numbers are; it lists them as const for the writer's sake. */
static void overwrite(const inventory *all, const rws_tensor_in *const *found)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->tensors[i].data)
            memcpy((void *)all->tensors[i].data, found[i]->data,
                   found[i]->n_elements * rws_dtype_size(found[i]->dtype));
}

/* Appends to the message about a checkpoint that is refused how to continue from the one before it. */
static void offer_previous(const rws_folder *f, rws_error *err)
{
    if (!exists(f->previous_path)) return;
    char *folder = g_shell_quote(f->path);
    char *command = g_strdup_printf("cp %s/checkpoint.previous.safetensors %s/checkpoint.safetensors", folder, folder);
    const bool fits = strlen(err->text) + strlen(command) + 80 < sizeof err->text;
    if (fits && strcmp(f->path, rws_quote(f->path).text) == 0) /* a terminal gets no control characters */
        rws_error_append(err, " The checkpoint before it is kept: \"%s\" continues from there.", command);
    else
        rws_error_append(err,
                         " To continue from the checkpoint before it, copy checkpoint.previous.safetensors over it.");
    g_free(command);
    g_free(folder);
}

/* Says if the checkpoint was written elsewhere: the bits may then be others from here on. */
static void remark_machine(rws_folder *f, const rws_safetensors *st)
{
    char build[RWS_MACHINE_SIZE], cpu[RWS_MACHINE_SIZE], sentence[512];
    rws_machine_build(build);
    rws_machine_cpu(cpu);
    const struct {
        const char *key, *what, *here;
    } parts[] = {
        {"version", "version", RWS_VERSION_STRING},
        {"build", "build", build},
        {"cpu", "processor", cpu},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *had = rws_safetensors_metadata(st, parts[i].key);
        if (!had || strcmp(had, parts[i].here) == 0) continue;
        snprintf(sentence, sizeof sentence,
                 "The checkpoint was written by another %s (%s) than this one (%s): the bits may differ from here on.",
                 parts[i].what, rws_quote_short(had).text, parts[i].here);
        rws_folder_remark(f, sentence);
    }
}

/* Says if the run had other data so far: those of a split and of the splits after it. */
static void remark_data(rws_folder *f, const rws_run_state *s, const rws_safetensors *st, rws_split from)
{
    static const char *const key[] = {[RWS_TRAIN] = "training_data", [RWS_TEST] = "test_data"};
    static const char *const sentence[] = {
        [RWS_TRAIN] = "The training data are not those of the checkpoint: the run continues with other data.",
        [RWS_TEST] = "The test data are not those of the checkpoint: do not compare its metrics with those before.",
    };
    for (int split = from; split <= RWS_TEST; split++) {
        char        here[HASH_SIZE];
        const char *had = rws_safetensors_metadata(st, key[split]);
        if (had && strcmp(had, hash_text(s, split, here)) != 0) rws_folder_remark(f, sentence[split]);
    }
}

static void remark_measures(rws_folder *f)
{
    char sentence[RWS_MAX_QUOTED + 128];
    snprintf(sentence, sizeof sentence, "\"%s\" %s: what was measured so far is not there, and a new list begins.",
             rws_quote(f->store_path).text, exists(f->store_path) ? "does not know the run" : "is missing");
    rws_folder_remark(f, sentence);
}

/* Refuses a checkpoint that is damaged, or that is not one of this run at this point of its course. */
static rws_status check_all(rws_folder *f, const rws_run_state *s, const rws_safetensors *st, const inventory *all,
                            const rws_tensor_in **found, bool goes_on, rws_error *err)
{
    rws_error  ignored;
    rws_status status = check_fit(st, f->checkpoint_path, s, all, found, err);
    bool       damaged = status == RWS_BAD_INPUT &&
                   (rws_safetensors_verify(st, &ignored) != RWS_OK || check_keys(st, "", &ignored) != RWS_OK);
    if (status == RWS_OK) {
        status = check_numbers(st, f->checkpoint_path, all, found, err);
        damaged = status == RWS_BAD_INPUT;
    }
    if (damaged) offer_previous(f, err); /* the one before it does not fit a changed model either */
    RWS_TRY(status);
    RWS_TRY(check_identity(f, st, err));
    return goes_on ? check_course(f, st, err) : RWS_OK;
}

/* Forgets what was measured after the checkpoint, and collects the remarks about it. */
static rws_status go_back(rws_folder *f, const rws_run_state *s, const rws_safetensors *st, rws_error *err)
{
    const uint64_t iteration = *(const uint64_t *)rws_safetensors_find(st, "iteration")->data;
    const double   seconds = *(const double *)rws_safetensors_find(st, "seconds")->data;
    RWS_TRY(keep_name(f, err));
    if (!f->has_measures && iteration > 0) remark_measures(f);
    RWS_TRY(rws_store_forget(f->store_path, f->name, iteration, seconds, err));
    remark_machine(f, st);
    remark_data(f, s, st, RWS_TRAIN);
    return RWS_OK;
}

static rws_status load(rws_folder *f, const rws_run_state *s, bool goes_on, rws_error *err)
{
    inventory             all;
    const rws_tensor_in **found = NULL;
    rws_safetensors      *st;
    const rws_status      opened = rws_safetensors_open(f->checkpoint_path, &st, err);
    if (opened == RWS_BAD_INPUT) offer_previous(f, err);
    RWS_TRY(opened);
    if (take_inventory(s, &all)) found = calloc(all.n, sizeof *found);
    rws_status status = found ? check_all(f, s, st, &all, found, goes_on, err)
                              : rws_no_memory(err, "the list of tensors of a checkpoint");
    /* The store comes first, because it can refuse; the rest cannot fail. */
    if (status == RWS_OK && goes_on) status = go_back(f, s, st, err);
    if (status == RWS_OK && !goes_on && s->data_hash[RWS_TEST]) remark_data(f, s, st, RWS_TEST);
    if (status == RWS_OK) overwrite(&all, found);
    free(found);
    free(all.tensors);
    rws_safetensors_close(st);
    return status;
}

rws_status rws_folder_load(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    return load(f, s, true, err);
}

rws_status rws_folder_look(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    return load(f, s, false, err);
}

/* ---- the measures ----------------------------------------------------------------------------------------------- */

rws_status rws_folder_record(rws_folder *f, const rws_measures *m, const rws_snapshots *shown, rws_error *err)
{
    RWS_CHECK(m->n >= 0 && m->n <= RWS_MAX_METRICS);
    for (int i = 0; i < m->n; i++) f->metrics[i] = m->names[i];
    f->metrics[m->n] = "impossible";
    f->impossible |= m->impossible > 0;
    if (f->n_kept == f->kept_capacity) {
        const int capacity = 2 * f->kept_capacity + 16;
        pending  *more = realloc(f->kept, (size_t)capacity * sizeof *f->kept);
        if (!more) return rws_no_memory(err, "the numbers of an evaluation");
        f->kept = more;
        f->kept_capacity = capacity;
    }
    pending *p = &f->kept[f->n_kept++];
    *p = (pending){.iteration = m->iteration, .n = m->n, .seconds = m->seconds};
    memcpy(p->value, m->value, (size_t)m->n * sizeof *m->value);
    if (f->impossible) p->value[p->n++] = m->impossible;
    for (int i = 0; shown && i < shown->n; i++) {
        if (rws_snapshots_add(&p->shown, &shown->list[i])) continue;
        rws_snapshots_release(&p->shown);
        f->n_kept--;
        return rws_no_memory(err, "a snapshot");
    }
    return RWS_OK;
}

rws_status rws_folder_lacks(const rws_folder *f, uint64_t iteration, bool *missing, rws_error *err)
{
    rws_store_progress progress;
    RWS_TRY(rws_store_ask(f->store_path, f->name, &progress, err));
    *missing = progress.iteration < iteration;
    return RWS_OK;
}

rws_status rws_folder_flush(rws_folder *f, rws_error *err)
{
    if (f->n_kept == 0) return RWS_OK;
    char            *config = rws_config_text(f->config.document);
    rws_store_entry *entries = calloc((size_t)f->n_kept, sizeof *entries);
    rws_status       status = RWS_OK;
    if (!config || !entries) {
        status = rws_no_memory(err, "the numbers of an evaluation");
    } else {
        for (int i = 0; i < f->n_kept; i++) {
            const pending *p = &f->kept[i];
            entries[i] =
                (rws_store_entry){p->iteration, p->seconds, p->n, f->metrics, p->value, p->shown.n, p->shown.list};
        }
        const rws_store_run run = {f->name, config, RWS_VERSION_STRING, f->started};
        status = rws_store_add(f->store_path, &run, entries, f->n_kept, err);
    }
    free(entries);
    free(config);
    if (status == RWS_OK) forget_kept(f);
    return status;
}

rws_status rws_folder_fail(rws_folder *f, uint64_t iteration, const char *sentence, rws_error *err)
{
    RWS_TRY(rws_folder_flush(f, err));
    return rws_store_fail(f->store_path, f->name, iteration, sentence, err);
}

rws_status rws_folder_add(rws_folder *f, uint64_t iteration, double seconds, int n, const char *const *names,
                          const double *values, rws_error *err)
{
    const rws_store_entry entry = {
        .iteration = iteration, .seconds = seconds, .n = n, .names = names, .values = values};
    return rws_store_add_metrics(f->store_path, f->name, &entry, err);
}
