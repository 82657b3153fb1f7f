/* refine.c - two kernels that leave the posterior p(z | x) as it is, of all chains in one pass of the engine.
 *
 * Iterated sampling importance resampling (Andrieu, Lee and Vihola, 2018; i-SIR): the guide proposes M traces, and the chain goes
 * to one of these or stays, each with a probability in proportion to its weight p(z, x) / q(z | x).
 *
 * Single-site Metropolis-Hastings (Wingate, Stuhlmueller and Goodman, 2011): one of the n choices of z is drawn again by the
 * guide; z' takes over all other choices that its program still visits, and draws what is new.
 *
 *     z    a b c d              b is drawn again as B, and the program then visits e in the place of d
 *     z'   a B c e              forward q(B | a) q(e | a B c),   reverse q(b | a) q(d | a b c)
 *
 *     accepted with probability min(1, p(z', x) reverse n / (p(z, x) forward n'))
 *
 * A choice that both visit, but whose value z' could not take over, is not reversible: such a z' is refused. Choices that the
 * question gives stay, and z' must visit them. */
#include "ask/refine.h"

#include "ask/ask.h"
#include "base/error.h"
#include "estimator/weights.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000 /* particles of a pass about one datum, unless the model says fewer */

/* ---- life */

void rws__chains_release(rws_chains *c)
{
    for (int i = 0; i < c->n; i++) {
        if (c->now) rws__arena_free(&c->now[i].memory);
        if (c->next) rws__arena_free(&c->next[i].memory);
    }
    for (int f = 0; c->fields && f < c->program->setup.n_fields; f++) free(c->fields[f]);
    free(c->fields);
    free(c->now);
    free(c->next);
    free(c->log_total);
    free(c->given);
    free(c->given_start);
    free(c->picked);
    *c = (rws_chains){0};
}

/* A copy of the datum for each chain. */
static bool copy_datum(rws_chains *c, float *const *fields)
{
    c->fields = calloc((size_t)c->program->setup.n_fields + 1, sizeof *c->fields);
    for (int f = 0; c->fields && f < c->program->setup.n_fields; f++) {
        const size_t dim = (size_t)c->program->setup.fields[f].dim;
        if (!(c->fields[f] = malloc((size_t)c->n * dim * sizeof(float)))) return false;
        for (int i = 0; i < c->n; i++) memcpy(c->fields[f] + (size_t)i * dim, fields[f], dim * sizeof(float));
    }
    return c->fields != NULL;
}

rws_status rws__chains_begin(rws_chains *c, const rws_program *p, rws_engine *e, const rws_question *q,
                             float *const *fields, int n, int n_proposals, uint32_t number, rws_error *err)
{
    *c = (rws_chains){.program = p, .engine = e, .question = q, .n = n, .n_proposals = n_proposals};
    c->random = rws__random_new(rws__key_for(q->seed, p->iteration, RWS_KEY_TEST, RWS_TEST_REFINE), number);
    c->now = calloc((size_t)n, sizeof *c->now);
    c->next = calloc((size_t)n, sizeof *c->next);
    c->log_total = calloc((size_t)n, sizeof *c->log_total);
    c->given_start = calloc((size_t)n + 1, sizeof *c->given_start);
    c->picked = calloc((size_t)n, sizeof *c->picked);
    if (!c->now || !c->next || !c->log_total || !c->given_start || !c->picked || !copy_datum(c, fields))
        return rws_no_memory(err, "chains");
    for (int i = 0; i < n; i++) c->now[i].log_p = -INFINITY;
    return RWS_OK;
}

/* ---- states */

static bool same_place(const rws_choice *x, const rws_choice *y)
{
    return x->visit == y->visit && strcmp(x->site, y->site) == 0;
}

static bool is_given(const rws_question *q, const rws_choice *c)
{
    for (int i = 0; i < q->n_given; i++)
        if (same_place(&q->given[i], c)) return true;
    return false;
}

/* Reads row `row` of the last pass into `to`. */
static rws_status read_state(rws_chains *c, int row, rws_state *to, rws_error *err)
{
    rws_arena *memory = &to->memory;
    rws__arena_reset(memory);
    to->log_p = rws__engine_scores(c->engine)->log_p[row];
    to->log_q = to->log_given = 0;
    to->n_free = 0;
    to->reports = rws__reports_of_row(memory, c->engine, row, &to->n_reports);
    rws_choice *choices = (rws_choice *)rws__choices_of_row(memory, c->engine, row, &to->n_choices);
    double     *log_q = choices ? RWS_TRY_NEW(memory, double, to->n_choices + 1) : NULL;
    if (!to->reports || !log_q || rws__engine_log_q(c->engine, row, to->n_choices, log_q) != RWS_OK)
        return rws_no_memory(err, "the states of chains");
    for (int i = 0; i < to->n_choices; i++) {
        choices[i].given = is_given(c->question, &choices[i]);
        *(choices[i].given ? &to->log_given : &to->log_q) += log_q[i];
        to->n_free += !choices[i].given;
    }
    to->choices = choices;
    to->log_q_of = log_q;
    return RWS_OK;
}

static void go(rws_chains *c, int i)
{
    const rws_state was = c->now[i];
    c->now[i] = c->next[i];
    c->now[i].number = was.number + 1;
    c->next[i] = was;
}

/* A pass with draws of its own. */
static rws_pass pass_of(rws_chains *c, int n_particles)
{
    const uint64_t high = rws_random_below(&c->random, UINT32_MAX), low = rws_random_below(&c->random, UINT32_MAX);
    rws_pass       pass =
        rws__program_question(c->program, (const float *const *)c->fields, high << 32 | low, 0, n_particles);
    pass.n_data = c->n;
    pass.asked = pass.choices = true;
    return pass;
}

static rws_status forward(rws_chains *c, const rws_pass *pass, rws_error *err)
{
    RWS_TRY(rws__engine_forward(c->engine, pass, err));
    if (!rws__engine_scores(c->engine)->sums) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "Answers are not refined where a site is summed: its values have no chain.");
}

/* ---- i-SIR */

/* Goes to a row of the pass with its share of the weights so far, of which log_total has the sum. */
static rws_status choose_row(rws_chains *c, int i, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(c->engine);
    int               chosen = -1;
    for (int row = (int)s->start[i]; row < (int)s->start[i + 1]; row++) {
        const double log_weight = s->log_p[row] - s->log_q[row] + log(s->count[row]);
        if (log_weight == -INFINITY) continue;
        c->log_total[i] = rws__log_add(c->log_total[i], log_weight);
        if (rws_random_uniform(&c->random) < exp(log_weight - c->log_total[i])) chosen = row;
    }
    if (chosen < 0) return RWS_OK;
    RWS_TRY(read_state(c, chosen, &c->next[i], err));
    go(c, i);
    return RWS_OK;
}

rws_status rws__chains_resample(rws_chains *c, rws_error *err)
{
    const int limit = rws__program_at_once(c->program, AT_ONCE) / c->n, most = limit > 0 ? limit : 1;
    for (int i = 0; i < c->n; i++) c->log_total[i] = c->now[i].log_p - c->now[i].log_q;
    for (int k = 0; k < c->n_proposals; k += most) {
        rws_pass pass = pass_of(c, c->n_proposals - k < most ? c->n_proposals - k : most);
        pass.given = c->question->given;
        pass.n_given = c->question->n_given;
        RWS_TRY(forward(c, &pass, err));
        for (int i = 0; i < c->n; i++) RWS_TRY(choose_row(c, i, err));
    }
    return RWS_OK;
}

/* ---- Metropolis */

static bool make_room(rws_chains *c)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) n += c->now[i].n_choices;
    if (n <= c->given_capacity) return true;
    rws_choice *longer = realloc(c->given, 2 * (size_t)n * sizeof *longer);
    if (!longer) return false;
    c->given = longer;
    c->given_capacity = 2 * n;
    return true;
}

/* Picks a choice of the chain, and gives all others. A chain that is nowhere has its pass like the others, for nothing. */
static void pick(rws_chains *c, int i)
{
    const rws_state *s = &c->now[i];
    uint32_t         at = c->given_start[i];
    int              left = s->n_free ? (int)rws_random_below(&c->random, (uint32_t)s->n_free) : -1;
    for (int k = 0; k < s->n_choices && s->log_p > -INFINITY; k++) {
        if (!s->choices[k].given && left-- == 0) c->picked[i] = (uint32_t)k;
        else c->given[at++] = s->choices[k];
    }
    c->given_start[i + 1] = at;
}

/* The number of the choice of z' at this place, which probably has number `near`; -1: it has none. */
static int find(const rws_state *s, const rws_choice *c, int near)
{
    for (int i = 0; i < s->n_choices; i++) {
        const int k = (near + i) % s->n_choices;
        if (same_place(&s->choices[k], c)) return k;
    }
    return -1;
}

static bool same_value(const rws_choice *x, const rws_choice *y)
{
    return x->dim == y->dim && memcmp(x->value, y->value, (size_t)x->dim * sizeof *x->value) == 0;
}

/* log q of what `from` has to draw again to come from `to`, the picked choice among it; NAN: it cannot. */
static double log_reverse(const rws_state *from, const rws_state *to, int picked)
{
    double sum = 0;
    for (int k = 0; k < from->n_choices; k++) {
        const rws_choice *choice = &from->choices[k];
        const int         there = find(to, choice, k);
        if (choice->given && there < 0) return NAN;
        if (k == picked || there < 0) sum += from->log_q_of[k];
        else if (!same_value(choice, &to->choices[there])) return NAN;
    }
    return sum;
}

static rws_status decide(rws_chains *c, int i, rws_error *err)
{
    const rws_scores *s = rws__engine_scores(c->engine);
    const int         row = (int)s->start[i];
    rws_state        *now = &c->now[i], *next = &c->next[i];
    if (s->log_p[row] == -INFINITY || now->log_p == -INFINITY) return RWS_OK;
    RWS_TRY(read_state(c, row, next, err));
    const double ratio = next->log_p - now->log_p + log_reverse(now, next, (int)c->picked[i]) - s->log_q[row] +
                         log((double)now->n_free / next->n_free);
    if (log(rws_random_uniform(&c->random)) < ratio) go(c, i);
    return RWS_OK;
}

rws_status rws__chains_move(rws_chains *c, rws_error *err)
{
    int most = 0;
    for (int i = 0; i < c->n; i++) most = c->now[i].n_free > most ? c->now[i].n_free : most;
    if (!most) return RWS_OK;
    if (!make_room(c)) return rws_no_memory(err, "chains");
    for (int i = 0; i < c->n; i++) pick(c, i);
    rws_pass pass = pass_of(c, 1);
    pass.given = c->given;
    pass.given_start = c->given_start;
    pass.given_where_fits = true;
    RWS_TRY(forward(c, &pass, err));
    for (int i = 0; i < c->n; i++)
        if (c->now[i].n_free) RWS_TRY(decide(c, i, err));
    return RWS_OK;
}
