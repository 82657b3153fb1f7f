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
        if (!guide && path->met) continue;
        rws__path_side(path, guide ? RWS_SIDE_GUIDE : RWS_SIDE_MODEL);
        if (guide) rws__guide(path);
        else pass->model->model(path, pass->state);
    }
    rws__path_side(path, RWS_SIDE_NONE);
}

static void path_entry(void *arg)
{
    rws_path       *path = arg;
    const rws_pass *pass = &path->e->pass;
    if (path->loop) rws__loop_step(path);
    else if (pass->program) pass->program(path, pass->context);
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
    rws_path *path = calloc(1, sizeof *path + 2 * (size_t)e->n_fields * sizeof *path->field);
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
    e->n_allocations += 2;
    path->number = e->n_made;
    e->paths[e->n_made++] = path;
}

static _Noreturn void too_many_paths(rws_engine *e)
{
    char text[240];
    rws__engine_fail(e, RWS_BAD_INPUT, "The pass has more than %llu paths%s%s. A larger `max_paths` allows more.",
                     (unsigned long long)e->limits.max_paths, e->running ? ", the last one in " : "",
                     e->running ? rws__path_where(e->running, text) : "");
}

uint32_t rws__stamp_new(rws_engine *e)
{
    if (++e->stamp == 0) e->stamp = 1; /* 0 belongs to no path */
    return e->stamp;
}

static rws_path *path_take(rws_engine *e)
{
    if (e->n_spare) return e->paths[e->spare[--e->n_spare]];
    if (e->n_paths >= e->limits.max_paths) too_many_paths(e);
    if (e->n_paths == e->n_made) path_make(e);
    return e->paths[e->n_paths++];
}

rws_path *rws__path_new(rws_engine *e)
{
    rws_path *path = path_take(e);
    e->n_started++;
    path->stamp = rws__stamp_new(e);
    path->loop = NULL;
    path->carry = NULL;
    path->stands = path->goes_on = path->ended = path->met = path->scored = false;
    path->shares = NULL;
    path->before = NULL;
    path->history = NULL;
    path->steps = 0;
    path->cursor = path->n_log = path->n_trace = path->n_scored = path->ordinal = path->n_reports = path->n_sites = 0;
    path->operations = path->n_taken = 0;
    memset(path->fields_seen, 0, fields_seen_bytes(e));
    path->depth = 0;
    path->function = "";
    path->side = RWS_SIDE_NONE;
    path->coming = NULL;
    path->acts = false;
    path->memory = NULL;
    path->frozen = 0;
    path->n_wants = 0;
    path->site = NONE;
    path->site_visit = 0;
    path->overflowed = path->abandoned = false;
    memset(path->field, 0, 2 * (size_t)e->n_fields * sizeof *path->field);
    memset(path->note, 0, sizeof path->note);
    return path;
}

void rws__path_continue(rws_path *path)
{
    rws_engine *e = path->e;
    path->stack_end = rws__fiber_stack(path->fiber, NULL);
    *RWS_PUSH(e, e->ready, e->n_ready, e->ready_capacity) = path->number;
}

void rws__path_begin(rws_path *path)
{
    rws__fiber_start(path->fiber, path_entry, path);
    rws__path_continue(path);
}

void rws__path_close(rws_path *path)
{
    path->stack_end = (const char *)(UINTPTR_MAX / 2); /* above every stack, so that `enter` of record.c looks closer */
}

void rws__path_recycle(rws_path *path)
{
    rws_engine *e = path->e;
    e->stats.operations += path->operations;
    path->operations = 0;
    path->loop = NULL;
    rws__path_close(path);
    *RWS_PUSH(e, e->spare, e->n_spare, e->spare_capacity) = path->number;
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
uint32_t rws__level_subset(rws_engine *e, uint32_t from, const uint32_t *rows, uint32_t n)
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

/* Enlarges an array and copies n items into it. The array is enlarged once: the path has the old one until this returns. */
static void *copy_items(rws_engine *e, void *to, uint32_t *capacity, const void *from, uint32_t n, size_t item)
{
    if (*capacity < n) to = rws__grow_to(e, to, capacity, n, item);
    if (n) memcpy(to, from, n * item);
    return to;
}

void rws__path_copy(rws_path *to, const rws_path *from)
{
    rws_engine *e = from->e;
    to->before = from->before;
    to->history = from->history;
    to->steps = from->steps;
    to->scored = from->scored;
    to->base = from->base;
    to->ordinal = from->ordinal;
    to->n_scored = from->n_scored;
    to->n_taken = from->n_taken;
    memcpy(to->fields_seen, from->fields_seen, fields_seen_bytes(e));
    to->trace = copy_items(e, to->trace, &to->trace_capacity, from->trace, from->n_trace, sizeof *to->trace);
    to->n_trace = from->n_trace;
    to->sites = copy_items(e, to->sites, &to->site_capacity, from->sites, from->n_sites, sizeof *to->sites);
    to->n_sites = from->n_sites;
    to->site = from->site;
    to->site_visit = from->site_visit;
    memcpy(to->field, from->field, 2 * (size_t)e->n_fields * sizeof *to->field);
    memcpy(to->note, from->note, sizeof to->note);
    if (from->memory) memcpy(rws__path_memory(to), from->memory, e->automatic->bytes);
    to->reports = copy_items(e, to->reports, &to->report_capacity, from->reports, from->n_reports, sizeof *to->reports);
    to->n_reports = from->n_reports;
}

/* A path that will execute what another one executes, from the beginning, and return from the same calls at first. */
static rws_path *path_beside(const rws_path *path)
{
    rws_engine *e = path->e;
    rws_path   *to = rws__path_new(e);
    rws__path_copy(to, path);
    to->log = copy_items(e, to->log, &to->log_capacity, path->log, path->n_log, sizeof *to->log);
    to->n_log = path->n_log;
    to->loop = path->loop;
    to->carry = path->carry;
    if (to->loop) to->side = path->side, to->frozen = path->frozen, to->acts = path->acts;
    return to;
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
    uint32_t       self = from, *end = n_parts > 1 ? RWS_NEW0(&e->arena, uint32_t, n_parts + 1) : NULL;
    uint32_t      *rows = n_parts > 1 ? RWS_NEW(&e->arena, uint32_t, n) : NULL;
    for (uint32_t i = 0; i < n && end; i++) end[part[i] + 1]++;
    for (uint32_t p = 1; p < n_parts; p++) end[p] += end[p - 1];
    for (uint32_t i = 0; i < n && end; i++) rows[end[part[i]]++] = i;
    for (uint32_t p = 0; p < n_parts && n_parts > 1; p++) {
        const uint32_t first = p ? end[p - 1] : 0, to = rws__level_subset(e, from, rows + first, end[p] - first);
        if (p == 0) {
            self = to;
            continue;
        }
        rws_path *child = path_beside(path);
        child->level = to;
        if (answer) *RWS_PUSH(e, child->log, child->n_log, child->log_capacity) = answer[p];
        if (known.id) note_known(child, known, answer[p]);
        rws__path_begin(child);
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

/* How many of n ascending integers are below x. */
static uint32_t place_of(const uint32_t *ascending, uint32_t n, int x)
{
    uint32_t low = 0;
    while (n) {
        const uint32_t half = n / 2;
        const bool     above = (int)ascending[low + half] < x;
        low += above ? half + 1 : 0;
        n = above ? n - half - 1 : half;
    }
    return low;
}

int rws_branch(rws_path *path, rws_var v)
{
    rws_engine *e = path->e;
    rws_var     answer;
    if (rws__replayed(path, &answer)) return (int)answer.id;
    rws__path_expect(path, v, "rws_branch");
    rws__path_expect_unseen(path, v);
    if (path->depth > 1) rws__path_mistake(path, "a program may branch only in its own code, not inside a layer.");
    if (e->nodes[v.id].dim != 1)
        rws__path_mistake(path, "rws_branch takes one number, not a vector of %d.", e->nodes[v.id].dim);
    rws__path_jumps(path, v, JUMP_BRANCH);
    rws__path_need(path, &v, 1);

    const uint32_t from = path->level, n = e->levels[from].n_rows;
    const reading  value = rws__node_read(e, v.id, from);
    uint32_t      *part = RWS_NEW(&e->arena, uint32_t, n), *answers = RWS_NEW(&e->arena, uint32_t, n), n_parts = 0;
    int           *x = (int *)part; /* first the value of each row, then its part */
    for (uint32_t i = 0; i < n; i++) {
        const float y = value.value[value.row ? value.row[i] : i];
        if (!(y > -1e9f && y < 1e9f && y == (float)(int)y)) no_integer(path, rws__plain(y));
        x[i] = (int)y;
        if (i && x[i] == x[i - 1]) continue;
        const uint32_t p = place_of(answers, n_parts, x[i]); /* parts are in ascending order of their value */
        if (p < n_parts && (int)answers[p] == x[i]) continue;
        memmove(answers + p + 1, answers + p, (n_parts++ - p) * sizeof *answers);
        answers[p] = (uint32_t)x[i];
    }
    for (uint32_t i = 0; i < n && n_parts > 1; i++) part[i] = place_of(answers, n_parts, x[i]);
    return (int)split(path, part, n_parts, answers, v).id;
}

const float *rws_look(rws_path *path, rws_var v)
{
    rws_engine *e = path->e;
    rws_var     answer;
    if (rws__replayed(path, &answer)) return e->nodes[answer.id].value;
    rws__path_expect(path, v, "rws_look");
    rws__path_expect_unseen(path, v);
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
    for (int f = 0; f < e->n_fields; f++) {
        const rws_field *field = &e->fields[f];
        if (!field_is_given(e, f)) continue;
        float *value = (float *)e->pass.fields[f] + first_datum * (size_t)field->dim;
        path->field[f] = rws__node_leaf(e, base, field->dim, value);
        if (e->pass.mode != RWS_WAKE || field->label || field->input) continue;
        path->field[e->n_fields + f] = rws__node_leaf(e, base, field->dim, value);
        e->nodes[path->field[e->n_fields + f]].seen = true;
    }
}

static uint32_t *filled(rws_engine *e, uint32_t n, uint32_t value, uint32_t step)
{
    uint32_t *v = RWS_NEW(&e->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) v[i] = value + i * step;
    return v;
}

/* One path for all particles, with a row per datum that stands for its K particles; without data one row stands for all. */
static void begin_together(rws_engine *e)
{
    const rws_pass *p = &e->pass;
    const uint32_t  K = (uint32_t)p->n_particles;
    uint32_t        base = ROOT;
    if (pass_has_data(e)) {
        base = rws__level_new(e, ROOT, (uint32_t)p->n_data);
        e->levels[base].up = filled(e, (uint32_t)p->n_data, 0, 0);
    }
    e->levels[base].count = filled(e, e->levels[base].n_rows, K, 0);
    e->levels[base].stride = K;
    e->levels[base].single = K == 1;
    rws_path *path = rws__path_new(e);
    path->level = path->base = base;
    give_fields(e, path, base, 0);
    rws__path_begin(path);
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
            rws_path *path = rws__path_new(e);
            path->level = path->base = base;
            give_fields(e, path, base, d);
            rws__path_begin(path);
        }
}

/* Whether the scoring side has not visited a site, or not as often as the other side. */
bool rws__path_missing(rws_path *path, uint32_t *site, uint32_t *visit)
{
    if (path->history) return rws__history_missing(path, site, visit);
    for (uint32_t s = 0; s < path->n_sites && path->n_scored != path->n_trace; s++) {
        if (path->sites[s].next == NONE || path->e->sites[s].field >= 0 || path->e->sites[s].how == RWS_SUMMED)
            continue;
        *site = s;
        *visit = path->trace[path->sites[s].next].visit;
        return true;
    }
    return false;
}

/* Every visit of the drawing side must have been scored by the other side. */
static void check_trace(rws_path *path)
{
    rws_engine *e = path->e;
    if (e->pass.mode == RWS_COMPUTE) return;
    for (int f = 0; f < e->n_fields; f++)
        if (e->fields[f].label || e->fields[f].input || e->status != RWS_OK) continue;
        else if (e->fields[f].most) rws__series_check_end(path, f);
        else if (!field_seen(path, f)) {
            e->status = rws_fail(&e->error, RWS_BAD_INPUT,
                                 "The model never visits a site \"%s\", which the data have. It must observe every "
                                 "field; numbers that it does not observe are inputs, which programs may read "
                                 "(rws_setup_input), or labels (rws_setup_label).",
                                 e->fields[f].name);
            return;
        }
    uint32_t site, visit;
    if (e->status != RWS_OK || !rws__path_missing(path, &site, &visit)) return;
    char        text[160];
    const char *drew = e->pass.mode == RWS_SLEEP ? "model" : "guide";
    e->status = rws_fail(&e->error, RWS_BAD_INPUT, "The %s visits site %s, but the %s does not.", drew,
                         rws__site_text(e, site, visit, text), e->pass.mode == RWS_SLEEP ? "guide" : "model");
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
            if (rws__fiber_done(path->fiber) && path->loop) {
                *RWS_PUSH(e, e->arrived, e->n_arrived, e->arrived_capacity) = index;
            } else if (rws__fiber_done(path->fiber)) {
                check_trace(path);
                *RWS_PUSH(e, e->ends, e->n_ends, e->end_capacity) = (path_end){path->level, index};
            } else if (!path->stands) {
                *RWS_PUSH(e, e->waiting, e->n_waiting, e->waiting_capacity) = index;
            }
        }
        rws__host_leave(e);
        e->ready_at = e->n_ready = 0;
        if (e->n_waiting == 0 && rws__loops_continue(e)) continue;
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
    for (int f = 0; f < e->n_fields; f++) {
        if (e->fields[f].label || !field_is_given(e, f)) continue;
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
    e->n_started = e->n_spare = e->n_arrived = e->n_segments = e->n_segments_kept = e->n_kept = e->n_joins = 0;
    e->n_summed = 0;
    e->shares = false;
    e->known_dependences = e->narrowed = (numbers){0};
    rws__demand_begin(e);
    rws__dependence_begin(e);
    e->products = (rws_products){.arena = &e->arena};
    e->tangent = e->tangent_transposed = NULL;
    e->touched = NULL;
    e->item_nodes = NULL;
    e->item_fits = NULL;
    e->n_nodes = 0;
    memset(e->bits_seen, 0, sizeof e->bits_seen);
    forget_shared(e);
    if (pass->n_data < 1 || pass->n_particles < 1)
        rws__engine_fail(e, RWS_BAD_INPUT, "A pass takes at least one datum and one particle, not %d and %d.",
                         pass->n_data, pass->n_particles);
    check_data(e);
    rws__shared_expect(e, false);
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
    if (e->status == RWS_OK) rws__shared_expect(e, true);
    if (e->status == RWS_OK) rws__jumps_end(e);
    if (e->status == RWS_OK) rws__given_end(e);
    if (e->status == RWS_OK) rws__scores_make(e);
    e->forward_flops = rws_gemm_flops - flops;
    e->stats.flops += e->forward_flops;
    e->stats.nodes += e->n_nodes;
    e->stats.paths += e->n_started;
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
