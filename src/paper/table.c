#include "paper/paper.h"

#include <stddef.h>

const rws_experiment *const rws_experiments[] = {&rws_experiment_gmm, &rws_experiment_gmm_near, NULL};
