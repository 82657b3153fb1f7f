#include "program/plugin.h"

#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "program/object.h"

#include <dlfcn.h>
#include <glib.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a model must have */

/* The member that the model lacks; NULL: it has all. */
static const char *lack_of(const rws_model *m)
{
    if (!m->name) return "a name";
    if (!m->setup) return "the function setup";
    if (!m->data) return "the function data";
    return m->model ? NULL : "the program model";
}

/* The mistake in a setting, regardless of the others; NULL: there is none. */
static const char *fault_of(const rws_setting *s, char out[static 128])
{
    if (!s->value) return "has no default (NULL)";
    if (!*s->name || strchr(s->name, '=')) return "has a name that `set` cannot give";
    if (s->min == 0 && s->max == 0) return NULL; /* text: the model knows */
    char        *end;
    const double x = g_ascii_strtod(s->value, &end);
    snprintf(out, 128, "has the default %.40s, which is no %s from %g to %g", rws__quote_short(s->value).text,
             s->whole ? "whole number" : "number", s->min, s->max);
    if (!(s->min <= s->max)) snprintf(out, 128, "has %g as its least value and %g as its greatest", s->min, s->max);
    else if (end != s->value && !*end && x >= s->min && x <= s->max && (!s->whole || x == floor(x))) return NULL;
    return out;
}

static rws_status check_settings(const rws_setting *list, const char *owner, rws_error *err)
{
    char text[128];
    for (int i = 0; list && list[i].name; i++) {
        const rws_quoted name = rws__quote_short(list[i].name);
        const char      *fault = fault_of(&list[i], text);
        if (fault) return rws_fail(err, RWS_BAD_INPUT, "Setting \"%s\" of %s %s.", name.text, owner, fault);
        for (int k = 0; k < i; k++)
            if (strcmp(list[k].name, list[i].name) == 0)
                return rws_fail(err, RWS_BAD_INPUT, "Two settings of %s are called \"%s\".", owner, name.text);
    }
    return RWS_OK;
}

static rws_status check_metrics(const rws_model *m, const char *owner, rws_error *err)
{
    for (const rws_metric *at = m->metrics; at && at->name; at++) {
        const rws_quoted name = rws__quote_short(at->name);
        const int        n = (at->measure != NULL) + (at->posterior != NULL) + (at->guide != NULL);
        if (n != 1)
            return rws_fail(err, RWS_BAD_INPUT,
                            "Metric \"%s\" of %s has %s of the functions measure, posterior and guide; it takes one.",
                            name.text, owner, n ? "more than one" : "none");
        for (const rws_metric *other = m->metrics; other < at; other++)
            if (strcmp(other->name, at->name) == 0)
                return rws_fail(err, RWS_BAD_INPUT, "Two metrics of %s are called \"%s\".", owner, name.text);
    }
    for (const rws_snapshot *at = m->snapshots; at && at->name; at++)
        if (!at->measure)
            return rws_fail(err, RWS_BAD_INPUT, "Snapshot \"%s\" of %s lacks the function measure.",
                            rws__quote_short(at->name).text, owner);
    return RWS_OK;
}

rws_status rws__model_check(const rws_model *m, const char *path, rws_error *err)
{
    char        owner[RWS_MAX_QUOTED + 32];
    const char *lack = lack_of(m);
    if (path) snprintf(owner, sizeof owner, "the model in \"%s\"", rws__quote_short(path).text);
    else snprintf(owner, sizeof owner, "the model %s", m->name ? rws__quote_short(m->name).text : "at hand");
    if (lack) return rws_fail(err, RWS_BAD_INPUT, "T%s lacks %s.", owner + 1, lack);
    RWS_TRY(check_settings(m->settings, owner, err));
    return check_metrics(m, owner, err);
}

/* ---- loading */

static rws_status check(const rws_model *model, const char *path, rws_error *err)
{
    const rws_quoted file = rws__quote(path);
    if (!model)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" has no symbol rws_user_model; it should define `const rws_model rws_user_model`.",
                        file.text);
    if (model->abi != RWS_ABI)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" was built for version %d of rws.h, and this program has %d; build it again.", file.text,
                        model->abi, RWS_ABI);
    return rws__model_check(model, path, err);
}

/* ---- whether the object may be loaded */

/* A fingerprint as messages show it: its kind and 16 digits. */
static rws_quoted shown(const char *fingerprint)
{
    char text[32];
    snprintf(text, sizeof text, "%.23s", fingerprint ? fingerprint : "no fingerprint");
    return rws__quote_short(text);
}

/* Refuses a run whose files, or whose files and user, disagree about the model. A run that was moved has another path
 * in the store than in config.json until both are written; this matters only if the user does not name the object, or its
 * fingerprint is not known. A checkpoint has another fingerprint than config.json where accepting an object that has changed was
 * interrupted. */
static rws_status check_agreement(const rws_config *c, const rws_recorded *r, rws_error *err)
{
    const char      *named = c->model;
    const rws_quoted run = rws__quote_short(r->folder), model = rws__quote_short(r->model);
    const bool       is_path = rws__model_is_path(r->model);
    const char      *other = r->store && strcmp(r->store, r->model) != 0 ? r->store : NULL;
    if (named && is_path && other && r->fingerprint && rws__model_is_path(other)) other = NULL;
    if (other)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The files of the run in \"%s\" disagree about its model: config.json has \"%s\", and the store "
            "has \"%s\".",
            run.text, model.text, rws__quote_short(other).text);
    const bool accepted = c->changed && r->fingerprint;
    if (!accepted && r->checkpoint && strcmp(r->checkpoint, r->fingerprint ? r->fingerprint : "") != 0)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "The files of the run in \"%s\" disagree about its model: config.json has %s, and the checkpoint "
            "has %s.%s",
            run.text, shown(r->fingerprint).text, shown(r->checkpoint[0] ? r->checkpoint : NULL).text,
            r->fingerprint ? " If this is your run, and you had `changed` accept an object, do so once more." : "");
    if (!named || is_path == rws__model_is_path(named)) return RWS_OK;
    if (!is_path)
        return rws_fail(err, RWS_BAD_INPUT, "`model` is %.100s, but the run in \"%s\" has the built-in model %s.",
                        rws__quote_short(named).text, run.text, model.text);
    return rws_fail(err, RWS_BAD_INPUT, "`model` takes the path of a shared object, such as ./%.100s, not \"%.100s\".",
                    rws__quote_short(named).text, rws__quote_short(named).text);
}

/* Refuses an object that the user has not named, with the command that names it. A quote in a path, which another person
 * may have chosen, must not end the word that a user pastes into a shell. */
static rws_status refuse_unnamed(const rws_recorded *r, const char *reason, rws_error *err)
{
    const rws_quoted run = rws__quote_short(r->folder), model = rws__quote_short(r->model);
    return rws_fail(
        err, RWS_BAD_INPUT,
        "The run in \"%s\" was trained with the shared object \"%s\" (%s)%s; it is loaded only if you name it: "
        "rws eval '%s' --model '%s', or rws.open(folder, path) in Python.",
        run.text, model.text, shown(r->fingerprint).text, reason, strchr(run.text, '\'') ? "RUN" : run.text,
        strchr(model.text, '\'') ? "PATH" : model.text);
}

/* Whether the object may be loaded: the user has named it now or before, and it has the bytes that the run began with. */
static rws_status check_object(const rws_config *c, const rws_recorded *r, const rws_object *o, rws_error *err)
{
    if (!c->model && !rws__object_is_known(o)) return refuse_unnamed(r, "", err);
    if (!r || !r->fingerprint || c->changed || rws__object_fits(o, r->fingerprint)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT,
                    "\"%s\" has changed since the run in \"%s\" began: it is %s, and the run has %s; `changed` "
                    "accepts it.",
                    rws__quote_short(o->path).text, rws__quote_short(r->folder).text, shown(o->fingerprint).text,
                    shown(r->fingerprint).text);
}

/* ---- shared objects that are loaded */

/* The loader takes a library that it has under the same name, whatever the file has become, so that every file is loaded
 * under a name of its own. `next` is of the list of all that are loaded. One that the loader keeps after its last user
 * (-z nodelete, unique symbols of C++) stays in the list. */
typedef struct loaded {
    struct loaded *next;
    void          *handle;
    rws_object     object; /* open, so that no other file gets its inode */
    char          *name;   /* that the loader has for the open file: the path may lead to another one by now */
    int            users;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the list and what is in it */
static loaded         *list;

/* A spelling of "folder/file" that no other load of this process has: the binary digits of a number between them, "/" for 0
 * and "./" for 1, which lead to the same file. The loader's $ORIGIN is the folder all the same. NULL without memory. */
static char *spell(const char *folder, const char *file, unsigned number)
{
    char digits[2 * 32 + 1], *at = digits, *name;
    for (int i = 0; i < 32; i++) at = stpcpy(at, number >> i & 1 ? "./" : "/");
    return asprintf(&name, "%s/%s%s", folder, digits, file) < 0 ? NULL : name;
}

/* The names of the object for the loader: by its path, and by the file that is open. False without memory. */
static bool name_object(const rws_object *o, char *names[static 2])
{
    static unsigned number;
    char            file[16], *folder = strdup(o->path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) *slash = '\0';
    snprintf(file, sizeof file, "%d", o->fd);
    names[0] = slash ? spell(folder, slash + 1, ++number) : NULL;
    names[1] = spell("/proc/self/fd", file, ++number);
    free(folder);
    return names[0] && names[1];
}

static rws_status not_loaded(const char *path, bool by_path, rws_error *err)
{
    const char *why = dlerror();
    return rws_fail(err, RWS_BAD_INPUT, "The model \"%s\" cannot be loaded: %s%s.", rws__quote(path).text,
                    why ? rws__quote(why).text : "no reason is given",
                    by_path ? "" : "; --model with its path loads it by its name");
}

/* Loads the object. Where the user has not named its path in this call, the bytes alone are trusted: they are loaded
 * through the open file, so that it does not matter if the path leads to another file meanwhile. An object that asks for
 * libraries beside it is loaded by its path. In either case what was loaded must be the file whose fingerprint was taken. */
static rws_status link_in(loaded *l, const char *path, bool named, rws_error *err)
{
    char      *names[2];
    const bool memory = name_object(&l->object, names), by_path = named || l->object.has_origin;
    l->name = names[1];
    if (memory) l->handle = dlopen(names[!by_path], RTLD_NOW | RTLD_LOCAL);
    void *const same = l->handle ? dlopen(l->name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    if (same) dlclose(same);
    free(names[0]);
    if (!memory) return rws_no_memory(err, "a shared object");
    if (!l->handle) return not_loaded(path, by_path, err);
    if (same != l->handle)
        return rws_fail(err, RWS_BAD_INPUT, "The model \"%s\" was replaced while it was being loaded; try again.",
                        rws__quote(path).text);
    l->next = list;
    list = l;
    return RWS_OK;
}

/* Takes the object out of the list, unless the loader keeps it. */
static void release(loaded *l)
{
    if (l->handle) dlclose(l->handle);
    l->handle = l->handle ? dlopen(l->name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    if (l->handle) return;
    loaded **at = &list;
    while (*at && *at != l) at = &(*at)->next;
    if (*at) *at = l->next;
    rws__object_close(&l->object);
    free(l->name);
    free(l);
}

/* Uses the object if its file is loaded already: *l is then the one in the list. */
static rws_status find_loaded(loaded **l, const char *path, rws_error *err)
{
    loaded *at = list;
    while (at && !rws__object_is_same_file(&at->object, &(*l)->object)) at = at->next;
    if (!at) return RWS_OK;
    if (strcmp(at->object.fingerprint, (*l)->object.fingerprint) != 0)
        return rws_fail(err, RWS_BAD_INPUT,
                        "\"%s\" was overwritten after this program had loaded it: start the program again, and build "
                        "the object as a new file, as compilers do.",
                        rws__quote(path).text);
    at->users++;
    release(*l);
    *l = at;
    return RWS_OK;
}

static rws_status load(const rws_config *c, const rws_recorded *r, const char *path, loaded **l,
                       const rws_model **model, rws_error *err)
{
    const rws_status opened = rws__object_open(path, &(*l)->object, err);
    if (opened == RWS_BAD_INPUT && !c->model) return refuse_unnamed(r, ", which is not there", err);
    RWS_TRY(opened);
    RWS_TRY(check_object(c, r, &(*l)->object, err));
    RWS_TRY(find_loaded(l, path, err));
    if (!(*l)->handle) RWS_TRY(link_in(*l, path, c->model, err));
    const rws_model *found = dlsym((*l)->handle, "rws_user_model");
    RWS_TRY(check(found, path, err));
    if (c->model) rws__object_remember(&(*l)->object);
    *model = found;
    return RWS_OK;
}

static void unload(loaded *l)
{
    if (--l->users == 0) release(l);
}

static rws_status load_path(const rws_config *c, const rws_recorded *r, const char *path, const rws_model **model,
                            void **library, rws_error *err)
{
    loaded *l = calloc(1, sizeof *l);
    if (!l) return rws_no_memory(err, "a shared object");
    pthread_mutex_lock(&lock);
    l->users = 1;
    const rws_status status = load(c, r, path, &l, model, err);
    if (status == RWS_OK) *library = l;
    else unload(l);
    pthread_mutex_unlock(&lock);
    return status;
}

static rws_status find(const char *wanted, const rws_model **model, rws_error *err)
{
    rws_nearest near = rws__nearest_to(wanted);
    for (int i = 0; rws_models[i]; i++) {
        rws__nearest_try(&near, rws_models[i]->name);
        if (strcmp(rws_models[i]->name, wanted) != 0) continue;
        *model = rws_models[i];
        return RWS_OK;
    }
    const rws_quoted name = rws__quote_short(wanted);
    const size_t     n = strlen(wanted);
    const bool       is_file = n > 3 && strcmp(wanted + n - 3, ".so") == 0;
    return rws_fail(
        err, RWS_BAD_INPUT,
        "There is no model \"%s\"%s. `rws list` shows the models that are built in. A shared object is given "
        "by its path, with a slash: ./%s%s. A run of a model in Python is opened in Python: "
        "rws.open(folder, model).",
        name.text, rws__nearest_hint(&near).text, name.text, is_file ? "" : ".so");
}

rws_status rws__model_load(const rws_config *config, const rws_recorded *r, const rws_model **model, void **library,
                           rws_error *err)
{
    const char *wanted = config->model ? config->model : r ? r->model : NULL;
    *model = NULL;
    *library = NULL;
    if (!wanted) return rws_fail(err, RWS_BAD_INPUT, "The configuration names no model.");
    if (r) RWS_TRY(check_agreement(config, r, err));
    return rws__model_is_path(wanted) ? load_path(config, r, wanted, model, library, err) : find(wanted, model, err);
}

void *rws__model_load_again(void *library)
{
    loaded *l = library;
    pthread_mutex_lock(&lock);
    if (l) l->users++;
    pthread_mutex_unlock(&lock);
    return l;
}

void rws__model_unload(void *library)
{
    pthread_mutex_lock(&lock);
    if (library) unload(library);
    pthread_mutex_unlock(&lock);
}

const rws_object *rws__model_object(const void *library)
{
    return library ? &((const loaded *)library)->object : NULL;
}
