/* vimco.c - the bound's gradient with the leave-one-out baseline of Mnih and Rezende (2016): particle k's weight is
 * replaced by the geometric mean of the others'.
 *
 *     signal_k = L - log( (1/K) (sum_{j != k} w_j + exp(mean_{j != k} log w_j)) )
 *
 * vimco_no_logK leaves out the 1/K of the baseline, as the authors' code did; vimco_air_ref uses the particle's own
 * log-weight instead of L and the mean instead of the sum over k, as the code of the AIR experiments did.
 */
#include "estimator/iwae.h"
#include "estimator/siblings.h"

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
    RWS_TRY(rws__siblings_read(m, s, err));
    if (m->siblings && (set->no_log_K || set->air_reference))
        return rws_fail(
            err, RWS_BAD_INPUT,
            "Setting baseline=siblings does not go with vimco_no_logK or vimco_air_ref, which are what other "
            "code did.");
    return RWS_OK;
}

static void weigh(const rws_method *m, rws_scores *s, double share, rws_tally *tally)
{
    const settings *set = m->own;
    const double    more = set->no_log_K ? log(s->K) : 0;
    rws__weigh(s, share, tally);
    const double *gain = rws__leave_one_out(s, true);
    double       *signal = s->work[1];
    for (int i = 0; i < s->n; i++)
        signal[i] = gain[i] == INFINITY ? 0 : gain[i] - more; /* nothing to compare with: 0 */
    for (int i = 0; i < s->n && set->air_reference; i++)
        if (gain[i] < INFINITY) signal[i] = s->l[i] == -INFINITY ? 0 : (s->l[i] - s->L[s->datum[i]] + signal[i]) / s->K;
    rws__iwae_rows(s, share, signal);
    rws__siblings_weigh(m, s, share, RWS_SIGNAL_GEOMETRIC);
}

const rws_estimator rws_estimator_vimco = {
    .name = "vimco",
    .help = "the bound's gradient with a leave-one-out baseline (geometric mean)",
    .when = "The usual choice among score-function methods; it needs no change of the model.",
    .settings =
        (const rws_setting[]){{"vimco_no_logK", "0", 0, 1, "1: baseline without its 1/K, as the authors' code", true},
                              {"vimco_air_ref", "0", 0, 1, "1: the variant of the AIR experiments' code", true},
                              RWS_SIBLINGS_SETTING,
                              {0}},
    .min_particles = 2,
    .n_phases = 1,
    .phases = {{RWS_IWAE_PHASE, .weigh = weigh}},
    .setup = setup,
};
