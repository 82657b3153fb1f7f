/* question.c - the datum of a question, and the choices that it gives. */
#include "ask/ask.h"

#include "base/error.h"
#include "base/quote.h"

#include <stdlib.h>
#include <string.h>

/* ---- the datum of a question */

bool rws__program_field(const rws_program *p, int i, rws_field *out)
{
    if (!out || i < 0 || i >= p->setup.n_fields) return false;
    *out = p->setup.fields[i];
    return true;
}

static rws_status check_fields(const rws_program *p, const rws_question *q, bool inputs, float *const *fields,
                               rws_error *err)
{
    if (q->n_fields && q->n_fields != p->setup.n_fields)
        return rws_fail(err, RWS_BAD_INPUT, "The question has %d fields; model %s declares %d.", q->n_fields,
                        p->model->name, p->setup.n_fields);
    for (int f = 0; f < p->setup.n_fields; f++) {
        const rws_field *field = &p->setup.fields[f];
        if (q->n_fields && q->dims && q->fields[f] && q->dims[f] != field->dim)
            return rws_fail(err, RWS_BAD_INPUT, "The question has %d numbers for the field \"%s\", which has %d.",
                            q->dims[f], field->name, field->dim);
        if (!q->fields[f] && (inputs ? field->input : !field->label))
            return rws_fail(err, RWS_BAD_INPUT, "The question has no value for the %s \"%s\".",
                            field->input ? "input" : "field", field->name);
        if (q->fields[f]) memcpy(fields[f], q->fields[f], (size_t)field->dim * sizeof(float));
    }
    return RWS_OK;
}

static void copy_datum(const rws_program *p, float *const *data, int datum, float *const *fields)
{
    for (int f = 0; f < p->setup.n_fields; f++) {
        const size_t dim = (size_t)p->setup.fields[f].dim;
        memcpy(fields[f], data[f] + (size_t)datum * dim, dim * sizeof(float));
    }
}

rws_status rws__test_make(const rws_program *p, int n, float **data, rws_error *err)
{
    memset(data, 0, (size_t)p->setup.n_fields * sizeof *data);
    for (int f = 0; f < p->setup.n_fields; f++) {
        data[f] = calloc((size_t)n * (size_t)p->setup.fields[f].dim, sizeof(float));
        if (!data[f]) return rws_no_memory(err, "the test data");
    }
    return rws__program_make_test(p, n, data, err);
}

void rws__test_release(const rws_program *p, float **data)
{
    for (int f = 0; f < p->setup.n_fields; f++) free(data[f]);
}

/* Makes a test datum with the numbers that evaluations see. Evaluations make all test data in one call of the model's
 * function, so that as many are made here. */
static rws_status make_test(const rws_program *p, int datum, float *const *fields, rws_error *err)
{
    float           *data[p->setup.n_fields + 1];
    const rws_status status = rws__test_make(p, datum < p->n_test ? p->n_test : datum + 1, data, err);
    if (status == RWS_OK) copy_datum(p, data, datum, fields);
    rws__test_release(p, data);
    return status;
}

static rws_status find_test(const rws_program *p, float *const *test, int datum, float *const *fields, rws_error *err)
{
    if (datum < 0) return rws_fail(err, RWS_BAD_INPUT, "There is no test datum %d; they are counted from 0.", datum);
    if (datum >= RWS_MAX_TEST)
        return rws_fail(err, RWS_BAD_INPUT, "There is no test datum %d; the last that can be asked about is %d.", datum,
                        RWS_MAX_TEST - 1);
    if (p->setup.n_test && datum >= p->setup.n_test)
        return rws_fail(err, RWS_BAD_INPUT, "There is no test datum %d; there are %d, counted from 0.", datum,
                        p->setup.n_test);
    if (!test || datum >= p->n_test) return make_test(p, datum, fields, err);
    copy_datum(p, test, datum, fields);
    return RWS_OK;
}

rws_status rws__question_read(const rws_program *p, float *const *test, const rws_question *q, bool inputs,
                              float *const *fields, rws_error *err)
{
    const rws_model *m = p->model;
    if (q->fields) return check_fields(p, q, inputs, fields, err);
    if (q->text && !m->read)
        return rws_fail(err, RWS_BAD_INPUT, "Model %s cannot be asked by a text: it does not read what users type.",
                        m->name);
    if (q->text) return RWS_CALL_MODEL(m, read, err, p->state, q->text, fields);
    if (q->picture && !m->see) return rws_fail(err, RWS_BAD_INPUT, "Model %s cannot be asked about pictures.", m->name);
    if (q->picture) return RWS_CALL_MODEL(m, see, err, p->state, q->picture, fields);
    return find_test(p, test, q->test, fields, err);
}

float **rws__question_memory(const rws_program *p, int n, rws_arena *memory)
{
    float **fields = RWS_TRY_NEW(memory, float *, p->setup.n_fields + 1);
    for (int f = 0; f < p->setup.n_fields && fields; f++) {
        const size_t bytes = (size_t)n * (size_t)p->setup.fields[f].dim * sizeof(float);
        fields[f] = rws__arena_try(memory, bytes);
        if (!fields[f]) return NULL;
        memset(fields[f], 0, bytes);
    }
    return fields;
}

/* ---- given choices */

rws_status rws__question_check_given(const rws_question *q, rws_error *err)
{
    RWS_TRY(rws__choices_check(q->given, q->n_given, err));
    for (int i = 0; i < q->n_given; i++) {
        const rws_choice *c = &q->given[i];
        for (int k = 0; k < i; k++)
            if (q->given[k].visit == c->visit && strcmp(q->given[k].site, c->site) == 0)
                return rws_fail(err, RWS_BAD_INPUT,
                                "A value for site \"%s\" at visit %d (the first is 0) is given twice.",
                                rws__quote_short(c->site).text, c->visit);
    }
    return RWS_OK;
}

/* RWS_BAD_INPUT if there is a given choice that no particle has visited. */
rws_status rws__question_check_reached(const rws_program *p, const rws_question *q, const bool *reached, rws_error *err)
{
    for (int i = 0; i < q->n_given; i++) {
        const rws_choice *c = &q->given[i];
        if (reached[i]) continue;
        for (int f = 0; f < p->setup.n_fields; f++)
            if (strcmp(p->setup.fields[f].name, c->site) == 0)
                return rws_fail(err, RWS_BAD_INPUT,
                                "Site \"%s\" is data; it is not given as a choice, but as part of the datum.",
                                rws__quote_short(c->site).text);
        return rws_fail(err, RWS_BAD_INPUT,
                        "A value is given for site \"%s\" at visit %d (the first is 0), but no particle of the guide "
                        "visits it.",
                        rws__quote_short(c->site).text, c->visit);
    }
    return RWS_OK;
}
