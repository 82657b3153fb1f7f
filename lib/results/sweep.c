/* sweep.c - reading a sweep file: its lines, the blocks of its models, and the runs that they stand for. */
#include "rws_results.h"

#include "base/arena.h"
#include "base/count.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/text.h"
#include "program/config.h"
#include "program/plugin.h"
#include "program/program.h"

#include <glib.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 256, MAX_VALUES = 128, MAX_SETS = 48, MAX_BLOCKS = 32, MAX_NAME = 200 };

struct rws_sweep_memory {
    rws_arena arena;
};

/* A line with values: of a setting of the model, of one of a method, or of a key such as lr. */
typedef struct {
    const rws_config_member *member; /* NULL: the line is `set` */
    const char              *method; /* NULL: for all runs */
    const char              *name;
    const char              *values[MAX_VALUES];
    int                      n;
} setting;

typedef struct {
    const char *model;
    int         line;  /* of the key `model` */
    unsigned    given; /* bit i: row i of `keys` was given; bits above: of rws_config_members */
    const char *methods[MAX_VALUES];
    int         particles[MAX_VALUES];
    uint64_t   *seeds;
    int         n_methods, n_particles, n_seeds;
    setting     sets[MAX_SETS];
    int         n_sets;
    int         final_particles, final_test;
} block;

typedef struct {
    const char *name;
    rws_sweep  *sweep;
    block      *blocks;
    int         n_blocks, line;
    rws_error  *err;
} reader;

static rws_status no_memory(rws_error *err)
{
    return rws_no_memory(err, "a sweep");
}

/* ---- words */

static bool is_number(const char *text, double least, double most, double *out)
{
    char *end;
    *out = g_ascii_strtod(text, &end);
    return text[0] != '\0' && !*end && *out >= least && *out <= most;
}

static rws_status read_count(reader *r, const char *key, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    const char *end = text;
    if (rws__count_read(&end, out) && !*end && *out >= least && *out <= most) return RWS_OK;
    return rws__refuse(r->err, r->name, r->line, "%s is a whole number from %llu to %llu, not \"%s\".", key,
                       (unsigned long long)least, (unsigned long long)most, rws__quote_short(text).text);
}

/* ---- lines. Each function takes the words after the key. */

static rws_status check_method(reader *r, const char *name)
{
    rws_nearest near = rws__nearest_to(name);
    if (rws__estimator_find(name)) return RWS_OK;
    for (int i = 0; rws_estimators[i]; i++) rws__nearest_try(&near, rws_estimators[i]->name);
    return rws__refuse(r->err, r->name, r->line, "there is no method \"%s\"%s; `rws list` shows them.",
                       rws__quote_short(name).text, rws__nearest_hint(&near).text);
}

static rws_status read_methods(reader *r, block *b, char **words, int n)
{
    if (n > MAX_VALUES) return rws__refuse(r->err, r->name, r->line, "there are more than %d methods.", MAX_VALUES);
    for (int i = 0; i < n; i++) {
        RWS_TRY(check_method(r, words[i]));
        b->methods[b->n_methods++] = words[i];
    }
    return RWS_OK;
}

static rws_status read_particles(reader *r, block *b, char **words, int n)
{
    if (n > MAX_VALUES)
        return rws__refuse(r->err, r->name, r->line, "there are more than %d numbers of particles.", MAX_VALUES);
    for (int i = 0; i < n; i++) {
        uint64_t value;
        RWS_TRY(read_count(r, "particles", words[i], 1, RWS_MAX_PARTICLES, &value));
        b->particles[b->n_particles++] = (int)value;
    }
    return RWS_OK;
}

static rws_status read_seeds(reader *r, block *b, char **words, int n)
{
    int capacity = 0;
    for (int i = 0; i < n; i++) {
        const char *end = words[i];
        uint64_t    first, last;
        bool        good = rws__count_read(&end, &first);
        last = first;
        if (good && *end == '-') end++, good = rws__count_read(&end, &last) && last >= first;
        if (!good || *end)
            return rws__refuse(r->err, r->name, r->line, "seeds are numbers or ranges such as 1-10, not \"%s\".",
                               rws__quote_short(words[i]).text);
        if (last - first >= (uint64_t)(RWS_MAX_SWEEP_RUNS - b->n_seeds))
            return rws__refuse(r->err, r->name, r->line, "there are more than %d seeds.", RWS_MAX_SWEEP_RUNS);
        for (uint64_t k = 0; k <= last - first; k++) {
            if (b->n_seeds == capacity) {
                uint64_t *more = RWS_TRY_NEW(&r->sweep->memory->arena, uint64_t, 2 * capacity + 16);
                if (!more) return no_memory(r->err);
                if (capacity) memcpy(more, b->seeds, (size_t)capacity * sizeof *more);
                b->seeds = more;
                capacity = 2 * capacity + 16;
            }
            b->seeds[b->n_seeds++] = first + k;
        }
    }
    return RWS_OK;
}

static rws_status read_set(reader *r, block *b, char **words, int n)
{
    if (n < 2) return rws__refuse(r->err, r->name, r->line, "set needs the name of a setting and one value or more.");
    if (b->n_sets == MAX_SETS)
        return rws__refuse(r->err, r->name, r->line, "a block can have %d lines with values.", MAX_SETS);
    if (n - 1 > MAX_VALUES) return rws__refuse(r->err, r->name, r->line, "there are more than %d values.", MAX_VALUES);
    setting *s = &b->sets[b->n_sets++];
    char    *dot = strncmp(words[0], RWS_SITE_PREFIX, strlen(RWS_SITE_PREFIX)) == 0 ? NULL : strchr(words[0], '.');
    *s = (setting){.name = words[0]};
    if (dot) {
        *dot = '\0';
        s->method = words[0];
        s->name = dot + 1;
        RWS_TRY(check_method(r, s->method));
    }
    if (!s->name[0] || strchr(s->name, '='))
        return rws__refuse(r->err, r->name, r->line,
                           "set takes a name and its values with blanks between: set start far.");
    for (int i = 0; i + 1 < b->n_sets; i++) {
        const bool same = !b->sets[i].member && strcmp(b->sets[i].name, s->name) == 0;
        if (same && (!s->method || !b->sets[i].method || strcmp(s->method, b->sets[i].method) == 0))
            return rws__refuse(r->err, r->name, r->line, "\"%s\" is set already.", rws__quote_short(s->name).text);
    }
    for (int i = 1; i < n; i++) s->values[s->n++] = words[i];
    return RWS_OK;
}

static rws_status read_final(reader *r, block *b, char **words, int n)
{
    uint64_t particles, data = 0;
    if (n > 2)
        return rws__refuse(r->err, r->name, r->line, "final takes a number of particles and perhaps one of test data.");
    RWS_TRY(read_count(r, "final", words[0], 1, RWS_MAX_PARTICLES, &particles));
    if (n == 2) RWS_TRY(read_count(r, "final", words[1], 1, 1000000, &data));
    b->final_particles = (int)particles;
    b->final_test = (int)data;
    return RWS_OK;
}

/* The keys that have several values, or are no members of a configuration. */
static const struct {
    const char *name;
    rws_status (*read)(reader *r, block *b, char **words, int n);
    bool repeated;
} keys[] = {
    {"methods", read_methods, false}, {"particles", read_particles, false}, {"seeds", read_seeds, false},
    {"set", read_set, true},          {"final", read_final, false},
};

enum { N_KEYS = sizeof keys / sizeof *keys };

static rws_status read_key(reader *r, block *b, int key, char **words, int n)
{
    if (n == 0) return rws__refuse(r->err, r->name, r->line, "%s needs a value.", keys[key].name);
    if (b->given >> key & 1 && !keys[key].repeated)
        return rws__refuse(r->err, r->name, r->line, "%s is given already.", keys[key].name);
    b->given |= 1u << key;
    return keys[key].read(r, b, words, n);
}

/* Gives a member of a configuration the value. */
static rws_status give_member(reader *r, const rws_config_member *m, const char *word, rws_config *c)
{
    char    *at = (char *)c + m->offset;
    uint64_t count;
    switch (m->kind) {
    case RWS_CONFIG_INT:
        RWS_TRY(read_count(r, m->option, word, m->least, m->most, &count));
        *(int *)at = (int)count;
        return RWS_OK;
    case RWS_CONFIG_COUNT: return read_count(r, m->option, word, m->least, m->most, (uint64_t *)at);
    case RWS_CONFIG_NUMBER:
        if (is_number(word, (double)m->least, (double)m->most, (double *)at)) return RWS_OK;
        return rws__refuse(r->err, r->name, r->line, "%s is a number from 0 to %g, not \"%s\".", m->option,
                           (double)m->most, rws__quote_short(word).text);
    default: *(const char **)at = word; return RWS_OK;
    }
}

/* A key whose values are of a member of the configuration. */
static rws_status read_member(reader *r, block *b, const rws_config_member *m, char **words, int n)
{
    const unsigned bit = 1u << (N_KEYS + (m - rws_config_members));
    rws_config     unused = {0};
    if (n == 0) return rws__refuse(r->err, r->name, r->line, "%s needs a value.", m->option);
    if (b->given & bit) return rws__refuse(r->err, r->name, r->line, "%s is given already.", m->option);
    b->given |= bit;
    if (b->n_sets == MAX_SETS)
        return rws__refuse(r->err, r->name, r->line, "a block can have %d lines with values.", MAX_SETS);
    if (n > MAX_VALUES) return rws__refuse(r->err, r->name, r->line, "there are more than %d values.", MAX_VALUES);
    setting *s = &b->sets[b->n_sets++];
    *s = (setting){.member = m, .name = m->option, .n = n};
    for (int i = 0; i < n; i++) {
        RWS_TRY(give_member(r, m, words[i], &unused));
        s->values[i] = words[i];
    }
    return RWS_OK;
}

static rws_status read_line(reader *r, char **words, int n)
{
    if (strcmp(words[0], "model") == 0) {
        if (n != 2) return rws__refuse(r->err, r->name, r->line, "model takes one name.");
        if (r->n_blocks == MAX_BLOCKS)
            return rws__refuse(r->err, r->name, r->line, "there are more than %d models.", MAX_BLOCKS);
        r->blocks[r->n_blocks++] = (block){.model = words[1], .line = r->line};
        return RWS_OK;
    }
    if (r->n_blocks == 0)
        return rws__refuse(r->err, r->name, r->line, "the first line must say which model: model gmm.");
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(words[0], keys[i].name) == 0) return read_key(r, &r->blocks[r->n_blocks - 1], i, words + 1, n - 1);
    const rws_config_member *m = rws__config_member(words[0]);
    if (m && m->of_sweeps) return read_member(r, &r->blocks[r->n_blocks - 1], m, words + 1, n - 1);
    rws_name_list names = {0};
    rws_nearest   near = rws__nearest_to(words[0]);
    rws__name_list_add(&names, "model");
    rws__nearest_try(&near, "model");
    for (int i = 0; i < N_KEYS; i++) {
        rws__name_list_add(&names, keys[i].name);
        rws__nearest_try(&near, keys[i].name);
    }
    for (m = rws_config_members; m->name; m++) {
        if (!m->of_sweeps) continue;
        rws__name_list_add(&names, m->option);
        rws__nearest_try(&near, m->option);
    }
    return rws__refuse(r->err, r->name, r->line, "there is no key \"%s\"%s; the keys are %s.",
                       rws__quote_short(words[0]).text, rws__nearest_hint(&near).text, names.text);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The words of a line, each ended by a zero that is put into the text; *at moves behind the line. */
static rws_status split(reader *r, char **at, char *end, char **words, int *n)
{
    *n = 0;
    while (*at < end && **at != '\n') {
        if (is_blank(**at)) {
            *(*at)++ = '\0';
            continue;
        }
        if (**at == '#') {
            while (*at < end && **at != '\n') *(*at)++ = '\0';
            break;
        }
        if (*n == MAX_WORDS) return rws__refuse(r->err, r->name, r->line, "there are more than %d words.", MAX_WORDS);
        for (words[(*n)++] = *at; *at < end && !is_blank(**at) && **at != '\n'; ++*at)
            if ((unsigned char)**at < 0x20 || **at == 0x7f)
                return rws__refuse(r->err, r->name, r->line, "a control character is in it.");
    }
    if (*at < end) *(*at)++ = '\0';
    return RWS_OK;
}

static rws_status scan(reader *r, char *text, size_t length)
{
    char *words[MAX_WORDS], *at = text;
    int   n;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) at += 3; /* byte order mark */
    while (at < text + length) {
        r->line++;
        RWS_TRY(split(r, &at, text + length, words, &n));
        if (n) RWS_TRY(read_line(r, words, n));
    }
    return RWS_OK;
}

/* ---- from blocks to runs */

/* Appends text to a name of a folder. A character that a folder's name should not have, and a leading dot, becomes
 * '_'. */
static void append(char *name, const char *text)
{
    size_t n = strlen(name);
    for (; *text && n + 1 < MAX_NAME; text++) {
        const char c = *text;
        const bool hides = n == 0 && c == '.', plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                                       (c >= '0' && c <= '9') || (c && strchr("._=+-", c));
        name[n++] = plain && !hides ? c : '_';
    }
    name[n] = '\0';
}

/* Appends the name of the model; of a path, only the file's name without .so. */
static void append_model(char *name, const char *model)
{
    const char *slash = strrchr(model, '/');
    append(name, slash ? slash + 1 : model);
    const size_t n = strlen(name);
    if (slash && n > 3 && strcmp(name + n - 3, ".so") == 0) name[n - 3] = '\0';
}

/* NULL without memory. */
static char *copy_text(rws_sweep *s, const char *text)
{
    char *copy = rws__arena_try(&s->memory->arena, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* Adds the values of combination *which to the configuration, and settings and what varies to the name: the values of
 * the block if method is NULL, else those of the method. Leaves in *which the number of the combination of the other
 * values. False without memory. */
static bool combine(reader *r, const block *b, const char *method, uint64_t *which, rws_config *c, char *name)
{
    for (int i = 0; i < b->n_sets; i++) {
        const setting *set = &b->sets[i];
        if (!method != !set->method || (method && strcmp(method, set->method) != 0)) continue;
        const char *value = set->values[*which % (uint64_t)set->n];
        char       *text = rws__arena_try(&r->sweep->memory->arena, strlen(set->name) + strlen(value) + 2);
        if (!text) return false;
        *which /= (uint64_t)set->n;
        stpcpy(stpcpy(stpcpy(text, set->name), "="), value);
        if (!set->member) c->set[c->n_set++] = text;
        else if (give_member(r, set->member, value, c) != RWS_OK) return false; /* it was read once before */
        if (set->member && set->n == 1) continue;
        append(name, "-");
        append(name, text);
    }
    return true;
}

/* The number of combinations of the block's settings and the method's; some number above RWS_MAX_SWEEP_RUNS if there
 * are more than that. */
static uint64_t n_combinations(const block *b, const char *method)
{
    uint64_t n = 1;
    for (int i = 0; i < b->n_sets && n <= RWS_MAX_SWEEP_RUNS; i++) {
        const setting *set = &b->sets[i];
        if (!set->method || strcmp(method, set->method) == 0) n *= (uint64_t)set->n;
    }
    return n;
}

static rws_status check_block(reader *r, const block *b, uint64_t *total)
{
    static const int needed[] = {0, 1}; /* rows of `keys`: methods and particles */
    for (int i = 0; i < 2; i++)
        if (!(b->given >> needed[i] & 1))
            return rws__refuse(r->err, r->name, b->line, "this model has no line with %s.", keys[needed[i]].name);
    for (int i = 0; i < b->n_sets; i++) {
        bool used = !b->sets[i].method;
        for (int m = 0; m < b->n_methods && !used; m++) used = strcmp(b->methods[m], b->sets[i].method) == 0;
        if (!used)
            return rws__refuse(r->err, r->name, b->line, "\"%s\" is set for %s, which is not among the methods.",
                               rws__quote_short(b->sets[i].name).text, b->sets[i].method);
    }
    for (int m = 0; m < b->n_methods; m++) {
        const uint64_t each = n_combinations(b, b->methods[m]);
        if (each > RWS_MAX_SWEEP_RUNS) *total = each;
        else *total += each * (uint64_t)b->n_particles * (uint64_t)b->n_seeds;
        if (*total > RWS_MAX_SWEEP_RUNS)
            return rws__refuse(r->err, r->name, b->line, "there are more than %d runs.", RWS_MAX_SWEEP_RUNS);
    }
    return RWS_OK;
}

static int descending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y);
}

/* False without memory. */
static bool add_run(reader *r, const block *b, const char *method, int particles, uint64_t seed, uint64_t which)
{
    char           name[MAX_NAME] = "", number[32];
    rws_sweep_run *run = &r->sweep->runs[r->sweep->n++];
    *run =
        (rws_sweep_run){.config.model = b->model, .final_particles = b->final_particles, .final_test = b->final_test};
    run->config.method = method;
    run->config.particles = particles;
    run->config.seed = seed;
    run->config.threads = 1;
    append_model(name, b->model);
    if (!combine(r, b, NULL, &which, &run->config, name)) return false;
    append(name, "-");
    append(name, method);
    if (!combine(r, b, method, &which, &run->config, name)) return false;
    RWS_CHECK(which == 0);
    snprintf(number, sizeof number, "-k%d-s%llu", particles, (unsigned long long)seed);
    /* a name that is too long loses its middle, because the number at the end tells most runs apart */
    if (strlen(name) + strlen(number) >= MAX_NAME) name[MAX_NAME - 1 - strlen(number)] = '\0';
    append(name, number);
    run->name = copy_text(r->sweep, name);
    return run->name != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static rws_status check_names(reader *r)
{
    const rws_sweep *s = r->sweep;
    const char     **names = RWS_TRY_NEW(&s->memory->arena, const char *, s->n + 1);
    if (!names) return no_memory(r->err);
    for (int i = 0; i < s->n; i++) names[i] = s->runs[i].name;
    qsort(names, (size_t)s->n, sizeof *names, by_name);
    for (int i = 1; i < s->n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return rws__refuse(r->err, r->name, 0,
                               "has two runs that would be called \"%.200s\": is a value there twice?", names[i]);
    return RWS_OK;
}

/* The runs of a block with one seed. False: no memory. */
static bool add_runs(reader *r, const block *b, uint64_t seed)
{
    for (int k = 0; k < b->n_particles; k++)
        for (int m = 0; m < b->n_methods; m++) {
            const uint64_t n = n_combinations(b, b->methods[m]);
            for (uint64_t which = 0; which < n; which++)
                if (!add_run(r, b, b->methods[m], b->particles[k], seed, which)) return false;
        }
    return true;
}

/* All runs of the file; the first seeds of all blocks come first. */
static rws_status expand(reader *r)
{
    static uint64_t first_seed[] = {1};
    rws_sweep      *s = r->sweep;
    uint64_t        total = 0;
    int             most_seeds = 0;
    if (r->n_blocks == 0) return rws__refuse(r->err, r->name, 0, "names no model.");
    for (int i = 0; i < r->n_blocks; i++) {
        block *b = &r->blocks[i];
        if (b->n_seeds == 0) b->seeds = first_seed, b->n_seeds = 1;
        if (b->n_seeds > most_seeds) most_seeds = b->n_seeds;
        qsort(b->particles, (size_t)b->n_particles, sizeof *b->particles, descending);
        RWS_TRY(check_block(r, b, &total));
    }
    s->runs = RWS_TRY_NEW(&s->memory->arena, rws_sweep_run, total + 1);
    if (!s->runs) return no_memory(r->err);
    for (int seed = 0; seed < most_seeds; seed++)
        for (int i = 0; i < r->n_blocks; i++)
            if (seed < r->blocks[i].n_seeds && !add_runs(r, &r->blocks[i], r->blocks[i].seeds[seed]))
                return no_memory(r->err);
    return check_names(r);
}

void rws_sweep_free(rws_sweep *s)
{
    if (!s) return;
    if (s->memory) rws__arena_free(&s->memory->arena);
    free(s->memory);
    free(s);
}

rws_status rws_sweep_parse(const char *text, size_t length, const char *name, rws_sweep **out, rws_error *err)
{
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(text && name, err);
    if (length > RWS_MAX_SWEEP_BYTES) return rws__refuse(err, name, 0, "is longer than %d bytes.", RWS_MAX_SWEEP_BYTES);
    rws_sweep *s = calloc(1, sizeof *s);
    if (s) s->memory = calloc(1, sizeof *s->memory);
    const bool memory = s && s->memory;
    char      *copy = memory ? rws__arena_try(&s->memory->arena, length + 1) : NULL; /* split puts zeros into it */
    block     *blocks = memory ? RWS_TRY_NEW(&s->memory->arena, block, MAX_BLOCKS) : NULL;
    reader     r = {.name = name, .sweep = s, .blocks = blocks, .err = err};
    rws_status status = copy && blocks ? RWS_OK : no_memory(err);
    if (status == RWS_OK) {
        if (length) memcpy(copy, text, length);
        copy[length] = '\0';
        status = scan(&r, copy, length);
    }
    if (status == RWS_OK) status = expand(&r);
    if (status == RWS_OK) *out = s;
    else rws_sweep_free(s);
    return status;
}

rws_status rws_sweep_read(const char *path, rws_sweep **out, rws_error *err)
{
    char  *text;
    size_t length;
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(path, err);
    RWS_TRY(rws__file_read_text(path, "sweep", RWS_MAX_SWEEP_BYTES, &text, &length, err));
    const rws_status status = rws_sweep_parse(text, length, path, out, err);
    free(text);
    return status;
}
