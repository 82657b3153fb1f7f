/* test_memory.c - every allocation of a small training, of asking what was trained and of saving it again fails once, one
 * after the other. What follows is a status or the right result, never a crash, a hang or a leak.
 *
 *     test_memory [NAME...]             the scenarios of that name; all of them without
 *     FAIL_AT=137 test_memory NAME      only that allocation fails, in this very process: for a debugger
 */
#include "torture.h"

#include "rws_train.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/dev/shm/rws-memory-XXXXXX"; /* in memory if that can be: thousands of files are written */

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- training: a few iterations, an evaluation, a folder */

typedef struct {
    const rws_model *model; /* NULL: the built-in one that the configuration names */
    rws_config       config;
    const char      *name; /* of the run in the folder */
} training;

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A sum that tells results apart; NaN would not even equal itself. */
static void add(double *sum, double value)
{
    *sum += isfinite(value) ? value : 1;
}

static rws_status train(const void *context, double *result, rws_error *err)
{
    const training *s = context;
    rws_trainer    *t = NULL;
    rws_measures    m = {0};
    remove_all(path_of(s->name));
    *result = 0;
    rws_status status = rws_trainer_new(&s->config, s->model, &t, err);
    for (int i = 0; i < 3 && status == RWS_OK; i++) {
        status = rws_trainer_step(t, err);
        /* a step that failed can be tried again */
        if (status != RWS_OK && rws_trainer_step(t, NULL) != RWS_OK) status = RWS_BROKEN;
    }
    if (status == RWS_OK) status = rws_trainer_evaluate(t, &m, err);
    if (status == RWS_OK) status = rws_trainer_keep(t, path_of(s->name), err);
    if (status == RWS_OK)
        status = rws_trainer_train(t, NULL, err); /* to its fifth iteration, with measures and a checkpoint */
    if (status == RWS_OK) status = rws_trainer_save(t, err);
    for (int i = 0; i < m.n; i++) add(result, m.value[i]);
    rws_param_view v;
    for (int i = 0; status == RWS_OK && rws_trainer_param(t, i, &v); i++)
        for (int k = 0; k < v.rows * v.cols; k++) add(result, (double)v.values[k]);
    rws_trainer_free(t);
    return status;
}

/* ---- asking: a run that was trained is opened, asked, scored and drawn from */

typedef struct {
    const training *run;
    const char     *text; /* NULL: a datum of zeros */
} asking;

static rws_status question_of(const rws_posterior *p, const asking *a, rws_question *q, float (*datum)[16],
                              const float **fields)
{
    rws_field f;
    *q = (rws_question){.text = a->text, .fields = a->text ? NULL : fields, .n_particles = 20, .particles = true};
    for (int i = 0; !a->text && rws_posterior_field(p, i, &f); i++) fields[i] = datum[i];
    return RWS_OK;
}

static rws_status ask(const void *context, double *result, rws_error *err)
{
    const asking  *a = context;
    rws_posterior *p = NULL;
    rws_answers   *answers = NULL;
    rws_samples   *samples = NULL;
    rws_question   q;
    rws_score      score = {0};
    float          datum[8][16] = {{0}};
    const float   *fields[8] = {NULL};
    *result = 0;
    rws_status status = rws_posterior_open(path_of(a->run->name), NULL, a->run->model, &p, err);
    if (status == RWS_OK) status = question_of(p, a, &q, datum, fields);
    if (status == RWS_OK) status = rws_posterior_ask(p, &q, &answers, err);
    if (status == RWS_OK)
        status =
            rws_posterior_score(p, &q, answers->particles[0].choices, answers->particles[0].n_choices, &score, err);
    if (status == RWS_OK) status = rws_posterior_sample(p, 5, 1, &samples, err);
    if (status == RWS_OK) {
        add(result, answers->log_evidence);
        add(result, answers->n);
        add(result, score.log_p);
        add(result, score.log_q);
        add(result, samples->n);
    }
    rws_samples_free(samples);
    rws_answers_free(answers);
    rws_posterior_free(p);
    return status;
}

/* ---- saving: whatever fails, the folder can be opened afterwards, and nothing in it is missing */

static rws_status save(const void *context, double *result, rws_error *err)
{
    const training *s = context;
    rws_trainer    *t = NULL, *again = NULL;
    rws_error       why;
    *result = 0;
    rws_status status = rws_trainer_resume(path_of(s->name), NULL, s->model, &t, err);
    if (status == RWS_OK) status = rws_trainer_save(t, err);
    rws_trainer_free(t);
    bool whole = false; /* One allocation fails: one of two attempts has all that it needs. */
    for (int i = 0; i < 2 && !whole; i++) {
        why.text[0] = '\0';
        if (rws_trainer_resume(path_of(s->name), NULL, s->model, &again, &why) == RWS_OK)
            snprintf(why.text, sizeof why.text, "%s", rws_trainer_warnings(again));
        whole = again && !why.text[0];
        rws_trainer_free(again);
        again = NULL;
    }
    if (!whole) *err = why;
    return whole ? status : RWS_BROKEN;
}

int main(int argc, char **argv)
{
    if (getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "vgpreload")) {
        puts("skipped: valgrind has an allocator of its own.");
        return 77;
    }
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/rws-memory-XXXXXX"))) return 99;

    const rws_config small = {
        .method = "ww", .particles = 3, .batch = 4, .n_test = 3, .shards = 2, .seed = 1, .iterations = 5};
    training toy = {&rws_user_model, small, "toy"}, gmm = {NULL, small, "gmm"}, grammar = {NULL, small, "pcfg"},
             threads;
    toy.config.model = "toy";
    gmm.config.model = "gmm";
    grammar.config.model = "pcfg";
    grammar.config.set[grammar.config.n_set++] = "nodes=20";
    threads = gmm;
    threads.config.threads = 2;
    threads.name = "threads";
    const asking   zeros = {&toy, NULL}, sentence = {&grammar, "astronomers saw stars"};
    const scenario all[] = {
        {"toy", train, &toy, 0},       {"gmm", train, &gmm, 0},     {"threads", train, &threads, 0},
        {"pcfg", train, &grammar, 37}, {"ask-toy", ask, &zeros, 0}, {"ask-pcfg", ask, &sentence, 0},
        {"save", save, &gmm, 0},
    };
    int n_bad = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= strcmp(argv[k], all[i].name) == 0;
        if (!wanted) continue;
        double    result;
        rws_error err;
        if (all[i].run == ask && train(((const asking *)all[i].context)->run, &result, &err) != RWS_OK) return 99;
        if (all[i].run == save && train(all[i].context, &result, &err) != RWS_OK) return 99;
        n_bad += torture(&all[i]);
        fflush(stdout);
    }
    remove_all(folder);
    return n_bad ? 1 : 0;
}
