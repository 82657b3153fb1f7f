/* nvil.c - the bound's gradient with a learned baseline (Mnih and Gregor 2014).
 *
 *     signal = (L - b(x) - c) / max(1, sqrt(v)),   c, v: running mean and variance of L - b(x)
 *
 * b is a small network on the data, trained by the squared error to L at a learning rate of its own. With baseline=siblings it is
 * for particles that have none, and the signals of the others are not divided (siblings.h).
 */
#include "estimator/iwae.h"
#include "estimator/siblings.h"

#include "base/error.h"

enum { BASELINE };       /* the output of the pass */
enum { MEAN, VARIANCE }; /* the running numbers */

typedef struct {
    rws_layer *baseline;
    double     decay;
} own;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    own *o = m->own = rws_setup_alloc(s, sizeof *o);
    if (!o) return rws_no_memory(err, "the settings of nvil");
    o->baseline =
        rws_setup_mlp(s, RWS_BASELINE, "baseline", RWS_TANH, RWS_UNIFORM, (int[]){rws__data_size(s), 100, 1}, 3);
    o->decay = rws_setup_number(s, "nvil_decay");
    m->rate[RWS_BASELINE] = rws_setup_number(s, "nvil_lr");
    return rws__siblings_read(m, s, err);
}

static void program(rws_path *path, void *method)
{
    const rws_method *m = method;
    const own        *o = m->own;
    rws__programs(path);
    rws_var   parts[RWS_FIELDS];
    const int n = rws__data_fields(path, m, parts);
    rws__path_output(path, BASELINE, rws_mlp_parts(path, o->baseline, parts, n));
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const double sd = sqrt(m->memory[VARIANCE]), divide = sd > 1 ? sd : 1;
    double      *signal = s->work[0], *of_datum = s->work[1];
    rws__weigh(s, share, tally);
    for (int d = 0; d < s->B; d++) {
        of_datum[d] = 0;
        if (s->L[d] == -INFINITY) continue;
        const uint32_t first = s->start[d];
        const double   error = s->L[d] - s->out[BASELINE][first];
        of_datum[d] = (error - m->memory[MEAN]) / divide;
        s->coef_out[BASELINE][first] = 2 * share * error; /* the baseline is one number for all rows of the datum */
        tally->signal += error;
        tally->signal2 += error * error;
    }
    rws__rows_of_data(s, of_datum, signal);
    rws__iwae_rows(s, share, signal);
    rws__siblings_weigh(m, s, share, RWS_SIGNAL_OWN);
}

static void remember(rws_method *m, const rws_tally *t)
{
    const double n = (double)(t->n_data - t->impossible);
    if (n < 1) return;
    const double mean = t->signal / n, variance = t->signal2 / n - mean * mean, keep = ((const own *)m->own)->decay;
    m->memory[MEAN] = keep * m->memory[MEAN] + (1 - keep) * mean;
    m->memory[VARIANCE] = keep * m->memory[VARIANCE] + (1 - keep) * variance;
}

const rws_estimator rws_estimator_nvil = {
    .name = "nvil",
    .help = "the bound's gradient with a learned, input-dependent baseline",
    .when = "For one particle per datum, where vimco and rloo have nothing to compare with.",
    .settings =
        (const rws_setting[]){{"nvil_decay", "0.8", 0, 1, "of the running mean and variance of the signal"},
                              {"nvil_lr", "10", 0, 1000, "learning rate of the baseline, in units of the main one"},
                              RWS_SIBLINGS_SETTING,
                              {0}},
    .min_particles = 1,
    .n_phases = 1,
    .phases = {{.mode = RWS_WAKE,
                .pathwise = true,
                .labels = true,
                .gradients = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI) | RWS_BIT(RWS_BASELINE),
                .steps = RWS_BIT(RWS_THETA) | RWS_BIT(RWS_PHI) | RWS_BIT(RWS_BASELINE),
                .program = program,
                .weigh = weigh}},
    .setup = setup,
    .remember = remember,
};
