/* checkpoint.c - the checkpoint of a run: what is in it, and whether one that is loaded is of this run. */
#include "store/folder.h"

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "optim/schedule.h"
#include "store/checkpoint_file.h"
#include "store/machine.h"

#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINT_FORMAT "rws 1"
#define MAX_PHASES (sizeof((rws_estimator *)0)->phases / sizeof(rws_phase))

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
        *t = (rws_tensor_out){p->name, RWS_DTYPE_F32, rws__param_shape(p, shape), .data = p->value};
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
    char *link_path = rws__file_join(f->path, ".rws-0000000000000000.tmp"); /* cleaned up like other temporary files */
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
    return rws_fail(err, RWS_BAD_INPUT, "Cannot write \"%s\": the model's name is not UTF-8.", rws__quote(path).text);
}

/* Refuses a checkpoint without a key that its own version writes. */
static rws_status check_keys(const rws_checkpoint_file *st, const char *file, rws_error *err)
{
    const char *version = rws__checkpoint_metadata(st, keys[VERSION].key);
    int         major = 0, minor = 1;
    if (version) sscanf(version, "%d.%d", &major, &minor);
    for (int i = 0; i < N_KEYS; i++)
        if ((major > 0 || minor >= keys[i].since) && !rws__checkpoint_metadata(st, keys[i].key))
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
                            rws__quote(path).text, e->name);
        if (i >= all->n_params || all_finite(e->data, n_elements(e))) continue;
        return rws_fail(err, RWS_BROKEN, "\"%s\" is not replaced: the parameter \"%s\" has become NaN or infinite.",
                        rws__quote(path).text, rws__quote(all->tensors[i].name).text);
    }
    char build[RWS_MACHINE_SIZE], cpu[RWS_MACHINE_SIZE];
    rws__machine_build(build);
    rws__machine_cpu(cpu);
    const rws_config *c = s->config;
    char              iterations[24], training[HASH_SIZE], test[HASH_SIZE];
    snprintf(iterations, sizeof iterations, "%llu", (unsigned long long)c->iterations);
    const char       *object = rws__config_fingerprint_of(f->config.document);
    char             *identity = rws__config_identity(f->config.document);
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
    const rws_status status = rws__checkpoint_write(path, all->tensors, all->n, metadata, err);
    json_decref(metadata);
    return status;
}

rws_status rws__folder_save(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    RWS_CHECK(isfinite(*s->seconds) && *s->seconds >= 0);
    RWS_TRY(rws__folder_flush(f, err));
    inventory all;
    if (!take_inventory(s, &all)) return rws_no_memory(err, "the list of tensors of a checkpoint");
    const rws_status status = save(f, s, &all, err);
    free(all.tensors);
    return status;
}

static rws_status check_metadata(const rws_checkpoint_file *st, const char *file, const char *key, const char *needed,
                                 rws_error *err)
{
    const char *found = rws__checkpoint_metadata(st, key);
    if (strcmp(found, needed) != 0) {
        return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has the %s \"%.60s\", but \"%.60s\" is needed.", file, key,
                        rws__quote(found).text, rws__quote(needed).text);
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
static rws_status check_identity(const rws_folder *f, const rws_checkpoint_file *st, rws_error *err)
{
    const char *identity = rws__checkpoint_metadata(st, keys[IDENTITY].key);
    char        key[RWS_KEY_SIZE];
    if (!identity) return RWS_OK;
    RWS_TRY(rws__config_compare(f->config.document, identity, key, err));
    if (!key[0]) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" has another \"%.60s\" than the run was trained with: undo the change, or begin a new run.",
                    rws__quote(f->config_path).text, key);
}

/* The rates of a run that continues must be those that it was trained with; from here on they may be others, and then that
 * is said, as is another number of iterations: neither is part of the identity, because both may be changed. A checkpoint of
 * an older version says neither. */
static rws_status check_course(rws_folder *f, const rws_checkpoint_file *st, rws_error *err)
{
    const uint64_t iteration = *(const uint64_t *)rws__checkpoint_find(st, "iteration")->data;
    const char    *had = rws__checkpoint_metadata(st, "lr"), *wanted = rws__checkpoint_metadata(st, "iterations");
    const char    *has = rws__config_lr(f->config.document);
    const uint64_t n = rws__config_iterations(f->config.document);
    char           message[2 * RWS_MAX_QUOTED + 128];
    rws_schedule   old, new;
    if (had && has && strcmp(had, has) != 0) {
        RWS_TRY(rws__schedule_parse(had, &old, err));
        RWS_TRY(rws__schedule_parse(has, &new, err));
        if (!rws__schedule_agree(&old, &new, iteration))
            return rws_fail(err, RWS_BAD_INPUT,
                            "\"%s\" has lr %s, but the run was trained with lr %s: undo the change; `lr` changes the "
                            "rates of iterations to come.",
                            rws__quote_short(f->config_path).text, rws__quote_short(has).text,
                            rws__quote_short(had).text);
        snprintf(message, sizeof message, "From here on lr is %s, and no longer %s.", rws__quote_short(has).text,
                 rws__quote_short(had).text);
        rws__folder_warn(f, message);
    }
    if (wanted && strtoull(wanted, NULL, 10) != n) {
        snprintf(message, sizeof message, "\"%s\" asks for %llu iterations; it was %s at the last checkpoint.",
                 rws__quote_short(f->config_path).text, (unsigned long long)n, rws__quote_short(wanted).text);
        rws__folder_warn(f, message);
    }
    return RWS_OK;
}

/* A group of parameters is stepped once in a phase at most. */
static rws_status check_steps(const rws_checkpoint_file *st, const char *file, rws_error *err)
{
    const uint64_t  iteration = *(const uint64_t *)rws__checkpoint_find(st, "iteration")->data;
    const uint64_t *steps = rws__checkpoint_find(st, "optimiser.steps")->data;
    for (int g = 0; g < RWS_GROUPS; g++) {
        if (steps[g] <= MAX_PHASES * iteration) continue;
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\": the tensor \"optimiser.steps\" counts %llu steps, which %llu iterations cannot make.",
                        file, (unsigned long long)steps[g], (unsigned long long)iteration);
    }
    return RWS_OK;
}

/* The file's tensors into found, in the order of the inventory. Refuses a checkpoint of another model, method or optimiser than
 * the trainer has, and one whose tensors are not the trainer's. */
static rws_status check_fit(const rws_checkpoint_file *st, const char *path, const rws_run_state *s,
                            const inventory *all, const rws_tensor_in **found, rws_error *err)
{
    const rws_quoted file = rws__quote(path);
    RWS_TRY(check_keys(st, file.text, err));
    RWS_TRY(check_metadata(st, file.text, "format", CHECKPOINT_FORMAT, err));
    RWS_TRY(check_metadata(st, file.text, "model", s->model, err));
    RWS_TRY(check_metadata(st, file.text, "method", s->config->method, err));
    RWS_TRY(check_metadata(st, file.text, "optimiser", s->optimiser->name, err));
    for (size_t i = 0; i < all->n; i++) {
        const rws_tensor_out *e = &all->tensors[i];
        RWS_TRY(rws__checkpoint_expect(st, e, &found[i], err));
    }
    const rws_tensor_in *t;
    for (size_t i = 0; (t = rws__checkpoint_tensor(st, i)); i++)
        if (!is_listed(all, t->name))
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\" has a tensor \"%s\" that the run does not.", file.text,
                            rws__quote(t->name).text);
    return RWS_OK;
}

/* Refuses numbers that training cannot have written, and a file that is not as it was written. */
static rws_status check_numbers(const rws_checkpoint_file *st, const char *path, const inventory *all,
                                const rws_tensor_in *const *found, rws_error *err)
{
    const rws_quoted file = rws__quote(path);
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->tensors[i].name;
        if (i < all->n_params && !all_finite(found[i]->data, found[i]->n_elements)) {
            return rws_fail(err, RWS_BAD_INPUT, "\"%s\": the tensor \"%s\" has a NaN or an infinite number in it.",
                            file.text, rws__quote(name).text);
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
    return rws__checkpoint_verify(st, err);
}

/* The inventory says where the numbers are; it lists them as const for the writer's sake. */
static void overwrite(const inventory *all, const rws_tensor_in *const *found)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->tensors[i].data)
            memcpy((void *)all->tensors[i].data, found[i]->data,
                   found[i]->n_elements * rws__dtype_size(found[i]->dtype));
}

/* Appends to the message about a checkpoint that is refused how to continue from the one before it. The command does not
 * write through a link, nor into a folder, that another user may have put there. */
static void offer_previous(const rws_folder *f, rws_error *err)
{
    if (!rws__file_exists(f->previous_path)) return;
    char *folder = g_shell_quote(f->path);
    char *command =
        g_strdup_printf("mv -T -- %s/%s %s/%s", folder, rws_checkpoint_previous_name, folder, rws_checkpoint_name);
    const bool fits = strlen(err->text) + strlen(command) + 80 < sizeof err->text;
    if (fits && strcmp(f->path, rws__quote(f->path).text) == 0) /* a terminal gets no control characters */
        rws__error_append(err, " The checkpoint before it is kept: \"%s\" continues from there.", command);
    else
        rws__error_append(err, " To continue from the checkpoint before it, put %s in its place.",
                          rws_checkpoint_previous_name);
    g_free(command);
    g_free(folder);
}

/* Says if the checkpoint was written elsewhere: the bits may then be others from here on. */
static void warn_of_machine(rws_folder *f, const rws_checkpoint_file *st)
{
    char build[RWS_MACHINE_SIZE], cpu[RWS_MACHINE_SIZE], message[512];
    rws__machine_build(build);
    rws__machine_cpu(cpu);
    const struct {
        const char *key, *what, *here;
    } parts[] = {
        {"version", "version", RWS_VERSION_STRING},
        {"build", "build", build},
        {"cpu", "processor", cpu},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *had = rws__checkpoint_metadata(st, parts[i].key);
        if (!had || strcmp(had, parts[i].here) == 0) continue;
        snprintf(message, sizeof message,
                 "The checkpoint was written by another %s (%s) than this one (%s): the bits may differ from here on.",
                 parts[i].what, rws__quote_short(had).text, parts[i].here);
        rws__folder_warn(f, message);
    }
}

/* Says if the run had other data so far: those of a split and of the splits after it. */
static void warn_of_data(rws_folder *f, const rws_run_state *s, const rws_checkpoint_file *st, rws_split from)
{
    static const char *const key[] = {[RWS_TRAIN] = "training_data", [RWS_TEST] = "test_data"};
    static const char *const message[] = {
        [RWS_TRAIN] = "The training data are not those of the checkpoint: the run continues with other data.",
        [RWS_TEST] = "The test data are not those of the checkpoint: do not compare its metrics with those before.",
    };
    for (int split = from; split <= RWS_TEST; split++) {
        char        here[HASH_SIZE];
        const char *had = rws__checkpoint_metadata(st, key[split]);
        if (had && strcmp(had, hash_text(s, split, here)) != 0) rws__folder_warn(f, message[split]);
    }
}

static void warn_of_measures(rws_folder *f)
{
    char message[RWS_MAX_QUOTED + 128];
    snprintf(message, sizeof message, "\"%s\" %s: what was measured so far is not there, and a new list begins.",
             rws__quote(f->store_path).text, rws__file_exists(f->store_path) ? "does not know the run" : "is missing");
    rws__folder_warn(f, message);
}

/* Refuses a checkpoint that is damaged, or that is not one of this run at this point of its course. */
static rws_status check_all(rws_folder *f, const rws_run_state *s, const rws_checkpoint_file *st, const inventory *all,
                            const rws_tensor_in **found, bool resumes, rws_error *err)
{
    rws_error  ignored;
    rws_status status = check_fit(st, f->checkpoint_path, s, all, found, err);
    bool       damaged = status == RWS_BAD_INPUT &&
                   (rws__checkpoint_verify(st, &ignored) != RWS_OK || check_keys(st, "", &ignored) != RWS_OK);
    if (status == RWS_OK) {
        status = check_numbers(st, f->checkpoint_path, all, found, err);
        damaged = status == RWS_BAD_INPUT;
    }
    if (damaged) offer_previous(f, err); /* the one before it does not fit a changed model either */
    RWS_TRY(status);
    RWS_TRY(check_identity(f, st, err));
    return resumes ? check_course(f, st, err) : RWS_OK;
}

/* Forgets what was measured after the checkpoint, and collects the warnings about it. */
static rws_status go_back(rws_folder *f, const rws_run_state *s, const rws_checkpoint_file *st, rws_error *err)
{
    const uint64_t iteration = *(const uint64_t *)rws__checkpoint_find(st, "iteration")->data;
    const double   seconds = *(const double *)rws__checkpoint_find(st, "seconds")->data;
    RWS_TRY(rws__folder_adopt_name(f, err));
    if (!f->has_measures && iteration > 0) warn_of_measures(f);
    RWS_TRY(rws__store_forget(f->store_path, f->name, iteration, seconds, err));
    warn_of_machine(f, st);
    warn_of_data(f, s, st, RWS_TRAIN);
    return RWS_OK;
}

static rws_status load(rws_folder *f, const rws_run_state *s, bool resumes, rws_error *err)
{
    inventory             all;
    const rws_tensor_in **found = NULL;
    rws_checkpoint_file  *st;
    const rws_status      opened = rws__checkpoint_open(f->checkpoint_path, &st, err);
    if (opened == RWS_BAD_INPUT) offer_previous(f, err);
    RWS_TRY(opened);
    if (take_inventory(s, &all)) found = calloc(all.n, sizeof *found);
    rws_status status = found ? check_all(f, s, st, &all, found, resumes, err)
                              : rws_no_memory(err, "the list of tensors of a checkpoint");
    /* The store comes first, because it can refuse; the rest cannot fail. */
    if (status == RWS_OK && resumes) status = go_back(f, s, st, err);
    if (status == RWS_OK && !resumes && s->data_hash[RWS_TEST]) warn_of_data(f, s, st, RWS_TEST);
    if (status == RWS_OK) overwrite(&all, found);
    free(found);
    free(all.tensors);
    rws__checkpoint_close(st);
    return status;
}

rws_status rws__folder_load(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    return load(f, s, true, err);
}

rws_status rws__folder_peek(rws_folder *f, const rws_run_state *s, rws_error *err)
{
    return load(f, s, false, err);
}
