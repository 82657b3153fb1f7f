/* loop.c - loops that say what a step hands to the next, so that paths come together again.
 *
 * The path that calls rws_loop, the owner, stands in it until its particles have left the loop. Each step is executed
 * by another path, on a fiber of its own, whose log begins with the step; so a split replays no more than a step.
 * When a step has returned, its path has arrived. When no path can run, paths that arrived with equal integers become
 * one, which executes the next step:
 *
 *     owner    rws_loop ............................................................. continues with what the last step left
 *     steps      step 0 -- splits --  arrived (1, 0) \  step 1 with rows of both -- …
 *                               \---  arrived (1, 0) /
 *                                \--  arrived (1, 2) -  step 1 …
 *
 * Innermost loops go first, and of a loop the paths with the lowest clock, so that all paths that will reach a step
 * are there when it begins. Paths that have left a loop wait for those that are in it. They become one for each
 * combination of integers; the first continues in the owner's frame, for the others the owner's program starts again,
 * as after a split. A loop need not merge at all: scalar mode does not, and so is the reference. Nor do loops within the steps of
 * a loop that guide and model share, because the model takes what the guide has chosen in its step from the path's own trace. */
#include "engine/internal.h"

#include <string.h>

/* Whether paths of this pass come together. An automatic guide keeps what the program does not carry. */
static bool merges(const rws_engine *e)
{
    return !e->pass.scalar && !e->automatic && !e->pass.apart;
}

/* ---- the carry */

static void expect_value(rws_path *path, const loop *l, rws_var v, uint32_t i)
{
    if (v.id == 0 && v.stamp == 0) return;
    if (rws__path_has(path, v)) return;
    rws__path_mistake(
        path,
        "what a step hands on begins with %u values (rws_var, or zeros), but number %u is no value of this "
        "step, nor of the program outside of the loop. A value of an earlier step must be handed on, too.",
        l->n_values, i);
}

/* A copy that lasts as long as the pass. */
static const uint32_t *keep(rws_path *path, const loop *l, const void *carry)
{
    uint32_t *copy = RWS_NEW(&path->e->arena, uint32_t, l->n_words + 1);
    memcpy(copy, carry, l->n_words * sizeof *copy);
    for (uint32_t i = 0; i < l->n_values; i++) {
        expect_value(path, l, (rws_var){copy[2 * i], copy[2 * i + 1]}, i);
        copy[2 * i + 1] = 0;
    }
    return copy;
}

static void put_back(const rws_path *path, const loop *l, const uint32_t *from, void *carry)
{
    uint32_t *to = carry;
    memcpy(to, from, l->n_words * sizeof *to);
    for (uint32_t i = 0; i < l->n_values; i++) to[2 * i + 1] = to[2 * i] ? path->stamp : 0;
}

static int32_t clock_of(const loop *l, const uint32_t *carry)
{
    return l->step ? (int32_t)carry[2 * l->n_values] : 0;
}

/* ---- steps */

void rws__loop_step(rws_path *path)
{
    const loop *l = path->loop;
    uint64_t   *carry = RWS_NEW(&path->e->arena, uint64_t, l->n_words / 2 + 1);
    const int   before = clock_of(l, path->carry);
    put_back(path, l, path->carry, carry);
    if (++path->steps > path->e->limits.max_operations)
        rws__path_mistake(path,
                          "a loop makes more than %llu steps; does it end? A larger `max_operations` allows more.",
                          (unsigned long long)path->e->limits.max_operations);
    path->goes_on = l->step && l->step(path, l->env, carry);
    if (!l->step) l->body(path, l->env, carry);
    path->carry = keep(path, l, carry);
    if (path->goes_on && clock_of(l, path->carry) < before)
        rws__path_mistake(path,
                          "the clock of a loop, the first integer that a step hands on, falls from %d to %d. It must "
                          "never fall; let another integer be the first.",
                          before, clock_of(l, path->carry));
    rws__path_close(path);
}

static void begin_step(rws_path *path)
{
    rws_engine *e = path->e;
    path->cursor = path->n_log = 0;
    path->depth = 0;
    path->stamp = rws__stamp_new(e);
    rws__path_begin(path);
}

/* The owner continues, or another path in its place, with what the last step of `path` has handed on. */
static void leave_loop(rws_path *path)
{
    rws_engine     *e = path->e;
    const loop     *l = path->loop;
    const uint32_t *carry = path->carry;
    rws_path       *owner = l->owner, *to = owner->stands ? owner : rws__path_new(e);
    if (to != owner) {
        for (uint32_t i = 0; i < l->n_log; i++) *RWS_PUSH(e, to->log, to->n_log, to->log_capacity) = owner->log[i];
        to->carry = owner->carry;
        to->loop = owner->loop;
        if (to->loop) to->side = path->side, to->frozen = path->frozen, to->acts = path->acts;
    }
    rws__path_copy(to, path);
    to->level = path->level;
    for (uint32_t i = 0; i < l->n_words; i++) *RWS_PUSH(e, to->log, to->n_log, to->log_capacity) = carry[i];
    if (to == owner) {
        owner->stands = false;
        rws__path_continue(owner);
    } else rws__path_begin(to);
    rws__path_recycle(path);
}

/* ---- paths that have arrived */

/* Whether two paths that have arrived become one. */
static bool same(const rws_path *a, const rws_path *b)
{
    const loop     *l = a->loop;
    const uint32_t *x = a->carry, *y = b->carry, n = 2 * l->n_values;
    if (l != b->loop || l->apart || a->ended || b->ended) return false;
    if (a->e->levels[a->level].width != a->e->levels[b->level].width) return false; /* sums.c */
    if (a->goes_on != b->goes_on || a->n_taken != b->n_taken) return false;
    if (memcmp(x + n, y + n, (l->n_words - n) * sizeof *x) != 0) return false;
    for (uint32_t v = 0; v < n; v += 2)
        if (!x[v] != !y[v] || a->e->nodes[x[v]].dim != a->e->nodes[y[v]].dim) return false;
    return memcmp(a->fields_seen, b->fields_seen, fields_seen_bytes(a->e)) == 0;
}

static uint32_t hash(const rws_path *path)
{
    const loop *l = path->loop;
    uint32_t    h = l->stamp + path->goes_on + (l->apart ? path->number : 0) * 0x9e3779b1u;
    for (uint32_t w = 2 * l->n_values; w < l->n_words; w++) h = (h ^ path->carry[w]) * 0x9e3779b1u, h ^= h >> 15;
    return h;
}

/* Finds the lowest clock of each loop of the greatest depth. Returns this depth. */
static uint32_t find_clocks(rws_engine *e)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->n_arrived; i++) {
        loop *l = e->paths[e->arrived[i]]->loop;
        l->clock = INT32_MAX;
        l->n_going = 0;
        depth = l->depth > depth ? l->depth : depth;
    }
    for (uint32_t i = 0; i < e->n_arrived; i++) {
        const rws_path *path = e->paths[e->arrived[i]];
        loop           *l = path->loop;
        const int32_t   clock = clock_of(l, path->carry);
        if (path->goes_on && clock < l->clock) l->clock = clock;
        l->n_going += path->goes_on;
    }
    return depth;
}

/* Takes the paths whose turn it is off the list of those that have arrived. */
static uint32_t take_turn(rws_engine *e, rws_path **turn)
{
    const uint32_t depth = find_clocks(e);
    uint32_t       n = 0, n_left = 0;
    for (uint32_t i = 0; i < e->n_arrived; i++) {
        rws_path   *path = e->paths[e->arrived[i]];
        const loop *l = path->loop;
        const bool  now = path->goes_on ? clock_of(l, path->carry) == l->clock : l->n_going == 0;
        if (now && l->depth == depth) turn[n++] = path;
        else e->arrived[n_left++] = e->arrived[i];
    }
    e->n_arrived = n_left;
    return n;
}

/* Sets first[i] to the first path that path i becomes one with; itself if it is the first. */
static void find_groups(rws_engine *e, rws_path **turn, uint32_t n, uint32_t *first)
{
    uint32_t mask = 15;
    while (mask < 2 * n) mask = 2 * mask + 1;
    uint32_t *table = RWS_NEW0(&e->arena, uint32_t, mask + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = hash(turn[i]) & mask;
        while (table[at] && !same(turn[table[at] - 1], turn[i])) at = (at + 1) & mask;
        if (!table[at]) table[at] = i + 1;
        first[i] = table[at] - 1;
    }
}

/* Orders the paths of a turn by group. Returns an array whose places 0 … n_groups tell where groups begin. */
static uint32_t *group(rws_engine *e, rws_path **turn, uint32_t n, uint32_t *n_groups)
{
    uint32_t  *first = RWS_NEW(&e->arena, uint32_t, n), *start = RWS_NEW0(&e->arena, uint32_t, n + 2);
    uint32_t  *number = RWS_NEW(&e->arena, uint32_t, n), *next = start + 1, m = 0;
    rws_path **ordered = RWS_NEW(&e->arena, rws_path *, n);
    find_groups(e, turn, n, first);
    for (uint32_t i = 0; i < n; i++) {
        if (first[i] == i) number[i] = m++;
        start[number[first[i]] + 2]++;
    }
    for (uint32_t g = 0; g < m; g++) start[g + 2] += start[g + 1];
    for (uint32_t i = 0; i < n; i++) ordered[next[number[first[i]]]++] = turn[i];
    memcpy(turn, ordered, n * sizeof *turn);
    *n_groups = m;
    return start;
}

static void continue_as_one(rws_path **paths, uint32_t n)
{
    rws_path *path = paths[0];
    if (n > 1) rws__merge(path->e, paths, n);
    for (uint32_t i = 1; i < n; i++) rws__path_recycle(paths[i]);
    if (path->ended)
        *RWS_PUSH(path->e, path->e->ends, path->e->n_ends, path->e->end_capacity) =
            (path_end){path->level, path->number};
    else if (path->goes_on) begin_step(path);
    else leave_loop(path);
}

bool rws__loops_continue(rws_engine *e)
{
    if (!e->n_arrived) return false;
    rws_path     **turn = RWS_NEW(&e->arena, rws_path *, e->n_arrived);
    uint32_t       n_groups, *start;
    const uint32_t n = rws__shared_weigh(e, turn, take_turn(e, turn));
    start = group(e, turn, n, &n_groups);
    for (uint32_t g = 0; g < n_groups; g++) continue_as_one(turn + start[g], start[g + 1] - start[g]);
    return true;
}

/* ---- the owner */

#define MAX_CARRY 65536 /* bytes */

static void expect_shape(rws_path *path, const loop *what, const void *carry, size_t size, size_t first_int)
{
    if (path->depth) rws__path_mistake(path, "%s was called inside a layer or a distribution.", path->function);
    if (!carry || (!what->step && !what->body)) rws__path_mistake(path, "%s was given NULL.", path->function);
    if (size > MAX_CARRY || first_int > size || first_int % sizeof(rws_var) || size % 4 ||
        (what->step && first_int == size))
        rws__path_mistake(path,
                          "%s hands on %zu bytes, the integers from byte %zu on. It must be a struct of values "
                          "(rws_var) and then of integers (int)%s, of at most %d bytes.",
                          path->function, size, first_int, what->step ? ", the clock first" : "", MAX_CARRY);
}

void rws_carry_check(rws_path *path, const void *solid, size_t size)
{
    const unsigned char *byte = solid;
    for (size_t i = 0; i < size; i++)
        if (!byte[i])
            rws__path_mistake(path,
                              "what a step hands on has padding at byte %zu, which would be compared. Let all members "
                              "behind the values be of type int.",
                              i);
}

/* The first step, for all particles of the path, which stands in the loop from here on. */
static void begin(rws_path *path, const loop *what, const void *carry)
{
    rws_engine *e = path->e;
    loop       *l = RWS_NEW(&e->arena, loop, 1);
    *l = *what;
    l->entry = path->level;
    l->depth = path->loop ? path->loop->depth + 1 : 1;
    l->n_log = path->n_log;
    l->stamp = path->stamp;
    l->owner = path;
    l->outer = path->loop;
    l->apart = !merges(e) || (path->loop && path->scored);
    const uint32_t *first = keep(path, l, carry);
    if (l->shared) rws__shared_begins(path);
    else if (!l->apart && path->side != RWS_SIDE_NONE && !rws__path_draws(path) && !path->history && !path->scored)
        rws__history_make(path);
    rws_path *step = rws__path_new(e);
    rws__path_copy(step, path);
    step->level = path->level;
    step->side = path->side;
    step->frozen = path->frozen;
    step->acts = path->acts;
    step->loop = l;
    step->carry = first;
    path->stands = true;
    rws__path_close(path);
    rws__path_begin(step);
    rws__host_wait(path);
}

loop rws__loop_measure(rws_path *path, const loop *what, const void *carry, size_t size, size_t first_int)
{
    loop l = *what;
    expect_shape(path, &l, carry, size, first_int);
    l.n_values = (uint32_t)(first_int / sizeof(rws_var));
    l.n_words = (uint32_t)(size / sizeof(uint32_t));
    return l;
}

void rws__loop_run(rws_path *path, const loop *l, void *carry)
{
    if (path->cursor == path->n_log) begin(path, l, carry);
    put_back(path, l, path->log + path->cursor, carry);
    path->cursor += l->n_words;
}

static void run(rws_path *path, const loop *what, const char *function, void *carry, size_t size, size_t first_int)
{
    rws__enter(path, function);
    const loop l = rws__loop_measure(path, what, carry, size, first_int);
    rws__loop_run(path, &l, carry);
}

void rws_loop(rws_path *path, rws_step *step, const void *env, void *carry, size_t size, size_t clock)
{
    run(path, &(loop){.step = step, .env = env}, __func__, carry, size, clock);
}

void rws_call_once(rws_path *path, rws_once *body, const void *env, void *result, size_t size, size_t first_int)
{
    run(path, &(loop){.body = body, .env = env}, __func__, result, size, first_int);
}
