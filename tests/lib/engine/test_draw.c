/* test_draw.c - draws of an index: vectors against their plain twins, and all widths and numbers of particles against
 * particles that are drawn one by one. */
#include "support.h"

#include "engine/engine.h"
#include "engine/outcomes.h"

#include <string.h>

/* ---- vectors */

static void vectors_of_probabilities(void **state)
{
    (void)state;
    const float  p[8] = {0.5f, 0, 1e-9f, 2, 0.25f, 1, 3, 7};
    const rws_i8 odd = {INT32_MIN, -1, 0, 1, INT32_MAX, -5, 3, 0};
    for (int n = -9; n < 17; n++) {
        const rws_v8 a = load8(p, n < 8 ? n : 8), b = plain_load8(p, n);
        assert_memory_equal(&a, &b, sizeof a);
    }
    assert_int_equal(bits8(odd), plain_bits8(odd));
    assert_int_equal(bits8(odd), 1 | 1 << 1 | 1 << 5);
    for (int x = -32768; x < 33500; x += 8) {
        const rws_i8 v = {x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7};
        const h8     a = halves8(v), b = plain_halves8(v);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

typedef struct {
    uint32_t up[32], count[32], category[32];
    float    value[32];
} room;

static void rows_of_outcomes(void **state)
{
    (void)state;
    static uint64_t pack[256];
    outcomes_pack(pack);
    for (int bits = 0; bits < 256; bits++) {
        room     a, b;
        outcomes fast = {a.up, a.count, a.category, a.value, 3}, plain = {b.up, b.count, b.category, b.value, 3};
        rws_i8   count = {0};
        for (int j = 0; j < 8; j++) count[j] = bits >> j & 1 ? 1 + j * 70000 : 0;
        list8(&fast, count, 9, 16, pack);
        plain_list8(&plain, count, 9, 16);
        assert_int_equal(fast.n, plain.n);
        const size_t size = (fast.n - 3) * sizeof(uint32_t);
        assert_memory_equal(a.up + 3, b.up + 3, size);
        assert_memory_equal(a.count + 3, b.count + 3, size);
        assert_memory_equal(a.category + 3, b.category + 3, size);
        assert_memory_equal(a.value + 3, b.value + 3, size);
    }
}

/* ---- draws */

enum { B = 3, WIDEST = 1000, MOST = 300 };

/* A choice of so many, some of them rare or impossible, whose probabilities depend on the datum; then a second one, whose
 * rows are no neighbours. */
static void program(rws_path *path, void *n_categories)
{
    const int n = *(const int *)n_categories;
    float     a[WIDEST], b[WIDEST];
    for (int c = 0; c < n; c++) {
        a[c] = c % 7 == 3 && n > 4 ? -INFINITY : (float)((c * 37 + 11) % 17) / 3;
        b[c] = (float)((c * 29 + 5) % 13) / 4;
    }
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var x = rws_observed(path, "x");
    rws_var       z[2];
    z[0] = rws_categorical(path, "z",
                           rws_add(path, rws_constants(path, a, n), rws_mul(path, rws_constants(path, b, n), x)));
    z[1] = rws_categorical(path, "y", rws_mul(path, rws_constants(path, b, n), rws_add(path, x, z[0])));
    rws__path_side(path, RWS_SIDE_MODEL);
    rws_categorical(path, "z", rws_constants(path, b, n));
    rws_categorical(path, "y", rws_constants(path, a, n));
    rws__path_fields_scored(path);
    rws__path_side(path, RWS_SIDE_NONE);
    for (int i = 0; i < 2; i++) rws__path_output(path, i, z[i]);
}

/* Adds up how many particles of each datum took each pair of categories, and a checksum of the pairs. */
static uint64_t take(rws_engine *e, int n_categories, int K, bool scalar)
{
    static const float x[B] = {0, 0.7f, -1.5f}, *const fields[] = {x};
    rws_error      err;
    const rws_pass pass = {.program = program,
                           .context = &n_categories,
                           .n_data = B,
                           .n_particles = K,
                           .fields = fields,
                           .scalar = scalar,
                           .key = rws__key_for(3, (uint64_t)n_categories, RWS_KEY_WAKE, 0)};
    if (rws__engine_forward(e, &pass, &err) != RWS_OK) fail_msg("%d of %d: %s", K, n_categories, err.text);
    const rws_scores *s = rws__engine_scores(e);
    uint64_t          sum = 0, n = 0;
    for (int d = 0; d < B; d++)
        for (uint32_t i = s->start[d]; i < s->start[d + 1]; i++) {
            const uint64_t pair = (uint64_t)s->out[0][i] * WIDEST + (uint64_t)s->out[1][i] + (uint64_t)d * 7919;
            sum += s->count[i] * (pair * pair * 2654435761u + 12345) * (pair + 1);
            n += s->count[i];
        }
    assert_int_equal(n, B * K);
    return sum;
}

static void widths_and_particles(void **state)
{
    (void)state;
    static const int numbers[] = {1, 5, 20, 127, 128, MOST};
    const rws_params none = {0};
    const rws_field  field = {"x", 1};
    rws_engine      *e = rws__engine_new(&none, &field, 1, NULL);
    for (int n = 1; n <= WIDEST; n += n < 40 ? 1 : n)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (take(e, n, numbers[k], false) != take(e, n, numbers[k], true))
                fail_msg("%d particles drew other categories of %d than one by one", numbers[k], n);
    rws__engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_probabilities),
        cmocka_unit_test(rows_of_outcomes),
        cmocka_unit_test(widths_and_particles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
