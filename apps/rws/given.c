#include "rws/given.h"

#include "base/error.h"
#include "base/quote.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void rws__given_list_release(rws_given_list *l)
{
    for (int i = 0; i < l->n; i++) {
        free((char *)l->list[i].site);
        free((float *)l->list[i].value);
    }
    free(l->list);
    *l = (rws_given_list){0};
}

/* The numbers of a value, with blanks between them; the caller frees them. *dim is 0 if there is none, or if something
 * is not a finite number. */
static float *read_numbers(const char *at, const char *end, int *dim)
{
    float *out = malloc((size_t)(end - at + 1) * sizeof *out);
    for (*dim = 0; out; ++*dim) {
        while (at < end && isspace((unsigned char)*at)) at++;
        if (at == end) return out;
        char       *stop;
        const float x = strtof(at, &stop);
        if (stop == at || stop > end || (stop < end && !isspace((unsigned char)*stop)) || !isfinite(x)) break;
        out[*dim] = x;
        at = stop;
    }
    *dim = 0;
    return out;
}

/* The visit behind the last colon of a site's name, which ends at *end; 0 if there is none. Moves *end. */
static int take_visit(const char *site, const char **end)
{
    const char *at = *end;
    while (at > site && isdigit((unsigned char)at[-1])) at--;
    if (at == *end || *end - at > 9 || at < site + 2 || at[-1] != ':') return 0;
    *end = at - 1;
    return (int)strtol(at, NULL, 10);
}

static rws_status add(rws_given_list *l, const char *text, const char *end, rws_error *err)
{
    const char *equals = end;
    while (equals > text && equals[-1] != '=') equals--;
    const char *site_end = equals - 1;
    int         dim = 0;
    float      *value = equals > text + 1 ? read_numbers(equals, end, &dim) : NULL;
    if (!dim) {
        free(value);
        return rws_fail(
            err, RWS_BAD_INPUT,
            "--given takes site=value or site:visit=value, where a value is one or more finite numbers, not "
            "\"%s\".",
            rws__quote_prefix(text, (size_t)(end - text), RWS_QUOTED_SHORT).text);
    }
    const int   visit = take_visit(text, &site_end);
    char       *site = strndup(text, (size_t)(site_end - text));
    rws_choice *longer = realloc(l->list, (size_t)(l->n + 1) * sizeof *longer);
    if (longer) l->list = longer;
    if (!longer || !site) {
        free(site);
        free(value);
        return rws_no_memory(err, "given choices");
    }
    l->list[l->n++] = (rws_choice){.site = site, .visit = visit, .dim = dim, .value = value};
    return RWS_OK;
}

rws_status rws__given_list_add(rws_given_list *l, const char *text, rws_error *err)
{
    for (const char *at = text;; at++) {
        const char *end = at + strcspn(at, ",");
        RWS_TRY(add(l, at, end, err));
        if (!*end) return RWS_OK;
        at = end;
    }
}
