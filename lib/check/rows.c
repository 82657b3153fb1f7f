/* rows.c - data that no particle explains, and the site that forbids them. */
#include "check/check.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 200 /* data of a pass */
#define PARTICLES 10

static const char *split_name(rws_split split)
{
    return split == RWS_TEST ? "test" : "training";
}

/* ---- one datum */

static bool is_impossible(const rws_scores *s, int d)
{
    for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++)
        if (s->log_p[i] > -INFINITY) return false;
    return true;
}

static void look_for_forbidding(void *context, const rws_row_term *t)
{
    if (!t->guided && t->value == -INFINITY) *(const char **)context = t->site;
}

static int field_of(const rws_setup *s, const char *site)
{
    for (int f = 0; f < s->n_fields; f++)
        if (strcmp(s->fields[f].name, site) == 0) return f;
    return -1;
}

/* Writes "y = -3", "y = -3 2 0 …" or, for a site that is no field, nothing. */
static void write_value(const rws_setup *s, const char *site, int d, const float *const *fields, char out[static 100])
{
    const int f = field_of(s, site), shown = 4;
    out[0] = '\0';
    if (f < 0) return;
    const int    dim = s->fields[f].dim;
    const float *x = fields[f] + (size_t)d * (size_t)dim;
    int          n = snprintf(out, 100, " (%.40s =", site);
    for (int i = 0; i < dim && i < shown && n < 80; i++) n += snprintf(out + n, 100 - (size_t)n, " %.4g", (double)x[i]);
    snprintf(out + n, 100 - (size_t)n, "%s)", dim > shown ? " …" : "");
}

typedef struct {
    int         n, list[5]; /* data that are impossible, the first of them by place */
    const char *site;       /* of the first */
    char        value[100];
} forbidden;

static rws_status note(rws_review *r, int d, int first, const float *const *fields, forbidden *out, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(r->engine);
    if (out->n < 5) out->list[out->n] = first + d;
    if (out->n++ > 0) return RWS_OK;
    if (rws__engine_terms(r->engine, (int)s->start[d], look_for_forbidding, &out->site) != RWS_OK)
        return rws_no_memory(err, "a review");
    if (out->site) write_value(&r->program->setup, out->site, d, fields, out->value);
    return RWS_OK;
}

/* Runs passes over n data. A pass that fails ends it, with the reason in *why. */
static rws_status find(rws_review *r, int n, const float *const *fields, forbidden *out, rws_error *why, rws_error *err)
{
    const rws_setup *s = &r->program->setup;
    const float     *part[RWS_FIELDS];
    *out = (forbidden){0};
    why->text[0] = '\0';
    for (int first = 0; first < n; first += AT_ONCE) {
        const int m = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (int f = 0; f < s->n_fields; f++) part[f] = fields[f] + (size_t)first * (size_t)s->fields[f].dim;
        rws_pass pass = rws__program_pass(r->program, RWS_WAKE, m, PARTICLES, part, rws__review_key(r, 5));
        pass.first_datum = (uint32_t)first;
        const rws_status status = rws__engine_forward(r->engine, &pass, why);
        if (status != RWS_OK) return status == RWS_STOPPED ? status : RWS_OK;
        for (int d = 0; d < m; d++)
            if (is_impossible(rws__engine_scores(r->engine), d)) RWS_TRY(note(r, d, first, part, out, err));
    }
    return RWS_OK;
}

/* A stream like that which makes the data of an iteration. */
static rws_random stream_of(const rws_review *r, uint64_t iteration)
{
    return rws__random_new(rws__key_for(r->program->config.seed, iteration, RWS_KEY_DATA, 0), 0);
}

static void write_forbidden(const forbidden *f, rws_datum_name name, char *out, size_t size)
{
    out[0] = '\0';
    if (f->n && f->site)
        snprintf(out, size, "%s%s, which is impossible at site \"%.100s\"", name.text, f->value, f->site);
    else if (f->n) snprintf(out, size, "%s", name.text);
}

rws_status rws__find_impossible(rws_review *r, uint64_t iteration, int n, const float *const *fields, char *out,
                                size_t size, rws_error *err)
{
    forbidden f;
    rws_error why;
    RWS_TRY(find(r, n, fields, &f, &why, err));
    write_forbidden(
        &f, rws__program_datum(r->program, RWS_TRAIN, iteration * (uint64_t)n, f.list[0], stream_of(r, iteration)), out,
        size);
    return RWS_OK;
}

/* ---- a split */

/* "datum 3, datum 17, …" */
static void write_names(const rws_review *r, rws_split split, const forbidden *f, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < f->n && i < 5 && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "",
                              rws__program_datum(r->program, split, 0, f->list[i], stream_of(r, 0)).text);
    if (f->n > 5 && n < size) snprintf(out + n, size - n, ", …");
}

rws_status rws__check_rows(rws_review *r, rws_split split, int n, const float *const *fields, rws_error *err)
{
    forbidden f;
    rws_error why;
    char      text[480], names[400];
    RWS_TRY(find(r, n, fields, &f, &why, err));
    if (why.text[0])
        return rws__review_add(r, "program", RWS_MISTAKE, NULL, err, "With %s data: %s", split_name(split), why.text);
    if (!f.n || r->program->model->defaults.impossible) return RWS_OK;
    write_forbidden(&f, rws__program_datum(r->program, split, 0, f.list[0], stream_of(r, 0)), text, sizeof text);
    write_names(r, split, &f, names, sizeof names);
    return rws__review_add(r, "impossible", f.n == n ? RWS_MISTAKE : RWS_WARNING, f.site, err,
                           "No particle explains %d of %d %s data (%s, counted from 0); the first is %s. Training "
                           "leaves them out, and the evidence of the rest looks better than "
                           "that of all. Correct or remove these data, or give them some probability.",
                           f.n, n, split_name(split), names, text);
}

/* ---- the function that makes data */

static rws_status make_data(const rws_review *r, int n, float *const *fields, rws_error *why)
{
    rws_random random = stream_of(r, 0);
    return rws__setup_make_data(&r->program->setup, r->program->model, r->program->state, RWS_TRAIN, 0, n, &random,
                                fields, why);
}

/* Adds a finding for each parameter whose numbers are not those of before, plus `more`. */
static rws_status compare_values(rws_review *r, const float *before, float more, const char *who, rws_error *err)
{
    const rws_params *p = &r->program->setup.params;
    rws_status        status = RWS_OK;
    for (int i = 0; i < p->n && status == RWS_OK; i++) {
        const rws_param *param = p->list[i];
        bool             same = true;
        for (size_t k = param->offset; k < param->offset + rws__param_size(param); k++)
            same &= p->value[k] == before[k] + more || p->value[k] != p->value[k];
        if (!same)
            status = rws__review_add(r, "writes", RWS_MISTAKE, param->name, err,
                                     "%s writes to the parameter \"%s\". Only setup and em may; here it undoes what "
                                     "training learns.",
                                     who, param->name);
    }
    return status;
}

rws_status rws__check_kept(rws_review *r, rws_error *err)
{
    const rws_status status = compare_values(r, r->values, 0, "A program", err);
    memcpy(r->program->setup.params.value, r->values, r->program->setup.params.size * sizeof(float));
    rws__program_changed(r->program);
    return status;
}

/* `data` is called with other numbers than those of the run, so that it is seen also if it writes these. */
rws_status rws__check_writes(rws_review *r, rws_error *err)
{
    const rws_setup *s = &r->program->setup;
    rws_params      *p = &r->program->setup.params;
    float           *fields[RWS_FIELDS];
    rws_error        why;
    for (int f = 0; f < s->n_fields; f++) {
        fields[f] = RWS_TRY_NEW(&r->memory, float, s->fields[f].dim);
        if (!fields[f]) return rws_no_memory(err, "a datum");
    }
    for (size_t i = 0; i < p->size; i++) p->value[i] = r->values[i] + 0.125f;
    (void)!make_data(r, 1, fields, &why);
    const rws_status status = compare_values(r, r->values, 0.125f, "The function `data`", err);
    memcpy(p->value, r->values, p->size * sizeof(float));
    rws__program_changed(r->program);
    return status;
}

rws_status rws__check_data(rws_review *r, int n, float *const *fields, rws_error *err)
{
    rws_error        why;
    const rws_status status = make_data(r, n, fields, &why);
    if (status == RWS_OK) return RWS_OK;
    r->hopeless = true;
    return rws__review_add(r, "program", RWS_MISTAKE, NULL, err, "%s", why.text);
}
