/* shared.c - the loop that guide and model share: their steps are made in turn, so that weights are known after each.
 *
 * The guide runs until its loop, calls the model there, and the model runs until its own:
 *
 *     guide --- rws_shared_loop -- model --- rws_shared_loop ........................ model's end -- guide's end
 *     steps                                    guide's step, model's step -- splits -- arrived
 *
 * A step of both is a step of one loop (loop.c), whose carry is both programs' carries. When paths have arrived, their
 * log-densities are added up. Particles whose log-weight is -inf end: they wait in a path of their own until everybody has left
 * the loop, and are rows of the table then. */
#include "engine/words.h"

#include <math.h>
#include <string.h>

/* ---- both programs' carries as one: values of the guide, values of the model, these integers, integers of both */

enum { CLOCK, GOING, N_OWN };
enum { GUIDE_GOES = 1, MODEL_GOES = 2 };

static int32_t *integers(const shared_loop *s, uint32_t *both)
{
    return (int32_t *)both + 2 * (s->guide.n_values + s->model.n_values);
}

/* Copies one program's carry to its place in that of both, or from there. */
static void copy_half(const shared_loop *s, const half_loop *h, uint32_t *both, bool out)
{
    const bool     second = h == &s->model;
    const uint32_t n = 2 * h->n_values, before = second ? 2 * s->guide.n_values : 0;
    uint32_t      *values = both + before, *own = h->carry;
    uint32_t      *rest = (uint32_t *)integers(s, both) + N_OWN + (second ? s->guide.n_words - before : 0);
    memcpy(out ? own : values, out ? values : own, n * sizeof *own);
    memcpy(out ? own + n : rest, out ? rest : own + n, (h->n_words - n) * sizeof *own);
}

static int32_t clock_of(const half_loop *h)
{
    return (int32_t)((uint32_t *)h->carry)[2 * h->n_values];
}

/* ---- a step */

/* Stops with a message if the model has not visited everything that the guide has drawn. */
static void expect_scored(rws_path *path, const shared_loop *s, const char *when)
{
    uint32_t site, visit;
    char     text[160];
    if (!rws__path_missing(path, &site, &visit)) return;
    rws__path_mistake(path,
                      "the guide has drawn site %s, and the model has not visited it %s the loop \"%s\", which they "
                      "share; what the guide draws in a step, the model visits in the same step.",
                      rws__site_text(path->e, site, visit, text), when, s->name);
}

static bool half_step(rws_path *path, const shared_loop *s, half_loop *h, rws_side side, uint32_t *both)
{
    h->carry = RWS_NEW(&path->e->arena, uint64_t, h->n_words / 2 + 1);
    copy_half(s, h, both, true);
    const int32_t before = clock_of(h);
    path->acts = h->acts;
    path->frozen = h->frozen;
    rws__path_side(path, side);
    const bool goes_on = h->step(path, h->env, h->carry);
    if (goes_on && clock_of(h) < before)
        rws__path_mistake(path, "the clock of the loop \"%s\" falls from %d to %d. It must never fall.", s->name,
                          before, clock_of(h));
    copy_half(s, h, both, false);
    return goes_on;
}

static bool shared_step(rws_path *path, const void *env, void *carry)
{
    shared_loop s = *(const shared_loop *)env;
    int32_t    *own = integers(&s, carry);
    int         going = own[GOING];
    if (going & GUIDE_GOES && !half_step(path, &s, &s.guide, RWS_SIDE_GUIDE, carry)) going &= ~GUIDE_GOES;
    if (going & MODEL_GOES && !half_step(path, &s, &s.model, RWS_SIDE_MODEL, carry)) going &= ~MODEL_GOES;
    expect_scored(path, &s, "in this step of");
    own[GOING] = going;
    if (going & GUIDE_GOES) own[CLOCK] = clock_of(&s.guide);
    return going;
}

/* ---- the programs */

void rws__shared_begins(rws_path *path)
{
    expect_scored(path, path->shares, "before");
    path->history = NULL;
    path->scored = true;
}

void rws__shared_expect(rws_engine *e, bool ran)
{
    if (e->pass.resample == 0) return;
    if (e->pass.scalar)
        rws__engine_fail(e, RWS_BAD_INPUT,
                         "Particles that are executed alone (`scalar`) cannot be resampled; set `resample` to 0.");
    if (e->pass.program || e->pass.mode != RWS_WAKE || e->pass.enumerate || e->pass.apart)
        rws__engine_fail(e, RWS_BAD_INPUT, "This method cannot resample particles; set `resample` to 0.");
    if (ran && !e->shares)
        rws__engine_fail(e, RWS_BAD_INPUT,
                         "Particles are to be resampled, but guide and model share no loop. Write the loop as "
                         "RWS_SHARED_LOOP (p.loop with a name) in both, under one name, or set `resample` to 0.");
}

/* The loop, for the model that has come to it. Both programs have their carries then. */
static void run_both(rws_path *path, shared_loop *s, const half_loop *model)
{
    shared_loop *kept = RWS_NEW(&path->e->arena, shared_loop, 1);
    s->model = *model;
    s->met = true;
    *kept = *s;
    const loop l = {.step = shared_step,
                    .env = kept,
                    .shared = true,
                    .n_values = s->guide.n_values + s->model.n_values,
                    .n_words = s->guide.n_words + s->model.n_words + N_OWN};
    uint32_t  *both = (uint32_t *)RWS_NEW0(&path->e->arena, uint64_t, l.n_words / 2 + 1);
    copy_half(s, &s->guide, both, false);
    copy_half(s, &s->model, both, false);
    integers(s, both)[CLOCK] = clock_of(&s->guide);
    integers(s, both)[GOING] = GUIDE_GOES | MODEL_GOES;
    rws__loop_run(path, &l, both);
    copy_half(s, &s->guide, both, true);
    copy_half(s, &s->model, both, true);
}

/* The model, for the guide that has come to the loop. */
static void run_model(rws_path *path, shared_loop *s)
{
    const rws_pass *pass = &path->e->pass;
    if (path->met)
        rws__path_mistake(path, "the guide comes to the loop \"%s\" behind another one that it shares with the model.",
                          s->name);
    path->met = path->e->shares = true;
    path->shares = s;
    path->acts = false;
    path->frozen = 0;
    rws__path_side(path, RWS_SIDE_MODEL);
    pass->model->model(path, pass->state);
    if (!s->met)
        rws__path_mistake(path, "the guide shares the loop \"%s\" with the model, which has no loop of this name.",
                          s->name);
    path->shares = NULL;
    path->acts = s->guide.acts;
    path->frozen = s->guide.frozen;
    path->side = RWS_SIDE_GUIDE;
}

void rws_shared_loop(rws_path *path, const char *name, rws_step *step, const void *env, void *carry, size_t size,
                     size_t clock)
{
    rws__enter(path, __func__);
    if (!name) rws__path_mistake(path, "rws_shared_loop was given no name (NULL).");
    const loop      l = rws__loop_measure(path, &(loop){.step = step, .env = env}, carry, size, clock);
    const half_loop h = {step, env, carry, l.n_values, l.n_words, path->acts, path->frozen};
    shared_loop    *s = path->shares;
    if (path->loop || path->e->pass.mode != RWS_WAKE) rws__loop_run(path, &l, carry);
    else if (path->side == RWS_SIDE_GUIDE) run_model(path, &(shared_loop){.name = name, .guide = h});
    else if (!s || s->met) rws__loop_run(path, &l, carry);
    else if (strcmp(s->name, name) == 0) run_both(path, s, &h);
    else
        rws__path_mistake(path, "the guide shares the loop \"%s\" with the model, which comes to the loop \"%s\".",
                          s->name, name);
}

/* ---- weights */

/* Brings the totals of levels that are new, and of those of these paths and all that have arrived, up to date. */
static void sum_up(rws_engine *e, rws_path **turn, uint32_t n)
{
    const uint32_t n_levels = e->n_levels;
    for (uint32_t i = 0; i < n; i++) rws__level_request(e, turn[i]->level);
    for (uint32_t i = 0; i < e->n_arrived; i++) rws__level_request(e, e->paths[e->arrived[i]]->level);
    for (uint32_t at = e->n_summed; at < n_levels; at++) rws__level_request(e, at);
    rws__engine_execute(e);
    for (uint32_t at = e->n_summed; at < n_levels; at++) rws__level_sum(e, at);
    for (uint32_t i = 0; i < n; i++) rws__level_sum(e, turn[i]->level);
    for (uint32_t i = 0; i < e->n_arrived; i++) rws__level_sum(e, e->paths[e->arrived[i]]->level);
    e->n_summed = n_levels;
}

/* A path with some rows of another, which has arrived as that has. */
static rws_path *part_of(rws_path *path, const uint32_t *rows, uint32_t n)
{
    rws_path *part = rws__path_new(path->e);
    rws__path_copy(part, path);
    part->level = rws__level_subset(path->e, path->level, rows, n);
    part->loop = path->loop;
    part->carry = path->carry;
    return part;
}

/* The path's particles are impossible: it joins those that were before. */
static void end_path(rws_path *path)
{
    rws_engine  *e = path->e;
    loop        *l = path->loop;
    const level *here = &e->levels[path->level];
    uint64_t     n = 0;
    rws__level_sum(e, path->level);
    for (uint32_t i = 0; i < here->n_rows; i++) n += here->count[i];
    e->stats.ended += n;
    e->stats.ended_clock += (int64_t)n * l->clock;
    path->ended = true;
    path->goes_on = false;
    if (l->ended && e->levels[l->ended->level].width == here->width) {
        rws__merge(e, (rws_path *[]){l->ended, path}, 2);
        rws__level_sum(e, l->ended->level);
        rws__path_recycle(path);
    } else {
        *RWS_PUSH(e, e->arrived, e->n_arrived, e->arrived_capacity) = path->number;
        if (!l->apart) l->ended = path;
    }
}

/* Whether particles of the path are possible; those that are not leave it. */
static bool is_possible(rws_path *path)
{
    rws_engine    *e = path->e;
    const uint32_t n = e->levels[path->level].n_rows;
    uint32_t      *rows = RWS_NEW(&e->arena, uint32_t, n), n_possible = 0, n_ended = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool ended = rws__row_weight(e, path->level, i) == -INFINITY;
        rows[ended ? n - ++n_ended : n_possible++] = i;
    }
    if (!n_ended) return true;
    if (!n_possible) return end_path(path), false;
    uint32_t *others = RWS_NEW(&e->arena, uint32_t, n_ended);
    for (uint32_t i = 0; i < n_ended; i++) others[i] = rows[n - 1 - i];
    end_path(part_of(path, others, n_ended));
    path->level = rws__level_subset(e, path->level, rows, n_possible);
    rws__level_sum(e, path->level);
    return true;
}

/* Resamples the particles of a loop: the first of these paths, which are about to go on, and those that wait for them. */
static void resample_loop(rws_engine *e, loop *l, rws_path **turn, uint32_t n)
{
    rws_path **all = RWS_NEW(&e->arena, rws_path *, n + e->n_arrived);
    uint32_t  *place = RWS_NEW(&e->arena, uint32_t, n), n_all = 0, n_going, n_left = 0;
    l->resampled = true;
    for (uint32_t i = 0; i < n; i++)
        if (turn[i]->loop == l && turn[i]->goes_on) place[n_all] = i, all[n_all++] = turn[i];
    n_going = n_all;
    for (uint32_t i = 0; i < e->n_arrived; i++) {
        rws_path *path = e->paths[e->arrived[i]];
        if (path->loop == l && !path->goes_on) all[n_all++] = path;
        else e->arrived[n_left++] = e->arrived[i];
    }
    e->n_arrived = n_left;
    rws__resample(e, all, n_all);
    for (uint32_t i = 0; i < n_going; i++) turn[place[i]] = all[i];
    for (uint32_t i = n_going; i < n_all; i++)
        if (all[i]) *RWS_PUSH(e, e->arrived, e->n_arrived, e->arrived_capacity) = all[i]->number;
    if (l->ended && l->ended->loop != l) l->ended = NULL; /* it was recycled */
}

static uint32_t drop_empty(rws_path **turn, uint32_t n)
{
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < n; i++)
        if (turn[i]) turn[n_left++] = turn[i];
    return n_left;
}

uint32_t rws__shared_weigh(rws_engine *e, rws_path **turn, uint32_t n)
{
    uint32_t n_going = 0, n_left = 0;
    for (uint32_t i = 0; i < n; i++) n_going += turn[i]->loop->shared && turn[i]->goes_on;
    if (!n_going || e->pass.program || (e->pass.reports && e->pass.resample == 0)) return n;
    sum_up(e, turn, n);
    for (uint32_t i = 0; i < n; i++)
        if (!turn[i]->loop->shared || !turn[i]->goes_on || is_possible(turn[i])) turn[n_left++] = turn[i];
    for (uint32_t i = 0; i < n_left; i++) turn[i]->loop->resampled = e->pass.resample == 0;
    for (uint32_t i = 0; i < n_left; i++)
        if (turn[i] && turn[i]->loop->shared && turn[i]->goes_on && !turn[i]->loop->resampled)
            resample_loop(e, turn[i]->loop, turn, n_left);
    return drop_empty(turn, n_left);
}
