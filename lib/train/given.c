/* given.c - choices that training is given instead of having the guide draw them.
 *
 *     labels of the batch ----.
 *     file, by datum's number +-> choices of every datum of the batch -> passes of the wake phases (pass.c)
 *     a function of the caller'
 *
 * The function of the caller alone decides if there is one. Otherwise the choices are those of the file, and the labels
 * that the file says nothing about. Evaluations and questions do not see any of them.
 */
#include "train/given.h"

#include "base/file.h"
#include "base/quote.h"
#include "base/vecmath.h"
#include "data/cells.h"

#include <ctype.h>
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 30 }; /* of a file */

/* A line of the file. */
typedef struct {
    uint64_t   datum;
    uint32_t   line;
    rws_choice choice;
} known;

struct rws_batch_given {
    rws_choice *list; /* of all data of the batch, datum after datum */
    uint32_t    n, capacity;
    uint32_t   *start; /* batch + 1 places in the list */
    known      *file;  /* sorted by datum, site and visit */
    size_t      n_file, file_capacity;
    int         number; /* the field that has the number of a datum; -1: none */
    rws_arena   memory; /* texts and values of the file */
    rws_giver  *giver;
    void       *context;
};

/* ---- the file */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at;
}

static rws_quoted quoted(rws_cell c)
{
    return rws__quote_prefix(c.text, c.length, RWS_QUOTED_SHORT);
}

/* A whole number from 0 to most. */
static bool read_count(rws_cell c, uint64_t most, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < c.length; i++) {
        if (!isdigit((unsigned char)c.text[i]) || *out > most / 10) return false;
        *out = 10 * *out + (uint64_t)(c.text[i] - '0');
    }
    return c.length > 0 && *out <= most;
}

/* The numbers of a value, with blanks between them. Returns how many there are; -1: something is not a finite number.
 * */
static int read_numbers(rws_cell c, float *out)
{
    int         n = 0;
    const char *end = c.text + c.length;
    for (const char *at = skip_blanks(c.text, end); at < end; at = skip_blanks(at, end), n++) {
        char       *stop;
        const float x = (float)g_ascii_strtod(at, &stop);
        if (stop == at || stop > end || (stop < end && !isspace((unsigned char)*stop)) || !isfinite(x)) return -1;
        if (out) out[n] = x;
        at = stop;
    }
    return n;
}

static rws_status add_known(struct rws_batch_given *g, const known *k, rws_error *err)
{
    if (g->n_file == g->file_capacity) {
        const size_t capacity = 2 * g->file_capacity + 64;
        known       *longer = realloc(g->file, capacity * sizeof *longer);
        if (!longer) return rws_no_memory(err, "given choices");
        g->file = longer;
        g->file_capacity = capacity;
    }
    g->file[g->n_file++] = *k;
    return RWS_OK;
}

/* Reads the line at `cells`, "datum,site,visit,value". The first line may have these names. */
static rws_status read_line(struct rws_batch_given *g, rws_cells *cells, bool first, rws_error *err)
{
    static const char *const names[] = {"datum", "site", "visit", "value"};
    const char              *path = cells->name;
    const int                line = cells->line;
    rws_cell                 c[4] = {0};
    known                    k = {.line = (uint32_t)line};
    uint64_t                 visit;
    for (int i = 0; i < 4; i++) {
        if (i && c[i - 1].last)
            return rws__refuse(err, path, line, "it has no %s; a line is datum,site,visit,value.", names[i]);
        RWS_TRY(rws__cells_read(cells, i + 1, &c[i]));
    }
    if (!c[3].last)
        return rws__refuse(err, path, line,
                           "it has more than four cells; numbers of a value have blanks between them.");
    if (first && c[0].length == 5 && strncmp(c[0].text, "datum", 5) == 0) return RWS_OK;
    if (!read_count(c[0], RWS_MAX_WHOLE - 1, &k.datum))
        return rws__refuse(err, path, line, "it has the datum \"%s\"; data are numbers from 0 to %d.",
                           quoted(c[0]).text, RWS_MAX_WHOLE - 1);
    if (!read_count(c[2], INT32_MAX, &visit))
        return rws__refuse(err, path, line, "it has the visit \"%s\"; visits are numbers, and the first is 0.",
                           quoted(c[2]).text);
    const int n = read_numbers(c[3], NULL);
    if (n < 1)
        return rws__refuse(err, path, line,
                           "it has the value \"%s\", which is not a finite number (or several with blanks "
                           "between them).",
                           quoted(c[3]).text);
    if (c[1].length == 0) return rws__refuse(err, path, line, "it names no site.");
    char  *site = rws__arena_try(&g->memory, c[1].length + 1);
    float *value = RWS_TRY_NEW(&g->memory, float, n);
    if (!site || !value) return rws_no_memory(err, "given choices");
    rws__cell_copy(&c[1], site);
    read_numbers(c[3], value);
    k.choice = (rws_choice){.site = site, .visit = (int)visit, .dim = n, .value = value};
    return add_known(g, &k, err);
}

static int by_datum(const void *a, const void *b)
{
    const known *x = a, *y = b;
    if (x->datum != y->datum) return x->datum < y->datum ? -1 : 1;
    const int sites = strcmp(x->choice.site, y->choice.site);
    return sites ? sites : (x->choice.visit > y->choice.visit) - (x->choice.visit < y->choice.visit);
}

static rws_status read_lines(struct rws_batch_given *g, const char *path, const uint8_t *bytes, size_t size,
                             rws_error *err)
{
    rws_cells cells;
    RWS_TRY(rws__cells_init(&cells, bytes, size, path, err));
    cells.separator = ','; /* a tab may stand between the numbers of a value */
    for (bool first = true; rws__cells_find_line(&cells); first = false) RWS_TRY(read_line(g, &cells, first, err));
    if (g->n_file == 0) return rws__refuse(err, path, 0, "gives no choices; a line is datum,site,visit,value.");
    qsort(g->file, g->n_file, sizeof *g->file, by_datum);
    for (size_t i = 1; i < g->n_file; i++)
        if (by_datum(&g->file[i - 1], &g->file[i]) == 0)
            return rws__refuse(err, path, g->file[i].line > g->file[i - 1].line ? g->file[i].line : g->file[i - 1].line,
                               "it gives a second value for site \"%s\" at visit %d of datum %llu.",
                               rws__quote_short(g->file[i].choice.site).text, g->file[i].choice.visit,
                               (unsigned long long)g->file[i].datum);
    return RWS_OK;
}

static rws_status read_file(rws_trainer *t, struct rws_batch_given *g, const char *path, rws_error *err)
{
    uint8_t *bytes;
    size_t   size;
    if (g->number < 0)
        return rws_fail(err, RWS_BAD_INPUT,
                        "Model %s does not number its data (it has no label \"" RWS_DATUM_LABEL
                        "\"), so that no file can give choices for them.",
                        t->program.model->name);
    RWS_TRY(rws__file_read(path, MAX_BYTES, &bytes, &size, err));
    bytes[size] = '\0'; /* the memory has one byte more; it ends the number that the file may end with */
    const rws_status status = read_lines(g, path, bytes, size, err);
    free(bytes);
    return status;
}

/* ---- the choices of a datum */

static rws_status add(struct rws_batch_given *g, const rws_choice *c, rws_error *err)
{
    if (g->n == g->capacity) {
        const uint32_t capacity = 2 * g->capacity + 64;
        rws_choice    *longer = realloc(g->list, capacity * sizeof *longer);
        if (!longer) return rws_no_memory(err, "given choices");
        g->list = longer;
        g->capacity = capacity;
    }
    g->list[g->n++] = *c;
    return RWS_OK;
}

static bool is_known(const float *value, int dim)
{
    for (int i = 0; i < dim; i++)
        if (!isnan(value[i])) return true;
    return false;
}

/* Adds the value that a label has for a visit, unless it is not known or the choices from `first` on have another. */
static rws_status add_label(struct rws_batch_given *g, uint32_t first, const char *site, int visit, const float *value,
                            int dim, rws_error *err)
{
    if (!is_known(value, dim)) return RWS_OK;
    for (uint32_t i = first; i < g->n; i++)
        if (g->list[i].visit == visit && strcmp(g->list[i].site, site) == 0) return RWS_OK;
    return add(g, &(rws_choice){.site = site, .visit = visit, .dim = dim, .value = value}, err);
}

static rws_status add_labels(rws_trainer *t, struct rws_batch_given *g, int datum, rws_error *err)
{
    const uint32_t first = g->start[datum], end = g->n; /* of the file's choices */
    for (int f = 0; f < t->program.setup.n_fields; f++) {
        const rws_field *field = &t->program.setup.fields[f];
        const char      *site = t->program.setup.label_site[f];
        const float     *row = t->batch[f] + (size_t)datum * (size_t)field->dim;
        if (!site) continue;
        if (!field->most) RWS_TRY(add_label(g, first == end ? g->n : first, site, 0, row, field->dim, err));
        if (!field->most || isnan(row[0])) continue;
        if (!(row[0] >= 0 && row[0] <= (float)field->most && row[0] == rintf(row[0])))
            return rws_fail(err, RWS_BAD_INPUT,
                            "The label \"%s\" of datum %d has a length of %g; it must be a whole number from 0 to %d.",
                            field->name, datum, (double)row[0], field->most);
        for (int i = 0; i < (int)row[0]; i++)
            RWS_TRY(add_label(g, first == end ? g->n : first, site, i, row + 1 + (size_t)i * (size_t)field->item,
                              field->item, err));
    }
    return RWS_OK;
}

static rws_status add_file(rws_trainer *t, struct rws_batch_given *g, int datum, rws_error *err)
{
    const float number = t->batch[g->number][datum];
    size_t      low = 0, high = g->n_file;
    if (!(number >= 0)) return RWS_OK;
    if (number >= RWS_MAX_WHOLE)
        return rws_fail(err, RWS_BAD_INPUT,
                        "The label \"%s\" is %.0f; choices are given to data with numbers from 0 to %d, since a float "
                        "holds the number.",
                        t->program.setup.fields[g->number].name, (double)number, RWS_MAX_WHOLE - 1);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (g->file[middle].datum < (uint64_t)number) low = middle + 1;
        else high = middle;
    }
    for (; low < g->n_file && g->file[low].datum == (uint64_t)number; low++) RWS_TRY(add(g, &g->file[low].choice, err));
    return RWS_OK;
}

static rws_status call_giver(rws_trainer *t, struct rws_batch_given *g, int datum, rws_error *err)
{
    const float      *fields[t->program.setup.n_fields];
    const rws_choice *choices = NULL;
    for (int f = 0; f < t->program.setup.n_fields; f++)
        fields[f] = t->batch[f] + (size_t)datum * (size_t)t->program.setup.fields[f].dim;
    const int n = g->giver(g->context, t->program.iteration, datum, fields, &choices);
    if (n == -1)
        return rws_fail(err, RWS_BAD_INPUT, "The function that gives choices failed for datum %d of iteration %llu.",
                        datum, (unsigned long long)t->program.iteration + 1);
    rws_error why;
    if (rws__choices_check(choices, n, &why) != RWS_OK)
        return rws_fail(err, RWS_BAD_INPUT, "The function that gives choices is wrong about datum %d: %s", datum,
                        why.text);
    for (int i = 0; i < n; i++) RWS_TRY(add(g, &choices[i], err));
    return RWS_OK;
}

/* The function may fail on one rank alone. The ranks therefore agree before any of them begins the phase. */
static rws_status gather_from_giver(rws_trainer *t, struct rws_batch_given *g, rws_status status, rws_error *err)
{
    for (int d = 0; d < t->program.config.batch && status == RWS_OK; d++) {
        g->start[d] = g->n;
        status = call_giver(t, g, d, err);
    }
    g->start[t->program.config.batch] = g->n;
    return rws__trainer_agree(t, status, err);
}

rws_status rws__given_gather(rws_trainer *t, rws_status status, rws_error *err)
{
    struct rws_batch_given *g = t->given;
    if (g) g->n = 0;
    if (g && g->giver) return gather_from_giver(t, g, status, err);
    if (!g || status != RWS_OK) return status;
    for (int d = 0; d < t->program.config.batch; d++) {
        g->start[d] = g->n;
        if (g->n_file) RWS_TRY(add_file(t, g, d, err));
        RWS_TRY(add_labels(t, g, d, err));
    }
    g->start[t->program.config.batch] = g->n;
    return RWS_OK;
}

void rws__given_put(const rws_trainer *t, int first, rws_pass *pass)
{
    const struct rws_batch_given *g = t->given;
    if (!g || !g->n) return;
    pass->given = g->list;
    pass->given_start = g->start + first;
}

/* ---- sites that are named outside of the programs */

/* Name i of the sites that have given choices or a gradient of their own; names may come twice. NULL beyond the last.
 * */
static const char *named(const rws_trainer *t, int i)
{
    const rws_setup *s = &t->program.setup;
    if (i < s->n_gradients) return s->gradients[i].site;
    i -= s->n_gradients;
    for (int f = 0; f < s->n_fields; f++)
        if (s->label_site[f] && i-- == 0) return s->label_site[f];
    return t->given && (size_t)i < t->given->n_file ? t->given->file[i].choice.site : NULL;
}

/* The guide does not draw data, so that no particle would take a value that is given for them. */
static rws_status check_sites(const rws_trainer *t, rws_error *err)
{
    const char *site;
    for (int i = t->program.setup.n_gradients; (site = named(t, i)); i++)
        for (int f = 0; f < t->program.setup.n_fields; f++)
            if (!t->program.setup.fields[f].label && strcmp(t->program.setup.fields[f].name, site) == 0)
                return rws_fail(err, RWS_BAD_INPUT, "Choices are given for site \"%s\", which is data.",
                                rws__quote_short(site).text);
    return RWS_OK;
}

/* ---- life */

static bool takes_labels(const rws_estimator *e)
{
    for (int i = 0; i < e->n_phases; i++)
        if (e->phases[i].labels) return true;
    return false;
}

static rws_status check_method(const rws_trainer *t, rws_error *err)
{
    const rws_estimator *e = t->program.method.estimator;
    rws_name_list        names = {0};
    if (takes_labels(e)) return RWS_OK;
    for (int i = 0; rws_estimators[i]; i++)
        if (takes_labels(rws_estimators[i])) rws__name_list_add(&names, rws_estimators[i]->name);
    return rws_fail(err, RWS_BAD_INPUT, "Method %s cannot learn from given choices (%s). These methods can: %s.",
                    e->name, e->n_phases ? "it relaxes choices" : "it has no guide", names.text);
}

static rws_status given_new(rws_trainer *t, rws_error *err)
{
    if (t->given) return RWS_OK;
    RWS_TRY(check_method(t, err));
    struct rws_batch_given *g = t->given = calloc(1, sizeof *g);
    if (!g) return rws_no_memory(err, "given choices");
    g->start = calloc((size_t)t->program.config.batch + 1, sizeof *g->start);
    g->number = -1;
    for (int f = 0; f < t->program.setup.n_fields; f++)
        if (t->program.setup.fields[f].label && strcmp(t->program.setup.fields[f].name, RWS_DATUM_LABEL) == 0)
            g->number = f;
    if (g->start) return RWS_OK;
    rws__given_close(t);
    return rws_no_memory(err, "given choices");
}

rws_status rws__given_open(rws_trainer *t, rws_error *err)
{
    const char *path = rws__program_given_file(&t->program);
    bool        marked = false;
    for (int f = 0; f < t->program.setup.n_fields; f++) marked |= t->program.setup.label_site[f] != NULL;
    if (!path && !marked) return RWS_OK;
    RWS_TRY(given_new(t, err));
    if (path) RWS_TRY(read_file(t, t->given, path, err));
    return check_sites(t, err);
}

void rws__given_close(rws_trainer *t)
{
    struct rws_batch_given *g = t->given;
    if (!g) return;
    free(g->list);
    free(g->start);
    free(g->file);
    rws__arena_free(&g->memory);
    free(g);
    t->given = NULL;
}

rws_status rws_trainer_give(rws_trainer *t, rws_giver *give, void *context, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    if (!give && !t->given) return RWS_OK;
    RWS_TRY(rws__trainer_agree(t, given_new(t, err), err));
    t->given->giver = give;
    t->given->context = context;
    return RWS_OK;
}

static bool is_visited(const rws_trainer *t, const char *site)
{
    for (int i = 0; i < t->n_engines; i++)
        if (rws__engine_has_site(t->engines[i], site)) return true;
    return false;
}

const char *rws_trainer_unvisited(const rws_trainer *t)
{
    const char *site, *last = NULL;
    for (int i = 0; t && (site = named(t, i)); last = site, i++)
        if ((!last || strcmp(site, last) != 0) && !is_visited(t, site)) return site;
    return NULL;
}
