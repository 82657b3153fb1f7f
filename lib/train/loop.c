/* loop.c - training until the end: step, now and then evaluate, record and save.
 *
 *     step  step  step  evaluate  step  step  …  save  …  step  evaluate  save
 *                          |                               |
 *                        record: into the store, at the latest with the next checkpoint
 *
 * An evaluation is recorded before the checkpoint of its iteration is saved: on resuming, what was measured after the
 * last checkpoint is forgotten and measured again. An evaluation that is stopped is not recorded; the checkpoint of its
 * iteration is saved all the same, and training that resumes from there begins with the evaluation.
 *
 * Over several ranks every rank runs this loop. A decision that depends on a clock or a signal is a request of one
 * rank, which travels with the next phase, so that all ranks stop, or save, after the same iteration. Only rank 0 has
 * the folder.
 */
#include "train/trainer.h"

#include "base/clock.h"
#include "store/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MIN_SAVE_SECONDS 5.0  /* fewest seconds between two checkpoints; checkpoints come after evaluations */
#define MAX_SAVE_SECONDS 60.0 /* most seconds between two checkpoints, also where evaluations are rarer */
#define MIN_FLUSH_SECONDS 1.0 /* fewest seconds between two additions to the store, since each waits for the disk */

typedef struct {
    rws_trainer     *t;
    const rws_watch *watch;
    double           save_every;
    double           saved_at;   /* 0: never */
    double           flushed_at; /* 0: never */
    rws_measures     latest;
} loop;

rws_status rws__trainer_check_stop(rws_trainer *t, int worker, rws_error *err)
{
    const rws_watch *w = t->watch;
    if (worker == 0 && w && w->stop && w->stop(w->context)) __atomic_store_n(&t->stopping, true, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&t->stopping, __ATOMIC_RELAXED)) return rws__comm_alive(t->ranks.comm, err);
    return rws_fail(err, RWS_STOPPED, "The evaluation was stopped.");
}

#define MIN_STOP_SECONDS 0.02 /* fewest seconds between two calls of the user's `stop` by passes */

bool rws__trainer_should_stop(void *trainer)
{
    rws_trainer     *t = trainer;
    const rws_watch *w = t->watch;
    if (!w || t->ranks.comm || t->stepped) return false;
    if (w->stop && pthread_equal(pthread_self(), t->caller)) {
        const double now = rws__clock_now();
        const bool   due = now - t->asked_at >= MIN_STOP_SECONDS;
        if (due) t->asked_at = now;
        if (due && w->stop(w->context)) __atomic_store_n(&t->stopping, true, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&t->stopping, __ATOMIC_RELAXED);
}

rws_status rws__trainer_check_stop_together(rws_trainer *t, rws_error *err)
{
    if (!t->ranks.comm) return rws__trainer_check_stop(t, 0, err);
    if (rws__trainer_check_stop(t, 0, err) == RWS_STOPPED) t->request |= RWS_REQUEST_STOP;
    if (!(t->requests & RWS_REQUEST_STOP)) return rws__comm_alive(t->ranks.comm, err);
    return rws_fail(err, RWS_STOPPED, "The evaluation was stopped.");
}

static rws_status save(loop *l, rws_error *err)
{
    RWS_TRY(rws_trainer_save(l->t, err));
    l->saved_at = rws__clock_now();
    return RWS_OK;
}

static rws_status record(loop *l, rws_error *err)
{
    rws_trainer  *t = l->t;
    rws_snapshots shown = {0};
    rws_status    status = rws__trainer_snapshots_due(t) ? rws__trainer_snapshots(t, &shown, err) : RWS_OK;
    if (status == RWS_OK) status = rws__folder_record(t->folder, &l->latest, &shown, err);
    rws__snapshots_release(&shown);
    return status;
}

static rws_status tell_evaluated(loop *l, bool final, rws_error *err)
{
    const rws_watch *w = l->watch;
    return w->evaluated ? w->evaluated(w->context, l->t, &l->latest, final, err) : RWS_OK;
}

/* Each rank does this by itself; if it fails on one rank, the caller fails on all. `saves`: a checkpoint follows, which
 * flushes evaluations to the store too. */
static rws_status record_and_tell(loop *l, bool saves, rws_error *err)
{
    const double now = rws__clock_now();
    if (l->t->folder) RWS_TRY(record(l, err));
    RWS_TRY(tell_evaluated(l, false, err));
    if (!l->t->folder || saves || now - l->flushed_at < MIN_FLUSH_SECONDS) return RWS_OK;
    l->flushed_at = now;
    return rws__folder_flush(l->t->folder, err);
}

static rws_status evaluate(loop *l, bool last, rws_error *err)
{
    rws_trainer *t = l->t;
    RWS_TRY(rws_trainer_evaluate(t, &l->latest, err));
    bool due = t->kept && (last || !l->saved_at || rws__clock_now() - l->saved_at >= l->save_every);
    if (t->ranks.comm) RWS_TRY(rws__comm_broadcast(t->ranks.comm, &due, sizeof due, err)); /* by the clock of rank 0 */
    RWS_TRY(rws__trainer_agree(t, record_and_tell(l, due, err), err));
    t->evaluated = t->program.iteration;
    return due ? save(l, err) : RWS_OK;
}

static bool is_due(const rws_config *c, uint64_t done)
{
    return done == 1 || done % c->eval_every == 0 || done == c->iterations;
}

/* Whether the evaluation of the present iteration is missing: it was stopped. For a run with a folder rank 0 asks the
 * store. */
static rws_status begins_with_evaluation(loop *l, bool *missing, rws_error *err)
{
    rws_trainer *t = l->t;
    rws_status   status = RWS_OK;
    *missing = false;
    if (t->program.iteration == 0 || !is_due(&t->program.config, t->program.iteration)) return RWS_OK;
    *missing = !t->kept && t->evaluated != t->program.iteration;
    if (!t->kept) return RWS_OK;
    if (t->folder) status = rws__folder_lacks(t->folder, t->program.iteration, missing, err);
    RWS_TRY(rws__trainer_agree(t, status, err));
    return t->ranks.comm ? rws__comm_broadcast(t->ranks.comm, missing, sizeof *missing, err) : RWS_OK;
}

/* Adds the requests of this rank to t->request. Called about every 50 ms. */
static void add_requests(loop *l)
{
    rws_trainer     *t = l->t;
    const rws_watch *w = l->watch;
    if (w->stop && w->stop(w->context)) t->request |= RWS_REQUEST_STOP;
    if (t->folder && rws__clock_now() - l->saved_at >= fmax(MAX_SAVE_SECONDS, l->save_every))
        t->request |= RWS_REQUEST_SAVE;
}

/* Makes one iteration. Writes the requests of all ranks, the same on every rank, to *requests. */
static rws_status run_iteration(loop *l, int *requests, rws_error *err)
{
    rws_trainer *t = l->t;
    RWS_TRY(rws_trainer_step(t, err));
    if (!t->program.method.estimator->n_phases) RWS_TRY(rws__trainer_requests(t, err));
    *requests = t->requests;
    t->request = t->requests = 0;
    return RWS_OK;
}

static rws_status iterate(loop *l, rws_error *err)
{
    rws_trainer      *t = l->t;
    const rws_config *c = &t->program.config;
    const rws_watch  *w = l->watch;
    rws_pace          pace = rws__pace_start();
    bool              missing;
    int               requests;
    RWS_TRY(begins_with_evaluation(l, &missing, err));
    if (missing) RWS_TRY(evaluate(l, false, err));
    while (t->program.iteration < c->iterations) {
        const bool due = rws__pace_due(&pace);
        if (due) add_requests(l);
        if (t->request & RWS_REQUEST_STOP && !t->ranks.comm) return RWS_STOPPED;
        RWS_TRY(run_iteration(l, &requests, err));
        const uint64_t done = t->program.iteration;
        if (is_due(c, done)) RWS_TRY(evaluate(l, done == c->iterations, err));
        else if (requests & RWS_REQUEST_SAVE) RWS_TRY(save(l, err));
        if (due && w->progress) w->progress(w->context, t);
        if (requests & RWS_REQUEST_STOP && done < c->iterations) return RWS_STOPPED;
    }
    return RWS_OK;
}

static rws_status stopped(loop *l, rws_error *err)
{
    const uint64_t done = l->t->program.iteration;
    /* A run whose last evaluation was stopped is not finished: it resumes from the checkpoint before. */
    const bool finished = done == l->t->program.config.iterations;
    if (l->t->kept && !finished && (l->t->saved != done || !l->saved_at)) RWS_TRY(save(l, err));
    return rws_fail(err, RWS_STOPPED, "Stopped after iteration %llu.", (unsigned long long)done);
}

/* Adds the iteration (the message lacks it if a metric or the checkpoint met the NaN), the checkpoint that is kept and
 * a hint to the message. The first iteration has the parameters that setup made, so that the learning rate is not the
 * cause. */
static void describe_break(const loop *l, rws_error *err)
{
    const rws_error was = *err;
    if (!strstr(was.text, "iteration"))
        rws_fail(err, RWS_BROKEN, "After iteration %llu: %.400s", (unsigned long long)l->t->program.iteration,
                 was.text);
    if (l->saved_at)
        rws__error_append(err, " The checkpoint of iteration %llu is kept.", (unsigned long long)l->t->saved);
    if (l->t->program.iteration)
        rws__error_append(err, " If the numbers grew too large, lower the learning rate (`lr`).");
}

static rws_status run(loop *l, rws_error *err)
{
    rws_trainer *t = l->t;
    if (t->program.iteration >= t->program.config.iterations) { /* a finished run is only measured */
        RWS_TRY(rws_trainer_evaluate(t, &l->latest, err));
        return tell_evaluated(l, true, err);
    }
    RWS_TRY(rws__trainer_check_briefly(t, err));
    rws_status status = iterate(l, err);
    if (status == RWS_STOPPED) status = stopped(l, err);
    if (status == RWS_BROKEN) {
        rws_error ignored; /* the failure that is returned is that of training, also if the store cannot be written */
        describe_break(l, err);
        if (t->folder) (void)!rws__folder_fail(t->folder, t->program.iteration, err->text, &ignored);
    }
    return status == RWS_OK ? tell_evaluated(l, true, err) : status;
}

rws_status rws_trainer_train(rws_trainer *t, const rws_watch *watch, rws_error *err)
{
    RWS_TRAINER_ENTER(t, err);
    static const rws_watch nothing;
    rws_error              unread;
    loop                   l = {.t = t, .watch = watch ? watch : &nothing, .save_every = MIN_SAVE_SECONDS};
    if (l.watch->save_every != 0) l.save_every = fmax(0, l.watch->save_every);
    bool       has_checkpoint = t->folder && rws__folder_has_checkpoint(t->folder);
    rws_status status = RWS_OK;
    if (!err) err = &unread;
    if (t->ranks.comm) status = rws__comm_broadcast(t->ranks.comm, &has_checkpoint, sizeof has_checkpoint, err);
    if (has_checkpoint) l.saved_at = rws__clock_now();
    t->watch = l.watch;
    t->caller = pthread_self();
    t->stopping = false;
    t->request = t->requests = 0;
    if (status == RWS_OK) status = run(&l, err);
    t->watch = NULL;
    t->stopping = false;
    return status;
}
