/* schedule.c - paths on fibers: which of them run, which wait, and how a path splits.
 *
 * A split, where the value of v is 0 for rows a b and 1 for rows c d e:
 *
 *     path 1   …  x  y  branch(v) ->      path 1   …  x  y  0  …       continues where it is, with rows a b
 *              rows a b c d e             path 2   …  x  y  1          starts again with rows c d e; its library calls
 *                                                  \_replayed_/        return x, y and 1 from the log, then it is new
 */
#include "engine/internal.h"
#include "tensor/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rws__programs(rws_path *path)
{
    const rws_pass *pass = &path->e->pass;
    for (int i = 0; i < 2; i++) {
        const bool guide = (i == 0) != (pass->mode == RWS_SLEEP);
        rws__path_side(path, guide ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        (guide ? pass->model->guide : pass->model->model)(path, pass->state);
    }
    rws__path_side(path, RWS_SIDE_NONE);
}

static void path_entry(void *arg)
{
    rws_path       *path = arg;
    const rws_pass *pass = &path->e->pass;
    if (pass->program) pass->program(path, pass->context);
    else rws__programs(path);
}

static void path_overflow(void *arg)
{
    rws_path *path = arg;
    path->overflowed = true;
    rws__path_overflows(path);
}

#define SPARE_MAPPINGS 65530 /* Linux's default for the whole process */

/* Adds a path that has never been used to the end of the list. */
static void path_make(rws_engine *e)
{
    if (e->n_made == e->path_capacity) e->paths = rws__grow(e, e->paths, &e->path_capacity, sizeof *e->paths);
    rws_path *path = calloc(1, sizeof *path + (size_t)e->n_fields * sizeof *path->field);
    if (!path) rws__engine_no_memory(e);
    path->e = e;
    path->fiber = rws__fiber_new(e->limits.stack_bytes);
    if (!path->fiber) {
        free(path);
        rws__engine_fail(
            e, RWS_NO_MEMORY,
            "The system has no memory, or no mappings, for the stacks of more than %u paths of a thread; a "
            "stack takes two mappings. `sysctl vm.max_map_count=%llu` allows as many as "
            "`max_paths` for each of two threads; a smaller `batch`, more `shards` or fewer `threads` need "
            "fewer paths at once.",
            e->n_made, 4 * (unsigned long long)e->limits.max_paths + SPARE_MAPPINGS);
    }
    rws__fiber_on_overflow(path->fiber, path_overflow);
    path->stack_end = rws__fiber_end(path->fiber);
    e->n_allocations += 2;
    e->paths[e->n_made++] = path;
}

static _Noreturn void too_many_paths(rws_engine *e)
{
    char text[240];
    rws__engine_fail(e, RWS_BAD_INPUT, "The pass has more than %llu paths%s%s. A larger `max_paths` allows more.",
                     (unsigned long long)e->limits.max_paths, e->running ? ", the last one in " : "",
                     e->running ? rws__path_where(e->running, text) : "");
}

static rws_path *path_new(rws_engine *e)
{
    if (e->n_paths >= e->limits.max_paths) too_many_paths(e);
    if (e->n_paths == e->n_made) path_make(e);
    rws_path *path = e->paths[e->n_paths++];
    if (++e->stamp == 0) e->stamp = 1; /* 0 belongs to no path */
    path->stamp = e->stamp;
    path->cursor = path->n_log = path->n_trace = path->n_scored = path->ordinal = path->n_reports = path->n_sites = 0;
    path->operations = path->n_taken = 0;
    memset(path->fields_seen, 0, fields_seen_bytes(e));
    path->depth = 0;
    path->function = "";
    path->side = RWS_SIDE_NONE;
    path->coming = NULL;
    path->frozen = 0;
    path->n_wants = 0;
    path->site = NONE;
    path->site_visit = 0;
    path->overflowed = path->abandoned = false;
    memset(path->field, 0, (size_t)e->n_fields * sizeof *path->field);
    memset(path->note, 0, sizeof path->note);
    return path;
}

static void path_begin(rws_engine *e, uint32_t index)
{
    rws__fiber_start(e->paths[index]->fiber, path_entry, e->paths[index]);
    *RWS_PUSH(e, e->ready, e->n_ready, e->ready_capacity) = index;
}

/* On a path the fiber yields, never to be resumed, and the scheduler finds the status; or, with a host, the library's frames
 * are left and the program's own code finds it. Elsewhere the function that the engine was entered by continues behind its
 * setjmp. Frames that are left own no memory: all of it is the engine's. */
static _Noreturn void leave(rws_engine *e)
{
    if (e->running) {
        rws__host_escape(e->running);
        for (;;) rws__fiber_yield(e->running->fiber);
    }
    RWS_CHECK(e->entered);
    longjmp(e->leave, 1);
}

/* The first failure of a pass counts. */
static void note_failure(rws_engine *e, rws_status status, const char *format, va_list args)
{
    if (e->status == RWS_OK) e->status = rws__fail_v(&e->error, status, format, args);
}

void rws__engine_fail(rws_engine *e, rws_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_failure(e, status, format, args);
    va_end(args);
    leave(e);
}

void rws__engine_no_memory(void *engine)
{
    rws_engine *e = engine;
    rws__engine_fail(e, RWS_NO_MEMORY, "There is no memory for a pass with %u paths and %u operations (%zu MB so far).",
                     e->n_paths, e->n_nodes, rws__arena_bytes(&e->arena) >> 20);
}

void rws__path_fail(rws_path *path, rws_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_failure(path->e, status, format, args);
    va_end(args);
    leave(path->e);
}

void rws_give_up(rws_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_failure(path->e, RWS_BAD_INPUT, format, args);
    va_end(args);
    leave(path->e);
}

void rws__path_need(rws_path *path, const rws_var *v, int n)
{
    bool done = true;
    for (int i = 0; i < n; i++) done &= rws__node_has(path->e, v[i].id, path->level);
    if (done) return;
    path->wants = v;
    path->n_wants = n;
    rws__host_wait(path);
}

void rws_await(rws_path *path, const rws_var *v, int n)
{
    if (n > 0 && !v) rws__path_mistake(path, "rws_await was given no values (NULL).");
    for (int i = 0; i < n; i++) rws__path_expect(path, v[i], "rws_await");
    rws__path_need(path, v, n);
}

/* A new level below `from` that has the n listed rows of it. */
static uint32_t subset(rws_engine *e, uint32_t from, const uint32_t *rows, uint32_t n)
{
    uint32_t *up = RWS_NEW(&e->arena, uint32_t, n), *count = RWS_NEW(&e->arena, uint32_t, n);
    bool      single = true;
    for (uint32_t i = 0; i < n; i++) {
        up[i] = rows[i];
        count[i] = e->levels[from].count[rows[i]];
        single &= count[i] == 1;
    }
    const uint32_t to = rws__level_new(e, from, n);
    e->levels[to].up = up;
    e->levels[to].count = count;
    e->levels[to].single = single;
    e->levels[to].cover = to;
    return to;
}

static void copy_path(rws_path *to, const rws_path *from)
{
    rws_engine *e = from->e;
    to->base = from->base;
    to->ordinal = from->ordinal;
    to->n_scored = from->n_scored;
    to->n_taken = from->n_taken;
    memcpy(to->fields_seen, from->fields_seen, fields_seen_bytes(e));
    while (to->log_capacity < from->n_log + 1) to->log = rws__grow(e, to->log, &to->log_capacity, sizeof *to->log);
    memcpy(to->log, from->log, from->n_log * sizeof *to->log);
    to->n_log = from->n_log;
    while (to->trace_capacity < from->n_trace)
        to->trace = rws__grow(e, to->trace, &to->trace_capacity, sizeof *to->trace);
    if (from->n_trace) memcpy(to->trace, from->trace, from->n_trace * sizeof *to->trace);
    to->n_trace = from->n_trace;
    while (to->site_capacity < from->n_sites)
        to->sites = rws__grow(e, to->sites, &to->site_capacity, sizeof *to->sites);
    if (from->n_sites) memcpy(to->sites, from->sites, from->n_sites * sizeof *to->sites);
    to->n_sites = from->n_sites;
    to->site = from->site;
    to->site_visit = from->site_visit;
    memcpy(to->field, from->field, (size_t)e->n_fields * sizeof *to->field);
    memcpy(to->note, from->note, sizeof to->note);
    while (to->report_capacity < from->n_reports)
        to->reports = rws__grow(e, to->reports, &to->report_capacity, sizeof *to->reports);
    if (from->n_reports) memcpy(to->reports, from->reports, from->n_reports * sizeof *to->reports);
    to->n_reports = from->n_reports;
}

/* Notes at the site that drew v that every particle of the path has this value. Draws have larger numbers than those before
 * them, so that the search ends soon, also for a value that no site drew. */
static void note_known(rws_path *path, rws_var v, uint32_t value)
{
    const uint32_t constant = rws__node_constant(path, (float)(int)value);
    if (constant == v.id) return; /* the value was known before */
    for (uint32_t i = path->n_trace; i-- > 0;) {
        trace_entry *t = &path->trace[i];
        if (path->e->sites[t->site].field >= 0) continue; /* an item of a series */
        if (t->var == v.id) t->known = constant;
        if (t->var <= v.id) return;
    }
}

/* Splits the path: row i belongs to part[i] in 0 … n_parts - 1, and no part is empty. The library call that splits
 * returns answer[p] to part p; answer NULL: the other parts execute the call themselves. `known` is the value that has
 * answer[p] in all rows of part p; {0}: there is none. This path continues as part 0. */
static rws_var split(rws_path *path, const uint32_t *part, uint32_t n_parts, const uint32_t *answer, rws_var known)
{
    rws_engine    *e = path->e;
    const uint32_t from = path->level, n = e->levels[from].n_rows;
    uint32_t       self = from, *rows = n_parts > 1 ? RWS_NEW(&e->arena, uint32_t, n) : NULL;
    for (uint32_t p = 0; p < n_parts && n_parts > 1; p++) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (part[i] == p) rows[m++] = i;
        const uint32_t to = subset(e, from, rows, m);
        if (p == 0) {
            self = to;
            continue;
        }
        rws_path *child = path_new(e);
        copy_path(child, path);
        child->level = to;
        if (answer) child->log[child->n_log++] = answer[p];
        if (known.id) note_known(child, known, answer[p]);
        path_begin(e, e->n_paths - 1);
    }
    path->level = self;
    if (known.id) note_known(path, known, answer[0]);
    return answer ? rws__returns(path, (rws_var){answer[0]}) : (rws_var){0};
}

void rws__path_split(rws_path *path, const uint32_t *part, uint32_t n_parts)
{
    split(path, part, n_parts, NULL, (rws_var){0});
}

static _Noreturn void no_integer(rws_path *path, double x)
{
    char where[240];
    rws__path_fail(path, isfinite(x) ? RWS_BAD_INPUT : RWS_BROKEN,
                   "In %s: rws_branch takes an integer between -1e9 and 1e9, not %g.", rws__path_where(path, where), x);
}

int rws_branch(rws_path *path, rws_var v)
{
    rws_engine *e = path->e;
    rws_var     answer;
    if (rws__replayed(path, &answer)) return (int)answer.id;
    rws__path_expect(path, v, "rws_branch");
    if (path->depth > 1) rws__path_mistake(path, "a program may branch only in its own code, not inside a layer.");
    if (e->nodes[v.id].dim != 1)
        rws__path_mistake(path, "rws_branch takes one number, not a vector of %d.", e->nodes[v.id].dim);
    rws__path_jumps(path, v, JUMP_BRANCH);
    rws__path_need(path, &v, 1);

    const uint32_t from = path->level, n = e->levels[from].n_rows;
    const reading  value = rws__node_read(e, v.id, from);
    uint32_t      *part = RWS_NEW(&e->arena, uint32_t, n), *answers = RWS_NEW(&e->arena, uint32_t, n), n_parts = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float x = value.value[value.row ? value.row[i] : i];
        if (!(x > -1e9f && x < 1e9f && x == (float)(int)x)) no_integer(path, rws__plain(x));
        /* parts in ascending order of their value */
        uint32_t p = 0;
        while (p < n_parts && (int)answers[p] < (int)x) p++;
        if (p == n_parts || (int)answers[p] != (int)x) {
            memmove(answers + p + 1, answers + p, (n_parts - p) * sizeof *answers);
            answers[p] = (uint32_t)(int)x;
            for (uint32_t j = 0; j < i; j++) part[j] += part[j] >= p;
            n_parts++;
        }
        part[i] = p;
    }
    return (int)split(path, part, n_parts, answers, v).id;
}

const float *rws_look(rws_path *path, rws_var v)
{
    rws_engine *e = path->e;
    rws_var     answer;
    if (rws__replayed(path, &answer)) return e->nodes[answer.id].value;
    rws__path_expect(path, v, "rws_look");
    if (path->depth > 1)
        rws__path_mistake(path, "a program may look at values only in its own code, not inside a layer.");
    rws__path_jumps(path, v, JUMP_LOOK);
    rws__path_need(path, &v, 1);

    const uint32_t from = path->level, n = e->levels[from].n_rows;
    const reading  value = rws__node_read(e, v.id, from);
    const int      dim = e->nodes[v.id].dim;
    const size_t   bytes = (size_t)dim * sizeof(float);
    uint32_t      *part = RWS_NEW(&e->arena, uint32_t, n), *answers = RWS_NEW(&e->arena, uint32_t, n), n_parts = 0;
    for (uint32_t i = 0; i < n; i++) {
        const float *row = value.value + (value.row ? value.row[i] : i) * (size_t)dim;
        for (part[i] = 0; part[i] < n_parts; part[i]++)
            if (memcmp(e->nodes[answers[part[i]]].value, row, bytes) == 0) break;
        if (part[i] == n_parts) answers[n_parts++] = rws__node_leaf(e, ROOT, dim, (float *)row);
    }
    return e->nodes[split(path, part, n_parts, answers, (rws_var){0}).id].value;
}

/* ---- a pass */

static void give_fields(rws_engine *e, rws_path *path, uint32_t base, size_t first_datum)
{
    for (int f = 0; f < e->n_fields && e->pass.mode != RWS_SLEEP; f++)
        path->field[f] = rws__node_leaf(e, base, e->fields[f].dim,
                                        (float *)e->pass.fields[f] + first_datum * (size_t)e->fields[f].dim);
}

static uint32_t *filled(rws_engine *e, uint32_t n, uint32_t value, uint32_t step)
{
    uint32_t *v = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) v[i] = value + i * step;
    return v;
}

/* One path for all particles, with a row per datum that stands for its K particles; in sleep one row stands for all. */
static void begin_together(rws_engine *e)
{
    const rws_pass *p = &e->pass;
    const uint32_t  K = (uint32_t)p->n_particles;
    uint32_t        base = ROOT;
    if (p->mode != RWS_SLEEP) {
        base = rws__level_new(e, ROOT, (uint32_t)p->n_data);
        e->levels[base].up = filled(e, (uint32_t)p->n_data, 0, 0);
    }
    e->levels[base].count = filled(e, e->levels[base].n_rows, K, 0);
    e->levels[base].stride = K;
    e->levels[base].single = K == 1;
    rws_path *path = path_new(e);
    path->level = path->base = base;
    give_fields(e, path, base, 0);
    path_begin(e, 0);
}

/* Scalar mode: a path for each particle, with a level and data of its own. */
static void begin_apart(rws_engine *e)
{
    const rws_pass *p = &e->pass;
    for (uint32_t d = 0; d < (uint32_t)p->n_data; d++)
        for (uint32_t k = 0; k < (uint32_t)p->n_particles; k++) {
            const uint32_t base = rws__level_new(e, ROOT, 1);
            level         *l = &e->levels[base];
            l->up = l->particles_start = filled(e, 1, 0, 0);
            l->count = filled(e, 1, 1, 0);
            l->particles = filled(e, 1, d * (uint32_t)p->n_particles + k, 0);
            l->single = true;
            rws_path *path = path_new(e);
            path->level = path->base = base;
            give_fields(e, path, base, d);
            path_begin(e, e->n_paths - 1);
        }
}

/* Every visit of the drawing side must have been scored by the other side. */
static void check_trace(rws_path *path)
{
    rws_engine *e = path->e;
    if (e->pass.mode == RWS_COMPUTE) return;
    for (int f = 0; f < e->n_fields; f++)
        if (e->fields[f].label || e->status != RWS_OK) continue;
        else if (e->fields[f].most) rws__series_check_end(path, f);
        else if (!field_seen(path, f)) {
            e->status = rws_fail(&e->error, RWS_BAD_INPUT,
                                 "The model never visits a site \"%s\", which the data have. It must observe every "
                                 "field; numbers that it does not observe are labels (rws_setup_label).",
                                 e->fields[f].name);
            return;
        }
    if (e->status != RWS_OK || path->n_scored == path->n_trace) return;
    for (uint32_t s = 0; s < path->n_sites; s++) {
        if (path->sites[s].next == NONE || e->sites[s].field >= 0) continue;
        char               text[160];
        const trace_entry *t = &path->trace[path->sites[s].next];
        const char        *drew = e->pass.mode == RWS_SLEEP ? "model" : "guide";
        e->status = rws_fail(&e->error, RWS_BAD_INPUT, "The %s visits site %s, but the %s does not.", drew,
                             rws__site_text(e, t->site, t->visit, text), e->pass.mode == RWS_SLEEP ? "guide" : "model");
        return;
    }
}

static void run_all(rws_engine *e)
{
    while (e->status == RWS_OK) {
        rws__host_enter(e);
        while (e->ready_at < e->n_ready && e->status == RWS_OK) {
            const uint32_t index = e->ready[e->pass.backwards ? --e->n_ready : e->ready_at++];
            rws_path      *path = e->paths[index];
            e->running = path;
            rws__host_resume(path);
            e->running = NULL;
            if (e->status != RWS_OK) return;
            if (rws__fiber_done(path->fiber)) {
                check_trace(path);
                *RWS_PUSH(e, e->ends, e->n_ends, e->end_capacity) = (path_end){path->level, index};
            } else {
                *RWS_PUSH(e, e->waiting, e->n_waiting, e->waiting_capacity) = index;
            }
        }
        rws__host_leave(e);
        e->ready_at = e->n_ready = 0;
        if (e->n_waiting == 0) return;
        for (uint32_t i = 0; i < e->n_waiting; i++) {
            const rws_path *path = e->paths[e->waiting[i]];
            for (int k = 0; k < path->n_wants; k++) rws__request_rows(e, path->wants[k].id, path->level);
        }
        rws__engine_check_stop(e, NULL);
        rws__engine_execute(e);
        for (uint32_t i = 0; i < e->n_waiting; i++)
            *RWS_PUSH(e, e->ready, e->n_ready, e->ready_capacity) = e->waiting[i];
        e->n_waiting = 0;
    }
}

/* Frees all slots of the table of nodes without touching them: it may be large from an earlier pass. */
static void forget_shared(rws_engine *e)
{
    e->n_shared = 0;
    if (++e->pass_number) return;
    e->pass_number = 1; /* after 255 passes, slots of the first would look like slots of this one */
    if (e->shared) memset(e->shared, 0, e->shared_capacity * sizeof *e->shared);
}

/* Number i of the data of a field is not finite. The first number of a series is its length, which was checked before. */
static _Noreturn void refuse_number(rws_engine *e, const rws_field *f, size_t i, double x)
{
    char                     item[64] = "";
    const size_t             dim = (size_t)f->dim, at = i % dim - (f->most > 0), size = f->most ? (size_t)f->item : dim;
    const unsigned long long datum = e->pass.first_datum + i / dim;
    if (f->most) snprintf(item, sizeof item, "item %zu of ", at / size);
    rws__engine_fail(e, RWS_BAD_INPUT, "Number %zu of %sfield \"%s\" of datum %llu is %g; data must be finite.",
                     at % size, item, f->name, datum, x);
}

/* Data must be finite: the sum of x * 0 is zero exactly if every x is finite. */
static void check_data(rws_engine *e)
{
    for (int f = 0; f < e->n_fields && e->pass.mode != RWS_SLEEP; f++) {
        if (e->fields[f].label) continue;
        if (e->fields[f].most) rws__series_check_data(e, f);
        const size_t dim = (size_t)e->fields[f].dim, n = (size_t)e->pass.n_data * dim;
        const float *x = e->pass.fields[f];
        float        zero = 0;
#pragma omp simd reduction(+ : zero)
        for (size_t i = 0; i < n; i++) zero += x[i] * 0;
        if (zero == 0) continue;
        for (size_t i = 0; i < n; i++)
            if (!isfinite(x[i])) refuse_number(e, &e->fields[f], i, rws__plain(x[i]));
    }
}

/* Another part of the process may install a handler of SIGSEGV in front of ours; every 64th pass looks for one. */
#define PASSES_PER_LOOK 64

static void begin(rws_engine *e, const rws_pass *pass)
{
    rws__fiber_thread(e->pass_number % PASSES_PER_LOOK == 0);
    if (e->n_row_requests) rws__demand_count(e);
    rws__arena_reset(&e->arena);
    e->pass = *pass;
    e->n_levels = e->n_terms = e->n_calls = e->n_order = e->n_paths = e->n_ends = e->n_waiting = 0;
    e->n_ready = e->ready_at = e->n_zeros = e->n_items = 0;
    rws__demand_begin(e);
    rws__dependence_begin(e);
    e->products = (rws_products){.arena = &e->arena};
    e->tangent = e->tangent_transposed = NULL;
    e->touched = NULL;
    e->item_nodes = NULL;
    e->n_nodes = 0;
    memset(e->bits_seen, 0, sizeof e->bits_seen);
    forget_shared(e);
    if (pass->n_data < 1 || pass->n_particles < 1)
        rws__engine_fail(e, RWS_BAD_INPUT, "A pass takes at least one datum and one particle, not %d and %d.",
                         pass->n_data, pass->n_particles);
    check_data(e);
    rws__level_new(e, NONE, 1);
    rws__node_leaf(e, ROOT, 1, NULL); /* node 0 stands for an absent input */
    rws__given_begin(e);
    rws__jumps_begin(e);
    if (pass->scalar) begin_apart(e);
    else begin_together(e);
}

static void forward(rws_engine *e, const rws_pass *pass)
{
    const uint64_t flops = rws_gemm_flops;
    begin(e, pass);
    run_all(e);
    if (e->status == RWS_OK) rws__jumps_end(e);
    if (e->status == RWS_OK) rws__given_end(e);
    if (e->status == RWS_OK) rws__scores_make(e);
    e->forward_flops = rws_gemm_flops - flops;
    e->stats.flops += e->forward_flops;
    e->stats.nodes += e->n_nodes;
    e->stats.paths += e->n_paths;
    for (uint32_t i = 0; i < e->n_paths; i++) e->stats.operations += e->paths[i]->operations;
}

rws_status rws__engine_forward(rws_engine *e, const rws_pass *pass, rws_error *err)
{
    do {
        e->status = RWS_OK;
        e->running = NULL;
        e->again = false;
        RWS_ENTER(e, forward(e, pass));
        if (e->host) rws__host_abandon(e);
    } while (e->again);
    e->stats.particles += (uint64_t)pass->n_data * (uint64_t)pass->n_particles;
    return rws__engine_status(e, err);
}
