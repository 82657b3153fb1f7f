/* many.c - many questions: those that agree in everything but their data share passes, and threads share the passes.
 *
 *     question   0 1 2 3 | 4 5 6 7 | 8 9      a block: as many data as have AT_ONCE particles together, cut at multiples
 *     thread     0         1         0        whichever is free
 *     answers    0 1 2 3   4 5 6 7   8 9      handed out in order, on the thread of the caller
 *
 * The size of a block is a power of two, so that a multiple of AT_ONCE ends one. Blocks do not depend on threads, and a
 * datum's draws are keyed by its number among all: neither threads nor a resumed list change a bit. Where the questions of a block fail together, each is asked alone, so that only what is wrong fails.
 */
#include "ask/ask.h"
#include "ask/posterior.h"
#include "base/error.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 16384 /* particles of a pass about many data, unless the model says fewer */

enum { ROUND = 4 /* blocks of each thread between two deliveries */, MAX_THREADS = 1024 };

/* Why a question has no answers. */
typedef struct {
    rws_status status;
    rws_error  error;
} failure;

typedef struct {
    const rws_program  *program;
    const rws_question *list;
    int                 n;
    const rws_many     *how;
    float *const       *test;
    rws_idle          **engines; /* one for each thread */
    rws_pool           *pool;
    int                 n_threads;
    pthread_t           caller;
    atomic_bool         stopped;
    int                *start; /* of each block of a round, and the end of all */
    int                 n_blocks;
    rws_question       *questions; /* from here on: those from start[0] on */
    rws_answers       **answers;
    failure            *failures;
} job;

/* ---- blocks */

int rws__questions_at_once(const rws_program *p, int n_particles)
{
    const int K = n_particles ? n_particles : RWS_QUESTION_PARTICLES, most = rws__program_at_once(p, AT_ONCE);
    int       size = 1;
    while (K > 0 && 2 * size <= most / K) size *= 2;
    return size;
}

/* Whether two questions may share a pass. Given choices are checked datum by datum. */
static bool agree(const rws_question *x, const rws_question *y)
{
    return x->n_particles == y->n_particles && x->seed == y->seed && x->particles == y->particles &&
           x->refine == y->refine && x->chains == y->chains && !x->n_given && !y->n_given;
}

/* The end of the block that begins with question i. */
static int end_of_block(const job *j, int i)
{
    const int size = rws__questions_at_once(j->program, j->list[i].n_particles),
              left = size - (int)((j->how->first + (uint64_t)i) % (uint64_t)size);
    int end = i + 1;
    while (end < j->n && end < i + left && agree(&j->list[i], &j->list[end])) end++;
    return end;
}

/* ---- work */

static bool is_stopped(void *context)
{
    job *j = context;
    if (j->how->stop && pthread_equal(j->caller, pthread_self()) && j->how->stop(j->how->context)) j->stopped = true;
    return j->stopped;
}

/* Asks n questions of the round, from number `from` on. */
static rws_status ask(job *j, int worker, int from, int n, rws_error *err)
{
    const uint64_t number = j->how->first + (uint64_t)(j->start[0] + from);
    return rws__questions_ask(j->program, j->engines[worker]->engine, j->test, j->questions + from, n, (uint32_t)number,
                              j->answers + from, err);
}

static void work(void *context, int index, int worker)
{
    job             *j = context;
    const int        from = j->start[index] - j->start[0], end = j->start[index + 1] - j->start[0];
    rws_error        err = {""};
    const rws_status status = ask(j, worker, from, end - from, &err);
    const bool       alone = end - from > 1 && status != RWS_STOPPED;
    for (int i = from; i < end && status != RWS_OK; i++) {
        failure *f = &j->failures[i];
        *f = (failure){status, err};
        if (alone) f->status = ask(j, worker, i, 1, &f->error);
    }
}

/* Hands out the answers of a round. */
static rws_status deliver(job *j, int n, rws_error *err)
{
    rws_status status = RWS_OK;
    for (int i = 0; i < n; i++) {
        const failure *f = &j->failures[i];
        const int      number = j->start[0] + i;
        if (status == RWS_OK && (f->status == RWS_NO_MEMORY || f->status == RWS_STOPPED))
            status = rws_fail(err, f->status, "%s", f->error.text);
        if (status != RWS_OK) rws_answers_free(j->answers[i]);
        else if (!j->how->each(j->how->context, number, j->answers[i], f->status, f->error.text))
            status = rws_fail(err, RWS_STOPPED, "The questions were stopped after %d of %d.", number + 1, j->n);
    }
    return status;
}

/* Cuts the next blocks. Returns how many questions they have. */
static int cut_blocks(job *j, int from)
{
    const int most = j->n_threads * ROUND;
    j->n_blocks = 0;
    j->start[0] = from;
    while (j->n_blocks < most && j->start[j->n_blocks] < j->n) {
        j->start[j->n_blocks + 1] = end_of_block(j, j->start[j->n_blocks]);
        j->n_blocks++;
    }
    return j->start[j->n_blocks] - from;
}

static rws_status answer_round(job *j, int n, rws_error *err)
{
    if (!j->questions || !j->answers || !j->failures) return rws_no_memory(err, "answers");
    for (int i = 0; i < n; i++) {
        j->questions[i] = j->list[j->start[0] + i];
        j->questions[i].stop = is_stopped;
        j->questions[i].context = j;
    }
    rws__pool_run(j->pool, j->n_blocks, work, j);
    return deliver(j, n, err);
}

static rws_status run_round(job *j, int *at, rws_error *err)
{
    const int n = cut_blocks(j, *at);
    *at += n;
    j->questions = calloc((size_t)n, sizeof *j->questions);
    j->answers = calloc((size_t)n, sizeof *j->answers);
    j->failures = calloc((size_t)n, sizeof *j->failures);
    const rws_status status = answer_round(j, n, err);
    free(j->questions);
    free(j->answers);
    free(j->failures);
    return status;
}

/* ---- all */

/* Makes the test data once, if a question is about them. */
static rws_status make_test(job *j, float **data, rws_error *err)
{
    bool asked = false;
    for (int i = 0; i < j->n && !asked; i++) asked = !j->list[i].fields && !j->list[i].text && !j->list[i].picture;
    if (!asked) return RWS_OK;
    j->test = data;
    return rws__test_make(j->program, j->program->n_test, data, err);
}

static rws_status take_engines(job *j, rws_posterior *p, rws_error *err)
{
    j->engines = calloc((size_t)j->n_threads, sizeof(rws_idle *));
    j->start = calloc((size_t)j->n_threads * ROUND + 1, sizeof *j->start);
    if (!j->engines || !j->start) return rws_no_memory(err, "questions");
    for (int i = 0; i < j->n_threads; i++)
        if (!(j->engines[i] = rws__posterior_take(p, err))) return RWS_NO_MEMORY;
    return rws__pool_new(j->n_threads, &j->pool, err);
}

static rws_status run(job *j, rws_posterior *p, float **test, rws_error *err)
{
    RWS_TRY(take_engines(j, p, err));
    RWS_TRY(make_test(j, test, err));
    for (int at = 0; at < j->n;) RWS_TRY(run_round(j, &at, err));
    return RWS_OK;
}

static int threads_of(const rws_many *how)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return how->threads ? how->threads : cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int)cores;
}

rws_status rws_posterior_ask_many(rws_posterior *p, const rws_question *list, int n, const rws_many *how,
                                  rws_error *err)
{
    RWS_NEED(p, err);
    RWS_NEED(how, err);
    if (n < 0 || (n && !list)) return rws_fail(err, RWS_BAD_INPUT, "There are %d questions, but no list of them.", n);
    if (!how->each) return rws_fail(err, RWS_BAD_INPUT, "Many questions need a function `each` that takes answers.");
    if (how->threads < 0 || how->threads > MAX_THREADS)
        return rws_fail(err, RWS_BAD_INPUT, "Questions take 0 to %d threads, not %d.", MAX_THREADS, how->threads);
    if (how->first > UINT32_MAX - (uint64_t)n)
        return rws_fail(err, RWS_BAD_INPUT, "Questions are numbered below 2^32.");
    const rws_program *program = rws__posterior_program(p);
    float             *test[program->setup.n_fields + 1];
    job                j = {
                       .program = program, .list = list, .n = n, .how = how, .n_threads = threads_of(how), .caller = pthread_self()};
    memset(test, 0, sizeof test);
    const rws_status status = run(&j, p, test, err);
    rws__pool_free(j.pool);
    for (int i = 0; j.engines && i < j.n_threads; i++)
        if (j.engines[i]) rws__posterior_give_back(p, j.engines[i]);
    rws__test_release(program, test);
    free(j.engines);
    free(j.start);
    return status;
}
