#include "models/model.h"

const rws_model *const rws_models[] = {&rws_model_gmm, &rws_model_pcfg, &rws_model_air, &rws_model_sbn, NULL};
