#include "run/infer.h"

#include "estimator/weights.h"
#include "run/trainer.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 2000 /* particles of a pass, unless the model says how many */
#define MOST 64      /* reports of a particle */

/* ---- what one particle reported */

typedef struct {
    rws_told told[MOST];
    int      n;
} reports;

static void hear(void *context, const char *name, int dim, const float *value, const char *text)
{
    reports *r = context;
    if (r->n < MOST) r->told[r->n++] = (rws_told){name, text, value, dim};
}

static int compare_told(const rws_told *a, const rws_told *b)
{
    const int names = strcmp(a->name, b->name);
    if (names) return names;
    if (!a->text != !b->text) return a->text ? 1 : -1;
    if (a->text) return strcmp(a->text, b->text);
    if (a->dim != b->dim) return a->dim - b->dim;
    return memcmp(a->value, b->value, (size_t)a->dim * sizeof *a->value);
}

static const char *keep_text(rws_arena *memory, const char *text)
{
    return text ? strcpy(RWS_NEW(memory, char, strlen(text) + 1), text) : NULL;
}

static const rws_told *keep(rws_arena *memory, const rws_told *told, int n)
{
    rws_told *copy = RWS_NEW(memory, rws_told, n + 1);
    for (int i = 0; i < n; i++) {
        const size_t bytes = (size_t)told[i].dim * sizeof(float);
        copy[i] = (rws_told){keep_text(memory, told[i].name), keep_text(memory, told[i].text), NULL, told[i].dim};
        if (told[i].value) copy[i].value = memcpy(rws_arena_alloc(memory, bytes), told[i].value, bytes);
    }
    return copy;
}

void rws_answers_release(rws_answers *a)
{
    rws_arena_free(&a->memory);
    *a = (rws_answers){0};
}

const char *rws_answer_text(const rws_answer *a, const char *name)
{
    for (int i = 0; i < a->n_told; i++)
        if (a->told[i].text && strcmp(a->told[i].name, name) == 0) return a->told[i].text;
    return NULL;
}

const rws_told *rws_answer_value(const rws_answer *a, const char *name, int time)
{
    for (int i = 0; i < a->n_told; i++)
        if (a->told[i].value && strcmp(a->told[i].name, name) == 0 && time-- == 0) return &a->told[i];
    return NULL;
}

/* ---- a table of what particles have reported so far */

typedef struct found {
    rws_answer    answer; /* guide: how many particles; exact: as the model told */
    double        log_weight;
    struct found *next; /* the one found before */
} found;

typedef struct {
    rws_answers *out;
    void        *tree; /* tsearch(3): all found, by their reports */
    found       *last;
    double       log_weight, log_square; /* of the sums over all particles */
} table;

static int compare_found(const void *a, const void *b)
{
    const rws_answer *x = &((const found *)a)->answer, *y = &((const found *)b)->answer;
    if (x->n_told != y->n_told) return x->n_told - y->n_told;
    for (int i = 0; i < x->n_told; i++) {
        const int order = compare_told(&x->told[i], &y->told[i]);
        if (order) return order;
    }
    return 0;
}

static found *find(table *t, const rws_told *told, int n_told)
{
    const found   key = {.answer = {.told = told, .n_told = n_told}};
    found *const *old = tfind(&key, &t->tree, compare_found);
    if (old) return *old;
    found *e = RWS_NEW(&t->out->memory, found, 1);
    *e = (found){.answer = {keep(&t->out->memory, told, n_told), n_told, .exact = NAN},
                 .log_weight = -INFINITY,
                 .next = t->last};
    t->last = e;
    t->out->n++;
    RWS_CHECK(tsearch(e, &t->tree, compare_found) && "memory for answers");
    return e;
}

static void forget(void *item)
{
    (void)item; /* belongs to the arena */
}

static void add_rows(table *t, rws_engine *engine)
{
    const rws_scores *s = rws_engine_scores(engine);
    for (int i = 0; i < s->n; i++) {
        reports      r = {.n = 0};
        const double l = s->log_p[i] - s->log_q[i], n = s->count[i];
        rws_engine_reports(engine, i, hear, &r);
        found *e = find(t, r.told, r.n);
        e->answer.guide += n;
        e->log_weight = rws_log_add(e->log_weight, l + log(n));
        t->log_weight = rws_log_add(t->log_weight, l + log(n));
        t->log_square = rws_log_add(t->log_square, 2 * l + log(n));
    }
}

/* The model's own answer: that of the particles which reported this text, or one that no particle has found. */
static void tell(void *context, const char *name, const char *text, double probability)
{
    table *t = context;
    for (found *e = t->last; e; e = e->next) {
        const char *has = rws_answer_text(&e->answer, name);
        if (!has || strcmp(has, text) != 0) continue;
        e->answer.exact = probability;
        return;
    }
    find(t, &(rws_told){.name = name, .text = text}, 1)->answer.exact = probability;
}

static double or_nothing(double x)
{
    return isnan(x) ? -1 : x;
}

static int by_probability(const void *a, const void *b)
{
    const rws_answer *x = a, *y = b;
    const double      order[] = {or_nothing(x->posterior) - or_nothing(y->posterior),
                                 or_nothing(x->exact) - or_nothing(y->exact), x->guide - y->guide};
    for (int i = 0; i < 3; i++)
        if (order[i] != 0) return order[i] < 0 ? 1 : -1;
    for (int i = 0; i < x->n_told && i < y->n_told; i++) {
        const int told = compare_told(&x->told[i], &y->told[i]);
        if (told) return told;
    }
    return x->n_told - y->n_told;
}

static void conclude(table *t)
{
    rws_answers *out = t->out;
    const double K = out->n_particles;
    out->list = RWS_NEW(&out->memory, rws_answer, out->n + 1);
    out->log_evidence = t->log_weight - log(K);
    out->ess = t->log_weight > -INFINITY ? exp(2 * t->log_weight - t->log_square) / K : 0;
    int n = 0;
    for (const found *e = t->last; e; e = e->next) {
        rws_answer a = e->answer;
        a.guide /= K;
        a.posterior = t->log_weight > -INFINITY ? exp(e->log_weight - t->log_weight) : NAN;
        /* where the exact posterior is known, what it does not know of is impossible */
        if (isnan(a.exact) && !isnan(out->exact_log_evidence)) a.exact = 0;
        out->list[n++] = a;
    }
    qsort(out->list, (size_t)n, sizeof *out->list, by_probability);
}

/* ---- asking */

static rws_status ask(rws_trainer *t, const float *const *fields, uint64_t seed, table *answers, rws_error *err)
{
    const int K = answers->out->n_particles, limit = t->model->defaults.at_once;
    const int most = limit && limit < AT_ONCE ? limit : AT_ONCE;
    for (int k = 0; k < K; k += most) {
        rws_pass pass = rws_trainer_question(t, fields, seed, k, K - k < most ? K : k + most);
        pass.asked = true;
        RWS_TRY(rws_engine_forward(t->engines[0], &pass, err));
        add_rows(answers, t->engines[0]);
    }
    if (!t->model->posterior) return RWS_OK;
    return t->model->posterior(t->state, fields, tell, answers, &answers->out->exact_log_evidence, err);
}

/* Begins *out, with room for a datum in `fields`. */
static void begin(rws_trainer *t, int n_particles, rws_answers *out, float **fields)
{
    *out = (rws_answers){.n_particles = n_particles, .exact_log_evidence = NAN};
    for (int f = 0; f < t->setup.n_fields; f++) fields[f] = RWS_NEW0(&out->memory, float, t->setup.fields[f].dim);
}

/* Goes on with that datum, unless `status` says that there is none. */
static rws_status answer(rws_trainer *t, rws_status status, float *const *fields, uint64_t seed, rws_answers *out,
                         rws_error *err)
{
    table answers = {.out = out, .log_weight = -INFINITY, .log_square = -INFINITY};
    if (status == RWS_OK) status = ask(t, (const float *const *)fields, seed, &answers, err);
    if (status == RWS_OK) conclude(&answers);
    tdestroy(answers.tree, forget);
    if (status != RWS_OK) rws_answers_release(out);
    return status;
}

rws_status rws_infer(rws_trainer *t, const char *text, int n_particles, uint64_t seed, rws_answers *out, rws_error *err)
{
    float *fields[RWS_FIELDS];
    begin(t, n_particles, out, fields);
    const rws_status status =
        t->model->read ? t->model->read(t->state, text, fields, err)
                       : rws_fail(err, RWS_BAD_INPUT, "Model %s cannot be asked: it does not read what users type.",
                                  t->model->name);
    return answer(t, status, fields, seed, out, err);
}

rws_status rws_infer_picture(rws_trainer *t, const rws_grey *picture, int n_particles, uint64_t seed, rws_answers *out,
                             rws_error *err)
{
    float *fields[RWS_FIELDS];
    begin(t, n_particles, out, fields);
    const rws_status status =
        t->model->see ? t->model->see(t->state, picture, fields, err)
                      : rws_fail(err, RWS_BAD_INPUT, "Model %s cannot be asked about pictures.", t->model->name);
    return answer(t, status, fields, seed, out, err);
}

rws_status rws_infer_test(rws_trainer *t, int datum, int n_particles, uint64_t seed, rws_answers *out, rws_error *err)
{
    float *fields[RWS_FIELDS];
    RWS_CHECK(!t->config.asking && datum >= 0 && datum < t->config.n_test);
    begin(t, n_particles, out, fields);
    for (int f = 0; f < t->setup.n_fields; f++) {
        const size_t dim = (size_t)t->setup.fields[f].dim;
        memcpy(fields[f], t->test[f] + (size_t)datum * dim, dim * sizeof(float));
    }
    return answer(t, RWS_OK, fields, seed, out, err);
}

/* ---- sampling */

rws_status rws_sample(rws_trainer *t, int n, uint64_t seed, rws_answers *out, rws_error *err)
{
    *out = (rws_answers){.exact_log_evidence = NAN};
    out->list = RWS_NEW(&out->memory, rws_answer, n + 1);
    rws_random random = rws_random_new(rws_key_for(seed, t->iteration, RWS_KEY_TEST, 5), 0);
    for (int first = 0; first < n; first += AT_ONCE) {
        const rws_pass   pass = {.program = rws_programs,
                                 .context = &t->method,
                                 .mode = RWS_SLEEP,
                                 .n_data = 1,
                                 .n_particles = n - first < AT_ONCE ? n - first : AT_ONCE,
                                 .reports = true,
                                 .asked = true,
                                 .scalar = t->config.scalar,
                                 .first_particle = (uint32_t)first,
                                 .iteration = t->iteration,
                                 .key = rws_key_for(seed, t->iteration, RWS_KEY_TEST, 4)};
        const rws_status status = rws_engine_forward(t->engines[0], &pass, err);
        if (status != RWS_OK) {
            rws_answers_release(out);
            return status;
        }
        const rws_scores *s = rws_engine_scores(t->engines[0]);
        for (int i = 0; i < s->n; i++) {
            reports r = {.n = 0};
            rws_engine_reports(t->engines[0], i, hear, &r);
            const rws_answer a = {keep(&out->memory, r.told, r.n), r.n, NAN, NAN, NAN};
            for (uint32_t k = 0; k < s->count[i]; k++) out->list[out->n++] = a;
        }
        /* rows come in the order of their choices, samples do not */
        for (int i = out->n - 1; i > first; i--) {
            const int        j = first + (int)rws_random_below(&random, (uint32_t)(i - first + 1));
            const rws_answer a = out->list[i];
            out->list[i] = out->list[j];
            out->list[j] = a;
        }
    }
    return RWS_OK;
}
