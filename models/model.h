/* model.h - the built-in models. A user's model is a shared object. */
#ifndef RWS_MODELS_MODEL_H
#define RWS_MODELS_MODEL_H

#include "rws.h"

/* Every built-in model, NULL-terminated. */
extern const rws_model *const rws_models[];
extern const rws_model        rws_model_gmm, rws_model_pcfg, rws_model_air, rws_model_sbn;

/* Reads a setting that is one of some words; the list ends with NULL. *which becomes the place of the word in the list.
 * RWS_BAD_INPUT with a message that names the first three words of the list. */
rws_status rws__setting_word(rws_setup *s, const char *name, const char *const *words, int *which, rws_error *err)
    __attribute__((warn_unused_result));

/* The same for two words: *out is false for `no` and true for `yes`. */
rws_status rws__setting_either(rws_setup *s, const char *name, const char *no, const char *yes, bool *out,
                               rws_error *err) __attribute__((warn_unused_result));

/* The numbers of a parameter that setup has just declared; NULL if there was no memory for it. */
static inline float *rws__declared_values(const rws_param *p)
{
    return p ? rws_param_values(p) : NULL;
}

#endif
