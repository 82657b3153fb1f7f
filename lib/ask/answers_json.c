#include "ask/answers_json.h"

#include "ask/ask.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

static void write_value(rws_buffer *b, const float *value, int dim)
{
    if (dim == 1) {
        rws__buffer_number(b, (double)value[0]);
        return;
    }
    rws__buffer_open(b, '[');
    for (int i = 0; i < dim; i++) rws__buffer_number(b, (double)value[i]);
    rws__buffer_close(b, ']');
}

/* A series is an array of its items, as a question has it. Its numbers are the number of items, then the items. */
static void write_field(rws_buffer *b, const rws_field *f, const float *value)
{
    if (f->most == 0) {
        write_value(b, value, f->dim);
        return;
    }
    rws__buffer_open(b, '[');
    for (int i = 0; i < (int)value[0] && i < f->most; i++) write_value(b, value + 1 + i * f->item, f->item);
    rws__buffer_close(b, ']');
}

static void write_report(rws_buffer *b, const rws_reported *r)
{
    if (r->text) rws__buffer_text(b, r->text);
    else write_value(b, r->value, r->dim);
}

/* A name that was reported several times has an array. */
static void write_reports(rws_buffer *b, const rws_reported *list, int n)
{
    rws__buffer_open(b, '{');
    for (int i = 0; i < n; i++) {
        bool first = true, several = false;
        for (int k = 0; k < i && first; k++) first = strcmp(list[k].name, list[i].name) != 0;
        for (int k = i + 1; k < n && first && !several; k++) several = strcmp(list[k].name, list[i].name) == 0;
        if (!first) continue;
        rws__buffer_key(b, list[i].name);
        if (several) rws__buffer_open(b, '[');
        for (int k = i; k < n; k++)
            if (strcmp(list[k].name, list[i].name) == 0) write_report(b, &list[k]);
        if (several) rws__buffer_close(b, ']');
    }
    rws__buffer_close(b, '}');
}

void rws__choices_write(const rws_choice *list, int n, rws_buffer *b)
{
    rws__buffer_open(b, '[');
    for (int i = 0; i < n; i++) {
        rws__buffer_open(b, '{');
        rws__buffer_key_text(b, "site", list[i].site);
        rws__buffer_key_number(b, "visit", list[i].visit);
        rws__buffer_key(b, "value");
        write_value(b, list[i].value, list[i].dim);
        rws__buffer_close(b, '}');
    }
    rws__buffer_close(b, ']');
}

/* ---- marginals: the distribution of each choice and of each report that is a number */

static void write_values(const rws_marginal *m, rws_buffer *b)
{
    rws__buffer_open_key(b, "values", '[');
    for (int i = 0; i < m->n_values; i++) {
        rws__buffer_open(b, '{');
        rws__buffer_key_number(b, "value", m->values[i].value);
        rws__buffer_key_exact(b, "posterior", m->values[i].posterior);
        rws__buffer_key_exact(b, "error", m->values[i].error);
        rws__buffer_key_exact(b, "guide", m->values[i].guide);
        rws__buffer_close(b, '}');
    }
    rws__buffer_close(b, ']');
}

static void write_numbers(const char *key, const double *numbers, int n, rws_buffer *b)
{
    rws__buffer_open_key(b, key, '[');
    for (int i = 0; i < n; i++) rws__buffer_exact(b, numbers[i]);
    rws__buffer_close(b, ']');
}

static void write_marginal(const rws_marginal *m, rws_buffer *b)
{
    rws__buffer_open(b, '{');
    rws__buffer_key_text(b, m->report ? "report" : "site", m->name);
    rws__buffer_key_number(b, "visit", m->visit);
    rws__buffer_key_exact(b, "posterior", m->posterior);
    rws__buffer_key_exact(b, "error", m->error);
    rws__buffer_key_exact(b, "guide", m->guide);
    if (m->values) write_values(m, b);
    else {
        write_numbers("mean", m->mean, m->dim, b);
        write_numbers("mean_error", m->mean_error, m->dim, b);
        write_numbers("sd", m->sd, m->dim, b);
    }
    rws__buffer_close(b, '}');
}

static void write_marginals(const rws_answers *a, int most_dim, rws_buffer *b)
{
    rws_marginals *all;
    rws_error      err;
    if (rws_marginals_new(a, most_dim, &all, &err) != RWS_OK) b->starved = true;
    rws__buffer_open_key(b, "marginals", '[');
    for (int i = 0; all && i < all->n; i++) write_marginal(&all->list[i], b);
    rws__buffer_close(b, ']');
    rws_marginals_free(all);
}

/* ---- answers */

static void write_members(rws_member_of of, const void *structure, bool given, rws_buffer *b)
{
    const rws_answer_member *m;
    for (int i = 0; (m = rws_answer_member_at(of, i)); i++) {
        const char *text = rws_answer_member_text(m, structure);
        if (text) rws__buffer_key_text(b, m->name, text);
        else if (m->when == RWS_MEMBER_GIVEN && !given) continue;
        else if (m->when == RWS_MEMBER_KNOWN && !rws__member_is_known(m, structure)) continue;
        else rws__buffer_key_exact(b, m->name, rws_answer_member_number(m, structure));
    }
}

static bool has_given(const rws_answers *a)
{
    for (int i = 0; i < a->n_weighted; i++)
        for (int k = 0; k < a->particles[i].n_choices; k++)
            if (a->particles[i].choices[k].given) return true;
    return false;
}

static void write_particles(const rws_answers *a, int n, rws_buffer *b)
{
    const bool given = has_given(a);
    rws__buffer_open_key(b, "particles_listed", '[');
    for (int i = 0; i < n && i < a->n_weighted; i++) {
        const rws_weighted *w = &a->particles[i];
        rws__buffer_open(b, '{');
        write_members(RWS_OF_PARTICLE, w, given, b);
        rws__buffer_key(b, "choices");
        rws__choices_write(w->choices, w->n_choices, b);
        rws__buffer_close(b, '}');
    }
    rws__buffer_close(b, ']');
}

static void write_answer(const rws_answer *a, rws_buffer *b)
{
    rws__buffer_open(b, '{');
    write_members(RWS_OF_ANSWER, a, false, b);
    rws__buffer_key(b, "reports");
    write_reports(b, a->reports, a->n_reports);
    rws__buffer_close(b, '}');
}

void rws__answers_write(const rws_answers *a, const rws_answers_shown *parts, rws_buffer *out)
{
    rws__buffer_key_number(out, "particles", a->n_particles);
    write_members(RWS_OF_ANSWERS, a, false, out);
    rws__buffer_key_number(out, "n_answers", a->n);
    rws__buffer_open_key(out, "answers", '[');
    for (int i = 0; i < a->n && i < parts->answers; i++) write_answer(&a->list[i], out);
    rws__buffer_close(out, ']');
    if (parts->marginals > 0) write_marginals(a, parts->marginals, out);
    if (parts->particles > 0) write_particles(a, parts->particles, out);
}

rws_status rws_answers_json(const rws_answers *a, const rws_answers_shown *parts, char **out, rws_error *err)
{
    rws_buffer b = {0};
    RWS_NEED(out, err);
    *out = NULL;
    RWS_NEED(a, err);
    RWS_NEED(parts, err);
    rws__buffer_open(&b, '{');
    rws__answers_write(a, parts, &b);
    rws__buffer_close(&b, '}');
    if (!b.starved) *out = strdup(b.bytes);
    rws__buffer_release(&b);
    return *out ? RWS_OK : rws_no_memory(err, "answers as JSON");
}

void rws__sample_write(const rws_posterior *p, const rws_sample *s, bool choices, rws_buffer *out)
{
    rws_field f;
    bool      text = false; /* the text is the datum, and its numbers say nothing */
    for (int i = 0; i < s->n_reports; i++) text |= s->reports[i].text != NULL;
    rws__buffer_open(out, '{');
    rws__buffer_key(out, "reports");
    write_reports(out, s->reports, s->n_reports);
    rws__buffer_open_key(out, "fields", '{');
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        if (f.label || text || !s->fields[i]) continue;
        rws__buffer_key(out, f.name);
        write_field(out, &f, s->fields[i]);
    }
    rws__buffer_close(out, '}');
    if (choices) {
        rws__buffer_key(out, "choices");
        rws__choices_write(s->choices, s->n_choices, out);
    }
    rws__buffer_close(out, '}');
}

/* ---- calibration */

void rws__calibrated_write(const rws_calibrated *c, rws_buffer *out)
{
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "quantity", c->name);
    rws__buffer_key_text(out, "by", c->guide ? "guide" : "weights");
    rws__buffer_key_number(out, "ranks", c->n);
    rws__buffer_key_exact(out, "p", c->p);
    rws__buffer_key_exact(out, "p_adjusted", c->p_adjusted);
    write_numbers("coverage", c->coverage, RWS_CALIBRATION_INTERVALS, out);
    if (!isnan(c->confidence_error)) {
        rws__buffer_key_exact(out, "ece", c->confidence_error);
        rws__buffer_key_exact(out, "accuracy", c->accuracy);
    }
    rws__buffer_open_key(out, "histogram", '[');
    for (int i = 0; i < RWS_CALIBRATION_BINS; i++) rws__buffer_number(out, c->histogram[i]);
    rws__buffer_close(out, ']');
    if (!isnan(c->p)) {
        write_numbers("difference", c->difference, RWS_CALIBRATION_GRID - 1, out);
        write_numbers("low", c->low, RWS_CALIBRATION_GRID - 1, out);
        write_numbers("high", c->high, RWS_CALIBRATION_GRID - 1, out);
    }
    rws__buffer_close(out, '}');
}
