/* help.c - rws help: the help of a command, the manual page rws(1) and the completions of shells. All three are read
 * off the table of commands and their options. */
#include "base/error.h"
#include "rws/arguments.h"
#include "rws/command.h"
#include "paper/paper.h"
#include "rws_train.h"

#include <ctype.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

static bool has_letter(const struct argp_option *o)
{
    return o->key > 0 && o->key < 128 && isalnum(o->key);
}

/* The text about an option, which a filter may make, such as the list of methods. The caller frees it. */
static char *text_of(const struct argp *owner, const struct argp_option *o)
{
    char *text = owner->help_filter ? owner->help_filter(o->key, o->doc, NULL) : (char *)o->doc;
    return text == o->doc ? g_strdup(o->doc) : text;
}

/* "METRIC[,METRIC...] [PATH...]": what a tree of parsers says of its arguments. */
static void put_arguments(GString *out, const struct argp *argp)
{
    if (argp->args_doc) g_string_append_printf(out, " %s", argp->args_doc);
    for (const struct argp_child *c = argp->children; c && c->argp; c++) put_arguments(out, c->argp);
}

/* ---- the manual page */

/* Writes text so that roff changes no character of it, each sentence on a line of its own. */
static void put_roff(GString *out, const char *text)
{
    for (const char *at = text; *at && *at != '\v'; at++) {
        if (*at == '-') g_string_append(out, "\\-");
        else if (*at == '\\') g_string_append(out, "\\e");
        else if (*at == '`') g_string_append(out, "\\(ga");
        else if (*at == ' ' && at > text && at[-1] == '.') g_string_append_c(out, '\n');
        else g_string_append_c(out, *at);
    }
    g_string_append_c(out, '\n');
}

static bool put_option(const struct argp *owner, const struct argp_option *o, void *context)
{
    GString *out = context;
    if (!o->name || o->flags & OPTION_HIDDEN) return false;
    g_string_append(out, ".It");
    if (has_letter(o)) g_string_append_printf(out, " Fl %c ,", o->key);
    g_string_append_printf(out, " Fl Fl %s", o->name);
    if (o->arg) g_string_append_printf(out, " Ns = Ns Ar %s", o->arg);
    g_string_append_c(out, '\n');
    char *text = text_of(owner, o);
    put_roff(out, text);
    if (!strchr(".:", text[strlen(text) - 1])) g_string_insert_c(out, (gssize)out->len - 1, '.');
    free(text);
    return false;
}

/* The part of the page's source that follows the line "@notes NAME"; the caller frees it. NULL: there is none. */
static char *notes_of(const char *source, const char *name)
{
    char       *line = g_strdup_printf("\n@notes %s\n", name);
    const char *at = strstr(source, line), *notes = at ? at + strlen(line) : NULL;
    g_free(line);
    return notes ? g_strndup(notes, (size_t)(strstr(notes, "\n@") + 1 - notes)) : NULL;
}

static void put_command(GString *out, const char *source, const char *before, const rws_command *c)
{
    char *name = g_strconcat(before, c->name, NULL), *notes = notes_of(source, name);
    g_string_append_printf(out, ".Ss \"%s [OPTION...]", name);
    put_arguments(out, c->argp);
    g_string_append(out, "\"\n");
    put_roff(out, c->argp->doc);
    if (c->argp->options || c->argp->children) {
        g_string_append(out, ".Bl -tag -width Ds\n");
        rws__arguments_each(c->argp, put_option, out);
        g_string_append(out, ".El\n");
    }
    const char *below = strchr(c->argp->doc, '\v');
    if (below && below[1] && strcmp(below, "\v ") != 0) /* a blank stands for a list that the command makes */
        g_string_append_printf(out, ".Bd -literal -offset indent\n%s\n.Ed\n", below + 1);
    if (notes) g_string_append_printf(out, ".Pp\n%s", notes);
    g_free(notes);
    char *above = g_strconcat(name, " ", NULL);
    for (const rws_command *part = c->parts; part && part->name; part++) put_command(out, source, above, part);
    g_free(above);
    g_free(name);
}

/* The page is its source with the commands between what is above the first "@" and what is below "@end". */
static rws_status print_manual(const char *file, rws_error *err)
{
    char *source = NULL;
    if (!g_file_get_contents(file, &source, NULL, NULL))
        return rws_fail(err, RWS_BAD_INPUT, "The source of the manual page, \"%.200s\", cannot be read.", file);
    const char *first = strstr(source, "\n@notes "), *end = strstr(source, "\n@end\n");
    rws_status  status = RWS_OK;
    if (!first || !end) status = rws_fail(err, RWS_BAD_INPUT, "\"%.200s\" has no line @notes or no line @end.", file);
    GString *page = g_string_new_len(source, first ? first + 1 - source : 0);
    for (int i = 0; status == RWS_OK && rws_commands[i]; i++) put_command(page, source, "", rws_commands[i]);
    if (status == RWS_OK) g_string_append(page, end + strlen("\n@end\n"));
    fputs(page->str, stdout);
    g_string_free(page, TRUE);
    g_free(source);
    return status;
}

/* ---- completions: a line for each word that may stand where the last argument stands, a tab and what it means */

typedef struct {
    const char *prefix; /* of the argument, which belongs to the word: "--method=" */
    const char *start;  /* what the user has typed after it */
} typed;

static void offer(const typed *t, const char *word, const char *about)
{
    if (strncmp(word, t->start, strlen(t->start)) != 0) return;
    int n = (int)strcspn(about, ";(");
    while (n > 0 && about[n - 1] == ' ') n--;
    printf("%s%s\t%.*s\n", t->prefix, word, n, about);
}

/* Offers the words that a placeholder of the help stands for: none where it is a file or a number. */
static void offer_names(const typed *t, const char *placeholder)
{
    rws_method_info    method;
    rws_optimiser_info optimiser;
    for (int i = 0; strcmp(placeholder, "MODEL") == 0 && rws_model_at(i); i++)
        offer(t, rws_model_at(i)->name, rws_model_at(i)->help);
    for (int i = 0; strcmp(placeholder, "METHOD") == 0 && rws_method_at(i, &method); i++)
        offer(t, method.name, method.help);
    for (int i = 0; strcmp(placeholder, "OPTIMISER") == 0 && rws_optimiser_at(i, &optimiser); i++)
        offer(t, optimiser.name, optimiser.help);
    for (int i = 0; strcmp(placeholder, "EXPERIMENT") == 0 && rws_experiments[i]; i++)
        offer(t, rws_experiments[i]->name, rws_experiments[i]->help);
    for (int i = 0; strcmp(placeholder, "COMMAND") == 0 && rws_commands[i]; i++)
        offer(t, rws_commands[i]->name, rws_commands[i]->help);
    if (islower(placeholder[0])) offer(t, placeholder, "");
}

/* Offers the words of "trees|images|hinton" or "[models|settings MODEL]". */
static void offer_values(const typed *t, const char *kinds)
{
    char **words = g_strsplit_set(kinds, " []|.,=", -1);
    for (char **word = words; *word; word++) offer_names(t, *word);
    g_strfreev(words);
}

static bool offer_option(const struct argp *owner, const struct argp_option *o, void *context)
{
    if (!o->name || o->flags & OPTION_HIDDEN) return false;
    char *text = text_of(owner, o), *name = g_strconcat("--", o->name, NULL);
    offer(context, name, text);
    g_free(name);
    free(text);
    return false;
}

typedef struct {
    const char *argument; /* "--method", "--method=w" or "-k" */
    const char *kinds;    /* of its value; NULL: it has none */
} option_search;

static bool find_option(const struct argp *owner, const struct argp_option *o, void *context)
{
    (void)owner;
    option_search *s = context;
    const size_t   n = strcspn(s->argument, "=");
    const bool is_long = o->name && n > 2 && strlen(o->name) == n - 2 && strncmp(s->argument + 2, o->name, n - 2) == 0;
    const bool is_short = n == 2 && has_letter(o) && s->argument[1] == o->key;
    if (is_long || is_short) s->kinds = o->arg;
    return is_long || is_short;
}

static const char *kinds_after(const struct argp *argp, const char *argument)
{
    option_search s = {.argument = argument};
    if (argument[0] == '-') rws__arguments_each(argp, find_option, &s);
    return s.kinds;
}

/* `words` are the n arguments of the command up to the one that is completed. */
static void complete_command(const rws_command *c, char **words, int n)
{
    const rws_command *part = n > 1 ? rws__command_find(c, words[0], NULL) : NULL;
    if (part) return complete_command(part, words + 1, n - 1);
    const char *last = words[n - 1], *equals = last[0] == '-' ? strchr(last, '=') : NULL;
    char       *prefix = g_strndup(last, equals ? (size_t)(equals + 1 - last) : 0);
    const typed t = {.prefix = prefix, .start = equals ? equals + 1 : last};
    const char *of_value = equals                                ? kinds_after(c->argp, last)
                           : n > 1 && !strchr(words[n - 2], '=') ? kinds_after(c->argp, words[n - 2])
                                                                 : NULL;
    GString    *arguments = g_string_new(NULL);
    put_arguments(arguments, c->argp);
    if (of_value) offer_values(&t, of_value);
    else if (last[0] == '-') {
        rws__arguments_each(c->argp, offer_option, (void *)&t);
        offer(&t, "--help", "Give this help");
    } else offer_values(&t, arguments->str);
    for (const rws_command *p = of_value ? NULL : c->parts; p && p->name; p++) offer(&t, p->name, p->help);
    g_string_free(arguments, TRUE);
    g_free(prefix);
}

static void complete(char **words, int n)
{
    const rws_command *c = n > 1 ? rws__command_find(NULL, words[0], NULL) : NULL;
    if (c) complete_command(c, words + 1, n - 1);
    else if (n == 1) offer_names(&(typed){.prefix = "", .start = words[0]}, "COMMAND");
}

/* ---- the command */

enum { KEY_MANUAL = 0x1001, KEY_COMPLETE };

typedef struct {
    const char *manual;
    bool        complete;
    char      **words;
    int         n;
} help_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    help_options *o = state->input;
    switch (key) {
    case KEY_MANUAL: o->manual = arg; return 0;
    case KEY_COMPLETE: o->complete = true; return 0;
    case ARGP_KEY_ARG:
        o->words = state->argv + state->next - 1;
        o->n = state->argc - state->next + 1;
        state->next = state->argc;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options =
        (const struct argp_option[]){
            {"manual", KEY_MANUAL, "FILE", 0, "Print the manual page rws(1), with the texts of this file", 0},
            {"complete", KEY_COMPLETE, 0, 0, "Print the words that may stand where the last word stands, for shells",
             0},
            {0},
        },
    .parser = parse,
    .args_doc = "[COMMAND...]",
    .doc = "Prints the help of a command: `rws help train` is `rws train --help`.",
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    help_options o = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws help", argc, argv, ARGP_IN_ORDER, &o, err));
    if (o.manual) return print_manual(o.manual, err);
    if (o.complete) {
        if (o.n) complete(o.words, o.n);
        return RWS_OK;
    }
    char **words = g_new0(char *, (gsize)o.n + 3);
    words[0] = argv[0];
    for (int i = 0; i < o.n; i++) words[i + 1] = o.words[i];
    words[o.n + 1] = "--help";
    const rws_status status = rws__command_dispatch(o.n + 2, words, err);
    g_free(words);
    return status;
}

const rws_command rws_command_help = {"help", "show the help of a command", run, &argp};
