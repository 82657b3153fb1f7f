/* pass.c - every pass that a run makes: in training, for metrics, for questions and for samples. */
#include "run/given.h"

/* Share of a datum's total |coefficient| that backward may drop; below float32 rounding. */
#define NEGLIGIBLE 1e-6

rws_pass rws_trainer_pass(rws_trainer *t, rws_mode mode, int n_data, int n_particles, const float *const *fields,
                          rws_key key)
{
    return (rws_pass){.context = &t->method,
                      .model = t->method.model,
                      .state = t->method.state,
                      .mode = mode,
                      .n_data = n_data,
                      .n_particles = n_particles,
                      .fields = fields,
                      .scalar = t->config.scalar,
                      .iteration = t->iteration,
                      .key = key};
}

rws_pass rws_phase_make_pass(const rws_phase_work *w, int shard, int first, int end, const float **fields,
                             rws_proposal *proposal)
{
    rws_trainer     *t = w->t;
    const rws_phase *phase = w->phase;
    const bool       sleep = phase->mode == RWS_SLEEP;
    const int        n = end - first, K = t->config.particles;
    int              from, to; /* particles of the shard: of each datum, or of all dreams */
    rws_shard_particles(t, shard, sleep ? n * K : K, &from, &to);
    for (int f = 0; f < t->setup.n_fields && !sleep; f++)
        fields[f] = w->fields[f] + (size_t)first * (size_t)t->setup.fields[f].dim;
    rws_pass pass = rws_trainer_pass(t, phase->mode, sleep ? 1 : n, to - from, fields, w->key);
    pass.program = phase->program;
    pass.first_datum = sleep ? 0 : (uint32_t)first;
    pass.first_particle = (uint32_t)(from + (sleep ? first * K : 0));
    *proposal = (rws_proposal){.how = phase->drawing};
    pass.proposal = proposal;
    pass.pathwise = phase->pathwise;
    pass.groups = phase->gradients | (phase->extend ? RWS_BIT(RWS_CONTROL) : 0);
    pass.negligible = t->config.scalar ? 0 : NEGLIGIBLE;
    if (phase->prepare) phase->prepare(&t->method, proposal);
    if (!sleep && w->fields == (const float *const *)t->batch) rws_given_put(t, first, &pass);
    return pass;
}

rws_phase rws_phase_with_labels(const rws_trainer *t, const rws_phase *phase)
{
    rws_phase p = *phase;
    if (t->given && p.labels) p.gradients |= RWS_BIT(RWS_PHI);
    return p;
}

rws_pass rws_trainer_question(rws_trainer *t, const float *const *fields, uint64_t seed, int first, int end)
{
    const rws_key key = rws_key_for(seed, t->iteration, RWS_KEY_TEST, RWS_TEST_QUESTION);
    rws_pass      pass = rws_trainer_pass(t, RWS_WAKE, 1, end - first, fields, key);
    pass.first_particle = (uint32_t)first;
    pass.reports = true;
    return pass;
}

int rws_trainer_at_once(const rws_trainer *t, int most)
{
    const int limit = t->model->defaults.at_once;
    return limit ? limit : most;
}
