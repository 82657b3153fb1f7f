#include "paper/paper.h"

#include <stddef.h>

const rws_experiment *const rws_experiments[] = {
    &rws_experiment_gmm,      &rws_experiment_gmm_code,  &rws_experiment_gmm_near, &rws_experiment_gmm_near_code,
    &rws_experiment_gmm_snr,  &rws_experiment_gmm_tried, &rws_experiment_pcfg,     &rws_experiment_air,
    &rws_experiment_air_code, &rws_experiment_sbn,       &rws_experiment_gallery,  NULL,
};
