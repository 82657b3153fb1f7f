/* copies.c - what a row of the engine's table has reported and chosen, copied to the memory of answers or samples. */
#include "ask/ask.h"

#include "base/list.h"
#include <stdlib.h>
#include <string.h>

/* A copy of n bytes; NULL without memory. */
static void *copy_bytes(rws_arena *memory, const void *from, size_t n)
{
    void *copy = rws__arena_try(memory, n);
    return copy ? memcpy(copy, from, n) : NULL;
}

/* Copies a text, or nothing, to *out. False without memory. */
static bool copy_text(rws_arena *memory, const char *text, const char **out)
{
    *out = text ? copy_bytes(memory, text, strlen(text) + 1) : NULL;
    return *out || !text;
}

static bool copy_values(rws_arena *memory, const float *value, int dim, const float **out)
{
    *out = value ? copy_bytes(memory, value, (size_t)dim * sizeof *value) : NULL;
    return *out || !value;
}

static void add_report(void *context, const char *name, int dim, const float *value, const char *text)
{
    rws_row_reports *r = context;
    r->memory_short |= !rws__list_grow(&r->list, r->n, &r->capacity, sizeof *r->list);
    if (!r->memory_short) r->list[r->n++] = (rws_reported){name, text, value, dim};
}

bool rws__row_reports(rws_engine *engine, int row, rws_row_reports *out)
{
    out->n = 0;
    out->memory_short = false;
    return rws__engine_reports(engine, row, add_report, out) == RWS_OK && !out->memory_short;
}

const rws_reported *rws__reports_copy(rws_arena *memory, const rws_reported *list, int n)
{
    rws_reported *copy = RWS_TRY_NEW(memory, rws_reported, n + 1);
    for (int i = 0; i < n && copy; i++) {
        copy[i].dim = list[i].dim;
        if (!copy_text(memory, list[i].name, &copy[i].name) || !copy_text(memory, list[i].text, &copy[i].text) ||
            !copy_values(memory, list[i].value, list[i].dim, &copy[i].value))
            return NULL;
    }
    return copy;
}

const rws_reported *rws__reports_of_row(rws_arena *memory, rws_engine *engine, int row, int *n)
{
    rws_row_reports     r = {0};
    const rws_reported *copy = rws__row_reports(engine, row, &r) ? rws__reports_copy(memory, r.list, r.n) : NULL;
    *n = r.n;
    free(r.list);
    return copy;
}

typedef struct {
    rws_arena  *memory;
    rws_choice *list;
    int         n, capacity;
    bool        memory_short;
} choices;

static void add_choice(void *context, const rws_choice *choice)
{
    choices *c = context;
    if (c->n < c->capacity) {
        rws_choice *to = &c->list[c->n];
        *to = *choice;
        c->memory_short |= !copy_text(c->memory, choice->site, &to->site) ||
                           !copy_values(c->memory, choice->value, choice->dim, &to->value);
    }
    c->n++;
}

const rws_choice *rws__choices_of_row(rws_arena *memory, rws_engine *engine, int row, int *n)
{
    choices c = {.memory = memory};
    if (rws__engine_choices(engine, row, add_choice, &c) != RWS_OK) return NULL;
    c = (choices){.memory = memory, .list = RWS_TRY_NEW(memory, rws_choice, c.n + 1), .capacity = c.n};
    if (!c.list || rws__engine_choices(engine, row, add_choice, &c) != RWS_OK) return NULL;
    *n = c.n;
    return c.memory_short ? NULL : c.list;
}

const char *rws_answer_text(const rws_answer *a, const char *name)
{
    for (int i = 0; a && name && i < a->n_reports; i++)
        if (a->reports[i].text && strcmp(a->reports[i].name, name) == 0) return a->reports[i].text;
    return NULL;
}

const rws_reported *rws_answer_value(const rws_answer *a, const char *name, int time)
{
    for (int i = 0; a && name && i < a->n_reports; i++)
        if (a->reports[i].value && strcmp(a->reports[i].name, name) == 0 && time-- == 0) return &a->reports[i];
    return NULL;
}
