/* wide.c - a model for the tests only: it has 60 settings and 50 metrics, more than fit a table of usual size. */
#include "rws.h"

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)state, (void)err;
    rws_setup_field(s, "x", 1);
    return RWS_OK;
}

static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)rws_random_below(random, 2);
    return RWS_OK;
}

static void guide(rws_path *path, const void *state)
{
    (void)state;
    rws_flip(path, "choice", rws_constant(path, 0));
}

static void model(rws_path *path, const void *state)
{
    (void)state;
    const int choice = rws_flip(path, "choice", rws_constant(path, 0));
    rws_normal(path, "x", rws_constant(path, (float)choice), rws_constant(path, 1));
}

static rws_status measure(rws_eval *e, const void *state, double *value, rws_error *err)
{
    (void)e, (void)state, (void)err;
    *value = 0.5;
    return RWS_OK;
}

/* Ten of each, from T0 to T9. */
#define TEN(ONE, t) \
    ONE(t, 0), ONE(t, 1), ONE(t, 2), ONE(t, 3), ONE(t, 4), ONE(t, 5), ONE(t, 6), ONE(t, 7), ONE(t, 8), ONE(t, 9)
#define SETTING(t, i)                                \
    {                                                \
        "setting" #t #i, "0", 0, 9, "a number", true \
    }
#define METRIC(t, i)                                  \
    {                                                 \
        "metric" #t #i, "a half", measure, NULL, NULL \
    }

static const rws_setting settings[] = {
    TEN(SETTING, 0), TEN(SETTING, 1), TEN(SETTING, 2), TEN(SETTING, 3), TEN(SETTING, 4), TEN(SETTING, 5), {0}};
static const rws_metric metrics[] = {TEN(METRIC, 0), TEN(METRIC, 1), TEN(METRIC, 2),
                                     TEN(METRIC, 3), TEN(METRIC, 4), {0}};

const rws_model rws_user_model = {.abi = RWS_ABI,
                                  .name = "wide",
                                  .settings = settings,
                                  .metrics = metrics,
                                  .setup = setup,
                                  .data = data,
                                  .guide = guide,
                                  .model = model};
