/* trips.c - learn from your own data: was a trip made by bike or by car, and was the car in a jam?
 *     make examples && build/rws train build/examples/trips.so --data examples/trips.csv */
#include <rws.h>
enum { CAR, JAM, BIKE_PACE, CAR_START, CAR_PACE, DELAY, LOG_SD, N }; /* theta: two log-odds, four times, a spread */
static const float start[N] = {0, -1, 5, 0, 1, 10, 1};
typedef struct {
    rws_table *trips;
    rws_param *theta;
    rws_layer *guess; /* phi: from kilometres and minutes to two log-odds */
} world;
static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random, (void)err;
    world *w = *state = rws_setup_alloc(s, sizeof *w);
    w->trips = rws_setup_table(s, "data", NULL); /* every tenth row is for tests */
    rws_setup_table_field(s, w->trips, "km", "km");
    rws_setup_table_field(s, w->trips, "minutes", "minutes");
    w->theta = rws_setup_param(s, RWS_THETA, "theta.trips", 1, N, RWS_ZERO);
    for (int i = 0; i < N; i++) rws_param_values(w->theta)[i] = start[i];
    w->guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, (int[]){2, 16, 2}, 3);
    return RWS_OK;
}
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    return rws_table_fill(((const world *)w)->trips, s, first, n, g, to, e);
}
static void model(rws_path *path, const void *state)
{
    rws_var all = rws_parameter(path, ((const world *)state)->theta), theta[N];
    for (int i = 0; i < N; i++) theta[i] = rws_slice(path, all, i, 1);
    const rws_var km = rws_normal(path, "km", rws_constant(path, 5), rws_constant(path, 2)); /* observed */
    const int     car = rws_flip(path, "car", theta[CAR]);
    rws_var       minutes = rws_mul(path, theta[car ? CAR_PACE : BIKE_PACE], km);
    if (car) minutes = rws_add(path, minutes, theta[CAR_START]);
    if (car && rws_flip(path, "jam", theta[JAM])) minutes = rws_add(path, minutes, theta[DELAY]);
    rws_normal(path, "minutes", minutes, rws_apply(path, RWS_EXP, theta[LOG_SD])); /* observed */
}
static void guide(rws_path *path, const void *state)
{
    const rws_var seen[] = {rws_affine(path, rws_observed(path, "km"), 0.5f, -2.5f),
                            rws_affine(path, rws_observed(path, "minutes"), 0.2f, -4)};
    const rws_var logits = rws_mlp_parts(path, ((const world *)state)->guess, seen, 2);
    if (rws_flip(path, "car", rws_slice(path, logits, 0, 1))) rws_flip(path, "jam", rws_slice(path, logits, 1, 1));
}
static rws_status delay(rws_eval *e, const void *w, double *value, rws_error *err)
{
    return (void)e, (void)err, *value = rws_param_values(((const world *)w)->theta)[DELAY], RWS_OK;
}
const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "trips",
    .help = "by bike or by car?",
    .settings = (const rws_setting[]){{"data", "", 0, 0, "a table with the columns km and minutes", false}, {0}},
    .metrics = (const rws_metric[]){{"delay", "minutes that a jam costs", delay}, {0}},
    .defaults = {.particles = 10, .iterations = 20000, .eval_every = 4000, .lr = "1e-2,15000:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
