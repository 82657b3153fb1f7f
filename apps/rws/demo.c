/* demo.c - rws demo: trains the paper's mixture, from a start far away, by wake-sleep, wake-wake and its defensive
 * variant, with few particles and with many, and compares them. It takes about a minute.
 *
 * The six trainings are independent; as many run at once as there are cores, each on one thread, so that the numbers
 * are the same on every machine.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "rws/command.h"
#include "rws/options.h"
#include "rws/progress.h"
#include "rws/output.h"
#include "rws/signals.h"
#include "figure/chart.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITERATIONS 100000 /* of each training */
#define POINTS 100        /* of each curve */
#define SEED 1

static const char *const methods[] = {"ws", "ww", "dww"};
static const int         particles[] = {2, 20};

enum { N_METHODS = 3, N_PARTICLES = 2, N_RUNS = N_METHODS * N_PARTICLES, MAX_POINTS = POINTS + 2 };
enum { P_ERROR, Q_ERROR, N_METRICS };

static const char *const metrics[N_METRICS] = {"p_error", "q_error"};
static const char *const captions[N_METRICS] = {"p error", "q error"};

typedef struct {
    const char *out;
    uint64_t    iterations;
    bool        json;
} demo_options;

typedef struct {
    const char      *method;
    int              K;
    _Atomic uint64_t done;
    int              n; /* points so far */
    double           x[MAX_POINTS], y[N_METRICS][MAX_POINTS];
    double           seconds;
    rws_status       status;
    rws_error        err;
} training;

/* Run k * N_METHODS + m has particles[k] and methods[m]. */
typedef struct {
    training     runs[N_RUNS];
    uint64_t     iterations;
    _Atomic int  next; /* index of the first run that no thread has taken */
    _Atomic bool stop; /* a run has failed, and the others end too */
} demo;

/* ---- training */

static rws_status train_with(demo *d, training *r, rws_trainer *t, rws_error *err)
{
    const uint64_t every = d->iterations > POINTS ? d->iterations / POINTS : 1;
    double         since = rws__clock_now();
    for (uint64_t done = 0; done < d->iterations && !d->stop && !rws__interrupted();) {
        RWS_TRY(rws_trainer_step(t, err));
        atomic_store_explicit(&r->done, ++done, memory_order_relaxed);
        if ((done != 1 && done % every != 0 && done != d->iterations) || r->n == MAX_POINTS) continue;
        r->seconds += rws__clock_now() - since;
        rws_measures m;
        RWS_TRY(rws_trainer_evaluate(t, &m, err));
        r->x[r->n] = (double)done;
        for (int i = 0; i < N_METRICS; i++) r->y[i][r->n] = rws_measures_get(&m, metrics[i]);
        r->n++;
        since = rws__clock_now();
    }
    return RWS_OK;
}

static void train(demo *d, training *r)
{
    const rws_config config = {.model = "gmm",
                               .method = r->method,
                               .particles = r->K,
                               .iterations = d->iterations,
                               .seed = SEED,
                               .threads = 1,
                               .set = {"start=far"},
                               .n_set = 1};
    rws_trainer     *t = NULL;
    r->status = rws_trainer_new(&config, NULL, &t, &r->err);
    if (r->status == RWS_OK) r->status = train_with(d, r, t, &r->err);
    if (r->status != RWS_OK) d->stop = true;
    rws_trainer_free(t);
}

static void *worker(void *context)
{
    demo *d = context;
    /* Trainings with many particles come first: they take longest, and the others fill the gaps at the end. */
    for (int i; (i = atomic_fetch_add(&d->next, 1)) < N_RUNS;)
        train(d, &d->runs[(N_PARTICLES - 1 - i / N_METHODS) * N_METHODS + i % N_METHODS]);
    return NULL;
}

static void show(const demo *d, rws_progress *p)
{
    uint64_t done = 0;
    for (int i = 0; i < N_RUNS; i++) done += atomic_load_explicit(&d->runs[i].done, memory_order_relaxed);
    rws__progress_show(p, done);
}

static rws_status train_all(demo *d, rws_error *err)
{
    rws_progress progress;
    pthread_t    threads[N_RUNS];
    const int    wanted = rws__options_cores() < N_RUNS ? rws__options_cores() : N_RUNS;
    int          n = 0;
    rws__progress_init(&progress, "ws, ww and dww on gmm", 0, N_RUNS * d->iterations);
    while (n < wanted && pthread_create(&threads[n], NULL, worker, d) == 0) n++;
    if (n == 0) worker(d);
    for (int i = 0; i < n;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        if (pthread_timedjoin_np(threads[i], NULL, &until) == 0) i++;
        show(d, &progress);
    }
    rws__progress_clear(&progress);
    for (int i = 0; i < N_RUNS; i++) {
        if (d->runs[i].status == RWS_OK) continue;
        *err = d->runs[i].err;
        return d->runs[i].status;
    }
    if (rws__interrupted()) return rws_fail(err, RWS_STOPPED, "Stopped; the demo starts from the beginning next time.");
    return RWS_OK;
}

/* ---- the picture */

static rws_status draw(const demo *d, const char *path, rws_error *err)
{
    rws_curve curves[N_METRICS][N_PARTICLES][N_METHODS];
    rws_panel panels[N_METRICS][N_PARTICLES];
    rws_axis  x[N_PARTICLES], y[N_METRICS];
    char      titles[N_PARTICLES][16];
    for (int k = 0; k < N_PARTICLES; k++) {
        snprintf(titles[k], sizeof titles[k], "K = %d", particles[k]);
        x[k] = (rws_axis){.label = "iteration"};
        for (int i = 0; i < N_METRICS; i++) {
            for (int m = 0; m < N_METHODS; m++) {
                const training *r = &d->runs[k * N_METHODS + m];
                curves[i][k][m] = (rws_curve){.method = r->method, .n = r->n, .x = r->x, .y = r->y[i]};
            }
            panels[i][k] = (rws_panel){i == 0 ? titles[k] : NULL, curves[i][k], N_METHODS};
            y[i] = (rws_axis){.label = captions[i], .scale = RWS_AXIS_LOG};
        }
    }
    const rws_chart chart = {.title = "A mixture of 20 Gaussians, from a start far away",
                             .n_rows = N_METRICS,
                             .n_columns = N_PARTICLES,
                             .panels = &panels[0][0],
                             .x = x,
                             .y = y};
    return rws__chart_draw(&chart, path, err);
}

/* ---- the numbers */

static double final(const training *r, int metric)
{
    return r->n > 0 ? r->y[metric][r->n - 1] : NAN;
}

/* The methods with the least and the second least value of a metric with particles[k]; -1: there is none. NaN is never
 * the least. */
static void rank(const demo *d, int k, int metric, int *first, int *second)
{
    *first = *second = -1;
    for (int m = 0; m < N_METHODS; m++) {
        const double value = final(&d->runs[k * N_METHODS + m], metric);
        if (!isfinite(value)) continue;
        if (*first < 0 || value < final(&d->runs[k * N_METHODS + *first], metric)) *second = *first, *first = m;
        else if (*second < 0 || value < final(&d->runs[k * N_METHODS + *second], metric)) *second = m;
    }
}

static void describe(const demo *d, int k, int metric, char *out, size_t size)
{
    int first, second;
    rank(d, k, metric, &first, &second);
    const training *runs = &d->runs[k * N_METHODS];
    if (second < 0) {
        if (first < 0) snprintf(out, size, "none of them");
        else snprintf(out, size, "%s alone (%.3g)", methods[first], final(&runs[first], metric));
        return;
    }
    const double least = final(&runs[first], metric), ratio = final(&runs[second], metric) / least;
    if (ratio < 1.1) snprintf(out, size, "%s (%.3g, hardly ahead of %s)", methods[first], least, methods[second]);
    else snprintf(out, size, "%s (%.3g, %.1f times closer than %s)", methods[first], least, ratio, methods[second]);
}

static void print_table(const demo *d)
{
    printf("%-8s %4s  %12s  %12s  %8s\n", "method", "K", metrics[P_ERROR], metrics[Q_ERROR], "seconds");
    for (int k = 0; k < N_PARTICLES; k++) {
        int best[N_METRICS], quickest = 0, second;
        for (int i = 0; i < N_METRICS; i++) rank(d, k, i, &best[i], &second);
        for (int m = 1; m < N_METHODS; m++)
            if (d->runs[k * N_METHODS + m].seconds < d->runs[k * N_METHODS + quickest].seconds) quickest = m;
        for (int m = 0; m < N_METHODS; m++) {
            const training *r = &d->runs[k * N_METHODS + m];
            printf("%-8s %4d  %11.4g%c  %11.4g%c  %7.1f%c\n", r->method, r->K, final(r, P_ERROR),
                   m == best[P_ERROR] ? '*' : ' ', final(r, Q_ERROR), m == best[Q_ERROR] ? '*' : ' ', r->seconds,
                   m == quickest ? '*' : ' ');
        }
    }
    printf("* the best with this number of particles, after %" PRIu64 " iterations\n\n", d->iterations);
}

static void print_text(const demo *d, const char *path)
{
    print_table(d);
    for (int k = 0; k < N_PARTICLES; k++) {
        char p[96], q[96];
        describe(d, k, P_ERROR, p, sizeof p);
        describe(d, k, Q_ERROR, q, sizeof q);
        printf("With K = %d the best model is that of %s; the best posterior is that of %s.\n", particles[k], p, q);
    }
    printf("The curves are in %s\n", path);
}

static void print_json(const demo *d, const char *path)
{
    for (int i = 0; i < N_RUNS; i++) {
        const training *r = &d->runs[i];
        json_t         *o =
            json_pack("{s:s,s:i,s:I}", "method", r->method, "particles", r->K, "iteration", (json_int_t)d->iterations);
        json_object_set_new(o, "seconds", rws__json_real(round(1e6 * r->seconds) / 1e6));
        for (int m = 0; m < N_METRICS; m++) json_object_set_new(o, metrics[m], rws__json_real(final(r, m)));
        rws__output_json(o);
    }
    json_t *winners = json_array();
    for (int k = 0; k < N_PARTICLES; k++) {
        json_t *o = json_pack("{s:i}", "particles", particles[k]);
        for (int i = 0; i < N_METRICS; i++) {
            int first, second;
            rank(d, k, i, &first, &second);
            json_object_set_new(o, metrics[i], first < 0 ? json_null() : json_string(methods[first]));
        }
        json_array_append_new(winners, o);
    }
    rws__output_json(json_pack("{s:b,s:o,s:o}", "final", 1, "best", winners, "picture", rws__json_string(path)));
}

/* ---- the command */

enum { KEY_JSON = 0x2000 };

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "The folder of demo.png (default: the current folder)", 0},
    {"iterations", 'n', "N", 0, "Iterations of each of the six trainings", 0},
    {"json", KEY_JSON, 0, 0, "Print one JSON object per line", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    demo_options *o = state->input;
    switch (key) {
    case 'o': return rws__arguments_folder(state, "--out", arg, &o->out);
    case 'n': return rws__arguments_count(state, "--iterations", arg, 1, 100000000, &o->iterations);
    case KEY_JSON: o->json = true; return 0;
    case ARGP_KEY_ARG: return rws__arguments_extra(state, arg);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Trains a Gaussian mixture by three methods with 2 and 20 particles, compares them and draws demo.png.",
};

/* Called before training, so that a folder that cannot be written to is refused at once. */
static rws_status make_folder(const char *path, rws_error *err)
{
    RWS_TRY(rws__file_make_folder(path, err));
    if (access(path, W_OK) != 0)
        return rws_fail(err, RWS_BAD_INPUT, "The folder \"%s\" cannot be written to: %s.", rws__quote_short(path).text,
                        strerror(errno));
    return RWS_OK;
}

static rws_status run(int argc, char **argv, rws_error *err)
{
    demo_options o = {.out = ".", .iterations = ITERATIONS};
    RWS_TRY(rws__arguments_parse(&argp, "rws demo", argc, argv, 0, &o, err));
    RWS_TRY(make_folder(o.out, err));
    char *path = rws__file_join(o.out, "demo.png");
    demo *d = calloc(1, sizeof *d);
    if (!path || !d) {
        free(path);
        free(d);
        return rws_no_memory(err, "the demo");
    }
    d->iterations = o.iterations;
    for (int i = 0; i < N_RUNS; i++) {
        d->runs[i].method = methods[i % N_METHODS];
        d->runs[i].K = particles[i / N_METHODS];
    }
    rws__signals_catch();
    rws_status status = train_all(d, err);
    if (status == RWS_OK) status = draw(d, path, err);
    if (status == RWS_OK) (o.json ? print_json : print_text)(d, path);
    free(d);
    free(path);
    return status;
}

const rws_command rws_command_demo = {"demo", "a short tour: train, compare, draw", run, &argp};
