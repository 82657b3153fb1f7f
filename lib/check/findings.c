/* findings.c - the list of a review. */
#include "check/check.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rws_status rws__review_begin(rws_review *r, rws_program *p, rws_engine *e, const float *const *fields, int n_data,
                             rws_error *err)
{
    *r = (rws_review){.program = p, .engine = e, .fields = fields, .n_data = n_data, .n_particles = 16};
    r->uses = RWS_TRY_NEW(&r->memory, rws_use, p->setup.params.n + 1);
    r->values = RWS_TRY_NEW(&r->memory, float, p->setup.params.size + 1);
    if (!r->uses || !r->values) return rws_no_memory(err, "a review");
    memcpy(r->values, p->setup.params.value, p->setup.params.size * sizeof *r->values);
    memset(r->uses, 0, (size_t)p->setup.params.n * sizeof *r->uses);
    return RWS_OK;
}

void rws__review_release(rws_review *r)
{
    free(r->list);
    rws__arena_free(&r->memory);
}

/* "phi.net" of "phi.net.0.weight": the layer that a parameter belongs to. */
static size_t layer_length(const char *name)
{
    const char *dot = strchr(name, '.');
    dot = dot ? strchr(dot + 1, '.') : NULL;
    return dot ? (size_t)(dot - name) : strlen(name);
}

static bool is_told(const rws_review *r, const char *kind, const char *about)
{
    const rws_check_finding *last = r->n ? &r->list[r->n - 1] : NULL;
    if (!last || !about || !last->about || strcmp(last->kind, kind) != 0) return false;
    const size_t n = layer_length(about);
    return n == layer_length(last->about) && strncmp(last->about, about, n) == 0;
}

static const char *copy(rws_review *r, const char *text)
{
    char *to = text ? RWS_TRY_NEW(&r->memory, char, strlen(text) + 1) : NULL;
    return to ? strcpy(to, text) : NULL;
}

rws_status rws__review_add(rws_review *r, const char *kind, rws_severity severity, const char *about, rws_error *err,
                           const char *format, ...)
{
    char    text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (is_told(r, kind, about)) return RWS_OK;
    if (!rws__list_grow(&r->list, r->n, &r->capacity, sizeof *r->list)) return rws_no_memory(err, "a finding");
    const rws_check_finding f = {kind, severity, copy(r, about), copy(r, text)};
    if (!f.text || (about && !f.about)) return rws_no_memory(err, "a finding");
    r->list[r->n++] = f;
    return RWS_OK;
}

bool rws__review_is_failure(const rws_check_finding *f)
{
    return strcmp(f->kind, "program") == 0 || strcmp(f->kind, "numbers") == 0;
}

bool rws__review_is_late(const rws_review *r)
{
    return r->until > 0 && rws__clock_now() > r->until;
}

/* ---- passes */

rws_key rws__review_key(const rws_review *r, uint32_t part)
{
    return rws__key_for(r->program->config.seed + part, r->program->iteration, RWS_KEY_TEST, RWS_TEST_CHECK);
}

rws_pass rws__review_pass(const rws_review *r, int first, int n, int n_particles, uint32_t part, const float **fields)
{
    const rws_setup *s = &r->program->setup;
    for (int f = 0; f < s->n_fields; f++) fields[f] = r->fields[f] + (size_t)first * (size_t)s->fields[f].dim;
    rws_pass pass = rws__program_pass(r->program, RWS_WAKE, n, n_particles, fields, rws__review_key(r, part));
    pass.first_datum = (uint32_t)first;
    pass.scalar = false;
    return pass;
}

/* ---- the list of the public header */

typedef struct {
    rws_check_findings public;
    rws_arena memory;
} findings;

const char *rws_severity_name(rws_severity s)
{
    static const char *const names[] = {"note", "warning", "mistake"};
    return (unsigned)s < 3 ? names[s] : "";
}

void rws_check_free(rws_check_findings *f)
{
    if (!f) return;
    rws__arena_free(&((findings *)f)->memory);
    free(f);
}

static char *kept(findings *f, const char *text)
{
    char *to = text ? RWS_TRY_NEW(&f->memory, char, strlen(text) + 1) : NULL;
    return to ? strcpy(to, text) : NULL;
}

static bool copy_list(findings *f, const rws_review *r)
{
    rws_check_finding *list = RWS_TRY_NEW(&f->memory, rws_check_finding, r->n + 1);
    f->public.list = list;
    for (int severity = RWS_MISTAKE; severity >= RWS_NOTE && list; severity--)
        for (int i = 0; i < r->n; i++) {
            const rws_check_finding *from = &r->list[i];
            if ((int)from->severity != severity) continue;
            rws_check_finding *to = &list[f->public.n++];
            *to = (rws_check_finding){from->kind, from->severity, kept(f, from->about), kept(f, from->text)};
            if (!to->text || (from->about && !to->about)) return false;
        }
    return list != NULL;
}

rws_status rws__review_findings(const rws_review *r, rws_check_findings **out, rws_error *err)
{
    findings *f = calloc(1, sizeof *f);
    if (f && copy_list(f, r)) {
        *out = &f->public;
        return RWS_OK;
    }
    rws_check_free(f ? &f->public : NULL);
    return rws_no_memory(err, "the findings of a review");
}
