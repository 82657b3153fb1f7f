#include "rws/arguments.h"

#include "base/count.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/text.h"
#include "rws/output.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_USAGE = 0x1000 };

/* The state of one parse. Parsers find it through argp_state.root_argp, which points to its first member. */
typedef struct {
    struct argp root; /* first */
    const char *name;
    void       *input; /* of the command's parser */
    rws_error  *err;
} parse;

static const parse *parse_of(const struct argp_state *state)
{
    return (const parse *)state->root_argp;
}

static const struct argp_option own_options[] = {
    {"help", '?', 0, 0, "Give this help", -1},
    {"usage", KEY_USAGE, 0, 0, "Give a short usage message", 0},
    {0},
};

bool rws__arguments_each(const struct argp *argp,
                         bool (*visit)(const struct argp *owner, const struct argp_option *option, void *context),
                         void *context)
{
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++)
        if (visit(argp, o, context)) return true;
    for (const struct argp_child *c = argp->children; c && c->argp; c++)
        if (rws__arguments_each(c->argp, visit, context)) return true;
    return false;
}

/* ---- what getopt refused */

typedef struct {
    const char               *text;    /* begins with what is looked for */
    size_t                    n;       /* its length */
    int                       n_alike; /* options whose long names begin with it; 1 if one of them is it */
    const struct argp_option *found;
    rws_nearest               near;
} search;

static bool match_long(const struct argp *owner, const struct argp_option *o, void *context)
{
    (void)owner;
    search *s = context;
    if (o->name) rws__nearest_try(&s->near, o->name);
    if (!o->name || strncmp(o->name, s->text, s->n) != 0) return false;
    s->found = o;
    s->n_alike++;
    if (strlen(o->name) != s->n) return false;
    s->n_alike = 1;
    return true;
}

static bool match_short(const struct argp *owner, const struct argp_option *o, void *context)
{
    (void)owner;
    search *s = context;
    if (o->key == *s->text) s->found = o;
    return s->found != NULL;
}

/* A number, or text after a minus and a space, where the command takes any number of arguments: a datum, not an option.
 * */
static bool refused_datum(const struct argp_state *state, const char *text)
{
    const parse *p = parse_of(state);
    const char  *arguments = p->root.children[0].argp->args_doc;
    char        *end = NULL;
    strtod(text, &end);
    if (text[0] != '-' || (end == text && text[1] != ' ') || !arguments || !strstr(arguments, "...")) return false;
    char word[128];
    if (!rws__shell_word(text, word, sizeof word)) strcpy(word, "...");
    rws_fail(p->err, RWS_BAD_INPUT, "\"%s\" begins with a minus; write `%s %.*s -- %s`.", rws__quote_short(text).text,
             p->name, (int)strcspn(arguments, " "), arguments, word);
    return true;
}

static bool refused_short(const struct argp_state *state, const char *text)
{
    const parse *p = parse_of(state);
    if (text[0] != '-' || text[1] == '-') return false;
    for (const char *letter = text + 1; *letter; letter++) {
        search s = {.text = letter};
        if (!rws__arguments_each(state->root_argp, match_short, &s)) {
            rws_fail(p->err, RWS_BAD_INPUT, "There is no option -%c; see %s --help.", *letter, p->name);
            return true;
        }
        if (s.found->arg && letter[1] == '\0') {
            rws_fail(p->err, RWS_BAD_INPUT, "Option -%c needs a value.", *letter);
            return true;
        }
        if (s.found->arg) return false;
    }
    return false;
}

/* Why getopt refused an option: state->next is the argument after it, or the option itself if letters follow the
 * refused one. */
static void refused(const struct argp_state *state)
{
    const parse *p = parse_of(state);
    const char  *text = state->next > 0 ? state->argv[state->next - 1] : "";
    if (strncmp(text, "--", 2) == 0 && text[2]) {
        search           s = {.text = text + 2, .n = strcspn(text + 2, "=")};
        const rws_quoted name = rws__quote_prefix(text, s.n + 2, RWS_QUOTED_SHORT);
        s.near = rws__nearest_to(name.text + 2);
        rws__arguments_each(state->root_argp, match_long, &s);
        if (s.n_alike == 0)
            rws_fail(p->err, RWS_BAD_INPUT, "There is no option %s%s%s%s; see %s --help.", name.text,
                     s.near.best ? " (did you mean --" : "", s.near.best ? s.near.best : "", s.near.best ? "?)" : "",
                     p->name);
        else if (s.n_alike > 1)
            rws_fail(p->err, RWS_BAD_INPUT, "Option %s is ambiguous; see %s --help.", name.text, p->name);
        else if (s.found->arg) rws_fail(p->err, RWS_BAD_INPUT, "Option --%s needs a value.", s.found->name);
        else rws_fail(p->err, RWS_BAD_INPUT, "Option --%s takes no value.", s.found->name);
        return;
    }
    const char *next = state->next < state->argc ? state->argv[state->next] : "";
    if (refused_datum(state, text) || refused_datum(state, next)) return;
    if (refused_short(state, text) || refused_short(state, next)) return;
    rws_fail(p->err, RWS_BAD_INPUT, "The arguments cannot be understood; see %s --help.", p->name);
}

/* ---- the parse */

rws_status rws__arguments_flush(rws_error *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "The results could not be written: %s.", strerror(errno));
}

void rws__arguments_leave(void)
{
    rws_error err;
    if (rws__arguments_flush(&err) == RWS_OK) exit(0);
    rws__complain("%s", err.text);
    exit(2);
}

static error_t parse_own(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    const parse *p = parse_of(state);
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = p->input; return 0;
    case '?':
    case KEY_USAGE:
        setenv("ARGP_HELP_FMT", "no-dup-args-note", 0); /* or every help would end with two lines on short options */
        argp_help(state->root_argp, stdout, key == '?' ? ARGP_HELP_STD_HELP : ARGP_HELP_USAGE, (char *)p->name);
        rws__arguments_leave();
    case ARGP_KEY_ERROR:
        if (p->err->text[0] == '\0') refused(state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

rws_status rws__arguments_parse(const struct argp *argp, const char *name, int argc, char **argv, unsigned flags,
                                void *input, rws_error *err)
{
    const struct argp_child children[] = {{.argp = argp}, {0}};
    const struct argp       root = {.options = own_options, .parser = parse_own, .children = children};
    const parse             p = {.root = root, .name = name, .input = input, .err = err};
    err->text[0] = '\0';
    const int why = argp_parse(&p.root, argc, argv, flags | ARGP_SILENT, NULL, NULL);
    if (why == ENOMEM && !err->text[0]) return rws_no_memory(err, "reading the arguments");
    return why == 0 ? RWS_OK : RWS_BAD_INPUT;
}

error_t rws__arguments_fail(const struct argp_state *state, const char *format, ...)
{
    const parse *p = parse_of(state);
    va_list      args;
    va_start(args, format);
    rws__fail_v(p->err, RWS_BAD_INPUT, format, args);
    va_end(args);
    return EINVAL;
}

error_t rws__arguments_extra(const struct argp_state *state, const char *argument)
{
    const parse *p = parse_of(state);
    return rws__arguments_fail(state, "\"%s\" is one argument too many; see %s --help.",
                               rws__quote_short(argument).text, p->name);
}

error_t rws__arguments_count(const struct argp_state *state, const char *option, const char *text, uint64_t min,
                             uint64_t max, uint64_t *out)
{
    const char *end = text;
    uint64_t    value;
    if (!rws__count_read(&end, &value) || *end || value < min || value > max)
        return rws__arguments_fail(state, "%s is a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\".", option,
                                   min, max, rws__quote_short(text).text);
    *out = value;
    return 0;
}

error_t rws__arguments_real(const struct argp_state *state, const char *option, const char *text, double min,
                            double max, double *out)
{
    char        *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || isspace((unsigned char)text[0]) || *end || !isfinite(value) || value < min || value > max)
        return rws__arguments_fail(state, "%s is a number from %g to %g, not \"%s\".", option, min, max,
                                   rws__quote_short(text).text);
    *out = value;
    return 0;
}

error_t rws__arguments_limit(const struct argp_state *state, const char *text, rws_limits *out)
{
    uint64_t    stack_kb = 0;
    rws_nearest near = rws__nearest_to(rws__quote_prefix(text, strcspn(text, "="), RWS_QUOTED_SHORT).text);
    const struct {
        const char *name;
        uint64_t   *value;
    } limits[] = {{"stack", &stack_kb},
                  {"operations", &out->max_operations},
                  {"paths", &out->max_paths},
                  {"nodes", &out->max_nodes}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const size_t n = strlen(limits[i].name);
        rws__nearest_try(&near, limits[i].name);
        if (strncmp(text, limits[i].name, n) != 0 || text[n] != '=') continue;
        char option[32];
        snprintf(option, sizeof option, "--limit %s", limits[i].name);
        const error_t error = rws__arguments_count(state, option, text + n + 1, 1, UINT32_MAX, limits[i].value);
        if (stack_kb) out->stack_bytes = (size_t)stack_kb << 10;
        return error;
    }
    return rws__arguments_fail(state, "--limit takes stack=KB, operations=N, paths=N or nodes=N, not \"%s\"%s.", text,
                               rws__nearest_hint(&near).text);
}

error_t rws__arguments_folder(const struct argp_state *state, const char *option, const char *text, const char **out)
{
    if (!text[0]) return rws__arguments_fail(state, "%s needs the name of a folder.", option);
    *out = text;
    return 0;
}

char *rws__arguments_below(int key, const char *text, void (*list)(FILE *stream))
{
    rws_text below;
    FILE    *stream = key == ARGP_KEY_HELP_POST_DOC ? rws__text_open(&below) : NULL;
    if (!stream) return (char *)text;
    list(stream);
    char *out = rws__text_end(&below);
    return out ? out : (char *)text;
}
