/* test_large.c - sizes that programs may have: sites visited by a particle, names of sites, items of a series, particles.
 *
 *     build/tests/test_large          what the test suite does: a tenth of each size
 *     build/tests/test_large full     the full sizes; prints seconds of processor time and megabytes of each case
 *
 * Each case is one iteration of ww and one of ws (three phases: wake, wake, sleep), in a process of its own. The chain of
 * the model has a latent choice and perhaps an observed item at each step; the guide looks at the items. */
#include "trained.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STATES = 3 };

typedef struct {
    const char *what;
    int         steps, names, particles, tenth; /* tenth: 1 for sizes that the suite does not cut */
    bool        ints;                           /* C code branches on every choice */
    bool        items;                          /* every step has an item of a series; else there is one item */
    bool        alike;                          /* nearly all particles make the same choices */
} size_case;

static const size_case cases[] = {
    {"10,000 visits of a site, 10 particles", 10000, 1, 10, 10, false, false, false},
    {"the same, a branch on each", 10000, 1, 10, 10, true, false, false},
    {"the same, particles that agree", 10000, 1, 10, 10, false, false, true},
    {"the same, a branch on each, particles that agree", 10000, 1, 10, 10, true, false, true},
    {"500 names of sites, 20 visits each", 10000, 500, 10, 10, false, false, false},
    {"10,000 names of sites", 10000, 10000, 10, 10, false, false, false},
    {"series of 5,000 items, 10 particles", 5000, 1, 10, 10, false, true, false},
    {"the same, a branch on each", 5000, 1, 10, 10, true, true, false},
    {"10,000 particles, series of 20 items", 20, 1, 10000, 1, false, true, false},
    {"10,000 particles, 20 branches", 20, 1, 10000, 1, true, true, false},
};

static size_case now; /* the case that this process runs */

typedef struct {
    rws_param *next, *emit;
    rws_layer *seen;
} net;

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)err;
    net *w = *state = rws_setup_alloc(s, sizeof *w);
    rws_setup_field(s, "n", 1);
    rws_setup_series(s, "x", 1, now.steps);
    w->next = rws_setup_param(s, RWS_THETA, "theta.next", STATES, STATES, RWS_ZERO);
    w->emit = rws_setup_param(s, RWS_THETA, "theta.emit", STATES, STATES, RWS_ZERO);
    w->seen = rws_setup_embedding(s, RWS_PHI, "phi.seen", STATES, STATES);
    for (int i = 0; i < STATES * STATES; i++) rws_param_values(w->emit)[i] = (float)rws_random_normal(random);
    return RWS_OK;
}

/* Two lengths. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) {
        float *x = fields[1] + (size_t)i * (1 + (size_t)now.steps);
        fields[0][i] = (float)(i % 2);
        x[0] = !now.items ? 1 : (float)(i % 2 ? now.steps : now.steps - now.steps / 3);
        for (int t = 0; t < now.steps; t++) x[1 + t] = t < (int)x[0] ? (float)rws_random_below(random, STATES) : 0;
    }
    return RWS_OK;
}

/* A distribution that nearly always gives 1. */
static rws_var sure(rws_path *path)
{
    return rws_constants(path, (float[STATES]){0, 20, 0}, STATES);
}

static rws_var choose(rws_path *path, int t, rws_var logits)
{
    char          name[16];
    const rws_var z = rws_categorical(path, (snprintf(name, sizeof name, "z%d", t % now.names), name),
                                      now.alike ? sure(path) : logits);
    return now.ints ? rws_constant(path, (float)rws_branch(path, z)) : z;
}

static void model(rws_path *path, const void *state)
{
    const net    *w = state;
    const rws_var next = rws_parameter(path, w->next), emit = rws_parameter(path, w->emit);
    const int     longer = rws_flip(path, "n", rws_constant(path, 0));
    rws_var       logits = rws_slice(path, next, 0, STATES);
    for (int t = 0; t < (longer || !now.items ? now.steps : now.steps - now.steps / 3); t++) {
        const rws_var z = choose(path, t, logits);
        if (now.items || t == 0) rws_categorical(path, "x", rws_row(path, emit, STATES, z));
        logits = rws_row(path, next, STATES, z);
    }
}

static void guide(rws_path *path, const void *state)
{
    const net *w = state;
    const int  n = rws_branch(path, rws_length(path, "x"));
    rws_var   *seen = rws_alloc(path, (size_t)n * sizeof *seen);
    for (int t = n - 1; t >= 0; t--) seen[t] = rws_embedding(path, w->seen, rws_item(path, "x", t));
    for (int t = 0; t < (now.items ? n : now.steps); t++) choose(path, t, seen[now.items ? t : 0]);
}

static const rws_model chain = {.abi = RWS_ABI,
                                .name = "chain",
                                .help = "a long chain",
                                .defaults = {.batch = 2, .n_test = 2, .shards = 1},
                                .setup = setup,
                                .data = data,
                                .guide = guide,
                                .model = model};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run_case(bool full)
{
    rws_error   err = {""};
    double      at[2];
    const char *methods[] = {"ww", "ws"};
    rws_config  c = {.model = "chain", .particles = now.particles, .seed = 1};
    for (int i = 0; i < 2; i++) {
        c.method = methods[i];
        rws_trainer *t = trainer_for(&c, &chain);
        const double start = seconds();
        const bool   fine = rws_trainer_step(t, &err) == RWS_OK;
        at[i] = seconds() - start;
        if (!fine) fprintf(stderr, "%s: %s: %s\n", now.what, methods[i], err.text);
        rws_trainer_free(t);
        if (!fine) return false;
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (full) printf("%-50s %8.2f %8.2f %10.0f\n", now.what, at[0], at[1], (double)used.ru_maxrss / 1024);
    return true;
}

/* In a process of its own, whose largest memory is then that of this case. */
static bool apart(const size_case *c, bool full)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        now = *c;
        if (!full) now.steps = now.steps / now.tenth;
        const bool fine = run_case(full);
        fflush(stdout);
        _exit(!fine);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void sizes_are_no_limit(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(cases); i++)
        if (!apart(&cases[i], false)) fail_msg("%s", cases[i].what);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "full") == 0) {
        bool fine = true;
        printf("%-50s %8s %8s %10s\n", "one iteration, batch of 2", "ww, s", "ws, s", "memory, MB");
        for (int i = 0; i < COUNT(cases); i++)
            if (argc < 3 || atoi(argv[2]) == i) fine &= apart(&cases[i], true);
        return !fine;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_are_no_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
