/* planted.h - models with a planted mistake each. A model here is a mixture of three normals, or a few coins, with one line
 * that a user might write. */
#ifndef RWS_TESTS_PLANTED_H
#define RWS_TESTS_PLANTED_H

#include "rws_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    rws_param *prior, *means, *extra;
    rws_layer *net, *other;
} mixture;

typedef struct {
    const char  *name; /* of the model: what the mistake is */
    const char  *kind; /* of the finding */
    rws_severity severity;
    const char  *about;   /* the site or parameter; NULL: not said */
    const char  *says;    /* a part of its text */
    const char  *method;  /* NULL: ww */
    bool         refused; /* rws_trainer_train refuses it before the first iteration */
    void (*guide)(rws_path *path, const void *state);
    void (*model)(rws_path *path, const void *state);
    rws_status (*data)(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err);                            /* NULL: mixture_data */
    rws_status (*setup)(rws_setup *s, rws_random *random, void **state, rws_error *err); /* NULL: mixture_setup */
} planted;

extern const planted planted_state[], planted_parameters[], planted_programs[], planted_data[];

rws_status mixture_setup(rws_setup *s, rws_random *random, void **state, rws_error *err);
rws_status mixture_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                        float *const *fields, rws_error *err);
void       mixture_guide(rws_path *path, const void *state);
void       mixture_model(rws_path *path, const void *state);

/* x around the mean of component z. */
void mixture_x(rws_path *path, const mixture *m, rws_var z);

#endif
