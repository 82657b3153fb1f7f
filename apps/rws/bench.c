/* bench.c - rws bench: the time of an iteration, its memory, and its numbers of rows (those that are computed, and
 * those that would be enough), particles and kernel calls.
 *
 * The same iterations are timed several times: training is rewound between, so that a fast machine, which gets further
 * while it warms up, times the same work as a slow one. The best time is what the machine can do; a median far above it
 * says that other programs were running. The rate of a large matrix product, measured in the same process, tells a slow
 * program from a slow machine.
 */
#include "base/error.h"
#include "base/clock.h"
#include "base/order.h"
#include "rws/command.h"
#include "rws/options.h"
#include "rws/reopen.h"
#include "rws/output.h"
#include "rws/progress.h"
#include "comm/comm.h"
#include "train/inspect.h"
#include "tensor/gemm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CHUNK 0.2      /* seconds of iterations that are timed together, unless --iterations is given */
#define WARM_LEAST 0.2 /* seconds of warming up */
#define WARM_MOST 3.0

enum { MAX_REPEATS = 1000, KEY_REPEAT = 0x3000, KEY_AFTER };

typedef struct {
    rws_options options;
    uint64_t    repeats, after;
} bench_options;

typedef struct {
    uint64_t         iterations;
    double           seconds;
    rws_engine_stats stats;
    rws_comm_stats   comm;
} chunk;

typedef struct {
    chunk    best;
    double   median; /* seconds per iteration */
    int      repeats;
    uint64_t needed, history; /* rows that the iterations of a repeat need; and if a row were kept for a history */
    uint64_t allocations, iterations; /* of all repeats */
    double   peak_rss, machine_gflops;
} result;

/* ---- rewinding */

typedef struct {
    rws_run_state now;
    float        *numbers[3]; /* copies of the parameters and of the optimiser's slots */
    uint64_t      steps[RWS_GROUPS], iteration;
    double        memory[RWS_METHOD_MEMORY];
} moment;

static rws_status remember(rws_trainer *t, moment *m, rws_error *err)
{
    *m = (moment){.now = rws__trainer_state_of(t)};
    const size_t bytes = m->now.params->size * sizeof(float);
    const float *from[] = {m->now.params->value, m->now.slot[0], m->now.slot[1]};
    for (int i = 0; i < 3; i++) {
        if (!from[i]) continue;
        m->numbers[i] = malloc(bytes);
        if (!m->numbers[i]) return rws_no_memory(err, "a copy of the parameters");
        memcpy(m->numbers[i], from[i], bytes);
    }
    memcpy(m->steps, m->now.steps, sizeof m->steps);
    memcpy(m->memory, m->now.memory, sizeof m->memory);
    m->iteration = *m->now.iteration;
    return RWS_OK;
}

static void rewind_to(const moment *m, rws_trainer *t)
{
    float *const to[] = {m->now.params->value, m->now.slot[0], m->now.slot[1]};
    for (int i = 0; i < 3; i++)
        if (to[i]) memcpy(to[i], m->numbers[i], m->now.params->size * sizeof(float));
    memcpy(m->now.steps, m->steps, sizeof m->steps);
    memcpy(m->now.memory, m->memory, sizeof m->memory);
    *m->now.iteration = m->iteration;
    rws_trainer_changed(t);
}

static void forget(moment *m)
{
    for (int i = 0; i < 3; i++) free(m->numbers[i]);
}

/* ---- measuring */

static rws_status time_chunk(rws_trainer *t, uint64_t iterations, chunk *out, rws_error *err)
{
    *out = (chunk){.iterations = iterations};
    rws__trainer_take_stats(t);
    rws__comm_take_stats(rws__comm_world());
    const double start = rws__clock_now();
    for (uint64_t i = 0; i < iterations; i++) RWS_TRY(rws_trainer_step(t, err));
    out->seconds = rws__clock_now() - start;
    out->stats = rws__trainer_take_stats(t);
    out->comm = rws__comm_take_stats(rws__comm_world());
    return RWS_OK;
}

static double seconds_each(const chunk *c)
{
    return c->seconds / (double)c->iterations;
}

/* All ranks take over a decision that rank 0 makes by its clock. */
static rws_status follow(uint64_t *decision, rws_error *err)
{
    rws_comm *c = rws__comm_world();
    return c ? rws__comm_broadcast(c, decision, sizeof *decision, err) : RWS_OK;
}

/* Steps until memory has its final size, so that no growing arena is timed. *iterations becomes the number of
 * iterations that take about CHUNK seconds. */
static rws_status warm_up(rws_trainer *t, uint64_t *iterations, rws_error *err)
{
    chunk    c;
    uint64_t n = 1;
    for (double total = 0;;) {
        const uint64_t before = rws__trainer_allocations(t);
        RWS_TRY(time_chunk(t, n, &c, err));
        total += c.seconds;
        uint64_t more = c.seconds < WARM_LEAST ? 2 * n : n;
        if (total >= WARM_MOST || (total >= WARM_LEAST && rws__trainer_allocations(t) == before)) more = 0;
        RWS_TRY(follow(&more, err));
        if (!more) break;
        n = more;
    }
    *iterations = (uint64_t)(CHUNK / seconds_each(&c)) + 1;
    return follow(iterations, err);
}

/* Between what is timed. */
static void show(rws_progress *p, int done)
{
    if (rws_rank() == 0) rws__progress_show(p, (uint64_t)done);
}

static rws_status time_iterations(rws_trainer *t, uint64_t wanted, int repeats, const moment *start, result *out,
                                  rws_error *err)
{
    uint64_t     iterations = 0;
    double       each[MAX_REPEATS];
    rws_progress progress;
    rws__progress_init(&progress, rws_trainer_model(t)->name, 0, (uint64_t)repeats + 2);
    RWS_TRY(warm_up(t, &iterations, err));
    if (wanted) iterations = wanted;
    const uint64_t before = rws__trainer_allocations(t);
    for (int i = 0; i < repeats; i++) {
        chunk c;
        show(&progress, i + 1);
        rewind_to(start, t);
        RWS_TRY(time_chunk(t, iterations, &c, err));
        each[i] = seconds_each(&c);
        uint64_t better = i == 0 || each[i] < seconds_each(&out->best);
        RWS_TRY(follow(&better, err));
        if (better) out->best = c;
    }
    out->repeats = repeats;
    out->iterations = iterations * (uint64_t)repeats;
    out->allocations = rws__trainer_allocations(t) - before;
    qsort(each, (size_t)repeats, sizeof *each, rws__order_doubles);
    out->median = 0.5 * (each[(repeats - 1) / 2] + each[repeats / 2]);
    /* The same iterations once more, not timed, because counting takes time. */
    chunk counted;
    show(&progress, repeats + 1);
    rewind_to(start, t);
    rws__trainer_count_rows(t, true);
    RWS_TRY(time_chunk(t, iterations, &counted, err));
    rws__trainer_count_rows(t, false);
    rws__progress_clear(&progress);
    out->needed = counted.stats.needed;
    out->history = counted.stats.history;
    return RWS_OK;
}

static double measure_machine(void)
{
    enum { N = 512 };
    float *m = aligned_alloc(64, 3 * N * N * sizeof *m);
    rws__need_memory(m != NULL, "three matrices");
    for (int i = 0; i < 3 * N * N; i++) m[i] = (float)(i % 7) * 0.1f;
    double best = 0;
    for (int i = 0; i < 6; i++) { /* the first warms up */
        const double start = rws__clock_now();
        rws__gemm_nn(N, N, N, m, N, m + N * N, N, NULL, 0, m + 2 * N * N, N);
        const double rate = 2e-9 * N * N * N / (rws__clock_now() - start);
        if (i > 0 && rate > best) best = rate;
    }
    free(m);
    return best;
}

static double peak_rss_mb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : 0;
}

/* ---- ranks */

/* The figures of all ranks: numbers of work and memory are sums over the ranks, the share of communication and the
 * rate of the machine are means. Times are rank 0's; ranks wait for each other in every iteration. */
static rws_status add_ranks(result *r, rws_error *err)
{
    rws_comm *c = rws__comm_world();
    if (!c) return RWS_OK;
    const int  R = rws__comm_size(c);
    result    *all = malloc((size_t)R * sizeof *all), sum = *r;
    rws_status status = rws__comm_agree(c, all ? RWS_OK : rws_no_memory(err, "the figures of the ranks"), err);
    if (status == RWS_OK) status = rws__comm_gather(c, r, sizeof *r, all, err);
    for (int i = 0; i < R && status == RWS_OK; i++) {
        if (i == 0) sum = all[0];
        else {
            sum.best.stats.rows += all[i].best.stats.rows;
            sum.best.stats.particles += all[i].best.stats.particles;
            sum.best.stats.calls += all[i].best.stats.calls;
            sum.best.stats.flops += all[i].best.stats.flops;
            sum.best.comm.seconds += all[i].best.comm.seconds;
            sum.best.comm.bytes += all[i].best.comm.bytes;
            sum.best.comm.messages += all[i].best.comm.messages;
            sum.best.stats.nodes += all[i].best.stats.nodes;
            sum.best.stats.paths += all[i].best.stats.paths;
            sum.best.stats.operations += all[i].best.stats.operations;
            sum.best.stats.ended += all[i].best.stats.ended;
            sum.best.stats.ended_clock += all[i].best.stats.ended_clock;
            sum.best.stats.resampled += all[i].best.stats.resampled;
            sum.needed += all[i].needed;
            sum.history += all[i].history;
            sum.allocations += all[i].allocations;
            sum.peak_rss += all[i].peak_rss;
            sum.machine_gflops += all[i].machine_gflops;
        }
    }
    sum.machine_gflops /= R;
    if (status == RWS_OK) *r = sum;
    free(all);
    return status;
}

/* ---- reporting */

typedef struct {
    const char *name;
    double      value;
    bool        whole;
} line;

/* Lines that only several ranks have. */
static int lines_of_ranks(const rws_trainer *t, const chunk *best, line *out)
{
    const double n = (double)best->iterations, R = rws_n_ranks(), threads = R * rws_trainer_config(t)->threads;
    if (rws_n_ranks() == 1) return 0;
    out[0] = (line){"ranks", R, true};
    out[1] = (line){"communication_share", best->comm.seconds / (best->seconds * threads), false};
    out[2] = (line){"bytes_sent_per_iteration", (double)best->comm.bytes / n, false};
    out[3] = (line){"messages_sent_per_iteration", (double)best->comm.messages / n, false};
    return 4;
}

static void print_result(const rws_trainer *t, const result *r, bool json)
{
    const rws_config *c = rws_trainer_config(t);
    const chunk      *best = &r->best;
    const double      n = (double)best->iterations;
    line              lines[26] = {
                     {"us_per_iteration", 1e6 * seconds_each(best), false},
                     {"us_per_iteration_median", 1e6 * r->median, false},
                     {"iterations", n, true},
                     {"repeats", r->repeats, true},
                     {"threads", c->threads, true},
                     {"particles", c->particles, true},
                     {"batch", c->batch, true},
                     {"peak_rss_mb", r->peak_rss, false},
                     {"rows_per_iteration", (double)best->stats.rows / n, false},
                     {"rows_needed_per_iteration", (double)r->needed / n, false},
                     {"rows_by_history_per_iteration", (double)r->history / n, false},
                     {"paths_per_iteration", (double)best->stats.paths / n, false},
                     {"library_calls_per_iteration", (double)best->stats.operations / n, false},
                     {"nodes_per_iteration", (double)best->stats.nodes / n, false},
                     {"particles_per_iteration", (double)best->stats.particles / n, false},
                     {"ended_per_iteration", (double)best->stats.ended / n, false},
                     {"ended_at_clock", (double)best->stats.ended_clock / fmax(1, (double)best->stats.ended), false},
                     {"resampled_per_iteration", (double)best->stats.resampled / n, false},
                     {"kernel_calls_per_iteration", (double)best->stats.calls / n, false},
                     {"gflops", 1e-9 * (double)best->stats.flops / best->seconds, false},
                     {"machine_gflops", r->machine_gflops, false},
                     {"allocations_per_iteration", (double)r->allocations / (double)r->iterations, false},
    };
    const int n_lines = 22 + lines_of_ranks(t, best, lines + 22);
    if (!json) {
        printf("%-29s %s\n%-29s %s\n", "model", rws_trainer_model(t)->name, "method", c->method);
        for (int i = 0; i < n_lines; i++)
            printf(lines[i].whole ? "%-29s %.0f\n" : "%-29s %.5g\n", lines[i].name, lines[i].value);
        return;
    }
    json_t *o = json_pack("{s:s,s:s}", "model", rws_trainer_model(t)->name, "method", c->method);
    for (int i = 0; i < n_lines; i++) {
        const double value = lines[i].value;
        json_t      *number = lines[i].whole ? json_integer((json_int_t)value) : rws__json_real(value);
        json_object_set_new(o, lines[i].name, number);
    }
    rws__output_json(o);
}

/* ---- beginning */

/* Makes the trainer. Late in training, when the guide is sharp, an iteration may cost far less than in the beginning:
 * with
 * --resume the run in --out is timed from its checkpoint, also with other particles or another batch, and is not
 * changed. */
static rws_status configure(bench_options *b, rws_folder **folder, rws_config *config, rws_error *err)
{
    rws_options *o = &b->options;
    rws_config   stored;
    if (o->out && !o->resume)
        return rws_fail(err, RWS_BAD_INPUT,
                        "bench writes nothing: --out goes with --resume, to time a run from its checkpoint.");
    if (o->resume) {
        RWS_TRY(rws__folder_open(o->out, &stored, folder, err));
        const bool particles = rws__options_take(o, "particles"), batch = rws__options_take(o, "batch");
        RWS_TRY(rws__options_resume(o, &stored, rws__folder_recorded(*folder), config, err));
        if (particles) config->particles = o->config.particles;
        if (batch) config->batch = o->config.batch;
    } else {
        rws__options_fill(o);
        *config = o->config;
    }
    config->iterations =
        RWS_MAX_ITERATIONS; /* schedules by the share of iterations that are done stay at their beginning */
    return RWS_OK;
}

static rws_status load(const char *out, rws_folder *folder, rws_trainer *trainer, rws_error *err)
{
    RWS_TRY(rws__reopen_checkpoint(out, folder, err));
    return rws__trainer_peek(trainer, folder, err);
}

/* Every rank reads the folder, if there is one. */
static rws_status begin(bench_options *b, rws_folder **folder, rws_trainer **trainer, rws_error *err)
{
    rws_comm  *comm = rws__comm_world();
    rws_config config;
    RWS_TRY(rws__comm_agree(comm, configure(b, folder, &config, err), err));
    RWS_TRY(rws__trainer_open(&config, *folder ? rws__folder_recorded(*folder) : NULL, NULL, trainer, err));
    return b->options.resume ? rws__comm_agree(comm, load(b->options.out, *folder, *trainer, err), err) : RWS_OK;
}

static const struct argp_option options[] = {
    {"after", KEY_AFTER, "N", 0, "Train N iterations before the timed ones (default 0)", 3},
    {"repeat", KEY_REPEAT, "R", 0,
     "Time the same --iterations, or about 0.2 seconds of them, R times; the best counts (default 5)", 3},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bench_options *b = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        b->repeats = 5;
        state->child_inputs[0] = &b->options;
        return 0;
    case KEY_AFTER: return rws__arguments_count(state, "--after", arg, 0, RWS_MAX_ITERATIONS / 2, &b->after);
    case KEY_REPEAT: return rws__arguments_count(state, "--repeat", arg, 1, MAX_REPEATS, &b->repeats);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Times iterations of a model or, with --out and --resume, of a run from its checkpoint, also with another "
           "-k or "
           "-b. Nothing is written.",
    .children = (const struct argp_child[]){{.argp = &rws_options_argp}, {0}},
};

static rws_status run(int argc, char **argv, rws_error *err)
{
    bench_options b = {0};
    RWS_TRY(rws__arguments_parse(&argp, "rws bench", argc, argv, 0, &b, err));
    RWS_TRY(rws__command_join("", err));
    rws_folder  *folder = NULL;
    rws_trainer *trainer = NULL;
    result       r = {0};
    moment       start = {0};
    rws_status   status = begin(&b, &folder, &trainer, err);
    for (uint64_t i = 0; i < b.after && status == RWS_OK; i++) status = rws_trainer_step(trainer, err);
    if (status == RWS_OK) status = rws__comm_agree(rws__comm_world(), remember(trainer, &start, err), err);
    if (status == RWS_OK)
        status = time_iterations(trainer, b.options.config.iterations, (int)b.repeats, &start, &r, err);
    if (status == RWS_OK) {
        r.peak_rss = peak_rss_mb(); /* before the matrices below add to it */
        r.machine_gflops = measure_machine();
        status = add_ranks(&r, err);
    }
    if (status == RWS_OK) {
        print_result(trainer, &r, b.options.json);
    }
    forget(&start);
    rws_trainer_free(trainer);
    rws__folder_close(folder);
    return status;
}

const rws_command rws_command_bench = {"bench", "time the iterations of a model", run, &argp, .ranks = true};
