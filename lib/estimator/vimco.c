/* vimco.c - the bound's gradient with the leave-one-out baseline of Mnih and Rezende (2016): particle k's weight is
 * replaced by the geometric mean of the others'.
 *
 *     signal_k = L - log( (1/K) (sum_{j != k} w_j + exp(mean_{j != k} log w_j)) )
 *
 * vimco_no_logK leaves out the 1/K of the baseline, as the authors' code did; vimco_air_ref uses the particle's own
 * log-weight instead of L and the mean instead of the sum over k, as the code of the AIR experiments did.
 */
#include "estimator/iwae.h"

#include "base/error.h"

typedef struct {
    bool no_log_K, air_reference;
} settings;

static rws_status setup(rws_method *m, rws_setup *s, rws_error *err)
{
    settings *set = m->own = rws_setup_alloc(s, sizeof *set);
    if (!set) return rws_no_memory(err, "the settings of vimco");
    set->no_log_K = rws_setup_number(s, "vimco_no_logK") != 0;
    set->air_reference = rws_setup_number(s, "vimco_air_ref") != 0;
    return RWS_OK;
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const settings *set = m->own;
    const double    log_K = set->no_log_K ? 0 : log(s->K);
    double         *log_rest = s->work[0];
    rws__weigh(s, share, tally);
    rws__leave_one_out(s, true, log_rest);
    for (int d = 0; d < s->B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1] && s->L[d] > -INFINITY; i++) {
            const double baseline = log_rest[i] - log_K;
            double       signal = s->L[d] - baseline;
            if (set->air_reference) signal = (s->l[i] == -INFINITY ? 0 : s->l[i] - baseline) / s->K;
            if (baseline == -INFINITY) signal = 0; /* all others impossible: nothing to compare with */
            rws__iwae_row(s, i, share, signal);
        }
}

const rws_estimator rws_estimator_vimco = {
    .name = "vimco",
    .help = "the bound's gradient with a leave-one-out baseline (geometric mean)",
    .settings =
        (const rws_setting[]){{"vimco_no_logK", "0", 0, 1, "1: baseline without its 1/K, as the authors' code", true},
                              {"vimco_air_ref", "0", 0, 1, "1: the variant of the AIR experiments' code", true},
                              {0}},
    .min_particles = 2,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
    .setup = setup,
};
