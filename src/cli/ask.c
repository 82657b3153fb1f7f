#include "cli/ask.h"

#include "base/error.h"
#include "cli/report.h"
#include "cli/screen.h"
#include "figure/brackets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the run */

enum { KEY_SET = 0x3000, KEY_JSON, MOST_PRINTED = 32 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    rws_asked *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: a->seed = 1; return 0;
    case 's': return rws_arguments_count(state, "--seed", arg, 0, UINT64_MAX, &a->seed);
    case KEY_JSON: a->json = true; return 0;
    case KEY_SET:
        if (a->changes.n_set == RWS_MAX_ASK_SET)
            return rws_arguments_fail(state, "--set can be given %d times at most.", RWS_MAX_ASK_SET);
        a->changes.set[a->changes.n_set++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rws_asked_argp = {
    .options =
        (const struct argp_option[]){
            {"seed", 's', "S", 0, "Of the random numbers (1)", 0},
            {"set", KEY_SET, "NAME=VALUE", 0, "A setting of the model that is other than in training", 0},
            {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0},
            {0},
        },
    .parser = parse,
};

rws_status rws_asked_open(rws_asked *a, rws_error *err)
{
    return rws_posterior_open(a->path, &a->changes, NULL, &a->posterior, err);
}

void rws_asked_close(rws_asked *a)
{
    rws_posterior_free(a->posterior);
}

/* ---- answers */

static json_t *json_of(const rws_reported *told)
{
    if (told->text) {
        json_t *text = json_string(told->text);
        return text ? text : json_null(); /* not UTF-8 */
    }
    if (told->dim == 1) return rws_report_real((double)told->value[0]);
    json_t *list = json_array();
    for (int i = 0; i < told->dim; i++) json_array_append_new(list, rws_report_real((double)told->value[i]));
    return list;
}

void rws_asked_describe(const rws_reported *reports, int n, json_t *object)
{
    for (int i = 0; i < n; i++) {
        const char *name = reports[i].name;
        json_t     *list = NULL;
        for (int k = i + 1; k < n; k++) {
            if (strcmp(reports[k].name, name) != 0) continue;
            if (!list) json_array_append_new(list = json_array(), json_of(&reports[i]));
            json_array_append_new(list, json_of(&reports[k]));
        }
        if (!json_object_get(object, name)) json_object_set_new(object, name, list ? list : json_of(&reports[i]));
        else json_decref(list);
    }
}

static void print_tree(const char *text, int indent, bool brackets)
{
    char  *lines = NULL;
    size_t size = 0;
    printf("%*s%s\n", indent, "", text);
    if (brackets) return;
    FILE *stream = open_memstream(&lines, &size);
    RWS_CHECK(stream && "memory for a tree");
    rws_brackets_print(text, rws_screen_columns(STDOUT_FILENO) - indent, rws_screen_unicode(), stream);
    fclose(stream);
    putchar('\n');
    for (char *at = lines, *end; (end = strchr(at, '\n')); at = end + 1)
        printf("%*s%.*s\n", indent, "", (int)(end - at), at);
    free(lines);
}

bool rws_asked_print(const rws_reported *reports, int n, const char *known, int indent, bool brackets)
{
    bool texts = false, any = false;
    for (int i = 0; i < n; i++) {
        const rws_reported *told = &reports[i];
        texts |= told->text != NULL;
        if (!told->text || (known && strcmp(told->text, known) == 0)) continue;
        any = true;
        if (strcmp(told->name, "tree") == 0) print_tree(told->text, indent, brackets);
        else printf("%*s%s\n", indent, "", told->text);
    }
    for (int i = 0; i < n && !texts; i++) {
        if (reports[i].dim > MOST_PRINTED) continue; /* a picture */
        any = true;
        printf("%*s%s", indent, "", reports[i].name);
        for (int k = 0; k < reports[i].dim; k++) printf(" %g", (double)reports[i].value[k]);
        putchar('\n');
    }
    return any;
}
