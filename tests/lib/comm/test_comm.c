/* test_comm.c - the ranks of a job without an MPI (post.h): what one of them lacks, memory, a pipe or a thread, all learn,
 * and none waits for ever.
 *
 *     for each request for memory of one rank: fork the ranks, let the request fail, wait for all, compare how they ended
 *
 * Either every rank ends with RWS_OK and the numbers that it has when nothing fails, or every rank ends with the same
 * failure and message. test_mpi.sh tests ranks over real MPIs. */
#include "failing.h"
#include "files.h"
#include "post.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/comm.h"
#include "train/phase.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };
#define MAX_SECONDS 60.0 /* until all ranks have ended, on a busy machine */

/* How a rank ended. In memory that all processes share. */
typedef struct {
    bool       finished;
    rws_status status;
    rws_error  error;
    double     result;
    int        n_threads;
    long       n_requests; /* for memory, since hunger() */
} account;

/* What the ranks do together. A number that is the same on all of them goes to *result. */
typedef rws_status scenario(double *result, rws_error *err);

static account *accounts;
static char     run_name[64]; /* another folder for each job */

/* What the victim lacks, in this process. */
static struct {
    bool is_victim, joining, pipe, thread;
    long request; /* the one that fails; -1: none */
} lack;

/* Requests for memory count from here on. */
static void hunger(void)
{
    failing_set(lack.is_victim ? lack.request : -1, false);
}

int __real_pipe2(int ends[2], int flags);

int __wrap_pipe2(int ends[2], int flags)
{
    if (!lack.is_victim || !lack.pipe) return __real_pipe2(ends, flags);
    errno = EMFILE;
    return -1;
}

int __real_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *context);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *), void *context)
{
    return lack.is_victim && lack.thread ? EAGAIN : __real_pthread_create(out, how, run, context);
}

/* ---- a job */

static int count_threads(void)
{
    int  n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *e; tasks && (e = readdir(tasks));) n += e->d_name[0] != '.';
    if (tasks) closedir(tasks);
    return n;
}

static _Noreturn void be_rank(int rank, scenario *run)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS}; /* by cmocka, for the test */
    account         *a = &accounts[rank];
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) signal(caught[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    post_office_join(rank, lack.joining ? hunger : NULL);
    a->status = rws_ranks_open(&a->error);
    if (a->status == RWS_OK) a->n_threads = count_threads();
    if (a->status == RWS_OK) a->status = run(&a->result, &a->error);
    a->n_requests = failing_count();
    failing_set(-1, false);
    if (rws_rank_lost() < 0) rws_ranks_close();
    a->finished = true;
    _exit(0);
}

/* Waits for all ranks; those that have not ended in time are killed. Whether all ended by themselves. */
static bool wait_for(pid_t *ranks)
{
    const double until = rws__clock_now() + MAX_SECONDS;
    int          left = RANKS;
    while (left && rws__clock_now() < until) {
        for (int i = 0; i < RANKS; i++)
            if (ranks[i] && waitpid(ranks[i], NULL, WNOHANG) == ranks[i]) ranks[i] = 0, left--;
        if (left) usleep(500);
    }
    for (int i = 0; i < RANKS; i++)
        if (ranks[i]) kill(ranks[i], SIGKILL), waitpid(ranks[i], NULL, 0);
    return !left;
}

/* Runs a job in which `victim` lacks what `lack` says. */
static void run_job(scenario *run, int victim)
{
    pid_t ranks[RANKS];
    accounts = mmap(NULL, RANKS * sizeof *accounts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(accounts != MAP_FAILED);
    snprintf(run_name, sizeof run_name, "run-%d-%ld", victim, lack.request);
    post_office_open(RANKS);
    fflush(NULL);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = fork();
        assert_true(ranks[i] >= 0);
        lack.is_victim = i == victim;
        if (ranks[i] == 0) be_rank(i, run);
    }
    const bool ended = wait_for(ranks);
    for (int i = 0; i < RANKS && !ended; i++)
        if (accounts[i].finished) print_message("rank %d ended: %s\n", i, accounts[i].error.text);
    if (!ended) fail_msg("ranks wait for ever after request %ld of rank %d", lack.request, victim);
    for (int i = 0; i < RANKS; i++)
        if (!accounts[i].finished) fail_msg("rank %d died after request %ld of rank %d", i, lack.request, victim);
    if (post_office_confused()) fail_msg("ranks are not in step after request %ld of rank %d", lack.request, victim);
    post_office_close();
}

static void end_job(void)
{
    munmap(accounts, RANKS * sizeof *accounts);
}

/* All ranks ended alike: with `expected`, or with the same failure for want of memory. */
static void check_accounts(int victim, double expected)
{
    const account *first = &accounts[0];
    for (int i = 0; i < RANKS; i++) {
        const account *a = &accounts[i];
        if (a->status != first->status || strcmp(a->error.text, first->error.text) != 0)
            fail_msg("request %ld of rank %d: rank 0 ends with %d, \"%s\", and rank %d with %d, \"%s\"", lack.request,
                     victim, (int)first->status, first->error.text, i, (int)a->status, a->error.text);
        if (a->status == RWS_OK && a->result != expected)
            fail_msg("request %ld of rank %d: rank %d ends with %g, not %g", lack.request, victim, i, a->result,
                     expected);
    }
    if (first->status == RWS_OK) return;
    if (first->status != RWS_NO_MEMORY) fail_msg("request %ld: \"%s\"", lack.request, first->error.text);
    assert_sentence(&first->error, "memory");
}

/* The request that fails after the given one: the first and the last ones, at which ranks meet, one after the other, and
 * every fifth between them. */
static long next_request(long request, long n)
{
    return request < 4 || request >= n - 12 ? request + 1 : request + 5;
}

/* Lets requests of each rank fail, one in every job. */
static void starve(scenario *run, bool joining)
{
    lack = (typeof(lack)){.request = -1, .joining = joining};
    run_job(run, -1);
    long   n[RANKS];
    double expected = accounts[0].result;
    must(accounts[0].status, &accounts[0].error);
    check_accounts(-1, expected);
    for (int i = 0; i < RANKS; i++) n[i] = accounts[i].n_requests;
    end_job();
    int n_refused = 0;
    for (int victim = 0; victim < RANKS; victim++)
        for (lack.request = 0; lack.request < n[victim]; lack.request = next_request(lack.request, n[victim])) {
            run_job(run, victim);
            check_accounts(victim, expected);
            n_refused += accounts[0].status != RWS_OK;
            end_job();
        }
    lack.request = -1;
    print_message("the ranks have %ld, %ld and %ld requests; %d jobs were refused\n", n[0], n[1], n[2], n_refused);
    assert_true(n_refused > 0);
}

/* ---- scenarios */

/* The numbers of all ranks, by every collective function; parts and broadcasts are larger than a piece (comm.c). */
static rws_status exchange(double *result, rws_error *err)
{
    enum { MANY = 30000 };
    static unsigned char all[MANY];
    rws_comm            *c = rws__comm_world();
    const size_t         start[RANKS + 1] = {0, 5000, 5000, MANY};
    const int            rank = rws__comm_rank(c), mine = 10 + rank;
    int                  of[RANKS], sent = mine;
    RWS_TRY(rws__comm_gather(c, &mine, sizeof mine, of, err));
    for (int i = 0; i < RANKS; i++) *result += i * of[i];
    for (size_t i = start[rank]; i < start[rank + 1]; i++) all[i] = (unsigned char)(i * 7 + i / 256);
    RWS_TRY(rws__comm_gather_blocks(c, all, start, err));
    for (size_t i = 0; i < MANY; i++) *result += all[i] == (unsigned char)(i * 7 + i / 256);
    for (int root = 0; root < RANKS; root++) {
        sent = mine;
        RWS_TRY(rws__comm_broadcast_from(c, root, &sent, sizeof sent, err));
        *result += sent == 10 + root;
    }
    *result += rank ? 0 : 0.5;
    RWS_TRY(rws__comm_broadcast(c, result, sizeof *result, err));
    rws_error        why = {""};
    const rws_status status = rank == 0 ? RWS_OK : rws_fail(&why, RWS_BROKEN, "%d is broken.", rank);
    if (rws__comm_agree(c, status, &why) != RWS_BROKEN || !strstr(why.text, "1 is broken."))
        return rws_fail(err, RWS_BAD_INPUT, "The ranks agree on \"%s\".", why.text);
    return rws__comm_agree(c, RWS_OK, err);
}

static rws_status trainer_new(const char *method, int shards, int parts, const rws_model *model, rws_trainer **t,
                              rws_error *err)
{
    const rws_config c = {.model = model ? NULL : "gmm",
                          .method = method,
                          .particles = 6,
                          .batch = 6,
                          .shards = shards,
                          .particle_shards = parts,
                          .n_test = 5,
                          .eval_particles = 4,
                          .iterations = 10};
    return rws_trainer_new(&c, model, t, err);
}

static double sum_params(rws_trainer *t)
{
    double         sum = 0;
    rws_param_view v;
    for (int i = 0; rws_trainer_param(t, i, &v); i++)
        for (int k = 0; k < v.rows * v.cols; k++) sum += (double)v.values[k] * (1 + k % 7);
    return sum;
}

static rws_status make_trainer(double *result, rws_error *err)
{
    rws_trainer *t;
    hunger();
    RWS_TRY(trainer_new("ww", 4, 1, NULL, &t, err));
    *result = sum_params(t);
    rws_trainer_free(t);
    return RWS_OK;
}

static rws_status step_twice(rws_trainer *t, double *result, rws_error *err)
{
    rws_status status = rws_trainer_step(t, err);
    if (status == RWS_OK) status = rws_trainer_step(t, err);
    *result = sum_params(t);
    rws_trainer_free(t);
    return status;
}

/* All messages go through the carrier. */
static rws_status step_shards(double *result, rws_error *err)
{
    rws_trainer *t;
    setenv("RWS_SHARED_MEMORY", "no", 1);
    RWS_TRY(trainer_new("ws", 4, 1, NULL, &t, err));
    hunger();
    return step_twice(t, result, err);
}

/* Particles of a datum are in shards of several ranks. */
static rws_status step_cut(double *result, rws_error *err)
{
    rws_trainer *t;
    RWS_TRY(trainer_new("vimco", 2, 3, NULL, &t, err));
    hunger();
    return step_twice(t, result, err);
}

static rws_status step_cut_twice(double *result, rws_error *err)
{
    rws_trainer *t;
    RWS_TRY(trainer_new("relax", 1, 3, NULL, &t, err));
    hunger();
    return step_twice(t, result, err);
}

/* A mixture whose guide has a weight of several slices, which every rank owns some of. */
enum { COMPONENTS = 1000 };

typedef struct {
    rws_param *theta;
    rws_layer *mlp;
} mixture;

static rws_status large_setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    mixture *m = rws_setup_alloc(s, sizeof *m);
    (void)random;
    if (!m) return rws_no_memory(err, "a mixture");
    rws_setup_field(s, "x", 1);
    m->theta = rws_setup_param(s, RWS_THETA, "theta", 1, COMPONENTS, RWS_ZERO);
    m->mlp = rws_setup_mlp(s, RWS_PHI, "phi.mlp", RWS_TANH, RWS_UNIFORM, (int[]){1, 64, COMPONENTS}, 3);
    *state = m;
    return RWS_OK;
}

static rws_status large_data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                             float *const *fields, rws_error *err)
{
    (void)state, (void)split, (void)first, (void)err;
    for (int i = 0; i < n; i++) fields[0][i] = (float)rws_random_normal(random);
    return RWS_OK;
}

static void large_guide(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_mlp(path, m->mlp, rws_observed(path, "x")));
}

static void large_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    const rws_var  z = rws_categorical(path, "z", rws_parameter(path, m->theta));
    rws_normal(path, "x", rws_affine(path, z, 1.0f / COMPONENTS, 0), rws_constant(path, 1));
}

static const rws_model large = {.abi = RWS_ABI,
                                .name = "large",
                                .setup = large_setup,
                                .data = large_data,
                                .guide = large_guide,
                                .model = large_model};

/* The gradients of the large weight are added up in scratch memory. */
static rws_status step_large(double *result, rws_error *err)
{
    rws_trainer *t;
    RWS_TRY(trainer_new("ww", 6, 1, &large, &t, err));
    hunger();
    return step_twice(t, result, err);
}

static rws_status keep_and_resume(double *result, rws_error *err)
{
    rws_trainer *t;
    RWS_TRY(trainer_new("ww", 4, 1, NULL, &t, err));
    hunger();
    rws_status status = rws_trainer_keep(t, in_folder(run_name), err);
    if (status == RWS_OK) status = rws_trainer_save(t, err);
    rws_trainer_free(t);
    if (status == RWS_OK) status = rws_trainer_resume(in_folder(run_name), NULL, NULL, &t, err);
    if (status != RWS_OK) return status;
    *result = sum_params(t);
    rws_trainer_free(t);
    return RWS_OK;
}

static rws_status evaluate(double *result, rws_error *err)
{
    rws_trainer *t;
    rws_measures m;
    RWS_TRY(trainer_new("ww", 4, 1, NULL, &t, err));
    hunger();
    const rws_status status = rws_trainer_evaluate(t, &m, err);
    for (int i = 0; i < m.n && status == RWS_OK; i++) *result += (i + 1) * m.value[i];
    rws_trainer_free(t);
    return status;
}

/* ---- tests */

static void all_ranks_get_the_same(void **state)
{
    (void)state;
    lack = (typeof(lack)){.request = -1};
    run_job(exchange, -1);
    must(accounts[0].status, &accounts[0].error);
    check_accounts(-1, 10 * 0 + 11 * 1 + 12 * 2 + 30000 + RANKS + 0.5);
    end_job();
}

static void a_rank_without_memory_to_join(void **state)
{
    (void)state;
    starve(exchange, true);
}

static void a_rank_without_memory_for_a_trainer(void **state)
{
    (void)state;
    starve(make_trainer, false);
}

static void a_rank_without_memory_for_a_step(void **state)
{
    (void)state;
    starve(step_shards, false);
}

static void a_rank_without_memory_for_cut_particles(void **state)
{
    (void)state;
    starve(step_cut, false);
    starve(step_cut_twice, false);
}

static void a_rank_without_memory_for_a_slice(void **state)
{
    (void)state;
    starve(step_large, false);
}

static void a_rank_without_memory_for_an_evaluation(void **state)
{
    (void)state;
    starve(evaluate, false);
}

static void a_rank_without_memory_for_the_folder(void **state)
{
    (void)state;
    starve(keep_and_resume, false);
}

/* The data of a model that only the victim fails to make, as if a file were missing on its machine. */
static const rws_model *whole_model;

static rws_status data_of_others(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                                 float *const *fields, rws_error *err)
{
    if (lack.is_victim && split == RWS_TRAIN && first == (uint64_t)n)
        return rws_fail(err, RWS_BAD_INPUT, "The second batch is missing.");
    return whole_model->data(state, split, first, n, random, fields, err);
}

/* An iteration, the gradients of the second batch and of the test data, and a second iteration. Which of the first three
 * were well goes to *result. */
static rws_status step_without_batch(double *result, rws_error *err)
{
    const rws_config c = {.model = "gmm", .particles = 2, .batch = 6, .shards = 4, .n_test = 5, .eval_particles = 4};
    float            gradient[2000];
    rws_trainer     *t;
    rws_error        why = {""};
    rws_model        model = *whole_model;
    model.data = data_of_others;
    RWS_TRY(rws_trainer_new(&c, &model, &t, err));
    *result += rws_trainer_step(t, &why) == RWS_OK;
    *result += 10 * (rws_trainer_gradient(t, RWS_TRAIN, 0, gradient, rws_trainer_size(t), &why) == RWS_OK);
    *result += 100 * (rws_trainer_gradient(t, RWS_TEST, 0, gradient, rws_trainer_size(t), &why) == RWS_OK);
    const rws_status status = rws_trainer_step(t, err);
    rws_trainer_free(t);
    return status;
}

static void a_rank_without_a_batch(void **state)
{
    (void)state;
    for (int i = 0; !whole_model; i++)
        if (strcmp(rws_model_at(i)->name, "gmm") == 0) whole_model = rws_model_at(i);
    lack = (typeof(lack)){.request = -1};
    for (int victim = 0; victim < RANKS; victim++) {
        run_job(step_without_batch, victim);
        for (int i = 0; i < RANKS; i++) {
            assert_int_equal(accounts[i].status, RWS_BAD_INPUT);
            assert_sentence(&accounts[i].error, "The second batch is missing.");
            assert_true(accounts[i].result == 101);
        }
        end_job();
    }
}

/* No rank watches then, and the job continues. */
static void check_unwatched(int victim)
{
    run_job(exchange, victim);
    must(accounts[0].status, &accounts[0].error);
    check_accounts(victim, accounts[0].result);
    for (int i = 0; i < RANKS; i++) assert_int_equal(accounts[i].n_threads, 1);
    end_job();
}

static void a_rank_without_a_pipe_or_thread_leaves_all_without_a_watch(void **state)
{
    (void)state;
    lack = (typeof(lack)){.request = -1};
    run_job(exchange, -1);
    const bool watched = accounts[0].n_threads == 2;
    end_job();
    if (!watched) skip(); /* the system has no network */
    for (int victim = 0; victim < RANKS; victim++) {
        lack = (typeof(lack)){.request = -1, .pipe = true};
        check_unwatched(victim);
        lack = (typeof(lack)){.request = -1, .thread = true};
        check_unwatched(victim);
    }
}

/* A rank would read or write behind its memory if the carrier took the number for an int. */
static rws_status send_much(double *result, rws_error *err)
{
    rws_comm    *c = rws__comm_world();
    rws_transfer t;
    rws_error    why = {""};
    char         byte = 0;
    const size_t much = RWS_MAX_CARRIER_BYTES + 1;
    if (rws__comm_send(c, 0, 1, &byte, much, &t, &why) == RWS_BAD_INPUT && strstr(why.text, "at most")) ++*result;
    if (rws__comm_receive(c, 0, 1, &byte, much, &t, &why) == RWS_BAD_INPUT && strstr(why.text, "at most")) ++*result;
    return rws__comm_agree(c, RWS_OK, err);
}

/* Rows of a shard that are too large for a message: the rank that has no part in the message refuses them too. */
static rws_status weigh_much(double *result, rws_error *err)
{
    rws_trainer *t;
    rws_error    why = {""};
    RWS_TRY(trainer_new("vimco", 2, 3, NULL, &t, err));
    const rws_phase_work w = {.t = t};
    t->shards[0].n_rows_bytes = RWS_MAX_CARRIER_BYTES + 1;
    *result = rws__cut_weigh(&w, &why) == RWS_BAD_INPUT && strstr(why.text, "at most");
    rws_trainer_free(t);
    return rws__comm_agree(rws__comm_world(), RWS_OK, err);
}

static void too_large_messages_are_refused(void **state)
{
    (void)state;
    lack = (typeof(lack)){.request = -1};
    run_job(send_much, -1);
    must(accounts[0].status, &accounts[0].error);
    check_accounts(-1, 2);
    end_job();
    run_job(weigh_much, -1);
    must(accounts[0].status, &accounts[0].error);
    check_accounts(-1, 1);
    end_job();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_get_the_same),
        cmocka_unit_test(too_large_messages_are_refused),
        cmocka_unit_test(a_rank_without_a_pipe_or_thread_leaves_all_without_a_watch),
        cmocka_unit_test(a_rank_without_memory_to_join),
        cmocka_unit_test(a_rank_without_memory_for_a_trainer),
        cmocka_unit_test(a_rank_without_memory_for_a_step),
        cmocka_unit_test(a_rank_without_memory_for_cut_particles),
        cmocka_unit_test(a_rank_without_memory_for_a_slice),
        cmocka_unit_test(a_rank_without_memory_for_an_evaluation),
        cmocka_unit_test_setup_teardown(a_rank_without_memory_for_the_folder, folder_make, folder_remove),
        cmocka_unit_test(a_rank_without_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
