/* test_nn.c - every layer, run by the engine, against a plain twin in double: values, the gradients of all parameters
 * and derivatives along a direction by central differences of the twin, names and shapes; mistakes.
 *
 * A layer is fed from every level there is: `top` is a parameter (one row for all), `x` a field of the datum times a
 * parameter (so that its gradient shows), the one-hots come from indices in the data, and `z` is drawn by the particle.
 */
#include "nn_twins.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int n_subjects;

/* The subjects of nn_twins_plain.c, then those of nn_twins.c. */
static const subject *subject_at(int i)
{
    return i < n_plain_subjects ? &plain_subjects[i] : &more_subjects[i - n_plain_subjects];
}

/* ---- the program around the layers */

static const float fixed_z[WIDE] = {0.3f, -0.7f, 1.1f}; /* in place of z in passes without sites */

static rws_var draw_z(rws_path *path)
{
    const float zeros[WIDE] = {0};
    return rws_normal(path, "z", rws_constants(path, zeros, WIDE), rws_constant(path, 1));
}

static void program(rws_path *path, void *context)
{
    const net *n = context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    inputs in = {.top = rws_parameter(path, n->top), .word = rws_observed(path, "word")};
    in.x = rws_mul(path, rws_observed(path, "x"), rws_parameter(path, n->scale));
    in.hot = rws_onehot(path, in.word, WORDS);
    in.bit = rws_onehot(path, rws_observed(path, "bit"), BITS);
    in.z = n->whole ? rws_constants(path, fixed_z, WIDE) : draw_z(path);
    const rws_var y = n->subject->run(path, n, &in);
    if (n->whole) {
        rws__path_output(path, 0, y);
        return;
    }
    rws__path_output(path, 0, rws_sum(path, rws_mul(path, y, rws_constants(path, n->mix, n->subject->n_out))));
    for (int i = 0; i < WIDE; i++) rws__path_output(path, 1 + i, rws_slice(path, in.z, i, 1));
    rws__path_side(path, RWS_SIDE_MODEL);
    draw_z(path);
    rws__path_fields_scored(path);
}

static void net_init(net *n, const subject *s)
{
    *n = (net){.subject = s, .setup = {.seed = 5}};
    die d = {71};
    rws_setup_field(&n->setup, "x", WIDE);
    rws_setup_field(&n->setup, "word", 1);
    rws_setup_field(&n->setup, "bit", 1);
    n->scale = rws_setup_param(&n->setup, RWS_THETA, "scale", 1, WIDE, RWS_UNIFORM);
    s->declare(n);
    n->top = rws_setup_param(&n->setup, RWS_THETA, "top", 1, WIDE, RWS_TRUNCATED);
    assert_int_equal(n->setup.status, RWS_OK);
    rws__params_pack(&n->setup.params);
    n->engine = rws__engine_new(&n->setup.params, n->setup.fields, n->setup.n_fields, NULL);
    for (int i = 0; i < DATA * WIDE; i++) n->x[i] = (float)die_between(&d, -2, 2);
    for (int i = 0; i < DATA; i++) n->word[i] = (float)((3 * i + 1) % WORDS), n->bit[i] = (float)(i % BITS);
    for (int i = 0; i < MOST; i++) n->mix[i] = (float)die_between(&d, -1, 1);
    n->theta = malloc(n->setup.params.size * sizeof *n->theta);
    for (size_t i = 0; i < n->setup.params.size; i++) n->theta[i] = (double)n->setup.params.value[i];
}

static void net_release(net *n)
{
    rws__engine_free(n->engine);
    rws__setup_release(&n->setup);
    free(n->theta);
}

static rws_status net_pass(net *n, rws_mode mode, bool scalar, rws_error *err)
{
    const float *fields[] = {n->x, n->word, n->bit};
    n->whole = mode == RWS_COMPUTE;
    const rws_pass pass = {.program = program,
                           .context = n,
                           .mode = mode,
                           .scalar = scalar,
                           .groups = 1u << RWS_THETA | 1u << RWS_PHI,
                           .key = {{1, 2}},
                           .n_data = DATA,
                           .n_particles = n->whole ? 1 : PARTICLES,
                           .fields = fields};
    return rws__engine_forward(n->engine, &pass, err);
}

static void twin_of(const net *n, int datum, const double *z, double *out)
{
    numbers       in = {.word = (int)n->word[datum], .bit = (int)n->bit[datum]};
    const double *scale = values(n, "scale"), *top = values(n, "top");
    for (int i = 0; i < WIDE; i++) {
        in.x[i] = (double)n->x[datum * WIDE + i] * scale[i];
        in.top[i] = top[i];
        in.z[i] = z[i];
    }
    n->subject->twin(n, &in, out);
}

/* What the program hands out as a number, for a row of the table. */
static double mixed(const net *n, const rws_scores *s, int datum, int row)
{
    double out[MOST], total = 0;
    twin_of(n, datum, (double[]){s->out[1][row], s->out[2][row], s->out[3][row]}, out);
    for (int i = 0; i < n->subject->n_out; i++) total += (double)n->mix[i] * out[i];
    return total;
}

/* ---- values and gradients */

static void check_vectors(net *n, bool scalar)
{
    rws_error err;
    int       dim = 0;
    double    want[MOST], z[WIDE];
    for (int i = 0; i < WIDE; i++) z[i] = (double)fixed_z[i];
    if (net_pass(n, RWS_COMPUTE, scalar, &err) != RWS_OK) fail_msg("%s: %s", n->subject->name, err.text);
    const float *got = rws__engine_result(n->engine, &dim);
    assert_int_equal(dim, n->subject->n_out);
    for (int d = 0; d < DATA; d++) {
        twin_of(n, d, z, want);
        for (int j = 0; j < dim; j++)
            if (!near((double)got[d * dim + j], want[j], 1e-5))
                fail_msg("%s: (%d, %d) is %g, not %g", n->subject->name, d, j, (double)got[d * dim + j], want[j]);
    }
}

static void check_gradient(net *n, const rws_scores *s, const float *gradient, unsigned groups)
{
    const rws_params *p = &n->setup.params;
    for (size_t i = 0; i < p->size; i++) {
        const bool   theta = i < p->first[RWS_THETA + 1];
        const double was = n->theta[i], h = 1e-5;
        double       want = 0, scale = 1;
        for (int d = 0; d < s->B && groups >> (theta ? RWS_THETA : RWS_PHI) & 1; d++)
            for (int row = (int)s->start[d]; row < (int)s->start[d + 1]; row++) {
                n->theta[i] = was + h;
                double part = mixed(n, s, d, row);
                n->theta[i] = was - h;
                part = s->coef_out[0][row] * (part - mixed(n, s, d, row)) / (2 * h);
                want += part;
                scale += fabs(part);
            }
        n->theta[i] = was;
        if (!near((double)gradient[i], want, 1e-5 * scale))
            fail_msg("%s, groups %u: gradient %zu of %zu is %g, not %g", n->subject->name, groups, i, p->size,
                     (double)gradient[i], want);
    }
}

static void check_numbers(net *n, bool scalar)
{
    rws_error err;
    if (net_pass(n, RWS_WAKE, scalar, &err) != RWS_OK) fail_msg("%s: %s", n->subject->name, err.text);
    rws_scores *s = rws__engine_scores(n->engine);
    assert_int_equal(s->n, DATA * PARTICLES);
    die d = {73};
    for (int datum = 0; datum < DATA; datum++) {
        assert_int_equal(s->start[datum + 1] - s->start[datum], PARTICLES);
        for (int row = (int)s->start[datum]; row < (int)s->start[datum + 1]; row++) {
            const double want = mixed(n, s, datum, row);
            s->coef_out[0][row] = die_between(&d, -1, 1);
            if (!near(s->out[0][row], want, 1e-5))
                fail_msg("%s: row %d is %g, not %g", n->subject->name, row, s->out[0][row], want);
        }
    }
    for (unsigned groups = 1; groups < 4; groups++) {
        const unsigned mask = (groups & 1) << RWS_THETA | (groups >> 1 & 1) << RWS_PHI;
        float         *gradient = calloc(n->setup.params.size, sizeof *gradient);
        rws__engine_backward(n->engine, mask, gradient, NULL);
        check_gradient(n, s, gradient, mask);
        free(gradient);
    }
}

/* One test for each layer: together and particle by particle, in parts and joined. */
static void layer_equals_its_twin(void **state)
{
    const subject *s = *state;
    net            n;
    net_init(&n, s);
    for (int joined = 0; joined <= s->in_parts; joined++)
        for (int scalar = 0; scalar < 2; scalar++) {
            n.joined = joined;
            check_vectors(&n, scalar);
            check_numbers(&n, scalar);
        }
    net_release(&n);
}

/* ---- directional derivatives, and their gradients: what rebar and relax need of a layer */

/* The derivative of a row's number along a direction, at parameters moved by `by` in place i. */
static double along(net *n, const rws_scores *s, int datum, int row, const double *direction, size_t i, double by)
{
    const double h = 1e-4;
    double       end[2];
    n->theta[i] += by;
    for (int k = 0; k < 2; k++) {
        for (size_t j = 0; j < n->setup.params.size; j++) n->theta[j] += (k ? -2 : 1) * h * direction[j];
        end[k] = mixed(n, s, datum, row);
    }
    for (size_t j = 0; j < n->setup.params.size; j++) n->theta[j] += h * direction[j];
    n->theta[i] -= by;
    return (end[0] - end[1]) / (2 * h);
}

static void check_tangent(net *n, unsigned groups)
{
    enum { SLOT = 4 };
    const rws_params *p = &n->setup.params;
    rws_error         err;
    float            *direction = calloc(p->size, sizeof *direction), *gradient = calloc(p->size, sizeof *gradient);
    double           *moves = calloc(p->size, sizeof *moves);
    die               d = {79};
    for (size_t i = 0; i < p->size; i++) {
        direction[i] =
            (float)die_between(&d, -1, 1); /* the direction is not zero anywhere, but only these groups move */
        moves[i] = groups >> (i < p->first[RWS_THETA + 1] ? RWS_THETA : RWS_PHI) & 1 ? (double)direction[i] : 0;
    }
    assert_int_equal(net_pass(n, RWS_WAKE, false, &err), RWS_OK);
    rws_scores *s = rws__engine_scores(n->engine);
    rws__engine_backward(n->engine, 1u << RWS_PHI, gradient, NULL);
    const rws_status status = rws__engine_tangent(n->engine, 0, SLOT, groups, direction, &err);
    if (n->subject->once) {
        assert_int_equal(status, RWS_BAD_INPUT);
        assert_non_null(strstr(err.text, "second derivative"));
    } else {
        if (status != RWS_OK) fail_msg("%s: %s", n->subject->name, err.text);
        for (int datum = 0; datum < DATA; datum++)
            for (int row = (int)s->start[datum]; row < (int)s->start[datum + 1]; row++) {
                const double want = along(n, s, datum, row, moves, 0, 0);
                if (!near(s->out[SLOT][row], want, 2e-5 * (1 + fabs(want))))
                    fail_msg("%s, groups %u: derivative of row %d is %g, not %g", n->subject->name, groups, row,
                             s->out[SLOT][row], want);
                s->coef_out[SLOT][row] = die_between(&d, -1, 1);
            }
        memset(gradient, 0, p->size * sizeof *gradient);
        rws__engine_backward(n->engine, 1u << RWS_THETA | 1u << RWS_PHI, gradient, NULL);
        for (size_t i = 0; i < p->size; i++) {
            double want = 0, scale = 1;
            for (int datum = 0; datum < DATA; datum++)
                for (int row = (int)s->start[datum]; row < (int)s->start[datum + 1]; row++) {
                    const double up = along(n, s, datum, row, moves, i, 1e-4),
                                 down = along(n, s, datum, row, moves, i, -1e-4);
                    want += s->coef_out[SLOT][row] * (up - down) / 2e-4;
                    scale += fabs(s->coef_out[SLOT][row] * (up - down) / 2e-4);
                }
            if (!near((double)gradient[i], want, 2e-5 * scale))
                fail_msg("%s, groups %u: second derivative %zu of %zu is %g, not %g", n->subject->name, groups, i,
                         p->size, (double)gradient[i], want);
        }
    }
    free(direction), free(gradient), free(moves);
}

static void layer_has_directional_derivatives(void **state)
{
    const subject *s = *state;
    net            n;
    net_init(&n, s);
    for (int joined = 0; joined <= s->in_parts; joined++)
        for (unsigned groups = 1; groups < 4; groups++) {
            n.joined = joined;
            check_tangent(&n, (groups & 1) << RWS_THETA | (groups >> 1 & 1) << RWS_PHI);
        }
    net_release(&n);
}

static void parameters_have_pytorch_names_and_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < n_subjects; i++) {
        net n;
        int n_named = 0;
        net_init(&n, subject_at(i));
        for (; n_named < N_PARAMS && subject_at(i)->params[n_named].name; n_named++) {
            rws_param *p = NULL;
            for (int j = 0; j < n.setup.params.n; j++)
                if (strcmp(n.setup.params.list[j]->name, subject_at(i)->params[n_named].name) == 0)
                    p = n.setup.params.list[j];
            if (!p) fail_msg("%s has no parameter \"%s\"", subject_at(i)->name, subject_at(i)->params[n_named].name);
            assert_int_equal(p->rows, subject_at(i)->params[n_named].rows);
            assert_int_equal(p->cols, subject_at(i)->params[n_named].cols);
            assert_int_equal(p->group, RWS_PHI);
        }
        assert_int_equal(n.setup.params.n, n_named + 2); /* besides these the net has `scale` and `top` */
        net_release(&n);
    }
}

static void every_kind_is_tested(void **state)
{
    (void)state;
    for (int k = 0; rws_layer_kinds[k]; k++) {
        const char *kind = rws_layer_kinds[k]->name;
        bool        found = false;
        for (int i = 0; i < n_subjects; i++) found |= strncmp(subject_at(i)->name, kind, strlen(kind)) == 0;
        if (!found) fail_msg("no layer of kind %s is tested", kind);
        for (int i = 0; i < k; i++) assert_string_not_equal(rws_layer_kinds[i]->name, kind);
    }
}

/* ---- mistakes are messages that name the layer */

static rws_var too_wide(rws_path *path, const net *n, const inputs *in)
{
    return rws_linear_parts(path, n->layer, (rws_var[]){in->x, in->hot}, 2);
}

static rws_var another_kind(rws_path *path, const net *n, const inputs *in)
{
    return rws_mlp(path, n->layer, in->x);
}

static rws_var short_state(rws_path *path, const net *n, const inputs *in)
{
    return rws_rnn(path, n->layer, (rws_var[]){in->x, in->hot}, 2, in->hot);
}

static rws_var short_gru_state(rws_path *path, const net *n, const inputs *in)
{
    return rws_gru(path, n->layer, (rws_var[]){in->x, in->hot}, 2, in->hot);
}

static rws_var short_memory(rws_path *path, const net *n, const inputs *in)
{
    rws_var c = in->hot;
    return rws_lstm(path, n->layer, (rws_var[]){in->x, in->hot}, 2, in->top, &c);
}

static rws_var no_memory(rws_path *path, const net *n, const inputs *in)
{
    return rws_lstm(path, n->layer, (rws_var[]){in->x, in->hot}, 2, in->top, NULL);
}

static rws_var long_items(rws_path *path, const net *n, const inputs *in)
{
    return rws_bidirectional(path, n->layer, (rws_var[]){in->x, in->hot}, 2, NULL);
}

static rws_var long_query(rws_path *path, const net *n, const inputs *in)
{
    return rws_attention(path, n->layer, in->hot, &in->x, 1);
}

static rws_var broken_items(rws_path *path, const net *n, const inputs *in)
{
    return rws_attention(path, n->layer, in->x, (rws_var[]){in->x, in->hot}, 2);
}

static rws_var broken_set(rws_path *path, const net *n, const inputs *in)
{
    return rws_set_encoder(path, n->layer, (rws_var[]){in->x, in->hot}, 2);
}

static rws_var below_none(rws_path *path, const net *n, const inputs *in)
{
    return rws_set_encoder(path, n->layer, &in->x, -1);
}

static rws_var vast_set(rws_path *path, const net *n, const inputs *in)
{
    (void)in;
    const rws_var many = rws_zeros(path, 1 << 20);
    return rws_set_encoder(path, n->layer, &many, 1);
}

static rws_var long_norm(rws_path *path, const net *n, const inputs *in)
{
    return rws_layer_norm(path, n->layer, in->hot);
}

static rws_var small_picture(rws_path *path, const net *n, const inputs *in)
{
    return rws_conv2d(path, n->layer, in->x);
}

static void gru_reader_declare(net *n)
{
    n->layer = rws_setup_bidirectional(&n->setup, RWS_PHI, "net", RWS_GRU, WIDE, WIDE);
}

static void lstm_declare(net *n)
{
    n->layer = rws_setup_lstm(&n->setup, RWS_PHI, "net", WIDE + WORDS, WIDE);
}

static void attention_declare(net *n)
{
    n->layer = rws_setup_attention(&n->setup, RWS_PHI, "net", WIDE, 1, WIDE);
}

static void set_declare(net *n)
{
    n->layer = rws_setup_set_encoder(&n->setup, RWS_PHI, "net", RWS_TANH, RWS_SUM, (int[]){WIDE, 2}, 2);
}

static void wide_set_declare(net *n)
{
    n->layer = rws_setup_set_encoder(&n->setup, RWS_PHI, "net", RWS_TANH, RWS_SUM, (int[]){1, 4096}, 2);
}

static void norm_declare(net *n)
{
    n->layer = rws_setup_layer_norm(&n->setup, RWS_PHI, "net", WIDE);
}

static void conv_declare(net *n)
{
    n->layer = rws_setup_conv2d(&n->setup, RWS_PHI, "net",
                                &(rws_conv){.n_in = 1, .n_out = 1, .rows = 2, .cols = 2, .kernel = 1});
}

static void mistakes_name_the_layer(void **state)
{
    (void)state;
    static const subject wrong[] = {
        {"a short memory", WIDE, lstm_declare, short_memory, NULL, false, false, {{0}}},
        {"no memory", WIDE, lstm_declare, no_memory, NULL, false, false, {{0}}},
        {"long items", WIDE, gru_reader_declare, long_items, NULL, false, false, {{0}}},
        {"a long query", WIDE, attention_declare, long_query, NULL, false, false, {{0}}},
        {"broken items", WIDE, attention_declare, broken_items, NULL, false, false, {{0}}},
        {"a broken set", 2, set_declare, broken_set, NULL, false, false, {{0}}},
        {"fewer items than none", 2, set_declare, below_none, NULL, false, false, {{0}}},
        {"too many items", 4096, wide_set_declare, vast_set, NULL, false, false, {{0}}},
        {"a long input of a norm", WIDE, norm_declare, long_norm, NULL, false, false, {{0}}},
        {"a small picture", 4, conv_declare, small_picture, NULL, false, false, {{0}}},
        {"too wide", 2, linear_declare, too_wide, NULL, false, false, {{0}}},
        {"another kind", 2, linear_declare, another_kind, NULL, false, false, {{0}}},
        {"a short state", WIDE, rnn_declare, short_state, NULL, false, false, {{0}}},
        {"a short state of a gru", WIDE, gru_declare, short_gru_state, NULL, false, false, {{0}}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        net       n;
        rws_error err = {{0}};
        net_init(&n, &wrong[i]);
        assert_int_equal(net_pass(&n, RWS_WAKE, false, &err), RWS_BAD_INPUT);
        if (!strstr(err.text, "\"net\""))
            fail_msg("%s: the message does not name the layer: %s", wrong[i].name, err.text);
        net_release(&n);
    }
}

/* ---- a number that is not an index */

typedef enum { CONSTANT, FROM_DATA, COMPUTED, N_SOURCES } index_source;

typedef struct {
    rws_setup    setup;
    rws_layer   *table, *linear;
    const char  *function;
    index_source source;
    float        index;
    bool         guarded;        /* a branch keeps the index away from the function */
    bool         needed_at_once; /* a branch needs the value; else nothing does before the end of the pass */
} index_case;

static rws_var index_of(rws_path *path, const index_case *c)
{
    if (c->source == CONSTANT) return rws_constant(path, c->index);
    const rws_var i = rws_observed(path, "index");
    return c->source == FROM_DATA ? i : rws_affine(path, rws_affine(path, i, 2, 2), 0.5f, -1);
}

static rws_var use_index(rws_path *path, const index_case *c, rws_var index)
{
    const float five[] = {1, 2, 3, 4, 5};
    if (strcmp(c->function, "rws_pick") == 0) return rws_pick(path, rws_constants(path, five, 5), index);
    if (strcmp(c->function, "rws_embedding") == 0) return rws_sum(path, rws_embedding(path, c->table, index));
    const rws_var hot = rws_onehot(path, index, 5);
    return c->linear ? rws_linear(path, c->linear, hot) : rws_sum(path, hot);
}

static void draw_twice(rws_path *path)
{
    for (int i = 0; i < 2; i++) rws_normal(path, "z", rws_constant(path, 0), rws_constant(path, 1));
}

static void index_program(rws_path *path, void *context)
{
    const index_case *c = context;
    rws__path_side(path, RWS_SIDE_GUIDE);
    const rws_var index = index_of(path, c), limit = rws_constant(path, 4.5f);
    draw_twice(path);
    if (c->guarded && rws_branch(path, rws_greater(path, index, limit))) {
        rws__path_output(path, 0, rws_constant(path, -1));
    } else {
        const rws_var v = use_index(path, c, index);
        if (c->needed_at_once) rws_branch(path, rws_greater(path, v, limit));
        rws__path_output(path, 0, v);
    }
    rws__path_side(path, RWS_SIDE_MODEL);
    draw_twice(path);
    rws__path_fields_scored(path);
}

static rws_status index_pass(index_case *c, bool scalar, rws_error *err)
{
    const float      indices[] = {0, 4, c->source == CONSTANT ? 0 : c->index, 1}, *fields[] = {indices};
    rws_engine      *e = rws__engine_new(&c->setup.params, c->setup.fields, c->setup.n_fields, NULL);
    const rws_pass   pass = {.program = index_program,
                             .context = c,
                             .scalar = scalar,
                             .groups = 1u << RWS_PHI,
                             .n_data = 4,
                             .n_particles = 2,
                             .fields = fields};
    const rws_status status = rws__engine_forward(e, &pass, err);
    if (status == RWS_OK) {
        rws_scores *s = rws__engine_scores(e);
        float      *gradient = calloc(c->setup.params.size + 1, sizeof *gradient);
        for (int i = 0; i < s->n; i++) s->coef_out[0][i] = 1;
        rws__engine_backward(e, 1u << RWS_PHI, gradient, NULL);
        for (size_t i = 0; i < c->setup.params.size; i++) assert_true(isfinite(gradient[i]));
        free(gradient);
    }
    rws__engine_free(e);
    return status;
}

static void index_init(index_case *c, const char *function, bool linear)
{
    *c = (index_case){.setup = {.seed = 3}, .function = function};
    rws_setup_field(&c->setup, "index", 1);
    c->table = rws_setup_embedding(&c->setup, RWS_PHI, "table", 5, 3);
    if (linear) c->linear = rws_setup_linear(&c->setup, RWS_PHI, "net", 5, 1, RWS_UNIFORM);
    rws__params_pack(&c->setup.params);
}

static void an_index_out_of_range_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *function;
        bool        linear;
    } users[] = {{"rws_pick", false}, {"rws_onehot", false}, {"rws_onehot", true}, {"rws_embedding", false}};
    static const struct {
        float       index;
        const char *text;
    } wrong[] = {{7, "7"}, {5, "5"}, {-1, "-1"}, {2.5f, "2.5"}, {1e30f, "1e+30"}};
    for (int u = 0; u < COUNT(users); u++)
        for (int i = 0; i < COUNT(wrong) * N_SOURCES * 4; i++) {
            const int  w = i / (4 * N_SOURCES);
            index_case c;
            index_init(&c, users[u].function, users[u].linear);
            c.source = (index_source)(i / 4 % N_SOURCES);
            c.index = wrong[w].index;
            if (c.source != CONSTANT && !isfinite(c.index)) continue; /* such data are refused before */
            c.needed_at_once = i & 1;
            rws_error err = {{0}};
            char      message[200];
            snprintf(
                message, sizeof message,
                "The index of %s after site \"z\" (visit 1) in the guide is %s; it must be a whole number from 0 to 4.",
                c.function, wrong[w].text);
            const rws_status status = index_pass(&c, i & 2, &err);
            assert_string_equal(err.text, message);
            assert_int_equal(status, RWS_BAD_INPUT);
            rws__setup_release(&c.setup);
        }
}

/* An index that is out of range only where the program does not use it is no mistake, and adds nothing to gradients. */
static void an_index_may_be_guarded(void **state)
{
    (void)state;
    const char *const functions[] = {"rws_pick", "rws_onehot", "rws_onehot", "rws_embedding"};
    for (int i = 0; i < COUNT(functions) * 4; i++) {
        index_case c;
        rws_error  err = {{0}};
        index_init(&c, functions[i / 4], i / 4 == 2);
        c.source = i & 1 ? COMPUTED : FROM_DATA;
        c.index = 7;
        c.guarded = true;
        if (index_pass(&c, i & 2, &err) != RWS_OK) fail_msg("%s", err.text);
        c.guarded = false;
        assert_int_equal(index_pass(&c, i & 2, &err), RWS_BAD_INPUT);
        rws__setup_release(&c.setup);
    }
}

static void biases_can_be_set(void **state)
{
    (void)state;
    rws_setup  s = {.seed = 1};
    rws_layer *linear = rws_setup_linear(&s, RWS_PHI, "linear", 2, 3, RWS_ZERO);
    rws_layer *net = rws_setup_mlp(&s, RWS_PHI, "net", RWS_TANH, RWS_ZERO, (int[]){2, 5, 4}, 3);
    assert_string_equal(rws_layer_bias(linear)->name, "linear.bias");
    assert_string_equal(rws_layer_bias(net)->name, "net.2.bias");
    assert_null(rws_layer_bias(rws_setup_gru(&s, RWS_PHI, "gru", 2, 3)));
    rws__setup_release(&s);
}

static void declarations_that_cannot_be(void **state)
{
    (void)state;
    rws_setup s = {.seed = 1};
    rws_setup_linear(&s, RWS_PHI, "twice", 2, 2, RWS_ZERO);
    assert_int_equal(s.status, RWS_OK);
    rws_setup_linear(&s, RWS_PHI, "twice", 2, 2, RWS_ZERO);
    assert_int_equal(s.status, RWS_BAD_INPUT);
    assert_non_null(strstr(s.error.text, "twice.weight"));
    rws__setup_release(&s);

    rws_setup single = {.seed = 1};
    rws_setup_mlp(&single, RWS_PHI, "single", RWS_TANH, RWS_ZERO, (int[]){3}, 1);
    assert_int_equal(single.status, RWS_BAD_INPUT);
    assert_non_null(strstr(single.error.text, "\"single\""));
    rws__setup_release(&single);

    static const struct {
        rws_conv    how;
        const char *message;
    } convs[] = {
        {{.n_in = 0, .n_out = 1, .rows = 4, .cols = 4, .kernel = 3}, "channels"},
        {{.n_in = 1, .n_out = 1, .rows = 0, .cols = 4, .kernel = 3}, "rows and columns"},
        {{.n_in = 1, .n_out = 1, .rows = 4, .cols = 4, .kernel = 0}, "a kernel and a stride of 1 to 127"},
        {{.n_in = 1, .n_out = 1, .rows = 4, .cols = 4, .kernel = 3, .stride = -1}, "a kernel and a stride of 1 to 127"},
        {{.n_in = 1, .n_out = 1, .rows = 4, .cols = 4, .kernel = 3, .padding = -1}, "a padding of 0 to 127"},
        {{.n_in = 1, .n_out = 1, .rows = 4, .cols = 4, .kernel = 3, .output_padding = 1}, "no output padding"},
        {{.n_in = 1, .n_out = 1, .rows = 2, .cols = 4, .kernel = 3}, "that its kernel fits into"},
        {{.n_in = 60000, .n_out = 1, .rows = 4000, .cols = 4000, .kernel = 1}, "fewer numbers"},
    };
    for (int i = 0; i <= COUNT(convs); i++) {
        rws_setup bad = {.seed = 1};
        assert_non_null(rws_setup_conv2d(&bad, RWS_PHI, "bad", i < COUNT(convs) ? &convs[i].how : NULL));
        assert_int_equal(bad.status, RWS_BAD_INPUT);
        if (!strstr(bad.error.text, i < COUNT(convs) ? convs[i].message : "not NULL") ||
            !strstr(bad.error.text, "The conv2d \"bad\" takes"))
            fail_msg("conv %d: %s", i, bad.error.text);
        rws__setup_release(&bad);
    }
    for (int i = 0; i < 8; i++) {
        rws_setup bad = {.seed = 1};
        const int *volatile nothing = NULL; /* which the compiler would warn of */
        switch (i) {
        case 0: rws_setup_attention(&bad, RWS_PHI, "bad", 6, 4, 6); break;
        case 1: rws_setup_attention(&bad, RWS_PHI, "bad", 6, 0, 6); break;
        case 2: rws_setup_bidirectional(&bad, RWS_PHI, "bad", (rws_recurrent)9, 2, 2); break;
        case 3: rws_setup_set_encoder(&bad, RWS_PHI, "bad", RWS_TANH, RWS_SUM, (int[]){3}, 1); break;
        case 4: rws_setup_set_encoder(&bad, RWS_PHI, "bad", RWS_TANH, (rws_pooling)3, (int[]){3, 2}, 2); break;
        case 5: rws_setup_residual_mlp(&bad, RWS_PHI, "bad", RWS_TANH, 3, 4, 0, 2); break;
        case 6: rws_setup_mlp(&bad, RWS_PHI, "bad", RWS_TANH, RWS_ZERO, nothing, 3); break;
        default:
            rws_setup_conv_transpose2d(
                &bad, RWS_PHI, "bad",
                &(rws_conv){
                    .n_in = 1, .n_out = 1, .rows = 4, .cols = 4, .kernel = 3, .stride = 2, .output_padding = 2});
        }
        assert_int_equal(bad.status, RWS_BAD_INPUT);
        if (!strstr(bad.error.text, "\"bad\"")) fail_msg("declaration %d: %s", i, bad.error.text);
        rws__setup_release(&bad);
    }

    rws_setup empty = {.seed = 1};
    rws_setup_linear(&empty, RWS_PHI, "empty", 0, 2, RWS_ZERO);
    assert_int_equal(empty.status, RWS_BAD_INPUT);
    rws__setup_release(&empty);
}

int main(void)
{
    enum { N_OWN = 7 };
    struct CMUnitTest tests[N_OWN + 2 * MAX_SUBJECTS] = {
        cmocka_unit_test(every_kind_is_tested),    cmocka_unit_test(parameters_have_pytorch_names_and_shapes),
        cmocka_unit_test(mistakes_name_the_layer), cmocka_unit_test(declarations_that_cannot_be),
        cmocka_unit_test(biases_can_be_set),       cmocka_unit_test(an_index_out_of_range_is_named),
        cmocka_unit_test(an_index_may_be_guarded),
    };
    size_t n = N_OWN;
    n_subjects = n_plain_subjects + n_more_subjects;
    assert(n_subjects <= MAX_SUBJECTS);
    static char second[MAX_SUBJECTS][60];
    for (int i = 0; i < n_subjects; i++) {
        tests[n++] = (struct CMUnitTest){subject_at(i)->name, layer_equals_its_twin, NULL, NULL, (void *)subject_at(i)};
        snprintf(second[i], sizeof second[i], "%s, along a direction", subject_at(i)->name);
        tests[n++] =
            (struct CMUnitTest){second[i], layer_has_directional_derivatives, NULL, NULL, (void *)subject_at(i)};
    }
    return _cmocka_run_group_tests("nn", tests, n, NULL, NULL);
}
