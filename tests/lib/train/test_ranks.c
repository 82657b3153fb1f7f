/* test_ranks.c - what one run over several ranks stands on: the tree of sums, the shares of ranks, cut particles. The
 * ranks themselves are tested by test_comm.c and test_mpi.sh. */
#include "files.h"

#include "train/ranks.h"
#include "train/forest.h"
#include "rws_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tree */

static float leaf_value(int i)
{
    return 1.0f / (float)(3 + 7 * i);
}

/* The definition, from the root: a node covers `size` shards from `first` on, of which those below n exist. */
static float sum_below(int first, int size, int n)
{
    if (size == 1) return leaf_value(first);
    const float left = sum_below(first, size / 2, n);
    return first + size / 2 < n ? left + sum_below(first + size / 2, size / 2, n) : left;
}

static float by_definition(int n)
{
    int size = 1;
    while (size < n) size *= 2;
    return sum_below(0, size, n);
}

/* Sums by ranks that each add up what they hold, and hand the rest over. */
static float by_ranks(int n, int ranks)
{
    static float values[4096];
    rws_forest   all = {0};
    for (int r = 0; r < ranks; r++) {
        int        first, end;
        rws_forest own = {0};
        rws__ranks_range(ranks, r, n, &first, &end);
        for (int i = first; i < end; i++) {
            values[i] = leaf_value(i);
            rws__forest_add(&own, (rws_subtree){i, 1, &values[i]}, 1);
        }
        const rws_forest plan = rws__forest_of(first, end);
        assert_int_equal(plan.n, own.n);
        for (int i = 0; i < own.n; i++) {
            assert_true(plan.list[i].first == own.list[i].first && plan.list[i].size == own.list[i].size);
            rws__forest_add(&all, own.list[i], 1);
        }
    }
    return *rws__forest_sum(&all, 1);
}

static void sums_do_not_depend_on_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= 70; n++)
        for (int ranks = 1; ranks <= 9; ranks++) assert_true(by_ranks(n, ranks) == by_definition(n));
    assert_true(by_ranks(1000, 64) == by_definition(1000));
    /* and the order does matter */
    float in_order = 0;
    for (int i = 0; i < 70; i++) in_order += leaf_value(i);
    assert_true(in_order != by_definition(70));
}

static void zeros_need_no_memory(void **state)
{
    (void)state;
    float      one = 3, two = 4;
    rws_forest f = {0};
    for (int i = 0; i < 5; i++) rws__forest_add(&f, (rws_subtree){i, 1, i == 1 ? &one : i == 4 ? &two : NULL}, 1);
    assert_true(*rws__forest_sum(&f, 1) == 7);
    assert_true(f.n == 0 && rws__forest_sum(&f, 1) == NULL);
}

/* ---- the shares of ranks */

static void every_shard_has_one_holder(void **state)
{
    (void)state;
    for (int n = 1; n < 40; n++)
        for (int size = 1; size < 50; size++) {
            int expected = 0, first, end;
            for (int r = 0; r < size; r++) {
                rws__ranks_range(size, r, n, &first, &end);
                assert_int_equal(first, expected);
                for (int i = first; i < end; i++) assert_int_equal(rws__ranks_holder(size, n, i), r);
                expected = end;
            }
            assert_int_equal(expected, n);
        }
}

/* Along the routes of all ranks, everything arrives at the root once, in the order of the ranks. */
static void check_routes(int size, int root, bool few)
{
    int        brought = 0, arrived_at_parent = 0;
    rws_route *route = malloc(sizeof *route + (size_t)size * sizeof(int));
    assert_non_null(route);
    for (int rank = 0; rank < size; rank++) {
        const rws_ranks r = {.rank = rank, .size = size};
        rws__ranks_route(&r, root, few, route);
        assert_true((route->parent < 0) == (rank == root));
        int next = few || rank != root ? rank : 0;
        for (int k = 0; k < route->n; k++) {
            assert_int_equal(route->source[k], next);
            next = rws__ranks_brings(&r, few, route->source[k]);
            if (route->source[k] != rank) brought++;
        }
        if (rank == root) assert_int_equal(next, size);
        arrived_at_parent += route->parent >= 0;
    }
    assert_int_equal(brought, size - 1);
    assert_int_equal(arrived_at_parent, size - 1);
    free(route);
}

static void routes_lead_to_the_root(void **state)
{
    (void)state;
    for (int size = 1; size < 40; size++) {
        check_routes(size, 0, true);
        for (int root = 0; root < size; root++) check_routes(size, root, false);
    }
}

/* ---- particles of a datum in several shards */

static rws_trainer *mixture(const char *method, int shards, int particle_shards, int threads)
{
    rws_trainer     *t;
    rws_error        err = {""};
    const rws_config c = {.model = "gmm",
                          .method = method,
                          .particles = 11,
                          .batch = 13,
                          .shards = shards,
                          .particle_shards = particle_shards,
                          .threads = threads,
                          .seed = 5,
                          .iterations = 100};
    must(rws_trainer_new(&c, NULL, &t, &err), &err);
    return t;
}

static void step(rws_trainer *t, int n)
{
    rws_error err = {""};
    for (int i = 0; i < n; i++) must(rws_trainer_step(t, &err), &err);
}

static float *gradient_of(rws_trainer *t)
{
    rws_error    err = {""};
    const size_t size = rws_trainer_size(t);
    float       *g = malloc(size * sizeof *g);
    assert_non_null(g);
    must(rws_trainer_gradient(t, RWS_TRAIN, 3, g, size, &err), &err);
    return g;
}

/* The draws are the same, and the sums differ only in their order. */
static void cut_particles_give_the_same_gradient(void **state)
{
    (void)state;
    rws_method_info method;
    int             n_methods = 0;
    for (int i = 0; rws_method_at(i, &method); i++) {
        if (strcmp(method.name, "em") == 0) continue; /* it has no particles */
        rws_trainer *whole = mixture(method.name, 1, 1, 1);
        float       *expected = gradient_of(whole);
        const size_t size = rws_trainer_size(whole);
        float        most = 0;
        for (size_t k = 0; k < size; k++) most = fmaxf(most, fabsf(expected[k]));
        assert_true(most > 0);
        const int cuts[][2] = {{1, 2}, {1, 11}, {3, 4}};
        for (int c = 0; c < 3; c++) {
            rws_trainer *cut = mixture(method.name, cuts[c][0], cuts[c][1], 1);
            float       *g = gradient_of(cut);
            for (size_t k = 0; k < size; k++)
                if (!(fabs((double)g[k] - (double)expected[k]) <= 2e-5 * (double)most))
                    fail_msg("%s cut in %d x %d: number %zu is %g, not %g", method.name, cuts[c][0], cuts[c][1], k,
                             (double)g[k], (double)expected[k]);
            free(g);
            rws_trainer_free(cut);
        }
        free(expected);
        rws_trainer_free(whole);
        n_methods++;
    }
    assert_true(n_methods >= 11);
}

static void threads_change_no_bit_of_cut_particles(void **state)
{
    (void)state;
    static const char *const methods[] = {"ww", "ws", "vimco", "nvil", "rebar", "relax", "dww"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        rws_trainer   *one = mixture(methods[m], 2, 3, 1), *four = mixture(methods[m], 2, 3, 4);
        rws_param_view x, y;
        step(one, 20);
        step(four, 20);
        for (int i = 0; rws_trainer_param(one, i, &x) && rws_trainer_param(four, i, &y); i++)
            assert_memory_equal(x.values, y.values, (size_t)(x.rows * x.cols) * sizeof(float));
        rws_trainer_free(one);
        rws_trainer_free(four);
    }
}

static void too_many_cuts_are_refused(void **state)
{
    (void)state;
    rws_trainer     *t;
    rws_error        err = {""};
    const rws_config c = {.model = "gmm", .particles = 4, .particle_shards = 5};
    assert_int_equal(rws_trainer_new(&c, NULL, &t, &err), RWS_BAD_INPUT);
    assert_sentence(&err, "`particle_shards` is at most");
}

/* ---- alone */

static void a_process_that_was_started_alone_is_rank_0_of_1(void **state)
{
    (void)state;
    rws_error err = {""};
    must(rws_ranks_open(&err), &err);
    assert_true(rws_rank() == 0 && rws_n_ranks() == 1 && rws_rank_lost() == -1);
    assert_null(rws__comm_world());
    rws_ranks_close();
}

static void an_mpi_without_a_part_is_refused(void **state)
{
    (void)state;
    rws_error err = {""};
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_RANK", "0", 1);
    /* this program is in the folder of the tests, where no part is */
    if (rws_ranks_open(&err) == RWS_OK) skip();
    assert_sentence(&err, "scripts/setup");
    unsetenv("PMI_SIZE");
    unsetenv("PMI_RANK");
    setenv("SLURM_STEP_NUM_TASKS", "3", 1);
    assert_int_equal(rws_ranks_open(&err), RWS_BAD_INPUT);
    assert_sentence(&err, "--mpi=pmix");
    unsetenv("SLURM_STEP_NUM_TASKS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_do_not_depend_on_ranks),
        cmocka_unit_test(zeros_need_no_memory),
        cmocka_unit_test(every_shard_has_one_holder),
        cmocka_unit_test(routes_lead_to_the_root),
        cmocka_unit_test(cut_particles_give_the_same_gradient),
        cmocka_unit_test(threads_change_no_bit_of_cut_particles),
        cmocka_unit_test(too_many_cuts_are_refused),
        cmocka_unit_test(a_process_that_was_started_alone_is_rank_0_of_1),
        cmocka_unit_test(an_mpi_without_a_part_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
