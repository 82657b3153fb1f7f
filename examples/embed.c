/* embed.c - a model inside your own program, trained and then asked by two threads: each guest moves x by about 1.
 *     cc embed.c $(pkg-config --cflags --libs rws) -pthread && ./a.out */
#include <pthread.h>
#include <rws_train.h>
#include <stdio.h>
static rws_status setup(rws_setup *s, rws_random *random, void **guess, rws_error *err)
{
    const int sizes[] = {2, 16, 1}; /* from x and the guests so far to the log-odds of one more */
    (void)random, (void)err;
    rws_setup_field(s, "x", 1);
    *guess = rws_setup_mlp(s, RWS_PHI, "phi.guess", RWS_TANH, RWS_UNIFORM, sizes, 3);
    return RWS_OK;
}
static rws_status data(const void *w, rws_split s, uint64_t first, int n, rws_random *g, float *const *to, rws_error *e)
{
    (void)w, (void)s, (void)first, (void)e;
    for (int i = 0; i < n; i++) /* made here; yours may be copied from a file */
        for (to[0][i] = 0.4f * (float)rws_random_normal(g); rws_random_uniform(g) < 0.6; to[0][i]++) continue;
    return RWS_OK;
}
static void model(rws_path *path, const void *guess)
{
    int n = 0;
    (void)guess;
    while (n < 20 && rws_flip(path, "more", rws_constant(path, 0.405f))) n++; /* six of ten guests bring another */
    rws_report(path, "guests", rws_constant(path, (float)n));
    rws_normal(path, "x", rws_constant(path, (float)n), rws_constant(path, 0.4f));
}
static void guide(rws_path *path, const void *guess)
{
    rws_var in[] = {rws_observed(path, "x"), rws_constant(path, 0)};
    for (int n = 0; n < 20 && rws_flip(path, "more", rws_mlp_parts(path, (const rws_layer *)guess, in, 2));)
        in[1] = rws_constant(path, (float)++n);
}
static void *ask(void *posterior)
{
    const float        x = 2.7f, *fields[] = {&x};
    const rws_question question = {fields, NULL, NULL, 0, 1000, 1, false}; /* 1000 particles, seed 1 */
    rws_answers       *a;
    if (rws_posterior_ask((rws_posterior *)posterior, &question, &a, NULL) == RWS_OK)
        printf("%g guests: %.3f\n", (double)a->list[0].reports[0].value[0], a->list[0].posterior);
    rws_answers_free(a);
    return NULL;
}
int main(void)
{
    static rws_model  m; /* static: zeros, and a zeroed configuration is one with all defaults */
    static rws_config c;
    rws_trainer      *t;
    rws_posterior    *p = NULL;
    rws_error         err;
    pthread_t         other;
    m.abi = RWS_ABI, m.name = "party", m.setup = setup, m.data = data, m.model = model, m.guide = guide;
    rws_status status = rws_trainer_new(&c, &m, &t, &err);
    if (status == RWS_OK) status = rws_trainer_train(t, NULL, &err);
    if (status == RWS_OK) status = rws_posterior_new(t, &p, &err);
    if (status != RWS_OK) return fprintf(stderr, "%s\n", err.text), 1;
    if (pthread_create(&other, NULL, ask, p) == 0) ask(p), pthread_join(other, NULL);
    rws_posterior_free(p), rws_trainer_free(t);
}
