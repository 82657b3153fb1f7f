/* pass.c - every pass that a run makes: in training, for metrics, for questions and for samples. */
#include "program/program.h"

#include "base/error.h"

#include <string.h>

rws_pass rws__program_pass(const rws_program *p, rws_mode mode, int n_data, int n_particles, const float *const *fields,
                           rws_key key)
{
    return (rws_pass){.context = (void *)&p->method,
                      .model = p->method.model,
                      .state = p->method.state,
                      .mode = mode,
                      .n_data = n_data,
                      .n_particles = n_particles,
                      .fields = fields,
                      .scalar = p->config.scalar,
                      .iteration = p->iteration,
                      .key = key};
}

rws_pass rws__program_question(const rws_program *p, const float *const *fields, uint64_t seed, int first, int end)
{
    const rws_key key = rws__key_for(seed, p->iteration, RWS_KEY_TEST, RWS_TEST_QUESTION);
    rws_pass      pass = rws__program_pass(p, RWS_WAKE, 1, end - first, fields, key);
    pass.first_particle = (uint32_t)first;
    pass.reports = true;
    return pass;
}

const float *const *rws__program_draw_inputs(const rws_program *p, const float *const *data, int n_data, rws_key key,
                                             uint32_t first, int n, rws_arena *memory)
{
    const rws_setup *s = &p->setup;
    const float    **fields = RWS_TRY_NEW(memory, const float *, s->n_fields + 1);
    for (int f = 0; f < s->n_fields && fields; f++) {
        const size_t dim = (size_t)s->fields[f].dim;
        float       *to = s->fields[f].input ? RWS_TRY_NEW(memory, float, (size_t)n *dim) : NULL;
        fields[f] = to;
        if (s->fields[f].input && !to) return NULL;
        for (int i = 0; i < n && to; i++) {
            rws_random     random = rws__random_new(key, first + (uint32_t)i);
            const uint32_t datum = rws_random_below(&random, (uint32_t)n_data);
            memcpy(to + (size_t)i * dim, data[f] + datum * dim, dim * sizeof(float));
        }
    }
    return fields;
}

int rws__program_at_once(const rws_program *p, int most)
{
    const int limit = p->model->defaults.at_once;
    return limit ? limit : most;
}

rws_status rws__choices_check(const rws_choice *list, int n, rws_error *err)
{
    if (n < 0 || (n && !list))
        return rws_fail(err, RWS_BAD_INPUT, "There are %d given choices, but no list of them.", n);
    for (int i = 0; i < n; i++)
        if (!list[i].site || !list[i].value || list[i].visit < 0)
            return rws_fail(err, RWS_BAD_INPUT, "Given choice %d needs a site, a value and a visit from 0 on.", i);
    return RWS_OK;
}
