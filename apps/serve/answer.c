#include "serve/answer.h"

#include "ask/marginal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MOMENTS = 8 /* of a choice; a picture or a code has more */, MOST_PARTICLES = 1000 };

/* ---- values */

/* rws_buffer_number has 9 digits, as many as a float needs to be read back without a loss. */
static void write_value(rws_buffer *b, const float *value, int dim)
{
    if (dim == 1) {
        rws_buffer_number(b, (double)value[0]);
        return;
    }
    rws_buffer_open(b, '[');
    for (int i = 0; i < dim; i++) rws_buffer_number(b, (double)value[i]);
    rws_buffer_close(b, ']');
}

/* A series is an array of its items, as a question has it. Its numbers are the number of items, then the items. */
static void write_field(rws_buffer *b, const rws_field *f, const float *value)
{
    if (f->most == 0) {
        write_value(b, value, f->dim);
        return;
    }
    rws_buffer_open(b, '[');
    for (int i = 0; i < (int)value[0] && i < f->most; i++) write_value(b, value + 1 + i * f->item, f->item);
    rws_buffer_close(b, ']');
}

static void write_report(rws_buffer *b, const rws_reported *r)
{
    if (r->text) rws_buffer_text(b, r->text);
    else write_value(b, r->value, r->dim);
}

/* A name that was reported several times has an array. */
static void write_reports(rws_buffer *b, const rws_reported *list, int n)
{
    rws_buffer_open(b, '{');
    for (int i = 0; i < n; i++) {
        bool first = true, several = false;
        for (int k = 0; k < i && first; k++) first = strcmp(list[k].name, list[i].name) != 0;
        for (int k = i + 1; k < n && first && !several; k++) several = strcmp(list[k].name, list[i].name) == 0;
        if (!first) continue;
        rws_buffer_key(b, list[i].name);
        if (several) rws_buffer_open(b, '[');
        for (int k = i; k < n; k++)
            if (strcmp(list[k].name, list[i].name) == 0) write_report(b, &list[k]);
        if (several) rws_buffer_close(b, ']');
    }
    rws_buffer_close(b, '}');
}

static void write_choices(rws_buffer *b, const rws_choice *list, int n)
{
    rws_buffer_open(b, '[');
    for (int i = 0; i < n; i++) {
        rws_buffer_open(b, '{');
        rws_buffer_key_text(b, "site", list[i].site);
        rws_buffer_key_number(b, "visit", list[i].visit);
        rws_buffer_key(b, "value");
        write_value(b, list[i].value, list[i].dim);
        rws_buffer_close(b, '}');
    }
    rws_buffer_close(b, ']');
}

/* ---- marginals: the distribution of each choice and of each report that is a number */

static void write_values(const rws_marginal *m, rws_buffer *b)
{
    rws_buffer_key(b, "values");
    rws_buffer_open(b, '[');
    for (int i = 0; i < m->n_values; i++) {
        rws_buffer_open(b, '{');
        rws_buffer_key_number(b, "value", m->values[i].value);
        rws_buffer_key_number(b, "posterior", m->values[i].posterior);
        rws_buffer_key_number(b, "guide", m->values[i].guide);
        rws_buffer_close(b, '}');
    }
    rws_buffer_close(b, ']');
}

static void write_marginal(const rws_marginal *m, rws_buffer *b)
{
    rws_buffer_open(b, '{');
    rws_buffer_key(b, m->report ? "report" : "site");
    rws_buffer_text(b, m->name);
    rws_buffer_key_number(b, "visit", m->visit);
    rws_buffer_key_number(b, "posterior", m->posterior);
    rws_buffer_key_number(b, "guide", m->guide);
    if (m->values) write_values(m, b);
    else {
        rws_buffer_key(b, "mean");
        rws_buffer_numbers(b, m->mean, m->dim);
        rws_buffer_key(b, "sd");
        rws_buffer_numbers(b, m->sd, m->dim);
    }
    rws_buffer_close(b, '}');
}

static void write_marginals(const rws_answers *a, rws_buffer *b)
{
    rws_marginals all;
    rws_error     err;
    if (rws_marginals_make(a, true, MOST_MOMENTS, &all, &err) != RWS_OK) b->starved = true;
    rws_buffer_key(b, "marginals");
    rws_buffer_open(b, '[');
    for (int i = 0; i < all.n; i++) write_marginal(&all.list[i], b);
    rws_buffer_close(b, ']');
    rws_marginals_release(&all);
}

/* ---- answers */

static int by_weight(const void *a, const void *b)
{
    const rws_weighted *const *x = a, *const *y = b;
    if ((*x)->weight != (*y)->weight) return (*x)->weight < (*y)->weight ? 1 : -1;
    return *x < *y ? -1 : *x > *y;
}

static void write_particles(const rws_answers *a, bool given, rws_buffer *b)
{
    const rws_weighted **list = calloc((size_t)a->n_weighted + 1, sizeof *list);
    if (!list) b->starved = true;
    rws_buffer_key(b, "particles_listed");
    rws_buffer_open(b, '[');
    for (int i = 0; i < a->n_weighted && list; i++) list[i] = &a->particles[i];
    if (list) qsort(list, (size_t)a->n_weighted, sizeof *list, by_weight);
    for (int i = 0; i < a->n_weighted && i < MOST_PARTICLES && list; i++) {
        rws_buffer_open(b, '{');
        rws_buffer_key_number(b, "weight", list[i]->weight);
        rws_buffer_key_number(b, "count", list[i]->count);
        rws_buffer_key_number(b, "answer", list[i]->answer);
        rws_buffer_key_number(b, "log_p", list[i]->log_p);
        rws_buffer_key_number(b, "log_q", list[i]->log_q);
        if (given) rws_buffer_key_number(b, "log_given", list[i]->log_given);
        rws_buffer_key(b, "choices");
        write_choices(b, list[i]->choices, list[i]->n_choices);
        rws_buffer_close(b, '}');
    }
    rws_buffer_close(b, ']');
    free(list);
}

void rws_answer_write(const rws_answers *a, const rws_body *posed, rws_buffer *out)
{
    rws_buffer_open(out, '{');
    rws_buffer_key_number(out, "particles", a->n_particles);
    rws_buffer_key_number(out, "ess", a->ess);
    rws_buffer_key_number(out, "log_evidence", a->log_evidence);
    /* An exact number that the model cannot compute has no key; null means that the datum is impossible. */
    if (!isnan(a->exact_log_evidence)) rws_buffer_key_number(out, "exact_log_evidence", a->exact_log_evidence);
    rws_buffer_key_number(out, "n_answers", a->n);
    rws_buffer_key(out, "answers");
    rws_buffer_open(out, '[');
    for (int i = 0; i < a->n && i < posed->top; i++) {
        rws_buffer_open(out, '{');
        rws_buffer_key_number(out, "posterior", a->list[i].posterior);
        if (!isnan(a->list[i].exact)) rws_buffer_key_number(out, "exact", a->list[i].exact);
        rws_buffer_key_number(out, "guide", a->list[i].guide);
        rws_buffer_key(out, "reports");
        write_reports(out, a->list[i].reports, a->list[i].n_reports);
        rws_buffer_close(out, '}');
    }
    rws_buffer_close(out, ']');
    if (posed->marginals) write_marginals(a, out);
    if (posed->listed) write_particles(a, posed->n_choices > 0, out);
    rws_buffer_close(out, '}');
}

void rws_sample_write(const rws_posterior *p, const rws_sample *s, bool choices, rws_buffer *out)
{
    rws_field f;
    bool      text = false; /* the text is the datum, and its numbers say nothing */
    for (int i = 0; i < s->n_reports; i++) text |= s->reports[i].text != NULL;
    rws_buffer_open(out, '{');
    rws_buffer_key(out, "reports");
    write_reports(out, s->reports, s->n_reports);
    rws_buffer_key(out, "fields");
    rws_buffer_open(out, '{');
    for (int i = 0; rws_posterior_field(p, i, &f); i++) {
        if (f.label || text || !s->fields[i]) continue;
        rws_buffer_key(out, f.name);
        write_field(out, &f, s->fields[i]);
    }
    rws_buffer_close(out, '}');
    if (choices) {
        rws_buffer_key(out, "choices");
        write_choices(out, s->choices, s->n_choices);
    }
    rws_buffer_close(out, '}');
}
