/* tracking.c - tracking: how many objects are there, and where, if some are missed and some sightings are false?
 *     make examples && build/rws train build/examples/tracking.so --method wws
 *     frame 0   . . # . . . . . . .      In each frame an object may appear; every object may disappear, or else stays or
 *     frame 1   . . . # . . . # . .      goes one cell to the left or right. A cell with objects lights up unless all of
 *     frame 2   . . . # . . . . . .      them are missed; a cell without may light up by itself (clutter).
 * The sum over all tracks is out of reach: compare log_evidence for more and more particles (rws eval RUN -k 1000). The
 * metric "wrong" is the mean error in the number of objects. */
#include <math.h>
#include <rws.h>

enum { FRAMES = 6, CELLS = 10, BIRTH = 0, DEATH, CLUTTER, DETECT, N, H = 64 };

static const double truth[N] = {0.3, 0.15, 0.03, 0.85}; /* probabilities */

typedef struct {
    rws_param *theta;                /* their log-odds */
    rws_layer *later, *birth, *move; /* phi: sums up the frames from the last one; of a frame; of an object */
} world;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    world *w = ((void)random, (void)err, *state = rws_setup_alloc(s, sizeof *w));
    rws_setup_series(s, "seen", CELLS, FRAMES);
    rws_setup_label(s, "objects", 1);
    w->theta = rws_setup_param(s, RWS_THETA, "theta.tracking", 1, N, RWS_ZERO);
    for (int i = 0; i < N; i++) rws_param_values(w->theta)[i] = (const float[]){-1, -1, -2, 1}[i];
    rws_setup_truth(s, w->theta, RWS_LOG_ODDS, truth);
    w->later = rws_setup_gru(s, RWS_PHI, "phi.later", CELLS, H);
    w->birth = rws_setup_mlp(s, RWS_PHI, "phi.birth", RWS_RELU, RWS_UNIFORM, (int[]){H + 2 * CELLS, H, 1 + CELLS}, 3);
    w->move = rws_setup_mlp(s, RWS_PHI, "phi.move", RWS_RELU, RWS_UNIFORM, (int[]){H + 3 * CELLS, H, 1 + 3}, 3);
    return RWS_OK;
}

static int moved(int cell, int step) /* 0: to the left, 1: stays, 2: to the right */
{
    return step == 0 && cell > 0 ? cell - 1 : step == 2 && cell < CELLS - 1 ? cell + 1 : cell;
}

static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    for (int i = 0; i < n; i++) {
        float *x = to[0] + i * (1 + FRAMES * CELLS), *cells = x + 1;
        int    where[FRAMES], objects = 0;
        x[0] = FRAMES, to[1][i] = 0;
        for (int t = 0, alive = 0; t < FRAMES; t++, cells += CELLS, objects = alive, alive = 0) {
            for (int k = 0; k < objects; k++)
                if (rws_random_uniform(g) >= truth[DEATH])
                    where[alive++] = moved(where[k], (int)rws_random_below(g, 3));
            if (rws_random_uniform(g) < truth[BIRTH]) where[alive++] = (int)rws_random_below(g, CELLS), to[1][i]++;
            for (int c = 0; c < CELLS; c++) cells[c] = rws_random_uniform(g) < truth[CLUTTER];
            for (int k = 0; k < alive; k++)
                if (rws_random_uniform(g) < truth[DETECT]) cells[where[k]] = 1;
        }
    }
    return (void)w, (void)s, (void)first, (void)e, RWS_OK;
}

/* Log-odds that a cell with n objects lights up: it stays dark with probability (1 - clutter) (1 - detect)^n. */
static rws_var light(rws_path *path, rws_var theta, const float *n)
{
    const rws_var dark = rws_apply(path, RWS_LOG_SIGMOID, rws_affine(path, theta, -1, 0));
    const rws_var missed = rws_mul(path, rws_slice(path, dark, DETECT, 1), rws_constants(path, n, CELLS));
    const rws_var log_dark = rws_add(path, missed, rws_slice(path, dark, CLUTTER, 1));
    return rws_apply(path, RWS_LOG, rws_apply(path, RWS_EXPM1, rws_affine(path, log_dark, -1, 0)));
}

static void model(rws_path *path, const void *state)
{
    const rws_var theta = rws_parameter(path, ((const world *)state)->theta);
    int           where[FRAMES], objects = 0, born = 0;
    for (int t = 0, alive = 0; t < FRAMES; t++, objects = alive, alive = 0) {
        float count[CELLS] = {0};
        for (int k = 0; k < objects; k++)
            if (!rws_flip(path, "death", rws_slice(path, theta, DEATH, 1)))
                where[alive++] = moved(where[k], rws_choose(path, "step", rws_zeros(path, 3)));
        if (rws_flip(path, "birth", rws_slice(path, theta, BIRTH, 1)))
            where[alive++] = rws_choose(path, "cell", rws_zeros(path, CELLS)), born++;
        for (int k = 0; k < alive; k++) count[where[k]]++;
        rws_bernoulli(path, "seen", light(path, theta, count)); /* observed: frame t */
    }
    rws_report(path, "objects", rws_constant(path, (float)born));
}

/* Knows this frame, the ones that follow, and the objects that it has placed so far. */
static void guide(rws_path *path, const void *state)
{
    const world *w = state;
    int          n, where[FRAMES], objects = 0;
    rws_var     *seen = rws_items(path, "seen", &n), *h = rws_gru_backwards(path, w->later, seen, n), logits;
    for (int t = 0, alive = 0; t < n; t++, objects = alive, alive = 0) {
        float count[CELLS] = {0};
        for (int k = 0; k < objects; k++) {
            const rws_var here = rws_onehot_at(path, where[k], CELLS), placed = rws_constants(path, count, CELLS);
            logits = rws_mlp_parts(path, w->move, (rws_var[]){h[t], seen[t], placed, here}, 4);
            if (rws_flip(path, "death", rws_slice(path, logits, 0, 1))) continue;
            where[alive] = moved(where[k], rws_choose(path, "step", rws_slice(path, logits, 1, 3)));
            count[where[alive++]]++;
        }
        logits = rws_mlp_parts(path, w->birth, (rws_var[]){h[t], seen[t], rws_constants(path, count, CELLS)}, 3);
        if (rws_flip(path, "birth", rws_slice(path, logits, 0, 1)))
            where[alive++] = rws_choose(path, "cell", rws_slice(path, logits, 1, CELLS));
    }
}

static double wrong(const rws_particle *p, const void *state)
{
    return (void)state, fabs((double)(*rws_particle_report(p, "objects", 0) - *rws_particle_datum(p, "objects")));
}

const rws_model rws_user_model = {
    .abi = RWS_ABI,
    .name = "tracking",
    .help = "objects that appear, move, are missed and disappear among false sightings",
    .metrics = (const rws_metric[]){{"wrong", "error in the number of objects", NULL, wrong, NULL}, {0}},
    .defaults = {.batch = 30, .particles = 10, .iterations = 1000, .n_test = 100, .lr = "5e-3,800:1e-3"},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
