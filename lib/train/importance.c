/* importance.c - importance sampling with the guide on the test data, a few thousand particles at a time.
 *
 * The particles of a datum come in chunks. Only sums are kept of a chunk that is done, on the scale of the largest
 * weight so far, so that memory does not grow with the number of particles. A particle's draws are keyed by its own
 * number and not by its chunk's, and the data are cut into the same portions for any number of threads, which share the
 * portions: neither changes a number.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 4096 /* particles of a pass, unless the model says how many */
#define PORTIONS 256 /* of the data, at most */

struct rws_particle {
    const rws_trainer  *t;
    rws_engine         *engine;
    int                 row, datum;
    const float *const *fields; /* the data of which `datum` is one; NULL: the test data */
};

const float *rws_particle_datum(const rws_particle *p, const char *field)
{
    for (int f = 0; f < p->t->program.setup.n_fields; f++)
        if (strcmp(p->t->program.setup.fields[f].name, field) == 0)
            return (p->fields ? p->fields[f] : p->t->test[f]) +
                   (size_t)p->datum * (size_t)p->t->program.setup.fields[f].dim;
    return NULL;
}

const float *rws_particle_report(const rws_particle *p, const char *name, int time)
{
    return rws__engine_report(p->engine, p->row, name, time, NULL);
}

const char *rws_particle_text(const rws_particle *p, const char *name, int time)
{
    return rws__engine_report_text(p->engine, p->row, name, time);
}

/* Sums over the particles of a datum so far, with l a log-weight. */
typedef struct {
    double top;                     /* the largest l */
    double total, squares;          /* of e^(l - top), and of its square */
    double sum;                     /* of l */
    double metric[RWS_MAX_METRICS]; /* of the metric, times e^(l - top) for a mean over the posterior */
} datum;

/* A fixed portion of the data: sums over the data that are possible under the model; the guide's metrics over all. */
typedef struct {
    rws_bound  sum;
    double     squares; /* of log_evidence */
    int        n;       /* data that are possible */
    rws_status status;
    rws_error  error;
} portion;

typedef struct {
    rws_trainer *t;
    portion     *portions;
    int          n_portions, at_once, chunk; /* data and particles of a pass */
    bool         reports;
} bound_job;

static void raise_top(const rws_trainer *t, datum *sum, double top)
{
    const double scale = exp(sum->top - top);
    sum->top = top;
    sum->total *= scale;
    sum->squares *= scale * scale;
    for (int m = 0; m < t->n_model_metrics; m++)
        if (t->program.model->metrics[m].posterior) sum->metric[m] *= scale;
}

static double weight(double l, double top)
{
    return top == -INFINITY ? 0 : exp(l - top);
}

/* Adds the rows of datum d of a pass; `number`: of the datum among all. */
static void add_rows(const rws_trainer *t, rws_engine *engine, int d, int number, datum *sum)
{
    const rws_scores *s = rws__engine_scores(engine), *whole = rws__scores_whole(rws__engine_scores(engine));
    double            top = sum->top;
    for (uint32_t i = whole->start[d]; i < whole->start[d + 1]; i++) top = fmax(top, whole->log_p[i] - whole->log_d[i]);
    if (top > sum->top) raise_top(t, sum, top);
    for (uint32_t i = whole->start[d]; i < whole->start[d + 1]; i++) {
        const double l = whole->log_p[i] - whole->log_d[i], w = weight(l, top);
        sum->total += whole->count[i] * w;
        sum->squares += whole->count[i] * w * w;
        sum->sum += whole->count[i] * l;
    }
    for (uint32_t i = s->start[d]; i < s->start[d + 1] && t->n_model_metrics; i++) {
        const double       w = weight(s->log_p[i] - s->log_d[i], top);
        const bool         ended = s->log_p[i] == -INFINITY && t->program.config.resample > 0;
        const rws_particle p = {t, engine, (int)i, number, NULL};
        if (ended) continue; /* perhaps before its reports */
        for (int m = 0; m < t->n_model_metrics; m++) {
            const rws_metric *metric = &t->program.model->metrics[m];
            if (metric->posterior) sum->metric[m] += s->count[i] * w * metric->posterior(&p, t->program.state);
            if (metric->guide) sum->metric[m] += rws__row_share(s, (int)i) * metric->guide(&p, t->program.state);
        }
    }
}

static void add_datum(const rws_trainer *t, const datum *d, portion *p)
{
    const double K = t->program.config.eval_particles;
    for (int m = 0; m < t->n_model_metrics; m++)
        if (t->program.model->metrics[m].guide) p->sum.metric[m] += d->metric[m] / K;
    if (d->top == -INFINITY) return;
    const double L = d->top + log(d->total / K);
    p->sum.log_evidence += L;
    p->squares += L * L;
    p->sum.kl += L - d->sum / K;
    p->sum.ess += d->total * d->total / d->squares / K;
    for (int m = 0; m < t->n_model_metrics; m++)
        if (t->program.model->metrics[m].posterior) p->sum.metric[m] += d->metric[m] / d->total;
    p->n++;
}

static rws_status measure_data(const bound_job *j, int worker, int first, int n, datum *data, portion *p)
{
    rws_trainer      *t = j->t;
    rws_engine       *engine = t->engines[worker];
    const rws_config *c = &t->program.config;
    const rws_key     key = rws__key_for(c->seed, t->program.iteration, RWS_KEY_TEST, RWS_TEST_BOUND);
    const float      *fields[t->program.setup.n_fields];
    for (int f = 0; f < t->program.setup.n_fields; f++)
        fields[f] = t->test[f] + (size_t)first * (size_t)t->program.setup.fields[f].dim;
    for (int d = 0; d < n; d++) data[d] = (datum){.top = -INFINITY};
    for (int k = 0; k < c->eval_particles; k += j->chunk) {
        const int left = c->eval_particles - k;
        rws_pass  pass = rws__program_pass(&t->program, RWS_WAKE, n, left < j->chunk ? left : j->chunk, fields, key);
        pass.reports = j->reports;
        pass.resample = c->resample;
        pass.first_datum = (uint32_t)first;
        pass.first_particle = (uint32_t)k;
        RWS_TRY(rws__trainer_check_stop(t, worker, &p->error));
        RWS_TRY(rws__engine_forward(engine, &pass, &p->error));
        for (int d = 0; d < n; d++) add_rows(t, engine, d, first + d, &data[d]);
    }
    for (int d = 0; d < n; d++) add_datum(t, &data[d], p);
    return RWS_OK;
}

static void measure_portion(void *context, int i, int worker)
{
    const bound_job *j = context;
    portion         *p = &j->portions[i];
    const int64_t    n_test = j->t->program.n_test;
    const int        end = (int)(n_test * (i + 1) / j->n_portions);
    datum           *data = malloc((size_t)j->at_once * sizeof *data);
    if (!data) p->status = rws_no_memory(&p->error, "an evaluation");
    for (int first = (int)(n_test * i / j->n_portions); first < end && p->status == RWS_OK; first += j->at_once) {
        const int n = end - first < j->at_once ? end - first : j->at_once;
        p->status = measure_data(j, worker, first, n, data, p);
    }
    free(data);
}

rws_status rws__trainer_guess(rws_trainer *t, const float *const *fields, int K,
                              void (*each)(const rws_particle *p, int count, void *context), void *context,
                              rws_error *err)
{
    const int most = rws__program_at_once(&t->program, AT_ONCE);
    for (int k = 0; k < K; k += most) {
        const rws_pass pass =
            rws__program_question(&t->program, fields, t->program.config.seed, k, K - k < most ? K : k + most);
        RWS_TRY(rws__trainer_check_stop(t, 0, err));
        RWS_TRY(rws__engine_forward(t->engines[0], &pass, err));
        const rws_scores *s = rws__engine_scores(t->engines[0]);
        for (int i = 0; i < s->n; i++) {
            const rws_particle p = {t, t->engines[0], i, 0, fields};
            each(&p, (int)s->count[i], context);
        }
    }
    return RWS_OK;
}

rws_status rws__trainer_bound(rws_trainer *t, rws_bound *out, rws_error *err)
{
    const int K = t->program.config.eval_particles, most = rws__program_at_once(&t->program, AT_ONCE);
    bound_job j = {.t = t, .at_once = most > K ? most / K : 1, .chunk = most < K ? most : K};
    if (j.at_once > t->program.n_test) j.at_once = t->program.n_test;
    for (int m = 0; m < t->n_model_metrics; m++)
        j.reports |= t->program.model->metrics[m].posterior || t->program.model->metrics[m].guide;
    j.n_portions = (t->program.n_test + j.at_once - 1) / j.at_once;
    if (j.n_portions > PORTIONS) j.n_portions = PORTIONS;
    j.portions = calloc((size_t)j.n_portions, sizeof *j.portions);
    portion all = {.status = rws__trainer_agree(t, j.portions ? RWS_OK : rws_no_memory(err, "an evaluation"), err)};
    if (all.status == RWS_OK)
        all.status = rws__trainer_distribute(t, j.n_portions, measure_portion, &j, j.portions, sizeof *j.portions, err);
    for (int i = 0; i < j.n_portions && all.status == RWS_OK; i++) {
        const portion *p = &j.portions[i];
        all.status = p->status;
        if (p->status != RWS_OK) rws_fail(err, p->status, "%s", p->error.text);
        all.n += p->n;
        all.squares += p->squares;
        all.sum.log_evidence += p->sum.log_evidence;
        all.sum.kl += p->sum.kl;
        all.sum.ess += p->sum.ess;
        for (int m = 0; m < RWS_MAX_METRICS; m++) all.sum.metric[m] += p->sum.metric[m];
    }
    free(j.portions);
    const double n = all.n, mean = all.sum.log_evidence / n;
    *out = (rws_bound){mean, .kl = all.sum.kl / n, .ess = all.sum.ess / n, .impossible = 1 - n / t->program.n_test};
    if (K == 1) out->kl = out->ess = NAN; /* one particle says nothing about either */
    out->log_evidence_error = sqrt(fmax(0, all.squares / n - mean * mean) / (n - 1));
    for (int m = 0; m < t->n_model_metrics; m++)
        out->metric[m] = all.sum.metric[m] / (t->program.model->metrics[m].guide ? t->program.n_test : n);
    return all.status;
}
