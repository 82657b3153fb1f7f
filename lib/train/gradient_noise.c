/* gradient_noise.c - how much the gradient varies at the present parameters: its standard deviation and its
 * signal-to-noise ratio, from several draws of it on the test data. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

/* How many draws are taken. */
static int draws_of(const rws_trainer *t)
{
    return t->grad_snr > 1 ? t->grad_snr : 10;
}

/* Adds up the draws of a gradient and of its squares: sums[2 k] and sums[2 k + 1] for number k. */
static rws_status add_draws(rws_trainer *t, float *gradient, double *sums, rws_error *err)
{
    const size_t size = t->program.setup.params.size;
    for (uint64_t i = 0; i < (uint64_t)draws_of(t); i++) {
        RWS_TRY(rws__trainer_check_stop_together(t, err));
        RWS_TRY(rws_trainer_gradient(t, RWS_TEST, i, gradient, size, err));
        for (size_t k = 0; k < size; k++) {
            const double g = (double)gradient[k];
            sums[2 * k] += g;
            sums[2 * k + 1] += g * g;
        }
    }
    return RWS_OK;
}

/* *std: the mean of the standard deviation over the numbers of a group. *snr: the mean of |mean|, divided by *std. A
 * mean of the ratios of single numbers would be dominated by the few numbers that hardly vary. */
static void summarise(const rws_params *p, const double *sums, int draws, rws_group group, double *std, double *snr)
{
    const size_t first = p->first[group], end = p->first[group + 1];
    double       signal = 0;
    *std = 0;
    for (size_t k = first; k < end; k++) {
        const double mean = sums[2 * k] / draws, variance = sums[2 * k + 1] / draws - mean * mean;
        signal += fabs(mean);
        *std += variance > 0 ? sqrt(variance) : 0;
    }
    *snr = *std > 0 ? signal / *std : NAN;
    *std /= (double)(end - first);
}

/* The factor from our mean to that of the authors' code, which divides by the sum of leading dimensions. */
static double reference_share(const rws_params *p)
{
    double leading = 0;
    for (int i = 0; i < p->n; i++)
        if (p->list[i]->group == RWS_PHI) leading += p->list[i]->rows == 1 ? p->list[i]->cols : p->list[i]->rows;
    return (double)(p->first[RWS_PHI + 1] - p->first[RWS_PHI]) / leading;
}

rws_status rws__trainer_gradient_noise(rws_trainer *t, rws_gradient_noise *out, rws_error *err)
{
    const rws_params *p = &t->program.setup.params;
    float            *gradient = malloc(p->size * sizeof *gradient);
    double           *sums = calloc(2 * p->size, sizeof *sums), theta_std;
    rws_status        status = rws__trainer_agree(t, gradient && sums ? RWS_OK : rws_no_memory(err, "gradients"), err);
    if (status == RWS_OK) status = add_draws(t, gradient, sums, err);
    if (status == RWS_OK) {
        summarise(p, sums, draws_of(t), RWS_THETA, &theta_std, &out->snr_theta);
        summarise(p, sums, draws_of(t), RWS_PHI, &out->std, &out->snr_phi);
        if (t->std_ref) out->std *= reference_share(p);
    }
    free(gradient);
    free(sums);
    return status;
}
