/* sweep.c - libFuzzer harness for sweep files: whatever the bytes, they are refused with a message that names the file,
 * or every run has a name of its own that a folder can have, and a configuration whose text can be read to its end. */
#include "rws_results.h"

#include <stdlib.h>
#include <string.h>

/* The optimiser must not drop the reads. */
static volatile size_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const rws_sweep_run *r)
{
    const rws_config *c = &r->config;
    const size_t      length = strlen(r->name);
    if (length == 0 || length > 200 || strchr(r->name, '/') || r->name[0] == '.') abort();
    if (c->particles < 1 || c->threads != 1 || c->n_set < 0 || c->n_set > 64) abort();
    sink = strlen(c->model) + strlen(c->method);
    if (c->lr) sink = strlen(c->lr);
    if (c->optimiser) sink = strlen(c->optimiser);
    for (int i = 0; i < c->n_set; i++)
        if (!strchr(c->set[i], '=')) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rws_error  err = {""};
    rws_sweep *s;
    if (rws_sweep_parse((const char *)data, size, "fuzz", &s, &err) == RWS_OK) {
        if (s->n < 1 || s->n > RWS_MAX_SWEEP_RUNS) abort();
        for (int i = 0; i < s->n; i++) check(&s->runs[i]);
        if (s->n > 1 && strcmp(s->runs[0].name, s->runs[1].name) == 0) abort();
        rws_sweep_free(s);
        return 0;
    }
    const size_t length = strlen(err.text);
    if (s || length == 0 || !strchr(".?", err.text[length - 1]) || !strstr(err.text, "\"fuzz\"")) abort();
    return 0;
}
