/* model.h - the built-in models. A user's model is a shared object. */
#ifndef RWS_MODEL_MODEL_H
#define RWS_MODEL_MODEL_H

#include "rws.h"

/* Every built-in model, NULL-terminated. */
extern const rws_model *const rws_models[];
extern const rws_model        rws_model_gmm, rws_model_pcfg, rws_model_air, rws_model_sbn;

/* The numbers of a parameter that setup has just declared; NULL if there was no memory for it. */
static inline float *rws_declared_values(const rws_param *p)
{
    return p ? rws_param_values(p) : NULL;
}

#endif
