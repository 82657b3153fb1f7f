/* loop.c - training until the end: step, now and then evaluate, record and save.
 *
 *     step  step  step  evaluate  step  step  …  save  …  step  evaluate  save
 *                          |                               |
 *                        record: into the store, at the latest with the next checkpoint
 *
 * An evaluation is recorded before the checkpoint of its iteration is saved: on resuming, what was measured after the
 * last checkpoint is forgotten and measured again.
 */
#include "run/trainer.h"

#include "base/clock.h"
#include "run/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAVE_LEAST 5.0  /* seconds between two checkpoints, which come after evaluations, at least */
#define SAVE_MOST 60.0  /* and at most, where evaluations are rarer */
#define FLUSH_LEAST 1.0 /* seconds between two additions to the store, each of which waits for the disk */

typedef struct {
    rws_trainer     *t;
    const rws_watch *watch;
    double           save_every;
    double           saved_at;   /* 0: never */
    double           flushed_at; /* 0: never */
    uint64_t         saved;      /* iteration of the last checkpoint */
    rws_measures     latest;
} loop;

static rws_status save(loop *l, rws_error *err)
{
    RWS_TRY(rws_trainer_save(l->t, err));
    l->saved_at = rws_clock_now();
    l->saved = l->t->iteration;
    return RWS_OK;
}

static rws_status record(loop *l, rws_error *err)
{
    rws_trainer  *t = l->t;
    rws_snapshots shown = {0};
    rws_status    status = rws_trainer_snapshots_due(t) ? rws_trainer_snapshots(t, &shown, err) : RWS_OK;
    if (status == RWS_OK) status = rws_folder_record(t->folder, t, &l->latest, &shown, t->seconds, err);
    rws_snapshots_release(&shown);
    return status;
}

static rws_status tell_evaluated(loop *l, bool final, rws_error *err)
{
    const rws_watch *w = l->watch;
    return w->evaluated ? w->evaluated(w->context, l->t, &l->latest, final, err) : RWS_OK;
}

static rws_status evaluate(loop *l, bool last, rws_error *err)
{
    rws_folder *folder = l->t->folder;
    RWS_TRY(rws_trainer_evaluate(l->t, &l->latest, err));
    if (folder) RWS_TRY(record(l, err));
    RWS_TRY(tell_evaluated(l, false, err));
    if (!folder) return RWS_OK;
    const double now = rws_clock_now();
    if (last || !l->saved_at || now - l->saved_at >= l->save_every) return save(l, err);
    if (now - l->flushed_at < FLUSH_LEAST) return RWS_OK;
    l->flushed_at = now;
    return rws_folder_flush(folder, err);
}

static rws_status iterate(loop *l, rws_error *err)
{
    rws_trainer      *t = l->t;
    const rws_config *c = &t->config;
    const rws_watch  *w = l->watch;
    rws_pace          pace = rws_pace_start();
    while (t->iteration < c->iterations) {
        const bool due = rws_pace_due(&pace);
        if (due && w->stop && w->stop(w->context)) return RWS_STOPPED;
        RWS_TRY(rws_trainer_step(t, err));
        const uint64_t done = t->iteration;
        const bool     last = done == c->iterations;
        if (done == 1 || done % c->eval_every == 0 || last) RWS_TRY(evaluate(l, last, err));
        else if (due && t->folder && rws_clock_now() - l->saved_at >= fmax(SAVE_MOST, l->save_every))
            RWS_TRY(save(l, err));
        if (due && w->progress) w->progress(w->context, t);
    }
    return RWS_OK;
}

static rws_status stopped(loop *l, rws_error *err)
{
    const uint64_t done = l->t->iteration;
    if (l->t->folder && (l->saved != done || !l->saved_at)) RWS_TRY(save(l, err));
    return rws_fail(err, RWS_STOPPED, "Stopped after iteration %llu.", (unsigned long long)done);
}

/* The sentence names the iteration, also if a metric or the checkpoint met the NaN, and says what is left. */
static void describe_break(const loop *l, rws_error *err)
{
    const rws_error was = *err;
    if (!strstr(was.text, "iteration"))
        rws_fail(err, RWS_BROKEN, "After iteration %llu: %.400s", (unsigned long long)l->t->iteration, was.text);
    const size_t n = strlen(err->text);
    if (l->saved_at)
        snprintf(err->text + n, sizeof err->text - n, " The checkpoint of iteration %llu is kept.",
                 (unsigned long long)l->saved);
}

static rws_status run(loop *l, rws_error *err)
{
    rws_trainer *t = l->t;
    if (t->iteration >= t->config.iterations) { /* a finished run is only measured */
        RWS_TRY(rws_trainer_evaluate(t, &l->latest, err));
        return tell_evaluated(l, true, err);
    }
    rws_status status = iterate(l, err);
    if (status == RWS_STOPPED) status = stopped(l, err);
    if (status == RWS_BROKEN) {
        rws_error ignored; /* a store that cannot be told does not change what happened */
        describe_break(l, err);
        if (t->folder) (void)!rws_folder_fail(t->folder, t->iteration, err->text, &ignored);
    }
    return status == RWS_OK ? tell_evaluated(l, true, err) : status;
}

rws_status rws_trainer_train(rws_trainer *t, const rws_watch *watch, rws_error *err)
{
    static const rws_watch nothing;
    rws_error              unread;
    loop                   l = {.t = t, .watch = watch ? watch : &nothing, .save_every = SAVE_LEAST};
    if (l.watch->save_every != 0) l.save_every = fmax(0, l.watch->save_every);
    if (t->folder && rws_folder_has_checkpoint(t->folder)) {
        l.saved = t->iteration;
        l.saved_at = rws_clock_now();
    }
    return run(&l, err ? err : &unread);
}
