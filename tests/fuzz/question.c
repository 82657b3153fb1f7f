/* question.c - libFuzzer harness for the JSON bodies of rws serve: whatever the bytes, they are refused with a message, or
 * every datum has finite numbers for every field, and every limit holds. The first byte chooses the kind of question. */
#include "serve/body.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const rws_field fields[] = {
    {.name = "x", .dim = 1},
    {.name = "count", .dim = 1, .label = true},
    {.name = "picture", .dim = 9},
    {.name = "steps", .dim = 9, .item = 2, .most = 4},
};
static const rws_body_limits limits = {.particles = 1000, .data = 20, .work = 5000, .samples = 100};

static void check_datum(const rws_body_datum *d)
{
    const rws_question *q = &d->question;
    const int           ways = (q->text != NULL) + (q->picture != NULL) + (q->fields != NULL);
    if (ways > 1 || q->n_particles < 1 || q->n_particles > limits.particles || q->test < 0) abort();
    if (q->picture && (q->picture->wide < 1 || q->picture->high < 1 || !q->picture->grey)) abort();
    if (q->text && strlen(q->text) > 20000) abort();
    for (int f = 0; f < 4 && q->fields; f++) {
        if (!q->fields[f] != fields[f].label) abort();
        for (int i = 0; q->fields[f] && i < fields[f].dim; i++)
            if (!isfinite(q->fields[f][i])) abort();
        if (fields[f].most && !(q->fields[f][0] >= 0 && q->fields[f][0] <= (float)fields[f].most)) abort();
    }
}

static void check(const rws_body *p, rws_body_kind kind)
{
    if (p->samples < 1 || p->samples > limits.samples || p->top < 0) abort();
    if (kind == RWS_BODY_SAMPLE) return;
    if (p->n_data < 1 || p->n_data > limits.data || (double)p->n_data * p->particles > limits.work) abort();
    for (int i = 0; i < p->n_data; i++) check_datum(&p->data[i]);
    for (int i = 0; i < p->n_choices; i++)
        for (int k = 0; k < p->choices[i].dim; k++)
            if (!p->choices[i].site || !isfinite(p->choices[i].value[k])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const rws_body_kind kind = (rws_body_kind)(data[0] % 3);
    rws_error           err = {""};
    rws_body            posed;
    if (rws__body_read((const char *)data + 1, size - 1, kind, fields, 4, &limits, &posed, &err) == RWS_OK)
        check(&posed, kind);
    else if (err.text[0] == '\0' || !strchr(".?}", err.text[strlen(err.text) - 1])) abort();
    rws__body_release(&posed);
    return 0;
}
