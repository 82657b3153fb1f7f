#include "rws/options.h"

#include "base/error.h"
#include "base/quote.h"
#include "base/text.h"
#include "program/config.h"
#include "program/plugin.h"
#include "program/program.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Options without a letter. */
enum {
    KEY_METHOD = 0x2000,
    KEY_SHARDS,
    KEY_PARTICLE_SHARDS,
    KEY_EVAL_EVERY,
    KEY_EVAL_DATA,
    KEY_EVAL_PARTICLES,
    KEY_OPTIMISER,
    KEY_LR,
    KEY_L2,
    KEY_RESAMPLE,
    KEY_SCALAR,
    KEY_SET,
    KEY_DATA,
    KEY_GIVEN,
    KEY_RESUME,
    KEY_MODEL,
    KEY_CHANGED,
    KEY_NO_CHECK,
    KEY_LIMIT,
    KEY_JSON,
};

/* Names that messages of the library use, and the options that stand for them, beside those of the table above. */
static const struct {
    const char *member, *option;
} others[] = {
    {"set", "set"},
    {"data=FILE", "data FILE"},
    {"given=FILE", "given FILE"},
    {"changed", "changed"},
    {"no_check", "no-check"},
    {"stack_bytes", "limit stack"},
    {"max_operations", "limit operations"},
    {"max_paths", "limit paths"},
    {"max_nodes", "limit nodes"},
};

static const struct argp_option options[] = {
    {"method", KEY_METHOD, "METHOD", 0, "The method by which phi learns (default ww); one of ", 1},
    {"particles", 'k', "K", 0, "Particles per datum (default: the model's, else 10)", 1},
    {"batch", 'b', "B", 0, "Data per iteration (default: the model's, else 100)", 1},
    {"iterations", 'n', "N", 0,
     "Number of iterations (default: the model's, else 10000; of bench: those of 0.2 seconds)", 1},
    {"seed", 's', "S", 0, "Seed of all random numbers (default 1)", 1},
    {"data", KEY_DATA, "FILE", 0, "The file that the model learns from; short for --set data=FILE", 1},
    {"given", KEY_GIVEN, "FILE", 0,
     "Random choices that are known, a line for each: datum,site,visit,value; short for --set given=FILE", 1},
    {"set", KEY_SET, "NAME=VALUE", 0, "A setting of the model or the method; may be repeated; see rws list", 1},

    {"optimiser", KEY_OPTIMISER, "OPTIMISER", 0, "The optimiser (default: the model's, else adam); one of ", 2},
    {"lr", KEY_LR, "SCHEDULE", 0,
     "Learning rate: 1e-3 (default, unless the model has another); with changes after some iterations: 1e-3,5000:/3 or "
     "0,0-1000:1e-3; by parameter group, each "
     "with its own changes: theta=0,phi=1e-3,5000:/3",
     2},
    {"resample", KEY_RESAMPLE, "SHARE", 0,
     "Resample particles at the steps of a loop that guide and model share, where their effective number is at most "
     "this "
     "share (default 0: never)",
     2},
    {"l2", KEY_L2, "WEIGHT", 0, "Weight of half the squared length of the parameters in the loss (default 0)", 2},

    {"eval-every", KEY_EVAL_EVERY, "N", 0,
     "Iterations between two evaluations (default: the model's, else a twentieth of all)", 3},
    {"eval-data", KEY_EVAL_DATA, "N", 0, "Number of test data of an evaluation (default: the model's, else 100)", 3},
    {"eval-particles", KEY_EVAL_PARTICLES, "N", 0, "Particles per test datum (default K)", 3},
    {"out", 'o', "DIR", 0, "The run's folder: configuration, checkpoint and metrics", 3},
    {"resume", KEY_RESUME, 0, 0, "Resume the run that is in --out", 3},
    {"model", KEY_MODEL, "PATH", 0, "With --resume: the shared object of the run, if it has moved", 3},
    {"changed", KEY_CHANGED, 0, 0, "With --resume: accept a shared object that has changed since the run began", 3},
    {"no-check", KEY_NO_CHECK, 0, 0,
     "Do not look at the programs of a model that is not built in before the first iteration (see rws check)", 3},
    {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 3},

    {"threads", 't', "T", 0, "Threads (default 1; 0: all cores); changes no number", 4},
    {"shards", KEY_SHARDS, "N", 0,
     "Parts into which a batch is divided for threads and ranks (default: the model's, else 4); the numbers depend on "
     "it",
     4},
    {"particle-shards", KEY_PARTICLE_SHARDS, "N", 0,
     "Parts into which each datum's particles are divided as well (default 1); the numbers depend on it", 4},
    {"limit", KEY_LIMIT, "NAME=N", 0, RWS_LIMIT_HELP, 4},
    {"scalar", KEY_SCALAR, 0, 0, "Run every particle by itself: slow, for finding mistakes", 4},
    {0},
};

/* The member of rws_config that the option with this key gives; NULL: none. --model is that of a run that is resumed. */
static const rws_config_member *member_of(int key)
{
    const struct argp_option *option = options;
    while (option->name && option->key != key) option++;
    return option->name && key != KEY_MODEL ? rws__config_member(option->name) : NULL;
}

/* ---- parsing */

int rws__options_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static error_t parse_member(const rws_config_member *m, char *text, rws_options *o, struct argp_state *state)
{
    char          *at = (char *)&o->config + m->offset, name[32];
    const uint64_t least = m->offset == offsetof(rws_config, threads) ? 0 : m->least; /* 0: all cores */
    snprintf(name, sizeof name, "--%s", m->option);
    o->given |= UINT64_C(1) << (m - rws_config_members);
    uint64_t count = 0;
    error_t  error = 0;
    switch (m->kind) {
    case RWS_CONFIG_INT:
        error = rws__arguments_count(state, name, text, least, m->most, &count);
        *(int *)at = (int)count;
        return error;
    case RWS_CONFIG_COUNT:
        return rws__arguments_count(state, name, text, least, m->most ? m->most : UINT64_MAX, (uint64_t *)at);
    case RWS_CONFIG_NUMBER: return rws__arguments_real(state, name, text, 0, (double)m->most, (double *)at);
    case RWS_CONFIG_TEXT:
        if (!text[0]) return rws__arguments_fail(state, "%s needs a value.", name);
        *(const char **)at = text;
        return 0;
    case RWS_CONFIG_FLAG: *(bool *)at = true; return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static error_t parse_set(char *text, rws_config *c, const struct argp_state *state)
{
    const int most = sizeof c->set / sizeof *c->set;
    if (text[0] == '=' || !strchr(text, '='))
        return rws__arguments_fail(state, "--set takes name=value, not \"%s\".", rws__quote_short(text).text);
    if (c->n_set == most) return rws__arguments_fail(state, "--set can be given %d times at most.", most);
    c->set[c->n_set++] = text;
    return 0;
}

static error_t parse_data(const char *text, rws_options *o, const struct argp_state *state)
{
    if (o->data[0]) return rws__arguments_fail(state, "--data can be given once only.");
    if ((size_t)snprintf(o->data, sizeof o->data, "data=%s", text) >= sizeof o->data || !text[0])
        return rws__arguments_fail(state, "--data needs the name of a file.");
    return parse_set(o->data, &o->config, state);
}

static error_t parse_given(const char *text, rws_options *o, const struct argp_state *state)
{
    if (o->given_file[0]) return rws__arguments_fail(state, "--given can be given once only.");
    if ((size_t)snprintf(o->given_file, sizeof o->given_file, "given=%s", text) >= sizeof o->given_file || !text[0])
        return rws__arguments_fail(state, "--given needs the name of a file.");
    return parse_set(o->given_file, &o->config, state);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT: *o = (rws_options){0}; return 0;
    case KEY_SET: return parse_set(arg, &o->config, state);
    case KEY_DATA: return parse_data(arg, o, state);
    case KEY_GIVEN: return parse_given(arg, o, state);
    case KEY_RESUME: o->resume = true; return 0;
    case KEY_MODEL: o->model = arg; return 0;
    case KEY_CHANGED: o->config.changed = true; return 0;
    case KEY_NO_CHECK: o->config.no_check = true; return 0;
    case KEY_LIMIT: return rws__arguments_limit(state, arg, &o->config.limits);
    case KEY_JSON: o->json = true; return 0;
    case 'o': return rws__arguments_folder(state, "--out", arg, &o->out);
    case ARGP_KEY_ARG:
        if (o->config.model) return rws__arguments_extra(state, arg);
        o->config.model = arg;
        return 0;
    case ARGP_KEY_END:
        if (o->resume && !o->out) return rws__arguments_fail(state, "--resume needs --out, the folder of the run.");
        if (o->model && !o->resume)
            return rws__arguments_fail(state, "--model goes with --resume; a new run has its MODEL as an argument.");
        if (o->config.changed && !o->resume) return rws__arguments_fail(state, "--changed goes with --resume.");
        if (!o->config.model && !o->resume) return rws__arguments_fail(state, "Which model? `rws list` shows them.");
        return 0;
    default: {
        const rws_config_member *m = member_of(key);
        return m ? parse_member(m, arg, o, state) : ARGP_ERR_UNKNOWN;
    }
    }
}

/* The names of methods and optimisers come from the tables that define them. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != KEY_METHOD && key != KEY_OPTIMISER) return (char *)text;
    const bool         of_methods = key == KEY_METHOD;
    rws_method_info    method;
    rws_optimiser_info optimiser;
    rws_text           names;
    FILE              *stream = rws__text_open(&names);
    if (!stream) return (char *)text;
    fputs(text, stream);
    for (int i = 0; of_methods ? rws_method_at(i, &method) : rws_optimiser_at(i, &optimiser); i++)
        fprintf(stream, "%s%s", i ? ", " : "", of_methods ? method.name : optimiser.name);
    char *out = rws__text_end(&names);
    return out ? out : (char *)text;
}

const struct argp rws_options_argp = {
    .options = options, .parser = parse, .args_doc = "MODEL", .help_filter = help_filter};

/* ---- messages of the library, in the words of the command line */

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && strncmp(text, name, length) == 0;
}

/* The option that stands for the member whose name in backquotes begins at `text`, and the length of that name with its
 * backquotes; NULL: no such name begins there. */
static const char *option_at(const char *text, size_t *length)
{
    const char *end = *text == '`' ? strchr(text + 1, '`') : NULL;
    if (!end) return NULL;
    *length = (size_t)(end - text) + 1;
    const rws_config_member *m = rws_config_members;
    while (m->name && !is_name(m->name, text + 1, *length - 2)) m++;
    if (m->name) return m->option;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_name(others[i].member, text + 1, *length - 2)) return others[i].option;
    return NULL;
}

void rws__options_spell(const char *text, char *out, size_t size)
{
    size_t n = 0, length;
    while (*text && n + 1 < size) {
        const char *option = option_at(text, &length);
        if (option) n += (size_t)snprintf(out + n, size - n, "--%s", option);
        else out[n++] = *text;
        text += option ? length : 1;
    }
    out[n < size ? n : size - 1] = '\0';
}

/* ---- the options that were given, and the configuration of a run */

static uint64_t bit_of(const char *name)
{
    const rws_config_member *m = rws__config_member(name);
    RWS_CHECK(m && "an option of the table");
    return UINT64_C(1) << (m - rws_config_members);
}

bool rws__options_given(const rws_options *o, const char *name)
{
    return o->given & bit_of(name);
}

bool rws__options_take(rws_options *o, const char *name)
{
    const bool given = rws__options_given(o, name);
    if (given) o->given ^= bit_of(name);
    return given;
}

static int threads_of(int threads)
{
    return threads ? threads : rws__options_cores();
}

void rws__options_fill(rws_options *o)
{
    if (!o->config.method) o->config.method = "ww";
    if (!rws__options_given(o, "seed")) o->config.seed = 1;
    o->config.threads = rws__options_given(o, "threads") ? threads_of(o->config.threads) : 1;
}

rws_options rws__options_of(const rws_config *config)
{
    rws_options o = {.config = *config};
    for (const rws_config_member *m = rws_config_members + 1; m->name; m++) /* the first is the model */
        if (rws__config_has(m, config)) o.given |= bit_of(m->option);
    return o;
}

static rws_status compare(const rws_config_member *m, const rws_config *given, const rws_config *run,
                          const char *folder, rws_error *err)
{
    char *const texts[] = {(char[RWS_CONFIG_VALUE]){0}, (char[RWS_CONFIG_VALUE]){0}};
    const char *a = rws__config_value(m, given, texts[0]), *b = rws__config_value(m, run, texts[1]);
    if (strcmp(a, b) == 0) return RWS_OK;
    if (m->kind == RWS_CONFIG_FLAG)
        return rws_fail(err, RWS_BAD_INPUT, "--%s contradicts the run in %s, which is without.", m->option,
                        rws__quote_short(folder).text);
    return rws_fail(err, RWS_BAD_INPUT, "--%s %s contradicts the run in %s, which has %s.", m->option,
                    rws__quote_short(a).text, rws__quote_short(folder).text, rws__quote_short(b).text);
}

/* A number, or a path, may be written in several ways. */
static bool same_value(const char *given, const char *has)
{
    char        *end_a, *end_b;
    const double x = strtod(given, &end_a), y = strtod(has, &end_b);
    if (strcmp(given, has) == 0 || (end_a != given && end_b != has && !*end_a && !*end_b && x == y)) return true;
    char      *path = realpath(given, NULL), *other = realpath(has, NULL);
    const bool same = path && (strcmp(path, has) == 0 || (other && strcmp(path, other) == 0));
    free(path);
    free(other);
    return same;
}

static rws_status compare_set(const char *text, const rws_config *run, const char *folder, rws_error *err)
{
    const size_t n = strcspn(text, "=") + 1;
    for (int i = 0; i < run->n_set; i++) {
        if (strncmp(run->set[i], text, n) != 0) continue;
        if (same_value(text + n, run->set[i] + n)) return RWS_OK;
        return rws_fail(err, RWS_BAD_INPUT, "--set %s contradicts the run in %s, which has %s.",
                        rws__quote_short(text).text, rws__quote_short(folder).text, rws__quote_short(run->set[i]).text);
    }
    return rws_fail(err, RWS_BAD_INPUT, "--set %s contradicts the run in %s, which has no such setting.",
                    rws__quote_short(text).text, rws__quote_short(folder).text);
}

const char *rws__options_model(const rws_options *o)
{
    return o->model ? o->model : o->config.model;
}

rws_status rws__options_resume(const rws_options *o, const rws_config *run, const rws_recorded *recorded,
                               rws_config *out, rws_error *err)
{
    const char *model = o->config.model, *has = recorded->model, *folder = recorded->folder;
    if (model && !(rws__model_is_path(model) ? same_value(model, has) : strcmp(model, has) == 0))
        return rws_fail(err, RWS_BAD_INPUT, "Model %s contradicts the run in %s, which has %s.",
                        rws__quote_short(model).text, rws__quote_short(folder).text, rws__quote_short(has).text);
    for (const rws_config_member *m = rws_config_members; m->name; m++)
        if (rws__options_given(o, m->option) && !m->free) RWS_TRY(compare(m, &o->config, run, folder, err));
    for (int i = 0; i < o->config.n_set; i++) RWS_TRY(compare_set(o->config.set[i], run, folder, err));
    *out = *run;
    if (rws__options_model(o)) out->model = rws__options_model(o);
    out->changed = o->config.changed;
    out->limits = o->config.limits;
    if (rws__options_given(o, "threads")) out->threads = threads_of(o->config.threads);
    if (rws__options_given(o, "iterations")) out->iterations = o->config.iterations;
    if (rws__options_given(o, "lr")) out->lr = o->config.lr;
    return RWS_OK;
}
